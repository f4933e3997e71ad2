/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_differences.c - the settings in which two plans of one job differ, where that means something.
 *
 * Both are resolved, so that what is left out has its value. How layers are shared by the stages can be written in several
 * ways: what counts is what the stages hold. A setting that is idle in both (no_effect.c; a ring of one rank) does not count.
 */
#include <string.h>

#include "base/check.h"
#include "plan/job_build.h"
#include "plan/words/words.h"

struct listing {
    struct maq_unsaid *at;
    uint32_t n;
    struct maq_arena *arena;
    bool failed;
};

static void add(struct listing *l, const char *key, const char *value, const char *instead)
{
    l->failed |= !value || !instead;
    if (!l->failed)
        l->at[l->n++] = (struct maq_unsaid){key, value, instead};
}

static const char *layers_of(const struct maq_job *job, struct maq_arena *arena)
{
    struct maq_buf b;
    maq_buf_init(&b, 1 << 16);
    for (uint32_t i = 0; i < job->n_virtual; i++)
        maq_buf_addf(&b, "%s%d%s", i > 0 ? "," : "", job->virtual_stages[i].n_layers,
                     job->virtual_stages[i].mtp && i + 1 < job->n_virtual ? " with MTP" : "");
    const char *text = b.failed ? NULL : maq_arena_strdup(arena, (struct maq_str){b.ptr, b.len});
    maq_buf_fini(&b);
    return text;
}

static bool same_layers(const struct maq_job *a, const struct maq_job *b)
{
    bool same = a->n_virtual == b->n_virtual;
    for (uint32_t i = 0; i < a->n_virtual && same; i++) {
        const struct maq_virtual_stage *x = &a->virtual_stages[i], *y = &b->virtual_stages[i];
        same = x->n_layers == y->n_layers && x->mtp == y->mtp;
    }
    return same;
}

/* "tp-dp" of "tp-cp-ep-dp-pp" where the others have one rank: orders that place every rank alike. */
static void order_of(struct maq_buf *b, const struct maq_plan *p)
{
    const struct {
        const char *name;
        int32_t n;
    } degrees[] = {{"tp", p->tp}, {"cp", p->cp}, {"ep", p->ep}, {"dp", p->dp}, {"pp", p->pp}};
    struct maq_str rest = p->rank_order, name;
    while (rest.ptr && rest.len > 0) {
        rest = maq_str_split(rest, '-', &name);
        for (size_t i = 0; i < MAQ_COUNT(degrees); i++)
            if (maq_str_is(name, degrees[i].name) && degrees[i].n > 1)
                maq_buf_addf(b, "-%s", degrees[i].name);
    }
}

static bool same_order(const struct maq_plan *a, const struct maq_plan *b)
{
    struct maq_buf x, y;
    maq_buf_init(&x, 256);
    maq_buf_init(&y, 256);
    order_of(&x, a);
    order_of(&y, b);
    bool same = maq_str_eq((struct maq_str){x.ptr, x.len}, (struct maq_str){y.ptr, y.len});
    maq_buf_fini(&x);
    maq_buf_fini(&y);
    return same;
}

/* Recomputed layers of a virtual stage: 0 stands for one in a checkpoint, or for all. */
static int32_t redone(const struct maq_job *job, const struct maq_virtual_stage *v)
{
    const struct maq_plan *p = &job->plan;
    int32_t n = v->redone_given ? v->redone_layers : p->recompute_num_layers;
    if (p->recompute_method == MAQ_RECOMPUTE_UNIFORM)
        return n > 1 ? n : 1;
    return (n == 0 && !v->redone_given) || n > v->n_layers ? v->n_layers : n;
}

static bool same_redone(const struct maq_job *a, const struct maq_job *b)
{
    bool same = a->plan.recompute_method == b->plan.recompute_method && a->n_virtual == b->n_virtual;
    for (uint32_t i = 0; i < a->n_virtual && same; i++)
        same = redone(a, &a->virtual_stages[i]) == redone(b, &b->virtual_stages[i]);
    return same;
}

/* Of keys that say a thing together, or in several ways; *known: this is one. */
static bool same_together(bool *known, const char *key, const struct maq_job *a, const struct maq_job *b)
{
    static const char *const of_layers[] = {"account_for_embedding_in_pipeline_split",
                                            "account_for_loss_in_pipeline_split", "decoder_first_pipeline_num_layers",
                                            "decoder_last_pipeline_num_layers"};
    *known = true;
    for (size_t i = 0; i < MAQ_COUNT(of_layers); i++)
        if (strcmp(key, of_layers[i]) == 0)
            return true;                        /* told by the layout */
    if (strcmp(key, "data_parallel_size") == 0) /* what the others leave */
        return true;
    if (strcmp(key, "pipeline_model_parallel_layout") == 0)
        return same_layers(a, b);
    if (strcmp(key, "lora_target_modules") == 0) /* by other words */
        return a->plan.lora_sites == b->plan.lora_sites;
    if (strcmp(key, "galore_target_modules") == 0)
        return a->plan.galore_sites == b->plan.galore_sites;
    if (strcmp(key, "rank_order") == 0)
        return same_order(&a->plan, &b->plan);
    if (strncmp(key, "recompute_num_layers", strlen("recompute_num_layers")) == 0)
        return a->plan.recompute != MAQ_RECOMPUTE_FULL || b->plan.recompute != MAQ_RECOMPUTE_FULL || same_redone(a, b);
    *known = false;
    return false;
}

/* Texts may be longer than what maq_field_format() has room for. */
static const char *text_of(const struct maq_field *field, const struct maq_plan_doc *doc, struct maq_arena *arena)
{
    char value[64];
    if (field->type != MAQ_TYPE_STR)
        return maq_arena_strdup(arena, maq_str_of(maq_field_format(value, field, doc)));
    struct maq_str text;
    memcpy(&text, (const char *)doc + field->offset, sizeof text);
    return maq_arena_strdup(arena, text.len > 0 ? text : MAQ_STR("none"));
}

static void compare_field(struct listing *l, const struct maq_field *field, const struct maq_job *own,
                          const struct maq_job *other)
{
    bool known;
    const struct maq_plan_doc a = {.plan = own->plan}, b = {.plan = other->plan};
    if (same_together(&known, field->key, own, other) ||
        (maq_setting_is_idle(field->key, own) && maq_setting_is_idle(field->key, other)))
        return;
    if (strcmp(field->key, "pipeline_model_parallel_layout") == 0) {
        add(l, field->key, layers_of(own, l->arena), layers_of(other, l->arena));
        return;
    }
    const char *x = text_of(field, &a, l->arena), *y = text_of(field, &b, l->arena);
    if (!x || !y || strcmp(x, y) != 0)
        add(l, field->key, x, y);
}

static int list_of(const char *key)
{
    int list = 0;
    while (list < MAQ_PLAN_LISTS && strcmp(maq_plan_words[list].key, key) != 0)
        list++;
    return list;
}

static const char *words_of(const struct maq_plan *plan, enum maq_plan_list list, struct maq_arena *arena)
{
    struct maq_buf b;
    maq_buf_init(&b, 4096);
    maq_plan_add_words(&b, plan, list, ", ");
    const char *text = b.len == 0 ? "none" : b.failed ? NULL : maq_arena_strdup(arena, (struct maq_str){b.ptr, b.len});
    maq_buf_fini(&b);
    return text;
}

bool maq_plan_differences(const struct maq_unsaid **out, uint32_t *n, const struct maq_job *own,
                          const struct maq_job *other, struct maq_arena *arena)
{
    struct listing l = {.arena = arena, .at = MAQ_ARENA_NEW(arena, struct maq_unsaid, MAQ_PLAN_FIELDS_MAX)};
    l.failed = !l.at;
    for (const struct maq_field *f = maq_plan_fields; f->type != MAQ_TYPE_END && !l.failed; f++) {
        if (f->type != MAQ_TYPE_NODE) {
            compare_field(&l, f, own, other);
            continue;
        }
        enum maq_plan_list list = (enum maq_plan_list)list_of(f->key);
        if (maq_plan_bits(&own->plan, list) != maq_plan_bits(&other->plan, list))
            add(&l, f->key, words_of(&own->plan, list, arena), words_of(&other->plan, list, arena));
    }
    *out = l.at;
    *n = l.n;
    return !l.failed;
}
