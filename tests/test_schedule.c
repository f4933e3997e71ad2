/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_schedule.c - pipeline schedules: structure, memory, exact closed forms, and the evaluation against a slow
 * reference.
 *
 * The durations are whole numbers, so every comparison of times is exact.
 *
 * maq-test: long
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "effort.h"
#include "plan/schedule/schedule.h"
#include "random_draws.h"

/* ---- helpers ---- */

struct rig {
    struct maq_arena arena;
    struct maq_schedule s;
    double *dur, *hop, *port, *fb, *finish, *ready;
    uint32_t K;
};

static void *zeroed(size_t n, size_t size)
{
    void *p = calloc(n, size);
    assert_non_null(p);
    return p;
}

/* Builds; false when it is refused. */
static bool rig_open(struct rig *r, int kind, uint32_t p, uint32_t v, uint32_t m, uint32_t group, uint32_t K)
{
    char why[160];
    *r = (struct rig){.K = K};
    maq_arena_init(&r->arena, 0);
    if (maq_schedule_refuse(why, kind, p, v, m, group))
        return false;
    assert_int_equal(maq_schedule_build(&r->s, kind, p, v, m, group, &r->arena, NULL), MAQ_OK);
    size_t n = r->s.n_positions;
    r->dur = zeroed(3 * n * K, sizeof(double));
    r->hop = zeroed(n * K, sizeof(double));
    r->port = zeroed(n * K, sizeof(double));
    r->ready = zeroed(n * K, sizeof(double));
    r->fb = zeroed(n * n * K, sizeof(double));
    r->finish = zeroed(2 * (size_t)r->s.n_tasks * K, sizeof(double));
    return true;
}

static void rig_close(struct rig *r)
{
    free(r->dur);
    free(r->hop);
    free(r->port);
    free(r->ready);
    free(r->fb);
    free(r->finish);
    maq_arena_fini(&r->arena);
}

static void equal_stages(struct rig *r, double f, double b, double w)
{
    uint32_t n = r->s.n_positions;
    for (uint32_t i = 0; i < n; i++) {
        r->dur[MAQ_TASK_F * n + i] = f;
        r->dur[MAQ_TASK_B * n + i] = b;
        r->dur[MAQ_TASK_W * n + i] = w;
    }
}

static double makespan(struct rig *r)
{
    double t;
    maq_schedule_eval(&t, r->finish, &r->s, 1, &(struct maq_task_times){.dur = r->dur, .hop = r->hop});
    return t;
}

static double equal_makespan(int kind, uint32_t p, uint32_t v, uint32_t m, uint32_t group, double f, double b, double w)
{
    struct rig r;
    assert_true(rig_open(&r, kind, p, v, m, group, 1));
    equal_stages(&r, f, b, w);
    double t = makespan(&r);
    rig_close(&r);
    return t;
}

static uint64_t rng_state = 1;
static uint32_t below(uint32_t n)
{
    return draw(&rng_state, 0, n - 1);
}

static uint32_t max_inflight(const struct maq_schedule *s, uint32_t stage)
{
    uint32_t best = 0;
    for (uint32_t i = 0; i < s->n_inflight; i++)
        if (s->inflight[i].stage == stage && s->inflight[i].total > best)
            best = s->inflight[i].total;
    return best;
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Calls fn for every kind on a grid of shapes that are not refused. */
static void on_grid(void (*fn)(struct rig *r), uint32_t K)
{
    static const uint32_t stages[] = {1, 2, 3, 4, 5, 8}, batches[] = {1, 2, 3, 4, 5, 7, 8, 10, 12, 16, 17, 20};
    static const uint32_t chunks[] = {1, 2, 3}, groups[] = {0, 5, 6};
    uint32_t cases = 0;
    for (int kind = MAQ_SCHEDULE_GPIPE; kind < MAQ_SCHEDULE_COUNT; kind++)
        for (size_t i = 0; i < MAQ_COUNT(stages); i++)
            for (size_t j = 0; j < MAQ_COUNT(batches); j++)
                for (size_t c = 0; c < MAQ_COUNT(chunks); c++)
                    for (size_t g = 0; g < (kind == MAQ_SCHEDULE_INTERLEAVED ? MAQ_COUNT(groups) : 1); g++) {
                        struct rig r;
                        if (rig_open(&r, kind, stages[i], chunks[c], batches[j], groups[g], K)) {
                            fn(&r);
                            cases++;
                        }
                        rig_close(&r);
                    }
    assert_true(cases > 250);
}

/* The order of a stage as text: F<position>.<microbatch>, B whole, b input gradient only, W, F..&B.. a pair. */
static void assert_order(const struct maq_schedule *s, uint32_t stage, const char *want)
{
    char text[4096] = "";
    size_t at = 0;
    for (uint32_t id = s->stage_first[stage]; id != MAQ_NO_TASK; id = s->next_on_stage[id]) {
        const struct maq_task *t = &s->tasks[id];
        char letter = "FBWF"[t->kind];
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%c%u.%u", at ? " " : "", t->split ? 'b' : letter,
                               t->position, t->microbatch);
        if (t->kind == MAQ_TASK_FB)
            at += (size_t)snprintf(text + at, sizeof text - at, "&B%u.%u", t->b_position, t->b_microbatch);
        assert_true(at < sizeof text);
    }
    assert_string_equal(text, want);
}

/* ---- structure ---- */

struct seen {
    uint32_t *f, *b, *w; /* [microbatch * n + position] id of the task + 1 */
    uint8_t *split;
};

static void note(uint32_t *table, const struct maq_schedule *s, uint32_t position, uint32_t mb, uint32_t direction,
                 uint32_t id)
{
    uint16_t stage, chunk;
    assert_true(position < s->n_positions && mb < s->microbatches);
    maq_schedule_locate(&stage, &chunk, s->kind, s->stages, position, direction);
    assert_int_equal(stage, s->tasks[id].stage);
    assert_true(chunk < s->chunks);
    assert_int_equal(direction, s->kind == MAQ_SCHEDULE_DUALPIPE && mb >= s->microbatches / 2);
    assert_int_equal(table[(size_t)mb * s->n_positions + position], 0);
    table[(size_t)mb * s->n_positions + position] = id + 1;
}

/* What the contract says about pred[]. */
static void expect_preds(uint32_t want[2], const struct maq_schedule *s, const struct seen *seen,
                         const struct maq_task *t)
{
    size_t row = (size_t)t->microbatch * s->n_positions, b_row = (size_t)t->b_microbatch * s->n_positions;
    uint32_t end = s->n_positions - 1;
    want[0] = want[1] = MAQ_NO_TASK;
    if ((t->kind == MAQ_TASK_F || t->kind == MAQ_TASK_FB) && t->position > 0)
        want[0] = seen->f[row + t->position - 1] - 1;
    if (t->kind == MAQ_TASK_B)
        want[0] = seen->f[row + t->position] - 1;
    if (t->kind == MAQ_TASK_B && t->position < end)
        want[1] = seen->b[row + t->position + 1] - 1;
    if (t->kind == MAQ_TASK_W)
        want[0] = seen->b[row + t->position] - 1;
    if (t->kind == MAQ_TASK_FB && t->b_position < end)
        want[1] = seen->b[b_row + t->b_position + 1] - 1;
}

static void check_task(const struct maq_schedule *s, struct seen *seen, uint32_t id)
{
    const struct maq_task *t = &s->tasks[id];
    uint32_t want[2];
    expect_preds(want, s, seen, t); /* all that it needs has been seen: the order is topological */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(t->pred[i], want[i]);
        assert_true(t->pred[i] == MAQ_NO_TASK || t->pred[i] < id);
        assert_int_equal(t->hop[i], t->pred[i] != MAQ_NO_TASK && s->tasks[t->pred[i]].stage != t->stage);
    }
    assert_true(t->previous == MAQ_NO_TASK || t->previous < id);
    size_t cell = (size_t)t->microbatch * s->n_positions + t->position;
    switch ((enum maq_task_kind)t->kind) {
    case MAQ_TASK_F:
        note(seen->f, s, t->position, t->microbatch, t->direction, id);
        break;
    case MAQ_TASK_B:
        assert_true(seen->f[cell]);
        seen->split[cell] = t->split;
        note(seen->b, s, t->position, t->microbatch, t->direction, id);
        break;
    case MAQ_TASK_W:
        assert_true(seen->b[cell] && seen->split[cell]);
        note(seen->w, s, t->position, t->microbatch, t->direction, id);
        break;
    case MAQ_TASK_FB:
        assert_true(seen->f[(size_t)t->b_microbatch * s->n_positions + t->b_position]);
        note(seen->f, s, t->position, t->microbatch, t->direction, id);
        note(seen->b, s, t->b_position, t->b_microbatch, t->b_direction, id);
        break;
    case MAQ_TASK_KIND_COUNT:
        fail();
    }
}

static void check_structure(struct rig *r)
{
    const struct maq_schedule *s = &r->s;
    size_t cells = (size_t)s->n_positions * s->microbatches;
    struct seen seen = {zeroed(cells, 4), zeroed(cells, 4), zeroed(cells, 4), zeroed(cells, 1)};
    for (uint32_t id = 0; id < s->n_tasks; id++)
        check_task(s, &seen, id);
    for (size_t i = 0; i < cells; i++) {
        assert_true(seen.f[i] && seen.b[i]);
        assert_int_equal(seen.w[i] != 0, seen.split[i]);
        if (!s->split_backward)
            assert_int_equal(seen.split[i], 0);
    }
    uint32_t on_stages = 0;
    for (uint32_t st = 0; st < s->stages; st++) {
        uint32_t before = MAQ_NO_TASK;
        for (uint32_t id = s->stage_first[st]; id != MAQ_NO_TASK; id = s->next_on_stage[id]) {
            assert_int_equal(s->tasks[id].stage, st);
            assert_int_equal(s->tasks[id].previous, before);
            before = id;
            on_stages++;
        }
    }
    assert_int_equal(on_stages, s->n_tasks);
    free(seen.f);
    free(seen.b);
    free(seen.w);
    free(seen.split);
}

static void test_structure(void **state)
{
    (void)state;
    on_grid(check_structure, 1);
}

/* Orders that were written down by hand from the sources. */
static void test_orders(void **state)
{
    (void)state;
    struct rig r;
    assert_true(rig_open(&r, MAQ_SCHEDULE_GPIPE, 2, 1, 3, 0, 1));
    assert_order(&r.s, 0, "F0.0 F0.1 F0.2 B0.0 B0.1 B0.2");
    rig_close(&r);
    assert_true(rig_open(&r, MAQ_SCHEDULE_1F1B, 3, 1, 4, 0, 1));
    assert_order(&r.s, 0, "F0.0 F0.1 F0.2 B0.0 F0.3 B0.1 B0.2 B0.3");
    assert_order(&r.s, 2, "F2.0 B2.0 F2.1 B2.1 F2.2 B2.2 F2.3 B2.3");
    rig_close(&r);
    /* Megatron-LM's table for PP2 VP2 N3 M5; warm-up of stage 0: 2 + 3, of stage 1: 3 */
    assert_true(rig_open(&r, MAQ_SCHEDULE_INTERLEAVED, 2, 2, 5, 3, 1));
    assert_order(&r.s, 0,
                 "F0.0 F0.1 F0.2 F2.0 F2.1 F2.2 B2.0 F0.3 B2.1 F0.4 B2.2 F2.3 B0.0 F2.4 B0.1 B0.2 B2.3 B2.4 B0.3 B0.4");
    assert_order(&r.s, 1,
                 "F1.0 F1.1 F1.2 F3.0 B3.0 F3.1 B3.1 F3.2 B3.2 F1.3 B1.0 F1.4 B1.1 F3.3 B1.2 F3.4 B3.3 B3.4 B1.3 B1.4");
    rig_close(&r);
    assert_true(rig_open(&r, MAQ_SCHEDULE_ZB_H1, 2, 1, 3, 0, 1));
    assert_order(&r.s, 0, "F0.0 F0.1 b0.0 W0.0 F0.2 b0.1 W0.1 b0.2 W0.2");
    assert_order(&r.s, 1, "F1.0 b1.0 F1.1 b1.1 W1.0 F1.2 b1.2 W1.1 W1.2");
    rig_close(&r);
    assert_true(rig_open(&r, MAQ_SCHEDULE_ZB_H2, 2, 1, 4, 0, 1));
    assert_order(&r.s, 0, "F0.0 F0.1 F0.2 b0.0 W0.0 F0.3 b0.1 W0.1 b0.2 W0.2 b0.3 W0.3");
    assert_order(&r.s, 1, "F1.0 b1.0 F1.1 b1.1 F1.2 b1.2 W1.0 F1.3 b1.3 W1.1 W1.2 W1.3");
    rig_close(&r);
    /* PyTorch 2.9's pipeline_order of two stages with two chunks each */
    assert_true(rig_open(&r, MAQ_SCHEDULE_INTERLEAVED_ZB, 2, 2, 2, 0, 1));
    assert_order(&r.s, 0, "F0.0 F0.1 F2.0 F2.1 b2.0 W2.0 b2.1 W2.1 b0.0 W0.0 b0.1 W0.1");
    assert_order(&r.s, 1, "F1.0 F1.1 F3.0 b3.0 F3.1 b3.1 W3.0 b1.0 W3.1 b1.1 W1.0 W1.1");
    rig_close(&r);
    assert_true(rig_open(&r, MAQ_SCHEDULE_DUALPIPE, 2, 1, 4, 0, 1));
    assert_order(&r.s, 0, "F0.0 F1.2 F0.1 B1.2 F1.3&B0.0 B1.3 b0.1 W0.1");
    assert_order(&r.s, 1, "F0.2 F1.0 F0.3 B1.0 F1.1&B0.2 B1.1 b0.3 W0.3");
    rig_close(&r);
    assert_true(rig_open(&r, MAQ_SCHEDULE_DUALPIPE_V, 2, 2, 4, 0, 1));
    assert_order(&r.s, 0,
                 "F0.0 F0.1 F0.2 F3.0 b3.0 W3.0 F3.1 F0.3&B3.1 F3.2&B0.0 B3.2 F3.3&B0.1 B3.3 b0.2 W0.2 b0.3 "
                 "W0.3");
    assert_order(&r.s, 1, "F1.0 F2.0 F1.1 F2.1 F1.2 B2.0 F2.2&B1.0 F1.3&B2.1 F2.3&B1.1 B2.2 B1.2 b2.3 b1.3 W2.3 W1.3");
    rig_close(&r);
}

/* ---- memory ---- */

static void check_memory(struct rig *r)
{
    const struct maq_schedule *s = &r->s;
    uint32_t p = s->stages, m = s->microbatches, v = s->chunks;
    for (uint32_t st = 0; st < p; st++) {
        uint32_t got = max_inflight(s, st);
        switch ((enum maq_schedule_kind)s->kind) {
        case MAQ_SCHEDULE_GPIPE:
            assert_int_equal(got, m);
            break;
        case MAQ_SCHEDULE_1F1B:
            assert_int_equal(got, min_u32(p - st, m));
            break;
        case MAQ_SCHEDULE_INTERLEAVED:
            assert_int_equal(got, min_u32(2 * (p - 1 - st) + (v - 1) * s->group + 1, m * v));
            break;
        case MAQ_SCHEDULE_ZB_H1:
            assert_int_equal(got, min_u32(p, m));
            break;
        case MAQ_SCHEDULE_ZB_H2:
            assert_int_equal(got, min_u32(2 * p - 1, m));
            break;
        case MAQ_SCHEDULE_ZB_1P:
            assert_true(got <= min_u32(p, m));
            break;
        case MAQ_SCHEDULE_ZB_2P:
            assert_true(got <= min_u32(2 * p, m));
            break;
        case MAQ_SCHEDULE_ZB_AUTO:
            assert_true(got <= m);
            break;
        case MAQ_SCHEDULE_INTERLEAVED_ZB:
            assert_int_equal(got, min_u32((v - 1) * s->group + p, m * v));
            break;
        case MAQ_SCHEDULE_ZB_V:
            assert_true(got <= min_u32(2 * p, 2 * m));
            if (st == 0)
                assert_int_equal(got, min_u32(2 * p, 2 * m));
            break;
        case MAQ_SCHEDULE_V_MIN: /* of 2p chunks of 1F1B a third, with at most two besides */
            assert_true(got <= (2 * p + 2) / 3 + 2);
            break;
        case MAQ_SCHEDULE_V_HALF: /* a half */
            assert_true(got <= p + 2);
            break;
        case MAQ_SCHEDULE_DUALPIPE:
            assert_int_equal(got, p + 1);
            break;
        case MAQ_SCHEDULE_DUALPIPE_V:
            assert_int_equal(got, 2 * p + 1);
            break;
        case MAQ_SCHEDULE_AUTO:
        case MAQ_SCHEDULE_COUNT:
            fail();
        }
    }
    for (uint32_t i = 0; i < s->n_inflight; i++) { /* sums, grouping, and nothing dominated */
        const struct maq_inflight *a = &s->inflight[i];
        uint32_t total = 0;
        for (uint32_t c = 0; c < v; c++)
            total += a->chunk[c];
        assert_int_equal(total, a->total);
        if (v == 2)
            assert_true(a->live[0] == a->chunk[0] && a->live[1] == a->chunk[1]);
        assert_true(i == 0 || s->inflight[i - 1].stage <= a->stage);
        for (uint32_t j = 0; j < s->n_inflight; j++) {
            bool covered = j != i && s->inflight[j].stage == a->stage;
            for (uint32_t c = 0; c < v && covered; c++)
                covered = s->inflight[j].chunk[c] >= a->chunk[c];
            assert_false(covered);
        }
    }
}

static void test_memory(void **state)
{
    (void)state;
    on_grid(check_memory, 1);
}

/* ---- closed forms ---- */

static void test_flush_makespan(void **state)
{
    (void)state;
    for (uint32_t p = 1; p <= 16; p++)
        for (uint32_t m = 1; m <= 40; m += 3)
            for (int kind = MAQ_SCHEDULE_GPIPE; kind <= MAQ_SCHEDULE_1F1B; kind++)
                assert_true(equal_makespan(kind, p, 1, m, 0, 101, 211, 0) == (m + p - 1) * 312.0);
}

static void test_interleaved_makespan(void **state)
{
    (void)state;
    for (uint32_t p = 1; p <= 8; p++)
        for (uint32_t v = 2; v <= 5; v++)
            for (uint32_t groups = 1; groups <= 5; groups++) {
                double t = equal_makespan(MAQ_SCHEDULE_INTERLEAVED, p, v, groups * p, 0, 101, 211, 0);
                assert_true(t == groups * p * v * 312.0 + (p - 1) * 312.0);
            }
    /* larger groups, and a last group that is not full, cost no more as long as it holds p */
    for (uint32_t m = 4; m <= 24; m++)
        for (uint32_t g = 4; g <= m; g++)
            if (m % g == 0 || m % g >= 4)
                assert_true(equal_makespan(MAQ_SCHEDULE_INTERLEAVED, 4, 3, m, g, 101, 211, 0) == (m * 3 + 3) * 312.0);
}

static void test_zb_h1_makespan(void **state)
{
    (void)state;
    for (uint32_t p = 1; p <= 16; p++)
        for (uint32_t m = p; m <= 4 * p; m += 5)
            for (int i = 0; i < 20; i++) {
                double f = 1 + below(50), b = 1 + below(50), w = 1 + below(50);
                double gain = f < b ? f : b;
                gain = w < gain ? w : gain;
                double t = equal_makespan(MAQ_SCHEDULE_ZB_H1, p, 1, m, 0, f, b, w);
                assert_true(t == m * (f + b + w) + (p - 1) * (f + b - gain));
            }
}

/* What a stage waits for between its first task and its last. */
static double waits(const struct rig *r, uint32_t stage)
{
    const struct maq_schedule *s = &r->s;
    double busy = 0, n = s->n_positions;
    for (uint32_t id = s->stage_first[stage]; id != MAQ_NO_TASK; id = s->next_on_stage[id])
        busy += r->dur[(size_t)(s->tasks[id].kind * n) + s->tasks[id].position];
    uint32_t first = s->stage_first[stage];
    return r->finish[s->stage_last[stage]] - (r->finish[first] - r->dur[s->tasks[first].position]) - busy;
}

/* Stage s waits for (p-1-s) max(0, B-F, F+B-2W): for nothing when all are equal, and then the last stage ends as early as it can. */
static void test_zb_h2(void **state)
{
    (void)state;
    for (uint32_t p = 1; p <= 12; p++)
        for (uint32_t m = 2 * p - 1; m <= 5 * p; m += 4)
            for (int i = 0; i < 20; i++) {
                double f = 1 + below(50), b = i ? 1 + below(50) : f, w = i ? 1 + below(50) : f;
                double wait = f + b - 2 * w > b - f ? f + b - 2 * w : b - f;
                wait = wait > 0 ? wait : 0;
                struct rig r;
                assert_true(rig_open(&r, MAQ_SCHEDULE_ZB_H2, p, 1, m, 0, 1));
                equal_stages(&r, f, b, w);
                assert_true(makespan(&r) == m * (f + b + w) + (p - 1) * (f > wait ? f : wait));
                for (uint32_t s = 0; s < p; s++)
                    assert_true(waits(&r, s) == (p - 1 - s) * wait);
                rig_close(&r);
            }
}

/* ZB-H1's bubble, of chunks: every group has as many microbatches as stages, or some more. */
static void test_interleaved_zb_makespan(void **state)
{
    (void)state;
    for (uint32_t p = 1; p <= 8; p++)
        for (uint32_t v = 2; v <= 4; v++)
            for (uint32_t m = p; m <= 4 * p; m++)
                for (int i = 0; i < 5; i++) {
                    double f = 1 + below(50), b = 1 + below(50), w = 1 + below(50), gain = f < b ? f : b;
                    struct rig r;
                    gain = w < gain ? w : gain;
                    if (rig_open(&r, MAQ_SCHEDULE_INTERLEAVED_ZB, p, v, m, 0, 1)) {
                        equal_stages(&r, f, b, w);
                        assert_true(makespan(&r) == m * v * (f + b + w) + (p - 1) * (f + b - gain));
                    }
                    rig_close(&r);
                }
}

/* 6m of work, a bubble of p-1: the fraction (p-1)/(p-1+6m). */
static void test_zb_v_makespan(void **state)
{
    (void)state;
    for (uint32_t p = 1; p <= 20; p++)
        for (uint32_t m = 2 * p - 1; m <= 5 * p; m++)
            assert_true(equal_makespan(MAQ_SCHEDULE_ZB_V, p, 2, m, 0, 1, 1, 1) == 6.0 * m + p - 1);
    static const uint32_t known[][2] = {{2, 4}, {4, 8}, {8, 16}, {16, 32}, {16, 144}, {32, 64}, {64, 150}};
    for (size_t i = 0; i < MAQ_COUNT(known); i++)
        assert_true(equal_makespan(MAQ_SCHEDULE_ZB_V, known[i][0], 2, known[i][1], 0, 7, 7, 7) ==
                    7.0 * (6 * known[i][1] + known[i][0] - 1));
}

/* From the first task of a stage to its last, of the stage where that is longest, less its 6m of work. */
static double longest_wait(int kind, uint32_t p, uint32_t m)
{
    struct rig r;
    double most = 0;
    assert_true(rig_open(&r, kind, p, 2, m, 0, 1));
    equal_stages(&r, 1, 1, 1);
    (void)makespan(&r);
    for (uint32_t s = 0; s < p; s++) {
        double span = r.finish[r.s.stage_last[s]] - r.finish[r.s.stage_first[s]] + 1;
        most = span > most ? span : most;
    }
    rig_close(&r);
    return most - 6.0 * m;
}

/*
 * F = B = W: what the authors' program answers (sail-sg/zero-bubble-pipeline-parallelism 39f2c186, zbv_greedy.py; its orders of 18 pairs of p and m were
 * compared, task by task): 4p-5 of V-Min, 4p-7 where 3 divides p; 3p-7 of V-Half for even p. 1F1B waits for 6(p-1).
 */
static void test_controllable_memory(void **state)
{
    (void)state;
    for (uint32_t p = 4; p <= 16; p++)
        for (uint32_t m = 2 * p; m <= 5 * p; m += p) {
            assert_true(longest_wait(MAQ_SCHEDULE_V_MIN, p, m) == (p % 3 == 0 ? 4.0 * p - 7 : 4.0 * p - 5));
            if (p % 2 == 0)
                assert_true(longest_wait(MAQ_SCHEDULE_V_HALF, p, m) == 3.0 * p - 7);
        }
    for (uint32_t p = 1; p <= 64; p += p < 24 ? 1 : 8) /* any number of microbatches has its repetitions */
        for (uint32_t m = 1; m <= 4 * p; m = m < 4 ? m + 1 : 2 * m)
            for (int kind = MAQ_SCHEDULE_V_MIN; kind <= MAQ_SCHEDULE_V_HALF; kind++) {
                struct rig r;
                assert_true(rig_open(&r, kind, p, 2, m, 0, 1));
                check_memory(&r);
                rig_close(&r);
            }
}

/* Idle time of a device: the makespan less what it runs. */
static double idle(struct rig *r, uint32_t stage, double pair, double f, double b, double w)
{
    double t, busy = 0;
    size_t n = r->s.n_positions;
    for (size_t i = 0; i < n * n; i++)
        r->fb[i] = pair;
    equal_stages(r, f, b, w);
    maq_schedule_eval(&t, r->finish, &r->s, 1, &(struct maq_task_times){.dur = r->dur, .fb = r->fb, .hop = r->hop});
    for (uint32_t id = r->s.stage_first[stage]; id != MAQ_NO_TASK; id = r->s.next_on_stage[id]) {
        const struct maq_task *k = &r->s.tasks[id];
        busy += k->kind == MAQ_TASK_F    ? f
                : k->kind == MAQ_TASK_W  ? w
                : k->kind == MAQ_TASK_FB ? pair
                : k->split               ? b
                                         : b + w;
    }
    return t - busy;
}

/* The bubble that DeepSeek states, (H-1)(F&B + B - 3W) with B whole, on the middle device; F = input gradient >= W. */
static void test_dualpipe_bubble(void **state)
{
    (void)state;
    for (uint32_t half = 1; half <= 8; half++)
        for (uint32_t extra = 0; extra <= 12; extra += 4)
            for (int i = 0; i < 40; i++) {
                double f = 1 + below(60), w = 1 + below((uint32_t)f), pair = f + w + below((uint32_t)f + 1);
                double want = (half - 1) * (pair + (f + w) - 3 * w);
                struct rig r;
                assert_true(rig_open(&r, MAQ_SCHEDULE_DUALPIPE, 2 * half, 1, 4 * half + extra, 0, 1));
                assert_true(idle(&r, half - 1, pair, f, f, w) == want && idle(&r, half, pair, f, f, w) == want);
                if (pair == f + f + w) /* no gain from the overlap: then all devices do the same amount of work */
                    assert_true(idle(&r, 0, pair, f, f, w) == want);
                rig_close(&r);
                assert_true(rig_open(&r, MAQ_SCHEDULE_DUALPIPE_V, half, 2, 2 * half + extra, 0, 1));
                assert_true(idle(&r, half - 1, pair, f, f, w) == want);
                rig_close(&r);
            }
}

/* One slow stage k, factor s: T = (p-1)(tf+tb) + m s (tf+tb) - (p-1-k) min((s-1)(tf+tb), tb). */
static void test_slow_stage(void **state)
{
    (void)state;
    static const uint32_t stages[] = {4, 8, 16};
    static const double tenths[] = {11, 13, 20};
    for (size_t i = 0; i < MAQ_COUNT(stages); i++)
        for (uint32_t p = stages[i], m = p; m <= 64; m++)
            for (size_t j = 0; j < MAQ_COUNT(tenths); j++)
                for (uint32_t k = 0; k < p; k++) {
                    struct rig r;
                    assert_true(rig_open(&r, MAQ_SCHEDULE_1F1B, p, 1, m, 0, 1));
                    double tf = 1000, tb = 2000, s = tenths[j];
                    equal_stages(&r, tf, tb, 0);
                    r.dur[MAQ_TASK_F * p + k] = tf * s / 10;
                    r.dur[MAQ_TASK_B * p + k] = tb * s / 10;
                    double saved = (s - 10) * (tf + tb) / 10 < tb ? (s - 10) * (tf + tb) / 10 : tb;
                    assert_true(makespan(&r) == (p - 1) * (tf + tb) + m * s * (tf + tb) / 10 - (p - 1 - k) * saved);
                    rig_close(&r);
                }
}

/* ---- evaluation ---- */

static double duration(const struct rig *r, const struct maq_task *t, uint32_t k, bool use_fb)
{
    uint32_t n = r->s.n_positions, K = r->K;
    double *f = &r->dur[MAQ_TASK_F * n * K], *b = &r->dur[MAQ_TASK_B * n * K], *w = &r->dur[MAQ_TASK_W * n * K];
    switch ((enum maq_task_kind)t->kind) {
    case MAQ_TASK_F:
        return f[t->position * K + k];
    case MAQ_TASK_B:
        return b[t->position * K + k] + (r->s.split_backward && !t->split ? w[t->position * K + k] : 0);
    case MAQ_TASK_W:
        return w[t->position * K + k];
    case MAQ_TASK_FB:
        return use_fb ? r->fb[(t->position * n + t->b_position) * K + k]
                      : f[t->position * K + k] + b[t->b_position * K + k] + w[t->b_position * K + k];
    case MAQ_TASK_KIND_COUNT:
        break;
    }
    fail();
    return 0;
}

/* The border behind which a task on another stage waits for this one, which its stage stalls for; 0 = none. */
static uint32_t border_of(const struct maq_schedule *s, uint32_t id)
{
    uint32_t border = 0;
    for (uint32_t t = id + 1; t < s->n_tasks; t++)
        for (int i = 0; i < 2; i++) {
            const struct maq_task *to = &s->tasks[t];
            bool forward = to->kind == MAQ_TASK_F || (to->kind == MAQ_TASK_FB && i == 0);
            if (to->pred[i] != id || !to->hop[i])
                continue;
            if (forward) /* that of activations goes before that of gradients */
                return to->position;
            border = 1u + (to->kind == MAQ_TASK_FB ? to->b_position : to->position);
        }
    return border;
}

/* No later task completes gradients of the same position and direction; UINT32_MAX, or the position. */
static uint32_t last_of(const struct maq_schedule *s, uint32_t id)
{
    uint32_t mine = UINT32_MAX;
    for (uint32_t t = s->n_tasks; t-- > id;) { /* down to this one, which says whose it completes */
        const struct maq_task *task = &s->tasks[id], *other = &s->tasks[t];
        bool pair = task->kind == MAQ_TASK_FB, other_pair = other->kind == MAQ_TASK_FB;
        if (task->kind == MAQ_TASK_F || (task->kind == MAQ_TASK_B && s->split_backward && task->split))
            return UINT32_MAX;
        mine = pair ? task->b_position : task->position;
        if (t == id || other->kind == MAQ_TASK_F || (other->kind == MAQ_TASK_B && s->split_backward && other->split))
            continue;
        if ((other_pair ? other->b_position : other->position) == mine &&
            (other_pair ? other->b_direction : other->direction) == (pair ? task->b_direction : task->direction))
            return UINT32_MAX;
    }
    return mine;
}

/* When what a task sends sets out: not before what its stage has sent last is through the port. */
static double sets_out(const double *started, const double *finish, const struct rig *r, uint32_t k, uint32_t id,
                       const uint32_t *border)
{
    uint32_t before = r->s.tasks[id].previous;
    if (border[id] == 0 || r->port[border[id] * r->K + k] == 0)
        return finish[id];
    while (before != MAQ_NO_TASK && (border[before] == 0 || r->port[border[before] * r->K + k] == 0))
        before = r->s.tasks[before].previous;
    double through = before == MAQ_NO_TASK ? 0 : started[before] + r->port[border[before] * r->K + k];
    return through > finish[id] ? through : finish[id];
}

/* Lane k from the public tasks alone; `started`: [n_tasks] scratch where transfers hold ports, else NULL. */
static double reference(double *finish, const struct rig *r, uint32_t k, bool use_fb, const double *stall,
                        const uint32_t *border, const uint32_t *last, const double *ready, const double *late,
                        double *started)
{
    bool begun[2 * MAQ_MAX_STAGES] = {false};
    const struct maq_schedule *s = &r->s;
    double end = 0;
    for (uint32_t id = 0; id < s->n_tasks; id++) {
        const struct maq_task *t = &s->tasks[id];
        double start = 0;
        if (t->previous != MAQ_NO_TASK)
            start = finish[t->previous] + (border[t->previous] ? stall[border[t->previous] * r->K + k] : 0);
        for (int i = 0; i < 2; i++) {
            if (t->pred[i] == MAQ_NO_TASK)
                continue;
            bool forward = t->kind == MAQ_TASK_F || (t->kind == MAQ_TASK_FB && i == 0);
            uint32_t v = forward ? t->position : 1u + (t->kind == MAQ_TASK_FB ? t->b_position : t->position);
            double from = started && t->hop[i] ? started[t->pred[i]] : finish[t->pred[i]];
            double at = from + (t->hop[i] ? r->hop[v * r->K + k] : 0);
            start = at > start ? at : start;
        }
        finish[id] = start + duration(r, t, k, use_fb);
        if (t->kind == MAQ_TASK_F && ready && !begun[t->direction * s->n_positions + t->position]) {
            double at = ready[t->position * r->K + k];
            finish[id] = at > finish[id] ? at : finish[id];
            begun[t->direction * s->n_positions + t->position] = true;
        }
        if (late && last[id] != UINT32_MAX)
            finish[id] += late[last[id] * r->K + k];
        if (started)
            started[id] = sets_out(started, finish, r, k, id, border);
        end = finish[id] > end ? finish[id] : end;
    }
    return end;
}

static void randomize(struct rig *r)
{
    size_t n = r->s.n_positions;
    for (size_t i = 0; i < 3 * n * r->K; i++)
        r->dur[i] = below(1000);
    for (size_t i = 0; i < n * n * r->K; i++)
        r->fb[i] = below(2000);
    for (size_t i = 0; i < n * r->K; i++) {
        r->hop[i] = 100 + below(200);
        r->port[i] = below(2) > 0 ? below((uint32_t)r->hop[i] + 1) : 0;
        r->ready[i] = below(20000);
    }
}

/* Those that complete gradients are listed by stage, in the order in which the stage runs them. */
static void check_grads_list(const struct maq_schedule *s, const uint32_t *last)
{
    uint32_t n = 0;
    for (uint32_t stage = 0; stage < s->stages; stage++) {
        assert_int_equal(s->grads_first[stage], n);
        for (uint32_t id = s->stage_first[stage]; id != MAQ_NO_TASK; id = s->next_on_stage[id])
            if (last[id] != UINT32_MAX)
                assert_int_equal(s->grads[n++], id);
    }
    assert_int_equal(s->grads_first[s->stages], n);
}

static void check_lanes(struct rig *r)
{
    const struct maq_schedule *s = &r->s;
    double *want = zeroed(s->n_tasks, sizeof *want), *span = zeroed(r->K, sizeof *span);
    size_t n = (size_t)s->n_positions * r->K;
    double *stall = zeroed(n, sizeof *stall), *started = zeroed(s->n_tasks, sizeof *started);
    double *late = zeroed(n, sizeof *late);
    uint32_t *border = zeroed(s->n_tasks, sizeof *border), *last = zeroed(s->n_tasks, sizeof *last);
    for (uint32_t id = 0; id < s->n_tasks; id++) {
        border[id] = border_of(s, id);
        last[id] = last_of(s, id);
        assert_int_equal(border[id], maq_task_sends(s, &s->tasks[id]));
        assert_true((last[id] != UINT32_MAX) == maq_task_is_last(s, id));
    }
    check_grads_list(s, last);
    for (int round = 0; round < 6; round++) {
        bool use_fb = round & 1, stalls = round == 2 || round == 3, ports = round > 3;
        randomize(r);
        for (size_t i = 0; i < n; i++)
            stall[i] = stalls ? below(100) : 0;
        for (size_t i = 0; i < n; i++)
            late[i] = below(500);
        const struct maq_task_times times = {.dur = r->dur,
                                             .fb = use_fb ? r->fb : NULL,
                                             .hop = r->hop,
                                             .stall = stalls ? stall : NULL,
                                             .port = ports ? r->port : NULL,
                                             .ready = round == 0 ? NULL : r->ready,
                                             .late = round == 1 ? NULL : late};
        maq_schedule_eval(span, r->finish, s, r->K, &times);
        for (uint32_t k = 0; k < r->K; k++) {
            double end =
                reference(want, r, k, use_fb, stall, border, last, times.ready, times.late, ports ? started : NULL);
            assert_true(end == span[k]);
            for (uint32_t id = 0; id < s->n_tasks; id++)
                assert_true(want[id] == r->finish[(size_t)id * r->K + k]);
        }
    }
    free(want);
    free(span);
    free(stall);
    free(started);
    free(late);
    free(border);
    free(last);
}

static void test_lanes(void **state)
{
    (void)state;
    static const uint32_t lanes[] = {3, 1, 4, 8, 13};
    for (size_t i = 0; i < (SANITIZED ? 1 : MAQ_COUNT(lanes)); i++)
        on_grid(check_lanes, lanes[i]);
}

/* Never below the work of a stage, nor below one microbatch's way there and back. */
static void check_bounds(struct rig *r)
{
    const struct maq_schedule *s = &r->s;
    uint32_t n = s->n_positions;
    randomize(r);
    double t = makespan(r), path = 0;
    for (uint32_t v = 0; v < n; v++) {
        uint16_t here, before, chunk;
        path += r->dur[MAQ_TASK_F * n + v] + r->dur[MAQ_TASK_B * n + v];
        maq_schedule_locate(&here, &chunk, s->kind, s->stages, v, 0);
        maq_schedule_locate(&before, &chunk, s->kind, s->stages, v > 0 ? v - 1 : 0, 0);
        path += here != before ? 2 * r->hop[v] : 0;
    }
    assert_true(t >= path);
    for (uint32_t st = 0; st < s->stages; st++) {
        double work = 0;
        for (uint32_t id = s->stage_first[st]; id != MAQ_NO_TASK; id = s->next_on_stage[id])
            work += duration(r, &s->tasks[id], 0, false);
        assert_true(t >= work);
    }
    /* more time anywhere never makes it shorter */
    for (int i = 0; i < 12; i++) {
        if (below(4) == 0)
            r->hop[below(n)] += below(300);
        else
            r->dur[below(3 * n)] += below(300);
        double longer = makespan(r);
        assert_true(longer >= t);
        t = longer;
    }
    double stalled, stall[MAQ_MAX_STAGES];
    for (uint32_t v = 0; v < s->n_positions; v++)
        stall[v] = 100;
    maq_schedule_eval(&stalled, r->finish, s, 1,
                      &(struct maq_task_times){.dur = r->dur, .hop = r->hop, .stall = stall});
    assert_true(stalled >= t);
}

static void test_bounds(void **state)
{
    (void)state;
    on_grid(check_bounds, 1);
}

/* A blocking send: with hop = stall = h, each transfer delays the sender as well. Two stages, by hand. */
static void test_stall(void **state)
{
    (void)state;
    struct rig r;
    double t, stall[2] = {0, 5};
    assert_true(rig_open(&r, MAQ_SCHEDULE_1F1B, 2, 1, 2, 0, 1));
    equal_stages(&r, 10, 20, 0);
    r.hop[1] = 5;
    /* stage 0: F 0-10, F 15-25; stage 1: F 15-25, B 25-45, F 50-60, B 60-80; stage 0: B 50-70, B 85-105 */
    maq_schedule_eval(&t, r.finish, &r.s, 1, &(struct maq_task_times){.dur = r.dur, .hop = r.hop, .stall = stall});
    assert_true(t == 105);
    /* overlapped: F 0-10 10-20; F 15-25, B 25-45, F 45-55, B 55-75; B 50-70, B 80-100 */
    maq_schedule_eval(&t, r.finish, &r.s, 1, &(struct maq_task_times){.dur = r.dur, .hop = r.hop});
    assert_true(t == 100);
    rig_close(&r);
}

/* ---- what is refused, and limits ---- */

static void refused(int kind, uint32_t p, uint32_t v, uint32_t m, uint32_t g, const char *want)
{
    char why[160];
    const char *got = maq_schedule_refuse(why, kind, p, v, m, g);
    assert_int_equal(maq_schedule_refuse(NULL, kind, p, v, m, g) != NULL, want != NULL); /* the sentence is optional */
    if (!want) {
        assert_null(got);
        return;
    }
    assert_non_null(got);
    assert_string_equal(got, want);
    struct maq_arena arena;
    struct maq_schedule s = {.kind = 42};
    maq_arena_init(&arena, 0);
    assert_int_equal(maq_schedule_build(&s, kind, p, v, m, g, &arena, NULL), MAQ_BAD_INPUT);
    assert_int_equal(s.kind, 42);
    maq_arena_fini(&arena);
}

static void test_refuse(void **state)
{
    (void)state;
    refused(99, 2, 1, 4, 0, "there is no schedule number 99");
    refused(MAQ_SCHEDULE_1F1B, 0, 1, 4, 0, "1f1b needs at least one stage, one model chunk and one microbatch");
    refused(MAQ_SCHEDULE_AUTO, 4, 1, 0, 0, "1f1b needs at least one stage, one model chunk and one microbatch");
    refused(MAQ_SCHEDULE_1F1B, 4, 2, 8, 0, "1f1b has one model chunk per stage, not 2");
    refused(MAQ_SCHEDULE_ZB_V, 4, 1, 8, 0, "zb-v has 2 model chunks per stage, not 1");
    refused(MAQ_SCHEDULE_DUALPIPE, 4, 3, 8, 0, "dualpipe has 2 model chunks per stage, not 3");
    refused(MAQ_SCHEDULE_1F1B, 1025, 1, 1, 0, "1025 stages x 1 model chunks are over the limit of 1024 virtual stages");
    refused(MAQ_SCHEDULE_INTERLEAVED, UINT32_MAX, UINT32_MAX, 1, 0,
            "4294967295 stages x 4294967295 model chunks are over the limit of 1024 virtual stages");
    refused(MAQ_SCHEDULE_GPIPE, 1, 1, 65536, 0,
            "gpipe holds the activations of all microbatches at once; 65536 are over its limit of 65535");
    refused(MAQ_SCHEDULE_INTERLEAVED, 4, 1, 8, 0, "interleaved needs at least 2 model chunks per stage, not 1");
    refused(MAQ_SCHEDULE_INTERLEAVED, 4, 2, 3, 0,
            "interleaved needs at least as many microbatches as stages: 4, not 3");
    refused(MAQ_SCHEDULE_AUTO, 4, 2, 8, 3,
            "interleaved needs a microbatch group of 4 (the stages) to 8 (all microbatches), not 3");
    refused(MAQ_SCHEDULE_INTERLEAVED, 4, 2, 8, 9,
            "interleaved needs a microbatch group of 4 (the stages) to 8 (all microbatches), not 9");
    refused(
        MAQ_SCHEDULE_INTERLEAVED, 4, 2, 10, 0,
        "10 microbatches in groups of 4 leave a last group of 2: interleaved needs none or at least 4 (the stages)");
    refused(MAQ_SCHEDULE_INTERLEAVED, 4, 2, 10, 6, NULL);
    refused(MAQ_SCHEDULE_INTERLEAVED, 4, 2, 10, 10, NULL);
    refused(MAQ_SCHEDULE_INTERLEAVED_ZB, 4, 1, 8, 0, "interleaved-zb needs at least 2 model chunks per stage, not 1");
    refused(MAQ_SCHEDULE_INTERLEAVED_ZB, 4, 2, 9, 0,
            "interleaved-zb deals 9 microbatches to 2 rounds (one per 4 stages), and they do not go evenly");
    refused(MAQ_SCHEDULE_INTERLEAVED_ZB, 4, 2, 10, 0, NULL);
    refused(MAQ_SCHEDULE_INTERLEAVED_ZB, 4, 2, 3, 0, NULL);
    refused(MAQ_SCHEDULE_DUALPIPE, 5, 1, 20, 0, "dualpipe needs an even number of stages, not 5");
    refused(MAQ_SCHEDULE_DUALPIPE, 4, 1, 9, 0, "dualpipe needs an even number of microbatches, not 9");
    refused(MAQ_SCHEDULE_DUALPIPE, 4, 1, 6, 0, "dualpipe needs at least 8 microbatches (2 x 4 stages), not 6");
    refused(MAQ_SCHEDULE_DUALPIPE, 4, 2, 8, 0, NULL);
    refused(MAQ_SCHEDULE_DUALPIPE_V, 4, 2, 7, 0, "dualpipe-v needs at least 8 microbatches (2 x 4 stages), not 7");
    refused(MAQ_SCHEDULE_DUALPIPE_V, 4, 2, 9, 0, NULL);
}

static void test_limits(void **state)
{
    (void)state;
    struct maq_arena arena;
    struct maq_schedule s = {.kind = 42};
    struct maq_diag *diag = maq_diag_new();
    assert_non_null(diag);
    maq_arena_init(&arena, 0);
    assert_int_equal(maq_schedule_build(&s, MAQ_SCHEDULE_1F1B, 1024, 1, 100000, 0, &arena, diag), MAQ_LIMIT);
    assert_int_equal(maq_diag_errors(diag), 1);
    struct maq_str msg = maq_diag_at(diag, 0)->msg;
    static const char want[] =
        "a pipeline of 1024 virtual stages and 100000 microbatches has 204800000 tasks; the limit is 33554432";
    assert_int_equal(msg.len, sizeof want - 1);
    assert_memory_equal(msg.ptr, want, msg.len);
    assert_int_equal(maq_schedule_build(&s, MAQ_SCHEDULE_ZB_V, 512, 2, UINT32_MAX, 0, &arena, diag), MAQ_LIMIT);
    assert_int_equal(maq_schedule_build(&s, MAQ_SCHEDULE_INTERLEAVED, 2, 2, 100000, 100000, &arena, diag), MAQ_LIMIT);
    maq_arena_fini(&arena);
    /* every place where memory can run out */
    for (int kind = MAQ_SCHEDULE_GPIPE; kind < MAQ_SCHEDULE_COUNT; kind++) {
        enum maq_status status = MAQ_NO_MEMORY;
        for (size_t cap = 1; status != MAQ_OK; cap += 1 + cap / 16) {
            assert_int_equal(s.kind, 42);
            maq_arena_init(&arena, cap);
            status = maq_schedule_build(&s, kind, 4, maq_schedule_chunks(kind, 2), 8, 0, &arena, NULL);
            assert_true(status == MAQ_OK || status == MAQ_NO_MEMORY);
            maq_arena_fini(&arena);
        }
        s.kind = 42;
    }
    maq_diag_free(diag);
}

/* ---- the table ---- */

static void test_table(void **state)
{
    (void)state;
    static const char *const names[] = {"auto",  "gpipe",    "1f1b",       "interleaved", "zb-h1",
                                        "zb-h2", "zb-1p",    "zb-2p",      "zb-auto",     "interleaved-zb",
                                        "zb-v",  "dualpipe", "dualpipe-v", "v-min",       "v-half"};
    assert_int_equal(MAQ_COUNT(names), MAQ_SCHEDULE_COUNT);
    for (int i = 0; i < MAQ_SCHEDULE_COUNT; i++)
        assert_string_equal(maq_schedule_name((enum maq_schedule_kind)i), names[i]);
    assert_string_equal(maq_schedule_name(MAQ_SCHEDULE_COUNT), "?");
    size_t n = 0;
    for (const struct maq_schedule_info *info; (info = maq_schedule_info(n)); n++) {
        assert_string_equal(info->name, names[n + 1]);
        assert_true(info->bubble && info->memory && info->needs && info->source);
    }
    assert_int_equal(n, MAQ_SCHEDULE_COUNT - 1);
    assert_int_equal(maq_schedule_chunks(MAQ_SCHEDULE_GPIPE, 3), 1);
    assert_int_equal(maq_schedule_chunks(MAQ_SCHEDULE_INTERLEAVED, 3), 3);
    assert_int_equal(maq_schedule_chunks(MAQ_SCHEDULE_AUTO, 3), 3);
    assert_int_equal(maq_schedule_chunks(MAQ_SCHEDULE_DUALPIPE, 1), 2);

    struct rig r; /* auto */
    assert_true(rig_open(&r, MAQ_SCHEDULE_AUTO, 4, 1, 8, 0, 1));
    assert_int_equal(r.s.kind, MAQ_SCHEDULE_1F1B);
    rig_close(&r);
    assert_true(rig_open(&r, MAQ_SCHEDULE_AUTO, 4, 2, 8, 0, 1));
    assert_int_equal(r.s.kind, MAQ_SCHEDULE_INTERLEAVED);
    assert_int_equal(r.s.group, 4);
    rig_close(&r);
}

/* A large one, once: wide, and long. */
static void test_large(void **state)
{
    (void)state;
    assert_true(equal_makespan(MAQ_SCHEDULE_1F1B, 1024, 1, 1024, 0, 1, 2, 0) == 3 * 2047.0);
    assert_true(equal_makespan(MAQ_SCHEDULE_1F1B, 1, 1, 100000, 0, 1, 2, 0) == 300000.0);
    assert_true(equal_makespan(MAQ_SCHEDULE_INTERLEAVED, 2, 512, 4, 0, 1, 2, 0) == 3 * (4 * 512 + 1.0));
    assert_true(equal_makespan(MAQ_SCHEDULE_DUALPIPE_V, 128, 2, 256, 0, 1, 1, 1) == 6 * 256 + 2 * 127.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_structure),
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_flush_makespan),
        cmocka_unit_test(test_interleaved_makespan),
        cmocka_unit_test(test_zb_h1_makespan),
        cmocka_unit_test(test_zb_h2),
        cmocka_unit_test(test_interleaved_zb_makespan),
        cmocka_unit_test(test_zb_v_makespan),
        cmocka_unit_test(test_controllable_memory),
        cmocka_unit_test(test_dualpipe_bubble),
        cmocka_unit_test(test_slow_stage),
        cmocka_unit_test(test_lanes),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_stall),
        cmocka_unit_test(test_refuse),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
