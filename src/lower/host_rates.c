/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_rates.c - host time per operator that a framework issues, on the CPU of a device's node.
 *
 * A framework profile has the times of one thread of a reference CPU (data/frameworks); another CPU is faster or slower by its
 * single-thread speed (cluster/host_cpu.c).
 */
#include "lower/lower.h"

struct maq_host_rates maq_host_rates_of(const struct maq_job *job, const struct maq_device *device)
{
    const struct maq_host_costs *c = &job->framework.host;
    double ns = 1e9 / maq_device_host_speed(device);
    if (job->plan.cuda_graphs)
        return (struct maq_host_rates){0};
    return (struct maq_host_rates){.forward_ns = c->forward_s * ns,
                                   .backward_ns = c->backward_s * ns,
                                   .kernel_ns = c->kernel_s * ns,
                                   .expert_ns = c->expert_s * ns,
                                   .collective_ns = c->collective_s * ns,
                                   .skew_ns = c->skew_s * ns,
                                   .checkpoint_ns = c->checkpoint_s * ns,
                                   .read_ns = c->read_s * ns,
                                   .p2p_ns = c->p2p_s * ns,
                                   .pass_ns = c->pass_s * ns};
}
