/*
 * lower.c - pointwise modules, and the walk over a layer.
 *
 * Sources of what is executed: Megatron-LM core (transformer_layer.py, tensor_parallel/layers.py, fusions/)
 * and Transformer Engine. Fused kernels are one operator; without fusion (`fused_kernels: false`) a pointwise
 * operator is several passes over its data (MAQ_OP_UNFUSED).
 */
#include "train/lower.h"

#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "plan/job_build.h"
#include "train/contention.h"
#include "train/host.h"

struct maq_op maq_op_make(enum maq_op_kind kind, int dtype, unsigned flags, int64_t d0, int64_t d1, int64_t d2,
                          int64_t d3, int64_t d4, int64_t d5)
{
    return (struct maq_op){
        .kind = (uint16_t)kind, .dtype = (uint8_t)dtype, .flags = (uint8_t)flags, .d = {d0, d1, d2, d3, d4, d5}};
}

struct maq_coll maq_coll_make(const struct maq_lower *lower, enum maq_coll_kind kind, enum maq_group_kind group,
                              double bytes)
{
    /* all ranks of a node do the same at the same time: as many groups as it takes to cover its devices */
    struct maq_placement at = lower->groups[group];
    uint32_t per_node = (uint32_t)lower->job->cluster.groups[at.group].devices_per_node;
    uint32_t sharers = at.per_node > 0 && per_node > at.per_node ? per_node / at.per_node : 1;
    return (struct maq_coll){.kind = (uint16_t)kind, .sharers = (uint16_t)sharers, .bytes = bytes, .at = at};
}

void maq_lower_init(struct maq_lower *lower, const struct maq_job *job, struct maq_items *items,
                    struct maq_arena *arena)
{
    const struct maq_plan *p = &job->plan;
    *lower = (struct maq_lower){
        .job = job, .plan = p, .items = items, .arena = arena, .store = job->store_dtype, .math = job->math_dtype};
    maq_lower_select(lower, job->groups);
    maq_lower_size(lower, &job->model.kinds[0]);
    lower->store_bytes = maq_dtype_bytes((enum maq_dtype)lower->store);
    lower->vocab_cut = p->vocab_parallel_pipeline ? (int64_t)p->tp * p->pp : p->tp;
    lower->imbalance = p->capacity_factor > 0 && p->capacity_factor < p->imbalance ? p->capacity_factor : p->imbalance;
    const struct maq_module *router = maq_model_find_module(&job->model, MAQ_MODULE_ROUTER, MAQ_PART_COUNT);
    if (router) {
        double kept = p->capacity_factor > 0 && p->capacity_factor < 1.0 ? p->capacity_factor : 1.0;
        /* balanced, a rank's experts get as many rows as its own tokens send out; expert-TP ranks all see the
         * rows of their group */
        lower->expert_rows = (int64_t)((double)lower->tokens_region * router->u.moe.topk * kept * p->etp + 0.5);
        lower->local_experts = router->u.moe.experts / p->ep;
    }
}

void maq_lower_size(struct maq_lower *lower, const struct maq_layer *layer)
{
    const struct maq_plan *p = lower->plan;
    lower->seq = maq_layer_tokens(layer, lower->job->workload.seq);
    lower->tokens = (int64_t)p->mbs * lower->seq / p->cp;
    lower->tokens_region = p->sequence_parallel == MAQ_ON ? lower->tokens / p->tp : lower->tokens;
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

bool maq_lower_trained(const struct maq_lower *lower)
{
    return lower->plan->lora_rank == 0;
}

bool maq_lower_adapted(const struct maq_lower *lower, const struct maq_module *m)
{
    if (lower->plan->lora_rank == 0 || m->kind != MAQ_MODULE_LINEAR || m->part == MAQ_PART_OUTPUT)
        return false;
    struct maq_str targets = lower->plan->lora_targets, word;
    if (targets.len == 0)
        targets = MAQ_STR("linear_qkv,linear_proj,linear_fc1,linear_fc2");
    while (targets.ptr) {
        targets = maq_str_split(targets, ',', &word);
        if (maq_str_is(maq_str_trim(word), m->name))
            return true;
    }
    return false;
}

/* Key/value heads are copied when there are fewer than TP ranks: what linear_qkv puts out beyond its even share. */
static int64_t copied_kv_features(const struct maq_lower *lower, const struct maq_layer *layer,
                                  const struct maq_module *m)
{
    if (m->kind != MAQ_MODULE_LINEAR || m->shard != MAQ_SHARD_COLUMN || strcmp(m->name, "linear_qkv") != 0)
        return 0;
    for (uint32_t i = 0; i < layer->n_modules; i++) {
        const struct maq_attention_geometry *g = &layer->modules[i].u.attention;
        if (layer->modules[i].kind == MAQ_MODULE_ATTENTION && g->kv_heads < lower->plan->tp)
            return (int64_t)(g->qk_dim + g->v_dim) - (int64_t)g->kv_heads * (g->qk_dim + g->v_dim) / lower->plan->tp;
    }
    return 0;
}

struct maq_local maq_lower_local(const struct maq_lower *lower, const struct maq_layer *layer,
                                 const struct maq_module *m)
{
    int64_t tp = lower->plan->tp, etp = lower->plan->etp;
    struct maq_local l = {lower->tokens, m->in, m->out};
    switch (m->shard) {
    case MAQ_SHARD_SEQUENCE:
        l.rows = lower->tokens_region;
        break;
    case MAQ_SHARD_COLUMN:
        if (m->part == MAQ_PART_OUTPUT)
            l.out = (m->out + lower->vocab_cut - 1) / lower->vocab_cut;
        else
            l.out = m->out / tp + copied_kv_features(lower, layer, m);
        break;
    case MAQ_SHARD_ROW:
        l.in = m->in / tp;
        break;
    case MAQ_SHARD_HEADS:
        l.in = m->in / tp;
        l.out = m->out / tp;
        break;
    case MAQ_SHARD_VOCAB:
        l.in = (m->in + lower->vocab_cut - 1) / lower->vocab_cut;
        break;
    case MAQ_SHARD_EXPERT:
        l.rows = lower->expert_rows;
        if (m->flags & MAQ_MODULE_GATHER_IN) /* expert-TP cuts fc1 by column, fc2 by row */
            l.out = m->out / etp;
        else if (m->flags & MAQ_MODULE_REDUCE_OUT)
            l.in = m->in / etp;
        else if (m->kind == MAQ_MODULE_EXPERT_ACTIVATION) {
            l.in = m->in / etp;
            l.out = m->out / etp;
        }
        break;
    }
    return l;
}

double maq_lower_local_params(const struct maq_lower *lower, const struct maq_module *m)
{
    const struct maq_plan *p = lower->plan;
    switch (m->shard) {
    case MAQ_SHARD_SEQUENCE:
        return (double)m->params;
    case MAQ_SHARD_COLUMN:
    case MAQ_SHARD_HEADS:
        return (double)m->params / (m->part == MAQ_PART_OUTPUT ? (double)lower->vocab_cut : p->tp);
    case MAQ_SHARD_ROW: { /* the bias of a row-parallel linear is whole on every rank */
        double bias = m->flags & MAQ_MODULE_BIAS ? (double)m->out : 0;
        return ((double)m->params - bias) / p->tp + bias;
    }
    case MAQ_SHARD_VOCAB:
        return (double)m->params / (double)lower->vocab_cut;
    case MAQ_SHARD_EXPERT:
        return (double)m->params / ((double)p->ep * p->etp);
    }
    return (double)m->params;
}

/* ---- documents in a sequence ---- */

/*
 * Mean keys per query when a sequence holds documents of lognormal length l (mean M, coefficient of variation
 * c), each attending to itself: sum_i keys(l_i) l_i / sum_i l_i. The distribution is taken at 64 quantile
 * midpoints, cut at the sequence length.
 */
#define LENGTH_POINTS 64

static double normal_quantile(double p)
{
    /* Acklam's rational approximation has a relative error of 1.2e-9; the logistic one below is enough for 64
     * lengths rounded to tokens. */
    double t = p < 0.5 ? p : 1 - p;
    double x = 5.5556 * (1 - __builtin_pow((1 - (1 - t)) / (1 - t), 0.1186)); /* Shore (1982) */
    return p < 0.5 ? -x : x;
}

double maq_lower_keys(const struct maq_lower *lower, const struct maq_attention_geometry *g)
{
    const struct maq_workload *w = &lower->job->workload;
    if (w->length_mean <= 0)
        return maq_attention_mean_keys(g, lower->seq, false);
    if (w->length_cv <= 0)
        return maq_attention_mean_keys(g, (int64_t)w->length_mean, false);
    double sigma2 = __builtin_log(1 + w->length_cv * w->length_cv), mu = __builtin_log(w->length_mean) - sigma2 / 2;
    double keys = 0, tokens = 0;
    for (int i = 0; i < LENGTH_POINTS; i++) {
        double l = __builtin_exp(mu + __builtin_sqrt(sigma2) * normal_quantile((i + 0.5) / LENGTH_POINTS));
        int64_t len = l > (double)w->seq ? w->seq : l < 1 ? 1 : (int64_t)l;
        keys += maq_attention_mean_keys(g, len, false) * (double)len;
        tokens += (double)len;
    }
    return keys / tokens;
}

/* ---- pointwise modules ---- */

static unsigned unfused(const struct maq_lowering *l)
{
    return l->lower->plan->fused_kernels ? 0 : MAQ_OP_UNFUSED;
}

static void put(struct maq_lowering *l, enum maq_op_kind kind, unsigned flags, int64_t d0, int64_t d1, int64_t d2)
{
    if (d0 <= 0)
        return;
    struct maq_op op = maq_op_make(kind, l->lower->store, flags, d0, d1, d2, 0, 0, 0);
    maq_segment_op(&l->w, &op);
}

/* read, written: bytes per element */
static void elementwise(struct maq_lowering *l, int64_t elements, double read, double written, unsigned flags)
{
    put(l, MAQ_OP_ELEMENTWISE, flags, elements, (int64_t)read, (int64_t)written);
}

static void lower_residual(struct maq_lowering *l, const struct maq_module *m, bool backward)
{
    double b = l->lower->store_bytes, mask = m->flags & MAQ_MODULE_DROPOUT ? 1 : 0;
    int64_t n = l->lower->tokens_region * m->out;
    if (!backward)
        elementwise(l, n, 2 * b, b + mask, mask > 0 ? unfused(l) : 0);
    else if (mask > 0) /* the gradient of a bare sum is the gradient itself */
        elementwise(l, n, b + mask, b, 0);
}

/* Statistics of a vocabulary-parallel cross-entropy: maximum, target logit and sum, 4 bytes per token each
 * (Megatron-LM cross_entropy.py). */
static void lower_loss(struct maq_lowering *l, const struct maq_module *m, bool backward)
{
    struct maq_local local = maq_lower_local(l->lower, l->layer, m);
    put(l, backward ? MAQ_OP_CROSS_ENTROPY_BWD : MAQ_OP_CROSS_ENTROPY,
        l->lower->plan->loss_fusion ? unfused(l) : MAQ_OP_UNFUSED, local.rows, local.in, 0);
    if (backward)
        return;
    struct maq_coll stats = maq_coll_make(l->lower, MAQ_COLL_ALL_REDUCE, MAQ_GROUP_TP, 4.0 * (double)local.rows);
    for (int i = 0; i < 3; i++)
        maq_segment_coll(&l->w, &stats, MAQ_STREAM_TP);
}

/* Positions are the same for all sequences and looked up once, so that their product is nothing beside that of the tokens. */
bool maq_lower_one_hot(const struct maq_lower *lo, const struct maq_module *m)
{
    return m->kind == MAQ_MODULE_EMBEDDING && (m->flags & MAQ_MODULE_REDUCE_OUT) &&
           lo->job->framework.embeds_by_product;
}

/* A dot to its compiler like any other: the vectors are written out for it, and the table's gradient is the product with them again. */
static void look_up(struct maq_lowering *l, const struct maq_module *m, struct maq_local d, bool backward)
{
    const struct maq_plan *p = l->lower->plan;
    if (!maq_lower_one_hot(l->lower, m)) {
        put(l, backward ? MAQ_OP_EMBEDDING_BWD : MAQ_OP_EMBEDDING, 0, d.rows, m->out, d.in);
        return;
    }
    bool into_fp32 = p->weight_grad_fusion && p->grad_dtype == MAQ_FP32;
    struct maq_op forward = maq_op_make(MAQ_OP_GEMM, l->lower->store, 0, d.rows, m->out, d.in, 1, 0, 0),
                  table = maq_op_make(MAQ_OP_GEMM, l->lower->store, into_fp32 ? MAQ_OP_ACCUMULATE : 0, d.in, m->out,
                                      d.rows, 1, 0, 0);
    if (!backward)
        elementwise(l, d.rows * d.in, 0, l->lower->store_bytes, 0);
    maq_segment_op(&l->w, backward ? &table : &forward);
    if (backward)
        maq_lower_accumulate(l, d.in * m->out);
}

static void lower_embedding(struct maq_lowering *l, const struct maq_module *m, bool backward)
{
    struct maq_local local = maq_lower_local(l->lower, l->layer, m);
    bool sp = l->lower->plan->sequence_parallel == MAQ_ON;
    double bytes = (double)l->lower->tokens * (double)m->out * l->lower->store_bytes;
    if (!backward) {
        look_up(l, m, local, false);
        if (!(m->flags & MAQ_MODULE_REDUCE_OUT)) /* a table that every rank holds whole (positions) */
            return;
        struct maq_coll sum =
            maq_coll_make(l->lower, sp ? MAQ_COLL_REDUCE_SCATTER : MAQ_COLL_ALL_REDUCE, MAQ_GROUP_TP, bytes);
        maq_segment_coll(&l->w, &sum, MAQ_STREAM_TP);
        return;
    }
    if (!maq_lower_trained(l->lower))
        return;
    if (sp && (m->flags & MAQ_MODULE_REDUCE_OUT)) {
        struct maq_coll gather = maq_coll_make(l->lower, MAQ_COLL_ALL_GATHER, MAQ_GROUP_TP, bytes);
        maq_segment_coll(&l->w, &gather, MAQ_STREAM_TP);
    }
    look_up(l, m, local, true);
}

static void lower_scan(struct maq_lowering *l, const struct maq_module *m, bool backward)
{
    const struct maq_ssm_geometry *g = &m->u.ssm;
    int64_t tp = l->lower->plan->tp, groups = g->groups / tp > 0 ? g->groups / tp : 1;
    bool delta = m->kind == MAQ_MODULE_DELTA_RULE;
    enum maq_op_kind kind = delta ? (backward ? MAQ_OP_DELTA_RULE_BWD : MAQ_OP_DELTA_RULE)
                                  : (backward ? MAQ_OP_SSM_SCAN_BWD : MAQ_OP_SSM_SCAN);
    struct maq_op op =
        maq_op_make(kind, l->lower->store, 0, l->lower->tokens, g->heads / tp, g->head_dim, groups, g->state, g->chunk);
    maq_segment_ops(&l->w, &op, 5); /* state, chunk scan, cumulative sum, ...: the reference kernels are five */
}

/* Pointwise modules have one backward kernel, which belongs to the input gradient. */
static void lower_pointwise(struct maq_lowering *l, const struct maq_module *m, bool backward)
{
    struct maq_local local = maq_lower_local(l->lower, l->layer, m);
    double b = l->lower->store_bytes;
    switch (m->kind) {
    case MAQ_MODULE_NORM:
        /* PyTorch has a fused LayerNorm; an RMSNorm written out is several passes */
        put(l, backward ? MAQ_OP_NORM_BWD : MAQ_OP_NORM, m->flags & MAQ_MODULE_LAYERNORM ? MAQ_OP_BIAS : unfused(l),
            local.rows, local.in, 0);
        break;
    case MAQ_MODULE_ROPE:
        put(l, MAQ_OP_ROPE, unfused(l), local.rows, local.in, 0);
        break;
    case MAQ_MODULE_ACTIVATION:
        put(l, backward ? MAQ_OP_ACTIVATION_BWD : MAQ_OP_ACTIVATION,
            unfused(l) | (m->flags & MAQ_MODULE_GATED ? MAQ_OP_GATED : 0), local.rows, local.in, local.out);
        break;
    case MAQ_MODULE_GATE:
        elementwise(l, local.rows * local.out, backward ? 3 * b : 2 * b, backward ? 2 * b : b, 0);
        break;
    case MAQ_MODULE_RESIDUAL:
        lower_residual(l, m, backward);
        break;
    case MAQ_MODULE_CONV1D:
        put(l, backward ? MAQ_OP_CONV1D_BWD : MAQ_OP_CONV1D, 0, local.rows, local.in, m->u.kernel);
        break;
    case MAQ_MODULE_SSM_SCAN:
    case MAQ_MODULE_DELTA_RULE:
        lower_scan(l, m, backward);
        break;
    case MAQ_MODULE_LOSS:
        lower_loss(l, m, backward);
        break;
    case MAQ_MODULE_EMBEDDING:
        lower_embedding(l, m, backward);
        break;
    case MAQ_MODULE_LINEAR:
    case MAQ_MODULE_ATTENTION:
    case MAQ_MODULE_ROUTER:
    case MAQ_MODULE_DISPATCH:
    case MAQ_MODULE_EXPERT_LINEAR:
    case MAQ_MODULE_EXPERT_ACTIVATION:
    case MAQ_MODULE_COMBINE:
    case MAQ_MODULE_KIND_COUNT:
        MAQ_ASSERT(false); /* not pointwise */
        break;
    }
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
    double bytes = (double)l->lower->tokens_region * (double)l->lower->job->model.hidden * l->lower->store_bytes;
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
            lower_pointwise(l, m, pass != MAQ_PASS_FORWARD);
        break;
    case MAQ_MODULE_NORM:
    case MAQ_MODULE_ROPE:
    case MAQ_MODULE_ACTIVATION:
    case MAQ_MODULE_GATE:
    case MAQ_MODULE_RESIDUAL:
    case MAQ_MODULE_CONV1D:
    case MAQ_MODULE_SSM_SCAN:
    case MAQ_MODULE_DELTA_RULE:
    case MAQ_MODULE_LOSS:
    case MAQ_MODULE_KIND_COUNT:
        if (pass != MAQ_PASS_BACKWARD_WEIGHT)
            lower_pointwise(l, m, pass != MAQ_PASS_FORWARD);
        break;
    }
}

#define ALL_PARTS UINT32_MAX

static const struct maq_module *module_at(const struct maq_lowering *l, uint32_t i)
{
    return &l->layer->modules[l->pass == MAQ_PASS_FORWARD ? i : l->layer->n_modules - 1 - i];
}

void maq_lower_shared(struct maq_lowering *l)
{
    const char *name = l->w.name;
    uint8_t part = l->w.part;
    l->shared_pending = false;
    for (uint32_t i = 0; i < l->layer->n_modules; i++)
        if (module_at(l, i)->part == MAQ_PART_SHARED_EXPERTS)
            lower_module(l, module_at(l, i), l->pass);
    l->w.name = name;
    l->w.part = part;
}

/*
 * The last product of an MLP only makes the layer's output, which no backward pass reads. The same of experts, whose probabilities weigh
 * what the activation makes, and of the exchange behind them.
 */
static bool ends_layer(const struct maq_module *m)
{
    bool last = (m->flags & MAQ_MODULE_REDUCE_OUT) != 0;
    return (m->part == MAQ_PART_MLP && m->kind == MAQ_MODULE_LINEAR && last) ||
           (m->kind == MAQ_MODULE_EXPERT_LINEAR && last) || m->kind == MAQ_MODULE_COMBINE;
}

/*
 * Where a layer's second half begins, MLP or experts: with the norm in front of the first module of either. The norm of a layer that has
 * both branches side by side is the first half's.
 */
static uint32_t second_half(const struct maq_layer *layer)
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

/* Whether a module is in a graph that covers a part of its layer (Megatron Core, transformer_layer.py and its cuda_graph_scope). */
static bool captured(const struct maq_lowering *l, const struct maq_module *m, uint32_t second)
{
    const uint32_t scope = l->lower->plan->graph_scope, at = (uint32_t)(m - l->layer->modules);
    if (scope == 0)
        return false;
    if (at < second)
        return scope & (is_mamba(l->layer) ? 1u << MAQ_GRAPH_MAMBA : 1u << MAQ_GRAPH_ATTN);
    if (!l->layer->moe)
        return scope & 1u << MAQ_GRAPH_MLP;
    bool routes = at == second || m->kind == MAQ_MODULE_ROUTER || m->part == MAQ_PART_SHARED_EXPERTS;
    return scope & ((routes ? 1u << MAQ_GRAPH_MOE_ROUTER : 0) | 1u << MAQ_GRAPH_MOE);
}

/* What the host pays for what follows: a call for every operator, or one for a graph of them. Neighbours are one graph. */
static void set_host(struct maq_lowering *l, enum maq_pass pass, bool graph, bool begins)
{
    const struct maq_host_rates *h = &l->lower->host;
    double launch = pass == MAQ_PASS_FORWARD ? h->forward_ns : h->backward_ns;
    if (begins)
        maq_segment_host(&l->w, launch);
    l->w.launch_ns = graph ? 0 : launch;
    l->w.kernel_ns = graph ? 0 : h->kernel_ns;
    l->w.expert_ns = graph ? 0 : h->expert_ns;
    l->w.collective_ns = graph ? 0 : h->collective_ns;
}

/* The modules of the chosen parts in the direction of the pass. */
static void walk(struct maq_lowering *l, enum maq_pass pass, uint32_t parts)
{
    const uint32_t moe = 1u << MAQ_PART_MOE | 1u << MAQ_PART_SHARED_EXPERTS;
    bool beside = l->lower->plan->overlap_shared_experts && l->layer->moe && pass != MAQ_PASS_BACKWARD_WEIGHT &&
                  (parts & moe) == moe;
    l->pass = pass;
    l->shared_pending = beside;
    const uint32_t second = second_half(l->layer);
    bool graph = false;
    for (uint32_t i = 0; i < l->layer->n_modules; i++) {
        const struct maq_module *m = module_at(l, i);
        bool later = beside && m->part == MAQ_PART_SHARED_EXPERTS, before = graph;
        if (!(parts & (1u << m->part)) || later || (l->pruned && ends_layer(m)))
            continue;
        graph = captured(l, m, second);
        set_host(l, pass, graph, graph && !before);
        lower_module(l, m, pass);
    }
    l->shared_pending = false;
}

/* Forward again before the backward pass: the whole layer, or the modules of the chosen parts with the collectives that
 * feed them. */
static void lower_redo(struct maq_lowering *l, enum maq_redo redo)
{
    uint32_t parts = redo == MAQ_REDO_LAYER ? ALL_PARTS : l->lower->plan->recompute_parts;
    if (parts & (1u << MAQ_PART_MOE)) /* the whole MoE layer */
        parts |= 1u << MAQ_PART_ROUTER | 1u << MAQ_PART_MOE_ACT | 1u << MAQ_PART_SHARED_EXPERTS;
    l->w.bucket = MAQ_BUCKET_RECOMPUTE;
    maq_segment_host(&l->w, l->lower->host.checkpoint_ns);
    /* operator by operator that product is kept or not like any other */
    l->pruned = l->lower->job->framework.recompute_prunes && l->lower->plan->selective_ac != MAQ_SELECTIVE_AC_OP;
    for (int32_t i = redo == MAQ_REDO_LAYER ? l->lower->job->framework.forward_calls : 1; i > 0; i--)
        walk(l, MAQ_PASS_FORWARD, parts);
    l->pruned = false;
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
    l.w.serial = lower->job->framework.launches_block;
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
