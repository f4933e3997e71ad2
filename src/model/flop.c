/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flop.c - model FLOP per token, forward and backward.
 *
 *   linear            2 in out             tied heads too
 *   routed experts    2 in out topk
 *   attention         2 heads (qk + v) keys      keys: mean number of keys a query meets
 *   Mamba-2 scan      7 inner state        as Megatron-LM counts it
 *   indexer           2 heads width keys   of all keys that a query could see
 *   Mamba-1 scan      none: it has no products of matrices
 *   delta rule        8 heads state v      four products of state x v per head: K K^T, V K^T, S (I - b K K^T), S Q
 *
 * each times 3 (backward is two more products). A multi-token-prediction depth adds its block and the head. Routers,
 * norms, activations, convolutions and the softmax are not counted. Source: megatron/training/training.py,
 * num_floating_point_operations(); scans: mamba_layer_flops() there.
 *
 * Mean keys in a sequence of s tokens, w the smaller of s and the window:
 *   causal    (w (w + 1) / 2 + (s - w) w) / s, which is (s + 1) / 2 without a window
 *   full      w
 * Keys that an indexer chooses, k of them, are as many as those of a window of k. Of keys made of r tokens each, m at most, besides:
 *   causal    (m (s + 1) - r m (m + 1) / 2) / s
 * Chunks of c tokens: as a sequence of c tokens, the last one shorter; averaged over all tokens.
 */
#include "base/check.h"
#include "maquette/model.h"

static double keys_sum(int64_t tokens, int64_t window, bool causal)
{
    double s = (double)tokens, w = window > 0 && window < tokens ? (double)window : s;
    return causal ? w * (w + 1.0) / 2.0 + (s - w) * w : s * w;
}

/* Of keys made of `stride` tokens each, `selected` at most. The k-th is there for the queries from token k stride on. */
static double strided_keys(const struct maq_attention_geometry *g, int64_t seq, bool causal)
{
    int64_t all = seq / g->stride, most = g->selected > 0 && g->selected < all ? g->selected : all;
    double m = (double)most, s = (double)seq;
    return causal ? (m * (s + 1.0) - (double)g->stride * m * (m + 1.0) / 2.0) / s : m;
}

double maq_attention_mean_keys(const struct maq_attention_geometry *g, int64_t seq, bool full)
{
    bool causal = g->causal && !full;
    if (seq <= 0)
        return 0.0;
    if (g->stride > 0)
        return strided_keys(g, seq, causal) + (g->window > 0 ? keys_sum(seq, g->window, causal) / (double)seq : 0.0);
    if (g->selected > 0) /* the first queries have fewer to choose from */
        return keys_sum(seq, g->selected, causal) / (double)seq;
    if (g->chunk <= 0 || g->chunk >= seq)
        return keys_sum(seq, g->window, causal) / (double)seq;
    int64_t whole = seq / g->chunk;
    double sum = (double)whole * keys_sum(g->chunk, g->window, causal);
    if (seq % g->chunk)
        sum += keys_sum(seq % g->chunk, g->window, causal);
    return sum / (double)seq;
}

/* Forward FLOP of one token. */
static double module_flop(const struct maq_module *m, int64_t seq, bool causal)
{
    double in = (double)m->in, out = (double)m->out;
    switch (m->kind) {
    case MAQ_MODULE_LINEAR:
        return 2.0 * in * out;
    case MAQ_MODULE_EXPERT_LINEAR:
        return 2.0 * in * out * m->u.moe.topk;
    case MAQ_MODULE_ATTENTION: {
        const struct maq_attention_geometry *g = &m->u.attention;
        double width = (double)g->qk_dim + (double)g->v_dim;
        return 2.0 * g->heads * width * maq_attention_mean_keys(g, seq, !causal);
    }
    case MAQ_MODULE_SSM_SCAN:
        return 7.0 * out * m->u.ssm.state;
    case MAQ_MODULE_DELTA_RULE:
        return 8.0 * out * m->u.ssm.state;
    case MAQ_MODULE_INDEXER: { /* scores alone, of all keys */
        struct maq_attention_geometry g = m->u.attention;
        g.selected = 0;
        return 2.0 * g.heads * g.qk_dim * maq_attention_mean_keys(&g, seq, !causal);
    }
    case MAQ_MODULE_EMBEDDING:
    case MAQ_MODULE_NORM:
    case MAQ_MODULE_ROPE:
    case MAQ_MODULE_ACTIVATION:
    case MAQ_MODULE_GATE:
    case MAQ_MODULE_RESIDUAL:
    case MAQ_MODULE_ROUTER:
    case MAQ_MODULE_DISPATCH:
    case MAQ_MODULE_EXPERT_ACTIVATION:
    case MAQ_MODULE_COMBINE:
    case MAQ_MODULE_CONV1D:
    case MAQ_MODULE_SELECTIVE_SCAN: /* no product of matrices */
    case MAQ_MODULE_LOSS:
    case MAQ_MODULE_KIND_COUNT:
        break;
    }
    return 0.0;
}

/* Of one token of the sequence, for which the layer may have several. */
double maq_layer_flop_per_token(const struct maq_layer *layer, int64_t seq, bool causal)
{
    double flop = 0.0;
    int64_t tokens = maq_layer_tokens(layer, seq);
    for (uint32_t i = 0; i < layer->n_modules; i++)
        flop += module_flop(&layer->modules[i], tokens, causal);
    return tokens == seq ? flop : flop * (double)tokens / (double)seq;
}

double maq_model_flop_per_token(const struct maq_model *model, int64_t seq, bool causal)
{
    double head = maq_layer_flop_per_token(&model->output, seq, causal);
    double flop = maq_layer_flop_per_token(&model->embedding, seq, causal) + head;
    for (uint32_t i = 0; i < model->num_layers; i++)
        flop += maq_layer_flop_per_token(&model->kinds[model->kind_of[i]], seq, causal);
    if (model->mtp_layers > 0)
        flop += model->mtp_layers * (maq_layer_flop_per_token(&model->mtp, seq, causal) + head);
    return 3.0 * flop;
}
