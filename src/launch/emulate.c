/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulate.c - maq_launch_emulate(): chosen ranks run for real while all others are replayed.
 *
 * Live ranks are processes of the program; the replay of the captured job (replay/live.h) is a thread of this process. They meet in
 * one shared segment (shim/shm.h) by virtual times, so the wall time of either does not matter. Exchanges and keys of the store
 * that live ranks need from the others are answered from the capture.
 *
 * A communicator is identified by its name, which the capture has from members that ran. A live rank that did not run in the
 * capture is run alone first: its communicators, in the order of first use, are those that the capture inferred for it.
 *
 * The whole job is then replayed with the same edits, for comparison: a live rank that does what its class did ends at the same
 * time. Edits apply to replayed ranks only.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "capture/build.h"
#include "launch/codes.h"
#include "launch/contributions.h"
#include "launch/result.h"
#include "launch/wait_table.h"
#include "maquette/replay.h"
#include "replay/live.h"

#define LIVE_MAX 256u

struct emulation {
    const struct maq_launch_emulate_opts *opts;
    struct maq_launch_opts run;
    struct maq_workspace workspace;
    struct maq_capture *job;
    struct maq_contributions said;
    struct maq_store store;
    struct maq_live *live;
    struct maq_live **list;
    struct maq_edit *edits;
    uint32_t n_edits;
    struct maq_shm meet;
    const char *segment;
    struct maq_launch_owner *owner;
    uint32_t n; /* live ranks that were started */
};

/* ---- the job ---- */

static enum maq_status check_ranks(const struct emulation *e, struct maq_diag *diag)
{
    const struct maq_launch_emulate_opts *o = e->opts;
    if (o->n_ranks == 0 || o->n_ranks > LIVE_MAX)
        return maq_diag_fail(MAQ_USAGE, diag, MAQ_CODE_LAUNCH_OPTION, (struct maq_span){0}, "--rank 0,4095",
                             "%u live ranks: from 1 to %u can be", o->n_ranks, LIVE_MAX);
    for (uint32_t i = 0; i < o->n_ranks; i++) {
        if (o->rank[i] >= e->job->world)
            return maq_diag_fail(MAQ_USAGE, diag, MAQ_CODE_LAUNCH_OPTION, (struct maq_span){0},
                                 "ranks are counted from 0", "there is no rank %u in a world of %u", o->rank[i],
                                 e->job->world);
        for (uint32_t k = 0; k < i; k++)
            if (o->rank[k] == o->rank[i])
                return maq_diag_fail(MAQ_USAGE, diag, MAQ_CODE_LAUNCH_OPTION, (struct maq_span){0}, NULL,
                                     "rank %u is to live twice", o->rank[i]);
    }
    return MAQ_OK;
}

static enum maq_status open_job(struct emulation *e, struct maq_diag *diag)
{
    const struct maq_launch_emulate_opts *o = e->opts;
    MAQ_TRY(maq_capture_read(&e->job, &o->path, 1, diag));
    MAQ_TRY(check_ranks(e, diag));
    e->run = o->run;
    e->run.world = e->job->world;
    e->run.per_node = e->job->per_node;
    e->run.rank = 0;
    e->run.all = false;
    if (!e->run.cluster && !e->run.device)
        e->run.device = e->job->device;
    MAQ_TRY(maq_workspace_open(&e->workspace, &e->run, diag));
    const char *peers = maq_arena_printf(&e->workspace.arena, "%s.peers", o->path);
    if (!peers)
        return maq_no_memory(diag, "an emulation");
    MAQ_TRY(maq_contributions_add_file(&e->said, peers, diag));
    maq_contributions_settle(&e->said);
    return MAQ_OK;
}

/* ---- names of communicators that were inferred ---- */

static enum maq_status run_alone(struct emulation *e, uint32_t rank, const char *trace, const char *peers,
                                 struct maq_diag *diag)
{
    struct maq_store store;
    struct maq_live live = {0}, *list = &live;
    struct maq_launch_progress at = {.phase = "a live rank alone, for the names of its communicators"};
    const char *log = maq_arena_printf(&e->workspace.arena, "%s.log", trace);
    struct maq_live_opts opts = {.rank = rank, .store = &store, .trace = trace, .peers = peers, .output = log};
    if (!log)
        return maq_no_memory(diag, "an emulation");
    enum maq_status status = maq_store_open(&store, &e->workspace.loop, e->job->world, 1, false, diag);
    if (status == MAQ_OK) {
        maq_contributions_give(&e->said, &store, rank);
        status = maq_live_start(&live, &e->workspace, &opts, diag);
    }
    if (status == MAQ_OK)
        status = maq_workspace_serve(&e->workspace, &list, 1, true, &at, diag);
    if (live.workspace)
        maq_live_end(&live);
    maq_store_close(&store);
    return status;
}

/* The names that rank's communicators have in its own trace, for those that the job has for it. */
static enum maq_status take_names(struct emulation *e, uint32_t rank, const char *trace, struct maq_diag *diag)
{
    const struct maq_rank_class *class = &e->job->class_of_ranks[e->job->class_of[rank]], *own;
    struct maq_capture *alone = NULL;
    uint32_t at = 0;
    if (access(trace, F_OK) != 0)
        return MAQ_OK;
    MAQ_TRY(maq_capture_of_ranks(&alone, &trace, 1, diag));
    own = &alone->class_of_ranks[0];
    while (at < class->n_ranks && class->rank[at] != rank)
        at++;
    for (uint32_t k = 0; at < class->n_ranks && own->n_comms == class->n_comms && k < own->n_comms; k++) {
        const struct maq_captured_comm *real = &alone->comm[own->comm[k]],
                                       *comm = &e->job->comm[class->comm[at * class->n_comms + k]];
        if (real->size == comm->size) /* this copy of the job is private */
            ((struct maq_captured_comm *)(uintptr_t)comm)->lineage = real->lineage;
    }
    maq_capture_free(alone);
    return MAQ_OK;
}

static enum maq_status name_communicators(struct emulation *e, const char *peers, struct maq_diag *diag)
{
    for (uint32_t i = 0; i < e->opts->n_ranks; i++) {
        uint32_t rank = e->opts->rank[i];
        const char *trace = maq_arena_printf(&e->workspace.arena, "%s/alone-%u.trace", e->workspace.folder, rank);
        if (e->job->class_of[rank] == UINT32_MAX || maq_contributions_ran(&e->said, rank))
            continue;
        if (!trace)
            return maq_no_memory(diag, "an emulation");
        MAQ_TRY(run_alone(e, rank, trace, peers, diag));
        MAQ_TRY(take_names(e, rank, trace, diag));
    }
    return MAQ_OK;
}

/* An edit without one rank: what is before it and what is behind it. Returns how many are left of it. */
static uint32_t without(struct maq_edit out[2], const struct maq_edit *edit, uint32_t rank)
{
    uint32_t stride = edit->stride > 0 ? edit->stride : 1, n = 0, at = (rank - edit->first) / stride;
    if (rank < edit->first || (rank - edit->first) % stride != 0 || at >= edit->count) {
        out[0] = *edit;
        return 1;
    }
    if (at > 0) {
        out[n] = *edit;
        out[n++].count = at;
    }
    if (at + 1 < edit->count) {
        out[n] = *edit;
        out[n].first = rank + stride;
        out[n++].count = edit->count - at - 1;
    }
    return n;
}

/* Edits of live ranks are taken out. */
static enum maq_status read_edits(struct emulation *e, struct maq_diag *diag)
{
    const struct maq_launch_emulate_opts *o = e->opts;
    e->edits = MAQ_ARENA_NEW(&e->workspace.arena, struct maq_edit, (size_t)o->n_slow * (o->n_ranks + 1) + 1);
    if (!e->edits)
        return maq_no_memory(diag, "an emulation");
    for (uint32_t i = 0; i < o->n_slow; i++) {
        uint32_t from = e->n_edits++;
        MAQ_TRY(maq_edit_slow(&e->edits[from], o->slow[i], e->job, diag));
        for (uint32_t k = 0; k < o->n_ranks; k++)
            for (uint32_t j = from, end = e->n_edits; j < end; j++) {
                struct maq_edit left[2] = {e->edits[j], e->edits[j]};
                uint32_t n = without(left, &e->edits[j], o->rank[k]);
                e->edits[j] = left[0];
                if (n == 0)
                    e->edits[j].count = 0;
                if (n == 2)
                    e->edits[e->n_edits++] = left[1];
            }
    }
    return MAQ_OK;
}

/* ---- the segment and the live ranks ---- */

static enum maq_status open_segment(struct emulation *e, struct maq_diag *diag)
{
    struct maq_shm_opts opts = {
        .world = e->job->world, .owner = (uint32_t)getpid(), .live = e->opts->rank, .n_live = e->opts->n_ranks};
    e->segment = maq_arena_printf(&e->workspace.arena, "%s/meet", e->workspace.folder);
    int error = e->segment ? maq_shm_create(e->segment, &opts) : ENOMEM;
    if (error == 0)
        error = maq_shm_open(&e->meet, e->segment);
    return error == 0 ? MAQ_OK
                      : maq_diag_fail(MAQ_IO, diag, MAQ_CODE_LAUNCH_FOLDER, (struct maq_span){0}, NULL,
                                      "cannot make the segment in which ranks meet: %s", strerror(error));
}

static bool on_gpu(const struct emulation *e)
{
    return e->opts->run.libraries == MAQ_LAUNCH_GPU;
}

/* On a real GPU the peers are a wait table. */
static enum maq_status write_waits(struct emulation *e, struct maq_live_opts *live, struct maq_diag *diag)
{
    live->waits = maq_arena_printf(&e->workspace.arena, "%s/waits-%u", e->workspace.folder, live->rank);
    if (!live->waits)
        return maq_no_memory(diag, "an emulation");
    return maq_wait_table_write(live->waits, e->job, live->rank, e->edits, e->n_edits, diag);
}

/* What live ranks hear, and the names by which the segment or the table knows their communicators. */
static enum maq_status prepare(struct emulation *e, const char **peers, struct maq_diag *diag)
{
    *peers = maq_arena_printf(&e->workspace.arena, "%s/peers", e->workspace.folder);
    e->live = MAQ_ARENA_NEW(&e->workspace.arena, struct maq_live, e->opts->n_ranks);
    e->list = MAQ_ARENA_NEW(&e->workspace.arena, struct maq_live *, e->opts->n_ranks);
    if (!*peers || !e->live || !e->list)
        return maq_no_memory(diag, "an emulation");
    MAQ_TRY(maq_contributions_write(&e->said, *peers, diag));
    return name_communicators(e, *peers, diag);
}

static enum maq_status open_store(struct emulation *e, const uint32_t *ranks, uint32_t n, struct maq_diag *diag)
{
    MAQ_TRY(maq_store_open(&e->store, &e->workspace.loop, e->job->world, n, false, diag));
    e->store.live_rank = ranks;
    maq_contributions_give(&e->said, &e->store, n == 1 ? ranks[0] : UINT32_MAX);
    return MAQ_OK;
}

static enum maq_status start(struct emulation *e, uint32_t i, const char *peers, struct maq_diag *diag)
{
    const char *trace =
        maq_arena_printf(&e->workspace.arena, "%s/rank-%u.trace", e->workspace.folder, e->opts->rank[i]);
    struct maq_live_opts live = {
        .rank = e->opts->rank[i], .store = &e->store, .trace = trace, .peers = peers, .meet = e->segment};
    if (!trace)
        return maq_no_memory(diag, "an emulation");
    if (on_gpu(e))
        MAQ_TRY(write_waits(e, &live, diag));
    MAQ_TRY(maq_live_start(&e->live[i], &e->workspace, &live, diag));
    e->list[i] = &e->live[i];
    e->n++;
    return MAQ_OK;
}

/* ---- the others ---- */

struct others {
    struct emulation *e;
    struct maq_diag *diag; /* its own: a thread */
    struct maq_replay *replay;
    enum maq_status status;
    atomic_bool live_ended, done;
};

static void *replay_others(void *user)
{
    struct others *o = user;
    struct maq_replay_opts opts = MAQ_REPLAY_OPTS_INIT;
    opts.edit = o->e->edits;
    opts.n_edits = o->e->n_edits;
    o->status = maq_replay_live(&o->replay, o->e->job, o->e->opts->rank, o->e->opts->n_ranks, &o->e->meet,
                                &o->live_ended, &opts, o->diag);
    if (o->status != MAQ_OK)
        maq_shm_stop(&o->e->meet); /* live ranks would wait for ever */
    atomic_store(&o->done, true);
    return NULL;
}

static void take_words(struct maq_diag *to, const struct maq_diag *from)
{
    for (size_t i = 0; from && i < maq_diag_count(from); i++) {
        const struct maq_diag_item *item = maq_diag_at(from, i);
        char hint[512];
        size_t n = item->hint.len < sizeof hint - 1 ? item->hint.len : sizeof hint - 1;
        memcpy(hint, item->hint.len > 0 ? item->hint.ptr : "", n);
        hint[n] = '\0';
        maq_diag_add(to, item->severity, item->code, (struct maq_span){0}, n > 0 ? hint : NULL, "%.*s",
                     (int)item->msg.len, item->msg.ptr);
    }
}

static bool all_well(const struct emulation *e)
{
    for (uint32_t i = 0; i < e->n; i++)
        if (e->live[i].end.error != 0 || e->live[i].end.status != 0 || e->live[i].late || e->live[i].lost)
            return false;
    return true;
}

/*
 * Runs live ranks and the replay until both have ended. Where a live rank failed, the replay is stopped, since it would
 * wait for it.
 */
static enum maq_status replay_together(struct emulation *e, struct maq_diag *diag)
{
    struct others others = {.e = e, .diag = maq_diag_new()};
    struct maq_launch_progress at = {.phase = "live ranks among replayed ones"};
    pthread_t thread;
    if (!others.diag || pthread_create(&thread, NULL, replay_others, &others) != 0) {
        maq_diag_free(others.diag);
        return maq_no_memory(diag, "an emulation");
    }
    enum maq_status status = maq_workspace_serve(&e->workspace, e->list, e->n, true, &at, diag);
    if (status != MAQ_OK || !all_well(e))
        maq_shm_stop(&e->meet);
    atomic_store(&others.live_ended, true);
    while (!atomic_load(&others.done))
        maq_loop_turn(&e->workspace.loop, 10);
    pthread_join(thread, NULL);
    take_words(diag, others.diag);
    maq_diag_free(others.diag);
    maq_replay_free(others.replay);
    if (status == MAQ_OK && others.status != MAQ_OK && others.status != MAQ_NO)
        return others.status;
    if (status == MAQ_OK && others.status == MAQ_NO && all_well(e))
        maq_diag_add(diag, MAQ_WARNING, MAQ_CODE_LAUNCH_UNSTABLE, (struct maq_span){0},
                     "a live rank that does something else than it did in the capture leaves them waiting",
                     "the replayed ranks did not come to their end");
    return status;
}

static enum maq_status replay_all(struct emulation *e, struct maq_diag *diag)
{
    const char *peers;
    MAQ_TRY(open_segment(e, diag));
    MAQ_TRY(prepare(e, &peers, diag));
    MAQ_TRY(open_store(e, e->opts->rank, e->opts->n_ranks, diag));
    for (uint32_t i = 0; i < e->opts->n_ranks; i++)
        MAQ_TRY(start(e, i, peers, diag));
    return replay_together(e, diag);
}

/*
 * On a GPU a rank's peers are in its table, live ones too, so nobody has to be there with it: ranks run one after the other. Two at
 * once would share the device, and each would take the other's kernels for its own slowness.
 */
static enum maq_status play_in_turn(struct emulation *e, struct maq_diag *diag)
{
    struct maq_launch_progress at = {.phase = "live ranks on the GPU"};
    uint64_t requests = 0;
    uint32_t invented = 0;
    const char *peers;
    MAQ_TRY(prepare(e, &peers, diag));
    for (uint32_t i = 0; i < e->opts->n_ranks; i++) {
        MAQ_TRY(open_store(e, &e->opts->rank[i], 1, diag));
        MAQ_TRY(start(e, i, peers, diag));
        MAQ_TRY(maq_workspace_serve(&e->workspace, &e->list[i], 1, true, &at, diag));
        requests += e->store.requests;
        invented += e->store.invented;
        maq_live_end(&e->live[i]);
        maq_store_close(&e->store);
    }
    e->store.requests = requests;
    e->store.invented = invented;
    return MAQ_OK;
}

/* ---- what came of it ---- */

/* The shape of a class's program (capture/build.h); 0 when out of memory. */
static uint64_t shape_of(const struct maq_capture *job, const struct maq_rank_class *class, struct maq_arena *scratch)
{
    uint64_t *op = MAQ_ARENA_NEW(scratch, uint64_t, job->n_ops);
    for (uint32_t i = 0; op && i < job->n_ops; i++)
        op[i] = maq_capture_op_shape(&job->op[i]);
    return op ? maq_capture_signature(class->record, class->n_records, op) : 0;
}

/*
 * Compares the live rank's trace with its class in the capture; no trace at all counts as another program. On a GPU the trace is
 * CUPTI's, whose kernels have names that the zero-GPU device does not know: such programs are not compared.
 */
static enum maq_status compare(struct emulation *e, uint32_t i, struct maq_launch_live *out, struct maq_diag *diag)
{
    uint32_t rank = e->opts->rank[i];
    const struct maq_rank_class *class = &e->job->class_of_ranks[e->job->class_of[rank]], *own;
    struct maq_capture *alone = NULL;
    const char *path = e->live[i].opts.trace;
    out->compared = !on_gpu(e);
    out->captured_records = class->n_records;
    out->captured_peak_bytes = class->peak_bytes;
    if (access(path, F_OK) != 0) {
        out->differs = out->compared && class->n_records > 0;
        return MAQ_OK;
    }
    MAQ_TRY(maq_capture_of_ranks(&alone, &path, 1, diag));
    own = &alone->class_of_ranks[0];
    out->records = own->n_records;
    out->peak_bytes = own->peak_bytes;
    out->differs =
        out->compared && shape_of(alone, own, &e->workspace.arena) != shape_of(e->job, class, &e->workspace.arena);
    maq_capture_free(alone);
    return MAQ_OK;
}

static enum maq_status report(struct emulation *e, struct maq_diag *diag)
{
    struct maq_replay_opts opts = MAQ_REPLAY_OPTS_INIT;
    struct maq_replay *replay = NULL;
    MAQ_TRY(maq_launch_begin(&e->owner, &e->workspace, e->n, diag));
    struct maq_launch_live *live = MAQ_ARENA_NEW(&e->owner->arena, struct maq_launch_live, e->n);
    if (!live)
        return maq_no_memory(diag, "an emulation");
    opts.edit = e->edits;
    opts.n_edits = e->n_edits;
    MAQ_TRY(maq_capture_replay(&replay, e->job, &opts, diag));
    enum maq_status status = MAQ_OK;
    for (uint32_t i = 0; i < e->n && status == MAQ_OK; i++) {
        live[i] =
            (struct maq_launch_live){.rank = e->opts->rank[i], .virtual_ns = on_gpu(e) ? 0 : e->live[i].port.ended_ns};
        live[i].replayed_ns = (uint64_t)replay->end_ns[live[i].rank];
        status = maq_live_result(&e->owner->rank[i], &e->live[i], diag);
        if (live[i].virtual_ns == 0) /* on a GPU, whose clock is its own: what its trace adds up to */
            live[i].virtual_ns = e->owner->rank[i].virtual_ns;
        if (status == MAQ_OK)
            status = compare(e, i, &live[i], diag);
    }
    maq_replay_free(replay);
    MAQ_TRY(status);
    e->owner->launch.live = live;
    e->owner->launch.peers = e->job->world - e->n;
    e->owner->launch.store_requests = e->store.requests;
    e->owner->launch.invented = e->store.invented;
    return maq_launch_end(e->owner, &e->workspace);
}

static enum maq_status emulate(struct emulation *e, struct maq_diag *diag)
{
    MAQ_TRY(open_job(e, diag));
    MAQ_TRY(read_edits(e, diag));
    MAQ_TRY(on_gpu(e) ? play_in_turn(e, diag) : replay_all(e, diag));
    return report(e, diag);
}

enum maq_status maq_launch_emulate(struct maq_launch **out, const struct maq_launch_emulate_opts *opts,
                                   struct maq_diag *diag)
{
    struct emulation e = {.opts = opts, .store.server.fd = -1};
    *out = NULL;
    maq_contributions_init(&e.said);
    enum maq_status status = emulate(&e, diag);
    for (uint32_t i = 0; i < e.n; i++)
        maq_live_end(&e.live[i]);
    maq_store_close(&e.store);
    maq_shm_close(&e.meet);
    maq_contributions_fini(&e.said);
    maq_capture_free(e.job);
    maq_workspace_close(&e.workspace);
    if (e.owner && status == MAQ_OK)
        *out = &e.owner->launch;
    else if (e.owner)
        maq_launch_free(&e.owner->launch);
    return status;
}
