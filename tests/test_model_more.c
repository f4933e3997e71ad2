/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_model_more.c - further families (src/model/hf/dense.c, model/hf/moe.c): parameters of a small model of each, counted here by hand
 * from what the modelling code of the family has; and config.json files as tools write them.
 *
 * h hidden, f MLP, v vocabulary, q and k widths of all query and of all key heads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/str.h"
#include "maquette/model.h"
#include "model/load.h"

enum {
    L = 3,
    H = 256,
    F = 640,
    V = 1000,
    HEADS = 8,
    HEAD = 32,
    KV = 2,
    Q = HEADS * HEAD,
    K = KV * HEAD,
    E = 4,
    FE = 96
};

#define SIZE                                                                                                           \
    "num_hidden_layers: 3, hidden_size: 256, intermediate_size: 640, num_attention_heads: 8, num_key_value_heads: 2, " \
    "vocab_size: 1000, max_position_embeddings: 2048"

static const int64_t attention = (int64_t)H * Q + 2 * H * K + (int64_t)Q * H, gated = 3 * (int64_t)H * F,
                     table = (int64_t)V * H;

static int64_t count(const char *text, uint32_t *mtp)
{
    struct maq_doc doc;
    struct maq_model m;
    struct maq_arena arena;
    struct maq_diag *diag = maq_diag_new();
    maq_arena_init(&arena, 0);
    if (maq_doc_parse(&doc, "model", maq_str_of(text), MAQ_ORIGIN_DOCUMENT, diag) != MAQ_OK ||
        maq_model_load(&m, doc.root, &arena, diag) != MAQ_OK)
        fail_msg("%s\n%s", text, maq_diag_format(diag, 0, false));
    int64_t n = m.params;
    if (mtp)
        *mtp = m.mtp_layers;
    maq_doc_fini(&doc);
    maq_arena_fini(&arena);
    maq_diag_free(diag);
    return n;
}

static void test_counts(void **state)
{
    const int64_t bias_q = Q + 2 * K, moe = (int64_t)E * 3 * H * FE + (int64_t)H * E;
    const struct {
        const char *text;
        int64_t parameters;
    } cases[] = {
        /* two RMSNorms a layer and one at the end, a head of its own; biases of queries, keys and values */
        {"{model_type: mimo, " SIZE "}", L * (attention + bias_q + gated + 2 * H) + H + 2 * table},
        {"{model_type: olmo, " SIZE "}", L * (attention + gated) + 2 * table}, /* norms without weights */
        /* norms over all queries and over all keys */
        {"{model_type: olmoe, " SIZE ", num_experts: 4, num_experts_per_tok: 2, moe_intermediate_size: 96}",
         L * (attention + Q + K + moe + 2 * H) + H + 2 * table},
        /* a plain MLP, weights and biases in norms, biases everywhere, tied */
        {"{model_type: starcoder2, " SIZE "}",
         L * (attention + bias_q + H + 2 * (int64_t)H * F + F + H + 4 * H) + 2 * H + table},
        {"{model_type: starcoder2, " SIZE ", use_bias: false, tie_word_embeddings: false}",
         L * (attention + 2 * (int64_t)H * F + 4 * H) + 2 * H + 2 * table},
        /* one key and value head, 2,048 learned positions, an MLP of 4 x hidden */
        {"{model_type: gpt_bigcode, n_layer: 3, n_embd: 256, n_head: 8, n_positions: 2048, vocab_size: 1000}",
         L * ((int64_t)H * (H + 2 * HEAD) + H + 2 * HEAD + (int64_t)H * H + H + 8 * (int64_t)H * H + 4 * H + H +
              4 * H) +
             2 * H + table + 2048 * (int64_t)H},
        /* one norm without bias a layer, tied; with norms of queries and keys the weights of every head */
        {"{model_type: cohere, " SIZE "}", L * (attention + gated + H) + H + table},
        {"{model_type: cohere, " SIZE ", use_qk_norm: true}", L * (attention + Q + K + gated + H) + H + table},
        {"{model_type: cohere2, " SIZE ", sliding_window: 512}", L * (attention + gated + H) + H + table},
        {"{model_type: baichuan, num_hidden_layers: 3, hidden_size: 256, intermediate_size: 640, num_attention_heads: "
         "8, "
         "vocab_size: 1000, model_max_length: 4096}",
         L * (4 * (int64_t)H * H + gated + 2 * H) + H + 2 * table},
        /* norms with biases, biases in attention and in the head */
        {"{model_type: phimoe, " SIZE ", num_local_experts: 4, num_experts_per_tok: 2, attention_bias: true, "
         "lm_head_bias: true, moe_intermediate_size: 96}",
         L * (attention + bias_q + H + moe + 4 * H) + 2 * H + 2 * table + V},
        {"{model_type: dbrx, n_layers: 3, d_model: 256, n_heads: 8, vocab_size: 1000, max_seq_len: 2048, attn_config: "
         "{kv_n_heads: 2, clip_qkv: 8}, ffn_config: {ffn_hidden_size: 96, moe_num_experts: 4, moe_top_k: 2}}",
         L * (attention + moe + 2 * H) + H + 2 * table},
        {"{model_type: exaone, " SIZE "}", L * (attention + gated + 2 * H) + H + 2 * table},
        {"{model_type: internlm3, head_dim: 32, " SIZE ", qkv_bias: true}",
         L * (attention + bias_q + gated + 2 * H) + H + 2 * table},
        /* norms inside each head, tied */
        {"{model_type: hunyuan_v1_dense, tie_word_embeddings: true, " SIZE "}",
         L * (attention + 2 * HEAD + gated + 2 * H) + H + table},
        {"{model_type: hunyuan_v1_moe, tie_word_embeddings: true, " SIZE
         ", num_experts: 4, moe_topk: [2, 2, 2], moe_intermediate_size: [96, 96, 96], "
         "num_shared_expert: [1, 1, 1], use_qk_norm: false}",
         L * (attention + moe + 3 * (int64_t)H * FE + 2 * H) + H + table},
        {"{model_type: llada, n_layers: 3, d_model: 256, n_heads: 8, n_kv_heads: 2, mlp_hidden_size: 640, "
         "embedding_size: 1000, "
         "vocab_size: 1000, max_sequence_length: 4096}",
         L * (attention + gated + 2 * H) + H + 2 * table},
        {"{model_type: bailing_moe_v2, " SIZE ", num_experts: 4, num_experts_per_tok: 2, moe_intermediate_size: 96, "
         "num_shared_experts: 1, first_k_dense_replace: 1, use_qk_norm: true, moe_router_enable_expert_bias: true}",
         L * (attention + 2 * HEAD + 2 * H) + gated + (L - 1) * (moe + E + 3 * (int64_t)H * FE) + H + 2 * table},
    };
    (void)state;
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        int64_t n = count(cases[i].text, NULL);
        if (n != cases[i].parameters)
            fail_msg("%lld, not %lld parameters: %s", (long long)n, (long long)cases[i].parameters, cases[i].text);
    }
}

/* A text_config leaves out what is equal to the defaults of its class: Gemma 3 4B has 8 and 4 heads and 262,208 tokens without a word. */
static void test_nested_defaults(void **state)
{
    (void)state;
    assert_int_equal(count("{model_type: gemma3, text_config: {model_type: gemma3_text, hidden_size: 2560, "
                           "intermediate_size: 10240, num_hidden_layers: 34, sliding_window: 1024}}",
                           NULL),
                     count("gemma-3-4b", NULL));
}

static void test_multi_token_prediction(void **state)
{
    uint32_t depths;
    (void)state;
    count("{model_type: mimo, " SIZE ", num_nextn_predict_layers: 1}", &depths);
    assert_int_equal(depths, 1);
}

static void test_refused(void **state)
{
    static const char *const texts[] = {
        "{model_type: hunyuan_v1_moe, tie_word_embeddings: true, " SIZE
        ", num_experts: 4, moe_topk: [2, 1, 2], moe_intermediate_size: 96}",
        "{model_type: hunyuan_v1_moe, tie_word_embeddings: true, " SIZE
        ", num_experts: 4, moe_topk: [], moe_intermediate_size: 96}",
        "{model_type: hunyuan_v1_moe, tie_word_embeddings: true, " SIZE
        ", num_experts: 4, moe_topk: -1, moe_intermediate_size: 96}",
        "{model_type: dbrx, n_layers: 3, d_model: 256, n_heads: 8, vocab_size: 1000}",
        "{model_type: dbrx, n_layers: 3, d_model: 256, n_heads: 8, vocab_size: 1000, attn_config: 3, ffn_config: [1]}",
        "{model_type: dbrx, n_layers: 3, d_model: 256, n_heads: 8, vocab_size: 9, ffn_config: {moe_num_experts: -4}}",
    };
    (void)state;
    for (size_t i = 0; i < MAQ_COUNT(texts); i++) {
        struct maq_doc doc;
        struct maq_model m;
        struct maq_arena arena;
        struct maq_diag *diag = maq_diag_new();
        maq_arena_init(&arena, 0);
        assert_int_equal(maq_doc_parse(&doc, "model", maq_str_of(texts[i]), MAQ_ORIGIN_DOCUMENT, diag), MAQ_OK);
        if (maq_model_load(&m, doc.root, &arena, diag) != MAQ_BAD_INPUT || maq_diag_errors(diag) == 0)
            fail_msg("not refused: %s", texts[i]);
        maq_doc_fini(&doc);
        maq_arena_fini(&arena);
        maq_diag_free(diag);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_nested_defaults),
        cmocka_unit_test(test_multi_token_prediction),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
