/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.h - the documented driver calls that the GPU side needs, found in the real libcuda.so.1 of the machine, and our kernels.
 *
 * The program's own libraries stay as they are: this one takes the place of libnccl.so.2 alone, and works in whatever context
 * the calling thread has current.
 */
#ifndef MAQ_SHIM_GPU_DRIVER_H
#define MAQ_SHIM_GPU_DRIVER_H

#include <cuda.h>
#include <stdbool.h>

/* clang-format off: member, call, its symbol */
#define VG_DRIVER_CALLS(X)                                                                                             \
    X(context, cuCtxGetCurrent, "cuCtxGetCurrent")                                                                     \
    X(load, cuModuleLoadData, "cuModuleLoadData")                                                                      \
    X(find, cuModuleGetFunction, "cuModuleGetFunction")                                                                \
    X(launch, cuLaunchKernel, "cuLaunchKernel")                                                                        \
    X(alloc, cuMemAlloc, "cuMemAlloc_v2")                                                                              \
    X(free, cuMemFree, "cuMemFree_v2")                                                                                 \
    X(to_device, cuMemcpyHtoD, "cuMemcpyHtoD_v2")                                                                      \
    X(to_host, cuMemcpyDtoH, "cuMemcpyDtoH_v2")                                                                        \
    X(copy_async, cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2")                                                           \
    X(to_device_async, cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2")                                                      \
    X(set, cuMemsetD8, "cuMemsetD8_v2")                                                                                \
    X(event_new, cuEventCreate, "cuEventCreate")                                                                       \
    X(event_free, cuEventDestroy, "cuEventDestroy_v2")                                                                 \
    X(event_record, cuEventRecord, "cuEventRecord")                                                                    \
    X(stream_wait, cuStreamWaitEvent, "cuStreamWaitEvent")                                                             \
    X(capturing, cuStreamIsCapturing, "cuStreamIsCapturing")                                                           \
    X(pointer, cuPointerGetAttribute, "cuPointerGetAttribute")
/* clang-format on */

struct vg_driver {
#define VG_DRIVER_MEMBER(member, call, symbol) __typeof__(call) *member;
    VG_DRIVER_CALLS(VG_DRIVER_MEMBER)
#undef VG_DRIVER_MEMBER
};

enum vg_kernel { VG_KERNEL_WAIT, VG_KERNEL_SCALED, VG_KERNEL_NOISE, VG_KERNEL_COUNT };

/* NULL, once and for all, where there is no driver: then every communicator fails with ncclUnhandledCudaError. */
const struct vg_driver *vg_driver(void);
/* A kernel of ours in the current context, which must not be captured when it is asked for the first time there. */
CUfunction vg_driver_kernel(enum vg_kernel kernel);

#endif
