/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.h - the operations of streams in virtual time. With the lock held.
 */
#ifndef MAQ_SHIM_QUEUE_H
#define MAQ_SHIM_QUEUE_H

#include "shim/core/stream.h"

/* --- queue.c ------------------------------------------------------------------------------------------------------------ */
/* Settles what can be known of s. */
void vg_advance(struct vg_stream *s);
/* Operations in the queues of all streams. */
uint32_t vg_queued_operations(void);

/* What is next in s: an operation of this device, */
void vg_queue_local(struct vg_stream *s, int64_t ns);
/* communication of one kernel, which takes `parts` over and ends with its meetings, or after its own time, */
struct vg_queued_part {
    struct vg_meeting meeting;
    int64_t end;
    bool known;
};
void vg_queue_group(struct vg_stream *s, struct vg_queued_part *parts, uint32_t n, bool meets);
/* a function of the program, for vg_run_host_functions(), which a thread that drives calls without the lock. */
void vg_queue_function(struct vg_stream *s, void (*function)(void *), void *data);
void vg_run_host_functions(void);

/* The event names what is in s by now; s waits for what it names. */
void vg_mark_record(struct vg_event *e, struct vg_stream *s);
void vg_mark_wait(struct vg_stream *s, struct vg_event *e);
void vg_mark_unref(struct vg_mark *mark); /* NULL is nothing */

/* --- legacy_stream.c ----------------------------------------------------------------------------------------------------------- */
/* The rules of the legacy stream, before something on s: the joins that are due. */
void vg_stream_join(struct vg_stream *s);

#endif
