/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_pools.h - recorded durations of kernels, in pools of equal runs, and the variation of each operation.
 *
 * A pool is the runs of one kernel on one shape. Its runs are compared with its own median, and the ratios of all pools of an
 * operation are one sample, each run with the weight of its pool's median: so the variation of an operation is that of the kernels
 * that take most of its time.
 *
 *   slow     runs above 1.5 medians: their share, and the mean of their ratios
 *   body     the others: coefficient of variation; the law nearest by Kolmogorov and Smirnov, within the critical distance of risk
 *            fit
 *   waiting  a collective's kernel runs until the last member of its group has arrived. Where the durations of a pool have two
 *            modes (Otsu's threshold, Ashman's D above 4, as for steps) the upper one is waiting and no property of the collective
 *
 * Pools of fewer than 5 runs are not used for the spread; their time counts.
 */
#ifndef MAQ_RISK_FIT_KERNEL_POOLS_H
#define MAQ_RISK_FIT_KERNEL_POOLS_H

#include "base/arena.h"
#include "maquette/risk.h"
#include "risk/fit/kernel_names.h"

#define MAQ_POOL_LEAST 5u

struct maq_kernel_pool {
    const char *key;
    char name[MAQ_KERNEL_NAME];
    bool waits;
    uint32_t n, size;
    uint64_t runs; /* including those whose durations were not kept */
    double sum_s, *value_s;
};

struct maq_kernel_pools {
    struct maq_arena *arena; /* keys */
    struct maq_kernel_pool *at;
    uint32_t n, size, *table, table_size; /* number + 1, 0 = free */
};

void maq_kernel_pools_init(struct maq_kernel_pools *pools, struct maq_arena *arena);
void maq_kernel_pools_fini(struct maq_kernel_pools *pools);
/* Adds one run. MAQ_LIMIT: more kernels than can be held. */
enum maq_status maq_kernel_pools_add(struct maq_kernel_pools *pools, struct maq_str key,
                                     const struct maq_kernel_words *words, double seconds);
/* Adds one run of an operation whose name is known and which waits for no other rank. */
enum maq_status maq_kernel_pools_add_named(struct maq_kernel_pools *pools, struct maq_str key, const char *name,
                                           double seconds);
/* Operations with the most time first, in the arena of `out`'s owner. */
enum maq_status maq_kernel_pools_sum(struct maq_risk_record *out, const struct maq_kernel_pools *pools,
                                     struct maq_arena *arena);

#endif
