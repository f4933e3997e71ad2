/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_pools.c - opens a sweep on each node group as a cluster of its own, and prices transfers by the job's cost
 * chain. See device_pools.h.
 */
#include "train/mixed/device_pools.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "train/cache.h"
#include "train/step/blueprint.h"

static enum maq_status open_pool(struct maq_pool *pool, const struct maq_job *job, uint32_t g, struct maq_diag *diag)
{
    struct maq_job alone = *job;
    *pool = (struct maq_pool){.group = job->cluster.groups[g], .cluster = job->cluster};
    pool->group.first_rank = 0;
    pool->count = (uint32_t)(pool->group.nodes * pool->group.devices_per_node);
    pool->per_node = (uint32_t)pool->group.devices_per_node;
    pool->cluster.groups = &pool->group;
    pool->cluster.n_groups = 1;
    pool->cluster.n_links = 0;
    pool->cluster.devices = pool->count;
    alone.cluster = pool->cluster;
    alone.cluster.devices = job->cluster.devices; /* a step waits for the slowest of them all */
    return maq_train_sweep_new(&pool->sweep, &alone, diag);
}

enum maq_status maq_pools_open(struct maq_pools *out, const struct maq_job *job, struct maq_diag *diag)
{
    *out = (struct maq_pools){.cluster = &job->cluster};
    MAQ_TRY(maq_costs_of_job(&out->chain, &out->measured, job, diag));
    out->at = maq__calloc(job->cluster.n_groups * sizeof *out->at);
    if (!out->at)
        return MAQ_NO_MEMORY;
    for (; out->n < job->cluster.n_groups; out->n++)
        MAQ_TRY(open_pool(&out->at[out->n], job, out->n, diag));
    return MAQ_OK;
}

void maq_pools_close(struct maq_pools *pools)
{
    for (uint32_t g = 0; g < pools->n; g++)
        maq_train_sweep_free(pools->at[g].sweep);
    free(pools->at);
    maq_measured_close(pools->measured);
    *pools = (struct maq_pools){0};
}

uint32_t maq_pool_sharers(const struct maq_pool *pool, uint32_t devices, uint32_t stages)
{
    uint32_t fit = devices < pool->per_node ? pool->per_node / devices : 1;
    fit = fit < stages ? fit : stages;
    return fit > 0 ? pool->per_node / fit : 1;
}

static double cost_s(const struct maq_pools *pools, const struct maq_coll *coll, const struct maq_cluster *cluster)
{
    return maq_cost_coll(&pools->chain, coll, cluster).seconds;
}

double maq_pools_inside_s(const struct maq_pools *pools, uint32_t pool, uint32_t from, uint32_t to, double bytes,
                          uint32_t sharers)
{
    const struct maq_cluster *cluster = &pools->at[pool].cluster;
    struct maq_coll hop = {.kind = MAQ_COLL_SEND_RECV, .sharers = (uint16_t)sharers, .bytes = bytes};
    hop.at = maq_cluster_place(cluster, from < to ? from : to, 2, from < to ? to - from : from - to);
    return cost_s(pools, &hop, cluster);
}

bool maq_pools_apart(const struct maq_pools *pools, const uint32_t pool[2], const uint32_t device[2])
{
    uint32_t low = device[0] < device[1] ? device[0] : device[1], high = device[0] < device[1] ? device[1] : device[0];
    return pool[0] != pool[1] ||
           (low < high && maq_cluster_place(&pools->at[pool[0]].cluster, low, 2, high - low).domains > 1);
}

double maq_pools_side_s(const struct maq_pools *pools, uint32_t pool, double bytes, uint32_t senders, bool inside)
{
    const struct maq_pool *p = &pools->at[pool];
    struct maq_coll hop = {.kind = MAQ_COLL_SEND_RECV,
                           .sharers = (uint16_t)(senders < p->per_node ? senders : p->per_node),
                           .bytes = bytes};
    hop.at = (struct maq_placement){.size = 2, .per_domain = 1, .domains = 2, .per_node = 1};
    if (inside)
        hop.at = maq_cluster_place(&p->cluster, 0, 2, senders < p->count ? senders : 1);
    return cost_s(pools, &hop, &p->cluster);
}

double maq_pools_between_s(const struct maq_pools *pools, uint32_t a, uint32_t b, double bytes, uint32_t senders)
{
    const struct maq_cluster *cluster = pools->cluster;
    uint32_t low = cluster->groups[a < b ? a : b].first_rank, high = cluster->groups[a < b ? b : a].first_rank;
    struct maq_coll hop = {.kind = MAQ_COLL_SEND_RECV, .sharers = (uint16_t)senders, .bytes = bytes};
    hop.at = maq_cluster_place(cluster, low, 2, high - low);
    double slower =
        fmax(maq_pools_side_s(pools, a, bytes, senders, false), maq_pools_side_s(pools, b, bytes, senders, false));
    return hop.at.link > 0 ? fmax(slower, cost_s(pools, &hop, cluster)) : slower;
}

double maq_pools_tied_s(const struct maq_pools *pools, const uint32_t pool[2], const uint32_t device[2], double bytes,
                        uint32_t sharers)
{
    struct maq_coll tied = {.kind = MAQ_COLL_ALL_REDUCE, .sharers = (uint16_t)sharers, .bytes = bytes};
    double slowest = 0;
    for (uint32_t i = 0; i < 2; i++) {
        const struct maq_cluster *cluster = &pools->at[pool[i]].cluster;
        tied.at = (struct maq_placement){.size = 2, .per_domain = 1, .domains = 2, .per_node = 1};
        if (pool[0] == pool[1])
            tied.at = maq_cluster_place(cluster, device[0] < device[1] ? device[0] : device[1], 2,
                                        device[0] < device[1] ? device[1] - device[0] : device[0] - device[1]);
        slowest = fmax(slowest, cost_s(pools, &tied, cluster));
    }
    return slowest;
}

double maq_pools_norm_s(const struct maq_pools *pools)
{
    struct maq_coll norm = {.kind = MAQ_COLL_ALL_REDUCE, .sharers = 1, .bytes = 4};
    norm.at = maq_cluster_place(pools->cluster, 0, pools->cluster->devices, 1);
    return cost_s(pools, &norm, pools->cluster);
}
