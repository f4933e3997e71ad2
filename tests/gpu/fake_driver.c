/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_driver.c - a libcuda.so.1 that runs our kernels on the host, for tests of the drop-in libnccl.so.2: memory is the
 * host's, streams have a clock each, and what was done in which order is written down.
 *
 * fake_stream_ns[i] is the clock of stream i (handle (CUstream)(i)), 0 the legacy stream; the test moves it forward as compute
 * would. fake_log holds a letter and the stream for everything: W wait, S scaled, N noise, C copy, E event recorded, F follows.
 */
#pragma GCC visibility push(default)
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/gpu/wait.h"

#define STREAMS 8

int64_t fake_stream_ns[STREAMS];
char fake_log[4096];
unsigned fake_grid[2]; /* blocks and threads of the last wait */
unsigned fake_apart;   /* blocks of waits that would have ended without the first one, or never */

static void note(char what, CUstream stream)
{
    size_t n = strlen(fake_log);
    if (n + 4 < sizeof fake_log)
        snprintf(fake_log + n, sizeof fake_log - n, "%c%u ", what, (unsigned)(uintptr_t)stream);
}

static int64_t *clock_of(CUstream stream)
{
    return &fake_stream_ns[(uintptr_t)stream % STREAMS];
}

CUresult cuCtxGetCurrent(CUcontext *out)
{
    *out = (CUcontext)(uintptr_t)1;
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *out, const void *image)
{
    *out = (CUmodule)(uintptr_t)1;
    return image ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name)
{
    (void)module;
    *out = (CUfunction)(uintptr_t)(unsigned char)name[strlen(name) - 1]; /* wait, scaled, noise */
    return CUDA_SUCCESS;
}

/* As wait.cu, its blocks one after another. */
static void wait_kernel(struct vg_wait_state *s, unsigned blocks, unsigned threads, CUstream stream)
{
    int64_t end = *clock_of(stream);
    for (unsigned b = 0; b < blocks; b++) {
        uint32_t turn = s->turn;
        if (s->n && b == 0) {
            s->end_ns = end = vg_wait_begin(s, turn, end);
            s->told = turn + 1;
        } else if (s->n) {
            fake_apart += s->told != turn + 1 || s->end_ns != end;
        }
        if (s->left++ == blocks - 1) {
            s->left = 0;
            s->turn = turn + 1;
        }
    }
    fake_apart += s->left != 0;
    fake_grid[0] = blocks;
    fake_grid[1] = threads;
    *clock_of(stream) = end;
    note('W', stream);
}

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, CUstream stream, void **args, void **extra)
{
    (void)(gy + gz + by + bz + shared);
    (void)extra;
    CUdeviceptr out = *(CUdeviceptr *)args[0];
    if ((uintptr_t)f == 't') {
        wait_kernel((struct vg_wait_state *)(uintptr_t)out, gx, bx, stream);
    } else if ((uintptr_t)f == 'd') {
        const float *in = (const float *)(uintptr_t) * (CUdeviceptr *)args[1];
        for (uint64_t i = 0; i < *(uint64_t *)args[2]; i++)
            ((float *)(uintptr_t)out)[i] = in[i] * *(float *)args[4];
        note('S', stream);
    } else {
        for (uint64_t i = 0; i < *(uint64_t *)args[1]; i++)
            ((float *)(uintptr_t)out)[i] = *(float *)args[3];
        note('N', stream);
    }
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes)
{
    *out = (CUdeviceptr)(uintptr_t)malloc(bytes);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemFree_v2(CUdeviceptr p)
{
    free((void *)(uintptr_t)p);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
    memcpy((void *)(uintptr_t)to, from, bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    note('C', stream);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    (void)stream;
    return cuMemcpyHtoD_v2(to, from, bytes);
}

CUresult cuMemsetD8_v2(CUdeviceptr at, unsigned char value, size_t bytes)
{
    memset((void *)(uintptr_t)at, value, bytes);
    return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *out, unsigned flags)
{
    (void)flags;
    int64_t *at = malloc(sizeof *at);
    *out = (CUevent)(void *)at;
    return at ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuEventDestroy_v2(CUevent event)
{
    free(event);
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    *(int64_t *)(void *)event = *clock_of(stream);
    note('E', stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    int64_t at = *(int64_t *)(void *)event;
    (void)flags;
    if (at > *clock_of(stream))
        *clock_of(stream) = at;
    note('F', stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *out)
{
    (void)stream;
    *out = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *out, CUpointer_attribute what, CUdeviceptr at)
{
    switch (what) {
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)out = at;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)out = 1 << 20;
        break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(CUmemorytype *)out = CU_MEMORYTYPE_DEVICE;
        break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)out = 0;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}
