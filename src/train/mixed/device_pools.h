/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_pools.h - the node groups of a job as pools of devices, for plans over several of them: a sweep that costs
 * stages on each, and the price of transfers inside a group and between two groups.
 *
 * A pool is a cluster of one group whose ranks count from 0; stages take its devices side by side.
 */
#ifndef MAQ_TRAIN_MIXED_DEVICE_POOLS_H
#define MAQ_TRAIN_MIXED_DEVICE_POOLS_H

#include "maquette/cost.h"
#include "maquette/train.h"

struct maq_pool {
    struct maq_node_group group;
    struct maq_cluster cluster;    /* the group alone, which it borrows */
    struct maq_train_sweep *sweep; /* owned; of the job on it */
    uint32_t count, per_node;      /* devices */
};

struct maq_pools {
    const struct maq_cluster *cluster; /* all groups; borrowed from the job */
    struct maq_costs chain;            /* the cost chain that the job asks for */
    struct maq_measured *measured;     /* owned; NULL = the job names no file of measured kernels */
    uint32_t n;
    struct maq_pool *at; /* owned */
};

/* *out is to be ended (maq_pools_close()) even on failure. The job is borrowed. */
enum maq_status maq_pools_open(struct maq_pools *out, const struct maq_job *job, struct maq_diag *diag);
void maq_pools_close(struct maq_pools *pools);

/* How many pipelines send at the same time from a node, for a stage on `devices` devices and `stages` stages of a pipeline on
 * the pool: as many as it takes to cover the node's devices. */
uint32_t maq_pool_sharers(const struct maq_pool *pool, uint32_t devices, uint32_t stages);
/* Seconds of a transfer of `bytes` from one of the pool's devices to another. */
double maq_pools_inside_s(const struct maq_pools *pools, uint32_t pool, uint32_t from, uint32_t to, double bytes,
                          uint32_t sharers);
/* Whether two devices are in different scale-up domains, so that a transfer between them passes a network port. */
bool maq_pools_apart(const struct maq_pools *pools, const uint32_t pool[2], const uint32_t device[2]);
/*
 * Seconds of a transfer over the pool's own network by `senders` devices at once: between two of its nodes or, where
 * `inside`, between two neighbours of that many devices.
 */
double maq_pools_side_s(const struct maq_pools *pools, uint32_t pool, double bytes, uint32_t senders, bool inside);
/* Seconds of a transfer between two pools: over the slower of both networks, or over the link between them. */
double maq_pools_between_s(const struct maq_pools *pools, uint32_t a, uint32_t b, double bytes, uint32_t senders);
/*
 * Seconds of the all-reduce of a tied table's gradients between first and last stage: device[0] of pool[0] with device[1] of
 * pool[1].
 */
double maq_pools_tied_s(const struct maq_pools *pools, const uint32_t pool[2], const uint32_t device[2], double bytes,
                        uint32_t sharers);
/* Seconds of the all-reduce of the gradient norm over all devices. */
double maq_pools_norm_s(const struct maq_pools *pools);

#endif
