/* SPDX-License-Identifier: Apache-2.0 */
/*
 * training_arguments.c - Hugging Face's TrainingArguments, as a JSON or YAML that HfArgumentParser reads, with what TRL's scripts add to them.
 * Names, defaults and meanings: hugging_face.c.
 */
#include "base/check.h"
#include "plan/framework_files/hugging_face.h"
#include "plan/rl_keys.h"

#define FINDS_UNUSED "framework.find_unused_parameters"

const struct maq_file_key maq_file_trainer_keys[] = {MAQ_FILE_IDLE("_*"),
                                                     MAQ_FILE_IDLE("accelerator_config"),
                                                     MAQ_FILE_IDLE("adam_*"),
                                                     MAQ_FILE_IDLE("adapter_name_or_path"),
                                                     MAQ_FILE_IDLE("auto_find_batch_size"),
                                                     MAQ_FILE_IDLE("batch_eval_metrics"),
                                                     MAQ_FILE_IDLE("bf16_full_eval"),
                                                     MAQ_FILE_IDLE("data_seed"),
                                                     MAQ_FILE_IDLE("dataloader_*"),
                                                     MAQ_FILE_IDLE("dataset*"),
                                                     MAQ_FILE_IDLE("ddp_backend"),
                                                     MAQ_FILE_SET("ddp_bucket_cap_mb", "framework.bucket_cap_mb"),
                                                     MAQ_FILE_SET("ddp_find_unused_parameters", FINDS_UNUSED),
                                                     MAQ_FILE_IDLE("ddp_timeout"),
                                                     MAQ_FILE_IDLE("debug"),
                                                     MAQ_FILE_IDLE("disable_tqdm"),
                                                     MAQ_FILE_IDLE("do_*"),
                                                     MAQ_FILE_IDLE("early_stopping_*"),
                                                     MAQ_FILE_IDLE("eval_*"),
                                                     MAQ_FILE_IDLE("evaluation_strategy"),
                                                     MAQ_FILE_IDLE("fp16_backend"),
                                                     MAQ_FILE_IDLE("fp16_full_eval"),
                                                     MAQ_FILE_IDLE("fp16_opt_level"),
                                                     MAQ_FILE_IDLE("full_determinism"),
                                                     MAQ_FILE_IDLE("gradient_checkpointing_kwargs"),
                                                     MAQ_FILE_IDLE("greater_is_better"),
                                                     MAQ_FILE_IDLE("group_by_length"),
                                                     MAQ_FILE_IDLE("hub_*"),
                                                     MAQ_FILE_IDLE("ignore_data_skip"),
                                                     MAQ_FILE_IDLE("include_*"),
                                                     MAQ_FILE_IDLE("label_*"),
                                                     MAQ_FILE_IDLE("learning_rate"),
                                                     MAQ_FILE_IDLE("length_column_name"),
                                                     MAQ_FILE_IDLE("load_best_model_at_end"),
                                                     MAQ_FILE_IDLE("local_rank"),
                                                     MAQ_FILE_IDLE("log_*"),
                                                     MAQ_FILE_IDLE("logging_*"),
                                                     MAQ_FILE_IDLE("lr_scheduler_*"),
                                                     MAQ_FILE_IDLE("max_grad_norm"),
                                                     MAQ_FILE_IDLE("max_steps"),
                                                     MAQ_FILE_IDLE("metric_for_best_model"),
                                                     MAQ_FILE_IDLE("num_train_epochs"),
                                                     MAQ_FILE_IDLE("output_dir"),
                                                     MAQ_FILE_IDLE("overwrite_output_dir"),
                                                     MAQ_FILE_IDLE("past_index"),
                                                     MAQ_FILE_IDLE("per_device_eval_batch_size"),
                                                     MAQ_FILE_IDLE("prediction_loss_only"),
                                                     MAQ_FILE_IDLE("push_to_hub*"),
                                                     MAQ_FILE_IDLE("ray_*"),
                                                     MAQ_FILE_IDLE("remove_unused_columns"),
                                                     MAQ_FILE_IDLE("report_to"),
                                                     MAQ_FILE_IDLE("restore_callback_states_from_checkpoint"),
                                                     MAQ_FILE_IDLE("resume_from_checkpoint"),
                                                     MAQ_FILE_IDLE("run_name"),
                                                     MAQ_FILE_IDLE("save_*"),
                                                     MAQ_FILE_IDLE("seed"),
                                                     MAQ_FILE_IDLE("skip_memory_metrics"),
                                                     MAQ_FILE_IDLE("tf32"),
                                                     MAQ_FILE_IDLE("torch_compile_*"),
                                                     MAQ_FILE_IDLE("torch_empty_cache_steps"),
                                                     MAQ_FILE_IDLE("trust_remote_code"),
                                                     MAQ_FILE_IDLE("use_cpu"),
                                                     MAQ_FILE_IDLE("warmup_*"),
                                                     MAQ_FILE_IDLE("weight_decay"),
                                                     MAQ_FILE_END};

#define KEPT(key) MAQ_FILE_KEEP(key),

static const struct maq_file_key keys[] = {
    MAQ_FILE_KEEP("per_device_train_batch_size"),
    MAQ_FILE_KEEP("gradient_accumulation_steps"),
    MAQ_FILE_KEEP("bf16"),
    MAQ_FILE_KEEP("fp16"),
    MAQ_FILE_KEEP("deepspeed"),
    MAQ_FILE_KEEP("fsdp"),
    MAQ_FILE_KEEP("fsdp_config"),
    MAQ_FILE_IDLE("fsdp_min_num_params"),
    MAQ_FILE_IDLE("fsdp_transformer_layer_cls_to_wrap"),
    MAQ_FILE_KEEP("optim"),
    MAQ_FILE_KEEP("optim_args"),
    MAQ_FILE_KEEP("optim_target_modules"), /* of GaLore; other optimizers pass over it */
    MAQ_FILE_MAP("gradient_checkpointing", "plan.recompute_granularity", "true=full|false="),
    MAQ_FILE_MAP("torch_compile", "plan.fused_kernels", "true=true|false="),
    MAQ_FILE_REFUSE(
        "use_liger_kernel",
        "which kernels of Liger a model gets; plan.fused_kernels and loss_function: linear_cross_entropy say them"),
    MAQ_FILE_REFUSE("parallelism_config", "degrees as an object; Accelerate's file has them"),
    MAQ_FILE_REFUSE("neftune_noise_alpha", "noise on embeddings"),
    MAQ_FILE_KEEP("model_name_or_path"),
    MAQ_FILE_SET("max_seq_length", "workload.seq_length"),
    MAQ_FILE_SET("max_length", "workload.seq_length"),
    MAQ_FILE_SET("block_size", "workload.seq_length"),
    MAQ_FILE_IDLE("packing"), /* what is not packed is taken to fill its sequence */
    MAQ_FILE_MAP("attn_implementation", "plan.attention_backend",
                 "flash_attention_2=flash2|flash_attention_3=flash|sdpa=flash2|eager=unfused"),
    MAQ_RL_GRPO_KEYS(KEPT) MAQ_FILE_KEEP("precompute_ref_log_probs"),
    MAQ_FILE_KEEP("num_ppo_epochs"),
    MAQ_FILE_KEEP("num_mini_batches"),
    MAQ_FILE_KEEP("local_rollout_forward_batch_size"),
    MAQ_FILE_KEEP("response_length"),
    MAQ_FILE_KEEP("reward_model_path"),
    MAQ_FILE_KEEP("desirable_weight"),
    MAQ_FILE_KEEP("undesirable_weight"),
    MAQ_FILE_KEEP("loss_type"), /* of KTO */
    MAQ_FILE_IDLE("vllm_*"),
    MAQ_FILE_IDLE("kl_coef"),
    MAQ_FILE_IDLE("kl_estimator"),
    MAQ_FILE_IDLE("cliprange*"),
    MAQ_FILE_IDLE("vf_coef"),
    MAQ_FILE_IDLE("gamma"),
    MAQ_FILE_IDLE("lam"),
    MAQ_FILE_IDLE("whiten_rewards"),
    MAQ_FILE_IDLE("missing_eos_penalty"),
    MAQ_FILE_IDLE("total_episodes"),
    MAQ_FILE_IDLE("num_sample_generations"), /* samples to look at */
    MAQ_FILE_IDLE("stop_token*"),
    MAQ_FILE_IDLE("sft_model_path"),
    MAQ_FILE_IDLE("scale_rewards"),
    MAQ_FILE_IDLE("reward_weights"),
    MAQ_FILE_IDLE("temperature"),
    MAQ_FILE_KEEP("use_peft"),
    MAQ_FILE_KEEP("lora_r"),
    MAQ_FILE_KEEP("lora_target_modules"),
    MAQ_FILE_IDLE("lora_alpha"),
    MAQ_FILE_IDLE("lora_dropout"),
    MAQ_FILE_MAP("use_dora", "plan.use_dora", "true=true|false="),
    MAQ_FILE_MAP("load_in_4bit", "plan.lora_base_quantization", "true=nf4|false="),
    MAQ_FILE_MAP("load_in_8bit", "plan.lora_base_quantization", "true=int8|false="),
    MAQ_FILE_END};

static void conclude(struct maq_file_reader *r)
{
    const struct maq_node *deepspeed = maq_file_get(r, "deepspeed"), *fsdp = maq_file_get(r, "fsdp");
    maq_file_framework(r, "huggingface");
    maq_file_model(r, "model_name_or_path");
    maq_file_switches(r, "bf16", "fp16");
    maq_file_batch(r, "per_device_train_batch_size", 8, "gradient_accumulation_steps");
    maq_file_optim(r, maq_file_get(r, "optim"));
    maq_file_trl(r);
    if (maq_file_true(r, "use_peft", false) || maq_file_get(r, "lora_r"))
        maq_file_lora(r, maq_file_get(r, "lora_r"), maq_file_number(r, "lora_r", 16),
                      maq_file_get(r, "lora_target_modules"), "q_proj,v_proj");
    if (deepspeed)
        maq_file_beside(r, deepspeed);
    else if (fsdp && (fsdp->kind == MAQ_NODE_SEQ || maq_file_asks(fsdp, NULL)))
        maq_file_fsdp(r, fsdp, "fsdp_config",
                      fsdp->kind == MAQ_NODE_SEQ && fsdp->first ? fsdp->first->text : fsdp->text);
    else
        maq_file_set(r, NULL, "plan.data_parallel_sharding_strategy", "no_shard");
}

/* ---- written ---- */

static void put_adapters(struct maq_file_writer *w, const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    maq_file_put_switch(w, "use_peft", true);
    maq_file_put_number(w, "lora_r", p->lora_rank);
    maq_file_put_targets(w, "lora_target_modules", "all-linear", p);
    maq_file_put_keys(w, job, keys, "use_dora,load_in_4bit,load_in_8bit");
}

static void write(struct maq_file_writer *w, const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    maq_file_put_word(w, "output_dir", "out");
    maq_file_put_number(w, "per_device_train_batch_size", p->mbs);
    maq_file_put_number(w, "gradient_accumulation_steps", job->microbatches);
    maq_file_put_keys(w, job, keys, "max_length");
    if (p->precision == MAQ_PRECISION_BF16 || p->precision == MAQ_PRECISION_FP16)
        maq_file_put_switch(w, p->precision == MAQ_PRECISION_BF16 ? "bf16" : "fp16", true);
    maq_file_put_optim(w, "optim", "all-linear", p);
    maq_file_put_keys(w, job, keys, "gradient_checkpointing,torch_compile,attn_implementation");
    if (p->lora_rank > 0)
        put_adapters(w, job);
    maq_file_put_trainer_sharding(w, job);
}

const struct maq_file_form maq_file_training_arguments = {
    .title = "Hugging Face's TrainingArguments",
    .told_by = "per_device_train_batch_size|output_dir,learning_rate",
    .keys = keys,
    .more = maq_file_trainer_keys,
    .conclude = conclude,
    .write = write,
    .name = "training-arguments",
    .syntax = MAQ_FILE_JSON,
    .says = MAQ_FILE_SAYS_SEQUENCE | MAQ_FILE_SAYS_BATCH,
};
