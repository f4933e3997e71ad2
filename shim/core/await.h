/* SPDX-License-Identifier: Apache-2.0 */
/*
 * await.h - the host waits for what streams do, or asks.
 */
#ifndef MAQ_SHIM_AWAIT_H
#define MAQ_SHIM_AWAIT_H

#include "shim/core/stream.h"

/* 1 done by now, 0 not yet, -1 peers failed; never recorded: done. Does not wait in virtual time. */
int vg_event_query(struct vg_event *e);
int vg_stream_query(struct vg_stream *s);
/* The same as a question of the program: a loop that only asks waits to the end of it, where that is known. */
int vg_event_ask(struct vg_event *e);
int vg_stream_ask(struct vg_stream *s);
/* From now on a thread settles what can be known, also of a forked child. With the lock held. */
void vg_keep_going(void);

#endif
