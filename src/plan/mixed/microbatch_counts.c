/* SPDX-License-Identifier: Apache-2.0 */
/*
 * microbatch_counts.c - micro batches of a mixed plan, of its pipelines and of its replicas, where shares are equal
 * or given; and helpers of its readers. See mixed_plan.h.
 */
#include "base/check.h"
#include "base/str.h"
#include "plan/mixed/mixed_plan.h"

enum maq_status maq__mixed_keep(const char **out, struct maq_str s, struct maq_arena *arena, struct maq_diag *diag)
{
    *out = s.len > 0 ? maq_arena_strdup(arena, s) : NULL;
    return s.len > 0 && !*out ? maq_no_memory(diag, "the plan") : MAQ_OK;
}

static uint32_t part(uint32_t whole, uint32_t parts)
{
    return whole / parts + (whole % parts > 0);
}

uint32_t maq_mixed_microbatches(const struct maq_mixed_plan *plan)
{
    return part(plan->global_batch, plan->micro_batch);
}

uint32_t maq_mixed_pipeline_microbatches(const struct maq_mixed_plan *plan, uint32_t pipeline)
{
    uint32_t own = plan->pipelines[pipeline].microbatches;
    return own > 0 ? own : part(maq_mixed_microbatches(plan), plan->n_pipelines);
}

uint32_t maq_mixed_replica_microbatches(const struct maq_mixed_plan *plan, uint32_t pipeline, uint32_t stage,
                                        uint32_t replica)
{
    const struct maq_mixed_stage *s = &plan->pipelines[pipeline].stages[stage];
    uint32_t own = s->replicas[replica].microbatches;
    return own > 0 ? own : part(maq_mixed_pipeline_microbatches(plan, pipeline), s->n_replicas);
}

bool maq__mixed_even_stage(struct maq_mixed_stage *out, const struct maq_even_stage *s, struct maq_arena *arena)
{
    struct maq_mixed_member *member = MAQ_ARENA_NEW(arena, struct maq_mixed_member, 1);
    struct maq_mixed_replica *replicas = MAQ_ARENA_NEW(arena, struct maq_mixed_replica, s->replicas);
    const char *device = maq_arena_strdup(arena, maq_str_of(s->device)),
               *group = maq_arena_printf(arena, "%u", s->island);
    if (!member || !replicas || !device || !group)
        return false;
    *member = (struct maq_mixed_member){.device = device, .devices = s->tp * s->cp};
    for (uint32_t i = 0; i < s->replicas; i++)
        replicas[i] = (struct maq_mixed_replica){.members = member,
                                                 .n_members = 1,
                                                 .group = group,
                                                 .tp = s->tp,
                                                 .cp = s->cp,
                                                 .ep = s->ep,
                                                 .etp = s->etp == s->tp ? 0 : s->etp,
                                                 .cp_comm = s->cp > 1 ? s->cp_comm : MAQ_CP_P2P,
                                                 .sequence_parallel = s->sequence_parallel && s->tp > 1};
    *out = (struct maq_mixed_stage){.first_layer = s->first_layer,
                                    .layers = s->layers,
                                    .n_replicas = s->replicas,
                                    .replicas = replicas,
                                    .sharding = s->sharding,
                                    .recompute = s->recompute,
                                    .recompute_parts = s->recompute_parts,
                                    .optimizer_offload = s->optimizer_offload,
                                    .optimizer_instances = s->optimizer_instances > 1 ? s->optimizer_instances : 0,
                                    .offload_layers = s->offload_layers,
                                    .offload_modules = s->offload_modules,
                                    .on_devices_of = -1};
    return true;
}
