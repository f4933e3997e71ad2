/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_model_layers.c - layers that differ from those around them, and mixers with a choice or a state, in closed form: keys that sparse
 * attention sees and what choosing them costs, keys that are another layer's, blocks that are used again, sizes of one layer. And that the
 * facts of every family are words that are known.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "maquette/model.h"
#include "model/hf/config.h"
#include "model/load.h"
#include "model_texts.h"

#define SIZE                                                                                                           \
    "num_hidden_layers: 4, hidden_size: 256, intermediate_size: 640, num_attention_heads: 8, num_key_value_heads: 2, " \
    "vocab_size: 1000, max_position_embeddings: 2048"

static const struct maq_layer *layer(const struct maq_model *m, uint32_t i)
{
    return &m->kinds[m->kind_of[i]];
}

static bool close_to(double a, double b)
{
    double d = a - b, scale = b < 0 ? -b : b;
    return (d < 0 ? -d : d) <= 1e-9 * (scale > 1 ? scale : 1);
}

/* k chosen keys are as many as those of a window of k; a key of several tokens is there for the queries from its last one on. */
static void test_keys(void **state)
{
    const struct maq_attention_geometry chosen = {.selected = 4, .causal = true},
                                        strided = {.stride = 4, .window = 2, .causal = true},
                                        few = {.stride = 4, .selected = 2, .causal = true};
    (void)state;
    assert_true(close_to(maq_attention_mean_keys(&chosen, 8, false), (1 + 2 + 3 + 4 * 5) / 8.0));
    assert_true(close_to(maq_attention_mean_keys(&chosen, 8, true), 4));
    assert_true(close_to(maq_attention_mean_keys(&chosen, 3, false), 2));
    assert_true(close_to(maq_attention_mean_keys(&strided, 16, false),
                         (4 * 1 + 4 * 2 + 4 * 3 + 4) / 16.0 + (1 + 15 * 2) / 16.0));
    assert_true(close_to(maq_attention_mean_keys(&few, 16, false), (4 * 1 + 9 * 2) / 16.0));
}

/* An index: queries from the rank, one key for all heads with a LayerNorm, a weight per head; scores of all keys, attention of k. */
static void test_index(void **state)
{
    struct maq_arena arena;
    (void)state;
    maq_arena_init(&arena, 0);
    struct maq_model m =
        model_of_text("{model_type: glm_moe_dsa, q_lora_rank: 48, kv_lora_rank: 40, qk_nope_head_dim: 24, "
                      "qk_rope_head_dim: 16, v_head_dim: 20, index_n_heads: 3, index_head_dim: 32, index_topk: 8, "
                      "first_k_dense_replace: 4, indexer_types: [full, shared, full, shared], " SIZE "}",
                      &arena);
    const struct maq_layer *full = layer(&m, 0), *shared = layer(&m, 1);
    const struct maq_module *index = module_named(full, "indexer"), *core = module_named(shared, "core_attention");
    const int64_t seq = 64, weights = 48 * 96 + 256 * 32 + 2 * 32 + 256 * 3;
    assert_int_equal(m.n_kinds, 2);
    assert_non_null(index);
    assert_null(module_named(shared, "indexer"));
    assert_int_equal(full->params - shared->params, weights);
    assert_int_equal(core->u.attention.selected, 8);
    /* products with its weights, and 96 multiply-adds for each of (seq + 1) / 2 keys */
    double more = maq_layer_flop_per_token(full, seq, true) - maq_layer_flop_per_token(shared, seq, true);
    assert_true(close_to(more, 2.0 * (48 * 96 + 256 * 32 + 256 * 3) + 96.0 * (double)(seq + 1)));
    maq_arena_fini(&arena);
}

/* Gemma 3n: the last layers project queries alone and have no norm on keys; every layer has an input of its own. */
static void test_shared_keys(void **state)
{
    struct maq_arena arena;
    (void)state;
    maq_arena_init(&arena, 0);
    struct maq_model m =
        model_of_text("{model_type: gemma3n_text, head_dim: 32, num_kv_shared_layers: 1, sliding_window: 64, "
                      "layer_types: [full_attention, sliding_attention, full_attention, full_attention], "
                      "hidden_size_per_layer_input: 16, vocab_size_per_layer_input: 500, " SIZE "}",
                      &arena);
    const struct maq_layer *own = layer(&m, 2), *shares = layer(&m, 3);
    assert_int_equal(module_named(own, "linear_qkv")->out, 8 * 32 + 2 * 2 * 32);
    assert_int_equal(module_named(shares, "linear_qkv")->out, 8 * 32);
    assert_null(module_named(shares, "k_layernorm"));
    assert_true(module_named(shares, "core_attention")->u.attention.shares_kv);
    assert_int_equal(own->params - shares->params, 256 * 2 * 2 * 32 + 32);
    assert_int_equal(module_named(&m.embedding, "embed_tokens_per_layer")->params, 500 * 4 * 16);
    assert_int_equal(module_named(own, "per_layer_input_gate")->params, 256 * 16);
    maq_arena_fini(&arena);
}

/* Heads of layers with a window, and of layers that a map names by number, padded or not. */
static void test_own_heads(void **state)
{
    struct maq_arena arena;
    (void)state;
    maq_arena_init(&arena, 0);
    struct maq_model m = model_of_text(
        "{model_type: mimo_v2_flash, head_dim: 24, v_head_dim: 16, n_routed_experts: 0, sliding_window: 8, "
        "layer_types: [full_attention, sliding_attention, full_attention, sliding_attention], " SIZE "}",
        &arena);
    const struct maq_attention_geometry *full = &module_named(layer(&m, 0), "core_attention")->u.attention,
                                        *window = &module_named(layer(&m, 1), "core_attention")->u.attention;
    assert_int_equal(m.n_kinds, 2);
    assert_int_equal(full->kv_heads, 2);
    assert_int_equal(window->kv_heads, 4);
    assert_int_equal(window->v_dim, 16);
    assert_true(window->sinks && !full->sinks && window->window == 8);
    m = model_of_text("{model_type: gemma4_text, head_dim: 32, hidden_size_per_layer_input: 0, "
                      "per_layer_config: {01: {head_dim: 64, num_key_value_heads: 4}, 3: {head_dim: 64}}, " SIZE "}",
                      &arena);
    assert_int_equal(m.n_kinds, 3);
    assert_int_equal(module_named(layer(&m, 1), "core_attention")->u.attention.kv_heads, 4);
    assert_int_equal(module_named(layer(&m, 3), "core_attention")->u.attention.qk_dim, 64);
    maq_arena_fini(&arena);
}

/* Zamba: a block in front of hybrid layers reads twice the width; from the second use on it has a linear of its own and nothing else. */
static void test_used_again(void **state)
{
    struct maq_arena arena;
    (void)state;
    maq_arena_init(&arena, 0);
    struct maq_model m = model_of_text(
        "{model_type: zamba, n_mamba_heads: 2, mamba_d_state: 16, num_hidden_layers: 3, hidden_size: 256, "
        "intermediate_size: 640, num_attention_heads: 8, num_key_value_heads: 8, vocab_size: 1000, "
        "layers_block_type: [hybrid, linear_attention, hybrid]}",
        &arena);
    const struct maq_layer *first = layer(&m, 0), *again = layer(&m, 3);
    const int64_t block = 512 + 3 * 512 * 512 + 512 * 256 + 256 + 3 * 256 * 640, linear = 256 * 256;
    assert_int_equal(m.num_layers, 5);
    assert_int_equal(first->params, block + linear);
    assert_int_equal(again->params, linear);
    assert_true(close_to(maq_layer_flop_per_token(first, 64, true), maq_layer_flop_per_token(again, 64, true)));
    /* A scan of 512 channels: x, z; taps and biases; two projections; a step for each channel; A and D; back */
    assert_int_equal(layer(&m, 2)->params,
                     256 + 256 * 1024 + 512 * 5 + 2 * 256 * (16 + 32) + 512 * 17 + 512 * 17 + 512 * 256);
    assert_int_equal(module_named(layer(&m, 2), "selective_scan")->u.ssm.heads, 512);
    maq_arena_fini(&arena);
}

/* Every word of a family's facts is one of class_facts.c or one of its keys, with a value that it may have. */
static void test_facts(void **state)
{
    const struct maq_family *f;
    (void)state;
    for (size_t i = 0; (f = maq__hf_family(i)) != NULL; i++) {
        struct maq_arena arena;
        struct maq_hf hf = {0};
        struct maq_diag *diag = maq_diag_new();
        maq_arena_init(&arena, 0);
        struct maq_model_reader r = {.arena = &arena, .diag = diag};
        maq__hf_read_facts(&hf, f, &r);
        if (r.bad || maq_diag_count(diag) > 0)
            fail_msg("%s: %s", f->type, maq_diag_format(diag, 0, false));
        maq_diag_free(diag);
        maq_arena_fini(&arena);
    }
}

/* The page lists the keys that are accepted without effect: each of them, and no other. */
static void test_page(void **state)
{
    enum { PAGE = 1 << 18 };
    char path[1024], word[128], *text = calloc(1, PAGE);
    const char *root = getenv("MAQ_SOURCE_ROOT"), *key;
    (void)state;
    snprintf(path, sizeof path, "%s/docs/models.md", root ? root : ".");
    FILE *f = fopen(path, "r");
    assert_non_null(text);
    assert_non_null(f);
    assert_in_range(fread(text, 1, PAGE - 1, f), 1, PAGE - 2);
    fclose(f);
    char *list = strstr(text, "## Keys of config.json that are accepted without effect");
    assert_non_null(list);
    for (size_t i = 0; (key = maq__hf_ignored_key(i)) != NULL; i++) {
        snprintf(word, sizeof word, "`%s`", key);
        if (!strstr(list, word))
            fail_msg("docs/models.md does not list %s", word);
    }
    for (char *at = strchr(list, '`'), *end; at && (end = strchr(at + 1, '`')) != NULL; at = strchr(end + 1, '`')) {
        struct maq_str name = {at + 1, (size_t)(end - at - 1)};
        if (!maq__hf_key_is_ignored(name))
            fail_msg("docs/models.md lists %.*s", (int)name.len, name.ptr);
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),      cmocka_unit_test(test_index),      cmocka_unit_test(test_shared_keys),
        cmocka_unit_test(test_own_heads), cmocka_unit_test(test_used_again), cmocka_unit_test(test_facts),
        cmocka_unit_test(test_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
