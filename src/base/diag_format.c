/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diag_format.c - findings as text for people.
 *
 *   cluster.yaml:8:5: error[MAQ1021]: unknown key 'bandwith' in device
 *     8 |     bandwith: 3.35TB/s
 *       |     ^~~~~~~~
 *   hint: did you mean 'bandwidth'?
 *
 * A note belongs to the error before it: it is not counted, and it comes before that error's hint.
 *
 * Text that a user wrote is never sent to the terminal as it is: control characters, and those that reorder or hide
 * text, appear as \x1b or \u202e. Tabs stay in the source line and are repeated in the line under it, so that the
 * caret stands right whatever the tab width. Wide characters (CJK, emoji) count two cells under the caret, combining
 * ones none. Of a long line a window around the place is shown.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/diag_internal.h"
#include "base/str.h"
#include "base/text.h"

#define OUTPUT_MAX ((size_t)16 << 20)
#define LINE_CHARS ((size_t)120) /* a longer source line is shown through a window of this many characters */
#define LINE_BEFORE ((size_t)40) /* of them before the place */

struct palette {
    const char *bold, *severity[3], *caret, *off;
};
static const struct palette plain = {"", {"", "", ""}, "", ""};
static const struct palette colored = {"\x1b[1m", {"\x1b[1;31m", "\x1b[1;35m", "\x1b[1;36m"}, "\x1b[1;32m", "\x1b[0m"};

static const char *const severity_names[] = {[MAQ_ERROR] = "error", [MAQ_WARNING] = "warning", [MAQ_NOTE] = "note"};

struct range {
    uint32_t first, last;
};

static bool in_ranges(uint32_t cp, const struct range *ranges, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (cp >= ranges[i].first && cp <= ranges[i].last)
            return true;
    return false;
}

/* Controls, and format characters that hide or reorder what is around them. */
static bool is_unsafe(uint32_t cp)
{
    static const struct range unsafe[] = {{0x00, 0x1F},     {0x7F, 0x9F},      {0xAD, 0xAD},     {0x61C, 0x61C},
                                          {0x200B, 0x200F}, {0x2028, 0x202E},  {0x2060, 0x206F}, {0xFEFF, 0xFEFF},
                                          {0xFFF9, 0xFFFB}, {0xE0000, 0xE0FFF}};
    return in_ranges(cp, unsafe, MAQ_COUNT(unsafe));
}

/* Terminal cells of a printable character: the blocks of Unicode's East Asian Width W and F, coarsely. */
static size_t cells_of(uint32_t cp)
{
    static const struct range wide[] = {{0x1100, 0x115F},  {0x2E80, 0x303E},   {0x3041, 0xA4CF},   {0xA960, 0xA97F},
                                        {0xAC00, 0xD7A3},  {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},
                                        {0xFFE0, 0xFFE6},  {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF},
                                        {0x20000, 0x3FFFD}};
    static const struct range combining[] = {{0x300, 0x36F},   {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF},
                                             {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}};
    if (cp < 0x300)
        return 1;
    if (in_ranges(cp, combining, MAQ_COUNT(combining)))
        return 0;
    return in_ranges(cp, wide, MAQ_COUNT(wide)) ? 2 : 1;
}

/* Appends the character at s (n > 0 bytes left) in its visible form; *cells gets its width, its length is returned. */
static size_t put_char(struct maq_buf *out, const char *s, size_t n, size_t *cells)
{
    uint32_t cp;
    char escape[16];
    size_t len = maq_utf8_next(&cp, s, n);
    if (cp == MAQ_UTF8_BAD)
        maq__snprintf(escape, sizeof(escape), "\\x%02x", (unsigned)(unsigned char)s[0]);
    else if (cp == '\n' || cp == '\r' || cp == '\t')
        maq__snprintf(escape, sizeof(escape), "\\%c", cp == '\n' ? 'n' : cp == '\r' ? 'r' : 't');
    else if (cp < 0x80 && is_unsafe(cp))
        maq__snprintf(escape, sizeof(escape), "\\x%02x", (unsigned)cp);
    else if (is_unsafe(cp))
        maq__snprintf(escape, sizeof(escape), "\\u%04x", (unsigned)cp);
    else {
        maq_buf_add(out, s, len);
        *cells = cells_of(cp);
        return len;
    }
    maq_buf_adds(out, escape);
    *cells = strlen(escape);
    return len;
}

/* A message or hint; a line break inside continues under it. */
static void put_text(struct maq_buf *out, struct maq_str text, bool breaks)
{
    size_t cells;
    for (size_t i = 0; i < text.len;) {
        if (breaks && text.ptr[i] == '\n') {
            maq_buf_adds(out, "\n      ");
            i++;
        } else {
            i += put_char(out, text.ptr + i, text.len - i, &cells);
        }
    }
}

static void put_repeated(struct maq_buf *out, char c, size_t n)
{
    while (n--)
        maq_buf_addc(out, c);
}

/* The part of a line to show: bytes [first, end) of the source. */
struct window {
    size_t first, end;
    bool cut_left, cut_right;
};

static struct window window_of(const struct maq_source *src, size_t off)
{
    size_t start = maq__source_at(src, off).line_start, end = start, chars = 0, before = 0;
    while (end < src->len && src->text[end] != '\n' && src->text[end] != '\r') {
        uint32_t cp;
        before += end < off;
        end += maq_utf8_next(&cp, src->text + end, src->len - end);
        chars++;
    }
    struct window w = {start, end, false, false};
    if (chars <= LINE_CHARS)
        return w;
    size_t skip = before > LINE_BEFORE ? before - LINE_BEFORE : 0;
    if (skip > chars - LINE_CHARS)
        skip = chars - LINE_CHARS;
    w.cut_left = skip > 0;
    w.cut_right = skip + LINE_CHARS < chars;
    size_t at = start;
    for (size_t i = 0; i < skip + LINE_CHARS; i++) {
        uint32_t cp;
        at += maq_utf8_next(&cp, src->text + at, src->len - at);
        if (i + 1 == skip)
            w.first = at;
    }
    w.end = at;
    return w;
}

/* Source line and caret line. */
static void put_source(struct maq_buf *out, const struct maq_source *src, struct maq_span at, uint32_t line,
                       const struct palette *colors)
{
    char gutter[24];
    struct maq_buf under;
    size_t off = at.off < src->len ? at.off : src->len;
    size_t stop = at.len < src->len - off ? off + at.len : src->len;
    struct window w = window_of(src, off);
    int width = maq__snprintf(gutter, sizeof(gutter), "  %u", (unsigned)line);
    bool marked = false;

    maq_buf_init(&under, OUTPUT_MAX);
    maq_buf_addf(out, "%s | %s", gutter, w.cut_left ? "..." : "");
    put_repeated(&under, ' ', w.cut_left ? 3 : 0);
    for (size_t i = w.first; i < w.end;) {
        size_t cells = 0, here = i;
        bool tab = src->text[i] == '\t';
        if (tab) {
            maq_buf_addc(out, '\t');
            i++;
        } else {
            i += put_char(out, src->text + i, src->len - i, &cells);
        }
        bool inside = here >= off && (here < stop || here == off);
        if (inside && !marked) {
            maq_buf_adds(&under, colors->caret);
            maq_buf_addc(&under, '^');
            marked = true;
            put_repeated(&under, here + 1 < stop || cells > 1 ? '~' : ' ', cells > 1 ? cells - 1 : 0);
            if (tab)
                maq_buf_addc(&under, '\t');
        } else if (tab) {
            maq_buf_addc(&under, '\t');
        } else if (inside || here < off) {
            put_repeated(&under, inside ? '~' : ' ', cells);
        }
    }
    if (!marked) { /* at the end of its line */
        maq_buf_adds(&under, colors->caret);
        maq_buf_addc(&under, '^');
    }
    while (under.len && (under.ptr[under.len - 1] == ' ' || under.ptr[under.len - 1] == '\t'))
        under.len--;
    maq_buf_adds(out, w.cut_right ? "...\n" : "\n");
    put_repeated(out, ' ', width > 0 ? (size_t)width : 0);
    maq_buf_adds(out, " | ");
    maq_buf_add(out, under.ptr ? under.ptr : "", under.len);
    maq_buf_addf(out, "%s\n", colors->off);
    out->failed |= under.failed;
    maq_buf_fini(&under);
}

static void put_item(struct maq_buf *out, const struct maq_diag *diag, const struct maq_diag_item *item,
                     const struct palette *colors)
{
    const struct maq_source *src = maq__diag_source(diag, item->at);
    struct maq_place place = maq_diag_place(diag, item->at);
    if (src) {
        maq_buf_adds(out, colors->bold);
        put_text(out, maq_str_of(place.name), false);
        maq_buf_addf(out, ":%u:%u:%s ", (unsigned)place.line, (unsigned)place.column, colors->off);
    }
    maq_buf_addf(out, "%s%s", colors->severity[item->severity], severity_names[item->severity]);
    if (item->code && item->severity != MAQ_NOTE)
        maq_buf_addf(out, "[MAQ%04u]", (unsigned)item->code);
    maq_buf_addf(out, "%s: ", colors->off);
    put_text(out, item->msg, false);
    maq_buf_addc(out, '\n');
    if (src)
        put_source(out, src, item->at, place.line, colors);
}

static void put_hint(struct maq_buf *out, const struct maq_diag_item *item, const struct palette *colors)
{
    if (!item->hint.len)
        return;
    maq_buf_addf(out, "%shint:%s ", colors->bold, colors->off);
    put_text(out, item->hint, true);
    maq_buf_addc(out, '\n');
}

char *maq_diag_format(const struct maq_diag *diag, size_t max_items, bool color)
{
    struct maq_buf out;
    const struct palette *colors = color ? &colored : &plain;
    size_t most = max_items ? max_items : 20, shown = 0, hidden = 0;
    maq_buf_init(&out, OUTPUT_MAX);
    maq_buf_adds(&out, "");
    for (size_t i = 0; i < maq_diag_count(diag);) {
        const struct maq_diag_item *item = diag->items[i++];
        bool show = shown < most;
        if (show) {
            if (shown++)
                maq_buf_addc(&out, '\n');
            put_item(&out, diag, item, colors);
        } else {
            hidden++;
        }
        for (; i < diag->n_items && diag->items[i]->severity == MAQ_NOTE; i++) {
            if (show) {
                put_item(&out, diag, diag->items[i], colors);
                put_hint(&out, diag->items[i], colors);
            }
        }
        if (show)
            put_hint(&out, item, colors);
    }
    hidden += diag ? diag->dropped : 0;
    if (hidden)
        maq_buf_addf(&out, "%sand %zu more\n", shown ? "\n" : "", hidden);
    return maq_buf_take(&out);
}
