/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ignored_keys.c - keys of a config.json that change neither cost nor memory, and what is said about all others.
 *
 * A key is accepted when a table of the family reads it, when it is in the list below, or when it has one of the
 * endings below. A key that another family reads is an error that says so: it would be ignored. In a config.json from
 * disk, which its user did not write, both are warnings. The list is repeated in docs/models.md.
 */
#include "model/hf/config.h"

#include "base/check.h"
#include "base/str.h"
#include "model/codes.h"

/* Sorted by topic, not by name: it is read a few dozen times per document. */
static const char *const ignored[] = {
    /* about the file */
    "base",
    "name",
    "model_type",
    "architectures",
    "torch_dtype",
    "dtype",
    "transformers_version",
    "auto_map",
    "_name_or_path",
    "text_config",
    "language_config",
    "llm_config",
    "vision_config",
    "audio_config",
    "finetuning_task",
    "is_encoder_decoder",
    "is_decoder",
    "id2label",
    "label2id",
    "task_specific_params",
    "problem_type",
    "license",
    "return_dict",
    "output_attentions",
    "output_hidden_states",
    "use_cache",
    "cache_implementation",
    "quantization_config",
    "compression_config",
    "torchscript",
    "use_bfloat16",
    "tokenizer_class",
    "prefix",
    "chunk_size_feed_forward",
    "tie_last_hidden_states",
    "num_labels",
    "sep_token_id",
    "_sliding_window_pattern",
    "use_bidirectional_attention",
    "max_batch_size",
    "encoder_no_repeat_ngram_size",
    "layerdrop",
    "scale_embedding",
    /* numerics and initialisation */
    "initializer_range",
    "init_std",
    "rms_norm_eps",
    "layer_norm_eps",
    "norm_eps",
    "norm_epsilon",
    "layer_norm_epsilon",
    "layernorm_epsilon",
    "layer_norm_elementwise_affine",
    "rescale_prenorm_residual",
    "residual_in_fp32",
    "attention_softmax_in_fp32",
    "fp32_residual_connection",
    "masked_softmax_fusion",
    "bias_dropout_fusion",
    "apply_query_key_layer_scaling",
    "apply_residual_connection_post_layernorm",
    "skip_bias_add",
    "skip_bias_add_qkv",
    "slow_but_exact",
    "offset_alibi",
    "time_step_floor",
    "time_step_limit",
    "time_step_max",
    "time_step_min",
    "time_step_rank",
    "rmsnorm",
    "swiglu_limit",
    "init_config",
    "init_device",
    "emb_init_std",
    "norm_type",
    "logit_scale",
    "verbose",
    "residual_fp32",
    "gelu_activation",
    "embed_init_std",
    "embedding_initializer_range",
    "initializer_cutoff_factor",
    "hidden_mamba_act",
    "time_step_scale",
    "time_step_init_scheme",
    "use_mambapy",
    "use_falcon_mambapy",
    "use_associative_scan",
    "use_mem_eff_path",
    "mixer_rms_eps",
    "swiglu_alpha",
    "hc_sinkhorn_iters",
    "hc_eps",
    "hc_magnitude",
    "learnable_sink_init",
    "lambda_std_dev",
    "final_logit_softcapping",
    "activation_sparsity_pattern",
    "altup_active_idx",
    "altup_coef_clip",
    "altup_correct_scale",
    "full_attn_alpha_factor",
    "full_attn_beta_factor",
    "linear_attn_alpha_factor",
    "linear_attn_beta_factor",
    "mlp_alpha_factor",
    "mlp_beta_factor",
    "attention_value_scale",
    "prefix_lm",
    "kda_safe_gate",
    "kda_lower_bound",
    "mtp_loss_scaling_factor",
    /* positions */
    "layer_rope_theta",
    "use_long_context",
    "rope_theta",
    "rope_scaling",
    "rope_ratio",
    "rope_local_base_freq",
    "rope_interleave",
    "rotary",
    "rotary_emb_base",
    "original_max_position_embeddings",
    "initial_context_length",
    "original_rope",
    "position_embedding_type",
    "mamba_expand",
    "mamba_norm_before_gate",
    "mamba_use_mlp",
    "mlp_expansion_factor",
    "linear_allow_neg_eigval",
    "linear_a_log_min",
    "linear_a_log_max",
    "linear_dt_min",
    "linear_dt_max",
    "linear_dt_init_floor",
    "n_ctx",
    "attn_temperature_tuning",
    "attn_scale",
    "qk_head_dim",
    "floor_scale",
    "for_llm_compressor",
    /* scalings of activations */
    "attention_multiplier",
    "embedding_multiplier",
    "logits_scaling",
    "residual_multiplier",
    "attn_logit_softcapping",
    "final_logit_softcapping",
    "query_pre_attn_scalar",
    "attn_output_multiplier",
    "embedding_multiplier_scale",
    "output_multiplier_scale",
    "max_attn_value",
    "scale_attn_weights",
    "scale_attn_by_inverse_layer_idx",
    "reorder_and_upcast_attn",
    "attention_in_multiplier",
    "attention_out_multiplier",
    "key_multiplier",
    "lm_head_multiplier",
    "mlp_multipliers",
    "ssm_in_multiplier",
    "ssm_out_multiplier",
    "ssm_multipliers",
    "mup_enabled",
    "scale_depth",
    "scale_emb",
    "dim_model_base",
    /* routing that keeps the number of experts per token */
    "norm_topk_prob",
    "moe_renormalize",
    "moe_norm_min",
    "moe_routed_scaling_factor",
    "moe_apply_router_weight_on_input",
    "moe_router_logit_softcapping",
    "moe_router_activation_func",
    "expert_selection_fn",
    "shared_expert_combination_strategy",
    "z_loss_coefficient",
    "router_z_loss_coef",
    "index_local_blocks",
    "router_aux_loss_coef",
    "output_router_logits",
    "router_jitter_noise",
    "input_jitter_noise",
    "routed_scaling_factor",
    "scoring_func",
    "moe_shared_expert_overlap",
    "aux_loss_alpha",
    "seq_aux",
    "ep_size",
    "route_scale",
    "router_scaling_factor",
    "score_func",
    "route_norm",
    "load_balance_coeff",
    "n_expert_groups",
    "num_expert_groups",
    "num_limited_groups",
    "enable_moe_fp32_combine",
    "is_moe_layer",
    "use_grouped_mm",
    /* of encoders: what the heads of other tasks have */
    "summary_last_dropout",
    "classifier_activation",
    "classifier_dropout_prob",
    "adapter_reuse_layer_norm",
    "ln_before_adapter",
    "default_language",
    "rotary_value",
    "start_n_top",
    "end_n_top",
    "lang_id",
    "unk_index",
    "mask_index",
    "bos_index",
    "eos_index",
    "pad_index",
    "is_encoder",
    "max_pos_embed",
    /* execution, and flags of older classes */
    "pretraining_tp",
    "attn_implementation",
    "_attn_implementation",
    "_attn_implementation_autoset",
    "use_flash_attn",
    "use_mamba_kernels",
    "gradient_checkpointing",
    "use_logn_attn",
    "mm_tokens_per_image",
    "num_logits_to_keep",
    "mamba_hidden_act",
    "mamba_ssm_cache_dtype",
    "expand",
    "multi_query_attention",
    "post_layer_norm",
    "classifier_dropout",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "pre_seq_len",
    "prefix_projection",
    "quantization_bit",
    "interleaved_qkv",
    "embedding_fraction",
    "tokenizer_name",
    /* of LFM2: said by other keys too, or by the class */
    "block_dim",
    "block_mlp_init_scale",
    "block_norm_eps",
    "block_out_init_scale",
    "block_use_swiglu",
    "block_use_xavier_init",
    "conv_dim",
    "conv_dim_out",
    "conv_use_xavier_init",
    "theta",
    "use_pos_enc",
    /* of Qwen (2023), Qwen 3.5 and Step-3 */
    "use_dynamic_ntk",
    "use_cache_quantization",
    "use_cache_kernel",
    "fp16",
    "bf16",
    "fp32",
    "onnx_safe",
    "softmax_in_fp32",
    "mtp_use_dedicated_embeddings",
    "mamba_ssm_dtype",
    "attn_output_gate",
    "norm_expert_weight",
    "moe_every_n_layer",
    /* beside the text model */
    "projector_hidden_act",
    "projector_bias",
    "image_size",
    "image_seq_length",
    "audio_merge_size",
    "audio_chunk_size",
    "vision_soft_tokens_per_image",
    "audio_soft_tokens_per_image",
    "multimodal_projector_bias",
    "spatial_merge_size",
    "downsample_ratio",
    "max_dynamic_patch",
    "select_layer",
    "vision_feature_layer",
    "vision_feature_select_strategy",
    NULL,
};

static const char *const endings[] = {"_token_id", "_token_index", "_token_ids", "_token", NULL};

static bool ends_with(struct maq_str s, const char *end)
{
    struct maq_str e = maq_str_of(end);
    return s.len >= e.len && maq_str_eq((struct maq_str){s.ptr + s.len - e.len, e.len}, e);
}

const char *maq__hf_ignored_key(size_t i)
{
    return i < MAQ_COUNT(ignored) ? ignored[i] : NULL;
}

bool maq__hf_key_is_ignored(struct maq_str key)
{
    for (size_t i = 0; ignored[i]; i++)
        if (maq_str_is(key, ignored[i]))
            return true;
    for (size_t i = 0; endings[i]; i++)
        if (ends_with(key, endings[i]))
            return true;
    return false;
}

static bool family_knows(const struct maq_family *family, struct maq_str key)
{
    for (size_t i = 0; family->tables[i]; i++)
        if (maq_fields_find(family->tables[i], key))
            return true;
    return false;
}

static bool anyone_knows(struct maq_str key)
{
    const struct maq_family *f;
    for (size_t i = 0; (f = maq__hf_family(i)) != NULL; i++)
        if (family_knows(f, key))
            return true;
    return family_knows(&maq__megatron_family, key) || family_knows(&maq__pyramid_family, key);
}

/* The shortest key that has the word in it, between its dashes: num_hidden_layers for "layers". */
static struct maq_str around(const struct maq_family *family, struct maq_str word)
{
    struct maq_str best = {0};
    for (size_t t = 0; family->tables[t] && word.len >= 4; t++)
        for (const struct maq_field *f = family->tables[t]; f->type != MAQ_TYPE_END; f++) {
            const char *at = memmem(f->key, strlen(f->key), word.ptr, word.len);
            bool whole = at && (at == f->key || at[-1] == '_') && (at[word.len] == '\0' || at[word.len] == '_');
            if (whole && (best.len == 0 || strlen(f->key) < best.len))
                best = maq_str_of(f->key);
        }
    return best;
}

/* The nearest key (or alias) that the family reads; an empty slice when none is within two edits. */
static struct maq_str nearest(const struct maq_family *family, struct maq_str key)
{
    struct maq_str best = {0};
    uint32_t best_distance = 3;
    for (size_t t = 0; family->tables[t]; t++)
        for (const struct maq_field *f = family->tables[t]; f->type != MAQ_TYPE_END; f++) {
            uint32_t d = maq_str_distance(key, maq_str_of(f->key), best_distance);
            if (d < best_distance) {
                best_distance = d;
                best = maq_str_of(f->key);
            }
        }
    return best.len ? best : around(family, key);
}

/* Keys of the maps that somebody reads, and of these the ones that the family does (NULL: anybody). */
static uint32_t count_read(const struct maq_model_reader *r, const struct maq_family *family)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n_maps; i++)
        for (const struct maq_node *c = r->maps[i]->first; c; c = c->next)
            n += !maq__hf_key_is_ignored(c->key) && (family ? family_knows(family, c->key) : anyone_knows(c->key));
    return n;
}

/* Letters that a family's first name begins with alike; one more for llama, whose keys most others have taken over. */
static uint32_t resemblance(const struct maq_family *family, struct maq_str type)
{
    struct maq_str name;
    uint32_t n = 0;
    maq_str_split(maq_str_of(family->type), '|', &name);
    while (n < name.len && n < type.len && maq_char_lower(name.ptr[n]) == maq_char_lower(type.ptr[n]))
        n++;
    n = n < 3 ? 0 : n; /* by chance */
    return 2 * n + maq_str_is(name, "llama");
}

const struct maq_family *maq__reader_nearest_family(const struct maq_model_reader *r, struct maq_str type,
                                                    uint32_t *read, uint32_t *all)
{
    const struct maq_family *f, *best = NULL;
    *all = count_read(r, NULL);
    *read = 0;
    for (size_t i = 0; (f = maq__hf_family(i)) != NULL; i++) {
        uint32_t n = count_read(r, f);
        if (n > *read || (best && n == *read && resemblance(f, type) > resemblance(best, type))) {
            *read = n;
            best = f;
        }
    }
    return best;
}

/* Words in the names of keys that say how a model is made, and not how it is computed or saved. */
static bool names_a_shape(struct maq_str key)
{
    static const char *const words[] = {"layer",    "head",   "expert", "dim",   "size",  "rank",   "width",
                                        "num",      "bias",   "norm",   "block", "group", "kernel", "share",
                                        "channels", "hidden", "embed",  "tie",   "types", "cross",  "vocab",
                                        "pattern",  "state",  "lora",   "index", "mtp",   NULL};
    for (size_t i = 0; words[i]; i++)
        if (memmem(key.ptr, key.len, words[i], strlen(words[i])))
            return true;
    return false;
}

/* A value that takes something away or says nothing: no, none of it, an empty list. */
static bool is_off(const struct maq_node *node)
{
    if (node->kind != MAQ_NODE_SCALAR)
        return node->count == 0;
    static const char *const off[] = {"false", "False", "0", "0.0", "none", "None", "", NULL};
    for (size_t i = 0; off[i]; i++)
        if (maq_str_is(node->text, off[i]))
            return true;
    return maq_node_is_null(node);
}

/* In a file from disk a key that could change the shape of the model is an error as well; another one only a warning. */
static enum maq_severity severity_of(const struct maq_node *node, bool lenient)
{
    if (!lenient)
        return MAQ_ERROR;
    return names_a_shape(node->key) ? MAQ_ERROR : MAQ_WARNING;
}

static void report(struct maq_model_reader *r, struct maq_node *node, const struct maq_family *family, const char *type,
                   bool lenient)
{
    enum maq_severity severity = severity_of(node, lenient);
    struct maq_str key = node->key, near = nearest(family, key);
    bool shape = lenient && severity == MAQ_ERROR;
    const char *anyway = shape ? maq_arena_printf(r->arena, "if its class does not read it: --set model.%.*s=null",
                                                  (int)key.len, key.ptr)
                               : NULL;
    if (severity == MAQ_ERROR)
        r->bad = true;
    if (anyone_knows(key)) {
        maq_diag_add(r->diag, severity, MAQ_CODE_MODEL_FOREIGN_KEY, node->key_at, anyway,
                     "key '%.*s' means nothing to model_type '%s'", (int)key.len, key.ptr, type);
        return;
    }
    const char *hint = near.len ? maq_arena_printf(r->arena, "did you mean '%.*s'?", (int)near.len, near.ptr) : NULL;
    maq_diag_add(r->diag, severity, MAQ_CODE_MODEL_UNKNOWN_KEY, node->key_at, shape ? anyway : hint,
                 "unknown key '%.*s' in model%s", (int)key.len, key.ptr, shape ? ", which may change its shape" : "");
}

/* Whether a stronger map takes the key away. */
static bool taken_away(const struct maq_model_reader *r, uint32_t map, struct maq_str key)
{
    for (uint32_t i = map + 1; i < r->n_maps; i++)
        for (const struct maq_node *c = r->maps[i]->first; c; c = c->next)
            if (maq_str_eq(c->key, key) && maq_node_is_null(c))
                return true;
    return false;
}

void maq__reader_unknown_keys(struct maq_model_reader *r, const struct maq_family *family, const char *type)
{
    for (uint32_t i = 0; i < r->n_maps; i++)
        for (struct maq_node *c = r->maps[i]->first; c; c = c->next) {
            bool known = family_knows(family, c->key) || maq__hf_key_is_ignored(c->key) || maq_node_is_null(c);
            if (!known && !(r->lenient[i] && (is_off(c) || taken_away(r, i, c->key))))
                report(r, c, family, type, r->lenient[i]);
            maq_node_use_all(c);
        }
}
