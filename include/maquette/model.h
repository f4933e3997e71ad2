/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h - a transformer, as what it computes.
 *
 * A model is an embedding, a sequence of layers, and an output block. Each layer is a short list of
 * *modules*: operations on a token, before anything is sharded. A module carries its feature widths, its
 * parameters, and the rule by which tensor, sequence and expert parallelism cut it (enum maq_shard); nothing
 * else in maquette knows what a GQA or an MLA layer looks like.
 *
 *     architecture (struct maq_architecture)  --maq_model_build()-->  modules  --graph floor-->  sharded operators
 *
 * Equal layers share one entry of `kinds`: a 126-layer Llama has one kind, a DeepSeek-V3 has two.
 *
 * Widths are features per token; parameters are counts (not bytes) over the whole, unsharded module.
 */
#ifndef MAQUETTE_MODEL_H
#define MAQUETTE_MODEL_H

#include "maquette/diag.h"

#ifdef __cplusplus
extern "C" {
#endif

enum maq_module_kind {
    MAQ_MODULE_EMBEDDING,  /* table lookup: in = rows of the table, out = hidden */
    MAQ_MODULE_NORM,       /* RMSNorm or LayerNorm over `in` features; out = in */
    MAQ_MODULE_LINEAR,     /* y[out] = W x[in] (+ bias) */
    MAQ_MODULE_ROPE,       /* rotary embedding of `in` features in place; out = in */
    MAQ_MODULE_ATTENTION,  /* softmax(Q K^T) V; geometry in u.attention; in = q+k+v features, out = heads x v_dim */
    MAQ_MODULE_ACTIVATION, /* pointwise nonlinearity; gated: in = 2 out */
    MAQ_MODULE_GATE,       /* pointwise product with a gate: in = 2 out; out + 1 where one number gates a token */
    MAQ_MODULE_RESIDUAL,   /* (dropout and) addition of the residual stream, or of shared experts; in = out = hidden */
    MAQ_MODULE_ROUTER,     /* MoE gate: logits over experts, top-k; in = hidden, out = experts */
    MAQ_MODULE_DISPATCH,   /* tokens to their experts (permute, all-to-all); in = out = expert hidden */
    MAQ_MODULE_EXPERT_LINEAR,     /* one linear per routed expert; in, out per expert */
    MAQ_MODULE_EXPERT_ACTIVATION, /* the nonlinearity between them */
    MAQ_MODULE_COMBINE,           /* expert outputs back to their tokens, weighted; in = out = expert hidden */
    MAQ_MODULE_CONV1D,            /* causal depthwise convolution over `in` channels */
    MAQ_MODULE_SSM_SCAN,          /* Mamba-2 state-space scan; geometry in u.ssm */
    MAQ_MODULE_DELTA_RULE,        /* gated delta-rule linear attention; geometry in u.ssm */
    MAQ_MODULE_SELECTIVE_SCAN,    /* Mamba-1 scan: a state for each channel; u.ssm has heads = channels of width 1 */
    MAQ_MODULE_INDEXER,           /* scores of all keys by which those of sparse attention are chosen; u.attention */
    MAQ_MODULE_LOSS,              /* cross-entropy over `in` = vocabulary logits */
    MAQ_MODULE_KIND_COUNT
};

/* How tensor (t), sequence, vocabulary and expert parallelism cut a module. */
enum maq_shard {
    MAQ_SHARD_SEQUENCE, /* not cut by t; with sequence parallelism its tokens are (norms, residual, router, MLA down) */
    MAQ_SHARD_COLUMN,   /* output features / t, all tokens of the TP group */
    MAQ_SHARD_ROW,      /* input features / t, all tokens */
    MAQ_SHARD_HEADS,    /* features / t, all tokens: what lies between a COLUMN and a ROW */
    MAQ_SHARD_VOCAB,    /* table rows or logits / t, all tokens */
    MAQ_SHARD_EXPERT,   /* experts / EP, features / expert-TP */
};

/* The part of a layer that a module belongs to: what `recompute_modules` names, and what reports group by. */
enum maq_part {
    MAQ_PART_EMBEDDING,
    MAQ_PART_NORM,           /* `layernorm`: the norms in front of attention and MLP */
    MAQ_PART_ATTENTION,      /* projections */
    MAQ_PART_MLA_UP,         /* `mla_up_proj`: up-projections of MLA and their rotary embedding */
    MAQ_PART_CORE_ATTENTION, /* `core_attn` */
    MAQ_PART_SSM,            /* Mamba-2 or linear-attention mixer */
    MAQ_PART_MLP,            /* `mlp`: a dense MLP */
    MAQ_PART_ROUTER,
    MAQ_PART_MOE,            /* `moe`: routed experts and their exchange */
    MAQ_PART_MOE_ACT,        /* `moe_act`: the activation inside the experts */
    MAQ_PART_SHARED_EXPERTS, /* `shared_experts` */
    MAQ_PART_RESIDUAL,
    MAQ_PART_OUTPUT, /* final norm, head, loss */
    MAQ_PART_COUNT
};

enum maq_module_flag {
    MAQ_MODULE_BIAS = 1u << 0,
    MAQ_MODULE_GATHER_IN = 1u << 1,     /* first consumer of a tensor that enters the TP region */
    MAQ_MODULE_REDUCE_OUT = 1u << 2,    /* its output leaves the TP region (partial sums are reduced here) */
    MAQ_MODULE_SHARED_INPUT = 1u << 3,  /* reads the same tensor as an earlier module: it is kept once */
    MAQ_MODULE_GATED = 1u << 4,         /* activation of two halves (SwiGLU, GeGLU) */
    MAQ_MODULE_LAYERNORM = 1u << 5,     /* mean and bias, not RMS */
    MAQ_MODULE_DROPOUT = 1u << 6,       /* keeps a one-byte mask per element */
    MAQ_MODULE_FP32 = 1u << 7,          /* computed in 32 bits whatever the recipe (router) */
    MAQ_MODULE_UNQUANTIZED = 1u << 8,   /* a linear that FP8/FP4 recipes leave in 16 bits (router, head) */
    MAQ_MODULE_NO_GRAD_INPUT = 1u << 9, /* nothing flows back through its input (embedding) */
    MAQ_MODULE_TIED = 1u << 10,         /* uses a weight that another module owns: params = 0, weight = in x out */
    MAQ_MODULE_DYNAMIC_KEEPS_INPUT = 1u << 11, /* backward needs its input even if others do not (squared ReLU etc.) */
    MAQ_MODULE_CLAMPED = 1u << 12,             /* activation: both halves of its input are clamped first (gpt-oss) */
    MAQ_MODULE_OVER_HEADS = 1u << 13,          /* norm: over all heads at once, which tensor parallelism cuts */
};

struct maq_attention_geometry {
    int32_t heads, kv_heads; /* query heads; key/value heads (= heads for MHA and expanded MLA) */
    int32_t qk_dim, v_dim;   /* per head */
    int64_t window;          /* sliding window in tokens; 0 = none */
    int64_t chunk;           /* attention inside chunks of this many tokens (Llama 4); 0 = none */
    int64_t selected;        /* keys at most that a query attends to, chosen by an indexer; 0 = all that it sees */
    /* Beside the window, one key that is made of each `stride` tokens; `selected` is of these then. 0 = none. */
    int64_t stride;
    bool causal, sinks, dropout;
    bool shares_kv; /* keys and values are those of an earlier layer */
    bool
        position_bias; /* a learned number for each pair of positions is added to the scores, which are scaled by a kernel of
                           their own (vision transformers) */
};

struct maq_ssm_geometry {
    int32_t heads, head_dim; /* value heads and their width */
    int32_t groups;          /* groups that share B and C (Mamba-2), or key heads (delta rule) */
    int32_t state;           /* state size per group, or key head width */
    int32_t chunk;           /* chunk length of the blocked scan */
};

struct maq_moe_geometry {
    int32_t experts, topk;
    int32_t groups, group_topk; /* the experts lie in so many groups, and a token's in that many of them; 0 = in any */
};

struct maq_module {
    enum maq_module_kind kind;
    enum maq_shard shard;
    enum maq_part part;
    uint32_t flags;   /* enum maq_module_flag */
    const char *name; /* Megatron-LM's name where it has one: "linear_qkv"; static storage */
    int64_t in, out;  /* features per token, unsharded; per expert for EXPERT_* */
    int64_t params;   /* own parameters, all experts, bias included */
    union {
        struct maq_attention_geometry attention;
        struct maq_ssm_geometry ssm;
        struct maq_moe_geometry moe; /* ROUTER, DISPATCH, COMBINE, EXPERT_* */
        int32_t kernel;              /* CONV1D: taps */
    } u;
};

/* A layer or another block (embedding, output, MTP depth). */
struct maq_layer {
    const struct maq_module *modules;
    uint32_t n_modules;
    int64_t params;        /* of all modules */
    int64_t active_params; /* those one token uses: routed experts count topk / experts */
    bool moe;              /* has routed experts */
    /* "mha", "gqa", "mqa", "mla", "mamba2", "delta", "conv", "attn+mamba2", "none": for reports; static */
    const char *mixer;
    int64_t hidden; /* width of the residual stream behind it */
    /* It has `tokens` tokens where the sequence that a job states has `of_tokens`; both 1 but in pyramids. */
    int64_t tokens, of_tokens;
    bool wide; /* 8- and 4-bit recipes leave all of its products in 16 bits */
};

struct maq_vision;

/*
 * How a checkpoint keeps the weights of its products, by quantization_config of its config.json. Training takes no notice of it; an engine that
 * serves the checkpoint does (serve.h).
 */
struct maq_quantization {
    const char *method; /* quant_method, "fp8"; NULL: weights are as they were trained */
    int32_t bits;       /* of a weight; 0: by a format that is not known */
    int32_t group;      /* weights along the input that share a scale; 0: all of a row, or of the tensor */
    bool floating;      /* with an exponent; else whole numbers */
    bool blocks;        /* squares of weights share a scale, too: 128 by 128 */
    bool experts_alone; /* of routed experts; all other products are in 16 bits */
};

struct maq_model {
    const char *name;
    const char *source; /* where the figures come from; may be "" */
    /* Which of them nobody has read there: "published_params, vocab_size", or "config" for all of its shape; NULL = none. */
    const char *unverified;
    const char *type; /* model_type of the config.json that it was read from, or several, "gpt_oss"; NULL = of none */
    int64_t hidden, vocab;
    int64_t max_seq; /* positions the model was made for; 0 = unknown */
    bool tied_embeddings;
    uint32_t num_layers;
    uint32_t n_kinds;
    const struct maq_layer *kinds; /* distinct layers */
    const uint16_t *kind_of;       /* [num_layers] -> kinds */
    struct maq_layer embedding;    /* token and learned position tables */
    struct maq_layer output;       /* final norm, head (unless tied), loss */
    /* The output of a pipeline stage that has not the embedding and needs its table: as head, where they are tied, or for multi-token
     * prediction. The second table is not among the parameters of the model. Without modules where no stage needs one. */
    struct maq_layer output_apart;
    uint32_t mtp_layers; /* multi-token-prediction depths, trained beside the main model */
    /* One depth: norms, joint projection, a transformer layer, its norm. It runs the embedding, the output layer and the
     * loss of the main model once more: those are not among its modules. The joint projection (eh_proj) is
     * COLUMN with
     * REDUCE_OUT: its output is gathered, not reduced; the bytes are the same. */
    struct maq_layer mtp;
    int64_t params;        /* everything above, MTP not counted */
    int64_t active_params; /* per token, MTP not counted, embedding counted */
    bool pyramid;          /* its layers differ in width or number of tokens */
    /* The tower that its images pass, where its config.json has one that is known (vision.h); counted nowhere above. NULL = none. */
    const struct maq_vision *vision;
    struct maq_quantization quantization;
};

/* Tokens of a layer where the job's sequences have `seq`. */
MAQ_API int64_t maq_layer_tokens(const struct maq_layer *layer, int64_t seq);

/* Features that pass from layer `before` to the next one, for each sequence of `seq` tokens. */
MAQ_API double maq_model_border(const struct maq_model *model, uint32_t before, int64_t seq);

/*
 * Model FLOP for one token of a sequence of `seq` tokens (of the sequence: what a pyramid's layers do counts whole),
 * forward and backward, recompute not counted, Megatron's way: 2 FLOP per multiply-add, backward twice forward, and
 * only matrix products (linears, attention scores and values, scans; not the router). `causal` counts only the lower
 * triangle (s+1)/2 of the scores where attention is causal; otherwise all s x s (windows and chunks count as they are
 * in both). MTP depths are included, each with the head.
 */
MAQ_API double maq_model_flop_per_token(const struct maq_model *model, int64_t seq, bool causal);
/* The same of one of its layers, or of its embedding or output, forward only. */
MAQ_API double maq_layer_flop_per_token(const struct maq_layer *layer, int64_t seq, bool causal);

/*
 * Mean number of keys a query attends to in a sequence of `seq` tokens under geometry g. A causal window of w
 * keys: the first w queries see 1, 2, ... w, all others w. full = ignore causality: min(w, seq) for every
 * query. A chunk counts as a sequence of its own; k chosen keys as a window of k.
 */
MAQ_API double maq_attention_mean_keys(const struct maq_attention_geometry *g, int64_t seq, bool full);

/* The first module of a kind in a layer that repeats, of any part with MAQ_PART_COUNT; NULL when the model has none. */
MAQ_API const struct maq_module *maq_model_find_module(const struct maq_model *model, enum maq_module_kind kind,
                                                       enum maq_part part);

#ifdef __cplusplus
}
#endif
#endif
