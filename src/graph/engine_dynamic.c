/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_dynamic.c - the dynamic engine: durations that depend on what else runs.
 *
 * Events are the ends of nodes. When a rank's set of running nodes changes, the nodes that go on have done
 * part of their work at the old rate and get a new end at the new one. Work is counted in units of 2^-16 ns
 * and rates in multiples of 2^-16, all integers:
 *
 *     left  -= (now - since) * rate           end = now + ceil(left / rate)
 *
 * so that a rate of 1 gives exactly the static engine's times, and every run the same bytes. An end that
 * moved leaves its old event in the queue; events carry a generation and stale ones are skipped. Ties are
 * taken by (time, node).
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "maquette/graph.h"

#define ONE 65536

struct event {
    int64_t at;
    uint32_t node, generation;
};

struct sim {
    const struct maq_graph *g;
    const double *dur;
    double *finish;
    int64_t rate[2][2]; /* [is compute][the other kind runs] */
    uint32_t *waiting;  /* predecessors left */
    uint32_t *succ_at, *succ;
    int64_t *left, *since;
    uint32_t *generation;
    uint32_t *running; /* [class * MAQ_STREAM_COUNT + stream] node or none */
    struct event *heap;
    size_t n_heap, heap_size;
    bool failed;
};

static bool before(struct event a, struct event b)
{
    return a.at != b.at ? a.at < b.at : a.node < b.node;
}

static void push(struct sim *s, struct event e)
{
    if (s->n_heap == s->heap_size) {
        size_t size = s->heap_size ? s->heap_size * 2 : 1024;
        struct event *heap = realloc(s->heap, size * sizeof *heap);
        if (!heap) {
            s->failed = true;
            return;
        }
        s->heap = heap;
        s->heap_size = size;
    }
    size_t i = s->n_heap++;
    for (; i > 0 && before(e, s->heap[(i - 1) / 2]); i = (i - 1) / 2)
        s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = e;
}

static struct event pop(struct sim *s)
{
    struct event top = s->heap[0], last = s->heap[--s->n_heap];
    size_t i = 0;
    for (size_t c = 1; c < s->n_heap; c = 2 * i + 1) {
        if (c + 1 < s->n_heap && before(s->heap[c + 1], s->heap[c]))
            c++;
        if (!before(s->heap[c], last))
            break;
        s->heap[i] = s->heap[c];
        i = c;
    }
    s->heap[i] = last;
    return top;
}

static bool is_compute(uint32_t stream)
{
    return stream % MAQ_STREAM_COUNT == MAQ_STREAM_COMPUTE;
}

/* Copy engines and the host take no SMs. */
static bool takes_sms(uint32_t stream)
{
    return stream % MAQ_STREAM_COUNT != MAQ_STREAM_COPY && stream % MAQ_STREAM_COUNT != MAQ_STREAM_HOST;
}

/* Whether a class runs compute (0) or communication (1) of some length right now. */
static bool runs(const struct sim *s, uint32_t class_id, bool compute)
{
    const uint32_t *r = &s->running[class_id * MAQ_STREAM_COUNT];
    if (compute)
        return r[MAQ_STREAM_COMPUTE] != UINT32_MAX;
    for (int i = 1; i < MAQ_STREAM_COUNT; i++)
        if (takes_sms((uint32_t)i) && r[i] != UINT32_MAX)
            return true;
    return false;
}

/* Brings the running nodes of a class to `now` at the rates of the interval that ends, `overlap_before`, and
 * re-plans them. */
static void settle(struct sim *s, uint32_t class_id, int64_t now, bool overlap_before)
{
    const uint32_t *r = &s->running[class_id * MAQ_STREAM_COUNT];
    for (int i = 0; i < MAQ_STREAM_COUNT; i++) {
        if (r[i] == UINT32_MAX)
            continue;
        uint32_t v = r[i];
        s->left[v] -= (now - s->since[v]) * s->rate[i == MAQ_STREAM_COMPUTE][overlap_before && takes_sms((uint32_t)i)];
        if (s->left[v] < 0)
            s->left[v] = 0;
        s->since[v] = now;
    }
}

static void plan_ends(struct sim *s, uint32_t class_id, int64_t now, bool overlap)
{
    const uint32_t *r = &s->running[class_id * MAQ_STREAM_COUNT];
    for (int i = 0; i < MAQ_STREAM_COUNT; i++) {
        if (r[i] == UINT32_MAX)
            continue;
        int64_t rate = s->rate[i == MAQ_STREAM_COMPUTE][overlap && takes_sms((uint32_t)i)];
        int64_t end = now + (s->left[r[i]] + rate - 1) / rate;
        push(s, (struct event){end, r[i], ++s->generation[r[i]]});
    }
}

static bool overlaps(const struct sim *s, uint32_t class_id)
{
    return runs(s, class_id, true) && runs(s, class_id, false);
}

/* Puts a node on its stream (or takes it off, node = none) and adjusts its neighbours when the overlap begins
 * or ends. */
static void set_running(struct sim *s, uint32_t stream, uint32_t node, int64_t now)
{
    uint32_t class_id = stream / MAQ_STREAM_COUNT;
    bool was = overlaps(s, class_id);
    uint32_t old = s->running[stream];
    s->running[stream] = node;
    bool is = overlaps(s, class_id);
    if (was == is) {
        if (node != UINT32_MAX) {
            int64_t rate = s->rate[is_compute(stream)][is && takes_sms(stream)];
            push(s, (struct event){now + (s->left[node] + rate - 1) / rate, node, ++s->generation[node]});
        }
        return;
    }
    s->running[stream] = UINT32_MAX; /* the newcomer has not run in the interval that ends */
    (void)old;
    settle(s, class_id, now, was);
    s->running[stream] = node;
    plan_ends(s, class_id, now, is);
}

static void start_node(struct sim *s, uint32_t v, int64_t now);

static void complete(struct sim *s, uint32_t v, int64_t now)
{
    s->finish[v] = (double)now;
    for (uint32_t e = s->succ_at[v]; e < s->succ_at[v + 1]; e++)
        if (--s->waiting[s->succ[e]] == 0)
            start_node(s, s->succ[e], now);
}

static void start_node(struct sim *s, uint32_t v, int64_t now)
{
    s->left[v] = (int64_t)s->dur[s->g->item[v]] * ONE;
    s->since[v] = now;
    if (s->left[v] == 0) { /* joins take no time and disturb nobody; their end is an event, to keep recursion flat */
        push(s, (struct event){now, v, ++s->generation[v]});
        return;
    }
    set_running(s, s->g->stream[v], v, now);
}

static bool build_successors(struct sim *s)
{
    const struct maq_graph *g = s->g;
    for (uint32_t e = 0; e < g->n_edges; e++)
        s->succ_at[g->pred[e] + 1]++;
    for (uint32_t v = 0; v < g->n_nodes; v++)
        s->succ_at[v + 1] += s->succ_at[v];
    uint32_t *fill = malloc(((size_t)g->n_nodes + 1) * sizeof *fill);
    if (!fill)
        return false;
    memcpy(fill, s->succ_at, ((size_t)g->n_nodes + 1) * sizeof *fill);
    for (uint32_t v = 0; v < g->n_nodes; v++)
        for (uint32_t e = g->pred_at[v]; e < g->pred_at[v + 1]; e++)
            s->succ[fill[g->pred[e]]++] = v;
    free(fill);
    return true;
}

static void simulate(struct sim *s, double *makespan)
{
    double end = 0;
    for (uint32_t v = 0; v < s->g->n_nodes; v++)
        s->waiting[v] = s->g->pred_at[v + 1] - s->g->pred_at[v];
    for (uint32_t v = 0; v < s->g->n_nodes; v++)
        if (s->g->pred_at[v + 1] == s->g->pred_at[v])
            start_node(s, v, 0);
    while (s->n_heap > 0 && !s->failed) {
        struct event e = pop(s);
        if (e.generation != s->generation[e.node])
            continue;
        s->generation[e.node]++;
        uint32_t stream = s->g->stream[e.node];
        if (s->running[stream] == e.node)
            set_running(s, stream, UINT32_MAX, e.at);
        complete(s, e.node, e.at);
        end = s->finish[e.node] > end ? s->finish[e.node] : end;
    }
    *makespan = end;
}

static int64_t rate_of(double slow)
{
    return slow <= 1.0 ? ONE : (int64_t)(ONE / slow + 0.5);
}

enum maq_status maq_engine_dynamic(double *makespan, double *finish, const struct maq_graph *graph, const double *dur,
                                   const struct maq_interference *interference, struct maq_diag *diag)
{
    (void)diag;
    size_t n = graph->n_nodes, streams = (size_t)graph->n_classes * MAQ_STREAM_COUNT;
    struct sim s = {.g = graph, .dur = dur, .finish = finish};
    s.rate[0][0] = s.rate[1][0] = ONE;
    s.rate[1][1] = rate_of(interference->compute);
    s.rate[0][1] = rate_of(interference->comm);
    s.waiting = calloc(n + 1, sizeof *s.waiting);
    s.succ_at = calloc(n + 2, sizeof *s.succ_at);
    s.succ = calloc((size_t)graph->n_edges + 1, sizeof *s.succ);
    s.left = calloc(n + 1, sizeof *s.left);
    s.since = calloc(n + 1, sizeof *s.since);
    s.generation = calloc(n + 1, sizeof *s.generation);
    s.running = malloc((streams + 1) * sizeof *s.running);
    bool ok = s.waiting && s.succ_at && s.succ && s.left && s.since && s.generation && s.running;
    if (ok) {
        memset(s.running, 0xff, (streams + 1) * sizeof *s.running);
        ok = build_successors(&s);
    }
    if (ok)
        simulate(&s, makespan);
    free(s.waiting);
    free(s.succ_at);
    free(s.succ);
    free(s.left);
    free(s.since);
    free(s.generation);
    free(s.running);
    free(s.heap);
    return ok && !s.failed ? MAQ_OK : MAQ_NO_MEMORY;
}
