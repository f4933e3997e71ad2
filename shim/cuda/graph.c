/*
 * graph.c - the runtime's calls for CUDA graphs: capture, nodes by hand, instantiate, update, launch.
 */
#include "shim/cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODE_KERNEL, NODE_MEMCPY, NODE_MEMSET, NODE_HOST, NODE_GRAPH, NODE_EMPTY }; /* enum cudaGraphNodeType */
enum { CAPTURE_NONE, CAPTURE_ACTIVE, CAPTURE_INVALID };                            /* enum cudaStreamCaptureStatus */

static struct vg_graph *graph_of(void *handle)
{
    struct vg_graph *graph = handle;
    return graph != NULL && graph->magic == VG_GRAPH_MAGIC ? graph : NULL;
}

static struct vg_node *node_of(void *handle)
{
    struct vg_node *node = handle;
    return node != NULL && node->magic == VG_NODE_MAGIC ? node : NULL;
}

static struct vg_exec *exec_of(void *handle)
{
    struct vg_exec *exec = handle;
    return exec != NULL && exec->magic == VG_EXEC_MAGIC ? exec : NULL;
}

/* --- capture ---------------------------------------------------------------------------------------------------------------- */

VG_EXPORT int cudaStreamBeginCapture(void *stream, int mode)
{
    vg_call();
    struct vg_stream *s = vg_stream_of(stream);
    if (s == NULL)
        return vg_result(VG_INVALID_HANDLE);
    if (s->legacy)
        return vg_result(VG_CAPTURE_UNSUPPORTED);
    vg_lock();
    bool begun = vg_capture_begin(s, mode);
    vg_unlock();
    return vg_result(begun ? VG_OK : VG_INVALID_VALUE);
}

VG_EXPORT int cudaStreamEndCapture(void *stream, void **graph)
{
    vg_call();
    struct vg_stream *s = vg_stream_of(stream);
    *graph = NULL;
    if (s == NULL)
        return vg_result(VG_INVALID_HANDLE);
    if (s->capture == NULL || s->capture->origin != s)
        return vg_result(s->capture == NULL ? VG_INVALID_VALUE : VG_CAPTURE_UNMATCHED);
    vg_lock();
    bool spoiled = s->capture->spoiled;
    *graph = vg_capture_end(s);
    vg_unlock();
    return vg_result(*graph != NULL ? VG_OK : spoiled ? VG_CAPTURE_INVALIDATED : VG_CAPTURE_UNJOINED);
}

static int capture_status(const struct vg_stream *s)
{
    return s->capture == NULL ? CAPTURE_NONE : s->capture->spoiled ? CAPTURE_INVALID : CAPTURE_ACTIVE;
}

VG_EXPORT int cudaStreamIsCapturing(void *stream, int *status)
{
    struct vg_stream *s = vg_stream_of(stream);
    if (s == NULL)
        return vg_result(VG_INVALID_HANDLE);
    *status = capture_status(s);
    return VG_OK;
}

/* Handles of the nodes that the next operation would depend on; good until the next call from this thread. */
static void **tips_of(const struct vg_stream *s, size_t *n)
{
    static _Thread_local void *tips[256];
    *n = s->n_tips < 256 ? s->n_tips : 256;
    for (size_t i = 0; i < *n; i++)
        tips[i] = s->capture->graph->nodes[s->tips[i]];
    return tips;
}

static int capture_info(void *stream, int *status, unsigned long long *id, void **graph, void ***tips, size_t *n)
{
    size_t count = 0;
    struct vg_stream *s = vg_stream_of(stream);
    if (s == NULL)
        return VG_INVALID_HANDLE;
    *status = capture_status(s);
    if (n != NULL)
        *n = 0;
    if (s->capture == NULL)
        return VG_OK;
    if (id != NULL)
        *id = s->capture->id;
    if (graph != NULL)
        *graph = s->capture->graph;
    if (tips != NULL)
        *tips = tips_of(s, &count);
    if (n != NULL)
        *n = s->n_tips < 256 ? s->n_tips : 256;
    return VG_OK;
}

/* CUDA 13: with edge data before the count. CUDA 12: (stream, status, id), and further calls of that name. */
VG_EXPORT int cudaStreamGetCaptureInfo(void *stream, int *status, unsigned long long *id, void **graph, void ***tips,
                                       const void **edges, size_t *n)
{
    if (vg_cuda_major < 13)
        return vg_result(capture_info(stream, status, id, NULL, NULL, NULL));
    if (edges != NULL)
        *edges = NULL;
    return vg_result(capture_info(stream, status, id, graph, tips, n));
}

VG_EXPORT int cudaStreamGetCaptureInfo_v2(void *stream, int *status, unsigned long long *id, void **graph, void ***tips,
                                          size_t *n)
{
    return vg_result(capture_info(stream, status, id, graph, tips, n));
}

VG_EXPORT int cudaStreamGetCaptureInfo_v3(void *stream, int *status, unsigned long long *id, void **graph, void ***tips,
                                          const void **edges, size_t *n)
{
    if (edges != NULL)
        *edges = NULL;
    return vg_result(capture_info(stream, status, id, graph, tips, n));
}

VG_EXPORT int cuStreamGetCaptureInfo_v2(void *stream, int *status, unsigned long long *id, void **graph, void ***tips,
                                        size_t *n)
{
    return capture_info(stream, status, id, graph, tips, n);
}

VG_EXPORT int cuStreamIsCapturing(void *stream, int *status)
{
    return cudaStreamIsCapturing(stream, status);
}

static int set_tips(void *stream, void **nodes, size_t n, bool replace)
{
    struct vg_stream *s = vg_stream_of(stream);
    if (s == NULL || s->capture == NULL)
        return VG_INVALID_VALUE;
    if (replace)
        s->n_tips = 0;
    for (size_t i = 0; i < n; i++) {
        struct vg_node *node = node_of(nodes[i]);
        if (node == NULL || node->graph != s->capture->graph || !vg_capture_tip(s, node->index))
            return VG_INVALID_VALUE;
    }
    return VG_OK;
}

/* flags: 0 add, 1 set. CUDA 12's first form has no edge data. */
VG_EXPORT int cudaStreamUpdateCaptureDependencies(void *stream, void **nodes, const void *edges, size_t n,
                                                  unsigned flags)
{
    if (vg_cuda_major < 13) /* (stream, nodes, n, flags) */
        return vg_result(set_tips(stream, nodes, (size_t)(uintptr_t)edges, n == 1));
    return vg_result(set_tips(stream, nodes, n, flags == 1));
}

VG_EXPORT int cudaStreamUpdateCaptureDependencies_v2(void *stream, void **nodes, const void *edges, size_t n,
                                                     unsigned flags)
{
    (void)edges;
    return vg_result(set_tips(stream, nodes, n, flags == 1));
}

VG_EXPORT int cudaThreadExchangeStreamCaptureMode(int *mode)
{
    static _Thread_local int current;
    int before = current;
    current = *mode;
    *mode = before;
    return VG_OK;
}

VG_EXPORT int cuThreadExchangeStreamCaptureMode(int *mode)
{
    return cudaThreadExchangeStreamCaptureMode(mode);
}

/* --- graphs by hand --------------------------------------------------------------------------------------------------------- */

VG_EXPORT int cudaGraphCreate(void **graph, unsigned flags)
{
    (void)flags;
    *graph = vg_graph_new();
    return vg_result(*graph != NULL ? VG_OK : VG_OUT_OF_MEMORY);
}

VG_EXPORT int cudaGraphDestroy(void *handle)
{
    struct vg_graph *graph = graph_of(handle);
    if (graph == NULL)
        return vg_result(VG_INVALID_VALUE);
    vg_graph_free(graph);
    return VG_OK;
}

VG_EXPORT int cudaGraphClone(void **copy, void *handle)
{
    struct vg_graph *graph = graph_of(handle);
    *copy = graph != NULL ? vg_graph_copy(graph) : NULL;
    return vg_result(*copy != NULL ? VG_OK : VG_INVALID_VALUE);
}

static int add(void **out, void *handle, void *const *deps, size_t n, enum vg_node_kind kind, int type)
{
    struct vg_graph *graph = graph_of(handle);
    uint32_t *index = graph != NULL ? calloc(n + 1, sizeof *index) : NULL;
    if (index == NULL)
        return VG_INVALID_VALUE;
    for (size_t i = 0; i < n; i++) {
        struct vg_node *dep = node_of(deps[i]);
        index[i] = dep != NULL && dep->graph == graph ? dep->index : UINT32_MAX;
    }
    struct vg_node *node = vg_graph_add(graph, kind, index, (uint32_t)n);
    free(index);
    *out = node;
    if (node == NULL)
        return VG_INVALID_VALUE;
    node->type = type;
    return VG_OK;
}

/* Keeps what the program said, to be read again. */
static void keep(struct vg_node *node, const void *params, size_t bytes)
{
    memset(node->params, 0, sizeof node->params);
    memcpy(node->params, params, bytes);
}
_Static_assert(sizeof(struct vg_kernel_node) <= sizeof(((struct vg_node *)0)->params), "fits into a node");

static int set_kernel(struct vg_node *node, const struct vg_kernel_node *p)
{
    struct vg_launch l = {.kernel = vg_kernel_of(p->function),
                          .grid = p->grid,
                          .block = p->block,
                          .shared = p->shared,
                          .args = p->args,
                          .later = true};
    if (l.kernel == NULL)
        return VG_INVALID_DEVICE_FUNCTION;
    vg_drive();
    node->rec = vg_launch_record(&l);
    keep(node, p, sizeof *p);
    return VG_OK;
}

VG_EXPORT int cudaGraphAddKernelNode(void **node, void *graph, void *const *deps, size_t n,
                                     const struct vg_kernel_node *p)
{
    int status = add(node, graph, deps, n, VG_NODE_REC, NODE_KERNEL);
    return vg_result(status == VG_OK ? set_kernel(*node, p) : status);
}

VG_EXPORT int cudaGraphKernelNodeSetParams(void *node, const struct vg_kernel_node *p)
{
    return vg_result(node_of(node) != NULL ? set_kernel(node, p) : VG_INVALID_VALUE);
}

VG_EXPORT int cudaGraphKernelNodeGetParams(void *handle, struct vg_kernel_node *p)
{
    struct vg_node *node = node_of(handle);
    if (node == NULL || node->kind != VG_NODE_REC || node->type != NODE_KERNEL)
        return vg_result(VG_INVALID_VALUE);
    memcpy(p, node->params, sizeof *p);
    return VG_OK;
}

VG_EXPORT int cudaGraphExecKernelNodeSetParams(void *exec_handle, void *handle, const struct vg_kernel_node *p)
{
    struct vg_exec *exec = exec_of(exec_handle);
    struct vg_node *node = node_of(handle);
    if (exec == NULL || node == NULL || node->index >= exec->graph->n)
        return vg_result(VG_INVALID_VALUE);
    return vg_result(set_kernel(exec->graph->nodes[node->index], p));
}

static struct maq_rec record_of_copy(const void *to, const void *from, size_t bytes)
{
    struct vg_alloc t, f;
    bool to_device = vg_mem_find(to, &t) && t.kind != MAQ_REC_PINNED;
    bool from_device = vg_mem_find(from, &f) && f.kind != MAQ_REC_PINNED;
    enum maq_rec_copy d = to_device     ? (from_device ? MAQ_REC_D2D : MAQ_REC_H2D)
                          : from_device ? MAQ_REC_D2H
                                        : MAQ_REC_H2H;
    return vg_copy_record(d, bytes);
}

VG_EXPORT int cudaGraphAddMemcpyNode1D(void **node, void *graph, void *const *deps, size_t n, void *to,
                                       const void *from, size_t bytes, int kind)
{
    (void)kind;
    int status = add(node, graph, deps, n, VG_NODE_REC, NODE_MEMCPY);
    if (status == VG_OK)
        ((struct vg_node *)*node)->rec = record_of_copy(to, from, bytes);
    return vg_result(status);
}

VG_EXPORT int cudaGraphAddMemcpyNode(void **node, void *graph, void *const *deps, size_t n, const struct vg_copy_3d *p)
{
    return cudaGraphAddMemcpyNode1D(node, graph, deps, n, p->to.p, p->from.p, p->extent.x * p->extent.y * p->extent.z,
                                    p->kind);
}

VG_EXPORT int cudaGraphAddMemsetNode(void **node, void *graph, void *const *deps, size_t n,
                                     const struct vg_memset_node *p)
{
    int status = add(node, graph, deps, n, VG_NODE_REC, NODE_MEMSET);
    if (status == VG_OK) {
        struct vg_node *at = *node;
        at->rec = vg_set_record((uint64_t)p->element * p->width * p->height);
        keep(at, p, sizeof *p);
    }
    return vg_result(status);
}

VG_EXPORT int cudaGraphAddHostNode(void **node, void *graph, void *const *deps, size_t n, const struct vg_host_node *p)
{
    int status = add(node, graph, deps, n, VG_NODE_HOST, NODE_HOST);
    if (status == VG_OK) {
        struct vg_node *at = *node;
        at->function = p->function;
        at->data = p->data;
        keep(at, p, sizeof *p);
    }
    return vg_result(status);
}

VG_EXPORT int cudaGraphAddEmptyNode(void **node, void *graph, void *const *deps, size_t n)
{
    return vg_result(add(node, graph, deps, n, VG_NODE_EMPTY, NODE_EMPTY));
}

VG_EXPORT int cudaGraphAddChildGraphNode(void **node, void *graph, void *const *deps, size_t n, void *child)
{
    int status = graph_of(child) != NULL ? add(node, graph, deps, n, VG_NODE_CHILD, NODE_GRAPH) : VG_INVALID_VALUE;
    if (status == VG_OK)
        ((struct vg_node *)*node)->child = vg_graph_copy(child);
    return vg_result(status);
}

static int depend(void *const *from, void *const *to, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct vg_node *a = node_of(from[i]), *b = node_of(to[i]);
        if (a == NULL || b == NULL || a->graph != b->graph || a == b || !vg_node_depend(b, a->index))
            return VG_INVALID_VALUE;
    }
    return VG_OK;
}

VG_EXPORT int cudaGraphAddDependencies(void *graph, void *const *from, void *const *to, const void *edges, size_t n)
{
    (void)graph; /* CUDA 12's first form: (graph, from, to, n) */
    return vg_result(depend(from, to, vg_cuda_major < 13 ? (size_t)(uintptr_t)edges : n));
}

VG_EXPORT int cudaGraphAddDependencies_v2(void *graph, void *const *from, void *const *to, const void *edges, size_t n)
{
    (void)graph, (void)edges;
    return vg_result(depend(from, to, n));
}

/* --- looking at graphs -------------------------------------------------------------------------------------------------------- */

static int list(struct vg_graph *graph, void **nodes, size_t *n, bool roots)
{
    size_t count = 0;
    if (graph == NULL)
        return VG_INVALID_VALUE;
    for (uint32_t i = 0; i < graph->n; i++) {
        if (roots && graph->nodes[i]->n_deps > 0)
            continue;
        if (nodes != NULL && count < *n)
            nodes[count] = graph->nodes[i];
        count++;
    }
    *n = nodes == NULL || count < *n ? count : *n;
    return VG_OK;
}

VG_EXPORT int cudaGraphGetNodes(void *graph, void **nodes, size_t *n)
{
    return vg_result(list(graph_of(graph), nodes, n, false));
}

VG_EXPORT int cudaGraphGetRootNodes(void *graph, void **nodes, size_t *n)
{
    return vg_result(list(graph_of(graph), nodes, n, true));
}

static int dependencies(struct vg_node *node, void **out, size_t *n)
{
    if (node == NULL)
        return VG_INVALID_VALUE;
    for (size_t i = 0; out != NULL && i < *n && i < node->n_deps; i++)
        out[i] = node->graph->nodes[node->deps[i]];
    *n = out == NULL || node->n_deps < *n ? node->n_deps : *n;
    return VG_OK;
}

/* CUDA 12's first form has no edge data: (node, dependencies, n). */
VG_EXPORT int cudaGraphNodeGetDependencies(void *node, void **out, void *edges, size_t *n)
{
    return vg_result(dependencies(node_of(node), out, vg_cuda_major < 13 ? edges : n));
}

VG_EXPORT int cudaGraphNodeGetDependencies_v2(void *node, void **out, void *edges, size_t *n)
{
    (void)edges;
    return vg_result(dependencies(node_of(node), out, n));
}

static int edges_of(struct vg_graph *graph, void **from, void **to, size_t *n)
{
    size_t count = 0;
    if (graph == NULL)
        return VG_INVALID_VALUE;
    for (uint32_t i = 0; i < graph->n; i++)
        for (uint32_t k = 0; k < graph->nodes[i]->n_deps; k++, count++)
            if (from != NULL && to != NULL && count < *n) {
                from[count] = graph->nodes[graph->nodes[i]->deps[k]];
                to[count] = graph->nodes[i];
            }
    *n = from == NULL || count < *n ? count : *n;
    return VG_OK;
}

VG_EXPORT int cudaGraphGetEdges(void *graph, void **from, void **to, void *data, size_t *n)
{
    return vg_result(edges_of(graph_of(graph), from, to, vg_cuda_major < 13 ? data : n));
}

VG_EXPORT int cudaGraphGetEdges_v2(void *graph, void **from, void **to, void *data, size_t *n)
{
    (void)data;
    return vg_result(edges_of(graph_of(graph), from, to, n));
}

VG_EXPORT int cudaGraphNodeGetType(void *handle, int *type)
{
    struct vg_node *node = node_of(handle);
    if (node == NULL)
        return vg_result(VG_INVALID_VALUE);
    *type = node->type;
    return VG_OK;
}

VG_EXPORT int cudaGraphChildGraphNodeGetGraph(void *handle, void **graph)
{
    struct vg_node *node = node_of(handle);
    if (node == NULL || node->child == NULL)
        return vg_result(VG_INVALID_VALUE);
    *graph = node->child;
    return VG_OK;
}

VG_EXPORT int cudaGraphDebugDotPrint(void *handle, const char *path, unsigned flags)
{
    (void)flags;
    struct vg_graph *graph = graph_of(handle);
    FILE *f = graph != NULL ? fopen(path, "we") : NULL;
    if (f == NULL)
        return vg_result(graph != NULL ? VG_FILE_NOT_FOUND : VG_INVALID_VALUE);
    fputs("digraph graph_0 {\n", f);
    for (uint32_t i = 0; i < graph->n; i++) {
        fprintf(f, "  n%u [label=\"%u: type %d\"];\n", i, i, graph->nodes[i]->type);
        for (uint32_t k = 0; k < graph->nodes[i]->n_deps; k++)
            fprintf(f, "  n%u -> n%u;\n", graph->nodes[i]->deps[k], i);
    }
    fputs("}\n", f);
    fclose(f);
    return VG_OK;
}

/* --- running -------------------------------------------------------------------------------------------------------------------- */

VG_EXPORT int cudaGraphInstantiate(void **exec, void *handle, unsigned long long flags)
{
    (void)flags;
    vg_call();
    struct vg_graph *graph = graph_of(handle);
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
    struct vg_exec *exec = exec_of(exec_handle);
    struct vg_graph *graph = graph_of(handle);
    bool ok = exec != NULL && graph != NULL && vg_exec_update(exec, graph);
    if (result != NULL)
        *result = (struct vg_update_result){.result = ok ? 0 : 2}; /* cudaGraphExecUpdateErrorTopologyChanged */
    return vg_result(ok ? VG_OK : VG_GRAPH_UPDATE_FAILURE);
}

VG_EXPORT int cudaGraphUpload(void *exec, void *stream)
{
    (void)stream;
    vg_call();
    return vg_result(exec_of(exec) != NULL ? VG_OK : VG_INVALID_VALUE);
}

/* One call of the host launches all nodes. */
VG_EXPORT int cudaGraphLaunch(void *handle, void *stream)
{
    struct vg_exec *exec = exec_of(handle);
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
    struct vg_exec *exec = exec_of(handle);
    if (exec == NULL)
        return vg_result(VG_INVALID_VALUE);
    vg_exec_free(exec);
    return VG_OK;
}

VG_EXPORT int cudaGraphExecGetFlags(void *exec, unsigned long long *flags)
{
    *flags = 0;
    return vg_result(exec_of(exec) != NULL ? VG_OK : VG_INVALID_VALUE);
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
