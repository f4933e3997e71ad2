/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train.c - the graph of a training step, with the times an engine put on it, as a trace.
 *
 *   process   a rank class: one pipeline stage, "stage 3 (1,024 ranks)"
 *   thread    a stream of it; transfers that overlap (they use channels of their own) get sibling threads
 *   slice     a node that takes time: "linear_fc1 gemm"; on the compute stream inside its layer, and that inside its
 *             pass ("forward 12": forward pass of microbatch 12)
 *   arrow     from a pipeline transfer to the first node of the task that waited for it
 *   counter   live activations of a rank of the stage
 *
 * Slices are written stream by stream, so that what is held beside the graph is a few numbers per node.
 */
#include "maquette/trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/text.h"
#include "report/timeline/writer.h"

#define NONE UINT32_MAX
#define NO_LAYER UINT16_MAX
#define MAX_ARRIVALS 8 /* transfers that one task may wait for; schedules have at most three */
#define MAX_LANES 1024

struct drawing {
    struct maq_trace_writer *w;
    const struct maq_train_graph *train;
    const struct maq_graph *g;
    const double *finish;
    struct maq_arena arena;
    uint32_t *first;                     /* [streams + 1] -> order */
    uint32_t *order;                     /* drawn nodes by stream, in order of their start */
    uint32_t *arrival;                   /* [nodes] first transfer that ends at this node; NONE */
    uint32_t *next;                      /* [nodes] the next one that ends at the same node */
    uint8_t *leaves;                     /* [nodes] an arrow starts here */
    const char **item_text, **item_word; /* [items] "gemm 8x8x8 bf16" and "gemm" */
};

static bool is_drawn(const struct drawing *d, uint32_t node)
{
    return d->train->dur_ns[d->g->item[node]] > 0;
}

static int64_t start_of(const struct drawing *d, uint32_t node)
{
    return llround(maq_graph_start(d->g, d->finish, node));
}

static int64_t end_of(const struct drawing *d, uint32_t node)
{
    return llround(d->finish[node]);
}

static enum maq_stream stream_of(const struct drawing *d, uint32_t node)
{
    return (enum maq_stream)(d->g->stream[node] % MAQ_STREAM_COUNT);
}

/* --- preparation ------------------------------------------------------------------------------------------------ */

/* Drawn nodes by stream. Ids grow along a stream, and so do starts; only transfers have to be put in order. */
static bool sort_streams(struct drawing *d)
{
    uint32_t streams = d->g->n_classes * MAQ_STREAM_COUNT;
    d->first = MAQ_ARENA_NEW(&d->arena, uint32_t, (size_t)streams + 1);
    d->order = MAQ_ARENA_NEW(&d->arena, uint32_t, d->g->n_nodes);
    uint32_t *at = MAQ_ARENA_NEW(&d->arena, uint32_t, streams);
    if (!d->first || !d->order || !at)
        return false;
    for (uint32_t v = 0; v < d->g->n_nodes; v++)
        d->first[d->g->stream[v] + 1] += is_drawn(d, v);
    for (uint32_t s = 0; s < streams; s++) {
        d->first[s + 1] += d->first[s];
        at[s] = d->first[s];
    }
    for (uint32_t v = 0; v < d->g->n_nodes; v++) {
        uint32_t s = d->g->stream[v];
        if (!is_drawn(d, v))
            continue;
        uint32_t i = at[s]++;
        int64_t start = start_of(d, v);
        for (; i > d->first[s] && start_of(d, d->order[i - 1]) > start; i--) /* nearly sorted already */
            d->order[i] = d->order[i - 1];
        d->order[i] = v;
    }
    return true;
}

/*
 * Where the arrows go: a transfer of another class that a node waits for arrives at the next drawn node of that
 * compute stream.
 */
static bool find_arrivals(struct drawing *d)
{
    struct waiting {
        uint32_t n, transfer[MAX_ARRIVALS];
    } *waiting = MAQ_ARENA_NEW(&d->arena, struct waiting, d->g->n_classes);
    d->arrival = MAQ_ARENA_NEW(&d->arena, uint32_t, d->g->n_nodes);
    d->next = MAQ_ARENA_NEW(&d->arena, uint32_t, d->g->n_nodes);
    d->leaves = MAQ_ARENA_NEW(&d->arena, uint8_t, d->g->n_nodes);
    if (!waiting || !d->arrival || !d->next || !d->leaves)
        return false;
    for (uint32_t v = 0; v < d->g->n_nodes; v++) {
        uint32_t class_id = d->g->stream[v] / MAQ_STREAM_COUNT;
        struct waiting *here = &waiting[class_id];
        d->arrival[v] = d->next[v] = NONE;
        if (stream_of(d, v) != MAQ_STREAM_COMPUTE)
            continue;
        for (uint32_t e = d->g->pred_at[v]; e < d->g->pred_at[v + 1]; e++) {
            uint32_t u = d->g->pred[e];
            bool foreign = d->g->stream[u] / MAQ_STREAM_COUNT != class_id;
            if (foreign && stream_of(d, u) == MAQ_STREAM_PP && is_drawn(d, u) && !d->leaves[u] &&
                here->n < MAX_ARRIVALS) {
                d->leaves[u] = 1;
                here->transfer[here->n++] = u;
            }
        }
        while (here->n > 0 && is_drawn(d, v)) {
            uint32_t u = here->transfer[--here->n];
            d->next[u] = d->arrival[v];
            d->arrival[v] = u;
        }
    }
    for (uint32_t c = 0; c < d->g->n_classes; c++) /* nothing is drawn behind them */
        while (waiting[c].n > 0)
            d->leaves[waiting[c].transfer[--waiting[c].n]] = 0;
    return true;
}

static bool describe_items(struct drawing *d)
{
    d->item_text = MAQ_ARENA_NEW(&d->arena, const char *, d->g->n_items);
    d->item_word = MAQ_ARENA_NEW(&d->arena, const char *, d->g->n_items);
    if (!d->item_text || !d->item_word)
        return false;
    for (uint32_t i = 0; i < d->g->n_items; i++) {
        char buf[96];
        struct maq_str word, text = maq_str_of(maq_train_item_text(buf, d->train, i));
        maq_str_split(text, ' ', &word);
        d->item_text[i] = maq_arena_strdup(&d->arena, text);
        d->item_word[i] = maq_arena_strdup(&d->arena, word);
        if (!d->item_text[i] || !d->item_word[i])
            return false;
    }
    return true;
}

/*
 * --- slices
 * ------------------------------------------------------------------------------------------------------
 */

/* "linear_fc1 gemm", or the operator alone when it belongs to no module. */
static const char *node_name(char buf[128], const struct drawing *d, uint32_t node)
{
    const struct maq_node_tag *tag = &d->g->tag[node];
    const char *word = d->item_word[d->g->item[node]];
    if (tag->module < d->train->n_module_names)
        maq__snprintf(buf, 128, "%s %s", d->train->module_names[tag->module], word);
    else
        maq__snprintf(buf, 128, "%s", word);
    return buf;
}

static void put_node(struct drawing *d, uint32_t thread, uint32_t node)
{
    const struct maq_node_tag *tag = &d->g->tag[node];
    struct maq_trace_arg args[4];
    uint64_t in[MAX_ARRIVALS], out[1] = {(uint64_t)node + 1};
    uint32_t n_args = 0, n_in = 0;
    char name[128];
    args[n_args++] = MAQ_TRACE_STR("operator", d->item_text[d->g->item[node]]);
    args[n_args++] = MAQ_TRACE_INT("microbatch", tag->microbatch);
    args[n_args++] = MAQ_TRACE_INT("cost_ns", llround(d->train->dur_ns[d->g->item[node]]));
    if (tag->layer != NO_LAYER)
        args[n_args++] = MAQ_TRACE_INT("layer", tag->layer);
    for (uint32_t u = d->arrival[node]; u != NONE && n_in < MAX_ARRIVALS; u = d->next[u])
        in[n_in++] = (uint64_t)u + 1;
    int64_t start = start_of(d, node);
    struct maq_trace_slice slice = {.start_ns = start,
                                    .dur_ns = end_of(d, node) - start,
                                    .name = node_name(name, d, node),
                                    .category = maq_bucket_name((enum maq_bucket)tag->bucket),
                                    .args = args,
                                    .n_args = n_args,
                                    .flows_in = in,
                                    .n_flows_in = n_in,
                                    .flows_out = out,
                                    .n_flows_out = d->leaves[node]};
    maq_trace_slice(d->w, thread, &slice);
}

/* The parts of a compute stream. */
enum part { PART_FORWARD, PART_BACKWARD, PART_OPTIMIZER, PART_ANY };

static enum part part_of(const struct drawing *d, uint32_t node)
{
    switch ((enum maq_bucket)d->g->tag[node].bucket) {
    case MAQ_BUCKET_FORWARD:
        return PART_FORWARD;
    case MAQ_BUCKET_BACKWARD:
    case MAQ_BUCKET_RECOMPUTE:
        return PART_BACKWARD;
    case MAQ_BUCKET_OPTIMIZER:
        return PART_OPTIMIZER;
    case MAQ_BUCKET_TP:
    case MAQ_BUCKET_CP:
    case MAQ_BUCKET_EP:
    case MAQ_BUCKET_PP:
    case MAQ_BUCKET_DP:
    case MAQ_BUCKET_BUBBLE:
    case MAQ_BUCKET_HOST:
    case MAQ_BUCKET_OTHER:
    case MAQ_BUCKET_COUNT:
        break;
    }
    return PART_ANY;
}

/*
 * End of the pass that begins at order[i]: one part of one microbatch, up to the next place where a task waits for
 * others.
 */
static uint32_t pass_end(const struct drawing *d, uint32_t i, uint32_t end, enum part *part)
{
    const struct maq_node_tag *tag = &d->g->tag[d->order[i]];
    *part = part_of(d, d->order[i]);
    uint32_t j = i + 1;
    for (; j < end; j++) {
        uint32_t v = d->order[j];
        const struct maq_node_tag *t = &d->g->tag[v];
        enum part p = part_of(d, v);
        if (t->microbatch != tag->microbatch || t->direction != tag->direction || d->arrival[v] != NONE)
            break;
        if (p != PART_ANY && *part != PART_ANY && p != *part)
            break;
        *part = p != PART_ANY ? p : *part;
    }
    return j;
}

static void put_outer(struct drawing *d, uint32_t thread, uint32_t from, uint32_t to, const char *name,
                      const char *category)
{
    int64_t start = start_of(d, d->order[from]);
    struct maq_trace_slice slice = {
        .start_ns = start, .dur_ns = end_of(d, d->order[to - 1]) - start, .name = name, .category = category};
    maq_trace_slice(d->w, thread, &slice);
}

static void put_pass(struct drawing *d, uint32_t thread, uint32_t from, uint32_t to, enum part part)
{
    static const char *const names[] = {
        [PART_FORWARD] = "forward", [PART_BACKWARD] = "backward", [PART_OPTIMIZER] = "optimizer"};
    char name[48];
    if (part == PART_OPTIMIZER)
        put_outer(d, thread, from, to, names[part], names[part]);
    else if (part != PART_ANY) {
        maq__snprintf(name, sizeof name, "%s %u", names[part], d->g->tag[d->order[from]].microbatch);
        put_outer(d, thread, from, to, name, names[part]);
    }
    for (uint32_t i = from; i < to;) {
        uint16_t layer = d->g->tag[d->order[i]].layer;
        uint32_t j = i + 1;
        while (j < to && layer != NO_LAYER && d->g->tag[d->order[j]].layer == layer)
            j++;
        if (layer != NO_LAYER) {
            maq__snprintf(name, sizeof name, "layer %u", layer);
            put_outer(d, thread, i, j, name, "layer");
        }
        for (; i < j; i++)
            put_node(d, thread, d->order[i]);
    }
}

static void put_compute(struct drawing *d, uint32_t thread, uint32_t from, uint32_t to)
{
    while (from < to) {
        enum part part;
        uint32_t end = pass_end(d, from, to, &part);
        put_pass(d, thread, from, end, part);
        from = end;
    }
}

/* A stream whose slices may overlap: each goes to the first thread that is free. */
static void put_lanes(struct drawing *d, uint32_t process, uint32_t stream, uint32_t from, uint32_t to)
{
    uint32_t threads[MAX_LANES], n = 0;
    int64_t busy_until[MAX_LANES];
    const char *name = maq_stream_name((enum maq_stream)stream);
    for (uint32_t i = from; i < to; i++) {
        int64_t start = start_of(d, d->order[i]);
        uint32_t lane = 0;
        while (lane < n && busy_until[lane] > start)
            lane++;
        if (lane == MAX_LANES)
            continue;
        if (lane == n) {
            char title[32];
            maq__snprintf(title, sizeof title, n > 0 ? "%s %u" : "%s", name, n + 1);
            threads[n++] = maq_trace_thread(d->w, process, stream * MAX_LANES + lane + 1, title,
                                            (int32_t)(stream * MAX_LANES + lane));
        }
        busy_until[lane] = end_of(d, d->order[i]);
        put_node(d, threads[lane], d->order[i]);
    }
}

static void put_memory(struct drawing *d, uint32_t process, const struct maq_train_memory *memory, uint32_t class_id)
{
    if (!memory || class_id >= memory->n_stages)
        return;
    uint32_t track = maq_trace_counter_track(d->w, process, "activations", "bytes");
    for (uint32_t i = memory->first[class_id]; i < memory->first[class_id + 1]; i++)
        maq_trace_counter(d->w, track, memory->points[i].t_ns, memory->points[i].bytes);
}

/* 1,024 */
static const char *ranks(char buf[32], uint32_t n)
{
    if (n < 1000)
        maq__snprintf(buf, 32, "%u", n);
    else if (n < 1000000)
        maq__snprintf(buf, 32, "%u,%03u", n / 1000, n % 1000);
    else
        maq__snprintf(buf, 32, "%u,%03u,%03u", n / 1000000, n / 1000 % 1000, n % 1000);
    return buf;
}

static void put_class(struct drawing *d, uint32_t class_id, const struct maq_train_memory *memory)
{
    char name[64], count[32];
    uint32_t n = d->g->multiplicity[class_id];
    int digits = 1; /* of equal width: the Perfetto UI sorts processes by name, whatever order the trace asks for */
    for (uint32_t c = d->g->n_classes - 1; c >= 10; c /= 10)
        digits++;
    maq__snprintf(name, sizeof name, "stage %0*u (%s rank%s)", digits, class_id, ranks(count, n), n == 1 ? "" : "s");
    uint32_t process = maq_trace_process(d->w, class_id, name, (int32_t)class_id);
    for (uint32_t s = 0; s < MAQ_STREAM_COUNT && maq_trace_status(d->w) == MAQ_OK; s++) {
        uint32_t row = class_id * MAQ_STREAM_COUNT + s, from = d->first[row], to = d->first[row + 1];
        if (from == to)
            continue;
        if (s == MAQ_STREAM_COMPUTE)
            put_compute(d, maq_trace_thread(d->w, process, 1, maq_stream_name(MAQ_STREAM_COMPUTE), 0), from, to);
        else
            put_lanes(d, process, s, from, to);
    }
    put_memory(d, process, memory, class_id);
}

enum maq_status maq_trace_train(const char *path, const struct maq_train_graph *graph, const double *finish_ns,
                                const struct maq_train_memory *memory, struct maq_diag *diag)
{
    struct drawing d = {.train = graph, .g = &graph->graph, .finish = finish_ns};
    maq_arena_init(&d.arena, 0);
    enum maq_status status = MAQ_OK;
    if (!sort_streams(&d) || !find_arrivals(&d) || !describe_items(&d))
        status = maq_no_memory(diag, "a trace");
    if (status == MAQ_OK)
        status = maq_trace_open(&d.w, maq_trace_format_of(path), path, diag);
    if (status == MAQ_OK) {
        for (uint32_t c = 0; c < d.g->n_classes && maq_trace_status(d.w) == MAQ_OK; c++)
            put_class(&d, c, memory);
        status = maq_trace_close(d.w, diag);
    }
    maq_arena_fini(&d.arena);
    return status;
}
