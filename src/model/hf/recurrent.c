/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recurrent.c - Hugging Face families with the first Mamba, Kimi's delta attention or lightning attention, alone or between layers with
 * attention; and Zamba, whose few blocks of attention are run many times. Those with Mamba-2 and the gated delta rule are in hybrid.c.
 */
#include <inttypes.h>

#include "base/check.h"
#include "base/str.h"
#include "model/codes.h"
#include "model/hf/family_rows.h"

/* ---- Mamba-1 ---- */

/* The rank of the step: a number, or "auto" for hidden / 16 rounded up. */
static void settle_rank(struct maq_hf *hf, struct maq_model_reader *r)
{
    int64_t rank = (hf->hidden + 15) / 16;
    bool given = hf->dt_rank.len > 0 && !maq_str_is(hf->dt_rank, "auto");
    MAQ_READER_CHECK(r, !given || (maq_str_to_i64(&rank, hf->dt_rank) && rank >= 1 && rank <= 16777216),
                     MAQ_CODE_MODEL_SCAN, "time_step_rank|mamba_dt_rank", NULL,
                     "the rank of the step is a number from 1, or auto");
    hf->mamba1.dt_rank = rank;
    hf->mamba1.inner = (int64_t)(hf->expansion * (double)hf->hidden);
}

static const struct maq_field mamba_keys[] = {
    I64(mamba1.state, "state_size", COUNT, .doc = "state of a channel"),
    I64(mamba1.conv_kernel, "conv_kernel", .min = 1, .max = 1024, .doc = "taps of the convolution"),
    REAL(expansion, "expand", .min = 0.001, .max = 1024, .doc = "channels over hidden"),
    STR(dt_rank, "time_step_rank", .doc = "rank of the step; auto: hidden / 16"),
    BOOL(mamba1.conv_bias, "use_conv_bias", .doc = "bias in the convolution"),
    BOOL(mamba1.proj_bias, "use_bias", .doc = "biases in the projections"),
    I64(ignored_width, "intermediate_size", WIDTH, .doc = "accepted: expand x hidden"),
    MAQ_FIELD_END};

static const struct maq_field mamba_core[] = {
    I64(hidden, "hidden_size", .aliases = "d_model", WIDTH, .doc = "width of the residual stream"),
    I64(layers, "num_hidden_layers", .aliases = "n_layer", .min = 1, .max = MAQ_ARCH_LAYERS_MAX, .doc = "layers"),
    I64(vocab, "vocab_size", .min = 1, .max = 134217728, .doc = "rows of the token table"),
    BOOL(tie, "tie_word_embeddings", .doc = "the head uses the token table"),
    STR(position_type, "hidden_act", .doc = "accepted: the nonlinearity"),
    MAQ_FIELD_END};

static void preset_mamba(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->heads = 1; /* of attention, which it does not have */
    hf->ffn = 1;
}

static void adapt_mamba(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)hf;
    (void)r;
    for (int64_t i = 0; i < arch->num_layers; i++)
        arch->layers[i] = (struct maq_arch_layer){.mixer = MAQ_MIXER_MAMBA1, .ffn = MAQ_FFN_NONE};
}

/* Jamba: attention in one layer of a period, experts in one of another; no rotation. */
static const struct maq_field jamba_keys[] = {
    I64(mamba1.state, "mamba_d_state", COUNT, .doc = "state of a channel"),
    I64(mamba1.conv_kernel, "mamba_d_conv", .min = 1, .max = 1024, .doc = "taps of the convolution"),
    REAL(expansion, "mamba_expand", .min = 0.001, .max = 1024, .doc = "channels over hidden"),
    STR(dt_rank, "mamba_dt_rank", .doc = "rank of the step; auto: hidden / 16"),
    BOOL(mamba1.conv_bias, "mamba_conv_bias", .doc = "bias in the convolution"),
    BOOL(mamba1.proj_bias, "mamba_proj_bias", .doc = "biases in the projections"),
    I64(full_interval, "attn_layer_period", .min = 1, .max = MAQ_ARCH_LAYERS_MAX,
        .doc = "one of so many layers attends"),
    I64(full_at, "attn_layer_offset", LAYERS, .doc = "which one, from 0"),
    MAQ_FIELD_END};

static const struct maq_field jamba_expert_keys[] = {
    I64(layer_freq, "expert_layer_period", .min = 1, .max = MAQ_ARCH_LAYERS_MAX,
        .doc = "one of so many layers has experts"),
    I64(first_dense, "expert_layer_offset", LAYERS, .doc = "which one, from 0"), MAQ_FIELD_END};

static void settle_jamba(struct maq_hf *hf, struct maq_model_reader *r)
{
    settle_rank(hf, r);
    hf->mamba1.norms = true;
    MAQ_READER_CHECK(r, hf->full_at < hf->full_interval && hf->first_dense < hf->layer_freq, MAQ_CODE_MODEL_PATTERN,
                     "attn_layer_offset|expert_layer_offset", NULL, "an offset is smaller than its period");
}

static void adapt_jamba(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)r;
    for (int64_t i = 0; i < arch->num_layers; i++)
        arch->layers[i].ffn = hf->experts > 1 && i % hf->layer_freq == hf->first_dense ? MAQ_FFN_MOE : MAQ_FFN_DENSE;
}

/* ---- Zamba: a block of attention and MLP in front of some layers, whose weights are shared by all of them or by every n-th ---- */

static const struct maq_field zamba_keys[] = {
    I64(mamba1.heads, "n_mamba_heads", COUNT, .doc = "heads of the scan with projections of their own"),
    I64(attention_width, "attention_hidden_size", WIDTH, .doc = "width that attention reads; 2 x hidden"),
    I64(head_dim, "attention_head_dim", COUNT, .doc = "width of a head; 2 x hidden / heads"),
    NODE(blocks, "layers_block_type", .aliases = "layer_types",
         .doc = "linear_attention (mamba) or hybrid for each layer"),
    MAQ_FIELD_END};

static const struct maq_field zamba2_keys[] = {
    I64(mamba.heads, "n_mamba_heads", COUNT, .doc = "heads of the scan"),
    I64(mamba.groups, "mamba_ngroups", COUNT, .doc = "groups that share B and C"),
    I64(mamba.state, "mamba_d_state", COUNT, .doc = "state size"),
    I64(mamba.conv_kernel, "mamba_d_conv", .min = 1, .max = 1024, .doc = "taps of the convolution"),
    I64(mamba.chunk, "chunk_size", COUNT, .doc = "tokens of a scan block"),
    I64(mamba.head_dim, "mamba_headdim", COUNT, .doc = "width of a head of the scan"),
    REAL(expansion, "mamba_expand", .min = 0.001, .max = 1024, .doc = "width of the scan over hidden"),
    BOOL(mamba.conv_bias, "use_conv_bias", .doc = "bias in the convolution"),
    BOOL(mamba.proj_bias, "add_bias_linear", .doc = "biases in the projections of the scan"),
    I64(attention_width, "attention_hidden_size", WIDTH, .doc = "accepted: 2 x hidden"),
    I64(head_dim, "attention_head_dim", COUNT, .doc = "accepted: 2 x hidden / heads"),
    I64(mem_blocks, "num_mem_blocks", COUNT, .doc = "blocks of attention that take turns"),
    I64(gate_rank, "adapter_rank", COUNT, .doc = "rank of the adapters that each use of a block has"),
    BOOL(parallel_attention, "use_shared_attention_adapter", .doc = "adapters on queries, keys and values as well"),
    BOOL(alibi, "use_mem_rope", .doc = "queries and keys rotate"),
    NODE(blocks, "layers_block_type", .aliases = "layer_types",
         .doc = "linear_attention (mamba) or hybrid for each layer"),
    I64(ignored_width, "num_query_groups", COUNT, .doc = "accepted: heads"),
    NODE(attention_layers, "hybrid_layer_ids", .doc = "accepted: said by layers_block_type"),
    MAQ_FIELD_END};

static void settle_zamba(struct maq_hf *hf, struct maq_model_reader *r)
{
    settle_rank(hf, r);
    hf->attention_width = hf->attention_width > 0 ? hf->attention_width : 2 * hf->hidden;
    if (hf->head_dim == 0)
        hf->head_dim = 2 * hf->hidden / hf->heads;
    MAQ_READER_CHECK(r, hf->mamba1.heads > 0 && hf->mamba1.inner % hf->mamba1.heads == 0, MAQ_CODE_MODEL_SCAN,
                     "n_mamba_heads", NULL, "%" PRId64 " channels cannot share %" PRId64 " heads evenly",
                     hf->mamba1.inner, hf->mamba1.heads);
    hf->expansion = 0;
}

static void settle_zamba2(struct maq_hf *hf, struct maq_model_reader *r)
{
    struct maq_arch_ssm *m = &hf->mamba;
    hf->ffn = hf->ffn > 0 ? hf->ffn : 4 * hf->hidden;
    hf->attention_width = 2 * hf->hidden;
    hf->head_dim = 2 * hf->hidden / hf->heads;
    hf->no_rope = !hf->alibi;
    m->conv_bias = true; /* whatever use_conv_bias says */
    if (MAQ_READER_CHECK(r, m->heads > 0 && m->groups > 0 && m->heads % m->groups == 0, MAQ_CODE_MODEL_SCAN,
                         "n_mamba_heads", NULL, "%" PRId64 " heads of the scan cannot share %" PRId64 " groups evenly",
                         m->heads, m->groups))
        m->head_dim = (int64_t)(hf->expansion * (double)hf->hidden) / m->heads;
}

/* Whether layer i has a block of attention in front of it. */
static bool has_block(const struct maq_hf *hf, struct maq_node *word, int64_t i, struct maq_model_reader *r)
{
    if (!word)
        return i == 2 || (i > 2 && (i - 3) % 6 == 4);
    bool hybrid = maq_str_is(word->text, "hybrid");
    word->used = true;
    MAQ_READER_CHECK(r, hybrid || maq_str_is(word->text, "linear_attention") || maq_str_is(word->text, "mamba"),
                     MAQ_CODE_MODEL_LAYER_LIST, "layers_block_type|layer_types", "linear_attention (mamba) or hybrid",
                     "layer type '%.*s' is not known", (int)word->text.len, word->text.ptr);
    (void)hf;
    return hybrid;
}

/*
 * Each block of attention is a layer of its own in front of the layer that it feeds. Its linear, and Zamba 2's adapters, belong to the
 * place; its other weights to the first place that has them, unless nothing is tied: then transformers shares no block either.
 */
static void adapt_zamba(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    const enum maq_mixer scan = hf->mamba1.heads > 0 ? MAQ_MIXER_MAMBA1 : MAQ_MIXER_MAMBA2;
    struct maq_arch_layer *all = MAQ_ARENA_NEW(r->arena, struct maq_arch_layer, 2 * (size_t)arch->num_layers);
    struct maq_node *list = hf->blocks, *word = list && list->kind == MAQ_NODE_SEQ ? list->first : NULL;
    int64_t n = 0, used = 0, blocks = hf->mem_blocks > 0 ? hf->mem_blocks : 1;
    if (!MAQ_READER_CHECK(r, all != NULL, MAQ_CODE_MODEL_NO_MEMORY, NULL, NULL, "no memory for layers") ||
        !MAQ_READER_CHECK(r, !list || (int64_t)list->count == arch->num_layers, MAQ_CODE_MODEL_LAYER_LIST,
                          "layers_block_type|layer_types", NULL, "layers_block_type does not fit %" PRId64 " layers",
                          arch->num_layers) ||
        !MAQ_READER_CHECK(r, list || scan == MAQ_MIXER_MAMBA1, MAQ_CODE_MODEL_MISSING, NULL, NULL,
                          "the model has no layers_block_type") ||
        !MAQ_READER_CHECK(r, 2 * arch->num_layers <= MAQ_ARCH_LAYERS_MAX, MAQ_CODE_MODEL_LAYER_LIST, NULL, NULL,
                          "too many layers"))
        return;
    for (int64_t i = 0; i < arch->num_layers; i++) {
        if (has_block(hf, word, i, r)) {
            all[n++] = (struct maq_arch_layer){.mixer = MAQ_MIXER_ATTENTION,
                                               .ffn = MAQ_FFN_DENSE,
                                               .ffn_width = hf->ffn,
                                               .rope = !hf->no_rope,
                                               .marks = 1,
                                               .reuses = used++ >= blocks && hf->tie};
        }
        all[n++] = (struct maq_arch_layer){.mixer = scan, .ffn = MAQ_FFN_NONE};
        word = word ? word->next : NULL;
    }
    MAQ_READER_CHECK(r, scan == MAQ_MIXER_MAMBA1 || hf->tie || used <= blocks, MAQ_CODE_MODEL_VALUE,
                     "tie_word_embeddings", NULL,
                     "without tied weights every block of zamba2 has the adapters of all: that is not modelled");
    arch->layers = all;
    arch->num_layers = n;
    arch->attention.input = hf->attention_width;
    maq__hf_extra_linear(arch, "linear", MAQ_PLACE_LAYER_OUT, hf->hidden, hf->hidden, false, 1);
}

static void adapt_zamba2(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    adapt_zamba(arch, hf, r);
    maq__hf_extra_linear(arch, "gate_up_adapter_a", MAQ_PLACE_FFN_OUT, hf->hidden, hf->gate_rank, false, 1);
    maq__hf_extra_linear(arch, "gate_up_adapter_b", MAQ_PLACE_FFN_OUT, hf->gate_rank, 2 * hf->ffn, false, 1);
    for (int i = 0; hf->parallel_attention && i < 3; i++) {
        maq__hf_extra_linear(arch, "qkv_adapter_a", MAQ_PLACE_QUERIES, hf->attention_width, hf->gate_rank, false, 1);
        maq__hf_extra_linear(arch, "qkv_adapter_b", MAQ_PLACE_QUERIES, hf->gate_rank, hf->attention_width, false, 1);
    }
}

/* ---- Kimi's delta attention between layers with latent attention ---- */

static const struct maq_field kimi_keys[] = {
    I64(shared_count, "num_shared_experts", SOME, .doc = "shared experts of width moe_intermediate_size"),
    I64(groups_of_experts, "num_expert_group", .min = 0, .max = 1024, .doc = "groups of experts"),
    I64(max_pos, "model_max_length", .min = 1, .max = 1e12, .doc = "positions the model was made for"),
    I64(delta.head_dim, "linear_head_dim", COUNT, .doc = "width of a head of the delta rule"),
    I64(delta.heads, "linear_num_heads", COUNT, .doc = "its heads"),
    I64(delta.conv_kernel, "linear_conv_kernel_dim", .min = 1, .max = 1024, .doc = "taps of its convolution"),
    NODE(linear_config, "linear_attn_config", .doc = "the same, and full_attn_layers and kda_layers counted from 1"),
    NODE(layer_types, "layer_types", .doc = "full_attention or linear_attention for each layer"),
    MAQ_FIELD_END};

static int64_t number_in(struct maq_node *map, const char *key, int64_t otherwise, struct maq_model_reader *r)
{
    struct maq_node *node = map && map->kind == MAQ_NODE_MAP ? maq_node_get(map, key) : NULL;
    int64_t value = otherwise;
    if (node && (!maq_node_i64(&value, node, r->diag) || value < 1 || value > 65536))
        r->bad = true;
    return value;
}

static void settle_kimi(struct maq_hf *hf, struct maq_model_reader *r)
{
    struct maq_arch_ssm *d = &hf->delta;
    maq__hf_settle_latent(hf, r);
    d->head_dim = number_in(hf->linear_config, "head_dim", d->head_dim, r);
    d->heads = number_in(hf->linear_config, "num_heads", d->heads, r);
    d->conv_kernel = number_in(hf->linear_config, "short_conv_kernel_size", d->conv_kernel, r);
    d->groups = d->heads;
    d->state = d->gate_rank = d->head_dim;
    d->chunk = 64;
}

/* full_attn_layers of linear_attn_config, counted from 1. */
static void adapt_kimi(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    struct maq_node *map = hf->linear_config && hf->linear_config->kind == MAQ_NODE_MAP ? hf->linear_config : NULL;
    struct maq_node *list = map ? maq_node_get(map, "full_attn_layers") : NULL;
    uint32_t n = 0;
    if (map)
        maq_node_use_all(map);
    if (!list || hf->layer_types)
        return;
    const int64_t *index = maq__reader_i64_list(r, list, &n);
    for (int64_t i = 0; i < arch->num_layers; i++)
        arch->layers[i].mixer = MAQ_MIXER_KDA;
    for (uint32_t k = 0; index && k < n; k++)
        if (MAQ_READER_CHECK(r, index[k] >= 1 && index[k] <= arch->num_layers, MAQ_CODE_MODEL_LAYER_LIST,
                             "linear_attn_config", "layers are counted from 1",
                             "full_attn_layers names layer %" PRId64 ", the model has %" PRId64, index[k],
                             arch->num_layers))
            arch->layers[index[k] - 1].mixer = MAQ_MIXER_MLA;
}

/* Ling 2.5: the same with decays and gates that are projected at once, and a gate for each head of latent attention. */
static const struct maq_field bailing_keys[] = {
    I64(full_interval, "layer_group_size", .min = 1, .max = MAQ_ARCH_LAYERS_MAX, .doc = "every n-th layer attends"),
    I64(first_dense, "first_k_dense_replace", LAYERS, .doc = "dense layers at the start"),
    I64(mtp_layers, "num_nextn_predict_layers", .aliases = "num_mtp_layers", .min = 0, .max = 64,
        .doc = "multi-token-prediction depths"),
    I64(delta.conv_kernel, "short_conv_kernel_size", .min = 1, .max = 1024, .doc = "taps of the convolution"),
    MAQ_FIELD_END};

static void settle_bailing(struct maq_hf *hf, struct maq_model_reader *r)
{
    struct maq_arch_ssm *d = &hf->delta;
    maq__hf_settle_latent(hf, r);
    d->heads = hf->heads;
    if (d->head_dim == 0) /* a file that transformers has written has head_dim = qk_rope_head_dim, and this beside it */
        d->head_dim = hf->head_dim > 0 ? hf->head_dim : 128;
    d->groups = d->heads;
    d->state = d->head_dim;
    d->chunk = 64;
}

/* ---- lightning attention ---- */

static const struct maq_field minimax_keys[] = {
    I64(lightning.chunk, "block_size", COUNT, .doc = "tokens of a block of lightning attention"),
    NODE(attention_words, "attn_type_list", .doc = "1 for layers with softmax attention, 0 for others"), MAQ_FIELD_END};

static void settle_minimax(struct maq_hf *hf, struct maq_model_reader *r)
{
    int64_t width = hf->head_dim > 0 ? hf->head_dim : hf->heads > 0 ? hf->hidden / hf->heads : 0;
    (void)r;
    hf->lightning.heads = hf->lightning.groups = hf->heads;
    hf->lightning.head_dim = hf->lightning.state = width;
}

static void adapt_minimax(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    uint32_t n = 0;
    const int64_t *list =
        hf->attention_words && !hf->layer_types ? maq__reader_i64_list(r, hf->attention_words, &n) : NULL;
    if (!list || !MAQ_READER_CHECK(r, (int64_t)n == arch->num_layers, MAQ_CODE_MODEL_LAYER_LIST, "attn_type_list", NULL,
                                   "attn_type_list does not fit %" PRId64 " layers", arch->num_layers))
        return;
    for (uint32_t i = 0; i < n; i++)
        arch->layers[i].mixer = list[i] ? MAQ_MIXER_ATTENTION : MAQ_MIXER_LIGHTNING;
}

#define MAMBA "linear_attention: mamba, "
#define KIMI                                                                                                           \
    "never_tied: true, linear_attention: kda, router_bias: true, num_shared_experts: 1, kv_lora_rank: 512, "           \
    "qk_rope_head_dim: 64, "                                                                                           \
    "v_head_dim: 128, qk_nope_head_dim: 128, "

const struct maq_family maq__hf_recurrent_families[] = {
    {.type = "mamba|falcon_mamba",
     .read = maq__hf_read,
     .architectures = "MambaForCausalLM|FalconMambaForCausalLM",
     .tables = (const struct maq_field *const[]){mamba_core, mamba_keys, NULL},
     .preset = preset_mamba,
     .facts = "state_size: 16, conv_kernel: 4, expand: 2, use_conv_bias: true, tie_word_embeddings: true",
     .settle = settle_rank,
     .adapt = adapt_mamba},
    {.type = "jamba",
     .read = maq__hf_read,
     .architectures = "JambaForCausalLM",
     .tables = TABLES(maq__hf_dropout, maq__hf_moe, jamba_keys, jamba_expert_keys),
     .facts = MAMBA "no_rotation: true, num_key_value_heads: 8, num_experts: 16, num_experts_per_tok: 2, "
                    "expert_layer_period: 2, expert_layer_offset: 1, attn_layer_period: 8, attn_layer_offset: 4, "
                    "mamba_d_state: 16, mamba_d_conv: 4, mamba_expand: 2, mamba_conv_bias: true",
     .settle = settle_jamba,
     .adapt = adapt_jamba},
    {.type = "zamba",
     .read = maq__hf_read,
     .architectures = "ZambaForCausalLM",
     .tables = TABLES(maq__hf_dropout, jamba_keys, zamba_keys),
     .facts = "no_rotation: true, tie_word_embeddings: true, num_key_value_heads: 16, n_mamba_heads: 2, "
              "mamba_d_state: 16, mamba_d_conv: 4, mamba_expand: 2, mamba_conv_bias: true, attn_layer_period: 6, "
              "attn_layer_offset: 4",
     .settle = settle_zamba,
     .adapt = adapt_zamba},
    {.type = "zamba2",
     .read = maq__hf_read,
     .architectures = "Zamba2ForCausalLM",
     .tables = TABLES(maq__hf_dropout, zamba2_keys),
     .facts = "tie_word_embeddings: true, n_mamba_heads: 8, mamba_d_state: 64, mamba_d_conv: 4, mamba_expand: 2, "
              "mamba_ngroups: 1, use_conv_bias: true, chunk_size: 256, num_mem_blocks: 1, adapter_rank: 128",
     .settle = settle_zamba2,
     .adapt = adapt_zamba2},
    {.type = "kimi_linear",
     .read = maq__hf_read,
     .architectures = "KimiLinearForCausalLM",
     .tables = TABLES(LATENT_KEYS, kimi_keys),
     .facts = KIMI "no_rotation: true, attention_every: 4, full_at: 0, not_layer_0: true, num_experts: 256, "
                   "num_experts_per_token: 8, moe_intermediate_size: 1024, first_k_dense_replace: 1, "
                   "linear_head_dim: 128, linear_num_heads: 32, linear_conv_kernel_dim: 4",
     .settle = settle_kimi,
     .adapt = adapt_kimi},
    {.type = "bailing_hybrid|bailing_moe_v2_5",
     .read = maq__hf_read,
     .architectures = "BailingHybridForCausalLM|BailingMoeV2_5ForCausalLM",
     .tables =
         TABLES(maq__hf_bias, maq__hf_dropout, maq__hf_mla, maq__hf_moe, maq__hf_mlp_types, kimi_keys, bailing_keys),
     .facts = KIMI "gate: head, layer_group_size: 6, num_experts: 512, num_experts_per_token: 8, "
                   "moe_intermediate_size: 768, first_k_dense_replace: 2, num_expert_group: 8, topk_group: 4, "
                   "short_conv_kernel_size: 4",
     .settle = settle_bailing},
    {.type = "minimax|minimax_text_01",
     .read = maq__hf_read,
     .architectures = "MiniMaxForCausalLM|MiniMaxText01ForCausalLM",
     .tables = TABLES(LLAMA_KEYS, maq__hf_moe, minimax_keys),
     .facts = "linear_attention: lightning, attention_every: 2, full_at: 0, num_key_value_heads: 8, "
              "num_local_experts: 8, num_experts_per_tok: 2, block_size: 256",
     .settle = settle_minimax,
     .adapt = adapt_minimax},
    {.type = NULL},
};
