/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When DeepSpeed's ZeRO-1 and -2 reduce gradients: a flat buffer at a time, in every backward pass or in the last, beside it or on the stream
 * that computes (deepspeed 0.19, runtime/zero/stage_1_and_2.py; src/train/step/dp_comm.c).
 */
#include <math.h>

#include "base/check.h"
#include "maquette/graph.h"
#include "predict.h"

#define LLAMA                                                                                                          \
    "{model_type: llama, num_hidden_layers: 4, hidden_size: 1024, intermediate_size: 2816, num_attention_heads: 16, "  \
    "num_key_value_heads: 4, vocab_size: 32000, max_position_embeddings: 4096, tie_word_embeddings: false}"
/* So few SMs that none are counted as held by NCCL; the host issues nothing late. */
#define UNCONTENDED "{groups: [{device: {base: h100-sxm, sms: 32}, devices_per_node: 8, nodes: 1}]}"
#define FREE_HOST                                                                                                      \
    "host: {forward: 0 us, backward: 0 us, kernel: 0 us, expert: 0 us, collective: 0 us, skew: 0 us, checkpoint: 0 "   \
    "us, "                                                                                                             \
    "p2p: 0 us, pass: 0 us, step: 0 us, read: 0 us}"

enum { L = 4, H = 1024, F = 2816, KV = 256, V = 32000 };
#define LAYER (H * (2.0 * H + 2 * KV) + 3.0 * H * F + 2 * H)
#define MIB (1024.0 * 1024.0)

struct reductions {
    double mib[64], seconds, last_s, dp, step;
    uint32_t n;
};

/* Of `sequences` of 2,048 tokens, two in a microbatch, on 8 devices. */
static struct reductions reductions_of(const char *plan, int sequences)
{
    struct reductions r = {.n = 0};
    char text[2048], item[96];
    struct maq_train_graph g;
    snprintf(text, sizeof text,
             "{model: " LLAMA ", cluster: " UNCONTENDED ", framework: {base: deepspeed, " FREE_HOST "}, "
             "plan: {micro_batch_size: 2, recompute: full, %s}, workload: {global_batch_size: %d, seq_length: 2048}}",
             plan, sequences);
    struct prediction p = predict_text(text);
    r.dp = p.result->bucket_s[MAQ_BUCKET_DP];
    r.step = p.result->step_s;
    assert_int_equal(maq_train_graph(&g, maq_job_get(p.job), NULL), MAQ_OK);
    for (uint32_t i = 0; i < g.graph.n_nodes; i++) {
        double size;
        maq_train_item_text(item, &g, g.graph.item[i]);
        if (sscanf(item, "reduce_scatter %lf MiB over 8 ranks", &size) != 1)
            continue;
        assert_true(r.n < MAQ_COUNT(r.mib));
        r.mib[r.n++] = size;
        r.last_s = g.dur_ns[g.graph.item[i]] * 1e-9;
        r.seconds += r.last_s;
    }
    maq_train_graph_free(&g);
    drop(&p);
    return r;
}

/* A buffer is reduced when the next layer has no room in it: of 3e7 numbers head and norm alone are more, then two layers fit. */
static void test_buffers(void **state)
{
    const double want[] = {(V + 1.0) * H, 2 * LAYER, 2 * LAYER, (double)V * H};
    (void)state;
    for (int zero = 1; zero <= 2; zero++) {
        char plan[96];
        snprintf(plan, sizeof plan, "zero: %d, reduce_bucket_size: 3e7, overlap_grad_reduce: true", zero);
        struct reductions r = reductions_of(plan, 16), more = reductions_of(plan, 48);
        assert_int_equal(r.n, MAQ_COUNT(want));
        assert_int_equal(more.n, zero == 1 ? r.n : 3 * r.n); /* ZeRO-1 once a step, ZeRO-2 in every pass */
        for (uint32_t i = 0; i < r.n; i++)
            assert_true(fabs(r.mib[i] * MIB / (2 * want[i]) - 1) < 5e-3);
    }
    assert_int_equal(reductions_of("zero: 2", 16).n, 1); /* 5e8 */
}

/*
 * On the stream that computes all of them are waited for, and beside it the last one, of the lower half of the model; which is all where one
 * buffer holds everything.
 */
static void test_overlap(void **state)
{
    (void)state;
    for (int zero = 1; zero <= 2; zero++) {
        char plan[2][96];
        for (int on = 0; on < 2; on++)
            snprintf(plan[on], sizeof plan[on], "zero: %d, reduce_bucket_size: 6e7, overlap_grad_reduce: %s", zero,
                     on ? "true" : "false");
        struct reductions off = reductions_of(plan[0], 16), on = reductions_of(plan[1], 16);
        if (!(fabs(off.dp - on.dp - (on.seconds - on.last_s)) < 1e-8))
            fail_msg("ZeRO-%d: %g s hidden of %g", zero, off.dp - on.dp, on.seconds - on.last_s);
        assert_true(fabs(off.step - on.step - (off.dp - on.dp)) < 1e-8);
    }
    assert_true(fabs(reductions_of("zero: 2, overlap_grad_reduce: true", 16).step -
                     reductions_of("zero: 2, overlap_grad_reduce: false", 16).step) < 1e-12);
}

static int overlaps(const char *framework, const char *plan)
{
    char text[512];
    struct maq_loaded_job *box = NULL;
    snprintf(text, sizeof text,
             "{model: " LLAMA ", cluster: \"h100-sxm:8\", framework: %s, plan: {%s}, workload: {gbs: 8}}", framework,
             plan);
    assert_int_equal(maq_job_parse(&box, "test", maq_str_of(text), NULL, 0, NULL), MAQ_OK);
    int overlap = maq_job_get(box)->plan.overlap_grad_reduce;
    maq_job_free(box);
    return overlap;
}

/* overlap_comm is off in DeepSpeed where nobody asks, but for ZeRO-3 (zero/config.py, overlap_comm_valid()). */
static void test_unasked(void **state)
{
    (void)state;
    assert_int_equal(overlaps("deepspeed", "zero: 1"), MAQ_OFF);
    assert_int_equal(overlaps("deepspeed", "zero: 2"), MAQ_OFF);
    assert_int_equal(overlaps("deepspeed", "zero: 2, overlap_grad_reduce: true"), MAQ_ON);
    assert_int_equal(overlaps("deepspeed", "zero: 3"), MAQ_ON);
    assert_int_equal(overlaps("deepspeed", "zero: 0"), MAQ_OFF);
    assert_int_equal(overlaps("megatron-lm", "zero: 1"), MAQ_ON);
    assert_int_equal(overlaps("megatron-lm", "zero: 0"), MAQ_OFF);
    assert_int_equal(overlaps("huggingface", "zero: 3"), MAQ_ON);
    assert_int_equal(overlaps("huggingface", "zero: 0"), MAQ_ON);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_buffers), cmocka_unit_test(test_overlap),
                                       cmocka_unit_test(test_unasked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
