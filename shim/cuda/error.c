/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error.c - errors of the runtime: their names, and the last one of each thread.
 */
#include "shim/cuda/cuda.h"

static const struct error {
    int number;
    const char *name, *text;
} errors[] = {
    {VG_OK, "cudaSuccess", "no error"},
    {VG_INVALID_VALUE, "cudaErrorInvalidValue", "invalid argument"},
    {VG_OUT_OF_MEMORY, "cudaErrorMemoryAllocation", "out of memory"},
    {VG_NOT_INITIALIZED, "cudaErrorInitializationError", "initialization error"},
    {VG_INVALID_CONFIGURATION, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {VG_INVALID_SYMBOL, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {VG_INVALID_DEVICE_FUNCTION, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {VG_NO_DEVICE, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {VG_INVALID_DEVICE, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {VG_INVALID_IMAGE, "cudaErrorInvalidKernelImage", "device kernel image is invalid"},
    {VG_INVALID_CONTEXT, "cudaErrorDeviceUninitialized", "invalid device context"},
    {VG_FILE_NOT_FOUND, "cudaErrorFileNotFound", "file not found"},
    {VG_INVALID_HANDLE, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {VG_NOT_FOUND, "cudaErrorSymbolNotFound", "named symbol not found"},
    {VG_NOT_READY, "cudaErrorNotReady", "device not ready"},
    {VG_PEER_ACCESS_ALREADY_ENABLED, "cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled"},
    {VG_PEER_ACCESS_NOT_ENABLED, "cudaErrorPeerAccessNotEnabled", "peer access has not been enabled"},
    {VG_ALREADY_REGISTERED, "cudaErrorHostMemoryAlreadyRegistered", "host memory is already registered"},
    {VG_NOT_REGISTERED, "cudaErrorHostMemoryNotRegistered", "host memory is not registered"},
    {VG_LAUNCH_FAILURE, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {VG_NOT_SUPPORTED, "cudaErrorNotSupported", "operation not supported"},
    {VG_CAPTURE_UNSUPPORTED, "cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"},
    {VG_CAPTURE_INVALIDATED, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {VG_CAPTURE_UNMATCHED, "cudaErrorStreamCaptureUnmatched", "capture was not initiated in this stream"},
    {VG_CAPTURE_UNJOINED, "cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"},
    {VG_CAPTURE_IMPLICIT, "cudaErrorStreamCaptureImplicit", "dependency on an uncaptured legacy stream"},
    {VG_GRAPH_UPDATE_FAILURE, "cudaErrorGraphExecUpdateFailure", "the graph update was not performed"},
    {VG_UNKNOWN, "cudaErrorUnknown", "unknown error"},
};

static const struct error *find(int number)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].number == number)
            return &errors[i];
    return NULL;
}

const char *vg_error_name(int number)
{
    const struct error *e = find(number);
    return e != NULL ? e->name : "unrecognized error code";
}

const char *vg_error_text(int number)
{
    const struct error *e = find(number);
    return e != NULL ? e->text : "unrecognized error code";
}

static _Thread_local int last;

int vg_result(int error)
{
    if (error != VG_OK)
        last = error;
    return error;
}

int vg_last_error(bool clear)
{
    int error = last;
    if (clear)
        last = VG_OK;
    return error;
}

VG_EXPORT int cudaGetLastError(void)
{
    return vg_last_error(true);
}

VG_EXPORT int cudaPeekAtLastError(void)
{
    return vg_last_error(false);
}

VG_EXPORT const char *cudaGetErrorName(int error)
{
    return vg_error_name(error);
}

VG_EXPORT const char *cudaGetErrorString(int error)
{
    return vg_error_text(error);
}

VG_EXPORT int cuGetErrorName(int error, const char **name)
{
    *name = find(error) != NULL ? vg_error_name(error) : NULL;
    return find(error) != NULL ? VG_OK : VG_INVALID_VALUE;
}

VG_EXPORT int cuGetErrorString(int error, const char **text)
{
    *text = find(error) != NULL ? vg_error_text(error) : NULL;
    return find(error) != NULL ? VG_OK : VG_INVALID_VALUE;
}
