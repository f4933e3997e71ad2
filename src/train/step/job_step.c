/* SPDX-License-Identifier: Apache-2.0 */
/* job_step.c - opens the cache in front of the blueprint that is built from it, and closes both with their arena. */
#include "train/step/job_step.h"

#include "base/check.h"

enum maq_status maq_job_step_open(struct maq_job_step *out, const struct maq_job *job,
                                  const struct maq_slowdown *slowdown, struct maq_diag *diag)
{
    maq_arena_init(&out->arena, 0);
    MAQ_TRY(maq_cache_init(&out->cache, job, diag));
    out->cache.items.slowdown = slowdown;
    return maq_blueprint_build(&out->bp, job, &out->cache, &out->arena, diag);
}

enum maq_status maq_job_step_open_timed(struct maq_job_step *out, const struct maq_job *job,
                                        const struct maq_slowdown *slowdown, struct maq_diag *diag)
{
    MAQ_TRY(maq_job_step_open(out, job, slowdown, diag));
    return maq_step_times(&out->times, &(const struct maq_blueprint *){&out->bp}, 1, &out->arena);
}

void maq_job_step_close(struct maq_job_step *step)
{
    maq_cache_fini(&step->cache);
    maq_arena_fini(&step->arena);
}
