/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moe.c - further Hugging Face families with experts: what the class of each in `transformers`, or the modelling file beside its
 * weights, fixes over Llama or DeepSeek. How a family is written is in llama.c.
 */
#include <inttypes.h>

#include "base/str.h"
#include "model/codes.h"
#include "model/hf/family_rows.h"

/* Shared experts, dense layers at the start and depths, in the words of LG, Arcee and Tencent. */
static const struct maq_field shared_keys[] = {
    I64(shared_count, "num_shared_experts", SOME, .doc = "shared experts of width moe_intermediate_size"),
    I64(first_dense, "first_k_dense_replace", .aliases = "num_dense_layers|first_last_k_dense_replace", .min = 0,
        .max = MAQ_ARCH_LAYERS_MAX, .doc = "dense layers at the start"),
    I64(mtp_layers, "num_nextn_predict_layers", .min = 0, .max = 64, .doc = "multi-token-prediction depths"),
    I64(moe_ffn, "expert_hidden_dim", WIDTH, .doc = "moe_intermediate_size in the words of Tencent"),
    STR(topk_method, "topk_method", .doc = "accepted: every expert has a correction bias"),
    NODE(mlp_types, "mlp_layer_types", .doc = "dense or sparse for each layer"),
    MAQ_FIELD_END};

/* DeepSeek-MoE 16B: multi-head attention, experts without correction biases. */
static void preset_deepseek_moe(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
}

/* GLM-4.7-Flash: DeepSeek-V3 in every respect but the name of its routing. */
static void preset_glm4_moe_lite(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->router_bias = true;
}

/* Solar Open: a Llama with experts in all layers. */
static void preset_solar_open(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->router_bias = true;
    hf->out_bias_never = true;
    hf->head_dim = 128;
}

/* K-EXAONE: EXAONE 4 with norms in front of the branches and experts behind the first layer. */
static void preset_exaone_moe(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->qk_norm = MAQ_QK_NORM_HEAD;
    hf->window_rule = MAQ_HF_WINDOW_PATTERN;
    hf->window_pattern = 4;
    hf->router_bias = true;
    hf->first_dense = 1;
    hf->shared_count = 1;
}

/* Trinity: four norms, a gate on attention's output, windows with rotation in all but every 4th layer. */
static void preset_afmoe(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->norm_place = MAQ_NORM_SANDWICH;
    hf->qk_norm = MAQ_QK_NORM_HEAD;
    hf->gate = MAQ_GATE_FULL;
    hf->head_dim = 128;
    hf->window = 1024;
    hf->window_rule = MAQ_HF_WINDOW_PATTERN;
    hf->window_pattern = 4;
    hf->router_bias = true;
    hf->first_dense = 1;
}

static const struct maq_field afmoe_keys[] = {I64(window_pattern, "global_attn_every_n_layers", .min = 1,
                                                  .max = MAQ_ARCH_LAYERS_MAX,
                                                  .doc = "every n-th layer sees everything and does not rotate"),
                                              MAQ_FIELD_END};

/* The layers that see a window rotate, the others do not, however they were given. */
static void adapt_afmoe(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)hf;
    (void)r;
    for (int64_t i = 0; i < arch->num_layers; i++)
        arch->layers[i].rope = arch->layers[i].window > 0;
}

/* Hunyuan 3: norms on queries and keys, a dense layer at the start. */
static void preset_hy_v3(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->head_dim = 128;
    hf->qk_norm = MAQ_QK_NORM_HEAD;
    hf->router_bias = true;
    hf->first_dense = 1;
    hf->shared_count = 1;
}

/* FlexOlmo: OLMo 2 with experts. */
static void preset_flex_olmo(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->norm_place = MAQ_NORM_POST_BRANCH;
    hf->qk_norm = MAQ_QK_NORM_WIDE;
}

/*
 * Step-3: queries come from a low rank with a norm, beside one key and one value head; experts in the layers that moe_layers_enum names,
 * counted from 0 and separated by commas.
 */
static const struct maq_field step3_keys[] = {
    I64(q_lora, "share_q_dim", WIDTH, .doc = "latent width of queries"),
    I64(kv_heads, "num_attention_groups", COUNT, .doc = "key and value heads"),
    I64(max_pos, "max_position_embedding", .min = 1, .max = 1e12, .doc = "positions the model was made for"),
    I64(experts, "moe_num_experts", SOME, .doc = "routed experts"),
    I64(topk, "moe_top_k", COUNT, .doc = "experts a token goes to"),
    I64(moe_ffn, "moe_intermediate_size", WIDTH, .doc = "width of one routed expert"),
    I64(shared_ffn, "share_expert_dim", .aliases = "share_expert_dims", .min = 0, .max = 16777216,
        .doc = "width of the shared expert"),
    STR(pattern, "moe_layers_enum", .doc = "the layers with experts: 4,5,6"),
    MAQ_FIELD_END};

static void preset_step3(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->kv_heads = 1;
}

static void adapt_step3(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    struct maq_str rest = hf->pattern, word;
    arch->attention.q_rank = hf->q_lora;
    MAQ_READER_CHECK(r, hf->q_lora > 0, MAQ_CODE_MODEL_MISSING, NULL, NULL, "the model has no share_q_dim");
    for (int64_t i = 0; rest.ptr && i < arch->num_layers; i++)
        arch->layers[i].ffn = MAQ_FFN_DENSE;
    while (rest.ptr && rest.len > 0) {
        int64_t layer = -1;
        rest = maq_str_split(rest, ',', &word);
        bool ok = maq_str_to_i64(&layer, maq_str_trim(word)) && layer >= 0 && layer < arch->num_layers;
        if (!MAQ_READER_CHECK(r, ok && arch->moe.experts > 0, MAQ_CODE_MODEL_LAYER_LIST, "moe_layers_enum",
                              "layers are counted from 0",
                              "moe_layers_enum names '%.*s', the model has %" PRId64 " layers and %" PRId64 " experts",
                              (int)word.len, word.ptr, arch->num_layers, arch->moe.experts))
            return;
        arch->layers[layer].ffn = MAQ_FFN_MOE;
    }
}

static void preset_olmoe(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->qk_norm = MAQ_QK_NORM_WIDE;
}

/* Phi-3.5-MoE: LayerNorm, biases in attention, a head with a bias. */
static void preset_phimoe(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->norm = MAQ_NORM_LAYER;
    hf->window_rule = MAQ_HF_WINDOW_ALL;
}

static const struct maq_field phimoe_keys[] = {BOOL(head_bias, "lm_head_bias", .doc = "bias in the head"),
                                               MAQ_FIELD_END};

/* DBRX: LayerNorm without bias; sizes of attention and experts in maps of their own. */
static void preset_dbrx(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
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
    maq__hf_preset_llama(hf);
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
    hf->topk = 1;
    one_of_all(&hf->topk, hf->topk_list, "moe_topk", r);
    one_of_all(&hf->moe_ffn, hf->moe_ffn_list, "moe_intermediate_size", r);
    hf->shared_count = 1;
    one_of_all(&hf->shared_count, hf->shared_list, "num_shared_expert", r);
    maq__hf_settle_qk_norm(hf, r);
    MAQ_READER_CHECK(r,
                     hf->topk >= 0 && hf->topk <= 65536 && hf->moe_ffn >= 0 && hf->moe_ffn <= 16777216 &&
                         hf->shared_count >= 0 && hf->shared_count <= 65536,
                     MAQ_CODE_MODEL_LAYER_LIST, "moe_topk|moe_intermediate_size|num_shared_expert", NULL,
                     "a size of the experts is out of range");
}

/* Ling and Ring: DeepSeek's routing over grouped-query attention with norms on queries and keys. */
static void preset_bailing(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
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

#define LLAMA_TABLES maq__hf_bias, maq__hf_window, maq__hf_dropout
#define PLAIN maq__hf_bias, maq__hf_dropout, maq__hf_moe

const struct maq_family maq__hf_expert_families[] = {
    {.type = "deepseek",
     .read = maq__hf_read,
     .architectures = "DeepseekForCausalLM",
     .tables = TABLES(PLAIN, maq__hf_moe_dense),
     .preset = preset_deepseek_moe},
    {.type = "glm4_moe_lite",
     .read = maq__hf_read,
     .architectures = "Glm4MoeLiteForCausalLM",
     .tables = TABLES(PLAIN, maq__hf_mla, maq__hf_moe_dense, maq__hf_mlp_types),
     .preset = preset_glm4_moe_lite,
     .facts = "first_k_dense_replace: 1, n_routed_experts: 64, num_experts_per_tok: 4, moe_intermediate_size: 1536, "
              "n_shared_experts: 1, kv_lora_rank: 512, q_lora_rank: 768, qk_nope_head_dim: 192, qk_rope_head_dim: 64, "
              "v_head_dim: 256",
     .settle = maq__hf_settle_latent},
    {.type = "mistral4",
     .read = maq__hf_read,
     .architectures = "Mistral4ForCausalLM",
     .tables = TABLES(PLAIN, maq__hf_mla, maq__hf_moe_dense, maq__hf_mlp_types),
     .preset = preset_deepseek_moe,
     .settle = maq__hf_settle_latent},
    {.type = "solar_open",
     .read = maq__hf_read,
     .architectures = "SolarOpenForCausalLM",
     .tables = TABLES(PLAIN, maq__hf_moe_dense),
     .facts = "num_key_value_heads: 8, n_routed_experts: 128, num_experts_per_tok: 8, moe_intermediate_size: 1280, "
              "n_shared_experts: 1",
     .preset = preset_solar_open},
    {.type = "exaone_moe",
     .read = maq__hf_read,
     .architectures = "ExaoneMoeForCausalLM|ExaoneMoEForCausalLM",
     .tables = TABLES(PLAIN, maq__hf_window, maq__hf_exaone4, shared_keys),
     .facts = "num_key_value_heads: 32, num_experts: 64, num_experts_per_tok: 8, moe_intermediate_size: 1024",
     .preset = preset_exaone_moe,
     .settle = maq__hf_settle_exaone4},
    {.type = "afmoe",
     .read = maq__hf_read,
     .architectures = "AfmoeForCausalLM",
     .tables = TABLES(PLAIN, maq__hf_window, shared_keys, afmoe_keys),
     .facts = "num_experts: 64, num_experts_per_tok: 6, moe_intermediate_size: 1408, num_shared_experts: 2",
     .preset = preset_afmoe,
     .adapt = adapt_afmoe},
    {.type = "hy_v3",
     .read = maq__hf_read,
     .architectures = "HYV3ForCausalLM",
     .tables = TABLES(PLAIN, shared_keys),
     .facts = "num_key_value_heads: 8, num_experts: 192, num_experts_per_tok: 8, moe_intermediate_size: 1536",
     .preset = preset_hy_v3},
    {.type = "flex_olmo",
     .read = maq__hf_read,
     .architectures = "FlexOlmoForCausalLM",
     .tables = TABLES(PLAIN, maq__hf_window),
     .facts = "num_experts: 7, num_experts_per_tok: 5",
     .preset = preset_flex_olmo},
    {.type = "granitemoeshared",
     .read = maq__hf_read,
     .architectures = "GraniteMoeSharedForCausalLM",
     .tables = TABLES(PLAIN, maq__hf_granite),
     .facts = "num_local_experts: 8, num_experts_per_tok: 2",
     .preset = maq__hf_preset_llama},
    {.type = "step3_text|step3_vl|step3",
     .read = maq__hf_read,
     .architectures = "Step3TextForCausalLM|Step3VLForConditionalGeneration",
     .tables = TABLES(maq__hf_dropout, step3_keys),
     .preset = preset_step3,
     .adapt = adapt_step3},
    {.type = "olmoe",
     .read = maq__hf_read,
     .architectures = "OlmoeForCausalLM",
     .tables = TABLES(LLAMA_TABLES, maq__hf_moe),
     .facts = "num_experts: 64, num_experts_per_tok: 8",
     .preset = preset_olmoe},
    {.type = "phimoe",
     .read = maq__hf_read,
     .architectures = "PhiMoEForCausalLM|PhimoeForCausalLM",
     .tables = TABLES(LLAMA_TABLES, maq__hf_moe, phimoe_keys),
     .facts = "num_key_value_heads: 8, num_local_experts: 16, num_experts_per_tok: 2",
     .preset = preset_phimoe},
    {.type = "dbrx",
     .read = maq__hf_read,
     .architectures = "DbrxForCausalLM",
     .tables = TABLES(maq__hf_dropout, dbrx_keys),
     .preset = preset_dbrx,
     .settle = settle_dbrx},
    {.type = "hunyuan_v1_dense",
     .read = maq__hf_read,
     .architectures = "HunYuanDenseV1ForCausalLM",
     .tables = TABLES(LLAMA_TABLES, maq__hf_qk_norm),
     .facts = "tie_word_embeddings: false",
     .preset = preset_hunyuan,
     .settle = maq__hf_settle_qk_norm},
    {.type = "hunyuan_v1_moe",
     .read = maq__hf_read,
     .architectures = "HunYuanMoEV1ForCausalLM",
     .tables = TABLES(LLAMA_TABLES, maq__hf_qk_norm, hunyuan_keys),
     .facts = "tie_word_embeddings: false, num_experts: 1",
     .preset = preset_hunyuan,
     .settle = settle_hunyuan},
    {.type = "bailing_moe|bailing_moe_v2",
     .read = maq__hf_read,
     .architectures = "BailingMoeV2ForCausalLM",
     .tables = TABLES(maq__hf_dropout, maq__hf_moe, maq__hf_qk_norm, bailing_keys),
     .preset = preset_bailing,
     .settle = maq__hf_settle_qk_norm},
    {.type = NULL},
};
