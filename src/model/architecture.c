/* SPDX-License-Identifier: Apache-2.0 */
/*
 * architecture.c - from an architecture to a model: one kind per distinct layer, counts summed with overflow checks.
 */
#include "model/architecture.h"

#include "base/check.h"
#include "model/codes.h"
#include "model/layer/module_list.h"

/* Zeroes what has no meaning for the layer's mixer and feed-forward part, so that equal layers compare equal. */
static struct maq_arch_layer normalized(const struct maq_architecture *arch, const struct maq_arch_layer *layer)
{
    struct maq_arch_layer l = *layer;
    if (l.ffn != MAQ_FFN_DENSE)
        l.ffn_width = 0;
    bool attends = l.mixer == MAQ_MIXER_ATTENTION || l.mixer == MAQ_MIXER_PARALLEL;
    if (!attends || arch->attention.rope_dim == 0)
        l.rope = false;
    if (!attends)
        l.window = l.chunk = 0;
    l.attention = attends ? l.attention : NULL;
    l.mla = l.mixer == MAQ_MIXER_MLA ? l.mla : NULL;
    l.moe = l.ffn == MAQ_FFN_MOE ? l.moe : NULL;
    return l;
}

static bool same_layer(const struct maq_arch_layer *a, const struct maq_arch_layer *b)
{
    return a->level == b->level && a->enters == b->enters && a->mixer == b->mixer && a->ffn == b->ffn &&
           a->ffn_width == b->ffn_width && a->window == b->window && a->chunk == b->chunk && a->rope == b->rope &&
           a->attention == b->attention && a->mla == b->mla && a->moe == b->moe && a->marks == b->marks &&
           a->bare == b->bare && a->reuses == b->reuses;
}

static const char *mixer_name(const struct maq_architecture *arch, enum maq_mixer mixer)
{
    switch (mixer) {
    case MAQ_MIXER_ATTENTION:
        if (arch->attention.kv_heads == arch->attention.heads)
            return "mha";
        return arch->attention.kv_heads == 1 ? "mqa" : "gqa";
    case MAQ_MIXER_MLA:
        return "mla";
    case MAQ_MIXER_MAMBA2:
        return "mamba2";
    case MAQ_MIXER_DELTA:
        return "delta";
    case MAQ_MIXER_CONV:
        return "conv";
    case MAQ_MIXER_PARALLEL:
        return "attn+mamba2";
    case MAQ_MIXER_MAMBA1:
        return "mamba";
    case MAQ_MIXER_KDA:
        return "kda";
    case MAQ_MIXER_LIGHTNING:
        return "lightning";
    case MAQ_MIXER_NONE:
        break;
    }
    return "none";
}

static enum maq_status out_of_memory(const struct maq_architecture *arch, struct maq_diag *diag)
{
    return maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_MODEL_NO_MEMORY, arch->at, NULL, "no memory for model '%s'",
                         arch->name);
}

/* What is being put together: distinct layers found so far beside their expansion. */
struct build {
    const struct maq_architecture *arch;
    struct maq_arena *arena;
    struct maq_arch_layer *seen;
    struct maq_layer *kinds;
    uint16_t *kind_of;
    uint32_t n_kinds;
    bool overflow;
};

/* The architecture as one layer sees it: with parts of its own, or of its level. */
static struct maq_architecture seen_by(const struct maq_architecture *arch, const struct maq_arch_layer *layer)
{
    const struct maq_arch_level *level = layer->level;
    struct maq_architecture a = *arch;
    a.attention = layer->attention ? *layer->attention : a.attention;
    a.mla = layer->mla ? *layer->mla : a.mla;
    a.moe = layer->moe ? *layer->moe : a.moe;
    if (level) {
        a.hidden = level->hidden;
        a.attention.heads = a.attention.kv_heads = level->heads;
        a.attention.head_dim = a.attention.v_dim = level->hidden / level->heads;
    }
    return a;
}

static void set_size(struct maq_layer *out, const struct maq_architecture *arch, int64_t hidden, int64_t tokens)
{
    out->hidden = hidden;
    out->tokens = arch->tokens > 0 ? tokens : 1;
    out->of_tokens = arch->tokens > 0 ? arch->tokens : 1;
}

/* Index of the kind of a layer, expanded when it is a new one; -1 when out of memory. */
static int32_t kind_of_layer(struct build *s, const struct maq_arch_layer *layer)
{
    struct maq_arch_layer l = normalized(s->arch, layer);
    const struct maq_architecture arch = seen_by(s->arch, &l);
    struct maq_block_writer b = {0};
    for (uint32_t i = 0; i < s->n_kinds; i++)
        if (same_layer(&s->seen[i], &l))
            return (int32_t)i;
    s->seen[s->n_kinds] = l;
    maq__write_layer(&b, &arch, &l);
    if (l.reuses)
        maq__block_reuse(&b);
    if (!maq__block_finish(&s->kinds[s->n_kinds], &b, mixer_name(&arch, l.mixer), s->arena))
        return -1;
    set_size(&s->kinds[s->n_kinds], s->arch, arch.hidden, l.level ? l.level->tokens : s->arch->tokens);
    s->overflow |= b.overflow;
    return (int32_t)s->n_kinds++;
}

static enum maq_status build_layers(struct maq_model *out, struct build *s, struct maq_diag *diag)
{
    size_t n = (size_t)s->arch->num_layers;
    s->seen = MAQ_ARENA_NEW(s->arena, struct maq_arch_layer, n);
    s->kinds = MAQ_ARENA_NEW(s->arena, struct maq_layer, n);
    s->kind_of = MAQ_ARENA_NEW(s->arena, uint16_t, n);
    if (!s->seen || !s->kinds || !s->kind_of)
        return out_of_memory(s->arch, diag);
    for (size_t i = 0; i < n; i++) {
        int32_t kind = kind_of_layer(s, &s->arch->layers[i]);
        if (kind < 0)
            return out_of_memory(s->arch, diag);
        s->kind_of[i] = (uint16_t)kind;
    }
    out->num_layers = (uint32_t)n;
    out->n_kinds = s->n_kinds;
    out->kinds = s->kinds;
    out->kind_of = s->kind_of;
    return MAQ_OK;
}

typedef void write_block(struct maq_block_writer *b, const struct maq_architecture *arch);

static bool build_block(struct maq_layer *out, struct build *s, write_block *write, const char *mixer)
{
    struct maq_block_writer b = {0};
    write(&b, s->arch);
    bool ok = maq__block_finish(out, &b, mixer, s->arena);
    s->overflow |= b.overflow;
    return ok;
}

/* The embedding of a pyramid works on one vector per sequence, its output on the tokens of the last level. */
static void size_ends(struct maq_model *m, const struct maq_architecture *arch)
{
    const struct maq_arch_level *last = arch->layers[arch->num_layers - 1].level;
    m->pyramid = arch->tokens > 0;
    set_size(&m->embedding, arch, arch->hidden, arch->input_features > 0 ? 1 : arch->tokens);
    set_size(&m->output, arch, last ? last->hidden : arch->hidden, last ? last->tokens : arch->tokens);
    set_size(&m->output_apart, arch, m->output.hidden, m->output.tokens);
    set_size(&m->mtp, arch, arch->hidden, arch->tokens);
}

static void sum_up(struct maq_model *out, struct build *s)
{
    struct maq_block_writer sum = {0};
    out->params = maq__block_add(&sum, out->embedding.params, out->output.params);
    out->active_params = maq__block_add(&sum, out->embedding.active_params, out->output.active_params);
    for (uint32_t i = 0; i < out->num_layers; i++) {
        const struct maq_layer *l = &out->kinds[out->kind_of[i]];
        out->params = maq__block_add(&sum, out->params, l->params);
        out->active_params = maq__block_add(&sum, out->active_params, l->active_params);
    }
    s->overflow |= sum.overflow;
}

enum maq_status maq_model_build(struct maq_model *out, const struct maq_architecture *arch, struct maq_arena *arena,
                                struct maq_diag *diag)
{
    struct build s = {.arch = arch, .arena = arena};
    struct maq_model m = {.name = arch->name,
                          .source = arch->source,
                          .unverified = arch->unverified,
                          .type = arch->type,
                          .hidden = arch->hidden,
                          .vocab = arch->vocab,
                          .max_seq = arch->max_seq,
                          .tied_embeddings = arch->tied,
                          .mtp_layers = (uint32_t)arch->mtp_layers};
    MAQ_ASSERT(arch->num_layers > 0 && arch->num_layers <= MAQ_ARCH_LAYERS_MAX);
    MAQ_TRY(build_layers(&m, &s, diag));
    if (!build_block(&m.embedding, &s, maq__write_embedding, "none") ||
        !build_block(&m.output, &s, maq__write_output, "none"))
        return out_of_memory(arch, diag);
    if ((arch->tied || arch->mtp_layers > 0) && !build_block(&m.output_apart, &s, maq__write_output_apart, "none"))
        return out_of_memory(arch, diag);
    if (arch->mtp_layers > 0 && !build_block(&m.mtp, &s, maq__write_mtp, mixer_name(arch, arch->mtp_layer.mixer)))
        return out_of_memory(arch, diag);
    size_ends(&m, arch);
    sum_up(&m, &s);
    if (s.overflow)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_MODEL_TOO_LARGE, arch->at,
                             "check the widths, the layers and the number of experts",
                             "model '%s' would have more than 9.2e18 parameters", arch->name);
    *out = m;
    return MAQ_OK;
}

int64_t maq_layer_tokens(const struct maq_layer *layer, int64_t seq)
{
    return layer->tokens == layer->of_tokens ? seq : seq / layer->of_tokens * layer->tokens;
}

double maq_model_border(const struct maq_model *model, uint32_t before, int64_t seq)
{
    const struct maq_layer *l =
        &model->kinds[model->kind_of[before < model->num_layers ? before : model->num_layers - 1]];
    return (double)maq_layer_tokens(l, seq) * (double)l->hidden;
}
