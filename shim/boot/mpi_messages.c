/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi_messages.c - MPI's messages between two ranks: small ones, as programs send while they start.
 *
 * In a host program: MPI_Send(), MPI_Recv() and their like.
 *
 * A message is an exchange in which one side speaks: first how long it is, then its bytes in pieces. A sender does not
 * wait for his receiver. Alone, a message is what the sender's slice recorded; where none is, the buffer stays as it is.
 * Messages of one (source, destination, tag) keep their order. "Any source" and "any tag" are refused: which message that
 * is would depend on the host scheduler.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/boot/mpi.h"

#define PIECE (UINT64_C(2) << 20)

struct message {
    const struct vg_mpi_comm *comm;
    uint64_t channel;
    uint32_t seq;
    char *data;
    uint64_t bytes; /* of the buffer */
    int peer, tag;
    bool sends;
};

/* What is wrong with a message; VG_MPI_PROC_NULL: nothing, and there is nothing to do. */
static int begin(struct message *m, bool sends, void *data, int count, void *type, int peer, int tag, void *comm)
{
    struct vg_mpi_type t;
    const struct vg_mpi_comm *c = vg_mpi_comm_of(comm);
    if (!c)
        return VG_MPI_ERR_COMM;
    if (peer == VG_MPI_PROC_NULL)
        return VG_MPI_PROC_NULL;
    if (peer == VG_MPI_ANY || tag == VG_MPI_ANY)
        return VG_MPI_ERR_UNSUPPORTED;
    if (peer < 0 || (uint32_t)peer >= c->n || tag < 0)
        return tag < 0 ? VG_MPI_ERR_TAG : VG_MPI_ERR_RANK;
    if (count < 0 || !vg_mpi_type_of(&t, type))
        return count < 0 ? VG_MPI_ERR_COUNT : VG_MPI_ERR_TYPE;
    uint32_t src = sends ? c->me : (uint32_t)peer, dst = sends ? (uint32_t)peer : c->me;
    *m = (struct message){
        .comm = c, .data = data, .bytes = t.bytes * (uint64_t)count, .peer = peer, .tag = tag, .sends = sends};
    m->channel = maq_rec_mix(vg_channel(maq_shm_message(c->lineage, src, dst), VG_CHANNEL_MPI), (uint64_t)tag);
    m->seq = vg_count(maq_rec_mix(m->channel, sends ? 1 : 2));
    return VG_MPI_SUCCESS;
}

/* Whether the other side runs at this time. */
static struct maq_shm *meets(const struct message *m)
{
    struct maq_shm *meet = vg_shm();
    return meet && maq_shm_lives(meet, m->comm->members[m->peer]) ? meet : NULL;
}

/* One piece through the segment; false: the other side failed. */
static bool pass(struct maq_shm *meet, const struct message *m, uint32_t piece, void *data, uint64_t bytes)
{
    struct maq_shm_slot *slot = maq_shm_join(meet, m->channel, (uint64_t)m->seq << 16 | piece, 2, bytes);
    if (!slot)
        return false;
    if (m->sends)
        maq_shm_put(meet, slot, 0, data, bytes);
    maq_shm_come(meet, slot, !m->sends, 0, 0);
    if (!m->sends) {
        const void *got = vg_meeting_wait(slot) ? maq_shm_got(meet, slot, 0) : NULL;
        if (!got)
            return false;
        memcpy(data, got, bytes);
    }
    maq_shm_leave(meet, slot);
    return true;
}

static bool pass_all(struct maq_shm *meet, const struct message *m, uint64_t bytes)
{
    uint32_t piece = 1;
    bool ok = true;
    for (uint64_t at = 0; at < bytes && ok; at += PIECE)
        ok = pass(meet, m, piece++, m->data + at, bytes - at < PIECE ? bytes - at : PIECE);
    return ok;
}

static int send_now(struct message *m)
{
    vg_exchange_record(m->channel, 0, m->data, m->bytes);
    struct maq_shm *meet = meets(m);
    if (meet && (!pass(meet, m, 0, &m->bytes, sizeof m->bytes) || !pass_all(meet, m, m->bytes)))
        return VG_MPI_ERR_OTHER;
    return VG_MPI_SUCCESS;
}

static int receive_now(struct message *m, struct vg_mpi_status *status)
{
    struct maq_shm *meet = meets(m);
    uint64_t bytes = m->bytes;
    if (meet) {
        if (!pass(meet, m, 0, &bytes, sizeof bytes))
            return VG_MPI_ERR_OTHER;
        if (bytes > m->bytes)
            return VG_MPI_ERR_TRUNCATE;
        if (!pass_all(meet, m, bytes))
            return VG_MPI_ERR_OTHER;
    } else {
        const void *recorded = vg_contribution_of(m->channel, m->seq, 0, &bytes);
        if (recorded && bytes > m->bytes)
            return VG_MPI_ERR_TRUNCATE;
        if (recorded)
            memcpy(m->data, recorded, bytes);
    }
    if (status)
        *status = (struct vg_mpi_status){.source = m->peer, .tag = m->tag, .bytes = bytes};
    return VG_MPI_SUCCESS;
}

static int nobody(struct vg_mpi_status *status)
{
    if (status)
        *status = (struct vg_mpi_status){.source = VG_MPI_PROC_NULL, .tag = VG_MPI_ANY};
    return VG_MPI_SUCCESS;
}

MPI_API(int, MPI_Send, const void *data, int count, void *type, int peer, int tag, void *comm);
int MPI_Send(const void *data, int count, void *type, int peer, int tag, void *comm)
{
    struct message m;
    int error = begin(&m, true, (void *)(uintptr_t)data, count, type, peer, tag, comm);
    if (error == VG_MPI_PROC_NULL)
        return VG_MPI_SUCCESS;
    return vg_mpi_error("MPI_Send", error == VG_MPI_SUCCESS ? send_now(&m) : error);
}

MPI_API(int, MPI_Recv, void *data, int count, void *type, int peer, int tag, void *comm, struct vg_mpi_status *status);
int MPI_Recv(void *data, int count, void *type, int peer, int tag, void *comm, struct vg_mpi_status *status)
{
    struct message m;
    int error = begin(&m, false, data, count, type, peer, tag, comm);
    if (error == VG_MPI_PROC_NULL)
        return nobody(status);
    return vg_mpi_error("MPI_Recv", error == VG_MPI_SUCCESS ? receive_now(&m, status) : error);
}

MPI_API(int, MPI_Sendrecv, const void *out, int n_out, void *out_type, int dst, int out_tag, void *in, int n_in,
        void *in_type, int src, int in_tag, void *comm, struct vg_mpi_status *status);
int MPI_Sendrecv(const void *out, int n_out, void *out_type, int dst, int out_tag, void *in, int n_in, void *in_type,
                 int src, int in_tag, void *comm, struct vg_mpi_status *status)
{
    int error = MPI_Send(out, n_out, out_type, dst, out_tag, comm);
    return error == VG_MPI_SUCCESS ? MPI_Recv(in, n_in, in_type, src, in_tag, comm, status) : error;
}

/* --- requests: a send is over at once, a receive waits until somebody asks for it ----------------------------------------- */

extern char ompi_request_null[];

static int request(void **out, bool sends, void *data, int count, void *type, int peer, int tag, void *comm)
{
    struct message m;
    int error = begin(&m, sends, data, count, type, peer, tag, comm);
    *out = ompi_request_null;
    if (error != VG_MPI_SUCCESS || sends)
        return error == VG_MPI_PROC_NULL ? VG_MPI_SUCCESS : error != VG_MPI_SUCCESS ? error : send_now(&m);
    struct message *kept = malloc(sizeof *kept);
    if (!kept)
        return VG_MPI_ERR_NO_MEM;
    *kept = m;
    *out = kept;
    return VG_MPI_SUCCESS;
}

MPI_API(int, MPI_Isend, const void *data, int count, void *type, int peer, int tag, void *comm, void **out);
int MPI_Isend(const void *data, int count, void *type, int peer, int tag, void *comm, void **out)
{
    return vg_mpi_error("MPI_Isend", request(out, true, (void *)(uintptr_t)data, count, type, peer, tag, comm));
}

MPI_API(int, MPI_Irecv, void *data, int count, void *type, int peer, int tag, void *comm, void **out);
int MPI_Irecv(void *data, int count, void *type, int peer, int tag, void *comm, void **out)
{
    return vg_mpi_error("MPI_Irecv", request(out, false, data, count, type, peer, tag, comm));
}

MPI_API(int, MPI_Wait, void **req, struct vg_mpi_status *status);
int MPI_Wait(void **req, struct vg_mpi_status *status)
{
    if (!req || *req == ompi_request_null)
        return nobody(status);
    struct message *m = *req;
    int error = receive_now(m, status);
    free(m);
    *req = ompi_request_null;
    return vg_mpi_error("MPI_Wait", error);
}

MPI_API(int, MPI_Waitall, int n, void **reqs, struct vg_mpi_status *statuses);
int MPI_Waitall(int n, void **reqs, struct vg_mpi_status *statuses)
{
    int error = VG_MPI_SUCCESS;
    for (int i = 0; i < n && error == VG_MPI_SUCCESS; i++)
        error = MPI_Wait(&reqs[i], statuses ? &statuses[i] : NULL);
    return error;
}

MPI_API(int, MPI_Test, void **req, int *done, struct vg_mpi_status *status);
int MPI_Test(void **req, int *done, struct vg_mpi_status *status)
{
    *done = 1; /* it waits: whether a message is there already is the host scheduler's affair */
    return MPI_Wait(req, status);
}
