/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dualpipe.c - DualPipe and DualPipeV: a forward of one microbatch overlaps a backward of another.
 *
 * DualPipe: two copies of the model on p devices (p even), one from device 0 to p-1, the other back; m/2
 * microbatches are fed in at each end. DualPipeV: the half of it that is left when the mirror image is folded
 * onto it: one copy on p devices, each with the chunks s and 2p-1-s of a V.
 *
 * A device has two lanes: lane 0 is the one whose input is nearer (DualPipe: the direction that starts in its half of
 * the pipeline; DualPipeV: chunk 0), lane 1 the other. With H = p/2 and h = min(s, p-1-s) (DualPipe; n = m/2
 * microbatches per lane), or H = p and h = s (DualPipeV; n = m), the eight phases of a device are
 *
 *   1  F0                  x 2(H-h-1)
 *   2  F0 F1               x h+1
 *   3  B1* W F1            x H-h-1
 *   4  (F0&B1) (F1&B0)     x n - 2H + h+1        the first pair of the middle device (h = H-1) runs as F0, B1 apart
 *   5  B1 (F1&B0)          x H-h-1
 *   6  B1 B0               x h+1                 the last h+1 of these 2(h+1) backwards are B*
 *   7  W B0*               x H-h-1
 *   8  W                   x h+1
 *
 * where B is a whole backward, B* only the gradient of the input, and W the oldest weight gradient left over.
 *
 * The bubble that DeepSeek states, (H-1)(F&B + B - 3W) with B whole, is exactly the idle time of the middle
 * devices when stages are equal, transfers free and the gradient of the input takes as long as F and W no
 * longer. (Otherwise it is close: F = 10, input 12, W = 8, no gain from overlap, H = 4 gives 72, not 78.) The
 * outer devices have fewer pairs, so when a pair is faster than its halves they work longer and idle less.
 *
 * A device holds at most 2H+1 microbatch chunks at once: p+1 (DualPipe), 2p+1 (DualPipeV). That is the 2H chunks that
 * fill the pipeline and one more, because a pair makes one set of activations while it uses up another.
 *
 * Source: DeepSeek-V3, arXiv 2412.19437, section 3.2.1; github.com/deepseek-ai/DualPipe, dualpipe.py and
 * dualpipev.py. "Cut in half" is by Sea AI Lab (Qi et al.).
 */
#include "base/check.h"
#include "plan/schedule/build.h"

const char *maq__refuse_dualpipe(char buf[160], const struct maq_schedule_spec *spec)
{
    uint32_t p = spec->stages, m = spec->microbatches;
    if (p % 2 != 0)
        return maq__refused(buf, "dualpipe needs an even number of stages, not %u", p);
    if (m % 2 != 0)
        return maq__refused(buf, "dualpipe needs an even number of microbatches, not %u", m);
    if (m < 2 * p)
        return maq__refused(buf, "dualpipe needs at least %u microbatches (2 x %u stages), not %u", 2 * p, p, m);
    return NULL;
}

const char *maq__refuse_dualpipe_v(char buf[160], const struct maq_schedule_spec *spec)
{
    uint32_t p = spec->stages, m = spec->microbatches;
    if (m >= 2 * p)
        return NULL;
    return maq__refused(buf, "dualpipe-v needs at least %u microbatches (2 x %u stages), not %u", 2 * p, p, m);
}

/* A device: where its two lanes are, how far each is, and the weight gradients left over (first in, first out). */
struct device {
    struct maq_orders *o;
    uint32_t position[2], base[2]; /* base: number of the lane's first microbatch */
    uint32_t f[2], b[2];
    uint32_t late[2 * MAQ_MAX_STAGES], n_late, n_w; /* lane of each B*, in order; W run */
    uint32_t late_mb[2 * MAQ_MAX_STAGES];
};

static void forward(struct device *d, uint32_t lane)
{
    maq__order_add(d->o, MAQ_TASK_F, d->position[lane], d->base[lane] + d->f[lane]++);
}

static void backward(struct device *d, uint32_t lane, bool split)
{
    uint32_t mb = d->base[lane] + d->b[lane]++;
    if (!split) {
        maq__order_add(d->o, MAQ_TASK_B, d->position[lane], mb);
        return;
    }
    maq__order_add_split(d->o, d->position[lane], mb);
    MAQ_ASSERT(d->n_late < 2 * MAQ_MAX_STAGES);
    d->late[d->n_late] = lane;
    d->late_mb[d->n_late++] = mb;
}

static void pair(struct device *d, uint32_t f_lane, uint32_t b_lane)
{
    maq__order_add_pair(d->o, d->position[f_lane], d->base[f_lane] + d->f[f_lane]++, d->position[b_lane],
                        d->base[b_lane] + d->b[b_lane]++);
}

static void weight(struct device *d)
{
    MAQ_ASSERT(d->n_w < d->n_late);
    maq__order_add(d->o, MAQ_TASK_W, d->position[d->late[d->n_w]], d->late_mb[d->n_w]);
    d->n_w++;
}

static void fill(struct device *d, uint32_t H, uint32_t h)
{
    for (uint32_t i = 0; i < 2 * (H - h - 1); i++)
        forward(d, 0);
    for (uint32_t i = 0; i < h + 1; i++) {
        forward(d, 0);
        forward(d, 1);
    }
    for (uint32_t i = 0; i < H - h - 1; i++) {
        backward(d, 1, true);
        weight(d);
        forward(d, 1);
    }
}

static void steady(struct device *d, uint32_t H, uint32_t h, uint32_t n)
{
    for (uint32_t i = 0; i < n + h + 1 - 2 * H; i++) {
        if (i == 0 && h == H - 1) {
            forward(d, 0);
            backward(d, 1, false);
        } else {
            pair(d, 0, 1);
        }
        pair(d, 1, 0);
    }
}

static void drain(struct device *d, uint32_t H, uint32_t h)
{
    for (uint32_t i = 0; i < H - h - 1; i++) {
        backward(d, 1, false);
        pair(d, 1, 0);
    }
    for (uint32_t k = 0; k < 2 * (h + 1); k++)
        backward(d, k % 2 == 0, k >= h + 1);
    for (uint32_t i = 0; i < H - h - 1; i++) {
        weight(d);
        backward(d, 0, true);
    }
    for (uint32_t i = 0; i < h + 1; i++)
        weight(d);
    MAQ_ASSERT(d->n_w == d->n_late);
}

void maq__order_dualpipe(struct maq_orders *o, uint32_t stage)
{
    uint32_t p = o->stages, far = stage >= p / 2, h = far ? p - 1 - stage : stage, n = o->microbatches / 2;
    struct device d = {.o = o};
    for (uint32_t lane = 0; lane < 2; lane++) {
        uint32_t direction = lane ^ far;
        d.position[lane] = direction ? p - 1 - stage : stage;
        d.base[lane] = direction ? n : 0;
    }
    fill(&d, p / 2, h);
    steady(&d, p / 2, h, n);
    drain(&d, p / 2, h);
}

void maq__order_dualpipe_v(struct maq_orders *o, uint32_t stage)
{
    uint32_t p = o->stages;
    struct device d = {.o = o, .position = {stage, 2 * p - 1 - stage}};
    fill(&d, p, stage);
    steady(&d, p, stage, o->microbatches);
    drain(&d, p, stage);
}
