/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.c - positions on the track in closed form: whole intervals by division, with a fast path where all
 * intervals are equal. See progress.h.
 */
#include "risk/run/progress.h"

#include <math.h>

/* Time that work takes at a speed, and the other way round. */
static int64_t time_of(struct maq_speed f, int64_t work)
{
    return f.num == f.den ? work : llround(fmin((double)work * (double)f.den / (double)f.num, 8e18));
}

static int64_t work_of(struct maq_speed f, int64_t time)
{
    return f.num == f.den ? time : llround((double)time * (double)f.num / (double)f.den);
}

/* One level, no evaluations, full speed: all intervals are alike, and everything is one division. Most runs are of this kind. */
static bool alike(const struct maq_track *t, struct maq_speed f)
{
    return t->n_levels == 1 && t->eval_every == 0 && f.num == f.den;
}

static int64_t saves(const struct maq_track *t, int64_t k)
{
    int64_t sum = 0, below = k;
    if (t->n_levels == 1)
        return t->save[0] * k;
    for (int l = 0; l < t->n_levels; l++) {
        int64_t above = l + 1 < t->n_levels ? k / t->every[l + 1] : 0;
        sum += t->save[l] * (below - above);
        below = above;
    }
    return sum;
}

/* Evaluations in front of work position x. */
static int64_t evals(const struct maq_track *t, int64_t x)
{
    return t->eval_every > 0 && x > 0 ? (x - 1) / t->eval_every : 0;
}

static int64_t saved(const struct maq_track *t, struct maq_speed f, int64_t k)
{
    if (alike(t, f))
        return k * (t->interval + t->save[0]);
    return k * time_of(f, t->interval) + saves(t, k) + t->eval_pause * evals(t, k * t->interval);
}

int64_t maq_track_saved(const struct maq_track *t, struct maq_speed f, int64_t k)
{
    return saved(t, f, k);
}

int64_t maq_track_time(const struct maq_track *t, struct maq_speed f, struct maq_track_place at)
{
    return saved(t, f, at.k) + time_of(f, at.work) + at.paused;
}

/* What is left behind the last whole interval ends with a save of its own. */
int64_t maq_track_end(const struct maq_track *t, struct maq_speed f)
{
    int64_t k = t->end / t->interval, rest = t->end - k * t->interval;
    if (rest == 0)
        return maq_track_saved(t, f, k);
    int64_t inside = evals(t, t->end) - evals(t, k * t->interval), last = k > 0 || t->save[0] > 0 ? t->save[0] : 0;
    return maq_track_saved(t, f, k) + time_of(f, rest) + t->eval_pause * inside + last;
}

struct maq_track_sums maq_track_end_sums(const struct maq_track *t)
{
    const struct maq_speed full = {1, 1};
    int64_t eval = t->eval_pause * evals(t, t->end);
    return (struct maq_track_sums){t->end, maq_track_end(t, full) - t->end - eval, eval};
}

/* Inside an interval, `left` after its start. */
static struct maq_track_place inside(const struct maq_track *t, struct maq_speed f, int64_t k, int64_t left)
{
    int64_t from = k * t->interval, paused = 0;
    if (t->eval_every > 0)
        for (int64_t x = (evals(t, from) + 1) * t->eval_every; x < from + t->interval && x < t->end;
             x += t->eval_every) {
            int64_t begins = time_of(f, x - from) + paused;
            if (left < begins)
                break;
            if (left < begins + t->eval_pause)
                return (struct maq_track_place){k, x - from, left - time_of(f, x - from)};
            paused += t->eval_pause;
        }
    int64_t work = work_of(f, left - paused);
    if (work < t->interval)
        return (struct maq_track_place){k, work, paused};
    return (struct maq_track_place){k, t->interval, left - time_of(f, t->interval)};
}

struct maq_track_place maq_track_at(const struct maq_track *t, struct maq_speed f, int64_t time)
{
    if (alike(t, f)) {
        int64_t each = t->interval + t->save[0], n = time / each, left = time - n * each;
        int64_t work = left < t->interval ? left : t->interval;
        return (struct maq_track_place){n, work, left - work};
    }
    int64_t cycle = t->n_levels > 1 ? t->every[t->n_levels - 1] : 1;
    double mean = (double)saved(t, f, cycle) / (double)cycle;
    int64_t k = (int64_t)((double)time / mean), from = saved(t, f, k);
    while (from > time)
        from = saved(t, f, --k);
    for (int64_t next; (next = saved(t, f, k + 1)) <= time; k++)
        from = next;
    return inside(t, f, k, time - from);
}

struct maq_track_sums maq_track_sums(const struct maq_track *t, struct maq_track_place at)
{
    int64_t from = at.k * t->interval;
    if (t->eval_every == 0)
        return (struct maq_track_sums){from + at.work, saves(t, at.k) + at.paused, 0};
    int64_t in = evals(t, from + t->interval) - evals(t, from);
    int64_t eval = at.work < t->interval ? at.paused : in * t->eval_pause;
    return (struct maq_track_sums){from + at.work, saves(t, at.k) + at.paused - eval,
                                   t->eval_pause * evals(t, from) + eval};
}

int maq_track_level(const struct maq_track *t, int64_t k)
{
    int l = 0;
    while (l + 1 < t->n_levels && k % t->every[l + 1] == 0)
        l++;
    return l;
}
