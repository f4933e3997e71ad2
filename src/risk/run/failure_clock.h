/* SPDX-License-Identifier: Apache-2.0 */
/*
 * failure_clock.h - the time of the next failure: an exponential process with lemons and bursts, or Weibull for each node.
 *
 * The clock has a time of its own, which a caller may stop. It is for all nodes of the job; the caller drops failures of nodes that
 * are away (thinning).
 *
 *   exponential   a failure of the job comes when an exponential amount of hazard is used up. The rate is node rate x (others +
 *                 times x lemons) x burst, constant between failures and ends of bursts. It is scaled so that the mean over nodes
 *                 and over calm and burst is the rate that the fleet reports
 *   Weibull       nodes of one age a have the cumulative hazard H(t) = ((t + a) / eta)^k each, eta = mean / Gamma(1 + 1/k). Of n
 *                 that have not failed yet the first fails when H has grown by an exponential amount / n: no clock per node is
 *                 needed. A node that failed begins anew, new or repaired, and has a clock in a heap
 */
#ifndef MAQ_RISK_RUN_FAILURE_CLOCK_H
#define MAQ_RISK_RUN_FAILURE_CLOCK_H

#include "risk/run/model.h"
#include "risk/run/spare_pool.h"

struct maq_run_clock {
    const struct maq_run_model *m;
    double factor;    /* of this run's rate: how well the rate is known */
    double now, next; /* ns */
    /* exponential */
    double weight;      /* rate of the job without bursts, per ns */
    double calm, burst; /* factors on it outside of and during a burst */
    bool in_burst;
    double burst_changes; /* when the burst begins or ends; INFINITY = never */
    struct maq_rng burst_rng;
    /* Weibull */
    double eta, hazard; /* of the nodes that never failed */
    int64_t never_failed;
    struct maq_heap renewed;
};

void maq_run_clock_init(struct maq_run_clock *c, const struct maq_run_model *m, uint32_t replica);
void maq_run_clock_fini(struct maq_run_clock *c);
/* From `now` = the last failure (or 0) to the next one, for so many lemons among the nodes; u: uniform in (0, 1). */
void maq_run_clock_draw(struct maq_run_clock *c, int64_t lemons, double u);
/* The node that failed last starts at age 0 again. Weibull only. */
void maq_run_clock_renew(struct maq_run_clock *c, double u);

#endif
