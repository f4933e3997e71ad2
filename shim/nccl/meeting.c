/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meeting.c - meetings of this rank's streams with others': names, arrivals, ends (link.h has the rules).
 *
 * A rank that runs alone meets nobody: an operation ends when it began plus its duration. In the segment, a member
 * arrives when the stream gets there and asks for the end until it is known; no order of threads or processes can be
 * seen in it.
 */
#include "shim/nccl/nccl.h"

#include <stdlib.h>

static uint64_t nth_message(struct vg_comm *comm, unsigned received, uint32_t peer)
{
    uint32_t **counts = &comm->messages[received];
    if (!*counts)
        *counts = calloc(comm->n, sizeof **counts);
    return *counts && peer < comm->n ? (*counts)[peer]++ : 0;
}

void vg_meeting_name(struct vg_meeting *m)
{
    vg_lock();
    struct vg_comm *comm = vg_comm_of(MAQ_REC_COLL_COMM(m->rec.id));
    if (comm && m->rec.kind == MAQ_REC_COLL) {
        m->a = comm->lineage;
        m->b = comm->colls++;
    } else if (comm) {
        bool receives = m->rec.kind == MAQ_REC_RECV;
        uint32_t peer = m->rec.arg;
        m->a =
            receives ? maq_shm_message(comm->lineage, peer, comm->me) : maq_shm_message(comm->lineage, comm->me, peer);
        m->b = nth_message(comm, receives, peer);
    }
    vg_unlock();
}

static struct maq_shm_slot *join(struct maq_shm *meet, const struct vg_meeting *m)
{
    return maq_shm_join(meet, m->a, m->b, m->need, vg_payload_bytes(m));
}

void vg_meeting_arrive(const struct vg_meeting *m, unsigned part, int64_t at)
{
    struct maq_shm *meet = vg_shm();
    struct maq_shm_slot *slot = meet ? join(meet, m) : NULL;
    if (!slot)
        return;
    vg_payload_put(meet, slot, m);
    maq_shm_come(meet, slot, part, at, (int64_t)m->rec.ns);
}

static enum maq_shm_as role(const struct vg_meeting *m)
{
    if (m->rec.kind == MAQ_REC_COLL)
        return MAQ_SHM_MEMBER;
    return m->rec.kind == MAQ_REC_SEND ? MAQ_SHM_SENDER : MAQ_SHM_RECEIVER;
}

int vg_meeting_end(const struct vg_meeting *m, unsigned part, int64_t at, bool wait, int64_t *end)
{
    (void)part;
    if (vg_peers_failed())
        return -1;
    struct maq_shm *meet = vg_shm();
    if (!meet) {
        *end = at + (int64_t)m->rec.ns;
        return 1;
    }
    struct maq_shm_slot *slot = join(meet, m);
    if (!slot)
        return -1;
    bool eager = m->rec.kind == MAQ_REC_SEND && m->rec.bytes <= MAQ_EAGER_BYTES;
    if (!eager && !maq_shm_complete(slot)) {
        maq_shm_watch(meet);
        if (!wait)
            return 0;
        if (!vg_meeting_wait(slot))
            return -1;
    }
    *end = maq_shm_ends(slot, role(m), m->rec.bytes, (int64_t)m->rec.ns);
    vg_payload_get(meet, slot, m);
    maq_shm_leave(meet, slot);
    return 1;
}
