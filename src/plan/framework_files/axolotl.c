/* SPDX-License-Identifier: Apache-2.0 */
/*
 * axolotl.c - axolotl's YAML.
 *
 * Names, defaults and meanings are those of utils/schemas/config.py and its neighbours at 067b021 (July 2026, after v0.18.0), and of what reads
 * them: loaders/model.py (a model is loaded in the type of bf16 or fp16, and trained so where all of it is and neither DeepSpeed nor FSDP keep wide copies),
 * loaders/adapter.py, integrations/liger, integrations/cut_cross_entropy, monkeypatch/ring_attn.
 *
 * With sample_packing sequences are full; without it they are taken to be as long as sequence_len lets them be.
 */
#include <string.h>

#include "base/check.h"
#include "plan/framework_files/hugging_face.h"

static const struct maq_file_key keys[] = {
    MAQ_FILE_KEEP("base_model"), MAQ_FILE_SET("sequence_len", "workload.seq_length"), MAQ_FILE_KEEP("micro_batch_size"),
    MAQ_FILE_KEEP("gradient_accumulation_steps"), MAQ_FILE_IDLE("batch_size"), MAQ_FILE_KEEP("bf16"),
    MAQ_FILE_KEEP("fp16"), MAQ_FILE_IDLE("bfloat16"), MAQ_FILE_IDLE("float16"), MAQ_FILE_IDLE("tf32"),
    MAQ_FILE_REFUSE("fp8", "8-bit products of its recipes; plan.precision says them"), MAQ_FILE_KEEP("optimizer"),
    MAQ_FILE_KEEP("optim_args"), MAQ_FILE_KEEP("optim_target_modules"), MAQ_FILE_KEEP("adapter"),
    MAQ_FILE_KEEP("load_in_8bit"), MAQ_FILE_KEEP("load_in_4bit"), MAQ_FILE_KEEP("bnb_config_kwargs"),
    MAQ_FILE_KEEP("lora_r"), MAQ_FILE_KEEP("lora_target_modules"), MAQ_FILE_KEEP("lora_target_linear"),
    MAQ_FILE_REFUSE("lora_target_parameters", "adapters on experts"),
    MAQ_FILE_REFUSE("lora_modules_to_save", "modules that are trained whole beside adapters"),
    MAQ_FILE_REFUSE("lora_mlp_kernel", "adapters in kernels of their own"),
    MAQ_FILE_REFUSE("lora_qkv_kernel", "adapters in kernels of their own"),
    MAQ_FILE_REFUSE("lora_o_kernel", "adapters in kernels of their own"),
    MAQ_FILE_REFUSE("lora_embedding_kernel", "adapters in kernels of their own"), MAQ_FILE_IDLE("lora_*"),
    MAQ_FILE_MAP("peft_use_dora", "plan.use_dora", "true=true|false="), MAQ_FILE_IDLE("peft_*"),
    MAQ_FILE_KEEP("gradient_checkpointing"), MAQ_FILE_KEEP("activation_offloading"), MAQ_FILE_KEEP("deepspeed"),
    MAQ_FILE_KEEP("fsdp"), MAQ_FILE_KEEP("fsdp_config"), MAQ_FILE_IDLE("fsdp_version"), MAQ_FILE_KEEP("plugins"),
    MAQ_FILE_KEEP("liger_*"), MAQ_FILE_IDLE("cut_cross_entropy"),
    MAQ_FILE_MAP("torch_compile", "plan.fused_kernels", "true=true|auto=true|false="),
    MAQ_FILE_MAP("attn_implementation", "plan.attention_backend",
                 "flash_attention_2=flash2|flash_attention_3=flash|sdpa=flash2|flex_attention=triton|kernels-community/"
                 "vllm-flash-attn3=flash|kernels-community/flash-attn2=flash2|eager=unfused|"
                 "xformers=flash2"),
    MAQ_FILE_MAP("flash_attention", "plan.attention_backend", "true=flash2|false="),
    MAQ_FILE_MAP("sdp_attention", "plan.attention_backend", "true=flash2|false="),
    MAQ_FILE_MAP("flex_attention", "plan.attention_backend", "true=triton|false="),
    MAQ_FILE_MAP("eager_attention", "plan.attention_backend", "true=unfused|false="),
    MAQ_FILE_MAP("xformers_attention", "plan.attention_backend", "true=flash2|false="),
    MAQ_FILE_MAP("flash_attn_cross_entropy", "plan.cross_entropy_loss_fusion", "true=true|false="),
    MAQ_FILE_MAP("flash_attn_rms_norm", "framework.norms_apart", "true=false|false="),
    MAQ_FILE_MAP("flash_attn_fuse_mlp", "framework.gate_apart", "true=false|false="),
    MAQ_FILE_SET("tensor_parallel_size", "plan.tensor_model_parallel_size"), MAQ_FILE_KEEP("context_parallel_size"),
    MAQ_FILE_KEEP("sequence_parallel_degree"), MAQ_FILE_KEEP("ring_attn_func"),
    MAQ_FILE_SET("expert_parallel_size", "plan.expert_model_parallel_size"), MAQ_FILE_KEEP("dp_shard_size"),
    MAQ_FILE_SET("dp_replicate_size", "plan.num_distributed_optimizer_instances"),
    /* other training */
    MAQ_FILE_KEEP("rl"), MAQ_FILE_KEEP("precompute_ref_log_probs"), MAQ_FILE_KEEP("rl_adapter_ref_model"),
    MAQ_FILE_KEEP("trl.beta"), MAQ_FILE_KEEP("trl.max_completion_length"), MAQ_FILE_KEEP("trl.num_generations"),
    MAQ_FILE_KEEP("trl.num_iterations"), MAQ_FILE_KEEP("trl.use_vllm"), MAQ_FILE_KEEP("trl.vllm_mode"),
    MAQ_FILE_KEEP("trl.vllm_enable_sleep_mode"), MAQ_FILE_KEEP("trl.vllm_importance_sampling_correction"),
    MAQ_FILE_REFUSE("trl.use_data_producer", "generation beside training"),
    MAQ_FILE_REFUSE("trl.async_prefetch", "generation beside training"), MAQ_FILE_IDLE("trl.*"),
    MAQ_FILE_KEEP("vllm.tensor_parallel_size"), MAQ_FILE_KEEP("vllm.gpu_memory_utilization"), MAQ_FILE_IDLE("vllm.*"),
    MAQ_FILE_IDLE("rl_beta"), MAQ_FILE_IDLE("dpo_*"), MAQ_FILE_IDLE("orpo_alpha"), MAQ_FILE_IDLE("simpo_gamma"),
    MAQ_FILE_REFUSE("reward_model", "a head of rewards"), MAQ_FILE_REFUSE("process_reward_model", "a head of rewards"),
    MAQ_FILE_REFUSE("unfrozen_parameters", "a model of which some parameters are trained"),
    MAQ_FILE_REFUSE("qat", "training with simulated quantization"), MAQ_FILE_REFUSE("ebft", "energy-based training"),
    MAQ_FILE_REFUSE("diffusion", "diffusion"), MAQ_FILE_REFUSE("relora", "ReLoRA"),
    MAQ_FILE_REFUSE("lisa_n_layers", "LISA's layers"), MAQ_FILE_REFUSE("gptq", "a base in GPTQ's form"),
    MAQ_FILE_REFUSE("quantize_moe_experts", "experts of 4 bits"),
    MAQ_FILE_REFUSE("model_quantization_config", "another quantization of the base"),
    MAQ_FILE_REFUSE("use_kernels", "kernels of the hub"), MAQ_FILE_REFUSE("use_scattermoe", "ScatterMoE's kernels"),
    MAQ_FILE_REFUSE("use_sonicmoe", "SonicMoE's kernels"),
    MAQ_FILE_REFUSE("fused_attn_kernel", "a fused kernel around attention"),
    MAQ_FILE_REFUSE("tiled_mlp", "an MLP in tiles"), MAQ_FILE_REFUSE("use_onebitllms", "1-bit linears"),
    MAQ_FILE_REFUSE("unsloth_*", "Unsloth's kernels"), MAQ_FILE_REFUSE("neftune_noise_alpha", "noise on embeddings"),
    MAQ_FILE_REFUSE("curriculum_sampling", "sequences that change from step to step"),
    /* nothing of a step */
    MAQ_FILE_IDLE("auto_resume_from_checkpoints"), MAQ_FILE_IDLE("base_model_*"), MAQ_FILE_IDLE("bench_*"),
    MAQ_FILE_IDLE("chat_template*"), MAQ_FILE_IDLE("cosine_*"), MAQ_FILE_IDLE("ddp"),
    MAQ_FILE_IDLE("default_system_message"), MAQ_FILE_IDLE("device_map"), MAQ_FILE_IDLE("eot_tokens"),
    MAQ_FILE_IDLE("eta_min"), MAQ_FILE_IDLE("evals_per_epoch"), MAQ_FILE_IDLE("experimental_skip_move_to_device"),
    MAQ_FILE_IDLE("experts_implementation"), MAQ_FILE_IDLE("flash_attn_*"), MAQ_FILE_IDLE("flash_optimum"),
    MAQ_FILE_IDLE("flex_attn_compile_kwargs"), MAQ_FILE_IDLE("gpu*"), MAQ_FILE_IDLE("hf_use_auth_token"),
    MAQ_FILE_IDLE("is_*"), MAQ_FILE_IDLE("loss_watchdog_*"), MAQ_FILE_IDLE("low_cpu_mem_usage"), MAQ_FILE_IDLE("lr_*"),
    MAQ_FILE_IDLE("max_packed_sequence_len"), MAQ_FILE_IDLE("min_sample_len"), MAQ_FILE_IDLE("mlflow_*"),
    MAQ_FILE_IDLE("model_config"), MAQ_FILE_IDLE("model_type"), MAQ_FILE_IDLE("noisy_embedding_alpha"),
    MAQ_FILE_IDLE("num_epochs"), MAQ_FILE_IDLE("num_labels"), MAQ_FILE_IDLE("pad_to_sequence_len"),
    MAQ_FILE_IDLE("pretraining_dataset"), MAQ_FILE_IDLE("processor_*"), MAQ_FILE_IDLE("project_name"),
    MAQ_FILE_IDLE("push_dataset_to_hub"), MAQ_FILE_IDLE("resize_token_embeddings_to_32x"),
    MAQ_FILE_IDLE("revision_of_model"), MAQ_FILE_IDLE("sample_packing*"), MAQ_FILE_IDLE("saves_per_epoch"),
    MAQ_FILE_IDLE("shuffle_*"), MAQ_FILE_IDLE("skip_prepare_dataset"), MAQ_FILE_IDLE("special_tokens"),
    MAQ_FILE_IDLE("streaming*"), MAQ_FILE_IDLE("strict"), MAQ_FILE_IDLE("swanlab_*"), MAQ_FILE_IDLE("test_datasets"),
    MAQ_FILE_IDLE("timeout_preprocess"), MAQ_FILE_IDLE("tokenizer_*"), MAQ_FILE_IDLE("tokens"),
    MAQ_FILE_IDLE("torchdistx_path"), MAQ_FILE_IDLE("total_num_tokens"), MAQ_FILE_IDLE("trackio_*"),
    MAQ_FILE_IDLE("train_on_*"), MAQ_FILE_IDLE("type_of_model"), MAQ_FILE_IDLE("use_otel_metrics"),
    MAQ_FILE_IDLE("use_ray"), MAQ_FILE_IDLE("use_swanlab"), MAQ_FILE_IDLE("use_tensorboard"),
    MAQ_FILE_IDLE("use_wandb"), MAQ_FILE_IDLE("val_set_size"), MAQ_FILE_IDLE("wandb_*"), MAQ_FILE_END};

/* ---- what is trained ---- */

static void set_adapter(struct maq_file_reader *r)
{
    const struct maq_node *adapter = maq_file_get(r, "adapter"), *rank = maq_file_get(r, "lora_r"),
                          *four = maq_file_get(r, "load_in_4bit"), *eight = maq_file_get(r, "load_in_8bit");
    const bool linear = maq_file_true(r, "lora_target_linear", false);
    if (!adapter || adapter->text.len == 0)
        return;
    if (!maq_str_is(adapter->text, "lora") && !maq_str_is(adapter->text, "qlora")) {
        maq_file_fault(r, adapter, "lora and qlora are", "the adapter %.*s is not modelled", (int)adapter->text.len,
                       adapter->text.ptr);
        return;
    }
    maq_file_lora(r, rank ? rank : adapter, maq_file_number(r, "lora_r", 8),
                  linear ? NULL : maq_file_get(r, "lora_target_modules"), linear ? "all-linear" : "q_proj,v_proj");
    if (four &&
        maq_file_asks(four, NULL)) /* bnb_4bit_use_double_quant is on unless it is taken away: loaders/model.py */
        maq_file_set(r, four, "plan.lora_base_quantization",
                     maq_file_true(r, "bnb_config_kwargs.bnb_4bit_use_double_quant", true) ? "nf4-double" : "nf4");
    else if (eight && maq_file_asks(eight, NULL))
        maq_file_set(r, eight, "plan.lora_base_quantization", "int8");
}

/* Loaded in 16 bits and trained in them, moments and all, where nobody keeps wide copies. */
static void set_types(struct maq_file_reader *r, bool sharded)
{
    const bool adapted = maq_file_job_value(r, "plan.lora_rank") != NULL;
    const struct maq_node *bf16 = maq_file_get(r, "bf16");
    maq_file_switches(r, "bf16", "fp16");
    const bool narrow = bf16 ? maq_file_asks(bf16, NULL) : maq_node_peek(r->root, "bf16") != NULL;
    if (narrow && !adapted && (!sharded || (bf16 && maq_str_is(bf16->text, "full"))))
        maq_file_set(r, bf16, "plan.pure_low_precision", "true");
}

/* ---- memory and kernels ---- */

static void set_checkpoints(struct maq_file_reader *r)
{
    const struct maq_node *n = maq_file_get(r, "gradient_checkpointing"),
                          *offload = maq_file_get(r, "activation_offloading");
    int64_t hidden, layers;
    const bool away = (n && maq_str_starts(n->text, "offload")) || (offload && maq_file_asks(offload, NULL));
    if (n && maq_file_asks(n, NULL))
        maq_file_set(r, n, "plan.recompute_granularity", "full");
    if (away && maq_file_model_shape(r, &hidden, &layers))
        maq_file_set_number(r, offload ? offload : n, "plan.cpu_offloading_num_layers", layers);
    else if (away)
        maq_file_fault(r, offload ? offload : n, "--model says which model it is like",
                       "how many layers wait in host memory is not known without the model");
}

static bool plugged(const struct maq_node *plugin, const char *name)
{
    const size_t n = strlen(name);
    return plugin->text.len >= n && strncmp(plugin->text.ptr + plugin->text.len - n, name, n) == 0;
}

static void set_plugins(struct maq_file_reader *r)
{
    static const char *const idle[] = {"SwanLabPlugin", "LigerPlugin", "ExpertParallelPlugin", NULL};
    const struct maq_node *list = maq_file_get(r, "plugins"),
                          *loss = maq_file_get(r, "liger_fused_linear_cross_entropy"),
                          *norm = maq_file_get(r, "liger_rms_norm"), *gate = maq_file_get(r, "liger_glu_activation");
    for (const struct maq_node *n = list ? list->first : NULL; n; n = n->next) {
        bool known = plugged(n, "CutCrossEntropyPlugin");
        if (known && maq_file_true(r, "cut_cross_entropy", true))
            maq_file_set(r, n, "plan.loss_function", "cut_cross_entropy");
        for (size_t i = 0; idle[i]; i++)
            known |= plugged(n, idle[i]);
        if (!known)
            maq_file_fault(r, n, "leave it out to see the rest", "the plugin %.*s is not modelled",
                           (int)(n->text.len < 100 ? n->text.len : 100), n->text.ptr);
    }
    if (loss && maq_file_asks(loss, NULL))
        maq_file_set(r, loss, "plan.loss_function", "linear_cross_entropy");
    if (norm && maq_file_asks(norm, NULL))
        maq_file_set(r, norm, "framework.norms_apart", "false");
    if (gate && maq_file_asks(gate, NULL))
        maq_file_set(r, gate, "framework.gate_apart", "false");
    if (norm && gate && maq_file_asks(norm, NULL) && maq_file_asks(gate, NULL))
        maq_file_set(r, gate, "plan.fused_kernels", "true");
}

/* ---- other cuts ---- */

/* Ring attention over packed sequences gathers keys and values (varlen_llama3), over padded ones it is a ring. */
static void set_context(struct maq_file_reader *r)
{
    const struct maq_node *n = maq_file_get(r, "context_parallel_size");
    const char *key = n ? "context_parallel_size" : "sequence_parallel_degree";
    const bool ring =
        maq_str_starts(maq_file_text(r, "ring_attn_func", ""), "batch_") || !maq_file_true(r, "sample_packing", false);
    n = maq_file_get(r, key);
    if (maq_file_number(r, key, 1) <= 1)
        return;
    maq_file_set_number(r, n, "plan.context_parallel_size", maq_file_number(r, key, 1));
    maq_file_set(r, n, "plan.cp_comm_type", ring ? "p2p" : "all_gather");
}

static void set_rl(struct maq_file_reader *r)
{
    const struct maq_node *n = maq_file_get(r, "rl"), *tp = maq_file_get(r, "vllm.tensor_parallel_size"),
                          *share = maq_file_get(r, "vllm.gpu_memory_utilization"),
                          *second = maq_file_get(r, "rl_adapter_ref_model");
    if (!n || n->kind != MAQ_NODE_SCALAR)
        return;
    if (maq_str_ieq(n->text, "kto")) {
        maq_file_kto(r, n);
        return;
    }
    if (!maq_str_ieq(n->text, "grpo") && !maq_str_ieq(n->text, "gdpo")) { /* GDPO sums rewards in another way */
        maq_file_preferences(r, n, n->text);
        if (second && maq_file_asks(second, NULL))
            maq_file_set(r, second, "rl.reference", "model");
        return;
    }
    maq_file_grpo(r, n, "trl.");
    if (!maq_file_true(r, "trl.use_vllm", false)) /* `vllm` is of a server that nobody asks */
        return;
    if (tp)
        maq_file_set(r, tp, "rl.vllm_tensor_parallel_size", maq_arena_strdup(&r->job->arena, tp->text));
    if (share)
        maq_file_set(r, share, "rl.vllm_gpu_memory_utilization", maq_arena_strdup(&r->job->arena, share->text));
}

static void conclude(struct maq_file_reader *r)
{
    const struct maq_node *deepspeed = maq_file_get(r, "deepspeed"), *fsdp = maq_file_get(r, "fsdp"),
                          *config = maq_file_get(r, "fsdp_config"), *shards = maq_file_get(r, "dp_shard_size");
    const bool is_fsdp =
        (fsdp && fsdp->count > 0) || (config && config->count > 0) || maq_file_number(r, "dp_shard_size", 1) > 1;
    const bool is_deepspeed = deepspeed && (deepspeed->kind == MAQ_NODE_MAP || deepspeed->text.len > 0);
    maq_file_framework(r, "huggingface");
    maq_file_model(r, "base_model");
    set_adapter(r);
    set_types(r, is_fsdp || is_deepspeed);
    maq_file_batch(r, "micro_batch_size", 1, "gradient_accumulation_steps");
    maq_file_optim(r, maq_file_get(r, "optimizer"));
    set_checkpoints(r);
    set_plugins(r);
    set_context(r);
    set_rl(r);
    maq_file_set(r, NULL, "plan.sequence_parallel", "false"); /* the transformers library's tensor parallelism */
    if (is_deepspeed)
        maq_file_beside(r, deepspeed);
    else if (is_fsdp)
        maq_file_fsdp(r,
                      config ? config
                      : fsdp ? fsdp
                             : shards,
                      "fsdp_config", fsdp && fsdp->first ? fsdp->first->text : (struct maq_str){0});
    else
        maq_file_set(r, NULL, "plan.data_parallel_sharding_strategy", "no_shard");
}

/* ---- written ---- */

static void put_adapter(struct maq_file_writer *w, const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    const bool four = p->base_quantization == MAQ_BASE_NF4 || p->base_quantization == MAQ_BASE_NF4_DOUBLE;
    if (p->lora_rank == 0)
        return;
    maq_file_put_word(w, "adapter", four ? "qlora" : "lora");
    maq_file_put_number(w, "lora_r", p->lora_rank);
    if (maq_str_is(p->lora_targets, "all-linear"))
        maq_file_put_switch(w, "lora_target_linear", true);
    else
        maq_file_put_targets(w, "lora_target_modules", "all-linear", p);
    maq_file_put_keys(w, job, keys, "peft_use_dora");
    if (p->base_quantization == MAQ_BASE_INT8)
        maq_file_put_switch(w, "load_in_8bit", true);
    if (!four)
        return;
    maq_file_put_switch(w, "load_in_4bit", true);
    maq_file_open(w, "bnb_config_kwargs");
    maq_file_put_switch(w, "bnb_4bit_use_double_quant", p->base_quantization == MAQ_BASE_NF4_DOUBLE);
    maq_file_close(w);
}

/* `full` is what keeps shards of 16 bits where DeepSpeed or FSDP would keep wide ones. */
static void put_types(struct maq_file_writer *w, const struct maq_plan *p, bool sharded)
{
    if (p->precision == MAQ_PRECISION_FP16)
        maq_file_put_switch(w, "fp16", true);
    if (p->precision == MAQ_PRECISION_BF16 && sharded && p->pure_low_precision)
        maq_file_put_word(w, "bf16", "full");
    else
        maq_file_put_switch(w, "bf16", p->precision == MAQ_PRECISION_BF16);
}

/* Liger's kernels and Cut Cross-Entropy come by plugins. */
static void put_kernels(struct maq_file_writer *w, const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    const bool fused = p->fused_kernels, cut = p->loss_function == MAQ_LOSS_CUT,
               norms = fused && !job->framework.norms_apart && !job->framework.gate_apart,
               liger = norms || p->loss_function == MAQ_LOSS_LINEAR;
    maq_file_put_keys(w, job, keys, norms ? "attn_implementation" : "attn_implementation,torch_compile");
    if (cut || liger)
        maq_file_put_list(w, "plugins",
                          cut ? MAQ_STR("axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin")
                              : MAQ_STR("axolotl.integrations.liger.LigerPlugin"));
    if (cut)
        maq_file_put_switch(w, "cut_cross_entropy", true);
    if (p->loss_function == MAQ_LOSS_LINEAR)
        maq_file_put_switch(w, "liger_fused_linear_cross_entropy", true);
    if (norms && !cut) {
        maq_file_put_switch(w, "liger_rms_norm", true);
        maq_file_put_switch(w, "liger_glu_activation", true);
    }
}

static void put_cuts(struct maq_file_writer *w, const struct maq_job *job, bool deepspeed)
{
    const struct maq_plan *p = &job->plan;
    maq_file_put_keys(w, job, keys, "tensor_parallel_size,expert_parallel_size");
    if (p->cp > 1) { /* a ring without packing, gathers with it */
        maq_file_put_number(w, "context_parallel_size", p->cp);
        maq_file_put_switch(w, "sample_packing", p->cp_comm == MAQ_CP_ALL_GATHER);
    }
    if (deepspeed) {
        maq_file_open(w, "deepspeed");
        maq_file_put_deepspeed(w, job);
        maq_file_close(w);
    } else if (p->sharding == MAQ_SHARDING_PARAMS) {
        int32_t shards = job->dp / p->num_optimizer_instances;
        if (p->tp > 1 || p->cp > 1 || p->num_optimizer_instances > 1)
            maq_file_put_number(w, "dp_shard_size", shards);
        maq_file_put_keys(w, job, keys, "dp_replicate_size");
        maq_file_put_fsdp(w, p);
    }
}

static void write(struct maq_file_writer *w, const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    const bool deepspeed = job->framework.reduce_bucket_held, fsdp = p->sharding == MAQ_SHARDING_PARAMS;
    maq_file_put_model(w, "base_model", &job->model);
    maq_file_put_keys(w, job, keys, "sequence_len");
    maq_file_put_number(w, "micro_batch_size", p->mbs);
    maq_file_put_number(w, "gradient_accumulation_steps", job->microbatches);
    put_types(w, p, deepspeed || fsdp);
    maq_file_put_optim(w, "optimizer", "all_linear", p); /* its schema takes no other spelling */
    put_adapter(w, job);
    maq_file_put_switch(w, "gradient_checkpointing", p->recompute == MAQ_RECOMPUTE_FULL);
    if (p->offload_layers > 0)
        maq_file_put_switch(w, "activation_offloading", true);
    put_kernels(w, job);
    put_cuts(w, job, deepspeed);
    maq_file_put_word(w, "output_dir", "out");
}

const struct maq_file_form maq_file_axolotl = {
    .title = "axolotl's configuration",
    .told_by = "base_model",
    .keys = keys,
    .more = maq_file_trainer_keys,
    .conclude = conclude,
    .write = write,
    .name = "axolotl",
    .syntax = MAQ_FILE_YAML,
    .says = MAQ_FILE_SAYS_MODEL | MAQ_FILE_SAYS_SEQUENCE | MAQ_FILE_SAYS_BATCH,
};
