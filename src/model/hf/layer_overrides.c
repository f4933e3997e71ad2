/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer_overrides.c - what sets one layer apart from the others: an attention of its own, modules besides, and sizes in per_layer_config.
 *
 * Layers with equal parts point to the same one, so that they are one kind.
 */
#include <inttypes.h>

#include "base/check.h"
#include "base/str.h"
#include "model/codes.h"
#include "model/hf/family_rows.h"

static bool same_attention(const struct maq_arch_attention *a, const struct maq_arch_attention *b)
{
    return a->heads == b->heads && a->kv_heads == b->kv_heads && a->head_dim == b->head_dim && a->v_dim == b->v_dim &&
           a->rope_dim == b->rope_dim && a->sinks == b->sinks && a->selected == b->selected && a->stride == b->stride &&
           a->shares_kv == b->shares_kv && a->keys_are_values == b->keys_are_values && a->gate == b->gate &&
           a->qk_norm == b->qk_norm && a->index.heads == b->index.heads;
}

static bool same_mla(const struct maq_arch_mla *a, const struct maq_arch_mla *b)
{
    return a->heads == b->heads && a->q_lora == b->q_lora && a->kv_lora == b->kv_lora && a->nope_dim == b->nope_dim &&
           a->rope_dim == b->rope_dim && a->v_dim == b->v_dim && a->selected == b->selected && a->sinks == b->sinks &&
           a->index.heads == b->index.heads;
}

void maq__hf_own_attention(struct maq_architecture *arch, int64_t i, const struct maq_arch_attention *own,
                           struct maq_model_reader *r)
{
    if (same_attention(own, &arch->attention)) {
        arch->layers[i].attention = NULL;
        return;
    }
    for (int64_t k = 0; k < arch->num_layers; k++)
        if (arch->layers[k].attention && same_attention(arch->layers[k].attention, own)) {
            arch->layers[i].attention = arch->layers[k].attention;
            return;
        }
    struct maq_arch_attention *copy = MAQ_ARENA_NEW(r->arena, struct maq_arch_attention, 1);
    if (!MAQ_READER_CHECK(r, copy != NULL, MAQ_CODE_MODEL_NO_MEMORY, NULL, NULL, "no memory for a layer"))
        return;
    *copy = *own;
    arch->layers[i].attention = copy;
}

void maq__hf_own_mla(struct maq_architecture *arch, int64_t i, const struct maq_arch_mla *own,
                     struct maq_model_reader *r)
{
    if (same_mla(own, &arch->mla)) {
        arch->layers[i].mla = NULL;
        return;
    }
    for (int64_t k = 0; k < arch->num_layers; k++)
        if (arch->layers[k].mla && same_mla(arch->layers[k].mla, own)) {
            arch->layers[i].mla = arch->layers[k].mla;
            return;
        }
    struct maq_arch_mla *copy = MAQ_ARENA_NEW(r->arena, struct maq_arch_mla, 1);
    if (!MAQ_READER_CHECK(r, copy != NULL, MAQ_CODE_MODEL_NO_MEMORY, NULL, NULL, "no memory for a layer"))
        return;
    *copy = *own;
    arch->layers[i].mla = copy;
}

/* ---- modules besides ---- */

void maq__hf_extra(struct maq_architecture *arch, struct maq_arch_extra extra)
{
    MAQ_ASSERT(arch->n_extras < MAQ_ARCH_EXTRAS);
    arch->extras[arch->n_extras++] = extra;
}

void maq__hf_extra_norm(struct maq_architecture *arch, const char *name, enum maq_layer_place place, int64_t width,
                        enum maq_shard shard, uint32_t mark)
{
    bool layer = arch->norm == MAQ_NORM_LAYER;
    maq__hf_extra(arch, (struct maq_arch_extra){.name = name,
                                                .place = place,
                                                .kind = MAQ_MODULE_NORM,
                                                .shard = shard,
                                                .flags = layer ? MAQ_MODULE_LAYERNORM | MAQ_MODULE_BIAS : 0u,
                                                .in = width,
                                                .out = width,
                                                .params = arch->norm == MAQ_NORM_PLAIN ? 0
                                                          : layer                      ? 2 * width
                                                                                       : width,
                                                .mark = mark});
}

void maq__hf_extra_linear(struct maq_architecture *arch, const char *name, enum maq_layer_place place, int64_t in,
                          int64_t out, bool bias, uint32_t mark)
{
    maq__hf_extra(arch, (struct maq_arch_extra){.name = name,
                                                .place = place,
                                                .kind = MAQ_MODULE_LINEAR,
                                                .shard = MAQ_SHARD_SEQUENCE,
                                                .flags = bias ? MAQ_MODULE_BIAS : 0u,
                                                .in = in,
                                                .out = out,
                                                .mark = mark});
}

void maq__hf_extra_numbers(struct maq_architecture *arch, const char *name, enum maq_layer_place place, int64_t width,
                           int64_t params, uint32_t mark)
{
    maq__hf_extra(arch, (struct maq_arch_extra){.name = name,
                                                .place = place,
                                                .kind = MAQ_MODULE_RESIDUAL,
                                                .shard = MAQ_SHARD_SEQUENCE,
                                                .in = width,
                                                .out = width,
                                                .params = params,
                                                .mark = mark});
}

/* ---- per_layer_config ---- */

struct own {
    struct maq_arch_attention attention;
    struct maq_arch_mla mla;
    int64_t ffn;
};

/* A size among the overrides of a layer; NULL when the key is none that is understood. */
static int64_t *size_of(struct own *o, struct maq_str key)
{
    const struct {
        const char *key;
        int64_t *size;
    } sizes[] = {{"num_key_value_heads", &o->attention.kv_heads},
                 {"v_head_dim", &o->mla.v_dim},
                 {"q_lora_rank", &o->mla.q_lora},
                 {"kv_lora_rank", &o->mla.kv_lora},
                 {"qk_nope_head_dim", &o->mla.nope_dim},
                 {"qk_rope_head_dim", &o->mla.rope_dim},
                 {"intermediate_size", &o->ffn}};
    for (size_t i = 0; i < MAQ_COUNT(sizes); i++)
        if (maq_str_is(key, sizes[i].key))
            return sizes[i].size;
    return NULL;
}

static void read_override(struct own *o, struct maq_node *c, struct maq_model_reader *r)
{
    int64_t value = 0, *size = size_of(o, c->key), was = o->attention.head_dim;
    bool heads = maq_str_is(c->key, "num_attention_heads"), width = maq_str_is(c->key, "head_dim");
    c->used = true;
    if (!MAQ_READER_CHECK(r, size || heads || width, MAQ_CODE_MODEL_VALUE, "per_layer_config", NULL,
                          "a layer with a '%.*s' of its own is not modelled", (int)c->key.len, c->key.ptr) ||
        maq_node_is_null(c))
        return;
    if (!maq_node_i64(&value, c, r->diag) || value < 1 || value > 16777216) {
        r->bad = true;
        return;
    }
    if (heads)
        o->attention.heads = o->mla.heads = value;
    else if (width) {
        o->attention.rope_dim = was > 0 ? o->attention.rope_dim * value / was : 0;
        o->attention.head_dim = o->attention.v_dim = value;
    } else
        *size = value;
}

void maq__hf_read_per_layer(struct maq_architecture *arch, const struct maq_hf *hf, struct maq_model_reader *r)
{
    struct maq_node *map = hf->per_layer;
    for (struct maq_node *c = map && map->kind == MAQ_NODE_MAP ? map->first : NULL; c; c = c->next) {
        struct maq_str number = c->key; /* "05" is the fifth: transformers pads them */
        int64_t i = -1;
        c->used = true;
        while (number.len > 1 && number.ptr[0] == '0')
            number = (struct maq_str){number.ptr + 1, number.len - 1};
        if (!MAQ_READER_CHECK(r,
                              maq_str_to_i64(&i, number) && i >= 0 && i < arch->num_layers && c->kind == MAQ_NODE_MAP,
                              MAQ_CODE_MODEL_LAYER_LIST, "per_layer_config", "layers are counted from 0",
                              "per_layer_config names '%.*s', the model has %" PRId64 " layers", (int)c->key.len,
                              c->key.ptr, arch->num_layers))
            return;
        struct own o = {arch->layers[i].attention ? *arch->layers[i].attention : arch->attention,
                        arch->layers[i].mla ? *arch->layers[i].mla : arch->mla, arch->layers[i].ffn_width};
        for (struct maq_node *k = c->first; k; k = k->next)
            read_override(&o, k, r);
        maq__hf_own_attention(arch, i, &o.attention, r);
        maq__hf_own_mla(arch, i, &o.mla, r);
        arch->layers[i].ffn_width = o.ffn;
    }
}
