/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data_parallel.c - searches sets of node groups that run data-parallel pipelines side by side: for each group the
 * most micro batches below a limit, by bisection over exact searches of its table, then every choice of numbers of
 * replicas that together do the global batch. See data_parallel.h for the model and its bounds.
 */
#include "planner/mixed/data_parallel.h"

#include <math.h>

#include "base/check.h"
#include "base/threads.h"
#include "plan/mixed/mixed_plan.h"
#include "planner/compose/layer_ranges.h"
#include "planner/mixed/virtual_stages.h"

#define BELOW (1 - 1e-9) /* of a limit: steps that differ by less than this count as equal */
#define NOTHING_YET 1e12 /* s: longer than any step */

/* ---- the table of a group ---- */

struct across {
    const struct maq_chain_costs *costs;
    struct maq_stage_table plain; /* without the other groups */
    uint32_t group, groups;       /* a bit set, its own included */
    double share;                 /* of the gradients that a rank sends: 2 (R - 1) / R */
};

static double sync_s(const struct maq_stage_table *t, const struct maq_stage_part *parts, uint32_t n_parts,
                     double bytes, uint32_t ranks)
{
    const struct across *a = t->costs;
    const struct maq_stage_option *o = &t->options[parts[0].option];
    double slowest = 0;
    for (uint32_t g = 0; g < a->costs->n_pools; g++)
        if (g != a->group && (a->groups >> g & 1))
            slowest = fmax(slowest, maq_pools_between_s(&a->costs->groups, a->group, g, a->share * bytes, o->devices));
    return a->plain.sync_s(&a->plain, parts, n_parts, bytes, ranks) + slowest;
}

/*
 * What any composition of a group takes to reduce with the others, at least. Stage k has b_k bytes on each of d_k devices; the sum
 * of b_k d_k is no less than that of the atoms with the cheapest option each, V, and the sum of d_k no more than the group's D. So
 * some stage has b_k >= V / D, and its replica no fewer senders than the smallest option.
 */
static double least_across_s(const struct across *a)
{
    const struct maq_stage_table *t = &a->plain;
    uint32_t fewest = UINT32_MAX;
    double volume = 0, slowest = 0;
    for (uint32_t o = 0; o < t->n_options; o++)
        fewest = t->options[o].devices < fewest ? t->options[o].devices : fewest;
    for (uint32_t atom = 0; atom < t->n_atoms; atom++) {
        double cheapest = HUGE_VAL;
        for (uint32_t o = 0; o < t->n_options; o++) {
            const double *bytes = t->options[o].sync_bytes;
            double devices = (double)t->options[o].devices * maq_replicas(t, o);
            cheapest = fmin(cheapest, (bytes[atom + 1] - bytes[atom]) * devices);
        }
        volume += cheapest;
    }
    for (uint32_t g = 0; g < a->costs->n_pools; g++)
        if (g != a->group && (a->groups >> g & 1))
            slowest = fmax(slowest, maq_pools_between_s(&a->costs->groups, a->group, g,
                                                        a->share * volume / t->available[a->group] * BELOW, fewest));
    return slowest;
}

static bool build(struct maq_stage_table *out, const void *ctx, uint32_t i, struct maq_arena *arena)
{
    const struct maq_stage_table *table = ctx;
    (void)i;
    (void)arena;
    *out = *table;
    return true;
}

/* The best composition of so many waves that is below the limit. */
static bool best_of(struct maq_mixed_share *out, struct maq_stage_table *t, uint32_t waves, double limit_s,
                    struct maq_arena *arena)
{
    const struct maq_mixed_search_opts opts = {.threads = 1};
    struct maq_compose_limits limits = maq_mixed_run_limits(&opts);
    const struct maq_stage_source source = {1, build, t};
    struct maq_compose_tables_result found;
    struct maq_arena_mark mark = maq_arena_mark(arena);
    t->waves = waves;
    limits.cutoff_s = limit_s;
    bool done = maq_compose_search(&found, &source, &limits, arena) == MAQ_OK;
    out->found = done && found.n > 0;
    if (out->found) {
        out->composition = found.found[0].composition;
        out->waves = waves;
        out->run_s = out->composition.step_s;
        out->pace_s = out->composition.bottleneck_s;
    }
    maq_arena_reset(arena, mark);
    return done;
}

/*
 * How many waves a composition does below the limit. It still fits into memory with fewer waves, and with more of them unless more
 * are in flight.
 */
static uint32_t waves_below(const struct maq_composition *c, uint32_t waves, double limit_s)
{
    double spare = limit_s - c->step_s, more = floor(spare / c->bottleneck_s);
    return more < 0 && -more >= waves ? 0 : (uint32_t)((double)waves + more);
}

/* Bisects between a number of waves that is possible (that of `out`; 0: none) and one that is not. */
static bool bisect(struct maq_mixed_share *out, struct maq_stage_table *t, uint32_t impossible, double limit_s,
                   struct maq_arena *arena)
{
    uint32_t possible = out->found ? out->waves : 0, at = possible + 1;
    while (impossible > possible + 1) {
        struct maq_mixed_share next = {.group = out->group, .wave = out->wave};
        if (!best_of(&next, t, at, limit_s, arena))
            return false;
        if (next.found) {
            *out = next;
            possible = at;
        } else {
            impossible = at;
        }
        at = (possible + impossible) / 2;
    }
    return true;
}

/* Starts from the best composition for the most waves. */
static bool most_from_all(struct maq_mixed_share *out, struct maq_stage_table *t, uint32_t most, double limit_s,
                          struct maq_arena *arena)
{
    struct maq_mixed_share all = {.group = out->group, .wave = out->wave};
    if (!best_of(&all, t, most, HUGE_VAL, arena))
        return false;
    if (!all.found)
        return bisect(out, t, most, limit_s, arena);
    if (all.run_s < limit_s) {
        *out = all;
        return true;
    }
    uint32_t guess = waves_below(&all.composition, most, limit_s * BELOW);
    return (guess == 0 || best_of(out, t, guess, limit_s, arena)) && bisect(out, t, most, limit_s, arena);
}

/* Starts from the best composition for the least waves, which does further ones at its pace. */
static bool most_from_least(struct maq_mixed_share *out, struct maq_stage_table *t, uint32_t least, uint32_t most,
                            double limit_s, struct maq_arena *arena)
{
    if (!best_of(out, t, least, limit_s, arena) || !out->found)
        return !out->found;
    uint32_t more = waves_below(&out->composition, least, limit_s * BELOW);
    more = more < most ? more : most;
    if (more > out->waves) {
        out->run_s += (more - out->waves) * out->pace_s;
        out->waves = more;
    }
    return bisect(out, t, most + 1, limit_s, arena);
}

bool maq_mixed_share_largest(struct maq_mixed_share *out, const struct maq_mixed_run *run,
                             const struct maq_mixed_share_query *ask, struct maq_arena *scratch)
{
    struct maq_chain_costs own = run->costs;
    struct across a = {
        .costs = &run->costs, .group = ask->group, .groups = ask->groups, .share = 2.0 * (ask->ranks - 1) / ask->ranks};
    struct maq_arena_mark mark = maq_arena_mark(scratch);
    *out = (struct maq_mixed_share){.group = ask->group, .wave = ask->wave};
    own.pools_used = 1u << ask->group;
    bool done = maq_chain_costs_table(&a.plain, &own, &run->waves[ask->wave], scratch);
    if (done && a.plain.n_options > 0) {
        struct maq_stage_table t = a.plain;
        uint32_t most = a.plain.waves;
        t.sync_s = sync_s;
        t.costs = &a;
        /* bounded by the work, and by the micro batches of the step */
        double least = maq_wave_bound(&t), spare = fmax(ask->limit_s - least_across_s(&a), 0);
        most = least > 0 && spare / least < most ? (uint32_t)(spare / least) : most;
        if (most > 0 && most >= ask->least)
            done = ask->least > 1 ? most_from_least(out, &t, ask->least, most, ask->limit_s, scratch)
                                  : most_from_all(out, &t, most, ask->limit_s, scratch);
    }
    maq_arena_reset(scratch, mark);
    return done;
}

/* ---- sets of groups ---- */

struct shares {
    struct maq_mixed_run *run;
    const struct maq_mixed_search_island *islands; /* times of the groups alone; NULL: not known */
    uint32_t first, end;                           /* waves of one micro batch */
    uint32_t total;                                /* micro batches of a step */
    uint32_t threads;
    uint32_t n, group[MAQ_STAGE_KINDS], groups; /* a bit set */
    struct maq_mixed_share at[MAQ_STAGE_KINDS], best[MAQ_STAGE_KINDS];
    uint64_t alone[MAQ_STAGE_KINDS]; /* micro batches that a group does at most below the limit */
    uint32_t n_best, best_total;
    double limit_s; /* what a plan has to be below */
};

static uint32_t replicas_of(const struct shares *s, uint32_t wave)
{
    return s->run->waves[wave].replicas;
}

static uint64_t done_by(const struct shares *s, const struct maq_mixed_share *share)
{
    return share->found ? (uint64_t)share->waves * replicas_of(s, share->wave) : 0;
}

/* The step of these compositions when surplus micro batches are taken from the slowest group, wave by wave. */
static double balance(struct shares *s)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < s->n; i++)
        sum += done_by(s, &s->at[i]);
    for (;;) {
        uint32_t slow = 0;
        for (uint32_t i = 1; i < s->n; i++)
            slow = s->at[i].run_s > s->at[slow].run_s ? i : slow;
        struct maq_mixed_share *at = &s->at[slow];
        uint32_t each = replicas_of(s, at->wave);
        if (at->waves == 1 || sum - each < s->total)
            return at->run_s;
        sum -= each;
        at->waves--;
        at->run_s -= at->pace_s;
    }
}

/*
 * A choice of waves for all groups: while they do all micro batches below the limit, the limit is lowered to their
 * step.
 */
static bool improve(struct shares *s, const uint32_t *waves)
{
    uint32_t ranks = 0;
    for (uint32_t i = 0; i < s->n; i++)
        ranks += replicas_of(s, waves[i]);
    for (;;) {
        uint64_t sum = 0;
        for (uint32_t i = 0; i < s->n; i++) {
            const struct maq_mixed_share_query ask = {s->group[i], waves[i], s->groups, ranks, 0, s->limit_s * BELOW};
            if (!maq_mixed_share_largest(&s->at[i], s->run, &ask, &s->run->arena))
                return false;
            if (!s->at[i].found)
                return true;
            sum += done_by(s, &s->at[i]);
        }
        if (sum < s->total)
            return true;
        s->limit_s = balance(s);
        s->n_best = s->n;
        s->best_total = s->total;
        for (uint32_t i = 0; i < s->n; i++)
            s->best[i] = s->at[i];
    }
}

/* A group's list: what it does at most below the limit, by wave, with no more replicas than its own and one of each other group. */
struct listing {
    const struct shares *s;
    uint32_t group;
    uint64_t least; /* micro batches that the other groups leave to it at least */
    uint64_t *most; /* [waves of one micro batch] */
};

static bool list_wave(void *user, uint32_t index, struct maq_arena *scratch)
{
    const struct listing *l = user;
    const struct shares *s = l->s;
    const uint32_t wave = s->first + index, each = replicas_of(s, wave);
    struct maq_mixed_share share;
    const struct maq_mixed_share_query ask = {
        l->group, wave, s->groups, each + s->n - 1, (uint32_t)((l->least + each - 1) / each), s->limit_s};
    bool done = maq_mixed_share_largest(&share, s->run, &ask, scratch);
    l->most[index] = done_by(s, &share);
    return done;
}

/* No more than what it would do alone, `all` of which all groups do. */
static bool list_most(uint64_t *most, uint64_t *of_all, const struct shares *s, uint32_t i, uint64_t all)
{
    const uint32_t n = s->end - s->first;
    uint64_t others = all - s->alone[s->group[i]];
    struct listing l = {s, s->group[i], others < s->total ? s->total - others : 0, most};
    *of_all = 0;
    for (uint32_t from = 0; from < n; from += MAQ_BATCH)
        if (!maq_parallel_run(list_wave, &l, from, n - from < MAQ_BATCH ? n - from : MAQ_BATCH, s->threads))
            return false;
    for (uint32_t w = 0; w < n; w++)
        *of_all = most[w] > *of_all ? most[w] : *of_all;
    return true;
}

struct choice {
    uint64_t *most[MAQ_STAGE_KINDS], of_all[MAQ_STAGE_KINDS];
    uint32_t waves[MAQ_STAGE_KINDS];
};

/* Enumerates the numbers of replicas of group i and of the groups after it that may do the micro batches that are left. */
static bool choose(struct shares *s, struct choice *c, uint32_t i, uint64_t sum)
{
    uint64_t rest = 0;
    if (i == s->n)
        return improve(s, c->waves);
    MAQ_ASSERT(c->most[i]);
    for (uint32_t k = i + 1; k < s->n; k++)
        rest += c->of_all[k];
    for (uint32_t w = s->first; w < s->end; w++) {
        uint64_t mine = c->most[i][w - s->first];
        c->waves[i] = w;
        if (mine > 0 && sum + mine + rest >= s->total && !choose(s, c, i + 1, sum + mine))
            return false;
    }
    return true;
}

/* By what they take alone for all of the batch; of each group in s->alone, and all of them: 0 where one can do nothing. */
static uint64_t most_alone(struct shares *s, uint32_t groups)
{
    uint64_t sum = 0;
    bool idle = false;
    for (uint32_t g = 0; g < s->run->costs.n_pools; g++) {
        double bound_s = s->islands ? s->islands[g].alone_bound_s : 0;
        s->alone[g] = s->islands ? 0 : s->total;
        for (uint32_t w = s->first; bound_s > 0 && w < s->end; w++) {
            const uint32_t each = replicas_of(s, w), all = (s->total + each - 1) / each;
            const double part = floor(all * (s->limit_s / bound_s) / BELOW);
            const uint64_t mine = (uint64_t)(part < all ? part : all) * each;
            s->alone[g] = mine > s->alone[g] ? mine : s->alone[g];
        }
        if (groups >> g & 1) {
            sum += s->alone[g];
            idle = idle || s->alone[g] == 0;
        }
    }
    return idle ? 0 : sum;
}

static bool search_set(struct shares *s, uint32_t groups)
{
    struct maq_arena_mark mark = maq_arena_mark(&s->run->arena);
    struct choice c = {.of_all = {0}};
    uint64_t sum = 0, all = most_alone(s, groups);
    bool done = true;
    s->groups = groups;
    s->n = 0;
    for (uint32_t g = 0; g < s->run->costs.n_pools; g++)
        if (groups >> g & 1)
            s->group[s->n++] = g;
    for (uint32_t i = 0; i < s->n && done; i++) {
        c.most[i] = MAQ_ARENA_NEW(&s->run->arena, uint64_t, s->end - s->first);
        done = c.most[i] && list_most(c.most[i], &c.of_all[i], s, i, all);
        sum += c.of_all[i];
    }
    done = done && (sum < s->total || choose(s, &c, 0, 0));
    maq_arena_reset(&s->run->arena, mark);
    return done;
}

/* ---- plans ---- */

/* Surplus micro batches are taken off, one of each replica, in the group whose replicas do the most. */
static void deal(struct maq_mixed_search_share *out, const struct shares *s)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < s->n_best; i++) {
        out[i] = (struct maq_mixed_search_share){replicas_of(s, s->best[i].wave), s->best[i].waves, 0};
        sum += (uint64_t)out[i].replicas * out[i].microbatches;
    }
    for (uint64_t over = sum - s->best_total; over > 0; over--) {
        uint32_t at = s->n_best;
        for (uint32_t i = 0; i < s->n_best; i++)
            if (out[i].microbatches > 1 && out[i].fewer < out[i].replicas &&
                (at == s->n_best || s->best[i].run_s > s->best[at].run_s))
                at = i;
        if (at == s->n_best)
            return; /* one each: there are no plans with less */
        out[at].fewer++;
    }
}

static bool take_stages(struct maq_mixed_search_plan *out, struct maq_mixed_search_stage *stages, struct shares *s,
                        uint32_t pipeline)
{
    const struct maq_mixed_share *share = &s->best[pipeline];
    struct maq_stage_table t;
    s->run->costs.pools_used = 1u << share->group;
    bool done = maq_chain_costs_table(&t, &s->run->costs, &s->run->waves[share->wave], &s->run->arena);
    s->run->costs.pools_used = UINT32_MAX;
    for (uint32_t i = 0; done && i < share->composition.n_stages; i++) {
        struct maq_mixed_search_stage *stage = &stages[out->n_stages];
        maq_mixed_run_stage(stage, s->run, &share->composition.stages[i], &t);
        stage->pipeline = pipeline;
        out->sync_s = fmax(out->sync_s, stage->sync_s);
        if (share->pace_s == share->composition.stages[i].compute_s + share->composition.stages[i].hop_s &&
            share->run_s == out->composed_s)
            out->bottleneck = out->n_stages;
        out->n_stages++;
    }
    return done;
}

static enum maq_status take_plan(struct maq_mixed_search_plan *out, struct shares *s, struct maq_diag *diag)
{
    struct maq_mixed_run *run = s->run;
    struct maq_mixed_search_share *pipelines = MAQ_ARENA_NEW(&run->arena, struct maq_mixed_search_share, s->n_best);
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_best; i++)
        n += s->best[i].composition.n_stages;
    struct maq_mixed_search_stage *stages = MAQ_ARENA_NEW(&run->arena, struct maq_mixed_search_stage, n);
    if (!pipelines || !stages)
        return maq_no_memory(diag, "the search");
    deal(pipelines, s);
    *out = (struct maq_mixed_search_plan){.micro_batch = run->space.mbs[run->waves[s->best[0].wave].mbs],
                                          .chunks = 1,
                                          .n_pipelines = s->n_best,
                                          .pipelines = pipelines,
                                          .stages = stages,
                                          .composed_s = s->limit_s};
    for (uint32_t i = 0; i < s->n_best; i++) {
        const struct maq_mixed_share *share = &s->best[i];
        out->replicas += pipelines[i].replicas;
        if (share->run_s == s->limit_s) {
            out->microbatches = share->waves;
            out->bottleneck_s = share->pace_s;
            out->fill_s = share->composition.fill_s;
        }
        if (!take_stages(out, stages, s, i))
            return maq_no_memory(diag, "the search");
    }
    return MAQ_OK;
}

/* ---- the search ---- */

/* Waves of one micro batch follow each other. */
static bool search_micro_batch(struct shares *s)
{
    const struct maq_mixed_run *run = s->run;
    uint32_t mbs = run->space.mbs[run->waves[s->first].mbs], gbs = (uint32_t)run->space.job.workload.gbs;
    s->total = (gbs + mbs - 1) / mbs;
    for (uint32_t groups = 3; groups < 1u << run->costs.n_pools; groups++)
        if ((groups & (groups - 1)) != 0 && most_alone(s, groups) >= s->total &&
            !maq_chain_costs_stopped(&run->costs) && !search_set(s, groups))
            return false;
    return true;
}

enum maq_status maq_mixed_data_parallel_search(struct maq_mixed_run *run, const struct maq_mixed_search_island *islands,
                                               bool alone, const struct maq_mixed_search_opts *opts,
                                               struct maq_diag *diag)
{
    struct maq_mixed_search_result *r = &run->result;
    struct shares *s = MAQ_ARENA_NEW(&run->arena, struct shares, 1);
    struct maq_mixed_search_plan plan;
    bool fits = false;
    if (!s)
        return maq_no_memory(diag, "the search");
    s->run = run;
    s->islands = alone ? islands : NULL;
    s->threads = opts->threads;
    s->limit_s = r->n_plans > 0 ? fmax(run->plans[0].step_s, r->bound_s) : NOTHING_YET;
    for (s->first = 0; s->first < run->n_waves && !run->blind; s->first = s->end) {
        for (s->end = s->first; s->end < run->n_waves && run->waves[s->end].mbs == run->waves[s->first].mbs;)
            s->end++;
        if (!search_micro_batch(s))
            return maq_no_memory(diag, "the search");
    }
    if (s->n_best == 0)
        return MAQ_OK;
    MAQ_TRY(take_plan(&plan, s, diag));
    MAQ_TRY(maq_mixed_virtual_simulate(&fits, &plan, run, diag));
    r->bound_s = r->bound_s > 0 ? fmin(r->bound_s, plan.composed_s) : plan.composed_s;
    r->composed_s = r->composed_s > 0 ? fmin(r->composed_s, plan.composed_s) : plan.composed_s;
    if (fits)
        maq_mixed_run_insert(run, opts, &plan);
    return MAQ_OK;
}
