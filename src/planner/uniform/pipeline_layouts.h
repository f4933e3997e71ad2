/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline_layouts.h - the pipelines of a space: every combination of schedule, virtual stages and layers of each
 * virtual stage, for each number of stages.
 *
 * They depend on no other axis of a plan, so they are listed once for each number of stages of the space.
 */
#ifndef MAQ_PLANNER_UNIFORM_PIPELINE_LAYOUTS_H
#define MAQ_PLANNER_UNIFORM_PIPELINE_LAYOUTS_H

#include "plan/schedule/schedule.h"
#include "planner/space/space.h"

struct maq_pipeline {
    int32_t schedule, vp; /* as a plan has them */
    struct maq_str layout;
    bool as_written;       /* the layout is the document's: `layers` is not known */
    uint32_t n_virtual;    /* positions */
    const int32_t *layers; /* [n_virtual] */
    int32_t most_layers;   /* of a virtual stage */
    /* of schedules that split their backward passes: the task order, for what a stage holds at once; NULL = not known: it is long, or
     * searched for each plan */
    const struct maq_schedule *skeleton;
};

struct maq_pipelines {
    struct maq_pipeline_list {
        int32_t stages;
        struct maq_pipeline *at; /* [n] */
        uint32_t n;
    } * lists; /* [n], one for each value of PP */
    uint32_t n;
};

/* Lists the pipelines; equal ones are listed once. Everything lives in `arena`. */
enum maq_status maq_pipelines_list(struct maq_pipelines *out, const struct maq_search_space *space,
                                   const struct maq_job *job, struct maq_arena *arena);
const struct maq_pipeline_list *maq_pipelines_of(const struct maq_pipelines *pipelines, int32_t stages);

/* Kinds of passes of a schedule; a layer has other blocks (train/step/block.h) in each. */
enum maq_passes {
    MAQ_PASSES_WHOLE,
    MAQ_PASSES_SPLIT,  /* weight gradients are put off */
    MAQ_PASSES_PAIRED, /* split, and the expert all-to-all overlaps with passes of the other direction (DualPipe) */
    MAQ_PASSES_COUNT
};
enum maq_passes maq_passes_of(int schedule);
bool maq_schedule_splits(int schedule);
bool maq_schedule_rounds(int schedule); /* interleaved: as many chunks as the plan says */
/* Gives a plan the simplest schedule with such passes. */
void maq_plan_passes(struct maq_plan *plan, enum maq_passes passes);

#endif
