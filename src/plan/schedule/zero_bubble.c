/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zero_bubble.c - zero bubble schedules: the backward is split into the gradient of the input (B), which other stages
 * wait for, and the gradient of the weights (W), which no stage waits for and which therefore fills the gaps.
 *
 * Source: Qi, Wan, Huang, Lin, "Zero Bubble Pipeline Parallelism", arXiv 2401.10241.
 *
 * ZB-H1 is 1F1B in which stage s runs W s backwards late: F(w+i) B(i) W(i-s), and the last s W at the end.
 * The last stage thus returns its first gradients without any W between them. Every stage holds min(p, m)
 * microbatches, as much as stage 0 of 1F1B. With equal stages and free transfers the makespan is m (F+B+W) +
 * (p-1)(F+B-W) for m >= p, provided that W <= B and W <= F; in general the bubble is (p-1)(F+B-min(F,B,W)).
 *
 * ZB-H2 does twice of both: stage s warms up with 2(p-1-s) forwards and runs its W 2s late, and holds min(2p-1, m)
 * microbatches. With F = B = W and m >= 2p-1 no stage ever waits between its first task and its last: each runs for
 * m (F+B+W), shifted against the one before by F. The makespan, (p-1) F longer, is the least that one chunk per stage can
 * have. In general a stage waits for (p-1) max(0, F+B-2W).
 *
 * ZB-V has two chunks per stage in a V: positions s and 2p-1-s, so that the loss is on stage 0, which can start to go
 * backwards at once. The paper leaves the order to a search over measured durations. Here it is made by a list
 * scheduler with unit durations (F = B = W = 1, free transfers), which depends on p and m only and so gives one
 * skeleton for all durations:
 *
 *   at each tick, each stage runs the first of these that is ready:  F of chunk 1, F of chunk 0, B of chunk 0, B of
 *   chunk 1, oldest W; and no F when 2p chunks are in flight (a chunk is in flight from its F to its W; 2p chunks are
 *   what stage 0 of 1F1B holds).
 *
 * With F = B = W = 1 and m >= 2p-1 the makespan is exactly 6m + p-1: the p-1 ticks in which the last stage
 * waits for its first input, and no other bubble. That is the best that can be: 6m of work on a stage that
 * starts at tick p-1. (Tested for p <= 20 and m <= 5p, and for p = 32 and 64. Of the 12 priority lists with F
 * of chunk 1 before F of chunk 0 this is the only one found to have that property; those that prefer
 * backwards lose a few ticks for larger p.) Other durations run in the same order: a search over the measured
 * ones, as the paper does it, may find a better one.
 */
#include "base/check.h"
#include "plan/schedule/build.h"

static void order_handmade(struct maq_orders *o, uint32_t stage, uint32_t warmup, uint32_t delay)
{
    uint32_t done[3] = {0, 0, 0};
    for (uint32_t n = 0; n < 3 * o->microbatches; n++) {
        const enum maq_task_kind kind = maq__next_of_late_w(done, o->microbatches, warmup, delay);
        if (kind == MAQ_TASK_B)
            maq__order_add_split(o, stage, done[kind]++);
        else
            maq__order_add(o, kind, stage, done[kind]++);
    }
}

void maq__order_zb_h1(struct maq_orders *o, uint32_t stage)
{
    order_handmade(o, stage, o->stages - 1 - stage, stage);
}

void maq__order_zb_h2(struct maq_orders *o, uint32_t stage)
{
    order_handmade(o, stage, 2 * (o->stages - 1 - stage), 2 * stage);
}

/* ---- ZB-V ---- */

/* A stage of the list scheduler: how many F, B and W of each chunk are done, and the B whose W is still to come. */
struct v_stage {
    uint32_t f[2], b[2];
    uint32_t live;            /* chunks in flight */
    uint32_t w_done, w_known; /* W run, W that can run */
    uint32_t *w;              /* [2m] (microbatch << 1 | chunk) in the order of the B */
};

enum v_choice { V_NONE, V_F0, V_F1, V_B0, V_B1, V_W };

/*
 * Each task runs in the order of the microbatches, so a predecessor is done when the neighbour's count is higher. The
 * forwards of chunk 0 go down the stages, those of chunk 1 up; the backwards of chunk 1 go down, those of chunk 0 up.
 */
static enum v_choice choose(const struct v_stage *v, uint32_t s, uint32_t p, uint32_t m)
{
    const struct v_stage *me = &v[s];
    if (me->live < 2 * p) {
        if (me->f[1] < m && me->f[1] < (s + 1 < p ? v[s + 1].f[1] : me->f[0]))
            return V_F1;
        if (me->f[0] < m && (s == 0 || me->f[0] < v[s - 1].f[0]))
            return V_F0;
    }
    if (me->b[0] < m && me->b[0] < (s + 1 < p ? v[s + 1].b[0] : me->b[1]))
        return V_B0;
    if (me->b[1] < m && me->b[1] < me->f[1] && (s == 0 || me->b[1] < v[s - 1].b[1]))
        return V_B1;
    return me->w_done < me->w_known ? V_W : V_NONE;
}

static void run_choice(struct v_stage *me, struct maq_order_step *step, enum v_choice choice, uint32_t s, uint32_t p)
{
    uint32_t chunk = choice == V_F1 || choice == V_B1, mb = 0;
    *step = (struct maq_order_step){0};
    switch (choice) {
    case V_F0:
    case V_F1:
        step->kind = MAQ_TASK_F;
        mb = me->f[chunk]++;
        me->live++;
        break;
    case V_B0:
    case V_B1:
        step->kind = MAQ_TASK_B;
        step->split = 1;
        mb = me->b[chunk]++;
        me->w[me->w_known++] = mb << 1 | chunk;
        break;
    case V_W:
        step->kind = MAQ_TASK_W;
        chunk = me->w[me->w_done] & 1;
        mb = me->w[me->w_done++] >> 1;
        me->live--;
        break;
    case V_NONE:
        break;
    }
    step->microbatch = mb;
    step->position = (uint16_t)(chunk ? 2 * p - 1 - s : s);
}

enum maq_status maq__order_zb_v(struct maq_orders *o, struct maq_arena *scratch)
{
    uint32_t p = o->stages, m = o->microbatches, per_stage = 6 * m;
    struct v_stage *v = MAQ_ARENA_NEW(scratch, struct v_stage, p);
    enum v_choice *choice = MAQ_ARENA_NEW(scratch, enum v_choice, p);
    uint32_t *w = MAQ_ARENA_NEW(scratch, uint32_t, (size_t)p * 2 * m);
    uint32_t *n = MAQ_ARENA_NEW(scratch, uint32_t, p);
    if (!v || !choice || !w || !n)
        return MAQ_NO_MEMORY;
    for (uint32_t s = 0; s < p; s++) {
        v[s].w = w + (size_t)s * 2 * m;
        o->first[s] = s * per_stage;
    }
    o->first[p] = p * per_stage;

    while (o->n < p * per_stage) {
        uint32_t before = o->n;
        for (uint32_t s = 0; s < p; s++)
            choice[s] = choose(v, s, p, m);
        for (uint32_t s = 0; s < p; s++) {
            if (choice[s] == V_NONE)
                continue;
            run_choice(&v[s], &o->steps[o->first[s] + n[s]++], choice[s], s, p);
            o->n++;
        }
        MAQ_ASSERT(o->n > before);
    }
    return MAQ_OK;
}
