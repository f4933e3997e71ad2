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
    {"jamba|mamba|falcon_mamba|zamba", "the selective scan of its Mamba-1 layers has no cost model; Mamba-2 has one"},
    {"zamba2", "its attention blocks are shared between layers, each with adapters of its own"},
    {"mllama|mllama_text_model|idefics|flamingo",
     "some of its layers attend to the tokens of an image encoder, whose number is not that of the sequence"},
    {"gemma3n|gemma3n_text|gemma4|gemma4_text",
     "its layers differ in their heads, share keys and values, or add an embedding table of their own"},
    {"mimo_v2_flash|mimo_v2|step3p5|step3p7|laguna|decilm|deci|nemotron-nas|openelm",
     "its layers differ in their heads or widths"},
    {"deepseek_v32|glm_moe_dsa", "its attention is sparse: an indexer chooses the keys of each query"},
    {"deepseek_v4", "it has several residual streams, and compressed keys of several lengths"},
    {"longcat_flash", "its layers have two attentions beside experts, some of which do nothing"},
    {"minimax|minimax_text_01|bailing_moe_linear|bailing_moe_v2_5|bailing_hybrid",
     "its lightning attention has no cost model; the gated delta rule has one"},
    {"kimi_linear", "its delta rule decays every channel by itself, which no kernel that is modelled does"},
    {"minimax_m3_vl|minimax_m3_vl_text", "its attention is sparse: blocks of keys are chosen for each query"},
    {"recurrent_gemma|rwkv|rwkv7|xlstm|retnet", "its recurrence has no cost model"},
    {"t5|mt5|umt5|bart|mbart|pegasus|marian|m2m_100|nllb-moe|switch_transformers|t5gemma|t5gemma2|whisper",
     "it is an encoder beside a decoder"},
    {"bert|roberta|xlm-roberta|distilbert|albert|electra|deberta|deberta-v2|modernbert|mpnet|eurobert|nomic_bert|esm",
     "it is an encoder: its head works on masked tokens only"},
    {"vit|deit|beit|swin|clip|siglip|siglip2|dinov2|dinov3_vit",
     "it is an image encoder; model_type: pyramid describes one by its levels"},
    {"arctic", "its experts stand beside a dense MLP with a residual of their own"},
    {"phi3small", "its attention is block-sparse"},
    {"phi4flash|diffllama", "its attention is a difference of two"},
    {"bitnet", "its weights have three values, and no kernel for them is modelled"},
    {"jetmoe", "its attention has experts"},
};

static bool among(const char *types, struct maq_str type)
{
    struct maq_str rest = maq_str_of(types), head;
    while (rest.ptr && rest.len > 0) {
        rest = maq_str_split(rest, '|', &head);
        if (maq_str_eq(head, type))
            return true;
    }
    return false;
}

const char *maq__hf_refusal(struct maq_str type)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (among(refused[i].types, type))
            return refused[i].why;
    return NULL;
}
