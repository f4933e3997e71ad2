/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arithmetic.h - the one thing that the device computes: small tensors of numbers, whole ones and truth values most of all, out of such that the
 * host knows.
 *
 * A program decides by them: how many tokens each rank gathered, whether a mask leaves everything out, which requests have not ended. What they are
 * made of the host wrote or filled in itself, so they can be known, and are computed where PyTorch's kernel says in its name what it does. Anything
 * else is a kernel like others, whose output nobody knows and which is read as zeros.
 *
 *     struct vg_arithmetic a;
 *     if (vg_arithmetic_begin(&a, launch)) ... the launch writes a.out and nothing else ... vg_arithmetic_end(&a);
 */
#ifndef MAQ_SHIM_ARITHMETIC_H
#define MAQ_SHIM_ARITHMETIC_H

#include "shim/cuda/arithmetic/kernel_kinds.h"

/* Looks at a launch, and computes. false: it is none of these, or nobody knows what it reads. */
bool vg_arithmetic_begin(struct vg_arithmetic *a, const struct vg_launch *launch);
/* Writes what was computed, once what the launch may have written is no longer known. */
void vg_arithmetic_end(struct vg_arithmetic *a);

/* Where one of PyTorch's kernels that are known here writes, whatever the type, and nowhere else; a place without an address is none. false: it is
 * another. */
bool vg_arithmetic_writes(struct vg_output place[VG_PLACES], const struct vg_launch *launch);

#endif
