/* SPDX-License-Identifier: Apache-2.0 */
/*
 * architecture.h - an architecture as dimensions and per-layer patterns, before it is expanded into modules.
 *
 * Readers (Hugging Face, Megatron-LM) fill a struct maq_architecture; maq_model_build() turns it into a struct maq_model.
 * Nothing here knows a file format, and nothing in the readers knows a module. All widths are unsharded features; 0
 * means "has none" unless said otherwise.
 */
#ifndef MAQ_MODEL_ARCHITECTURE_H
#define MAQ_MODEL_ARCHITECTURE_H

#include "base/arena.h"
#include "maquette/model.h"

enum maq_norm {
    MAQ_NORM_RMS,           /* one weight per feature */
    MAQ_NORM_LAYER,         /* weight and bias */
    MAQ_NORM_LAYER_NO_BIAS, /* mean is subtracted, but no bias is learned (MPT, Cohere) */
    MAQ_NORM_PLAIN,         /* root mean square without weights (PixelNorm of image generators) */
};

enum maq_norm_place {
    MAQ_NORM_PRE,           /* x + f(norm(x)) */
    MAQ_NORM_SANDWICH,      /* x + norm(f(norm(x))): Gemma 2/3, Grok-1, GLM-4-0414 */
    MAQ_NORM_POST_BRANCH,   /* x + norm(f(x)): OLMo 2 */
    MAQ_NORM_POST_RESIDUAL, /* norm(x + f(x)): the original transformer, OPT-350m, GLM-130B */
};

enum maq_residual {
    MAQ_RESIDUAL_SEQUENTIAL,
    MAQ_RESIDUAL_PARALLEL,           /* x + attn(n(x)) + mlp(n(x)), one norm: GPT-J, Falcon-7B, Phi-2 */
    MAQ_RESIDUAL_PARALLEL_TWO_NORMS, /* x + attn(n1(x)) + mlp(n2(x)): GPT-NeoX, Falcon-40B */
};

enum maq_qk_norm {
    MAQ_QK_NORM_NONE,
    MAQ_QK_NORM_HEAD,  /* inside each head, one weight per head feature, shared by the heads */
    MAQ_QK_NORM_WIDE,  /* over all heads at once */
    MAQ_QK_NORM_PLAIN, /* inside each head, without weights (Llama 4 Scout) */
    MAQ_QK_NORM_EACH,  /* a LayerNorm without bias inside each head, with weights of its own (StableLM 2 12B) */
};

enum maq_mixer {
    MAQ_MIXER_NONE,
    MAQ_MIXER_ATTENTION,
    MAQ_MIXER_MLA,
    MAQ_MIXER_MAMBA2,
    MAQ_MIXER_DELTA,
    MAQ_MIXER_CONV,     /* a gated short convolution: LFM2 */
    MAQ_MIXER_PARALLEL, /* attention and Mamba-2 behind one norm, added: Falcon-H1 */
    MAQ_MIXER_MAMBA1,
    MAQ_MIXER_KDA,       /* delta rule that decays every channel by itself: Kimi Linear */
    MAQ_MIXER_LIGHTNING, /* linear attention with a decay that each head has fixed: MiniMax-01 */
};
enum maq_ffn { MAQ_FFN_NONE, MAQ_FFN_DENSE, MAQ_FFN_MOE };

/* A gate on what attention returns. */
enum maq_gate {
    MAQ_GATE_NONE,
    MAQ_GATE_WITH_QUERIES, /* as wide as the output, from the projection of queries (Qwen3-Next) */
    MAQ_GATE_FULL,         /* the same from a projection of its own */
    MAQ_GATE_HEAD,         /* one number for each head, from a projection of its own */
};

/* How sparse attention chooses its keys; heads 0: it does not choose. */
struct maq_arch_index {
    int64_t heads, dim, selected;
    int64_t
        stride; /* one key for so many tokens, pooled by a second projection and learned positions; 0 = one for each */
    int64_t key_width;  /* numbers that a pooled key is made of; 0 = dim */
    int64_t query_rank; /* width that its queries are projected from; 0 = hidden */
    bool weighs;        /* each head's scores have a weight that is projected from hidden */
    enum maq_norm norm; /* of its keys */
    bool norms_queries;
};

struct maq_arch_attention {
    int64_t heads, kv_heads, head_dim, v_dim;
    int64_t rope_dim; /* rotated features of each head */
    int64_t q_rank;   /* queries come from a projection of this width, with a norm (Step-3); 0 = straight from hidden */
    enum maq_qk_norm qk_norm;
    bool qkv_bias, out_bias;
    bool sinks; /* one learned logit per head */
    enum maq_gate gate;
    struct maq_arch_index index;
    int64_t selected; /* keys at most, chosen by this layer's index or an earlier one's; 0 = all */
    bool shares_kv;   /* keys and values of an earlier layer: only queries are projected */
    bool keys_are_values;
    int64_t stride;     /* beside the window, one key for so many tokens; 0 = none */
    int64_t pool_width; /* numbers that such a key is made of, by two projections and learned positions */
    /* The output is projected to out_groups x out_rank first, each from its share of the heads; 0: at once. */
    int64_t out_groups, out_rank;
    int64_t input;       /* features that are projected; 0 = hidden (Zamba: the embedding besides) */
    int64_t core_params; /* learned numbers of the core beside sinks */
    bool dropout;        /* on the attention probabilities */
    bool bidirectional;
    bool position_bias; /* relative positions within a square window of tokens, added to the scores */
};

struct maq_arch_mla {
    int64_t heads, q_lora, kv_lora, nope_dim, rope_dim, v_dim; /* q_lora 0: queries are projected directly */
    bool bias, dropout, sinks;
    bool norms_rotated_key;
    bool queries_twice; /* projected up from the rank's numbers before and behind their norm */
    enum maq_gate gate;
    struct maq_arch_index index;
    int64_t selected;
};

struct maq_arch_mlp {
    bool gated, bias, squared_relu;
    int64_t act_params; /* learned numbers of its nonlinearity: two of xIELU (Apertus) */
};

struct maq_arch_moe {
    int64_t experts, topk, ffn;
    int64_t groups, group_topk; /* see struct maq_moe_geometry */
    int64_t shared_ffn;         /* width of all shared experts together */
    int64_t latent;             /* routed experts work at this width, between two shared projections; 0 = hidden */
    bool gated, squared_relu;
    bool bias;        /* in the experts */
    bool shared_bias; /* in the shared ones alone */
    bool clamped;     /* the input of their activation is */
    bool router_bias; /* one per expert: a learned one, or the load-balancing correction of DeepSeek-V3 */
    bool shared_gate; /* a scalar gate on the shared experts (Qwen2-MoE) */
};

struct maq_arch_mamba1 {
    int64_t inner, state, dt_rank, conv_kernel;
    int64_t heads; /* that have projections of their own (Zamba); else 1 */
    bool conv_bias, proj_bias;
    bool norms; /* on what the state's input, output and step are projected to (Jamba) */
};

struct maq_arch_ssm { /* Mamba-2, gated delta rule, or linear attention; see struct maq_ssm_geometry */
    int64_t heads, head_dim, groups, state;
    int64_t conv_kernel, chunk;
    bool conv_bias, proj_bias;
    bool out_bias;     /* in the output projection besides; */
    bool apart;        /* and there only that one decides (Falcon-H1) */
    bool no_norm;      /* Mamba-2: only the gate in front of the output projection */
    int64_t gate_rank; /* KDA: decays and output gate are projected through this width; 0 = at once */
};

struct maq_arch_conv { /* gated short convolution, as wide as the residual stream */
    int64_t kernel;
    bool bias; /* in the projections and in the convolution */
};

/* The layers of one width of a pyramid. */
struct maq_arch_level {
    int64_t hidden, heads, ffn;
    int64_t tokens; /* of a sequence of arch->tokens */
};

/*
 * Modules that a family has beside those of its mixers and feed-forward parts: a norm, a linear, learned numbers. Each stands at one
 * place in all layers, or in those that carry its mark.
 */
enum maq_layer_place {
    MAQ_PLACE_EMBEDDING, /* behind the token table */
    MAQ_PLACE_MIXER_IN,  /* in front of a mixer, behind its norm */
    MAQ_PLACE_QUERIES,   /* behind the projections of queries, keys and values */
    MAQ_PLACE_CORE,      /* between core attention and its output projection */
    MAQ_PLACE_MIXER_OUT, /* behind a mixer, in front of the addition */
    MAQ_PLACE_FFN_MID,   /* between activation and second product of an MLP */
    MAQ_PLACE_FFN_OUT,   /* behind a feed-forward part, in front of the addition */
    MAQ_PLACE_LAYER_OUT, /* behind a layer */
    MAQ_PLACE_FINAL,     /* in front of the final norm */
    MAQ_PLACE_HEAD,      /* in front of the head */
};

struct maq_arch_extra {
    const char *name; /* static */
    enum maq_layer_place place;
    enum maq_module_kind kind;
    enum maq_shard shard;
    uint32_t flags;
    int64_t in, out;
    int64_t params; /* of all kinds but linears */
    uint32_t mark;  /* in layers that have it among their marks; 0 = in all */
};

enum { MAQ_ARCH_EXTRAS = 24 };

/* What may differ between layers. Equal ones share a kind. Pointers are equal where what they point to is. */
struct maq_arch_layer {
    const struct maq_arch_attention *attention; /* NULL: the model's; so are the next ones */
    const struct maq_arch_mla *mla;
    const struct maq_arch_moe *moe;
    uint32_t marks;                     /* see struct maq_arch_extra */
    bool bare;                          /* no norm in front of its mixer */
    bool reuses;                        /* its weights are those of an earlier layer, which it has run before */
    const struct maq_arch_level *level; /* NULL: width, heads and tokens of the model */
    int32_t enters; /* levels that begin in front of it, the last one its own: they may have no layers */
    enum maq_mixer mixer;
    enum maq_ffn ffn;
    int64_t ffn_width;     /* of a DENSE ffn */
    int64_t window, chunk; /* ATTENTION, PARALLEL */
    bool rope;             /* the same: rotates queries and keys */
};

struct maq_architecture {
    const char *name, *source;
    const char *unverified; /* as a model's */
    const char *type;       /* the same */
    struct maq_span at;     /* where it was written, for findings about the whole */
    int64_t hidden, vocab, max_seq;
    int64_t embedding_dim; /* width of the token table when not hidden (OPT-350m); 0 = hidden */
    int64_t position_rows; /* rows of a learned position table */
    int64_t tokens;        /* of a sequence, for models whose layers differ in it; 0 = a job's own number everywhere */
    /* Of models without a vocabulary: features of the one vector per sequence that is projected to its tokens, and of a token that
     * leaves the last layer. */
    int64_t input_features, output_features;
    /* Of vision towers: numbers of a patch, which a linear projects. They have neither vocabulary nor head; what is behind the layers
     * are extras. */
    int64_t patch_features;
    bool patch_bias;
    bool embedding_norm; /* a norm right after the embedding (BLOOM) */
    bool tied, head_bias;
    bool final_norm;
    bool hidden_dropout; /* on embeddings and before each residual addition */
    enum maq_norm norm;
    enum maq_norm_place norm_place;
    enum maq_residual residual;
    struct maq_arch_attention attention;
    struct maq_arch_mla mla;
    struct maq_arch_mlp mlp;
    struct maq_arch_moe moe;
    struct maq_arch_ssm mamba, delta, lightning;
    struct maq_arch_mamba1 mamba1;
    struct maq_arch_conv conv;
    struct maq_arch_extra extras[MAQ_ARCH_EXTRAS];
    uint32_t n_extras;
    int64_t mtp_layers;
    struct maq_arch_layer mtp_layer;
    int64_t num_layers;
    struct maq_arch_layer *layers; /* [num_layers] */
};

enum { MAQ_ARCH_LAYERS_MAX = 16384 };

/*
 * Expands arch. *out and all it points to live in `arena`; arch->name and arch->source are borrowed and must live as
 * long. The readers have checked that dimensions are positive and fit together; what is found here is a model of more
 * than 2^63 parameters (MAQ_BAD_INPUT) or lack of memory.
 */
enum maq_status maq_model_build(struct maq_model *out, const struct maq_architecture *arch, struct maq_arena *arena,
                                struct maq_diag *diag);

#endif
