/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl.h - what the files of shim/nccl share: communicators, parts of a group, exchanges in two steps, contributions.
 */
#ifndef MAQ_SHIM_NCCL_H
#define MAQ_SHIM_NCCL_H

#include "shim/abi/nccl.h"
#include "shim/shm.h"
#include "shim/vgpu.h"

/* An entry point and its second name, under which tools that wrap NCCL call the original. Stands before the definition. */
#define NCCL_API(type, name, ...)                                                                                      \
    VG_EXPORT type name(__VA_ARGS__);                                                                                  \
    VG_EXPORT type p##name(__VA_ARGS__) __attribute__((alias(#name)))

/* --- communicators. comms.c --------------------------------------------------------------------------------------------- */

/* Lives to the end of the process, whatever the program does with it: operations that it started may end later. */
struct vg_comm {
    uint32_t alive; /* VG_COMM_ALIVE; otherwise the program has destroyed it */
    uint32_t id;    /* in the trace */
    uint32_t n, me;
    uint64_t lineage;
    uint32_t *members; /* [n] global ranks; NULL: nobody said who they are */
    bool supposed;     /* not all of the members have said so: they lie like others */
    uint32_t parent, color, key;
    int device;
    uint32_t splits;            /* of it so far */
    uint64_t colls;             /* collectives so far */
    uint32_t *messages[2];      /* [n] so far: sent to, received from each peer; NULL: none yet */
    uint32_t own_ops;           /* reductions that the program made */
    int error;                  /* what asynchronous errors say */
    struct vg_buffers *buffers; /* device memory that NCCL takes for it; NULL: it is not counted */
};
#define VG_COMM_ALIVE 0x6d6d6f63u

/* The communicator of a record; NULL: none. */
struct vg_comm *vg_comm_of(uint32_t id);
/* What is wrong with a handle: VG_NCCL_SUCCESS, _INVALID_ARGUMENT, or the error of a communicator whose peers failed. */
int vg_comm_check(const struct vg_comm *comm);
struct vg_comm *vg_comm_new(uint32_t n, uint32_t me, uint64_t lineage);
/* Its members are settled: it gets an id and goes into the trace. */
int vg_comm_define(struct vg_comm *comm); /* an enum vg_nccl_result */
uint32_t vg_comm_count(uint32_t n);       /* of a size, so far */
/* Told of every communicator that is settled, outside of any capture; only the library for a real GPU has one. */
void vg_comm_settled(const struct vg_comm *comm) __attribute__((weak));

/* How it lies on nodes, and the channels that NCCL opens for it. channels.c */
#define VG_CHANNELS_MOST 64u /* MAXCHANNELS of NCCL */
struct vg_place {
    uint32_t local, index; /* members on this rank's node; which of them it is */
    bool leaves_node;
};
struct vg_place vg_comm_place(const struct vg_comm *comm);
unsigned vg_comm_channels(const struct vg_place *place);

/* Ranks in the parent of those of one color, by (key, rank); the caller frees it. NULL: no memory. all: (color, key). split.c */
uint32_t *vg_split_ranks(uint32_t *n_out, const uint32_t (*all)[2], uint32_t n, uint32_t color);

/* --- exchanges in two steps. exchange.c --------------------------------------------------------------------------------- */
struct vg_exchange {
    uint64_t channel;
    uint32_t n, me;
    const uint32_t *members; /* NULL: not known */
    const void *mine;        /* NULL: this member has nothing to say */
    uint64_t bytes;
    uint32_t root; /* who alone speaks; MAQ_REC_NONE: all do */
    bool colors;   /* colors and keys of a split, for guesses */
    bool ranks;    /* the members' ranks in the job: where nobody says more, patterns do (member_pattern.c) */
    uint32_t nth;  /* how many communicators of this size there were before */
    /* Set by vg_exchange_put(). all_ranks: member i is rank i, since it is of all and this one has its own place. */
    bool all_ranks;
    uint32_t seq, need, place;
    struct maq_shm_slot *slot;
    /* Set by vg_exchange_get(): everything that it gave was said by its owner; a pattern gave what was not. */
    bool certain, by_pattern;
};
bool vg_exchange_put(struct vg_exchange *x);
/* all: [n * bytes], or [bytes] where one alone speaks. */
bool vg_exchange_get(struct vg_exchange *x, void *all);

/* The segment, or NULL: this rank runs alone. */
struct maq_shm *vg_shm(void);
/* Asleep until the meeting is complete, without the lock; false: peers failed. */
bool vg_meeting_wait(const struct maq_shm_slot *slot);
bool vg_peers_failed(void);

/* How often `key` was counted before: 0, 1, 2, ... */
uint32_t vg_count(uint64_t key);

/* A name of a channel from where it belongs and what it is for. */
enum vg_channel_use { VG_CHANNEL_MEMBERS = 1, VG_CHANNEL_SPLIT, VG_CHANNEL_COLL, VG_CHANNEL_MESSAGE, VG_CHANNEL_MPI };
static inline uint64_t vg_channel(uint64_t lineage, enum vg_channel_use use)
{
    return maq_rec_mix(lineage, 0x6368616e00u + (uint64_t)use);
}
/* A contribution goes into the trace. */
void vg_exchange_record(uint64_t channel, uint32_t me, const void *mine, uint64_t bytes);

/* --- contributions of others. contributions.c, assumed_contributions.c ------------------------------------------------------------------ */

/* What `rank` put in; NULL: not recorded, or not of that size. It does not go into the file `inputs` of the card: exchanges and
 * collectives are written there as a whole. */
const void *vg_contribution(uint64_t channel, uint32_t seq, uint32_t rank, uint64_t bytes);
/* The same of any size. */
const void *vg_contribution_any(uint64_t channel, uint32_t seq, uint32_t rank, uint64_t *bytes);
/* The same, and that it was looked up goes into the file. */
const void *vg_contribution_of(uint64_t channel, uint32_t seq, uint32_t rank, uint64_t *bytes);
/* Of that rank, or of the last one before it that put something in, or else of the first behind it: *rank becomes whose it is. */
const void *vg_contribution_near(uint64_t channel, uint32_t seq, uint32_t *rank, uint64_t *bytes);
/* Whether anybody put anything into that channel. */
bool vg_contributed(uint64_t channel);
/* Whether a rank of the job ran, so that no more is to be had of it; or waits for what this one says. */
bool vg_ran(uint32_t rank);
bool vg_waits(uint32_t rank);
/* What was looked up, for maquette; input_record.c. `found` NULL: there was nothing, and `supposed` says whether another one's words stand for it. */
void vg_input_record_lookup(uint64_t channel, uint32_t seq, uint32_t rank, const void *found, uint64_t bytes,
                            bool supposed);
void vg_input_record_tainted_read(const struct vg_taint *u, bool stops);
void vg_input_record_exchange(const struct vg_exchange *x, const void *all, const unsigned char *have,
                              enum maq_input_steady steady);
/* What a collective reads of each place, in the order of places. Those that follow each other and give the same are one run. */
struct vg_reads {
    struct maq_input head;
    uint64_t (*word)[2]; /* [0]: what part of a contribution; then the runs */
    uint32_t n, size;
    bool kept; /* somebody wants to know */
};
struct vg_reads_part {
    uint64_t whole, at, n; /* bytes of a contribution, of it [at, at + n) */
    bool object;           /* it may be one: bytes, and not numbers */
};
void vg_reads_begin(struct vg_reads *r, uint64_t channel, uint32_t me, const struct vg_reads_part *part);
void vg_reads_place(struct vg_reads *r, uint32_t place, const void *part, bool said);
void vg_reads_end(struct vg_reads *r);
/* Maps another file in the place of the card's; tests. false: not such a file. */
bool vg_contributions_open(const char *path);

/* Fills in members by a pattern that maquette knows, if there is one that agrees with those who have said their ranks. member_pattern.c */
bool vg_all_ranks(uint32_t *members, const unsigned char *have, uint32_t n); /* of the communicator of all */
bool vg_member_pattern(uint32_t *members, const unsigned char *have, uint32_t n, uint32_t me, uint32_t nth);
/* Fills what have[i] == 0 says is missing of all[n * bytes], from what is there and from nodes. colors: of a split. true: it is
 * steady, so that others who say what was guessed of them change nothing. */
bool vg_assumed_contributions(void *all, const unsigned char *have, uint32_t n, uint32_t me, const uint32_t *members,
                              uint64_t bytes, bool colors);
/* The host name of a node, by the node rule; `out` has room for VG_HOST_NAME. */
#define VG_HOST_NAME 16
void vg_host_name(char *out, uint32_t node);

/* --- reductions. data.c --------------------------------------------------------------------------------------------------- */
uint64_t vg_type_bytes(unsigned type);
/* A floating-point number of an enum maq_rec_type; rounded to it (to nearest, ties to even). */
double vg_real_load(const void *at, unsigned type);
void vg_real_store(void *at, double x, unsigned type);
/* acc = acc op x; op: SUM, PROD, MAX, MIN, AVG (summed here). */
void vg_reduce(void *acc, const void *x, uint64_t count, unsigned type, unsigned op);
/* acc = x op x op ... (times >= 1) */
void vg_repeat(void *acc, const void *x, uint64_t count, unsigned type, unsigned op, uint64_t times);
/* The end of a reduction over n: AVG divides. */
void vg_reduced(void *acc, uint64_t count, unsigned type, unsigned op, uint64_t n);

/* --- payloads. payload.c ------------------------------------------------------------------------------------------------ */
/* Whether an operation is small and the host can see its buffers: then m->in and m->out are set, and what this rank puts
 * in goes into the trace if it is of integers. Alone, the result is there at once. */
void vg_payload_begin(struct vg_meeting *m, const void *in, void *out);
/* What slices recorded of whole numbers or bytes that come from one alone: of a broadcast of its root's place, of a message of place 0; NULL: nothing. */
const void *vg_payload_said(const struct vg_meeting *m, uint32_t place);
/* Arrival and end of a meeting. */
void vg_payload_put(struct maq_shm *meet, struct maq_shm_slot *slot, const struct vg_meeting *m);
void vg_payload_get(struct maq_shm *meet, struct maq_shm_slot *slot, const struct vg_meeting *m);
/* Whether what this rank brings to it from `in` is carried out: it is small, or begins with the host's own bytes, as an object does. */
bool vg_payload_carries(const struct vg_meeting *m, const void *in);
/* Room for one member's contribution in a slot: the same on every member, whatever its buffers are. 0: none moves. */
uint64_t vg_payload_bytes(const struct vg_meeting *m);

/* --- groups. group.c ------------------------------------------------------------------------------------------------------ */
/* One operation, now or at the end of the group. */
struct vg_part {
    struct vg_comm *comm;
    struct vg_stream *stream;
    struct vg_meeting m;
    const void *in;
    void *out;
};
int vg_group_add(const struct vg_part *part);
/* A call that is wrong: the group remembers its first error and does nothing. */
int vg_group_refuse(int error);

/* --- device memory of communicators. buffers.c ---------------------------------------------------------------------------- */
/* At initialisation, before the parts of a group on it, at its end. false: the device has no more. */
bool vg_buffers_begin(struct vg_comm *comm);
bool vg_buffers_connect(struct vg_comm *comm, const struct vg_part *parts, uint32_t n);
void vg_buffers_end(struct vg_comm *comm);

/* --- price.c -------------------------------------------------------------------------------------------------------------- */
/* Durations of the parts of one kernel, ns. */
void vg_price(struct vg_part *parts, uint32_t n);

#endif
