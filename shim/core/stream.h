/*
 * stream.h - streams, events and captures from the inside, for shim/core and shim/cuda.
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
/* 1 done by now, 0 not yet, -1 peers failed; never recorded: done. Does not wait in virtual time. */
int vg_event_query(struct vg_event *e);
int vg_stream_query(struct vg_stream *s);
/* Counts a question of this thread; whether it has done nothing but ask for long. */
bool vg_only_asks(void);
/* The same as a question of the program: a loop that only asks waits to the end of it, where that is known. */
int vg_event_ask(struct vg_event *e);
int vg_stream_ask(struct vg_stream *s);
/* A function of the program, in stream order. */
void vg_enqueue_host(struct vg_stream *s, void (*function)(void *), void *data);
/* The same operations without looking for a capture; flags go to the record. */
void vg_enqueue_now(struct vg_stream *s, struct maq_rec rec);
void vg_enqueue_parts(struct vg_stream *s, const struct vg_meeting *parts, uint32_t n, unsigned flags);
void vg_mark_record(struct vg_event *e, struct vg_stream *s);
void vg_mark_wait(struct vg_stream *s, struct vg_event *e);
/* The rules of the legacy stream, before something on s: the joins that are due. */
void vg_stream_join(struct vg_stream *s);
/* Runs what vg_enqueue_host() left for the thread that drives. */
void vg_run_host_functions(void);
/* Stream of branch k (from 1) of graphs that are launched on s. */
struct vg_stream *vg_stream_branch(struct vg_stream *s, unsigned k);
struct vg_stream *vg_stream_legacy(unsigned device);
void vg_stream_foreach(void (*visit)(struct vg_stream *s, void *user), void *user);

/* capture.c: while a stream is captured */
void vg_capture_rec(struct vg_stream *s, struct maq_rec rec);
void vg_capture_parts(struct vg_stream *s, const struct vg_meeting *parts, uint32_t n);
void vg_capture_host(struct vg_stream *s, void (*function)(void *), void *data);
void vg_capture_record(struct vg_event *e, struct vg_stream *s);
bool vg_capture_wait(struct vg_stream *s, struct vg_event *e); /* false: the event was not recorded in a capture */

#endif
