/* SPDX-License-Identifier: Apache-2.0 */
/* job_step.h - the step of one job by itself: a cache of its own, its blueprint in it, and where they are asked for the times of its pipeline. */
#ifndef MAQ_TRAIN_STEP_JOB_STEP_H
#define MAQ_TRAIN_STEP_JOB_STEP_H

#include "train/cache.h"
#include "train/predict.h"

struct maq_job_step {
    struct maq_arena arena; /* what belongs to the plan; the caller's scratch, too */
    struct maq_cache cache;
    struct maq_blueprint bp;
    struct maq_step_times times; /* of maq_job_step_open_timed() */
};

/*
 * Builds the blueprint, with the items that `slowdown` names longer (NULL: none); job and slowdown are borrowed. *out is to be closed even on
 * failure, and is not to be moved.
 */
enum maq_status maq_job_step_open(struct maq_job_step *out, const struct maq_job *job,
                                  const struct maq_slowdown *slowdown, struct maq_diag *diag);
/* The same, and the times. */
enum maq_status maq_job_step_open_timed(struct maq_job_step *out, const struct maq_job *job,
                                        const struct maq_slowdown *slowdown, struct maq_diag *diag);
void maq_job_step_close(struct maq_job_step *step);

#endif
