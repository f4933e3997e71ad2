/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_placed.c - mixed plans on the node groups of a job (maq_mixed_place). Oracles: what the search says of the
 * plans that it finds, to the last bit; what a training step of the same plan takes where all stages are alike; parts
 * of plans placed alone.
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

#include "base/check.h"
#include "base/str.h"
#include "effort.h"
#include "maquette/mixed_step.h"
#include "maquette/planner_mixed.h"
#include "maquette/train.h"

#define TWO                                                                                                            \
    "{model: {base: gpt2, num_hidden_layers: 6}, workload: {seq: 1024, gbs: 32}, cluster: {groups: [{device: "         \
    "v100-16gb,"                                                                                                       \
    " nodes: 2, devices_per_node: 2}, {device: t4, nodes: 2, devices_per_node: 2}], links: [{between: [v100-16gb, "    \
    "t4],"                                                                                                             \
    " bandwidth: 9 Gb/s}]}, plan: {mbs: 2, precision: fp16}}"
#define UNEVEN                                                                                                         \
    "{model: {base: gpt2, num_hidden_layers: 6}, workload: {seq: 1024, gbs: 32}, cluster: {groups: [{device: "         \
    "v100-16gb,"                                                                                                       \
    " nodes: 2, devices_per_node: 4}, {device: a100-80gb, nodes: 1, devices_per_node: 4}]}, plan: {precision: fp16,"   \
    " tp: 2}}"
#define EXPERTS                                                                                                        \
    "{model: gshard-moe-2.4b, workload: {seq: 1024, gbs: 64}, cluster: {groups: [{device: v100-32gb, nodes: 2,"        \
    " devices_per_node: 4}, {device: a100-80gb, nodes: 1, devices_per_node: 4}]}, plan: {mbs: 1, precision: fp16}}"
#define SHARDED                                                                                                        \
    "{model: {base: gpt3-5b, num_layers: 12}, workload: {seq: 2048, gbs: 32}, cluster: {groups: [{device: v100-32gb,"  \
    " nodes: 2, devices_per_node: 2}, {device: a100-40gb, nodes: 2, devices_per_node: 2}]}, plan: {precision: fp16,"   \
    " sharding: optim_grads_params, recompute: full}}"
#define HEAD "mbs: 2\ngbs: 32\npipelines: "

static struct maq_mixed_placed *place(struct maq_loaded_job **job, struct maq_loaded_mixed_plan **box,
                                      const char *job_text, const char *plan, const char **why)
{
    static char reason[512];
    struct maq_mixed_placed *placed = NULL;
    struct maq_diag *diag = maq_diag_new();
    enum maq_status status = maq_job_parse_open(job, "job", maq_str_of(job_text), NULL, 0, diag);
    if (status == MAQ_OK)
        status = maq_mixed_plan_parse(box, "plan", maq_str_of(plan), diag);
    if (status != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    status = maq_mixed_place(&placed, maq_mixed_plan_get(*box), *job, diag);
    if (status != MAQ_OK && (!why || status != MAQ_BAD_INPUT))
        fail_msg("%s\n%s", plan, maq_diag_format(diag, 0, false));
    if (why && status != MAQ_OK) {
        char *all = maq_diag_format(diag, 0, false);
        snprintf(reason, sizeof reason, "%s", all);
        free(all);
        *why = reason;
    }
    maq_diag_free(diag);
    return placed;
}

struct placed {
    struct maq_loaded_job *job;
    struct maq_loaded_mixed_plan *box;
    struct maq_mixed_placed *result;
};

static struct placed place_good(const char *job, const char *plan)
{
    struct placed p = {0};
    p.result = place(&p.job, &p.box, job, plan, NULL);
    return p;
}

static void done(struct placed *p)
{
    maq_mixed_placed_free(p->result);
    maq_mixed_plan_free(p->box);
    maq_job_free(p->job);
}

static double step_of(const char *job, const char *plan)
{
    struct placed p = place_good(job, plan);
    double step = p.result->step_s;
    done(&p);
    return step;
}

/*
 * Six devices in nodes of three hold three stages of two each: the last one lies in both nodes, and its TP group takes longer than it does
 * in nodes of two. Four stages of one, two, two, one and two on nodes of four lie in one node each, in whatever order.
 */
static void test_groups_over_nodes(void **state)
{
    (void)state;
#define NODES(n, each)                                                                                                 \
    "{model: {base: gpt2, num_hidden_layers: 6}, workload: {seq: 1024, gbs: 32}, cluster: {groups: [{device: "         \
    "a100-80gb, nodes: " #n ", devices_per_node: " #each ", fabric: ethernet-100}]}, plan: {mbs: 2, precision: fp16}}"
#define ROW(first, count, tp)                                                                                          \
    "{first_layer: " #first ", layers: " #count ", replicas: [{device: a100-80gb, tp: " #tp "}]}"
    static const char three[] = HEAD "[{stages: [" ROW(0, 3, 2) ", " ROW(3, 2, 2) ", " ROW(5, 3, 2) "]}]";
    static const char five[] =
        HEAD "[{stages: [" ROW(0, 2, 1) ", " ROW(2, 2, 2) ", " ROW(4, 2, 2) ", " ROW(6, 1, 1) ", " ROW(7, 1, 2) "]}]";
    struct placed apart = place_good(NODES(2, 3), three), whole = place_good(NODES(3, 2), three);
    for (uint32_t i = 0; i < 3; i++) {
        double a = apart.result->stages[i].forward_s, w = whole.result->stages[i].forward_s;
        uint32_t last =
            apart.result->stages[0].forward_s > whole.result->stages[0].forward_s ? 0 : 2; /* from the back */
        if (i == last)
            assert_true(a > 1.2 * w);
        else
            assert_true(fabs(a - w) < 1e-9 * w);
    }
    done(&apart);
    done(&whole);
    struct placed two = place_good(NODES(2, 4), five), one = place_good(NODES(1, 8), five);
    for (uint32_t i = 0; i < 5; i++)
        assert_true(fabs(two.result->stages[i].forward_s - one.result->stages[i].forward_s) <
                    1e-3 * one.result->stages[i].forward_s);
    done(&two);
    done(&one);
}

/* ---- what the search says ---- */

static void test_as_found(void **state)
{
    (void)state;
    static const char *const jobs[] = {TWO, UNEVEN, EXPERTS, SHARDED};
    uint32_t compared = 0;
    for (size_t i = 0; i < MAQ_COUNT(jobs); i += SANITIZED ? 2 : 1) {
        struct maq_loaded_job *job;
        struct maq_mixed_search_result *found;
        struct maq_mixed_search_opts opts = MAQ_MIXED_SEARCH_OPTS_INIT;
        struct maq_diag *diag = maq_diag_new();
        opts.top = 6;
        opts.threads = 1;
        assert_int_equal(maq_job_parse_open(&job, "job", maq_str_of(jobs[i]), NULL, 0, diag), MAQ_OK);
        assert_int_equal(maq_mixed_search(&found, job, &opts, diag), MAQ_OK);
        for (uint32_t k = 0; k < found->n_plans; k++, compared++) {
            const struct maq_mixed_search_plan *plan = &found->plans[k];
            struct maq_loaded_mixed_plan *box;
            struct maq_mixed_placed *placed;
            assert_int_equal(maq_mixed_search_mixed_plan(&box, found, k, diag), MAQ_OK);
            if (maq_mixed_place(&placed, maq_mixed_plan_get(box), job, diag) != MAQ_OK)
                fail_msg("%s", maq_diag_format(diag, 0, false));
            if (placed->step_s != plan->step_s)
                fail_msg("plan %u of job %zu: %.12g s placed, %.12g s found", k, i, placed->step_s, plan->step_s);
            assert_true(placed->fits);
            assert_int_equal(placed->n_stages, plan->n_stages);
            for (uint32_t s = 0; s < plan->n_stages; s++) {
                /* the search adds up an excess of embedding and output, which do not run at once */
                double share = placed->stages[s].memory_bytes / plan->stages[s].memory_bytes;
                assert_true(share > 0.7 && share < 1.001);
                assert_int_equal(placed->stages[s].in_flight, plan->stages[s].in_flight);
                assert_int_equal(placed->stages[s].columns, plan->replicas);
            }
            maq_mixed_placed_free(placed);
            maq_mixed_plan_free(box);
        }
        maq_mixed_search_free(found);
        maq_job_free(job);
        maq_diag_free(diag);
    }
    print_message("%u plans placed as they were found\n", compared);
    assert_true(compared > (SANITIZED ? 5u : 10u));
}

/* ---- what a training step says ---- */

#define ALIKE                                                                                                          \
    "model: {base: gpt2, num_hidden_layers: 16}\ncluster: {device: a100-80gb, nodes: 2, devices_per_node: 4}\n"        \
    "workload: {seq: 1024, gbs: 64}\n"

static double trained(const char *plan)
{
    char text[1024];
    struct maq_loaded_job *box = NULL;
    struct maq_train_result *r = NULL;
    struct maq_diag *diag = maq_diag_new();
    snprintf(text, sizeof text, ALIKE "plan: {mbs: 2, %s}\n", plan);
    if (maq_job_parse(&box, "job", maq_str_of(text), NULL, 0, diag) != MAQ_OK ||
        maq_train_predict(&r, maq_job_get(box), diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    double step = r->step_s;
    maq_train_result_free(r);
    maq_job_free(box);
    maq_diag_free(diag);
    return step;
}

#define STAGE(first, n, more)                                                                                          \
    "{first_layer: " #first ", layers: " #n more ", replicas: [{device: a100-80gb, tp: 1, count: 2}]}"

#define AWAY ", offload_modules: [core_attn, attn_proj]"

static void test_as_trained(void **state)
{
    (void)state;
    static const struct {
        const char *schedule, *trained, *stages;
        double within;
    } cases[] = {
        {"1f1b", "pp: 4, zero: no_shard", STAGE(0, 5, "") "," STAGE(5, 4, "") "," STAGE(9, 4, "") "," STAGE(13, 5, ""),
         1e-6},
        {"gpipe", "pp: 4, zero: no_shard, schedule: gpipe",
         STAGE(0, 5, "") "," STAGE(5, 4, "") "," STAGE(9, 4, "") "," STAGE(13, 5, ""), 1e-6},
        {"1f1b",
         "pp: 4, zero: optim, layout: '3,5,5,3', recompute: full, recompute_method: block, "
         "recompute_num_layers_per_stage: '1,2,3,1'",
         STAGE(0, 4, ", zero: optim, recompute: full, recompute_num_layers: 1") "," STAGE(
             4, 5, ", zero: optim, recompute: full, recompute_num_layers: 2") "," STAGE(9, 5,
                                                                                        ", zero: optim, recompute: "
                                                                                        "full, recompute_num_layers: "
                                                                                        "3") "," STAGE(14, 4,
                                                                                                       ", zero: "
                                                                                                       "optim, "
                                                                                                       "recompute: "
                                                                                                       "full, "
                                                                                                       "recompute_num_"
                                                                                                       "layers: 1"),
         1e-6},
        {"1f1b",
         "pp: 4, zero: no_shard, layout: '3,5,5,3', fine_grained_activation_offloading: true, offload_modules: "
         "[core_attn, attn_proj]",
         STAGE(0, 4, AWAY) "," STAGE(4, 5, AWAY) "," STAGE(9, 5, AWAY) "," STAGE(14, 4, AWAY), 1e-6},
        {"interleaved", "pp: 4, vp: 2, zero: no_shard",
         STAGE(0, 3, "") "," STAGE(3, 2, "") "," STAGE(5, 2, "") "," STAGE(7, 2, "") "," STAGE(
             9, 2,
             ", on_devices_of: 0") "," STAGE(11, 2,
                                             ", on_devices_of: 1") "," STAGE(13, 2,
                                                                             ", on_devices_of: 2") "," STAGE(15, 3,
                                                                                                             ", "
                                                                                                             "on_"
                                                                                                             "devic"
                                                                                                             "es_"
                                                                                                             "of: "
                                                                                                             "3"),
         0.001},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        char plan[4096];
        snprintf(plan, sizeof plan, "mbs: 2\ngbs: 64\nschedule: %s\npipelines: [{stages: [%s]}]\n", cases[i].schedule,
                 cases[i].stages);
        double a = step_of(ALIKE "plan: {mbs: 2}\n", plan), b = trained(cases[i].trained);
        print_message("%s: placed %.6f s, trained %.6f s, %+.3f %%\n", cases[i].trained, a, b, 100 * (a / b - 1));
        if (!(fabs(a / b - 1) <= cases[i].within))
            fail_msg("%s: placed %.9f s, trained %.9f s", cases[i].trained, a, b);
    }
}

/* Pipelines side by side, each inside a node: as a job whose ranks are numbered so. Their gradients cross the nodes. */
static void test_pipelines_over_nodes(void **state)
{
#define LINE                                                                                                           \
    "{stages: [{first_layer: 0, layers: 9, replicas: [{device: a100-80gb}]}, "                                         \
    "{first_layer: 9, layers: 9, replicas: [{device: a100-80gb}]}]}"
    (void)state;
    double together = step_of(ALIKE "plan: {mbs: 2}\n",
                              "mbs: 2\ngbs: 64\npipelines: [" LINE ", " LINE ", " LINE ", " LINE "]\n"),
           whole = trained("pp: 2, zero: no_shard, rank_order: tp-cp-ep-pp-dp"),
           inside = trained("pp: 2, zero: no_shard, rank_order: tp-cp-ep-dp-pp");
    assert_true(fabs(together / whole - 1) < 1e-6 && whole > 1.005 * inside);
#undef LINE
}

/* ---- shares, islands, pipelines ---- */

#define SHARES(device, a, b)                                                                                           \
    HEAD "[{stages: [{first_layer: 0, layers: 4, replicas: [{device: v100-16gb, microbatches: " #a                     \
         "}, {device: " device ", microbatches: " #b                                                                   \
         "}]}, {first_layer: 4, layers: 4, replicas: [{device: v100-16gb, microbatches: " #a "}, {device: " device     \
         ", microbatches: " #b "}]}]}]"

static void test_shares(void **state)
{
    (void)state;
    double best = INFINITY, even = 0;
    static const char *const plans[] = {SHARES("t4", 8, 8),  SHARES("t4", 9, 7),  SHARES("t4", 10, 6),
                                        SHARES("t4", 11, 5), SHARES("t4", 12, 4), SHARES("t4", 13, 3),
                                        SHARES("t4", 14, 2), SHARES("t4", 15, 1)};
    size_t at = 0;
    for (size_t i = 0; i < MAQ_COUNT(plans); i++) {
        double step = step_of(TWO, plans[i]);
        even = i == 0 ? step : even;
        at = step < best ? i : at;
        best = fmin(best, step);
    }
    /* a T4 is a third to a fifth of a V100 */
    if (!(at >= 3 && at + 1 < MAQ_COUNT(plans) && best < 0.7 * even))
        fail_msg("best share is case %zu: %.6f s, even %.6f s", at, best, even);
    /* on equal devices the even share is best, and the longer column decides */
    assert_true(step_of(TWO, SHARES("v100-16gb", 8, 8)) < step_of(TWO, SHARES("v100-16gb", 12, 4)));
    struct placed p = place_good(TWO, SHARES("v100-16gb", 12, 4)), q = place_good(TWO, SHARES("v100-16gb", 8, 8));
    assert_int_equal(p.result->n_stages, 4); /* two columns */
    assert_int_equal(q.result->n_stages, 2); /* one, twice */
    assert_int_equal(q.result->stages[0].columns, 2);
    assert_int_equal(p.result->stages[0].microbatches, 12);
    assert_int_equal(p.result->stages[2].microbatches, 4);
    done(&p);
    done(&q);
}

/* Gradients of a stage with a replica on either island: with two ranks each sends its own once, at the pace at which a transfer between
 * the islands goes; latency aside. */
static void test_reduction_over_islands(void **state)
{
    (void)state;
    struct placed p = place_good(TWO, SHARES("t4", 12, 4)),
                  q = place_good(
                      TWO,
                      HEAD "[{stages: [{first_layer: 0, layers: 4, replicas: [{device: v100-16gb}]}, {first_layer: 4,"
                           " layers: 4, replicas: [{device: t4}]}]}]");
    double params = 3 * (12. * 768 * 768 + 13. * 768) + 50257. * 768 + 1024 * 768, sent = 2. * 1024 * 768 * 2;
    double expected = q.result->stages[1].hop_s * params * 4 / sent, got = p.result->stages[0].reduce_s;
    if (!(got > 0.9 * expected && got < 1.05 * expected && q.result->stages[1].hop_s >= sent / (9e9 / 8)))
        fail_msg("%.6f s, by the pace of transfers %.6f s", got, expected);
    done(&p);
    done(&q);
}

/* Two pipelines cut at different layers take as long as the longer one, with the reduction of what both hold behind both. */
static void test_two_pipelines(void **state)
{
    (void)state;
    const char *plan = HEAD
        "[{microbatches: 13, stages: [{first_layer: 0, layers: 4, replicas: [{device: v100-16gb}]}, {first_layer: 4,"
        " layers: 4, replicas: [{device: v100-16gb}]}]}, {microbatches: 3, stages: [{first_layer: 0, layers: 5,"
        " replicas: [{device: t4}]}, {first_layer: 5, layers: 3, replicas: [{device: t4}]}]}]";
    const char *alone =
        "mbs: 2\ngbs: 26\npipelines: [{stages: [{first_layer: 0, layers: 4, replicas: [{device: v100-16gb}]},"
        " {first_layer: 4, layers: 4, replicas: [{device: v100-16gb}]}]}]";
    char less[1024];
    snprintf(less, sizeof less, "%s", TWO);
    memcpy(strstr(less, "gbs: 32"), "gbs: 26", 7);
    struct placed p = place_good(TWO, plan);
    double lone = step_of(less, alone);
    assert_int_equal(p.result->n_stages, 4);
    assert_int_equal(p.result->stages[2].pipeline, 1);
    assert_true(p.result->pipeline_s > lone * 0.8);
    for (uint32_t i = 0; i < 4; i++)
        assert_true(p.result->stages[i].reduce_s > 0 && p.result->stages[i].idle > 0 && p.result->stages[i].idle < 1);
    done(&p);
}

/* Virtual stages hold both their states, and let the pipeline fill faster. */
static void test_virtual_stages(void **state)
{
    (void)state;
#define V(first, n, more) "{first_layer: " #first ", layers: " #n more ", replicas: [{device: v100-16gb}]}"
    struct placed plain = place_good(TWO, HEAD "[{stages: [" V(0, 4, "") "," V(4, 4, "") "]}]"),
                  round =
                      place_good(TWO, "schedule: interleaved\n" HEAD "[{stages: [" V(0, 2, "") "," V(2, 2, "") "," V(
                                          4, 2, ", on_devices_of: 0") "," V(6, 2, ", on_devices_of: 1") "]}]");
    assert_int_equal(round.result->n_stages, 4);
    assert_true(round.result->stages[0].memory_bytes == round.result->stages[2].memory_bytes);
    assert_true(round.result->stages[1].idle == round.result->stages[3].idle);
    assert_true(round.result->stages[0].in_flight > plain.result->stages[0].in_flight);
    assert_true(round.result->step_s < plain.result->step_s &&
                round.result->stages[0].idle < plain.result->stages[0].idle);
    done(&plain);
    done(&round);
}

/* ---- what cannot be ---- */

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *head, *stages, *words;
    } cases[] = {
        {"",
         "{first_layer: 0, layers: 4, replicas: [{device: t4, count: 2}]}, {first_layer: 4, layers: 4, replicas: "
         "[{device: t4}]}",
         "different numbers of replicas"},
        {"", "{first_layer: 0, layers: 7, replicas: [{device: t4}]}", "other layers"},
        {"schedule: zb-h1\n", "{first_layer: 0, layers: 8, replicas: [{device: t4}]}", "splits backward passes"},
        {"", "{first_layer: 0, layers: 8, replicas: [{device: a100-80gb}]}", "no such node group"},
        {"", "{first_layer: 0, layers: 8, replicas: [{device: t4, count: 5}]}", "more devices"},
        {"", "{first_layer: 0, layers: 8, zero: optim, replicas: [{device: t4}, {device: v100-16gb}]}", "share states"},
        {"", "{first_layer: 0, layers: 8, replicas: [{tp: 2, members: [{device: t4}, {device: v100-16gb}]}]}",
         "spans nodes"},
        {"",
         "{first_layer: 0, layers: 4, replicas: [{device: t4}]}, {first_layer: 4, layers: 4, on_devices_of: 0, "
         "replicas: [{device: t4}]}",
         "need the schedule interleaved"},
        {"schedule: interleaved\n",
         "{first_layer: 0, layers: 2, replicas: [{device: t4}]}, {first_layer: 2, layers: 2, replicas: [{device: t4}]},"
         "{first_layer: 4, layers: 2, on_devices_of: 1, replicas: [{device: t4}]}, {first_layer: 6, layers: 2, "
         "on_devices_of: 0, replicas: "
         "[{device: t4}]}",
         "do not go round"},
        {"",
         "{first_layer: 0, layers: 4, replicas: [{device: t4, microbatches: 9}, {device: t4, microbatches: 7}]},"
         "{first_layer: 4, layers: 4, replicas: [{device: t4, microbatches: 7}, {device: t4, microbatches: 9}]}",
         "different shares"},
        {"", "{first_layer: 0, layers: 8, replicas: [{device: t4, tp: 5}]}", "more devices"},
        {"", "{first_layer: 0, layers: 8, replicas: [{device: t4, tp: 3, sp: true}]}", "not a multiple of cp x tp"},
        {"", "{first_layer: 0, layers: 8, replicas: [{device: t4, tp: 3, sp: true}]}",
         "layers 0 to 7 cannot be run so"},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        char plan[2048];
        const char *why = NULL;
        struct maq_loaded_job *job;
        struct maq_loaded_mixed_plan *box;
        snprintf(plan, sizeof plan, "%s" HEAD "[{stages: [%s]}]", cases[i].head, cases[i].stages);
        struct maq_mixed_placed *placed = place(&job, &box, TWO, plan, &why);
        if (placed)
            fail_msg("placed: %s", plan);
        if (!why || !strstr(why, cases[i].words))
            fail_msg("'%s' for '%s'", why ? why : "", cases[i].words);
        maq_mixed_plan_free(box);
        maq_job_free(job);
    }
}

/* A stage says which inputs of modules wait on the host, whatever the job does; fused experts are the job's. */
static void test_inputs_on_the_host(void **state)
{
    (void)state;
#define JOB(plan) "{model: gpt2, workload: {seq: 1024, gbs: 32}, cluster: 'v100-16gb:1', plan: {mbs: 2" plan "}}"
#define ALL(more) HEAD "[{stages: [{first_layer: 0, layers: 14, replicas: [{device: v100-16gb}]" more "}]}]"
#define MOVED ", fine_grained_activation_offloading: true, offload_modules: [core_attn, attn_proj]"
    struct placed here = place_good(JOB(""), ALL("")), other = place_good(JOB(MOVED), ALL("")),
                  away = place_good(JOB(""), ALL(", offload_modules: [core_attn, attn_proj]"));
    assert_true(other.result->step_s == here.result->step_s);
    assert_true(away.result->step_s >= here.result->step_s);
    assert_true(away.result->stages[0].memory_bytes < 0.9 * here.result->stages[0].memory_bytes);
    done(&here);
    done(&other);
    done(&away);

    const char *why = NULL;
    struct placed fused = {0};
    assert_null(place(&fused.job, &fused.box, JOB(""), ALL(", offload_modules: [fused_group_mlp]"), &why));
    assert_non_null(why);
    assert_non_null(strstr(why, "there is no fused_group_mlp"));
    done(&fused);
#undef JOB
#undef ALL
#undef MOVED
}

/* A stage that has no room is told, and its plan still has a time. */
static void test_does_not_fit(void **state)
{
    (void)state;
    const char *job = "{model: llama-2-7b, workload: {seq: 2048, gbs: 8}, cluster: {groups: [{device: t4, nodes: 1, "
                      "devices_per_node: 2}]}, plan:"
                      " {precision: fp16}}";
    struct placed p = place_good(
        job, "mbs: 1\ngbs: 8\npipelines: [{stages: [{first_layer: 0, layers: 34, replicas: [{device: t4}]}]}]");
    assert_false(p.result->fits);
    assert_true(p.result->step_s > 0 && p.result->stages[0].memory_bytes > p.result->stages[0].capacity_bytes);
    done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups_over_nodes),
        cmocka_unit_test(test_as_found),
        cmocka_unit_test(test_as_trained),
        cmocka_unit_test(test_pipelines_over_nodes),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_reduction_over_islands),
        cmocka_unit_test(test_two_pipelines),
        cmocka_unit_test(test_virtual_stages),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_inputs_on_the_host),
        cmocka_unit_test(test_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
