/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layers.c - the kernels of a layer that see tokens one by one: products, norms, activations, experts, sums over the TP group.
 *
 * Bytes per element of the kernels that are chains of pointwise operations: a norm reads what a branch put out and the residual stream,
 * and writes both; a gated activation is MAQ_OP_ACTIVATION; quantization of a product's input is a kernel of its own.
 *
 * A norm of queries and keys over all heads needs what the other ranks have of them. Of OLMo's both are gathered and normed whole; of all
 * others (MiniMax's) sums of squares, 4 bytes of each, are added over the TP group: read by a kernel, or two, in front of the norms in SGLang and in vLLM before
 * 0.24, and by the norms' own kernel, which exchanges them, in vLLM from then on and in TensorRT-LLM. vllm 0.19.0 and 0.24.0,
 * model_executor/layers/mamba/linear_attn.py and minimax_rms_norm/, models/olmo2.py; sglang 0.5.9, models/minimax_m2.py, olmo2.py.
 */
#include "base/str.h"
#include "lower/local.h"
#include "serve/engine_release.h"
#include "serve/pass/pass.h"

#define VLLM_NORM_EXCHANGES MAQ_RELEASE(0, 24, 0)

struct walk {
    const struct maq_passes *p;
    const struct maq_layer *layer;
    struct maq_lower lower;
    enum maq_pass_scope scope;
    int64_t tokens;
    bool decodes;
    double times;
    struct maq_pass_parts *out;
};

/* One product, or the several that an engine makes of it (recurrent.c). */
static void products(struct walk *w, const struct maq_module *m, const struct maq_local *d,
                     const struct maq_pass_type *type)
{
    struct maq_pass_product parts[MAQ_PASS_PRODUCTS] = {{.out = d->out}};
    unsigned n = maq_pass_products(w->p, w->layer, m, w->tokens, parts);
    for (unsigned i = 0; i < (n > 0 ? n : 1); i++) {
        bool wide = parts[i].gates && type->flags & MAQ_OP_BLOCKS;
        struct maq_op op = maq_pass_op(MAQ_OP_GEMM, wide ? &w->p->plain : type,
                                       m->flags & MAQ_MODULE_BIAS ? MAQ_OP_BIAS : 0, w->tokens, parts[i].out, d->in, 1);
        if (parts[i].beside)
            w->out->kernels += w->times;
        else
            maq_pass_cost(w->p, &op, w->times, MAQ_SERVE_GEMM, w->out);
    }
}

/*
 * Whether a product's input is converted by a kernel of its own, in front of it, and not by the one that writes it.
 *
 *                      a scale for a tensor or a token             blocks of scales   NVFP4
 *   TensorRT-LLM       never                                       always             behind an activation
 *   SGLang             always                                      always             always
 *   vLLM               not behind a norm or an activation          always             not behind an activation
 *                      (before 0.10, and eager, always)                                   (eager, always)
 *
 * With blocks of scales vLLM's DeepGEMM and FlashInfer convert inside the operator that multiplies. Sources: TensorRT-LLM,
 * _torch/modules/linear.py (FP8BlockScalesLinearMethod) and gated_mlp.py; vllm 0.12.0 to 0.33.0, quantization/utils/fp8_utils.py
 * (W8A8BlockFp8LinearOp), compilation/.../rms_quant_fusion.py and act_quant_fusion.py, config/vllm.py (enable_norm_fusion: what is not a
 * custom operator Inductor fuses); sglang 0.5.9, quantization/fp8_utils.py.
 */
static bool is_converted_apart(const struct maq_passes *p, const struct maq_pass_type *type, bool norm, bool activation)
{
    if (!type->quantizes)
        return false;
    if (type->flags & MAQ_OP_BLOCKS || p->engine == MAQ_ENGINE_SGLANG)
        return true;
    if (p->engine == MAQ_ENGINE_TRTLLM)
        return activation && type->dtype == MAQ_FP4;
    if (!p->compiled)
        return true;
    if (type->dtype == MAQ_FP4)
        return !activation;
    return p->release < MAQ_VLLM_FUSES_CONVERSION || !(norm || activation);
}

static void linear(struct walk *w, const struct maq_module *m)
{
    const struct maq_passes *p = w->p;
    struct maq_local d = maq_lower_local(&w->lower, w->layer, m);
    bool narrow = !(m->flags & (MAQ_MODULE_UNQUANTIZED | MAQ_MODULE_FP32));
    const struct maq_pass_type *type = narrow ? &p->linear : &p->plain;
    const struct maq_module *front = m > w->layer->modules ? m - 1 : NULL;
    bool activation = front && front->kind == MAQ_MODULE_ACTIVATION, norm = front && front->kind == MAQ_MODULE_NORM;
    /* q, k and v and the like are one product; experts have an input of their own */
    bool first = !(m->flags & MAQ_MODULE_SHARED_INPUT) || m->part == MAQ_PART_SHARED_EXPERTS;
    if (first && is_converted_apart(p, type, norm, activation)) {
        struct maq_op quantize = maq_pass_op(MAQ_OP_QUANTIZE, type, 0, w->tokens, d.in, 1, 0);
        maq_pass_cost(p, &quantize, w->times, MAQ_SERVE_POINTWISE, w->out);
    }
    products(w, m, &d, type);
    /* shared experts are added to the routed ones before both are summed, where these are here; GPUs of FFN sum once for a layer (afd.c) */
    bool with_routed = m->part == MAQ_PART_SHARED_EXPERTS && w->scope != MAQ_PASS_ATTENTION;
    if (m->flags & MAQ_MODULE_REDUCE_OUT && !with_routed && w->scope != MAQ_PASS_FFN)
        maq_pass_coll(p, MAQ_COLL_ALL_REDUCE, (double)w->tokens * (double)m->out * 2, w->times, w->out);
}

/* Tokens of all ranks on their way to the experts, or what comes of them on its way back. */
static void exchange(struct walk *w, const struct maq_module *m, bool back)
{
    const struct maq_passes *p = w->p;
    double tokens = (double)w->tokens, bytes = back ? 2 : p->exchange_bytes;
    struct maq_coll c = {.kind = back ? MAQ_COLL_REDUCE_SCATTER : MAQ_COLL_ALL_GATHER,
                         .bytes = tokens * (double)m->in * bytes};
    if (p->exchange != MAQ_EXCHANGE_GATHER) {
        double copies = tokens * m->u.moe.topk / p->dp / p->job->plan.tp;
        bool fast =
            p->exchange == MAQ_EXCHANGE_DEEPEP_LOW_LATENCY || (p->exchange == MAQ_EXCHANGE_DEEPEP && w->decodes);
        c = (struct maq_coll){.kind = back ? MAQ_COLL_COMBINE : MAQ_COLL_DISPATCH,
                              .flags = p->exchange == MAQ_EXCHANGE_ONE_SIDED ? MAQ_COLL_ONE_SIDED
                                       : fast                                ? MAQ_COLL_LOW_LATENCY
                                                                             : 0,
                              .bytes = copies * (double)m->in * bytes,
                              .rows = copies,
                              .row_bytes = (double)m->in * bytes};
    }
    maq_pass_exchange(p, c, w->times, w->out);
    if (back && p->job->plan.tp > 1) /* each rank has its part of the tokens of its TP group */
        maq_pass_coll(p, MAQ_COLL_ALL_GATHER, tokens / p->dp * (double)m->in * 2, w->times, w->out);
}

static void pointwise(struct walk *w, enum maq_op_kind kind, unsigned flags, int64_t d0, int64_t d1, int64_t d2)
{
    struct maq_op op = maq_pass_op(kind, &w->p->plain, flags, d0, d1, d2, 0);
    if (d0 > 0)
        maq_pass_cost(w->p, &op, w->times, MAQ_SERVE_POINTWISE, w->out);
}

static bool is_over_heads(const struct maq_module *m)
{
    return m->kind == MAQ_MODULE_NORM && m->flags & MAQ_MODULE_OVER_HEADS;
}

/* What a norm over all heads does beyond one of a rank's own; of several that stand together the last one exchanges for all. */
static void over_ranks(struct walk *w, const struct maq_module *m, int64_t width)
{
    const struct maq_passes *p = w->p;
    const struct maq_module *first = m, *end = w->layer->modules + w->layer->n_modules;
    bool alone = p->engine == MAQ_ENGINE_TRTLLM || (p->engine == MAQ_ENGINE_VLLM && p->release >= VLLM_NORM_EXCHANGES);
    if (p->own.plan.tp == 1)
        return;
    if (p->job->model.type && maq_str_starts(maq_str_of(p->job->model.type), "olmo")) {
        maq_pass_coll(p, MAQ_COLL_ALL_GATHER, (double)w->tokens * (double)m->in * 2, w->times, w->out);
        return;
    }
    if (!alone)
        pointwise(w, MAQ_OP_ELEMENTWISE, 0, w->tokens * width, 2, 0);
    if (m + 1 < end && is_over_heads(m + 1))
        return;
    while (first > w->layer->modules && is_over_heads(first - 1))
        first--;
    maq_pass_coll(p, MAQ_COLL_ALL_REDUCE, (double)w->tokens * 4 * (double)(m + 1 - first), w->times, w->out);
}

static void module(struct walk *w, const struct maq_module *m)
{
    struct maq_local d = maq_lower_local(&w->lower, w->layer, m);
    switch (m->kind) {
    case MAQ_MODULE_LINEAR:
        linear(w, m);
        break;
    case MAQ_MODULE_NORM: /* of the residual stream: with the addition in front of it */
        if (maq_pass_is_in_gate(w->layer, m) || (d.in == w->layer->hidden && w->p->fuses_norm))
            break;
        if (d.in == w->layer->hidden)
            pointwise(w, MAQ_OP_ELEMENTWISE, 0, w->tokens * d.in, 4, 4);
        else
            pointwise(w, MAQ_OP_NORM, 0, w->tokens, d.in, 0);
        if (is_over_heads(m))
            over_ranks(w, m, d.in);
        break;
    case MAQ_MODULE_ROPE:
        pointwise(w, MAQ_OP_ROPE, 0, w->tokens, d.in, 0);
        break;
    case MAQ_MODULE_ACTIVATION:
        pointwise(w, MAQ_OP_ACTIVATION, m->flags & MAQ_MODULE_GATED ? MAQ_OP_GATED : 0, w->tokens, d.in, d.out);
        break;
    case MAQ_MODULE_GATE:
        pointwise(w, MAQ_OP_ELEMENTWISE, 0, w->tokens * d.out, 4, 2);
        break;
    case MAQ_MODULE_ROUTER:
        maq_pass_router(w->p, m, w->tokens, w->times, w->out);
        break;
    case MAQ_MODULE_EXPERT_LINEAR:
        if (!(m->flags & MAQ_MODULE_REDUCE_OUT))
            maq_pass_experts(w->p, w->layer, m, w->tokens, w->times, w->out);
        break;
    case MAQ_MODULE_DISPATCH:
        if (w->scope == MAQ_PASS_EXPERTS)
            exchange(w, m, false);
        break;
    case MAQ_MODULE_COMBINE:
        if (w->scope == MAQ_PASS_EXPERTS)
            exchange(w, m, true);
        else if (w->scope != MAQ_PASS_FFN)
            maq_pass_coll(w->p, MAQ_COLL_ALL_REDUCE, (double)w->tokens * (double)m->in * 2, w->times, w->out);
        break;
    case MAQ_MODULE_EMBEDDING:
        pointwise(w, MAQ_OP_EMBEDDING, 0, w->tokens, m->out, d.in);
        if (m->flags & MAQ_MODULE_REDUCE_OUT)
            maq_pass_coll(w->p, MAQ_COLL_ALL_REDUCE, (double)w->tokens * (double)m->out * 2, w->times, w->out);
        break;
    case MAQ_MODULE_RESIDUAL: /* in the norm behind it; shared experts are added in the kernel of the experts */
    case MAQ_MODULE_EXPERT_ACTIVATION:
    case MAQ_MODULE_LOSS:
    case MAQ_MODULE_ATTENTION: /* mixers.c, recurrent.c */
    case MAQ_MODULE_CONV1D:
    case MAQ_MODULE_SSM_SCAN:
    case MAQ_MODULE_DELTA_RULE:
    case MAQ_MODULE_SELECTIVE_SCAN:
    case MAQ_MODULE_INDEXER:
    case MAQ_MODULE_KIND_COUNT:
        break;
    }
}

static struct walk walk_of(const struct maq_passes *p, const struct maq_layer *layer, int64_t tokens, double times,
                           struct maq_pass_parts *out)
{
    struct walk w = {.p = p, .layer = layer, .tokens = tokens, .times = times, .out = out};
    w.lower = (struct maq_lower){.job = &p->own,
                                 .plan = &p->own.plan,
                                 .groups = p->own.groups,
                                 .device = p->device,
                                 .seq = tokens,
                                 .tokens = tokens,
                                 .tokens_region = tokens,
                                 .store = MAQ_BF16,
                                 .math = MAQ_BF16,
                                 .store_bytes = 2,
                                 .vocab_cut = p->own.plan.tp};
    return w;
}

/* Whether a module is of the experts, which the tokens of all ranks pass. */
static bool in_experts(const struct maq_module *m)
{
    return m->kind == MAQ_MODULE_EXPERT_LINEAR || m->kind == MAQ_MODULE_DISPATCH || m->kind == MAQ_MODULE_COMBINE;
}

/* What GPUs of FFN have of a layer: norms and the residual stream stay with attention, as vLLM's plugin cuts it. */
static bool in_ffn(const struct maq_passes *p, const struct maq_module *m)
{
    if (p->experts_alone)
        return in_experts(m) || m->kind == MAQ_MODULE_EXPERT_ACTIVATION;
    return m->part == MAQ_PART_MLP || m->part == MAQ_PART_ROUTER || m->part == MAQ_PART_MOE ||
           m->part == MAQ_PART_MOE_ACT || m->part == MAQ_PART_SHARED_EXPERTS;
}

static bool in_scope(const struct maq_passes *p, const struct maq_module *m, enum maq_pass_scope scope)
{
    switch (scope) {
    case MAQ_PASS_WHOLE:
        return true;
    case MAQ_PASS_OWN:
    case MAQ_PASS_EXPERTS:
        return in_experts(m) == (scope == MAQ_PASS_EXPERTS);
    case MAQ_PASS_ATTENTION:
    case MAQ_PASS_FFN:
        return in_ffn(p, m) == (scope == MAQ_PASS_FFN);
    case MAQ_PASS_NOTHING:
        break;
    }
    return false;
}

bool maq_pass_has(const struct maq_passes *p, const struct maq_module *m)
{
    return in_scope(p, m, p->own_scope) || in_scope(p, m, p->all_scope);
}

void maq_pass_layers(const struct maq_passes *p, const struct maq_pass_stage *stage, enum maq_pass_scope scope,
                     int64_t tokens, bool decodes, struct maq_pass_parts *out)
{
    if (stage->first && scope != MAQ_PASS_EXPERTS && scope != MAQ_PASS_FFN) {
        struct walk w = walk_of(p, &p->job->model.embedding, tokens, 1, out);
        for (uint32_t i = 0; i < w.layer->n_modules; i++)
            module(&w, &w.layer->modules[i]);
    }
    for (uint32_t k = 0; k < stage->n_layers; k++) {
        struct walk w = walk_of(p, stage->layers[k].layer, tokens, stage->layers[k].count, out);
        w.scope = scope;
        w.decodes = decodes;
        for (uint32_t i = 0; i < w.layer->n_modules; i++)
            if (!maq_pass_is_mixer(w.layer, &w.layer->modules[i]) && in_scope(p, &w.layer->modules[i], scope))
                module(&w, &w.layer->modules[i]);
    }
}

void maq_pass_projector(const struct maq_passes *p, int64_t patches, struct maq_pass_parts *out)
{
    const struct maq_layer *layer = &p->job->model.output;
    int64_t tokens = patches * layer->tokens / layer->of_tokens;
    struct walk w = walk_of(p, layer, tokens > 0 ? tokens : 1, 1, out);
    for (uint32_t i = 0; i < layer->n_modules; i++)
        module(&w, &layer->modules[i]);
}

/* Logits in the model's type, gathered over the TP group, and reduced to a token. */
void maq_pass_head(const struct maq_passes *p, int64_t rows, struct maq_pass_parts *out)
{
    struct walk w = walk_of(p, &p->job->model.output, rows, 1, out);
    int64_t vocab = p->job->model.vocab;
    if (rows <= 0)
        return;
    for (uint32_t i = 0; i < w.layer->n_modules; i++)
        module(&w, &w.layer->modules[i]);
    maq_pass_coll(p, MAQ_COLL_ALL_GATHER, (double)rows * (double)vocab * 2, 1, out);
    maq_pass_sample(p, rows, out);
}
