/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collective.c - collectives through NCCL, one process with a communicator per GPU.
 *
 * state->stream is that of the first GPU, on which the time is taken: its kernel begins when everything before it on
 * that stream is done, the last of all ranks, because only there are the batch's first kernel and the emptying of the
 * cache; and it ends when the collective has.
 */
#include <stdio.h>
#include <string.h>

#include "measure/cuda/cuda_backend.h"

#ifdef MAQ_HAVE_NCCL

static bool good(struct maq_cuda *s, ncclResult_t status, const char *what)
{
    return status == ncclSuccess || maq_cuda_fail(s, what, ncclGetErrorString(status));
}

/* What one rank calls. Counts are bytes; reductions add bfloat16, whose arithmetic is what training does. */
static ncclResult_t call(const struct maq_cuda_coll *g, uint32_t rank, const struct maq_coll *coll)
{
    size_t bytes = (size_t)coll->bytes, part = bytes / g->ranks, elements = bytes / 2,
           part_elements = elements / g->ranks;
    ncclComm_t comm = g->comms[rank];
    cudaStream_t stream = g->streams[rank];
    switch ((enum maq_coll_kind)coll->kind) {
    case MAQ_COLL_ALL_REDUCE:
        return ncclAllReduce(g->send[rank], g->receive[rank], elements > 0 ? elements : 1, ncclBfloat16, ncclSum, comm,
                             stream);
    case MAQ_COLL_ALL_GATHER:
        return ncclAllGather(g->send[rank], g->receive[rank], part > 0 ? part : 1, ncclInt8, comm, stream);
    case MAQ_COLL_REDUCE_SCATTER:
        return ncclReduceScatter(g->send[rank], g->receive[rank], part_elements > 0 ? part_elements : 1, ncclBfloat16,
                                 ncclSum, comm, stream);
    case MAQ_COLL_BROADCAST:
        return ncclBroadcast(g->send[rank], g->receive[rank], bytes, ncclInt8, 0, comm, stream);
    case MAQ_COLL_SEND_RECV: /* from the first to the second */
        return rank == 0   ? ncclSend(g->send[0], bytes, ncclInt8, 1, comm, stream)
               : rank == 1 ? ncclRecv(g->receive[1], bytes, ncclInt8, 0, comm, stream)
                           : ncclSuccess;
    case MAQ_COLL_ALL_TO_ALL:
        for (uint32_t peer = 0; peer < g->ranks; peer++) {
            ncclResult_t sent = ncclSend((char *)g->send[rank] + peer * part, part, ncclInt8, (int)peer, comm, stream);
            ncclResult_t received =
                ncclRecv((char *)g->receive[rank] + peer * part, part, ncclInt8, (int)peer, comm, stream);
            if (sent != ncclSuccess || received != ncclSuccess)
                return sent != ncclSuccess ? sent : received;
        }
        return ncclSuccess;
    case MAQ_COLL_DISPATCH:
    case MAQ_COLL_COMBINE:
    case MAQ_COLL_KIND_COUNT:
        break;
    }
    return ncclInvalidUsage;
}

static bool launch(struct maq_cuda *s)
{
    const struct maq_cuda_coll *g = &s->coll;
    ncclResult_t status = ncclGroupStart();
    for (uint32_t rank = 0; rank < g->ranks && status == ncclSuccess; rank++)
        status = call(g, rank, &s->c->coll);
    ncclResult_t end = ncclGroupEnd();
    return good(s, status != ncclSuccess ? status : end, "NCCL");
}

/* Making communicators takes seconds: they are kept as long as the number of ranks stays. */
static bool open_comms(struct maq_cuda *s, uint32_t ranks)
{
    struct maq_cuda_coll *g = &s->coll;
    int devices[MAQ_CUDA_GPUS];
    bool fine = true;
    if (g->ranks == ranks)
        return true;
    maq_cuda_close_coll(s);
    for (uint32_t rank = 0; rank < ranks && fine; rank++) {
        devices[rank] = (int)rank;
        g->streams[rank] = rank == 0 ? s->stream : NULL;
        fine = maq_cuda_good(s, cudaSetDevice((int)rank), "another GPU") &&
               (rank == 0 ||
                maq_cuda_good(s, cudaStreamCreateWithFlags(&g->streams[rank], cudaStreamNonBlocking), "a stream"));
    }
    (void)cudaSetDevice(0);
    g->ranks = ranks;
    return fine && good(s, ncclCommInitAll(g->comms, (int)ranks, devices), "NCCL's communicators");
}

bool maq_cuda_prepare_coll(struct maq_cuda *s, const char **kernel)
{
    struct maq_cuda_coll *g = &s->coll;
    const struct maq_profile_case *c = s->c;
    if (c->coll.at.size > MAQ_CUDA_GPUS)
        return maq_cuda_fail(s, "NCCL", "more GPUs than one process is given here");
    bool fine = open_comms(s, c->coll.at.size);
    for (uint32_t rank = 0; rank < g->ranks && fine; rank++)
        fine = maq_cuda_good(s, cudaSetDevice((int)rank), "another GPU") &&
               maq_cuda_good(s, cudaMalloc(&g->send[rank], (size_t)c->bytes[0] + 256), "memory for a buffer") &&
               maq_cuda_good(s, cudaMalloc(&g->receive[rank], (size_t)c->bytes[1] + 256), "memory for a buffer") &&
               maq_cuda_good(s, cudaMemset(g->send[rank], 0, (size_t)c->bytes[0]), "a buffer");
    (void)cudaSetDevice(0);
    s->launch = launch;
    *kernel = "nccl";
    return fine;
}

void maq_cuda_release_coll(struct maq_cuda *s)
{
    struct maq_cuda_coll *g = &s->coll;
    for (uint32_t rank = 0; rank < g->ranks; rank++) {
        (void)cudaSetDevice((int)rank);
        (void)cudaDeviceSynchronize();
        (void)cudaFree(g->send[rank]);
        (void)cudaFree(g->receive[rank]);
        g->send[rank] = g->receive[rank] = NULL;
    }
    (void)cudaSetDevice(0);
}

void maq_cuda_close_coll(struct maq_cuda *s)
{
    struct maq_cuda_coll *g = &s->coll;
    for (uint32_t rank = 0; rank < g->ranks; rank++) {
        (void)cudaSetDevice((int)rank);
        if (g->comms[rank])
            (void)ncclCommDestroy(g->comms[rank]);
        if (rank > 0 && g->streams[rank])
            (void)cudaStreamDestroy(g->streams[rank]);
    }
    (void)cudaSetDevice(0);
    memset(g, 0, sizeof *g);
}

#else

bool maq_cuda_prepare_coll(struct maq_cuda *s, const char **kernel)
{
    (void)kernel;
    return maq_cuda_fail(s, "NCCL", "this module was built without it");
}

void maq_cuda_release_coll(struct maq_cuda *s)
{
    (void)s;
}

void maq_cuda_close_coll(struct maq_cuda *s)
{
    (void)s;
}

#endif
