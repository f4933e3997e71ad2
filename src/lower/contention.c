/* SPDX-License-Identifier: Apache-2.0 */
/*
 * contention.c - compute that overlaps with communication: how much of its time it loses.
 *
 * Communication by kernels holds s of N SMs while it runs, and compute goes on with the rest, N / (N - s) times slower: of
 * an overlap of t seconds compute loses t s/N. The copies are resident first and keep their pace. The loss is a step of its
 * own on the compute stream, at the end of the segment or pass in which it arises, so that the fast path and the graph
 * charge the same; the dynamic engine, which slows each kernel where it overlaps, leaves these steps out.
 *
 *   stream   s
 *   DP, CP   NCCL's channels (maq_cost_interference)
 *   TP       NCCL's; one with tp_comm_overlap: Transformer Engine's ring exchange copies through peer memory and polls
 *            with a single SM (num_sm 1 of its configurations)
 *   EP       what moe_flex_dispatcher_num_sms says, or else the defaults of Megatron-LM core_v0.15, transformer_config.py: 20 for
 *            DeepEP, which is what DeepSeek-V3 reserved (arXiv 2412.19437, section 3.2.2), 16 for HybridEP. NCCL's all-to-all is
 *            near the former
 *   PP       none: send/recv of one microbatch uses a few channels for a short time
 *   COPY     none: copy engines
 */
#include "lower/contention.h"

#define RING_EXCHANGE_SMS 1.0
#define EXPERT_EXCHANGE_SMS 20.0
#define HYBRID_EXCHANGE_SMS 16.0

static double of_sms(const struct maq_device *device, double held)
{
    double n = device->sms;
    return n > 2 * held ? held / n : 0; /* unknown, or too small for the rule */
}

static double expert_exchange_sms(const struct maq_plan *plan)
{
    bool hybrid = plan->dispatcher == MAQ_DISPATCHER_HYBRIDEP,
         flex = hybrid || plan->dispatcher == MAQ_DISPATCHER_DEEPEP;
    return flex && plan->flex_sms > 0 ? plan->flex_sms : hybrid ? HYBRID_EXCHANGE_SMS : EXPERT_EXCHANGE_SMS;
}

void maq_contention_shares(double share[MAQ_STREAM_COUNT], const struct maq_plan *plan, const struct maq_device *device)
{
    double nccl = 1 - 1 / maq_cost_interference(device).compute;
    for (int s = 0; s < MAQ_STREAM_COUNT; s++)
        share[s] = 0;
    share[MAQ_STREAM_DP] = share[MAQ_STREAM_CP] = nccl;
    share[MAQ_STREAM_TP] = plan->overlap_tp == MAQ_ON ? of_sms(device, RING_EXCHANGE_SMS) : nccl;
    share[MAQ_STREAM_EP] = of_sms(device, expert_exchange_sms(plan));
}
