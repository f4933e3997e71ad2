/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vocabulary.c - a framework's table of words: a plan written by it, and what was written read by it. See words.h.
 */
#include <string.h>

#include "base/check.h"
#include "plan/job_build.h"
#include "plan/words/words.h"

#define LONGEST 65536

static bool ends(const struct maq_word *row)
{
    return !row->word && !row->path;
}

static size_t rows_of(const struct maq_vocabulary *v)
{
    size_t n = 0;
    while (!ends(&v->words[n]))
        n++;
    return n;
}

/* The other side of a pair of "ours=theirs|ours=theirs"; NULL pointer: there is none. Without pairs the text is its own. */
static struct maq_str other_side(const char *pairs, struct maq_str text, bool theirs)
{
    struct maq_str rest = maq_str_of(pairs), pair, left, right;
    if (!pairs)
        return text;
    while (rest.ptr && rest.len > 0) {
        rest = maq_str_split(rest, '|', &pair);
        right = maq_str_split(pair, '=', &left);
        if (maq_str_eq(theirs ? left : right, text))
            return theirs ? right : left;
    }
    return (struct maq_str){0};
}

/* ---- writing ---- */

struct section {
    const struct maq_field *field;
    const void *values;
};

/* The row of the plan or of the workload that a path names. */
static struct section find(const char *path, const struct maq_plan_doc *doc, const struct maq_workload *workload)
{
    struct maq_str section, key = maq_str_split(maq_str_of(path), '.', &section);
    bool plan = maq_str_is(section, "plan");
    struct section s = {maq_fields_find(plan ? maq_plan_fields : maq_workload_fields, key),
                        plan ? (const void *)doc : (const void *)workload};
    MAQ_ASSERT(s.field);
    return s;
}

static void write_value(struct maq_buf *out, const struct maq_word *row, const struct maq_job *job)
{
    char value[64];
    const struct maq_plan_doc doc = {.plan = job->plan};
    struct section s = find(row->path, &doc, &job->workload);
    if (s.values == &doc && maq_setting_is_idle(s.field->key, job))
        return;
    if (s.field->type == MAQ_TYPE_STR) {
        struct maq_str text;
        memcpy(&text, (const char *)s.values + s.field->offset, sizeof text);
        maq_buf_add(out, text.ptr, text.len);
        return;
    }
    struct maq_str theirs = other_side(row->values, maq_str_of(maq_field_format(value, s.field, s.values)), true);
    maq_buf_add(out, theirs.ptr, theirs.len);
}

void maq_word_write(struct maq_buf *out, const struct maq_word *row, const struct maq_job *job)
{
    if (row->word && row->path)
        write_value(out, row, job);
    else if (row->word)
        row->write(out, row, job);
    if (row->def && maq_str_is((struct maq_str){out->ptr, out->len}, row->def))
        out->len = 0;
}

void maq_words_write(struct maq_buf *out, const struct maq_vocabulary *v, const struct maq_job *job)
{
    for (const struct maq_word *row = v->words; !ends(row); row++) {
        struct maq_buf text;
        maq_buf_init(&text, LONGEST);
        maq_word_write(&text, row, job);
        const struct maq_str said = {text.ptr, text.len};
        bool alone = maq_str_is(said, MAQ_WORD_SWITCH);
        if (said.len > 0)
            maq_buf_addf(out, "%s%s%s%.*s\n", v->before, row->word, alone ? "" : v->between, alone ? 0 : (int)said.len,
                         said.ptr);
        out->failed |= text.failed;
        maq_buf_fini(&text);
    }
}

/* ---- reading ---- */

void maq_words_set(struct maq_words_reader *r, const char *path, const char *value)
{
    const char *copy = maq_arena_strdup(r->arena, maq_str_of(value));
    MAQ_ASSERT(r->n < r->size);
    r->failed |= !copy;
    if (copy)
        r->overrides[r->n++] = (struct maq_override){r->word ? r->word : r->vocabulary->title, path, copy};
}

void maq_words_set_number(struct maq_words_reader *r, const char *path, int64_t value)
{
    const char *text = maq_arena_printf(r->arena, "%lld", (long long)value);
    r->failed |= !text;
    if (text)
        maq_words_set(r, path, text);
}

struct maq_str maq_words_text(const struct maq_words_reader *r, const char *word)
{
    const struct maq_word *row = r->vocabulary->words;
    for (size_t i = 0; !ends(&row[i]); i++)
        if (row[i].word && strcmp(row[i].word, word) == 0)
            return r->texts[i].ptr ? r->texts[i] : maq_str_of(row[i].def);
    return (struct maq_str){0};
}

int64_t maq_words_number(const struct maq_words_reader *r, const char *word, int64_t otherwise)
{
    int64_t n;
    return maq_str_to_i64(&n, maq_words_text(r, word)) ? n : otherwise;
}

static bool take(struct maq_str *rest, const char *what)
{
    bool is = maq_str_starts(*rest, what);
    size_t n = is ? strlen(what) : 0;
    *rest = (struct maq_str){rest->ptr + n, rest->len - n};
    return is;
}

/* A line to the row of its word. */
static void note_line(struct maq_words_reader *r, struct maq_str line)
{
    const struct maq_vocabulary *v = r->vocabulary;
    for (size_t i = 0; !ends(&v->words[i]); i++) {
        struct maq_str rest = line;
        if (!v->words[i].word || !take(&rest, v->before) || !take(&rest, v->words[i].word))
            continue;
        if (rest.len == 0)
            r->texts[i] = maq_str_of(MAQ_WORD_SWITCH);
        else if (take(&rest, v->between))
            r->texts[i] = rest;
    }
}

static void read_row(struct maq_words_reader *r, const struct maq_word *row, struct maq_str text)
{
    if (!text.ptr)
        return;
    if (row->read) {
        row->read(r, row, text);
        return;
    }
    struct maq_str ours = other_side(row->values, text, false);
    const char *value = row->path && ours.ptr ? maq_arena_strdup(r->arena, ours) : NULL;
    if (value)
        maq_words_set(r, row->path, value);
}

bool maq_words_read(struct maq_words_reader *r, struct maq_str text)
{
    size_t rows = rows_of(r->vocabulary);
    struct maq_str rest = text, line;
    r->size = 4 * rows + 16; /* a row sets a few keys at most */
    r->n = 0;
    r->overrides = MAQ_ARENA_NEW(r->arena, struct maq_override, r->size);
    r->texts = MAQ_ARENA_NEW(r->arena, struct maq_str, rows + 1);
    r->failed = !r->overrides || !r->texts;
    while (!r->failed && rest.ptr && rest.len > 0) {
        rest = maq_str_split(rest, '\n', &line);
        note_line(r, line);
    }
    for (size_t i = 0; i < rows && !r->failed; i++) {
        const struct maq_word *row = &r->vocabulary->words[i];
        r->word = row->word;
        read_row(r, row, r->texts[i].ptr ? r->texts[i] : maq_str_of(row->def));
    }
    return !r->failed;
}
