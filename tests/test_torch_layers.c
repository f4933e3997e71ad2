/* SPDX-License-Identifier: Apache-2.0 */
/* What layers of PyTorch keep, and what DistributedDataParallel and DeepSpeed hold, by hand: src/train/memory/torch_layers.h. */
#include <math.h>

#include "predict.h"

#define LLAMA                                                                                                          \
    "{model_type: llama, num_hidden_layers: 4, hidden_size: 1024, intermediate_size: 2816, num_attention_heads: 16, "  \
    "num_key_value_heads: 4, vocab_size: 32000, max_position_embeddings: 4096, tie_word_embeddings: false}"

enum { L = 4, H = 1024, F = 2816, KV = 256, V = 32000, T = 2 * 1024 };
#define TABLE ((double)V * H)
#define LINEARS (L * (H * (H + 2.0 * KV) + H * (double)H + 3.0 * H * F))
#define PARAMS (2 * TABLE + LINEARS + (2 * L + 1) * (double)H)

/* One microbatch a step, of 2 x 1,024 tokens. */
static struct maq_stage_result stage(int devices, const char *framework, const char *plan)
{
    char text[2048];
    snprintf(text, sizeof text,
             "{model: " LLAMA ", cluster: \"h100-sxm:%d\", framework: {base: pytorch-fsdp, "
             "repeats_kv: false%s}, plan: {micro_batch_size: 2, %s}, workload: {global_batch_size: "
             "%d, seq_length: 1024}}",
             devices, framework, plan, 2 * devices);
    struct prediction p = predict_text(text);
    struct maq_stage_result s = p.result->stages[0];
    drop(&p);
    return s;
}

static double kept(const char *framework, const char *plan)
{
    return stage(8, framework, plan).bytes[MAQ_MEM_ACTIVATIONS];
}

/* What comes and goes, without the ends of blocks that count as allocated. */
static double working(const char *framework, const char *plan)
{
    struct maq_stage_result s = stage(8, framework, plan);
    double sum = s.needed_bytes;
    for (int k = 0; k < MAQ_MEM_COUNT; k++)
        sum -= k == MAQ_MEM_TRANSIENT || k == MAQ_MEM_FRAGMENTATION ? 0 : s.bytes[k];
    return sum;
}

static void assert_bytes(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * fabs(want) + 1))
        fail_msg("%.0f, not %.0f", got, want);
}

#define FSDP "data_parallel_sharding_strategy: optim_grads_params"
#define DDP "data_parallel_sharding_strategy: no_shard"

/* A copy in 4 bytes besides what the weight scales; both factors of a gate. Neither where kernels are fused. */
static void test_norms_and_gates(void **unused)
{
    (void)unused;
    assert_bytes(kept(", norms_apart: true", FSDP) - kept("", FSDP), 4.0 * T * H * (2 * L + 1));
    assert_bytes(kept(", gate_apart: true", FSDP) - kept(", gate_apart: false", FSDP), 2.0 * T * F * L);
    assert_bytes(kept(", norms_apart: true, gate_apart: true", FSDP ", fused_kernels: true") -
                     kept("", FSDP ", fused_kernels: true"),
                 0);
}

/* Norms read 4 bytes; q, k and v, gate and up each cast their input; copies of all weights that are multiplied. */
static void test_autocast(void **unused)
{
    (void)unused;
    double norms = 2.0 * T * H * (2 * L + 1), casts = 2.0 * T * H * (2 + 1) * L, copies = 2 * (LINEARS + TABLE);
    assert_bytes(kept(", autocast: true", DDP) - kept("", DDP), norms + casts + copies);
    assert_bytes(kept(", autocast: true", FSDP), kept("", FSDP)); /* parameters come in 16 bits */
    assert_bytes(kept(", autocast: true, norms_apart: true", DDP) - kept(", autocast: true", DDP),
                 4.0 * T * H * (2 * L + 1));
    struct maq_stage_result s = stage(8, ", autocast: true", DDP);
    assert_bytes(s.bytes[MAQ_MEM_WEIGHTS], 4 * PARAMS);
    assert_bytes(s.bytes[MAQ_MEM_OPTIMIZER], 8 * PARAMS);
    /* a recomputed layer keeps its input, in 4 bytes */
    assert_bytes(kept(", autocast: true", DDP ", recompute_granularity: full") -
                     kept("", DDP ", recompute_granularity: full"),
                 2.0 * T * H * L + 2.0 * T * H + 2 * TABLE);
}

/* Copies of the gradients; or gradients that are views of the buckets, and so stay; or neither, on one device. */
static void test_buckets(void **unused)
{
    (void)unused;
    assert_bytes(stage(8, ", gradient_buckets: apart", DDP).bytes[MAQ_MEM_GRADIENTS], 4 * PARAMS);
    assert_bytes(stage(8, ", gradient_buckets: views", DDP).bytes[MAQ_MEM_GRADIENTS], 4 * PARAMS);
    assert_bytes(stage(1, ", gradient_buckets: apart", DDP).bytes[MAQ_MEM_GRADIENTS], 0);
    assert_bytes(stage(8, ", gradient_buckets: apart", FSDP).bytes[MAQ_MEM_GRADIENTS], 0);
}

/* At the loss the embedding is gathered with the output, whose unit it is in. */
static void test_root_unit(void **unused)
{
    (void)unused;
    assert_bytes(working(", root_unit: true", FSDP) - working(", root_unit: false", FSDP), 2 * TABLE);
}

/* The loss is over when the bucket comes: what is there then is the bucket, the gradient of the output, and none of the kept logits. */
static void test_held_bucket(void **unused)
{
    (void)unused;
    const char plan[] =
        "data_parallel_sharding_strategy: optim_grads, main_grads_dtype: bf16, grad_reduce_dtype: bf16, "
        "reduce_bucket_size: 5e8";
    double without = working("", plan), with = working(", reduce_bucket_held: true", plan);
    double threads = 2 * 32 * 1024 * 1024.0, logits = 4.0 * T * V;
    assert_bytes(without, 2 * logits + threads);
    assert_true(with > 1e9 - logits - 2.0 * T * H && with < 1e9 - logits + 2 * TABLE + threads);
}

/* q_proj and v_proj read copies in 4 bytes; the frozen products keep nothing, and norms no factor of their weight. */
static void test_adapters(void **unused)
{
    (void)unused;
    const char plan[] = DDP ", lora_rank: 8, lora_target_modules: 'q_proj,v_proj'";
    double narrow = kept(", norms_apart: true", plan), wide = kept(", norms_apart: true, adapters_widen: true", plan);
    /* two copies of 4 bytes where one of 2 was; what attention returned is kept by itself */
    assert_bytes(wide - narrow, (2 * 4.0 - 2) * T * H * L + 2.0 * T * H * L);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_norms_and_gates), cmocka_unit_test(test_autocast),
                                       cmocka_unit_test(test_buckets),         cmocka_unit_test(test_root_unit),
                                       cmocka_unit_test(test_held_bucket),     cmocka_unit_test(test_adapters)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
