/*
 * plan_rules.c - what a phrase says about the plan.
 *
 * Three tables of one form, run in this order; the first rule that sets a key wins:
 *
 *   text        what the row says in so many words
 *   framework   what a framework did in those years when nothing is said: facts of its releases, given with each rule
 *   default     what is left
 *
 * A value may hold '#', the number captured by the pattern, or be "%a/b": that share of the layers of a virtual stage. A rule with an
 * `assumed` text is a guess or an approximation and is listed with the row.
 */
#include "validate/interpret.h"

#include <string.h>

#include "base/check.h"
#include "validate/phrase.h"

enum when { /* bits; all must hold */
            WHEN_TP = 1,
            WHEN_CP = 2,
            WHEN_VP = 4,
            WHEN_BLACKWELL = 8,
            WHEN_FP8 = 16,      /* the device has it */
            WHEN_NOT_BF16 = 32, /* the precision column does not say so */
            WHEN_UNFUSED = 64,  /* attention has been decided to be unfused */
            WHEN_DP = 128,
            WHEN_MOE = 256,
            WHEN_ZERO = 1024, /* the optimizer state is shared */
            WHEN_NEAR = 512,  /* the row is not complete: what it does not mention is not known to be off */
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
                  graphs[] = "enable_cuda_graph", dispatcher[] = "moe_token_dispatcher_type",
                  ep_overlap[] = "overlap_moe_expert_parallel_comm", capacity[] = "moe_expert_capacity_factor",
                  fused[] = "fused_kernels", fusion[] = "gradient_accumulation_fusion",
                  main_grads[] = "main_grads_dtype", reduce_dtype[] = "grad_reduce_dtype",
                  attention[] = "attention_backend", vocab_pipe[] = "vocab_parallel_pipeline",
                  interlaced[] = "use_interlaced_schedule", split_output[] = "disable_backward_fusion",
                  module_loading[] = "cuda_module_loading", reduce_bucket[] = "reduce_bucket_size",
                  pure[] = "pure_low_precision", selective_ac[] = "selective_ac_option",
                  loss_function[] = "loss_function", upcast[] = "fp32_upcast";

static const struct rule text_rules[] = {
    /* arithmetic */
    IN(precision, "nvfp4", precision, "nvfp4", STATED),
    IN(precision, "mxfp8&expert", precision, "mxfp8", "MXFP8 in all linears, though only those of the experts are", 0,
       0, 0),
    IN(precision, "mxfp8", precision, "mxfp8", STATED),
    IN(precision, "fp8 alternate granularity", precision, "mxfp8",
       "the other FP8 granularity is MX blocks on Blackwell", WHEN_BLACKWELL, 0, 0),
    IN(precision, "fp8 alternate granularity", precision, "fp8-blockwise",
       "the other FP8 granularity is 128 x 128 blocks on Hopper", 0, 0, 0),
    IN(precision, "fp8&current*|float8 linear|fp8-cs", precision, "fp8-current", STATED),
    IN(precision, "fp8&*tensorwise|fp8&*rowwise", precision, "fp8-current", STATED),
    IN(precision, "fp8&block*|fp8&128x128", precision, "fp8-blockwise", STATED),
    IN(precision, "fp8&delayed", precision, "fp8-delayed", STATED),
    IN(precision, "fp8&te|fp8", precision, "fp8-delayed", "FP8 with delayed scaling: the granularity is not stated", 0,
       0, 0),
    IN(precision, "bf16|bfloat16", precision, "bf16", STATED),
    IN(precision, "fp16|float16|half", precision, "fp16", STATED),
    IN(precision, "fp32|float32", precision, "fp32", STATED),
    IN(precision, "float8 all-gather|fp8 all-gather", "fp8_param_gather", "true", STATED),
    IN(precision, "pure", reduce_dtype, "bf16", STATED),
    IN(overlap_notes, "bf16 grad reduce|grad_reduce_in_bf16", reduce_dtype, "bf16", STATED),
    IN(overlap_notes, "bf16 grad reduce|grad_reduce_in_bf16", main_grads, "bf16", STATED),
    IN(notes, "reduced-precision optimizer moments", "exp_avg_dtype", "bf16", STATED),

    /* data parallelism */
    IN(zero_or_fsdp, "none|zero-0|plain dp|no_shard|^dp#", sharding, "no_shard", STATED),
    IN(zero_or_fsdp, "shard_grad_op", sharding, "optim_grads_params", STATED),
    IN(zero_or_fsdp, "shard_grad_op", "reshard_after_forward", "false", STATED),
    IN(zero_or_fsdp, "*fsdp*|zero-3|hsdp", sharding, "optim_grads_params", STATED),
    IN(zero_or_fsdp, "distributed optimizer*|zero-1", sharding, "optim", STATED),
    IN(zero_or_fsdp, "zero-2", sharding, "optim_grads", STATED),

    /* recomputation */
    IN(recompute, "^none", recompute, "none", STATED),
    IN(recompute, "block/full recompute of # layer*", recompute, "full", STATED),
    IN(recompute, "block/full recompute of # layer*", method, "block", STATED),
    IN(recompute, "block/full recompute of # layer*", re_layers, "#", STATED),
    IN(recompute, "selective layer", recompute, "full", STATED), /* torchtitan: every second layer is checkpointed */
    IN(recompute, "selective layer", method, "block", STATED),
    IN(recompute, "selective layer", re_layers, "%1/2", STATED),
    /* torchtitan's selective op: every second matrix product is recomputed; of a gated MLP and GQA attention that is about 3/8 of the
     * products' FLOP (wk, wo, w3), and a little over half of what a layer keeps. Whole layers stand in for parts of all layers. */
    IN(recompute, "per-op sac|selective op|torchtitan selective ac", recompute, "full", STATED),
    IN(recompute, "per-op sac|selective op|torchtitan selective ac", method, "block", STATED),
    IN(recompute, "per-op sac|selective op|torchtitan selective ac", re_layers, "%3/8",
       "per-op checkpointing as 3/8 of the layers, recomputed whole", 0, 0, 0),
    IN(recompute, "per-op sac|selective op|torchtitan selective ac", selective_ac, "op", STATED),
    IN(recompute, "selective ac", recompute, "full", STATED),
    IN(recompute, "selective ac", method, "block", STATED),
    IN(recompute, "selective ac", re_layers, "%1/2", "half of the layers are recomputed: the share is not stated", 0, 0,
       0),
    IN(recompute, "selective&core attention|selective&core_attn", recompute, "selective", STATED),
    IN(recompute, "selective", recompute, "selective", STATED),
    /* MaxText's remat policies name what is kept: save_qkv_proj keeps little, save_dot_except_mlp* all but the MLP's products */
    IN(recompute, "remat save_qkv_proj", recompute, "full", "remat save_qkv_proj as full recomputation", 0, 0, 0),
    IN(recompute, "remat save_dot_except_mlp*", recompute, "selective", STATED),
    IN(recompute, "remat save_dot_except_mlp*", re_modules, "[layernorm, mlp]",
       "remat save_dot_except_mlp as recomputing norms and MLP", 0, 0, 0),
    IN(recompute, "remat minimal*", recompute, "selective", STATED),
    IN(recompute, "remat minimal*", re_modules, "[layernorm]", "remat minimal as recomputing norms", 0, 0, 0),
    IN(recompute, "full|activation checkpointing|activation_checkpointing true", recompute, "full", STATED),

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
    IN(overlap_notes, "ep all-to-all/1f1b overlap on|ep comm overlap", ep_overlap, "true", STATED),
    IN(overlap_notes, "cpu activation offload of # layer*", "cpu_offloading_num_layers", "#", STATED),

    /* kernels */
    IN(overlap_notes, "cuda graphs none|no cuda graphs", graphs, "false", STATED),
    IN(overlap_notes, "cuda graphs full_iteration|cuda graphs local scope=full_iteration|full-iteration cuda graphs",
       graphs, "true", STATED),
    IN(overlap_notes, "cuda graphs", graphs, "false",
       "launches as without CUDA graphs: those cover parts of the layers", 0, 0, 0),
    IN(overlap_notes, "no torch.compile", fused, "false", STATED),
    IN(overlap_notes, "torch.compile", fused, "true", STATED),
    IN(notes, "cuda_launch_blocking", NULL, NULL,
       "kernel launches do not wait for each other, though CUDA_LAUNCH_BLOCKING may have been set", 0, 0, 0),

    /* experts */
    IN(overlap_notes, "hybridep", dispatcher, "hybridep", STATED),
    IN(overlap_notes, "deepep", dispatcher, "deepep", STATED),
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
};

static const char old_megatron[] = "megatron-lm|megatron lm", deepspeed[] = "megatron-deepspeed",
                  nemo[] = "nemo&!automodel|nemo2*|megatron-bridge|mlperf*", jax[] = "jax|maxtext|pax|paxml",
                  eager_fsdp[] = "fsdp*&!megatron*|torchtitan|composer|llm-foundry|lightning";

static const struct rule framework_rules[] = {
    /* Megatron-DeepSpeed: --use-flash-attn is opt-in and came in 2023; DeepSpeed's pipeline engine reduces gradients after the last backward
     * pass and keeps FP16 gradients in FP16; the fused weight-gradient kernel needs Megatron's own FP32 gradient buffer. */
    IN(framework, deepspeed, attention, "unfused", "no flash attention: opt-in in Megatron-DeepSpeed", 0, 0, 0),
    IN(framework, deepspeed, grad_overlap, "false", STATED),
    IN(framework, deepspeed, param_overlap, "false", STATED),
    IN(framework, deepspeed, fusion, "false", STATED),
    IN(framework, deepspeed, p2p_overlap, "false", STATED),
    IN(framework, deepspeed, main_grads, "fp16", "gradients kept in 16 bits, as DeepSpeed's FP16 engine does",
       WHEN_NOT_BF16, 0, 0),
    IN(framework, deepspeed, reduce_dtype, "fp16", NULL, WHEN_NOT_BF16, 0, 0),
    /* ... and so does its ZeRO optimizer in BF16; only BF16_Optimizer, which is not called ZeRO, has gradients in FP32 */
    IN(framework, deepspeed, main_grads, "bf16", NULL, WHEN_ZERO, 0, 0),
    IN(framework, deepspeed, reduce_dtype, "bf16", NULL, WHEN_ZERO, 0, 0),
    /* runtime/zero/stage_1_and_2.py: ZeRO's flat buffers; reduce_bucket_size is 5e8 unless the configuration says otherwise */
    IN(framework, deepspeed, reduce_bucket, "5e8", STATED),
    /* CUDA loads kernels when they are first used since 11.7, by default since 12.2; PyTorch asked for it from 1.13 on (end of 2022) */
    IN(framework, "megatron*|deepspeed*", module_loading, "eager", NULL, 0, 0, 2022),
    /* sail-sg/VocabularyParallelism, pretrain_gpt.sh: --fp16, and Megatron-LM keeps 16-bit gradients with it */
    IN(framework, "megatron-lm fork&method", precision, "fp16", "FP16, as in the script that comes with the fork",
       WHEN_NOT_BF16, 0, 0),
    IN(framework, "megatron-lm fork&method", main_grads, "fp16", NULL, WHEN_NOT_BF16, 0, 0),
    IN(framework, "megatron-lm fork&method", reduce_dtype, "fp16", NULL, WHEN_NOT_BF16, 0, 0),
    /* NeMo AutoModel trains in the type of the checkpoint: torch.optim.Adam on 16-bit weights, no copy in 4 bytes */
    IN(framework, "automodel", pure, "true", "weights and Adam's moments in 16 bits, as AutoModel's recipes load them",
       0, 0, 0),
    /* PyTorch's scaled_dot_product_attention and the flash-attn package up to 2.x are FlashAttention-2; Transformer Engine and XLA call cuDNN's
     * kernels, which use each generation's own instructions. */
    IN(framework, "automodel", attention, "flash", "Transformer Engine's attention in NeMo AutoModel", 0, 0, 0),
    IN(framework, "fsdp|fsdp2|internevo|composer|llm-foundry|torchtitan|sdpa", attention, "flash2",
       "FlashAttention-2: PyTorch's own attention", 0, 0, 0),
    /* Megatron-LM: flash attention 2023; --overlap-grad-reduce and overlap of interleaved send/recv 2023; FP32 accumulation of gradients, and with it
     * the fused weight-gradient kernel, is switched on by --bf16 alone. */
    IN(framework, old_megatron, attention, "unfused", NULL, 0, 0, 2022),
    IN(framework, old_megatron, grad_overlap, "false", NULL, 0, 0, 2022),
    IN(framework, old_megatron, param_overlap, "false", NULL, 0, 0, 2022),
    IN(framework, old_megatron, p2p_overlap, "false", NULL, 0, 0, 2022),
    IN(framework, old_megatron, main_grads, "fp16", NULL, WHEN_NOT_BF16, 0, 2022),
    IN(framework, old_megatron, reduce_dtype, "fp16", NULL, WHEN_NOT_BF16, 0, 2022),
    IN(framework, old_megatron, fusion, "false", NULL, WHEN_NOT_BF16, 0, 2022),
    /* NVIDIA's recipes (NeMo, Megatron-Bridge, MLPerf): gradients kept and reduced in BF16, TP overlap by userbuffers wherever TP > 1. */
    IN(framework, nemo, main_grads, "bf16", "gradients kept and reduced in BF16, as in NVIDIA's recipes", 0, 0, 0),
    IN(framework, nemo, reduce_dtype, "bf16", NULL, 0, 0, 0),
    IN(framework, nemo, tp_overlap, "true", "TP communication overlapped, as in NVIDIA's recipes", WHEN_TP, 0, 0),
    IN(framework, "mlperf*", precision, "fp8-delayed", "FP8, as in NVIDIA's MLPerf recipes: precision is not stated",
       WHEN_FP8, 0, 0),
    /* Megatron-Bridge's recipes for MoE exchange tokens by a fused kernel: DeepEP on Hopper, HybridEP on Blackwell. */
    IN(framework, "megatron-bridge", dispatcher, "hybridep",
       "HybridEP, as in most recipes: the dispatcher is not stated", WHEN_MOE | WHEN_NEAR | WHEN_BLACKWELL, 0, 0),
    IN(framework, "megatron-bridge", dispatcher, "deepep", "DeepEP, as in most recipes: the dispatcher is not stated",
       WHEN_MOE | WHEN_NEAR, 0, 0),
    /* Pax keeps nothing between forward and backward unless its configuration says so (AutodiffCheckpointType.SAVE_NOTHING). */
    IN(framework, "pax|paxml", recompute, "full",
       "everything is recomputed, Pax's default: recomputation is not stated", 0, 0, 0),
    /* XLA runs a compiled step from C++ and fuses pointwise chains. */
    IN(framework, jax, graphs, "true", "XLA hides the cost of kernel launches", 0, 0, 0),
    /* NeMo AutoModel's layers are Transformer Engine's or compiled ones. */
    IN(framework, "automodel", fused, "true", "pointwise operations fused, as in Transformer Engine's layers", 0, 0, 0),
    /* torch.nn.functional.cross_entropy on logits in 4 bytes; AutoModel's recipes leave them in 16 bits */
    IN(framework, "automodel", loss_function, "cross_entropy", STATED),
    IN(framework, "automodel", upcast, "false", "cross-entropy on 16-bit logits, as in AutoModel's recipes", 0, 0, 0),
    IN(framework, eager_fsdp, loss_function, "cross_entropy", STATED),
    /* PyTorch: weight gradients are computed, then added; without torch.compile each pointwise operation is a kernel. */
    IN(framework, eager_fsdp, fusion, "false", STATED),
    IN(framework, eager_fsdp, fused, "false", "pointwise operations run one by one: torch.compile is not mentioned", 0,
       0, 0),
};

static const struct rule default_rules[] = {
    /* The selective recomputation of 2022 exists because unfused attention keeps its scores. */
    IN(recompute, "$", recompute, "selective", "core attention is recomputed: recomputation is not stated",
       WHEN_UNFUSED, 0, 0),
    IN(recompute, "$", recompute, "none", "nothing is recomputed: recomputation is not stated", 0, 0, 0),
    IN(zero_or_fsdp, "", sharding, "optim", "optimizer state shared over DP: sharding is not stated", WHEN_DP, 0, 0),
    IN(precision, "$", precision, "auto", "16-bit arithmetic: precision is not stated", 0, 0, 0),
};

static bool holds(const struct maq_interpretation *in, uint16_t when)
{
    const char *backend = maq__setting(&in->plan, attention);
    const char *shared = maq__setting(&in->plan, sharding);
    bool unfused = backend && strcmp(backend, "unfused") == 0;
    bool bf16 = maq__phrase_in(maq_row_text(&in->row, MAQ_COLUMN_precision), "bf16", NULL);
    bool full = maq__phrase_in(maq_row_text(&in->row, MAQ_COLUMN_completeness), "full", NULL);
    unsigned now = (in->tp > 1 ? WHEN_TP : 0u) | (in->cp > 1 ? WHEN_CP : 0u) | (in->vp > 1 ? WHEN_VP : 0u) |
                   (in->dp * in->cp > 1 ? WHEN_DP : 0u) | (in->experts > 0 ? WHEN_MOE : 0u) |
                   (in->blackwell ? WHEN_BLACKWELL : 0u) | (in->fp8 ? WHEN_FP8 : 0u) | (bf16 ? 0u : WHEN_NOT_BF16) |
                   (shared && strcmp(shared, "no_shard") != 0 ? WHEN_ZERO : 0u) | (unfused ? WHEN_UNFUSED : 0u) |
                   (full ? 0u : WHEN_NEAR);
    return (now & when) == when;
}

static bool in_years(const struct maq_interpretation *in, const struct rule *r)
{
    return in->year == 0 ||
           ((r->from_year == 0 || in->year >= r->from_year) && (r->to_year == 0 || in->year <= r->to_year));
}

/* '#' becomes the captured number, "%a/b" that share of the layers of a virtual stage (at least one). */
static void set_value(struct maq_interpretation *in, const struct rule *r, const struct maq_phrase_match *m)
{
    struct maq_phrase_match share;
    if (r->value[0] == '#') {
        maq__set(in, &in->plan, r->key, "%g", m->n > 0 ? m->number[0] : 0);
    } else if (r->value[0] == '%' && maq__phrase_in(maq_str_of(r->value + 1), "#/#", &share)) {
        double layers = (double)in->layers / (double)(in->pp * in->vp) * share.number[0] / share.number[1];
        maq__set(in, &in->plan, r->key, "%d", layers < 1 ? 1 : layers > 60000 ? 60000 : (int)(layers + 0.5));
    } else {
        maq__set(in, &in->plan, r->key, "%s", r->value);
    }
}

static void run(struct maq_interpretation *in, const struct rule *rules, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct rule *r = &rules[i];
        struct maq_phrase_match m = {0};
        bool set = r->key && maq__setting(&in->plan, r->key);
        if (set || !holds(in, r->when) || !in_years(in, r))
            continue;
        struct maq_str text = maq_row_text(&in->row, r->column);
        if (strcmp(r->pattern, "$") == 0 ? text.len > 0
                                         : r->pattern[0] != '\0' && !maq__phrase_in(text, r->pattern, &m))
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

void maq__apply_framework_rules(struct maq_interpretation *in)
{
    run(in, framework_rules, MAQ_COUNT(framework_rules));
}

void maq__apply_default_rules(struct maq_interpretation *in)
{
    run(in, default_rules, MAQ_COUNT(default_rules));
}

/* Megatron-LM's default is 0.1 and its papers kept it; the benchmark recipes that came later switch it off. */
const char *maq__framework_dropout(const struct maq_interpretation *in)
{
    struct maq_str framework = maq_row_text(&in->row, MAQ_COLUMN_framework);
    bool classic = maq__phrase_in(framework, deepspeed, NULL) ||
                   (maq__phrase_in(framework, old_megatron, NULL) && in->year > 0 && in->year <= 2022);
    return classic ? "0.1" : "0.0";
}
