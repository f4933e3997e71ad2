/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perthread.c - what programs call that were compiled with --default-stream per-thread: the same calls under names that end
 * in _ptsz (with a stream) or _ptds (without), where no stream means the thread's own.
 */
#include "shim/cuda/cuda.h"

#define OWN ((void *)2)
#define SELF(stream) ((stream) != NULL ? (stream) : OWN)

/* name_ptsz(arguments, stream) */
#define PER_THREAD(name, types, arguments)                                                                             \
    int name types;                                                                                                    \
    VG_EXPORT int name##_ptsz types                                                                                    \
    {                                                                                                                  \
        return name arguments;                                                                                         \
    }

PER_THREAD(cudaMemcpyAsync, (void *to, const void *from, size_t n, int kind, void *s), (to, from, n, kind, SELF(s)))
PER_THREAD(cudaMemcpyPeerAsync, (void *to, int a, const void *from, int b, size_t n, void *s),
           (to, a, from, b, n, SELF(s)))
PER_THREAD(cudaMemcpy2DAsync, (void *to, size_t tp, const void *from, size_t fp, size_t w, size_t h, int kind, void *s),
           (to, tp, from, fp, w, h, kind, SELF(s)))
PER_THREAD(cudaMemcpy3DAsync, (const struct vg_copy_3d *p, void *s), (p, SELF(s)))
PER_THREAD(cudaMemsetAsync, (void *to, int value, size_t n, void *s), (to, value, n, SELF(s)))
PER_THREAD(cudaStreamQuery, (void *s), (SELF(s)))
PER_THREAD(cudaStreamSynchronize, (void *s), (SELF(s)))
PER_THREAD(cudaStreamWaitEvent, (void *s, void *e, unsigned flags), (SELF(s), e, flags))
PER_THREAD(cudaStreamGetPriority, (void *s, int *out), (SELF(s), out))
PER_THREAD(cudaStreamGetFlags, (void *s, unsigned *out), (SELF(s), out))
PER_THREAD(cudaStreamGetId, (void *s, unsigned long long *out), (SELF(s), out))
PER_THREAD(cudaStreamIsCapturing, (void *s, int *out), (SELF(s), out))
PER_THREAD(cudaStreamBeginCapture, (void *s, int mode), (SELF(s), mode))
PER_THREAD(cudaStreamEndCapture, (void *s, void **graph), (SELF(s), graph))
PER_THREAD(cudaEventRecord, (void *e, void *s), (e, SELF(s)))
PER_THREAD(cudaEventRecordWithFlags, (void *e, void *s, unsigned flags), (e, SELF(s), flags))
PER_THREAD(cudaLaunchKernel,
           (const void *f, struct vg_dim3 grid, struct vg_dim3 block, void **args, size_t shared, void *s),
           (f, grid, block, args, shared, SELF(s)))
PER_THREAD(cudaLaunchCooperativeKernel,
           (const void *f, struct vg_dim3 grid, struct vg_dim3 block, void **args, size_t shared, void *s),
           (f, grid, block, args, shared, SELF(s)))
PER_THREAD(__cudaLaunchKernel,
           (void *f, struct vg_dim3 grid, struct vg_dim3 block, void **args, size_t shared, void *s),
           (f, grid, block, args, shared, SELF(s)))
PER_THREAD(cudaLaunchHostFunc, (void *s, void (*f)(void *), void *data), (SELF(s), f, data))
PER_THREAD(cudaStreamAddCallback, (void *s, void (*f)(void *, int, void *), void *data, unsigned flags),
           (SELF(s), f, data, flags))
PER_THREAD(cudaMallocAsync, (void **p, size_t n, void *s), (p, n, SELF(s)))
PER_THREAD(cudaFreeAsync, (void *p, void *s), (p, SELF(s)))
PER_THREAD(cudaGraphLaunch, (void *exec, void *s), (exec, SELF(s)))
PER_THREAD(cudaGraphUpload, (void *exec, void *s), (exec, SELF(s)))

VG_EXPORT int cudaLaunchKernelExC_ptsz(const struct vg_launch_config *config, const void *function, void **args)
{
    struct vg_launch_config own = *config;
    own.stream = SELF(own.stream);
    struct vg_launch l = {.kernel = vg_kernel_of((void *)function),
                          .grid = own.grid,
                          .block = own.block,
                          .shared = own.shared,
                          .args = args};
    return vg_result(vg_launch(&l, own.stream));
}

PER_THREAD(cudaMemcpyToSymbolAsync, (const void *to, const void *from, size_t n, size_t offset, int kind, void *s),
           (to, from, n, offset, kind, SELF(s)))
PER_THREAD(cudaMemcpyFromSymbolAsync, (void *to, const void *from, size_t n, size_t offset, int kind, void *s),
           (to, from, n, offset, kind, SELF(s)))
PER_THREAD(cudaMemset2DAsync, (void *to, size_t pitch, int value, size_t w, size_t h, void *s),
           (to, pitch, value, w, h, SELF(s)))

VG_EXPORT int cudaMemcpyToSymbol_ptds(const void *to, const void *from, size_t n, size_t offset, int kind)
{
    return cudaMemcpyToSymbolAsync(to, from, n, offset, kind, OWN);
}

VG_EXPORT int cudaMemcpyFromSymbol_ptds(void *to, const void *from, size_t n, size_t offset, int kind)
{
    return cudaMemcpyFromSymbolAsync(to, from, n, offset, kind, OWN);
}

VG_EXPORT int cudaMemset2D_ptds(void *to, size_t pitch, int value, size_t w, size_t h)
{
    return cudaMemset2DAsync(to, pitch, value, w, h, OWN);
}

VG_EXPORT int cudaMemcpy_ptds(void *to, const void *from, size_t bytes, int kind)
{
    return vg_result(vg_copy(to, from, bytes, kind, OWN, true));
}

VG_EXPORT int cudaMemset_ptds(void *to, int value, size_t bytes)
{
    return vg_result(vg_set(to, (unsigned)value, 1, bytes, OWN, true));
}
