/* SPDX-License-Identifier: Apache-2.0 */
/*
 * radix_tree.c - beginnings are looked up and added. A use is a tick of a clock, of which the nodes of a path that is looked up share one: the deeper
 * goes later.
 */
#include "serve/kv/radix_tree.h"

#include "serve/kv/radix_host.h"

enum maq_status maq_radix_init(struct maq_radix_tree *t, int32_t page, enum maq_radix_eviction eviction)
{
    return maq_radix_nodes_init(t, page, eviction);
}

void maq_radix_fini(struct maq_radix_tree *t)
{
    maq_radix_host_fini(t);
    maq_radix_nodes_fini(t);
}

/* What is in front of a node is on both as it is, perhaps. */
static uint32_t split(struct maq_radix_tree *t, uint32_t node, int64_t at)
{
    uint32_t front = maq_radix_split(t, node, at);
    if (front != node)
        maq_radix_host_twin(t, front);
    return front;
}

/* ---- looking up and adding ---- */

/* Tokens of a node that a content of `tokens` tokens has too, in whole pages. */
static int64_t shared(const struct maq_radix_tree *t, uint32_t node, const struct maq_content *c, int64_t tokens)
{
    const struct maq_radix_node *n = &t->at[node];
    int64_t most = n->end < tokens ? n->end : tokens;
    return (maq_content_common(&n->content, c, most + t->pairs) - t->pairs - n->begin) / t->page * t->page;
}

int64_t maq_radix_match(struct maq_radix_tree *t, const struct maq_content *c, int64_t tokens, uint32_t *node)
{
    int64_t at = 0;
    *node = MAQ_RADIX_ROOT;
    tokens = (tokens - t->pairs) / t->page * t->page;
    if (tokens <= 0)
        return 0;
    while (at < tokens) {
        uint32_t child = maq_radix_child(t, *node, c, at);
        if (child == MAQ_RADIX_NONE)
            break;
        int64_t n = shared(t, child, c, tokens);
        if (n <= 0)
            break;
        at += n;
        *node = at < t->at[child].end ? split(t, child, at) : child;
        if (at < t->at[child].end)
            break;
    }
    int64_t tick = t->clock++ * MAQ_RADIX_TICK;
    for (uint32_t n = *node; n != MAQ_RADIX_NONE; n = t->at[n].parent) {
        t->at[n].used = tick--;
        maq_radix_settle(t, n);
    }
    return at;
}

/* One that is on the GPU. What is to be kept on the host goes there as soon as it was inserted often enough. */
static void count_hit(struct maq_radix_tree *t, uint32_t node, const struct maq_radix_insert *w)
{
    struct maq_radix_node *n = &t->at[node];
    n->priority = n->priority > w->priority ? n->priority : w->priority;
    bool counts = n->end > w->inserted && !maq_radix_host_writes_back(t);
    n->hits += counts;
    maq_radix_settle(t, node);
    if (counts)
        maq_radix_host_keep(t, node);
}

static uint32_t add_leaf(struct maq_radix_tree *t, uint32_t parent, const struct maq_content *c, int64_t begin,
                         const struct maq_radix_insert *w)
{
    uint32_t leaf = maq_radix_add(t, parent, c, begin, w->tokens);
    if (leaf == MAQ_RADIX_NONE)
        return parent;
    t->at[leaf].priority = w->priority;
    count_hit(t, leaf, w);
    return leaf;
}

int64_t maq_radix_insert(struct maq_radix_tree *t, const struct maq_content *c, const struct maq_radix_insert *w,
                         uint32_t *node)
{
    int64_t at = 0, came = 0;
    *node = MAQ_RADIX_ROOT;
    t->at[MAQ_RADIX_ROOT].used = t->clock++ * MAQ_RADIX_TICK;
    while (at < w->tokens) {
        uint32_t child = maq_radix_child(t, *node, c, at);
        int64_t n = child == MAQ_RADIX_NONE ? 0 : shared(t, child, c, w->tokens);
        if (n <= 0)
            break;
        t->at[child].used = t->clock++ * MAQ_RADIX_TICK;
        maq_radix_settle(t, child);
        at += n;
        *node = at < t->at[child].end ? split(t, child, at) : child;
        if (!t->at[*node].on_gpu) { /* what was computed again takes its place */
            came += maq_radix_put_on_gpu(t, *node, true);
            maq_radix_host_twin(t, *node);
        }
        count_hit(t, *node, w);
    }
    if (at < w->tokens)
        *node = add_leaf(t, *node, c, at, w);
    return at - came;
}

int64_t maq_radix_evict(struct maq_radix_tree *t)
{
    if (t->leaves[MAQ_RADIX_GPU_LEAF].n == 0)
        return 0;
    uint32_t node = t->leaves[MAQ_RADIX_GPU_LEAF].at[0];
    if (t->host)
        return maq_radix_host_evict(t, node);
    int64_t tokens = t->at[node].end - t->at[node].begin;
    maq_radix_remove(t, node);
    return tokens;
}
