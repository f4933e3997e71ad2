/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_mixed_data_parallel.c - pipelines of several node groups side by side: the shares found are the best there are, and
 * what is written is what was found.
 *
 * maq-test: threads
 *
 * Oracles: every composition of every group, costed by the equations of planner/mixed/data_parallel.h, with every number of replicas
 * and every way to deal the micro batches; the plan written down and placed.
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
#include "mixed_brute.h"
#include "planner/mixed/data_parallel.h"

/* Two kinds of nodes behind a slow network: hops cost more than gradients. */
#define CLUSTER                                                                                                        \
    " cluster: {groups: [{device: a100-40gb, nodes: 1, devices_per_node: 2, fabric: {base: ethernet-100, rate: %s}},"  \
    " {device: v100-32gb, nodes: 1, devices_per_node: %u, fabric: {base: ethernet-100, rate: %s}}]},"
#define JOB                                                                                                            \
    "{model: {base: gpt2, num_hidden_layers: 3, tie_word_embeddings: false}, workload: {seq: 1024, gbs: %u}," CLUSTER  \
    " plan: {mbs: 8, precision: fp16, recompute: none, zero: no_shard}, search: {tp: [1], vp: [1]}}"

static struct searched search(uint32_t gbs, uint32_t devices, const char *rate, uint32_t threads)
{
    char text[2048];
    struct maq_mixed_search_opts opts = MAQ_MIXED_SEARCH_OPTS_INIT;
    opts.threads = threads;
    snprintf(text, sizeof text, JOB, gbs, rate, devices, rate);
    return search_groups(text, &opts);
}

/* ---- every composition of a group ---- */

struct brute {
    struct maq_mixed_run *run;
    const struct maq_stage_table *table;
    uint32_t group, other, ranks, waves;
    double best_s;
};

/* T of the head of planner/mixed/data_parallel.h. */
static void look_at(void *brute, const struct maq_composition *at)
{
    struct brute *b = brute;
    struct maq_composition c = *at;
    double sync = 0;
    if (!maq_composition_cost(&c, b->table))
        return;
    for (uint32_t i = 0; i < c.n_stages; i++) {
        const struct maq_stage_option *o = &b->table->options[c.stages[i].parts[0].option];
        double bytes = o->sync_bytes[c.stages[i].end] - o->sync_bytes[c.stages[i].first];
        sync =
            fmax(sync, c.stages[i].sync_s + maq_pools_between_s(&b->run->costs.groups, b->group, b->other,
                                                                2.0 * (b->ranks - 1) / b->ranks * bytes, o->devices));
    }
    b->best_s = fmin(b->best_s, (b->waves - 1) * c.bottleneck_s + c.fill_s + sync + c.update_s);
}

/* The least step of a group with a wave's replicas and so many micro batches. */
static double step_of(struct maq_mixed_run *run, uint32_t group, uint32_t wave, uint32_t ranks, uint32_t waves)
{
    struct maq_arena arena;
    struct maq_stage_table table;
    maq_arena_init(&arena, 0);
    run->costs.pools_used = 1u << group;
    assert_true(maq_chain_costs_table(&table, &run->costs, &run->waves[wave], &arena));
    run->costs.pools_used = UINT32_MAX;
    struct brute b = {run, &table, group, 1 - group, ranks, waves, HUGE_VAL};
    look_at_all(&(struct compositions){.table = &table, .look = look_at, .with = &b});
    maq_arena_fini(&arena);
    return b.best_s;
}

/* The most that is below a limit is what counting says. */
static void test_most(void **state)
{
    struct searched s = search(96, 2, "100 Gb/s", 1);
    struct maq_mixed_run *run = s.result->owner;
    uint32_t some = 0, none = 0;
    for (uint32_t group = 0; group < 2; group++)
        for (uint32_t wave = 0; wave < run->n_waves; wave++)
            for (uint32_t k = 1; k < 12; k++) {
                struct maq_mixed_share share;
                double limit = s.result->plans[0].step_s * k / 6;
                uint32_t most = 0;
                struct maq_mixed_share_query ask = {group, wave, 3, 3, 0, limit};
                assert_true(maq_mixed_share_largest(&share, run, &ask, &run->arena));
                uint32_t replicas = run->waves[wave].replicas, all = (12 + replicas - 1) / replicas;
                while (most < all && step_of(run, group, wave, 3, most + 1) < limit)
                    most++;
                assert_int_equal(share.found ? share.waves : 0, most);
                for (ask.least = 2; ask.least <= all; ask.least++) { /* less than the least is nothing */
                    assert_true(maq_mixed_share_largest(&share, run, &ask, &run->arena));
                    assert_int_equal(share.found ? share.waves : 0, most >= ask.least ? most : 0);
                    assert_true(!share.found || share.run_s < limit);
                }
                some += most > 0;
                none += most == 0;
            }
    if (some < 20 || none < 5)
        fail_msg("%u, %u without any", some, none);
    done(&s);
}

/* With virtual stages and pipelines over both groups out of the way: all ways to deal. */
static double best_shares(struct maq_mixed_run *run, uint32_t total)
{
    double best = HUGE_VAL;
    for (uint32_t a = 0; a < run->n_waves; a++)
        for (uint32_t b = 0; b < run->n_waves; b++) {
            uint32_t da = run->waves[a].replicas, db = run->waves[b].replicas;
            for (uint32_t m = 1; m * da < total; m++) {
                uint32_t left = total - m * da, waves = (left + db - 1) / db;
                best = fmin(best, fmax(step_of(run, 0, a, da + db, m), step_of(run, 1, b, da + db, waves)));
            }
        }
    return best;
}

static void test_brute_force(void **state)
{
    static const struct {
        uint32_t gbs, devices;
        const char *rate;
    } cases[] = {{800, 2, "100 Gb/s"}, {792, 1, "100 Gb/s"}, {160, 2, "10 Gb/s"}};
    uint32_t shared = 0;
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct searched s = search(cases[i].gbs, cases[i].devices, cases[i].rate, 1);
        const struct maq_mixed_search_plan *plan = &s.result->plans[0];
        double best = best_shares(s.result->owner, cases[i].gbs / 8);
        assert_true(s.result->bound_s <= best * (1 + 1e-9));
        if (plan->n_pipelines > 1)
            assert_true(fabs(plan->composed_s / best - 1) < 1e-6);
        shared += plan->n_pipelines > 1;
        done(&s);
    }
    assert_true(shared > 0);
}

/* ---- plans ---- */

static void test_as_written(void **state)
{
    struct searched s = search(808, 2, "100 Gb/s", 1), again = search(808, 2, "100 Gb/s", 3);
    const struct maq_mixed_search_plan *plan = &s.result->plans[0];
    struct maq_mixed_search_predicted predicted;
    struct maq_loaded_mixed_plan *box, *read;
    struct maq_mixed_placed *placed;
    uint32_t dealt = 0;
    char *json;
    assert_true(plan->n_pipelines == 2 && plan->pipelines);
    for (uint32_t i = 0; i < 2; i++)
        dealt += plan->pipelines[i].replicas * plan->pipelines[i].microbatches - plan->pipelines[i].fewer;
    assert_int_equal(dealt, 101);
    assert_true(plan->pipelines[0].microbatches > plan->pipelines[1].microbatches); /* an A100 does more than a V100 */
    assert_int_equal(maq_mixed_search_mixed_plan(&box, s.result, 0, NULL), MAQ_OK);
    assert_int_equal(maq_mixed_plan_write(&json, maq_mixed_plan_get(box), NULL), MAQ_OK);
    assert_int_equal(maq_mixed_plan_parse(&read, "written", maq_str_of(json), NULL), MAQ_OK);
    assert_int_equal(maq_mixed_place(&placed, maq_mixed_plan_get(read), s.job, NULL), MAQ_OK);
    assert_int_equal(maq_mixed_search_predict(&predicted, maq_mixed_plan_get(read), s.job, NULL), MAQ_OK);
    assert_true(placed->fits && placed->step_s == plan->step_s && predicted.step_s == plan->step_s);
    assert_true(fabs(plan->composed_s / plan->step_s - 1) < 0.05);
    assert_true(again.result->plans[0].step_s == plan->step_s && again.result->bound_s == s.result->bound_s);
    free(json);
    maq_mixed_placed_free(placed);
    maq_mixed_plan_free(read);
    maq_mixed_plan_free(box);
    done(&s);
    done(&again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_most), cmocka_unit_test(test_brute_force),
                                       cmocka_unit_test(test_as_written)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
