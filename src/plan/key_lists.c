/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key_lists.c - settings of a plan that are lists of words (recompute_modules, cuda_graph_scope, offload_modules):
 * reading them to bits and writing bits as words. See keys.h.
 */
#include <string.h>

#include "base/check.h"
#include "base/codes.h"
#include "base/str.h"
#include "base/text.h"
#include "plan/codes.h"
#include "plan/keys.h"

const char *maq_part_recompute_name(enum maq_part part)
{
    switch (part) {
    case MAQ_PART_CORE_ATTENTION:
        return "core_attn";
    case MAQ_PART_NORM:
        return "layernorm";
    case MAQ_PART_MLA_UP:
        return "mla_up_proj";
    case MAQ_PART_MLP:
        return "mlp";
    case MAQ_PART_MOE:
        return "moe";
    case MAQ_PART_MOE_ACT:
        return "moe_act";
    case MAQ_PART_SHARED_EXPERTS:
        return "shared_experts";
    case MAQ_PART_EMBEDDING:
    case MAQ_PART_ATTENTION:
    case MAQ_PART_SSM:
    case MAQ_PART_ROUTER:
    case MAQ_PART_RESIDUAL:
    case MAQ_PART_OUTPUT:
    case MAQ_PART_COUNT:
        break;
    }
    return NULL;
}

const char *maq_graphed_part_name(enum maq_graphed_part part)
{
    static const char *const names[MAQ_GRAPH_COUNT] = {"attn", "mamba", "mlp", "moe_router", "moe_preprocess", "moe"};
    return (unsigned)part < MAQ_GRAPH_COUNT ? names[part] : "?";
}

const char *maq_offload_module_name(enum maq_offload_module module)
{
    static const char *const names[MAQ_OFFLOAD_COUNT] = {"attn_norm", "qkv_linear", "core_attn", "attn_proj",
                                                         "mlp_norm",  "expert_fc1", "moe_act",   "fused_group_mlp"};
    return (unsigned)module < MAQ_OFFLOAD_COUNT ? names[module] : "?";
}

static const char *recomputed(int part)
{
    return maq_part_recompute_name((enum maq_part)part);
}

static const char *graphed(int part)
{
    return maq_graphed_part_name((enum maq_graphed_part)part);
}

static const char *offloaded(int module)
{
    return maq_offload_module_name((enum maq_offload_module)module);
}

const struct maq_plan_words maq_plan_words[MAQ_PLAN_LISTS] = {
    {"recompute_modules", offsetof(struct maq_plan, recompute_parts), MAQ_PART_COUNT, recomputed,
     "is not a module that can be recomputed",
     "known: core_attn, layernorm, mla_up_proj, mlp, moe, moe_act, shared_experts",
     "attention=core_attn|attn=core_attn|self_attn=core_attn|core_attention=core_attn|sdpa=core_attn|norm=layernorm|"
     "norms=layernorm|rmsnorm=layernorm|layer_norm=layernorm|ffn=mlp|feed_forward=mlp|experts=moe|moe_layer=moe|"
     "act=moe_act|activation=moe_act|swiglu=moe_act|up_proj=mla_up_proj|shared=shared_experts"},
    {"cuda_graph_scope", offsetof(struct maq_plan, graph_scope), MAQ_GRAPH_COUNT, graphed,
     "is no part of a layer that can be a graph",
     "known: attn, mamba, mlp, moe_router, moe_preprocess, moe, full_iteration",
     "attention=attn|self_attn=attn|ssm=mamba|ffn=mlp|router=moe_router|full=full_iteration|all=full_iteration|experts="
     "moe"},
    {"offload_modules", offsetof(struct maq_plan, offload_modules), MAQ_OFFLOAD_COUNT, offloaded,
     "is not a module whose input can be offloaded",
     "known: attn_norm, qkv_linear, core_attn, attn_proj, mlp_norm, expert_fc1, moe_act, fused_group_mlp",
     "attention=core_attn|attn=core_attn|qkv=qkv_linear|linear_qkv=qkv_linear|linear_proj=attn_proj|o_proj=attn_proj|"
     "proj=attn_proj|input_layernorm=attn_norm|norm=attn_norm|activation=moe_act|experts=fused_group_mlp"},
};

uint32_t maq_plan_bits(const struct maq_plan *plan, enum maq_plan_list list)
{
    uint32_t bits;
    memcpy(&bits, (const char *)plan + maq_plan_words[list].bits, sizeof bits);
    return bits;
}

int maq_plan_word_bit(enum maq_plan_list list, struct maq_str word)
{
    const struct maq_plan_words *words = &maq_plan_words[list];
    for (int bit = 0; bit < words->n; bit++)
        if (words->word(bit) && maq_str_is(word, words->word(bit)))
            return bit;
    return -1;
}

void maq_plan_add_words(struct maq_buf *out, const struct maq_plan *plan, enum maq_plan_list list, const char *between)
{
    maq_plan_add_bits(out, list, maq_plan_bits(plan, list), between);
}

void maq_plan_add_bits(struct maq_buf *out, enum maq_plan_list list, uint32_t bits, const char *between)
{
    const struct maq_plan_words *words = &maq_plan_words[list];
    const char *before = "";
    for (int bit = 0; bit < words->n; bit++)
        if (bits & (1u << bit) && words->word(bit)) {
            maq_buf_addf(out, "%s%s", before, words->word(bit));
            before = between;
        }
}

struct reader {
    struct maq_plan *plan;
    struct maq_diag *diag;
    enum maq_status status;
};

static void refuse(struct reader *r, enum maq_plan_list list, const struct maq_node *item)
{
    static const uint16_t codes[MAQ_PLAN_LISTS] = {MAQ_CODE_PLAN_RECOMPUTE, MAQ_CODE_PLAN_GRAPHS,
                                                   MAQ_CODE_PLAN_OFFLOAD};
    const struct maq_plan_words *words = &maq_plan_words[list];
    struct maq_str meant = maq_field_slip(words->slips, item->text);
    char hint[256];
    r->status = MAQ_BAD_INPUT;
    maq__snprintf(hint, sizeof hint, "%s%.*s%s%s", meant.len ? "did you mean '" : "", (int)meant.len,
                  meant.ptr ? meant.ptr : "", meant.len ? "'? " : "", words->known);
    maq_diag_add(r->diag, MAQ_ERROR, codes[list], item->at, hint, "'%.*s' %s", (int)item->text.len, item->text.ptr,
                 words->wrong);
}

static void add(struct reader *r, enum maq_plan_list list, const struct maq_node *item)
{
    int bit = maq_plan_word_bit(list, item->text);
    if (bit >= 0) {
        uint32_t bits = maq_plan_bits(r->plan, list) | 1u << bit;
        memcpy((char *)r->plan + maq_plan_words[list].bits, &bits, sizeof bits);
    } else if (list == MAQ_PLAN_GRAPH_SCOPE && maq_str_is(item->text, "full_iteration"))
        r->plan->cuda_graphs = true;
    else
        refuse(r, list, item);
}

/* The words of a list, or of a text with commas between them. */
static void read(struct reader *r, enum maq_plan_list list, struct maq_node *given)
{
    if (given && given->kind == MAQ_NODE_SEQ) {
        for (struct maq_node *n = given->first; n; n = n->next) {
            n->used = true;
            add(r, list, n);
        }
    } else if (given && given->kind == MAQ_NODE_SCALAR) {
        struct maq_str rest = given->text, word;
        struct maq_node item = *given;
        while (rest.ptr && rest.len > 0) {
            rest = maq_str_split(rest, ',', &word);
            item.text = maq_str_trim(word);
            add(r, list, &item);
        }
    } else if (given) {
        r->status = MAQ_BAD_INPUT;
        maq_diag_add(r->diag, MAQ_ERROR, MAQ_CODE_WRONG_TYPE, given->at, NULL, "%s is a list of words",
                     maq_plan_words[list].key);
    }
}

enum maq_status maq_plan_read_lists(struct maq_plan *plan, struct maq_node *const list[MAQ_PLAN_LISTS],
                                    struct maq_diag *diag)
{
    struct reader r = {.plan = plan, .diag = diag};
    for (int i = 0; i < MAQ_PLAN_LISTS; i++)
        read(&r, (enum maq_plan_list)i, list[i]);
    return r.status;
}
