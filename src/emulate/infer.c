/*
 * infer.c - ranks that did not run, from those that did: see maquette/replay.h.
 *
 * The strides of the communicators cut a rank's number into digits (tensor, data, pipeline place, ...). Which class a rank
 * belongs to is a function of its digits that is known where a rank ran. The corners of the job run first: each digit at
 * its least and its largest. A digit on which no class hangs in any pair of ranks that differ in it alone is left out.
 * Over the others the job is a box; where all its corners are of one class, so is what is between them; where they are not,
 * it is cut in the middle. A corner that did not run is what has to run next. Random ranks between (`maquette capture
 * --verify`) test the rule.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/codes.h"
#include "emulate/codes.h"
#include "emulate/infer.h"
#include "maquette/replay.h"

struct box {
    uint32_t lo[MAQ_DIGITS], hi[MAQ_DIGITS];
};

/* --- digits --- */

static bool add_border(uint32_t *border, uint32_t *n, uint64_t x, uint32_t world)
{
    uint32_t i = 0;
    if (x > world || world % x != 0)
        return false;
    while (i < *n && border[i] < x)
        i++;
    if (i < *n && border[i] == x)
        return true;
    if (*n == MAQ_DIGITS + 1)
        return false;
    memmove(border + i + 1, border + i, (*n - i) * sizeof *border);
    border[i] = (uint32_t)x;
    ++*n;
    return true;
}

/* Borders between digits: 1 and the world, and the strides and spans of communicators where they divide each other. */
bool maq_infer_digits(struct maq_infer *f)
{
    uint32_t border[MAQ_DIGITS + 1] = {1}, n = 1, world = f->capture->world;
    if (!add_border(border, &n, world, world))
        return false;
    for (uint32_t k = 0; k < f->capture->n_classes; k++)
        for (uint32_t i = 0; i < f->capture->class_of_ranks[k].n_comms; i++) {
            const struct maq_pattern *p = &f->pattern[k][i];
            for (uint32_t j = 0; j < p->n_levels; j++)
                if (!add_border(border, &n, p->stride[j], world) ||
                    (!p->fixed && !add_border(border, &n, (uint64_t)p->stride[j] * p->n[j], world)))
                    return false;
        }
    for (uint32_t i = 0; i + 1 < n; i++) {
        if (border[i + 1] % border[i] != 0)
            return false;
        f->unit[i] = border[i];
        f->size[i] = border[i + 1] / border[i];
    }
    f->n_digits = n - 1;
    return true;
}

static uint32_t digit(const struct maq_infer *f, uint32_t rank, uint32_t d)
{
    return rank / f->unit[d] % f->size[d];
}

static uint32_t rank_at(const struct maq_infer *f, const uint32_t *digits)
{
    uint32_t rank = 0;
    for (uint32_t d = 0; d < f->n_digits; d++)
        rank += digits[d] * f->unit[d];
    return rank;
}

/* --- which digits matter --- */

/* The least corner that did not run; UINT32_MAX when all did. */
static uint32_t missing_corner(const struct maq_infer *f)
{
    for (uint32_t bits = 0; bits < 1u << f->n_digits; bits++) {
        uint32_t at[MAQ_DIGITS];
        for (uint32_t d = 0; d < f->n_digits; d++)
            at[d] = bits >> d & 1 ? f->size[d] - 1 : 0;
        uint32_t rank = rank_at(f, at);
        if (f->capture->class_of[rank] == UINT32_MAX)
            return rank;
    }
    return UINT32_MAX;
}

/* Of two ranks that ran: the digits in which they differ, as bits. */
static uint32_t differ(const struct maq_infer *f, uint32_t a, uint32_t b)
{
    uint32_t bits = 0;
    for (uint32_t d = 0; d < f->n_digits; d++)
        bits |= (uint32_t)(digit(f, a, d) != digit(f, b, d)) << d;
    return bits;
}

static uint32_t key_of(const struct maq_infer *f, uint32_t rank)
{
    uint32_t key = 0, times = 1;
    for (uint32_t d = 0; d < f->n_digits; d++)
        if (f->matters >> d & 1) {
            key += digit(f, rank, d) * times;
            times *= f->size[d];
        }
    return key;
}

static void find_what_matters(struct maq_infer *f)
{
    const uint32_t *class_of = f->capture->class_of;
    f->matters = 0;
    for (uint32_t i = 0; i < f->n_ran; i++)
        for (uint32_t k = 0; k < i; k++) {
            uint32_t bits = differ(f, f->ran[i], f->ran[k]);
            if (class_of[f->ran[i]] != class_of[f->ran[k]] && (bits & (bits - 1)) == 0)
                f->matters |= bits;
        }
    /* ranks that agree in all of those and are not of one class: what they differ in matters too */
    for (bool again = true; again;) {
        again = false;
        for (uint32_t i = 0; i < f->n_ran && !again; i++)
            for (uint32_t k = 0; k < i && !again; k++)
                if (class_of[f->ran[i]] != class_of[f->ran[k]] && key_of(f, f->ran[i]) == key_of(f, f->ran[k])) {
                    f->matters |= differ(f, f->ran[i], f->ran[k]);
                    again = true;
                }
    }
}

/* --- boxes --- */

static uint32_t class_at(const struct maq_infer *f, const uint32_t *digits, uint32_t *rank)
{
    *rank = rank_at(f, digits);
    return f->known[key_of(f, *rank)];
}

static void corner(const struct maq_infer *f, const struct box *b, uint32_t bits, uint32_t *at)
{
    for (uint32_t d = 0; d < f->n_digits; d++)
        at[d] = f->matters >> d & 1 ? (bits >> d & 1 ? b->hi[d] : b->lo[d]) : 0;
}

static void fill(struct maq_infer *f, const struct box *b, uint32_t d, uint32_t *at, uint32_t class)
{
    if (d == f->n_digits) {
        f->assigned[key_of(f, rank_at(f, at))] = class;
        return;
    }
    for (at[d] = b->lo[d]; at[d] <= b->hi[d]; at[d]++)
        fill(f, b, d + 1, at, class);
    at[d] = 0;
}

/* Along which digit corners differ, the widest of them; n_digits: all corners are of one class. */
static uint32_t widest_difference(const struct maq_infer *f, const struct box *b)
{
    uint32_t best = f->n_digits, at[MAQ_DIGITS], rank;
    for (uint32_t d = 0; d < f->n_digits; d++)
        for (uint32_t bits = 0; bits < 1u << f->n_digits && f->matters >> d & 1 && b->hi[d] > b->lo[d]; bits++) {
            if (bits >> d & 1)
                continue;
            corner(f, b, bits, at);
            uint32_t here = class_at(f, at, &rank);
            corner(f, b, bits | 1u << d, at);
            if (here != class_at(f, at, &rank) &&
                (best == f->n_digits || b->hi[d] - b->lo[d] > b->hi[best] - b->lo[best]))
                best = d;
        }
    return best;
}

/* A rank that has to run, or UINT32_MAX when the box is filled. */
static uint32_t settle(struct maq_infer *f, const struct box *b)
{
    uint32_t at[MAQ_DIGITS] = {0}, rank;
    for (uint32_t bits = 0; bits < 1u << f->n_digits; bits++) {
        corner(f, b, bits, at);
        if (class_at(f, at, &rank) == UINT32_MAX)
            return rank;
    }
    uint32_t d = widest_difference(f, b);
    if (d == f->n_digits) {
        corner(f, b, 0, at);
        uint32_t class = class_at(f, at, &rank);
        memset(at, 0, sizeof at);
        fill(f, b, 0, at, class);
        return UINT32_MAX;
    }
    uint32_t middle = b->lo[d] + (b->hi[d] - b->lo[d]) / 2;
    bool narrow = b->hi[d] - b->lo[d] == 1;
    struct box low = *b, high = *b;
    low.hi[d] = middle;
    high.lo[d] = narrow ? b->hi[d] : middle;
    uint32_t probe = settle(f, &low);
    return probe != UINT32_MAX ? probe : settle(f, &high);
}

static enum maq_status next(uint32_t *probe, uint32_t rank, const struct maq_capture *c)
{
    for (uint32_t r = 0; rank == UINT32_MAX || c->class_of[rank] != UINT32_MAX; r++) {
        MAQ_ASSERT(r < c->world);
        if (c->class_of[r] == UINT32_MAX)
            rank = r;
    }
    *probe = rank;
    return MAQ_NO;
}

/* Classes of all ranks into f->assigned, by key. */
static enum maq_status decide(struct maq_infer *f, uint32_t *probe)
{
    struct box whole = {{0}, {0}};
    uint32_t rank = missing_corner(f), keys = 1;
    if (rank != UINT32_MAX)
        return next(probe, rank, f->capture);
    find_what_matters(f);
    for (uint32_t d = 0; d < f->n_digits; d++)
        if (f->matters >> d & 1) {
            keys *= f->size[d];
            whole.hi[d] = f->size[d] - 1;
        }
    f->known = MAQ_ARENA_NEW(&f->scratch, uint32_t, keys);
    f->assigned = MAQ_ARENA_NEW(&f->scratch, uint32_t, keys);
    if (!f->known || !f->assigned)
        return MAQ_NO_MEMORY;
    memset(f->known, 0xff, keys * sizeof *f->known);
    for (uint32_t i = 0; i < f->n_ran; i++)
        f->known[key_of(f, f->ran[i])] = f->capture->class_of[f->ran[i]];
    rank = settle(f, &whole);
    return rank != UINT32_MAX ? next(probe, rank, f->capture) : MAQ_OK;
}

uint32_t maq_infer_class(const struct maq_infer *f, uint32_t rank)
{
    uint32_t known = f->capture->class_of[rank];
    return known != UINT32_MAX ? known : f->assigned[key_of(f, rank)];
}

/* --- the whole --- */

static enum maq_status find_patterns(struct maq_infer *f, uint32_t *probe)
{
    const struct maq_capture *c = f->capture;
    f->pattern = MAQ_ARENA_NEW(&f->scratch, struct maq_pattern *, c->n_classes);
    for (uint32_t k = 0; k < c->n_classes && f->pattern; k++) {
        const struct maq_rank_class *m = &c->class_of_ranks[k];
        f->pattern[k] = MAQ_ARENA_NEW(&f->scratch, struct maq_pattern, m->n_comms);
        if (!f->pattern[k])
            return MAQ_NO_MEMORY;
        for (uint32_t i = 0; i < m->n_comms; i++) {
            uint32_t rank;
            if (maq_pattern_find(&f->pattern[k][i], c, m, i, &rank))
                return next(probe, rank < c->world ? rank : UINT32_MAX, c);
        }
    }
    return f->pattern ? MAQ_OK : MAQ_NO_MEMORY;
}

static enum maq_status infer(struct maq_infer *f, uint32_t *probe, struct maq_diag *diag)
{
    struct maq_capture *c = f->capture;
    f->ran = MAQ_ARENA_NEW(&f->scratch, uint32_t, c->world);
    if (!f->ran)
        return MAQ_NO_MEMORY;
    for (uint32_t r = 0; r < c->world; r++)
        if (c->class_of[r] != UINT32_MAX)
            f->ran[f->n_ran++] = r;
    if (f->n_ran == c->world)
        return MAQ_OK;
    if (f->n_ran == 0)
        return next(probe, 0, c);
    MAQ_TRY(find_patterns(f, probe));
    if (!maq_infer_digits(f))
        return next(probe, UINT32_MAX, c);
    MAQ_TRY(decide(f, probe));
    return maq_infer_fill(f, probe, diag);
}

enum maq_status maq_capture_infer(struct maq_capture *capture, uint32_t *probe, struct maq_diag *diag)
{
    struct maq_infer f = {.capture = capture};
    maq_arena_init(&f.scratch, 0);
    *probe = UINT32_MAX;
    enum maq_status status = infer(&f, probe, diag);
    maq_arena_fini(&f.scratch);
    if (status == MAQ_NO_MEMORY)
        return maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_NO_MEMORY, (struct maq_span){0}, NULL, "out of memory");
    return status;
}
