/* SPDX-License-Identifier: Apache-2.0 */
/*
 * populations.c - laws of whole populations: stragglers among jobs (O7), GPUs behind one barrier (O8), steps
 * of a very large job (O11), kernels (O13).
 *
 * O7   Slowdown S of a job over itself without stragglers: 1 + X, X lognormal, and a few jobs with a faulty worker around a mean of
 *      their own. The share of those and their mean are published; two points of the distribution, P(S >= 1.1) and the 90th percentile of
 *      the waste 1 - 1/S, are what the two parameters of X are solved from. Predicted is the rest: the mean waste, and the
 *      mean slowdown of the jobs at 1.1 and above.
 * O8   Medians of single GPUs as they were recorded are the law F of a GPU; n GPUs at a barrier take its n-th power:
 *      sum of x_i (F_i^n - F_(i-1)^n). Compared with n different GPUs drawn out of the recorded ones, without the formula.
 * O11  Three quantiles of the step of a job on more than 64,000 GPUs. A width (p95 - p5) / p50 within a factor of two is as
 *      much as can be asked without knowing the job; what GPUs, nodes, passes and transfers do each for themselves must fall short of it.
 * O13  Where collectives between nodes have tails of ten times the mean, they drive the step: 64 GPUs, a tail for one run in twenty
 *      (an assumption: only the length is published), and the order of the kernels. With ZeRO-1; docs/validate.md says where it is missed.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/stat/law.h"
#include "base/stat/rng.h"
#include "base/stat/special_functions.h"
#include "base/stat/summary.h"
#include "base/str.h"
#include "maquette/job.h"
#include "risk/csv_table.h"
#include "risk/step/drivers.h"
#include "validate/risk/table.h"

#define STUDY "ByteDance, what-if study of 3,079 jobs (OSDI'25)"
#define PAL "Longhorn, SGEMM on 392 V100 (SC22, hal-uw/blox-pal)"
#define PRISM "PRISM v2, a job on more than 64,000 GPUs"

/* --- O7: stragglers among jobs --- */

#define STRAGGLES 0.425 /* P(S >= 1.1) */
#define WASTE_P90 0.213
#define FAULTY (0.017 * STRAGGLES) /* jobs most of whose slowdown is a worker's fault */
#define FAULTY_MEAN 3.04

/* X of the body: lognormal through the two points, without the faulty ones, which lie above both. */
static struct maq_law body_of_jobs(void)
{
    double x1 = 0.1, x2 = 1 / (1 - WASTE_P90) - 1;
    double z1 = -maq_normal_quantile((STRAGGLES - FAULTY) / (1 - FAULTY)),
           z2 = -maq_normal_quantile((0.1 - FAULTY) / (1 - FAULTY)), sigma = log(x2 / x1) / (z2 - z1);
    return maq_law_lognormal(x1 * exp(-z1 * sigma), sigma);
}

static void add_stragglers(struct maq_risk_table *t)
{
    enum { POINTS = 20000 };
    struct maq_law body = body_of_jobs();
    double waste = FAULTY * (1 - 1 / FAULTY_MEAN), above = FAULTY, slow = FAULTY * FAULTY_MEAN;
    for (uint32_t i = 0; i < POINTS; i++) {
        double s = 1 + maq_law_quantile(&body, (i + 0.5) / POINTS), weight = (1 - FAULTY) / POINTS;
        waste += weight * (1 - 1 / s);
        above += s >= 1.1 ? weight : 0;
        slow += s >= 1.1 ? weight * s : 0;
    }
    maq_risk_compare(t,
                     &(const struct maq_risk_published){
                         "O7", "stragglers: GPU hours wasted, from two quantiles of jobs", "%", STUDY, 10.4, 7.4, 13.4},
                     100 * waste);
    maq_risk_compare(t,
                     &(const struct maq_risk_published){"O7", "stragglers: mean slowdown of jobs at 1.1 and above", "",
                                                        STUDY, 1.28, 1.25, 1.31},
                     slow / above);
}

/* --- O8: a barrier over recorded GPUs --- */

#define BARRIER 64u
#define BARRIERS 20000u
#define MOST_GPUS 65536u
#define SGEMM "per_gpu/sgemm-longhorn-agg.csv"

struct gpu_run {
    char gpu[64];
    double time;
};

static int by_gpu(const void *pa, const void *pb)
{
    const struct gpu_run *a = pa, *b = pb;
    int names = strcmp(a->gpu, b->gpu);
    return names != 0 ? names : (a->time > b->time) - (a->time < b->time);
}

static int ascending(const void *pa, const void *pb)
{
    double a = *(const double *)pa, b = *(const double *)pb;
    return (a > b) - (a < b);
}

static enum maq_status read_runs(struct gpu_run *run, uint32_t *n, const char *path, struct maq_csv_table *rows,
                                 struct maq_diag *diag)
{
    uint32_t gpu = 0, time = 0;
    bool more = true;
    enum maq_status status = maq_rows_open(rows, path, diag);
    if (status == MAQ_OK)
        status = maq_rows_need(&gpu, rows, "uuid");
    if (status == MAQ_OK)
        status = maq_rows_need(&time, rows, "perf");
    while (status == MAQ_OK && *n < MOST_GPUS && (status = maq_rows_next(&more, rows)) == MAQ_OK && more) {
        struct gpu_run *r = &run[*n];
        size_t len = rows->field[gpu].len < sizeof r->gpu - 1 ? rows->field[gpu].len : sizeof r->gpu - 1;
        status = maq_rows_real(&r->time, rows, time);
        memcpy(r->gpu, rows->field[gpu].ptr, len);
        *n += r->time > 0;
    }
    maq_rows_close(rows);
    return status;
}

/* Medians of single GPUs, ascending. */
static uint32_t medians(double *out, struct gpu_run *run, uint32_t n, double *spare)
{
    uint32_t gpus = 0;
    qsort(run, n, sizeof *run, by_gpu);
    for (uint32_t from = 0, to; from < n; from = to) {
        for (to = from; to < n && strcmp(run[to].gpu, run[from].gpu) == 0; to++)
            spare[to - from] = run[to].time;
        out[gpus++] = maq_quantile(spare, to - from, 0.5);
    }
    qsort(out, gpus, sizeof *out, ascending);
    return gpus;
}

/* The slowest of n of the law whose equally likely values are given, in the mean. */
static double mean_slowest(const double *value, uint32_t n_values, double n)
{
    double sum = 0, before = 0;
    for (uint32_t i = 0; i < n_values; i++) {
        double now = exp(n * log((i + 1.0) / n_values));
        sum += value[i] * (now - before);
        before = now;
    }
    return sum;
}

/* The same from barriers of different GPUs, drawn. */
static double drawn_slowest(double *value, uint32_t n_values, uint32_t n)
{
    double sum = 0;
    for (uint32_t b = 0; b < BARRIERS; b++) {
        struct maq_rng r = maq_rng_of(1, MAQ_RNG_STATIC, b);
        double slowest = 0;
        for (uint32_t i = 0; i < n; i++) { /* the first n of a shuffle (Fisher and Yates) */
            uint32_t k = i + (uint32_t)(maq_rng_next(&r) * (n_values - i));
            double x = value[k];
            value[k] = value[i];
            value[i] = x;
            slowest = x > slowest ? x : slowest;
        }
        sum += slowest;
    }
    return sum / BARRIERS;
}

static enum maq_status add_barrier(struct maq_risk_table *t)
{
    struct maq_validate_risk_row row = {.id = "O8",
                                        .what = "slowdown of 64 GPUs at a barrier, from the law of one",
                                        .unit = "",
                                        .source = PAL,
                                        .observed = (double)NAN};
    const char *path = maq_risk_file(t, SGEMM);
    if (!path) {
        row.why = "no " SGEMM;
        maq_risk_add(t, row);
        return MAQ_OK;
    }
    struct gpu_run *run = MAQ_ARENA_NEW(t->arena, struct gpu_run, MOST_GPUS);
    struct maq_csv_table *rows = MAQ_ARENA_NEW(t->arena, struct maq_csv_table, 1);
    double *value = MAQ_ARENA_NEW(t->arena, double, MOST_GPUS), *spare = MAQ_ARENA_NEW(t->arena, double, MOST_GPUS);
    uint32_t n = 0;
    if (!run || !rows || !value || !spare)
        return MAQ_NO_MEMORY;
    MAQ_TRY(read_runs(run, &n, path, rows, t->diag));
    uint32_t gpus = medians(value, run, n, spare);
    if (gpus < BARRIER) {
        row.why = "fewer than 64 GPUs in " SGEMM;
        maq_risk_add(t, row);
        return MAQ_OK;
    }
    memcpy(spare, value, gpus * sizeof *spare);
    double median = maq_quantile(spare, gpus, 0.5);
    row.predicted = mean_slowest(value, gpus, BARRIER) / median;
    row.observed = drawn_slowest(value, gpus, BARRIER) / median;
    row.low = 0.99 * row.observed;
    row.high = 1.01 * row.observed;
    maq_risk_add(t, row);
    return MAQ_OK;
}

/* --- O11: a step on more than 64,000 GPUs --- */

static const char large_job[] =
    "{model: llama-3.1-405b, cluster: \"h100-sxm:8 x 8192, rail 400G\", plan: {tp: 8, pp: 16,"
    " account_for_embedding_in_pipeline_split: true, account_for_loss_in_pipeline_split: true},"
    " workload: {gbs: 16384, seq: 8192}}";

/* (p95 - p5) / p50 with these sources of the catalogue's default. */
static enum maq_status width(double *out, const struct maq_job *job, uint32_t sources, struct maq_arena *arena,
                             struct maq_diag *diag)
{
    struct maq_step_model m;
    struct maq_variation v;
    struct maq_slow slow;
    struct maq_step_answer answer;
    const double *value = answer.figure;
    MAQ_TRY(maq_variation_load(&v, NULL, diag));
    MAQ_TRY(maq_step_model_build(&m, job, arena, diag));
    MAQ_TRY(maq_slow_read(&slow, NULL, 0, job, &m, arena, diag));
    struct maq_step_question w = {.m = &m, .slow = &slow, .seed = 1, .draws = 1000, .arena = arena};
    v = maq_variation_only(&v, sources);
    MAQ_TRY(maq_step_question(&answer, &w, &v));
    *out = (value[MAQ_STEP_ASK_P95] - value[MAQ_STEP_ASK_P5]) / value[MAQ_STEP_ASK_P50];
    return MAQ_OK;
}

static enum maq_status add_large_steps(struct maq_risk_table *t)
{
    const uint32_t all = (1u << MAQ_SOURCE_COUNT) - 1,
                   each_its_own = 1u << MAQ_SOURCE_GPU | 1u << MAQ_SOURCE_NODE | 1u << MAQ_SOURCE_PASS |
                                  1u << MAQ_SOURCE_MICROBATCH | 1u << MAQ_SOURCE_COMMUNICATION;
    const double seen = (19.3 - 18.6) / 18.8;
    double whole = 0, own = 0;
    struct maq_loaded_job *loaded;
    struct maq_arena arena;
    MAQ_TRY(maq_job_parse(&loaded, "a large job", maq_str_of(large_job), NULL, 0, t->diag));
    maq_arena_init(&arena, 0);
    enum maq_status status = width(&whole, maq_job_get(loaded), all, &arena, t->diag);
    if (status == MAQ_OK)
        status = width(&own, maq_job_get(loaded), each_its_own, &arena, t->diag);
    maq_arena_fini(&arena);
    maq_job_free(loaded);
    MAQ_TRY(status);
    maq_risk_add(
        t, (struct maq_validate_risk_row){.id = "O11",
                                          .what = "steps on 65,536 GPUs: (p95 - p5) / p50, within a factor of two",
                                          .unit = "%",
                                          .source = PRISM,
                                          .observed = 100 * seen,
                                          .low = 50 * seen,
                                          .high = 200 * seen,
                                          .predicted = 100 * whole});
    maq_risk_add(t,
                 (struct maq_validate_risk_row){.id = "O11",
                                                .what = "the same without what all GPUs share: must fall short of that",
                                                .unit = "%",
                                                .source = PRISM,
                                                .observed = (double)NAN,
                                                .low = 0,
                                                .high = 49.999999 * seen,
                                                .predicted = 100 * own});
    return MAQ_OK;
}

/* --- O13: what drives the step where communication has tails --- */

static const char tails_job[] = "{model: llama-3.1-8b, cluster: \"h100-sxm:8 x 8, rail 400G\", plan: {zero: optim},"
                                " workload: {gbs: 64, seq: 8192}}";

/* The place of the first collective of data parallelism among all kernels, by what p95 is over the base from it alone. */
static enum maq_status place_of_dp(uint32_t *place, const struct maq_job *job, struct maq_arena *arena,
                                   struct maq_diag *diag)
{
    struct maq_step_model m;
    struct maq_variation v;
    struct maq_slow slow;
    struct maq_signatures signatures;
    struct maq_risk_driver *driver = NULL;
    uint32_t n = 0;
    MAQ_TRY(maq_variation_load(&v, NULL, diag));
    v.n_kernels = 2; /* one run in twenty takes ten times as long */
    v.kernel[0] = (struct maq_kernel_law){.name = "reduce_scatter dp", .cv = 0.1, .slow_share = 0.05, .slow_ratio = 10};
    v.kernel[1] = (struct maq_kernel_law){.name = "all_gather dp", .cv = 0.1, .slow_share = 0.05, .slow_ratio = 10};
    MAQ_TRY(maq_step_model_build(&m, job, arena, diag));
    MAQ_TRY(maq_slow_read(&slow, NULL, 0, job, &m, arena, diag));
    MAQ_TRY(maq_signatures_find(&signatures, job, &m, &v, arena, diag));
    struct maq_step_question w = {
        .m = &m, .slow = &slow, .signatures = &signatures, .seed = 1, .draws = 10000, .arena = arena};
    enum maq_status status = maq_step_drivers_find(&driver, &n, MAQ_RISK_KERNELS, &w, &v);
    *place = 0;
    for (uint32_t i = 0; i < n && *place == 0; i++)
        if (strcmp(driver[i].name, v.kernel[0].name) == 0 || strcmp(driver[i].name, v.kernel[1].name) == 0)
            *place = i + 1;
    free(driver);
    return status;
}

static enum maq_status add_tails(struct maq_risk_table *t)
{
    struct maq_loaded_job *loaded;
    struct maq_arena arena;
    uint32_t place = 0;
    MAQ_TRY(maq_job_parse(&loaded, "a job of 64", maq_str_of(tails_job), NULL, 0, t->diag));
    maq_arena_init(&arena, 0);
    enum maq_status status = place_of_dp(&place, maq_job_get(loaded), &arena, t->diag);
    maq_arena_fini(&arena);
    maq_job_free(loaded);
    MAQ_TRY(status);
    maq_risk_compare(t,
                     &(const struct maq_risk_published){
                         "O13", "tails of ten times, 64 GPUs, ZeRO-1: place of all-gather or reduce-scatter", "",
                         "PRISM v1: they contribute most", 1, 1, 1},
                     place);
    return MAQ_OK;
}

enum maq_status maq_risk_rows_population(struct maq_risk_table *t)
{
    add_stragglers(t);
    MAQ_TRY(add_barrier(t));
    MAQ_TRY(add_large_steps(t));
    return add_tails(t);
}
