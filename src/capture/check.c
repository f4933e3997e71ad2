/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c - maq_capture_check(): whether collectives and messages match on all members.
 *
 * On a communicator all members must make the same sequence of collectives: kind, size, type, operation, root. Between two
 * members the nth send meets the nth receive, of the same size. Sequences belong to classes, so each pair of classes that
 * share a communicator is compared once, however many ranks they have. The first difference of a pair is reported.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "capture/build.h"
#include "capture/codes.h"
#include "capture/intern.h"
#include "shim/record.h"

#define MOST_TOLD 20u

/* What a class does on one of its communicators: its collectives, or its messages with one peer in one direction. */
struct sequence {
    uint32_t n, *record;
};

struct checker {
    const struct maq_capture *capture;
    struct maq_arena arena;
    struct maq_diag *diag;
    struct maq_intern sequences, compared; /* of (class, communicator, peer, kind); of pairs of those */
    struct sequence *sequence;
    uint32_t room, told;
    uint32_t *seat, *seats; /* rank at each position; first seat of each communicator */
    bool failed;            /* out of memory */
};

struct which {
    uint32_t class, comm, peer, kind; /* kind: MAQ_REC_COLL, SEND or RECV */
};

static bool is_of(const struct maq_rec *r, const struct which *w)
{
    return r->kind == w->kind && MAQ_REC_COLL_COMM(r->id) == w->comm && (w->kind == MAQ_REC_COLL || r->arg == w->peer);
}

static uint32_t sequence_of(struct checker *k, struct which w)
{
    bool added;
    uint32_t id = maq_intern_put(&k->sequences, &w, sizeof w, &added), n = 0;
    if (id == UINT32_MAX || !added)
        return id;
    if (id == k->room) {
        uint32_t room = k->room ? 2 * k->room : 64;
        struct sequence *grown = MAQ_ARENA_NEW(&k->arena, struct sequence, room);
        if (!grown)
            return UINT32_MAX;
        if (id > 0)
            memcpy(grown, k->sequence, id * sizeof *grown);
        k->sequence = grown;
        k->room = room;
    }
    const struct maq_rank_class *c = &k->capture->class_of_ranks[w.class];
    for (uint32_t i = 0; i < c->n_records; i++)
        n += is_of(&c->record[i], &w);
    k->sequence[id] = (struct sequence){0, MAQ_ARENA_NEW(&k->arena, uint32_t, n)};
    if (!k->sequence[id].record)
        return UINT32_MAX;
    for (uint32_t i = 0; i < c->n_records; i++)
        if (is_of(&c->record[i], &w))
            k->sequence[id].record[k->sequence[id].n++] = i;
    return id;
}

/* --- faults --- */

static const char *what_differs(const struct maq_rec *a, const struct maq_rec *b)
{
    if (a->kind == MAQ_REC_COLL && MAQ_REC_COLL_KIND(a->id) != MAQ_REC_COLL_KIND(b->id))
        return "another collective";
    if (a->bytes != b->bytes)
        return "another size";
    if (a->kind != MAQ_REC_COLL)
        return NULL;
    if (MAQ_REC_COLL_TYPE(a->id) != MAQ_REC_COLL_TYPE(b->id))
        return "another type";
    if (MAQ_REC_COLL_OP(a->id) != MAQ_REC_COLL_OP(b->id))
        return "another operation";
    return a->arg != b->arg ? "another root" : NULL;
}

static const char *verb(const struct maq_rec *r)
{
    return r->kind == MAQ_REC_COLL   ? maq_rec_coll_word(MAQ_REC_COLL_KIND(r->id))
           : r->kind == MAQ_REC_SEND ? "send"
                                     : "receive";
}

static void tell(struct checker *k, uint32_t rank_a, uint32_t a, uint32_t rank_b, uint32_t b, uint32_t nth,
                 const char *why)
{
    const uint32_t *class_of = k->capture->class_of;
    const struct maq_rec *ra = &k->capture->class_of_ranks[class_of[rank_a]].record[a];
    const struct maq_rec *rb = &k->capture->class_of_ranks[class_of[rank_b]].record[b];
    if (k->told++ < MOST_TOLD)
        maq_diag_add(
            k->diag, MAQ_ERROR, MAQ_CODE_CAPTURE_UNMATCHED, (struct maq_span){0}, NULL,
            "number %u between them does not match: rank %u, record %u: %s of %llu bytes; rank %u, record %u: %s "
            "of %llu bytes: %s",
            nth, rank_a, a, verb(ra), (unsigned long long)ra->bytes, rank_b, b, verb(rb), (unsigned long long)rb->bytes,
            why);
}

static void tell_missing(struct checker *k, uint32_t has, const struct sequence *s, uint32_t nth, uint32_t lacks)
{
    const struct maq_rec *r = &k->capture->class_of_ranks[k->capture->class_of[has]].record[s->record[nth]];
    if (k->told++ < MOST_TOLD)
        maq_diag_add(k->diag, MAQ_ERROR, MAQ_CODE_CAPTURE_UNMATCHED, (struct maq_span){0}, NULL,
                     "rank %u, record %u: %s %u of %llu bytes has no partner on rank %u, which makes only %u there",
                     has, s->record[nth], verb(r), nth, (unsigned long long)r->bytes, lacks, nth);
}

static void compare(struct checker *k, struct which a, uint32_t rank_a, struct which b, uint32_t rank_b)
{
    uint32_t pair[2] = {sequence_of(k, a), sequence_of(k, b)};
    bool added = false;
    k->failed |= pair[0] == UINT32_MAX || pair[1] == UINT32_MAX ||
                 maq_intern_put(&k->compared, pair, sizeof pair, &added) == UINT32_MAX;
    if (k->failed || !added || pair[0] == pair[1])
        return;
    const struct sequence *s = &k->sequence[pair[0]], *t = &k->sequence[pair[1]];
    const struct maq_rec *ra = k->capture->class_of_ranks[a.class].record;
    const struct maq_rec *rb = k->capture->class_of_ranks[b.class].record;
    for (uint32_t i = 0; i < s->n && i < t->n; i++) {
        const char *why = what_differs(&ra[s->record[i]], &rb[t->record[i]]);
        if (why) {
            tell(k, rank_a, s->record[i], rank_b, t->record[i], i, why);
            return;
        }
    }
    if (s->n > t->n)
        tell_missing(k, rank_a, s, t->n, rank_b);
    else if (t->n > s->n)
        tell_missing(k, rank_b, t, s->n, rank_a);
}

/* --- all of them --- */

static bool seat_ranks(struct checker *k)
{
    const struct maq_capture *c = k->capture;
    size_t n = 0;
    k->seats = MAQ_ARENA_NEW(&k->arena, uint32_t, c->n_comms);
    for (uint32_t i = 0; k->seats && i < c->n_comms; n += c->comm[i++].size)
        k->seats[i] = (uint32_t)n;
    k->seat = k->seats ? MAQ_ARENA_NEW(&k->arena, uint32_t, 2 * n) : NULL; /* rank, its ordinal */
    if (!k->seat)
        return false;
    memset(k->seat, 0xff, 2 * n * sizeof *k->seat);
    for (uint32_t m = 0; m < c->n_classes; m++) {
        const struct maq_rank_class *p = &c->class_of_ranks[m];
        for (size_t i = 0; i < (size_t)p->n_ranks * p->n_comms; i++) {
            uint32_t *at = &k->seat[2 * (k->seats[p->comm[i]] + (size_t)p->position[i])];
            at[0] = p->rank[i / p->n_comms];
            at[1] = (uint32_t)(i % p->n_comms);
        }
    }
    return true;
}

static void check_collectives(struct checker *k, uint32_t comm)
{
    const uint32_t *seat = &k->seat[2 * (size_t)k->seats[comm]], *class_of = k->capture->class_of, *first = NULL;
    for (uint32_t i = 0; i < k->capture->comm[comm].size && !k->failed; i++) {
        const uint32_t *at = &seat[2 * (size_t)i];
        if (at[0] == UINT32_MAX)
            continue;
        if (first)
            compare(k, (struct which){class_of[first[0]], first[1], 0, MAQ_REC_COLL}, first[0],
                    (struct which){class_of[at[0]], at[1], 0, MAQ_REC_COLL}, at[0]);
        else
            first = at;
    }
}

/* Peers that a class sends to or receives from, each once. */
static bool peers_of(struct checker *k, uint32_t class, struct maq_intern *out)
{
    const struct maq_rank_class *c = &k->capture->class_of_ranks[class];
    maq_intern_init(out, &k->arena);
    for (uint32_t i = 0; i < c->n_records; i++) {
        const struct maq_rec *r = &c->record[i];
        struct which w = {class, MAQ_REC_COLL_COMM(r->id), r->arg, r->kind};
        if ((r->kind == MAQ_REC_SEND || r->kind == MAQ_REC_RECV) &&
            maq_intern_put(out, &w, sizeof w, NULL) == UINT32_MAX)
            return false;
    }
    return true;
}

static void check_messages(struct checker *k, uint32_t class)
{
    const struct maq_rank_class *c = &k->capture->class_of_ranks[class];
    struct maq_intern peers;
    k->failed |= !peers_of(k, class, &peers);
    for (uint32_t i = 0; i < c->n_ranks && !k->failed; i++)
        for (uint32_t p = 0; p < peers.n && !k->failed; p++) {
            struct which w;
            memcpy(&w, peers.key[p].bytes, sizeof w);
            size_t at = (size_t)i * c->n_comms + w.comm;
            uint32_t size = k->capture->comm[c->comm[at]].size, peer = (c->position[at] + w.peer) % size;
            const uint32_t *seat = &k->seat[2 * (k->seats[c->comm[at]] + (size_t)peer)];
            if (seat[0] != UINT32_MAX)
                compare(k, w, c->rank[i],
                        (struct which){k->capture->class_of[seat[0]], seat[1], (size - w.peer) % size,
                                       w.kind == MAQ_REC_SEND ? MAQ_REC_RECV : MAQ_REC_SEND},
                        seat[0]);
        }
}

static uint32_t unknown_ranks(const struct maq_capture *c)
{
    uint32_t n = 0;
    for (uint32_t r = 0; r < c->world; r++)
        n += c->class_of[r] == UINT32_MAX;
    return n;
}

enum maq_status maq_capture_check(const struct maq_capture *capture, struct maq_diag *diag)
{
    struct checker k = {.capture = capture, .diag = diag};
    uint32_t unknown = unknown_ranks(capture);
    maq_arena_init(&k.arena, 0);
    maq_intern_init(&k.sequences, &k.arena);
    maq_intern_init(&k.compared, &k.arena);
    k.failed = !seat_ranks(&k);
    for (uint32_t i = 0; i < capture->n_comms && !k.failed; i++)
        check_collectives(&k, i);
    for (uint32_t i = 0; i < capture->n_classes && !k.failed; i++)
        check_messages(&k, i);
    maq_arena_fini(&k.arena);
    if (k.failed)
        return maq_no_memory(diag, NULL);
    if (unknown > 0)
        maq_diag_add(diag, MAQ_WARNING, MAQ_CODE_CAPTURE_UNKNOWN_RANKS, (struct maq_span){0}, NULL,
                     "nothing is known of %u of %u ranks; what they would meet is not checked", unknown,
                     capture->world);
    if (k.told > MOST_TOLD)
        maq_diag_add(diag, MAQ_NOTE, MAQ_CODE_CAPTURE_UNMATCHED, (struct maq_span){0}, NULL, "and %u more",
                     k.told - MOST_TOLD);
    return k.told > 0 ? MAQ_NO : MAQ_OK;
}
