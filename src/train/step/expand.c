/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expand.c - the whole step as an execution graph, operator by operator.
 *
 * The same blueprint that the fast path sums up is written out here: one class per pipeline stage, its tasks
 * in schedule order, each task the segments of its virtual stage, data-parallel communication on the DP
 * stream, transfers on the PP stream. Node ids come out in topological order because the schedule's tasks do.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "graph/builder.h"
#include "maquette/train.h"
#include "train/predict.h"
#include "train/step/blueprint.h"
#include "train/step/ddp.h"
#include "train/step/dp_comm.h"
#include "train/step/job_step.h"

struct owner {
    struct maq_job_step step;
    double *dur, *alone;
};

struct expansion {
    struct maq_graph_builder b;
    const struct maq_blueprint *bp;
    uint32_t *end;     /* [n_tasks] last compute node of a task */
    uint32_t *sent;    /* [n_tasks] its transfer, or none */
    uint8_t *sends;    /* [n_tasks] */
    uint32_t *port;    /* [stages] the last transfer over the network, which the next one follows */
    uint32_t *stalled; /* [stages] transfer that the next compute of the stage waits for */
    uint32_t **
        gathered; /* [2 * n_positions] nodes that complete a position's parameters, one per bucket; NULL = not gathered first */
    uint8_t *first_done; /* [2 * n_positions] */
    uint32_t *done;      /* [most buckets of a program] last compute node of each bucket of the pass at hand */
    uint32_t
        *reduced; /* [most of DistributedDataParallel's buckets of a program] their reductions in the pass at hand */
    uint32_t n_reduced;
};

static uint32_t last_node(const struct expansion *x, uint32_t stage, enum maq_stream stream)
{
    return x->b.last_on[stage * MAQ_STREAM_COUNT + (uint32_t)stream];
}

static struct maq_node_tag tag_of(uint32_t microbatch, uint8_t direction)
{
    return (struct maq_node_tag){
        .module = UINT16_MAX, .layer = UINT16_MAX, .microbatch = microbatch, .direction = direction};
}

static struct maq_node_tag entry_tag(const struct expansion *x, uint32_t position, const struct maq_entry *e,
                                     uint32_t microbatch, uint8_t direction)
{
    struct maq_node_tag tag = tag_of(microbatch, direction);
    if (e->layer != UINT16_MAX)
        tag.layer = (uint16_t)(x->bp->job->virtual_stages[position].first_layer + e->layer);
    return tag;
}

static uint32_t sync_node(struct expansion *x, uint32_t stage, uint32_t item, uint32_t after, uint32_t microbatch)
{
    struct maq_node_tag tag = tag_of(microbatch, 0);
    tag.bucket = MAQ_BUCKET_DP;
    return maq_graph_add(&x->b, stage, MAQ_STREAM_DP, item, tag, &after, 1);
}

static uint32_t copy_node(struct expansion *x, uint32_t stage, uint32_t item, const uint32_t *after, uint32_t n,
                          uint32_t microbatch)
{
    struct maq_node_tag tag = tag_of(microbatch, 0);
    tag.bucket = MAQ_BUCKET_OTHER;
    return maq_graph_add(&x->b, stage, MAQ_STREAM_COPY, item, tag, after, n);
}

static void reduce_bucket(struct expansion *x, uint32_t stage, const struct maq_bucket_sync *b, uint32_t after,
                          uint32_t microbatch)
{
    uint32_t behind[2] = {after, MAQ_NODE_NONE}, n = 1;
    for (int k = 0; k < MAQ_BUCKET_REDUCES; k++)
        if (b->reduce[k])
            behind[1] = sync_node(x, stage, b->reduce[k], after, microbatch);
    for (uint32_t k = 0; k < b->n_ddp; k++)
        behind[1] = sync_node(x, stage, b->ddp[k].reduce, after, microbatch);
    n += behind[1] != MAQ_NODE_NONE;
    if (b->download)
        copy_node(x, stage, b->download, behind, n, microbatch);
}

static uint32_t gather_bucket(struct expansion *x, uint32_t stage, const struct maq_bucket_sync *b, uint32_t after,
                              uint32_t microbatch, bool again)
{
    const uint32_t *items = again ? b->again : b->gather;
    uint32_t node = MAQ_NODE_NONE;
    if (b->upload)
        node = after = copy_node(x, stage, b->upload, &after, 1, microbatch);
    for (int k = 0; k < MAQ_BUCKET_GATHERS; k++)
        if (items[k])
            node = sync_node(x, stage, items[k], after, microbatch);
    return node;
}

/* A point on the compute stream that waits for the given nodes. */
static uint32_t join(struct expansion *x, uint32_t stage, const uint32_t *preds, uint32_t n, uint32_t microbatch)
{
    struct maq_node_tag tag = tag_of(microbatch, 0);
    tag.bucket = MAQ_BUCKET_OTHER;
    return maq_graph_add(&x->b, stage, MAQ_STREAM_COMPUTE, 0, tag, preds, n);
}

/*
 * An idle interval of the compute stream as an item. Only the graph needs these items; in a sweep over plans there
 * would be too many.
 */
static void stand_still(struct expansion *x, uint32_t stage, double ns, enum maq_gap why, uint32_t microbatch)
{
    struct maq_node_tag tag = tag_of(microbatch, 0);
    struct maq_op op = {.kind = MAQ_OP_GAP, .d = {(int64_t)ns, why}};
    tag.bucket = why == MAQ_GAP_HOST       ? MAQ_BUCKET_HOST
                 : why == MAQ_GAP_EXCHANGE ? MAQ_BUCKET_EP
                 : why == MAQ_GAP_BEGIN    ? MAQ_BUCKET_BUBBLE
                                           : MAQ_BUCKET_DP;
    if (ns > 0)
        maq_graph_add(&x->b, stage, MAQ_STREAM_COMPUTE, maq_items_op(x->bp->items, &op), tag, NULL, 0);
}

/* At the end of a pass: compute lost to concurrent communication, then the wait for the host. */
static void pass_gaps(struct expansion *x, uint32_t stage, double drag_ns, double gap_ns, uint32_t microbatch)
{
    stand_still(x, stage, drag_ns, MAQ_GAP_CONTENTION, microbatch);
    stand_still(x, stage, gap_ns, MAQ_GAP_HOST, microbatch);
}

static void forward_entries(struct expansion *x, uint32_t position, uint32_t stage, const struct maq_bucket_sync *b,
                            uint32_t microbatch, uint32_t after, uint8_t direction)
{
    for (uint32_t e = b->first; e <= b->last; e++) {
        const struct maq_entry *entry = &x->bp->programs[position]->entries[e];
        maq_graph_add_segment(&x->b, stage, x->bp->blocks[entry->block]->forward[entry->redo],
                              entry_tag(x, position, entry, microbatch, direction), after);
        after = MAQ_NODE_NONE;
    }
}

/* A forward pass; compute_end of the buckets before releases the gathers ahead (ZeRO-3). */
static void forward_pass(struct expansion *x, uint32_t position, uint32_t stage, uint32_t microbatch, uint8_t direction)
{
    const struct maq_blueprint *bp = x->bp;
    const struct maq_program *pr = bp->programs[position];
    uint32_t slot = direction * bp->schedule->n_positions + position, start = last_node(x, stage, MAQ_STREAM_COMPUTE);
    uint32_t *done = x->done;
    bool first = !x->first_done[slot];
    x->first_done[slot] = 1;
    for (uint32_t i = 0; i < pr->n_buckets; i++) {
        uint32_t after = MAQ_NODE_NONE;
        if (bp->gather_every_pass) {
            int64_t released = (int64_t)i - 1 - bp->job->plan.fsdp_prefetch;
            after = gather_bucket(x, stage, &pr->buckets[i], released < 0 ? start : done[released], microbatch, false);
        } else if (first && x->gathered[slot]) {
            after = x->gathered[slot][i];
        }
        forward_entries(x, position, stage, &pr->buckets[i], microbatch, after, direction);
        done[i] = last_node(x, stage, MAQ_STREAM_COMPUTE);
    }
    pass_gaps(x, stage, pr->forward_drag_ns, pr->forward_gap_ns, microbatch);
}

/* Returns the first node of the last of them. */
static uint32_t backward_entries(struct expansion *x, uint32_t position, uint32_t stage,
                                 const struct maq_bucket_sync *b, enum maq_half half, uint32_t microbatch,
                                 uint32_t after, uint8_t direction)
{
    uint32_t first = x->b.n_nodes;
    for (uint32_t e = b->last + 1u; e-- > b->first;) {
        const struct maq_entry *entry = &x->bp->programs[position]->entries[e];
        const struct maq_segment *segment = maq_half_segment(x->bp, entry, half);
        if (segment->n == 0 && after != MAQ_NODE_NONE) /* nothing to compute, but its parameters were waited for */
            join(x, stage, &after, 1, microbatch);
        first = x->b.n_nodes;
        maq_graph_add_segment(&x->b, stage, segment, entry_tag(x, position, entry, microbatch, direction), after);
        after = MAQ_NODE_NONE;
    }
    return first;
}

/* A copy into or out of the buckets of DistributedDataParallel. */
static void bucket_copy(struct expansion *x, uint32_t stage, uint32_t item, uint32_t after, uint32_t microbatch)
{
    struct maq_node_tag tag = tag_of(microbatch, 0);
    tag.bucket = MAQ_BUCKET_BACKWARD;
    if (item)
        maq_graph_add(&x->b, stage, MAQ_STREAM_COMPUTE, item, tag, &after, 1);
}

/* The buckets that an entry fills, of which `first` is the first node: each behind the step with which it is full. */
static void reduce_filled(struct expansion *x, uint32_t stage, const struct maq_bucket_sync *b, uint32_t first,
                          uint32_t microbatch)
{
    for (uint32_t k = 0; k < b->n_ddp; k++) {
        const struct maq_ddp_bucket *one = &b->ddp[k];
        const uint32_t full = one->step == MAQ_STEP_NONE ? last_node(x, stage, MAQ_STREAM_COMPUTE) : first + one->step;
        x->reduced[x->n_reduced++] = sync_node(x, stage, one->reduce, full, microbatch);
    }
}

/* A backward pass that DistributedDataParallel reduces in: see ddp.h. */
static void ddp_pass(struct expansion *x, uint32_t position, uint32_t stage, enum maq_half half, uint32_t microbatch,
                     uint8_t direction)
{
    const struct maq_program *pr = x->bp->programs[position];
    const bool overlaps = x->bp->job->plan.overlap_grad_reduce == MAQ_ON;
    for (uint32_t i = pr->n_buckets; i-- > 0;) {
        const struct maq_bucket_sync *b = &pr->buckets[i];
        uint32_t first = backward_entries(x, position, stage, b, half, microbatch, MAQ_NODE_NONE, direction);
        bucket_copy(x, stage, b->fill, MAQ_NODE_NONE, microbatch);
        if (overlaps)
            reduce_filled(x, stage, b, first, microbatch);
    }
    const uint32_t computed = last_node(x, stage, MAQ_STREAM_COMPUTE);
    for (uint32_t i = pr->n_buckets; i-- > 0 && !overlaps;)
        for (uint32_t k = 0; k < pr->buckets[i].n_ddp; k++)
            x->reduced[x->n_reduced++] = sync_node(x, stage, pr->buckets[i].ddp[k].reduce, computed, microbatch);
    if (pr->used_map)
        sync_node(x, stage, pr->used_map, MAQ_NODE_NONE, microbatch);
    x->n_reduced = 0;
    for (uint32_t i = pr->n_buckets; i-- > 0;)
        for (uint32_t k = 0; k < pr->buckets[i].n_ddp; k++)
            bucket_copy(x, stage, pr->buckets[i].ddp[k].empty, x->reduced[x->n_reduced++], microbatch);
}

/* One half of a backward pass. ZeRO-2/3 reduce in every pass, or in the last one of a position; otherwise the reductions
 * follow its buckets, when they may overlap. */
static void backward_pass(struct expansion *x, uint32_t position, uint32_t stage, enum maq_half half,
                          uint32_t microbatch, uint8_t direction, bool last)
{
    const struct maq_blueprint *bp = x->bp;
    const bool ends = last && bp->programs[position]->last;
    const struct maq_program *pr = ends ? bp->programs[position]->last : bp->programs[position];
    uint32_t n = pr->n_buckets, reduced = 0, *done = x->done, start = last_node(x, stage, MAQ_STREAM_COMPUTE);
    int32_t prefetch = bp->job->plan.fsdp_prefetch;
    bool gathers = maq_half_gathers(bp, half), reduces = maq_half_reduces(half, bp->sync_every_pass || ends);
    bool now = last && half != MAQ_HALF_INPUT && maq_reduces_behind(bp) && bp->job->plan.overlap_grad_reduce == MAQ_ON;
    x->n_reduced = 0;
    if (bp->ddp && reduces) {
        ddp_pass(x, position, stage, half, microbatch, direction);
        n = 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct maq_bucket_sync *b = &pr->buckets[n - 1 - i];
        uint32_t after = MAQ_NODE_NONE;
        for (; reduces && (int64_t)reduced < (int64_t)i - prefetch; reduced++)
            reduce_bucket(x, stage, &pr->buckets[n - 1 - reduced], done[reduced], microbatch);
        if (gathers) {
            int64_t released = (int64_t)i - 1 - prefetch;
            after = gather_bucket(x, stage, b, released < 0 ? start : done[released], microbatch, true);
        }
        uint32_t first = backward_entries(x, position, stage, b, half, microbatch, after, direction);
        done[i] = last_node(x, stage, MAQ_STREAM_COMPUTE);
        if (reduces && maq_reduces_in_line(bp)) {
            reduce_bucket(x, stage, b, done[i], microbatch);
            const uint32_t sent = last_node(x, stage, MAQ_STREAM_DP);
            join(x, stage, &sent, 1, microbatch);
            reduced++;
        }
        if (now && bp->ddp)
            reduce_filled(x, stage, b, first, microbatch);
        else if (now)
            reduce_bucket(x, stage, b, done[i], microbatch);
    }
    for (; reduces && reduced < n; reduced++)
        reduce_bucket(x, stage, &pr->buckets[n - 1 - reduced], done[reduced], microbatch);
    if (reduces) { /* the pass ends when its reductions have, and what goes to the host behind them */
        uint32_t done_with[2] = {last_node(x, stage, MAQ_STREAM_DP), last_node(x, stage, MAQ_STREAM_COPY)};
        join(x, stage, done_with, pr->download_ns > 0 ? 2 : 1, microbatch);
    }
    if (half == MAQ_HALF_WEIGHT)
        pass_gaps(x, stage, pr->weight_drag_ns, pr->weight_gap_ns, microbatch);
    else {
        stand_still(x, stage, pr->exchange_wait_ns, MAQ_GAP_EXCHANGE, microbatch);
        pass_gaps(x, stage, pr->backward_drag_ns, pr->backward_gap_ns, microbatch);
    }
}

/* Both halves of a split backward, or the ones that a task has. */
static void backward_task(struct expansion *x, const struct maq_task *t, bool last)
{
    const struct maq_schedule *s = x->bp->schedule;
    bool pair = t->kind == MAQ_TASK_FB;
    uint32_t position = pair ? t->b_position : t->position, microbatch = pair ? t->b_microbatch : t->microbatch;
    uint8_t direction = pair ? t->b_direction : t->direction;
    if (!s->split_backward) {
        backward_pass(x, position, t->stage, MAQ_HALF_WHOLE, microbatch, direction, last);
        return;
    }
    if (t->kind != MAQ_TASK_W)
        backward_pass(x, position, t->stage, MAQ_HALF_INPUT, microbatch, direction, false);
    if (t->kind == MAQ_TASK_W || !t->split)
        backward_pass(x, position, t->stage, MAQ_HALF_WEIGHT, microbatch, direction, last);
}

/* Sends the output of a task to the stage that needs it; over the network transfers of a stage follow one another. */
static void send(struct expansion *x, uint32_t id)
{
    const struct maq_task *t = &x->bp->schedule->tasks[id];
    uint32_t to = maq_task_sends(x->bp->schedule, t);
    uint32_t *port = maq_blueprint_port_ns(x->bp, to) > 0 ? &x->port[t->stage] : NULL;
    struct maq_node_tag tag = tag_of(t->microbatch, t->direction);
    tag.bucket = MAQ_BUCKET_PP;
    x->sent[id] =
        maq_graph_add_transfer(&x->b, t->stage, x->bp->hop_item[to], tag, x->end[id], port ? *port : MAQ_NODE_NONE);
    if (port)
        *port = x->sent[id];
    if (x->bp->stalls)
        x->stalled[t->stage] = x->sent[id];
}

static void run_task(struct expansion *x, uint32_t id)
{
    const struct maq_schedule *s = x->bp->schedule;
    const struct maq_task *t = &s->tasks[id];
    uint32_t preds[3], n = 0;
    for (int k = 0; k < 2; k++)
        if (t->pred[k] != MAQ_NO_TASK)
            preds[n++] = t->hop[k] ? x->sent[t->pred[k]] : x->end[t->pred[k]];
    if (x->stalled[t->stage] != MAQ_NODE_NONE)
        preds[n++] = x->stalled[t->stage];
    x->stalled[t->stage] = MAQ_NODE_NONE;
    join(x, t->stage, preds, n, t->microbatch);

    bool pair = t->kind == MAQ_TASK_FB;
    if (t->kind == MAQ_TASK_F || pair)
        forward_pass(x, t->position, t->stage, t->microbatch, t->direction);
    if (t->kind != MAQ_TASK_F)
        backward_task(x, t, maq_task_is_last(s, id));
    x->end[id] = last_node(x, t->stage, MAQ_STREAM_COMPUTE);
    if (x->sends[id])
        send(x, id);
}

/* Which tasks send. */
static void survey(struct expansion *x)
{
    const struct maq_schedule *s = x->bp->schedule;
    for (uint32_t id = 0; id < s->n_tasks; id++) {
        const struct maq_task *t = &s->tasks[id];
        for (int k = 0; k < 2; k++)
            if (t->pred[k] != MAQ_NO_TASK && t->hop[k])
                x->sends[t->pred[k]] = 1;
    }
}

/* Parameters of all chunks, gathered from the beginning of the step. */
static void gather_first(struct expansion *x, struct maq_arena *arena)
{
    const struct maq_blueprint *bp = x->bp;
    for (uint32_t stage = 0; stage < bp->schedule->stages && bp->gather_first; stage++) {
        uint16_t at[MAQ_MAX_STAGES];
        uint32_t n = maq_schedule_positions(bp->schedule, stage, at);
        for (uint32_t c = 0; c < n; c++) {
            const struct maq_program *pr = bp->programs[at[c]];
            uint32_t slot = (bp->schedule->kind == MAQ_SCHEDULE_DUALPIPE ? c : 0) * bp->schedule->n_positions + at[c];
            x->gathered[slot] = MAQ_ARENA_NEW(arena, uint32_t, pr->n_buckets);
            for (uint32_t i = 0; x->gathered[slot] && i < pr->n_buckets; i++)
                x->gathered[slot][i] = gather_bucket(x, stage, &pr->buckets[i], MAQ_NODE_NONE, 0, false);
            x->b.failed |= !x->gathered[slot];
        }
    }
}

/*
 * What an update waits for with post_validation: the norm of its stage, and what the stage before tells it, which that one sends as soon
 * as it may update itself. *before: the node behind which the stage before may; then that of this stage.
 */
static uint32_t norm_in_turn(struct expansion *x, uint32_t stage, const uint32_t ends[3], uint32_t *before)
{
    struct maq_node_tag tag = tag_of(0, 0);
    tag.bucket = MAQ_BUCKET_DP;
    uint32_t known[2] = {maq_graph_add(&x->b, stage, MAQ_STREAM_DP, x->bp->norm_item, tag, ends, 3), MAQ_NODE_NONE};
    if (stage > 0)
        known[1] = maq_graph_add(&x->b, stage - 1, MAQ_STREAM_PP, x->bp->told_item, tag, before, 1);
    *before = maq_graph_add(&x->b, stage, MAQ_STREAM_DP, 0, tag, known, 2);
    return *before;
}

static void end_of_step(struct expansion *x)
{
    const struct maq_blueprint *bp = x->bp;
    uint32_t pp = bp->schedule->stages, ends[2 * MAQ_MAX_STAGES + 1], n = 0, tied = MAQ_NODE_NONE,
             before = MAQ_NODE_NONE;
    bool late = maq_reduces_behind(bp) && bp->job->plan.overlap_grad_reduce != MAQ_ON;
    for (uint32_t s = 0; s < pp; s++) {
        uint16_t at[MAQ_MAX_STAGES];
        uint32_t chunks = maq_schedule_positions(bp->schedule, s, at), done = last_node(x, s, MAQ_STREAM_COMPUTE);
        for (uint32_t c = 0; late && c < chunks; c++)
            for (uint32_t b = 0; b < bp->programs[at[c]]->n_buckets; b++)
                reduce_bucket(x, s, &bp->programs[at[c]]->buckets[b], done, 0);
        ends[n++] = done;
        ends[n++] = last_node(x, s, MAQ_STREAM_DP);
    }
    if (bp->tied_item) {
        uint32_t halves[4] = {ends[0], ends[1], ends[2 * pp - 2], ends[2 * pp - 1]};
        struct maq_node_tag tag = tag_of(0, 0);
        tag.bucket = MAQ_BUCKET_DP;
        ends[n++] = tied = maq_graph_add(&x->b, 0, MAQ_STREAM_DP, bp->tied_item, tag, halves, 4);
    }
    struct maq_node_tag tag = tag_of(0, 0);
    tag.bucket = MAQ_BUCKET_DP;
    uint32_t norm = bp->told_item ? MAQ_NODE_NONE : maq_graph_add(&x->b, 0, MAQ_STREAM_DP, bp->norm_item, tag, ends, n);
    for (uint32_t s = 0; s < pp; s++) {
        uint16_t at[MAQ_MAX_STAGES];
        uint32_t chunks = maq_schedule_positions(bp->schedule, s, at);
        const uint32_t own[3] = {ends[2 * s], ends[2 * s + 1], s == 0 || s == pp - 1 ? tied : MAQ_NODE_NONE};
        if (bp->told_item)
            norm = norm_in_turn(x, s, own, &before);
        maq_graph_add_segment(&x->b, s, bp->optimizer[s], tag_of(0, 0), norm);
        stand_still(x, s, bp->lost_ns[s], MAQ_GAP_CONTENTION, 0);
        stand_still(x, s, bp->unpaired_ns[s], MAQ_GAP_EXCHANGE, 0);
        uint32_t updated = last_node(x, s, MAQ_STREAM_COMPUTE);
        if (bp->gather_first || bp->gather_every_pass || bp->job->plan.sharding == MAQ_SHARDING_NONE)
            continue;
        for (uint32_t c = 0; c < chunks; c++)
            for (uint32_t b = 0; b < bp->programs[at[c]]->n_buckets; b++)
                gather_bucket(x, s, &bp->programs[at[c]]->buckets[b], updated, 0, false);
    }
}

static void fill_none(uint32_t *a, size_t n)
{
    for (size_t i = 0; i < n; i++)
        a[i] = MAQ_NODE_NONE;
}

static enum maq_status expand(struct maq_graph *out, const struct maq_blueprint *bp, struct maq_arena *arena)
{
    const struct maq_schedule *s = bp->schedule;
    struct expansion x = {.bp = bp};
    struct maq_step_times times = {0};
    size_t slots = 2 * (size_t)s->n_positions;
    uint32_t *multiplicity = MAQ_ARENA_NEW(arena, uint32_t, s->stages);
    x.end = MAQ_ARENA_NEW(arena, uint32_t, s->n_tasks);
    x.sent = MAQ_ARENA_NEW(arena, uint32_t, s->n_tasks);
    x.sends = MAQ_ARENA_NEW(arena, uint8_t, s->n_tasks);
    x.port = MAQ_ARENA_NEW(arena, uint32_t, s->stages);
    x.stalled = MAQ_ARENA_NEW(arena, uint32_t, s->stages);
    x.gathered = MAQ_ARENA_NEW(arena, uint32_t *, slots);
    x.first_done = MAQ_ARENA_NEW(arena, uint8_t, slots);
    uint32_t buckets = 0, reduced = 0;
    for (uint32_t v = 0; v < s->n_positions; v++) {
        uint32_t own = 0;
        for (uint32_t i = 0; i < bp->programs[v]->n_buckets; i++)
            own += bp->programs[v]->buckets[i].n_ddp;
        reduced = own > reduced ? own : reduced;
        buckets = bp->programs[v]->n_buckets > buckets ? bp->programs[v]->n_buckets : buckets;
    }
    x.done = MAQ_ARENA_NEW(arena, uint32_t, buckets);
    x.reduced = MAQ_ARENA_NEW(arena, uint32_t, (size_t)reduced + 1);
    if (!multiplicity || !x.end || !x.sent || !x.sends || !x.port || !x.stalled || !x.gathered || !x.first_done ||
        !x.done || !x.reduced)
        return MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < s->stages; i++)
        multiplicity[i] = bp->job->cluster.devices / s->stages;
    fill_none(x.sent, s->n_tasks);
    fill_none(x.port, s->stages);
    fill_none(x.stalled, s->stages);
    if (bp->told_item)
        MAQ_TRY(maq_step_times(&times, &bp, 1, arena));
    MAQ_TRY(maq_graph_builder_init(&x.b, s->stages, multiplicity));
    survey(&x);
    for (uint32_t i = 0; i < s->stages && times.begin; i++) /* behind the step before */
        stand_still(&x, i, times.begin[i], MAQ_GAP_BEGIN, 0);
    gather_first(&x, arena);
    for (uint32_t id = 0; id < s->n_tasks && !x.b.failed; id++)
        run_task(&x, id);
    if (!x.b.failed)
        end_of_step(&x);
    return maq_graph_freeze(out, &x.b, bp->items->n);
}

enum maq_status maq_train_graph(struct maq_train_graph *out, const struct maq_job *job, struct maq_diag *diag)
{
    struct owner *o = calloc(1, sizeof *o);
    if (!o)
        return MAQ_NO_MEMORY;
    struct maq_graph graph = {0};
    enum maq_status status = maq_job_step_open(&o->step, job, NULL, diag);
    if (status == MAQ_OK)
        status = expand(&graph, &o->step.bp, &o->step.arena);
    if (status == MAQ_OK) {
        o->dur = MAQ_ARENA_NEW(&o->step.arena, double, o->step.bp.items->n);
        o->alone = MAQ_ARENA_NEW(&o->step.arena, double, o->step.bp.items->n);
        status = o->dur && o->alone ? MAQ_OK : MAQ_NO_MEMORY;
    }
    if (status != MAQ_OK) {
        maq_graph_fini(&graph);
        maq_job_step_close(&o->step);
        free(o);
        return status;
    }
    for (uint32_t i = 0; i < o->step.bp.items->n; i++) {
        const struct maq_item *it = &o->step.bp.items->at[i];
        bool contention = !it->is_coll && it->op.kind == MAQ_OP_GAP && it->op.d[1] == MAQ_GAP_CONTENTION;
        o->dur[i] = it->dur_ns;
        o->alone[i] = contention ? 0 : it->dur_ns;
    }
    *out = (struct maq_train_graph){.graph = graph,
                                    .dur_ns = o->dur,
                                    .alone_ns = o->alone,
                                    .module_names = o->step.bp.items->names,
                                    .n_module_names = o->step.bp.items->n_names,
                                    .owner = o};
    return MAQ_OK;
}

void maq_train_graph_free(struct maq_train_graph *graph)
{
    struct owner *o = graph->owner;
    maq_graph_fini(&graph->graph);
    if (o)
        maq_job_step_close(&o->step);
    free(o);
    *graph = (struct maq_train_graph){0};
}

const char *maq_train_item_text(char buf[96], const struct maq_train_graph *graph, uint32_t item)
{
    const struct owner *o = graph->owner;
    return maq_item_describe(buf, &o->step.bp.items->at[item]);
}
