/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.c - a program of the driver API: functions found by name, a module loaded from a cubin (argv[1]), launches with arguments
 * one by one and in one piece, memory that is reserved, created and mapped.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        int e = (int)(call);                                                                                           \
        if (e != 0) {                                                                                                  \
            fprintf(stderr, "line %d: %s: %d\n", __LINE__, #call, e);                                                  \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

int main(int argc, char **argv)
{
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction function;
    CUdeviceptr x;
    int n = 0, major = 0;
    char name[64];
    OK(cuInit(0));
    OK(cuDeviceGetCount(&n));
    OK(cuDeviceGet(&device, 0));
    OK(cuDeviceGetName(name, sizeof name, device));
    OK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
    if (n != 1 || major != 9 || strstr(name, "H100") == NULL)
        return 2;
    OK(cuDevicePrimaryCtxRetain(&context, device));
    OK(cuCtxSetCurrent(context));
    OK(cuModuleLoad(&module, argc > 1 ? argv[1] : ""));
    OK(cuModuleGetFunction(&function, module, "axpy"));
    if (cuModuleGetFunction(&(CUfunction){NULL}, module, "nowhere") != CUDA_ERROR_NOT_FOUND)
        return 3;
    OK(cuMemAlloc(&x, 1 << 22));

    float a = 2;
    CUdeviceptr y = x + (1 << 21);
    int count = 1000;
    void *args[] = {&x, &y, &a, &count};
    OK(cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, NULL, args, NULL));
    struct {
        CUdeviceptr x, y;
        float a;
        int n;
    } all = {x, y, a, count};
    size_t bytes = sizeof all;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &all, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    OK(cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, NULL, NULL, extra));

    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr range;
    size_t granularity;
    OK(cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    OK(cuMemAddressReserve(&range, 64 * granularity, 0, 0, 0));
    OK(cuMemCreate(&handle, 4 * granularity, &properties, 0));
    OK(cuMemMap(range, 4 * granularity, 0, handle, 0));
    OK(cuMemsetD32Async(range, 7, 16, NULL));
    unsigned back[16];
    OK(cuMemcpyDtoH(back, range, sizeof back));
    if (back[15] != 7)
        return 4;
    OK(cuMemUnmap(range, 4 * granularity));
    OK(cuMemRelease(handle));

    void *found = NULL;
    enum cudaDriverEntryPointQueryResult status;
    OK(cudaGetDriverEntryPointByVersion("cuMemMap", &found, 12000, cudaEnableDefault, &status));
    if (found == NULL || status != cudaDriverEntryPointSuccess)
        return 5;
    OK(cudaGetDriverEntryPointByVersion("cuMulticastCreate", &found, 12010, cudaEnableDefault, &status));
    if (found != NULL || status != cudaDriverEntryPointSymbolNotFound)
        return 6;
    const void *table;
    CUuuid id = {{1}};
    if (cuGetExportTable(&table, &id) == CUDA_SUCCESS)
        return 7;
    OK(cuCtxSynchronize());
    return 0;
}
