/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vgpu.h - inside the zero-GPU device: what its rooms say to each other.
 *
 *     cuda/  the runtime and the documented driver calls      \
 *     ptx/   what a launch does, by the text of its kernel     \
 *     math/  cuBLAS, cuBLASLt, cuDNN, NVML, NVRTC, ...          >  core/  clock, streams, memory, operators, recorder
 *     nccl/  communicators, groups, exchanges, meetings       /
 *     boot/  MPI, host clocks, sockets with nobody behind them
 *
 * Nothing runs. A call records what was asked, adds its time to a virtual clock and returns what a device would. One
 * process is one rank with one device (or per_node devices, where a program drives several). All calls take the one lock
 * of `vg_lock()`; it may be taken twice by the same thread. Time moves with calls of threads that drive the device
 * (that have launched, allocated or communicated) and never because a watchdog polls.
 *
 * A stream is a queue of operations whose times are found as late as they may be: a collective ends when its members
 * have come, and the host must not wait for them before it waits for the stream. vg_resolve() finds them.
 *
 * Everything is process-wide state of a library that is loaded into somebody else's program; that is its nature. It
 * prints only when a program calls what is not there, says what, and returns the library's own "not supported".
 */
#ifndef MAQ_SHIM_VGPU_H
#define MAQ_SHIM_VGPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/link.h"

#define VG_EXPORT __attribute__((visibility("default")))

/* Where the program ends: where it reads what a rank was to say that can be run first. Of a gather of objects either the first member is such a
 * rank, or a sample of them (vg_is_sample()). */
enum vg_stops { VG_STOPS_NEVER, VG_STOPS, VG_STOPS_FOR_SAMPLES };

/* --- the card of this run. core/card.c ------------------------------------------------------------------------------ */
struct vg_card {
    bool there; /* false: no card; the device is an H100 and nothing is recorded */
    uint32_t world, rank, per_node, local;
    char device[64];
    uint64_t memory_bytes, l2_bytes;
    uint32_t sms, capability, clock_khz, memory_khz, bus_bits, power_w;
    int64_t call_ns, launch_ns;
    double copy_bps, hbm_bps;
    bool meets;       /* mode meet */
    uint32_t stops;   /* enum vg_stops */
    uint32_t forks;   /* 1: it is a fork server, and no rank */
    uint64_t program; /* maq_rec_program(); 0 = as this process's command line says */
    char trace[512], ask[108], peers[512], meet[512], values[512], waits[512], inputs[512], nccl_memory[512];
};
const struct vg_card *vg_card(void);

/* --- the one lock. core/lock.c ---------------------------------------------------------------------------------------- */
void vg_lock(void);
void vg_unlock(void);

/* --- virtual time, ns since the program began. core/clock.c ----------------------------------------------------------- */
int64_t vg_now(void);
/* The host worked: `ns` goes into the host_ns of the next record. vg_call() is card.call_ns; nothing on threads that do not
 * drive the device. */
void vg_host(int64_t ns);
void vg_call(void);
/* The calling thread drives the device from now on. */
void vg_drive(void);
bool vg_drives(void);
/* How often the calling thread has asked whether something is done. */
unsigned vg_asked(void);
/* The calling thread's device, from 0; false = there is none of that number. */
unsigned vg_device(void);
unsigned vg_device_count(void);
bool vg_device_set(int device);
/* The host waits until t (no record; waiting is not host time). */
void vg_wait_until(int64_t t);

/* --- operators: what a launch is, and how long it takes. core/op.c ---------------------------------------------------- */
/* Id of an equal operator, or a new one: then it is recorded and its duration asked for. name need not live on. */
uint32_t vg_op(const struct maq_rec_op *what, const char *name);
/* Code of an engine that serves was loaded: operators from here on are its. The first one stays. */
void vg_engine_is(enum maq_rec_engine engine);
int64_t vg_op_ns(uint32_t op);

/* --- streams and events. core/stream.c, core/event.c, core/enqueue.c, core/await.c ------------------------------------- */
/* Handles are those of CUDA: cudaStream_t is a struct vg_stream *, or NULL, 1 and 2: legacy default and per-thread. */
struct vg_stream;
struct vg_event;
struct vg_stream *vg_stream_new(uint32_t flags, int priority);
void vg_stream_free(struct vg_stream *s);
struct vg_stream *vg_stream_of(void *handle); /* NULL when it is none: invalid handle */
uint16_t vg_stream_ordinal(struct vg_stream *s);
bool vg_stream_capturing(struct vg_stream *s);

/* One operation on a stream, in program order. `rec` is the record that it becomes: kind, flags, id, arg, bytes, ns are set by
 * the caller, host_ns and stream here. While the stream is captured into a CUDA graph it is kept there instead. */
void vg_enqueue(struct vg_stream *s, struct maq_rec rec);
/* The same for communication: `meetings` of one kernel (a group of n records, MAQ_REC_MORE set by this). */
struct vg_meeting {
    struct maq_rec rec; /* COLL, SEND or RECV; ns is the duration alone */
    uint64_t a, b;      /* name of the meeting (link.h) */
    uint32_t need;
    void *in, *out; /* buffers, for payloads that the host can see; NULL = not */
    uint64_t in_bytes, out_bytes;
    const void *send; /* the buffers that the program named */
    void *receive;
    bool supposed; /* what is in the buffer is what others of the same kind said */
};
void vg_enqueue_group(struct vg_stream *const *streams, const struct vg_meeting *parts, uint32_t n);

struct vg_event *vg_event_new(uint32_t flags);
void vg_event_free(struct vg_event *e);
void vg_event_record(struct vg_event *e, struct vg_stream *s);
void vg_stream_wait(struct vg_stream *s, struct vg_event *e);
/* When it is done: waits (for peers, never in vain: returns false when they have failed) until that is known. The virtual host clock
 * does not move: vg_wait_until() does that. */
bool vg_stream_end(struct vg_stream *s, int64_t *end);
bool vg_event_end(struct vg_event *e, int64_t *end);
bool vg_device_end(int64_t *end);

/* --- memory. core/memory.c ---------------------------------------------------------------------------------------------- */
struct vg_alloc {
    uint64_t base, bytes;
    uint32_t id;
    uint8_t kind; /* enum maq_rec_mem */
    bool backed;  /* the host may read and write it */
};
void *vg_mem_alloc(uint64_t bytes, enum maq_rec_mem kind, struct vg_stream *s); /* NULL = out of memory, recorded */
/*
 * Whether the calling thread prepares data beside those that drive, as the pinning one of a data loader: when it takes memory of the host is
 * a matter of scheduling. That moves no time, is not recorded, and leaves the numbers of other memory as they are.
 */
bool vg_mem_beside(enum maq_rec_mem kind);
bool vg_mem_free(void *p, struct vg_stream *s);        /* false = not ours */
bool vg_mem_find(const void *p, struct vg_alloc *out); /* p may point inside */
/* Makes the pages of a range real, so that the host may copy to or from them; false where the policy keeps them virtual. */
bool vg_mem_touch(const void *p, uint64_t bytes);
void vg_mem_info(uint64_t *free_bytes, uint64_t *total_bytes, uint64_t *peak_bytes);
/* What the host knows of device memory (core/known_bytes.c). The host wrote these bytes (a copy, a memset); something on the device may have written
 * these (a kernel, an operator of a library, a peer), or any; are they still as the host wrote them? */
void vg_mem_told(const void *p, uint64_t bytes);
void vg_mem_written(const void *p, uint64_t bytes);
void vg_mem_written_anywhere(void);
bool vg_mem_true(const void *p, uint64_t bytes);
/* The first piece of these bytes that they are: how many it has, and *skip before it; 0: none. All of the host's own memory is. */
uint64_t vg_mem_known_piece(const void *p, uint64_t bytes, uint64_t *skip);
/* Makes zeros of what the host does not know of these bytes of device memory, which are real (vg_mem_touch()). */
void vg_mem_blank(void *p, uint64_t bytes);

/* --- bytes that nobody has said. core/taint.c ---------------------------------------------------------------------------- */
/* What a rank that did not run was to say: a collective or message that one rank alone brings something to. */
struct vg_taint {
    uint64_t channel, call; /* call: of its kind on its communicator, from 0 */
    uint64_t bytes;
    uint32_t rank;     /* of the job; MAQ_REC_NONE: not known */
    uint32_t place, n; /* its place among the n of the communicator */
    uint32_t kind;     /* enum maq_rec_coll; MAQ_REC_NONE: a message */
    bool zeros;        /* the buffer holds zeros instead, and not what was there */
    bool real;         /* they are floating-point numbers: mostly what a kernel computed, and nobody runs for them */
};
/* They were to lie at p, where something else does. */
void vg_taint_mark(const void *p, const struct vg_taint *what);
/* Something else has been written there. */
void vg_taint_clear(const void *p, uint64_t bytes);
void vg_taint_clear_all(void);
/* A copy, or a number made of it. */
void vg_taint_copy(const void *to, const void *from, uint64_t bytes);
/* The host reads these bytes of device memory. */
void vg_taint_read(const void *p, uint64_t bytes);
/* The host reads what nobody has said, wherever it is: the program ends there, or is warned. nccl/tainted_read.c */
void vg_tainted_read(const struct vg_taint *what);

/* --- the trace. core/recorder.c ----------------------------------------------------------------------------------------- */
void vg_record(struct maq_rec rec, const void *payload); /* payload: rec.bytes bytes, or NULL */
/* Opens the trace before its first record: what is registered with atexit() from here on runs before its end. */
void vg_record_begin(void);
uint32_t vg_text(const char *text, size_t bytes); /* id of a DEF_TEXT */

/* --- questions. core/duration_query.c ---------------------------------------------------------------------------------------------- */
/* The program ends at this virtual time. */
void vg_duration_query_end(int64_t now);
int64_t vg_duration_query_op(const struct maq_rec_op *what, const char *name);
int64_t vg_duration_query_coll(const struct maq_rec_comm *comm, const uint32_t *members, enum maq_rec_coll kind,
                               uint64_t bytes);

/* --- exchanges and meetings. nccl/exchange.c, nccl/meeting.c --------------------------------------------------------------- */
/*
 * Puts in `bytes` of `mine` and fills all[n * bytes] (all[me] is mine). From the meeting segment when ranks run together;
 * otherwise what the slices of the others recorded; otherwise a guess: patterns, the node rule, a copy of one's own
 * (docs/peers.md). Records a BOOT. false: a peer failed.
 */
bool vg_exchange(uint64_t channel, uint32_t n, uint32_t me, const void *mine, uint64_t bytes, void *all);
/* The same where only the root has something to say. */
bool vg_exchange_from(uint64_t channel, uint32_t n, uint32_t me, uint32_t root, void *data, uint64_t bytes);

/* Gives a meeting the next name of its communicator. A group that goes into a stream has its names; at each launch of a CUDA
 * graph its parts get theirs anew, so that the nth launch is the nth meeting. */
void vg_meeting_name(struct vg_meeting *m);
/* Arrives at a meeting at virtual time `at`; part: 0 = member or sender, 1 = receiver. */
void vg_meeting_arrive(const struct vg_meeting *m, unsigned part, int64_t at);
/* Its end, once all have come. wait: sleeps until then. 1 = known (and not to be asked again), 0 = not yet, -1 = peers
 * failed. */
int vg_meeting_end(const struct vg_meeting *m, unsigned part, int64_t at, bool wait, int64_t *end);

/* Before the bytes [p, p + bytes) are copied or overwritten in the order of stream s: where a small collective that is under way
 * reads or writes them, waits (in real time) until it is over. Takes no virtual time. */
void vg_payload_settle(const void *p, uint64_t bytes, struct vg_stream *s);

/* --- calls that are not there. core/trap.c ------------------------------------------------------------------------------ */
/* Says so once per name and process; returns `answer`. */
int vg_trap(const char *library, const char *name, int answer);

#endif
