/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runs.c - published failures, goodput and effective training time, against the catalogue and simulated runs.
 *
 * A fleet's own rate is an input where it is the same publication; what is predicted from it is something else: another
 * size, a count, a share of time. 400 runs each; the standard error is far below the width of the bands.
 */
#include <math.h>

#include "base/check.h"
#include "base/str.h"
#include "base/text.h"
#include "maquette/job.h"
#include "maquette/risk_run.h"
#include "validate/risk/table.h"

#define DAY 86400.0
#define MINUTE 60.0
#define RUNS 400u
#define META "Kokolis et al., HPCA 2025 (arXiv 2410.21680)"
#define LLAMA "Llama 3 (arXiv 2407.21783)"

/* A run on nodes of eight devices that would take `days` without interruptions. */
static struct maq_run_opts job(uint32_t devices, double days, double interval_s, double save_s, uint32_t spares)
{
    struct maq_run_opts o = MAQ_RUN_OPTS_INIT;
    o.step_s = 10;
    o.steps = days * 8640;
    o.devices = devices;
    o.devices_per_node = 8;
    o.n_levels = 1;
    o.levels[0] = (struct maq_run_level){.every = 1, .save_s = save_s, .survives = MAQ_SURVIVES_ALL};
    o.interval_s = interval_s;
    o.spares = spares;
    o.replicas = RUNS;
    o.give_up = MAQ_RUN_GIVE_UP; /* one that does not end is late, and that is compared */
    return o;
}

/* Runs `opts` under failures by name. */
static enum maq_status run(struct maq_run_result **out, struct maq_run_opts opts, const char *failures,
                           struct maq_diag *diag)
{
    struct maq_loaded_failures *loaded = NULL;
    MAQ_TRY(maq_failures_load(&loaded, failures, diag));
    opts.failures = maq_failures_get(loaded);
    enum maq_status status = maq_run_simulate(out, &opts, diag);
    maq_failures_free(loaded);
    if (status == MAQ_OK)
        (*out)->opts.failures = NULL; /* gone */
    return status;
}

/* --- O1: mean time to failure at other sizes --- */

static enum maq_status add_mttf(struct maq_risk_table *t)
{
    static const struct {
        double devices, hours;
        const char *what;
    } seen[] = {{16384, 1.8, "mean time to failure of RSC-1, 16,384 GPUs"},
                {131072, 0.23, "mean time to failure of RSC-1, 131,072 GPUs"}};
    struct maq_loaded_failures *loaded = NULL;
    MAQ_TRY(maq_failures_load(&loaded, "rsc-1", t->diag));
    for (size_t i = 0; i < MAQ_COUNT(seen); i++)
        maq_risk_add(t, (struct maq_validate_risk_row){
                            .id = "O1",
                            .what = seen[i].what,
                            .unit = "h",
                            .source = META,
                            .observed = seen[i].hours,
                            .low = 0.97 * seen[i].hours,
                            .high = 1.03 * seen[i].hours,
                            .predicted = 1 / (maq_failures_get(loaded)->rate * seen[i].devices * 3600)});
    maq_failures_free(loaded);
    return MAQ_OK;
}

/* --- O2, O3: Llama 3 --- */

/* Table 5's counts against the simulated shares of the causes: sum of (seen - expected)^2 / expected. */
static double chi_square(const struct maq_run_result *r, double seen_total)
{
    static const double seen[] = {148, 72, 54, 35, 32, 19, 17, 7, 7, 6, 6, 3, 3, 2, 2, 2, 2, 2};
    double sum = 0;
    MAQ_ASSERT(r->n_causes == MAQ_COUNT(seen));
    for (uint32_t i = 0; i < r->n_causes; i++) {
        double expected = seen_total * r->causes[i].count / r->failures;
        sum += (seen[i] - expected) * (seen[i] - expected) / expected;
    }
    return sum;
}

static enum maq_status add_llama_counts(struct maq_risk_table *t)
{
    struct maq_run_result *r;
    MAQ_TRY(run(&r, job(16384, 49, 15 * MINUTE, 6, 16), "llama3,detection=2min,requeue=1min,restart=6min", t->diag));
    maq_risk_add(t, (struct maq_validate_risk_row){
                        .id = "O2",
                        .what = "unexpected interruptions of Llama 3 in 54 days (95 % of a Poisson law)",
                        .source = LLAMA ", table 5",
                        .unit = "",
                        .observed = 419,
                        .low = 379,
                        .high = 460,
                        .predicted = r->failures / r->wall_s * 54 * DAY});
    maq_risk_add(
        t, (struct maq_validate_risk_row){.id = "O2",
                                          .what = "its causes: chi-square of the counts, 17 degrees of freedom (95 %)",
                                          .source = LLAMA ", table 5",
                                          .unit = "",
                                          .observed = (double)NAN,
                                          .low = 0,
                                          .high = 27.587,
                                          .predicted = chi_square(r, 419)});
    maq_run_result_free(r);
    return MAQ_OK;
}

static enum maq_status add_llama_goodput(struct maq_risk_table *t)
{
    static const struct {
        const char *what;
        double save_s;
        uint32_t spares;
        double low, high;
    } cases[] = {
        {"effective time of Llama 3: 16 spares, a save of 6 s in 15 min", 6, 16, 0.90, 0.97},
        {"the same with saves that block for 60 s: below 90 %", 60, 16, 0, 0.8999999},
        {"the same without spares: below 90 %", 6, 0, 0, 0.8999999},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct maq_run_result *r;
        MAQ_TRY(run(&r, job(16384, 49, 15 * MINUTE, cases[i].save_s, cases[i].spares),
                    "llama3,detection=2min,requeue=1min,restart=6min", t->diag));
        maq_risk_compare(t,
                         &(const struct maq_risk_published){"O3", cases[i].what, "", LLAMA ": > 90 %",
                                                            i == 0 ? 0.90 : (double)NAN, cases[i].low, cases[i].high},
                         r->ettr);
        maq_run_result_free(r);
    }
    return MAQ_OK;
}

/* --- O4, O5: effective training time --- */

/* Spares are enough for what they had; a restart takes five minutes, or two. */
static enum maq_status ettr(double *out, double *formula, const char *failures, uint32_t devices, double interval_s,
                            struct maq_diag *diag)
{
    struct maq_run_result *r;
    MAQ_TRY(run(&r, job(devices, 20, interval_s, 0, 1000), failures, diag));
    *out = r->ettr;
    *formula = maq_checkpoint_ettr(
        &(struct maq_checkpointing){r->mtbf_s, interval_s, 0, 0, r->startup_s, MAQ_CLOCK_RESTARTED}, 0);
    maq_run_result_free(r);
    return MAQ_OK;
}

#define FIVE_MINUTES ",detection=0s,requeue=0s,restart=5min"

static enum maq_status add_ettr(struct maq_risk_table *t)
{
    static const struct {
        const char *what, *failures;
        uint32_t devices;
        double minutes, seen, low, high;
    } cases[] = {
        {"effective time, 16,000 GPUs of RSC-1, saved every 60 min", "rsc-1" FIVE_MINUTES, 16000, 60, 0.70, 0.66, 0.74},
        {"effective time, 16,000 GPUs of RSC-1, saved every 5 min", "rsc-1" FIVE_MINUTES, 16000, 5, 0.93, 0.89, 0.97},
        {"effective time, 2,048 GPUs of RSC-1, saved every 60 min: > 0.9", "rsc-1" FIVE_MINUTES, 2048, 60, 0.9, 0.9, 1},
        {"effective time, 4,096 GPUs of RSC-1, saved every 60 min: > 0.9", "rsc-1" FIVE_MINUTES, 4096, 60, 0.9, 0.9, 1},
        {"effective time, 100,000 GPUs of RSC-2, saved every 2 min: >= 0.9",
         "rsc-2,detection=0s,requeue=0s,restart=2min", 100000, 2, 0.9, 0.9, 1},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        double simulated, formula;
        MAQ_TRY(ettr(&simulated, &formula, cases[i].failures, cases[i].devices, cases[i].minutes * MINUTE, t->diag));
        maq_risk_compare(t,
                         &(const struct maq_risk_published){"O4", cases[i].what, "", META, cases[i].seen, cases[i].low,
                                                            cases[i].high},
                         simulated);
    }
    /* Where losses are large what was published is the formula's answer, an approximation for small ones; a run loses less. */
    double simulated, formula;
    MAQ_TRY(ettr(&simulated, &formula, "rsc-1" FIVE_MINUTES, 100000, 7 * MINUTE, t->diag));
    maq_risk_add(
        t, (struct maq_validate_risk_row){.id = "O4",
                                          .what = "the published formula, 100,000 GPUs of RSC-1, saved every 7 min",
                                          .unit = "",
                                          .source = META,
                                          .observed = 0.5,
                                          .low = 0.46,
                                          .high = 0.54,
                                          .predicted = formula});
    return MAQ_OK;
}

/* The formula that fleets publish, against simulation: the paper says within 5 % up to 8,000 GPUs. */
static enum maq_status add_formula(struct maq_risk_table *t)
{
    static const double minutes[] = {5, 15, 30, 60};
    double worst = 0;
    for (uint32_t devices = 1000; devices <= 8000; devices *= 2)
        for (size_t i = 0; i < MAQ_COUNT(minutes); i++) {
            double simulated, formula;
            MAQ_TRY(ettr(&simulated, &formula, "rsc-1" FIVE_MINUTES, devices, minutes[i] * MINUTE, t->diag));
            worst = fmax(worst, fabs(formula / simulated - 1));
        }
    maq_risk_compare(
        t,
        &(const struct maq_risk_published){
            "O5", "the published formula against simulation, 1,000 to 8,000 GPUs, at worst", "", META, 0.05, 0, 0.05},
        worst);
    return MAQ_OK;
}

/* --- O14, O15, O16, O17 --- */

static enum maq_status add_saves(struct maq_risk_table *t)
{
    struct maq_run_result *r;
    MAQ_TRY(run(&r, job(384, 90, 3 * 3600, 40, 100), "bloom-2022", t->diag));
    maq_risk_compare(
        t,
        &(const struct maq_risk_published){"O14", "BLOOM: share of the useful time that saving takes, 40 s every 3 h",
                                           "%", "BigScience, chronicles", 0.37, 0.35, 0.39},
        100 * r->bucket_s[MAQ_RUN_SAVE] / (r->bucket_s[MAQ_RUN_PRODUCTIVE] + r->bucket_s[MAQ_RUN_WASTED]));
    maq_run_result_free(r);
    return MAQ_OK;
}

/* What writing a checkpoint of 3.6 min every 40 min takes over the useful time, when nothing fails. */
static enum maq_status add_overlap(struct maq_risk_table *t)
{
    struct maq_run_result *r;
    MAQ_TRY(run(&r, job(1024, 30, 40 * MINUTE, 3.6 * MINUTE, 0), "none", t->diag));
    double stretches = r->bucket_s[MAQ_RUN_PRODUCTIVE] / (40 * MINUTE); /* what the last one leaves may not be saved */
    maq_risk_compare(t,
                     &(const struct maq_risk_published){
                         "O15", "a checkpoint of 800 B parameters in 3.6 min, every 40 min: over the useful time", "%",
                         "VAST, 85,000 checkpoints of 40 runs", 9, 9 * (1 - 1 / stretches) - 1e-9, 9 + 1e-9},
                     100 * r->bucket_s[MAQ_RUN_SAVE] / r->bucket_s[MAQ_RUN_PRODUCTIVE]);
    maq_run_result_free(r);
    return MAQ_OK;
}

/* Uncorrectable memory errors of Delta's GPUs. The times between them are the publication's, the memory is the catalogue's. */
static enum maq_status memory_of(double *out, const char *cluster, struct maq_diag *diag)
{
    struct maq_loaded_job *loaded;
    char text[96];
    maq__snprintf(text, sizeof text, "{model: llama-3.1-8b, cluster: \"%s\", workload: {gbs: 64}}", cluster);
    MAQ_TRY(maq_job_parse_open(&loaded, cluster, maq_str_of(text), NULL, 0, diag));
    *out = maq_job_get(loaded)->cluster.groups[0].device.mem_bytes;
    maq_job_free(loaded);
    return MAQ_OK;
}

static enum maq_status add_memory_errors(struct maq_risk_table *t)
{
    static const char source[] = "Delta, A100 and GH200 (arXiv 2503.11901)";
    struct maq_loaded_failures *a100, *h100;
    double a100_bytes, h100_bytes;
    MAQ_TRY(maq_failures_load(&a100, "rate=3.530190e-6/gpu/h", t->diag));                 /* 1 / 283,271 h */
    enum maq_status status = maq_failures_load(&h100, "rate=1.126532e-5/gpu/h", t->diag); /* 1 / 88,768 h */
    double ratio = status == MAQ_OK ? maq_failures_get(h100)->rate / maq_failures_get(a100)->rate : 0;
    maq_failures_free(a100);
    if (status == MAQ_OK)
        maq_failures_free(h100);
    MAQ_TRY(status);
    MAQ_TRY(memory_of(&a100_bytes, "a100-40gb:4", t->diag));
    MAQ_TRY(memory_of(&h100_bytes, "gh200-96gb:4", t->diag));
    maq_risk_add(t, (struct maq_validate_risk_row){"O16", "uncorrectable memory errors, H100 over A100, per GPU", "",
                                                   source, 3.2, 3.2 * 0.98, 3.2 * 1.02, ratio, MAQ_RISK_PASS, NULL});
    maq_risk_add(t, (struct maq_validate_risk_row){"O16", "the same per byte of memory", "", source, 1.33, 1.33 * 0.98,
                                                   1.33 * 1.02, ratio * a100_bytes / h100_bytes, MAQ_RISK_PASS, NULL});
    return MAQ_OK;
}

static enum maq_status add_spread(struct maq_risk_table *t)
{
    struct maq_loaded_failures *loaded = NULL;
    MAQ_TRY(maq_failures_load(&loaded, "fleets", t->diag));
    const struct maq_failures *f = maq_failures_get(loaded);
    double median = f->rate * 8 * DAY * 1000, factor = exp(1.6448536 * f->spread);
    static const char source[] = "eight fleets of five operators (docs/risk-runs.md)";
    maq_risk_add(t, (struct maq_validate_risk_row){"O17", "failures per 1,000 node-days, 5 % of fleets have fewer", "",
                                                   source, 2, 1.6, 2.4, median / factor, MAQ_RISK_PASS, NULL});
    maq_risk_add(t, (struct maq_validate_risk_row){"O17", "failures per 1,000 node-days, 5 % of fleets have more", "",
                                                   source, 8, 6.4, 9.6, median * factor, MAQ_RISK_PASS, NULL});
    maq_failures_free(loaded);
    return MAQ_OK;
}

enum maq_status maq_risk_rows_runs(struct maq_risk_table *t)
{
    MAQ_TRY(add_mttf(t));
    MAQ_TRY(add_llama_counts(t));
    MAQ_TRY(add_llama_goodput(t));
    MAQ_TRY(add_ettr(t));
    MAQ_TRY(add_formula(t));
    MAQ_TRY(add_saves(t));
    MAQ_TRY(add_overlap(t));
    MAQ_TRY(add_memory_errors(t));
    return add_spread(t);
}
