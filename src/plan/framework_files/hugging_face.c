/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hugging_face.c - what files of Hugging Face's libraries have in common, and TrainingArguments themselves, as a JSON or YAML that
 * HfArgumentParser reads. See hugging_face.h.
 *
 * Names, defaults and meanings are those of transformers 5.0 (training_args.py, trainer_optimizer.py) and accelerate 1.14 (utils/dataclasses.py,
 * FullyShardedDataParallelPlugin; utils/fsdp_utils.py).
 *
 *   - A step has per_device_train_batch_size (8) x gradient_accumulation_steps (1) sequences of each data-parallel rank.
 *   - bf16 and fp16 are autocast around weights of 4 bytes; DeepSpeed's files say their own.
 *   - FULL_SHARD drops gathered parameters behind the forward pass, SHARD_GRAD_OP keeps them to the backward pass; the HYBRID ones have a copy
 *     of the shards on each node, of which num_machines says the number.
 *   - 8-bit optimizers have moments in blocks; "paged" ones have them in managed memory.
 *   - GaLore's rank (128) and update_proj_gap (200) are in optim_args, its modules in optim_target_modules (transformers 5.24,
 *     trainer_optimizer.py, _get_galore_optimizer()); "attn" and "mlp" there stand for what such names have in them.
 */
#include "plan/framework_files/hugging_face.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"

/* ---- FSDP ---- */

/* map.fsdp_NAME or map.NAME. */
static const struct maq_node *fsdp_key(const struct maq_file_reader *r, const char *map, const char *name)
{
    char key[128];
    maq__snprintf(key, sizeof key, "%s.fsdp_%s", map, name);
    const struct maq_node *n = maq_file_get(r, key);
    maq__snprintf(key, sizeof key, "%s.%s", map, name);
    return n ? n : maq_file_get(r, key);
}

static bool has_word(struct maq_str text, const char *word)
{
    struct maq_str rest = text, one;
    while (rest.ptr && rest.len > 0) {
        rest = maq_str_split(rest, ' ', &one);
        if (maq_str_ieq(one, word))
            return true;
    }
    return false;
}

enum strategy { FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD, HYBRID_SHARD_ZERO2, NO_STRATEGY };

/* By name, or by its number in PyTorch's enumeration, from 1. */
static enum strategy strategy_of(struct maq_str text)
{
    static const char *const names[] = {"full_shard", "shard_grad_op", "no_shard", "hybrid_shard",
                                        "hybrid_shard_zero2"};
    int64_t number;
    for (size_t i = 0; i < MAQ_COUNT(names); i++)
        if (has_word(text, names[i]) || (maq_str_to_i64(&number, text) && number == (int64_t)i + 1))
            return (enum strategy)i;
    return maq_str_ieq(text, "_hybrid_shard_zero2") ? HYBRID_SHARD_ZERO2 : NO_STRATEGY;
}

/* fsdp_reshard_after_forward is a switch in FSDP2 and takes the names of strategies in FSDP1. */
static enum strategy fsdp_strategy(const struct maq_file_reader *r, const char *map, struct maq_str asked)
{
    const struct maq_node *named = fsdp_key(r, map, "sharding_strategy"),
                          *reshard = fsdp_key(r, map, "reshard_after_forward");
    enum strategy by_reshard = reshard ? strategy_of(reshard->text) : NO_STRATEGY;
    if (reshard && by_reshard == NO_STRATEGY)
        return maq_file_asks(reshard, NULL) ? FULL_SHARD : SHARD_GRAD_OP;
    if (by_reshard != NO_STRATEGY)
        return by_reshard;
    enum strategy by_name = strategy_of(named ? named->text : asked);
    return by_name == NO_STRATEGY ? FULL_SHARD : by_name;
}

void maq_file_fsdp(struct maq_file_reader *r, const struct maq_node *at, const char *map, struct maq_str strategy)
{
    const struct maq_node *offload = fsdp_key(r, map, "offload_params"),
                          *checkpoints = fsdp_key(r, map, "activation_checkpointing");
    const enum strategy s = fsdp_strategy(r, map, strategy);
    maq_file_set(r, at, "plan.data_parallel_sharding_strategy", s == NO_SHARD ? "no_shard" : "optim_grads_params");
    if (s != NO_SHARD)
        maq_file_set(r, at, "plan.reshard_after_forward", s == FULL_SHARD || s == HYBRID_SHARD ? "true" : "false");
    if (s == HYBRID_SHARD || s == HYBRID_SHARD_ZERO2)
        maq_file_set_number(r, at, "plan.num_distributed_optimizer_instances", maq_file_number(r, "num_machines", 1));
    const bool away = (offload && maq_file_asks(offload, NULL)) || has_word(strategy, "offload");
    if (away && s == NO_SHARD)
        maq_file_fault(r, offload ? offload : at, "shard them: FULL_SHARD",
                       "whole parameters on the host are not modelled");
    else if (away) { /* gradients and optimizer follow the parameters */
        maq_file_set(r, offload ? offload : at, "plan.offload_param_device", "cpu");
        maq_file_set(r, offload ? offload : at, "plan.optimizer_offload_fraction", "1");
    }
    if (checkpoints && maq_file_asks(checkpoints, NULL))
        maq_file_set(r, checkpoints, "plan.recompute_granularity", "full");
}

/* ---- precision, optimizer, batch ---- */

void maq_file_switches(struct maq_file_reader *r, const char *bf16, const char *fp16)
{
    const bool is_bf16 = maq_file_true(r, bf16, false) || maq_file_is(r, bf16, "full"),
               is_fp16 = maq_file_true(r, fp16, false);
    const struct maq_node *at = maq_file_get(r, is_bf16 ? bf16 : fp16);
    const struct maq_node *open = maq_node_peek(r->root, bf16);
    if (is_bf16 && is_fp16)
        maq_file_fault(r, at, "leave one of the two", "%s and %s are both on", bf16, fp16);
    else if (is_bf16 || is_fp16)
        maq_file_set(r, at, "plan.precision", is_bf16 ? "bf16" : "fp16");
    else if (!open || !maq_str_is(open->text, "auto"))
        maq_file_set(r, NULL, "plan.precision", "fp32");
}

static const struct optimizer {
    const char *name, *optimizer, *moments; /* moments: their type where it is not FP32 */
    bool paged, low_rank, layerwise;
} optimizers[] = {
    {.name = "adamw_torch", .optimizer = "adam"},
    {.name = "adamw_torch_fused", .optimizer = "adam"},
    {.name = "adamw_hf", .optimizer = "adam"},
    {.name = "adamw_apex_fused", .optimizer = "adam"},
    {.name = "adamw", .optimizer = "adam"},
    {.name = "adam", .optimizer = "adam"},
    {.name = "paged_adamw", .optimizer = "adam", .paged = true},
    {.name = "paged_adamw_32bit", .optimizer = "adam", .paged = true},
    {.name = "adamw_bnb_8bit", .optimizer = "adam", .moments = "int8"},
    {.name = "adamw_8bit", .optimizer = "adam", .moments = "int8"},
    {.name = "adamw_torch_8bit", .optimizer = "adam", .moments = "int8"},
    {.name = "paged_adamw_8bit", .optimizer = "adam", .moments = "int8", .paged = true},
    {.name = "adamw_torch_4bit", .optimizer = "adam", .moments = "fp4"},
    {.name = "lion_32bit", .optimizer = "lion"},
    {.name = "paged_lion_32bit", .optimizer = "lion", .paged = true},
    {.name = "lion_8bit", .optimizer = "lion", .moments = "int8"},
    {.name = "paged_lion_8bit", .optimizer = "lion", .moments = "int8", .paged = true},
    {.name = "lion_pytorch", .optimizer = "lion"},
    {.name = "adafactor", .optimizer = "adafactor"},
    {.name = "sgd", .optimizer = "sgd"},
    {.name = "muon", .optimizer = "muon"},
    {.name = "galore_adamw", .optimizer = "adam", .low_rank = true},
    {.name = "galore_adamw_8bit", .optimizer = "adam", .moments = "int8", .low_rank = true},
    {.name = "galore_adafactor", .optimizer = "adafactor", .low_rank = true},
    {.name = "galore_adamw_layerwise", .optimizer = "adam", .low_rank = true, .layerwise = true},
    {.name = "galore_adamw_8bit_layerwise",
     .optimizer = "adam",
     .moments = "int8",
     .low_rank = true,
     .layerwise = true},
    {.name = "galore_adafactor_layerwise", .optimizer = "adafactor", .low_rank = true, .layerwise = true},
};

/* A number out of "rank=64, update_proj_gap=100". */
static int64_t argument(struct maq_str text, const char *name, int64_t otherwise)
{
    struct maq_str rest = text, one, key;
    int64_t number = otherwise;
    while (rest.ptr && rest.len > 0) {
        rest = maq_str_split(rest, ',', &one);
        struct maq_str value = maq_str_split(maq_str_trim(one), '=', &key);
        if (maq_str_is(maq_str_trim(key), name) && value.ptr)
            (void)maq_str_to_i64(&number, maq_str_trim(value));
    }
    return number;
}

/* Targets by what stands in a module's name: ".*.attn.*". */
static bool part_of_model(struct maq_buf *out, struct maq_str word)
{
    static const struct {
        const char *part, *modules;
    } parts[] = {{"attn", "q_proj,k_proj,v_proj,o_proj"}, {"mlp", "gate_proj,up_proj,down_proj"}};
    while (word.len > 0 && strchr(".*", word.ptr[0]))
        word = (struct maq_str){word.ptr + 1, word.len - 1};
    while (word.len > 0 && strchr(".*", word.ptr[word.len - 1]))
        word.len--;
    for (size_t i = 0; i < MAQ_COUNT(parts); i++)
        if (maq_str_is(word, parts[i].part) || (i == 0 && maq_str_is(word, "self_attn"))) {
            maq_buf_addf(out, "%s%s", out->len ? "," : "", parts[i].modules);
            return true;
        }
    maq_buf_addf(out, "%s%.*s", out->len ? "," : "", (int)word.len, word.ptr);
    return word.len > 0;
}

void maq_file_galore(struct maq_file_reader *r, const struct maq_node *at, int64_t rank, int64_t gap,
                     const struct maq_node *targets)
{
    struct maq_buf words;
    maq_file_set_number(r, at, "plan.galore_rank", rank);
    maq_file_set_number(r, at, "plan.galore_update_proj_gap", gap);
    if (!targets || maq_str_is(targets->text, "all"))
        return;
    maq_buf_init(&words, 4096);
    if (targets->kind == MAQ_NODE_SEQ)
        for (const struct maq_node *n = targets->first; n; n = n->next)
            (void)part_of_model(&words, n->text);
    else
        (void)part_of_model(&words, targets->text);
    if (!words.failed && words.len > 0)
        maq_file_set(r, targets, "plan.galore_target_modules",
                     maq_arena_strdup(&r->job->arena, (struct maq_str){words.ptr, words.len}));
    maq_buf_fini(&words);
}

static void set_optimizer(struct maq_file_reader *r, const struct maq_node *at, const struct optimizer *o)
{
    const struct maq_str arguments = maq_file_text(r, "optim_args", NULL);
    maq_file_set(r, at, "plan.optimizer", o->optimizer);
    if (o->moments)
        maq_file_set(r, at, "plan.exp_avg_dtype", o->moments);
    if (o->paged)
        maq_file_set(r, at, "plan.paged_optimizer", "true");
    if (o->low_rank)
        maq_file_galore(r, at, argument(arguments, "rank", 128), argument(arguments, "update_proj_gap", 200),
                        maq_file_get(r, "optim_target_modules"));
    if (o->layerwise)
        maq_file_set(r, at, "plan.galore_layerwise", "true");
}

void maq_file_optim(struct maq_file_reader *r, const struct maq_node *at)
{
    for (size_t i = 0; at && i < MAQ_COUNT(optimizers); i++)
        if (maq_str_ieq(at->text, optimizers[i].name)) {
            set_optimizer(r, at, &optimizers[i]);
            return;
        }
    if (at)
        maq_file_fault(r, at,
                       "adamw_torch_fused, adamw_bnb_8bit, paged_adamw_8bit, lion_32bit, adafactor, sgd, muon and "
                       "galore_adamw are",
                       "the optimizer %.*s is not modelled", (int)(at->text.len < 60 ? at->text.len : 60),
                       at->text.ptr);
}

void maq_file_batch(struct maq_file_reader *r, const char *micro, int64_t otherwise, const char *accumulation)
{
    maq_file_set_number(r, maq_file_get(r, micro), "plan.micro_batch_size", maq_file_number(r, micro, otherwise));
    maq_file_set_number(r, maq_file_get(r, accumulation), "workload.gradient_accumulation_steps",
                        maq_file_number(r, accumulation, 1));
}

/* ---- the model, and what is trained of it ---- */

void maq_file_model(struct maq_file_reader *r, const char *key)
{
    const struct maq_node *n = maq_file_get(r, key);
    if (n && n->kind == MAQ_NODE_SCALAR)
        maq_file_set(r, n, "model", maq_arena_strdup(&r->job->arena, n->text));
}

/* PEFT takes a text as a regular expression. Of "...(up|down|q|v)_proj" the words are those of the last group, with what stands behind it. */
static bool words_of_pattern(struct maq_buf *out, struct maq_str text)
{
    const char *close = memrchr(text.ptr, ')', text.len),
               *open = close ? memrchr(text.ptr, '(', (size_t)(close - text.ptr)) : NULL;
    if (!open)
        return false;
    const struct maq_str behind = {close + 1, text.len - (size_t)(close + 1 - text.ptr)};
    struct maq_str rest = {open + 1, (size_t)(close - open - 1)}, word;
    while (rest.ptr && rest.len > 0) {
        rest = maq_str_split(rest, '|', &word);
        maq_buf_addf(out, "%s%.*s%.*s", out->len ? "," : "", (int)word.len, word.ptr, (int)behind.len, behind.ptr);
    }
    return out->len > 0 && !strpbrk(out->ptr, "()[]\\*?$^+");
}

static void set_targets(struct maq_file_reader *r, const struct maq_node *targets)
{
    struct maq_buf words;
    maq_buf_init(&words, 4096);
    if (targets->kind == MAQ_NODE_SCALAR && words_of_pattern(&words, targets->text) && !words.failed)
        maq_file_set(r, targets, "plan.lora_target_modules",
                     maq_arena_strdup(&r->job->arena, (struct maq_str){words.ptr, words.len}));
    else
        maq_file_set_words(r, targets, "plan.lora_target_modules");
    maq_buf_fini(&words);
}

void maq_file_lora(struct maq_file_reader *r, const struct maq_node *at, int64_t rank, const struct maq_node *targets,
                   const char *otherwise)
{
    maq_file_set_number(r, at, "plan.lora_rank", rank);
    if (!targets || maq_str_is(targets->text, "all"))
        maq_file_set(r, targets ? targets : at, "plan.lora_target_modules", targets ? "all-linear" : otherwise);
    else
        set_targets(r, targets);
}

/* ---- TrainingArguments ---- */

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
                                                     MAQ_FILE_IDLE("ddp_find_unused_parameters"),
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
    MAQ_FILE_KEEP("beta"),
    MAQ_FILE_KEEP("max_completion_length"),
    MAQ_FILE_KEEP("max_prompt_length"),
    MAQ_FILE_KEEP("num_generations"),
    MAQ_FILE_KEEP("steps_per_generation"),
    MAQ_FILE_KEEP("num_iterations"),
    MAQ_FILE_KEEP("precompute_ref_log_probs"),
    MAQ_FILE_KEEP("use_vllm"),
    MAQ_FILE_KEEP("vllm_mode"),
    MAQ_FILE_KEEP("vllm_enable_sleep_mode"),
    MAQ_FILE_KEEP("vllm_importance_sampling_correction"),
    MAQ_FILE_KEEP("vllm_tensor_parallel_size"),
    MAQ_FILE_KEEP("vllm_gpu_memory_utilization"),
    MAQ_FILE_IDLE("vllm_*"),
    MAQ_FILE_IDLE("loss_type"),
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

const struct maq_file_form maq_file_training_arguments = {
    .title = "Hugging Face's TrainingArguments",
    .told_by = "per_device_train_batch_size|output_dir,learning_rate",
    .keys = keys,
    .more = maq_file_trainer_keys,
    .conclude = conclude,
};
