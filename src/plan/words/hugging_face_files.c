/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hugging_face_files.c - a job as DeepSpeed's JSON and as Hugging Face's TrainingArguments: the keys that plan/framework_files/deepspeed.c and
 * hugging_face.c read. See framework_file.h.
 */
#include "base/check.h"
#include "plan/keys.h"
#include "plan/words/framework_file.h"

static const char *optimizer_of_deepspeed(int update)
{
    static const char *const names[] = {[MAQ_UPDATE_ADAM] = "AdamW",
                                        [MAQ_UPDATE_SGD] = "SGD",
                                        [MAQ_UPDATE_MUON] = "Muon",
                                        [MAQ_UPDATE_LION] = "Lion",
                                        [MAQ_UPDATE_ADAFACTOR] = NULL,
                                        [MAQ_UPDATE_LAMB] = "Lamb",
                                        [MAQ_UPDATE_ONEBIT_ADAM] = "OneBitAdam",
                                        [MAQ_UPDATE_ONEBIT_LAMB] = "OneBitLamb",
                                        [MAQ_UPDATE_ZERO_ONE_ADAM] = "ZeroOneAdam"};
    return (size_t)update < MAQ_COUNT(names) ? names[update] : NULL;
}

static const char *short_name(int dtype)
{
    return dtype == MAQ_FP32 ? "fp32" : dtype == MAQ_FP16 ? "fp16" : dtype == MAQ_BF16 ? "bf16" : NULL;
}

static void put_device(struct maq_file_writer *w, const char *key, int device, const struct maq_plan *p, bool optimizer)
{
    maq_file_open(w, key);
    maq_file_put_text(w, "device", maq_offload_device_name((enum maq_offload_device)device));
    if (device == MAQ_OFFLOAD_NVME)
        maq_file_put_text(w, "nvme_path", "/nvme");
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
        maq_file_put_text(w, "grad_accum_dtype", grad);
        maq_file_close(w);
    }
    if (wire)
        maq_file_put_text(w, "communication_data_type", wire);
}

static void put_deepspeed(struct maq_file_writer *w, const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    const char *optimizer = optimizer_of_deepspeed(p->update);
    maq_file_put_number(w, "train_micro_batch_size_per_gpu", p->mbs);
    maq_file_put_number(w, "gradient_accumulation_steps", job->microbatches);
    put_precision(w, job);
    put_zero(w, job);
    if (optimizer) {
        maq_file_open(w, "optimizer");
        maq_file_put_text(w, "type", optimizer);
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

void maq_file_write_deepspeed(struct maq_file_writer *w, const struct maq_job *job)
{
    put_deepspeed(w, job);
}

/* ---- TrainingArguments ---- */

static const char *optim_of(const struct maq_plan *p)
{
    const bool eight = p->optimizer_dtype == MAQ_INT8, four = p->optimizer_dtype == MAQ_FP4;
    if (p->galore_rank > 0 && p->update == MAQ_UPDATE_ADAFACTOR)
        return p->galore_layerwise ? "galore_adafactor_layerwise" : "galore_adafactor";
    if (p->galore_rank > 0 && p->galore_layerwise)
        return eight ? "galore_adamw_8bit_layerwise" : "galore_adamw_layerwise";
    if (p->galore_rank > 0)
        return eight ? "galore_adamw_8bit" : "galore_adamw";
    switch ((enum maq_update)p->update) {
    case MAQ_UPDATE_ADAM:
        if (p->paged_optimizer)
            return eight ? "paged_adamw_8bit" : "paged_adamw_32bit";
        return eight ? "adamw_bnb_8bit" : four ? "adamw_torch_4bit" : "adamw_torch_fused";
    case MAQ_UPDATE_LION:
        if (p->paged_optimizer)
            return eight ? "paged_lion_8bit" : "paged_lion_32bit";
        return eight ? "lion_8bit" : "lion_32bit";
    case MAQ_UPDATE_SGD:
        return "sgd";
    case MAQ_UPDATE_MUON:
        return "muon";
    case MAQ_UPDATE_ADAFACTOR:
        return "adafactor";
    case MAQ_UPDATE_LAMB:
    case MAQ_UPDATE_ONEBIT_ADAM:
    case MAQ_UPDATE_ONEBIT_LAMB:
    case MAQ_UPDATE_ZERO_ONE_ADAM:
        break;
    }
    return NULL;
}

static void put_fsdp(struct maq_file_writer *w, const struct maq_plan *p)
{
    maq_file_put_text(w, "fsdp", p->offload_param == MAQ_OFFLOAD_CPU ? "full_shard offload" : "full_shard");
    maq_file_open(w, "fsdp_config");
    maq_file_put_switch(w, "reshard_after_forward", p->reshard_after_forward);
    maq_file_close(w);
}

static void put_adapters(struct maq_file_writer *w, const struct maq_plan *p, struct maq_buf *targets)
{
    maq_file_put_number(w, "lora_r", p->lora_rank);
    maq_buf_add(targets, p->lora_targets.ptr, p->lora_targets.len);
    if (p->lora_targets.len > 0 && targets->ptr)
        maq_file_put_text(w, "lora_target_modules", targets->ptr);
    if (p->use_dora)
        maq_file_put_switch(w, "use_dora", true);
    if (p->base_quantization == MAQ_BASE_NF4 || p->base_quantization == MAQ_BASE_INT8)
        maq_file_put_switch(w, p->base_quantization == MAQ_BASE_NF4 ? "load_in_4bit" : "load_in_8bit", true);
}

void maq_file_write_training_arguments(struct maq_file_writer *w, const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    const char *optim = optim_of(p);
    struct maq_buf text;
    maq_buf_init(&text, 4096);
    maq_file_put_text(w, "output_dir", "out");
    maq_file_put_number(w, "per_device_train_batch_size", p->mbs);
    maq_file_put_number(w, "gradient_accumulation_steps", job->microbatches);
    maq_file_put_number(w, "max_length", (double)job->workload.seq);
    if (p->precision == MAQ_PRECISION_BF16 || p->precision == MAQ_PRECISION_FP16)
        maq_file_put_switch(w, p->precision == MAQ_PRECISION_BF16 ? "bf16" : "fp16", true);
    if (optim)
        maq_file_put_text(w, "optim", optim);
    if (p->galore_rank > 0) {
        maq_buf_addf(&text, "rank=%d, update_proj_gap=%d", p->galore_rank, p->galore_gap);
        maq_file_put_text(w, "optim_args", text.ptr ? text.ptr : "");
        text.len = 0;
        maq_buf_add(&text, p->galore_targets.ptr, p->galore_targets.len);
        maq_file_put_text(w, "optim_target_modules", p->galore_targets.len > 0 && text.ptr ? text.ptr : "all-linear");
        text.len = 0;
    }
    if (p->recompute == MAQ_RECOMPUTE_FULL)
        maq_file_put_switch(w, "gradient_checkpointing", true);
    if (p->fused_kernels)
        maq_file_put_switch(w, "torch_compile", true);
    if (p->lora_rank > 0)
        put_adapters(w, p, &text);
    if (job->framework.reduce_bucket_held) { /* DeepSpeed's */
        maq_file_open(w, "deepspeed");
        put_deepspeed(w, job);
        maq_file_close(w);
    } else if (p->sharding == MAQ_SHARDING_PARAMS) {
        put_fsdp(w, p);
    }
    maq_buf_fini(&text);
}
