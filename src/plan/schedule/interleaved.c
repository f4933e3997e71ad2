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
 * Source: Narayanan et al., arXiv 2104.04473; Megatron-LM, megatron/core/pipeline_parallel/schedules.py.
 */
#include "plan/schedule/build.h"

const char *maq__refuse_interleaved(char buf[160], const struct maq_shape *shape)
{
    uint32_t p = shape->stages, m = shape->microbatches, g = shape->group;
    if (shape->chunks < 2)
        return maq__refused(buf, "interleaved needs at least 2 model chunks per stage, not %u", shape->chunks);
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

void maq__order_interleaved(struct maq_orders *o, uint32_t stage)
{
    uint32_t p = o->stages, v = o->chunks, total = o->microbatches * v;
    uint32_t warmup = 2 * (p - 1 - stage) + (v - 1) * o->group;
    for (uint32_t k = 0; k < total + warmup; k++) {
        uint32_t mb;
        if (k < total) {
            uint32_t chunk = entry(&mb, o, k);
            maq__order_add(o, MAQ_TASK_F, chunk * p + stage, mb);
        }
        if (k >= warmup) {
            uint32_t chunk = v - 1 - entry(&mb, o, k - warmup);
            maq__order_add(o, MAQ_TASK_B, chunk * p + stage, mb);
        }
    }
}
