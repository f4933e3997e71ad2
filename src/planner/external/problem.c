/* SPDX-License-Identifier: Apache-2.0 */
/*
 * problem.c - describes model and islands to a parallelizer: FLOP, parameters and activations of each layer, peaks
 * and links of each node group. FLOP are model FLOP; activations are those of the options of least TP that keep the
 * most and the least. See problem.h.
 */
#include "planner/external/problem.h"

#include <math.h>

#include "base/check.h"
#include "plan/job_build.h"
#include "planner/mixed/space.h"
#include "train/memory/stage_memory.h"
#include "train/predict.h"

/* ---- the model ---- */

/* Forward FLOP of a sample: a third of the model FLOP of a model that is this layer alone. */
static double forward_flop(const struct maq_layer *layer, int64_t seq)
{
    struct maq_model alone = {.embedding = *layer};
    return (double)seq * maq_model_flop_per_token(&alone, seq, true) / 3;
}

static const char *name_layer(struct maq_parallelizer_layer *out, const struct maq_job *job, uint32_t atom, uint32_t n,
                              struct maq_arena *arena)
{
    const struct maq_model *m = &job->model;
    int64_t seq = job->workload.seq;
    if (atom == 0) {
        out->forward_flop = forward_flop(&m->embedding, seq);
        return "embedding";
    }
    if (atom <= m->num_layers) {
        uint32_t kind = m->kind_of[atom - 1];
        out->forward_flop = forward_flop(&m->kinds[kind], seq);
        return maq_arena_printf(arena, "layer %u", kind);
    }
    out->forward_flop = forward_flop(&m->output, seq);
    if (atom + 1 == n)
        return "output";
    out->forward_flop = m->mtp_layers * (out->forward_flop + forward_flop(&m->mtp, seq));
    return "mtp";
}

/* Parameters and activations from the options of the least TP degree: those that keep the most and the least. */
static void measure_layer(struct maq_parallelizer_layer *out, double gradient_bytes, const struct maq_stage_table *t,
                          uint32_t atom)
{
    uint32_t tp = UINT32_MAX;
    for (uint32_t o = 0; o < t->n_options; o++)
        tp = t->options[o].devices < tp ? t->options[o].devices : tp;
    out->recomputed_bytes = HUGE_VAL;
    for (uint32_t o = 0; o < t->n_options; o++) {
        const struct maq_stage_option *option = &t->options[o];
        if (option->devices != tp)
            continue;
        double kept = tp * (option->flight_bytes[atom + 1] - option->flight_bytes[atom]) / option->samples;
        out->parameters = tp * (option->sync_bytes[atom + 1] - option->sync_bytes[atom]) / gradient_bytes;
        out->kept_bytes = fmax(out->kept_bytes, kept);
        out->recomputed_bytes = fmin(out->recomputed_bytes, kept);
    }
    /* prefix sums leave the rounding of what lies before: equal layers are to have equal figures */
    out->parameters = round(out->parameters);
    out->kept_bytes = round(out->kept_bytes);
    out->recomputed_bytes = t->n_options > 0 ? round(out->recomputed_bytes) : 0;
}

static enum maq_status describe_model(struct maq_slices_chain *chain, const struct maq_job *resolved,
                                      struct maq_diag *diag)
{
    const struct maq_job *job = &chain->space.job;
    const struct maq_chain_wave wave = {.mbs = 0, .replicas = 1};
    uint32_t n = chain->costs.atoms.n;
    struct maq_parallelizer_layer *layers = MAQ_ARENA_NEW(chain->arena, struct maq_parallelizer_layer, n);
    struct maq_stage_table t;
    double stored = maq_dtype_bytes((enum maq_dtype)resolved->store_dtype),
           reduced = maq_dtype_bytes((enum maq_dtype)resolved->plan.grad_reduce_dtype);
    if (!layers || !maq_chain_costs_table(&t, &chain->costs, &wave, chain->arena))
        return maq_no_memory(diag, "the search");
    for (uint32_t i = 0; i < n; i++) {
        if (!(layers[i].kind = name_layer(&layers[i], job, i, n, chain->arena)))
            return maq_no_memory(diag, "the search");
        measure_layer(&layers[i], reduced, &t, i);
        layers[i].boundary_bytes = maq_model_border(&job->model, i > 0 ? i - 1 : 0, job->workload.seq) * stored;
    }
    struct maq_plan whole = resolved->plan;
    whole.sharding = MAQ_SHARDING_NONE;
    bool quantized = resolved->math_dtype != resolved->store_dtype;
    chain->model =
        (struct maq_parallelizer_model){.size = sizeof chain->model,
                                        .name = job->model.name,
                                        .sequence_length = (uint32_t)job->workload.seq,
                                        .global_batch_size = (uint32_t)job->workload.gbs,
                                        .state_bytes = maq_state_bytes(resolved, &whole, 1, quantized ? 1 : 0, 1),
                                        .gradient_bytes = reduced,
                                        .n_layers = n,
                                        .layers = layers};
    return MAQ_OK;
}

/* ---- islands ---- */

/* A job on the island alone, for what its precision makes of it. */
static enum maq_status resolve_on(struct maq_job *out, const struct maq_slices_chain *chain, uint32_t g)
{
    const struct maq_job_places nowhere = {0};
    const struct maq_pool *pool = &chain->costs.groups.at[g];
    *out = chain->space.job;
    out->cluster = pool->cluster;
    out->plan.tp = out->plan.cp = out->plan.ep = out->plan.pp = out->plan.vp = 1;
    out->plan.mbs = 1;
    out->workload.gbs = (int32_t)pool->count;
    return maq_job_resolve(out, &nowhere, NULL);
}

static void describe_island(struct maq_parallelizer_island *out, const struct maq_slices_chain *chain, uint32_t g,
                            int dtype)
{
    const struct maq_node_group *group = &chain->costs.groups.at[g].group;
    *out = (struct maq_parallelizer_island){.size = sizeof *out,
                                            .index = g,
                                            .device = group->device.name,
                                            .nodes = (uint32_t)group->nodes,
                                            .devices_per_node = (uint32_t)group->devices_per_node,
                                            .memory_bytes = chain->costs.pools[g].capacity_bytes,
                                            .flop_per_s = group->device.peak_flops[dtype],
                                            .memory_bytes_per_s = group->device.mem_bps,
                                            .scale_up_bytes_per_s = group->domain_bps,
                                            .network_bytes_per_s = maq_node_group_network_bps(group),
                                            .network_latency_s = group->fabric.latency_s};
    if (out->flop_per_s <= 0) /* FP32 outside the matrix units */
        out->flop_per_s = group->device.vector_flops;
}

enum maq_status maq_slices_chain_init(struct maq_slices_chain *chain, const struct maq_loaded_job *open,
                                      const char *const *lists, size_t n_lists, struct maq_arena *arena,
                                      struct maq_diag *diag)
{
    const struct maq_mixed_space_lists space_lists = {.lists = lists, .n = n_lists, .as_predicted = true};
    struct maq_job resolved = {.name = NULL};
    *chain = (struct maq_slices_chain){.arena = arena};
    MAQ_TRY(maq_mixed_space_init(&chain->space, open, &space_lists, arena, diag));
    MAQ_TRY(maq_chain_costs_init(&chain->costs, &chain->space, diag));
    chain->n_islands = chain->costs.n_pools;
    for (uint32_t g = chain->n_islands; g-- > 0;) { /* the first one is kept */
        MAQ_TRY(resolve_on(&resolved, chain, g));
        describe_island(&chain->islands[g], chain, g, resolved.math_dtype);
    }
    return describe_model(chain, &resolved, diag);
}

void maq_slices_chain_fini(struct maq_slices_chain *chain)
{
    maq_chain_costs_fini(&chain->costs);
}

/* ---- transfers ---- */

struct maq_hop_class maq_hop_class_of(const struct maq_parallelizer_stage *stage, uint32_t island)
{
    return (struct maq_hop_class){island, stage->devices, stage->boundary_bytes};
}

double maq_slices_hop_s(const struct maq_slices_chain *chain, const struct maq_hop_class *from,
                        const struct maq_hop_class *to)
{
    const struct maq_pool *pool = &chain->costs.groups.at[from->island];
    bool inside = from->island == to->island && pool->group.nodes == 1 && pool->count > 1;
    uint32_t senders = from->senders < to->senders ? from->senders : to->senders;
    return maq_chain_hop_s(&chain->costs, from->island, to->island, fmax(from->bytes, to->bytes), senders, inside);
}
