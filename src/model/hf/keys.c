/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys.c - the keys of Hugging Face's config.json, by topic. Names are those of the configuration classes in
 * `transformers`; the bounds are far above any published model and keep products of two of them inside 64 bits.
 */
#include "model/hf/family_rows.h"

/* In the order of enum maq_hf_act; all but relu2 cost the same. */
static const char *const activations[] = {
    "silu",        "relu2",  "gelu",  "relu",       "swish", "gelu_new", "gelu_fast", "gelu_pytorch_tanh",
    "gelu_python", "swiglu", "geglu", "quick_gelu", "tanh",  "xielu",    NULL,
};

const struct maq_field maq__hf_core[] = {
    I64(hidden, "hidden_size", .aliases = "n_embd|d_model", WIDTH, .doc = "width of the residual stream"),
    I64(layers, "num_hidden_layers", .aliases = "n_layer|n_layers", .min = 1, .max = MAQ_ARCH_LAYERS_MAX,
        .doc = "transformer layers"),
    I64(heads, "num_attention_heads", .aliases = "n_head|n_heads", COUNT, .doc = "query heads"),
    I64(vocab, "vocab_size", .min = 1, .max = 134217728, .doc = "rows of the token table"),
    I64(max_pos, "max_position_embeddings", .aliases = "n_positions|max_seq_len|seq_length|max_sequence_length",
        .min = 1, .max = 1e12, .doc = "positions the model was made for"),
    I64(ffn, "intermediate_size", .aliases = "n_inner|ffn_dim|ffn_hidden_size", WIDTH, .doc = "width of the MLP"),
    /* Some classes write a setting under two names at once: such names have rows of their own, not aliases. Of several rows the last counts. */
    MAQ_FIELD_ENUM(struct maq_hf, act, "activation_function", activations,
                   .doc = "the same as hidden_act, in the words of GPT-2; Starcoder 2 has both, and reads the other"),
    MAQ_FIELD_ENUM(struct maq_hf, act, "hidden_act", activations, .aliases = "mlp_hidden_act|activation",
                   .doc = "nonlinearity of the MLP"),
    MAQ_FIELD_ENUM(struct maq_hf, act, "hidden_activation", activations, .doc = "the same, in the words of Gemma"),
    I64(hidden, "n_embed", WIDTH, .doc = "hidden_size in the words of BLOOM"),
    I64(layers, "num_layers", .min = 1, .max = MAQ_ARCH_LAYERS_MAX, .doc = "num_hidden_layers in the words of ChatGLM"),
    I64(vocab, "padded_vocab_size", .min = 1, .max = 134217728, .doc = "vocab_size in the words of ChatGLM"),
    BOOL(tie, "tie_word_embeddings", .doc = "the head uses the token table"),
    NODE(rope, "rope_parameters", .doc = "of the rotation: which share of a head rotates"), MAQ_FIELD_END};

const struct maq_field maq__hf_per_layer[] = {
    NODE(per_layer, "per_layer_config", .doc = "sizes that some layers have of their own, by the layer's number"),
    MAQ_FIELD_END};

const struct maq_field maq__hf_attention[] = {
    I64(kv_heads, "num_key_value_heads", .aliases = "multi_query_group_num", COUNT, .doc = "key and value heads"),
    I64(head_dim, "head_dim", .aliases = "kv_channels", .min = 1, .max = 65536,
        .doc = "width of a head; hidden / heads if not given"),
    I64(head_dim, "attention_head_dim", .min = 1, .max = 65536, .doc = "the same, in the words of Nemotron-H"),
    REAL(rotary_factor, "partial_rotary_factor", .aliases = "rotary_pct", .min = 0, .max = 1,
         .doc = "share of a head that is rotated"),
    MAQ_FIELD_END};

const struct maq_field maq__hf_bias[] = {
    BOOL(attention_bias, "attention_bias", .doc = "biases in the attention projections"),
    BOOL(qkv_bias, "qkv_bias", .aliases = "add_qkv_bias", .doc = "biases in the query, key and value projections"),
    BOOL(mlp_bias, "mlp_bias", .aliases = "add_bias_linear", .doc = "biases in the MLP"),
    BOOL(bias, "bias", .aliases = "enable_bias", .doc = "biases in all linears that may have one"), MAQ_FIELD_END};

const struct maq_field maq__hf_qk_norm[] = {
    BOOL(use_qk_norm, "use_qk_norm", .aliases = "qk_layernorm", .doc = "norms on queries and keys"), MAQ_FIELD_END};

const struct maq_field maq__hf_window[] = {
    I64(window, "sliding_window", .min = 0, .max = 1e12, .doc = "tokens a query sees"),
    BOOL(use_window, "use_sliding_window", .doc = "whether sliding_window is used at all"),
    I64(max_window_layers, "max_window_layers", .min = 0, .max = MAQ_ARCH_LAYERS_MAX,
        .doc = "layers below this one see everything"),
    NODE(layer_types, "layer_types", .doc = "full_attention, sliding_attention, ... for each layer"), MAQ_FIELD_END};

const struct maq_field maq__hf_dropout[] = {
    REAL(attention_dropout, "attention_dropout", .aliases = "attn_pdrop", .min = 0, .max = 1,
         .doc = "dropout on attention probabilities"),
    REAL(hidden_dropout, "hidden_dropout", .aliases = "resid_pdrop|dropout|residual_dropout", .min = 0, .max = 1,
         .doc = "dropout before residual additions"),
    REAL(ignored_dropout, "embd_pdrop", .aliases = "emb_pdrop|activation_dropout|embedding_dropout", .min = 0, .max = 1,
         .doc = "accepted; a mask of one embedding is not modelled by itself"),
    MAQ_FIELD_END};

const struct maq_field maq__hf_mla[] = {
    I64(q_lora, "q_lora_rank", OPTIONAL, .doc = "latent width of queries; absent: projected directly"),
    I64(kv_lora, "kv_lora_rank", WIDTH, .doc = "latent width of keys and values"),
    I64(nope_dim, "qk_nope_head_dim", .min = 1, .max = 65536, .doc = "unrotated features of a query head"),
    I64(rope_dim, "qk_rope_head_dim", .min = 0, .max = 65536, .doc = "rotated features of a query head"),
    I64(v_dim, "v_head_dim", .min = 1, .max = 65536, .doc = "width of a value head"),
    MAQ_FIELD_END};

const struct maq_field maq__hf_moe[] = {
    I64(experts, "num_experts", .aliases = "num_local_experts|n_routed_experts", .min = 0, .max = 65536,
        .doc = "routed experts"),
    I64(topk, "num_experts_per_tok", .aliases = "num_experts_per_token|num_selected_experts", COUNT,
        .doc = "experts a token goes to"),
    I64(topk, "experts_per_token", COUNT, .doc = "the same, in the words of GPT-OSS"),
    I64(groups_of_experts, "n_group", .min = 0, .max = 1024,
        .doc = "groups of experts, of which a token's lie in a few"),
    I64(group_topk, "topk_group", .min = 0, .max = 1024, .doc = "groups that a token's experts lie in"),
    I64(moe_ffn, "moe_intermediate_size", WIDTH, .doc = "width of one routed expert"),
    MAQ_FIELD_END};

const struct maq_field maq__hf_moe_dense[] = {
    I64(shared_count, "n_shared_experts", .min = 0, .max = 65536,
        .doc = "shared experts of width moe_intermediate_size"),
    I64(first_dense, "first_k_dense_replace", .min = 0, .max = MAQ_ARCH_LAYERS_MAX, .doc = "dense layers at the start"),
    I64(layer_freq, "moe_layer_freq", .min = 1, .max = MAQ_ARCH_LAYERS_MAX, .doc = "experts in every n-th layer"),
    I64(mtp_layers, "num_nextn_predict_layers", .aliases = "num_mtp_layers", .min = 0, .max = 64,
        .doc = "multi-token-prediction depths"),
    STR(topk_method, "topk_method", .doc = "noaux_tc adds one correction bias per expert"),
    MAQ_FIELD_END};

/* One word for each layer, as transformers 5 writes it; where a family has a rule besides, the list decides. */
const struct maq_field maq__hf_layers[] = {
    NODE(layer_types, "layer_types", .doc = "full_attention, linear_attention, ... for each layer"), MAQ_FIELD_END};
const struct maq_field maq__hf_mlp_types[] = {
    NODE(mlp_types, "mlp_layer_types", .doc = "dense or sparse for each layer"), MAQ_FIELD_END};

/* The index of DeepSeek-V3.2 and its descendants. */
const struct maq_field maq__hf_index[] = {
    I64(index.heads, "index_n_heads", COUNT, .doc = "heads of the index that chooses keys"),
    I64(index.dim, "index_head_dim", .min = 1, .max = 65536, .doc = "width of one"),
    I64(index.selected, "index_topk", .min = 1, .max = 1e12, .doc = "keys that a query attends to"),
    NODE(index_types, "indexer_types", .doc = "full, or shared: with the choice of an earlier layer"), MAQ_FIELD_END};

const struct maq_field maq__hf_moe_step[] = {
    I64(shared_ffn, "shared_expert_intermediate_size", OPTIONAL, .doc = "width of the shared expert"),
    I64(sparse_step, "decoder_sparse_step", .min = 1, .max = MAQ_ARCH_LAYERS_MAX, .doc = "experts in every n-th layer"),
    NODE(mlp_only_layers, "mlp_only_layers", .doc = "layers without experts"), MAQ_FIELD_END};

const struct maq_field maq__hf_llama4[] = {
    I64(sparse_step, "interleave_moe_layer_step", .min = 1, .max = MAQ_ARCH_LAYERS_MAX,
        .doc = "experts in every n-th layer"),
    I64(dense_ffn, "intermediate_size_mlp", WIDTH, .doc = "width of the MLP of dense layers"),
    I64(chunk, "attention_chunk_size", .min = 1, .max = 1e12, .doc = "tokens of an attention chunk"),
    I64(window_pattern, "no_rope_layer_interval", .min = 1, .max = MAQ_ARCH_LAYERS_MAX,
        .doc = "every n-th layer sees everything and does not rotate"),
    NODE(moe_layers, "moe_layers", .doc = "the layers with experts, counted from 0"),
    NODE(no_rope_layers, "no_rope_layers", .doc = "1 for layers that rotate, 0 for those that do not"),
    NODE(layer_types, "layer_types", .doc = "full_attention or chunked_attention for each layer"),
    MAQ_FIELD_END};

const struct maq_field maq__hf_gemma3[] = {I64(window_pattern, "sliding_window_pattern", .min = 1,
                                               .max = MAQ_ARCH_LAYERS_MAX, .doc = "every n-th layer sees everything"),
                                           MAQ_FIELD_END};

const struct maq_field maq__hf_mamba[] = {
    STR(mtp_pattern, "mtp_hybrid_override_pattern",
        .doc = "the layers of one multi-token-prediction depth, such as *E"),
    STR(pattern, "hybrid_override_pattern",
        .doc = "M Mamba-2, * attention, - MLP, E experts; one letter for each layer"),
    I64(mamba.heads, "mamba_num_heads", .aliases = "mamba_n_heads", COUNT, .doc = "heads of the scan"),
    I64(mamba.head_dim, "mamba_head_dim", .aliases = "mamba_d_head", .min = 1, .max = 65536,
        .doc = "width of a head of the scan"),
    I64(mamba.groups, "n_groups", .aliases = "mamba_n_groups", COUNT, .doc = "groups that share B and C"),
    I64(mamba.state, "ssm_state_size", .aliases = "mamba_d_state", .min = 1, .max = 65536, .doc = "state size"),
    I64(mamba.conv_kernel, "conv_kernel", .aliases = "mamba_d_conv", .min = 1, .max = 1024,
        .doc = "taps of the convolution"),
    I64(mamba.chunk, "chunk_size", .aliases = "mamba_chunk_size", .min = 1, .max = 65536,
        .doc = "tokens of a scan block"),
    BOOL(mamba.conv_bias, "use_conv_bias", .aliases = "mamba_conv_bias", .doc = "bias in the convolution"),
    REAL(scan_expand, "mamba_expand", .min = 0.001, .max = 1024, .doc = "width of the scan over hidden"),
    BOOL(mamba.proj_bias, "mamba_proj_bias", .doc = "biases in the projections of the scan"),
    BOOL(use_bias, "use_bias", .doc = "the same, in the words of NemotronHConfig"),
    I64(shared_ffn, "moe_shared_expert_intermediate_size", OPTIONAL, .doc = "width of the shared expert"),
    I64(latent, "moe_latent_size", OPTIONAL, .doc = "width at which routed experts work; absent: hidden"),
    I64(shared_count, "n_shared_experts", .min = 0, .max = 65536, .doc = "shared experts"),
    I64(mtp_layers, "num_nextn_predict_layers", .min = 0, .max = 64, .doc = "multi-token-prediction depths"),
    MAQ_FIELD_END};

const struct maq_field maq__hf_nemotron_h[] = {
    NODE(blocks, "layers_block_type",
         .doc = "mamba, attention, mlp or moe for each layer: hybrid_override_pattern in words"),
    I64(window, "sliding_window", .min = 0, .max = 1e12, .doc = "tokens a query sees"),
    NODE(mtp_blocks, "mtp_layers_block_type", .doc = "the same of one multi-token-prediction depth"), MAQ_FIELD_END};

const struct maq_field maq__hf_exaone4[] = {
    STR(window_letters, "sliding_window_pattern", .doc = "every n-th layer sees everything; or a letter for each"),
    MAQ_FIELD_END};

const struct maq_field maq__hf_seed_oss[] = {
    BOOL(out_bias, "attention_out_bias", .doc = "bias in the output projection of attention"), MAQ_FIELD_END};

const struct maq_field maq__hf_smollm3[] = {
    I64(no_rope_interval, "no_rope_layer_interval", .min = 0, .max = MAQ_ARCH_LAYERS_MAX,
        .doc = "every n-th layer does not rotate"),
    NODE(no_rope_layers, "no_rope_layers", .doc = "1 for layers that rotate, 0 for those that do not"), MAQ_FIELD_END};

const struct maq_field maq__hf_ernie[] = {
    BOOL(use_bias, "use_bias", .doc = "biases in all linears"),
    I64(experts, "moe_num_experts", .min = 0, .max = 65536, .doc = "routed experts"),
    I64(topk, "moe_k", COUNT, .doc = "experts a token goes to"),
    I64(shared_count, "moe_num_shared_experts", .min = 0, .max = 65536, .doc = "shared experts"),
    I64(first_dense, "moe_layer_start_index", .min = 0, .max = MAQ_ARCH_LAYERS_MAX, .doc = "first layer with experts"),
    I64(moe_end, "moe_layer_end_index", .min = -1, .max = MAQ_ARCH_LAYERS_MAX, .doc = "last one; -1: of all layers"),
    I64(sparse_step, "moe_layer_interval", .min = 1, .max = MAQ_ARCH_LAYERS_MAX, .doc = "experts in every n-th layer"),
    I64(mtp_layers, "num_nextn_predict_layers", .min = 0, .max = 64, .doc = "multi-token-prediction depths"),
    MAQ_FIELD_END};

const struct maq_field maq__hf_granite[] = {
    I64(shared_ffn, "shared_intermediate_size", OPTIONAL, .doc = "width of the MLP that every layer has"),
    STR(position_type, "position_embedding_type", .doc = "rope; else no rotation"),
    NODE(layer_types, "layer_types", .aliases = "layers_block_type", .doc = "mamba or attention for each layer"),
    MAQ_FIELD_END};

const struct maq_field maq__hf_delta[] = {
    I64(delta.heads, "linear_num_value_heads", COUNT, .doc = "value heads of linear attention"),
    I64(delta.groups, "linear_num_key_heads", COUNT, .doc = "key heads of linear attention"),
    I64(delta.head_dim, "linear_value_head_dim", .min = 1, .max = 65536, .doc = "width of a value head"),
    I64(delta.state, "linear_key_head_dim", .min = 1, .max = 65536, .doc = "width of a key head"),
    I64(delta.conv_kernel, "linear_conv_kernel_dim", .min = 1, .max = 1024, .doc = "taps of the convolution"),
    I64(full_interval, "full_attention_interval", .min = 1, .max = MAQ_ARCH_LAYERS_MAX,
        .doc = "every n-th layer has softmax attention"),
    MAQ_FIELD_END};

const struct maq_field maq__hf_opt[] = {
    I64(embedding_dim, "word_embed_proj_dim", WIDTH, .doc = "width of the token table"),
    BOOL(norm_before, "do_layer_norm_before", .doc = "norms in front of the branches"),
    BOOL(remove_final_norm, "_remove_final_layer_norm", .doc = "no norm in front of the head"), MAQ_FIELD_END};

const struct maq_field maq__hf_neox[] = {
    BOOL(parallel_residual, "use_parallel_residual", .doc = "attention and MLP side by side"), MAQ_FIELD_END};

const struct maq_field maq__hf_gptj[] = {
    I64(rotary_dim, "rotary_dim", .min = 0, .max = 65536, .doc = "rotated features of a head"), MAQ_FIELD_END};

const struct maq_field maq__hf_falcon[] = {
    I64(kv_heads, "num_kv_heads", .aliases = "n_head_kv", COUNT, .doc = "key and value heads of the new architecture"),
    BOOL(new_decoder, "new_decoder_architecture", .doc = "grouped queries and two norms"),
    BOOL(multi_query, "multi_query", .doc = "one key and value head"),
    BOOL(parallel_attention, "parallel_attn", .doc = "attention and MLP side by side"),
    BOOL(alibi, "alibi", .doc = "linear position biases instead of rotation"),
    I64(parallel_norms, "num_ln_in_parallel_attn", .min = 1, .max = 2, .doc = "norms of a parallel layer"),
    MAQ_FIELD_END};

const struct maq_field maq__hf_mpt[] = {
    NODE(attn_config, "attn_config", .doc = "attention settings"),
    REAL(expansion, "expansion_ratio", .min = 0.001, .max = 1024, .doc = "MLP width over hidden width"),
    BOOL(no_bias, "no_bias", .doc = "no biases in linears and norms"),
    BOOL(learned_positions, "learned_pos_emb", .doc = "a learned position table, unless alibi or rope"), MAQ_FIELD_END};

const struct maq_field maq__hf_mpt_attention[] = {
    I64(kv_heads, "kv_n_heads", COUNT, .doc = "key and value heads"),
    BOOL(alibi, "alibi", .doc = "linear position biases"),
    BOOL(use_qk_norm, "qk_ln", .doc = "norms over all heads of queries and keys"),
    REAL(attention_dropout, "attn_pdrop", .min = 0, .max = 1, .doc = "dropout on attention probabilities"),
    MAQ_FIELD_END};
