/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cublas.c - handles of cuBLAS and what is set on them.
 *
 * A handle is created without a kernel and without device memory: what the library takes for itself on a device (its
 * context, a workspace that the program did not give) is no memory of the program, and an allocator of the program does
 * not see it. The math mode decides what single-precision products are fed with (gemm.c).
 */
#include <stdlib.h>
#include <string.h>

#include "shim/math/blas.h"

#define MAGIC 0x626c61732d6d6171u

/* Of cuda/: what the runtime says that it is. */
int cudaRuntimeGetVersion(int *version);

struct blas *blas_of(void *handle)
{
    struct blas *b = (struct blas *)handle;
    return b != NULL && b->magic == MAGIC ? b : NULL;
}

bool blas_is_zero(const void *scalar, size_t bytes, bool on_device)
{
    static const unsigned char zero[16] = {0};
    struct vg_alloc a;
    if (scalar == NULL)
        return true;
    if (on_device && !(vg_mem_find(scalar, &a) && a.backed))
        return false;
    return memcmp(scalar, zero, bytes < sizeof zero ? bytes : sizeof zero) == 0;
}

int blas_version(void)
{
    int cuda = 0;
    cudaRuntimeGetVersion(&cuda); /* 1000 * major + 10 * minor */
    return cuda / 1000 * 10000 + cuda % 1000 / 10 * 100;
}

MATH_API(int, cublasCreate_v2, void **handle)
{
    if (handle == NULL)
        return ABI_CUBLAS_INVALID_VALUE;
    struct blas *b = calloc(1, sizeof *b);
    if (b == NULL)
        return ABI_CUBLAS_ALLOC_FAILED;
    b->magic = MAGIC;
    *handle = b;
    return ABI_CUBLAS_SUCCESS;
}

MATH_API(int, cublasDestroy_v2, void *handle)
{
    struct blas *b = blas_of(handle);
    if (b == NULL)
        return ABI_CUBLAS_NOT_INITIALIZED;
    b->magic = 0;
    free(b);
    return ABI_CUBLAS_SUCCESS;
}

MATH_API(int, cublasGetVersion_v2, void *handle, int *version)
{
    (void)handle;
    if (version == NULL)
        return ABI_CUBLAS_INVALID_VALUE;
    *version = blas_version();
    return ABI_CUBLAS_SUCCESS;
}

/* libraryPropertyType: 0 major, 1 minor, 2 patch. */
MATH_API(int, cublasGetProperty, int property, int *value)
{
    const int version = blas_version();
    if (value == NULL || property < 0 || property > 2)
        return ABI_CUBLAS_INVALID_VALUE;
    *value = property == 0 ? version / 10000 : property == 1 ? version / 100 % 100 : version % 100;
    return ABI_CUBLAS_SUCCESS;
}

MATH_API(size_t, cublasGetCudartVersion, void)
{
    int cuda = 0;
    cudaRuntimeGetVersion(&cuda);
    return (size_t)cuda;
}

MATH_API(int, cublasSetStream_v2, void *handle, void *stream)
{
    struct blas *b = blas_of(handle);
    if (b == NULL)
        return ABI_CUBLAS_NOT_INITIALIZED;
    b->stream = stream;
    /* As documented: setting a stream gives the workspace back to the library. */
    b->workspace = NULL;
    b->workspace_bytes = 0;
    return ABI_CUBLAS_SUCCESS;
}

MATH_API(int, cublasSetWorkspace_v2, void *handle, void *workspace, size_t bytes)
{
    struct blas *b = blas_of(handle);
    if (b == NULL)
        return ABI_CUBLAS_NOT_INITIALIZED;
    if (((uintptr_t)workspace & 255) != 0)
        return ABI_CUBLAS_INVALID_VALUE;
    b->workspace = workspace;
    b->workspace_bytes = bytes;
    return ABI_CUBLAS_SUCCESS;
}

/* A setter and a getter of one member. */
#define PROPERTY(set, get, member, type)                                                                               \
    MATH_API(int, set, void *handle, type value)                                                                       \
    {                                                                                                                  \
        struct blas *b = blas_of(handle);                                                                              \
        if (b == NULL)                                                                                                 \
            return ABI_CUBLAS_NOT_INITIALIZED;                                                                         \
        b->member = value;                                                                                             \
        return ABI_CUBLAS_SUCCESS;                                                                                     \
    }                                                                                                                  \
    GETTER(get, member, type)
#define GETTER(get, member, type)                                                                                      \
    MATH_API(int, get, void *handle, type *value)                                                                      \
    {                                                                                                                  \
        struct blas *b = blas_of(handle);                                                                              \
        if (b == NULL)                                                                                                 \
            return ABI_CUBLAS_NOT_INITIALIZED;                                                                         \
        if (value == NULL)                                                                                             \
            return ABI_CUBLAS_INVALID_VALUE;                                                                           \
        *value = b->member;                                                                                            \
        return ABI_CUBLAS_SUCCESS;                                                                                     \
    }

typedef void *handle_t;
GETTER(cublasGetStream_v2, stream, handle_t)
PROPERTY(cublasSetPointerMode_v2, cublasGetPointerMode_v2, pointer_mode, int)
PROPERTY(cublasSetMathMode, cublasGetMathMode, math_mode, int)
PROPERTY(cublasSetAtomicsMode, cublasGetAtomicsMode, atomics_mode, int)
PROPERTY(cublasSetSmCountTarget, cublasGetSmCountTarget, sm_target, int)
PROPERTY(cublasSetEmulationStrategy, cublasGetEmulationStrategy, emulation, int)

/* Both libraries' words for a status. */
static const char *status_name(int status)
{
    switch (status) {
    case ABI_CUBLAS_SUCCESS:
        return "CUBLAS_STATUS_SUCCESS";
    case ABI_CUBLAS_NOT_INITIALIZED:
        return "CUBLAS_STATUS_NOT_INITIALIZED";
    case ABI_CUBLAS_ALLOC_FAILED:
        return "CUBLAS_STATUS_ALLOC_FAILED";
    case ABI_CUBLAS_INVALID_VALUE:
        return "CUBLAS_STATUS_INVALID_VALUE";
    case ABI_CUBLAS_ARCH_MISMATCH:
        return "CUBLAS_STATUS_ARCH_MISMATCH";
    case ABI_CUBLAS_MAPPING_ERROR:
        return "CUBLAS_STATUS_MAPPING_ERROR";
    case ABI_CUBLAS_EXECUTION_FAILED:
        return "CUBLAS_STATUS_EXECUTION_FAILED";
    case ABI_CUBLAS_INTERNAL_ERROR:
        return "CUBLAS_STATUS_INTERNAL_ERROR";
    case ABI_CUBLAS_NOT_SUPPORTED:
        return "CUBLAS_STATUS_NOT_SUPPORTED";
    case ABI_CUBLAS_LICENSE_ERROR:
        return "CUBLAS_STATUS_LICENSE_ERROR";
    default:
        return "unknown status of cuBLAS";
    }
}

#define STATUS_TEXT(name)                                                                                              \
    MATH_API(const char *, name, int status)                                                                           \
    {                                                                                                                  \
        return status_name(status);                                                                                    \
    }
STATUS_TEXT(cublasGetStatusName)
STATUS_TEXT(cublasGetStatusString)
STATUS_TEXT(cublasLtGetStatusName)
STATUS_TEXT(cublasLtGetStatusString)

/* Nothing is logged. */
MATH_API(int, cublasLoggerConfigure, int on, int to_stdout, int to_stderr, const char *file)
{
    (void)on, (void)to_stdout, (void)to_stderr, (void)file;
    return ABI_CUBLAS_SUCCESS;
}

MATH_API(int, cublasSetLoggerCallback, void *callback)
{
    (void)callback;
    return ABI_CUBLAS_SUCCESS;
}
