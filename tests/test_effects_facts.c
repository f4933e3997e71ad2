/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_effects_facts.c - facts of frameworks, against the operators that they put into a step: what is fused, split, cast or
 * run apart, in layers, experts and the optimizer.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "effects.h"

/* Experts without a capacity make the host wait; with one they do not. */
static void test_experts(void **unused)
{
    (void)unused;
    static const char *const capacity[] = {"0", "1"}, *const reads[] = {"true", "false"};
    double step[2][2];
    for (int c = 0; c < 2; c++)
        for (int s = 0; s < 2; s++) {
            char text[512];
            snprintf(text, sizeof text,
                     "model: {base: mixtral-8x7b, num_hidden_layers: 4}\ncluster: 'h100-sxm:8'\n"
                     "plan: {ep: 8, mbs: 1, moe_expert_capacity_factor: %s}\nworkload: {seq: 2048, gbs: 32}\n"
                     "framework: {moe_synchronizes: %s, host: {read: 500 us}}\n",
                     capacity[c], reads[s]);
            struct prediction p = predict_text(text);
            step[c][s] = p.result->step_s;
            drop(&p);
        }
    assert_close(step[1][0], step[1][1], 1e-9, "a capacity is known beforehand");
    /* 4 layers, 4 microbatches, one read each in the forward pass, beside a host 1.4 times the reference */
    double reads_s = 4 * 4 * 500e-6 / 1.4;
    assert_true(step[0][0] - step[0][1] > 0.9 * reads_s && step[0][0] - step[0][1] < 3 * reads_s);
}

/* Activations and time of experts' products in four layers of 8 experts of 14,336, of 2,048 tokens with 2 experts each. */
static double experts_memory(const char *plan, double *products_s)
{
    char text[512];
    snprintf(text, sizeof text,
             "model: {base: mixtral-8x7b, num_hidden_layers: 4}\ncluster: 'h100-sxm:8'\n"
             "plan: {ep: 8, mbs: 1, %s}\nworkload: {seq: 2048, gbs: 32}\n",
             plan);
    struct prediction p = predict_text(text);
    double bytes = p.result->stages[0].bytes[MAQ_MEM_ACTIVATIONS];
    if (products_s)
        *products_s = p.result->bucket_s[MAQ_BUCKET_FORWARD];
    drop(&p);
    return bytes;
}

/* What is routed and what is computed: a capacity pads experts, unless it only drops. */
static void test_capacity(void **unused)
{
    (void)unused;
    double even_s, padded_s, dropped_s;
    double even = experts_memory("moe_expert_capacity_factor: 0", &even_s),
           padded = experts_memory("moe_expert_capacity_factor: 1.5", &padded_s),
           dropped =
               experts_memory("moe_expert_capacity_factor: 1.5, moe_pad_expert_input_to_capacity: false", &dropped_s);
    /* an expert's row: input, gate and up, their product */
    const double row = 2.0 * (4096 + 3 * 14336), rows = 4.0 * 2048 * 2;
    assert_close(padded - even, 0.5 * rows * row, 1, "half as many rows again");
    assert_close(dropped, even, 1, "nobody has more than the mean");
    assert_true(padded_s > 1.1 * even_s);
    assert_true(fabs(dropped_s / even_s - 1) < 0.01);
    /* 2,048 x 2 / 8 x 1.001 = 512.5, of each of 8 ranks */
    assert_close(experts_memory("moe_expert_capacity_factor: 1.001", NULL) - even, 4.0 * 8 * row, 1, "rounded up");
    const double half = experts_memory("moe_expert_capacity_factor: 0.5", NULL);
    assert_close(even - half, 0.5 * rows * row, 1, "half of the rows");
    assert_close(half, experts_memory("moe_expert_capacity_factor: 0.5, moe_pad_expert_input_to_capacity: false", NULL),
                 1, "dropped alike");
    const double busy = experts_memory("moe_expert_capacity_factor: 1.2, moe_imbalance: 1.5", NULL),
                 limited = experts_memory("moe_expert_capacity_factor: 1.2, moe_imbalance: 1.5, "
                                          "moe_pad_expert_input_to_capacity: false",
                                          NULL);
    assert_true(fabs(busy / limited - 1) < 0.001);
}

/* Time of recomputation in a step of a small GPT-2 (8 layers of 768, one microbatch), without what a host costs. */
static double recomputed_s(const char *plan)
{
    char text[768];
    snprintf(text, sizeof text,
             "model: {base: gpt2, num_hidden_layers: 8}\ncluster: 'a100-80gb:1'\nplan: {mbs: 16, %s}\n"
             "workload: {seq: 1024, gbs: 16}\nframework: {" FREE_HOST_BUT(REST_FREE) "}\n",
             plan);
    struct prediction p = predict_text(text);
    double s = p.result->bucket_s[MAQ_BUCKET_RECOMPUTE];
    drop(&p);
    return s;
}

static double product_s(int64_t out, int64_t in)
{
    struct prediction p = predict_text("model: gpt2\ncluster: 'a100-80gb:1'\n");
    struct maq_op op = {.kind = MAQ_OP_GEMM, .dtype = MAQ_BF16, .flags = MAQ_OP_BIAS, .d = {16 * 1024, out, in, 1}};
    double s = maq_cost_op(NULL, &op, &maq_job_get(p.job)->cluster.groups[0].device).seconds;
    drop(&p);
    return s;
}

/*
 * torchtitan's selective checkpointing by operator: of q, k, v, proj, fc1 and fc2 the first, third and fifth are kept, and fused
 * attention; unfused attention is not on the list.
 */
static void test_recompute_by_op(void **unused)
{
    (void)unused;
    double kept = 8 * (product_s(3 * 768, 768) - product_s(768, 768) + product_s(4 * 768, 768));
    const char op[] = "recompute: selective, selective_ac_option: op", full[] = "recompute: full";
    char unfused[2][128];
    snprintf(unfused[0], sizeof unfused[0], "%s, attention_backend: unfused", op);
    snprintf(unfused[1], sizeof unfused[1], "%s, attention_backend: unfused", full);
    assert_close(recomputed_s(unfused[1]) - recomputed_s(unfused[0]), kept, kept * 1e-6, "products that are kept");
    assert_true(recomputed_s(full) - recomputed_s(op) > 1.05 * kept);
    assert_true(recomputed_s(op) > recomputed_s("recompute: selective, attention_backend: unfused, recompute_modules: "
                                                "[layernorm]"));
}

#define UNFUSED "attention_backend: unfused"
#define HALF_SOFTMAX ", attention_softmax_in_fp32: false"

/* Each fact of a framework moves the step in its direction, or leaves it where it means nothing. */
static void test_facts(void **unused)
{
    (void)unused;
    static const struct {
        const char *slow, *fast; /* insides of plan */
        const char *slow_framework, *fast_framework;
        bool equal;
    } cases[] = {
        {"cross_entropy_loss_fusion: false", "cross_entropy_loss_fusion: true", "", "", false},
        {"attention_backend: unfused", "attention_backend: flash2", "", "", false},
        {"attention_backend: flash1", "attention_backend: triton", "", "", false},
        {"attention_backend: triton", "attention_backend: flash2", "", "", false},
        {"gradient_accumulation_fusion: false", "gradient_accumulation_fusion: true", "", "", false},
        {"zero: no_shard", "zero: no_shard", "optimizer: foreach", "optimizer: fused", false},
        {"exp_avg_dtype: bf16", "exp_avg_dtype: bf16", "optimizer_casts_apart: true", "", true}, /* casts inside */
        {"pure_low_precision: true", "pure_low_precision: true", "optimizer_casts_apart: true", "", true},
        {"recompute: full", "recompute: full", "", "recompute_prunes: true", false},
        {"recompute: none", "recompute: none", "", "recompute_prunes: true", true},
        {"tp: 2, sp: false", "tp: 2, sp: false", FREE_HOST_BUT(REST_FREE) ", launches_block: true",
         FREE_HOST_BUT(REST_FREE), false}, /* the all-reduce beside the weight gradient */
        {"tp: 1", "tp: 1", FREE_HOST_BUT(REST_FREE) ", launches_block: true", FREE_HOST_BUT(REST_FREE), true},
        {"tp: 2, pp: 2, sp: false, scatter_gather_tensors_in_pipeline: false", "tp: 2, pp: 2, sp: false", "", "",
         false},
        {"tp: 2, pp: 2, sp: true, scatter_gather_tensors_in_pipeline: false", "tp: 2, pp: 2, sp: true", "", "", true},
        {UNFUSED ", masked_softmax_fusion: false", UNFUSED, "", "", false},
        {UNFUSED ", masked_softmax_fusion: false", UNFUSED ", masked_softmax_fusion: false" HALF_SOFTMAX,
         FREE_HOST_BUT(REST_FREE), FREE_HOST_BUT(REST_FREE), false},
        {UNFUSED, UNFUSED HALF_SOFTMAX, "", "", true}, /* the fused kernel has the mask in it */
        {"tp: 2, sp: false", "tp: 2, sp: false", "tp_synchronizes: true", "", false},
        {"tp: 1", "tp: 1", "tp_synchronizes: true", "", true},
        {"tp: 2, sp: false", "tp: 2, sp: false", FREE_HOST_BUT(REST_FREE) ", tp_reduces_last: true",
         FREE_HOST_BUT(REST_FREE), false},
        {"tp: 2, sp: true", "tp: 2, sp: true", FREE_HOST_BUT(REST_FREE) ", tp_reduces_last: true",
         FREE_HOST_BUT(REST_FREE), false},
        {"tp: 1", "tp: 1", "tp_reduces_last: true", "", true},
        {"tp: 2, sp: true", "tp: 2, sp: true", FREE_HOST_BUT(REST_FREE) ", tp_copies_sequence: true",
         FREE_HOST_BUT(REST_FREE), false},
        {"tp: 2, sp: false", "tp: 2, sp: false", "tp_copies_sequence: true", "", true},
        {"cp: 2", "cp: 2", FREE_HOST_BUT(REST_FREE) ", cp_merges_in_fp32: true", FREE_HOST_BUT(REST_FREE), false},
        {"cp: 2, cp_comm_type: all_gather", "cp: 2, cp_comm_type: all_gather",
         FREE_HOST_BUT(REST_FREE) ", cp_merges_in_fp32: true", FREE_HOST_BUT(REST_FREE), true},
        {"cp: 1", "cp: 1", "cp_merges_in_fp32: true", "", true},
        {"pp: 2", "pp: 2", "p2p_sends_mask: true", "", false},
        {"pp: 1", "pp: 1", "p2p_sends_mask: true", "", true},
        {"tp: 2, pp: 2, sp: false", "tp: 2, pp: 2, sp: false", "p2p_whole_gradients: true", "", false},
        {"pp: 2", "pp: 2", "p2p_whole_gradients: true", "", true},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        double slow = step_of("a100-80gb:8", cases[i].slow, cases[i].slow_framework, 64);
        double fast = step_of("a100-80gb:8", cases[i].fast, cases[i].fast_framework, 64);
        if (cases[i].equal ? slow != fast : !(slow > fast))
            fail_msg("%s {%s}: %.9g s; %s {%s}: %.9g s", cases[i].slow, cases[i].slow_framework, slow, cases[i].fast,
                     cases[i].fast_framework, fast);
    }
}

/*
 * Casts around Adam as kernels of their own: the weight, which Adam does not write then, is read from the master and
 * written; gradients of 16 bits are widened first, and their norm, their clipping and Adam move twice the bytes.
 */
static void test_optimizer_casts(void **unused)
{
    (void)unused;
    static const struct {
        const char *grads;
        struct {
            int sign, kind, read, written;
        } of[9];
    } cases[] = {
        {"fp32", {{1, MAQ_OP_OPTIMIZER, 16, 12}, {1, MAQ_OP_ELEMENTWISE, 4, 2}, {-1, MAQ_OP_OPTIMIZER, 16, 14}}},
        {"bf16",
         {{1, MAQ_OP_ELEMENTWISE, 2, 4},
          {1, MAQ_OP_ELEMENTWISE, 4, 0},
          {1, MAQ_OP_ELEMENTWISE, 4, 4},
          {1, MAQ_OP_OPTIMIZER, 16, 12},
          {1, MAQ_OP_ELEMENTWISE, 4, 2},
          {-1, MAQ_OP_ELEMENTWISE, 2, 0},
          {-1, MAQ_OP_ELEMENTWISE, 2, 2},
          {-1, MAQ_OP_OPTIMIZER, 14, 14}}},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        double at[2], want = 0;
        for (int k = 0; k < 2; k++) {
            char text[512];
            snprintf(text, sizeof text,
                     "model: {base: gpt2, num_hidden_layers: 8}\ncluster: 'a100-80gb:1'\n"
                     "plan: {zero: no_shard, mbs: 4, main_grads_dtype: %s}\nworkload: {seq: 1024, gbs: 8}\n"
                     "framework: {" FREE_HOST_BUT(REST_FREE) ", optimizer_casts_apart: %s}\n",
                     cases[i].grads, k ? "true" : "false");
            struct prediction p = predict_text(text);
            const struct maq_job *job = maq_job_get(p.job);
            at[k] = p.result->step_s;
            want = 0;
            for (size_t j = 0; j < MAQ_COUNT(cases[i].of) && cases[i].of[j].sign != 0; j++) {
                const int64_t d[] = {(int64_t)job->model.params, cases[i].of[j].read, cases[i].of[j].written};
                want += cases[i].of[j].sign * alone_s(job, cases[i].of[j].kind, MAQ_FP32, d);
            }
            drop(&p);
        }
        assert_close(at[1] - at[0], want, 10e-9, cases[i].grads);
        assert_true(at[1] > at[0]);
    }
}

/*
 * An unfused softmax is five operators of the framework to the host, forward, and four backward: a host-bound step is
 * longer by what they cost beyond the fused one's.
 */
static void test_softmax_chain(void **unused)
{
    (void)unused;
    const char host[] = "host: {forward: 2 ms, backward: 3 ms, kernel: 0 s, pass: 0 s, step: 0 s}";
    double fused = step_of("a100-80gb:1", "mbs: 1, zero: no_shard, " UNFUSED, host, 8);
    double chain = step_of("a100-80gb:1", "mbs: 1, zero: no_shard, masked_softmax_fusion: false, " UNFUSED, host, 8);
    assert_close(chain - fused, 8 * 8 * (4 * 2 * MS + 3 * 3 * MS), 1 * MS, "8 microbatches of 8 layers");
}

/* Every further call of a layer's forward pass costs what the first one did; embedding and output run once. */
static void test_forward_calls(void **unused)
{
    (void)unused;
    double at[3], forward;
    for (int i = 0; i < 3; i++) {
        char framework[256];
        snprintf(framework, sizeof framework, FREE_HOST_BUT(REST_FREE) ", forward_calls: %d", i + 1);
        at[i] = step_of("a100-80gb:1", "mbs: 4", framework, 32);
    }
    struct prediction p = predict_text("model: {base: gpt2, num_hidden_layers: 8}\ncluster: 'a100-80gb:1'\n"
                                       "plan: {mbs: 4}\nworkload: {seq: 1024, gbs: 32}\n"
                                       "framework: {" FREE_HOST_BUT(REST_FREE) "}\n");
    forward = p.result->bucket_s[MAQ_BUCKET_FORWARD];
    drop(&p);
    assert_close(at[2] - at[1], at[1] - at[0], 1e-9, "equal steps");
    assert_true(at[1] - at[0] > 0.2 * forward && at[1] - at[0] < forward); /* the rest is the output layer's */
}

/* What makes a layer's output is not recomputed: of experts the last product, its quantization and the way back, an exchange a layer. */
static void test_pruned_experts(void **unused)
{
    (void)unused;
    double step[2], exchange[2];
    for (int i = 0; i < 2; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "model: {base: mixtral-8x7b, num_hidden_layers: 4}\ncluster: 'h100-sxm:8'\n"
                 "plan: {ep: 8, mbs: 1, recompute: full}\nworkload: {seq: 4096, gbs: 32}\n"
                 "framework: {base: megatron-lm, recompute_prunes: %s}\n",
                 i == 0 ? "false" : "true");
        struct prediction p = predict_text(text);
        step[i] = p.result->step_s;
        exchange[i] = p.result->bucket_s[MAQ_BUCKET_EP];
        drop(&p);
    }
    assert_close(exchange[1], exchange[0] * 5 / 6, 0.01 * exchange[0], "two exchanges in each of three passes but one");
    assert_true(step[1] < step[0] - (exchange[0] - exchange[1]));
}

/*
 * A rank that holds four experts: three further calls for a product, and twice that where scales of small blocks are swizzled; three calls
 * an expert for a quantization but with delayed scaling. Where the host is the slower clock, the step grows by them.
 */
static void test_expert_loops(void **unused)
{
    (void)unused;
    static const struct {
        const char *precision;
        double calls; /* of the loops in a layer, forward and backward, beyond the first of each */
    } cases[] = {
        {"bf16", 6 * 3},                               /* six products */
        {"fp8-delayed", 6 * 3},                        /* four tensors quantized, all experts in one kernel */
        {"fp8-current", 6 * 3 + 4 * (12 - 1)},         /* largest values, scales, casts */
        {"mxfp8", (2 + 2) * 7 + 2 * 3 + 4 * (12 - 1)}, /* weights and quantized tensors swizzled */
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        double at[2];
        for (int k = 0; k < 2; k++) {
            char text[1024];
            snprintf(
                text, sizeof text,
                "model: {base: mixtral-8x7b, num_hidden_layers: 2}\ncluster: 'b200:2'\n"
                "plan: {ep: 2, mbs: 1, precision: %s, moe_expert_capacity_factor: 1}\nworkload: {seq: 4096, gbs: 8}\n"
                "framework: {base: megatron-lm, host: {expert: %d ms}}\n",
                cases[i].precision, 10 * (k + 1));
            struct prediction p = predict_text(text);
            at[k] = p.result->step_s;
            drop(&p);
        }
        /* 4 microbatches, 2 layers, beside a host 1.4 times the reference */
        assert_close(at[1] - at[0], 4 * 2 * cases[i].calls * 10 * MS / 1.4, 1e-6, cases[i].precision);
    }
}

/* Step of a GPT whose host is the slower clock: 10 ms an operator forward, 20 ms backward, nothing else. */
static double slow_host_s(const char *model, int layers, const char *plan)
{
    char text[1024];
    snprintf(text, sizeof text,
             "model: {base: %s, num_hidden_layers: %d}\ncluster: 'h100-sxm:8'\nplan: {mbs: 1, %s}\n"
             "workload: {seq: 1024, gbs: 32}\n"
             "framework: {host: {forward: 10 ms, backward: 20 ms, kernel: 0 s, collective: 0 s, skew: 0 s, "
             "checkpoint: 0 s, read: 0 s, expert: 0 s, p2p: 0 s, pass: 0 s, step: 0 s}}\n",
             model, layers, plan);
    struct prediction p = predict_text(text);
    double step = p.result->step_s;
    drop(&p);
    return step;
}

/* What is captured of a layer is one launch, forward and backward; with one half of it the other's operators remain. */
static void test_graph_scope(void **unused)
{
    (void)unused;
    const double beside = 1.4; /* the host of an H100 over the reference */
#define TWO_LAYERS_S(plan) (slow_host_s("gpt2", 8, plan) - slow_host_s("gpt2", 6, plan))
    double none = TWO_LAYERS_S("sp: false"), attn = TWO_LAYERS_S("cuda_graph_scope: [attn]"),
           mlp = TWO_LAYERS_S("cuda_graph_scope: [mlp]"), both = TWO_LAYERS_S("cuda_graph_scope: 'attn, mlp'"),
           all = TWO_LAYERS_S("cuda_graph_scope: full_iteration");
    assert_close(both, 4 * 2 * (10 * MS + 20 * MS) / beside, 1e-3 * both, "a launch a layer and pass");
    assert_close(attn + mlp, none + 2 * both, 1e-3 * both,
                 "what one half is spared the other is not, and a launch for each");
    assert_true(attn < none && mlp < none && all < 0.1 * both);
#undef TWO_LAYERS_S
    double whole = slow_host_s("mixtral-8x7b", 2, "ep: 8"),
           routers = slow_host_s("mixtral-8x7b", 2, "ep: 8, cuda_graph_scope: [moe_router, moe_preprocess]"),
           more = slow_host_s("mixtral-8x7b", 2, "ep: 8, cuda_graph_scope: [attn, moe_router, moe_preprocess]");
    assert_true(routers < whole && more < routers);
    assert_true(slow_host_s("mixtral-8x7b", 2, "ep: 8, cuda_graph_scope: [mlp, mamba]") == whole); /* it has neither */
}

/*
 * What surrounds the products of gpt-oss's experts, against the bytes that its kernels read and write for every element. Of the bias: with
 * probabilities in 16 bits (all-to-all) and in 32 (a fused exchange). Products that do it themselves cost nothing for it.
 */
static void test_expert_pointwise(void **unused)
{
    (void)unused;
    enum { BIAS, CLAMP };
    static const struct {
        const char *dispatcher, *apart, *plan;
        double forward[2], backward[2]; /* read, written; of the clamp for a pair of elements */
        int what;
        bool none;
    } cases[] = {
        {"alltoall", "expert_bias_apart", "", {6, 6}, {10, 6}, BIAS, false},
        {"deepep", "expert_bias_apart", "", {14, 14}, {24, 16}, BIAS, false},
        {"deepep", "clamp_apart", "", {8, 8}, {18, 12}, CLAMP, false},
        {"deepep", "expert_bias_apart", ", use_transformer_engine_op_fuser: true", {0, 0}, {0, 0}, BIAS, true},
        {"deepep", "clamp_apart", ", use_transformer_engine_op_fuser: true", {0, 0}, {0, 0}, CLAMP, true},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        double at[2], want = 0;
        for (int k = 0; k < 2; k++) {
            char text[1024];
            snprintf(text, sizeof text,
                     "model: {base: gpt-oss-20b, num_hidden_layers: 4}\ncluster: 'h100-sxm:8'\n"
                     "plan: {ep: 8, mbs: 1, dispatcher: %s%s}\nworkload: {seq: 2048, gbs: 32}\n"
                     "framework: {" FREE_HOST_BUT("expert: 0 s, " REST_FREE) ", moe_synchronizes: false, %s: %s}\n",
                     cases[i].dispatcher, cases[i].plan, cases[i].apart, k ? "true" : "false");
            struct prediction p = predict_text(text);
            at[k] = p.result->step_s;
            for (int back = 0; back < 2 && !cases[i].none; back++) {
                const double *bytes = back ? cases[i].backward : cases[i].forward;
                const int64_t d[] = {2048 * 4 * 2880, (int64_t)bytes[0], (int64_t)bytes[1]};
                want +=
                    0.5 * alone_s(maq_job_get(p.job), MAQ_OP_ELEMENTWISE, MAQ_BF16, d); /* the same in both rounds */
            }
            drop(&p);
        }
        /* four microbatches of four layers; four experts take the four rows of each token of every rank */
        assert_close(at[1] - at[0], 4 * 4 * want, 4 * 4 * 2e-9, cases[i].apart);
        assert_true(cases[i].none ? at[1] == at[0] : at[1] > at[0]);
    }
}

/*
 * With a scale for each row a tensor is quantized once for every product that reads it, by more kernels than with one
 * scale. What TP gathers is in 16 bits then, so gathers of the forward pass carry twice as much.
 */
static void test_rowwise_scales(void **unused)
{
    (void)unused;
    static const char *const precisions[] = {"fp8-current", "fp8-rowwise"};
    double step[2], tp[2], alone[2];
    for (int i = 0; i < 2; i++)
        for (int degree = 1; degree <= 8; degree += 7) {
            char text[512];
            snprintf(
                text, sizeof text,
                "model: {base: llama-3-8b, num_hidden_layers: 4}\ncluster: 'h100-sxm:%d'\n"
                "plan: {tp: %d, mbs: 4, precision: %s, zero: no_shard}\nworkload: {seq: 8192, gbs: 4}\n"
                "framework: {base: torchtitan, host: {forward: 0 s, backward: 0 s, kernel: 0 s, collective: 0 s}}\n",
                degree, degree, precisions[i]);
            struct prediction p = predict_text(text);
            step[i] = p.result->step_s;
            tp[i] = p.result->bucket_s[MAQ_BUCKET_TP];
            if (degree == 1)
                alone[i] = p.result->step_s;
            drop(&p);
        }
    assert_true(alone[1] > alone[0]);
    assert_true(step[1] - step[0] > tp[1] - tp[0]);
    assert_true(tp[1] > tp[0]);
}

/* A fact of a framework, against the operators that it puts into every layer and microbatch. */
static void test_layer_facts(void **unused)
{
    (void)unused;
    static const struct {
        const char *fact, *base, *plan;
        struct maq_op ops[3];
    } cases[] = {
        {"activation_quantized_apart",
         "megatron-lm",
         "precision: fp8-delayed",
         {{.kind = MAQ_OP_QUANTIZE, .dtype = MAQ_FP8, .d = {8192, 14336, 2}}}},
        {"repeats_kv", /* 8 heads of keys and as many of values, of 128, four times each */
         "torchtitan",
         "precision: bf16",
         {{.kind = MAQ_OP_ELEMENTWISE, .dtype = MAQ_BF16, .d = {8192 * 8 * 256, 2, 8}},
          {.kind = MAQ_OP_ELEMENTWISE, .dtype = MAQ_BF16, .d = {8192 * 8 * 256, 8, 2}}}},
        {"softmax_rereads_scores", /* 32 heads of 8,192 x 8,192: twice, and backward both tensors once */
         "jax",
         "precision: bf16, attention_backend: unfused",
         {{.kind = MAQ_OP_ELEMENTWISE, .dtype = MAQ_BF16, .d = {32LL * 8192 * 8192, 2, 0}},
          {.kind = MAQ_OP_ELEMENTWISE, .dtype = MAQ_BF16, .d = {32LL * 8192 * 8192, 2, 0}},
          {.kind = MAQ_OP_ELEMENTWISE, .dtype = MAQ_BF16, .d = {32LL * 8192 * 8192, 4, 0}}}},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        double at[2], want = 0;
        for (int k = 0; k < 2; k++) {
            char text[1024];
            snprintf(
                text, sizeof text,
                "model: {base: llama-3-8b, num_hidden_layers: 3}\ncluster: 'h100-sxm:1'\n"
                "plan: {mbs: 1, zero: no_shard, %s}\nworkload: {seq: 8192, gbs: 2}\n"
                "framework: {base: %s, host: {forward: 0 s, backward: 0 s, kernel: 0 s, collective: 0 s}, %s: %s}\n",
                cases[i].plan, cases[i].base, cases[i].fact, k ? "true" : "false");
            struct prediction p = predict_text(text);
            at[k] = p.result->step_s;
            const struct maq_device *device = &maq_job_get(p.job)->cluster.groups[0].device;
            for (int o = 0; o < 3 && k && cases[i].ops[o].kind; o++)
                want += maq_cost_op(NULL, &cases[i].ops[o], device).seconds;
            drop(&p);
        }
        assert_close(at[1] - at[0], 2 * 3 * want, 2 * 3 * 4e-9, cases[i].fact);
    }
}

/*
 * A table of tokens that is looked up by a product: in every microbatch one-hot vectors are written, 4,096 of 128,256 values, read by
 * that product and by the one for the table's gradient, instead of a gather and a scatter; and they are kept.
 */
static void test_lookup_by_product(void **unused)
{
    (void)unused;
    static const struct maq_op ops[2][3] = {
        {{.kind = MAQ_OP_EMBEDDING, .dtype = MAQ_BF16, .d = {4096, 4096, 128256}},
         {.kind = MAQ_OP_EMBEDDING_BWD, .dtype = MAQ_BF16, .d = {4096, 4096, 128256}}},
        {{.kind = MAQ_OP_ELEMENTWISE, .dtype = MAQ_BF16, .d = {4096LL * 128256, 0, 2}},
         {.kind = MAQ_OP_GEMM, .dtype = MAQ_BF16, .d = {4096, 4096, 128256, 1}},
         {.kind = MAQ_OP_GEMM, .dtype = MAQ_BF16, .d = {128256, 4096, 4096, 1}}},
    };
    double step[2], activations[2], want[2] = {0, 0};
    for (int k = 0; k < 2; k++) {
        char text[512];
        snprintf(text, sizeof text,
                 "model: {base: llama-3-8b, num_hidden_layers: 2}\ncluster: 'h100-sxm:1'\n"
                 "plan: {mbs: 1, zero: no_shard, main_grads_dtype: bf16}\nworkload: {seq: 4096, gbs: 3}\n"
                 "framework: {base: jax, embeds_by_product: %s}\n",
                 k ? "true" : "false");
        struct prediction p = predict_text(text);
        const struct maq_device *device = &maq_job_get(p.job)->cluster.groups[0].device;
        step[k] = p.result->step_s;
        activations[k] = p.result->stages[0].bytes[MAQ_MEM_ACTIVATIONS];
        for (int o = 0; o < 3 && ops[k][o].kind; o++)
            want[k] += maq_cost_op(NULL, &ops[k][o], device).seconds;
        drop(&p);
    }
    assert_close(step[1] - step[0], 3 * (want[1] - want[0]), 3 * 4e-9, "three microbatches");
    assert_close(activations[1] - activations[0], 4096.0 * 128256 * 2, 1, "one microbatch's vectors");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_experts),           cmocka_unit_test(test_capacity),
        cmocka_unit_test(test_recompute_by_op),   cmocka_unit_test(test_facts),
        cmocka_unit_test(test_optimizer_casts),   cmocka_unit_test(test_softmax_chain),
        cmocka_unit_test(test_forward_calls),     cmocka_unit_test(test_pruned_experts),
        cmocka_unit_test(test_expert_loops),      cmocka_unit_test(test_expert_pointwise),
        cmocka_unit_test(test_rowwise_scales),    cmocka_unit_test(test_layer_facts),
        cmocka_unit_test(test_lookup_by_product), cmocka_unit_test(test_graph_scope),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
