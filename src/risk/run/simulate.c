/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simulate.c - one run, from its start to its last save.
 *
 * The run jumps from failure to failure: between two, progress.h knows where it is at any time. A failure sets it back
 * to the last complete save that survives what was lost, and inserts a sequence of phases: detection, waiting for a
 * node, requeue, restart, reading the checkpoint. The convention of the failure clock decides what a failure during a
 * phase does: `restarted`, the sequence begins anew; `paused`, the clock stands still during phases; `queued`, the
 * failure waits until the sequence is over and then has one of its own.
 *
 * A failure that made results wrong before it was noticed sets the run back to a save from before that; older saves are
 * kept.
 *
 * Failures come for all nodes of the job; one that would strike a node that is away is none (thinning).
 */
#include <math.h>

#include "base/stat/special_functions.h"
#include "risk/run/failure_clock.h"
#include "risk/run/model.h"
#include "risk/run/spare_pool.h"

#define NEVER INT64_MAX
#define NO_CAUSE UINT32_MAX
#define MOST_FAILURES 1000000u

struct late_save {
    int64_t k, at; /* counts from then on */
};

struct run {
    const struct maq_run_model *m;
    struct maq_run_outcome *out;
    struct maq_run_tally *tally;
    struct maq_track track; /* of this run: the work is drawn */
    struct maq_run_clock clock;
    struct maq_spare_pool pool;
    uint32_t replica;
    uint64_t index;    /* of the failure that comes next */
    int64_t comes;     /* when it comes, on the failure clock */
    double which;      /* its second number: the cause */
    int64_t t, behind; /* wall clock; wall clock minus the failure clock */
    struct maq_track_place place;
    int64_t kept[3]; /* the last save that counts, by what it must survive */
    struct late_save late[3];
    int64_t active;          /* replicas */
    int64_t missing;         /* nodes */
    int64_t lemons;          /* among the nodes of the job */
    struct maq_heap rejoins; /* replicas on their way back */
    int64_t waiting;         /* replicas without a node */
    uint32_t cause;
    uint64_t extra; /* numbers drawn beyond those that belong to a failure */
};

/* --- numbers --- */

static int64_t draw_delay(const struct maq_run_delay *d, double u)
{
    if (d->sigma == 0)
        return maq_run_ns(d->median_ns);
    double length = d->median_ns * exp(d->sigma * maq_normal_quantile(u));
    return maq_run_ns(length < 1e18 ? length : 1e18);
}

/* Number j of the current failure, j < 6; and any number of further ones. */
static double number(const struct run *r, uint32_t j)
{
    return maq_rng_at(r->m->seed, MAQ_RNG_REPAIR, r->replica, 6 * (r->index - 1) + j);
}

static double further(struct run *r)
{
    return maq_rng_at(r->m->seed, MAQ_RNG_CHECKPOINT, r->replica, r->extra++);
}

static void next_failure(struct run *r)
{
    uint32_t w[4];
    maq_rng_block(w, r->m->seed, MAQ_RNG_FAILURE, r->replica, r->index++);
    r->which = maq_rng_unit(w[2], w[3]);
    maq_run_clock_draw(&r->clock, r->lemons, maq_rng_unit(w[0], w[1]));
    r->comes = r->clock.next < 8e18 ? maq_run_ns(r->clock.next) : NEVER;
}

static inline int64_t failure_at(const struct run *r)
{
    if (r->comes == NEVER)
        return NEVER;
    int64_t at = r->comes + r->behind;
    return at > r->t ? at : r->t;
}

/* The failure is over: the next one, from there. */
static void pass_failure(struct run *r)
{
    r->clock.now = r->clock.next;
    if (r->m->failures->shape != 1)
        maq_run_clock_renew(&r->clock, further(r));
    next_failure(r);
}

/* Does the failure that has come strike a node that is there? */
static bool strikes(struct run *r)
{
    const struct maq_run_model *m = r->m;
    double there = m->recovery == MAQ_RECOVERY_RESTART ? (double)(m->nodes - r->missing) / (double)m->nodes
                                                       : (double)r->active / (double)m->replicas;
    return there >= 1 || further(r) < there;
}

static bool gives_up(const struct run *r)
{
    return r->t > r->m->most_ns || r->out->failures > MOST_FAILURES;
}

/* --- time --- */

static inline void spend(struct run *r, enum maq_run_bucket bucket, int64_t length)
{
    r->out->bucket[bucket] += length;
    r->t += length;
    if (r->cause != NO_CAUSE)
        r->tally[r->cause].lost += length;
    if (r->m->clock == MAQ_CLOCK_PAUSED)
        r->behind += length;
}

/* A phase into which a failure falls: false when it strikes. */
static bool struck_phase(struct run *r, enum maq_run_bucket bucket, int64_t length)
{
    for (int64_t at; (at = failure_at(r)) < r->t + length;) {
        int64_t part = at - r->t;
        spend(r, bucket, part);
        length -= part;
        if (strikes(r))
            return false;
        pass_failure(r);
    }
    spend(r, bucket, length);
    return true;
}

/* False when a failure struck before the phase was over. */
static inline bool phase(struct run *r, enum maq_run_bucket bucket, int64_t length)
{
    if (r->m->clock == MAQ_CLOCK_RESTARTED && failure_at(r) < r->t + length)
        return struck_phase(r, bucket, length);
    spend(r, bucket, length);
    return true;
}

/* Until the job misses at most `may` nodes. */
static bool wait_for_nodes(struct run *r, int64_t may)
{
    while (r->missing > may) {
        int64_t until = r->m->clock == MAQ_CLOCK_RESTARTED ? failure_at(r) : NEVER / 4, need = r->missing - may,
                before = need;
        int64_t at = maq_spare_pool_take(&r->pool, r->t, until, &need, &r->lemons,
                                         r->m->failures->lemon_share > 0 ? further(r) : 0.5);
        r->missing -= before - need;
        spend(r, MAQ_RUN_NODE_WAIT, (at < until ? at : until) - r->t);
        if (r->missing <= may)
            return true;
        if (gives_up(r) || strikes(r))
            return false;
        pass_failure(r);
    }
    return true;
}

/* --- saves --- */

/* Saves that are complete at the end of a failure-free interval that began at `from`. */
static void note_saves(struct run *r, struct maq_speed f, struct maq_track_place from)
{
    int64_t now = maq_track_time(&r->track, f, r->place);
    for (int s = 0; s < 3; s++) {
        if (s > 0 && r->m->lowest[s] == r->m->lowest[s - 1]) {
            r->kept[s] = r->kept[s - 1];
            r->late[s] = r->late[s - 1];
            continue;
        }
        int64_t every = r->track.every[r->m->lowest[s]], k = r->place.k / every * every;
        if (r->late[s].k > r->kept[s] && r->late[s].at <= r->t)
            r->kept[s] = r->late[s].k;
        for (; k > from.k; k -= every) {
            int64_t counts = maq_track_saved(&r->track, f, k) + r->track.persist[maq_track_level(&r->track, k)];
            if (counts <= now)
                break;
            r->late[s] = (struct late_save){k, r->t + counts - now};
        }
        if (k > from.k && k > r->kept[s])
            r->kept[s] = k;
    }
}

/* Back to the last save that survives; where wrong results were noticed so much work after they began, to the last one before. */
static void fall_back(struct run *r, int severity, int64_t wrong)
{
    int64_t k = r->kept[severity], done = r->place.k * r->track.interval + r->place.work;
    if (wrong > 0) {
        int64_t every = r->track.every[r->m->lowest[severity]];
        int64_t right = done > wrong ? (done - wrong) / r->track.interval / every * every : 0;
        k = right < k ? right : k;
    }
    int64_t lost = done - k * r->track.interval;
    r->out->bucket[MAQ_RUN_PRODUCTIVE] -= lost;
    r->out->bucket[MAQ_RUN_WASTED] += lost;
    r->tally[r->cause].lost += lost;
    r->place = (struct maq_track_place){k, 0, 0};
    for (int s = 0; s < 3; s++) {
        r->kept[s] = r->kept[s] < k ? r->kept[s] : k;
        r->late[s] = (struct late_save){0, 0};
    }
}

/* --- failures --- */

/* Nodes leave for repair, which begins when the failure is found. */
static int64_t lose_nodes(struct run *r, const struct maq_run_cause_model *cause, int64_t detection)
{
    const struct maq_run_model *m = r->m;
    const struct maq_failures *f = m->failures;
    if (!cause->loses_node)
        return 0;
    int64_t n = f->together_share > 0 && further(r) < f->together_share ? m->together_nodes : 1;
    n = n < m->nodes - r->missing ? n : m->nodes - r->missing;
    for (int64_t i = 0; i < n; i++) {
        double weight = f->lemon_times * (double)r->lemons;
        bool lemon = r->lemons > 0 && further(r) * ((double)(m->nodes - r->missing - r->lemons) + weight) < weight;
        r->lemons -= lemon;
        bool stays = lemon && !(f->lemon_strikes > 0 && further(r) * f->lemon_strikes < 1);
        int64_t repair = draw_delay(&cause->repair, i > 0 ? further(r) : cause->repair.sigma > 0 ? number(r, 3) : 0.5);
        maq_spare_pool_lose(&r->pool, r->t + detection + repair, stays);
        r->missing++;
    }
    r->out->lost += (uint32_t)n;
    return n;
}

static int64_t delay(const struct run *r, const struct maq_run_delay *d, uint32_t j)
{
    return draw_delay(d, d->sigma > 0 ? number(r, j) : 0.5);
}

/* What one failure takes, drawn when it strikes. */
struct blow {
    int64_t detection, requeue, start, lost, wrong;
    int severity;
};

/* How many replicas so many nodes can run, and how many nodes may be missing for so many replicas. */
static int64_t replicas_on(const struct maq_run_model *m, int64_t nodes)
{
    return nodes * m->replicas / m->nodes;
}

static int64_t may_miss(const struct maq_run_model *m, int64_t replicas)
{
    return m->nodes - (replicas * m->nodes + m->replicas - 1) / m->replicas;
}

/* The whole job: nodes, queue, start, checkpoint. False when another failure strikes. */
static bool restart(struct run *r, const struct blow *b)
{
    const struct maq_run_model *m = r->m;
    int64_t may = 0;
    if (!phase(r, MAQ_RUN_DETECTION, b->detection))
        return false;
    if (m->recovery == MAQ_RECOVERY_ELASTIC) { /* spares that are there at once, then the fewest replicas it may have */
        int64_t before = r->missing;
        maq_spare_pool_take(&r->pool, r->t, r->t, &r->missing, &r->lemons,
                            before > 0 && m->failures->lemon_share > 0 ? further(r) : 0.5);
        may = may_miss(m, m->min_replicas);
    }
    if (!wait_for_nodes(r, may))
        return false;
    r->active = replicas_on(m, m->nodes - r->missing);
    return phase(r, MAQ_RUN_REQUEUE, b->requeue) && phase(r, MAQ_RUN_RESTART, b->start) &&
           phase(r, MAQ_RUN_RESTORE, r->place.k > 0 ? m->restore_ns[m->lowest[b->severity]] : 0);
}

/* The step under way is done again; a save or an evaluation under way goes on. */
static void lose_step(struct run *r)
{
    int64_t lost = (r->place.k * r->track.interval + r->place.work) % r->m->step_ns;
    if (r->place.paused > 0 || r->place.work == r->track.interval)
        return;
    lost = lost < r->place.work ? lost : r->place.work;
    r->place.work -= lost;
    r->out->bucket[MAQ_RUN_PRODUCTIVE] -= lost;
    r->out->bucket[MAQ_RUN_WASTED] += lost;
    r->tally[r->cause].lost += lost;
}

/* One replica leaves, the others go on. */
static bool leave(struct run *r, const struct blow *b)
{
    const struct maq_run_model *m = r->m;
    int64_t back = r->t + b->detection + b->requeue + b->start + m->restore_ns[m->lowest[2]],
            others = r->missing - b->lost;
    lose_step(r);
    maq_spare_pool_take(&r->pool, r->t, r->t, &r->missing, &r->lemons, m->failures->lemon_share > 0 ? further(r) : 0.5);
    if (r->missing > others)
        r->waiting++;
    else
        maq_heap_push(&r->rejoins, back);
    r->active--;
    return phase(r, MAQ_RUN_DETECTION, b->detection) && phase(r, MAQ_RUN_RECONFIGURE, m->reconfigure_ns);
}

/* A failure has come and strikes. False when another one strikes before the job goes on. */
static bool fail(struct run *r)
{
    const struct maq_run_model *m = r->m;
    r->cause = maq_run_cause_of(m, r->which);
    const struct maq_run_cause_model *cause = &m->causes[r->cause];
    r->tally[r->cause].count++;
    r->out->failures++;
    struct blow b = {.detection = delay(r, &cause->detection, 0),
                     .requeue = delay(r, &m->requeue, 1),
                     .start = delay(r, &m->restart, 2),
                     .wrong = delay(r, &cause->found_after, 4)};
    b.lost = lose_nodes(r, cause, b.detection);
    b.severity = b.lost == 0 ? 0 : b.lost == 1 ? 1 : 2;
    pass_failure(r);
    /* wrong gradients are in all replicas */
    if (m->recovery == MAQ_RECOVERY_REPLICA && r->active - 1 >= m->min_replicas && b.wrong == 0)
        return leave(r, &b);
    r->rejoins.n = 0;
    r->waiting = 0;
    fall_back(r, b.severity, b.wrong);
    return restart(r, &b);
}

static void failures(struct run *r)
{
    while (!fail(r))
        if (gives_up(r))
            break;
    r->cause = NO_CAUSE;
}

/* --- intervals without failures --- */

/* What ends an interval before a failure does: a node for the next replica (elastic), a replica that is back. */
static int64_t change_at(struct run *r, int64_t until, bool *rejoins)
{
    const struct maq_run_model *m = r->m;
    int64_t need = r->missing;
    *rejoins = false;
    if (m->recovery == MAQ_RECOVERY_RESTART)
        return NEVER;
    if (m->recovery == MAQ_RECOVERY_REPLICA) {
        if (r->rejoins.n > 0 && r->rejoins.at[0] <= until) {
            until = r->rejoins.at[0] > r->t ? r->rejoins.at[0] : r->t;
            *rejoins = true;
        }
        need = need < 1 ? need : 1;
    } else if (need > 0) {
        need -= may_miss(m, r->active + 1);
    }
    if (need > 0) {
        int64_t left = need;
        int64_t at = maq_spare_pool_take(&r->pool, r->t, until, &left, &r->lemons,
                                         m->failures->lemon_share > 0 ? further(r) : 0.5);
        r->missing -= need - left;
        if (left == 0) {
            *rejoins = false;
            return at;
        }
    }
    return *rejoins ? until : NEVER;
}

static void change(struct run *r, bool rejoins)
{
    const struct maq_run_model *m = r->m;
    bool through;
    if (m->recovery == MAQ_RECOVERY_ELASTIC) {
        r->active = replicas_on(m, m->nodes - r->missing);
        through =
            phase(r, MAQ_RUN_SCALE_UP, m->reconfigure_ns + llround(m->restart.mean_ns) + m->restore_ns[m->lowest[2]]);
    } else if (rejoins) {
        (void)maq_heap_pop(&r->rejoins);
        r->active++;
        through = phase(r, MAQ_RUN_SCALE_UP, m->rejoin_ns);
    } else { /* a node for a replica that waits */
        if (r->waiting == 0)
            return;
        r->waiting--;
        maq_heap_push(&r->rejoins,
                      r->t + llround(m->requeue.mean_ns + m->restart.mean_ns) + m->restore_ns[m->lowest[2]]);
        return;
    }
    if (!through)
        failures(r);
}

static void credit(struct run *r, struct maq_track_sums from, struct maq_track_sums to, int64_t length)
{
    int64_t *b = r->out->bucket, work = to.work - from.work, save = to.save - from.save, eval = to.eval - from.eval;
    b[MAQ_RUN_PRODUCTIVE] += work;
    b[MAQ_RUN_SAVE] += save;
    b[MAQ_RUN_EVALUATION] += eval;
    b[MAQ_RUN_SLICE_DOWN] += length - work - save - eval;
    r->t += length;
}

/* Advances to the end of the run or to the next event; true at the end. */
static bool advance(struct run *r)
{
    struct maq_speed f = {r->active, r->m->replicas};
    if (r->m->recovery == MAQ_RECOVERY_RESTART || r->active == r->m->replicas)
        f = (struct maq_speed){1, 1};
    struct maq_track_place from = r->place;
    int64_t begin = maq_track_time(&r->track, f, from), left = maq_track_end(&r->track, f) - begin, at = failure_at(r);
    bool rejoins, fails = at - r->t < left;
    int64_t stop = fails ? at : r->t + left, changes = change_at(r, stop, &rejoins);
    if (changes < stop || (fails && changes == stop)) {
        fails = false;
        stop = changes;
    } else if (!fails) {
        credit(r, maq_track_sums(&r->track, from), maq_track_end_sums(&r->track), left);
        return true;
    }
    r->place = maq_track_at(&r->track, f, begin + stop - r->t);
    credit(r, maq_track_sums(&r->track, from), maq_track_sums(&r->track, r->place), stop - r->t);
    note_saves(r, f, from);
    if (!fails)
        change(r, rejoins);
    else if (strikes(r))
        failures(r);
    else
        pass_failure(r);
    return false;
}

/* --- the run --- */

/* How many of n nodes are lemons: by inversion, or as a normal number where there are many. */
static int64_t count_lemons(struct run *r, int64_t n)
{
    double p = r->m->failures->lemon_share, mean = (double)n * p, u = further(r);
    if (!(mean > 0))
        return 0;
    if (mean > 200) {
        double x = mean + sqrt(mean * (1 - p)) * maq_normal_quantile(u);
        return x < 0 ? 0 : x > (double)n ? n : llround(x);
    }
    double term = exp((double)n * log1p(-p)), sum = term;
    int64_t k = 0;
    while (sum < u && k < n) {
        term *= (double)(n - k) / (double)(k + 1) * p / (1 - p);
        sum += term;
        k++;
    }
    return k;
}

static void begin(struct run *r)
{
    const struct maq_run_model *m = r->m;
    double work = m->work_ns;
    if (m->sigma > 0)
        work *= exp(m->sigma * maq_normal_quantile(maq_rng_at(m->seed, MAQ_RNG_STATIC, r->replica, 2)));
    if (m->noise > 0)
        work *= fmax(0.1, 1 + m->noise * maq_normal_quantile(maq_rng_at(m->seed, MAQ_RNG_STATIC, r->replica, 3)));
    r->track = m->track;
    r->track.end = llround(work);
    r->active = m->replicas;
    r->lemons = count_lemons(r, m->nodes);
    r->pool.free = m->spares;
    r->pool.lemons = count_lemons(r, m->spares);
    r->pool.other_rate = m->loss_rate * (double)m->shared_nodes;
    r->pool.repair = m->repairs;
    r->pool.n_repairs = m->n_repairs;
    r->pool.rng = maq_rng_of(m->seed, MAQ_RNG_REPAIR, ~r->replica);
    if (r->pool.other_rate > 0)
        r->pool.other_next = llround(fmin(-log(maq_rng_next(&r->pool.rng)) / r->pool.other_rate, 1e18));
    maq_run_clock_init(&r->clock, m, r->replica);
    next_failure(r);
}

bool maq_run_replica(struct maq_run_outcome *out, struct maq_run_tally *tally, const struct maq_run_model *m,
                     uint32_t replica)
{
    struct run r = {.m = m, .out = out, .tally = tally, .replica = replica, .cause = NO_CAUSE};
    *out = (struct maq_run_outcome){0};
    begin(&r);
    if (!phase(&r, MAQ_RUN_STARTUP, draw_delay(&m->startup, maq_rng_at(m->seed, MAQ_RNG_STATIC, replica, 4))))
        failures(&r);
    while (!gives_up(&r) && !advance(&r))
        continue;
    out->wall = r.t;
    out->endless = gives_up(&r);
    bool whole = !r.pool.repairs.failed && !r.rejoins.failed && !r.clock.renewed.failed;
    maq_heap_free(&r.pool.repairs);
    maq_heap_free(&r.rejoins);
    maq_run_clock_fini(&r.clock);
    return whole;
}
