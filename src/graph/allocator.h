/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allocator.h - a model of PyTorch's CUDA caching allocator: what is reserved for what is allocated.
 *
 * Facts (c10/cuda/CUDACachingAllocator.cpp): sizes are rounded up to 512 bytes; requests up to 1 MiB come
 * from 2 MiB segments, up to 10 MiB from 20 MiB segments, larger ones get segments of their own rounded up to
 * 2 MiB; a free block is split when what remains is over 512 bytes (small pool) or 1 MiB (large pool);
 * neighbours of one segment merge when free; segments go back to the driver only when an allocation fails.
 */
#ifndef MAQ_GRAPH_ALLOCATOR_H
#define MAQ_GRAPH_ALLOCATOR_H

#include <stddef.h>
#include <stdint.h>

#include "maquette/diag.h"

/* Bytes that a tensor occupies. */
double maq_allocator_round(double bytes);

/* Replays allocations and frees exactly. A sequence is freed with maq_allocator_free. */
struct maq_allocator;
struct maq_allocator *maq_allocator_new(void);
void maq_allocator_free(struct maq_allocator *a);
/* Handle of a block (never 0), or 0 when out of host memory. */
uint32_t maq_allocator_alloc(struct maq_allocator *a, double bytes);
void maq_allocator_release(struct maq_allocator *a, uint32_t block);
struct maq_allocator_stats {
    double allocated, reserved, peak_allocated, peak_reserved;
    double waste,
        peak_waste; /* of what is allocated, bytes that nobody asked for: ends too small to be split off; at its peak */
};
struct maq_allocator_stats maq_allocator_stats(const struct maq_allocator *a);

#endif
