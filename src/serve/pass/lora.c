/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lora.c - LoRA adapters on a rank: how large they are, and how long their kernels take.
 *
 * For each linear with n adapters (q, k and v are 3, gate and up 2), of `in` numbers and `out` numbers on this rank, and r = max_lora_rank:
 *
 *   bytes of a slot   2 r (n in + out)                  allocated for the largest rank (vLLM 0.33.0, lora/layers; SGLang 0.5.23, lora/mem_pool.py)
 *   shrink            [T, in] x [in, n r] -> [T, n r]   in 32 bits
 *   expand            [T, r] x [r, out], added to what the linear put out: 4 bytes of a number are read and written, as 32 bits of one that is written
 *
 * T tokens have an adapter, k different ones; others are passed over by the kernels. k products of T / k tokens each are one kernel that reads the weights
 * of each adapter once. Before the sum over the TP group: of a linear that is cut by its inputs each rank expands its part. Routed experts have
 * adapters each; of those of a rank as many are read as tokens choose.
 *
 * Nothing in a batch has an adapter: no kernel runs (vLLM's CUDA graphs are captured with them and without).
 */
#include <math.h>

#include "lower/local.h"
#include "serve/pass/pass.h"

struct site {
    int64_t in, out, n, copies; /* copies: experts of this rank, or 1 */
    int64_t topk;               /* of experts; 0: of a linear */
};

static bool gated_experts(const struct maq_layer *layer)
{
    for (uint32_t i = 0; i < layer->n_modules; i++)
        if (layer->modules[i].kind == MAQ_MODULE_EXPERT_ACTIVATION)
            return (layer->modules[i].flags & MAQ_MODULE_GATED) != 0;
    return false;
}

/* What has adapters of a module under a plan's cut; false: nothing. */
static bool cut_site(struct site *out, const struct maq_passes *p, const struct maq_plan *plan,
                     const struct maq_layer *layer, const struct maq_module *m)
{
    const struct maq_lower lower = {.job = &p->own, .plan = plan, .vocab_cut = plan->tp};
    const struct maq_local local = maq_lower_local(&lower, layer, m);
    int64_t widths[MAQ_LORA_SPANS];
    *out = (struct site){.in = local.in, .copies = 1};
    if (m->kind == MAQ_MODULE_EXPERT_LINEAR && p->lora.experts) {
        const struct maq_moe_geometry *g = &m->u.moe;
        out->n = !(m->flags & MAQ_MODULE_REDUCE_OUT) && gated_experts(layer) ? 2 : 1;
        out->out = local.out;
        out->copies = g->experts > plan->ep ? g->experts / plan->ep : 1;
        out->topk = g->topk;
        return true;
    }
    uint32_t n = maq_lower_adapters(widths, &lower, layer, m);
    for (uint32_t i = 0; i < n; i++)
        out->out += widths[i];
    out->n = n;
    return n > 0;
}

static bool site_of(struct site *out, const struct maq_passes *p, const struct maq_layer *layer,
                    const struct maq_module *m)
{
    return cut_site(out, p, &p->lora.plan, layer, m);
}

double maq_pass_adapter_file_bytes(const struct maq_passes *p)
{
    struct maq_plan whole = p->lora.plan;
    double sum = 0;
    struct site site;
    whole.tp = whole.ep = whole.etp = 1;
    for (uint32_t s = 0; s < p->n_stages && p->lora.rank > 0; s++)
        for (uint32_t k = 0; k < p->stages[s].n_layers; k++)
            for (uint32_t i = 0; i < p->stages[s].layers[k].layer->n_modules; i++)
                if (cut_site(&site, p, &whole, p->stages[s].layers[k].layer, &p->stages[s].layers[k].layer->modules[i]))
                    sum += (double)((site.n * site.in + site.out) * site.copies * p->stages[s].layers[k].count);
    return sum * p->lora.rank * 2;
}

double maq_pass_adapter_bytes(const struct maq_passes *p, const struct maq_pass_stage *s)
{
    double sum = 0;
    struct site site;
    for (uint32_t k = 0; k < s->n_layers && p->lora.rank > 0; k++)
        for (uint32_t i = 0; i < s->layers[k].layer->n_modules; i++)
            if (site_of(&site, p, s->layers[k].layer, &s->layers[k].layer->modules[i]))
                sum += (double)((site.n * site.in + site.out) * site.copies * s->layers[k].count);
    return sum * p->lora.rank * 2;
}

/* A product of `rows` tokens by weights of `groups` kinds, into 32 bits. */
static void product(const struct maq_passes *p, double rows, double groups, int64_t n, int64_t k, double times,
                    struct maq_pass_parts *out)
{
    int64_t each = (int64_t)ceil(rows / groups);
    enum maq_op_kind kind = groups > 1 ? MAQ_OP_GROUPED_GEMM : MAQ_OP_GEMM;
    struct maq_op op = maq_pass_op(kind, &p->plain, MAQ_OP_OUT_FP32, each, n, k, groups > 1 ? (int64_t)groups : 1);
    maq_pass_cost(p, &op, times, MAQ_SERVE_LORA, out);
}

static void site_cost(const struct maq_passes *p, const struct site *s, int64_t tokens, int64_t adapters, double times,
                      struct maq_pass_parts *out)
{
    double rows = (double)tokens, groups = (double)adapters;
    if (s->topk > 0) {
        rows = fmax(1, ceil(rows * (double)s->topk / p->ep));
        groups *= (double)s->copies;
    }
    groups = fmin(groups, rows);
    product(p, rows, groups, s->n * p->lora.rank, s->in, times, out);
    product(p, rows, groups, s->out, p->lora.rank, times, out);
}

/* Times are kept for the next batch of that shape. */
void maq_pass_lora(struct maq_passes *p, uint32_t stage, const struct maq_pass_batch *b, struct maq_pass_parts *out)
{
    if (b->adapted <= 0 || p->lora.rank == 0)
        return;
    uint64_t place = ((uint64_t)b->adapted * 0x9e3779b97f4a7c15u + (uint64_t)b->adapters) % MAQ_PASS_LORA_SHAPES;
    struct maq_pass_lora_shape *known = &p->lora.shapes[stage * MAQ_PASS_LORA_SHAPES + place];
    if (known->tokens != b->adapted || known->adapters != b->adapters) {
        const struct maq_pass_stage *s = &p->stages[stage];
        struct site site;
        *known = (struct maq_pass_lora_shape){.tokens = b->adapted, .adapters = b->adapters};
        for (uint32_t k = 0; k < s->n_layers; k++)
            for (uint32_t i = 0; i < s->layers[k].layer->n_modules; i++)
                if (site_of(&site, p, s->layers[k].layer, &s->layers[k].layer->modules[i]))
                    site_cost(p, &site, b->adapted, b->adapters, s->layers[k].count, &known->parts);
    }
    maq_pass_sum(out, &known->parts);
}

enum maq_status maq_pass_lora_init(struct maq_passes *p, const struct maq_serve_options *o)
{
    struct maq_str wrong;
    bool known;
    if (!o->lora.enabled)
        return MAQ_OK;
    p->lora.rank = o->lora.max_lora_rank;
    p->lora.plan = p->own.plan;
    p->lora.plan.lora_rank = p->lora.rank;
    p->lora.plan.lora_sites =
        maq_lora_sites(maq_str_of(o->lora.targets ? o->lora.targets : "all-linear"), &p->job->model, &wrong, &known);
    p->lora.experts = !o->lora.targets && o->engine == MAQ_ENGINE_VLLM;
    p->lora.shapes = MAQ_ARENA_NEW(p->arena, struct maq_pass_lora_shape, (size_t)p->n_stages * MAQ_PASS_LORA_SHAPES);
    return p->lora.shapes ? MAQ_OK : MAQ_NO_MEMORY;
}
