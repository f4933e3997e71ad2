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

#endif
