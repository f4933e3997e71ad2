/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interleaved.c - interleaved 1F1B as Megatron-LM runs it.
 *
 * A stage holds v model chunks; position c * p + s of the model is chunk c of stage s. Microbatches go through in
 * groups of g (microbatch_group_size_per_vp_stage, by default p): a stage runs chunk 0 for the g microbatches of the
 * group, then chunk 1 for the same, and so on, then turns to the next group. The k-th forward of a stage is the k-th
 * entry of that list; the k-th backward is the k-th entry too, with the chunks counted from the last.
 *
 *   p = 2, v = 2, g = 3, m = 5      k           0 1 2 3 4 5 6 7 8 9
 *                                   microbatch  0 1 2 0 1 2 3 4 3 4
 *                                   chunk       0 0 0 1 1 1 0 0 1 1
 *
 * Stage s warms up with min(2(p-1-s) + (v-1)g, mv) forwards, alternates one forward and one backward, and drains.
 *
 * A group may not be smaller than p, nor the last one that is not full: the stages would wait for each other inside a
 * group. Megatron-LM refuses both, and so does this.
 *
 * With equal chunks (f, b each) and m a multiple of g = p: makespan m v (f+b) + (p-1)(f+b), that is a bubble of
 * (p-1)/(v m) of the ideal time; larger groups and a last group of p or more take the same. In flight: the warm-up
 * plus one, in chunks, and no more than there are.
 *
 * Megatron-LM's combined 1F1B (overlap_moe_expert_parallel_comm; schedules.py, get_pp_rank_microbatches()) runs one forward
 * more before the first backward, then a backward and a forward of another microbatch side by side. That is the same order,
 * F..F F (B F) (B F) for F..F (F B) (F B), and the forward takes memory as the backward gives it back.
 *
 * interleaved-zb splits the backwards: B alone goes up the pipeline, and the W of stage s come s late, as in ZB-H1. Since a
 * backward without its W takes a stage no longer than a forward, stage s warms up with (p-1-s) + (v-1)g forwards. Groups are
 * all of g = m / max(1, floor(m/p)).
 *
 * Source of interleaved-zb: PyTorch 00722e648b74, torch/distributed/pipelining/schedules.py,
 * ScheduleInterleavedZeroBubble.
 *
 * Source: Narayanan et al., arXiv 2104.04473; Megatron-LM, megatron/core/pipeline_parallel/schedules.py.
 */
#include "plan/schedule/build.h"

const char *maq__refuse_interleaved(char buf[160], const struct maq_schedule_spec *spec)
{
    uint32_t p = spec->stages, m = spec->microbatches, g = spec->group;
    if (spec->chunks < 2)
        return maq__refused(buf, "interleaved needs at least 2 model chunks per stage, not %u", spec->chunks);
    if (m < p)
        return maq__refused(buf, "interleaved needs at least as many microbatches as stages: %u, not %u", p, m);
    if (g < p || g > m)
        return maq__refused(
            buf, "interleaved needs a microbatch group of %u (the stages) to %u (all microbatches), not %u", p, m, g);
    if (m % g != 0 && m % g < p)
        return maq__refused(
            buf,
            "%u microbatches in groups of %u leave a last group of %u: interleaved needs none or at least %u (the "
            "stages)",
            m, g, m % g, p);
    return NULL;
}

/* The k-th entry of the list: chunk and microbatch. */
static uint32_t entry(uint32_t *microbatch, const struct maq_orders *o, uint32_t k)
{
    uint32_t block = o->group * o->chunks, start = k / block * o->group, within = k % block;
    uint32_t size = o->microbatches - start < o->group ? o->microbatches - start : o->group;
    *microbatch = start + within % size;
    return within / size;
}

/* Stage s: `warmup` forwards, then a forward and a backward in turn, the W `delay` late where backwards are split. */
static void order(struct maq_orders *o, uint32_t stage, uint32_t warmup, bool split, uint32_t delay)
{
    uint32_t p = o->stages, v = o->chunks, total = o->microbatches * v, mb;
    warmup = warmup < total ? warmup : total;
    for (uint32_t k = 0; k < total + warmup + delay; k++) {
        if (k < total) {
            uint32_t chunk = entry(&mb, o, k);
            maq__order_add(o, MAQ_TASK_F, chunk * p + stage, mb);
        }
        if (k >= warmup && k - warmup < total) {
            uint32_t chunk = v - 1 - entry(&mb, o, k - warmup);
            if (split)
                maq__order_add_split(o, chunk * p + stage, mb);
            else
                maq__order_add(o, MAQ_TASK_B, chunk * p + stage, mb);
        }
        if (split && k >= warmup + delay) {
            uint32_t chunk = v - 1 - entry(&mb, o, k - warmup - delay);
            maq__order_add(o, MAQ_TASK_W, chunk * p + stage, mb);
        }
    }
}

void maq__order_interleaved(struct maq_orders *o, uint32_t stage)
{
    order(o, stage, 2 * (o->stages - 1 - stage) + (o->chunks - 1) * o->group, false, 0);
}

uint32_t maq__interleaved_zb_group(uint32_t stages, uint32_t microbatches)
{
    uint32_t rounds = microbatches / stages;
    return rounds > 1 ? microbatches / rounds : microbatches;
}

const char *maq__refuse_interleaved_zb(char buf[160], const struct maq_schedule_spec *spec)
{
    uint32_t p = spec->stages, m = spec->microbatches, rounds = m / p;
    if (spec->chunks < 2)
        return maq__refused(buf, "interleaved-zb needs at least 2 model chunks per stage, not %u", spec->chunks);
    if (rounds > 1 && m % rounds != 0)
        return maq__refused(
            buf, "interleaved-zb deals %u microbatches to %u rounds (one per %u stages), and they do not go evenly", m,
            rounds, p);
    return NULL;
}

void maq__order_interleaved_zb(struct maq_orders *o, uint32_t stage)
{
    order(o, stage, o->stages - 1 - stage + (o->chunks - 1) * o->group, true, stage);
}
