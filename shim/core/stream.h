/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.h - streams and events from the inside, for shim/core and shim/cuda.
 */
#ifndef MAQ_SHIM_STREAM_H
#define MAQ_SHIM_STREAM_H

#include "shim/core/core.h"

enum { VG_STREAM_MAGIC = 0x73747265, VG_EVENT_MAGIC = 0x6576656e, VG_DEVICES = 64, VG_BRANCHES = 16 };
enum { VG_STREAM_NON_BLOCKING = 1 };
enum { VG_EVENT_BLOCKING_SYNC = 1, VG_EVENT_NO_TIMING = 2, VG_EVENT_INTERPROCESS = 4 };

/* A place in a stream: known once everything before it has ended. */
struct vg_mark {
    uint32_t refs;
    bool known, failed;
    int64_t at;
    struct vg_stream *on;
};

struct vg_queued; /* an operation whose time is not known yet */
struct vg_capture;
struct vg_stream {
    uint32_t magic, ordinal, flags; /* ordinal: MAQ_REC_NONE before its first use */
    int priority;
    unsigned device;
    bool legacy, failed;
    uint64_t id; /* for cudaStreamGetId */
    int64_t end; /* of all operations whose times are known */
    struct vg_queued *first, *last;
    uint64_t work;         /* operations so far */
    uint64_t told, seen;   /* work at the last join; work of the legacy stream that this one waits for */
    struct vg_event *join; /* for the rules of the legacy stream */
    struct vg_stream *branch[VG_BRANCHES]; /* on which the branches of graphs run that are launched here */
    struct vg_capture *capture;
    uint32_t *tips, n_tips, tips_room; /* nodes that the next captured one depends on */
};

struct vg_event {
    uint32_t magic, id, flags;
    unsigned device;
    struct vg_mark *mark;
    struct vg_capture *capture; /* recorded in a capture: at these nodes */
    uint64_t capture_id;
    uint32_t *tips, n_tips;
};

struct vg_event *vg_event_of(void *handle);
/* Stream of branch k (from 1) of graphs that are launched on s. */
struct vg_stream *vg_stream_branch(struct vg_stream *s, unsigned k);
struct vg_stream *vg_stream_legacy(unsigned device);
struct vg_stream *vg_stream_legacy_made(unsigned device); /* NULL: nobody has used it */
void vg_stream_foreach(void (*visit)(struct vg_stream *s, void *user), void *user);

#endif
