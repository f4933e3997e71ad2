/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accelerate.c - the YAML of `accelerate config`.
 *
 * Names, defaults and meanings are those of accelerate 16cb6eb (July 2026, after 1.14): commands/config/config_args.py, utils/launch.py,
 * utils/dataclasses.py, parallelism_config.py. The number of processes and machines is the cluster's; of the machines only how many copies of its
 * shards HYBRID_SHARD has is taken from here. Batches are the script's: TrainingArguments beside this file say them.
 */
#include <string.h>

#include "base/check.h"
#include "plan/framework_files/hugging_face.h"

static const struct maq_file_key keys[] = {
    MAQ_FILE_KEEP("distributed_type"),
    MAQ_FILE_KEEP("mixed_precision"),
    MAQ_FILE_KEEP("fp16"),
    MAQ_FILE_KEEP("num_machines"),
    MAQ_FILE_KEEP("fsdp_config"),
    MAQ_FILE_KEEP("fp8_config"),
    MAQ_FILE_KEEP("deepspeed_config.deepspeed_config_file"),
    MAQ_FILE_KEEP("deepspeed_config.zero_stage"),
    MAQ_FILE_KEEP("deepspeed_config.offload_optimizer_device"),
    MAQ_FILE_KEEP("deepspeed_config.offload_param_device"),
    MAQ_FILE_SET("deepspeed_config.gradient_accumulation_steps", "workload.gradient_accumulation_steps"),
    MAQ_FILE_IDLE("deepspeed_config.*"),
    MAQ_FILE_KEEP("parallelism_config.*"),
    MAQ_FILE_KEEP("dynamo_config.dynamo_backend"),
    MAQ_FILE_IDLE("dynamo_config.*"),
    MAQ_FILE_KEEP("dynamo_backend"),
    MAQ_FILE_SET("megatron_lm_config.megatron_lm_tp_degree", "plan.tensor_model_parallel_size"),
    MAQ_FILE_SET("megatron_lm_config.megatron_lm_pp_degree", "plan.pipeline_model_parallel_size"),
    MAQ_FILE_MAP("megatron_lm_config.megatron_lm_use_distributed_optimizer", "plan.data_parallel_sharding_strategy",
                 "true=optim|false=no_shard"),
    MAQ_FILE_MAP("megatron_lm_config.megatron_lm_recompute_activations", "plan.recompute_granularity",
                 "true=selective|false=none"),
    MAQ_FILE_SET("megatron_lm_config.megatron_lm_sequence_parallelism", "plan.sequence_parallel"),
    MAQ_FILE_KEEP("megatron_lm_config.megatron_lm_num_micro_batches"),
    MAQ_FILE_IDLE("megatron_lm_config.*"),
    MAQ_FILE_REFUSE("use_cpu", "training on the host"),
    MAQ_FILE_IDLE("compute_environment"),
    MAQ_FILE_IDLE("command_file"),
    MAQ_FILE_IDLE("commands"),
    MAQ_FILE_IDLE("debug"),
    MAQ_FILE_IDLE("downcast_bf16"),
    MAQ_FILE_IDLE("enable_cpu_affinity"),
    MAQ_FILE_IDLE("gpu_ids"),
    MAQ_FILE_IDLE("ipex_config"),
    MAQ_FILE_IDLE("machine_rank"),
    MAQ_FILE_IDLE("main_*"),
    MAQ_FILE_IDLE("mpirun_config"),
    MAQ_FILE_IDLE("num_processes"),
    MAQ_FILE_IDLE("rdzv_backend"),
    MAQ_FILE_IDLE("same_network"),
    MAQ_FILE_IDLE("tpu_*"),
    MAQ_FILE_END};

static void set_precision(struct maq_file_reader *r)
{
    const struct maq_node *n = maq_file_get(r, "mixed_precision");
    if (maq_file_is(r, "mixed_precision", "bf16") || maq_file_is(r, "mixed_precision", "fp16"))
        maq_file_set(r, n, "plan.precision", maq_file_is(r, "mixed_precision", "bf16") ? "bf16" : "fp16");
    else if (maq_file_is(r, "mixed_precision", "fp8") && !maq_file_is(r, "fp8_config.backend", "AO"))
        maq_file_set(r, n, "plan.precision", "fp8-delayed"); /* Transformer Engine's recipe with a history of amax */
    else if (maq_file_is(r, "mixed_precision", "fp8"))
        maq_file_set(r, n, "plan.precision", "fp8-current"); /* torchao's, by tensor */
    else if (!maq_file_job_value(r, "plan.precision"))
        maq_file_set(r, NULL, "plan.precision", "fp32");
}

/* Degrees of parallelism_config; what is left of the devices is dp_shard x dp_replicate. */
static void set_degrees(struct maq_file_reader *r)
{
    static const struct {
        const char *key, *path;
    } degrees[] = {
        {"parallelism_config.parallelism_config_tp_size", "plan.tensor_model_parallel_size"},
        {"parallelism_config.parallelism_config_cp_size", "plan.context_parallel_size"},
        {"parallelism_config.parallelism_config_sp_size", "plan.context_parallel_size"},
        {"parallelism_config.parallelism_config_dp_replicate_size", "plan.num_distributed_optimizer_instances"}};
    for (size_t i = 0; i < MAQ_COUNT(degrees); i++)
        if (maq_file_number(r, degrees[i].key, 1) > 1)
            maq_file_set_number(r, maq_file_get(r, degrees[i].key), degrees[i].path,
                                maq_file_number(r, degrees[i].key, 1));
    maq_file_set(r, NULL, "plan.sequence_parallel", "false"); /* the transformers library's tensor parallelism */
    if (maq_file_number(r, "parallelism_config.parallelism_config_sp_size", 1) > 1)
        maq_file_set(r, maq_file_get(r, "parallelism_config.parallelism_config_sp_size"), "plan.cp_comm_type", "a2a");
    else if (maq_file_number(r, "parallelism_config.parallelism_config_cp_size", 1) > 1)
        maq_file_set(r, maq_file_get(r, "parallelism_config.parallelism_config_cp_size"), "plan.cp_comm_type",
                     maq_file_is(r, "parallelism_config.parallelism_config_cp_comm_strategy", "alltoall")
                         ? "p2p"
                         : "all_gather");
}

static bool names_place(struct maq_file_reader *r, const struct maq_node *device)
{
    if (!device || maq_str_is(device->text, "none"))
        return false;
    const bool known = maq_str_is(device->text, "cpu") || maq_str_is(device->text, "nvme");
    if (!known)
        maq_file_fault(r, device, "it takes none, cpu, nvme", "'%.*s' is nothing to offload to",
                       (int)(device->text.len < 40 ? device->text.len : 40), device->text.ptr);
    return known;
}

/* What `accelerate launch` makes a configuration of: utils/dataclasses.py, DeepSpeedPlugin. */
static void set_deepspeed_offload(struct maq_file_reader *r, const struct maq_node *optimizer,
                                  const struct maq_node *param, int64_t stage)
{
    if (names_place(r, optimizer)) {
        maq_file_set(r, optimizer, "plan.optimizer_offload_fraction", "1");
        if (maq_str_is(optimizer->text, "nvme"))
            maq_file_set(r, optimizer, "plan.offload_optimizer_device", "nvme");
    }
    if (names_place(r, param) && stage == 3)
        maq_file_set(r, param, "plan.offload_param_device", maq_str_is(param->text, "nvme") ? "nvme" : "cpu");
}

static void set_deepspeed(struct maq_file_reader *r)
{
    static const char *const stages[] = {"no_shard", "optim", "optim_grads", "optim_grads_params"};
    const struct maq_node *file = maq_file_get(r, "deepspeed_config.deepspeed_config_file"),
                          *stage = maq_file_get(r, "deepspeed_config.zero_stage"),
                          *device = maq_file_get(r, "deepspeed_config.offload_optimizer_device");
    const int64_t n = maq_file_number(r, "deepspeed_config.zero_stage", 2);
    if (file) {
        maq_file_beside(r, file);
        return;
    }
    maq_file_framework(r, "deepspeed");
    if (n < 0 || n > 3)
        maq_file_fault(r, stage, "it takes 0, 1, 2, 3", "zero_stage is a stage of ZeRO");
    else
        maq_file_set(r, stage, "plan.data_parallel_sharding_strategy", stages[n]);
    set_deepspeed_offload(r, device, maq_file_get(r, "deepspeed_config.offload_param_device"), n);
}

static void conclude(struct maq_file_reader *r)
{
    const struct maq_node *type = maq_file_get(r, "distributed_type");
    const struct maq_node *dynamo = maq_file_get(r, "dynamo_config.dynamo_backend");
    const bool sharded = maq_file_number(r, "parallelism_config.parallelism_config_dp_shard_size", 1) > 1;
    dynamo = dynamo ? dynamo : maq_file_get(r, "dynamo_backend");
    if (maq_file_is(r, "distributed_type", "DEEPSPEED"))
        set_deepspeed(r);
    else if (maq_file_is(r, "distributed_type", "FSDP") || sharded)
        maq_file_fsdp(r, type, "fsdp_config", (struct maq_str){0});
    else if (maq_file_is(r, "distributed_type", "MEGATRON_LM"))
        maq_file_framework(r, "megatron-lm");
    else
        maq_file_set(r, NULL, "plan.data_parallel_sharding_strategy", "no_shard");
    maq_file_framework(r, "huggingface");
    set_precision(r);
    set_degrees(r);
    if (dynamo && !maq_str_ieq(dynamo->text, "no") && !maq_str_ieq(dynamo->text, "eager"))
        maq_file_set(r, dynamo, "plan.fused_kernels", "true");
    if (maq_file_get(r, "megatron_lm_config.megatron_lm_num_micro_batches"))
        maq_file_set_number(r, maq_file_get(r, "megatron_lm_config.megatron_lm_num_micro_batches"),
                            "workload.gradient_accumulation_steps",
                            maq_file_number(r, "megatron_lm_config.megatron_lm_num_micro_batches", 1));
}

/* ---- written ---- */

static void put_where(struct maq_file_writer *w, const struct maq_cluster *cluster)
{
    int32_t nodes = 0;
    for (uint32_t i = 0; i < cluster->n_groups; i++)
        nodes += cluster->groups[i].nodes;
    maq_file_put_word(w, "compute_environment", "LOCAL_MACHINE");
    maq_file_put_number(w, "num_machines", nodes);
    maq_file_put_number(w, "num_processes", cluster->devices);
    maq_file_put_number(w, "machine_rank", 0);
    maq_file_put_switch(w, "use_cpu", false);
}

static const char *precision_of(const struct maq_plan *p)
{
    switch (p->precision) {
    case MAQ_PRECISION_BF16:
        return "bf16";
    case MAQ_PRECISION_FP16:
        return "fp16";
    case MAQ_PRECISION_FP8_DELAYED:
    case MAQ_PRECISION_FP8_CURRENT:
        return "fp8";
    default:
        return "no";
    }
}

/*
 * parallelism_config.py: the product of the degrees is all of the processes; TP and CP need shards beside them; `sp` is DeepSpeed's Ulysses, `cp`
 * is FSDP2's.
 */
static void put_degrees(struct maq_file_writer *w, const struct maq_job *job, bool sharded, bool deepspeed)
{
    const struct maq_plan *p = &job->plan;
    const int32_t copies = sharded || deepspeed ? p->num_optimizer_instances : job->dp;
    const bool ulysses = p->cp > 1 && p->cp_comm == MAQ_CP_A2A;
    if (p->tp == 1 && p->cp == 1 && (copies == 1 || !sharded))
        return;
    if (!sharded && !deepspeed && job->dp > 1)
        maq_file_cannot(w, "data_parallel_sharding_strategy", "shard with FSDP: optim_grads_params",
                        "tensor and context parallelism go with shards, not with whole copies");
    if (ulysses != deepspeed)
        maq_file_cannot(w, p->cp > 1 ? "cp_comm_type" : "tensor_model_parallel_size",
                        "a2a goes with DeepSpeed, p2p, all_gather and tensor parallelism with FSDP",
                        "of the degrees DeepSpeed has Ulysses alone, which FSDP has not");
    int32_t shards = job->dp / copies;
    maq_file_open(w, "parallelism_config");
    maq_file_put_number(w, "parallelism_config_dp_replicate_size", copies);
    maq_file_put_number(w, "parallelism_config_dp_shard_size", shards);
    maq_file_put_number(w, "parallelism_config_tp_size", p->tp);
    maq_file_put_number(w, ulysses ? "parallelism_config_sp_size" : "parallelism_config_cp_size", p->cp);
    if (p->cp > 1 && !ulysses)
        maq_file_put_word(w, "parallelism_config_cp_comm_strategy",
                          p->cp_comm == MAQ_CP_P2P ? "alltoall" : "allgather");
    maq_file_close(w);
}

static void put_fsdp(struct maq_file_writer *w, const struct maq_plan *p)
{
    maq_file_put_word(w, "distributed_type", "FSDP");
    maq_file_open(w, "fsdp_config");
    maq_file_put_number(w, "fsdp_version", 2);
    maq_file_put_word(w, "fsdp_auto_wrap_policy", "TRANSFORMER_BASED_WRAP");
    maq_file_put_switch(w, "fsdp_reshard_after_forward", p->reshard_after_forward);
    maq_file_put_switch(w, "fsdp_offload_params", p->offload_param == MAQ_OFFLOAD_CPU);
    maq_file_put_switch(w, "fsdp_activation_checkpointing", p->recompute == MAQ_RECOMPUTE_FULL);
    maq_file_close(w);
}

static void put_deepspeed(struct maq_file_writer *w, const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    const int device = p->optimizer_offload <= 0                  ? MAQ_OFFLOAD_NONE
                       : p->offload_optimizer == MAQ_OFFLOAD_NVME ? MAQ_OFFLOAD_NVME
                                                                  : MAQ_OFFLOAD_CPU;
    maq_file_put_word(w, "distributed_type", "DEEPSPEED");
    maq_file_open(w, "deepspeed_config");
    maq_file_put_number(w, "zero_stage", p->sharding);
    maq_file_put_number(w, "gradient_accumulation_steps", job->microbatches);
    maq_file_put_word(w, "offload_optimizer_device", maq_offload_device_name((enum maq_offload_device)device));
    maq_file_put_word(w, "offload_param_device", maq_offload_device_name((enum maq_offload_device)p->offload_param));
    maq_file_put_switch(w, "zero3_init_flag", p->sharding == MAQ_SHARDING_PARAMS);
    maq_file_close(w);
}

static void put_megatron(struct maq_file_writer *w, const struct maq_job *job)
{
    static const char *const rows = "megatron_lm_config.megatron_lm_tp_degree,megatron_lm_config.megatron_lm_pp_degree,"
                                    "megatron_lm_config.megatron_lm_use_distributed_optimizer,"
                                    "megatron_lm_config.megatron_lm_recompute_activations";
    maq_file_put_word(w, "distributed_type", "MEGATRON_LM");
    maq_file_open(w, "megatron_lm_config");
    maq_file_put_keys(w, job, keys, rows);
    if (job->plan.tp > 1)
        maq_file_put_switch(w, "megatron_lm_sequence_parallelism", job->plan.sequence_parallel != MAQ_OFF);
    maq_file_put_number(w, "megatron_lm_num_micro_batches", job->microbatches);
    maq_file_close(w);
}

static void write(struct maq_file_writer *w, const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    const bool sharded = p->sharding == MAQ_SHARDING_PARAMS, deepspeed = job->framework.reduce_bucket_held,
               megatron = strcmp(job->framework.name, "megatron-lm") == 0;
    put_where(w, &job->cluster);
    maq_file_put_word(w, "mixed_precision", precision_of(p));
    if (deepspeed)
        put_deepspeed(w, job);
    else if (megatron)
        put_megatron(w, job);
    else if (sharded)
        put_fsdp(w, p);
    else
        maq_file_put_word(w, "distributed_type", job->cluster.devices > 1 ? "MULTI_GPU" : "NO");
    if (!megatron)
        put_degrees(w, job, sharded, deepspeed);
    if (p->precision == MAQ_PRECISION_FP8_DELAYED || p->precision == MAQ_PRECISION_FP8_CURRENT) {
        maq_file_open(w, "fp8_config");
        maq_file_put_word(w, "backend", p->precision == MAQ_PRECISION_FP8_DELAYED ? "TE" : "AO");
        maq_file_close(w);
    }
    if (p->fused_kernels && !megatron) {
        maq_file_open(w, "dynamo_config");
        maq_file_put_word(w, "dynamo_backend", "INDUCTOR");
        maq_file_close(w);
    }
}

const struct maq_file_form maq_file_accelerate = {
    .title = "Accelerate's configuration",
    .told_by = "distributed_type|compute_environment,num_processes|fsdp_config,mixed_precision",
    .keys = keys,
    .conclude = conclude,
    .write = write,
    .name = "accelerate",
    .syntax = MAQ_FILE_YAML,
    .says = 0,
};
