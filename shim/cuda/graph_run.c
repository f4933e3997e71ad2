/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_run.c - the runtime's calls that instantiate, update and launch CUDA graphs, and for what lives as long as one.
 */
#include "shim/cuda/cuda.h"

#include <stdlib.h>
#include <string.h>

/* --- running -------------------------------------------------------------------------------------------------------------------- */

VG_EXPORT int cudaGraphInstantiate(void **exec, void *handle, unsigned long long flags)
{
    (void)flags;
    vg_call();
    struct vg_graph *graph = vg_graph_of(handle);
    *exec = graph != NULL ? vg_exec_new(graph) : NULL;
    return vg_result(*exec != NULL ? VG_OK : VG_INVALID_VALUE);
}

VG_EXPORT int cudaGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags)
{
    return cudaGraphInstantiate(exec, graph, flags);
}

VG_EXPORT int cudaGraphInstantiateWithParams(void **exec, void *graph, struct vg_instantiate *params)
{
    int status = cudaGraphInstantiate(exec, graph, params->flags);
    params->error_node = NULL;
    params->result = status == VG_OK ? 0 : 1; /* cudaGraphInstantiateError */
    return status;
}

VG_EXPORT int cudaGraphExecUpdate(void *exec_handle, void *handle, struct vg_update_result *result)
{
    vg_call();
    struct vg_exec *exec = vg_exec_of(exec_handle);
    struct vg_graph *graph = vg_graph_of(handle);
    bool ok = exec != NULL && graph != NULL && vg_exec_update(exec, graph);
    if (result != NULL)
        *result = (struct vg_update_result){.result = ok ? 0 : 2}; /* cudaGraphExecUpdateErrorTopologyChanged */
    return vg_result(ok ? VG_OK : VG_GRAPH_UPDATE_FAILURE);
}

VG_EXPORT int cudaGraphUpload(void *exec, void *stream)
{
    (void)stream;
    vg_call();
    return vg_result(vg_exec_of(exec) != NULL ? VG_OK : VG_INVALID_VALUE);
}

/* One call of the host launches all nodes. */
VG_EXPORT int cudaGraphLaunch(void *handle, void *stream)
{
    struct vg_exec *exec = vg_exec_of(handle);
    struct vg_stream *s = vg_stream_of(stream);
    if (exec == NULL || s == NULL)
        return vg_result(VG_INVALID_HANDLE);
    vg_drive();
    vg_host(vg_card()->launch_ns);
    vg_exec_launch(exec, s);
    vg_run_host_functions();
    return VG_OK;
}

VG_EXPORT int cudaGraphExecDestroy(void *handle)
{
    struct vg_exec *exec = vg_exec_of(handle);
    if (exec == NULL)
        return vg_result(VG_INVALID_VALUE);
    vg_exec_free(exec);
    return VG_OK;
}

VG_EXPORT int cudaGraphExecGetFlags(void *exec, unsigned long long *flags)
{
    *flags = 0;
    return vg_result(vg_exec_of(exec) != NULL ? VG_OK : VG_INVALID_VALUE);
}

VG_EXPORT int cudaDeviceGraphMemTrim(int device)
{
    (void)device;
    return VG_OK;
}

VG_EXPORT int cudaDeviceGetGraphMemAttribute(int device, int attribute, void *value)
{
    (void)device, (void)attribute;
    memset(value, 0, sizeof(uint64_t));
    return VG_OK;
}

/* --- objects that live as long as a graph: released when their count falls to 0, never by a graph's end ------------------ */

struct object {
    void (*destroy)(void *);
    void *data;
    unsigned count;
};

VG_EXPORT int cudaUserObjectCreate(void **out, void *data, void (*destroy)(void *), unsigned count, unsigned flags)
{
    (void)flags;
    struct object *o = malloc(sizeof *o);
    if (o == NULL)
        return vg_result(VG_OUT_OF_MEMORY);
    *o = (struct object){destroy, data, count};
    *out = o;
    return VG_OK;
}

VG_EXPORT int cudaUserObjectRetain(void *object, unsigned count)
{
    ((struct object *)object)->count += count;
    return VG_OK;
}

VG_EXPORT int cudaUserObjectRelease(void *handle, unsigned count)
{
    struct object *o = handle;
    if (o->count > count) {
        o->count -= count;
        return VG_OK;
    }
    o->destroy(o->data);
    free(o);
    return VG_OK;
}

/* flags 1: the caller's references move to the graph, which keeps them to the end of the program. */
VG_EXPORT int cudaGraphRetainUserObject(void *graph, void *object, unsigned count, unsigned flags)
{
    (void)graph;
    if (flags != 1)
        ((struct object *)object)->count += count;
    return VG_OK;
}

VG_EXPORT int cudaGraphReleaseUserObject(void *graph, void *object, unsigned count)
{
    (void)graph;
    return cudaUserObjectRelease(object, count);
}
