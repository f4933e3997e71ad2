/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpt.c - families that come from GPT-2: LayerNorm, a plain MLP of 4 x hidden, biases, and parallel residuals where
 * the class in `transformers` has them. llama.c has those that come from Llama, and how a family is written.
 */
#include "model/hf/config.h"

/* LayerNorm, plain MLP of 4 x hidden, biases: what GPT-2 handed down. */
static void preset_gpt(struct maq_hf *hf)
{
    *hf = (struct maq_hf){.norm = MAQ_NORM_LAYER,
                          .rotary_factor = 1.0,
                          .sparse_step = 1,
                          .layer_freq = 1,
                          .norm_before = true,
                          .expansion = 4.0,
                          .bias = true,
                          .tie = true};
}

static void preset_gpt2(struct maq_hf *hf)
{
    preset_gpt(hf);
    hf->learned_positions = true;
    hf->no_rope = true;
    hf->attention_dropout = hf->hidden_dropout = 0.1;
}

static void preset_gptj(struct maq_hf *hf)
{
    preset_gpt(hf);
    hf->tie = false;
    hf->bias = false;
    hf->mlp_bias = true;
    hf->head_bias = true;
    hf->rotary_dim = 64;
    hf->residual = MAQ_RESIDUAL_PARALLEL;
}

static void preset_neox(struct maq_hf *hf)
{
    preset_gpt(hf);
    hf->tie = false;
    hf->bias = false;
    hf->attention_bias = hf->mlp_bias = true;
    hf->rotary_factor = 0.25;
    hf->parallel_residual = true;
}

static void preset_phi(struct maq_hf *hf)
{
    preset_gpt(hf);
    hf->tie = false;
    hf->head_bias = true;
    hf->rotary_factor = 0.5;
    hf->residual = MAQ_RESIDUAL_PARALLEL;
}

static void preset_opt(struct maq_hf *hf)
{
    preset_gpt(hf);
    hf->learned_positions = true;
    hf->position_offset = 2;
    hf->no_rope = true;
    hf->hidden_dropout = 0.1;
}

static void preset_bloom(struct maq_hf *hf)
{
    preset_gpt(hf);
    hf->no_rope = true;
    hf->embedding_norm = true;
}

static void preset_falcon(struct maq_hf *hf)
{
    preset_gpt(hf);
    hf->bias = false;
    hf->multi_query = hf->parallel_attention = true;
}

static void preset_mpt(struct maq_hf *hf)
{
    preset_gpt(hf);
    hf->no_rope = true;
    hf->alibi = true;
    hf->no_bias = true;
    hf->learned_positions = true;
}

static void preset_nemotron(struct maq_hf *hf)
{
    preset_gpt(hf);
    hf->tie = false;
    hf->bias = false;
    hf->rotary_factor = 0.5;
    hf->act = MAQ_HF_ACT_RELU2;
}

static void settle_neox(struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)r;
    hf->residual = hf->parallel_residual ? MAQ_RESIDUAL_PARALLEL_TWO_NORMS : MAQ_RESIDUAL_SEQUENTIAL;
}

#define TABLES(...)                                                                                                    \
    ((const struct maq_field *const[]){maq__hf_core, maq__hf_attention, maq__hf_bias, maq__hf_dropout, __VA_ARGS__,    \
                                       NULL})

const struct maq_family maq__hf_gpt_families[] = {
    {.type = "gpt2|gpt-sw3",
     .read = maq__hf_read,
     .architectures = "GPT2LMHeadModel",
     .tables = TABLES(NULL),
     .preset = preset_gpt2},
    {.type = "gptj|codegen",
     .read = maq__hf_read,
     .architectures = "GPTJForCausalLM|CodeGenForCausalLM",
     .tables = TABLES(maq__hf_gptj),
     .preset = preset_gptj},
    {.type = "gpt_neox",
     .read = maq__hf_read,
     .architectures = "GPTNeoXForCausalLM",
     .tables = TABLES(maq__hf_neox),
     .preset = preset_neox,
     .settle = settle_neox},
    {.type = "phi",
     .read = maq__hf_read,
     .architectures = "PhiForCausalLM",
     .tables = TABLES(maq__hf_qk_norm),
     .preset = preset_phi,
     .settle = maq__hf_settle_qk_norm},
    {.type = "opt",
     .read = maq__hf_read,
     .architectures = "OPTForCausalLM",
     .tables = TABLES(maq__hf_opt),
     .preset = preset_opt,
     .adapt = maq__hf_adapt_opt},
    {.type = "bloom",
     .read = maq__hf_read,
     .architectures = "BloomForCausalLM",
     .tables = TABLES(NULL),
     .preset = preset_bloom},
    {.type = "falcon",
     .read = maq__hf_read,
     .architectures = "FalconForCausalLM|RWForCausalLM",
     .tables = TABLES(maq__hf_falcon),
     .preset = preset_falcon,
     .settle = maq__hf_settle_falcon},
    {.type = "mpt",
     .read = maq__hf_read,
     .architectures = "MPTForCausalLM|MptForCausalLM",
     .tables = TABLES(maq__hf_mpt),
     .preset = preset_mpt,
     .settle = maq__hf_settle_mpt},
    {.type = "nemotron",
     .read = maq__hf_read,
     .architectures = "NemotronForCausalLM",
     .tables = TABLES(NULL),
     .preset = preset_nemotron},
    {.type = NULL},
};
