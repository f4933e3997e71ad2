/* SPDX-License-Identifier: Apache-2.0 */
/* doc_value.c - scalars as numbers and truth values, and the words of messages about them. */
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/codes.h"
#include "base/str.h"
#include "base/units.h"
#include "spec/doc_internal.h"

const char *maq__node_label(char buf[MAQ_LABEL_SIZE], const struct maq_node *node)
{
    char show[MAQ_SHOW_SIZE];
    if (node->key.ptr)
        maq__snprintf(buf, MAQ_LABEL_SIZE, "'%s'", maq_str_show(show, node->key));
    else
        maq__snprintf(buf, MAQ_LABEL_SIZE, "the value");
    return buf;
}

bool maq__node_scalar(struct maq_str *out, struct maq_node *node, const char *what, struct maq_diag *diag)
{
    char label[MAQ_LABEL_SIZE];
    node->used = true;
    if (node->kind == MAQ_NODE_SCALAR && !maq_node_is_null(node)) {
        *out = node->text;
        return true;
    }
    maq_diag_add(diag, MAQ_ERROR, MAQ_CODE_WRONG_TYPE, node->at, NULL, "%s must be %s, not %s",
                 maq__node_label(label, node), what,
                 node->kind == MAQ_NODE_MAP   ? "a map"
                 : node->kind == MAQ_NODE_SEQ ? "a list"
                                              : "null");
    return false;
}

/* What to write instead of something that is nearly a number. */
static const char *number_hint(char buf[96], struct maq_str text)
{
    char digits[40];
    size_t n = 0;
    double value;
    const char *why;
    for (size_t i = 0; i < text.len && n + 1 < sizeof(digits); i++)
        if (text.ptr[i] != ',' && text.ptr[i] != ' ')
            digits[n++] = text.ptr[i];
    digits[n] = '\0';
    struct maq_str bare = {digits, n};
    if (n < text.len && maq_str_to_double(&value, bare)) {
        maq__snprintf(buf, 96, "write %s", digits);
        return buf;
    }
    if (maq_quantity_parse(&value, text, MAQ_DIM_COUNT, &why) && value < 1e15) {
        maq__snprintf(buf, 96, "write it in full: %.15g", value);
        return buf;
    }
    if (maq__number_prefix(text))
        return "this number takes no unit";
    return NULL;
}

bool maq_node_i64(int64_t *out, struct maq_node *node, struct maq_diag *diag)
{
    char label[MAQ_LABEL_SIZE], show[MAQ_SHOW_SIZE], buf[96];
    struct maq_str text;
    double value;
    if (!maq__node_scalar(&text, node, "a whole number", diag))
        return false;
    if (maq_str_to_i64(out, text))
        return true;
    maq__node_label(label, node);
    maq_str_show(show, text);
    bool is_number = maq__number_prefix(text) == text.len;
    if (is_number && !memchr(text.ptr, '.', text.len) && !memchr(text.ptr, 'e', text.len) &&
        !memchr(text.ptr, 'E', text.len)) {
        maq_diag_add(diag, MAQ_ERROR, MAQ_CODE_OUT_OF_RANGE, node->at, NULL, "%s is %s, too large for a whole number",
                     label, show);
        return false;
    }
    const char *hint = is_number ? NULL : number_hint(buf, text);
    if (is_number && maq_str_to_double(&value, text) && fabs(value) < 1e15 && !(floor(value) < value)) {
        maq__snprintf(buf, sizeof(buf), "write %.0f", value);
        hint = buf;
    }
    maq_diag_add(diag, MAQ_ERROR, MAQ_CODE_BAD_NUMBER, node->at, hint, "%s must be a whole number, not '%s'", label,
                 show);
    return false;
}

bool maq_node_double(double *out, struct maq_node *node, struct maq_diag *diag)
{
    char label[MAQ_LABEL_SIZE], show[MAQ_SHOW_SIZE], buf[96];
    struct maq_str text;
    if (!maq__node_scalar(&text, node, "a number", diag))
        return false;
    if (maq_str_to_double(out, text))
        return true;
    maq__node_label(label, node);
    maq_str_show(show, text);
    if (text.len && maq__number_prefix(text) == text.len)
        maq_diag_add(diag, MAQ_ERROR, MAQ_CODE_OUT_OF_RANGE, node->at, NULL, "%s is %s, too large or too small to hold",
                     label, show);
    else
        maq_diag_add(diag, MAQ_ERROR, MAQ_CODE_BAD_NUMBER, node->at, number_hint(buf, text),
                     "%s must be a number, not '%s'", label, show);
    return false;
}

bool maq_node_bool(bool *out, struct maq_node *node, struct maq_diag *diag)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};
    char label[MAQ_LABEL_SIZE], show[MAQ_SHOW_SIZE];
    struct maq_str text;
    if (!maq__node_scalar(&text, node, "true or false", diag))
        return false;
    for (size_t i = 0; i < MAQ_COUNT(words); i++) {
        if (maq_str_ieq(text, words[i])) {
            *out = i % 2 == 1;
            return true;
        }
    }
    maq_diag_add(diag, MAQ_ERROR, MAQ_CODE_WRONG_TYPE, node->at, NULL, "%s must be true or false, not '%s'",
                 maq__node_label(label, node), maq_str_show(show, text));
    return false;
}

/* --- did you mean ----------------------------------------------------------------------------------------- */

/* Case and the choice of '-' or '_' are no reason to miss a suggestion. */
static struct maq_str folded(char buf[64], struct maq_str s)
{
    size_t n = s.len < 64 ? s.len : 64;
    for (size_t i = 0; i < n; i++) {
        char c = s.ptr[i];
        buf[i] = c == '-' || c == ' ' ? '_' : maq_char_lower(c);
    }
    return (struct maq_str){buf, n};
}

void maq__nearest_init(struct maq_nearest *n, struct maq_str word)
{
    size_t third = word.len / 3;
    *n = (struct maq_nearest){.word = word, .distance = (uint32_t)(third < 1 ? 1 : third > 3 ? 3 : third) + 1};
}

void maq__nearest_try(struct maq_nearest *n, struct maq_str candidate)
{
    char a[64], b[64];
    if (n->word.len > 63 || candidate.len > 63 || !candidate.len || !n->word.len)
        return;
    uint32_t distance = maq_str_distance(folded(a, n->word), folded(b, candidate), n->distance);
    if (distance < n->distance && distance < candidate.len) {
        n->best = candidate.ptr;
        n->best_len = candidate.len;
        n->distance = distance;
    }
}
