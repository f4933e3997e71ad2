/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 1f1b.c - GPipe and 1F1B: one model chunk per stage, whole backwards.
 *
 * GPipe (Huang et al., arXiv 1811.06965): every stage runs all its forwards, then all its backwards, both in
 * the order of the microbatches.
 *
 *   stage 0  F0 F1 F2 F3 .  .  .  .  B0 B1 B2 B3
 *   stage 1  .  F0 F1 F2 F3 .  .  B0 B1 B2 B3 .
 *
 * 1F1B (PipeDream-Flush; Narayanan et al., arXiv 2006.09503 and 2104.04473, and Megatron-LM's schedule without
 * interleaving): stage s of p runs min(p-1-s, m) forwards to warm up, then alternates one forward and one backward,
 * then drains the backwards that are left.
 *
 * With equal stages (F, B per microbatch) and free transfers both take (m + p - 1)(F + B); the bubble is (p-1)(F+B).
 * What differs is memory: m microbatches in flight on every GPipe stage, min(p - s, m) on stage s of 1F1B.
 */
#include "plan/schedule/build.h"

const char *maq__refuse_gpipe(char buf[160], const struct maq_schedule_spec *spec)
{
    if (spec->microbatches <= UINT16_MAX)
        return NULL;
    return maq__refused(buf, "gpipe holds the activations of all microbatches at once; %u are over its limit of 65535",
                        spec->microbatches);
}

void maq__order_gpipe(struct maq_orders *o, uint32_t stage)
{
    for (uint32_t i = 0; i < o->microbatches; i++)
        maq__order_add(o, MAQ_TASK_F, stage, i);
    for (uint32_t i = 0; i < o->microbatches; i++)
        maq__order_add(o, MAQ_TASK_B, stage, i);
}

void maq__order_1f1b(struct maq_orders *o, uint32_t stage)
{
    uint32_t m = o->microbatches, warmup = o->stages - 1 - stage;
    if (warmup > m)
        warmup = m;
    for (uint32_t i = 0; i < warmup; i++)
        maq__order_add(o, MAQ_TASK_F, stage, i);
    for (uint32_t i = 0; i < m; i++) {
        if (warmup + i < m)
            maq__order_add(o, MAQ_TASK_F, stage, warmup + i);
        maq__order_add(o, MAQ_TASK_B, stage, i);
    }
}
