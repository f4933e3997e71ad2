/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.h - CUDA graphs: what a capture makes, what a program builds by hand, what is launched.
 */
#ifndef MAQ_SHIM_GRAPH_H
#define MAQ_SHIM_GRAPH_H

#include "shim/core/stream.h"

enum vg_node_kind { VG_NODE_EMPTY, VG_NODE_REC, VG_NODE_PARTS, VG_NODE_HOST, VG_NODE_CHILD };
enum { VG_GRAPH_MAGIC = 0x67726170, VG_NODE_MAGIC = 0x6e6f6465, VG_EXEC_MAGIC = 0x65786563 };

struct vg_graph;
struct vg_node {
    uint32_t magic, index;
    struct vg_graph *graph;
    enum vg_node_kind kind;
    int type; /* enum cudaGraphNodeType, for the program to read */
    struct maq_rec rec;
    struct vg_meeting *parts;
    uint32_t n_parts;
    void (*function)(void *);
    void *data;
    struct vg_graph *child;
    uint32_t *deps, n_deps, deps_room;
    unsigned char params[64]; /* what the program said of it, for cudaGraphKernelNodeGetParams() and its like */
};
struct vg_graph {
    uint32_t magic, n, room;
    struct vg_node **nodes; /* a node comes after what it depends on, where nothing was added by hand later */
};
struct vg_capture {
    uint64_t id;
    struct vg_graph *graph;
    struct vg_stream *origin;
    int mode;
    bool spoiled;
};
struct vg_step {
    enum { VG_STEP_NODE, VG_STEP_RECORD, VG_STEP_WAIT } kind;
    uint32_t branch, what; /* node, or event */
};
struct vg_exec {
    uint32_t magic, n_steps, room, n_events;
    struct vg_graph *graph; /* its own copy */
    struct vg_step *steps;
    struct vg_event **events;
};

/* --- graph.c ------------------------------------------------------------------------------------------------------------ */
struct vg_graph *vg_graph_new(void);
struct vg_graph *vg_graph_copy(const struct vg_graph *graph);
void vg_graph_free(struct vg_graph *graph);
/* A node that depends on those of `deps`; NULL = out of host memory. */
struct vg_node *vg_graph_add(struct vg_graph *graph, enum vg_node_kind kind, const uint32_t *deps, uint32_t n_deps);
bool vg_node_depend(struct vg_node *node, uint32_t on);
/* Takes over what another node does, not what it depends on; false: no memory, and nothing is changed. */
bool vg_node_copy_work(struct vg_node *to, const struct vg_node *from);

/* --- graph_exec.c ------------------------------------------------------------------------------------------------------- */
/* NULL: the graph has a cycle, or no memory. */
struct vg_exec *vg_exec_new(const struct vg_graph *graph);
void vg_exec_launch(struct vg_exec *exec, struct vg_stream *s);
void vg_exec_free(struct vg_exec *exec);
/* Takes over what the nodes of `graph` do; false where its shape is another. */
bool vg_exec_update(struct vg_exec *exec, const struct vg_graph *graph);

/* --- capture.c ---------------------------------------------------------------------------------------------------------- */
/* false: the stream is captured already, or is the legacy one. */
bool vg_capture_begin(struct vg_stream *s, int mode);
/* NULL: spoiled, or not begun on this stream. The caller owns the graph. */
struct vg_graph *vg_capture_end(struct vg_stream *s);
/* The next captured operation depends on this node too. */
bool vg_capture_tip(struct vg_stream *s, uint32_t node);

/* What goes into a stream while it is captured. */
void vg_capture_rec(struct vg_stream *s, struct maq_rec rec);
void vg_capture_parts(struct vg_stream *s, const struct vg_meeting *parts, uint32_t n);
void vg_capture_host(struct vg_stream *s, void (*function)(void *), void *data);
void vg_capture_record(struct vg_event *e, struct vg_stream *s);
bool vg_capture_wait(struct vg_stream *s, struct vg_event *e); /* false: the event was not recorded in a capture */

/* Handles of the program; NULL: that is none. */
static inline struct vg_graph *vg_graph_of(void *handle)
{
    struct vg_graph *graph = handle;
    return graph != NULL && graph->magic == VG_GRAPH_MAGIC ? graph : NULL;
}
static inline struct vg_node *vg_node_of(void *handle)
{
    struct vg_node *node = handle;
    return node != NULL && node->magic == VG_NODE_MAGIC ? node : NULL;
}
static inline struct vg_exec *vg_exec_of(void *handle)
{
    struct vg_exec *exec = handle;
    return exec != NULL && exec->magic == VG_EXEC_MAGIC ? exec : NULL;
}

#endif
