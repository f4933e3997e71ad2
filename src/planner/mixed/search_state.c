/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search_state.c - limits of a search, the sorted list of the best plans, and stages of compositions as stages of
 * plans. See search_state.h.
 */
#include "planner/mixed/search_state.h"

#define FEW_LABELS (1u << 12) /* enough for most dense models */
#define MOST_BOXES 60u
#define BEAM 40u /* of the first pass: a dozen leave a plan 4 % slower on the 20 devices of examples/tangram/c3.yaml */

bool maq_mixed_run_table(struct maq_stage_table *out, const void *ctx, uint32_t i, struct maq_arena *arena)
{
    const struct maq_mixed_run *run = ctx;
    return maq_chain_costs_table(out, &run->costs, &run->waves[i], arena);
}

struct maq_compose_limits maq_mixed_run_limits(const struct maq_mixed_search_opts *opts)
{
    struct maq_compose_limits limits = MAQ_COMPOSE_LIMITS_INIT;
    limits.threads = opts->threads;
    limits.boxes = MOST_BOXES;
    limits.beam = BEAM;
    limits.labels = FEW_LABELS;
    limits.stop = opts->stop;
    return limits;
}

/* Whether another of the searches found the same plan before. */
static bool found_again(const struct maq_mixed_search_plan *a, const struct maq_mixed_search_plan *b)
{
    bool alike = a->step_s >= b->step_s && a->micro_batch == b->micro_batch && a->replicas == b->replicas &&
                 a->chunks == b->chunks && a->n_stages == b->n_stages && a->n_pipelines == b->n_pipelines &&
                 !a->uniform == !b->uniform;
    for (uint32_t i = 0; alike && i < a->n_stages; i++)
        alike = a->stages[i].first_layer == b->stages[i].first_layer && a->stages[i].island == b->stages[i].island;
    return alike;
}

void maq_mixed_run_insert(struct maq_mixed_run *run, const struct maq_mixed_search_opts *opts,
                          const struct maq_mixed_search_plan *plan)
{
    uint32_t *n = &run->result.n_plans, at = *n, room = opts->top > 0 ? opts->top : 1;
    while (at > 0 && run->plans[at - 1].step_s > plan->step_s)
        at--;
    if (at == room || (at > 0 && found_again(&run->plans[at - 1], plan)))
        return;
    *n += *n < room;
    for (uint32_t i = *n - 1; i > at; i--)
        run->plans[i] = run->plans[i - 1];
    run->plans[at] = *plan;
    if (plan->overlap_ep == MAQ_AUTO) /* as in the run's compositions */
        run->plans[at].overlap_ep = run->space.job.plan.overlap_ep;
}

void maq_mixed_run_stage(struct maq_mixed_search_stage *out, const struct maq_mixed_run *run, const struct maq_stage *s,
                         const struct maq_stage_table *t)
{
    const struct maq_stage_option *o = &t->options[s->parts[0].option];
    struct maq_stage_strategy is = maq_stage_strategy_of(&run->costs, o->id);
    const struct maq_chain_redo *redo = &run->space.redo[is.redo];
    double capacity = t->capacity_bytes[o->kind];
    *out = (struct maq_mixed_search_stage){.first_layer = s->first,
                                           .layers = s->end - s->first,
                                           .island = is.pool,
                                           .islands = 1,
                                           .tp = is.tp,
                                           .cp = is.cp,
                                           .ep = is.ep,
                                           .etp = is.etp,
                                           .cp_comm = is.cp_comm,
                                           .optimizer_offload = is.host,
                                           .optimizer_instances = is.copies,
                                           .offload = run->space.offload[is.offload].layers,
                                           .offload_modules = run->space.offload[is.offload].modules,
                                           .replicas = s->parts[0].replicas,
                                           .devices = o->devices * s->parts[0].replicas,
                                           .recompute = redo->recompute,
                                           .recompute_parts = redo->parts,
                                           .sharding = is.sharding,
                                           .compute_s = s->compute_s,
                                           .hop_s = s->hop_s,
                                           .sync_s = s->sync_s,
                                           .memory_bytes = s->memory_share * capacity,
                                           .capacity_bytes = maq_search_device_bytes(&run->memory, capacity),
                                           .in_flight = s->in_flight,
                                           .on_devices_of = -1};
}
