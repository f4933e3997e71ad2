/*
 * hf_more.c - further Hugging Face families, each a few lines over Llama or GPT-2: what its class in `transformers`, or the modelling file
 * beside its weights, fixes. How a family is written is in hf_families.c.
 */
#include <inttypes.h>

#include "base/str.h"
#include "model/codes.h"
#include "model/hf.h"

#define I64(member, key, ...) MAQ_FIELD_I64(struct maq_hf, member, key, __VA_ARGS__)
#define BOOL(member, key, ...) MAQ_FIELD_BOOL(struct maq_hf, member, key, __VA_ARGS__)
#define NODE(member, key, ...) MAQ_FIELD_NODE(struct maq_hf, member, key, __VA_ARGS__)
#define WIDTH .min = 1, .max = 16777216
#define COUNT .min = 1, .max = 65536

static void preset_plain(struct maq_hf *hf)
{
    *hf = (struct maq_hf){.norm = MAQ_NORM_RMS,
                          .gated = true,
                          .rotary_factor = 1.0,
                          .sparse_step = 1,
                          .layer_freq = 1,
                          .norm_before = true};
}

/* MiMo: Qwen 2 with multi-token prediction (modeling_mimo.py of XiaomiMiMo/MiMo-7B-Base). */
static void preset_mimo(struct maq_hf *hf)
{
    preset_plain(hf);
    hf->qkv_bias = true;
    hf->out_bias_never = true;
}

static const struct maq_field mimo_keys[] = {
    I64(mtp_layers, "num_nextn_predict_layers", .min = 0, .max = 64, .doc = "multi-token-prediction depths"),
    MAQ_FIELD_END};

/* OLMo: LayerNorm without weight or bias. */
static void preset_olmo(struct maq_hf *hf)
{
    preset_plain(hf);
    hf->norm = MAQ_NORM_PLAIN;
}

static void preset_olmoe(struct maq_hf *hf)
{
    preset_plain(hf);
    hf->qk_norm = MAQ_QK_NORM_WIDE;
}

/* StarCoder 2: LayerNorm, a plain MLP, biases everywhere by use_bias. */
static void preset_starcoder2(struct maq_hf *hf)
{
    preset_plain(hf);
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
    preset_plain(hf);
    hf->norm = MAQ_NORM_LAYER_NO_BIAS;
    hf->residual = MAQ_RESIDUAL_PARALLEL;
    hf->tie = true;
}

static void settle_cohere(struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)r;
    hf->qk_norm = hf->use_qk_norm ? MAQ_QK_NORM_WIDE : MAQ_QK_NORM_NONE;
    hf->tie = true; /* the classes tie whatever the key says: the checkpoints have no head */
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
    hf->tie = true;
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

/* Phi-3.5-MoE: LayerNorm, biases in attention, a head with a bias. */
static void preset_phimoe(struct maq_hf *hf)
{
    preset_plain(hf);
    hf->norm = MAQ_NORM_LAYER;
    hf->window_rule = MAQ_HF_WINDOW_ALL;
}

static const struct maq_field phimoe_keys[] = {BOOL(head_bias, "lm_head_bias", .doc = "bias in the head"),
                                               MAQ_FIELD_END};

/* DBRX: LayerNorm without bias; sizes of attention and experts in maps of their own. */
static void preset_dbrx(struct maq_hf *hf)
{
    preset_plain(hf);
    hf->norm = MAQ_NORM_LAYER_NO_BIAS;
}

static const struct maq_field dbrx_keys[] = {NODE(attn_config, "attn_config", .doc = "attention settings"),
                                             NODE(ffn_config, "ffn_config", .doc = "settings of the experts"),
                                             MAQ_FIELD_END};

/* A number in a map; what else the map holds costs nothing. */
static int64_t number_in(struct maq_node *map, const char *key, struct maq_model_reader *r)
{
    struct maq_node *node = map && map->kind == MAQ_NODE_MAP ? maq_node_get(map, key) : NULL;
    int64_t value = 0;
    if (!node)
        return 0;
    if (!maq_node_i64(&value, node, r->diag) || value < 0 || value > 16777216) {
        r->bad = true;
        return 0;
    }
    return value;
}

static void use_all(struct maq_node *map)
{
    for (struct maq_node *c = map && map->kind == MAQ_NODE_MAP ? map->first : NULL; c; c = c->next)
        c->used = true;
}

static void settle_dbrx(struct maq_hf *hf, struct maq_model_reader *r)
{
    hf->kv_heads = number_in(hf->attn_config, "kv_n_heads", r);
    hf->moe_ffn = hf->ffn = number_in(hf->ffn_config, "ffn_hidden_size", r);
    hf->experts = number_in(hf->ffn_config, "moe_num_experts", r);
    hf->topk = number_in(hf->ffn_config, "moe_top_k", r);
    use_all(hf->attn_config);
    use_all(hf->ffn_config);
    MAQ_READER_CHECK(r, hf->experts > 0, MAQ_CODE_MODEL_MISSING, "ffn_config", NULL,
                     "ffn_config has no moe_num_experts");
}

/* Hunyuan: norms on queries and keys, tied embeddings; sizes of experts as one number, or one per layer, all equal. */
static void preset_hunyuan(struct maq_hf *hf)
{
    preset_plain(hf);
    hf->tie = true;
    hf->use_qk_norm = true;
    hf->qk_norm = MAQ_QK_NORM_HEAD;
}

static const struct maq_field hunyuan_keys[] = {
    NODE(topk_list, "moe_topk", .doc = "experts a token goes to"),
    NODE(moe_ffn_list, "moe_intermediate_size", .doc = "width of one routed expert"),
    NODE(shared_list, "num_shared_expert", .doc = "shared experts"),
    I64(experts, "num_experts", .min = 0, .max = 65536, .doc = "routed experts"),
    I64(head_dim, "attention_head_dim", .min = 1, .max = 65536, .doc = "width of a head"),
    MAQ_FIELD_END};

static void one_of_all(int64_t *out, struct maq_node *node, const char *key, struct maq_model_reader *r)
{
    uint32_t n = 0;
    if (!node)
        return;
    if (node->kind != MAQ_NODE_SEQ) {
        if (!maq_node_i64(out, node, r->diag))
            r->bad = true;
        return;
    }
    const int64_t *list = maq__reader_i64_list(r, node, &n);
    bool equal = list && n > 0;
    for (uint32_t i = 1; equal && i < n; i++)
        equal = list[i] == list[0];
    if (MAQ_READER_CHECK(r, equal, MAQ_CODE_MODEL_LAYER_LIST, key, NULL, "layers of different %s are not modelled",
                         key))
        *out = list[0];
}

static void settle_hunyuan(struct maq_hf *hf, struct maq_model_reader *r)
{
    one_of_all(&hf->topk, hf->topk_list, "moe_topk", r);
    one_of_all(&hf->moe_ffn, hf->moe_ffn_list, "moe_intermediate_size", r);
    one_of_all(&hf->shared_count, hf->shared_list, "num_shared_expert", r);
    maq__hf_settle_qk_norm(hf, r);
    MAQ_READER_CHECK(r,
                     hf->topk >= 0 && hf->topk <= 65536 && hf->moe_ffn >= 0 && hf->moe_ffn <= 16777216 &&
                         hf->shared_count >= 0 && hf->shared_count <= 65536,
                     MAQ_CODE_MODEL_LAYER_LIST, "moe_topk|moe_intermediate_size|num_shared_expert", NULL,
                     "a size of the experts is out of range");
}

/* LLaDA: a Llama that sees the whole sequence, in the words of OLMo's first releases. */
static const struct maq_field llada_keys[] = {
    I64(kv_heads, "n_kv_heads", COUNT, .doc = "key and value heads"),
    I64(ffn, "mlp_hidden_size", WIDTH, .doc = "width of the MLP"),
    I64(vocab, "embedding_size", .min = 1, .max = 134217728, .doc = "rows of the token table"),
    BOOL(tie, "weight_tying", .doc = "the head uses the token table"),
    BOOL(bias, "include_bias", .doc = "biases in all linears"),
    BOOL(qkv_bias, "include_qkv_bias", .doc = "biases in the query, key and value projections"),
    MAQ_FIELD_END};

static void adapt_llada(struct maq_arch *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)hf;
    (void)r;
    arch->attention.bidirectional = true;
}

/* Ling and Ring: DeepSeek's routing over grouped-query attention with norms on queries and keys. */
static void preset_bailing(struct maq_hf *hf)
{
    preset_plain(hf);
    hf->qk_norm = MAQ_QK_NORM_HEAD;
}

static const struct maq_field bailing_keys[] = {
    I64(shared_count, "num_shared_experts", .min = 0, .max = 65536, .doc = "shared experts"),
    I64(first_dense, "first_k_dense_replace", .min = 0, .max = MAQ_ARCH_LAYERS_MAX, .doc = "dense layers at the start"),
    I64(mtp_layers, "num_nextn_predict_layers", .min = 0, .max = 64, .doc = "multi-token-prediction depths"),
    BOOL(router_bias, "moe_router_enable_expert_bias", .doc = "one correction bias per expert"),
    BOOL(qkv_bias, "use_qkv_bias", .doc = "biases in the query, key and value projections"),
    BOOL(bias, "use_bias", .doc = "biases in all linears"),
    MAQ_FIELD_END};

#define TABLES(...) ((const struct maq_field *const[]){maq__hf_core, maq__hf_attention, __VA_ARGS__, NULL})
#define LLAMA_TABLES maq__hf_bias, maq__hf_window, maq__hf_dropout

const struct maq_family maq__hf_more_families[] = {
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
    {.type = "olmoe",
     .read = maq__hf_read,
     .architectures = "OlmoeForCausalLM",
     .tables = TABLES(LLAMA_TABLES, maq__hf_moe),
     .preset = preset_olmoe},
    {.type = "starcoder2",
     .read = maq__hf_read,
     .architectures = "Starcoder2ForCausalLM",
     .tables = TABLES(LLAMA_TABLES, starcoder2_keys),
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
     .preset = preset_plain,
     .settle = settle_baichuan},
    {.type = "phimoe",
     .read = maq__hf_read,
     .architectures = "PhiMoEForCausalLM|PhimoeForCausalLM",
     .tables = TABLES(LLAMA_TABLES, maq__hf_moe, phimoe_keys),
     .preset = preset_phimoe},
    {.type = "dbrx",
     .read = maq__hf_read,
     .architectures = "DbrxForCausalLM",
     .tables = TABLES(maq__hf_dropout, dbrx_keys),
     .preset = preset_dbrx,
     .settle = settle_dbrx},
    {.type = "exaone",
     .read = maq__hf_read,
     .architectures = "ExaoneForCausalLM",
     .tables = TABLES(LLAMA_TABLES),
     .preset = preset_plain},
    {.type = "internlm3",
     .read = maq__hf_read,
     .architectures = "InternLM3ForCausalLM",
     .tables = TABLES(LLAMA_TABLES),
     .preset = preset_plain},
    {.type = "hunyuan_v1_dense",
     .read = maq__hf_read,
     .architectures = "HunYuanDenseV1ForCausalLM",
     .tables = TABLES(LLAMA_TABLES, maq__hf_qk_norm),
     .preset = preset_hunyuan,
     .settle = maq__hf_settle_qk_norm},
    {.type = "hunyuan_v1_moe",
     .read = maq__hf_read,
     .architectures = "HunYuanMoEV1ForCausalLM",
     .tables = TABLES(LLAMA_TABLES, maq__hf_qk_norm, hunyuan_keys),
     .preset = preset_hunyuan,
     .settle = settle_hunyuan},
    {.type = "llada",
     .read = maq__hf_read,
     .architectures = "LLaDAModelLM",
     .tables = TABLES(maq__hf_dropout, llada_keys),
     .preset = preset_plain,
     .adapt = adapt_llada},
    {.type = "bailing_moe|bailing_moe_v2",
     .read = maq__hf_read,
     .architectures = "BailingMoeV2ForCausalLM",
     .tables = TABLES(maq__hf_dropout, maq__hf_moe, maq__hf_qk_norm, bailing_keys),
     .preset = preset_bailing,
     .settle = maq__hf_settle_qk_norm},
    {.type = NULL},
};
