/* SPDX-License-Identifier: Apache-2.0 */
/*
 * builder.h - writes an execution graph node by node, then freezes it.
 *
 * Nodes are added in a topological order. A node gets an edge from the node before it on its stream, and from
 * those given. Columns double as they grow; freeze moves nothing, it only hands them out as const.
 */
#ifndef MAQ_GRAPH_BUILDER_H
#define MAQ_GRAPH_BUILDER_H

#include "base/arena.h"
#include "graph/segment.h"
#include "maquette/graph.h"

#define MAQ_NODE_NONE UINT32_MAX

struct maq_graph_builder {
    uint32_t n_nodes, n_edges, node_size, edge_size, n_classes;
    uint32_t *item, *stream, *pred_at, *pred, *multiplicity;
    struct maq_node_tag *tag;
    uint32_t *last_on; /* [n_classes * MAQ_STREAM_COUNT] */
    bool failed;
};

/* Heap columns, owned by the builder until maq_graph_free. */
enum maq_status maq_graph_builder_init(struct maq_graph_builder *b, uint32_t n_classes, const uint32_t *multiplicity);

/* Adds a node; preds may hold MAQ_NODE_NONE. Returns its id. */
uint32_t maq_graph_add(struct maq_graph_builder *b, uint32_t class_id, enum maq_stream stream, uint32_t item,
                       struct maq_node_tag tag, const uint32_t *preds, uint32_t n_preds);

/* A pipeline transfer after a node of the sender, and behind the transfer before it where both need one port (or MAQ_NODE_NONE):
 * forward and backward use their own channels. */
uint32_t maq_graph_add_transfer(struct maq_graph_builder *b, uint32_t class_id, uint32_t item, struct maq_node_tag tag,
                                uint32_t after, uint32_t behind);

/* A node behind the given ones alone: for graphs in which a stream stands for several that run side by side. */
uint32_t maq_graph_add_loose(struct maq_graph_builder *b, uint32_t class_id, enum maq_stream stream, uint32_t item,
                             struct maq_node_tag tag, const uint32_t *preds, uint32_t n_preds);

/* Adds the steps of a segment on a class: every step without a predecessor in the segment waits for the last compute node of the
 * class and for `after`. Returns the last compute node. */
uint32_t maq_graph_add_segment(struct maq_graph_builder *b, uint32_t class_id, const struct maq_segment *segment,
                               struct maq_node_tag tag, uint32_t after);

/* The frozen graph takes over the columns. MAQ_NO_MEMORY when any addition failed (the builder is then empty). */
enum maq_status maq_graph_freeze(struct maq_graph *out, struct maq_graph_builder *b, uint32_t n_items);
void maq_graph_builder_fini(struct maq_graph_builder *b);
void maq_graph_fini(struct maq_graph *graph);

#endif
