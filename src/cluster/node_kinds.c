/* SPDX-License-Identifier: Apache-2.0 */
/* node_kinds.c - whether the node groups of a cluster are one kind of node: by every figure that a prediction reads; and their price. */
#include <stddef.h>
#include <string.h>

#include "base/check.h"
#include "maquette/cluster.h"

#define OF(type, member) offsetof(struct type, member)

static const size_t device_reals[] = {
    OF(maq_device, vector_flops),   OF(maq_device, mem_bytes),
    OF(maq_device, mem_bps),        OF(maq_device, l2_bytes),
    OF(maq_device, l2_bps),         OF(maq_device, clock_hz),
    OF(maq_device, tdp_w),          OF(maq_device, launch_s),
    OF(maq_device, domain_bps),     OF(maq_device, domain_latency_s),
    OF(maq_device, host_bps),       OF(maq_device, pcie_bps),
    OF(maq_device, host_copy_bps),  OF(maq_device, host_stream_bps),
    OF(maq_device, host_clock_hz),  OF(maq_device, domain_contention),
    OF(maq_device, usd_per_hour),   OF(maq_device, nvme_read_bps),
    OF(maq_device, nvme_write_bps),
};
static const size_t group_reals[] = {
    OF(maq_node_group, domain_bps),     OF(maq_node_group, domain_latency_s), OF(maq_node_group, domain_contention),
    OF(maq_node_group, fabric.nic_bps), OF(maq_node_group, fabric.latency_s), OF(maq_node_group, fabric.efficiency),
};

static bool same_reals(const void *a, const void *b, const size_t *at, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double x, y;
        memcpy(&x, (const char *)a + at[i], sizeof x);
        memcpy(&y, (const char *)b + at[i], sizeof y);
        if (x < y || x > y)
            return false;
    }
    return true;
}

/* Names count: tables of kernels are found by them. */
static bool same_device(const struct maq_device *a, const struct maq_device *b)
{
    bool same = strcmp(a->name, b->name) == 0 && a->arch == b->arch && a->sms == b->sms &&
                a->exponentials == b->exponentials && a->inline_ecc == b->inline_ecc && a->host_cpu == b->host_cpu &&
                a->domain_devices == b->domain_devices && a->domain_multicast == b->domain_multicast;
    for (int t = 0; same && t < MAQ_DTYPE_COUNT; t++)
        same = !(a->peak_flops[t] < b->peak_flops[t]) && !(a->peak_flops[t] > b->peak_flops[t]) &&
               !(a->sustained_flops[t] < b->sustained_flops[t]) && !(a->sustained_flops[t] > b->sustained_flops[t]);
    return same && same_reals(a, b, device_reals, MAQ_COUNT(device_reals));
}

static bool same_node(const struct maq_node_group *a, const struct maq_node_group *b)
{
    return same_device(&a->device, &b->device) && a->devices_per_node == b->devices_per_node &&
           a->domain_devices == b->domain_devices && a->domain_multicast == b->domain_multicast &&
           a->nics_per_node == b->nics_per_node && a->rail_optimized == b->rail_optimized &&
           a->fabric.transport == b->fabric.transport &&
           a->fabric.in_network_reduction == b->fabric.in_network_reduction &&
           same_reals(a, b, group_reals, MAQ_COUNT(group_reals));
}

bool maq_cluster_one_kind(const struct maq_cluster *cluster)
{
    bool one = cluster->n_links == 0;
    for (uint32_t g = 1; g < cluster->n_groups; g++)
        one = one && same_node(&cluster->groups[0], &cluster->groups[g]);
    return one;
}

double maq_cluster_usd_per_hour(const struct maq_cluster *c)
{
    double sum = 0;
    for (uint32_t g = 0; g < c->n_groups; g++) {
        const struct maq_node_group *group = &c->groups[g];
        if (group->device.usd_per_hour <= 0)
            return 0;
        sum += group->device.usd_per_hour * (double)group->nodes * group->devices_per_node;
    }
    return sum;
}
