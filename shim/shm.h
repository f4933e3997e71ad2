/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shm.h - the segment in which ranks that run at the same time meet: what link.h lays out, as calls.
 *
 * One file, mapped by everybody who takes part: by ranks of the program (shim/nccl) and by the replay that stands in for
 * the others (src/replay and src/launch, which may include this; the meson.build of the first lists shim/shm.c).
 * Nothing here knows of CUDA, of NCCL or of the rest of the shim; libc alone.
 *
 * A meeting is joined by its name, from then on its slot is this caller's until he leaves:
 *
 *     slot = maq_shm_join(meet, a, b, need, bytes);      claims it, or finds it
 *     maq_shm_put(meet, slot, index, data, bytes);       what he brings, if he brings something
 *     maq_shm_come(meet, slot, part, at, ns);            he is there, at virtual time `at`
 *     while (!maq_shm_complete(slot))                    asleep until somebody rings
 *         bell = maq_shm_bell(meet) ... maq_shm_sleep(meet, bell);
 *     end = maq_shm_ends(slot, as, message_bytes, ns);
 *     maq_shm_leave(meet, slot);                         the last one frees it
 *
 * Who comes first does not matter: times are maxima, contributions lie in the order of ranks. So the host scheduler
 * cannot be seen in a result.
 *
 * Claims, frees and the payload area are under one lock of the segment (a futex, held for some tens of ns: a process
 * that is killed inside it takes everybody with it, and then whoever notices calls maq_shm_stop()). Arrivals are atomic
 * and take no lock.
 */
#ifndef MAQ_SHIM_SHM_H
#define MAQ_SHIM_SHM_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/link.h"
#include "shim/record.h"

struct maq_shm {
    struct maq_shm_head *head; /* NULL: closed */
    struct maq_shm_slot *slot;
    unsigned char *data;
    uint64_t bytes; /* of the mapping */
    /* For maq_shm_watch(): the bell when it last rang, and when that was (real time); _Atomic. */
    uint32_t heard, watched;
    int64_t heard_ns;
};

#define MAQ_SHM_SLOTS (1u << 16)
#define MAQ_SHM_DATA (UINT64_C(1) << 30)     /* address space: pages that nobody writes take none */
#define MAQ_SHM_PAYLOAD (UINT64_C(64) << 20) /* need * bytes of one meeting, at most */
/* Real time without any arrival anywhere: three times the default time-out of PyTorch's collectives, since many ranks share
 * a few cores here while they start. */
#define MAQ_SHM_PATIENCE_NS INT64_C(1800000000000)

struct maq_shm_opts {
    uint32_t world;
    uint64_t n_slots, data_bytes; /* 0 = the defaults above */
    uint32_t owner; /* process that stands behind it: when it is gone, peers have failed; 0 = nobody does */
    /* Ranks that run, if not all: contributions to exchanges are waited for from these only. */
    const uint32_t *live;
    uint32_t n_live;
};

/*
 * Bytes that each of n members brings to a collective or a message that is really carried out; 0: it moves nothing. Numbers by which programs
 * decide are few. Single bytes may be an object, which its reader takes apart: as large as a copy to the device may be of which the device
 * keeps the bytes, and in a meeting, which has a place for each member (meets), as there is room.
 */
#define MAQ_CARRIED_NUMBERS (UINT64_C(64) << 10)
#define MAQ_CARRIED_OBJECT (UINT64_C(1) << 20)
uint64_t maq_carried_bytes(const struct maq_rec *rec, uint32_t n, bool meets);

/* Makes the file `path`, which must not be there. 0 or an errno. */
int maq_shm_create(const char *path, const struct maq_shm_opts *opts);
/* Maps it. 0 or an errno; EPROTO: not a segment, or a torn one. */
int maq_shm_open(struct maq_shm *out, const char *path);
void maq_shm_close(struct maq_shm *m);

/* Whether that rank runs, rather than being replayed. */
bool maq_shm_lives(const struct maq_shm *m, uint32_t rank);

/* The slot of (a, b); `need` and `bytes` count when it is claimed. NULL: everybody gives up, or the segment is full (then
 * everybody does as well: errno is ENOSPC). */
struct maq_shm_slot *maq_shm_join(struct maq_shm *m, uint64_t a, uint64_t b, uint32_t need, uint64_t bytes);
/* Lays `bytes` (at most the slot's) into place `index` (< need). */
void maq_shm_put(struct maq_shm *m, struct maq_shm_slot *s, uint32_t index, const void *data, uint64_t bytes);
/* What lies there; NULL: nothing. Only once the meeting is complete. */
const void *maq_shm_got(const struct maq_shm *m, const struct maq_shm_slot *s, uint32_t index);
void maq_shm_come(struct maq_shm *m, struct maq_shm_slot *s, unsigned part, int64_t at, int64_t ns);
bool maq_shm_complete(const struct maq_shm_slot *s);
void maq_shm_leave(struct maq_shm *m, struct maq_shm_slot *s);

/* When it ends, by the rules of link.h. A sender of an eager message may ask before the meeting is complete; own_ns is the
 * duration that he gave, and counts for him alone. */
enum maq_shm_as { MAQ_SHM_MEMBER, MAQ_SHM_SENDER, MAQ_SHM_RECEIVER };
int64_t maq_shm_ends(const struct maq_shm_slot *s, enum maq_shm_as as, uint64_t message_bytes, int64_t own_ns);

/* The bell counts meetings that became complete. maq_shm_sleep() returns once it differs from `bell`, or after a fifth
 * of a second; false = everybody gives up. */
uint32_t maq_shm_bell(const struct maq_shm *m);
bool maq_shm_sleep(struct maq_shm *m, uint32_t bell);
/* For those who poll and do not sleep: now and then looks whether the owner lives and whether anything happens; cheap. */
void maq_shm_watch(struct maq_shm *m);
void maq_shm_stop(struct maq_shm *m);
bool maq_shm_stopped(const struct maq_shm *m);

/* The name of the nth message from src to dst (ranks in the communicator). */
static inline uint64_t maq_shm_message(uint64_t lineage, uint32_t src, uint32_t dst)
{
    return maq_rec_mix(lineage, (uint64_t)src << 32 | dst);
}

#endif
