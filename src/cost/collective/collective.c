/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collective.c - what a collective costs where its group lies.
 *
 * The links of a placement (p members in each of D scale-up domains, maq_cluster_links()) become the two that the
 * algorithms know: near, inside a domain, and far, a rank's part of its node's NICs, after `sharers` and oversubscription.
 *
 * Where a node has several domains (pairs of cards under a bridge), a ring passes through all members in a node before it
 * leaves it, so that the node is what a domain is elsewhere: it has one way in and out for them all, and its near link is
 * PCIe between the pairs, the slowest on the way.
 *
 * A scale-up "link" that is no faster than the one to the host is PCIe as well: what it gives depends on the board's bridges
 * and sockets, of which the device's `contention` is all that is known.
 *
 * Answers for generations that no measurement was at hand for use another one's coefficients and count as analytical.
 *
 * The error of an answer is one standard deviation of the residuals that were held back from the fit, of its regime
 * and size.
 *
 * Groups of one member and of no bytes cost nothing.
 */
#include <math.h>

#include "cost/analytical/analytical.h"
#include "cost/collective/collective.h"
#include "cost/measured/measured.h"

/* Members that a near link joins, and how many of them send over PCIe at a time: one for each domain of the node. */
struct block {
    double members, senders;
    bool of_domains;
};

static struct block block_of(const struct maq_placement *at)
{
    double per_domain = maq__max(1.0, (double)at->per_domain), ranks = (double)at->size;
    if (at->per_node > at->per_domain)
        return (struct block){maq__min((double)at->per_node, ranks), ceil((double)at->per_node / per_domain), true};
    per_domain = maq__min(per_domain, ranks);
    return (struct block){per_domain, per_domain, false};
}

/* Exponent of a board that nobody measured: mean and standard deviation of the six that were (docs/cost-model.md). */
#define ASSUMED_CONTENTION 0.42
#define ASSUMED_CONTENTION_ERROR 0.78
#define MOST_ERROR 0.95 /* an error is less than the whole */

/* How many times two devices fill PCIe: a pair has it for itself, more share what leads from pair to pair. */
static double pcie_crowd(const struct maq_node_group *group, const struct block *block)
{
    return block->of_domains || maq_node_group_domain_is_pcie(group) ? maq__max(1.0, block->senders / 2.0) : 1.0;
}

static double near_bps(const struct maq_links *links, const struct maq_node_group *group, const struct block *block)
{
    double contention = group->domain_contention;
    double bps = block->of_domains ? links->host.bps : links->near.bps;
    return bps / pow(pcie_crowd(group, block), contention < 0.0 ? ASSUMED_CONTENTION : contention);
}

struct maq_coll_links maq__coll_links(const struct maq_coll *coll, const struct maq_cluster *cluster)
{
    const struct maq_placement *at = &coll->at;
    const struct maq_node_group *group = &cluster->groups[at->group];
    const struct maq_links links = maq_cluster_links(cluster, at, coll->sharers);
    const struct maq_coll_generation *generation = &maq__coll_generations[group->device.arch];
    bool network = at->per_node < at->size;
    const struct maq_coll_transport *transport =
        &maq__coll_transports[network ? group->fabric.transport : MAQ_TRANSPORT_VERBS];
    struct block block = block_of(at);
    double ranks = (double)at->size;

    return (struct maq_coll_links){
        .ranks = ranks,
        .per_domain = block.members,
        .domains = block.of_domains ? ceil(ranks / block.members) : maq__max(1.0, (double)at->domains),
        .near_bps = near_bps(&links, group, &block),
        .near_s = block.of_domains ? links.host.latency_s : links.near.latency_s,
        .rank_bps = links.far.bps,
        .domain_bps = links.far.bps * block.members,
        .far_s = links.far.latency_s,
        .multicast = group->domain_multicast && !block.of_domains,
        .spans_nodes = at->per_domain > at->per_node,
        .in_network_reduction = group->fabric.in_network_reduction && network,
        .shared_port = network && group->nics_per_node < group->devices_per_node,
        .rings_only = cluster->nccl_algo == MAQ_NCCL_ALGO_RING,
        .generation = generation,
        .transport = transport,
    };
}

enum maq_coll_regime maq__coll_regime(const struct maq_coll *coll, const struct maq_cluster *cluster)
{
    const struct maq_node_group *group = &cluster->groups[coll->at.group];

    if (coll->kind == MAQ_COLL_DISPATCH || coll->kind == MAQ_COLL_COMBINE)
        return MAQ_COLL_REGIME_EXPERTS;
    if (coll->at.domains > 1 && coll->at.per_node < coll->at.size)
        return MAQ_COLL_REGIME_FAR;
    return coll->at.domains > 1 || maq_node_group_domain_is_pcie(group) ? MAQ_COLL_REGIME_PCIE : MAQ_COLL_REGIME_NEAR;
}

enum maq_coll_band maq__coll_band(double bytes)
{
    return bytes <= 65536.0 ? MAQ_COLL_SMALL : bytes <= 16777216.0 ? MAQ_COLL_MIDDLE : MAQ_COLL_LARGE;
}

/* The residuals', and that of the rate above where its exponent is assumed. */
static float error_of(const struct maq_coll *coll, const struct maq_cluster *cluster)
{
    const struct maq_node_group *group = &cluster->groups[coll->at.group];
    struct block block = block_of(&coll->at);
    double residual = (double)maq__coll_errors[maq__coll_regime(coll, cluster)][maq__coll_band(coll->bytes)];
    double assumed = group->domain_contention < 0.0 ? ASSUMED_CONTENTION_ERROR * log(pcie_crowd(group, &block)) : 0.0;
    return (float)maq__min(MOST_ERROR, hypot(residual, assumed));
}

struct maq_cost maq_cost_coll(const struct maq_costs *costs, const struct maq_coll *coll,
                              const struct maq_cluster *cluster)
{
    struct maq_cost cost = {.provider = MAQ_PROVIDER_ANALYTICAL};

    if (coll->at.size < 2 || !(coll->bytes > 0.0) || coll->at.group >= cluster->n_groups)
        return cost;
    if (maq_measured_coll(&cost, costs, coll, cluster))
        return cost;
    struct maq_coll_links links = maq__coll_links(coll, cluster);
    uint32_t turns = coll->kind == MAQ_COLL_BROADCAST && coll->flags >> 16 > 1 ? coll->flags >> 16 : 1;
    struct maq_coll one = *coll;
    one.bytes /= (double)turns;
    double s = maq__coll_parts(&one, &links, costs ? costs->library : MAQ_LIBRARY_TRAINING).total_s * (double)turns;
    cost.seconds = s >= 0.0 ? maq__min(s, MAQ_FOREVER_S) : MAQ_FOREVER_S;
    if (links.generation->fitted && !(costs && costs->best == MAQ_PROVIDER_ANALYTICAL))
        cost.provider = MAQ_PROVIDER_FITTED;
    cost.error = error_of(coll, cluster);
    return cost;
}

/*
 * Channels that NCCL opens for large messages inside an NVLink domain: 16 by default from Hopper on, up to 24 and more on request (NCCL
 * documentation, NCCL_MAX_CTAS and NCCL_NVLS_NCHANNELS); DeepSeek-V3 gives its exchange 20 of 132 SMs (arXiv 2412.19437, section 3.2.2).
 */
#define COMM_SMS 16.0

struct maq_interference maq_cost_interference(const struct maq_device *device)
{
    double sms = (double)device->sms;
    struct maq_interference none = {1.0, 1.0};
    if (!(sms > 2.0 * COMM_SMS)) /* unknown, or too small for the rule */
        return none;
    return (struct maq_interference){.compute = sms / (sms - COMM_SMS), .comm = 1.0};
}
