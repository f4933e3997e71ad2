/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline.c - a pipeline of a mixed plan, simulated task by task on the execution graph.
 *
 * Micro batch m of a stage runs on the replica with the least of its share done, the first one among equals: round-robin where
 * shares are equal. A replica runs 1F1B as DeepSpeed's TrainSchedule does (deepspeed/runtime/pipe/schedule.py): w forward passes,
 * then a backward and a forward pass in turn. w is one more than the replica must have sent on before the next stage runs its first
 * backward pass: stages - i where all stages have as many replicas, and then also the most micro batches that it holds at once.
 * Before a forward pass it sends the gradient of the last backward pass and receives activations; before a backward pass it
 * receives a gradient and then sends the activations of the last forward pass (where neighbours deal micro batches differently, at
 * once after the forward pass: the order of the former could wait in a circle).
 *
 * Sends and receives are calls of the host in between (torch.distributed, not batched), the device waits for them:
 *
 *     transfer   h = bytes / rate of the link between the nodes, for all TP ranks at once; every direction of a replica is a wire
 *                of its own, first come first served
 *     sender     is kept until all but the 1 MiB per rank that NCCL's buffers hold is on its way (8 steps of 128 KiB,
 *                NCCL_P2P_NET_CHUNKSIZE; NCCL 2.x, src/include/device.h NCCL_STEPS)
 *     receiver   waits for the last byte. Its pass begins with TP ranks gathering the parts they got (DeepSpeed's
 *                PartitionedTensor): TP - 1 steps of bytes / TP over the link inside the node, TP / 2 pairs of which the link's fit
 *                has measured together
 *     host       of the library's default framework profile (docs/frameworks.md): 0.3 ms for the two transfers of a pass, half of
 *                it before each; and since a pass that was received reads sizes back from the device first, 1.5 ms to issue it
 *                while the device has nothing to do
 */
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "graph/builder.h"
#include "plan/framework.h"
#include "plan/mixed/codes.h"
#include "plan/mixed/mixed_plan.h"
#include "train/profiled/profiled.h"

#define FIFO_BYTES (8 * 128 * 1024.0)
#define FLOAT_BYTES 4.0
#define MAX_TASKS (UINT32_C(1) << 22)

enum op { RECEIVE_ACTIVATION, FORWARD, SEND_ACTIVATION, RECEIVE_GRADIENT, BACKWARD, SEND_GRADIENT };

struct step {
    uint32_t op, microbatch;
};

/* A replica: its program, and how far it has run. */
struct player {
    struct step *program;
    uint32_t n, at;
    uint32_t last;      /* node after which the replica is free */
    uint32_t share;     /* micro batches, before they are dealt: of its part */
    uint32_t n_mine;    /* micro batches that it has */
    uint32_t w, full_w; /* forward passes before the first backward pass; were there more micro batches */
    struct maq_mixed_pass pass;
};

struct line {
    const struct maq_bound_plan *b;
    const struct maq_bound_pipeline *pipe;
    uint32_t pipeline, microbatches, n_players;
    uint32_t *first; /* [stages + 1] -> players */
    struct player *players;
    uint32_t *owner;      /* [stage * microbatches + m] -> replica of the stage */
    uint32_t *mine;       /* [stage * microbatches + m] -> micro batches by replica, in order */
    uint32_t *activation; /* [stage * microbatches + m] -> node of the arrival at the stage; MAQ_NODE_NONE = not sent */
    uint32_t *gradient;
    struct maq_graph_builder graph;
    double *dur; /* [nodes] ns */
    uint32_t dur_size;
    struct maq_arena *arena;
    struct maq_diag *diag;
};

static uint32_t replicas_of(const struct line *l, uint32_t stage)
{
    return l->first[stage + 1] - l->first[stage];
}

/* ---- who runs what ---- */

/* The replica that is the furthest behind its share; fractions compared by cross products. */
static uint32_t furthest_behind(const struct player *p, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t r = 1; r < n; r++)
        if ((uint64_t)p[r].n_mine * p[best].share < (uint64_t)p[best].n_mine * p[r].share)
            best = r;
    return best;
}

static void deal(struct line *l)
{
    for (uint32_t s = 0; s < l->pipe->n_stages; s++) {
        struct player *p = &l->players[l->first[s]];
        uint32_t n = replicas_of(l, s), *owner = &l->owner[s * l->microbatches], *mine = &l->mine[s * l->microbatches];
        for (uint32_t r = 0; r < n; r++)
            p[r].share = maq_mixed_replica_microbatches(l->b->plan, l->pipeline, s, r);
        for (uint32_t m = 0; m < l->microbatches; m++)
            p[owner[m] = furthest_behind(p, n)].n_mine++;
        for (uint32_t r = 0, k = 0; r < n; r++)
            for (uint32_t m = 0; m < l->microbatches && k < l->microbatches; m++)
                if (owner[m] == r)
                    mine[k++] = m;
    }
}

/* Forward passes before the first backward pass, from the last stage to the first; `extra` more in each but the last. */
static void warm_up(struct line *l, uint32_t extra)
{
    uint32_t wanted = 0; /* micro batches that the next stage needs before its first backward passes */
    for (uint32_t s = l->pipe->n_stages; s-- > 0;) {
        struct player *p = &l->players[l->first[s]];
        uint32_t n = replicas_of(l, s), next = 0, *mine = &l->mine[s * l->microbatches];
        for (uint32_t r = 0; r < n; r++)
            p[r].w = s + 1 < l->pipe->n_stages ? extra : 0;
        for (uint32_t m = 0; m < wanted; m++)
            p[l->owner[s * l->microbatches + m]].w++;
        for (uint32_t r = 0; r < n; mine += p[r].n_mine, r++) {
            p[r].full_w = p[r].w + 1;
            p[r].w = p[r].full_w < p[r].n_mine ? p[r].full_w : p[r].n_mine;
            if (p[r].w > 0 && mine[p[r].w - 1] + 1 > next)
                next = mine[p[r].w - 1] + 1;
        }
        wanted = next;
    }
}

/* ---- passes ---- */

/* The parts that the TP ranks of a replica received become the whole on each. */
static double gather_s(const struct maq_bound_plan *b, const struct maq_bound_replica *r, double bytes)
{
    uint32_t tp = r->plan->tp;
    if (tp == 1)
        return 0;
    const struct maq_link_fit *link = r->plan->n_members == 1
                                          ? maq_profile_dir_node_link(b->profile, r->members[0].at.device, tp)
                                          : maq_profile_dir_link(b->profile, r->members[0].at, r->members[0].at);
    MAQ_ASSERT(link);
    double pairs = r->plan->n_members == 1 ? tp / 2.0 : 1;
    return (tp - 1) * pairs * maq_link_send_s(link, bytes / tp);
}

static double border_bytes(const struct line *l, uint32_t stage)
{
    const struct maq_mixed_stage *s = l->pipe->stages[stage].plan;
    return l->b->whole[s->first_layer - 1].output * FLOAT_BYTES * l->b->plan->micro_batch;
}

static void time_passes(const struct line *l, uint32_t stage, struct player *p, const struct maq_bound_replica *r)
{
    maq_mixed_pass_time(&p->pass, l->b, &l->pipe->stages[stage], r);
    if (stage > 0)
        p->pass.forward_s += maq_framework_default.host.pass_s + gather_s(l->b, r, border_bytes(l, stage));
    if (stage + 1 < l->pipe->n_stages)
        p->pass.backward_s += maq_framework_default.host.pass_s + gather_s(l->b, r, border_bytes(l, stage + 1));
}

/* ---- programs ---- */

static void put(struct player *p, uint32_t op, uint32_t microbatch)
{
    p->program[p->n++] = (struct step){op, microbatch};
}

/* `late`: activations wait for the gradient that comes before them in DeepSpeed's order. */
static void write_program(struct line *l, uint32_t stage, struct player *p, const uint32_t *mine, bool late)
{
    bool first = stage == 0, last = stage + 1 == l->pipe->n_stages;
    uint32_t pending = UINT32_MAX;
    for (uint32_t i = 0, b = 0; b < p->n_mine;) {
        bool forward = i < p->n_mine && i < b + p->w;
        uint32_t m = mine[forward ? i : b];
        if (forward && !first)
            put(p, RECEIVE_ACTIVATION, m);
        if (!forward && !last)
            put(p, RECEIVE_GRADIENT, m);
        if (pending != UINT32_MAX)
            put(p, SEND_ACTIVATION, pending);
        pending = UINT32_MAX;
        put(p, forward ? FORWARD : BACKWARD, m);
        if (forward && !last && late && i + 1 >= p->full_w) /* a backward pass follows */
            pending = m;
        else if (forward && !last)
            put(p, SEND_ACTIVATION, m);
        if (!forward && !first)
            put(p, SEND_GRADIENT, m);
        i += forward;
        b += !forward;
    }
}

/* Neighbours with the same dealing of micro batches run in DeepSpeed's order. */
static bool same_dealing(const struct line *l, uint32_t stage)
{
    const uint32_t *a = &l->owner[(size_t)stage * l->microbatches];
    return memcmp(a, a + l->microbatches, l->microbatches * sizeof *a) == 0;
}

static void write_programs(struct line *l)
{
    for (uint32_t s = 0; s < l->pipe->n_stages; s++) {
        const uint32_t *mine = &l->mine[s * l->microbatches];
        bool late = s + 1 < l->pipe->n_stages && same_dealing(l, s);
        for (uint32_t i = l->first[s]; i < l->first[s + 1]; mine += l->players[i++].n_mine) {
            l->players[i].n = l->players[i].at = 0;
            write_program(l, s, &l->players[i], mine, late);
        }
    }
}

/* A step without its times: false when what it receives was not sent. */
static bool try_step(struct line *l, uint32_t stage, struct step step)
{
    size_t here = (size_t)stage * l->microbatches + step.microbatch;
    switch ((enum op)step.op) {
    case SEND_ACTIVATION:
        l->activation[here + l->microbatches] = 0;
        break;
    case SEND_GRADIENT:
        l->gradient[here - l->microbatches] = 0;
        break;
    case RECEIVE_ACTIVATION:
        return l->activation[here] != MAQ_NODE_NONE;
    case RECEIVE_GRADIENT:
        return l->gradient[here] != MAQ_NODE_NONE;
    case FORWARD:
    case BACKWARD:
        break;
    }
    return true;
}

static void nothing_sent(struct line *l)
{
    for (size_t i = 0; i < (size_t)l->pipe->n_stages * l->microbatches; i++)
        l->activation[i] = l->gradient[i] = MAQ_NODE_NONE;
    for (uint32_t i = 0; i < l->n_players; i++)
        l->players[i].at = 0;
}

/* Whether the programs run to their end, without a deadlock. */
static bool comes_through(struct line *l)
{
    bool moved = true, left = true;
    while (left && moved) {
        left = moved = false;
        for (uint32_t s = 0; s < l->pipe->n_stages; s++)
            for (uint32_t i = l->first[s]; i < l->first[s + 1]; i++) {
                struct player *p = &l->players[i];
                for (; p->at < p->n && try_step(l, s, p->program[p->at]); p->at++)
                    moved = true;
                left |= p->at < p->n;
            }
    }
    nothing_sent(l);
    return !left;
}

/*
 * Where shares are uneven a replica may wait for a micro batch that its neighbour sends only after a gradient from it. Then all
 * warm up with more micro batches, until there is no deadlock. With all forward passes first there is none.
 */
static enum maq_status order(struct line *l)
{
    for (uint32_t s = 0; s < l->pipe->n_stages; s++)
        for (uint32_t i = l->first[s]; i < l->first[s + 1]; i++) {
            struct player *p = &l->players[i];
            p->program = MAQ_ARENA_NEW(l->arena, struct step, (size_t)6 * p->n_mine);
            if (!p->program)
                return maq_no_memory(l->diag, "the plan");
            p->last = MAQ_NODE_NONE;
            time_passes(l, s, p, &l->pipe->stages[s].replicas[i - l->first[s]]);
        }
    nothing_sent(l);
    for (uint32_t extra = 0;; extra = extra > 0 ? 2 * extra : 1) {
        warm_up(l, extra);
        write_programs(l);
        if (comes_through(l))
            return MAQ_OK;
        MAQ_ASSERT(extra <= l->microbatches);
    }
}

/* ---- nodes ---- */

/* Every node is an item of its own. Class: a replica, or one of its two wires. */
static uint32_t add(struct line *l, uint32_t class_id, enum maq_stream stream, double seconds, uint32_t after)
{
    static const struct maq_node_tag tag = {.module = UINT16_MAX, .layer = UINT16_MAX};
    uint32_t node = l->graph.n_nodes;
    if (node == l->dur_size) {
        uint32_t size = l->dur_size ? 2 * l->dur_size : 4096;
        double *more = MAQ_ARENA_NEW(l->arena, double, size);
        if (!more) {
            l->graph.failed = true;
            return MAQ_NODE_NONE;
        }
        if (node > 0)
            memcpy(more, l->dur, node * sizeof *more);
        l->dur = more;
        l->dur_size = size;
    }
    l->dur[node] = round(seconds * 1e9);
    return maq_graph_add(&l->graph, class_id, stream, node, tag, &after, 1);
}

static double transfer_host_s(void)
{
    return maq_framework_default.host.p2p_s / 2;
}

/*
 * From one replica to another over their link; returns the node of the arrival and frees the sender when its buffers have the
 * rest.
 */
static enum maq_status send(struct line *l, uint32_t *arrival, uint32_t from, uint32_t wire,
                            const struct maq_bound_replica *a, const struct maq_bound_replica *z, double bytes)
{
    struct player *p = &l->players[from];
    const struct maq_link_fit *link = maq_bound_link(l->b, a, z, true);
    if (!link)
        return maq_bound_no_link(l->b, a->members[0].at, z->members[0].at, l->diag);
    uint32_t ranks = a->plan->tp < z->plan->tp ? a->plan->tp : z->plan->tp;
    double h = maq_link_send_s(link, bytes), held = 1 - FIFO_BYTES * ranks / bytes;
    held = held > 0 ? held : 0;
    p->last = add(l, from, MAQ_STREAM_COMPUTE, transfer_host_s(), p->last);
    uint32_t gone = add(l, wire, MAQ_STREAM_PP, h * held, p->last);
    *arrival = add(l, wire, MAQ_STREAM_PP, h * (1 - held), gone);
    p->last = add(l, from, MAQ_STREAM_COMPUTE, 0, gone);
    return MAQ_OK;
}

static enum maq_status take_step(struct line *l, uint32_t stage, uint32_t replica, struct step step, bool *done)
{
    uint32_t id = l->first[stage] + replica, m = step.microbatch, mb = l->microbatches;
    struct player *p = &l->players[id];
    const struct maq_bound_replica *r = &l->pipe->stages[stage].replicas[replica];
    *done = true;
    switch ((enum op)step.op) {
    case FORWARD:
        p->last = add(l, id, MAQ_STREAM_COMPUTE, p->pass.forward_s, p->last);
        return MAQ_OK;
    case BACKWARD:
        p->last = add(l, id, MAQ_STREAM_COMPUTE, p->pass.backward_s, p->last);
        return MAQ_OK;
    case SEND_ACTIVATION: {
        uint32_t to = l->owner[(stage + 1) * mb + m];
        return send(l, &l->activation[(stage + 1) * mb + m], id, l->n_players + id, r,
                    &l->pipe->stages[stage + 1].replicas[to], border_bytes(l, stage + 1));
    }
    case SEND_GRADIENT: {
        uint32_t to = l->owner[(stage - 1) * mb + m];
        return send(l, &l->gradient[(stage - 1) * mb + m], id, 2 * l->n_players + id, r,
                    &l->pipe->stages[stage - 1].replicas[to], border_bytes(l, stage));
    }
    case RECEIVE_ACTIVATION:
    case RECEIVE_GRADIENT: {
        bool forward = step.op == RECEIVE_ACTIVATION;
        uint32_t came = (forward ? l->activation : l->gradient)[stage * mb + m];
        *done = came != MAQ_NODE_NONE;
        if (*done) {
            add(l, id, MAQ_STREAM_COMPUTE, transfer_host_s(), p->last);
            p->last = add(l, id, MAQ_STREAM_COMPUTE, 0, came);
        }
        return MAQ_OK;
    }
    }
    return MAQ_OK;
}

/* Replicas take steps until each waits for another, over and over: nodes come in a topological order. */
static enum maq_status play(struct line *l)
{
    for (bool left = true; left;) {
        left = false;
        for (uint32_t s = 0; s < l->pipe->n_stages; s++)
            for (uint32_t r = 0; r < replicas_of(l, s); r++) {
                struct player *p = &l->players[l->first[s] + r];
                for (bool done = true; done && p->at < p->n; p->at += done)
                    MAQ_TRY(take_step(l, s, r, p->program[p->at], &done));
                left |= p->at < p->n;
            }
    }
    return MAQ_OK;
}

/* ---- a pipeline ---- */

static enum maq_status prepare(struct line *l)
{
    uint32_t stages = l->pipe->n_stages;
    size_t cells = (size_t)stages * l->microbatches;
    l->first = MAQ_ARENA_NEW(l->arena, uint32_t, stages + 1);
    if (!l->first)
        return maq_no_memory(l->diag, "the plan");
    for (uint32_t s = 0; s < stages; s++)
        l->first[s + 1] = l->first[s] + l->pipe->stages[s].plan->n_replicas;
    l->n_players = l->first[stages];
    if (cells > MAX_TASKS || l->n_players > MAX_TASKS)
        return maq_diag_fail(MAQ_LIMIT, l->diag, MAQ_CODE_MIXED_UNPRICED, (struct maq_span){0}, NULL,
                             "a pipeline of more than %u passes", MAX_TASKS);
    l->players = MAQ_ARENA_NEW(l->arena, struct player, l->n_players);
    l->owner = MAQ_ARENA_NEW(l->arena, uint32_t, cells);
    l->mine = MAQ_ARENA_NEW(l->arena, uint32_t, cells);
    l->activation = MAQ_ARENA_NEW(l->arena, uint32_t, cells);
    l->gradient = MAQ_ARENA_NEW(l->arena, uint32_t, cells);
    uint32_t *multiplicity = MAQ_ARENA_NEW(l->arena, uint32_t, (size_t)3 * l->n_players);
    if (!l->players || !l->owner || !l->mine || !l->activation || !l->gradient || !multiplicity)
        return maq_no_memory(l->diag, "the plan");
    for (uint32_t i = 0; i < 3 * l->n_players; i++)
        multiplicity[i] = 1;
    return maq_graph_builder_init(&l->graph, 3 * l->n_players, multiplicity);
}

static enum maq_status evaluate(double *pipeline_s, struct line *l)
{
    struct maq_graph graph;
    double makespan;
    uint32_t n = l->graph.n_nodes;
    double *finish = MAQ_ARENA_NEW(l->arena, double, n);
    if (!finish)
        return maq_no_memory(l->diag, "the plan");
    enum maq_status status = maq_graph_freeze(&graph, &l->graph, n);
    if (status != MAQ_OK)
        return maq_no_memory(l->diag, "the plan");
    maq_engine_static(&makespan, finish, &graph, 1, l->dur);
    maq_graph_fini(&graph);
    *pipeline_s = makespan * 1e-9;
    return MAQ_OK;
}

enum maq_status maq_mixed_simulate_pipeline(double *pipeline_s, uint32_t *in_flight, const struct maq_bound_plan *b,
                                            uint32_t pipeline, struct maq_arena *arena, struct maq_diag *diag)
{
    struct line l = {.b = b,
                     .pipe = &b->pipelines[pipeline],
                     .pipeline = pipeline,
                     .microbatches = maq_mixed_pipeline_microbatches(b->plan, pipeline),
                     .arena = arena,
                     .diag = diag};
    MAQ_TRY(prepare(&l));
    deal(&l);
    enum maq_status status = order(&l);
    if (status == MAQ_OK)
        status = play(&l);
    if (status == MAQ_OK)
        status = evaluate(pipeline_s, &l);
    for (uint32_t i = 0; i < l.n_players; i++)
        in_flight[i] = l.players[i].w;
    maq_graph_builder_fini(&l.graph);
    return status;
}
