/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alternatives.h - alternatives to the best plan: plans that differ from it in one key, and their steps.
 * alternatives.c lists the values of the axes, unsearched_settings.c the settings that are no axis.
 */
#ifndef MAQ_PLANNER_UNIFORM_ALTERNATIVES_H
#define MAQ_PLANNER_UNIFORM_ALTERNATIVES_H

#include "maquette/planner.h"
#include "planner/uniform/pipeline_layouts.h"

struct maq_alternatives_owner {
    struct maq_arena arena;
    struct maq_job job;
    struct maq_search_space space;
    struct maq_pipelines pipelines; /* of the space */
    struct maq_train_sweep *sweep;
    struct maq_plan *plans; /* [n] as the alternatives */
    bool *laid_out;         /* [n]: the layout is that of the best plan, or the job's */
    uint32_t size;
};

/*
 * Appends an alternative; its strings are copied. laid_out: as in struct maq_alternatives_owner; otherwise the best
 * layout of the space is taken.
 */
enum maq_status maq_alternative_add(struct maq_search_alternatives *out, const struct maq_search_alternative *what,
                                    const struct maq_plan *plan, bool laid_out);

/* Lists alternatives of the best plan; out->owner is set already. */
typedef enum maq_status maq_alternatives_fn(struct maq_search_alternatives *out, const struct maq_plan *best);

/* The alternatives that a function lists, with step and memory. */
enum maq_status maq_alternatives_evaluate(struct maq_search_alternatives *out, maq_alternatives_fn *lists,
                                          const struct maq_loaded_job *open, const struct maq_search_result *result,
                                          const struct maq_search_opts *opts, struct maq_diag *diag);

#endif
