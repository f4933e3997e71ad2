/* SPDX-License-Identifier: Apache-2.0 */
/* arithmetic.c - asks the kinds in turn, and writes what one of them made. See arithmetic.h. */
#include "shim/cuda/arithmetic/arithmetic.h"

#include <stdlib.h>
#include <string.h>

bool vg_arithmetic_begin(struct vg_arithmetic *a, const struct vg_launch *l)
{
    *a = (struct vg_arithmetic){.out = NULL};
    return l->args != NULL && l->kernel->code.found &&
           (vg_elementwise(a, l) || vg_reduces(a, l) || vg_concatenates(a, l) || vg_cumulative_sum(a, l));
}

bool vg_arithmetic_writes(struct vg_output place[VG_PLACES], const struct vg_launch *l)
{
    return l->args != NULL && l->kernel->code.found &&
           (vg_elementwise_writes(place, l) || vg_reduction_writes(place, l) || vg_concatenation_writes(place, l) ||
            vg_output_extent(place, l) || vg_cumulative_sum_writes(place, l));
}

void vg_arithmetic_end(struct vg_arithmetic *a)
{
    memcpy(a->out, a->value, a->out_bytes);
    vg_mem_told(a->out, a->out_bytes);
    for (unsigned i = 0; i < VG_OPERANDS_MOST; i++)
        if (a->in[i].at)
            vg_taint_copy(a->out, a->in[i].at, a->in[i].bytes);
    free(a->value);
    a->value = NULL;
}
