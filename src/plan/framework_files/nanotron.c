/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nanotron.c - nanotron's YAML.
 *
 * Names, defaults and meanings are those of its folder config at 2411b02 (April 2026), and of what reads them: trainer.py, optim/zero.py,
 * models/llama.py, models/qwen.py. The number of replicas (dp) is the cluster's.
 *
 *   - model_config is a Llama's, or a Qwen's without bias unless attention_bias says so.
 *   - With accumulate_grad_in_fp32 weights are in dtype beside an FP32 copy that is updated, and gradients add up and travel in FP32; without
 *     it all of training is in dtype.
 *   - tp_mode REDUCE_SCATTER is sequence parallelism; pp_engine is afab (GPipe) unless 1f1b is said.
 */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "plan/framework_files/reader.h"

static const struct maq_file_key keys[] = {
    MAQ_FILE_REFUSE("model.model_config.moe_config", "its experts"),
    MAQ_FILE_REFUSE("model.model_config.is_mamba_config", "its Mamba"),
    MAQ_FILE_REFUSE("model.model_config.is_starcoder2_config", "its StarCoder2"),
    MAQ_FILE_KEEP("model.model_config.*"),
    MAQ_FILE_KEEP("model.dtype"),
    MAQ_FILE_IDLE("model.*"),
    MAQ_FILE_KEEP("optimizer.accumulate_grad_in_fp32"),
    MAQ_FILE_MAP("optimizer.zero_stage", "plan.data_parallel_sharding_strategy", "0=no_shard|1=optim"),
    MAQ_FILE_MAP("optimizer.optimizer_factory.name", "plan.optimizer", "adamW=adam|sgd=sgd"),
    MAQ_FILE_MAP("optimizer.optimizer_factory.torch_adam_is_fused", "framework.optimizer", "true=fused|false=foreach"),
    MAQ_FILE_IDLE("optimizer.*"),
    MAQ_FILE_SET("parallelism.tp", "plan.tensor_model_parallel_size"),
    MAQ_FILE_SET("parallelism.pp", "plan.pipeline_model_parallel_size"),
    MAQ_FILE_SET("parallelism.expert_parallel_size", "plan.expert_model_parallel_size"),
    MAQ_FILE_SET("parallelism.context_parallel_size", "plan.context_parallel_size"),
    MAQ_FILE_MAP("parallelism.tp_mode", "plan.sequence_parallel", "ALL_REDUCE=false|REDUCE_SCATTER=true"),
    MAQ_FILE_MAP("parallelism.recompute_layer", "plan.recompute_granularity", "true=full|false=none"),
    MAQ_FILE_KEEP("parallelism.pp_engine"),
    MAQ_FILE_IDLE(
        "parallelism.*"), /* async communication: of one product with another's collective, as everywhere here */
    MAQ_FILE_SET("tokens.sequence_length", "workload.seq_length"),
    MAQ_FILE_SET("tokens.micro_batch_size", "plan.micro_batch_size"),
    MAQ_FILE_SET("tokens.batch_accumulation_per_replica", "workload.gradient_accumulation_steps"),
    MAQ_FILE_IDLE("tokens.*"),
    MAQ_FILE_IDLE("checkpoints"),
    MAQ_FILE_IDLE("data_stages"),
    MAQ_FILE_IDLE("doremi"),
    MAQ_FILE_IDLE("general"),
    MAQ_FILE_IDLE("lighteval"),
    MAQ_FILE_IDLE("logging"),
    MAQ_FILE_IDLE("metrics_logging"),
    MAQ_FILE_IDLE("profiler"),
    MAQ_FILE_IDLE("s3_upload"),
    MAQ_FILE_IDLE("tokenizer"),
    MAQ_FILE_END};

static void set_model(struct maq_file_reader *r)
{
    static const char *const sizes[] = {
        "hidden_size", "intermediate_size",       "num_hidden_layers",   "num_attention_heads", "num_key_value_heads",
        "vocab_size",  "max_position_embeddings", "tie_word_embeddings", "attention_bias"};
    if (r->model)
        return;
    maq_file_set(r, NULL, "model", "{model_type: llama}");
    for (size_t i = 0; i < MAQ_COUNT(sizes); i++) {
        char from[64], to[64];
        maq__snprintf(from, sizeof from, "model.model_config.%s", sizes[i]);
        maq__snprintf(to, sizeof to, "model.%s", sizes[i]);
        const struct maq_node *n = maq_file_get(r, from);
        if (n && n->kind == MAQ_NODE_SCALAR)
            maq_file_set(r, n, maq_arena_strdup(&r->job->arena, maq_str_of(to)),
                         maq_arena_strdup(&r->job->arena, n->text));
    }
}

static void set_types(struct maq_file_reader *r)
{
    const struct maq_node *dtype = maq_file_get(r, "model.dtype"),
                          *wide = maq_file_get(r, "optimizer.accumulate_grad_in_fp32");
    const struct maq_str text = maq_file_text(r, "model.dtype", "bfloat16");
    const char *precision = maq_str_is(text, "bfloat16")  ? "bf16"
                            : maq_str_is(text, "float16") ? "fp16"
                            : maq_str_is(text, "float32") ? "fp32"
                                                          : NULL;
    if (!precision) {
        maq_file_fault(r, dtype, "it takes bfloat16, float16, float32", "model.dtype is no type that is known here");
        return;
    }
    maq_file_set(r, dtype, "plan.precision", precision);
    if (!maq_file_true(r, "optimizer.accumulate_grad_in_fp32", false) && !maq_str_is(text, "float32"))
        maq_file_set(r, wide ? wide : dtype, "plan.pure_low_precision", "true");
}

static void conclude(struct maq_file_reader *r)
{
    const struct maq_node *engine = maq_file_get(r, "parallelism.pp_engine"),
                          *config = maq_file_get(r, "model.model_config");
    maq_file_framework(r, "nanotron");
    if (!config || config->kind != MAQ_NODE_MAP)
        maq_file_fault(r, config, NULL, "model.model_config must be a map of sizes");
    set_model(r);
    set_types(r);
    maq_file_set(r, NULL, "plan.sequence_parallel", "false");
    maq_file_set(r, NULL, "plan.data_parallel_sharding_strategy", "no_shard");
    if (maq_file_number(r, "parallelism.pp", 1) > 1)
        maq_file_set(r, engine, "plan.pipeline_schedule",
                     maq_file_is(r, "parallelism.pp_engine", "1f1b") ? "1f1b" : "gpipe");
}

const struct maq_file_form maq_file_nanotron = {
    .title = "nanotron's configuration",
    .told_by = "parallelism,tokens,model",
    .keys = keys,
    .conclude = conclude,
};
