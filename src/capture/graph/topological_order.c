/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topological_order.c - a draft as a frozen graph: a topological order, items, names.
 *
 * The order is that in which nodes become ready, the lowest first among those that are ready together at the start (Kahn's
 * algorithm with a queue). Nodes that never become ready form a cycle: the captured programs cannot have run like that.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/codes.h"
#include "base/str.h"
#include "capture/codes.h"
#include "capture/graph/graph.h"
#include "graph/builder.h"

#define NONE UINT32_MAX

static const struct maq_span nowhere;

struct order {
    struct maq_draft *d;
    uint32_t *succ_at, *succ; /* successors in compressed rows */
    uint32_t *pred_at, *pred;
    uint32_t *waits; /* predecessors that are not done */
    uint32_t *queue; /* [n] nodes in their new order */
    uint32_t *place; /* [n] new number */
    uint32_t n_queue;
};

/* Rows of a relation: at[v] .. at[v + 1] of what follows v; `back` turns it round. */
static bool rows(uint32_t **at_out, uint32_t **out, const struct maq_draft *d, bool back)
{
    uint32_t *at = maq__calloc((d->n + (size_t)2) * sizeof *at);
    uint32_t *to = maq__malloc((d->n_edges + (size_t)1) * sizeof *to);
    *at_out = at;
    *out = to;
    if (!at || !to)
        return false;
    for (uint32_t e = 0; e < d->n_edges; e++)
        at[(back ? d->edge[e].to : d->edge[e].from) + 2]++;
    for (uint32_t v = 2; v < d->n + 2; v++)
        at[v] += at[v - 1];
    for (uint32_t e = 0; e < d->n_edges; e++)
        to[at[(back ? d->edge[e].to : d->edge[e].from) + 1]++] = back ? d->edge[e].from : d->edge[e].to;
    return true;
}

static bool sort(struct order *o)
{
    struct maq_draft *d = o->d;
    o->waits = maq__calloc((d->n + (size_t)1) * sizeof *o->waits);
    o->queue = maq__malloc((d->n + (size_t)1) * sizeof *o->queue);
    o->place = maq__malloc((d->n + (size_t)1) * sizeof *o->place);
    if (!o->waits || !o->queue || !o->place || !rows(&o->succ_at, &o->succ, d, false) ||
        !rows(&o->pred_at, &o->pred, d, true))
        return false;
    for (uint32_t e = 0; e < d->n_edges; e++)
        o->waits[d->edge[e].to]++;
    for (uint32_t v = 0; v < d->n; v++)
        if (o->waits[v] == 0)
            o->queue[o->n_queue++] = v;
    for (uint32_t i = 0; i < o->n_queue; i++) {
        uint32_t v = o->queue[i];
        o->place[v] = i;
        for (uint32_t e = o->succ_at[v]; e < o->succ_at[v + 1]; e++)
            if (--o->waits[o->succ[e]] == 0)
                o->queue[o->n_queue++] = o->succ[e];
    }
    return true;
}

/* --- items ------------------------------------------------------------------------------------------------------------------ */

struct items {
    struct maq_intern table; /* {ns, name, sort} */
    double *dur;
    const char **name;
    uint8_t *sort;
};

static uint32_t item_of(struct items *t, const struct maq_draft_node *v)
{
    uint64_t key[2] = {v->ns, (uint64_t)v->name << 8 | v->sort};
    return maq_intern_put(&t->table, key, sizeof key, NULL);
}

static bool fill_items(struct items *t, struct maq_draft *d)
{
    uint32_t n = t->table.n;
    t->dur = MAQ_ARENA_NEW(d->arena, double, n);
    t->name = MAQ_ARENA_NEW(d->arena, const char *, n);
    t->sort = MAQ_ARENA_NEW(d->arena, uint8_t, n);
    for (uint32_t i = 0; t->dur && t->name && t->sort && i < n; i++) {
        const uint64_t *key = t->table.key[i].bytes;
        t->dur[i] = (double)key[0];
        t->name[i] = d->names.key[key[1] >> 8].bytes;
        t->sort[i] = (uint8_t)key[1];
    }
    return t->dur && t->name && t->sort;
}

/* --- the graph ---------------------------------------------------------------------------------------------------------------- */

static bool build(struct maq_captured_graph *out, struct order *o, struct items *items)
{
    struct maq_draft *d = o->d;
    const struct maq_capture *c = d->capture;
    struct maq_graph_builder b;
    uint32_t *ranks = MAQ_ARENA_NEW(&d->scratch, uint32_t, c->n_classes), most = 0;
    for (uint32_t i = 0; ranks && i < c->n_classes; i++)
        ranks[i] = c->class_of_ranks[i].n_ranks;
    for (uint32_t v = 0; v < d->n; v++)
        most = o->pred_at[v + 1] - o->pred_at[v] > most ? o->pred_at[v + 1] - o->pred_at[v] : most;
    uint32_t *preds = MAQ_ARENA_NEW(&d->scratch, uint32_t, most);
    if (!ranks || !preds || maq_graph_builder_init(&b, c->n_classes, ranks) != MAQ_OK)
        return false;
    for (uint32_t i = 0; i < d->n && !b.failed; i++) {
        uint32_t v = o->queue[i], n = 0, item = item_of(items, &d->node[v]);
        for (uint32_t e = o->pred_at[v]; e < o->pred_at[v + 1]; e++)
            preds[n++] = o->place[o->pred[e]];
        b.failed |= item == NONE;
        maq_graph_add_loose(&b, d->node[v].stream / MAQ_STREAM_COUNT,
                            (enum maq_stream)(d->node[v].stream % MAQ_STREAM_COUNT), item, d->node[v].tag, preds, n);
    }
    return maq_graph_freeze(&out->timed.graph, &b, items->table.n) == MAQ_OK;
}

static int by_node(const void *a, const void *b)
{
    const struct maq_graph_share *x = a, *y = b;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return (x->stream > y->stream) - (x->stream < y->stream);
}

/* Names, and who else takes part; all in the graph's arena. */
static bool describe(struct maq_captured_graph *out, struct order *o, struct items *items)
{
    struct maq_draft *d = o->d;
    const struct maq_capture *c = d->capture;
    struct maq_graph_share *share = MAQ_ARENA_NEW(d->arena, struct maq_graph_share, d->n_shares);
    const char **names = MAQ_ARENA_NEW(d->arena, const char *, c->n_classes);
    const char **texts = MAQ_ARENA_NEW(d->arena, const char *, c->n_texts);
    if (!share || !names || !texts || !fill_items(items, d))
        return false;
    for (uint32_t i = 0; i < d->n_shares; i++)
        share[i] = (struct maq_graph_share){o->place[d->share[i].node], d->share[i].stream};
    qsort(share, d->n_shares, sizeof *share, by_node);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < d->n_shares; i++)
        if (i == 0 || by_node(&share[i], &share[kept - 1]) != 0)
            share[kept++] = share[i];
    bool ok = true;
    for (uint32_t i = 0; i < c->n_classes; i++) {
        const char *name = c->class_of_ranks[i].name;
        names[i] = name ? maq_arena_strdup(d->arena, maq_str_of(name)) : maq_arena_printf(d->arena, "class %u", i);
        ok &= names[i] != NULL;
    }
    for (uint32_t i = 0; i < c->n_texts; i++) {
        texts[i] = maq_arena_strdup(d->arena, maq_str_of(c->text[i]));
        ok &= texts[i] != NULL;
    }
    out->timed.dur_ns = items->dur;
    out->timed.item_name = items->name;
    out->timed.item_sort = items->sort;
    out->timed.n_shares = kept;
    out->timed.share = share;
    out->timed.class_name = names;
    out->timed.module_name = texts;
    out->timed.n_modules = c->n_texts < UINT16_MAX ? c->n_texts : UINT16_MAX;
    return ok;
}

static void drop(struct order *o)
{
    free(o->succ_at);
    free(o->succ);
    free(o->pred_at);
    free(o->pred);
    free(o->waits);
    free(o->queue);
    free(o->place);
}

enum maq_status maq_draft_freeze(struct maq_captured_graph *out, struct maq_draft *d, struct maq_diag *diag)
{
    struct order o = {.d = d};
    struct items items = {0};
    maq_intern_init(&items.table, &d->scratch);
    enum maq_status status = MAQ_OK;
    if (!sort(&o))
        status = MAQ_NO_MEMORY;
    else if (o.n_queue < d->n) {
        uint32_t v = 0;
        while (v < d->n && o.waits[v] == 0)
            v++;
        status = maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_REPLAY_DEADLOCK, nowhere,
                               "`maquette graph --check` says which collectives do not meet",
                               "ranks of this job wait for each other in a circle; '%s' of class %u is in it",
                               (const char *)d->names.key[d->node[v].name].bytes, d->node[v].stream / MAQ_STREAM_COUNT);
    } else if (!build(out, &o, &items) || !describe(out, &o, &items)) {
        maq_graph_fini(&out->timed.graph);
        status = MAQ_NO_MEMORY;
    }
    if (status == MAQ_NO_MEMORY)
        maq_diag_add(diag, MAQ_ERROR, MAQ_CODE_NO_MEMORY, nowhere, NULL, "out of memory for a graph");
    drop(&o);
    return status;
}

void maq_captured_graph_free(struct maq_captured_graph *graph)
{
    if (graph->owner) {
        maq_graph_fini(&graph->timed.graph);
        maq_arena_fini(graph->owner);
        free(graph->owner);
    }
    *graph = (struct maq_captured_graph){0};
}
