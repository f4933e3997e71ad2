/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_placed_random.c - a plan whose stages are all alike takes as long, and as much memory, stage by stage (maq_mixed_place) as it does
 * as a job's plan (maq_train_predict): random jobs on one node group, dense and with experts, in nodes of one scale-up domain, of several
 * and of less than one, with and without virtual stages, bound by compute, by the host, by transfers and by the exchange of gradients.
 *
 * Memory is the same, and so is the step, but for some nanoseconds that are rounded elsewhere.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/str.h"
#include "effort.h"
#include "maquette/mixed_step.h"
#include "maquette/train.h"
#include "random_draws.h"

#define JOBS EFFORT(120, 1000, 3000)
#define WITHIN 1e-7
#define CLOCK_S 4e-9 /* times are whole nanoseconds, rounded here and there */

static const struct {
    const char *name;
    uint32_t layers, experts;
} models[] = {{"llama-3.1-8b", 32, 0}, {"gpt2-xl", 48, 0},         {"gpt3-6.7b", 32, 0},    {"llama-3.2-1b", 16, 0},
              {"gemma-3-12b", 48, 0},  {"qwen3-30b-a3b", 48, 128}, {"olmoe-1b-7b", 16, 64}, {"gpt-oss-20b", 24, 32}};
static const struct {
    const char *name;
    uint32_t per_node;
    const char *precision;
} devices[] = {{"h100-sxm", 8, "auto"}, {"h100-pcie", 8, "auto"}, {"a100-80gb", 4, "auto"}, {"gb200", 4, "auto"},
               {"l40s", 8, "auto"},     {"mi300x", 8, "auto"},    {"a40", 8, "auto"},       {"v100-32gb", 8, "fp16"}};

struct spec {
    uint32_t model, device, nodes, gbps, tp, pp, vp, cp, ep, dp, mbs, gbs, seq;
    uint32_t zero, framework;
};

struct taken {
    double step_s, bytes; /* of the fullest device, without cached blocks; 0: refused */
};

static const char *const sharding[] = {"no_shard", "optim", "optim_grads", "optim_grads_params"};
static const char *const frameworks[] = {"null", "megatron-lm",       "nemo", "torchtitan", "megatron-bridge",
                                         "jax",  "megatron-deepspeed"};

static bool draw_spec(struct spec *s, uint64_t *state)
{
    *s = (struct spec){.model = draw(state, 0, MAQ_COUNT(models) - 1),
                       .device = draw(state, 0, MAQ_COUNT(devices) - 1),
                       .nodes = 1u << draw(state, 0, 2),
                       .gbps = 6u << draw(state, 0, 6),
                       .tp = 1u << draw(state, 0, 2),
                       .pp = 1u << draw(state, 0, 3),
                       .vp = draw(state, 1, 4),
                       .cp = 1u << draw(state, 0, 1),
                       .ep = 1u << draw(state, 0, 3),
                       .mbs = draw(state, 1, 2),
                       .seq = 1024u << draw(state, 0, 2),
                       .zero = draw(state, 0, 3),
                       .framework = draw(state, 0, MAQ_COUNT(frameworks) - 1)};
    uint32_t n = s->nodes * devices[s->device].per_node, shard = s->tp * s->pp * s->cp;
    s->vp = s->pp > 1 ? s->vp : 1;
    s->ep = models[s->model].experts > 0 ? s->ep : 1;
    if (n % shard != 0 || models[s->model].layers % (s->pp * s->vp) != 0)
        return false;
    s->dp = n / shard;
    s->gbs = s->mbs * s->dp * s->pp << draw(state, 0, 2);
    return n / s->pp % s->ep == 0;
}

static void write_job(char *out, size_t size, const struct spec *s)
{
    snprintf(out, size,
             "model: %s\ncluster: '%s:%u x %u, rail %uG ib'\nworkload: {seq: %u, gbs: %u}\nframework: %s\n"
             "plan: {tp: %u, pp: %u, vp: %u, cp: %u, ep: %u, etp: %u, mbs: %u, precision: %s, zero: %s,"
             " recompute: none}\n",
             models[s->model].name, devices[s->device].name, devices[s->device].per_node, s->nodes, s->gbps, s->seq,
             s->gbs, frameworks[s->framework], s->tp, s->pp, s->vp, s->cp, s->ep, s->ep > 1 ? 1u : 0, s->mbs,
             devices[s->device].precision, sharding[s->zero]);
}

static void write_plan(char *out, size_t size, const struct spec *s)
{
    uint32_t n = s->pp * s->vp, each = models[s->model].layers / n, first = 0;
    size_t at = (size_t)snprintf(out, size, "mbs: %u\ngbs: %u\nschedule: %s\npipelines: [{stages: [", s->mbs, s->gbs,
                                 s->vp > 1 ? "interleaved" : "1f1b");
    for (uint32_t k = 0; k < n; k++) {
        uint32_t layers = each + (k == 0) + (k + 1 == n);
        char experts[64] = "", shares[32] = "";
        if (s->ep > 1)
            snprintf(experts, sizeof experts, ", ep: %u, etp: 1", s->ep);
        if (k >= s->pp)
            snprintf(shares, sizeof shares, ", on_devices_of: %u", k % s->pp);
        at += (size_t)snprintf(out + at, size - at,
                               "%s{first_layer: %u, layers: %u, zero: %s%s, replicas: [{device: %s, tp: %u, sp: %s, "
                               "cp: %u, count: %u%s}]}",
                               k > 0 ? ", " : "", first, layers, sharding[s->zero], shares, devices[s->device].name,
                               s->tp, s->tp > 1 ? "true" : "false", s->cp, s->dp, experts);
        first += layers;
    }
    snprintf(out + at, size - at, "]}]\n");
}

static struct taken trained(const char *text, struct maq_diag *diag)
{
    struct maq_loaded_job *box = NULL;
    struct maq_train_result *r = NULL;
    struct taken out = {0};
    if (maq_job_parse(&box, "job", maq_str_of(text), NULL, 0, diag) == MAQ_OK &&
        maq_train_predict(&r, maq_job_get(box), diag) == MAQ_OK)
        out.step_s = r->step_s;
    for (uint32_t i = 0; r && i < r->n_stages; i++)
        out.bytes = fmax(out.bytes, r->stages[i].needed_bytes);
    if (r)
        maq_train_result_free(r);
    maq_job_free(box);
    return out;
}

static struct taken placed(const char *text, const char *plan, struct maq_diag *diag)
{
    struct maq_loaded_job *open = NULL;
    struct maq_loaded_mixed_plan *box = NULL;
    struct maq_mixed_placed *p = NULL;
    if (maq_job_parse_open(&open, "job", maq_str_of(text), NULL, 0, diag) != MAQ_OK ||
        maq_mixed_plan_parse(&box, "plan", maq_str_of(plan), diag) != MAQ_OK ||
        maq_mixed_place(&p, maq_mixed_plan_get(box), open, diag) != MAQ_OK)
        fail_msg("%s\n%s\n%s", text, plan, maq_diag_format(diag, 0, false));
    struct taken out = {.step_s = p->step_s};
    for (uint32_t i = 0; i < p->n_stages; i++)
        out.bytes = fmax(out.bytes, p->stages[i].memory_bytes);
    maq_mixed_placed_free(p);
    maq_mixed_plan_free(box);
    maq_job_free(open);
    return out;
}

static void test_alike(void **unused)
{
    uint64_t state = 20261124;
    uint32_t ran = 0, rounds = 0;
    double most = 0;
    (void)unused;
    for (int i = 0; i < JOBS; i++) {
        static char job[1024], plan[1 << 14];
        struct spec s;
        if (!draw_spec(&s, &state))
            continue;
        struct maq_diag *diag = maq_diag_new();
        write_job(job, sizeof job, &s);
        write_plan(plan, sizeof plan, &s);
        struct taken whole = trained(job, diag);
        if (whole.step_s > 0) {
            struct taken stages = placed(job, plan, diag);
            double apart = fmax(fabs(stages.step_s - whole.step_s) - CLOCK_S, 0) / whole.step_s,
                   fuller = stages.bytes / whole.bytes - 1;
            ran++;
            rounds += s.vp > 1;
            most = fmax(most, apart);
            if (!(apart <= WITHIN) || !(fabs(fuller) < 1e-9))
                fail_msg("placed %.9f s, %.0f B, trained %.9f s, %.0f B:\n%s%s", stages.step_s, stages.bytes,
                         whole.step_s, whole.bytes, job, plan);
        }
        maq_diag_free(diag);
    }
    print_message("%u jobs, %u of them with virtual stages: at most %.3f %% apart\n", ran, rounds, 100 * most);
    assert_true(ran > JOBS / 10 && rounds > ran / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_alike)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
