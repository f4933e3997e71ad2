/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_compose.c - composing pipelines against oracles, on small random tables.
 *
 * Brute force enumerates every composition of a table; a MILP goes through COIN-OR's cbc where it is installed. Tables are drawn so
 * that devices and memory bind, costs have no pattern, and all classes occur: stages of two options and uneven shares.
 *
 * maq-test: threads maq-test: long
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "effort.h"

#include "planner/compose/cost_to_go.h"
#include "planner/compose/counted_bound.h"
#include "planner/compose/labels.h"
#include "planner/compose/pipelines.h"
#include "planner/compose/pipelines_bound.h"
#include "planner/compose/priced_bound.h"
#include "planner/compose/search.h"
#include "random_draws.h"

#define TABLES EFFORT(20u, 60u, 100u)

/* ---- random tables ---- */

struct random_table {
    uint64_t seed;
    uint32_t max_parts, extra_devices;
    bool plain_hops; /* of the sender alone: what the MILP can say */
    bool waits;      /* two thirds of the tables have compositions whose steps wait */
};

static double random_sync(const struct maq_stage_table *t, const struct maq_stage_part *parts, uint32_t n, double bytes,
                          uint32_t ranks)
{
    double slowest = 0;
    for (uint32_t i = 0; i < n; i++)
        slowest = fmax(slowest, 1.0 + 0.5 * t->options[parts[i].option].kind);
    return ranks > 1 ? slowest * bytes * 2 * (ranks - 1) / ranks : 0;
}

static void random_option(struct maq_stage_option *o, uint64_t *state, uint32_t atoms, uint32_t kinds, uint32_t share,
                          struct maq_arena *arena)
{
    double *sums[4], *update = MAQ_ARENA_NEW(arena, double, atoms);
    static const double most[4] = {1, 4, 2, 0.5};
    for (uint32_t i = 0; i < 4; i++) {
        sums[i] = MAQ_ARENA_NEW(arena, double, atoms + 1);
        for (uint32_t a = 0; a < atoms; a++)
            sums[i][a + 1] = sums[i][a] + uniform(state, 0.05, most[i]);
    }
    for (uint32_t a = 0; a < atoms; a++)
        update[a] = uniform(state, 0, 0.2);
    *o = (struct maq_stage_option){.kind = draw(state, 0, kinds - 1),
                                   .devices = 1u << draw(state, 0, 1),
                                   .samples = share,
                                   .context_bytes = 0.5,
                                   .time_s = sums[0],
                                   .fixed_bytes = sums[1],
                                   .flight_bytes = sums[2],
                                   .sync_bytes = sums[3],
                                   .update_s = update};
}

/* A third holds more waves than 1F1B and has few stages, as interleaved schedules do. */
static void draw_schedule(struct maq_stage_table *out, uint64_t seed)
{
    uint64_t state = seed * 7919 + 1;
    if (draw(&state, 0, 2) > 0)
        return;
    out->hops_beside = draw(&state, 0, 1);
    out->wraps = out->hops_beside ? 0.25 * draw(&state, 0, 3) : 0;
    out->max_stages = draw(&state, 1, 3);
    out->more_in_flight = draw(&state, 0, 3);
    out->steeper_in_flight = draw(&state, 0, 2);
}

/* As much as the table may have: no step is shorter for a longer stage. */
static void draw_waits(struct maq_stage_table *out, struct maq_stage_option *options, uint64_t seed)
{
    uint64_t state = seed * 104729 + 1;
    if (draw(&state, 0, 2) == 0)
        return;
    uint32_t more = (out->waves += draw(&state, 0, 16)) - 1;
    out->between = draw(&state, 1, 4);
    out->rounds = draw(&state, 0, more / out->between < 2 ? more / out->between : 2);
    more -= out->rounds * out->between;
    out->seldom_waves = draw(&state, 0, 2) > 0 ? more / (out->rounds + 1) : 0;
    for (uint32_t o = 0; o < out->n_options; o++) {
        options[o].seldom_s = uniform(&state, 0, 4);
        options[o].each_s = uniform(&state, 0, 0.3);
        options[o].tied_s = uniform(&state, 0, 0.3);
    }
}

static bool random_table(struct maq_stage_table *out, const void *ctx, uint32_t i, struct maq_arena *arena)
{
    const struct random_table *r = ctx;
    uint64_t state = r->seed * 1000003u + i;
    uint32_t atoms = draw(&state, 3, 6), kinds = draw(&state, 1, 4),
             options = draw(&state, 2, r->max_parts > 1 ? 3 : 5);
    uint32_t replicas = draw(&state, 1, 3), share = draw(&state, 1, 2);
    if (r->max_parts > 1) { /* few devices for many replicas: mixing pays; few atoms: brute force has to end */
        replicas++;
        atoms = atoms < 4 ? atoms : 4;
    }
    struct maq_stage_option *at = MAQ_ARENA_NEW(arena, struct maq_stage_option, options);
    for (uint32_t o = 0; o < options; o++) {
        random_option(&at[o], &state, atoms, kinds, share, arena);
        at[o].id = o;
    }
    if (r->max_parts > 1 && share == 2) /* uneven shares of a stage */
        at[0].samples = 1;
    *out = (struct maq_stage_table){.n_atoms = atoms,
                                    .n_kinds = kinds,
                                    .n_options = options,
                                    .waves = draw(&state, 1, 9),
                                    .wave_samples = replicas * share,
                                    .max_parts = r->max_parts,
                                    .options = at,
                                    .sync_s = random_sync};
    out->max_in_flight = draw(&state, 0, 1) ? out->waves : UINT32_MAX;
    draw_schedule(out, r->seed + i);
    if (r->waits)
        draw_waits(out, at, r->seed + i);
    out->hops = (struct maq_hop_rule){1, draw(&state, 1, 2), draw(&state, 1, 2), draw(&state, 1, 3)};
    for (uint32_t g = 0; g < kinds; g++) {
        out->available[g] = draw(&state, r->max_parts > 1 ? 3 : 1, r->max_parts > 1 ? 8 : 9) + r->extra_devices;
        out->capacity_bytes[g] = uniform(&state, 4, 14);
    }
    const uint32_t classes = r->seed % 5 == 4 ? (options + 1) / 2 : options;
    out->n_hop_classes = classes;
    for (uint32_t o = 0; o < options; o++)
        at[o].hop_class = o % classes;
    bool alike = r->waits && r->seed % 4 == 0; /* options are of a group: planner/compose/counted_bound.c */
    double most = r->waits && r->seed % 3 == 0 ? 1 : 0.3;
    for (uint32_t side = 0; side < 2; side++) {
        double *s = MAQ_ARENA_NEW(arena, double, (size_t)classes *classes *atoms);
        for (size_t j = 0; j < (size_t)classes * classes * atoms; j++)
            s[j] = (r->plain_hops && j / atoms % classes > 0) || (alike && j >= atoms) ? s[j - atoms]
                                                                                       : uniform(&state, 0, most);
        for (size_t j = side == 0 ? atoms - 1 : 0; r->waits && j < (size_t)classes * classes * atoms; j += atoms)
            s[j] *= 10; /* from the last stage to the first: nothing but waits has them */
        *(side == 0 ? &out->forward_s : &out->backward_s) = s;
    }
    return true;
}

/* ---- brute force ---- */

static void add_stages(struct maq_composition *best, struct maq_composition *c, const struct maq_stage_table *t,
                       uint64_t *tried);

static void try_stage(struct maq_composition *best, struct maq_composition *c, const struct maq_stage_table *t,
                      const struct maq_stage *stage, uint64_t *tried)
{
    c->stages[c->n_stages++] = *stage;
    if (stage->end < t->n_atoms) {
        add_stages(best, c, t, tried);
    } else {
        ++*tried;
        if (maq_composition_cost(c, t) && c->step_s < best->step_s)
            *best = *c;
    }
    c->n_stages--;
}

static void add_stages(struct maq_composition *best, struct maq_composition *c, const struct maq_stage_table *t,
                       uint64_t *tried)
{
    uint32_t first = c->n_stages > 0 ? c->stages[c->n_stages - 1].end : 0;
    for (uint32_t end = first + 1; end <= t->n_atoms; end++)
        for (uint32_t a = 0; a < t->n_options; a++) {
            struct maq_stage s = {.first = first, .end = end, .n_parts = 1, .parts = {{a, maq_replicas(t, a)}}};
            try_stage(best, c, t, &s, tried);
            for (uint32_t b = 0; t->max_parts > 1 && b < t->n_options; b++)
                for (uint32_t n = 1; b != a && n * t->options[a].samples < t->wave_samples; n++) {
                    uint32_t left = t->wave_samples - n * t->options[a].samples, share = t->options[b].samples;
                    s.n_parts = 2;
                    s.parts[0] = (struct maq_stage_part){a, n};
                    s.parts[1] = (struct maq_stage_part){b, (left + share - 1) / share};
                    try_stage(best, c, t, &s, tried);
                }
        }
}

static uint64_t brute_force(struct maq_composition *best, const struct maq_stage_table *t)
{
    static struct maq_composition c;
    uint64_t tried = 0;
    c.n_stages = 0;
    best->step_s = HUGE_VAL;
    add_stages(best, &c, t, &tried);
    return tried;
}

static void assert_same(double got, double want)
{
    if (want == HUGE_VAL ? got != HUGE_VAL : !(fabs(got - want) <= 1e-9 * want))
        fail_msg("%.12g, not %.12g", got, want);
}

static double search_one(const struct random_table *r, uint32_t threads)
{
    const struct maq_stage_source source = {1, random_table, r};
    struct maq_compose_limits options = MAQ_COMPOSE_LIMITS_INIT;
    struct maq_compose_tables_result found;
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    options.threads = threads;
    assert_int_equal(maq_compose_search(&found, &source, &options, &arena), MAQ_OK);
    assert_true(found.exact);
    double step = found.n > 0 ? found.found[0].composition.step_s : HUGE_VAL;
    if (found.n > 0)
        assert_same(found.bound_s, step);
    maq_arena_fini(&arena);
    return step;
}

static void equals_brute_force(void **ignored)
{
    uint32_t possible = 0, staged = 0, mixed = 0, wait = 0;
    for (uint64_t seed = 0; seed < 5 * TABLES; seed++) {
        const struct random_table r = {.seed = seed, .max_parts = seed % 2 ? 2 : 1, .waits = seed % 2 == 0};
        struct maq_stage_table t;
        struct maq_arena arena;
        static struct maq_composition best;
        maq_arena_init(&arena, 0);
        assert_true(random_table(&t, &r, 0, &arena));
        brute_force(&best, &t);
        assert_same(search_one(&r, 1), best.step_s);
        possible += best.step_s < HUGE_VAL;
        staged += best.step_s < HUGE_VAL && best.n_stages > 1;
        wait += best.step_s < HUGE_VAL && best.wait_s > 0;
        for (uint32_t i = 0; best.step_s < HUGE_VAL && i < best.n_stages; i++)
            mixed += best.stages[i].n_parts > 1;
        maq_arena_fini(&arena);
    }
    /* the draw has all cases: tables without a composition, several stages, stages of two options, steps that wait */
    if (possible < 2 * TABLES || possible > 5 * TABLES - TABLES / 10 || staged < TABLES || mixed < TABLES / 20 ||
        wait < TABLES / 5)
        fail_msg("%u possible, %u in stages, %u mixed, %u wait", possible, staged, mixed, wait);
}

/* Dominance alone, bounds off: the same optimum, from many more labels. */
static void bounds_change_no_answer(void **ignored)
{
    uint64_t with = 0, without = 0;
    for (uint64_t seed = 0; seed < 8 * TABLES; seed++) {
        const struct random_table r = {.seed = seed, .max_parts = seed % 2 ? 2 : 1, .waits = seed % 2 == 0};
        struct maq_label_options free_search = {HUGE_VAL, 0, 1u << 20, true}, bounded = {0, 0, 1u << 20, false};
        struct maq_label_count count;
        struct maq_stage_table t;
        struct maq_layer_ranges layer_ranges;
        struct maq_boxes none = {.n = 0}, boxes;
        struct maq_arena arena;
        static struct maq_composition best, other;
        maq_arena_init(&arena, 0);
        assert_true(random_table(&t, &r, 0, &arena) && maq_layer_ranges_init(&layer_ranges, &t, &arena));
        best.step_s = other.step_s = HUGE_VAL;
        assert_true(maq_labels_search(&best, &count, &layer_ranges, &none, &free_search, &arena));
        assert_true(count.complete);
        without += count.considered;
        assert_same(search_one(&r, 1), best.step_s);
        if (best.step_s < HUGE_VAL) { /* a cutoff just above the optimum must not lose it */
            assert_true(maq_wave_bound(&t) <= best.bottleneck_s * (1 + 1e-12));
            assert_true(maq_work_bound(&t) <= best.step_s * (1 + 1e-12));
            bounded.cutoff_s = best.step_s * 1.000001;
            const struct maq_bottleneck_box_options box = {bounded.cutoff_s, 0.01 * best.step_s, 400, 0, NULL, NULL};
            assert_true(maq_boxes_cover(&boxes, &other, &layer_ranges, &box, &arena));
            assert_true(boxes.bound_s <= best.step_s * 1.000001);
            assert_true(maq_labels_search(&other, &count, &layer_ranges, &boxes, &bounded, &arena));
            with += count.considered;
            assert_same(other.step_s, best.step_s);
        }
        maq_arena_fini(&arena);
    }
    assert_true(with < without / 2);
}

static void bounds_are_below(void **ignored)
{
    for (uint64_t seed = 0; seed < TABLES; seed++) {
        const struct random_table r = {.seed = seed, .max_parts = seed % 2 ? 2 : 1, .waits = seed % 2 == 0};
        struct maq_stage_table t;
        struct maq_layer_ranges layer_ranges;
        struct maq_boxes boxes;
        struct maq_arena arena;
        static struct maq_composition best, found;
        maq_arena_init(&arena, 0);
        assert_true(random_table(&t, &r, 0, &arena) && maq_layer_ranges_init(&layer_ranges, &t, &arena));
        brute_force(&best, &t);
        if (best.step_s < HUGE_VAL) {
            for (uint32_t most = 1; most < 100; most *= 4) { /* few boxes: a weaker bound, still a bound */
                const struct maq_bottleneck_box_options box = {2 * best.step_s, 0.01, most, 0, NULL, NULL};
                found.step_s = HUGE_VAL;
                assert_true(maq_boxes_cover(&boxes, &found, &layer_ranges, &box, &arena));
                assert_true(boxes.bound_s <= best.step_s * (1 + 1e-12));
                assert_true(found.step_s >= best.step_s * (1 - 1e-12));
            }
            assert_true(maq_work_bound(&t) <= best.step_s * (1 + 1e-12));
        }
        maq_arena_fini(&arena);
    }
}

/* With what the step waits in a box of any bottleneck. */
static double with_waits(const struct maq_composition *c, const struct maq_stage_table *t)
{
    const struct maq_stage *s = &c->stages[c->n_stages - 1];
    const uint32_t last = s->parts[0].option;
    struct maq_tail tail = maq_tail_of(t, last, s->compute_s);
    for (uint32_t n = 1; s-- > c->stages; n++) {
        const double *back = maq_hop_row(t, t->backward_s, s[1].parts[0].option, s->parts[0].option);
        double sent = back[s->end] * (n == 1 ? t->hops.last : 1);
        tail = maq_tail_grow(t, tail, n, s->compute_s, sent);
    }
    double back = t->rounds > 0 ? maq_back_s(t, last, c->stages[0].parts[0].option) : 0;
    return c->fill_s + maq_waits(t, c->fill_s + back, tail.slowest_s, 0, c->n_stages == 1);
}

/* The least fill of all compositions: what a program that counts devices has to find in a box that holds them all. */
static void add_fills(double *least, struct maq_composition *c, const struct maq_stage_table *t)
{
    uint32_t first = c->n_stages > 0 ? c->stages[c->n_stages - 1].end : 0;
    for (uint32_t end = first + 1; end <= t->n_atoms; end++)
        for (uint32_t o = 0; o < t->n_options; o++) {
            c->stages[c->n_stages++] =
                (struct maq_stage){.first = first, .end = end, .n_parts = 1, .parts = {{o, maq_replicas(t, o)}}};
            if (end < t->n_atoms)
                add_fills(least, c, t);
            else if (maq_composition_cost(c, t))
                *least = fmin(*least, with_waits(c, t));
            c->n_stages--;
        }
}

static void counting_finds_the_least_fill(void **ignored)
{
    uint32_t found = 0, rough = 0;
    for (uint64_t seed = 0; seed < 15 * TABLES; seed++) {
        const struct random_table r = {.seed = seed, .max_parts = 1, .waits = true};
        struct maq_bottleneck_box box = {.bottleneck_hi = 1e3, .sync_hi = 1e3, .price = {{0.01, 0.02, 0.01, 0.03}}};
        struct maq_stage_table t;
        struct maq_layer_ranges layer_ranges;
        struct maq_priced_bound *priced = NULL;
        struct maq_counted_bound *counted = NULL;
        struct maq_arena arena;
        static struct maq_composition c, path;
        double least = HUGE_VAL, got[4] = {0};
        maq_arena_init(&arena, 0);
        assert_true(random_table(&t, &r, 0, &arena) && maq_layer_ranges_init(&layer_ranges, &t, &arena));
        assert_true(maq_priced_bound_new(&priced, &layer_ranges, &arena) &&
                    maq_counted_bound_new(&counted, &layer_ranges, &arena) && counted);
        c.n_stages = 0;
        add_fills(&least, &c, &t);
        const struct maq_count_options options[4] = {{UINT64_MAX, 0, false}, /* all states */
                                                     {UINT64_MAX, 0, true},  /* and what is left */
                                                     {UINT64_MAX, 1, false}, /* few states: no better than the best */
                                                     {1, 0, true}};          /* no time for states: a bound */
        for (uint32_t i = 0; i < 4; i++) {
            const double *rest = maq_priced_bound_rest(priced, &box, 0, 1e3);
            assert_true(maq_counted_bound_solve(&got[i], &box, &path, counted, rest, 1e3, &options[i]));
            if (i < 3)
                assert_int_equal(path.n_stages > 0, got[i] < 1e3);
            if (i < 2 && path.n_stages > 0) { /* the path is what its value says, and lies where the box says */
                assert_true(maq_composition_cost(&path, &t));
                assert_same(with_waits(&path, &t), least);
                assert_same(box.bottleneck_at, path.bottleneck_s);
                assert_true(box.sync_at == path.sync_s);
            }
        }
        assert_same(got[0], fmin(least, 1e3));
        assert_same(got[1], fmin(least, 1e3));
        assert_true(got[2] >= got[0] * (1 - 1e-12) && got[3] <= got[0] * (1 + 1e-12));
        found += least < 1e3;
        rough += got[3] < got[0] * 0.999;
        maq_arena_fini(&arena);
    }
    if (found < TABLES || rough < TABLES / 10)
        fail_msg("%u possible, %u bounded", found, rough);
}

/* Units taken together ask for less; so does a table without prices. Neither is above what is left in truth. */
static void what_is_left_is_below(void **ignored)
{
    uint32_t less = 0;
    for (uint64_t seed = 0; seed < TABLES; seed++) {
        const struct random_table r = {.seed = seed, .max_parts = 1, .extra_devices = 3, .waits = true};
        const struct maq_bottleneck_box box = {.bottleneck_hi = 1e3, .sync_hi = 1e3};
        double priced[MAQ_STAGE_OPTIONS] = {0}, paid, least = HUGE_VAL, last = 0;
        struct maq_stage_table t;
        struct maq_layer_ranges layer_ranges;
        struct maq_arena arena;
        static struct maq_composition c;
        maq_arena_init(&arena, 0);
        assert_true(random_table(&t, &r, 0, &arena) && maq_layer_ranges_init(&layer_ranges, &t, &arena));
        c.n_stages = 0;
        add_fills(&least, &c, &t);
        for (uint32_t coarse = 8; coarse > 0; coarse /= 2) {
            struct maq_units units = {.coarse = coarse, .codes = 1};
            struct maq_cost_to_go *left;
            for (uint32_t g = 0; g < t.n_kinds; g++) {
                units.radix[g] = t.available[g] / coarse + 1;
                units.stride[g] = units.codes;
                units.codes *= units.radix[g];
            }
            paid = 0;
            for (uint32_t g = 0; g < t.n_kinds; g++)
                paid += coarse > 1 ? 0.01 * t.available[g] : 0;
            for (uint32_t o = 0; o < t.n_options; o++) {
                uint32_t devices = t.options[o].devices * maq_replicas(&t, o), kind = t.options[o].kind;
                bool fits = devices <= t.available[kind];
                units.like[o] = (uint16_t)o;
                units.code[o] = (fits ? devices / coarse : t.available[kind] / coarse + 1) * units.stride[kind];
                priced[o] = coarse > 1 ? 0.01 * devices : 0;
            }
            assert_true(maq_cost_to_go_new(&left, &layer_ranges, &units, &arena));
            maq_cost_to_go_fill(left, &box, priced);
            double value = maq_cost_to_go_of(left, 0, t.n_atoms, units.codes - 1) - paid;
            assert_true(value <= least * (1 + 1e-12));
            less += value < least * 0.999;
            last = value;
        }
        if (least < HUGE_VAL && t.hops.first_deep == 1 && t.hops.last == 1)
            assert_true(last > 0);
        maq_arena_fini(&arena);
    }
    assert_true(less > TABLES / 4);
}

static void more_devices_are_never_worse(void **ignored)
{
    uint32_t better = 0;
    for (uint64_t seed = 0; seed < TABLES; seed++) {
        double last = HUGE_VAL;
        for (uint32_t extra = 0; extra < 6; extra += 2) {
            const struct random_table r = {
                .seed = seed, .max_parts = seed % 2 ? 2 : 1, .extra_devices = extra, .waits = seed % 2 == 0};
            double step = search_one(&r, 1);
            assert_true(step <= last * (1 + 1e-12));
            better += step < last * (1 - 1e-9);
            last = step;
        }
    }
    assert_true(better > TABLES / 4);
}

static void threads_change_nothing(void **ignored)
{
    const struct random_table r = {.seed = 77, .max_parts = 1};
    const struct maq_stage_source source = {60, random_table, &r};
    struct maq_compose_tables_result found[2];
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    for (uint32_t i = 0; i < 2; i++) {
        struct maq_compose_limits options = MAQ_COMPOSE_LIMITS_INIT;
        options.threads = i == 0 ? 1 : 4;
        options.top = 3;
        assert_int_equal(maq_compose_search(&found[i], &source, &options, &arena), MAQ_OK);
    }
    assert_int_equal(found[0].n, 3);
    assert_int_equal(found[1].n, 3);
    assert_memory_equal(&found[0].counts, &found[1].counts, sizeof found[0].counts);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(found[0].found[i].table, found[1].found[i].table);
        assert_true(found[0].found[i].composition.step_s == found[1].found[i].composition.step_s);
    }
    assert_true(found[0].found[0].composition.step_s < found[0].found[1].composition.step_s);
    maq_arena_fini(&arena);
}

/* ---- MILP ---- */

/* One binary per (stages behind, layer range, option); constraints of the path, of devices, and for maxima over positions. Returns
 * the number of binaries. */
static uint32_t write_milp(FILE *f, const struct maq_stage_table *t)
{
    uint32_t n = t->n_atoms, layer_ranges = 0;
    double slowest = 0;
    fprintf(f, "Minimize\n obj: %u tau + sync + update", t->waves - 1);
    struct layer_range {
        uint32_t behind, first, end, option;
        double t, pace, pace_of_two, sync, update;
    } *at = calloc((size_t)n * n * (n + 1) * t->n_options, sizeof *at);
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t first = 0; first < n; first++)
            for (uint32_t end = first + 1; end <= n; end++)
                for (uint32_t o = 0; o < t->n_options; o++) {
                    const struct maq_stage_option *p = &t->options[o];
                    uint32_t held = maq_waves_held(t, k + 1);
                    double bytes = p->context_bytes + p->fixed_bytes[end] - p->fixed_bytes[first] +
                                   (p->flight_bytes[end] - p->flight_bytes[first]) * held;
                    if ((k == 0) != (end == n) || bytes > t->capacity_bytes[p->kind] ||
                        (t->max_stages > 0 && k >= t->max_stages))
                        continue;
                    const struct maq_stage_part part = {o, maq_replicas(t, o)};
                    double hops = maq_forward_weight(t, k, first == 0) * maq_hop_row(t, t->forward_s, o, 0)[end - 1] +
                                  maq_backward_weight(t, k, first == 0) * maq_hop_row(t, t->backward_s, o, 0)[first];
                    struct layer_range a = {
                        k, first, end, o, p->time_s[end] - p->time_s[first], 0, 0, 0, p->update_s[first]};
                    a.pace_of_two = maq_stage_pace(t, a.t, maq_end_sends_s(t, hops, true));
                    a.pace = k == 1 && first == 0 ? a.pace_of_two : maq_stage_pace(t, a.t, hops);
                    slowest = fmax(slowest, a.pace_of_two);
                    a.t += hops;
                    a.sync = t->sync_s(t, &part, 1, p->sync_bytes[end] - p->sync_bytes[first], part.replicas);
                    fprintf(f, " + %.15g x%u\n", a.t, layer_ranges);
                    at[layer_ranges++] = a;
                }
    fprintf(f, "Subject To\n two: tau"); /* the last of two stages: what wraps shares its port */
    for (uint32_t i = 0; i < layer_ranges; i++)
        if (at[i].behind == 0)
            fprintf(f, " - %.15g x%u\n", at[i].pace_of_two, i);
        else if (at[i].behind == 1 && at[i].first == 0)
            fprintf(f, " - %.15g x%u\n", slowest, i);
    fprintf(f, " >= %.15g\n", -slowest);
    for (uint32_t k = 0; k < n; k++) { /* tau, sync and update are no less than those of the stage at position k */
        for (uint32_t what = 0; what < 3; what++) {
            fprintf(f, " m%u_%u: %s", k, what, what == 0 ? "tau" : what == 1 ? "sync" : "update");
            for (uint32_t i = 0; i < layer_ranges; i++)
                if (at[i].behind == k)
                    fprintf(f, " - %.15g x%u\n", what == 0 ? at[i].pace : what == 1 ? at[i].sync : at[i].update, i);
            fprintf(f, " >= 0\n");
        }
        for (uint32_t l = 1; l <= n; l++) { /* in (k stages behind, l atoms left) = out */
            fprintf(f, " f%u_%u: 0 tau", k, l);
            for (uint32_t i = 0; i < layer_ranges; i++) {
                if (at[i].behind == k && at[i].end == l)
                    fprintf(f, " + x%u\n", i);
                if (k > 0 && at[i].behind == k - 1 && at[i].first == l)
                    fprintf(f, " - x%u\n", i);
            }
            fprintf(f, " = %d\n", k == 0 && l == n);
        }
    }
    for (uint32_t g = 0; g < t->n_kinds; g++) {
        fprintf(f, " d%u: 0 tau", g);
        for (uint32_t i = 0; i < layer_ranges; i++)
            if (t->options[at[i].option].kind == g)
                fprintf(f, " + %u x%u\n", t->options[at[i].option].devices * maq_replicas(t, at[i].option), i);
        fprintf(f, " <= %u\n", t->available[g]);
    }
    fprintf(f, "Binaries\n");
    for (uint32_t i = 0; i < layer_ranges; i++)
        fprintf(f, " x%u\n", i);
    fprintf(f, "End\n");
    free(at);
    return layer_ranges;
}

/* The optimum that cbc finds; HUGE_VAL when it says that there is none. */
static double solve(const struct maq_stage_table *t)
{
    char folder[] = "/tmp/maq-compose-XXXXXX", lp[64], out[64], command[256], line[256] = "";
    double value = -1;
    assert_non_null(mkdtemp(folder));
    snprintf(lp, sizeof lp, "%s/p.lp", folder);
    snprintf(out, sizeof out, "%s/p.sol", folder);
    FILE *f = fopen(lp, "w");
    assert_non_null(f);
    uint32_t binaries = write_milp(f, t);
    fclose(f);
    snprintf(command, sizeof command, "cbc %s ratio 0 allow 0 solve solution %s >/dev/null 2>&1", lp, out);
    if (binaries == 0) { /* nothing fits anywhere, and cbc refuses a problem without them */
        snprintf(line, sizeof line, "infeasible");
    } else {
        assert_int_equal(system(command), 0);
        f = fopen(out, "r");
        assert_non_null(f);
        assert_non_null(fgets(line, sizeof line, f));
        fclose(f);
    }
    const char *number = strstr(line, "objective value");
    if (strncmp(line, "Optimal", 7) == 0 && number)
        value = strtod(number + strlen("objective value"), NULL);
    else if (strstr(line, "nfeasible"))
        value = HUGE_VAL;
    remove(lp);
    remove(out);
    rmdir(folder);
    if (value < 0)
        fail_msg("cbc says: %s", line);
    return value;
}

static void equals_a_milp(void **ignored)
{
    uint32_t possible = 0;
    if (system("command -v cbc >/dev/null 2>&1") != 0) {
        print_message("no cbc (Debian's coinor-cbc)\n");
        skip();
    }
    for (uint64_t seed = 0; seed < 60; seed++) {
        const struct random_table r = {.seed = seed, .max_parts = 1, .plain_hops = true};
        struct maq_stage_table t;
        struct maq_arena arena;
        maq_arena_init(&arena, 0);
        assert_true(random_table(&t, &r, 0, &arena));
        double want = solve(&t), got = search_one(&r, 1);
        if (want == HUGE_VAL || got == HUGE_VAL)
            assert_true(want == got);
        else if (!(fabs(got - want) <= 1e-5 * want)) /* cbc prints 8 decimals and stops within its tolerances */
            fail_msg("table %d: %.9g, cbc %.9g", (int)seed, got, want);
        possible += want < HUGE_VAL;
        maq_arena_fini(&arena);
    }
    assert_true(possible > 20);
}

/* ---- pipelines ---- */

/* N equal chains are the composition of N times the wave; chains that are chosen are never worse, and keep to the devices. */
static void chains_hold_the_composition(void **ignored)
{
    uint32_t same = 0, better = 0;
    for (uint64_t seed = 0; seed < TABLES; seed++) {
        const struct random_table r = {.seed = seed, .max_parts = 1, .extra_devices = 6};
        struct maq_stage_table t;
        struct maq_layer_ranges layer_ranges;
        struct maq_arena arena;
        static struct maq_composition best;
        static struct maq_chain_set p;
        maq_arena_init(&arena, 0);
        assert_true(random_table(&t, &r, 0, &arena) && maq_layer_ranges_init(&layer_ranges, &t, &arena));
        uint32_t share = t.options[0].samples, chains = t.wave_samples / share, batch = t.waves * t.wave_samples;
        uint64_t programs = 0, knapsacks = 0;
        brute_force(&best, &t);
        if (best.step_s < HUGE_VAL) {
            p = (struct maq_chain_set){.n_kinds = 1,
                                       .kinds = {{.count = chains, .samples = share, .n_stages = best.n_stages}}};
            memcpy(p.kinds[0].stages, best.stages, best.n_stages * sizeof *best.stages);
            for (uint32_t i = 0; i < best.n_stages; i++)
                p.kinds[0].stages[i].parts[0].replicas /= chains;
            assert_true(maq_chain_set_cost(&p, &t, batch));
            assert_same(p.step_s, best.step_s);
            same++;
            struct maq_chain_stock *pool = maq_chain_stock_new(&t, 2048, &arena);
            assert_true(pool &&
                        maq_chain_stock_collect(pool, &layer_ranges, chains, 1.2 * best.step_s, &programs, &arena));
            assert_true(maq_chain_set_choose(&p, pool, batch, &knapsacks, &arena));
            assert_true(p.step_s <= best.step_s * (1 + 1e-12));
            double step = p.step_s;
            assert_true(maq_chain_set_cost(&p, &t, batch)); /* stands on its own: devices, memory, shares */
            assert_same(p.step_s, step);
            better += step < best.step_s * (1 - 1e-9);
        }
        maq_arena_fini(&arena);
    }
    assert_true(same > TABLES / 2 && better > TABLES / 10);
}

/* Every single pipeline of a small table, and every way to take several of them. */
struct all_chains {
    const struct maq_stage_table *table;
    struct maq_chain at[512];
    uint32_t n, batch;
    double least_s;
    uint64_t tried;
};

static void list_chains(struct all_chains *all, struct maq_composition *c)
{
    const struct maq_stage_table *t = all->table;
    uint32_t first = c->n_stages > 0 ? c->stages[c->n_stages - 1].end : 0;
    for (uint32_t end = first + 1; end <= t->n_atoms; end++)
        for (uint32_t o = 0; o < t->n_options; o++) {
            c->stages[c->n_stages++] =
                (struct maq_stage){.first = first, .end = end, .n_parts = 1, .parts = {{o, maq_replicas(t, o)}}};
            if (end < t->n_atoms) {
                list_chains(all, c);
            } else if (maq_composition_cost(c, t)) {
                assert_true(all->n < sizeof all->at / sizeof *all->at);
                struct maq_chain *chain = &all->at[all->n++];
                *chain = (struct maq_chain){.count = 1, .samples = t->wave_samples, .n_stages = c->n_stages};
                memcpy(chain->stages, c->stages, c->n_stages * sizeof *c->stages);
            }
            c->n_stages--;
        }
}

static void take_chains(struct all_chains *all, struct maq_chain_set *p, uint32_t from)
{
    for (uint32_t i = from; i < all->n && p->n_kinds < MAQ_CHAIN_KINDS; i++) {
        p->kinds[p->n_kinds++] = all->at[i];
        if (maq_chain_set_cost(p, all->table, all->batch)) { /* keeps to the devices */
            all->least_s = fmin(all->least_s, p->step_s);
            all->tried++;
            take_chains(all, p, i);
        }
        p->n_kinds--;
    }
}

/* The bound by columns, and what counting makes of it, is below every plan of several pipelines; close to the best in many tables, so one
 * that says a little too much shows. */
static void no_chains_are_below_the_bound(void **ignored)
{
    uint32_t several = 0, tight = 0, closest = 0, above_work = 0, tables = 0;
    for (uint64_t seed = 0; seed < 4 * TABLES; seed++) {
        const struct random_table r = {.seed = seed, .max_parts = 1};
        struct maq_stage_table t;
        struct maq_arena arena;
        static struct all_chains all;
        static struct maq_composition c;
        static struct maq_chain_set p;
        uint64_t state = seed;
        maq_arena_init(&arena, 0);
        assert_true(random_table(&t, &r, 0, &arena));
        t.n_atoms = 3;
        t.n_options = t.n_options < 3 ? t.n_options : 3;
        t.wave_samples = t.options[0].samples;
        t.max_in_flight = UINT32_MAX;
        if (t.wave_samples == 2 && seed % 2) /* a stage that splits micro batches */
            ((struct maq_stage_option *)t.options)[0].samples = 1;
        for (uint32_t g = 0; g < t.n_kinds; g++) {
            t.available[g] = draw(&state, 1, t.n_kinds > 2 ? 2 : 4);
            t.capacity_bytes[g] *= 1.5;
        }
        all = (struct all_chains){.table = &t, .batch = t.wave_samples * draw(&state, 2, 24), .least_s = HUGE_VAL};
        c.n_stages = p.n_kinds = 0;
        list_chains(&all, &c);
        take_chains(&all, &p, 0);
        double cutoff = all.least_s < HUGE_VAL ? 1.5 * all.least_s : 100, bound = 0, last = 0;
        for (uint32_t ranges = 1; ranges <= 64; ranges *= 8) { /* few ranges: a weaker bound, still a bound */
            const struct maq_chain_bound_options options = {all.batch, cutoff, ranges, ranges > 1, cutoff};
            uint64_t programs = 0;
            assert_true(maq_chain_bound(&bound, &programs, &t, &options, &arena));
            if (!(bound <= all.least_s * (1 + 1e-12)) || bound < 0.99 * last) /* counting bisects */
                fail_msg("table %d, %u ranges: bound %.9g, plan %.9g", (int)seed, ranges, bound, all.least_s);
            last = bound;
        }
        if (all.least_s < HUGE_VAL) {
            double work = (double)all.batch / t.wave_samples * maq_wave_bound(&t);
            tables++;
            several += all.tried > 10;
            tight += bound >= 0.98 * all.least_s;
            closest += bound >= 0.995 * all.least_s;
            above_work += bound > 1.1 * work;
        }
        maq_arena_fini(&arena);
    }
    print_message("# %u tables: within 2 %% of the best in %u, within 0.5 %% in %u\n", tables, tight, closest);
    if (several < TABLES || tight < TABLES / 2 || above_work < tables / 2)
        fail_msg("%u tables, %u with a choice, %u tight, %u above the work", tables, several, tight, above_work);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_brute_force),
        cmocka_unit_test(bounds_change_no_answer),
        cmocka_unit_test(bounds_are_below),
        cmocka_unit_test(counting_finds_the_least_fill),
        cmocka_unit_test(what_is_left_is_below),
        cmocka_unit_test(more_devices_are_never_worse),
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(equals_a_milp),
        cmocka_unit_test(chains_hold_the_composition),
        cmocka_unit_test(no_chains_are_below_the_bound),
    };
    ONLY_UNDER_TSAN("*change_nothing");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
