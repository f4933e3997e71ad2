/*
 * device_pools.h - the node groups of a job, each alone, as plans over several of them see it: what a group's own network takes for a transfer,
 * what lies between two groups, and a sweep that costs stages on each.
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

/* *out is to be ended (maq_pools_close) even on failure. The job is borrowed. */
enum maq_status maq_pools_open(struct maq_pools *out, const struct maq_job *job, struct maq_diag *diag);
void maq_pools_close(struct maq_pools *pools);

/* Pipelines that send beside one another from a node, of a stage on so many devices and so many stages of the pipeline on the pool: as many
 * as it takes to cover the node's devices. */
uint32_t maq_pool_sharers(const struct maq_pool *pool, uint32_t devices, uint32_t stages);
/* Of `bytes` from one of the pool's devices to another, seconds. */
double maq_pools_inside_s(const struct maq_pools *pools, uint32_t pool, uint32_t from, uint32_t to, double bytes,
                          uint32_t sharers);
/* Whether two devices lie in different scale-up domains: what goes from one to the other goes through a port of the network. */
bool maq_pools_apart(const struct maq_pools *pools, const uint32_t pool[2], const uint32_t device[2]);
/*
 * Over the pool's own network, `senders` devices at once: between two of its nodes or, where `inside`, two neighbours
 * of that many devices.
 */
double maq_pools_side_s(const struct maq_pools *pools, uint32_t pool, double bytes, uint32_t senders, bool inside);
/* Between two pools: the slower of both networks, or the link between them. */
double maq_pools_between_s(const struct maq_pools *pools, uint32_t a, uint32_t b, double bytes, uint32_t senders);
/* The halves of a table that first and last stage hold are added up, each on its network: device of `pool` with device of `other_pool`. */
double maq_pools_tied_s(const struct maq_pools *pools, const uint32_t pool[2], const uint32_t device[2], double bytes,
                        uint32_t sharers);
/* All-reduce of the gradients' norm over all devices. */
double maq_pools_norm_s(const struct maq_pools *pools);

#endif
