/* SPDX-License-Identifier: Apache-2.0 */
/*
 * enqueue.h - what goes into streams, beside what vgpu.h has.
 */
#ifndef MAQ_SHIM_ENQUEUE_H
#define MAQ_SHIM_ENQUEUE_H

#include "shim/core/stream.h"

/* A function of the program, in stream order. */
void vg_enqueue_host(struct vg_stream *s, void (*function)(void *), void *data);
/* vg_enqueue() and vg_enqueue_group() on one stream without looking for a capture; flags go to the record. */
void vg_enqueue_now(struct vg_stream *s, struct maq_rec rec);
void vg_enqueue_parts(struct vg_stream *s, const struct vg_meeting *parts, uint32_t n, unsigned flags);

#endif
