/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudnn_legacy.c - cuDNN's entry points from before the backend API, as far as PyTorch calls them: descriptors of tensors,
 * filters and convolutions; convolution in its three directions; batch normalisation; what is set up for dropout.
 *
 * A convolution is recorded as cudnn_graph.c says; an algorithm that is asked for is number 1, which needs no workspace.
 * Batch normalisation has a row for each pixel and a column for each channel, and needs no reserve. Recurrent networks,
 * pooling, CTC and spatial transformers are not answered.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/math/dnn.h"

enum { MAX_RANK = 8 }; /* CUDNN_DIM_MAX */

/* A tensor, a filter, a convolution: each uses what it needs. */
struct legacy {
    int type, format, n, groups;
    int64_t dims[MAX_RANK], strides[MAX_RANK];
};

static int64_t elements(const struct legacy *t)
{
    int64_t n = 1;
    for (int i = 0; t != NULL && i < t->n; i++)
        n *= t->dims[i];
    return t != NULL ? n : 0;
}

static uint64_t bytes_of(const struct legacy *t)
{
    return t != NULL ? ((uint64_t)elements(t) * dnn_type_bits(t->type) + 7) / 8 : 0;
}

/* --- descriptors ----------------------------------------------------------------------------------------------------------- */

#define DESCRIPTOR(noun)                                                                                               \
    MATH_API(int, cudnnCreate##noun##Descriptor, void **out)                                                           \
    {                                                                                                                  \
        if (out == NULL)                                                                                               \
            return ABI_CUDNN_NULL_POINTER;                                                                             \
        *out = calloc(1, sizeof(struct legacy));                                                                       \
        return *out != NULL ? ABI_CUDNN_SUCCESS : ABI_CUDNN_ALLOC_FAILED;                                              \
    }                                                                                                                  \
    MATH_API(int, cudnnDestroy##noun##Descriptor, void *descriptor)                                                    \
    {                                                                                                                  \
        free(descriptor);                                                                                              \
        return ABI_CUDNN_SUCCESS;                                                                                      \
    }
DESCRIPTOR(Tensor)
DESCRIPTOR(Filter)
DESCRIPTOR(Convolution)
DESCRIPTOR(Activation)
DESCRIPTOR(Dropout)

static int set(struct legacy *d, int type, int format, int n, const int *dims, const int *strides)
{
    if (d == NULL || dims == NULL || n < 1 || n > MAX_RANK)
        return ABI_CUDNN_BAD_PARAM;
    d->type = type;
    d->format = format;
    d->n = n;
    for (int i = 0; i < n; i++) {
        d->dims[i] = dims[i];
        d->strides[i] = strides != NULL ? strides[i] : 0;
    }
    return ABI_CUDNN_SUCCESS;
}

static int get(const struct legacy *d, int wanted, int *type, int *n, int *dims, int *strides)
{
    if (d == NULL || n == NULL)
        return ABI_CUDNN_BAD_PARAM;
    *n = d->n;
    if (type != NULL)
        *type = d->type;
    for (int i = 0; i < d->n && i < wanted; i++) {
        if (dims != NULL)
            dims[i] = (int)d->dims[i];
        if (strides != NULL)
            strides[i] = (int)d->strides[i];
    }
    return ABI_CUDNN_SUCCESS;
}

MATH_API(int, cudnnSetTensorNdDescriptor, struct legacy *d, int type, int n, const int *dims, const int *strides)
{
    return set(d, type, 0, n, dims, strides);
}

/* Format: 0 channels first, 1 channels last. */
MATH_API(int, cudnnSetTensor4dDescriptor, struct legacy *d, int format, int type, int n, int c, int h, int w)
{
    const int dims[4] = {n, c, h, w};
    const int first[4] = {c * h * w, h * w, w, 1}, last[4] = {c * h * w, 1, c * w, c};
    return set(d, type, format, 4, dims, format == 1 ? last : first);
}

MATH_API(int, cudnnGetTensorNdDescriptor, const struct legacy *d, int wanted, int *type, int *n, int *dims,
         int *strides)
{
    return get(d, wanted, type, n, dims, strides);
}

MATH_API(int, cudnnSetFilterNdDescriptor, struct legacy *d, int type, int format, int n, const int *dims)
{
    return set(d, type, format, n, dims, NULL);
}

MATH_API(int, cudnnGetFilterNdDescriptor, const struct legacy *d, int wanted, int *type, int *format, int *n, int *dims)
{
    if (d != NULL && format != NULL)
        *format = d->format;
    return get(d, wanted, type, n, dims, NULL);
}

MATH_API(int, cudnnSetConvolutionNdDescriptor, struct legacy *d, int n, const int *pad, const int *stride,
         const int *dilation, int mode, int type)
{
    (void)stride, (void)dilation, (void)mode;
    return set(d, type, 0, n, pad, NULL);
}

MATH_API(int, cudnnSetConvolutionGroupCount, struct legacy *d, int groups)
{
    if (d == NULL)
        return ABI_CUDNN_BAD_PARAM;
    d->groups = groups;
    return ABI_CUDNN_SUCCESS;
}

/* Taken, and without a consequence for what is recorded. */
static int taken(const void *d)
{
    return d != NULL ? ABI_CUDNN_SUCCESS : ABI_CUDNN_BAD_PARAM;
}

MATH_API(int, cudnnSetConvolutionMathType, void *d, int math)
{
    (void)math;
    return taken(d);
}

MATH_API(int, cudnnSetActivationDescriptor, void *d, int mode, int propagates_nan, double coefficient)
{
    (void)mode, (void)propagates_nan, (void)coefficient;
    return taken(d);
}

MATH_API(int, cudnnSetDropoutDescriptor, void *d, void *handle, float p, void *states, size_t bytes,
         unsigned long long seed)
{
    (void)handle, (void)p, (void)states, (void)bytes, (void)seed;
    return taken(d);
}

MATH_API(int, cudnnRestoreDropoutDescriptor, void *d, void *handle, float p, void *states, size_t bytes,
         unsigned long long seed)
{
    return cudnnSetDropoutDescriptor(d, handle, p, states, bytes, seed);
}

/* A generator's state for each thread that the device can hold: 48 bytes (curandState_t) for 2048 threads of each SM. */
MATH_API(int, cudnnDropoutGetStatesSize, void *handle, size_t *bytes)
{
    if (dnn_of(handle) == NULL || bytes == NULL)
        return ABI_CUDNN_BAD_PARAM;
    *bytes = (size_t)vg_card()->sms * 2048 * 48;
    return ABI_CUDNN_SUCCESS;
}

/* --- convolution ------------------------------------------------------------------------------------------------------------ */

/* Like all of cudnnConvolution...AlgoPerf_t. */
struct performance {
    int algorithm, status;
    float time;
    size_t memory;
    int determinism, math, reserved[3];
};

static int one_algorithm(int wanted, int *n, struct performance *out)
{
    if (n == NULL || out == NULL || wanted < 1)
        return ABI_CUDNN_BAD_PARAM;
    *out = (struct performance){.algorithm = 1, .determinism = 1, .math = 1};
    *n = 1;
    return ABI_CUDNN_SUCCESS;
}

/* The three directions have the same questions, with the descriptors in another order. */
#define QUESTIONS(direction)                                                                                           \
    MATH_API(int, cudnnGetConvolution##direction##WorkspaceSize, void *handle, const void *a, const void *b,           \
             const void *conv, const void *c, int algorithm, size_t *bytes)                                            \
    {                                                                                                                  \
        (void)handle, (void)a, (void)b, (void)conv, (void)c, (void)algorithm;                                          \
        if (bytes == NULL)                                                                                             \
            return ABI_CUDNN_BAD_PARAM;                                                                                \
        *bytes = 0;                                                                                                    \
        return ABI_CUDNN_SUCCESS;                                                                                      \
    }                                                                                                                  \
    MATH_API(int, cudnnGetConvolution##direction##Algorithm_v7, void *handle, const void *a, const void *b,            \
             const void *conv, const void *c, int wanted, int *n, struct performance *out)                             \
    {                                                                                                                  \
        (void)handle, (void)a, (void)b, (void)conv, (void)c;                                                           \
        return one_algorithm(wanted, n, out);                                                                          \
    }                                                                                                                  \
    MATH_API(int, cudnnFindConvolution##direction##AlgorithmEx, void *handle, const void *da, const void *a,           \
             const void *db, const void *b, const void *conv, const void *dc, void *c, int wanted, int *n,             \
             struct performance *out, void *workspace, size_t bytes)                                                   \
    {                                                                                                                  \
        (void)handle, (void)da, (void)a, (void)db, (void)b, (void)conv, (void)dc, (void)c, (void)workspace;            \
        (void)bytes;                                                                                                   \
        return one_algorithm(wanted, n, out);                                                                          \
    }
QUESTIONS(Forward)
QUESTIONS(BackwardData)
QUESTIONS(BackwardFilter)

static int launch(void *handle, const struct maq_rec_op *op, const char *name, const void *out, const struct legacy *to)
{
    const struct dnn *h = dnn_of(handle);
    if (h == NULL)
        return ABI_CUDNN_NOT_INITIALIZED;
    vg_lock();
    const bool ok = math_launch(h->stream, op, name, (struct math_out){out, bytes_of(to)});
    vg_unlock();
    return ok ? ABI_CUDNN_SUCCESS : ABI_CUDNN_EXECUTION_FAILED;
}

/* y is the output of the forward direction, or its gradient. */
static int convolve(void *handle, const char *name, const struct legacy *x, const struct legacy *w,
                    const struct legacy *y, const void *out, const struct legacy *to)
{
    if (x == NULL || w == NULL || y == NULL || w->n < 1 || w->dims[0] < 1)
        return ABI_CUDNN_BAD_PARAM;
    const struct maq_rec_op op = {
        .kind = MAQ_REC_CONV,
        .type = (uint8_t)dnn_type(w->type),
        .out = (uint8_t)dnn_type(to->type),
        .d = {2 * elements(y) * (elements(w) / w->dims[0])},
        .bytes = bytes_of(x) + bytes_of(w) + bytes_of(y),
    };
    return launch(handle, &op, name, out, to);
}

MATH_API(int, cudnnConvolutionForward, void *handle, const void *alpha, const struct legacy *dx, const void *x,
         const struct legacy *dw, const void *w, const void *conv, int algorithm, void *workspace, size_t bytes,
         const void *beta, const struct legacy *dy, void *y)
{
    (void)alpha, (void)x, (void)w, (void)conv, (void)algorithm, (void)workspace, (void)bytes, (void)beta;
    return convolve(handle, "cudnnConvolutionForward", dx, dw, dy, y, dy);
}

MATH_API(int, cudnnConvolutionBiasActivationForward, void *handle, const void *alpha, const struct legacy *dx,
         const void *x, const struct legacy *dw, const void *w, const void *conv, int algorithm, void *workspace,
         size_t bytes, const void *alpha2, const void *dz, const void *z, const void *db, const void *b,
         const void *activation, const struct legacy *dy, void *y)
{
    (void)alpha2, (void)dz, (void)z, (void)db, (void)b, (void)activation;
    return cudnnConvolutionForward(handle, alpha, dx, x, dw, w, conv, algorithm, workspace, bytes, alpha2, dy, y);
}

MATH_API(int, cudnnConvolutionBackwardData, void *handle, const void *alpha, const struct legacy *dw, const void *w,
         const struct legacy *dy, const void *y, const void *conv, int algorithm, void *workspace, size_t bytes,
         const void *beta, const struct legacy *dx, void *x)
{
    (void)alpha, (void)w, (void)y, (void)conv, (void)algorithm, (void)workspace, (void)bytes, (void)beta;
    return convolve(handle, "cudnnConvolutionBackwardData", dx, dw, dy, x, dx);
}

MATH_API(int, cudnnConvolutionBackwardFilter, void *handle, const void *alpha, const struct legacy *dx, const void *x,
         const struct legacy *dy, const void *y, const void *conv, int algorithm, void *workspace, size_t bytes,
         const void *beta, const struct legacy *dw, void *w)
{
    (void)alpha, (void)x, (void)y, (void)conv, (void)algorithm, (void)workspace, (void)bytes, (void)beta;
    return convolve(handle, "cudnnConvolutionBackwardFilter", dx, dw, dy, w, dw);
}

/* --- batch normalisation ------------------------------------------------------------------------------------------------------ */

/* `passes`: how often a tensor as large as x is read or written. */
static int normalize(void *handle, const char *name, bool backward, const struct legacy *x, unsigned passes,
                     const void *out)
{
    if (x == NULL || x->n < 2 || x->dims[1] < 1)
        return ABI_CUDNN_BAD_PARAM;
    const struct maq_rec_op op = {
        .kind = backward ? MAQ_REC_NORM_BWD : MAQ_REC_NORM,
        .type = (uint8_t)dnn_type(x->type),
        .out = (uint8_t)dnn_type(x->type),
        .d = {elements(x) / x->dims[1], x->dims[1]},
        .bytes = passes * bytes_of(x),
    };
    return launch(handle, &op, name, out, x);
}

static int no_bytes(size_t *bytes)
{
    if (bytes == NULL)
        return ABI_CUDNN_BAD_PARAM;
    *bytes = 0;
    return ABI_CUDNN_SUCCESS;
}

MATH_API(int, cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize, void *handle, int mode, int ops, const void *dx,
         const void *dz, const void *dy, const void *ds, const void *activation, size_t *bytes)
{
    (void)handle, (void)mode, (void)ops, (void)dx, (void)dz, (void)dy, (void)ds, (void)activation;
    return no_bytes(bytes);
}

MATH_API(int, cudnnGetBatchNormalizationBackwardExWorkspaceSize, void *handle, int mode, int ops, const void *dx,
         const void *dy, const void *ddy, const void *ddz, const void *ddx, const void *ds, const void *activation,
         size_t *bytes)
{
    (void)handle, (void)mode, (void)ops, (void)dx, (void)dy, (void)ddy, (void)ddz, (void)ddx, (void)ds;
    (void)activation;
    return no_bytes(bytes);
}

MATH_API(int, cudnnGetBatchNormalizationTrainingExReserveSpaceSize, void *handle, int mode, int ops,
         const void *activation, const void *dx, size_t *bytes)
{
    (void)handle, (void)mode, (void)ops, (void)activation, (void)dx;
    return no_bytes(bytes);
}

MATH_API(int, cudnnBatchNormalizationForwardTrainingEx, void *handle, int mode, int ops, const void *alpha,
         const void *beta, const struct legacy *dx, const void *x, const struct legacy *dz, const void *z,
         const struct legacy *dy, void *y, const struct legacy *ds, const void *scale, const void *bias, double factor,
         void *running_mean, void *running_variance, double epsilon, void *mean, void *inverse, void *activation,
         void *workspace, size_t workspace_bytes, void *reserve, size_t reserve_bytes)
{
    (void)mode, (void)ops, (void)alpha, (void)beta, (void)x, (void)dz, (void)dy, (void)ds, (void)scale, (void)bias;
    (void)factor, (void)running_mean, (void)running_variance, (void)epsilon, (void)mean, (void)inverse;
    (void)activation, (void)workspace, (void)workspace_bytes, (void)reserve, (void)reserve_bytes;
    return normalize(handle, "cudnnBatchNormalizationForwardTrainingEx", false, dx, 3u + (z != NULL), y);
}

MATH_API(int, cudnnBatchNormalizationForwardInference, void *handle, int mode, const void *alpha, const void *beta,
         const struct legacy *dx, const void *x, const struct legacy *dy, void *y, const struct legacy *ds,
         const void *scale, const void *bias, const void *mean, const void *variance, double epsilon)
{
    (void)mode, (void)alpha, (void)beta, (void)x, (void)dy, (void)ds, (void)scale, (void)bias, (void)mean;
    (void)variance, (void)epsilon;
    return normalize(handle, "cudnnBatchNormalizationForwardInference", false, dx, 2, y);
}

MATH_API(int, cudnnBatchNormalizationBackwardEx, void *handle, int mode, int ops, const void *alpha, const void *beta,
         const void *alpha_parameters, const void *beta_parameters, const struct legacy *dx, const void *x,
         const struct legacy *dy, const void *y, const struct legacy *ddy, const void *grad_y, const struct legacy *ddz,
         void *grad_z, const struct legacy *ddx, void *grad_x, const struct legacy *ds, const void *scale,
         const void *bias, void *grad_scale, void *grad_bias, double epsilon, const void *mean, const void *inverse,
         void *activation, void *workspace, size_t workspace_bytes, void *reserve, size_t reserve_bytes)
{
    (void)mode, (void)ops, (void)alpha, (void)beta, (void)alpha_parameters, (void)beta_parameters, (void)x;
    (void)dy, (void)y, (void)ddy, (void)grad_y, (void)ddz, (void)ddx, (void)ds, (void)scale, (void)bias;
    (void)grad_scale, (void)grad_bias, (void)epsilon, (void)mean, (void)inverse, (void)activation;
    (void)workspace, (void)workspace_bytes, (void)reserve, (void)reserve_bytes;
    return normalize(handle, "cudnnBatchNormalizationBackwardEx", true, dx, 5u + (grad_z != NULL), grad_x);
}
