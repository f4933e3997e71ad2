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
        MAQ_READER_CHECK(r, hf->rounds_head || hf->hidden % hf->heads == 0, MAQ_CODE_MODEL_HEAD_WIDTH, HEADS_KEYS,
                         "give head_dim, or another number of heads",
                         "hidden_size %" PRId64 " is not a multiple of %" PRId64 " heads", hf->hidden, hf->heads);
        hf->head_dim = hf->hidden / hf->heads;
    }
    if (hf->kv_lora > 0) /* expanded to all heads, whatever the key says */
        hf->kv_heads = hf->heads;
    MAQ_READER_CHECK(r, hf->heads % hf->kv_heads == 0, MAQ_CODE_MODEL_KV_HEADS, KV_KEYS, NULL,
                     "%" PRId64 " query heads cannot share %" PRId64 " key and value heads evenly", hf->heads,
                     hf->kv_heads);
}

/* With greedy routing they do not (DeepSeek-V2-Lite). */
static int64_t groups_that_count(const struct maq_hf *hf)
{
    return maq_str_is(hf->topk_method, "greedy") ? 0 : hf->groups_of_experts;
}

/* A file may say in so many words that it does not say it (DeepseekV2Config's default). */
static void settle_topk(struct maq_hf *hf, struct maq_model_reader *r)
{
    struct maq_node *said = NULL;
    for (uint32_t i = 0; i < r->n_maps; i++)
        for (struct maq_node *c = r->maps[i]->first; c; c = c->next)
            if (maq_str_is(c->key, "num_experts_per_tok") && maq_node_is_null(c))
                said = c;
    if (hf->experts == 0 || hf->topk > 0 || !said)
        return;
    hf->topk = 1;
    maq_diag_add(r->diag, MAQ_WARNING, MAQ_CODE_MODEL_MISSING, said->at, "--set model.num_experts_per_tok=...",
                 "num_experts_per_tok is null: a token is taken to go to one of the %" PRId64 " experts", hf->experts);
}

static void check_experts(struct maq_hf *hf, struct maq_model_reader *r)
{
    if (hf->experts == 0)
        return;
    settle_topk(hf, r);
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
                                     .gate = hf->gate,
                                     .dropout = hf->attention_dropout > 0.0};
    if (hf->kv_lora <= 0) /* latent attention has its own, below */
        a->index = hf->index;
    a->qkv_bias = hf->attention_bias || hf->qkv_bias || hf->bias;
    a->out_bias = (hf->attention_bias && !hf->out_bias_never) || hf->out_bias || hf->bias;
    if (hf->rotary_dim > 0)
        a->rope_dim = hf->rotary_dim < hf->head_dim ? hf->rotary_dim : hf->head_dim;
    else
        a->rope_dim = (int64_t)((double)hf->head_dim * hf->rotary_factor);
    if (hf->no_rope)
        a->rope_dim = 0;
    if (a->index.heads > 0)
        a->selected = a->index.selected;
    arch->mla = (struct maq_arch_mla){.heads = hf->heads,
                                      .q_lora = hf->q_lora,
                                      .kv_lora = hf->kv_lora,
                                      .nope_dim = hf->nope_dim,
                                      .rope_dim = hf->rope_dim,
                                      .v_dim = hf->v_dim,
                                      .bias = hf->attention_bias,
                                      .sinks = hf->sinks,
                                      .gate = hf->gate,
                                      .index = hf->kv_lora > 0 ? hf->index : (struct maq_arch_index){0},
                                      .selected = hf->index.selected,
                                      .dropout = hf->attention_dropout > 0.0};
    if (arch->mla.index.heads > 0)
        arch->mla.index.query_rank = hf->q_lora;
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
                                      .shared_bias = hf->mlp_bias,
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
    arch->tied = hf->tie && !hf->never_tied;
    arch->head_bias = hf->head_bias;
    arch->final_norm = !hf->no_final_norm;
    arch->hidden_dropout = hf->hidden_dropout > 0.0;
    arch->norm = hf->norm;
    arch->norm_place = hf->norm_place;
    arch->residual = hf->residual;
    arch->mamba = hf->mamba;
    arch->delta = hf->delta;
    arch->conv = hf->conv;
    arch->mamba1 = hf->mamba1;
    arch->lightning = hf->lightning;
    arch->num_layers = hf->layers;
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

/* Keys whose null says none, or as many as there are others, whatever the default. */
static bool null_is_none(struct maq_str key)
{
    static const char *const keys[] = {"sliding_window", "num_key_value_heads", "head_dim",
                                       "q_lora_rank",    "v_head_dim",          "n_group",
                                       "topk_group",     "num_kv_heads"};
    for (size_t i = 0; i < MAQ_COUNT(keys); i++)
        if (maq_str_is(key, keys[i]))
            return true;
    return false;
}

static void read_map(struct maq_hf *hf, struct maq_model_reader *r, struct maq_node *map,
                     const struct maq_family *family)
{
    for (struct maq_node *c = map->first; c; c = c->next) {
        const struct maq_field *field = NULL;
        for (size_t i = 0; !field && maq_node_is_null(c) && null_is_none(c->key) && family->tables[i]; i++)
            field = maq_fields_find(family->tables[i], c->key);
        if (field && field->type == MAQ_TYPE_I64)
            *(int64_t *)(void *)((char *)hf + field->offset) = 0;
    }
    for (size_t i = 0; family->tables[i]; i++)
        if (maq_fields_read(hf, family->tables[i], map, NULL, r->arena, r->diag) != MAQ_OK)
            r->bad = true;
}

/* Which share of a head is rotated may stand in rope_parameters, for all layers or for each kind of them. */
static void read_rope(struct maq_hf *hf, struct maq_model_reader *r)
{
    struct maq_node *map = hf->rope && hf->rope->kind == MAQ_NODE_MAP ? hf->rope : NULL;
    struct maq_node *share = map ? maq_node_get(map, "partial_rotary_factor") : NULL;
    for (struct maq_node *c = map ? map->first : NULL; c && !share; c = c->next)
        share = c->kind == MAQ_NODE_MAP ? maq_node_get(c, "partial_rotary_factor") : NULL;
    if (map)
        maq_node_use_all(map);
    if (share && (!maq_node_double(&hf->rotary_factor, share, r->diag) || hf->rotary_factor < 0))
        r->bad = true;
    if (hf->rotary_factor > 1) /* of one kind of layers it may be more than a head has */
        hf->rotary_factor = 1;
}

void maq__hf_read(struct maq_architecture *arch, struct maq_model_reader *r, const struct maq_family *family)
{
    struct maq_hf hf = {0};
    (family->preset ? family->preset : maq__hf_preset_llama)(&hf);
    maq__hf_read_facts(&hf, family, r);
    for (uint32_t i = 0; i < r->n_maps; i++)
        read_map(&hf, r, r->maps[i], family);
    read_rope(&hf, r);
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
    maq__hf_fill_layers(arch, &hf, r);
    maq__hf_read_per_layer(arch, &hf, r);
    arch->mtp_layers = hf.mtp_layers;
    arch->mtp_layer = arch->layers[hf.layers - 1];
    arch->type = family->type;
    if (family->adapt)
        family->adapt(arch, &hf, r);
    check_widths(arch, &hf, r);
}
