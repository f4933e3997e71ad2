/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_post_validation.c - steps that overlap because no stage waits for those behind it before it updates: the period of steps that repeat,
 * against steps written out one behind the other, the graph, and what a barrier costs.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "maquette/graph.h"
#include "plan/schedule/schedule.h"
#include "predict.h"
#include "train/step/repeated_step.h"

/* ---- the period alone ---- */

/* Ends of a step of any full max-plus matrix: row by row the largest of begin and path. */
static void ends_of(double *ends, const double *begin, const double *paths, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        ends[i] = 0;
        for (uint32_t k = 0; k < n; k++)
            ends[i] = fmax(ends[i], begin[k] + paths[i * n + k]);
    }
}

/* The largest mean of all circuits, by closed walks of up to n steps. */
static double cycle_mean(const double *paths, uint32_t n)
{
    double walk[64], best = 0;
    for (uint32_t from = 0; from < n; from++) {
        for (uint32_t i = 0; i < n; i++)
            walk[i] = i == from ? 0 : -1e18;
        for (uint32_t steps = 1; steps <= n; steps++) {
            double next[64];
            for (uint32_t i = 0; i < n; i++) {
                next[i] = -1e18;
                for (uint32_t k = 0; k < n; k++)
                    next[i] = fmax(next[i], walk[k] + paths[i * n + k]);
            }
            memcpy(walk, next, n * sizeof *next);
            best = fmax(best, walk[from] / steps);
        }
    }
    return best;
}

static double period_of(const double *paths, uint32_t n)
{
    struct maq_arena arena;
    struct maq_repeated_step r;
    double begin[64] = {0}, ends[64], period = 0;
    maq_arena_init(&arena, 0);
    assert_true(maq_repeated_step_begin(&r, n, &arena));
    for (;;) {
        ends_of(ends, begin, paths, n);
        if (maq_repeated_step_ends(&period, &r, ends))
            break;
        maq_repeated_step_next(begin, &r);
    }
    maq_arena_fini(&arena);
    return period;
}

static void test_period(void **unused)
{
    (void)unused;
    /* two stages whose critical circuit goes through both: steps alternate, and the mean counts */
    static const double alternate[] = {1, 10, 4, 1};
    assert_true(period_of(alternate, 2) == 7);
    uint64_t seed = 1;
    uint32_t reached = 0;
    for (uint32_t round = 0; round < 300; round++) {
        const uint32_t n = 1 + round % 8;
        double paths[64];
        for (uint32_t i = 0; i < n * n; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            paths[i] = (double)(seed >> 33) / 2097152 + 1; /* from 1 to 1025, */
            paths[i] = floor(paths[i]);                    /* in whole nanoseconds */
        }
        const double period = period_of(paths, n), mean = cycle_mean(paths, n);
        assert_true(period >= mean - 1e-6); /* never less, */
        reached += fabs(period - mean) < 1e-6;
    }
    print_message("%u of 300 matrices repeat within the limit\n", reached);
    assert_true(reached > 290); /* and nearly always it */
}

/* ---- a step whose stages begin at times of their own ---- */

static uint64_t seed_of_draws = 7;

static double draw(uint32_t most)
{
    seed_of_draws = seed_of_draws * 6364136223846793005u + 1442695040888963407u;
    return (double)((seed_of_draws >> 33) % most + 1);
}

/* Task by task, each behind the one before on its stage and behind what it waits for. */
static void play(double *finish, const struct maq_schedule *s, const double *dur, const double *hop,
                 const double *begin)
{
    const uint32_t n = s->n_positions;
    for (uint32_t id = 0; id < s->n_tasks; id++) {
        const struct maq_task *t = &s->tasks[id];
        double start = t->previous == MAQ_NO_TASK ? begin[t->stage] : finish[t->previous];
        for (int k = 0; k < 2; k++)
            if (t->pred[k] != MAQ_NO_TASK)
                start = fmax(start, finish[t->pred[k]] +
                                        (t->hop[k] ? hop[t->kind == MAQ_TASK_F ? t->position : t->position + 1] : 0));
        finish[id] = start + dur[t->kind * n + t->position];
        if (t->kind == MAQ_TASK_B && s->split_backward && !t->split)
            finish[id] += dur[MAQ_TASK_W * n + t->position];
    }
}

/* What the fast path does for it: the first forward of a stage ends no earlier than its begin and its own time. */
static void test_begins(void **unused)
{
    static const int kinds[] = {MAQ_SCHEDULE_ZB_H1, MAQ_SCHEDULE_ZB_H2, MAQ_SCHEDULE_ZB_2P,
                                MAQ_SCHEDULE_ZB_V,  MAQ_SCHEDULE_V_MIN, MAQ_SCHEDULE_V_HALF};
    (void)unused;
    for (uint32_t round = 0; round < 60; round++) {
        const int kind = kinds[round % MAQ_COUNT(kinds)];
        const uint32_t p = 2 + round % 5, chunks = maq_schedule_is_v(kind) ? 2 : 1;
        struct maq_arena arena;
        struct maq_schedule s;
        double dur[MAQ_TASK_KIND_COUNT * 16] = {0}, hop[16] = {0}, ready[16] = {0}, begin[8], makespan;
        maq_arena_init(&arena, 0);
        assert_int_equal(maq_schedule_build(&s, kind, p, chunks, 2 * p + round % 7, 0, &arena, NULL), MAQ_OK);
        for (uint32_t v = 0; v < s.n_positions; v++) {
            hop[v] = v > 0 ? draw(20) : 0;
            for (int k = MAQ_TASK_F; k <= MAQ_TASK_W; k++)
                dur[(uint32_t)k * s.n_positions + v] = draw(100);
        }
        for (uint32_t st = 0; st < p; st++) {
            const uint32_t v = s.tasks[s.stage_first[st]].position;
            assert_int_equal(s.tasks[s.stage_first[st]].kind, MAQ_TASK_F);
            begin[st] = draw(1000);
            ready[v] = begin[st] + dur[MAQ_TASK_F * s.n_positions + v];
        }
        double *played = calloc(s.n_tasks, sizeof *played), *fast = calloc(2 * (size_t)s.n_tasks, sizeof *fast);
        play(played, &s, dur, hop, begin);
        maq_schedule_eval(&makespan, fast, &s, 1, &(struct maq_task_times){.dur = dur, .hop = hop, .ready = ready});
        for (uint32_t id = 0; id < s.n_tasks; id++)
            assert_true(played[id] == fast[id]);
        free(played);
        free(fast);
        maq_arena_fini(&arena);
    }
}

/* ---- steps ---- */

static struct prediction predicted(char text[1024], const char *plan, const char *model, int gbs)
{
    snprintf(text, 1024,
             "model: {base: %s}\ncluster: 'a100-80gb:8 x 2, rail 200G'\n"
             "plan: {mbs: 1, precision: fp16, recompute: none, %s}\nworkload: {seq: 1024, gbs: %d}\n",
             model, plan, gbs);
    return predict_text(text);
}

/* No stage is at work for longer than a step, and one is for all of it; the graph ends where the last one does; each stage's time is all accounted for. */
static void check_step(const struct prediction *p, const char *text)
{
    const struct maq_job *job = maq_job_get(p->job);
    const double step = p->result->step_s;
    struct maq_train_spans spans;
    struct maq_train_graph g;
    double full = 0, last = 0, longest = 0;
    assert_int_equal(maq_train_spans(&spans, job, NULL), MAQ_OK);
    assert_int_equal(maq_train_graph(&g, job, NULL), MAQ_OK);
    double *ends = malloc(sizeof *ends * (g.graph.n_nodes + 1));
    maq_engine_static(&full, ends, &g.graph, 1, g.dur_ns);
    for (uint32_t s = 0; s < spans.n_stages; s++) {
        double begin = 1e18, end = 0, sum = 0;
        for (uint32_t i = spans.first[s]; i < spans.first[s + 1]; i++) {
            begin = fmin(begin, (double)spans.spans[i].start_ns);
            end = fmax(end, (double)spans.spans[i].end_ns);
        }
        if ((end - begin) * 1e-9 > step * (1 + 1e-9))
            fail_msg("stage %u goes from %.0f to %.0f ns, a step is %.9f s for\n%s", s, begin, end, step, text);
        longest = fmax(longest, (end - begin) * 1e-9);
        last = fmax(last, end);
        for (int k = 0; k < MAQ_BUCKET_COUNT; k++) {
            assert_true(p->result->stages[s].bucket_s[k] > -1e-9);
            sum += p->result->stages[s].bucket_s[k];
        }
        assert_true(fabs(sum / step - 1) < 1e-9);
    }
    assert_true(fabs(longest / step - 1) < 1e-9); /* of one stage a step is all of the time */
    if (fabs(full / last - 1) > 1e-9)
        fail_msg("the graph ends at %.0f ns, the last stage at %.0f ns for\n%s", full, last, text);
    free(ends);
    maq_train_graph_free(&g);
    maq_train_spans_free(&spans);
}

#define BARRIER ", zero: optim, overlap_grad_reduce: false, overlap_param_gather: false"

/* Against the same plan whose stages wait for each other. */
static void test_steps(void **unused)
{
    static const struct {
        const char *plan, *model;
        int gbs;
    } cases[] = {
        {"pp: 4, schedule: zb-h2", "llama-3-8b, num_hidden_layers: 16, vocab_size: 4096", 128},
        {"pp: 4, schedule: zb-h1", "llama-3-8b, num_hidden_layers: 16, vocab_size: 4096", 128},
        {"pp: 8, tp: 2, schedule: zb-2p", "llama-3-8b", 32},
        {"pp: 4, schedule: zb-v", "llama-3-8b, num_hidden_layers: 16", 64},
        {"pp: 2, schedule: v-half", "gpt3-5b", 32},
        {"pp: 4, schedule: zb-1p, zero: no_shard", "gpt2-xl", 64},
        {"pp: 4, tp: 4, schedule: zb-auto", "llama-3-8b", 16},
        {"pp: 16, schedule: zb-h2", "llama-3-8b", 64},
    };
    (void)unused;
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        char text[1024], plan[256];
        const char *more = strstr(cases[i].plan, "zero:") ? "" : BARRIER;
        snprintf(plan, sizeof plan, "%s%s", cases[i].plan, more);
        struct prediction waits = predicted(text, plan, cases[i].model, cases[i].gbs);
        snprintf(plan, sizeof plan, "%s%s, enable_optimizer_post_validation: true", cases[i].plan, more);
        struct prediction goes = predicted(text, plan, cases[i].model, cases[i].gbs);
        print_message("%s: %.3f ms, with a barrier %.3f ms, %+.2f %%, bubble %.2f %% and %.2f %%\n", cases[i].plan,
                      goes.result->step_s * 1e3, waits.result->step_s * 1e3,
                      100 * (goes.result->step_s / waits.result->step_s - 1), 100 * goes.result->bubble_fraction,
                      100 * waits.result->bubble_fraction);
        check_step(&goes, text);
        if (i == 0) /* F = Bi = W or nearly so, and equal stages: the barrier was all of the bubble */
            assert_true(goes.result->bubble_fraction < 1e-3 && waits.result->bubble_fraction > 0.02);
        assert_true(goes.result->step_s <= waits.result->step_s * (1 + 1e-4));
        drop(&waits);
        drop(&goes);
    }
}

static void test_refused(void **unused)
{
    static const struct {
        const char *plan, *says;
    } cases[] = {
        {"pp: 2, schedule: 1f1b, precision: fp16", "with the schedule 1f1b all stages wait for each other"},
        {"pp: 2, schedule: zb-h2, precision: bf16", "with fp16 alone"},
        {"pp: 2, schedule: zb-h2, precision: fp16, zero: optim, overlap_grad_reduce: true", "takes no overlap"},
        {"pp: 2, schedule: zb-h2, precision: fp16, zero: optim_grads_params", "no more sharding than that"},
    };
    (void)unused;
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "model: llama-3.2-1b\ncluster: 'a100-80gb:8'\nworkload: {seq: 1024, gbs: 32}\n"
                 "plan: {%s, enable_optimizer_post_validation: true}\n",
                 cases[i].plan);
        expect_refused(text, cases[i].says);
    }
    /* without a pipeline there is nobody to wait for; without sharding its default is no overlap */
    char text[1024];
    struct prediction p = predicted(text, "pp: 1, enable_optimizer_post_validation: true", "llama-3.2-1b", 32);
    drop(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_period), cmocka_unit_test(test_begins),
                                       cmocka_unit_test(test_steps), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
