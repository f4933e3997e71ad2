/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - what a rank holds, and what is left of its memory for keys and values.
 *
 *   weights       each module's share of its parameters, in the type that the weights have (head, router and norms in 16 bits)
 *   adapters      slots for LoRA adapters (serve/pass/lora.c)
 *   activations   of the largest iteration, max_num_batched_tokens tokens, of which max_num_seqs are sampled from (activations.c); vLLM: and its
 *                 table of sines and cosines, of all positions that the model was made for
 *   sampler       vLLM: what is kept for each request that is sampled from, with one count for each token of the vocabulary
 *   graphs        vLLM: its CUDA graphs (cuda_graph_memory.c)
 *   context       driver and libraries. vLLM looks at what is free when they are there already: its share of the GPU is without them
 *   what drafts   its weights beside those of the last stage (what it shares with the model counts once), its keys and values in every block:
 *                 as a group of layers where it keeps what another kind does, else as bytes of each token
 *   KV cache      gpu_memory_utilization of the device less all this, in blocks
 *
 * Where attention and FFN are on GPUs of their own, all this is of those of attention, with the weights that they have. Those of FFN have theirs and
 * activations of all ranks of attention together: in and out of each micro-batch, and what the widest module of one reads and writes.
 *
 * Layers that keep the same tokens are grouped so that all groups have as many layers (the least of any kind, or the most where that
 * is less than 1.5 times the least), because a block has one size (vLLM, v1/core/kv_cache_planning.py).
 */
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "lower/local.h"
#include "serve/engine/deployment.h"

/* Beside PyTorch's allocator an H100 has 787 MB in use (data/on-gpu/h100-sxm, November 2026). */
#define CONTEXT_BYTES 787e6
/* A state of a recurrent layer is kept in 32 bits. */
#define STATE_BYTES 4.0

static const struct maq_pass_type *type_of(const struct maq_passes *p, const struct maq_module *m)
{
    if (m->flags & (MAQ_MODULE_UNQUANTIZED | MAQ_MODULE_FP32))
        return &p->plain;
    return m->kind == MAQ_MODULE_LINEAR ? &p->linear : m->kind == MAQ_MODULE_EXPERT_LINEAR ? &p->experts : &p->plain;
}

/* Of a weight, with its scales. */
static double weight_bytes(const struct maq_passes *p, const struct maq_module *m)
{
    return m->kind == MAQ_MODULE_ROUTER && maq_pass_router_is_wide(p) ? 4 : type_of(p, m)->bytes;
}

static double layer_weights(const struct maq_passes *p, const struct maq_layer *layer)
{
    const struct maq_lower lower = {.job = &p->own, .plan = &p->own.plan, .vocab_cut = p->own.plan.tp};
    double sum = 0;
    for (uint32_t i = 0; i < layer->n_modules; i++)
        if (maq_pass_has(p, &layer->modules[i]))
            sum += maq_lower_local_params(&lower, &layer->modules[i]) * weight_bytes(p, &layer->modules[i]);
    return sum;
}

/* What drafts has weights of its own but for what it shares with the model that verifies. */
static double drafter_weights(const struct maq_deployment *d)
{
    const struct maq_drafter *f = &d->drafter;
    double sum = 0;
    if (!maq_deployment_has_drafter(d))
        return 0;
    for (uint32_t s = 0; s < d->draft.n_stages; s++)
        for (uint32_t k = 0; k < d->draft.stages[s].n_layers; k++)
            sum += layer_weights(&d->draft, d->draft.stages[s].layers[k].layer) * d->draft.stages[s].layers[k].count;
    sum *= f->depths;
    sum += (double)(f->combines * f->job.model.hidden) * d->draft.plain.bytes;
    sum += f->own_embedding ? layer_weights(&d->draft, &f->job.model.embedding) : 0;
    return sum + (f->own_head ? layer_weights(&d->draft, &f->job.model.output) : 0);
}

static double stage_weights(const struct maq_passes *p, const struct maq_pass_stage *s)
{
    double sum = s->first ? layer_weights(p, &p->job->model.embedding) : 0;
    sum += s->last ? layer_weights(p, &p->job->model.output) : 0;
    if (s->last && !s->first && p->job->model.tied_embeddings)
        sum += layer_weights(p, &p->job->model.embedding);
    for (uint32_t k = 0; k < s->n_layers; k++)
        sum += layer_weights(p, s->layers[k].layer) * s->layers[k].count;
    return sum;
}

/* Features of a head that are rotated. */
static double rotated(const struct maq_layer *layer)
{
    double features = 0, heads = 0;
    bool latent = strcmp(layer->mixer, "mla") == 0; /* one key for all heads */
    for (uint32_t i = 0; i < layer->n_modules; i++) {
        const struct maq_module *m = &layer->modules[i];
        if (m->kind == MAQ_MODULE_ROPE)
            features += (double)m->in;
        else if (m->kind == MAQ_MODULE_ATTENTION)
            heads = m->u.attention.heads + (latent ? 1 : m->u.attention.kv_heads);
    }
    return heads > 0 ? features / heads : 0;
}

/* vllm 0.33.0, model_executor/layers/rotary_embedding/base.py: in 16 bits, one for all layers that rotate as many. Of layers that rotate by another base the
 * second table is not counted. */
static double position_table(const struct maq_deployment *d)
{
    const struct maq_model *m = &d->job->model;
    double widest = 0;
    for (uint32_t k = 0; k < m->n_kinds; k++) {
        double features = rotated(&m->kinds[k]);
        widest = features > widest ? features : widest;
    }
    return d->options.engine == MAQ_ENGINE_VLLM ? (double)m->max_seq * widest * 2 : 0;
}

/* Of a GPU of FFN. */
static double ffn_weights(const struct maq_afd *a)
{
    double sum = 0;
    for (uint32_t k = 0; k < a->n_kinds; k++)
        sum += layer_weights(&a->ffn, a->ffn.stages[k].layers[0].layer) * a->layers_of[k];
    return sum;
}

static double all_weights(const struct maq_passes *p, const struct maq_layer *layer)
{
    double sum = 0;
    for (uint32_t i = 0; i < layer->n_modules; i++)
        sum += (double)layer->modules[i].params * type_of(p, &layer->modules[i])->bytes;
    return sum;
}

double maq_deployment_checkpoint_bytes(const struct maq_deployment *d)
{
    const struct maq_passes *p = &d->passes;
    double sum = all_weights(p, &d->job->model.embedding) + all_weights(p, &d->job->model.output);
    for (uint32_t s = 0; s < p->n_stages; s++)
        for (uint32_t k = 0; k < p->stages[s].n_layers; k++)
            sum += all_weights(p, p->stages[s].layers[k].layer) * p->stages[s].layers[k].count;
    return sum;
}

static double ffn_activations(const struct maq_deployment *d)
{
    double tokens = (double)d->options.max_num_batched_tokens * d->passes.dp, n = d->options.afd.micro_batches;
    return tokens * (double)d->job->model.hidden * 2 * 2 + ceil(tokens / n) * maq_deployment_widest(&d->afd->ffn);
}

double maq_deployment_tower_bytes(const struct maq_deployment *d)
{
    return maq_deployment_encodes(d) ? maq_tower_bytes(&d->tower) : 0;
}

double maq_tower_bytes(const struct maq_tower *t)
{
    return stage_weights(&t->passes, &t->passes.stages[0]);
}

/* Of images that have passed the tower, until their tokens are computed: vLLM's encoder cache, as large as an iteration. */
static double embeddings(const struct maq_deployment *d)
{
    const struct maq_encoder_options *e = &d->options.encoder;
    int64_t width = e->own ? d->job->model.vision->embedding_width : d->job->model.hidden;
    return maq_encoder_there(e) ? (double)d->options.max_num_batched_tokens * (double)width * 2 : 0;
}

/*
 * What vLLM's sampler keeps, on the last stage alone (vllm 0.33.0, v1/worker/gpu): for each request how often it has sampled each token, and a
 * bit for each token of its prompt (sample/penalties.py); a bit for each token that a grammar lets through (structured_outputs.py);
 * three lists of 1,024 words (sample/logit_bias.py) and one of as many words that are forbidden (sample/bad_words.py).
 * The first model runner, of releases before 0.33 by default, keeps none of it before somebody asks for a penalty.
 */
static double sampler(const struct maq_deployment *d)
{
    enum { LISTS = 4, LIST_WORDS = 1024 };
    const struct maq_serve_options *o = &d->options;
    if (o->engine != MAQ_ENGINE_VLLM || maq_engine_release(o->version) < MAQ_VLLM_SECOND_RUNNER)
        return 0;
    double rows = o->max_num_seqs, vocab = (double)d->job->model.vocab;
    return rows * (vocab * (4 + 2.0 / 8) + LISTS * LIST_WORDS * 4);
}

/* ---- the cache ---- */

/* Bytes of a token in a layer on one rank, 0 where it keeps a state; then *state has that. */
static double layer_kv(const struct maq_deployment *d, int32_t ranks, const struct maq_layer *layer,
                       struct maq_kv_group *group, double *state)
{
    double bytes = 0, index = 0, tp = ranks, width = d->options.kv_fp8 ? 1 : 2;
    *state = 0;
    *group = (struct maq_kv_group){.kind = MAQ_KV_FULL, .block_size = d->options.block_size};
    for (uint32_t i = 0; i < layer->n_modules; i++) {
        const struct maq_module *m = &layer->modules[i];
        if (m->kind == MAQ_MODULE_ATTENTION) {
            const struct maq_attention_geometry *g = &m->u.attention;
            double heads = g->kv_heads / tp > 1 ? g->kv_heads / tp : 1;
            bytes = g->shares_kv ? 0 : heads * (g->qk_dim + g->v_dim) * width;
            group->window = g->window > 0 ? g->window : g->chunk; /* of chosen keys all have to be there */
            group->kind = g->window > 0 ? MAQ_KV_WINDOW : g->chunk > 0 ? MAQ_KV_CHUNK : MAQ_KV_FULL;
        } else if (m->kind == MAQ_MODULE_INDEXER) {
            index = (double)m->u.attention.qk_dim * width;
        } else if (m->kind == MAQ_MODULE_SSM_SCAN || m->kind == MAQ_MODULE_DELTA_RULE ||
                   m->kind == MAQ_MODULE_SELECTIVE_SCAN) {
            const struct maq_ssm_geometry *g = &m->u.ssm;
            *state += (double)g->heads / tp * g->head_dim * g->state * STATE_BYTES;
        } else if (m->kind == MAQ_MODULE_CONV1D) {
            *state += (double)m->in / tp * (m->u.kernel - 1) * 2;
        }
    }
    if (strcmp(layer->mixer, "mla") == 0) /* the latent and the rotated key, on every rank */
        for (uint32_t i = 0; i < layer->n_modules; i++)
            if (layer->modules[i].name && strcmp(layer->modules[i].name, "linear_kv_down_proj") == 0)
                bytes = (double)layer->modules[i].out * width;
    return bytes > 0 ? bytes + index : 0; /* an index has a key of its own for each token, on every rank */
}

double maq_deployment_layer_kv(const struct maq_deployment *d, const struct maq_layer *layer,
                               struct maq_kv_group *group, double *state)
{
    return layer_kv(d, d->job->plan.tp, layer, group, state);
}

struct kinds {
    struct maq_kv_group group[MAQ_KV_MOST_GROUPS];
    double bytes[MAQ_KV_MOST_GROUPS]; /* of a token in one layer */
    uint32_t layers[MAQ_KV_MOST_GROUPS];
    uint32_t n;
    double states; /* bytes of a request, all layers */
};

static void list_kinds(const struct maq_deployment *d, const struct maq_pass_stage *s, struct kinds *out)
{
    *out = (struct kinds){0};
    for (uint32_t k = 0; k < s->n_layers; k++) {
        struct maq_kv_group g;
        double state, bytes = layer_kv(d, d->job->plan.tp, s->layers[k].layer, &g, &state);
        uint32_t i = 0;
        out->states += state * s->layers[k].count;
        if (bytes <= 0)
            continue;
        while (i < out->n &&
               (out->group[i].kind != g.kind || out->group[i].window != g.window || out->bytes[i] != bytes))
            i++;
        if (i == out->n && i + 1 < MAQ_KV_MOST_GROUPS) {
            out->group[out->n] = g;
            out->bytes[out->n++] = bytes;
        }
        out->layers[i] += s->layers[k].count;
    }
}

/* Layers of what drafts are counted with their like; bytes of a token in those that have none. */
static double add_drafter(const struct maq_deployment *d, struct kinds *out)
{
    double others = 0;
    if (!maq_deployment_has_drafter(d))
        return 0;
    for (uint32_t s = 0; s < d->draft.n_stages; s++)
        for (uint32_t k = 0; k < d->draft.stages[s].n_layers; k++) {
            const struct maq_pass_layer *l = &d->draft.stages[s].layers[k];
            struct maq_kv_group g;
            double state, bytes = layer_kv(d, d->drafter.job.plan.tp, l->layer, &g, &state);
            uint32_t i = 0, layers = l->count * d->drafter.depths;
            while (i < out->n &&
                   (out->group[i].kind != g.kind || out->group[i].window != g.window || out->bytes[i] != bytes))
                i++;
            out->states += state * layers;
            if (i < out->n)
                out->layers[i] += layers;
            else
                others += bytes * layers;
        }
    return others;
}

/* Layers of a group, the same in all. */
static uint32_t layers_of_group(const struct kinds *k)
{
    uint32_t least = UINT32_MAX, most = 0;
    for (uint32_t i = 0; i < k->n; i++) {
        least = k->layers[i] < least ? k->layers[i] : least;
        most = k->layers[i] > most ? k->layers[i] : most;
    }
    return most < 1.5 * least ? most : least;
}

static void make_groups(struct maq_deployment *d, const struct kinds *k)
{
    uint32_t each = k->n > 0 ? layers_of_group(k) : 1;
    double widest_token = 0;
    d->n_groups = 0;
    for (uint32_t i = 0; i < k->n; i++) {
        widest_token = k->bytes[i] > widest_token ? k->bytes[i] : widest_token;
        d->kv_bytes_per_token += k->bytes[i] * k->layers[i];
        for (uint32_t n = 0; n * each < k->layers[i] && d->n_groups < MAQ_KV_MOST_GROUPS; n++)
            d->groups[d->n_groups++] = k->group[i];
    }
    d->block_bytes = widest_token * each * d->options.block_size;
    if (d->n_groups == 0) { /* states alone: a block for a request */
        d->groups[d->n_groups++] = (struct maq_kv_group){.kind = MAQ_KV_STATE, .block_size = d->options.block_size};
        d->block_bytes = k->states;
    }
}

struct maq_token_bytes maq_deployment_token_bytes(const struct maq_deployment *d)
{
    struct maq_token_bytes out = {0};
    double tp = d->job->plan.tp, drafter = d->kv_bytes_per_token, fullest = 0;
    for (uint32_t s = 0; s < d->passes.n_stages; s++) {
        double stage = 0;
        for (uint32_t k = 0; k < d->passes.stages[s].n_layers; k++) {
            const struct maq_pass_layer *l = &d->passes.stages[s].layers[k];
            struct maq_kv_group g;
            double state, bytes = layer_kv(d, d->job->plan.tp, l->layer, &g, &state) * l->count;
            stage += bytes;
            out.all += bytes * tp;
            out.once += strcmp(l->layer->mixer, "mla") == 0 ? bytes : bytes * tp;
        }
        fullest = stage > fullest ? stage : fullest;
    }
    drafter -= fullest; /* what drafts keeps its own keys and values beside those of its stage */
    out.rank = d->kv_bytes_per_token;
    out.all += drafter * tp;
    out.once += drafter * tp;
    return out;
}

/* The share of the GPU that all has together, where another share is given; `held`: all but the cache. */
static void set_utilization(struct maq_deployment *d, double held)
{
    struct maq_serve_options *o = &d->options;
    double all = d->capacity_bytes,
           around = d->memory[MAQ_SERVE_MEM_ACTIVATIONS] + d->memory[MAQ_SERVE_MEM_GRAPHS] + CONTEXT_BYTES, share = 0;
    if (o->static_memory_share > 0)
        share = (o->static_memory_share * (all - CONTEXT_BYTES) + around) / all;
    if (o->free_memory_share > 0)
        share = (held + o->free_memory_share * (all - held)) / all;
    if (share > 0)
        o->gpu_memory_utilization = share < 1 ? share : 1;
}

/* What the engine may use of a GPU; vLLM's share of it is without what others have there already. */
static double usable(const struct maq_deployment *d, double all)
{
    bool of_all = d->options.static_memory_share > 0 || d->options.free_memory_share > 0;
    double beside = d->options.engine == MAQ_ENGINE_VLLM && !of_all ? CONTEXT_BYTES : 0,
           share = all * d->options.gpu_memory_utilization + beside;
    return share < all ? share : all;
}

/* A GPU of FFN: weights, activations, context; no cache. */
static bool ffn_memory(struct maq_deployment *d)
{
    double *held = d->ffn_memory;
    held[MAQ_SERVE_MEM_WEIGHTS] = ffn_weights(d->afd);
    held[MAQ_SERVE_MEM_ACTIVATIONS] = ffn_activations(d);
    held[MAQ_SERVE_MEM_CONTEXT] = CONTEXT_BYTES;
    d->ffn_capacity_bytes = d->afd->ffn.device->mem_bytes;
    d->ffn_usable_bytes = usable(d, d->ffn_capacity_bytes);
    return held[MAQ_SERVE_MEM_WEIGHTS] + held[MAQ_SERVE_MEM_ACTIVATIONS] + CONTEXT_BYTES <= d->ffn_usable_bytes;
}

/* What moving an adapter takes: to each GPU its part, at the rate that it has when all of its node copy; the whole file to the host. */
static void time_adapters(struct maq_deployment *d)
{
    const struct maq_lora_options *o = &d->options.lora;
    double link = d->device->host_copy_bps > 0 ? d->device->host_copy_bps : d->device->host_bps,
           read = o->read_bps > 0 ? o->read_bps : link;
    d->adapters.file_bytes = maq_pass_adapter_file_bytes(&d->passes);
    for (uint32_t s = 0; s < d->passes.n_stages; s++) {
        double bytes = maq_pass_adapter_bytes(&d->passes, &d->passes.stages[s]);
        d->adapters.slot_bytes = bytes > d->adapters.slot_bytes ? bytes : d->adapters.slot_bytes;
    }
    d->adapters.copy_s = link > 0 ? d->adapters.slot_bytes / link : 0;
    d->adapters.read_s = read > 0 ? d->adapters.file_bytes / read : 0;
}

void maq_deployment_memory(struct maq_deployment *d)
{
    double weights = 0;
    struct kinds kinds, fullest = {0};
    uint32_t most = 0;
    for (uint32_t s = 0; s < d->passes.n_stages; s++) {
        double slots = d->options.lora.max_loras * maq_pass_adapter_bytes(&d->passes, &d->passes.stages[s]),
               w = stage_weights(d->afd ? &d->afd->attention : &d->passes, &d->passes.stages[s]) +
                   (d->passes.stages[s].last ? drafter_weights(d) : 0) +
                   (d->passes.stages[s].first ? maq_deployment_tower_bytes(d) : 0) + slots;
        uint32_t layers = 0;
        if (w > weights) {
            weights = w;
            d->memory[MAQ_SERVE_MEM_LORA] = slots;
        }
        list_kinds(d, &d->passes.stages[s], &kinds);
        for (uint32_t i = 0; i < kinds.n; i++)
            layers += kinds.layers[i];
        if (s == 0 || layers > most) {
            most = layers;
            fullest = kinds;
        }
    }
    if (d->options.lora.enabled)
        time_adapters(d);
    double drafter_kv = add_drafter(d, &fullest);
    make_groups(d, &fullest);
    d->kv_bytes_per_token += drafter_kv;
    d->block_bytes += drafter_kv * d->options.block_size / d->n_groups;
    d->capacity_bytes = d->device->mem_bytes;
    d->memory[MAQ_SERVE_MEM_WEIGHTS] = weights - d->memory[MAQ_SERVE_MEM_LORA];
    d->memory[MAQ_SERVE_MEM_ACTIVATIONS] =
        maq_deployment_activations(d) + position_table(d) + sampler(d) + embeddings(d);
    d->memory[MAQ_SERVE_MEM_GRAPHS] =
        maq_deployment_graphs_bytes(d, maq_deployment_widest(d->afd ? &d->afd->attention : &d->passes));
    d->memory[MAQ_SERVE_MEM_CONTEXT] = CONTEXT_BYTES;
    double held = weights + d->memory[MAQ_SERVE_MEM_ACTIVATIONS] + d->memory[MAQ_SERVE_MEM_GRAPHS] + CONTEXT_BYTES,
           state = fullest.n > 0 ? fullest.states : 0;
    set_utilization(d, held + state * d->options.max_num_seqs);
    double left = usable(d, d->capacity_bytes) - held, states = maq_deployment_states(d, state, left);
    left -= states;
    d->blocks = d->options.blocks > 0                         ? d->options.blocks
                : left > d->block_bytes && d->block_bytes > 0 ? (int64_t)(left / d->block_bytes)
                                                              : 0;
    if (d->blocks > UINT32_MAX / 4)
        d->blocks = UINT32_MAX / 4;
    d->memory[MAQ_SERVE_MEM_KV] = (double)d->blocks * d->block_bytes + states;
    d->kv_tokens = d->blocks > 1 ? (d->blocks - 1) / d->n_groups * d->options.block_size : 0;
    d->fits = d->blocks > d->n_groups && d->options.max_num_seqs > 0 && (!d->afd || ffn_memory(d));
}
