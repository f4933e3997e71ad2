/* SPDX-License-Identifier: Apache-2.0 */
/*
 * round_trip.c - a job as a framework's configuration file: written by its form, read back as any such file, and compared. See
 * maquette/framework_words.h and writer.h.
 *
 * What the file cannot say goes beside it as values of options: the cluster always, and what its form does not say of model, sequence and
 * batch. Compared are the model, the batch, the framework with its mechanisms, and every setting of the plan.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "maquette/framework_words.h"
#include "plan/codes.h"
#include "plan/framework.h"
#include "plan/framework_files/reader.h"
#include "plan/framework_files/writer.h"
#include "plan/job_build.h"
#include "plan/words/words.h"

#define LONGEST ((size_t)1 << 20)

/* ---- what goes beside the file ---- */

#define MOST_BESIDE 16

struct beside {
    struct maq_override list[MOST_BESIDE];
    size_t n;
    struct maq_arena arena;
    bool failed;
};

static void put_beside(struct beside *b, const char *path, const char *value)
{
    MAQ_ASSERT(b->n < MOST_BESIDE);
    b->failed |= !path || !value;
    if (path && value)
        b->list[b->n++] = (struct maq_override){path, path, value};
}

/* A section of the job's document, where it has one. */
static void put_section(struct beside *b, const struct maq_loaded_job *loaded, const char *key)
{
    const struct maq_node *root = maq_job_document(loaded), *section = root ? maq_node_peek(root, key) : NULL;
    if (!section || maq_node_is_null(section))
        return;
    char *text = maq_job_section_text(section);
    put_beside(b, key, text ? maq_arena_strdup(&b->arena, maq_str_of(text)) : NULL);
    free(text);
}

/* Lengths of documents are the data's. */
static void put_lengths(struct beside *b, const struct maq_loaded_job *loaded)
{
    const struct maq_node *root = maq_job_document(loaded), *workload = root ? maq_node_peek(root, "workload") : NULL;
    for (const struct maq_node *n = workload ? workload->first : NULL; n; n = n->next)
        if (n->kind == MAQ_NODE_SCALAR && (maq_str_starts(n->key, "length_") || maq_str_is(n->key, "packed")))
            put_beside(b, maq_arena_printf(&b->arena, "workload.%.*s", (int)n->key.len, n->key.ptr),
                       maq_arena_strdup(&b->arena, n->text));
}

static void collect(struct beside *b, const struct maq_loaded_job *loaded, unsigned says)
{
    const struct maq_job *job = maq_job_get(loaded);
    *b = (struct beside){0};
    maq_arena_init(&b->arena, 0);
    put_section(b, loaded, "cluster");
    put_section(b, loaded, "cost");
    if (!(says & MAQ_FILE_SAYS_MODEL))
        put_section(b, loaded, "model");
    put_lengths(b, loaded);
    put_beside(b, "plan.moe_imbalance", maq_arena_printf(&b->arena, "%.17g", job->plan.imbalance));
    if (!(says & MAQ_FILE_SAYS_SEQUENCE))
        put_beside(b, "workload.seq_length", maq_arena_printf(&b->arena, "%lld", (long long)job->workload.seq));
    if (!(says & MAQ_FILE_SAYS_BATCH)) {
        put_beside(b, "workload.global_batch_size", maq_arena_printf(&b->arena, "%d", job->workload.gbs));
        put_beside(b, "plan.micro_batch_size", maq_arena_printf(&b->arena, "%d", job->plan.mbs));
    }
}

/* ---- what it does not say ---- */

struct comparison {
    const struct maq_loaded_job *loaded;
    const struct maq_job *own, *other;
    const struct maq_file_form *form;
    struct maq_diag *diag;
    bool same;
};

static void unsaid(struct comparison *c, const char *key, const char *value, const char *instead)
{
    const struct maq_job_places at = maq_job_sections(c->loaded);
    const bool workload = maq_fields_find(maq_workload_fields, maq_str_of(key)) != NULL;
    struct maq_span place = workload ? maq_place_of(at.workload, key) : maq_place_of_plan(&at, key);
    if (strcmp(key, "model") == 0 && at.model)
        place = at.model->at;
    c->same = false;
    maq_diag_add(c->diag, MAQ_ERROR, MAQ_CODE_FILE_UNSAID, place, "give it the other value, or keep the job file",
                 "%s has no words for %s: %s (it would be %s)", c->form->title, key, value, instead);
}

static void compare_number(struct comparison *c, const char *key, int64_t own, int64_t other)
{
    char value[32], instead[32];
    maq__snprintf(value, sizeof value, "%lld", (long long)own);
    maq__snprintf(instead, sizeof instead, "%lld", (long long)other);
    if (own != other)
        unsaid(c, key, value, instead);
}

/* Mechanisms that the job says itself: `framework: {base: deepspeed, pass_synchronizes: true}`. */
static void compare_mechanisms(struct comparison *c, const struct maq_field *fields, const void *own, const void *other)
{
    for (const struct maq_field *f = fields; f->type != MAQ_TYPE_END; f++) {
        char value[64], instead[64], key[96];
        if (f->type == MAQ_TYPE_NODE || f->type == MAQ_TYPE_STR ||
            strcmp(maq_field_format(value, f, own), maq_field_format(instead, f, other)) == 0)
            continue;
        maq__snprintf(key, sizeof key, "framework.%s", f->key);
        unsaid(c, key, value, instead);
    }
}

static void compare_framework(struct comparison *c)
{
    const struct maq_framework *own = &c->own->framework, *other = &c->other->framework;
    const struct maq_job_places at = maq_job_sections(c->loaded);
    if (strcmp(own->name, other->name) == 0) {
        compare_mechanisms(c, maq_framework_fields, own, other);
        compare_mechanisms(c, maq_host_fields, &own->host, &other->host);
        return;
    }
    c->same = false;
    maq_diag_add(c->diag, MAQ_ERROR, MAQ_CODE_FILE_UNSAID, maq_place_of_plan(&at, "framework"),
                 "name that framework, or write another file",
                 "%s has no words for the framework %s: its jobs run under %s", c->form->title, own->name, other->name);
}

static void compare_model(struct comparison *c)
{
    const struct maq_model *own = &c->own->model, *other = &c->other->model;
    if (strcmp(own->name, other->name) != 0 && (own->params != other->params || own->num_layers != other->num_layers))
        unsaid(c, "model", own->name, other->name);
    else if (own->params != other->params || own->active_params != other->active_params)
        unsaid(c, "model", "other sizes", other->name);
}

static enum maq_status compare(struct comparison *c)
{
    const struct maq_unsaid *list;
    struct maq_arena arena;
    uint32_t n = 0;
    c->same = true;
    compare_model(c);
    compare_framework(c);
    compare_number(c, "seq_length", c->own->workload.seq, c->other->workload.seq);
    compare_number(c, "global_batch_size", c->own->workload.gbs, c->other->workload.gbs);
    maq_arena_init(&arena, 0);
    const bool good = maq_plan_differences(&list, &n, c->own, c->other, &arena);
    for (uint32_t i = 0; i < n && good; i++)
        unsaid(c, list[i].key, list[i].value, list[i].instead);
    maq_arena_fini(&arena);
    return !good ? maq_no_memory(c->diag, "a framework's file") : c->same ? MAQ_OK : MAQ_BAD_INPUT;
}

/* ---- read back ---- */

/* The file is refused: its places are in a text that nobody has seen. */
static enum maq_status say_refused(const struct maq_loaded_job *loaded, const struct maq_file_form *form,
                                   const struct maq_diag *inner, struct maq_diag *diag)
{
    const struct maq_job_places at = maq_job_sections(loaded);
    struct maq_str first = MAQ_STR("it is refused");
    for (size_t i = maq_diag_count(inner); i > 0; i--)
        if (maq_diag_at(inner, i - 1)->severity == MAQ_ERROR)
            first = maq_diag_at(inner, i - 1)->msg;
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_FILE_UNSAID, maq_place_of_plan(&at, "framework"),
                         "change what is named there, or keep the job file", "%s cannot say this job: %.*s",
                         form->title, (int)first.len, first.ptr);
}

/* Its ending says how it is read. */
static const char *const read_as[] = {
    [MAQ_FILE_JSON] = "written.json", [MAQ_FILE_YAML] = "written.yaml", [MAQ_FILE_TOML] = "written.toml"};

static enum maq_status check(const char *text, const struct maq_loaded_job *loaded, const struct maq_file_form *form,
                             struct maq_diag *diag)
{
    struct beside beside;
    struct maq_loaded_job *back = NULL;
    struct maq_diag *inner = maq_diag_new();
    collect(&beside, loaded, form->says);
    enum maq_status status = !inner || beside.failed ? maq_no_memory(diag, "a framework's file")
                                                     : maq_job_parse(&back, read_as[form->syntax], maq_str_of(text),
                                                                     beside.list, beside.n, inner);
    if (status == MAQ_BAD_INPUT) {
        status = say_refused(loaded, form, inner, diag);
    } else if (status == MAQ_OK) {
        struct comparison c = {loaded, maq_job_get(loaded), maq_job_get(back), form, diag, true};
        status = compare(&c);
    }
    maq_job_free(back);
    maq_diag_free(inner);
    maq_arena_fini(&beside.arena);
    return status;
}

/* ---- the door ---- */

static enum maq_status unknown_form(const char *name, struct maq_diag *diag)
{
    struct maq_buf hint;
    maq_buf_init(&hint, 4096);
    for (size_t i = 0; maq_file_forms[i]; i++)
        if (maq_file_forms[i]->write)
            maq_buf_addf(&hint, "%s%s", hint.len ? ", " : "", maq_file_forms[i]->name);
    maq_buf_adds(&hint, " are");
    enum maq_status status = maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_FILE_UNSAID, (struct maq_span){0},
                                           hint.failed ? NULL : hint.ptr, "'%s' is no file that can be written", name);
    maq_buf_fini(&hint);
    return status;
}

static enum maq_status write(char **out, const struct maq_loaded_job *loaded, const struct maq_file_form *form,
                             struct maq_diag *diag)
{
    const struct maq_job_places at = maq_job_sections(loaded);
    struct maq_buf text;
    maq_buf_init(&text, LONGEST);
    struct maq_file_writer w = {.out = &text, .syntax = form->syntax, .title = form->title, .at = &at, .diag = diag};
    maq_file_open(&w, NULL);
    form->write(&w, maq_job_get(loaded));
    maq_file_close(&w);
    *out = maq_buf_take(&text);
    return !*out ? maq_no_memory(diag, "a framework's file") : w.failed ? MAQ_BAD_INPUT : MAQ_OK;
}

enum maq_status maq_framework_file(char **out, const struct maq_loaded_job *loaded, const char *name,
                                   struct maq_diag *diag)
{
    const struct maq_file_form *form = NULL;
    char *text = NULL;
    for (size_t i = 0; maq_file_forms[i]; i++)
        if (maq_file_forms[i]->write && strcmp(maq_file_forms[i]->name, name) == 0)
            form = maq_file_forms[i];
    if (!form)
        return unknown_form(name, diag);
    if (maq_job_rl_node(loaded))
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_FILE_UNSAID, maq_job_rl_node(loaded)->key_at,
                             "take the section out to write the policy's training",
                             "a job of several models is not written as %s", form->title);
    enum maq_status status = write(&text, loaded, form, diag);
    if (status == MAQ_OK)
        status = check(text, loaded, form, diag);
    if (status == MAQ_OK)
        *out = text;
    else
        free(text);
    return status;
}
