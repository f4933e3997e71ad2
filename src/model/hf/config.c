/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.c - the common path from the numbers of a config.json to an architecture.
 *
 * Defaults that depend on other keys: head_dim = hidden / heads, key and value heads = heads, the MLP width of
 * GPT-2's descendants = 4 x hidden, the width of an expert = that of the MLP. Everything else is either written or
 * fixed by the class.
 */
#include "model/hf/config.h"

#include "base/check.h"
#include "base/str.h"
#include "model/codes.h"

#include <inttypes.h>

#define HEADS_KEYS "num_attention_heads|n_head|n_heads"
#define KV_KEYS "num_key_value_heads|multi_query_group_num|num_kv_heads|n_head_kv"
#define TOPK_KEYS "num_experts_per_tok|num_experts_per_token|experts_per_token|num_selected_experts"

/* Whether the width of the MLP will be missing as well: what a family makes of other keys it makes of any sizes. */
static bool lacks_width(const struct maq_hf *hf, const struct maq_model_reader *r, const struct maq_family *family)
{
    struct maq_hf trial = *hf;
    struct maq_model_reader silent = *r;
    int64_t *const sizes[] = {&trial.hidden, &trial.layers, &trial.heads, &trial.vocab};
    silent.diag = NULL;
    for (size_t i = 0; i < MAQ_COUNT(sizes); i++)
        *sizes[i] = *sizes[i] > 0 ? *sizes[i] : 1;
    if (family->settle)
        family->settle(&trial, &silent);
    return trial.ffn <= 0 && trial.moe_ffn <= 0 && !(trial.expansion > 0);
}

/* All that is missing is told at once. */
static bool check_size(const struct maq_hf *hf, struct maq_model_reader *r, const struct maq_family *family)
{
    bool ok = maq__reader_needs(r, hf->hidden > 0, "hidden_size");
    ok &= maq__reader_needs(r, hf->layers > 0, "num_hidden_layers");
    ok &= maq__reader_needs(r, hf->heads > 0, "num_attention_heads");
    ok &= maq__reader_needs(r, hf->vocab > 0, "vocab_size");
    if (!ok && lacks_width(hf, r, family))
        (void)maq__reader_needs(r, false, "intermediate_size");
    return ok;
}

static void check_heads(struct maq_hf *hf, struct maq_model_reader *r)
{
    if (hf->kv_heads == 0)
        hf->kv_heads = hf->heads;
    if (hf->head_dim == 0 && hf->kv_lora == 0) {
        MAQ_READER_CHECK(r, hf->hidden % hf->heads == 0, MAQ_CODE_MODEL_HEAD_WIDTH, HEADS_KEYS,
                         "give head_dim, or another number of heads",
                         "hidden_size %" PRId64 " is not a multiple of %" PRId64 " heads", hf->hidden, hf->heads);
        hf->head_dim = hf->hidden / hf->heads;
    }
    MAQ_READER_CHECK(r, hf->heads % hf->kv_heads == 0, MAQ_CODE_MODEL_KV_HEADS, KV_KEYS, NULL,
                     "%" PRId64 " query heads cannot share %" PRId64 " key and value heads evenly", hf->heads,
                     hf->kv_heads);
}

/* With greedy routing they do not (DeepSeek-V2-Lite). */
static int64_t groups_that_count(const struct maq_hf *hf)
{
    return maq_str_is(hf->topk_method, "greedy") ? 0 : hf->groups_of_experts;
}

static void check_experts(const struct maq_hf *hf, struct maq_model_reader *r)
{
    if (hf->experts == 0)
        return;
    if (MAQ_READER_CHECK(r, hf->topk > 0, MAQ_CODE_MODEL_MISSING, NULL, NULL,
                         "the model has %" PRId64 " experts but no num_experts_per_tok", hf->experts))
        MAQ_READER_CHECK(r, hf->topk <= hf->experts, MAQ_CODE_MODEL_TOPK, TOPK_KEYS, NULL,
                         "a token cannot go to %" PRId64 " of %" PRId64 " experts", hf->topk, hf->experts);
    maq__reader_expert_groups(r, hf->experts, hf->topk, groups_that_count(hf), hf->group_topk, "n_group", "topk_group");
    MAQ_READER_CHECK(r, hf->first_dense <= hf->layers, MAQ_CODE_MODEL_PATTERN, "first_k_dense_replace", NULL,
                     "%" PRId64 " dense layers at the start of %" PRId64 " layers", hf->first_dense, hf->layers);
}

static void fill_attention(struct maq_architecture *arch, const struct maq_hf *hf)
{
    struct maq_arch_attention *a = &arch->attention;
    *a = (struct maq_arch_attention){.heads = hf->heads,
                                     .kv_heads = hf->kv_heads,
                                     .head_dim = hf->head_dim,
                                     .v_dim = hf->head_dim,
                                     .qk_norm = hf->qk_norm,
                                     .sinks = hf->sinks,
                                     .output_gate = hf->output_gate,
                                     .dropout = hf->attention_dropout > 0.0};
    a->qkv_bias = hf->attention_bias || hf->qkv_bias || hf->bias;
    a->out_bias = (hf->attention_bias && !hf->out_bias_never) || hf->out_bias || hf->bias;
    if (hf->rotary_dim > 0)
        a->rope_dim = hf->rotary_dim < hf->head_dim ? hf->rotary_dim : hf->head_dim;
    else
        a->rope_dim = (int64_t)((double)hf->head_dim * hf->rotary_factor);
    if (hf->no_rope)
        a->rope_dim = 0;
    arch->mla = (struct maq_arch_mla){.heads = hf->heads,
                                      .q_lora = hf->q_lora,
                                      .kv_lora = hf->kv_lora,
                                      .nope_dim = hf->nope_dim,
                                      .rope_dim = hf->rope_dim,
                                      .v_dim = hf->v_dim,
                                      .bias = hf->attention_bias,
                                      .dropout = hf->attention_dropout > 0.0};
}

static void fill_ffn(struct maq_architecture *arch, const struct maq_hf *hf)
{
    bool squared = hf->act == MAQ_HF_ACT_RELU2;
    int64_t expert = hf->moe_ffn > 0 ? hf->moe_ffn : hf->ffn;
    arch->mlp = (struct maq_arch_mlp){
        .gated = hf->gated, .bias = hf->mlp_bias || hf->bias, .squared_relu = squared, .act_params = hf->act_params};
    arch->moe = (struct maq_arch_moe){.experts = hf->experts,
                                      .topk = hf->topk,
                                      .groups = groups_that_count(hf),
                                      .group_topk = hf->group_topk,
                                      .ffn = expert,
                                      .gated = hf->gated,
                                      .squared_relu = squared,
                                      .bias = hf->expert_bias,
                                      .clamped = hf->expert_clamped,
                                      .router_bias = hf->router_bias,
                                      .latent = hf->latent};
    arch->moe.shared_ffn = hf->shared_ffn > 0 ? hf->shared_ffn : hf->shared_count * expert;
    arch->moe.shared_gate = hf->shared_gate && arch->moe.shared_ffn > 0;
}

static void fill_rest(struct maq_architecture *arch, const struct maq_hf *hf)
{
    arch->hidden = hf->hidden;
    arch->vocab = hf->vocab;
    arch->max_seq = hf->max_pos;
    arch->position_rows = hf->learned_positions ? hf->max_pos + hf->position_offset : 0;
    arch->embedding_norm = hf->embedding_norm;
    arch->tied = hf->tie;
    arch->head_bias = hf->head_bias;
    arch->final_norm = true;
    arch->hidden_dropout = hf->hidden_dropout > 0.0;
    arch->norm = hf->norm;
    arch->norm_place = hf->norm_place;
    arch->residual = hf->residual;
    arch->mamba = hf->mamba;
    arch->delta = hf->delta;
    arch->conv = hf->conv;
    arch->num_layers = hf->layers;
}

static bool window_at(const struct maq_hf *hf, int64_t i)
{
    switch (hf->window_rule) {
    case MAQ_HF_WINDOW_NONE:
        return false;
    case MAQ_HF_WINDOW_ALL:
        return true;
    case MAQ_HF_WINDOW_EVEN:
        return i % 2 == 0;
    case MAQ_HF_WINDOW_UPPER:
        return hf->use_window && i >= hf->max_window_layers;
    case MAQ_HF_WINDOW_PATTERN:
    case MAQ_HF_WINDOW_CHUNKED:
        return (i + 1) % hf->window_pattern != 0;
    }
    return false;
}

static bool moe_at(const struct maq_hf *hf, int64_t i)
{
    return hf->experts > 0 && i >= hf->first_dense && i < hf->layers - hf->dense_tail && i % hf->layer_freq == 0 &&
           (i + 1) % hf->sparse_step == 0;
}

static void fill_layer(struct maq_arch_layer *l, const struct maq_hf *hf, int64_t i)
{
    bool limited = window_at(hf, i), chunked = hf->window_rule == MAQ_HF_WINDOW_CHUNKED;
    l->mixer = hf->kv_lora > 0 ? MAQ_MIXER_MLA : MAQ_MIXER_ATTENTION;
    l->ffn = moe_at(hf, i) ? MAQ_FFN_MOE : MAQ_FFN_DENSE;
    l->ffn_width = hf->dense_ffn > 0 ? hf->dense_ffn : hf->ffn;
    l->rope = (!chunked || limited) && (hf->no_rope_interval == 0 || (i + 1) % hf->no_rope_interval != 0);
    if (limited && chunked)
        l->chunk = hf->chunk;
    else if (limited)
        l->window = hf->window;
}

/* layer_types: one word for each layer, in the words of transformers. */
static void read_layer_types(struct maq_architecture *arch, const struct maq_hf *hf, struct maq_model_reader *r)
{
    struct maq_node *list = hf->layer_types;
    int64_t i = 0;
    if (!MAQ_READER_CHECK(r, list->kind == MAQ_NODE_SEQ && (int64_t)list->count == hf->layers,
                          MAQ_CODE_MODEL_LAYER_LIST, "layer_types", "give as many entries as num_hidden_layers",
                          "layer_types has %u entries for %" PRId64 " layers", list->count, hf->layers))
        return;
    for (struct maq_node *c = list->first; c; c = c->next, i++) {
        struct maq_arch_layer *l = &arch->layers[i];
        c->used = true;
        l->window = l->chunk = 0;
        if (maq_str_is(c->text, "sliding_attention"))
            l->window = hf->window;
        else if (maq_str_is(c->text, "chunked_attention"))
            l->chunk = hf->chunk;
        else if (maq_str_is(c->text, "linear_attention") && hf->delta.heads > 0)
            l->mixer = MAQ_MIXER_DELTA;
        else if (maq_str_is(c->text, "mamba") && hf->mamba.heads > 0)
            l->mixer = MAQ_MIXER_MAMBA2;
        else if (maq_str_is(c->text, "conv") && hf->conv.kernel > 0)
            l->mixer = MAQ_MIXER_CONV;
        else if (maq_str_is(c->text, "full_attention") || maq_str_is(c->text, "attention"))
            l->mixer = hf->kv_lora > 0 ? MAQ_MIXER_MLA : MAQ_MIXER_ATTENTION;
        else {
            maq_diag_add(
                r->diag, MAQ_ERROR, MAQ_CODE_MODEL_LAYER_LIST, c->at,
                "known: full_attention, sliding_attention, chunked_attention, linear_attention, mamba, conv, attention",
                "layer type '%.*s' is not known for this model_type", (int)c->text.len, c->text.ptr);
            r->bad = true;
        }
    }
}

/* The layers that a list names, each checked; NULL (reported) when one of them is none of the model. */
static const int64_t *layer_list(const struct maq_architecture *arch, struct maq_node *node, uint32_t *n,
                                 struct maq_model_reader *r)
{
    const int64_t *list = maq__reader_i64_list(r, node, n);
    for (uint32_t i = 0; list && i < *n; i++) {
        if (list[i] >= 0 && list[i] < arch->num_layers)
            continue;
        maq_diag_add(r->diag, MAQ_ERROR, MAQ_CODE_MODEL_LAYER_LIST, node->at, "layers are counted from 0",
                     "'%.*s' names layer %" PRId64 ", the model has %" PRId64, (int)node->key.len, node->key.ptr,
                     list[i], arch->num_layers);
        r->bad = true;
        return NULL;
    }
    return list;
}

/* Sets the feed-forward part of the layers that a list names. */
static void read_layer_list(struct maq_architecture *arch, struct maq_node *node, enum maq_ffn ffn,
                            struct maq_model_reader *r)
{
    uint32_t n = 0;
    const int64_t *list = layer_list(arch, node, &n, r);
    for (uint32_t i = 0; list && i < n; i++)
        arch->layers[list[i]].ffn = ffn;
}

void maq__hf_set_mixer(struct maq_architecture *arch, struct maq_node *list, enum maq_mixer mixer,
                       struct maq_model_reader *r)
{
    uint32_t n = 0;
    const int64_t *index = layer_list(arch, list, &n, r);
    for (uint32_t i = 0; index && i < n; i++)
        arch->layers[index[i]].mixer = mixer;
}

/* mlp_layer_types: dense or sparse for each layer. */
static void read_mlp_types(struct maq_architecture *arch, const struct maq_hf *hf, struct maq_model_reader *r)
{
    struct maq_node *list = hf->mlp_types;
    int64_t i = 0;
    bool ok = list->kind == MAQ_NODE_SEQ && (int64_t)list->count == hf->layers;
    for (struct maq_node *c = ok ? list->first : NULL; c; c = c->next, i++) {
        bool sparse = maq_str_is(c->text, "sparse");
        c->used = true;
        ok &= sparse || maq_str_is(c->text, "dense");
        arch->layers[i].ffn = sparse && hf->experts > 0 ? MAQ_FFN_MOE : MAQ_FFN_DENSE;
    }
    MAQ_READER_CHECK(r, ok, MAQ_CODE_MODEL_LAYER_LIST, "mlp_layer_types", "dense or sparse for each layer",
                     "mlp_layer_types does not fit %" PRId64 " layers", hf->layers);
}

/* no_rope_layers of Llama 4: 1 where the layer rotates. */
static void read_no_rope(struct maq_architecture *arch, const struct maq_hf *hf, struct maq_model_reader *r)
{
    uint32_t n = 0;
    const int64_t *list = maq__reader_i64_list(r, hf->no_rope_layers, &n);
    if (!list || n == 0) /* an empty list means the default pattern */
        return;
    if (!MAQ_READER_CHECK(r, (int64_t)n == hf->layers, MAQ_CODE_MODEL_LAYER_LIST, "no_rope_layers",
                          "give as many entries as num_hidden_layers",
                          "no_rope_layers has %u entries for %" PRId64 " layers", n, hf->layers))
        return;
    for (uint32_t i = 0; i < n; i++) {
        arch->layers[i].rope = list[i] != 0;
        if (!hf->layer_types)
            arch->layers[i].chunk = list[i] != 0 ? hf->chunk : 0;
    }
}

static void fill_layers(struct maq_architecture *arch, const struct maq_hf *hf, struct maq_model_reader *r)
{
    for (int64_t i = 0; i < hf->layers; i++)
        fill_layer(&arch->layers[i], hf, i);
    if (hf->layer_types)
        read_layer_types(arch, hf, r);
    if (hf->no_rope_layers)
        read_no_rope(arch, hf, r);
    if (hf->mlp_types)
        read_mlp_types(arch, hf, r);
    if (hf->mlp_only_layers)
        read_layer_list(arch, hf->mlp_only_layers, MAQ_FFN_DENSE, r);
    if (hf->moe_layers && hf->moe_layers->count > 0 && hf->experts > 0) {
        for (int64_t i = 0; i < hf->layers; i++)
            arch->layers[i].ffn = MAQ_FFN_DENSE;
        read_layer_list(arch, hf->moe_layers, MAQ_FFN_MOE, r);
    }
}

/* A dense layer needs a width. Experts have taken it from the MLP already. */
static void check_widths(const struct maq_architecture *arch, const struct maq_hf *hf, struct maq_model_reader *r)
{
    for (int64_t i = 0; i < arch->num_layers; i++) {
        bool dense = arch->layers[i].ffn == MAQ_FFN_DENSE, moe = arch->layers[i].ffn == MAQ_FFN_MOE;
        if (!maq__reader_needs(r, !(dense && arch->layers[i].ffn_width <= 0) && !(moe && arch->moe.ffn <= 0),
                               "intermediate_size"))
            return;
    }
    MAQ_READER_CHECK(r, !hf->learned_positions || hf->max_pos > 0, MAQ_CODE_MODEL_MISSING, NULL, NULL,
                     "a learned position table needs max_position_embeddings");
}

void maq__hf_read(struct maq_architecture *arch, struct maq_model_reader *r, const struct maq_family *family)
{
    struct maq_hf hf;
    family->preset(&hf);
    for (size_t i = 0; family->tables[i]; i++)
        maq__reader_fields(r, &hf, family->tables[i]);
    if (hf.layers == 0 && hf.blocks && hf.blocks->kind == MAQ_NODE_SEQ) /* NemotronHConfig counts its words */
        hf.layers = hf.blocks->count;
    if (r->bad || !check_size(&hf, r, family))
        return;
    if (hf.ffn == 0 && hf.expansion > 0.0)
        hf.ffn = (int64_t)((double)hf.hidden * hf.expansion);
    if (family->settle)
        family->settle(&hf, r);
    check_heads(&hf, r);
    check_experts(&hf, r);
    if (r->bad)
        return;
    fill_rest(arch, &hf);
    fill_attention(arch, &hf);
    fill_ffn(arch, &hf);
    arch->layers = MAQ_ARENA_NEW(r->arena, struct maq_arch_layer, (size_t)hf.layers);
    if (!MAQ_READER_CHECK(r, arch->layers != NULL, MAQ_CODE_MODEL_NO_MEMORY, NULL, NULL,
                          "no memory for %" PRId64 " layers", hf.layers))
        return;
    fill_layers(arch, &hf, r);
    arch->mtp_layers = hf.mtp_layers;
    arch->mtp_layer = arch->layers[hf.layers - 1];
    if (family->adapt)
        family->adapt(arch, &hf, r);
    check_widths(arch, &hf, r);
}
