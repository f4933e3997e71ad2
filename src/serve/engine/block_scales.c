/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_scales.c - weights with a scale for each block of 128 x 128, and degrees that cut through a block: engines refuse to load them.
 *
 *   input of a row-parallel linear      in / tp            is a multiple of 128     vLLM, SGLang
 *   outputs of a column-parallel one    out / tp           is one                   vLLM, SGLang
 *     of one that merges several        each of them / tp  is one                   SGLang: q, k and v; gate and up; q, k, v and z. vLLM takes
 *                                                                                   these as they are
 *   experts                             ffn / (ranks / ep) is one                   SGLang; vLLM before 0.33
 *     from vLLM 0.33 on                 or the greatest number that divides it, 128 and the hidden width is 32 or more: scales are repeated for
 *                                       blocks of that
 *
 * What is in 16 bits beside such weights (router, head, the gates of a delta rule) and what every rank has whole is not asked. TensorRT-LLM
 * was not read and refuses nothing here.
 *
 * Sources: vllm 0.33.0, model_executor/layers/quantization/utils/fp8_utils.py (validate_fp8_block_shape, validate_fp8_block_shape_moe),
 * layers/linear.py (_maybe_allow_fp8_block_shape_mismatch), layers/fused_moe/oracle/fp8.py (refine_fp8_moe_block_shape); for earlier releases
 * vllm-project/vllm#25292 and #48173, both of experts. sglang 0.5.23, layers/quantization/fp8.py (validate_block_quant_shapes, create_weights of its experts).
 */
#include <string.h>

#include "base/check.h"
#include "base/gcd.h"
#include "base/text.h"
#include "serve/codes.h"
#include "serve/engine/deployment.h"
#include "serve/engine_release.h"

#define BLOCK 128
#define LEAST_BLOCK 32
#define VLLM_REPEATS_SCALES MAQ_RELEASE(0, 33, 0)
#define MOST_PARTS 4u

struct cut {
    const struct maq_job *job;
    const struct maq_serve_options *options;
    int64_t tp, expert_tp; /* ranks that cut an expert */
};

struct fault {
    const struct maq_module *module;
    int64_t whole, each, by;
    bool input;
};

/* Whether a rank's part of `whole`, cut by `by`, is no whole blocks: then *f says so. */
static bool is_cut(struct fault *f, const struct maq_module *m, int64_t whole, int64_t by, bool input)
{
    int64_t each = whole / by > 0 ? whole / by : 1;
    if (each % BLOCK == 0)
        return false;
    *f = (struct fault){.module = m, .whole = whole, .each = each, .by = by, .input = input};
    return true;
}

static const struct maq_module *of_kind(const struct maq_layer *layer, enum maq_module_kind kind)
{
    for (uint32_t i = 0; i < layer->n_modules; i++)
        if (layer->modules[i].kind == kind)
            return &layer->modules[i];
    return NULL;
}

static bool named(const struct maq_module *m, const char *name)
{
    return m->name && strcmp(m->name, name) == 0;
}

/* Outputs that a column-parallel linear has beside each other, 0: it is one. */
static unsigned parts_of(int64_t out[MOST_PARTS], const struct maq_layer *layer, const struct maq_module *m)
{
    const struct maq_module *attention = of_kind(layer, MAQ_MODULE_ATTENTION),
                            *rule = of_kind(layer, MAQ_MODULE_DELTA_RULE);
    const struct maq_module *next = m + 1 < layer->modules + layer->n_modules ? m + 1 : NULL;
    if (named(m, "linear_qkv") && attention) {
        const struct maq_attention_geometry *g = &attention->u.attention;
        out[0] = (int64_t)g->heads * g->qk_dim;
        out[1] = (int64_t)g->kv_heads * g->qk_dim;
        out[2] = (int64_t)g->kv_heads * g->v_dim;
        return 3;
    }
    if (named(m, "in_proj") && rule) {
        const struct maq_ssm_geometry *g = &rule->u.ssm;
        out[0] = out[1] = (int64_t)g->groups * g->state;
        out[2] = out[3] = (int64_t)g->heads * g->head_dim;
        return 4;
    }
    if (next && next->kind == MAQ_MODULE_ACTIVATION && next->flags & MAQ_MODULE_GATED) {
        out[0] = out[1] = m->out / 2;
        return 2;
    }
    return 0;
}

/* Heads that are fewer than the ranks are on several of them. */
static int64_t ranks_of(const struct maq_layer *layer, const struct maq_module *m, unsigned part, int64_t tp)
{
    const struct maq_module *attention = of_kind(layer, MAQ_MODULE_ATTENTION);
    int64_t heads = part > 0 && named(m, "linear_qkv") ? attention->u.attention.kv_heads : tp;
    return heads < tp ? heads : tp;
}

static bool linear_fault(struct fault *f, const struct cut *c, const struct maq_layer *layer,
                         const struct maq_module *m)
{
    int64_t parts[MOST_PARTS];
    if (c->tp == 1 || c->options->weights != MAQ_WEIGHTS_FP8_BLOCK ||
        m->flags & (MAQ_MODULE_UNQUANTIZED | MAQ_MODULE_FP32))
        return false;
    if (m->shard == MAQ_SHARD_ROW)
        return is_cut(f, m, m->in, c->tp, true);
    if (m->shard != MAQ_SHARD_COLUMN)
        return false;
    unsigned n = parts_of(parts, layer, m);
    if (n == 0)
        return is_cut(f, m, m->out, c->tp, false);
    for (unsigned i = 0; c->options->engine == MAQ_ENGINE_SGLANG && i < n; i++)
        if (is_cut(f, m, parts[i], ranks_of(layer, m, i, c->tp), false))
            return true;
    return false;
}

static bool expert_fault(struct fault *f, const struct cut *c, const struct maq_module *m)
{
    const struct maq_serve_options *o = c->options;
    bool down = m->flags & MAQ_MODULE_REDUCE_OUT;
    if (o->expert_weights != MAQ_WEIGHTS_FP8_BLOCK || !down || !is_cut(f, m, m->in, c->expert_tp, true))
        return false;
    int64_t block = maq_gcd(maq_gcd(BLOCK, f->each), m->out);
    bool repeats = o->engine == MAQ_ENGINE_VLLM && maq_engine_release(o->version) >= VLLM_REPEATS_SCALES;
    return !repeats || block < LEAST_BLOCK;
}

static bool any_fault(struct fault *f, const struct cut *c)
{
    const struct maq_model *model = &c->job->model;
    for (uint32_t k = 0; k < model->n_kinds; k++)
        for (uint32_t i = 0; i < model->kinds[k].n_modules; i++) {
            const struct maq_module *m = &model->kinds[k].modules[i];
            if ((m->kind == MAQ_MODULE_LINEAR && linear_fault(f, c, &model->kinds[k], m)) ||
                (m->kind == MAQ_MODULE_EXPERT_LINEAR && expert_fault(f, c, m)))
                return true;
        }
    return false;
}

static struct cut cut_of(const struct maq_job *job, const struct maq_serve_options *o, int64_t tp, int64_t ep)
{
    int64_t dp = o->dp > 1 ? o->dp : 1, ranks = o->afd.ffn_ranks > 0 ? o->afd.ffn_ranks : tp * dp;
    return (struct cut){.job = job, .options = o, .tp = tp, .expert_tp = ranks / ep > 0 ? ranks / ep : 1};
}

/* Degrees that do not cut through a block: all experts whole on their ranks, or fewer ranks that cut. */
static void suggest(char *out, size_t size, const struct cut *c, int64_t ranks)
{
    struct fault ignored;
    struct cut whole = *c;
    int64_t tp = c->tp - 1;
    whole.expert_tp = 1;
    while (tp > 1) {
        struct cut fewer = cut_of(c->job, c->options, tp, 1);
        if (c->tp % tp == 0 && !any_fault(&ignored, &fewer))
            break;
        tp--;
    }
    bool spread = c->expert_tp > 1 && !any_fault(&ignored, &whole);
    if (spread && tp > 0)
        maq__snprintf(out, size, "--ep %lld, or --tp %lld", (long long)ranks, (long long)tp);
    else if (spread)
        maq__snprintf(out, size, "--ep %lld", (long long)ranks);
    else if (tp > 0)
        maq__snprintf(out, size, "--tp %lld", (long long)tp);
    else
        maq__snprintf(out, size, "--weights fp8, of a checkpoint with one scale for a tensor");
}

enum maq_status maq_blocks_check(const struct maq_job *job, const struct maq_serve_options *o, struct maq_diag *diag)
{
    struct fault f;
    int64_t ep = o->ep > 1 ? o->ep : 1;
    const struct cut c = cut_of(job, o, job->plan.tp, ep);
    char hint[96];
    if (o->engine == MAQ_ENGINE_TRTLLM || o->as_it_ran || !any_fault(&f, &c))
        return MAQ_OK;
    suggest(hint, sizeof hint, &c, c.expert_tp * ep);
    return maq_diag_fail(
        MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_RANKS, (struct maq_span){0}, hint,
        "%s of %s has %lld %s on each of %lld ranks that cut its %lld: no whole blocks of %d weights with a "
        "scale, and %s does not load them",
        f.module->name ? f.module->name : "a linear", job->model.name, (long long)f.each,
        f.input ? "inputs" : "outputs", (long long)f.by, (long long)f.whole, BLOCK,
        o->engine == MAQ_ENGINE_SGLANG ? "SGLang" : "vLLM");
}
