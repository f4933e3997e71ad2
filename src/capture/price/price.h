/* SPDX-License-Identifier: Apache-2.0 */
/*
 * price.h - prices: the durations of operators, copies, collectives and messages of a trace, by the cost chain.
 *
 * Used by the price server of running ranks (src/launch), and where a captured job is replayed on other hardware.
 */
#ifndef MAQ_CAPTURE_PRICE_PRICE_H
#define MAQ_CAPTURE_PRICE_PRICE_H

#include "maquette/cost.h"
#include "shim/record.h"

/* Times of kernels that the user measured. kernel_times.c */
struct maq_replay_kernels;
/* A table in CSV with the columns name, ns and, where a kernel's time depends on it, grid: "32x4x1" or the number of
 * blocks. *out is owned by the caller. */
enum maq_status maq_replay_kernels_read(struct maq_replay_kernels **out, const char *path, struct maq_diag *diag);
void maq_replay_kernels_free(struct maq_replay_kernels *times);
/* ns; negative = the table has no such kernel. A name that the table has without a grid fits every grid. */
double maq_replay_kernels_find(const struct maq_replay_kernels *times, const char *name, size_t name_len,
                               const uint32_t grid[3]);

/* The sources of prices. All borrowed; costs and kernels may be NULL. */
struct maq_pricer {
    const struct maq_cluster *cluster;
    const struct maq_costs *costs;
    const struct maq_replay_kernels *kernels;
};

/*
 * A price in whole nanoseconds, and its provenance. `modelled`: an operator that the chain has no kind for, a kernel of
 * the program's own above all, stands as a stream of bytes through memory (head of price.c).
 */
struct maq_price {
    uint64_t ns;
    float error;      /* relative, one standard deviation */
    uint8_t provider; /* enum maq_provider */
    bool modelled;
};

/* An operator on a device. name: `what->name_bytes` characters, or NULL. Never fails. */
struct maq_price maq_price_op(const struct maq_pricer *p, const struct maq_rec_op *what, const char *name,
                              const struct maq_device *device);
/*
 * The operators of the cost chain that a recorded operator maps to; their number, and *known false where there is none and only bytes are
 * known. trace_operators.c
 */
enum { MAQ_PRICE_PARTS = 2 };
uint32_t maq_price_map(struct maq_op out[MAQ_PRICE_PARTS], const struct maq_rec_op *what,
                       const struct maq_device *device, bool *known);
/* So many bytes through memory, half of them read. */
struct maq_op maq_price_stream(double bytes);
/* A copy (enum maq_rec_copy) or, with `set`, the filling of memory. */
struct maq_price maq_price_copy(const struct maq_pricer *p, uint32_t copy, bool set, uint64_t bytes,
                                const struct maq_device *device);

/*
 * A collective, `bytes` as in a record. member[size]: who they are, or NULL where the program did not say: then the
 * members are taken to be every s-th rank, with the least s that divides the job evenly and gives `rank` its
 * `position`.
 */
struct maq_price_group {
    const uint32_t *member;
    uint32_t size;
    uint32_t rank, position; /* a global rank that is in it, and its rank in it; not read where member is given */
    uint32_t world;
};
struct maq_price maq_price_coll(const struct maq_pricer *p, enum maq_rec_coll kind, uint64_t bytes,
                                const struct maq_price_group *group);
/* The same where the group's placement is known; kind UINT32_MAX: a message. */
struct maq_price maq_price_at(const struct maq_pricer *p, uint32_t kind, uint64_t bytes,
                              const struct maq_placement *at);
/* A message between two global ranks. */
struct maq_price maq_price_message(const struct maq_pricer *p, uint64_t bytes, uint32_t from, uint32_t to);
/* Placement of the group. Ranks beyond the cluster wrap around to its first device. */
struct maq_placement maq_price_place(const struct maq_cluster *cluster, const struct maq_price_group *group);

#endif
