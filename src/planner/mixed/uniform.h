/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uniform.h - plans of one strategy for all stages: those that planners for one kind of device enumerate over all
 * node groups (uniform.c), and those that the search of one node group finds (single_group.c).
 *
 * In the former every stage holds equally many layers on equally many devices with the same strategy; all devices are
 * used, in the order in which the cluster lists them, and a stage may lie in two node groups. Each plan is predicted as
 * `maquette train` predicts it, so that a step waits for its slowest devices.
 */
#ifndef MAQ_PLANNER_MIXED_UNIFORM_H
#define MAQ_PLANNER_MIXED_UNIFORM_H

#include "maquette/planner.h"
#include "planner/mixed/search_state.h"

/*
 * A plan of one strategy for all stages as a plan of stages, virtual stages in their order in the model (uniform_plan.c):
 * everything but times, over the devices of `cluster`, in its order. Returns the stages of *out, to be filled in further; NULL
 * where the plan is impossible, or when out of memory. They live with the run.
 */
struct maq_mixed_search_stage *maq_mixed_uniform_plan(struct maq_mixed_search_plan *out, struct maq_mixed_run *run,
                                                      const struct maq_cluster *cluster,
                                                      const struct maq_search_plan *found);

/* A copy of a plan with its strings (layout, rank order), in the arena; NULL when out of memory. */
struct maq_plan *maq_mixed_keep_plan(const struct maq_plan *plan, struct maq_arena *arena);

/* Enumerates the uniform plans: fills result.plans, bound and counts of a run whose space is read. */
enum maq_status maq_mixed_uniform(struct maq_mixed_run *run, struct maq_diag *diag);

/*
 * Node groups of one kind (maq_cluster_one_kind): the best plan that the search of one node group finds for all of them together,
 * with every technique of its default space (single_group.c). out->step_s: as `maquette train` predicts it, 0 where none fits;
 * *bound_s: no plan of that space is faster. *out lives with the run.
 */
enum maq_status maq_mixed_groups_as_one(struct maq_mixed_search_plan *out, double *bound_s, struct maq_mixed_run *run,
                                        const struct maq_loaded_job *open, const struct maq_mixed_search_opts *opts,
                                        struct maq_diag *diag);

/*
 * One node group alone: of the best plans that the search of one node group finds there, the one that is fastest when simulated as
 * stages (plans that recompute or offload the first layers of a stage have no such form). out->step_s: as simulated, 0 where none
 * fits; *bound_s: no plan of that search is faster.
 */
enum maq_status maq_mixed_group_alone(struct maq_mixed_search_plan *out, double *bound_s, struct maq_mixed_run *run,
                                      uint32_t group, const struct maq_loaded_job *open,
                                      const struct maq_mixed_search_opts *opts, struct maq_diag *diag);

#endif
