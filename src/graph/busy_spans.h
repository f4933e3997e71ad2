/* SPDX-License-Identifier: Apache-2.0 */
/* busy_spans.h - what one class of ranks does when: every item of it that takes time, on the stream on which that class runs it. */
#ifndef MAQ_GRAPH_BUSY_SPANS_H
#define MAQ_GRAPH_BUSY_SPANS_H

#include "maquette/graph.h"

struct maq_busy_span {
    double from, to; /* ns */
    uint32_t node;
    uint32_t stream; /* of the graph; modulo MAQ_STREAM_COUNT that of the class */
};

/* In the order of nodes. `out` has room for g->graph.n_nodes; returns how many there are. */
uint32_t maq_busy_spans(struct maq_busy_span *out, const struct maq_timed_graph *g, const double *finish,
                        uint32_t class_id);

#endif
