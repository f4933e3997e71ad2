/* SPDX-License-Identifier: Apache-2.0 */
/* predict.h - the pieces of the fast path, shared by one prediction and by a sweep over many plans. */
#ifndef MAQ_TRAIN_PREDICT_H
#define MAQ_TRAIN_PREDICT_H

#include "maquette/train.h"
#include "train/step/blueprint.h"

/* Times of the pipeline of one step, in ns. */
struct maq_step_times {
    const double *finish; /* [n_tasks * stride], this plan's lane; the cache's scratch */
    uint32_t stride;
    double *stage_end;              /* [pp] last task of the stage */
    double *reduced;                /* [pp] end of its gradient reduction, >= stage_end */
    double *begin;                  /* [pp] first task of the stage; 0 but for steps that overlap (post_validation) */
    double *update;                 /* [pp] begin of its update, behind the norm */
    double pipeline;                /* all stages ready for the optimizer */
    double norm, optimizer, gather; /* after it: norm all-reduce, slowest update, slowest exposed parameter gather */
    double step;
    double
        tail; /* lower bound of the part after the compute of the last pass; it is no less in a plan whose passes take longer */
};

/* Times of K plans that share a schedule skeleton; out[k] for bps[k]. Everything lives in `arena`. */
enum maq_status maq_step_times(struct maq_step_times *out, const struct maq_blueprint *const *bps, uint32_t K,
                               struct maq_arena *arena);

/* Exposed gathering of a program's parameters at the end of the step, ns. */
double maq_program_exposed_gather(const struct maq_blueprint *bp, const struct maq_program *program);

/* A replay of the allocations of a stage through PyTorch's caching allocator. train/memory/allocator_replay.c */
struct maq_held_states {
    double weights, optimizer, buckets; /* with gradients that are buffers; DistributedDataParallel's */
};
struct maq_replayed {
    double allocated, reserved; /* peaks of the stream of the passes */
    double waste;               /* of what is allocated: ends of blocks that nobody asked for */
    double gather_pool;         /* what FSDP's stream of gathers reserves besides */
    bool whole;                 /* all that the program allocates is in it, and not the sequence of a pass alone; */
    bool streams;               /* also on FSDP's streams: `allocated` is what the program's own count would be */
};
/* False when out of memory. */
bool maq_replay_stage(struct maq_replayed *out, const struct maq_blueprint *bp, uint32_t stage,
                      const struct maq_held_states *held);

/* Where every request of the program is known (memory/eager_replay.h), the stage's memory becomes what they come to. False when out of
 * memory. */
bool maq_stage_count_requests(struct maq_stage_result *st, const struct maq_blueprint *bp, uint32_t stage);

/* Where the time of every stage goes, the critical stage, its operators and provenance. */
enum maq_status maq_stage_breakdown(struct maq_train_result *result, const struct maq_blueprint *bp,
                                    const struct maq_step_times *times, struct maq_arena *arena);

/* Adds to times[items.n] how often one rank of a stage uses each item in a step; to uses[items.n][items.n_names], which may be
 * NULL, how often the modules of a name do. */
void maq_stage_count_items(double *times, double *uses, const struct maq_blueprint *bp, uint32_t stage);
/* Error and interval of the step, from its breakdown and from how often the critical stage runs each item. */
void maq_step_error(struct maq_train_result *result, const struct maq_blueprint *bp, const double *times);

/* FLOP of a step over the whole job: model (no recompute) and as executed. */
void maq_step_flop(double *model, double *hardware, const struct maq_blueprint *bp);

#endif
