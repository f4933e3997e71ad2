/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - maq_launch_run(): a program as one rank of many, or as all ranks of a small job.
 *
 * A rank that runs alone gets from exchanges and the store what the others would have contributed, as far as that can be known
 * (docs/capture.md); where its program reads what only another rank can say, that rank runs first (prerequisites.h). All ranks at once meet in a shared segment (shim/shm.h) without replayed peers: the reference, at small
 * scale.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/text.h"
#include "launch/codes.h"
#include "launch/prerequisites.h"
#include "launch/private_folder.h"
#include "launch/result.h"
#include "maquette/path_hint.h"
#include "shim/shm.h"

/* ---- results ---- */

enum maq_status maq_launch_begin(struct maq_launch_owner **out, struct maq_workspace *workspace, uint32_t n,
                                 struct maq_diag *diag)
{
    struct maq_launch_owner *owner = maq__calloc(sizeof *owner);
    if (owner) {
        maq_arena_init(&owner->arena, 0);
        owner->rank = MAQ_ARENA_NEW(&owner->arena, struct maq_launch_rank, n);
    }
    if (!owner || !owner->rank) {
        free(owner);
        return maq_no_memory(diag, NULL);
    }
    const struct maq_device *device = &workspace->cluster.groups[0].device;
    owner->launch = (struct maq_launch){.device = maq_arena_strdup(&owner->arena, maq_str_of(device->title)),
                                        .world = workspace->world,
                                        .per_node = workspace->per_node,
                                        .n_ranks = n,
                                        .rank = owner->rank,
                                        .owner = owner};
    *out = owner;
    return MAQ_OK;
}

enum maq_status maq_launch_end(struct maq_launch_owner *owner, const struct maq_workspace *workspace)
{
    const struct maq_price_server *asks = &workspace->asks;
    struct maq_asked *rows = MAQ_ARENA_NEW(&owner->arena, struct maq_asked, asks->n);
    if (!rows)
        return MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < asks->n; i++) {
        rows[i] = *asks->asked[i];
        rows[i].name = maq_arena_strdup(&owner->arena, maq_str_of(rows[i].name));
        if (!rows[i].name)
            return MAQ_NO_MEMORY;
    }
    owner->launch.asked = rows;
    owner->launch.n_asked = asks->n;
    for (uint32_t i = 0; i < owner->launch.n_ranks; i++)
        if (owner->launch.status == 0)
            owner->launch.status = owner->rank[i].status;
    return MAQ_OK;
}

void maq_launch_free(struct maq_launch *launch)
{
    struct maq_launch_owner *owner = launch ? launch->owner : NULL;
    if (!owner)
        return;
    maq_arena_fini(&owner->arena);
    free(owner);
}

/* ---- runs ---- */

struct run {
    struct maq_workspace workspace;
    struct maq_store store;
    struct maq_prerequisites before;
    struct maq_live *live;
    struct maq_live **list;
    uint32_t n;
    const char *meet;
    bool together; /* all of them for the one that was asked for */
    struct maq_launch_owner *owner;
};

static bool all_run(const struct run *r)
{
    return r->workspace.opts->all || r->together;
}

static enum maq_status make_meeting(struct run *r, struct maq_diag *diag)
{
    struct maq_shm_opts opts = {.world = r->workspace.world, .owner = (uint32_t)getpid()};
    r->meet = maq_arena_printf(&r->workspace.arena, "%s/meet", r->workspace.folder);
    int error = r->meet ? maq_shm_create(r->meet, &opts) : ENOMEM;
    return error == 0 ? MAQ_OK
                      : maq_diag_fail(MAQ_IO, diag, MAQ_CODE_LAUNCH_FOLDER, (struct maq_span){0}, NULL,
                                      "cannot make the segment in which ranks meet: %s", strerror(error));
}

/* The trace of a rank: where the user wants it, or in the private folder. */
static const char *trace_of(struct run *r, uint32_t rank)
{
    const char *wanted = r->workspace.trace;
    if (r->together && rank != r->workspace.opts->rank)
        wanted = NULL;
    else if (!r->workspace.opts->all)
        return wanted ? wanted : maq_arena_printf(&r->workspace.arena, "%s/trace", r->workspace.folder);
    return maq_arena_printf(&r->workspace.arena, "%s/rank-%u.trace", wanted ? wanted : r->workspace.folder, rank);
}

/* Why there cannot be a file of that name, as an errno; 0: there can. Absolute, from maq_workspace_absolute(). */
static int no_file(const char *path, struct maq_arena *arena)
{
    struct stat there;
    if (stat(path, &there) == 0)
        return S_ISDIR(there.st_mode) ? EISDIR : access(path, W_OK) == 0 ? 0 : errno;
    const char *folder = maq_arena_printf(arena, "%.*s/.", (int)(strrchr(path, '/') - path), path);
    return !folder ? ENOMEM : access(folder, W_OK | X_OK) == 0 ? 0 : errno;
}

static int no_folder(const char *path)
{
    struct stat there;
    if (mkdir(path, 0777) == 0)
        return 0;
    int error = errno;
    return error != EEXIST ? error : stat(path, &there) == 0 && S_ISDIR(there.st_mode) ? 0 : ENOTDIR;
}

/* The program writes its trace itself, and has no way to say that it cannot: a place for it is found before it starts. */
static enum maq_status find_place(struct run *r, struct maq_diag *diag)
{
    const bool all = r->workspace.opts->all;
    int error = all ? no_folder(r->workspace.trace) : no_file(r->workspace.trace, &r->workspace.arena);
    if (error == 0)
        return MAQ_OK;
    return maq_diag_fail(MAQ_IO, diag, MAQ_CODE_LAUNCH_FOLDER, (struct maq_span){0}, maq_create_hint(error),
                         "cannot make the %s '%.200s': %s", all ? "folder" : "trace", r->workspace.opts->trace,
                         strerror(error));
}

static enum maq_status start(struct run *r, struct maq_diag *diag)
{
    const struct maq_launch_opts *o = r->workspace.opts;
    if (o->all && r->workspace.world > MAQ_LAUNCH_ALL_MAX)
        return maq_diag_fail(MAQ_USAGE, diag, MAQ_CODE_LAUNCH_OPTION, (struct maq_span){0},
                             "maquette capture runs some of them, one after another",
                             "%u ranks at once: %u are the most", r->workspace.world, MAQ_LAUNCH_ALL_MAX);
    if (all_run(r))
        MAQ_TRY(make_meeting(r, diag));
    if (o->all && r->workspace.trace)
        MAQ_TRY(find_place(r, diag));
    for (uint32_t i = 0; i < r->n; i++) {
        uint32_t rank = all_run(r) ? i : o->rank;
        struct maq_live_opts live = {.rank = rank, .store = &r->store, .meet = r->meet, .trace = trace_of(r, rank)};
        const bool beside = r->together && rank != o->rank; /* nobody asked for what it writes */
        if (beside)
            live.output = maq_arena_printf(&r->workspace.arena, "%s/o%u", r->workspace.folder, rank);
        else if (!all_run(r) && o->alone)
            live.stall_s = o->stall_s;
        if (!live.trace || (beside && !live.output))
            return MAQ_NO_MEMORY;
        MAQ_TRY(maq_live_start(&r->live[i], &r->workspace, &live, diag));
        r->list[i] = &r->live[i];
    }
    return MAQ_OK;
}

/* Whether other ranks run first where that is needed: the device has to see what is read. */
static bool looks_ahead(const struct run *r)
{
    const struct maq_launch_opts *o = r->workspace.opts;
    return !o->all && !o->alone && r->workspace.world > 1 && r->workspace.device && !r->workspace.libraries.inject;
}

/* One rank, and before it those that it needs. */
static enum maq_status run_ahead(struct run *r, struct maq_diag *diag)
{
    struct maq_prerequisites *f = &r->before;
    const char *trace = trace_of(r, r->workspace.opts->rank);
    if (!trace)
        return MAQ_NO_MEMORY;
    MAQ_TRY(maq_prerequisites_open(f, &r->workspace, r->workspace.opts->kept, diag));
    if (f->together != MAQ_TOGETHER_NOT && r->workspace.opts->stall_s > 0)
        return MAQ_OK;
    f->together = MAQ_TOGETHER_NOT;
    enum maq_status status = maq_prerequisites_run(f, r->workspace.opts->rank, trace, diag);
    const bool alone = f->together == MAQ_TOGETHER_NOT;
    if (f->live.workspace && alone) {
        r->live[0] = f->live;
        f->live = (struct maq_live){.workspace = NULL};
        r->list[0] = &r->live[0];
    }
    if (!alone)
        return status;
    struct maq_launch *out = &r->owner->launch;
    struct maq_launch_first *first = MAQ_ARENA_NEW(&r->owner->arena, struct maq_launch_first, f->n_ran + 1);
    if (!first)
        return MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < f->n_ran; i++)
        first[i] = (struct maq_launch_first){f->ran[i].rank, f->ran[i].status};
    out->first = first;
    out->n_first = f->n_ran;
    out->n_kept = f->from_file;
    r->store.requests = f->store_requests;
    r->store.invented = f->invented;
    r->store.gloo = f->gloo;
    return status;
}

static enum maq_status finish(struct run *r, struct maq_diag *diag)
{
    const uint32_t from = r->together ? r->workspace.opts->rank : 0;
    for (uint32_t i = 0; i < r->owner->launch.n_ranks; i++) {
        MAQ_TRY(maq_live_result(&r->owner->rank[i], &r->live[from + i], diag));
        if (r->workspace.trace && r->owner->rank[i].records)
            r->owner->rank[i].trace = maq_arena_strdup(&r->owner->arena, maq_str_of(r->live[from + i].opts.trace));
    }
    if (r->store.gloo && (!r->workspace.device || r->workspace.libraries.inject))
        maq_diag_add(diag, MAQ_WARNING, MAQ_CODE_LAUNCH_GLOO, (struct maq_span){0},
                     "the zero-GPU device does, whether a program uses a GPU or not: leave out --libraries",
                     "nobody answered for gloo's ranks that are not there");
    r->owner->launch.store_requests = r->store.requests;
    r->owner->launch.invented = r->store.invented;
    return maq_launch_end(r->owner, &r->workspace);
}

/* A rank that was seen to wait for somebody who is not there, and what is done about it. */
static void say_stalled(const struct run *r, uint32_t rank, struct maq_diag *diag)
{
    const struct maq_launch_opts *o = r->workspace.opts;
    if (r->together)
        maq_diag_add(diag, MAQ_WARNING, MAQ_CODE_LAUNCH_STALLED, (struct maq_span){0},
                     "--stall sets the limit; --all runs them so from the beginning",
                     "rank %u did nothing for %g s: it waits for ranks that are not there, by sockets or memory of its "
                     "own; all %u ranks were run at once",
                     rank, o->stall_s, r->workspace.world);
    else
        maq_diag_add(diag, MAQ_WARNING, MAQ_CODE_LAUNCH_STALLED, (struct maq_span){0},
                     "--all runs the ranks of a small job at once",
                     "rank %u did nothing for %g s: it waits for ranks that are not there, by sockets or memory of its "
                     "own",
                     rank, o->stall_s);
}

/* A rank that failed when it had read what others were taken to say, and what is done about it. */
static void say_failed(const struct run *r, uint32_t rank, struct maq_diag *diag)
{
    const uint32_t world = r->workspace.world;
    if (r->together)
        maq_diag_add(diag, MAQ_WARNING, MAQ_CODE_LAUNCH_SUPPOSED, (struct maq_span){0}, "--alone runs nobody else",
                     "rank %u failed, and had read what ranks which did not run were taken to say; all %u ranks "
                     "were run at once",
                     rank, world);
    else
        maq_diag_add(diag, MAQ_WARNING, MAQ_CODE_LAUNCH_SUPPOSED, (struct maq_span){0},
                     world <= MAQ_LAUNCH_ALL_MAX ? "--all runs the ranks of a small job at once"
                                                 : "in a job of fewer ranks all are run at once then",
                     "rank %u failed, and had read what ranks which did not run were taken to say, as another "
                     "one does: it may have needed what each of them says",
                     rank);
}

/* That it was run twice, and the first one's words are to be passed over. */
static void say_samples(const struct run *r, struct maq_diag *diag)
{
    maq_diag_add(diag, MAQ_WARNING, MAQ_CODE_LAUNCH_SUPPOSED, (struct maq_span){0}, "--alone runs nobody else",
                 "rank %u failed, and had read what ranks which did not run were taken to say; the program began anew, "
                 "by what a "
                 "sample of them say",
                 r->before.samples_for);
}

/* A large job whose groups may have other members than was guessed. */
static void say_groups(const struct run *r, struct maq_diag *diag)
{
    maq_diag_add(diag, MAQ_WARNING, MAQ_CODE_LAUNCH_SUPPOSED, (struct maq_span){0},
                 "TORCH_DIST_USE_NCCL2=0 has PyTorch's groups begin with ids, whose size each member is told",
                 "rank %u failed, and had split communicators by what ranks which did not run were taken to say: a "
                 "group may have another size",
                 r->workspace.opts->rank);
}

/* Ranks at once of which one failed and others had to be ended. Its status is that of the run. */
static void say_peer_failed(struct run *r, struct maq_diag *diag)
{
    const struct maq_live *failed = maq_live_failed_first(r->list, r->n);
    uint32_t ended = 0;
    for (uint32_t i = 0; i < r->n; i++)
        ended += r->live[i].peer_failed;
    if (!failed || ended == 0)
        return;
    maq_diag_add(diag, MAQ_WARNING, MAQ_CODE_LAUNCH_PEER_FAILED, (struct maq_span){0}, NULL,
                 "rank %u failed with exit status %d; %u others, which waited on, were ended", failed->opts.rank,
                 maq_live_exit_status(failed), ended);
    r->owner->launch.status = maq_live_exit_status(failed);
}

/* The result, also of programs that were ended. */
static enum maq_status end_of(struct run *r, enum maq_status status, struct maq_diag *diag)
{
    if (status != MAQ_OK && status != MAQ_LIMIT)
        return status;
    for (uint32_t i = 0; i < r->n && status == MAQ_OK; i++)
        if (r->live[i].late)
            status = maq_diag_fail(MAQ_LIMIT, diag, MAQ_CODE_LAUNCH_TIMEOUT, (struct maq_span){0},
                                   "--timeout sets the limit", "the program did not end in %g s",
                                   r->workspace.opts->timeout_s);
    for (uint32_t i = 0; i < r->n; i++)
        if (r->live[i].workspace && r->live[i].stalled)
            say_stalled(r, r->live[i].opts.rank, diag);
    enum maq_status finished = finish(r, diag);
    if (all_run(r))
        say_peer_failed(r, diag);
    if (!r->together && r->before.workspace && r->before.together_for != MAQ_REC_NONE && r->owner->launch.status != 0)
        say_failed(r, r->before.together_for, diag);
    else if (!r->together && r->before.workspace && r->before.samples)
        say_samples(r, diag);
    else if (!r->together && r->before.workspace && r->before.groups && r->owner->launch.status != 0)
        say_groups(r, diag);
    return status != MAQ_OK ? status : finished;
}

static enum maq_status run_all(struct run *r, struct maq_diag *diag)
{
    struct maq_launch_progress at = {.phase = "all ranks"};
    r->n = r->workspace.world;
    r->live = MAQ_ARENA_NEW(&r->workspace.arena, struct maq_live, r->n);
    r->list = MAQ_ARENA_NEW(&r->workspace.arena, struct maq_live *, r->n);
    if (!r->live || !r->list)
        return MAQ_NO_MEMORY;
    MAQ_TRY(maq_store_open(&r->store, &r->workspace.loop, r->workspace.world, r->n, false, diag));
    MAQ_TRY(start(r, diag));
    return end_of(r, maq_workspace_serve(&r->workspace, r->list, r->n, true, &at, diag), diag);
}

/* All ranks for one: what was run until here is forgotten. */
static enum maq_status run_together(struct run *r, struct maq_diag *diag)
{
    const struct maq_prerequisites before = r->before;
    maq_prerequisites_close(&r->before);
    r->before.workspace = NULL;
    maq_price_server_fini(&r->workspace.asks);
    maq_price_server_init(&r->workspace.asks, &r->workspace.pricer, r->workspace.world);
    r->together = true;
    const bool failed = before.together == MAQ_TOGETHER_SUPPOSED;
    if (failed)
        say_failed(r, before.together_for, diag);
    else if (before.together_for != MAQ_REC_NONE)
        say_stalled(r, before.together_for, diag);
    enum maq_status status = run_all(r, diag);
    if (!failed || (status == MAQ_OK && r->owner->launch.status == 0)) /* else it failed for a reason of its own */
        maq_prerequisites_keep_together(&before);
    return status;
}

static enum maq_status run(struct run *r, struct maq_diag *diag)
{
    const struct maq_launch_opts *o = r->workspace.opts;
    char phase[32];
    MAQ_TRY(maq_launch_begin(&r->owner, &r->workspace, o->all ? r->workspace.world : 1, diag));
    if (o->all)
        return run_all(r, diag);
    if (r->workspace.trace)
        MAQ_TRY(find_place(r, diag));
    r->n = 1;
    r->live = MAQ_ARENA_NEW(&r->workspace.arena, struct maq_live, r->n);
    r->list = MAQ_ARENA_NEW(&r->workspace.arena, struct maq_live *, r->n);
    if (!r->live || !r->list)
        return MAQ_NO_MEMORY;
    if (looks_ahead(r)) {
        enum maq_status status = run_ahead(r, diag);
        const bool together = status == MAQ_OK && r->before.together != MAQ_TOGETHER_NOT;
        return together ? run_together(r, diag) : end_of(r, status, diag);
    }
    MAQ_TRY(maq_store_open(&r->store, &r->workspace.loop, r->workspace.world, r->n, true, diag));
    MAQ_TRY(start(r, diag));
    maq__snprintf(phase, sizeof phase, "rank %u", o->rank);
    struct maq_launch_progress at = {.phase = phase};
    return end_of(r, maq_workspace_serve(&r->workspace, r->list, r->n, true, &at, diag), diag);
}

enum maq_status maq_launch_run(struct maq_launch **out, const struct maq_launch_opts *opts, struct maq_diag *diag)
{
    struct run r = {.store.server.fd = -1};
    *out = NULL;
    enum maq_status status = maq_workspace_open(&r.workspace, opts, diag);
    if (status == MAQ_OK)
        status = run(&r, diag);
    for (uint32_t i = 0; i < r.n && r.live; i++)
        if (r.live[i].workspace)
            maq_live_end(&r.live[i]);
    maq_store_close(&r.store);
    if (r.before.workspace)
        maq_prerequisites_close(&r.before);
    maq_workspace_close(&r.workspace);
    if (r.owner && (status == MAQ_OK || (status == MAQ_LIMIT && r.owner->launch.asked)))
        *out = &r.owner->launch;
    else if (r.owner)
        maq_launch_free(&r.owner->launch);
    return status;
}
