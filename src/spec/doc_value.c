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

/* "2,4" and "2..8" are several numbers; "4,096" is one. */
static bool is_list(struct maq_str text)
{
    size_t group = 0;
    bool commas = false, thousands = true;
    for (size_t i = 0; i <= text.len; i++) {
        bool end = i == text.len || text.ptr[i] == ',';
        if (!end && i + 1 < text.len && text.ptr[i] == '.' && text.ptr[i + 1] == '.')
            return true;
        if (!end) {
            group++;
            continue;
        }
        thousands &= commas ? group == 3 : group >= 1 && group <= 3;
        commas |= i < text.len;
        group = 0;
    }
    return commas && !thousands;
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
    if (is_list(text))
        return "one number; maquette plan --space KEY=2,4 tries several";
    struct maq_str bare = {digits, n};
    if (n < text.len && maq_str_to_double(&value, bare)) {
        maq__snprintf(buf, 96, "write %s", digits);
        return buf;
    }
    if (maq_quantity_parse(&value, text, MAQ_DIM_COUNT, &why) && value < 1e15) {
        bool kilo = n > 1 && (digits[n - 1] == 'k' || digits[n - 1] == 'K'); /* of tokens mostly 1,024 */
        if (kilo && value < 1e12)
            maq__snprintf(buf, 96, "write it in full: %.15g (%.*s x 1024), or %.15g", value * 1.024, (int)(n - 1),
                          digits, value);
        else
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
    bool one = maq_str_is(text, "1") || maq_str_ieq(text, "y") || maq_str_ieq(text, "enable") || maq_str_ieq(text, "t"),
         zero =
             maq_str_is(text, "0") || maq_str_ieq(text, "n") || maq_str_ieq(text, "disable") || maq_str_ieq(text, "f");
    maq_diag_add(diag, MAQ_ERROR, MAQ_CODE_WRONG_TYPE, node->at,
                 one    ? "write true"
                 : zero ? "write false"
                        : NULL,
                 "%s must be true or false, not '%s'", maq__node_label(label, node), maq_str_show(show, text));
    return false;
}

/* --- did you mean ----------------------------------------------------------------------------------------- */

#define BEGINNING 3 /* letters that are enough to begin a name */

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

bool maq__same_but_dashes(struct maq_str a, struct maq_str b)
{
    char x[64], y[64];
    return a.len == b.len && a.len <= 64 && maq_str_eq(folded(x, a), folded(y, b));
}

void maq__nearest_init(struct maq_nearest *n, struct maq_str word)
{
    size_t third = word.len / 3;
    *n = (struct maq_nearest){.word = word, .distance = (uint32_t)(third < 1 ? 1 : third > 3 ? 3 : third) + 1};
}

/* A word that a name begins with is the name cut short: of several the shortest, whatever is near by its letters. */
static bool try_beginning(struct maq_nearest *n, struct maq_str word, struct maq_str name, const char *candidate)
{
    bool begins = word.len >= BEGINNING && name.len > word.len && memcmp(name.ptr, word.ptr, word.len) == 0;
    if (!begins)
        return n->begun;
    if (!n->begun || name.len < n->best_len) {
        n->best = candidate;
        n->best_len = name.len;
        n->distance = 1;
        n->begun = true;
    }
    return true;
}

void maq__nearest_try(struct maq_nearest *n, struct maq_str candidate)
{
    char a[64], b[64];
    if (n->word.len > 63 || candidate.len > 63 || !candidate.len || !n->word.len)
        return;
    struct maq_str word = folded(a, n->word), name = folded(b, candidate);
    if (try_beginning(n, word, name, candidate.ptr))
        return;
    uint32_t distance = maq_str_distance(word, name, n->distance);
    if (distance < n->distance && distance < candidate.len) {
        n->best = candidate.ptr;
        n->best_len = candidate.len;
        n->distance = distance;
    }
}
