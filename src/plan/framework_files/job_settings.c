/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_settings.c - what a framework's file says, written into a job document with the places that the file has it. See reader.h.
 *
 * Who said a setting decides who may replace it: the framework's default gives way to anything written, a file to the job's own
 * document, and two files have to agree.
 */
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "model/load.h"
#include "plan/framework_files/reader.h"
#include "plan/job_build.h"
#include "plan/keys.h"
#include "plan/words/words.h"

#define LONGEST_LIST 65536

/* The node of a path in the job, by any name of its last key; NULL: there is none. */
static struct maq_node *find(const struct maq_doc *job, const char *path)
{
    struct maq_str section, key = maq_str_split(maq_str_of(path), '.', &section);
    const bool plan = maq_str_is(section, "plan"), workload = maq_str_is(section, "workload");
    const struct maq_field *fields = plan ? maq_plan_fields : workload ? maq_workload_fields : NULL;
    const struct maq_field *field = fields ? maq_fields_find(fields, key) : NULL;
    struct maq_node *at = job->root;
    struct maq_str rest = maq_str_of(path), name;
    while (at && rest.ptr) {
        struct maq_node *n = at->kind == MAQ_NODE_MAP ? at->first : NULL;
        rest = maq_str_split(rest, '.', &name);
        while (n && !maq_str_eq(n->key, name) && !(field && !rest.ptr && maq_fields_find(fields, n->key) == field))
            n = n->next;
        at = n;
    }
    return at;
}

static void mark(struct maq_node *n, const struct maq_node *from, struct maq_span start)
{
    n->origin = (uint8_t)(from ? MAQ_ORIGIN_FILE : MAQ_ORIGIN_FRAMEWORK);
    n->at = from ? from->at : start;
    n->key_at = from && from->key_at.file ? from->key_at : n->at;
    for (struct maq_node *c = n->first; c; c = c->next)
        mark(c, from, start);
}

static void say_twice(struct maq_file_reader *r, const struct maq_node *from, const struct maq_node *there,
                      const char *path, const char *value)
{
    char show[MAQ_SHOW_SIZE];
    maq_file_fault(r, from, "the files that are used together have to agree", "%s is %s here and %s in another file",
                   path, value, maq_str_show(show, there->text));
    maq_diag_add(r->diag, MAQ_NOTE, MAQ_CODE_FILE_VALUE, there->at, NULL, "there");
}

/* Whether what is there stays; an error where two files differ. */
static bool stays(struct maq_file_reader *r, const struct maq_node *from, const struct maq_node *there,
                  const char *path, const char *value)
{
    if (maq_node_is_null(there))
        return false;
    if (there->origin > MAQ_ORIGIN_FILE || (!from && there->origin == MAQ_ORIGIN_FILE))
        return true;
    bool two = from && there->origin == MAQ_ORIGIN_FILE && there->at.file != from->at.file;
    if (two && there->kind == MAQ_NODE_SCALAR && !maq_str_is(there->text, value))
        say_twice(r, from, there, path, value);
    return two;
}

void maq_file_set(struct maq_file_reader *r, const struct maq_node *from, const char *path, const char *value)
{
    if (!path || !value) {
        maq_file_no_memory(r);
        return;
    }
    struct maq_node *there = find(r->job, path);
    if ((r->open && maq_plan_is_searched(path)) || (there && stays(r, from, there, path, value)))
        return;
    enum maq_status status = maq_doc_set_value(r->job, path, value, r->form->title, r->diag);
    there = find(r->job, path);
    if (status == MAQ_OK && there)
        mark(there, from, (struct maq_span){r->root->at.file, r->root->at.off, 1});
    else if (r->status == MAQ_OK)
        r->status = status;
}

void maq_file_set_number(struct maq_file_reader *r, const struct maq_node *from, const char *path, int64_t value)
{
    maq_file_set(r, from, path, maq_arena_printf(&r->job->arena, "%lld", (long long)value));
}

void maq_file_set_words(struct maq_file_reader *r, const struct maq_node *from, const char *path)
{
    struct maq_buf b;
    maq_buf_init(&b, LONGEST_LIST);
    if (from->kind == MAQ_NODE_SCALAR)
        maq_buf_add(&b, from->text.ptr, from->text.len);
    for (const struct maq_node *n = from->first; n; n = n->next)
        maq_buf_addf(&b, "%s%.*s", b.len ? "," : "", (int)n->text.len, n->text.ptr);
    if (b.len > 0)
        maq_file_set(r, from, path, b.failed ? NULL : maq_arena_strdup(&r->job->arena, (struct maq_str){b.ptr, b.len}));
    maq_buf_fini(&b);
}

bool maq_file_set_lines(struct maq_file_reader *r, struct maq_words_reader *words, struct maq_buf *lines)
{
    const struct maq_str whole = {lines->ptr ? lines->ptr : "", lines->len};
    char *text = lines->failed ? NULL : maq_arena_strdup(words->arena, whole);
    maq_buf_fini(lines);
    if (!text || !maq_words_read(words, maq_str_of(text))) {
        maq_file_no_memory(r);
        return false;
    }
    for (size_t i = 0; i < words->n; i++) {
        const struct maq_override *o = &words->overrides[i];
        maq_file_set(r, maq_file_get(r, o->flag), o->path, o->value);
    }
    return true;
}

const struct maq_node *maq_file_job_value(const struct maq_file_reader *r, const char *path)
{
    const struct maq_node *n = find(r->job, path);
    return maq_node_is_null(n) ? NULL : n;
}

void maq_file_framework(struct maq_file_reader *r, const char *name)
{
    const struct maq_node *there = maq_file_job_value(r, "framework");
    const bool broad = there && there->origin == MAQ_ORIGIN_FRAMEWORK && maq_str_is(there->text, "huggingface");
    if (!there || broad) /* what a file beside it runs under says more */
        maq_file_set(r, NULL, "framework", name);
}

bool maq_file_model_shape(const struct maq_file_reader *r, int64_t *hidden, int64_t *layers)
{
    const struct maq_node *n = maq_file_job_value(r, "model");
    struct maq_str name = r->model ? maq_str_of(r->model) : n && n->kind == MAQ_NODE_SCALAR ? n->text : MAQ_STR("");
    return name.len > 0 && maq_model_shape(hidden, layers, name);
}
