/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dp_interference.c - estimates how much data-parallel communication overlaps with the compute of a program's passes,
 * and charges the loss by the shares of lower/contention.c. See dp_interference.h.
 */
#include "train/step/dp_interference.h"

#include <math.h>

#include "train/step/dp_comm.h"

/* The part of `comm` on the DP stream that overlaps with the compute of a pass, which takes `pass` in all. */
static double hidden(double comm, double compute, double pass)
{
    double under = comm - (pass - compute);
    return under < 0 ? 0 : under > compute ? compute : under;
}

void maq_dp_interference_passes(const struct maq_blueprint *bp, struct maq_program *p, bool reduces)
{
    double share = bp->lower.contention[MAQ_STREAM_DP];
    if (!bp->gather_every_pass && !reduces)
        return;
    bool split = bp->schedule->split_backward;
    enum maq_half half = split ? MAQ_HALF_INPUT : MAQ_HALF_WHOLE;
    double forward = bp->gather_every_pass ? p->gather_ns : 0;
    double backward =
        (maq_half_gathers(bp, half) ? p->again_ns : 0) + (maq_half_reduces(half, reduces) ? p->reduce_ns : 0);
    double weight = split && maq_half_reduces(MAQ_HALF_WEIGHT, reduces) ? p->reduce_ns : 0;
    p->forward_drag_ns = nearbyint(share * hidden(forward, p->plain_forward_ns, p->forward_ns));
    const double copies = reduces ? p->ddp_copies_ns : 0; /* they are compute as well */
    p->backward_drag_ns =
        nearbyint(share * hidden(backward, p->plain_backward_ns + (split ? 0 : copies), p->backward_ns));
    p->weight_drag_ns = nearbyint(share * hidden(weight, p->plain_weight_ns + copies, p->weight_ns));
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
    if (maq_reduces_behind(bp) && bp->job->plan.overlap_grad_reduce == MAQ_ON)
        under += fmin(p->reduce_ns - maq_sync_last_ns(p), backward);
    if (bp->gather_first)
        under += fmin(p->gather_ns - first->gather_ns, p->plain_forward_ns);
    return under;
}

double maq_dp_interference_program_ns(const struct maq_blueprint *bp, const struct maq_program *program)
{
    return nearbyint(bp->lower.contention[MAQ_STREAM_DP] * program_under(bp, program));
}

double maq_dp_interference_step_ns(const struct maq_blueprint *bp, uint32_t stage)
{
    uint16_t at[MAQ_MAX_STAGES];
    uint32_t n = maq_schedule_positions(bp->schedule, stage, at);
    double under = 0;
    for (uint32_t c = 0; c < n; c++)
        under += program_under(bp, bp->programs[at[c]]);
    return nearbyint(bp->lower.contention[MAQ_STREAM_DP] * under);
}
