/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diag.c - the findings of one run and the sources they point into: see maquette/diag.h. diag_format.c prints them.
 *
 * Lines: '\n', "\r\n" and a lone '\r' end one. Each source keeps a checkpoint (line, column) for every 4 KiB of its
 * text, so that a place costs one short scan even in a file that is one long line.
 *
 * At most ITEMS_MAX findings are kept; further ones, and those there was no memory for, are counted only: errors are
 * never lost from maq_diag_errors().
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/codes.h"
#include "base/count.h"
#include "base/diag_internal.h"
#include "base/str.h"
#include "base/text.h"

#define ITEMS_MAX ((size_t)10000)
#define MESSAGE_MAX ((size_t)16 << 10)

static const struct {
    const char *text;
    int exit_code;
} statuses[] = {
#define MAQ_STATUS_ROW(code, exit_code, text) [MAQ_##code] = {text, exit_code},
    MAQ_STATUS_LIST(MAQ_STATUS_ROW)
#undef MAQ_STATUS_ROW
};

const char *maq_status_text(enum maq_status status)
{
    size_t i = (size_t)status;
    return i < MAQ_COUNT(statuses) ? statuses[i].text : "an unknown status";
}

int maq_status_exit_code(enum maq_status status)
{
    size_t i = (size_t)status;
    return i < MAQ_COUNT(statuses) ? statuses[i].exit_code : statuses[MAQ_BUG].exit_code;
}

struct maq_diag *maq_diag_new(void)
{
    struct maq_diag *diag = maq__calloc(sizeof(*diag));
    if (diag)
        maq_arena_init(&diag->arena, 0);
    return diag;
}

void maq_diag_free(struct maq_diag *diag)
{
    if (!diag)
        return;
    maq_arena_fini(&diag->arena);
    free(diag->sources);
    free(diag->items);
    free(diag);
}

/* Makes room for one more element in a doubling array; false when out of memory. */
static bool grow(void **array, size_t *size, size_t count, size_t element)
{
    if (count < *size)
        return true;
    size_t more = *size ? *size * 2 : 8;
    void *grown = more > SIZE_MAX / element ? NULL : maq__realloc(*array, more * element);
    if (!grown)
        return false;
    *array = grown;
    *size = more;
    return true;
}

/* The checkpoint one character further. "\r\n" counts as two characters of the line that it ends. */
static struct maq_checkpoint step(const struct maq_source *src, struct maq_checkpoint at)
{
    uint32_t cp;
    size_t next = at.off + maq_utf8_next(&cp, src->text + at.off, src->len - at.off);
    bool pair = cp == '\r' && next < src->len && src->text[next] == '\n';
    at.off = (uint32_t)next;
    at.column++;
    if (cp == '\n' || (cp == '\r' && !pair)) {
        at.line++;
        at.column = 1;
        at.line_start = at.off;
    }
    return at;
}

uint32_t maq_diag_add_source(struct maq_diag *diag, const char *name, const char *text, size_t len)
{
    void *array = diag ? diag->sources : NULL;
    if (!diag || len >= UINT32_MAX || diag->n_sources >= UINT32_MAX - 1)
        return 0;
    if (!grow(&array, &diag->sources_size, diag->n_sources, sizeof(struct maq_source)))
        return 0;
    diag->sources = array;

    struct maq_source src = {.len = len};
    src.name = maq_arena_strdup(&diag->arena, maq_str_of(name));
    src.text = maq_arena_strdup(&diag->arena, (struct maq_str){text, len});
    src.checkpoints = MAQ_ARENA_NEW(&diag->arena, struct maq_checkpoint, len / MAQ_SOURCE_BLOCK + 1);
    if (!src.name || !src.text || !src.checkpoints)
        return 0;
    struct maq_checkpoint at = {0, 1, 1, 0};
    size_t block = 0;
    for (;;) { /* a checkpoint is the first character that starts in its block or after it */
        while (block <= len / MAQ_SOURCE_BLOCK && block * MAQ_SOURCE_BLOCK <= at.off)
            src.checkpoints[block++] = at;
        if (at.off >= len)
            break;
        at = step(&src, at);
    }
    diag->sources[diag->n_sources++] = src;
    return (uint32_t)diag->n_sources;
}

static struct maq_str copy_text(struct maq_diag *diag, const char *text, size_t len)
{
    char *copy = maq_arena_strdup(&diag->arena, (struct maq_str){text, len});
    return (struct maq_str){copy, copy ? len : 0};
}

/* The formatted message, cut at MESSAGE_MAX; empty when out of memory. */
static struct maq_str MAQ_PRINTF(2, 0) format_message(struct maq_diag *diag, const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    int need = maq__vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (need < 0)
        return (struct maq_str){NULL, 0};
    size_t len = (size_t)need < MESSAGE_MAX ? (size_t)need : MESSAGE_MAX;
    char *text = maq_arena_alloc(&diag->arena, len + 1, 1);
    if (!text)
        return (struct maq_str){NULL, 0};
    maq__vsnprintf(text, len + 1, fmt, args);
    return (struct maq_str){text, len};
}

static void MAQ_PRINTF(6, 0) add_item(struct maq_diag *diag, enum maq_severity severity, uint16_t code,
                                      struct maq_span at, const char *hint, const char *fmt, va_list args)
{
    if (!diag)
        return;
    diag->errors += severity == MAQ_ERROR;
    void *array = diag->items;
    if (diag->n_items >= ITEMS_MAX || !grow(&array, &diag->items_size, diag->n_items, sizeof(struct maq_diag_item *))) {
        diag->dropped++;
        return;
    }
    diag->items = array;
    struct maq_diag_item *item = MAQ_ARENA_NEW(&diag->arena, struct maq_diag_item, 1);
    if (!item) {
        diag->dropped++;
        return;
    }
    *item = (struct maq_diag_item){.severity = severity, .code = code, .at = at};
    item->msg = format_message(diag, fmt, args);
    if (hint && *hint)
        item->hint = copy_text(diag, hint, strlen(hint));
    diag->items[diag->n_items++] = item;
}

void maq_diag_add(struct maq_diag *diag, enum maq_severity severity, uint16_t code, struct maq_span at,
                  const char *hint, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    add_item(diag, severity, code, at, hint, fmt, args);
    va_end(args);
}

#undef maq_diag_fail
enum maq_status maq_diag_fail(enum maq_status status, struct maq_diag *diag, uint16_t code, struct maq_span at,
                              const char *hint, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    add_item(diag, MAQ_ERROR, code, at, hint, fmt, args);
    va_end(args);
    return status;
}

void maq_diag_set_strict(struct maq_diag *diag, bool strict)
{
    if (diag)
        diag->strict = strict;
}

bool maq_diag_strict(const struct maq_diag *diag)
{
    return diag && diag->strict;
}

size_t maq_diag_count(const struct maq_diag *diag)
{
    return diag ? diag->n_items : 0;
}

size_t maq_diag_errors(const struct maq_diag *diag)
{
    return diag ? diag->errors : 0;
}

const struct maq_diag_item *maq_diag_at(const struct maq_diag *diag, size_t i)
{
    return diag && i < diag->n_items ? diag->items[i] : NULL;
}

const struct maq_source *maq__diag_source(const struct maq_diag *diag, struct maq_span at)
{
    return diag && at.file && at.file <= diag->n_sources ? &diag->sources[at.file - 1] : NULL;
}

struct maq_checkpoint maq__source_at(const struct maq_source *src, size_t off)
{
    if (off > src->len)
        off = src->len;
    size_t block = off / MAQ_SOURCE_BLOCK;
    while (src->checkpoints[block].off > off)
        block--; /* off lies inside a character that crosses into its block */
    struct maq_checkpoint at = src->checkpoints[block];
    while (at.off < off) {
        struct maq_checkpoint next = step(src, at);
        if (next.off > off)
            break;
        at = next;
    }
    return at;
}

struct maq_place maq_diag_place(const struct maq_diag *diag, struct maq_span at)
{
    const struct maq_source *src = maq__diag_source(diag, at);
    if (!src)
        return (struct maq_place){"", 0, 0};
    struct maq_checkpoint where = maq__source_at(src, at.off);
    return (struct maq_place){src->name, where.line, where.column};
}
