/* SPDX-License-Identifier: Apache-2.0 */
/*
 * show.c - finds what a name means: a kind of things, a thing in the catalogue, or a file with a model.
 *
 * Names of different kinds could clash; the order of the table below decides then. A name may be written in capitals.
 */
#include <stdlib.h>
#include <sys/stat.h>

#include "base/check.h"
#include "base/text.h"
#include "model/load.h"
#include "plan/schedule/schedule.h"
#include "report/codes.h"
#include "report/show/show.h"
#include "spec/catalogue.h"
#include "spec/doc_internal.h"
#include "spec/unverified.h"

static const struct kind {
    const char *name, *also; /* the list, and other words for it */
    const char *section;     /* of the catalogue */
    const char *list_schema, *schema;
    enum maq_status (*list)(struct maq_show *s);
    enum maq_status (*one)(struct maq_show *s, const char *name);
} kinds[] = {
    [MAQ_CATALOGUE_MODELS] = {"models", "model|llms|architectures", "models", "maquette.models/1", "maquette.model/1",
                              maq_show_models, maq_show_model},
    [MAQ_CATALOGUE_GPUS] = {"gpus", "gpu|devices|device|accelerators|cards|hardware", "devices", "maquette.gpus/1",
                            "maquette.gpu/1", maq_show_gpus, maq_show_gpu},
    [MAQ_CATALOGUE_FABRICS] = {"fabrics", "fabric|networks|network|nics|interconnects", "fabrics", "maquette.fabrics/1",
                               "maquette.fabric/1", maq_show_fabrics, maq_show_fabric},
    [MAQ_CATALOGUE_FRAMEWORKS] = {"frameworks", "framework|trainers|profiles", "frameworks", "maquette.frameworks/1",
                                  "maquette.framework/1", maq_show_frameworks, maq_show_framework},
    [MAQ_CATALOGUE_FAILURES] = {"failures", "failure|reliability", "variability/failures", "maquette.failures/1",
                                "maquette.failure/1", maq_show_failures, maq_show_failure},
    [MAQ_CATALOGUE_SCHEDULES] = {"schedules", "schedule|pipelines|pipeline", NULL, "maquette.schedules/1",
                                 "maquette.schedule/1", maq_show_schedules, NULL},
};
_Static_assert(sizeof kinds / sizeof kinds[0] == MAQ_CATALOGUE_KIND_COUNT, "a row per kind");

/* What was found: a kind alone is its list. */
struct found {
    const struct kind *kind;
    const char *name; /* NULL: the list */
    size_t schedule;
};

const char *maq_catalogue_kind_name(enum maq_catalogue_kind kind)
{
    return (unsigned)kind < MAQ_CATALOGUE_KIND_COUNT ? kinds[kind].name : "?";
}

const char *maq_catalogue_name(enum maq_catalogue_kind kind, size_t i)
{
    if (kind == MAQ_CATALOGUE_SCHEDULES) {
        const struct maq_schedule_info *info = maq_schedule_info(i);
        return info ? info->name : NULL;
    }
    if ((unsigned)kind >= MAQ_CATALOGUE_KIND_COUNT)
        return NULL;
    const struct maq_catalogue_entry *e = maq_catalogue_at(kinds[kind].section, i);
    return e ? e->name : NULL;
}

/* The name nearest to a mistyped one, over everything; NULL when nothing is near. */
static const char *nearest(struct maq_str word)
{
    struct maq_nearest near;
    const char *name;
    maq__nearest_init(&near, word);
    for (size_t k = 0; k < MAQ_COUNT(kinds); k++) {
        maq__nearest_try(&near, maq_str_of(kinds[k].name));
        for (size_t i = 0; (name = maq_catalogue_name((enum maq_catalogue_kind)k, i)) != NULL; i++)
            maq__nearest_try(&near, maq_str_of(name));
        if (near.begun) /* "llama" is a model's before it is that of recorded failures */
            return near.best;
    }
    if (near.best)
        return near.best;
    for (size_t k = 0; k < MAQ_COUNT(kinds); k++)
        if (kinds[k].section && (name = maq_catalogue_nearest(kinds[k].section, word)) != NULL)
            return name;
    return NULL;
}

static bool among(const char *words, struct maq_str word)
{
    struct maq_str rest = maq_str_of(words), one;
    while (rest.ptr) {
        rest = maq_str_split(rest, '|', &one);
        if (maq_str_same(word, one))
            return true;
    }
    return false;
}

static bool has_entry(const char *section, struct maq_str word)
{
    return strcmp(section, "models") == 0 ? maq_model_entry(word) != NULL : maq_catalogue_find(section, word) != NULL;
}

static enum maq_status find(struct found *out, const char *what, struct maq_diag *diag)
{
    struct maq_str word = maq_str_of(what);
    struct stat st;
    char show[MAQ_SHOW_SIZE], hint[256];
    const struct maq_schedule_info *info;
    for (size_t k = 0; k < MAQ_COUNT(kinds); k++)
        if (maq_str_ieq(word, kinds[k].name) || among(kinds[k].also, word)) {
            *out = (struct found){.kind = &kinds[k]};
            return MAQ_OK;
        }
    for (size_t k = 0; k < MAQ_COUNT(kinds); k++)
        if (kinds[k].section && has_entry(kinds[k].section, word)) {
            *out = (struct found){.kind = &kinds[k], .name = what};
            return MAQ_OK;
        }
    for (size_t i = 0; (info = maq_schedule_info(i)) != NULL; i++)
        if (maq_str_ieq(word, info->name)) {
            *out = (struct found){.kind = &kinds[MAQ_CATALOGUE_SCHEDULES], .name = info->name, .schedule = i};
            return MAQ_OK;
        }
    if (word.len > 0 && stat(what, &st) == 0) {
        *out = (struct found){.kind = &kinds[MAQ_CATALOGUE_MODELS], .name = what};
        return MAQ_OK;
    }
    const char *near = nearest(word);
    if (maq_str_ieq(word, "cluster") || maq_str_ieq(word, "clusters"))
        maq__snprintf(hint, sizeof hint,
                      "a cluster is written, \"h100-sxm:8 x 4, rail 400G\": gpus and fabrics list its parts");
    else if (near)
        maq__snprintf(hint, sizeof hint, "did you mean '%s'?", near);
    else
        maq__snprintf(hint, sizeof hint,
                      "models, gpus, fabrics, frameworks, failures and schedules list what there is");
    return maq_diag_fail(MAQ_USAGE, diag, MAQ_CODE_SHOW_UNKNOWN, (struct maq_span){0}, hint,
                         "nothing in the catalogue and no file is named '%s'", maq_str_show(show, word));
}

void maq_show_unverified(struct maq_show *s, struct maq_json map, size_t label, const char *names)
{
    struct maq_str rest = maq_str_of(names), name;
    if (s->json) {
        struct maq_json list = maq_json_list(map, "unverified");
        while (maq_unverified_next(&rest, &name))
            maq_json_word(list, maq_arena_strdup(s->arena, name));
    } else if (names) {
        maq_page_field(s->page, label, "unverified", names);
    }
}

static enum maq_status show(struct maq_show *s, const struct found *f)
{
    if (!f->name)
        return f->kind->list(s);
    if (!f->kind->one)
        return maq_show_schedule(s, f->schedule);
    return f->kind->one(s, f->name);
}

enum maq_status maq_catalogue_show_text(char **out, const char *what, const struct maq_report_opts *opts,
                                        struct maq_diag *diag)
{
    struct maq_arena arena;
    struct maq_page page;
    struct found found;
    MAQ_TRY(find(&found, what, diag));
    maq_arena_init(&arena, 0);
    maq_page_init(&page, opts);
    struct maq_show s = {.page = &page, .arena = &arena, .diag = diag};
    enum maq_status status = show(&s, &found);
    if (status == MAQ_OK)
        status = maq_page_finish(out, &page, diag);
    else
        maq_buf_fini(&page.out);
    maq_arena_fini(&arena);
    return status;
}

enum maq_status maq_catalogue_show_json(char **out, const char *what, const struct maq_report_opts *opts,
                                        struct maq_diag *diag)
{
    struct maq_arena arena;
    struct maq_json_document document;
    struct found found;
    char *text;
    (void)opts;
    MAQ_TRY(find(&found, what, diag));
    maq_arena_init(&arena, 0);
    maq_json_begin(&document, found.name ? found.kind->schema : found.kind->list_schema);
    struct maq_show s = {.json = &document.root, .arena = &arena, .diag = diag};
    enum maq_status status = show(&s, &found), written = maq_json_finish(&text, &document, diag);
    maq_arena_fini(&arena);
    if (status == MAQ_OK && written == MAQ_OK)
        *out = text;
    else if (written == MAQ_OK)
        free(text);
    return status != MAQ_OK ? status : written;
}
