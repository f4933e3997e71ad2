/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_model_families.c - families of src/model/hf/dense.c, model/hf/moe.c and model/hf/hybrid.c: parameters of a small model of each, counted here by
 * hand from what its class has; the layers each of them has; and the types that are refused with a reason.
 *
 * H hidden, F MLP, V vocabulary, Q and K widths of all query and of all key heads; X heads, D width, G groups, S state of a scan.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/str.h"
#include "maquette/model.h"
#include "model/hf/config.h"
#include "model/load.h"
#include "model_texts.h"

enum {
    L = 4,
    H = 256,
    F = 640,
    V = 1000,
    HEADS = 8,
    HEAD = 32,
    KV = 2,
    Q = HEADS * HEAD,
    K = KV * HEAD,
    E = 4,
    FE = 96,
    X = 16,
    D = 24,
    G = 2,
    S = 64
};

#define SIZE                                                                                                           \
    "num_hidden_layers: 4, hidden_size: 256, intermediate_size: 640, num_attention_heads: 8, num_key_value_heads: 2, " \
    "vocab_size: 1000, max_position_embeddings: 2048"
#define EXPERTS SIZE ", num_experts: 4, num_experts_per_tok: 2, moe_intermediate_size: 96"
#define LATENT                                                                                                         \
    "q_lora_rank: 48, kv_lora_rank: 40, qk_nope_head_dim: 24, qk_rope_head_dim: 16, v_head_dim: 20, "                  \
    "n_routed_experts: 4, "                                                                                            \
    "n_shared_experts: 1, num_experts_per_tok: 2, moe_intermediate_size: 96, first_k_dense_replace: 1"
#define SCAN "mamba_n_heads: 16, mamba_d_head: 24, mamba_n_groups: 2, mamba_d_state: 64"

static const int64_t attention = (int64_t)H * Q + 2 * H * K + (int64_t)Q * H, gated = 3 * (int64_t)H * F,
                     plain = 2 * (int64_t)H * F, table = (int64_t)V * H, one = 3 * (int64_t)H * FE,
                     moe = E * 3 * (int64_t)H * FE + (int64_t)H * E;

struct count {
    const char *text;
    int64_t parameters;
};

static void check_counts(const struct count *c, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct maq_arena arena;
        maq_arena_init(&arena, 0);
        struct maq_model m = model_of_text(c[i].text, &arena);
        if (m.params != c[i].parameters)
            fail_msg("%s\nhas %lld parameters, by hand %lld", c[i].text, (long long)m.params,
                     (long long)c[i].parameters);
        maq_arena_fini(&arena);
    }
}

static void test_dense(void **state)
{
    const int64_t norms = 2 * H, bias_q = Q + 2 * K, latent_q = 48, latent_kv = 40, rope = 16, nope = 24;
    const struct count cases[] = {
        /* a plain MLP with two numbers of its nonlinearity, norms inside heads */
        {"{model_type: apertus, hidden_act: xielu, " SIZE "}",
         L * (attention + 2 * HEAD + plain + 2 + norms) + H + 2 * table},
        {"{model_type: apertus, hidden_act: xielu, qk_norm: false, post_norm: false, " SIZE "}",
         L * (attention + plain + 2 + norms) + H + 2 * table},
        {"{model_type: arcee, hidden_act: relu2, " SIZE "}", L * (attention + plain + norms) + H + 2 * table},
        {"{model_type: nanochat, " SIZE "}", L * (attention + plain) + 2 * table},
        {"{model_type: cwm, head_dim: 32, " SIZE "}", L * (attention + gated + norms) + H + 2 * table},
        {"{model_type: vaultgemma, head_dim: 32, " SIZE "}", L * (attention + gated + norms) + H + table},
        {"{model_type: minicpm, scale_emb: 12, " SIZE "}", L * (attention + gated + norms) + H + table},
        /* a low rank of queries with a norm, one of keys and values with a norm and a rotated part; values 256 / 8 wide */
        {"{model_type: minicpm3, q_lora_rank: 48, kv_lora_rank: 40, qk_nope_head_dim: 24, qk_rope_head_dim: 16, " SIZE
         "}",
         L * (H * latent_q + latent_q + latent_q * HEADS * (nope + rope) + H * (latent_kv + rope) + latent_kv +
              latent_kv * HEADS * (nope + H / HEADS) + (int64_t)H * H + gated + norms) +
             H + table},
        /* the width of the MLP counts gate and up */
        {"{model_type: qwen, num_hidden_layers: 4, hidden_size: 256, intermediate_size: 1280, num_attention_heads: 8, "
         "kv_channels: "
         "32, vocab_size: 1000, no_bias: true, seq_length: 2048}",
         L * (4 * (int64_t)H * H + 3 * H + gated + norms) + H + 2 * table},
        {"{model_type: stablelm, " SIZE "}", L * (attention + gated + 2 * norms) + 2 * H + 2 * table},
        {"{model_type: stablelm, qk_layernorm: true, " SIZE "}",
         L * (attention + Q + K + gated + 2 * norms) + 2 * H + 2 * table},
        {"{model_type: stablelm, use_qkv_bias: true, " SIZE "}",
         L * (attention + bias_q + gated + 2 * norms) + 2 * H + 2 * table},
        /* side by side behind one norm */
        {"{model_type: stablelm, use_parallel_residual: true, " SIZE "}",
         L * (attention + gated + norms) + 2 * H + 2 * table},
        /* biases but in queries, keys and values; learned positions; an MLP of 4 x hidden */
        {"{model_type: gpt_neo, num_layers: 4, hidden_size: 256, num_heads: 8, vocab_size: 1000, "
         "max_position_embeddings: 2048}",
         L * (4 * (int64_t)H * H + H + 8 * (int64_t)H * H + 5 * H + 2 * norms) + 2 * H + table + 2048 * (int64_t)H},
        {"{model_type: codegen, n_layer: 4, n_embd: 256, n_head: 8, vocab_size: 1000, n_positions: 2048, rotary_dim: "
         "16}",
         L * (4 * (int64_t)H * H + 8 * (int64_t)H * H + 5 * H + norms) + 2 * H + 2 * table + V},
        {"{model_type: glm, head_dim: 32, " SIZE "}", L * (attention + bias_q + gated + norms) + H + 2 * table},
        {"{model_type: nemotron, " SIZE "}", L * (attention + plain + 2 * norms) + 2 * H + 2 * table},
        {"{model_type: ministral3, head_dim: 64, " SIZE "}", L * (2 * attention + gated + norms) + H + 2 * table},
    };
    (void)state;
    check_counts(cases, MAQ_COUNT(cases));
}

static void test_experts(void **state)
{
    const int64_t norms = 2 * H, rank = 48, rank_kv = 40, rope = 16, nope = 24, v = 20,
                  latent = H * rank + rank + rank * HEADS * (nope + rope) + H * (rank_kv + rope) + rank_kv +
                           rank_kv * HEADS * (nope + v) + HEADS * v * (int64_t)H;
    const struct count cases[] = {
        /* latent attention, a dense layer at the start; correction biases in the first */
        {"{model_type: glm4_moe_lite, " LATENT ", " SIZE "}",
         L * (latent + norms) + gated + 3 * (moe + E + one) + H + 2 * table},
        {"{model_type: mistral4, " LATENT ", " SIZE "}",
         L * (latent + norms) + gated + 3 * (moe + one) + H + 2 * table},
        {"{model_type: deepseek, n_routed_experts: 4, n_shared_experts: 2, num_experts_per_tok: 2, "
         "moe_intermediate_size: 96, "
         "first_k_dense_replace: 1, " SIZE "}",
         L * (attention + norms) + gated + 3 * (moe + 2 * one) + H + 2 * table},
        {"{model_type: solar_open, n_shared_experts: 1, head_dim: 32, " EXPERTS "}",
         L * (attention + norms + moe + E + one) + H + 2 * table},
        /* the first layer is dense by default */
        {"{model_type: exaone_moe, num_shared_experts: 1, sliding_window: 128, sliding_window_pattern: LLLG, " EXPERTS
         "}",
         L * (attention + 2 * HEAD + norms) + gated + 3 * (moe + E + one) + H + 2 * table},
        /* four norms, a gate as wide as the queries */
        {"{model_type: afmoe, head_dim: 32, num_dense_layers: 2, num_shared_experts: 2, " EXPERTS "}",
         L * (attention + (int64_t)H * Q + 2 * HEAD + 2 * norms) + 2 * gated + 2 * (moe + E + 2 * one) + H + 2 * table},
        {"{model_type: hy_v3, head_dim: 32, " EXPERTS "}",
         L * (attention + 2 * HEAD + norms) + gated + 3 * (moe + E + one) + H + 2 * table},
        {"{model_type: hy_v3, head_dim: 32, mlp_layer_types: [dense, sparse, dense, sparse], " EXPERTS "}",
         L * (attention + 2 * HEAD + norms) + 2 * gated + 2 * (moe + E + one) + H + 2 * table},
        {"{model_type: hy_v3, head_dim: 32, num_experts: 4, num_experts_per_tok: 2, expert_hidden_dim: 96, " SIZE "}",
         L * (attention + 2 * HEAD + norms) + gated + 3 * (moe + E + one) + H + 2 * table},
        {"{model_type: flex_olmo, " EXPERTS "}", L * (attention + Q + K + norms + moe) + H + 2 * table},
        {"{model_type: granitemoeshared, shared_intermediate_size: 640, num_local_experts: 4, num_experts_per_tok: 2, "
         "moe_intermediate_size: 96, position_embedding_type: rope, " SIZE "}",
         L * (attention + norms + moe + gated) + H + 2 * table},
        /* one key and value head beside queries from a rank with a norm */
        {"{model_type: step3_text, num_hidden_layers: 4, hidden_size: 256, intermediate_size: 640, "
         "num_attention_heads: 8, head_dim: "
         "32, num_attention_groups: 1, share_q_dim: 48, vocab_size: 1000, moe_num_experts: 4, moe_top_k: 2, "
         "moe_intermediate_size: "
         "96, share_expert_dim: 96, moe_layers_enum: \"1,3\"}",
         L * (H * rank + rank + rank * Q + 2 * H * (int64_t)HEAD + (int64_t)Q * H + norms) + 2 * gated +
             2 * (moe + one) + H + 2 * table},
    };
    (void)state;
    check_counts(cases, MAQ_COUNT(cases));
}

static void test_hybrids(void **state)
{
    const int64_t norms = 2 * H, inner = X * D, conv = inner + 2 * G * S,
                  scan = H * (inner + conv + X) + 5 * conv + 3 * X + inner * H;
    const int64_t key = 2 * 32, value = 4 * 32,
                  delta = H * (2 * key + 2 * value + 2 * 4) + 4 * (2 * key + value) + 2 * 4 + 32 + value * H;
    const int64_t short_conv = 4 * (int64_t)H * H + 3 * H, full = attention + (int64_t)H * Q + 2 * HEAD;
    const struct count cases[] = {
        /* both in every layer; the gate without a norm */
        {"{model_type: falcon_h1, mamba_d_ssm: 384, " SCAN ", " SIZE "}",
         L * (attention + scan + gated + norms) + H + 2 * table},
        {"{model_type: falcon_h1, mamba_d_ssm: 384, layer_types: [hybrid, hybrid, hybrid, hybrid], " SCAN ", " SIZE "}",
         L * (attention + scan + gated + norms) + H + 2 * table},
        {"{model_type: falcon_h1, mamba_d_ssm: 384, mamba_rms_norm: true, " SCAN ", " SIZE "}",
         L * (attention + scan + inner + gated + norms) + H + 2 * table},
        {"{model_type: falcon_h1, mamba_d_ssm: 384, projectors_bias: true, mamba_proj_bias: true, " SCAN ", " SIZE "}",
         L * (attention + scan + inner + conv + X + H + gated + norms) + H + 2 * table},
        {"{model_type: bamba, attn_layer_indices: [2], " SCAN ", " SIZE "}",
         3 * (scan + inner) + attention + L * (gated + norms) + H + 2 * table},
        {"{model_type: bamba, " SCAN ", " SIZE "}", L * (scan + inner + gated + norms) + H + 2 * table},
        {"{model_type: mamba2, num_hidden_layers: 4, hidden_size: 256, vocab_size: 1000, num_heads: 16, head_dim: 24, "
         "n_groups: 2, "
         "state_size: 64, tie_word_embeddings: true}",
         L * (scan + inner + H) + H + table},
        /* three layers of the delta rule, then one with a gate on attention's output */
        {"{model_type: qwen3_5, head_dim: 32, linear_num_value_heads: 4, linear_num_key_heads: 2, linear_key_head_dim: "
         "32, "
         "linear_value_head_dim: 32, " SIZE "}",
         3 * delta + full + L * (gated + norms) + H + 2 * table},
        {"{model_type: qwen3_5_moe, head_dim: 32, linear_num_value_heads: 4, linear_num_key_heads: 2, "
         "linear_key_head_dim: 32, "
         "linear_value_head_dim: 32, shared_expert_intermediate_size: 96, " EXPERTS "}",
         3 * delta + full + L * (moe + one + H + norms) + H + 2 * table},
        {"{model_type: olmo_hybrid, linear_num_value_heads: 4, linear_num_key_heads: 2, linear_key_head_dim: 32, "
         "linear_value_head_dim: 32, " SIZE "}",
         3 * delta + attention + Q + K + L * (gated + norms) + H + 2 * table},
        /* the MLP is 2/3 of 640, rounded up to a multiple of 256 */
        {"{model_type: lfm2, num_heads: 8, full_attn_idxs: [1], " SIZE "}",
         3 * short_conv + attention + 2 * HEAD + L * (3 * (int64_t)H * 512 + norms) + H + table},
        {"{model_type: lfm2, block_auto_adjust_ff_dim: false, conv_bias: true, layer_types: [conv, full_attention, "
         "conv, conv], " SIZE "}",
         3 * (short_conv + 5 * H) + attention + 2 * HEAD + L * (gated + norms) + H + table},
        {"{model_type: lfm2_moe, full_attn_idxs: [1], " EXPERTS "}",
         3 * short_conv + attention + 2 * HEAD + 2 * gated + 2 * (moe + E) + L * norms + H + table},
    };
    (void)state;
    check_counts(cases, MAQ_COUNT(cases));
}

/* Attention and the scan read one tensor behind one norm; their partial sums are reduced together and added once. */
static void test_side_by_side(void **state)
{
    struct maq_arena arena;
    (void)state;
    maq_arena_init(&arena, 0);
    struct maq_model m = model_of_text("{model_type: falcon_h1, mamba_d_ssm: 384, " SCAN ", " SIZE "}", &arena);
    const struct maq_layer *l = &m.kinds[0];
    const struct maq_module *qkv = module_named(l, "linear_qkv"), *proj = module_named(l, "linear_proj"),
                            *in = module_named(l, "in_proj"), *out = module_named(l, "out_proj");
    assert_int_equal(m.n_kinds, 1);
    assert_string_equal(l->mixer, "attn+mamba2");
    assert_true(qkv && proj && in && out && module_named(l, "ssm_scan") && module_named(l, "rotary_pos_emb"));
    assert_true((qkv->flags & MAQ_MODULE_GATHER_IN) && !(proj->flags & MAQ_MODULE_REDUCE_OUT));
    assert_true((in->flags & MAQ_MODULE_SHARED_INPUT) && !(in->flags & MAQ_MODULE_GATHER_IN));
    assert_true(out->flags & MAQ_MODULE_REDUCE_OUT);
    uint32_t norms = 0, sums = 0;
    for (uint32_t i = 0; i < l->n_modules; i++) {
        norms += l->modules[i].kind == MAQ_MODULE_NORM;
        sums += l->modules[i].kind == MAQ_MODULE_RESIDUAL;
    }
    assert_int_equal(norms, 2); /* of the mixers and of the MLP */
    assert_int_equal(sums, 2);
    maq_arena_fini(&arena);
}

/* A layer with both mixers does the work of both, and no more. */
static void test_work_is_a_sum(void **state)
{
    static const char *const texts[] = {
        "{model_type: falcon_h1, mamba_d_ssm: 384, " SCAN ", " SIZE "}",
        "{model_type: bamba, attn_layer_indices: [0, 1, 2, 3], " SCAN ", " SIZE "}",
        "{model_type: bamba, " SCAN ", " SIZE "}",
    };
    double flop[3], mlp = 6.0 * (double)(L * gated + table);
    (void)state;
    for (size_t i = 0; i < MAQ_COUNT(texts); i++) {
        struct maq_arena arena;
        maq_arena_init(&arena, 0);
        struct maq_model m = model_of_text(texts[i], &arena);
        flop[i] = maq_model_flop_per_token(&m, 1024, true);
        maq_arena_fini(&arena);
    }
    assert_float_equal((flop[0] - mlp) / (flop[1] + flop[2] - 2 * mlp), 1, 1e-12);
}

/* Which layers see a window, rotate, and mix by what. */
static void test_patterns(void **state)
{
    static const struct {
        const char *text,
            *mixers; /* a attention, w attention in a window, r rotates too (R in a window), d delta, c conv */
    } cases[] = {
        {"{model_type: afmoe, head_dim: 32, " EXPERTS "}", "RRRa"},
        {"{model_type: exaone_moe, sliding_window: 128, sliding_window_pattern: LG, " EXPERTS "}", "RaRa"},
        {"{model_type: cwm, head_dim: 32, " SIZE "}", "RRRr"},
        {"{model_type: gpt_neo, num_layers: 4, hidden_size: 256, num_heads: 8, vocab_size: 1000, "
         "max_position_embeddings: 2048}",
         "awaw"},
        {"{model_type: gpt_neo, num_layers: 4, hidden_size: 256, num_heads: 8, vocab_size: 1000, "
         "max_position_embeddings: 2048, "
         "attention_layers: [local, global, local, global], attention_types: [[[local, global], 2]]}",
         "wawa"},
        {"{model_type: lfm2, full_attn_idxs: [0, 3], " SIZE "}", "rccr"},
        {"{model_type: qwen3_5, head_dim: 32, linear_num_value_heads: 4, linear_num_key_heads: 2, " SIZE "}", "dddr"},
    };
    (void)state;
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct maq_arena arena;
        char got[L + 1] = {0};
        maq_arena_init(&arena, 0);
        struct maq_model m = model_of_text(cases[i].text, &arena);
        for (uint32_t k = 0; k < m.num_layers; k++) {
            const struct maq_layer *l = &m.kinds[m.kind_of[k]];
            const struct maq_module *core = module_named(l, "core_attention");
            bool window = core && core->u.attention.window > 0, rope = module_named(l, "rotary_pos_emb") != NULL;
            got[k] = !core ? l->mixer[0] : window ? (rope ? 'R' : 'w') : (rope ? 'r' : 'a');
        }
        if (strcmp(got, cases[i].mixers) != 0)
            fail_msg("%s: layers %s, not %s", cases[i].text, got, cases[i].mixers);
        maq_arena_fini(&arena);
    }
}

/* A depth of Qwen 3.5 is a layer with softmax attention. */
static void test_depths(void **state)
{
    struct maq_arena arena;
    (void)state;
    maq_arena_init(&arena, 0);
    struct maq_model m =
        model_of_text("{model_type: qwen3_5, head_dim: 32, linear_num_value_heads: 4, linear_num_key_heads: 2, "
                      "full_attention_interval: 3, mtp_num_hidden_layers: 1, " SIZE "}",
                      &arena);
    assert_int_equal(m.mtp_layers, 1);
    assert_non_null(module_named(&m.mtp, "core_attention"));
    assert_non_null(module_named(&m.kinds[m.kind_of[3]], "gated_delta_rule"));
    maq_arena_fini(&arena);
}

static void assert_refused(const char *text, uint16_t code, const char *says)
{
    struct maq_doc doc;
    struct maq_model m;
    struct maq_arena arena;
    struct maq_diag *diag = maq_diag_new();
    char want[16];
    maq_arena_init(&arena, 0);
    assert_int_equal(maq_doc_parse(&doc, "model", maq_str_of(text), MAQ_ORIGIN_DOCUMENT, diag), MAQ_OK);
    assert_int_equal(maq_model_load(&m, doc.root, &arena, diag), MAQ_BAD_INPUT);
    char *report = maq_diag_format(diag, 0, false);
    snprintf(want, sizeof want, "MAQ%u", (unsigned)code);
    if (!report || !strstr(report, want) || !strstr(report, says))
        fail_msg("%s\nis refused by\n%s\nand not by %s, %s", text, report ? report : "", want, says);
    free(report);
    maq_doc_fini(&doc);
    maq_arena_fini(&arena);
    maq_diag_free(diag);
}

static void test_refused(void **state)
{
    (void)state;
    assert_refused("{model_type: rwkv, " SIZE "}", 1120, "recurrence");
    assert_refused("{model_type: longcat_flash, " SIZE "}", 1120, "two attentions");
    assert_refused("{model_type: mllama, text_config: {model_type: mllama_text_model, " SIZE "}}", 1120,
                   "image encoder");
    assert_refused("{model_type: gemma4_text, head_dim: 32, enable_moe_block: true, " SIZE "}", 1119, "beside an MLP");
    assert_refused("{model_type: bert, add_cross_attention: true, " SIZE "}", 1119, "attention to an encoder");
    assert_refused("{model_type: gemma4_text, head_dim: 32, per_layer_config: {7: {head_dim: 64}}, " SIZE "}", 1111,
                   "names '7'");
    assert_refused("{model_type: gemma4_text, head_dim: 32, per_layer_config: {2: {hidden_size: 64}}, " SIZE "}", 1119,
                   "'hidden_size' of its own");
    assert_refused("{model_type: helium, num_hidden_layers: 4, hidden_size: 256, intermediate_size: 640, "
                   "num_attention_heads: 8, num_key_value_heads: 8, vocab_size: 1000}",
                   1106, "do not make hidden_size 256");
    assert_refused("{model_type: nobody_knows, " SIZE "}", 1102, "is not known");
    assert_refused("{model_type: falcon_h1, mamba_d_ssm: 400, " SCAN ", " SIZE "}", 1117, "are not mamba_d_ssm 400");
    assert_refused("{model_type: falcon_h1, mamba_n_heads: 15, mamba_n_groups: 2, " SIZE "}", 1117, "cannot share");
    assert_refused(
        "{model_type: mamba2, num_hidden_layers: 4, hidden_size: 256, vocab_size: 1000, num_heads: 9, n_groups: 2}",
        1117, "cannot share");
    assert_refused("{model_type: bamba, attn_layer_indices: [4], " SCAN ", " SIZE "}", 1111, "names layer 4");
    assert_refused("{model_type: bamba, attn_layer_indices: 3, " SCAN ", " SIZE "}", 1111, "must be a list");
    assert_refused("{model_type: lfm2, full_attn_idxs: [-1], " SIZE "}", 1111, "names layer -1");
    assert_refused("{model_type: hy_v3, head_dim: 32, mlp_layer_types: [dense], " EXPERTS "}", 1111,
                   "does not fit 4 layers");
    assert_refused("{model_type: hy_v3, head_dim: 32, mlp_layer_types: [a, b, c, d], " EXPERTS "}", 1111,
                   "does not fit");
    assert_refused(
        "{model_type: qwen, num_hidden_layers: 4, hidden_size: 256, intermediate_size: 641, num_attention_heads: 8, "
        "vocab_size: 1000}",
        1119, "counts gate and up");
    assert_refused("{model_type: apertus, post_norm: true, " SIZE "}", 1119, "behind the branches");
    assert_refused("{model_type: mistral4, " SIZE "}", 1116, "latent attention needs");
    assert_refused("{model_type: gpt_neo, num_layers: 4, hidden_size: 256, num_heads: 8, vocab_size: 1000, "
                   "max_position_embeddings: "
                   "2048, attention_layers: [local, global]}",
                   1111, "does not fit 4 layers");
    assert_refused(
        "{model_type: step3_text, num_hidden_layers: 4, hidden_size: 256, intermediate_size: 640, num_attention_heads: "
        "8, "
        "head_dim: 32, share_q_dim: 48, vocab_size: 1000, moe_num_experts: 4, moe_top_k: 2, moe_intermediate_size: 96, "
        "moe_layers_enum: \"1,9\"}",
        1111, "names '9'");
    assert_refused("{model_type: step3_text, num_hidden_layers: 4, hidden_size: 256, intermediate_size: 640, "
                   "num_attention_heads: 8, "
                   "head_dim: 32, vocab_size: 1000}",
                   1103, "share_q_dim");
}

/* What is refused by name is read by nobody, and has a reason. */
static void test_refusals_and_families(void **state)
{
    const struct maq_family *f;
    (void)state;
    for (size_t i = 0; (f = maq__hf_family(i)) != NULL; i++) {
        struct maq_str rest = maq_str_of(f->type), type;
        while (rest.ptr) {
            rest = maq_str_split(rest, '|', &type);
            if (maq__hf_refusal(type))
                fail_msg("'%.*s' is read, and refused too", (int)type.len, type.ptr);
            const struct maq_family *g;
            for (size_t j = 0; (g = maq__hf_family(j)) != f; j++) {
                struct maq_str others = maq_str_of(g->type), other;
                while (others.ptr) {
                    others = maq_str_split(others, '|', &other);
                    if (maq_str_eq(type, other))
                        fail_msg("'%.*s' is read twice", (int)type.len, type.ptr);
                }
            }
        }
    }
    assert_true(maq__hf_refusal(maq_str_of("")) == NULL && maq__hf_refusal(maq_str_of("llama")) == NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dense),
        cmocka_unit_test(test_experts),
        cmocka_unit_test(test_hybrids),
        cmocka_unit_test(test_side_by_side),
        cmocka_unit_test(test_work_is_a_sum),
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_depths),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_refusals_and_families),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
