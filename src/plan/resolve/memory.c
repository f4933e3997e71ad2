/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - what is updated and what is kept: optimizers, adapters, recomputation, and what waits on the host or on NVMe.
 */
#include "plan/resolve/resolve.h"

#include <stdlib.h>

#include "base/str.h"
#include "plan/lora_targets.h"

void maq__resolve_update(struct maq_resolver *r)
{
    const struct maq_plan *p = &r->job->plan;
    if (p->lora_rank > 0 && p->base_quantization != MAQ_BASE_NONE && p->precision >= MAQ_PRECISION_FP8_DELAYED)
        MAQ_REFUSE(r, MAQ_CODE_PLAN_PRECISION, "lora_base_quantization", "leave it out, or set precision: bf16",
                   "a weight is quantized once: by the recipe of 8 or 4 bits, or as LoRA's frozen base");
    if (p->update != MAQ_UPDATE_MUON)
        return;
    if (p->sharding > MAQ_SHARDING_OPTIM)
        MAQ_REFUSE(r, MAQ_CODE_PLAN_UPDATE, "optimizer", "share the optimizer's state alone: optim",
                   "Muon works on whole matrices, and data_parallel_sharding_strategy cuts them");
    if (p->lora_rank > 0)
        MAQ_REFUSE(r, MAQ_CODE_PLAN_UPDATE, "optimizer", "leave it out, or lora_rank",
                   "adapters are updated by Adam here, not by Muon");
    if (p->optimizer_offload > 0)
        MAQ_REFUSE(r, MAQ_CODE_PLAN_UPDATE, "optimizer", "leave it out, or optimizer_offload_fraction",
                   "Muon's products do not run on the host");
}

void maq__resolve_optimizer(struct maq_resolver *r)
{
    const char *key, *remedy, *wrong = maq_optimizer_fault(r->job, &key, &remedy);
    if (wrong)
        MAQ_REFUSE(r, MAQ_CODE_PLAN_UPDATE, key, remedy, "%s", wrong);
}

/* Says which of the targets of `key` names nothing in the model, and what there is. */
static enum maq_status refuse_target(const struct maq_job *job, const struct maq_job_places *at, const char *key,
                                     struct maq_str wrong, bool known, struct maq_diag *diag)
{
    struct maq_buf hint;
    const struct maq_module *expert = maq_model_find_module(&job->model, MAQ_MODULE_EXPERT_LINEAR, MAQ_PART_COUNT);
    maq_buf_init(&hint, 1024);
    maq_buf_addf(&hint, "%s has all-linear, ", job->model.name);
    maq_lora_add_names(&hint, maq_lora_model_sites(&job->model), ", ");
    maq_buf_addf(&hint, "; PEFT's names (q_proj) mean the same%s",
                 expert ? "; routed experts get no adapters here" : "");
    char *text = maq_buf_take(&hint);
    maq_diag_add(diag, MAQ_ERROR, MAQ_CODE_PLAN_ADAPTERS, maq_place_of_plan(at, key), text,
                 known ? "'%.*s' is in other models, but nothing in %s"
                       : "'%.*s' is no module that LoRA could adapt in %s",
                 (int)wrong.len, wrong.ptr, job->model.name);
    free(text);
    return MAQ_BAD_INPUT;
}

enum maq_status maq_job_place_adapters(struct maq_job *job, const struct maq_job_places *at, struct maq_diag *diag)
{
    struct maq_plan *p = &job->plan;
    struct maq_str wrong = {0};
    bool known = false;
    p->use_dora = p->use_dora && p->lora_rank > 0;
    p->lora_sites = p->lora_rank > 0 ? maq_lora_sites(p->lora_targets, &job->model, &wrong, &known) : 0;
    if (p->lora_rank > 0 && p->lora_sites == 0)
        return refuse_target(job, at, "lora_target_modules", wrong, known, diag);
    struct maq_str projected = p->galore_targets.len > 0 ? p->galore_targets : MAQ_STR("all-linear");
    p->galore_sites = p->galore_rank > 0 ? maq_lora_sites(projected, &job->model, &wrong, &known) : 0;
    if (p->galore_rank > 0 && p->galore_sites == 0)
        return refuse_target(job, at, "galore_target_modules", wrong, known, diag);
    return MAQ_OK;
}

void maq__resolve_adapters(struct maq_resolver *r)
{
    r->failed |= maq_job_place_adapters(r->job, r->at, r->diag) != MAQ_OK;
}

void maq__resolve_recompute(struct maq_resolver *r)
{
    struct maq_plan *p = &r->job->plan;
    r->failed |= maq_plan_read_lists(p, r->at->list, r->diag) != MAQ_OK;
    const struct maq_node *list = r->at->list[MAQ_PLAN_RECOMPUTE_MODULES];
    bool by_op = p->recompute == MAQ_RECOMPUTE_SELECTIVE && p->selective_ac == MAQ_SELECTIVE_AC_OP;
    if (by_op)
        p->recompute_parts = 0;
    else if (p->recompute == MAQ_RECOMPUTE_SELECTIVE && p->recompute_parts == 0)
        p->recompute_parts = 1u << MAQ_PART_CORE_ATTENTION;
    if (by_op && list)
        MAQ_REFUSE(r, MAQ_CODE_PLAN_RECOMPUTE, "recompute_modules", "leave one of the two out",
                   "selective_ac_option op chooses what is recomputed by operators, recompute_modules by modules");
    if (p->recompute != MAQ_RECOMPUTE_SELECTIVE && p->recompute_parts != 0)
        MAQ_REFUSE(r, MAQ_CODE_PLAN_RECOMPUTE, "recompute_modules", "set recompute_granularity: selective",
                   "recompute_modules has no effect with recompute_granularity %s",
                   p->recompute == MAQ_RECOMPUTE_FULL ? "full" : "none");
    if (p->recompute_num_layers > (int32_t)r->job->model.num_layers)
        MAQ_REFUSE(r, MAQ_CODE_PLAN_RECOMPUTE, "recompute_num_layers", NULL,
                   "recompute_num_layers %d, but the model has %u layers", p->recompute_num_layers,
                   r->job->model.num_layers);
    bool block = p->recompute == MAQ_RECOMPUTE_FULL && p->recompute_method == MAQ_RECOMPUTE_BLOCK;
    if (p->recompute_stages.len > 0 && (!block || p->recompute_num_layers > 0))
        MAQ_REFUSE(r, MAQ_CODE_PLAN_RECOMPUTE, "recompute_num_layers_per_stage",
                   "set recompute_granularity: full and recompute_method: block, without recompute_num_layers",
                   "recompute_num_layers_per_stage is a number of layers from the first of each virtual stage on%s",
                   block ? ", and recompute_num_layers gives another" : "");
}

/* What Megatron Core refuses (transformer_config.py). */
void maq__resolve_offload(struct maq_resolver *r)
{
    const struct maq_plan *p = &r->job->plan;
    const struct maq_node *list = r->at->list[MAQ_PLAN_OFFLOAD_MODULES];
    uint32_t moved = p->offload_modules;
    bool listed =
        moved != 0 || (list && (list->first || list->text.len > 0)); /* words that are none are told already */
    const char *key = "offload_modules";
    if (p->offload_inputs != listed)
        MAQ_REFUSE(r, MAQ_CODE_PLAN_OFFLOAD, listed ? key : "fine_grained_activation_offloading",
                   "set fine_grained_activation_offloading: true and a list of offload_modules",
                   listed ? "offload_modules without fine_grained_activation_offloading"
                          : "fine_grained_activation_offloading without offload_modules");
    const char *remedy, *wrong = maq_offload_conflict(p, &remedy);
    if (wrong)
        MAQ_REFUSE(r, MAQ_CODE_PLAN_OFFLOAD, key, remedy, "%s", wrong);
    wrong = maq_offload_fault(p, &remedy);
    if (wrong)
        MAQ_REFUSE(r, MAQ_CODE_PLAN_OFFLOAD, key, remedy, "%s", wrong);
}

/* Where parameters and optimizer states are (DeepSpeed 0.19.6, runtime/zero/offload_config.py: "valid only with stage 3"). */
void maq__resolve_offloaded_states(struct maq_resolver *r)
{
    const struct maq_plan *p = &r->job->plan;
    const char *key = p->offload_param == MAQ_OFFLOAD_NVME ? "offload_param_device" : "offload_optimizer_device";
    if (p->offload_param != MAQ_OFFLOAD_NONE && p->sharding != MAQ_SHARDING_PARAMS)
        MAQ_REFUSE(r, MAQ_CODE_PLAN_OFFLOAD_STATES, "offload_param_device",
                   "set data_parallel_sharding_strategy: optim_grads_params (ZeRO-3)",
                   "offload_param_device %s, but only ZeRO-3 fetches parameters where they are used",
                   maq_offload_device_name((enum maq_offload_device)p->offload_param));
    if (p->offload_param != MAQ_OFFLOAD_NONE && p->gather_once)
        MAQ_REFUSE(r, MAQ_CODE_PLAN_OFFLOAD_STATES, "gather_once_per_step", "use one of the two",
                   "parameters that stay gathered over a step do not wait on the host");
    if (p->offload_param != MAQ_OFFLOAD_NONE && p->reduce_once && !p->reshard_after_forward && r->job->microbatches > 1)
        MAQ_REFUSE(
            r, MAQ_CODE_PLAN_OFFLOAD_STATES, "reduce_once_per_step", "set reduce_once_per_step: false",
            "gradients that go to the host behind all backward passes are not modelled without reshard_after_forward");
    if (p->offload_param != MAQ_OFFLOAD_NONE && !r->job->framework.low_precision_shards && p->optimizer_offload < 1)
        MAQ_REFUSE(r, MAQ_CODE_PLAN_OFFLOAD_STATES, "offload_param_device",
                   "set optimizer_offload_fraction: 1, or framework: deepspeed",
                   "parameters on the host are the optimizer's own there, so that all of it runs on the host "
                   "(optimizer_offload_fraction %g)",
                   p->optimizer_offload);
    if (p->offload_optimizer != MAQ_OFFLOAD_NVME && p->offload_param != MAQ_OFFLOAD_NVME)
        return;
    for (uint32_t g = 0; g < r->job->cluster.n_groups; g++)
        if (!(r->job->cluster.groups[g].device.nvme_read_bps > 0) ||
            !(r->job->cluster.groups[g].device.nvme_write_bps > 0)) {
            MAQ_REFUSE(
                r, MAQ_CODE_PLAN_OFFLOAD_STATES, key,
                "say it: 'h100-sxm:8, nvme 10GB/s 5GB/s', or nvme_read_bandwidth and nvme_write_bandwidth of a node "
                "group",
                "%s nvme, and the cluster does not say what the NVMe of a %s node reads and writes", key,
                r->job->cluster.groups[g].device.name);
            return;
        }
}

void maq__resolve_graphs(struct maq_resolver *r)
{
    const char *remedy, *wrong = maq_graphs_conflict(&r->job->plan, &remedy);
    if (wrong)
        MAQ_REFUSE(r, MAQ_CODE_PLAN_GRAPHS, "cuda_graph_scope", remedy, "%s", wrong);
}
