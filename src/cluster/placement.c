/* SPDX-License-Identifier: Apache-2.0 */
/*
 * placement.c - how a process group lies on the nodes, and which links that gives it.
 *
 * The ranks of a group are an arithmetic progression, first + i * stride. Inside one node group, nodes and
 * scale-up domains are blocks of equal size B over the local ranks, so the question is how many blocks a
 * progression touches and how full the fullest one is:
 *
 *   stride >= B   every member is in a block of its own
 *   stride <  B   no block between the first and the last is skipped; a block whose first member stands phi behind its
 *                 start holds floor((B - 1 - phi) / stride) + 1 members, and phi runs through a cycle of at most stride
 *                 values, so the fullest block is found in min(blocks, stride) steps, and at once when stride divides B
 *
 * A cluster of several node groups cuts the progression at their borders; each part is a progression again.
 *
 * A planner calls this hundreds of thousands of times a second: no memory, no walk over members.
 */
#include "maquette/cluster.h"

#include <math.h>

#include "base/check.h"

/*
 * One message over PCIe between two devices of a node that share no scale-up link. NCCL's tuning model
 * (src/graph/tuning.cc, hwLat, PCI, ring, LL protocol) counts 1.0 us a step; tree steps are the same.
 */
#define HOST_LATENCY_S 1.0e-6

/* Members first, first + stride, ..., n of them, counted from the first rank of their node group. */
struct run {
    uint32_t first, stride, n;
};

struct blocks {
    uint32_t count, fullest;
};

static uint32_t members_behind(uint32_t phase, uint32_t block, uint32_t stride)
{
    return (block - 1 - phase) / stride + 1;
}

static struct blocks count_blocks(struct run r, uint32_t block)
{
    if (r.n == 1 || r.stride >= block)
        return (struct blocks){r.n, 1};
    uint32_t head_phase = r.first % block;
    uint32_t head = members_behind(head_phase, block, r.stride);
    if (head >= r.n)
        return (struct blocks){1, r.n};
    uint64_t last = (uint64_t)r.first + (uint64_t)(r.n - 1) * r.stride;
    struct blocks b = {(uint32_t)(last / block) - r.first / block + 1, head};
    uint32_t left = r.n - head, most = (block - 1) / r.stride + 1;
    uint32_t phase = head_phase + head * r.stride - block; /* of the first member in the next block */
    for (uint32_t steps = 0; steps < r.stride && left > 0 && b.fullest < most; steps++) {
        uint32_t here = members_behind(phase, block, r.stride);
        if (here > left)
            here = left;
        if (here > b.fullest)
            b.fullest = here;
        left -= here;
        phase = phase + here * r.stride - block;
    }
    return b;
}

/* Whether all members stand in the same place of their nodes, a place being a scale-up domain smaller than the node. */
static bool same_place(struct run r, uint32_t per_node, uint32_t domain, uint32_t *place)
{
    uint32_t p = r.first % per_node / domain;
    *place = p;
    if (r.n == 1 || r.stride % per_node == 0)
        return true;
    uint32_t step = r.stride % per_node, at = r.first % per_node;
    for (uint32_t i = 1; i < r.n && i < per_node; i++) { /* a cycle of at most per_node members */
        at += step;
        if (at >= per_node)
            at -= per_node;
        if (at / domain != p)
            return false;
    }
    return true;
}

/* What the parts of a group in the node groups it touches add up to. */
struct tally {
    struct maq_placement at;
    uint32_t nodes, first_node, last_node;
    uint32_t slow_domain, slow_host, slow_network; /* index of the slowest node group on each level */
    uint32_t place;
    bool rails, places_differ;
    uint64_t touched[4]; /* bit set of node groups, where there are links between them */
};

static void tally_part(struct tally *t, const struct maq_cluster *c, uint32_t g, struct run r, uint32_t nodes_before)
{
    const struct maq_node_group *group = &c->groups[g], *slow;
    uint32_t per_node = (uint32_t)group->devices_per_node, domain = (uint32_t)group->domain_devices;
    struct blocks domains = count_blocks(r, domain);
    struct blocks nodes = domain == per_node ? domains : count_blocks(r, per_node);
    bool first = t->nodes == 0;

    if (c->n_links > 0)
        t->touched[g / 64 % 4] |= UINT64_C(1) << g % 64;
    t->at.domains += domains.count;
    if (domains.fullest > t->at.per_domain)
        t->at.per_domain = domains.fullest;
    if (nodes.fullest > t->at.per_node)
        t->at.per_node = nodes.fullest;
    slow = &c->groups[t->slow_domain];
    if (first || group->domain_bps < slow->domain_bps)
        t->slow_domain = g;
    slow = &c->groups[t->slow_host];
    if (first || group->device.host_bps < slow->device.host_bps)
        t->slow_host = g;
    slow = &c->groups[t->slow_network];
    if (first || maq_node_group_network_bps(group) < maq_node_group_network_bps(slow))
        t->slow_network = g;
    t->nodes += nodes.count;
    if (c->nodes_per_switch == 0)
        return;
    uint32_t node = nodes_before + r.first / per_node;
    if (first)
        t->first_node = node;
    t->last_node = nodes_before + (uint32_t)(((uint64_t)r.first + (uint64_t)(r.n - 1) * r.stride) / per_node);
    uint32_t place = 0;
    t->rails |= group->rail_optimized;
    if (domain < per_node && !same_place(r, per_node, domain, &place))
        t->places_differ = true;
    if (!first && place != t->place)
        t->places_differ = true;
    t->place = place;
}

static bool touches(const struct tally *t, uint32_t g)
{
    return t->touched[g / 64 % 4] >> g % 64 & 1;
}

/* What a device gets through a link when `active` devices of its node send; HUGE where the link does not say. */
static double link_bps(const struct maq_group_link *l, double active)
{
    double share = l->bps > 0 ? l->bps / active : HUGE_VAL;
    return l->flow_bps > 0 && l->flow_bps < share ? l->flow_bps : share;
}

static uint8_t slowest_link(const struct tally *t, const struct maq_cluster *c)
{
    uint32_t slowest = 0;
    for (uint32_t i = 0; i < c->n_links; i++)
        if (touches(t, c->links[i].a) && touches(t, c->links[i].b) &&
            (slowest == 0 || link_bps(&c->links[i], 1) < link_bps(&c->links[slowest - 1], 1)))
            slowest = i + 1;
    return (uint8_t)slowest;
}

static struct maq_placement conclude(const struct tally *t, const struct maq_cluster *c, uint32_t size)
{
    struct maq_placement at = t->at;
    at.size = size;
    if (at.domains == 1) {
        at.group = (uint16_t)t->slow_domain;
    } else if (t->nodes == 1) {
        at.group = (uint16_t)t->slow_host;
    } else {
        at.group = (uint16_t)t->slow_network;
        at.link = slowest_link(t, c);
        if (c->nodes_per_switch > 0) {
            uint32_t leaf = (uint32_t)c->nodes_per_switch;
            at.crosses_switch = t->first_node / leaf != t->last_node / leaf || (t->rails && t->places_differ);
        }
    }
    return at;
}

static uint32_t group_devices(const struct maq_node_group *group)
{
    return (uint32_t)group->nodes * (uint32_t)group->devices_per_node;
}

struct maq_placement maq_cluster_place(const struct maq_cluster *cluster, uint32_t first, uint32_t size,
                                       uint32_t stride)
{
    MAQ_ASSERT(size >= 1 && first < cluster->devices);
    MAQ_ASSERT(size == 1 || (stride >= 1 && (uint64_t)first + (uint64_t)(size - 1) * stride < cluster->devices));
    struct tally t = {0};
    if (size == 1)
        stride = 1;
    uint32_t rank = first, left = size, nodes_before = 0;
    for (uint32_t g = 0; g < cluster->n_groups && left > 0; g++) {
        const struct maq_node_group *group = &cluster->groups[g];
        uint32_t end = group->first_rank + group_devices(group);
        if (rank < end) {
            uint32_t fit = (end - 1 - rank) / stride + 1;
            uint32_t n = fit < left ? fit : left;
            tally_part(&t, cluster, g, (struct run){rank - group->first_rank, stride, n}, nodes_before);
            left -= n;
            if (left > 0)
                rank += n * stride;
        }
        nodes_before += (uint32_t)group->nodes;
    }
    return conclude(&t, cluster, size);
}

const struct maq_node_group *maq_cluster_group_of(const struct maq_cluster *cluster, uint32_t rank)
{
    MAQ_ASSERT(rank < cluster->devices);
    uint32_t lo = 0, hi = cluster->n_groups;
    while (hi - lo > 1) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (cluster->groups[mid].first_rank <= rank)
            lo = mid;
        else
            hi = mid;
    }
    return &cluster->groups[lo];
}

/* What a device can send towards ports, whatever these add up to: its own PCIe link. */
static double to_ports_bps(const struct maq_device *device)
{
    double bps = device->pcie_bps > 0 ? device->pcie_bps : device->host_bps;
    return bps > 0 ? bps : HUGE_VAL;
}

double maq_node_group_network_bps(const struct maq_node_group *group)
{
    double ports = group->fabric.nic_bps * group->fabric.efficiency * group->nics_per_node / group->devices_per_node;
    return fmin(ports, to_ports_bps(&group->device));
}

#define PCIE_MOST_BPS 128e9 /* 16 lanes of PCIe 6.0 have 121 GB/s */

bool maq_node_group_domain_is_pcie(const struct maq_node_group *group)
{
    return group->domain_bps <= group->device.host_bps && group->domain_bps < PCIE_MOST_BPS;
}

struct maq_links maq_cluster_links(const struct maq_cluster *cluster, const struct maq_placement *at, uint32_t sharers)
{
    MAQ_ASSERT(at->group < cluster->n_groups);
    const struct maq_node_group *group = &cluster->groups[at->group];
    struct maq_links links = {.near = {group->domain_bps, group->domain_latency_s}};
    if (at->per_node > at->per_domain)
        links.host = (struct maq_link){group->device.host_bps, HOST_LATENCY_S};
    if (at->domains == 1 || at->per_node == at->size)
        return links;
    double port = group->fabric.nic_bps * group->fabric.efficiency;
    double nics = group->nics_per_node, per_node = group->devices_per_node;
    double active = (double)at->per_node * (sharers > 0 ? sharers : 1);
    if (active > per_node)
        active = per_node;
    double own = nics > per_node ? port * nics / per_node : port;
    double share = port * nics / active;
    links.far.bps = share < own ? share : own;
    links.far.latency_s = group->fabric.latency_s;
    if (at->link > 0 && at->link <= cluster->n_links) {
        const struct maq_group_link *between = &cluster->links[at->link - 1];
        double most = link_bps(between, active);
        links.far.bps = most < links.far.bps ? most : links.far.bps;
        if (between->latency_s > links.far.latency_s)
            links.far.latency_s = between->latency_s;
    }
    if (at->crosses_switch)
        links.far.bps /= cluster->oversubscription;
    links.far.bps = fmin(links.far.bps, to_ports_bps(&group->device));
    return links;
}
