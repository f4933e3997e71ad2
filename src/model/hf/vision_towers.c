/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vision_towers.c - what each vision tower has in front of its layers and behind them, and what becomes of an image.
 *
 *   CLIP         class token, positions, a norm; LLaVA's projector: linear, nonlinearity, linear
 *   SigLIP       positions; a norm behind the layers; LLaVA's projector, or Gemma 3's: patches averaged to its number of tokens, a norm, a linear
 *   Pixtral      a norm in front, rotation in two directions, gated MLP without biases; LLaVA's projector, or Mistral's: norm, merge x merge patches to one, two linears
 *   Llama 4      class token, positions, norms at both ends; shuffle to fewer and wider tokens, two linears without biases, and one to the width of the text
 *   InternViT    class token, positions, a scale behind each branch; shuffle, norm, two linears
 *   Qwen2-VL     patches of two frames, rotation; merger: a norm, merge x merge patches to one token, two linears
 *   Qwen2.5-VL   the same with RMSNorm, a gated MLP, and windows in all layers but a few
 *   Qwen3-VL     positions besides; the features of some layers pass mergers of their own and come out beside the last ones; Qwen3.5: only the last ones
 *
 * How engines cut a projector over a TP group: first linear by columns, second by rows (vLLM 0.33.0, model_executor/models); Mistral's merger is on every rank.
 */
#include "model/hf/vision.h"

#include "base/check.h"
#include "base/str.h"
#include "model/codes.h"

#define ONE_OF(v, words) maq_str_among((v)->around, words)

/* ---- parts ---- */

static void linear(struct maq_architecture *a, const char *name, enum maq_shard shard, int64_t in, int64_t out,
                   bool bias)
{
    uint32_t flags = shard == MAQ_SHARD_COLUMN ? MAQ_MODULE_GATHER_IN
                     : shard == MAQ_SHARD_ROW  ? MAQ_MODULE_REDUCE_OUT
                                               : 0u;
    maq__hf_extra(a, (struct maq_arch_extra){.name = name,
                                             .place = MAQ_PLACE_HEAD,
                                             .kind = MAQ_MODULE_LINEAR,
                                             .shard = shard,
                                             .flags = flags | (bias ? MAQ_MODULE_BIAS : 0u),
                                             .in = in,
                                             .out = out});
}

static void activation(struct maq_architecture *a, int64_t width)
{
    maq__hf_extra(a, (struct maq_arch_extra){.name = "activation_func",
                                             .place = MAQ_PLACE_HEAD,
                                             .kind = MAQ_MODULE_ACTIVATION,
                                             .shard = MAQ_SHARD_HEADS,
                                             .in = width,
                                             .out = width});
}

static void two_linears(struct maq_architecture *a, int64_t in, int64_t mid, int64_t out, bool bias)
{
    linear(a, "linear_1", MAQ_SHARD_COLUMN, in, mid, bias);
    activation(a, mid);
    linear(a, "linear_2", MAQ_SHARD_ROW, mid, out, bias);
}

/* Over `numbers` of a row, `params` of its own. */
static void norm(struct maq_architecture *a, const char *name, enum maq_layer_place place, int64_t numbers,
                 int64_t params)
{
    maq__hf_extra(a, (struct maq_arch_extra){.name = name,
                                             .place = place,
                                             .kind = MAQ_MODULE_NORM,
                                             .shard = MAQ_SHARD_SEQUENCE,
                                             .in = numbers,
                                             .out = numbers,
                                             .params = params});
}

/* A class token where there is one, and a table of positions for it and the patches of an image. */
static void positions(struct maq_architecture *a, const struct maq_hf_vision *v, int64_t classes, int64_t rows)
{
    if (classes > 0)
        maq__hf_extra_numbers(a, "class_token", MAQ_PLACE_EMBEDDING, v->hidden, classes * v->hidden, 0);
    maq__hf_extra_numbers(a, "position_embeddings", MAQ_PLACE_EMBEDDING, v->hidden, rows * v->hidden, 0);
}

static int64_t grid(const struct maq_hf_vision *v)
{
    int64_t side = v->image_size / v->patch;
    return side * side;
}

static void all_biased(struct maq_architecture *a)
{
    a->attention.qkv_bias = a->attention.out_bias = a->mlp.bias = true;
}

static void rotates(struct maq_architecture *a)
{
    for (int64_t i = 0; i < a->num_layers; i++)
        a->layers[i].rope = true;
}

/* Tiles of one size, which make `side` x `side` fewer tokens than they have patches. */
static void tiles(struct maq_vision *out, const struct maq_hf_vision *v, enum maq_image_rule rule, int64_t classes,
                  int64_t side)
{
    out->rule = rule;
    out->merge = (int32_t)(side > 0 ? side : 1);
    out->tile_patches = grid(v) + classes;
    out->tile_tokens = grid(v) / (out->merge * out->merge);
}

static bool has_image_size(const struct maq_hf_vision *v, struct maq_model_reader *r)
{
    return MAQ_READER_CHECK(r, v->image_size > 0, MAQ_CODE_MODEL_MISSING, NULL, NULL,
                            "the vision tower has no image_size");
}

static void no_projector(const struct maq_hf_vision *v, struct maq_vision *out, struct maq_model_reader *r)
{
    maq__reader_error(r, MAQ_CODE_MODEL_VALUE, "model_type", "--set model.vision_config=null, for the text model alone",
                      "how a model of type '%.*s' makes tokens of the features of a '%s' is not known",
                      (int)v->around.len, v->around.ptr, out->type);
}

/* ---- towers ---- */

/* LLaVA's: features of some layers, joined. */
static void llava_projector(struct maq_architecture *a, const struct maq_hf_vision *v)
{
    two_linears(a, v->hidden * v->features, v->text, v->text, v->projector_bias);
}

static void build_clip(struct maq_vision *out, struct maq_architecture *a, struct maq_hf_vision *v,
                       struct maq_model_reader *r)
{
    if (!has_image_size(v, r))
        return;
    all_biased(a);
    a->embedding_norm = true;
    positions(a, v, 1, grid(v) + 1);
    tiles(out, v, MAQ_IMAGE_FIXED, 1, 1);
    out->tile_tokens += maq_str_is(v->strategy, "full");
    out->idle_params = 2 * v->hidden; /* the norm behind its layers, which features are taken in front of */
    if (ONE_OF(v, "llava|vipllava"))
        llava_projector(a, v);
    else
        no_projector(v, out, r);
}

/* A probe that attends to all patches, and an MLP. */
static int64_t pooling_head(const struct maq_hf_vision *v)
{
    int64_t h = v->hidden;
    return h + 4 * h * h + 4 * h + 2 * h + 2 * h * v->ffn + v->ffn + h;
}

static void build_siglip(struct maq_vision *out, struct maq_architecture *a, struct maq_hf_vision *v,
                         struct maq_model_reader *r)
{
    bool gemma = ONE_OF(v, "gemma3|gemma3_text");
    if (!has_image_size(v, r))
        return;
    all_biased(a);
    a->patch_bias = true;
    positions(a, v, 0, grid(v));
    out->idle_params = v->pools ? pooling_head(v) : 0;
    if (gemma) {
        int64_t side = 1;
        while ((side + 1) * (side + 1) <= v->tokens_per_image)
            side++;
        tiles(out, v, MAQ_IMAGE_FIXED, 0, v->image_size / v->patch / side);
        a->final_norm = true;
        out->tile_tokens = side * side;
        norm(a, "mm_soft_emb_norm", MAQ_PLACE_HEAD, v->hidden, v->hidden);
        linear(a, "mm_input_projection", MAQ_SHARD_SEQUENCE, v->hidden, v->text, false);
    } else if (ONE_OF(v, "llava|vipllava")) {
        tiles(out, v, MAQ_IMAGE_FIXED, 0, 1);
        out->tile_tokens -= !maq_str_is(v->strategy, "full"); /* the first row goes, whatever it is */
        out->idle_params += 2 * v->hidden;
        llava_projector(a, v);
    } else
        no_projector(v, out, r);
}

static void build_pixtral(struct maq_vision *out, struct maq_architecture *a, struct maq_hf_vision *v,
                          struct maq_model_reader *r)
{
    if (!has_image_size(v, r))
        return;
    a->norm = MAQ_NORM_RMS;
    a->mlp.gated = a->embedding_norm = true;
    rotates(a);
    out->rule = MAQ_IMAGE_LONGEST;
    if (ONE_OF(v, "mistral3")) {
        int64_t merge = v->outer_merge > 0 ? v->outer_merge : 2;
        out->merge = (int32_t)merge;
        norm(a, "norm", MAQ_PLACE_HEAD, v->hidden * merge * merge, v->hidden);
        linear(a, "merging_layer", MAQ_SHARD_SEQUENCE, v->hidden * merge * merge, v->hidden, false);
        llava_projector(a, v);
    } else if (ONE_OF(v, "llava"))
        llava_projector(a, v);
    else
        no_projector(v, out, r);
}

static void build_llama4(struct maq_vision *out, struct maq_architecture *a, struct maq_hf_vision *v,
                         struct maq_model_reader *r)
{
    int64_t side = (int64_t)(1 / v->shuffle + 0.5);
    if (!has_image_size(v, r))
        return;
    MAQ_READER_CHECK(r, v->ffn == v->hidden * side * side, MAQ_CODE_MODEL_VALUE, "intermediate_size", NULL,
                     "Llama 4's adapter takes tokens of %lld numbers, and intermediate_size is %lld",
                     (long long)(v->hidden * side * side), (long long)v->ffn);
    all_biased(a);
    a->embedding_norm = a->final_norm = true;
    positions(a, v, 1, grid(v) + 1);
    rotates(a);
    tiles(out, v, MAQ_IMAGE_CANVAS, 1, side);
    out->most_tiles = 16;
    out->assumed = "16 tiles of an image at most";
    linear(a, "adapter_fc1", MAQ_SHARD_COLUMN, v->ffn, v->projector_in, false);
    activation(a, v->projector_in);
    linear(a, "adapter_fc2", MAQ_SHARD_ROW, v->projector_out, v->projector_out, false);
    activation(a, v->projector_out);
    linear(a, "linear_1", MAQ_SHARD_SEQUENCE, v->output_dim, v->text, false);
}

static void build_intern(struct maq_vision *out, struct maq_architecture *a, struct maq_hf_vision *v,
                         struct maq_model_reader *r)
{
    int64_t side = (int64_t)(1 / v->downsample + 0.5), wide = v->hidden * side * side;
    if (!has_image_size(v, r))
        return;
    a->norm = maq_str_is(v->norm_name, "rms_norm") ? MAQ_NORM_RMS : MAQ_NORM_LAYER;
    a->attention.qkv_bias = v->qkv_bias;
    a->attention.out_bias = a->mlp.bias = a->patch_bias = true;
    positions(a, v, v->mask_token ? 2 : 1, v->positioned ? grid(v) + 1 : 0);
    if (v->qk_norm) {
        norm(a, "q_norm", MAQ_PLACE_QUERIES, v->hidden, v->hidden);
        norm(a, "k_norm", MAQ_PLACE_QUERIES, v->hidden, v->hidden);
    }
    maq__hf_extra_numbers(a, "lambda_1", MAQ_PLACE_MIXER_OUT, v->hidden, v->hidden, 0);
    maq__hf_extra_numbers(a, "lambda_2", MAQ_PLACE_FFN_OUT, v->hidden, v->hidden, 0);
    out->idle_params = v->mean_pool ? 0 : 2 * v->hidden;
    tiles(out, v, MAQ_IMAGE_ASPECT, 1, side);
    out->most_tiles = v->most_tiles > 0 ? (int32_t)v->most_tiles : 12;
    out->assumed = v->most_tiles > 0 ? NULL : "12 tiles of an image at most";
    norm(a, "layer_norm", MAQ_PLACE_HEAD, wide, 2 * wide);
    two_linears(a, wide, v->text, v->text, true);
}

/* ---- Qwen's ---- */

/* A merger: a norm of patches or, behind the merge, of tokens; two linears. */
static void merger(struct maq_architecture *a, const struct maq_hf_vision *v, int64_t norm_params)
{
    int64_t wide = v->hidden * v->merge * v->merge;
    norm(a, "merger_norm", MAQ_PLACE_HEAD, wide, norm_params);
    two_linears(a, wide, wide, v->out, true);
}

static void qwen(struct maq_vision *out, struct maq_architecture *a, const struct maq_hf_vision *v, double fewest,
                 double most)
{
    all_biased(a);
    rotates(a);
    out->rule = MAQ_IMAGE_AREA;
    out->image_size = 0;
    out->embedding_width = v->out;
    out->min_pixels = (int64_t)fewest;
    out->max_pixels = (int64_t)most;
}

#define QWEN2_ASSUMED "images of 3,136 to 12,845,056 pixels"  /* preprocessor_config.json of Qwen2-VL, Qwen2.5-VL */
#define QWEN3_ASSUMED "images of 65,536 to 16,777,216 pixels" /* of Qwen3-VL, Qwen3.5 */

static void build_qwen2(struct maq_vision *out, struct maq_architecture *a, struct maq_hf_vision *v,
                        struct maq_model_reader *r)
{
    (void)r;
    qwen(out, a, v, 3136, 12845056);
    out->assumed = QWEN2_ASSUMED;
    merger(a, v, 2 * v->hidden);
}

static bool listed(struct maq_node *list, int64_t i, struct maq_model_reader *r)
{
    for (struct maq_node *c = list && list->kind == MAQ_NODE_SEQ ? list->first : NULL; c; c = c->next) {
        int64_t at = -1;
        r->bad |= !maq_node_i64(&at, c, r->diag);
        if (at == i)
            return true;
    }
    return false;
}

static void build_qwen25(struct maq_vision *out, struct maq_architecture *a, struct maq_hf_vision *v,
                         struct maq_model_reader *r)
{
    int64_t side = v->window / v->merge / v->patch * v->merge; /* whole tokens */
    qwen(out, a, v, 3136, 12845056);
    out->assumed = QWEN2_ASSUMED;
    a->norm = MAQ_NORM_RMS;
    a->mlp.gated = true;
    MAQ_READER_CHECK(r, side > 0, MAQ_CODE_MODEL_VALUE, "window_size", NULL,
                     "a window of %lld pixels on a side has no whole token", (long long)v->window);
    for (int64_t i = 0; i < v->run; i++)
        a->layers[i].chunk = listed(v->full_layers, i, r) ? 0 : side * side;
    merger(a, v, v->hidden);
}

static void build_qwen3(struct maq_vision *out, struct maq_architecture *a, struct maq_hf_vision *v,
                        struct maq_model_reader *r)
{
    int64_t wide = v->hidden * v->merge * v->merge;
    uint32_t more = v->deepstack && v->deepstack->kind == MAQ_NODE_SEQ ? v->deepstack->count : 0;
    qwen(out, a, v, 65536, 16777216);
    out->assumed = QWEN3_ASSUMED;
    a->patch_bias = true;
    maq__hf_extra_numbers(a, "pos_embed", MAQ_PLACE_EMBEDDING, v->hidden, v->positions * v->hidden, 0);
    merger(a, v, 2 * v->hidden);
    if (!MAQ_READER_CHECK(r, more <= 4, MAQ_CODE_MODEL_LAYER_LIST, "deepstack_visual_indexes", NULL,
                          "features of %u layers come out of the tower: 4 are possible", more))
        return;
    for (uint32_t i = 0; i < more; i++)
        merger(a, v, 2 * wide);
    out->embedding_width = v->out * (1 + (int64_t)more);
}

#define QWEN3_FACTS                                                                                                    \
    "depth: 27, hidden_size: 1152, intermediate_size: 4304, num_heads: 16, patch_size: 16, spatial_merge_size: 2, "    \
    "temporal_patch_size: 2, out_hidden_size: 3584, num_position_embeddings: 2304"
#define VIT_FACTS                                                                                                      \
    "hidden_size: 768, intermediate_size: 3072, num_hidden_layers: 12, num_attention_heads: 12, image_size: 224"
#define INTERN_FACTS                                                                                                   \
    "hidden_size: 1024, num_hidden_layers: 24, num_attention_heads: 16, intermediate_size: 4096, image_size: 448, "    \
    "patch_size: 14, norm_type: layer_norm, use_mean_pooling: true, use_absolute_position_embeddings: true, "          \
    "downsample_ratio: 0.5"

static const struct maq_hf_tower towers[] = {
    {"clip_vision_model", VIT_FACTS ", patch_size: 32, vision_feature_layer: -2, multimodal_projector_bias: true",
     build_clip},
    {"siglip_vision_model|gemma3",
     VIT_FACTS ", patch_size: 16, vision_use_head: true, multimodal_projector_bias: true, mm_tokens_per_image: 256",
     build_siglip},
    {"pixtral",
     "hidden_size: 1024, intermediate_size: 4096, num_hidden_layers: 24, num_attention_heads: 16, image_size: 1024, "
     "patch_size: 16",
     build_pixtral},
    {"llama4_vision_model|llama4",
     "hidden_size: 768, num_hidden_layers: 34, num_attention_heads: 16, intermediate_size: 5632, image_size: 448, "
     "patch_size: 14, vision_output_dim: 7680, projector_input_dim: 4096, projector_output_dim: 4096, "
     "pixel_shuffle_ratio: 0.5",
     build_llama4},
    {"internvl_vision|internvl|intern_vit_6b|internvl_chat", INTERN_FACTS, build_intern},
    {"qwen2_vl|qwen2_vl_vision",
     "depth: 32, embed_dim: 1280, hidden_size: 3584, mlp_ratio: 4, num_heads: 16, patch_size: 14, "
     "spatial_merge_size: 2, temporal_patch_size: 2",
     build_qwen2},
    {"qwen2_5_vl|qwen2_5_vl_vision",
     "depth: 32, hidden_size: 3584, intermediate_size: 3420, num_heads: 16, patch_size: 14, spatial_merge_size: 2, "
     "temporal_patch_size: 2, window_size: 112, out_hidden_size: 3584, fullatt_block_indexes: [7, 15, 23, 31]",
     build_qwen25},
    {"qwen3_vl|qwen3_vl_moe|qwen3_vl_vision|qwen3_vl_moe_vision", QWEN3_FACTS ", deepstack_visual_indexes: [8, 16, 24]",
     build_qwen3},
    {"qwen3_5|qwen3_5_moe|qwen3_5_vision|qwen3_5_moe_vision", QWEN3_FACTS, build_qwen3},
};

const struct maq_hf_tower *maq__hf_tower(struct maq_str type)
{
    for (size_t i = 0; i < MAQ_COUNT(towers); i++)
        if (maq_str_among(type, towers[i].types))
            return &towers[i];
    return NULL;
}
