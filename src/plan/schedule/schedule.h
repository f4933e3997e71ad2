/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule.h - pipeline schedules: the order in which each stage runs its passes.
 *
 * A schedule is a frozen skeleton of tasks without durations: it depends only on (kind, stages, chunks,
 * microbatches, group), so that a planner evaluates one skeleton with many duration vectors. The searched kinds (zb-1p, zb-2p,
 * zb-auto) are the exception: maq_schedule_search() orders their tasks for one vector. A task is the
 * forward (F), the backward (B: gradient of the input, and of the weights unless split) or the weight
 * gradient (W) of one microbatch on one virtual stage, or the overlapped pair of a forward and a backward
 * (FB, DualPipe).
 *
 * Virtual stages are numbered by *position* in the model: position 0 holds the embedding. Placement of
 * position v on a stage s and chunk c:
 *   gpipe, 1f1b, zb-h1, ..auto    v = s             (1 chunk)
 *   interleaved, interleaved-zb   v = c * p + s     (vp chunks)
 *   zb-v, v-min, v-half, dualpipe-v     v = s (c = 0), 2p-1-s (c = 1)
 *   dualpipe             two copies of the model run in opposite directions: direction 0 v = s, direction 1 v = p-1-s; chunk =
 *                        direction; half of the microbatches go each way
 *
 * Time, for task t on stage s with duration d[t] (ns):
 *   start(t)  = max( finish(previous task of s), max over its data predecessors u of finish(u) + hop )
 *   finish(t) = start(t) + d[t]
 * where hop = the p2p time when u ran on another stage, 0 otherwise. Tasks are stored in an order in which
 * every predecessor comes first. When p2p is not overlapped, a task whose result goes to another stage keeps
 * its own stage busy for `stall` longer: the next task of s starts at finish + stall or later (the receiver
 * still gets the data at finish + hop). When it is, transfers of a stage over the network follow one another:
 *
 *   sent(t) = max( finish(t), sent(u) + port ),   u: the last task of s before t that sent over the network
 *
 * replaces finish(t) for the tasks that wait for it. All transfers of s share one port, whatever their direction.
 *
 * Backward: in a schedule without W tasks a B is the whole backward. In one with W tasks (split_backward) the
 * duration of B is the gradient of the input alone; a B that is not split (some of DualPipe's, and the B half
 * of an FB) lasts B + W.
 */
#ifndef MAQ_PLAN_SCHEDULE_SCHEDULE_H
#define MAQ_PLAN_SCHEDULE_SCHEDULE_H

#include "base/arena.h"
#include "maquette/plan.h"

enum maq_task_kind { MAQ_TASK_F, MAQ_TASK_B, MAQ_TASK_W, MAQ_TASK_FB, MAQ_TASK_KIND_COUNT };

#define MAQ_NO_TASK UINT32_MAX

struct maq_task {
    uint8_t kind; /* enum maq_task_kind */
    uint8_t
        b_direction; /* dualpipe: direction of the B half of an FB; `direction` is the F half's (or the task's own) */
    uint8_t direction;
    uint8_t split; /* this B computes only the input gradient: a W of the same (position, microbatch) follows */
    uint16_t stage;
    uint16_t position;   /* F (or the only) half */
    uint16_t b_position; /* FB: of the B half */
    uint32_t microbatch;
    uint32_t b_microbatch;
    uint32_t previous; /* on the same stage; MAQ_NO_TASK for the first */
    uint32_t pred
        [2]; /* data predecessors; MAQ_NO_TASK = none. F: the F of position-1. B: [0] own F, [1] B of position+1. W: own B.
                           FB: [0] that of its F half, [1] that of its B half (B of position+1; own F is earlier on the stage) */
    uint8_t hop[2]; /* predecessor ran on another stage */
};

/*
 * What the evaluation reads of a task, 16 bytes; private to this room. A predecessor that is on the same
 * stage is implied by `previous`, so one other is enough, except for pairs. Where there is none, both name
 * the same task.
 */
struct maq_task_hot {
    uint32_t previous, pred;
    uint16_t dur;      /* row of the duration table: kind * n_positions + position (an FB: its F half) */
    uint16_t hop;      /* row of the hop table; 0 = same stage */
    uint16_t stall;    /* row of the stall table: what the previous task of the stage sends; 0 = nothing */
    uint8_t whole : 1; /* B that is not split in a schedule with W */
    uint8_t pair : 1;  /* FB */
    uint8_t first : 1; /* the first forward of its position (and direction): never an FB */
    uint8_t last : 1;  /* the last task of its position (and direction) that completes gradients */
};
struct maq_task_pair { /* the B half of an FB; any other task repeats its `hot` here */
    uint32_t pred;
    uint16_t hop, b_position;
};

/* A combination of live activations that one stage reaches: how many microbatches each of its chunks holds at
 * once. */
struct maq_inflight {
    uint16_t stage;
    uint16_t live[2];      /* by chunk when the schedule has at most 2 chunks */
    uint32_t total;        /* over all chunks */
    const uint16_t *chunk; /* [n_chunks] */
};

struct maq_schedule {
    int kind; /* enum maq_schedule_kind, never AUTO */
    uint32_t stages, chunks, microbatches, group;
    bool split_backward;  /* there are W tasks */
    uint32_t n_positions; /* virtual stages: stages * chunks (dualpipe: stages, each on two devices) */
    uint32_t n_tasks;
    const struct maq_task *tasks;  /* topological order */
    const uint32_t *stage_first;   /* [stages] index of a stage's first task; follow next_on_stage */
    const uint32_t *next_on_stage; /* [n_tasks], MAQ_NO_TASK at the end */
    uint32_t n_inflight;
    const uint32_t *inflight_first; /* [stages + 1]: those of a stage */
    const struct maq_inflight
        *inflight;      /* non-dominated ones, grouped by stage: activations are held from F to B (to W when split) */
    uint32_t n_sources; /* the first tasks: nothing comes before them */
    const uint32_t *stage_last;       /* [stages] */
    const uint32_t *grads_first;      /* [stages + 1]: those of a stage in */
    const uint32_t *grads;            /* the tasks of maq_task_is_last(), in the order in which the stage runs them */
    const struct maq_task_hot *hot;   /* [n_tasks] */
    const struct maq_task_pair *pair; /* [n_tasks]; NULL when there are no FB */
};

/*
 * Where a task sends its result, when another stage needs it: the position behind the border that it crosses (a gradient goes from
 * a position to the one before it); 0 = nowhere. An FB whose halves both send: that of its F half.
 */
uint32_t maq_task_sends(const struct maq_schedule *s, const struct maq_task *t);

/* Whether a kind has two chunks per stage in a V: first and last layer are on the first stage. */
bool maq_schedule_is_v(int kind);
/* Number of chunks per stage that a kind has; vp is what the plan asks for. */
uint32_t maq_schedule_chunks(int kind, uint32_t vp);
/* Device stage and chunk of a position (dualpipe: of direction d). */
void maq_schedule_locate(uint16_t *stage, uint16_t *chunk, int kind, uint32_t stages, uint32_t position,
                         uint32_t direction);
/* Positions that a stage holds, of n_positions in all; returns how many: one per chunk, of dualpipe two. */
uint32_t maq_positions_of(uint16_t *positions, int kind, uint32_t stages, uint32_t n_positions, uint32_t stage);
uint32_t maq_schedule_positions(const struct maq_schedule *s, uint32_t stage, uint16_t *positions);

/* What a skeleton is built of. All of it is in the answer, and nothing else is. */
struct maq_schedule_spec {
    int32_t kind;
    uint32_t stages, chunks, microbatches;
    uint32_t group; /* interleaved: microbatches of a group; 0 = stages */
    uint32_t limit; /* zb-auto: most microbatches that a stage may hold; 0 = any number */
};

/*
 * Why (kind, stages, chunks, microbatches) cannot be, as a sentence with the numbers, or NULL when it can:
 * e.g. interleaved needs stages <= group <= microbatches and a last group that is full or holds at least
 * `stages`; dualpipe needs an even number of stages and of microbatches and microbatches >= 2 x stages; zb-v
 * and dualpipe-v need 2 chunks. For dualpipe, chunks may be 1 (what the plan calls it: the model is not cut
 * further) or 2 (the two copies). The sentence is written to buf; buf may be NULL, and then the answer is NULL
 * or empty.
 */
const char *maq_schedule_refuse(char buf[160], int kind, uint32_t stages, uint32_t chunks, uint32_t microbatches,
                                uint32_t group);

#define MAQ_SCHEDULE_MAX_TASKS (UINT32_C(1) << 25) /* about 3 GB while it is built */

/*
 * Builds the skeleton in `arena`. group: interleaving group, 0 = stages. AUTO becomes 1F1B or interleaved.
 * Refused arguments give MAQ_BAD_INPUT with the sentence of maq_schedule_refuse; more than
 * MAQ_SCHEDULE_MAX_TASKS tasks give MAQ_LIMIT. On failure *out is untouched.
 */
enum maq_status maq_schedule_build(struct maq_schedule *out, int kind, uint32_t stages, uint32_t chunks,
                                   uint32_t microbatches, uint32_t group, struct maq_arena *arena,
                                   struct maq_diag *diag);

/* The same of a whole spec. */
enum maq_status maq_schedule_make(struct maq_schedule *out, const struct maq_schedule_spec *spec,
                                  struct maq_arena *arena, struct maq_diag *diag);

/* Whether the order of a kind follows from durations: zb-1p, zb-2p, zb-auto. */
bool maq_schedule_is_searched(int kind);

/* What such an order is searched for. */
struct maq_schedule_durations {
    const struct maq_task_times *times; /* of one vector: K = 1; fb and port are not read */
    const uint32_t *limit;              /* [stages] most microbatches of each; NULL = what the spec says for all */
    bool spans; /* what counts is the longest stage from its first task to its last, and not the makespan */
};

/*
 * The same of a searched kind with durations. maq_schedule_make() gives the order for F = B = W and free transfers, which has the same
 * tasks on the same stages.
 */
enum maq_status maq_schedule_search(struct maq_schedule *out, const struct maq_schedule_spec *spec,
                                    const struct maq_schedule_durations *durations, struct maq_arena *arena,
                                    struct maq_diag *diag);

/*
 * Microbatches whose forward or backward pass has no other microbatch to overlap with: they fill and drain the
 * pipeline.
 */
static inline uint32_t maq_schedule_unpaired(uint32_t stages, uint32_t microbatches)
{
    return stages < microbatches ? stages : microbatches;
}

/*
 * Of the tasks that complete gradients of its position and direction (a W, a B that is not split, an FB by its B half) the last
 * one.
 */
bool maq_task_is_last(const struct maq_schedule *s, uint32_t task);

/*
 * Durations of tasks, K vectors at once: arrays are [.. * K + k], in nanoseconds held exactly in doubles (< 2^53).
 *   dur[(kind * n_positions + position) * K + k] for F, B, W (W is read only when split_backward); an FB lasts F(position) +
 *   B(b_position) + W(b_position) unless fb is given:
 *   fb[(position * n_positions + b_position) * K + k] or NULL
 *   hop[position * K + k]: time to move the activations from position-1 to position (and the gradient back); row 0 is not read
 *   stall[position * K + k]: time for which a *sender's* stage is blocked by such a transfer, <= hop; row 0 is not read; NULL = 0
 *   (p2p is overlapped). An FB whose halves both send stalls for that of its F half
 *   port[position * K + k]: time for which such a transfer holds its sender's port, <= hop; row 0 is not read; NULL = 0 (not over
 *   the network, or the sender stalls, so that no other transfer of it follows at once)
 *   ready[position * K + k]: the first forward of a position does not end before (its parameters are still being gathered);
 *   NULL = 0
 *   late[position * K + k]: how much longer the last task that completes a position's gradients takes (it reduces them); NULL = 0
 */
struct maq_task_times {
    const double *dur, *fb, *hop, *stall, *port, *ready, *late;
};

/* When tasks end. finish: [n_tasks * K] scratch and result, where a port is given with as much scratch behind it; makespan[K]. */
void maq_schedule_eval(double *makespan, double *finish, const struct maq_schedule *s, uint32_t K,
                       const struct maq_task_times *times);

/* One line for `show schedules`: bubble with equal stages as text, memory, what it needs. i from 0 until NULL. */
struct maq_schedule_info {
    const char *name, *bubble, *memory, *needs, *source;
};
const struct maq_schedule_info *maq_schedule_info(size_t i);

#endif
