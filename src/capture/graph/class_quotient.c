/* SPDX-License-Identifier: Apache-2.0 */
/*
 * class_quotient.c - which classes of ranks meet on which communicators: the quotient of a job by its classes.
 *
 * Pairs (class, ordinal of a communicator in it) that share a communicator of the job are joined (union-find); a
 * connected component is a kind. On an exact quotient every communicator of a kind joins all of the kind's pairs.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "capture/graph/graph.h"

#define NONE UINT32_MAX

struct quotient {
    struct maq_draft *d;
    uint32_t n_pairs, *first; /* [classes] pair of ordinal 0 */
    uint32_t *up;             /* [pairs + communicators] */
};

static uint32_t root(uint32_t *up, uint32_t x)
{
    while (up[x] != x) {
        up[x] = up[up[x]];
        x = up[x];
    }
    return x;
}

static void join(uint32_t *up, uint32_t a, uint32_t b)
{
    a = root(up, a);
    b = root(up, b);
    if (a < b)
        up[b] = a;
    else
        up[a] = b;
}

static bool begin(struct quotient *q)
{
    const struct maq_capture *c = q->d->capture;
    q->first = MAQ_ARENA_NEW(&q->d->scratch, uint32_t, (size_t)c->n_classes + 1);
    for (uint32_t i = 0; q->first && i < c->n_classes; i++) {
        q->first[i] = q->n_pairs;
        q->n_pairs += c->class_of_ranks[i].n_comms;
    }
    q->up = q->first ? MAQ_ARENA_NEW(&q->d->scratch, uint32_t, (size_t)q->n_pairs + c->n_comms) : NULL;
    for (uint32_t i = 0; q->up && i < q->n_pairs + c->n_comms; i++)
        q->up[i] = i;
    return q->up != NULL;
}

static void join_all(struct quotient *q)
{
    const struct maq_capture *c = q->d->capture;
    for (uint32_t i = 0; i < c->n_classes; i++) {
        const struct maq_rank_class *k = &c->class_of_ranks[i];
        for (uint32_t r = 0; r < k->n_ranks; r++)
            for (uint32_t o = 0; o < k->n_comms; o++)
                join(q->up, q->first[i] + o, q->n_pairs + k->comm[r * k->n_comms + o]);
    }
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Whether each communicator joins all pairs of its kind. pairs: [kinds]. */
static bool is_exact(struct quotient *q, const uint32_t *pairs)
{
    const struct maq_capture *c = q->d->capture;
    uint64_t n = 0, unique = 0, size = 0;
    for (uint32_t i = 0; i < c->n_classes; i++)
        size += (uint64_t)c->class_of_ranks[i].n_ranks * c->class_of_ranks[i].n_comms;
    uint64_t *seen = maq__malloc((size + 1) * sizeof *seen);
    q->d->failed |= !seen;
    for (uint32_t i = 0; seen && i < c->n_classes; i++) {
        const struct maq_rank_class *k = &c->class_of_ranks[i];
        for (uint32_t r = 0; r < k->n_ranks; r++)
            for (uint32_t o = 0; o < k->n_comms; o++)
                seen[n++] = (uint64_t)k->comm[r * k->n_comms + o] << 32 | (q->first[i] + o);
    }
    if (seen)
        qsort(seen, n, sizeof *seen, by_value);
    bool exact = true;
    for (uint64_t i = 0; seen && i < n; i = unique) {
        uint32_t comm = (uint32_t)(seen[i] >> 32), distinct = 0;
        for (unique = i; unique < n && seen[unique] >> 32 == comm; unique++)
            distinct += unique == i || seen[unique] != seen[unique - 1];
        exact &= distinct == pairs[root(q->up, q->n_pairs + comm)];
    }
    free(seen);
    return exact;
}

/* A kind in which a class occurs twice is split: each of its pairs is then a kind of its own. */
static bool name_kinds(struct quotient *q, uint32_t *pairs)
{
    struct maq_draft *d = q->d;
    const struct maq_capture *c = d->capture;
    d->kind_of = MAQ_ARENA_NEW(&d->scratch, uint32_t *, c->n_classes);
    d->members_of = MAQ_ARENA_NEW(&d->scratch, uint32_t, (size_t)q->n_pairs * 2 + 1);
    uint32_t *last = MAQ_ARENA_NEW(&d->scratch, uint32_t, (size_t)q->n_pairs + 1);
    bool *twice = MAQ_ARENA_NEW(&d->scratch, bool, (size_t)q->n_pairs + 1);
    if (!d->kind_of || !d->members_of || !last || !twice)
        return false;
    for (uint32_t i = 0; i < c->n_classes; i++)
        for (uint32_t o = 0; o < c->class_of_ranks[i].n_comms; o++) {
            uint32_t kind = root(q->up, q->first[i] + o);
            pairs[kind]++;
            twice[kind] |= last[kind] == i + 1;
            last[kind] = i + 1;
        }
    for (uint32_t i = 0; i < c->n_classes; i++) {
        d->kind_of[i] = MAQ_ARENA_NEW(&d->scratch, uint32_t, c->class_of_ranks[i].n_comms);
        if (!d->kind_of[i])
            return false;
        for (uint32_t o = 0; o < c->class_of_ranks[i].n_comms; o++) {
            uint32_t kind = root(q->up, q->first[i] + o);
            d->exact &= !twice[kind];
            d->kind_of[i][o] = twice[kind] ? q->n_pairs + q->first[i] + o : kind;
            d->members_of[d->kind_of[i][o]] = twice[kind] ? 1 : pairs[kind];
        }
    }
    return true;
}

bool maq_quotient(struct maq_draft *d)
{
    struct quotient q = {.d = d};
    d->exact = true;
    if (!begin(&q))
        return false;
    join_all(&q);
    uint32_t *pairs = MAQ_ARENA_NEW(&d->scratch, uint32_t, (size_t)q.n_pairs + 1);
    if (!pairs || !name_kinds(&q, pairs))
        return false;
    d->exact &= is_exact(&q, pairs);
    return !d->failed;
}

/* Class and ordinal of the peer of one rank of a class. */
static uint32_t peer_of(const struct maq_capture *c, const struct maq_rank_class *k, uint32_t r, uint32_t ordinal,
                        uint32_t relative, uint32_t *peer_ordinal)
{
    uint32_t comm = k->comm[r * k->n_comms + ordinal];
    const struct maq_captured_comm *m = &c->comm[comm];
    uint32_t peer = m->member[((uint64_t)k->position[r * k->n_comms + ordinal] + relative) % m->size];
    uint32_t class_id = peer < c->world ? c->class_of[peer] : NONE;
    if (class_id == NONE)
        return NONE;
    const struct maq_rank_class *other = &c->class_of_ranks[class_id];
    uint32_t low = 0, high = other->n_ranks;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (other->rank[mid] < peer)
            low = mid + 1;
        else
            high = mid;
    }
    for (uint32_t o = 0; low < other->n_ranks && other->rank[low] == peer && o < other->n_comms; o++)
        if (other->comm[low * other->n_comms + o] == comm) {
            *peer_ordinal = o;
            return class_id;
        }
    return NONE;
}

uint32_t maq_quotient_peer(struct maq_draft *d, uint32_t class_id, uint32_t ordinal, uint32_t relative,
                           uint32_t *peer_ordinal)
{
    const struct maq_rank_class *k = &d->capture->class_of_ranks[class_id];
    uint32_t first = NONE;
    *peer_ordinal = 0;
    for (uint32_t r = 0; r < k->n_ranks; r++) {
        uint32_t o = 0, who = peer_of(d->capture, k, r, ordinal, relative, &o);
        if (r == 0) {
            first = who;
            *peer_ordinal = o;
        } else if (who != first || o != *peer_ordinal)
            d->exact = false;
    }
    return first;
}
