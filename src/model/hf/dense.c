/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dense.c - further Hugging Face families without experts and with softmax attention in every layer: what the class of each in
 * `transformers`, or the modelling file beside its weights, fixes over Llama or GPT-2. How a family is written is in llama.c.
 */
#include <inttypes.h>

#include "base/str.h"
#include "model/codes.h"
#include "model/hf/family_rows.h"

/* Apertus: norms on queries and keys, a plain MLP whose nonlinearity has two learned numbers (xIELU). */
static void preset_apertus(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->gated = false;
    hf->qk_norm = MAQ_QK_NORM_HEAD;
    hf->use_qk_norm = true;
    hf->act_params = 2;
}

static void settle_apertus(struct maq_hf *hf, struct maq_model_reader *r)
{
    maq__hf_settle_qk_norm(hf, r);
    MAQ_READER_CHECK(r, !hf->post_norm, MAQ_CODE_MODEL_VALUE, "post_norm", NULL,
                     "norms behind the branches are not modelled for apertus");
}

static const struct maq_field apertus_keys[] = {BOOL(use_qk_norm, "qk_norm", .doc = "norms on queries and keys"),
                                                BOOL(post_norm, "post_norm", .doc = "norms behind the branches"),
                                                MAQ_FIELD_END};

/* Arcee: a plain MLP with squared ReLU. */
static void preset_arcee(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->gated = false;
    hf->act = MAQ_HF_ACT_RELU2;
}

/* nanochat: norms without weights, one more behind the embedding, on queries and keys too; a plain MLP with squared ReLU. */
static void preset_nanochat(struct maq_hf *hf)
{
    preset_arcee(hf);
    hf->norm = MAQ_NORM_PLAIN;
    hf->qk_norm = MAQ_QK_NORM_PLAIN;
    hf->embedding_norm = true;
}

/* Code World Model: every 4th layer sees everything. */
static void preset_cwm(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->head_dim = 128;
    hf->window = 8192;
    hf->window_rule = MAQ_HF_WINDOW_PATTERN;
    hf->window_pattern = 4;
}

/* VaultGemma: Gemma 2 without the norms behind its branches. */
static void preset_vaultgemma(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->head_dim = 256;
    hf->tie = true;
    hf->window_rule = MAQ_HF_WINDOW_EVEN;
}

/* MiniCPM: a tied Llama whose activations are scaled. */
static void preset_minicpm(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->tie = true;
}

/* MiniCPM 3: latent attention over an MLP; values are as wide as hidden / heads. */
static void settle_minicpm3(struct maq_hf *hf, struct maq_model_reader *r)
{
    if (hf->v_dim == 0)
        hf->v_dim = hf->hidden / hf->heads;
    maq__hf_settle_latent(hf, r);
}

/* Qwen (2023): biases in query, key and value; the key of the MLP's width counts gate and up together. */
static void preset_qwen(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->qkv_bias = true;
    hf->no_bias = true;
}

static void settle_qwen(struct maq_hf *hf, struct maq_model_reader *r)
{
    hf->bias = !hf->no_bias;
    MAQ_READER_CHECK(r, hf->ffn % 2 == 0, MAQ_CODE_MODEL_VALUE, "intermediate_size", NULL,
                     "intermediate_size of qwen counts gate and up together, and is even");
    hf->ffn /= 2;
}

static const struct maq_field qwen_keys[] = {
    BOOL(no_bias, "no_bias", .doc = "no biases but those of query, key and value"),
    REAL(attention_dropout, "attn_dropout_prob", .min = 0, .max = 1, .doc = "dropout on attention probabilities"),
    REAL(ignored_dropout, "emb_dropout_prob", .min = 0, .max = 1, .doc = "accepted, as embedding_dropout"),
    MAQ_FIELD_END};

/* StableLM: LayerNorm, a quarter of each head rotated; attention and MLP side by side behind one norm in the 12B model. */
static void preset_stablelm(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->norm = MAQ_NORM_LAYER;
    hf->rotary_factor = 0.25;
}

static void settle_stablelm(struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)r;
    if (hf->use_qk_norm)
        hf->qk_norm = MAQ_QK_NORM_EACH;
    if (hf->parallel_residual)
        hf->residual = MAQ_RESIDUAL_PARALLEL;
}

static const struct maq_field stablelm_keys[] = {
    BOOL(qkv_bias, "use_qkv_bias", .doc = "biases in the query, key and value projections"),
    REAL(rotary_factor, "rope_pct", .min = 0, .max = 1, .doc = "share of a head that is rotated"), MAQ_FIELD_END};

/* GPT-Neo: GPT-2 without biases in query, key and value; attention_layers says which layers see a window. */
static void preset_gpt_neo(struct maq_hf *hf)
{
    *hf = (struct maq_hf){.norm = MAQ_NORM_LAYER,
                          .sparse_step = 1,
                          .layer_freq = 1,
                          .norm_before = true,
                          .expansion = 4.0,
                          .mlp_bias = true,
                          .out_bias = true,
                          .tie = true,
                          .learned_positions = true,
                          .no_rope = true,
                          .window = 256};
}

static const struct maq_field gpt_neo_keys[] = {
    I64(heads, "num_heads", .min = 1, .max = 65536, .doc = "query heads"),
    I64(window, "window_size", .min = 1, .max = 1e12, .doc = "tokens a query of a local layer sees"),
    NODE(attention_words, "attention_layers", .doc = "global or local for each layer"),
    NODE(attn_config, "attention_types",
         .doc = "the same as lists that repeat; without attention_layers every 2nd is local"),
    REAL(attention_dropout, "attention_dropout", .min = 0, .max = 1, .doc = "dropout on attention probabilities"),
    REAL(hidden_dropout, "resid_dropout", .min = 0, .max = 1, .doc = "dropout before residual additions"),
    REAL(ignored_dropout, "embed_dropout", .min = 0, .max = 1, .doc = "accepted, as embedding_dropout"),
    MAQ_FIELD_END};

static void adapt_gpt_neo(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    const struct maq_node *list = hf->attention_words;
    bool ok = !list || (list->kind == MAQ_NODE_SEQ && (int64_t)list->count == arch->num_layers);
    struct maq_node *c = list && ok ? list->first : NULL;
    for (int64_t i = 0; i < arch->num_layers; i++) {
        bool local = c ? maq_str_is(c->text, "local") : i % 2 == 1;
        arch->layers[i].window = local ? hf->window : 0;
        if (!c)
            continue;
        c->used = true;
        ok &= local || maq_str_is(c->text, "global");
        c = c->next;
    }
    if (hf->attn_config)
        maq_node_use_all(hf->attn_config);
    MAQ_READER_CHECK(r, ok, MAQ_CODE_MODEL_LAYER_LIST, "attention_layers", "global or local for each layer",
                     "attention_layers does not fit %" PRId64 " layers", arch->num_layers);
}

/* MiMo: Qwen 2 with multi-token prediction (modeling_mimo.py of XiaomiMiMo/MiMo-7B-Base). */
static void preset_mimo(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->qkv_bias = true;
    hf->out_bias_never = true;
}

static const struct maq_field mimo_keys[] = {
    I64(mtp_layers, "num_nextn_predict_layers", .min = 0, .max = 64, .doc = "multi-token-prediction depths"),
    MAQ_FIELD_END};

/* OLMo: LayerNorm without weight or bias. */
static void preset_olmo(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->norm = MAQ_NORM_PLAIN;
}

/* StarCoder 2: LayerNorm, a plain MLP, biases everywhere by use_bias. */
static void preset_starcoder2(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->norm = MAQ_NORM_LAYER;
    hf->gated = false;
    hf->use_bias = true;
    hf->tie = true;
    hf->window_rule = MAQ_HF_WINDOW_ALL;
}

static void settle_starcoder2(struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)r;
    hf->bias = hf->use_bias;
}

static const struct maq_field starcoder2_keys[] = {BOOL(use_bias, "use_bias", .doc = "biases in all linears"),
                                                   MAQ_FIELD_END};

/* SantaCoder and StarCoder: GPT-2 with one key and value head. */
static void preset_bigcode(struct maq_hf *hf)
{
    *hf = (struct maq_hf){.norm = MAQ_NORM_LAYER,
                          .sparse_step = 1,
                          .layer_freq = 1,
                          .norm_before = true,
                          .expansion = 4.0,
                          .bias = true,
                          .tie = true,
                          .learned_positions = true,
                          .no_rope = true,
                          .multi_query = true,
                          .attention_dropout = 0.1,
                          .hidden_dropout = 0.1};
}

static void settle_bigcode(struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)r;
    hf->kv_heads = hf->multi_query ? 1 : hf->heads;
}

static const struct maq_field bigcode_keys[] = {BOOL(multi_query, "multi_query", .doc = "one key and value head"),
                                                MAQ_FIELD_END};

/* Command R: attention and MLP side by side behind one norm without bias; norms on queries and keys have weights of every head. */
static void preset_cohere(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->norm = MAQ_NORM_LAYER_NO_BIAS;
    hf->residual = MAQ_RESIDUAL_PARALLEL;
    hf->tie = true;
}

static void settle_cohere(struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)r;
    hf->qk_norm = hf->use_qk_norm ? MAQ_QK_NORM_WIDE : MAQ_QK_NORM_NONE;
}

/* Command R7B and A: every 4th layer sees everything and does not rotate. */
static void preset_cohere2(struct maq_hf *hf)
{
    preset_cohere(hf);
    hf->window_rule = MAQ_HF_WINDOW_PATTERN;
    hf->window_pattern = 4;
    hf->no_rope_interval = 4;
}

static void settle_cohere2(struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)r;
    hf->no_rope_interval = hf->window_pattern;
}

/* Baichuan 2: the 13B model (hidden size 5,120) has linear position biases instead of rotation, and no key says so. */
static void settle_baichuan(struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)r;
    hf->no_rope = hf->hidden == 5120;
}

static const struct maq_field baichuan_keys[] = {
    I64(max_pos, "model_max_length", .min = 1, .max = 1e12, .doc = "positions the model was made for"), MAQ_FIELD_END};

/* LLaDA: a Llama that sees the whole sequence, in the words of OLMo's first releases. */
static const struct maq_field llada_keys[] = {
    I64(kv_heads, "n_kv_heads", COUNT, .doc = "key and value heads"),
    I64(ffn, "mlp_hidden_size", WIDTH, .doc = "width of the MLP"),
    I64(vocab, "embedding_size", .min = 1, .max = 134217728, .doc = "rows of the token table"),
    BOOL(tie, "weight_tying", .doc = "the head uses the token table"),
    BOOL(bias, "include_bias", .doc = "biases in all linears"),
    BOOL(qkv_bias, "include_qkv_bias", .doc = "biases in the query, key and value projections"),
    MAQ_FIELD_END};

static void adapt_llada(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)hf;
    (void)r;
    arch->attention.bidirectional = true;
}

#define LLAMA_TABLES maq__hf_bias, maq__hf_window, maq__hf_dropout

const struct maq_family maq__hf_dense_families[] = {
    {.type = "apertus|apertus1p5_text",
     .read = maq__hf_read,
     .architectures = "ApertusForCausalLM|Apertus1p5TextForCausalLM",
     .tables = TABLES(LLAMA_TABLES, apertus_keys),
     .preset = preset_apertus,
     .settle = settle_apertus},
    {.type = "arcee",
     .read = maq__hf_read,
     .architectures = "ArceeForCausalLM",
     .tables = TABLES(LLAMA_TABLES),
     .preset = preset_arcee},
    {.type = "nanochat",
     .read = maq__hf_read,
     .architectures = "NanoChatForCausalLM",
     .tables = TABLES(LLAMA_TABLES),
     .preset = preset_nanochat},
    {.type = "cwm",
     .read = maq__hf_read,
     .architectures = "CwmForCausalLM",
     .tables = TABLES(LLAMA_TABLES),
     .facts = "num_key_value_heads: 8",
     .preset = preset_cwm},
    {.type = "vaultgemma",
     .read = maq__hf_read,
     .architectures = "VaultGemmaForCausalLM",
     .tables = TABLES(LLAMA_TABLES),
     .facts = "num_key_value_heads: 4",
     .preset = preset_vaultgemma},
    {.type = "minicpm",
     .read = maq__hf_read,
     .architectures = "MiniCPMForCausalLM",
     .tables = TABLES(LLAMA_TABLES),
     .preset = preset_minicpm},
    {.type = "minicpm3",
     .read = maq__hf_read,
     .architectures = "MiniCPM3ForCausalLM",
     .tables = TABLES(LLAMA_TABLES, maq__hf_mla),
     .facts = "kv_lora_rank: 256, q_lora_rank: 768, qk_nope_head_dim: 64, qk_rope_head_dim: 32",
     .preset = preset_minicpm,
     .settle = settle_minicpm3},
    {.type = "qwen",
     .read = maq__hf_read,
     .architectures = "QWenLMHeadModel",
     .tables = TABLES(maq__hf_dropout, qwen_keys),
     .preset = preset_qwen,
     .settle = settle_qwen},
    {.type = "stablelm|stablelm_epoch",
     .read = maq__hf_read,
     .architectures = "StableLmForCausalLM|StableLMEpochForCausalLM",
     .tables = TABLES(maq__hf_dropout, maq__hf_qk_norm, maq__hf_neox, stablelm_keys),
     .facts = "num_key_value_heads: 32",
     .preset = preset_stablelm,
     .settle = settle_stablelm},
    {.type = "gpt_neo",
     .read = maq__hf_read,
     .architectures = "GPTNeoForCausalLM",
     .tables = TABLES(gpt_neo_keys),
     .preset = preset_gpt_neo,
     .adapt = adapt_gpt_neo},
    {.type = "mimo",
     .read = maq__hf_read,
     .architectures = "MiMoForCausalLM",
     .tables = TABLES(LLAMA_TABLES, mimo_keys),
     .preset = preset_mimo},
    {.type = "olmo",
     .read = maq__hf_read,
     .architectures = "OlmoForCausalLM",
     .tables = TABLES(LLAMA_TABLES),
     .preset = preset_olmo},
    {.type = "starcoder2",
     .read = maq__hf_read,
     .architectures = "Starcoder2ForCausalLM",
     .tables = TABLES(LLAMA_TABLES, starcoder2_keys),
     .facts = "num_key_value_heads: 2",
     .preset = preset_starcoder2,
     .settle = settle_starcoder2},
    {.type = "gpt_bigcode",
     .read = maq__hf_read,
     .architectures = "GPTBigCodeForCausalLM",
     .tables = TABLES(maq__hf_dropout, bigcode_keys),
     .preset = preset_bigcode,
     .settle = settle_bigcode},
    {.type = "cohere",
     .read = maq__hf_read,
     .architectures = "CohereForCausalLM",
     .tables = TABLES(LLAMA_TABLES, maq__hf_qk_norm),
     .preset = preset_cohere,
     .settle = settle_cohere},
    {.type = "cohere2",
     .read = maq__hf_read,
     .architectures = "Cohere2ForCausalLM",
     .tables = TABLES(LLAMA_TABLES, maq__hf_gemma3),
     .preset = preset_cohere2,
     .settle = settle_cohere2},
    {.type = "baichuan",
     .read = maq__hf_read,
     .architectures = "BaichuanForCausalLM|BaiChuanForCausalLM",
     .tables = TABLES(LLAMA_TABLES, baichuan_keys),
     .preset = maq__hf_preset_llama,
     .settle = settle_baichuan},
    {.type = "exaone",
     .read = maq__hf_read,
     .architectures = "ExaoneForCausalLM",
     .tables = TABLES(LLAMA_TABLES),
     .facts = "num_key_value_heads: 8",
     .preset = maq__hf_preset_llama},
    {.type = "internlm3",
     .read = maq__hf_read,
     .architectures = "InternLM3ForCausalLM",
     .tables = TABLES(LLAMA_TABLES),
     .facts = "num_key_value_heads: 2, head_dim: 128",
     .preset = maq__hf_preset_llama},
    {.type = "llada",
     .read = maq__hf_read,
     .architectures = "LLaDAModelLM",
     .tables = TABLES(maq__hf_dropout, llada_keys),
     .preset = maq__hf_preset_llama,
     .adapt = adapt_llada},
    {.type = NULL},
};
