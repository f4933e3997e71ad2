/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fill.h - what a buffer holds after a collective whose other members are virtual.
 *
 *   all-reduce      maximum, minimum, average, product: own. Sum: own times the size, at most what the type holds
 *   reduce-scatter  likewise, of the own part
 *   broadcast, reduce, scatter of a virtual root: own (ranks that begin alike hold what the root holds)
 *   all-gather      in place: the others' parts stay what they are. Otherwise: own, in every place
 *   all-to-all      own, transposed: what was for a peer comes back from it
 *   receive         noise of deviation 1 (activations), the same on every run
 *
 * Replacing the others by oneself leaves the loss of data-parallel training that of one rank (notes of docs/emulation.md).
 */
#ifndef MAQ_SHIM_GPU_FILL_H
#define MAQ_SHIM_GPU_FILL_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/record.h"

enum vg_fill_kind { VG_FILL_NOTHING, VG_FILL_COPY, VG_FILL_SCALE, VG_FILL_NOISE };

/* One step: out[at .. at + bytes) from in[from ...). */
struct vg_fill {
    enum vg_fill_kind kind;
    uint64_t at, from, bytes; /* offsets into the receive and send buffer */
    float factor;             /* SCALE; NOISE: the deviation */
};

/* A factor for a sum of `size` equal contributions in this type: half-precision sums stop at 2^15 / 2^7 so that a value of usual
 * size stays finite. */
float vg_fill_factor(enum maq_rec_type type, uint32_t size);

/* Step `i` of what a collective leaves, false behind the last. bytes as in a record; in_place as NCCL defines it; op is NCCL's
 * number (0 = sum). */
bool vg_fill_step(struct vg_fill *out, uint32_t i, enum maq_rec_coll kind, enum maq_rec_type type, unsigned op,
                  uint32_t size, uint32_t rank, uint64_t bytes, bool in_place);

#endif
