/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait.h - a timed wait: what stands for a collective on a real GPU while the peers are virtual.
 *
 * A rank's calls on a communicator are numbered, a group of calls as one. Entry i of the communicator's table says what the
 * i-th was in the replay of the whole job. The wait finds its entry by a number that it keeps on the device, so that a CUDA graph
 * that was captured once and is launched often walks on through the table:
 *
 *     end   = max(arrival, origin + peers_ns[i] + shift) + ns[i]          arrival: the device's clock at the start of the kernel
 *     shift = max(0, end - (origin + max(own_ns[i], peers_ns[i]) + ns[i]))
 *
 * The shift is how much later than in the replay this rank let the others go on: they arrive that much later at the next
 * one. It is kept per communicator; a rank that is late on one does not delay the peers of another, which a replay in step with
 * the program (`maquette emulate` without a GPU) does know. The origin makes the first arrival that of the replay.
 *
 * Behind its end the table repeats from `loop` on, every turn `period_ns` later: the steady steps of a longer run.
 */
#ifndef MAQ_SHIM_GPU_WAIT_H
#define MAQ_SHIM_GPU_WAIT_H

#include "shim/link.h"

#define VG_WAIT_BLOCKS 64 /* at most: MAXCHANNELS of NCCL (src/include/device.h of 2.30.7); grid.h has how many */

struct vg_wait_log {
    int64_t arrival_ns, end_ns; /* on the device's clock */
};

/* In device memory, one per communicator. */
struct vg_wait_state {
    uint32_t n, loop; /* entries; n = 0: every wait ends when it begins */
    int64_t period_ns;
    const struct maq_wait_entry *entry; /* [n], device memory */
    struct vg_wait_log *log;            /* [n_log], device memory */
    uint32_t n_log, begun;
    int64_t origin_ns, shift_ns;
    uint32_t turn; /* waits that are over: the number of the one that runs, until its last block leaves */
    uint32_t left; /* blocks that have left it */
    uint32_t told; /* + 1 of the last one whose end is known */
    int64_t end_ns;
};

/* The entry of the i-th wait, `late` the ns that its turn through the table adds. */
#ifdef __CUDACC__
#define VG_WAIT_FN __host__ __device__ static inline
#else
#define VG_WAIT_FN static inline
#endif
VG_WAIT_FN uint32_t vg_wait_at(uint32_t i, uint32_t n, uint32_t loop, int64_t period_ns, int64_t *late)
{
    *late = 0;
    if (i < n)
        return i;
    uint32_t from = loop < n ? loop : n - 1, length = n - from;
    *late = period_ns * (int64_t)((i - from) / length);
    return from + (i - from) % length;
}

/* One step of the recursion at the head, for one wait. */
VG_WAIT_FN int64_t vg_wait_end(const struct maq_wait_entry *e, int64_t late, int64_t origin, int64_t *shift,
                               int64_t arrival)
{
    int64_t peers = origin + late + e->peers_ns + *shift;
    int64_t end = (arrival > peers ? arrival : peers) + e->ns;
    int64_t traced = origin + late + (e->own_ns > e->peers_ns ? e->own_ns : e->peers_ns) + e->ns;
    *shift = end > traced ? end - traced : 0;
    return end;
}

/* What one block of each wait does, once: finds the end of the turn-th, and keeps what the next ones need. */
VG_WAIT_FN int64_t vg_wait_begin(struct vg_wait_state *s, uint32_t turn, int64_t arrival)
{
    int64_t late, shift = s->shift_ns;
    uint32_t at = vg_wait_at(turn, s->n, s->loop, s->period_ns, &late);
    if (!s->begun) {
        s->begun = 1;
        s->origin_ns = arrival - s->entry[at].own_ns;
    }
    int64_t end = vg_wait_end(&s->entry[at], late, s->origin_ns, &shift, arrival);
    s->shift_ns = shift;
    if (turn < s->n_log) {
        s->log[turn].arrival_ns = arrival;
        s->log[turn].end_ns = end;
    }
    return end;
}

#endif
