/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_digits.c - the class of a rank that did not run, by the digits of its number.
 *
 * What a rank does is taken to depend on each digit by itself: values of a digit are alike (one of the inner pipeline stages; any
 * tensor-parallel rank but the first) wherever the other digits are, and ranks whose digits are alike are of one class. So the job
 * need not be run for every combination of values, only along lines:
 *
 *     line        ranks that differ in one digit alone. Where two of them that ran are of one class, so is what is between; where
 *                 they are not, the one in the middle runs
 *     alike       values of a digit that are of one class on every line. Lines go through the first rank and the last one
 *     cell        all ranks whose digits are alike; one of each cell runs at least
 *     corners     every digit at its least or its largest, with at most two of them or all but one at the largest: a dependence on
 *                 two digits at once (only the first rank of the last stage logs) is seen there
 *
 * Two ranks of one cell that are of two classes say that in this cell values are not alike. The ranks that lead from the one to the
 * other by a digit at a time run; through the two neighbours among them that differ go new lines, which end where the cell does,
 * and cut it into smaller ones. The other cells stay as they are.
 */
#include <string.h>

#include "base/check.h"
#include "capture/infer/infer.h"

#define NONE UINT32_MAX

struct cell {
    uint32_t n[MAQ_DIGITS], *value[MAQ_DIGITS];
};

/* A cell that is being cut. */
struct cut {
    struct maq_infer *f;
    const struct cell *cell;
    uint32_t *group[MAQ_DIGITS]; /* [values] which of those that are alike; NONE: it is not in the cell */
    uint32_t groups[MAQ_DIGITS], n_cells;
    uint32_t *label, *was, *first; /* [values of a digit] scratch */
    uint32_t *one, *other;         /* [n_cells] a rank that ran, one of another class that did; NONE: there is none */
};

static uint32_t digit(const struct maq_infer *f, uint32_t rank, uint32_t d)
{
    return rank / f->unit[d] % f->size[d];
}

/* The rank with another value of a digit. */
static uint32_t with_digit(const struct maq_infer *f, uint32_t rank, uint32_t d, uint32_t value)
{
    return rank - digit(f, rank, d) * f->unit[d] + value * f->unit[d];
}

static uint32_t class_of(const struct maq_infer *f, uint32_t rank)
{
    return f->capture->class_of[rank];
}

/* Whether a rank did not run; it is asked for then. */
static bool open(struct maq_infer *f, uint32_t rank)
{
    if (class_of(f, rank) != NONE)
        return false;
    maq_infer_next_ranks(f, rank);
    return true;
}

/* --- corners --- */

static unsigned bits_of(uint32_t x)
{
    unsigned n = 0;
    for (; x; x &= x - 1)
        n++;
    return n;
}

static bool corners_open(struct maq_infer *f)
{
    bool some = false;
    for (uint32_t bits = 0; bits < 1u << f->n_digits; bits++) {
        unsigned up = bits_of(bits);
        uint32_t rank = 0;
        if (up > 2 && up + 1 < f->n_digits)
            continue;
        for (uint32_t d = 0; d < f->n_digits; d++)
            rank += (bits >> d & 1) * (f->size[d] - 1) * f->unit[d];
        some = open(f, rank) || some;
    }
    return some;
}

/* --- lines --- */

/* Classes along the line through a rank into c->label; true: some are open. */
static bool walk(struct cut *c, uint32_t d, uint32_t rank)
{
    struct maq_infer *f = c->f;
    const uint32_t *value = c->cell->value[d], n = c->cell->n[d];
    MAQ_ASSERT(value && n > 0);
    bool ends = open(f, with_digit(f, rank, d, value[0])), middle = false;
    ends = open(f, with_digit(f, rank, d, value[n - 1])) || ends;
    for (uint32_t i = 1; i < n; i++) /* what another line tells apart is in cells of its own anyway */
        if (c->group[d][value[i]] != c->group[d][value[i - 1]]) {
            ends = open(f, with_digit(f, rank, d, value[i - 1])) || ends;
            ends = open(f, with_digit(f, rank, d, value[i])) || ends;
        }
    for (uint32_t i = 0, last = 0; i < n && !ends; i++) {
        uint32_t class = class_of(f, with_digit(f, rank, d, value[i]));
        if (class == NONE)
            continue;
        if (i - last > 1 && c->label[last] != class)
            middle = open(f, with_digit(f, rank, d, value[last + (i - last) / 2])) || middle;
        for (uint32_t k = last + 1; k < i; k++)
            c->label[k] = class;
        c->label[last = i] = class;
    }
    return ends || middle;
}

/* Values that are alike so far are told apart where their labels differ; groups are numbered as they come. */
static void part(struct cut *c, uint32_t d)
{
    uint32_t n = 0, *group = c->group[d];
    const uint32_t *value = c->cell->value[d];
    for (uint32_t i = 0; i < c->cell->n[d]; i++)
        c->was[i] = group[value[i]];
    for (uint32_t i = 0; i < c->cell->n[d]; i++) {
        uint32_t g = 0;
        while (g < n && (c->was[c->first[g]] != c->was[i] || c->label[c->first[g]] != c->label[i]))
            g++;
        if (g == n)
            c->first[n++] = i;
        group[value[i]] = g;
    }
    c->groups[d] = n;
}

/* Lines through two ranks along every digit; true: some are open. */
static bool cut_by_lines(struct cut *c, uint32_t a, uint32_t b)
{
    bool some = false;
    for (uint32_t d = 0; d < c->f->n_digits; d++) {
        MAQ_ASSERT(c->group[d]);
        memset(c->group[d], 0xff, c->f->size[d] * sizeof **c->group);
        for (uint32_t i = 0; i < c->cell->n[d]; i++)
            c->group[d][c->cell->value[d][i]] = 0;
        for (int turn = 0; turn < 2; turn++)
            if (walk(c, d, turn ? b : a))
                some = true;
            else
                part(c, d);
    }
    c->n_cells = 1;
    for (uint32_t d = 0; d < c->f->n_digits && !some; d++)
        c->n_cells *= c->groups[d];
    return some;
}

/* --- cells --- */

/* The smaller cell that a rank is in; NONE: it is not in this one. */
static uint32_t cell_of(const struct cut *c, uint32_t rank)
{
    uint32_t cell = 0, times = 1;
    for (uint32_t d = 0; d < c->f->n_digits; d++) {
        MAQ_ASSERT(c->group[d]);
        uint32_t g = c->group[d][digit(c->f, rank, d)];
        if (g == NONE)
            return NONE;
        cell += g * times;
        times *= c->groups[d];
    }
    return cell;
}

static bool make_cell(struct cell *out, const struct cut *c, uint32_t cell)
{
    for (uint32_t d = 0; d < c->f->n_digits; d++) {
        MAQ_ASSERT(c->groups[d] > 0 && c->group[d] && c->cell->value[d]);
        uint32_t g = cell % c->groups[d], n = 0;
        cell /= c->groups[d];
        out->value[d] = MAQ_ARENA_NEW(&c->f->scratch, uint32_t, c->cell->n[d]);
        if (!out->value[d])
            return false;
        for (uint32_t i = 0; i < c->cell->n[d]; i++)
            if (c->group[d][c->cell->value[d][i]] == g)
                out->value[d][n++] = c->cell->value[d][i];
        out->n[d] = n;
    }
    return true;
}

/* Ranks that ran, by their cell. */
static void gather(struct cut *c)
{
    memset(c->one, 0xff, c->n_cells * sizeof *c->one);
    memset(c->other, 0xff, c->n_cells * sizeof *c->other);
    for (uint32_t i = 0; i < c->f->n_ran; i++) {
        uint32_t rank = c->f->ran[i], cell = cell_of(c, rank);
        if (cell == NONE)
            continue;
        if (c->one[cell] == NONE)
            c->one[cell] = rank;
        else if (c->other[cell] == NONE && class_of(c->f, rank) != class_of(c->f, c->one[cell]))
            c->other[cell] = rank;
    }
}

/* The two neighbours that differ on the way from *a to *b; false: ranks on it are open. */
static bool lead(struct maq_infer *f, uint32_t *a, uint32_t *b)
{
    bool some = false;
    for (uint32_t d = 0, at = *a; d < f->n_digits; d++)
        some = open(f, at = with_digit(f, at, d, digit(f, *b, d))) || some;
    for (uint32_t d = 0, at = *a; d < f->n_digits && !some; d++) {
        uint32_t next = with_digit(f, at, d, digit(f, *b, d));
        if (class_of(f, at) != class_of(f, next)) {
            *a = at;
            *b = next;
            return true;
        }
        at = next;
    }
    return false;
}

/* All ranks of a cell, from its last one on, are asked for (one of them), or get the class of the one that ran. */
static void fill(struct cut *c)
{
    struct maq_infer *f = c->f;
    for (uint32_t rank = f->capture->world; rank-- > 0;) {
        uint32_t cell = cell_of(c, rank);
        if (cell == NONE || c->other[cell] != NONE)
            continue;
        if (c->one[cell] == NONE) {
            maq_infer_next_ranks(f, rank);
            c->one[cell] = rank;
        }
        f->class_at[rank] = class_of(f, c->one[cell]);
    }
}

static bool begin(struct cut *c, const struct maq_infer *f)
{
    struct maq_arena *a = &c->f->scratch;
    uint32_t widest = 1;
    for (uint32_t d = 0; d < f->n_digits; d++) {
        widest = f->size[d] > widest ? f->size[d] : widest;
        c->group[d] = MAQ_ARENA_NEW(a, uint32_t, f->size[d]);
        if (!c->group[d])
            return false;
    }
    c->label = MAQ_ARENA_NEW(a, uint32_t, widest);
    c->was = MAQ_ARENA_NEW(a, uint32_t, widest);
    c->first = MAQ_ARENA_NEW(a, uint32_t, widest);
    return c->label && c->was && c->first;
}

/* Every cut tells two ranks apart that ran, so that there are no more of them than ranks that ran. */
static enum maq_status settle(struct maq_infer *f, const struct cell *cell, uint32_t a, uint32_t b)
{
    struct cut c = {.f = f, .cell = cell};
    if (!begin(&c, f))
        return MAQ_NO_MEMORY;
    if (cut_by_lines(&c, a, b))
        return MAQ_NO;
    c.one = MAQ_ARENA_NEW(&f->scratch, uint32_t, c.n_cells);
    c.other = MAQ_ARENA_NEW(&f->scratch, uint32_t, c.n_cells);
    if (!c.one || !c.other)
        return MAQ_NO_MEMORY;
    gather(&c);
    fill(&c);
    for (uint32_t i = 0; i < c.n_cells; i++) {
        struct cell smaller;
        if (c.other[i] == NONE || !lead(f, &c.one[i], &c.other[i]))
            continue;
        if (!make_cell(&smaller, &c, i))
            return MAQ_NO_MEMORY;
        enum maq_status status = settle(f, &smaller, c.one[i], c.other[i]);
        if (status == MAQ_NO_MEMORY)
            return status;
    }
    return MAQ_OK;
}

enum maq_status maq_infer_digits(struct maq_infer *f)
{
    struct cell whole = {{0}, {0}};
    f->class_at = MAQ_ARENA_NEW(&f->scratch, uint32_t, f->capture->world);
    if (!f->class_at)
        return MAQ_NO_MEMORY;
    for (uint32_t d = 0; d < f->n_digits; d++) {
        whole.n[d] = f->size[d];
        whole.value[d] = MAQ_ARENA_NEW(&f->scratch, uint32_t, f->size[d]);
        if (!whole.value[d])
            return MAQ_NO_MEMORY;
        for (uint32_t v = 0; v < f->size[d]; v++)
            whole.value[d][v] = v;
    }
    if (corners_open(f))
        return MAQ_NO;
    enum maq_status status = settle(f, &whole, 0, f->capture->world - 1);
    return status == MAQ_OK && f->n_asked > 0 ? MAQ_NO : status;
}
