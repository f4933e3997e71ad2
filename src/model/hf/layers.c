/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layers.c - what each layer of a config.json is: its mixer, its feed-forward part, its window, from a rule of its family or from a list
 * with one word or number for each layer.
 *
 * Words of layer_types in `transformers` 5: full_attention, sliding_attention, chunked_attention; indexed_attention, whose keys are chosen;
 * linear_attention, whatever mixer with a state the family has; conv. Files of earlier releases say attention and mamba. mlp_layer_types
 * says dense or sparse (moe) for each layer, and decides over first_k_dense_replace and its like.
 */
#include "model/hf/config.h"

#include "base/check.h"
#include "base/str.h"
#include "model/codes.h"

#include <inttypes.h>

/* Whether layer i of a pattern of n is the one that sees everything, or attends where the others have a state. */
static bool sees_all(const struct maq_hf *hf, int64_t i, int64_t n)
{
    int64_t at = hf->full_at >= 0 ? hf->full_at : n - 1;
    return (i % n == at && (i > 0 || !hf->not_first)) || i < hf->full_first || i >= hf->layers - hf->full_last;
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
        return !sees_all(hf, i, hf->window_pattern);
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
    if (hf->linear_mixer != MAQ_MIXER_NONE && hf->full_interval > 0 && !sees_all(hf, i, hf->full_interval))
        l->mixer = (enum maq_mixer)hf->linear_mixer;
    l->ffn = moe_at(hf, i) ? MAQ_FFN_MOE : MAQ_FFN_DENSE;
    l->ffn_width = hf->dense_ffn > 0 ? hf->dense_ffn : hf->ffn;
    l->rope = (!chunked || limited) && (hf->no_rope_interval == 0 || (i + 1) % hf->no_rope_interval != 0);
    if (limited && chunked)
        l->chunk = hf->chunk;
    else if (limited)
        l->window = hf->window;
}

/* The mixer with a state that the family has. */
static enum maq_mixer linear_mixer(const struct maq_hf *hf)
{
    if (hf->linear_mixer != MAQ_MIXER_NONE)
        return (enum maq_mixer)hf->linear_mixer;
    return hf->delta.heads > 0 ? MAQ_MIXER_DELTA : hf->mamba.heads > 0 ? MAQ_MIXER_MAMBA2 : MAQ_MIXER_NONE;
}

/* A layer as a word says; false when the family has no such layer. */
static bool set_layer_type(struct maq_arch_layer *l, const struct maq_hf *hf, struct maq_str word)
{
    const enum maq_mixer attention = hf->kv_lora > 0 ? MAQ_MIXER_MLA : MAQ_MIXER_ATTENTION, linear = linear_mixer(hf);
    l->window = l->chunk = 0;
    l->mixer = attention;
    if (maq_str_is(word, "sliding_attention") && (hf->window > 0 || hf->linear_mixer == MAQ_MIXER_NONE))
        l->window = hf->window;
    else if (maq_str_is(word, "chunked_attention"))
        l->chunk = hf->chunk;
    else if (maq_str_is(word, "linear_attention") && linear != MAQ_MIXER_NONE)
        l->mixer = linear;
    else if (maq_str_is(word, "mamba") && linear != MAQ_MIXER_NONE && linear != MAQ_MIXER_DELTA)
        l->mixer = linear;
    else if (maq_str_is(word, "conv") && hf->conv.kernel > 0)
        l->mixer = MAQ_MIXER_CONV;
    else
        return maq_str_is(word, "full_attention") || maq_str_is(word, "attention") ||
               (maq_str_is(word, "indexed_attention") && hf->index.heads > 0);
    return true;
}

/* layer_types: one word for each layer. */
static void read_layer_types(struct maq_architecture *arch, const struct maq_hf *hf, struct maq_model_reader *r)
{
    struct maq_node *list = hf->layer_types;
    int64_t i = 0;
    if (!MAQ_READER_CHECK(r, list->kind == MAQ_NODE_SEQ && (int64_t)list->count == hf->layers,
                          MAQ_CODE_MODEL_LAYER_LIST, "layer_types", "give as many entries as num_hidden_layers",
                          "layer_types has %u entries for %" PRId64 " layers", list->count, hf->layers))
        return;
    for (struct maq_node *c = list->first; c; c = c->next, i++) {
        c->used = true;
        if (set_layer_type(&arch->layers[i], hf, c->text))
            continue;
        maq_diag_add(
            r->diag, MAQ_ERROR, MAQ_CODE_MODEL_LAYER_LIST, c->at,
            "known: full_attention, sliding_attention, chunked_attention, linear_attention, mamba, conv, attention",
            "layer type '%.*s' is not known for this model_type", (int)c->text.len, c->text.ptr);
        r->bad = true;
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
        bool sparse = maq_str_is(c->text, "sparse") || maq_str_is(c->text, "moe");
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

void maq__hf_fill_layers(struct maq_architecture *arch, const struct maq_hf *hf, struct maq_model_reader *r)
{
    for (int64_t i = 0; i < hf->layers; i++)
        fill_layer(&arch->layers[i], hf, i);
    if (hf->layer_types && hf->layer_types->count > 0)
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
