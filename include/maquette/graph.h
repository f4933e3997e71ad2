/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.h - the execution graph, and the engines that put times on it.
 *
 * A node is one operator or one collective on one stream of one rank class (ranks that do the same are one
 * class). Edges are stream order, data and events; a collective or a transfer that several classes share is
 * one node with edges from all of them. Node ids are a topological order: every predecessor has a smaller id.
 * Columns are parallel arrays, ids are 32 bits, predecessors are in compressed rows.
 *
 *     start(v)  = max over predecessors u of finish(u), 0 without any
 *     finish(v) = start(v) + duration(v)                                                       [ns]
 *
 * A graph is built by one thread, frozen, and then read-only and shareable. Durations are not part of it:
 * nodes name a cost *item*, and an engine is given a vector of item durations.
 */
#ifndef MAQUETTE_GRAPH_H
#define MAQUETTE_GRAPH_H

#include "maquette/cost.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Streams of a rank; one resource each, executed in order. */
enum maq_stream {
    MAQ_STREAM_COMPUTE,
    MAQ_STREAM_TP,
    MAQ_STREAM_CP,
    MAQ_STREAM_EP,
    MAQ_STREAM_DP,
    MAQ_STREAM_PP,   /* send side of pipeline transfers */
    MAQ_STREAM_COPY, /* host copies */
    MAQ_STREAM_HOST, /* the program itself, where a graph has it */
    MAQ_STREAM_COUNT
};
MAQ_API const char *maq_stream_name(enum maq_stream stream);

/* What a moment of a device's step is spent on. */
enum maq_bucket {
    MAQ_BUCKET_FORWARD,
    MAQ_BUCKET_BACKWARD,
    MAQ_BUCKET_RECOMPUTE,
    MAQ_BUCKET_TP, /* exposed communication, by group */
    MAQ_BUCKET_CP,
    MAQ_BUCKET_EP,
    MAQ_BUCKET_PP,
    MAQ_BUCKET_DP,
    MAQ_BUCKET_BUBBLE, /* waiting for another stage */
    MAQ_BUCKET_OPTIMIZER,
    MAQ_BUCKET_HOST,  /* waiting for the host to issue work */
    MAQ_BUCKET_OTHER, /* host copies */
    MAQ_BUCKET_COUNT
};
MAQ_API const char *maq_bucket_name(enum maq_bucket bucket);

/* What a node is, for reports and traces; engines never read it. */
struct maq_node_tag {
    uint8_t bucket; /* enum maq_bucket */
    uint8_t part;   /* enum maq_part */
    uint8_t direction;
    uint8_t zero;
    uint16_t module; /* index into names of the graph; UINT16_MAX = none */
    uint16_t layer;  /* UINT16_MAX = none */
    uint32_t microbatch;
};

struct maq_graph {
    uint32_t n_nodes, n_edges, n_classes, n_items;
    const uint32_t *item;           /* [n_nodes] -> duration vector */
    const uint32_t *stream;         /* [n_nodes] class * MAQ_STREAM_COUNT + stream */
    const uint32_t *pred_at;        /* [n_nodes + 1] -> pred */
    const uint32_t *pred;           /* [n_edges] node ids */
    const struct maq_node_tag *tag; /* [n_nodes] */
    const uint32_t *multiplicity;   /* [n_classes] ranks in the class */
};

/*
 * Static engine: one pass, K duration vectors at once. dur[item * K + k] and finish[node * K + k] in ns, held
 * exactly in doubles (< 2^53); makespan[k] is the largest finish, 0 for an empty graph.
 */
MAQ_API void maq_engine_static(double *makespan, double *finish, const struct maq_graph *graph, uint32_t K,
                               const double *dur);

/*
 * Dynamic engine: event-driven. Kernels and communication that run on one rank at the same time slow each
 * other down, on the overlap only: the rate of a node on stream s is 1 / slow[s is COMPUTE][some node runs on
 * the other kind]. With all factors 1 the result equals the static engine's, bit for bit.
 */
MAQ_API enum maq_status maq_engine_dynamic(double *makespan, double *finish, const struct maq_graph *graph,
                                           const double *dur, const struct maq_interference *interference,
                                           struct maq_diag *diag);

/*
 * A graph with times and words: all that a table, a trace or a distribution needs, whoever built it. A node that several
 * classes take part in stands on the stream of one of them; `share` has the others, in order of their nodes.
 */
enum maq_item_sort { MAQ_ITEM_COMPUTE, MAQ_ITEM_COMMUNICATION, MAQ_ITEM_COPY, MAQ_ITEM_HOST, MAQ_ITEM_GAP };
struct maq_graph_share {
    uint32_t node, stream; /* stream: class * MAQ_STREAM_COUNT + stream */
};
struct maq_timed_graph {
    struct maq_graph graph;
    const double *dur_ns;         /* [graph.n_items] */
    const char *const *item_name; /* [graph.n_items] "gemm 8192x14336x4096 bf16" */
    const uint8_t *item_sort;     /* [graph.n_items] enum maq_item_sort */
    uint32_t n_shares;
    const struct maq_graph_share *share;
    const char *const *class_name;  /* [graph.n_classes] */
    const char *const *module_name; /* for maq_node_tag.module */
    uint32_t n_modules;
};

/* Where the time of one class goes, moment by moment; the buckets add up to the makespan. */
struct maq_graph_times {
    double makespan_ns;
    double bucket_ns[MAQ_BUCKET_COUNT];
    double busy_ns; /* of the compute stream */
};
/* Of the class in which the least time is waiting for others; *class_id says which. finish: of the static engine. */
MAQ_API enum maq_status maq_graph_times(struct maq_graph_times *out, uint32_t *class_id,
                                        const struct maq_timed_graph *timed, const double *finish);

/* Start of a node from the finish times of its predecessors (K = 1). */
MAQ_API double maq_graph_start(const struct maq_graph *graph, const double *finish, uint32_t node);

#ifdef __cplusplus
}
#endif
#endif
