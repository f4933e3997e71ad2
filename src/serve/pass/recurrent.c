/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recurrent.c - layers with a state: a scan or a delta rule, and the kernels that an engine launches around it.
 *
 * The rule and the convolution are one operator each, whose tables time all that the engine's function launches. What stands around them is
 * below: copies that bring a tensor into another order, gates, states that are fetched and put back; each with the bytes that it reads and
 * writes of a width of the layer (on a rank), for every token or for every sequence. How many kernels the rule itself is counts for the host.
 *
 *                                  a prompt                                              a token
 *   gated delta rule
 *     vLLM                         output filled, a and b copied | convolution, preparation the same two | convolution, rule
 *                                  (q, k, v and gates apart), state fetched, masked (2), rule,
 *                                  state put back, output copied
 *     SGLang before 0.5.10         convolution, mask, gates, q, k, v copied, rule        convolution, rule
 *     SGLang from 0.5.10 on        projections split | the same; from 0.5.14 on q, k and projections split | convolution, rule; from
 *                                  v are one copy; from 0.5.23 on nothing is split        0.5.23 on the convolution splits
 *     TensorRT-LLM                 transposition, convolution, gates, rule               convolution, rule
 *   Kimi's delta rule              three convolutions, state fetched, rule, put back      convolution, rule
 *   Mamba-2                        convolution, scan                                      convolution, step
 *   lightning attention            of each prompt: state and q, k, v copied, scan,        step
 *                                  output and state copied; all outputs in one
 *
 *   kernels of a rule   FLA's six: sums of the decays, K K^T, its inverse, W and U, states of chunks, output; norms of q and k two more where
 *                       the engine does not prepare them. Five in one from SGLang 0.5.10 on (inverse in K K^T). FlashInfer's, which vLLM
 *                       takes from Hopper on: exponential of the decays, lengths in 64 bits, one kernel. Kimi's nine. Mamba-2's scan five
 *
 * In front of | there are kernels of the model's code, which a pass in pieces has in its graphs; behind it those of a custom operator that the host
 * launches one by one between two graphs, as it does an attention.
 *
 * The first projection is more than one product: q, k, v, z are one, b and a another, which blocks of scales leave in 16 bits (its width is
 * no multiple of a block); SGLang before 0.5.10 has four. SGLang has the small one on a second stream beside the large one up to 1,024 tokens,
 * and TensorRT-LLM always. The norm inside heads and its gate are one kernel in all of them.
 *
 * SGLang's norm of q and k in front of a delta rule had the rows that it goes over, tokens times heads, as a constant of the kernel until 0.5.15
 * (layers/attention/fla/l2norm.py): Triton compiles it for every number of tokens that a prefill has for the first time. All of its layers
 * have the same rows. Decodes norm inside the rule.
 *
 * Sources: vllm 0.33.0, model_executor/layers/mamba/gdn/qwen_gdn_linear_attn.py, gdn/kimi_gdn_linear_attn.py, mamba_mixer2.py,
 * linear/minimax_linear_attn.py, third_party/flash_linear_attention/ops; sglang 0.5.9, 0.5.10, 0.5.14 and 0.5.23, models/qwen3_5.py and
 * layers/attention/linear/gdn_backend.py (0.5.9: hybrid_linear_attn_backend.py); TensorRT-LLM, _torch/modules/mamba/gdn_mixer.py. What the tables
 * time: collector/vllm/collect_gdn.py and collector/sglang/collect_gdn.py of ai-dynamo/aiconfigurator. Qwen3-Next's projections, whose order is
 * another one, are taken to be Qwen3.5's.
 */
#include <string.h>

#include "base/check.h"
#include "serve/engine_release.h"
#include "serve/pass/pass.h"

#define SGLANG_MERGED MAQ_RELEASE(0, 5, 10)
#define SGLANG_ONE_COPY MAQ_RELEASE(0, 5, 14)
#define SGLANG_VIEWS MAQ_RELEASE(0, 5, 23)
#define SGLANG_ANY_LENGTH MAQ_RELEASE(0, 5, 16)
#define MOST_IN_ONE_COPY 8192     /* channels (gdn_backend.py: MAX_FUSED_QKV_SPLIT_DIM) */
#define SECOND_STREAM_TOKENS 1024 /* models/qwen3_5.py: DUAL_STREAM_TOKEN_THRESHOLD */
#define ATTENTION_KERNELS 2.0     /* that a piece was measured with: keys and values into the cache, attention */

/* What a kernel goes over, on a rank. */
enum width {
    NOTHING,
    QKV,       /* channels of the convolution */
    KEY,       /* of q, as many of k */
    VALUE,     /* of v, as many of the output */
    PROJECTED, /* q, k, v, z */
    GATES,     /* two of a value head */
    STATE,     /* of a sequence */
    SEQUENCE   /* one number */
};

struct small_kernel {
    uint8_t width, read, written; /* bytes of an element */
    bool in_model;                /* its graphs have it where a pass is in pieces */
};

static const struct small_kernel vllm_prompts[] = {{VALUE, 0, 2, true},  {GATES, 2, 2, true},     {QKV, 2, 2, false},
                                                   {STATE, 4, 4, false}, {SEQUENCE, 1, 1, false}, {STATE, 4, 4, false},
                                                   {STATE, 4, 4, false}, {VALUE, 2, 2, false},    {0}};
static const struct small_kernel vllm_decodes[] = {{VALUE, 0, 2, true}, {GATES, 2, 2, true}, {0}};
static const struct small_kernel kimi_prompts[] = {{STATE, 4, 4, false}, {STATE, 4, 4, false}, {0}};
static const struct small_kernel lightning_prompts[] = {
    {QKV, 2, 2, false}, {VALUE, 2, 2, false}, {VALUE, 2, 2, false}, {0}};
static const struct small_kernel sglang_prompts[] = {{SEQUENCE, 4, 1, false}, {GATES, 2, 4, false}, {0}};
static const struct small_kernel trtllm_prompts[] = {{QKV, 2, 2, false}, {GATES, 2, 4, false}, {0}};
static const struct small_kernel three_copies[] = {{KEY, 2, 2, false}, {KEY, 2, 2, false}, {VALUE, 2, 2, false}, {0}};
static const struct small_kernel one_copy[] = {{QKV, 2, 2, false}, {0}};
static const struct small_kernel split_projections[] = {{PROJECTED, 2, 2, true}, {0}};
static const struct small_kernel none[] = {{0}};

static int64_t share(int64_t n, int64_t by)
{
    return n / by > 0 ? n / by : 1;
}

static bool is(const struct maq_module *m, const char *name)
{
    return m->name && strcmp(m->name, name) == 0;
}

bool maq_pass_is_scan(const struct maq_module *m)
{
    return m->kind == MAQ_MODULE_CONV1D || m->kind == MAQ_MODULE_SSM_SCAN || m->kind == MAQ_MODULE_DELTA_RULE ||
           m->kind == MAQ_MODULE_SELECTIVE_SCAN;
}

/* ---- projections, norm and gate ---- */

static const struct maq_module *gated_delta_rule_of(const struct maq_layer *layer)
{
    for (uint32_t i = 0; i < layer->n_modules; i++)
        if (is(&layer->modules[i], "gated_delta_rule"))
            return &layer->modules[i];
    return NULL;
}

static bool before(const struct maq_passes *p, int32_t release)
{
    return p->engine == MAQ_ENGINE_SGLANG && p->release < release;
}

unsigned maq_pass_products(const struct maq_passes *p, const struct maq_layer *layer, const struct maq_module *m,
                           int64_t tokens, struct maq_pass_product out[MAQ_PASS_PRODUCTS])
{
    const struct maq_module *rule = is(m, "in_proj") ? gated_delta_rule_of(layer) : NULL;
    if (!rule)
        return 0;
    const struct maq_ssm_geometry *g = &rule->u.ssm;
    int64_t tp = p->own.plan.tp, heads = share(g->heads, tp), value = heads * g->head_dim,
            qkv = 2 * share(g->groups, tp) * g->state + value;
    bool beside = p->engine == MAQ_ENGINE_TRTLLM ||
                  (p->engine == MAQ_ENGINE_SGLANG && !before(p, SGLANG_MERGED) && tokens < SECOND_STREAM_TOKENS);
    if (before(p, SGLANG_MERGED)) {
        out[0] = (struct maq_pass_product){.out = qkv};
        out[1] = (struct maq_pass_product){.out = value};
        out[2] = out[3] = (struct maq_pass_product){.out = heads, .gates = true};
        return 4;
    }
    out[0] = (struct maq_pass_product){.out = qkv + value};
    out[1] = (struct maq_pass_product){.out = 2 * heads, .gates = true, .beside = beside};
    return 2;
}

bool maq_pass_is_in_gate(const struct maq_layer *layer, const struct maq_module *m)
{
    const struct maq_module *end = layer->modules + layer->n_modules;
    if (m->kind != MAQ_MODULE_NORM || m->part != MAQ_PART_SSM)
        return false;
    return (m + 1 < end && m[1].kind == MAQ_MODULE_GATE) || (m > layer->modules && m[-1].kind == MAQ_MODULE_GATE);
}

/* ---- around the rule ---- */

struct scan {
    const struct maq_passes *p;
    const struct maq_module *module;
    double times;
    int64_t tokens, sequences;
    bool prompts;
    double in_piece; /* kernels that the host launches by itself in any case */
    struct maq_pass_parts *out;
};

static int64_t width_of(const struct scan *s, enum width width)
{
    const struct maq_ssm_geometry *g = &s->module->u.ssm;
    int64_t tp = s->p->own.plan.tp, heads = share(g->heads, tp), key = share(g->groups, tp) * g->state,
            value = heads * g->head_dim;
    switch (width) {
    case QKV:
        return 2 * key + value;
    case KEY:
        return key;
    case VALUE:
        return value;
    case PROJECTED:
        return 2 * key + 2 * value;
    case GATES:
        return 2 * heads;
    case STATE:
        return value * g->state;
    case SEQUENCE:
        return 1;
    case NOTHING:
        break;
    }
    return 0;
}

static void launch(struct scan *s, const struct small_kernel *kernels)
{
    for (const struct small_kernel *k = kernels; k->width != NOTHING; k++) {
        bool of_sequence = k->width == STATE || k->width == SEQUENCE;
        struct maq_op op =
            maq_pass_op(MAQ_OP_ELEMENTWISE, &s->p->plain, 0,
                        width_of(s, k->width) * (of_sequence ? s->sequences : s->tokens), k->read, k->written, 0);
        maq_pass_cost(s->p, &op, s->times, MAQ_SERVE_ATTENTION, s->out);
        s->in_piece += k->in_model ? 0 : 1;
    }
}

/* Kernels that the rule is, of which the operator counts one. */
static double rule_kernels(const struct scan *s)
{
    const struct maq_passes *p = s->p;
    if (!s->prompts)
        return 1;
    if (is(s->module, "kimi_delta_rule"))
        return 9;
    if (is(s->module, "ssm_scan"))
        return 5;
    if (is(s->module, "lightning_attention"))
        return 4 +
               6 * (double)(s->sequences - 1); /* with two copies of each prompt, of which launch() has the first's */
    if (!is(s->module, "gated_delta_rule"))
        return 1;
    if (p->engine == MAQ_ENGINE_VLLM)
        return p->device->arch >= MAQ_ARCH_HOPPER ? 3 : 6;
    return p->engine == MAQ_ENGINE_SGLANG && !before(p, SGLANG_MERGED) ? 7 : 8;
}

static void around_gated_delta_rule(struct scan *s)
{
    const struct maq_passes *p = s->p;
    if (p->engine == MAQ_ENGINE_VLLM) {
        launch(s, s->prompts ? vllm_prompts : vllm_decodes);
        return;
    }
    if (p->engine == MAQ_ENGINE_TRTLLM) {
        launch(s, s->prompts ? trtllm_prompts : none);
        return;
    }
    bool copies_at_once = !before(p, SGLANG_ONE_COPY) && width_of(s, QKV) <= MOST_IN_ONE_COPY;
    if (!before(p, SGLANG_MERGED) && before(p, SGLANG_VIEWS))
        launch(s, split_projections);
    if (s->prompts) {
        launch(s, sglang_prompts);
        launch(s, copies_at_once ? one_copy : three_copies);
    }
}

static void around(struct scan *s)
{
    if (is(s->module, "gated_delta_rule"))
        around_gated_delta_rule(s);
    else if (is(s->module, "kimi_delta_rule") && s->prompts)
        launch(s, kimi_prompts);
    else if (is(s->module, "lightning_attention") && s->prompts)
        launch(s, lightning_prompts);
    double more = rule_kernels(s) - 1;
    s->in_piece += more + 1;
    s->out->kernels += more * s->times;
}

static bool has_delta_rule(const struct maq_layer *layer)
{
    for (uint32_t i = 0; i < layer->n_modules; i++)
        if (layer->modules[i].kind == MAQ_MODULE_DELTA_RULE)
            return true;
    return false;
}

uint32_t maq_pass_compiled_kernels(const struct maq_passes *p, const struct maq_pass_stage *s)
{
    for (uint32_t k = 0; before(p, SGLANG_ANY_LENGTH) && k < s->n_layers; k++)
        if (has_delta_rule(s->layers[k].layer))
            return 1;
    return 0;
}

/* ---- the scan itself ---- */

static void convolution(struct scan *s, const struct maq_layer *layer, int64_t queries)
{
    const struct maq_module *m = s->module;
    const struct maq_ssm_geometry *g = NULL;
    int64_t tp = s->p->own.plan.tp;
    struct maq_op op = maq_pass_op(MAQ_OP_CONV1D, &s->p->plain, 0, s->tokens, share(m->in, tp), m->u.kernel, 0);
    op.queries = (uint32_t)queries;
    for (uint32_t i = 0; s->prompts && i < layer->n_modules; i++)
        if (is(&layer->modules[i], "kimi_delta_rule"))
            g = &layer->modules[i].u.ssm;
    int64_t widths[] = {op.d[1], 0, 0};
    if (g) { /* of q, k and v each */
        widths[0] = widths[1] = share(g->groups, tp) * g->state;
        widths[2] = share(g->heads, tp) * g->head_dim;
    }
    for (size_t i = 0; i < MAQ_COUNT(widths); i++) {
        op.d[1] = widths[i];
        if (op.d[1] <= 0)
            continue;
        maq_pass_cost(s->p, &op, s->times, MAQ_SERVE_ATTENTION, s->out);
        s->in_piece++;
    }
}

static void rule(struct scan *s, int64_t queries)
{
    const struct maq_module *m = s->module;
    const struct maq_ssm_geometry *g = &m->u.ssm;
    int64_t tp = s->p->own.plan.tp;
    enum maq_op_kind kind = m->kind == MAQ_MODULE_DELTA_RULE       ? MAQ_OP_DELTA_RULE
                            : m->kind == MAQ_MODULE_SELECTIVE_SCAN ? MAQ_OP_SELECTIVE_SCAN
                                                                   : MAQ_OP_SSM_SCAN;
    struct maq_op op = maq_pass_op(kind, &s->p->plain, 0, s->tokens, 0, 0, 0);
    if (kind == MAQ_OP_SELECTIVE_SCAN && queries > 1) {
        op.d[1] = share(g->heads, tp);
        op.d[2] = g->state;
    } else if (kind == MAQ_OP_DELTA_RULE || queries > 1) {
        op.d[1] = share(g->heads, tp);
        op.d[2] = g->head_dim;
        op.d[3] = share(g->groups, tp);
        op.d[4] = g->state;
        op.queries = kind == MAQ_OP_DELTA_RULE ? (uint32_t)queries : 0;
    } else { /* one step of a state-space layer: its state, in 4 bytes, is read and written */
        op.kind = MAQ_OP_ELEMENTWISE;
        op.d[0] = s->tokens * share(g->heads, tp) * g->head_dim * g->state;
        op.d[1] = op.d[2] = 4;
    }
    maq_pass_cost(s->p, &op, s->times, MAQ_SERVE_ATTENTION, s->out);
}

static double one_side(struct scan s, const struct maq_layer *layer, int64_t queries)
{
    if (s.module->kind == MAQ_MODULE_CONV1D) {
        convolution(&s, layer, queries);
    } else {
        rule(&s, queries);
        around(&s);
    }
    return s.in_piece;
}

void maq_pass_scans(const struct maq_passes *p, const struct maq_layer *layer, double times,
                    const struct maq_pass_batch *b, int64_t prompt_tokens, int64_t prompt_queries,
                    struct maq_pass_parts *out)
{
    double in_piece = 0;
    for (uint32_t i = 0; i < layer->n_modules; i++) {
        struct scan s = {.p = p, .module = &layer->modules[i], .times = times, .out = out};
        if (!maq_pass_is_scan(s.module))
            continue;
        if (b->decodes > 0) {
            s.tokens = b->decodes * b->queries;
            s.sequences = b->decodes;
            in_piece += one_side(s, layer, 1);
        }
        if (b->n_chunks > 0) {
            s.prompts = true;
            s.tokens = prompt_tokens;
            s.sequences = b->n_chunks;
            in_piece += one_side(s, layer, prompt_queries > 1 ? prompt_queries : 2);
        }
    }
    if (in_piece > ATTENTION_KERNELS)
        out->between += (in_piece - ATTENTION_KERNELS) * times;
}
