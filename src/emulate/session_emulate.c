/*
 * session_emulate.c - chosen ranks live among the replay of all others: maquette/session.h.
 *
 * Live ranks are processes of the program; the replay of the captured job (replay_live.h) is a thread of ours. They meet in one segment
 * (shim/meet.h), where an arrival is a virtual time, so it does not matter how long either takes. What live ranks ask of the others
 * before they communicate (exchanges, keys of the store) is answered with what the capture recorded.
 *
 * The same job is then replayed as a whole, with the same edits: a live rank that does what its class did ends at the same time.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "emulate/capture_build.h"
#include "emulate/replay_live.h"
#include "emulate/session_codes.h"
#include "emulate/session_peers.h"
#include "emulate/session_result.h"
#include "maquette/replay.h"

#define LIVE_MAX 256u
#define GRACE_S 60.0 /* for the replay to come to its end after the live ranks did */

struct emulation {
    const struct maq_session_emulate_opts *opts;
    struct maq_session_opts run;
    struct maq_room room;
    struct maq_capture *job;
    struct maq_said_table said;
    struct maq_store store;
    struct maq_live *live;
    struct maq_live **list;
    struct maq_edit *edits;
    struct maq_meet meet;
    const char *segment;
    struct maq_session_box *box;
    uint32_t n;
};

static enum maq_status no_memory(struct maq_diag *diag)
{
    return maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_SESSION_LIMIT, (struct maq_span){0}, NULL,
                         "out of memory for an emulation");
}

/* ---- the job ---- */

static enum maq_status check_ranks(const struct emulation *e, struct maq_diag *diag)
{
    const struct maq_session_emulate_opts *o = e->opts;
    if (o->n_ranks == 0 || o->n_ranks > LIVE_MAX)
        return maq_diag_fail(MAQ_USAGE, diag, MAQ_CODE_SESSION_OPTION, (struct maq_span){0}, "--rank 0,4095",
                             "%u live ranks: from 1 to %u can be", o->n_ranks, LIVE_MAX);
    for (uint32_t i = 0; i < o->n_ranks; i++) {
        if (o->rank[i] >= e->job->world)
            return maq_diag_fail(MAQ_USAGE, diag, MAQ_CODE_SESSION_OPTION, (struct maq_span){0},
                                 "ranks are counted from 0", "there is no rank %u in a world of %u", o->rank[i],
                                 e->job->world);
        for (uint32_t k = 0; k < i; k++)
            if (o->rank[k] == o->rank[i])
                return maq_diag_fail(MAQ_USAGE, diag, MAQ_CODE_SESSION_OPTION, (struct maq_span){0}, NULL,
                                     "rank %u is to live twice", o->rank[i]);
    }
    return MAQ_OK;
}

static enum maq_status open_job(struct emulation *e, struct maq_diag *diag)
{
    const struct maq_session_emulate_opts *o = e->opts;
    MAQ_TRY(maq_capture_read(&e->job, &o->path, 1, diag));
    MAQ_TRY(check_ranks(e, diag));
    e->run = o->run;
    e->run.world = e->job->world;
    e->run.per_node = e->job->per_node;
    e->run.rank = 0;
    e->run.all = false;
    if (!e->run.cluster && !e->run.device)
        e->run.device = e->job->device;
    MAQ_TRY(maq_room_open(&e->room, &e->run, diag));
    const char *peers = maq_arena_printf(&e->room.arena, "%s.peers", o->path);
    e->edits = MAQ_ARENA_NEW(&e->room.arena, struct maq_edit, o->n_slow);
    if (!peers || !e->edits)
        return no_memory(diag);
    for (uint32_t i = 0; i < o->n_slow; i++)
        MAQ_TRY(maq_edit_slow(&e->edits[i], o->slow[i], e->job, diag));
    MAQ_TRY(maq_said_add_file(&e->said, peers, diag));
    maq_said_settle(&e->said);
    return MAQ_OK;
}

/* ---- the segment and the live ranks ---- */

static enum maq_status open_segment(struct emulation *e, struct maq_diag *diag)
{
    struct maq_meet_opts opts = {
        .world = e->job->world, .owner = (uint32_t)getpid(), .live = e->opts->rank, .n_live = e->opts->n_ranks};
    e->segment = maq_arena_printf(&e->room.arena, "%s/meet", e->room.folder);
    int error = e->segment ? maq_meet_create(e->segment, &opts) : ENOMEM;
    if (error == 0)
        error = maq_meet_open(&e->meet, e->segment);
    return error == 0 ? MAQ_OK
                      : maq_diag_fail(MAQ_IO, diag, MAQ_CODE_SESSION_FOLDER, (struct maq_span){0}, NULL,
                                      "cannot make the segment in which ranks meet: %s", strerror(error));
}

static enum maq_status start(struct emulation *e, struct maq_diag *diag)
{
    const char *peers = maq_arena_printf(&e->room.arena, "%s/peers", e->room.folder);
    uint32_t n = e->opts->n_ranks;
    e->live = MAQ_ARENA_NEW(&e->room.arena, struct maq_live, n);
    e->list = MAQ_ARENA_NEW(&e->room.arena, struct maq_live *, n);
    if (!peers || !e->live || !e->list)
        return no_memory(diag);
    MAQ_TRY(maq_said_write(&e->said, peers, diag));
    MAQ_TRY(maq_store_open(&e->store, &e->room.loop, e->job->world, n, false, diag));
    maq_said_give(&e->said, &e->store, n == 1 ? e->opts->rank[0] : UINT32_MAX);
    for (uint32_t i = 0; i < n; i++) {
        const char *trace = maq_arena_printf(&e->room.arena, "%s/rank-%u.trace", e->room.folder, e->opts->rank[i]);
        struct maq_live_opts live = {
            .rank = e->opts->rank[i], .store = &e->store, .trace = trace, .peers = peers, .meet = e->segment};
        if (!trace)
            return no_memory(diag);
        MAQ_TRY(maq_live_start(&e->live[i], &e->room, &live, diag));
        e->list[i] = &e->live[i];
        e->n++;
    }
    return MAQ_OK;
}

/* ---- the others ---- */

struct others {
    struct emulation *e;
    struct maq_diag *diag; /* its own: a thread */
    struct maq_replay *replay;
    enum maq_status status;
    atomic_bool done;
};

static void *play(void *user)
{
    struct others *o = user;
    struct maq_replay_opts opts = MAQ_REPLAY_OPTS_INIT;
    opts.edit = o->e->edits;
    opts.n_edits = o->e->opts->n_slow;
    o->status =
        maq_replay_live(&o->replay, o->e->job, o->e->opts->rank, o->e->opts->n_ranks, &o->e->meet, &opts, o->diag);
    if (o->status != MAQ_OK)
        maq_meet_stop(&o->e->meet); /* live ranks would wait for ever */
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

/* Live ranks and the others, until both have ended. Where a live rank failed, the others would wait for it. */
static enum maq_status play_together(struct emulation *e, struct maq_diag *diag)
{
    struct others others = {.e = e, .diag = maq_diag_new()};
    struct maq_session_progress at = {.phase = "live ranks among replayed ones"};
    pthread_t thread;
    if (!others.diag || pthread_create(&thread, NULL, play, &others) != 0) {
        maq_diag_free(others.diag);
        return no_memory(diag);
    }
    enum maq_status status = maq_room_serve(&e->room, e->list, e->n, true, &at, diag);
    double until = maq_room_age(&e->room) + (status == MAQ_OK && all_well(e) ? GRACE_S : 0);
    while (!atomic_load(&others.done) && maq_room_age(&e->room) < until)
        maq_loop_turn(&e->room.loop, 10);
    maq_meet_stop(&e->meet);
    pthread_join(thread, NULL);
    take_words(diag, others.diag);
    maq_diag_free(others.diag);
    maq_replay_free(others.replay);
    if (status == MAQ_OK && others.status != MAQ_OK && others.status != MAQ_NO)
        return others.status;
    if (status == MAQ_OK && others.status == MAQ_NO && all_well(e))
        maq_diag_add(diag, MAQ_WARNING, MAQ_CODE_SESSION_UNSTABLE, (struct maq_span){0},
                     "a live rank that does something else than it did in the capture leaves them waiting",
                     "the replayed ranks did not come to their end");
    return status;
}

/* ---- what came of it ---- */

/* The live rank's trace beside the class that the capture has for it. */
static enum maq_status compare(struct emulation *e, uint32_t i, struct maq_session_live *out, struct maq_diag *diag)
{
    uint32_t rank = e->opts->rank[i];
    const struct maq_rank_class *class = &e->job->class_of_ranks[e->job->class_of[rank]], *own;
    struct maq_capture *alone = NULL;
    const char *path = e->live[i].opts.trace;
    if (access(path, F_OK) != 0)
        return MAQ_OK;
    MAQ_TRY(maq_capture_of_ranks(&alone, &path, 1, diag));
    own = &alone->class_of_ranks[0];
    out->records = own->n_records;
    out->captured_records = class->n_records;
    out->peak_bytes = own->peak_bytes;
    out->captured_peak_bytes = class->peak_bytes;
    out->differs = own->signature != class->signature;
    maq_capture_free(alone);
    return MAQ_OK;
}

static enum maq_status report(struct emulation *e, struct maq_diag *diag)
{
    struct maq_replay_opts opts = MAQ_REPLAY_OPTS_INIT;
    struct maq_replay *replay = NULL;
    MAQ_TRY(maq_session_begin(&e->box, &e->room, e->n, diag));
    struct maq_session_live *live = MAQ_ARENA_NEW(&e->box->arena, struct maq_session_live, e->n);
    if (!live)
        return no_memory(diag);
    opts.edit = e->edits;
    opts.n_edits = e->opts->n_slow;
    MAQ_TRY(maq_capture_replay(&replay, e->job, &opts, diag));
    enum maq_status status = MAQ_OK;
    for (uint32_t i = 0; i < e->n && status == MAQ_OK; i++) {
        live[i] = (struct maq_session_live){.rank = e->opts->rank[i], .virtual_ns = e->live[i].port.ended_ns};
        live[i].replayed_ns = (uint64_t)replay->end_ns[live[i].rank];
        status = maq_live_result(&e->box->rank[i], &e->live[i], diag);
        if (status == MAQ_OK)
            status = compare(e, i, &live[i], diag);
    }
    maq_replay_free(replay);
    MAQ_TRY(status);
    e->box->session.live = live;
    e->box->session.peers = e->job->world - e->n;
    e->box->session.store_requests = e->store.requests;
    e->box->session.invented = e->store.invented;
    return maq_session_end(e->box, &e->room);
}

static enum maq_status emulate(struct emulation *e, struct maq_diag *diag)
{
    MAQ_TRY(open_job(e, diag));
    MAQ_TRY(open_segment(e, diag));
    MAQ_TRY(start(e, diag));
    MAQ_TRY(play_together(e, diag));
    return report(e, diag);
}

enum maq_status maq_session_emulate(struct maq_session **out, const struct maq_session_emulate_opts *opts,
                                    struct maq_diag *diag)
{
    struct emulation e = {.opts = opts, .store.server.fd = -1};
    *out = NULL;
    maq_said_init(&e.said);
    enum maq_status status = emulate(&e, diag);
    for (uint32_t i = 0; i < e.n; i++)
        maq_live_end(&e.live[i]);
    maq_store_close(&e.store);
    maq_meet_close(&e.meet);
    maq_said_fini(&e.said);
    maq_capture_free(e.job);
    maq_room_close(&e.room);
    if (e.box && status == MAQ_OK)
        *out = &e.box->session;
    else if (e.box)
        maq_session_free(&e.box->session);
    return status;
}
