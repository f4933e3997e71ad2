/* SPDX-License-Identifier: Apache-2.0 */
/*
 * level.c - the rest of cuBLAS that programs for training call: vectors, a matrix times a vector, triangular solves, the
 * batched factorisations. Each is an operator of a library: the bytes that it reads and writes, since all of them wait
 * for memory at the sizes they are called with.
 *
 * A result that goes to the host is zero, after the host has waited for the stream, as it would.
 */
#include <string.h>

#include "shim/math/blas.h"

/* By letter: cudaDataType, and the bytes of an element. */
enum { T_S = ABI_R_32F, T_D = ABI_R_64F, T_C = ABI_C_32F, T_Z = ABI_C_64F };
enum { E_S = 4, E_D = 8, E_C = 8, E_Z = 16 };

/* What is written: n elements that are `apart` from each other; a matrix is columns that are its leading dimension apart. */
#define VECTOR_OUT(x, p, n, apart) ((struct math_out){p, E_##x * (n) * (uint64_t)((apart) < 0 ? -(apart) : (apart))})

static uint64_t positive(int64_t n)
{
    return n > 0 ? (uint64_t)n : 0;
}

static int touch(void *handle, const char *name, int type, uint64_t bytes, struct math_out out)
{
    const struct blas *b = blas_of(handle);
    if (b == NULL)
        return ABI_CUBLAS_NOT_INITIALIZED;
    if (bytes == 0)
        return ABI_CUBLAS_SUCCESS;
    vg_lock();
    const bool ok = math_library(b->stream, name, math_type(type), bytes, out);
    vg_unlock();
    return ok ? ABI_CUBLAS_SUCCESS : ABI_CUBLAS_EXECUTION_FAILED;
}

/* A scalar result of `bytes`: on the host it is read back, which waits. */
static int reduce(void *handle, const char *name, int type, uint64_t touched, void *result, size_t bytes)
{
    const int status = touch(handle, name, type, touched, (struct math_out){result, bytes});
    const struct blas *b = blas_of(handle);
    if (status != ABI_CUBLAS_SUCCESS || b->pointer_mode == ABI_POINTERS_OF_DEVICE)
        return status;
    if (result == NULL)
        return ABI_CUBLAS_INVALID_VALUE;
    vg_lock();
    const bool ok = math_wait(b->stream);
    vg_unlock();
    memset(result, 0, bytes);
    return ok ? ABI_CUBLAS_SUCCESS : ABI_CUBLAS_EXECUTION_FAILED;
}

/* Of each type: y = op(A) x; the dot product; B = inverse(A) B, alone and batched; LU, its solve and its inverse, QR and
 * least squares of many small matrices. A triangle is half a matrix. */
#define LEVELS(x, i, v2, suffix)                                                                                       \
    MATH_API(int, cublas##x##gemv##v2, void *handle, int trans, i m, i n, const void *alpha, const void *a, i lda,     \
             const void *in, i incx, const void *beta, void *y, i incy)                                                \
    {                                                                                                                  \
        (void)trans, (void)alpha, (void)a, (void)lda, (void)in, (void)incx, (void)beta, (void)y, (void)incy;           \
        const uint64_t rows = positive(m), columns = positive(n);                                                      \
        return touch(handle, "cublas" #x "gemv", T_##x, E_##x * (rows * columns + rows + columns),                     \
                     VECTOR_OUT(x, y, trans == 0 ? rows : columns, incy));                                             \
    }                                                                                                                  \
    MATH_API(int, cublas##x##trsm##v2, void *handle, int side, int uplo, int trans, int diag, i m, i n,                \
             const void *alpha, const void *a, i lda, void *b, i ldb)                                                  \
    {                                                                                                                  \
        (void)uplo, (void)trans, (void)diag, (void)alpha, (void)a, (void)lda, (void)b, (void)ldb;                      \
        const uint64_t rows = positive(m), columns = positive(n), of_a = side == 0 ? rows : columns;                   \
        return touch(handle, "cublas" #x "trsm", T_##x, E_##x * (of_a * of_a / 2 + 2 * rows * columns),                \
                     VECTOR_OUT(x, b, columns, ldb));                                                                  \
    }                                                                                                                  \
    MATH_API(int, cublas##x##trsmBatched##suffix, void *handle, int side, int uplo, int trans, int diag, i m, i n,     \
             const void *alpha, const void *a, i lda, const void *b, i ldb, i batch)                                   \
    {                                                                                                                  \
        (void)uplo, (void)trans, (void)diag, (void)alpha, (void)a, (void)lda, (void)b, (void)ldb;                      \
        const uint64_t rows = positive(m), columns = positive(n), of_a = side == 0 ? rows : columns;                   \
        return touch(handle, "cublas" #x "trsmBatched", T_##x,                                                         \
                     positive(batch) * E_##x * (of_a * of_a / 2 + 2 * rows * columns), MATH_ANYWHERE);                 \
    }
LEVELS(S, int, _v2, )
LEVELS(D, int, _v2, )
LEVELS(C, int, _v2, )
LEVELS(Z, int, _v2, )

#define DOT(name, x)                                                                                                   \
    MATH_API(int, name##_v2, void *handle, int n, const void *u, int incu, const void *v, int incv, void *result)      \
    {                                                                                                                  \
        (void)u, (void)incu, (void)v, (void)incv;                                                                      \
        return reduce(handle, #name, T_##x, 2 * E_##x * positive(n), result, E_##x);                                   \
    }
DOT(cublasSdot, S)
DOT(cublasDdot, D)
DOT(cublasCdotu, C)
DOT(cublasCdotc, C)
DOT(cublasZdotu, Z)
DOT(cublasZdotc, Z)

#define NORM(name, x, real)                                                                                            \
    MATH_API(int, name##_v2, void *handle, int n, const void *u, int incu, void *result)                               \
    {                                                                                                                  \
        (void)u, (void)incu;                                                                                           \
        return reduce(handle, #name, T_##x, E_##x * positive(n), result, E_##real);                                    \
    }
NORM(cublasSnrm2, S, S)
NORM(cublasDnrm2, D, D)
NORM(cublasScnrm2, C, S)
NORM(cublasDznrm2, Z, D)
NORM(cublasSasum, S, S)
NORM(cublasDasum, D, D)
NORM(cublasIsamax, S, S)
NORM(cublasIdamax, D, S)

#define VECTOR(x)                                                                                                      \
    MATH_API(int, cublas##x##axpy_v2, void *handle, int n, const void *alpha, const void *u, int incu, void *v,        \
             int incv)                                                                                                 \
    {                                                                                                                  \
        (void)alpha, (void)u, (void)incu, (void)v, (void)incv;                                                         \
        return touch(handle, "cublas" #x "axpy", T_##x, 3 * E_##x * positive(n), VECTOR_OUT(x, v, positive(n), incv)); \
    }                                                                                                                  \
    MATH_API(int, cublas##x##scal_v2, void *handle, int n, const void *alpha, void *u, int incu)                       \
    {                                                                                                                  \
        (void)alpha, (void)u, (void)incu;                                                                              \
        return touch(handle, "cublas" #x "scal", T_##x, 2 * E_##x * positive(n), VECTOR_OUT(x, u, positive(n), incu)); \
    }                                                                                                                  \
    MATH_API(int, cublas##x##copy_v2, void *handle, int n, const void *u, int incu, void *v, int incv)                 \
    {                                                                                                                  \
        (void)u, (void)incu, (void)v, (void)incv;                                                                      \
        return touch(handle, "cublas" #x "copy", T_##x, 2 * E_##x * positive(n), VECTOR_OUT(x, v, positive(n), incv)); \
    }                                                                                                                  \
    MATH_API(int, cublas##x##geam, void *handle, int ta, int tb, int m, int n, const void *alpha, const void *a,       \
             int lda, const void *beta, const void *b, int ldb, void *c, int ldc)                                      \
    {                                                                                                                  \
        (void)ta, (void)tb, (void)alpha, (void)a, (void)lda, (void)beta, (void)b, (void)ldb, (void)c, (void)ldc;       \
        const uint64_t matrices = 2u + (b != NULL);                                                                    \
        return touch(handle, "cublas" #x "geam", T_##x, matrices * E_##x * positive(m) * positive(n),                  \
                     VECTOR_OUT(x, c, positive(n), ldc));                                                              \
    }
VECTOR(S)
VECTOR(D)
VECTOR(C)
VECTOR(Z)

MATH_API(int, cublasDotEx, void *handle, int n, const void *u, int type_u, int incu, const void *v, int type_v,
         int incv, void *result, int type_result, int type_execution)
{
    (void)u, (void)incu, (void)v, (void)incv, (void)type_execution;
    return reduce(handle, "cublasDotEx", type_u, positive(n) * (math_type_bits(type_u) + math_type_bits(type_v)) / 8,
                  result, math_type_bits(type_result) / 8);
}

MATH_API(int, cublasNrm2Ex, void *handle, int n, const void *u, int type_u, int incu, void *result, int type_result,
         int type_execution)
{
    (void)u, (void)incu, (void)type_execution;
    return reduce(handle, "cublasNrm2Ex", type_u, positive(n) * math_type_bits(type_u) / 8, result,
                  math_type_bits(type_result) / 8);
}

/* Batches of small matrices. `info` of a solve is the host's and says that its arguments are right; the other infos are
 * arrays on the device. */
#define BATCHES(x)                                                                                                     \
    MATH_API(int, cublas##x##getrfBatched, void *handle, int n, const void *a, int lda, int *pivot, int *info,         \
             int batch)                                                                                                \
    {                                                                                                                  \
        (void)a, (void)lda, (void)pivot, (void)info;                                                                   \
        return touch(handle, "cublas" #x "getrfBatched", T_##x,                                                        \
                     2 * E_##x * positive(n) * positive(n) * positive(batch), MATH_ANYWHERE);                          \
    }                                                                                                                  \
    MATH_API(int, cublas##x##getriBatched, void *handle, int n, const void *a, int lda, const int *pivot,              \
             const void *c, int ldc, int *info, int batch)                                                             \
    {                                                                                                                  \
        (void)a, (void)lda, (void)pivot, (void)c, (void)ldc, (void)info;                                               \
        return touch(handle, "cublas" #x "getriBatched", T_##x,                                                        \
                     2 * E_##x * positive(n) * positive(n) * positive(batch), MATH_ANYWHERE);                          \
    }                                                                                                                  \
    MATH_API(int, cublas##x##getrsBatched, void *handle, int trans, int n, int right, const void *a, int lda,          \
             const int *pivot, const void *b, int ldb, int *info, int batch)                                           \
    {                                                                                                                  \
        (void)trans, (void)a, (void)lda, (void)pivot, (void)b, (void)ldb;                                              \
        if (info != NULL)                                                                                              \
            *info = 0;                                                                                                 \
        return touch(handle, "cublas" #x "getrsBatched", T_##x,                                                        \
                     E_##x * positive(n) * (positive(n) + 2 * positive(right)) * positive(batch), MATH_ANYWHERE);      \
    }                                                                                                                  \
    MATH_API(int, cublas##x##geqrfBatched, void *handle, int m, int n, const void *a, int lda, const void *tau,        \
             int *info, int batch)                                                                                     \
    {                                                                                                                  \
        (void)a, (void)lda, (void)tau;                                                                                 \
        if (info != NULL)                                                                                              \
            *info = 0;                                                                                                 \
        return touch(handle, "cublas" #x "geqrfBatched", T_##x,                                                        \
                     2 * E_##x * positive(m) * positive(n) * positive(batch), MATH_ANYWHERE);                          \
    }                                                                                                                  \
    MATH_API(int, cublas##x##gelsBatched, void *handle, int trans, int m, int n, int right, const void *a, int lda,    \
             const void *c, int ldc, int *info, int *infos, int batch)                                                 \
    {                                                                                                                  \
        (void)trans, (void)a, (void)lda, (void)c, (void)ldc, (void)infos;                                              \
        if (info != NULL)                                                                                              \
            *info = 0;                                                                                                 \
        return touch(handle, "cublas" #x "gelsBatched", T_##x,                                                         \
                     2 * E_##x * positive(m) * (positive(n) + positive(right)) * positive(batch), MATH_ANYWHERE);      \
    }
BATCHES(S)
BATCHES(D)
BATCHES(C)
BATCHES(Z)
