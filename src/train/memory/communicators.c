/* SPDX-License-Identifier: Apache-2.0 */
/*
 * communicators.c - device memory of one rank's communicators: what NCCL holds, and HybridEP's buffers.
 *
 * A communicator has channels; on each, the rank is in a ring and in a tree that runs up and down: three connections, whose buffers
 * are in the receiver's memory. Across the network the sender has one too. A buffer serves the three protocols (NCCL src/init.cc,
 * default sizes: LL 8 lines x 512 threads x 8 steps x 16 B, LL128 120 elements x 640 threads x 8 steps x 8 B, Simple NCCL_BUFFSIZE
 * 4 MiB):
 *
 *   0.5 MiB + 4.69 MiB + 4 MiB = 9.19 MiB
 *
 * Every process group that communicates is one communicator: those of the plan, the one over all pipeline stages and
 * tensor ranks that norms and overflow are reduced on, and the default group of the whole job.
 *
 * HybridEP's peers write rows of 16-bit numbers into a rank's buffer, which holds all tokens of all ranks of the group, and for
 * their probabilities of the domain's experts in 4 bytes (DeepEP's branch hybrid-ep, max_num_of_tokens; what is dispatched and what
 * is combined share it).
 */
#include "train/memory/stage_memory.h"

#define MIB (1024.0 * 1024.0)
#define LL_BYTES (8.0 * 512 * 8 * 16)
#define LL128_BYTES (120.0 * 640 * 8 * 8)
#define SIMPLE_BYTES (4 * MIB)
#define CONNECTIONS 3
#define CHANNELS_DOMAIN 16
#define CHANNELS_NETWORK 8

static double group_bytes(uint32_t size, bool network)
{
    if (size <= 1)
        return 0;
    const double channels[] = {CHANNELS_DOMAIN, CHANNELS_NETWORK}, ends[] = {1, 2};
    return CONNECTIONS * channels[network] * ends[network] * (LL_BYTES + LL128_BYTES + SIMPLE_BYTES);
}

static double placed_bytes(const struct maq_job *job, enum maq_group_kind kind)
{
    return group_bytes(job->groups[kind].size, job->groups[kind].domains > 1);
}

static double hybrid_bytes(const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    const struct maq_module *m = maq_model_find_module(&job->model, MAQ_MODULE_DISPATCH, MAQ_PART_COUNT);
    if (!m || p->dispatcher != MAQ_DISPATCHER_HYBRIDEP || p->ep == 1)
        return 0;
    double tokens =
        (double)p->mbs * (double)job->workload.seq / (p->sequence_parallel == MAQ_ON ? p->cp * p->tp : p->cp);
    double row = 2.0 * (double)m->in + 4.0 * m->u.moe.experts / job->groups[MAQ_GROUP_EP].domains;
    return tokens * p->ep * row;
}

double maq_communicator_bytes(const struct maq_job *job)
{
    static const enum maq_group_kind held[] = {MAQ_GROUP_TP, MAQ_GROUP_CP, MAQ_GROUP_SHARD, MAQ_GROUP_REPLICA,
                                               MAQ_GROUP_PP};
    double sum = 0;
    bool network = false; /* some group leaves its domain, so the whole job does */
    for (size_t i = 0; i < sizeof held / sizeof held[0]; i++) {
        sum += placed_bytes(job, held[i]);
        network = network || job->groups[held[i]].domains > 1;
    }
    if (job->plan.ep > 1)
        sum += placed_bytes(job, MAQ_GROUP_EP) + placed_bytes(job, MAQ_GROUP_EDP);
    if (job->plan.tp > 1 && job->plan.pp > 1)
        sum += group_bytes((uint32_t)job->plan.tp * (uint32_t)job->plan.pp, network);
    return sum + group_bytes(job->cluster.devices, network) + hybrid_bytes(job);
}
