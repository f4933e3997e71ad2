/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_framework_files.c - configuration files of training frameworks as jobs: what keys become, what is refused and where, files beside
 * each other, and that what is read so is the job that says the same in maquette's own words.
 */
#include "maquette/post_training.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
        {ZERO("\"stage\": 3, \"offload_param\": {\"device\": \"cpu\", \"pin_memory\": true}"),
         .line = "offload_param_device = cpu  (framework's file)"},
        {ZERO("\"stage\": 3, \"cpu_offload_param\": true"), .line = "offload_param_device = cpu "},
        {ZERO("\"stage\": 2, \"offload_param\": {\"device\": \"cpu\"}"), .line = "offload_param_device = none "},
        {ZERO("\"stage\": 3, \"stage3_prefetch_bucket_size\": 0"), .line = "fsdp_prefetch = 0 "},
        {ZERO("\"stage\": 3, \"stage3_prefetch_bucket_size\": 5e7"), .line = "fsdp_prefetch = 1 "},
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
        {DS("{\"train_batch_size\": 8, \"optimizer\": {\"type\": \"Lion\"}}"), .line = "plan.optimizer = lion"},
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
        {"ds.json",
         "{\"train_batch_size\": 8,\n \"zero_optimization\": {\"stage\": 3, \"offload_optimizer\": {\"device\": "
         "\"nvme\"}}}",
         "does not say what the NVMe of a h100-sxm node", 2, 68},
        {"ds.json",
         "{\"train_batch_size\": 8,\n \"zero_optimization\": {\"stage\": 3, \"offload_param\": {\"device\": "
         "\"disc\"}}}",
         "'disc' is nothing to offload to", 2, 64},
        {"ds.json", "{\"train_batch_size\": 8, \"amp\": {\"enabled\": true}}", "amp is not modelled", 1, 32},
        {"ds.json",
         "{\"train_batch_size\": 8, \"compression_training\": {\"sparse_pruning\": {\"shared_parameters\": "
         "{\"enabled\": "
         "true}}}}",
         "compression_training is not modelled", 1, 49},
        {"ds.json", "{\"train_batch_size\": 8, \"fp16\": {\"enabled\": true}, \"bf16\": {\"enabled\": true}}",
         "both enabled", 1, 45},
        {"ds.json", "{\"train_batch_size\": 8, \"optimizer\": {\"type\": \"Adagrad\"}}", "Adagrad", 1, 47},
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

/* ---- torchtitan ---- */

#define TT(text) "titan.toml", "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nsteps = 1\n" text

static void test_torchtitan(void **state)
{
    static const struct expectation cases[] = {
        {TT("[parallelism]\n"), "job = torchtitan's configuration", false},
        {TT("[parallelism]\n"), "data_parallel_sharding_strategy = optim_grads_params", false},
        {TT("seq_len = 4096\nlocal_batch_size = 2\n[parallelism]\n"), "workload.seq_length = 4096  (framework's file)",
         false},
        {TT("local_batch_size = 2\n[parallelism]\n"), "workload.global_batch_size = 16", false},
        {TT("enable_cpu_offload = true\n[parallelism]\n"), "offload_param_device = cpu ", false},
        {TT("enable_cpu_offload = true\n[parallelism]\n"), "optimizer_offload_fraction = 1 ", false},
        {TT("[parallelism]\n"), "plan.micro_batch_size = 8  (framework)", false},
        {TT("local_batch_size = 2\nglobal_batch_size = 64\n[parallelism]\n"), "plan.micro_batch_size = 2", false},
        {TT("[parallelism]\ndata_parallel_replicate_degree = 2\ndata_parallel_shard_degree = 4\n"),
         "num_distributed_optimizer_instances = 2", false},
        {TT("[parallelism]\ndata_parallel_replicate_degree = 8\ndata_parallel_shard_degree = 1\n"),
         "data_parallel_sharding_strategy = no_shard", false},
        {TT("[parallelism]\ntensor_parallel_degree = 2\nenable_async_tensor_parallel = true\n"),
         "tp_comm_overlap = true", false},
        {TT("[parallelism]\nenable_async_tensor_parallel = false\n"), "tp_comm_overlap = false", false},
        {TT("local_batch_size = 8\n[parallelism]\npipeline_parallel_degree = 2\n"
            "pipeline_parallel_schedule = \"Interleaved1F1B\"\n[activation_checkpoint]\nmode = \"full\"\n"),
         "virtual_pipeline_model_parallel_size = 2", false},
        {TT("local_batch_size = 8\n[parallelism]\npipeline_parallel_degree = 2\n"
            "pipeline_parallel_schedule = \"Interleaved1F1B\"\n[activation_checkpoint]\nmode = \"full\"\n"),
         "workload.global_batch_size = 32", false},
        {TT("local_batch_size = 8\n[parallelism]\npipeline_parallel_degree = 2\n[activation_checkpoint]\nmode = "
            "\"none\"\n"),
         "reshard_after_forward = false", false},
        {TT("[parallelism]\npipeline_parallel_schedule = \"Interleaved1F1B\"\n"), "pipeline_schedule = 1f1b", false},
        {TT("[parallelism]\n"), "recompute_method = block", false}, /* every second layer: 16 of 32 */
        {TT("[parallelism]\n"), "recompute_num_layers = 16", false},
        {TT("[parallelism]\n[activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = \"4\"\n"),
         "recompute_num_layers = 8", false},
        {TT("[parallelism]\n[activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = \"op\"\n"),
         "selective_ac_option = op", false},
        {TT("[parallelism]\n[activation_checkpoint]\nmode = \"full\"\n"), "recompute_method = uniform", false},
        {TT("[parallelism]\n[compile]\nenable = true\n"), "fused_kernels = true", false},
        {TT("[parallelism]\n[compile]\nenable = true\ncomponents = [\"loss\"]\n"), "fused_kernels = false", false},
        {TT("[parallelism]\n[optimizer]\nimplementation = \"foreach\"\n"), "framework.optimizer = foreach", false},
        {"t.toml",
         "[model]\nname = \"llama3\"\nflavor = \"8B\"\nconverters = "
         "[\"quantize.linear.float8\"]\n[training]\n[parallelism]\n"
         "[quantize.linear.float8]\nenable_fsdp_float8_all_gather = true\n",
         "plan.precision = fp8-current", false},
        {"t.toml",
         "[model]\nname = \"llama3\"\nflavor = \"8B\"\nconverters = "
         "[\"quantize.linear.float8\"]\n[training]\n[parallelism]\n"
         "[quantize.linear.float8]\nrecipe_name = \"rowwise\"\n",
         "plan.precision = fp8-rowwise", false},
    };
    (void)state;
    check_all(cases, COUNT(cases));
}

/* ---- Hugging Face ---- */

#define TA(text)                                                                                                       \
    "args.json", "{\"output_dir\": \"x\", \"per_device_train_batch_size\": 2, " text "}", .with_model = true
#define ACC(text) "acc.yaml", "compute_environment: LOCAL_MACHINE\n" text, .with_model = true

static void test_hugging_face(void **state)
{
    static const struct expectation cases[] = {
        {TA("\"bf16\": true"), .line = "job = Hugging Face's TrainingArguments"},
        {TA("\"bf16\": true"), .line = "plan.precision = bf16  (framework's file)"},
        {TA("\"seed\": 1"), .line = "plan.precision = fp32  (framework)"},
        {TA("\"seed\": 1"), .line = "data_parallel_sharding_strategy = no_shard"},
        {TA("\"gradient_accumulation_steps\": 4"), .line = "workload.global_batch_size = 64"},
        {TA("\"gradient_checkpointing\": true"), .line = "recompute_granularity = full"},
        {TA("\"gradient_checkpointing\": false"), .line = "recompute_granularity = none  (default)"},
        {TA("\"optim\": \"adamw_bnb_8bit\""), .line = "exp_avg_dtype = int8"},
        {TA("\"optim\": \"adafactor\""), .line = "plan.optimizer = adafactor"},
        {TA("\"optim\": \"paged_lion_8bit\""), .line = "plan.optimizer = lion"},
        {TA("\"optim\": \"apollo_adamw\""), .line = "plan.use_apollo = true"},
        {TA("\"optim\": \"apollo_adamw\", \"optim_args\": \"rank=8,proj=random\""), .line = "plan.galore_rank = 8 "},
        {TA("\"fsdp\": \"full_shard auto_wrap\""), .line = "data_parallel_sharding_strategy = optim_grads_params"},
        {TA("\"fsdp\": \"shard_grad_op\""), .line = "reshard_after_forward = false"},
        {TA("\"fsdp\": \"\""), .line = "data_parallel_sharding_strategy = no_shard"},
        {TA("\"bf16\": true"), .line = "plan.grad_reduce_dtype = fp32"}, /* autocast leaves the weights in FP32 */
        {TA("\"bf16\": true, \"fsdp\": \"full_shard\""), .line = "plan.grad_reduce_dtype = bf16"},
        {TA("\"seed\": 1"), .line = "overlap_grad_reduce = true"},
        {TA("\"ddp_bucket_cap_mb\": 100"), .line = "framework.bucket_cap_mb = 1e+02"},
        {TA("\"ddp_bucket_cap_mb\": null"), .line = "framework.bucket_cap_mb = 25"},
        {TA("\"ddp_find_unused_parameters\": false"), .line = "framework.find_unused_parameters = false"},
        {TA("\"fsdp\": \"full_shard\", \"fsdp_config\": {\"activation_checkpointing\": true}"),
         .line = "recompute_granularity = full"},
        {TA("\"torch_compile\": true"), .line = "fused_kernels = true"},
        {TA("\"bf16\": true, \"deepspeed\": {\"zero_optimization\": {\"stage\": 2}, \"bf16\": {\"enabled\": \"auto\"}, "
            "\"train_micro_batch_size_per_gpu\": \"auto\"}"),
         .line = "data_parallel_sharding_strategy = optim_grads "},
        {TA("\"bf16\": true, \"deepspeed\": {\"zero_optimization\": {\"stage\": 2}, \"bf16\": {\"enabled\": "
            "\"auto\"}}"),
         .line = "plan.precision = bf16"},
        {TA("\"bf16\": true, \"deepspeed\": {\"zero_optimization\": {\"stage\": 2}, \"bf16\": {\"enabled\": "
            "\"auto\"}}"),
         .line = "main_grads_dtype = bf16"},
        {TA("\"bf16\": true, \"deepspeed\": {\"zero_optimization\": {\"stage\": 2}, \"bf16\": {\"enabled\": "
            "\"auto\"}}"),
         .line = "framework.reduce_bucket_held = true"},
        {ACC("distributed_type: MULTI_GPU\nmixed_precision: bf16\n"), .line = "job = Accelerate's configuration"},
        {ACC("distributed_type: MULTI_GPU\nmixed_precision: 'no'\n"), .line = "plan.precision = fp32"},
        {ACC("distributed_type: MULTI_GPU\nmixed_precision: fp8\n"), .line = "plan.precision = fp8-delayed"},
        {ACC("distributed_type: FSDP\nfsdp_config: {fsdp_sharding_strategy: SHARD_GRAD_OP}\n"),
         .line = "reshard_after_forward = false"},
        {ACC("distributed_type: FSDP\nfsdp_config: {fsdp_sharding_strategy: 1}\n"),
         .line = "reshard_after_forward = true"},
        {ACC("distributed_type: FSDP\nfsdp_config: {fsdp_version: 2, fsdp_reshard_after_forward: false}\n"),
         .line = "reshard_after_forward = false"},
        {ACC("distributed_type: FSDP\nnum_machines: 4\nfsdp_config: {fsdp_sharding_strategy: HYBRID_SHARD}\n"),
         .line = "num_distributed_optimizer_instances = 4"},
        {ACC("distributed_type: DEEPSPEED\ndeepspeed_config: {zero_stage: 1, offload_optimizer_device: cpu}\n"),
         .line = "optimizer_offload_fraction = 1"},
        {ACC("distributed_type: DEEPSPEED\ndeepspeed_config: {zero_stage: 3, offload_param_device: cpu}\n"),
         .line = "offload_param_device = cpu "},
        {ACC("distributed_type: FSDP\nfsdp_config: {fsdp_offload_params: true}\n"),
         .line = "offload_param_device = cpu "},
        {ACC("distributed_type: FSDP\nfsdp_config: {fsdp_offload_params: true}\n"),
         .line = "optimizer_offload_fraction = 1 "},
        {ACC("distributed_type: FSDP\nparallelism_config: {parallelism_config_tp_size: 2}\n"),
         .line = "tensor_model_parallel_size = 2"},
        {ACC("distributed_type: FSDP\nparallelism_config: {parallelism_config_cp_size: 2}\n"),
         .line = "cp_comm_type = all_gather"},
        {ACC("distributed_type: NO\ndynamo_config: {dynamo_backend: INDUCTOR}\n"), .line = "fused_kernels = true"},
    };
    (void)state;
    check_all(cases, COUNT(cases));
}

/* ---- what is built on it ---- */

#define LF(text) "lf.yaml", "model_name_or_path: Qwen/Qwen3-8B\nstage: sft\ntemplate: qwen3\n" text
#define PAIRS(text) "lf.yaml", "model_name_or_path: Qwen/Qwen3-8B\ntemplate: qwen3\n" text
#define AX(text) "ax.yaml", "base_model: meta-llama/Llama-3.1-8B\n" text

static void test_fine_tuning(void **state)
{
    static const struct expectation cases[] = {
        {LF("use_apollo: true\napollo_rank: 32\nfinetuning_type: full\n"), "galore_rank = 32 ", false},
        {LF("use_apollo: true\nfinetuning_type: full\n"), "use_apollo = true", false},
        {LF("finetuning_type: full\n"), "job = LLaMA-Factory's configuration", false},
        {LF("finetuning_type: full\n"), "recompute_granularity = full  (framework)", false},
        {LF("finetuning_type: full\ndisable_gradient_checkpointing: true\n"), "recompute_granularity = none", false},
        {LF("finetuning_type: full\n"), "workload.seq_length = 2048", false},
        {LF("finetuning_type: full\ncutoff_len: 512\n"), "workload.seq_length = 512  (framework's file)", false},
        {LF("finetuning_type: full\nbf16: true\npure_bf16: true\n"), "pure_low_precision = true", false},
        {LF("bf16: true\n"), "lora_rank = 8", false},
        {LF("bf16: true\n"), "lora_target_modules = all-linear", false},
        {LF("lora_rank: 16\nlora_target: q_proj,v_proj\n"), "lora_target_modules = 'q_proj,v_proj'", false},
        {LF("bf16: true\nquantization_bit: 4\n"), "lora_base_quantization = nf4-double", false},
        {LF("bf16: true\nquantization_bit: 4\ndouble_quantization: false\n"), "lora_base_quantization = nf4 ", false},
        {LF("bf16: true\nquantization_bit: 8\n"), "lora_base_quantization = int8", false},
        {LF("finetuning_type: full\nenable_liger_kernel: true\n"), "loss_function = linear_cross_entropy", false},
        {LF("finetuning_type: full\ntensor_model_parallel_size: 2\nsequence_parallel: true\n"),
         "sequence_parallel = true", false},
        {"v1.yaml", "model: Qwen/Qwen3-8B\nmodel_class: llm\ndist_config: {name: fsdp2}\nmicro_batch_size: 2\n",
         "data_parallel_sharding_strategy = optim_grads_params", false},
        {"v1.yaml", "model: Qwen/Qwen3-8B\nmodel_class: llm\ndist_config: {name: fsdp2}\nmicro_batch_size: 2\n",
         "workload.global_batch_size = 16", false},
        {AX("bf16: auto\n"), "job = axolotl's configuration", false},
        {AX("bf16: auto\n"), "pure_low_precision = true", false},
        {AX("bf16: true\nadapter: lora\n"), "pure_low_precision = false", false},
        {AX("bf16: true\nfsdp_version: 2\nfsdp_config: {offload_params: false}\n"), "pure_low_precision = false",
         false},
        {AX("bf16: true\nfsdp: [full_shard, auto_wrap]\n"), "data_parallel_sharding_strategy = optim_grads_params",
         false},
        {AX("bf16: auto\nadapter: qlora\nload_in_4bit: true\nlora_r: 32\nlora_target_linear: true\n"),
         "lora_base_quantization = nf4-double", false},
        {AX("bf16: auto\nadapter: qlora\nload_in_4bit: true\nlora_r: 32\nlora_target_linear: true\n"),
         "lora_target_modules = all-linear", false},
        {AX("bf16: auto\nadapter: lora\nload_in_8bit: true\nlora_target_modules: [q_proj, o_proj]\n"),
         "lora_target_modules = 'q_proj,o_proj'", false},
        {AX("adapter: lora\nlora_target_modules: 'model.layers.[\\d]+.(mlp|self_attn).(up|down|q)_proj'\n"),
         "lora_target_modules = 'up_proj,down_proj,q_proj'", false},
        {AX("optimizer: adamw_torch_4bit\n"), "exp_avg_dtype = fp4", false},
        {AX("plugins: [axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin]\n"),
         "loss_function = cut_cross_entropy", false},
        {AX("plugins: [axolotl.integrations.liger.LigerPlugin]\nliger_rms_norm: true\nliger_glu_activation: true\n"),
         "fused_kernels = true", false},
        {AX("gradient_checkpointing: offload\n"), "cpu_offloading_num_layers = 32", false},
        {AX("context_parallel_size: 2\nsample_packing: true\n"), "cp_comm_type = all_gather", false},
        {AX("context_parallel_size: 2\n"), "cp_comm_type = p2p", false},
    };
    (void)state;
    check_all(cases, COUNT(cases));
}

#define NT(text)                                                                                                       \
    "nt.yaml",                                                                                                         \
        "model: {dtype: bfloat16, model_config: {hidden_size: 2048, intermediate_size: 8192, num_hidden_layers: 4, "   \
        "num_attention_heads: 16, vocab_size: 32000, max_position_embeddings: 4096}}\n"                                \
        "tokens: {micro_batch_size: 2, batch_accumulation_per_replica: 3, sequence_length: 1024}\n" text

static void test_nanotron(void **state)
{
    static const struct expectation cases[] = {
        {NT("parallelism: {dp: 4, pp: 1, tp: 2}\n"), "job = nanotron's configuration", false},
        {NT("parallelism: {dp: 4, pp: 1, tp: 2}\n"), "workload.global_batch_size = 24", false}, /* 4 x 2 x 3 */
        {NT("parallelism: {dp: 4, pp: 1, tp: 2}\n"), "sequence_parallel = false", false},
        {NT("parallelism: {tp: 2, tp_mode: REDUCE_SCATTER}\n"), "sequence_parallel = true", false},
        {NT("parallelism: {pp: 2}\n"), "pipeline_schedule = gpipe", false},
        {NT("parallelism: {pp: 2, pp_engine: 1f1b}\n"), "pipeline_schedule = 1f1b", false},
        {NT("parallelism: {tp: 1}\n"), "pure_low_precision = true", false},
        {NT("parallelism: {tp: 1}\noptimizer: {accumulate_grad_in_fp32: true, zero_stage: 1}\n"),
         "pure_low_precision = false", false},
        {NT("parallelism: {tp: 1}\noptimizer: {accumulate_grad_in_fp32: true, zero_stage: 1}\n"),
         "data_parallel_sharding_strategy = optim ", false},
        {NT("parallelism: {recompute_layer: true}\n"), "recompute_granularity = full", false},
    };
    (void)state;
    check_all(cases, COUNT(cases));
}

#define NEMO(text)                                                                                                     \
    "nemo.yaml", "trainer: {precision: bf16}\nexp_manager: {}\nmodel:\n  micro_batch_size: 1\n  global_batch_size: "   \
                 "64\n  encoder_seq_length: "                                                                          \
                 "2048\n  num_layers: 4\n  hidden_size: 1024\n  num_attention_heads: 16\n  max_position_embeddings: "  \
                 "${.encoder_seq_length}\n"                                                                            \
                 "  ffn_hidden_size: ${multiply:4, ${.hidden_size}}\n  override_vocab_size: 32000\n" text
/* As NeMo-Run writes a recipe; `more` of the trainer's strategy, `beside` of the trainer. */
#define NEMO2(class, more, beside)                                                                                     \
    "recipe.yaml", "_partial_: true\n_target_: nemo.collections.llm.api.pretrain\ndata: {global_batch_size: 64, "      \
                   "micro_batch_size: 1, seq_length: 4096}\nmodel: {config: {_target_: "                               \
                   "nemo.collections.llm.gpt.model." class "}}\noptim: {config: {use_distributed_optimizer: "          \
                                                           "true}}\ntrainer:\n  devices: 8\n  strategy: "              \
                                                           "{tensor_model_parallel_size: 2" more "}\n" beside
#define MIXED "  plugins: {precision: bf16-mixed"
#define CALLS "  callbacks:\n  - {_target_: nemo.utils.exp_manager.TimingCallback}\n  - {_target_: nemo."

static void test_nemo2(void **state)
{
    static const struct expectation cases[] = {
        {NEMO2("llama.Llama3Config8B", "", ""), "job = NeMo 2's recipe", false},
        {NEMO2("llama.Llama3Config8B", "", ""), "tensor_model_parallel_size = 2  (framework's file)", false},
        {NEMO2("llama.Llama3Config8B", "", ""), "data_parallel_sharding_strategy = optim ", false},
        {NEMO2("llama.Llama3Config8B", "", ""), "workload.seq_length = 4096  (framework's file)", false},
        {NEMO2("llama.Llama3Config8B", "", ""), "overlap_grad_reduce = false", false},
        {NEMO2("llama.Llama3Config8B", ", ddp: {overlap_grad_reduce: true}", ""), "overlap_grad_reduce = true", false},
        {NEMO2("llama.Llama3Config8B", ", sequence_parallel: true", ""), "sequence_parallel = true", false},
        {NEMO2("llama.Llama3Config8B", "", MIXED "}\n"), "plan.precision = bf16 ", false},
        {NEMO2("llama.Llama3Config8B", "", MIXED "}\n"), "grad_reduce_dtype = fp32", false},
        {NEMO2("llama.Llama3Config8B", "", MIXED ", grad_reduce_in_fp32: false}\n"), "grad_reduce_dtype = bf16", false},
        {NEMO2("llama.Llama3Config8B", "", MIXED ", fp8: hybrid}\n"), "plan.precision = fp8-delayed", false},
        {NEMO2("llama.Llama3Config8B", "", MIXED ", fp8: hybrid, fp8_recipe: tensorwise}\n"),
         "plan.precision = fp8-current", false},
        {NEMO2("llama.Llama3Config8B", "", CALLS "MegatronCommOverlapCallback}\n"), "overlap_param_gather = true",
         false},
        {NEMO2("llama.Llama3Config8B", ", sequence_parallel: true",
               CALLS "MegatronCommOverlapCallback, tp_comm_overlap: true}\n"),
         "tp_comm_overlap = true", false},
        {NEMO2("llama.Llama3Config8B", "", CALLS "MegatronCommOverlapCallback}\n"), "tp_comm_overlap = false", false},
        {NEMO2("llama.Llama3Config8B", ", pipeline_model_parallel_size: 2", ""), "overlap_p2p_comm = false", false},
        {NEMO2("llama.Llama3Config8B",
               ", pipeline_model_parallel_size: 2, virtual_pipeline_model_parallel_size: 2, "
               "account_for_embedding_in_pipeline_split: false",
               CALLS "MegatronCommOverlapCallback}\n"),
         "overlap_p2p_comm = true", false},
        {NEMO2("mixtral.MixtralConfig8x7B, num_layers: 8", ", expert_model_parallel_size: 4",
               CALLS "MegatronTokenDropCallback}\n"),
         "moe_expert_capacity_factor = 1", false},
        {NEMO2("mixtral.MixtralConfig8x7B, num_layers: 8", ", expert_model_parallel_size: 4",
               CALLS "MegatronTokenDropCallback}\n"),
         "moe_pad_expert_input_to_capacity = true", false},
    };
    (void)state;
    check_all(cases, COUNT(cases));
}

#define LIT(text)                                                                                                      \
    "lit.yaml", "precision: bf16-true\ntrain: {global_batch_size: 16, micro_batch_size: 2, max_seq_length: "           \
                "512}\n" text

static void test_lightning(void **state)
{
    static const struct expectation cases[] = {
        {NEMO(""), "job = NeMo's configuration", false},
        {NEMO(""), "plan.precision = bf16", false},
        {NEMO(""), "workload.seq_length = 2048  (framework's file)", false},
        {NEMO("  tensor_model_parallel_size: 2\n  sequence_parallel: true\n"), "sequence_parallel = true", false},
        {NEMO("  pipeline_model_parallel_size: 2\n  virtual_pipeline_model_parallel_size: 2\n"),
         "virtual_pipeline_model_parallel_size = 2", false},
        {NEMO(""), "data_parallel_sharding_strategy = no_shard", false},
        {NEMO("  optim: {name: mcore_distributed_optim, overlap_grad_sync: true}\n"), "overlap_grad_reduce = true",
         false},
        {NEMO("  activations_checkpoint_granularity: selective\n"), "recompute_granularity = selective", false},
        {NEMO("  fp8: true\n"), "plan.precision = fp8-delayed", false},
        {NEMO("  ub_tp_comm_overlap: true\n  tensor_model_parallel_size: 2\n  sequence_parallel: true\n"),
         "tp_comm_overlap = true", false},
        {LIT("checkpoint_dir: checkpoints/meta-llama/Llama-3.1-8B\ndevices: 8\n"), "job = LitGPT's configuration",
         false},
        {LIT("checkpoint_dir: checkpoints/meta-llama/Llama-3.1-8B\ndevices: 8\n"), "recompute_granularity = full",
         false},
        {LIT("checkpoint_dir: checkpoints/meta-llama/Llama-3.1-8B\ndevices: 8\n"), "pure_low_precision = true", false},
        {LIT("checkpoint_dir: checkpoints/meta-llama/Llama-3.1-8B\ndevices: 1\n"),
         "data_parallel_sharding_strategy = no_shard", false},
        {LIT("checkpoint_dir: checkpoints/meta-llama/Llama-3.1-8B\ndevices: 1\nlora_r: 32\nquantize: bnb.nf4\n"),
         "lora_target_modules = 'q_proj,v_proj'", false},
        {LIT("checkpoint_dir: checkpoints/meta-llama/Llama-3.1-8B\ndevices: 1\nlora_r: 32\nquantize: bnb.nf4\n"),
         "lora_base_quantization = nf4 ", false},
        {LIT("model_name: tiny-llama-1.1b\ndevices: auto\nnum_nodes: 2\n"), "num_distributed_optimizer_instances = 2",
         true},
    };
    (void)state;
    check_all(cases, COUNT(cases));
}

#define MT(text)                                                                                                       \
    "mt.yml", "base_config: base.yml\nmodel_name: llama3.1-8b\nper_device_batch_size: 1\nmax_target_length: "          \
              "2048\n" text

static void test_maxtext(void **state)
{
    static const struct expectation cases[] = {
        {MT(""), "job = MaxText's configuration", false},
        {MT(""), "data_parallel_sharding_strategy = optim_grads_params", false}, /* ici_fsdp_parallelism: -1 */
        {MT(""), "num_distributed_optimizer_instances = 1", false},
        {MT(""), "workload.global_batch_size = 8", false},
        {MT(""), "recompute_granularity = full", false},
        {MT("gradient_accumulation_steps: 4\n"), "workload.global_batch_size = 32", false},
        {MT("ici_tensor_parallelism: 2\n"), "tensor_model_parallel_size = 2", false},
        {MT("ici_tensor_parallelism: 2\n"), "plan.micro_batch_size = 2", false}, /* 1 x 8 devices / 4 replicas */
        {MT("ici_data_parallelism: 2\n"), "num_distributed_optimizer_instances = 2", false},
        {MT("ici_data_parallelism: -1\nici_fsdp_parallelism: 1\n"), "data_parallel_sharding_strategy = no_shard",
         false},
        {MT("ici_context_parallelism: 2\ncontext_parallel_strategy: ring\n"), "cp_comm_type = p2p", false},
        {MT("quantization: te_fp8_delayedscaling\n"), "plan.precision = fp8-delayed", false},
        {MT("weight_dtype: bfloat16\n"), "pure_low_precision = true", false},
        {MT("attention: dot_product\n"), "attention_backend = unfused", false},
        {MT("use_iota_embed: false\n"), "framework.embeds_by_product = false", false},
    };
    (void)state;
    check_all(cases, COUNT(cases));
}

/* Several models: what becomes the section rl. */
static void test_preferences(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
        int method, reference; /* method < 0: none */
    } cases[] = {
        {AX("bf16: true\n"), -1, 0},
        {AX("bf16: true\nrl: dpo\n"), MAQ_RL_DPO, MAQ_RL_REFERENCE_MODEL},
        {AX("bf16: true\nrl: ipo\nadapter: lora\n"), MAQ_RL_DPO, MAQ_RL_REFERENCE_ADAPTER},
        {AX("bf16: true\nrl: dpo\nadapter: lora\nrl_adapter_ref_model: true\n"), MAQ_RL_DPO, MAQ_RL_REFERENCE_MODEL},
        {AX("bf16: true\nrl: orpo\n"), MAQ_RL_DPO, MAQ_RL_REFERENCE_NONE},
        {AX("bf16: true\nrl: dpo\nprecompute_ref_log_probs: true\n"), MAQ_RL_DPO, MAQ_RL_REFERENCE_PRECOMPUTED},
        {AX("bf16: true\nrl: grpo\nsequence_len: 1024\nmicro_batch_size: 4\n"
            "trl: {beta: 0.1, num_generations: 4, max_completion_length: 512}\n"),
         MAQ_RL_GRPO, MAQ_RL_REFERENCE_MODEL},
        {AX("bf16: true\nrl: grpo\nsequence_len: 1024\nmicro_batch_size: 4\ntrl: {num_generations: 4, use_vllm: true}\n"
            "vllm: {tensor_parallel_size: 2, gpu_memory_utilization: 0.5}\n"),
         MAQ_RL_GRPO, MAQ_RL_REFERENCE_NONE},
        {AX("bf16: true\nrl: kto\nadapter: lora\n"), MAQ_RL_KTO, MAQ_RL_REFERENCE_ADAPTER},
        {PAIRS("bf16: true\nstage: kto\nfinetuning_type: full\n"), MAQ_RL_KTO, MAQ_RL_REFERENCE_MODEL},
        {"kto.yaml",
         "model_name_or_path: Qwen/Qwen2.5-7B\noutput_dir: out\nlearning_rate: 1e-6\nbf16: true\n"
         "desirable_weight: 1.0\nloss_type: apo_zero_unpaired\n",
         MAQ_RL_KTO, MAQ_RL_REFERENCE_MODEL},
        {"ppo.yaml",
         "model_name_or_path: Qwen/Qwen2.5-7B\noutput_dir: out\nlearning_rate: 1e-6\nbf16: true\n"
         "num_ppo_epochs: 2\nreward_model_path: Qwen/Qwen2.5-7B\nmax_length: 1024\nkl_coef: 0.05\n",
         MAQ_RL_PPO, MAQ_RL_REFERENCE_MODEL},
        {PAIRS("bf16: true\nstage: sft\n"), -1, 0},
        {PAIRS("bf16: true\nstage: dpo\n"), MAQ_RL_DPO, MAQ_RL_REFERENCE_ADAPTER},
        {PAIRS("bf16: true\nstage: dpo\nfinetuning_type: full\n"), MAQ_RL_DPO, MAQ_RL_REFERENCE_MODEL},
        {PAIRS("bf16: true\nstage: dpo\npref_loss: simpo\n"), MAQ_RL_DPO, MAQ_RL_REFERENCE_NONE},
        {"trl.yaml",
         "model_name_or_path: Qwen/Qwen2.5-7B\noutput_dir: out\nlearning_rate: 1e-6\nbf16: true\n"
         "max_prompt_length: 512\nmax_completion_length: 512\nnum_generations: 8\nuse_vllm: true\n",
         MAQ_RL_GRPO, MAQ_RL_REFERENCE_NONE},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct maq_diag *diag = maq_diag_new();
        struct maq_loaded_job *box = read_text(cases[i].name, cases[i].text, false, diag);
        struct maq_post_training_result *r = NULL;
        bool is = box && maq_job_is_post_training(box);
        if (!box || is != (cases[i].method >= 0) ||
            (is && (maq_post_training_predict(&r, box, diag) != MAQ_OK || r->rl.method != cases[i].method ||
                    r->rl.reference != cases[i].reference))) {
            char *said = maq_diag_format(diag, 0, false);
            fail_msg("%s\n%s", cases[i].text, said ? said : "");
        }
        maq_post_training_free(r);
        maq_job_free(box);
        maq_diag_free(diag);
    }
}

#define LIGHTNING(trainer)                                                                                             \
    "l.yaml", "trainer:\n  max_steps: 9\n" trainer                                                                     \
              "model: {class_path: mine.Model, init_args: {model_name_or_path: gpt2, lr: 1e-4}}\n"                     \
              "data: {class_path: mine.Data, init_args: {batch_size: 4, max_length: 512}}\n"
#define CLASS(name, arguments)                                                                                         \
    "  strategy: {class_path: lightning.pytorch.strategies." name ", init_args: {" arguments "}}\n"

/* LightningCLI: strategies by name and by class, precision, batch, the model where an argument names it. */
static void test_lightning_cli(void **state)
{
    static const struct expectation cases[] = {
        {LIGHTNING(""), "framework.gradient_buckets = apart  (pytorch-ddp)", false},
        {LIGHTNING(""), "plan.overlap_grad_reduce = true", false},
        {LIGHTNING(""), "plan.micro_batch_size = 4", false},
        {LIGHTNING(""), "workload.seq_length = 512", false},
        {LIGHTNING("  accumulate_grad_batches: 4\n"), "workload.gradient_accumulation_steps = 4", false},
        {LIGHTNING("  strategy: auto\n"), "plan.data_parallel_sharding_strategy = no_shard", false},
        {LIGHTNING("  strategy: ddp_spawn_find_unused_parameters_true\n"), "framework.find_unused_parameters = true",
         false},
        {LIGHTNING(CLASS("DDPStrategy", "gradient_as_bucket_view: true")), "framework.gradient_buckets = views", false},
        {LIGHTNING(CLASS("DDPStrategy", "bucket_cap_mb: 50")), "framework.bucket_cap_mb = 5e+01", false},
        {LIGHTNING("  precision: bf16-mixed\n"), "plan.grad_reduce_dtype = fp32", false},
        {LIGHTNING("  precision: 16\n"), "plan.precision = fp16", false},
        {LIGHTNING("  precision: bf16-true\n"), "plan.pure_low_precision = true", false},
        {LIGHTNING("  precision: bf16-true\n"), "plan.grad_reduce_dtype = bf16", false},
        {LIGHTNING("  precision: transformer-engine\n"), "plan.precision = fp8-delayed", false},
        {LIGHTNING("  strategy: fsdp\n  precision: bf16-mixed\n"), "plan.grad_reduce_dtype = bf16", false},
        {LIGHTNING("  strategy: fsdp_cpu_offload\n"), "plan.offload_param_device = cpu", false},
        {LIGHTNING(CLASS("FSDPStrategy", "sharding_strategy: SHARD_GRAD_OP")), "plan.reshard_after_forward = false",
         false},
        {LIGHTNING(CLASS("FSDPStrategy", "activation_checkpointing_policy: [a.B]")),
         "plan.recompute_granularity = full", false},
        {LIGHTNING(CLASS("FSDPStrategy", "sharding_strategy: HYBRID_SHARD, device_mesh: [2, 4]")),
         "plan.num_distributed_optimizer_instances = 2", false},
        {LIGHTNING("  strategy: deepspeed\n"), "plan.data_parallel_sharding_strategy = optim_grads", false},
        {LIGHTNING("  strategy: deepspeed\n"), "plan.reduce_bucket_size = 2e+08", false},
        {LIGHTNING("  strategy: deepspeed\n"), "plan.grad_reduce_dtype = fp32", false},
        {LIGHTNING("  strategy: deepspeed_stage_2_offload\n  precision: bf16-mixed\n"),
         "plan.optimizer_offload_fraction = 1", false},
        {LIGHTNING("  strategy: deepspeed_stage_3_offload\n  precision: bf16-mixed\n"),
         "plan.offload_param_device = cpu", false},
        {LIGHTNING(CLASS("DeepSpeedStrategy", "stage: 1, overlap_comm: false") "  precision: bf16-mixed\n"),
         "plan.overlap_grad_reduce = false", false},
        {LIGHTNING(CLASS("DeepSpeedStrategy", "config: {zero_optimization: {stage: 3}}") "  precision: bf16-mixed\n"),
         "plan.data_parallel_sharding_strategy = optim_grads_params", false},
        {LIGHTNING("") "optimizer: {class_path: torch.optim.SGD, init_args: {lr: 0.1}}\n", "plan.optimizer = sgd",
         false},
        {LIGHTNING("") "optimizer: {class_path: torch.optim.AdamW, init_args: {fused: true}}\n",
         "framework.optimizer = fused", false},
        {"l.yaml", "trainer: {strategy: ddp}\nmodel: {hidden: 64}\ndata: {batch_size: 2}\n",
         "plan.micro_batch_size = 2", true},
    };
    static const struct refusal refused[] = {
        {LIGHTNING("  strategy: dp\n"), "the strategy dp is none that is known here", 3, 13},
        {LIGHTNING("  strategy: xla\n"), "the strategy xla is not modelled", 3, 13},
        {LIGHTNING(CLASS("ModelParallelStrategy", "")),
         "the strategy lightning.pytorch.strategies.ModelParallelStrategy", 3, 26},
        {LIGHTNING("  accelerator: tpu\n"), "training on anything but GPUs", 3, 16},
        {LIGHTNING("  precision: 64-true\n"), "the precision 64-true is not modelled", 3, 14},
        {LIGHTNING("  strategy: fsdp\n  precision: transformer-engine\n"), "goes with no sharding strategy", 4, 14},
        {LIGHTNING("  devices: 1\n"), "data_parallel_size 1, but 8 devices", 3, 12},
        {LIGHTNING(CLASS("FSDPStrategy", "mixed_precision: {a: b}")), "mixed_precision is not modelled", 3, 98},
        {LIGHTNING("  callbacks: [{class_path: lightning.pytorch.callbacks.StochasticWeightAveraging}]\n"),
         "averaged weights beside the model", 3, 28},
        {LIGHTNING("") "optimizer: {class_path: mine.Shampoo}\n", "the optimizer mine.Shampoo is not modelled", 5, 25},
        {"l.yaml", "trainer: 1\nmodel: x\n", "trainer must be a map", 1, 10},
    };
    (void)state;
    check_all(cases, COUNT(cases));
    check_refusals(refused, COUNT(refused));
}

/* Megatron-LM's tests: of a key that is there twice the last, as argparse takes it; merged arguments; what is no training is said. */
static void test_megatron_tests(void **state)
{
#define MCORE                                                                                                          \
    "--num-layers: 4\n  --hidden-size: 512\n  --num-attention-heads: 8\n  --vocab-size: 1000\n"                        \
    "  --max-position-embeddings: 1024\n  --seq-length: 1024\n  --global-batch-size: 32\n"
    static const struct expectation cases[] = {
        {"m.yaml", "MODEL_ARGS:\n  --micro-batch-size: 1\n  " MCORE "  --micro-batch-size: 2\n",
         "plan.micro_batch_size = 2", false},
        {"m.yaml",
         "BASE: &base\n  --micro-batch-size: 1\n  " MCORE "MODEL_ARGS:\n  <<: *base\n  --micro-batch-size: 4\n",
         "plan.micro_batch_size = 4", false},
    };
    static const struct {
        const char *text, *says;
        int code;
    } said[] = {
        {"MODEL_ARGS:\n  --micro-batch-size: 1\n  " MCORE "  --micro-batch-size: 2\n",
         "this one counts, which is the one that its script takes", 1002},
        {"MODE: inference\nMODEL_ARGS:\n  " MCORE, "generates tokens and trains nothing", 1323},
        {"MODE: rl\nMODEL_ARGS:\n  " MCORE "  --perform-rl-step: true\n", "the training on rollouts", 1323},
    };
    (void)state;
    check_all(cases, COUNT(cases));
    for (size_t i = 0; i < COUNT(said); i++) {
        struct maq_diag *diag = maq_diag_new();
        struct maq_loaded_job *box = read_text("m.yaml", said[i].text, false, diag);
        assert_non_null(box);
        assert_int_equal(maq_diag_count(diag), 1);
        assert_int_equal(maq_diag_at(diag, 0)->code, said[i].code);
        assert_non_null(strstr(maq_diag_at(diag, 0)->msg.ptr, said[i].says));
        maq_job_free(box);
        maq_diag_free(diag);
    }
}

static void test_others_refused(void **state)
{
    static const struct refusal cases[] = {
        {"t.toml", "[model]\nflavor = \"8B\"\nconverters = [\"quantize.grouped_mm.mx\"]\n[training]\n[parallelism]\n",
         "the converter quantize.grouped_mm.mx is not modelled", 3, 15},
        {"a.json", "{\"output_dir\": \"x\", \"learning_rate\": 1,\n \"optim\": \"lomo\"}", "lomo is not modelled", 2,
         11},
        {"a.json",
         "{\"output_dir\": \"x\", \"learning_rate\": 1,\n \"optim\": \"apollo_adamw\", \"optim_args\": \"proj=svd\"}",
         "with decompositions (proj=svd) is not modelled", 2, 11},
        {"a.json", "{\"output_dir\": \"x\", \"learning_rate\": 1,\n \"bf16\": true, \"fp16\": true}", "are both on", 2,
         10},
        {"a.yaml",
         "distributed_type: FSDP\nfsdp_config: {fsdp_sharding_strategy: NO_SHARD, fsdp_offload_params: true}\n",
         "whole parameters on the host", 2, 70},
        {"a.yaml", "distributed_type: DEEPSPEED\ndeepspeed_config: {deepspeed_config_file: no/such.json}\n",
         "there is no file", 2, 43},
        {"m.yml", "base_config: base.yml\nper_device_batch_size: 1\nremat_policy: custom\n",
         "remat_policy custom is not modelled", 3, 15},
        {"a.yaml", "base_model: x\nrl: bco\n", "bco is not modelled", 2, 5},
        {"n.yaml", "trainer: {}\nexp_manager: {}\nmodel:\n  fsdp: true\n  num_layers: 2\n",
         "model.fsdp is not modelled", 4, 9},
        {"m.yaml", "MODEL_ARGS:\n  --num-layers: 2\n  --hidden-size: 1 2\n", "--hidden-size takes one value", 3, 3},
        {"m.yaml", "MODEL_ARGS:\nTEST_TYPE: regular\n", "this test trains nothing", 1, 1},
        {"m.yaml", "MODEL_ARGS:\n  trainer.devices: 8\n", "overrides of a NeMo recipe", 2, 20},
        {"a.json", "{\"train_batch_size\": 8, \"zero_optimization\": {\"stage\": 1},\n \"train_batch_size\": 16}",
         "is given twice", 2, 2},
        {"a.yaml", "base_model: x\nplugins:\n  - a.b.OtherPlugin\n", "the plugin a.b.OtherPlugin is not modelled", 3,
         5},
        {"l.yaml", "model_name_or_path: x\nstage: ppo\ntemplate: y\n", "stage is not modelled", 2, 8},
        {"l.yaml", "model_name_or_path: x\nfinetuning_type: oft\ntemplate: y\n", "finetuning_type oft is not modelled",
         2, 18},
    };
    (void)state;
    check_refusals(cases, COUNT(cases));
}

/* ---- files beside each other ---- */

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* A file that names another from the root of its repository; a job that names one; two that do not agree. */
static void test_beside(void **state)
{
    char folder[] = "/tmp/maq-files-XXXXXX", path[512], list[1100];
    struct maq_loaded_job *box = NULL;
    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/examples", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    write_file(folder, "zero3.json", "{\"zero_optimization\": {\"stage\": 3}, \"train_batch_size\": \"auto\"}");
    write_file(folder, "zero1.json", "{\"zero_optimization\": {\"stage\": 1}, \"train_batch_size\": \"auto\"}");
    write_file(folder, "examples/a.yaml",
               "base_model: meta-llama/Llama-3.1-8B\nmicro_batch_size: 2\ndeepspeed: zero3.json\n");
    (void)snprintf(path, sizeof path, "%s/examples/a.yaml", folder);
    assert_int_equal(maq_job_load(&box, path, cluster_alone, 1, NULL), MAQ_OK);
    assert_int_equal(maq_job_get(box)->plan.sharding, MAQ_SHARDING_PARAMS);
    assert_int_equal(maq_job_get(box)->plan.mbs, 2);
    assert_true(explains(box, "framework.reduce_bucket_held = true  (deepspeed)"));
    maq_job_free(box);

    (void)snprintf(list, sizeof list,
                   "{model: llama-3.1-8b, cluster: 'h100-sxm:8', plan: {mbs: 4}, files: [%s/zero3.json]}", folder);
    assert_int_equal(maq_job_parse(&box, "job", (struct maq_str){list, strlen(list)}, NULL, 0, NULL), MAQ_OK);
    assert_int_equal(maq_job_get(box)->plan.sharding, MAQ_SHARDING_PARAMS);
    assert_int_equal(maq_job_get(box)->plan.mbs, 4);
    maq_job_free(box);

    /* what the document says itself wins, whatever its name there */
    (void)snprintf(list, sizeof list,
                   "{model: llama-3.1-8b, cluster: 'h100-sxm:8', plan: {zero: 2}, files: [%s/zero3.json]}", folder);
    assert_int_equal(maq_job_parse(&box, "job", (struct maq_str){list, strlen(list)}, NULL, 0, NULL), MAQ_OK);
    assert_int_equal(maq_job_get(box)->plan.sharding, MAQ_SHARDING_GRADS);
    maq_job_free(box);

    struct maq_diag *diag = maq_diag_new();
    (void)snprintf(list, sizeof list,
                   "{model: llama-3.1-8b, cluster: 'h100-sxm:8', files: [%s/zero3.json, %s/zero1.json]}", folder,
                   folder);
    assert_int_equal(maq_job_parse(&box, "job", (struct maq_str){list, strlen(list)}, NULL, 0, diag), MAQ_BAD_INPUT);
    assert_non_null(strstr(maq_diag_at(diag, 0)->msg.ptr, "is optim here and optim_grads_params in another file"));
    maq_diag_free(diag);
    (void)snprintf(list, sizeof list, "rm -r %s", folder);
    assert_int_equal(system(list), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deepspeed),      cmocka_unit_test(test_deepspeed_refused),
        cmocka_unit_test(test_torchtitan),     cmocka_unit_test(test_hugging_face),
        cmocka_unit_test(test_fine_tuning),    cmocka_unit_test(test_maxtext),
        cmocka_unit_test(test_nanotron),       cmocka_unit_test(test_nemo2),
        cmocka_unit_test(test_lightning),      cmocka_unit_test(test_preferences),
        cmocka_unit_test(test_lightning_cli),  cmocka_unit_test(test_megatron_tests),
        cmocka_unit_test(test_others_refused), cmocka_unit_test(test_beside),
        cmocka_unit_test(test_unknown),        cmocka_unit_test(test_flags_and_search),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
