/* SPDX-License-Identifier: Apache-2.0 */
/*
 * legacy_stream.c - how CUDA orders streams with the legacy stream (handle NULL or 1): it waits for all work on streams made without
 * cudaStreamNonBlocking, and such streams wait for it.
 *
 * In a CUDA program: nothing that it calls; the order that it gets where it names no stream.
 *
 * These joins are written as events, so a replay needs to know nothing about them.
 */
#include "shim/core/queue.h"

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
        struct vg_stream *l = vg_stream_legacy_made(s->device);
        if (l != NULL && s->seen != l->work) {
            join(l, s);
            s->seen = l->work;
        }
    }
}
