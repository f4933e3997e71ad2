/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffers.c - device memory that NCCL takes for a communicator.
 *
 * What is taken when, on this rank, is a recorded profile (`nccl_memory FILE` of the card, rows of link.h: what NCCL
 * was seen to take on a real machine) or else the rule of NCCL 2.30.7 with its defaults. Every allocation is rounded
 * to 2 MiB (src/include/alloc.h; CUDA_IPC_MIN).
 *
 *   init         for each channel: connection states of all peers, 4 of 152 bytes for each (struct ncclDevChannelPeer), pointers to them,
 *                and the ring's order (src/channel.cc); 2 MiB for the communicator itself
 *   collective   the rings, at the first one (NCCL_RUNTIME_CONNECT). A receiving connection holds the buffers of all protocols: LL 512 KiB,
 *                LL128 4,915,200 bytes, Simple 4 MiB (src/init.cc, computeBuffSizes): 10 MiB. A sending one over NVLink holds 2 MiB of
 *                pointers (src/transport/p2p.cc); over a network LL128 and Simple: 10 MiB (net.cc, with GPUDirect RDMA). Between GPUs of
 *                capability 8.0 the receiver reads, so Simple lies with the sender: 6 and 6 MiB. A ring enters a node at the GPU of its NIC
 *                and leaves it at the one before.
 *   send, recv   with a peer on the node, at the first message to it or from it: that connection on 32 channels over NVLink; with all
 *                peers elsewhere, at the first: a pool of 16 steps of 128 KiB for each channel (net.cc, sharedNetBuffersInit)
 *
 * Not counted by the rule: trees, NVLS, and what connections over PXN and symmetric memory take; a profile has them. A communicator
 * connects at its first operation outside of a stream capture.
 */
#include "shim/nccl/nccl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/grow.h"

#define MIB ((uint64_t)1 << 20)

enum {
    LL_BYTES = 8 * 512 * 8 * 16,     /* lines a thread, threads, steps, bytes */
    LL128_BYTES = 120 * 640 * 8 * 8, /* elements a thread, threads, steps, bytes */
    SIMPLE_BYTES = 4 << 20,          /* NCCL_BUFFSIZE */
    POINTERS_BYTES = 4096,           /* ncclSendMem, ncclRecvMem: a page */
    PEER_BYTES = 4 * 152,            /* ncclDevChannelPeer */
    POOL_BYTES = 16 * (128 << 10),   /* NCCL_SHARED_STEPS, NCCL_P2P_NET_CHUNKSIZE */
    MESSAGE_CHANNELS = 32,           /* 18 links, doubled, to a power of two, no more than there are */
    AMPERE = 80
};

struct vg_buffers {
    bool rings, pool[2];  /* that are there; pools for what is sent and what is received */
    unsigned char *peers; /* [n] bit 0: connected to send, bit 1: to receive; NULL: none yet */
    void **at;            /* what was taken */
    uint32_t n, room;
};

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
}

/* --- the rule --------------------------------------------------------------------------------------------------------- */

/* One connection of one channel. */
static uint64_t connection(bool sends, bool network)
{
    bool reads = !network && vg_card()->capability == AMPERE;
    uint64_t bytes = POINTERS_BYTES;
    if (sends)
        return rounded(bytes + (network ? LL128_BYTES + SIMPLE_BYTES : reads ? SIMPLE_BYTES : 0));
    return rounded(bytes + LL_BYTES + LL128_BYTES + (reads ? 0 : SIMPLE_BYTES));
}

static unsigned power_of_two(unsigned n)
{
    unsigned p = 1;
    while (p < n)
        p *= 2;
    return p;
}

static uint64_t by_rule(enum maq_comm_memory what, const struct vg_comm *comm, const struct vg_place *place, bool here)
{
    unsigned channels = vg_comm_channels(place), all = power_of_two(channels);
    uint64_t bytes = 0;
    switch (what) {
    case MAQ_COMM_MEMORY_NONE:
        break;
    case MAQ_COMM_MEMORY_INIT:
        return 2 * MIB + all * (rounded((uint64_t)comm->n * PEER_BYTES) + rounded((uint64_t)comm->n * sizeof(void *)) +
                                rounded((uint64_t)comm->n * sizeof(int)));
    case MAQ_COMM_MEMORY_COLLECTIVE:
        for (unsigned c = 0; c < channels; c++) {
            bool enters = place->leaves_node && c % place->local == place->index;
            bool leaves = place->leaves_node && c % place->local == (place->index + 1) % place->local;
            bytes += connection(false, enters) + connection(true, leaves);
        }
        return bytes;
    case MAQ_COMM_MEMORY_SEND:
    case MAQ_COMM_MEMORY_RECV:
        if (!here)
            return all * (uint64_t)POOL_BYTES;
        return (all < MESSAGE_CHANNELS ? all : MESSAGE_CHANNELS) * connection(what == MAQ_COMM_MEMORY_SEND, false);
    }
    return 0;
}

/* --- the profile ------------------------------------------------------------------------------------------------------ */

static struct maq_comm_memory_row *rows;
static uint32_t n_rows;
static enum { UNREAD, NOTHING, RULE } otherwise; /* where no row is about it */

static void read_rows(const char *path)
{
    FILE *file = fopen(path, "re");
    char line[256];
    uint32_t room = 0;
    while (file && fgets(line, sizeof line, file)) {
        struct maq_comm_memory_row row;
        if (maq_comm_memory_read(&row, line) != 1)
            continue;
        if (n_rows == room) {
            room = room ? 2 * room : 32;
            struct maq_comm_memory_row *grown = realloc(rows, room * sizeof *rows);
            if (!grown)
                break;
            rows = grown;
        }
        rows[n_rows++] = row;
    }
    if (file)
        (void)fclose(file);
}

static uint64_t bytes_of(enum maq_comm_memory what, const struct vg_comm *comm, bool here)
{
    const char *from = vg_card()->nccl_memory;
    struct vg_place place = vg_comm_place(comm);
    vg_lock();
    if (otherwise == UNREAD) {
        otherwise = from[0] ? RULE : NOTHING;
        if (from[0] && strcmp(from, "rule") != 0)
            read_rows(from);
    }
    vg_unlock();
    if (otherwise == NOTHING || comm->n < 2)
        return 0;
    bool message = what == MAQ_COMM_MEMORY_SEND || what == MAQ_COMM_MEMORY_RECV;
    bool in_node = message ? here : !place.leaves_node;
    for (uint32_t i = 0; i < n_rows; i++)
        if (rows[i].what == what && (!rows[i].ranks || rows[i].ranks == comm->n) && rows[i].in_node == in_node)
            return rows[i].bytes;
    return by_rule(what, comm, &place, here);
}

/* --- what is taken ---------------------------------------------------------------------------------------------------- */

static bool take(struct vg_comm *comm, uint64_t bytes)
{
    struct vg_buffers *b = comm->buffers;
    if (bytes == 0)
        return true;
    void **grown = vg_grown(b->at, b->n, &b->room, 4, sizeof *grown);
    if (grown == NULL)
        return false;
    b->at = grown;
    unsigned was = vg_device();
    vg_device_set(comm->device);
    void *p = vg_mem_alloc(bytes, MAQ_REC_DEVICE, NULL);
    vg_device_set((int)was);
    if (p)
        b->at[b->n++] = p;
    return p != NULL;
}

static bool is_here(const struct vg_comm *comm, uint32_t peer)
{
    uint32_t per_node = vg_card()->per_node;
    return comm->members ? comm->members[peer] / per_node == comm->members[comm->me] / per_node
                         : peer / per_node == comm->me / per_node;
}

/* What a connection for messages with a peer takes, if it is not there yet. */
static uint64_t connect_peer(struct vg_comm *comm, uint32_t peer, bool receives)
{
    struct vg_buffers *b = comm->buffers;
    bool here = is_here(comm, peer);
    if (peer == comm->me || (b->peers[peer] >> receives & 1) || (!here && b->pool[receives]))
        return 0;
    b->peers[peer] |= (unsigned char)(1u << receives);
    b->pool[receives] = b->pool[receives] || !here;
    return bytes_of(receives ? MAQ_COMM_MEMORY_RECV : MAQ_COMM_MEMORY_SEND, comm, here);
}

/* Collectives that NCCL makes of messages. */
static uint64_t connect_peers(struct vg_comm *comm, enum maq_rec_coll kind, uint32_t root)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < comm->n; i++) {
        bool all = kind == MAQ_REC_ALL_TO_ALL, with_root = i == root || comm->me == root;
        bool from_root = kind == MAQ_REC_SCATTER;
        if (all || (with_root && (comm->me == root) == from_root))
            bytes += connect_peer(comm, i, false);
        if (all || (with_root && (comm->me == root) != from_root))
            bytes += connect_peer(comm, i, true);
    }
    return bytes;
}

static uint64_t connect_part(struct vg_comm *comm, const struct maq_rec *rec)
{
    struct vg_buffers *b = comm->buffers;
    enum maq_rec_coll kind = (enum maq_rec_coll)MAQ_REC_COLL_KIND(rec->id);
    bool messages =
        rec->kind != MAQ_REC_COLL || kind == MAQ_REC_ALL_TO_ALL || kind == MAQ_REC_GATHER || kind == MAQ_REC_SCATTER;
    if (messages && !b->peers && !(b->peers = calloc(comm->n, 1)))
        return 0;
    if (rec->kind != MAQ_REC_COLL)
        return connect_peer(comm, rec->arg, rec->kind == MAQ_REC_RECV);
    if (messages)
        return connect_peers(comm, kind, rec->arg);
    if (b->rings)
        return 0;
    b->rings = true;
    return bytes_of(MAQ_COMM_MEMORY_COLLECTIVE, comm, false);
}

bool vg_buffers_begin(struct vg_comm *comm)
{
    if (!vg_card()->nccl_memory[0])
        return true;
    comm->buffers = calloc(1, sizeof *comm->buffers);
    return comm->buffers && take(comm, bytes_of(MAQ_COMM_MEMORY_INIT, comm, false));
}

bool vg_buffers_connect(struct vg_comm *comm, const struct vg_part *parts, uint32_t n)
{
    uint64_t bytes = 0;
    if (!comm->buffers || vg_stream_capturing(parts[0].stream))
        return true;
    for (uint32_t i = 0; i < n; i++)
        bytes += connect_part(comm, &parts[i].m.rec);
    return take(comm, bytes);
}

void vg_buffers_end(struct vg_comm *comm)
{
    struct vg_buffers *b = comm->buffers;
    if (!b)
        return;
    for (uint32_t i = b->n; i-- > 0;)
        (void)vg_mem_free(b->at[i], NULL);
    free(b->at);
    free(b->peers);
    free(b);
    comm->buffers = NULL;
}
