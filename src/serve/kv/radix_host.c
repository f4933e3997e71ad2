/* SPDX-License-Identifier: Apache-2.0 */
/* radix_host.c - what of a radix tree goes to host memory and comes back; who is given up there. */
#include "serve/kv/radix_host.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"

static int64_t length(const struct maq_radix_tree *t, uint32_t node)
{
    return t->at[node].end - t->at[node].begin;
}

bool maq_radix_host_writes_back(const struct maq_radix_tree *t)
{
    return t->host && t->host->policy == MAQ_HICACHE_WRITE_BACK;
}

/* ---- nodes that are on both ---- */

static void leave_twins(struct maq_radix_tree *t, uint32_t node)
{
    struct maq_radix_node *n = &t->at[node];
    struct maq_radix_host *h = t->host;
    if (!n->twinned)
        return;
    n->twinned = false;
    *(n->twin[0] == MAQ_RADIX_NONE ? &h->first_twin : &t->at[n->twin[0]].twin[1]) = n->twin[1];
    *(n->twin[1] == MAQ_RADIX_NONE ? &h->last_twin : &t->at[n->twin[1]].twin[0]) = n->twin[0];
}

/* Only WRITE_BACK asks for them. One that leaves the GPU stays among them until it is met, and keeps its place if it has come back by then. */
void maq_radix_host_twin(struct maq_radix_tree *t, uint32_t node)
{
    struct maq_radix_node *n = &t->at[node];
    struct maq_radix_host *h = t->host;
    if (!maq_radix_host_writes_back(t) || node == MAQ_RADIX_ROOT)
        return;
    if (!n->on_gpu || !n->on_host || n->writing || n->loading) {
        leave_twins(t, node);
        return;
    }
    if (n->twinned)
        return;
    n->twinned = true;
    n->twin[0] = h->last_twin;
    n->twin[1] = MAQ_RADIX_NONE;
    *(h->last_twin == MAQ_RADIX_NONE ? &h->first_twin : &t->at[h->last_twin].twin[1]) = node;
    h->last_twin = node;
}

/* ---- room on the host ---- */

static int64_t leave_host(struct maq_radix_tree *t, uint32_t node)
{
    t->at[node].on_host = false;
    t->host->available += length(t, node);
    t->host->given_up += length(t, node);
    leave_twins(t, node);
    return length(t, node);
}

static bool is_gpu_leaf(const struct maq_radix_node *n)
{
    return n->on_gpu && n->locks == 0 && n->below == 0;
}

/* Copies of what is on the GPU, until so many tokens are free; how many became so. */
static int64_t give_up_twins(struct maq_radix_tree *t, int64_t tokens)
{
    int64_t freed = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t node = t->host->first_twin, next; node != MAQ_RADIX_NONE && freed < tokens; node = next) {
            const struct maq_radix_node *n = &t->at[node];
            next = n->twin[1];
            if (!n->on_gpu || !n->on_host)
                leave_twins(t, node);
            else if (!(pass == 0 && is_gpu_leaf(n)) && !n->writing && !n->loading && n->host_locks == 0)
                freed += leave_host(t, node);
        }
    }
    return freed;
}

static bool make_room(struct maq_radix_tree *t, int64_t tokens)
{
    int64_t wanted = tokens - t->host->available, freed = 0;
    const struct maq_radix_heap *leaves = &t->leaves[MAQ_RADIX_HOST_LEAF];
    if (wanted <= 0)
        return true;
    if (maq_radix_host_writes_back(t))
        freed = give_up_twins(t, wanted);
    while (freed < wanted && leaves->n > 0) {
        uint32_t node = leaves->at[0];
        freed += leave_host(t, node);
        maq_radix_remove(t, node);
    }
    return freed >= wanted;
}

static bool take_room(struct maq_radix_tree *t, uint32_t node)
{
    if (!make_room(t, length(t, node)))
        return false;
    t->host->available -= length(t, node);
    t->at[node].on_host = true;
    return true;
}

/* ---- copies ---- */

static void wait_for(struct maq_radix_tree *t, struct maq_radix_copies *c, uint32_t node, int64_t tokens)
{
    if (!maq__grow((void **)&c->at, &c->size, c->n, sizeof *c->at)) {
        t->failed = true;
        return;
    }
    c->at[c->n++] = (struct maq_radix_copy){node, t->at[node].begin};
    c->waiting += tokens;
}

static void begin(struct maq_radix_tree *t, struct maq_radix_copies *c)
{
    if (c->begun == c->n)
        return;
    if (!maq__grow((void **)&c->together, &c->together_size, c->n_together, sizeof *c->together)) {
        t->failed = true;
        return;
    }
    c->together[c->n_together++] = (struct maq_radix_together){c->n - c->begun, c->waiting};
    c->begun = c->n;
    c->waiting = 0;
}

/* The first ones leave, which have been looked at. */
static void drop_first(struct maq_radix_copies *c)
{
    uint32_t n = c->together[0].n;
    c->n -= n;
    c->begun -= n;
    c->n_together--;
    memmove(c->at, c->at + n, c->n * sizeof *c->at);
    memmove(c->together, c->together + 1, c->n_together * sizeof *c->together);
}

bool maq_radix_host_waits(const struct maq_radix_tree *t)
{
    const struct maq_radix_host *h = t->host;
    return h && (h->writes.begun < h->writes.n || h->loads.begun < h->loads.n);
}

void maq_radix_host_begin_writes(struct maq_radix_tree *t)
{
    if (t->host)
        begin(t, &t->host->writes);
}

void maq_radix_host_begin_loads(struct maq_radix_tree *t)
{
    if (t->host)
        begin(t, &t->host->loads);
}

void maq_radix_host_written(struct maq_radix_tree *t)
{
    struct maq_radix_copies *c = t->host ? &t->host->writes : NULL;
    for (uint32_t i = 0; c && c->n_together > 0 && i < c->together[0].n; i++) {
        uint32_t node = c->at[i].node;
        for (uint32_t n = node; n != MAQ_RADIX_ROOT && t->at[n].writing == node + 1; n = t->at[n].parent)
            t->at[n].writing = 0;
        maq_radix_unlock(t, node);
    }
    if (c && c->n_together > 0)
        drop_first(c);
}

void maq_radix_host_loaded(struct maq_radix_tree *t)
{
    struct maq_radix_copies *c = t->host ? &t->host->loads : NULL;
    for (uint32_t i = 0; c && c->n_together > 0 && i < c->together[0].n; i++) {
        uint32_t node = c->at[i].node;
        maq_radix_unlock(t, node);
        maq_radix_host_unlock(t, node, c->at[i].begin);
        for (uint32_t n = node; n != MAQ_RADIX_ROOT; n = t->at[n].parent) {
            if (t->at[n].loading != node + 1)
                continue;
            t->at[n].loading = 0;
            maq_radix_host_twin(t, n);
        }
    }
    if (c && c->n_together > 0)
        drop_first(c);
}

void maq_radix_host_lock(struct maq_radix_tree *t, uint32_t node)
{
    t->at[node].host_locks++;
    maq_radix_settle(t, node);
}

void maq_radix_host_unlock(struct maq_radix_tree *t, uint32_t node, int64_t from)
{
    for (; node != MAQ_RADIX_ROOT && t->at[node].begin >= from; node = t->at[node].parent) {
        MAQ_ASSERT(t->at[node].host_locks > 0);
        t->at[node].host_locks--;
        maq_radix_settle(t, node);
    }
}

void maq_radix_host_load(struct maq_radix_tree *t, uint32_t node)
{
    int64_t tokens = 0;
    maq_radix_host_lock(t, node);
    maq_radix_lock(t, node);
    for (uint32_t n = node; !t->at[n].on_gpu; n = t->at[n].parent) {
        tokens += maq_radix_put_on_gpu(t, n, true);
        t->at[n].loading = maq_radix_host_writes_back(t) ? node + 1 : 0;
    }
    wait_for(t, &t->host->loads, node, tokens);
}

/* From the highest that is not there on; who finds no room stops those below it. */
void maq_radix_host_keep(struct maq_radix_tree *t, uint32_t node)
{
    struct maq_radix_host *h = t->host;
    int64_t often = h && h->policy == MAQ_HICACHE_WRITE_THROUGH ? 1 : 2;
    if (!h || t->at[node].on_host || t->at[node].hits < often)
        return;
    while (!t->at[node].on_host) {
        uint32_t top = node;
        while (t->at[top].parent != MAQ_RADIX_ROOT && !t->at[t->at[top].parent].on_host)
            top = t->at[top].parent;
        if (!take_room(t, top)) {
            h->refused++;
            return;
        }
        maq_radix_lock(t, top);
        t->at[top].writing = top + 1;
        wait_for(t, &h->writes, top, length(t, top));
    }
}

/* ---- eviction from the GPU ---- */

static bool is_held(const struct maq_radix_node *n)
{
    return n->locks > 0 || n->host_locks > 0 || n->writing || n->loading;
}

/* The next of a node and all below it, a node before its children; MAQ_RADIX_NONE: that was the last. */
static uint32_t next_below(const struct maq_radix_tree *t, uint32_t root, uint32_t node)
{
    if (t->at[node].child != MAQ_RADIX_NONE)
        return t->at[node].child;
    while (node != root && t->at[node].next == MAQ_RADIX_NONE)
        node = t->at[node].parent;
    return node == root ? MAQ_RADIX_NONE : t->at[node].next;
}

/* A leaf of the GPU for which the host has no room, and all that is below it; false: somebody needs some of it. */
static bool lose(struct maq_radix_tree *t, uint32_t node)
{
    for (uint32_t n = node; n != MAQ_RADIX_NONE; n = next_below(t, node, n))
        if (is_held(&t->at[n]))
            return false;
    for (uint32_t n = node; t->at[node].child != MAQ_RADIX_NONE; n = node) {
        while (t->at[n].child != MAQ_RADIX_NONE)
            n = t->at[n].child;
        (void)leave_host(t, n);
        maq_radix_remove(t, n);
    }
    leave_twins(t, node);
    maq_radix_remove(t, node);
    return true;
}

static void set_aside(struct maq_radix_tree *t, uint32_t node)
{
    struct maq_radix_host *h = t->host;
    if (!maq__grow((void **)&h->aside, &h->aside_size, h->n_aside, sizeof *h->aside)) {
        t->failed = true;
        return;
    }
    h->aside[h->n_aside++] = node;
    t->at[node].aside = true;
    maq_radix_settle(t, node);
}

void maq_radix_host_evicted(struct maq_radix_tree *t)
{
    for (uint32_t i = 0; t->host && i < t->host->n_aside; i++) {
        t->at[t->host->aside[i]].aside = false;
        maq_radix_settle(t, t->host->aside[i]);
    }
    if (t->host)
        t->host->n_aside = 0;
}

int64_t maq_radix_host_evict(struct maq_radix_tree *t, uint32_t leaf)
{
    const struct maq_radix_heap *leaves = &t->leaves[MAQ_RADIX_GPU_LEAF];
    for (; !t->failed; leaf = leaves->at[0]) {
        int64_t tokens = length(t, leaf);
        bool there = t->at[leaf].on_host;
        if (!there && maq_radix_host_writes_back(t)) {
            there = take_room(t, leaf);
            t->host->refused += !there;
            t->host->written_back += there ? tokens : 0;
            if (there)
                maq_radix_host_twin(t, leaf);
        }
        if (there) {
            (void)maq_radix_put_on_gpu(t, leaf, false);
            return tokens;
        }
        if (lose(t, leaf))
            return tokens;
        set_aside(t, leaf);
        if (leaves->n == 0)
            break;
    }
    return 0;
}

/* ---- construction ---- */

enum maq_status maq_radix_host_init(struct maq_radix_tree *t, int64_t tokens, enum maq_hicache_policy policy)
{
    t->host = maq__calloc(sizeof *t->host);
    if (!t->host)
        return MAQ_NO_MEMORY;
    *t->host = (struct maq_radix_host){.capacity = tokens,
                                       .available = tokens,
                                       .policy = (uint8_t)policy,
                                       .first_twin = MAQ_RADIX_NONE,
                                       .last_twin = MAQ_RADIX_NONE};
    return MAQ_OK;
}

void maq_radix_host_fini(struct maq_radix_tree *t)
{
    if (!t->host)
        return;
    free(t->host->writes.at);
    free(t->host->writes.together);
    free(t->host->loads.at);
    free(t->host->loads.together);
    free(t->host->aside);
    free(t->host);
    t->host = NULL;
}
