/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_numbers.c - validates a capture from a file: ids, counts and ranks refer to existing things, ids are used in
 * the order of first use, and every rank has one place in a communicator. See mqt.h.
 */
#include <string.h>

#include "capture/build.h"
#include "capture/mqt/mqt.h"

/* An id in the order of first use: one that was, or the next. */
static bool counts(uint32_t *n, uint32_t id)
{
    if (id > *n || id == UINT32_MAX)
        return false;
    *n += id == *n;
    return true;
}

struct counted {
    uint32_t streams, events, allocs;
};

static bool on_stream(struct counted *n, const struct maq_rec *r, bool host_too)
{
    return r->stream == MAQ_REC_HOST_STREAM ? host_too : counts(&n->streams, r->stream);
}

static const char *fault_of_comm(const struct maq_capture *c, const struct maq_rank_class *m, const struct maq_rec *r)
{
    uint32_t comm = MAQ_REC_COLL_COMM(r->id);
    if (comm >= m->n_comms || m->n_ranks == 0)
        return "has a communicator that is not there";
    uint32_t size = c->comm[m->comm[comm]].size;
    if (r->kind == MAQ_REC_COLL)
        return MAQ_REC_COLL_KIND(r->id) >= MAQ_REC_COLL_COUNT || (r->arg != MAQ_REC_NONE && r->arg >= size)
                   ? "has a collective that cannot be"
                   : NULL;
    return r->arg >= size ? "has a peer outside of its communicator" : NULL;
}

static const char *fault_of(const struct maq_capture *c, const struct maq_rank_class *m, const struct maq_rec *r,
                            struct counted *n)
{
    bool fine = true;
    switch (r->kind) {
    case MAQ_REC_DEF_OP:
    case MAQ_REC_DEF_COMM:
    case MAQ_REC_DEF_TEXT:
        return "has a definition among its records";
    case MAQ_REC_LAUNCH:
        fine = on_stream(n, r, false) && r->id < c->n_ops;
        break;
    case MAQ_REC_COLL:
    case MAQ_REC_SEND:
    case MAQ_REC_RECV:
        return on_stream(n, r, false) ? fault_of_comm(c, m, r) : "has a stream out of order";
    case MAQ_REC_EVENT_RECORD:
    case MAQ_REC_STREAM_WAIT:
        fine = on_stream(n, r, false) && counts(&n->events, r->id);
        break;
    case MAQ_REC_EVENT_SYNC:
        fine = counts(&n->events, r->id);
        break;
    case MAQ_REC_COPY:
        fine = r->id <= MAQ_REC_P2P && on_stream(n, r, true);
        break;
    case MAQ_REC_ALLOC:
        fine = counts(&n->allocs, r->id) || r->flags & MAQ_REC_FAILED;
        break;
    case MAQ_REC_FREE:
        fine = r->id < n->allocs && (r->stream == MAQ_REC_HOST_STREAM || r->stream <= n->streams);
        break;
    case MAQ_REC_SET:
    case MAQ_REC_STREAM_SYNC:
    case MAQ_REC_HOST_CALL:
        fine = on_stream(n, r, true);
        break;
    case MAQ_REC_MARK:
        fine = r->id < c->n_texts || r->id == MAQ_REC_NONE;
        break;
    default:
        fine = r->kind < MAQ_REC_KIND_COUNT;
    }
    return fine ? NULL : "has a record that cannot be";
}

/* Checks that a rank has one position in a communicator, and a position one rank. */
static const char *fault_of_places(const struct maq_capture *c, const struct maq_rank_class *m, uint32_t *taken,
                                   const uint64_t *seats)
{
    for (uint32_t i = 0; i < m->n_ranks; i++)
        for (uint32_t k = 0; k < m->n_comms; k++) {
            size_t at = (size_t)i * m->n_comms + k;
            if (m->comm[at] >= c->n_comms || c->comm[m->comm[at]].size != c->comm[m->comm[k]].size ||
                m->position[at] >= c->comm[m->comm[at]].size)
                return "has a rank in a communicator that is not there";
            uint32_t *seat = &taken[seats[m->comm[at]] + m->position[at]];
            if (*seat != 0)
                return "has two ranks in one place";
            *seat = m->rank[i] + 1;
            uint32_t member = c->comm[m->comm[at]].member[m->position[at]];
            if (member != UINT32_MAX && member != m->rank[i])
                return "has a rank in another's place";
        }
    return NULL;
}

static const char *fault_of_class(const struct maq_capture *c, const struct maq_rank_class *m)
{
    struct counted n = {0};
    for (uint32_t i = 0; i < m->n_records; i++) {
        const char *fault = fault_of(c, m, &m->record[i], &n);
        if (fault)
            return fault;
    }
    for (uint32_t i = 0; i < m->n_deltas; i++) {
        const struct maq_rank_delta *d = &m->delta[i];
        if (d->record >= m->n_records ||
            (i > 0 && (d->rank < d[-1].rank || (d->rank == d[-1].rank && d->record <= d[-1].record))))
            return "has differences out of order";
    }
    return NULL;
}

const char *maq_capture_fault(const struct maq_capture *capture, struct maq_arena *scratch)
{
    uint64_t n = 0, *seats = MAQ_ARENA_NEW(scratch, uint64_t, capture->n_comms);
    for (uint32_t i = 0; seats && i < capture->n_comms; n += capture->comm[i++].size)
        seats[i] = n;
    uint32_t *taken = seats ? MAQ_ARENA_NEW(scratch, uint32_t, n) : NULL;
    if (!taken)
        return "is too large to be looked at";
    for (uint32_t k = 0; k < capture->n_classes; k++) {
        const struct maq_rank_class *m = &capture->class_of_ranks[k];
        const char *fault = fault_of_places(capture, m, taken, seats);
        fault = fault ? fault : fault_of_class(capture, m);
        if (fault)
            return fault;
    }
    return NULL;
}
