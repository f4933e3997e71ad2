/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exact.h - the law of a replica's end where no pipeline needs sampling: one stage, passes one after another.
 *
 *   end = slow x lasting(G) x passes + rest
 *
 * with slow from --slow, maq_step_lasting() of model.h, the passes of passes.h, and the rest (the exposed reduction) as three
 * points. G is the slowest of the lockstep group's nodes, each the node's factor times its slowest GPU:
 *
 *   P(node <= x) = E_z[F_gpu(x e^(-sigma z))^(GPUs of a node)],   P(G <= x) = P(node <= x)^nodes
 *
 * in closed form where only GPUs or only nodes differ, otherwise a table. It enters as a quadrature over its
 * quantiles, finer towards its slow end.
 *
 * Refused (false), to be sampled instead: several stages; kernels with laws of their own; nothing that varies, where sampling is
 * exact.
 */
#ifndef MAQ_RISK_STEP_EXACT_H
#define MAQ_RISK_STEP_EXACT_H

#include "risk/step/job_law.h"
#include "risk/step/passes.h"

#define MAQ_EXACT_FACTORS 160u

struct maq_step_exact {
    struct maq_step_passes passes;
    uint32_t factors;
    double value[MAQ_EXACT_FACTORS], weight[MAQ_EXACT_FACTORS]; /* of G */
};

/* In `arena`. */
bool maq_step_exact_find(struct maq_step_exact *out, const struct maq_step_model *m, const struct maq_variation *v,
                         struct maq_arena *arena);

/* Passes of replicas that are slower by a factor: P(slow x G x passes > low + i x step), in `arena`. */
struct maq_exact_table {
    double low, step, *above;
};
bool maq_step_exact_table(struct maq_exact_table *out, const struct maq_step_exact *e, double slow,
                          struct maq_arena *arena);

/* Ends of `count` such replicas; rest_ns varies by rest_sigma. In `arena`. */
bool maq_step_exact_ends(struct maq_end_law *out, const struct maq_exact_table *t, double rest_ns, double rest_sigma,
                         double count, struct maq_arena *arena);

#endif
