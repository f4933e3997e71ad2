/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_mixed_cost.c - what mixed plans cost: closed forms over an invented profile, published figures over the published one.
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

#include "base/alloc.h"
#include "failing_alloc.h"
#include "plan/framework.h"
#include "plan/mixed/codes.h"
#include "random_draws.h"
#include "train/profiled/profiled.h"

#define CLOSE(a, b, tolerance)                                                                                         \
    do {                                                                                                               \
        double close_a = (a), close_b = (b);                                                                           \
        if (!(fabs(close_a - close_b) <= (tolerance)*fabs(close_b)))                                                   \
            fail_msg("%s is %.9g, not %.9g", #a, close_a, close_b);                                                    \
    } while (0)

/* ---- an invented profile ---- */

#define MAX_LAYERS 16

/*
 * Layers of `forward` and `backward` seconds on gpu-a, twice that on gpu-b, with TP 1 at micro batch 1; `parameters` each, they keep
 * 1000 elements and send `output`. Adam takes 28 ms over the profiled layers. Every link moves 1 GB/s.
 */
static struct maq_profile_dir *profile_of(uint32_t layers, const double *forward, const double *backward,
                                          double parameters, double output)
{
    char folder[] = "/tmp/maq-cost-XXXXXX", path[64];
    static const char *const names[] = {"layer_profiles.json", "model_memory.json", "basic_cluster_config.json",
                                        "intra_node_bandwidths.json", "multizone_bandwidths_het.json"};
    struct maq_profile_dir *p = NULL;
    struct maq_diag *diag = maq_diag_new();
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 5; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        switch (i) {
        case 0:
            fputs("{\"toy\": {", f);
            for (int d = 0; d < 2; d++) {
                fprintf(f, "%s\"gpu-%c\": {\"1\": {\"1\": {", d ? ", " : "", 'a' + d);
                for (uint32_t l = 0; l < layers; l++)
                    fprintf(f, "%s\"%u\": [%.9f, %.9f, 0.028]", l ? ", " : "", l, (1 + d) * forward[l],
                            (1 + d) * backward[l]);
                fputs("}}}", f);
            }
            fputs("}}", f);
            break;
        case 1:
            fputs("{\"toy\": {\"1\": {", f);
            for (uint32_t l = 0; l < layers; l++)
                fprintf(f,
                        "%s\"%u\": {\"params_floats\": %.0f, \"act_mem_floats\": 1000, \"act_output_floats\": %.0f, "
                        "\"act_input_floats\": %.0f}",
                        l ? ", " : "", l, parameters, output, output);
            fputs("}}}", f);
            break;
        case 2:
            fputs("{\"gpu-a\": {\"gpus_per_node\": 4, \"mem_per_gpu\": 4e9}, \"gpu-b\": {\"gpus_per_node\": 4, "
                  "\"mem_per_gpu\": 4e9}, \"zone\": \"z\"}",
                  f);
            break;
        case 3:
            fputs("{}", f);
            break;
        default:
            fputs("{\"z\": {", f);
            for (int d = 0; d < 2; d++)
                fprintf(f,
                        "%s\"gpu-%c\": {\"1\": {\"z\": {\"gpu-a\": {\"1\": [[0, 0, 1], 1e9]}, \"gpu-b\": {\"1\": [[0, "
                        "0, 1], 1e9]}}}}",
                        d ? ", " : "", 'a' + d);
            fputs("}}", f);
        }
        fclose(f);
    }
    if (maq_profile_dir_load(&p, folder, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_at(diag, 0)->msg.ptr);
    for (int i = 0; i < 5; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
    maq_diag_free(diag);
    return p;
}

/* Four layers of 1 s forward and 2 s backward. */
static struct maq_profile_dir *toy(double parameters, double output)
{
    static const double forward[] = {1, 1, 1, 1}, backward[] = {2, 2, 2, 2};
    return profile_of(4, forward, backward, parameters, output);
}

enum judge { OURS, SAILOR };

static enum maq_status cost_of(struct maq_mixed_cost *out, enum judge judge, const struct maq_profile_dir *p,
                               const char *text, struct maq_diag *diag)
{
    struct maq_loaded_mixed_plan *box;
    assert_int_equal(maq_mixed_plan_parse(&box, "plan", (struct maq_str){text, strlen(text)}, NULL), MAQ_OK);
    enum maq_status status =
        (judge == OURS ? maq_mixed_predict : maq_mixed_judge_sailor)(out, maq_mixed_plan_get(box), p, diag);
    maq_mixed_plan_free(box);
    return status;
}

static struct maq_mixed_cost priced(enum judge judge, const struct maq_profile_dir *p, const char *text)
{
    struct maq_mixed_cost cost;
    struct maq_diag *diag = maq_diag_new();
    if (cost_of(&cost, judge, p, text, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_at(diag, 0)->msg.ptr);
    maq_diag_free(diag);
    return cost;
}

#define ONE_STAGE "mbs: 1\ngbs: 8\npipelines: [{stages: [{first_layer: 0, layers: 4, replicas: [{device: gpu-a}]}]}]"
#define TWO_STAGES(first, second)                                                                                      \
    "mbs: 1\ngbs: 8\npipelines: [{stages: [{first_layer: 0, layers: 2, replicas: [" first                              \
    "]}, {first_layer: 2, layers: 2, replicas: [" second "]}]}]"

static void test_closed_forms(void **state)
{
    (void)state;
    const struct maq_host_costs *host = &maq_framework_default.host;
    struct maq_profile_dir *p = toy(1e6, 0);
    struct maq_mixed_cost c = priced(OURS, p, ONE_STAGE);
    /* eight passes of four layers; Adam over the four layers that were profiled */
    CLOSE(c.pipeline_s, 8 * 12, 1e-9);
    CLOSE(c.update_s, 0.028 + host->step_s, 1e-9);
    assert_true(c.reduce_s == 0);
    CLOSE(c.step_s, 96 + 0.028 + host->step_s, 1e-9);
    /* weights, gradients, moments, two copies; one micro batch; outputs are empty; TP 1 outside of the allocator */
    CLOSE(c.memory_bytes, 4e6 * 24 + 4 * 1000 * 4 + 2e9, 1e-9);
    assert_true(c.fits);
    /* 1F1B over equal stages, (M + S - 1)(F + B), but for milliseconds of the host */
    c = priced(OURS, p, TWO_STAGES("{device: gpu-a}", "{device: gpu-a}"));
    CLOSE(c.pipeline_s, 9 * 6, 1e-3);
    assert_true(c.pipeline_s > 54 + 8 * host->pass_s);
    /* the slower stage sets the pace: (M - 1) max + sum */
    c = priced(OURS, p, TWO_STAGES("{device: gpu-a}", "{device: gpu-b}"));
    CLOSE(c.pipeline_s, 7 * 12 + 18, 1e-3);
    c = priced(SAILOR, p, TWO_STAGES("{device: gpu-a}", "{device: gpu-b}"));
    CLOSE(c.step_s, 7 * 12 + 18 + 0.028, 1e-9);
    maq_profile_dir_free(p);
}

static void test_replicas(void **state)
{
    (void)state;
    struct maq_profile_dir *p = toy(250e6, 0);
    /* two replicas, four micro batches each; a ring of 1e9 x 4 bytes over 1 GB/s: 2 x 1/2 x 4 s, then copies of 24/28 of Adam */
    struct maq_mixed_cost c = priced(
        OURS, p,
        "mbs: 1\ngbs: 8\npipelines: [{stages: [{first_layer: 0, layers: 4, replicas: [{device: gpu-a, count: 2}]}]}]");
    CLOSE(c.pipeline_s, 4 * 12, 1e-9);
    CLOSE(c.reduce_s, 4 + 0.028 * 24 / 28, 1e-6);
    assert_false(c.fits); /* 24 GB of state */
    /* two pipelines of one stage are two replicas of it; the published rule takes 500 MB at a time */
    static const char pipelines[] =
        "mbs: 1\ngbs: 8\npipelines: [{stages: [{first_layer: 0, layers: 4, replicas: [{device: "
        "gpu-a}]}]}, {stages: [{first_layer: 0, layers: 4, replicas: [{device: gpu-a}]}]}]";
    struct maq_mixed_cost two = priced(OURS, p, pipelines);
    CLOSE(two.step_s, c.step_s, 1e-12);
    CLOSE(two.reduce_s, c.reduce_s, 1e-12);
    two = priced(SAILOR, p, pipelines);
    CLOSE(two.pipeline_s, 4 * 12, 1e-9);
    CLOSE(two.reduce_s, 4, 1e-9);
    /* ZeRO-1 and -2 leave each replica half of the moments, and of the gradients */
    double plain = c.memory_bytes;
    c = priced(
        OURS, p,
        "mbs: 1\ngbs: 8\npipelines: [{stages: [{first_layer: 0, layers: 4, zero: optim, replicas: [{device: gpu-a, "
        "count: 2}]}]}]");
    CLOSE(plain - c.memory_bytes, 4e9, 1e-6);
    c = priced(
        OURS, p,
        "mbs: 1\ngbs: 8\npipelines: [{stages: [{first_layer: 0, layers: 4, zero: optim_grads, replicas: [{device: "
        "gpu-a, count: 2}]}]}]");
    CLOSE(plain - c.memory_bytes, 6e9, 1e-6);
    /* shares that fit the speeds: gpu-b is half as fast, so 6 and 3 of 9 take the same 72 s; equal shares take 5 x 24 */
    c = priced(
        OURS, p,
        "mbs: 1\ngbs: 9\npipelines: [{stages: [{first_layer: 0, layers: 4, replicas: [{device: gpu-a, microbatches: "
        "6}, {device: gpu-b, microbatches: 3}]}]}]");
    CLOSE(c.pipeline_s, 72, 1e-9);
    c = priced(OURS, p,
               "mbs: 1\ngbs: 9\npipelines: [{stages: [{first_layer: 0, layers: 4, replicas: [{device: gpu-b}, {device: "
               "gpu-a}]}]}]");
    CLOSE(c.pipeline_s, 120, 1e-9);
    /* two replicas behind one: the lone one works through all, and is done before a chain of equal stages would be */
    c = priced(OURS, p, TWO_STAGES("{device: gpu-a}", "{device: gpu-a, count: 2}"));
    assert_true(c.pipeline_s > 8 * 6 && c.pipeline_s < 8 * 6 + 6);
    /* two replicas before one: it begins after a forward pass and ends before a backward pass of theirs */
    c = priced(OURS, p, TWO_STAGES("{device: gpu-a, count: 2}", "{device: gpu-a}"));
    CLOSE(c.pipeline_s, 8 * 6 + 6, 2e-2);
    maq_profile_dir_free(p);
}

static void test_recomputation(void **state)
{
    (void)state;
    struct maq_profile_dir *p = toy(1e6, 100);
    struct maq_mixed_cost c = priced(OURS, p,
                                     "mbs: 1\ngbs: 8\npipelines: [{stages: [{first_layer: 0, layers: 4, recompute: "
                                     "full, replicas: [{device: gpu-a}]}]}]");
    CLOSE(c.pipeline_s, 8 * 16, 1e-9);
    /* inputs of layers 1 to 3, and one layer's activations and gradients in passing */
    CLOSE(c.memory_bytes - 2e9 - 4e6 * 24, (3 * 100 + 1000 + 2 * 100) * 4, 1e-6);
    c = priced(
        OURS, p,
        "mbs: 1\ngbs: 8\npipelines: [{stages: [{first_layer: 0, layers: 4, recompute: full, recompute_num_layers: 1, "
        "replicas: [{device: gpu-a}]}]}]");
    CLOSE(c.pipeline_s, 8 * 13, 1e-9);
    maq_profile_dir_free(p);
}

/* Messages of 1 s: 250e6 elements, far more than buffers hold, so that the sender waits as well. */
static void test_transfers(void **state)
{
    (void)state;
    struct maq_profile_dir *p = toy(1e6, 250e6);
    /* The last stage: receive, forward, backward, send, and the first stage answers at once: 2 s and 6 s per micro batch. */
    struct maq_mixed_cost c = priced(OURS, p, TWO_STAGES("{device: gpu-a}", "{device: gpu-b}"));
    CLOSE(c.pipeline_s, 7 * (12 + 2) + 18 + 2, 1e-2);
    c = priced(SAILOR, p, TWO_STAGES("{device: gpu-a}", "{device: gpu-b}"));
    CLOSE(c.step_s, 7 * (12 + 2) + 18 + 1 + 2 + 0.028, 1e-9);
    maq_profile_dir_free(p);
}

/* ---- DeepSpeed's schedule, simulated by other code ---- */

#define MAX_STAGES 5
#define MAX_MICROBATCHES 12

struct reference {
    int stages, microbatches;
    double forward[MAX_STAGES], backward[MAX_STAGES], hop, held;
    double now[MAX_STAGES], activation_wire[MAX_STAGES], gradient_wire[MAX_STAGES];
    double activation[MAX_STAGES][MAX_MICROBATCHES],
        gradient[MAX_STAGES][MAX_MICROBATCHES]; /* arrivals; < 0: not sent */
};

static void put_on_wire(struct reference *r, double *wire, double *arrival, int stage)
{
    double start = fmax(r->now[stage] + maq_framework_default.host.p2p_s / 2, *wire);
    *arrival = *wire = start + r->hop;
    r->now[stage] = start + r->hop * r->held;
}

static void take_off_wire(struct reference *r, double arrival, int stage)
{
    assert_true(arrival >= 0); /* steps are in an order in which everything that is received was sent */
    r->now[stage] = fmax(r->now[stage] + maq_framework_default.host.p2p_s / 2, arrival);
}

/* What TrainSchedule has a stage do in a step: even stages run forward passes in even steps, odd ones in odd steps. */
static int microbatch_at(const struct reference *r, int step, int stage, bool *forward)
{
    *forward = step % 2 == stage % 2;
    if (*forward)
        return (step - stage % 2) / 2 - stage / 2;
    return stage % 2 == 1 ? step / 2 - r->stages + (stage + 1) / 2 : (step - 1) / 2 - r->stages + 1 + stage / 2;
}

static bool valid(const struct reference *r, int microbatch)
{
    return microbatch >= 0 && microbatch < r->microbatches;
}

/* Transfers at the beginning of a step, first what is sent on, then what is received (a forward step), or the other way. */
static void exchange(struct reference *r, int step, int stage, bool receive)
{
    bool forward, last_forward;
    int m = microbatch_at(r, step, stage, &forward), before = microbatch_at(r, step - 1, stage, &last_forward);
    if (receive && forward && valid(r, m) && stage > 0)
        take_off_wire(r, r->activation[stage][m], stage);
    else if (receive && !forward && valid(r, m) && stage + 1 < r->stages)
        take_off_wire(r, r->gradient[stage][m], stage);
    else if (!receive && forward && step > 0 && valid(r, before) && stage > 0)
        put_on_wire(r, &r->gradient_wire[stage], &r->gradient[stage - 1][before], stage);
    else if (!receive && !forward && step > 0 && valid(r, before) && stage + 1 < r->stages)
        put_on_wire(r, &r->activation_wire[stage], &r->activation[stage + 1][before], stage);
}

static double play_reference(struct reference *r)
{
    double end = 0;
    for (int s = 0; s < MAX_STAGES; s++)
        for (int m = 0; m < MAX_MICROBATCHES; m++)
            r->activation[s][m] = r->gradient[s][m] = -1;
    for (int step = 0; step <= 2 * (r->microbatches + r->stages - 1); step++) {
        bool forward[MAX_STAGES];
        int m[MAX_STAGES];
        for (int s = 0; s < r->stages; s++)
            m[s] = microbatch_at(r, step, s, &forward[s]);
        /* gradients go, then come; activations go, then come */
        for (int s = 0; s < r->stages; s++)
            if (forward[s])
                exchange(r, step, s, false);
        for (int s = 0; s < r->stages; s++)
            if (!forward[s]) {
                exchange(r, step, s, true);
                exchange(r, step, s, false);
            }
        for (int s = 0; s < r->stages; s++)
            if (forward[s])
                exchange(r, step, s, true);
        for (int s = 0; s < r->stages; s++) {
            if (valid(r, m[s]))
                r->now[s] += forward[s] ? r->forward[s] : r->backward[s];
            end = fmax(end, r->now[s]);
        }
    }
    return end;
}

static uint32_t below(uint64_t *state, uint32_t n)
{
    return draw(state, 0, n - 1);
}

/* Stages of one or two layers of random times; messages that take from nothing to several passes. */
static void test_deepspeed_schedule(void **state)
{
    (void)state;
    uint64_t seed = 4;
    for (int run = 0; run < 60; run++) {
        double forward[MAX_LAYERS], backward[MAX_LAYERS], elements = run % 3 == 0 ? 0 : 1e6 * below(&seed, 500);
        struct reference r = {.stages = 1 + (int)below(&seed, MAX_STAGES),
                              .microbatches = 1 + (int)below(&seed, MAX_MICROBATCHES),
                              .hop = elements * 4e-9,
                              .held = elements > 0 ? fmax(0, 1 - 8 * 128 * 1024 / (elements * 4)) : 0};
        char plan[2048];
        size_t at = (size_t)snprintf(plan, sizeof plan, "mbs: 1\ngbs: %d\npipelines: [{stages: [", r.microbatches);
        uint32_t layers = 0;
        for (int s = 0; s < r.stages; s++) {
            uint32_t n = 1 + below(&seed, 2);
            at += (size_t)snprintf(plan + at, sizeof plan - at,
                                   "%s{first_layer: %u, layers: %u, replicas: [{device: gpu-a}]}", s ? ", " : "",
                                   layers, n);
            for (uint32_t l = 0; l < n; l++, layers++) {
                forward[layers] = 0.001 * (1 + below(&seed, 900));
                backward[layers] = 0.001 * (1 + below(&seed, 900));
                r.forward[s] += forward[layers];
                r.backward[s] += backward[layers];
            }
            r.forward[s] += s > 0 ? maq_framework_default.host.pass_s : 0;
            r.backward[s] += s + 1 < r.stages ? maq_framework_default.host.pass_s : 0;
        }
        snprintf(plan + at, sizeof plan - at, "]}]");
        struct maq_profile_dir *p = profile_of(layers, forward, backward, 1, elements);
        CLOSE(priced(OURS, p, plan).pipeline_s, play_reference(&r), 1e-6);
        maq_profile_dir_free(p);
    }
}

/* Any replicas and shares: nothing comes to a standstill, and no pipeline is faster than its work and its longest chain. */
static void test_uneven_replicas(void **state)
{
    (void)state;
    uint64_t seed = 11;
    static const double forward[] = {1, 1, 1, 1}, backward[] = {2, 2, 2, 2};
    struct maq_profile_dir *p = profile_of(4, forward, backward, 1, 1e6);
    for (int run = 0; run < 200; run++) {
        uint32_t stages = 1 + below(&seed, 4), microbatches = 1 + below(&seed, 24);
        double least = 12, work = 0;
        char plan[4096];
        size_t at = (size_t)snprintf(plan, sizeof plan, "mbs: 1\ngbs: %u\npipelines: [{stages: [", microbatches);
        for (uint32_t s = 0; s < stages; s++) {
            uint32_t layers = s + 1 < stages ? 1 : 4 - s, replicas = 1 + below(&seed, 4), left = microbatches;
            bool shares = below(&seed, 2) == 0 && microbatches >= replicas;
            at += (size_t)snprintf(plan + at, sizeof plan - at, "%s{first_layer: %u, layers: %u, replicas: [",
                                   s ? ", " : "", s, layers);
            for (uint32_t j = 0; j < replicas; j++) {
                uint32_t share = shares && j + 1 < replicas ? 1 + below(&seed, left - (replicas - 1 - j)) : left;
                at += (size_t)snprintf(plan + at, sizeof plan - at, "%s{device: gpu-a", j ? ", " : "");
                if (shares)
                    at += (size_t)snprintf(plan + at, sizeof plan - at, ", microbatches: %u", share);
                at += (size_t)snprintf(plan + at, sizeof plan - at, "}");
                left -= shares ? share : 0;
                if (shares)
                    work = fmax(work, 3.0 * layers * share);
            }
            work = fmax(work, 3.0 * layers * ((microbatches + replicas - 1) / replicas));
            at += (size_t)snprintf(plan + at, sizeof plan - at, "]}");
        }
        snprintf(plan + at, sizeof plan - at, "]}]");
        double t = priced(OURS, p, plan).pipeline_s;
        if (t < fmax(work, least) - 1e-9 || t > 12 * microbatches + 1)
            fail_msg("%.3f s for work of %.3f s: %s", t, work, plan);
    }
    maq_profile_dir_free(p);
}

static void refuse(enum judge judge, const struct maq_profile_dir *p, const char *text, unsigned code,
                   const char *words)
{
    struct maq_mixed_cost cost;
    struct maq_diag *diag = maq_diag_new();
    assert_int_not_equal(cost_of(&cost, judge, p, text, diag), MAQ_OK);
    if (!strstr(maq_diag_at(diag, 0)->msg.ptr, words))
        fail_msg("%s", maq_diag_at(diag, 0)->msg.ptr);
    assert_int_equal(maq_diag_at(diag, 0)->code, code);
    maq_diag_free(diag);
}

static void test_what_is_not_priced(void **state)
{
    (void)state;
    struct maq_profile_dir *p = toy(1e6, 0);
    refuse(OURS, p, "mbs: 2\ngbs: 8\npipelines: [{stages: [{first_layer: 0, layers: 4, replicas: [{device: gpu-a}]}]}]",
           MAQ_CODE_MIXED_UNPRICED, "no times of toy on gpu-a at micro batch 2 and TP 1");
    refuse(OURS, p, "mbs: 1\ngbs: 8\npipelines: [{stages: [{first_layer: 0, layers: 4, replicas: [{device: gpu-c}]}]}]",
           MAQ_CODE_PROFILE_NAME, "no device 'gpu-c'");
    refuse(OURS, p, "mbs: 1\ngbs: 8\npipelines: [{stages: [{first_layer: 0, layers: 5, replicas: [{device: gpu-a}]}]}]",
           MAQ_CODE_MIXED_UNPRICED, "0 models of the profile have 5 layers");
    refuse(OURS, p,
           "mbs: 1\ngbs: 8\nschedule: zb-h1\npipelines: [{stages: [{first_layer: 0, layers: 4, replicas: [{device: "
           "gpu-a}]}]}]",
           MAQ_CODE_MIXED_UNPRICED, "1f1b, not zb-h1");
    refuse(OURS, p,
           "mbs: 1\ngbs: 8\npipelines: [{stages: [{first_layer: 0, layers: 4, zero: optim_grads_params, replicas: "
           "[{device: gpu-a}]}]}]",
           MAQ_CODE_MIXED_UNPRICED, "ZeRO-3");
    refuse(SAILOR, p,
           "mbs: 1\ngbs: 8\npipelines: [{stages: [{first_layer: 0, layers: 4, recompute: full, replicas: [{device: "
           "gpu-a}]}]}]",
           MAQ_CODE_MIXED_UNPRICED, "neither ZeRO nor recomputation");
    refuse(SAILOR, p,
           "mbs: 1\ngbs: 8\npipelines: [{stages: [{first_layer: 0, layers: 4, replicas: [{device: gpu-a, zone: y}]}]}]",
           MAQ_CODE_PROFILE_NAME, "no zone 'y'");
    maq_profile_dir_free(p);
}

/* Fails the n-th allocation for every n until nothing fails. Leaks and stray reads are ASan's to see. */
static void test_out_of_memory(void **state)
{
    (void)state;
    struct maq_profile_dir *p = toy(1e6, 10);
    bool whole = false;
    for (fail_at = 1; !whole; fail_at++) {
        static const char text[] = TWO_STAGES("{device: gpu-a, count: 2}", "{device: gpu-b}");
        struct maq_loaded_mixed_plan *box = NULL;
        struct maq_mixed_cost cost;
        char *written = NULL;
        asked = 0;
        maq__set_alloc_gate(fail_nth);
        enum maq_status status = maq_mixed_plan_parse(&box, "plan", (struct maq_str){text, sizeof text - 1}, NULL);
        if (status == MAQ_OK)
            status = maq_mixed_predict(&cost, maq_mixed_plan_get(box), p, NULL);
        if (status == MAQ_OK)
            status = maq_mixed_judge_sailor(&cost, maq_mixed_plan_get(box), p, NULL);
        if (status == MAQ_OK)
            status = maq_mixed_plan_write(&written, maq_mixed_plan_get(box), NULL);
        maq__set_alloc_gate(NULL);
        whole = asked < fail_at;
        assert_int_equal(status, whole ? MAQ_OK : MAQ_NO_MEMORY);
        maq_mixed_plan_free(box);
        free(written);
    }
    assert_true(fail_at > 5);
    maq_profile_dir_free(p);
}

/* ---- the published profile ---- */

static struct maq_profile_dir *published(void)
{
    const char *shared = getenv("MAQ_SHARED");
    char folder[4096];
    struct maq_profile_dir *p = NULL;
    snprintf(folder, sizeof folder, "%s/data/planners/sailor", shared ? shared : "");
    if (!shared || access(folder, R_OK) != 0) {
        print_message("no published profile: set MAQ_SHARED to the folder that has data/planners/sailor\n");
        skip();
    }
    assert_int_equal(maq_profile_dir_load(&p, folder, NULL), MAQ_OK);
    return p;
}

#define STAGE(first, n, replicas) "{first_layer: " #first ", layers: " #n ", replicas: [" replicas "]}"
#define GPUS(kind, degree, n) "{device: " kind ", tp: " #degree ", count: " #n "}"
#define CASE(model, mbs, gbs, stages)                                                                                  \
    "model: " model "\nmbs: " #mbs "\ngbs: " #gbs "\npipelines: [{stages: [" stages "]}]"
#define A100 "A100-40"
#define V100 "V100-16"

/* Plans and what Sailor's own simulator says of them, in seconds to the digits that were printed: runs of its open code. */
static void test_published_figures(void **state)
{
    (void)state;
    static const struct {
        const char *plan;
        double step_s, digit;
    } cases[] = {
        {CASE("OPT-350", 4, 1024, STAGE(0, 26, GPUS(A100, 2, 16))), 7.710, 0.001},
        {CASE("OPT-350", 8, 1024, STAGE(0, 26, GPUS(A100, 4, 32))), 2.395, 0.001},
        {CASE("OPT-350", 2, 1024,
              STAGE(0, 9, GPUS(V100, 4, 16)) ", " STAGE(9, 4, GPUS(V100, 2, 16)) ", " STAGE(13, 13, GPUS(A100, 2, 16))),
         4.963, 0.001},
        {CASE("OPT-350", 4, 1024,
              STAGE(0, 5, GPUS(V100, 4, 20)) ", " STAGE(5, 4, GPUS(V100, 4, 20)) ", " STAGE(
                  9, 4, GPUS(V100, 4, 20)) ", " STAGE(13, 13, GPUS(A100, 4, 20))),
         2.480, 0.001},
        {CASE("OPT-350", 2, 1024, STAGE(0, 7, GPUS(V100, 1, 16)) ", " STAGE(7, 19, GPUS(A100, 1, 16))), 12.062, 0.001},
        {CASE("OPT-350", 4, 1024, STAGE(0, 7, GPUS(V100, 2, 16)) ", " STAGE(7, 19, GPUS(A100, 2, 16))), 6.643, 0.001},
        {CASE("GPT-Neo-2.7", 1, 2048,
              STAGE(0, 4, GPUS(V100, 2, 16)) ", " STAGE(4, 7, GPUS(V100, 4, 16)) ", " STAGE(
                  11, 11, GPUS(A100, 1, 16)) ", " STAGE(22, 12, GPUS(A100, 1, 16))),
         30.91, 0.01},
        {CASE("OPT-350", 2, 1024,
              STAGE(0, 13, GPUS(A100, 1, 3) ", " GPUS(V100, 4, 24)) ", " STAGE(13, 13, GPUS(A100, 1, 27))),
         5.884, 0.001},
    };
    struct maq_profile_dir *p = published();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct maq_mixed_cost c = priced(SAILOR, p, cases[i].plan);
        if (fabs(c.step_s - cases[i].step_s) > 0.51 * cases[i].digit || !c.fits)
            fail_msg("plan %zu takes %.5f s, not %.3f%s", i, c.step_s, cases[i].step_s,
                     c.fits ? "" : ", and does not fit");
    }
    maq_profile_dir_free(p);
}

/* TP over two nodes: the published simulator drops the compute of such groups; here it counts, and communication comes on top. */
static void test_compute_of_wide_groups(void **state)
{
    (void)state;
    struct maq_profile_dir *p = published();
    const struct maq_layer_time *t =
        maq_profile_dir_times(p, maq_profile_dir_find_model(p, (struct maq_str){"OPT-350", 7}),
                              maq_profile_dir_find_device(p, (struct maq_str){A100, 7}), 4, 1);
    double compute = 0;
    for (int l = 0; l < 26; l++)
        compute += (t[l].forward_s + t[l].backward_s) / 2;
    static const char plan[] =
        CASE("OPT-350", 4, 1024, STAGE(0, 26, "{tp: 2, count: 16, members: [{device: " A100 "}, {device: " A100 "}]}"));
    for (int judge = OURS; judge <= SAILOR; judge++)
        assert_true(priced((enum judge)judge, p, plan).pipeline_s > 16 * compute);
    struct maq_mixed_cost near = priced(SAILOR, p, CASE("OPT-350", 4, 1024, STAGE(0, 26, GPUS(A100, 2, 16))));
    assert_true(priced(SAILOR, p, plan).step_s > near.step_s);
    maq_profile_dir_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed_forms),       cmocka_unit_test(test_replicas),
        cmocka_unit_test(test_recomputation),      cmocka_unit_test(test_transfers),
        cmocka_unit_test(test_deepspeed_schedule), cmocka_unit_test(test_uneven_replicas),
        cmocka_unit_test(test_out_of_memory),      cmocka_unit_test(test_what_is_not_priced),
        cmocka_unit_test(test_published_figures),  cmocka_unit_test(test_compute_of_wide_groups),
    };
    return cmocka_run_group_tests_name("costs of mixed plans", tests, NULL, NULL);
}
