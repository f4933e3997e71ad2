/* SPDX-License-Identifier: Apache-2.0 */
/*
 * abi_cuda.c - holds shim/abi/cuda.h against the toolkit's own headers; it is compiled and never run
 * (tests/test_shim_abi.py).
 */
#include <cuda.h>
#include <cuda_runtime_api.h>

#include "shim/abi/cuda.h"

#define SAME(ours, theirs) _Static_assert((long)(ours) == (long)(theirs), #ours " is " #theirs)
#define SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), #ours " has the size of " #theirs)
#define AT(ours, a, theirs, b) _Static_assert(offsetof(ours, a) == offsetof(theirs, b), #ours "." #a " is at " #b)

SAME(VG_INVALID_VALUE, cudaErrorInvalidValue);
SAME(VG_OUT_OF_MEMORY, cudaErrorMemoryAllocation);
SAME(VG_NOT_INITIALIZED, cudaErrorInitializationError);
SAME(VG_INVALID_CONFIGURATION, cudaErrorInvalidConfiguration);
SAME(VG_INVALID_SYMBOL, cudaErrorInvalidSymbol);
SAME(VG_INVALID_DEVICE_FUNCTION, cudaErrorInvalidDeviceFunction);
SAME(VG_NO_DEVICE, cudaErrorNoDevice);
SAME(VG_INVALID_DEVICE, cudaErrorInvalidDevice);
SAME(VG_INVALID_IMAGE, cudaErrorInvalidKernelImage);
SAME(VG_FILE_NOT_FOUND, cudaErrorFileNotFound);
SAME(VG_INVALID_HANDLE, cudaErrorInvalidResourceHandle);
SAME(VG_NOT_FOUND, cudaErrorSymbolNotFound);
SAME(VG_NOT_READY, cudaErrorNotReady);
SAME(VG_PEER_ACCESS_ALREADY_ENABLED, cudaErrorPeerAccessAlreadyEnabled);
SAME(VG_PEER_ACCESS_NOT_ENABLED, cudaErrorPeerAccessNotEnabled);
SAME(VG_ALREADY_REGISTERED, cudaErrorHostMemoryAlreadyRegistered);
SAME(VG_NOT_REGISTERED, cudaErrorHostMemoryNotRegistered);
SAME(VG_LAUNCH_FAILURE, cudaErrorLaunchFailure);
SAME(VG_NOT_SUPPORTED, cudaErrorNotSupported);
SAME(VG_CAPTURE_UNSUPPORTED, cudaErrorStreamCaptureUnsupported);
SAME(VG_CAPTURE_INVALIDATED, cudaErrorStreamCaptureInvalidated);
SAME(VG_CAPTURE_UNMATCHED, cudaErrorStreamCaptureUnmatched);
SAME(VG_CAPTURE_UNJOINED, cudaErrorStreamCaptureUnjoined);
SAME(VG_CAPTURE_IMPLICIT, cudaErrorStreamCaptureImplicit);
SAME(VG_GRAPH_UPDATE_FAILURE, cudaErrorGraphExecUpdateFailure);
/* The driver's numbers are the runtime's. */
SAME(VG_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(VG_INVALID_HANDLE, CUDA_ERROR_INVALID_HANDLE);
SAME(VG_INVALID_CONTEXT, CUDA_ERROR_INVALID_CONTEXT);
SAME(VG_NOT_FOUND, CUDA_ERROR_NOT_FOUND);
SAME(VG_NOT_READY, CUDA_ERROR_NOT_READY);
SAME(VG_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED);

SAME(VG_COPY_D2H, cudaMemcpyDeviceToHost);
SAME(VG_COPY_DEFAULT, cudaMemcpyDefault);
SAME(VG_MEMORY_MANAGED, cudaMemoryTypeManaged);
SAME(VG_ATTRIBUTE_COOPERATIVE, cudaLaunchAttributeCooperative);
SAME(VG_ATTRIBUTE_CLUSTER, cudaLaunchAttributeClusterDimension);

SIZE(struct vg_dim3, dim3);
#if CUDART_VERSION >= 13000
SIZE(struct vg_pointer_attributes, struct cudaPointerAttributes);
#else
SAME(offsetof(struct vg_pointer_attributes, reserved), sizeof(struct cudaPointerAttributes));
#endif
AT(struct vg_pointer_attributes, on_host, struct cudaPointerAttributes, hostPointer);
SIZE(struct vg_func_attributes, struct cudaFuncAttributes);
AT(struct vg_func_attributes, max_dynamic_shared, struct cudaFuncAttributes, maxDynamicSharedSizeBytes);
AT(struct vg_func_attributes, non_portable_cluster, struct cudaFuncAttributes, nonPortableClusterSizeAllowed);
SIZE(struct vg_location, struct cudaMemLocation);
SIZE(struct vg_access, struct cudaMemAccessDesc);
SIZE(struct vg_launch_attribute, cudaLaunchAttribute);
AT(struct vg_launch_attribute, value, cudaLaunchAttribute, val);
SIZE(struct vg_launch_config, cudaLaunchConfig_t);
AT(struct vg_launch_config, stream, cudaLaunchConfig_t, stream);
SIZE(struct vg_driver_config, CUlaunchConfig);
AT(struct vg_driver_config, stream, CUlaunchConfig, hStream);
AT(struct vg_driver_config, n_attributes, CUlaunchConfig, numAttrs);
SIZE(struct vg_kernel_node, struct cudaKernelNodeParams);
AT(struct vg_kernel_node, args, struct cudaKernelNodeParams, kernelParams);
SIZE(struct vg_memset_node, struct cudaMemsetParams);
SIZE(struct vg_host_node, struct cudaHostNodeParams);
SIZE(struct vg_pitched, struct cudaPitchedPtr);
SIZE(struct vg_copy_3d, struct cudaMemcpy3DParms);
AT(struct vg_copy_3d, to, struct cudaMemcpy3DParms, dstPtr);
AT(struct vg_copy_3d, kind, struct cudaMemcpy3DParms, kind);
SIZE(struct vg_copy_2d, CUDA_MEMCPY2D);
AT(struct vg_copy_2d, to_pitch, CUDA_MEMCPY2D, dstPitch);
SIZE(struct vg_instantiate, cudaGraphInstantiateParams);
AT(struct vg_instantiate, result, cudaGraphInstantiateParams, result_out);
SIZE(struct vg_update_result, cudaGraphExecUpdateResultInfo);
SIZE(struct vg_ipc, cudaIpcMemHandle_t);

/* The struct of device properties, member by member where their names or places could have moved. */
#if CUDART_VERSION >= 13000
#define PROP struct vg_prop_13
#else
#define PROP struct vg_prop_12
AT(PROP, clock_khz, struct cudaDeviceProp, clockRate);
AT(PROP, memory_khz, struct cudaDeviceProp, memoryClockRate);
AT(PROP, cooperative_multi, struct cudaDeviceProp, cooperativeMultiDeviceLaunch);
#endif
SIZE(PROP, struct cudaDeviceProp);
AT(PROP, uuid, struct cudaDeviceProp, uuid);
AT(PROP, memory, struct cudaDeviceProp, totalGlobalMem);
AT(PROP, shared_per_block, struct cudaDeviceProp, sharedMemPerBlock);
AT(PROP, warp, struct cudaDeviceProp, warpSize);
AT(PROP, grid, struct cudaDeviceProp, maxGridSize);
AT(PROP, major, struct cudaDeviceProp, major);
AT(PROP, sms, struct cudaDeviceProp, multiProcessorCount);
AT(PROP, map_host, struct cudaDeviceProp, canMapHostMemory);
AT(PROP, surfaces, struct cudaDeviceProp, maxSurface1D);
AT(PROP, ecc, struct cudaDeviceProp, ECCEnabled);
AT(PROP, pci_bus, struct cudaDeviceProp, pciBusID);
AT(PROP, unified, struct cudaDeviceProp, unifiedAddressing);
AT(PROP, l2, struct cudaDeviceProp, l2CacheSize);
AT(PROP, threads_per_sm, struct cudaDeviceProp, maxThreadsPerMultiProcessor);
AT(PROP, shared_per_sm, struct cudaDeviceProp, sharedMemPerMultiprocessor);
AT(PROP, registers_per_sm, struct cudaDeviceProp, regsPerMultiprocessor);
AT(PROP, managed, struct cudaDeviceProp, managedMemory);
AT(PROP, cooperative, struct cudaDeviceProp, cooperativeLaunch);
AT(PROP, shared_optin, struct cudaDeviceProp, sharedMemPerBlockOptin);
AT(PROP, blocks_per_sm, struct cudaDeviceProp, maxBlocksPerMultiProcessor);
AT(PROP, shared_reserved, struct cudaDeviceProp, reservedSharedMemPerBlock);
AT(PROP, pools, struct cudaDeviceProp, memoryPoolsSupported);
AT(PROP, pool_handles, struct cudaDeviceProp, memoryPoolSupportedHandleTypes);
AT(PROP, clusters, struct cudaDeviceProp, clusterLaunch);
AT(PROP, unified_functions, struct cudaDeviceProp, unifiedFunctionPointers);

SAME(VG_ATTR_THREADS_PER_BLOCK, cudaDevAttrMaxThreadsPerBlock);
SAME(VG_ATTR_SHARED_PER_BLOCK, cudaDevAttrMaxSharedMemoryPerBlock);
SAME(VG_ATTR_CONSTANT, cudaDevAttrTotalConstantMemory);
SAME(VG_ATTR_PITCH, cudaDevAttrMaxPitch);
SAME(VG_ATTR_CLOCK_KHZ, cudaDevAttrClockRate);
SAME(VG_ATTR_TEXTURE_ALIGNMENT, cudaDevAttrTextureAlignment);
SAME(VG_ATTR_SMS, cudaDevAttrMultiProcessorCount);
SAME(VG_ATTR_MAP_HOST, cudaDevAttrCanMapHostMemory);
SAME(VG_ATTR_CONCURRENT_KERNELS, cudaDevAttrConcurrentKernels);
SAME(VG_ATTR_ECC, cudaDevAttrEccEnabled);
SAME(VG_ATTR_PCI_BUS, cudaDevAttrPciBusId);
SAME(VG_ATTR_MEMORY_KHZ, cudaDevAttrMemoryClockRate);
SAME(VG_ATTR_BUS_BITS, cudaDevAttrGlobalMemoryBusWidth);
SAME(VG_ATTR_L2, cudaDevAttrL2CacheSize);
SAME(VG_ATTR_THREADS_PER_SM, cudaDevAttrMaxThreadsPerMultiProcessor);
SAME(VG_ATTR_COPY_ENGINES, cudaDevAttrAsyncEngineCount);
SAME(VG_ATTR_UNIFIED, cudaDevAttrUnifiedAddressing);
SAME(VG_ATTR_TEXTURE_PITCH, cudaDevAttrTexturePitchAlignment);
SAME(VG_ATTR_MAJOR, cudaDevAttrComputeCapabilityMajor);
SAME(VG_ATTR_PRIORITIES, cudaDevAttrStreamPrioritiesSupported);
SAME(VG_ATTR_L1_GLOBAL, cudaDevAttrGlobalL1CacheSupported);
SAME(VG_ATTR_SHARED_PER_SM, cudaDevAttrMaxSharedMemoryPerMultiprocessor);
SAME(VG_ATTR_REGISTERS_PER_SM, cudaDevAttrMaxRegistersPerMultiprocessor);
SAME(VG_ATTR_MANAGED, cudaDevAttrManagedMemory);
SAME(VG_ATTR_SINGLE_TO_DOUBLE, cudaDevAttrSingleToDoublePrecisionPerfRatio);
SAME(VG_ATTR_PAGEABLE, cudaDevAttrPageableMemoryAccess);
SAME(VG_ATTR_CONCURRENT_MANAGED, cudaDevAttrConcurrentManagedAccess);
SAME(VG_ATTR_PREEMPTION, cudaDevAttrComputePreemptionSupported);
SAME(VG_ATTR_REGISTERED_HOST_POINTER, cudaDevAttrCanUseHostPointerForRegisteredMem);
SAME(VG_ATTR_COOPERATIVE, cudaDevAttrCooperativeLaunch);
SAME(VG_ATTR_SHARED_OPTIN, cudaDevAttrMaxSharedMemoryPerBlockOptin);
SAME(VG_ATTR_HOST_REGISTER, cudaDevAttrHostRegisterSupported);
SAME(VG_ATTR_VMM, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
SAME(VG_ATTR_VMM_FD_HANDLES, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
SAME(VG_ATTR_BLOCKS_PER_SM, cudaDevAttrMaxBlocksPerMultiprocessor);
SAME(VG_ATTR_L2_PERSISTING, cudaDevAttrMaxPersistingL2CacheSize);
SAME(VG_ATTR_POLICY_WINDOW, cudaDevAttrMaxAccessPolicyWindowSize);
SAME(VG_ATTR_SHARED_RESERVED, cudaDevAttrReservedSharedMemoryPerBlock);
SAME(VG_ATTR_POOLS, cudaDevAttrMemoryPoolsSupported);
SAME(VG_ATTR_POOL_HANDLES, cudaDevAttrMemoryPoolSupportedHandleTypes);
SAME(VG_ATTR_CLUSTERS, cudaDevAttrClusterLaunch);
SAME(VG_ATTR_IPC_EVENTS, cudaDevAttrIpcEventSupport);
SAME(VG_ATTR_UNIFIED_FUNCTIONS, CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS);
