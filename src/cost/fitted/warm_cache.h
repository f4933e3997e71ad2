/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warm_cache.h - what the loop that measured a kernel found in the last-level cache, and a pass through a model does not.
 */
#ifndef MAQ_COST_FITTED_WARM_CACHE_H
#define MAQ_COST_FITTED_WARM_CACHE_H

#include "cost/fitted/table.h"

/* Share of the memory's rate that data has: ECC bits that lie among them (inline_ecc) are read with them. */
double maq__data_share(const struct maq_device *device);

/* Seconds of the memory traffic of a product in the loop of a library's table, on a device. */
double maq__warm_memory_s(const struct maq_op *op, const struct maq_device *device, enum maq_library library);

/*
 * Seconds that an operator takes longer in a pass through a model than in such a loop: weights, keys, values and states, which the loop found in
 * the cache, come from memory.
 */
double maq__cold_s(const struct maq_op *op, const struct maq_fit_point *point, const struct maq_device *device,
                   enum maq_library library);

#endif
