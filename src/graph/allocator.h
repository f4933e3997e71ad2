/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allocator.h - PyTorch's CUDA caching allocator, replayed: what it reserves for a sequence of allocations and frees.
 *
 * Facts (c10/cuda/CUDACachingAllocator.cpp, PyTorch 2.11): a size is rounded up to 512 bytes; what is then at most 1 MiB comes from
 * segments of 2 MiB, less than 10 MiB from segments of 20 MiB, and larger ones get segments of their own, rounded up to 2 MiB. Each stream
 * has free blocks of its own, small and large ones apart. The smallest that is large enough is taken, of equal ones that with the
 * lowest address (BlockComparatorSize()); its end is split off when that has 512 bytes (small) or more than 1 MiB (large). Neighbours of
 * one segment join when both are free. Segments go back to the driver only when an allocation fails, which never happens here.
 *
 * A new segment lies behind all earlier ones, as from cudaMalloc() of an empty device, and of the zero-GPU device (shim/core/memory.c).
 *
 * Not replayed: garbage_collection_threshold, which does nothing before a program sets a memory fraction, and private pools of CUDA graphs.
 * When a block that another stream used is free again is for the caller to say.
 */
#ifndef MAQ_GRAPH_ALLOCATOR_H
#define MAQ_GRAPH_ALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "maquette/diag.h"

/* What PYTORCH_CUDA_ALLOC_CONF says; all zero is its default. */
struct maq_allocator_options {
    bool
        expandable_segments; /* one segment for each stream and pool, which grows by 2 MiB (small) or 20 MiB; ends are always split off */
    double
        max_split_size; /* bytes; blocks from that size on are neither split nor given to smaller requests; 0 = no such size */
    uint32_t
        roundup_power2_divisions; /* steps from one power of two to the next that sizes are rounded up to; 0 = none */
};

/* Streams that memory is allocated for. */
#define MAQ_ALLOCATOR_STREAMS 4

/* Bytes that a tensor occupies. */
double maq_allocator_round(double bytes);

struct maq_allocator;
/* NULL when out of host memory. `options` may be NULL. */
struct maq_allocator *maq_allocator_new(const struct maq_allocator_options *options);
void maq_allocator_free(struct maq_allocator *a);
/* Handle of a block (never 0) of a stream below MAQ_ALLOCATOR_STREAMS, or 0 when out of host memory. */
uint32_t maq_allocator_alloc(struct maq_allocator *a, uint32_t stream, double bytes);
void maq_allocator_release(struct maq_allocator *a, uint32_t block);
/* The program gave it back, and a stream still works with it: it counts as allocated no longer, and release() makes it free. */
void maq_allocator_retire(struct maq_allocator *a, uint32_t block);
/* Where a block lies: 0 is the first byte of the first segment. */
double maq_allocator_address(const struct maq_allocator *a, uint32_t block);

struct maq_allocator_stats {
    double allocated, reserved, peak_allocated, peak_reserved;
    double waste,
        peak_waste; /* of what is allocated, bytes that nobody asked for: ends too small to be split off; at its peak */
};
struct maq_allocator_stats maq_allocator_stats(const struct maq_allocator *a);
/* Peaks begin anew with what is there (torch.cuda.reset_peak_memory_stats()). */
void maq_allocator_reset_peaks(struct maq_allocator *a);

#endif
