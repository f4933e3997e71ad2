/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unlike_layers.c - Hugging Face families whose layers differ in their heads, share keys and values, or get an embedding of their own: MiMo-V2,
 * Laguna, Gemma 3n, Gemma 4.
 */
#include <inttypes.h>

#include "base/check.h"
#include "base/str.h"
#include "model/codes.h"
#include "model/hf/family_rows.h"

/* MiMo-V2-Flash: values narrower than keys; layers with a window have twice the key and value heads, and sinks. */
static const struct maq_field mimo_v2_keys[] = {I64(v_dim, "v_head_dim", COUNT, .doc = "width of a value head"),
                                                I64(window, "sliding_window_size", .min = 0, .max = 1e12,
                                                    .doc = "keys that a query of a sliding layer sees besides its own"),
                                                MAQ_FIELD_END};

static void adapt_mimo_v2(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    arch->attention.v_dim = hf->v_dim;
    struct maq_arch_attention sliding = arch->attention;
    sliding.kv_heads *= 2;
    sliding.sinks = true;
    MAQ_READER_CHECK(r, sliding.heads % sliding.kv_heads == 0, MAQ_CODE_MODEL_KV_HEADS, "num_key_value_heads", NULL,
                     "%" PRId64 " query heads cannot share twice %" PRId64 " key and value heads evenly", hf->heads,
                     hf->kv_heads);
    for (int64_t i = 0; i < arch->num_layers; i++)
        if (arch->layers[i].window > 0)
            maq__hf_own_attention(arch, i, &sliding, r);
}

/* Laguna: query heads by layer, a gate by head or by feature. */
static const struct maq_field laguna_keys[] = {
    STR(gating, "gating", .doc = "true: a gate for each head; or per-element"),
    NODE(heads_list, "num_attention_heads_per_layer", .doc = "query heads of each layer"),
    I64(shared_ffn, "shared_expert_intermediate_size", OPTIONAL, .doc = "width of the shared expert"), MAQ_FIELD_END};

static void settle_laguna(struct maq_hf *hf, struct maq_model_reader *r)
{
    bool by_head = hf->gating.len == 0 || maq_str_is(hf->gating, "true") || maq_str_is(hf->gating, "True") ||
                   maq_str_is(hf->gating, "per-head");
    (void)r;
    hf->gate = by_head ? MAQ_GATE_HEAD : MAQ_GATE_FULL;
}

static void adapt_laguna(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    uint32_t n = 0;
    const int64_t *heads = hf->heads_list ? maq__reader_i64_list(r, hf->heads_list, &n) : NULL;
    if (!heads || !MAQ_READER_CHECK(
                      r, (int64_t)n == arch->num_layers, MAQ_CODE_MODEL_LAYER_LIST, "num_attention_heads_per_layer",
                      NULL, "num_attention_heads_per_layer has %u entries for %" PRId64 " layers", n, arch->num_layers))
        return;
    for (uint32_t i = 0; i < n; i++) {
        struct maq_arch_attention own = arch->attention;
        own.heads = heads[i];
        if (!MAQ_READER_CHECK(r, heads[i] >= 1 && heads[i] <= 65536 && heads[i] % own.kv_heads == 0,
                              MAQ_CODE_MODEL_KV_HEADS, "num_attention_heads_per_layer", NULL,
                              "%" PRId64 " query heads cannot share %" PRId64 " key and value heads evenly", heads[i],
                              own.kv_heads))
            return;
        maq__hf_own_attention(arch, i, &own, r);
    }
}

/* ---- Gemma 3n and 4 ---- */

/* One table has a narrow vector of a token for each layer, beside a projection of its embedding; each layer gates and adds its own. */
static const struct maq_field layer_input_keys[] = {
    I64(ple_vocab, "vocab_size_per_layer_input", .min = 0, .max = 134217728,
        .doc = "rows of the table of layers' inputs"),
    I64(ple_dim, "hidden_size_per_layer_input", OPTIONAL, .doc = "width of a layer's own input; 0: none"),
    I64(kv_shared, "num_kv_shared_layers", LAYERS, .doc = "layers at the end that use keys and values of earlier ones"),
    MAQ_FIELD_END};

static void add_layer_inputs(struct maq_architecture *arch, const struct maq_hf *hf)
{
    int64_t each = hf->ple_dim, all = each * hf->layers;
    if (each == 0)
        return;
    maq__hf_extra(arch, (struct maq_arch_extra){.name = "embed_tokens_per_layer",
                                                .place = MAQ_PLACE_EMBEDDING,
                                                .kind = MAQ_MODULE_EMBEDDING,
                                                .shard = MAQ_SHARD_SEQUENCE,
                                                .flags = MAQ_MODULE_NO_GRAD_INPUT,
                                                .in = hf->ple_vocab,
                                                .out = all,
                                                .params = hf->ple_vocab * all});
    maq__hf_extra_linear(arch, "per_layer_model_projection", MAQ_PLACE_EMBEDDING, hf->hidden, all, false, 0);
    maq__hf_extra(arch, (struct maq_arch_extra){.name = "per_layer_projection_norm",
                                                .place = MAQ_PLACE_EMBEDDING,
                                                .kind = MAQ_MODULE_NORM,
                                                .shard = MAQ_SHARD_SEQUENCE,
                                                .in = all,
                                                .out = all,
                                                .params = each});
    maq__hf_extra_linear(arch, "per_layer_input_gate", MAQ_PLACE_LAYER_OUT, hf->hidden, each, false, 0);
    maq__hf_extra(arch, (struct maq_arch_extra){.name = "per_layer_gate",
                                                .place = MAQ_PLACE_LAYER_OUT,
                                                .kind = MAQ_MODULE_GATE,
                                                .shard = MAQ_SHARD_SEQUENCE,
                                                .in = 2 * each,
                                                .out = each});
    maq__hf_extra_linear(arch, "per_layer_projection", MAQ_PLACE_LAYER_OUT, each, hf->hidden, false, 0);
    maq__hf_extra_norm(arch, "post_per_layer_input_norm", MAQ_PLACE_LAYER_OUT, hf->hidden, MAQ_SHARD_SEQUENCE, 0);
}

/* The last layers use keys and values of earlier ones. */
static void share_keys(struct maq_architecture *arch, const struct maq_hf *hf, struct maq_model_reader *r)
{
    MAQ_READER_CHECK(r, hf->kv_shared < arch->num_layers, MAQ_CODE_MODEL_LAYER_LIST, "num_kv_shared_layers", NULL,
                     "%" PRId64 " of %" PRId64 " layers cannot use keys of earlier ones", hf->kv_shared,
                     arch->num_layers);
    for (int64_t i = arch->num_layers - hf->kv_shared; i < arch->num_layers; i++) {
        struct maq_arch_attention own = arch->layers[i].attention ? *arch->layers[i].attention : arch->attention;
        own.shares_kv = true;
        if (i >= 0)
            maq__hf_own_attention(arch, i, &own, r);
    }
}

static const struct maq_field gemma4_keys[] = {
    BOOL(k_eq_v, "attention_k_eq_v", .doc = "layers that see everything take their keys for values"),
    BOOL(wide_shared, "use_double_wide_mlp", .doc = "layers that share keys have MLPs of twice the width"),
    BOOL(moe_block, "enable_moe_block", .doc = "experts beside the MLP"),
    I64(swa.head_dim, "global_head_dim", COUNT, .doc = "width of a head of layers that see everything"),
    I64(swa.kv_heads, "num_global_key_value_heads", COUNT, .doc = "their key and value heads, with attention_k_eq_v"),
    I64(experts, "num_experts", SOME, .doc = "experts"),
    I64(topk, "top_k_experts", COUNT, .doc = "experts a token goes to"),
    I64(moe_ffn, "moe_intermediate_size", WIDTH, .doc = "width of one"),
    STR(position_type, "use_bidirectional_attention", .doc = "accepted: vision tokens see each other"),
    MAQ_FIELD_END};

static void settle_gemma4(struct maq_hf *hf, struct maq_model_reader *r)
{
    MAQ_READER_CHECK(r, !hf->moe_block, MAQ_CODE_MODEL_VALUE, "enable_moe_block", NULL,
                     "experts beside an MLP in one layer are not modelled");
    hf->experts = 0;
    hf->full_last = 1;
}

static void adapt_gemma4(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    arch->layers[arch->num_layers - 1].window = 0;
    for (int64_t i = 0; i < arch->num_layers; i++) {
        struct maq_arch_layer *l = &arch->layers[i];
        struct maq_arch_attention own = l->attention ? *l->attention : arch->attention;
        bool full = l->window == 0;
        if (full && !hf->per_layer) {
            own.rope_dim = hf->swa.head_dim / 4;
            own.head_dim = own.v_dim = hf->swa.head_dim;
            if (hf->k_eq_v && hf->swa.kv_heads > 0)
                own.kv_heads = hf->swa.kv_heads;
        }
        own.keys_are_values = full && hf->k_eq_v;
        maq__hf_own_attention(arch, i, &own, r);
        if (hf->wide_shared && i >= arch->num_layers - hf->kv_shared)
            l->ffn_width *= 2;
    }
    share_keys(arch, hf, r);
    add_layer_inputs(arch, hf);
}

/* The width of the MLP is a number, or one for each layer. */
static const struct maq_field gemma3n_keys[] = {
    I64(hidden, "hidden_size", WIDTH, .doc = "width of the residual stream"),
    I64(layers, "num_hidden_layers", .min = 1, .max = MAQ_ARCH_LAYERS_MAX, .doc = "transformer layers"),
    I64(heads, "num_attention_heads", COUNT, .doc = "query heads"),
    I64(vocab, "vocab_size", .min = 1, .max = 134217728, .doc = "rows of the token table"),
    I64(max_pos, "max_position_embeddings", .min = 1, .max = 1e12, .doc = "positions the model was made for"),
    BOOL(tie, "tie_word_embeddings", .doc = "the head uses the token table"),
    NODE(rope, "rope_parameters", .doc = "of the rotation: which share of a head rotates"),
    NODE(ffn_list, "intermediate_size", .doc = "width of the MLP, of all layers or of each"),
    STR(position_type, "hidden_activation", .doc = "accepted: the nonlinearity"),
    I64(streams, "altup_num_inputs", COUNT, .doc = "residual streams"),
    I64(gate_rank, "laurel_rank", COUNT, .doc = "rank of the linear beside attention"),
    MAQ_FIELD_END};

static void settle_gemma3n(struct maq_hf *hf, struct maq_model_reader *r)
{
    struct maq_node *node = hf->ffn_list;
    hf->ffn = 16384;
    if (node && node->kind != MAQ_NODE_SEQ && (!maq_node_i64(&hf->ffn, node, r->diag) || hf->ffn < 1))
        r->bad = true;
}

/* AltUp: what a layer reads is predicted from all streams, and what it adds corrects all; LAuReL: a low-rank linear beside attention. */
static void adapt_gemma3n(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    int64_t n = hf->streams, h = hf->hidden;
    uint32_t count = 0;
    const int64_t *widths =
        hf->ffn_list && hf->ffn_list->kind == MAQ_NODE_SEQ ? maq__reader_i64_list(r, hf->ffn_list, &count) : NULL;
    MAQ_READER_CHECK(r, !widths || (int64_t)count == arch->num_layers, MAQ_CODE_MODEL_LAYER_LIST, "intermediate_size",
                     NULL, "intermediate_size has %u entries for %" PRId64 " layers", count, arch->num_layers);
    for (uint32_t i = 0; widths && !r->bad && i < count; i++)
        if (MAQ_READER_CHECK(r, widths[i] >= 1 && widths[i] <= 16777216, MAQ_CODE_MODEL_LAYER_LIST, "intermediate_size",
                             NULL, "a width of %" PRId64, widths[i]))
            arch->layers[i].ffn_width = widths[i];
    maq__hf_extra_norm(arch, "altup.router_norm", MAQ_PLACE_MIXER_IN, h, MAQ_SHARD_SEQUENCE, 0);
    maq__hf_extra_linear(arch, "altup.modality_router", MAQ_PLACE_MIXER_IN, h, n, false, 0);
    maq__hf_extra_numbers(arch, "altup.predict", MAQ_PLACE_MIXER_IN, n * h, n * n * n, 0);
    maq__hf_extra_linear(arch, "laurel.linear_left", MAQ_PLACE_MIXER_OUT, h, hf->gate_rank, false, 0);
    maq__hf_extra_linear(arch, "laurel.linear_right", MAQ_PLACE_MIXER_OUT, hf->gate_rank, h, false, 0);
    maq__hf_extra_norm(arch, "laurel.post_laurel_norm", MAQ_PLACE_MIXER_OUT, h, MAQ_SHARD_SEQUENCE, 0);
    maq__hf_extra_numbers(arch, "altup.correct", MAQ_PLACE_LAYER_OUT, n * h, n * n, 0);
    maq__hf_extra_numbers(arch, "altup.correct_output_scale", MAQ_PLACE_LAYER_OUT, h, h, 0);
    for (int64_t i = 1; i < n && i <= 8; i++) {
        maq__hf_extra_linear(arch, "altup_projection", MAQ_PLACE_EMBEDDING, h, h, false, 0);
        maq__hf_extra_linear(arch, "altup_unembed_projection", MAQ_PLACE_FINAL, h, h, false, 0);
    }
    MAQ_READER_CHECK(r, n <= 4, MAQ_CODE_MODEL_VALUE, "altup_num_inputs", NULL, "more than 4 streams are not modelled");
    share_keys(arch, hf, r);
    add_layer_inputs(arch, hf);
}

#define GEMMA "norms: sandwich, norms_of_queries_and_keys: head, tie_word_embeddings: true, head_dim: 256, "

const struct maq_family maq__hf_unlike_layers_families[] = {
    {.type = "mimo_v2_flash|mimo_v2",
     .read = maq__hf_read,
     .architectures = "MiMoV2FlashForCausalLM",
     .tables = TABLES(EXPERT_KEYS, mimo_v2_keys),
     .facts = "no_output_bias: true, router_bias: true, windows: pattern, full_every: 6, full_first: 1, head_dim: 192, "
              "v_head_dim: 128, "
              "num_key_value_heads: 4, sliding_window: 129, n_routed_experts: 256, num_experts_per_tok: 8, "
              "moe_intermediate_size: 2048, dense_first: 1, partial_rotary_factor: 0.334",
     .adapt = adapt_mimo_v2},
    {.type = "laguna",
     .read = maq__hf_read,
     .architectures = "LagunaForCausalLM",
     .tables = TABLES(EXPERT_KEYS, laguna_keys),
     .facts = "norms_of_queries_and_keys: head, head_dim: 128, router_bias: true, num_key_value_heads: 8, "
              "num_experts: 256, num_experts_per_tok: 8, moe_intermediate_size: 512, "
              "shared_expert_intermediate_size: 512, sliding_window: 512, dense_first: 1, partial_rotary_factor: 0.5",
     .settle = settle_laguna,
     .adapt = adapt_laguna},
    {.type = "gemma4_unified_text|gemma4_unified",
     .read = maq__hf_read,
     .architectures = "Gemma4UnifiedForCausalLM|Gemma4UnifiedForConditionalGeneration",
     .tables = TABLES(LLAMA_KEYS, maq__hf_per_layer, layer_input_keys, gemma4_keys),
     .facts =
         GEMMA "windows: pattern, full_every: 6, num_key_value_heads: 4, sliding_window: 1024, global_head_dim: 512",
     .settle = settle_gemma4,
     .adapt = adapt_gemma4},
    {.type = "gemma4_text|gemma4",
     .read = maq__hf_read,
     .architectures = "Gemma4ForCausalLM|Gemma4ForConditionalGeneration",
     .tables = TABLES(LLAMA_KEYS, maq__hf_per_layer, layer_input_keys, gemma4_keys),
     .facts = GEMMA "windows: pattern, full_every: 6, num_key_value_heads: 4, sliding_window: 512, "
                    "vocab_size_per_layer_input: 262144, hidden_size_per_layer_input: 256, global_head_dim: 512",
     .settle = settle_gemma4,
     .adapt = adapt_gemma4},
    {.type = "gemma3n_text|gemma3n",
     .read = maq__hf_read,
     .architectures = "Gemma3nForCausalLM|Gemma3nForConditionalGeneration",
     .tables = (const struct maq_field *const[]){gemma3n_keys, maq__hf_attention, LLAMA_KEYS, layer_input_keys, NULL},
     .facts = GEMMA "windows: pattern, full_every: 5, num_key_value_heads: 2, sliding_window: 512, "
                    "vocab_size_per_layer_input: 262144, hidden_size_per_layer_input: 256, num_kv_shared_layers: 15, "
                    "altup_num_inputs: 4, laurel_rank: 64",
     .settle = settle_gemma3n,
     .adapt = adapt_gemma3n},
    {.type = NULL},
};
