/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pyramid.c - `model_type: pyramid`: a transformer whose layers differ in width and in the number of tokens, as vision backbones
 * and image generators are built (Swin, arXiv 2103.14030; PVT, 2102.12122; TransGAN, 2102.07074). No family of Hugging Face's text
 * models has such layers, so the keys are Megatron-LM's where it has one, inside a list of `levels`:
 *
 *   model_type: pyramid
 *   input_features: 512        # one vector per sequence is projected to the tokens of the first level
 *   output_features: 3         # of each token of the last level
 *   levels:
 *     - {num_layers: 12, tokens: 81, hidden_size: 1024, num_attention_heads: 4}
 *     - {num_layers: 0, tokens: 324, hidden_size: 1024, num_attention_heads: 4}
 *     - {num_layers: 12, tokens: 82944, window_tokens: 324, hidden_size: 16, num_attention_heads: 4}
 *
 * `tokens` is of one sample; a job's seq_length is that of the first level (its default), or a multiple: so many samples that do
 * not see each other. `window_tokens` cuts them into windows that attend inside themselves. A level without layers only makes its
 * tokens and their positions. Attention is bidirectional. With `position_bias` (default) every head has a number per distance
 * inside a square window.
 *
 * Parameters: as other layers' (model/layer/attention.c, model/layer/mlp.c); a level that begins behind another one has a table of
 * tokens x hidden_size; the input projection has input_features x tokens x hidden_size, a bias, and positions besides.
 */
#include "model/hf/config.h"

#include "base/check.h"
#include "model/codes.h"

#include <inttypes.h>

enum { LEVELS_MAX = 64 };

static const char *const norm_names[] = {"LayerNorm", "RMSNorm", "PixelNorm", NULL};

struct pyramid {
    int64_t input, output;
    int norm;
    bool swiglu, bias, qkv_bias, position_bias;
    double hidden_dropout, attention_dropout;
    struct maq_node *levels;
};

/* One entry of `levels`. */
struct level {
    int64_t layers, hidden, heads, ffn, tokens, window;
};

#define WIDTH .min = 1, .max = 16777216
#define TOKENS .min = 1, .max = 1e9
#define I64(T, m, k, alias, ...) MAQ_FIELD_I64(T, m, k, .aliases = (alias), __VA_ARGS__)
#define BOOL(m, k, alias, ...) MAQ_FIELD_BOOL(struct pyramid, m, k, .aliases = (alias), __VA_ARGS__)
#define REAL(m, k, alias, ...) MAQ_FIELD_DOUBLE(struct pyramid, m, k, .aliases = (alias), __VA_ARGS__)

static const struct maq_field model_fields[] = {
    I64(struct pyramid, input, "input_features", "latent_dim", WIDTH,
        .doc = "of the vector that enters, one per sequence"),
    I64(struct pyramid, output, "output_features", NULL, WIDTH, .doc = "of each token that leaves"),
    MAQ_FIELD_ENUM(struct pyramid, norm, "normalization", norm_names, .doc = "LayerNorm, RMSNorm or PixelNorm"),
    BOOL(swiglu, "swiglu", "gated_linear_unit", .doc = "gated MLP"),
    BOOL(bias, "add_bias_linear", "add-bias-linear", .doc = "biases in all linears"),
    BOOL(qkv_bias, "add_qkv_bias", "add-qkv-bias", .doc = "biases in linear_qkv"),
    BOOL(position_bias, "position_bias", NULL, .doc = "relative positions added to the scores"),
    REAL(hidden_dropout, "hidden_dropout", "hidden-dropout", .min = 0, .max = 1,
         .doc = "dropout before residual additions"),
    REAL(attention_dropout, "attention_dropout", "attention-dropout", .min = 0, .max = 1,
         .doc = "dropout on attention probabilities"),
    MAQ_FIELD_NODE(struct pyramid, levels, "levels", .doc = "ranges of layers of one width and number of tokens"),
    MAQ_FIELD_END};

static const struct maq_field level_fields[] = {
    I64(struct level, layers, "num_layers", "num-layers", .min = 0, .max = MAQ_ARCH_LAYERS_MAX, .required = true,
        .doc = "layers of the level"),
    I64(struct level, hidden, "hidden_size", "hidden-size", WIDTH, .required = true,
        .doc = "width of the residual stream"),
    I64(struct level, heads, "num_attention_heads", "num-attention-heads", .min = 1, .max = 65536, .required = true,
        .doc = "heads"),
    I64(struct level, ffn, "ffn_hidden_size", "ffn-hidden-size", .def = "0", .min = 0, .max = 16777216,
        .doc = "width of the MLP; 4 x hidden_size if absent"),
    I64(struct level, tokens, "tokens", NULL, TOKENS, .required = true, .doc = "of a sequence"),
    I64(struct level, window, "window_tokens", NULL, .def = "0", .min = 0, .max = 1e9,
        .doc = "attention stays inside windows of so many; absent: all of the level"),
    MAQ_FIELD_END};

static const struct maq_field *const tables[] = {model_fields, NULL};

static bool check_level(struct maq_model_reader *r, const struct level *l)
{
    bool ok = MAQ_READER_CHECK(r, l->hidden % l->heads == 0, MAQ_CODE_MODEL_HEAD_WIDTH, "levels", NULL,
                               "hidden_size %" PRId64 " is not a multiple of %" PRId64 " heads", l->hidden, l->heads);
    ok &= MAQ_READER_CHECK(r, l->window == 0 || l->tokens % l->window == 0, MAQ_CODE_MODEL_VALUE, "levels",
                           "pad the tokens to whole windows",
                           "%" PRId64 " tokens are no whole number of windows of %" PRId64, l->tokens, l->window);
    return ok;
}

/* Reads the list into *out; the number of its entries, 0 with what was reported. */
static uint32_t read_levels(struct level *out, struct maq_node *list, struct maq_model_reader *r)
{
    uint32_t n = 0;
    if (!MAQ_READER_CHECK(r, list != NULL, MAQ_CODE_MODEL_MISSING, NULL, NULL, "the model has no levels") ||
        !MAQ_READER_CHECK(r, list->kind == MAQ_NODE_SEQ && list->count >= 1 && list->count <= LEVELS_MAX,
                          MAQ_CODE_MODEL_LAYER_LIST, "levels", NULL, "levels must be a list of 1 to %d maps",
                          LEVELS_MAX))
        return 0;
    for (struct maq_node *c = list->first; c; c = c->next, n++) {
        out[n] = (struct level){0};
        bool good = maq_fields_read(&out[n], level_fields, c, NULL, r->arena, r->diag) == MAQ_OK;
        if (good && c->kind == MAQ_NODE_MAP)
            good = maq_fields_check_keys(level_fields, NULL, c, "a level", r->diag) == MAQ_OK;
        r->bad |= !good || !check_level(r, &out[n]);
    }
    return r->bad ? 0 : n;
}

/* The layers, in order; the first one of a level enters it, and the levels without layers in front of it. */
static void fill_layers(struct maq_architecture *arch, const struct level *levels, uint32_t n,
                        struct maq_model_reader *r)
{
    struct maq_arch_level *shapes = MAQ_ARENA_NEW(r->arena, struct maq_arch_level, n);
    arch->layers = MAQ_ARENA_NEW(r->arena, struct maq_arch_layer, (size_t)arch->num_layers);
    if (!MAQ_READER_CHECK(r, shapes && arch->layers, MAQ_CODE_MODEL_NO_MEMORY, NULL, NULL, "no memory for the layers"))
        return;
    int32_t enters = 0;
    for (uint32_t k = 0, at = 0; k < n; k++) {
        const struct level *l = &levels[k];
        shapes[k] = (struct maq_arch_level){
            .hidden = l->hidden, .heads = l->heads, .ffn = l->ffn > 0 ? l->ffn : 4 * l->hidden, .tokens = l->tokens};
        enters += k > 0;
        for (int64_t i = 0; i < l->layers; i++, enters = 0)
            arch->layers[at++] = (struct maq_arch_layer){.level = &shapes[k],
                                                         .enters = enters,
                                                         .mixer = MAQ_MIXER_ATTENTION,
                                                         .ffn = MAQ_FFN_DENSE,
                                                         .ffn_width = shapes[k].ffn,
                                                         .chunk = l->window > 0 ? l->window : l->tokens};
    }
}

static void read_pyramid(struct maq_architecture *arch, struct maq_model_reader *r, const struct maq_family *family)
{
    struct pyramid p = {.bias = true, .position_bias = true};
    struct level levels[LEVELS_MAX];
    for (size_t i = 0; family->tables[i]; i++)
        maq__reader_fields(r, &p, family->tables[i]);
    uint32_t n = r->bad ? 0 : read_levels(levels, p.levels, r);
    if (n == 0)
        return;
    MAQ_READER_CHECK(r, p.input > 0, MAQ_CODE_MODEL_MISSING, NULL, NULL, "the model has no input_features");
    MAQ_READER_CHECK(r, p.output > 0, MAQ_CODE_MODEL_MISSING, NULL, NULL, "the model has no output_features");
    for (uint32_t k = 0; k < n; k++)
        arch->num_layers += levels[k].layers;
    bool some = levels[0].layers > 0 && levels[n - 1].layers > 0 && arch->num_layers <= MAQ_ARCH_LAYERS_MAX;
    MAQ_READER_CHECK(r, some, MAQ_CODE_MODEL_LAYER_LIST, "levels", NULL,
                     "the first and the last level must have layers, at most %d in all", MAQ_ARCH_LAYERS_MAX);
    if (r->bad)
        return;
    arch->hidden = levels[0].hidden;
    arch->tokens = arch->max_seq = levels[0].tokens;
    arch->input_features = p.input;
    arch->output_features = p.output;
    arch->hidden_dropout = p.hidden_dropout > 0;
    arch->norm = p.norm == 2 ? MAQ_NORM_PLAIN : p.norm == 1 ? MAQ_NORM_RMS : MAQ_NORM_LAYER;
    arch->mlp = (struct maq_arch_mlp){.gated = p.swiglu, .bias = p.bias};
    arch->attention = (struct maq_arch_attention){.heads = levels[0].heads,
                                                  .kv_heads = levels[0].heads,
                                                  .head_dim = levels[0].hidden / levels[0].heads,
                                                  .v_dim = levels[0].hidden / levels[0].heads,
                                                  .qkv_bias = p.bias || p.qkv_bias,
                                                  .out_bias = p.bias,
                                                  .dropout = p.attention_dropout > 0,
                                                  .bidirectional = true,
                                                  .position_bias = p.position_bias};
    fill_layers(arch, levels, n, r);
}

const struct maq_family maq__pyramid_family = {
    .type = "pyramid", .architectures = "", .tables = tables, .read = read_pyramid};
