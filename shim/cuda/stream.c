/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.c - the runtime's calls for streams and events, and for what waits for them.
 */
#include "shim/cuda/cuda.h"

#include <stdlib.h>

/* --- streams ---------------------------------------------------------------------------------------------------------------- */

VG_EXPORT int cudaStreamCreateWithPriority(void **stream, unsigned flags, int priority)
{
    vg_call();
    *stream = vg_stream_new(flags, priority > 0 ? 0 : priority < -5 ? -5 : priority);
    return vg_result(*stream != NULL ? VG_OK : VG_OUT_OF_MEMORY);
}

VG_EXPORT int cudaStreamCreateWithFlags(void **stream, unsigned flags)
{
    return cudaStreamCreateWithPriority(stream, flags, 0);
}

VG_EXPORT int cudaStreamCreate(void **stream)
{
    return cudaStreamCreateWithPriority(stream, 0, 0);
}

VG_EXPORT int cudaStreamDestroy(void *stream)
{
    vg_call();
    struct vg_stream *s = vg_stream_of(stream);
    if (s == NULL || (uintptr_t)stream <= 2)
        return vg_result(VG_INVALID_HANDLE);
    vg_stream_free(s);
    vg_run_host_functions();
    return VG_OK;
}

static int synchronize(void *stream)
{
    int64_t end;
    vg_call();
    struct vg_stream *s = vg_stream_of(stream);
    if (s == NULL)
        return VG_INVALID_HANDLE;
    if (s->capture != NULL) {
        s->capture->spoiled = true;
        return VG_CAPTURE_UNSUPPORTED;
    }
    vg_lock();
    if (s->legacy)
        vg_stream_join(s);
    if (vg_drives())
        vg_record((struct maq_rec){.kind = MAQ_REC_STREAM_SYNC, .stream = vg_stream_ordinal(s)}, NULL);
    vg_unlock();
    bool ok = vg_stream_end(s, &end);
    vg_wait_until(end);
    return ok ? VG_OK : VG_LAUNCH_FAILURE;
}

VG_EXPORT int cudaStreamSynchronize(void *stream)
{
    return vg_result(synchronize(stream));
}

/* "Not ready" is an answer, but the runtime keeps it as its last error all the same. */
static int ready(int done)
{
    return vg_result(done > 0 ? VG_OK : done == 0 ? VG_NOT_READY : VG_LAUNCH_FAILURE);
}

VG_EXPORT int cudaStreamQuery(void *stream)
{
    struct vg_stream *s = vg_stream_of(stream);
    return s != NULL ? ready(vg_stream_ask(s)) : vg_result(VG_INVALID_HANDLE);
}

VG_EXPORT int cudaStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    (void)flags;
    vg_call();
    struct vg_stream *s = vg_stream_of(stream);
    struct vg_event *e = vg_event_of(event);
    if (s == NULL || e == NULL)
        return vg_result(VG_INVALID_HANDLE);
    vg_stream_wait(s, e);
    return VG_OK;
}

VG_EXPORT int cudaStreamGetPriority(void *stream, int *priority)
{
    struct vg_stream *s = vg_stream_of(stream);
    *priority = s != NULL ? s->priority : 0;
    return vg_result(s != NULL ? VG_OK : VG_INVALID_HANDLE);
}

VG_EXPORT int cudaStreamGetFlags(void *stream, unsigned *flags)
{
    struct vg_stream *s = vg_stream_of(stream);
    *flags = s != NULL ? s->flags : 0;
    return vg_result(s != NULL ? VG_OK : VG_INVALID_HANDLE);
}

VG_EXPORT int cudaStreamGetId(void *stream, unsigned long long *id)
{
    struct vg_stream *s = vg_stream_of(stream);
    *id = s != NULL ? s->id : 0;
    return vg_result(s != NULL ? VG_OK : VG_INVALID_HANDLE);
}

VG_EXPORT int cudaStreamGetDevice(void *stream, int *device)
{
    struct vg_stream *s = vg_stream_of(stream);
    *device = s != NULL ? (int)s->device : 0;
    return vg_result(s != NULL ? VG_OK : VG_INVALID_HANDLE);
}

VG_EXPORT int cudaStreamSetAttribute(void *stream, int attribute, const void *value)
{
    (void)attribute, (void)value;
    return vg_result(vg_stream_of(stream) != NULL ? VG_OK : VG_INVALID_HANDLE);
}

VG_EXPORT int cudaStreamCopyAttributes(void *to, void *from)
{
    return vg_result(vg_stream_of(to) != NULL && vg_stream_of(from) != NULL ? VG_OK : VG_INVALID_HANDLE);
}

/* A callback gets the stream and its status, a host function only its data. */
struct callback {
    void (*function)(void *stream, int status, void *data);
    void *stream, *data;
};

static void call_back(void *data)
{
    struct callback c = *(struct callback *)data;
    free(data);
    c.function(c.stream, VG_OK, c.data);
}

VG_EXPORT int cudaStreamAddCallback(void *stream, void (*function)(void *, int, void *), void *data, unsigned flags)
{
    (void)flags;
    vg_call();
    struct vg_stream *s = vg_stream_of(stream);
    struct callback *c = s != NULL && s->capture == NULL ? malloc(sizeof *c) : NULL;
    if (c == NULL)
        return vg_result(s != NULL ? VG_CAPTURE_UNSUPPORTED : VG_INVALID_HANDLE);
    *c = (struct callback){function, stream, data};
    vg_enqueue_host(s, call_back, c);
    vg_run_host_functions();
    return VG_OK;
}

/* --- events ------------------------------------------------------------------------------------------------------------------- */

/* Making and ending events takes no time: frameworks keep pools of them, and whether a pool has one hangs on real time. */
VG_EXPORT int cudaEventCreateWithFlags(void **event, unsigned flags)
{
    *event = vg_event_new(flags);
    return vg_result(*event != NULL ? VG_OK : VG_OUT_OF_MEMORY);
}

VG_EXPORT int cudaEventCreate(void **event)
{
    return cudaEventCreateWithFlags(event, 0);
}

VG_EXPORT int cudaEventDestroy(void *event)
{
    struct vg_event *e = vg_event_of(event);
    if (e == NULL)
        return vg_result(VG_INVALID_HANDLE);
    vg_event_free(e);
    return VG_OK;
}

VG_EXPORT int cudaEventRecordWithFlags(void *event, void *stream, unsigned flags)
{
    (void)flags;
    vg_call();
    struct vg_stream *s = vg_stream_of(stream);
    struct vg_event *e = vg_event_of(event);
    if (s == NULL || e == NULL)
        return vg_result(VG_INVALID_HANDLE);
    vg_event_record(e, s);
    return VG_OK;
}

VG_EXPORT int cudaEventRecord(void *event, void *stream)
{
    return cudaEventRecordWithFlags(event, stream, 0);
}

VG_EXPORT int cudaEventQuery(void *event)
{
    struct vg_event *e = vg_event_of(event);
    return e != NULL ? ready(vg_event_ask(e)) : vg_result(VG_INVALID_HANDLE);
}

VG_EXPORT int cudaEventSynchronize(void *event)
{
    int64_t end;
    vg_call();
    struct vg_event *e = vg_event_of(event);
    if (e == NULL)
        return vg_result(VG_INVALID_HANDLE);
    vg_lock();
    if (vg_drives() && e->mark != NULL)
        vg_record((struct maq_rec){.kind = MAQ_REC_EVENT_SYNC, .stream = MAQ_REC_HOST_STREAM, .id = e->id}, NULL);
    vg_unlock();
    bool ok = vg_event_end(e, &end);
    vg_wait_until(end);
    return vg_result(ok ? VG_OK : VG_LAUNCH_FAILURE);
}

static int elapsed(float *ms, void *from, void *to)
{
    int64_t a, b;
    vg_call();
    struct vg_event *first = vg_event_of(from), *second = vg_event_of(to);
    if (first == NULL || second == NULL || ((first->flags | second->flags) & VG_EVENT_NO_TIMING) ||
        first->mark == NULL || second->mark == NULL)
        return VG_INVALID_HANDLE;
    if (vg_event_query(first) == 0 || vg_event_query(second) == 0)
        return VG_NOT_READY;
    vg_event_end(first, &a);
    vg_event_end(second, &b);
    *ms = (float)((double)(b - a) * 1e-6);
    return VG_OK;
}

VG_EXPORT int cudaEventElapsedTime(float *ms, void *from, void *to)
{
    return vg_result(elapsed(ms, from, to));
}

VG_EXPORT int cudaEventElapsedTime_v2(float *ms, void *from, void *to)
{
    return vg_result(elapsed(ms, from, to));
}
