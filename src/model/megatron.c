/* SPDX-License-Identifier: Apache-2.0 */
/*
 * megatron.c - `model_type: megatron`: an architecture in Megatron-LM's argument names, with the underscore of its
 * configuration or the hyphen of its command line (num_layers or num-layers). Four names of Hugging Face are
 * understood as well (num_hidden_layers, intermediate_size, num_key_value_heads, head_dim), so that a catalogue entry
 * can be overridden without knowing how it is written.
 *
 * Defaults are Megatron-LM's (megatron/training/arguments.py, core/transformer/transformer_config.py): GPT with
 * LayerNorm, GELU, biases, learned positions, tied embeddings, dropout 0.1, MLP of 4 x hidden (8/3 x hidden, down to
 * a multiple of 64, with swiglu).
 */
#include "model/hf/config.h"

#include "base/check.h"
#include "base/str.h"
#include "model/codes.h"
#include "model/load.h"

#include <inttypes.h>

static const char *const position_names[] = {"learned_absolute", "rope", "none", "alibi", "yarn", "relative", NULL};
static const char *const norm_names[] = {"LayerNorm", "RMSNorm", NULL};

enum { POSITION_LEARNED, POSITION_ROPE, POSITION_NONE, POSITION_ALIBI, POSITION_YARN };

struct megatron {
    int64_t layers, hidden, ffn, heads, groups, kv_channels, vocab, vocab_multiple, max_pos;
    int position, norm;
    double rotary_percent, hidden_dropout, attention_dropout;
    bool group_query, swiglu, squared_relu, bias, no_bias, qkv_bias, untie, qk_norm, output_gate;
    struct maq_node *window, *moe_freq, *window_skip;
    int64_t experts, topk, expert_groups, group_topk, moe_ffn, shared_ffn, latent, mtp;
    bool expert_bias, shared_gate;
    bool mla;
    int64_t q_lora, kv_lora, qk_dim, qk_rope_dim, v_dim;
    struct maq_str pattern, mtp_pattern, variant;
    struct maq_node *linear_freq;
    struct maq_arch_ssm mamba, delta;
};

#define WIDTH .min = 1, .max = 16777216
#define COUNT .min = 1, .max = 65536
#define OPTIONAL .min = 0, .max = 16777216
#define I64(m, k, alias, ...) MAQ_FIELD_I64(struct megatron, m, k, .aliases = (alias), __VA_ARGS__)
#define BOOL(m, k, alias, ...) MAQ_FIELD_BOOL(struct megatron, m, k, .aliases = (alias), __VA_ARGS__)
#define REAL(m, k, alias, ...) MAQ_FIELD_DOUBLE(struct megatron, m, k, .aliases = (alias), __VA_ARGS__)
#define NODE(m, k, alias, ...) MAQ_FIELD_NODE(struct megatron, m, k, .aliases = (alias), __VA_ARGS__)

static const struct maq_field size_fields[] = {
    I64(layers, "num_layers", "num-layers|num_hidden_layers", .min = 1, .max = MAQ_ARCH_LAYERS_MAX,
        .doc = "transformer layers"),
    I64(hidden, "hidden_size", "hidden-size", WIDTH, .doc = "width of the residual stream"),
    I64(ffn, "ffn_hidden_size", "ffn-hidden-size|intermediate_size", WIDTH, .doc = "width of the MLP"),
    I64(heads, "num_attention_heads", "num-attention-heads", COUNT, .doc = "query heads"),
    I64(groups, "num_query_groups", "num-query-groups|num_key_value_heads", COUNT, .doc = "key and value heads"),
    BOOL(group_query, "group_query_attention", "group-query-attention", .doc = "implied by num_query_groups"),
    I64(kv_channels, "kv_channels", "kv-channels|head_dim", .min = 1, .max = 65536, .doc = "width of a head"),
    I64(vocab, "vocab_size", "vocab-size|padded_vocab_size", .min = 1, .max = 134217728,
        .doc = "rows of the token table"),
    I64(vocab_multiple, "make_vocab_size_divisible_by", "make-vocab-size-divisible-by", .min = 1, .max = 134217728,
        .doc = "the vocabulary is padded to a multiple of it; only if given"),
    I64(max_pos, "max_position_embeddings", "max-position-embeddings", .min = 1, .max = 1e12,
        .doc = "rows of the position table"),
    MAQ_FIELD_ENUM(struct megatron, position, "position_embedding_type", position_names,
                   .aliases = "position-embedding-type", .doc = "how positions enter"),
    REAL(rotary_percent, "rotary_percent", "rotary-percent", .min = 0, .max = 1,
         .doc = "share of a head that is rotated"),
    MAQ_FIELD_END};

static const struct maq_field layer_fields[] = {
    BOOL(swiglu, "swiglu", "gated_linear_unit", .doc = "gated MLP"),
    BOOL(squared_relu, "squared_relu", "squared-relu", .doc = "squared ReLU instead of GELU"),
    MAQ_FIELD_ENUM(struct megatron, norm, "normalization", norm_names, .doc = "LayerNorm or RMSNorm"),
    BOOL(bias, "add_bias_linear", "add-bias-linear", .doc = "biases in all linears"),
    BOOL(no_bias, "disable_bias_linear", "disable-bias-linear", .doc = "no biases in linears"),
    BOOL(qkv_bias, "add_qkv_bias", "add-qkv-bias", .doc = "biases in linear_qkv"),
    BOOL(untie, "untie_embeddings_and_output_weights", "untie-embeddings-and-output-weights",
         .doc = "a head of its own"),
    REAL(hidden_dropout, "hidden_dropout", "hidden-dropout", .min = 0, .max = 1,
         .doc = "dropout before residual additions"),
    REAL(attention_dropout, "attention_dropout", "attention-dropout", .min = 0, .max = 1,
         .doc = "dropout on attention probabilities"),
    BOOL(qk_norm, "qk_layernorm", "qk-layernorm", .doc = "norms inside query and key heads"),
    BOOL(output_gate, "attention_output_gate", "attention-output-gate", .doc = "sigmoid gate behind the core"),
    NODE(window, "window_size", "window-size", .doc = "[left, right] tokens a query sees beside itself"),
    NODE(window_skip, "window_attn_skip_freq", "window-attn-skip-freq", .doc = "every n-th layer sees everything"),
    MAQ_FIELD_END};

static const struct maq_field moe_fields[] = {
    I64(experts, "num_experts", "num-experts|num_moe_experts", .min = 0, .max = 65536, .doc = "routed experts"),
    I64(topk, "moe_router_topk", "moe-router-topk", COUNT, .doc = "experts a token goes to"),
    I64(expert_groups, "moe_router_num_groups", "moe-router-num-groups", .min = 0, .max = 1024,
        .doc = "groups of experts, of which a token's lie in a few"),
    I64(group_topk, "moe_router_group_topk", "moe-router-group-topk", .min = 0, .max = 1024,
        .doc = "groups that a token's experts lie in"),
    I64(moe_ffn, "moe_ffn_hidden_size", "moe-ffn-hidden-size", WIDTH, .doc = "width of one routed expert"),
    I64(shared_ffn, "moe_shared_expert_intermediate_size", "moe-shared-expert-intermediate-size", OPTIONAL,
        .doc = "width of all shared experts together"),
    BOOL(shared_gate, "moe_shared_expert_gate", "moe-shared-expert-gate", .doc = "a scalar gate on the shared experts"),
    BOOL(expert_bias, "moe_router_enable_expert_bias", "moe-router-enable-expert-bias",
         .doc = "load-balancing bias per expert"),
    NODE(moe_freq, "moe_layer_freq", "moe-layer-freq", .doc = "experts in every n-th layer, or a list of 0 and 1"),
    I64(latent, "moe_latent_size", "moe-latent-size", OPTIONAL, .doc = "width at which routed experts work"),
    I64(mtp, "mtp_num_layers", "mtp-num-layers", .min = 0, .max = 64, .doc = "multi-token-prediction depths"),
    MAQ_FIELD_END};

static const struct maq_field mixer_fields[] = {
    BOOL(mla, "multi_latent_attention", "multi-latent-attention", .doc = "latent attention"),
    I64(q_lora, "q_lora_rank", "q-lora-rank", OPTIONAL, .doc = "latent width of queries; absent: projected directly"),
    I64(kv_lora, "kv_lora_rank", "kv-lora-rank", WIDTH, .doc = "latent width of keys and values"),
    I64(qk_dim, "qk_head_dim", "qk-head-dim", .min = 1, .max = 65536, .doc = "unrotated features of a query head"),
    I64(qk_rope_dim, "qk_pos_emb_head_dim", "qk-pos-emb-head-dim", .min = 0, .max = 65536,
        .doc = "rotated features of a query head"),
    I64(v_dim, "v_head_dim", "v-head-dim", .min = 1, .max = 65536, .doc = "width of a value head"),
    MAQ_FIELD_STR(struct megatron, pattern, "hybrid_override_pattern",
                  .aliases = "hybrid-override-pattern|hybrid_layer_pattern",
                  .doc = "M Mamba-2, * attention, - MLP, E experts; one letter for each layer"),
    MAQ_FIELD_STR(struct megatron, mtp_pattern, "mtp_hybrid_override_pattern", .aliases = "mtp-hybrid-override-pattern",
                  .doc = "the layers of one multi-token-prediction depth, such as *E"),
    I64(mamba.heads, "mamba_num_heads", "mamba-num-heads", COUNT,
        .doc = "heads of the scan; 2 hidden / head width if absent"),
    I64(mamba.head_dim, "mamba_head_dim", "mamba-head-dim", .min = 1, .max = 65536,
        .doc = "width of a head of the scan"),
    I64(mamba.groups, "mamba_num_groups", "mamba-num-groups", COUNT, .doc = "groups that share B and C"),
    I64(mamba.state, "mamba_state_dim", "mamba-state-dim", .min = 1, .max = 65536, .doc = "state size"),
    MAQ_FIELD_END};

static const struct maq_field delta_fields[] = {
    MAQ_FIELD_STR(struct megatron, variant, "experimental_attention_variant",
                  .aliases = "experimental-attention-variant", .doc = "gdn: the gated delta rule in most layers"),
    NODE(linear_freq, "linear_attention_freq", "linear-attention-freq",
         .doc = "attention in every n-th layer, the delta rule in the others, or a list of 0 and 1 for it"),
    I64(delta.conv_kernel, "linear_conv_kernel_dim", "linear-conv-kernel-dim", .min = 1, .max = 65536,
        .doc = "tokens of the convolution"),
    I64(delta.groups, "linear_num_key_heads", "linear-num-key-heads", COUNT, .doc = "query and key heads of the rule"),
    I64(delta.state, "linear_key_head_dim", "linear-key-head-dim", .min = 1, .max = 65536, .doc = "their width"),
    I64(delta.heads, "linear_num_value_heads", "linear-num-value-heads", COUNT, .doc = "its value heads"),
    I64(delta.head_dim, "linear_value_head_dim", "linear-value-head-dim", .min = 1, .max = 65536, .doc = "their width"),
    MAQ_FIELD_END};

static const struct maq_field *const tables[] = {size_fields,  layer_fields, moe_fields,
                                                 mixer_fields, delta_fields, NULL};

const char *maq_model_megatron_key(struct maq_str name)
{
    char folded[64];
    if (name.len >= sizeof folded)
        return NULL;
    for (size_t i = 0; i < name.len; i++)
        folded[i] = name.ptr[i] == '-' ? '_' : name.ptr[i];
    for (const struct maq_field *const *table = tables; *table; table++) {
        const struct maq_field *f = maq_fields_find(*table, (struct maq_str){folded, name.len});
        if (f)
            return f->key;
    }
    return NULL;
}

static bool check(struct megatron *g, struct maq_model_reader *r)
{
    bool ok = maq__reader_needs(r, g->layers > 0, "num_layers");
    ok &= maq__reader_needs(r, g->hidden > 0, "hidden_size");
    ok &= MAQ_READER_CHECK(r, g->vocab > 0, MAQ_CODE_MODEL_MISSING, NULL,
                           "give the number of tokens that its tokenizer knows", "the model has no vocab_size");
    ok &= maq__reader_needs(r, g->heads > 0, "num_attention_heads");
    ok &= MAQ_READER_CHECK(r, g->position <= POSITION_YARN, MAQ_CODE_MODEL_VALUE,
                           "position_embedding_type|position-embedding-type", NULL,
                           "relative positions are not modelled");
    ok &= MAQ_READER_CHECK(r, g->position != POSITION_LEARNED || g->max_pos > 0, MAQ_CODE_MODEL_MISSING, NULL,
                           "give it, or position_embedding_type: rope",
                           "a learned position table needs max_position_embeddings");
    if (!ok)
        return false;
    if (g->groups == 0)
        g->groups = g->heads;
    if (g->kv_channels == 0 && !g->mla)
        ok &=
            MAQ_READER_CHECK(r, g->hidden % g->heads == 0, MAQ_CODE_MODEL_HEAD_WIDTH,
                             "num_attention_heads|num-attention-heads", "give kv_channels, or another number of heads",
                             "hidden_size %" PRId64 " is not a multiple of %" PRId64 " heads", g->hidden, g->heads);
    if (g->kv_channels == 0)
        g->kv_channels = g->hidden / g->heads;
    ok &= MAQ_READER_CHECK(r, g->heads % g->groups == 0, MAQ_CODE_MODEL_KV_HEADS, "num_query_groups|num-query-groups",
                           NULL, "%" PRId64 " query heads cannot share %" PRId64 " key and value heads evenly",
                           g->heads, g->groups);
    ok &= MAQ_READER_CHECK(r, g->experts == 0 || g->topk <= g->experts, MAQ_CODE_MODEL_TOPK,
                           "moe_router_topk|moe-router-topk", NULL,
                           "a token cannot go to %" PRId64 " of %" PRId64 " experts", g->topk, g->experts);
    maq__reader_expert_groups(r, g->experts, g->topk, g->expert_groups, g->group_topk,
                              "moe_router_num_groups|moe-router-num-groups",
                              "moe_router_group_topk|moe-router-group-topk");
    return ok;
}

static void fill_defaults(struct megatron *g)
{
    if (g->ffn == 0)
        g->ffn = g->swiglu ? g->hidden * 8 / 3 / 64 * 64 : 4 * g->hidden;
    if (g->ffn == 0)
        g->ffn = 64;
    if (g->vocab_multiple > 0)
        g->vocab = (g->vocab + g->vocab_multiple - 1) / g->vocab_multiple * g->vocab_multiple;
    if (g->mamba.heads == 0)
        g->mamba.heads = 2 * g->hidden / g->mamba.head_dim;
    g->bias = g->bias && !g->no_bias;
}

static void fill_mixers(struct maq_architecture *arch, const struct megatron *g)
{
    bool rope = g->position == POSITION_ROPE || g->position == POSITION_YARN;
    arch->attention = (struct maq_arch_attention){
        .heads = g->heads,
        .kv_heads = g->groups,
        .head_dim = g->kv_channels,
        .v_dim = g->kv_channels,
        .rope_dim = rope ? (int64_t)((double)g->kv_channels * g->rotary_percent) : 0,
        .qk_norm = g->qk_norm ? MAQ_QK_NORM_HEAD : MAQ_QK_NORM_NONE,
        .qkv_bias = g->bias || g->qkv_bias,
        .out_bias = g->bias,
        .gate = g->output_gate ? MAQ_GATE_WITH_QUERIES : MAQ_GATE_NONE,
        .dropout = g->attention_dropout > 0.0,
    };
    arch->mla = (struct maq_arch_mla){.heads = g->heads,
                                      .q_lora = g->q_lora,
                                      .kv_lora = g->kv_lora,
                                      .nope_dim = g->qk_dim,
                                      .rope_dim = g->qk_rope_dim,
                                      .v_dim = g->v_dim,
                                      .dropout = g->attention_dropout > 0.0};
    arch->mamba = g->mamba;
    arch->delta = g->delta;
}

static void fill(struct maq_architecture *arch, const struct megatron *g)
{
    bool learned = g->position == POSITION_LEARNED;
    arch->hidden = g->hidden;
    arch->vocab = g->vocab;
    arch->max_seq = g->max_pos;
    arch->position_rows = learned ? g->max_pos : 0;
    arch->tied = !g->untie;
    arch->final_norm = true;
    arch->hidden_dropout = g->hidden_dropout > 0.0;
    arch->norm = g->norm == 1 ? MAQ_NORM_RMS : MAQ_NORM_LAYER;
    arch->mlp = (struct maq_arch_mlp){.gated = g->swiglu, .bias = g->bias, .squared_relu = g->squared_relu};
    arch->moe = (struct maq_arch_moe){.experts = g->experts,
                                      .topk = g->topk,
                                      .groups = g->expert_groups,
                                      .group_topk = g->group_topk,
                                      .ffn = g->moe_ffn > 0 ? g->moe_ffn : g->ffn,
                                      .shared_ffn = g->shared_ffn,
                                      .latent = g->latent,
                                      .gated = g->swiglu,
                                      .squared_relu = g->squared_relu,
                                      .bias = g->bias,
                                      .router_bias = g->expert_bias,
                                      .shared_gate = g->shared_gate && g->shared_ffn > 0};
    arch->num_layers = g->layers;
    arch->mtp_layers = g->mtp;
    fill_mixers(arch, g);
}

/*
 * window_size: (left, right) as in Megatron-LM; a causal query sees `left` tokens before itself, and itself. One
 * number is `left`. -1 is no window. Written as a list or as the text "left,right".
 */
static int64_t read_window(const struct megatron *g, struct maq_model_reader *r)
{
    struct maq_node *node = g->window;
    int64_t left = -1;
    struct maq_str text;
    if (!node)
        return 0;
    if (node->kind == MAQ_NODE_SEQ && node->first && node->first->kind == MAQ_NODE_SCALAR)
        text = node->first->text;
    else
        maq_str_split(node->text, ',', &text);
    for (struct maq_node *c = node->first; c; c = c->next)
        c->used = true;
    MAQ_READER_CHECK(r, maq_str_to_i64(&left, maq_str_trim(text)) && left >= -1 && left < INT64_C(1000000000000),
                     MAQ_CODE_MODEL_VALUE, "window_size|window-size", "as in Megatron-LM: [4095, 0]",
                     "window_size must be [left, right] in tokens");
    return left + 1;
}

/* "every n-th" keys: a number, or a list of 0 and 1 (1 for `on`). */
static void read_every(bool *on, struct maq_node *node, int64_t layers, struct maq_model_reader *r, const char *keys)
{
    if (node->kind == MAQ_NODE_SEQ) {
        uint32_t n = 0;
        const int64_t *list = maq__reader_i64_list(r, node, &n);
        if (!list || !MAQ_READER_CHECK(r, (int64_t)n == layers, MAQ_CODE_MODEL_LAYER_LIST, keys,
                                       "give one entry for each layer", "%u entries for %" PRId64 " layers", n, layers))
            return;
        for (int64_t i = 0; i < layers; i++)
            on[i] = list[i] != 0;
        return;
    }
    int64_t every = 1;
    if (!maq_node_i64(&every, node, r->diag)) {
        r->bad = true;
        return;
    }
    if (!MAQ_READER_CHECK(r, every >= 1, MAQ_CODE_MODEL_LAYER_LIST, keys, NULL, "every %" PRId64 "-th layer is none",
                          every))
        return;
    for (int64_t i = 0; i < layers; i++)
        on[i] = i % every == 0;
}

/* Gated DeltaNet (experimental_attention_variant_module_specs.py): every n-th layer keeps its attention, or a list has 1 for the rule. */
static void fill_linear(struct maq_architecture *arch, const struct megatron *g, struct maq_model_reader *r)
{
    static const char freq[] = "linear_attention_freq|linear-attention-freq";
    const bool list = g->linear_freq && g->linear_freq->kind == MAQ_NODE_SEQ;
    int64_t every = 0;
    if (g->variant.len == 0)
        return;
    if (!MAQ_READER_CHECK(r, maq_str_is(g->variant, "gdn") || maq_str_is(g->variant, "gated_delta_net"),
                          MAQ_CODE_MODEL_VALUE, "experimental_attention_variant|experimental-attention-variant", NULL,
                          "the attention variant %.*s has no model here: gdn has", (int)g->variant.len,
                          g->variant.ptr) ||
        !MAQ_READER_CHECK(r, g->linear_freq, MAQ_CODE_MODEL_MISSING, NULL, "give linear_attention_freq",
                          "nothing says which layers have the gated delta rule") ||
        !MAQ_READER_CHECK(r, g->delta.heads % g->delta.groups == 0, MAQ_CODE_MODEL_KV_HEADS,
                          "linear_num_value_heads|linear-num-value-heads", NULL,
                          "%" PRId64 " value heads cannot share %" PRId64 " key heads evenly", g->delta.heads,
                          g->delta.groups))
        return;
    bool *linear = MAQ_ARENA_NEW(r->arena, bool, (size_t)g->layers);
    if (!MAQ_READER_CHECK(r, linear, MAQ_CODE_MODEL_NO_MEMORY, NULL, NULL, "no memory for the layers"))
        return;
    if (list)
        read_every(linear, g->linear_freq, g->layers, r, freq);
    else if (!maq_node_i64(&every, g->linear_freq, r->diag) || every < 1)
        maq__reader_error(r, MAQ_CODE_MODEL_LAYER_LIST, freq, NULL, "linear_attention_freq must be 1 or more");
    for (int64_t i = 0; i < g->layers; i++)
        if (list ? linear[i] : every > 0 && (i + 1) % every != 0)
            arch->layers[i].mixer = MAQ_MIXER_DELTA;
}

static void fill_layers(struct maq_architecture *arch, const struct megatron *g, struct maq_model_reader *r)
{
    size_t n = (size_t)g->layers;
    int64_t window = read_window(g, r), every = 0;
    bool *moe = MAQ_ARENA_NEW(r->arena, bool, n);
    arch->layers = MAQ_ARENA_NEW(r->arena, struct maq_arch_layer, n);
    if (!MAQ_READER_CHECK(r, moe && arch->layers, MAQ_CODE_MODEL_NO_MEMORY, NULL, NULL, "no memory for %zu layers", n))
        return;
    for (size_t i = 0; i < n; i++)
        moe[i] = g->experts > 0;
    if (g->moe_freq && g->experts > 0)
        read_every(moe, g->moe_freq, g->layers, r, "moe_layer_freq|moe-layer-freq");
    if (g->window_skip && (!maq_node_i64(&every, g->window_skip, r->diag) || every < 1))
        maq__reader_error(r, MAQ_CODE_MODEL_LAYER_LIST, "window_attn_skip_freq|window-attn-skip-freq", NULL,
                          "window_attn_skip_freq must be 1 or more");
    for (size_t i = 0; i < n; i++)
        arch->layers[i] = (struct maq_arch_layer){
            .mixer = g->mla ? MAQ_MIXER_MLA : MAQ_MIXER_ATTENTION,
            .ffn = moe[i] ? MAQ_FFN_MOE : MAQ_FFN_DENSE,
            .ffn_width = g->ffn,
            .rope = true,
            .window = every > 0 && ((int64_t)i + 1) % every == 0 ? 0 : window,
        };
    fill_linear(arch, g, r);
    if (g->pattern.len > 0)
        maq__hybrid_pattern(arch, r, g->pattern, g->ffn,
                            "hybrid_override_pattern|hybrid-override-pattern|hybrid_layer_pattern");
    arch->mtp_layer = arch->layers[n - 1];
    if (g->mtp > 0 && g->mtp_pattern.len > 0)
        maq__hybrid_mtp(arch, r, g->mtp_pattern, g->ffn, "mtp_hybrid_override_pattern|mtp-hybrid-override-pattern");
}

static void read_megatron(struct maq_architecture *arch, struct maq_model_reader *r, const struct maq_family *family)
{
    struct megatron g = {
        .rotary_percent = 1.0,
        .hidden_dropout = 0.1,
        .attention_dropout = 0.1,
        .bias = true,
        .topk = 2,
        .kv_lora = 32,
        .qk_dim = 128,
        .qk_rope_dim = 64,
        .v_dim = 128,
        .mamba = {.head_dim = 64, .groups = 8, .state = 128, .conv_kernel = 4, .chunk = 256, .conv_bias = true},
        .delta = {.heads = 32, .head_dim = 128, .groups = 16, .state = 128, .conv_kernel = 4, .chunk = 64},
    };
    for (size_t i = 0; family->tables[i]; i++)
        maq__reader_fields(r, &g, family->tables[i]);
    if (r->bad || !check(&g, r))
        return;
    fill_defaults(&g);
    fill(arch, &g);
    fill_layers(arch, &g, r);
}

const struct maq_family maq__megatron_family = {
    .type = "megatron", .architectures = "", .tables = tables, .read = read_megatron};
