/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_offload.c - inputs of modules that wait on the host from forward to backward: which bytes leave the device, what travels, what that
 * costs where the link to the host is slow, and what is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "effects.h"

#define SEQ 8192.0
#define LAYERS 4
#define GPT "{base: llama-3.1-8b, num_hidden_layers: 4}"
#define EXPERTS "{base: mixtral-8x7b, num_hidden_layers: 4}"
#define LATENT "{base: deepseek-v2-lite, num_hidden_layers: 4, first_k_dense_replace: 0}"
#define OFFLOAD ", fine_grained_activation_offloading: true, offload_modules: "

/* One GPU, one microbatch of one sequence; `more` are settings of a plan behind a comma. */
static struct prediction predict(const char *model, const char *device, const char *more)
{
    char text[1024];
    snprintf(text, sizeof text,
             "model: %s\ncluster: %s\nplan: {mbs: 1, precision: bf16%s}\nworkload: {seq: 8192, gbs: 2}\n"
             "framework: {" FREE_HOST_BUT("expert: 0 s, " REST_FREE) "}\n",
             model, device, more);
    return predict_text(text);
}

static double activations(const char *model, const char *more)
{
    struct prediction p = predict(model, "h100-sxm:1", more);
    double bytes = p.result->stages[0].bytes[MAQ_MEM_ACTIVATIONS];
    drop(&p);
    return bytes;
}

/* Numbers of 16 bits per token that leave the device. */
static double leaves(const char *model, const char *modules, const char *more)
{
    char with[256];
    snprintf(with, sizeof with, "%s" OFFLOAD "[%s]", more, modules);
    return (activations(model, more) - activations(model, with)) / (2 * SEQ * LAYERS);
}

static void test_what_leaves(void **unused)
{
    (void)unused;
    static const struct {
        const char *model, *modules, *more;
        double numbers;
    } cases[] = {
        /* 4,096 wide, 32 heads and 8 of keys and values of 128: the norm is one module with the product */
        {GPT, "qkv_linear", "", 4096 + 4096},
        {GPT, "core_attn", "", 4096 + 2 * 1024},
        {GPT, "core_attn, attn_proj", "", 2 * 4096 + 2 * 1024},
        {GPT, "attn_norm, mlp_norm, moe_act", "", 0},
        /* its norm's output comes again */
        {GPT, "qkv_linear", ", recompute: selective, recompute_modules: [layernorm]", 4096},
        /* two experts of 14,336 for each token, with gates */
        {EXPERTS, "attn_norm", "", 0},
        {EXPERTS, "mlp_norm", "", 4096},
        {EXPERTS, "expert_fc1", "", 2 * 4096},
        {EXPERTS, "moe_act", "", 2 * 2 * 14336},
        {EXPERTS, "moe_act", ", recompute: selective, recompute_modules: [moe_act]", 2 * 2 * 14336},
        {EXPERTS, "fused_group_mlp", ", use_transformer_engine_op_fuser: true", 2 * (4096 + 3 * 14336)},
        /* 16 heads of 192 for Q and K and 128 for V; latent vectors of 512 */
        {LATENT, "attn_norm", "", 2048},
        {LATENT, "core_attn", "", 16 * (2 * 192 + 128)},
        {LATENT, "qkv_linear", ", recompute: selective, recompute_modules: [layernorm]", 512 + 512},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++)
        assert_close(leaves(cases[i].model, cases[i].modules, cases[i].more), cases[i].numbers, 1e-6 * 14336,
                     cases[i].modules);
}

/* 23 of its layers are experts alone, with the one norm of the layer in front. */
static void test_layers_of_experts(void **unused)
{
    (void)unused;
    static const char model[] = "nemotron-3-nano-30b-a3b";
    double moved = activations(model, "") - activations(model, OFFLOAD "[mlp_norm]");
    assert_close(moved, 23 * 2 * SEQ * 2688, 1, "norms in front of experts");
}

/* A layer waits for its bytes where the link is slow: core attention's output goes with the module behind it once more. */
static void test_what_travels(void **unused)
{
    (void)unused;
    static const char slow[] = "{nodes: 1, devices_per_node: 1, device: {base: h100-sxm, host: 500 MB/s}}";
    static const char *const plans[] = {"", OFFLOAD "[core_attn]", OFFLOAD "[core_attn, attn_proj]"};
    double step[3];
    for (size_t i = 0; i < MAQ_COUNT(plans); i++) {
        struct prediction p = predict(GPT, slow, plans[i]);
        step[i] = p.result->step_s;
        drop(&p);
    }
    double once = 2 * LAYERS * 2 * SEQ * 2 / 500e6; /* a number per token, of two microbatches in two passes */
    assert_close(step[2] - step[1], once * 4096, 1e-3 * once * 4096, "attention's output");
    assert_true(step[1] > once * (2 * 4096 + 2 * 1024) && step[1] < once * (2 * 4096 + 2 * 1024) + step[0]);
}

/* Beside a layer's own bytes those of the next one are on their way, so two of the layers save nothing at the peak. */
static void test_peak(void **unused)
{
    (void)unused;
    struct prediction none = predict(GPT, "h100-sxm:1", ", loss_function: cross_entropy"),
                      some = predict(GPT, "h100-sxm:1", ", loss_function: cross_entropy" OFFLOAD "[core_attn]");
    double saved = none.result->stages[0].allocated_bytes - some.result->stages[0].allocated_bytes,
           layer = 2 * SEQ * (4096 + 2 * 1024);
    assert_true(saved >= (LAYERS - 2) * layer - 1 && saved <= LAYERS * layer + 1);
    assert_true(some.result->step_s >= none.result->step_s);
    drop(&none);
    drop(&some);
}

static const char *const words[] = {"attn_norm", "qkv_linear", "core_attn", "attn_proj",
                                    "mlp_norm",  "expert_fc1", "moe_act"};

/* Of every choice: what leaves the device is what its modules leave, and less than all. */
static void test_choices_add_up(void **unused)
{
    (void)unused;
    static const char *const models[] = {GPT, EXPERTS, LATENT};
    for (size_t m = 0; m < MAQ_COUNT(models); m++) {
        double alone[MAQ_COUNT(words)], all = activations(models[m], "");
        for (uint32_t set = 1; set < 1u << MAQ_COUNT(words); set++) {
            char modules[256] = "";
            double sum = 0;
            bool attends = set >> 2 & 1, projects = set >> 3 & 1;
            if (projects && !attends)
                continue;
            for (size_t i = 0; i < MAQ_COUNT(words); i++)
                if (set >> i & 1)
                    (void)snprintf(modules + strlen(modules), sizeof modules - strlen(modules), "%s%s",
                                   *modules ? ", " : "", words[i]);
            double left = leaves(models[m], modules, "");
            for (size_t i = 0; i < MAQ_COUNT(words); i++) {
                if (set == 1u << i || (i == 3 && set == (1u << 2 | 1u << 3)))
                    alone[i] = set == 1u << i ? left : left - alone[2];
                sum += set >> i & 1 ? alone[i] : 0;
            }
            assert_close(left, sum, 1e-3, modules);
            assert_true(left >= 0 && left * 2 * SEQ * LAYERS < all);
        }
    }
}

static void test_refused(void **unused)
{
    (void)unused;
#define ON "fine_grained_activation_offloading: true, "
    static const struct {
        const char *plan, *says;
    } cases[] = {
        {"fine_grained_activation_offloading: true", "without offload_modules"},
        {"offload_modules: [core_attn]", "without fine_grained_activation_offloading"},
        {ON "offload_modules: [core_attention]", "not a module whose input can be offloaded"},
        {ON "offload_modules: []", "without offload_modules"},
        {ON "offload_modules: {core_attn: 1}", "offload_modules is a list of words"},
        {"recompute: selective, recompute_modules: {core_attn: 1}", "recompute_modules is a list of words"},
        {ON "offload_modules: [core_attn], recompute: full", "keep nothing that could be offloaded"},
        {ON "offload_modules: [attn_proj]", "is core attention's output"},
        {ON "offload_modules: [core_attn], offload_layers: 2", "offloads whole layers"},
        {ON "offload_modules: [fused_group_mlp, moe_act], use_transformer_engine_op_fuser: true",
         "has expert_fc1 and moe_act in it"},
        {ON "offload_modules: [fused_group_mlp]", "there is no fused_group_mlp"},
        {ON "offload_modules: [expert_fc1], recompute: selective, recompute_modules: [moe]", "experts keep nothing"},
    };
    char text[512];
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        (void)snprintf(text, sizeof text, "model: mixtral-8x7b\ncluster: h100-sxm:8\nplan: {%s}\nworkload: {gbs: 64}\n",
                       cases[i].plan);
        expect_refused(text, cases[i].says);
    }
}

/* A step with all of the optimizer on the host less one without it, on `cluster`. */
static double host_update(const char *cluster, double *on_device)
{
    double step[2];
    for (int k = 0; k < 2; k++) {
        char text[512];
        snprintf(text, sizeof text,
                 "model: llama-3.1-8b\ncluster: %s\nplan: {mbs: 1, zero: optim, optimizer_offload_fraction: %d, "
                 "recompute: full}\n"
                 "workload: {seq: 4096, gbs: 8}\nframework: {" FREE_HOST_BUT("expert: 0 s, " REST_FREE) "}\n",
                 cluster, k);
        struct prediction p = predict_text(text);
        step[k] = p.result->step_s;
        *on_device = k == 0 ? p.result->optimizer_s : *on_device;
        drop(&p);
    }
    return step[1] - step[0];
}

/*
 * Adam on the host: gradients of 4 bytes down, 4 + 2 x 12 + 2 bytes a parameter through memory that all ranks of the node share, weights of
 * 2 bytes up, each rank with an eighth of the parameters; less what the update took on the device.
 */
static void test_host_is_shared(void **unused)
{
    (void)unused;
    const double params = 8030261248.0;
    static const struct {
        const char *cluster;
        double memory, link; /* bytes/s of the node, and of each device where all copy */
    } cases[] = {
        {"h100-sxm:8", 614.4e9, 0.8 * 614.4e9 / 8}, /* the memory gives less than PCIe 5.0 */
        {"{device: h100-sxm, nodes: 1, host_memory_bandwidth: 2 TB/s}", 2e12, 63e9},
        {"{device: {base: h100-sxm, host_devices: 2}, nodes: 1, host_memory_bandwidth: 2 TB/s}", 2e12, 31.5e9},
        {"{device: h100-sxm, nodes: 1, host_cpu: zen4}", 921.6e9,
         63e9}, /* two sockets of twelve channels of DDR5-4800 */
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        double device = 0, more = host_update(cases[i].cluster, &device);
        double host = params / 8 * (4 + 2) / cases[i].link + params * (4 + 24 + 2) / (0.8 * cases[i].memory);
        if (!(more > host - device - 1e-3 && more < host))
            fail_msg("%s: %.4f s more, %.4f s on the host for %.4f s on the device", cases[i].cluster, more, host,
                     device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_host_is_shared), cmocka_unit_test(test_what_leaves),
        cmocka_unit_test(test_what_travels),   cmocka_unit_test(test_layers_of_experts),
        cmocka_unit_test(test_peak),           cmocka_unit_test(test_refused),
        cmocka_unit_test(test_choices_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
