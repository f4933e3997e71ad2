/*
 * stream.c - streams: queues of operations in virtual time.
 *
 *     start = max(end of the operation before, time of the call, events waited for)
 *     end   = start + ns
 *
 * An operation whose start and duration are known is added to the stream's end and forgotten. What cannot be known yet
 * (a meeting whose members have not all come, and everything behind it) stands in the stream's queue and is found
 * when somebody needs it, or by a thread that looks in from time to time: a device goes on while its host is busy, and a
 * peer may wait for what stands behind.
 *
 * The legacy stream (handle NULL or 1) waits for all work on streams made without cudaStreamNonBlocking, and such
 * streams wait for it. These joins are written as events, so a replay needs to know nothing about them.
 */
#include "shim/core/stream.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* peers' rooms; absent from builds without them */
#pragma weak vg_meet_arrive
#pragma weak vg_meet_end
#pragma weak vg_meet_name

enum { LOCAL, GROUP, WAIT, RECORD, FUNCTION };
struct vg_queued {
    struct vg_queued *next;
    int kind;
    int64_t issued, ns;
    struct vg_mark *mark; /* WAIT, RECORD */
    void (*function)(void *);
    void *data;
    uint32_t n; /* GROUP */
    bool arrived;
    int64_t start;
    struct part {
        struct vg_meeting meeting;
        int64_t end;
        bool known;
    } * parts;
};

enum { CHUNK = 256, CHUNKS = 256 };
static struct vg_stream
    *chunks[CHUNKS]; /* streams never move and are never given back, so a stale handle is found out */
static uint32_t n_streams, next_ordinal;
static struct vg_stream *legacy[VG_DEVICES];
static _Thread_local struct vg_stream *per_thread[VG_DEVICES];
static uint32_t n_waiting; /* queued operations, all streams */

/* --- making and finding ------------------------------------------------------------------------------------------------- */

static struct vg_stream *nth(uint32_t i)
{
    return &chunks[i / CHUNK][i % CHUNK];
}

struct vg_stream *vg_stream_new(uint32_t flags, int priority)
{
    vg_lock();
    struct vg_stream *s = NULL;
    for (uint32_t i = 0; i < n_streams && s == NULL; i++)
        if (nth(i)->magic == 0)
            s = nth(i);
    if (s == NULL && n_streams < CHUNK * CHUNKS &&
        (chunks[n_streams / CHUNK] != NULL || (chunks[n_streams / CHUNK] = calloc(CHUNK, sizeof *s)) != NULL))
        s = nth(n_streams++);
    if (s != NULL) {
        static uint64_t ids;
        *s = (struct vg_stream){.magic = VG_STREAM_MAGIC,
                                .ordinal = MAQ_REC_NONE,
                                .flags = flags,
                                .priority = priority,
                                .device = vg_device(),
                                .id = ++ids};
    }
    vg_unlock();
    return s;
}

struct vg_stream *vg_stream_legacy(unsigned device)
{
    device %= VG_DEVICES;
    vg_lock();
    if (legacy[device] == NULL && (legacy[device] = vg_stream_new(0, 0)) != NULL) {
        legacy[device]->device = device;
        legacy[device]->legacy = true;
    }
    vg_unlock();
    return legacy[device];
}

static struct vg_stream *of_thread(void)
{
    unsigned device = vg_device() % VG_DEVICES;
    if (per_thread[device] == NULL)
        per_thread[device] = vg_stream_new(0, 0);
    return per_thread[device];
}

struct vg_stream *vg_stream_of(void *handle)
{
    uintptr_t h = (uintptr_t)handle;
    if (h <= 1)
        return vg_stream_legacy(vg_device());
    if (h == 2)
        return of_thread();
    struct vg_stream *found = NULL;
    vg_lock();
    for (size_t c = 0; c < CHUNKS && chunks[c] != NULL; c++) {
        uintptr_t off = h - (uintptr_t)chunks[c];
        if (off < CHUNK * sizeof *found && off % sizeof *found == 0)
            found = ((struct vg_stream *)handle)->magic == VG_STREAM_MAGIC ? handle : NULL;
    }
    vg_unlock();
    return found;
}

void vg_stream_foreach(void (*visit)(struct vg_stream *s, void *user), void *user)
{
    for (uint32_t i = 0; i < n_streams; i++)
        if (nth(i)->magic == VG_STREAM_MAGIC)
            visit(nth(i), user);
}

uint16_t vg_stream_ordinal(struct vg_stream *s)
{
    vg_lock();
    if (s->ordinal == MAQ_REC_NONE)
        s->ordinal = next_ordinal < MAQ_REC_HOST_STREAM - 1 ? next_ordinal++ : MAQ_REC_HOST_STREAM - 1;
    uint16_t ordinal = (uint16_t)s->ordinal;
    vg_unlock();
    return ordinal;
}

bool vg_stream_capturing(struct vg_stream *s)
{
    return s->capture != NULL;
}

struct vg_stream *vg_stream_branch(struct vg_stream *s, unsigned k)
{
    if (k == 0)
        return s;
    k = k < VG_BRANCHES ? k : VG_BRANCHES - 1; /* more run one after another */
    if (s->branch[k] == NULL && (s->branch[k] = vg_stream_new(VG_STREAM_NON_BLOCKING, s->priority)) != NULL)
        s->branch[k]->device = s->device;
    return s->branch[k] != NULL ? s->branch[k] : s;
}

/* --- what can be known ---------------------------------------------------------------------------------------------------- */

static int64_t latest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void unref(struct vg_mark *mark)
{
    if (mark != NULL && --mark->refs == 0)
        free(mark);
}

/* 1 = the end is known, 0 = not yet, -1 = peers failed. */
static int look(struct part *part)
{
    if (part->known)
        return 1;
    unsigned side = part->meeting.rec.kind == MAQ_REC_RECV;
    int found = vg_meet_end(&part->meeting, side, 0, false, &part->end);
    part->known = found != 0;
    return found;
}

static bool same_comm(const struct part *a, const struct part *b)
{
    return a->meeting.rec.kind == MAQ_REC_COLL && b->meeting.rec.kind == MAQ_REC_COLL &&
           MAQ_REC_COLL_COMM(a->meeting.rec.id) == MAQ_REC_COLL_COMM(b->meeting.rec.id);
}

/* Collectives on one communicator follow each other, messages are side by side; the kernel ends with the last. */
static int64_t together(struct part *parts, uint32_t n, int64_t start)
{
    int64_t end = start;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = parts[i].meeting.rec.kind == MAQ_REC_COLL ? i : 0;
        while (k > 0 && !same_comm(&parts[i], &parts[k - 1]))
            k--;
        if (k > 0) /* the one before it on that communicator, which is after all others */
            parts[i].end = latest(parts[i].end, parts[k - 1].end + (int64_t)parts[i].meeting.rec.ns);
        end = latest(end, parts[i].end);
    }
    return end;
}

static bool group_done(struct vg_stream *s, struct vg_queued *q)
{
    if (!q->arrived) {
        q->start = latest(s->end, q->issued);
        for (uint32_t i = 0; i < q->n; i++)
            vg_meet_arrive(&q->parts[i].meeting, q->parts[i].meeting.rec.kind == MAQ_REC_RECV, q->start);
        q->arrived = true;
    }
    bool all = true, failed = false;
    for (uint32_t i = 0; i < q->n; i++) {
        int found = look(&q->parts[i]);
        failed = failed || found < 0;
        all = all && found != 0;
    }
    if (failed) {
        s->failed = true;
        s->end = q->start;
        return true;
    }
    if (all)
        s->end = together(q->parts, q->n, q->start);
    return all;
}

/* Functions that are due, for a thread of the program to run. */
static struct due {
    struct due *next;
    void (*function)(void *);
    void *data;
} * due, **due_last = &due;

static bool settle(struct vg_stream *s);

static bool wait_done(struct vg_stream *s, struct vg_mark *mark)
{
    while (!mark->known && mark->on->first != NULL && settle(mark->on)) {
    }
    if (!mark->known)
        return false;
    s->failed = s->failed || mark->failed;
    s->end = latest(s->end, mark->at);
    return true;
}

/* The first operation of the queue, if its time can be known: then it is gone, and the answer is true. */
static bool settle(struct vg_stream *s)
{
    struct vg_queued *q = s->first;
    if (q->kind == LOCAL) {
        s->end = latest(s->end, q->issued) + q->ns;
    } else if (q->kind == GROUP) {
        if (!group_done(s, q))
            return false;
        free(q->parts);
    } else if (q->kind == WAIT) {
        if (!wait_done(s, q->mark))
            return false;
        unref(q->mark);
    } else if (q->kind == RECORD) {
        *q->mark = (struct vg_mark){
            .refs = q->mark->refs, .known = true, .failed = s->failed, .at = latest(s->end, q->issued), .on = s};
        unref(q->mark);
    } else {
        struct due *d = malloc(sizeof *d);
        if (d != NULL) {
            *d = (struct due){.function = q->function, .data = q->data};
            *due_last = d;
            due_last = &d->next;
        }
        s->end = latest(s->end, q->issued);
    }
    s->first = q->next;
    if (s->first == NULL)
        s->last = NULL;
    n_waiting--;
    free(q);
    return true;
}

static void advance(struct vg_stream *s)
{
    while (s->first != NULL && settle(s)) {
    }
}

static void advance_one(struct vg_stream *s, void *nothing)
{
    (void)nothing;
    advance(s);
}

void vg_run_host_functions(void)
{
    vg_lock();
    while (due != NULL) {
        struct due d = *due;
        free(due);
        due = d.next;
        if (due == NULL)
            due_last = &due;
        unsigned held = vg_lock_drop();
        d.function(d.data);
        vg_lock_again(held);
    }
    vg_unlock();
}

/* --- progress while the host is elsewhere ---------------------------------------------------------------------------------- */

enum { LOOK_NS = 20000, REST_NS = 1000000, PATIENCE_NS = 2000000000, STALL_NS = 20000000 };

static int64_t real_now(void)
{
    struct timespec t;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t); /* the libc call may be on virtual time */
    return t.tv_sec * (int64_t)1000000000 + t.tv_nsec;
}

/* Sleeps in real time with the lock released; longer each time. */
static void rest(int64_t *ns)
{
    struct timespec t = {.tv_nsec = (long)*ns};
    unsigned held = vg_lock_drop();
    syscall(SYS_nanosleep, &t, NULL);
    vg_lock_again(held);
    *ns = *ns * 2 < REST_NS ? *ns * 2 : REST_NS;
}

static void *keep_going(void *nothing)
{
    (void)nothing;
    vg_lock();
    for (int64_t ns = LOOK_NS;;) {
        uint32_t before = n_waiting;
        vg_stream_foreach(advance_one, NULL);
        if (n_waiting != before)
            ns = LOOK_NS;
        rest(&ns);
    }
    return NULL;
}

static pid_t progress_of; /* a forked child has no such thread */
static void progress(void)
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

/* --- operations ----------------------------------------------------------------------------------------------------------- */

/* Queues q's copy and finds out what can be found out. */
static void push(struct vg_stream *s, struct vg_queued q)
{
    struct vg_queued *copy = malloc(sizeof *copy);
    if (copy == NULL) {
        free(q.parts);
        return;
    }
    *copy = q;
    if (s->last != NULL)
        s->last->next = copy;
    else
        s->first = copy;
    s->last = copy;
    n_waiting++;
    advance(s);
}

static void join(struct vg_stream *from, struct vg_stream *to)
{
    if (from->join == NULL)
        from->join = vg_event_new(VG_EVENT_NO_TIMING);
    if (from->join == NULL)
        return;
    if (from->told != from->work) {
        vg_mark_record(from->join, from);
        from->told = from->work;
    }
    vg_mark_wait(to, from->join);
}

static void join_into_legacy(struct vg_stream *from, void *user)
{
    struct vg_stream *to = user;
    if (from != to && !from->legacy && !(from->flags & VG_STREAM_NON_BLOCKING) && from->device == to->device &&
        from->told != from->work)
        join(from, to);
}

void vg_stream_join(struct vg_stream *s)
{
    if (s->legacy) {
        vg_stream_foreach(join_into_legacy, s);
    } else if (!(s->flags & VG_STREAM_NON_BLOCKING)) {
        struct vg_stream *l = legacy[s->device % VG_DEVICES];
        if (l != NULL && s->seen != l->work) {
            join(l, s);
            s->seen = l->work;
        }
    }
}

static void order(struct vg_stream *s)
{
    vg_stream_join(s);
    s->work++;
}

void vg_enqueue_now(struct vg_stream *s, struct maq_rec rec)
{
    vg_drive();
    vg_lock();
    order(s);
    rec.stream = vg_stream_ordinal(s);
    vg_record(rec, NULL);
    if (s->first == NULL)
        s->end = latest(s->end, vg_now()) + (int64_t)rec.ns;
    else
        push(s, (struct vg_queued){.kind = LOCAL, .issued = vg_now(), .ns = (int64_t)rec.ns});
    vg_unlock();
}

void vg_enqueue(struct vg_stream *s, struct maq_rec rec)
{
    vg_lock();
    if (s->capture != NULL)
        vg_capture_rec(s, rec);
    else
        vg_enqueue_now(s, rec);
    vg_unlock();
}

/* Without peers each part takes its own time. */
static int64_t alone(struct part *parts, uint32_t n, int64_t start)
{
    for (uint32_t i = 0; i < n; i++)
        parts[i].end = start + (int64_t)parts[i].meeting.rec.ns;
    return together(parts, n, start);
}

void vg_enqueue_parts(struct vg_stream *s, const struct vg_meeting *parts, uint32_t n, unsigned flags)
{
    struct part *copy = calloc(n, sizeof *copy);
    if (copy == NULL || n == 0) {
        free(copy);
        return;
    }
    vg_drive();
    vg_lock();
    order(s);
    for (uint32_t i = 0; i < n; i++) {
        struct maq_rec rec = parts[i].rec;
        rec.stream = vg_stream_ordinal(s);
        rec.flags = (uint8_t)((rec.flags & ~MAQ_REC_MORE) | flags | (i + 1 < n ? MAQ_REC_MORE : 0));
        copy[i].meeting = parts[i];
        if ((flags & MAQ_REC_GRAPH) != 0 && vg_meet_name != NULL)
            vg_meet_name(&copy[i].meeting); /* each launch is a meeting of its own */
        vg_record(rec, NULL);
    }
    if (vg_card()->meets && vg_meet_end != NULL) {
        progress();
        push(s, (struct vg_queued){.kind = GROUP, .issued = vg_now(), .n = n, .parts = copy});
    } else {
        s->end = alone(copy, n, latest(s->end, vg_now()));
        free(copy);
    }
    vg_unlock();
}

/* Parts on one stream are one kernel; each stream of a group has its own. */
void vg_enqueue_group(struct vg_stream *const *streams, const struct vg_meeting *parts, uint32_t n)
{
    struct vg_meeting *mine = calloc(n, sizeof *mine);
    for (uint32_t i = 0; i < n && mine != NULL; i++) {
        uint32_t count = 0;
        bool first = i == 0 || streams[i - 1] != streams[i];
        for (uint32_t k = 0; k < i && first; k++)
            first = streams[k] != streams[i];
        for (uint32_t k = i; k < n && first; k++)
            if (streams[k] == streams[i])
                mine[count++] = parts[k];
        if (!first)
            continue;
        vg_lock();
        if (streams[i]->capture != NULL)
            vg_capture_parts(streams[i], mine, count);
        else
            vg_enqueue_parts(streams[i], mine, count, 0);
        vg_unlock();
    }
    free(mine);
}

void vg_enqueue_host(struct vg_stream *s, void (*function)(void *), void *data)
{
    vg_drive();
    vg_lock();
    if (s->capture != NULL) {
        vg_capture_host(s, function, data);
    } else {
        order(s);
        vg_record((struct maq_rec){.kind = MAQ_REC_HOST_CALL, .stream = vg_stream_ordinal(s)}, NULL);
        push(s, (struct vg_queued){.kind = FUNCTION, .issued = vg_now(), .function = function, .data = data});
    }
    vg_unlock();
}

/* --- marks ------------------------------------------------------------------------------------------------------------------ */

void vg_mark_record(struct vg_event *e, struct vg_stream *s)
{
    static uint32_t next_event;
    struct vg_mark *mark = malloc(sizeof *mark);
    if (mark == NULL)
        return;
    if (e->id == MAQ_REC_NONE)
        e->id = next_event++;
    *mark = (struct vg_mark){.refs = 1, .on = s};
    unref(e->mark);
    e->mark = mark;
    vg_record((struct maq_rec){.kind = MAQ_REC_EVENT_RECORD, .stream = vg_stream_ordinal(s), .id = e->id}, NULL);
    if (s->first == NULL) {
        *mark =
            (struct vg_mark){.refs = 1, .known = true, .failed = s->failed, .at = latest(s->end, vg_now()), .on = s};
        return;
    }
    mark->refs++;
    push(s, (struct vg_queued){.kind = RECORD, .issued = vg_now(), .mark = mark});
}

void vg_mark_wait(struct vg_stream *s, struct vg_event *e)
{
    struct vg_mark *mark = e->mark;
    if (mark == NULL)
        return;
    vg_record((struct maq_rec){.kind = MAQ_REC_STREAM_WAIT, .stream = vg_stream_ordinal(s), .id = e->id}, NULL);
    if (s->first == NULL && mark->known) {
        s->end = latest(s->end, mark->at);
        s->failed = s->failed || mark->failed;
        return;
    }
    mark->refs++;
    push(s, (struct vg_queued){.kind = WAIT, .issued = vg_now(), .mark = mark});
}

/* --- waiting ---------------------------------------------------------------------------------------------------------------- */

/* Waits in real time until `known` or for at most `patience`; 0 = for ever. */
static bool until(bool (*known)(void *), void *what, int64_t patience)
{
    int64_t ns = LOOK_NS, give_up = patience > 0 ? real_now() + patience : INT64_MAX;
    while (!known(what)) {
        if (patience > 0 && real_now() >= give_up)
            return false;
        rest(&ns);
    }
    return true;
}

static bool idle(void *s)
{
    advance(s);
    return ((struct vg_stream *)s)->first == NULL;
}

static bool marked(void *m)
{
    struct vg_mark *mark = m;
    if (!mark->known)
        advance(mark->on);
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
        unref(mark);
    }
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
    all->end = latest(all->end, s->end);
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

/*
 * A thread that drives moves time by asking (so that polling ends) and gets the answer that virtual time gives; to know it
 * may take a moment of real time, until peers have come. If they have not after PATIENCE, the answer is "not yet".
 * Other threads do not wait and do not move time. When those that drive have stood still for a while, what is known to
 * end is done for them: somebody waits for a watchdog.
 */
static int answer(bool known, bool failed, int64_t end)
{
    static int64_t stands_since, stood_at = -1;
    if (known && failed)
        return -1;
    if (!known || vg_drives() || vg_now() >= end)
        return known && vg_now() >= end;
    if (stood_at != vg_now()) {
        stood_at = vg_now();
        stands_since = real_now();
    }
    return real_now() - stands_since > STALL_NS;
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
        unref(mark);
    }
    vg_unlock();
    vg_run_host_functions();
    return done;
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
