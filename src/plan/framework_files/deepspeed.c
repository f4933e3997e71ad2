/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deepspeed.c - DeepSpeed's JSON (deepspeed_config, ds_config.json).
 *
 * Keys, defaults and meanings are those of deepspeed/runtime/config.py, constants.py and zero/config.py at edaa722 (August 2026, after
 * v0.19.5), and of what reads them: engine.py (which optimizer, in which types gradients add up and travel), bf16_optimizer.py. "auto" is
 * what Hugging Face's integration fills in from its own arguments (transformers, integrations/deepspeed.py): the file that names this
 * one says it, except for the bucket, which is hidden size squared there.
 *
 *   - Of the three numbers of a batch two say the third; one alone means no accumulation (_set_batch_related_parameters()).
 *   - Gradients add up in the model's type unless data_types.grad_accum_dtype says otherwise, and travel in the model's type unless
 *     communication_data_type does (get_data_types(), communication_data_type()).
 *   - BF16 with ZeRO-1, FP32 accumulation and no offloading runs under BF16_Optimizer, whose accumulators are whole and in FP32.
 *
 *   - offload_param and offload_optimizer with device nvme ask for an nvme_path, and for the cluster's NVMe here; the window of prefetching is a
 *     layer, and 0 is none (partitioned_param_coordinator.py, fetch_sub_module(): each call asks for as much again, so that it runs ahead
 *     until max_live_parameters stop it).
 *
 * 1-bit optimizers are taken to be behind their warm-up (freeze_step): plan.onebit_warmup says otherwise.
 *
 * Taken to change nothing: sizes of that window, persistence thresholds of ZeRO-3, sizes of gathers, pinned memory.
 */
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "plan/framework_files/hugging_face.h"
#include "plan/keys.h"

static const struct maq_file_key keys[] = {
    MAQ_FILE_SET("train_batch_size", "workload.global_batch_size"),
    MAQ_FILE_SET("train_micro_batch_size_per_gpu", "plan.micro_batch_size"),
    MAQ_FILE_SET("gradient_accumulation_steps", "workload.gradient_accumulation_steps"),
    /* ZeRO */
    MAQ_FILE_MAP("zero_optimization.stage", "plan.data_parallel_sharding_strategy",
                 "0=no_shard|1=optim|2=optim_grads|3=optim_grads_params"),
    MAQ_FILE_KEEP("zero_optimization.overlap_comm"), MAQ_FILE_KEEP("zero_optimization.reduce_bucket_size"),
    MAQ_FILE_MAP("zero_optimization.contiguous_gradients", "framework.reduce_bucket_held", "true=|false=false"),
    MAQ_FILE_KEEP("zero_optimization.offload_optimizer.device"),
    MAQ_FILE_KEEP("zero_optimization.offload_optimizer.ratio"),
    MAQ_FILE_REFUSE("zero_optimization.offload_optimizer.super_offload", "SuperOffload on hosts with NVLink-C2C"),
    MAQ_FILE_KEEP("zero_optimization.offload_optimizer.pipeline_read"),
    MAQ_FILE_KEEP("zero_optimization.offload_optimizer.pipeline_write"),
    MAQ_FILE_IDLE("zero_optimization.offload_optimizer.*"), MAQ_FILE_KEEP("zero_optimization.offload_param.device"),
    MAQ_FILE_IDLE("zero_optimization.offload_param.*"), MAQ_FILE_KEEP("zero_optimization.cpu_offload"),
    MAQ_FILE_KEEP("zero_optimization.cpu_offload_param"), MAQ_FILE_KEEP("zero_optimization.sub_group_size"),
    MAQ_FILE_KEEP("zero_optimization.stage3_prefetch_bucket_size"),
    MAQ_FILE_KEEP("zero_optimization.prefetch_bucket_size"), MAQ_FILE_KEEP("zero_optimization.zero_hpz_partition_size"),
    MAQ_FILE_KEEP("zero_optimization.zero_quantized_weights"),
    MAQ_FILE_REFUSE("zero_optimization.zero_quantized_nontrainable_weights", "ZeRO++'s weights of 8 bits"),
    MAQ_FILE_KEEP("zero_optimization.zero_quantized_gradients"),
    MAQ_FILE_REFUSE("zero_optimization.zeropp_loco_param", "LoCo's compensated gradients"),
    MAQ_FILE_REFUSE_BUT("zero_optimization.mics_shard_size", "-1",
                        "MiCS; plan.num_distributed_optimizer_instances is the number of its replicas"),
    MAQ_FILE_REFUSE("zero_optimization.zenflow", "ZenFlow's updates beside the next steps"),
    MAQ_FILE_IDLE("zero_optimization.*"), MAQ_FILE_IDLE("zero_allow_untested_optimizer"),
    MAQ_FILE_IDLE("zero_force_ds_cpu_optimizer"),
    /* precision */
    MAQ_FILE_KEEP("fp16.enabled"), MAQ_FILE_KEEP("bf16.enabled"), MAQ_FILE_KEEP("bfloat16.enabled"),
    MAQ_FILE_KEEP("fp16.fp16_master_weights_and_grads"), MAQ_FILE_KEEP("bf16.bf16_master_weights_and_grads"),
    MAQ_FILE_KEEP("bf16.bf16_optimizer_states"), MAQ_FILE_IDLE("fp16.*"), MAQ_FILE_IDLE("bf16.*"),
    MAQ_FILE_KEEP("data_types.grad_accum_dtype"),
    MAQ_FILE_IDLE("data_types.param_dtype"), /* has to be that of fp16 and bf16 */
    MAQ_FILE_KEEP("communication_data_type"), MAQ_FILE_REFUSE("amp", "NVIDIA Apex's mixed precision"),
    MAQ_FILE_MAP("torch_autocast.enabled", "framework.autocast", "true=true|false=false"),
    MAQ_FILE_IDLE("torch_autocast.*"),
    /* the optimizer */
    MAQ_FILE_KEEP("optimizer.type"), MAQ_FILE_IDLE("optimizer.*"), MAQ_FILE_IDLE("scheduler"),
    /* other cuts */
    MAQ_FILE_SET("tensor_parallel.autotp_size", "plan.tensor_model_parallel_size"), MAQ_FILE_IDLE("tensor_parallel.*"),
    MAQ_FILE_KEEP("sequence_parallel_size"), MAQ_FILE_IDLE("seq_parallel_communication_data_type"),
    MAQ_FILE_IDLE("pipeline"),
    /* what else changes a step */
    MAQ_FILE_MAP("wall_clock_breakdown", "framework.pass_synchronizes", "true=true|false="),
    MAQ_FILE_REFUSE("activation_checkpointing.partition_activations", "checkpoints cut over TP ranks"),
    MAQ_FILE_REFUSE("activation_checkpointing.cpu_checkpointing", "checkpoints in host memory"),
    MAQ_FILE_IDLE("activation_checkpointing.*"), /* how deepspeed.checkpointing works where a model calls it */
    MAQ_FILE_MAP("compile.enabled", "plan.fused_kernels", "true=true|false="),
    MAQ_FILE_REFUSE("compile.deepcompile", "DeepCompile's own schedule of gathers"), MAQ_FILE_IDLE("compile.*"),
    MAQ_FILE_REFUSE("compression_training", "quantized and pruned layers"),
    MAQ_FILE_REFUSE("quantize_training", "quantized weights"),
    MAQ_FILE_REFUSE("sparse_attention", "block-sparse attention"),
    MAQ_FILE_REFUSE("data_efficiency", "sequences and layers that change from step to step"),
    MAQ_FILE_REFUSE("curriculum_learning", "sequences that change from step to step"),
    MAQ_FILE_REFUSE("progressive_layer_drop", "layers that are left out at random"),
    MAQ_FILE_REFUSE("eigenvalue", "eigenvalues of the layers' Hessians"),
    MAQ_FILE_REFUSE("hybrid_engine", "generation between the steps"),
    MAQ_FILE_REFUSE("elasticity", "a batch that follows the number of devices"),
    MAQ_FILE_REFUSE("sparse_gradients", "gradients of embeddings as indices and rows"),
    MAQ_FILE_REFUSE("expert_parallel", "experts cut by AutoEP"),
    /* logs, files, and how losses are scaled */
    MAQ_FILE_IDLE("_*"), MAQ_FILE_IDLE("aio"), MAQ_FILE_IDLE("autotuning"), MAQ_FILE_IDLE("checkpoint"),
    MAQ_FILE_IDLE("comms_config"), MAQ_FILE_IDLE("comms_logger"), MAQ_FILE_IDLE("csv_monitor"),
    MAQ_FILE_IDLE("data_sampling"), MAQ_FILE_IDLE("dataloader_drop_last"), MAQ_FILE_IDLE("disable_allgather"),
    MAQ_FILE_IDLE("dump_state"), MAQ_FILE_IDLE("flops_profiler"), MAQ_FILE_IDLE("gradient_allreduce_op"),
    MAQ_FILE_IDLE("gradient_clipping"), MAQ_FILE_IDLE("gradient_predivide_factor"), MAQ_FILE_IDLE("local_rank"),
    MAQ_FILE_IDLE("log_level"), MAQ_FILE_IDLE("memory_breakdown"), MAQ_FILE_IDLE("monitor_config"),
    MAQ_FILE_IDLE("nebula"), MAQ_FILE_IDLE("prescale_gradients"), MAQ_FILE_IDLE("seed"),
    MAQ_FILE_IDLE("steps_per_print"), MAQ_FILE_IDLE("tensorboard"), MAQ_FILE_IDLE("timers"),
    MAQ_FILE_IDLE("use_node_local_storage"), MAQ_FILE_IDLE("wandb"), MAQ_FILE_END};

/* ---- precision ---- */

/* Not "auto": that is settled by the file that names this one, or stays what the device does best. */
static bool is_open(const struct maq_file_reader *r, const char *key)
{
    return !maq_file_get(r, key) && (maq_node_peek(r->root, "fp16") || maq_node_peek(r->root, "bf16"));
}

static const char *dtype_of(struct maq_str text)
{
    static const struct {
        const char *theirs, *ours;
    } types[] = {{"fp32", "fp32"},     {"float32", "fp32"}, {"torch.float32", "fp32"}, {"fp16", "fp16"},
                 {"float16", "fp16"},  {"half", "fp16"},    {"bf16", "bf16"},          {"bfp16", "bf16"},
                 {"bfloat16", "bf16"}, {"float", "fp32"}};
    for (size_t i = 0; i < MAQ_COUNT(types); i++)
        if (maq_str_ieq(text, types[i].theirs))
            return types[i].ours;
    return NULL;
}

/* A type by the key that says it, or the model's own. */
static void set_type(struct maq_file_reader *r, const char *key, const char *path, const char *otherwise)
{
    const struct maq_node *n = maq_file_get(r, key);
    const char *type = n ? dtype_of(n->text) : otherwise;
    if (n && !type)
        maq_file_fault(r, n, "it takes fp32, fp16, bf16", "%s is no type that is known here", key);
    else if (type)
        maq_file_set(r, n, path, type);
}

static const struct maq_node *bf16_switch(const struct maq_file_reader *r)
{
    const struct maq_node *n = maq_file_get(r, "bf16.enabled");
    return n ? n : maq_file_get(r, "bfloat16.enabled");
}

static const char *set_precision(struct maq_file_reader *r)
{
    const struct maq_node *bf16 = bf16_switch(r), *fp16 = maq_file_get(r, "fp16.enabled");
    const bool is_bf16 = bf16 && maq_file_asks(bf16, NULL), is_fp16 = fp16 && maq_file_asks(fp16, NULL);
    if (is_bf16 && is_fp16)
        maq_file_fault(r, fp16, "leave one of the two", "fp16 and bf16 are both enabled");
    if (is_bf16 || is_fp16) {
        maq_file_set(r, is_bf16 ? bf16 : fp16, "plan.precision", is_bf16 ? "bf16" : "fp16");
        return is_bf16 ? "bf16" : "fp16";
    }
    if (r->beside || (!bf16 && is_open(r, "bf16.enabled")) || (!fp16 && is_open(r, "fp16.enabled")))
        return NULL;
    maq_file_set(r, NULL, "plan.precision", "fp32");
    return "fp32";
}

/* Weights and gradients without copies in 4 bytes; the moments follow by themselves or stay wide. */
static void set_masters(struct maq_file_reader *r)
{
    const struct maq_node *whole = maq_file_get(r, "bf16.bf16_master_weights_and_grads");
    const bool moments = maq_file_true(r, "bf16.bf16_optimizer_states", false);
    whole = whole ? whole : maq_file_get(r, "fp16.fp16_master_weights_and_grads");
    if (!whole || !maq_file_asks(whole, NULL))
        return;
    if (moments)
        maq_file_set(r, whole, "plan.pure_low_precision", "true");
    else
        maq_file_fault(r, whole, "set bf16_optimizer_states: true as well, or leave both out",
                       "masters of 16 bits beside moments of 32 are not modelled");
}

/* ---- the rest ---- */

static void set_batch(struct maq_file_reader *r)
{
    const bool whole = maq_file_get(r, "train_batch_size"), micro = maq_file_get(r, "train_micro_batch_size_per_gpu");
    if (whole != micro && !maq_file_get(r, "gradient_accumulation_steps") && !r->beside)
        maq_file_set(r, NULL, "workload.gradient_accumulation_steps", "1");
}

static void set_bucket(struct maq_file_reader *r)
{
    const struct maq_node *zero = maq_node_peek(r->root, "zero_optimization"),
                          *bucket = zero ? maq_node_peek(zero, "reduce_bucket_size") : NULL;
    const int64_t size = maq_file_number(r, "zero_optimization.reduce_bucket_size", 0);
    int64_t hidden, layers;
    if (size > 0)
        maq_file_set_number(r, bucket, "plan.reduce_bucket_size", size);
    else if (bucket && maq_str_is(bucket->text, "auto") && maq_file_model_shape(r, &hidden, &layers))
        maq_file_set_number(r, bucket, "plan.reduce_bucket_size", hidden * hidden);
}

/* "cpu" or "nvme"; an older switch says cpu; NULL: neither. */
static const char *offload_device(struct maq_file_reader *r, const struct maq_node *device, const struct maq_node *old)
{
    if (device && maq_str_is(device->text, "nvme"))
        return "nvme";
    if (device && maq_str_is(device->text, "cpu"))
        return "cpu";
    if (device && !maq_str_is(device->text, "none"))
        maq_file_fault(r, device, "it takes none, cpu, nvme", "'%.*s' is nothing to offload to",
                       (int)(device->text.len < 40 ? device->text.len : 40), device->text.ptr);
    return !device && old && maq_file_asks(old, NULL) ? "cpu" : NULL;
}

static void set_optimizer_offload(struct maq_file_reader *r)
{
    const struct maq_node *device = maq_file_get(r, "zero_optimization.offload_optimizer.device"),
                          *ratio = maq_file_get(r, "zero_optimization.offload_optimizer.ratio"),
                          *old = maq_file_get(r, "zero_optimization.cpu_offload"),
                          *tile = maq_file_get(r, "zero_optimization.sub_group_size");
    const char *where = offload_device(r, device, old);
    if (!where)
        return;
    maq_file_set(r,
                 ratio    ? ratio
                 : device ? device
                          : old,
                 "plan.optimizer_offload_fraction", ratio ? maq_arena_strdup(&r->job->arena, ratio->text) : "1");
    if (strcmp(where, "nvme") != 0)
        return;
    maq_file_set(r, device, "plan.offload_optimizer_device", where);
    if (tile)
        maq_file_set_number(r, tile, "plan.offload_sub_group_size",
                            maq_file_number(r, "zero_optimization.sub_group_size", 0));
    if (maq_file_true(r, "zero_optimization.offload_optimizer.pipeline_read", false))
        maq_file_set(r, maq_file_get(r, "zero_optimization.offload_optimizer.pipeline_read"),
                     "plan.offload_pipeline_read", "true");
    if (maq_file_true(r, "zero_optimization.offload_optimizer.pipeline_write", false))
        maq_file_set(r, maq_file_get(r, "zero_optimization.offload_optimizer.pipeline_write"),
                     "plan.offload_pipeline_write", "true");
}

/* Below stage 3 there are no shards of parameters: DeepSpeed passes over offload_param (runtime/engine.py). */
static void set_param_offload(struct maq_file_reader *r, int64_t stage)
{
    const struct maq_node *device = maq_file_get(r, "zero_optimization.offload_param.device"),
                          *old = maq_file_get(r, "zero_optimization.cpu_offload_param"),
                          *window = maq_file_get(r, "zero_optimization.stage3_prefetch_bucket_size");
    const char *where = offload_device(r, device, old);
    if (where && stage == 3)
        maq_file_set(r, device ? device : old, "plan.offload_param_device", where);
    window = window ? window : maq_file_get(r, "zero_optimization.prefetch_bucket_size");
    if (window && stage == 3 && maq_str_is(window->text, "0"))
        maq_file_set(r, window, "plan.fsdp_prefetch", "0");
}

/* Names are compared in small letters (runtime/config.py, get_optimizer_name()); the first of an optimizer is written. */
static const struct {
    const char *theirs, *ours;
} optimizers[] = {{"AdamW", "adam"},
                  {"Adam", "adam"},
                  {"FusedAdam", "adam"},
                  {"CPUAdam", "adam"},
                  {"DeepSpeedCPUAdam", "adam"},
                  {"SGD", "sgd"},
                  {"Muon", "muon"},
                  {"Lion", "lion"},
                  {"Lamb", "lamb"},
                  {"OneBitAdam", "onebit_adam"},
                  {"OneBitLamb", "onebit_lamb"},
                  {"ZeroOneAdam", "zero_one_adam"}};

static void set_optimizer(struct maq_file_reader *r)
{
    const struct maq_node *n = maq_file_get(r, "optimizer.type");
    for (size_t i = 0; n && i < MAQ_COUNT(optimizers); i++)
        if (maq_str_ieq(n->text, optimizers[i].theirs)) {
            maq_file_set(r, n, "plan.optimizer", optimizers[i].ours);
            return;
        }
    if (n)
        maq_file_fault(r, n, "Adam, AdamW, SGD, Lamb, Lion, Muon, OneBitAdam, OneBitLamb and ZeroOneAdam are",
                       "the optimizer %.*s is not modelled", (int)(n->text.len < 60 ? n->text.len : 60), n->text.ptr);
}

/* ZeRO++, below stage 3 passed over. */
static void set_plus_plus(struct maq_file_reader *r, int64_t stage)
{
    static const char *const switches[] = {"zero_quantized_weights", "zero_quantized_gradients"};
    const struct maq_node *second = maq_file_get(r, "zero_optimization.zero_hpz_partition_size");
    const int64_t ranks = maq_file_number(r, "zero_optimization.zero_hpz_partition_size", 1);
    for (size_t i = 0; i < MAQ_COUNT(switches) && stage == 3; i++) {
        char key[64], path[64];
        maq__snprintf(key, sizeof key, "zero_optimization.%s", switches[i]);
        maq__snprintf(path, sizeof path, "plan.%s", switches[i]);
        const struct maq_node *n = maq_file_get(r, key);
        if (n && maq_file_asks(n, NULL))
            maq_file_set(r, n, maq_arena_strdup(&r->job->arena, maq_str_of(path)), "true");
    }
    if (second && stage == 3 && ranks > 1)
        maq_file_set_number(r, second, "plan.zero_hpz_partition_size", ranks);
}

static void conclude(struct maq_file_reader *r)
{
    const struct maq_node *overlap = maq_file_get(r, "zero_optimization.overlap_comm"),
                          *ulysses = maq_file_get(r, "sequence_parallel_size");
    const int64_t stage = maq_file_number(r, "zero_optimization.stage", 0);
    maq_file_framework(r, "deepspeed");
    const char *model = set_precision(r);
    set_type(r, "data_types.grad_accum_dtype", "plan.main_grads_dtype", model);
    set_type(r, "communication_data_type", "plan.grad_reduce_dtype", model);
    set_masters(r);
    maq_file_set(r, NULL, "plan.data_parallel_sharding_strategy", "no_shard");
    maq_file_set(r, NULL, "plan.sequence_parallel", "false"); /* AutoTP's LinearAllreduce */
    if (overlap || stage < 3)                                 /* ZeRO-3 overlaps unless it is told not to */
        maq_file_set(r, overlap, "plan.overlap_grad_reduce",
                     overlap && maq_file_asks(overlap, NULL) ? "true" : "false");
    maq_file_set(r, NULL, "plan.overlap_param_gather", stage == 3 ? "true" : "false");
    set_batch(r);
    set_bucket(r);
    set_optimizer(r);
    set_plus_plus(r, stage);
    set_optimizer_offload(r);
    set_param_offload(r, stage);
    if (ulysses && maq_file_number(r, "sequence_parallel_size", 1) > 1) {
        maq_file_set_number(r, ulysses, "plan.context_parallel_size", maq_file_number(r, "sequence_parallel_size", 1));
        maq_file_set(r, ulysses, "plan.cp_comm_type", "a2a");
    }
}

/* ---- written ---- */

static const char *name_of(const struct maq_plan *p)
{
    char value[64];
    const char *ours = maq_plan_value(value, p, "optimizer");
    for (size_t i = 0; i < MAQ_COUNT(optimizers); i++)
        if (strcmp(optimizers[i].ours, ours) == 0)
            return optimizers[i].theirs;
    return NULL;
}

static const char *short_name(int dtype)
{
    return dtype == MAQ_FP32 ? "fp32" : dtype == MAQ_FP16 ? "fp16" : dtype == MAQ_BF16 ? "bf16" : NULL;
}

static void put_device(struct maq_file_writer *w, const char *key, int device, const struct maq_plan *p, bool optimizer)
{
    maq_file_open(w, key);
    maq_file_put_word(w, "device", maq_offload_device_name((enum maq_offload_device)device));
    if (device == MAQ_OFFLOAD_NVME)
        maq_file_put_word(w, "nvme_path", "/nvme");
    if (optimizer && p->optimizer_offload < 1)
        maq_file_put_number(w, "ratio", p->optimizer_offload);
    if (optimizer && device == MAQ_OFFLOAD_NVME) {
        maq_file_put_switch(w, "pipeline_read", p->offload_reads_ahead);
        maq_file_put_switch(w, "pipeline_write", p->offload_writes_behind);
    }
    maq_file_close(w);
}

static void put_zero(struct maq_file_writer *w, const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    maq_file_open(w, "zero_optimization");
    maq_file_put_number(w, "stage", p->sharding);
    maq_file_put_switch(w, "overlap_comm", p->overlap_grad_reduce == MAQ_ON);
    if (p->reduce_bucket_size > 0)
        maq_file_put_number(w, "reduce_bucket_size", p->reduce_bucket_size);
    if (p->optimizer_offload > 0)
        put_device(w, "offload_optimizer",
                   p->offload_optimizer == MAQ_OFFLOAD_NONE ? MAQ_OFFLOAD_CPU : p->offload_optimizer, p, true);
    if (p->offload_param != MAQ_OFFLOAD_NONE)
        put_device(w, "offload_param", p->offload_param, p, false);
    if (p->offload_optimizer == MAQ_OFFLOAD_NVME)
        maq_file_put_number(w, "sub_group_size", p->offload_tile);
    if (p->sharding == MAQ_SHARDING_PARAMS && p->fsdp_prefetch == 0)
        maq_file_put_number(w, "stage3_prefetch_bucket_size", 0);
    if (p->hpz > 1)
        maq_file_put_number(w, "zero_hpz_partition_size", p->hpz);
    if (p->quantized_weights)
        maq_file_put_switch(w, "zero_quantized_weights", true);
    if (p->quantized_gradients)
        maq_file_put_switch(w, "zero_quantized_gradients", true);
    maq_file_close(w);
}

static void put_precision(struct maq_file_writer *w, const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    const bool bf16 = p->precision == MAQ_PRECISION_BF16, fp16 = p->precision == MAQ_PRECISION_FP16;
    const char *grad = short_name(p->grad_dtype), *wire = short_name(p->grad_reduce_dtype);
    if (bf16 || fp16) {
        maq_file_open(w, bf16 ? "bf16" : "fp16");
        maq_file_put_switch(w, "enabled", true);
        if (p->pure_low_precision && bf16) {
            maq_file_put_switch(w, "bf16_master_weights_and_grads", true);
            maq_file_put_switch(w, "bf16_optimizer_states", true);
        }
        maq_file_close(w);
    }
    if (grad) {
        maq_file_open(w, "data_types");
        maq_file_put_word(w, "grad_accum_dtype", grad);
        maq_file_close(w);
    }
    if (wire)
        maq_file_put_word(w, "communication_data_type", wire);
}

void maq_file_put_deepspeed(struct maq_file_writer *w, const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    const char *optimizer = name_of(p);
    maq_file_put_number(w, "train_micro_batch_size_per_gpu", p->mbs);
    maq_file_put_number(w, "gradient_accumulation_steps", job->microbatches);
    put_precision(w, job);
    put_zero(w, job);
    if (optimizer) {
        maq_file_open(w, "optimizer");
        maq_file_put_word(w, "type", optimizer);
        maq_file_close(w);
    }
    if (p->tp > 1) {
        maq_file_open(w, "tensor_parallel");
        maq_file_put_number(w, "autotp_size", p->tp);
        maq_file_close(w);
    }
    if (p->cp > 1)
        maq_file_put_number(w, "sequence_parallel_size", p->cp);
    if (p->fused_kernels) {
        maq_file_open(w, "compile");
        maq_file_put_switch(w, "enabled", true);
        maq_file_close(w);
    }
}

const struct maq_file_form maq_file_deepspeed = {
    .title = "DeepSpeed's configuration",
    .told_by = "zero_optimization|train_micro_batch_size_per_gpu|train_batch_size",
    .keys = keys,
    .conclude = conclude,
    .write = maq_file_put_deepspeed,
    .name = "deepspeed",
    .syntax = MAQ_FILE_JSON,
    .says = MAQ_FILE_SAYS_BATCH,
};
