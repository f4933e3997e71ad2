/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_pattern.h - a number that each rank of a group says, as a function of its place there, from a few that are known.
 *
 *     x(i) = first + step * ((i / a) mod b),   a * b divides n
 *
 * the same for all (step 0), ranks (a = 1, b = n), local ranks (a = 1, b = ranks on a node), nodes (a = ranks on a node, b = n / a); tensor, pipeline and
 * data groups of a mesh otherwise, of which the first (a, b) that explains all that is known is taken.
 */
#ifndef MAQ_SHIM_NCCL_RANK_PATTERN_H
#define MAQ_SHIM_NCCL_RANK_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

struct vg_rank_pattern {
    uint32_t a, b;
    int64_t first, step;
};
/* x[k], less than 2^60 either way, is what place[k] says, of n_known known ones, one at least, of a group of n; node: ranks on a node. false: no pattern explains it. */
bool vg_rank_pattern(struct vg_rank_pattern *pattern, uint32_t n, uint32_t node, const uint32_t *place,
                     const int64_t *x, uint32_t n_known);
int64_t vg_rank_pattern_at(const struct vg_rank_pattern *pattern, uint32_t place);

#endif
