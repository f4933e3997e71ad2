/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sglang_order.c - in which order those that wait are tried (schedule_policy.py, SchedulePolicy).
 *
 * Sorting is stable and stays: the next one starts from what this one left. By longest prefix, those whose beginning another one in front of them
 * has too, and the tree has not, go last, so that the second finds what the first computed.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "serve/sched/sglang.h"

#define MOST_MATCHED 128u /* WAITING_QUEUE_PREFIX_MATCH_MAX: of more the prefixes are not looked up */
#define REFRESH_EVERY 32u /* WAITING_PREFIX_REFRESH_INTERVAL */
#define LITTLE_MATCHED 32 /* IN_BATCH_PREFIX_CACHING_CHECK_THRESHOLD */
#define MUCH_IN_COMMON 32 /* IN_BATCH_PREFIX_CACHING_DEPRIORITIZE_THRESHOLD */

struct sorted {
    int64_t key, second;
    uint32_t place, slot;
};

static int by_key(const void *a, const void *b)
{
    const struct sorted *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    if (x->second != y->second)
        return x->second < y->second ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

static struct sorted *sorting(struct maq_sglang *s)
{
    if (s->n_waiting > s->sorting_size) {
        uint32_t size = s->n_waiting + s->n_waiting / 2;
        void *more = maq__realloc(s->sorting, size * sizeof(struct sorted));
        if (!more) {
            s->base.failed = true;
            return NULL;
        }
        s->sorting = more;
        s->sorting_size = size;
    }
    return s->sorting;
}

static void sort(struct maq_sglang *s, struct sorted *list)
{
    qsort(list, s->n_waiting, sizeof *list, by_key);
    for (uint32_t i = 0; i < s->n_waiting; i++)
        s->waiting[i] = list[i].slot;
}

static int64_t known(const struct maq_sglang_request *r)
{
    return r->prompt + r->sampled;
}

/* The least goes first. */
int64_t maq_sglang_urgency(const struct maq_sglang *s, const struct maq_sglang_request *r)
{
    if (!s->knobs.by_priority)
        return 0;
    return s->knobs.low_first ? r->priority : -(int64_t)r->priority;
}

/* Whether so much of a request begins another one in front of it, of those of which the tree has little. */
static bool repeats(const struct maq_sglang *s, const struct maq_sglang_request *r, const struct sorted *list,
                    uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct maq_sglang_request *o = &s->at[s->waiting[i]];
        int64_t most = known(o) < known(r) ? known(o) : known(r);
        if (list[i].second != 0 && maq_content_common(&o->content, &r->content, most) >= MUCH_IN_COMMON)
            return true;
    }
    return false;
}

static void by_longest_prefix(struct maq_sglang *s)
{
    struct sorted *list = sorting(s);
    for (uint32_t i = 0; list && i < s->n_waiting; i++) {
        struct maq_sglang_request *r = &s->at[s->waiting[i]];
        maq_sglang_look_up(s, r, known(r));
        list[i] = (struct sorted){.key = -r->matched, .place = i, .slot = s->waiting[i]};
        if (r->prefix > LITTLE_MATCHED)
            continue;
        if (repeats(s, r, list, i))
            list[i].key = INT64_MAX;
        else
            list[i].second = 1; /* others are compared with it */
    }
    for (uint32_t i = 0; list && i < s->n_waiting; i++)
        list[i].second = 0;
    if (list)
        sort(s, list);
}

/* ---- depth first ---- */

struct walk {
    struct maq_sglang *s;
    int64_t *weight; /* [nodes] */
    uint32_t *first; /* [nodes] of those that wait at a node, 1 + their place; 0 = nobody */
    uint32_t *next;  /* [n_waiting] */
    uint32_t *order, n;
    uint32_t *stack; /* [2 nodes] */
};

/* A node weighs what waits at it and what its children weigh. */
static void weigh(struct walk *w)
{
    const struct maq_radix_tree *t = &w->s->tree;
    uint32_t n = 0;
    w->stack[n++] = MAQ_RADIX_ROOT;
    while (n > 0) { /* children before their parents: a node is met again when its own are done */
        uint32_t node = w->stack[n - 1] & ~(1u << 31);
        bool done = w->stack[n - 1] >> 31;
        if (done) {
            n--;
            for (uint32_t c = t->at[node].child; c != MAQ_RADIX_NONE; c = t->at[c].next)
                w->weight[node] += w->weight[c];
            continue;
        }
        w->stack[n - 1] |= 1u << 31;
        for (uint32_t c = t->at[node].child; c != MAQ_RADIX_NONE; c = t->at[c].next)
            w->stack[n++] = c;
    }
}

static void put_children(struct walk *w, uint32_t node, uint32_t *n)
{
    const struct maq_radix_tree *t = &w->s->tree;
    uint32_t from = *n;
    for (uint32_t c = t->at[node].last_child; c != MAQ_RADIX_NONE; c = t->at[c].prev) {
        uint32_t place = (*n)++;
        /* the heaviest on top, of equals the first; insertion keeps that, from the last child on */
        while (place > from && w->weight[w->stack[place - 1]] > w->weight[c]) {
            w->stack[place] = w->stack[place - 1];
            place--;
        }
        w->stack[place] = c;
    }
}

static void list_in_order(struct walk *w)
{
    uint32_t n = 0;
    w->stack[n++] = MAQ_RADIX_ROOT;
    while (n > 0) {
        uint32_t node = w->stack[n - 1] & ~(1u << 31);
        if (w->stack[n - 1] >> 31) {
            n--;
            for (uint32_t i = w->first[node]; i > 0; i = w->next[i - 1])
                w->order[w->n++] = w->s->waiting[i - 1];
            continue;
        }
        w->stack[n - 1] |= 1u << 31;
        put_children(w, node, &n);
    }
}

static void by_depth(struct maq_sglang *s)
{
    for (uint32_t i = 0; i < s->n_waiting; i++)
        maq_sglang_look_up(s, &s->at[s->waiting[i]], known(&s->at[s->waiting[i]]));
    uint32_t nodes = s->tree.n;
    struct walk w = {.s = s,
                     .weight = maq__calloc(nodes * sizeof *w.weight),
                     .first = maq__calloc(nodes * sizeof *w.first),
                     .next = maq__calloc((s->n_waiting + 1u) * sizeof *w.next),
                     .order = maq__calloc((s->n_waiting + 1u) * sizeof *w.order),
                     .stack = maq__calloc(2 * (size_t)nodes * sizeof *w.stack)};
    if (w.weight && w.first && w.next && w.order && w.stack) {
        for (uint32_t i = s->n_waiting; i-- > 0;) { /* at a node, the first that waits is the first of its list */
            uint32_t node = s->at[s->waiting[i]].node;
            w.weight[node]++;
            w.next[i] = w.first[node];
            w.first[node] = i + 1;
        }
        weigh(&w);
        list_in_order(&w);
        for (uint32_t i = 0; i < w.n; i++)
            s->waiting[i] = w.order[i];
    } else {
        s->base.failed = true;
    }
    free(w.weight);
    free(w.first);
    free(w.next);
    free(w.order);
    free(w.stack);
}

/* ---- the others ---- */

static void by_number(struct maq_sglang *s, bool output)
{
    struct sorted *list = sorting(s);
    for (uint32_t i = 0; list && i < s->n_waiting; i++) {
        const struct maq_sglang_request *r = &s->at[s->waiting[i]];
        list[i] = (struct sorted){maq_sglang_urgency(s, r), output ? -r->limit : (int64_t)r->entered, i, s->waiting[i]};
    }
    if (list)
        sort(s, list);
}

/* Fisher and Yates, with splitmix64: an order, not the engine's. */
static void shuffle(struct maq_sglang *s)
{
    for (uint32_t i = s->n_waiting; i > 1; i--) {
        uint64_t x = s->draws += 0x9e3779b97f4a7c15u;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
        uint32_t j = (uint32_t)((x ^ (x >> 31)) % i), t = s->waiting[i - 1];
        s->waiting[i - 1] = s->waiting[j];
        s->waiting[j] = t;
    }
}

/* What those that wait would find is used now and then, the first one last, so that it is evicted last. */
static void refresh(struct maq_sglang *s)
{
    if (!s->knobs.caching || s->knobs.eviction != MAQ_RADIX_LRU || s->n_waiting == 0 ||
        s->refreshes++ % REFRESH_EVERY != 0)
        return;
    uint32_t n = s->n_waiting < MOST_MATCHED ? s->n_waiting : MOST_MATCHED, node;
    while (n-- > 0) {
        const struct maq_sglang_request *r = &s->at[s->waiting[n]];
        (void)maq_radix_match(&s->tree, &r->content, known(r), &node);
    }
}

void maq_sglang_sort(struct maq_sglang *s)
{
    enum maq_sglang_policy policy = (enum maq_sglang_policy)s->knobs.policy;
    if (!s->knobs.caching && (policy == MAQ_SGLANG_LPM || policy == MAQ_SGLANG_DFS_WEIGHT))
        policy = MAQ_SGLANG_FCFS;
    if (policy == MAQ_SGLANG_DFS_WEIGHT) {
        by_depth(s);
        return;
    }
    if (policy == MAQ_SGLANG_LPM && s->n_waiting <= MOST_MATCHED) {
        by_longest_prefix(s);
        return;
    }
    if (policy == MAQ_SGLANG_LOF || (policy == MAQ_SGLANG_FCFS && s->knobs.by_priority))
        by_number(s, policy == MAQ_SGLANG_LOF);
    else if (policy == MAQ_SGLANG_RANDOM)
        shuffle(s);
    refresh(s);
}
