/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stride.c - guesses the members of a communicator of which only the size and the positions of a few ranks are known.
 *
 * A program that gives ids to its communicators tells a rank how many are in it and which of them it is. Every product of at
 * most three progressions whose strides and spans divide the world and each other is tried, those of the fewest progressions
 * first. A pattern has to agree with
 *
 *     the ranks of the class that ran: each is where it said it is
 *     those who were in one communicator with one of them, of whatever class: there, too, and in the same one; and those who were
 *     in another are not
 *
 * Of several that do, the one is taken that fits all communicators of that size and number in other classes, or the one that
 * another communicator has; otherwise a rank has to run that would have another place with one than with the other.
 */
#include <string.h>

#include "capture/infer/pattern.h"

#define LEVELS_MAX 3u
#define FITS_MAX 64u /* that are looked at; more are as good as open */

struct guess {
    const struct maq_capture *capture;
    const struct maq_rank_class *class;
    uint32_t ordinal, levels;
    bool early;
    struct maq_pattern fits[FITS_MAX];
    uint32_t n;
};

static uint32_t comm_of(const struct maq_rank_class *c, uint32_t i, uint32_t ordinal)
{
    return c->comm[(size_t)i * c->n_comms + ordinal];
}

/* Whether a rank of another class is where the pattern has it, and in the communicator of whom it shares the base with. */
static bool holds_beside(const struct maq_pattern *p, const struct guess *g, const struct maq_rank_class *c,
                         uint32_t ordinal)
{
    for (uint32_t i = 0; i < g->class->n_ranks; i++)
        for (uint32_t k = 0; k < c->n_ranks; k++) {
            uint32_t base, other, at;
            bool one = comm_of(g->class, i, g->ordinal) == comm_of(c, k, ordinal);
            if (!maq_pattern_at(p, g->class->rank[i], g->capture->world, &base, &at) ||
                !maq_pattern_at(p, c->rank[k], g->capture->world, &other, &at) ||
                ((base == other) != one && !(g->early && !one)))
                return false;
        }
    return maq_pattern_holds(p, g->capture, c, ordinal);
}

static bool shares(const struct guess *g, const struct maq_rank_class *c, uint32_t ordinal)
{
    for (uint32_t i = 0; i < g->class->n_ranks; i++)
        for (uint32_t k = 0; k < c->n_ranks; k++)
            if (comm_of(g->class, i, g->ordinal) == comm_of(c, k, ordinal))
                return true;
    return false;
}

static bool fits(const struct maq_pattern *p, const struct guess *g)
{
    if (!maq_pattern_holds(p, g->capture, g->class, g->ordinal))
        return false;
    for (uint32_t k = 0; k < g->capture->n_classes; k++) {
        const struct maq_rank_class *c = &g->capture->class_of_ranks[k];
        for (uint32_t i = 0; i < c->n_comms; i++)
            if (g->capture->comm[comm_of(c, 0, i)].size == p->size && shares(g, c, i) && !holds_beside(p, g, c, i))
                return false;
    }
    return true;
}

/* All ways to go on with a pattern that has `left` members too few, by as many levels as are wanted. */
static void extend(struct guess *g, struct maq_pattern *p, uint32_t left)
{
    uint32_t world = g->capture->world, j = p->n_levels;
    uint64_t span = j > 0 ? (uint64_t)p->stride[j - 1] * p->n[j - 1] : 1;
    if (j == g->levels) {
        if (g->n < FITS_MAX && fits(p, g))
            g->fits[g->n++] = *p;
        return;
    }
    for (uint32_t n = 2; n <= left && g->n < FITS_MAX; n++) {
        if (left % n != 0 || (j + 1 == g->levels) != (n == left))
            continue;
        for (uint64_t s = j > 0 ? 2 * span : 1; s * n <= world; s += span) {
            if (world % (s * n) != 0)
                continue;
            p->n[j] = n;
            p->stride[j] = (uint32_t)s;
            p->n_levels = j + 1;
            extend(g, p, left / n);
        }
    }
    p->n_levels = j;
    if (j < LEVELS_MAX)
        p->n[j] = p->stride[j] = 0; /* patterns are compared whole */
}

/* Whether it holds for the communicators of that size and number in every class. */
static bool holds_everywhere(const struct maq_pattern *p, const struct guess *g)
{
    uint32_t nth = maq_pattern_nth(g->capture, g->class, g->ordinal);
    for (uint32_t k = 0; k < g->capture->n_classes; k++) {
        const struct maq_rank_class *c = &g->capture->class_of_ranks[k];
        for (uint32_t i = 0; i < c->n_comms; i++)
            if (g->capture->comm[c->comm[i]].size == p->size && maq_pattern_nth(g->capture, c, i) == nth &&
                !holds_beside(p, g, c, i))
                return false;
    }
    return true;
}

static bool is_like(const struct maq_pattern *p, const struct maq_patterns *like)
{
    for (uint32_t i = 0; i < like->n; i++)
        if (maq_pattern_same(p, &like->at[i]))
            return true;
    return false;
}

/* The only one for which it is true; UINT32_MAX: there are none, or several. */
static uint32_t only(const struct guess *g, const bool *yes)
{
    uint32_t found = UINT32_MAX;
    for (uint32_t i = 0; i < g->n; i++)
        if (yes[i]) {
            if (found != UINT32_MAX)
                return UINT32_MAX;
            found = i;
        }
    return found;
}

static uint32_t choose(const struct guess *g, const struct maq_patterns *like)
{
    bool everywhere[FITS_MAX], known[FITS_MAX], both[FITS_MAX];
    for (uint32_t i = 0; i < g->n; i++) {
        everywhere[i] = holds_everywhere(&g->fits[i], g);
        known[i] = is_like(&g->fits[i], like);
        both[i] = everywhere[i] && known[i];
    }
    uint32_t found = g->n == 1 ? 0 : only(g, everywhere);
    found = found == UINT32_MAX ? only(g, both) : found;
    return found == UINT32_MAX ? only(g, known) : found;
}

/* The rank nearest to one of the class that did not run and would be elsewhere with the one than with the other. */
static uint32_t telling(const struct guess *g, const struct maq_pattern *a, const struct maq_pattern *b)
{
    uint32_t best = UINT32_MAX, least = UINT32_MAX, base, at, other;
    for (uint32_t r = 0; r < g->capture->world; r++) {
        if (g->capture->class_of[r] != UINT32_MAX || !maq_pattern_at(a, r, g->capture->world, &base, &at) ||
            !maq_pattern_at(b, r, g->capture->world, &base, &other) || at == other)
            continue;
        for (uint32_t i = 0; i < g->class->n_ranks; i++) {
            uint32_t x = g->class->rank[i], away = x > r ? x - r : r - x;
            if (away < least) {
                least = away;
                best = r;
            }
        }
    }
    return best;
}

const char *maq_pattern_guess(struct maq_pattern *out, const struct maq_capture *capture,
                              const struct maq_rank_class *c, uint32_t ordinal, const struct maq_patterns *like,
                              uint32_t *probe)
{
    struct guess g = {.capture = capture, .class = c, .ordinal = ordinal, .early = like->early};
    struct maq_pattern p = {.size = capture->comm[c->comm[ordinal]].size};
    for (g.levels = p.size > 1; g.levels <= LEVELS_MAX && g.n == 0; g.levels++)
        extend(&g, &p, p.size);
    if (g.n == 0)
        return "no strides fit";
    uint32_t found = choose(&g, like);
    if (found == UINT32_MAX) {
        *probe = telling(&g, &g.fits[0], &g.fits[1]);
        return "several strides fit";
    }
    *out = g.fits[found];
    return NULL;
}
