/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_train_paths.c - one meaning, three ways: the fast path, the static engine on the whole graph, and the
 * dynamic engine without interference.
 *
 * A few hundred plans are drawn over models, degrees, schedules, sharding and recomputation. Where the loader
 * refuses a plan there is nothing to compare; the others must agree to a nanosecond in a second (fast path), and to the bit
 * (the two engines).
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

#include "effort.h"
#include "maquette/train.h"

#define PLANS EFFORT(200, 600, 6000)

static uint64_t state;

static uint32_t draw(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % n);
}

#define PICK(...)                                                                                                      \
    ((const char *const[]){__VA_ARGS__}[draw((uint32_t)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)))])

#define OFFLOAD "0, fine_grained_activation_offloading: true, offload_modules: "

static void random_job(char *text, size_t size)
{
    const char *schedule = PICK("1f1b", "auto", "gpipe", "zb-h1", "zb-v", "dualpipe", "dualpipe-v", "auto", "zb-h2",
                                "interleaved-zb", "zb-1p", "zb-2p");
    const char *vp =
        strcmp(schedule, "auto") == 0 || strcmp(schedule, "interleaved-zb") == 0 ? PICK("1", "2", "3", "4") : "1";
    snprintf(
        text, size,
        "model: {base: %s, num_hidden_layers: %s}\n"
        "cluster: '%s'\n"
        "plan: {tp: %s, pp: %s, vp: %s, cp: %s, ep: %s, mbs: %s, schedule: %s, zero: %s, recompute: %s, "
        "tp_comm_overlap: %s,\n"
        "  layout: balanced, cp_comm_type: %s, overlap_grad_reduce: %s, overlap_param_gather: %s, "
        "overlap_p2p_comm: %s,\n"
        "  reshard_after_forward: %s, gather_once_per_step: %s, reduce_once_per_step: %s, overlap_ep: %s, "
        "sequence_parallel: %s, "
        "bucket_layers: %s,\n"
        "  fsdp_prefetch: %s, precision: %s, cuda_graphs: %s, cpu_offloading_num_layers: %s,\n"
        "  moe_shared_expert_overlap: %s, vocab_parallel_pipeline: %s}\n"
        "workload: {seq: %s, gbs: %s}\n"
        "framework: %s\n",
        PICK("llama-3-8b", "llama-3-70b", "mixtral-8x7b", "deepseek-v3", "gpt3-5b", "qwen3-30b-a3b", "falcon-h1-0.5b",
             "qwen3.5-9b"),
        PICK("8", "13", "16", "24"),
        PICK("h100-sxm:8 x 1, rail 400G", "h100-sxm:8 x 4, rail 400G", "a100-80gb:8 x 2, rail 200G",
             "a100-80gb:8 x 2 + h100-sxm:8 x 2", "h100-sxm:4 x 4, nics 1 x 10G roce"),
        PICK("1", "2", "4"), PICK("1", "2", "4", "8"), vp, PICK("1", "1", "2"), PICK("1", "1", "2", "4"),
        PICK("1", "2"), schedule, PICK("no_shard", "optim", "optim_grads", "optim_grads_params"),
        PICK("none", "full", "selective", "full, recompute_method: block, recompute_num_layers_per_stage: \"2,0,1,0\""),
        PICK("true", "false"), PICK("p2p", "all_gather", "a2a"), PICK("auto", "true", "false"),
        PICK("auto", "true", "false"), PICK("auto", "true", "false"), PICK("true", "false"), PICK("false", "true"),
        PICK("false", "true"), PICK("auto", "true"), PICK("auto", "false"), PICK("0", "1", "3"), PICK("0", "1", "2"),
        PICK("bf16", "bf16", "fp8-delayed", "fp8-current", "fp8-rowwise"), PICK("true", "false"),
        PICK("0", "0", "2", OFFLOAD "[core_attn, attn_proj, moe_act]", OFFLOAD "[qkv_linear, mlp_norm, expert_fc1]"),
        PICK("false", "true"), PICK("false", "false", "true"), PICK("1024", "4096"), PICK("16", "32", "64"),
        PICK("megatron-lm", "megatron-deepspeed", "torchtitan", "jax", "nanotron", "huggingface",
             "{base: pytorch-ddp, gradient_buckets: views, bucket_cap_mb: 300, find_unused_parameters: true}",
             "{base: megatron-lm, p2p_synchronizes: false, host: {forward: 300 us, read: 1 ms}}",
             "{base: nemo, launches_block: true}",
             "{base: megatron-deepspeed, tp_synchronizes: true, forward_calls: 2, p2p_sends_mask: true}"));
}

static void compare(const char *text, const struct maq_job *job)
{
    struct maq_train_result *r = NULL;
    struct maq_train_graph g;
    assert_int_equal(maq_train_predict(&r, job, NULL), MAQ_OK);
    assert_int_equal(maq_train_graph(&g, job, NULL), MAQ_OK);
    double *a = malloc(sizeof *a * (g.graph.n_nodes + 1)), *b = malloc(sizeof *b * (g.graph.n_nodes + 1)), full = 0,
           dynamic = 0;
    const struct maq_interference none = {1, 1};
    maq_engine_static(&full, a, &g.graph, 1, g.dur_ns);
    assert_int_equal(maq_engine_dynamic(&dynamic, b, &g.graph, g.dur_ns, &none, NULL), MAQ_OK);
    if (fabs(r->step_s / (full * 1e-9) - 1) > 1e-9)
        fail_msg("fast path %.9f s, full engine %.9f s for\n%s", r->step_s, full * 1e-9, text);
    if (memcmp(a, b, sizeof *a * g.graph.n_nodes) != 0 || full != dynamic)
        fail_msg("static %.9f s, dynamic %.9f s for\n%s", full * 1e-9, dynamic * 1e-9, text);
    /* what runs at the same time slows down, and by no more than its factor */
    const struct maq_interference slow = {1.25, 1.5};
    assert_int_equal(maq_engine_dynamic(&dynamic, b, &g.graph, g.dur_ns, &slow, NULL), MAQ_OK);
    if (dynamic < full * (1 - 1e-9) || dynamic > full * 1.5)
        fail_msg("static %.9f s, with interference %.9f s for\n%s", full * 1e-9, dynamic * 1e-9, text);
    for (uint32_t s = 0; s < r->n_stages; s++) {
        double sum = 0;
        for (int k = 0; k < MAQ_BUCKET_COUNT; k++) {
            if (r->stages[s].bucket_s[k] < -1e-9)
                fail_msg("stage %u, bucket %s is %g s for\n%s", s, maq_bucket_name((enum maq_bucket)k),
                         r->stages[s].bucket_s[k], text);
            sum += r->stages[s].bucket_s[k];
        }
        if (fabs(sum / r->step_s - 1) > 1e-9)
            fail_msg("buckets of stage %u add up to %.9f s, the step is %.9f s for\n%s", s, sum, r->step_s, text);
    }
    free(a);
    free(b);
    maq_train_graph_free(&g);
    maq_train_result_free(r);
}

static void test_paths_agree(void **unused)
{
    (void)unused;
    uint32_t compared = 0;
    state = 20240915;
    for (int i = 0; i < PLANS; i++) {
        char text[2048];
        struct maq_loaded_job *box = NULL;
        struct maq_diag *diag = maq_diag_new();
        random_job(text, sizeof text);
        enum maq_status status = maq_job_parse(&box, "random", (struct maq_str){text, strlen(text)}, NULL, 0, diag);
        if (status == MAQ_OK) {
            compare(text, maq_job_get(box));
            compared++;
        } else if (status != MAQ_BAD_INPUT || maq_diag_errors(diag) == 0) {
            char *why = maq_diag_format(diag, 0, false);
            fail_msg("status %d without a reason: %s\n%s", (int)status, why, text);
        }
        maq_job_free(box);
        maq_diag_free(diag);
    }
    print_message("%u of %d random plans could run\n", compared, PLANS);
    assert_true(compared > PLANS / 6);
}

/* Shards of parameters that come from the host or from NVMe, and gradients that go there. */
static void test_paths_of_offloaded_parameters(void **unused)
{
    (void)unused;
    uint32_t compared = 0;
    state = 20261128;
    for (int i = 0; i < PLANS / 5; i++) {
        char text[1024];
        struct maq_loaded_job *box = NULL;
        struct maq_diag *diag = maq_diag_new();
        snprintf(text, sizeof text,
                 "model: {base: %s, num_hidden_layers: 8}\ncluster: '%s, nvme 20GB/s 10GB/s'\n"
                 "plan: {tp: %s, pp: %s, cp: %s, ep: %s, schedule: %s, zero: 3, recompute: %s, fsdp_prefetch: %s, "
                 "reshard_after_forward: %s, reduce_once_per_step: %s, optimizer_offload_fraction: %s, "
                 "offload_param_device: %s, bucket_layers: %s}\n"
                 "workload: {seq: 1024, gbs: %s}\nframework: %s\n",
                 PICK("llama-3-8b", "mixtral-8x7b", "deepseek-v2-lite"),
                 PICK("h100-sxm:1", "h100-sxm:8 x 1", "h100-sxm:4 x 4", "a100-80gb:8 x 2"), PICK("1", "1", "2"),
                 PICK("1", "1", "2"), PICK("1", "1", "2"), PICK("1", "1", "2", "8"), PICK("auto", "gpipe", "zb-h1"),
                 PICK("none", "full"), PICK("0", "1", "3"), PICK("true", "false"), PICK("false", "true"),
                 PICK("1", "1", "0.5", "0"), PICK("cpu", "nvme"), PICK("0", "2"), PICK("16", "32"),
                 PICK("deepspeed", "deepspeed", "pytorch-fsdp", "torchtitan"));
        enum maq_status status = maq_job_parse(&box, "random", (struct maq_str){text, strlen(text)}, NULL, 0, diag);
        if (status == MAQ_OK) {
            compare(text, maq_job_get(box));
            compared++;
        }
        assert_true(status == MAQ_OK || maq_diag_errors(diag) > 0);
        maq_job_free(box);
        maq_diag_free(diag);
    }
    print_message("%u of %d random plans could run\n", compared, PLANS / 5);
    assert_true(compared > PLANS / 20);
}

/* Drawn elsewhere, and once apart: layers without experts, whose parameters nobody shares, wait for no communication. */
static void test_paths_of_mixed_layers(void **unused)
{
    (void)unused;
    static const char text[] =
        "model: {base: deepseek-v3, num_hidden_layers: 24}\ncluster: 'a100-80gb:8 x 2, rail 200G'\n"
        "plan: {tp: 4, pp: 4, ep: 2, mbs: 2, zero: optim_grads_params, bucket_layers: 1, "
        "fsdp_prefetch: 1}\nworkload: {seq: 1024, gbs: 4}\n";
    struct maq_loaded_job *box = NULL;
    assert_int_equal(maq_job_parse(&box, "job", (struct maq_str){text, strlen(text)}, NULL, 0, NULL), MAQ_OK);
    compare(text, maq_job_get(box));
    maq_job_free(box);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_paths_agree),
                                       cmocka_unit_test(test_paths_of_offloaded_parameters),
                                       cmocka_unit_test(test_paths_of_mixed_layers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
