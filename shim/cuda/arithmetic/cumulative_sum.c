/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cumulative_sum.c - cumulative sums along the last dimension of what the host knows: positions out of a mask, where each of several lengths begins.
 *
 * PyTorch's kernel is tensor_kernel_scan_innermost_dim (aten/src/ATen/native/cuda/ScanUtils.cuh), whose name has the type and what it runs. Its arguments
 * are the output, the input, rows, the length of a row, and what else it needs. Both lie one element behind the other.
 */
#include "shim/cuda/arithmetic/kernel_kinds.h"
#include "shim/cuda/arithmetic/scalar_type.h"

#include <stdlib.h>
#include <string.h>

enum { OUTPUT, INPUT, ROWS, LENGTH, PARAMETERS_LEAST };

/* Behind the kernel's name: the type's letter. NULL: it is another. */
static const char *type_in(const char *name)
{
    static const char kernel[] = "_ZN2at6native32tensor_kernel_scan_innermost_dimI";
    return strncmp(name, kernel, sizeof kernel - 1) == 0 ? name + sizeof kernel - 1 : NULL;
}

struct rows {
    char *out, *in;
    uint32_t n, length;
};

static bool read_rows(struct rows *r, const struct vg_launch *l)
{
    const struct vg_code *code = &l->kernel->code;
    if (code->n_params < PARAMETERS_LEAST || code->param[OUTPUT].bytes != 8 || code->param[INPUT].bytes != 8 ||
        code->param[ROWS].bytes != 4 || code->param[LENGTH].bytes != 4)
        return false;
    memcpy(&r->out, l->args[OUTPUT], sizeof r->out);
    memcpy(&r->in, l->args[INPUT], sizeof r->in);
    memcpy(&r->n, l->args[ROWS], sizeof r->n);
    memcpy(&r->length, l->args[LENGTH], sizeof r->length);
    return r->out != NULL && r->in != NULL;
}

bool vg_cumulative_sum_writes(struct vg_output *place, const struct vg_launch *l)
{
    const char *type = type_in(l->kernel->name);
    struct rows r;
    if (type == NULL || !read_rows(&r, l))
        return false;
    *place = (struct vg_output){r.out, (uint64_t)r.n * r.length * vg_mangled_bytes(type)};
    return true;
}

bool vg_cumulative_sum(struct vg_arithmetic *a, const struct vg_launch *l)
{
    const char *letter = type_in(l->kernel->name);
    const enum vg_scalar_type type = letter ? vg_scalar_mangled(letter) : VG_SCALAR_NONE;
    struct rows r;
    if (type == VG_SCALAR_NONE || vg_scalar_is_real(type) || strncmp(letter + 1, "St4plusI", 8) != 0 ||
        !read_rows(&r, l) || (uint64_t)r.n * r.length > VG_NUMBERS_MOST)
        return false;
    const unsigned width = vg_scalar_bytes(type);
    const uint64_t bytes = (uint64_t)r.n * r.length * width;
    *a = (struct vg_arithmetic){.in = {{r.in, bytes}}, .out = r.out, .out_bytes = bytes};
    if (bytes == 0 || !vg_arithmetic_in_place(a, l) || vg_arithmetic_known(a) == 0 ||
        (a->value = malloc(bytes)) == NULL)
        return false;
    uint64_t sum = 0;
    for (uint64_t at = 0; at < bytes; at += width) {
        sum = (at / width % r.length == 0 ? 0 : sum) + (uint64_t)vg_whole_load(r.in + at, type);
        vg_whole_store(a->value + at, (int64_t)sum, type);
    }
    return true;
}
