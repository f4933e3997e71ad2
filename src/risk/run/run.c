/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - maq_run_simulate(): simulates replicas of a run on threads and summarizes them.
 *
 * Each run writes to its own entries and draws random numbers by its own address, so results do not depend on the
 * threads.
 */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/str.h"
#include "risk/codes.h"
#include "risk/run/summary.h"

#define CHUNK 64u
#define MAX_THREADS 256u
#define DEFAULT_REPLICAS 10000u
#define MOST_FAILURES 2e9 /* of all replicas together: some ten minutes */

struct maq_run_owner {
    struct maq_run_result result; /* first: what the caller sees */
    struct maq_arena arena;
};

struct batch {
    const struct maq_run_model *m;
    struct maq_run_outcome *outcomes;
    struct maq_run_tally *tallies;
    uint32_t n;
    atomic_uint next;
    atomic_bool failed;
};

static void *work(void *user)
{
    struct batch *b = user;
    for (uint32_t from; (from = atomic_fetch_add(&b->next, CHUNK)) < b->n;)
        for (uint32_t i = from; i < from + CHUNK && i < b->n; i++)
            if (!maq_run_replica(&b->outcomes[i], &b->tallies[(size_t)i * b->m->n_causes], b->m, i))
                atomic_store(&b->failed, true);
    return NULL;
}

static bool run_batch(struct batch *b, uint32_t threads)
{
    pthread_t ids[MAX_THREADS];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t started = 1, most = (b->n + CHUNK - 1) / CHUNK;
    if (threads == 0)
        threads = cores > 0 ? (uint32_t)cores : 1;
    threads = threads < most ? threads : most;
    threads = threads < MAX_THREADS ? threads : MAX_THREADS;
    while (started < threads && pthread_create(&ids[started], NULL, work, b) == 0)
        started++; /* fewer threads than wanted do the same work */
    work(b);
    for (uint32_t i = 1; i < started; i++)
        pthread_join(ids[i], NULL);
    return !atomic_load(&b->failed);
}

static double mean_recovery_s(const struct maq_run_model *m)
{
    double detection = 0, before = 0;
    for (uint32_t i = 0; i < m->n_causes; i++) {
        detection += (m->causes[i].upto - before) * m->causes[i].detection.mean_ns;
        before = m->causes[i].upto;
    }
    return (detection + m->requeue.mean_ns + m->restart.mean_ns + (double)m->restore_ns[m->track.n_levels - 1]) * 1e-9;
}

/* The closed form, for comparison with the simulation, where there is one. */
static void closed_form(struct maq_run_result *r, const struct maq_run_model *m)
{
    const struct maq_failures *f = m->failures;
    struct maq_checkpointing c = {.mtbf_s = r->mtbf_s,
                                  .interval_s = m->interval_s,
                                  .save_s = (double)m->track.save[0] * 1e-9,
                                  .persist_s = (double)m->track.persist[0] * 1e-9,
                                  .recover_s = mean_recovery_s(m),
                                  .clock = m->clock};
    c.interval_s = fmin(c.interval_s, r->ideal_s); /* a run that is shorter has one save, at its end */
    r->closed = maq_checkpoint_run(&c, r->ideal_s);
    bool late = false; /* the forms know no results that are found wrong later */
    for (uint32_t i = 0; i < m->n_causes; i++)
        late = late || m->causes[i].found_after.median_ns > 0;
    r->has_closed = !late && m->recovery == MAQ_RECOVERY_RESTART && m->track.n_levels == 1 && f->shape == 1 &&
                    f->spread == 0 && f->lemon_share == 0 && f->burst_times == 1 && m->track.eval_pause == 0;
}

static enum maq_status check_end(const struct maq_run_result *r, const struct maq_run_model *m, struct maq_diag *diag)
{
    double least = m->work_ns / (double)m->most_ns;
    if (m->recovery == MAQ_RECOVERY_REPLICA || !(m->rate > 0) ||
        (r->closed.useful > least && r->closed.failures * r->opts.replicas < MOST_FAILURES))
        return MAQ_OK;
    if (r->closed.useful > least)
        return maq_diag_fail(MAQ_LIMIT, diag, MAQ_CODE_RUN_ENDLESS, (struct maq_span){0}, "simulate fewer --replicas",
                             "%u runs of about %.3g failures each are too many to simulate", r->opts.replicas,
                             r->closed.failures);
    return maq_diag_fail(
        MAQ_NO, diag, MAQ_CODE_RUN_ENDLESS, (struct maq_span){0},
        "fewer failures, a shorter recovery, or more frequent checkpoints",
        "the job fails every %.3g s and takes %.3g s to go on: in the time of %.3g runs it does not come to the end "
        "of one",
        r->mtbf_s, mean_recovery_s(m), r->opts.give_up);
}

/* Nothing is known of when a run is done, then. Who sets the limit asks how many are late, and is told. */
static enum maq_status check_any_ended(const struct maq_run_result *r, const struct maq_run_opts *opts,
                                       struct maq_diag *diag)
{
    if (r->endless < r->opts.replicas || opts->give_up > 0)
        return MAQ_OK;
    return maq_diag_fail(
        MAQ_NO, diag, MAQ_CODE_RUN_ENDLESS, (struct maq_span){0},
        "fewer failures, spares, a shorter recovery, or more frequent checkpoints",
        "none of %u runs comes to its end: each was given up after %.3g s, where %.3g s are enough if nothing "
        "stops it",
        r->opts.replicas, r->opts.give_up * r->ideal_s, r->ideal_s + r->startup_s);
}

static void fill(struct maq_run_result *r, const struct maq_run_opts *opts, const struct maq_run_model *m)
{
    r->opts = *opts;
    r->opts.replicas = opts->replicas > 0 ? opts->replicas : DEFAULT_REPLICAS;
    r->opts.dp_replicas = opts->dp_replicas > 0 ? opts->dp_replicas : 1;
    r->opts.min_replicas = opts->min_replicas > 0 ? opts->min_replicas : 1;
    r->ideal_s = m->work_ns * 1e-9;
    r->nodes = (double)m->nodes;
    r->mtbf_s = m->rate > 0 ? 1e-9 / m->rate : (double)INFINITY;
    r->startup_s = m->startup.mean_ns * 1e-9;
    r->interval_s = r->opts.interval_s = m->interval_s;
    r->optimal_interval_s = m->optimal_interval_s;
    r->opts.give_up = (double)m->most_ns / m->work_ns;
    r->n_causes = m->n_causes;
}

static enum maq_status simulate(struct maq_run_owner *owner, const struct maq_run_opts *opts, struct maq_diag *diag)
{
    struct maq_run_result *r = &owner->result;
    struct maq_run_model model;
    MAQ_TRY(maq_run_model_build(&model, opts, &owner->arena, diag));
    fill(r, opts, &model);
    closed_form(r, &model);
    MAQ_TRY(check_end(r, &model, diag));
    uint32_t n = r->opts.replicas;
    struct maq_run_cause *causes = MAQ_ARENA_NEW(&owner->arena, struct maq_run_cause, model.n_causes);
    struct batch b = {.m = &model, .n = n};
    struct maq_arena scratch;
    maq_arena_init(&scratch, 0);
    b.outcomes = MAQ_ARENA_NEW(&scratch, struct maq_run_outcome, n);
    b.tallies = MAQ_ARENA_NEW(&scratch, struct maq_run_tally, (size_t)n * model.n_causes);
    double *room = MAQ_ARENA_NEW(&scratch, double, 2 * (size_t)n);
    bool whole = causes && b.outcomes && b.tallies && room && run_batch(&b, opts->threads);
    if (whole) {
        for (uint32_t i = 0; i < model.n_causes; i++)
            causes[i].name = maq_arena_strdup(&owner->arena, maq_str_of(model.failures->causes[i].name));
        r->causes = causes;
        maq_run_summarize(r, causes, b.outcomes, b.tallies, n, room);
    }
    maq_arena_fini(&scratch);
    return whole ? check_any_ended(r, opts, diag)
                 : maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_RUN_NO_MEMORY, (struct maq_span){0}, NULL,
                                 "out of memory for %u runs", n);
}

enum maq_status maq_run_simulate(struct maq_run_result **out, const struct maq_run_opts *opts, struct maq_diag *diag)
{
    struct maq_run_owner *owner = maq__calloc(sizeof *owner);
    if (!owner)
        return maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_RUN_NO_MEMORY, (struct maq_span){0}, NULL, "out of memory");
    maq_arena_init(&owner->arena, 0);
    enum maq_status status = simulate(owner, opts, diag);
    if (status != MAQ_OK) {
        maq_run_result_free(&owner->result);
        return status;
    }
    *out = &owner->result;
    return MAQ_OK;
}

void maq_run_result_free(struct maq_run_result *result)
{
    if (!result)
        return;
    struct maq_run_owner *owner = (struct maq_run_owner *)result;
    maq_arena_fini(&owner->arena);
    free(owner);
}
