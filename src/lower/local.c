/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local.c - the local shape of a module under the plan's cut: rows, widths, parameters, and the mean number of keys
 * per query where sequences hold several documents. See local.h.
 */
#include "lower/local.h"

#include <string.h>

#include "base/check.h"
#include "base/str.h"

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

/* Positions are the same for all sequences and looked up once, so their product is negligible against that of the tokens. */
bool maq_lower_one_hot(const struct maq_lower *lo, const struct maq_module *m)
{
    return m->kind == MAQ_MODULE_EMBEDDING && (m->flags & MAQ_MODULE_REDUCE_OUT) &&
           lo->job->framework.embeds_by_product;
}

bool maq_lower_quantized(const struct maq_lower *lower, const struct maq_module *m)
{
    bool product = m->kind == MAQ_MODULE_LINEAR || m->kind == MAQ_MODULE_EXPERT_LINEAR,
         head = m->kind == MAQ_MODULE_LINEAR && m->part == MAQ_PART_OUTPUT;
    if (!product || (lower->math != MAQ_FP8 && lower->math != MAQ_FP4) || m->flags & MAQ_MODULE_FP32)
        return false;
    return !(m->flags & MAQ_MODULE_UNQUANTIZED) || (head && lower->plan->fp8_output);
}

double maq_lower_narrow_bytes(const struct maq_plan *plan)
{
    switch ((enum maq_precision)plan->precision) {
    case MAQ_PRECISION_FP8_BLOCKWISE: /* a number of 4 bytes for 128 */
        return 1 + 4.0 / 128;
    case MAQ_PRECISION_MXFP8: /* one of 1 byte for 32 */
        return 1 + 1.0 / 32;
    case MAQ_PRECISION_NVFP4: /* one of 1 byte for 16 */
        return 0.5 + 1.0 / 16;
    case MAQ_PRECISION_AUTO:
    case MAQ_PRECISION_FP32:
    case MAQ_PRECISION_FP16:
    case MAQ_PRECISION_BF16:
    case MAQ_PRECISION_FP8_DELAYED:
    case MAQ_PRECISION_FP8_CURRENT:
    case MAQ_PRECISION_FP8_ROWWISE:
    case MAQ_PRECISION_COUNT:
        break;
    }
    return 1;
}

/*
 * QLoRA (bitsandbytes 0.50, functional.py): 4 bits a number and a scale of 4 bytes for each 64 of them; double quantization has 1 byte for the
 * scale, and one of 4 bytes for each 256 scales. LLM.int8(): 1 byte, and a scale for each row, which is nothing.
 */
double maq_lower_base_bytes(const struct maq_plan *plan, double wide)
{
    switch ((enum maq_base_quantization)plan->base_quantization) {
    case MAQ_BASE_NONE:
        break;
    case MAQ_BASE_INT8:
        return 1;
    case MAQ_BASE_NF4:
        return 0.5 + 4.0 / 64;
    case MAQ_BASE_NF4_DOUBLE:
        return 0.5 + 1.0 / 64 + 4.0 / 64 / 256;
    }
    return wide;
}

/* Linears alone are replaced (transformers, integrations/bitsandbytes.py): no experts, which are one tensor, and no output layer. */
bool maq_lower_base_quantized(const struct maq_lower *lower, const struct maq_module *m)
{
    return lower->plan->lora_rank > 0 && lower->plan->base_quantization != MAQ_BASE_NONE &&
           m->kind == MAQ_MODULE_LINEAR && m->part != MAQ_PART_OUTPUT && !(m->flags & MAQ_MODULE_FP32);
}

bool maq_lower_trained(const struct maq_lower *lower)
{
    return lower->plan->lora_rank == 0;
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

double maq_lower_border_bytes(const struct maq_lower *lower, int64_t hidden)
{
    return (double)lower->tokens_region * (double)hidden * lower->store_bytes;
}

bool maq_job_has_transformer_engine(const struct maq_job *job)
{
    return job->framework.transformer_engine && job->plan.fused_kernels;
}

bool maq_lower_norm_joined(const struct maq_lower *lower, const struct maq_layer *layer, const struct maq_module *norm)
{
    const struct maq_module *end = layer->modules + layer->n_modules, *reader = norm + 1;
    if (norm->kind != MAQ_MODULE_NORM || !maq_job_has_transformer_engine(lower->job))
        return false;
    bool alone = reader + 1 >= end || !(reader[1].flags & MAQ_MODULE_SHARED_INPUT);
    return reader < end && reader->kind == MAQ_MODULE_LINEAR && reader->shard == MAQ_SHARD_COLUMN && alone;
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

/* ---- products that are one here and several in other programs ---- */

/* Local widths of q, k and v in a linear_qkv: a rank that has no key/value head of its own has a copy of one. */
static void qkv_widths(int64_t out[MAQ_LORA_SPANS], const struct maq_lower *lower, const struct maq_layer *layer,
                       int64_t width)
{
    int64_t tp = lower->plan->tp;
    for (uint32_t i = 0; i < layer->n_modules; i++) {
        const struct maq_attention_geometry *g = &layer->modules[i].u.attention;
        if (layer->modules[i].kind != MAQ_MODULE_ATTENTION)
            continue;
        int64_t heads = g->kv_heads < tp ? 1 : g->kv_heads / tp;
        out[MAQ_LORA_KEYS] = heads * g->qk_dim;
        out[MAQ_LORA_VALUES] = heads * g->v_dim;
        out[MAQ_LORA_QUERIES] = width - out[MAQ_LORA_KEYS] - out[MAQ_LORA_VALUES];
        return;
    }
}

/* Local widths of a linear and of what is fused in it: 0 where it has no such part. */
static void span_widths(int64_t of[MAQ_LORA_SPANS], const struct maq_lower *lower, const struct maq_layer *layer,
                        const struct maq_module *m)
{
    int64_t width = maq_lower_local(lower, layer, m).out;
    bool gated = m + 1 < layer->modules + layer->n_modules && (m[1].flags & MAQ_MODULE_GATED);
    for (int s = 0; s < MAQ_LORA_SPANS; s++)
        of[s] = 0;
    of[MAQ_LORA_WHOLE] = width;
    if (strcmp(m->name, "linear_qkv") == 0)
        qkv_widths(of, lower, layer, width);
    of[MAQ_LORA_GATE] = gated ? width / 2 : 0;
    of[MAQ_LORA_UP] = width - of[MAQ_LORA_GATE];
}

uint32_t maq_lower_products(int64_t out[MAQ_LORA_SPANS], const struct maq_lower *lower, const struct maq_layer *layer,
                            const struct maq_module *m)
{
    static const enum maq_lora_span parts[] = {MAQ_LORA_QUERIES, MAQ_LORA_KEYS, MAQ_LORA_VALUES};
    int64_t of[MAQ_LORA_SPANS];
    uint32_t n = 0;
    span_widths(of, lower, layer, m);
    for (size_t i = 0; i < MAQ_COUNT(parts); i++)
        if (of[parts[i]] > 0)
            out[n++] = of[parts[i]];
    if (n == 0 && of[MAQ_LORA_GATE] > 0)
        out[n++] = of[MAQ_LORA_GATE];
    if (n == 0 || of[MAQ_LORA_GATE] > 0)
        out[n++] = of[MAQ_LORA_GATE] > 0 ? of[MAQ_LORA_UP] : of[MAQ_LORA_WHOLE];
    return n;
}

bool maq_lower_product_is_kept(uint32_t *products)
{
    return ++*products % 2 == 1;
}

static uint32_t spans_of(int64_t out[MAQ_LORA_SPANS], uint32_t sites, const struct maq_lower *lower,
                         const struct maq_layer *layer, const struct maq_module *m)
{
    uint32_t n = 0, spans = sites ? maq_lora_spans(sites, m) : 0;
    int64_t of[MAQ_LORA_SPANS];
    if (spans == 0)
        return 0;
    span_widths(of, lower, layer, m);
    for (int s = 0; s < MAQ_LORA_SPANS; s++)
        if (spans & 1u << s && of[s] > 0)
            out[n++] = of[s];
    return n;
}

uint32_t maq_lower_adapters(int64_t out[MAQ_LORA_SPANS], const struct maq_lower *lower, const struct maq_layer *layer,
                            const struct maq_module *m)
{
    return spans_of(out, lower->plan->lora_rank > 0 ? lower->plan->lora_sites : 0, lower, layer, m);
}

uint32_t maq_lower_projected(int64_t out[MAQ_LORA_SPANS], const struct maq_lower *lower, const struct maq_layer *layer,
                             const struct maq_module *m)
{
    return spans_of(out, lower->plan->galore_rank > 0 ? lower->plan->galore_sites : 0, lower, layer, m);
}

bool maq_lower_adapted(const struct maq_lower *lower, const struct maq_module *m)
{
    return lower->plan->lora_rank > 0 && maq_lora_spans(lower->plan->lora_sites, m) != 0;
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
