/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.h - the cache of a sweep: distinct operators with their costs, lowered blocks and schedule skeletons, shared
 * by many plans of a job.
 */
#ifndef MAQ_TRAIN_CACHE_H
#define MAQ_TRAIN_CACHE_H

#include "train/schedules.h"
#include "train/step/blueprint.h"

/*
 * A planner keeps one cache per (model, cluster, workload) and builds hundreds of thousands of blueprints from it. An
 * entry depends on nothing of a plan but what is in its key. One thread.
 */
struct maq_cache {
    struct maq_arena arena;
    struct maq_measured *measured; /* owned; NULL = the job names no file of measured kernels */
    struct maq_costs costs;        /* the chain that prices every item, as the job asks for it */
    struct maq_items items;
    struct maq_block_slot *blocks; /* open addressing */
    uint32_t n_blocks, block_slots;
    struct maq_schedules *skeletons;              /* of this cache alone, or shared with others */
    const struct maq_shared_schedule **schedules; /* of them, those that this one holds */
    uint32_t n_schedules, schedule_slots;
    double *finish; /* scratch of one evaluation, not initialised */
    size_t finish_size;
};
/* The cost chain that a job asks for. Its file of measured kernels is opened; *measured is owned by the caller
 * (maq_measured_close), NULL where the job names none or its chain does not ask it. */
enum maq_status maq_costs_of_job(struct maq_costs *out, struct maq_measured **measured, const struct maq_job *job,
                                 struct maq_diag *diag);
/*
 * A cache for a job's cluster and cost chain; opens its file of measured kernels. *cache is to be ended (maq_cache_fini()) even on
 * failure.
 */
enum maq_status maq_cache_init(struct maq_cache *cache, const struct maq_job *job, struct maq_diag *diag);
/* The same for a thread beside that of another cache: both share schedule skeletons. */
enum maq_status maq_cache_init_beside(struct maq_cache *cache, const struct maq_job *job, const struct maq_cache *other,
                                      struct maq_diag *diag);
void maq_cache_fini(struct maq_cache *cache);
/* Forgets operators, blocks and skeletons; none of them may be in use. They are made again when asked for. */
void maq_cache_forget(struct maq_cache *cache);
/* n doubles, not initialised, valid until the next call; NULL when out of memory. */
double *maq_cache_finish(struct maq_cache *cache, size_t n);

/* A block of the model under the plan of bp, lowered once; a schedule skeleton, built once. */
enum maq_status maq_cache_block(const struct maq_block **out, struct maq_blueprint *bp, const struct maq_layer *layer,
                                enum maq_block_use use);
enum maq_status maq_cache_schedule(struct maq_blueprint *bp, struct maq_diag *diag);

#endif
