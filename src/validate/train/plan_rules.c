/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_rules.c - what a phrase says about the plan.
 *
 * Two tables of one form; the first rule that sets a key wins:
 *
 *   text        what the row says in so many words
 *   default     what is left when neither the row nor the profile of its framework says anything
 *
 * Between them stands the profile (data/frameworks), which a table of names and years chooses.
 *
 * A value may be '#', the number captured by the pattern, or "%a/b": that share of the layers of a virtual stage, where '#' stands
 * for a captured number. A cell that says nothing ("n/a", a dash) matches no rule; one that no rule matches is remarked. A rule
 * with an `assumed` text is a guess or an approximation and is listed with the row.
 */
#include "validate/train/interpret.h"

#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "validate/phrase.h"

enum when { /* bits; all must hold */
            WHEN_TP = 1,
            WHEN_CP = 2,
            WHEN_VP = 4,
            WHEN_BLACKWELL = 8,
            WHEN_UNFUSED = 16, /* attention has been decided to be unfused */
            WHEN_DP = 32,
            WHEN_MOE = 64,
            WHEN_FULL = 128,            /* the row is complete: what it does not mention is off */
            WHEN_PROFILE_UNFUSED = 256, /* the profile leaves attention unfused: what the row says comes before that */
            WHEN_PAX = 512,             /* its framework is Pax */
            WHEN_WHOLE_MATRICES = 1024, /* nothing has been decided that cuts them: ZeRO-2 and -3, the host */
            WHEN_PAIRED = 2048,         /* passes of two microbatches side by side: no pipeline, or virtual stages */
};

struct rule {
    enum maq_column column;
    const char *pattern;     /* "" matches always */
    const char *key, *value; /* key NULL: only the remark */
    const char *assumed;     /* NULL: stated */
    uint16_t when;
    uint16_t from_year, to_year; /* 0 = any; a row without a year matches */
};

#define IN(column_, pattern_, key_, value_, ...)                                                                       \
    {                                                                                                                  \
        MAQ_COLUMN_##column_, pattern_, key_, value_, __VA_ARGS__                                                      \
    }
#define STATED NULL, 0, 0, 0

static const char precision[] = "precision", sharding[] = "data_parallel_sharding_strategy",
                  recompute[] = "recompute_granularity", method[] = "recompute_method",
                  re_layers[] = "recompute_num_layers", re_modules[] = "recompute_modules",
                  tp_overlap[] = "tp_comm_overlap", grad_overlap[] = "overlap_grad_reduce",
                  param_overlap[] = "overlap_param_gather", p2p_overlap[] = "overlap_p2p_comm",
                  graphs[] = "enable_cuda_graph", scope[] = "cuda_graph_scope",
                  fuser[] = "use_transformer_engine_op_fuser", dispatcher[] = "moe_token_dispatcher_type",
                  ep_overlap[] = "overlap_moe_expert_parallel_comm", capacity[] = "moe_expert_capacity_factor",
                  fused[] = "fused_kernels", main_grads[] = "main_grads_dtype", reduce_dtype[] = "grad_reduce_dtype",
                  attention[] = "attention_backend", blocking[] = "launches_block",
                  rereads[] = "softmax_rereads_scores", /* of the framework, not of the plan */
    vocab_pipe[] = "vocab_parallel_pipeline", interlaced[] = "use_interlaced_schedule",
                  split_output[] = "disable_backward_fusion", update[] = "optimizer",
                  selective_ac[] = "selective_ac_option";

#define BLOCK_LAYERS                                                                                                   \
    "block # layer*|block of # layer*|block #|block&# layer*&!transformer block|# layer* per stage|# layer* of each "  \
    "stage|"                                                                                                           \
    "# layer* per virtual stage"
#define HALF "every other layer|every second layer|every 2nd layer|half of the layers|half the layers|half of layers"
#define PER_OP "per-op sac|selective op|selective (op)|torchtitan selective ac|sac=op|sac op|sac (op)|op-level"

/* Megatron's --use-flash-attn, which its older profiles leave off. FlashAttention-2 came in the middle of 2023. */
#define FLASH "flash attention*|flashattention*|flash-attention*|flash-attn*|flash attn*|flash_attn*|use_flash_attn*"
#define NO_FLASH_IN(column_) IN(column_, "no flash*|without flash*", attention, "unfused", STATED)
#define FLASH_IN(column_)                                                                                              \
    IN(column_, "fa3|flash*attention-3|flashattention3|flash attention 3|flashattention 3", attention, "flash", NULL,  \
       WHEN_PROFILE_UNFUSED, 0, 0),                                                                                    \
        IN(column_, "fa2|flash-attn 2|flash attn 2|flashattention2|flashattention-2|flash attention 2", attention,     \
           "flash2", NULL, WHEN_PROFILE_UNFUSED, 0, 0),                                                                \
        IN(column_, FLASH, attention, "flash1", NULL, WHEN_PROFILE_UNFUSED, 1, 2022),                                  \
        IN(column_, FLASH, attention, "flash2", NULL, WHEN_PROFILE_UNFUSED, 0, 0)

/* What a recipe of 8 or 4 bits leaves in 16, and what it takes beyond the layers' products. */
#define LAST_LAYERS                                                                                                    \
    "last # layers in bf16|last # layers bf16|last # layers stay in bf16|num_layers_at_end_in_bf16=#|"                 \
    "num_layers_at_end_in_bf16 #"
#define FIRST_LAYERS                                                                                                   \
    "first # layers in bf16|first # layers bf16|first # layers stay in bf16|num_layers_at_start_in_bf16=#|"            \
    "num_layers_at_start_in_bf16 #"
#define BOTH_ENDS                                                                                                      \
    "first/last layers in bf16|first/last layers bf16|first and last layers in bf16|first and last layer in bf16|"     \
    "first & last layers in bf16|first_last_layers_bf16&!first_last_layers_bf16=false&!first_last_layers_bf16 false"
#define NARROW_IN(column_)                                                                                             \
    IN(column_, LAST_LAYERS "|" FIRST_LAYERS "|" BOTH_ENDS, "first_last_layers_bf16", "true", STATED),                 \
        IN(column_, LAST_LAYERS, "num_layers_at_end_in_bf16", "#", STATED),                                            \
        IN(column_, FIRST_LAYERS, "num_layers_at_start_in_bf16", "#", STATED),                                         \
        IN(column_, LAST_LAYERS, "num_layers_at_start_in_bf16", "0", STATED),                                          \
        IN(column_, FIRST_LAYERS, "num_layers_at_end_in_bf16", "0", STATED),                                           \
        IN(column_, "fp8 attention|fp8 dpa|fp8_dpa|fp8_dot_product_attention|fp8 dot product attention|fp8 sdpa",      \
           "fp8_dot_product_attention", "true", STATED),                                                               \
        IN(column_, "fp8_output_proj|fp8 output proj*|fp8 output layer|mxfp8 output layer|fp8 lm head|mxfp8 lm head",  \
           "fp8_output_proj", "true", STATED)

static const struct rule text_rules[] = {
    /* arithmetic */
    IN(precision, "nvfp4", precision, "nvfp4", STATED),
    IN(precision, "mxfp4|mx fp4|mx-fp4", precision, "nvfp4", "MXFP4 as NVFP4, whose blocks are half as long", 0, 0, 0),
    IN(precision, "fp4|float4", precision, "nvfp4", "FP4 as NVFP4: which FP4 is not stated", 0, 0, 0),
    IN(precision, "mxfp8&expert", precision, "mxfp8", "MXFP8 in all linears, though only those of the experts are", 0,
       0, 0),
    IN(precision, "mxfp8|mx fp8|mx-fp8|fp8-mx|fp8_mx|fp8 mx|float8&mx", precision, "mxfp8", STATED),
    IN(precision, "fp8 alternate granularity", precision, "mxfp8",
       "the other FP8 granularity is MX blocks on Blackwell", WHEN_BLACKWELL, 0, 0),
    IN(precision, "fp8 alternate granularity", precision, "fp8-blockwise",
       "the other FP8 granularity is 128 x 128 blocks on Hopper", 0, 0, 0),
    IN(precision, "fp8&current*|float8&current*|float8 linear|fp8-cs|fp8_cs", precision, "fp8-current", STATED),
    IN(precision, "fp8&*tensorwise|float8&*tensorwise", precision, "fp8-current", STATED),
    IN(precision, "fp8&*rowwise|float8&*rowwise", precision, "fp8-rowwise", STATED),
    IN(precision,
       "fp8&block*|fp8&128x128|fp8&1x128|float8&block*|fp8-sc|fp8_sc|fp8&sub-channel|fp8&sub "
       "channel|fp8&deepseek*|fp8&subchannel",
       precision, "fp8-blockwise", STATED),
    IN(precision, "fp8&delayed|float8&delayed|fp8-ds|fp8_ds", precision, "fp8-delayed", STATED),
    IN(precision, "fp8&te|fp8|e4m3*|8-bit|8 bit", precision, "fp8-delayed",
       "FP8 with delayed scaling: the granularity is not stated", 0, 0, 0),
    IN(precision, "float8*", precision, "fp8-current", "float8 as torchao's default, a scale per tensor: not stated", 0,
       0, 0),
    IN(precision, "bf16|bfloat16", precision, "bf16", STATED),
    IN(precision, "fp16|float16|half", precision, "fp16", STATED),
    IN(precision, "fp32|float32&!tf32&!tensorfloat*", precision, "fp32", STATED),
    IN(precision, "mixed*|amp|16|16-*|^o1|^o2", precision, "auto", "16-bit arithmetic: of which kind is not stated", 0,
       0, 0),
    IN(precision, "float8 all-gather|fp8 all-gather", "fp8_param_gather", "true", STATED),
    NARROW_IN(precision),
    NARROW_IN(overlap_notes),
    NARROW_IN(notes),
    IN(precision, "pure", reduce_dtype, "bf16", STATED),
    IN(overlap_notes, "bf16 grad reduce|grad_reduce_in_bf16", reduce_dtype, "bf16", STATED),
    IN(overlap_notes, "bf16 grad reduce|grad_reduce_in_bf16", main_grads, "bf16", STATED),
    IN(notes, "reduced-precision optimizer moments", "exp_avg_dtype", "bf16", STATED),

    /* data parallelism */
    IN(zero_or_fsdp, "none|zero-0|zero0|zero 0|stage 0|^0&!^0-*&!^0 *|plain dp|no_shard|no sharding|^dp#", sharding,
       "no_shard", STATED),
    IN(zero_or_fsdp, "^no|^without|^not used|^off|^false|^disabled|no zero", sharding, "no_shard", STATED),
    IN(zero_or_fsdp, "shard_grad_op|*hybrid_shard_zero2", sharding, "optim_grads_params", STATED),
    IN(zero_or_fsdp, "shard_grad_op|*hybrid_shard_zero2", "reshard_after_forward", "false", STATED),
    IN(zero_or_fsdp,
       "*fsdp*|zero-3|hsdp|zero3|zero 3|zero_3|stage 3|stage-3|stage3|stage_3|full_shard|fully sharded|fully_shard|"
       "hybrid shard*|*hybrid_shard*|mics|^3&!^3-*&!^3 *|optim_grads_params|dp_shard*|zero++|zero-infinity|zero "
       "infinity",
       sharding, "optim_grads_params", STATED),
    IN(zero_or_fsdp,
       "distributed optimizer*|zero-1|zero1|zero 1|zero_1|stage 1|stage-1|stage1|stage_1|^1&!^1-*&!^1 "
       "*|^optim|dist-opt*|dist opt*|"
       "dist_opt*|distopt|distributed-optimizer|distributed_optimizer|use_distributed_optimizer|distributed adam|"
       "distributed_fused_adam|optimizer shard*|optimizer state shard*|optimizer-state shard*",
       sharding, "optim", STATED),
    IN(zero_or_fsdp, "zero-2|zero2|zero 2|zero_2|stage 2|stage-2|stage2|stage_2|^2&!^2-*&!^2 *|optim_grads", sharding,
       "optim_grads", STATED),
    IN(zero_or_fsdp, "zero-offload|zero offload", sharding, "optim_grads", STATED),
    IN(zero_or_fsdp, "ddp|data parallel|data-parallel|^dp", sharding, "no_shard", STATED),
    IN(zero_or_fsdp, "zero-infinity|zero infinity|*offload*&!no offload*&!no cpu offload*&!without*",
       "optimizer_offload_fraction", "1",
       "the optimizer lives and runs on the host, all of it: what is offloaded is not stated", 0, 0, 0),
    IN(framework, "zero-3|zero3|zero 3|stage 3|megatron-fsdp|megatron fsdp", sharding, "optim_grads_params", STATED),
    IN(framework, "zero-2|zero2|zero 2|stage 2", sharding, "optim_grads", STATED),
    IN(framework, "zero-1|zero1|zero 1|stage 1", sharding, "optim", STATED),
    IN(framework, "ddp", sharding, "no_shard", STATED),

    /* recomputation */
    IN(recompute, "^none|^no|^non|^n|^off|^false|^disabled|^without|^w/o|^not used|^0&!^0.#|0 layers", recompute,
       "none", STATED),
    IN(recompute, "block/full recompute of # layer*", recompute, "full", STATED),
    IN(recompute, "block/full recompute of # layer*", method, "block", STATED),
    IN(recompute, "block/full recompute of # layer*", re_layers, "#", STATED),
    IN(recompute, "# of # layer*|# of the # layer*|#/# layer*|^#/#", recompute, "full", STATED),
    IN(recompute, "# of # layer*|# of the # layer*|#/# layer*|^#/#", method, "block", STATED),
    IN(recompute, "# of # layer*|# of the # layer*|#/# layer*|^#/#", re_layers, "%#/#", STATED),
    IN(recompute, BLOCK_LAYERS, recompute, "full", STATED),
    IN(recompute, BLOCK_LAYERS, method, "block", STATED),
    IN(recompute, BLOCK_LAYERS, re_layers, "#", STATED),
    IN(recompute, HALF, recompute, "full", STATED),
    IN(recompute, HALF, method, "block", STATED),
    IN(recompute, HALF, re_layers, "%1/2", STATED),
    IN(recompute, "every # layers|every #rd layer|every #th layer", recompute, "full", STATED),
    IN(recompute, "every # layers|every #rd layer|every #th layer", method, "block", STATED),
    IN(recompute, "every # layers|every #rd layer|every #th layer", re_layers, "%1/#", STATED),
    IN(recompute, "#%|# %", recompute, "full", STATED),
    IN(recompute, "#%|# %", method, "block", STATED),
    IN(recompute, "#%|# %", re_layers, "%#/100", STATED),
    IN(recompute, "every layer|each layer|whole layer*|per layer|per-layer|per_layer|transformer block*|all blocks",
       recompute, "full", STATED),
    IN(recompute, "^# layer*|^# transformer layer*", recompute, "full", STATED),
    IN(recompute, "^# layer*|^# transformer layer*", method, "block", STATED),
    IN(recompute, "^# layer*|^# transformer layer*", re_layers, "#",
       "the recomputed layers are those of a virtual stage: of what they are is not stated", 0, 0, 0),
    IN(recompute, "selective layer", recompute, "full", STATED), /* torchtitan: every second layer is checkpointed */
    IN(recompute, "selective layer", method, "block", STATED),
    IN(recompute, "selective layer", re_layers, "%1/2", STATED),
    IN(recompute, PER_OP, recompute, "selective", STATED), /* torchtitan's selective op */
    IN(recompute, PER_OP, selective_ac, "op", STATED),
    IN(recompute, PER_OP, method, "uniform", STATED), /* no layers are chosen, whatever is said below of "SAC" */
    IN(recompute, PER_OP, re_layers, "0", STATED),
    IN(recompute, "selective ac|sac", recompute, "full", STATED),
    IN(recompute, "selective ac|sac", method, "block", STATED),
    IN(recompute, "selective ac|sac", re_layers, "%1/2", "half of the layers are recomputed: the share is not stated",
       0, 0, 0),
    IN(recompute, "selective&core attention|selective&core_attn", recompute, "selective", STATED),
    IN(recompute, "selective", recompute, "selective", STATED),
    /* MaxText's remat policies name what is kept (layers/models.py): save_qkv_proj the projections in front of attention,
     * save_dot_except_mlp* those and the one behind it; the first MLP product and attention itself are recomputed by both */
    IN(recompute, "save_qkv_proj|save_dot_except_mlp*", recompute, "selective", STATED),
    IN(recompute, "save_qkv_proj|save_dot_except_mlp*", re_modules, "[layernorm, core_attn, mlp]",
       "the remat policy as recomputing norms, attention and MLP", 0, 0, 0),
    IN(recompute, "remat minimal*", recompute, "selective", STATED),
    IN(recompute, "remat minimal*", re_modules, "[layernorm]", "remat minimal as recomputing norms", 0, 0, 0),
    /* Pax: Transformer Engine has a kernel for the softmax, XLA has not */
    IN(precision, "te", rereads, "false", NULL, WHEN_PAX, 0, 0),
    IN(recompute, "full|activation checkpointing|activation_checkpointing true", recompute, "full", STATED),
    IN(recompute,
       "gradient checkpointing|gradient_checkpointing|activation recomput*|uniform|block|all layers|^yes|^y|^true|^on|"
       "^enabled|^1|^w/|^ac|^checkpointing",
       recompute, "full", STATED),

    /* overlap */
    IN(overlap_notes, "no tp overlap|no tp comm overlap", tp_overlap, "false", STATED),
    IN(overlap_notes, "ub_tp_comm_overlap true|tp and pp comm overlap enabled|tp comm overlap|async tp", tp_overlap,
       "true", NULL, WHEN_TP, 0, 0),
    IN(overlap_notes,
       "no overlap_grad_reduce*|no dp overlap|no gradient bucketing overlap|no overlap flags*|megatron-lm defaults",
       grad_overlap, "false", STATED),
    IN(overlap_notes,
       "no overlap_grad_reduce*|no dp overlap|no gradient bucketing overlap|no overlap flags*|megatron-lm defaults",
       param_overlap, "false", STATED),
    IN(overlap_notes, "overlap_grad_sync*&true|dp (grad reduce*&enabled", grad_overlap, "true", STATED),
    IN(overlap_notes, "overlap_param_sync*&true|dp (grad reduce*&enabled", param_overlap, "true", STATED),
    IN(overlap_notes, "overlap_param_sync true", param_overlap, "true", STATED),
    IN(overlap_notes, "overlap_p2p_comm true|pp comm overlap", p2p_overlap, "true", NULL, WHEN_VP, 0, 0),
    IN(overlap_notes, "cp a2a", "cp_comm_type", "a2a", NULL, WHEN_CP, 0, 0),
    IN(overlap_notes, MAQ__EP_OVERLAP, ep_overlap, "true", NULL, WHEN_PAIRED, 0, 0),
    IN(overlap_notes, "cpu activation offload of # layer*", "cpu_offloading_num_layers", "#", STATED),

    /* kernels */
    IN(overlap_notes, "cuda graphs none|no cuda graphs", graphs, "false", STATED),
    IN(overlap_notes, "cuda graphs full_iteration|cuda graphs local scope=full_iteration|full-iteration cuda graphs",
       graphs, "true", STATED),
    IN(overlap_notes, "cuda graphs&mamba&attn&moe_router", scope, "[attn, mamba, moe_router, moe_preprocess]", STATED),
    IN(overlap_notes, "cuda graphs&attn&moe_router", scope, "[attn, moe_router, moe_preprocess]", STATED),
    IN(overlap_notes, "cuda graphs&moe_router", scope, "[moe_router, moe_preprocess]", STATED),
    IN(overlap_notes, "cuda graphs&mamba&attn", scope, "[attn, mamba]", STATED),
    IN(overlap_notes, "cuda graphs&mlp&attn", scope, "[attn, mlp]", STATED),
    IN(overlap_notes, "cuda graphs&mamba", scope, "[mamba]", STATED),
    IN(overlap_notes, "cuda graphs&attn", scope, "[attn]", STATED),
    IN(overlap_notes, "cuda graphs moe_|cuda graphs attn|cuda graphs transformer_engine", graphs, "false", STATED),
    IN(overlap_notes, "cuda graphs", graphs, "false",
       "launches as without CUDA graphs: those cover parts of the layers", 0, 0, 0),
    /* the recipes that fuse these operators capture whole iterations */
    IN(overlap_notes, "cuda graphs moe_|cuda graphs attn|cuda graphs transformer_engine", fuser, "false", STATED),
    IN(overlap_notes, "cross-entropy fusion", "cross_entropy_loss_fusion", "true", STATED),
    IN(overlap_notes, "no torch.compile", fused, "false", STATED),
    IN(overlap_notes, "torch.compile", fused, "true", STATED),
    IN(notes, "cuda_launch_blocking", blocking, "true",
       "the host waits for every kernel: CUDA_LAUNCH_BLOCKING may have been set", 0, 0, 0),

    NO_FLASH_IN(framework),
    NO_FLASH_IN(overlap_notes),
    NO_FLASH_IN(notes),

    /* experts */
    IN(overlap_notes, "hybridep", dispatcher, "hybridep", STATED),
    IN(overlap_notes, "deepep", dispatcher, "deepep", STATED),
    IN(framework, "megatron-bridge", dispatcher, "alltoall", NULL, WHEN_MOE | WHEN_FULL, 0, 0),
    /* Megatron's token drop works with this dispatcher alone (Megatron-Bridge, training/utils/moe_token_drop.py) */
    IN(notes, "capacity factor #|token drop|token-drop", dispatcher, "alltoall", NULL, WHEN_MOE, 0, 0),
    IN(notes, "capacity factor #", capacity, "#", NULL, WHEN_MOE, 0, 0),
    IN(notes, "token drop|token-drop", capacity, "1",
       "capacity factor 1: tokens are dropped, at a factor that is not stated", WHEN_MOE, 0, 0),
    IN(notes, "natural routing", NULL, NULL, "experts are balanced, though routing was natural", WHEN_MOE, 0, 0),
    IN(notes, "etp=#", "expert_tensor_parallel_size", "#", NULL, WHEN_MOE, 0, 0),

    /* pipeline */
    IN(notes, "embedding and loss each count*", "account_for_embedding_in_pipeline_split", "true", STATED),
    IN(notes, "embedding and loss each count*", "account_for_loss_in_pipeline_split", "true", STATED),
    IN(overlap_notes, "vocabulary parallelism*", vocab_pipe, "true", STATED),
    IN(overlap_notes, "interlaced pipeline", vocab_pipe, "true", "the interlaced pipeline as vocabulary parallelism", 0,
       0, 0),
    IN(overlap_notes, "interlaced pipeline", interlaced, "true", STATED),
    IN(overlap_notes, "vocabulary parallelism variant 1", split_output, "true", STATED), /* --disable-backward-fusion */
    IN(overlap_notes, "layer redistribution", NULL, NULL, "layers shared evenly: how they were moved is not stated", 0,
       0, 0),

    /* the update */
    IN(notes, "muon*|dist_muon", update, "muon", NULL, WHEN_WHOLE_MATRICES, 0, 0),
    /* what it was trained with, and Megatron-Bridge's default for it (scripts/performance/argument_parser.py, --optimizer) */
    IN(model, "kimi*k2*|kimi-k2*|kimi k2*|kimi_k2*", update, "muon", "Kimi K2 is updated by Muon: not stated",
       WHEN_WHOLE_MATRICES, 0, 0),
};

/*
 * Which profile (data/frameworks) a row's framework and year mean; the first that matches. What the profile sets is
 * not listed with the row: the profile is.
 */
static const struct profile_rule {
    const char *pattern, *profile;
    uint16_t from_year, to_year; /* 0 = any; a row without a year matches */
} profile_rules[] = {
    {"megatron-deepspeed|megatron deepspeed|megatron_deepspeed|megatron*&deepspeed*|gpt-neox*|gpt "
     "neox|gptneox|bigscience",
     "megatron-deepspeed", 0, 0},
    {"megatron-bridge&26.06|megatron-bridge&26.08", "megatron-bridge-26.06", 0, 0},
    {"megatron-bridge&25.09", "megatron-bridge-25.09", 0, 0},
    {"megatron-bridge|megatron bridge|megatron_bridge|megatronbridge", "megatron-bridge", 0, 0},
    {"mlperf*", "mlperf-nvidia", 2025, 0},
    {"mlperf*", "mlperf-nvidia-2024", 0, 0},
    {"automodel|nemo-automodel", "nemo-automodel", 0, 0},
    {"nemo*", "nemo", 0, 0},
    {"maxtext*", "maxtext", 0, 0},
    {"pax&older release", "paxml-2023", 0, 0},
    {"pax|paxml|praxis", "paxml", 0, 0},
    {"jax|levanter|easylm|easydel|t5x|flax|xla", "jax", 0, 0},
    {"internevo|internlm", "internevo", 0, 0},
    {"composer|llm-foundry|llm foundry|llmfoundry|mosaic*", "llm-foundry", 0, 0},
    {"torchtitan|torch titan|torch-titan", "torchtitan", 0, 0},
    {"lit-gpt|litgpt|lit gpt|lightning|tinyllama", "lit-gpt", 0, 0},
    {"megatron-lm fork&method", "megatron-vocab-parallel", 0, 0},
    {"*megatron*|mcore|primus*|mindspeed*", "megatron-lm", 2023, 0},
    {"*megatron*|mcore", "megatron-lm-2022", 0, 0},
    {"*fsdp*|olmo*|torchtune", "pytorch-fsdp", 0, 0},
    {"hugging face*|huggingface*|hf|accelerate|transformers|trl|axolotl|llama-factory|llama "
     "factory|llamafactory|ms-swift|swift",
     "huggingface", 2025, 0},
    /* Programs around the models of Hugging Face, or DeepSpeed without Megatron: eager modules, a hook for every gather. */
    {"deepspeed*|hugging face*|huggingface*|hf|accelerate|transformers|trl|axolotl|llama-factory|llama factory|"
     "llamafactory|unsloth|ms-swift|swift|fairscale|fairseq|metaseq|llama-recipes|pytorch*|torch",
     "pytorch-fsdp", 0, 0},
};

static const struct rule default_rules[] = {
    FLASH_IN(framework),
    FLASH_IN(overlap_notes),
    FLASH_IN(notes),
    /* The selective recomputation of 2022 exists because unfused attention keeps its scores. */
    IN(recompute, "", recompute, "selective", "core attention is recomputed: recomputation is not stated", WHEN_UNFUSED,
       0, 0),
    IN(recompute, "", recompute, "none", "nothing is recomputed: recomputation is not stated", 0, 0, 0),
    IN(zero_or_fsdp, "", sharding, "optim", "optimizer state shared over DP: sharding is not stated", WHEN_DP, 0, 0),
    IN(precision, "", precision, "auto", "16-bit arithmetic: precision is not stated", 0, 0, 0),
};

/* Whether the profile of the row's framework settles a key. */
static bool profile_sets(const struct maq_interpretation *in, const char *key)
{
    return in->profile_plan && maq_framework_sets(in->profile_plan, key);
}

static bool holds(const struct maq_interpretation *in, uint16_t when)
{
    const char *backend = maq__setting(&in->plan, attention);
    bool profile_unfused = in->profile_plan && maq_framework_is_unfused(in->profile_plan);
    bool unfused = backend ? strcmp(backend, "unfused") == 0 : profile_unfused;
    bool full = maq__phrase_in(maq_row_text(&in->row, MAQ_COLUMN_completeness), "full", NULL);
    bool pax = maq__phrase_in(maq_row_text(&in->row, MAQ_COLUMN_framework), "pax|paxml", NULL);
    const char *shared = maq__setting(&in->plan, sharding);
    bool whole = (!shared || strcmp(shared, "optim") == 0 || strcmp(shared, "no_shard") == 0) &&
                 !maq__setting(&in->plan, "optimizer_offload_fraction");
    unsigned now = (in->tp > 1 ? WHEN_TP : 0u) | (in->cp > 1 ? WHEN_CP : 0u) | (in->vp > 1 ? WHEN_VP : 0u) |
                   (in->dp * in->cp > 1 ? WHEN_DP : 0u) | (in->experts > 0 ? WHEN_MOE : 0u) |
                   (in->arch == MAQ_ARCH_BLACKWELL ? WHEN_BLACKWELL : 0u) | (unfused ? WHEN_UNFUSED : 0u) |
                   (full ? WHEN_FULL : 0u) | (pax ? WHEN_PAX : 0u) | (whole ? WHEN_WHOLE_MATRICES : 0u) |
                   (profile_unfused ? WHEN_PROFILE_UNFUSED : 0u) | (in->pp == 1 || in->vp > 1 ? WHEN_PAIRED : 0u);
    return (now & when) == when;
}

static bool in_years(const struct maq_interpretation *in, const struct rule *r)
{
    return in->year == 0 ||
           ((r->from_year == 0 || in->year >= r->from_year) && (r->to_year == 0 || in->year <= r->to_year));
}

/* Where a key belongs. */
static struct maq_settings *section_of(struct maq_interpretation *in, const char *key)
{
    return key == blocking || key == rereads ? &in->framework_settings : &in->plan;
}

/* Layers of a virtual stage times a/b of "%a/b", at least one; each '#' stands for the next captured number. */
static int share_of_layers(const struct maq_interpretation *in, const char *share, const struct maq_phrase_match *m)
{
    double layers = (double)in->layers / (double)(in->pp * in->vp), part[2] = {1, 1};
    const char *over = strchr(share, '/');
    const char *const text[2] = {share + 1, over ? over + 1 : "1"};
    uint32_t used = 0;
    for (int i = 0; i < 2; i++) {
        struct maq_phrase_match written;
        if (text[i][0] == '#')
            part[i] = used < m->n ? m->number[used++] : 1;
        else if (maq__phrase_in(maq_str_of(text[i]), "#", &written))
            part[i] = written.number[0];
    }
    layers *= part[1] > 0 ? part[0] / part[1] : 1;
    return layers < 1 ? 1 : layers > 60000 ? 60000 : (int)(layers + 0.5);
}

/* '#' becomes the captured number, "%a/b" that share of the layers of a virtual stage. */
static void set_value(struct maq_interpretation *in, const struct rule *r, const struct maq_phrase_match *m)
{
    if (r->value[0] == '#')
        maq__set(in, &in->plan, r->key, "%g", m->n > 0 ? m->number[0] : 0);
    else if (r->value[0] == '%')
        maq__set(in, &in->plan, r->key, "%d", share_of_layers(in, r->value, m));
    else
        maq__set(in, section_of(in, r->key), r->key, "%s", r->value);
}

static void run(struct maq_interpretation *in, const struct rule *rules, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct rule *r = &rules[i];
        struct maq_phrase_match m = {0};
        bool by_profile = r->key && !(r->when & WHEN_PROFILE_UNFUSED) && profile_sets(in, r->key);
        bool set = by_profile || (r->key && maq__setting(&in->plan, r->key));
        if (set || !holds(in, r->when) || !in_years(in, r))
            continue;
        struct maq_str text = maq_row_text(&in->row, r->column);
        if (maq_row_says_nothing(text))
            text = MAQ_STR("");
        if (r->pattern[0] != '\0' && !maq__phrase_in(text, r->pattern, &m))
            continue;
        if (r->key)
            set_value(in, r, &m);
        if (r->assumed)
            maq__assume(in, "%s", r->assumed);
    }
}

void maq__apply_text_rules(struct maq_interpretation *in)
{
    run(in, text_rules, MAQ_COUNT(text_rules));
}

bool maq__names_data_parallelism(const struct maq_interpretation *in)
{
    static const char pattern[] =
        "*fsdp*|*ddp|*hsdp|full_shard|*hybrid_shard*|zero-2|zero2|zero-3|zero3|zero 2|zero 3|stage 2|stage 3";
    return maq__phrase_in(maq_row_text(&in->row, MAQ_COLUMN_zero_or_fsdp), pattern, NULL) ||
           maq__phrase_in(maq_row_text(&in->row, MAQ_COLUMN_framework), pattern, NULL);
}

void maq__note_unread(struct maq_interpretation *in)
{
    static const struct {
        enum maq_column column;
        const char *key;
    } cells[] = {
        {MAQ_COLUMN_precision, precision}, {MAQ_COLUMN_zero_or_fsdp, sharding}, {MAQ_COLUMN_recompute, recompute}};
    if (!maq__setting(&in->plan, precision) &&
        maq__phrase_in(maq_row_text(&in->row, MAQ_COLUMN_precision), "tf32|tensorfloat*", NULL))
        maq__give_up(in, MAQ_VALIDATE_SKIP_REFUSED, "there is no recipe for TF32 arithmetic");
    for (size_t i = 0; i < MAQ_COUNT(cells); i++) {
        struct maq_str text = maq_row_text(&in->row, cells[i].column);
        char show[MAQ_SHOW_SIZE];
        if (!maq_row_says_nothing(text) && !maq__setting(&in->plan, cells[i].key))
            maq__assume(in, "%s '%s' means nothing to maquette: taken as not stated", maq_column_name(cells[i].column),
                        maq_str_show(show, text));
    }
}

/* NULL when its framework is none that is known. */
static const char *profile_of(const struct maq_interpretation *in)
{
    struct maq_str framework = maq_row_text(&in->row, MAQ_COLUMN_framework);
    for (size_t i = 0; i < MAQ_COUNT(profile_rules); i++) {
        const struct profile_rule *p = &profile_rules[i];
        bool then = in->year == 0 ||
                    ((p->from_year == 0 || in->year >= p->from_year) && (p->to_year == 0 || in->year <= p->to_year));
        if (then && maq__phrase_in(framework, p->pattern, NULL))
            return p->profile;
    }
    return NULL;
}

/* PyTorch's FSDP, not Megatron's own. */
static bool names_fsdp(const struct maq_interpretation *in)
{
    static const char pattern[] = "*fsdp*|*hsdp|full_shard|*hybrid_shard*|shard_grad_op";
    struct maq_str shared = maq_row_text(&in->row, MAQ_COLUMN_zero_or_fsdp);
    return (maq__phrase_in(shared, pattern, NULL) && !maq__phrase_in(shared, "megatron*|mcore*", NULL)) ||
           maq__phrase_in(maq_row_text(&in->row, MAQ_COLUMN_framework), pattern, NULL);
}

/*
 * Of an unknown framework. A dense model under FSDP alone is likely PyTorch's own; whatever else cuts a model over ranks
 * grew from Megatron-LM, and works in its ways of that year.
 */
static const char *likely_profile(const struct maq_interpretation *in)
{
    if (names_fsdp(in) && in->tp * in->pp == 1 && in->experts == 0)
        return "pytorch-fsdp";
    return in->year > 0 && in->year < 2023 ? "megatron-lm-2022" : "megatron-lm";
}

/* Loads the row's profile for what the row says of model, device and precision. */
void maq__choose_profile(struct maq_interpretation *in)
{
    const char *precision_stated = maq__setting(&in->plan, precision);
    const struct maq_framework_facts facts = {
        .arch = in->arch,
        .moe = in->experts > 0,
        .tensor_parallel = in->tp > 1,
        .pipeline_parallel = in->pp > 1,
        .precision = maq_str_of(precision_stated ? precision_stated : ""),
    };
    const char *known = profile_of(in);
    /* the programs of these profiles have no pipeline, and it would gather all parameters in every microbatch */
    bool without = known && (strcmp(known, "pytorch-fsdp") == 0 || strcmp(known, "huggingface") == 0);
    bool fits = known && (!without || in->pp == 1 || names_fsdp(in));
    in->profile = fits ? known : likely_profile(in);
    in->profile_plan = NULL;
    struct maq_node name = {.kind = MAQ_NODE_SCALAR, .text = maq_str_of(in->profile)};
    struct maq_framework_plan *plan = MAQ_ARENA_NEW(in->arena, struct maq_framework_plan, 1);
    if (!plan || maq_framework_load(&in->framework, plan, &name, &facts, in->arena, NULL) != MAQ_OK) {
        in->failed = true;
        return;
    }
    in->profile_plan = plan;
    bool stated = !maq_row_says_nothing(maq_row_text(&in->row, MAQ_COLUMN_framework));
    maq__assume(in, "what the row leaves open is as in the profile %s%s", in->profile,
                fits     ? ""
                : known  ? ": its framework has no pipeline"
                : stated ? ": there is none of its framework"
                         : ": framework is not stated");
}

void maq__apply_default_rules(struct maq_interpretation *in)
{
    run(in, default_rules, MAQ_COUNT(default_rules));
}
