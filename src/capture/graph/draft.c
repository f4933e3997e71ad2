/* SPDX-License-Identifier: Apache-2.0 */
/* draft.c - appends nodes, edges and names to the draft of a captured job's graph. See graph.h. */
#include <string.h>

#include "base/alloc.h"
#include "capture/graph/graph.h"

uint32_t maq_draft_node(struct maq_draft *d, uint64_t ns, uint32_t stream, enum maq_item_sort sort, uint32_t name,
                        struct maq_node_tag tag)
{
    d->too_many |= d->n >= MAQ_DRAFT_NODES;
    if (d->too_many || !maq__grow((void **)&d->node, &d->size, d->n, sizeof *d->node)) {
        d->failed = true;
        return UINT32_MAX;
    }
    d->node[d->n] =
        (struct maq_draft_node){.ns = ns, .stream = stream, .name = name, .sort = (uint8_t)sort, .tag = tag};
    return d->n++;
}

void maq_draft_edge(struct maq_draft *d, uint32_t from, uint32_t to)
{
    if (from == UINT32_MAX || to == UINT32_MAX || from == to)
        return;
    if (!maq__grow((void **)&d->edge, &d->edge_size, d->n_edges, sizeof *d->edge)) {
        d->failed = true;
        return;
    }
    d->edge[d->n_edges++] = (struct maq_draft_edge){from, to};
}

uint32_t maq_draft_name(struct maq_draft *d, const char *name)
{
    uint32_t id = maq_intern_put(&d->names, name, strlen(name), NULL);
    d->failed |= id == UINT32_MAX;
    return id == UINT32_MAX ? 0 : id;
}
