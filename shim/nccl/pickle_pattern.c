/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pickle_pattern.c - takes pickles apart into tokens, finds the pattern of each, and puts them together for another rank.
 *
 * A pickle is a program of opcodes of one byte with arguments behind it (Lib/pickletools.py of CPython has them all; protocols 2 to 5 are read here). A token
 * is a piece of literal bytes, a whole number (BININT1, BININT2, BININT, LONG1), or a text (SHORT_BINUNICODE, BINUNICODE). FRAME, which is a hint
 * to readers and would change with the lengths, is left out of what is written.
 *
 * Which members are alike is asked for by the kinds of their tokens, with literals byte for byte: members with more or other tokens are of
 * another kind (a coordinator, the rank with what is left of uneven rows), and the largest kind with three members or more gives the pattern.
 */
#include "shim/nccl/pickle_pattern.h"

#include <stdlib.h>
#include <string.h>

#include "shim/grow.h"
#include "shim/nccl/rank_pattern.h"

enum { LEAST = 3, MOST = 64 }; /* members that are looked at */
enum { PROTOCOL = 0x80, FRAME = 0x95, STOP = '.', SHORT_TEXT = 0x8c, LONG_TEXT = 'X', LONG1 = 0x8a };
enum token_kind { LITERAL, WHOLE, TEXT };
struct token {
    enum token_kind kind;
    const unsigned char *at; /* literal: as it is; text: without its length */
    uint64_t n;
    int64_t x;
};
struct tokens {
    struct token *at;
    uint32_t n, room;
    uint32_t place;
};

/* --- taken apart ---------------------------------------------------------------------------------------------------------- */

static bool add(struct tokens *t, struct token token)
{
    struct token *at = vg_grown(t->at, t->n, &t->room, 256, sizeof *at);
    if (!at)
        return false;
    t->at = at;
    t->at[t->n++] = token;
    return true;
}

static uint64_t little(const unsigned char *at, unsigned bytes)
{
    uint64_t x = 0;
    for (unsigned i = 0; i < bytes; i++)
        x |= (uint64_t)at[i] << 8 * i;
    return x;
}

/* How the argument of an opcode lies: so many bytes, or so many of a length and then as many as that says. */
static bool argument_of(unsigned char op, unsigned *bytes, bool *counted)
{
    static const struct {
        const char *ops;
        unsigned bytes;
        bool counted;
    } of[] = {{"().Netabs012]}QdlRu\x81\x85\x86\x87\x88\x89\x8f\x90\x91\x92\x93\x94\x97\x98", 0, false},
              {"\x80hqK\x82", 1, false},
              {"M\x83", 2, false},
              {"Jjr\x84", 4, false},
              {"G\x95", 8, false},
              {"C\x8c\x8a", 1, true},
              {"BX\x8b", 4, true},
              {"\x8d\x8e\x96", 8, true}};
    for (unsigned i = 0; i < sizeof of / sizeof *of; i++)
        if (op != 0 && strchr(of[i].ops, op)) {
            *bytes = of[i].bytes;
            *counted = of[i].counted;
            return true;
        }
    return false;
}

/* A whole number with a sign, of up to six bytes; false: it is larger. */
static bool whole_of(int64_t *x, unsigned char op, const unsigned char *at, uint64_t n)
{
    if (op == 'K' || op == 'M') {
        *x = (int64_t)little(at, (unsigned)n);
        return true;
    }
    if (n > 6)
        return false;
    const uint64_t raw = little(at, (unsigned)n), sign = n > 0 ? UINT64_C(1) << (8 * n - 1) : 0;
    *x = (int64_t)(raw ^ sign) - (int64_t)sign;
    return true;
}

/* The token of an opcode at `at`, of at most `left` bytes; how many it has, 0: it is none that is known, or longer. */
static uint64_t read_token(struct token *token, const unsigned char *at, uint64_t left)
{
    unsigned width;
    bool counted;
    const unsigned char op = at[0];
    if (!argument_of(op, &width, &counted) || 1 + (uint64_t)width > left)
        return 0;
    const uint64_t n = counted ? little(at + 1, width) : width, head = counted ? 1 + (uint64_t)width : 1;
    if (n > left - head)
        return 0;
    *token = (struct token){.kind = LITERAL, .at = at, .n = head + n};
    const bool whole = op == 'K' || op == 'M' || op == 'J' || op == LONG1;
    if (whole && whole_of(&token->x, op, at + head, n))
        token->kind = WHOLE;
    else if (op == LONG_TEXT || op == SHORT_TEXT)
        *token = (struct token){.kind = TEXT, .at = at + head, .n = n};
    return head + n;
}

static bool take_apart(struct tokens *t, const unsigned char *pickle, uint64_t bytes)
{
    if (bytes < 3 || pickle[0] != PROTOCOL || pickle[1] < 2 || pickle[1] > 5)
        return false;
    for (uint64_t at = 0, n; at < bytes; at += n) {
        struct token token;
        n = read_token(&token, pickle + at, bytes - at);
        if (n == 0 || (pickle[at] != FRAME && !add(t, token)))
            return false;
        if (pickle[at] == STOP)
            return true;
    }
    return false;
}

/* --- numbers within texts ------------------------------------------------------------------------------------------------- */

static bool is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

/* The next piece of a text: digits, 18 at most, or what is none. */
static uint64_t piece_of(const unsigned char *at, uint64_t n)
{
    enum { DIGITS_MOST = 18 };
    uint64_t i = 0;
    while (i < n && is_digit(at[i]) == is_digit(at[0]) && (!is_digit(at[0]) || i < DIGITS_MOST))
        i++;
    return i;
}

static int64_t number_of(const unsigned char *at, uint64_t n)
{
    int64_t x = 0;
    for (uint64_t i = 0; i < n; i++)
        x = 10 * x + (at[i] - '0');
    return x;
}

/* --- what is alike -------------------------------------------------------------------------------------------------------- */

/* Texts of the same pieces, but for the numbers. */
static bool texts_alike(const struct token *a, const struct token *b)
{
    uint64_t i = 0, k = 0;
    while (i < a->n && k < b->n) {
        const uint64_t n = piece_of(a->at + i, a->n - i), m = piece_of(b->at + k, b->n - k);
        const bool number = is_digit(a->at[i]) && is_digit(b->at[k]);
        if (!number && (n != m || memcmp(a->at + i, b->at + k, n) != 0))
            return false;
        i += n;
        k += m;
    }
    return i == a->n && k == b->n;
}

static bool alike(const struct tokens *a, const struct tokens *b)
{
    bool same = a->n == b->n;
    for (uint32_t i = 0; i < a->n && same; i++) {
        const struct token *x = &a->at[i], *y = &b->at[i];
        same = x->kind == y->kind && (x->kind != LITERAL || (x->n == y->n && memcmp(x->at, y->at, x->n) == 0)) &&
               (x->kind != TEXT || texts_alike(x, y));
    }
    return same;
}

/* --- the pattern -------------------------------------------------------------------------------------------------------------- */

struct vg_pickle_pattern {
    struct tokens like; /* one of them, whose tokens the others have */
    struct vg_rank_pattern *number;
    uint32_t n_numbers, room;
};

/* What is known of one number: of the members that are alike. */
struct known {
    uint32_t n, node, n_known;
    uint32_t place[MOST];
    int64_t x[MOST];
};

static bool add_number(struct vg_pickle_pattern *pattern, const struct known *k)
{
    struct vg_rank_pattern *number = vg_grown(pattern->number, pattern->n_numbers, &pattern->room, 256, sizeof *number);
    if (!number)
        return false;
    pattern->number = number;
    return vg_rank_pattern(&pattern->number[pattern->n_numbers++], k->n, k->node, k->place, k->x, k->n_known);
}

/* Numbers within texts, one after the other. */
static bool add_text(struct vg_pickle_pattern *pattern, struct known *k, const struct tokens *const *member,
                     uint32_t token)
{
    uint64_t at[MOST] = {0};
    const struct token *first = &member[0]->at[token];
    for (bool more = first->n > 0; more; more = at[0] < first->n) {
        const bool number = is_digit(first->at[at[0]]);
        for (uint32_t m = 0; m < k->n_known; m++) {
            const struct token *t = &member[m]->at[token];
            const uint64_t n = piece_of(t->at + at[m], t->n - at[m]);
            k->x[m] = number ? number_of(t->at + at[m], n) : 0;
            at[m] += n;
        }
        if (number && !add_number(pattern, k))
            return false;
    }
    return true;
}

static bool find_numbers(struct vg_pickle_pattern *pattern, struct known *k, const struct tokens *const *member)
{
    bool fine = true;
    for (uint32_t i = 0; i < pattern->like.n && fine; i++) {
        for (uint32_t m = 0; m < k->n_known; m++)
            k->x[m] = member[m]->at[i].x;
        if (pattern->like.at[i].kind == WHOLE)
            fine = add_number(pattern, k);
        else if (pattern->like.at[i].kind == TEXT)
            fine = add_text(pattern, k, member, i);
    }
    return fine;
}

/* The largest kind: its members, and how many. */
static uint32_t largest_kind(const struct tokens **member, const struct tokens *said, uint32_t n_said)
{
    uint32_t most = 0, best = 0;
    for (uint32_t i = 0; i < n_said && most < n_said - i; i++) {
        uint32_t n = 0;
        for (uint32_t k = i; k < n_said; k++)
            n += alike(&said[i], &said[k]);
        best = n > most ? i : best;
        most = n > most ? n : most;
    }
    uint32_t n = 0;
    for (uint32_t k = best; k < n_said; k++)
        if (alike(&said[best], &said[k]))
            member[n++] = &said[k];
    return n;
}

static uint32_t take_all_apart(struct tokens *said, const struct vg_pickles *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n && n < MOST; i++) {
        if (!p->said[i])
            continue;
        said[n] = (struct tokens){.place = i};
        if (take_apart(&said[n], p->said[i], p->said_bytes ? p->said_bytes[i] : p->bytes))
            n++;
        else
            free(said[n].at);
    }
    return n;
}

struct vg_pickle_pattern *vg_pickle_pattern(const struct vg_pickles *p)
{
    struct tokens said[MOST];
    const struct tokens *member[MOST];
    struct known known = {.n = p->n, .node = p->node};
    const uint32_t n_said = take_all_apart(said, p);
    struct vg_pickle_pattern *pattern = n_said >= LEAST ? calloc(1, sizeof *pattern) : NULL;
    known.n_known = pattern ? largest_kind(member, said, n_said) : 0;
    bool fine = known.n_known >= LEAST;
    for (uint32_t m = 0; m < known.n_known; m++)
        known.place[m] = member[m]->place;
    if (fine) {
        pattern->like = *member[0];
        fine = find_numbers(pattern, &known, member);
    }
    for (uint32_t i = 0; i < n_said; i++)
        if (!fine || said[i].at != pattern->like.at)
            free(said[i].at);
    if (!fine && pattern) {
        free(pattern->number);
        free(pattern);
    }
    return fine ? pattern : NULL;
}

void vg_pickle_pattern_free(struct vg_pickle_pattern *pattern)
{
    if (!pattern)
        return;
    free(pattern->like.at);
    free(pattern->number);
    free(pattern);
}

/* --- put together --------------------------------------------------------------------------------------------------------- */

/* Where it goes; NULL, or beyond `room` bytes: it is only counted. */
struct sink {
    unsigned char *to;
    uint64_t n, room;
};

static void put(struct sink *s, const void *bytes, uint64_t n)
{
    if (s->to && s->n + n <= s->room)
        memcpy(s->to + s->n, bytes, n);
    s->n += n;
}

static void put_little(struct sink *s, uint64_t x, unsigned bytes)
{
    unsigned char at[8];
    for (unsigned i = 0; i < bytes; i++)
        at[i] = (unsigned char)(x >> 8 * i);
    put(s, at, bytes);
}

/* As CPython writes it: BININT1, BININT2, BININT, LONG1. */
static void put_whole(struct sink *s, int64_t x)
{
    if (x >= 0 && x <= UINT8_MAX) {
        put(s, "K", 1);
        put_little(s, (uint64_t)x, 1);
    } else if (x >= 0 && x <= UINT16_MAX) {
        put(s, "M", 1);
        put_little(s, (uint64_t)x, 2);
    } else if (x >= INT32_MIN && x <= INT32_MAX) {
        put(s, "J", 1);
        put_little(s, (uint64_t)x, 4);
    } else {
        put(s, "\x8a\x08", 2);
        put_little(s, (uint64_t)x, 8);
    }
}

/* Decimal digits of a number that is not negative, as many as `like` has where that begins with a zero. */
static void put_digits(struct sink *s, int64_t x, const unsigned char *like, uint64_t n)
{
    unsigned char digits[20];
    uint64_t at = sizeof digits, left = x > 0 ? (uint64_t)x : 0;
    const uint64_t least = n > 1 && like[0] == '0' ? n : 1;
    do {
        digits[--at] = (unsigned char)('0' + left % 10);
        left /= 10;
    } while (left > 0 || sizeof digits - at < least);
    put(s, digits + at, sizeof digits - at);
}

/* The text in its place; *number counts on. */
static void put_text(struct sink *s, const struct vg_pickle_pattern *pattern, const struct token *t, uint32_t place,
                     uint32_t *number)
{
    struct sink counted = {0};
    for (int turn = 0; turn < 2; turn++) { /* its length, then itself */
        struct sink *to = turn == 0 ? &counted : s;
        uint32_t next = *number;
        for (uint64_t at = 0, n; at < t->n; at += n) {
            n = piece_of(t->at + at, t->n - at);
            if (is_digit(t->at[at]))
                put_digits(to, vg_rank_pattern_at(&pattern->number[next++], place), t->at + at, n);
            else
                put(to, t->at + at, n);
        }
        if (turn == 0) { /* SHORT_BINUNICODE is protocol 4's */
            const bool is_short = counted.n <= UINT8_MAX && pattern->like.at[0].at[1] >= 4;
            put_little(s, is_short ? SHORT_TEXT : LONG_TEXT, 1);
            put_little(s, counted.n, is_short ? 1 : 4);
        } else {
            *number = next;
        }
    }
}

static void put_all(struct sink *s, const struct vg_pickle_pattern *pattern, uint32_t place)
{
    uint32_t number = 0;
    for (uint32_t i = 0; i < pattern->like.n; i++) {
        const struct token *t = &pattern->like.at[i];
        if (t->kind == LITERAL)
            put(s, t->at, t->n);
        else if (t->kind == WHOLE)
            put_whole(s, vg_rank_pattern_at(&pattern->number[number++], place));
        else
            put_text(s, pattern, t, place, &number);
    }
}

bool vg_pickle_pattern_say(const struct vg_pickle_pattern *pattern, uint32_t place, void *out, uint64_t bytes)
{
    struct sink counted = {0}, s = {.to = out, .room = bytes};
    put_all(&counted, pattern, place);
    if (counted.n > bytes)
        return false;
    put_all(&s, pattern, place);
    memset((unsigned char *)out + counted.n, 0, bytes - counted.n);
    return true;
}
