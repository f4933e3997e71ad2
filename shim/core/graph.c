/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.c - CUDA graphs as a program builds them: nodes, what they do, and what they depend on.
 *
 * In a CUDA program: cudaGraph_t and cudaGraphNode_t.
 */
#include "shim/core/graph.h"

#include <stdlib.h>
#include <string.h>

#include "shim/grow.h"

struct vg_graph *vg_graph_new(void)
{
    struct vg_graph *graph = calloc(1, sizeof *graph);
    if (graph != NULL)
        graph->magic = VG_GRAPH_MAGIC;
    return graph;
}

static void free_node(struct vg_node *node)
{
    if (node->child != NULL)
        vg_graph_free(node->child);
    free(node->parts);
    free(node->deps);
    memset(node, 0, sizeof *node);
    free(node);
}

void vg_graph_free(struct vg_graph *graph)
{
    for (uint32_t i = 0; i < graph->n; i++)
        free_node(graph->nodes[i]);
    free(graph->nodes);
    memset(graph, 0, sizeof *graph);
    free(graph);
}

bool vg_node_depend(struct vg_node *node, uint32_t on)
{
    uint32_t *bigger = vg_grown(node->deps, node->n_deps, &node->deps_room, 2, sizeof *node->deps);
    if (bigger == NULL)
        return false;
    node->deps = bigger;
    node->deps[node->n_deps++] = on;
    return true;
}

struct vg_node *vg_graph_add(struct vg_graph *graph, enum vg_node_kind kind, const uint32_t *deps, uint32_t n_deps)
{
    struct vg_node **bigger = vg_grown(graph->nodes, graph->n, &graph->room, 16, sizeof(struct vg_node *));
    if (bigger == NULL)
        return NULL;
    graph->nodes = bigger;
    struct vg_node *node = calloc(1, sizeof *node);
    if (node == NULL)
        return NULL;
    *node = (struct vg_node){.magic = VG_NODE_MAGIC, .index = graph->n, .graph = graph, .kind = kind};
    for (uint32_t i = 0; i < n_deps; i++)
        if (deps[i] >= graph->n || !vg_node_depend(node, deps[i])) {
            free_node(node);
            return NULL;
        }
    graph->nodes[graph->n++] = node;
    return node;
}

bool vg_node_copy_work(struct vg_node *to, const struct vg_node *from)
{
    struct vg_meeting *parts = NULL;
    struct vg_graph *child = NULL;
    if (from->n_parts > 0) {
        if ((parts = malloc(from->n_parts * sizeof *parts)) == NULL)
            return false;
        memcpy(parts, from->parts, from->n_parts * sizeof *parts);
    }
    if (from->child != NULL && (child = vg_graph_copy(from->child)) == NULL) {
        free(parts);
        return false;
    }
    free(to->parts);
    if (to->child != NULL)
        vg_graph_free(to->child);
    to->kind = from->kind;
    to->type = from->type;
    to->rec = from->rec;
    to->parts = parts;
    to->n_parts = from->n_parts;
    to->function = from->function;
    to->data = from->data;
    to->child = child;
    memcpy(to->params, from->params, sizeof to->params);
    return true;
}

struct vg_graph *vg_graph_copy(const struct vg_graph *graph)
{
    struct vg_graph *copy = vg_graph_new();
    for (uint32_t i = 0; copy != NULL && i < graph->n; i++) {
        struct vg_node *node = vg_graph_add(copy, graph->nodes[i]->kind, NULL, 0);
        bool ok = node != NULL && vg_node_copy_work(node, graph->nodes[i]);
        for (uint32_t k = 0; ok && k < graph->nodes[i]->n_deps; k++)
            ok = vg_node_depend(node, graph->nodes[i]->deps[k]);
        if (!ok) {
            vg_graph_free(copy);
            copy = NULL;
        }
    }
    return copy;
}
