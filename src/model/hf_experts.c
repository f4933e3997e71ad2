/*
 * hf_experts.c - further Hugging Face families with experts: what the class of each in `transformers`, or the modelling file beside its
 * weights, fixes over Llama or DeepSeek. How a family is written is in hf_families.c.
 */
#include <inttypes.h>

#include "base/str.h"
#include "model/codes.h"
#include "model/hf.h"

#define I64(member, key, ...) MAQ_FIELD_I64(struct maq_hf, member, key, __VA_ARGS__)
#define STR(member, key, ...) MAQ_FIELD_STR(struct maq_hf, member, key, __VA_ARGS__)
#define NODE(member, key, ...) MAQ_FIELD_NODE(struct maq_hf, member, key, __VA_ARGS__)
#define WIDTH .min = 1, .max = 16777216
#define COUNT .min = 1, .max = 65536
#define SOME .min = 0, .max = 65536

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
    hf->output_gate = true;
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
static void adapt_afmoe(struct maq_arch *arch, struct maq_hf *hf, struct maq_model_reader *r)
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

static void adapt_step3(struct maq_arch *arch, struct maq_hf *hf, struct maq_model_reader *r)
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

#define TABLES(...) ((const struct maq_field *const[]){maq__hf_core, maq__hf_attention, __VA_ARGS__, NULL})
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
     .tables = TABLES(PLAIN, maq__hf_mla, maq__hf_moe_dense),
     .preset = preset_glm4_moe_lite,
     .settle = maq__hf_settle_latent},
    {.type = "mistral4",
     .read = maq__hf_read,
     .architectures = "Mistral4ForCausalLM",
     .tables = TABLES(PLAIN, maq__hf_mla, maq__hf_moe_dense),
     .preset = preset_deepseek_moe,
     .settle = maq__hf_settle_latent},
    {.type = "solar_open",
     .read = maq__hf_read,
     .architectures = "SolarOpenForCausalLM",
     .tables = TABLES(PLAIN, maq__hf_moe_dense),
     .preset = preset_solar_open},
    {.type = "exaone_moe",
     .read = maq__hf_read,
     .architectures = "ExaoneMoeForCausalLM|ExaoneMoEForCausalLM",
     .tables = TABLES(PLAIN, maq__hf_window, maq__hf_exaone4, shared_keys),
     .preset = preset_exaone_moe,
     .settle = maq__hf_settle_exaone4},
    {.type = "afmoe",
     .read = maq__hf_read,
     .architectures = "AfmoeForCausalLM",
     .tables = TABLES(PLAIN, maq__hf_window, shared_keys, afmoe_keys),
     .preset = preset_afmoe,
     .adapt = adapt_afmoe},
    {.type = "hy_v3",
     .read = maq__hf_read,
     .architectures = "HYV3ForCausalLM",
     .tables = TABLES(PLAIN, shared_keys),
     .preset = preset_hy_v3},
    {.type = "flex_olmo",
     .read = maq__hf_read,
     .architectures = "FlexOlmoForCausalLM",
     .tables = TABLES(PLAIN, maq__hf_window),
     .preset = preset_flex_olmo},
    {.type = "granitemoeshared",
     .read = maq__hf_read,
     .architectures = "GraniteMoeSharedForCausalLM",
     .tables = TABLES(PLAIN, maq__hf_granite),
     .preset = maq__hf_preset_llama},
    {.type = "step3_text|step3_vl|step3",
     .read = maq__hf_read,
     .architectures = "Step3TextForCausalLM|Step3VLForConditionalGeneration",
     .tables = TABLES(maq__hf_dropout, step3_keys),
     .preset = preset_step3,
     .adapt = adapt_step3},
    {.type = NULL},
};
