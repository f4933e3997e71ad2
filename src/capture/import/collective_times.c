/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collective_times.c - durations of collectives and messages of traced ranks without waiting.
 *
 * A communication kernel lasts, in the trace of its rank, from when it was on the device to the common end; so of the
 * members of one collective the one that came last saw the shortest, and that is its duration:
 *
 *     ns(collective) = min over traced members of ns(member)                                        [ns]
 *
 * A collective is known by its communicator and its number on it, a message by the two ranks and its number between them.
 * With one traced rank nothing changes: then the duration holds that rank's waiting.
 */
#include "base/alloc.h"
#include "capture/import/traced_job.h"

#include <stdlib.h>

#define NONE UINT32_MAX

struct meet {
    struct maq_import_job *job;
    struct maq_arena scratch;
    struct maq_intern_map count; /* of a rank on a communicator, or towards a peer */
    struct maq_intern_map least; /* ns + 1 of a meeting */
    uint32_t *const *comm_id;
    bool failed;
};

/* The least duration so far of what record `r` of traced rank i takes part in; NULL when it is in nothing. */
static uint64_t *meeting(struct meet *m, uint32_t i, const struct maq_rec *r)
{
    bool message = r->kind == MAQ_REC_SEND || r->kind == MAQ_REC_RECV;
    if (r->kind != MAQ_REC_COLL && !message)
        return NULL;
    uint32_t ordinal = MAQ_REC_COLL_COMM(r->id);
    const struct maq_import_comm *c = &m->job->rank[i].comm[ordinal];
    if (c->position == NONE)
        return NULL;
    uint32_t from = NONE, to = NONE;
    if (message) {
        from = r->kind == MAQ_REC_SEND ? c->position : r->arg;
        to = r->kind == MAQ_REC_SEND ? r->arg : c->position;
    }
    uint32_t mine[5] = {i, ordinal, from, to, r->kind};
    uint64_t *count = maq_intern_map_at(&m->count, &m->scratch, mine, sizeof mine);
    uint32_t name[4] = {m->comm_id[i][ordinal], from, to, count ? (uint32_t)(*count)++ : 0};
    uint64_t *least = maq_intern_map_at(&m->least, &m->scratch, name, sizeof name);
    m->failed |= !count || !least;
    return least;
}

static void go_through(struct meet *m, bool put)
{
    for (uint32_t i = 0; i < m->job->n_ranks; i++)
        for (uint32_t k = 0; k < m->job->rank[i].n_records && !m->failed; k++) {
            struct maq_rec *r = &m->job->rank[i].record[k];
            uint64_t *least = meeting(m, i, r);
            if (least && put)
                r->ns = *least - 1;
            else if (least && (*least == 0 || r->ns < *least - 1))
                *least = r->ns + 1;
        }
}

bool maq_import_collective_times(struct maq_import_job *job, uint32_t *const *comm_id)
{
    struct meet m = {.job = job, .comm_id = comm_id};
    if (job->n_ranks < 2)
        return true;
    maq_arena_init(&m.scratch, 0);
    go_through(&m, false);
    maq_intern_map_fini(&m.count);
    go_through(&m, true);
    maq_intern_map_fini(&m.count);
    maq_intern_map_fini(&m.least);
    maq_arena_fini(&m.scratch);
    return !m.failed;
}
