/* SPDX-License-Identifier: Apache-2.0 */
/* candidate_trial.c - a candidate is simulated: first whether it would be better than the best so far, then by how much. */
#include <math.h>

#include "base/check.h"
#include "planner/serve/spare_replicas.h"

#define ALONE 0.02 /* requests that are under way in the mean, when they are practically alone */
#define FIRST_GUESS 0.9
#define NEXT_STEP 1.03

double maq_serve_slack(const struct maq_slo_outcome *o)
{
    double most = 0;
    for (uint32_t i = 0; i < o->slo.n; i++)
        most = fmax(most, o->value_s[i] / o->slo.at[i].limit.most_s);
    return most;
}

/* Of all requests, or of the first. */
static struct maq_rate_trial new_trial(const struct maq_serve_searching *s, const struct maq_fleet *fleet, bool all,
                                       struct maq_requests *room)
{
    *room = *s->stream;
    room->n = all ? room->n : s->first;
    return (struct maq_rate_trial){
        .fleet = fleet, .slo = all ? s->opts->slo : &s->lenient, .draw = room, .tolerance = MAQ_SERVE_SEARCH_TOLERANCE};
}

/* What a trial has found, in the candidate. */
static void keep(struct maq_serve_candidate *c, const struct maq_rate_trial *t, uint32_t replicas, uint32_t in_all,
                 double carried)
{
    c->runs += t->runs;
    if (t->low > 0) {
        c->verdict = MAQ_SERVE_VERDICT_BEATEN;
        c->replicas = replicas;
        c->with_spares = in_all;
        c->rate = carried;
        c->ttft_s = t->ttft_s;
        c->tpot_s = t->tpot_s;
        c->e2el_s = t->e2el_s;
        c->slack = maq_serve_slack(&t->met);
    } else {
        c->verdict = MAQ_SERVE_VERDICT_MISSED;
        c->missed = t->missed;
        c->missed_rate = t->high;
        c->missed_overloaded = t->overloaded;
    }
}

/* ---- as much as can be carried ---- */

/* About how much the first requests say that it carries, where there is nothing to compare with; 0: it misses a bound however slowly they come. */
static bool first_guess(double *out, struct maq_rate_trial *t, const struct maq_serve_candidate *c)
{
    double guess = c->likely_per_s * FIRST_GUESS, alone = fmin(ALONE / c->stay_s, guess / 2);
    bool ok = maq_rate_try(t, guess, NULL);
    if (ok && t->low <= 0)
        ok = maq_rate_try(t, alone, NULL);
    if (ok && t->low > 0)
        ok = maq_rate_narrow(t, isinf(t->high) ? t->low * NEXT_STEP : sqrt(t->low * t->high), isinf(t->high) != 0);
    *out = t->low;
    return ok;
}

/* At a rate that the first requests allow, all of them; from there on, how far it goes. */
static bool look_closer(struct maq_rate_trial *t, double rate, bool wins)
{
    bool ok = maq_rate_try(t, rate, NULL);
    if (!ok || (wins && t->low <= 0))
        return ok;
    return maq_rate_narrow(t, t->low > 0 ? rate * NEXT_STEP : rate / NEXT_STEP, true);
}

/* One replica; the others on its node group carry as much. */
static enum maq_status most(const struct maq_serve_searching *s, struct maq_serve_candidate *c)
{
    const struct maq_fleet_member member = {.job = c->job, .options = &c->options, .replicas = 1};
    const struct maq_fleet fleet = {.members = &member, .n_members = 1, .router = s->opts->router};
    struct maq_requests few, all;
    struct maq_rate_trial first = new_trial(s, &fleet, false, &few), t = new_trial(s, &fleet, true, &all);
    uint32_t room = maq_serve_group_devices(c) / c->gpus, there = c->counted_on;
    bool wins = s->best != UINT32_MAX, ok = true;
    double rate = s->best_carried / there * (1 + MAQ_SERVE_SEARCH_TOLERANCE);
    enum maq_status status = maq_rate_trial_begin(&first, NULL);
    if (status == MAQ_OK)
        status = maq_rate_trial_begin(&t, NULL);
    if (status == MAQ_OK)
        ok = wins ? maq_rate_try(&first, rate, NULL) : first_guess(&rate, &first, c);
    bool goes_on = status == MAQ_OK && ok && first.low > 0;
    if (goes_on)
        ok = look_closer(&t, rate, wins);
    if (status == MAQ_OK && ok)
        keep(c, goes_on ? &t : &first, there, room, t.low * there);
    if (status == MAQ_OK && ok && !goes_on && !wins)
        c->verdict = MAQ_SERVE_VERDICT_SLOW;
    c->runs += goes_on ? first.runs : 0;
    c->missed_replicas = 1;
    maq_rate_trial_end(&first);
    maq_rate_trial_end(&t);
    return status != MAQ_OK ? status : ok ? MAQ_OK : first.status != MAQ_OK ? first.status : t.status;
}

/* ---- a rate with as few as possible ---- */

enum maq_status maq_serve_holds(struct maq_rate_trial *t, const struct maq_serve_searching *s,
                                const struct maq_fleet_member *members, uint32_t n, double rate, bool all)
{
    const struct maq_fleet fleet = {.members = members, .n_members = n, .router = s->opts->router};
    struct maq_requests room;
    *t = new_trial(s, &fleet, all, &room);
    MAQ_TRY(maq_rate_trial_begin(t, NULL));
    bool ok = maq_rate_try(t, rate, NULL);
    maq_rate_trial_end(t);
    t->fleet = NULL;
    t->draw = NULL;
    return ok ? MAQ_OK : t->status;
}

/* Of so many replicas: what is found is kept, unless it is a miss of one that holds with more. */
static enum maq_status ask(bool *held, const struct maq_serve_searching *s, struct maq_serve_candidate *c,
                           uint32_t replicas, bool all)
{
    const struct maq_fleet_member member = {.job = c->job, .options = &c->options, .replicas = replicas};
    struct maq_rate_trial t;
    uint32_t in_all;
    MAQ_TRY(maq_serve_with_spares(&in_all, s, c, replicas, maq_serve_by_itself));
    MAQ_TRY(maq_serve_holds(&t, s, &member, 1, s->rate, all));
    *held = t.low > 0;
    if (*held && !all) {
        c->first_slack = maq_serve_slack(&t.met);
        c->runs += t.runs;
    } else if (*held || c->rate <= 0)
        keep(c, &t, replicas, in_all, s->rate);
    else
        c->runs += t.runs;
    if (!*held)
        c->missed_replicas = replicas;
    return MAQ_OK;
}

static enum maq_status holds(bool *held, const struct maq_serve_searching *s, struct maq_serve_candidate *c,
                             uint32_t replicas)
{
    if (s->first < s->stream->n) {
        MAQ_TRY(ask(held, s, c, replicas, false));
        if (!*held)
            return MAQ_OK;
    }
    return ask(held, s, c, replicas, true);
}

/* The most replicas of use, asked first: as many as there is room for, or as would be as good as the best. *tied: they are as many GPUs, and the
 * first requests say that they are no further from their bounds; the others are not asked. */
static enum maq_status as_many(bool *held, bool *tied, const struct maq_serve_searching *s,
                               struct maq_serve_candidate *c, uint32_t replicas)
{
    uint32_t in_all;
    MAQ_TRY(maq_serve_with_spares(&in_all, s, c, replicas, maq_serve_by_itself));
    bool even = s->best != UINT32_MAX && (double)in_all * c->gpus >= s->best_gpus;
    if (!even || s->opts->exhaustive || s->first >= s->stream->n)
        return holds(held, s, c, replicas);
    MAQ_TRY(ask(held, s, c, replicas, false));
    *tied = *held && c->first_slack >= s->best_first_slack;
    return *held && !*tied ? ask(held, s, c, replicas, true) : MAQ_OK;
}

static enum maq_status fewest(const struct maq_serve_searching *s, struct maq_serve_candidate *c)
{
    uint32_t room = c->counted_on, likely = (uint32_t)fmin(ceil(s->rate / c->likely_per_s), room), high = room,
             low = s->opts->exhaustive ? 0 : (uint32_t)fmin(s->rate / (c->most_per_s * MAQ_SERVE_SEARCH_MARGIN), room);
    const uint32_t most = maq_serve_group_devices(c) / c->gpus;
    bool held = false, tied = false;
    if (s->best != UINT32_MAX)
        MAQ_TRY(maq_serve_counted_on(&high, s, c, (uint32_t)fmin(s->best_gpus / c->gpus, most), maq_serve_by_itself));
    if (high > low)
        MAQ_TRY(as_many(&held, &tied, s, c, high));
    while (held && high - low > 1) { /* low replicas do not do */
        bool fewer;
        uint32_t at = likely > low && likely < high ? likely : low + (high - low) / 2;
        MAQ_TRY(holds(&fewer, s, c, at));
        *(fewer ? &high : &low) = at;
        likely = 0;
    }
    if (tied && c->rate <= 0)
        c->verdict = MAQ_SERVE_VERDICT_TIED;
    return MAQ_OK;
}

enum maq_status maq_serve_look_into(const struct maq_serve_searching *s, struct maq_serve_candidate *c)
{
    return s->rate > 0 ? fewest(s, c) : most(s, c);
}
