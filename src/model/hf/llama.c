/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llama.c - the Hugging Face families that come from Llama: what their classes in `transformers` fix, and which
 * keys they read. gpt.c has those that come from GPT-2.
 *
 * A new family is a row of the table at the end, whose facts say in words what its class fixes (class_facts.c); older ones have a preset of a few
 * lines. Defaults follow the configuration classes; the sizes that every model has have none: a config.json states them.
 */
#include <inttypes.h>

#include "base/str.h"
#include "model/codes.h"
#include "model/hf/family_rows.h"

void maq__hf_preset_llama(struct maq_hf *hf)
{
    *hf = (struct maq_hf){.norm = MAQ_NORM_RMS,
                          .gated = true,
                          .rotary_factor = 1.0,
                          .sparse_step = 1,
                          .layer_freq = 1,
                          .full_at = -1,
                          .norm_before = true};
}

static void preset_mistral(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->window_rule = MAQ_HF_WINDOW_ALL;
}

static void preset_qwen2(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->qkv_bias = true;
    hf->window_rule = MAQ_HF_WINDOW_UPPER;
    hf->max_window_layers = 28;
}

static void preset_qwen2_moe(struct maq_hf *hf)
{
    preset_qwen2(hf);
    hf->shared_gate = true;
}

static void preset_qwen3(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->qk_norm = MAQ_QK_NORM_HEAD;
    hf->head_dim = 128;
    hf->window_rule = MAQ_HF_WINDOW_UPPER;
    hf->max_window_layers = 28;
}

void maq__hf_preset_delta(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->qk_norm = MAQ_QK_NORM_HEAD;
    hf->head_dim = 256;
    hf->rotary_factor = 0.25;
    hf->gate = MAQ_GATE_WITH_QUERIES;
    hf->shared_gate = true;
    hf->full_interval = 4;
    hf->delta =
        (struct maq_arch_ssm){.heads = 32, .head_dim = 128, .groups = 16, .state = 128, .conv_kernel = 4, .chunk = 64};
}

static void preset_gpt_oss(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->attention_bias = true;
    hf->head_dim = 64;
    hf->sinks = true;
    hf->router_bias = true;
    hf->expert_bias = true;
    hf->expert_clamped = true; /* swiglu_limit */
    hf->window_rule = MAQ_HF_WINDOW_EVEN;
}

static void preset_llama4(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->use_qk_norm = true;
    hf->qk_norm = MAQ_QK_NORM_PLAIN;
    hf->shared_count = 1;
    hf->window_rule = MAQ_HF_WINDOW_CHUNKED;
    hf->chunk = 8192;
    hf->window_pattern = 4;
}

static void preset_gemma(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->head_dim = 256;
    hf->tie = true;
}

static void preset_gemma2(struct maq_hf *hf)
{
    preset_gemma(hf);
    hf->norm_place = MAQ_NORM_SANDWICH;
    hf->window_rule = MAQ_HF_WINDOW_EVEN;
}

static void preset_gemma3(struct maq_hf *hf)
{
    preset_gemma(hf);
    hf->norm_place = MAQ_NORM_SANDWICH;
    hf->qk_norm = MAQ_QK_NORM_HEAD;
    hf->window_rule = MAQ_HF_WINDOW_PATTERN;
    hf->window_pattern = 6;
    /* Gemma3TextConfig's own: a text_config inside another is written without what is equal to the defaults of its class */
    hf->vocab = 262208;
    hf->heads = 8;
    hf->kv_heads = 4;
    hf->max_pos = 131072;
    hf->window = 4096;
}

static void preset_glm4_moe(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->out_bias_never = true;
    hf->qk_norm = MAQ_QK_NORM_HEAD;
    hf->router_bias = true;
    hf->rotary_factor = 0.5;
}

static void preset_glm(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->attention_bias = true;
    hf->out_bias_never = true;
    hf->rotary_factor = 0.5;
}

static void preset_glm4(struct maq_hf *hf)
{
    preset_glm(hf);
    hf->attention_bias = false;
    hf->norm_place = MAQ_NORM_SANDWICH;
}

static void preset_chatglm(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->qkv_bias = true;
    hf->rotary_factor = 0.5;
}

static void preset_grok(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->norm_place = MAQ_NORM_SANDWICH;
    hf->tie = true;
}

static void preset_olmo2(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->norm_place = MAQ_NORM_POST_BRANCH;
    hf->qk_norm = MAQ_QK_NORM_WIDE;
}

static void preset_olmo3(struct maq_hf *hf)
{
    preset_olmo2(hf);
    hf->window_rule = MAQ_HF_WINDOW_PATTERN;
    hf->window_pattern = 4;
}

static void preset_exaone4(struct maq_hf *hf)
{
    preset_olmo3(hf);
    hf->qk_norm = MAQ_QK_NORM_HEAD;
}

static void preset_seed_oss(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->head_dim = 128;
    hf->attention_bias = true;
    hf->out_bias_never = true;
}

static void preset_smollm3(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->tie = true;
    hf->no_rope_interval = 4;
}

static void preset_ernie(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->tie = true;
    hf->router_bias = true;
    hf->moe_end = -1;
}

static void preset_ernie_dense(struct maq_hf *hf)
{
    preset_ernie(hf);
    hf->head_dim = 128;
}

static void preset_minimax_m2(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->head_dim = 128;
    hf->qk_norm = MAQ_QK_NORM_WIDE;
    hf->rotary_dim = 64;
    hf->router_bias = true;
}

static void preset_dots1(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->qk_norm = MAQ_QK_NORM_HEAD;
    hf->router_bias = true;
    hf->use_window = true;
    hf->window_rule = MAQ_HF_WINDOW_UPPER;
    hf->max_window_layers = 62;
}

static void preset_internlm(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->bias = true;
}

int64_t maq__hf_scan_width(const struct maq_hf *hf)
{
    return hf->scan_expand > 0 ? (int64_t)(hf->scan_expand * (double)hf->hidden) : 2 * hf->hidden;
}

/* The key `bias` of InternLM means the attention projections. */
static void settle_internlm(struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)r;
    hf->attention_bias = hf->bias;
    hf->bias = false;
}

/* The layers that see everything do not rotate, where others have a window. */
void maq__hf_settle_exaone4(struct maq_hf *hf, struct maq_model_reader *r)
{
    int64_t every = hf->window_pattern;
    struct maq_str letters = hf->window_letters; /* "LLLG", or "4" */
    if (letters.len > 0 && !maq_str_to_i64(&every, letters))
        every = (int64_t)letters.len;
    if (MAQ_READER_CHECK(r, every >= 1, MAQ_CODE_MODEL_PATTERN, "sliding_window_pattern", NULL,
                         "every how many layers one sees everything is a number from 1"))
        hf->window_pattern = every;
    if (hf->window == 0)
        hf->window_rule = MAQ_HF_WINDOW_NONE;
    else
        hf->no_rope_interval = hf->window_pattern;
}

/* The class projects attention's output from hidden features, whatever the heads have. */
static void settle_helium(struct maq_hf *hf, struct maq_model_reader *r)
{
    MAQ_READER_CHECK(r, hf->heads * hf->head_dim == hf->hidden, MAQ_CODE_MODEL_HEAD_WIDTH, "head_dim", NULL,
                     "%" PRId64 " heads of %" PRId64 " do not make hidden_size %" PRId64
                     ", which helium's output projection needs",
                     hf->heads, hf->head_dim, hf->hidden);
}

/* use_bias is of all linears but those of routed experts, and of the head of models with experts; experts end at moe_layer_end_index, -1 for the last layer. */
static void settle_ernie(struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)r;
    hf->bias = hf->mlp_bias = hf->use_bias; /* not of routed experts */
    hf->head_bias = hf->use_bias && hf->experts > 0;
    hf->dense_tail = hf->moe_end >= 0 && hf->moe_end < hf->layers - 1 ? hf->layers - 1 - hf->moe_end : 0;
}

/* use_qk_norm decides where a family has the key. */
void maq__hf_settle_qk_norm(struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)r;
    if (!hf->use_qk_norm)
        hf->qk_norm = MAQ_QK_NORM_NONE;
    else if (hf->qk_norm == MAQ_QK_NORM_NONE)
        hf->qk_norm = MAQ_QK_NORM_HEAD;
}

void maq__hf_settle_latent(struct maq_hf *hf, struct maq_model_reader *r)
{
    MAQ_READER_CHECK(r, hf->kv_lora > 0 && hf->nope_dim > 0 && hf->v_dim > 0, MAQ_CODE_MODEL_LATENT,
                     "kv_lora_rank|qk_nope_head_dim|v_head_dim", NULL,
                     "latent attention needs kv_lora_rank, qk_nope_head_dim and v_head_dim");
}

static void settle_deepseek(struct maq_hf *hf, struct maq_model_reader *r)
{
    hf->router_bias = maq_str_is(hf->topk_method, "noaux_tc");
    maq__hf_settle_latent(hf, r);
}

#define LLAMA_TABLES TABLES(LLAMA_KEYS)
#define DEEPSEEK_TABLES TABLES(LATENT_KEYS)

static const struct maq_family families[] = {
    {.type = "llama|granite|code_llama|aquila|Yi",
     .read = maq__hf_read,
     .architectures = "LlamaForCausalLM|GraniteForCausalLM|"
                      "AquilaForCausalLM|YiForCausalLM",
     .tables = LLAMA_TABLES,
     .preset = maq__hf_preset_llama},
    {.type = "helium",
     .read = maq__hf_read,
     .architectures = "HeliumForCausalLM",
     .tables = LLAMA_TABLES,
     .facts = "head_dim: 128, num_key_value_heads: 20",
     .settle = settle_helium},
    {.type = "emu3|emu3_text_model",
     .read = maq__hf_read,
     .architectures = "Emu3ForCausalLM|Emu3ForConditionalGeneration",
     .tables = LLAMA_TABLES,
     .facts = "num_key_value_heads: 8"},
    {.type = "iquestcoder",
     .read = maq__hf_read,
     .architectures = "IQuestCoderForCausalLM",
     .tables = LLAMA_TABLES,
     .facts = "head_dim: 128, num_key_value_heads: 8"},
    {.type = "phi3",
     .read = maq__hf_read,
     .architectures = "Phi3ForCausalLM",
     .tables = LLAMA_TABLES,
     .preset = preset_mistral},
    {.type = "ministral3",
     .read = maq__hf_read,
     .architectures = "Ministral3ForCausalLM",
     .tables = LLAMA_TABLES,
     .facts = "head_dim: 128, num_key_value_heads: 8",
     .preset = preset_mistral},
    {.type = "mistral|ministral",
     .read = maq__hf_read,
     .architectures = "MistralForCausalLM|MinistralForCausalLM",
     .tables = LLAMA_TABLES,
     .facts = "num_key_value_heads: 8",
     .preset = preset_mistral},
    {.type = "mixtral",
     .read = maq__hf_read,
     .architectures = "MixtralForCausalLM",
     .tables = TABLES(maq__hf_bias, maq__hf_window, maq__hf_dropout, maq__hf_moe),
     .facts = "num_key_value_heads: 8, num_local_experts: 8, num_experts_per_tok: 2",
     .preset = preset_mistral},
    {.type = "qwen2|qwen2_vl|qwen2_vl_text|qwen2_5_vl|qwen2_5_vl_text",
     .read = maq__hf_read,
     .architectures = "Qwen2ForCausalLM|Qwen2VLForConditionalGeneration|Qwen2_5_VLForConditionalGeneration",
     .tables = LLAMA_TABLES,
     .facts = "num_key_value_heads: 32",
     .preset = preset_qwen2},
    {.type = "qwen2_moe",
     .read = maq__hf_read,
     .architectures = "Qwen2MoeForCausalLM",
     .tables = TABLES(maq__hf_bias, maq__hf_window, maq__hf_dropout, maq__hf_moe, maq__hf_moe_step),
     .facts = "num_key_value_heads: 16, num_experts: 60, num_experts_per_tok: 4, moe_intermediate_size: 1408, "
              "shared_expert_intermediate_size: 5632",
     .preset = preset_qwen2_moe},
    {.type = "qwen3|qwen3_vl|qwen3_vl_text",
     .read = maq__hf_read,
     .architectures = "Qwen3ForCausalLM|Qwen3VLForConditionalGeneration",
     .tables = LLAMA_TABLES,
     .facts = "num_key_value_heads: 32",
     .preset = preset_qwen3},
    {.type = "qwen3_moe|qwen3_vl_moe|qwen3_vl_moe_text",
     .read = maq__hf_read,
     .architectures = "Qwen3MoeForCausalLM|Qwen3VLMoeForConditionalGeneration",
     .tables = TABLES(maq__hf_bias, maq__hf_window, maq__hf_dropout, maq__hf_moe, maq__hf_moe_step),
     .facts = "norms_of_queries_and_keys: head, windows: upper, max_window_layers: 28, num_key_value_heads: 4, "
              "num_experts: 128, num_experts_per_tok: 8, moe_intermediate_size: 768"},
    {.type = "qwen3_next",
     .read = maq__hf_read,
     .architectures = "Qwen3NextForCausalLM",
     .tables = TABLES(maq__hf_bias, maq__hf_window, maq__hf_dropout, maq__hf_moe, maq__hf_moe_step, maq__hf_delta),
     .facts = "num_key_value_heads: 2, num_experts: 512, num_experts_per_tok: 10, moe_intermediate_size: 512, "
              "shared_expert_intermediate_size: 512",
     .preset = maq__hf_preset_delta,
     .adapt = maq__hf_adapt_delta},
    {.type = "deepseek_v3|kimi_k2",
     .read = maq__hf_read,
     .architectures = "DeepseekV3ForCausalLM",
     .tables = DEEPSEEK_TABLES,
     .facts =
         "topk_method: noaux_tc, n_routed_experts: 256, num_experts_per_tok: 8, moe_intermediate_size: 2048, "
         "n_shared_experts: 1, first_k_dense_replace: 3, kv_lora_rank: 512, q_lora_rank: 1536, qk_nope_head_dim: 128, "
         "qk_rope_head_dim: 64, v_head_dim: 128, n_group: 8, topk_group: 4",
     .settle = settle_deepseek},
    {.type = "deepseek_v2",
     .read = maq__hf_read,
     .architectures = "DeepseekV2ForCausalLM",
     .tables = DEEPSEEK_TABLES,
     .facts = "n_routed_experts: 64, moe_intermediate_size: 1407, n_shared_experts: 2, kv_lora_rank: 512, "
              "q_lora_rank: 1536, qk_nope_head_dim: 128, qk_rope_head_dim: 64, v_head_dim: 128, topk_method: greedy",
     .settle = settle_deepseek},
    {.type = "sarvam_mla",
     .read = maq__hf_read,
     .architectures = "SarvamMLAForCausalLM",
     .tables = DEEPSEEK_TABLES,
     .facts = "router_bias: true, n_routed_experts: 128, num_experts_per_tok: 8, moe_intermediate_size: 2048, "
              "n_shared_experts: 1, first_k_dense_replace: 1, kv_lora_rank: 512, qk_nope_head_dim: 128, "
              "qk_rope_head_dim: 64, v_head_dim: 128",
     .settle = maq__hf_settle_latent},
    {.type = "gpt_oss",
     .read = maq__hf_read,
     .architectures = "GptOssForCausalLM",
     .tables = TABLES(maq__hf_bias, maq__hf_window, maq__hf_dropout, maq__hf_moe),
     .facts = "num_key_value_heads: 8, num_local_experts: 128, num_experts_per_tok: 4",
     .preset = preset_gpt_oss},
    {.type = "llama4_text|llama4",
     .read = maq__hf_read,
     .architectures = "Llama4ForCausalLM|Llama4ForConditionalGeneration",
     .tables = TABLES(maq__hf_bias, maq__hf_dropout, maq__hf_moe, maq__hf_qk_norm, maq__hf_llama4),
     .facts = "num_key_value_heads: 8, head_dim: 128, num_local_experts: 16, num_experts_per_tok: 1, "
              "intermediate_size_mlp: 16384",
     .preset = preset_llama4,
     .settle = maq__hf_settle_qk_norm},
    {.type = "gemma",
     .read = maq__hf_read,
     .architectures = "GemmaForCausalLM",
     .tables = LLAMA_TABLES,
     .facts = "num_key_value_heads: 16",
     .preset = preset_gemma},
    {.type = "gemma2",
     .read = maq__hf_read,
     .architectures = "Gemma2ForCausalLM",
     .tables = LLAMA_TABLES,
     .facts = "num_key_value_heads: 4",
     .preset = preset_gemma2},
    {.type = "gemma3_text|gemma3",
     .read = maq__hf_read,
     .architectures = "Gemma3ForCausalLM|Gemma3ForConditionalGeneration",
     .tables = TABLES(maq__hf_bias, maq__hf_window, maq__hf_dropout, maq__hf_gemma3),
     .preset = preset_gemma3},
    {.type = "glm4_moe|glm4v_moe|glm4v_moe_text",
     .read = maq__hf_read,
     .architectures = "Glm4MoeForCausalLM|Glm4vMoeForConditionalGeneration",
     .tables =
         TABLES(maq__hf_bias, maq__hf_dropout, maq__hf_qk_norm, maq__hf_moe, maq__hf_moe_dense, maq__hf_mlp_types),
     .preset = preset_glm4_moe,
     .facts = "head_dim_rounded: true, num_key_value_heads: 8, n_routed_experts: 128, n_shared_experts: 1, "
              "num_experts_per_tok: 8, moe_intermediate_size: 1408, first_k_dense_replace: 1",
     .settle = maq__hf_settle_qk_norm},
    {.type = "sarvam_moe",
     .read = maq__hf_read,
     .architectures = "SarvamMoEForCausalLM",
     .tables =
         TABLES(maq__hf_bias, maq__hf_dropout, maq__hf_qk_norm, maq__hf_moe, maq__hf_moe_dense, maq__hf_mlp_types),
     .preset = preset_glm4_moe,
     .facts =
         "head_dim: 64, num_key_value_heads: 4, use_qk_norm: true, partial_rotary_factor: 1, n_routed_experts: 128, "
         "n_shared_experts: 1, num_experts_per_tok: 6, moe_intermediate_size: 1024, first_k_dense_replace: 1",
     .settle = maq__hf_settle_qk_norm},
    {.type = "glm",
     .read = maq__hf_read,
     .architectures = "GlmForCausalLM",
     .tables = LLAMA_TABLES,
     .facts = "num_key_value_heads: 2, head_dim: 128",
     .preset = preset_glm},
    {.type = "glm4|glm4v|glm4v_text",
     .read = maq__hf_read,
     .architectures = "Glm4ForCausalLM|Glm4vForConditionalGeneration",
     .tables = LLAMA_TABLES,
     .facts = "num_key_value_heads: 2, head_dim: 128, attention_bias: true",
     .preset = preset_glm4},
    {.type = "chatglm",
     .read = maq__hf_read,
     .architectures = "ChatGLMModel|ChatGLMForConditionalGeneration",
     .tables = LLAMA_TABLES,
     .preset = preset_chatglm},
    {.type = "grok-1|grok1",
     .read = maq__hf_read,
     .architectures = "Grok1ForCausalLM|Grok1ModelForCausalLM",
     .tables = TABLES(maq__hf_bias, maq__hf_dropout, maq__hf_moe),
     .preset = preset_grok},
    {.type = "olmo2",
     .read = maq__hf_read,
     .architectures = "Olmo2ForCausalLM",
     .tables = LLAMA_TABLES,
     .preset = preset_olmo2},
    {.type = "olmo3",
     .read = maq__hf_read,
     .architectures = "Olmo3ForCausalLM",
     .tables = LLAMA_TABLES,
     .preset = preset_olmo3},
    {.type = "exaone4",
     .read = maq__hf_read,
     .architectures = "Exaone4ForCausalLM",
     .tables = TABLES(maq__hf_window, maq__hf_dropout, maq__hf_exaone4),
     .facts = "num_key_value_heads: 32",
     .preset = preset_exaone4,
     .settle = maq__hf_settle_exaone4},
    {.type = "seed_oss",
     .read = maq__hf_read,
     .architectures = "SeedOssForCausalLM",
     .tables = TABLES(maq__hf_bias, maq__hf_dropout, maq__hf_seed_oss),
     .facts = "num_key_value_heads: 8",
     .preset = preset_seed_oss},
    {.type = "smollm3",
     .read = maq__hf_read,
     .architectures = "SmolLM3ForCausalLM",
     .tables = TABLES(maq__hf_bias, maq__hf_window, maq__hf_dropout, maq__hf_smollm3),
     .facts = "num_key_value_heads: 4",
     .preset = preset_smollm3},
    {.type = "ernie4_5",
     .read = maq__hf_read,
     .architectures = "Ernie4_5ForCausalLM",
     .tables = TABLES(maq__hf_dropout, maq__hf_ernie),
     .facts = "num_key_value_heads: 2",
     .preset = preset_ernie_dense,
     .settle = settle_ernie},
    {.type = "ernie4_5_moe",
     .read = maq__hf_read,
     .architectures = "Ernie4_5_MoeForCausalLM",
     .tables = TABLES(maq__hf_dropout, maq__hf_moe, maq__hf_ernie),
     .facts = "num_key_value_heads: 4, moe_num_experts: 64, moe_k: 6, moe_intermediate_size: 1536, "
              "moe_num_shared_experts: 2, moe_layer_start_index: 1",
     .preset = preset_ernie,
     .settle = settle_ernie},
    {.type = "minimax_m2",
     .read = maq__hf_read,
     .architectures = "MiniMaxM2ForCausalLM",
     .tables = TABLES(maq__hf_dropout, maq__hf_moe, maq__hf_gptj),
     .facts = "num_key_value_heads: 8, num_local_experts: 256, num_experts_per_tok: 8",
     .preset = preset_minimax_m2},
    {.type = "dots1",
     .read = maq__hf_read,
     .architectures = "Dots1ForCausalLM",
     .tables = TABLES(maq__hf_bias, maq__hf_window, maq__hf_dropout, maq__hf_moe, maq__hf_moe_dense),
     .facts = "num_key_value_heads: 32, moe_intermediate_size: 1408",
     .preset = preset_dots1},
    {.type = "granitemoe",
     .read = maq__hf_read,
     .architectures = "GraniteMoeForCausalLM",
     .tables = TABLES(maq__hf_bias, maq__hf_dropout, maq__hf_moe),
     .facts = "num_local_experts: 8, num_experts_per_tok: 2",
     .preset = maq__hf_preset_llama},
    {.type = "internlm",
     .read = maq__hf_read,
     .architectures = "InternLMForCausalLM",
     .tables = LLAMA_TABLES,
     .preset = preset_internlm,
     .settle = settle_internlm},
    {.type = "internlm2",
     .read = maq__hf_read,
     .architectures = "InternLM2ForCausalLM",
     .tables = LLAMA_TABLES,
     .preset = maq__hf_preset_llama},
};

const struct maq_family *maq__hf_family(size_t i)
{
    const struct maq_family *const lists[] = {
        maq__hf_gpt_families,       maq__hf_dense_families,         maq__hf_expert_families,
        maq__hf_hybrid_families,    maq__hf_variant_families,       maq__hf_sparse_families,
        maq__hf_recurrent_families, maq__hf_unlike_layers_families, maq__hf_encoder_families};
    if (i < sizeof families / sizeof *families)
        return &families[i];
    i -= sizeof families / sizeof *families;
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++)
        for (const struct maq_family *f = lists[l]; f->type; f++)
            if (i-- == 0)
                return f;
    return NULL;
}
