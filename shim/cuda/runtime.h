/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime.h - what the driver's functions (driver*.c) are made of: calls of the runtime with the same arguments and numbers.
 */
#ifndef MAQ_SHIM_RUNTIME_H
#define MAQ_SHIM_RUNTIME_H

#include "shim/cuda/cuda.h"

int cudaGetDeviceCount(int *);
int cudaDriverGetVersion(int *);
int cudaDeviceGetPCIBusId(char *, int, int);
int cudaDeviceGetByPCIBusId(int *, const char *);
int cudaDeviceCanAccessPeer(int *, int, int);
int cudaDeviceGetStreamPriorityRange(int *, int *);
int cudaDeviceGetLimit(size_t *, int);
int cudaDeviceSetLimit(int, size_t);
int cudaDeviceSynchronize(void);
int cudaLaunchHostFunc(void *, void (*)(void *), void *);
int cudaMalloc(void **, size_t);
int cudaMallocManaged(void **, size_t, unsigned);
int cudaMallocHost(void **, size_t);
int cudaMallocAsync(void **, size_t, void *);
int cudaFree(void *);
int cudaFreeAsync(void *, void *);
int cudaMemGetInfo(size_t *, size_t *);
int cudaHostRegister(void *, size_t, unsigned);
int cudaHostUnregister(void *);
int cudaStreamCreateWithPriority(void **, unsigned, int);
int cudaStreamDestroy(void *);
int cudaStreamSynchronize(void *);
int cudaStreamQuery(void *);
int cudaStreamWaitEvent(void *, void *, unsigned);
int cudaStreamGetPriority(void *, int *);
int cudaStreamGetFlags(void *, unsigned *);
int cudaStreamGetId(void *, unsigned long long *);
int cudaEventCreateWithFlags(void **, unsigned);
int cudaEventDestroy(void *);
int cudaEventRecordWithFlags(void *, void *, unsigned);
int cudaEventQuery(void *);
int cudaEventSynchronize(void *);
int cudaEventElapsedTime(float *, void *, void *);
int cudaIpcGetMemHandle(struct vg_ipc *, void *);

/* driver.c: the handle of a device's context. */
void *vg_context(int device);

/* An address of the driver's functions, which is a number. */
static inline void *vg_at(uint64_t p)
{
    return (void *)(uintptr_t)p; // NOLINT(performance-no-int-to-ptr)
}

#endif
