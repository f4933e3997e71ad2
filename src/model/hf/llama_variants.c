/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llama_variants.c - Hugging Face families that are a Llama, a Qwen 3 or a GLM but for a word or two: rows whose facts say all, or nearly. Words
 * are explained in class_facts.c. Defaults are those of the configuration classes in `transformers`, in models/NAME.
 */
#include "base/str.h"
#include "model/codes.h"
#include "model/hf/family_rows.h"

/* ---- dense ---- */

/* BitNet b1.58: norms in front of the second product of both branches. Its weights are trained in 16 bits and rounded to three values. */
static void adapt_bitnet(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)r;
    maq__hf_extra_norm(arch, "attn_sub_norm", MAQ_PLACE_CORE, hf->heads * hf->head_dim, MAQ_SHARD_HEADS, 0);
    maq__hf_extra_norm(arch, "ffn_sub_norm", MAQ_PLACE_FFN_MID, hf->ffn, MAQ_SHARD_HEADS, 0);
    MAQ_READER_CHECK(r, hf->heads * hf->head_dim == hf->hidden, MAQ_CODE_MODEL_HEAD_WIDTH, "head_dim", NULL,
                     "heads of another width than hidden / heads are not modelled for bitnet");
}

/* Differential attention: half of the heads are subtracted from the other half, weighed by four vectors of a layer. */
static void adapt_diffllama(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)r;
    arch->attention.core_params = 4 * hf->head_dim;
    maq__hf_extra(arch, (struct maq_arch_extra){.name = "group_norm",
                                                .place = MAQ_PLACE_CORE,
                                                .kind = MAQ_MODULE_NORM,
                                                .shard = MAQ_SHARD_HEADS,
                                                .in = hf->heads * hf->head_dim,
                                                .out = hf->heads * hf->head_dim});
}

/* Doge: a mask from the values, and residual additions that are scaled by feature. */
static const struct maq_field doge_keys[] = {
    BOOL(moe_block, "is_moe", .doc = "experts found by product keys"),
    I64(ignored_width, "num_experts", SOME, .doc = "of them"),
    I64(ignored_width, "num_experts_per_tok", SOME, .doc = "which a token goes to"),
    I64(ignored_width, "keep_window_size", .min = 0, .max = 1e12, .doc = "accepted: keys that the mask keeps at least"),
    MAQ_FIELD_END};

static void adapt_doge(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    MAQ_READER_CHECK(r, !hf->moe_block, MAQ_CODE_MODEL_VALUE, "is_moe", NULL,
                     "experts that are found by product keys are not modelled");
    arch->attention.core_params = hf->kv_heads;
    maq__hf_extra_linear(arch, "dt_proj", MAQ_PLACE_QUERIES, hf->kv_heads * hf->head_dim, hf->kv_heads,
                         hf->attention_bias, 0);
    maq__hf_extra_numbers(arch, "input_residual", MAQ_PLACE_MIXER_OUT, hf->hidden, hf->hidden, 0);
    maq__hf_extra_numbers(arch, "post_attention_residual", MAQ_PLACE_FFN_OUT, hf->hidden, hf->hidden, 0);
}

/* HyperCLOVA X: norms behind the branches by a key. */
static const struct maq_field hyperclovax_keys[] = {
    BOOL(post_norm, "use_post_norm", .doc = "norms behind the branches as well"), MAQ_FIELD_END};

static void settle_hyperclovax(struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)r;
    hf->norm_place = hf->post_norm ? MAQ_NORM_SANDWICH : MAQ_NORM_PRE;
}

/* Fuyu: Persimmon, with patches of an image as tokens through one linear. */
static const struct maq_field fuyu_keys[] = {
    I64(image_patch, "patch_size", COUNT, .doc = "side of a patch of an image"),
    I64(image_channels, "num_channels", COUNT, .doc = "channels of an image"), MAQ_FIELD_END};

static void adapt_fuyu(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)r;
    maq__hf_extra_linear(arch, "vision_embed_tokens", MAQ_PLACE_EMBEDDING,
                         hf->image_patch * hf->image_patch * hf->image_channels, hf->hidden, true, 0);
}

/* ---- descendants of GPT-2 ---- */

static const struct maq_field xglm_keys[] = {I64(heads, "attention_heads", COUNT, .doc = "query heads"), MAQ_FIELD_END};

static const struct maq_field bert_dropout_keys[] = {
    REAL(attention_dropout, "attention_probs_dropout_prob", .min = 0, .max = 1,
         .doc = "dropout on attention probabilities"),
    REAL(hidden_dropout, "hidden_dropout_prob", .min = 0, .max = 1, .doc = "dropout before residual additions"),
    MAQ_FIELD_END};

static const struct maq_field openai_keys[] = {
    MAQ_FIELD_STR(struct maq_hf, position_type, "afn", .doc = "accepted: the nonlinearity"), MAQ_FIELD_END};

static const struct maq_field ctrl_keys[] = {I64(ffn, "dff", WIDTH, .doc = "width of the MLP"), MAQ_FIELD_END};

static const struct maq_field japanese_keys[] = {
    I64(ffn_multiple, "intermediate_multiple_size", COUNT, .doc = "width of the MLP over hidden"), MAQ_FIELD_END};

static void settle_japanese(struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)r;
    hf->ffn = hf->ffn_multiple * hf->hidden;
}

/* The last layer alone has a bias behind its attention. */
static void adapt_japanese(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)r;
    arch->layers[arch->num_layers - 1].marks = 1;
    maq__hf_extra_numbers(arch, "dense_bias", MAQ_PLACE_MIXER_OUT, hf->hidden, hf->hidden, 1);
}

/* ModernBERT as a decoder: no norm in front of the first attention, half of the window to the left. */
static const struct maq_field modernbert_keys[] = {
    I64(window, "local_attention", .min = 0, .max = 1e12, .doc = "tokens of a window, of which half are seen"),
    I64(window_pattern, "global_attn_every_n_layers", .min = 1, .max = MAQ_ARCH_LAYERS_MAX,
        .doc = "every n-th layer sees everything"),
    BOOL(norms_biased, "norm_bias", .doc = "biases in norms"),
    BOOL(head_bias, "decoder_bias", .doc = "a bias in the head"),
    BOOL(classifier_bias, "classifier_bias", .doc = "a bias in the linear in front of the head"),
    REAL(hidden_dropout, "mlp_dropout", .min = 0, .max = 1, .doc = "dropout in the MLP"),
    NODE(layer_types, "layer_types", .doc = "full_attention or sliding_attention for each layer"),
    MAQ_FIELD_END};

static void settle_modernbert(struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)r;
    hf->norm = hf->norms_biased ? MAQ_NORM_LAYER : MAQ_NORM_LAYER_NO_BIAS;
    hf->window /= 2;
}

static void adapt_modernbert(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)r;
    arch->layers[0].bare = true;
    maq__hf_extra_linear(arch, "head_dense", MAQ_PLACE_HEAD, hf->hidden, hf->hidden, hf->classifier_bias, 0);
    maq__hf_extra_norm(arch, "head_norm", MAQ_PLACE_HEAD, hf->hidden, MAQ_SHARD_SEQUENCE, 0);
}

/* ---- with experts ---- */

static const struct maq_field aria_keys[] = {
    I64(experts, "moe_num_experts", SOME, .doc = "routed experts"),
    I64(topk, "moe_topk", COUNT, .doc = "experts a token goes to"),
    I64(shared_count, "moe_num_shared_experts", SOME, .doc = "shared experts, as wide as a routed one"), MAQ_FIELD_END};

static const struct maq_field shared_width_keys[] = {
    I64(shared_ffn, "shared_expert_intermediate_size", OPTIONAL, .doc = "width of the shared expert"), MAQ_FIELD_END};

static const struct maq_field granite_shared_keys[] = {
    I64(shared_ffn, "shared_intermediate_size", OPTIONAL, .doc = "width of the shared expert"), MAQ_FIELD_END};

/* Flint: Qwen 3 with sinks and a shared expert; the first two layers are dense. */
static void settle_flint(struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)r;
    if (!hf->mlp_only_layers)
        hf->first_dense = hf->layers < 2 ? hf->layers : 2;
}

/* Beam: four norms, a gate with a bias for each head. */
static void settle_beam(struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)r;
    if (!hf->mlp_types)
        hf->first_dense = hf->layers < 3 ? hf->layers : 3;
}

static void adapt_beam(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)r;
    arch->attention.core_params = hf->heads;
}

/* Command A with experts: attention and experts side by side behind one norm. */
static const struct maq_field cohere_moe_keys[] = {
    I64(shared_count, "num_shared_experts", SOME, .doc = "shared experts, as wide as a routed one"),
    I64(first_dense, "first_k_dense_replace", LAYERS, .doc = "dense layers at the start"),
    I64(dense_ffn, "prefix_dense_intermediate_size", WIDTH, .doc = "width of the MLP of dense layers"),
    I64(window_pattern, "sliding_window_pattern", .min = 1, .max = MAQ_ARCH_LAYERS_MAX,
        .doc = "every n-th layer sees everything and does not rotate"),
    I64(no_rope_interval, "prefix_dense_sliding_window_pattern", COUNT, .doc = "the same of dense layers"),
    REAL(norm_eps, "rms_norm_eps", .min = 0, .max = 1, .doc = "given: norms without a mean"),
    MAQ_FIELD_END};

static void settle_cohere_moe(struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)r;
    hf->norm = hf->norm_eps > 0 ? MAQ_NORM_RMS : MAQ_NORM_LAYER_NO_BIAS;
    hf->no_rope_interval = 0;
}

/* A layer without a window does not rotate. */
static void adapt_cohere_moe(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)hf;
    (void)r;
    for (int64_t i = 0; i < arch->num_layers; i++)
        arch->layers[i].rope = arch->layers[i].window > 0;
}

/* A.X K1: DeepSeek-V3 with one more norm behind its experts. */
static void settle_axk1(struct maq_hf *hf, struct maq_model_reader *r)
{
    maq__hf_settle_latent(hf, r);
    MAQ_READER_CHECK(r, hf->q_lora > 0, MAQ_CODE_MODEL_LATENT, "q_lora_rank", NULL,
                     "its queries come from a rank: q_lora_rank is a number from 1");
}

static void adapt_axk1(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)r;
    for (int64_t i = 0; i < arch->num_layers; i++)
        arch->layers[i].marks = arch->layers[i].ffn == MAQ_FFN_MOE ? 1 : 0;
    maq__hf_extra_norm(arch, "post_mlp_layernorm", MAQ_PLACE_FFN_OUT, hf->hidden, MAQ_SHARD_SEQUENCE, 1);
}

/* LFM 3: gated short convolutions, attention with a gate for each head, four norms by a key. */
static const struct maq_field lfm3_keys[] = {
    I64(conv.kernel, "conv_L_cache", .min = 1, .max = 1024, .doc = "taps of the convolution"),
    BOOL(conv.bias, "conv_bias", .doc = "biases in the convolution and its projections"),
    BOOL(post_norm, "use_sandwich_norm", .doc = "norms behind the branches as well"),
    BOOL(gates_heads, "use_attention_gate", .doc = "a gate for each head"), MAQ_FIELD_END};

static void settle_lfm3(struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)r;
    hf->norm_place = hf->post_norm ? MAQ_NORM_SANDWICH : MAQ_NORM_PRE;
    hf->gate = hf->gates_heads ? MAQ_GATE_HEAD : MAQ_GATE_NONE;
    hf->qk_norm = MAQ_QK_NORM_HEAD;
}

static void adapt_lfm3(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)r;
    for (int64_t i = 0; !hf->layer_types && i < arch->num_layers; i++) {
        bool local = i % 4 == 0 && i > 0;
        arch->layers[i].mixer = i % 4 == 2 || local ? MAQ_MIXER_ATTENTION : MAQ_MIXER_CONV;
        arch->layers[i].window = local ? hf->window : 0;
    }
}

/* Lara mini: Qwen3-Next without its gates; windows in every other layer with attention. */
static void adapt_lara(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    MAQ_READER_CHECK(r, hf->delta.heads % hf->delta.groups == 0, MAQ_CODE_MODEL_SCAN, "linear_num_value_heads", NULL,
                     "value heads cannot share key heads evenly");
    for (int64_t i = 0; !hf->layer_types && i < arch->num_layers; i++) {
        bool linear = i % 5 == 0 || i % 5 == 2, local = i % 5 == 1 || i % 5 == 4;
        arch->layers[i].mixer = linear ? MAQ_MIXER_DELTA : MAQ_MIXER_ATTENTION;
        arch->layers[i].window = local ? hf->window : 0;
    }
}

#define GPT                                                                                                            \
    "norm: layer, gated: false, biased: true, no_rotation: true, tie_word_embeddings: true, attention_dropout: 0.1, "
#define QWEN3 "norms_of_queries_and_keys: head, head_dim: 128, "

const struct maq_family maq__hf_variant_families[] = {
    {.type = "bitnet",
     .read = maq__hf_read,
     .architectures = "BitNetForCausalLM|BitnetForCausalLM",
     .tables = TABLES(LLAMA_KEYS),
     .facts = "num_key_value_heads: 5, hidden_act: relu2",
     .adapt = adapt_bitnet},
    {.type = "diffllama",
     .read = maq__hf_read,
     .architectures = "DiffLlamaForCausalLM",
     .tables = TABLES(LLAMA_KEYS),
     .adapt = adapt_diffllama},
    {.type = "doge",
     .read = maq__hf_read,
     .architectures = "DogeForCausalLM",
     .tables = TABLES(LLAMA_KEYS, doge_keys),
     .facts = "norms_of_queries_and_keys: head, windows: all",
     .adapt = adapt_doge},
    {.type = "granite_swa",
     .read = maq__hf_read,
     .architectures = "GraniteSWAForCausalLM",
     .tables = TABLES(LLAMA_KEYS),
     .facts = "sinks: true, tie_word_embeddings: true, num_key_value_heads: 4, windows: pattern, full_every: 4, "
              "full_at: 0, sliding_window: 128"},
    {.type = "hyperclovax",
     .read = maq__hf_read,
     .architectures = "HyperCLOVAXForCausalLM",
     .tables = TABLES(LLAMA_KEYS, hyperclovax_keys),
     .facts = "use_post_norm: true",
     .settle = settle_hyperclovax},
    {.type = "jais2",
     .read = maq__hf_read,
     .architectures = "Jais2ForCausalLM",
     .tables = TABLES(LLAMA_KEYS),
     .facts = "norm: layer, gated: false, hidden_act: relu2, attention_bias: true, mlp_bias: true"},
    {.type = "youtu",
     .read = maq__hf_read,
     .architectures = "YoutuForCausalLM",
     .tables = TABLES(maq__hf_bias, maq__hf_dropout, maq__hf_mla),
     .facts = "tie_word_embeddings: true, q_lora_rank: 1536, kv_lora_rank: 512, qk_rope_head_dim: 64, v_head_dim: 128, "
              "qk_nope_head_dim: 128",
     .settle = maq__hf_settle_latent},
    {.type = "persimmon",
     .read = maq__hf_read,
     .architectures = "PersimmonForCausalLM",
     .tables = TABLES(maq__hf_dropout, maq__hf_qk_norm),
     .facts = "norm: layer, gated: false, biased: true, hidden_act: relu2, qk_layernorm: true, "
              "partial_rotary_factor: 0.5",
     .settle = maq__hf_settle_qk_norm},
    {.type = "fuyu",
     .read = maq__hf_read,
     .architectures = "FuyuForCausalLM",
     .tables = TABLES(maq__hf_dropout, maq__hf_qk_norm, fuyu_keys),
     .facts = "norm: layer, gated: false, biased: true, hidden_act: relu2, qk_layernorm: true, "
              "partial_rotary_factor: 0.5, patch_size: 30, num_channels: 3",
     .wraps = true,
     .settle = maq__hf_settle_qk_norm,
     .adapt = adapt_fuyu},
    {.type = "xglm",
     .read = maq__hf_read,
     .architectures = "XGLMForCausalLM",
     .tables = TABLES(maq__hf_dropout, xglm_keys),
     .facts = GPT "dropout: 0.1"},
    {.type = "biogpt",
     .read = maq__hf_read,
     .architectures = "BioGptForCausalLM",
     .tables = TABLES(maq__hf_dropout, bert_dropout_keys),
     .facts =
         GPT "hidden_dropout_prob: 0.1, learned_positions: true, position_offset: 2, max_position_embeddings: 1024"},
    {.type = "openai-gpt",
     .read = maq__hf_read,
     .architectures = "OpenAIGPTLMHeadModel",
     .tables = TABLES(maq__hf_dropout, openai_keys),
     .facts = GPT "resid_pdrop: 0.1, learned_positions: true, n_positions: 512, norms: post_residual, "
                  "no_final_norm: true, expansion: 4"},
    {.type = "ctrl",
     .read = maq__hf_read,
     .architectures = "CTRLLMHeadModel",
     .tables = TABLES(maq__hf_dropout, ctrl_keys),
     .facts = GPT "resid_pdrop: 0.1, biased_head: true"},
    {.type = "gpt_neox_japanese",
     .read = maq__hf_read,
     .architectures = "GPTNeoXJapaneseForCausalLM",
     .tables = TABLES(maq__hf_dropout, japanese_keys),
     .facts = "norm: layer, gated: false, tie_word_embeddings: true, attention_dropout: 0.1, "
              "intermediate_multiple_size: 4",
     .settle = settle_japanese,
     .adapt = adapt_japanese},
    {.type = "modernbert-decoder",
     .read = maq__hf_read,
     .architectures = "ModernBertDecoderForCausalLM",
     .tables = TABLES(maq__hf_bias, maq__hf_dropout, modernbert_keys),
     .facts = "windows: pattern, full_every: 3, full_at: 0, local_attention: 128, decoder_bias: true, "
              "embedding_norm: true, tie_word_embeddings: true",
     .settle = settle_modernbert,
     .adapt = adapt_modernbert},
    {.type = "aria_text",
     .read = maq__hf_read,
     .architectures = "AriaTextForCausalLM",
     .tables = TABLES(LLAMA_KEYS, aria_keys),
     .facts = "moe_num_experts: 8, moe_topk: 2, moe_num_shared_experts: 2"},
    {.type = "granitemoe_swa",
     .read = maq__hf_read,
     .architectures = "GraniteMoeSWAForCausalLM",
     .tables = TABLES(EXPERT_KEYS, granite_shared_keys),
     .facts = "sinks: true, windows: pattern, full_every: 4, full_at: 0, sliding_window: 128, num_local_experts: 8, "
              "num_experts_per_tok: 2"},
    {.type = "flint",
     .read = maq__hf_read,
     .architectures = "FlintForCausalLM",
     .tables = TABLES(EXPERT_KEYS, maq__hf_moe_step),
     .facts = QWEN3 "sinks: true, windows: pattern, full_every: 4, full_at: 1, full_first: 1, full_last: 1, "
                    "num_key_value_heads: 4, num_experts: 256, num_experts_per_tok: 6, moe_intermediate_size: 512, "
                    "shared_expert_intermediate_size: 1024, sliding_window: 513",
     .settle = settle_flint},
    {.type = "kolibri1",
     .read = maq__hf_read,
     .architectures = "Kolibri1ForCausalLM",
     .tables = TABLES(EXPERT_KEYS, shared_width_keys),
     .facts = QWEN3 "norms: sandwich, router_bias: true, windows: pattern, full_every: 5, num_key_value_heads: 4, "
                    "num_experts: 384, num_experts_per_tok: 6, moe_intermediate_size: 512, "
                    "shared_expert_intermediate_size: 512, sliding_window: 513"},
    {.type = "mellum",
     .read = maq__hf_read,
     .architectures = "MellumForCausalLM",
     .tables = TABLES(EXPERT_KEYS),
     .facts = QWEN3 "num_key_value_heads: 4, num_experts: 64, num_experts_per_tok: 8, moe_intermediate_size: 896, "
                    "sliding_window: 1024"},
    {.type = "beam",
     .read = maq__hf_read,
     .architectures = "BeamForCausalLM",
     .tables = TABLES(EXPERT_KEYS),
     .facts = QWEN3 "norms: sandwich, gate: full, router_bias: true, windows: pattern, full_every: 6, full_last: 1, "
                    "num_key_value_heads: 8, num_experts: 256, num_experts_per_tok: 8, moe_intermediate_size: 2560, "
                    "n_group: 8, topk_group: 4, sliding_window: 512",
     .settle = settle_beam,
     .adapt = adapt_beam},
    {.type = "cohere2_moe",
     .read = maq__hf_read,
     .architectures = "Cohere2MoeForCausalLM",
     .tables = TABLES(EXPERT_KEYS, cohere_moe_keys),
     .facts = "branches: parallel, tie_word_embeddings: true, head_dim: 128, windows: pattern, "
              "sliding_window_pattern: 4, sliding_window: 4096, num_experts: 8, num_experts_per_tok: 2",
     .settle = settle_cohere_moe,
     .adapt = adapt_cohere_moe},
    {.type = "axk1",
     .read = maq__hf_read,
     .architectures = "AXK1ForCausalLM",
     .tables = TABLES(LATENT_KEYS),
     .facts = "router_bias: true, first_k_dense_replace: 1, n_shared_experts: 1, n_routed_experts: 192, "
              "kv_lora_rank: 512, q_lora_rank: 1536, qk_rope_head_dim: 64, v_head_dim: 128, qk_nope_head_dim: 128, "
              "n_group: 8, topk_group: 4, num_experts_per_tok: 8, moe_intermediate_size: 2048",
     .settle = settle_axk1,
     .adapt = adapt_axk1},
    {.type = "lfm3",
     .read = maq__hf_read,
     .architectures = "Lfm3ForCausalLM",
     .tables = TABLES(LLAMA_KEYS, lfm3_keys),
     .facts = "tie_word_embeddings: true, head_dim: 128, num_key_value_heads: 4, conv_L_cache: 7, sliding_window: 256, "
              "use_sandwich_norm: true, use_attention_gate: true",
     .settle = settle_lfm3,
     .adapt = adapt_lfm3},
    {.type = "lara_mini",
     .read = maq__hf_read,
     .architectures = "LaraMiniForCausalLM",
     .tables = TABLES(EXPERT_KEYS, maq__hf_delta, shared_width_keys),
     .facts = QWEN3 "tie_word_embeddings: true, num_key_value_heads: 4, num_experts: 128, num_experts_per_tok: 4, "
                    "moe_intermediate_size: 512, shared_expert_intermediate_size: 512, sliding_window: 512, "
                    "linear_num_value_heads: 16, linear_num_key_heads: 8, linear_key_head_dim: 128, "
                    "linear_value_head_dim: 128, linear_conv_kernel_dim: 4",
     .adapt = adapt_lara},
    {.type = NULL},
};
