/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.h - the state of a sweep over many plans of one job, for other code that costs with its cache. */
#ifndef MAQ_TRAIN_SWEEP_H
#define MAQ_TRAIN_SWEEP_H

#include "train/cache.h"
#include "train/step/blueprint.h"

struct maq_candidate {
    struct maq_job job;
    struct maq_blueprint bp;
    uint32_t index; /* into the caller's plans */
    bool done;
};

struct maq_train_sweep {
    struct maq_job job; /* template: model, cluster, workload */
    struct maq_cache cache;
    struct maq_arena scratch;
    struct maq_candidate *window;
};

/* As maq_train_sweep_new() for the job of another sweep, for a thread beside it: both share schedule skeletons. */
enum maq_status maq_train_sweep_beside(struct maq_train_sweep **out, const struct maq_train_sweep *other,
                                       struct maq_diag *diag);

#endif
