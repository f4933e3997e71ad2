/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llama_factory.c - LLaMA-Factory's YAML: TrainingArguments with arguments of its own.
 *
 * Names, defaults and meanings are those of the folder hparams at ff6d4d1 (August 2026, after v0.9.5), and of what reads them: model/adapter.py
 * (what is trained is in FP32 unless pure_bf16 or DeepSpeed's stage 3 or FSDP say otherwise), model/model_utils/checkpointing.py (layers are
 * recomputed unless disable_gradient_checkpointing), model/model_utils/quantization.py. The degrees are those of its Megatron backend.
 *
 * Sequences that are not packed are taken to be as long as cutoff_len lets them be.
 */
#include <string.h>

#include "base/check.h"
#include "plan/framework_files/hugging_face.h"

static const struct maq_file_key keys[] = {
    MAQ_FILE_KEEP("model_name_or_path"), MAQ_FILE_REFUSE_BUT("stage", "sft|pt|dpo|kto", "rewards and PPO"),
    MAQ_FILE_KEEP("pref_loss"), MAQ_FILE_KEEP("precompute_ref_log_probs"),
    MAQ_FILE_REFUSE("ref_model", "a reference of other sizes"), MAQ_FILE_KEEP("finetuning_type"),
    MAQ_FILE_KEEP("lora_rank"), MAQ_FILE_KEEP("lora_target"), MAQ_FILE_KEEP("quantization_bit"),
    MAQ_FILE_KEEP("quantization_method"), MAQ_FILE_KEEP("double_quantization"),
    MAQ_FILE_REFUSE_BUT("quantization_type", "nf4|fp4", "other types of 4 bits"),
    MAQ_FILE_REFUSE("additional_target", "modules that are trained whole beside adapters"),
    MAQ_FILE_SET("cutoff_len", "workload.seq_length"), MAQ_FILE_KEEP("per_device_train_batch_size"),
    MAQ_FILE_KEEP("gradient_accumulation_steps"), MAQ_FILE_KEEP("bf16"), MAQ_FILE_KEEP("fp16"),
    MAQ_FILE_MAP("pure_bf16", "plan.pure_low_precision", "true=true|false="), MAQ_FILE_KEEP("fp8"),
    MAQ_FILE_IDLE("fp8_backend"),
    MAQ_FILE_MAP("fp8_enable_fsdp_float8_all_gather", "plan.fp8_param_gather", "true=true|false="),
    MAQ_FILE_MAP("use_dora", "plan.use_dora", "true=true|false="), MAQ_FILE_KEEP("deepspeed"), MAQ_FILE_KEEP("fsdp"),
    MAQ_FILE_KEEP("fsdp_config"), MAQ_FILE_IDLE("fsdp_transformer_layer_cls_to_wrap"), MAQ_FILE_KEEP("optim"),
    MAQ_FILE_KEEP("use_muon"), MAQ_FILE_KEEP("disable_gradient_checkpointing"), MAQ_FILE_IDLE("gradient_checkpointing"),
    MAQ_FILE_IDLE("use_reentrant_gc"),
    MAQ_FILE_MAP("flash_attn", "plan.attention_backend", "auto=|fa2=flash2|fa3=flash|sdpa=flash2|disabled=unfused"),
    MAQ_FILE_KEEP("enable_liger_kernel"), MAQ_FILE_REFUSE("use_unsloth", "Unsloth's kernels"),
    MAQ_FILE_REFUSE("use_unsloth_gc", "Unsloth's checkpoints in host memory"),
    MAQ_FILE_REFUSE("use_kt", "experts on the host (KTransformers)"),
    MAQ_FILE_REFUSE("use_v1_kernels", "kernels of its v1"), MAQ_FILE_KEEP("use_galore"), MAQ_FILE_KEEP("galore_target"),
    MAQ_FILE_KEEP("galore_rank"), MAQ_FILE_KEEP("galore_update_interval"), MAQ_FILE_KEEP("galore_layerwise"),
    MAQ_FILE_IDLE("galore_scale"), MAQ_FILE_IDLE("galore_proj_type"), MAQ_FILE_KEEP("use_apollo"),
    MAQ_FILE_KEEP("apollo_rank"), MAQ_FILE_KEEP("apollo_target"), MAQ_FILE_KEEP("apollo_update_interval"),
    MAQ_FILE_KEEP("apollo_layerwise"), MAQ_FILE_REFUSE_BUT("apollo_proj", "random", "decompositions"),
    MAQ_FILE_IDLE("apollo_*"), MAQ_FILE_REFUSE("use_badam", "BAdam's blocks of layers"),
    MAQ_FILE_REFUSE("use_adam_mini", "Adam-mini"), MAQ_FILE_REFUSE("use_llama_pro", "added layers"),
    MAQ_FILE_REFUSE("mixture_of_depths", "layers that tokens leave out"),
    MAQ_FILE_REFUSE("shift_attn", "shifted sparse attention"), MAQ_FILE_REFUSE("use_asft_loss", "a second model"),
    MAQ_FILE_REFUSE("neftune_noise_alpha", "noise on embeddings"),
    /* Megatron's degrees */
    MAQ_FILE_SET("tensor_model_parallel_size", "plan.tensor_model_parallel_size"),
    MAQ_FILE_SET("pipeline_model_parallel_size", "plan.pipeline_model_parallel_size"),
    MAQ_FILE_SET("expert_model_parallel_size", "plan.expert_model_parallel_size"),
    MAQ_FILE_SET("context_parallel_size", "plan.context_parallel_size"),
    MAQ_FILE_SET("sequence_parallel", "plan.sequence_parallel"),
    MAQ_FILE_MAP("use_distributed_optimizer", "plan.data_parallel_sharding_strategy", "true=optim|false=no_shard"),
    MAQ_FILE_SET("overlap_param_gather", "plan.overlap_param_gather"),
    MAQ_FILE_SET("overlap_grad_reduce", "plan.overlap_grad_reduce"),
    MAQ_FILE_SET("moe_token_dispatcher_type", "plan.moe_token_dispatcher_type"),
    MAQ_FILE_SET("recompute_granularity", "plan.recompute_granularity"), MAQ_FILE_IDLE("moe_grouped_gemm"),
    MAQ_FILE_IDLE("bias_activation_fusion"), MAQ_FILE_IDLE("apply_rope_fusion"),
    /* nothing of a step */
    MAQ_FILE_IDLE("adapter_name_or_path"), MAQ_FILE_IDLE("cache_dir"), MAQ_FILE_IDLE("eval_dataset"),
    MAQ_FILE_IDLE("export_*"), MAQ_FILE_IDLE("freeze_*"), MAQ_FILE_IDLE("image_*"), MAQ_FILE_IDLE("infer_*"),
    MAQ_FILE_IDLE("init_config"), MAQ_FILE_IDLE("lora_alpha"), MAQ_FILE_IDLE("lora_dropout"),
    MAQ_FILE_IDLE("loraplus_*"), MAQ_FILE_IDLE("max_samples"), MAQ_FILE_IDLE("media_dir"),
    MAQ_FILE_IDLE("neat_packing"), MAQ_FILE_IDLE("overwrite_cache"), MAQ_FILE_IDLE("packing"), MAQ_FILE_IDLE("pissa_*"),
    MAQ_FILE_IDLE("plot_loss"), MAQ_FILE_IDLE("predict_with_generate"), MAQ_FILE_IDLE("pref_*"),
    MAQ_FILE_IDLE("preprocessing_*"), MAQ_FILE_IDLE("rope_scaling"), MAQ_FILE_IDLE("streaming"),
    MAQ_FILE_IDLE("swanlab_*"), MAQ_FILE_IDLE("template"), MAQ_FILE_IDLE("tokenized_path"),
    MAQ_FILE_IDLE("train_on_prompt"), MAQ_FILE_IDLE("use_dft_loss"), MAQ_FILE_IDLE("use_eaft_loss"),
    MAQ_FILE_IDLE("use_swanlab"), MAQ_FILE_IDLE("val_size"), MAQ_FILE_IDLE("video_*"), MAQ_FILE_END};

static void set_method(struct maq_file_reader *r)
{
    const struct maq_node *type = maq_file_get(r, "finetuning_type"), *rank = maq_file_get(r, "lora_rank");
    const bool lora = maq_str_ieq(maq_file_text(r, "finetuning_type", "lora"), "lora");
    const struct maq_node *bits = maq_file_get(r, "quantization_bit"), *method = maq_file_get(r, "quantization_method");
    const int64_t n = maq_file_number(r, "quantization_bit", 0);
    if (!lora && !maq_file_is(r, "finetuning_type", "full"))
        maq_file_fault(r, type, "lora and full are", "finetuning_type %.*s is not modelled", (int)type->text.len,
                       type->text.ptr);
    if (lora)
        maq_file_lora(r, rank ? rank : type, maq_file_number(r, "lora_rank", 8), maq_file_get(r, "lora_target"),
                      "all-linear");
    if (!bits)
        return;
    if ((n != 4 && n != 8) || (method && !maq_str_is(method->text, "bnb")))
        maq_file_fault(r, method ? method : bits, "4 and 8 bits of bnb are",
                       "this quantization of the base is not modelled");
    else
        maq_file_set(r, bits, "plan.lora_base_quantization",
                     n == 8                                          ? "int8"
                     : maq_file_true(r, "double_quantization", true) ? "nf4-double"
                                                                     : "nf4");
}

static void set_optimizer(struct maq_file_reader *r)
{
    if (maq_file_true(r, "use_muon", false))
        maq_file_set(r, maq_file_get(r, "use_muon"), "plan.optimizer", "muon");
    else
        maq_file_optim(r, maq_file_get(r, "optim"));
    const struct maq_node *galore = maq_file_get(r, "use_galore"), *apollo = maq_file_get(r, "use_apollo"),
                          *layers = maq_file_get(r, "galore_layerwise");
    if (apollo && maq_file_asks(apollo, NULL)) {
        maq_file_galore(r, apollo, maq_file_number(r, "apollo_rank", 16),
                        maq_file_number(r, "apollo_update_interval", 200), maq_file_get(r, "apollo_target"));
        maq_file_set(r, apollo, "plan.use_apollo", "true");
        if (maq_file_true(r, "apollo_layerwise", false))
            maq_file_set(r, apollo, "plan.galore_layerwise", "true");
        return;
    }
    if (!galore || !maq_file_asks(galore, NULL))
        return;
    maq_file_galore(r, galore, maq_file_number(r, "galore_rank", 16), maq_file_number(r, "galore_update_interval", 200),
                    maq_file_get(r, "galore_target"));
    if (layers && maq_file_asks(layers, NULL))
        maq_file_set(r, layers, "plan.galore_layerwise", "true");
}

/* Liger's kernels for the model at hand: pointwise ones, and the loss with the output layer (model/model_utils/liger_kernel.py). */
static void set_kernels(struct maq_file_reader *r)
{
    const struct maq_node *liger = maq_file_get(r, "enable_liger_kernel");
    if (!liger || !maq_file_asks(liger, NULL))
        return;
    maq_file_set(r, liger, "plan.fused_kernels", "true");
    maq_file_set(r, liger, "plan.loss_function", "linear_cross_entropy");
}

static void conclude(struct maq_file_reader *r)
{
    const struct maq_node *deepspeed = maq_file_get(r, "deepspeed"), *fsdp = maq_file_get(r, "fsdp"),
                          *fp8 = maq_file_get(r, "fp8");
    if (maq_file_get(r, "tensor_model_parallel_size") || maq_file_get(r, "use_distributed_optimizer"))
        maq_file_framework(r, "megatron-lm");
    maq_file_framework(r, "huggingface");
    maq_file_model(r, "model_name_or_path");
    maq_file_switches(r, "bf16", "fp16");
    if (fp8 && maq_file_asks(fp8, NULL))
        maq_file_set(r, fp8, "plan.precision", "fp8-current");
    maq_file_batch(r, "per_device_train_batch_size", 8, "gradient_accumulation_steps");
    maq_file_set(r, maq_file_get(r, "cutoff_len"), "workload.seq_length", "2048");
    set_method(r);
    set_optimizer(r);
    set_kernels(r);
    if (maq_file_is(r, "stage", "dpo"))
        maq_file_preferences(r, maq_file_get(r, maq_file_get(r, "pref_loss") ? "pref_loss" : "stage"),
                             maq_file_text(r, "pref_loss", "sigmoid"));
    if (maq_file_is(r, "stage", "kto"))
        maq_file_kto(r, maq_file_get(r, "stage"));
    if (!maq_file_true(r, "disable_gradient_checkpointing", false))
        maq_file_set(r, NULL, "plan.recompute_granularity", "full");
    if (deepspeed)
        maq_file_beside(r, deepspeed);
    else if (fsdp && maq_file_asks(fsdp, NULL))
        maq_file_fsdp(r, fsdp, "fsdp_config", fsdp->text);
    else
        maq_file_set(r, NULL, "plan.data_parallel_sharding_strategy", "no_shard");
}

/* ---- written ---- */

static void put_method(struct maq_file_writer *w, const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    maq_file_put_word(w, "finetuning_type", p->lora_rank > 0 ? "lora" : "full");
    if (p->lora_rank == 0)
        return;
    maq_file_put_number(w, "lora_rank", p->lora_rank);
    maq_file_put_targets(w, "lora_target", "all", p);
    maq_file_put_keys(w, job, keys, "use_dora");
    if (p->base_quantization == MAQ_BASE_NONE)
        return;
    maq_file_put_number(w, "quantization_bit", p->base_quantization == MAQ_BASE_INT8 ? 8 : 4);
    maq_file_put_word(w, "quantization_method", "bnb");
    if (p->base_quantization != MAQ_BASE_INT8)
        maq_file_put_switch(w, "double_quantization", p->base_quantization == MAQ_BASE_NF4_DOUBLE);
}

/* GaLore and APOLLO have switches of their own, beside the optimizer that they go with. */
static void put_optimizer(struct maq_file_writer *w, const struct maq_plan *p)
{
    const char *name = maq_file_optim_name(p, false);
    if (p->update == MAQ_UPDATE_MUON)
        maq_file_put_switch(w, "use_muon", true);
    else if (name)
        maq_file_put_word(w, "optim", name);
    if (p->galore_rank == 0)
        return;
    const bool apollo = p->use_apollo, all = p->galore_targets.len == 0 || maq_str_is(p->galore_targets, "all-linear");
    maq_file_put_switch(w, apollo ? "use_apollo" : "use_galore", true);
    maq_file_put_number(w, apollo ? "apollo_rank" : "galore_rank", p->galore_rank);
    maq_file_put_number(w, apollo ? "apollo_update_interval" : "galore_update_interval", p->galore_gap);
    maq_file_put_text(w, apollo ? "apollo_target" : "galore_target", all ? MAQ_STR("all") : p->galore_targets);
    maq_file_put_switch(w, apollo ? "apollo_layerwise" : "galore_layerwise", p->galore_layerwise);
}

static void put_precision(struct maq_file_writer *w, const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    if (p->precision == MAQ_PRECISION_FP16)
        maq_file_put_switch(w, "fp16", true);
    else if (p->precision == MAQ_PRECISION_BF16)
        maq_file_put_switch(w, p->pure_low_precision ? "pure_bf16" : "bf16", true);
    if (p->precision == MAQ_PRECISION_BF16 && p->pure_low_precision)
        maq_file_put_switch(w, "bf16", true);
    if (p->precision == MAQ_PRECISION_FP8_CURRENT) {
        maq_file_put_switch(w, "fp8", true);
        maq_file_put_keys(w, job, keys, "fp8_enable_fsdp_float8_all_gather");
    }
}

static void write(struct maq_file_writer *w, const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    maq_file_put_model(w, "model_name_or_path", &job->model);
    maq_file_put_word(w, "stage", "sft");
    put_method(w, job);
    maq_file_put_keys(w, job, keys, "cutoff_len");
    maq_file_put_number(w, "per_device_train_batch_size", p->mbs);
    maq_file_put_number(w, "gradient_accumulation_steps", job->microbatches);
    put_precision(w, job);
    put_optimizer(w, p);
    maq_file_put_keys(w, job, keys, "flash_attn");
    maq_file_put_switch(w, "disable_gradient_checkpointing", p->recompute != MAQ_RECOMPUTE_FULL);
    if (p->fused_kernels && p->loss_function == MAQ_LOSS_LINEAR)
        maq_file_put_switch(w, "enable_liger_kernel", true);
    maq_file_put_word(w, "output_dir", "out");
    maq_file_put_trainer_sharding(w, job);
}

const struct maq_file_form maq_file_llama_factory = {
    .title = "LLaMA-Factory's configuration",
    .told_by = "model_name_or_path,finetuning_type|model_name_or_path,template|model_name_or_path,cutoff_len",
    .keys = keys,
    .more = maq_file_trainer_keys,
    .conclude = conclude,
    .write = write,
    .name = "llama-factory",
    .syntax = MAQ_FILE_YAML,
    .says = MAQ_FILE_SAYS_MODEL | MAQ_FILE_SAYS_SEQUENCE | MAQ_FILE_SAYS_BATCH,
};
