/* SPDX-License-Identifier: Apache-2.0 */
/* drafter.c - the models that draft, as lists of modules. */
#include "serve/draft/drafter.h"

#include "base/check.h"
#include "base/str.h"
#include "serve/codes.h"

/* Tokens that a head of EAGLE-3 chooses from: draft_vocab_size of the configurations that its authors train with (SafeAILab/EAGLE,
 * eagle/traineagle3/config.json); a head that is named has its own. */
#define EAGLE3_VOCAB 32000
/* Layers whose states EAGLE-3 reads: a low, a middle and a high one. */
#define EAGLE3_STATES 3

static enum maq_status no_layer(const struct maq_model *m, struct maq_diag *diag)
{
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SPECULATION, (struct maq_span){0},
                         "--speculative-model with the head's config.json",
                         "a head of EAGLE is one layer of attention and a dense MLP, and the last layer of %s is none",
                         m->name);
}

static bool is_plain(const struct maq_layer *layer)
{
    bool attends = false;
    for (uint32_t i = 0; i < layer->n_modules; i++)
        attends = attends || layer->modules[i].kind == MAQ_MODULE_ATTENTION;
    return attends && !layer->moe;
}

/* A copy of a layer with room for one module before it. */
static struct maq_module *copy_modules(struct maq_layer *out, const struct maq_layer *layer, struct maq_arena *arena)
{
    struct maq_module *m = MAQ_ARENA_NEW(arena, struct maq_module, layer->n_modules + 1u);
    *out = *layer;
    for (uint32_t i = 0; m && i < layer->n_modules; i++)
        m[i + 1] = layer->modules[i];
    return m;
}

static void settle(struct maq_layer *layer, const struct maq_module *modules, uint32_t n)
{
    layer->modules = modules;
    layer->n_modules = n;
    layer->params = 0;
    for (uint32_t i = 0; i < n; i++)
        layer->params += modules[i].params;
}

static void see_all(struct maq_module *m, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (m[i].kind == MAQ_MODULE_ATTENTION)
            m[i].u.attention.window = m[i].u.attention.chunk = 0;
}

/* On every rank the whole of it, as engines keep a product that joins state and embedding. */
static struct maq_module joint(int64_t in, int64_t out)
{
    return (struct maq_module){.kind = MAQ_MODULE_LINEAR,
                               .shard = MAQ_SHARD_SEQUENCE,
                               .part = MAQ_PART_ATTENTION,
                               .flags = MAQ_MODULE_UNQUANTIZED,
                               .name = "fc",
                               .in = in,
                               .out = out,
                               .params = in * out};
}

static bool eagle_layer(struct maq_layer *out, const struct maq_layer *like, int64_t hidden, struct maq_arena *arena)
{
    struct maq_module *m = copy_modules(out, like, arena);
    if (!m)
        return false;
    m[0] = joint(2 * hidden, hidden);
    see_all(m, like->n_modules + 1);
    settle(out, m, like->n_modules + 1);
    return true;
}

/* The first product of attention, of queries, keys and values, reads twice the width; a norm more. */
static bool eagle3_layer(struct maq_layer *out, const struct maq_layer *like, int64_t hidden, struct maq_arena *arena)
{
    struct maq_module *m = copy_modules(out, like, arena);
    bool widened = false;
    if (!m)
        return false;
    m[0] = (struct maq_module){.kind = MAQ_MODULE_NORM,
                               .shard = MAQ_SHARD_SEQUENCE,
                               .part = MAQ_PART_NORM,
                               .name = "hidden_norm",
                               .in = hidden,
                               .out = hidden,
                               .params = hidden};
    for (uint32_t i = 1; i <= like->n_modules && m[i].kind != MAQ_MODULE_ATTENTION; i++) {
        bool reads_state = m[i].kind == MAQ_MODULE_LINEAR && m[i].in == hidden;
        if (!reads_state || (widened && !(m[i].flags & MAQ_MODULE_SHARED_INPUT)))
            continue;
        m[i].params += m[i].in * m[i].out;
        m[i].in *= 2;
        widened = true;
    }
    see_all(m, like->n_modules + 1);
    settle(out, m, like->n_modules + 1);
    return true;
}

static bool mtp_layer(struct maq_layer *out, const struct maq_layer *mtp, struct maq_arena *arena)
{
    struct maq_module *m = copy_modules(out, mtp, arena);
    if (!m)
        return false;
    m++;
    for (uint32_t i = 0; i < mtp->n_modules; i++)
        if (m[i].name && maq_str_is(maq_str_of(m[i].name), "eh_proj")) {
            m[i].shard = MAQ_SHARD_SEQUENCE;
            m[i].flags &= ~(uint32_t)(MAQ_MODULE_REDUCE_OUT | MAQ_MODULE_GATHER_IN);
        }
    settle(out, m, mtp->n_modules);
    return true;
}

/* A head of its own, over `vocab` tokens. */
static bool own_output(struct maq_model *m, int64_t vocab, struct maq_arena *arena)
{
    struct maq_layer like = m->output;
    struct maq_module *o = copy_modules(&m->output, &like, arena);
    if (!o)
        return false;
    o++;
    for (uint32_t i = 0; i < like.n_modules; i++)
        if (o[i].kind == MAQ_MODULE_LINEAR && o[i].out == m->vocab) {
            o[i].out = vocab;
            o[i].params = o[i].in * vocab;
            o[i].flags &= ~(uint32_t)MAQ_MODULE_TIED;
        }
    settle(&m->output, o, like.n_modules);
    m->vocab = vocab;
    return true;
}

static enum maq_status head(struct maq_drafter *d, const struct maq_job *target, const struct maq_speculation *s,
                            struct maq_layer *layer, struct maq_arena *arena, struct maq_diag *diag)
{
    struct maq_model *m = &d->job.model;
    const struct maq_model *like = s->draft ? &s->draft->model : &target->model;
    const struct maq_layer *last = &like->kinds[like->kind_of[like->num_layers - 1]];
    int64_t hidden = like->hidden;
    bool eagle3 = s->method == MAQ_DRAFT_EAGLE3, done;
    if (!is_plain(last))
        return no_layer(like, diag);
    if (s->draft)
        *m = *like;
    if (eagle3) {
        int64_t vocab = m->vocab < EAGLE3_VOCAB ? m->vocab : EAGLE3_VOCAB;
        done = eagle3_layer(layer, last, hidden, arena) && own_output(m, vocab, arena);
        d->combines = EAGLE3_STATES * target->model.hidden;
        d->own_head = true;
    } else {
        done = eagle_layer(layer, last, hidden, arena);
    }
    return done ? MAQ_OK : maq_no_memory(diag, "what drafts");
}

static enum maq_status mtp(struct maq_drafter *d, const struct maq_job *target, const struct maq_speculation *s,
                           struct maq_layer *layer, struct maq_arena *arena, struct maq_diag *diag)
{
    const struct maq_model *m = &target->model;
    if (m->mtp_layers == 0)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SPECULATION, (struct maq_span){0},
                             "--speculative-method eagle3, ngram or draft-model",
                             "%s has no layer for multi-token prediction", m->name);
    d->depths = m->mtp_layers < (uint32_t)s->tokens ? m->mtp_layers : (uint32_t)s->tokens;
    return mtp_layer(layer, &m->mtp, arena) ? MAQ_OK : maq_no_memory(diag, "what drafts");
}

enum maq_status maq_drafter_init(struct maq_drafter *out, const struct maq_job *target, const struct maq_speculation *s,
                                 struct maq_arena *arena, struct maq_diag *diag)
{
    *out = (struct maq_drafter){.job = *target, .depths = 1};
    if (s->method == MAQ_DRAFT_MODEL) {
        if (!s->draft)
            return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SPECULATION, (struct maq_span){0},
                                 "--speculative-model llama-3.2-1b", "which model drafts is not said");
        *out = (struct maq_drafter){.job = *s->draft, .depths = 1, .own_embedding = true, .own_head = true};
        return MAQ_OK;
    }
    struct maq_layer *layer = MAQ_ARENA_NEW(arena, struct maq_layer, 1);
    uint16_t *kind_of = MAQ_ARENA_NEW(arena, uint16_t, 1);
    if (!layer || !kind_of)
        return maq_no_memory(diag, "what drafts");
    MAQ_TRY(s->method == MAQ_DRAFT_MTP ? mtp(out, target, s, layer, arena, diag)
                                       : head(out, target, s, layer, arena, diag));
    out->job.plan.pp = 1; /* on the last stage */
    out->job.model.kinds = layer;
    out->job.model.kind_of = kind_of;
    out->job.model.n_kinds = out->job.model.num_layers = 1;
    return MAQ_OK;
}
