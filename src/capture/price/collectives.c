/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collectives.c - maps collectives of a trace to collectives of the cost chain: see price.h.
 *
 * A trace counts bytes as NCCL counts elements, the chain counts the whole buffer:
 *
 *     all-reduce, broadcast, reduce   B            a reduce is a broadcast backwards
 *     all-gather, reduce-scatter      n B
 *     all-to-all                      n B          B to each of n ranks
 *     gather, scatter                 (n - 1) B    through the root's port, as one message
 *
 * Groups with the same placement on the same nodes share the ports: as many groups as fill the node.
 */
#include <stdlib.h>
#include <string.h>

#include "capture/price/price.h"

static int by_rank(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Every s-th rank, with the least s that fits. */
static void guess(const struct maq_price_group *g, uint32_t devices, uint32_t *first, uint32_t *stride)
{
    uint32_t world = g->world > 0 && g->world <= devices ? g->world : devices, n = g->size;
    for (uint32_t s = 1; n > 0 && (uint64_t)s * n <= world; s++) {
        uint64_t back = (uint64_t)s * g->position;
        if (world % ((uint64_t)s * n) == 0 && g->rank / s % n == g->position && back <= g->rank) {
            *first = g->rank - (uint32_t)back;
            *stride = s;
            return;
        }
    }
    *first = 0;
    *stride = 1;
}

/* Members that are no progression: counted block by block; the links are those of its ends. */
static struct maq_placement walk(const struct maq_cluster *c, const uint32_t *sorted, uint32_t n)
{
    struct maq_placement at = maq_cluster_place(c, sorted[0], 2, sorted[n - 1] - sorted[0]);
    uint32_t in_domain = 0, in_node = 0;
    uint64_t domain = UINT64_MAX, node = UINT64_MAX;
    at.size = n;
    at.domains = at.per_domain = at.per_node = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct maq_node_group *group = maq_cluster_group_of(c, sorted[i]);
        uint32_t local = sorted[i] - group->first_rank;
        uint64_t key = (uint64_t)group->first_rank << 32;
        uint64_t d = key | local / (uint32_t)group->domain_devices,
                 nd = key | local / (uint32_t)group->devices_per_node;
        in_domain = d == domain ? in_domain + 1 : 1;
        in_node = nd == node ? in_node + 1 : 1;
        at.domains += d != domain;
        at.per_domain = in_domain > at.per_domain ? in_domain : at.per_domain;
        at.per_node = in_node > at.per_node ? in_node : at.per_node;
        domain = d;
        node = nd;
    }
    return at;
}

static struct maq_placement place_members(const struct maq_cluster *c, const uint32_t *member, uint32_t n)
{
    uint32_t few[64], *sorted = n <= 64 ? few : malloc(n * sizeof *sorted);
    struct maq_placement at;
    if (!sorted)
        return maq_cluster_place(c, 0, n <= c->devices ? n : c->devices, 1);
    for (uint32_t i = 0; i < n; i++)
        sorted[i] = member[i] % c->devices;
    qsort(sorted, n, sizeof *sorted, by_rank);
    uint32_t stride = n > 1 ? sorted[1] - sorted[0] : 1;
    bool even = stride > 0;
    for (uint32_t i = 2; i < n && even; i++)
        even = sorted[i] - sorted[i - 1] == stride;
    if (even)
        at = maq_cluster_place(c, sorted[0], n, stride);
    else if (sorted[n - 1] == sorted[0])
        at = maq_cluster_place(c, sorted[0], 1, 1);
    else
        at = walk(c, sorted, n);
    if (sorted != few)
        free(sorted);
    return at;
}

struct maq_placement maq_price_place(const struct maq_cluster *cluster, const struct maq_price_group *group)
{
    uint32_t first, stride, devices = cluster->devices, n = group->size > 0 ? group->size : 1;
    if (group->member && n > 1)
        return place_members(cluster, group->member, n);
    if (n == 1)
        return maq_cluster_place(cluster, group->rank % devices, 1, 1);
    guess(group, devices, &first, &stride);
    if ((uint64_t)first + (uint64_t)(n - 1) * stride >= devices)
        return maq_cluster_place(cluster, 0, n <= devices ? n : devices, 1);
    return maq_cluster_place(cluster, first, n, stride);
}

static struct maq_price price_placed(const struct maq_pricer *p, enum maq_coll_kind kind, double bytes,
                                     struct maq_placement at)
{
    uint32_t per_node = (uint32_t)p->cluster->groups[at.group].devices_per_node;
    uint32_t sharers = at.per_node > 0 && at.per_node < at.size ? per_node / at.per_node : 1;
    struct maq_coll coll = {
        .kind = (uint16_t)kind, .sharers = (uint16_t)(sharers > 0 ? sharers : 1), .bytes = bytes, .at = at};
    struct maq_cost cost = maq_cost_coll(p->costs, &coll, p->cluster);
    double ns = cost.seconds * 1e9;
    return (struct maq_price){
        .ns = (uint64_t)(ns < 9.0e15 ? ns + 0.5 : 9.0e15), .error = cost.error, .provider = cost.provider};
}

struct maq_price maq_price_at(const struct maq_pricer *p, uint32_t kind, uint64_t bytes,
                              const struct maq_placement *where)
{
    static const struct {
        uint8_t kind, times; /* times: 0 = once, 1 = n, 2 = n - 1 */
    } map[MAQ_REC_COLL_COUNT] = {
        [MAQ_REC_ALL_REDUCE] = {MAQ_COLL_ALL_REDUCE, 0},
        [MAQ_REC_ALL_GATHER] = {MAQ_COLL_ALL_GATHER, 1},
        [MAQ_REC_REDUCE_SCATTER] = {MAQ_COLL_REDUCE_SCATTER, 1},
        [MAQ_REC_BROADCAST] = {MAQ_COLL_BROADCAST, 0},
        [MAQ_REC_REDUCE] = {MAQ_COLL_BROADCAST, 0},
        [MAQ_REC_ALL_TO_ALL] = {MAQ_COLL_ALL_TO_ALL, 1},
        [MAQ_REC_GATHER] = {MAQ_COLL_SEND_RECV, 2},
        [MAQ_REC_SCATTER] = {MAQ_COLL_SEND_RECV, 2},
        [MAQ_REC_P2P_PAIR] = {MAQ_COLL_SEND_RECV, 0},
    };
    struct maq_placement at = *where;
    unsigned k = kind < MAQ_REC_COLL_COUNT ? kind : MAQ_REC_P2P_PAIR;
    double n = at.size, total = (double)bytes * (map[k].times == 1 ? n : map[k].times == 2 ? n - 1 : 1);
    if (at.size == 1) /* to itself: a copy */
        return maq_price_copy(p, MAQ_REC_D2D, false, bytes, &p->cluster->groups[at.group].device);
    if (map[k].kind == MAQ_COLL_SEND_RECV && at.size > 2) {
        at.domains = at.domains > 1 ? 2 : 1;
        at.per_node = at.per_node < at.size ? 1 : 2;
        at.per_domain = at.domains > 1 ? 1 : 2;
        at.size = 2;
    }
    return price_placed(p, map[k].kind, total, at);
}

struct maq_price maq_price_coll(const struct maq_pricer *p, enum maq_rec_coll kind, uint64_t bytes,
                                const struct maq_price_group *group)
{
    struct maq_placement at = maq_price_place(p->cluster, group);
    return maq_price_at(p, kind, bytes, &at);
}

struct maq_price maq_price_message(const struct maq_pricer *p, uint64_t bytes, uint32_t from, uint32_t to)
{
    uint32_t pair[2] = {from, to};
    struct maq_placement at = maq_price_place(p->cluster, &(struct maq_price_group){.member = pair, .size = 2});
    return maq_price_at(p, MAQ_REC_P2P_PAIR, bytes, &at);
}
