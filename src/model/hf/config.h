/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - a Hugging Face config.json as numbers, before it becomes an architecture.
 *
 * Each family presets what its class in `transformers` assumes, its field tables overwrite that from the document,
 * and one common path (config.c) turns the result into a struct maq_architecture; only families with oddities have a function of
 * their own.
 */
#ifndef MAQ_MODEL_HF_CONFIG_H
#define MAQ_MODEL_HF_CONFIG_H

#include "model/reader.h"

/* Which layers see a window. */
enum maq_hf_window {
    MAQ_HF_WINDOW_NONE,
    MAQ_HF_WINDOW_ALL,     /* Mistral */
    MAQ_HF_WINDOW_EVEN,    /* layers 0, 2, ...: Gemma 2, GPT-OSS */
    MAQ_HF_WINDOW_UPPER,   /* from max_window_layers on, if use_sliding_window: Qwen 2 */
    MAQ_HF_WINDOW_PATTERN, /* all but every n-th: Gemma 3 */
    MAQ_HF_WINDOW_CHUNKED, /* all but every n-th attend in chunks and rotate; the n-th see all and do not: Llama 4 */
};

/* hidden_act: all words but relu2 cost the same. The place of relu2 in the table of words (keys.c). */
enum maq_hf_act { MAQ_HF_ACT_OTHER, MAQ_HF_ACT_RELU2 };

struct maq_hf {
    /* size */
    int64_t hidden, layers, heads, vocab, max_pos, ffn;
    int act;
    bool tie;
    /* attention */
    int64_t kv_heads, head_dim, rotary_dim;
    double rotary_factor;
    bool attention_bias, qkv_bias, out_bias, mlp_bias, bias;
    double attention_dropout, hidden_dropout, ignored_dropout;
    int64_t window, window_pattern, max_window_layers, chunk;
    bool use_window, use_qk_norm;
    struct maq_node *layer_types, *no_rope_layers;
    int64_t no_rope_interval;                     /* every n-th layer does not rotate; 0: all do */
    struct maq_str window_letters, position_type; /* EXAONE 4, Granite 4 */
    /* latent attention */
    int64_t q_lora, kv_lora, nope_dim, rope_dim, v_dim;
    /* mixture of experts */
    int64_t experts, topk, groups_of_experts, group_topk, moe_ffn, shared_count, shared_ffn, latent, mtp_layers;
    int64_t first_dense, layer_freq, sparse_step, dense_ffn;
    int64_t moe_end, dense_tail; /* ERNIE: last layer with experts as written; layers behind it */
    struct maq_node *mlp_only_layers, *moe_layers;
    struct maq_str topk_method;
    /* Mamba-2 and delta rule */
    struct maq_str pattern, mtp_pattern;
    struct maq_arch_ssm mamba, delta;
    struct maq_arch_conv conv;
    struct maq_node *attention_layers, *mlp_types; /* indices of layers with attention; "dense" or "sparse" for each */
    double scan_expand;              /* width of the scan over hidden, where its heads' is not given; 0 = 2 */
    int64_t mamba_inner, act_params; /* Falcon-H1: heads x width of a head; Apertus */
    bool mamba_norm;                 /* Falcon-H1, Mamba-2 */
    bool ffn_adjusted;               /* LFM2: the width of the MLP is 2/3 of what is written */
    int64_t ffn_multiple;            /* LFM2 */
    bool use_bias;
    int64_t full_interval;
    /* sparse attention */
    struct maq_arch_index index;
    struct maq_node *index_types;
    int64_t index_block, index_blocks, index_every, index_offset;
    struct maq_node *sparse_types;
    struct maq_node *rates, *hash_types; /* DeepSeek-V4 */
    int64_t out_groups, out_rank, rate_sparse, rate_heavy, hash_layers;
    int64_t streams, gate_rank; /* residual streams; width that gates and decays are projected through */
    struct maq_hf_swa {         /* of layers with a window (dots3, MiMo-V2) */
        int64_t heads, kv_heads, head_dim, q_lora, kv_lora, nope_dim, v_dim;
    } swa;
    /* words of transformers 5 */
    struct maq_node *rope, *per_layer;
    /* Mamba-1 and lightning attention */
    struct maq_arch_mamba1 mamba1;
    struct maq_arch_ssm lightning;
    struct maq_str dt_rank;                 /* of Mamba-1: a number, or auto */
    int64_t ignored_width, attention_width; /* Mamba; Zamba: what its attention reads */
    int64_t mem_blocks;                     /* Zamba 2 */
    struct maq_node *linear_config;         /* Kimi Linear */
    struct maq_str gating;                  /* Laguna */
    struct maq_node *heads_list, *ffn_list; /* Laguna; Gemma 3n: of each layer */
    int64_t ple_vocab, ple_dim, kv_shared;  /* Gemma 3n, 4 */
    bool k_eq_v, wide_shared, moe_block;    /* Gemma 4 */
    int64_t task_types;
    bool use_task_id;
    bool is_decoder, crosses;      /* BERT */
    struct maq_str attention_type; /* BigBird */
    struct maq_node *languages;    /* X-MOD */
    struct maq_hf_roc {
        int64_t sounds, sound_width, shapes, shape_width;
        bool has_sounds, has_shapes, joins;
    } roc; /* RoCBERT */
    /* families with keys of their own */
    int64_t image_patch, image_channels;                      /* Fuyu */
    bool norms_biased, classifier_bias, gates_heads;          /* ModernBERT, LFM 3 */
    double norm_eps;                                          /* Command A with experts */
    int64_t embedding_dim;                                    /* OPT */
    bool norm_before, remove_final_norm, parallel_residual;   /* OPT, GPT-NeoX */
    bool new_decoder, multi_query, parallel_attention, alibi; /* Falcon */
    int64_t parallel_norms;                                   /* Falcon */
    struct maq_node *attn_config;                             /* MPT */
    double expansion;                                         /* MPT */
    bool no_bias, learned_positions;                          /* MPT */
    bool post_norm;                                           /* Apertus */
    struct maq_node *ffn_config;                              /* DBRX */
    struct maq_node *attention_words;                         /* GPT-Neo: "global" or "local" for each layer */
    struct maq_node *topk_list, *moe_ffn_list, *shared_list;  /* Hunyuan */
    struct maq_node *blocks, *mtp_blocks;                     /* Nemotron-H: a word for each letter of its patterns */

    /* what the class fixes and no key changes */
    enum maq_norm norm;
    enum maq_norm_place norm_place;
    enum maq_residual residual;
    enum maq_qk_norm qk_norm;
    enum maq_hf_window window_rule;
    enum maq_gate gate;
    bool gated, out_bias_never, head_bias, embedding_norm, no_rope, sinks;
    bool router_bias, expert_bias, expert_clamped, shared_gate;
    int linear_mixer; /* enum maq_mixer: what linear_attention among layer_types is; NONE: by what the family has */
    /* Of layers in a pattern of n: which one sees everything or attends (-1: the last), and how many at both ends do besides. */
    int64_t full_at, full_first, full_last;
    bool not_first;          /* the pattern says nothing of layer 0 */
    bool rounds_head;        /* hidden / heads is rounded down where it is not whole */
    int64_t position_offset; /* rows of the position table before position 0 (OPT) */
    int64_t token_types;     /* rows of the table of token types (BERT) */
    bool head_transform;     /* a linear, a nonlinearity and a norm in front of the head (BERT) */
    bool no_final_norm, bias_twice, never_tied;
};

/* What quantization_config says of the checkpoint's weights, of one that is there (quantization.c). */
void maq__hf_read_quantization(struct maq_quantization *out, struct maq_model_reader *r);

/* What a class fixes and what its keys are where they are left out, in the words of maq__hf_class and of config.json (class_facts.c). */
void maq__hf_read_facts(struct maq_hf *hf, const struct maq_family *family, struct maq_model_reader *r);
extern const struct maq_field maq__hf_class[];

/* Each layer by the rules and lists of hf (layers.c). */
void maq__hf_fill_layers(struct maq_architecture *arch, const struct maq_hf *hf, struct maq_model_reader *r);

/* What sets layers apart (layer_overrides.c): layer i gets an attention of its own, the same for all that have equal ones. */
void maq__hf_own_attention(struct maq_architecture *arch, int64_t i, const struct maq_arch_attention *own,
                           struct maq_model_reader *r);
void maq__hf_own_mla(struct maq_architecture *arch, int64_t i, const struct maq_arch_mla *own,
                     struct maq_model_reader *r);
/* Several residual streams: their mixing in front of and behind each branch, with that many numbers and scales (sparse.c). */
void maq__hf_streams(struct maq_architecture *arch, const struct maq_hf *hf, int64_t mixes, int64_t scales);
/* Sizes that per_layer_config gives some layers of their own. */
void maq__hf_read_per_layer(struct maq_architecture *arch, const struct maq_hf *hf, struct maq_model_reader *r);
/* Modules beside those of the mixers and feed-forward parts: any; a norm; a linear; `params` numbers that scale or shift features. */
void maq__hf_extra(struct maq_architecture *arch, struct maq_arch_extra extra);
void maq__hf_extra_norm(struct maq_architecture *arch, const char *name, enum maq_layer_place place, int64_t width,
                        enum maq_shard shard, uint32_t mark);
void maq__hf_extra_linear(struct maq_architecture *arch, const char *name, enum maq_layer_place place, int64_t in,
                          int64_t out, bool bias, uint32_t mark);
void maq__hf_extra_numbers(struct maq_architecture *arch, const char *name, enum maq_layer_place place, int64_t width,
                           int64_t params, uint32_t mark);

/* The families: i from 0 until NULL; those of the other files, each list ended by one without a type; and their keys. */
const struct maq_family *maq__hf_family(size_t i);
extern const struct maq_family maq__hf_gpt_families[], maq__hf_dense_families[], maq__hf_expert_families[],
    maq__hf_hybrid_families[], maq__hf_variant_families[], maq__hf_sparse_families[], maq__hf_recurrent_families[],
    maq__hf_encoder_families[], maq__hf_unlike_layers_families[];
extern const struct maq_family maq__megatron_family, maq__pyramid_family;

extern const struct maq_field maq__hf_core[], maq__hf_attention[], maq__hf_window[], maq__hf_dropout[], maq__hf_mla[],
    maq__hf_moe[], maq__hf_moe_dense[], maq__hf_moe_step[], maq__hf_llama4[], maq__hf_gemma3[], maq__hf_mamba[],
    maq__hf_delta[], maq__hf_opt[], maq__hf_neox[], maq__hf_falcon[], maq__hf_mpt[], maq__hf_mpt_attention[],
    maq__hf_bias[], maq__hf_qk_norm[], maq__hf_gptj[], maq__hf_exaone4[], maq__hf_seed_oss[], maq__hf_smollm3[],
    maq__hf_ernie[], maq__hf_granite[], maq__hf_nemotron_h[], maq__hf_layers[], maq__hf_mlp_types[], maq__hf_index[],
    maq__hf_per_layer[];

/* Whether a key of any config.json changes neither cost nor memory. */
bool maq__hf_key_is_ignored(struct maq_str key);
/* Those that are listed by name, i from 0 until NULL. */
const char *maq__hf_ignored_key(size_t i);

/* Why a model_type that people have is not modelled; NULL for all others. */
const char *maq__hf_refusal(struct maq_str type);

/* Presets that files share: a Llama, DeepSeek's latent attention, layers with linear attention. */
void maq__hf_preset_llama(struct maq_hf *hf);
void maq__hf_preset_delta(struct maq_hf *hf);
/* Width of a Mamba-2 scan, all heads together, where no key says the width of one. */
int64_t maq__hf_scan_width(const struct maq_hf *hf);
void maq__hf_settle_latent(struct maq_hf *hf, struct maq_model_reader *r);
void maq__hf_settle_exaone4(struct maq_hf *hf, struct maq_model_reader *r);
/* Sets the mixer of the layers whose indices a list names, or reports. */
void maq__hf_set_mixer(struct maq_architecture *arch, struct maq_node *list, enum maq_mixer mixer,
                       struct maq_model_reader *r);

/* The common path; a maq_family's read function. */
void maq__hf_read(struct maq_architecture *arch, struct maq_model_reader *r, const struct maq_family *family);

/* Families with oddities: called after the common path has filled arch, layers included. */
void maq__hf_adapt_opt(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r);
void maq__hf_adapt_delta(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r);
void maq__hf_adapt_granite(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r);
void maq__hf_adapt_hybrid(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r);

/* And before it: to settle fields that the common path reads. */
void maq__hf_settle_qk_norm(struct maq_hf *hf, struct maq_model_reader *r);
void maq__hf_settle_falcon(struct maq_hf *hf, struct maq_model_reader *r);
void maq__hf_settle_mpt(struct maq_hf *hf, struct maq_model_reader *r);

/*
 * Turns a hybrid pattern into layers: M Mamba-2, * attention, - MLP, E mixture of experts; '|' and blanks are
 * skipped. `keys` is where the pattern was written. Shared with Megatron-LM's hybrid_override_pattern.
 */
void maq__hybrid_pattern(struct maq_architecture *arch, struct maq_model_reader *r, struct maq_str pattern,
                         int64_t ffn_width, const char *keys);
/* The same for one multi-token-prediction depth: a mixer, a feed-forward part, or one of each ("*E"). */
void maq__hybrid_mtp(struct maq_architecture *arch, struct maq_model_reader *r, struct maq_str pattern,
                     int64_t ffn_width, const char *keys);

#endif
