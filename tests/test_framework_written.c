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
    {"paged_optimizer", {"false", "true"}},
    {"lora_rank", {"0", "0", "16"}},
    {"use_dora", {"false", "true"}},
    {"fused_kernels", {"false", "true"}},
    {"bucket_layers", {"0", "0", "2"}},
};

static const char *const forms[] = {"deepspeed", "training-arguments"},
                         *const clusters[] = {"h100-sxm:8", "a100-80gb:8 x 2", "h100-sxm:1"},
                         *const frameworks[] = {"deepspeed", "huggingface", "deepspeed", "huggingface", "megatron-lm"};

static const char *one_of(uint64_t *state, const char *const *values, uint32_t most)
{
    uint32_t n = 0;
    while (n < most && values[n])
        n++;
    return values[draw(state, 0, n - 1)];
}

struct around {
    const char *cluster, *framework;
};

static void random_job(char text[TEXT], struct around *a, uint64_t *state)
{
    *a =
        (struct around){one_of(state, clusters, MAQ_COUNT(clusters)), one_of(state, frameworks, MAQ_COUNT(frameworks))};
    size_t n = (size_t)snprintf(text, TEXT, "{model: llama-3.2-1b, cluster: '%s', framework: %s, plan: {", a->cluster,
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

/* What was written is the job, read as any file of that framework beside its model, cluster and sequence. */
static void check_file(const char *file, const struct maq_loaded_job *box, const struct around *a, const char *text)
{
    const struct maq_override beside[] = {{"--model", "model", "llama-3.2-1b"},
                                          {"--cluster", "cluster", a->cluster},
                                          {"--seq", "workload.seq_length", "1024"}};
    struct maq_loaded_job *back;
    struct maq_diag *diag = maq_diag_new();
    double own[2], read[2];
    if (maq_job_parse(&back, "file.json", maq_str_of(file), beside, MAQ_COUNT(beside), diag) != MAQ_OK)
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
            enum maq_status status = maq_framework_file(&file, box, forms[f], diag);
            if (status == MAQ_OK)
                check_file(file, box, &a, text);
            else if (status != MAQ_BAD_INPUT || maq_diag_errors(diag) == 0 || file)
                fail_msg("%s as %s: status %d without a reason", text, forms[f], (int)status);
            said[f] += status == MAQ_OK;
            free(file);
            maq_diag_free(diag);
        }
        maq_job_free(box);
    }
    print_message("# %u jobs, %u said by %s, %u by %s\n", possible, said[0], forms[0], said[1], forms[1]);
    assert_true(possible > DRAWS / 10 && said[0] > 0 && said[1] > 0);
}

/* A framework's own defaults are what its file says without a word. */
static void test_defaults(void **unused)
{
    static const char *const rows[][2] = {
        {"framework: deepspeed", "deepspeed"},
        {"framework: deepspeed, plan: {zero: 1}", "deepspeed"},
        {"framework: deepspeed, plan: {zero: 3}", "deepspeed"},
        {"framework: huggingface, plan: {zero: 3}", "training-arguments"},
    };
    (void)unused;
    for (size_t i = 0; i < MAQ_COUNT(rows); i++) {
        const struct around a = {.cluster = "h100-sxm:8"};
        char text[TEXT], *file;
        struct maq_loaded_job *box;
        struct maq_diag *diag = maq_diag_new();
        snprintf(text, sizeof text, "{model: llama-3.2-1b, cluster: 'h100-sxm:8', workload: {gbs: 8, seq: 1024}, %s}",
                 rows[i][0]);
        assert_int_equal(maq_job_parse(&box, "job", maq_str_of(text), NULL, 0, NULL), MAQ_OK);
        if (maq_framework_file(&file, box, rows[i][1], diag) != MAQ_OK)
            fail_msg("%s\n%s", text, maq_diag_format(diag, 0, false));
        check_file(file, box, &a, text);
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
        {"plan: {zero: 1}, framework: deepspeed", "nothing", "no file that can be written"}};
    (void)unused;
    for (size_t i = 0; i < MAQ_COUNT(rows); i++) {
        char text[TEXT], *file = NULL;
        struct maq_loaded_job *box;
        struct maq_diag *diag = maq_diag_new();
        snprintf(text, sizeof text, "{model: llama-3.2-1b, cluster: 'h100-sxm:8', workload: {gbs: 32, seq: 1024}, %s}",
                 rows[i].job);
        assert_int_equal(maq_job_parse(&box, "job", maq_str_of(text), NULL, 0, NULL), MAQ_OK);
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
