/* SPDX-License-Identifier: Apache-2.0 */
/*
 * radix_nodes.c - nodes in one array; children are found by a chained hash of parent and first page, leaves that can be evicted lie in
 * a binary heap that knows their places.
 */
#include "serve/kv/radix_nodes.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"

/* ---- leaves that can be evicted ---- */

static int64_t rank(const struct maq_radix_tree *t, const struct maq_radix_node *n)
{
    switch ((enum maq_radix_eviction)t->eviction) {
    case MAQ_RADIX_LFU:
        return n->hits;
    case MAQ_RADIX_FIFO:
        return n->came;
    case MAQ_RADIX_MRU:
        return -n->used;
    case MAQ_RADIX_FILO:
        return -n->came;
    case MAQ_RADIX_SLRU:
        return n->hits >= 2;
    case MAQ_RADIX_PRIORITY:
        return n->priority;
    case MAQ_RADIX_LRU:
    case MAQ_RADIX_EVICTIONS:
        break;
    }
    return 0;
}

static bool goes_before(const struct maq_radix_tree *t, uint32_t a, uint32_t b)
{
    int64_t x = rank(t, &t->at[a]), y = rank(t, &t->at[b]);
    return x != y ? x < y : t->at[a].used < t->at[b].used;
}

static void put(struct maq_radix_tree *t, struct maq_radix_heap *h, uint32_t place, uint32_t node)
{
    h->at[place] = node;
    t->at[node].heap = place + 1;
}

/* Moves a node from a place where it may be wrong to where it belongs. */
static void settle(struct maq_radix_tree *t, struct maq_radix_heap *h, uint32_t place, uint32_t node)
{
    while (place > 0 && goes_before(t, node, h->at[(place - 1) / 2])) {
        put(t, h, place, h->at[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    for (;;) {
        uint32_t c = 2 * place + 1;
        if (c + 1 < h->n && goes_before(t, h->at[c + 1], h->at[c]))
            c++;
        if (c >= h->n || !goes_before(t, h->at[c], node))
            break;
        put(t, h, place, h->at[c]);
        place = c;
    }
    put(t, h, place, node);
}

static void leave_heap(struct maq_radix_tree *t, uint32_t node)
{
    struct maq_radix_heap *h = &t->leaves[t->at[node].leaf];
    uint32_t place = t->at[node].heap;
    if (place == 0)
        return;
    t->at[node].heap = 0;
    uint32_t last = h->at[--h->n];
    if (last != node)
        settle(t, h, place - 1, last);
}

/* Whose leaf a node is: MAQ_RADIX_LEAVES, nobody's. */
static enum maq_radix_leaf leaf_of(const struct maq_radix_tree *t, uint32_t node)
{
    const struct maq_radix_node *n = &t->at[node];
    if (node == MAQ_RADIX_ROOT || n->locks > 0 || n->aside)
        return MAQ_RADIX_LEAVES;
    if (n->on_gpu)
        return n->below == 0 ? MAQ_RADIX_GPU_LEAF : MAQ_RADIX_LEAVES;
    return n->on_host && n->host_locks == 0 && n->child == MAQ_RADIX_NONE ? MAQ_RADIX_HOST_LEAF : MAQ_RADIX_LEAVES;
}

void maq_radix_settle(struct maq_radix_tree *t, uint32_t node)
{
    struct maq_radix_node *n = &t->at[node];
    enum maq_radix_leaf leaf = leaf_of(t, node);
    if (leaf != (enum maq_radix_leaf)n->leaf)
        leave_heap(t, node);
    if (leaf == MAQ_RADIX_LEAVES)
        return;
    struct maq_radix_heap *h = &t->leaves[leaf];
    n->leaf = (uint8_t)leaf;
    if (n->heap > 0) {
        settle(t, h, n->heap - 1, node);
        return;
    }
    if (!maq__grow((void **)&h->at, &h->size, h->n, sizeof *h->at)) {
        t->failed = true;
        return;
    }
    h->n++;
    settle(t, h, h->n - 1, node);
}

/* ---- nodes ---- */

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t key_of(const struct maq_radix_tree *t, uint32_t parent, const struct maq_content *c, int64_t first)
{
    return mix(maq_content_page(c, first, t->page + t->pairs) + ((uint64_t)parent << 32));
}

static bool rehash(struct maq_radix_tree *t, uint32_t mask)
{
    uint32_t *table = maq__malloc(((size_t)mask + 1) * sizeof *table);
    if (!table) {
        t->failed = true;
        return false;
    }
    for (uint32_t i = 0; i <= mask; i++)
        table[i] = MAQ_RADIX_NONE;
    for (uint32_t i = 0; t->table && i <= t->mask; i++)
        for (uint32_t n = t->table[i], next; n != MAQ_RADIX_NONE; n = next) {
            next = t->at[n].bucket;
            t->at[n].bucket = table[t->at[n].key & mask];
            table[t->at[n].key & mask] = n;
        }
    free(t->table);
    t->table = table;
    t->mask = mask;
    return true;
}

static void enter_table(struct maq_radix_tree *t, uint32_t node, uint64_t key)
{
    t->at[node].key = key;
    t->at[node].bucket = t->table[key & t->mask];
    t->table[key & t->mask] = node;
}

static void leave_table(struct maq_radix_tree *t, uint32_t node)
{
    uint32_t *at = &t->table[t->at[node].key & t->mask];
    while (*at != node)
        at = &t->at[*at].bucket;
    *at = t->at[node].bucket;
}

uint32_t maq_radix_child(const struct maq_radix_tree *t, uint32_t parent, const struct maq_content *c, int64_t first)
{
    uint64_t key = key_of(t, parent, c, first);
    uint32_t node = t->table[key & t->mask];
    while (node != MAQ_RADIX_NONE && t->at[node].key != key)
        node = t->at[node].bucket;
    return node;
}

static uint32_t new_node(struct maq_radix_tree *t)
{
    uint32_t node = t->free;
    if (node != MAQ_RADIX_NONE)
        t->free = t->at[node].next;
    else if (maq__grow((void **)&t->at, &t->size, t->n, sizeof *t->at))
        node = t->n++;
    if (node == MAQ_RADIX_NONE || (t->entries >= t->mask && !rehash(t, t->mask * 2 + 1))) {
        t->failed = true;
        return MAQ_RADIX_NONE;
    }
    t->entries++;
    t->at[node] = (struct maq_radix_node){.parent = MAQ_RADIX_NONE,
                                          .bucket = MAQ_RADIX_NONE,
                                          .child = MAQ_RADIX_NONE,
                                          .last_child = MAQ_RADIX_NONE,
                                          .prev = MAQ_RADIX_NONE,
                                          .next = MAQ_RADIX_NONE,
                                          .used = t->clock++ * MAQ_RADIX_TICK,
                                          .came = t->clock++};
    return node;
}

static void append_child(struct maq_radix_tree *t, uint32_t parent, uint32_t node)
{
    struct maq_radix_node *p = &t->at[parent];
    p->below += t->at[node].on_gpu;
    t->at[node].parent = parent;
    t->at[node].prev = p->last_child;
    t->at[node].next = MAQ_RADIX_NONE;
    *(p->last_child == MAQ_RADIX_NONE ? &p->child : &t->at[p->last_child].next) = node;
    p->last_child = node;
}

uint32_t maq_radix_add(struct maq_radix_tree *t, uint32_t parent, const struct maq_content *c, int64_t begin,
                       int64_t end)
{
    uint32_t leaf = new_node(t);
    if (leaf == MAQ_RADIX_NONE)
        return MAQ_RADIX_NONE;
    t->at[leaf].content = *c;
    t->at[leaf].begin = begin;
    t->at[leaf].end = end;
    append_child(t, parent, leaf);
    enter_table(t, leaf, key_of(t, parent, c, begin));
    (void)maq_radix_put_on_gpu(t, leaf, true);
    return leaf;
}

/* The node in front takes its place among its siblings and its key, and has it as its only child. */
uint32_t maq_radix_split(struct maq_radix_tree *t, uint32_t node, int64_t at)
{
    uint32_t front = new_node(t);
    if (front == MAQ_RADIX_NONE)
        return node;
    struct maq_radix_node *n = &t->at[node], *f = &t->at[front];
    f->content = n->content;
    f->begin = n->begin;
    f->end = n->begin = at;
    f->on_gpu = n->on_gpu;
    f->on_host = n->on_host;
    f->locks = n->locks;
    f->host_locks = n->host_locks;
    f->writing = n->writing;
    f->loading = n->loading;
    f->hits = n->hits;
    f->priority = n->priority;
    f->came = n->came;
    f->parent = n->parent;
    f->prev = n->prev;
    f->next = n->next;
    *(f->prev == MAQ_RADIX_NONE ? &t->at[f->parent].child : &t->at[f->prev].next) = front;
    *(f->next == MAQ_RADIX_NONE ? &t->at[f->parent].last_child : &t->at[f->next].prev) = front;
    leave_table(t, node);
    enter_table(t, front, n->key);
    append_child(t, front, node);
    enter_table(t, node, key_of(t, front, &n->content, at));
    n->used = t->clock++ * MAQ_RADIX_TICK;
    maq_radix_settle(t, front);
    maq_radix_settle(t, node);
    return front;
}

enum maq_status maq_radix_nodes_init(struct maq_radix_tree *t, int32_t page, enum maq_radix_eviction eviction)
{
    *t = (struct maq_radix_tree){.page = page, .eviction = (uint8_t)eviction, .free = MAQ_RADIX_NONE, .clock = 1};
    if (!rehash(t, 255) || new_node(t) == MAQ_RADIX_NONE)
        return MAQ_NO_MEMORY;
    t->at[MAQ_RADIX_ROOT].priority = INT64_MIN;
    t->at[MAQ_RADIX_ROOT].on_gpu = true;
    return MAQ_OK;
}

void maq_radix_nodes_fini(struct maq_radix_tree *t)
{
    free(t->at);
    free(t->table);
    for (int i = 0; i < MAQ_RADIX_LEAVES; i++)
        free(t->leaves[i].at);
    *t = (struct maq_radix_tree){0};
}

/* ---- locks; coming to the GPU and leaving it ---- */

void maq_radix_lock(struct maq_radix_tree *t, uint32_t node)
{
    for (; node != MAQ_RADIX_ROOT; node = t->at[node].parent) {
        struct maq_radix_node *n = &t->at[node];
        if (n->locks++ > 0)
            continue;
        t->locked += n->on_gpu ? n->end - n->begin : 0;
        leave_heap(t, node);
    }
}

void maq_radix_unlock(struct maq_radix_tree *t, uint32_t node)
{
    for (; node != MAQ_RADIX_ROOT; node = t->at[node].parent) {
        struct maq_radix_node *n = &t->at[node];
        MAQ_ASSERT(n->locks > 0);
        if (--n->locks > 0)
            continue;
        t->locked -= n->on_gpu ? n->end - n->begin : 0;
        maq_radix_settle(t, node);
    }
}

int64_t maq_radix_evictable(const struct maq_radix_tree *t)
{
    return t->tokens - t->locked;
}

int64_t maq_radix_put_on_gpu(struct maq_radix_tree *t, uint32_t node, bool there)
{
    struct maq_radix_node *n = &t->at[node];
    int64_t tokens = n->end - n->begin, more = there ? tokens : -tokens;
    n->on_gpu = there;
    t->tokens += more;
    t->locked += n->locks > 0 ? more : 0;
    t->at[n->parent].below += there ? 1u : ~0u;
    maq_radix_settle(t, node);
    maq_radix_settle(t, n->parent);
    return tokens;
}

void maq_radix_remove(struct maq_radix_tree *t, uint32_t node)
{
    struct maq_radix_node *n = &t->at[node];
    if (n->on_gpu)
        (void)maq_radix_put_on_gpu(t, node, false);
    leave_heap(t, node);
    leave_table(t, node);
    *(n->prev == MAQ_RADIX_NONE ? &t->at[n->parent].child : &t->at[n->prev].next) = n->next;
    *(n->next == MAQ_RADIX_NONE ? &t->at[n->parent].last_child : &t->at[n->next].prev) = n->prev;
    t->entries--;
    uint32_t parent = n->parent;
    n->next = t->free;
    t->free = node;
    maq_radix_settle(t, parent);
}
