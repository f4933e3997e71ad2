/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_kinds.h - kernels of PyTorch by kind: those that are computed, and where each writes. A launch's arguments are known (vg_launch.args).
 */
#ifndef MAQ_SHIM_KERNEL_KINDS_H
#define MAQ_SHIM_KERNEL_KINDS_H

#include "shim/cuda/arithmetic/operands.h"

enum { VG_PLACES = 2 }; /* outputs of a reduction: the largest, and where it is */

/* Where they return true, in is filled in, out, and value is allocated. */
bool vg_reduces(struct vg_arithmetic *a, const struct vg_launch *launch);     /* reduction.c */
bool vg_elementwise(struct vg_arithmetic *a, const struct vg_launch *launch); /* elementwise.c */
bool vg_concatenates(struct vg_arithmetic *a, const struct vg_launch *launch);
bool vg_cumulative_sum(struct vg_arithmetic *a, const struct vg_launch *launch);

/* Bytes that a launch reads and writes. false: it is another kernel, here and below. */
bool vg_reduction_moves(uint64_t *read, uint64_t *written, const struct vg_launch *launch);
bool vg_elementwise_moves(uint64_t *read, uint64_t *written, const struct vg_launch *launch);
bool vg_concatenation_moves(uint64_t *read, uint64_t *written, const struct vg_launch *launch);

bool vg_reduction_writes(struct vg_output place[VG_PLACES], const struct vg_launch *launch);
bool vg_elementwise_writes(struct vg_output *place, const struct vg_launch *launch);
bool vg_concatenation_writes(struct vg_output *place, const struct vg_launch *launch);
bool vg_cumulative_sum_writes(struct vg_output *place, const struct vg_launch *launch);
bool vg_output_extent(struct vg_output *place,
                      const struct vg_launch *launch); /* of kinds that are not computed: output_extents.c */

#endif
