/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cupti.c - CUPTI for a profiler that runs inside the program: it may subscribe and enable what it likes, and nothing
 * ever happens. No buffer is asked for and no record is delivered, so that PyTorch's profiler stays with what the host did.
 * What a rank did on its device is in its trace; `maquette graph --export` writes it for a viewer.
 */
#include <stdlib.h>

#include "shim/abi/cupti.h"
#include "shim/math/operator.h"

/* Of the stubs: the generation of CUDA that this shared object stands in for. */
extern const int vg_cuda_major;

MATH_API(int, cuptiGetVersion, uint32_t *version)
{
    if (version == NULL)
        return ABI_CUPTI_INVALID_PARAMETER;
    *version = vg_cuda_major >= 13 ? ABI_CUPTI_VERSION_13 : ABI_CUPTI_VERSION_12;
    return ABI_CUPTI_SUCCESS;
}

MATH_API(int, cuptiGetResultString, int result, const char **text)
{
    if (text == NULL)
        return ABI_CUPTI_INVALID_PARAMETER;
    *text = result == ABI_CUPTI_SUCCESS ? "CUPTI_SUCCESS" : "CUPTI: not answered by the zero-GPU device";
    return ABI_CUPTI_SUCCESS;
}

MATH_API(int, cuptiGetErrorMessage, int result, const char **text)
{
    return cuptiGetResultString(result, text);
}

MATH_API(int, cuptiGetTimestamp, uint64_t *ns)
{
    if (ns == NULL)
        return ABI_CUPTI_INVALID_PARAMETER;
    *ns = (uint64_t)vg_now();
    return ABI_CUPTI_SUCCESS;
}

MATH_API(int, cuptiSubscribe, void **subscriber, void *callback, void *user)
{
    static char only;
    (void)callback, (void)user;
    if (subscriber == NULL)
        return ABI_CUPTI_INVALID_PARAMETER;
    *subscriber = &only;
    return ABI_CUPTI_SUCCESS;
}

MATH_API(int, cuptiGetCallbackName, int domain, uint32_t id, const char **name)
{
    (void)domain, (void)id;
    if (name == NULL)
        return ABI_CUPTI_INVALID_PARAMETER;
    *name = "";
    return ABI_CUPTI_SUCCESS;
}

MATH_API(int, cuptiActivityGetNextRecord, uint8_t *buffer, size_t bytes, void **record)
{
    (void)buffer, (void)bytes;
    if (record == NULL)
        return ABI_CUPTI_INVALID_PARAMETER;
    *record = NULL;
    return ABI_CUPTI_MAX_LIMIT_REACHED; /* the documented word for: no more of them */
}

MATH_API(int, cuptiActivityGetNumDroppedRecords, void *context, uint32_t stream, size_t *dropped)
{
    (void)context, (void)stream;
    if (dropped == NULL)
        return ABI_CUPTI_INVALID_PARAMETER;
    *dropped = 0;
    return ABI_CUPTI_SUCCESS;
}

MATH_API(int, cuptiActivityPopExternalCorrelationId, int kind, uint64_t *last)
{
    (void)kind;
    if (last != NULL)
        *last = 0;
    return ABI_CUPTI_SUCCESS;
}

/* What is taken and changes nothing. */

MATH_API(int, cuptiUnsubscribe, void *s)
{
    (void)s;
    return ABI_CUPTI_SUCCESS;
}

MATH_API(int, cuptiEnableCallback, uint32_t on, void *s, int domain, uint32_t id)
{
    (void)on, (void)s, (void)domain, (void)id;
    return ABI_CUPTI_SUCCESS;
}

MATH_API(int, cuptiEnableDomain, uint32_t on, void *s, int domain)
{
    (void)on, (void)s, (void)domain;
    return ABI_CUPTI_SUCCESS;
}

MATH_API(int, cuptiEnableAllDomains, uint32_t on, void *s)
{
    (void)on, (void)s;
    return ABI_CUPTI_SUCCESS;
}

MATH_API(int, cuptiActivityRegisterCallbacks, void *request, void *complete)
{
    (void)request, (void)complete;
    return ABI_CUPTI_SUCCESS;
}

MATH_API(int, cuptiActivityRegisterTimestampCallback, void *f)
{
    (void)f;
    return ABI_CUPTI_SUCCESS;
}

MATH_API(int, cuptiActivityEnable, int kind)
{
    (void)kind;
    return ABI_CUPTI_SUCCESS;
}

MATH_API(int, cuptiActivityDisable, int kind)
{
    (void)kind;
    return ABI_CUPTI_SUCCESS;
}

MATH_API(int, cuptiActivityEnableContext, void *context, int kind)
{
    (void)context, (void)kind;
    return ABI_CUPTI_SUCCESS;
}

MATH_API(int, cuptiActivityDisableContext, void *context, int kind)
{
    (void)context, (void)kind;
    return ABI_CUPTI_SUCCESS;
}

MATH_API(int, cuptiActivityFlushAll, uint32_t flag)
{
    (void)flag;
    return ABI_CUPTI_SUCCESS;
}

MATH_API(int, cuptiActivityFlushPeriod, uint32_t ms)
{
    (void)ms;
    return ABI_CUPTI_SUCCESS;
}

MATH_API(int, cuptiActivitySetAttribute, int attribute, size_t *bytes, void *value)
{
    (void)attribute, (void)bytes, (void)value;
    return ABI_CUPTI_SUCCESS;
}

MATH_API(int, cuptiActivityPushExternalCorrelationId, int kind, uint64_t id)
{
    (void)kind, (void)id;
    return ABI_CUPTI_SUCCESS;
}

MATH_API(int, cuptiActivityEnableLatencyTimestamps, uint8_t on)
{
    (void)on;
    return ABI_CUPTI_SUCCESS;
}

MATH_API(int, cuptiActivityEnableCudaEventDeviceTimestamps, uint8_t on)
{
    (void)on;
    return ABI_CUPTI_SUCCESS;
}

MATH_API(int, cuptiActivityEnableDriverApi, uint32_t id, uint8_t on)
{
    (void)id, (void)on;
    return ABI_CUPTI_SUCCESS;
}

MATH_API(int, cuptiActivityEnableRuntimeApi, uint32_t id, uint8_t on)
{
    (void)id, (void)on;
    return ABI_CUPTI_SUCCESS;
}

MATH_API(int, cuptiFinalize, void)
{
    return ABI_CUPTI_SUCCESS;
}
