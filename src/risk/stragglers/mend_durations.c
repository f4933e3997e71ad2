/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mend_durations.c - durations below zero, since recorders subtract clocks of two ranks and a short transfer comes out negative; and of
 * zero, where hardly any other of their kind is. What others recorded of the same comes first:
 *
 *   transfer      what the other side recorded of it: the n-th send of a stage is the n-th reception of its neighbour
 *   collective    the median of what the other members recorded
 *   other         the median of its kind on its worker, of its kind on any where that has none
 *
 * and no longer than until the next on its stream begins. Of the smaller of the two published traces a transfer's sides differ by 50 us in
 * the median, where a transfer differs from the median of its kind by 150; of a reduction of gradients it is 13 us and 2.5 ms.
 */
#include "risk/stragglers/mend_durations.h"

#include <math.h>

#include "base/check.h"
#include "base/stat/summary.h"
#include "risk/codes.h"

/* A share of a kind's durations that are zero because they were not recorded; where more are, it takes no time. */
#define MOST_ZEROS 0.05

struct job {
    struct maq_replay_rows *rows;
    const struct maq_replay_trace *t;
    struct maq_mending *m;
    double *value;  /* [rows]: scratch */
    bool *mended;   /* [rows] */
    uint32_t *step; /* [rows + 1] the first row of the step that a row is of */
};

int maq_replay_stream(const struct maq_replay_trace *t, const struct maq_replay_op *op)
{
    enum maq_replay_role role = t->type[op->type].role;
    switch (role) {
    case MAQ_REPLAY_FORWARD_SEND:
    case MAQ_REPLAY_FORWARD_RECV:
    case MAQ_REPLAY_BACKWARD_SEND:
    case MAQ_REPLAY_BACKWARD_RECV:
        return 1 + (int)(role - MAQ_REPLAY_FORWARD_SEND);
    case MAQ_REPLAY_GATHER:
    case MAQ_REPLAY_REDUCE:
    case MAQ_REPLAY_EMBEDDING:
    case MAQ_REPLAY_LOCAL:
    case MAQ_REPLAY_NORM:
        return 5;
    case MAQ_REPLAY_FORWARD:
    case MAQ_REPLAY_BACKWARD:
    case MAQ_REPLAY_UPDATE:
    case MAQ_REPLAY_OTHER:
        break;
    }
    return 0;
}

/* --- what others recorded of the same --- */

static enum maq_replay_role role_of(const struct job *d, uint32_t row)
{
    return d->t->type[d->rows->row[row].op.type].role;
}

/* The `rank`-th of a role on a worker in a step, which has `all` of them; MAQ_REPLAY_NONE where it has not as many, or does not know. */
static uint32_t nth(const struct job *d, uint32_t step, uint32_t worker, enum maq_replay_role role, uint32_t rank,
                    uint32_t all)
{
    uint32_t found = MAQ_REPLAY_NONE, n = 0;
    for (uint32_t i = d->step[step]; i < d->rows->n && d->step[i] == d->step[step]; i++) {
        const struct maq_replay_row *row = &d->rows->row[i];
        if (row->op.worker != worker || role_of(d, i) != role)
            continue;
        if (row->off_clock)
            return MAQ_REPLAY_NONE;
        found = n++ == rank ? i : found;
    }
    return n == all && found != MAQ_REPLAY_NONE && !d->mended[found] && d->rows->row[found].op.dur_us > 0
               ? found
               : MAQ_REPLAY_NONE;
}

/* The worker that takes part in what `worker` does of a role as the `k`-th of its members, and what it does; false behind the last. */
static bool member(const struct job *d, uint32_t worker, enum maq_replay_role role, uint32_t k, uint32_t *other,
                   enum maq_replay_role *does)
{
    const uint32_t pp = d->t->pp, dp = d->t->dp, stage = worker % pp, first = worker - stage;
    bool up = role == MAQ_REPLAY_FORWARD_SEND || role == MAQ_REPLAY_BACKWARD_RECV; /* with the stage behind */
    *does = role;
    switch (role) {
    case MAQ_REPLAY_FORWARD_SEND:
    case MAQ_REPLAY_FORWARD_RECV:
        *does = up ? MAQ_REPLAY_FORWARD_RECV : MAQ_REPLAY_FORWARD_SEND;
        *other = first + (stage + (up ? 1 : pp - 1)) % pp;
        return k == 0;
    case MAQ_REPLAY_BACKWARD_SEND:
    case MAQ_REPLAY_BACKWARD_RECV:
        *does = up ? MAQ_REPLAY_BACKWARD_SEND : MAQ_REPLAY_BACKWARD_RECV;
        *other = first + (stage + (up ? 1 : pp - 1)) % pp;
        return k == 0;
    case MAQ_REPLAY_GATHER:
    case MAQ_REPLAY_REDUCE:
        *other = k * pp + stage;
        return k < dp;
    case MAQ_REPLAY_EMBEDDING:
        *other = first + (stage == 0 ? pp - 1 : 0);
        return k == 0;
    case MAQ_REPLAY_NORM:
        *other = k;
        return k < pp * dp;
    case MAQ_REPLAY_FORWARD:
    case MAQ_REPLAY_BACKWARD:
    case MAQ_REPLAY_LOCAL:
    case MAQ_REPLAY_UPDATE:
    case MAQ_REPLAY_OTHER:
        break;
    }
    return false;
}

/* The median of what the others recorded; 0 where nobody did, or it is not certain which of theirs it is. */
static double shared_duration(const struct job *d, uint32_t row)
{
    const struct maq_replay_op *of = &d->rows->row[row].op;
    const enum maq_replay_role role = role_of(d, row);
    uint32_t rank = 0, all = 0, n = 0, other;
    enum maq_replay_role does;
    for (uint32_t i = d->step[row]; i < d->rows->n && d->step[i] == d->step[row]; i++)
        if (d->rows->row[i].op.worker == of->worker && role_of(d, i) == role) {
            if (d->rows->row[i].off_clock)
                return 0;
            rank += i < row;
            all++;
        }
    for (uint32_t k = 0; member(d, of->worker, role, k, &other, &does); k++) {
        uint32_t twin = other == of->worker ? MAQ_REPLAY_NONE : nth(d, row, other, does, rank, all);
        if (twin != MAQ_REPLAY_NONE)
            d->value[n++] = d->rows->row[twin].op.dur_us;
    }
    return n > 0 ? maq_quantile(d->value, n, 0.5) : 0;
}

/* --- what is usual --- */

static bool alike(const struct maq_replay_op *a, const struct maq_replay_op *b)
{
    return a->type == b->type && a->chunk == b->chunk;
}

/* Whether durations of zero are rare among those of a kind: then they were not recorded. */
static void find_rare_zeros(const struct job *d, bool *rare)
{
    uint32_t zeros[MAQ_REPLAY_TYPES] = {0}, all[MAQ_REPLAY_TYPES] = {0};
    for (uint32_t i = 0; i < d->rows->n; i++) {
        all[d->rows->row[i].op.type]++;
        zeros[d->rows->row[i].op.type] += d->rows->row[i].op.dur_us == 0;
    }
    for (uint32_t type = 0; type < d->t->n_types; type++)
        rare[type] = zeros[type] > 0 && zeros[type] <= MOST_ZEROS * all[type];
}

/* Of the same kind and worker; of the same kind on any where that has none. */
static double usual_duration(const struct job *d, const struct maq_replay_op *of)
{
    for (int same = 1; same >= 0; same--) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < d->rows->n; i++) {
            const struct maq_replay_op *op = &d->rows->row[i].op;
            if (alike(op, of) && op->dur_us > 0 && (!same || op->worker == of->worker))
                d->value[n++] = op->dur_us;
        }
        if (n > 0)
            return maq_quantile(d->value, n, 0.5);
    }
    return 0;
}

/* From its start to that of the next on its stream; rows are in order. */
static double time_left(const struct job *d, uint32_t row)
{
    const struct maq_replay_op *of = &d->rows->row[row].op;
    for (uint32_t i = row + 1; i < d->rows->n; i++) {
        const struct maq_replay_op *op = &d->rows->row[i].op;
        if (op->step != of->step || op->worker != of->worker)
            break;
        if (maq_replay_stream(d->t, op) == maq_replay_stream(d->t, of) && !d->rows->row[i].off_clock)
            return op->start_us - of->start_us;
    }
    return (double)INFINITY;
}

/* --- mending --- */

static enum maq_status mend(struct job *d, uint32_t i, const bool *rare)
{
    struct maq_replay_row *row = &d->rows->row[i];
    const double was = row->op.dur_us;
    if (was == 0 && rare[row->op.type])
        MAQ_TRY(
            maq_mend(d->m, MAQ_MEND_UNTIMED, row->at, MAQ_CODE_RISK_ROW, "%s:%u: no duration", d->m->path, row->at));
    double lasts = shared_duration(d, i);
    if (lasts <= 0)
        lasts = usual_duration(d, &row->op);
    row->op.dur_us = fmin(lasts, row->off_clock ? (double)INFINITY : time_left(d, i));
    d->m->moved_s += fmax(row->op.dur_us, -was) * 1e-6;
    return MAQ_OK;
}

enum maq_status maq_replay_mend_durations(struct maq_replay_rows *rows, const struct maq_replay_trace *t,
                                          struct maq_mending *m, struct maq_arena *arena)
{
    struct job d = {.rows = rows,
                    .t = t,
                    .m = m,
                    .value = MAQ_ARENA_NEW(arena, double, rows->n + (size_t)t->pp * t->dp),
                    .mended = MAQ_ARENA_NEW(arena, bool, rows->n),
                    .step = MAQ_ARENA_NEW(arena, uint32_t, rows->n + 1)};
    bool rare[MAQ_REPLAY_TYPES];
    if (!d.value || !d.mended || !d.step)
        return MAQ_NO_MEMORY;
    find_rare_zeros(&d, rare);
    for (uint32_t i = 0; i < rows->n; i++) {
        const struct maq_replay_op *op = &rows->row[i].op;
        d.step[i] = i > 0 && op->step == rows->row[i - 1].op.step ? d.step[i - 1] : i;
        d.mended[i] = op->dur_us < 0 || (op->dur_us == 0 && rare[op->type]);
    }
    for (uint32_t i = 0; i < rows->n; i++) {
        if (d.mended[i])
            MAQ_TRY(mend(&d, i, rare));
        m->recorded_s += rows->row[i].op.dur_us * 1e-6;
    }
    return MAQ_OK;
}
