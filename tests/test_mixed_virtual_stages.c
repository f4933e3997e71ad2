/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_mixed_virtual_stages.c - plans with virtual stages over several node groups: the search leaves none out, and the step
 * that it says of a plan is the simulated one.
 *
 * Oracles: every composition of a small job by the tables' own formulas; the same written down as mixed plans and placed; the rounds of a
 * model counted by hand.
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

#include "base/check.h"
#include "base/str.h"
#include "effort.h"
#include "mixed_brute.h"
#include "plan/schedule/schedule.h"
#include "planner/mixed/virtual_stages.h"
#include "planner/stages/virtual_stages.h"

#define GROUPS                                                                                                         \
    " cluster: {groups: [{device: v100-16gb, nodes: 1, devices_per_node: 2%s},"                                        \
    " {device: t4, nodes: 1, devices_per_node: 2%s}]},"
#define SLOW_PORT ", nics_per_node: 1, nic_rate: 4 Gb/s, fabric: roce"
/* Too large for one device. */
#define SMALL                                                                                                          \
    "{model: {base: gpt2, num_hidden_layers: 12, hidden_size: 2560, num_attention_heads: 20, vocab_size: 8192,"        \
    " intermediate_size: 10240}, workload: {seq: 1024, gbs: 12}," GROUPS                                               \
    " plan: {mbs: 1, precision: fp16, recompute: none, zero: no_shard}, search: {tp: [1], vp: [%s]}}"

static struct searched search(const char *text)
{
    struct maq_mixed_search_opts opts = MAQ_MIXED_SEARCH_OPTS_INIT;
    opts.threads = 1;
    return search_groups(text, &opts);
}

static struct searched search_small(const char *chunks, const char *port)
{
    char text[1024];
    struct maq_mixed_search_opts opts = MAQ_MIXED_SEARCH_OPTS_INIT;
    opts.together_only = true; /* the search of one node group has more layouts */
    snprintf(text, sizeof text, SMALL, port, port, chunks);
    return search_groups(text, &opts);
}

/* ---- every composition ---- */

struct brute {
    struct maq_mixed_run *run;
    const struct maq_chain_wave *wave;
    const struct maq_stage_table *table;
    double best_s, best_simulated_s, most_off; /* closed form; simulated; of the form against the simulated step */
    uint32_t n, n_fit;
};

/* What is written down is what the table says: it fits, and its memory is no more. */
static void look_at(void *brute, const struct maq_composition *at)
{
    struct brute *b = brute;
    struct maq_mixed_search_plan plan;
    struct maq_composition c = *at;
    bool fits = false;
    b->n++;
    if (!maq_composition_cost(&c, b->table))
        return;
    assert_true(maq_mixed_virtual_plan(&plan, b->run, b->wave, &c));
    assert_int_equal(maq_mixed_virtual_simulate(&fits, &plan, b->run, NULL), MAQ_OK);
    assert_true(fits);
    assert_int_equal(plan.n_stages, c.n_stages > 1 ? c.n_stages * b->wave->chunks : 1);
    b->n_fit++;
    b->best_s = fmin(b->best_s, c.step_s);
    b->best_simulated_s = fmin(b->best_simulated_s, plan.step_s);
    b->most_off = fmax(b->most_off, fabs(c.step_s / plan.step_s - 1));
}

static void add_all(struct brute *b)
{
    for (uint32_t w = 0; w < b->run->n_folded; w++) {
        struct maq_arena arena;
        struct maq_stage_table table;
        maq_arena_init(&arena, 0);
        assert_true(maq_chain_costs_table(&table, &b->run->costs, &b->run->chunked[w], &arena));
        b->wave = &b->run->chunked[w];
        b->table = &table;
        look_at_all(&(struct compositions){.table = &table, .look = look_at, .with = b});
        maq_arena_fini(&arena);
    }
}

/* The least of all by the closed form; when simulated, no plan of the space is more than a hundredth faster. */
static void hold_brute_force(const char *chunks, const char *port, double most_off)
{
    struct searched s = search_small(chunks, port);
    struct brute b = {.run = s.result->owner, .best_s = HUGE_VAL, .best_simulated_s = HUGE_VAL};
    add_all(&b);
    assert_true(b.n > 200 && b.n_fit > 50 && s.result->n_plans == 1);
    assert_true(fabs(s.result->composed_s / b.best_s - 1) < 1e-12);
    assert_true(s.result->bound_s <= b.best_s * (1 + 1e-12));
    if (s.result->plans[0].step_s > 1.01 * b.best_simulated_s || b.most_off > most_off)
        fail_msg("vp %s%s: %g s, %g s is there; the form is up to %.1f %% off", chunks, port, s.result->plans[0].step_s,
                 b.best_simulated_s, 100 * b.most_off);
    done(&s);
}

static void test_brute_force(void **state)
{
    (void)state;
    hold_brute_force("2", "", 0.1);
    hold_brute_force("3", "", 0.1);
    hold_brute_force("2, 3", "", 0.1);
    hold_brute_force("2", SLOW_PORT, 0.3); /* where transfers take as long as passes, neither hides the other whole */
    hold_brute_force("2, 3", SLOW_PORT, 0.3);
}

/* ---- the plan ---- */

/* Written down and placed it takes what the search says, to the last bit; its rounds cover the model. */
static void test_as_written(void **state)
{
    (void)state;
    struct searched s = search_small("2", "");
    const struct maq_mixed_search_plan *plan = &s.result->plans[0];
    struct maq_loaded_mixed_plan *box;
    struct maq_mixed_placed *placed;
    assert_int_equal(plan->chunks, 2);
    assert_int_equal(maq_mixed_search_mixed_plan(&box, s.result, 0, NULL), MAQ_OK);
    assert_int_equal(maq_mixed_place(&placed, maq_mixed_plan_get(box), s.job, NULL), MAQ_OK);
    assert_true(placed->step_s == plan->step_s && placed->fits);
    uint32_t p = plan->n_stages / 2, next = 0, devices = 0;
    assert_int_equal(plan->n_stages % 2, 0);
    assert_true(plan->group >= p && plan->microbatches % plan->group == 0);
    for (uint32_t k = 0; k < plan->n_stages; k++) {
        const struct maq_mixed_search_stage *stage = &plan->stages[k];
        assert_int_equal(stage->first_layer, next);
        assert_int_equal(stage->on_devices_of, k < p ? -1 : (int)(k - p));
        assert_true(placed->stages[k].memory_bytes <= stage->memory_bytes * (1 + 1e-9));
        next += stage->layers;
        devices += k < p ? stage->devices : 0;
    }
    assert_int_equal(next, s.result->n_layers);
    assert_int_equal(devices, s.result->islands[0].used + s.result->islands[1].used);
    maq_mixed_placed_free(placed);
    maq_mixed_plan_free(box);
    done(&s);
}

/* With more to choose from no plan is slower, and here one with virtual stages is faster. */
static void test_wins(void **state)
{
    NOT_UNDER_A_SANITIZER();
    (void)state;
#define DEEP(chunks)                                                                                                   \
    "{model: llama-2-7b, workload: {seq: 2048, gbs: 32}, cluster: 'a100-40gb:4 x 2 + v100-32gb:4 x 2',"                \
    " plan: {precision: fp16}, search: {mbs: [1], vp: [" chunks "]}}"
    struct searched plain = search(DEEP("1")), both = search(DEEP("1, 2, 4")), asked = search(DEEP("4"));
    assert_int_equal(plain.result->plans[0].chunks, 1);
    assert_true(both.result->plans[0].step_s < 0.9 * plain.result->plans[0].step_s);
    assert_true(both.result->plans[0].chunks > 1 && both.result->plans[0].step_s <= asked.result->plans[0].step_s);
    assert_true(both.result->bound_s <= plain.result->bound_s && both.result->bound_s <= asked.result->bound_s);
    done(&plain);
    done(&both);
    done(&asked);
}

/* ---- the closed form beside the schedule ---- */

#define MOST_STAGES 8u

/* Stages of one atom each, ms of a chunk, forward a third of it; the last stage's last chunk takes `output` more. */
struct line {
    uint32_t stages, chunks, group, microbatches;
    double even, last, output, hop;
    uint32_t faster; /* stages in front of the last one that take 4/5 of the others */
};

static double of_chunk(const struct line *line, uint32_t stage)
{
    bool last = stage + 1 == line->stages, faster = stage + 1 + line->faster >= line->stages;
    return last ? line->last : faster ? 0.8 * line->even : line->even;
}

static double no_sync(const struct maq_stage_table *t, const struct maq_stage_part *parts, uint32_t n, double bytes,
                      uint32_t ranks)
{
    (void)t, (void)parts, (void)n, (void)bytes, (void)ranks;
    return 0;
}

static double formed(const struct line *line)
{
    double time[MOST_STAGES + 1] = {0}, none[MOST_STAGES + 1] = {0}, hop[MOST_STAGES];
    struct maq_stage_option option = {.devices = 1,
                                      .samples = 1,
                                      .seldom_s = line->output - line->output / line->chunks,
                                      .time_s = time,
                                      .fixed_bytes = none,
                                      .flight_bytes = none,
                                      .sync_bytes = none,
                                      .update_s = none};
    struct maq_stage_table t = {.n_atoms = line->stages,
                                .n_kinds = 1,
                                .n_options = 1,
                                .waves = line->microbatches,
                                .wave_samples = 1,
                                .max_parts = 1,
                                .available = {MOST_STAGES},
                                .capacity_bytes = {1},
                                .options = &option,
                                .hops = {1, 1, 1, 1},
                                .hops_beside = true,
                                .wraps = (line->chunks - 1.0) / line->chunks,
                                .n_hop_classes = 1,
                                .forward_s = hop,
                                .backward_s = hop,
                                .sync_s = no_sync};
    struct maq_composition c = {.n_stages = line->stages};
    maq_chain_chunk_waves(&t, line->chunks, line->group);
    for (uint32_t i = 0; i < line->stages; i++) {
        time[i + 1] = time[i] + of_chunk(line, i) + (i + 1 == line->stages ? line->output / line->chunks : 0);
        hop[i] = line->hop;
        c.stages[i] = (struct maq_stage){.first = i, .end = i + 1, .n_parts = 1, .parts = {{0, 1}}};
    }
    assert_true(maq_composition_cost(&c, &t));
    return c.step_s;
}

static double scheduled(const struct line *line)
{
    uint32_t n = line->stages * line->chunks;
    struct maq_arena arena;
    struct maq_schedule s;
    double makespan;
    maq_arena_init(&arena, 0);
    assert_int_equal(maq_schedule_build(&s, MAQ_SCHEDULE_INTERLEAVED, line->stages, line->chunks, line->microbatches,
                                        line->group, &arena, NULL),
                     MAQ_OK);
    double *dur = MAQ_ARENA_NEW(&arena, double, (size_t)MAQ_TASK_KIND_COUNT *n),
           *hop = MAQ_ARENA_NEW(&arena, double, n), *finish = MAQ_ARENA_NEW(&arena, double, 2 * (size_t)s.n_tasks);
    assert_true(dur && hop && finish);
    for (uint32_t i = 0; i < n; i++) {
        double whole = of_chunk(line, i % line->stages) + (i + 1 == n ? line->output : 0);
        dur[MAQ_TASK_F * n + i] = whole / 3;
        dur[MAQ_TASK_B * n + i] = whole * 2 / 3;
        hop[i] = line->hop;
    }
    maq_schedule_eval(&makespan, finish, &s, 1, &(struct maq_task_times){.dur = dur, .hop = hop, .port = hop});
    maq_arena_fini(&arena);
    return makespan;
}

/* With even stages and as many micro batches in a row as stages the form is the schedule's: rounds wait for transfers. */
static void test_rounds_wait(void **state)
{
    (void)state;
    for (uint32_t stages = 2; stages <= MOST_STAGES; stages *= 2)
        for (uint32_t chunks = 2; chunks <= 4; chunks++)
            for (double hop = 0; hop <= 9; hop += 3) {
                struct line line = {stages, chunks, stages, 4 * stages, 30, 30, 0, hop, 0};
                assert_true(fabs(formed(&line) / scheduled(&line) - 1) < 1e-9);
            }
}

/*
 * Where transfers hold up a pipeline of even stages, a group more takes two of them for each chunk of a stage with neighbours on both sides;
 * of two stages each sends v - 1 over the other's border as well. The form is the schedule's where they take longer than the computation by
 * far, and no longer than it elsewhere.
 */
static void test_ports_wait(void **state)
{
    (void)state;
    for (uint32_t stages = 2; stages <= MOST_STAGES; stages *= 2)
        for (uint32_t chunks = 2; chunks <= 4; chunks++)
            for (double hop = 15; hop <= 60; hop += 15) {
                struct line line = {stages, chunks, stages, 6 * stages, 30, 30, 0, hop, 0}, more = line;
                more.microbatches += stages;
                double form = formed(&more) - formed(&line), plays = scheduled(&more) - scheduled(&line);
                double sends = (stages > 2 ? 2 : 2 - 1.0 / chunks) * hop;
                assert_true(fabs(form - stages * chunks * fmax(30, sends)) < 1e-6);
                assert_true(plays >= form * (1 - 1e-9) && plays <= form * (hop == 60 ? 1 + 1e-9 : 1.15));
            }
}

/* A group more takes what the form says: as much longer as the output holds up the slowest stage, wherever it is: exactly where it is
 * the one in front of the last. */
static uint32_t group_more(uint32_t stages, uint32_t group, uint32_t faster)
{
    uint32_t waits = 0;
    for (double output = 0; output <= 48; output += 12)
        for (double hop = 0; hop <= 6; hop += 3) {
            struct line line = {stages, 3, group, 4 * group, 30, 12, output, hop, faster}, more = line;
            more.microbatches += group;
            double form = formed(&more) - formed(&line), plays = scheduled(&more) - scheduled(&line);
            if (!(fabs(form / plays - 1) <= (faster > 0 ? 0.1 : 1e-9)))
                fail_msg("%u stages, %u faster, groups of %u, output %g, hop %g: %g, not %g", stages, faster, group,
                         output, hop, form, plays);
            waits += form > group * 3 * 30.001;
        }
    return waits;
}

static void test_output_waits(void **state)
{
    (void)state;
    uint32_t waits = 0;
    for (uint32_t stages = 3; stages <= MOST_STAGES; stages++)
        for (uint32_t rounds = 1; rounds <= 2; rounds++)
            for (uint32_t faster = 0; faster + 2 <= stages; faster++)
                waits += group_more(stages, rounds * stages, faster);
    assert_true(waits > 100);
}

/* ---- chunked models ---- */

/* Each atom of the model is in one chunk of one atom of the chunked model, and no chunk of a stage is without atoms. */
static void hold_chunks(struct maq_chain_atoms model, uint32_t chunks)
{
    uint32_t layers = maq_chain_layers(model), n = maq_chain_chunked_atoms(model, chunks), next = 0;
    bool folds = layers % chunks == 0 || (layers + 1) % chunks == 0;
    assert_int_equal(n, folds ? (layers + 1) / chunks : 0);
    for (uint32_t c = 0; c < chunks && n > 0; c++)
        for (uint32_t a = 0; a < n; a++) {
            struct maq_chain_chunk chunk = maq_chain_chunk_of(model, chunks, c, a, a + 1);
            assert_int_equal(chunk.first, next);
            assert_true(chunk.end > chunk.first);
            next = chunk.end;
        }
    assert_int_equal(next, n > 0 ? model.n : 0);
}

static void test_chunks(void **state)
{
    (void)state;
    for (uint32_t layers = 2; layers <= 24; layers++)
        for (uint32_t behind = 1; behind <= 2; behind++)
            for (uint32_t chunks = 2; chunks <= layers; chunks++)
                hold_chunks((struct maq_chain_atoms){layers + 1 + behind, behind}, chunks);
}

static double over(const double *sums, uint32_t first, uint32_t end)
{
    return sums[end] - sums[first];
}

/* Six layers and an output, or five and two atoms behind them, of which the last of three rounds has one layer less. */
enum { ATOMS = 8, CHUNKS = 3, FOLDED = 2 };
static const double sums[ATOMS + 1] = {0, 5, 6, 8, 9, 10, 13, 14, 24}, update[ATOMS] = {0.5};

/* Sums of a column of the chunked model are those of its chunks, and a chunk in flight is no less than the heaviest of them. */
static void hold_columns(struct maq_chain_atoms model, const struct maq_stage_option *mean,
                         const struct maq_stage_option *most)
{
    for (uint32_t first = 0; first < FOLDED; first++)
        for (uint32_t end = first + 1; end <= FOLDED; end++) {
            double all = 0, heaviest = 0, kept = 0, last = 0, output = over(sums, ATOMS - model.behind, ATOMS);
            for (uint32_t c = 0; c < CHUNKS; c++) {
                struct maq_chain_chunk at = maq_chain_chunk_of(model, CHUNKS, c, first, end);
                last = over(sums, at.first, at.end);
                all += last;
                heaviest = fmax(heaviest, last);
                kept = fmax(kept, last - (at.end == ATOMS ? output : 0));
            }
            assert_true(fabs(over(mean->time_s, first, end) - all / CHUNKS) < 1e-12);
            assert_true(fabs(over(mean->sync_bytes, first, end) - all) < 1e-12);
            assert_true(fabs(over(mean->fixed_bytes, first, end) - all - (end == FOLDED ? output : 0)) < 1e-12);
            assert_true(over(most->time_s, first, end) >= heaviest - 1e-12);
            assert_true(over(most->time_s, first, end) >= over(mean->time_s, first, end) - 1e-12);
            assert_true(over(mean->flight_bytes, first, end) >= kept - 1e-12);
        }
}

static void test_columns(void **state)
{
    (void)state;
    const struct maq_chain_column column = {
        .option = {.time_s = sums, .fixed_bytes = sums, .flight_bytes = sums, .sync_bytes = sums, .update_s = update}};
    const struct maq_chain_chunking by_mean = {CHUNKS, false, true}, by_most = {CHUNKS, true, true};
    /* where layers are alike, the last chunk beyond the mean of all: 10, and 1 + 10 for 2 */
    static const double over_mean[] = {0, 10 * 2 / 3.0, (1 + 10 - 2) * 2 / 3.0},
                        seconds[] = {0, 5 + 2 + 3 + 10, 5 + 3 + 2 + (1 + 10 - 2)};
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    for (uint32_t behind = 1; behind <= 2; behind++) {
        const struct maq_chain_atoms model = {ATOMS, behind};
        const struct maq_stage_option *mean = &maq_chain_column_chunks(&column, model, &by_mean, &arena)->option,
                                      *most = &maq_chain_column_chunks(&column, model, &by_most, &arena)->option;
        hold_columns(model, mean, most);
        assert_true(fabs(mean->seldom_s - over_mean[behind]) < 1e-12);
        assert_true(most->seldom_s == 0 && over(most->time_s, 0, FOLDED) == seconds[behind]);
        assert_true(over(mean->flight_bytes, 0, FOLDED) == 5 + 2 + 3);
    }
    maq_arena_fini(&arena);
}

/* ---- what cannot be ---- */

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *plan, *words;
    } cases[] = {{"{vp: 4}", "as many layers in every round of virtual stages, but for one"},
                 {"{schedule: 1f1b, vp: 2}", "interleaved"},
                 {"{schedule: gpipe}", "runs 1F1B or interleaved"},
                 {"{schedule: zb-h1}", "runs 1F1B or interleaved"}};
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        char text[1024];
        struct maq_loaded_job *job = NULL;
        struct maq_mixed_search_result *result;
        struct maq_diag *diag = maq_diag_new();
        struct maq_mixed_search_opts opts = MAQ_MIXED_SEARCH_OPTS_INIT;
        snprintf(text, sizeof text,
                 "{model: {base: gpt2, num_hidden_layers: 6}, workload: {seq: 1024, gbs: 8}," GROUPS " plan: %s}", "",
                 "", cases[i].plan);
        assert_int_equal(maq_job_parse_open(&job, "test", maq_str_of(text), NULL, 0, diag), MAQ_OK);
        assert_int_equal(maq_mixed_search(&result, job, &opts, diag), MAQ_BAD_INPUT);
        char *said = maq_diag_format(diag, 0, false);
        if (!strstr(said, cases[i].words))
            fail_msg("'%s' for %s", said, cases[i].plan);
        free(said);
        maq_diag_free(diag);
        maq_job_free(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_brute_force), cmocka_unit_test(test_as_written), cmocka_unit_test(test_wins),
        cmocka_unit_test(test_rounds_wait), cmocka_unit_test(test_ports_wait), cmocka_unit_test(test_output_waits),
        cmocka_unit_test(test_chunks),      cmocka_unit_test(test_columns),    cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
