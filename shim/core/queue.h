/*
 * queue.h - between stream.c, queue.c and await.c: operations whose times are not known yet. With the lock held.
 */
#ifndef MAQ_SHIM_QUEUE_H
#define MAQ_SHIM_QUEUE_H

#include "shim/core/stream.h"

/* Settles what can be known of s. */
void vg_advance(struct vg_stream *s);
/* Operations in the queues of all streams. */
uint32_t vg_queued_operations(void);
void vg_mark_unref(struct vg_mark *mark); /* NULL is nothing */
/* From now on a thread settles what can be known, also of a forked child. */
void vg_keep_going(void);
/* Waits until nothing is in s's queue. */
void vg_await(struct vg_stream *s);

#endif
