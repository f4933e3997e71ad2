/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doc_text.c - from the bytes of a file to text that libyaml accepts.
 *
 * Two things are done before libyaml sees anything:
 *
 *   - The whole text is checked: UTF-8, no control characters. libyaml would refuse the same bytes, but with a place
 *     counted in a different unit and a message about its reader.
 *   - JSON writes a character beyond U+FFFF as two escapes ("\ud83d\ude00"), which YAML does not know and libyaml
 *     refuses. In a text that looks like JSON such a pair becomes the character itself, and a lone half becomes U+FFFD,
 *     as most JSON readers do. Every replacement leaves an edit, by which offsets find back to the original text.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/codes.h"
#include "spec/doc_internal.h"

struct maq_text_edit {
    size_t end;   /* in the rewritten text, behind the replacement */
    size_t shift; /* bytes that the original has more up to there */
};

/* What YAML 1.1 calls printable; libyaml takes nothing else. */
static bool is_allowed(uint32_t cp)
{
    if (cp < 0x20)
        return cp == '\t' || cp == '\n' || cp == '\r';
    if (cp < 0xA0)
        return cp < 0x7F || cp == 0x85;
    return cp != 0xFEFF && cp != 0xFFFE && cp != 0xFFFF && cp <= 0x10FFFF;
}

static enum maq_status check_characters(const struct maq_doc_text *text, struct maq_diag *diag)
{
    const unsigned char *bytes = (const unsigned char *)text->ptr;
    if (text->len >= 2 && ((bytes[0] == 0xFF && bytes[1] == 0xFE) || (bytes[0] == 0xFE && bytes[1] == 0xFF)))
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_NOT_UTF8, maq__doc_text_span(text, 0, 2),
                             "save the file as UTF-8", "the text is UTF-16, not UTF-8");
    for (size_t i = 0; i < text->len;) {
        uint32_t cp;
        size_t step = maq_utf8_next(&cp, text->ptr + i, text->len - i);
        struct maq_span at = maq__doc_text_span(text, i, i + step);
        if (cp == MAQ_UTF8_BAD)
            return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_NOT_UTF8, at, "save the file as UTF-8",
                                 "byte 0x%02X is not valid UTF-8", (unsigned)bytes[i]);
        if (!is_allowed(cp))
            return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SYNTAX, at,
                                 cp == 0 ? "is this a text file?"
                                         : "remove it, or write it as an escape in double quotes",
                                 "the character U+%04X is not allowed here", (unsigned)cp);
        i += step;
    }
    return MAQ_OK;
}

static bool looks_like_json(struct maq_str s)
{
    while (s.len && (s.ptr[0] == ' ' || s.ptr[0] == '\t' || s.ptr[0] == '\n' || s.ptr[0] == '\r')) {
        s.ptr++;
        s.len--;
    }
    return s.len && (s.ptr[0] == '{' || s.ptr[0] == '[');
}

/* The code unit of "\uXXXX" at s; false when there is none. */
static bool unit_at(uint32_t *out, const char *s, size_t n)
{
    uint32_t unit = 0;
    if (n < 6 || s[0] != '\\' || s[1] != 'u')
        return false;
    for (size_t i = 2; i < 6; i++) {
        char c = s[i];
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 16;
        if (digit > 15)
            return false;
        unit = unit << 4 | digit;
    }
    *out = unit;
    return true;
}

/* A surrogate escape at s: the bytes it takes (6 or 12) and the character it means; 0 when it is something else. */
static size_t surrogate_at(uint32_t *cp, const char *s, size_t n)
{
    uint32_t high, low;
    if (!unit_at(&high, s, n) || high < 0xD800 || high > 0xDFFF)
        return 0;
    *cp = 0xFFFD;
    if (high >= 0xDC00 || !unit_at(&low, s + 6, n - 6) || low < 0xDC00 || low > 0xDFFF)
        return 6;
    *cp = 0x10000 + ((high - 0xD800) << 10 | (low - 0xDC00));
    return 12;
}

static bool add_edit(struct maq_doc_text *text, size_t end, size_t removed)
{
    if (text->n_edits == text->edits_size) {
        size_t size = text->edits_size ? text->edits_size * 2 : 16;
        struct maq_text_edit *grown = maq__realloc(text->edit, size * sizeof(*grown));
        if (!grown)
            return false;
        text->edit = grown;
        text->edits_size = size;
    }
    size_t before = text->n_edits ? text->edit[text->n_edits - 1].shift : 0;
    text->edit[text->n_edits++] = (struct maq_text_edit){end, before + removed};
    return true;
}

static bool has_surrogates(struct maq_str s)
{
    for (const char *p = s.ptr, *end = s.ptr + s.len; p && (p = memchr(p, '\\', (size_t)(end - p))) != NULL; p++) {
        uint32_t cp;
        if (surrogate_at(&cp, p, (size_t)(end - p)))
            return true;
    }
    return false;
}

/* Copies the text with surrogate escapes inside double quotes replaced. Comments and single quotes are passed over. */
static bool replace_surrogates(struct maq_doc_text *text, struct maq_str src)
{
    char quote = 0;
    size_t n = 0;
    char *out = maq__malloc(src.len + 1);
    if (!out)
        return false;
    text->owned = out;
    for (size_t i = 0; i < src.len;) {
        char c = src.ptr[i];
        uint32_t cp;
        size_t taken = quote == '"' && c == '\\' ? surrogate_at(&cp, src.ptr + i, src.len - i) : 0;
        if (taken) {
            n += maq_utf8_put(out + n, cp);
            i += taken;
            if (!add_edit(text, n, taken - (cp == 0xFFFD ? 3 : 4)))
                return false;
            continue;
        }
        if (quote == '"' && c == '\\' && i + 1 < src.len) {
            out[n++] = c; /* the escaped character follows below, so that \" closes nothing */
            c = src.ptr[++i];
        } else if (quote == '#') {
            quote = c == '\n' ? 0 : quote;
        } else if (c == quote) {
            quote = 0;
        } else if (!quote && (c == '"' || c == '\'' || (c == '#' && i && strchr(" \t\n", src.ptr[i - 1])))) {
            quote = c;
        }
        out[n++] = c;
        i++;
    }
    text->ptr = out;
    text->len = n;
    return true;
}

enum maq_status maq__doc_text_init(struct maq_doc_text *out, struct maq_str src, uint32_t file, size_t base,
                                   struct maq_diag *diag)
{
    *out = (struct maq_doc_text){.ptr = src.ptr, .len = src.len, .file = file, .base = base};
    enum maq_status status = check_characters(out, diag);
    if (status != MAQ_OK)
        return status;
    if (looks_like_json(src) && has_surrogates(src) && !replace_surrogates(out, src))
        return maq_no_memory(diag, NULL);
    return MAQ_OK;
}

void maq__doc_text_fini(struct maq_doc_text *text)
{
    free(text->owned);
    free(text->edit);
    *text = (struct maq_doc_text){0};
}

static size_t source_offset(const struct maq_doc_text *text, size_t off)
{
    size_t low = 0, high = text->n_edits; /* edits [0, low) end at or before off */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (text->edit[middle].end <= off)
            low = middle + 1;
        else
            high = middle;
    }
    return text->base + off + (low ? text->edit[low - 1].shift : 0);
}

struct maq_span maq__doc_text_span(const struct maq_doc_text *text, size_t first, size_t end)
{
    size_t from = source_offset(text, first), to = source_offset(text, end);
    return (struct maq_span){text->file, (uint32_t)from, (uint32_t)(to - from)};
}
