/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_cupti.c - a libcupti.so.13 that saw a program allocate 32 MiB and launch a kernel of 50 us, and says so when it is flushed.
 */
#pragma GCC visibility push(default)
#include <cupti.h>
#include <stdint.h>
#include <string.h>

static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static unsigned kinds; /* enabled; nothing is told of what was not asked for */

enum { ALLOCATES = 7, LAUNCHES = 8 }; /* correlations */
static CUpti_ActivityAPI calls[] = {
    {.kind = CUPTI_ACTIVITY_KIND_RUNTIME, .start = 1000, .end = 3000, .correlationId = ALLOCATES},
    {.kind = CUPTI_ACTIVITY_KIND_RUNTIME, .start = 4000, .end = 5000, .correlationId = LAUNCHES},
};
static CUpti_ActivityMemory4 memory = {.kind = CUPTI_ACTIVITY_KIND_MEMORY2,
                                       .memoryOperationType = CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION,
                                       .memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
                                       .correlationId = ALLOCATES,
                                       .address = 0x7f0000000000,
                                       .bytes = 32 << 20,
                                       .timestamp = 2000};
static CUpti_ActivityKernel10 kernel = {.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                        .start = 10000,
                                        .end = 60000,
                                        .gridX = 2,
                                        .gridY = 1,
                                        .gridZ = 1,
                                        .blockX = 128,
                                        .blockY = 1,
                                        .blockZ = 1,
                                        .streamId = 7,
                                        .correlationId = LAUNCHES,
                                        .name = "fake_kernel"};
static const struct {
    void *at;
    size_t bytes;
} records[] = {
    {&calls[0], sizeof calls[0]}, {&calls[1], sizeof calls[1]}, {&kernel, sizeof kernel}, {&memory, sizeof memory}};
enum { RECORDS = sizeof records / sizeof *records };

CUptiResult cuptiGetTimestamp(uint64_t *ns)
{
    *ns = 70000;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetStreamIdEx(CUcontext context, CUstream stream, uint8_t per_thread, uint32_t *id)
{
    (void)context;
    (void)per_thread;
    *id = (uint32_t)(uintptr_t)stream + 5;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                           CUpti_BuffersCallbackCompleteFunc completed)
{
    request = requested;
    complete = completed;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    kinds += kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || kind == CUPTI_ACTIVITY_KIND_RUNTIME ||
             kind == CUPTI_ACTIVITY_KIND_MEMORY2;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *dropped)
{
    (void)context;
    (void)stream;
    *dropped = 0;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, CUpti_Activity **record)
{
    size_t at = 0;
    for (int i = 0; i < RECORDS; at += (records[i++].bytes + 7) / 8 * 8)
        if (!*record || (uint8_t *)*record == buffer + at) {
            i += *record != NULL;
            at += *record ? (records[i - 1].bytes + 7) / 8 * 8 : 0;
            if (i >= RECORDS || at >= valid)
                return CUPTI_ERROR_MAX_LIMIT_REACHED;
            *record = (CUpti_Activity *)(void *)(buffer + at);
            return CUPTI_SUCCESS;
        }
    return CUPTI_ERROR_MAX_LIMIT_REACHED;
}

CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
    uint8_t *buffer = NULL;
    size_t size = 0, most = 0, at = 0;
    (void)flag;
    if (kinds != 3)
        return CUPTI_ERROR_INVALID_PARAMETER;
    request(&buffer, &size, &most);
    for (int i = 0; i < RECORDS; at += (records[i++].bytes + 7) / 8 * 8)
        memcpy(buffer + at, records[i].at, records[i].bytes);
    complete(NULL, 0, buffer, size, at);
    return CUPTI_SUCCESS;
}
