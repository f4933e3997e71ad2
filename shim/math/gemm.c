/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm.c - the products of cuBLAS: gemm of each type, its Ex, batched, strided and grouped forms, with 32- and 64-bit sizes.
 *
 * What the tensor cores are fed with follows cuBLAS' documentation (section "cublasSetMathMode", "cublasGemmEx"): single
 * precision runs as TF32 under CUBLAS_TF32_TENSOR_OP_MATH or a FAST_TF32 compute type, as half precision under FAST_16F
 * and FAST_16BF; a pedantic mode never does.
 */
#include <stdio.h>

#include "shim/math/blas.h"

struct gemm {
    int trans_a, trans_b;
    int64_t m, n, k, lda, ldb, ldc, batch;
    int a, b, c;    /* cudaDataType */
    int compute;    /* 0 = by the types */
    int scale_bits; /* of alpha and beta; 0 = by the compute type */
    const void *beta;
    const char *call;
    const void *out; /* NULL = an array of pointers, on the device */
    int64_t stride;  /* between the outputs of a batch, elements */
};

static enum maq_rec_type fed_with(const struct blas *b, const struct gemm *g)
{
    if (math_type(g->a) != MAQ_REC_F32)
        return math_type(g->a);
    if (g->compute == ABI_COMPUTE_32F_FAST_TF32)
        return MAQ_REC_TF32;
    if (g->compute == ABI_COMPUTE_32F_FAST_16F)
        return MAQ_REC_F16;
    if (g->compute == ABI_COMPUTE_32F_FAST_16BF)
        return MAQ_REC_BF16;
    const bool may = g->compute == 0 || g->compute == ABI_COMPUTE_32F;
    return may && (b->math_mode & 15) == ABI_MATH_TF32 ? MAQ_REC_TF32 : MAQ_REC_F32;
}

/* Bytes of alpha and beta ("cublasGemmEx", table of types): of the compute type, twice that for complex matrices; for
 * 8-bit integers into single precision they are float, which is as wide as the 32-bit integer. */
static size_t scale_bytes(const struct gemm *g)
{
    size_t bytes = 4;
    if (g->scale_bits != 0)
        return (size_t)g->scale_bits / 8;
    if (g->compute == ABI_COMPUTE_16F || g->compute == ABI_COMPUTE_16F_PEDANTIC)
        bytes = 2;
    if (g->compute == ABI_COMPUTE_64F || g->compute == ABI_COMPUTE_64F_PEDANTIC)
        bytes = 8;
    return math_type_is_complex(g->c) ? 2 * bytes : bytes;
}

static int64_t at_least_1(int64_t n)
{
    return n > 1 ? n : 1;
}

static int multiply(void *handle, const struct gemm *g)
{
    const struct blas *b = blas_of(handle);
    if (b == NULL)
        return ABI_CUBLAS_NOT_INITIALIZED;
    if (g->m < 0 || g->n < 0 || g->k < 0 || g->batch < 0 || g->trans_a < 0 || g->trans_a > 3 || g->trans_b < 0 ||
        g->trans_b > 3 || g->lda < at_least_1(g->trans_a ? g->k : g->m) ||
        g->ldb < at_least_1(g->trans_b ? g->n : g->k) || g->ldc < at_least_1(g->m))
        return ABI_CUBLAS_INVALID_VALUE;
    const uint64_t elements = (uint64_t)(g->batch - 1) * (uint64_t)g->stride + (uint64_t)g->ldc * (uint64_t)g->n;
    const struct math_product p = {
        .out = g->out == NULL ? MATH_ANYWHERE : (struct math_out){g->out, elements * math_type_bits(g->c) / 8},
        .m = g->m,
        .n = g->n,
        .k = g->k,
        .batch = g->batch,
        .trans_a = g->trans_a != 0,
        .trans_b = g->trans_b != 0,
        .accumulates = !blas_is_zero(g->beta, scale_bytes(g), b->pointer_mode == ABI_POINTERS_OF_DEVICE),
        .a = g->a,
        .b = g->b,
        .c = g->c,
        .d = g->c,
        .type = fed_with(b, g),
        .call = g->call,
        .detail = "",
    };
    vg_lock();
    const bool ok = math_multiply(b->stream, &p);
    vg_unlock();
    return ok ? ABI_CUBLAS_SUCCESS : ABI_CUBLAS_EXECUTION_FAILED;
}

#define PRODUCT(t, bits, comp, name, to, apart)                                                                        \
    (&(struct gemm){.trans_a = ta,                                                                                     \
                    .trans_b = tb,                                                                                     \
                    .m = m,                                                                                            \
                    .n = n,                                                                                            \
                    .k = k,                                                                                            \
                    .lda = lda,                                                                                        \
                    .ldb = ldb,                                                                                        \
                    .ldc = ldc,                                                                                        \
                    .batch = batch,                                                                                    \
                    .a = t,                                                                                            \
                    .b = t,                                                                                            \
                    .c = t,                                                                                            \
                    .compute = comp,                                                                                   \
                    .scale_bits = bits,                                                                                \
                    .beta = beta,                                                                                      \
                    .call = name,                                                                                      \
                    .out = to,                                                                                         \
                    .stride = apart})

/* The three forms of one type; `i` is the type of sizes. */
#define FORMS(letter, old, suffix, i, t, bits)                                                                         \
    MATH_API(int, cublas##letter##gemm##old, void *handle, int ta, int tb, i m, i n, i k, const void *alpha,           \
             const void *a, i lda, const void *b, i ldb, const void *beta, void *c, i ldc)                             \
    {                                                                                                                  \
        const int64_t batch = 1;                                                                                       \
        (void)alpha, (void)a, (void)b, (void)c;                                                                        \
        return multiply(handle, PRODUCT(t, bits, 0, "cublas" #letter "gemm", c, 0));                                   \
    }                                                                                                                  \
    MATH_API(int, cublas##letter##gemmStridedBatched##suffix, void *handle, int ta, int tb, i m, i n, i k,             \
             const void *alpha, const void *a, i lda, long long sa, const void *b, i ldb, long long sb,                \
             const void *beta, void *c, i ldc, long long sc, i batch)                                                  \
    {                                                                                                                  \
        (void)alpha, (void)a, (void)b, (void)c, (void)sa, (void)sb, (void)sc;                                          \
        return multiply(handle, PRODUCT(t, bits, 0, "cublas" #letter "gemmStridedBatched", c, sc));                    \
    }                                                                                                                  \
    MATH_API(int, cublas##letter##gemmBatched##suffix, void *handle, int ta, int tb, i m, i n, i k, const void *alpha, \
             const void *a, i lda, const void *b, i ldb, const void *beta, const void *c, i ldc, i batch)              \
    {                                                                                                                  \
        (void)alpha, (void)a, (void)b, (void)c;                                                                        \
        return multiply(handle, PRODUCT(t, bits, 0, "cublas" #letter "gemmBatched", NULL, 0));                         \
    }

FORMS(S, _v2, , int, ABI_R_32F, 32)
FORMS(D, _v2, , int, ABI_R_64F, 64)
FORMS(C, _v2, , int, ABI_C_32F, 64)
FORMS(Z, _v2, , int, ABI_C_64F, 128)
FORMS(H, , , int, ABI_R_16F, 16)
FORMS(S, _v2_64, _64, int64_t, ABI_R_32F, 32)
FORMS(D, _v2_64, _64, int64_t, ABI_R_64F, 64)
FORMS(C, _v2_64, _64, int64_t, ABI_C_32F, 64)
FORMS(Z, _v2_64, _64, int64_t, ABI_C_64F, 128)
FORMS(H, _64, _64, int64_t, ABI_R_16F, 16)

/* The forms with a type for each matrix. */
#define EX_FORMS(suffix, i)                                                                                            \
    MATH_API(int, cublasGemmEx##suffix, void *handle, int ta, int tb, i m, i n, i k, const void *alpha, const void *a, \
             int type_a, i lda, const void *b, int type_b, i ldb, const void *beta, void *c, int type_c, i ldc,        \
             int compute, int algo)                                                                                    \
    {                                                                                                                  \
        const int64_t batch = 1;                                                                                       \
        struct gemm g = *PRODUCT(type_a, 0, compute, "cublasGemmEx", c, 0);                                            \
        (void)alpha, (void)a, (void)b, (void)c, (void)algo;                                                            \
        g.b = type_b;                                                                                                  \
        g.c = type_c;                                                                                                  \
        return multiply(handle, &g);                                                                                   \
    }                                                                                                                  \
    MATH_API(int, cublasGemmStridedBatchedEx##suffix, void *handle, int ta, int tb, i m, i n, i k, const void *alpha,  \
             const void *a, int type_a, i lda, long long sa, const void *b, int type_b, i ldb, long long sb,           \
             const void *beta, void *c, int type_c, i ldc, long long sc, i batch, int compute, int algo)               \
    {                                                                                                                  \
        struct gemm g = *PRODUCT(type_a, 0, compute, "cublasGemmStridedBatchedEx", c, sc);                             \
        (void)alpha, (void)a, (void)b, (void)c, (void)sa, (void)sb, (void)sc, (void)algo;                              \
        g.b = type_b;                                                                                                  \
        g.c = type_c;                                                                                                  \
        return multiply(handle, &g);                                                                                   \
    }                                                                                                                  \
    MATH_API(int, cublasGemmBatchedEx##suffix, void *handle, int ta, int tb, i m, i n, i k, const void *alpha,         \
             const void *a, int type_a, i lda, const void *b, int type_b, i ldb, const void *beta, const void *c,      \
             int type_c, i ldc, i batch, int compute, int algo)                                                        \
    {                                                                                                                  \
        struct gemm g = *PRODUCT(type_a, 0, compute, "cublasGemmBatchedEx", NULL, 0);                                  \
        (void)alpha, (void)a, (void)b, (void)c, (void)algo;                                                            \
        g.b = type_b;                                                                                                  \
        g.c = type_c;                                                                                                  \
        return multiply(handle, &g);                                                                                   \
    }                                                                                                                  \
    MATH_API(int, cublasSgemmEx##suffix, void *handle, int ta, int tb, i m, i n, i k, const void *alpha,               \
             const void *a, int type_a, i lda, const void *b, int type_b, i ldb, const void *beta, void *c,            \
             int type_c, i ldc)                                                                                        \
    {                                                                                                                  \
        const int64_t batch = 1;                                                                                       \
        struct gemm g = *PRODUCT(type_a, 32, 0, "cublasSgemmEx", c, 0);                                                \
        (void)alpha, (void)a, (void)b, (void)c;                                                                        \
        g.b = type_b;                                                                                                  \
        g.c = type_c;                                                                                                  \
        return multiply(handle, &g);                                                                                   \
    }
EX_FORMS(, int)
EX_FORMS(_64, int64_t)

/*
 * Grouped: each group has its own sizes and is recorded as a batch of its own; the hardware runs them as one kernel or as
 * one per group, and which is not documented. So a launch is counted for each group.
 */
#define GROUPED(name, i, t_a, t_b, t_c, comp, bits, ...)                                                               \
    MATH_API(int, name, void *handle, const int *ta, const int *tb, const i *m, const i *n, const i *k, __VA_ARGS__)   \
    {                                                                                                                  \
        (void)alpha, (void)a, (void)b, (void)c;                                                                        \
        for (i g = 0; g < groups; g++) {                                                                               \
            const size_t scale = scale_bytes(&(struct gemm){.c = t_c, .compute = comp, .scale_bits = bits});           \
            const int status = multiply(handle, &(struct gemm){.trans_a = ta[g],                                       \
                                                               .trans_b = tb[g],                                       \
                                                               .m = m[g],                                              \
                                                               .n = n[g],                                              \
                                                               .k = k[g],                                              \
                                                               .lda = lda[g],                                          \
                                                               .ldb = ldb[g],                                          \
                                                               .ldc = ldc[g],                                          \
                                                               .batch = size[g],                                       \
                                                               .a = t_a,                                               \
                                                               .b = t_b,                                               \
                                                               .c = t_c,                                               \
                                                               .compute = comp,                                        \
                                                               .scale_bits = bits,                                     \
                                                               .beta = (const char *)beta + (size_t)g * scale,         \
                                                               .call = #name});                                        \
            if (status != ABI_CUBLAS_SUCCESS)                                                                          \
                return status;                                                                                         \
        }                                                                                                              \
        return ABI_CUBLAS_SUCCESS;                                                                                     \
    }
#define GROUPED_PLAIN(name, i, t, bits)                                                                                \
    GROUPED(name, i, t, t, t, 0, bits, const void *alpha, const void *a, const i *lda, const void *b, const i *ldb,    \
            const void *beta, const void *c, const i *ldc, i groups, const i *size)
#define GROUPED_EX(name, i)                                                                                            \
    GROUPED(name, i, type_a, type_b, type_c, compute, 0, const void *alpha, const void *a, int type_a, const i *lda,   \
            const void *b, int type_b, const i *ldb, const void *beta, const void *c, int type_c, const i *ldc,        \
            i groups, const i *size, int compute)
GROUPED_PLAIN(cublasSgemmGroupedBatched, int, ABI_R_32F, 32)
GROUPED_PLAIN(cublasDgemmGroupedBatched, int, ABI_R_64F, 64)
GROUPED_PLAIN(cublasSgemmGroupedBatched_64, int64_t, ABI_R_32F, 32)
GROUPED_PLAIN(cublasDgemmGroupedBatched_64, int64_t, ABI_R_64F, 64)
GROUPED_EX(cublasGemmGroupedBatchedEx, int)
GROUPED_EX(cublasGemmGroupedBatchedEx_64, int64_t)
