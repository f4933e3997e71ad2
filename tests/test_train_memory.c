/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_train_memory.c - memory beside model states and kept activations, against closed forms: gradients of the
 * optimizer step, DeepSpeed's flat copies, schedules of vocabulary parallelism, checkpointing by operator,
 * cross-entropy, context, communicators, the cap on cached blocks.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/units.h"
#include "predict.h"

#define MIB (1024.0 * 1024.0)
#define WORKSPACES (2 * 8320 * 1024.0)       /* of two threads, before Hopper */
#define ENGINE_WORKSPACE (4 * 1024 * 1024.0) /* of Transformer Engine, there */

#define GPT                                                                                                            \
    "{model_type: megatron, num_layers: 8, hidden_size: 2048, ffn_hidden_size: 8192, num_attention_heads: 16, "        \
    "vocab_size: 51200, max_position_embeddings: 2048, hidden_dropout: 0.0, attention_dropout: 0.0}"

/* 2,048 tokens in a microbatch, 32 sequences in a step. */
static struct prediction predict(const char *model, const char *cluster, const char *plan)
{
    return predict_batch(model, cluster, plan, 32, 2048);
}

static struct maq_stage_result stage_of(const char *model, const char *cluster, const char *plan, uint32_t stage)
{
    struct prediction p = predict(model, cluster, plan);
    struct maq_stage_result s = p.result->stages[stage];
    drop(&p);
    return s;
}

static void assert_near(double a, double b, double relative)
{
    if (!(fabs(a - b) <= relative * fabs(b)))
        fail_msg("%.17g, not %.17g", a, b);
}

/* 16-bit gradients become 4-byte ones for what the rank updates: 4 P / N, when activations are gone. */
static void test_step_gradients(void **state)
{
    static const char full[] = "recompute_granularity: full, data_parallel_sharding_strategy: optim";
    char with[256];
    snprintf(with, sizeof with, "%s, main_grads_dtype: bf16", full);
    struct maq_stage_result four = stage_of(GPT, "a100-sxm:8", full, 0), two = stage_of(GPT, "a100-sxm:8", with, 0);
    assert_near(four.bytes[MAQ_MEM_GRADIENTS], 4 * four.params, 1e-12);
    assert_near(two.bytes[MAQ_MEM_GRADIENTS], 2 * two.params, 1e-12);
    /* here the passes need more than 4 P / 8 */
    assert_near(two.bytes[MAQ_MEM_TRANSIENT], four.bytes[MAQ_MEM_TRANSIENT], 1e-12);
    struct maq_stage_result alone = stage_of(GPT, "a100-sxm:1", with, 0);
    assert_near(alone.bytes[MAQ_MEM_TRANSIENT] + alone.bytes[MAQ_MEM_ACTIVATIONS], 4 * alone.params + WORKSPACES,
                1e-12);
}

/* Adam over lists of tensors has the roots of all second moments at once: 4 P / N, beside gradients in 4 bytes where those are copies. */
static void test_roots_of_lists(void **state)
{
    static const char text[] =
        "{model: %s, cluster: \"a100-sxm:%d\", framework: {base: megatron-lm, optimizer: %s}, plan: {"
        "recompute_granularity: full, data_parallel_sharding_strategy: %s, main_grads_dtype: %s}, "
        "workload: {global_batch_size: 32, seq_length: 2048}}";
    static const struct {
        int devices;
        const char *optimizer, *sharding, *gradients;
        double each;
    } cases[] = {{1, "foreach", "no_shard", "fp32", 4},
                 {1, "foreach", "no_shard", "bf16", 8},
                 {1, "fused", "no_shard", "bf16", 4},
                 {2, "foreach", "no_shard", "fp32", 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char buf[2048];
        snprintf(buf, sizeof buf, text, GPT, cases[i].devices, cases[i].optimizer, cases[i].sharding,
                 cases[i].gradients);
        struct prediction p = predict_text(buf);
        struct maq_stage_result s = p.result->stages[0];
        assert_near(s.bytes[MAQ_MEM_TRANSIENT] + s.bytes[MAQ_MEM_ACTIVATIONS],
                    cases[i].each * s.params + WORKSPACES + ENGINE_WORKSPACE, 1e-12);
        assert_true(s.reserved_bytes >= s.allocated_bytes);
        drop(&p);
    }
}

/* DeepSpeed flattens the 16-bit gradients first: 6 P at that time, in blocks that no activation left behind. */
static void test_flat_gradients(void **state)
{
    static const char plan[] = "recompute_granularity: full, main_grads_dtype: bf16, reduce_bucket_size: %s";
    char megatron[256], deepspeed[256];
    snprintf(megatron, sizeof megatron, plan, "0");
    snprintf(deepspeed, sizeof deepspeed, plan, "5e8");
    struct maq_stage_result one = stage_of(GPT, "a100-sxm:1", megatron, 0),
                            flat = stage_of(GPT, "a100-sxm:1", deepspeed, 0);
    assert_near(flat.bytes[MAQ_MEM_TRANSIENT] - one.bytes[MAQ_MEM_TRANSIENT], 2 * one.params, 1e-12);
    assert_true(flat.reserved_bytes > one.reserved_bytes + 2 * one.params * 0.9);
}

/* Stage 0 of 4 holds 4 microbatches of its layers: 5 or 6 with the output layer spread, 6 (3/2 of the stages) interlaced. */
static void test_vocabulary_schedules(void **state)
{
    static const char *const plans[] = {
        "pipeline_model_parallel_size: 4, vocab_parallel_pipeline: true",
        "pipeline_model_parallel_size: 4, vocab_parallel_pipeline: true, disable_backward_fusion: true",
        "pipeline_model_parallel_size: 4, vocab_parallel_pipeline: true, use_interlaced_schedule: true"};
    double act[3];
    struct maq_stage_result middle = stage_of(GPT, "a100-sxm:4", "pipeline_model_parallel_size: 4", 1);
    double layers = middle.bytes[MAQ_MEM_ACTIVATIONS] / 3; /* stage 1 holds three microbatches of layers alone */
    for (int i = 0; i < 3; i++)
        act[i] = stage_of(GPT, "a100-sxm:4", plans[i], 0).bytes[MAQ_MEM_ACTIVATIONS];
    double output = act[0] - 5 * layers; /* of one microbatch */
    assert_true(output > 0 && output < layers);
    assert_near(act[1], 6 * layers + 2 * output, 1e-9);
    assert_near(act[2], 6 * layers + output, 1e-9);
}

/* A layer of width h, MLP 4 h: input h; of q, k, v, proj, fc1, fc2 the first, third and fifth, h + h + 4 h; attention's h, 4 bytes of
 * log-sum-exp per head. */
static void test_checkpoint_by_op(void **state)
{
    static const char all[] = "recompute_granularity: full",
                      op[] = "recompute_granularity: selective, selective_ac_option: op";
    struct maq_stage_result whole = stage_of(GPT, "a100-sxm:1", all, 0), by_op = stage_of(GPT, "a100-sxm:1", op, 0);
    double tokens = 2048, h = 2048, layer = tokens * (h * 2 * (1 + 6 + 1) + 4 * 16);
    assert_near(by_op.bytes[MAQ_MEM_ACTIVATIONS] - whole.bytes[MAQ_MEM_ACTIVATIONS], 8 * (layer - tokens * h * 2),
                1e-9);
}

/* Per logit: Megatron-LM 4 kept and, with the gradient of what the product read, 2 beside; PyTorch 4 and 8, or in 16 bits 2 and 6. */
static void test_cross_entropy(void **state)
{
    static const char *const plans[] = {
        "recompute_granularity: full", "recompute_granularity: full, loss_function: cross_entropy",
        "recompute_granularity: full, loss_function: cross_entropy, fp32_upcast: false"};
    static const double kept[] = {4, 4, 2}, beside[] = {2, 8, 6};
    double logits = 2048.0 * 51200, read = 2048.0 * 2048 * 2, base = 0;
    for (int i = 0; i < 3; i++) {
        struct maq_stage_result s = stage_of(GPT, "a100-sxm:1", plans[i], 0);
        base = i == 0 ? s.bytes[MAQ_MEM_ACTIVATIONS] : base;
        assert_near(s.bytes[MAQ_MEM_ACTIVATIONS], base + (kept[i] - 4) * logits, 1e-9);
        assert_near(s.bytes[MAQ_MEM_TRANSIENT], beside[i] * logits + (i == 0 ? read : 0) + WORKSPACES, 1e-9);
    }
}

/*
 * A layer that is recomputed works when the logits are gone: where it needs more than they do, the peak does not hang on the vocabulary.
 * While the weight gradients of the output wait for a pass of their own, its logits are there.
 */
static void test_logits_are_gone(void **state)
{
    static const struct {
        const char *plan;
        double logit; /* bytes of the peak, of each microbatch in flight */
    } cases[] = {{"attention_backend: unfused, recompute_granularity: full", 0},
                 {"attention_backend: unfused", 0},
                 {"attention_backend: unfused, pipeline_model_parallel_size: 2, pipeline_schedule: zb-h1", 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double bytes[2], held = 0;
        for (int k = 0; k < 2; k++) {
            char model[512];
            snprintf(model, sizeof model,
                     "{model_type: megatron, num_layers: 8, hidden_size: 2048, ffn_hidden_size: 8192, "
                     "num_attention_heads: 16, vocab_size: %d, max_position_embeddings: 2048, hidden_dropout: 0.0, "
                     "attention_dropout: 0.0}",
                     1024 << k);
            struct maq_stage_result s = stage_of(model, i == 2 ? "a100-sxm:2" : "a100-sxm:1", cases[i].plan, i == 2);
            held = s.peak_microbatches;
            bytes[k] = s.bytes[MAQ_MEM_ACTIVATIONS] + s.bytes[MAQ_MEM_TRANSIENT];
        }
        assert_near(bytes[1] - bytes[0] + 1, cases[i].logit * held * 2048 * 1024 + 1, 1e-6);
    }
}

/* A stage of a searched schedule holds no more microbatches than the limit, and the bytes of as many as its order says. */
static void test_pending_backward(void **state)
{
    (void)state;
    double each[4] = {0};
    for (int limit = 1; limit <= 9; limit++) {
        char buf[512];
        snprintf(buf, sizeof buf,
                 "{model: {base: llama-3.1-8b, num_hidden_layers: 8}, cluster: \"h100-sxm:4\", plan: {"
                 "pipeline_model_parallel_size: 4, pipeline_schedule: zb-auto, zero_bubble_max_pending_backward: %d}, "
                 "workload: {global_batch_size: 16, seq_length: 2048}}",
                 limit);
        struct prediction p = predict_text(buf);
        for (int s = 0; s < 4; s++) {
            const struct maq_stage_result *st = &p.result->stages[s];
            assert_true(st->peak_microbatches >= 1 && st->peak_microbatches <= (uint32_t)limit);
            if (limit == 1)
                each[s] = st->bytes[MAQ_MEM_ACTIVATIONS];
            assert_near(st->bytes[MAQ_MEM_ACTIVATIONS], st->peak_microbatches * each[s], 1e-9);
        }
        drop(&p);
    }
}

/* Megatron-Core without fused kernels keeps what the experts' activation returns besides its product with the probabilities: of 2,048
 * tokens to 2 experts each, 4,096 elements wide, in each of 8 layers. A recomputed one keeps neither. */
static void test_scores_apart(void **state)
{
    static const char text[] =
        "{model: {model_type: megatron, num_layers: 8, hidden_size: 2048, num_attention_heads: 16, "
        "num_experts: 8, moe_router_topk: 2, moe_ffn_hidden_size: 4096, vocab_size: 1024, "
        "add_bias_linear: false, position_embedding_type: rope}, cluster: \"h100-sxm:8\", "
        "framework: {base: megatron-lm, expert_scores_apart: %s}, plan: {"
        "expert_model_parallel_size: 8, fused_kernels: %s%s}, "
        "workload: {global_batch_size: 32, seq_length: 2048}}";
    static const char redo[] = ", recompute_granularity: selective, recompute_modules: [moe_act]";
    static const struct {
        const char *fused, *more;
        double layers;
    } cases[] = {{"false", "", 8}, {"true", "", 0}, {"false", redo, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double bytes[2];
        for (int apart = 0; apart < 2; apart++) {
            char buf[2048];
            snprintf(buf, sizeof buf, text, apart ? "true" : "false", cases[i].fused, cases[i].more);
            struct prediction p = predict_text(buf);
            bytes[apart] = p.result->stages[0].bytes[MAQ_MEM_ACTIVATIONS];
            drop(&p);
        }
        assert_near(bytes[1] - bytes[0] + 1, cases[i].layers * 2048 * 2 * 4096 * 2 + 1, 1e-9);
    }
}

/*
 * FSDP while the loss is worked out: parameters of the output and of the layer ahead are gathered, and no gradient is there yet. What is
 * gathered into comes from a pool of its own: of two entries one after the other, of which the layer's is in what is allocated.
 */
static void test_fsdp_at_the_loss(void **state)
{
    static const char plan[] = "recompute_granularity: full, data_parallel_sharding_strategy: %s, fsdp_prefetch: %d, "
                               "micro_batch_size: 4",
                      model[] =
                          "{model_type: megatron, num_layers: 8, hidden_size: 2048, ffn_hidden_size: 8192, "
                          "num_attention_heads: 16, vocab_size: 51200, max_position_embeddings: 2048, "
                          "hidden_dropout: 0.0, attention_dropout: 0.0, untie_embeddings_and_output_weights: true}";
    double h = 2048, logits = 4 * 2048 * 51200.0, read = 4 * 2048 * h * 2, layer = 12 * h * h + 13 * h,
           output = 51200 * h + 2 * h;
    for (int ahead = 0; ahead < 3; ahead++) {
        char text[256];
        snprintf(text, sizeof text, plan, "optim_grads_params", ahead);
        struct maq_stage_result s = stage_of(model, "a100-sxm:8", text, 0);
        assert_near(s.bytes[MAQ_MEM_TRANSIENT], 2 * logits + read + 2 * (output + ahead * layer) + WORKSPACES, 1e-12);
        assert_true(s.reserved_bytes - s.allocated_bytes >= 2 * (output + layer - ahead * layer) * (1 - 1e-12));
    }
}

static void test_context_and_communicators(void **state)
{
    struct maq_stage_result lazy = stage_of(GPT, "a100-sxm:1", "", 0),
                            eager = stage_of(GPT, "a100-sxm:1", "cuda_module_loading: eager", 0);
    assert_near(lazy.bytes[MAQ_MEM_CONTEXT], 0.6 * 1024 * MIB, 1e-12);
    assert_near(eager.bytes[MAQ_MEM_CONTEXT], 1573 * MIB, 1e-12);
    assert_true(lazy.bytes[MAQ_MEM_NCCL] == 0);
    /* data parallelism and the whole job: 16 channels, 3 buffers of 9.1875 MiB each */
    double communicator = 16 * 3 * (0.5 + 4.6875 + 4) * MIB;
    assert_near(stage_of(GPT, "a100-sxm:8", "", 0).bytes[MAQ_MEM_NCCL], 2 * communicator, 1e-12);
    /* TP and PP as well: their own, and the one of a whole pipeline */
    assert_near(stage_of(GPT, "a100-sxm:8", "tensor_model_parallel_size: 2, pipeline_model_parallel_size: 2", 0)
                    .bytes[MAQ_MEM_NCCL],
                5 * communicator, 1e-12);
    /* HybridEP: room for the tokens of eight ranks, 2,048 numbers in 16 bits and 128 probabilities each */
    const char *moe = "{base: qwen3-30b-a3b, num_hidden_layers: 4}";
    struct maq_stage_result all_to_all =
                                stage_of(moe, "h100-sxm:8", "expert_model_parallel_size: 8, micro_batch_size: 2", 0),
                            hybrid = stage_of(moe, "h100-sxm:8",
                                              "expert_model_parallel_size: 8, micro_batch_size: 2, "
                                              "moe_token_dispatcher_type: hybridep",
                                              0);
    assert_near(hybrid.bytes[MAQ_MEM_NCCL] - all_to_all.bytes[MAQ_MEM_NCCL], 8 * 2 * 2048 * (2.0 * 2048 + 4 * 128),
                1e-12);
}

/* Parameters that stay gathered from forward to backward (SHARD_GRAD_OP) are all there at the peak. */
static void test_gathered_parameters(void **state)
{
    static const char keep[] = "data_parallel_sharding_strategy: optim_grads_params, reshard_after_forward: false",
                      free_them[] = "data_parallel_sharding_strategy: optim_grads_params";
    struct maq_stage_result kept = stage_of(GPT, "a100-sxm:8", keep, 0),
                            freed = stage_of(GPT, "a100-sxm:8", free_them, 0);
    assert_near(kept.bytes[MAQ_MEM_WEIGHTS] - freed.bytes[MAQ_MEM_WEIGHTS], 2 * kept.params, 1e-12);
}

/* Of four microbatches: gradients add up whole in the type of the wire, parameters stay gathered. Of one, nothing adds up. */
static void test_kept_whole(void **state)
{
    static const struct {
        const char *plan;
        double gradients, gathered; /* bytes per parameter */
    } cases[] = {{"micro_batch_size: 1", 4.0 / 8, 0},
                 {"micro_batch_size: 1, reduce_once_per_step: true", 4, 0},
                 {"micro_batch_size: 1, reduce_once_per_step: true, grad_reduce_dtype: bf16", 2, 0},
                 {"micro_batch_size: 1, gather_once_per_step: true", 4, 2},
                 {"micro_batch_size: 4, reduce_once_per_step: true", 4.0 / 8, 0},
                 {"micro_batch_size: 4, gather_once_per_step: true", 4.0 / 8, 2}};
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        char plan[256];
        snprintf(plan, sizeof plan, "data_parallel_sharding_strategy: optim_grads_params, %s", cases[i].plan);
        struct maq_stage_result s = stage_of(GPT, "a100-sxm:8", plan, 0);
        assert_near(s.bytes[MAQ_MEM_GRADIENTS], cases[i].gradients * s.params, 1e-12);
        assert_near(s.bytes[MAQ_MEM_WEIGHTS], (4.0 / 8 + cases[i].gathered) * s.params, 1e-12);
    }
}

/*
 * Gradients that come with the backward pass are not there when activations are most; the pool that reductions write them to stays
 * reserved. With several microbatches they are there from the first one on; where the update needs more than the passes, they are, too.
 */
static void test_coming_gradients(void **state)
{
    static const struct {
        const char *plan;
        double left; /* of the gradients, at the peak */
    } cases[] = {{"micro_batch_size: 4", 0},
                 {"micro_batch_size: 1", 1},
                 {"micro_batch_size: 4, tensor_model_parallel_size: 8, recompute_granularity: full", 1}};
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct maq_stage_result s[2];
        for (int frees = 0; frees < 2; frees++) {
            char text[1024];
            snprintf(text, sizeof text,
                     "{model: %s, cluster: \"a100-sxm:8\", plan: {%s}, framework: {base: pytorch-fsdp, "
                     "root_unit: false, frees_gradients: %s}, "
                     "workload: {global_batch_size: %d, seq_length: %d}}",
                     GPT, cases[i].plan, frees ? "true" : "false", i == 2 ? 4 : 32, i == 2 ? 64 : 2048);
            struct prediction p = predict_text(text);
            s[frees] = p.result->stages[0];
            drop(&p);
        }
        double gradients = s[0].bytes[MAQ_MEM_GRADIENTS];
        assert_true(gradients > 0);
        assert_near(s[1].bytes[MAQ_MEM_GRADIENTS], cases[i].left * gradients, 1e-12);
        assert_near(s[0].allocated_bytes - s[1].allocated_bytes, (1 - cases[i].left) * gradients, 1e-9);
        assert_in_range(s[1].reserved_bytes / s[0].reserved_bytes * 1000, 950,
                        1005); /* replayed with them and without */
    }
}

/*
 * Scores of 16 heads. Megatron's kernel keeps the softmax in 16 bits; apart from it, PyTorch's in 4 bytes besides
 * what the product of the values reads, and its gradient, its product with the output and the result on the way back,
 * when that is gone. In 16 bits: the same three.
 */
static void test_widened_softmax(void **state)
{
    static const char unfused[] = "attention_backend: unfused, pipeline_model_parallel_size: 4, micro_batch_size: 1";
    double scores = 16.0 * 2048 * 2048, in_flight = 4 * 2;
    char apart[256], narrow[320];
    snprintf(apart, sizeof apart, "%s, masked_softmax_fusion: false", unfused);
    snprintf(narrow, sizeof narrow, "%s, attention_softmax_in_fp32: false", apart);
    struct maq_stage_result fused = stage_of(GPT, "a100-sxm:4", unfused, 0),
                            wide = stage_of(GPT, "a100-sxm:4", apart, 0), half = stage_of(GPT, "a100-sxm:4", narrow, 0);
    assert_near(wide.bytes[MAQ_MEM_ACTIVATIONS] - fused.bytes[MAQ_MEM_ACTIVATIONS], 4 * scores * in_flight, 1e-12);
    assert_near(half.bytes[MAQ_MEM_ACTIVATIONS], fused.bytes[MAQ_MEM_ACTIVATIONS], 1e-12);
    assert_near(half.bytes[MAQ_MEM_TRANSIENT] - fused.bytes[MAQ_MEM_TRANSIENT], (6 - 2) * scores, 1e-12);
    assert_near(wide.bytes[MAQ_MEM_TRANSIENT] - fused.bytes[MAQ_MEM_TRANSIENT], (12 - 2 - 2) * scores, 1e-12);
}

/*
 * Keys and values copied out to as many heads as queries have: autograd keeps the copies, a compiled layer and checkpointing by operator make
 * them again. 24 heads of 256 features beyond the 8 that are there anyway.
 */
static void test_copied_heads(void **state)
{
    static const struct {
        const char *plan;
        double kept;
    } cases[] = {{"fused_kernels: false", 1},
                 {"fused_kernels: true", 0},
                 {"fused_kernels: false, recompute: selective, selective_ac_option: op", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double bytes[2];
        for (int k = 0; k < 2; k++) {
            char text[1024];
            snprintf(text, sizeof text,
                     "{model: {base: llama-3-8b, num_hidden_layers: 4}, cluster: 'h100-sxm:1', workload: {gbs: 1, seq: "
                     "4096},"
                     " plan: {mbs: 1, zero: no_shard, %s}, framework: {base: torchtitan, repeats_kv: %s}}",
                     cases[i].plan, k ? "true" : "false");
            struct prediction p = predict_text(text);
            bytes[k] = p.result->stages[0].bytes[MAQ_MEM_ACTIVATIONS];
            drop(&p);
        }
        assert_near(bytes[1] - bytes[0] + 1, cases[i].kept * 4 * 4096 * 24 * 256 * 2 + 1, 1e-9);
    }
}

/* Cached blocks go back to the driver: what nvidia-smi shows is never more than the device has, as long as the job fits. */
static void test_cache_is_capped(void **state)
{
    bool any = false;
    for (int layers = 8; layers <= 40; layers += 4) {
        char model[512];
        snprintf(model, sizeof model,
                 "{model_type: megatron, num_layers: %d, hidden_size: 4096, ffn_hidden_size: 16384, "
                 "num_attention_heads: 32, vocab_size: 51200, max_position_embeddings: 2048}",
                 layers);
        struct prediction p = predict(model, "a100-sxm:4",
                                      "micro_batch_size: 8, attention_backend: unfused, "
                                      "recompute_granularity: full");
        const struct maq_stage_result *s = &p.result->stages[0];
        assert_near(s->total_bytes, s->reserved_bytes + s->bytes[MAQ_MEM_CONTEXT] + s->bytes[MAQ_MEM_NCCL], 1e-12);
        if (p.result->fits)
            assert_true(s->total_bytes <= s->capacity_bytes * (1 + 1e-12));
        else
            assert_true(s->bytes[MAQ_MEM_FRAGMENTATION] == 0);
        any |= s->returns_cache;
        drop(&p);
    }
    assert_true(any);
}

/* Of one more layer: eight less four. */
static double kept_by_layer(const char *model, const char *of_four, const char *of_eight)
{
    double bytes[2];
    for (int i = 0; i < 2; i++) {
        char text[1024];
        snprintf(
            text, sizeof text,
            "{model_type: %s, num_hidden_layers: %d, hidden_size: 2048, intermediate_size: 8192, "
            "num_attention_heads: 16, num_key_value_heads: 4, vocab_size: 32000, mamba_n_heads: 64, mamba_d_head: 64, "
            "mamba_n_groups: 1, mamba_d_state: 128, %s}",
            model, 4 + 4 * i, i ? of_eight : of_four);
        bytes[i] = stage_of(text, "h100-sxm:8", "micro_batch_size: 1", 0).bytes[MAQ_MEM_ACTIVATIONS];
    }
    return (bytes[1] - bytes[0]) / 4;
}

/*
 * Attention and Mamba-2 side by side behind one norm (Falcon-H1) keep what layers with either keep, but once what those share: the norm's
 * input and its output, and the norms and the MLP behind. The gated output of the scan is not normed.
 */
static void test_side_by_side(void **state)
{
    double u = 2048.0 * 2048 * 2, mlp = (2 + 3 * 8192 / 2048) * u, inner = 4096 / 2048 * u;
    double attention = kept_by_layer("bamba", "partial_rotary_factor: 1.0, attn_layer_indices: [0, 1, 2, 3]",
                                     "partial_rotary_factor: 1.0, attn_layer_indices: [0, 1, 2, 3, 4, 5, 6, 7]"),
           scan = kept_by_layer("bamba", "", ""),
           both = kept_by_layer("falcon_h1", "mamba_d_ssm: 4096", "mamba_d_ssm: 4096");
    (void)state;
    assert_near(both, attention + scan - mlp - 2 * u - inner, 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_step_gradients),
        cmocka_unit_test(test_flat_gradients),
        cmocka_unit_test(test_side_by_side),
        cmocka_unit_test(test_vocabulary_schedules),
        cmocka_unit_test(test_checkpoint_by_op),
        cmocka_unit_test(test_cross_entropy),
        cmocka_unit_test(test_context_and_communicators),
        cmocka_unit_test(test_gathered_parameters),
        cmocka_unit_test(test_kept_whole),
        cmocka_unit_test(test_coming_gradients),
        cmocka_unit_test(test_copied_heads),
        cmocka_unit_test(test_cache_is_capped),
        cmocka_unit_test(test_widened_softmax),
        cmocka_unit_test(test_roots_of_lists),
        cmocka_unit_test(test_logits_are_gone),
        cmocka_unit_test(test_pending_backward),
        cmocka_unit_test(test_scores_apart),
        cmocka_unit_test(test_fsdp_at_the_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
