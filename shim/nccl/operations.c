/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operations.c - collectives and messages as a program calls them: what is wrong with the call, otherwise a part of a group.
 *
 * `bytes` of the record is what NCCL counts, times the element (record.h says of what).
 */
#include "shim/nccl/nccl.h"

struct call {
    struct vg_comm *comm;
    void *stream;
    const void *in;
    void *out;
    size_t count;
    int type, op;
    int peer; /* root, or the other side; -1: none */
    enum maq_rec_coll kind;
};
#define NO_OP VG_NCCL_SUM

static int wrong(const struct call *call)
{
    const struct vg_comm *comm = call->comm;
    int error = vg_comm_check(comm);
    if (error != VG_NCCL_SUCCESS)
        return error;
    if (comm->id == MAQ_REC_NONE)
        return VG_NCCL_INVALID_USAGE; /* its group has not ended yet */
    if (call->type < 0 || call->type >= VG_NCCL_TYPES || call->count > UINT64_MAX / 8)
        return VG_NCCL_INVALID_ARGUMENT;
    if (call->op < 0 || (uint32_t)call->op >= VG_NCCL_OPS + comm->own_ops)
        return VG_NCCL_INVALID_ARGUMENT;
    if (call->peer < -1 || (call->peer >= 0 && (uint32_t)call->peer >= comm->n))
        return VG_NCCL_INVALID_ARGUMENT;
    return VG_NCCL_SUCCESS;
}

static int add(const struct call *call, uint8_t kind)
{
    int error = wrong(call);
    if (error != VG_NCCL_SUCCESS)
        return vg_group_refuse(error);
    struct vg_stream *stream = vg_stream_of(call->stream);
    if (!stream)
        return vg_group_refuse(VG_NCCL_CUDA_ERROR);
    if (call->count == 0 && kind == MAQ_REC_COLL)
        return VG_NCCL_SUCCESS; /* NCCL launches nothing, on all members alike */
    uint32_t op = call->op < VG_NCCL_OPS ? (uint32_t)call->op : VG_NCCL_OPS;
    struct vg_part part = {.comm = call->comm, .stream = stream, .in = call->in, .out = call->out};
    part.m.need = kind == MAQ_REC_COLL ? call->comm->n : 2;
    part.m.rec = (struct maq_rec){.kind = kind,
                                  .id = MAQ_REC_COLL(call->comm->id, op, call->type, call->kind),
                                  .arg = call->peer < 0 ? MAQ_REC_NONE : (uint32_t)call->peer,
                                  .bytes = call->count * vg_type_bytes((unsigned)call->type)};
    return vg_group_add(&part);
}

NCCL_API(int, ncclAllReduce, const void *in, void *out, size_t count, int type, int op, struct vg_comm *comm,
         void *stream);
int ncclAllReduce(const void *in, void *out, size_t count, int type, int op, struct vg_comm *comm, void *stream)
{
    return add(&(struct call){comm, stream, in, out, count, type, op, -1, MAQ_REC_ALL_REDUCE}, MAQ_REC_COLL);
}

NCCL_API(int, ncclReduce, const void *in, void *out, size_t count, int type, int op, int root, struct vg_comm *comm,
         void *stream);
int ncclReduce(const void *in, void *out, size_t count, int type, int op, int root, struct vg_comm *comm, void *stream)
{
    if (root < 0)
        return vg_group_refuse(VG_NCCL_INVALID_ARGUMENT);
    return add(&(struct call){comm, stream, in, out, count, type, op, root, MAQ_REC_REDUCE}, MAQ_REC_COLL);
}

NCCL_API(int, ncclBroadcast, const void *in, void *out, size_t count, int type, int root, struct vg_comm *comm,
         void *stream);
int ncclBroadcast(const void *in, void *out, size_t count, int type, int root, struct vg_comm *comm, void *stream)
{
    if (root < 0)
        return vg_group_refuse(VG_NCCL_INVALID_ARGUMENT);
    return add(&(struct call){comm, stream, in, out, count, type, NO_OP, root, MAQ_REC_BROADCAST}, MAQ_REC_COLL);
}

NCCL_API(int, ncclBcast, void *buffer, size_t count, int type, int root, struct vg_comm *comm, void *stream);
int ncclBcast(void *buffer, size_t count, int type, int root, struct vg_comm *comm, void *stream)
{
    return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

NCCL_API(int, ncclAllGather, const void *in, void *out, size_t count, int type, struct vg_comm *comm, void *stream);
int ncclAllGather(const void *in, void *out, size_t count, int type, struct vg_comm *comm, void *stream)
{
    return add(&(struct call){comm, stream, in, out, count, type, NO_OP, -1, MAQ_REC_ALL_GATHER}, MAQ_REC_COLL);
}

NCCL_API(int, ncclReduceScatter, const void *in, void *out, size_t count, int type, int op, struct vg_comm *comm,
         void *stream);
int ncclReduceScatter(const void *in, void *out, size_t count, int type, int op, struct vg_comm *comm, void *stream)
{
    return add(&(struct call){comm, stream, in, out, count, type, op, -1, MAQ_REC_REDUCE_SCATTER}, MAQ_REC_COLL);
}

NCCL_API(int, ncclAlltoAll, const void *in, void *out, size_t count, int type, struct vg_comm *comm, void *stream);
int ncclAlltoAll(const void *in, void *out, size_t count, int type, struct vg_comm *comm, void *stream)
{
    return add(&(struct call){comm, stream, in, out, count, type, NO_OP, -1, MAQ_REC_ALL_TO_ALL}, MAQ_REC_COLL);
}

NCCL_API(int, ncclGather, const void *in, void *out, size_t count, int type, int root, struct vg_comm *comm,
         void *stream);
int ncclGather(const void *in, void *out, size_t count, int type, int root, struct vg_comm *comm, void *stream)
{
    if (root < 0)
        return vg_group_refuse(VG_NCCL_INVALID_ARGUMENT);
    return add(&(struct call){comm, stream, in, out, count, type, NO_OP, root, MAQ_REC_GATHER}, MAQ_REC_COLL);
}

NCCL_API(int, ncclScatter, const void *in, void *out, size_t count, int type, int root, struct vg_comm *comm,
         void *stream);
int ncclScatter(const void *in, void *out, size_t count, int type, int root, struct vg_comm *comm, void *stream)
{
    if (root < 0)
        return vg_group_refuse(VG_NCCL_INVALID_ARGUMENT);
    return add(&(struct call){comm, stream, in, out, count, type, NO_OP, root, MAQ_REC_SCATTER}, MAQ_REC_COLL);
}

NCCL_API(int, ncclSend, const void *in, size_t count, int type, int peer, struct vg_comm *comm, void *stream);
int ncclSend(const void *in, size_t count, int type, int peer, struct vg_comm *comm, void *stream)
{
    if (peer < 0)
        return vg_group_refuse(VG_NCCL_INVALID_ARGUMENT);
    return add(&(struct call){comm, stream, in, NULL, count, type, NO_OP, peer, MAQ_REC_P2P_PAIR}, MAQ_REC_SEND);
}

NCCL_API(int, ncclRecv, void *out, size_t count, int type, int peer, struct vg_comm *comm, void *stream);
int ncclRecv(void *out, size_t count, int type, int peer, struct vg_comm *comm, void *stream)
{
    if (peer < 0)
        return vg_group_refuse(VG_NCCL_INVALID_ARGUMENT);
    return add(&(struct call){comm, stream, NULL, out, count, type, NO_OP, peer, MAQ_REC_P2P_PAIR}, MAQ_REC_RECV);
}
