/* SPDX-License-Identifier: Apache-2.0 */
/*
 * irregular.c - families that the common path cannot tell by presets alone: Falcon, MPT, OPT, and hybrids of several
 * mixers.
 */
#include "model/hf/config.h"

#include "base/check.h"
#include "base/str.h"
#include "model/codes.h"

#include <inttypes.h>

/*
 * Falcon: the new decoder (40B, 180B) has grouped queries and two norms side by side; the old one has one key-value
 * head, one norm, and may be sequential (Falcon-RW, which uses ALiBi).
 */
void maq__hf_settle_falcon(struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)r;
    if (!hf->new_decoder)
        hf->kv_heads = hf->multi_query ? 1 : hf->heads;
    hf->no_rope = hf->alibi;
    bool two = hf->parallel_norms == 2 || (hf->parallel_norms == 0 && hf->new_decoder);
    if (two)
        hf->residual = MAQ_RESIDUAL_PARALLEL_TWO_NORMS;
    else
        hf->residual = hf->new_decoder || hf->parallel_attention ? MAQ_RESIDUAL_PARALLEL : MAQ_RESIDUAL_SEQUENTIAL;
}

/* Keys of attn_config that cost nothing or are covered by the others. */
static const char *const mpt_attention_ignored[] = {
    "alibi_bias_max",
    "attn_impl",
    "attn_type",
    "attn_uses_sequence_id",
    "clip_qkv",
    "prefix_lm",
    "softmax_scale",
    "model_type",
    "rope",
    "rope_theta",
    "rope_impl",
    "rope_dail_config",
    "rope_hf_config",
    "sliding_window_size",
    "qk_gn",
    "fused_qkv",
    NULL,
};

/* MPT: attention settings in a map of their own; no biases, which no_bias: false does not change in transformers; ALiBi replaces the position
 * table. */
void maq__hf_settle_mpt(struct maq_hf *hf, struct maq_model_reader *r)
{
    struct maq_node *map = hf->attn_config;
    if (map && MAQ_READER_CHECK(r, map->kind == MAQ_NODE_MAP, MAQ_CODE_MODEL_ATTN_CONFIG, "attn_config", NULL,
                                "attn_config must be a map")) {
        bool rope = false;
        struct maq_node *node = maq_node_get(map, "rope");
        if (node && !maq_node_bool(&rope, node, r->diag))
            r->bad = true;
        if (maq_fields_read(hf, maq__hf_mpt_attention, map, NULL, r->arena, r->diag) != MAQ_OK)
            r->bad = true;
        for (struct maq_node *c = map->first; c;
             c = c->next) { /* in transformers 5 it has what every config has as well */
            bool known = maq_fields_find(maq__hf_mpt_attention, c->key) || maq__hf_key_is_ignored(c->key);
            for (size_t i = 0; !known && mpt_attention_ignored[i]; i++)
                known = maq_str_is(c->key, mpt_attention_ignored[i]);
            MAQ_READER_CHECK(r, known || maq_node_is_null(c), MAQ_CODE_MODEL_UNKNOWN_KEY, "attn_config", NULL,
                             "unknown key '%.*s' in attn_config", (int)c->key.len, c->key.ptr);
            maq_node_use_all(c);
        }
        hf->no_rope = !rope;
    }
    hf->bias = false;
    hf->norm = MAQ_NORM_LAYER_NO_BIAS;
    hf->qk_norm = hf->use_qk_norm ? MAQ_QK_NORM_WIDE : MAQ_QK_NORM_NONE;
    hf->learned_positions = hf->learned_positions && !hf->alibi && hf->no_rope;
}

/* OPT-350m keeps the original transformer's norm after the addition and a token table narrower than the stream. */
void maq__hf_adapt_opt(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)r;
    arch->norm_place = hf->norm_before ? MAQ_NORM_PRE : MAQ_NORM_POST_RESIDUAL;
    arch->final_norm = hf->norm_before && !hf->remove_final_norm;
    arch->embedding_dim = hf->embedding_dim == hf->hidden ? 0 : hf->embedding_dim;
}

/* Qwen3-Next: linear attention everywhere but in every n-th layer. layer_types, when written, has been obeyed. */
void maq__hf_adapt_delta(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    MAQ_READER_CHECK(r, hf->delta.heads % hf->delta.groups == 0, MAQ_CODE_MODEL_SCAN, "linear_num_value_heads", NULL,
                     "%" PRId64 " value heads cannot share %" PRId64 " key heads evenly", hf->delta.heads,
                     hf->delta.groups);
    if (hf->layer_types)
        return;
    for (int64_t i = 0; i < arch->num_layers; i++)
        if ((i + 1) % hf->full_interval != 0)
            arch->layers[i].mixer = MAQ_MIXER_DELTA;
}

/* Granite 4: Mamba-2 in every layer that layer_types does not call attention. */
void maq__hf_adapt_granite(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)r;
    for (int64_t i = 0; !hf->layer_types && i < arch->num_layers; i++)
        arch->layers[i].mixer = MAQ_MIXER_MAMBA2;
}

static void bad_letter(struct maq_model_reader *r, struct maq_str pattern, size_t i, const char *keys)
{
    maq__reader_error(r, MAQ_CODE_MODEL_PATTERN, keys, "M Mamba-2, * attention, - MLP, E mixture of experts",
                      "letter %zu of the hybrid pattern is '%c', which is no kind of layer", i + 1, pattern.ptr[i]);
}

static bool letter(struct maq_arch_layer *l, char c)
{
    *l = (struct maq_arch_layer){.mixer = MAQ_MIXER_NONE, .ffn = MAQ_FFN_NONE, .rope = true};
    if (c == 'M')
        l->mixer = MAQ_MIXER_MAMBA2;
    else if (c == '*')
        l->mixer = MAQ_MIXER_ATTENTION;
    else if (c == '-')
        l->ffn = MAQ_FFN_DENSE;
    else if (c == 'E')
        l->ffn = MAQ_FFN_MOE;
    else
        return false;
    return true;
}

void maq__hybrid_pattern(struct maq_architecture *arch, struct maq_model_reader *r, struct maq_str pattern,
                         int64_t ffn_width, const char *keys)
{
    int64_t n = 0;
    bool moe = false, mamba = false;
    for (size_t i = 0; i < pattern.len; i++) {
        char c = pattern.ptr[i];
        struct maq_arch_layer l;
        if (c == '|' || c == ' ')
            continue;
        if (!letter(&l, c)) {
            bad_letter(r, pattern, i, keys);
            return;
        }
        l.ffn_width = ffn_width;
        moe |= l.ffn == MAQ_FFN_MOE;
        mamba |= l.mixer == MAQ_MIXER_MAMBA2;
        if (n < arch->num_layers)
            arch->layers[n] = l;
        n++;
    }
    MAQ_READER_CHECK(r, n == arch->num_layers, MAQ_CODE_MODEL_PATTERN, keys, "give one letter for each layer",
                     "the hybrid pattern has %" PRId64 " layers, the model %" PRId64, n, arch->num_layers);
    MAQ_READER_CHECK(r, !moe || arch->moe.experts > 0, MAQ_CODE_MODEL_PATTERN, keys, NULL,
                     "the hybrid pattern has experts, the model none");
    MAQ_READER_CHECK(r, !mamba || arch->mamba.heads > 0, MAQ_CODE_MODEL_SCAN, keys, NULL,
                     "the hybrid pattern has Mamba-2 layers, but mamba_num_heads is missing");
    MAQ_READER_CHECK(r, !mamba || arch->mamba.heads % arch->mamba.groups == 0, MAQ_CODE_MODEL_SCAN, keys, NULL,
                     "%" PRId64 " Mamba-2 heads cannot share %" PRId64 " groups evenly", arch->mamba.heads,
                     arch->mamba.groups);
}

void maq__hybrid_mtp(struct maq_architecture *arch, struct maq_model_reader *r, struct maq_str pattern,
                     int64_t ffn_width, const char *keys)
{
    struct maq_arch_layer *depth = &arch->mtp_layer, l = {0};
    *depth =
        (struct maq_arch_layer){.mixer = MAQ_MIXER_NONE, .ffn = MAQ_FFN_NONE, .ffn_width = ffn_width, .rope = true};
    for (size_t i = 0; i < pattern.len; i++) {
        if (!letter(&l, pattern.ptr[i])) {
            bad_letter(r, pattern, i, keys);
            return;
        }
        bool clash = (l.mixer != MAQ_MIXER_NONE && (depth->mixer != MAQ_MIXER_NONE || depth->ffn != MAQ_FFN_NONE)) ||
                     (l.ffn != MAQ_FFN_NONE && depth->ffn != MAQ_FFN_NONE);
        if (!MAQ_READER_CHECK(r, !clash, MAQ_CODE_MODEL_PATTERN, keys, NULL,
                              "a depth is a mixer, a feed-forward part, or one of each in this order"))
            return;
        depth->mixer = l.mixer != MAQ_MIXER_NONE ? l.mixer : depth->mixer;
        depth->ffn = l.ffn != MAQ_FFN_NONE ? l.ffn : depth->ffn;
    }
}

/* A list of words as the pattern that they spell (transformers 5 writes the former, NemotronHConfig before it the latter). */
static struct maq_str spell(struct maq_node *list, const char *key, struct maq_model_reader *r)
{
    static const struct {
        const char *word;
        char letter;
    } words[] = {{"mamba", 'M'}, {"linear_attention", 'M'}, {"attention", '*'}, {"full_attention", '*'}, {"mlp", '-'},
                 {"moe", 'E'}};
    struct maq_str none = {NULL, 0};
    char *text = list->kind == MAQ_NODE_SEQ ? MAQ_ARENA_NEW(r->arena, char, (size_t)list->count + 1) : NULL;
    size_t n = 0;
    if (!MAQ_READER_CHECK(r, text != NULL, MAQ_CODE_MODEL_LAYER_LIST, key, NULL, "%s must be a list of words", key))
        return none;
    for (struct maq_node *c = list->first; c; c = c->next) {
        c->used = true;
        for (size_t w = 0; w < MAQ_COUNT(words); w++)
            if (maq_str_is(c->text, words[w].word))
                text[n] = words[w].letter;
        if (!MAQ_READER_CHECK(r, text[n] != '\0', MAQ_CODE_MODEL_LAYER_LIST, key,
                              "mamba (linear_attention), attention (full_attention), mlp or moe",
                              "'%.*s' in %s is no kind of layer", (int)c->text.len, c->text.ptr, key))
            return none;
        n++;
    }
    return (struct maq_str){text, n};
}

void maq__hf_adapt_hybrid(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    static const char words[] = "layers_block_type", mtp_words[] = "mtp_layers_block_type";
    struct maq_str pattern = hf->blocks ? spell(hf->blocks, words, r) : hf->pattern,
                   mtp = hf->mtp_blocks ? spell(hf->mtp_blocks, mtp_words, r) : hf->mtp_pattern;
    if (r->bad || !maq__reader_needs(r, pattern.len > 0, "hybrid_override_pattern"))
        return;
    arch->mamba.proj_bias = hf->use_bias; /* the class does not read mamba_proj_bias */
    maq__hybrid_pattern(arch, r, pattern, hf->ffn, hf->blocks ? words : "hybrid_override_pattern");
    if (hf->mtp_layers > 0 && mtp.len > 0)
        maq__hybrid_mtp(arch, r, mtp, hf->ffn, hf->mtp_blocks ? mtp_words : "mtp_hybrid_override_pattern");
}
