/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pointwise.c - operators that memory bounds, with kernels of our own (kernels.cu): which buffers each takes.
 *
 * The order of the buffers is that of measure/buffers.c.
 */
#include "measure/cuda/cuda_backend.h"
#include "measure/cuda/kernels.h"

static struct maq_cuda_rows rows_of(const struct maq_cuda *s, int64_t columns)
{
    const struct maq_op *op = &s->c->op;
    return (struct maq_cuda_rows){s->stream, (enum maq_dtype)op->dtype, op->d[0], columns, s->sms};
}

static bool launched(struct maq_cuda *s)
{
    return maq_cuda_good(s, cudaGetLastError(), "a kernel");
}

static bool launch_norm(struct maq_cuda *s)
{
    void *const *b = s->buffers;
    const struct maq_op *op = &s->c->op;
    const struct maq_cuda_rows r = rows_of(s, op->d[1]);
    bool centred = op->flags & MAQ_OP_BIAS;
    if (op->kind == MAQ_OP_NORM)
        maq_cuda_norm(&r, b[0], b[1], b[2], b[3], centred);
    else
        maq_cuda_norm_bwd(&r, b[0], b[1], b[2], b[3], b[4], b[5], s->workspace, centred);
    return launched(s);
}

static bool launch_softmax(struct maq_cuda *s)
{
    void *const *b = s->buffers;
    const struct maq_cuda_rows r = rows_of(s, s->c->op.d[1]);
    if (s->c->op.kind == MAQ_OP_SOFTMAX)
        maq_cuda_softmax(&r, b[0], b[1]);
    else
        maq_cuda_softmax_bwd(&r, b[0], b[1], b[2]);
    return launched(s);
}

static bool launch_cross_entropy(struct maq_cuda *s)
{
    const struct maq_cuda_rows r = rows_of(s, s->c->op.d[1]);
    maq_cuda_cross_entropy(&r, s->buffers[0], s->buffers[1], s->buffers[2]);
    return launched(s);
}

static bool launch_rope(struct maq_cuda *s)
{
    const struct maq_cuda_rows r = rows_of(s, s->c->op.d[1]);
    maq_cuda_rope(&r, s->buffers[0], s->buffers[1]);
    return launched(s);
}

static bool launch_gather(struct maq_cuda *s)
{
    void *const *b = s->buffers;
    const struct maq_cuda_rows r = rows_of(s, s->c->op.d[1]);
    if (s->c->op.kind == MAQ_OP_EMBEDDING)
        maq_cuda_gather(&r, b[1], b[0], b[2], true);
    else
        maq_cuda_gather(&r, b[0], b[2], b[1], false);
    return launched(s);
}

static bool launch_scatter(struct maq_cuda *s)
{
    const struct maq_cuda_rows r = rows_of(s, s->c->op.d[1]);
    maq_cuda_scatter(&r, s->buffers[1], s->buffers[0], s->buffers[2], (size_t)s->c->bytes[2]);
    return launched(s);
}

static bool launch_quantize(struct maq_cuda *s)
{
    const struct maq_cuda_rows r = rows_of(s, s->c->op.d[1]);
    maq_cuda_quantize(&r, s->buffers[0], s->buffers[1], s->buffers[2]);
    return launched(s);
}

static bool launch_activation(struct maq_cuda *s)
{
    void *const *b = s->buffers;
    const struct maq_op *op = &s->c->op;
    const struct maq_cuda_rows r = rows_of(s, op->d[2]);
    bool gated = op->flags & MAQ_OP_GATED;
    if (op->kind == MAQ_OP_ACTIVATION)
        maq_cuda_activation(&r, b[0], b[1], gated);
    else
        maq_cuda_activation_bwd(&r, b[0], b[1], b[2], gated);
    return launched(s);
}

static bool launch_stream(struct maq_cuda *s)
{
    const struct maq_op *op = &s->c->op;
    double n = (double)op->d[0], read = n * (double)op->d[1], written = n * (double)op->d[2];
    bool in_place = op->kind != MAQ_OP_ELEMENTWISE;
    if (op->kind == MAQ_OP_CROSS_ENTROPY_BWD)
        read = written = s->c->bytes[0];
    maq_cuda_stream(s->stream, s->sms, s->buffers[0], (size_t)read, s->buffers[in_place ? 0 : 1], (size_t)written);
    return launched(s);
}

static bool launch_copy(struct maq_cuda *s)
{
    return maq_cuda_good(
        s, cudaMemcpyAsync(s->host, s->buffers[0], (size_t)s->c->bytes[0], cudaMemcpyDeviceToHost, s->stream),
        "a copy to the host");
}

/* Indices have to be indices: the tensors are full of random numbers. */
static bool fill_indices(struct maq_cuda *s)
{
    const struct maq_op *op = &s->c->op;
    size_t rows = (size_t)op->d[0];
    switch (op->kind) {
    case MAQ_OP_EMBEDDING:
    case MAQ_OP_EMBEDDING_BWD:
        if (op->d[2] < 1)
            return maq_cuda_fail(s, "an embedding", "its table has no rows");
        maq_cuda_fill_indices(s->stream, s->buffers[0], rows, (size_t)op->d[2], true);
        break;
    case MAQ_OP_CROSS_ENTROPY:
    case MAQ_OP_CROSS_ENTROPY_BWD:
        maq_cuda_fill_indices(s->stream, s->buffers[1], rows, (size_t)op->d[1], true);
        break;
    case MAQ_OP_PERMUTE:
        maq_cuda_fill_indices(s->stream, s->buffers[2], rows, rows, false);
        break;
    default:
        break;
    }
    return launched(s);
}

/* Whether the kernels take rows of this length in this type. */
static bool fits(struct maq_cuda *s, int64_t columns, bool in_registers)
{
    const struct maq_op *op = &s->c->op;
    enum maq_dtype dtype = (enum maq_dtype)op->dtype;
    int64_t per_vec = dtype == MAQ_FP32 ? 4 : 8;
    if (op->d[0] < 1 || columns < 1 || op->d[0] > INT32_MAX)
        return maq_cuda_fail(s, "a kernel of rows", "there is no row, no column, or too many of them");
    if (!maq_cuda_has_type(dtype))
        return maq_cuda_fail(s, "a kernel of rows", "it is written for bfloat16, half and float");
    if (columns % per_vec != 0 || (in_registers && !maq_cuda_has_columns(dtype, columns)))
        return maq_cuda_fail(s, "a kernel of rows", "its rows are no multiple of 16 bytes, or too long");
    return true;
}

bool maq_cuda_prepare_pointwise(struct maq_cuda *s, const char **kernel)
{
    const struct maq_op *op = &s->c->op;
    int64_t columns = op->d[1];
    bool good = true;
    *kernel = "maquette";
    switch (op->kind) {
    case MAQ_OP_NORM:
    case MAQ_OP_NORM_BWD:
        s->launch = launch_norm;
        good = fits(s, columns, true);
        break;
    case MAQ_OP_SOFTMAX:
    case MAQ_OP_SOFTMAX_BWD:
        s->launch = launch_softmax;
        good = fits(s, columns, true);
        break;
    case MAQ_OP_CROSS_ENTROPY:
        s->launch = launch_cross_entropy;
        good = fits(s, columns, false);
        break;
    case MAQ_OP_CROSS_ENTROPY_BWD: /* the forward kernel has left the gradient: what remains is a scaling in place */
    case MAQ_OP_ELEMENTWISE:
    case MAQ_OP_OPTIMIZER:
        s->launch = launch_stream;
        break;
    case MAQ_OP_ROPE:
        s->launch = launch_rope;
        good = fits(s, columns, false) &&
               (columns % 128 == 0 || maq_cuda_fail(s, "rope", "its columns are no heads of 128"));
        break;
    case MAQ_OP_EMBEDDING:
    case MAQ_OP_PERMUTE:
        s->launch = launch_gather;
        good = fits(s, columns, false);
        break;
    case MAQ_OP_EMBEDDING_BWD:
        s->launch = launch_scatter;
        good = fits(s, columns, false);
        break;
    case MAQ_OP_QUANTIZE:
        s->launch = launch_quantize;
        if (op->dtype != MAQ_FP8 || op->d[2] > 1 || op->d[0] * columns % 128 != 0)
            good =
                maq_cuda_fail(s, "quantize", "it is written for FP8 without a transposed copy, 128 values per scale");
        break;
    case MAQ_OP_ACTIVATION:
    case MAQ_OP_ACTIVATION_BWD:
        s->launch = launch_activation;
        good = fits(s, op->d[2], false) && (op->d[1] == op->d[2] * (op->flags & MAQ_OP_GATED ? 2 : 1) ||
                                            maq_cuda_fail(s, "activation", "its widths are not those of a gate"));
        break;
    case MAQ_OP_HOST_COPY:
        s->launch = launch_copy;
        *kernel = "cudaMemcpy";
        break;
    default:
        return maq_cuda_fail(s, "no kernel", "this module has none for the operator");
    }
    return good && fill_indices(s);
}
