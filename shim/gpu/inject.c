/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inject.c - CUPTI to activities.
 *
 * The driver calls InitializeInjection() when a program first touches CUDA. From then on CUPTI fills buffers of 1 MiB and hands
 * them back from a thread of its own; they are copied out into one list. At the end of the program the list is put in order
 * (gpu/assemble.c) and written as the rank's trace. What a program does per activity is what CUPTI costs it; nothing is written
 * while it runs.
 *
 * Sources: the CUPTI documentation of CUDA 13 for the activity kinds and structures used (activity API; none of them undocumented).
 */
#include "shim/gpu/inject.h"

#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "shim/gpu/driver.h"
#include "shim/vgpu.h"

/* Found when a program is traced: as a libnccl.so.2 alone this library needs no CUPTI. */
#define CUPTI_CALLS(X)                                                                                                 \
    X(now, cuptiGetTimestamp)                                                                                          \
    X(stream_id, cuptiGetStreamIdEx)                                                                                   \
    X(callbacks, cuptiActivityRegisterCallbacks)                                                                       \
    X(enable, cuptiActivityEnable)                                                                                     \
    X(next, cuptiActivityGetNextRecord)                                                                                \
    X(dropped, cuptiActivityGetNumDroppedRecords)                                                                      \
    X(flush, cuptiActivityFlushAll)
static struct {
#define CUPTI_MEMBER(member, call) __typeof__(call) *member;
    CUPTI_CALLS(CUPTI_MEMBER)
} cupti;

static bool find_cupti(void)
{
    void *at, *lib = dlopen("libcupti.so.13", RTLD_NOW | RTLD_LOCAL);
    bool good = (lib = lib ? lib : dlopen("libcupti.so.12", RTLD_NOW | RTLD_LOCAL)) != NULL;
#define CUPTI_FIND(member, call)                                                                                       \
    at = lib ? dlsym(lib, #call) : NULL;                                                                               \
    memcpy(&cupti.member, &at, sizeof at);                                                                             \
    good = good && at;
    CUPTI_CALLS(CUPTI_FIND)
    return good;
}

#define BUFFER_BYTES (1u << 20)

static struct {
    pthread_mutex_t lock;
    struct vg_activity *at;
    size_t n, size;
    bool lost; /* out of memory, or CUPTI dropped records */
    bool on;
} injected = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void add(const struct vg_activity *activity)
{
    if (injected.n == injected.size) {
        size_t size = injected.size ? injected.size * 2 : 1u << 16;
        struct vg_activity *at = realloc(injected.at, size * sizeof *at);
        if (!at) {
            injected.lost = true;
            return;
        }
        injected.at = at;
        injected.size = size;
    }
    injected.at[injected.n++] = *activity;
}

void vg_inject_add(const struct vg_activity *activity)
{
    pthread_mutex_lock(&injected.lock);
    if (injected.on)
        add(activity);
    pthread_mutex_unlock(&injected.lock);
}

int64_t vg_inject_now(void)
{
    uint64_t ns = 0;
    return injected.on && cupti.now(&ns) == CUPTI_SUCCESS ? (int64_t)ns : 0;
}

uint32_t vg_inject_stream(void *stream)
{
    CUcontext context = NULL;
    uint32_t id = 0;
    if (!injected.on || !vg_driver() || vg_driver()->context(&context) != CUDA_SUCCESS || !context)
        return 0;
    return cupti.stream_id(context, (CUstream)stream, 0, &id) == CUPTI_SUCCESS ? id : 0;
}

/* Ours: the communication that they stand for is told by gpu/core.c. */
static bool is_ours(const char *name)
{
    return name && (strncmp(name, "vg_timed_", 9) == 0 || strncmp(name, "vg_fill_", 8) == 0);
}

static void add_kernel(const CUpti_Activity *record)
{
    const CUpti_ActivityKernel10 *k = (const CUpti_ActivityKernel10 *)record;
    if (is_ours(k->name))
        return;
    struct vg_activity a = {.kind = VG_ACT_KERNEL,
                            .graph = k->graphId != 0,
                            .correlation = k->correlationId,
                            .stream = k->streamId,
                            .start = (int64_t)k->start,
                            .end = (int64_t)k->end,
                            .grid = {(uint32_t)k->gridX, (uint32_t)k->gridY, (uint32_t)k->gridZ},
                            .block = {(uint32_t)k->blockX, (uint32_t)k->blockY, (uint32_t)k->blockZ},
                            .shared = (uint32_t)k->dynamicSharedMemory,
                            .name = k->name};
    add(&a);
}

static bool on_device(uint8_t memory)
{
    return memory == CUPTI_ACTIVITY_MEMORY_KIND_DEVICE || memory == CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC ||
           memory == CUPTI_ACTIVITY_MEMORY_KIND_ARRAY;
}

static void add_copy(const CUpti_Activity *record)
{
    const CUpti_ActivityMemcpy6 *c = (const CUpti_ActivityMemcpy6 *)record;
    bool from = on_device(c->srcKind), to = on_device(c->dstKind);
    struct vg_activity a = {.kind = VG_ACT_COPY,
                            .graph = c->graphId != 0,
                            .correlation = c->correlationId,
                            .stream = c->streamId,
                            .id = from && to ? MAQ_REC_D2D
                                  : from     ? MAQ_REC_D2H
                                  : to       ? MAQ_REC_H2D
                                             : MAQ_REC_H2H,
                            .start = (int64_t)c->start,
                            .end = (int64_t)c->end,
                            .bytes = c->bytes};
    add(&a);
}

static void add_set(const CUpti_Activity *record)
{
    const CUpti_ActivityMemset4 *s = (const CUpti_ActivityMemset4 *)record;
    struct vg_activity a = {.kind = VG_ACT_SET,
                            .graph = s->graphId != 0,
                            .correlation = s->correlationId,
                            .stream = s->streamId,
                            .start = (int64_t)s->start,
                            .end = (int64_t)s->end,
                            .bytes = s->bytes};
    add(&a);
}

static void add_memory(const CUpti_Activity *record)
{
    const CUpti_ActivityMemory4 *m = (const CUpti_ActivityMemory4 *)record;
    struct vg_activity a = {
        .kind = m->memoryOperationType == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE ? VG_ACT_FREE : VG_ACT_ALLOC,
        .correlation = m->correlationId,
        .stream = m->isAsync ? m->streamId : MAQ_REC_NONE,
        .id = m->isAsync                                            ? MAQ_REC_POOL
              : m->memoryKind == CUPTI_ACTIVITY_MEMORY_KIND_MANAGED ? MAQ_REC_MANAGED
              : m->memoryKind == CUPTI_ACTIVITY_MEMORY_KIND_PINNED  ? MAQ_REC_PINNED
                                                                    : MAQ_REC_DEVICE,
        .start = (int64_t)m->timestamp,
        .end = (int64_t)m->timestamp,
        .bytes = m->bytes,
        .address = m->address};
    add(&a);
}

static void add_sync(const CUpti_Activity *record)
{
    static const uint8_t kinds[] = {
        [CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE] = VG_ACT_EVENT_SYNC,
        [CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT] = VG_ACT_STREAM_WAIT,
        [CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE] = VG_ACT_STREAM_SYNC,
        [CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE] = VG_ACT_DEVICE_SYNC,
    };
    const CUpti_ActivitySynchronization2 *s = (const CUpti_ActivitySynchronization2 *)record;
    if ((size_t)s->type >= sizeof kinds || !kinds[s->type])
        return;
    bool has_stream = kinds[s->type] == VG_ACT_STREAM_WAIT || kinds[s->type] == VG_ACT_STREAM_SYNC;
    struct vg_activity a = {.kind = kinds[s->type],
                            .correlation = s->correlationId,
                            .stream = has_stream ? s->streamId : MAQ_REC_NONE,
                            .id = s->cudaEventId,
                            .start = (int64_t)s->start,
                            .end = (int64_t)s->end};
    add(&a);
}

static void add_event(const CUpti_Activity *record)
{
    const CUpti_ActivityCudaEvent2 *e = (const CUpti_ActivityCudaEvent2 *)record;
    struct vg_activity a = {
        .kind = VG_ACT_EVENT, .correlation = e->correlationId, .stream = e->streamId, .id = e->eventId};
    add(&a);
}

static void add_call(const CUpti_Activity *record)
{
    const CUpti_ActivityAPI *c = (const CUpti_ActivityAPI *)record;
    struct vg_activity a = {.kind = VG_ACT_CALL,
                            .thread = (uint16_t)c->threadId,
                            .correlation = c->correlationId,
                            .stream = MAQ_REC_NONE,
                            .start = (int64_t)c->start,
                            .end = (int64_t)c->end};
    add(&a);
}

static void add_record(const CUpti_Activity *record)
{
    switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
        add_call(record);
        break;
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        add_kernel(record);
        break;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        add_copy(record);
        break;
    case CUPTI_ACTIVITY_KIND_MEMSET:
        add_set(record);
        break;
    case CUPTI_ACTIVITY_KIND_MEMORY2:
        add_memory(record);
        break;
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
        add_sync(record);
        break;
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
        add_event(record);
        break;
    default:
        break;
    }
}

static void CUPTIAPI buffer_requested(uint8_t **buffer, size_t *size, size_t *max_records)
{
    *buffer = aligned_alloc(8, BUFFER_BYTES);
    *size = *buffer ? BUFFER_BYTES : 0;
    *max_records = 0;
}

static void CUPTIAPI buffer_completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    (void)size;
    CUpti_Activity *record = NULL;
    size_t dropped = 0;
    pthread_mutex_lock(&injected.lock);
    while (valid > 0 && cupti.next(buffer, valid, &record) == CUPTI_SUCCESS)
        add_record(record);
    if (cupti.dropped(context, stream, &dropped) == CUPTI_SUCCESS && dropped)
        injected.lost = true;
    pthread_mutex_unlock(&injected.lock);
    free(buffer);
}

static void to_trace(void *to, struct maq_rec rec, const void *payload)
{
    (void)to;
    vg_host(rec.host_ns);
    vg_record(rec, payload);
}

/* The program is over: everything that CUPTI still holds, in order, into the trace. */
static void write_trace(void)
{
    cupti.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    vg_drive(); /* or the host's time would count for nobody */
    pthread_mutex_lock(&injected.lock);
    injected.on = false;
    struct vg_sink sink = {.put = to_trace};
    size_t dropped = vg_assemble(injected.at, injected.n, &sink);
    const char *text = injected.lost ? "activities were lost while tracing" : "activities without a call were left out";
    if (injected.lost || dropped) {
        struct maq_rec mark = {.kind = MAQ_REC_MARK,
                               .stream = MAQ_REC_HOST_STREAM,
                               .arg = MAQ_REC_POINT,
                               .id = vg_text(text, strlen(text))};
        vg_record(mark, NULL);
    }
    free(injected.at);
    injected.at = NULL;
    injected.n = injected.size = 0;
    pthread_mutex_unlock(&injected.lock);
}

/* Called by the driver; 1 = ready. */
VG_EXPORT int InitializeInjection(void);
int InitializeInjection(void)
{
    static const CUpti_ActivityKind kinds[] = {
        CUPTI_ACTIVITY_KIND_RUNTIME,         CUPTI_ACTIVITY_KIND_DRIVER,     CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
        CUPTI_ACTIVITY_KIND_MEMCPY,          CUPTI_ACTIVITY_KIND_MEMSET,     CUPTI_ACTIVITY_KIND_MEMORY2,
        CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_CUDA_EVENT,
    };
    if (!vg_card()->there || injected.on)
        return 1;
    if (!find_cupti())
        return 0;
    if (cupti.callbacks(buffer_requested, buffer_completed) != CUPTI_SUCCESS)
        return 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (cupti.enable(kinds[i]) != CUPTI_SUCCESS)
            return 0;
    injected.on = true;
    vg_record_begin(); /* what is registered last runs first: the trace must not be ended before this is written */
    return atexit(write_trace) == 0;
}
