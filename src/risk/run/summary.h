/* SPDX-License-Identifier: Apache-2.0 */
/* summary.h - summary of simulated runs: quantiles with their confidence intervals, means summed in a fixed order. */
#ifndef MAQ_RISK_RUN_SUMMARY_H
#define MAQ_RISK_RUN_SUMMARY_H

#include "risk/run/model.h"

/*
 * q-quantile of n ascending values, with the order statistics between which it lies in 95 % of samples whatever the law (ranks by
 * the binomial distribution; NaN where n is too small for one side).
 */
struct maq_run_quantile maq_run_quantile_of(const double *ascending, uint32_t n, double q);

/* 95 % interval of a share k of n (Wilson). */
void maq_run_share(double *low, double *high, uint32_t k, uint32_t n);

/* Fills all of *out that comes from outcomes; tallies[i * n_causes + c]. `scratch`: n doubles. */
void maq_run_summarize(struct maq_run_result *out, struct maq_run_cause *causes, const struct maq_run_outcome *outcomes,
                       const struct maq_run_tally *tallies, uint32_t n, double *scratch);

#endif
