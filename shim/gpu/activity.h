/* SPDX-License-Identifier: Apache-2.0 */
/*
 * activity.h - what a GPU and its driver did, as CUPTI reports it, put back into the order of the program.
 *
 * CUPTI hands over calls of the host and work of the device in pieces, in no order. An *activity* is one of them in plain
 * terms; vg_assemble() joins them by correlation id and writes the records of a rank (record.h):
 *
 *   host_ns   from the end of the call before to the end of this one, less what it waited for the device
 *   ns        of the device, from the activity of the kernel or the copy
 *
 * so that a trace taken on a GPU and one taken without a GPU are read alike. Nothing here knows CUPTI: gpu/inject.c does.
 */
#ifndef MAQ_SHIM_GPU_ACTIVITY_H
#define MAQ_SHIM_GPU_ACTIVITY_H

#include <stddef.h>

#include "shim/record.h"

enum vg_activity_kind {
    VG_ACT_CALL,        /* of the runtime or driver: start, end, thread */
    VG_ACT_KERNEL,      /* start, end, stream, grid, block, shared, name */
    VG_ACT_COPY,        /* start, end, stream, bytes, id = enum maq_rec_copy */
    VG_ACT_SET,         /* start, end, stream, bytes */
    VG_ACT_ALLOC,       /* bytes, address, id = enum maq_rec_mem; stream: of a pool's, otherwise NONE */
    VG_ACT_FREE,        /* address, id likewise */
    VG_ACT_EVENT,       /* an event was recorded: stream, id of the event */
    VG_ACT_STREAM_WAIT, /* stream, id of the event */
    VG_ACT_EVENT_SYNC,  /* start, end of the wait; id of the event */
    VG_ACT_STREAM_SYNC, /* start, end of the wait; stream */
    VG_ACT_DEVICE_SYNC, /* start, end of the wait */
    VG_ACT_COMM /* a communication kernel of our own libnccl: rec; start, end of the call; ns of the rec is the device's */
};

struct vg_activity {
    uint8_t kind;  /* enum vg_activity_kind */
    uint8_t graph; /* KERNEL, COPY, SET: a node of a CUDA graph */
    uint16_t thread;
    uint32_t correlation; /* the same for a call and what came of it; 0 = none */
    uint32_t stream, id;
    int64_t start, end; /* ns on one clock */
    uint64_t bytes, address;
    uint32_t grid[3], block[3], shared;
    const char *name; /* borrowed until the records are written */
    struct maq_rec rec;
};

/* Where records go; payload as vg_record() takes it. */
struct vg_sink {
    void (*put)(void *to, struct maq_rec rec, const void *payload);
    void *to;
};

/* Sorts the activities in place. Calls of threads that never caused work on the device leave no record; work whose call was not
 * seen goes to where its start was. Returns how many activities were dropped: waits and events without a call. */
size_t vg_assemble(struct vg_activity *activities, size_t n, const struct vg_sink *sink);

#endif
