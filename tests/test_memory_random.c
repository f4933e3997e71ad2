/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_memory_random.c - what holds of the memory of every job: no category is below zero, and together they are what is used. Jobs are
 * drawn over models, frameworks, sharding, recomputation, offloading, optimizers and types.
 */
#include <math.h>

#include "base/check.h"
#include "effort.h"
#include "predict.h"
#include "random_draws.h"

#define JOBS EFFORT(100, 500, 1500)

static uint64_t state;

#define PICK(...)                                                                                                      \
    ((const char *const[]){                                                                                            \
        __VA_ARGS__}[draw(&state, 0, (uint32_t)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)) - 1)])

static void random_job(char *text, size_t size)
{
    snprintf(text, size,
             "model: {base: %s, num_hidden_layers: %s}\n"
             "cluster: '%s'\n"
             "plan: {tp: %s, pp: %s, ep: %s, mbs: %s, zero: %s, recompute: %s, gather_once_per_step: %s,\n"
             "  reduce_once_per_step: %s, reshard_after_forward: %s, optimizer_offload_fraction: %s, optimizer: %s,\n"
             "  precision: %s, pure_low_precision: %s, cpu_offloading_num_layers: %s, lora_rank: %s}\n"
             "workload: {seq: %s, gbs: %s}\n"
             "framework: %s\n",
             PICK("llama-3-8b", "qwen2.5-32b", "mixtral-8x7b", "gpt3-5b", "qwen3-30b-a3b", "falcon-h1-0.5b"),
             PICK("8", "16", "64"), PICK("h100-sxm:8", "h100-sxm:8 x 4, rail 400G", "a100-80gb:1", "rtx-4090:8"),
             PICK("1", "1", "2"), PICK("1", "1", "2"), PICK("1", "1", "2"), PICK("1", "1", "2", "4"),
             PICK("no_shard", "optim", "optim_grads", "optim_grads_params", "optim_grads_params"),
             PICK("none", "full", "selective"), PICK("false", "true"), PICK("false", "true"), PICK("auto", "true"),
             PICK("0", "0", "0.5", "1"), PICK("adam", "sgd", "muon"), PICK("bf16", "bf16", "fp8-current"),
             PICK("false", "false", "true"), PICK("0", "0", "2"), PICK("0", "0", "0", "16"),
             PICK("512", "4096", "16384"), PICK("32", "64"),
             PICK("megatron-lm", "megatron-deepspeed", "torchtitan", "pytorch-fsdp", "nemo-automodel", "jax"));
}

static void check_stage(const struct maq_stage_result *st, const char *text)
{
    double allocated = 0;
    for (int k = 0; k < MAQ_MEM_COUNT; k++) {
        if (!(st->bytes[k] >= 0))
            fail_msg("%s is %g bytes for\n%s", maq_mem_name((enum maq_mem_kind)k), st->bytes[k], text);
        allocated += k < MAQ_MEM_FRAGMENTATION ? st->bytes[k] : 0;
    }
    double reserved = allocated + st->bytes[MAQ_MEM_FRAGMENTATION],
           total = reserved + st->bytes[MAQ_MEM_CONTEXT] + st->bytes[MAQ_MEM_NCCL];
    assert_true(fabs(allocated - st->allocated_bytes) <= 1e-12 * total);
    assert_true(fabs(reserved - st->reserved_bytes) <= 1e-12 * total);
    assert_true(fabs(total - st->total_bytes) <= 1e-12 * total);
}

static void test_categories(void **unused)
{
    uint32_t ran = 0;
    state = 35;
    for (int i = 0; i < JOBS; i++) {
        char text[2048];
        struct maq_loaded_job *box = NULL;
        struct maq_train_result *r = NULL;
        struct maq_diag *diag = maq_diag_new();
        random_job(text, sizeof text);
        enum maq_status status = maq_job_parse(&box, "random", maq_str_of(text), NULL, 0, diag);
        if (status == MAQ_OK) {
            assert_int_equal(maq_train_predict(&r, maq_job_get(box), diag), MAQ_OK);
            for (uint32_t s = 0; s < r->n_stages; s++)
                check_stage(&r->stages[s], text);
            ran++;
        } else if (status != MAQ_BAD_INPUT || maq_diag_errors(diag) == 0)
            fail_msg("status %d: %s\n%s", (int)status, maq_diag_format(diag, 0, false), text);
        maq_train_result_free(r);
        maq_job_free(box);
        maq_diag_free(diag);
    }
    print_message("%u of %d random jobs could run\n", ran, JOBS);
    assert_true(ran > JOBS / 6);
}

/* ZeRO-3 with the optimizer's state on the host: the peak is the update, when activations are gone and the rank has next to nothing. */
static void test_peak_at_the_update(void **unused)
{
    struct prediction p = predict_text("model: qwen2.5-32b\ncluster: 'h100-sxm:8'\nframework: pytorch-fsdp\n"
                                       "plan: {zero: 3, mbs: 1, recompute: full, optimizer_offload_fraction: 1}\n"
                                       "workload: {gbs: 8, seq: 4096}\n");
    check_stage(&p.result->stages[0], "qwen2.5-32b");
    assert_true(p.result->stages[0].bytes[MAQ_MEM_GRADIENTS] > 0);
    drop(&p);
}

/* Shards of one rank, or as many copies of the shards as there are ranks, are no shards: the same step and the same memory to the bit. */
static void test_nobody_to_share_with(void **unused)
{
    static const char *const shardings[] = {"no_shard", "optim", "optim_grads", "optim_grads_params"};
    static const struct {
        const char *model, *cluster, *plan, *copies;
    } cases[] = {
        {"llama-3-8b", "rtx-4090:8", "tp: 2, pp: 4, mbs: 1, recompute: full", ""},
        {"llama-3-8b", "h100-sxm:8", "tp: 8, mbs: 2", ""},
        {"mixtral-8x7b", "h100-sxm:8", "tp: 2, pp: 4, ep: 1, mbs: 1", ""},
        {"llama-3-8b", "a100-80gb:1", "mbs: 1, precision: bf16", ""},
        {"llama-3-8b", "h100-sxm:8", "tp: 2, pp: 1, mbs: 1", ", num_distributed_optimizer_instances: 4"},
    };
    static const char *const frameworks[] = {"megatron-lm", "megatron-deepspeed", "torchtitan", "pytorch-fsdp", "jax"};
    for (size_t i = 0; i < MAQ_COUNT(cases) * MAQ_COUNT(frameworks); i++) {
        size_t c = i % MAQ_COUNT(cases), f = i / MAQ_COUNT(cases);
        struct prediction p[4];
        for (size_t k = 0; k < 4; k++) {
            char text[1024];
            snprintf(
                text, sizeof text,
                "model: %s\ncluster: '%s'\nframework: %s\nplan: {%s, zero: %s%s}\nworkload: {seq: 4096, gbs: 16}\n",
                cases[c].model, cases[c].cluster, frameworks[f], cases[c].plan, shardings[k],
                k == 0 ? "" : cases[c].copies);
            p[k] = predict_text(text);
            if (p[k].result->step_s != p[0].result->step_s)
                fail_msg("%.17g s and %.17g s: %s", p[0].result->step_s, p[k].result->step_s, text);
            for (uint32_t s = 0; s < p[k].result->n_stages; s++)
                for (int b = 0; b < MAQ_MEM_COUNT; b++)
                    assert_true(p[k].result->stages[s].bytes[b] == p[0].result->stages[s].bytes[b]);
        }
        for (size_t k = 0; k < 4; k++)
            drop(&p[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_categories),
        cmocka_unit_test(test_peak_at_the_update),
        cmocka_unit_test(test_nobody_to_share_with),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("memory_random", tests, NULL, NULL);
}
