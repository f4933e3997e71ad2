/* SPDX-License-Identifier: Apache-2.0 */
/*
 * builder.c - columns of nodes and edges that double as they grow, the last node of each stream, and freezing. See
 * builder.h.
 */
#include "graph/builder.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

enum maq_status maq_graph_builder_init(struct maq_graph_builder *b, uint32_t n_classes, const uint32_t *multiplicity)
{
    *b = (struct maq_graph_builder){.n_classes = n_classes};
    size_t streams = (size_t)n_classes * MAQ_STREAM_COUNT;
    b->multiplicity = malloc((n_classes ? n_classes : 1) * sizeof *b->multiplicity);
    b->last_on = malloc((streams ? streams : 1) * sizeof *b->last_on);
    if (!b->multiplicity || !b->last_on) {
        maq_graph_builder_fini(b);
        return MAQ_NO_MEMORY;
    }
    if (n_classes > 0)
        memcpy(b->multiplicity, multiplicity, n_classes * sizeof *multiplicity);
    for (size_t i = 0; i < streams; i++)
        b->last_on[i] = MAQ_NODE_NONE;
    return MAQ_OK;
}

static bool resize(void **column, size_t n, size_t size)
{
    void *p = realloc(*column, n * size);
    if (p)
        *column = p;
    return p != NULL;
}

static bool grow_nodes(struct maq_graph_builder *b)
{
    if (b->n_nodes < b->node_size)
        return true;
    size_t n = b->node_size ? (size_t)b->node_size * 2 : 4096;
    if (n > UINT32_MAX / 2 || !resize((void **)&b->item, n, sizeof *b->item) ||
        !resize((void **)&b->stream, n, sizeof *b->stream) ||
        !resize((void **)&b->pred_at, n + 1, sizeof *b->pred_at) || !resize((void **)&b->tag, n, sizeof *b->tag))
        return false;
    b->node_size = (uint32_t)n;
    return true;
}

static void add_edge(struct maq_graph_builder *b, uint32_t pred)
{
    if (b->n_edges == b->edge_size) {
        size_t n = b->edge_size ? (size_t)b->edge_size * 2 : 8192;
        if (n > UINT32_MAX / 2 || !resize((void **)&b->pred, n, sizeof *b->pred)) {
            b->failed = true;
            return;
        }
        b->edge_size = (uint32_t)n;
    }
    b->pred[b->n_edges++] = pred;
}

static uint32_t add_node(struct maq_graph_builder *b, uint32_t class_id, enum maq_stream stream, uint32_t item,
                         struct maq_node_tag tag, const uint32_t *preds, uint32_t n_preds, bool in_order)
{
    MAQ_ASSERT(class_id < b->n_classes);
    if (b->failed || !grow_nodes(b)) {
        b->failed = true;
        return MAQ_NODE_NONE;
    }
    uint32_t id = b->n_nodes++, *last = &b->last_on[class_id * MAQ_STREAM_COUNT + (uint32_t)stream];
    uint32_t behind = in_order ? *last : MAQ_NODE_NONE;
    b->item[id] = item;
    b->stream[id] = class_id * MAQ_STREAM_COUNT + (uint32_t)stream;
    b->tag[id] = tag;
    b->pred_at[id] = b->n_edges;
    if (behind != MAQ_NODE_NONE)
        add_edge(b, behind);
    for (uint32_t i = 0; i < n_preds; i++) {
        if (preds[i] == MAQ_NODE_NONE || preds[i] == behind)
            continue;
        MAQ_ASSERT(preds[i] < id);
        add_edge(b, preds[i]);
    }
    if (in_order)
        *last = id;
    b->pred_at[id + 1] = b->n_edges;
    return id;
}

uint32_t maq_graph_add(struct maq_graph_builder *b, uint32_t class_id, enum maq_stream stream, uint32_t item,
                       struct maq_node_tag tag, const uint32_t *preds, uint32_t n_preds)
{
    return add_node(b, class_id, stream, item, tag, preds, n_preds, true);
}

uint32_t maq_graph_add_transfer(struct maq_graph_builder *b, uint32_t class_id, uint32_t item, struct maq_node_tag tag,
                                uint32_t after, uint32_t behind)
{
    return add_node(b, class_id, MAQ_STREAM_PP, item, tag, (uint32_t[]){after, behind}, 2, false);
}

uint32_t maq_graph_add_loose(struct maq_graph_builder *b, uint32_t class_id, enum maq_stream stream, uint32_t item,
                             struct maq_node_tag tag, const uint32_t *preds, uint32_t n_preds)
{
    return add_node(b, class_id, stream, item, tag, preds, n_preds, false);
}

uint32_t maq_graph_add_segment(struct maq_graph_builder *b, uint32_t class_id, const struct maq_segment *segment,
                               struct maq_node_tag tag, uint32_t after)
{
    uint32_t *last_compute = &b->last_on[class_id * MAQ_STREAM_COUNT + MAQ_STREAM_COMPUTE];
    uint32_t entry = *last_compute, first = b->n_nodes;
    uint32_t seen = 0; /* streams that have a step already */
    for (uint32_t i = 0; i < segment->n; i++) {
        const struct maq_step *s = &segment->steps[i];
        uint32_t preds[4], n = 0;
        for (int k = 0; k < 2; k++)
            if (s->after[k] != MAQ_STEP_NONE)
                preds[n++] = first + s->after[k];
        if (!(seen & (1u << s->stream)) && n == 0) {
            preds[n++] = entry;
            preds[n++] = after;
        }
        seen |= 1u << s->stream;
        tag.bucket = s->bucket;
        tag.part = s->part;
        tag.module = s->name;
        maq_graph_add(b, class_id, (enum maq_stream)s->stream, s->item, tag, preds, n);
        if (b->failed)
            return MAQ_NODE_NONE;
    }
    return *last_compute;
}

enum maq_status maq_graph_freeze(struct maq_graph *out, struct maq_graph_builder *b, uint32_t n_items)
{
    if (!b->failed && b->n_nodes == 0 && !grow_nodes(b))
        b->failed = true;
    if (b->failed) {
        maq_graph_builder_fini(b);
        return MAQ_NO_MEMORY;
    }
    if (b->n_nodes == 0)
        b->pred_at[0] = 0;
    *out = (struct maq_graph){.n_nodes = b->n_nodes,
                              .n_edges = b->n_edges,
                              .n_classes = b->n_classes,
                              .n_items = n_items,
                              .item = b->item,
                              .stream = b->stream,
                              .pred_at = b->pred_at,
                              .pred = b->pred,
                              .tag = b->tag,
                              .multiplicity = b->multiplicity};
    free(b->last_on);
    *b = (struct maq_graph_builder){0};
    return MAQ_OK;
}

void maq_graph_builder_fini(struct maq_graph_builder *b)
{
    free(b->item);
    free(b->stream);
    free(b->pred_at);
    free(b->pred);
    free(b->tag);
    free(b->multiplicity);
    free(b->last_on);
    *b = (struct maq_graph_builder){0};
}

/* The columns are const to readers; their owner frees them. */
static void drop(const void *column)
{
    free((void *)(uintptr_t)column);
}

void maq_graph_fini(struct maq_graph *graph)
{
    drop(graph->item);
    drop(graph->stream);
    drop(graph->pred_at);
    drop(graph->pred);
    drop(graph->tag);
    drop(graph->multiplicity);
    *graph = (struct maq_graph){0};
}
