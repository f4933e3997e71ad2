/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment.c - writes the steps of a segment and evaluates it by list scheduling over at most a few dozen steps, with
 * the host's time of issue. See segment.h.
 */
#include "graph/segment.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/stat/maximum.h"

void maq_segment_begin(struct maq_segment_writer *w, struct maq_segment *out, struct maq_items *items,
                       struct maq_arena *arena)
{
    memset(out, 0, sizeof *out);
    memset(w, 0, sizeof *w);
    w->out = out;
    w->items = items;
    w->arena = arena;
    w->last = w->sync = MAQ_STEP_NONE;
    for (int s = 0; s < MAQ_STREAM_COUNT; s++)
        w->on[s] = MAQ_STEP_NONE;
}

static double later(double a, double b)
{
    return a > b ? a : b;
}

/* When a step ends; 0 for none. */
static double done(const struct maq_segment_writer *w, uint16_t step)
{
    return step == MAQ_STEP_NONE ? 0 : w->items->finish[step];
}

/* Room for the times of one more step: scratch that all segments of a table of items use in turn. */
static bool grow_times(struct maq_segment_writer *w)
{
    struct maq_items *items = w->items;
    uint32_t size = items->n_times ? items->n_times * 2 : 256, n = w->out->n;
    double *start = MAQ_ARENA_NEW(items->arena, double, (size_t)size * 2);
    if (!start)
        return false;
    if (n > 0) {
        memcpy(start, items->start, n * sizeof *start);
        memcpy(start + size, items->finish, n * sizeof *start);
    }
    items->start = start;
    items->finish = start + size;
    items->n_times = size;
    return true;
}

static bool grow(struct maq_segment_writer *w)
{
    struct maq_segment *g = w->out;
    uint32_t size = g->size ? g->size * 2 : 32;
    struct maq_step *steps = size < MAQ_STEP_NONE ? MAQ_ARENA_NEW(w->arena, struct maq_step, size) : NULL;
    if (!steps || (size > w->items->n_times && !grow_times(w))) {
        w->failed = true;
        return false;
    }
    if (g->n > 0)
        memcpy(steps, g->steps, g->n * sizeof *steps);
    g->steps = steps;
    g->size = size;
    return true;
}

static uint16_t put(struct maq_segment_writer *w, uint32_t item, enum maq_stream stream, uint8_t bucket, uint16_t a,
                    uint16_t b)
{
    struct maq_segment *g = w->out;
    if (g->n == g->size && !grow(w))
        return MAQ_STEP_NONE;
    g->steps[g->n] = (struct maq_step){.item = item,
                                       .stream = (uint8_t)stream,
                                       .bucket = bucket,
                                       .part = w->part,
                                       .after = {a, b},
                                       .name = maq_items_name(w->items, w->name)};
    double start = done(w, w->on[stream]);
    start = later(later(start, done(w, a)), done(w, b));
    w->items->start[g->n] = start;
    w->items->finish[g->n] = start + w->items->at[item].dur_ns;
    if (w->apart && stream == MAQ_STREAM_EP)
        g->node_ns[w->exchange] += w->items->at[item].dur_ns;
    w->last = w->on[stream] = (uint16_t)g->n;
    g->n++;
    return w->last;
}

static uint8_t bucket_of_stream(enum maq_stream stream)
{
    static const uint8_t of[MAQ_STREAM_COUNT] = {
        [MAQ_STREAM_COMPUTE] = MAQ_BUCKET_FORWARD, [MAQ_STREAM_TP] = MAQ_BUCKET_TP,    [MAQ_STREAM_CP] = MAQ_BUCKET_CP,
        [MAQ_STREAM_EP] = MAQ_BUCKET_EP,           [MAQ_STREAM_DP] = MAQ_BUCKET_DP,    [MAQ_STREAM_PP] = MAQ_BUCKET_PP,
        [MAQ_STREAM_COPY] = MAQ_BUCKET_OTHER,      [MAQ_STREAM_HOST] = MAQ_BUCKET_HOST};
    return of[stream];
}

static void count(struct maq_segment_writer *w, uint32_t launches)
{
    w->out->launches += launches;
    w->out->graphed += w->graph ? launches : 0;
}

/* A collective begins when the last host of its group has issued it. */
static void issue_collective(struct maq_segment_writer *w, const struct maq_coll *coll)
{
    struct maq_items *items = w->items;
    if (items->group_size != coll->at.size) {
        items->group_size = coll->at.size;
        items->group_maximum = maq_expected_maximum(coll->at.size);
    }
    w->out->issue_ns += w->collective_ns + w->skew_ns * items->group_maximum;
    count(w, 1);
}

/* Kernels that a framework without a fused one launches for a chain: those of cost/analytical/memory_bound.c. */
static uint32_t chain_length(const struct maq_op *op)
{
    static const uint8_t kernels[MAQ_OP_KIND_COUNT] = {
        [MAQ_OP_SOFTMAX] = 5,       [MAQ_OP_SOFTMAX_BWD] = 4,       [MAQ_OP_NORM] = 6,        [MAQ_OP_NORM_BWD] = 10,
        [MAQ_OP_ACTIVATION] = 2,    [MAQ_OP_ACTIVATION_BWD] = 4,    [MAQ_OP_ELEMENTWISE] = 3, [MAQ_OP_ROPE] = 4,
        [MAQ_OP_CROSS_ENTROPY] = 8, [MAQ_OP_CROSS_ENTROPY_BWD] = 4, [MAQ_OP_ROUTER] = 6,      [MAQ_OP_PERMUTE] = 2,
        [MAQ_OP_QUANTIZE] = 3,      [MAQ_OP_OPTIMIZER] = 12};
    return (op->flags & MAQ_OP_UNFUSED) && op->kind < MAQ_OP_KIND_COUNT && kernels[op->kind] ? kernels[op->kind] : 1;
}

/* End of the compute stream so far, with what it is about to wait for. */
static double compute_ns(const struct maq_segment_writer *w)
{
    return later(done(w, w->on[MAQ_STREAM_COMPUTE]), done(w, w->sync));
}

struct maq_segment_mark maq_segment_here(const struct maq_segment_writer *w)
{
    const uint16_t step = w->on[MAQ_STREAM_COMPUTE];
    return (struct maq_segment_mark){step, done(w, step)};
}

/* Time of the node so far goes to it. */
static void close_node(struct maq_segment_writer *w, double now)
{
    if (w->apart)
        w->out->node_ns[w->node] += now - w->node_since;
    w->node_since = now;
}

void maq_segment_node(struct maq_segment_writer *w, enum maq_layer_node node)
{
    close_node(w, compute_ns(w));
    w->node = (uint8_t)node;
}

/* The host's clock after a read, on the device's time scale of the segment. */
static double host_ns(const struct maq_segment_writer *w)
{
    return w->out->run_before_ns + w->out->issue_ns;
}

void maq_segment_host(struct maq_segment_writer *w, double ns)
{
    w->out->issue_ns += ns;
}

void maq_segment_gap(struct maq_segment_writer *w, double ns)
{
    struct maq_op gap = {.kind = MAQ_OP_GAP, .d = {(int64_t)nearbyint(ns), MAQ_GAP_HOST}};
    uint32_t item = ns >= 0.5 ? maq_items_op(w->items, &gap) : 0;
    const char *name = w->name;
    uint16_t wait = w->sync;
    if (item == 0)
        return;
    w->name = "waiting for the host";
    w->sync = MAQ_STEP_NONE;
    put(w, item, MAQ_STREAM_COMPUTE, MAQ_BUCKET_HOST, wait, MAQ_STEP_NONE);
    w->name = name;
}

/*
 * After a read the host has no lead, and the order counts: an operator cannot start before its first launch, nor end before its
 * last one and the last of its kernels.
 */
static void wait_for_launch(struct maq_segment_writer *w, double dur_ns, uint32_t launches, double each_ns)
{
    double first = host_ns(w) + w->launch_ns, last = first + (launches - 1) * each_ns + dur_ns / launches;
    double ready = compute_ns(w);
    if (w->out->reads)
        maq_segment_gap(w, later(first - ready, last - (ready + dur_ns)));
}

static uint16_t put_op(struct maq_segment_writer *w, const struct maq_op *op, uint32_t launches, double each_ns)
{
    uint32_t item = maq_items_op(w->items, op);
    if (item == 0)
        return w->on[MAQ_STREAM_COMPUTE];
    wait_for_launch(w, w->items->at[item].dur_ns, launches, each_ns);
    uint16_t wait = w->sync;
    w->sync = MAQ_STEP_NONE;
    w->out->issue_ns += w->launch_ns + (launches - 1) * each_ns;
    count(w, launches);
    return put(w, item, MAQ_STREAM_COMPUTE, w->bucket, wait, MAQ_STEP_NONE);
}

uint16_t maq_segment_ops(struct maq_segment_writer *w, const struct maq_op *op, uint32_t launches)
{
    return put_op(w, op, launches, w->kernel_ns);
}

uint16_t maq_segment_chain(struct maq_segment_writer *w, const struct maq_op *op)
{
    return put_op(w, op, chain_length(op), w->launch_ns);
}

uint16_t maq_segment_calls(struct maq_segment_writer *w, const struct maq_op *op, uint32_t calls)
{
    return put_op(w, op, calls, w->expert_ns);
}

uint16_t maq_segment_op(struct maq_segment_writer *w, const struct maq_op *op)
{
    return maq_segment_ops(w, op, chain_length(op));
}

/* The next compute step waits for it. Two joins before one compute step: the later one of a stream implies
 * the earlier; across streams a join of both. */
void maq_segment_join(struct maq_segment_writer *w, uint16_t step)
{
    if (step == MAQ_STEP_NONE)
        return;
    if (w->sync != MAQ_STEP_NONE && w->out->steps[w->sync].stream != w->out->steps[step].stream) {
        /* a zero-length step that waits for both */
        uint16_t both = put(w, 0, MAQ_STREAM_COMPUTE, w->bucket, w->sync, step);
        w->sync = MAQ_STEP_NONE;
        w->last = both;
        return;
    }
    w->sync = step;
}

uint16_t maq_segment_coll(struct maq_segment_writer *w, const struct maq_coll *coll, enum maq_stream stream)
{
    uint32_t item = maq_items_coll(w->items, coll, stream);
    bool stops = w->tp_stops && stream == MAQ_STREAM_TP;
    if (item == 0)
        return MAQ_STEP_NONE;
    if (stops)
        maq_segment_read(w, w->read_ns);
    uint16_t pending = w->sync; /* what the compute stream was about to wait for, this waits for too */
    uint16_t after = w->on[MAQ_STREAM_COMPUTE];
    issue_collective(w, coll);
    uint16_t step = put(w, item, stream, bucket_of_stream(stream), after, pending);
    w->sync = step;
    if (stops)
        maq_segment_read(w, w->read_ns);
    return step;
}

uint16_t maq_segment_coll_async(struct maq_segment_writer *w, const struct maq_coll *coll, enum maq_stream stream,
                                uint16_t after)
{
    if (w->serial || (w->tp_stops && stream == MAQ_STREAM_TP)) {
        maq_segment_coll(w, coll, stream);
        return MAQ_STEP_NONE; /* waited for already */
    }
    uint32_t item = maq_items_coll(w->items, coll, stream);
    if (item == 0)
        return MAQ_STEP_NONE;
    issue_collective(w, coll);
    return put(w, item, stream, bucket_of_stream(stream), after, MAQ_STEP_NONE);
}

uint16_t maq_segment_copy(struct maq_segment_writer *w, double bytes, uint16_t after)
{
    struct maq_op op = {.kind = MAQ_OP_HOST_COPY, .d = {(int64_t)bytes}};
    uint32_t item = maq_items_op(w->items, &op);
    return item == 0 ? MAQ_STEP_NONE : put(w, item, MAQ_STREAM_COPY, MAQ_BUCKET_OTHER, after, MAQ_STEP_NONE);
}

/*
 * Attributes every moment of [0, end) to what the compute stream does, or, when it is idle, to the
 * communication that runs then (the one that started first among those running): exposed time. Steps on the
 * compute stream are in order, so the idle intervals lie between them.
 */
static void attribute_idle(struct maq_segment *g, const double *start, const double *finish, double from, double to,
                           bool apart)
{
    while (from < to) {
        double until = to;
        uint32_t who = UINT32_MAX;
        for (uint32_t i = 0; i < g->n; i++) {
            if (g->steps[i].stream == MAQ_STREAM_COMPUTE || (apart && g->steps[i].stream == MAQ_STREAM_EP))
                continue;
            if (start[i] <= from && finish[i] > from) {
                if (who == UINT32_MAX || start[i] < start[who])
                    who = i;
            } else if (start[i] > from && start[i] < until) {
                until = start[i];
            }
        }
        if (who != UINT32_MAX && finish[who] < until)
            until = finish[who];
        g->bucket_ns[who == UINT32_MAX ? MAQ_BUCKET_OTHER : g->steps[who].bucket] += until - from;
        from = until;
    }
}

static void fill_buckets(struct maq_segment *g, const double *start, const double *finish, double end, bool apart)
{
    double compute = 0;
    for (uint32_t i = 0; i < g->n; i++) {
        if (g->steps[i].stream != MAQ_STREAM_COMPUTE)
            continue;
        attribute_idle(g, start, finish, compute, start[i], apart);
        g->bucket_ns[g->steps[i].bucket] += finish[i] - start[i];
        compute = finish[i];
    }
    attribute_idle(g, start, finish, compute, end, apart);
}

/* Zero-length steps on the compute stream that wait for every other stream still running after it: the
 * segment ends where its compute stream ends. */
static void join_all(struct maq_segment_writer *w)
{
    uint16_t compute = w->on[MAQ_STREAM_COMPUTE], waiting = MAQ_STEP_NONE;
    double end = done(w, compute);
    for (int s = 1; s < MAQ_STREAM_COUNT; s++) {
        if (w->on[s] == MAQ_STEP_NONE || done(w, w->on[s]) <= end || (w->apart && s == MAQ_STREAM_EP))
            continue;
        if (waiting == MAQ_STEP_NONE) {
            waiting = w->on[s];
            continue;
        }
        put(w, 0, MAQ_STREAM_COMPUTE, MAQ_BUCKET_OTHER, waiting, w->on[s]);
        waiting = MAQ_STEP_NONE;
    }
    if (waiting != MAQ_STEP_NONE)
        put(w, 0, MAQ_STREAM_COMPUTE, MAQ_BUCKET_OTHER, waiting, MAQ_STEP_NONE);
}

void maq_segment_lose(struct maq_segment_writer *w, double ns, uint8_t bucket)
{
    struct maq_op op = {.kind = MAQ_OP_GAP, .d = {(int64_t)nearbyint(ns), MAQ_GAP_CONTENTION}};
    const char *name = w->name;
    if (ns < 0.5)
        return;
    w->name = "contention";
    put(w, maq_items_op(w->items, &op), MAQ_STREAM_COMPUTE, bucket, MAQ_STEP_NONE, MAQ_STEP_NONE);
    w->name = name;
}

void maq_segment_read(struct maq_segment_writer *w, double read_ns)
{
    struct maq_segment *g = w->out;
    double run = compute_ns(w);
    if (!g->reads) {
        g->reads = true;
        g->issue_before_ns = g->issue_ns;
        g->run_before_ns = run;
        g->read_ns = read_ns;
    } else {
        double host = host_ns(w);
        maq_segment_gap(w, read_ns + (host > run ? host - run : 0));
        run = compute_ns(w);
    }
    g->issue_ns = run - g->run_before_ns; /* the host is where the device is */
}

/* Compute time that runs beside communication, weighted by what is lost of it; *bucket of the stream that costs most. */
static double lost_beside(const struct maq_segment_writer *w, const double *start, const double *finish,
                          uint8_t *bucket)
{
    const struct maq_segment *g = w->out;
    double by_stream[MAQ_STREAM_COUNT] = {0}, lost = 0, most = 0;
    for (uint32_t i = 0; i < g->n; i++) {
        double share = w->contention[g->steps[i].stream];
        for (uint32_t k = 0; share > 0 && k < g->n; k++) {
            double from = start[i] > start[k] ? start[i] : start[k], to = finish[i] < finish[k] ? finish[i] : finish[k];
            if (g->steps[k].stream == MAQ_STREAM_COMPUTE && to > from)
                by_stream[g->steps[i].stream] += share * (to - from);
        }
    }
    for (int s = 0; s < MAQ_STREAM_COUNT; s++) {
        lost += by_stream[s];
        if (by_stream[s] > most) {
            most = by_stream[s];
            *bucket = bucket_of_stream((enum maq_stream)s);
        }
    }
    return lost;
}

/* Apart from the pass an exchange is under compute as long as nothing else is said (train/step/merged_pass.c). */
static double experts_under(const struct maq_segment_writer *w, const double *start, const double *finish)
{
    const struct maq_segment *g = w->out;
    double under = 0, share = w->contention ? w->contention[MAQ_STREAM_EP] : 0;
    for (uint32_t i = 0; i < g->n; i++)
        for (uint32_t k = 0; g->steps[i].stream == MAQ_STREAM_EP && k < g->n; k++) {
            double from = start[i] > start[k] ? start[i] : start[k], to = finish[i] < finish[k] ? finish[i] : finish[k];
            under += g->steps[k].stream == MAQ_STREAM_COMPUTE && to > from ? to - from : 0;
        }
    double all = w->apart ? g->node_ns[MAQ_LAYER_DISPATCH] + g->node_ns[MAQ_LAYER_COMBINE] : under;
    return all - under * share;
}

/* What compute loses to communication is spread over its nodes by their time. */
static void slow_nodes(struct maq_segment *g, double lost)
{
    const double factor = g->dur_ns > 0 ? (g->dur_ns + lost) / g->dur_ns : 1;
    g->node_ns[MAQ_LAYER_ATTENTION] *= factor;
    g->node_ns[MAQ_LAYER_EXPERTS] *= factor;
}

void maq_segment_end(struct maq_segment_writer *w)
{
    struct maq_segment *g = w->out;
    if (w->failed || g->n == 0)
        return;
    for (uint32_t i = 0; i < g->n; i++)
        if (!w->apart || g->steps[i].stream != MAQ_STREAM_EP)
            g->dur_ns = later(g->dur_ns, w->items->finish[i]);
    close_node(w, g->dur_ns);
    fill_buckets(g, w->items->start, w->items->finish, g->dur_ns, w->apart);
    g->experts_under_ns = experts_under(w, w->items->start, w->items->finish);
    uint8_t bucket = MAQ_BUCKET_OTHER;
    double lost = w->contention ? nearbyint(lost_beside(w, w->items->start, w->items->finish, &bucket)) : 0;
    w->name = "join";
    join_all(w);
    if (lost > 0 && !w->failed) {
        maq_segment_lose(w, lost, bucket);
        g->bucket_ns[bucket] += lost;
        slow_nodes(g, lost);
        g->dur_ns += lost;
    }
}
