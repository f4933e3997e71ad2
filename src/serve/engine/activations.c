/* SPDX-License-Identifier: Apache-2.0 */
/*
 * activations.c - what an iteration of the most tokens has alive at its fullest moment, beside weights and cache.
 *
 * vLLM runs its model once on max_num_batched_tokens tokens, without a cache, and gives the cache what that leaves. Features of a token in 16 bits
 * that one layer has alive, cut over the TP group where its modules are (h: hidden; f: width of the MLP; k: experts of a token):
 *
 *   stream      3 h: the residual stream, the layer's input, what its last product wrote; eager 5 h where a norm stands behind each branch, too. A sum
 *               over the TP group is another tensor: h more
 *   attention   the stream, what its projections and the norms of queries and keys wrote, and its output. Compiled code keeps rotated queries, and
 *               queries once more where a part of them is rotated. Of recurrent layers what the convolution and the recurrence write besides
 *   latent      the same, and of the context of prompts keys and values: of min(max(8 max_model_len, 4 max_num_seqs block_size), 65,536) tokens.
 *               Compiled code keeps neither the layer's input nor what went down to latents
 *   MLP         the stream, gate and up, and their product: 3 f; or the product, and what the down projection writes
 *   experts     the stream, scores, the output, and a workspace for tokens * k rows, whatever rank has their experts: the wider of gate-and-up and h,
 *               and the wider of the product and h (Triton's, DeepGEMM's, Marlin's). FlashInfer's and DeepEP's: what their wider product reads and writes.
 *               From 0.13 the workspace is kept once a layer had it (v1/worker/workspace.py), and all that comes behind has it beside itself: the next
 *               layer's attention, the head; not dense layers in front of it
 *   head        the hidden states of all tokens, logits in 16 and in 32 bits of those that are sampled from; from 0.33 what its kernel for top-k and
 *               top-p sorts in: a row in 32 bits for each multiprocessor, or as many as there are requests
 *
 * The largest of these is what an iteration has; cuBLAS keeps a workspace beside it. Read off vLLM 0.33.0 on the zero-GPU device, by what its
 * allocator had at the peak (docs/validate-serve.md has the models), and its files model_executor/layers/fused_moe/experts and
 * model_executor/layers/attention/mla_attention.py. Other engines are taken to have the same alive; of SGLang it does not count, whose share of the
 * memory is its own option.
 */
#include <math.h>
#include <string.h>

#include "lower/cublas_workspace.h"
#include "lower/local.h"
#include "serve/engine/deployment.h"

#define WIDTH 2.0 /* bytes of a feature */
#define MLA_CONTEXT_MOST 65536.0
#define RESULT_BYTES 4.0 /* of a score or a logit in 32 bits */

/* Features of a token, in and out of a layer's modules on this rank. */
struct widths {
    double hidden, norms; /* norms: how many stand before or behind its branches */
    double attention;     /* what projections and norms of the mixer write, and what the last projection reads */
    double latents;       /* of it, the down projections of latent attention and their norms, which no rank cuts */
    double queries, rotated, context; /* context: expanded keys and values of a token */
    double mlp, product;              /* gate, up and their product; of which the product */
    double shared, scores;            /* of shared experts as `mlp`; of the router */
    double experts_up, experts_product, topk;
    bool reduces; /* results are summed over a TP group */
};

static bool is_mixer(const struct maq_module *m)
{
    return m->part == MAQ_PART_ATTENTION || m->part == MAQ_PART_MLA_UP || m->part == MAQ_PART_SSM;
}

static void add_linear(struct widths *w, const struct maq_module *m, const struct maq_local *local)
{
    bool leaves = (m->flags & MAQ_MODULE_REDUCE_OUT) != 0;
    double features = (double)(leaves ? local->in : local->out);
    if (m->part == MAQ_PART_MLP) {
        w->mlp += features;
        w->product += leaves ? features : 0;
    } else if (m->part == MAQ_PART_SHARED_EXPERTS) {
        w->shared += features;
    } else if (m->name && strcmp(m->name, "linear_kv_up_proj") == 0) {
        w->context += features;
    } else if (is_mixer(m)) {
        w->attention += features;
        w->latents += m->shard == MAQ_SHARD_SEQUENCE ? features : 0;
    }
}

static void add_module(struct widths *w, const struct maq_module *m, const struct maq_local *local)
{
    bool leaves = (m->flags & MAQ_MODULE_REDUCE_OUT) != 0;
    if (m->kind == MAQ_MODULE_LINEAR) {
        add_linear(w, m, local);
    } else if (m->kind == MAQ_MODULE_NORM) {
        w->norms += m->part == MAQ_PART_NORM ? 1 : 0;
        w->attention += is_mixer(m) ? (double)local->out : 0;
        w->latents += is_mixer(m) && m->shard == MAQ_SHARD_SEQUENCE ? (double)local->out : 0;
    } else if (m->kind == MAQ_MODULE_ATTENTION) {
        w->queries = (double)local->out;
    } else if (m->kind == MAQ_MODULE_ROPE) {
        w->rotated += (double)local->out;
    } else if (m->kind == MAQ_MODULE_CONV1D || m->kind == MAQ_MODULE_DELTA_RULE || m->kind == MAQ_MODULE_SSM_SCAN ||
               m->kind == MAQ_MODULE_SELECTIVE_SCAN) {
        w->attention += (double)local->out;
    } else if (m->kind == MAQ_MODULE_ROUTER) {
        w->scores = (double)m->out;
        w->topk = m->u.moe.topk;
    } else if (m->kind == MAQ_MODULE_EXPERT_LINEAR) {
        w->experts_up = leaves ? w->experts_up : (double)local->out;
        w->experts_product = leaves ? (double)local->in : w->experts_product;
    }
}

static struct widths widths_of(const struct maq_passes *p, const struct maq_layer *layer)
{
    const struct maq_lower lower = {.job = &p->own, .plan = &p->own.plan, .vocab_cut = p->own.plan.tp};
    struct widths w = {.hidden = (double)layer->hidden, .reduces = p->own.plan.tp > 1};
    for (uint32_t i = 0; i < layer->n_modules; i++) {
        struct maq_local local;
        if (!maq_pass_has(p, &layer->modules[i]))
            continue;
        local = maq_lower_local(&lower, layer, &layer->modules[i]);
        add_module(&w, &layer->modules[i], &local);
    }
    return w;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* What experts have for the rows of all tokens' copies, bytes: from one layer to the next, and in a layer alone. */
struct workspace {
    double persistent, transient;
};

static struct workspace workspace_of(const struct maq_deployment *d, const struct maq_passes *p, const struct widths *w)
{
    const struct maq_serve_options *o = &d->options;
    double rows = (double)o->max_num_batched_tokens * p->dp * w->topk, part = rows / p->ep,
           both = larger(w->experts_up, w->hidden) + larger(w->experts_product, w->hidden);
    bool keeps = o->engine == MAQ_ENGINE_VLLM && maq_engine_release(o->version) >= MAQ_VLLM_KEEPS_WORKSPACE;
    if (p->expert_kernels == MAQ_EXPERTS_LIBRARY || p->exchange != MAQ_EXCHANGE_GATHER)
        return (struct workspace){.transient = part * (w->experts_up + w->hidden) * WIDTH};
    if (p->expert_kernels == MAQ_EXPERTS_TRITON && o->expert_weights == MAQ_WEIGHTS_MXFP4)
        return (struct workspace){.transient = rows * (w->experts_product + w->hidden) * WIDTH};
    struct workspace space = {.transient = keeps ? 0 : rows * both * WIDTH};
    space.persistent = keeps ? rows * both * WIDTH : 0;
    return space;
}

static double mla_context(const struct maq_serve_options *o)
{
    double tokens = larger(8.0 * (double)o->max_model_len, 4.0 * (double)o->max_num_seqs * (double)o->block_size);
    return fmin(tokens, MLA_CONTEXT_MOST);
}

static double stream_of(const struct widths *w, bool compiled)
{
    return (w->norms > 2 && !compiled ? 5 : 3) * w->hidden;
}

/* Bytes of the attention of a layer, or what else mixes its tokens. */
static double attention_bytes(const struct maq_deployment *d, const struct widths *w, bool compiled)
{
    double tokens = (double)d->options.max_num_batched_tokens, own = w->attention, reduced = w->reduces ? w->hidden : 0;
    if (w->context > 0)
        return tokens * (compiled ? w->hidden + own - w->latents : 2 * w->hidden + own) * WIDTH +
               larger(tokens * (w->hidden + reduced), mla_context(&d->options) * w->context) * WIDTH;
    double copies = !compiled ? 0 : w->rotated < w->queries ? 2 : 1;
    return tokens * (stream_of(w, compiled) + reduced + own + copies * w->queries) * WIDTH;
}

/* Bytes of its MLP, or of experts without their workspace. */
static double ffn_bytes(const struct maq_deployment *d, const struct widths *w, bool compiled)
{
    double tokens = (double)d->options.max_num_batched_tokens, stream = stream_of(w, compiled),
           reduced = w->reduces ? w->hidden : 0, most = 0;
    if (w->mlp > 0)
        most = stream + larger(w->mlp, w->product + w->hidden + reduced);
    if (w->topk > 0) /* a token's scores, the weights and numbers of its experts, the output */
        most = larger(most, stream + w->scores + w->topk * 2 * RESULT_BYTES / WIDTH + w->hidden + reduced +
                                larger(w->shared, w->shared > 0 ? w->hidden : 0));
    return tokens * most * WIDTH;
}

static double head_bytes(const struct maq_deployment *d)
{
    const struct maq_serve_options *o = &d->options;
    double tokens = o->max_num_batched_tokens, rows = o->max_num_seqs, vocab = (double)d->job->model.vocab, sorted = 0;
    if (o->speculation.method != MAQ_DRAFT_NONE) /* logits of all that is verified */
        rows *= o->speculation.verified;
    if (o->engine == MAQ_ENGINE_VLLM && maq_engine_release(o->version) >= MAQ_VLLM_SECOND_RUNNER)
        sorted = fmin(o->max_num_seqs, d->device->sms) * vocab * RESULT_BYTES;
    return tokens * (double)d->job->model.hidden * WIDTH + fmin(rows, tokens) * vocab * (WIDTH + RESULT_BYTES) + sorted;
}

/* Whether layers of a kind stand behind one that keeps a workspace. */
static bool is_behind_experts(const struct maq_model *m, uint32_t kind)
{
    bool behind = false;
    for (uint32_t i = 0; i < m->num_layers; i++) {
        if (m->kind_of[i] == kind && (behind || m->kinds[kind].moe))
            return true;
        behind = behind || m->kinds[m->kind_of[i]].moe;
    }
    return false;
}

double maq_deployment_activations(const struct maq_deployment *d)
{
    const struct maq_passes *p = d->afd ? &d->afd->attention : &d->passes;
    const struct maq_model *m = &p->job->model;
    double most = head_bytes(d), before = 0, persistent = 0;
    for (uint32_t k = 0; k < m->n_kinds; k++) {
        struct widths w = widths_of(p, &m->kinds[k]);
        struct workspace space = workspace_of(d, p, &w);
        double own = larger(attention_bytes(d, &w, p->compiled), ffn_bytes(d, &w, p->compiled) + space.transient);
        if (is_behind_experts(m, k))
            most = larger(most, own);
        else
            before = larger(before, own);
        persistent = larger(persistent, space.persistent);
    }
    return larger(most + persistent, before) +
           (d->device->arch >= MAQ_ARCH_HOPPER ? MAQ_CUBLAS_BYTES : MAQ_CUBLAS_BYTES_BEFORE_HOPPER);
}

/* Bytes that a token's pass through a module has alive: what it reads and writes. */
static double widest(const struct maq_passes *p, const struct maq_layer *layer)
{
    const struct maq_lower lower = {.job = &p->own, .plan = &p->own.plan, .vocab_cut = p->own.plan.tp};
    double most = 0, topk = 1;
    for (uint32_t i = 0; i < layer->n_modules; i++) {
        const struct maq_module *m = &layer->modules[i];
        if (m->kind == MAQ_MODULE_ROUTER)
            topk = m->u.moe.topk;
        if (!maq_pass_has(p, m) || (m->kind != MAQ_MODULE_LINEAR && m->kind != MAQ_MODULE_EXPERT_LINEAR))
            continue;
        struct maq_local local = maq_lower_local(&lower, layer, m);
        most = larger(most, (double)(local.in + local.out) * (m->shard == MAQ_SHARD_EXPERT ? topk / p->ep : 1));
    }
    return most * WIDTH;
}

double maq_deployment_widest(const struct maq_passes *p)
{
    double most = 0;
    for (uint32_t k = 0; k < p->job->model.n_kinds; k++)
        most = larger(most, widest(p, &p->job->model.kinds[k]));
    return most;
}
