/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grid.c - the grid of NCCL's kernels: see grid.h. Rules of NCCL 2.30.7 (Apache-2.0), by file.
 *
 * Collectives, taken as rings under the Simple protocol (src/enqueue.cc, topoGetAlgoInfo). A block is a channel, and channels are
 * taken away, down to one, while
 *
 *     bytes < channels * 512 threads * 64 bytes        (NCCL_SIMPLE_MAX_NTHREADS, NCCL_SIMPLE_THREAD_THRESHOLD)
 *
 * so one is worth it for each 32 KiB; bytes are those of the larger of the two buffers. Then threads are halved under the same
 * condition while they are a multiple of 128; one warp more synchronises; three warps are the least. Small messages go by LL or
 * LL128 in NCCL, with other thresholds: with few blocks as well.
 *
 * Messages (addP2pToPlan): a channel for each 64 KiB (an eighth of a 512 KiB chunk over NVLink, half of a 128 KiB one over a
 * network), kernels of 640 threads (NCCL_MAX_NTHREADS). A send and a receive of one round share their channels.
 *
 * How many channels a communicator has: shim/nccl/channels.c.
 */
#include "shim/gpu/grid.h"

#include <assert.h>

#include "shim/gpu/wait.h"

static_assert(VG_CHANNELS_MOST <= VG_WAIT_BLOCKS, "a wait holds a block for every channel");

enum {
    WARP = 32,
    THREADS_COLL = 512,    /* NCCL_SIMPLE_MAX_NTHREADS */
    THREADS_MESSAGE = 640, /* NCCL_MAX_NTHREADS */
    THRESHOLD_BYTES = 64,  /* NCCL_SIMPLE_THREAD_THRESHOLD: of a thread */
    MESSAGE_BYTES = 64 << 10
};

/* Of the larger buffer: `bytes` of a record is what NCCL's `count` is of. */
static uint64_t larger_buffer(const struct vg_comm *comm, const struct maq_rec *rec)
{
    switch ((enum maq_rec_coll)MAQ_REC_COLL_KIND(rec->id)) {
    case MAQ_REC_ALL_GATHER:
    case MAQ_REC_REDUCE_SCATTER:
    case MAQ_REC_ALL_TO_ALL:
    case MAQ_REC_GATHER:
    case MAQ_REC_SCATTER:
        return rec->bytes * comm->n;
    default:
        return rec->bytes;
    }
}

static struct vg_grid collective(uint64_t bytes, unsigned most)
{
    uint64_t worth = bytes / ((uint64_t)THREADS_COLL * THRESHOLD_BYTES);
    struct vg_grid g = {.blocks = worth < 1 ? 1 : worth < most ? (unsigned)worth : most, .threads = THREADS_COLL};
    while (bytes < (uint64_t)g.blocks * g.threads * THRESHOLD_BYTES && g.threads % 128 == 0)
        g.threads /= 2;
    g.threads += WARP;
    g.threads = g.threads < 3 * WARP ? 3 * WARP : g.threads;
    return g;
}

struct vg_grid vg_grid_of(const struct vg_comm *comm, const struct vg_meeting *parts, uint32_t n)
{
    struct vg_place place = vg_comm_place(comm);
    unsigned most = vg_comm_channels(&place);
    struct vg_grid g = {0, 0};
    uint64_t blocks = 0, messages[2] = {0, 0}; /* sent, received */
    for (uint32_t i = 0; i < n; i++) {
        const struct maq_rec *rec = &parts[i].rec;
        struct vg_grid part = {.threads = THREADS_MESSAGE};
        if (rec->kind == MAQ_REC_COLL)
            part = collective(larger_buffer(comm, rec), most);
        else
            messages[rec->kind == MAQ_REC_RECV] += rec->bytes > 0 ? (rec->bytes - 1) / MESSAGE_BYTES + 1 : 1;
        blocks += part.blocks;
        g.threads = part.threads > g.threads ? part.threads : g.threads;
    }
    blocks += messages[0] > messages[1] ? messages[0] : messages[1];
    g.blocks = blocks < 1 ? 1 : blocks < most ? (unsigned)blocks : most;
    return g;
}
