/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.c - any graph with times and words as a trace.
 *
 *   process   a class of ranks, "rank 0 (64 ranks)"
 *   thread    a stream of it; nodes that run side by side on one get sibling threads
 *   slice     a node that takes time, under its item's name; what several classes take part in is drawn for each
 *
 * Slices carry the annotation of the program that was open and the step, where the graph knows them. Written class by class: what
 * is held beside the graph is a few numbers per node.
 */
#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/text.h"
#include "graph/busy_spans.h"
#include "maquette/trace.h"
#include "report/timeline/writer.h"

#define MAX_LANES 256

struct drawn {
    uint32_t stream; /* of the class */
    uint32_t node;
    int64_t start, end;
};

static int by_place(const void *a, const void *b)
{
    const struct drawn *x = a, *y = b;
    if (x->stream != y->stream)
        return x->stream < y->stream ? -1 : 1;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

static uint32_t gather(struct drawn *out, struct maq_busy_span *all, const struct maq_timed_graph *g,
                       const double *finish, uint32_t class_id)
{
    uint32_t n = maq_busy_spans(all, g, finish, class_id);
    for (uint32_t i = 0; i < n; i++)
        out[i] =
            (struct drawn){all[i].stream % MAQ_STREAM_COUNT, all[i].node, llround(all[i].from), llround(all[i].to)};
    qsort(out, n, sizeof *out, by_place);
    return n;
}

static void put_node(struct maq_trace_writer *w, uint32_t thread, const struct maq_timed_graph *g,
                     const struct drawn *x)
{
    const struct maq_node_tag *tag = &g->graph.tag[x->node];
    struct maq_trace_arg args[2];
    uint32_t n = 0;
    if (tag->module < g->n_modules)
        args[n++] = MAQ_TRACE_STR("annotation", g->module_name[tag->module]);
    if (tag->microbatch > 0)
        args[n++] = MAQ_TRACE_INT("step", tag->microbatch);
    struct maq_trace_slice slice = {.start_ns = x->start,
                                    .dur_ns = x->end - x->start,
                                    .name = g->item_name[g->graph.item[x->node]],
                                    .category = maq_bucket_name((enum maq_bucket)tag->bucket),
                                    .args = args,
                                    .n_args = n};
    maq_trace_slice(w, thread, &slice);
}

/* The slices of one stream: each on the first thread that is free. */
static void put_stream(struct maq_trace_writer *w, uint32_t process, const struct maq_timed_graph *g,
                       const struct drawn *x, uint32_t n)
{
    uint32_t threads[MAX_LANES], lanes = 0;
    int64_t busy_until[MAX_LANES];
    uint32_t stream = x[0].stream, shown = stream == MAQ_STREAM_HOST ? 0 : stream + 1; /* the host above the device */
    for (uint32_t i = 0; i < n; i++) {
        uint32_t lane = 0;
        while (lane < lanes && busy_until[lane] > x[i].start)
            lane++;
        if (lane == MAX_LANES)
            continue;
        if (lane == lanes) {
            char title[32];
            const char *name = maq_stream_name((enum maq_stream)stream);
            maq__snprintf(title, sizeof title, lanes > 0 ? "%s %u" : "%s", name, lanes + 1);
            threads[lanes++] =
                maq_trace_thread(w, process, shown * MAX_LANES + lane + 1, title, (int32_t)(shown * MAX_LANES + lane));
        }
        busy_until[lane] = x[i].end;
        put_node(w, threads[lane], g, &x[i]);
    }
}

static void put_class(struct maq_trace_writer *w, const struct maq_timed_graph *g, const double *finish,
                      uint32_t class_id, struct drawn *x, struct maq_busy_span *all)
{
    char name[160];
    uint32_t ranks = g->graph.multiplicity[class_id], n = gather(x, all, g, finish, class_id);
    maq__snprintf(name, sizeof name, "%.100s (%u rank%s)", g->class_name[class_id], ranks, ranks == 1 ? "" : "s");
    uint32_t process = maq_trace_process(w, class_id, name, (int32_t)class_id);
    for (uint32_t i = 0, j = 0; i < n; i = j) {
        while (j < n && x[j].stream == x[i].stream)
            j++;
        put_stream(w, process, g, &x[i], j - i);
    }
}

enum maq_status maq_trace_graph(const char *path, const struct maq_timed_graph *timed, const double *finish_ns,
                                struct maq_diag *diag)
{
    struct maq_trace_writer *w = NULL;
    struct drawn *x = malloc(((size_t)timed->graph.n_nodes + 1) * sizeof *x);
    struct maq_busy_span *all = malloc(((size_t)timed->graph.n_nodes + 1) * sizeof *all);
    enum maq_status status = MAQ_OK;
    if (!x || !all) {
        free(all);
        free(x);
        return maq_no_memory(diag, "a trace");
    }
    status = maq_trace_open(&w, maq_trace_format_of(path), path, diag);
    if (status == MAQ_OK) {
        for (uint32_t c = 0; c < timed->graph.n_classes && maq_trace_status(w) == MAQ_OK; c++)
            put_class(w, timed, finish_ns, c, x, all);
        status = maq_trace_close(w, diag);
    }
    free(all);
    free(x);
    return status;
}
