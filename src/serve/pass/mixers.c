/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mixers.c - what mixes tokens: attention, latent attention with its projections; layers with a state are in recurrent.c.
 *
 * Sequences that decode are one kernel: a query each (or one and its drafts), over the keys that they see in the mean. The prompts of a
 * batch are one kernel each here; engines have one for all, which starts once.
 *
 * A sequence that has q queries at its end reads its keys and values once for all of them. Kernels for decoding put the queries that share a
 * key into the rows of one tile, as they do with the heads that share it: such a sequence is one that decodes with q times the heads.
 */
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "serve/engine_release.h"
#include "serve/pass/pass.h"

#define LATENT_ROPE                                                                                                    \
    64 /* rotated numbers of a latent key, as MAQ_OP_MLA_BLOCK has them (src/cost/analytical/composite.c) */

#define TILE_QUERIES 64 /* of FlashAttention 2 with a paged cache, whatever the heads: is_unpacked() */

static int64_t share(int64_t n, int64_t by)
{
    return n / by > 0 ? n / by : 1;
}

static bool is_latent(const struct maq_layer *layer)
{
    return strcmp(layer->mixer, "mla") == 0;
}

/* MAQ_OP_MLA_BLOCK is the whole of latent attention but for the sum over the TP group; not an index or a gate beside it. */
static bool in_latent_block(const struct maq_module *m)
{
    static const char *const names[] = {"linear_q_",    "linear_kv_",       "linear_proj",   "q_layernorm",
                                        "kv_layernorm", "k_rope_layernorm", "rotary_pos_emb"};
    for (size_t i = 0; i < MAQ_COUNT(names); i++)
        if (m->name && strncmp(m->name, names[i], strlen(names[i])) == 0)
            return m->part == MAQ_PART_ATTENTION || m->part == MAQ_PART_MLA_UP;
    return false;
}

bool maq_pass_is_mixer(const struct maq_layer *layer, const struct maq_module *m)
{
    if (m->kind == MAQ_MODULE_ATTENTION || m->kind == MAQ_MODULE_INDEXER || maq_pass_is_scan(m))
        return true;
    return is_latent(layer) && in_latent_block(m);
}

static uint32_t window_index(const struct maq_passes *p, int64_t window)
{
    uint32_t i = 0;
    while (i + 1 < p->n_windows && p->windows[i] != window)
        i++;
    return i;
}

/* Keys that the queries of a prompt see together: all before them, or the last `window`. */
static double keys_of(const struct maq_pass_chunk *c, int64_t window)
{
    double n = (double)c->queries, past = (double)c->context, w = (double)window;
    if (window <= 0 || past + n <= w)
        return n * past + n * (n + 1) / 2;
    double ramp = w - past > 0 ? (w - past < n ? w - past : n) : 0;
    return ramp * (past + (ramp + 1) / 2) + (n - ramp) * w;
}

static int64_t rounded(double x)
{
    return x < 1 ? 1 : (int64_t)(x + 0.5);
}

static struct maq_op queries_of(const struct maq_passes *p, struct maq_op op, const struct maq_pass_batch *b,
                                uint32_t window)
{
    op.flags |= p->windows[window] > 0 ? MAQ_OP_WINDOW : 0;
    op.queries = 1;
    op.d[0] = b->decodes;
    op.d[1] = rounded(maq_pass_mean_keys(b, window));
    op.d[2] *= b->queries;
    return op;
}

/*
 * The prompts of a pass as one operator, as kernels for sequences of unlike lengths take them. Queries and what each of them sees are
 * those of all prompts; the length of a sequence, which decides what share of a tile is filled, is that which a query finds in the mean.
 */
static struct maq_op prompts_of(const struct maq_passes *p, struct maq_op op, const struct maq_pass_batch *b,
                                uint32_t window)
{
    double queries = 0, squares = 0, keys = 0;
    bool windowed = false;
    for (uint32_t i = 0; i < b->n_chunks; i++) {
        const struct maq_pass_chunk *c = &b->chunks[i];
        double n = (double)c->queries;
        queries += n;
        squares += n * n;
        if (p->encodes) { /* a window is a sequence of its own, from which no token sees out */
            double sees = p->windows[window] > 0 ? fmin(n, (double)p->windows[window]) : n;
            squares += n * (sees - n);
            keys += n * sees;
            continue;
        }
        keys += keys_of(c, p->windows[window]);
        windowed = windowed || (p->windows[window] > 0 && c->context + c->queries > p->windows[window]);
    }
    op.queries = (uint32_t)rounded(squares / queries);
    if (op.queries > 1 && !p->encodes)
        op.flags |= windowed ? MAQ_OP_WINDOW : MAQ_OP_CAUSAL;
    op.d[0] = rounded(queries);
    op.d[1] = rounded(keys / queries);
    return op;
}

/*
 * Where keys and values are kept in 8 bits vLLM's attention multiplies in 8 bits and has its queries converted first: by a kernel of its own before 0.11 (on
 * Blackwell 0.12), then with what stands in front of it, unless the operator is one of its own, as it is for weights in blocks. The other engines'
 * tables have it in the attention. vllm 0.10.2 to 0.12.0, v1/attention/backends/flash_attn.py and flashinfer.py, attention/layer.py (query_quant).
 */
static bool converts_queries(const struct maq_passes *p)
{
    int32_t fused = p->device->arch >= MAQ_ARCH_BLACKWELL ? MAQ_RELEASE(0, 12, 0) : MAQ_RELEASE(0, 11, 0);
    return p->kv_fp8 && p->engine == MAQ_ENGINE_VLLM && p->device->arch >= MAQ_ARCH_HOPPER &&
           (p->release < fused || p->linear.flags & MAQ_OP_BLOCKS);
}

/*
 * FlashAttention 2 puts the heads that share a key into the rows of one tile only where all sequences of a call have one query (seqlenq_ngroups_swapped in
 * flash_api.cpp of vllm-project/flash-attention, 617264c). vLLM gives it the whole batch in one call (v1/attention/backends/flash_attn.py), so that beside a
 * prompt, or with drafts, each head of a sequence that decodes is a tile of its own of 64 queries (its kBlockM), of which
 * one counts. Devices before Hopper and RTX boards have it (fa_utils.py); FlashAttention 3 packs always, and there are no 8-bit caches in it.
 */
static bool is_unpacked(const struct maq_passes *p, const struct maq_pass_batch *b)
{
    bool version_2 = p->device->arch == MAQ_ARCH_AMPERE || p->device->arch == MAQ_ARCH_ADA;
    return (b->mixed || b->queries > 1) && version_2 && p->engine == MAQ_ENGINE_VLLM &&
           p->release >= MAQ_VLLM_COMPILED && !p->kv_fp8;
}

/* Those that decode as tiles of queries: at the rate of a prompt whose queries see as many keys in the mean. */
static struct maq_op tiles_of(struct maq_op op, const struct maq_pass_batch *b, uint32_t window)
{
    int64_t keys = rounded(maq_pass_mean_keys(b, window));
    op.flags |= MAQ_OP_CAUSAL;
    op.queries = (uint32_t)(2 * keys - 1);
    op.d[0] = b->decodes * TILE_QUERIES;
    op.d[1] = keys;
    return op;
}

static void attend_decodes(const struct maq_passes *p, struct maq_op op, double times, const struct maq_pass_batch *b,
                           uint32_t window, struct maq_pass_parts *out)
{
    struct maq_op decode = queries_of(p, op, b, window);
    if (is_unpacked(p, b)) {
        struct maq_op tiles = tiles_of(op, b, window);
        if (maq_pass_seconds(p, &tiles) > maq_pass_seconds(p, &decode))
            decode = tiles;
    }
    maq_pass_cost(p, &decode, times, MAQ_SERVE_ATTENTION, out);
}

/*
 * Where keys and values are kept in 8 bits TensorRT-LLM's kernel for prompts multiplies in 8 bits, if prompts may find a prefix in the cache (as they may by
 * default) or the output goes on in few bits (mFP8ContextFMHA in cpp/tensorrt_llm/thop/attentionOp.cpp; from its PyTorch backend on). Its kernel
 * for decoding multiplies in 16.
 */
static bool prompts_are_in_8_bits(const struct maq_passes *p)
{
    return p->kv_fp8 && p->engine == MAQ_ENGINE_TRTLLM && p->release >= MAQ_TRTLLM_PYTORCH;
}

/* `b` has no one that decodes where MAQ_MIXER_DECODES is not asked for, and no prompts without MAQ_MIXER_PROMPTS: maq_pass_mixer(). */
static void attention(const struct maq_passes *p, const struct maq_module *m, double times,
                      const struct maq_pass_batch *b, unsigned shares, struct maq_pass_parts *out)
{
    const struct maq_attention_geometry *g = &m->u.attention;
    int64_t tp = p->own.plan.tp, kv = share(g->kv_heads, tp);
    struct maq_op op =
        maq_pass_op(MAQ_OP_ATTENTION, &p->plain, p->kv_fp8 ? MAQ_OP_KV_FP8 : 0, 0, 0, share(g->heads, tp), kv);
    uint32_t window = window_index(p, maq_pass_window(g));
    op.d[4] = g->qk_dim;
    op.d[5] = g->v_dim;
    struct maq_op write =
        maq_pass_op(MAQ_OP_ELEMENTWISE, &p->plain, 0, b->tokens * kv * (g->qk_dim + g->v_dim), 2, p->kv_fp8 ? 1 : 2, 0);
    if (shares & MAQ_MIXER_TOKENS && !p->encodes) {
        struct maq_op queries =
            maq_pass_op(MAQ_OP_QUANTIZE, &p->plain, 0, b->tokens, share(g->heads, tp) * g->qk_dim, 1, 0);
        queries.dtype = MAQ_FP8;
        maq_pass_cost(p, &write, times, MAQ_SERVE_ATTENTION, out);
        if (converts_queries(p))
            maq_pass_cost(p, &queries, times, MAQ_SERVE_ATTENTION, out);
    }
    if (b->decodes > 0)
        attend_decodes(p, op, times, b, window, out);
    if (b->n_chunks > 0) {
        struct maq_op prompts = prompts_of(p, op, b, window);
        if (prompts_are_in_8_bits(p)) {
            prompts.dtype = MAQ_FP8;
            prompts.flags &= (uint8_t)~MAQ_OP_KV_FP8;
        }
        maq_pass_cost(p, &prompts, times, MAQ_SERVE_ATTENTION, out);
    }
}

/* ---- latent attention ---- */

static int64_t width_of(const struct maq_layer *layer, const char *name, bool out)
{
    for (uint32_t i = 0; i < layer->n_modules; i++)
        if (layer->modules[i].name && strcmp(layer->modules[i].name, name) == 0)
            return out ? layer->modules[i].out : layer->modules[i].in;
    return 0;
}

/*
 * What drafts add to a block in which `sequences` decode. The block of so many tokens that see one key has its products; that of one query each
 * over all keys, less the same over one key, is its attention, which grows with the heads as the kernel itself does.
 */
static void latent_drafts(const struct maq_passes *p, struct maq_op block, int64_t queries, double times,
                          struct maq_pass_parts *out)
{
    struct maq_op shallow = block, tokens = block,
                  one = maq_pass_op(MAQ_OP_ATTENTION, &p->plain, block.flags & MAQ_OP_KV_FP8, block.d[0], block.d[1],
                                    block.d[2], 1);
    one.queries = 1;
    one.d[4] = block.d[5] + LATENT_ROPE;
    one.d[5] = block.d[5];
    struct maq_op several = one;
    several.d[2] *= queries;
    shallow.d[1] = tokens.d[1] = 1;
    tokens.d[0] *= queries;
    double grows = maq_pass_seconds(p, &several) / maq_pass_seconds(p, &one),
           core = maq_pass_seconds(p, &block) - maq_pass_seconds(p, &shallow),
           all = maq_pass_seconds(p, &tokens) + (core > 0 ? core : 0) * grows;
    struct maq_pass_parts more = {0}, less = {0};
    maq_pass_cost(p, &tokens, times, MAQ_SERVE_ATTENTION, &more);
    maq_pass_cost(p, &shallow, times, MAQ_SERVE_ATTENTION, &less);
    maq_pass_cost(p, &several, times, MAQ_SERVE_ATTENTION, &more);
    maq_pass_cost(p, &one, times, MAQ_SERVE_ATTENTION, &less);
    out->ns[MAQ_SERVE_ATTENTION] += (all - maq_pass_seconds(p, &block)) * 1e9 * times;
    out->matrix_ns += more.matrix_ns - less.matrix_ns;
    out->memory_ns += more.memory_ns - less.memory_ns;
}

static void latent(const struct maq_passes *p, const struct maq_layer *layer, const struct maq_module *m, double times,
                   const struct maq_pass_batch *b, unsigned shares, struct maq_pass_parts *out)
{
    int64_t heads = share(m->u.attention.heads, p->own.plan.tp), q_lora = width_of(layer, "linear_q_down_proj", true),
            kv_lora = width_of(layer, "linear_kv_up_proj", false);
    struct maq_op op =
        maq_pass_op(MAQ_OP_MLA_BLOCK, &p->linear, p->kv_fp8 ? MAQ_OP_KV_FP8 : 0, 0, 0, heads, layer->hidden);
    op.d[4] = q_lora > 0 ? q_lora : layer->hidden;
    op.d[5] = kv_lora;
    uint32_t window = window_index(p, maq_pass_window(&m->u.attention));
    if (b->decodes > 0) {
        struct maq_op decode = queries_of(p, op, b, window);
        decode.flags &= (uint8_t)~MAQ_OP_WINDOW; /* its keys say it */
        decode.d[2] = op.d[2];
        maq_pass_cost(p, &decode, times, MAQ_SERVE_ATTENTION, out);
        if (b->queries > 1)
            latent_drafts(p, decode, b->queries, times, out);
    }
    if (b->n_chunks > 0) {
        struct maq_op prompts = prompts_of(p, op, b, window);
        prompts.flags &= (uint8_t) ~(MAQ_OP_CAUSAL | MAQ_OP_WINDOW); /* always is causal */
        maq_pass_cost(p, &prompts, times, MAQ_SERVE_ATTENTION, out);
    }
    if (shares & MAQ_MIXER_TOKENS)
        maq_pass_coll(p, MAQ_COLL_ALL_REDUCE, (double)b->padded * (double)layer->hidden * 2, times, out);
}

/* ---- the choice of keys ---- */

/* Scores of all keys, priced as attention whose values are one number wide; and a pass over them in 4 bytes. */
static void choose_once(const struct maq_passes *p, const struct maq_attention_geometry *g, double times,
                        struct maq_op op, struct maq_pass_parts *out)
{
    struct maq_op choice = maq_pass_op(MAQ_OP_SOFTMAX, &p->plain, 0, op.d[0] * op.d[2], op.d[1], 0, 0);
    op.d[2] *= g->heads; /* of a query; it came with the queries of a sequence that decodes */
    op.d[3] = 1;
    op.d[4] = g->qk_dim;
    op.d[5] = 1;
    choice.dtype = MAQ_FP32;
    maq_pass_cost(p, &op, times, MAQ_SERVE_ATTENTION, out);
    maq_pass_cost(p, &choice, times, MAQ_SERVE_ATTENTION, out);
}

static void choose(const struct maq_passes *p, const struct maq_module *m, double times, const struct maq_pass_batch *b,
                   struct maq_pass_parts *out)
{
    struct maq_op op = maq_pass_op(MAQ_OP_ATTENTION, &p->plain, p->kv_fp8 ? MAQ_OP_KV_FP8 : 0, 0, 0, 1, 0);
    if (b->decodes > 0)
        choose_once(p, &m->u.attention, times, queries_of(p, op, b, 0), out);
    if (b->n_chunks > 0)
        choose_once(p, &m->u.attention, times, prompts_of(p, op, b, 0), out);
}

uint32_t maq_pass_mixer_window(bool *chooses, const struct maq_passes *p, const struct maq_layer *layer)
{
    uint32_t window = 0;
    *chooses = false;
    for (uint32_t i = 0; i < layer->n_modules; i++) {
        if (layer->modules[i].kind == MAQ_MODULE_ATTENTION)
            window = window_index(p, maq_pass_window(&layer->modules[i].u.attention));
        *chooses = *chooses || layer->modules[i].kind == MAQ_MODULE_INDEXER;
    }
    return window;
}

void maq_pass_mixer(const struct maq_passes *p, const struct maq_layer *layer, double times,
                    const struct maq_pass_batch *batch, unsigned shares, struct maq_pass_parts *out)
{
    struct maq_pass_batch b = *batch;
    b.mixed = b.decodes > 0 && b.n_chunks > 0;
    b.decodes = shares & MAQ_MIXER_DECODES ? b.decodes : 0;
    b.n_chunks = shares & MAQ_MIXER_PROMPTS ? b.n_chunks : 0;
    bool scans = false;
    for (uint32_t i = 0; i < layer->n_modules; i++) {
        const struct maq_module *m = &layer->modules[i];
        if (m->kind == MAQ_MODULE_ATTENTION && is_latent(layer))
            latent(p, layer, m, times, &b, shares, out);
        else if (m->kind == MAQ_MODULE_ATTENTION)
            attention(p, m, times, &b, shares, out);
        else if (m->kind == MAQ_MODULE_INDEXER)
            choose(p, m, times, &b, out);
        scans = scans || maq_pass_is_scan(m);
    }
    if (scans) {
        struct maq_op prompts = b.n_chunks > 0 ? prompts_of(p, (struct maq_op){0}, &b, 0) : (struct maq_op){0};
        maq_pass_scans(p, layer, times, &b, prompts.d[0], prompts.queries, out);
    }
}
