/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_precision.c - what a recipe of 8 or 4 bits leaves in 16, and what it takes beyond the products of the layers: layers at the ends,
 * the output layer, attention; what quantized weights hold in memory and on the wire.
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

#define FREE "framework: {" FREE_HOST_BUT("expert: 0 s, " REST_FREE) "%s}"

static struct prediction predict(const char *model, const char *cluster, const char *plan, const char *framework)
{
    char text[2048];
    snprintf(text, sizeof text, "model: %s\ncluster: '%s'\nplan: {%s}\nworkload: {seq: 4096, gbs: 32}\n" FREE "\n",
             model, cluster, plan, framework);
    return predict_text(text);
}

static double step_with(const char *model, const char *cluster, const char *plan)
{
    struct prediction p = predict(model, cluster, plan, "");
    double step = p.result->step_s;
    drop(&p);
    return step;
}

#define EIGHT "{base: llama-3.1-8b, num_hidden_layers: 8}"

/* Every layer that stays in 16 bits costs the same, at either end, and all of them are a job in 16 bits. */
static void test_layers_at_the_ends(void **unused)
{
    (void)unused;
    static const char *const precisions[] = {"fp8-current", "fp8-blockwise", "mxfp8", "nvfp4"};
    for (size_t i = 0; i < MAQ_COUNT(precisions); i++) {
        double at[5];
        static const int ends[][2] = {{0, 0}, {1, 0}, {0, 1}, {2, 3}, {8, 8}};
        for (size_t k = 0; k < MAQ_COUNT(ends); k++) {
            char plan[256];
            snprintf(plan, sizeof plan,
                     "precision: %s, first_last_layers_bf16: true, num_layers_at_start_in_bf16: %d, "
                     "num_layers_at_end_in_bf16: %d",
                     precisions[i], ends[k][0], ends[k][1]);
            at[k] = step_with(EIGHT, "b200:1", plan);
        }
        char none[64];
        snprintf(none, sizeof none, "precision: %s", precisions[i]);
        double narrow = step_with(EIGHT, "b200:1", none), wide = step_with(EIGHT, "b200:1", "precision: bf16");
        double each = at[1] - at[0];
        assert_true(at[0] == narrow && each > 0.02 * narrow);
        assert_close(at[2], at[1], 1e-6 * narrow, "one at the end, one at the start");
        assert_close(at[3], narrow + 5 * each, 1e-4 * narrow, "five layers");
        assert_close(at[4], wide, 1e-4 * wide, "all of them");
    }
}

/* Two pipeline stages: the longer one has the layers, wherever they lie in the model. */
static void test_ends_lie_in_their_stages(void **unused)
{
    (void)unused;
#define ENDS "precision: mxfp8, first_last_layers_bf16: true, pp: 2, "
    double none = step_with(EIGHT, "b200:2", "precision: mxfp8, pp: 2"),
           both = step_with(EIGHT, "b200:2", ENDS "num_layers_at_end_in_bf16: 1"),
           last = step_with(EIGHT, "b200:2", ENDS "num_layers_at_start_in_bf16: 0, num_layers_at_end_in_bf16: 2");
    assert_true(none < both && both < last);
}

/* Of a model that is not shared: weights in 16 bits and what is quantized of them, once or along both dimensions. */
static void test_quantized_weights(void **unused)
{
    (void)unused;
    static const struct {
        const char *device, *plan;
        double wide, narrow; /* bytes per parameter that stays, that is quantized */
    } cases[] = {
        {"h100-sxm:1", "precision: bf16", 2, 2},
        {"h100-sxm:1", "precision: fp8-delayed", 2, 2 + 2},
        {"h100-sxm:1", "precision: fp8-current", 2, 2 + 2},
        {"h100-sxm:1", "precision: fp8-blockwise", 2, 2 + 2 * (1 + 4.0 / 128)},
        {"b200:1", "precision: fp8-current", 2, 2 + 1}, /* operands may lie either way there */
        {"b200:1", "precision: mxfp8", 2, 2 + 2 * (1 + 1.0 / 32)},
        {"b200:1", "precision: nvfp4", 2, 2 + 2 * (0.5 + 1.0 / 16)},
        {"b200:1", "precision: mxfp8, fp8_param_gather: true", 2, 2 * (1 + 1.0 / 32)},
    };
    /* a layer of the 8B model: linears without biases, two norms */
    const double linears = 4096.0 * 6144 + 4096.0 * 4096 + 3 * 4096.0 * 14336, norms = 2 * 4096.0;
    const double layers = 8, ends = 2 * 128256.0 * 4096 + 4096;
    for (size_t i = 0; i < MAQ_COUNT(cases); i++)
        for (int kept = 0; kept <= 3; kept += 3) {
            char plan[256];
            bool delayed = strstr(cases[i].plan, "delayed") != NULL; /* refuses layers apart */
            snprintf(plan, sizeof plan,
                     "%s, zero: no_shard, first_last_layers_bf16: %s, num_layers_at_start_in_bf16: 0, "
                     "num_layers_at_end_in_bf16: %d",
                     cases[i].plan, delayed ? "false" : "true", kept);
            struct prediction p = predict(EIGHT, cases[i].device, plan, "");
            double narrow = linears * (layers - (delayed ? 0 : kept)),
                   wide = linears * layers + norms * layers + ends - narrow;
            assert_close(p.result->stages[0].bytes[MAQ_MEM_WEIGHTS], cases[i].wide * wide + cases[i].narrow * narrow,
                         1024, plan);
            drop(&p);
        }
}

/* The output layer is quantized on demand. */
static void test_output_layer(void **unused)
{
    (void)unused;
    double apart = step_with(EIGHT, "b200:1", "precision: mxfp8"),
           too = step_with(EIGHT, "b200:1", "precision: mxfp8, fp8_output_proj: true");
    /* 32 sequences of 4,096, three products of 4,096 x 128,256 at 1.5 PFLOP/s, half of it gone */
    double products = 3 * 2.0 * 32 * 4096 * 4096 * 128256 / 1.5e15;
    assert_true(apart - too > 0.2 * products && apart - too < 0.7 * products);
}

/* Attention in 8 bits is faster, and keeps Q, K and V in 8 bits, or in both directions of blocks. */
static void test_attention(void **unused)
{
    (void)unused;
    static const struct {
        const char *device, *precision;
        double qkv_bytes, out_bytes;
    } cases[] = {
        {"h100-sxm:1", "fp8-delayed", 1, 1}, /* its result is in 8 bits as well */
        {"b200:1", "fp8-current", 1, 2},
        {"gb300:1", "nvfp4", 1, 2},
        {"gb300:1", "mxfp8", 2 * (1 + 1.0 / 32), 2},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        double step[2], kept[2];
        for (int on = 0; on < 2; on++) {
            char plan[128];
            snprintf(plan, sizeof plan, "precision: %s, fp8_dot_product_attention: %s", cases[i].precision,
                     on ? "true" : "false");
            struct prediction p = predict("{base: llama-3.1-8b, num_hidden_layers: 1}", cases[i].device, plan, "");
            step[on] = p.result->step_s;
            kept[on] = p.result->stages[0].bytes[MAQ_MEM_ACTIVATIONS];
            drop(&p);
        }
        assert_close(kept[0] - kept[1], 4096.0 * (6144 * (2 - cases[i].qkv_bytes) + 4096 * (2 - cases[i].out_bytes)),
                     1024, cases[i].precision);
        if (strcmp(cases[i].device, "h100-sxm:1") != 0 && step[1] >= step[0]) /* backward masks nothing on Hopper */
            fail_msg("%s: %g s with attention in 8 bits, %g s without", cases[i].precision, step[1], step[0]);
    }
}

/* A ring carries K and V in 8 bits where their scales are the tensor's. */
static void test_attention_on_the_wire(void **unused)
{
    (void)unused;
#define RING(p) "cp: 4, precision: " p ", fp8_dot_product_attention: "
    static const char *const slow = "b200:1 x 4, rail 10G";
    double current =
               step_with(EIGHT, slow, RING("fp8-current") "false") - step_with(EIGHT, slow, RING("fp8-current") "true"),
           blocks = step_with(EIGHT, slow, RING("mxfp8") "false") - step_with(EIGHT, slow, RING("mxfp8") "true");
    /* forward 1 of 2 parts, backward 1 of 4: 3 hops, 8 layers, 32 sequences of 1,024 tokens x 2,048 numbers at 1.25 GB/s */
    double saved = 2 * 3 * 8 * 32 * 1024 * 2048.0 / 1.25e9;
    assert_true(current > 0.8 * saved && current < 1.3 * saved);
    assert_true(fabs(blocks) < 0.2 * saved);
}

static void test_refused(void **unused)
{
    (void)unused;
    static const struct {
        const char *device, *plan, *says;
    } cases[] = {
        {"h100-sxm:8", "precision: fp8-delayed, first_last_layers_bf16: true", "share one history"},
        {"b200:8", "precision: fp8-current, fp8_output_proj: true", "with mxfp8 alone"},
        {"b200:8", "precision: bf16, fp8_output_proj: true", "with mxfp8 alone"},
        {"b200:8", "precision: bf16, fp8_dot_product_attention: true", "goes with precision bf16"},
        {"b200:8", "precision: fp8-blockwise, fp8_dot_product_attention: true", "goes with precision fp8-blockwise"},
        {"h100-sxm:8", "precision: fp8-current, fp8_dot_product_attention: true", "known for h100-sxm"},
        {"mi300x:8", "precision: fp8-delayed, fp8_dot_product_attention: true", "known for mi300x"},
        {"b200:8", "precision: mxfp8, fp8_dot_product_attention: true, attention_backend: unfused", "only cuDNN's"},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        char text[512];
        snprintf(text, sizeof text, "model: llama-3.1-8b\ncluster: '%s'\nplan: {%s}\nworkload: {gbs: 64}\n",
                 cases[i].device, cases[i].plan);
        expect_refused(text, cases[i].says);
    }
}

/* NVFP4: a kernel apart for weight gradients reads what goes into each layer's products, and their gradients, once more. */
static void test_hadamard_apart(void **unused)
{
    (void)unused;
    double step[2];
    double again = 0;
    for (int apart = 0; apart < 2; apart++) {
        struct prediction p =
            predict(EIGHT, "b200:1", "precision: nvfp4", apart ? ", hadamard_apart: true" : ", hadamard_apart: false");
        step[apart] = p.result->step_s;
        static const int64_t widths[] = {4096, 4096, 4096, 14336, 6144, 4096, 28672, 4096};
        for (size_t i = 0; i < MAQ_COUNT(widths) && apart; i++)
            again +=
                alone_s(maq_job_get(p.job), MAQ_OP_ELEMENTWISE, MAQ_BF16, (const int64_t[3]){4096 * widths[i], 2, 0});
        drop(&p);
    }
    assert_close(step[1] - step[0], 32 * 8 * again, 32 * 8 * 8 * 2e-9, "eight tensors a layer");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers_at_the_ends),
        cmocka_unit_test(test_ends_lie_in_their_stages),
        cmocka_unit_test(test_quantized_weights),
        cmocka_unit_test(test_output_layer),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_attention_on_the_wire),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_hadamard_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
