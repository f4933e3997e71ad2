/*
 * pipeline_layouts.h - the ways to lay a model out over p stages: schedule, virtual stages, layers of each.
 *
 * They depend on nothing else of a plan, so they are listed once for each number of stages of the space.
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
    /* of schedules that split their backward passes: what they hold at once from this many microbatches on; NULL = not known */
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

/* Pipelines that say the same are listed once. Everything lives in `arena`. */
enum maq_status maq_pipelines_list(struct maq_pipelines *out, const struct maq_search_space *space,
                                   const struct maq_job *job, struct maq_arena *arena);
const struct maq_pipeline_list *maq_pipelines_of(const struct maq_pipelines *pipelines, int32_t stages);

/* What the passes of a schedule are made of: the blocks of a layer are other ones in each. */
enum maq_passes {
    MAQ_PASSES_WHOLE,
    MAQ_PASSES_SPLIT,  /* weight gradients are put off */
    MAQ_PASSES_PAIRED, /* and exchanges of experts run under passes of the other direction (DualPipe) */
    MAQ_PASSES_COUNT
};
enum maq_passes maq_passes_of(int schedule);
bool maq_schedule_splits(int schedule);
/* Gives a plan the plainest schedule with such passes. */
void maq_plan_passes(struct maq_plan *plan, enum maq_passes passes);

#endif
