/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lora_targets.c - the names that LoRA's targets go by, and what they are in a model. See lora_targets.h.
 *
 * Sources: Megatron Bridge (peft/lora.py, canonical_lora.py), NeMo (collections/nlp/parts/peft_config.py), PEFT
 * (utils/constants.py, TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING) and the classes of `transformers` that it adapts,
 * torchtune and torchtitan (w1, wq, output_proj).
 */
#include "plan/lora_targets.h"

#include <string.h>

#include "base/check.h"

#define DEFAULT_TARGETS "linear_qkv,linear_proj,linear_fc1,linear_fc2"

/* A site is a span of the linears of one name. The names are Megatron-LM's and NeMo's. */
static const struct {
    const char *name, *module;
    enum maq_lora_span span;
} sites[] = {
    {"linear_qkv", "linear_qkv", MAQ_LORA_WHOLE},
    {"linear_q", "linear_qkv", MAQ_LORA_QUERIES},
    {"linear_k", "linear_qkv", MAQ_LORA_KEYS},
    {"linear_v", "linear_qkv", MAQ_LORA_VALUES},
    {"linear_kv", "linear_kv", MAQ_LORA_WHOLE},
    {"linear_q_proj", "linear_q_proj", MAQ_LORA_WHOLE},
    {"linear_q_down_proj", "linear_q_down_proj", MAQ_LORA_WHOLE},
    {"linear_q_up_proj", "linear_q_up_proj", MAQ_LORA_WHOLE},
    {"linear_kv_down_proj", "linear_kv_down_proj", MAQ_LORA_WHOLE},
    {"linear_kv_up_proj", "linear_kv_up_proj", MAQ_LORA_WHOLE},
    {"linear_proj", "linear_proj", MAQ_LORA_WHOLE},
    {"in_proj", "in_proj", MAQ_LORA_WHOLE},
    {"out_proj", "out_proj", MAQ_LORA_WHOLE},
    {"linear_fc1", "linear_fc1", MAQ_LORA_WHOLE},
    {"linear_fc1_gate", "linear_fc1", MAQ_LORA_GATE},
    {"linear_fc1_up", "linear_fc1", MAQ_LORA_UP},
    {"linear_fc2", "linear_fc2", MAQ_LORA_WHOLE},
    {"fc1_latent_proj", "fc1_latent_proj", MAQ_LORA_WHOLE},
    {"fc2_latent_proj", "fc2_latent_proj", MAQ_LORA_WHOLE},
};
_Static_assert(MAQ_COUNT(sites) <= 32, "a bit each");

/* Other names of sites: those of a row that the model has. A site's own name comes first (out_proj of a mixer). */
static const struct {
    const char *names, *sites;
} others[] = {
    {"q_proj|wq", "linear_q,linear_q_proj"},
    {"k_proj|wk", "linear_k"},
    {"v_proj|wv", "linear_v"},
    {"qkv_proj|wqkv|Wqkv|c_attn|query_key_value|W_pack|qkv|attention_qkv", "linear_qkv"},
    {"q_a_proj|q_down_proj", "linear_q_down_proj"},
    {"q_b_proj|q_up_proj", "linear_q_up_proj"},
    {"kv_a_proj_with_mqa|kv_a_proj|kv_down_proj", "linear_kv_down_proj"},
    {"kv_b_proj|kv_up_proj", "linear_kv_up_proj"},
    {"o_proj|out_proj|wo|output_proj|dense|attention_dense", "linear_proj"},
    {"c_proj", "linear_proj,linear_fc2"}, /* GPT-2 has one in attention and one in the MLP */
    {"gate_proj|w1", "linear_fc1_gate"},
    {"up_proj|w3", "linear_fc1_up"},
    {"gate_up_proj|fc1|c_fc|fc_in|dense_h_to_4h|mlp_fc1", "linear_fc1"},
    {"down_proj|w2|fc2|fc_out|dense_4h_to_h|mlp_fc2", "linear_fc2"},
    /* every linear but the output layer, as the classes have them: q, k and v apart */
    {"all-linear|all_linear|all",
     "linear_q,linear_k,linear_v,linear_kv,linear_q_proj,linear_q_down_proj,linear_q_up_proj,"
     "linear_kv_down_proj,linear_kv_up_proj,linear_proj,in_proj,out_proj,linear_fc1_gate,"
     "linear_fc1_up,linear_fc2,fc1_latent_proj,fc2_latent_proj"},
};

/* An activation of two halves stands right behind its fc1 (src/model/layer/mlp.c). */
static bool gated(const struct maq_layer *layer, uint32_t fc1)
{
    return fc1 + 1 < layer->n_modules && (layer->modules[fc1 + 1].flags & MAQ_MODULE_GATED);
}

static bool layer_has(const struct maq_layer *layer, size_t site)
{
    for (uint32_t i = 0; i < layer->n_modules; i++) {
        const struct maq_module *m = &layer->modules[i];
        if (m->kind == MAQ_MODULE_LINEAR && strcmp(m->name, sites[site].module) == 0 &&
            (sites[site].span != MAQ_LORA_GATE || gated(layer, i)))
            return true;
    }
    return false;
}

uint32_t maq_lora_model_sites(const struct maq_model *model)
{
    uint32_t bits = 0;
    for (size_t s = 0; s < MAQ_COUNT(sites); s++)
        for (uint32_t k = 0; k < model->n_kinds; k++)
            bits |= layer_has(&model->kinds[k], s) ? 1u << s : 0;
    return bits;
}

/* Bits of sites by their own names, of a comma list. */
static uint32_t named(struct maq_str list)
{
    struct maq_str word;
    uint32_t bits = 0;
    while (list.ptr && list.len > 0) {
        list = maq_str_split(list, ',', &word);
        for (size_t s = 0; s < MAQ_COUNT(sites); s++)
            bits |= maq_str_is(maq_str_trim(word), sites[s].name) ? 1u << s : 0;
    }
    return bits;
}

/* All sites that another name may stand for; 0: it is none. */
static uint32_t named_otherwise(struct maq_str word)
{
    for (size_t i = 0; i < MAQ_COUNT(others); i++) {
        struct maq_str rest = maq_str_of(others[i].names), name;
        while (rest.ptr && rest.len > 0) {
            rest = maq_str_split(rest, '|', &name);
            if (maq_str_eq(name, word))
                return named(maq_str_of(others[i].sites));
        }
    }
    return 0;
}

uint32_t maq_lora_sites(struct maq_str words, const struct maq_model *model, struct maq_str *wrong, bool *known)
{
    uint32_t there = maq_lora_model_sites(model), bits = 0;
    struct maq_str word;
    if (words.len == 0) { /* what a model has not of them is not missed */
        *wrong = maq_str_of(DEFAULT_TARGETS);
        *known = true;
        return named(*wrong) & there;
    }
    while (words.ptr) {
        words = maq_str_split(words, ',', &word);
        word = maq_str_trim(word);
        uint32_t own = named(word), other = named_otherwise(word), found = own & there ? own : other & there;
        if (!found) {
            *wrong = word;
            *known = own || other;
            return 0;
        }
        bits |= found;
    }
    return bits;
}

uint32_t maq_lora_spans(uint32_t lora_sites, const struct maq_module *m)
{
    uint32_t spans = 0;
    for (size_t s = 0; s < MAQ_COUNT(sites) && m->kind == MAQ_MODULE_LINEAR && m->part != MAQ_PART_OUTPUT; s++)
        if (lora_sites & 1u << s && strcmp(sites[s].module, m->name) == 0)
            spans |= 1u << sites[s].span;
    return spans & 1u << MAQ_LORA_WHOLE ? 1u << MAQ_LORA_WHOLE : spans;
}

void maq_lora_add_names(struct maq_buf *out, uint32_t lora_sites, const char *between)
{
    const char *before = "";
    for (size_t s = 0; s < MAQ_COUNT(sites); s++)
        if (lora_sites & 1u << s) {
            maq_buf_addf(out, "%s%s", before, sites[s].name);
            before = between;
        }
}
