/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_transformer_engine_memory.c - Megatron-LM on Transformer Engine, request by request: what its own script allocated and reserved on the zero-GPU
 * device (tests/data/memory_truth_megatron.json, core 0.16.1), what a pipeline's transfers hold, what an activation's bias takes.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/units.h"
#include "predict.h"

#define MIB (1024.0 * 1024)

/* 8 layers of 1,024 features with 4 groups of 16 heads, or 16 of 768 without. */
#define LLAMA                                                                                                          \
    "{model_type: megatron, num_layers: 8, hidden_size: 1024, ffn_hidden_size: 2816, num_attention_heads: 16, "        \
    "vocab_size: 32128, max_position_embeddings: 4096, group_query_attention: true, num_query_groups: 4, "             \
    "swiglu: true, normalization: RMSNorm, disable_bias_linear: true, position_embedding_type: rope, "                 \
    "untie_embeddings_and_output_weights: true}"
#define GPT                                                                                                            \
    "{model_type: megatron, num_layers: 8, hidden_size: 1024, num_attention_heads: 16, vocab_size: 32128, "            \
    "max_position_embeddings: 4096}"
#define DEEP                                                                                                           \
    "{model_type: megatron, num_layers: 16, hidden_size: 768, num_attention_heads: 12, vocab_size: 8064, "             \
    "max_position_embeddings: 4096}"

static struct maq_stage_result stage_on(const char *gpu, const char *model, const char *plan, int devices, int batch,
                                        uint32_t stage)
{
    char text[2048];
    snprintf(text, sizeof text,
             "{model: %s, cluster: \"%s:%d\", framework: {base: megatron-lm, keeps_workspaces: false}, plan: "
             "{zero: optim, gradient_accumulation_fusion: false, overlap_grad_reduce: false, overlap_param_gather: "
             "false, %s}, workload: {global_batch_size: %d, seq_length: 1024}}",
             model, gpu, devices, plan, batch);
    struct prediction p = predict_text(text);
    struct maq_stage_result s = p.result->stages[stage];
    drop(&p);
    return s;
}

static struct maq_stage_result stage_of(const char *model, const char *plan, int devices, int batch, uint32_t stage)
{
    return stage_on("h100-sxm", model, plan, devices, batch, stage);
}

/* Allocated and reserved, in MiB, as the script's allocator counted them. */
static void test_counted(void **state)
{
    static const struct {
        const char *model, *plan;
        int devices, batch;
        uint32_t stage;
        double allocated, reserved;
    } cases[] = {
        {LLAMA, "mbs: 2", 1, 8, 0, 3622, 3730},
        {GPT, "mbs: 8", 1, 32, 0, 6135, 6202},
        {DEEP, "mbs: 2, pp: 2", 2, 16, 1, 1647, 1744},
        {LLAMA, "mbs: 2, pp: 4, vp: 2", 4, 16, 2, 928, 1304},
    };
    (void)state;
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct maq_stage_result s =
            stage_of(cases[i].model, cases[i].plan, cases[i].devices, cases[i].batch, cases[i].stage);
        double allocated = s.allocated_bytes / MIB, reserved = s.reserved_bytes / MIB;
        if (fabs(allocated / cases[i].allocated - 1) > 0.01 || fabs(reserved / cases[i].reserved - 1) > 0.01)
            fail_msg("%s: %.0f MiB of %.0f allocated, %.0f of %.0f reserved", cases[i].plan, allocated,
                     cases[i].allocated, reserved, cases[i].reserved);
    }
}

/* What a stage needs beside states and activations. */
static double working(const struct maq_stage_result *s)
{
    double sum = s->needed_bytes;
    for (int k = 0; k < MAQ_MEM_COUNT; k++)
        sum -= k == MAQ_MEM_TRANSIENT || k == MAQ_MEM_FRAGMENTATION ? 0 : s->bytes[k];
    return sum;
}

/* Of tensors of 2 x 1,024 x 1,024 in 16 bits: a gradient that is being sent; with overlap an output, an input and two of a chunk besides. */
static void test_transfers(void **state)
{
    (void)state;
    double one[4], two[4];
    for (uint32_t s = 0; s < 4; s++) {
        struct maq_stage_result plain = stage_of(LLAMA, "mbs: 2, pp: 4", 4, 64, s),
                                chunks = stage_of(LLAMA, "mbs: 2, pp: 4, vp: 2", 4, 64, s);
        one[s] = working(&plain) / (4 * MIB);
        two[s] = working(&chunks) / (4 * MIB);
    }
    static const double more[] = {3, 4, 4, 3};
    for (int s = 0; s < 4; s++)
        if (fabs(two[s] - one[s] - more[s]) > 1e-6)
            fail_msg("stage %d: %.3f more, not %.0f", s, two[s] - one[s], more[s]);
    struct maq_stage_result in_time = stage_of(LLAMA, "mbs: 2, pp: 4, vp: 2, overlap_p2p_comm: false", 4, 64, 1);
    assert_true(fabs(working(&in_time) / (4 * MIB) - one[1]) < 1e-6);
}

/* The gradient of a bias that GeLU's kernel adds is summed over rows with 8 bytes a number. */
static void test_summed_bias(void **state)
{
    (void)state;
    struct maq_stage_result small = stage_of(GPT, "mbs: 2, pp: 2", 2, 16, 0),
                            large = stage_of(GPT, "mbs: 4, pp: 2", 2, 32, 0);
    /* of a row while the sums are made: the stream's gradient, that of GeLU's input, sums; what the second product kept is free */
    double row = 1024 * 2 + 4096 * (2 + 8 - 2), mask = 1024;
    double grown = working(&large) - working(&small);
    if (fabs(grown - 2 * 1024 * (row - mask)) > 0.01 * grown)
        fail_msg("%.0f bytes a row, not %.0f", grown / 2048, row - mask);
}

/* Before Hopper Transformer Engine's workspace is 28 MiB less, and that of PyTorch's products 23.9, in a segment of its own of whole 2 MiB. */
static void test_workspaces(void **state)
{
    (void)state;
    struct maq_stage_result hopper = stage_of(LLAMA, "mbs: 2", 1, 8, 0),
                            ampere = stage_on("a100-80gb", LLAMA, "mbs: 2", 1, 8, 0);
    const double less = (hopper.reserved_bytes - ampere.reserved_bytes) / MIB;
    if (fabs(less - (28 + 24)) > 2)
        fail_msg("%.1f MiB less are reserved on an A100", less);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counted),
        cmocka_unit_test(test_transfers),
        cmocka_unit_test(test_summed_bias),
        cmocka_unit_test(test_workspaces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
