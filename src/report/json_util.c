/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_util.c - a thin layer over jansson that keeps the first failure and writes numbers with 12 digits. See
 * json_util.h.
 */
#include "report/json_util.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "base/text.h"
#include "maquette/report.h"

#define DIGITS 12
#define JSON_MAX ((size_t)256 << 20)
#define WHOLE_MAX 9007199254740992.0 /* 2^53: whole numbers in a double are exact up to here */

/* jansson takes NULL for map and value and then fails, so one failure makes all that hang on it fail too. */
static void add(struct maq_json map, const char *key, json_t *value)
{
    if (json_object_set_new(map.at, key, value) != 0)
        map.document->failed = true;
}

void maq_json_slice(struct maq_json map, const char *key, struct maq_str value)
{
    json_t *text = json_stringn(value.ptr ? value.ptr : "", value.len);
    add(map, key, text ? text : json_null());
}

void maq_json_text(struct maq_json map, const char *key, const char *value)
{
    if (value)
        maq_json_slice(map, key, (struct maq_str){value, strlen(value)});
    else
        maq_json_null(map, key);
}

void maq_json_real(struct maq_json map, const char *key, double value)
{
    add(map, key, isfinite(value) ? json_real(value) : json_null());
}

void maq_json_int(struct maq_json map, const char *key, int64_t value)
{
    add(map, key, json_integer(value));
}

void maq_json_count(struct maq_json map, const char *key, double value)
{
    if (fabs(value) < WHOLE_MAX)
        maq_json_int(map, key, (int64_t)llround(value));
    else
        maq_json_real(map, key, value);
}

void maq_json_bool(struct maq_json map, const char *key, bool value)
{
    add(map, key, json_boolean(value));
}

void maq_json_null(struct maq_json map, const char *key)
{
    add(map, key, json_null());
}

void maq_json_positive(struct maq_json map, const char *key, double value)
{
    maq_json_real(map, key, value > 0 ? value : (double)NAN);
}

void maq_json_reals(struct maq_json map, const struct maq_json_figure *figures)
{
    for (; figures->key; figures++)
        maq_json_real(map, figures->key, figures->value);
}

void maq_json_ints(struct maq_json map, const struct maq_json_number *numbers)
{
    for (; numbers->key; numbers++)
        maq_json_int(map, numbers->key, numbers->value);
}

struct maq_json maq_json_map(struct maq_json map, const char *key)
{
    add(map, key, json_object());
    return (struct maq_json){json_object_get(map.at, key), map.document};
}

struct maq_json maq_json_list(struct maq_json map, const char *key)
{
    add(map, key, json_array());
    return (struct maq_json){json_object_get(map.at, key), map.document};
}

struct maq_json maq_json_item(struct maq_json list)
{
    if (json_array_append_new(list.at, json_object()) != 0) {
        list.document->failed = true;
        return (struct maq_json){NULL, list.document};
    }
    return (struct maq_json){json_array_get(list.at, json_array_size(list.at) - 1), list.document};
}

void maq_json_word(struct maq_json list, const char *text)
{
    if (json_array_append_new(list.at, json_string(text)) != 0)
        list.document->failed = true;
}

void maq_json_begin(struct maq_json_document *document, const char *schema)
{
    *document = (struct maq_json_document){.root = {json_object(), document}};
    maq_json_text(document->root, "schema", schema);
    struct maq_json build = maq_json_map(document->root, "maquette");
    maq_json_text(build, "version", maq_version());
    maq_json_text(build, "commit", maq_build_commit());
    maq_json_text(build, "compiler", maq_build_compiler());
}

static int append(const char *bytes, size_t n, void *user)
{
    struct maq_buf *out = user;
    maq_buf_add(out, bytes, n);
    return out->failed ? -1 : 0;
}

static void put_finding(struct maq_json list, const struct maq_diag *diag, const struct maq_diag_item *item)
{
    static const char *const severities[] = {[MAQ_ERROR] = "error", [MAQ_WARNING] = "warning", [MAQ_NOTE] = "note"};
    struct maq_json map = maq_json_item(list);
    struct maq_place place = maq_diag_place(diag, item->at);
    char code[16];
    maq_json_text(map, "severity", severities[item->severity]);
    maq__snprintf(code, sizeof code, "MAQ%04u", (unsigned)item->code);
    maq_json_text(map, "code", item->code ? code : NULL);
    maq_json_text(map, "file", place.line > 0 ? place.name : NULL);
    MAQ_JSON_INTS(map, {"line", place.line}, {"column", place.column});
    maq_json_slice(map, "message", item->msg);
    if (item->hint.len > 0)
        maq_json_slice(map, "hint", item->hint);
    else
        maq_json_null(map, "hint");
}

/* What was said on the way, warnings and notes of a result too; nothing where nothing was. */
static void put_findings(struct maq_json map, const struct maq_diag *diag)
{
    size_t n = diag ? maq_diag_count(diag) : 0;
    if (n == 0)
        return;
    struct maq_json list = maq_json_list(map, "diagnostics");
    for (size_t i = 0; i < n; i++)
        put_finding(list, diag, maq_diag_at(diag, i));
}

enum maq_status maq_report_error_json(char **out, enum maq_status status, struct maq_diag *diag)
{
    struct maq_json_document document;
    maq_json_begin(&document, "maquette.error/1");
    maq_json_text(document.root, "status", maq_status_text(status));
    maq_json_int(document.root, "exit_status", maq_status_exit_code(status));
    return maq_json_finish(out, &document, diag);
}

enum maq_status maq_json_finish(char **out, struct maq_json_document *document, struct maq_diag *diag)
{
    struct maq_buf text;
    maq_buf_init(&text, JSON_MAX);
    put_findings(document->root, diag);
    size_t flags = JSON_INDENT(2) | JSON_REAL_PRECISION(DIGITS);
    bool good = !document->failed && json_dump_callback(document->root.at, append, &text, flags) == 0;
    json_decref(document->root.at);
    maq_buf_addc(&text, '\n');
    if (good && !text.failed) {
        *out = text.ptr;
        return MAQ_OK;
    }
    maq_buf_fini(&text);
    return maq_no_memory(diag, "a report");
}

char *maq_report_add_diagnostics(char *json, const struct maq_diag *diag)
{
    static const char end[] = "\n}\n";
    struct maq_json_document document = {.root = {json_object(), &document}};
    size_t n = json ? strlen(json) : 0, tail = sizeof end - 1;
    char *list = NULL;
    put_findings(document.root, diag);
    bool any = json_object_size(document.root.at) > 0, whole = n > tail && strcmp(json + n - tail, end) == 0;
    if (any && whole && !document.failed)
        list = json_dumps(document.root.at, JSON_INDENT(2));
    json_decref(document.root.at);
    if (!list) {
        if (any && whole) { /* out of memory: no document rather than half of one */
            free(json);
            return NULL;
        }
        return json;
    }
    struct maq_buf text;
    maq_buf_init(&text, JSON_MAX);
    maq_buf_add(&text, json, n - tail);
    maq_buf_addf(&text, ",%s\n", list + 1); /* its first character is '{' */
    free(list);
    free(json);
    return maq_buf_take(&text);
}

char *maq_json_take(struct maq_json_document *document)
{
    char *out = NULL;
    return maq_json_finish(&out, document, NULL) == MAQ_OK ? out : NULL;
}
