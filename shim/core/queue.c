/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.c - the operations of streams in virtual time.
 *
 * In a CUDA program: the device, which executes what lies in its streams.
 *
 *     start = max(end of the operation before, time of the call, events waited for)
 *     end   = start + ns
 *
 * An operation whose start and duration are known is added to the stream's end and forgotten. What cannot be known yet
 * (a meeting whose members have not all come, and everything behind it) stands in the stream's queue and is found
 * when somebody needs it, or by a thread that looks in from time to time (await.c).
 */
#include "shim/core/queue.h"

#include <stdlib.h>

/* peers' rooms; absent from builds without them */
#pragma weak vg_meeting_arrive
#pragma weak vg_meeting_end

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
    struct vg_queued_part *parts;
};

static uint32_t n_waiting; /* queued operations, all streams */

uint32_t vg_queued_operations(void)
{
    return n_waiting;
}

/* --- what can be known ---------------------------------------------------------------------------------------------------- */

static int64_t latest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

void vg_mark_unref(struct vg_mark *mark)
{
    if (mark != NULL && --mark->refs == 0)
        free(mark);
}

/* 1 = the end is known, 0 = not yet, -1 = peers failed. */
static int look(struct vg_queued_part *part)
{
    if (part->known)
        return 1;
    unsigned side = part->meeting.rec.kind == MAQ_REC_RECV;
    int found = vg_meeting_end(&part->meeting, side, 0, false, &part->end);
    part->known = found != 0;
    return found;
}

static bool same_comm(const struct vg_queued_part *a, const struct vg_queued_part *b)
{
    return a->meeting.rec.kind == MAQ_REC_COLL && b->meeting.rec.kind == MAQ_REC_COLL &&
           MAQ_REC_COLL_COMM(a->meeting.rec.id) == MAQ_REC_COLL_COMM(b->meeting.rec.id);
}

/* Collectives on one communicator follow each other, messages are side by side; the kernel ends with the last. */
static int64_t together(struct vg_queued_part *parts, uint32_t n, int64_t start)
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
            vg_meeting_arrive(&q->parts[i].meeting, q->parts[i].meeting.rec.kind == MAQ_REC_RECV, q->start);
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
        vg_mark_unref(q->mark);
    } else if (q->kind == RECORD) {
        *q->mark = (struct vg_mark){
            .refs = q->mark->refs, .known = true, .failed = s->failed, .at = latest(s->end, q->issued), .on = s};
        vg_mark_unref(q->mark);
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

void vg_advance(struct vg_stream *s)
{
    while (s->first != NULL && settle(s)) {
    }
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
    vg_advance(s);
}

void vg_queue_local(struct vg_stream *s, int64_t ns)
{
    if (s->first == NULL)
        s->end = latest(s->end, vg_now()) + ns;
    else
        push(s, (struct vg_queued){.kind = LOCAL, .issued = vg_now(), .ns = ns});
}

/* Without peers each part takes its own time. */
static int64_t alone(struct vg_queued_part *parts, uint32_t n, int64_t start)
{
    for (uint32_t i = 0; i < n; i++)
        parts[i].end = start + (int64_t)parts[i].meeting.rec.ns;
    return together(parts, n, start);
}

void vg_queue_group(struct vg_stream *s, struct vg_queued_part *parts, uint32_t n, bool meets)
{
    if (meets) {
        push(s, (struct vg_queued){.kind = GROUP, .issued = vg_now(), .n = n, .parts = parts});
    } else {
        s->end = alone(parts, n, latest(s->end, vg_now()));
        free(parts);
    }
}

void vg_queue_function(struct vg_stream *s, void (*function)(void *), void *data)
{
    push(s, (struct vg_queued){.kind = FUNCTION, .issued = vg_now(), .function = function, .data = data});
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
    vg_mark_unref(e->mark);
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
