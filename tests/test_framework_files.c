/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_framework_files.c - configuration files of training frameworks as jobs: what keys become, what is refused and where, files beside
 * each other, and that what is read so is the job that says the same in maquette's own words.
 */
#include "maquette/job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* A cluster, and a model for files that name none. */
static const struct maq_override small[] = {{"--cluster", "cluster", "h100-sxm:8"},
                                            {"--model", "model", "llama-3.1-8b"}};
static const struct maq_override cluster_alone[] = {{"--cluster", "cluster", "h100-sxm:8"}};

static struct maq_loaded_job *read_text(const char *name, const char *text, bool with_model, struct maq_diag *diag)
{
    struct maq_loaded_job *box = NULL;
    const struct maq_str all = {text, strlen(text)};
    enum maq_status status =
        maq_job_parse(&box, name, all, with_model ? small : cluster_alone, with_model ? 2 : 1, diag);
    return status == MAQ_OK ? box : NULL;
}

/* Whether `maquette train --explain` has this line, whatever the blanks at its end. */
static bool explains(const struct maq_loaded_job *box, const char *line)
{
    char *text = maq_job_explain(box);
    assert_non_null(text);
    bool has = strstr(text, line) != NULL;
    free(text);
    return has;
}

struct expectation {
    const char *name, *text, *line; /* name: of the file, for its form */
    bool with_model;
};

static void check_all(const struct expectation *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct maq_diag *diag = maq_diag_new();
        struct maq_loaded_job *box = read_text(cases[i].name, cases[i].text, cases[i].with_model, diag);
        bool ok = box && explains(box, cases[i].line);
        if (!ok) {
            char *said = maq_diag_format(diag, 0, false), *all = box ? maq_job_explain(box) : NULL;
            print_error("%s\nhas no line '%s'\n%s%s\n", cases[i].text, cases[i].line, said ? said : "", all ? all : "");
            free(said);
            free(all);
        }
        assert_true(ok);
        maq_job_free(box);
        maq_diag_free(diag);
    }
}

/* The first error: what it says, and the line and column of its place. */
struct refusal {
    const char *name, *text, *says;
    uint32_t line, column;
};

static void check_refusals(const struct refusal *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct maq_diag *diag = maq_diag_new();
        struct maq_loaded_job *box = read_text(cases[i].name, cases[i].text, true, diag);
        assert_null(box);
        const struct maq_diag_item *item = NULL;
        for (size_t k = 0; k < maq_diag_count(diag) && !item; k++)
            if (maq_diag_at(diag, k)->severity == MAQ_ERROR)
                item = maq_diag_at(diag, k);
        assert_non_null(item);
        struct maq_place place = maq_diag_place(diag, item->at);
        char said[512];
        (void)snprintf(said, sizeof said, "%.*s", (int)item->msg.len, item->msg.ptr);
        if (!strstr(said, cases[i].says) || place.line != cases[i].line || place.column != cases[i].column)
            print_error("%s\nsays '%s' at %u:%u\n", cases[i].text, said, place.line, place.column);
        assert_non_null(strstr(said, cases[i].says));
        assert_int_equal(place.line, cases[i].line);
        assert_int_equal(place.column, cases[i].column);
        maq_diag_free(diag);
    }
}

/* ---- DeepSpeed ---- */

#define DS(text) "ds.json", text, .with_model = true
#define ZERO(text) DS("{\"train_micro_batch_size_per_gpu\": 1, \"zero_optimization\": {" text "}}")

static void test_deepspeed(void **state)
{
    (void)state;
    static const struct expectation lines[] = {
        {DS("{\"train_batch_size\": 32}"), .line = "job = DeepSpeed's configuration"},
        /* two numbers of a batch say the third: 8 devices */
        {DS("{\"train_batch_size\": 32}"), .line = "plan.micro_batch_size = 4"},
        {DS("{\"train_batch_size\": 32}"), .line = "workload.global_batch_size = 32  (framework's file)"},
        {DS("{\"train_micro_batch_size_per_gpu\": 3}"), .line = "workload.global_batch_size = 24"},
        {DS("{\"train_micro_batch_size_per_gpu\": 3, \"gradient_accumulation_steps\": 5}"),
         .line = "workload.global_batch_size = 120"},
        {DS("{\"train_batch_size\": 64, \"train_micro_batch_size_per_gpu\": 2}"), .line = "plan.micro_batch_size = 2"},
        {DS("{\"train_batch_size\": 64, \"gradient_accumulation_steps\": 4}"), .line = "plan.micro_batch_size = 2"},
        /* ZeRO */
        {ZERO("\"stage\": 0"), .line = "data_parallel_sharding_strategy = no_shard  (framework's file)"},
        {ZERO(""), .line = "data_parallel_sharding_strategy = no_shard  (framework)"},
        {ZERO("\"stage\": 1"), .line = "data_parallel_sharding_strategy = optim "},
        {ZERO("\"stage\": 2"), .line = "data_parallel_sharding_strategy = optim_grads "},
        {ZERO("\"stage\": 3"), .line = "data_parallel_sharding_strategy = optim_grads_params "},
        {ZERO("\"stage\": 1"), .line = "overlap_grad_reduce = false"},
        {ZERO("\"stage\": 1, \"overlap_comm\": true"), .line = "overlap_grad_reduce = true  (framework's file)"},
        {ZERO("\"stage\": 3"), .line = "overlap_param_gather = true"},
        {ZERO("\"stage\": 2, \"reduce_bucket_size\": 2e8"), .line = "reduce_bucket_size = 2e+08"},
        {ZERO("\"stage\": 2, \"reduce_bucket_size\": \"auto\""), .line = "reduce_bucket_size = 16777216"}, /* 4096^2 */
        {ZERO("\"stage\": 2"), .line = "reduce_bucket_size = 5e+08  (framework)"},
        {ZERO("\"stage\": 2, \"offload_optimizer\": {\"device\": \"cpu\"}"), .line = "optimizer_offload_fraction = 1 "},
        {ZERO("\"stage\": 3, \"offload_optimizer\": {\"device\": \"cpu\", \"ratio\": 0.3}"),
         .line = "optimizer_offload_fraction = 0.3"},
        {ZERO("\"stage\": 2, \"offload_optimizer\": {\"device\": \"none\"}"),
         .line = "optimizer_offload_fraction = 0 "},
        {ZERO("\"stage\": 2, \"cpu_offload\": true"), .line = "optimizer_offload_fraction = 1 "},
        {ZERO("\"stage\": 2, \"contiguous_gradients\": false"), .line = "framework.reduce_bucket_held = false"},
        {ZERO("\"stage\": 2, \"contiguous_gradients\": true"), .line = "framework.reduce_bucket_held = true"},
        /* types: gradients add up and travel in the model's */
        {DS("{\"train_batch_size\": 8}"), .line = "plan.precision = fp32  (framework)"},
        {DS("{\"train_batch_size\": 8, \"bf16\": {\"enabled\": true}}"),
         .line = "plan.precision = bf16  (framework's file)"},
        {DS("{\"train_batch_size\": 8, \"bf16\": {\"enabled\": true}}"), .line = "main_grads_dtype = bf16"},
        {DS("{\"train_batch_size\": 8, \"fp16\": {\"enabled\": true}}"), .line = "main_grads_dtype = fp16"},
        {DS("{\"train_batch_size\": 8, \"fp16\": {\"enabled\": true}}"), .line = "grad_reduce_dtype = fp16"},
        {DS("{\"train_batch_size\": 8, \"bf16\": {\"enabled\": true}, \"data_types\": {\"grad_accum_dtype\": "
            "\"fp32\"}}"),
         .line = "main_grads_dtype = fp32  (framework's file)"},
        {DS("{\"train_batch_size\": 8, \"bf16\": {\"enabled\": true}, \"communication_data_type\": \"fp32\"}"),
         .line = "grad_reduce_dtype = fp32"},
        {DS("{\"train_batch_size\": 8, \"bf16\": {\"enabled\": true, \"bf16_master_weights_and_grads\": true, "
            "\"bf16_optimizer_states\": true}}"),
         .line = "pure_low_precision = true"},
        {DS("{\"train_batch_size\": 8, \"bf16\": {\"enabled\": \"auto\"}}"),
         .line = "plan.precision = bf16  (default)"},
        /* the rest */
        {DS("{\"train_batch_size\": 8, \"optimizer\": {\"type\": \"SGD\"}}"), .line = "plan.optimizer = sgd"},
        {DS("{\"train_batch_size\": 8, \"tensor_parallel\": {\"autotp_size\": 2}}"),
         .line = "tensor_model_parallel_size = 2"},
        {DS("{\"train_batch_size\": 8, \"tensor_parallel\": {\"autotp_size\": 2}}"),
         .line = "sequence_parallel = false"},
        {DS("{\"train_batch_size\": 8, \"sequence_parallel_size\": 2}"), .line = "cp_comm_type = a2a"},
        {DS("{\"train_batch_size\": 8, \"wall_clock_breakdown\": true}"), .line = "framework.pass_synchronizes = true"},
        {DS("{\"train_batch_size\": 8, \"amp\": {\"enabled\": false}, \"compression_training\": {\"sparse_pruning\": "
            "{\"shared_parameters\": {\"enabled\": false}}}}"),
         .line = "plan.micro_batch_size = 1"},
    };
    check_all(lines, COUNT(lines));
}

static void test_deepspeed_refused(void **state)
{
    static const struct refusal cases[] = {
        {"ds.json", "{\"train_batch_size\": 8,\n \"zero_optimization\": {\"stage\": 4}}", "'4'", 2, 33},
        {"ds.json", "{\"train_batch_size\": 8,\n \"zero_optimization\": {\"offload_param\": {\"device\": \"cpu\"}}}",
         "offload_param.device is not modelled", 2, 52},
        {"ds.json", "{\"train_batch_size\": 8, \"amp\": {\"enabled\": true}}", "amp is not modelled", 1, 32},
        {"ds.json",
         "{\"train_batch_size\": 8, \"compression_training\": {\"sparse_pruning\": {\"shared_parameters\": "
         "{\"enabled\": "
         "true}}}}",
         "compression_training is not modelled", 1, 49},
        {"ds.json", "{\"train_batch_size\": 8, \"fp16\": {\"enabled\": true}, \"bf16\": {\"enabled\": true}}",
         "both enabled", 1, 45},
        {"ds.json", "{\"train_batch_size\": 8, \"optimizer\": {\"type\": \"OneBitAdam\"}}", "OneBitAdam", 1, 47},
        /* the job behind the file is checked as any other, with the file's places */
        {"ds.json", "{\"train_batch_size\": 8,\n \"tensor_parallel\": {\"autotp_size\": 3}}", "3", 2, 37},
        {"ds.json", "{\"train_batch_size\": 12}", "global_batch_size 12 is not dp 8", 1, 22},
        {"ds.json",
         "{\"train_batch_size\": 64, \"train_micro_batch_size_per_gpu\": 2,\n \"gradient_accumulation_steps\": 3}",
         "global_batch_size 64 is not dp 8 x micro_batch_size 2 x gradient_accumulation_steps 3", 1, 22},
    };
    (void)state;
    check_refusals(cases, COUNT(cases));
}

/* A key that no table has is named, not refused; one of another file's kind is. */
static void test_unknown(void **state)
{
    struct maq_diag *diag = maq_diag_new();
    struct maq_loaded_job *box = read_text("ds.json", "{\"train_batch_size\": 8, \"no_such_key\": 1}", true, diag);
    (void)state;
    assert_non_null(box);
    assert_int_equal(maq_diag_count(diag), 1);
    assert_int_equal(maq_diag_at(diag, 0)->severity, MAQ_WARNING);
    assert_non_null(strstr(maq_diag_at(diag, 0)->msg.ptr, "no_such_key"));
    maq_job_free(box);
    maq_diag_free(diag);
}

/* A flag wins over the file, a search leaves out what it decides. */
static void test_flags_and_search(void **state)
{
    static const struct maq_override flags[] = {{"--cluster", "cluster", "h100-sxm:8"},
                                                {"--model", "model", "llama-3.1-8b"},
                                                {"--zero", "plan.data_parallel_sharding_strategy", "optim"}};
    static const char text[] =
        "{\"train_batch_size\": 64, \"gradient_accumulation_steps\": 2, \"bf16\": {\"enabled\": true}, "
        "\"zero_optimization\": {\"stage\": 3}}";
    struct maq_loaded_job *box;
    (void)state;
    assert_int_equal(maq_job_parse(&box, "ds.json", (struct maq_str){text, sizeof text - 1}, flags, 3, NULL), MAQ_OK);
    assert_int_equal(maq_job_get(box)->plan.sharding, MAQ_SHARDING_OPTIM);
    maq_job_free(box);
    assert_int_equal(maq_job_parse_open(&box, "ds.json", (struct maq_str){text, sizeof text - 1}, flags, 2, NULL),
                     MAQ_OK);
    assert_false(maq_job_sets(box, "data_parallel_sharding_strategy"));
    assert_true(maq_job_sets(box, "precision"));
    assert_int_equal(maq_job_get(box)->workload.gbs, 64);
    maq_job_free(box);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deepspeed),
        cmocka_unit_test(test_deepspeed_refused),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_flags_and_search),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
