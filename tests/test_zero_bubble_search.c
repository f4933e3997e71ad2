/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_zero_bubble_search.c - the searched zero bubble schedules: what every order keeps, what it is never worse than, its closed
 * forms, and how far it is from the best of all orders of small pipelines.
 *
 * maq-test: long
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "plan/schedule/schedule.h"
#include "random_draws.h"

static uint64_t rng_state = 7;
static uint32_t below(uint32_t n)
{
    return draw(&rng_state, 0, n - 1);
}

/* ---- a problem ---- */

#define MOST_STAGES 12

struct problem {
    uint32_t p, m, limit;
    double dur[3 * MOST_STAGES], hop[MOST_STAGES];
    bool spans;
};

static void draw_problem(struct problem *z, uint32_t p, uint32_t m, bool even)
{
    *z = (struct problem){.p = p, .m = m, .limit = 1 + below(2 * p), .spans = below(2) > 0};
    uint32_t f = 1 + below(60), b = 1 + below(60), w = 1 + below(60), hop = below(3) ? below(15) : 0;
    for (uint32_t s = 0; s < p; s++) {
        z->dur[s] = f + (even ? 0 : below(20));
        z->dur[p + s] = b + (even ? 0 : below(20));
        z->dur[2 * p + s] = w + (even ? 0 : below(20));
        z->hop[s] = s > 0 ? hop + (even ? 0 : below(10)) : 0;
    }
}

static void search(struct maq_schedule *out, const struct problem *z, int kind, struct maq_arena *arena)
{
    const struct maq_task_times times = {.dur = z->dur, .hop = z->hop};
    const struct maq_schedule_durations durations = {.times = &times, .spans = z->spans};
    const struct maq_schedule_spec spec = {
        .kind = kind, .stages = z->p, .chunks = 1, .microbatches = z->m, .limit = z->limit};
    assert_int_equal(maq_schedule_search(out, &spec, &durations, arena, NULL), MAQ_OK);
}

/* What an order takes: the makespan, or the longest stage from its first task to its last. */
static double taken(const struct maq_schedule *s, const struct problem *z, double *finish)
{
    double makespan, most = 0;
    const struct maq_task_times times = {.dur = z->dur, .hop = z->hop};
    maq_schedule_eval(&makespan, finish, s, 1, &times);
    for (uint32_t st = 0; st < s->stages; st++) {
        double span = finish[s->stage_last[st]] - (finish[s->stage_first[st]] - z->dur[st]);
        most = span > most ? span : most;
    }
    return z->spans ? most : makespan;
}

/* Of a schedule of the table with whole backwards where it has them. */
static double taken_by(int kind, const struct problem *z)
{
    struct maq_arena arena;
    struct maq_schedule s;
    maq_arena_init(&arena, 0);
    assert_int_equal(maq_schedule_build(&s, kind, z->p, 1, z->m, 0, &arena, NULL), MAQ_OK);
    struct problem whole = *z;
    for (uint32_t st = 0; st < z->p && !s.split_backward; st++)
        whole.dur[z->p + st] += z->dur[2 * z->p + st];
    double *finish = MAQ_ARENA_NEW(&arena, double, 2 * (size_t)s.n_tasks);
    assert_non_null(finish);
    double t = taken(&s, &whole, finish);
    maq_arena_fini(&arena);
    return t;
}

/* ---- brute force ---- */

/* Every order of m F, B and W on one stage, each kind in the order of the microbatches, that holds no more than `limit`. */
struct orders {
    uint8_t (*at)[16];
    uint32_t n, size;
};

static void list_orders(struct orders *o, uint8_t *so_far, uint32_t k, const uint32_t done[3], uint32_t m,
                        uint32_t limit)
{
    if (k == 3 * m) {
        if (o->n == o->size) {
            o->size = o->size ? 2 * o->size : 64;
            o->at = realloc(o->at, o->size * sizeof *o->at);
            assert_non_null(o->at);
        }
        memcpy(o->at[o->n++], so_far, 16);
        return;
    }
    for (uint32_t kind = 0; kind < 3; kind++) {
        uint32_t next[3] = {done[0], done[1], done[2]};
        if (done[kind] == m || (kind > 0 && done[kind] == done[kind - 1]) || (kind == 0 && done[0] - done[2] == limit))
            continue;
        next[kind]++;
        so_far[k] = (uint8_t)kind;
        list_orders(o, so_far, k + 1, next, m, limit);
    }
}

/* HUGE_VAL where the stages wait for each other. */
static double run_orders(const struct problem *z, const uint8_t *const *order)
{
    uint32_t next[MOST_STAGES] = {0}, done[MOST_STAGES][3] = {{0}}, left = z->p * 3 * z->m;
    double end[MOST_STAGES] = {0}, start[MOST_STAGES] = {0}, ended[2][MOST_STAGES][8], most = 0;
    for (bool any = true; any;) {
        any = false;
        for (uint32_t s = 0; s < z->p; s++)
            while (next[s] < 3 * z->m) {
                uint32_t kind = order[s][next[s]], i = done[s][kind];
                double from = end[s];
                if (kind == 0 && s > 0) {
                    if (done[s - 1][0] <= i)
                        break;
                    from = ended[0][s - 1][i] + z->hop[s] > from ? ended[0][s - 1][i] + z->hop[s] : from;
                }
                if (kind == 1 && s + 1 < z->p) {
                    if (done[s + 1][1] <= i)
                        break;
                    from = ended[1][s + 1][i] + z->hop[s + 1] > from ? ended[1][s + 1][i] + z->hop[s + 1] : from;
                }
                if (next[s] == 0)
                    start[s] = from;
                end[s] = from + z->dur[kind * z->p + s];
                if (kind < 2)
                    ended[kind][s][i] = end[s];
                done[s][kind]++;
                next[s]++;
                left--;
                any = true;
            }
    }
    for (uint32_t s = 0; s < z->p; s++) {
        double t = end[s] - (z->spans ? start[s] : 0);
        most = t > most ? t : most;
    }
    return left ? 1e300 : most;
}

static double best_of_all(const struct problem *z)
{
    struct orders o = {0};
    uint8_t so_far[16] = {0};
    list_orders(&o, so_far, 0, (const uint32_t[3]){0}, z->m, z->limit);
    uint32_t at[MOST_STAGES] = {0};
    double best = 1e300;
    for (;;) {
        const uint8_t *order[MOST_STAGES];
        for (uint32_t s = 0; s < z->p; s++)
            order[s] = o.at[at[s]];
        double t = run_orders(z, order);
        best = t < best ? t : best;
        uint32_t s = 0;
        while (s < z->p && ++at[s] == o.n)
            at[s++] = 0;
        if (s == z->p)
            break;
    }
    free(o.at);
    return best;
}

/* ---- tests ---- */

/* A searched order, and what it takes. */
struct found {
    struct maq_arena arena;
    struct maq_schedule s;
    double taken;
};

static void find(struct found *out, const struct problem *z, int kind)
{
    maq_arena_init(&out->arena, 0);
    search(&out->s, z, kind, &out->arena);
    double *finish = MAQ_ARENA_NEW(&out->arena, double, 2 * (size_t)out->s.n_tasks);
    assert_non_null(finish);
    out->taken = taken(&out->s, z, finish);
}

/* Every task once, each kind in the order of the microbatches, never more than the limit held, and counted so. */
static void check_order(const struct maq_schedule *s, uint32_t limit)
{
    assert_int_equal(s->n_tasks, 3 * s->stages * s->microbatches);
    for (uint32_t st = 0; st < s->stages; st++) {
        uint32_t done[3] = {0, 0, 0}, most = 0, counted = 0;
        for (uint32_t id = s->stage_first[st]; id != MAQ_NO_TASK; id = s->next_on_stage[id]) {
            const struct maq_task *t = &s->tasks[id];
            assert_true(t->kind <= MAQ_TASK_W && t->position == st);
            assert_int_equal(t->microbatch, done[t->kind]++);
            assert_true(done[0] >= done[1] && done[1] >= done[2]);
            most = done[0] - done[2] > most ? done[0] - done[2] : most;
        }
        for (int kind = 0; kind < 3; kind++)
            assert_int_equal(done[kind], s->microbatches);
        for (uint32_t i = s->inflight_first[st]; i < s->inflight_first[st + 1]; i++)
            counted = s->inflight[i].total > counted ? s->inflight[i].total : counted;
        assert_int_equal(most, counted);
        assert_true(most <= limit);
    }
}

static void test_random(void **state)
{
    (void)state;
    for (int i = 0; i < 3000; i++) {
        struct problem z;
        struct found f;
        uint32_t p = 1 + below(MOST_STAGES), m = 1 + below(4 * p), held = p < m ? p : m, twice = 2 * p - 1;
        draw_problem(&z, p, m, below(2) > 0);
        find(&f, &z, MAQ_SCHEDULE_ZB_AUTO);
        check_order(&f.s, z.limit);
        if (z.limit >= held) { /* there is room for what 1F1B and ZB-H1 hold */
            assert_true(f.taken <= taken_by(MAQ_SCHEDULE_1F1B, &z));
            assert_true(f.taken <= taken_by(MAQ_SCHEDULE_ZB_H1, &z));
        }
        if (z.limit >= (twice < m ? twice : m) && m >= twice)
            assert_true(f.taken <= taken_by(MAQ_SCHEDULE_ZB_H2, &z));
        for (uint32_t s = 0; s < p; s++)
            assert_true(f.taken >= m * (z.dur[s] + z.dur[p + s] + z.dur[2 * p + s]));
        maq_arena_fini(&f.arena);
    }
}

/* Each stage has a limit of its own, and those that are generous are no help to the others. */
static void test_limits_of_stages(void **state)
{
    (void)state;
    for (int i = 0; i < 500; i++) {
        struct problem z;
        struct maq_arena arena;
        struct maq_schedule s;
        uint32_t p = 1 + below(MOST_STAGES), m = 1 + below(3 * p), limit[MOST_STAGES];
        draw_problem(&z, p, m, false);
        for (uint32_t st = 0; st < p; st++)
            limit[st] = below(2 * p + 2); /* 0 is 1: nothing runs without */
        const struct maq_task_times times = {.dur = z.dur, .hop = z.hop};
        const struct maq_schedule_durations durations = {.times = &times, .limit = limit};
        const struct maq_schedule_spec spec = {
            .kind = MAQ_SCHEDULE_ZB_AUTO, .stages = p, .chunks = 1, .microbatches = m};
        maq_arena_init(&arena, 0);
        assert_int_equal(maq_schedule_search(&s, &spec, &durations, &arena, NULL), MAQ_OK);
        for (uint32_t k = 0; k < s.n_inflight; k++)
            assert_true(s.inflight[k].total <= (limit[s.inflight[k].stage] > 0 ? limit[s.inflight[k].stage] : 1));
        maq_arena_fini(&arena);
    }
}

/* With F = B = W and free transfers p microbatches leave ZB-H1's bubble of (p-1) F, and 2p none. */
static void test_closed_forms(void **state)
{
    (void)state;
    for (uint32_t p = 1; p <= MOST_STAGES; p++)
        for (uint32_t m = 2 * p - 1; m <= 4 * p; m += 3) {
            struct problem z = {.p = p, .m = m, .spans = true};
            struct found one, two;
            for (uint32_t i = 0; i < 3 * p; i++)
                z.dur[i] = 7;
            find(&one, &z, MAQ_SCHEDULE_ZB_1P);
            find(&two, &z, MAQ_SCHEDULE_ZB_2P);
            assert_true(one.taken == 7 * (3.0 * m + p - 1) && two.taken == 7 * 3.0 * m);
            check_order(&one.s, p);
            check_order(&two.s, 2 * p);
            maq_arena_fini(&one.arena);
            maq_arena_fini(&two.arena);
            z.spans = false; /* the last stage begins p-1 forwards late, whatever the order */
            find(&two, &z, MAQ_SCHEDULE_ZB_2P);
            assert_true(two.taken == 7 * (3.0 * m + p - 1));
            maq_arena_fini(&two.arena);
        }
}

/* Against all orders: never better, which would be an error of one of the two, and hardly ever worse. */
static void test_brute_force(void **state)
{
    (void)state;
    static const struct {
        uint32_t p, m;
        int draws;
    } sizes[] = {{1, 4, 10}, {2, 2, 1000}, {2, 3, 300}, {3, 2, 1000}, {4, 2, 60}, {2, 4, 10}, {3, 3, 25}};
    double gaps = 0;
    int n = 0, best_found = 0;
    for (size_t k = 0; k < MAQ_COUNT(sizes); k++)
        for (int i = 0; i < sizes[k].draws; i++) {
            struct problem z;
            struct found f;
            draw_problem(&z, sizes[k].p, sizes[k].m, i % 2 > 0);
            find(&f, &z, MAQ_SCHEDULE_ZB_AUTO);
            double best = best_of_all(&z);
            assert_true(f.taken >= best);
            gaps += f.taken / best - 1;
            best_found += f.taken <= best;
            n++;
            maq_arena_fini(&f.arena);
        }
    assert_true(best_found >= 0.98 * n && gaps / n < 0.001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_limits_of_stages),
        cmocka_unit_test(test_closed_forms),
        cmocka_unit_test(test_brute_force),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
