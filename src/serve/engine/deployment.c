/* SPDX-License-Identifier: Apache-2.0 */
/* deployment.c - a deployment from a job and an engine's options. */
#include "serve/engine/deployment.h"

#include "base/check.h"

enum maq_status maq_deployment_init(struct maq_deployment *d, const struct maq_job *job,
                                    const struct maq_serve_options *options, struct maq_diag *diag)
{
    *d = (struct maq_deployment){.job = job, .device = &job->cluster.groups[job->stages[0].group].device};
    maq_arena_init(&d->arena, 0);
    maq_serve_complete(&d->options, options, job);
    d->host = maq_host_profile_of(&d->options);
    int64_t most = d->options.max_num_batched_tokens;
    if (maq_passes_init(&d->passes, job, &d->options, most > 1024 ? most : 1024, &d->arena) != MAQ_OK)
        return maq_no_memory(diag, "a deployment");
    maq_deployment_memory(d);
    return MAQ_OK;
}

void maq_deployment_fini(struct maq_deployment *d)
{
    maq_arena_fini(&d->arena);
}
