/* SPDX-License-Identifier: Apache-2.0 */
/*
 * searched_keys.c - what a search chooses (docs/planning.md): another program's description of a job, its command line or its files, leaves
 * these out of an open job.
 */
#include <string.h>

#include "base/check.h"
#include "plan/job_build.h"

static const char *const searched[] = {
    "plan.tensor_model_parallel_size",
    "plan.context_parallel_size",
    "plan.cp_comm_type",
    "plan.hierarchical_cp_a2a_size",
    "plan.pipeline_model_parallel_size",
    "plan.virtual_pipeline_model_parallel_size",
    "plan.pipeline_model_parallel_layout",
    "plan.decoder_first_pipeline_num_layers",
    "plan.decoder_last_pipeline_num_layers",
    "plan.microbatch_group_size_per_vp_stage",
    "plan.expert_model_parallel_size",
    "plan.expert_tensor_parallel_size",
    "plan.data_parallel_sharding_strategy",
    "plan.num_distributed_optimizer_instances",
    "plan.overlap_grad_reduce",
    "plan.overlap_param_gather",
    "plan.micro_batch_size",
    "plan.recompute_granularity",
    "plan.recompute_method",
    "plan.recompute_num_layers",
    "plan.recompute_modules",
    "plan.cpu_offloading_num_layers",
    "plan.fine_grained_activation_offloading",
    "plan.offload_modules",
    "plan.optimizer_offload_fraction",
    "plan.sequence_parallel",
    "plan.rank_order",
    "workload.gradient_accumulation_steps",
};

bool maq_plan_is_searched(const char *path)
{
    for (size_t i = 0; i < MAQ_COUNT(searched); i++)
        if (strcmp(path, searched[i]) == 0)
            return true;
    return false;
}
