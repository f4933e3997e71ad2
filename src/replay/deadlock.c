/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deadlock.c - the diagnostic of a deadlock: for the first parked ranks, the collective or message that each waits
 * for, and a member that has not arrived.
 */
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "capture/codes.h"
#include "replay/matching.h"

#define SHOWN 8u

/* The first member that has not arrived. */
static uint32_t missing(const struct maq_engine *e, uint32_t comm, uint32_t nth)
{
    const struct maq_meeting_place *p = &e->place[comm];
    for (uint32_t i = 0; i < p->size; i++) {
        uint32_t rank = e->seat[p->seats + i];
        if (rank == MAQ_NOBODY)
            continue;
        const struct maq_rank_state *r = &e->rank[rank];
        for (uint32_t k = 0; k < r->program->n_comms; k++)
            if (r->comm[k] == comm && r->arrived[k] <= nth)
                return rank;
    }
    return MAQ_NOBODY;
}

static void describe(const struct maq_engine *e, const struct maq_rank_state *r, struct maq_buf *out)
{
    const struct maq_ins *part = &r->program->ins[r->pc + r->part];
    uint32_t nth = maq_part_nth(e, r, part), record = r->program->record_of[r->pc + r->part];
    const struct maq_rank_class *c = &e->capture->class_of_ranks[e->capture->class_of[r->rank]];
    if (part->op == MAQ_INS_PART_COLL) {
        uint32_t who = missing(e, r->comm[part->id], nth);
        maq_buf_addf(out, "rank %u waits at its record %u, %s %u on a communicator of %u ranks", r->rank, record,
                     maq_rec_coll_word(MAQ_REC_COLL_KIND(c->record[record].id)), nth, e->place[r->comm[part->id]].size);
        if (who != MAQ_NOBODY)
            maq_buf_addf(out, ", for rank %u", who);
        return;
    }
    const struct maq_channel *ch = &e->channel[r->channel[part->id]];
    bool sends = part->op == MAQ_INS_PART_SEND;
    maq_buf_addf(out, "rank %u waits at its record %u, message %u %s rank %u", r->rank, record, nth,
                 sends ? "to" : "from", sends ? ch->to : ch->from);
}

enum maq_status maq_engine_stuck(struct maq_engine *e)
{
    struct maq_buf text;
    uint32_t n = 0;
    maq_buf_init(&text, 1 << 16);
    for (uint32_t i = 0; i < e->world; i++) {
        const struct maq_rank_state *r = &e->rank[i];
        if (!r->program || r->ended || r->failed || r->live)
            continue;
        if (n++ < SHOWN) {
            maq_buf_adds(&text, n > 1 ? "; " : "");
            describe(e, r, &text);
        }
    }
    if (n > SHOWN)
        maq_buf_addf(&text, "; and %u more", n - SHOWN);
    enum maq_status status = maq_diag_fail(MAQ_NO, e->diag, MAQ_CODE_REPLAY_DEADLOCK, (struct maq_span){0},
                                           "`maquette graph --check` looks for collectives that do not match",
                                           "%u ranks wait for each other for ever: %s", n, text.ptr ? text.ptr : "");
    maq_buf_fini(&text);
    return status;
}
