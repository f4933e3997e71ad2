/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_mixed_search.c - plans over several node groups: nothing is left out, more devices never hurt, threads change nothing. threads
 *
 * Oracles: every composition of a tiny job costed by the table's own formulas (maq_composition_cost); a homogeneous plan written down as
 * a composition of one pool, and what maq_train_predict() says of it. maq-test: long
 */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
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
#include "maquette/report.h"
#include "mixed_brute.h"
#include "planner/mixed/feasibility.h"
#include "planner/mixed/local_search.h"
#include "planner/mixed/search_state.h"
#include "random_draws.h"

#define TINY                                                                                                           \
    "{model: {base: gpt2, num_hidden_layers: 3}, workload: {seq: 1024, gbs: 8},"                                       \
    " cluster: {groups: [{device: v100-16gb, nodes: 1, devices_per_node: 2},"                                          \
    " {device: t4, nodes: 1, devices_per_node: 2}]}, plan: {mbs: 2, precision: fp16}}"

static struct searched search(const char *text, uint32_t threads, uint32_t top)
{
    struct maq_mixed_search_opts opts = MAQ_MIXED_SEARCH_OPTS_INIT;
    opts.threads = threads;
    opts.top = top;
    return search_groups(text, &opts);
}

/* ---- brute force ---- */

struct brute {
    const struct maq_stage_table *table;
    double best_s;
    uint64_t n;
};

static void look_at(void *brute, const struct maq_composition *at)
{
    struct brute *b = brute;
    struct maq_composition c = *at;
    b->n++;
    if (maq_composition_cost(&c, b->table) && c.step_s < b->best_s)
        b->best_s = c.step_s;
}

static void add_all(struct brute *b, const struct maq_stage_table *table)
{
    b->table = table;
    look_at_all(&(struct compositions){.table = table, .look = look_at, .with = b});
}

/* Four devices: no more than four stages. */
static void test_brute_force(void **state)
{
    struct searched s = search(TINY, 1, 1);
    const struct maq_mixed_run *run = s.result->owner;
    struct brute b = {.best_s = HUGE_VAL};
    assert_true(s.result->n_plans == 1 && s.result->exact);
    for (uint32_t w = 0; w < run->n_waves; w++) {
        struct maq_arena arena;
        struct maq_stage_table table;
        maq_arena_init(&arena, 0);
        assert_true(maq_mixed_run_table(&table, run, w, &arena));
        add_all(&b, &table);
        maq_arena_fini(&arena);
    }
    assert_true(b.n > 1000);
    assert_true(fabs(s.result->composed_s / b.best_s - 1) < 1e-12);
    assert_true(s.result->bound_s <= b.best_s * (1 + 1e-12));
    done(&s);
}

/* ---- near what is found ---- */

/* Slow links and uneven stages in one node: what waits for what depends on the order. */
#define SLOW_HOPS                                                                                                      \
    "{model: {base: gpt2, hidden_size: 1536}, workload: {seq: 1024, gbs: 16},"                                         \
    " cluster: {groups: [{device: v100-16gb, nodes: 1, devices_per_node: 8, domain_bandwidth: 1 GB/s},"                \
    " {device: t4, nodes: 1, devices_per_node: 2, domain_bandwidth: 1 GB/s}]},"                                        \
    " plan: {mbs: 1, precision: fp16}, search: {tp: [1, 2], recompute: [none, full], sharding: [no_shard]}}"

static double play(const struct maq_mixed_run *run, const struct maq_chain_wave *wave, const struct maq_composition *c,
                   const struct maq_stage_table *table)
{
    struct maq_chain_simulated simulated;
    assert_int_equal(maq_chain_costs_simulate(&simulated, &run->costs, wave, c, table), MAQ_OK);
    return simulated.step_s;
}

/* Two stages and their layers in each other's place; false: no composition, or more than 0.1 % longer by the form. */
static bool exchange(struct maq_composition *c, uint32_t i, uint32_t j, double form_s,
                     const struct maq_stage_table *table)
{
    uint32_t sizes[MAQ_STAGE_DEPTH], atom = 0;
    for (uint32_t k = 0; k < c->n_stages; k++)
        sizes[k] = c->stages[k].end - c->stages[k].first;
    struct maq_stage was = c->stages[i];
    c->stages[i] = c->stages[j];
    c->stages[j] = was;
    for (uint32_t k = 0; k < c->n_stages; k++) {
        c->stages[k].first = atom;
        c->stages[k].end = atom += sizes[k == i ? j : k == j ? i : k];
    }
    return maq_composition_cost(c, table) && c->step_s <= form_s * 1.001;
}

struct counted {
    const struct maq_mixed_run *run;
    const struct maq_stage_table *table;
    uint32_t plays;
};

static enum maq_status count_play(struct maq_chain_simulated *out, void *context, const struct maq_composition *c)
{
    struct counted *n = context;
    n->plays++;
    return maq_chain_costs_simulate(out, &n->run->costs, &n->run->waves[0], c, n->table);
}

/* A drawn pipeline; false: no composition. */
static bool draw_pipeline(struct maq_composition *c, uint64_t *seed, const struct maq_stage_table *table,
                          uint32_t replicas)
{
    uint32_t n = 3 + (uint32_t)(next_random(seed) % 3), atom = 0;
    *c = (struct maq_composition){.n_stages = n};
    for (uint32_t k = 0; k < n; k++) {
        uint32_t option = (uint32_t)(next_random(seed) % table->n_options), left = table->n_atoms - atom - (n - 1 - k);
        uint32_t size = k + 1 == n ? left : 1 + (uint32_t)(next_random(seed) % (2 * left / (n - k)));
        size = size < left ? size : left;
        c->stages[k] =
            (struct maq_stage){.first = atom, .end = atom + size, .n_parts = 1, .parts = {{option, replicas}}};
        atom += size;
    }
    return maq_composition_cost(c, table);
}

/* No plan that is one move away is faster when simulated. */
static void assert_fastest(const struct maq_composition *c, double step_s, double form_s, const struct counted *n)
{
    struct maq_composition *other = malloc(sizeof *other);
    const struct maq_stage_table *t = n->table;
    assert_non_null(other);
    for (uint32_t i = 0; i < c->n_stages; i++) {
        const struct maq_stage_option *is = &t->options[c->stages[i].parts[0].option];
        for (uint32_t j = i + 1; j < c->n_stages; j++) {
            *other = *c;
            if (is->kind == t->options[c->stages[j].parts[0].option].kind && exchange(other, i, j, form_s, t))
                assert_true(play(n->run, &n->run->waves[0], other, t) >= step_s);
        }
        for (int by = -1; by <= 1 && i > 0; by += 2) {
            *other = *c;
            other->stages[i - 1].end = other->stages[i].first += (uint32_t)by;
            if (other->stages[i].first > other->stages[i - 1].first && other->stages[i].end > other->stages[i].first &&
                maq_composition_cost(other, t) && other->step_s <= form_s * 1.02)
                assert_true(play(n->run, &n->run->waves[0], other, t) >= step_s);
        }
        const uint32_t now = c->stages[i].parts[0].option;
        for (uint32_t o = 0; o < t->n_options; o++) {
            *other = *c;
            other->stages[i].parts[0].option = o;
            if (t->options[o].kind != is->kind || t->options[o].devices > is->devices ||
                !maq_composition_cost(other, t) || other->step_s > form_s * 1.02)
                continue;
            const double s = play(n->run, &n->run->waves[0], other, t);
            assert_true(s >= step_s);
            if (o < now && t->options[o].devices == is->devices) /* the first of those that are as fast */
                assert_true(s > step_s);
        }
    }
    free(other);
}

/* Random pipelines: the plan that the local search returns is little longer by the closed form and no slower when simulated, and no
 * plan near it is faster. */
static void test_nearby(void **state)
{
    struct searched s = search(SLOW_HOPS, 1, 1);
    struct maq_mixed_run *run = s.result->owner;
    struct maq_stage_table table;
    struct maq_composition *c = malloc(sizeof *c);
    uint64_t seed = 1;
    unsigned drawn = 0, better = 0, settled = 0;
    assert_non_null(c);
    assert_true(maq_mixed_run_table(&table, run, 0, &run->arena));
    for (int t = 0; t < EFFORT(40, 200, 400); t++) {
        if (!draw_pipeline(c, &seed, &table, run->waves[0].replicas))
            continue;
        const double form_s = c->step_s, before = play(run, &run->waves[0], c, &table);
        struct counted counted = {run, &table, 0};
        const struct maq_mixed_local_search near = {&table, count_play, &counted};
        struct maq_chain_simulated simulated;
        assert_int_equal(maq_chain_costs_simulate(&simulated, &run->costs, &run->waves[0], c, &table), MAQ_OK);
        assert_int_equal(maq_mixed_local_search(c, &simulated, &near, &run->arena), MAQ_OK);
        assert_true(simulated.step_s <= before && c->step_s <= form_s * 1.02);
        assert_true(simulated.step_s == play(run, &run->waves[0], c, &table));
        bool all = counted.plays < 160; /* otherwise it gave up */
        if (all)
            assert_fastest(c, simulated.step_s, form_s, &counted);
        drawn++;
        settled += all;
        better += simulated.step_s < before * 0.999;
    }
    print_message("%u pipelines, %u play faster nearby, %u are settled\n", drawn, better, settled);
    assert_true(drawn > (SANITIZED ? 9u : 30u) && better > 0 && settled > drawn / 2);
    free(c);
    done(&s);
}

/* ---- ways that are of no use ---- */

/* Two layers with experts on two devices each: many ways, few of them worth having. */
#define MANY_STRATEGIES                                                                                                \
    "{model: {base: mixtral-8x7b, num_layers: 1, hidden_size: 1024}, workload: {seq: 1024, gbs: 4},"                   \
    " cluster: {groups: [{device: v100-16gb, nodes: 1, devices_per_node: 2},"                                          \
    " {device: t4, nodes: 1, devices_per_node: 2}]}, plan: {mbs: 1, precision: fp16},"                                 \
    " search: {cp: [1, 2], cp_comm_type: [p2p, all_gather], recompute: [none, moe, full],"                             \
    " sharding: [no_shard, optim, optim_grads]}}"

/* The best of all waves, with the ways that another beats in everything and without them. */
static double best_of(struct maq_mixed_run *run, bool keep_useless, uint64_t *options)
{
    struct maq_chain_costs costs;
    struct brute b = {.best_s = HUGE_VAL};
    assert_int_equal(maq_chain_costs_init(&costs, &run->space, NULL), MAQ_OK);
    costs.keep_useless = keep_useless;
    for (uint32_t w = 0; w < run->n_waves; w++) {
        struct maq_arena arena;
        struct maq_stage_table table;
        maq_arena_init(&arena, 0);
        assert_true(maq_chain_costs_table(&table, &costs, &run->waves[w], &arena));
        *options += table.n_options;
        add_all(&b, &table);
        maq_arena_fini(&arena);
    }
    maq_chain_costs_fini(&costs);
    return b.best_s;
}

static void test_useless(void **state)
{
    struct searched s = search(MANY_STRATEGIES, 1, 1);
    uint64_t kept = 0, all = 0;
    double with = best_of(s.result->owner, true, &all), without = best_of(s.result->owner, false, &kept);
    print_message("%llu ways, %llu of them of use\n", (unsigned long long)all, (unsigned long long)kept);
    assert_true(kept > 0 && kept < all);
    assert_true(fabs(with / without - 1) < 1e-12);
    assert_true(fabs(s.result->composed_s / with - 1) < 1e-12);
    done(&s);
}

/* ---- one pool ---- */

/* A job whose plan is settled, but for the number of stages: as `maquette train` predicts it, and as a composition of node groups. */
struct alone {
    const char *job; /* without the closing braces of its plan */
    int32_t pp;
};

#define V100(model, layers, gbs, plan)                                                                                 \
    "{model: {base: " model ", num_layers: " layers "}, workload: {seq: 2048, gbs: " gbs "},"                          \
    " cluster: {groups: [{device: v100-16gb, nodes: 2, devices_per_node: 4}]}, plan: {precision: fp16, " plan
#define TWO(one, other, layers, gbs, plan)                                                                             \
    "{model: {base: gpt3-5b, num_layers: " layers "}, workload: {seq: 2048, gbs: " gbs "},"                            \
    " cluster: {groups: [{device: " one ", nodes: 1, devices_per_node: 4}, {group_name: other, device: " other         \
    ", nodes: 1, devices_per_node: 4}]}, plan: {precision: fp16, " plan
#define H100(model, layers, nodes, gbs, plan)                                                                          \
    "{model: {base: " model ", num_layers: " layers "}, workload: {seq: 4096, gbs: " gbs "},"                          \
    " cluster: {groups: [{device: h100-sxm, nodes: " nodes ", devices_per_node: 8}]}, plan: {" plan

static const struct alone alone[] = {
    {TWO("v100-32gb", "v100-32gb", "4", "32", "mbs: 1, tp: 4, recompute: none, sharding: no_shard"), 2},
    {TWO("v100-32gb", "t4", "4", "32", "mbs: 1, tp: 4, recompute: full, sharding: no_shard"), 2},
    {TWO("a100-80gb", "v100-32gb", "8", "32", "mbs: 1, tp: 2, recompute: none, sharding: optim"), 2},
    {TWO("a100-80gb", "v100-32gb", "8", "32", "mbs: 1, tp: 2, recompute: none, sharding: no_shard"), 4},
    {V100("gpt3-5b", "6", "32", "mbs: 1, tp: 2, recompute: full, sharding: no_shard"), 2},
    {V100("gpt3-5b", "6", "32", "mbs: 1, tp: 2, recompute: full, sharding: optim"), 2},
    {V100("gpt2-medium", "14", "64", "mbs: 1, tp: 1, recompute: none, sharding: no_shard"), 2},
    {V100("gpt2-medium", "16", "64",
          "mbs: 2, tp: 2, recompute: selective, recompute_modules: [core_attn], sharding: optim"),
     4},
    {H100("llama-3.1-8b", "16", "1", "16", "mbs: 1, tp: 2, cp: 2, cp_comm_type: a2a, recompute: none, sharding: optim"),
     2},
    {H100("llama-3.1-8b", "16", "1", "16", "mbs: 1, tp: 1, recompute: none, sharding: optim_grads"), 2},
    {H100("llama-3.1-8b", "16", "1", "64", "mbs: 1, tp: 1, recompute: full, sharding: optim_grads_params"), 1},
    {H100("llama-3.1-8b", "16", "1", "64", "mbs: 1, tp: 4, recompute: none, sharding: optim"), 1},
    {H100("mixtral-8x7b", "8", "2", "64", "mbs: 1, tp: 1, ep: 4, etp: 1, recompute: none, sharding: optim"), 2},
    {H100("mixtral-8x7b", "8", "2", "64",
          "mbs: 1, tp: 2, ep: 8, etp: 1, recompute: selective, recompute_modules: [moe], sharding: optim"),
     2},
    {H100("qwen3-30b-a3b", "8", "1", "32", "mbs: 1, tp: 1, ep: 4, etp: 1, recompute: none, sharding: optim"), 2},
    {H100("llama-3.1-8b", "8", "2", "64",
          "mbs: 1, tp: 1, recompute: none, sharding: optim, num_distributed_optimizer_instances: 2"),
     2},
    {H100("llama-3.1-8b", "8", "2", "64",
          "mbs: 1, tp: 1, recompute: none, sharding: optim_grads, num_distributed_optimizer_instances: 4"),
     1},
    {H100("llama-3.1-8b", "16", "1", "16",
          "mbs: 1, tp: 2, recompute: none, sharding: optim, cpu_offloading_num_layers: 16"),
     2},
    {V100("gpt2-medium", "16", "64",
          "mbs: 2, tp: 1, recompute: none, sharding: no_shard, cpu_offloading_num_layers: 16"),
     4},
    {H100("llama-3.1-8b", "8", "1", "16",
          "mbs: 1, tp: 2, recompute: none, sharding: optim, optimizer_offload_fraction: 1"),
     2},
    {H100("qwen3-30b-a3b", "8", "1", "32",
          "mbs: 1, tp: 1, ep: 4, etp: 1, recompute: none, sharding: optim, fine_grained_activation_offloading: true,"
          " offload_modules: [core_attn, attn_proj, expert_fc1]"),
     2},
    {V100("gpt2-medium", "16", "64",
          "mbs: 2, tp: 1, recompute: selective, recompute_modules: [layernorm], sharding: no_shard,"
          " fine_grained_activation_offloading: true, offload_modules: [qkv_linear, core_attn]"),
     4},
};

/* The same stages and replicas of the one way that the plan leaves. */
static void compose_like(double *closed_s, struct maq_chain_simulated *simulated, const struct maq_mixed_run *run,
                         const struct maq_job *job)
{
    struct maq_arena arena;
    struct maq_stage_table table;
    struct maq_composition c = {.n_stages = job->n_virtual};
    struct maq_chain_wave wave = {.replicas = (uint32_t)job->dp};
    uint32_t atom = 0;
    maq_arena_init(&arena, 0);
    assert_true(maq_chain_costs_table(&table, &run->costs, &wave, &arena));
    assert_int_equal(table.n_options, run->costs.n_pools);
    for (uint32_t v = 0; v < job->n_virtual; v++) {
        const struct maq_virtual_stage *is = &job->virtual_stages[v];
        uint32_t option = job->stages[v].group; /* one way in each pool */
        uint32_t end = atom + (uint32_t)is->n_layers + is->embedding + is->output;
        c.stages[v] = (struct maq_stage){.first = atom, .end = end, .n_parts = 1, .parts = {{option, wave.replicas}}};
        assert_int_equal(table.options[option].kind, option);
        atom = end;
    }
    assert_int_equal(atom, table.n_atoms);
    assert_true(maq_composition_cost(&c, &table));
    assert_int_equal(maq_chain_costs_simulate(simulated, &run->costs, &wave, &c, &table), MAQ_OK);
    *closed_s = c.step_s;
    maq_arena_fini(&arena);
}

static void check_alone(const struct alone *a)
{
    char text[1024], pp[16];
    struct maq_diag *diag = maq_diag_new();
    struct maq_loaded_job *job = NULL;
    struct maq_train_result *train = NULL;
    struct maq_chain_simulated simulated;
    double closed_s;
    snprintf(text, sizeof text, "%s}}", a->job);
    snprintf(pp, sizeof pp, "%d", a->pp);
    struct searched s = search(text, 1, 1);
    const struct maq_override stages[] = {{"--pp", "plan.pp", pp}};
    if (maq_job_parse(&job, "test", maq_str_of(text), stages, 1, diag) != MAQ_OK ||
        maq_train_predict(&train, maq_job_get(job), diag) != MAQ_OK)
        fail_msg("%s\n%s", text, maq_diag_format(diag, 0, false));
    compose_like(&closed_s, &simulated, s.result->owner, maq_job_get(job));
    print_message("train %.6f s, simulated %+.3f %%, closed form %+.2f %%  %s\n", train->step_s,
                  100 * (simulated.step_s / train->step_s - 1), 100 * (closed_s / train->step_s - 1),
                  strchr(text, ','));
    assert_true(fabs(simulated.step_s / train->step_s - 1) < 0.001);
    /* what planner/stages/stage_costs.h simplifies; most on one kind of node are the 2.04 % of 32 experts on a rank: slots of hops, and the first
     * stage's synchronization by its bytes */
    assert_true(fabs(closed_s / train->step_s - 1) < (maq_job_get(job)->cluster.n_groups == 1 ? 0.025 : 0.05));
    assert_true(simulated.fits == train->fits);
    maq_train_result_free(train);
    maq_job_free(job);
    maq_diag_free(diag);
    done(&s);
}

static void test_one_pool(void **state)
{
    for (size_t i = 0; i < MAQ_COUNT(alone); i++)
        check_alone(&alone[i]);
}

/* ---- properties ---- */

#define NODES(v100, t4)                                                                                                \
    "{model: {base: gpt2-medium, num_hidden_layers: 12}, workload: {seq: 1024, gbs: 16},"                              \
    " cluster: {groups: [{device: v100-16gb, nodes: " #v100 ", devices_per_node: 2},"                                  \
    " {device: t4, nodes: " #t4 ", devices_per_node: 2}]}, plan: {mbs: 1, tp: 1, precision: fp16}}"

/* Not quite never: a step waits for the slowest of all devices, 0.8 % x the expected maximum of a few more normal ones. */
static void test_more_devices(void **state)
{
    struct searched few = search(NODES(1, 1), 1, 1), more = search(NODES(2, 1), 1, 1), most = search(NODES(2, 2), 1, 1);
    assert_true(few.result->exact && more.result->exact && most.result->exact);
    assert_true(more.result->composed_s <= few.result->composed_s * 1.005);
    assert_true(most.result->composed_s <= more.result->composed_s * 1.005);
    for (uint32_t g = 0; g < 2; g++)
        if (few.result->islands[g].alone_s > 0)
            assert_true(few.result->composed_s <= few.result->islands[g].alone_composed_s);
    done(&few);
    done(&more);
    done(&most);
}

static void test_threads(void **state)
{
    char *text[2];
    struct maq_diag *diag = maq_diag_new();
    for (uint32_t i = 0; i < 2; i++) {
        struct searched s = search(NODES(2, 2), i == 0 ? 1 : 4, 3);
        const struct maq_report_mixed plan = {.open = s.job, .search = s.result};
        assert_int_equal(maq_report_mixed_json(&text[i], &plan, NULL, diag), MAQ_OK);
        done(&s);
    }
    assert_string_equal(text[0], text[1]);
    free(text[0]);
    free(text[1]);
    maq_diag_free(diag);
}

/* The written plan covers all layers, and its devices are those that the islands are said to give. */
static void test_mixed_plan(void **state)
{
    struct searched s = search(NODES(1, 1), 1, 1);
    struct maq_diag *diag = maq_diag_new();
    struct maq_loaded_mixed_plan *box, *again;
    char *text;
    assert_int_equal(maq_mixed_search_mixed_plan(&box, s.result, 0, diag), MAQ_OK);
    assert_int_equal(maq_mixed_plan_write(&text, maq_mixed_plan_get(box), diag), MAQ_OK);
    if (maq_mixed_plan_parse(&again, "written", maq_str_of(text), diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    const struct maq_mixed_plan *p = maq_mixed_plan_get(again);
    uint32_t devices = 0, used = 0;
    for (uint32_t i = 0; i < p->pipelines[0].n_stages; i++)
        for (uint32_t k = 0; k < p->pipelines[0].stages[i].n_replicas; k++)
            devices += p->pipelines[0].stages[i].replicas[k].tp;
    for (uint32_t g = 0; g < s.result->n_islands; g++)
        used += s.result->islands[g].used;
    assert_int_equal(p->layers, s.result->n_layers);
    assert_int_equal(devices, used);
    assert_int_equal(maq_mixed_search_mixed_plan(&box, s.result, 1, diag), MAQ_USAGE);
    free(text);
    maq_mixed_plan_free(again);
    maq_mixed_plan_free(box);
    maq_diag_free(diag);
    done(&s);
}

/* Written, read back and predicted, every plan that a search lists is what the search says of it. */
static uint32_t predicted_as_found(const char *text)
{
    struct searched s = search(text, 1, 4);
    struct maq_diag *diag = maq_diag_new();
    uint32_t told = 0;
    assert_true(s.result->n_plans > 1);
    for (uint32_t i = 0; i < s.result->n_plans; i++) {
        struct maq_loaded_mixed_plan *box, *again;
        struct maq_mixed_search_predicted p;
        char *json;
        assert_int_equal(maq_mixed_search_mixed_plan(&box, s.result, i, diag), MAQ_OK);
        assert_int_equal(maq_mixed_plan_write(&json, maq_mixed_plan_get(box), diag), MAQ_OK);
        if (maq_mixed_plan_parse(&again, "written", maq_str_of(json), diag) != MAQ_OK ||
            maq_mixed_search_predict(&p, maq_mixed_plan_get(again), s.job, diag) != MAQ_OK)
            fail_msg("%s\n%s", json, maq_diag_format(diag, 0, false));
        assert_true(p.step_s == s.result->plans[i].step_s && p.fits);
        if (s.result->plans[i].bottleneck_s > 0) /* one node group alone is not composed */
            assert_true(fabs(p.composed_s / s.result->plans[i].composed_s - 1) < 1e-12);
        const struct maq_mixed_pipeline *line = &maq_mixed_plan_get(again)->pipelines[0];
        for (uint32_t k = 0; k < line->n_stages; k++)
            told |= (line->stages[k].recompute_parts > 0) | (line->stages[k].replicas[0].etp > 0) << 1 |
                    (line->stages[k].replicas[0].cp_comm != MAQ_CP_P2P) << 2 |
                    (line->stages[k].optimizer_offload > 0) << 3 | (line->stages[k].optimizer_instances > 1) << 5 |
                    (line->stages[k].offload_layers > 0) << 6 | (line->stages[k].replicas[0].ep > 1) << 4 |
                    (line->stages[k].on_devices_of >= 0) << 7 | (line->stages[k].offload_modules > 0) << 8;
        free(json);
        maq_mixed_plan_free(again);
        maq_mixed_plan_free(box);
    }
    maq_diag_free(diag);
    done(&s);
    return told;
}

#define EXPERTS(plan)                                                                                                  \
    "{model: {base: mixtral-8x7b, num_layers: 4, hidden_size: 1024}, workload: {seq: 4096, gbs: 8},"                   \
    " cluster: {groups: [{device: v100-16gb, nodes: 2, devices_per_node: 4},"                                          \
    " {device: t4, nodes: 1, devices_per_node: 4}]}, plan: {mbs: 1, precision: fp16, " plan "}}"

static void test_predicted(void **state)
{
    static const struct {
        const char *job;
        uint32_t looked_at, told;
    } cases[] = {
        {EXPERTS("tp: 2, ep: 2, etp: 1, recompute: selective, recompute_modules: [moe]"), 19, 19},
        {NODES(1, 1), 30, 0},
        {EXPERTS("tp: 1, cp: 2, cp_comm_type: all_gather, recompute: selective"), 5, 5},
        {"{model: llama-2-7b, workload: {seq: 2048, gbs: 32}, cluster: 'a100-40gb:4 x 2 + v100-32gb:4 x 2',"
         " plan: {precision: fp16}, search: {mbs: [1], vp: [2, 4]}}",
         128, 128},
        {EXPERTS("tp: 2, sharding: optim, optimizer_offload_fraction: 1"), 8, 8},
        {EXPERTS("tp: 1, sharding: optim, num_distributed_optimizer_instances: 2"), 32, 32},
        {EXPERTS("tp: 2, cpu_offloading_num_layers: 4"), 64, 64},
        {EXPERTS("tp: 2, recompute: selective, recompute_modules: [layernorm], fine_grained_activation_offloading: "
                 "true, offload_modules: [core_attn, expert_fc1]"),
         257, 257},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i += SANITIZED ? 2 : 1)
        assert_int_equal(predicted_as_found(cases[i].job) & cases[i].looked_at, cases[i].told);
}

/* What no search could have found is refused, with the reason. */
static void test_not_predicted(void **state)
{
    static const char *const stages[][2] = {
        {"{first_layer: 0, layers: 5, replicas: [{device: v100-16gb}, {device: t4}]}", "replicas of a stage differ"},
        {"{first_layer: 0, layers: 4, replicas: [{device: t4}]}", "other layers"},
        {"{first_layer: 0, layers: 5, replicas: [{device: a100-80gb}]}", "no such node group"},
        {"{first_layer: 0, layers: 5, replicas: [{device: t4, group: '0'}]}", "no such node group"},
        {"{first_layer: 0, layers: 5, recompute: full, recompute_num_layers: 2, replicas: [{device: t4}]}", "some of"},
        {"{first_layer: 0, layers: 3, replicas: [{device: t4, count: 2}]},"
         "{first_layer: 3, layers: 2, replicas: [{device: t4, count: 2}]}",
         "more devices"},
        {"{first_layer: 0, layers: 5, replicas: [{device: t4, tp: 3, sp: true}]}", "cannot be run so"},
    };
    struct maq_loaded_job *job;
    assert_int_equal(maq_job_parse_open(&job, "test", maq_str_of(TINY), NULL, 0, NULL), MAQ_OK);
    for (size_t i = 0; i < MAQ_COUNT(stages); i++) {
        struct maq_diag *diag = maq_diag_new();
        struct maq_mixed_search_predicted p;
        struct maq_loaded_mixed_plan *box;
        char text[512];
        snprintf(text, sizeof text, "mbs: 2\ngbs: 8\npipelines: [{stages: [%s]}]", stages[i][0]);
        assert_int_equal(maq_mixed_plan_parse(&box, "plan", maq_str_of(text), NULL), MAQ_OK);
        assert_int_equal(maq_mixed_search_predict(&p, maq_mixed_plan_get(box), job, diag), MAQ_BAD_INPUT);
        if (!strstr(maq_diag_at(diag, 0)->msg.ptr, stages[i][1]))
            fail_msg("%s: %s", stages[i][1], maq_diag_at(diag, 0)->msg.ptr);
        maq_mixed_plan_free(box);
        maq_diag_free(diag);
    }
    maq_job_free(job);
}

/* ---- other planners ---- */

static struct searched search_as(const char *text, enum maq_mixed_planner planner, const volatile sig_atomic_t *stop)
{
    struct searched s = {0};
    struct maq_diag *diag = maq_diag_new();
    struct maq_mixed_search_opts opts = MAQ_MIXED_SEARCH_OPTS_INIT;
    opts.threads = 1;
    opts.planner = planner;
    opts.stop = stop;
    if (maq_job_parse_open(&s.job, "test", maq_str_of(text), NULL, 0, diag) != MAQ_OK ||
        maq_mixed_search(&s.result, s.job, &opts, diag) != MAQ_OK)
        fail_msg("%s\n%s", text, maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return s;
}

#define OLD_AND_NEW                                                                                                    \
    "{model: {base: mixtral-8x7b, num_layers: 8, hidden_size: 2048}, workload: {seq: 2048, gbs: 32},"                  \
    " cluster: {groups: [{device: a100-80gb, nodes: 1, devices_per_node: 4},"                                          \
    " {device: h100-nvl, nodes: 2, devices_per_node: 2}]}, plan: {mbs: 1}}"

/* A planner that knows less finds nothing better, and nothing that it does not know of. */
static void test_planners(void **state)
{
    struct searched all = search_as(OLD_AND_NEW, MAQ_MIXED_PLANNER_ALL, NULL);
    assert_true(all.result->n_plans == 1 && all.result->complete && all.result->exact);
    for (int p = MAQ_MIXED_PLANNER_METIS; p < MAQ_MIXED_PLANNER_COUNT; p++) {
        struct searched s = search_as(OLD_AND_NEW, (enum maq_mixed_planner)p, NULL);
        assert_int_equal(s.result->n_plans, 1);
        const struct maq_mixed_search_plan *plan = &s.result->plans[0];
        print_message("%s: %.4f s, all: %.4f s\n", maq_mixed_planner_name((enum maq_mixed_planner)p), plan->step_s,
                      all.result->plans[0].step_s);
        assert_true(plan->step_s > all.result->plans[0].step_s * (p == MAQ_MIXED_PLANNER_UNIFORM ? 1 - 1e-12 : 0.99));
        assert_true(s.result->bound_s >= all.result->bound_s * (1 - 1e-12) || p == MAQ_MIXED_PLANNER_ALPA);
        for (uint32_t i = 0; i < plan->n_stages; i++) {
            const struct maq_mixed_search_stage *stage = &plan->stages[i];
            assert_true(stage->cp == 1 && stage->recompute != MAQ_RECOMPUTE_SELECTIVE);
            if (p == MAQ_MIXED_PLANNER_UNIFORM)
                assert_true(stage->tp == plan->stages[0].tp && stage->devices == plan->stages[0].devices);
            else
                assert_true(stage->sharding == MAQ_SHARDING_NONE && stage->recompute == MAQ_RECOMPUTE_NONE);
            assert_true(stage->ep == 1 || p >= MAQ_MIXED_PLANNER_ALPA);
        }
        done(&s);
    }
    done(&all);
}

/* The uniform plan is the one that maq_train_predict() says is best, of a space that loops can go through. */
static void test_uniform(void **state)
{
    static const char *const zero[] = {"no_shard", "optim", "optim_grads", "optim_grads_params"};
    struct searched s = search_as(TINY, MAQ_MIXED_PLANNER_UNIFORM, NULL);
    double best_s = HUGE_VAL;
    for (int pp = 1; pp <= 3; pp++)
        for (int tp = 1; tp <= 2; tp++)
            for (int full = 0; full < 2; full++)
                for (size_t z = 0; z < MAQ_COUNT(zero); z++) {
                    char text[1024];
                    struct maq_loaded_job *job;
                    struct maq_train_result *train;
                    snprintf(text, sizeof text, "%.*s, pp: %d, tp: %d, recompute: %s, sharding: %s}}",
                             (int)strlen(TINY) - 2, TINY, pp, tp, full ? "full" : "none", zero[z]);
                    if (maq_job_parse(&job, "test", maq_str_of(text), NULL, 0, NULL) != MAQ_OK)
                        continue;
                    assert_int_equal(maq_train_predict(&train, maq_job_get(job), NULL), MAQ_OK);
                    if (train->fits && train->step_s < best_s)
                        best_s = train->step_s;
                    maq_train_result_free(train);
                    maq_job_free(job);
                }
    assert_true(best_s < HUGE_VAL);
    assert_true(fabs(s.result->plans[0].step_s / best_s - 1) < 1e-9);
    done(&s);
}

/* It takes devices in the cluster's order: a stage may lie on two node groups, and each replica is written where it lies. */
static void test_uniform_straddles(void **state)
{
    (void)state;
    const char text[] = "{model: {base: gpt2, num_hidden_layers: 3}, workload: {seq: 1024, gbs: 8}, search: {tp: 1},"
                        " cluster: {groups: [{device: v100-16gb, nodes: 1, devices_per_node: 2},"
                        " {device: t4, nodes: 1, devices_per_node: 2}]}, plan: {precision: fp16}}";
    struct searched s = search_as(text, MAQ_MIXED_PLANNER_UNIFORM, NULL);
    const struct maq_mixed_search_stage *found = &s.result->plans[0].stages[0];
    struct maq_loaded_mixed_plan *box;
    assert_int_equal(found->islands, 2);
    assert_true(found->capacity_bytes < 16e9); /* of the t4 */
    assert_int_equal(s.result->islands[0].used, 2);
    assert_int_equal(s.result->islands[1].used, 2);
    assert_int_equal(maq_mixed_search_mixed_plan(&box, s.result, 0, NULL), MAQ_OK);
    const struct maq_mixed_stage *stage = &maq_mixed_plan_get(box)->pipelines[0].stages[0];
    assert_int_equal(stage->n_replicas, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_string_equal(stage->replicas[i].group, i < 2 ? "0" : "1");
        assert_int_equal(stage->replicas[i].n_members, 1);
        assert_string_equal(stage->replicas[i].members[0].device, i < 2 ? "v100-16gb" : "t4");
        assert_int_equal(stage->replicas[i].members[0].devices, 1);
    }
    maq_mixed_plan_free(box);
    done(&s);
}

/*
 * What `maquette train` predicts of a plan that somebody gives it is one of those that are looked at: two kinds of node that are nearly
 * alike, or alike, do more as replicas of each other than as stages behind each other, and so do shards that fit only over all devices.
 */
static void test_replicas_over_groups(void **state)
{
    static const char *const clusters[] = {"h100-sxm:8 x 2 + h200:8 x 2", "h100-sxm:8 + h100-sxm:8",
                                           "a100-40gb:4 + a100-80gb:4", "h100-sxm:2 + h200:6"};
    static const char *const plans[] = {"mbs: 1", "mbs: 2, recompute: full", "tp: 2, mbs: 1",
                                        "mbs: 1, recompute: full, sharding: optim_grads_params"};
    for (size_t c = SANITIZED ? 3 : 0; c < MAQ_COUNT(clusters); c++) {
        char text[512];
        uint32_t fit = 0;
        snprintf(text, sizeof text, "{model: llama-3.1-8b, workload: {seq: 2048, gbs: 64}, cluster: '%s'}",
                 clusters[c]);
        struct searched s = search_as(text, MAQ_MIXED_PLANNER_ALL, NULL);
        for (size_t i = 0; i < MAQ_COUNT(plans); i++) {
            struct maq_loaded_job *job;
            struct maq_train_result *train;
            snprintf(text, sizeof text,
                     "{model: llama-3.1-8b, workload: {seq: 2048, gbs: 64}, cluster: '%s', plan: {%s}}", clusters[c],
                     plans[i]);
            assert_int_equal(maq_job_parse(&job, "test", maq_str_of(text), NULL, 0, NULL), MAQ_OK);
            assert_int_equal(maq_train_predict(&train, maq_job_get(job), NULL), MAQ_OK);
            fit += train->fits;
            if (train->fits)
                assert_true(s.result->n_plans > 0 && s.result->plans[0].step_s <= train->step_s * (1 + 1e-12));
            maq_train_result_free(train);
            maq_job_free(job);
        }
        assert_true(fit > 0);
        assert_true(s.result->gap >= 0 && s.result->bound_s <= s.result->plans[0].composed_s * (1 + 1e-12));
        assert_true(s.result->search_gap >= -1e-12 && s.result->search_gap <= s.result->gap + 1e-12);
        if (s.result->plans[0].uniform)
            for (uint32_t g = 0; g < 2; g++)
                assert_int_equal(s.result->islands[g].used,
                                 s.result->islands[g].nodes * s.result->islands[g].devices_per_node);
        done(&s);
    }
}

/* What the search of one node group says. */
struct group {
    struct maq_loaded_job *job;
    struct maq_search_result *result;
};

static struct group search_group(const char *job, const char *cluster, bool keep_switches)
{
    char text[512];
    struct group g;
    snprintf(text, sizeof text, "{%s, cluster: '%s'}", job, cluster);
    assert_int_equal(maq_job_parse_open(&g.job, "test", maq_str_of(text), NULL, 0, NULL), MAQ_OK);
    assert_int_equal(
        maq_search(&g.result, g.job, &(struct maq_search_opts){.top = 1, .keep_switches = keep_switches}, NULL),
        MAQ_OK);
    return g;
}

/* Node groups of one kind are one group as well: no worse than what its search finds, with every technique of its space. */
static void test_one_kind(void **state)
{
    NOT_UNDER_A_SANITIZER();
    static const struct {
        const char *job, *two, *one;
    } cases[] = {
        {"model: {base: llama-3.1-8b, num_hidden_layers: 8}, workload: {seq: 4096, gbs: 32}",
         "rtx-4090:2 x 1 + rtx-4090:2 x 1", "rtx-4090:2 x 2"},
        {"model: gpt2-xl, workload: {seq: 1024, gbs: 64}", "v100-16gb:2 + v100-16gb:2 x 3", "v100-16gb:2 x 4"},
        {"model: {base: llama-3.1-8b, num_hidden_layers: 24}, workload: {seq: 8192, gbs: 32}",
         "a100-40gb:2 x 2 + a100-40gb:2 x 2", "a100-40gb:2 x 4"},
        {"model: {base: qwen3-30b-a3b, num_hidden_layers: 24}, workload: {seq: 4096, gbs: 64}",
         "h100-sxm:4 + h100-sxm:4", "h100-sxm:4 x 2"},
    };
    (void)state;
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        char text[512];
        struct group one = search_group(cases[i].job, cases[i].one, false);
        snprintf(text, sizeof text, "{%s, cluster: '%s'}", cases[i].job, cases[i].two);
        struct searched s = search_as(text, MAQ_MIXED_PLANNER_ALL, NULL),
                        known = search_as(text, MAQ_MIXED_PLANNER_UNIFORM, NULL);
        const struct maq_mixed_search_plan *plan = &s.result->plans[0];
        assert_true(plan->step_s <= one.result->plans[0].step_s * (1 + 1e-12));
        assert_true(plan->step_s < known.result->plans[0].step_s * 0.95); /* of fewer techniques */
        assert_true(s.result->bound_s <= plan->step_s * (1 + 1e-12) && s.result->gap >= 0);
        if (plan->uniform) { /* runs as it is said */
            struct maq_loaded_job *whole;
            struct maq_train_result *train;
            struct maq_loaded_mixed_plan *form;
            uint32_t layers = 0;
            assert_int_equal(maq_job_complete(&whole, s.job, plan->uniform, NULL), MAQ_OK);
            assert_int_equal(maq_train_predict(&train, maq_job_get(whole), NULL), MAQ_OK);
            assert_true(train->fits && fabs(train->step_s / plan->step_s - 1) < 1e-12);
            for (uint32_t k = 0; k < plan->n_stages; k++) {
                assert_int_equal(plan->stages[k].first_layer, layers);
                layers += plan->stages[k].layers;
            }
            assert_int_equal(layers, s.result->n_layers);
            assert_int_equal(maq_mixed_search_mixed_plan(&form, s.result, 0, NULL), MAQ_OK);
            maq_mixed_plan_free(form);
            maq_train_result_free(train);
            maq_job_free(whole);
        }
        done(&s);
        done(&known);
        maq_search_result_free(one.result);
        maq_job_free(one.job);
    }
}

/*
 * Leaving node groups out is a plan: what the search of one node group finds on the other, as far as the form of compositions can say it.
 * Switches that it cannot are the job's on both sides.
 */
static void test_each_alone(void **state)
{
    static const struct {
        const char *job, *two, *one;
    } cases[] = {
        {"model: {base: llama-3.1-8b, num_hidden_layers: 8}, workload: {seq: 4096, gbs: 32}", "t4:2 + rtx-4090:2 x 2",
         "rtx-4090:2 x 2"},
        {"model: {base: llama-3.1-8b, num_hidden_layers: 24}, workload: {seq: 8192, gbs: 32}", "a100-40gb:2 x 4 + t4:2",
         "a100-40gb:2 x 4"},
    };
    (void)state;
    for (size_t i = SANITIZED ? 1 : 0; i < MAQ_COUNT(cases); i++) {
        char text[512];
        struct group one = search_group(cases[i].job, cases[i].one, true);
        snprintf(text, sizeof text, "{%s, cluster: '%s'}", cases[i].job, cases[i].two);
        struct searched s = search_as(text, MAQ_MIXED_PLANNER_ALL, NULL);
        const struct maq_mixed_search_plan *plan = &s.result->plans[0];
        print_message("# %s: %.4f s, alone as one group %.4f s\n", cases[i].two, plan->step_s,
                      one.result->plans[0].step_s);
        assert_true(plan->step_s <= one.result->plans[0].step_s * 1.02);
        if (!(s.result->bound_s <= one.result->bound_s * (1 + 1e-12)) || s.result->gap < 0)
            fail_msg("%s: a bound of %.12g s, of one group alone %.12g s; gap %g", cases[i].two, s.result->bound_s,
                     one.result->bound_s, s.result->gap);
        done(&s);
        maq_search_result_free(one.result);
        maq_job_free(one.job);
    }
}

/* A list of one value says what a key of the job does; of several values a pipeline has none. */
static void test_common_lists(void **state)
{
    static const char fp8[] =
        "{model: {base: llama-3.1-8b, num_hidden_layers: 4}, workload: {seq: 4096, gbs: 32}, cluster: 'h100-sxm:2 + "
        "h200:2', plan: {precision: fp8-delayed}}",
                      list[] = "{model: {base: llama-3.1-8b, num_hidden_layers: 4}, workload: {seq: 4096, gbs: 32}, "
                               "cluster: 'h100-sxm:2 + "
                               "h200:2', search: {precision: fp8-delayed}}";
    static const char *const refused[] = {"precision=bf16,fp8-delayed", "tp_comm_overlap=auto,true",
                                          "order=tp-cp-ep-pp-dp"};
    struct searched a = search_as(fp8, MAQ_MIXED_PLANNER_ALL, NULL), b = search_as(list, MAQ_MIXED_PLANNER_ALL, NULL);
    (void)state;
    assert_true(fabs(a.result->plans[0].step_s / b.result->plans[0].step_s - 1) < 1e-12);
    for (size_t i = 0; i < MAQ_COUNT(refused); i++) {
        struct maq_mixed_search_opts opts = MAQ_MIXED_SEARCH_OPTS_INIT;
        struct maq_mixed_search_result *r;
        opts.lists = &refused[i];
        opts.n_lists = 1;
        assert_int_equal(maq_mixed_search(&r, a.job, &opts, NULL), MAQ_BAD_INPUT);
    }
    done(&a);
    done(&b);
}

/* Stopped before it began: what is found is a plan of the class, and the bound is still one. */
static void test_stopped(void **state)
{
    static const volatile sig_atomic_t stop = 1;
    struct searched s = search_as(OLD_AND_NEW, MAQ_MIXED_PLANNER_ALL, &stop),
                    whole = search_as(OLD_AND_NEW, MAQ_MIXED_PLANNER_ALL, NULL);
    assert_false(s.result->complete);
    assert_false(s.result->exact);
    assert_true(s.result->bound_s > 0 && s.result->bound_s <= whole.result->composed_s);
    if (s.result->n_plans > 0) {
        assert_true(s.result->composed_s >= whole.result->composed_s * (1 - 1e-12));
        assert_true(s.result->gap >= 0);
    }
    done(&s);
    done(&whole);
}

/* ---- what does not fit ---- */

/* Against every composition of a tiny table, with less and less memory. */
static void test_fits(void **state)
{
    struct searched s = search(TINY, 1, 1);
    const struct maq_mixed_run *run = s.result->owner;
    uint32_t fit = 0, not = 0;
    for (uint32_t w = 0; w < run->n_waves; w++)
        for (double share = 1; share > 0.05; share *= EFFORT(0.15, 0.7, 0.85)) {
            struct maq_arena arena;
            struct maq_stage_table table;
            struct brute b = {.best_s = HUGE_VAL};
            bool fits;
            maq_arena_init(&arena, 0);
            assert_true(maq_mixed_run_table(&table, run, w, &arena));
            for (uint32_t g = 0; g < table.n_kinds; g++)
                table.capacity_bytes[g] *= g == 0 ? share : share * share;
            assert_true(maq_mixed_feasible(&fits, &table, &arena));
            add_all(&b, &table);
            assert_int_equal(fits, b.best_s < HUGE_VAL);
            fit += fits;
            not += !fits;
            maq_arena_fini(&arena);
        }
    assert_true(fit > EFFORT(1u, 5u, 10u) && not > EFFORT(1u, 5u, 10u));
    done(&s);
}

#define TOO_LARGE                                                                                                      \
    "{model: {base: gpt3-5b, num_layers: 16}, workload: {seq: 2048, gbs: 16},"                                         \
    " cluster: {groups: [{device: v100-16gb, nodes: 1, devices_per_node: 2},"                                          \
    " {device: t4, nodes: 1, devices_per_node: 1}]}, plan: {mbs: 1, precision: fp16}}"

static bool fits_with(const struct maq_loaded_job *job, double more_bytes, uint32_t more_nodes, uint32_t group)
{
    struct maq_mixed_search_opts opts = MAQ_MIXED_SEARCH_OPTS_INIT;
    struct maq_mixed_search_result *r;
    opts.threads = 1;
    opts.together_only = true;
    opts.more_bytes = more_bytes;
    opts.more_nodes = more_nodes;
    opts.more_nodes_of = group;
    assert_int_equal(maq_mixed_search(&r, job, &opts, NULL), MAQ_OK);
    bool fits = r->n_plans > 0;
    maq_mixed_search_free(r);
    return fits;
}

static bool fits_with_techniques(const struct maq_loaded_job *job, const struct maq_mixed_search_remedies *r,
                                 uint32_t without)
{
    const char *lists[MAQ_COUNT(r->techniques)];
    struct maq_mixed_search_opts opts = MAQ_MIXED_SEARCH_OPTS_INIT;
    struct maq_mixed_search_result *found;
    opts.threads = 1;
    opts.together_only = true;
    opts.lists = lists;
    for (uint32_t i = 0; i < r->n_techniques; i++)
        if (i != without)
            lists[opts.n_lists++] = r->techniques[i];
    assert_int_equal(maq_mixed_search(&found, job, &opts, NULL), MAQ_OK);
    bool fits = found->n_plans > 0;
    maq_mixed_search_free(found);
    return fits;
}

/* All of them together do, and without any one of them nothing does. */
static void check_techniques(const struct maq_loaded_job *job, const struct maq_mixed_search_remedies *r)
{
    assert_true(r->n_techniques > 0);
    assert_true(fits_with_techniques(job, r, UINT32_MAX));
    for (uint32_t i = 0; i < r->n_techniques; i++)
        assert_false(fits_with_techniques(job, r, i));
}

/* The remedy does, and a little less of it does not. */
static void test_remedies(void **state)
{
    struct maq_loaded_job *job;
    struct maq_mixed_search_remedies r;
    struct maq_mixed_search_opts opts = MAQ_MIXED_SEARCH_OPTS_INIT;
    const double gib = 1024.0 * 1024.0 * 1024.0;
    assert_int_equal(maq_job_parse_open(&job, "test", maq_str_of(TOO_LARGE), NULL, 0, NULL), MAQ_OK);
    assert_false(fits_with(job, 0, 0, 0));
    assert_int_equal(maq_mixed_search_find_remedies(&r, job, &opts, NULL), MAQ_OK);
    print_message("%.0f GiB more, %u more nodes of %s, %u of %s, %u techniques\n", r.more_bytes / gib,
                  r.islands[0].more_nodes, r.islands[0].device, r.islands[1].more_nodes, r.islands[1].device,
                  r.n_techniques);
    check_techniques(job, &r);
    assert_true(r.more_bytes > 0 && fits_with(job, r.more_bytes, 0, 0));
    assert_false(fits_with(job, r.more_bytes - gib, 0, 0));
    assert_int_equal(r.n_islands, 2);
    for (uint32_t g = 0; g < 2; g++) {
        assert_true(r.islands[g].more_nodes > 0 && fits_with(job, 0, r.islands[g].more_nodes, g));
        assert_false(fits_with(job, 0, r.islands[g].more_nodes - 1, g));
    }
    maq_job_free(job);
}

/* Layers without a dense MLP have none to recompute: of ways that are as fast a stage has the plainest. */
static void test_plainest(void **state)
{
    NOT_UNDER_A_SANITIZER();
    (void)state;
    struct searched s = search("{model: deepseek-moe-16b, workload: {seq: 4096, gbs: 64}, cluster: {groups: [{device:"
                               " a100-40gb, nodes: 1, devices_per_node: 4}, {device: l40s, nodes: 2, devices_per_node:"
                               " 4}]}, search: {recompute: [none, mlp], vp: [1]}}",
                               1, 1);
    const struct maq_mixed_search_plan *plan = &s.result->plans[0];
    uint32_t behind = 0;
    for (uint32_t i = 0; i < plan->n_stages; i++) {
        behind += plan->stages[i].first_layer > 1; /* the embedding and the dense layer come first */
        if (plan->stages[i].first_layer > 1)
            assert_false(plan->stages[i].recompute_parts >> MAQ_PART_MLP & 1);
    }
    assert_true(behind > 0);
    done(&s);
}

static void test_refused(void **state)
{
    static const char *const plans[] = {"pp: 2",
                                        "dp: 2",
                                        "virtual_pipeline_model_parallel_size: 5",
                                        "pipeline_schedule: gpipe",
                                        "lora_rank: 8",
                                        "cpu_offloading_num_layers: 1",
                                        "fine_grained_activation_offloading: true, offload_modules: [attn_proj]"};
    for (size_t i = 0; i < MAQ_COUNT(plans); i++) {
        struct maq_diag *diag = maq_diag_new();
        struct maq_loaded_job *job;
        struct maq_mixed_search_result *r;
        struct maq_mixed_search_opts opts = MAQ_MIXED_SEARCH_OPTS_INIT;
        char text[512];
        snprintf(text, sizeof text,
                 "{model: gpt2, workload: {seq: 1024, gbs: 8}, cluster: 'v100-16gb:2 + t4:2', plan: {%s}}", plans[i]);
        if (maq_job_parse_open(&job, "test", maq_str_of(text), NULL, 0, diag) != MAQ_OK)
            fail_msg("%s\n%s", text, maq_diag_format(diag, 0, false));
        assert_int_equal(maq_mixed_search(&r, job, &opts, diag), MAQ_BAD_INPUT);
        maq_job_free(job);
        maq_diag_free(diag);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_brute_force),  cmocka_unit_test(test_nearby),
        cmocka_unit_test(test_one_pool),     cmocka_unit_test(test_more_devices),
        cmocka_unit_test(test_threads),      cmocka_unit_test(test_mixed_plan),
        cmocka_unit_test(test_plainest),     cmocka_unit_test(test_refused),
        cmocka_unit_test(test_useless),      cmocka_unit_test(test_planners),
        cmocka_unit_test(test_uniform),      cmocka_unit_test(test_uniform_straddles),
        cmocka_unit_test(test_one_kind),     cmocka_unit_test(test_each_alone),
        cmocka_unit_test(test_common_lists), cmocka_unit_test(test_replicas_over_groups),
        cmocka_unit_test(test_predicted),    cmocka_unit_test(test_not_predicted),
        cmocka_unit_test(test_stopped),      cmocka_unit_test(test_fits),
        cmocka_unit_test(test_remedies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
