/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_planner_external_pieces.c - composing pieces against brute force over every row of pieces, on random tables: pieces of several stages, several
 * pieces of a slice, devices and memory that bind.
 *
 * maq-test: long
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "planner/external/pair_bound.h"
#include "planner/external/piece_bound.h"
#include "planner/external/piece_search.h"
#include "random_draws.h"

#define TABLES 400

/* ---- random tables ---- */

static bool random_piece(struct maq_piece *out, uint64_t *state, const struct maq_piece_table *t, uint32_t atoms,
                         uint32_t island, struct maq_arena *arena)
{
    struct maq_parallelizer_plan *plan = MAQ_ARENA_NEW(arena, struct maq_parallelizer_plan, 1);
    uint32_t hops[3], n = draw(state, 1, atoms < 3 ? atoms : 3), left = atoms;
    struct maq_parallelizer_stage *stages = MAQ_ARENA_NEW(arena, struct maq_parallelizer_stage, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t has = i + 1 == n ? left : draw(state, 1, left - (n - 1 - i));
        left -= has;
        hops[i] = draw(state, 0, t->n_hops - 1);
        stages[i] = (struct maq_parallelizer_stage){.atoms = has,
                                                    .devices = draw(state, 1, 2),
                                                    .replicas = 1,
                                                    .time_s = has * uniform(state, 0.3, 1.5),
                                                    .static_bytes = has * uniform(state, 0.5, 2),
                                                    .flight_bytes = has * uniform(state, 0.1, 1),
                                                    .sync_s = uniform(state, 0, 2)};
    }
    *plan = (struct maq_parallelizer_plan){n, stages, ""};
    return maq_piece_fill(out, plan, island, hops, t, 9);
}

static void random_table(struct maq_piece_table *t, uint64_t seed, uint32_t extra_devices, struct maq_arena *arena)
{
    uint64_t state = seed * 7919u + 1;
    *t = (struct maq_piece_table){.n_atoms = draw(&state, 2, 6),
                                  .n_islands = draw(&state, 1, 3),
                                  .waves = draw(&state, 1, 12),
                                  .n_hops = draw(&state, 1, 4)};
    double *hop = MAQ_ARENA_NEW(arena, double, t->n_hops * t->n_hops);
    struct maq_piece_list *lists = MAQ_ARENA_NEW(arena, struct maq_piece_list, t->n_atoms * t->n_atoms);
    for (uint32_t i = 0; i < t->n_hops; i++)
        for (uint32_t j = 0; j <= i; j++)
            hop[i * t->n_hops + j] = hop[j * t->n_hops + i] = uniform(&state, 0, 0.4);
    t->hop_s = hop;
    t->slices = lists;
    assert_true(maq_piece_table_hops(t, arena));
    for (uint32_t g = 0; g < t->n_islands; g++)
        t->available[g] = draw(&state, 1, 5) + extra_devices;
    for (uint32_t first = 0; first < t->n_atoms; first++)
        for (uint32_t end = first + 1; end <= t->n_atoms; end++) {
            uint32_t n = draw(&state, 0, 4), kept = 0;
            struct maq_piece *pieces = MAQ_ARENA_NEW(arena, struct maq_piece, n);
            for (uint32_t i = 0; i < n; i++)
                kept += random_piece(&pieces[kept], &state, t, end - first, draw(&state, 0, t->n_islands - 1), arena);
            lists[first * t->n_atoms + end - 1] = (struct maq_piece_list){pieces, kept};
        }
}

/* ---- brute force ---- */

static void try_all(struct maq_piece_line *best, struct maq_piece_line *at, const struct maq_piece_table *t,
                    uint32_t from)
{
    if (from == t->n_atoms) {
        if (maq_piece_line_cost(at, t) && (best->n == 0 || at->step_s < best->step_s))
            *best = *at;
        return;
    }
    for (uint32_t end = from + 1; end <= t->n_atoms; end++) {
        const struct maq_piece_list *list = maq_piece_list_of(t, from, end);
        for (uint32_t i = 0; i < list->n; i++) {
            at->first[at->n] = from;
            at->pieces[at->n++] = &list->at[i];
            try_all(best, at, t, end);
            at->n--;
        }
    }
}

static double brute_force(const struct maq_piece_table *t, uint32_t *pieces, uint32_t *stages)
{
    static struct maq_piece_line best, at;
    best.n = at.n = 0;
    try_all(&best, &at, t, 0);
    *pieces = best.n;
    *stages = 0;
    for (uint32_t i = 0; i < best.n; i++)
        *stages += best.pieces[i]->plan->n_stages;
    return best.n > 0 ? best.step_s : HUGE_VAL;
}

static struct maq_piece_search_result *search(const struct maq_piece_table *t, double cutoff, uint32_t width,
                                              uint32_t boxes, uint64_t extensions, struct maq_arena *arena)
{
    struct maq_piece_search_result *r = MAQ_ARENA_NEW(arena, struct maq_piece_search_result, 1);
    const struct maq_piece_search_opts opts = {cutoff, width, 0, boxes, extensions};
    assert_true(maq_piece_search(r, t, &opts, arena));
    return r;
}

static void assert_same(double got, double want)
{
    if (want == HUGE_VAL ? got != HUGE_VAL : !(fabs(got - want) <= 1e-9 * want))
        fail_msg("%.12g, not %.12g", got, want);
}

static void equals_brute_force(void **ignored)
{
    uint32_t possible = 0, several = 0, multi = 0;
    for (uint64_t seed = 0; seed < TABLES; seed++) {
        struct maq_piece_table t;
        struct maq_arena arena;
        uint32_t pieces, stages;
        maq_arena_init(&arena, 0);
        random_table(&t, seed, 0, &arena);
        double best = brute_force(&t, &pieces, &stages);
        const struct maq_piece_search_result *r = search(&t, HUGE_VAL, 0, 1, 0, &arena);
        assert_true(r->complete);
        assert_same(r->best.n > 0 ? r->best.step_s : HUGE_VAL, best);
        assert_same(r->bound_s, best);
        if (best < HUGE_VAL) { /* a cutoff at the optimum does not lose it, one below finds nothing and says so */
            assert_same(search(&t, best, 0, 1, 0, &arena)->best.step_s, best);
            r = search(&t, best * 0.999, 0, 1, 0, &arena);
            assert_true(r->best.n == 0 && r->complete);
            assert_same(r->bound_s, best * 0.999);
        }
        possible += best < HUGE_VAL;
        several += best < HUGE_VAL && pieces > 1;
        multi += best < HUGE_VAL && stages > pieces;
        maq_arena_fini(&arena);
    }
    if (possible < TABLES / 4 || possible > TABLES - 10 || several < TABLES / 10 || multi < TABLES / 20)
        fail_msg("%u possible, %u of several pieces, %u with several stages in a piece", possible, several, multi);
}

/* Few labels, in one box and in several: another plan perhaps, never a wrong bound; and what is said to be complete is. */
static void bounds_are_below(void **ignored)
{
    uint32_t open[2] = {0}, halved = 0;
    for (uint64_t seed = 0; seed < TABLES; seed++) {
        struct maq_piece_table t;
        struct maq_arena arena;
        uint32_t pieces, stages;
        maq_arena_init(&arena, 0);
        random_table(&t, seed, 2, &arena);
        double best = brute_force(&t, &pieces, &stages);
        for (uint32_t width = 1; width < 4; width++)
            for (uint32_t i = 0; i < 4; i++) {
                double cutoff = i < 2 ? HUGE_VAL : best < HUGE_VAL ? 1.3 * best : 20;
                const struct maq_piece_search_result *r =
                    search(&t, cutoff, width, i % 2 ? 12 : 1, seed % 3 == 0 ? 40 * width : 0, &arena);
                assert_true(r->bound_s <= best * (1 + 1e-12) || (best == HUGE_VAL && r->bound_s <= cutoff));
                assert_true(r->best.n == 0 || r->best.step_s >= best * (1 - 1e-12));
                if (r->complete)
                    assert_same(r->best.n > 0 ? r->best.step_s : HUGE_VAL, best);
                open[i % 2] += !r->complete;
                halved += i % 2 && r->complete;
            }
        maq_arena_fini(&arena);
    }
    /* boxes settle what one could not */
    if (open[0] <= open[1] + 10 || open[1] == 0 || halved < 100)
        fail_msg("%u open in one box, %u in twelve", open[0], open[1]);
}

static void more_devices_are_never_worse(void **ignored)
{
    uint32_t better = 0;
    for (uint64_t seed = 0; seed < TABLES; seed++) {
        double last = HUGE_VAL;
        for (uint32_t extra = 0; extra < 4; extra++) {
            struct maq_piece_table t;
            struct maq_arena arena;
            maq_arena_init(&arena, 0);
            random_table(&t, seed, extra, &arena);
            const struct maq_piece_search_result *r = search(&t, HUGE_VAL, 0, 1, 0, &arena);
            double step = r->best.n > 0 ? r->best.step_s : HUGE_VAL;
            assert_true(step <= last * (1 + 1e-12));
            better += step < last;
            last = step;
            maq_arena_fini(&arena);
        }
    }
    assert_true(better > TABLES / 4);
}

/* ---- profiles ---- */

/* A row of slices, each on an island: the islands' loads and the sum. */
struct row {
    const struct maq_pair_profile *p;
    const struct maq_pair_bounds *b;
    double load[MAQ_PIECE_ISLANDS], fill;
    uint32_t pair[8], n;
    uint64_t rows;
};

static void check_rows(struct row *r, uint32_t from)
{
    if (from == r->p->n_atoms) {
        double slowest = 0;
        for (uint32_t j = 0; j < r->p->n_islands; j++)
            slowest = fmax(slowest, r->load[j]);
        for (uint32_t i = 0; i < r->n; i++) {
            assert_true(r->b->bottleneck[r->pair[i]] <= slowest * (1 + 1e-9));
            assert_true(r->b->fill[r->pair[i]] <= r->fill * (1 + 1e-9));
        }
        assert_true(r->b->root_bottleneck <= slowest * (1 + 1e-9) && r->b->root_fill <= r->fill * (1 + 1e-9));
        r->rows++;
        return;
    }
    for (uint32_t end = from + 1; end <= r->p->n_atoms; end++)
        for (uint32_t j = 0; j < r->p->n_islands; j++) {
            uint32_t pair = r->p->class_of[from * r->p->n_atoms + end - 1] * r->p->n_islands + j;
            double s = r->p->seconds[pair], load = r->load[j], fill = r->fill;
            if (!isfinite(s))
                continue;
            r->load[j] += s;
            r->fill += s;
            r->pair[r->n++] = pair;
            check_rows(r, end);
            r->n--;
            r->load[j] = load;
            r->fill = fill;
        }
}

/* No row of slices is below the bound of any pair in it; and the bounds are not idle: some pair's is well over the root's. */
static void pair_bounds_are_below(void **ignored)
{
    uint32_t sharp = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        uint64_t state = seed + 5;
        struct maq_arena arena;
        struct maq_pair_bounds b;
        struct maq_pair_profile p = {draw(&state, 2, 5), 0, draw(&state, 1, 3), NULL, NULL};
        uint32_t *class_of, n = p.n_atoms;
        double *seconds;
        maq_arena_init(&arena, 0);
        class_of = MAQ_ARENA_NEW(&arena, uint32_t, n * n);
        p.n_classes = 2 * n;
        for (uint32_t length = 1; length <= n; length++) /* slices of a length are one class, the first one apart */
            for (uint32_t first = 0; first + length <= n; first++)
                class_of[first * n + first + length - 1] = 2 * (length - 1) + (first > 0);
        seconds = MAQ_ARENA_NEW(&arena, double, p.n_classes *p.n_islands);
        for (uint32_t i = 0; i < p.n_classes * p.n_islands; i++)
            seconds[i] = draw(&state, 0, 9) == 0 ? HUGE_VAL : (i / p.n_islands / 2 + 1) * uniform(&state, 0.5, 2);
        p.class_of = class_of;
        p.seconds = seconds;
        assert_true(maq_pair_bounds_init(&b, &p, &arena));
        struct row row = {.p = &p, .b = &b};
        check_rows(&row, 0);
        for (uint32_t i = 0; i < p.n_classes * p.n_islands; i++)
            sharp += isfinite(b.bottleneck[i]) && b.bottleneck[i] > 1.5 * b.root_bottleneck;
        maq_arena_fini(&arena);
    }
    assert_true(sharp > 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_brute_force),
        cmocka_unit_test(bounds_are_below),
        cmocka_unit_test(more_devices_are_never_worse),
        cmocka_unit_test(pair_bounds_are_below),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
