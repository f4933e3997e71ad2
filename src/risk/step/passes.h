/* SPDX-License-Identifier: Apache-2.0 */
/*
 * passes.h - the law of the passes of a replica of one stage: they run one after another.
 *
 *   passes = sum over microbatches of W_b x (sum over its passes of d_k E_k)
 *
 * d_k is a pass's time when nothing varies, E_k the noise of the slowest of the lockstep group, independent from pass to pass, W_b
 * the work of the microbatch, which all of its passes share. Sums are found on a grid by a Fourier transform (base/stat/law_sum.h):
 * where work varies, those of one microbatch first, then of as many products as there are microbatches of that kind.
 *
 * A first pass that does not end before its parameters have arrived is a few points, and so is the work W of its microbatch: the
 * rest of that microbatch is in the sum as if W were 1, and (W - 1) x its mean is added; that neglects (W - 1) x the noise of
 * single passes.
 */
#ifndef MAQ_RISK_STEP_PASSES_H
#define MAQ_RISK_STEP_PASSES_H

#include "base/stat/law_sum.h"
#include "risk/step/model.h"

/* Gauss and Hermite's three points for a normal variable: exact for moments up to the fifth. */
#define MAQ_THREE_POINTS 3
extern const double maq_three_points[MAQ_THREE_POINTS], maq_three_weights[MAQ_THREE_POINTS];

#define MAQ_PASSES_FIRSTS 24u

struct maq_step_passes {
    struct maq_grid sum;
    double *above; /* [sum.n + 1] probability above a cell's middle */
    double ready_ns;
    uint32_t firsts; /* 0: none waits */
    struct {
        double first_ns, after_ns, weight; /* the pass; what follows in its microbatch, over its mean */
    } first[MAQ_PASSES_FIRSTS];
};

/*
 * In `arena`. false: more kinds of passes or microbatches than it knows, passes that wait behind the first, or a sum
 * too wide for a grid.
 */
bool maq_step_passes_find(struct maq_step_passes *out, const struct maq_step_model *m, const struct maq_variation *v,
                          struct maq_arena *arena);

/* P(passes > x) where all of them take `factor` times as long. */
double maq_step_passes_above(const struct maq_step_passes *p, double factor, double x_ns);

#endif
