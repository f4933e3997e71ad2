/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_framework_written.c - jobs written as a framework's configuration file and read back: the same step and memory, or an error that names
 * what the file has no words for.
 */
#include "maquette/framework_words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/str.h"
#include "effort.h"
#include "maquette/train.h"
#include "random_draws.h"

#define DRAWS EFFORT(60, 200, 600)
#define TEXT 2048

static const struct {
    const char *key, *values[6];
} settings[] = {
    {"zero", {"0", "1", "2", "3", "3"}},
    {"mbs", {"1", "2", "4"}},
    {"tp", {"1", "1", "2"}},
    {"pp", {"1", "1", "1", "2"}},
    {"sp", {"false", "auto"}},
    {"cp", {"1", "1", "2"}},
    {"cp_comm_type", {"a2a", "p2p"}},
    {"overlap_grad_reduce", {"auto", "true", "false"}},
    {"overlap_param_gather", {"auto", "false"}},
    {"precision", {"bf16", "bf16", "fp16", "fp32", "fp8-current"}},
    {"main_grads_dtype", {"fp32", "bf16"}},
    {"grad_reduce_dtype", {"fp32", "bf16"}},
    {"pure_low_precision", {"false", "true"}},
    {"recompute", {"none", "full", "selective"}},
    {"optimizer", {"adam", "sgd", "lion", "adafactor", "lamb", "onebit_adam"}},
    {"exp_avg_dtype", {"fp32", "int8", "fp4", "bf16"}},
    {"optimizer_offload_fraction", {"0", "0", "0.5", "1"}},
    {"offload_param_device", {"none", "none", "cpu"}},
    {"reduce_bucket_size", {"0", "5e8", "1e8"}},
    {"fsdp_prefetch", {"1", "0"}},
    {"reshard_after_forward", {"true", "false"}},
    {"hpz", {"1", "4", "8"}},
    {"zero_quantized_weights", {"false", "true"}},
    {"zero_quantized_gradients", {"false", "true"}},
    {"galore_rank", {"0", "0", "64"}},
    {"use_apollo", {"false", "false", "true"}},
    {"paged_optimizer", {"false", "true"}},
    {"lora_rank", {"0", "0", "16"}},
    {"use_dora", {"false", "true"}},
    {"fused_kernels", {"false", "true"}},
    {"bucket_layers", {"0", "0", "2"}},
};

/* What goes beside a file that does not say it. */
static const struct {
    const char *name;
    bool model, sequence, batch;
} forms[] = {{"deepspeed", .batch = true},
             {"training-arguments", .sequence = true, .batch = true},
             {.name = "accelerate"},
             {"axolotl", true, true, true},
             {"llama-factory", true, true, true},
             {"torchtitan", true, true, true}};

static const char *const clusters[] = {"h100-sxm:8", "a100-80gb:8 x 2", "h100-sxm:1"},
                         *const frameworks[] = {"deepspeed",   "huggingface", "torchtitan",
                                                "huggingface", "megatron-lm", "torchtitan"},
                         *const models[] = {"llama-3.2-1b", "llama-3.1-8b", "qwen3-0.6b"};

static const char *one_of(uint64_t *state, const char *const *values, uint32_t most)
{
    uint32_t n = 0;
    while (n < most && values[n])
        n++;
    return values[draw(state, 0, n - 1)];
}

struct around {
    const char *cluster, *framework, *model;
};

static void random_job(char text[TEXT], struct around *a, uint64_t *state)
{
    *a = (struct around){.cluster = one_of(state, clusters, MAQ_COUNT(clusters)),
                         .framework = one_of(state, frameworks, MAQ_COUNT(frameworks)),
                         .model = one_of(state, models, MAQ_COUNT(models))};
    size_t n = (size_t)snprintf(text, TEXT, "{model: %s, cluster: '%s', framework: %s, plan: {", a->model, a->cluster,
                                a->framework);
    for (size_t i = 0; i < MAQ_COUNT(settings); i++)
        if (i == 0 || draw(state, 0, 4) == 0)
            n += (size_t)snprintf(text + n, TEXT - n, "%s%s: %s", i > 0 ? ", " : "", settings[i].key,
                                  one_of(state, settings[i].values, MAQ_COUNT(settings[i].values)));
    snprintf(text + n, TEXT - n, "}, workload: {gbs: 32, seq: 1024}}");
}

static void figures(double out[2], const struct maq_loaded_job *box)
{
    struct maq_train_result *r;
    assert_int_equal(maq_train_predict(&r, maq_job_get(box), NULL), MAQ_OK);
    out[0] = r->step_s;
    out[1] = r->stages[r->worst_stage].total_bytes;
    maq_train_result_free(r);
}

/* What was written is the job, read as any file of that framework beside its cluster and what the file has no keys for. */
static void check_file(const char *file, const struct maq_loaded_job *box, size_t form, const struct around *a,
                       const char *text)
{
    char gbs[16], mbs[16];
    struct maq_override beside[5] = {{"--cluster", "cluster", a->cluster}};
    size_t n = 1;
    snprintf(gbs, sizeof gbs, "%d", maq_job_get(box)->workload.gbs);
    snprintf(mbs, sizeof mbs, "%d", maq_job_get(box)->plan.mbs);
    if (!forms[form].model)
        beside[n++] = (struct maq_override){"--model", "model", a->model};
    if (!forms[form].sequence)
        beside[n++] = (struct maq_override){"--seq", "workload.seq_length", "1024"};
    if (!forms[form].batch) {
        beside[n++] = (struct maq_override){"--gbs", "workload.global_batch_size", gbs};
        beside[n++] = (struct maq_override){"--mbs", "plan.micro_batch_size", mbs};
    }
    struct maq_loaded_job *back;
    struct maq_diag *diag = maq_diag_new();
    double own[2], read[2];
    if (maq_job_parse(&back, strcmp(forms[form].name, "torchtitan") == 0 ? "file.toml" : "file.yaml", maq_str_of(file),
                      beside, n, diag) != MAQ_OK)
        fail_msg("%s\n%s\n%s", text, file, maq_diag_format(diag, 0, false));
    figures(own, box);
    figures(read, back);
    if (memcmp(own, read, sizeof own) != 0)
        fail_msg("%.9g s and %.9g bytes, read back %.9g s and %.9g bytes:\n%s\n%s", own[0], own[1], read[0], read[1],
                 text, file);
    maq_job_free(back);
    maq_diag_free(diag);
}

static void test_files(void **unused)
{
    uint64_t dice = 29;
    uint32_t possible = 0, said[MAQ_COUNT(forms)] = {0};
    (void)unused;
    for (uint32_t i = 0; i < DRAWS; i++) {
        char text[TEXT];
        struct around a;
        struct maq_loaded_job *box;
        random_job(text, &a, &dice);
        if (maq_job_parse(&box, "job", maq_str_of(text), NULL, 0, NULL) != MAQ_OK)
            continue;
        possible++;
        for (size_t f = 0; f < MAQ_COUNT(forms); f++) {
            struct maq_diag *diag = maq_diag_new();
            char *file = NULL;
            enum maq_status status = maq_framework_file(&file, box, forms[f].name, diag);
            if (status == MAQ_OK)
                check_file(file, box, f, &a, text);
            else if (status != MAQ_BAD_INPUT || maq_diag_errors(diag) == 0 || file)
                fail_msg("%s as %s: status %d without a reason", text, forms[f].name, (int)status);
            said[f] += status == MAQ_OK;
            free(file);
            maq_diag_free(diag);
        }
        maq_job_free(box);
    }
    print_message("# %u jobs", possible);
    for (size_t f = 0; f < MAQ_COUNT(forms); f++) {
        print_message(", %u said by %s", said[f], forms[f].name);
        assert_true(said[f] > 0);
    }
    print_message("\n");
    assert_true(possible > DRAWS / 10);
}

/* A framework's own defaults are what its file says without a word. */
static void test_defaults(void **unused)
{
    static const char *const rows[][2] = {
        {"framework: deepspeed", "deepspeed"},
        {"framework: deepspeed, plan: {zero: 1}", "deepspeed"},
        {"framework: deepspeed, plan: {zero: 3}", "deepspeed"},
        {"framework: huggingface, plan: {zero: 3}", "training-arguments"},
        {"framework: huggingface, plan: {zero: 3}", "accelerate"},
        {"framework: huggingface, plan: {zero: 0}", "accelerate"},
        {"framework: huggingface, plan: {zero: 3, recompute: full, hsdp_replicas: 2}", "accelerate"},
        {"framework: huggingface, plan: {zero: 3, tp: 2, sp: false}", "accelerate"},
        {"framework: huggingface, plan: {zero: 3, cp: 2, cp_comm_type: all_gather, sp: false}", "accelerate"},
        {"framework: deepspeed, plan: {zero: 3, cp: 2, cp_comm_type: a2a, sp: false}", "accelerate"},
        {"framework: deepspeed, plan: {zero: 3}", "accelerate"},
        {"framework: megatron-lm, plan: {tp: 2, zero: 1}", "accelerate"},
        {"framework: huggingface, plan: {zero: 3, recompute: full}", "axolotl"},
        {"framework: huggingface, plan: {zero: 3, recompute: full, precision: bf16, hsdp_replicas: 2}", "axolotl"},
        {"framework: huggingface, plan: {zero: 0, lora_rank: 8, lora_base_quantization: nf4-double, "
         "lora_target_modules: all-linear, optimizer: adam, exp_avg_dtype: int8, paged_optimizer: true}",
         "axolotl"},
        {"framework: huggingface, plan: {zero: 0, lora_rank: 8, lora_target_modules: 'q_proj,v_proj'}", "axolotl"},
        {"framework: huggingface, plan: {zero: 3, tp: 2, sp: false}", "axolotl"},
        {"framework: huggingface, plan: {zero: 3, loss_function: cut_cross_entropy}", "axolotl"},
        {"framework: deepspeed, plan: {zero: 2}", "axolotl"},
        {"framework: huggingface, plan: {zero: 0, pure_low_precision: true, galore_rank: 64}", "axolotl"},
        {"framework: huggingface, plan: {zero: 3}", "llama-factory"},
        {"framework: huggingface, plan: {zero: 0, lora_rank: 16, lora_target_modules: all-linear, recompute: full}",
         "llama-factory"},
        {"framework: huggingface, plan: {zero: 0, galore_rank: 64}", "llama-factory"},
        {"framework: huggingface, plan: {zero: 0, optimizer: muon}", "llama-factory"},
        {"framework: deepspeed, plan: {zero: 3, recompute: full}", "llama-factory"},
        {"framework: torchtitan", "torchtitan"},
        {"framework: torchtitan, plan: {tp: 2, recompute: full, pp: 2}", "torchtitan"},
        {"framework: torchtitan, plan: {precision: fp8-rowwise, fused_kernels: true}", "torchtitan"},
        {"framework: torchtitan, plan: {recompute: full, recompute_method: block, recompute_num_layers: 16}",
         "torchtitan"},
        {"framework: torchtitan, plan: {offload_param_device: cpu, optimizer_offload_fraction: 1}", "torchtitan"},
    };
    (void)unused;
    for (size_t i = 0; i < MAQ_COUNT(rows); i++) {
        const struct around a = {.cluster = "h100-sxm:8", .model = "llama-3.1-8b"};
        size_t form = 0;
        char text[TEXT], *file;
        struct maq_loaded_job *box;
        struct maq_diag *diag = maq_diag_new();
        while (strcmp(forms[form].name, rows[i][1]) != 0)
            form++;
        snprintf(text, sizeof text, "{model: llama-3.1-8b, cluster: 'h100-sxm:8', workload: {gbs: 8, seq: 1024}, %s}",
                 rows[i][0]);
        if (maq_job_parse(&box, "job", maq_str_of(text), NULL, 0, diag) != MAQ_OK)
            fail_msg("%s\n%s", text, maq_diag_format(diag, 0, false));
        if (maq_framework_file(&file, box, rows[i][1], diag) != MAQ_OK)
            fail_msg("%s\n%s", text, maq_diag_format(diag, 0, false));
        check_file(file, box, form, &a, text);
        free(file);
        maq_job_free(box);
        maq_diag_free(diag);
    }
}

static void test_unsaid(void **unused)
{
    static const struct {
        const char *job, *form, *says;
    } rows[] = {
        {"plan: {zero: 1, pp: 2, sp: false}, framework: deepspeed", "deepspeed", "pipeline_model_parallel_size: 2"},
        {"plan: {zero: 1}, framework: megatron-lm", "deepspeed", "the framework megatron-lm"},
        {"plan: {zero: 1}, framework: huggingface", "training-arguments", "data_parallel_sharding_strategy: optim"},
        {"plan: {zero: 1}, framework: deepspeed", "nothing", "no file that can be written"},
        {"framework: {base: deepspeed, step_synchronizes: false}", "deepspeed", "framework.step_synchronizes: false"},
        {"framework: torchtitan", "torchtitan", "llama-3.2-1b is no flavour"},
        {"framework: huggingface, plan: {zero: 0, tp: 2, sp: false}", "accelerate", "not with whole copies"},
        {"framework: huggingface, plan: {zero: 3, cp: 2, cp_comm_type: a2a}", "accelerate",
         "DeepSpeed has Ulysses alone"},
        {"framework: huggingface, plan: {zero: 0, optimizer: lion}", "accelerate", "optimizer: lion"},
        {"framework: huggingface, plan: {zero: 0, lora_rank: 8}", "axolotl", "no linears of Megatron Core"},
        {"framework: huggingface, plan: {zero: 0}, rl: {method: dpo}", "axolotl", "a job of several models"},
        {"framework: huggingface, plan: {zero: 0}, model: {base: llama-3.2-1b, num_hidden_layers: 4}", "axolotl",
         "no words for model"},
        {"framework: huggingface, plan: {zero: 0, pp: 2}", "llama-factory", "pipeline_model_parallel_size: 2"}};
    (void)unused;
    for (size_t i = 0; i < MAQ_COUNT(rows); i++) {
        char text[TEXT], *file = NULL;
        struct maq_loaded_job *box;
        struct maq_diag *diag = maq_diag_new();
        snprintf(text, sizeof text, "{%s cluster: 'h100-sxm:8', workload: {gbs: 32, seq: 1024}, %s}",
                 strstr(rows[i].job, "model:") ? "" : "model: llama-3.2-1b,", rows[i].job);
        if (maq_job_parse(&box, "job", maq_str_of(text), NULL, 0, diag) != MAQ_OK)
            fail_msg("%s\n%s", text, maq_diag_format(diag, 0, false));
        assert_int_equal(maq_framework_file(&file, box, rows[i].form, diag), MAQ_BAD_INPUT);
        char *told = maq_diag_format(diag, 0, false);
        if (!told || !strstr(told, rows[i].says))
            fail_msg("%s\n%s", text, told ? told : "");
        free(told);
        maq_job_free(box);
        maq_diag_free(diag);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_files), cmocka_unit_test(test_defaults),
                                       cmocka_unit_test(test_unsaid)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
