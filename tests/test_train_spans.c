/* SPDX-License-Identifier: Apache-2.0 */
/* Spans of a step: passes of a stage follow each other, the last span ends with the step, and nothing is counted twice. */
#include <math.h>

#include "predict.h"

static struct maq_train_spans spans_of(const struct prediction *p)
{
    struct maq_train_spans spans;
    struct maq_diag *diag = maq_diag_new();
    assert_int_equal(maq_train_spans(&spans, maq_job_get(p->job), diag), MAQ_OK);
    maq_diag_free(diag);
    return spans;
}

static bool is_pass(const struct maq_train_span *span)
{
    return span->kind <= MAQ_SPAN_PAIR;
}

/* What holds of any step; returns the number of passes. */
static uint32_t check(const struct prediction *p)
{
    struct maq_train_spans spans = spans_of(p);
    int64_t last = 0;
    uint32_t passes = 0;
    assert_int_equal(spans.n_stages, p->result->n_stages);
    for (uint32_t s = 0; s < spans.n_stages; s++) {
        int64_t free_at = 0;
        bool behind = false;
        for (uint32_t i = spans.first[s]; i < spans.first[s + 1]; i++) {
            const struct maq_train_span *span = &spans.spans[i];
            assert_true(span->start_ns >= 0 && span->end_ns > span->start_ns);
            last = span->end_ns > last ? span->end_ns : last;
            if (!is_pass(span)) {
                behind = true;
                continue;
            }
            assert_false(behind);
            assert_true(span->start_ns >= free_at - 1); /* rounded to whole nanoseconds */
            free_at = span->end_ns;
            passes++;
        }
    }
    assert_true(llabs(last - llround(p->result->step_s * 1e9)) <= 1);
    maq_train_spans_free(&spans);
    return passes;
}

static const char *const plans[] = {
    "tp: 2, pp: 4, zero: 1",
    "tp: 2, pp: 4, vp: 2, zero: 1, overlap_grad_reduce: true, overlap_param_gather: true",
    "pp: 4, schedule: gpipe",
    "pp: 4, schedule: zb-h1",
    "pp: 4, schedule: zb-v",
    "pp: 4, schedule: dualpipe",
    "zero: 3",
    "tp: 8",
};

static void test_all_schedules(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        struct prediction p = predict_batch("llama-3.1-8b", "h100-sxm:8 x 4", plans[i], 256, 2048);
        assert_true(check(&p) > 0);
        drop(&p);
    }
}

/* One forward and one backward pass of every microbatch in every virtual stage. */
static void test_numbers(void **state)
{
    (void)state;
    struct prediction p = predict_batch("llama-3.1-8b", "h100-sxm:8 x 4", "tp: 2, pp: 4, vp: 2", 64, 2048);
    const struct maq_job *job = maq_job_get(p.job);
    assert_int_equal(check(&p), 2 * job->microbatches * 8);
    struct maq_train_spans spans = spans_of(&p);
    uint32_t sends = 0;
    for (uint32_t i = 0; i < spans.first[spans.n_stages]; i++)
        sends += spans.spans[i].kind == MAQ_SPAN_SEND;
    assert_int_equal(sends, 2 * job->microbatches * 7); /* over each border between virtual stages, there and back */
    maq_train_spans_free(&spans);
    drop(&p);
}

/* Passes say what they are made of: no operator takes longer than the pass that it is in. */
static void test_passes(void **state)
{
    (void)state;
    struct prediction p = predict_batch("llama-3.1-8b", "h100-sxm:8 x 4", "tp: 2, pp: 4, vp: 2", 64, 2048);
    struct maq_train_spans spans = spans_of(&p);
    assert_int_equal(spans.n_chunks, 2);
    assert_int_equal(spans.n_programs, 3); /* with the embedding, with layers alone, with the output */
    for (uint32_t s = 0; s < spans.n_stages; s++)
        for (uint32_t i = spans.first[s]; i < spans.first[s + 1]; i++) {
            const struct maq_train_span *span = &spans.spans[i];
            if (span->kind > MAQ_SPAN_BACKWARD)
                continue;
            const struct maq_train_pass *pass = &spans.passes[spans.program[s * 2 + span->chunk]][span->kind];
            assert_int_equal(pass->n, MAQ_TRAIN_PASS_OPS);
            for (uint32_t k = 0; k < pass->n; k++) {
                assert_true(pass->ops[k].seconds > 0 && pass->ops[k].count >= 1);
                assert_true(pass->ops[k].seconds * 1e9 <= (double)(span->end_ns - span->start_ns));
                assert_true(k == 0 || pass->ops[k].seconds <= pass->ops[k - 1].seconds);
            }
        }
    maq_train_spans_free(&spans);
    drop(&p);
}

static void test_names(void **state)
{
    (void)state;
    for (int k = 0; k < MAQ_SPAN_KIND_COUNT; k++)
        assert_non_null(maq_train_span_name((enum maq_train_span_kind)k));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_schedules),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_passes),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
