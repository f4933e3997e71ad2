/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_stream.c - streams and events of libcuda.so.1: the runtime's.
 */
#include <string.h>

#include "shim/core/memory.h"
#include "shim/cuda/runtime.h"

VG_EXPORT int cuStreamCreate(void **stream, unsigned flags)
{
    return cudaStreamCreateWithPriority(stream, flags, 0);
}

VG_EXPORT int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority)
{
    return cudaStreamCreateWithPriority(stream, flags, priority);
}

VG_EXPORT int cuStreamDestroy_v2(void *stream)
{
    return cudaStreamDestroy(stream);
}

VG_EXPORT int cuStreamSynchronize(void *stream)
{
    return cudaStreamSynchronize(stream);
}

VG_EXPORT int cuStreamQuery(void *stream)
{
    return cudaStreamQuery(stream);
}

VG_EXPORT int cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    return cudaStreamWaitEvent(stream, event, flags);
}

VG_EXPORT int cuStreamGetPriority(void *stream, int *priority)
{
    return cudaStreamGetPriority(stream, priority);
}

VG_EXPORT int cuStreamGetFlags(void *stream, unsigned *flags)
{
    return cudaStreamGetFlags(stream, flags);
}

VG_EXPORT int cuStreamGetId(void *stream, unsigned long long *id)
{
    return cudaStreamGetId(stream, id);
}

VG_EXPORT int cuStreamGetCtx(void *stream, void **ctx)
{
    struct vg_stream *s = vg_stream_of(stream);
    *ctx = s != NULL ? vg_context((int)s->device) : NULL;
    return s != NULL ? VG_OK : VG_INVALID_HANDLE;
}

static int write_value(void *stream, uint64_t to, const void *value, unsigned bytes)
{
    struct vg_stream *s = vg_stream_of(stream);
    if (s == NULL)
        return VG_INVALID_HANDLE;
    vg_call();
    vg_enqueue(s, vg_set_record(bytes));
    if (vg_mem_touch(vg_at(to), bytes)) {
        memcpy(vg_at(to), value, bytes);
        vg_mem_told(vg_at(to), bytes);
    }
    return VG_OK;
}

VG_EXPORT int cuStreamWriteValue32_v2(void *stream, uint64_t to, uint32_t value, unsigned flags)
{
    (void)flags;
    return write_value(stream, to, &value, sizeof value);
}

VG_EXPORT int cuStreamWriteValue64_v2(void *stream, uint64_t to, uint64_t value, unsigned flags)
{
    (void)flags;
    return write_value(stream, to, &value, sizeof value);
}

VG_EXPORT int cuEventCreate(void **event, unsigned flags)
{
    return cudaEventCreateWithFlags(event, flags);
}

VG_EXPORT int cuEventDestroy_v2(void *event)
{
    return cudaEventDestroy(event);
}

VG_EXPORT int cuEventRecord(void *event, void *stream)
{
    return cudaEventRecordWithFlags(event, stream, 0);
}

VG_EXPORT int cuEventQuery(void *event)
{
    return cudaEventQuery(event);
}

VG_EXPORT int cuEventSynchronize(void *event)
{
    return cudaEventSynchronize(event);
}

VG_EXPORT int cuEventElapsedTime(float *ms, void *from, void *to)
{
    return cudaEventElapsedTime(ms, from, to);
}

VG_EXPORT int cuEventElapsedTime_v2(float *ms, void *from, void *to)
{
    return cudaEventElapsedTime(ms, from, to);
}
