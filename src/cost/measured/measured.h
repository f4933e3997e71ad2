/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measured.h - the first link of the cost chain: what was measured on the user's own device.
 *
 * A file of measurements (store.h) becomes an immutable table in memory, so that an answer is one look into it: no
 * lock, no file, any number of threads. Answers are exact: the same operator byte for byte, on a device of the same
 * name. Between two sizes nothing is guessed; that is what the fitted and the analytical providers are for.
 */
#ifndef MAQ_COST_MEASURED_MEASURED_H
#define MAQ_COST_MEASURED_MEASURED_H

#include "maquette/cost.h"

/* The chain's question: false when nothing was measured, the chain does not ask, or other kernels run. */
bool maq_measured_op(struct maq_cost *out, const struct maq_costs *costs, const struct maq_op *op,
                     const struct maq_device *device);
bool maq_measured_coll(struct maq_cost *out, const struct maq_costs *costs, const struct maq_coll *coll,
                       const struct maq_cluster *cluster);

#endif
