/* SPDX-License-Identifier: Apache-2.0 */
/*
 * time_breakdown.c - where the time of a class goes.
 *
 * Every moment of the makespan belongs to one bucket: what the compute stream does; else the communication that runs then (it is
 * exposed); else a copy; else the host, when the program is at work and has left the device without any; else waiting for others.
 * Of nodes of one rank that run at once the one that began first counts, by (start, node).
 *
 *     sum over buckets = makespan                                                            [ns]
 */
#include <stdlib.h>

#include "graph/busy_spans.h"

#define NONE UINT32_MAX

enum level { LEVEL_COMPUTE, LEVEL_COMMUNICATION, LEVEL_COPY, LEVEL_HOST, LEVEL_COUNT };

struct interval {
    double from, to;
    uint32_t node;
    uint8_t level, bucket;
};

static enum level level_of(const struct maq_timed_graph *g, uint32_t node, uint32_t stream)
{
    switch ((enum maq_item_sort)g->item_sort[g->graph.item[node]]) {
    case MAQ_ITEM_COMMUNICATION:
        return LEVEL_COMMUNICATION;
    case MAQ_ITEM_COPY:
        return LEVEL_COPY;
    case MAQ_ITEM_HOST:
    case MAQ_ITEM_GAP:
        return LEVEL_HOST;
    case MAQ_ITEM_COMPUTE:
        break;
    }
    bool beside = stream % MAQ_STREAM_COUNT != MAQ_STREAM_COMPUTE && stream % MAQ_STREAM_COUNT != MAQ_STREAM_HOST;
    return beside ? LEVEL_COMMUNICATION
                  : LEVEL_COMPUTE; /* kernels that communicate, a quantization before a dispatch */
}

static int by_start(const void *a, const void *b)
{
    const struct interval *x = a, *y = b;
    if (x->level != y->level)
        return x->level < y->level ? -1 : 1;
    if (x->from < y->from || x->from > y->from)
        return x->from < y->from ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

/* The intervals of a class, each level without overlap. */
static uint32_t gather(struct interval *out, struct maq_busy_span *all, const struct maq_timed_graph *g,
                       const double *finish, uint32_t class_id)
{
    uint32_t n = maq_busy_spans(all, g, finish, class_id);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t v = all[i].node;
        out[i] = (struct interval){all[i].from, all[i].to, v, (uint8_t)level_of(g, v, all[i].stream),
                                   g->graph.tag[v].bucket};
    }
    qsort(out, n, sizeof *out, by_start);
    uint32_t kept = 0;
    double to = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct interval x = out[i];
        to = kept > 0 && out[kept - 1].level == x.level ? to : 0;
        x.from = x.from < to ? to : x.from;
        if (x.to <= x.from)
            continue;
        to = x.to;
        out[kept++] = x;
    }
    return kept;
}

/* Takes [from, to) away from what lower levels may fill, by walking all levels side by side. */
static void sweep(struct maq_graph_times *out, const struct interval *x, uint32_t n)
{
    uint32_t at[LEVEL_COUNT], end[LEVEL_COUNT], k = 0;
    for (uint32_t level = 0; level < LEVEL_COUNT; level++) {
        at[level] = k;
        while (k < n && x[k].level == level)
            k++;
        end[level] = k;
    }
    for (double now = 0; now < out->makespan_ns;) {
        double next = out->makespan_ns;
        uint32_t who = NONE;
        for (uint32_t level = 0; level < LEVEL_COUNT && who == NONE; level++) {
            while (at[level] < end[level] && x[at[level]].to <= now)
                at[level]++;
            if (at[level] == end[level])
                continue;
            const struct interval *i = &x[at[level]];
            if (i->from <= now) {
                who = at[level];
                next = i->to < next ? i->to : next;
            } else
                next = i->from < next ? i->from : next;
        }
        out->bucket_ns[who == NONE ? MAQ_BUCKET_BUBBLE : x[who].bucket] += next - now;
        out->busy_ns += who != NONE && x[who].level == LEVEL_COMPUTE ? next - now : 0;
        now = next;
    }
}

enum maq_status maq_graph_times(struct maq_graph_times *out, uint32_t *class_id, const struct maq_timed_graph *timed,
                                const double *finish)
{
    struct interval *x = malloc(((size_t)timed->graph.n_nodes + 1) * sizeof *x);
    struct maq_busy_span *all = malloc(((size_t)timed->graph.n_nodes + 1) * sizeof *all);
    double makespan = 0;
    if (!x || !all) {
        free(all);
        free(x);
        return MAQ_NO_MEMORY;
    }
    for (uint32_t v = 0; v < timed->graph.n_nodes; v++)
        makespan = finish[v] > makespan ? finish[v] : makespan;
    *out = (struct maq_graph_times){.makespan_ns = makespan, .bucket_ns = {[MAQ_BUCKET_BUBBLE] = makespan}};
    *class_id = 0;
    for (uint32_t c = 0; c < timed->graph.n_classes; c++) {
        struct maq_graph_times t = {.makespan_ns = makespan};
        sweep(&t, x, gather(x, all, timed, finish, c));
        if (c == 0 || t.bucket_ns[MAQ_BUCKET_BUBBLE] < out->bucket_ns[MAQ_BUCKET_BUBBLE]) {
            *out = t;
            *class_id = c;
        }
    }
    free(all);
    free(x);
    return MAQ_OK;
}
