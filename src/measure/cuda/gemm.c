/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm.c - products through cuBLASLt, with the algorithm that its heuristics put first, as training frameworks take it.
 *
 * Operators are row-major, D[m,n] = A[m,k] B[k,n]; cuBLAS is column-major, so that D' = B' A' is computed, n x m:
 *
 *   weights are kept as [n,k] and activations as [m,k], both along k: the forward pass of a linear layer, and the only
 *   layout that 8-bit types have.  ("TN")
 *   accumulating products are weight gradients: both operands lie as [k, .], tokens outermost.  ("NT")
 *
 * Groups of equal size are one strided batch. 8-bit floats come out in bfloat16 and have one scale per tensor.
 */
#include <stdio.h>
#include <string.h>

#include "measure/cuda/cuda_backend.h"

struct types {
    cudaDataType_t in, out, scale;
    cublasComputeType_t compute;
};

static bool types_of(struct types *t, const struct maq_op *op)
{
    bool wide = op->flags & (MAQ_OP_ACCUMULATE | MAQ_OP_OUT_FP32);
    *t = (struct types){CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    switch ((enum maq_dtype)op->dtype) {
    case MAQ_BF16:
        break;
    case MAQ_FP16:
        t->in = t->out = CUDA_R_16F;
        break;
    case MAQ_FP32:
        t->in = t->out = CUDA_R_32F;
        break;
    case MAQ_TF32:
        t->in = t->out = CUDA_R_32F;
        t->compute = CUBLAS_COMPUTE_32F_FAST_TF32;
        break;
    case MAQ_FP8:
        t->in = CUDA_R_8F_E4M3;
        break;
    case MAQ_INT8:
        t->in = CUDA_R_8I;
        t->out = CUDA_R_8I;
        t->compute = CUBLAS_COMPUTE_32I;
        return !wide;
    case MAQ_FP6:
    case MAQ_FP4:
    case MAQ_DTYPE_COUNT:
        return false;
    }
    if (wide)
        t->out = CUDA_R_32F;
    return true;
}

static bool good(struct maq_cuda *s, cublasStatus_t status, const char *what)
{
    return status == CUBLAS_STATUS_SUCCESS || maq_cuda_fail(s, what, cublasLtGetStatusString(status));
}

static bool set(struct maq_cuda *s, cublasLtMatmulDescAttributes_t attribute, const void *value, size_t size)
{
    return good(s, cublasLtMatmulDescSetAttribute(s->gemm.desc, attribute, value, size), "cuBLASLt, an attribute");
}

/* rows x columns, column-major and dense; `count` of them one behind the other. */
static bool make_layout(struct maq_cuda *s, cublasLtMatrixLayout_t *out, cudaDataType_t type, int64_t rows,
                        int64_t columns, int32_t count)
{
    int64_t stride = rows * columns;
    if (!good(s, cublasLtMatrixLayoutCreate(out, type, (uint64_t)rows, (uint64_t)columns, rows), "cuBLASLt, a matrix"))
        return false;
    return good(s, cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
                "cuBLASLt, a batch") &&
           good(s,
                cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                                 sizeof stride),
                "cuBLASLt, a batch");
}

static bool make_desc(struct maq_cuda *s, const struct types *t, bool gradient)
{
    const struct maq_op *op = &s->c->op;
    cublasOperation_t first = gradient ? CUBLAS_OP_N : CUBLAS_OP_T, second = gradient ? CUBLAS_OP_T : CUBLAS_OP_N;
    if (!good(s, cublasLtMatmulDescCreate(&s->gemm.desc, t->compute, t->scale), "cuBLASLt, a product") ||
        !set(s, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first) ||
        !set(s, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second))
        return false;
    if (op->flags & MAQ_OP_BIAS) {
        cublasLtEpilogue_t bias = CUBLASLT_EPILOGUE_BIAS;
        if (!set(s, CUBLASLT_MATMUL_DESC_EPILOGUE, &bias, sizeof bias) ||
            !set(s, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &s->buffers[3], sizeof s->buffers[3]))
            return false;
    }
    if (op->dtype == MAQ_FP8) {
        int8_t fast = !gradient;
        return set(s, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &s->one, sizeof s->one) &&
               set(s, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &s->one, sizeof s->one) &&
               set(s, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast);
    }
    return true;
}

static bool choose_algorithm(struct maq_cuda *s)
{
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t best;
    int found = 0;
    struct maq_cuda_gemm *g = &s->gemm;
    size_t limit = (size_t)s->c->workspace_bytes;
    if (!good(s, cublasLtMatmulPreferenceCreate(&preference), "cuBLASLt, a preference"))
        return false;
    cublasStatus_t status = cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                                 &limit, sizeof limit);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasLtMatmulAlgoGetHeuristic(s->lt, g->desc, g->a, g->b, g->d, g->d, preference, 1, &best, &found);
    (void)cublasLtMatmulPreferenceDestroy(preference);
    if (!good(s, status, "cuBLASLt has no algorithm"))
        return false;
    if (found == 0)
        return maq_cuda_fail(s, "cuBLASLt", "it has no algorithm for this product");
    g->algo = best.algo;
    g->workspace_bytes = best.workspaceSize;
    return true;
}

static bool launch(struct maq_cuda *s)
{
    const struct maq_cuda_gemm *g = &s->gemm;
    const float alpha = 1; /* in types that accumulate in integers, too: their outputs of 8 bits are scaled as floats */
    return good(s,
                cublasLtMatmul(s->lt, g->desc, &alpha, s->buffers[1], g->a, s->buffers[0], g->b, &g->beta,
                               s->buffers[2], g->d, s->buffers[2], g->d, &g->algo, s->workspace, g->workspace_bytes,
                               s->stream),
                "cuBLASLt");
}

bool maq_cuda_prepare_gemm(struct maq_cuda *s, const char **kernel)
{
    const struct maq_op *op = &s->c->op;
    struct types t;
    int64_t m = op->d[0], n = op->d[1], k = op->d[2];
    int32_t count = op->d[3] > 1 ? (int32_t)op->d[3] : 1;
    bool gradient = op->flags & (MAQ_OP_ACCUMULATE | MAQ_OP_SUMS_ROWS | MAQ_OP_VARIABLE_K) && op->dtype != MAQ_FP8;
    if (!types_of(&t, op))
        return maq_cuda_fail(s, "cuBLASLt", "it has no product of this type with that output");
    s->gemm.beta = op->flags & MAQ_OP_ACCUMULATE ? 1 : 0;
    s->launch = launch;
    *kernel = "cublasLt";
    return make_desc(s, &t, gradient) && make_layout(s, &s->gemm.a, t.in, gradient ? n : k, gradient ? k : n, count) &&
           make_layout(s, &s->gemm.b, t.in, gradient ? m : k, gradient ? k : m, count) &&
           make_layout(s, &s->gemm.d, t.out, n, m, count) && choose_algorithm(s);
}

void maq_cuda_release_gemm(struct maq_cuda *s)
{
    struct maq_cuda_gemm *g = &s->gemm;
    if (g->desc)
        (void)cublasLtMatmulDescDestroy(g->desc);
    cublasLtMatrixLayout_t layouts[] = {g->a, g->b, g->d};
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
        if (layouts[i])
            (void)cublasLtMatrixLayoutDestroy(layouts[i]);
    memset(g, 0, sizeof *g);
}
