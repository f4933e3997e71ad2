/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vision.c - `vision_config`: its keys, and the layers that all towers have.
 *
 * A tower is a text model's architecture without vocabulary: a linear makes features of a patch (channels x patch x patch numbers, for as many frames as go together),
 * layers of attention and an MLP see all patches of their tile or window, and what is behind them are extras (model/architecture.h). Layers behind the one whose
 * features are taken (`vision_feature_layer`) are counted and not run: engines do not load them (vLLM 0.33.0, model_executor/models/clip.py).
 */
#include "model/hf/vision.h"

#include <inttypes.h>

#include "base/check.h"
#include "base/str.h"
#include "model/codes.h"

#define V struct maq_hf_vision
#define VI64(member, key, ...) MAQ_FIELD_I64(V, member, key, __VA_ARGS__)
#define VBOOL(member, key, ...) MAQ_FIELD_BOOL(V, member, key, __VA_ARGS__)
#define VREAL(member, key, ...) MAQ_FIELD_DOUBLE(V, member, key, __VA_ARGS__)
#define SIZE .min = 1, .max = 1048576
#define NONE_OR .min = 0, .max = 16777216

/* Some classes write a setting under two names at once: such names have rows of their own, not aliases. */
static const struct maq_field tower_keys[] = {
    VI64(hidden, "hidden_size", SIZE, .doc = "width of the residual stream; of Qwen2-VL what comes out"),
    VI64(embed, "embed_dim", SIZE, .doc = "width of Qwen2-VL's residual stream"),
    VI64(layers, "num_hidden_layers", .min = 1, .max = MAQ_ARCH_LAYERS_MAX, .doc = "layers"),
    VI64(layers, "depth", .min = 1, .max = MAQ_ARCH_LAYERS_MAX, .doc = "the same, in the words of Qwen"),
    VI64(heads, "num_attention_heads", .min = 1, .max = 65536, .doc = "heads"),
    VI64(heads, "num_heads", .min = 1, .max = 65536, .doc = "the same, in the words of Qwen"),
    VI64(ffn, "intermediate_size", SIZE, .doc = "width of the MLP"),
    VREAL(mlp_ratio, "mlp_ratio", .min = 0.001, .max = 1024, .doc = "that over embed_dim"),
    VI64(channels, "num_channels", .min = 1, .max = 1024, .doc = "of a pixel"),
    VI64(channels, "in_channels", .min = 1, .max = 1024, .doc = "the same"),
    VI64(channels, "in_chans", .min = 1, .max = 1024, .doc = "the same"),
    VI64(merge, "spatial_merge_size", .min = 1, .max = 64, .doc = "patches on a side of a token"),
    VI64(temporal, "temporal_patch_size", .min = 1, .max = 1024, .doc = "frames of a patch"),
    VI64(window, "window_size", .min = 1, .max = 1048576, .doc = "pixels on a side of a window"),
    VI64(positions, "num_position_embeddings", SIZE, .doc = "rows of the table of positions"),
    VI64(out, "out_hidden_size", SIZE, .doc = "width of a token that comes out"),
    MAQ_FIELD_NODE(V, image, "image_size", .doc = "pixels on a side of the image or of a tile"),
    MAQ_FIELD_NODE(V, patches, "patch_size", .doc = "pixels on a side of a patch"),
    MAQ_FIELD_NODE(V, full_layers, "fullatt_block_indexes", .doc = "layers that see the whole image"),
    MAQ_FIELD_NODE(V, deepstack, "deepstack_visual_indexes", .doc = "layers whose features come out besides"),
    VBOOL(qkv_bias, "attention_bias", .doc = "biases in queries, keys and values"),
    VBOOL(qkv_bias, "qkv_bias", .doc = "the same, in the words of InternVL's own files"),
    VBOOL(qk_norm, "use_qk_norm", .doc = "norms on queries and keys"),
    VBOOL(qk_norm, "qk_normalization", .doc = "the same, in the words of InternVL's own files"),
    VBOOL(mask_token, "use_mask_token", .doc = "a mask token"),
    VBOOL(mean_pool, "use_mean_pooling", .doc = "no norm behind the layers"),
    VBOOL(positioned, "use_absolute_position_embeddings", .doc = "a table of positions"),
    VBOOL(pools, "vision_use_head", .doc = "a pooling head, which no token passes"),
    MAQ_FIELD_STR(V, norm_name, "norm_type", .doc = "layer_norm or rms_norm"),
    VI64(output_dim, "vision_output_dim", SIZE, .doc = "width behind Llama 4's adapter"),
    VI64(projector_in, "projector_input_dim", SIZE, .doc = "width inside it"),
    VI64(projector_out, "projector_output_dim", SIZE, .doc = "width behind it"),
    VREAL(shuffle, "pixel_shuffle_ratio", .min = 0.01, .max = 1, .doc = "tokens over patches on a side"),
    MAQ_FIELD_END};

static const struct maq_field keys_beside[] = {
    MAQ_FIELD_NODE(V, feature_layer, "vision_feature_layer", .aliases = "select_layer",
                   .doc = "the layer whose features are taken, -1 the last; or several"),
    MAQ_FIELD_STR(V, strategy, "vision_feature_select_strategy", .doc = "full keeps the class token"),
    VBOOL(projector_bias, "multimodal_projector_bias", .doc = "biases in the projector"),
    VI64(tokens_per_image, "mm_tokens_per_image", SIZE, .doc = "Gemma 3's tokens of an image"),
    VI64(outer_merge, "spatial_merge_size", .min = 1, .max = 64, .doc = "patches on a side of a token, of Mistral"),
    VI64(most_tiles, "max_dynamic_patch", .min = 1, .max = 4096, .doc = "tiles at most, in InternVL's own files"),
    VREAL(downsample, "downsample_ratio", .min = 0.01, .max = 1, .doc = "tokens over patches on a side, of InternVL"),
    MAQ_FIELD_END};

static const char neutral[] =
    "model_type|architectures|hidden_act|layer_norm_eps|norm_eps|rms_norm_eps|initializer_factor|projection_dim|"
    "spatial_patch_size|tokens_per_second|hidden_dropout_prob|projection_dropout|projector_dropout|dropout|drop_path_"
    "rate|"
    "layer_scale_init_value|vision_feature_select_strategy|vision_feature_layer|multi_modal_projector_bias|head_dim|"
    "rope_parameters|rope_theta|use_flash_attn|use_fa3_attn|num_image_tokens|projection_dim|vocab_size|hidden_act|"
    "fullatt_block_indexes|window_size|img_size|in_chans|shared_expert|auto_map|use_bfloat16";

static void check_keys(struct maq_model_reader *r, const char *type)
{
    for (struct maq_node *c = r->maps[0]->first; c; c = c->next) {
        bool known = maq_fields_find(tower_keys, c->key) || maq_str_among(c->key, neutral) ||
                     maq__hf_key_is_ignored(c->key) || maq_node_is_null(c);
        if (!known)
            maq_diag_add(r->diag, r->lenient[0] ? MAQ_WARNING : MAQ_ERROR, MAQ_CODE_MODEL_UNKNOWN_KEY, c->key_at, NULL,
                         "'%.*s' means nothing to a vision tower of type '%s'", (int)c->key.len, c->key.ptr, type);
        r->bad |= !known && !r->lenient[0];
        maq_node_use_all(c);
    }
}

/* Pixels on a side: a number, or two equal ones. */
static void read_side(int64_t *out, struct maq_node *node, const char *key, struct maq_model_reader *r)
{
    int64_t side[2] = {0, 0};
    uint32_t n = 0;
    if (!node)
        return;
    bool pair = node->kind == MAQ_NODE_SEQ;
    for (struct maq_node *c = pair ? node->first : node; c && n < 2; c = pair ? c->next : NULL, n++)
        if (!maq_node_i64(&side[n], c, r->diag))
            r->bad = true;
    bool square = n > 0 && (n == 1 || side[0] == side[1]) && side[0] >= 1 && side[0] <= 1048576;
    if (MAQ_READER_CHECK(r, square, MAQ_CODE_MODEL_VALUE, key, NULL, "%s must be pixels on a side of a square", key))
        *out = side[0];
}

/* Which layers run: all up to the last whose features are taken. 0 is what the embedding makes, -1 the last layer. */
static void read_feature_layers(struct maq_hf_vision *v, struct maq_model_reader *r)
{
    struct maq_node *node = v->feature_layer;
    int64_t last = -1, n = 0;
    v->run = v->layers;
    v->features = 1;
    if (!node)
        return;
    bool list = node->kind == MAQ_NODE_SEQ;
    for (struct maq_node *c = list ? node->first : node; c; c = list ? c->next : NULL, n++) {
        int64_t at = 0;
        if (!maq_node_i64(&at, c, r->diag)) {
            r->bad = true;
            return;
        }
        at = at < 0 ? v->layers + 1 + at : at;
        if (!MAQ_READER_CHECK(r, at >= 0 && at <= v->layers, MAQ_CODE_MODEL_LAYER_LIST, NULL, NULL,
                              "vision_feature_layer: the tower has %" PRId64 " layers", v->layers))
            return;
        last = at > last ? at : last;
    }
    v->run = last > 0 ? last : 1;
    v->features = n > 0 ? n : 1;
}

static void read_facts(struct maq_hf_vision *v, const struct maq_hf_tower *tower, struct maq_model_reader *r,
                       struct maq_doc *doc)
{
    const char *text = maq_arena_printf(r->arena, "{%s}", tower->facts);
    bool ok = text && maq_doc_parse(doc, "facts", maq_str_of(text), MAQ_ORIGIN_CATALOGUE, r->diag) == MAQ_OK &&
              maq_fields_read(v, tower_keys, doc->root, NULL, r->arena, r->diag) == MAQ_OK &&
              maq_fields_read(v, keys_beside, doc->root, NULL, r->arena, r->diag) == MAQ_OK;
    r->bad |= !ok;
}

static bool check_sizes(const struct maq_hf_vision *v, struct maq_model_reader *r)
{
    MAQ_READER_CHECK(r, v->patch > 0, MAQ_CODE_MODEL_MISSING, NULL, NULL, "the vision tower has no patch_size");
    if (!r->bad)
        MAQ_READER_CHECK(r, v->hidden % v->heads == 0, MAQ_CODE_MODEL_HEAD_WIDTH, "hidden_size|embed_dim", NULL,
                         "hidden_size %" PRId64 " is not a multiple of %" PRId64 " heads", v->hidden, v->heads);
    if (!r->bad && v->image_size > 0)
        MAQ_READER_CHECK(r, v->image_size >= v->patch, MAQ_CODE_MODEL_VALUE, "image_size", NULL,
                         "an image of %" PRId64 " pixels on a side has no patch of %" PRId64, v->image_size, v->patch);
    return !r->bad;
}

/* What all towers have; `build` has set norms, biases, rotation, and the window of each layer where some have one. */
static void fill(struct maq_architecture *a, const struct maq_hf_vision *v)
{
    a->hidden = v->hidden;
    a->num_layers = v->run;
    a->patch_features = v->channels * v->temporal * v->patch * v->patch;
    a->attention.heads = a->attention.kv_heads = v->heads;
    a->attention.head_dim = a->attention.v_dim = v->hidden / v->heads;
    a->attention.rope_dim = v->hidden / v->heads;
    a->attention.bidirectional = true;
    for (int64_t i = 0; i < v->run; i++) {
        a->layers[i].mixer = MAQ_MIXER_ATTENTION;
        a->layers[i].ffn = MAQ_FFN_DENSE;
        a->layers[i].ffn_width = v->ffn;
    }
}

static void finish(struct maq_vision *out, const struct maq_architecture *arch, const struct maq_hf_vision *v,
                   struct maq_model_reader *r)
{
    if (maq_model_build(&out->model, arch, r->arena, r->diag) != MAQ_OK) {
        r->bad = true;
        return;
    }
    int64_t tokens = out->merge * out->merge;
    out->model.output.tokens = 1;
    out->model.output.of_tokens = tokens > 0 ? tokens : 1;
    out->idle_params += (v->layers - v->run) * out->model.kinds[0].params;
    out->params = out->model.params + out->idle_params;
}

static void read_tower(struct maq_model *model, const struct maq_hf_tower *tower, struct maq_model_reader *r,
                       struct maq_model_reader *around, const char *type, struct maq_str whole)
{
    struct maq_hf_vision v = {.channels = 3, .merge = 1, .temporal = 1, .text = model->hidden, .around = whole};
    struct maq_vision *out = MAQ_ARENA_NEW(r->arena, struct maq_vision, 1);
    struct maq_doc facts = {0};
    read_facts(&v, tower, r, &facts);
    if (r->bad || !out) {
        r->bad = true;
        maq_doc_fini(&facts);
        return;
    }
    read_side(&v.image_size, v.image, "image_size", r);
    read_side(&v.patch, v.patches, "patch_size", r);
    v.image = v.patches = NULL;
    maq__reader_fields(r, &v, tower_keys);
    maq__reader_fields(around, &v, keys_beside);
    read_side(&v.image_size, v.image, "image_size", r);
    read_side(&v.patch, v.patches, "patch_size", r);
    if (v.embed > 0) {
        v.out = v.hidden;
        v.hidden = v.embed;
        v.ffn = (int64_t)((double)v.hidden * v.mlp_ratio);
    }
    if (!r->bad && check_sizes(&v, r)) {
        struct maq_architecture arch = {.name = type, .source = model->source, .at = r->at, .norm = MAQ_NORM_LAYER};
        read_feature_layers(&v, r);
        arch.layers = MAQ_ARENA_NEW(r->arena, struct maq_arch_layer, (size_t)v.run);
        *out = (struct maq_vision){.type = type,
                                   .patch = (int32_t)v.patch,
                                   .merge = (int32_t)v.merge,
                                   .image_size = v.image_size,
                                   .embedding_width = v.text};
        r->bad |= !arch.layers;
        if (!r->bad) {
            fill(&arch, &v);
            tower->build(out, &arch, &v, r);
        }
        if (!r->bad)
            finish(out, &arch, &v, r);
    }
    check_keys(r, type);
    maq_doc_fini(&facts);
    if (!r->bad)
        model->vision = out;
}

void maq__hf_vision_read(struct maq_model *model, struct maq_node *vision, bool lenient,
                         struct maq_model_reader *around, struct maq_str whole)
{
    struct maq_model_reader r = {
        .maps = {vision}, .lenient = {lenient}, .n_maps = 1, .arena = around->arena, .diag = around->diag};
    struct maq_node *node = maq_node_peek(vision, "model_type");
    struct maq_str type = node && node->kind == MAQ_NODE_SCALAR ? node->text : whole;
    const struct maq_hf_tower *tower = maq__hf_tower(type);
    r.at = vision->key_at;
    if (!tower) {
        maq_node_use_all(vision);
        maq_diag_add(r.diag, MAQ_WARNING, MAQ_CODE_MODEL_TEXT_ONLY, vision->key_at,
                     "docs/models.md lists the towers that are known; maquette serve takes one as a model of its own "
                     "(--encoder-model)",
                     "only the text model is modelled: a vision tower of type '%.*s' is not known", (int)type.len,
                     type.ptr);
        return;
    }
    const char *name = maq_arena_strdup(r.arena, type);
    read_tower(model, tower, &r, around, name ? name : "", whole);
    around->bad |= r.bad;
}
