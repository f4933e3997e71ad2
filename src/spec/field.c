/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field.c - reads a section of a document by its table: see field.h. field_format.c prints values and ranges.
 *
 * A default of "auto" (or "auto" in a document, where the table says so) leaves a number at zero: the reader works it
 * out later. Any other default is converted by the same code as a document's value; one that cannot be is a bug.
 */
#include "spec/field.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/codes.h"
#include "base/str.h"
#include "spec/doc_internal.h"
#include "spec/field_internal.h"

#define LIST_MAX ((size_t)240)     /* characters of "known keys: ..." */
#define UNKNOWN_MAX ((size_t)1000) /* unknown keys reported in one map: looking for nearest candidatees is not free */

size_t maq_fields_count(const struct maq_field *fields)
{
    size_t n = 0;
    while (fields[n].type != MAQ_TYPE_END)
        n++;
    return n;
}

const struct maq_field *maq_fields_find(const struct maq_field *fields, struct maq_str key)
{
    for (; fields->type != MAQ_TYPE_END; fields++) {
        struct maq_str rest = maq_str_of(fields->aliases), alias;
        if (maq_str_is(key, fields->key))
            return fields;
        while (rest.ptr) {
            rest = maq_str_split(rest, '|', &alias);
            if (alias.len && maq_str_eq(alias, key))
                return fields;
        }
    }
    return NULL;
}

/* --- writing into the target ------------------------------------------------------------------------------ */

static void *member(void *target, const struct maq_field *field)
{
    return (char *)target + field->offset;
}

static void store_double(void *target, const struct maq_field *field, double value)
{
    memcpy(member(target, field), &value, sizeof(value));
}

static void store_i64(void *target, const struct maq_field *field, int64_t value)
{
    if (field->type == MAQ_TYPE_I32) {
        int32_t narrow = (int32_t)value;
        memcpy(member(target, field), &narrow, sizeof(narrow));
    } else {
        memcpy(member(target, field), &value, sizeof(value));
    }
}

static void store_int(void *target, const struct maq_field *field, int value)
{
    memcpy(member(target, field), &value, sizeof(value));
}

/* A switch that may be left open has false and true among its names: other words for the two are as good as of a BOOL. */
static int switch_name(const struct maq_field *field, struct maq_str text)
{
    static const char *const words[][2] = {{"no", "false"}, {"off", "false"}, {"yes", "true"}, {"on", "true"}};
    for (size_t w = 0; w < MAQ_COUNT(words); w++)
        for (int i = 0; maq_str_ieq(text, words[w][0]) && field->names[i]; i++)
            if (strcmp(field->names[i], words[w][1]) == 0)
                return i;
    return -1;
}

int maq_field_name(const struct maq_field *field, struct maq_str text)
{
    for (int i = 0; field->names[i]; i++)
        if (maq_str_is(text, field->names[i]))
            return i;
    for (int i = 0; field->names[i]; i++)
        if (maq_str_ieq(text, field->names[i]))
            return i;
    for (int i = 0; field->numbered && field->names[i]; i++)
        if (text.len == 1 && text.ptr[0] == '0' + i)
            return i;
    return switch_name(field, text);
}

static bool is_auto(const struct maq_field *field, struct maq_str text)
{
    bool numeric = field->type == MAQ_TYPE_I32 || field->type == MAQ_TYPE_I64 || field->type == MAQ_TYPE_DOUBLE ||
                   field->type == MAQ_TYPE_QTY;
    return numeric && field->def && strcmp(field->def, "auto") == 0 && maq_str_is(text, "auto");
}

/* Defaults come from our own tables: one that does not convert is a bug. */
static void store_default(void *target, const struct maq_field *field)
{
    struct maq_str text = maq_str_of(field->def);
    if (!field->def)
        return;
    bool ok = true;
    double value = 0;
    int64_t whole = 0;
    const char *why = "";
    bool truth = maq_str_is(text, "true") || maq_str_is(text, "yes") || maq_str_is(text, "on");
    switch (field->type) {
    case MAQ_TYPE_I32:
    case MAQ_TYPE_I64:
        ok = is_auto(field, text) || maq_str_to_i64(&whole, text);
        store_i64(target, field, whole);
        break;
    case MAQ_TYPE_DOUBLE:
        ok = is_auto(field, text) || maq_str_to_double(&value, text);
        store_double(target, field, value);
        break;
    case MAQ_TYPE_QTY:
        ok = is_auto(field, text) || maq_quantity_parse(&value, text, field->dim, &why);
        store_double(target, field, value);
        break;
    case MAQ_TYPE_BOOL:
        memcpy(member(target, field), &truth, sizeof(truth));
        break;
    case MAQ_TYPE_STR:
        memcpy(member(target, field), &text, sizeof(text));
        break;
    case MAQ_TYPE_ENUM:
        ok = maq_field_name(field, text) >= 0;
        store_int(target, field, maq_field_name(field, text));
        break;
    case MAQ_TYPE_NODE:
    case MAQ_TYPE_END:
        ok = false;
        break;
    }
    MAQ_ASSERT(ok && "a default in a field table does not fit its type");
}

/* --- one value -------------------------------------------------------------------------------------------- */

static bool in_range(const struct maq_field *field, double value)
{
    bool none = !(field->min < 0 || field->min > 0 || field->max < 0 || field->max > 0);
    return none || (value >= field->min && (field->max < field->min || value <= field->max));
}

static bool check_range(const struct maq_field *field, double value, struct maq_node *node, struct maq_diag *diag)
{
    char label[MAQ_LABEL_SIZE], range[MAQ_RANGE_SIZE], show[MAQ_SHOW_SIZE], hint[256];
    if (in_range(field, value))
        return true;
    maq__snprintf(hint, sizeof(hint), "%s: %s", field->key, field->doc ? field->doc : "");
    maq_diag_add(diag, MAQ_ERROR, MAQ_CODE_OUT_OF_RANGE, node->at, field->doc ? hint : NULL, "%s is %s, must be %s",
                 maq__node_label(label, node), maq_str_show(show, node->text), maq__field_range(range, field));
    return false;
}

static enum maq_status read_whole(void *target, const struct maq_field *field, struct maq_node *node,
                                  struct maq_diag *diag)
{
    char label[MAQ_LABEL_SIZE], show[MAQ_SHOW_SIZE];
    int64_t value;
    if (!maq_node_i64(&value, node, diag) || !check_range(field, (double)value, node, diag))
        return MAQ_BAD_INPUT;
    if (field->type == MAQ_TYPE_I32 && (value < INT32_MIN || value > INT32_MAX))
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_OUT_OF_RANGE, node->at, NULL,
                             "%s is %s, must be at most 2147483647 in size", maq__node_label(label, node),
                             maq_str_show(show, node->text));
    store_i64(target, field, value);
    return MAQ_OK;
}

/* An example with the user's own number: '400' as a rate becomes "400 GB/s or 400 Gb/s". */
static void quantity_hint(char *hint, size_t size, enum maq_dim dim, struct maq_str text, const char *why)
{
    static const char *const usual[MAQ_DIM_TOTAL][2] = {
        [MAQ_DIM_BYTES] = {"GB", "GiB"},          [MAQ_DIM_RATE] = {"GB/s", "Gb/s"}, [MAQ_DIM_TIME] = {"ms", "s"},
        [MAQ_DIM_FLOPS] = {"TFLOP/s", "PFLOP/s"}, [MAQ_DIM_FREQ] = {"MHz", "GHz"},   [MAQ_DIM_POWER] = {"W", "kW"},
        [MAQ_DIM_MONEY] = {"USD/h", "USD/h"},
    };
    char show[MAQ_SHOW_SIZE];
    if (strcmp(why, "no unit") == 0 && usual[dim][0])
        maq__snprintf(hint, size, "write %s %s%s%s%s%s; units: %s", maq_str_show(show, text), usual[dim][0],
                      dim == MAQ_DIM_MONEY ? "" : " or ", dim == MAQ_DIM_MONEY ? "" : show,
                      dim == MAQ_DIM_MONEY ? "" : " ", dim == MAQ_DIM_MONEY ? "" : usual[dim][1], maq_dim_units(dim));
    else
        maq__snprintf(hint, size, "units: %s", maq_dim_units(dim));
}

static enum maq_status read_quantity(void *target, const struct maq_field *field, struct maq_node *node,
                                     struct maq_diag *diag)
{
    char label[MAQ_LABEL_SIZE], show[MAQ_SHOW_SIZE], hint[512];
    const char *why;
    struct maq_str text;
    double value;
    if (!maq__node_scalar(&text, node, maq_dim_name(field->dim), diag))
        return MAQ_BAD_INPUT;
    if (!maq_quantity_parse(&value, text, field->dim, &why)) {
        quantity_hint(hint, sizeof(hint), field->dim, text, why);
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_BAD_QUANTITY, node->at, hint, "%s must be %s, '%s' has %s",
                             maq__node_label(label, node), maq_dim_name(field->dim), maq_str_show(show, text), why);
    }
    if (!check_range(field, value, node, diag))
        return MAQ_BAD_INPUT;
    store_double(target, field, value);
    return MAQ_OK;
}

/* --- lists of words for hints ----------------------------------------------------------------------------- */

struct word_list {
    struct maq_buf text;
    size_t hidden, shown;
};

static void list_add(struct word_list *list, const char *word)
{
    if (list->text.len + strlen(word) > LIST_MAX) {
        list->hidden++;
        return;
    }
    maq_buf_addf(&list->text, "%s%s", list->shown++ ? ", " : "", word);
}

/* "did you mean 'x'? <title>: a, b, c" as an owned string in list->text. */
static const char *finish_hint(struct maq_buf *out, const struct maq_nearest *near, const char *title,
                               struct word_list *list)
{
    if (near->best)
        maq_buf_addf(out, "did you mean '%.*s'? ", (int)near->best_len, near->best);
    maq_buf_addf(out, "%s: %s", title, list->text.ptr ? list->text.ptr : "none");
    if (list->hidden)
        maq_buf_addf(out, " and %zu more", list->hidden);
    maq_buf_fini(&list->text);
    return out->failed ? NULL : out->ptr;
}

struct maq_str maq_field_slip(const char *slips, struct maq_str text)
{
    struct maq_str rest = maq_str_of(slips), pair, word;
    while (rest.ptr) {
        rest = maq_str_split(rest, '|', &pair);
        struct maq_str name = maq_str_split(pair, '=', &word);
        if (maq__same_but_dashes(word, text))
            return name;
    }
    return (struct maq_str){NULL, 0};
}

/* What people write for a name, and a word that one name alone begins with, are better than what is near by its letters. */
static void name_meant(struct maq_nearest *near, const struct maq_field *field, struct maq_str text)
{
    const char *only = NULL;
    for (int i = 0, n = 0; field->names[i] && text.len >= 2; i++) {
        const char *name = field->names[i];
        bool begins = strlen(name) > text.len && strncasecmp(name, text.ptr, text.len) == 0;
        n += begins;
        only = begins && n == 1 ? name : n > 1 ? NULL : only;
    }
    struct maq_str found = maq_field_slip(field->slips, text);
    found = found.len > 0 ? found : maq_str_of(only);
    if (found.len > 0) {
        near->best = found.ptr;
        near->best_len = found.len;
    }
}

static enum maq_status read_enum(void *target, const struct maq_field *field, struct maq_node *node,
                                 struct maq_diag *diag)
{
    char label[MAQ_LABEL_SIZE], show[MAQ_SHOW_SIZE];
    struct maq_str text;
    if (!maq__node_scalar(&text, node, "a word", diag))
        return MAQ_BAD_INPUT;
    int index = maq_field_name(field, text);
    if (index >= 0) {
        store_int(target, field, index);
        return MAQ_OK;
    }
    struct maq_nearest near;
    struct word_list list = {0};
    struct maq_buf hint;
    maq_buf_init(&hint, 4096);
    maq_buf_init(&list.text, 4096);
    maq__nearest_init(&near, text);
    for (int i = 0; field->names[i]; i++) {
        maq__nearest_try(&near, maq_str_of(field->names[i]));
        list_add(&list, field->names[i]);
    }
    name_meant(&near, field, text);
    int last = -1;
    while (field->names[last + 1])
        last++;
    char title[48] = "one of";
    if (field->numbered)
        maq__snprintf(title, sizeof title, "0 to %d, or one of", last);
    maq_diag_add(diag, MAQ_ERROR, MAQ_CODE_BAD_ENUM, node->at, finish_hint(&hint, &near, title, &list),
                 "unknown value '%s' for %s", maq_str_show(show, text), maq__node_label(label, node));
    maq_buf_fini(&hint);
    return MAQ_BAD_INPUT;
}

static enum maq_status read_text(void *target, const struct maq_field *field, struct maq_node *node,
                                 struct maq_arena *arena, struct maq_diag *diag)
{
    struct maq_str text;
    if (!maq__node_scalar(&text, node, "a text", diag))
        return MAQ_BAD_INPUT;
    char *copy = maq_arena_strdup(arena, text);
    if (!copy)
        return maq_no_memory(diag, NULL);
    text.ptr = copy;
    memcpy(member(target, field), &text, sizeof(text));
    return MAQ_OK;
}

static enum maq_status read_value(void *target, const struct maq_field *field, struct maq_node *node,
                                  struct maq_arena *arena, struct maq_diag *diag)
{
    double value;
    bool truth;
    node->used = true;
    if (node->kind == MAQ_NODE_SCALAR && is_auto(field, node->text)) {
        value = 0;
        if (field->type == MAQ_TYPE_I32 || field->type == MAQ_TYPE_I64)
            store_i64(target, field, 0);
        else
            store_double(target, field, value);
        return MAQ_OK;
    }
    switch (field->type) {
    case MAQ_TYPE_I32:
    case MAQ_TYPE_I64:
        return read_whole(target, field, node, diag);
    case MAQ_TYPE_DOUBLE:
        if (!maq_node_double(&value, node, diag) || !check_range(field, value, node, diag))
            return MAQ_BAD_INPUT;
        store_double(target, field, value);
        return MAQ_OK;
    case MAQ_TYPE_BOOL:
        if (!maq_node_bool(&truth, node, diag))
            return MAQ_BAD_INPUT;
        memcpy(member(target, field), &truth, sizeof(truth));
        return MAQ_OK;
    case MAQ_TYPE_STR:
        return read_text(target, field, node, arena, diag);
    case MAQ_TYPE_ENUM:
        return read_enum(target, field, node, diag);
    case MAQ_TYPE_QTY:
        return read_quantity(target, field, node, diag);
    case MAQ_TYPE_NODE:
        memcpy(member(target, field), &node, sizeof(node));
        return MAQ_OK;
    case MAQ_TYPE_END:
        break;
    }
    return MAQ_BUG;
}

/* --- a whole section -------------------------------------------------------------------------------------- */

/* The value of a row under its key or an alias; a second spelling of the same row is a fault. */
static enum maq_status find_value(struct maq_node **out, const struct maq_field *field, struct maq_node *map,
                                  struct maq_diag *diag)
{
    struct maq_str rest = maq_str_of(field->aliases), name = maq_str_of(field->key);
    enum maq_status status = MAQ_OK;
    *out = NULL;
    for (;;) {
        struct maq_node *node = map && name.len ? maq__node_find(map, name) : NULL;
        if (node) {
            map->used = node->used = true;
            if (!maq_node_is_null(node) && *out) {
                char first[MAQ_LABEL_SIZE], second[MAQ_LABEL_SIZE];
                maq_diag_add(diag, MAQ_ERROR, MAQ_CODE_DUPLICATE_KEY, node->key_at, "keep one of the two",
                             "%s and %s are the same setting", maq__node_label(second, node),
                             maq__node_label(first, *out));
                maq_diag_add(diag, MAQ_NOTE, MAQ_CODE_DUPLICATE_KEY, (*out)->key_at, NULL, "first given here");
                status = MAQ_BAD_INPUT;
            } else if (!maq_node_is_null(node)) {
                *out = node;
            }
        }
        if (!rest.ptr)
            return status;
        rest = maq_str_split(rest, '|', &name);
    }
}

static enum maq_status report_missing(const struct maq_field *field, const struct maq_node *map, struct maq_diag *diag)
{
    char type[MAQ_TYPE_SIZE], hint[512], label[MAQ_LABEL_SIZE];
    struct maq_span at = map ? map->key.ptr ? map->key_at : map->at : (struct maq_span){0};
    bool told =
        field->doc && field->type == MAQ_TYPE_NODE; /* which forms it has says more than that it is a map or a text */
    maq__snprintf(hint, sizeof(hint), "%s: %s%s%s", field->key, field->doc ? field->doc : "",
                  field->doc && !told ? "; " : "", told ? "" : maq__field_type(type, field));
    bool named = map && map->key.ptr;
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_MISSING_KEY, at, hint, "the key '%s' is missing%s%s", field->key,
                         named ? " in " : "", named ? maq__node_label(label, map) : "");
}

enum maq_status maq_fields_read(void *target, const struct maq_field *fields, struct maq_node *map, uint8_t *origins,
                                struct maq_arena *arena, struct maq_diag *diag)
{
    char label[MAQ_LABEL_SIZE];
    enum maq_status status = MAQ_OK;
    if (maq_node_is_null(map))
        map = NULL;
    if (map && map->kind != MAQ_NODE_MAP) {
        maq_node_use_all(map);
        status = maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_WRONG_TYPE, map->at, NULL, "%s must be a map, not %s",
                               maq__node_label(label, map), map->kind == MAQ_NODE_SEQ ? "a list" : "a single value");
    }
    for (size_t i = 0; fields[i].type != MAQ_TYPE_END; i++) {
        const struct maq_field *field = &fields[i];
        struct maq_node *node;
        store_default(target, field);
        if (origins)
            origins[i] = MAQ_ORIGIN_DEFAULT;
        if (map && map->kind != MAQ_NODE_MAP)
            continue;
        enum maq_status one = find_value(&node, field, map, diag);
        if (node) {
            enum maq_status read = read_value(target, field, node, arena, diag);
            one = one == MAQ_OK ? read : one;
            if (origins)
                origins[i] = node->origin;
        } else if (field->required) {
            one = report_missing(field, map, diag);
        }
        if (one == MAQ_NO_MEMORY)
            return one;
        status = one == MAQ_OK ? status : one;
    }
    return status;
}

static bool in_list(const char *const *also, struct maq_str key)
{
    for (; also && *also; also++)
        if (maq_str_is(key, *also))
            return true;
    return false;
}

static void report_unknown(const struct maq_field *fields, const char *const *also, const struct maq_node *child,
                           const char *what, struct maq_diag *diag)
{
    char show[MAQ_SHOW_SIZE];
    struct maq_nearest near;
    struct word_list list = {0};
    struct maq_buf hint;
    maq_buf_init(&hint, 4096);
    maq_buf_init(&list.text, 4096);
    maq__nearest_init(&near, child->key);
    for (const struct maq_field *field = fields; field->type != MAQ_TYPE_END; field++) {
        struct maq_str rest = maq_str_of(field->aliases), alias;
        maq__nearest_try(&near, maq_str_of(field->key));
        list_add(&list, field->key);
        while (rest.ptr) {
            rest = maq_str_split(rest, '|', &alias);
            maq__nearest_try(&near, alias);
        }
    }
    for (; also && *also; also++) {
        maq__nearest_try(&near, maq_str_of(*also));
        list_add(&list, *also);
    }
    maq_diag_add(diag, MAQ_ERROR, MAQ_CODE_UNKNOWN_KEY, child->key_at, finish_hint(&hint, &near, "known keys", &list),
                 "unknown key '%s' in %s", maq_str_show(show, child->key), what);
    maq_buf_fini(&hint);
}

enum maq_status maq_fields_check_keys(const struct maq_field *fields, const char *const *also, struct maq_node *map,
                                      const char *what, struct maq_diag *diag)
{
    enum maq_status status = MAQ_OK;
    size_t reported = 0;
    if (!map || map->kind != MAQ_NODE_MAP)
        return MAQ_OK;
    for (struct maq_node *child = map->first; child; child = child->next) {
        if (child->used || maq_fields_find(fields, child->key) || in_list(also, child->key))
            continue;
        if (reported++ < UNKNOWN_MAX)
            report_unknown(fields, also, child, what, diag);
        maq_node_use_all(child);
        status = MAQ_BAD_INPUT;
    }
    return status;
}

enum maq_status maq_fields_read_map(void *target, const struct maq_field *fields, struct maq_node *map,
                                    const char *what, struct maq_arena *arena, struct maq_diag *diag)
{
    enum maq_status status = maq_fields_read(target, fields, map, NULL, arena, diag);
    return maq_worse(status, maq_fields_check_keys(fields, NULL, map, what, diag));
}
