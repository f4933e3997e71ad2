/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.c - the runtime's calls for CUDA graphs that a program builds by hand, and for looking at any.
 */
#include "shim/cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODE_KERNEL, NODE_MEMCPY, NODE_MEMSET, NODE_HOST, NODE_GRAPH, NODE_EMPTY }; /* enum cudaGraphNodeType */

/* --- graphs by hand --------------------------------------------------------------------------------------------------------- */

VG_EXPORT int cudaGraphCreate(void **graph, unsigned flags)
{
    (void)flags;
    *graph = vg_graph_new();
    return vg_result(*graph != NULL ? VG_OK : VG_OUT_OF_MEMORY);
}

VG_EXPORT int cudaGraphDestroy(void *handle)
{
    struct vg_graph *graph = vg_graph_of(handle);
    if (graph == NULL)
        return vg_result(VG_INVALID_VALUE);
    vg_graph_free(graph);
    return VG_OK;
}

VG_EXPORT int cudaGraphClone(void **copy, void *handle)
{
    struct vg_graph *graph = vg_graph_of(handle);
    *copy = graph != NULL ? vg_graph_copy(graph) : NULL;
    return vg_result(*copy != NULL ? VG_OK : VG_INVALID_VALUE);
}

static int add(void **out, void *handle, void *const *deps, size_t n, enum vg_node_kind kind, int type)
{
    struct vg_graph *graph = vg_graph_of(handle);
    uint32_t *index = graph != NULL ? calloc(n + 1, sizeof *index) : NULL;
    if (index == NULL)
        return VG_INVALID_VALUE;
    for (size_t i = 0; i < n; i++) {
        struct vg_node *dep = vg_node_of(deps[i]);
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
    return vg_result(vg_node_of(node) != NULL ? set_kernel(node, p) : VG_INVALID_VALUE);
}

VG_EXPORT int cudaGraphKernelNodeGetParams(void *handle, struct vg_kernel_node *p)
{
    struct vg_node *node = vg_node_of(handle);
    if (node == NULL || node->kind != VG_NODE_REC || node->type != NODE_KERNEL)
        return vg_result(VG_INVALID_VALUE);
    memcpy(p, node->params, sizeof *p);
    return VG_OK;
}

VG_EXPORT int cudaGraphExecKernelNodeSetParams(void *exec_handle, void *handle, const struct vg_kernel_node *p)
{
    struct vg_exec *exec = vg_exec_of(exec_handle);
    struct vg_node *node = vg_node_of(handle);
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
    int status = vg_graph_of(child) != NULL ? add(node, graph, deps, n, VG_NODE_CHILD, NODE_GRAPH) : VG_INVALID_VALUE;
    if (status == VG_OK)
        ((struct vg_node *)*node)->child = vg_graph_copy(child);
    return vg_result(status);
}

static int depend(void *const *from, void *const *to, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct vg_node *a = vg_node_of(from[i]), *b = vg_node_of(to[i]);
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
    return vg_result(list(vg_graph_of(graph), nodes, n, false));
}

VG_EXPORT int cudaGraphGetRootNodes(void *graph, void **nodes, size_t *n)
{
    return vg_result(list(vg_graph_of(graph), nodes, n, true));
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
    return vg_result(dependencies(vg_node_of(node), out, vg_cuda_major < 13 ? edges : n));
}

VG_EXPORT int cudaGraphNodeGetDependencies_v2(void *node, void **out, void *edges, size_t *n)
{
    (void)edges;
    return vg_result(dependencies(vg_node_of(node), out, n));
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
    return vg_result(edges_of(vg_graph_of(graph), from, to, vg_cuda_major < 13 ? data : n));
}

VG_EXPORT int cudaGraphGetEdges_v2(void *graph, void **from, void **to, void *data, size_t *n)
{
    (void)data;
    return vg_result(edges_of(vg_graph_of(graph), from, to, n));
}

VG_EXPORT int cudaGraphNodeGetType(void *handle, int *type)
{
    struct vg_node *node = vg_node_of(handle);
    if (node == NULL)
        return vg_result(VG_INVALID_VALUE);
    *type = node->type;
    return VG_OK;
}

VG_EXPORT int cudaGraphChildGraphNodeGetGraph(void *handle, void **graph)
{
    struct vg_node *node = vg_node_of(handle);
    if (node == NULL || node->child == NULL)
        return vg_result(VG_INVALID_VALUE);
    *graph = node->child;
    return VG_OK;
}

VG_EXPORT int cudaGraphDebugDotPrint(void *handle, const char *path, unsigned flags)
{
    (void)flags;
    struct vg_graph *graph = vg_graph_of(handle);
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
