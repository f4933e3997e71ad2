/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operands.h - what a launch that is computed reads and makes, in memory of the device, and how far a kernel writes.
 */
#ifndef MAQ_SHIM_OPERANDS_H
#define MAQ_SHIM_OPERANDS_H

#include "shim/cuda/cuda.h"

/* Numbers of a tensor: one for each rank of the largest job that maquette reads. Tensors of a concatenation: more are not computed. */
enum { VG_NUMBERS_MOST = 1 << 16, VG_OPERANDS_MOST = 8 };

/* What a launch reads and what it makes of it. */
struct vg_arithmetic {
    struct vg_operand {
        const void *at; /* NULL: there is none */
        uint64_t bytes;
    } in[VG_OPERANDS_MOST];
    void *out;
    uint64_t out_bytes;
    unsigned char *value; /* [out_bytes], from begin to end */
};
/* Whether output and operands are in place, once what peers are still to send has come; and how many operands the host knows. */
bool vg_arithmetic_in_place(const struct vg_arithmetic *a, const struct vg_launch *launch);
unsigned vg_arithmetic_known(const struct vg_arithmetic *a);

/* Where a kernel writes: at most so many bytes from there. */
struct vg_output {
    const void *at; /* NULL: there are no more */
    uint64_t bytes;
};

#endif
