/* SPDX-License-Identifier: Apache-2.0 */
/*
 * price.c - how long the parts of one kernel take, by the parent's cost chain (vg_duration_query_coll: each distinct question once).
 *
 * A collective is asked for by communicator and size; a message, as a communicator of two. A kernel with messages to or from
 * more than two peers shares this rank's links between them, which a price for each alone would not see: it is asked for
 * as the all-to-all that such groups are, of the bytes that this rank moves to (or gets from) each member on average,
 * and all its messages take that long.
 */
#include "shim/nccl/nccl.h"

static struct maq_rec_comm as_asked(const struct vg_comm *comm)
{
    return (struct maq_rec_comm){.lineage = comm->lineage,
                                 .size = comm->n,
                                 .rank = comm->me,
                                 .parent = comm->parent,
                                 .color = comm->color,
                                 .key = comm->key,
                                 .n_members = comm->members ? comm->n : 0};
}

static uint64_t of_comm(const struct vg_comm *comm, enum maq_rec_coll kind, uint64_t bytes)
{
    struct maq_rec_comm question = as_asked(comm);
    return (uint64_t)vg_duration_query_coll(&question, comm->members, kind, bytes);
}

/* Between this rank and one peer, in the direction of the message. */
static uint64_t of_pair(const struct vg_part *part)
{
    const struct vg_comm *comm = part->comm;
    bool sends = part->m.rec.kind == MAQ_REC_SEND;
    uint32_t src = sends ? comm->me : part->m.rec.arg, dst = sends ? part->m.rec.arg : comm->me, members[2];
    struct maq_rec_comm question = {.lineage = maq_shm_message(comm->lineage, src, dst),
                                    .size = 2,
                                    .parent = comm->id,
                                    .n_members = comm->members ? 2 : 0};
    if (comm->members) {
        members[0] = comm->members[src];
        members[1] = comm->members[dst];
    }
    return (uint64_t)vg_duration_query_coll(&question, comm->members ? members : NULL, MAQ_REC_P2P_PAIR,
                                            part->m.rec.bytes);
}

/* Bytes that messages of one direction move in the kernel of part `of`, and to how many peers, at most 3 counted. */
static uint64_t moved(const struct vg_part *parts, uint32_t n, const struct vg_part *of, uint8_t kind, uint32_t *peers)
{
    uint64_t bytes = 0;
    uint32_t seen[3], known = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct maq_rec *rec = &parts[i].m.rec;
        if (parts[i].comm != of->comm || rec->kind != kind || rec->arg == of->comm->me)
            continue;
        bytes += rec->bytes;
        bool fresh = known < 3;
        for (uint32_t k = 0; k < known; k++)
            fresh = fresh && seen[k] != rec->arg;
        if (fresh)
            seen[known++] = rec->arg;
    }
    *peers = known;
    return bytes;
}

/* One price for all messages of a busy kernel; 0: each has its own. */
static uint64_t of_messages(const struct vg_part *parts, uint32_t n, const struct vg_part *of)
{
    uint32_t to, from;
    uint64_t sent = moved(parts, n, of, MAQ_REC_SEND, &to), got = moved(parts, n, of, MAQ_REC_RECV, &from);
    if (to < 3 && from < 3)
        return 0;
    return of_comm(of->comm, MAQ_REC_ALL_TO_ALL, (sent > got ? sent : got) / of->comm->n);
}

void vg_price(struct vg_part *parts, uint32_t n)
{
    uint64_t together = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct vg_part *part = &parts[i];
        if (part->m.rec.kind == MAQ_REC_COLL) {
            part->m.rec.ns =
                of_comm(part->comm, (enum maq_rec_coll)MAQ_REC_COLL_KIND(part->m.rec.id), part->m.rec.bytes);
            continue;
        }
        if (i == 0 || part[-1].m.rec.kind == MAQ_REC_COLL || part[-1].comm != part->comm)
            together = of_messages(parts, n, part);
        part->m.rec.ns = together ? together : of_pair(part);
    }
}
