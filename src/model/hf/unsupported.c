/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unsupported.c - types of models that people have and that are not modelled, each with the reason.
 *
 * A type stands here when its layers do something that no module describes, or when one number that decides their cost is not in
 * config.json. What is not here and not read is simply not known. Sources: the modelling files in `transformers` (models/NAME), or those
 * beside the weights.
 */
#include "base/str.h"
#include "model/hf/config.h"

static const struct {
    const char *types, *why;
} refused[] = {
    {"mllama|mllama_text_model|idefics|flamingo|git|blip-2",
     "some of its layers attend to the tokens of an image encoder, whose number is not that of the sequence"},
    {"phi4_multimodal", "its encoders of images and sound, and their adapters in every layer, are not modelled"},
    {"step3p5|step3p7|decilm|deci|nemotron-nas|openelm", "its layers differ in their heads or widths"},
    {"longcat_flash", "its layers have two attentions beside experts, some of which do nothing"},
    {"bailing_moe_linear", "its linear attention has no kernel that is modelled"},
    {"recurrent_gemma|rwkv|rwkv7|xlstm|retnet", "its recurrence has no cost model"},
    {"hrm_text|dory|inkling2_loop_text", "its layers run several times for a token"},
    {"inkling_text|inkling2_text", "its attention has convolutions and positions of its own in keys and values"},
    {"zaya", "its keys and values are compressed by convolutions, and its router is a model of its own"},
    {"blt", "it is several models, over bytes and over patches of them"},
    {"moshi|musicgen|musicgen_melody", "it predicts several streams of tokens by a model for each position"},
    {"cpmant", "its positions are a table of biases over buckets of distances"},
    {"xlnet|reformer", "its attention is none of those that are modelled"},
    {"qwen4_exp|qwen4_exp_text", "its mixers are none of those that are modelled"},
    {"gemma4_assistant|gemma4_unified_assistant", "all of its layers use keys and values of another model"},
    {"t5|mt5|umt5|bart|mbart|pegasus|marian|m2m_100|nllb-moe|switch_transformers|t5gemma|t5gemma2|whisper|mvp|plbart|"
     "blenderbot|blenderbot-small|bigbird_pegasus|prophetnet|trocr",
     "it is an encoder beside a decoder"},
    {"distilbert|albert|deberta|deberta-v2|modernbert|mpnet|eurobert|nomic_bert|esm",
     "it is an encoder: its head works on masked tokens only"},
    {"rembert", "its head is wider than its layers"},
    {"vit|deit|beit|swin|clip|siglip|siglip2|dinov2|dinov3_vit",
     "it is an image encoder; model_type: pyramid describes one by its levels"},
    {"arctic", "its experts stand beside a dense MLP with a residual of their own"},
    {"phi3small", "its attention is block-sparse"},
    {"phi4flash", "its attention is a difference of two"},
    {"jetmoe", "its attention has experts"},
};

const char *maq__hf_refusal(struct maq_str type)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (maq_str_among(type, refused[i].types))
            return refused[i].why;
    return NULL;
}
