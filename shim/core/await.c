/* SPDX-License-Identifier: Apache-2.0 */
/*
 * await.c - the host waits for what streams do, and streams go on while the host is elsewhere.
 *
 * In a CUDA program: cudaStreamSynchronize(), cudaEventSynchronize(), cudaDeviceSynchronize(), and the queries of both.
 *
 * A device goes on while its host is busy, and a peer may wait for what stands behind; so a thread looks in from time to
 * time. Waiting takes real time, never virtual time.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/core/await.h"
#include "shim/core/queue.h"

/* --- progress while the host is elsewhere ---------------------------------------------------------------------------------- */

enum { LOOK_NS = 20000, REST_NS = 1000000, PATIENCE_NS = 2000000000 };

/* Longer each time. */
static void rest(int64_t *ns)
{
    vg_real_rest(*ns);
    *ns = *ns * 2 < REST_NS ? *ns * 2 : REST_NS;
}

static void advance_one(struct vg_stream *s, void *nothing)
{
    (void)nothing;
    vg_advance(s);
}

static void *keep_going(void *nothing)
{
    (void)nothing;
    vg_lock();
    for (int64_t ns = LOOK_NS;;) {
        uint32_t before = vg_queued_operations();
        vg_stream_foreach(advance_one, NULL);
        if (vg_queued_operations() != before)
            ns = LOOK_NS;
        rest(&ns);
    }
    return NULL;
}

static pid_t progress_of; /* a forked child has no such thread */
void vg_keep_going(void)
{
    if (progress_of == getpid())
        return;
    progress_of = getpid();
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_create(&thread, &attributes, keep_going, NULL);
    pthread_attr_destroy(&attributes);
}

/* --- waiting ---------------------------------------------------------------------------------------------------------------- */

/* Waits in real time until `known` or for at most `patience`; 0 = for ever. */
static bool until(bool (*known)(void *), void *what, int64_t patience)
{
    int64_t ns = LOOK_NS, give_up = patience > 0 ? vg_real_now() + patience : INT64_MAX;
    while (!known(what)) {
        if (patience > 0 && vg_real_now() >= give_up)
            return false;
        rest(&ns);
    }
    return true;
}

static bool idle(void *s)
{
    vg_advance(s);
    return ((struct vg_stream *)s)->first == NULL;
}

static bool marked(void *m)
{
    struct vg_mark *mark = m;
    if (!mark->known)
        vg_advance(mark->on);
    return mark->known;
}

bool vg_stream_end(struct vg_stream *s, int64_t *end)
{
    vg_lock();
    if (s->legacy && s->capture == NULL)
        vg_stream_join(s);
    until(idle, s, 0);
    *end = s->end;
    bool ok = !s->failed;
    vg_flush_if_late();
    vg_unlock();
    vg_run_host_functions();
    return ok;
}

bool vg_event_end(struct vg_event *e, int64_t *end)
{
    vg_lock();
    struct vg_mark *mark = e->mark;
    bool ok = true;
    *end = 0;
    if (mark != NULL) {
        mark->refs++;
        until(marked, mark, 0);
        *end = mark->at;
        ok = !mark->failed;
        vg_mark_unref(mark);
    }
    vg_flush_if_late();
    vg_unlock();
    vg_run_host_functions();
    return ok;
}

struct all {
    int64_t end;
    bool ok;
    unsigned device;
};

static void add(struct vg_stream *s, void *user)
{
    struct all *all = user;
    if (s->device != all->device)
        return;
    until(idle, s, 0);
    all->end = s->end > all->end ? s->end : all->end;
    all->ok = all->ok && !s->failed;
}

bool vg_device_end(int64_t *end)
{
    struct all all = {.ok = true, .device = vg_device()};
    vg_lock();
    vg_stream_foreach(add, &all);
    vg_flush_if_late();
    vg_unlock();
    vg_run_host_functions();
    *end = all.end;
    return all.ok;
}

void vg_stream_free(struct vg_stream *s)
{
    vg_lock();
    until(idle, s, 0);
    if (s->join != NULL)
        vg_event_free(s->join);
    for (unsigned k = 0; k < VG_BRANCHES; k++)
        if (s->branch[k] != NULL)
            vg_stream_free(s->branch[k]);
    free(s->tips);
    memset(s, 0, sizeof *s);
    vg_unlock();
}

/*
 * A thread that drives moves time by asking (so that polling ends) and gets the answer that virtual time gives; to know it
 * may take a moment of real time, until peers have come. If they have not after PATIENCE, the answer is "not yet".
 * Other threads do not wait and do not move time (watch.c).
 */
static int answer(bool known, bool failed, int64_t end)
{
    if (!known)
        return 0;
    if (failed)
        return -1;
    return vg_drives() ? vg_now() >= end : vg_watcher_knows(end);
}

int vg_event_query(struct vg_event *e)
{
    vg_lock();
    int done = 1;
    struct vg_mark *mark = e->mark;
    if (mark != NULL) {
        mark->refs++;
        bool known = !mark->known && vg_drives() ? until(marked, mark, PATIENCE_NS) : marked(mark);
        done = answer(known, mark->failed, mark->at);
        vg_mark_unref(mark);
    }
    vg_unlock();
    vg_run_host_functions();
    return done;
}

/*
 * The wait of a loop that does nothing but ask: until the end, where that is known, and a record of it. How often a loop asks hangs on
 * real time, so its asking is no work of the host; what it costs is the wait.
 */
static void poll_until(struct maq_rec rec, bool known, int64_t end)
{
    if (!known || end <= vg_now())
        return;
    rec.flags = MAQ_REC_POLLED;
    vg_record(rec, NULL);
    vg_wait_until(end);
}

static void poll_event(struct vg_event *e)
{
    vg_lock();
    if (vg_drives() && e->mark != NULL)
        poll_until((struct maq_rec){.kind = MAQ_REC_EVENT_SYNC, .stream = MAQ_REC_HOST_STREAM, .id = e->id},
                   e->mark->known && !e->mark->failed, e->mark->at);
    vg_unlock();
}

static void poll_stream(struct vg_stream *s)
{
    vg_lock();
    if (vg_drives())
        poll_until((struct maq_rec){.kind = MAQ_REC_STREAM_SYNC, .stream = vg_stream_ordinal(s)},
                   s->first == NULL && !s->failed, s->end);
    vg_unlock();
}

int vg_stream_query(struct vg_stream *s)
{
    vg_lock();
    bool known = vg_drives() && vg_now() >= s->end ? until(idle, s, PATIENCE_NS) : idle(s);
    int done = answer(known, s->failed, s->end);
    vg_unlock();
    vg_run_host_functions();
    return done;
}

int vg_event_ask(struct vg_event *e)
{
    int done = vg_event_query(e);
    if (!vg_only_asks() || done != 0)
        return done;
    poll_event(e);
    return vg_event_query(e);
}

int vg_stream_ask(struct vg_stream *s)
{
    int done = vg_stream_query(s);
    if (!vg_only_asks() || done != 0)
        return done;
    poll_stream(s);
    return vg_stream_query(s);
}
