/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offload.c - maps the modules of a layer to Megatron Core's offload modules: the projection of queries, keys and
 * values, core attention, the output projection, the parts of experts, and the norms in front of them. See offload.h.
 */
#include "train/memory/offload.h"

#include <string.h>

/* Of the first module of a kind, from `from` on; n_modules: there is none. */
static uint32_t find(const struct maq_layer *layer, uint32_t from, enum maq_module_kind kind)
{
    while (from < layer->n_modules && layer->modules[from].kind != kind)
        from++;
    return from;
}

/* The norm in front of a module; 0 where there is none. */
static uint32_t norm_before(const struct maq_layer *layer, uint32_t at)
{
    uint32_t i = at;
    while (i > 0 && layer->modules[i].part != MAQ_PART_NORM)
        i--;
    return i;
}

/* From its norm to the product behind core attention. */
static enum maq_offload_module in_attention(const struct maq_layer *layer, uint32_t i, uint32_t core)
{
    const struct maq_module *m = &layer->modules[i];
    bool apart = layer->mixer && strcmp(layer->mixer, "mla") == 0;
    bool projects = m->part == MAQ_PART_ATTENTION || m->part == MAQ_PART_MLA_UP;
    if (i == core)
        return MAQ_OFFLOAD_CORE_ATTN;
    if (i > core)
        return m->part == MAQ_PART_ATTENTION && m->kind == MAQ_MODULE_LINEAR ? MAQ_OFFLOAD_ATTN_PROJ
                                                                             : MAQ_OFFLOAD_COUNT;
    if (i < norm_before(layer, core) || (!projects && m->part != MAQ_PART_NORM))
        return MAQ_OFFLOAD_COUNT; /* what an MTP depth has in front of its layer */
    return m->part == MAQ_PART_NORM && apart ? MAQ_OFFLOAD_ATTN_NORM : MAQ_OFFLOAD_QKV_LINEAR;
}

/* The module that it is in; MAQ_OFFLOAD_COUNT: in none. */
static enum maq_offload_module module_of(const struct maq_layer *layer, uint32_t i, bool fused)
{
    const struct maq_module *m = &layer->modules[i];
    const uint32_t core = find(layer, 0, MAQ_MODULE_ATTENTION), behind = find(layer, core, MAQ_MODULE_RESIDUAL);
    if (m->kind == MAQ_MODULE_EXPERT_LINEAR && !fused)
        return i == find(layer, 0, MAQ_MODULE_EXPERT_LINEAR) ? MAQ_OFFLOAD_EXPERT_FC1 : MAQ_OFFLOAD_COUNT;
    if (m->kind == MAQ_MODULE_EXPERT_ACTIVATION && !fused)
        return MAQ_OFFLOAD_MOE_ACT;
    if (m->kind == MAQ_MODULE_EXPERT_LINEAR || m->kind == MAQ_MODULE_EXPERT_ACTIVATION)
        return MAQ_OFFLOAD_FUSED_GROUP_MLP;
    if (core < layer->n_modules && i < behind)
        return in_attention(layer, i, core);
    const uint32_t router = find(layer, 0, MAQ_MODULE_ROUTER);
    return router < layer->n_modules && m->part == MAQ_PART_NORM && i == norm_before(layer, router)
               ? MAQ_OFFLOAD_MLP_NORM
               : MAQ_OFFLOAD_COUNT;
}

bool maq_offload_chosen(const struct maq_plan *plan, const struct maq_layer *layer, uint32_t i)
{
    if (plan->offload_modules == 0)
        return false;
    bool fused = plan->offload_modules & 1u << MAQ_OFFLOAD_FUSED_GROUP_MLP;
    enum maq_offload_module module = module_of(layer, i, fused);
    return module < MAQ_OFFLOAD_COUNT && plan->offload_modules & 1u << module;
}
