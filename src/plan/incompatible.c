/* SPDX-License-Identifier: Apache-2.0 */
/*
 * incompatible.c - combinations of settings that Megatron Core refuses: offloaded modules with recomputation or other
 * offloading, overlapped expert all-to-all with recomputation, overlapped shared experts or a dispatcher that has
 * no all-to-all, and CUDA graphs of parts of layers with what takes tensors away from under them. See job_build.h.
 */
#include "plan/job_build.h"

#define MOVES(module) (1u << MAQ_OFFLOAD_##module)
#define EXPERTS (MOVES(EXPERT_FC1) | MOVES(MOE_ACT) | MOVES(FUSED_GROUP_MLP))

const char *maq_offload_fault(const struct maq_plan *plan, const char **remedy)
{
    uint32_t moved = plan->offload_modules;
    if (moved & MOVES(ATTN_PROJ) && !(moved & MOVES(CORE_ATTN))) {
        *remedy = "add core_attn";
        return "the input of attn_proj is core attention's output, which its backward pass needs";
    }
    if (moved & MOVES(FUSED_GROUP_MLP) && moved & (MOVES(EXPERT_FC1) | MOVES(MOE_ACT))) {
        *remedy = "leave expert_fc1 and moe_act out";
        return "fused_group_mlp has expert_fc1 and moe_act in it";
    }
    if (moved & MOVES(FUSED_GROUP_MLP) && !plan->op_fuser) {
        *remedy = "set use_transformer_engine_op_fuser: true, or use expert_fc1, moe_act";
        return "without use_transformer_engine_op_fuser there is no fused_group_mlp";
    }
    return NULL;
}

const char *maq_offload_conflict(const struct maq_plan *plan, const char **remedy)
{
    uint32_t moved = plan->offload_modules;
    if (moved == 0)
        return NULL;
    if (plan->offload_layers > 0) {
        *remedy = "use one of the two";
        return "cpu_offloading_num_layers offloads whole layers, offload_modules inputs of modules";
    }
    if (plan->recompute == MAQ_RECOMPUTE_FULL) {
        *remedy = "use recompute_granularity: selective";
        return "layers that are recomputed keep nothing that could be offloaded";
    }
    if (moved & EXPERTS && plan->recompute_parts & 1u << MAQ_PART_MOE) {
        *remedy = "leave moe out of recompute_modules, or the experts' modules out of this";
        return "with moe recomputed the experts keep nothing that could be offloaded";
    }
    return NULL;
}

bool maq_plan_pairs_passes(const struct maq_plan *plan)
{
    return plan->pp == 1 || plan->schedule == MAQ_SCHEDULE_INTERLEAVED || plan->schedule == MAQ_SCHEDULE_DUALPIPE ||
           plan->schedule == MAQ_SCHEDULE_DUALPIPE_V;
}

bool maq_plan_merges_passes(const struct maq_plan *plan)
{
    bool two_ways = plan->schedule == MAQ_SCHEDULE_DUALPIPE || plan->schedule == MAQ_SCHEDULE_DUALPIPE_V;
    return plan->overlap_ep == MAQ_ON && plan->ep > 1 && !two_ways;
}

bool maq_plan_knows_expert_rows(const struct maq_plan *plan)
{
    const bool deep_ep = plan->dispatcher == MAQ_DISPATCHER_DEEPEP && plan->ep > 1;
    return plan->capacity_factor > 0 && plan->pads_experts != MAQ_OFF && !deep_ep;
}

const char *maq_overlap_ep_conflict(const struct maq_plan *plan, const char **remedy)
{
    if (plan->delay_wgrad && plan->ep > 1 && !maq_plan_merges_passes(plan)) {
        *remedy = plan->overlap_ep == MAQ_ON ? "use an interleaved pipeline, or leave it out"
                                             : "set overlap_moe_expert_parallel_comm: true, or leave it out";
        return "delay_wgrad_compute leaves gradients of weights for the exchanges of experts of a merged pass, and "
               "there is none";
    }
    bool megatrons = plan->pp == 1 || plan->schedule == MAQ_SCHEDULE_1F1B || plan->schedule == MAQ_SCHEDULE_INTERLEAVED;
    if (plan->overlap_ep != MAQ_ON || plan->ep == 1 || !megatrons)
        return NULL;
    if (plan->recompute == MAQ_RECOMPUTE_FULL) {
        *remedy = "use recompute_granularity: selective";
        return "a layer's passes are cut at its exchanges of experts, so it cannot be recomputed as a whole";
    }
    if (plan->recompute_parts & 1u << MAQ_PART_MOE) {
        *remedy = "leave moe out of recompute_modules";
        return "exchanges of experts that are recomputed have no pass that they could run under";
    }
    if (plan->overlap_shared_experts) {
        *remedy = "use one of the two";
        return "with moe_shared_expert_overlap the shared experts run under the exchange already";
    }
    if (plan->dispatcher == MAQ_DISPATCHER_ALLGATHER) {
        *remedy = "use moe_token_dispatcher_type alltoall, deepep or hybridep";
        return "the dispatcher allgather has no exchange that could run apart";
    }
    return NULL;
}

const char *maq_graphs_conflict(const struct maq_plan *plan, const char **remedy)
{
    uint32_t scope = plan->cuda_graphs ? 0 : plan->graph_scope;
    if (scope == 0)
        return NULL;
    if (plan->offload_layers > 0) {
        *remedy = "use one of the two";
        return "graphs of parts of layers have their tensors at fixed addresses, and cpu_offloading_num_layers takes "
               "them "
               "away";
    }
    if (plan->recompute == MAQ_RECOMPUTE_FULL) {
        *remedy = "use recompute_granularity: selective, or enable_cuda_graph for all passes of a step";
        return "a layer that is recomputed as a whole has no graphs of its parts";
    }
    if (scope & 1u << MAQ_GRAPH_MOE_ROUTER && plan->recompute_parts & 1u << MAQ_PART_MOE) {
        *remedy = "leave moe out of recompute_modules, or moe_router out of this";
        return "a router that is a graph cannot be recomputed with its experts";
    }
    if (scope & 1u << MAQ_GRAPH_MOE_ROUTER && scope & 1u << MAQ_GRAPH_MOE) {
        *remedy = "leave moe_router out";
        return "moe has moe_router in it";
    }
    if (scope & 1u << MAQ_GRAPH_MOE_PREPROCESS && !(scope & 1u << MAQ_GRAPH_MOE_ROUTER)) {
        *remedy = "add moe_router";
        return "moe_preprocess goes with moe_router alone";
    }
    if (scope & 1u << MAQ_GRAPH_MOE && !maq_plan_knows_expert_rows(plan)) {
        *remedy = "set moe_expert_capacity_factor and moe_pad_expert_input_to_capacity, or use moe_router, "
                  "moe_preprocess";
        return "how many tokens an expert gets is not known when a graph is captured, unless all are padded to a "
               "capacity";
    }
    return NULL;
}
