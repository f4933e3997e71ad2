/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lower.c - lowers one pass of a layer: its modules in the order of the pass, each by the file for its kind (modules.h),
 * recomputation before them, and the host time of issuing them.
 *
 * Sources of what is executed: Megatron-LM core (transformer_layer.py, tensor_parallel/layers.py, fusions/) and Transformer Engine.
 */
#include "lower/lower.h"

#include <math.h>

#include "lower/contention.h"
#include "lower/local.h"
#include "lower/modules.h"
#include "plan/job_build.h"

/*
 * Balanced, a rank's experts get as many rows as its own tokens send out; expert-TP ranks all see the rows of their group. With a
 * capacity the busiest expert gets no more than that, and where all are padded to it they are alike (Megatron-LM,
 * transformer/moe/moe_utils.py, get_capacity(), and token_dispatcher.py).
 */
static void size_experts(struct maq_lower *lower, const struct maq_moe_geometry *g)
{
    const struct maq_plan *p = lower->plan;
    const double tokens = (double)lower->tokens_region, mean = tokens * g->topk / g->experts;
    double kept = p->capacity_factor > 0 && p->capacity_factor < 1.0 ? p->capacity_factor : 1.0;
    lower->local_experts = g->experts / p->ep;
    lower->expert_rows = (int64_t)(tokens * g->topk * kept * p->etp + 0.5);
    if (maq_plan_knows_expert_rows(p)) {
        lower->expert_rows = (int64_t)fmin(ceil(mean * p->capacity_factor), tokens) * g->experts * p->etp;
        lower->imbalance = 1;
    } else if (p->capacity_factor > 0) {
        lower->imbalance = fmin(p->imbalance, p->capacity_factor / kept);
    }
}

void maq_lower_init(struct maq_lower *lower, const struct maq_job *job, struct maq_items *items,
                    struct maq_arena *arena)
{
    const struct maq_plan *p = &job->plan;
    *lower = (struct maq_lower){.job = job, .plan = p, .items = items, .arena = arena, .store = job->store_dtype};
    maq_lower_select(lower, job->groups);
    maq_lower_size(lower, &job->model.kinds[0]);
    lower->store_bytes = maq_dtype_bytes((enum maq_dtype)lower->store);
    lower->vocab_cut = p->vocab_parallel_pipeline ? (int64_t)p->tp * p->pp : p->tp;
    lower->imbalance = p->imbalance;
    const struct maq_module *router = maq_model_find_module(&job->model, MAQ_MODULE_ROUTER, MAQ_PART_COUNT);
    if (router)
        size_experts(lower, &router->u.moe);
}

void maq_lower_size(struct maq_lower *lower, const struct maq_layer *layer)
{
    const struct maq_plan *p = lower->plan;
    lower->seq = maq_layer_tokens(layer, lower->job->workload.seq);
    lower->tokens = (int64_t)p->mbs * lower->seq / p->cp;
    lower->tokens_region = p->sequence_parallel == MAQ_ON ? lower->tokens / p->tp : lower->tokens;
    lower->math = layer->wide ? lower->store : lower->job->math_dtype;
}

void maq_lower_select(struct maq_lower *lower, const struct maq_placement *groups)
{
    lower->groups = groups;
    if (lower->device == lower->items->device)
        return;
    lower->device = lower->items->device;
    lower->attention = maq_attention_on(lower->plan, lower->device);
    lower->host = maq_host_rates_of(lower->job, lower->items->device);
    maq_contention_shares(lower->contention, lower->plan, lower->items->device);
}

/*
 * With the vocabulary spread over the pipeline, the last stage's hidden states go to every stage before the output block and
 * the sum of their gradients comes back after it (Yeung et al., "Balancing Pipeline Parallelism with Vocabulary
 * Parallelism", arXiv 2411.05288).
 */
static void exchange_hidden(struct maq_lowering *l, enum maq_coll_kind kind)
{
    if (!l->lower->plan->vocab_parallel_pipeline)
        return;
    double bytes = maq_lower_border_bytes(l->lower, l->lower->job->model.hidden);
    struct maq_coll c = maq_coll_make(l->lower, kind, MAQ_GROUP_PP, bytes);
    maq_segment_coll(&l->w, &c, MAQ_STREAM_PP);
}

static void lower_module(struct maq_lowering *l, const struct maq_module *m, enum maq_pass pass)
{
    l->w.name = m->name;
    l->w.part = (uint8_t)m->part;
    switch (m->kind) {
    case MAQ_MODULE_LINEAR:
        if (m->part == MAQ_PART_OUTPUT && pass == MAQ_PASS_FORWARD)
            exchange_hidden(l, MAQ_COLL_BROADCAST);
        maq_lower_linear(l, m, pass);
        if (m->part == MAQ_PART_OUTPUT && (pass == MAQ_PASS_BACKWARD || pass == MAQ_PASS_BACKWARD_INPUT))
            exchange_hidden(l, MAQ_COLL_ALL_REDUCE);
        break;
    case MAQ_MODULE_ATTENTION:
        if (pass != MAQ_PASS_BACKWARD_WEIGHT)
            maq_lower_attention(l, m, pass);
        break;
    case MAQ_MODULE_INDEXER:
        if (pass != MAQ_PASS_BACKWARD_WEIGHT)
            maq_lower_indexer(l, m, pass != MAQ_PASS_FORWARD);
        break;
    case MAQ_MODULE_ROUTER:
    case MAQ_MODULE_EXPERT_LINEAR:
    case MAQ_MODULE_EXPERT_ACTIVATION:
        maq_lower_expert(l, m, pass);
        break;
    case MAQ_MODULE_DISPATCH:
    case MAQ_MODULE_COMBINE:
        if (pass != MAQ_PASS_BACKWARD_WEIGHT)
            maq_lower_exchange(l, m, pass);
        break;
    case MAQ_MODULE_EMBEDDING: /* its only gradient is the weight's */
        if (pass == MAQ_PASS_FORWARD || pass == MAQ_PASS_BACKWARD || pass == MAQ_PASS_BACKWARD_WEIGHT)
            maq_lower_pointwise(l, m, pass != MAQ_PASS_FORWARD);
        break;
    case MAQ_MODULE_NORM:
    case MAQ_MODULE_ROPE:
    case MAQ_MODULE_ACTIVATION:
    case MAQ_MODULE_GATE:
    case MAQ_MODULE_RESIDUAL:
    case MAQ_MODULE_CONV1D:
    case MAQ_MODULE_SSM_SCAN:
    case MAQ_MODULE_DELTA_RULE:
    case MAQ_MODULE_SELECTIVE_SCAN:
    case MAQ_MODULE_LOSS:
    case MAQ_MODULE_KIND_COUNT:
        if (pass != MAQ_PASS_BACKWARD_WEIGHT)
            maq_lower_pointwise(l, m, pass != MAQ_PASS_FORWARD);
        break;
    }
}

#define ALL_PARTS UINT32_MAX

static const struct maq_module *module_at(const struct maq_lowering *l, uint32_t i)
{
    return &l->layer->modules[l->pass == MAQ_PASS_FORWARD ? i : l->layer->n_modules - 1 - i];
}

/* A module's gradients are there when what its backward pass computes is. */
static void note_gradients(struct maq_lowering *l, const struct maq_module *m)
{
    if (l->pass == MAQ_PASS_BACKWARD && l->w.out->gradients)
        l->w.out->gradients[m - l->layer->modules] = maq_segment_here(&l->w);
}

/* The shared experts of the layer, in the direction of the pass. */
static void lower_shared(struct maq_lowering *l)
{
    const char *name = l->w.name;
    uint8_t part = l->w.part;
    l->beside = NULL;
    for (uint32_t i = 0; i < l->layer->n_modules; i++)
        if (module_at(l, i)->part == MAQ_PART_SHARED_EXPERTS) {
            lower_module(l, module_at(l, i), l->pass);
            note_gradients(l, module_at(l, i));
        }
    l->w.name = name;
    l->w.part = part;
}

/*
 * Whether a module only produces the layer's output, which no backward pass reads: the last product of an MLP or of experts (whose
 * probabilities are applied to the activation), and the all-to-all after it.
 */
static bool ends_layer(const struct maq_module *m)
{
    bool last = (m->flags & MAQ_MODULE_REDUCE_OUT) != 0;
    return (m->part == MAQ_PART_MLP && m->kind == MAQ_MODULE_LINEAR && last) ||
           (m->kind == MAQ_MODULE_EXPERT_LINEAR && last) || m->kind == MAQ_MODULE_COMBINE;
}

/*
 * Where a layer's second half begins, MLP or experts: with the norm in front of the first module of either. The norm of a layer
 * that has both branches side by side is the first half's.
 */
uint32_t maq_lower_second_half(const struct maq_layer *layer)
{
    const uint32_t parts =
        1u << MAQ_PART_MLP | 1u << MAQ_PART_ROUTER | 1u << MAQ_PART_MOE | 1u << MAQ_PART_SHARED_EXPERTS;
    uint32_t i = 0;
    while (i < layer->n_modules && !(parts & (1u << layer->modules[i].part)))
        i++;
    return i > 1 && layer->modules[i - 1].kind == MAQ_MODULE_NORM ? i - 1 : i;
}

static bool is_mamba(const struct maq_layer *layer)
{
    bool scans = false;
    for (uint32_t i = 0; i < layer->n_modules; i++) {
        if (layer->modules[i].kind == MAQ_MODULE_ATTENTION)
            return false;
        scans |= layer->modules[i].kind == MAQ_MODULE_SSM_SCAN;
    }
    return scans;
}

bool maq_lower_graphed(const struct maq_plan *plan, const struct maq_layer *layer, uint32_t module, uint32_t second)
{
    const struct maq_module *m = &layer->modules[module];
    const uint32_t scope = plan->graph_scope;
    if (scope == 0 || plan->cuda_graphs)
        return plan->cuda_graphs;
    if (module < second)
        return scope & (is_mamba(layer) ? 1u << MAQ_GRAPH_MAMBA : 1u << MAQ_GRAPH_ATTN);
    if (!layer->moe)
        return scope & 1u << MAQ_GRAPH_MLP;
    bool shared = m->part == MAQ_PART_SHARED_EXPERTS && !plan->overlap_shared_experts,
         routes = module == second || m->kind == MAQ_MODULE_ROUTER || shared;
    return scope & ((routes ? 1u << MAQ_GRAPH_MOE_ROUTER : 0) | 1u << MAQ_GRAPH_MOE);
}

/*
 * Sets the host time of the modules that follow: a call for every operator, or one for a CUDA graph. Neighbouring captured
 * modules are one graph.
 */
static void set_host(struct maq_lowering *l, enum maq_pass pass, bool graph, bool begins)
{
    const struct maq_host_rates *h = &l->lower->host;
    double launch = pass == MAQ_PASS_FORWARD ? h->forward_ns : h->backward_ns;
    if (begins)
        maq_segment_host(&l->w, launch);
    l->w.graph = graph || l->lower->plan->cuda_graphs;
    l->w.launch_ns = graph ? 0 : launch;
    l->w.kernel_ns = graph ? 0 : h->kernel_ns;
    l->w.expert_ns = graph ? 0 : h->expert_ns;
    l->w.collective_ns = graph ? 0 : h->collective_ns;
}

/*
 * The node that a module is part of where a layer is cut at its exchanges of experts: an MLP or the experts, or what stands before
 * the exchange: attention, norms, router, shared experts (megatron/core/models/gpt/fine_grained_callables.py, version 0.20). The
 * exchanges divide themselves (lower/moe.c). What Megatron-LM computes behind the second exchange on its stream (the order of the
 * tokens, the residual) counts with attention.
 */
static enum maq_layer_node node_of(const struct maq_module *m)
{
    bool experts = m->kind == MAQ_MODULE_EXPERT_LINEAR || m->kind == MAQ_MODULE_EXPERT_ACTIVATION;
    return experts || m->part == MAQ_PART_MLP ? MAQ_LAYER_EXPERTS : MAQ_LAYER_ATTENTION;
}

/* The modules of the chosen parts in the direction of the pass. */
static void walk(struct maq_lowering *l, enum maq_pass pass, uint32_t parts)
{
    const uint32_t moe = 1u << MAQ_PART_MOE | 1u << MAQ_PART_SHARED_EXPERTS;
    bool beside = l->lower->plan->overlap_shared_experts && l->layer->moe && pass != MAQ_PASS_BACKWARD_WEIGHT &&
                  (parts & moe) == moe;
    l->pass = pass;
    l->beside = beside ? lower_shared : NULL;
    const uint32_t second = maq_lower_second_half(l->layer);
    bool graph = false, parted = l->lower->plan->graph_scope != 0 && !l->lower->plan->cuda_graphs && l->lower->repeats;
    for (uint32_t i = 0; i < l->layer->n_modules; i++) {
        const struct maq_module *m = module_at(l, i);
        bool later = beside && m->part == MAQ_PART_SHARED_EXPERTS, before = graph;
        bool kept = l->by_op && m->kind == MAQ_MODULE_ATTENTION && l->lower->attention != MAQ_ATTENTION_UNFUSED;
        bool joined = parts != ALL_PARTS && maq_lower_norm_joined(l->lower, l->layer, m);
        if (!(parts & (1u << m->part)) || later || kept || joined || (l->pruned && ends_layer(m)))
            continue;
        graph = parted && maq_lower_graphed(l->lower->plan, l->layer, (uint32_t)(m - l->layer->modules), second);
        set_host(l, pass, graph, graph && !before);
        maq_segment_node(&l->w, node_of(m));
        lower_module(l, m, pass);
        note_gradients(l, m);
    }
    l->beside = NULL;
}

/*
 * Selective checkpointing by operator (torchtitan, activation_checkpoint.py, mode selective with selective_ac_option op): of the
 * operators of a layer the outputs of fused attention, of reduce-scatters and of every second matrix product are kept, the first
 * one being kept; all else is computed again. q, k, v, gate and up are products of their own there. Grouped experts are other
 * operators, which that list has not. In 8 bits the products count alike: torchtitan's benchmarks report the same peak with float8
 * as without (llama3_h100_202412_torchtitan.md, 76.8 and 77.0 GiB).
 */
bool maq_lower_by_op(const struct maq_lower *lower)
{
    return lower->plan->recompute == MAQ_RECOMPUTE_SELECTIVE && lower->plan->selective_ac == MAQ_SELECTIVE_AC_OP;
}

/* Forward again before the backward pass: the whole layer, or the modules of the chosen parts with the collectives that
 * feed them, or all operators but those whose outputs are kept. */
static void lower_redo(struct maq_lowering *l, enum maq_redo redo)
{
    l->by_op = redo == MAQ_REDO_PARTS && maq_lower_by_op(l->lower);
    l->products = 0;
    uint32_t parts = redo == MAQ_REDO_LAYER || l->by_op ? ALL_PARTS : l->lower->plan->recompute_parts;
    if (parts & (1u << MAQ_PART_MOE)) /* the whole MoE layer */
        parts |= 1u << MAQ_PART_ROUTER | 1u << MAQ_PART_MOE_ACT | 1u << MAQ_PART_SHARED_EXPERTS;
    l->w.bucket = MAQ_BUCKET_RECOMPUTE;
    maq_segment_host(&l->w, l->lower->host.checkpoint_ns);
    l->pruned = l->lower->job->framework.recompute_prunes;
    for (int32_t i = redo == MAQ_REDO_LAYER ? l->lower->job->framework.forward_calls : 1; i > 0; i--)
        walk(l, MAQ_PASS_FORWARD, parts);
    l->pruned = l->by_op = false;
}

struct maq_segment *maq_lower_layer(struct maq_lower *lower, const struct maq_layer *layer, enum maq_pass pass,
                                    enum maq_redo redo)
{
    struct maq_segment *out = MAQ_ARENA_NEW(lower->arena, struct maq_segment, 1);
    if (!out) {
        lower->failed = true;
        return NULL;
    }
    struct maq_lowering l = {.lower = lower, .layer = layer};
    maq_segment_begin(&l.w, out, lower->items, lower->arena);
    if (pass == MAQ_PASS_BACKWARD && layer->n_modules > 0) {
        out->gradients = MAQ_ARENA_NEW(lower->arena, struct maq_segment_mark, layer->n_modules);
        lower->failed |= !out->gradients;
        for (uint32_t i = 0; out->gradients && i < layer->n_modules; i++)
            out->gradients[i].step = MAQ_STEP_NONE;
    }
    l.w.serial = lower->job->framework.launches_block;
    l.w.apart = !l.w.serial && maq_plan_merges_passes(lower->plan);
    l.w.tp_stops = lower->job->framework.tp_synchronizes && !l.w.serial;
    l.w.read_ns = lower->host.read_ns;
    l.w.skew_ns = lower->host.skew_ns;
    l.w.contention = lower->contention;
    if (lower->offload_bytes > 0 && pass != MAQ_PASS_BACKWARD_WEIGHT) /* those of the layer before, of equal size */
        maq_segment_copy(&l.w, lower->offload_bytes, MAQ_STEP_NONE);
    if (redo != MAQ_REDO_NOTHING && pass != MAQ_PASS_FORWARD && pass != MAQ_PASS_BACKWARD_WEIGHT)
        lower_redo(&l, redo);
    l.w.bucket = pass == MAQ_PASS_FORWARD ? MAQ_BUCKET_FORWARD : MAQ_BUCKET_BACKWARD;
    for (int32_t i = pass == MAQ_PASS_FORWARD && lower->repeats ? lower->job->framework.forward_calls : 1; i > 0; i--)
        walk(&l, pass, ALL_PARTS);
    maq_segment_end(&l.w);
    if (l.w.failed)
        lower->failed = true;
    return out;
}
