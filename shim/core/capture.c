/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture.c - streams whose operations become nodes of a graph instead of running.
 *
 * In a CUDA program: what stands between cudaStreamBeginCapture() and cudaStreamEndCapture().
 *
 * A captured stream holds its tips: the nodes that its next one depends on. An event recorded there holds them too, and a
 * stream that waits for the event takes them up and is captured from then on, until the capture ends where it began.
 */
#include "shim/core/graph.h"

#include <stdlib.h>
#include <string.h>

#include "shim/grow.h"

static uint64_t last_id;

static bool take_tips(struct vg_stream *s, const uint32_t *tips, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        bool there = false;
        for (uint32_t k = 0; k < s->n_tips; k++)
            there = there || s->tips[k] == tips[i];
        if (there)
            continue;
        uint32_t *bigger = vg_grown(s->tips, s->n_tips, &s->tips_room, 4, sizeof *s->tips);
        if (bigger == NULL)
            return false;
        s->tips = bigger;
        s->tips[s->n_tips++] = tips[i];
    }
    return true;
}

bool vg_capture_tip(struct vg_stream *s, uint32_t node)
{
    return take_tips(s, &node, 1);
}

bool vg_capture_begin(struct vg_stream *s, int mode)
{
    struct vg_capture *capture = s->capture == NULL && !s->legacy ? calloc(1, sizeof *capture) : NULL;
    if (capture == NULL)
        return false;
    *capture = (struct vg_capture){.id = ++last_id, .graph = vg_graph_new(), .origin = s, .mode = mode};
    if (capture->graph == NULL) {
        free(capture);
        return false;
    }
    s->capture = capture;
    s->n_tips = 0;
    return true;
}

struct leaving {
    struct vg_capture *capture;
    bool forked; /* a stream has work that nobody waited for */
};

static bool is_tip(const struct vg_stream *s, uint32_t node)
{
    for (uint32_t k = 0; k < s->n_tips; k++)
        if (s->tips[k] == node)
            return true;
    return false;
}

/* Whether something depends on a node. */
static bool followed(const struct vg_graph *graph, uint32_t node)
{
    for (uint32_t i = node + 1; i < graph->n; i++)
        for (uint32_t k = 0; k < graph->nodes[i]->n_deps; k++)
            if (graph->nodes[i]->deps[k] == node)
                return true;
    return false;
}

static void leave(struct vg_stream *s, void *user)
{
    struct leaving *l = user;
    if (s->capture != l->capture)
        return;
    for (uint32_t k = 0; s != l->capture->origin && k < s->n_tips; k++)
        l->forked = l->forked || (!is_tip(l->capture->origin, s->tips[k]) && !followed(l->capture->graph, s->tips[k]));
    s->capture = NULL;
    if (s != l->capture->origin)
        s->n_tips = 0;
}

struct vg_graph *vg_capture_end(struct vg_stream *s)
{
    struct vg_capture *capture = s->capture;
    if (capture == NULL || capture->origin != s)
        return NULL;
    struct leaving l = {.capture = capture};
    vg_stream_foreach(leave, &l);
    s->n_tips = 0;
    struct vg_graph *graph = capture->graph;
    if (l.forked || capture->spoiled) {
        vg_graph_free(graph);
        graph = NULL;
    }
    free(capture);
    return graph;
}

/* A node behind the stream's tips; it becomes the tip. */
static struct vg_node *append(struct vg_stream *s, enum vg_node_kind kind)
{
    struct vg_node *node = vg_graph_add(s->capture->graph, kind, s->tips, s->n_tips);
    if (node == NULL) {
        s->capture->spoiled = true;
        return NULL;
    }
    s->n_tips = 0;
    take_tips(s, &node->index, 1);
    return node;
}

/* enum cudaGraphNodeType */
static int type_of(const struct maq_rec *rec)
{
    return rec->kind == MAQ_REC_COPY ? 1 : rec->kind == MAQ_REC_SET ? 2 : 0;
}

void vg_capture_rec(struct vg_stream *s, struct maq_rec rec)
{
    struct vg_node *node = append(s, VG_NODE_REC);
    if (node != NULL) {
        node->rec = rec;
        node->type = type_of(&rec);
    }
}

void vg_capture_parts(struct vg_stream *s, const struct vg_meeting *parts, uint32_t n)
{
    struct vg_node *node = append(s, VG_NODE_PARTS);
    if (node != NULL && (node->parts = calloc(n, sizeof *parts)) != NULL) {
        memcpy(node->parts, parts, n * sizeof *parts);
        node->n_parts = n;
    }
}

void vg_capture_host(struct vg_stream *s, void (*function)(void *), void *data)
{
    struct vg_node *node = append(s, VG_NODE_HOST);
    if (node != NULL) {
        node->function = function;
        node->data = data;
        node->type = 3;
    }
}

void vg_capture_record(struct vg_event *e, struct vg_stream *s)
{
    free(e->tips);
    e->tips = NULL;
    e->n_tips = 0;
    if (s->n_tips > 0 && (e->tips = malloc(s->n_tips * sizeof *e->tips)) != NULL) {
        memcpy(e->tips, s->tips, s->n_tips * sizeof *e->tips);
        e->n_tips = s->n_tips;
    }
    e->capture = s->capture;
    e->capture_id = s->capture->id;
}

struct search {
    uint64_t id;
    struct vg_capture *found;
};

static void match(struct vg_stream *s, void *user)
{
    struct search *search = user;
    if (s->capture != NULL && s->capture->id == search->id)
        search->found = s->capture;
}

bool vg_capture_wait(struct vg_stream *s, struct vg_event *e)
{
    struct search search = {.id = e->capture_id};
    if (e->capture != NULL)
        vg_stream_foreach(match, &search);
    if (search.found == NULL) { /* of a capture that has ended, or of none */
        e->capture = NULL;
        return s->capture != NULL; /* what ran before a capture is no part of it */
    }
    if (s->capture != NULL && s->capture != search.found) {
        s->capture->spoiled = search.found->spoiled = true;
        return true;
    }
    if (s->capture == NULL)
        s->n_tips = 0;
    s->capture = search.found;
    take_tips(s, e->tips, e->n_tips);
    return true;
}
