/* SPDX-License-Identifier: Apache-2.0 */
/*
 * channels.c - how a communicator lies on nodes, and how many channels NCCL opens for it.
 *
 * NCCL searches the machine's topology. We keep what the search of 2.30.7 comes to on nodes of 8 GPUs with 18 NVLinks of 20.6 GB/s and a
 * NIC of 50 GB/s each (H100; src/graph/topo.h, search.cc, connect.cc). For other machines that is an assumption.
 *
 *   within a node    6 rings of 60 GB/s, doubled in the search (ncclTopoDupChannels) and when they are connected (ncclTopoPostset): 24
 *   across nodes     a ring for each NIC in use, which is as many as members on a node; doubled when they are connected, and once more
 *                    while there are fewer than 16 (capability 9.0 on): 16 for whole nodes, 4 for one member on each
 *
 * NCCL_MAX_NCHANNELS and NCCL_MIN_NCHANNELS of the program's environment count as in NCCL (connect.cc: the most, then the least).
 */
#include "shim/nccl/nccl.h"

#include <stdlib.h>

enum { IN_NODE = 24, NICS = 8, ENOUGH_ACROSS = 16, HOPPER = 90 };

struct vg_place vg_comm_place(const struct vg_comm *comm)
{
    const struct vg_card *card = vg_card();
    struct vg_place p = {.local = 0};
    if (!comm->members) { /* as if they followed each other, from the beginning of a node */
        p.local = comm->n < card->per_node ? comm->n : card->per_node;
        p.index = comm->me % p.local;
        p.leaves_node = comm->n > card->per_node;
        return p;
    }
    for (uint32_t i = 0; i < comm->n; i++) {
        bool here = comm->members[i] / card->per_node == comm->members[comm->me] / card->per_node;
        p.index += here && i < comm->me;
        p.local += here;
        p.leaves_node = p.leaves_node || !here;
    }
    return p;
}

/* A limit of NCCL's environment; `otherwise` where it is not set to a number of channels. */
static unsigned limit(const char *name, unsigned otherwise)
{
    const char *text = getenv(name);
    long n = text ? strtol(text, NULL, 10) : 0;
    return n < 1 ? otherwise : n < VG_CHANNELS_MOST ? (unsigned)n : VG_CHANNELS_MOST;
}

unsigned vg_comm_channels(const struct vg_place *place)
{
    unsigned n = IN_NODE, most = limit("NCCL_MAX_NCHANNELS", VG_CHANNELS_MOST), least = limit("NCCL_MIN_NCHANNELS", 1);
    if (place->leaves_node) {
        n = 2 * (place->local < NICS ? place->local : NICS);
        n *= n < ENOUGH_ACROSS && vg_card()->capability >= HOPPER ? 2 : 1;
    }
    n = n < most ? n : most;
    return n > least ? n : least;
}
