/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings.c - appends a setting of a Megatron-LM command line to the result, unless a search chooses it, and reports
 * faults of arguments. See reader.h.
 */
#include <string.h>

#include "base/check.h"
#include "plan/codes.h"
#include "plan/megatron/reader.h"

/* What a search chooses (docs/planning.md): left out of an open job. */
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
};

bool maq__megatron_same(struct maq_str name, const char *key)
{
    size_t i = 0;
    for (; i < name.len && key[i]; i++)
        if ((name.ptr[i] == '_' ? '-' : name.ptr[i]) != (key[i] == '_' ? '-' : key[i]))
            return false;
    return i == name.len && key[i] == '\0';
}

void maq__megatron_no_memory(struct maq_megatron_reader *r)
{
    if (r->status == MAQ_OK)
        r->status = maq_no_memory(r->diag, "the arguments");
}

void maq__megatron_bad(struct maq_megatron_reader *r, const char *flag, const char *why, const char *hint)
{
    r->status =
        maq_diag_fail(MAQ_BAD_INPUT, r->diag, MAQ_CODE_MEGATRON_FORM, (struct maq_span){0}, hint, "%s %s", flag, why);
}

void maq__megatron_set(struct maq_megatron_reader *r, const char *flag, const char *path, const char *value)
{
    struct maq_megatron *m = &r->box->read;
    for (size_t i = 0; r->open && path && i < MAQ_COUNT(searched); i++)
        if (strcmp(path, searched[i]) == 0)
            return;
    if (!path || !value || m->n_overrides == r->box->size) {
        maq__megatron_no_memory(r);
        return;
    }
    m->overrides[m->n_overrides++] = (struct maq_override){flag, path, value};
}
