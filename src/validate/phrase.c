/* SPDX-License-Identifier: Apache-2.0 */
/*
 * phrase.c - matches phrases in notes: alternatives, terms, numbers, borders of words. Patterns come from tables in
 * this folder, texts from any source. See phrase.h.
 */
#include "validate/phrase.h"

#include "base/str.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
    return is_digit(c) || (maq_char_lower(c) >= 'a' && maq_char_lower(c) <= 'z');
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* A number at `at`: digits, with one '.' between digits. Returns its length. */
static size_t number_at(struct maq_str text, size_t at, double *out)
{
    size_t i = at, dot = 0;
    while (i < text.len && (is_digit(text.ptr[i]) || (text.ptr[i] == '.' && !dot && i > at))) {
        dot += text.ptr[i] == '.';
        i++;
    }
    if (i > at && text.ptr[i - 1] == '.')
        i--;
    if (i == at || i - at > 18 || !maq_str_to_double(out, (struct maq_str){text.ptr + at, i - at}))
        return 0;
    return i - at;
}

/* Matches a term at a place; *end gets the place after it. Numbers are added to m. */
static bool term_at(struct maq_str text, size_t at, struct maq_str term, struct maq_phrase_match *m, size_t *end)
{
    size_t t = 0, i = at;
    while (t < term.len) {
        char c = term.ptr[t];
        if (c == '#') {
            double x;
            size_t n = number_at(text, i, &x);
            if (n == 0)
                return false;
            if (m->n < MAQ_PHRASE_NUMBERS)
                m->number[m->n++] = x;
            i += n;
        } else if (c == ' ') {
            size_t from = i;
            while (i < text.len && is_blank(text.ptr[i]))
                i++;
            if (i == from)
                return false;
        } else {
            if (i >= text.len || maq_char_lower(text.ptr[i]) != maq_char_lower(c))
                return false;
            i++;
        }
        t++;
    }
    *end = i;
    return true;
}

static bool find_term(struct maq_str text, struct maq_str term, struct maq_phrase_match *match)
{
    bool anchored = term.len > 0 && term.ptr[0] == '^';
    if (anchored)
        term = (struct maq_str){term.ptr + 1, term.len - 1};
    bool open_left = term.len > 0 && term.ptr[0] == '*', open_right = term.len > 1 && term.ptr[term.len - 1] == '*';
    term = (struct maq_str){term.ptr + open_left, term.len - open_left - open_right};
    if (term.len == 0)
        return text.len == 0;
    bool word_left = !open_left && (is_word(term.ptr[0]) || term.ptr[0] == '#');
    bool word_right = !open_right && (is_word(term.ptr[term.len - 1]) || term.ptr[term.len - 1] == '#');
    for (size_t at = 0; at < text.len && (at == 0 || !anchored); at++) {
        struct maq_phrase_match m = *match;
        size_t end;
        if (word_left && at > 0 && is_word(text.ptr[at - 1]))
            continue;
        if (!term_at(text, at, term, &m, &end) || (word_right && end < text.len && is_word(text.ptr[end])))
            continue;
        m.at = (struct maq_str){text.ptr + at, end - at};
        *match = m;
        return true;
    }
    return false;
}

static bool all_terms(struct maq_str text, struct maq_str terms, struct maq_phrase_match *match)
{
    struct maq_phrase_match m = {0};
    while (terms.ptr) {
        struct maq_str term;
        terms = maq_str_split(terms, '&', &term);
        bool absent = term.len > 0 && term.ptr[0] == '!';
        if (absent) {
            struct maq_phrase_match ignored = {0};
            if (find_term(text, (struct maq_str){term.ptr + 1, term.len - 1}, &ignored))
                return false;
        } else if (!find_term(text, term, &m)) {
            return false;
        }
    }
    *match = m;
    return true;
}

bool maq__phrase_in(struct maq_str text, const char *pattern, struct maq_phrase_match *match)
{
    struct maq_str rest = maq_str_of(pattern);
    struct maq_phrase_match m;
    while (rest.ptr) {
        struct maq_str terms;
        rest = maq_str_split(rest, '|', &terms);
        if (all_terms(text, terms, &m)) {
            if (match)
                *match = m;
            return true;
        }
    }
    return false;
}

const char *maq__plain_name(char *buf, size_t size, struct maq_str name)
{
    size_t n = 0;
    for (size_t i = 0; i < name.len && n + 1 < size; i++)
        if (is_word(name.ptr[i]))
            buf[n++] = maq_char_lower(name.ptr[i]);
    buf[n] = '\0';
    return buf;
}
