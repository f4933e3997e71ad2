/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build.h - how a pipeline schedule is described: a rule, and the order of tasks of every stage.
 *
 * A schedule is one row of the table in schedule.c: what it needs, and a function that writes the order in which a
 * stage runs its tasks. Everything else (predecessors, a topological order, activations in flight, the evaluation)
 * follows from that order in the common part (schedule.c, dependencies.c, in_flight.c, evaluate.c).
 */
#ifndef MAQ_PLAN_SCHEDULE_BUILD_H
#define MAQ_PLAN_SCHEDULE_BUILD_H

#include "base/codes.h"
#include "plan/codes.h"
#include "plan/schedule/schedule.h"

/* One task of a stage, in the order of the stage. */
struct maq_order_step {
    uint8_t kind, split;
    uint16_t position, b_position;
    uint32_t microbatch, b_microbatch;
};

/* The orders of all stages: those of stage s are steps[first[s]] .. steps[first[s + 1]]. */
struct maq_orders {
    int kind;
    uint32_t stages, chunks, microbatches, group, n_positions;
    uint32_t limit;                                 /* of a searched kind, for all stages */
    const struct maq_schedule_durations *durations; /* the same; NULL: equal ones, and free transfers */
    uint32_t n, capacity;
    struct maq_order_step *steps;
    uint32_t *first; /* [stages + 1] */
};

/* Which way a microbatch goes: of DualPipe the second half of them the other way. */
static inline uint32_t maq__direction_of(int kind, uint32_t microbatches, uint32_t microbatch)
{
    return kind == MAQ_SCHEDULE_DUALPIPE && microbatch >= microbatches / 2;
}

/* Appends a task to the stage that is being written. */
void maq__order_add(struct maq_orders *o, enum maq_task_kind kind, uint32_t position, uint32_t microbatch);
void maq__order_add_split(struct maq_orders *o, uint32_t position,
                          uint32_t microbatch); /* a B that leaves its W for later */
void maq__order_add_pair(struct maq_orders *o, uint32_t f_position, uint32_t f_microbatch, uint32_t b_position,
                         uint32_t b_microbatch);

/*
 * The next task of a stage that warms up with some forwards, runs F and B in turn, and each W `delay` microbatches behind its B: ZB-H1 and its
 * kin (zero_bubble.c). done: F, B and W so far, by enum maq_task_kind.
 */
static inline enum maq_task_kind maq__next_of_late_w(const uint32_t done[3], uint32_t microbatches, uint32_t warmup,
                                                     uint32_t delay)
{
    const uint32_t f = done[MAQ_TASK_F], b = done[MAQ_TASK_B], w = done[MAQ_TASK_W];
    if (b < microbatches ? w + delay < b : w < microbatches)
        return MAQ_TASK_W;
    return f < microbatches && f <= warmup + b ? MAQ_TASK_F : MAQ_TASK_B;
}

struct maq_schedule_rule {
    struct maq_schedule_info info;
    uint32_t chunks; /* 0 = as the plan says */
    bool split, pairs, searched;
    const char *(*refuse)(char buf[160], const struct maq_schedule_spec *spec);    /* NULL: takes any */
    void (*order)(struct maq_orders *o, uint32_t stage);                           /* writes one stage */
    enum maq_status (*order_all)(struct maq_orders *o, struct maq_arena *scratch); /* or all of them, and o->first */
};

const struct maq_schedule_rule *maq__schedule_rule(int kind);

/* The sentence of a refusal; empty when buf is NULL, for a caller that needs no text. */
MAQ_PRINTF(2, 3) const char *maq__refused(char buf[160], const char *format, ...);

void maq__order_gpipe(struct maq_orders *o, uint32_t stage);
void maq__order_1f1b(struct maq_orders *o, uint32_t stage);
void maq__order_interleaved(struct maq_orders *o, uint32_t stage);
void maq__order_zb_h1(struct maq_orders *o, uint32_t stage);
void maq__order_zb_h2(struct maq_orders *o, uint32_t stage);
enum maq_status maq__order_zb_searched(struct maq_orders *o, struct maq_arena *scratch);
void maq__order_interleaved_zb(struct maq_orders *o, uint32_t stage);
enum maq_status maq__order_zb_v(struct maq_orders *o, struct maq_arena *scratch);
enum maq_status maq__order_controllable(struct maq_orders *o, struct maq_arena *scratch); /* v-min, v-half */
void maq__order_dualpipe(struct maq_orders *o, uint32_t stage);
void maq__order_dualpipe_v(struct maq_orders *o, uint32_t stage);
/* Microbatches of a group of interleaved-zb: as equal as PyTorch deals them, p or more where there are as many. */
uint32_t maq__interleaved_zb_group(uint32_t stages, uint32_t microbatches);
const char *maq__refuse_gpipe(char buf[160], const struct maq_schedule_spec *spec);
const char *maq__refuse_interleaved(char buf[160], const struct maq_schedule_spec *spec);
const char *maq__refuse_interleaved_zb(char buf[160], const struct maq_schedule_spec *spec);
const char *maq__refuse_dualpipe(char buf[160], const struct maq_schedule_spec *spec);
const char *maq__refuse_dualpipe_v(char buf[160], const struct maq_schedule_spec *spec);

/* The arrays of a result, still writable. */
struct maq__schedule_arrays {
    struct maq_task *tasks;
    uint32_t *next_on_stage, *stage_first, *stage_last, *grads, *grads_first;
    struct maq_task_hot *hot;
    struct maq_task_pair *pair; /* NULL when the rule has no pairs */
};

/* dependencies.c: fills the arrays from the orders and hands them to *out. scratch holds the temporary tables. */
enum maq_status maq__schedule_link(struct maq_schedule *out, const struct maq_orders *o,
                                   const struct maq__schedule_arrays *arrays, struct maq_arena *scratch);

/* in_flight.c: the activations in flight, from the orders, into *out and `arena`. MAQ_LIMIT: more than it can count. */
enum maq_status maq__schedule_inflight(struct maq_schedule *out, const struct maq_orders *o, struct maq_arena *arena,
                                       struct maq_arena *scratch);

#endif
