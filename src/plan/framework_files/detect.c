/* SPDX-License-Identifier: Apache-2.0 */
/*
 * detect.c - which framework a file is of, and the files that go with it. See framework_files.h.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/check.h"
#include "base/text.h"
#include "plan/framework_files/hugging_face.h"
#include "plan/framework_files/reader.h"

#define MOST_NESTED 8 /* files that name files */
#define LONGEST_PATH 4096

const struct maq_file_form *const maq_file_forms[] = {
    &maq_file_maxtext,
    &maq_file_nemo,
    &maq_file_nemo2,
    &maq_file_litgpt,
    &maq_file_nanotron,
    &maq_file_megatron,
    &maq_file_deepspeed,
    &maq_file_accelerate,
    &maq_file_axolotl,
    &maq_file_llama_factory,
    &maq_file_llama_factory_v1,
    &maq_file_torchtitan,
    &maq_file_training_arguments,
    &maq_file_lightning,
    NULL,
};

/* Sections that only a job of maquette has. */
static const char *const own[] = {"cluster", "plan", "workload", "files"};

static bool told_by(const struct maq_node *root, const char *lists)
{
    struct maq_str rest = maq_str_of(lists), list, key;
    while (rest.ptr && rest.len > 0) {
        bool all = true;
        rest = maq_str_split(rest, '|', &list);
        while (list.ptr && list.len > 0) {
            bool there = false;
            list = maq_str_split(list, ',', &key);
            for (const struct maq_node *n = root->first; n && !there; n = n->next)
                there = maq_str_eq(n->key, key);
            all &= there;
        }
        if (all)
            return true;
    }
    return false;
}

static const struct maq_file_form *form_of(const struct maq_node *root)
{
    for (size_t i = 0; root && root->kind == MAQ_NODE_MAP && maq_file_forms[i]; i++)
        if (told_by(root, maq_file_forms[i]->told_by))
            return maq_file_forms[i];
    return NULL;
}

static bool is_job(const struct maq_node *root)
{
    for (size_t i = 0; i < MAQ_COUNT(own); i++)
        if (told_by(root, own[i]))
            return true;
    return false;
}

/* An error, unless the loader of such files takes the last. */
static enum maq_status keys_given_twice(const struct maq_doc *doc, const struct maq_file_form *form,
                                        struct maq_diag *diag)
{
    if (!form || !form->last_key_of)
        return maq_doc_refuse_again(doc, diag);
    maq_doc_note_again(doc, form->last_key_of, diag);
    return MAQ_OK;
}

/* ---- files that are named ---- */

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* As it is, then from the folder of `from` and from those above it. */
static bool find_file(char out[LONGEST_PATH], struct maq_str name, const char *from)
{
    const int len = (int)(name.len < LONGEST_PATH ? name.len : LONGEST_PATH);
    maq__snprintf(out, LONGEST_PATH, "%.*s", len, name.ptr);
    if (is_file(out))
        return true;
    char absolute[LONGEST_PATH];
    char *real = from ? realpath(from, NULL) : NULL;
    maq__snprintf(absolute, sizeof absolute, "%s", real ? real : "");
    free(real);
    for (char *slash = strrchr(absolute, '/'); slash; slash = strrchr(absolute, '/')) {
        *slash = '\0';
        maq__snprintf(out, LONGEST_PATH, "%s/%.*s", absolute, len, name.ptr);
        if (is_file(out))
            return true;
    }
    return false;
}

static void read_named(struct maq_file_reader *outer, struct maq_file_reader *r, const char *path)
{
    struct maq_doc file;
    r->status = maq_doc_load_any(&file, path, MAQ_ORIGIN_FILE, r->diag);
    r->root = file.root;
    r->path = path;
    r->form = form_of(file.root);
    if (r->status == MAQ_OK && !r->form) {
        maq_file_fault(outer, NULL, "docs/framework-files.md lists the forms that are read",
                       "nothing here knows what %.200s is: it has no keys of a framework's file", path);
        r->status = outer->status;
    } else if (r->status == MAQ_OK) {
        r->status = keys_given_twice(&file, r->form, r->diag);
        if (r->status == MAQ_OK)
            maq_file_walk(r);
    }
    maq_doc_fini(&file);
}

void maq_file_beside(struct maq_file_reader *outer, const struct maq_node *at)
{
    char path[LONGEST_PATH];
    struct maq_file_reader r = *outer;
    r.beside = true;
    r.depth++;
    if (at->kind == MAQ_NODE_MAP) { /* the configuration itself, in place of its file's name */
        struct maq_node copy = *at;
        r.root = &copy;
        r.form = form_of(&copy);
        if (r.form)
            maq_file_walk(&r);
        else
            maq_file_fault(&r, at, NULL, "it has no keys of a framework's file");
    } else if (at->kind != MAQ_NODE_SCALAR || r.depth > MOST_NESTED) {
        maq_file_fault(&r, at, NULL, "it has to name a file%s",
                       r.depth > MOST_NESTED ? ", not one file after the other" : "");
    } else if (!find_file(path, at->text, outer->path)) {
        maq_file_fault(&r, at, "paths are tried as they are, and from the folder of this file and those above it",
                       "there is no file '%.*s'", (int)(at->text.len < 200 ? at->text.len : 200), at->text.ptr);
    } else {
        read_named(outer, &r, path);
    }
    outer->status = outer->status == MAQ_OK ? r.status : outer->status;
}

/* ---- the door ---- */

/* Takes the key `files` out of a map. */
static struct maq_node *take_files(struct maq_node *root)
{
    for (struct maq_node **at = &root->first; *at; at = &(*at)->next)
        if (maq_str_is((*at)->key, "files")) {
            struct maq_node *list = *at;
            *at = list->next;
            root->count--;
            return list;
        }
    return NULL;
}

static void read_list(struct maq_file_reader *r, const struct maq_node *list)
{
    if (maq_node_is_null(list))
        return;
    if (list->kind != MAQ_NODE_SEQ) {
        maq_file_beside(r, list);
        return;
    }
    for (const struct maq_node *n = list->first; n; n = n->next)
        maq_file_beside(r, n);
}

enum maq_status maq_files_read(const char **title, struct maq_doc *doc, const char *path, const char *model,
                               const char *cluster, bool open, struct maq_diag *diag)
{
    static const struct maq_file_key no_keys[] = {MAQ_FILE_END};
    static const struct maq_file_form job = {.title = "a job", .keys = no_keys};
    struct maq_node *root = doc->root;
    *title = NULL;
    if (!root || root->kind != MAQ_NODE_MAP)
        return maq_doc_refuse_again(doc, diag);
    struct maq_node *list = take_files(root);
    const struct maq_file_form *form = is_job(root) ? NULL : form_of(root);
    MAQ_TRY(keys_given_twice(doc, form, diag));
    struct maq_file_reader r = {.form = form ? form : &job,
                                .root = root,
                                .path = path,
                                .job = doc,
                                .model = model,
                                .cluster = cluster,
                                .open = open,
                                .diag = diag};
    if (form) {
        struct maq_node *fresh = MAQ_ARENA_NEW(&doc->arena, struct maq_node, 1);
        if (!fresh)
            return maq_no_memory(diag, NULL);
        *fresh = (struct maq_node){.kind = MAQ_NODE_MAP, .origin = MAQ_ORIGIN_FILE, .at = root->at};
        doc->root = fresh;
        *title = form->title;
        maq_file_walk(&r);
    }
    read_list(&r, list);
    return r.status;
}
