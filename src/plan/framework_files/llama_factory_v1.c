/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llama_factory_v1.c - the YAML of LLaMA-Factory's v1, which has arguments of its own and plugins by name.
 *
 * Names, defaults and meanings are those of its v1 (config and plugins) at ff6d4d1 (August 2026). A step has global_batch_size
 * sequences, or micro_batch_size of each data-parallel rank; layers are recomputed unless enable_activation_checkpointing is off.
 */
#include "base/check.h"
#include "plan/framework_files/hugging_face.h"

static const struct maq_file_key keys[] = {
    MAQ_FILE_KEEP("model"),
    MAQ_FILE_SET("micro_batch_size", "plan.micro_batch_size"),
    MAQ_FILE_SET("global_batch_size", "workload.global_batch_size"),
    MAQ_FILE_SET("cutoff_len", "workload.seq_length"),
    MAQ_FILE_KEEP("bf16"),
    MAQ_FILE_MAP("enable_activation_checkpointing", "plan.recompute_granularity", "true=full|false=none"),
    MAQ_FILE_REFUSE_BUT("batching_strategy", "normal|padding_free", "batches whose number of tokens changes"),
    MAQ_FILE_SET("cp_size", "plan.context_parallel_size"),
    MAQ_FILE_MAP("cp_mode", "plan.cp_comm_type", "ulysses=a2a"),
    MAQ_FILE_KEEP("dist_config.name"),
    MAQ_FILE_KEEP("dist_config.config_file"),
    MAQ_FILE_SET("dist_config.mp_replicate_size", "plan.num_distributed_optimizer_instances"),
    MAQ_FILE_IDLE("dist_config.dcp_path"),
    MAQ_FILE_KEEP("peft_config.*"),
    MAQ_FILE_KEEP("quant_config.*"),
    MAQ_FILE_MAP("optim_config.name", "plan.optimizer", "adamw=adam|muon=muon"),
    MAQ_FILE_IDLE("optim_config.*"),
    MAQ_FILE_REFUSE_BUT("kernel_config.name", "auto",
                        "chosen kernels"), /* auto: those of the platform; none on NVIDIA's */
    MAQ_FILE_REFUSE("kernel_config.include_kernels", "chosen kernels"),
    MAQ_FILE_MAP("flash_attn", "plan.attention_backend", "flash_attention_2=flash2|sdpa=flash2|eager=unfused"),
    MAQ_FILE_REFUSE("train_config", "another stage of training"),
    MAQ_FILE_REFUSE("dpo_config", "training with preferences"),
    MAQ_FILE_IDLE("model_class"),
    MAQ_FILE_IDLE("init_config"),
    MAQ_FILE_IDLE("template"),
    MAQ_FILE_IDLE("train_dataset"),
    MAQ_FILE_IDLE("eval_dataset"),
    MAQ_FILE_IDLE("batching_workers"),
    MAQ_FILE_IDLE("lr_scheduler_config"),
    MAQ_FILE_IDLE("max_new_tokens"),
    MAQ_FILE_IDLE("sample_backend"),
    MAQ_FILE_IDLE("dist_timeout"),
    MAQ_FILE_END};

static void set_base(struct maq_file_reader *r)
{
    const struct maq_node *bits = maq_file_get(r, "quant_config.quantization_bit"),
                          *quant = maq_file_get(r, "quant_config");
    const int64_t n = maq_file_number(r, "quant_config.quantization_bit", 0);
    if (!quant)
        return;
    if (n == 4 || n == 8)
        maq_file_set(r, bits, "plan.lora_base_quantization", n == 8 ? "int8" : "nf4-double");
    else
        maq_file_fault(r, quant, "4 and 8 bits are", "this quantization of the base is not modelled");
}

static void set_adapter(struct maq_file_reader *r)
{
    const struct maq_node *name = maq_file_get(r, "peft_config.name"), *rank = maq_file_get(r, "peft_config.r");
    if (!name)
        return;
    if (maq_file_is(r, "peft_config.name", "lora"))
        maq_file_lora(r, rank ? rank : name, maq_file_number(r, "peft_config.r", 8),
                      maq_file_get(r, "peft_config.target_modules"), "all-linear");
    else
        maq_file_fault(r, name, "lora is", "peft_config %.*s is not modelled", (int)name->text.len, name->text.ptr);
}

static void conclude(struct maq_file_reader *r)
{
    const struct maq_node *name = maq_file_get(r, "dist_config.name"),
                          *file = maq_file_get(r, "dist_config.config_file");
    maq_file_framework(r, "huggingface");
    maq_file_model(r, "model");
    maq_file_set(r, maq_file_get(r, "bf16"), "plan.precision", maq_file_true(r, "bf16", true) ? "bf16" : "fp32");
    maq_file_set(r, NULL, "plan.micro_batch_size", "1");
    if (!maq_file_get(r, "global_batch_size"))
        maq_file_set(r, NULL, "workload.gradient_accumulation_steps", "1");
    maq_file_set(r, NULL, "workload.seq_length", "2048");
    maq_file_set(r, NULL, "plan.recompute_granularity", "full");
    set_adapter(r);
    set_base(r);
    if (maq_file_is(r, "dist_config.name", "deepspeed") && file)
        maq_file_beside(r, file);
    else if (maq_file_is(r, "dist_config.name", "fsdp2"))
        maq_file_set(r, name, "plan.data_parallel_sharding_strategy", "optim_grads_params");
    else if (name)
        maq_file_fault(r, name, "fsdp2 and deepspeed are", "dist_config %.*s is not modelled", (int)name->text.len,
                       name->text.ptr);
    else
        maq_file_set(r, NULL, "plan.data_parallel_sharding_strategy", "no_shard");
}

const struct maq_file_form maq_file_llama_factory_v1 = {
    .title = "LLaMA-Factory's configuration (v1)",
    .told_by = "model,model_class",
    .keys = keys,
    .more = maq_file_trainer_keys,
    .conclude = conclude,
};
