/* SPDX-License-Identifier: Apache-2.0 */
/*
 * focus.h - restricts the variation of a step to a part of it, for a question about that part; and adds kernels with
 * laws of their own.
 *
 * A spread says how much of its variation each signature and each stage keeps, from 0 to 1: a duration base x F becomes
 * base x (1 + kept x (F - 1)). A part of a pass keeps the product of both. Factors that all GPUs share belong to no
 * part.
 *
 * Runs of a signature with a law of its own are independent. Of n runs in a pass, each c / n of it, a collective adds
 * one draw each: all its members have the same. An operator runs on every GPU of the lockstep group; between two of
 * the M meetings of a pass the sums of its draws differ, and the slowest counts:
 *
 *   mean = c m + e sqrt(M V),  variance = w V,    V = c^2 s^2 / n
 *
 * with m and s the mean and standard deviation of the law of a run over its median, e and w the mean and variance of
 * the largest of as many normal variables as the group has GPUs; V is that of all such signatures together, and the
 * sum of all is taken as lognormal, whatever the laws of single runs are. Transfers and reductions are single runs
 * and have their law itself. The slow ones among the runs are counted apart, by the binomial law of the runs, those
 * of an operator on each GPU; the law of body and slow runs together is that of a sum (base/stat/law_sum.h).
 */
#ifndef MAQ_RISK_STEP_FOCUS_H
#define MAQ_RISK_STEP_FOCUS_H

#include "risk/step/signature.h"

struct maq_spread {
    const double *signature; /* [signatures.n] */
    const double *stage;     /* [stages] */
};

/* Own laws are those of `v`. Everything in `arena`. */
enum maq_status maq_step_focus_make(struct maq_step_focus *out, const struct maq_signatures *signatures,
                                    const struct maq_variation *v, const struct maq_spread *spread,
                                    const struct maq_step_model *m, struct maq_arena *arena);

#endif
