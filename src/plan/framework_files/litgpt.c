/* SPDX-License-Identifier: Apache-2.0 */
/*
 * litgpt.c - the YAML of LitGPT, which trains with Lightning's Fabric.
 *
 * Names, defaults and meanings are those of litgpt/args.py, pretrain.py, finetune/full.py and finetune/lora.py at 2685705 (June 2026). A file
 * with lora_r is of finetune/lora.py, one with checkpoint_dir else of finetune/full.py, and others of pretrain.py:
 *
 *   - On more than one device FSDP shards, in pre-training on each node; fine-tuning recomputes each layer then. Pre-training is compiled.
 *   - bf16-true has weights, gradients and moments in 16 bits, bf16-mixed autocast around those of 4 bytes.
 *   - Of an attention's adapters that of the keys is off, and those of the output, of the MLP and of the head are.
 */
#include <string.h>

#include "base/check.h"
#include "plan/framework_files/hugging_face.h"

static const struct maq_file_key keys[] = {
    MAQ_FILE_KEEP("checkpoint_dir"),
    MAQ_FILE_KEEP("model_name"),
    MAQ_FILE_REFUSE("model_config", "sizes of its own; --model says them"),
    MAQ_FILE_MAP("precision", "plan.precision",
                 "bf16-true=bf16|bf16-mixed=bf16|16-mixed=fp16|16-true=fp16|32-true=fp32|32=fp32"),
    MAQ_FILE_MAP("quantize", "plan.lora_base_quantization", "bnb.nf4=nf4|bnb.nf4-dq=nf4-double|bnb.int8-training=int8"),
    MAQ_FILE_KEEP("devices"),
    MAQ_FILE_KEEP("num_nodes"),
    MAQ_FILE_SET("train.global_batch_size", "workload.global_batch_size"),
    MAQ_FILE_SET("train.micro_batch_size", "plan.micro_batch_size"),
    MAQ_FILE_SET("train.max_seq_length", "workload.seq_length"),
    MAQ_FILE_IDLE("train.*"),
    MAQ_FILE_KEEP("optimizer"),
    MAQ_FILE_KEEP("lora_*"),
    MAQ_FILE_IDLE("data"),
    MAQ_FILE_IDLE("eval"),
    MAQ_FILE_IDLE("initial_checkpoint_dir"),
    MAQ_FILE_IDLE("log"),
    MAQ_FILE_IDLE("logger_name"),
    MAQ_FILE_IDLE("out_dir"),
    MAQ_FILE_IDLE("resume"),
    MAQ_FILE_IDLE("seed"),
    MAQ_FILE_IDLE("tokenizer_dir"),
    MAQ_FILE_END};

/* "checkpoints/meta-llama/Llama-2-7b-hf": the repository's name is behind the folder of all of them. */
static void set_model(struct maq_file_reader *r)
{
    const struct maq_node *name = maq_file_get(r, "model_name"), *folder = maq_file_get(r, "checkpoint_dir");
    struct maq_str text = name ? name->text : folder ? folder->text : MAQ_STR("");
    if (!name && maq_str_starts(text, "checkpoints/"))
        text = (struct maq_str){text.ptr + 12, text.len - 12};
    if (text.len > 0)
        maq_file_set(r, name ? name : folder, "model", maq_arena_strdup(&r->job->arena, text));
}

static void set_adapters(struct maq_file_reader *r)
{
    static const struct {
        const char *key;
        bool on;
        const char *targets;
    } parts[] = {{"lora_query", true, "q_proj"},
                 {"lora_key", false, "k_proj"},
                 {"lora_value", true, "v_proj"},
                 {"lora_projection", false, "o_proj"},
                 {"lora_mlp", false, "gate_proj,up_proj,down_proj"}};
    const struct maq_node *rank = maq_file_get(r, "lora_r"), *head = maq_file_get(r, "lora_head");
    struct maq_buf words;
    maq_buf_init(&words, 256);
    for (size_t i = 0; i < MAQ_COUNT(parts); i++)
        if (maq_file_true(r, parts[i].key, parts[i].on))
            maq_buf_addf(&words, "%s%s", words.len ? "," : "", parts[i].targets);
    maq_file_set_number(r, rank, "plan.lora_rank", maq_file_number(r, "lora_r", 8));
    if (words.len > 0 && !words.failed)
        maq_file_set(r, rank, "plan.lora_target_modules",
                     maq_arena_strdup(&r->job->arena, (struct maq_str){words.ptr, words.len}));
    maq_buf_fini(&words);
    if (head && maq_file_asks(head, NULL))
        maq_file_fault(r, head, "leave it out to see the rest",
                       "lora_head is not modelled: an adapter of the output layer");
}

static void conclude(struct maq_file_reader *r)
{
    const struct maq_node *precision = maq_file_get(r, "precision");
    const bool lora = maq_file_get(r, "lora_r") != NULL, tuned = maq_file_get(r, "checkpoint_dir") != NULL,
               alone = maq_file_number(r, "devices", 0) == 1 && maq_file_number(r, "num_nodes", 1) == 1;
    maq_file_framework(r, "pytorch-fsdp");
    set_model(r);
    maq_file_torch_optimizer(r, maq_file_get(r, "optimizer"));
    if (!precision)
        maq_file_set(r, NULL, "plan.precision", "bf16");
    if (!precision || maq_file_is(r, "precision", "bf16-true") || maq_file_is(r, "precision", "16-true"))
        maq_file_set(r, precision, "plan.pure_low_precision", lora ? "false" : "true");
    if (lora)
        set_adapters(r);
    maq_file_set(r, maq_file_get(r, "devices"), "plan.data_parallel_sharding_strategy",
                 alone ? "no_shard" : "optim_grads_params");
    if (!alone && tuned)
        maq_file_set(r, NULL, "plan.recompute_granularity", "full");
    if (!alone && !tuned)
        maq_file_set_number(r, maq_file_get(r, "num_nodes"), "plan.num_distributed_optimizer_instances",
                            maq_file_number(r, "num_nodes", 1));
    if (!tuned)
        maq_file_set(r, NULL, "plan.fused_kernels", "true");
}

const struct maq_file_form maq_file_litgpt = {
    .title = "LitGPT's configuration",
    .told_by = "train,precision,devices|checkpoint_dir,train|model_name,train",
    .keys = keys,
    .conclude = conclude,
};
