/* SPDX-License-Identifier: Apache-2.0 */
/* comms.c - the communicators of a process, by the number that records have of them. */
#include <stdlib.h>
#include <string.h>

#include "shim/nccl/nccl.h"

static struct vg_comm **comms;
static uint32_t n_comms, comms_room;

struct vg_comm *vg_comm_of(uint32_t id)
{
    vg_lock();
    struct vg_comm *comm = id < n_comms ? comms[id] : NULL;
    vg_unlock();
    return comm;
}

int vg_comm_check(const struct vg_comm *comm)
{
    if (!comm || comm->alive != VG_COMM_ALIVE)
        return VG_NCCL_INVALID_ARGUMENT;
    return vg_peers_failed() ? VG_NCCL_REMOTE_ERROR : comm->error;
}

struct vg_comm *vg_comm_new(uint32_t n, uint32_t me, uint64_t lineage)
{
    struct vg_comm *comm = calloc(1, sizeof *comm);
    if (!comm)
        return NULL;
    *comm = (struct vg_comm){.alive = VG_COMM_ALIVE,
                             .id = MAQ_REC_NONE,
                             .n = n,
                             .me = me,
                             .lineage = lineage,
                             .parent = MAQ_REC_NONE,
                             .device = (int)vg_device()};
    return comm;
}

/* Communicators have 16 bits in a record. */
static bool number(struct vg_comm *comm)
{
    if (n_comms == comms_room) {
        uint32_t more = comms_room ? comms_room * 2 : 16;
        struct vg_comm **bigger = more <= 1u << 16 ? realloc(comms, more * sizeof *comms) : NULL;
        if (!bigger)
            return false;
        comms = bigger;
        comms_room = more;
    }
    comm->id = n_comms;
    comms[n_comms++] = comm;
    return true;
}

int vg_comm_define(struct vg_comm *comm)
{
    uint64_t listed = comm->members && !comm->supposed ? comm->n : 0,
             bytes = sizeof(struct maq_rec_comm) + listed * sizeof(uint32_t);
    if (!vg_buffers_begin(comm)) {
        vg_buffers_end(comm);
        return VG_NCCL_CUDA_ERROR;
    }
    struct maq_rec_comm *payload = malloc(bytes);
    if (!payload)
        return VG_NCCL_SYSTEM_ERROR;
    *payload = (struct maq_rec_comm){.lineage = comm->lineage,
                                     .size = comm->n,
                                     .rank = comm->me,
                                     .parent = comm->parent,
                                     .color = comm->color,
                                     .key = comm->key,
                                     .n_members = (uint32_t)listed};
    if (listed)
        memcpy(payload + 1, comm->members, listed * sizeof(uint32_t));
    vg_lock();
    bool ok = number(comm);
    if (ok)
        vg_record(
            (struct maq_rec){.kind = MAQ_REC_DEF_COMM, .stream = MAQ_REC_HOST_STREAM, .id = comm->id, .bytes = bytes},
            payload);
    vg_unlock();
    free(payload);
    if (ok && vg_comm_settled)
        vg_comm_settled(comm);
    return ok ? VG_NCCL_SUCCESS : VG_NCCL_INTERNAL_ERROR;
}

uint32_t vg_comm_count(uint32_t n)
{
    uint32_t count = 0;
    vg_lock();
    for (uint32_t i = 0; i < n_comms; i++)
        count += comms[i]->n == n;
    vg_unlock();
    return count;
}
