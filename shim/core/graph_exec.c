/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_exec.c - CUDA graphs that are instantiated and launched.
 *
 * In a CUDA program: cudaGraphExec_t, cudaGraphLaunch().
 *
 * A graph is cut into chains: a node continues the chain whose last node it depends on, and otherwise begins one. The
 * first chain runs on the stream that the graph is launched on, the others on branch streams of that one; dependencies
 * between chains are events. So a launched graph is a list of ordinary operations, marked MAQ_REC_GRAPH, and a reader of the
 * trace need not know what a graph is.
 */
#include "shim/core/graph.h"

#include <stdlib.h>
#include <string.h>

#include "shim/core/enqueue.h"
#include "shim/core/queue.h"
#include "shim/grow.h"

/* --- chains ------------------------------------------------------------------------------------------------------------- */

static bool say(struct vg_exec *exec, int kind, uint32_t branch, uint32_t what)
{
    struct vg_step *bigger = vg_grown(exec->steps, exec->n_steps, &exec->room, 64, sizeof *exec->steps);
    if (bigger == NULL)
        return false;
    exec->steps = bigger;
    exec->steps[exec->n_steps++] = (struct vg_step){.kind = kind, .branch = branch, .what = what};
    return true;
}

/* Nodes in an order in which each comes after what it depends on, lowest numbers first; false: a cycle. */
static bool sort(const struct vg_graph *graph, uint32_t *order)
{
    uint32_t *open = calloc((size_t)graph->n + 1, sizeof *open), done = 0;
    if (open == NULL)
        return false;
    for (uint32_t i = 0; i < graph->n; i++)
        open[i] = graph->nodes[i]->n_deps;
    for (bool more = true; more && done < graph->n;) {
        more = false;
        for (uint32_t i = 0; i < graph->n; i++) {
            bool ready = open[i] != UINT32_MAX;
            for (uint32_t k = 0; ready && k < graph->nodes[i]->n_deps; k++)
                ready = open[graph->nodes[i]->deps[k]] == UINT32_MAX;
            if (ready) {
                open[i] = UINT32_MAX;
                order[done++] = i;
                more = true;
            }
        }
    }
    free(open);
    return done == graph->n;
}

struct chains {
    uint32_t *branch; /* of each node */
    uint32_t *event;  /* recorded behind each node; UINT32_MAX = none */
    uint32_t *last;   /* node at the end of each chain */
    uint32_t n;
    uint32_t start; /* event at the start; UINT32_MAX = none */
};

/* The chain that a node continues, or a new one. The first chain is that of the launching stream. */
static uint32_t chain_of(struct chains *c, const struct vg_node *node)
{
    for (uint32_t k = 0; k < node->n_deps; k++)
        if (c->last[c->branch[node->deps[k]]] == node->deps[k])
            return c->branch[node->deps[k]];
    return c->n++;
}

static bool place(struct vg_exec *exec, struct chains *c, uint32_t i)
{
    const struct vg_node *node = exec->graph->nodes[i];
    uint32_t before = c->n, b = chain_of(c, node);
    bool ok = true;
    if (b == before && b > 0 && node->n_deps == 0)
        ok = say(exec, VG_STEP_WAIT, b, c->start);
    for (uint32_t k = 0; ok && k < node->n_deps; k++) {
        uint32_t d = node->deps[k];
        if (c->branch[d] != b)
            ok = say(exec, VG_STEP_WAIT, b, c->event[d]);
    }
    c->branch[i] = b;
    c->last[b] = i;
    ok = ok && say(exec, VG_STEP_NODE, b, i);
    if (ok && c->event[i] != UINT32_MAX)
        ok = say(exec, VG_STEP_RECORD, b, c->event[i]);
    return ok;
}

/* First pass: which nodes need an event behind them. A dry run of place() over branches. */
static void find_events(struct vg_exec *exec, struct chains *c, const uint32_t *order)
{
    const struct vg_graph *graph = exec->graph;
    for (uint32_t at = 0; at < graph->n; at++) {
        uint32_t i = order[at], before = c->n, b = chain_of(c, graph->nodes[i]);
        if (b == before && b > 0 && graph->nodes[i]->n_deps == 0 && c->start == UINT32_MAX)
            c->start = exec->n_events++;
        for (uint32_t k = 0; k < graph->nodes[i]->n_deps; k++) {
            uint32_t d = graph->nodes[i]->deps[k];
            if (c->branch[d] != b && c->event[d] == UINT32_MAX)
                c->event[d] = exec->n_events++;
        }
        c->branch[i] = b;
        c->last[b] = i;
    }
    for (uint32_t b = 1; b < c->n; b++) /* the launching stream goes on when all chains have ended */
        if (c->event[c->last[b]] == UINT32_MAX)
            c->event[c->last[b]] = exec->n_events++;
}

static bool cut(struct vg_exec *exec, struct chains *c, uint32_t *order)
{
    if (!sort(exec->graph, order))
        return false;
    c->start = UINT32_MAX;
    memset(c->event, 0xff, exec->graph->n * sizeof *c->event);
    find_events(exec, c, order);
    c->n = 0;
    bool ok = c->start == UINT32_MAX || say(exec, VG_STEP_RECORD, 0, c->start);
    for (uint32_t at = 0; ok && at < exec->graph->n; at++)
        ok = place(exec, c, order[at]);
    for (uint32_t b = 1; ok && b < c->n; b++)
        ok = say(exec, VG_STEP_WAIT, 0, c->event[c->last[b]]);
    exec->events = calloc((size_t)exec->n_events + 1, sizeof(struct vg_event *));
    for (uint32_t i = 0; exec->events != NULL && i < exec->n_events; i++)
        ok = (exec->events[i] = vg_event_new(VG_EVENT_NO_TIMING)) != NULL && ok;
    return ok && exec->events != NULL;
}

struct vg_exec *vg_exec_new(const struct vg_graph *graph)
{
    struct vg_exec *exec = calloc(1, sizeof *exec);
    size_t n = (size_t)graph->n + 1;
    uint32_t *space = calloc(4 * n, sizeof *space);
    if (exec != NULL)
        exec->graph = vg_graph_copy(graph);
    bool ok = exec != NULL && space != NULL && exec->graph != NULL;
    if (ok) {
        struct chains c = {.branch = space, .event = space + n, .last = space + 2 * n};
        ok = cut(exec, &c, space + 3 * n);
        exec->magic = VG_EXEC_MAGIC;
    }
    free(space);
    if (!ok && exec != NULL) {
        vg_exec_free(exec);
        exec = NULL;
    }
    return exec;
}

void vg_exec_free(struct vg_exec *exec)
{
    for (uint32_t i = 0; exec->events != NULL && i < exec->n_events; i++)
        if (exec->events[i] != NULL)
            vg_event_free(exec->events[i]);
    if (exec->graph != NULL)
        vg_graph_free(exec->graph);
    free(exec->events);
    free(exec->steps);
    memset(exec, 0, sizeof *exec);
    free(exec);
}

bool vg_exec_update(struct vg_exec *exec, const struct vg_graph *graph)
{
    if (graph->n != exec->graph->n)
        return false;
    for (uint32_t i = 0; i < graph->n; i++) {
        const struct vg_node *a = exec->graph->nodes[i], *b = graph->nodes[i];
        if (a->kind != b->kind || a->type != b->type || a->n_deps != b->n_deps ||
            (a->n_deps > 0 && memcmp(a->deps, b->deps, a->n_deps * sizeof *a->deps) != 0))
            return false;
    }
    bool ok = true;
    for (uint32_t i = 0; i < graph->n; i++)
        ok = vg_node_copy_work(exec->graph->nodes[i], graph->nodes[i]) && ok;
    return ok;
}

/* --- running -------------------------------------------------------------------------------------------------------------- */

static void run_plain(const struct vg_graph *graph, struct vg_stream *s);

static void run_node(const struct vg_node *node, struct vg_stream *s)
{
    if (node->kind == VG_NODE_REC) {
        struct maq_rec rec = node->rec;
        rec.flags |= MAQ_REC_GRAPH;
        vg_enqueue_now(s, rec);
    } else if (node->kind == VG_NODE_PARTS) {
        vg_enqueue_parts(s, node->parts, node->n_parts, MAQ_REC_GRAPH);
    } else if (node->kind == VG_NODE_HOST) {
        vg_enqueue_host(s, node->function, node->data);
    } else if (node->kind == VG_NODE_CHILD && node->child != NULL) {
        run_plain(node->child, s);
    }
}

/* A graph inside a graph runs in order on its chain's stream. */
static void run_plain(const struct vg_graph *graph, struct vg_stream *s)
{
    for (uint32_t i = 0; i < graph->n; i++)
        run_node(graph->nodes[i], s);
}

void vg_exec_launch(struct vg_exec *exec, struct vg_stream *s)
{
    vg_lock();
    if (s->capture != NULL) { /* a launch inside a capture: its nodes, in order */
        for (uint32_t i = 0; i < exec->n_steps; i++) {
            const struct vg_node *node = exec->graph->nodes[exec->steps[i].what];
            if (exec->steps[i].kind != VG_STEP_NODE)
                continue;
            if (node->kind == VG_NODE_REC)
                vg_capture_rec(s, node->rec);
            else if (node->kind == VG_NODE_PARTS)
                vg_capture_parts(s, node->parts, node->n_parts);
            else if (node->kind == VG_NODE_HOST)
                vg_capture_host(s, node->function, node->data);
        }
        vg_unlock();
        return;
    }
    vg_stream_join(s);
    vg_mem_written_anywhere(); /* what its kernels reach was looked at when they were captured, and not kept */
    for (uint32_t i = 0; i < exec->n_steps; i++) {
        const struct vg_step *step = &exec->steps[i];
        struct vg_stream *on = vg_stream_branch(s, step->branch);
        if (step->kind == VG_STEP_NODE)
            run_node(exec->graph->nodes[step->what], on);
        else if (step->kind == VG_STEP_RECORD)
            vg_mark_record(exec->events[step->what], on);
        else
            vg_mark_wait(on, exec->events[step->what]);
    }
    vg_unlock();
}
