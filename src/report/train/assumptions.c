/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assumptions.c - the host's thread where the step waits for it, and how GPUs without a link of their own share PCIe. See assumptions.h.
 *
 * A measured way to share PCIe is that of the machine it was measured on: the exponent of one board is not another's, and of
 * the same board on another main board it is a guess.
 */
#include "report/train/assumptions.h"

#include "base/text.h"

#define HOST_MATTERS 0.01 /* of the step */
#define PCIE_MATTERS 0.05 /* exposed communication, of the step */

static size_t host(char text[MAQ_ASSUMPTION_SIZE], const struct maq_train_result *r)
{
    const struct maq_cluster *cluster = &r->job->cluster;
    const struct maq_device *d = &cluster->groups[0].device;
    if (r->bucket_s[MAQ_BUCKET_HOST] < HOST_MATTERS * r->step_s)
        return 0;
    for (uint32_t g = 1; g < cluster->n_groups; g++)
        if (maq_device_host_speed(&cluster->groups[g].device) < maq_device_host_speed(d))
            d = &cluster->groups[g].device;
    maq__snprintf(text, MAQ_ASSUMPTION_SIZE, "host: one thread of %s at %.4g GHz (host_cpu, host_clock of the cluster)",
                  maq_host_cpu_name((enum maq_host_cpu)d->host_cpu), d->host_clock_hz * 1e-9);
    return 1;
}

/* Devices of a node that send over its PCIe at once; two have it for themselves. */
static int32_t senders(const struct maq_node_group *group)
{
    int32_t domains = group->devices_per_node / group->domain_devices; /* 0: a domain spans nodes */
    return domains > 1 ? domains : maq_node_group_domain_is_pcie(group) ? group->domain_devices : 0;
}

/* The catalogue's own figure, of the machine that its source names: not one that the cluster gives. */
static bool of_one_machine(const struct maq_node_group *group)
{
    double own = group->device.domain_contention;
    return own > 0 && group->domain_contention >= own && group->domain_contention <= own;
}

static double exposed_s(const struct maq_train_result *r)
{
    return r->bucket_s[MAQ_BUCKET_TP] + r->bucket_s[MAQ_BUCKET_CP] + r->bucket_s[MAQ_BUCKET_EP] +
           r->bucket_s[MAQ_BUCKET_PP] + r->bucket_s[MAQ_BUCKET_DP];
}

static size_t pcie(char text[MAQ_ASSUMPTION_SIZE], const struct maq_train_result *r)
{
    const struct maq_cluster *cluster = &r->job->cluster;
    if (exposed_s(r) < PCIE_MATTERS * r->step_s)
        return 0;
    for (uint32_t g = 0; g < cluster->n_groups; g++) {
        const struct maq_node_group *group = &cluster->groups[g];
        if (senders(group) <= 2 || (group->domain_contention >= 0 && !of_one_machine(group)))
            continue;
        maq__snprintf(
            text, MAQ_ASSUMPTION_SIZE,
            group->domain_contention < 0
                ? "PCIe: how %s share it was not measured (domain_contention of the cluster)"
                : "PCIe: how %s share it was measured on one machine, and yours may differ (domain_contention of the "
                  "cluster)",
            group->device.name);
        return 1;
    }
    return 0;
}

size_t maq_train_assumptions(char text[MAQ_ASSUMPTIONS][MAQ_ASSUMPTION_SIZE], const struct maq_train_result *r)
{
    size_t n = host(text[0], r);
    return n + pcie(text[n], r);
}
