/* SPDX-License-Identifier: Apache-2.0 */
/*
 * enqueue.c - what a program puts into its streams: launches and copies, collectives, functions of its host, events and waits for
 * them.
 *
 * In a CUDA program: every call that gives a stream as where to run.
 *
 * Each is recorded, after the joins that the legacy stream asks for, and goes into the stream's queue. While a stream is captured into a
 * CUDA graph it becomes a node of the graph instead.
 */
#include "shim/core/enqueue.h"

#include <stdlib.h>

#include "shim/core/await.h"
#include "shim/core/graph.h"
#include "shim/core/queue.h"

/* peers' rooms; absent from builds without them */
#pragma weak vg_meeting_end
#pragma weak vg_meeting_name

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
    vg_queue_local(s, (int64_t)rec.ns);
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

void vg_enqueue_parts(struct vg_stream *s, const struct vg_meeting *parts, uint32_t n, unsigned flags)
{
    struct vg_queued_part *copy = calloc(n, sizeof *copy);
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
        if ((flags & MAQ_REC_GRAPH) != 0 && vg_meeting_name != NULL)
            vg_meeting_name(&copy[i].meeting); /* each launch is a meeting of its own */
        vg_record(rec, NULL);
    }
    bool meets = vg_card()->meets && vg_meeting_end != NULL;
    if (meets)
        vg_keep_going();
    vg_queue_group(s, copy, n, meets);
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
        vg_queue_function(s, function, data);
    }
    vg_unlock();
}

void vg_event_record(struct vg_event *e, struct vg_stream *s)
{
    vg_drive();
    vg_lock();
    if (s->capture != NULL) {
        vg_capture_record(e, s);
    } else {
        vg_stream_join(s);
        e->capture = NULL;
        vg_mark_record(e, s);
    }
    vg_unlock();
}

void vg_stream_wait(struct vg_stream *s, struct vg_event *e)
{
    vg_drive();
    vg_lock();
    if (!vg_capture_wait(s, e)) {
        vg_stream_join(s);
        vg_mark_wait(s, e);
    }
    vg_unlock();
}
