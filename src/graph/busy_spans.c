/* SPDX-License-Identifier: Apache-2.0 */
/*
 * busy_spans.c - lists the busy spans of a class. A collective is one node on the stream of one class, and a share on
 * the streams of the others. See busy_spans.h.
 */
#include "graph/busy_spans.h"

uint32_t maq_busy_spans(struct maq_busy_span *out, const struct maq_timed_graph *g, const double *finish,
                        uint32_t class_id)
{
    uint32_t n = 0, share = 0;
    for (uint32_t v = 0; v < g->graph.n_nodes; v++) {
        uint32_t stream = g->graph.stream[v];
        bool here = stream / MAQ_STREAM_COUNT == class_id;
        for (; share < g->n_shares && g->share[share].node == v; share++)
            if (!here && g->share[share].stream / MAQ_STREAM_COUNT == class_id) {
                here = true;
                stream = g->share[share].stream;
            }
        double d = g->dur_ns[g->graph.item[v]];
        if (here && d > 0)
            out[n++] = (struct maq_busy_span){finish[v] - d, finish[v], v, stream};
    }
    return n;
}
