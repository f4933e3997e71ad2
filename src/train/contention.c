/*
 * contention.c - compute beside communication.
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
#include "train/contention.h"

#include <math.h>

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

/* Of `comm` on the DP stream during a pass of so much compute, which takes `pass` together: the part under compute. */
static double hidden(double comm, double compute, double pass)
{
    double under = comm - (pass - compute);
    return under < 0 ? 0 : under > compute ? compute : under;
}

void maq_contention_passes(const struct maq_blueprint *bp, struct maq_program *p)
{
    double share = bp->lower.contention[MAQ_STREAM_DP];
    if (!bp->gather_every_pass && !bp->sync_every_pass)
        return;
    bool split = bp->schedule->split_backward;
    enum maq_half half = split ? MAQ_HALF_INPUT : MAQ_HALF_WHOLE;
    double forward = bp->gather_every_pass ? p->gather_ns : 0;
    double backward = (maq_half_gathers(bp, half) ? p->gather_ns : 0) + (maq_half_reduces(bp, half) ? p->reduce_ns : 0);
    double weight = split && maq_half_reduces(bp, MAQ_HALF_WEIGHT) ? p->reduce_ns : 0;
    p->forward_drag_ns = nearbyint(share * hidden(forward, p->plain_forward_ns, p->forward_ns));
    p->backward_drag_ns = nearbyint(share * hidden(backward, p->plain_backward_ns, p->backward_ns));
    p->weight_drag_ns = nearbyint(share * hidden(weight, p->plain_weight_ns, p->weight_ns));
}

/*
 * Reductions of all buckets but the last to be ready run under the backward passes that complete gradients, gathers of all
 * but the first under the first forward passes.
 */
static double program_under(const struct maq_blueprint *bp, const struct maq_program *p)
{
    double under = 0;
    if (p->n_buckets == 0)
        return 0;
    const struct maq_bucket_sync *first = &p->buckets[0];
    double backward = p->plain_backward_ns + p->plain_weight_ns;
    if (!bp->sync_every_pass && bp->job->plan.overlap_grad_reduce == MAQ_ON)
        under += fmin(p->reduce_ns - first->reduce_ns, backward);
    if (bp->gather_first)
        under += fmin(p->gather_ns - first->gather_ns, p->plain_forward_ns);
    return under;
}

double maq_contention_program_ns(const struct maq_blueprint *bp, const struct maq_program *program)
{
    return nearbyint(bp->lower.contention[MAQ_STREAM_DP] * program_under(bp, program));
}

double maq_contention_step_ns(const struct maq_blueprint *bp, uint32_t stage)
{
    uint16_t at[MAQ_MAX_STAGES];
    uint32_t n = maq_blueprint_positions(bp, stage, at);
    double under = 0;
    for (uint32_t c = 0; c < n; c++)
        under += program_under(bp, bp->programs[at[c]]);
    return nearbyint(bp->lower.contention[MAQ_STREAM_DP] * under);
}
