/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.c - keys and values of a configuration file as JSON, YAML or TOML. See writer.h.
 *
 * Strings have the same escapes in all three: a quote, a backslash, \u and four digits. YAML's stand without quotes where no reader of YAML 1.1
 * would take them for anything else ("no" is one that it does).
 */
#include "plan/framework_files/writer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "plan/codes.h"
#include "plan/framework_files/reader.h"
#include "plan/job_build.h"

static void indent(struct maq_file_writer *w)
{
    const int levels = w->syntax == MAQ_FILE_YAML ? w->depth - 1 : w->syntax == MAQ_FILE_JSON ? w->depth : 0;
    for (int i = 0; i < levels; i++)
        maq_buf_adds(w->out, "  ");
}

/* The key of a value, with what stands before it. */
static void begin(struct maq_file_writer *w, const char *key)
{
    if (w->syntax == MAQ_FILE_JSON && w->depth > 0)
        maq_buf_adds(w->out, w->first ? "\n" : ",\n");
    indent(w);
    if (w->syntax == MAQ_FILE_JSON && key)
        maq_buf_addf(w->out, "\"%s\": ", key);
    else if (key)
        maq_buf_addf(w->out, w->syntax == MAQ_FILE_YAML ? "%s: " : "%s = ", key);
    w->first = false;
}

static void end(struct maq_file_writer *w)
{
    if (w->syntax != MAQ_FILE_JSON)
        maq_buf_addc(w->out, '\n');
}

void maq_file_open(struct maq_file_writer *w, const char *key)
{
    if (w->syntax == MAQ_FILE_JSON) {
        begin(w, key);
        maq_buf_addc(w->out, '{');
    } else if (key && w->syntax == MAQ_FILE_YAML) {
        indent(w);
        maq_buf_addf(w->out, "%s:\n", key);
    } else if (key) {
        maq_buf_addf(w->out, "%s[%s]\n", w->out->len > 0 ? "\n" : "", key);
    }
    w->depth++;
    w->first = true;
}

void maq_file_close(struct maq_file_writer *w)
{
    w->depth--;
    if (w->syntax == MAQ_FILE_JSON) {
        maq_buf_addc(w->out, '\n');
        indent(w);
        maq_buf_adds(w->out, w->depth == 0 ? "}\n" : "}");
    }
    w->first = false;
}

static bool among(struct maq_str text, const char *const *words)
{
    for (; *words; words++)
        if (maq_str_ieq(text, *words))
            return true;
    return false;
}

/* Whether YAML needs no quotes around it. */
static bool is_plain(struct maq_str text)
{
    static const char *const other[] = {"y", "n", "yes", "no", "on", "off", "true", "false", "null", NULL};
    bool letters = text.len > 0 && !among(text, other) && (text.ptr[0] | 32) >= 'a' && (text.ptr[0] | 32) <= 'z';
    for (size_t i = 0; i < text.len && letters; i++) {
        const char c = text.ptr[i];
        letters = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' || c == '.' || c == '/' ||
                  c == '-';
    }
    return letters;
}

static void put(struct maq_file_writer *w, struct maq_str text)
{
    if (w->syntax == MAQ_FILE_YAML && is_plain(text)) {
        maq_buf_add(w->out, text.ptr, text.len);
        return;
    }
    maq_buf_addc(w->out, '"');
    for (size_t i = 0; i < text.len; i++) {
        const unsigned char c = (unsigned char)text.ptr[i];
        if (c == '"' || c == '\\')
            maq_buf_addf(w->out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            maq_buf_addf(w->out, "\\u%04x", c);
        else
            maq_buf_addc(w->out, (char)c);
    }
    maq_buf_addc(w->out, '"');
}

void maq_file_put_text(struct maq_file_writer *w, const char *key, struct maq_str value)
{
    begin(w, key);
    put(w, value);
    end(w);
}

void maq_file_put_word(struct maq_file_writer *w, const char *key, const char *value)
{
    maq_file_put_text(w, key, maq_str_of(value));
}

void maq_file_put_number(struct maq_file_writer *w, const char *key, double value)
{
    begin(w, key);
    maq_buf_addf(w->out, "%.15g", value);
    end(w);
}

void maq_file_put_switch(struct maq_file_writer *w, const char *key, bool on)
{
    begin(w, key);
    maq_buf_adds(w->out, on ? "true" : "false");
    end(w);
}

void maq_file_put_list(struct maq_file_writer *w, const char *key, struct maq_str words)
{
    struct maq_str rest = words, word;
    begin(w, key);
    maq_buf_addc(w->out, '[');
    for (bool first = true; rest.ptr && rest.len > 0; first = false) {
        rest = maq_str_split(rest, ',', &word);
        maq_buf_adds(w->out, first ? "" : ", ");
        put(w, maq_str_trim(word));
    }
    maq_buf_addc(w->out, ']');
    end(w);
}

/* ---- by the rows of a form ---- */

/* What a value is called there: the first of "theirs=ours|...", or the value itself; empty: nothing. */
static struct maq_str theirs(const struct maq_file_key *row, const char *value)
{
    struct maq_str rest = maq_str_of(row->values), pair, name;
    if (!row->values)
        return maq_str_of(value);
    while (rest.ptr && rest.len > 0) {
        rest = maq_str_split(rest, '|', &pair);
        if (maq_str_is(maq_str_split(pair, '=', &name), value))
            return name;
    }
    return (struct maq_str){0};
}

static void put_value(struct maq_file_writer *w, const char *key, struct maq_str value)
{
    int64_t number;
    if (maq_str_to_i64(&number, value))
        maq_file_put_number(w, key, (double)number);
    else if (maq_str_is(value, "true") || maq_str_is(value, "false"))
        maq_file_put_switch(w, key, maq_str_is(value, "true"));
    else
        maq_file_put_text(w, key, value);
}

static void put_row(struct maq_file_writer *w, const struct maq_job *job, const struct maq_file_key *row)
{
    struct maq_str section, key = maq_str_split(maq_str_of(row->to), '.', &section);
    const bool plan = maq_str_is(section, "plan");
    const struct maq_field *field = maq_fields_find(plan ? maq_plan_fields : maq_workload_fields, key);
    const struct maq_plan_doc doc = {.plan = job->plan};
    const char *name = strrchr(row->key, '.');
    char value[64];
    MAQ_ASSERT(field);
    maq_field_format(value, field, plan ? (const void *)&doc : (const void *)&job->workload);
    if (!row->values && field->def && strcmp(value, field->def) == 0)
        return;
    if (plan && maq_setting_is_idle(field->key, job))
        return;
    const struct maq_str said = theirs(row, value);
    if (said.len > 0)
        put_value(w, name ? name + 1 : row->key, said);
}

void maq_file_put_keys(struct maq_file_writer *w, const struct maq_job *job, const struct maq_file_key *rows,
                       const char *keys)
{
    struct maq_str rest = maq_str_of(keys), key;
    while (rest.ptr && rest.len > 0) {
        const struct maq_file_key *row = rows;
        rest = maq_str_split(rest, ',', &key);
        while (row->key && !maq_str_is(key, row->key))
            row++;
        MAQ_ASSERT(row->key && row->take == MAQ_FILE_SETS);
        put_row(w, job, row);
    }
}

/* ---- faults ---- */

void maq_file_cannot(struct maq_file_writer *w, const char *key, const char *hint, const char *fmt, ...)
{
    char text[512];
    va_list list;
    va_start(list, fmt);
    (void)vsnprintf(text, sizeof text, fmt, list);
    va_end(list);
    const bool model = strcmp(key, "model") == 0;
    const struct maq_span place = model && w->at->model ? w->at->model->at : maq_place_of_plan(w->at, key);
    maq_diag_add(w->diag, MAQ_ERROR, MAQ_CODE_FILE_UNSAID, place, hint, "%s: %s", w->title, text);
    w->failed = true;
}
