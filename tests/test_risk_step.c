/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_risk_step.c - the slowest of n, and the distribution of a step: closed forms, nothing varying, monotony, threads. maq-test: threads, maq-test: long
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

#include "base/stat/maximum.h"
#include "base/stat/special_functions.h"
#include "effort.h"
#include "maquette/train.h"
#include "plan/schedule/schedule.h"
#include "risk/step/job_law.h"
#include "risk/step/model.h"
#include "risk/step/slowdowns.h"
#include "temp.h"

static void near(double got, double want, double room, const char *what)
{
    if (!(fabs(got - want) <= room))
        fail_msg("%s: %.12g, not %.12g within %g", what, got, want, room);
}

/* --- the slowest of n ------------------------------------------------------------------------------------------------ */

/* Harmonic numbers; published values of the normal; the equicorrelated normal; barriers in a row. */
static void test_slowest(void **state)
{
    double mean, variance, harmonic = 0, squares = 0;
    struct maq_law one = maq_law_exponential(1), normal = maq_law_normal(0, 1);
    for (int k = 1; k <= 1024; k++) {
        harmonic += 1.0 / k;
        squares += 1.0 / k / k;
    }
    maq_max_moments(&mean, &variance, &one, 1024);
    near(mean, harmonic, 1e-9, "mean of 1,024 exponentials");
    near(mean, 7.5091756723, 1e-9, "mean of 1,024 exponentials");
    near(variance, squares, 1e-9, "variance of 1,024 exponentials");
    near(variance, 1.6439579810, 1e-9, "variance of 1,024 exponentials");
    maq_max_moments(&mean, &variance, &normal, 65536);
    near(mean, 4.2911293159, 1e-6, "mean of 65,536 normals");
    near(sqrt(variance), 0.2770285359, 1e-6, "sd of 65,536 normals");
    near(maq_max_quantile(&normal, 65536, 0.95), 4.802707, 1e-6, "p95");
    near(maq_max_quantile(&normal, 65536, 0.99), 5.119275, 1e-6, "p99");
    near(maq_max_cdf(&normal, 65536, maq_max_quantile(&normal, 65536, 0.3)), 0.3, 1e-12, "both ways");
    static const double published[][3] = {{2, 0.5641895835, 0.8256452712},
                                          {8, 1.4236003060, 0.6106530466},
                                          {1024, 3.2482396014, 0.3507604973},
                                          {16384, 3.9713505703, 0.2962767946}};
    for (size_t i = 0; i < 4; i++) {
        maq_max_moments(&mean, &variance, &normal, published[i][0]);
        near(mean, published[i][1], 1e-9, "mean of n normals");
        near(sqrt(variance), published[i][2], 1e-9, "sd of n normals");
    }
    /* 0.02 (sqrt(1/2) Z + sqrt(1/2) M) + 1 of 1,024: mean and sd in closed form, quantiles over Z */
    maq_max_moments(&mean, &variance, &normal, 1024);
    double half = sqrt(0.5);
    near(1 + 0.02 * half * mean, 1.04593704, 1e-8, "equicorrelated mean");
    near(0.02 * sqrt(0.5 + 0.5 * variance), 0.01498688, 1e-8, "equicorrelated sd");
    static const double tail[][2] = {{0.05, 1.021407}, {0.95, 1.070701}};
    for (size_t i = 0; i < 2; i++) {
        double low = 0.9, high = 1.2;
        enum { POINTS = 4000 };
        for (int n = 0; n < 60; n++) {
            double x = 0.5 * (low + high), sum = 0;
            for (int k = 0; k < POINTS; k++) {
                double z = maq_normal_quantile((k + 0.5) / POINTS);
                sum += maq_max_cdf(&normal, 1024, ((x - 1) / 0.02 - half * z) / half) / POINTS;
            }
            *(sum < tail[i][0] ? &low : &high) = x;
        }
        near(high, tail[i][1], 1e-5, "equicorrelated quantile");
    }
    /* 100 barriers over 1,024 workers of N(1, 0.02), and one barrier at the end */
    struct maq_law worker = maq_law_normal(1, 0.02), all = maq_law_normal(100, 0.02 * 10);
    maq_max_moments(&mean, &variance, &worker, 1024);
    near(100 * mean, 106.496479, 1e-4, "100 barriers");
    near(10 * sqrt(variance), 0.070152, 1e-4, "100 barriers, sd");
    maq_max_moments(&mean, &variance, &all, 1024);
    near(mean, 100.649648, 1e-4, "one barrier");
}

/* --- pipelines by hand ----------------------------------------------------------------------------------------------- */

/* A pipeline of p equal stages with forward 1 and backward 2 and free transfers, as a model. */
static struct maq_step_model pipeline(int kind, uint32_t p, uint32_t m, struct maq_arena *arena)
{
    struct maq_schedule s;
    assert_int_equal(maq_schedule_build(&s, kind, p, 1, m, 0, arena, NULL), MAQ_OK);
    struct maq_step_model model = {.n_tasks = s.n_tasks,
                                   .stages = p,
                                   .n_positions = s.n_positions,
                                   .tasks = MAQ_ARENA_NEW(arena, struct maq_step_task, s.n_tasks),
                                   .stage_last = MAQ_ARENA_NEW(arena, uint32_t, p),
                                   .hop_ns = MAQ_ARENA_NEW(arena, double, s.n_positions + 1),
                                   .stall_ns = MAQ_ARENA_NEW(arena, double, s.n_positions + 1),
                                   .rest_ns = MAQ_ARENA_NEW(arena, double, p),
                                   .paced = MAQ_ARENA_NEW(arena, double, p),
                                   .pace = 1,
                                   .replicas = 1,
                                   .lockstep = 1,
                                   .nodes = 1,
                                   .microbatches = m,
                                   .devices_per_node = 8};
    for (uint32_t i = 0; i < s.n_tasks; i++)
        model.tasks[i] = (struct maq_step_task){.previous = s.tasks[i].previous,
                                                .pred = {s.tasks[i].pred[0], s.tasks[i].pred[1]},
                                                .stage = s.tasks[i].stage,
                                                .dur_ns = s.tasks[i].kind == MAQ_TASK_F ? 1e6 : 2e6,
                                                .microbatch = s.tasks[i].microbatch};
    memcpy(model.stage_last, s.stage_last, p * sizeof *model.stage_last);
    for (uint32_t i = 0; i < p; i++)
        model.paced[i] = 1;
    return model;
}

static const struct maq_variation nothing = {.gpu_outlier_ratio = 1, .congested_ratio = 1, .spike_ratio = 1};

/* T = (p - 1)(f + b) + m s (f + b) - (p - 1 - k) min((s - 1)(f + b), b) with stage k slower by s: 1F1B, m >= p. */
static void test_slow_stage(void **state)
{
    static const struct {
        uint32_t p, m;
        double s;
    } cases[] = {{8, 32, 1.3}, {8, 32, 2}, {4, 16, 1.1}, {16, 64, 1.3}};
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    for (size_t c = 0; c < 4; c++) {
        uint32_t p = cases[c].p, m = cases[c].m;
        struct maq_step_model model = pipeline(MAQ_SCHEDULE_1F1B, p, m, &arena);
        double s = cases[c].s, even = 3.0 * (p - 1 + m);
        for (uint32_t k = 0; k < p; k++) {
            double factor[16], out[8], weight[8];
            for (uint32_t i = 0; i < p; i++)
                factor[i] = i == k ? s : 1;
            struct maq_step_slow slow = {.stage = factor, .communication = 1};
            struct maq_step_run run = {.seed = 1, .draws = 8, .threads = 1, .congestion = 1};
            assert_int_equal(maq_step_sample(out, weight, &model, &nothing, &slow, &run, &arena), MAQ_OK);
            double want = 3.0 * (p - 1) + m * s * 3 - (p - 1.0 - k) * fmin((s - 1) * 3, 2);
            near(out[0] * 1e-6, want, 1e-6, "slow stage");
            if (c == 0 && (k == 0 || k == 7))
                near(out[0] * 1e-6 / even, k == 0 ? 1.1923 : 1.2462, 5e-5, "published");
            if (c == 1 && (k == 0 || k == 7))
                near(out[0] * 1e-6 / even, k == 0 ? 1.7009 : 1.8205, 5e-5, "published");
        }
    }
    maq_arena_fini(&arena);
}

/*
 * One task, lasting differences between GPUs: replicas of 4 devices in lockstep, 64 of them. The slowest of 256 GPUs in
 * closed form, over what the base has already.
 */
static void slowest_replica(double pace)
{
    enum { N = 40000, REPLICAS = 64, LOCKSTEP = 4 };
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    struct maq_step_model model = pipeline(MAQ_SCHEDULE_1F1B, 1, 1, &arena);
    struct maq_variation v = nothing;
    struct maq_step_slow slow = {.communication = 1};
    struct maq_step_run run = {.seed = 5, .draws = N, .threads = 1, .congestion = 1};
    struct maq_end_law ends;
    struct maq_step_law law = {.atom = MAQ_ARENA_NEW(&arena, struct maq_step_atom, 2048)};
    double *x = MAQ_ARENA_NEW(&arena, double, N), *weight = MAQ_ARENA_NEW(&arena, double, N);
    struct maq_end_draw *draws = MAQ_ARENA_NEW(&arena, struct maq_end_draw, N);
    v.gpu_cv = 0.02;
    model.lockstep = LOCKSTEP;
    model.pace = pace;
    assert_int_equal(maq_step_sample(x, weight, &model, &v, &slow, &run, &arena), MAQ_OK);
    struct maq_law gpu = maq_law_lognormal(3e6, sqrt(log1p(0.0004)));
    double below = 0, sum = 0, at = fmax(3e6, maq_max_quantile(&gpu, LOCKSTEP, 0.9) / pace);
    for (uint32_t i = 0; i < N; i++) {
        draws[i] = (struct maq_end_draw){x[i], weight[i]};
        assert_true(weight[i] > 0 && weight[i] <= 2 && x[i] >= 3e6);
        below += x[i] <= at ? weight[i] : 0;
        sum += weight[i];
    }
    double want_below = at > 3e6 ? 0.9 * N : (1 - maq_max_sf(&gpu, LOCKSTEP, 3e6 * pace)) * N;
    assert_true(fabs(sum - N) < 4 * sqrt(2.0 * N) &&
                fabs(below - want_below) < 4 * sqrt(2.0 * N)); /* weights up to 2 */
    assert_true(maq_end_law_init(&ends, draws, N, REPLICAS, &arena));
    maq_step_law_add(&law, &ends, 1, 2048, 1, 0, 0, &v);
    maq_step_law_finish(&law);
    static const double levels[] = {0.05, 0.5, 0.95};
    for (size_t i = 0; i < 3; i++) {
        double want = fmax(3e6, maq_max_quantile(&gpu, REPLICAS * LOCKSTEP, levels[i]) / pace);
        near(maq_step_law_quantile(&law, levels[i]), want, 0.0005 * want, "quantile of the slowest replica");
    }
    maq_arena_fini(&arena);
}

static void test_slowest_replica(void **state)
{
    slowest_replica(1);
    slowest_replica(1.05); /* the median of the slowest is at 1.057, its 5th percentile at 1.046 */
}

/* --- jobs ------------------------------------------------------------------------------------------------------------ */

static struct maq_loaded_job *load(const char *text)
{
    char path[] = "/tmp/maquette-test-risk-step-XXXXXX";
    struct maq_loaded_job *box = NULL;
    struct maq_diag *diag = maq_diag_new();
    temp_text(path, text);
    if (maq_job_load(&box, path, NULL, 0, diag) != MAQ_OK)
        fail_msg("%s\n%s", text, maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    unlink(path);
    return box;
}

static struct maq_risk_step *step_of(const struct maq_job *job, struct maq_risk_step_opts opts)
{
    struct maq_risk_step *step = NULL;
    struct maq_diag *diag = maq_diag_new();
    if (maq_risk_step(&step, job, &opts, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return step;
}

#define JOB(cluster, plan)                                                                                             \
    "{model: llama-3.1-8b, cluster: \"" cluster "\", plan: {" plan "}, workload: {gbs: 64, seq: 4096}}"

static const char *const jobs[] = {
    JOB("h100-sxm:8", "tp: 2"),
    JOB("h100-sxm:8 x 2, rail 400G", "tp: 2, pp: 4"),
    JOB("h100-sxm:8 x 2, rail 400G", "tp: 2, pp: 4, vp: 2"),
    JOB("h100-sxm:8 x 2, rail 400G", "pp: 4, pipeline_schedule: gpipe"),
    JOB("h100-sxm:8 x 2, rail 400G", "pp: 4, pipeline_schedule: zb-h1"),
    JOB("h100-sxm:8 x 2, rail 400G", "pp: 4, pipeline_schedule: zb-v"),
    JOB("h100-sxm:8 x 2, rail 400G", "pp: 4, pipeline_schedule: dualpipe"),
    JOB("h100-sxm:8 x 2, rail 400G",
        "tp: 2, pp: 2, zero: optim, overlap_param_gather: true, overlap_grad_reduce: true"),
    JOB("h100-sxm:8 x 2, rail 400G", "zero: optim_grads_params"),
};

/* Nothing varies: every figure is the step of maq_train_predict(), to the bit. */
static void test_nothing_varies(void **state)
{
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        struct maq_loaded_job *box = load(jobs[i]);
        struct maq_train_result *train;
        assert_int_equal(maq_train_predict(&train, maq_job_get(box), NULL), MAQ_OK);
        struct maq_risk_step_opts opts = MAQ_RISK_STEP_OPTS_INIT;
        opts.variation = "none";
        opts.draws = 400;
        struct maq_risk_step *step = step_of(maq_job_get(box), opts);
        assert_true(step->base_s == train->step_s);
        for (int f = 0; f < MAQ_RISK_FIGURE_COUNT; f++)
            if (step->figure[f].value_s != train->step_s || step->figure[f].low_s != train->step_s ||
                step->figure[f].high_s != train->step_s)
                fail_msg("%s: %s %.17g (%.17g, %.17g), not %.17g", jobs[i],
                         maq_risk_figure_name((enum maq_risk_figure)f), step->figure[f].value_s, step->figure[f].low_s,
                         step->figure[f].high_s, train->step_s);
        assert_true(step->sd_s == 0);
        maq_risk_step_free(step);
        maq_train_result_free(train);
        maq_job_free(box);
    }
}

/* One thread or many: the same bits. Another seed: other ones. */
static void test_threads(void **state)
{
    struct maq_loaded_job *box = load(jobs[1]);
    struct maq_risk_step *step[3];
    for (int i = 0; i < 3; i++) {
        struct maq_risk_step_opts opts = MAQ_RISK_STEP_OPTS_INIT;
        opts.draws = 2000;
        opts.threads = i == 1 ? 16 : 1;
        opts.seed = i == 2 ? 9 : 4;
        step[i] = step_of(maq_job_get(box), opts);
    }
    assert_memory_equal(step[0]->figure, step[1]->figure, sizeof step[0]->figure);
    assert_memory_equal(step[0]->source, step[1]->source, sizeof step[0]->source);
    assert_true(step[0]->bound_s == step[1]->bound_s && step[0]->bound_steps >= 59);
    assert_true(step[0]->bound_s > step[0]->figure[MAQ_RISK_P95].value_s);
    assert_true(step[0]->bound_s < 1.02 * step[0]->figure[MAQ_RISK_P99].value_s);
    assert_true(step[0]->figure[MAQ_RISK_P95].value_s != step[2]->figure[MAQ_RISK_P95].value_s);
    /* two seeds agree within their intervals, widened to four standard errors of a difference */
    double apart = fabs(step[0]->figure[MAQ_RISK_P95].value_s - step[2]->figure[MAQ_RISK_P95].value_s),
           width = step[0]->figure[MAQ_RISK_P95].high_s - step[0]->figure[MAQ_RISK_P95].low_s;
    assert_true(apart < width / 2 / 2.262 * sqrt(2) * 4);
    for (int i = 0; i < 3; i++)
        maq_risk_step_free(step[i]);
    maq_job_free(box);
}

static double p95_with(const struct maq_job *job, const char *variation, const char *const *slow, uint32_t n_slow)
{
    char path[] = "/tmp/maquette-test-variation-XXXXXX";
    temp_text(path, variation);
    struct maq_risk_step_opts opts = MAQ_RISK_STEP_OPTS_INIT;
    opts.variation = path;
    opts.draws = 1600;
    opts.no_sources = true;
    opts.slow = slow;
    opts.n_slow = n_slow;
    struct maq_risk_step *step = step_of(job, opts);
    double p95 = step->figure[MAQ_RISK_P95].value_s;
    unlink(path);
    maq_risk_step_free(step);
    return p95;
}

/* Placing a slow GPU in a stage is saying that a rank of that stage is slow. */
static void test_expert_spread(void **state)
{
    struct maq_loaded_job *box = load(jobs[1]); /* tp 2, pp 4 on 16 GPUs: four ranks a stage */
    struct maq_risk_step_opts opts = MAQ_RISK_STEP_OPTS_INIT;
    opts.variation = "none";
    opts.draws = 400;
    opts.no_sources = true;
    opts.place = 1.2;
    struct maq_risk_step *asked = step_of(maq_job_get(box), opts);
    opts.place = 0;
    for (uint32_t s = 0; s < 4; s++) {
        char text[32];
        const char *slow = text;
        snprintf(text, sizeof text, "rank:%u=1.2x", 4 * s);
        opts.slow = &slow;
        opts.n_slow = 1;
        struct maq_risk_step *said = step_of(maq_job_get(box), opts);
        assert_true(asked->place[s].p50.value_s == said->figure[MAQ_RISK_P50].value_s);
        assert_true(asked->place[s].p95.value_s > asked->base_s && said->place == NULL);
        maq_risk_step_free(said);
    }
    maq_risk_step_free(asked);
    maq_job_free(box);
}

/*
 * The base has the slowest GPU of a job already, so what lasts does not count it twice: by itself it leaves the median of a step at the
 * base, whatever the number of GPUs, and its 95th percentile is where that of the slowest is above its mean.
 */
static void test_slowest_once(void **state)
{
    static const char *const of[] = {JOB("h100-sxm:8 x 8, rail 400G", "tp: 8"),
                                     JOB("h100-sxm:8 x 64, rail 400G", "tp: 8, pp: 4"),
                                     JOB("h100-sxm:8 x 8, rail 400G", "zero: optim_grads_params")};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        char path[] = "/tmp/maquette-test-once-XXXXXX";
        static const char lasting[] =
            "{pass_cv: 0, step_cv: 0, communication_cv: 0, congested_share: 0, spike_share: 0}";
        temp_text(path, lasting);
        struct maq_loaded_job *box = load(of[i]);
        struct maq_risk_step_opts opts = MAQ_RISK_STEP_OPTS_INIT;
        opts.variation = path;
        struct maq_risk_step *step = step_of(maq_job_get(box), opts);
        double median = step->figure[MAQ_RISK_P50].value_s / step->base_s,
               p95 = step->figure[MAQ_RISK_P95].value_s / step->base_s;
        print_message("# %s: median %.5f, p95 %.5f of the base\n", of[i], median, p95);
        assert_true(median >= 1 && median < 1.004);
        assert_true(p95 > 1.001 && p95 < 1.02);
        unlink(path);
        maq_risk_step_free(step);
        maq_job_free(box);
    }
}

/* More of any source is never faster, nor are slow parts, nor more GPUs that do the same. */
static void test_more_is_slower(void **state)
{
    struct maq_loaded_job *box = load(jobs[1]);
    const struct maq_job *job = maq_job_get(box);
    static const char *const more[][3] = {
        {"{gpu_cv: 0}", "{gpu_cv: 0.005}", "{gpu_cv: 0.012}"},
        {"{gpu_cv: 0.012}", "{gpu_cv: 0.02}", "{gpu_cv: 0.08}"},
        {"{gpu_cv: 0.001, node_cv: 0.004}", "{gpu_cv: 0.006, node_cv: 0.004}", "{gpu_cv: 0.018, node_cv: 0.004}"},
        {"{node_cv: 0}", "{node_cv: 0.01}", "{node_cv: 0.05}"},
        {"{pass_cv: 0}", "{pass_cv: 0.02}", "{pass_cv: 0.1}"},
        {"{step_cv: 0}", "{step_cv: 0.02}", "{step_cv: 0.1}"},
        {"{communication_cv: 0}", "{communication_cv: 0.2}", "{communication_cv: 0.8}"},
        {"{microbatch_cv: 0}", "{microbatch_cv: 0.1}", "{microbatch_cv: 0.4}"},
        {"{congested_share: 0}", "{congested_share: 0.1, congested_ratio: 2}",
         "{congested_share: 0.4, congested_ratio: 4}"},
        {"{spike_share: 0}", "{spike_share: 0.02}", "{spike_share: 0.2}"},
        {"{slow_mode_share: 0}", "{slow_mode_share: 0.02}", "{slow_mode_share: 0.2}"},
        {"{slow_mode_share: 0.1, slow_mode_ratio: 1}", "{slow_mode_share: 0.1, slow_mode_ratio: 1.2}",
         "{slow_mode_share: 0.1, slow_mode_ratio: 2}"},
        {"{diurnal_swing: 0}", "{diurnal_swing: 0.02}", "{diurnal_swing: 0.1}"},
        {"{episodes_per_gpu_day: 0}", "{episodes_per_gpu_day: 0.1}", "{episodes_per_gpu_day: 5}"},
        {"{episodes_per_gpu_day: 1, episode_ratio: 1}", "{episodes_per_gpu_day: 1, episode_ratio: 1.1}",
         "{episodes_per_gpu_day: 1, episode_ratio: 2}"},
        {"{episodes_per_gpu_day: 1, episode_lasts: 0 s}", "{episodes_per_gpu_day: 1, episode_lasts: 1 min}",
         "{episodes_per_gpu_day: 1, episode_lasts: 4 h}"},
        {"{gpu_outlier_share: 0}", "{gpu_outlier_share: 0.01}", "{gpu_outlier_share: 0.1}"},
    };
    for (size_t i = 0; i < sizeof more / sizeof *more; i += SANITIZED ? 9 : 1) {
        double before = 0;
        for (int k = 0; k < 3; k++) {
            double now = p95_with(job, more[i][k], NULL, 0);
            if (now < before * (1 - 1e-5)) /* draws are weighted where GPUs differ, and even where they do not */
                fail_msg("%s: %.9g, less than %.9g", more[i][k], now, before);
            before = now;
        }
    }
    static const char *const slow[] = {"node:1=1.2x", "stage:3=1.1x", "link:rail3=0.5x", "rank:5=1.3x"};
    double none = p95_with(job, "{gpu_cv: 0.01}", NULL, 0), all = p95_with(job, "{gpu_cv: 0.01}", slow, 4);
    for (uint32_t i = 0; i < 4; i += SANITIZED ? 2 : 1) {
        double one = p95_with(job, "{gpu_cv: 0.01}", &slow[i], 1);
        assert_true(one >= none && one <= all * (1 + 1e-9));
    }
    maq_job_free(box);
}

#define NOTHING_BUT                                                                                                    \
    "gpu_cv: 0, gpu_outlier_share: 0, node_cv: 0, pass_cv: 0, step_cv: 0, communication_cv: 0, congested_share: 0, "   \
    "spike_share: 0, "

/*
 * GPUs that are slow for a while, and nothing else: P(none is) = exp(-L); a step with one is that of a slow rank. In
 * one stage all are alike.
 */
static void test_episodes(void **state)
{
    struct maq_loaded_job *box = load(jobs[0]); /* 8 GPUs */
    const struct maq_job *job = maq_job_get(box);
    static const char *const slow = "rank:0=1.3x";
    struct maq_risk_step_opts opts = MAQ_RISK_STEP_OPTS_INIT;
    opts.variation = "none";
    opts.draws = 400;
    opts.no_sources = true;
    struct maq_risk_step *usual = step_of(job, opts);
    opts.slow = &slow;
    opts.n_slow = 1;
    struct maq_risk_step *one = step_of(job, opts);
    double base = usual->base_s, late = one->figure[MAQ_RISK_P50].value_s;
    static const double lasts_h[] = {0.05, 1, 4}; /* L = 8 GPUs x 1.5 a day x hours / 24 */
    opts.n_slow = 0;
    for (size_t i = 0; i < 3; i++) {
        char path[] = "/tmp/maquette-test-variation-XXXXXX", text[512];
        snprintf(text, sizeof text,
                 "{" NOTHING_BUT "episodes_per_gpu_day: 1.5, episode_lasts: %g min, episode_ratio: 1.3}",
                 60 * lasts_h[i]);
        temp_text(path, text);
        opts.variation = path;
        struct maq_risk_step *step = step_of(job, opts);
        double none = exp(-8 * 1.5 * lasts_h[i] / 24);
        near(step->figure[MAQ_RISK_MEAN].value_s, none * base + (1 - none) * late, 1.0 / 256 * (late - base), "mean");
        near(step->figure[MAQ_RISK_P50].value_s, none > 0.5 ? base : late, 1e-6 * base, "median");
        near(step->figure[MAQ_RISK_P95].value_s, none > 0.95 ? base : late, 1e-6 * base, "p95");
        unlink(path);
        maq_risk_step_free(step);
    }
    maq_risk_step_free(usual);
    maq_risk_step_free(one);
    maq_job_free(box);
}

/* The hour of the day, and nothing else: a sine's quantiles, of eight values. */
static void test_hours(void **state)
{
    struct maq_loaded_job *box = load(jobs[0]);
    struct maq_risk_step_opts opts = MAQ_RISK_STEP_OPTS_INIT;
    opts.variation = "none";
    opts.no_sources = true;
    struct maq_risk_step *usual = step_of(maq_job_get(box), opts);
    double base = usual->base_s, p95 = p95_with(maq_job_get(box), "{" NOTHING_BUT "diurnal_swing: 0.02}", NULL, 0);
    near(p95, base * (1 + 0.01 * sin(0.5 * 3.14159265358979 * 7 / 8)), 1e-6 * base, "p95");
    assert_true(p95 < base * 1.01);
    maq_risk_step_free(usual);
    maq_job_free(box);
}

/* A second mode, and nothing else: two values; with noise, the mixture's quantile; beside spikes, the share of what is left. */
static void test_second_mode(void **state)
{
    struct maq_loaded_job *box = load(jobs[0]);
    const struct maq_job *job = maq_job_get(box);
    struct maq_risk_step_opts opts = MAQ_RISK_STEP_OPTS_INIT;
    opts.variation = "none";
    opts.no_sources = true;
    struct maq_risk_step *usual = step_of(job, opts);
    double base = usual->base_s;
    near(p95_with(job, "{" NOTHING_BUT "slow_mode_share: 0.06, slow_mode_ratio: 1.4}", NULL, 0), 1.4 * base,
         1e-9 * base, "p95 in the mode");
    near(p95_with(job, "{" NOTHING_BUT "slow_mode_share: 0.04, slow_mode_ratio: 1.4}", NULL, 0), base, 1e-9 * base,
         "p95 below it");
    static const char with_noise[] = "{gpu_cv: 0, gpu_outlier_share: 0, node_cv: 0, pass_cv: 0, step_cv: 0.02,"
                                     " communication_cv: 0, congested_share: 0, spike_share: 0.01, spike_ratio: 50,"
                                     " spike_cv: 0, slow_mode_share: 0.2, slow_mode_ratio: 1.4}";
    double sigma = sqrt(log1p(4e-4)), x = p95_with(job, with_noise, NULL, 0) / base;
    double below = 0.99 * (0.8 * maq_normal_cdf(log(x) / sigma) + 0.2 * maq_normal_cdf(log(x / 1.4) / sigma));
    near(below, 0.95, 1e-6, "P(step <= p95)");
    maq_risk_step_free(usual);
    maq_job_free(box);
}

/* More ranks that do the same wait for each other: p95, and how far it is over a base that does not change but for communication. */
static void test_more_ranks(void **state)
{
    static const char *const sizes[][2] = {{"h100-sxm:8 x 2, rail 400G", "64"},
                                           {"h100-sxm:8 x 4, rail 400G", "128"},
                                           {"h100-sxm:8 x 16, rail 400G", "512"},
                                           {"h100-sxm:8 x 128, rail 400G", "4096"}};
    static const char *const plans[] = {"tp: 2, pp: 4", "tp: 4",
                                        "tp: 2, pp: 2, zero: optim, overlap_grad_reduce: true"};
    for (size_t p = 0; p < sizeof plans / sizeof *plans; p++) {
        double before = 0;
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            char text[512];
            snprintf(text, sizeof text,
                     "{model: llama-3.1-8b, cluster: \"%s\", plan: {%s}, workload: {gbs: %s, seq: 4096}}", sizes[i][0],
                     plans[p], sizes[i][1]);
            struct maq_loaded_job *box = load(text);
            double p95 = p95_with(maq_job_get(box), "{gpu_cv: 0.01}", NULL, 0);
            if (p95 < before)
                fail_msg("%s: %.9g, less than %.9g on fewer", text, p95, before);
            before = p95;
            maq_job_free(box);
        }
    }
}

/* Where the law is known: what varies in a job of one stage, and what a user says is slow. */
static const struct {
    const char *job, *variation, *slow;
} exact_jobs[] = {
    {JOB("h100-sxm:8", "tp: 2"), "{}", NULL},
    {JOB("h100-sxm:8 x 8, rail 400G", "tp: 4"), "{}", NULL},
    {JOB("h100-sxm:8 x 8, rail 400G", "tp: 1"), "{}", NULL},
    /* groups over nodes, one of them slow; GPUs out of line; nodes that differ more than their GPUs */
    {JOB("h100-sxm:8 x 8, rail 400G", "tp: 8, cp: 4"), "{node_cv: 0.02}", "node:1=1.2x"},
    {JOB("h100-sxm:8 x 8, rail 400G", "zero: optim_grads_params"),
     "{node_cv: 0.01, gpu_outlier_share: 0.002, gpu_outlier_ratio: 1.1}", NULL},
    {JOB("h100-sxm:8 x 8, rail 400G", "tp: 8, cp: 2"), "{node_cv: 0.02, gpu_cv: 0.0005, pass_cv: 0.03}", NULL},
    /* uneven microbatches, with and without a first pass that waits for its parameters; nothing else */
    {JOB("h100-sxm:8 x 2, rail 400G", "tp: 2"), "{microbatch_cv: 0.1}", "rank:3=1.05x"},
    {JOB("h100-sxm:8 x 2, rail 400G", "tp: 2, zero: optim, overlap_param_gather: true, overlap_grad_reduce: true"),
     "{microbatch_cv: 0.05}", NULL},
    {JOB("h100-sxm:8", "tp: 2"), "{microbatch_cv: 0.2, gpu_cv: 0, node_cv: 0, pass_cv: 0}", NULL},
    {JOB("h100-sxm:8", "tp: 8"), "{pass_cv: 0}", NULL},
    /* GPUs that are slow for a while */
    {JOB("h100-sxm:8 x 2, rail 400G", "tp: 2"),
     "{microbatch_cv: 0.02, episodes_per_gpu_day: 0.3, episode_lasts: 60 min, episode_ratio: 1.3}", "node:0=1.1x"},
};

/* Sampling agrees within four of its standard errors and the rounding of its tables, and it is asked for nothing else. */
static void test_exact(void **state)
{
    for (size_t i = 0; i < sizeof exact_jobs / sizeof *exact_jobs; i++) {
        char path[] = "/tmp/maquette-test-exact-XXXXXX";
        temp_text(path, exact_jobs[i].variation);
        struct maq_loaded_job *box = load(exact_jobs[i].job);
        struct maq_risk_step_opts opts = MAQ_RISK_STEP_OPTS_INIT;
        opts.draws = SANITIZED ? 4000 : 20000;
        opts.no_sources = true;
        opts.variation = path;
        opts.slow = &exact_jobs[i].slow;
        opts.n_slow = exact_jobs[i].slow != NULL;
        struct maq_risk_step *exact = step_of(maq_job_get(box), opts);
        opts.sampled = true;
        struct maq_risk_step *sampled = step_of(maq_job_get(box), opts);
        assert_true(exact->exact && exact->draws == 0 && !sampled->exact && sampled->draws == opts.draws);
        assert_true(exact->bound_s == exact->figure[MAQ_RISK_P95].value_s && exact->bound_steps == 0);
        if (i < 3) {
            assert_true(sampled->bound_s > exact->bound_s); /* 59 steps of at most 64 replicas */
            assert_int_equal(sampled->bound_steps, fmin(1000, floor(opts.draws / sampled->replicas)));
        }
        for (int f = -1; f < MAQ_RISK_FIGURE_COUNT; f++) {
            const struct maq_risk_quantile *a = f < 0 ? &exact->p5 : &exact->figure[f],
                                           *b = f < 0 ? &sampled->p5 : &sampled->figure[f];
            double error = (b->high_s - b->low_s) / 2 / 2.262;
            assert_true(a->low_s == a->value_s && a->high_s == a->value_s);
            print_message("# job %zu figure %d: exact %.5f sampled %.5f +- %.5f\n", i, f, a->value_s, b->value_s,
                          error);
            if (fabs(a->value_s - b->value_s) > 4 * error + 2e-4 * a->value_s)
                fail_msg("job %zu, figure %d: %.6g exact, %.6g sampled, +-%.3g", i, f, a->value_s, b->value_s, error);
        }
        unlink(path);
        maq_risk_step_free(exact);
        maq_risk_step_free(sampled);
        maq_job_free(box);
    }
}

/* Noise of passes alone, thousands of them one after another: the grid must not widen their sum. */
static void test_many_passes(void **state)
{
    static const char job[] =
        "{model: llama-3.1-8b, cluster: h100-sxm:8, plan: {tp: 8}, workload: {gbs: 2048, seq: 4096}}";
    struct maq_loaded_job *box = load(job);
    double base, p95 = p95_with(maq_job_get(box),
                                "{gpu_cv: 0, node_cv: 0, step_cv: 0, communication_cv: 0, "
                                "congested_share: 0, spike_share: 0, pass_cv: 0.1}",
                                NULL, 0);
    struct maq_step_model m;
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    assert_int_equal(maq_step_model_build(&m, maq_job_get(box), &arena, NULL), MAQ_OK);
    base = m.base_ns;
    double mean = 0, variance = 0, one, var; /* so many are normal */
    for (uint32_t id = 0; id < m.n_tasks; id++) {
        struct maq_law law = maq_law_lognormal(m.tasks[id].dur_ns, sqrt(log1p(0.01)));
        maq_max_moments(&one, &var, &law, m.lockstep);
        mean += one - m.tasks[id].dur_ns;
        variance += var;
    }
    assert_true(m.n_tasks == 4096 && m.lockstep == 8 && m.replicas == 1);
    double want = (base + mean + sqrt(variance) * maq_normal_quantile(0.95)) * 1e-9;
    print_message("# p95 %.6f, in closed form %.6f, base %.6f\n", p95, want, base * 1e-9);
    near(p95, want, 0.02 * sqrt(variance) * 1e-9, "p95");
    maq_arena_fini(&arena);
    maq_job_free(box);
}

static void test_refused(void **state)
{
    static const char *const bad[] = {"node:2=1.2x",        "node:x=1.2x",
                                      "node:0=1.2",         "gpu:0=2x",
                                      "stage:4=2x",         "rank:16=2x",
                                      "link:rail8=0.5x",    "node:0=0x",
                                      "node:0=-1x",         "node:0=0.5x",
                                      "rank:3=0.9x",        "link:rail0=2x",
                                      "link:rail0=1e-300x", ""};
    struct maq_loaded_job *box = load(jobs[1]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct maq_diag *diag = maq_diag_new();
        struct maq_risk_step_opts opts = MAQ_RISK_STEP_OPTS_INIT;
        struct maq_risk_step *step = NULL;
        opts.slow = &bad[i];
        opts.n_slow = 1;
        assert_int_equal(maq_risk_step(&step, maq_job_get(box), &opts, diag), MAQ_USAGE);
        assert_null(step);
        assert_int_equal(maq_diag_count(diag), 1);
        maq_diag_free(diag);
    }
    struct maq_diag *diag = maq_diag_new();
    struct maq_risk_step_opts opts = MAQ_RISK_STEP_OPTS_INIT;
    struct maq_risk_step *step = NULL;
    opts.variation = "/nonexistent";
    assert_int_equal(maq_risk_step(&step, maq_job_get(box), &opts, diag), MAQ_IO);
    maq_diag_free(diag);
    maq_job_free(box);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slowest),         cmocka_unit_test(test_slow_stage),
        cmocka_unit_test(test_slowest_replica), cmocka_unit_test(test_nothing_varies),
        cmocka_unit_test(test_threads),         cmocka_unit_test(test_slowest_once),
        cmocka_unit_test(test_more_is_slower),  cmocka_unit_test(test_expert_spread),
        cmocka_unit_test(test_exact),           cmocka_unit_test(test_more_ranks),
        cmocka_unit_test(test_episodes),        cmocka_unit_test(test_hours),
        cmocka_unit_test(test_second_mode),     cmocka_unit_test(test_many_passes),
        cmocka_unit_test(test_refused),
    };
    ONLY_UNDER_TSAN("test_threads");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
