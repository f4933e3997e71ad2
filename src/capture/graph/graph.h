/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.h - the draft of a captured job's graph: nodes in the order in which programs are read, which is not yet
 * topological, edges as pairs, durations and names.
 *
 *   class_quotient.c     which classes meet on which communicator
 *   node_names.c         names, streams and buckets of nodes
 *   graph.c              programs to nodes
 *   topological_order.c  nodes to a frozen graph
 */
#ifndef MAQ_CAPTURE_GRAPH_GRAPH_H
#define MAQ_CAPTURE_GRAPH_GRAPH_H

#include "base/arena.h"
#include "capture/intern.h"
#include "maquette/capture_graph.h"
#include "shim/record.h"

#define MAQ_DRAFT_NODES (UINT32_C(1) << 28)

struct maq_draft_node {
    uint64_t ns;
    uint32_t stream; /* class * MAQ_STREAM_COUNT + stream */
    uint32_t name;   /* of the item, in names */
    uint8_t sort;    /* enum maq_item_sort */
    struct maq_node_tag tag;
};

struct maq_draft_edge {
    uint32_t from, to;
};

struct maq_draft {
    const struct maq_capture *capture;
    struct maq_arena *arena; /* of what stays with the graph */
    struct maq_arena scratch;
    struct maq_intern names;
    uint32_t n, size;
    struct maq_draft_node *node;
    uint32_t n_edges, edge_size;
    struct maq_draft_edge *edge;
    uint32_t n_shares, share_size;
    struct maq_graph_share *share;
    uint32_t **kind_of;   /* [class][ordinal] kind of communicator; see maq_quotient() */
    uint32_t *members_of; /* [kinds] pairs of class and ordinal that meet on it */
    uint8_t **axis;       /* [class][ordinal] enum maq_stream */
    uint8_t **stream_of;  /* [class][stream of the program] enum maq_stream */
    bool exact, failed, too_many;
};

uint32_t maq_draft_node(struct maq_draft *d, uint64_t ns, uint32_t stream, enum maq_item_sort sort, uint32_t name,
                        struct maq_node_tag tag);
void maq_draft_edge(struct maq_draft *d, uint32_t from, uint32_t to); /* from UINT32_MAX: none */
uint32_t maq_draft_name(struct maq_draft *d, const char *name);

/*
 * Kinds of communicators: two (class, ordinal) pairs are of one kind when they meet on a communicator of the job. Sets
 * kind_of, members_of and exact. A class that would meet itself under two ordinals keeps a kind of its own for each.
 */
bool maq_quotient(struct maq_draft *d);
/* The class and ordinal on the other side of a message of `class_id` on `ordinal`, `relative` positions on; NONE: unknown.
 * Clears `exact` where the ranks of the class have different ones. */
uint32_t maq_quotient_peer(struct maq_draft *d, uint32_t class_id, uint32_t ordinal, uint32_t relative,
                           uint32_t *peer_ordinal);

/* Sets axis and stream_of. */
bool maq_draft_streams(struct maq_draft *d);
/* What a captured operator is, as text, and its name without template arguments. */
const char *maq_captured_op_text(char buf[160], const struct maq_captured_op *op);
const char *maq_captured_coll_text(char buf[160], const struct maq_rec *r, uint32_t size);
/* Part of a step that an annotation of the program stands for; MAQ_BUCKET_COUNT: none. */
enum maq_bucket maq_annotation_bucket(const char *text);
enum maq_bucket maq_axis_bucket(enum maq_stream axis);

/* Orders the draft and freezes it into *out. */
enum maq_status maq_draft_freeze(struct maq_captured_graph *out, struct maq_draft *d, struct maq_diag *diag);

#endif
