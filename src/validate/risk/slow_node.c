/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slow_node.c - a slow node in a pipeline (O12).
 *
 * Published are two ranges without their jobs: a hot node makes a step 9 to 35 % longer, and the same slowdown at
 * different pipeline ranks makes its 95th percentile 8.0 to 15.6 % longer. What can be asked is that the ranges of a
 * job of 64 GPUs overlap with them. The job is the pipeline of the closed form for a slow stage (8 stages, 32
 * microbatches; tests/test_risk_step.c), each stage a node; the node takes 1.2 times as long, as the slowest of 392
 * recorded GPUs does over their median (1.203: Longhorn, SGEMM).
 *
 * Ranges overlap when the least prediction is not above the greatest observation and the greatest not below the least: a row for each.
 */
#include <math.h>

#include "base/check.h"
#include "base/str.h"
#include "maquette/job.h"
#include "maquette/risk.h"
#include "validate/risk/table.h"

#define SLOW_NODE 1.2
#define PRISM "PRISM v2"

static const char hot_job[] = "{model: llama-3.1-70b, cluster: \"h100-sxm:8 x 8, rail 400G\","
                              " plan: {tp: 8, pp: 8}, workload: {gbs: 32, seq: 8192}}";

/* The step with the node in each stage, over the step without it: least and greatest, of the median and of the 95th percentile. */
struct ranges {
    double p50[2], p95[2];
};

static enum maq_status place_node(struct ranges *out, struct maq_diag *diag)
{
    struct maq_risk_step_opts opts = MAQ_RISK_STEP_OPTS_INIT;
    struct maq_risk_step *step;
    struct maq_loaded_job *loaded;
    opts.place = SLOW_NODE;
    opts.no_sources = true;
    opts.draws = 4000;
    MAQ_TRY(maq_job_parse(&loaded, "a job of 64", maq_str_of(hot_job), NULL, 0, diag));
    enum maq_status status = maq_risk_step(&step, maq_job_get(loaded), &opts, diag);
    if (status == MAQ_OK) {
        *out = (struct ranges){{(double)INFINITY, -(double)INFINITY}, {(double)INFINITY, -(double)INFINITY}};
        for (uint32_t s = 0; s < step->stages; s++) {
            double p50 = step->place[s].p50.value_s / step->figure[MAQ_RISK_P50].value_s - 1;
            double p95 = step->place[s].p95.value_s / step->figure[MAQ_RISK_P95].value_s - 1;
            out->p50[0] = fmin(out->p50[0], p50);
            out->p50[1] = fmax(out->p50[1], p50);
            out->p95[0] = fmin(out->p95[0], p95);
            out->p95[1] = fmax(out->p95[1], p95);
        }
        maq_risk_step_free(step);
    }
    maq_job_free(loaded);
    return status;
}

enum maq_status maq_risk_rows_placement(struct maq_risk_table *t)
{
    struct ranges r;
    MAQ_TRY(place_node(&r, t->diag));
    const struct maq_validate_risk_row rows[] = {
        {.what = "a hot node among 8: step time over none, least of all stages",
         .observed = 9,
         .low = -(double)INFINITY,
         .high = 35,
         .predicted = 100 * r.p50[0]},
        {.what = "the same, greatest of all stages",
         .observed = 35,
         .low = 9,
         .high = (double)INFINITY,
         .predicted = 100 * r.p50[1]},
        {.what = "the same slowdown in another stage: p95 over none, least",
         .observed = 8.0,
         .low = -(double)INFINITY,
         .high = 15.6,
         .predicted = 100 * r.p95[0]},
        {.what = "the same, greatest",
         .observed = 15.6,
         .low = 8.0,
         .high = (double)INFINITY,
         .predicted = 100 * r.p95[1]},
    };
    for (size_t i = 0; i < MAQ_COUNT(rows); i++) {
        struct maq_validate_risk_row row = rows[i];
        row.id = "O12";
        row.unit = "%";
        row.source = PRISM;
        maq_risk_add(t, row);
    }
    return MAQ_OK;
}
