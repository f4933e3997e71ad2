/* SPDX-License-Identifier: Apache-2.0 */
/* dtype.c - names and sizes of element types. */
#include "maquette/cluster.h"

#include "base/check.h"

static const struct {
    const char *name;
    double bytes;
} dtypes[MAQ_DTYPE_COUNT] = {
    [MAQ_FP32] = {"fp32", 4}, [MAQ_TF32] = {"tf32", 4},  [MAQ_FP16] = {"fp16", 2}, [MAQ_BF16] = {"bf16", 2},
    [MAQ_FP8] = {"fp8", 1},   [MAQ_FP6] = {"fp6", 0.75}, [MAQ_FP4] = {"fp4", 0.5}, [MAQ_INT8] = {"int8", 1},
};

const char *maq_dtype_name(enum maq_dtype dtype)
{
    MAQ_ASSERT((unsigned)dtype < MAQ_DTYPE_COUNT);
    return dtypes[dtype].name;
}

double maq_dtype_bytes(enum maq_dtype dtype)
{
    MAQ_ASSERT((unsigned)dtype < MAQ_DTYPE_COUNT);
    return dtypes[dtype].bytes;
}
