/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_rank.c - a live rank: its run card, environment, price port and program; and the loop that serves ranks until
 * they end, with time-outs. See workspace.h.
 */
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/check.h"
#include "launch/codes.h"
#include "launch/fork_server/fork_server.h"
#include "launch/trace_summary.h"
#include "launch/workspace.h"

#define TURN_MS 100 /* between looks at the clock and at `stop` */
#define GRACE_S 5.0 /* for a program to end when it is asked to */

static void on_report(void *user, short events)
{
    struct maq_live *live = user;
    (void)events;
    maq_loop_remove(&live->workspace->loop, live->program.report);
    live->lost = !maq_child_finish(&live->program, &live->end);
    if (live->lost && live->forked && live->late) { /* its server was ended, which had not come to it */
        live->lost = false;
        live->end = (struct maq_child_end){.status = SIGKILL};
    }
    live->runs = false;
    live->ended_s = maq_workspace_age(live->workspace);
    live->workspace->ended_wall_s += live->ended_s - live->began_s;
    live->workspace->n_ended++;
    maq_price_server_close(&live->port);
}

enum maq_status maq_live_start(struct maq_live *live, struct maq_workspace *workspace, const struct maq_live_opts *opts,
                               struct maq_diag *diag)
{
    const struct maq_launch_opts *o = workspace->opts;
    *live = (struct maq_live){.workspace = workspace,
                              .opts = *opts,
                              .program = {.life = -1, .report = -1},
                              .began_s = maq_workspace_age(workspace)};
    if (workspace->forks)
        MAQ_TRY(maq_fork_server_open(workspace->forks, workspace, diag));
    const char *ask = maq_arena_printf(&workspace->arena, "%s/a%u", workspace->folder, opts->rank),
               *path = maq_arena_printf(&workspace->arena, "%s/c%u", workspace->folder, opts->rank);
    if (!ask || !path)
        return MAQ_NO_MEMORY;
    struct maq_run_card card = {.world = workspace->world,
                                .rank = opts->rank,
                                .per_node = workspace->per_node,
                                .device = &maq_cluster_group_of(&workspace->cluster, opts->rank)->device,
                                .memory_bytes = workspace->memory_bytes,
                                .trace = opts->trace,
                                .ask = ask,
                                .peers = opts->peers,
                                .meet = opts->meet,
                                .waits = opts->waits,
                                .inputs = opts->inputs,
                                .stops = opts->stops,
                                .samples = opts->samples,
                                .values = workspace->values,
                                .nccl_memory = workspace->nccl_memory,
                                .tcp = o->tcp,
                                .real_clock = o->real_clock,
                                .line = workspace->forks && workspace->forks->runs ? o->arguments : NULL};
    MAQ_TRY(maq_run_card_write(&card, path, diag));
    char **environment = maq_environment(&card, path, opts->store ? opts->store->port : 0,
                                         workspace->device ? &workspace->libraries : NULL, &workspace->arena);
    if (!environment)
        return MAQ_NO_MEMORY;
    MAQ_TRY(maq_price_server_open(&live->port, &workspace->asks, opts->rank, &workspace->loop, ask, diag));
    struct maq_child_opts program = {.path = workspace->program,
                                     .arguments = (char *const *)(uintptr_t)o->arguments,
                                     .environment = environment,
                                     .folder = workspace->folder,
                                     .output = opts->output};
    enum maq_status status = MAQ_OK;
    live->forked = workspace->forks && maq_fork_server_child(workspace->forks, &live->program, &program);
    if (!live->forked)
        status = maq_child_start(&live->program, &program, diag);
    if (status == MAQ_OK && !maq_loop_add(&workspace->loop, live->program.report, POLLIN, on_report, live))
        status = MAQ_NO_MEMORY;
    live->runs = status == MAQ_OK;
    if (!live->runs)
        maq_live_end(live);
    return status;
}

void maq_live_end(struct maq_live *live)
{
    if (live->program.report >= 0) {
        maq_loop_remove(&live->workspace->loop, live->program.report);
        maq_child_end(&live->program);
    }
    live->runs = false;
    maq_price_server_close(&live->port);
}

int32_t maq_live_exit_status(const struct maq_live *live)
{
    int status = live->end.status;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

enum maq_status maq_live_result(struct maq_launch_rank *out, struct maq_live *live, struct maq_diag *diag)
{
    const struct maq_child_end *e = &live->end;
    *out = (struct maq_launch_rank){.rank = live->opts.rank,
                                    .host_peak_bytes = (uint64_t)e->peak_bytes,
                                    .host_cpu_s = 1e-6 * (double)e->cpu_us,
                                    .wall_s = live->ended_s - live->began_s};
    out->status = maq_live_exit_status(live);
    if (live->lost)
        return maq_diag_fail(MAQ_IO, diag, MAQ_CODE_LAUNCH_PROGRAM, (struct maq_span){0}, NULL,
                             "what looks after rank %u was killed", out->rank);
    if (e->error != 0)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_LAUNCH_PROGRAM, (struct maq_span){0}, NULL,
                             "cannot run '%.200s': %s", live->workspace->program, strerror(e->error));
    enum maq_status status =
        live->opts.trace ? maq_rank_trace_sum(out, live->opts.trace, &live->workspace->asks, diag) : MAQ_OK;
    if (live->port.ended_ns > 0 &&
        live->workspace->opts->libraries != MAQ_LAUNCH_GPU) /* its own clock, peers and all */
        out->virtual_ns = live->port.ended_ns;
    return status;
}

/* ---- the loop ---- */

#define PEERS_GRACE_S 10.0 /* for those that are told of the failure, by NCCL, to say what they make of it */

const struct maq_live *maq_live_failed_first(struct maq_live *const *live, uint32_t n)
{
    const struct maq_live *first = NULL;
    for (uint32_t i = 0; i < n; i++)
        if (live[i]->workspace && !live[i]->runs && !live[i]->peer_failed && maq_live_exit_status(live[i]) != 0 &&
            (!first || live[i]->ended_s < first->ended_s))
            first = live[i];
    return first;
}

/* Asks a rank to end, and kills it after a grace period. */
static void hurry(struct maq_live *live, int number)
{
    double age = maq_workspace_age(live->workspace);
    if (live->told_s <= 0) {
        live->told_s = age;
        maq_child_signal(&live->program, number);
    } else if (age - live->told_s > GRACE_S) {
        live->told_s = age;
        maq_child_signal(&live->program, SIGKILL);
        if (live->forked) /* whose program may not have come to where ranks are forked */
            maq_fork_server_close(live->workspace->forks);
    }
}

static bool stalls(struct maq_live *live)
{
    const double now_s = maq_workspace_age(live->workspace);
    live->stalled = live->stalled || maq_stall_look(&live->stall, live->program.keeper, now_s, live->opts.stall_s);
    return live->stalled;
}

/* true: all are to end. */
static bool look_at_clocks(struct maq_workspace *workspace, struct maq_live *const *live, uint32_t n)
{
    const struct maq_launch_opts *o = workspace->opts;
    int stop = o->stop ? (int)*o->stop : 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!live[i]->runs)
            continue;
        live[i]->late =
            live[i]->late || (o->timeout_s > 0 && maq_workspace_age(workspace) - live[i]->began_s > o->timeout_s);
        if (stop || live[i]->late)
            hurry(live[i], stop > 1 ? stop : SIGTERM);
        else if (stalls(live[i]) && live[i]->opts.stall_ends)
            hurry(live[i], SIGKILL);
    }
    return stop != 0;
}

/* All of the command's time is over: what runs is ended. */
static bool out_of_time(const struct maq_workspace *workspace, struct maq_live *const *live, uint32_t n)
{
    bool over = workspace->opts->whole_s > 0 && maq_workspace_age(workspace) > workspace->opts->whole_s;
    for (uint32_t i = 0; i < n && over; i++)
        if (live[i]->runs)
            hurry(live[i], SIGTERM);
    return over;
}

/* One of ranks that run at once has failed: the others are ended, where they do not end by themselves. */
static void end_peers(const struct maq_workspace *workspace, struct maq_live *const *live, uint32_t n)
{
    const struct maq_live *failed = maq_live_failed_first(live, n);
    if (!failed || maq_workspace_age(workspace) - failed->ended_s < PEERS_GRACE_S)
        return;
    for (uint32_t i = 0; i < n; i++)
        if (live[i]->runs) {
            live[i]->peer_failed = true;
            hurry(live[i], SIGTERM);
        }
}

/* Slices that are left take as long as those before did, as many at a time as run now; less what these have done. */
static double left_of(const struct maq_workspace *workspace, struct maq_live *const *live, uint32_t n,
                      const struct maq_launch_progress *at)
{
    double ran = 0;
    if (workspace->n_ended == 0 || at->of <= at->done || n == 0)
        return 0;
    for (uint32_t i = 0; i < n; i++)
        ran += live[i]->runs ? maq_workspace_age(workspace) - live[i]->began_s : 0;
    double each = workspace->ended_wall_s / workspace->n_ended, left = (each * (at->of - at->done) - ran) / n;
    return left > 1 ? left : 1;
}

static bool goes_on(struct maq_live *const *live, uint32_t n, bool all)
{
    uint32_t run = 0;
    for (uint32_t i = 0; i < n; i++)
        run += live[i]->runs;
    return all ? run > 0 : n > 0 && run == n;
}

static void tick(struct maq_live *const *live, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (live[i]->opts.store)
            maq_store_tick(live[i]->opts.store);
}

enum maq_status maq_workspace_serve(struct maq_workspace *workspace, struct maq_live *const *live, uint32_t n, bool all,
                                    const struct maq_launch_progress *at, struct maq_diag *diag)
{
    const struct maq_launch_opts *o = workspace->opts;
    bool stopped = false, asked = true;
    while (goes_on(live, n, all || stopped)) {
        maq_loop_turn(&workspace->loop, TURN_MS);
        tick(live, n);
        asked = look_at_clocks(workspace, live, n);
        stopped = asked || out_of_time(workspace, live, n);
        if (all && n > 1 && !stopped)
            end_peers(workspace, live, n);
        if (o->progress) {
            struct maq_launch_progress p = *at;
            p.seconds = maq_workspace_age(workspace);
            p.left_s = left_of(workspace, live, n, at);
            o->progress(o->context, &p);
        }
    }
    if (stopped && !asked)
        return maq_diag_fail(MAQ_LIMIT, diag, MAQ_CODE_LAUNCH_TIMEOUT, (struct maq_span){0},
                             "the same command goes on where it ended; --timeout sets the limit",
                             "%s was not done in %g s: %u of %u slices", at->phase, o->whole_s, at->done, at->of);
    return stopped ? maq_diag_fail(MAQ_LIMIT, diag, MAQ_CODE_LAUNCH_TIMEOUT, (struct maq_span){0}, NULL,
                                   "the program was ended on request")
                   : MAQ_OK;
}
