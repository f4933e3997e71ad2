/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.c - checks the options of a run and builds its model: see model.h.
 *
 * The best interval for several levels is that of one level with the mean save of an interval, and with a failure counted as often
 * as intervals are lost by it: a failure that only a level taken every e intervals survives loses e / 2 of them.
 */
#include "risk/run/model.h"

#include <math.h>

#include "base/check.h"
#include "risk/codes.h"

static const struct maq_failures nothing_fails = {
    .name = "none", .title = "nothing fails", .source = "", .shape = 1, .devices_per_node = 8};

struct maq_run_bucket_info maq_run_bucket_info(enum maq_run_bucket bucket)
{
    static const struct maq_run_bucket_info rows[] = {
#define MAQ_RUN_BUCKET_ROW(id, name, category, what) {name, category, what},
        MAQ_RUN_BUCKET_LIST(MAQ_RUN_BUCKET_ROW)
#undef MAQ_RUN_BUCKET_ROW
    };
    return (unsigned)bucket < MAQ_RUN_BUCKET_COUNT ? rows[bucket] : (struct maq_run_bucket_info){"?", "?", "?"};
}

const char *maq_run_recovery_name(enum maq_run_recovery recovery)
{
    static const char *const names[] = {"restart", "elastic", "replica"};
    return (unsigned)recovery < MAQ_COUNT(names) ? names[recovery] : "?";
}

static enum maq_status refuse(struct maq_diag *diag, const char *hint, const char *what)
{
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_RUN_OPTION, (struct maq_span){0}, hint, "%s", what);
}

static bool in_range(double x, double low, double high)
{
    return x >= low && x <= high;
}

static bool levels_are_sound(const struct maq_run_opts *o)
{
    if (o->n_levels > MAQ_RUN_LEVELS || (o->n_levels > 0 && o->levels[0].every > 1))
        return false;
    for (uint32_t i = 0; i < o->n_levels; i++) {
        const struct maq_run_level *l = &o->levels[i];
        if (!in_range(l->save_s, 0, 1e7) || !in_range(l->persist_s, 0, 1e7) || !in_range(l->restore_s, 0, 1e7))
            return false;
        if (i > 0 && (l->every < 1 || l->every > 1000000 || l->survives < o->levels[i - 1].survives))
            return false;
    }
    return o->n_levels == 0 || o->levels[o->n_levels - 1].survives == MAQ_SURVIVES_ALL;
}

static enum maq_status check(const struct maq_run_opts *o, struct maq_diag *diag)
{
    if (!in_range(o->step_s, 1e-6, 1e6))
        return refuse(diag, NULL, "a run has a step time from 1 us to 10^6 s");
    if (!(o->steps >= 1) || (o->steps < 1e15 && o->steps != floor(o->steps)))
        return refuse(diag, "are the tokens right?", "a run has at least one step, and whole ones");
    if (o->step_s * o->steps > 2e8)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_RUN_OPTION, (struct maq_span){0}, "are the tokens right?",
                             "a run of %.3g steps of %.3g s takes %.0f years; more than six are not simulated",
                             o->steps, o->step_s, o->step_s * o->steps / 31557600);
    if (o->steps > 1e12)
        return refuse(diag, "are the tokens right?", "a run of more than 10^12 steps is not simulated");
    if (o->devices == 0 || o->devices_per_node == 0)
        return refuse(diag, NULL, "a run needs devices");
    if (!in_range(o->step_sigma, 0, 2) || !in_range(o->step_noise, 0, 10))
        return refuse(diag, NULL, "the deviation of the step time is out of range");
    if (!(o->interval_s >= 0) || (o->interval_s > 0 && o->interval_s < 1e-3))
        return refuse(diag, "a time from 1 ms, `auto` or `none`", "an interval between checkpoints that is none");
    if (!levels_are_sound(o))
        return refuse(diag, "the first level is every save, each next one survives more, the last survives everything",
                      "levels of checkpoints that do not go together");
    if (!in_range(o->evaluate_every_s, 0, 1e9) || !in_range(o->evaluate_s, 0, 1e7) ||
        (o->evaluate_s > 0 && o->evaluate_every_s < 1))
        return refuse(diag, "for example 30s/2h: half a minute every two hours", "evaluations that are out of range");
    if (o->dp_replicas > o->devices || o->min_replicas > (o->dp_replicas ? o->dp_replicas : 1))
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_RUN_OPTION, (struct maq_span){0}, NULL,
                             "at least %u replicas are to go on, of %u on %u devices", o->min_replicas, o->dp_replicas,
                             o->devices);
    if (o->recovery != MAQ_RECOVERY_RESTART && o->dp_replicas < 2)
        return refuse(diag, "use restart", "a job with one data-parallel replica can only start again");
    if (!in_range(o->reconfigure_s, 0, 1e6) || !in_range(o->rejoin_s, 0, 1e6))
        return refuse(diag, NULL, "times of reconfiguring are out of range");
    if (!in_range(o->give_up, 0, 1e6) || (o->give_up > 0 && o->give_up < 1.1))
        return refuse(diag, NULL, "a run is given up at 1.1 to 10^6 times its ideal length");
    if (o->replicas == 1 || o->replicas > 10000000)
        return refuse(diag, NULL, "from 2 to 10 million runs can be simulated");
    return MAQ_OK;
}

static struct maq_run_delay delay_of(struct maq_delay d)
{
    double sigma = d.mean_s > d.median_s && d.median_s > 0 ? sqrt(2 * log(d.mean_s / d.median_s)) : 0;
    return (struct maq_run_delay){d.median_s * 1e9, sigma, d.mean_s * 1e9};
}

static int64_t ns(double s)
{
    return llround(s * 1e9);
}

uint32_t maq_run_cause_of(const struct maq_run_model *m, double u)
{
    uint32_t i = m->guide[(int)(u * MAQ_RUN_CAUSE_GUIDE)];
    while (i + 1 < m->n_causes && u >= m->causes[i].upto)
        i++;
    return i;
}

static void build_guide(struct maq_run_model *m)
{
    uint32_t cause = 0;
    for (int i = 0; i < MAQ_RUN_CAUSE_GUIDE; i++) {
        while (cause + 1 < m->n_causes && (double)i / MAQ_RUN_CAUSE_GUIDE >= m->causes[cause].upto)
            cause++;
        m->guide[i] = cause;
    }
}

static enum maq_status build_causes(struct maq_run_model *m, struct maq_arena *arena, struct maq_diag *diag)
{
    const struct maq_failures *f = m->failures;
    double upto = 0, losing = 0;
    struct maq_run_cause_model *causes = MAQ_ARENA_NEW(arena, struct maq_run_cause_model, f->n_causes);
    struct maq_spare_pool_repair *repairs = MAQ_ARENA_NEW(arena, struct maq_spare_pool_repair, f->n_causes);
    if (!causes || !repairs)
        return maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_RUN_NO_MEMORY, (struct maq_span){0}, NULL, "out of memory");
    for (uint32_t i = 0; i < f->n_causes; i++) {
        const struct maq_failure_cause *c = &f->causes[i];
        upto += c->share;
        losing += c->loses_node ? c->share : 0;
        causes[i] = (struct maq_run_cause_model){
            .upto = upto,
            .loses_node = c->loses_node,
            .detection = delay_of(c->own_detection ? c->detection : f->detection),
            .repair = delay_of(c->own_repair ? c->repair : f->repair),
            .found_after = delay_of(c->found_after),
        };
        if (c->loses_node)
            repairs[m->n_repairs++] =
                (struct maq_spare_pool_repair){losing, causes[i].repair.median_ns, causes[i].repair.sigma};
    }
    for (uint32_t i = 0; i < m->n_repairs; i++)
        repairs[i].upto /= losing;
    m->repairs = repairs;
    m->causes = causes;
    m->n_causes = f->n_causes;
    build_guide(m);
    m->loss_rate = m->node_rate * losing * (1 + f->together_share * (f->together_nodes - 1));
    return MAQ_OK;
}

/* Levels into the track; lowest[s]: the first that survives severity s. */
static void build_levels(struct maq_run_model *m, const struct maq_run_opts *o)
{
    struct maq_track *t = &m->track;
    t->n_levels = o->n_levels > 0 ? (int)o->n_levels : 1;
    t->every[0] = 1;
    for (int l = 0; l < (int)o->n_levels; l++) {
        if (l > 0)
            t->every[l] = t->every[l - 1] * o->levels[l].every;
        t->save[l] = ns(o->levels[l].save_s);
        t->persist[l] = ns(o->levels[l].persist_s);
        m->restore_ns[l] = ns(o->levels[l].restore_s);
    }
    t->every[t->n_levels] = INT64_MAX;
    for (int severity = 0; severity < 3; severity++)
        for (int l = (int)o->n_levels - 1; l >= 0 && (int)o->levels[l].survives >= severity; l--)
            m->lowest[severity] = l;
}

/* Failures that need the checkpoints of each level, in intervals lost: see the head of the file. */
static double intervals_per_failure(const struct maq_run_model *m)
{
    const struct maq_failures *f = m->failures;
    double sum = 0;
    for (uint32_t i = 0; i < f->n_causes; i++) {
        double one = f->causes[i].loses_node ? 1 - f->together_share : 0,
               all = f->causes[i].loses_node ? f->together_share : 0;
        sum += f->causes[i].share *
               ((1 - one - all) * (double)m->track.every[m->lowest[0]] + one * (double)m->track.every[m->lowest[1]] +
                all * (double)m->track.every[m->lowest[2]]);
    }
    return sum > 0 ? sum : 1;
}

static double mean_save_s(const struct maq_track *t)
{
    double sum = 0;
    for (int l = 0; l < t->n_levels; l++) {
        double above = l + 1 < t->n_levels ? 1 / (double)t->every[l + 1] : 0;
        sum += (double)t->save[l] * 1e-9 * (1 / (double)t->every[l] - above);
    }
    return sum;
}

static void choose_interval(struct maq_run_model *m, const struct maq_run_opts *o)
{
    struct maq_track *t = &m->track;
    double late = 0;
    for (int l = 0; l < t->n_levels; l++)
        late = fmax(late, (double)t->persist[l] * 1e-9 / (double)t->every[l]);
    m->optimal_interval_s = o->n_levels == 0 || !(m->rate > 0)
                                ? (double)INFINITY
                                : maq_checkpoint_optimal(1e-9 / m->rate / intervals_per_failure(m), mean_save_s(t));
    if (o->n_levels > 0) /* one save at a time; a save in every step at most */
        m->optimal_interval_s = fmax(m->optimal_interval_s, fmax(late, o->step_s));
    m->interval_s = o->interval_s > 0 ? fmax(o->interval_s, late) : m->optimal_interval_s;
    if (o->n_levels == 0 || isinf(m->interval_s)) {
        for (int l = 0; l < t->n_levels; l++)
            t->save[l] = t->persist[l] = 0;
        t->interval = INT64_C(4000000000000000000); /* longer than any run */
        m->interval_s = (double)INFINITY;
        return;
    }
    t->interval = ns(fmin(m->interval_s, 4e9));
}

enum maq_status maq_run_model_build(struct maq_run_model *m, const struct maq_run_opts *o, struct maq_arena *arena,
                                    struct maq_diag *diag)
{
    MAQ_TRY(check(o, diag));
    const struct maq_failures *f = o->failures ? o->failures : &nothing_fails;
    *m = (struct maq_run_model){.failures = f, .recovery = o->recovery, .clock = o->clock, .seed = o->seed};
    m->replicas = o->dp_replicas > 0 ? o->dp_replicas : 1;
    m->min_replicas = o->min_replicas > 0 ? o->min_replicas : 1;
    m->nodes = (o->devices + o->devices_per_node - 1) / o->devices_per_node;
    if (m->replicas > m->nodes) { /* a node takes all its replicas with it: they count as one */
        m->min_replicas = (m->min_replicas * m->nodes + m->replicas - 1) / m->replicas;
        m->replicas = m->nodes;
    }
    m->spares = o->spares;
    m->shared_nodes = o->shared_nodes;
    double per_node = f->rate * (double)o->devices / (double)m->nodes;
    m->node_rate = per_node * 1e-9;
    m->rate = m->node_rate * (double)m->nodes;
    m->work_ns = o->steps * (double)ns(o->step_s);
    m->step_ns = ns(o->step_s);
    m->sigma = o->step_sigma;
    m->noise = o->step_noise / sqrt(o->steps);
    m->requeue = delay_of(f->requeue);
    struct maq_delay start = f->restart;
    if (start.median_s < 0)
        start.median_s = start.mean_s = maq_startup_s(o->devices);
    m->restart = m->startup = delay_of(start);
    m->reconfigure_ns = ns(o->reconfigure_s);
    m->rejoin_ns = ns(o->rejoin_s);
    double once =
        m->startup.mean_ns + (o->n_levels > 0 ? (double)(ns(o->levels[0].save_s) + ns(o->levels[0].persist_s)) : 0);
    m->most_ns = (int64_t)fmin((m->work_ns + once) * (o->give_up > 0 ? o->give_up : MAQ_RUN_GIVE_UP), 4e18);
    m->together_nodes = f->together_nodes > 1 ? (int64_t)(f->together_nodes + 0.5) : 1;
    MAQ_TRY(build_causes(m, arena, diag));
    build_levels(m, o);
    choose_interval(m, o);
    m->track.eval_every = o->evaluate_s > 0 ? ns(o->evaluate_every_s) : 0;
    m->track.eval_pause = o->evaluate_s > 0 ? ns(o->evaluate_s) : 0;
    return MAQ_OK;
}
