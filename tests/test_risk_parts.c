/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_risk_parts.c - which operations, parallel dimensions and stages drive a step's 95th percentile; kernels with laws of their own.
 * maq-test: threads maq-test: long
 */
#include "maquette/risk.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/stat/law.h"
#include "base/stat/rng.h"
#include "effort.h"
#include "maquette/train.h"
#include "risk/step/focus.h"
#include "temp.h"

static struct maq_loaded_job *load(const char *text)
{
    char path[] = "/tmp/maquette-test-risk-parts-XXXXXX";
    struct maq_loaded_job *box = NULL;
    struct maq_diag *diag = maq_diag_new();
    if (maq_job_load(&box, temp_text(path, text), NULL, 0, diag) != MAQ_OK)
        fail_msg("%s\n%s", text, maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    unlink(path);
    return box;
}

#define JOB(cluster, plan)                                                                                             \
    "{model: llama-3.1-8b, cluster: \"" cluster "\", plan: {" plan "}, workload: {gbs: 64, seq: 4096}}"
#define PIPELINE JOB("h100-sxm:8 x 2, rail 400G", "tp: 2, pp: 4")

#define ALL_PARTS (1u << MAQ_RISK_KERNELS | 1u << MAQ_RISK_DIMENSIONS | 1u << MAQ_RISK_STAGES)

/* Of a job under a variation, a document or a name. */
static struct maq_risk_step *ask(const char *job, const char *variation, uint32_t parts, uint32_t threads)
{
    char path[] = "/tmp/maquette-test-risk-parts-XXXXXX";
    struct maq_loaded_job *box = load(job);
    struct maq_risk_step_opts opts = MAQ_RISK_STEP_OPTS_INIT;
    struct maq_risk_step *step = NULL;
    struct maq_diag *diag = maq_diag_new();
    bool document = variation[0] == '{';
    opts.variation = document ? temp_text(path, variation) : variation;
    opts.draws = threads > 0 ? EFFORT(8u, 200u, 1600u) : 1600; /* who sets threads compares bytes, not statistics */
    opts.threads = threads;
    opts.no_sources = true;
    opts.parts = parts;
    if (maq_risk_step(&step, maq_job_get(box), &opts, diag) != MAQ_OK)
        fail_msg("%s\n%s", variation, maq_diag_format(diag, 0, false));
    if (document)
        unlink(path);
    maq_diag_free(diag);
    maq_job_free(box);
    step->job = NULL; /* gone */
    return step;
}

static const struct maq_risk_driver *find(const struct maq_risk_step *step, enum maq_risk_parts parts, const char *name)
{
    for (uint32_t i = 0; i < step->n_drivers[parts]; i++)
        if (strcmp(step->driver[parts][i].name, name) == 0)
            return &step->driver[parts][i];
    fail_msg("no part %s", name);
    return NULL;
}

/* Nothing varies: the step of maq_train_predict(), and no part drives anything; whatever the kinds of plan. */
static void test_nothing_varies(void **state)
{
    static const char *const jobs[] = {
        JOB("h100-sxm:8", "tp: 2"),
        PIPELINE,
        JOB("h100-sxm:8 x 2, rail 400G", "tp: 2, pp: 4, vp: 2"),
        JOB("h100-sxm:8 x 2, rail 400G", "pp: 4, pipeline_schedule: zb-h1"),
        JOB("h100-sxm:8 x 2, rail 400G", "pp: 4, pipeline_schedule: dualpipe"),
        JOB("h100-sxm:8 x 2, rail 400G", "zero: optim_grads_params"),
    };
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        struct maq_loaded_job *box = load(jobs[i]);
        struct maq_train_result *train;
        struct maq_risk_step *step = ask(jobs[i], "none", ALL_PARTS, 1);
        assert_int_equal(maq_train_predict(&train, maq_job_get(box), NULL), MAQ_OK);
        assert_true(step->base_s == train->step_s && step->figure[MAQ_RISK_P95].value_s == train->step_s);
        for (int k = 0; k < MAQ_RISK_PARTS; k++) {
            assert_true(step->n_drivers[k] > 0);
            for (uint32_t d = 0; d < step->n_drivers[k]; d++) {
                const struct maq_risk_driver *r = &step->driver[k][d];
                if (fabs(r->alone.value_s) + fabs(r->halved.value_s) + fabs(r->removed.value_s) > 1e-8 * step->base_s)
                    fail_msg("%s: %s drives %g, %g, %g", jobs[i], r->name, r->alone.value_s, r->halved.value_s,
                             r->removed.value_s);
            }
        }
        maq_train_result_free(train);
        maq_risk_step_free(step);
        maq_job_free(box);
    }
}

/* Half of a part's variation is between all and none; no part drives more than all; shares of kernels are those of dimensions. */
static void test_order(void **state)
{
    NOT_UNDER_A_SANITIZER();
    struct maq_risk_step *step = ask(PIPELINE, "default", ALL_PARTS, 0);
    double spread = step->figure[MAQ_RISK_P95].value_s - step->base_s, share[2] = {0}, room = 2e-4 * step->base_s;
    for (int k = 0; k < MAQ_RISK_PARTS; k++)
        for (uint32_t i = 0; i < step->n_drivers[k]; i++) {
            const struct maq_risk_driver *d = &step->driver[k][i];
            assert_true(d->alone.value_s > -room && d->alone.value_s < spread + room);
            assert_true(d->halved.value_s > -room && d->removed.value_s > d->halved.value_s - room &&
                        d->removed.value_s < spread + room);
            if (k < 2 && !isnan(d->share))
                share[k] += d->share;
        }
    assert_true(share[0] > 0.5 && share[0] < 1 && fabs(share[0] - share[1]) < 0.005); /* small kernels are left out */
    assert_true(strcmp(step->driver[MAQ_RISK_KERNELS][0].name, "gemm") == 0);
    assert_true(find(step, MAQ_RISK_DIMENSIONS, "compute")->alone.value_s >
                find(step, MAQ_RISK_DIMENSIONS, "TP communication")->alone.value_s);
    /* the last stage has the head: it is the slowest, and what varies there counts (variability.md 3.4 says so of a slow GPU) */
    assert_true(find(step, MAQ_RISK_STAGES, "stage 3")->removed.value_s >
                5 * find(step, MAQ_RISK_STAGES, "stage 0")->removed.value_s);
    maq_risk_step_free(step);
}

static void test_threads(void **state)
{
    static const char own[] = "{kernels: [{name: gemm, cv: 0.1, slow_share: 0.01, slow_ratio: 4}]}";
#define PASSES(layers, gbs)                                                                                            \
    "{model: {base: llama-3.1-8b, num_hidden_layers: " layers "}, cluster: 'h100-sxm:4 x 2, rail 400G',"               \
    " plan: {tp: 2, pp: 2}, workload: {gbs: " gbs ", seq: 4096}}"
    const char *job =
        EFFORT(PASSES("6", "4"), PASSES("32", "16"), PIPELINE); /* an eighth of the pipeline's passes, and less */
    /* threads share the drivers of all parts alike: under a sanitizer those of one part are enough */
    uint32_t parts = SANITIZED ? 1u << MAQ_RISK_STAGES : ALL_PARTS;
    struct maq_risk_step *a = ask(job, own, parts, 1), *b = ask(job, own, parts, 16);
    assert_memory_equal(a->figure, b->figure, sizeof a->figure);
    for (int k = 0; k < MAQ_RISK_PARTS; k++) {
        assert_int_equal(a->n_drivers[k], b->n_drivers[k]);
        for (uint32_t i = 0; i < a->n_drivers[k]; i++)
            assert_true(a->driver[k][i].alone.value_s == b->driver[k][i].alone.value_s &&
                        a->driver[k][i].removed.value_s == b->driver[k][i].removed.value_s &&
                        strcmp(a->driver[k][i].name, b->driver[k][i].name) == 0);
    }
    maq_risk_step_free(a);
    maq_risk_step_free(b);
}

/* A law for a kernel that the job does not run changes nothing, though the step is put together of its parts then; with slow parts too. */
static void test_same_of_parts(void **state)
{
    static const char *const slow[] = {"node:1=1.2x", "stage:0=1.1x", "link:rail3=0.5x"};
    static const char *const with[] = {"{microbatch_cv: 0.05}",
                                       "{microbatch_cv: 0.05, kernels: [{name: ssm_scan, cv: 0.3}]}"};
    struct maq_loaded_job *box = load(PIPELINE);
    for (uint32_t n = 0; n <= 3; n += SANITIZED ? 3 : 1) {
        double p95[2], mean[2];
        for (int k = 0; k < 2; k++) {
            char path[] = "/tmp/maquette-test-risk-parts-XXXXXX";
            struct maq_risk_step_opts opts = MAQ_RISK_STEP_OPTS_INIT;
            struct maq_risk_step *step = NULL;
            opts.variation = temp_text(path, with[k]);
            opts.draws = 1600;
            opts.no_sources = true;
            opts.slow = slow;
            opts.n_slow = n;
            assert_int_equal(maq_risk_step(&step, maq_job_get(box), &opts, NULL), MAQ_OK);
            p95[k] = step->figure[MAQ_RISK_P95].value_s;
            mean[k] = step->figure[MAQ_RISK_MEAN].value_s;
            unlink(path);
            maq_risk_step_free(step);
        }
        assert_true(fabs(p95[1] / p95[0] - 1) < 1e-8 && fabs(mean[1] / mean[0] - 1) < 1e-8);
    }
    maq_job_free(box);
}

/* More of an own law is never faster; a communication tail makes its collective a driver, as published for tails of ten times the mean. */
static void test_own_laws(void **state)
{
    NOT_UNDER_A_SANITIZER();
    static const char *const more[][3] = {
        {"{kernels: [{name: gemm, cv: 0.01}]}", "{kernels: [{name: gemm, cv: 0.1}]}",
         "{kernels: [{name: gemm, cv: 1}]}"},
        {"{kernels: [{name: all_gather tp, cv: 0.01}]}", "{kernels: [{name: all_gather tp, cv: 0.2}]}",
         "{kernels: [{name: all_gather tp, cv: 2}]}"},
        {"{kernels: [{name: send_recv pp, cv: 0.1}]}",
         "{kernels: [{name: send_recv pp, cv: 0.1, slow_share: 0.1, slow_ratio: 3}]}",
         "{kernels: [{name: send_recv pp, cv: 0.1, slow_share: 0.1, slow_ratio: 30}]}"},
        {"{kernels: [{name: reduce_scatter dp, cv: 0.1}]}",
         "{kernels: [{name: reduce_scatter dp, cv: 0.1, slow_share: 0.02, slow_ratio: 10}]}",
         "{kernels: [{name: reduce_scatter dp, cv: 0.1, slow_share: 0.2, slow_ratio: 10}]}"},
    };
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        double before = 0;
        for (int k = 0; k < 3; k++) {
            struct maq_risk_step *step = ask(PIPELINE, more[i][k], 0, 0);
            double now = step->figure[MAQ_RISK_P95].value_s;
            if (now < before * (1 - 1e-9))
                fail_msg("%s: %.9g, less than %.9g", more[i][k], now, before);
            before = now;
            maq_risk_step_free(step);
        }
    }
    struct maq_risk_step *tails = ask(
        JOB("h100-sxm:8 x 8, rail 400G", "tp: 2, pp: 2, zero: optim"),
        "{kernels: [{name: reduce_scatter dp, cv: 0.1, slow_share: 0.05, slow_ratio: 10}]}", 1u << MAQ_RISK_KERNELS, 0);
    assert_true(find(tails, MAQ_RISK_KERNELS, "reduce_scatter dp")->alone.value_s >
                find(tails, MAQ_RISK_KERNELS, "gemm")->alone.value_s);
    maq_risk_step_free(tails);
}

/* One pass of two signatures, by hand: an operator of 48 runs on four GPUs that meet 12 times, and a collective with slow runs. */
static void test_own_table(void **state)
{
    enum { RUNS = 48, MEETINGS = 12, GPUS = 4, DRAWS = 20000 };
    double of_pass[2] = {0.6, 0.4}, of_rest = 0, runs[2] = {RUNS, 20}, meetings = MEETINGS, pass_ns = 1,
           one[2] = {1, 1};
    struct maq_signature at[2] = {
        {.of_pass = &of_pass[0], .of_rest = &of_rest, .runs = &runs[0], .law = 0},
        {.of_pass = &of_pass[1], .of_rest = &of_rest, .runs = &runs[1], .law = 1, .is_coll = true}};
    struct maq_signatures all = {2, at, &meetings};
    struct maq_variation v = {.n_kernels = 2,
                              .kernel = {{.name = "gemm", .cv = 0.1, .slow_ratio = 1},
                                         {.name = "all_reduce tp", .cv = 0.3, .slow_share = 0.01, .slow_ratio = 10}}};
    struct maq_step_task task = {.dur_ns = 1};
    double rest_ns = 0;
    struct maq_step_model m = {.n_tasks = 1,
                               .stages = 1,
                               .tasks = &task,
                               .n_passes = 1,
                               .pass_ns = &pass_ns,
                               .rest_ns = &rest_ns,
                               .lockstep = GPUS};
    struct maq_spread spread = {one, one};
    struct maq_step_focus f;
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    assert_int_equal(maq_step_focus_make(&f, &all, &v, &spread, &m, &arena), MAQ_OK);
    double mean = 0, square = 0, want = 0, want_square = 0;
    for (uint32_t i = 0; i < MAQ_STEP_TABLE; i++) {
        mean += f.own_table[0][i] / MAQ_STEP_TABLE;
        square += f.own_table[0][i] * f.own_table[0][i] / MAQ_STEP_TABLE;
        assert_true(i == 0 || f.own_table[0][i] >= f.own_table[0][i - 1]);
    }
    struct maq_law op = maq_law_lognormal(1, sqrt(log1p(0.01))), coll = maq_law_lognormal(1, sqrt(log1p(0.09)));
    for (uint32_t i = 0; i < DRAWS; i++) {
        struct maq_rng r = maq_rng_of(7, MAQ_RNG_TEST, i);
        double pass = 0;
        for (int k = 0; k < MEETINGS; k++) {
            double slowest = 0;
            for (int g = 0; g < GPUS; g++) {
                double sum = 0;
                for (int n = 0; n < RUNS / MEETINGS; n++)
                    sum += 0.6 / RUNS * maq_law_sample(&op, &r);
                slowest = fmax(slowest, sum);
            }
            pass += slowest;
        }
        for (int n = 0; n < 20; n++)
            pass += 0.4 / 20 * maq_law_sample(&coll, &r) * (maq_rng_next(&r) < 0.01 ? 10 : 1);
        want += pass / DRAWS;
        want_square += pass * pass / DRAWS;
    }
    double sd = sqrt(square - mean * mean), want_sd = sqrt(want_square - want * want);
    print_message("# mean %.5f, simulated %.5f; sd %.5f, simulated %.5f\n", mean, want, sd, want_sd);
    assert_true(f.with_pass[0] == 0 && fabs(f.own[0] - 1) < 1e-12);
    assert_true(fabs(mean / want - 1) < 0.003 && fabs(sd / want_sd - 1) < 0.05);
    maq_arena_fini(&arena);
}

/*
 * Slow reductions, one in many: 64 replicas of one GPU, nothing else varies, so the step is the base and rest x
 * (slowest of 64 draws - 1). The law of a draw is known, a share of them ratio - 1 medians longer; of few draws too,
 * and more of them is never faster. 2 % of the effect are for the law of the slowest being held as 256 values.
 */
static void test_rare_reductions(void **state)
{
    static const double share[] = {0, 0.002, 0.01, 0.02, 0.05, 0.1};
    static const char job[] = JOB("h100-sxm:8 x 8, rail 400G", "zero: optim");
    struct maq_loaded_job *box = load(job);
    struct maq_step_model m;
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    assert_int_equal(maq_step_model_build(&m, maq_job_get(box), &arena, NULL), MAQ_OK);
    assert_true(m.replicas == 64 && m.stages == 1 && m.rest_ns[0] > 0);
    for (uint32_t draws = 800; draws <= 8000; draws *= 10) {
        double before = 0;
        for (size_t i = 0; i < sizeof share / sizeof *share; i++) {
            char path[] = "/tmp/maquette-test-risk-parts-XXXXXX", text[512];
            struct maq_risk_step_opts opts = MAQ_RISK_STEP_OPTS_INIT;
            struct maq_risk_step *step = NULL;
            snprintf(text, sizeof text,
                     "{gpu_cv: 0, node_cv: 0, pass_cv: 0, step_cv: 0, communication_cv: 0, congested_share: 0, "
                     "spike_share: 0, "
                     "kernels: [{name: reduce_scatter dp, cv: 0.1, slow_share: %g, slow_ratio: 10}]}",
                     share[i]);
            opts.variation = temp_text(path, text);
            opts.draws = draws;
            opts.no_sources = true;
            assert_int_equal(maq_risk_step(&step, maq_job_get(box), &opts, NULL), MAQ_OK);
            /* the factor x at P(one draw > x) = 1 - 0.95^(1/64): mixture of X and X + 9 m, X lognormal with mean m */
            struct maq_law x = maq_law_lognormal(1, sqrt(log1p(0.01)));
            double more = 9 * maq_law_mean(&x), q = -expm1(log(0.95) / 64), low = 0, high = 100;
            for (int n = 0; n < 100; n++) {
                double at = 0.5 * (low + high);
                double above = (1 - share[i]) * maq_law_sf(&x, at) + share[i] * maq_law_sf(&x, at - more);
                *(above > q ? &low : &high) = at;
            }
            double want = m.base_ns * 1e-9 + m.rest_ns[0] * 1e-9 * (high - 1), got = step->figure[MAQ_RISK_P95].value_s;
            double error = (step->figure[MAQ_RISK_P95].high_s - step->figure[MAQ_RISK_P95].low_s) / 2 / 2.262;
            print_message("# %u draws, share %g: p95 %.5f, in closed form %.5f, +- %.5f\n", draws, share[i], got, want,
                          error);
            if (fabs(got - want) > 4 * error + 0.02 * m.rest_ns[0] * 1e-9 * (high - 1) || got < before)
                fail_msg("%u draws, share %g: %.6g, not %.6g +- %.2g; with fewer %.6g", draws, share[i], got, want,
                         error, before);
            before = got;
            unlink(path);
            maq_risk_step_free(step);
        }
    }
    maq_arena_fini(&arena);
    maq_job_free(box);
}

/* A reduction by its recorded values: no law but these. The slowest of 64 of them is one of the upper ones, by the power of its share. */
static void test_quantiles(void **state)
{
    static const double value[] = {0.9, 0.98, 1, 1.02, 1.06, 1.1, 1.15, 1.3};
    static const char job[] = JOB("h100-sxm:8 x 8, rail 400G", "zero: optim");
    struct maq_loaded_job *box = load(job);
    struct maq_step_model m;
    struct maq_arena arena;
    char path[] = "/tmp/maquette-test-risk-parts-XXXXXX";
    struct maq_risk_step_opts opts = MAQ_RISK_STEP_OPTS_INIT;
    struct maq_risk_step *step = NULL;
    maq_arena_init(&arena, 0);
    assert_int_equal(maq_step_model_build(&m, maq_job_get(box), &arena, NULL), MAQ_OK);
    opts.variation = temp_text(
        path, "{gpu_cv: 0, node_cv: 0, pass_cv: 0, step_cv: 0, communication_cv: 0, congested_share: 0, spike_share: 0,"
              " kernels: [{name: reduce_scatter dp, quantiles: [0.9, 0.98, 1, 1.02, 1.06, 1.1, 1.15, 1.3]}]}");
    opts.no_sources = true;
    opts.draws = 8000;
    assert_int_equal(maq_risk_step(&step, maq_job_get(box), &opts, NULL), MAQ_OK);
    double mean = 0, before = 0, base = (m.base_ns - m.rest_ns[0]) * 1e-9, rest = m.rest_ns[0] * 1e-9;
    for (int i = 0; i < 8; i++) {
        double upto = pow((i + 1) / 8.0, m.replicas);
        mean += value[i] * (upto - before);
        before = upto;
    }
    assert_true(m.replicas == 64); /* 0.9998 of the slowest of 64 are the greatest value */
    assert_true(fabs(step->figure[MAQ_RISK_P50].value_s - (base + rest * 1.3)) < 1e-3 * rest);
    assert_true(fabs(step->figure[MAQ_RISK_MEAN].value_s - (base + rest * mean)) < 2e-3 * rest);
    unlink(path);
    maq_risk_step_free(step);
    maq_arena_fini(&arena);
    maq_job_free(box);
}

static void test_refused(void **state)
{
    static const struct {
        const char *text;
        uint32_t code;
    } bad[] = {{"{kernels: [{name: gem, cv: 0.1}]}", 1638},
               {"{kernels: [{name: all_reduce xp, cv: 0.1}]}", 1638},
               {"{kernels: [{name: pause, cv: 0.1}]}", 1638},
               {"{kernels: [{name: gemm, cv: 0.1}, {name: gemm, cv: 0.2}]}", 1638},
               {"{kernels: [{name: gemm, quantiles: [1]}]}", 1638},
               {"{kernels: [{name: gemm, quantiles: [1, 0.9]}]}", 1638},
               {"{kernels: [{name: gemm, quantiles: [0, 1]}]}", 1638},
               {"{kernels: [{name: gemm, quantiles: [0.9, nan]}]}", 1638},
               {"{kernels: [{name: gemm, quantiles: 1.1}]}", 1638},
               {"{kernels: {gemm: 0.1}}", 0},
               {"{kernels: [gemm]}", 0},
               {"{kernels: [{cv: 0.1}]}", 0},
               {"{kernels: [{name: gemm, cv: 3}]}", 0},
               {"{kernels: [{name: gemm, cw: 1}]}", 0}};
    struct maq_loaded_job *box = load(PIPELINE);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char path[] = "/tmp/maquette-test-risk-parts-XXXXXX";
        struct maq_risk_step_opts opts = MAQ_RISK_STEP_OPTS_INIT;
        struct maq_risk_step *step = NULL;
        struct maq_diag *diag = maq_diag_new();
        opts.variation = temp_text(path, bad[i].text);
        if (maq_risk_step(&step, maq_job_get(box), &opts, diag) != MAQ_BAD_INPUT)
            fail_msg("%s is taken", bad[i].text);
        assert_null(step);
        assert_true(maq_diag_errors(diag) >= 1);
        if (bad[i].code)
            assert_int_equal(maq_diag_at(diag, 0)->code, bad[i].code);
        unlink(path);
        maq_diag_free(diag);
    }
    maq_job_free(box);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_varies),  cmocka_unit_test(test_order),         cmocka_unit_test(test_threads),
        cmocka_unit_test(test_own_laws),        cmocka_unit_test(test_same_of_parts), cmocka_unit_test(test_own_table),
        cmocka_unit_test(test_rare_reductions), cmocka_unit_test(test_quantiles),     cmocka_unit_test(test_refused),
    };
    ONLY_UNDER_TSAN("test_threads");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
