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
 * A value may hold '#', the number captured by the pattern, or be "%a/b": that share of the layers of a virtual stage, "%#/#" with the
 * two numbers captured. A rule with an
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
            WHEN_UNFUSED = 16, /* attention has been decided to be unfused */
            WHEN_DP = 32,
            WHEN_MOE = 64,
            WHEN_FULL = 128, /* the row is complete: what it does not mention is off */
            WHEN_PAX = 256,  /* NVIDIA's GPT configurations of Pax (google/paxml, contrib/gpu/scripts_gpu/configs.py) */
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
                  fused[] = "fused_kernels", main_grads[] = "main_grads_dtype", reduce_dtype[] = "grad_reduce_dtype",
                  attention[] = "attention_backend", blocking[] = "launches_block",
                  rereads[] = "softmax_rereads_scores", /* of the framework, not of the plan */
    vocab_pipe[] = "vocab_parallel_pipeline", interlaced[] = "use_interlaced_schedule",
                  split_output[] = "disable_backward_fusion", selective_ac[] = "selective_ac_option";

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
    IN(precision, "fp8&*tensorwise", precision, "fp8-current", STATED),
    IN(precision, "fp8&*rowwise", precision, "fp8-rowwise", STATED),
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
    IN(zero_or_fsdp,
       "*fsdp*|zero-3|hsdp|zero3|zero 3|stage 3|stage-3|full_shard|fully sharded|hybrid shard*|hybrid_shard|mics",
       sharding, "optim_grads_params", STATED),
    IN(zero_or_fsdp, "distributed optimizer*|zero-1|zero1|zero 1|stage 1|stage-1", sharding, "optim", STATED),
    IN(zero_or_fsdp, "zero-2|zero2|zero 2|stage 2|stage-2", sharding, "optim_grads", STATED),
    IN(zero_or_fsdp, "ddp|data parallel", sharding, "no_shard", STATED),

    /* recomputation */
    IN(recompute, "^none|^no|^off|^false|^disabled", recompute, "none", STATED),
    IN(recompute, "block/full recompute of # layer*", recompute, "full", STATED),
    IN(recompute, "block/full recompute of # layer*", method, "block", STATED),
    IN(recompute, "block/full recompute of # layer*", re_layers, "#", STATED),
    IN(recompute, "# of # layer*|# of the # layer*|#/# layer*", recompute, "full", STATED),
    IN(recompute, "# of # layer*|# of the # layer*|#/# layer*", method, "block", STATED),
    IN(recompute, "# of # layer*|# of the # layer*|#/# layer*", re_layers, "%#/#", STATED),
    IN(recompute, "block # layer*|block of # layer*|# layer* per stage|# layer* of each stage", recompute, "full",
       STATED),
    IN(recompute, "block # layer*|block of # layer*|# layer* per stage|# layer* of each stage", method, "block",
       STATED),
    IN(recompute, "block # layer*|block of # layer*|# layer* per stage|# layer* of each stage", re_layers, "#", STATED),
    IN(recompute, "every other layer|every second layer|every 2nd layer", recompute, "full", STATED),
    IN(recompute, "every other layer|every second layer|every 2nd layer", method, "block", STATED),
    IN(recompute, "every other layer|every second layer|every 2nd layer", re_layers, "%1/2", STATED),
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
    /* MaxText's remat policies name what is kept (layers/models.py): save_qkv_proj the projections in front of attention, save_dot_except_mlp*
     * those and the one behind it; the first MLP product and attention itself are recomputed by both */
    IN(recompute, "remat save_qkv_proj|remat save_dot_except_mlp*", recompute, "selective", STATED),
    IN(recompute, "remat save_qkv_proj|remat save_dot_except_mlp*", re_modules, "[layernorm, core_attn, mlp]",
       "the remat policy as recomputing norms, attention and MLP", 0, 0, 0),
    IN(recompute, "remat minimal*", recompute, "selective", STATED),
    IN(recompute, "remat minimal*", re_modules, "[layernorm]", "remat minimal as recomputing norms", 0, 0, 0),
    /* Pax: Transformer Engine has a kernel for the softmax, XLA has not */
    IN(precision, "te", rereads, "false", NULL, WHEN_PAX, 0, 0),
    IN(recompute, "full|activation checkpointing|activation_checkpointing true", recompute, "full", STATED),
    IN(recompute, "gradient checkpointing|activation recomput*|uniform|all layers|^yes|^true|^on", recompute, "full",
       STATED),

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
    IN(overlap_notes, "cross-entropy fusion", "cross_entropy_loss_fusion", "true", STATED),
    IN(overlap_notes, "no torch.compile", fused, "false", STATED),
    IN(overlap_notes, "torch.compile", fused, "true", STATED),
    IN(notes, "cuda_launch_blocking", blocking, "true",
       "the host waits for every kernel: CUDA_LAUNCH_BLOCKING may have been set", 0, 0, 0),

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
};

/*
 * Which profile (data/frameworks) a row's framework and year mean; the first that matches. What the profile sets is
 * not listed with the row: the profile is.
 */
static const struct profile_rule {
    const char *pattern, *profile;
    uint16_t from_year, to_year; /* 0 = any; a row without a year matches */
} profile_rules[] = {
    {"megatron-deepspeed", "megatron-deepspeed", 0, 0},
    {"megatron-bridge&26.06|megatron-bridge&26.08", "megatron-bridge-26.06", 0, 0},
    {"megatron-bridge", "megatron-bridge", 0, 0},
    {"mlperf*", "mlperf-nvidia", 2025, 0},
    {"mlperf*", "mlperf-nvidia-2024", 0, 0},
    {"automodel", "nemo-automodel", 0, 0},
    {"nemo|nemo2*", "nemo", 0, 0},
    {"maxtext", "maxtext", 0, 0},
    {"pax&older release", "paxml-2023", 0, 0},
    {"pax|paxml", "paxml", 0, 0},
    {"jax", "jax", 0, 0},
    {"internevo", "internevo", 0, 0},
    {"composer|llm-foundry", "llm-foundry", 0, 0},
    {"torchtitan", "torchtitan", 0, 0},
    {"lit-gpt|lightning", "lit-gpt", 0, 0},
    {"megatron-lm fork&method", "megatron-vocab-parallel", 0, 0},
    {"megatron-lm|megatron lm|megatron-core", "megatron-lm", 2023, 0},
    {"megatron-lm|megatron lm|megatron-core", "megatron-lm-2022", 0, 0},
    {"fsdp*", "pytorch-fsdp", 0, 0},
};

static const struct rule default_rules[] = {
    /* The selective recomputation of 2022 exists because unfused attention keeps its scores. */
    IN(recompute, "$", recompute, "selective", "core attention is recomputed: recomputation is not stated",
       WHEN_UNFUSED, 0, 0),
    IN(recompute, "$", recompute, "none", "nothing is recomputed: recomputation is not stated", 0, 0, 0),
    IN(zero_or_fsdp, "", sharding, "optim", "optimizer state shared over DP: sharding is not stated", WHEN_DP, 0, 0),
    IN(precision, "$", precision, "auto", "16-bit arithmetic: precision is not stated", 0, 0, 0),
};

/* Whether the profile of the row's framework settles a key. */
static bool profile_sets(const struct maq_interpretation *in, const char *key)
{
    const struct maq_field *field = maq_fields_find(maq_plan_fields, maq_str_of(key));
    return field && in->profile_plan && in->profile_plan->set[field - maq_plan_fields];
}

static bool holds(const struct maq_interpretation *in, uint16_t when)
{
    const char *backend = maq__setting(&in->plan, attention);
    bool unfused =
        backend ? strcmp(backend, "unfused") == 0
                : profile_sets(in, attention) && in->profile_plan->doc.plan.attention_backend == MAQ_ATTENTION_UNFUSED;
    bool full = maq__phrase_in(maq_row_text(&in->row, MAQ_COLUMN_completeness), "full", NULL);
    bool pax = maq__phrase_in(maq_row_text(&in->row, MAQ_COLUMN_framework), "pax|paxml", NULL);
    unsigned now = (pax ? WHEN_PAX : 0u) | (in->tp > 1 ? WHEN_TP : 0u) | (in->cp > 1 ? WHEN_CP : 0u) |
                   (in->vp > 1 ? WHEN_VP : 0u) | (in->dp * in->cp > 1 ? WHEN_DP : 0u) |
                   (in->experts > 0 ? WHEN_MOE : 0u) | (in->arch == MAQ_ARCH_BLACKWELL ? WHEN_BLACKWELL : 0u) |
                   (unfused ? WHEN_UNFUSED : 0u) | (full ? WHEN_FULL : 0u);
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

/* '#' becomes the captured number, "%a/b" that share of the layers of a virtual stage (at least one). */
static void set_value(struct maq_interpretation *in, const struct rule *r, const struct maq_phrase_match *m)
{
    struct maq_phrase_match share;
    if (r->value[0] == '#') {
        maq__set(in, &in->plan, r->key, "%g", m->n > 0 ? m->number[0] : 0);
    } else if (r->value[0] == '%') {
        if (strcmp(r->value, "%#/#") == 0)
            share = *m;
        else
            maq__phrase_in(maq_str_of(r->value + 1), "#/#", &share);
        double layers = (double)in->layers / (double)(in->pp * in->vp);
        layers *= share.n == 2 && share.number[1] > 0 ? share.number[0] / share.number[1] : 1;
        maq__set(in, &in->plan, r->key, "%d", layers < 1 ? 1 : layers > 60000 ? 60000 : (int)(layers + 0.5));
    } else {
        maq__set(in, section_of(in, r->key), r->key, "%s", r->value);
    }
}

static void run(struct maq_interpretation *in, const struct rule *rules, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct rule *r = &rules[i];
        struct maq_phrase_match m = {0};
        bool set = r->key && (maq__setting(&in->plan, r->key) || profile_sets(in, r->key));
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

/* Loads the row's profile for what the row says of model, device and precision. */
void maq__choose_profile(struct maq_interpretation *in)
{
    const char *precision_stated = maq__setting(&in->plan, precision);
    const struct maq_framework_facts facts = {
        .arch = in->arch,
        .moe = in->experts > 0,
        .tensor_parallel = in->tp > 1,
        .precision = maq_str_of(precision_stated ? precision_stated : ""),
    };
    in->profile = profile_of(in);
    in->profile_plan = NULL;
    if (!in->profile) {
        bool stated = maq_row_text(&in->row, MAQ_COLUMN_framework).len > 0;
        maq__assume(in, "host costs and settings of Megatron-LM: %s",
                    stated ? "there is no profile of its framework" : "framework is not stated");
        return;
    }
    struct maq_node name = {.kind = MAQ_NODE_SCALAR, .text = maq_str_of(in->profile)};
    struct maq_framework_plan *plan = MAQ_ARENA_NEW(in->arena, struct maq_framework_plan, 1);
    if (!plan || maq_framework_load(&in->framework, plan, &name, &facts, in->arena, NULL) != MAQ_OK) {
        in->failed = true;
        return;
    }
    in->profile_plan = plan;
    maq__assume(in, "what the row leaves open is as in the profile %s", in->profile);
}

void maq__apply_default_rules(struct maq_interpretation *in)
{
    run(in, default_rules, MAQ_COUNT(default_rules));
}
