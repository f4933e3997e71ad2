/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_low_bit.c - what fine-tuning keeps in few bits: QLoRA's frozen linears, moments of 8 and 4 bits, optimizers with fewer moments, and losses
 * that never have all logits: memory by hand, time by bounds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "predict.h"

/* Of Llama 3.1 8B: linears of the layers, and all parameters. */
#define LINEARS (32.0 * (4096.0 * 4096 + 2.0 * 1024 * 4096 + 4096.0 * 4096 + 3.0 * 14336 * 4096))
#define ALL 8030261248.0
#define H100_BANDWIDTH 3.35e12

static double bytes_of(int what, const char *settings)
{
    struct prediction p = predict_batch("llama-3.1-8b", "b200:8", settings, 8, 1024);
    double n = p.result->stages[0].bytes[what];
    drop(&p);
    return n;
}

static void assert_same(double got, double want)
{
    if (got < want * (1 - 1e-9) || got > want * (1 + 1e-9))
        fail_msg("%.1f, want %.1f", got, want);
}

static void test_frozen_weights(void **unused)
{
    static const struct {
        const char *settings;
        double each;
    } rows[] = {{"lora_base_quantization: int8", 1},
                {"lora_base_quantization: nf4", 0.5 + 4.0 / 64},
                {"lora_base_quantization: nf4-double", 0.5 + 1.0 / 64 + 4.0 / (64 * 256)}};
    (void)unused;
    double wide = bytes_of(MAQ_MEM_WEIGHTS, "zero: 0, lora_rank: 8");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char plan[256];
        snprintf(plan, sizeof plan, "zero: 0, lora_rank: 8, %s", rows[i].settings);
        assert_same(wide - bytes_of(MAQ_MEM_WEIGHTS, plan), LINEARS * (2 - rows[i].each));
        snprintf(plan, sizeof plan, "zero: 3, lora_rank: 8, %s", rows[i].settings);
        assert_same(bytes_of(MAQ_MEM_WEIGHTS, "zero: 3, lora_rank: 8") - bytes_of(MAQ_MEM_WEIGHTS, plan),
                    LINEARS * (2 - rows[i].each) / 8);
    }
}

/* Beside the master weight of 4 bytes. */
static void test_moments(void **unused)
{
    static const struct {
        const char *settings;
        double each;
    } rows[] = {{"optimizer: adam", 8},
                {"optimizer: adam, exp_avg_dtype: bf16", 4},
                {"optimizer: adam, exp_avg_dtype: int8", 2 + 2 * 4.0 / 256},
                {"optimizer: adam, exp_avg_dtype: fp4", 1 + 2 * 4.0 / 128},
                {"optimizer: sgd", 4},
                {"optimizer: lion", 4},
                {"optimizer: lion, exp_avg_dtype: int8", 1 + 4.0 / 256},
                {"optimizer: adafactor", 0}};
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char plan[256];
        snprintf(plan, sizeof plan, "zero: 0, %s", rows[i].settings);
        assert_same(bytes_of(MAQ_MEM_OPTIMIZER, plan), ALL * (4 + rows[i].each));
    }
}

static double step_of(const char *settings)
{
    struct prediction p = predict_batch("llama-3.1-8b", "h100-sxm:1", settings, 1, 4096);
    double t = p.result->step_s;
    drop(&p);
    return t;
}

/* A frozen weight is written out in 16 bits for the forward and for the backward product: at least what the memory carries, at most twice. */
static void test_time_of_widening(void **unused)
{
    (void)unused;
    double none = step_of("lora_rank: 8, recompute: none"), nf4 = step_of("lora_rank: 8, lora_base_quantization: nf4"),
           twice = step_of("lora_rank: 8, lora_base_quantization: nf4-double");
    double least = 2 * LINEARS * (0.5 + 4.0 / 64 + 2) / H100_BANDWIDTH;
    assert_true(nf4 - none >= least && nf4 - none <= 2 * least);
    assert_true(twice > nf4);
}

/* More bytes, more time; Adafactor's passes of its own read and write the most. */
static void test_time_of_updates(void **unused)
{
    (void)unused;
    double adam = step_of("optimizer: adam"), lion = step_of("optimizer: lion"), sgd = step_of("optimizer: sgd"),
           eight = step_of("optimizer: adam, exp_avg_dtype: int8"), adafactor = step_of("optimizer: adafactor");
    assert_true(lion < adam && eight < adam && adafactor > adam);
    assert_true(lion >= sgd && lion <= sgd);
}

/* Without logits less is kept; Cut Cross-Entropy computes them once more, 2 x tokens x vocabulary x hidden FLOP. */
static void test_losses(void **unused)
{
    (void)unused;
    double linear = step_of("loss_function: linear_cross_entropy"), cut = step_of("loss_function: cut_cross_entropy");
    double again = 2 * 4096.0 * 128256 * 4096 / 989.4e12, logits = 8 / 8 * 1024.0 * 128256 * 4;
    double kept = bytes_of(MAQ_MEM_ACTIVATIONS, "zero: 0, loss_function: cross_entropy"),
           none = bytes_of(MAQ_MEM_ACTIVATIONS, "zero: 0, loss_function: cut_cross_entropy");
    assert_true(cut - linear > 0 && cut - linear < 3 * again);
    assert_same(kept - none, logits);
    assert_same(bytes_of(MAQ_MEM_ACTIVATIONS, "zero: 0, loss_function: linear_cross_entropy"), none);
}

static void test_refusals(void **unused)
{
    (void)unused;
    expect_refused("{model: llama-3.1-8b, cluster: 'h100-sxm:8', plan: {lora_rank: 8, lora_base_quantization: nf4, "
                   "precision: fp8-current}}",
                   "a weight is quantized once");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frozen_weights),  cmocka_unit_test(test_moments), cmocka_unit_test(test_time_of_widening),
        cmocka_unit_test(test_time_of_updates), cmocka_unit_test(test_losses),  cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
