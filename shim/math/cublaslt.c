/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cublaslt.c - descriptors and heuristics of cuBLASLt.
 *
 * The heuristic answers with one algorithm, which needs no workspace and is always right: there is nothing to choose
 * between where nothing runs. What the product costs is asked for by its sizes, types and epilogue (matmul.c).
 */
#include <stdlib.h>
#include <string.h>

#include "shim/math/blas.h"
#include "shim/math/cublaslt.h"

#define LAYOUT(number, member) MATH_ATTRIBUTE(number, struct lt_layout, member)
static const struct math_attribute layout_table[] = {
    LAYOUT(ABI_LT_LAYOUT_TYPE, type),
    LAYOUT(ABI_LT_LAYOUT_ORDER, order),
    LAYOUT(ABI_LT_LAYOUT_ROWS, rows),
    LAYOUT(ABI_LT_LAYOUT_COLS, cols),
    LAYOUT(ABI_LT_LAYOUT_LD, ld),
    LAYOUT(ABI_LT_LAYOUT_BATCH, batch),
    LAYOUT(ABI_LT_LAYOUT_STRIDE, stride),
    LAYOUT(ABI_LT_LAYOUT_PLANE, plane),
    LAYOUT(ABI_LT_LAYOUT_BATCH_MODE, batch_mode),
};

#define DESC(number, member) MATH_ATTRIBUTE(number, struct lt_desc, member)
static const struct math_attribute desc_table[] = {
    DESC(ABI_LT_COMPUTE_TYPE, compute),
    DESC(ABI_LT_SCALE_TYPE, scale_type),
    DESC(ABI_LT_POINTER_MODE, pointer_mode),
    DESC(ABI_LT_TRANS_A, trans_a),
    DESC(ABI_LT_TRANS_B, trans_b),
    DESC(ABI_LT_TRANS_C, trans_c),
    DESC(ABI_LT_FILL_MODE, fill_mode),
    DESC(ABI_LT_EPILOGUE, epilogue),
    DESC(ABI_LT_BIAS, bias),
    DESC(ABI_LT_BIAS_STRIDE, bias_stride),
    DESC(ABI_LT_AUX, aux),
    DESC(ABI_LT_AUX_LD, aux_ld),
    DESC(ABI_LT_AUX_STRIDE, aux_stride),
    DESC(ABI_LT_ALPHA_STRIDE, alpha_stride),
    DESC(ABI_LT_SM_COUNT, sm_count),
    DESC(ABI_LT_A_SCALE, scale[0]),
    DESC(ABI_LT_B_SCALE, scale[1]),
    DESC(ABI_LT_C_SCALE, scale[2]),
    DESC(ABI_LT_D_SCALE, scale[3]),
    DESC(ABI_LT_AMAX_D, amax_d),
    DESC(ABI_LT_AUX_TYPE, aux_type),
    DESC(ABI_LT_AUX_SCALE, aux_scale),
    DESC(ABI_LT_AUX_AMAX, aux_amax),
    DESC(ABI_LT_FAST_ACCUM, fast_accum),
    DESC(ABI_LT_BIAS_TYPE, bias_type),
    DESC(ABI_LT_A_SCALE_MODE, scale_mode[0]),
    DESC(ABI_LT_B_SCALE_MODE, scale_mode[1]),
    DESC(ABI_LT_C_SCALE_MODE, scale_mode[2]),
    DESC(ABI_LT_D_SCALE_MODE, scale_mode[3]),
};

#define PREFERENCE(number, member) MATH_ATTRIBUTE(number, struct lt_preference, member)
static const struct math_attribute preference_table[] = {
    PREFERENCE(0, search_mode),    PREFERENCE(ABI_LT_MAX_WORKSPACE, max_workspace),
    PREFERENCE(3, reduction_mask), PREFERENCE(5, alignment[0]),
    PREFERENCE(6, alignment[1]),   PREFERENCE(7, alignment[2]),
    PREFERENCE(8, alignment[3]),   PREFERENCE(9, max_waves),
};

#define TRANSFORM(number, member) MATH_ATTRIBUTE(number, struct lt_transform, member)
static const struct math_attribute transform_table[] = {
    TRANSFORM(0, scale_type),
    TRANSFORM(1, pointer_mode),
    TRANSFORM(2, trans_a),
    TRANSFORM(3, trans_b),
};

/* Making, ending, setting and reading one kind of descriptor. */
#define DESCRIPTOR(name, type, table)                                                                                  \
    MATH_API(int, name##SetAttribute, void *bag, int number, const void *value, size_t bytes)                          \
    {                                                                                                                  \
        if (bag == NULL)                                                                                               \
            return ABI_CUBLAS_INVALID_VALUE;                                                                           \
        const enum math_bag_result r =                                                                                 \
            math_bag_set(bag, table, sizeof(table) / sizeof *(table), (unsigned)number, value, bytes);                 \
        return r == MATH_BAG_SIZE ? ABI_CUBLAS_INVALID_VALUE : ABI_CUBLAS_SUCCESS;                                     \
    }                                                                                                                  \
    MATH_API(int, name##GetAttribute, const void *bag, int number, void *value, size_t bytes, size_t *written)         \
    {                                                                                                                  \
        if (bag == NULL)                                                                                               \
            return ABI_CUBLAS_INVALID_VALUE;                                                                           \
        const enum math_bag_result r =                                                                                 \
            math_bag_get(bag, table, sizeof(table) / sizeof *(table), (unsigned)number, value, bytes, written);        \
        return r == MATH_BAG_OK ? ABI_CUBLAS_SUCCESS : ABI_CUBLAS_INVALID_VALUE;                                       \
    }                                                                                                                  \
    MATH_API(int, name##Destroy, void *bag)                                                                            \
    {                                                                                                                  \
        free(bag);                                                                                                     \
        return ABI_CUBLAS_SUCCESS;                                                                                     \
    }                                                                                                                  \
    static int type##_new(void **out)                                                                                  \
    {                                                                                                                  \
        if (out == NULL)                                                                                               \
            return ABI_CUBLAS_INVALID_VALUE;                                                                           \
        *out = calloc(1, ABI_LT_MOST_BYTES);                                                                           \
        return *out != NULL ? ABI_CUBLAS_SUCCESS : ABI_CUBLAS_ALLOC_FAILED;                                            \
    }
DESCRIPTOR(cublasLtMatrixLayout, lt_layout, layout_table)
DESCRIPTOR(cublasLtMatmulDesc, lt_desc, desc_table)
DESCRIPTOR(cublasLtMatmulPreference, lt_preference, preference_table)
DESCRIPTOR(cublasLtMatrixTransformDesc, lt_transform, transform_table)

static int init(void *bag, size_t have, const void *value, size_t bytes)
{
    if (bag == NULL || have < bytes)
        return ABI_CUBLAS_INVALID_VALUE;
    memset(bag, 0, have);
    memcpy(bag, value, bytes);
    return ABI_CUBLAS_SUCCESS;
}

MATH_API(int, cublasLtMatrixLayoutInit_internal, void *bag, size_t size, int type, uint64_t rows, uint64_t cols,
         int64_t ld)
{
    const struct lt_layout l = {.rows = rows, .cols = cols, .ld = ld, .type = type, .batch = 1};
    return init(bag, size, &l, sizeof l);
}

MATH_API(int, cublasLtMatrixLayoutCreate, void **out, int type, uint64_t rows, uint64_t cols, int64_t ld)
{
    const int status = lt_layout_new(out);
    return status != ABI_CUBLAS_SUCCESS
               ? status
               : cublasLtMatrixLayoutInit_internal(*out, ABI_LT_MOST_BYTES, type, rows, cols, ld);
}

MATH_API(int, cublasLtMatmulDescInit_internal, void *bag, size_t size, int compute, int scale_type)
{
    const struct lt_desc d = {
        .compute = compute, .scale_type = scale_type, .epilogue = ABI_LT_DEFAULT, .aux_type = -1, .bias_type = -1};
    return init(bag, size, &d, sizeof d);
}

MATH_API(int, cublasLtMatmulDescCreate, void **out, int compute, int scale_type)
{
    const int status = lt_desc_new(out);
    return status != ABI_CUBLAS_SUCCESS ? status
                                        : cublasLtMatmulDescInit_internal(*out, ABI_LT_MOST_BYTES, compute, scale_type);
}

MATH_API(int, cublasLtMatmulPreferenceInit_internal, void *bag, size_t size)
{
    const struct lt_preference p = {.alignment = {256, 256, 256, 256}};
    return init(bag, size, &p, sizeof p);
}

MATH_API(int, cublasLtMatmulPreferenceCreate, void **out)
{
    const int status = lt_preference_new(out);
    return status != ABI_CUBLAS_SUCCESS ? status : cublasLtMatmulPreferenceInit_internal(*out, ABI_LT_MOST_BYTES);
}

MATH_API(int, cublasLtMatrixTransformDescInit_internal, void *bag, size_t size, int scale_type)
{
    const struct lt_transform t = {.scale_type = scale_type};
    return init(bag, size, &t, sizeof t);
}

MATH_API(int, cublasLtMatrixTransformDescCreate, void **out, int scale_type)
{
    const int status = lt_transform_new(out);
    return status != ABI_CUBLAS_SUCCESS ? status
                                        : cublasLtMatrixTransformDescInit_internal(*out, ABI_LT_MOST_BYTES, scale_type);
}

/* --- handles ---------------------------------------------------------------------------------------------------------- */

/* A handle holds nothing; a handle of cuBLAS is taken as well, as documented. */
MATH_API(int, cublasLtCreate, void **handle)
{
    if (handle == NULL)
        return ABI_CUBLAS_INVALID_VALUE;
    *handle = calloc(1, 16);
    return *handle != NULL ? ABI_CUBLAS_SUCCESS : ABI_CUBLAS_ALLOC_FAILED;
}

MATH_API(int, cublasLtDestroy, void *handle)
{
    free(handle);
    return ABI_CUBLAS_SUCCESS;
}

MATH_API(size_t, cublasLtGetVersion, void)
{
    return (size_t)blas_version();
}

MATH_API(size_t, cublasLtGetCudartVersion, void)
{
    return (size_t)blas_version() / 10000 * 1000 + (size_t)blas_version() / 100 % 100 * 10;
}

MATH_API(int, cublasLtGetProperty, int property, int *value)
{
    const int version = blas_version();
    if (value == NULL || property < 0 || property > 2)
        return ABI_CUBLAS_INVALID_VALUE;
    *value = property == 0 ? version / 10000 : property == 1 ? version / 100 % 100 : version % 100;
    return ABI_CUBLAS_SUCCESS;
}

MATH_API(int, cublasLtLoggerSetLevel, int level)
{
    (void)level;
    return ABI_CUBLAS_SUCCESS;
}

MATH_API(int, cublasLtLoggerSetMask, int mask)
{
    (void)mask;
    return ABI_CUBLAS_SUCCESS;
}

MATH_API(int, cublasLtLoggerForceDisable, void)
{
    return ABI_CUBLAS_SUCCESS;
}

/* --- heuristics ------------------------------------------------------------------------------------------------------- */

/* An algorithm is its number; ours is 0 of version 1, so that a zeroed one is told from it. */
#define OUR_ALGORITHM 1u

MATH_API(int, cublasLtMatmulAlgoGetHeuristic, void *handle, void *desc, void *a, void *b, void *c, void *d,
         void *preference, int wanted, struct abi_lt_heuristic *out, int *n)
{
    (void)handle, (void)preference;
    if (desc == NULL || a == NULL || b == NULL || c == NULL || d == NULL || out == NULL || n == NULL || wanted < 1)
        return ABI_CUBLAS_INVALID_VALUE;
    memset(out, 0, sizeof *out);
    out->algo.data[0] = OUR_ALGORITHM;
    out->waves = 1;
    *n = 1;
    return ABI_CUBLAS_SUCCESS;
}

MATH_API(int, cublasLtMatmulAlgoGetIds, void *handle, int compute, int scale, int a, int b, int c, int d, int wanted,
         int *ids, int *n)
{
    (void)handle, (void)compute, (void)scale, (void)a, (void)b, (void)c, (void)d;
    if (n == NULL || (wanted > 0 && ids == NULL))
        return ABI_CUBLAS_INVALID_VALUE;
    if (wanted > 0)
        ids[0] = 0;
    *n = 1;
    return ABI_CUBLAS_SUCCESS;
}

MATH_API(int, cublasLtMatmulAlgoInit, void *handle, int compute, int scale, int a, int b, int c, int d, int id,
         struct abi_lt_algo *algo)
{
    (void)handle, (void)compute, (void)scale, (void)a, (void)b, (void)c, (void)d, (void)id;
    if (algo == NULL)
        return ABI_CUBLAS_INVALID_VALUE;
    memset(algo, 0, sizeof *algo);
    algo->data[0] = OUR_ALGORITHM;
    return ABI_CUBLAS_SUCCESS;
}

MATH_API(int, cublasLtMatmulAlgoCheck, void *handle, void *desc, void *a, void *b, void *c, void *d,
         const struct abi_lt_algo *algo, struct abi_lt_heuristic *out)
{
    int n = 0;
    const int status = algo == NULL ? ABI_CUBLAS_INVALID_VALUE
                                    : cublasLtMatmulAlgoGetHeuristic(handle, desc, a, b, c, d, NULL, 1, out, &n);
    if (status == ABI_CUBLAS_SUCCESS)
        out->algo = *algo;
    return status;
}

/* Configurations of an algorithm: taken, and read as zero: nothing is tiled. */
MATH_API(int, cublasLtMatmulAlgoConfigSetAttribute, struct abi_lt_algo *algo, int number, const void *value,
         size_t bytes)
{
    (void)number, (void)bytes;
    return algo == NULL || value == NULL ? ABI_CUBLAS_INVALID_VALUE : ABI_CUBLAS_SUCCESS;
}

static int zeros(const void *algo, void *value, size_t bytes, size_t *written)
{
    if (algo == NULL || (bytes != 0 && value == NULL))
        return ABI_CUBLAS_INVALID_VALUE;
    if (bytes != 0)
        memset(value, 0, bytes);
    if (written != NULL)
        *written = bytes;
    return ABI_CUBLAS_SUCCESS;
}

MATH_API(int, cublasLtMatmulAlgoConfigGetAttribute, const struct abi_lt_algo *algo, int number, void *value,
         size_t bytes, size_t *written)
{
    (void)number;
    return zeros(algo, value, bytes, written);
}

MATH_API(int, cublasLtMatmulAlgoCapGetAttribute, const struct abi_lt_algo *algo, int number, void *value, size_t bytes,
         size_t *written)
{
    (void)number;
    return zeros(algo, value, bytes, written);
}

MATH_API(int, cublasLtHeuristicsCacheGetCapacity, size_t *capacity)
{
    if (capacity == NULL)
        return ABI_CUBLAS_INVALID_VALUE;
    *capacity = 0;
    return ABI_CUBLAS_SUCCESS;
}

MATH_API(int, cublasLtHeuristicsCacheSetCapacity, size_t capacity)
{
    (void)capacity;
    return ABI_CUBLAS_SUCCESS;
}
