/* SPDX-License-Identifier: Apache-2.0 */
/*
 * defaults.c - a run from the prediction of one of its steps: maquette/risk_run.h.
 *
 * A checkpoint holds MAQ_RUN_BYTES_PER_PARAMETER for every parameter of the model, whatever the sharding; its nodes write and read
 * it together at the rate of the storage. Saving is asynchronous, as with Megatron-LM's --async-save and
 * torch.distributed.checkpoint: the job is blocked only for the copy to the host.
 */
#include <math.h>

#include "maquette/risk_run.h"

void maq_run_opts_of_train(struct maq_run_opts *opts, const struct maq_train_result *train, double tokens,
                           double storage_bps)
{
    const struct maq_job *job = train->job;
    const struct maq_node_group *group = &job->cluster.groups[0];
    uint32_t nodes = 0;
    for (uint32_t i = 0; i < job->cluster.n_groups; i++)
        nodes += (uint32_t)job->cluster.groups[i].nodes;
    double bytes = (double)job->model.params * MAQ_RUN_BYTES_PER_PARAMETER;
    double rate = storage_bps > 0 ? storage_bps : MAQ_RUN_STORAGE_BPS * nodes;
    opts->step_s = train->step_s;
    opts->steps = ceil(tokens / round(train->tokens_per_s * train->step_s));
    opts->devices = job->cluster.devices;
    opts->devices_per_node = (uint32_t)group->devices_per_node;
    opts->dp_replicas = (uint32_t)job->dp;
    opts->n_levels = 1;
    opts->levels[0] = (struct maq_run_level){.every = 1,
                                             .save_s = MAQ_RUN_SAVE_S,
                                             .persist_s = bytes / rate,
                                             .restore_s = bytes / rate,
                                             .survives = MAQ_SURVIVES_ALL};
}
