/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudnn.c - handles of cuDNN, and the backend API: descriptors are bags of attributes, whatever they are called.
 *
 * A program describes a graph of operations, asks a heuristic for engines, makes a plan of one and executes it. Here there
 * is one engine for every graph, which needs no workspace; what is executed is recognised when its plan is made
 * (cudnn_graph.c). An attribute that is asked for and was never set has no elements.
 *
 * Workspace: zero. The library's own need differs by engine and release and is not documented; what cudnn-frontend sets
 * aside itself for the gradient of attention comes on top of it and is there.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/math/dnn.h"

#define HANDLE_MAGIC 0x646e6e2d6d6171u

int cudaRuntimeGetVersion(int *version); /* of cuda/ */

struct dnn *dnn_of(void *handle)
{
    struct dnn *d = (struct dnn *)handle;
    return d != NULL && d->magic == HANDLE_MAGIC ? d : NULL;
}

/* --- handles ------------------------------------------------------------------------------------------------------------- */

MATH_API(int, cudnnCreate, void **handle)
{
    struct dnn *d = handle != NULL ? calloc(1, sizeof *d) : NULL;
    if (d == NULL)
        return handle == NULL ? ABI_CUDNN_NULL_POINTER : ABI_CUDNN_ALLOC_FAILED;
    d->magic = HANDLE_MAGIC;
    *handle = d;
    return ABI_CUDNN_SUCCESS;
}

MATH_API(int, cudnnDestroy, void *handle)
{
    struct dnn *d = dnn_of(handle);
    if (d == NULL)
        return ABI_CUDNN_NOT_INITIALIZED;
    d->magic = 0;
    free(d);
    return ABI_CUDNN_SUCCESS;
}

MATH_API(int, cudnnSetStream, void *handle, void *stream)
{
    struct dnn *d = dnn_of(handle);
    if (d == NULL)
        return ABI_CUDNN_NOT_INITIALIZED;
    d->stream = stream;
    return ABI_CUDNN_SUCCESS;
}

MATH_API(int, cudnnGetStream, void *handle, void **stream)
{
    struct dnn *d = dnn_of(handle);
    if (d == NULL || stream == NULL)
        return ABI_CUDNN_NOT_INITIALIZED;
    *stream = d->stream;
    return ABI_CUDNN_SUCCESS;
}

MATH_API(size_t, cudnnGetVersion, void)
{
    return ABI_CUDNN_VERSION;
}

MATH_API(size_t, cudnnGetMaxDeviceVersion, void)
{
    return 1210; /* compute capability 12.1, as 9.26 says */
}

MATH_API(size_t, cudnnGetCudartVersion, void)
{
    int cuda = 0;
    cudaRuntimeGetVersion(&cuda);
    return (size_t)cuda;
}

MATH_API(int, cudnnGetProperty, int property, int *value)
{
    if (value == NULL || property < 0 || property > 2)
        return ABI_CUDNN_BAD_PARAM;
    *value = property == 0   ? ABI_CUDNN_VERSION / 10000
             : property == 1 ? ABI_CUDNN_VERSION / 100 % 100
                             : ABI_CUDNN_VERSION % 100;
    return ABI_CUDNN_SUCCESS;
}

MATH_API(const char *, cudnnGetErrorString, int status)
{
    switch (status) {
    case ABI_CUDNN_SUCCESS:
        return "CUDNN_STATUS_SUCCESS";
    case ABI_CUDNN_NOT_INITIALIZED:
        return "CUDNN_STATUS_NOT_INITIALIZED";
    case ABI_CUDNN_BAD_PARAM:
        return "CUDNN_STATUS_BAD_PARAM";
    case ABI_CUDNN_NULL_POINTER:
        return "CUDNN_STATUS_BAD_PARAM_NULL_POINTER";
    case ABI_CUDNN_NOT_FINALIZED:
        return "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED";
    case ABI_CUDNN_NOT_SUPPORTED:
        return "CUDNN_STATUS_NOT_SUPPORTED";
    case ABI_CUDNN_ALLOC_FAILED:
        return "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED";
    case ABI_CUDNN_EXECUTION_FAILED:
        return "CUDNN_STATUS_EXECUTION_FAILED";
    default:
        return "unknown status of cuDNN";
    }
}

MATH_API(void, cudnnGetLastErrorString, char *out, size_t bytes)
{
    if (out != NULL && bytes > 0)
        out[0] = '\0';
}

/* Parts of the library are all there, in one version. */
#define VERSION_CHECK(name)                                                                                            \
    MATH_API(int, name, void)                                                                                          \
    {                                                                                                                  \
        return ABI_CUDNN_SUCCESS;                                                                                      \
    }
VERSION_CHECK(cudnnGraphVersionCheck)
VERSION_CHECK(cudnnOpsVersionCheck)
VERSION_CHECK(cudnnCnnVersionCheck)
VERSION_CHECK(cudnnAdvVersionCheck)

/* --- descriptors --------------------------------------------------------------------------------------------------------- */

MATH_API(int, cudnnBackendCreateDescriptor, int kind, void **out)
{
    struct dnn_descriptor *d = out != NULL ? dnn_new(kind) : NULL;
    if (d == NULL)
        return out == NULL ? ABI_CUDNN_NULL_POINTER : ABI_CUDNN_ALLOC_FAILED;
    *out = d;
    return ABI_CUDNN_SUCCESS;
}

MATH_API(int, cudnnBackendDestroyDescriptor, void *descriptor)
{
    struct dnn_descriptor *d = dnn_descriptor_of(descriptor);
    if (d == NULL)
        return ABI_CUDNN_BAD_PARAM;
    vg_lock();
    dnn_release(d);
    vg_unlock();
    return ABI_CUDNN_SUCCESS;
}

MATH_API(int, cudnnBackendInitialize, void *descriptor)
{
    return dnn_descriptor_of(descriptor) != NULL ? ABI_CUDNN_SUCCESS : ABI_CUDNN_BAD_PARAM;
}

MATH_API(int, cudnnBackendSetAttribute, void *descriptor, int name, int type, int64_t n, const void *values)
{
    struct dnn_descriptor *d = dnn_descriptor_of(descriptor);
    if (d == NULL)
        return ABI_CUDNN_BAD_PARAM;
    vg_lock();
    const int status = dnn_set(d, name, type, n, values);
    vg_unlock();
    return status;
}

/* The graph that a plan executes. */
static struct dnn_descriptor *graph_of(const struct dnn_descriptor *plan)
{
    const struct dnn_descriptor *config = dnn_child(plan, ABI_CUDNN_PLAN_ENGINE_CONFIG, 0);
    return dnn_child(dnn_child(config, ABI_CUDNN_ENGINECFG_ENGINE, 0), ABI_CUDNN_ENGINE_GRAPH, 0);
}

MATH_API(int, cudnnBackendFinalize, void *descriptor)
{
    struct dnn_descriptor *d = dnn_descriptor_of(descriptor);
    if (d == NULL)
        return ABI_CUDNN_BAD_PARAM;
    vg_lock();
    d->finalized = true;
    if (d->kind == ABI_CUDNN_PLAN)
        dnn_recognize(graph_of(d), &d->plan);
    vg_unlock();
    return ABI_CUDNN_SUCCESS;
}

/* Into a descriptor that the caller has made: the library's own is copied. */
static int copy_into(void *target, const struct dnn_descriptor *from)
{
    struct dnn_descriptor *to = dnn_descriptor_of(target);
    if (to == NULL || from == NULL)
        return ABI_CUDNN_BAD_PARAM;
    if (to == from)
        return ABI_CUDNN_SUCCESS;
    dnn_clear(to);
    for (const struct dnn_attribute *a = from->attributes; a != NULL; a = a->next) {
        const int status = dnn_set(to, a->name, a->type, a->n, a->value);
        if (status != ABI_CUDNN_SUCCESS)
            return status;
    }
    to->finalized = true;
    return ABI_CUDNN_SUCCESS;
}

/* The one answer of a heuristic: a configuration of the one engine. */
static int answer(const struct dnn_descriptor *heuristic, int64_t wanted, int64_t *n, void *out)
{
    struct dnn_descriptor *graph = dnn_child(heuristic, ABI_CUDNN_ENGINEHEUR_GRAPH, 0);
    struct dnn_descriptor *config, *engine = NULL;
    const int64_t index = 0;
    void *made = NULL;
    if (n != NULL)
        *n = 1;
    if (wanted < 1 || out == NULL)
        return ABI_CUDNN_SUCCESS;
    config = dnn_descriptor_of(((void **)out)[0]);
    if (config == NULL || graph == NULL)
        return ABI_CUDNN_BAD_PARAM;
    int status = cudnnBackendCreateDescriptor(ABI_CUDNN_ENGINE, &made);
    if (status != ABI_CUDNN_SUCCESS)
        return status;
    engine = (struct dnn_descriptor *)made;
    engine->finalized = true;
    status = dnn_set(engine, ABI_CUDNN_ENGINE_GRAPH, ABI_CUDNN_TYPE_DESCRIPTOR, 1, &graph);
    if (status == ABI_CUDNN_SUCCESS)
        status = dnn_set(engine, ABI_CUDNN_ENGINE_GLOBAL_INDEX, ABI_CUDNN_TYPE_INT64, 1, &index);
    if (status == ABI_CUDNN_SUCCESS)
        status = dnn_set(config, ABI_CUDNN_ENGINECFG_ENGINE, ABI_CUDNN_TYPE_DESCRIPTOR, 1, &made);
    config->finalized = true;
    dnn_release(engine);
    return status;
}

/* What the library knows without having been told. */
static bool is_computed(const struct dnn_descriptor *d, int name, int64_t *value)
{
    *value = name == ABI_CUDNN_GRAPH_ENGINE_COUNT; /* one engine; all other computed numbers are 0 */
    return (d->kind == ABI_CUDNN_OPERATIONGRAPH && name == ABI_CUDNN_GRAPH_ENGINE_COUNT) ||
           (d->kind == ABI_CUDNN_PLAN && name == ABI_CUDNN_PLAN_WORKSPACE_SIZE) ||
           (d->kind == ABI_CUDNN_ENGINECFG &&
            (name == ABI_CUDNN_ENGINECFG_WORKSPACE_SIZE || name == ABI_CUDNN_ENGINECFG_SHARED_MEMORY));
}

static int get(const struct dnn_descriptor *d, int name, int type, int64_t wanted, int64_t *n, void *out)
{
    int64_t number;
    const struct dnn_attribute *a = dnn_find(d, name);
    if (d->kind == ABI_CUDNN_ENGINEHEUR && name == ABI_CUDNN_ENGINEHEUR_RESULTS)
        return answer(d, wanted, n, out);
    if (is_computed(d, name, &number)) {
        if (n != NULL)
            *n = 1;
        if (wanted >= 1 && out != NULL)
            memcpy(out, &number, dnn_width(type) < sizeof number ? dnn_width(type) : sizeof number);
        return ABI_CUDNN_SUCCESS;
    }
    if (n != NULL)
        *n = a != NULL ? a->n : 0;
    for (int64_t i = 0; a != NULL && out != NULL && i < a->n && i < wanted; i++) {
        if (a->type == ABI_CUDNN_TYPE_DESCRIPTOR) {
            const int status = copy_into(((void **)out)[i], ((struct dnn_descriptor **)a->value)[i]);
            if (status != ABI_CUDNN_SUCCESS)
                return status;
        } else {
            memcpy((char *)out + (size_t)i * dnn_width(a->type), (char *)a->value + (size_t)i * dnn_width(a->type),
                   dnn_width(a->type));
        }
    }
    return ABI_CUDNN_SUCCESS;
}

MATH_API(int, cudnnBackendGetAttribute, void *descriptor, int name, int type, int64_t wanted, int64_t *n, void *out)
{
    const struct dnn_descriptor *d = dnn_descriptor_of(descriptor);
    if (d == NULL)
        return ABI_CUDNN_BAD_PARAM;
    vg_lock();
    const int status = get(d, name, type, wanted, n, out);
    vg_unlock();
    return status;
}

/* How far a tensor of the plan reaches, by its id. */
static uint64_t reach_of(const struct dnn_plan *plan, int64_t uid)
{
    for (unsigned i = 0; i < plan->n_tensors; i++)
        if (plan->tensor[i].uid == uid)
            return plan->tensor[i].bytes;
    return UINT64_MAX;
}

/* Any tensor of the pack may be an output. */
static void written(const struct dnn_plan *plan, const struct dnn_descriptor *pack)
{
    const struct dnn_attribute *data = dnn_find(pack, ABI_CUDNN_PACK_POINTERS);
    const struct dnn_attribute *uids = dnn_find(pack, ABI_CUDNN_PACK_UIDS);
    const bool named = uids != NULL && uids->type == ABI_CUDNN_TYPE_INT64;
    for (int64_t i = 0; data != NULL && data->type == ABI_CUDNN_TYPE_VOID_PTR && i < data->n; i++)
        vg_mem_written(((void **)data->value)[i],
                       named && i < uids->n ? reach_of(plan, ((const int64_t *)uids->value)[i]) : UINT64_MAX);
}

MATH_API(int, cudnnBackendExecute, void *handle, void *plan, void *variant_pack)
{
    const struct dnn *h = dnn_of(handle);
    const struct dnn_descriptor *p = dnn_descriptor_of(plan);
    if (h == NULL)
        return ABI_CUDNN_NOT_INITIALIZED;
    if (p == NULL || p->kind != ABI_CUDNN_PLAN || dnn_descriptor_of(variant_pack) == NULL)
        return ABI_CUDNN_BAD_PARAM;
    if (!p->finalized)
        return ABI_CUDNN_NOT_FINALIZED;
    vg_lock();
    written(&p->plan, dnn_descriptor_of(variant_pack));
    const bool ok = math_launch(h->stream, &p->plan.op, p->plan.name, (struct math_out){NULL, 0});
    vg_unlock();
    return ok ? ABI_CUDNN_SUCCESS : ABI_CUDNN_EXECUTION_FAILED;
}
