/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_lora.c - what the names of lora_target_modules adapt: trained parameters by the counts that PEFT prints for public
 * models, the same by hand for parts of fused linears under TP, and names that mean nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "predict.h"

/* Gradients of trained parameters are kept in 4 bytes, whole without ZeRO: their number on the first device. */
static double trained(const char *model, int tp, int rank, const char *targets)
{
    char plan[512];
    snprintf(plan, sizeof plan, "zero: 0, tp: %d, lora_rank: %d, lora_target_modules: '%s'", tp, rank, targets);
    struct prediction p = predict_batch(model, "b200:8", plan, 64, 1024);
    double n = p.result->stages[0].bytes[MAQ_MEM_GRADIENTS] / 4;
    drop(&p);
    return n;
}

/* What print_trainable_parameters() says: widely quoted counts of Llama 2 7B. */
static void test_counts_of_peft(void **unused)
{
    (void)unused;
    assert_true(trained("llama-2-7b", 1, 8, "q_proj,v_proj") == 4194304);
    assert_true(trained("llama-2-7b", 1, 16, "all-linear") == 39976960);
    assert_true(trained("llama-2-7b", 1, 64, "q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj") ==
                159907840);
}

/* Of Llama 3.1 8B: hidden 4096, q 4096 wide, k and v 1024, MLP 14336, 32 layers. Per layer r (in + out) of each adapter. */
static void test_names(void **unused)
{
    static const struct {
        const char *targets;
        int per_layer; /* of rank 1 */
    } rows[] = {
        {"linear_qkv", 4096 + 6144},
        {"qkv_proj", 4096 + 6144},
        {"linear_q", 4096 + 4096},
        {"wq", 4096 + 4096},
        {"k_proj", 4096 + 1024},
        {"linear_q,linear_v", 2 * 4096 + 4096 + 1024},
        {"v_proj,linear_qkv", 4096 + 6144}, /* the whole has its part in it */
        {"linear_proj", 4096 + 4096},
        {"out_proj", 4096 + 4096}, /* Llama has no module of that name: the attention's, as in other classes */
        {"linear_fc1", 4096 + 2 * 14336},
        {"gate_proj", 4096 + 14336},
        {"w1,w3", 2 * (4096 + 14336)},
        {"down_proj", 14336 + 4096},
        {"c_proj", 4096 + 4096 + 14336 + 4096},
        {"", 4096 + 6144 + 2 * 4096 + 4096 + 2 * 14336 + 14336 + 4096},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double n = trained("llama-3.1-8b", 1, 4, rows[i].targets), want = 32.0 * 4 * rows[i].per_layer;
        if (n < want || n > want)
            fail_msg("%s: %.0f, want %.0f", rows[i].targets, n, want);
    }
}

/* TP cuts the wide side of each adapter; a rank has at least one head of keys. */
static void test_shares(void **unused)
{
    (void)unused;
    assert_true(trained("llama-3.1-8b", 4, 4, "q_proj,v_proj") == 32.0 * 4 * (2 * 4096 + 1024 + 256));
    assert_true(trained("llama-3.1-8b", 4, 4, "up_proj") == 32.0 * 4 * (4096 + 3584));
    /* StarCoder2 3B: 24 heads of 128, 2 of keys */
    assert_true(trained("starcoder2-3b", 8, 4, "k_proj") == 30.0 * 4 * (3072 + 128));
    assert_true(trained("starcoder2-3b", 8, 4, "up_proj") == 30.0 * 4 * (3072 + 12288 / 8));
}

static double bytes_of(int what, const char *more)
{
    char plan[512];
    snprintf(plan, sizeof plan, "zero: 0, lora_rank: 16, lora_target_modules: 'q_proj,v_proj,down_proj', %s", more);
    struct prediction p = predict_batch("llama-3.1-8b", "b200:1", plan, 1, 1024);
    double n = p.result->stages[0].bytes[what];
    drop(&p);
    return n;
}

/* A magnitude for each output of an adapted product; what the product and the adapter returned is kept, in 2 bytes each. */
static void test_magnitudes(void **unused)
{
    const double widths = 4096 + 1024 + 4096;
    (void)unused;
    assert_true(bytes_of(MAQ_MEM_GRADIENTS, "use_dora: true") - bytes_of(MAQ_MEM_GRADIENTS, "use_dora: false") ==
                4 * 32 * widths);
    assert_true(bytes_of(MAQ_MEM_ACTIVATIONS, "use_dora: true") - bytes_of(MAQ_MEM_ACTIVATIONS, "use_dora: false") ==
                1024 * 32 * widths * (2 + 2));
    assert_true(bytes_of(MAQ_MEM_WEIGHTS, "lora_base_quantization: nf4, use_dora: true") -
                    bytes_of(MAQ_MEM_WEIGHTS, "lora_base_quantization: nf4") ==
                2 * 32 * widths);
}

/*
 * The products that make B A of the unit matrix, out and in wide at rank r, take 2 in r (in + out) FLOP in the forward pass alone, whatever
 * the tokens are; and memory is read and written for it at least once.
 */
static void test_time_of_magnitudes(void **unused)
{
    static const int tokens[] = {128, 4096};
    const double flop = 32 * 2.0 * 16 * (4096.0 * (4096 + 4096) + 4096.0 * (4096 + 1024) + 14336.0 * (14336 + 4096)),
                 bytes = 32 * 2 * (2 * 4096.0 * 4096 + 14336.0 * 14336);
    (void)unused;
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        double step[2], forward[2];
        for (int dora = 0; dora < 2; dora++) {
            char plan[256];
            snprintf(plan, sizeof plan,
                     "zero: 0, lora_rank: 16, lora_target_modules: 'q_proj,v_proj,down_proj', use_dora: %s",
                     dora ? "true" : "false");
            struct prediction p = predict_batch("llama-3.1-8b", "h100-sxm:1", plan, 1, tokens[i]);
            step[dora] = p.result->step_s;
            forward[dora] = p.result->bucket_s[MAQ_BUCKET_FORWARD];
            drop(&p);
        }
        assert_true(forward[1] - forward[0] > flop / 989.4e12 + bytes / 3.35e12);
        assert_true(step[1] - step[0] > forward[1] - forward[0]);
    }
}

/* Latent attention and mixers have linears of other names. */
static void test_other_layers(void **unused)
{
    (void)unused;
    double q = trained("deepseek-v2-lite", 1, 1, "q_proj"), fc = trained("nemotron-h-8b", 1, 1, "in_proj");
    assert_true(q == 27.0 * (2048 + 16 * 192));
    assert_true(fc > 0);
}

/* A name is never passed over. */
static void test_refusals(void **unused)
{
    (void)unused;
#define JOB(model, targets)                                                                                            \
    "{model: " model ", cluster: 'h100-sxm:8', plan: {lora_rank: 8, lora_target_modules: '" targets "'}}"
    expect_refused(JOB("llama-3.1-8b", "foo"), "'foo' is no module that LoRA could adapt in llama-3.1-8b");
    expect_refused(JOB("llama-3.1-8b", "foo"), "llama-3.1-8b has all-linear, linear_qkv, linear_q, ");
    expect_refused(JOB("llama-3.1-8b", "q_proj,,v_proj"), "'' is no module");
    expect_refused(JOB("llama-3.1-8b", "q_proj,in_proj"), "'in_proj' is in other models, but nothing in llama-3.1-8b");
    expect_refused(JOB("llama-3.1-8b", "lm_head"), "'lm_head' is no module");
    expect_refused(JOB("gpt2", "gate_proj"), "'gate_proj' is in other models");
    expect_refused(JOB("mixtral-8x7b", "gate_proj"), "routed experts get no adapters here");
#undef JOB
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_of_peft), cmocka_unit_test(test_names),
        cmocka_unit_test(test_shares),         cmocka_unit_test(test_other_layers),
        cmocka_unit_test(test_magnitudes),     cmocka_unit_test(test_time_of_magnitudes),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
