/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_model.c - architectures as modules: what each family expands to, kinds, FLOP, documents good and bad.
 */
#include "maquette/model.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/load.h"
#include "model_texts.h"

struct fixture {
    struct maq_diag *diag;
    struct maq_arena arena;
    struct maq_doc doc;
    struct maq_model model;
    enum maq_status status;
};

/* Loads what stands under `model:` of a small job. */
static struct fixture load(const char *text)
{
    struct fixture f = {.diag = maq_diag_new()};
    assert_non_null(f.diag);
    maq_arena_init(&f.arena, 0);
    struct maq_str s = {text, strlen(text)};
    assert_int_equal(maq_doc_parse(&f.doc, "job.yaml", s, MAQ_ORIGIN_DOCUMENT, f.diag), MAQ_OK);
    f.status = maq_model_load(&f.model, maq_node_get(f.doc.root, "model"), &f.arena, f.diag);
    return f;
}

static void done(struct fixture *f)
{
    maq_doc_fini(&f->doc);
    maq_arena_fini(&f->arena);
    maq_diag_free(f->diag);
}

static struct fixture load_good(const char *text)
{
    struct fixture f = load(text);
    if (f.status != MAQ_OK || maq_diag_count(f.diag) != 0) {
        char *report = maq_diag_format(f.diag, 0, false);
        print_error("%s", report ? report : "");
        free(report);
    }
    assert_int_equal(f.status, MAQ_OK);
    assert_int_equal(maq_diag_count(f.diag), 0);
    assert_int_equal(maq_doc_check_unused(&f.doc, f.diag), MAQ_OK);
    return f;
}

static struct fixture load_name(const char *name)
{
    char text[128];
    snprintf(text, sizeof(text), "model: %s\n", name);
    return load_good(text);
}

/* The names of a layer's modules, blank-separated, in forward order. */
static void assert_order(const struct maq_layer *l, const char *expected)
{
    char names[2048] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < l->n_modules; i++)
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? " " : "", l->modules[i].name);
    assert_string_equal(names, expected);
}

/* Counts of a layer are sums over its modules, widths connect, and every learned module has a place in the layer. */
static void check_layer(const struct maq_layer *l)
{
    int64_t params = 0;
    for (uint32_t i = 0; i < l->n_modules; i++) {
        const struct maq_module *m = &l->modules[i];
        assert_true(m->in > 0 && m->out > 0 && m->params >= 0);
        assert_non_null(m->name);
        assert_true(m->part < MAQ_PART_COUNT && m->kind < MAQ_MODULE_KIND_COUNT);
        if (m->kind == MAQ_MODULE_LINEAR && !(m->flags & MAQ_MODULE_TIED))
            assert_int_equal(m->params, m->in * m->out + (m->flags & MAQ_MODULE_BIAS ? m->out : 0));
        if (m->kind == MAQ_MODULE_ACTIVATION || m->kind == MAQ_MODULE_EXPERT_ACTIVATION)
            assert_int_equal(m->in, m->flags & MAQ_MODULE_GATED ? 2 * m->out : m->out);
        params += m->params;
    }
    assert_int_equal(l->params, params);
    assert_true(l->active_params <= l->params);
}

/* --- what the families expand to -------------------------------------------------------------------------- */

static void test_llama_layer(void **state)
{
    struct fixture f = load_name("llama-3-8b");
    const struct maq_layer *l = &f.model.kinds[0];
    assert_order(l, "input_layernorm linear_qkv rotary_pos_emb core_attention linear_proj self_attn_bda "
                    "pre_mlp_layernorm linear_fc1 activation_func linear_fc2 mlp_bda");
    check_layer(l);
    assert_string_equal(l->mixer, "gqa");
    const struct maq_module *qkv = module_named(l, "linear_qkv"), *proj = module_named(l, "linear_proj"),
                            *fc1 = module_named(l, "linear_fc1");
    assert_int_equal(qkv->out, 4096 + 2 * 1024);
    assert_int_equal(qkv->shard, MAQ_SHARD_COLUMN);
    assert_int_equal(qkv->flags, MAQ_MODULE_GATHER_IN);
    assert_int_equal(proj->shard, MAQ_SHARD_ROW);
    assert_int_equal(proj->flags, MAQ_MODULE_REDUCE_OUT);
    assert_int_equal(fc1->out, 2 * 14336);
    const struct maq_attention_geometry *g = &module_named(l, "core_attention")->u.attention;
    assert_int_equal(g->heads, 32);
    assert_int_equal(g->kv_heads, 8);
    assert_int_equal(g->qk_dim, 128);
    assert_true(g->causal && !g->dropout && !g->sinks);
    assert_order(&f.model.embedding, "word_embeddings");
    assert_order(&f.model.output, "final_layernorm output_layer cross_entropy");
    assert_int_equal(f.model.output.params, INT64_C(128256) * 4096 + 4096);
    done(&f);
    (void)state;
}

static void test_gpt_layer(void **state)
{
    struct fixture f = load_name("gpt3-175b");
    const struct maq_layer *l = &f.model.kinds[0];
    check_layer(l);
    assert_null(module_named(l, "rotary_pos_emb"));
    assert_string_equal(l->mixer, "mha");
    assert_true(module_named(l, "core_attention")->flags & MAQ_MODULE_DROPOUT);
    assert_true(module_named(l, "mlp_bda")->flags & MAQ_MODULE_DROPOUT);
    assert_true(module_named(l, "linear_fc1")->flags & MAQ_MODULE_BIAS);
    assert_true(module_named(l, "input_layernorm")->flags & MAQ_MODULE_LAYERNORM);
    assert_int_equal(module_named(l, "input_layernorm")->params, 2 * 12288);
    assert_order(&f.model.embedding, "word_embeddings position_embeddings");
    const struct maq_module *head = module_named(&f.model.output, "output_layer");
    assert_true(head->flags & MAQ_MODULE_TIED);
    assert_int_equal(head->params, 0);
    assert_int_equal(head->out, 51200);
    done(&f);
    (void)state;
}

static void test_mla_layer(void **state)
{
    struct fixture f = load_name("deepseek-v3");
    assert_int_equal(f.model.n_kinds, 2);
    assert_order(&f.model.kinds[0],
                 "input_layernorm linear_q_down_proj linear_kv_down_proj q_layernorm kv_layernorm linear_q_up_proj "
                 "linear_kv_up_proj rotary_pos_emb core_attention linear_proj self_attn_bda pre_mlp_layernorm "
                 "linear_fc1 activation_func linear_fc2 mlp_bda");
    assert_order(&f.model.kinds[1],
                 "input_layernorm linear_q_down_proj linear_kv_down_proj q_layernorm kv_layernorm linear_q_up_proj "
                 "linear_kv_up_proj rotary_pos_emb core_attention linear_proj self_attn_bda pre_mlp_layernorm router "
                 "token_dispatch experts.linear_fc1 experts.activation_func experts.linear_fc2 token_combine "
                 "shared_experts.linear_fc1 shared_experts.activation_func shared_experts.linear_fc2 "
                 "shared_experts.add mlp_bda");
    for (uint32_t k = 0; k < 2; k++)
        check_layer(&f.model.kinds[k]);
    const struct maq_layer *l = &f.model.kinds[1];
    assert_int_equal(module_named(l, "linear_q_down_proj")->shard, MAQ_SHARD_SEQUENCE);
    assert_int_equal(module_named(l, "linear_kv_down_proj")->out, 576);
    assert_int_equal(module_named(l, "linear_q_up_proj")->part, MAQ_PART_MLA_UP);
    const struct maq_module *core = module_named(l, "core_attention"), *fc1 = module_named(l, "experts.linear_fc1");
    assert_int_equal(core->u.attention.kv_heads, 128);
    assert_int_equal(core->u.attention.qk_dim, 192);
    assert_int_equal(core->u.attention.v_dim, 128);
    assert_int_equal(core->in, 128 * (192 + 192 + 128));
    assert_int_equal(fc1->u.moe.experts, 256);
    assert_int_equal(fc1->u.moe.topk, 8);
    assert_int_equal(fc1->params, INT64_C(256) * 7168 * 4096);
    assert_int_equal(module_named(l, "router")->params, INT64_C(7168) * 256 + 256);
    assert_true(l->moe && !f.model.kinds[0].moe);
    assert_int_equal(f.model.kind_of[2], 0);
    assert_int_equal(f.model.kind_of[3], 1);
    done(&f);
    (void)state;
}

static void test_mtp(void **state)
{
    struct fixture f = load_name("deepseek-v3");
    assert_int_equal(f.model.mtp_layers, 1);
    check_layer(&f.model.mtp);
    assert_int_equal(module_named(&f.model.mtp, "eh_proj")->params, INT64_C(2) * 7168 * 7168);
    assert_int_equal(f.model.mtp.params, f.model.kinds[1].params + INT64_C(2) * 7168 * 7168 + 3 * 7168);
    assert_null(module_named(&f.model.mtp, "output_layer"));
    done(&f);
    f = load_name("nemotron-3-super-120b-a12b"); /* a depth of its own shape: attention, then experts */
    assert_string_equal(f.model.mtp.mixer, "gqa");
    assert_true(f.model.mtp.moe);
    assert_int_equal(module_named(&f.model.mtp, "experts.linear_fc1")->in, 1024);
    done(&f);
    (void)state;
}

static void test_parallel_layers(void **state)
{
    struct fixture f = load_name("falcon-7b");
    const struct maq_layer *l = &f.model.kinds[0];
    assert_order(l, "input_layernorm linear_qkv rotary_pos_emb core_attention linear_proj linear_fc1 activation_func "
                    "linear_fc2 mlp_bda");
    assert_int_equal(module_named(l, "linear_proj")->flags & MAQ_MODULE_REDUCE_OUT, 0);
    assert_int_equal(module_named(l, "linear_fc1")->flags, MAQ_MODULE_SHARED_INPUT);
    assert_int_equal(module_named(l, "linear_fc2")->flags, MAQ_MODULE_REDUCE_OUT);
    assert_string_equal(l->mixer, "mqa");
    done(&f);
    f = load_name("gpt-neox-20b");
    l = &f.model.kinds[0];
    assert_order(l, "input_layernorm linear_qkv rotary_pos_emb core_attention linear_proj pre_mlp_layernorm linear_fc1 "
                    "activation_func linear_fc2 mlp_bda");
    assert_true(module_named(l, "pre_mlp_layernorm")->flags & MAQ_MODULE_SHARED_INPUT);
    assert_true(module_named(l, "linear_fc1")->flags & MAQ_MODULE_GATHER_IN);
    assert_int_equal(module_named(l, "rotary_pos_emb")->in, 2 * 64 * 24);
    done(&f);
    (void)state;
}

static void test_norm_places(void **state)
{
    struct fixture f = load_name("gemma-3-27b");
    assert_order(&f.model.kinds[0],
                 "input_layernorm linear_qkv q_layernorm k_layernorm rotary_pos_emb core_attention linear_proj "
                 "post_attention_layernorm self_attn_bda pre_mlp_layernorm linear_fc1 activation_func linear_fc2 "
                 "post_mlp_layernorm mlp_bda");
    assert_int_equal(module_named(&f.model.kinds[0], "q_layernorm")->params, 128);
    assert_int_equal(module_named(&f.model.kinds[0], "q_layernorm")->in, 32 * 128);
    done(&f);
    f = load_name("olmo-2-7b");
    assert_order(&f.model.kinds[0], "linear_qkv q_layernorm k_layernorm rotary_pos_emb core_attention linear_proj "
                                    "post_attention_layernorm self_attn_bda linear_fc1 activation_func linear_fc2 "
                                    "post_mlp_layernorm mlp_bda");
    assert_int_equal(module_named(&f.model.kinds[0], "q_layernorm")->params, 4096);
    done(&f);
    f = load_name("opt-350m");
    assert_order(&f.model.kinds[0],
                 "linear_qkv core_attention linear_proj self_attn_bda post_attention_layernorm linear_fc1 "
                 "activation_func linear_fc2 mlp_bda post_mlp_layernorm");
    assert_order(&f.model.embedding, "word_embeddings project_in position_embeddings");
    assert_order(&f.model.output, "project_out output_layer cross_entropy");
    done(&f);
    (void)state;
}

static void test_hybrids(void **state)
{
    struct fixture f = load_name("nemotron-3-nano-30b-a3b");
    assert_int_equal(f.model.n_kinds, 3);
    assert_order(&f.model.kinds[0], "input_layernorm in_proj conv1d ssm_scan gate norm out_proj self_attn_bda");
    assert_string_equal(f.model.kinds[0].mixer, "mamba2");
    assert_string_equal(f.model.kinds[1].mixer, "none");
    assert_string_equal(f.model.kinds[2].mixer, "gqa");
    const struct maq_module *scan = module_named(&f.model.kinds[0], "ssm_scan");
    assert_int_equal(scan->u.ssm.heads, 64);
    assert_int_equal(scan->u.ssm.groups, 8);
    assert_int_equal(scan->u.ssm.state, 128);
    assert_int_equal(module_named(&f.model.kinds[0], "in_proj")->out, 2 * 4096 + 2 * 8 * 128 + 64);
    assert_true(module_named(&f.model.kinds[1], "experts.activation_func")->flags & MAQ_MODULE_DYNAMIC_KEEPS_INPUT);
    assert_null(module_named(&f.model.kinds[2], "rotary_pos_emb"));
    for (uint32_t k = 0; k < 3; k++)
        check_layer(&f.model.kinds[k]);
    done(&f);
    f = load_name("qwen3-next-80b-a3b");
    assert_int_equal(f.model.n_kinds, 2);
    assert_string_equal(f.model.kinds[0].mixer, "delta");
    assert_int_equal(f.model.kind_of[3], 1);
    assert_int_equal(f.model.kind_of[4], 0);
    const struct maq_module *qkv = module_named(&f.model.kinds[1], "linear_qkv");
    assert_int_equal(qkv->out, 2 * 16 * 256 + 2 * 2 * 256); /* queries and their gate */
    assert_non_null(module_named(&f.model.kinds[1], "output_gate"));
    assert_int_equal(module_named(&f.model.kinds[0], "shared_experts.gate")->out, 1);
    done(&f);
    (void)state;
}

static void test_kinds(void **state)
{
    static const struct {
        const char *name;
        uint32_t kinds;
    } expected[] = {
        {"llama-3.1-405b", 1}, {"deepseek-v3", 2},      {"gpt-oss-120b", 2},  {"gemma-3-27b", 2},
        {"llama-4-scout", 2},  {"llama-4-maverick", 3}, {"qwen3-30b-a3b", 1}, {"nemotron-h-56b", 3},
        {"gemma-2-9b", 2},     {"mistral-7b", 1},       {"glm-4.5", 2},
    };
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        struct fixture f = load_name(expected[i].name);
        assert_int_equal(f.model.n_kinds, expected[i].kinds);
        for (uint32_t k = 0; k < f.model.n_kinds; k++)
            check_layer(&f.model.kinds[k]);
        done(&f);
    }
    struct fixture f = load_name("gpt-oss-20b");
    assert_int_equal(module_named(&f.model.kinds[0], "core_attention")->u.attention.window, 128);
    assert_int_equal(module_named(&f.model.kinds[1], "core_attention")->u.attention.window, 0);
    assert_int_equal(module_named(&f.model.kinds[0], "core_attention")->params, 64); /* one sink per head */
    done(&f);
    f = load_name("llama-4-maverick"); /* chunked and dense, chunked and MoE, full and MoE without rotation */
    assert_int_equal(module_named(&f.model.kinds[0], "core_attention")->u.attention.chunk, 8192);
    assert_true(!f.model.kinds[0].moe && f.model.kinds[1].moe && f.model.kinds[2].moe);
    assert_int_equal(f.model.kind_of[3], 2);
    assert_null(module_named(&f.model.kinds[2], "rotary_pos_emb"));
    done(&f);
    (void)state;
}

/* --- FLOP ------------------------------------------------------------------------------------------------- */

static void assert_gflop(const char *name, int64_t seq, bool causal, double expected, double tolerance)
{
    struct fixture f = load_name(name);
    double got = maq_model_flop_per_token(&f.model, seq, causal) / 1e9;
    if (got < expected - tolerance || got > expected + tolerance)
        fail_msg("%s at %" PRId64 ": %.3f GFLOP per token, published %.3f", name, seq, got, expected);
    done(&f);
}

/* GFLOP per token behind NVIDIA's published tables (NeMo 24.xx: full; Megatron-Bridge: causal), to their last digit. */
static void test_published_flop(void **state)
{
    assert_gflop("llama-3-8b", 8192, true, 51.5, 0.05);
    assert_gflop("llama-3-8b", 8192, false, 57.9, 0.05);
    assert_gflop("llama-3-70b", 8192, true, 449, 0.5);
    assert_gflop("llama-3.1-405b", 8192, true, 2524, 0.5);
    assert_gflop("deepseek-v3", 4096, true, 260, 0.5);
    assert_gflop("qwen3-30b-a3b", 4096, true, 23.0, 0.05);
    assert_gflop("gpt-oss-120b", 4096, true, 32.6, 0.05); /* as counted from release 26.06 on */
    struct fixture f = load_good("model: {base: deepseek-v3, num_nextn_predict_layers: 0}\n");
    double got = maq_model_flop_per_token(&f.model, 4096, true) / 1e9;
    assert_true(got > 248.5 && got < 250.5);
    done(&f);
    (void)state;
}

/* Six times the weights that multiply, and the closed form of attention. */
static void test_flop_closed_form(void **state)
{
    struct fixture f = load_name("llama-2-7b");
    double weights = 32.0 * (4.0 * 4096 * 4096 + 3.0 * 4096 * 11008) + 32000.0 * 4096;
    double full = 6.0 * weights + 12.0 * 32 * 4096 * 4096, causal = 6.0 * weights + 12.0 * 32 * 4096 * 4097 / 2.0;
    assert_true(maq_model_flop_per_token(&f.model, 4096, false) == full);
    assert_true(maq_model_flop_per_token(&f.model, 4096, true) == causal);
    done(&f);
    (void)state;
}

/* Keys counted one by one. */
static double counted_keys(const struct maq_attention_geometry *g, int64_t seq, bool full)
{
    int64_t sum = 0;
    for (int64_t q = 0; q < seq; q++) {
        int64_t from = g->chunk > 0 ? q / g->chunk * g->chunk : 0;
        int64_t to = g->chunk > 0 && from + g->chunk < seq ? from + g->chunk : seq;
        int64_t seen = full ? to - from : q - from + 1;
        sum += g->window > 0 && g->window < seen ? g->window : seen;
    }
    return (double)sum / (double)seq;
}

static void test_mean_keys(void **state)
{
    for (int64_t seq = 1; seq < 40; seq++)
        for (int64_t window = 0; window < 12; window++)
            for (int64_t chunk = 0; chunk < 12; chunk++) {
                struct maq_attention_geometry g = {.causal = true, .window = window, .chunk = chunk};
                double causal = maq_attention_mean_keys(&g, seq, false), full = maq_attention_mean_keys(&g, seq, true);
                assert_true(causal - counted_keys(&g, seq, false) < 1e-9 &&
                            counted_keys(&g, seq, false) - causal < 1e-9);
                assert_true(full - counted_keys(&g, seq, true) < 1e-9 && counted_keys(&g, seq, true) - full < 1e-9);
                g.causal = false;
                assert_true(maq_attention_mean_keys(&g, seq, false) == full);
            }
    assert_true(maq_attention_mean_keys(&(struct maq_attention_geometry){.causal = true}, 0, false) == 0.0);
    (void)state;
}

/* --- documents -------------------------------------------------------------------------------------------- */

static void test_base(void **state)
{
    struct fixture f = load_good("model: {base: llama-3.1-405b, num_hidden_layers: 12, name: proxy}\n");
    struct fixture whole = load_name("llama-3.1-405b");
    assert_int_equal(f.model.num_layers, 12);
    assert_string_equal(f.model.name, "proxy");
    assert_int_equal(whole.model.params - f.model.params, 114 * whole.model.kinds[0].params);
    assert_true(strlen(f.model.source) > 0);
    done(&f);
    done(&whole);
    f = load_good(
        "model: {base: gpt3-175b, num_hidden_layers: 4, vocab_size: 50257, make_vocab_size_divisible_by: 128}\n");
    assert_int_equal(f.model.num_layers, 4);
    assert_int_equal(f.model.vocab, 50304);
    done(&f);
    (void)state;
}

/* Figures that were not read at their source: keys of a file's config or of the file; what a job writes anew is no longer among them. */
static void test_unverified(void **state)
{
    (void)state;
#define ENTRY                                                                                                          \
    "{config: {base: llama-3.1-8b, vocab_size: 1000, num_hidden_layers: 12}, unverified: [vocab_size, "                \
    "num_hidden_layers]}"
    struct fixture f = load_good("model: " ENTRY "\n");
    assert_string_equal(f.model.unverified, "vocab_size, num_hidden_layers");
    done(&f);
    f = load_good("model: {base: " ENTRY ", vocab_size: 2000}\n");
    assert_string_equal(f.model.unverified, "num_hidden_layers");
    done(&f);
#undef ENTRY
    f = load_good("model: {config: {base: llama-3.1-8b, vocab_size: 1000}, unverified: [config]}\n");
    assert_string_equal(f.model.unverified, "config");
    done(&f);
    f = load_good("model: llama-3.1-8b\n");
    assert_null(f.model.unverified);
    done(&f);
}

static void test_megatron_keys(void **state)
{
    struct fixture f = load_good("model:\n"
                                 "  model_type: megatron\n"
                                 "  num-layers: 4\n  hidden-size: 1024\n  num-attention-heads: 16\n  vocab-size: 1000\n"
                                 "  position-embedding-type: rope\n  swiglu: true\n  normalization: RMSNorm\n"
                                 "  disable-bias-linear: true\n  untie-embeddings-and-output-weights: true\n"
                                 "  num-query-groups: 4\n  window-size: [127, 0]\n  window-attn-skip-freq: 2\n"
                                 "  num-experts: 8\n  moe-layer-freq: [0, 1, 1, 1]\n  moe-ffn-hidden-size: 256\n"
                                 "  attention-dropout: 0.0\n  hidden-dropout: 0.0\n  mtp-num-layers: 1\n");
    const struct maq_model *m = &f.model;
    assert_int_equal(m->n_kinds, 3); /* dense windowed; MoE full; MoE windowed */
    assert_int_equal(module_named(&m->kinds[0], "linear_fc2")->in, 1024 * 8 / 3 / 64 * 64);
    assert_int_equal(module_named(&m->kinds[0], "core_attention")->u.attention.window, 128);
    assert_int_equal(module_named(&m->kinds[1], "core_attention")->u.attention.window, 0);
    assert_int_equal(module_named(&m->kinds[1], "router")->u.moe.topk, 2);
    assert_int_equal(m->mtp_layers, 1);
    done(&f);
    (void)state;
}

/* Gated DeltaNet in all but every third layer: modules by hand (megatron/core/ssm/gated_delta_net). */
static void test_megatron_delta(void **state)
{
    static const char *const freqs[] = {"3", "[1, 1, 0, 1, 1, 0]"};
    (void)state;
    for (size_t i = 0; i < sizeof freqs / sizeof freqs[0]; i++) {
        char text[1024];
        (void)snprintf(text, sizeof text,
                       "model:\n  model_type: megatron\n  num_layers: 6\n  hidden_size: 512\n  num_attention_heads: 8\n"
                       "  vocab_size: 1000\n  position_embedding_type: rope\n  swiglu: true\n  normalization: RMSNorm\n"
                       "  disable_bias_linear: true\n  experimental_attention_variant: gated_delta_net\n"
                       "  linear_attention_freq: %s\n  linear_conv_kernel_dim: 4\n  linear_num_key_heads: 4\n"
                       "  linear_key_head_dim: 64\n  linear_num_value_heads: 8\n  linear_value_head_dim: 64\n",
                       freqs[i]);
        struct fixture f = load_good(text);
        const struct maq_layer *delta = &f.model.kinds[0];
        const int64_t keys = 4 * 64, values = 8 * 64;
        assert_int_equal(f.model.n_kinds, 2);
        assert_int_equal(module_named(delta, "in_proj")->params, 512 * (2 * keys + 2 * values + 2 * 8));
        assert_int_equal(module_named(delta, "conv1d")->params, (2 * keys + values) * 4);
        assert_int_equal(module_named(delta, "gated_delta_rule")->params, 2 * 8);
        assert_int_equal(module_named(delta, "out_norm")->params, 64);
        assert_int_equal(module_named(delta, "out_proj")->params, values * 512);
        uint32_t attention = 0;
        for (int64_t k = 0; k < 6; k++)
            attention += f.model.kind_of[k] != f.model.kind_of[0];
        assert_int_equal(attention, 2);
        assert_int_equal(f.model.kind_of[2], f.model.kind_of[5]);
        done(&f);
    }
}

/* The same architecture in both vocabularies gives the same modules. */
static void test_megatron_equals_hf(void **state)
{
    struct fixture hf = load_name("deepseek-v3");
    struct fixture mg =
        load_good("model:\n"
                  "  model_type: megatron\n"
                  "  num_layers: 61\n  hidden_size: 7168\n  ffn_hidden_size: 18432\n"
                  "  num_attention_heads: 128\n  vocab_size: 129280\n  position_embedding_type: rope\n"
                  "  swiglu: true\n  normalization: RMSNorm\n  add_bias_linear: false\n"
                  "  untie_embeddings_and_output_weights: true\n  multi_latent_attention: true\n"
                  "  q_lora_rank: 1536\n  kv_lora_rank: 512\n  qk_head_dim: 128\n"
                  "  qk_pos_emb_head_dim: 64\n  v_head_dim: 128\n  num_experts: 256\n"
                  "  moe_router_topk: 8\n  moe_ffn_hidden_size: 2048\n"
                  "  moe_shared_expert_intermediate_size: 2048\n  moe_router_enable_expert_bias: true\n"
                  "  moe_layer_freq: [0,0,0,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
                  "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]\n"
                  "  hidden_dropout: 0.0\n  attention_dropout: 0.0\n  mtp_num_layers: 1\n");
    assert_int_equal(mg.model.params, hf.model.params);
    assert_int_equal(mg.model.active_params, hf.model.active_params);
    assert_int_equal(mg.model.mtp.params, hf.model.mtp.params);
    assert_int_equal(mg.model.n_kinds, hf.model.n_kinds);
    for (uint32_t k = 0; k < hf.model.n_kinds; k++) {
        const struct maq_layer *a = &hf.model.kinds[k], *b = &mg.model.kinds[k];
        assert_int_equal(a->n_modules, b->n_modules);
        for (uint32_t i = 0; i < a->n_modules; i++) {
            const struct maq_module *x = &a->modules[i], *y = &b->modules[i];
            assert_string_equal(x->name, y->name);
            assert_int_equal(x->in, y->in);
            assert_int_equal(x->out, y->out);
            assert_int_equal(x->params, y->params);
            assert_int_equal(x->flags, y->flags);
            assert_int_equal(x->shard, y->shard);
        }
    }
    done(&hf);
    done(&mg);
    (void)state;
}

static const char *source_root(void)
{
    const char *root = getenv("MAQ_SOURCE_ROOT");
    return root ? root : ".";
}

/* Attention with d features a head, two norms, and a gated MLP of width ffn, if any. */
static int64_t plain_layer(int64_t h, int64_t ffn, int64_t heads, int64_t kv, int64_t d)
{
    return h * d * (2 * heads + 2 * kv) + 3 * h * ffn + 2 * h;
}

/* Families of `transformers` that differ from Llama by a setting or two: parameters by hand. */
static void test_newer_families(void **state)
{
    const int64_t h_ernie = 2560, h_m2 = 3072, h_dots = 4096, h_granite = 1536;
    const int64_t ernie = plain_layer(h_ernie, 0, 20, 4, 128), dots = plain_layer(h_dots, 0, 32, 32, 128) + 2 * 128,
                  granite_ffn = 3 * h_granite * 1024 + 64 * 3 * h_granite * 512 + h_granite * 64,
                  granite_inner = 48 * 64, granite_conv = granite_inner + 2 * 128;
    const struct {
        const char *text;
        int64_t params;
    } models[] = {
        {"{model_type: seed_oss, hidden_size: 5120, intermediate_size: 27648, num_hidden_layers: 64, "
         "num_attention_heads: 80, num_key_value_heads: 8, vocab_size: 155136, attention_out_bias: false, "
         "residual_dropout: 0.1}",
         64 * (plain_layer(5120, 27648, 80, 8, 128) + 96 * 128) + 5120 + INT64_C(2) * 155136 * 5120},
        {"{model_type: smollm3, hidden_size: 2048, intermediate_size: 11008, num_hidden_layers: 36, "
         "num_attention_heads: 16, num_key_value_heads: 4, vocab_size: 128256, no_rope_layer_interval: 4}",
         36 * plain_layer(2048, 11008, 16, 4, 128) + 2048 + 128256 * 2048},
        {"{model_type: olmo3, hidden_size: 4096, intermediate_size: 11008, num_hidden_layers: 32, "
         "num_attention_heads: 32, vocab_size: 100278, sliding_window: 4096}",
         32 * (plain_layer(4096, 11008, 32, 32, 128) + 2 * 4096) + 4096 + INT64_C(2) * 100278 * 4096},
        {"{model_type: exaone4, hidden_size: 5120, intermediate_size: 27392, num_hidden_layers: 64, "
         "num_attention_heads: 40, num_key_value_heads: 8, vocab_size: 102400, sliding_window: 4096, "
         "sliding_window_pattern: LLLG}",
         64 * (plain_layer(5120, 27392, 40, 8, 128) + 2 * 128) + 5120 + INT64_C(2) * 102400 * 5120},
        {"{model_type: ernie4_5_moe, hidden_size: 2560, intermediate_size: 12288, num_hidden_layers: 28, "
         "num_attention_heads: 20, num_key_value_heads: 4, moe_num_experts: 64, moe_k: 6, moe_intermediate_size: 1536, "
         "moe_num_shared_experts: 2, moe_layer_start_index: 1, moe_layer_end_index: 26, vocab_size: 103424}",
         28 * ernie + 2 * 3 * h_ernie * 12288 + 26 * (66 * 3 * h_ernie * 1536 + h_ernie * 64 + 64) + h_ernie +
             103424 * h_ernie},
        {"{model_type: minimax_m2, hidden_size: 3072, intermediate_size: 1536, num_hidden_layers: 62, "
         "num_attention_heads: 48, num_key_value_heads: 8, num_local_experts: 256, num_experts_per_tok: 8, "
         "vocab_size: 200064}",
         62 * (plain_layer(h_m2, 0, 48, 8, 128) + 56 * 128 + 256 * 3 * h_m2 * 1536 + h_m2 * 256 + 256) + h_m2 +
             2 * 200064 * h_m2},
        {"{model_type: dots1, hidden_size: 4096, intermediate_size: 10944, num_hidden_layers: 62, "
         "num_attention_heads: 32, n_routed_experts: 128, n_shared_experts: 2, num_experts_per_tok: 6, "
         "moe_intermediate_size: 1408, first_k_dense_replace: 1, vocab_size: 152064}",
         62 * dots + 3 * h_dots * 10944 + 61 * (130 * 3 * h_dots * 1408 + h_dots * 128 + 128) + h_dots +
             2 * 152064 * h_dots},
        {"{model_type: granitemoehybrid, hidden_size: 1536, intermediate_size: 512, shared_intermediate_size: 1024, "
         "num_hidden_layers: 2, num_attention_heads: 12, num_key_value_heads: 4, num_local_experts: 64, "
         "num_experts_per_tok: 6, vocab_size: 100352, layer_types: [mamba, attention], mamba_n_heads: 48, "
         "mamba_d_head: 64, mamba_d_state: 128, mamba_n_groups: 1, mamba_expand: 2, tie_word_embeddings: true}",
         plain_layer(h_granite, 0, 12, 4, 128) + 2 * granite_ffn + 2 * h_granite +
             h_granite * (granite_inner + granite_conv + 48) + granite_conv * 5 + 3 * 48 + granite_inner +
             granite_inner * h_granite + h_granite + 100352 * h_granite},
        {"{model_type: granitemoehybrid, hidden_size: 2048, shared_intermediate_size: 8192, num_hidden_layers: 2, "
         "num_attention_heads: 32, num_key_value_heads: 8, num_local_experts: 0, vocab_size: 100352, "
         "layer_types: [attention, attention], position_embedding_type: rope, tie_word_embeddings: true}",
         2 * plain_layer(2048, 8192, 32, 8, 64) + 2048 + 100352 * 2048},
    };
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        char text[1024];
        snprintf(text, sizeof(text), "model: %s\n", models[i].text);
        struct fixture f = load(text);
        if (f.status != MAQ_OK || f.model.params != models[i].params)
            print_error("%s\n", models[i].text);
        assert_int_equal(f.status, MAQ_OK);
        assert_int_equal(f.model.params, models[i].params);
        done(&f);
    }
    (void)state;
}

/* Which layers of the newer families rotate, see a window, scan. */
static void test_newer_layers(void **state)
{
#define SIZE "hidden_size: 512, intermediate_size: 1024, num_hidden_layers: 4, num_attention_heads: 4, vocab_size: 1000"
    struct fixture f = load("model: {model_type: exaone4, num_key_value_heads: 4, " SIZE
                            ", sliding_window: 64, sliding_window_pattern: LG}\n");
    assert_int_equal(f.model.n_kinds, 2);
    assert_int_equal(module_named(&f.model.kinds[0], "core_attention")->u.attention.window, 64);
    assert_non_null(module_named(&f.model.kinds[0], "rotary_pos_emb"));
    assert_null(module_named(&f.model.kinds[1], "rotary_pos_emb"));
    assert_int_equal(f.model.kind_of[3], 1);
    done(&f);
    f = load("model: {model_type: smollm3, " SIZE ", no_rope_layers: [1, 0, 1, 1]}\n");
    assert_null(module_named(&f.model.kinds[f.model.kind_of[1]], "rotary_pos_emb"));
    assert_non_null(module_named(&f.model.kinds[f.model.kind_of[3]], "rotary_pos_emb"));
    done(&f);
    f = load("model: {model_type: olmo3, " SIZE ", sliding_window: 64}\n");
    assert_int_equal(module_named(&f.model.kinds[f.model.kind_of[3]], "core_attention")->u.attention.window, 0);
    assert_int_equal(module_named(&f.model.kinds[f.model.kind_of[2]], "core_attention")->u.attention.window, 64);
    done(&f);
    f = load("model: {model_type: granitemoehybrid, " SIZE ", shared_intermediate_size: 1024, num_local_experts: 0, "
             "mamba_n_heads: 16, layer_types: [mamba, attention, mamba, mamba]}\n");
    assert_string_equal(f.model.kinds[f.model.kind_of[0]].mixer, "mamba2");
    assert_null(module_named(&f.model.kinds[f.model.kind_of[1]], "rotary_pos_emb"));
    assert_int_equal(module_named(&f.model.kinds[f.model.kind_of[0]], "ssm_scan")->u.ssm.head_dim, 64);
    done(&f);
#undef SIZE
    (void)state;
}

/* Nemotron-H as transformers 5 writes it: a word a layer, and no number of layers. */
static void test_layers_block_type(void **state)
{
    static const char *const models[] = {
        "{base: nemotron-h-8b, num_hidden_layers: 4, hybrid_override_pattern: 'M*-M'}",
        "{base: nemotron-h-8b, num_hidden_layers: 4, layers_block_type: [mamba, attention, mlp, mamba]}",
        "{base: nemotron-3-nano-30b-a3b, num_hidden_layers: 2, hybrid_override_pattern: ME, num_nextn_predict_layers: "
        "1, "
        "mtp_hybrid_override_pattern: '*E'}",
        "{base: nemotron-3-nano-30b-a3b, num_hidden_layers: 2, layers_block_type: [mamba, moe], "
        "num_nextn_predict_layers: 1, "
        "mtp_layers_block_type: [attention, moe]}"};
    int64_t params[4], mtp[4];
    for (int i = 0; i < 4; i++) {
        char text[512];
        snprintf(text, sizeof text, "model: %s\n", models[i]);
        struct fixture f = load(text);
        assert_int_equal(f.status, MAQ_OK);
        assert_int_equal(maq_diag_count(f.diag), 0);
        params[i] = f.model.params;
        mtp[i] = f.model.mtp.params;
        done(&f);
    }
    assert_true(params[0] == params[1] && params[2] == params[3] && mtp[2] == mtp[3] && mtp[2] > 0);
    (void)state;
}

/* Whole files that are written so, where they are at hand; the counts are those of the same layers as a pattern. */
static void test_layers_block_type_files(void **state)
{
    static const struct {
        const char *file;
        int64_t params;
    } files[] = {{"config.json", 31577940288}, {"ultra.json", 549308993536}};
    const char *shared = getenv("MAQ_SHARED");
    for (size_t i = 0; shared && i < sizeof files / sizeof *files; i++) {
        char text[1024];
        snprintf(text, sizeof text, "model: %s/data/field/b_nemotron_h_layers_block_type/%s\n", shared, files[i].file);
        struct fixture f = load(text);
        assert_int_equal(f.status, MAQ_OK);
        assert_int_equal(f.model.params, files[i].params);
        done(&f);
    }
    (void)state;
}

/* config.json files in tests/data/hf, loaded from disk as a user would. */
static void test_config_json(void **state)
{
    static const struct {
        const char *file;
        int64_t params;
        size_t findings;
    } files[] = {
        {"llama-3.1-8b/config.json", 8030261248, 0},
        {"llama-3.1-8b", 8030261248, 0}, /* the folder */
        {"gpt-oss-20b/config.json", 20914757184, 0},
        {"deepseek-v3/config.json", 671026419200, 0},
        {"gemma-3-4b/config.json", 3880263168, 0},
        {"qwen2.5-0.5b/config.json", 494032768, 0}, /* a key nobody knows, and which is off */
        {"llama-4-scout/config.json", 107769861120, 0},
        {"nemotron-h-8b/config.json", 8100852736, 0},
    };
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char text[1024];
        snprintf(text, sizeof(text), "model: %s/tests/data/hf/%s\n", source_root(), files[i].file);
        struct fixture f = load(text);
        if (f.status != MAQ_OK || maq_diag_count(f.diag) != files[i].findings) {
            char *report = maq_diag_format(f.diag, 0, false);
            print_error("%s: %s", files[i].file, report ? report : "");
            free(report);
        }
        assert_int_equal(f.status, MAQ_OK);
        assert_int_equal(maq_diag_errors(f.diag), 0);
        assert_int_equal(maq_diag_count(f.diag), files[i].findings);
        assert_int_equal(f.model.params, files[i].params);
        done(&f);
    }
    (void)state;
}

/* --- what must be refused --------------------------------------------------------------------------------- */

struct refusal {
    const char *text;
    uint16_t code;
    uint32_t line, column; /* 0: not checked */
    const char *message;
};

#define SMALL                                                                                                          \
    "hidden_size: 512, num_hidden_layers: 2, num_attention_heads: 8, intermediate_size: 1024, vocab_size: 1000"

static const struct refusal refusals[] = {
    {"model: {model_type: llama, hidden_size: 1000, num_hidden_layers: 2, num_attention_heads: 12,\n"
     "  intermediate_size: 4000, vocab_size: 1000}\n",
     1106, 1, 90, "hidden_size 1000 is not a multiple of 12 heads"},
    {"model: {model_type: llama, num_key_value_heads: 3, " SMALL "}\n", 1107, 1, 49,
     "8 query heads cannot share 3 key and value heads evenly"},
    {"model: {model_type: mixtral, num_local_experts: 4, num_experts_per_tok: 5, " SMALL "}\n", 1108, 1, 73,
     "a token cannot go to 5 of 4 experts"},
    {"model: {base: deepseek-v3, n_routed_experts: 60}\n", 1108, 0, 0, "60 experts cannot lie in 8 equal groups"},
    {"model: {base: deepseek-v3, topk_group: 9}\n", 1108, 1, 40, "a token's experts cannot lie in 9 of 8 groups"},
    {"model: {base: deepseek-v3, n_routed_experts: 8, topk_group: 4}\n", 1108, 1, 61,
     "a token cannot go to 8 experts where only 4 groups of 1 are open to it"},
    {"model: {model_type: grok-1, num_local_experts: 4, " SMALL "}\n", 1103, 1, 8,
     "the model has 4 experts but no num_experts_per_tok"},
    {"model: {model_type: llama, hiden_size: 512, " SMALL "}\n", 1104, 1, 28, "unknown key 'hiden_size' in model"},
    {"model: {model_type: llama, kv_lora_rank: 512, " SMALL "}\n", 1105, 1, 28,
     "key 'kv_lora_rank' means nothing to model_type 'llama'"},
    {"model: {model_type: lama, " SMALL "}\n", 1102, 1, 21, "model_type 'lama' is not known"},
    {"model: {" SMALL "}\n", 1103, 1, 8, "the model has no model_type"},
    {"model: {model_type: llama, hidden_size: 512}\n", 1103, 1, 8, "the model has no num_hidden_layers"},
    {"model: {model_type: llama, hidden_size: 512, num_hidden_layers: 2, num_attention_heads: 8, vocab_size: 10}\n",
     1103, 1, 8, "the model has no intermediate_size"},
    {"model: lama-3-8b\n", 1101, 1, 8, "no model and no file is named 'lama-3-8b'"},
    {"model: ''\n", 1101, 1, 8, "no model and no file is named ''"},
    {"model: [1, 2]\n", 1100, 1, 8, "a model must be a name, a path or a map"},
    {"model: {config: {base: llama-3.1-8b, vocab_size: 1000}, unverified: [vocab]}\n", 1021, 1, 70,
     "`unverified` names 'vocab', which this model does not give"},
    {"model: {base: nothing-like-it}\n", 1101, 1, 15, "no model and no file is named 'nothing-like-it'"},
    {"model: {model_type: mixtral, hidden_size: 16000000, num_hidden_layers: 16000, num_attention_heads: 8,\n"
     "  intermediate_size: 16000000, vocab_size: 1000, num_local_experts: 65000, num_experts_per_tok: 2}\n",
     1191, 1, 8, "model 'mixtral' would have more than 9.2e18 parameters"},
    {"model: {base: nemotron-h-8b, num_hidden_layers: 10}\n", 1110, 0, 0,
     "the hybrid pattern has 52 layers, the model 10"},
    {"model: {base: nemotron-h-8b, hybrid_override_pattern: MX, num_hidden_layers: 2}\n", 1110, 1, 55,
     "letter 2 of the hybrid pattern is 'X', which is no kind of layer"},
    {"model: {base: nemotron-h-8b, hybrid_override_pattern: ME, num_hidden_layers: 2, n_routed_experts: 0}\n", 1110, 1,
     55, "the hybrid pattern has experts, the model none"},
    {"model: {base: nemotron-h-8b, layers_block_type: [mamba, conv], num_hidden_layers: 2}\n", 1111, 1, 49,
     "'conv' in layers_block_type is no kind of layer"},
    {"model: {base: gpt-oss-20b, layer_types: [full_attention]}\n", 1111, 1, 41,
     "layer_types has 1 entries for 24 layers"},
    {"model: {base: gpt-oss-20b, num_hidden_layers: 1, layer_types: [round_attention]}\n", 1111, 1, 64,
     "layer type 'round_attention' is not known for this model_type"},
    {"model: {base: deepseek-v3, num_hidden_layers: 2}\n", 1110, 0, 0, "3 dense layers at the start of 2 layers"},
    {"model: {base: qwen3-30b-a3b, mlp_only_layers: [50]}\n", 1111, 1, 47,
     "'mlp_only_layers' names layer 50, the model has 48"},
    {"model: {model_type: megatron, num_layers: 2, hidden_size: 512, num_attention_heads: 8, vocab_size: 1000}\n", 1103,
     1, 8, "a learned position table needs max_position_embeddings"},
    {"model: {model_type: mistral4, " SMALL "}\n", 1116, 1, 8,
     "latent attention needs kv_lora_rank, qk_nope_head_dim and v_head_dim"},
    {"model: {base: gpt3-126m, position_embedding_type: relative}\n", 1119, 1, 51,
     "relative positions are not modelled"},
    {"model: {base: gpt3-126m, window_size: wide}\n", 1119, 1, 39, "window_size must be [left, right] in tokens"},
    {"model: {base: mpt-7b, attn_config: 3}\n", 1118, 1, 36, "attn_config must be a map"},
    {"model: {model_type: llama, hidden_size: -4, num_hidden_layers: 2, num_attention_heads: 8, vocab_size: 10}\n",
     1023, 1, 41, NULL},
    {"model: {model_type: llama, hidden_size: 99999999999999999999, num_hidden_layers: 2}\n", 1024, 0, 0, NULL},
};

static bool has_finding(struct maq_diag *diag, const struct refusal *r)
{
    for (size_t i = 0; i < maq_diag_count(diag); i++) {
        const struct maq_diag_item *item = maq_diag_at(diag, i);
        struct maq_place place = maq_diag_place(diag, item->at);
        if (item->code != r->code && !(r->code == 1024 && item->code >= 1020 && item->code < 1030))
            continue;
        if (r->message &&
            (item->msg.len != strlen(r->message) || memcmp(item->msg.ptr, r->message, item->msg.len) != 0))
            continue;
        if (r->line == 0 || (place.line == r->line && place.column == r->column))
            return true;
    }
    return false;
}

static void test_refusals(void **state)
{
    bool all = true;
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        struct fixture f = load(refusals[i].text);
        if (f.status != MAQ_BAD_INPUT || !has_finding(f.diag, &refusals[i])) {
            char *report = maq_diag_format(f.diag, 0, false);
            print_error("%sgives status %d and:\n%s", refusals[i].text, (int)f.status, report ? report : "");
            free(report);
            all = false;
        }
        done(&f);
    }
    assert_true(all);
    (void)state;
}

/* All faults of a document at once, and a hint where there is a near word. */
static void test_many_faults(void **state)
{
    struct fixture f = load("model: {model_type: mixtral, num_local_experts: 4, num_experts_per_tok: 5,\n"
                            "  num_key_value_heads: 3, intermediate_sise: 4, " SMALL "}\n");
    assert_int_equal(f.status, MAQ_BAD_INPUT);
    assert_int_equal(maq_diag_errors(f.diag), 3);
    done(&f);
    f = load("model: {model_type: llama, num_hidden_layer: 2, " SMALL "}\n");
    const struct maq_diag_item *item = maq_diag_at(f.diag, 0);
    assert_true(item->hint.len == strlen("did you mean 'num_hidden_layers'?"));
    assert_memory_equal(item->hint.ptr, "did you mean 'num_hidden_layers'?", item->hint.len);
    done(&f);
    (void)state;
}

/* A memory limit ends in a status, whatever allocation it hits. */
static void test_no_memory(void **state)
{
    enum maq_status status = MAQ_NO_MEMORY;
    size_t cap = 1;
    for (; status != MAQ_OK && cap < (1u << 22); cap += cap < 4096 ? 97 : 4099) {
        struct maq_diag *diag = maq_diag_new();
        struct maq_arena arena;
        struct maq_doc doc;
        struct maq_model model;
        maq_arena_init(&arena, cap);
        assert_int_equal(
            maq_doc_parse(&doc, "job.yaml", (struct maq_str){"model: deepseek-v3\n", 19}, MAQ_ORIGIN_DOCUMENT, diag),
            MAQ_OK);
        status = maq_model_load(&model, maq_node_get(doc.root, "model"), &arena, diag);
        assert_true(status == MAQ_OK || maq_diag_errors(diag) > 0);
        maq_doc_fini(&doc);
        maq_arena_fini(&arena);
        maq_diag_free(diag);
    }
    assert_int_equal(status, MAQ_OK);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_llama_layer),       cmocka_unit_test(test_gpt_layer),
        cmocka_unit_test(test_mla_layer),         cmocka_unit_test(test_mtp),
        cmocka_unit_test(test_parallel_layers),   cmocka_unit_test(test_norm_places),
        cmocka_unit_test(test_hybrids),           cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_published_flop),    cmocka_unit_test(test_flop_closed_form),
        cmocka_unit_test(test_mean_keys),         cmocka_unit_test(test_base),
        cmocka_unit_test(test_unverified),        cmocka_unit_test(test_newer_families),
        cmocka_unit_test(test_newer_layers),      cmocka_unit_test(test_megatron_keys),
        cmocka_unit_test(test_megatron_delta),    cmocka_unit_test(test_megatron_equals_hf),
        cmocka_unit_test(test_layers_block_type), cmocka_unit_test(test_layers_block_type_files),
        cmocka_unit_test(test_config_json),       cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_many_faults),       cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
