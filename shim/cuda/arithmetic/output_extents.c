/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output_extents.c - where kernels of PyTorch write that are not computed: those that pick elements or rows by index, draw at random, or are a softmax.
 *
 *     indexSelectSmallIndex, ..LargeIndex   the output, the input and the indices, each a TensorInfo: pointer, 25 sizes, 25 strides in elements, how
 *                                           many dimensions (aten/src/ATen/cuda/detail/TensorInfo.cuh, Indexing.cu)
 *     index_elementwise_kernel              how many, and in one structure: OffsetCalculator for three tensors, the output's pointer first of those
 *                                           behind it (IndexKernel.cu, IndexKernelUtils.cuh)
 *     distribution_elementwise_grid_stride_kernel   how many, the generator's state, the distribution, what is made of a number, which has the
 *                                           output's pointer (DistributionTemplates of the same folder)
 *     softmax_warp_forward, cunn_SoftMaxForward     the output, the input; rows, what lies between them and how long they are; or how long alone,
 *                                           a block for each row (PersistentSoftmax.cuh, SoftMax.cu)
 */
#include "shim/cuda/arithmetic/kernel_kinds.h"
#include "shim/cuda/arithmetic/offset_calculator.h"
#include "shim/cuda/arithmetic/scalar_type.h"

#include <stdlib.h>
#include <string.h>

enum { DIMENSIONS = 25, WORD = 4 }; /* of a TensorInfo */

static bool selects(struct vg_output *place, const struct vg_launch *l)
{
    enum { SIZES = 2, STRIDES = SIZES + DIMENSIONS, COUNT = STRIDES + DIMENSIONS, WORDS };
    const struct vg_code *code = &l->kernel->code;
    static const char small[] = "21indexSelectSmallIndexI", large[] = "21indexSelectLargeIndexI";
    const char *kernel = strstr(l->kernel->name, small);
    kernel = kernel ? kernel : strstr(l->kernel->name, large);
    if (kernel == NULL)
        return false;
    const char *out = l->args[0];
    if (code->n_params < 3 || code->param[0].bytes < WORDS * WORD || vg_word_at(out, COUNT) > DIMENSIONS)
        return false;
    uint64_t elements = 1;
    for (uint32_t d = 0; d < vg_word_at(out, COUNT); d++)
        elements += (uint64_t)(vg_word_at(out, SIZES + d) - 1) * vg_word_at(out, STRIDES + d);
    void *at;
    memcpy(&at, out, sizeof at);
    *place = (struct vg_output){at, elements * vg_mangled_bytes(kernel + sizeof small - 1)};
    return at != NULL;
}

static bool picks(struct vg_output *place, const struct vg_launch *l)
{
    enum { TENSORS = 3 };
    static const char opaque[] = "10OpaqueTypeILi"; /* its bytes follow */
    const char *of = strstr(l->kernel->name, opaque);
    const struct vg_code *code = &l->kernel->code;
    struct vg_offsets offsets;
    void *at;
    if (strstr(l->kernel->name, "24index_elementwise_kernelI") == NULL || of == NULL || code->n_params != 2 ||
        code->param[0].bytes < WORD || code->param[1].bytes < vg_offsets_bytes(TENSORS) + sizeof at ||
        !vg_offsets_read(&offsets, l->args[1], code->param[1].bytes, TENSORS, vg_word_at(l->args[0], 0)))
        return false;
    memcpy(&at, (const char *)l->args[1] + vg_offsets_bytes(TENSORS), sizeof at);
    const unsigned long width = strtoul(of + sizeof opaque - 1, NULL, 10);
    *place = (struct vg_output){at, vg_offsets_extent(&offsets, 0, (unsigned)width)};
    return at != NULL;
}

static bool draws(struct vg_output *place, const struct vg_launch *l)
{
    static const char name[] = "distribution_elementwise_grid_stride_kernelI";
    const char *kernel = strstr(l->kernel->name, name);
    const struct vg_code *code = &l->kernel->code;
    if (kernel == NULL || code->n_params < 4 || code->param[0].bytes > sizeof(int64_t))
        return false;
    const unsigned last = code->n_params - 1;
    int64_t n = 0;
    memcpy(&n, l->args[0], code->param[0].bytes);
    for (uint32_t at = 0; n > 0 && at + sizeof(void *) <= code->param[last].bytes; at += (uint32_t)sizeof(void *)) {
        struct vg_alloc a;
        void *out;
        memcpy(&out, (const char *)l->args[last] + at, sizeof out);
        *place = (struct vg_output){out, (uint64_t)n * vg_mangled_bytes(kernel + sizeof name - 1)};
        if (out != NULL && vg_mem_find(out, &a))
            return true;
    }
    *place = (struct vg_output){.at = NULL};
    return false;
}

static bool is_softmax(struct vg_output *place, const struct vg_launch *l)
{
    enum { WIDE = 4 }; /* bytes: results are single precision or shorter, but for double precision */
    const char *warp = strstr(l->kernel->name, "20softmax_warp_forwardI"),
               *block = strstr(l->kernel->name, "19cunn_SoftMaxForward"),
               *smem = strstr(l->kernel->name, "23cunn_SoftMaxForwardSmem");
    const struct vg_code *code = &l->kernel->code;
    if ((!warp && !block && !smem) || code->n_params < (warp ? 5u : 3u) || code->param[0].bytes != sizeof(void *) ||
        code->param[2].bytes < WORD || (warp && code->param[3].bytes < WORD))
        return false;
    const uint64_t elements = warp ? (uint64_t)vg_word_at(l->args[2], 0) * vg_word_at(l->args[3], 0)
                                   : (uint64_t)l->grid.x * vg_word_at(l->args[2], 0);
    const bool twice = strstr(l->kernel->name, "ForwardIdd") || strstr(l->kernel->name, "forwardIdd");
    void *out;
    memcpy(&out, l->args[0], sizeof out);
    *place = (struct vg_output){out, elements * (twice ? 2 * WIDE : WIDE)};
    return out != NULL;
}

bool vg_output_extent(struct vg_output *place, const struct vg_launch *l)
{
    return selects(place, l) || picks(place, l) || draws(place, l) || is_softmax(place, l);
}
