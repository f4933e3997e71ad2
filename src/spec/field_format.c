/* SPDX-License-Identifier: Apache-2.0 */
/* field_format.c - values, ranges and types of fields as text. */
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "base/text.h"
#include "spec/field_internal.h"

#define VALUE_SIZE ((size_t)64)

/* A double as a document has it: with its unit where it has a dimension. */
static const char *format_number(char buf[64], const struct maq_field *field, double value)
{
    char digits[32];
    if (!isfinite(value))
        maq__snprintf(buf, VALUE_SIZE, "%s", isnan(value) ? "unknown" : value < 0 ? "-infinite" : "infinite");
    else if (field->type == MAQ_TYPE_QTY)
        return maq_quantity_format(buf, value, field->dim);
    else if (field->type == MAQ_TYPE_DOUBLE)
        maq__snprintf(buf, VALUE_SIZE, "%s", maq_format_double(digits, value));
    else
        maq__snprintf(buf, VALUE_SIZE, "%.0f", value);
    return buf;
}

const char *maq__field_range(char buf[MAQ_RANGE_SIZE], const struct maq_field *field)
{
    char low[64], high[64];
    format_number(low, field, field->min);
    format_number(high, field, field->max);
    if (field->max < field->min || isinf(field->max))
        maq__snprintf(buf, MAQ_RANGE_SIZE, "at least %s", low);
    else if (isinf(field->min))
        maq__snprintf(buf, MAQ_RANGE_SIZE, "at most %s", high);
    else
        maq__snprintf(buf, MAQ_RANGE_SIZE, "between %s and %s", low, high);
    return buf;
}

const char *maq__field_type(char buf[MAQ_TYPE_SIZE], const struct maq_field *field)
{
    static const char *const plain[] = {
        [MAQ_TYPE_I32] = "a whole number", [MAQ_TYPE_I64] = "a whole number", [MAQ_TYPE_DOUBLE] = "a number",
        [MAQ_TYPE_BOOL] = "true or false", [MAQ_TYPE_STR] = "a text",         [MAQ_TYPE_NODE] = "a map, list or text",
    };
    struct maq_buf words;
    if (field->type == MAQ_TYPE_QTY) {
        maq__snprintf(buf, MAQ_TYPE_SIZE, "%s (%s)", maq_dim_name(field->dim), maq_dim_units(field->dim));
        return buf;
    }
    if (field->type != MAQ_TYPE_ENUM) {
        maq__snprintf(buf, MAQ_TYPE_SIZE, "%s", field->type < MAQ_COUNT(plain) ? plain[field->type] : "");
        return buf;
    }
    maq_buf_init(&words, MAQ_TYPE_SIZE - 16);
    for (size_t i = 0; field->names[i]; i++)
        maq_buf_addf(&words, "%s%s", i ? ", " : "", field->names[i]);
    maq__snprintf(buf, MAQ_TYPE_SIZE, "one of: %s%s", words.ptr ? words.ptr : "", words.failed ? ", ..." : "");
    maq_buf_fini(&words);
    return buf;
}

/* Would this text, unquoted, read back as itself? */
static bool is_plain(struct maq_str text)
{
    const struct maq_node scalar = {.kind = MAQ_NODE_SCALAR, .text = text};
    if (maq_node_is_null(&scalar) || strchr("[]{}\"'#&*!|>%@`-?:, \t", text.ptr[0]) ||
        strchr(": \t", text.ptr[text.len - 1]))
        return false;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        bool colon = c == ':' && i + 1 < text.len && (text.ptr[i + 1] == ' ' || text.ptr[i + 1] == '\t');
        if (c < 0x20 || c == 0x7F || c == '#' || c == ',' || colon)
            return false;
    }
    return true;
}

/*
 * A text in the form that reads back: plain, in single quotes, or with control characters in double quotes. One that
 * does not fit is cut between characters, with "..." behind it.
 */
static const char *format_text(char buf[64], struct maq_str text)
{
    bool control = false, plain = is_plain(text), cut = false;
    for (size_t i = 0; i < text.len; i++)
        control |= (unsigned char)text.ptr[i] < 0x20 || text.ptr[i] == 0x7F;
    const char *quote = plain ? "" : control ? "\"" : "'";
    size_t n = strlen(quote);
    memcpy(buf, quote, n);
    for (size_t i = 0; i < text.len && !cut;) {
        char piece[8];
        uint32_t cp;
        size_t step = maq_utf8_next(&cp, text.ptr + i, text.len - i), len = step;
        memcpy(piece, text.ptr + i, step);
        char c = piece[0];
        if (control && (cp < 0x20 || cp == 0x7F)) {
            maq__snprintf(piece, sizeof(piece), "\\x%02x", (unsigned)cp);
            len = 4;
        } else if ((control && (c == '"' || c == '\\')) || (*quote == '\'' && c == '\'')) {
            piece[0] = control ? '\\' : '\'';
            piece[1] = c;
            len = 2;
        }
        cut = n + len > (i + step == text.len ? VALUE_SIZE - 2 : VALUE_SIZE - 5);
        if (!cut) {
            memcpy(buf + n, piece, len);
            n += len;
            i += step;
        }
    }
    maq__snprintf(buf + n, VALUE_SIZE - n, "%s%s", cut ? "..." : "", cut && !plain ? "" : quote);
    return buf;
}

const char *maq_field_format(char buf[64], const struct maq_field *field, const void *target)
{
    const void *at = (const char *)target + field->offset;
    int32_t narrow;
    int64_t wide;
    double value;
    bool truth;
    int index;
    struct maq_str text;
    bool maybe_auto = field->def && strcmp(field->def, "auto") == 0;
    switch (field->type) {
    case MAQ_TYPE_I32:
    case MAQ_TYPE_I64:
        memcpy(&narrow, at, sizeof(narrow));
        wide = narrow;
        if (field->type == MAQ_TYPE_I64)
            memcpy(&wide, at, sizeof(wide));
        if (maybe_auto && wide == 0)
            break;
        maq__snprintf(buf, VALUE_SIZE, "%lld", (long long)wide);
        return buf;
    case MAQ_TYPE_DOUBLE:
    case MAQ_TYPE_QTY:
        memcpy(&value, at, sizeof(value));
        if (maybe_auto && !(value < 0 || value > 0))
            break;
        return format_number(buf, field, value);
    case MAQ_TYPE_BOOL:
        memcpy(&truth, at, sizeof(truth));
        maq__snprintf(buf, VALUE_SIZE, "%s", truth ? "true" : "false");
        return buf;
    case MAQ_TYPE_ENUM:
        memcpy(&index, at, sizeof(index));
        for (int i = 0; i <= index; i++)
            if (!field->names[i]) /* not a value of this list: say so rather than read beyond it */
                index = -1;
        maq__snprintf(buf, VALUE_SIZE, "%s", index >= 0 ? field->names[index] : "unknown");
        return buf;
    case MAQ_TYPE_STR:
        memcpy(&text, at, sizeof(text));
        return format_text(buf, text);
    case MAQ_TYPE_NODE:
    case MAQ_TYPE_END:
        maq__snprintf(buf, VALUE_SIZE, "(section)");
        return buf;
    }
    maq__snprintf(buf, VALUE_SIZE, "auto");
    return buf;
}
