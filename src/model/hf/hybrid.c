/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hybrid.c - Hugging Face families that mix attention with Mamba-2, the gated delta rule or short convolutions: what the class of
 * each in `transformers` fixes. Qwen3-Next is in llama.c, with how a family is written.
 */
#include <inttypes.h>

#include "base/str.h"
#include "model/codes.h"
#include "model/hf/family_rows.h"

static void check_scan(const struct maq_arch_ssm *m, const char *heads, struct maq_model_reader *r)
{
    MAQ_READER_CHECK(r, m->heads > 0 && m->groups > 0 && m->heads % m->groups == 0, MAQ_CODE_MODEL_SCAN, heads, NULL,
                     "%" PRId64 " heads of the scan cannot share %" PRId64 " groups evenly", m->heads, m->groups);
}

/*
 * Falcon-H1: attention and Mamba-2 in every layer, side by side behind one norm; an MLP behind both. Without mamba_rms_norm the
 * scan's output is gated and not normed.
 */
static void preset_falcon_h1(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->mamba = (struct maq_arch_ssm){
        .heads = 128, .groups = 1, .state = 256, .conv_kernel = 4, .chunk = 256, .conv_bias = true};
}

static const struct maq_field falcon_h1_keys[] = {
    I64(mamba_inner, "mamba_d_ssm", WIDTH, .doc = "heads of the scan x width of one; absent: 2 x hidden"),
    BOOL(mamba_norm, "mamba_rms_norm", .doc = "a norm behind the gate of the scan"),
    NODE(attention_words, "layer_types", .aliases = "layers_block_type", .doc = "accepted: hybrid for each layer"),
    BOOL(mamba.out_bias, "projectors_bias", .doc = "a bias in the output projection of the scan"), MAQ_FIELD_END};

static void settle_falcon_h1(struct maq_hf *hf, struct maq_model_reader *r)
{
    struct maq_arch_ssm *m = &hf->mamba;
    int64_t inner = hf->mamba_inner > 0 ? hf->mamba_inner : maq__hf_scan_width(hf);
    check_scan(m, "mamba_n_heads", r);
    if (m->head_dim == 0)
        m->head_dim = inner / m->heads;
    MAQ_READER_CHECK(r, m->head_dim * m->heads == inner, MAQ_CODE_MODEL_SCAN, "mamba_d_head|mamba_d_ssm", NULL,
                     "%" PRId64 " heads of %" PRId64 " are not mamba_d_ssm %" PRId64, m->heads, m->head_dim, inner);
    m->no_norm = !hf->mamba_norm;
    m->apart = true;
}

static void adapt_falcon_h1(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)hf;
    (void)r;
    for (int64_t i = 0; i < arch->num_layers; i++)
        arch->layers[i].mixer = MAQ_MIXER_PARALLEL;
}

/* Bamba: Mamba-2 but in the layers that attn_layer_indices names; an MLP in all. */
static void preset_bamba(struct maq_hf *hf)
{
    preset_falcon_h1(hf);
    hf->rotary_factor = 0.5;
}

static const struct maq_field bamba_keys[] = {
    NODE(attention_layers, "attn_layer_indices", .doc = "the layers with attention, counted from 0"), MAQ_FIELD_END};

static void settle_bamba(struct maq_hf *hf, struct maq_model_reader *r)
{
    check_scan(&hf->mamba, "mamba_n_heads", r);
    if (hf->mamba.head_dim == 0)
        hf->mamba.head_dim = maq__hf_scan_width(hf) / hf->mamba.heads;
}

static void set_all(struct maq_architecture *arch, enum maq_mixer mixer)
{
    for (int64_t i = 0; i < arch->num_layers; i++)
        arch->layers[i].mixer = mixer;
}

static void adapt_bamba(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    set_all(arch, MAQ_MIXER_MAMBA2);
    if (hf->attention_layers)
        maq__hf_set_mixer(arch, hf->attention_layers, MAQ_MIXER_ATTENTION, r);
}

/* Mamba-2: nothing but scans, each behind a norm. */
static void preset_mamba2(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->heads = 1; /* of attention, which it does not have */
    hf->ffn = 1;
    hf->mamba_norm = true;
    hf->mamba = (struct maq_arch_ssm){
        .heads = 128, .head_dim = 64, .groups = 8, .state = 128, .conv_kernel = 4, .chunk = 256, .conv_bias = true};
}

static const struct maq_field mamba2_keys[] = {
    I64(mamba.heads, "num_heads", COUNT, .doc = "heads of the scan"),
    I64(mamba.head_dim, "head_dim", .min = 1, .max = 65536, .doc = "width of a head of the scan"),
    I64(mamba.groups, "n_groups", COUNT, .doc = "groups that share B and C"),
    I64(mamba.state, "state_size", .min = 1, .max = 65536, .doc = "state size"),
    I64(mamba.conv_kernel, "conv_kernel", .min = 1, .max = 1024, .doc = "taps of the convolution"),
    I64(mamba.chunk, "chunk_size", .min = 1, .max = 65536, .doc = "tokens of a scan block"),
    BOOL(mamba.conv_bias, "use_conv_bias", .doc = "bias in the convolution"),
    BOOL(mamba.proj_bias, "use_bias", .doc = "biases in the projections"),
    BOOL(mamba_norm, "rms_norm", .doc = "a norm behind the gate of the scan"),
    MAQ_FIELD_END};

static void settle_mamba2(struct maq_hf *hf, struct maq_model_reader *r)
{
    check_scan(&hf->mamba, "num_heads", r);
    hf->mamba.no_norm = !hf->mamba_norm;
}

static void adapt_mamba2(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)hf;
    (void)r;
    for (int64_t i = 0; i < arch->num_layers; i++)
        arch->layers[i] = (struct maq_arch_layer){.mixer = MAQ_MIXER_MAMBA2, .ffn = MAQ_FFN_NONE};
}

/* Qwen 3.5: Qwen3-Next with separate projections, dense or with experts. The sizes are those of its classes, which tools leave
 * out of a text_config inside another. */
static void preset_qwen3_5(struct maq_hf *hf)
{
    maq__hf_preset_delta(hf);
    hf->vocab = 248320;
}

static void preset_qwen3_5_moe(struct maq_hf *hf)
{
    preset_qwen3_5(hf);
    hf->heads = 16;
    hf->kv_heads = 2;
    hf->experts = 256;
    hf->topk = 8;
    hf->moe_ffn = hf->shared_ffn = 512;
}

static const struct maq_field qwen3_5_keys[] = {I64(mtp_layers, "mtp_num_hidden_layers",
                                                    .aliases = "num_nextn_predict_layers", .min = 0, .max = 64,
                                                    .doc = "multi-token-prediction depths"),
                                                MAQ_FIELD_END};

/* A depth is a layer with softmax attention, whatever the last layer is. */
static void adapt_qwen3_5(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    maq__hf_adapt_delta(arch, hf, r);
    arch->mtp_layer.mixer = MAQ_MIXER_ATTENTION;
}

/*
 * OLMo Hybrid: OLMo 3 without windows, the delta rule in all but every 4th layer. Norms stand in front of the branches where the
 * rule is and behind them where attention is; here they stand behind in both, with the same parameters and work.
 */
static void preset_olmo_hybrid(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->norm_place = MAQ_NORM_POST_BRANCH;
    hf->qk_norm = MAQ_QK_NORM_WIDE;
    hf->full_interval = 4;
    hf->delta = (struct maq_arch_ssm){.conv_kernel = 4, .chunk = 64};
}

static void settle_olmo_hybrid(struct maq_hf *hf, struct maq_model_reader *r)
{
    struct maq_arch_ssm *d = &hf->delta;
    (void)r;
    if (hf->layers < hf->full_interval) /* one layer attends at least */
        hf->full_interval = hf->layers;
    d->heads = d->heads > 0 ? d->heads : hf->heads;
    d->groups = d->groups > 0 ? d->groups : hf->heads;
    d->state = d->state > 0 ? d->state : 3 * hf->hidden / (4 * d->groups);
    d->head_dim = d->head_dim > 0 ? d->head_dim : 2 * d->state;
}

/* LFM 2: gated short convolutions but in the layers with attention; norms on queries and keys. */
static void preset_lfm2(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->tie = true;
    hf->qk_norm = MAQ_QK_NORM_HEAD;
    hf->conv.kernel = 3;
    hf->ffn_adjusted = true;
    hf->ffn_multiple = 256;
    hf->expansion = 1.0;
}

static void preset_lfm2_moe(struct maq_hf *hf)
{
    preset_lfm2(hf);
    hf->ffn_adjusted = false;
    hf->expansion = 0.0;
    hf->router_bias = true;
    hf->first_dense = 2;
}

static const struct maq_field lfm2_conv_keys[] = {
    I64(conv.kernel, "conv_L_cache", .min = 1, .max = 1024, .doc = "taps of the convolution"),
    BOOL(conv.bias, "conv_bias", .doc = "biases in the convolution and its projections"),
    I64(heads, "num_heads", COUNT, .doc = "query heads, once more"),
    BOOL(tie, "tie_embedding", .doc = "the head uses the token table"),
    NODE(attention_layers, "full_attn_idxs", .doc = "the layers with attention, counted from 0"),
    NODE(layer_types, "layer_types", .doc = "full_attention or conv for each layer"),
    MAQ_FIELD_END};

static const struct maq_field lfm2_keys[] = {
    I64(ffn, "block_ff_dim", WIDTH, .doc = "width of the MLP before it is adjusted"),
    I64(ffn_multiple, "block_multiple_of", .min = 1, .max = 65536, .doc = "the adjusted width is a multiple of it"),
    MAQ_FIELD_DOUBLE(struct maq_hf, expansion, "block_ffn_dim_multiplier", .min = 0.001, .max = 1024,
                     .doc = "of the adjusted width"),
    BOOL(ffn_adjusted, "block_auto_adjust_ff_dim", .doc = "the MLP is 2/3 of its width, rounded up"), MAQ_FIELD_END};

static const struct maq_field lfm2_moe_keys[] = {
    I64(first_dense, "num_dense_layers", .min = 0, .max = MAQ_ARCH_LAYERS_MAX, .doc = "dense layers at the start"),
    BOOL(router_bias, "use_expert_bias", .doc = "one correction bias per expert"), MAQ_FIELD_END};

static void settle_lfm2(struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)r;
    if (!hf->ffn_adjusted)
        return;
    int64_t third = 2 * hf->ffn / 3, width = (int64_t)((double)third * hf->expansion);
    hf->ffn = (width + hf->ffn_multiple - 1) / hf->ffn_multiple * hf->ffn_multiple;
}

static void adapt_lfm2(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    if (hf->layer_types || !hf->attention_layers)
        return;
    set_all(arch, MAQ_MIXER_CONV);
    maq__hf_set_mixer(arch, hf->attention_layers, MAQ_MIXER_ATTENTION, r);
}

static void preset_granite_hybrid(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->mamba = (struct maq_arch_ssm){
        .heads = 128, .groups = 1, .state = 256, .conv_kernel = 4, .chunk = 256, .conv_bias = true};
}

/* The class has attention_bias and no biases in attention; a window holds for all layers with attention. */
static void settle_nemotron_h(struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)r;
    hf->attention_bias = false;
    hf->window_rule = hf->window > 0 ? MAQ_HF_WINDOW_ALL : MAQ_HF_WINDOW_NONE;
}

static void preset_nemotron_h(struct maq_hf *hf)
{
    maq__hf_preset_llama(hf);
    hf->gated = false;
    hf->act = MAQ_HF_ACT_RELU2;
    hf->no_rope = true;
    hf->router_bias = true;
    hf->mamba = (struct maq_arch_ssm){
        .head_dim = 64, .groups = 8, .state = 128, .conv_kernel = 4, .chunk = 256, .conv_bias = true};
}

/* Every layer has the shared MLP; without experts it is all there is. */
static void settle_granite_hybrid(struct maq_hf *hf, struct maq_model_reader *r)
{
    struct maq_arch_ssm *m = &hf->mamba;
    hf->no_rope = !maq_str_is(hf->position_type, "rope");
    hf->dense_ffn = hf->shared_ffn;
    MAQ_READER_CHECK(r, m->groups > 0 && m->heads % m->groups == 0, MAQ_CODE_MODEL_SCAN, "mamba_n_groups", NULL,
                     "%" PRId64 " Mamba-2 heads cannot share %" PRId64 " groups evenly", m->heads, m->groups);
    if (m->head_dim == 0)
        m->head_dim = maq__hf_scan_width(hf) / m->heads;
}

#undef TABLES
#define TABLES(...) ((const struct maq_field *const[]){maq__hf_core, __VA_ARGS__, NULL})
#define PLAIN maq__hf_attention, maq__hf_bias, maq__hf_dropout

const struct maq_family maq__hf_hybrid_families[] = {
    {.type = "falcon_h1",
     .read = maq__hf_read,
     .architectures = "FalconH1ForCausalLM",
     .tables = TABLES(PLAIN, maq__hf_mamba, falcon_h1_keys),
     .facts = "num_key_value_heads: 8, mamba_d_ssm: 1024",
     .preset = preset_falcon_h1,
     .settle = settle_falcon_h1,
     .adapt = adapt_falcon_h1},
    {.type = "bamba",
     .read = maq__hf_read,
     .architectures = "BambaForCausalLM",
     .tables = TABLES(PLAIN, maq__hf_mamba, bamba_keys),
     .facts = "num_key_value_heads: 8",
     .preset = preset_bamba,
     .settle = settle_bamba,
     .adapt = adapt_bamba},
    {.type = "mamba2",
     .read = maq__hf_read,
     .architectures = "Mamba2ForCausalLM",
     .tables = TABLES(mamba2_keys),
     .preset = preset_mamba2,
     .settle = settle_mamba2,
     .adapt = adapt_mamba2},
    {.type = "qwen3_5|qwen3_5_text",
     .read = maq__hf_read,
     .architectures = "Qwen3_5ForCausalLM|Qwen3_5ForConditionalGeneration",
     .tables = TABLES(PLAIN, maq__hf_window, maq__hf_delta, qwen3_5_keys),
     .facts = "num_key_value_heads: 4",
     .preset = preset_qwen3_5,
     .adapt = adapt_qwen3_5},
    {.type = "qwen3_5_moe|qwen3_5_moe_text",
     .read = maq__hf_read,
     .architectures = "Qwen3_5MoeForCausalLM|Qwen3_5MoeForConditionalGeneration",
     .tables = TABLES(PLAIN, maq__hf_window, maq__hf_moe, maq__hf_moe_step, maq__hf_delta, qwen3_5_keys),
     .preset = preset_qwen3_5_moe,
     .adapt = adapt_qwen3_5},
    {.type = "olmo_hybrid",
     .read = maq__hf_read,
     .architectures = "OlmoHybridForCausalLM",
     .tables = TABLES(PLAIN, maq__hf_window, maq__hf_delta),
     .preset = preset_olmo_hybrid,
     .settle = settle_olmo_hybrid,
     .adapt = maq__hf_adapt_delta},
    {.type = "lfm2",
     .read = maq__hf_read,
     .architectures = "Lfm2ForCausalLM",
     .tables = TABLES(maq__hf_attention, maq__hf_dropout, lfm2_conv_keys, lfm2_keys),
     .facts = "num_key_value_heads: 8",
     .preset = preset_lfm2,
     .settle = settle_lfm2,
     .adapt = adapt_lfm2},
    {.type = "lfm2_moe",
     .read = maq__hf_read,
     .architectures = "Lfm2MoeForCausalLM",
     .tables = TABLES(maq__hf_attention, maq__hf_dropout, maq__hf_moe, lfm2_conv_keys, lfm2_moe_keys),
     .facts = "num_key_value_heads: 8, num_experts: 32, num_experts_per_tok: 4, moe_intermediate_size: 1792",
     .preset = preset_lfm2_moe,
     .adapt = adapt_lfm2},
    {.type = "granitemoehybrid",
     .read = maq__hf_read,
     .architectures = "GraniteMoeHybridForCausalLM",
     .tables = TABLES(maq__hf_attention, maq__hf_bias, maq__hf_dropout, maq__hf_moe, maq__hf_mamba, maq__hf_granite),
     .facts = "num_local_experts: 8, num_experts_per_tok: 2, shared_intermediate_size: 1024",
     .preset = preset_granite_hybrid,
     .settle = settle_granite_hybrid,
     .adapt = maq__hf_adapt_granite},
    {.type = "nemotron_h",
     .read = maq__hf_read,
     .architectures = "NemotronHForCausalLM",
     .tables = TABLES(maq__hf_attention, maq__hf_bias, maq__hf_dropout, maq__hf_moe, maq__hf_mamba, maq__hf_nemotron_h),
     .facts = "never_tied: true, num_key_value_heads: 8, attention_head_dim: 128, n_routed_experts: 8, "
              "num_experts_per_tok: 2, "
              "moe_intermediate_size: 7688, moe_shared_expert_intermediate_size: 7688, mamba_num_heads: 128",
     .preset = preset_nemotron_h,
     .settle = settle_nemotron_h,
     .adapt = maq__hf_adapt_hybrid},
    {.type = NULL},
};
