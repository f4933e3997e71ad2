/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order.c - the order in which one host takes the nodes of a Chakra trace: Kahn's algorithm, the first in the file among those that
 * can be taken.
 *
 * Data dependencies are kept. Control dependencies are kept where they can be: Chakra's converter writes an operator's parent there, and its own
 * feeder never looks at them (src/feeder/et_feeder.cpp), so that published traces have circles of them. When nothing can be taken, the
 * first node in the file whose data dependencies are met is, and the control dependencies that it still has are left out.
 */
#include "capture/import/chakra/read.h"

/* The least number comes first. */
struct heap {
    uint32_t n, *at;
};

static void heap_put(struct heap *h, uint32_t x)
{
    uint32_t i = h->n++;
    for (; i > 0 && x < h->at[(i - 1) / 2]; i = (i - 1) / 2)
        h->at[i] = h->at[(i - 1) / 2];
    h->at[i] = x;
}

static uint32_t heap_take(struct heap *h)
{
    uint32_t first = h->at[0], x = h->at[--h->n], i = 0;
    for (uint32_t child; (child = 2 * i + 1) < h->n; i = child) {
        child += child + 1 < h->n && h->at[child + 1] < h->at[child];
        if (x <= h->at[child])
            break;
        h->at[i] = h->at[child];
    }
    h->at[i] = x;
    return first;
}

struct sorter {
    struct maq_chakra *c;
    uint32_t *from; /* [n + 1] into next: who waits for a node */
    struct maq_chakra_dep *next;
    uint32_t *waits, *data; /* [n] dependencies still to come, and those of data among them */
    bool *taken;
    struct heap ready, free_of_data;
};

static bool make(struct sorter *s, struct maq_arena *scratch)
{
    const struct maq_chakra *c = s->c;
    size_t n = c->n;
    uint32_t *at = MAQ_ARENA_NEW(scratch, uint32_t, n + 2);
    s->next = MAQ_ARENA_NEW(scratch, struct maq_chakra_dep, c->n_deps);
    s->waits = MAQ_ARENA_NEW(scratch, uint32_t, n);
    s->data = MAQ_ARENA_NEW(scratch, uint32_t, n);
    s->taken = MAQ_ARENA_NEW(scratch, bool, n);
    s->ready.at = MAQ_ARENA_NEW(scratch, uint32_t, n);
    s->free_of_data.at = MAQ_ARENA_NEW(scratch, uint32_t, n);
    s->from = at;
    if (!at || !s->next || !s->waits || !s->data || !s->taken || !s->ready.at || !s->free_of_data.at)
        return false;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t e = 0; e < c->node[i].n_deps; e++)
            at[c->dep[c->node[i].dep + e].node + 2]++;
    for (size_t i = 2; i < n + 2; i++)
        at[i] += at[i - 1];
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t e = 0; e < c->node[i].n_deps; e++) {
            const struct maq_chakra_dep *d = &c->dep[c->node[i].dep + e];
            s->next[at[d->node + 1]++] = (struct maq_chakra_dep){i, d->control};
            s->waits[i]++;
            s->data[i] += !d->control;
        }
    for (uint32_t i = 0; i < n; i++)
        if (s->waits[i] == 0)
            heap_put(&s->ready, i);
        else if (s->data[i] == 0)
            heap_put(&s->free_of_data, i);
    return true;
}

/* A node is taken: who waits for it waits for one less. */
static void release(struct sorter *s, uint32_t v)
{
    s->taken[v] = true;
    for (uint32_t e = s->from[v]; e < s->from[v + 1]; e++) {
        uint32_t x = (uint32_t)s->next[e].node;
        bool data = !s->next[e].control;
        s->waits[x]--;
        s->data[x] -= data;
        if (s->taken[x])
            continue;
        if (s->waits[x] == 0)
            heap_put(&s->ready, x);
        else if (data && s->data[x] == 0)
            heap_put(&s->free_of_data, x);
    }
}

/* Leaves out what a node waits for and does not get. */
static void leave_out(struct sorter *s, uint32_t v)
{
    struct maq_chakra_node *node = &s->c->node[v];
    struct maq_chakra_dep *dep = &s->c->dep[node->dep];
    uint32_t kept = 0;
    for (uint32_t e = 0; e < node->n_deps; e++)
        if (s->taken[dep[e].node])
            dep[kept++] = dep[e];
    node->n_deps = kept;
}

enum maq_status maq_chakra_order(uint32_t **order, struct maq_chakra *c, struct maq_arena *scratch, uint64_t *n_against)
{
    struct sorter s = {.c = c};
    uint32_t n = 0;
    *order = MAQ_ARENA_NEW(scratch, uint32_t, c->n);
    if (!*order || !make(&s, scratch))
        return MAQ_NO_MEMORY;
    while (n < c->n) {
        struct heap *h = s.ready.n > 0 ? &s.ready : &s.free_of_data;
        if (h->n == 0)
            return MAQ_NO;
        uint32_t v = heap_take(h);
        if (s.taken[v])
            continue;
        *n_against += s.waits[v];
        if (s.waits[v] > 0)
            leave_out(&s, v);
        (*order)[n++] = v;
        release(&s, v);
    }
    return MAQ_OK;
}
