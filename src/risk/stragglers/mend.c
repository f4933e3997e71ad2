/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mend.c - a recorded job whose rows have dirt in them, as the job that it most likely was. See base/mended.h.
 *
 *   duration              below zero, or zero where it was not recorded: mend_durations.c
 *   repetition            a row of the same text once more: left out
 *   clock                 rows of one worker whose starts lie apart from all others of their step, by more than APART times what a
 *                         step usually spans: a clock that was set. (Where a job hangs, all workers are late.) The starts are found anew
 *   rank without a row    left out, and said
 *   missing operation     a kind of which a worker has fewer in a step than workers of its stage have in nine of ten steps: it is put in
 *
 * What is put in comes from a reference, the same worker in the nearest step that has all of the kind, or another worker of the stage in
 * the same step. The rows that are there are matched to the reference's in order, so that the sum of |start - (reference + late)| is
 * least, with `late` that of the nearest row of which nothing is missing; what stays unmatched of the reference is what is missing. It is
 * put between those around it, and takes part in the replay as if it had begun as soon as it could.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/codes.h"
#include "base/stat/summary.h"
#include "risk/codes.h"
#include "risk/stragglers/mend_durations.h"

/* Steps' spans between rows whose clocks are of different minds. */
#define APART 2.0
/* A share of a stage's sections that agree on how many of a kind there are: an operation that only some steps have is no dirt. */
#define MOST_SECTIONS 0.9
#define LEAST_STEPS 3u        /* for a usual span */
#define MOST_KINDS (1u << 24) /* stages x kinds x chunks that are looked at */
#define MOST_MISSING 64u      /* of one kind in a section; more is another job, not dirt */
#define NONE UINT32_MAX

/* Rows of one worker in one step. */
struct section {
    uint32_t first, n, step, worker;
};

/* A kind of operation on a stage, and how many of it most of its sections have. */
struct usual {
    uint32_t count, votes, seen;
};

struct mender {
    struct maq_replay_rows *rows;
    const struct maq_replay_trace *t;
    struct maq_mending *m;
    struct maq_arena *arena;
    struct section *section;       /* by step, then worker */
    uint32_t n_sections, n_before; /* n_before: rows before any was put in */
    uint32_t kinds;                /* types x (chunks + 1) */
    struct usual *usual;           /* [pp * kinds] */
    double usual_span;             /* of a step, us */
};

static int in_order(const void *pa, const void *pb)
{
    const struct maq_replay_row *a = pa, *b = pb;
    if (a->op.step != b->op.step)
        return a->op.step < b->op.step ? -1 : 1;
    if (a->op.worker != b->op.worker)
        return a->op.worker < b->op.worker ? -1 : 1;
    if (a->op.start_us < b->op.start_us || b->op.start_us < a->op.start_us)
        return a->op.start_us < b->op.start_us ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}

static void sort(struct maq_replay_rows *rows)
{
    qsort(rows->row, rows->n, sizeof *rows->row, in_order);
}

/* --- repetitions --- */

static enum maq_status drop_repeated(struct mender *d)
{
    struct maq_replay_row *row = d->rows->row;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < d->rows->n; i++) {
        bool again = false;
        for (uint32_t k = kept; k-- > 0 && !again && row[k].op.start_us == row[i].op.start_us &&
                                row[k].op.worker == row[i].op.worker && row[k].op.step == row[i].op.step;)
            again = row[k].hash == row[i].hash;
        if (again)
            MAQ_TRY(maq_mend(d->m, MAQ_MEND_REPEATED, row[i].at, MAQ_CODE_RISK_ROW, "%s:%u: a row once more",
                             d->m->path, row[i].at));
        else
            row[kept++] = row[i];
    }
    d->rows->n = kept;
    return MAQ_OK;
}

/* --- clocks --- */

struct moment {
    double start_us;
    uint32_t row;
};

static int by_start(const void *pa, const void *pb)
{
    const struct moment *a = pa, *b = pb;
    if (a->start_us < b->start_us || b->start_us < a->start_us)
        return a->start_us < b->start_us ? -1 : 1;
    return (a->row > b->row) - (a->row < b->row);
}

/* How many workers have rows among [from, to) of a step in order of their starts; seen: [workers], zero before and after. */
static uint32_t workers_of(const struct mender *d, const struct moment *at, uint32_t from, uint32_t to, bool *seen)
{
    uint32_t n = 0;
    for (uint32_t i = from; i < to; i++) {
        bool *one = &seen[d->rows->row[at[i].row].op.worker];
        n += !*one;
        *one = true;
    }
    for (uint32_t i = from; i < to; i++)
        seen[d->rows->row[at[i].row].op.worker] = false;
    return n;
}

/* Takes rows off the ends of [low, high) that lie apart from the rest and are not of every worker. */
static void cut_ends(const struct mender *d, const struct moment *at, uint32_t *low, uint32_t *high, bool *seen)
{
    const uint32_t workers = workers_of(d, at, *low, *high, seen);
    for (bool cut = true; cut;) {
        cut = false;
        for (uint32_t i = *low + 1; i < *high && !cut; i++) {
            bool before = i - *low < *high - i;
            if (at[i].start_us - at[i - 1].start_us <= APART * d->usual_span)
                continue;
            cut = workers_of(d, at, before ? *low : i, before ? i : *high, seen) < workers;
            *low = cut && before ? i : *low;
            *high = cut && !before ? i : *high;
        }
    }
}

static enum maq_status check_clock(struct mender *d, struct moment *at, bool *seen, uint32_t from, uint32_t to)
{
    uint32_t n = to - from, low = 0, high = n;
    for (uint32_t i = 0; i < n; i++)
        at[i] = (struct moment){d->rows->row[from + i].op.start_us, from + i};
    qsort(at, n, sizeof *at, by_start);
    cut_ends(d, at, &low, &high, seen);
    for (uint32_t i = 0; i < n; i++) {
        struct maq_replay_row *row = &d->rows->row[at[i].row];
        if (i >= low && i < high)
            continue;
        row->off_clock = row->op.placed = true;
        MAQ_TRY(maq_mend(d->m, MAQ_MEND_CLOCK, row->at, MAQ_CODE_RISK_ROW,
                         "%s:%u: a start of %g us, far from all others of its step", d->m->path, row->at,
                         row->op.start_us));
        row->op.start_us = at[low + (high - low) / 2].start_us; /* where nothing else is known of it */
    }
    return MAQ_OK;
}

static uint32_t end_of_step(const struct mender *d, uint32_t from)
{
    uint32_t to = from;
    while (to < d->rows->n && d->rows->row[to].op.step == d->rows->row[from].op.step)
        to++;
    return to;
}

static enum maq_status check_clocks(struct mender *d)
{
    struct maq_replay_rows *rows = d->rows;
    double *span = MAQ_ARENA_NEW(d->arena, double, rows->n);
    struct moment *at = MAQ_ARENA_NEW(d->arena, struct moment, rows->n);
    bool *seen = MAQ_ARENA_NEW(d->arena, bool, (size_t)d->t->dp * d->t->pp);
    uint32_t steps = 0;
    if (!span || !at || !seen)
        return MAQ_NO_MEMORY;
    for (uint32_t from = 0, to; from < rows->n; from = to) {
        double first = rows->row[from].op.start_us, last = first;
        to = end_of_step(d, from);
        for (uint32_t i = from; i < to; i++) {
            first = fmin(first, rows->row[i].op.start_us);
            last = fmax(last, rows->row[i].op.start_us);
        }
        span[steps++] = last - first;
    }
    d->usual_span = maq_quantile(span, steps, 0.5);
    for (uint32_t from = 0, to; from < rows->n && steps >= LEAST_STEPS; from = to) {
        to = end_of_step(d, from);
        MAQ_TRY(check_clock(d, at, seen, from, to));
    }
    return MAQ_OK;
}

/* --- how many of a kind there usually are --- */

static uint32_t kind_of(const struct mender *d, const struct maq_replay_op *op)
{
    return op->type * (d->t->chunks + 1u) + (uint32_t)(op->chunk + 1);
}

static enum maq_status find_sections(struct mender *d)
{
    const struct maq_replay_rows *rows = d->rows;
    d->section = MAQ_ARENA_NEW(d->arena, struct section, rows->n);
    if (!d->section)
        return MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < rows->n; i++) {
        const struct maq_replay_op *op = &rows->row[i].op;
        struct section *s = d->n_sections > 0 ? &d->section[d->n_sections - 1] : NULL;
        if (!s || s->step != op->step || s->worker != op->worker) {
            s = &d->section[d->n_sections++];
            *s = (struct section){.first = i, .step = op->step, .worker = op->worker};
        }
        s->n++;
    }
    return MAQ_OK;
}

static void count_kinds(const struct mender *d, const struct section *s, uint32_t *count)
{
    memset(count, 0, d->kinds * sizeof *count);
    for (uint32_t i = 0; i < s->n; i++)
        count[kind_of(d, &d->rows->row[s->first + i].op)]++;
}

/* The majority, by Boyer and Moore ("MJRTY - a fast majority vote algorithm", 1981): a candidate, then a count of those that agree. */
static enum maq_status find_usual(struct mender *d)
{
    uint32_t *count = MAQ_ARENA_NEW(d->arena, uint32_t, d->kinds);
    d->usual = MAQ_ARENA_NEW(d->arena, struct usual, (size_t)d->t->pp * d->kinds);
    if (!count || !d->usual)
        return MAQ_NO_MEMORY;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < d->n_sections; i++) {
            struct usual *u = &d->usual[d->section[i].worker % d->t->pp * d->kinds];
            count_kinds(d, &d->section[i], count);
            for (uint32_t k = 0; k < d->kinds; k++) {
                if (pass == 0 && u[k].votes == 0)
                    u[k].count = count[k];
                if (pass == 0)
                    u[k].votes += u[k].count == count[k] ? 1 : UINT32_MAX;
                else
                    u[k].votes += u[k].count == count[k];
                u[k].seen += pass;
            }
        }
        for (size_t k = 0; pass == 0 && k < (size_t)d->t->pp * d->kinds; k++)
            d->usual[k].votes = 0;
    }
    return MAQ_OK;
}

static uint32_t usual_count(const struct mender *d, uint32_t worker, uint32_t kind)
{
    const struct usual *u = &d->usual[worker % d->t->pp * d->kinds + kind];
    return u->votes >= MOST_SECTIONS * u->seen ? u->count : 0;
}

/* --- a reference --- */

static uint32_t find_rows(const struct mender *d, const struct section *s, uint32_t kind, bool off_clock, uint32_t *out)
{
    uint32_t n = 0;
    for (uint32_t i = s->first; i < s->first + s->n; i++)
        if (kind_of(d, &d->rows->row[i].op) == kind && d->rows->row[i].off_clock == off_clock)
            out[n++] = i;
    return n;
}

/* The nearest section in the list, before or behind, of the same worker, or else of the same step and stage, that has all of the kind. */
static const struct section *find_reference(const struct mender *d, uint32_t of, uint32_t kind, uint32_t usual,
                                            uint32_t *scratch)
{
    const struct section *s = &d->section[of];
    for (int same = 1; same >= 0; same--)
        for (uint32_t far = 1; far < d->n_sections; far++)
            for (int side = 0; side < 2; side++) {
                if (side == 0 ? far > of : of + far >= d->n_sections)
                    continue;
                const struct section *r = &d->section[side == 0 ? of - far : of + far];
                bool fits =
                    same ? r->worker == s->worker : r->step == s->step && r->worker % d->t->pp == s->worker % d->t->pp;
                if (fits && find_rows(d, r, kind, false, scratch) == usual)
                    return r;
            }
    return NULL;
}

/* --- what is missing --- */

/* Which of n reference starts the c own ones do not match, in order; cost[c + 1][gaps + 1] is the least sum of distances. */
static void match(bool *missing, const double *own, uint32_t c, const double *reference, uint32_t n, double *cost)
{
    uint32_t gaps = n - c, wide = gaps + 1;
    for (uint32_t i = 0; i <= c; i++)
        for (uint32_t g = 0; g <= gaps; g++) {
            double best = i == 0 ? 0 : cost[(i - 1) * wide + g] + fabs(own[i - 1] - reference[i - 1 + g]);
            if (g > 0)
                best = fmin(best, cost[i * wide + g - 1]);
            cost[i * wide + g] = best;
        }
    for (uint32_t i = c, g = gaps, j = n; j-- > 0;) {
        missing[j] = g > 0 && (i == 0 || cost[i * wide + g] == cost[i * wide + g - 1]);
        g -= missing[j];
        i -= !missing[j];
    }
}

static enum maq_status put_in(struct mender *d, const struct section *s, const struct maq_replay_op *like, double start)
{
    struct maq_replay_row row = {.op = *like};
    row.op.step = s->step;
    row.op.worker = s->worker;
    row.op.start_us = start;
    row.op.placed = true;
    MAQ_TRY(maq_mend(d->m, MAQ_MEND_MISSING, 0, MAQ_CODE_RISK_TRACE,
                     "%s: step %u: data-parallel rank %u, stage %u has one %s less than in other steps", d->m->path,
                     s->step, s->worker / d->t->pp, s->worker % d->t->pp, d->t->type[like->type].name));
    d->m->moved_s += like->dur_us * 1e-6;
    return maq_replay_rows_add(d->rows, &row) ? MAQ_OK : MAQ_NO_MEMORY;
}

/* A section of which operations of a kind are missing, beside its reference. */
struct beside {
    const struct section *own, *reference;
    uint32_t *twin;       /* [reference->n] row of the own section that is the same operation, NONE */
    uint32_t *scratch;    /* [own->n + reference->n] */
    double *late;         /* [own->n] by how much a row is later than its twin; NaN where it has none yet */
    double *value, *cost; /* [own->n + reference->n]; of match() */
    bool *missing;        /* [reference->n] */
};

static bool make_beside(struct beside *b, const struct mender *d, const struct section *own,
                        const struct section *reference)
{
    uint32_t n = own->n + reference->n;
    *b = (struct beside){.own = own,
                         .reference = reference,
                         .twin = MAQ_ARENA_NEW(d->arena, uint32_t, reference->n),
                         .scratch = MAQ_ARENA_NEW(d->arena, uint32_t, n),
                         .late = MAQ_ARENA_NEW(d->arena, double, own->n),
                         .value = MAQ_ARENA_NEW(d->arena, double, n),
                         .cost = MAQ_ARENA_NEW(d->arena, double, (size_t)(own->n + 1) * (MOST_MISSING + 1)),
                         .missing = MAQ_ARENA_NEW(d->arena, bool, reference->n)};
    if (!b->twin || !b->scratch || !b->late || !b->value || !b->cost || !b->missing)
        return false;
    for (uint32_t i = 0; i < own->n; i++)
        b->late[i] = (double)NAN;
    for (uint32_t i = 0; i < reference->n; i++)
        b->twin[i] = NONE;
    return true;
}

/* By how much the own section is later around a row: as much as the nearest row before it, or behind it, that has a twin. */
static double late_near(const struct beside *b, const struct mender *d, uint32_t row)
{
    uint32_t at = row - b->own->first;
    for (uint32_t i = at + 1; i-- > 0;)
        if (!isnan(b->late[i]))
            return b->late[i];
    for (uint32_t i = at + 1; i < b->own->n; i++)
        if (!isnan(b->late[i]))
            return b->late[i];
    return d->rows->row[b->own->first].op.start_us - d->rows->row[b->reference->first].op.start_us;
}

/* Twins of the kinds of which both have as many, one by one; then of those of which some are missing, by their starts. */
static void find_twins(struct beside *b, const struct mender *d)
{
    const struct maq_replay_row *row = d->rows->row;
    uint32_t *own = b->scratch, *other = b->scratch + b->own->n;
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t kind = 0; kind < d->kinds; kind++) {
            uint32_t c = find_rows(d, b->own, kind, false, own), n = find_rows(d, b->reference, kind, false, other);
            if ((c == n) != (pass == 0) || c > n || n - c > MOST_MISSING)
                continue;
            for (uint32_t i = 0; i < c && pass == 1; i++)
                b->value[i] = row[own[i]].op.start_us - late_near(b, d, own[i]);
            for (uint32_t i = 0; i < n && pass == 1; i++)
                b->value[c + i] = row[other[i]].op.start_us;
            memset(b->missing, 0, n * sizeof *b->missing);
            if (pass == 1)
                match(b->missing, b->value, c, b->value + c, n, b->cost);
            for (uint32_t i = 0, k = 0; i < n; i++) {
                if (b->missing[i])
                    continue;
                b->twin[other[i] - b->reference->first] = own[k];
                b->late[own[k] - b->own->first] = row[own[k]].op.start_us - row[other[i]].op.start_us;
                k++;
            }
        }
}

/* Where an operation of the reference lies in the own section: as far from its neighbour's twin as from the neighbour, and on its stream
 * between the twins of those around it. */
static double place(const struct beside *b, const struct mender *d, uint32_t of)
{
    const struct maq_replay_row *row = d->rows->row, *like = &row[of];
    const struct section *r = b->reference;
    double low = -(double)INFINITY, high = (double)INFINITY, shift = 0;
    bool near = false;
    for (uint32_t i = of; i-- > r->first && (low < 0 || !near);) {
        uint32_t twin = b->twin[i - r->first];
        if (twin == NONE)
            continue;
        shift = near ? shift : row[twin].op.start_us - row[i].op.start_us;
        near = true;
        if (low < -1e300 && maq_replay_stream(d->t, &row[i].op) == maq_replay_stream(d->t, &like->op))
            low = row[twin].op.start_us;
    }
    for (uint32_t i = of + 1; i < r->first + r->n && high > 1e300; i++) {
        uint32_t twin = b->twin[i - r->first];
        if (twin == NONE)
            continue;
        shift = near ? shift : row[twin].op.start_us - row[i].op.start_us;
        near = true;
        if (maq_replay_stream(d->t, &row[i].op) == maq_replay_stream(d->t, &like->op))
            high = row[twin].op.start_us;
    }
    double start = like->op.start_us + shift;
    if (start > low && start < high)
        return start;
    return isfinite(low) && isfinite(high) ? (low + high) / 2 : isfinite(low) ? low + 1 : high - 1;
}

static enum maq_status complete(struct mender *d, uint32_t of, uint32_t kind, uint32_t usual)
{
    const struct section *own = &d->section[of], *reference;
    struct beside b;
    uint32_t *scratch = MAQ_ARENA_NEW(d->arena, uint32_t, d->n_before), late = 0;
    if (!scratch)
        return MAQ_NO_MEMORY;
    if (usual - find_rows(d, own, kind, false, scratch) > MOST_MISSING)
        return MAQ_OK;
    reference = find_reference(d, of, kind, usual, scratch);
    if (!reference)
        return MAQ_OK;
    if (!make_beside(&b, d, own, reference))
        return MAQ_NO_MEMORY;
    find_twins(&b, d);
    uint32_t n_off = find_rows(d, own, kind, true, scratch);
    for (uint32_t i = reference->first; i < reference->first + reference->n; i++) {
        const struct maq_replay_op like = d->rows->row[i].op;
        if (kind_of(d, &like) != kind || b.twin[i - reference->first] != NONE)
            continue;
        double start = place(&b, d, i);
        if (late < n_off)
            d->rows->row[scratch[late++]].op.start_us = start;
        else
            MAQ_TRY(put_in(d, own, &like, start));
    }
    return MAQ_OK;
}

static enum maq_status complete_all(struct mender *d)
{
    uint32_t *count = MAQ_ARENA_NEW(d->arena, uint32_t, d->kinds);
    if (!count)
        return MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < d->n_sections; i++) {
        const struct section *s = &d->section[i];
        count_kinds(d, s, count);
        for (uint32_t k = s->first; k < s->first + s->n; k++)
            if (d->rows->row[k].off_clock && count[kind_of(d, &d->rows->row[k].op)] > 0)
                count[kind_of(d, &d->rows->row[k].op)]--;
        for (uint32_t k = 0; k < d->kinds; k++) {
            uint32_t usual = usual_count(d, s->worker, k);
            if (count[k] >= usual)
                continue;
            struct maq_arena_mark mark = maq_arena_mark(d->arena);
            MAQ_TRY(complete(d, i, k, usual));
            maq_arena_reset(d->arena, mark);
        }
    }
    return MAQ_OK;
}

/* A rank that is nowhere has no part in the replay: nobody waits for it. */
static enum maq_status find_absent(struct mender *d)
{
    uint32_t workers = d->t->dp * d->t->pp;
    bool *seen = MAQ_ARENA_NEW(d->arena, bool, workers);
    if (!seen)
        return MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < d->rows->n; i++)
        seen[d->rows->row[i].op.worker] = true;
    for (uint32_t w = 0; w < workers; w++)
        if (!seen[w])
            MAQ_TRY(maq_mend(d->m, MAQ_MEND_RANK, 0, MAQ_CODE_RISK_TRACE,
                             "%s: nothing of data-parallel rank %u, stage %u", d->m->path, w / d->t->pp, w % d->t->pp));
    return MAQ_OK;
}

enum maq_status maq_replay_mend(struct maq_replay_rows *rows, const struct maq_replay_trace *t, struct maq_mending *m,
                                struct maq_arena *arena)
{
    struct mender d = {.rows = rows, .t = t, .m = m, .arena = arena, .kinds = t->n_types * (t->chunks + 1u)};
    if (rows->n == 0)
        return MAQ_OK;
    sort(rows);
    MAQ_TRY(drop_repeated(&d));
    MAQ_TRY(find_absent(&d));
    MAQ_TRY(check_clocks(&d));
    MAQ_TRY(maq_replay_mend_durations(rows, t, m, arena));
    d.n_before = rows->n;
    if ((uint64_t)t->pp * d.kinds <= MOST_KINDS) {
        MAQ_TRY(find_sections(&d));
        MAQ_TRY(find_usual(&d));
        MAQ_TRY(complete_all(&d));
    }
    sort(rows);
    return MAQ_OK;
}
