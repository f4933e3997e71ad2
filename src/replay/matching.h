/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matching.h - matching of collectives on a communicator and of messages on a channel. A meeting is one of them; a part is one
 * meeting of a kernel's group, a group all of them. The rules are those of shim/link.h.
 */
#ifndef MAQ_REPLAY_MATCHING_H
#define MAQ_REPLAY_MATCHING_H

#include "replay/engine.h"

/*
 * The rank arrives at a part at time t, unless it has before. false: not yet, since the ring is too short for so far
 * ahead.
 */
bool maq_part_arrive(struct maq_engine *e, struct maq_rank_state *r, const struct maq_ins *part, uint32_t nth,
                     int64_t t);
/* Transfer time of a part, as this rank has it, ns. */
int64_t maq_part_ns(const struct maq_engine *e, const struct maq_rank_state *r, const struct maq_ins *part);
/* The rank has completed all parts of the group. */
void maq_parts_done(struct maq_engine *e, struct maq_rank_state *r, const struct maq_ins *part, uint32_t n);
void maq_meeting_settle(struct maq_engine *e, uint32_t comm, struct maq_meeting *m);
/* rec: the message's, of a rank that is replayed. */
bool maq_message_arrive(struct maq_engine *e, const struct maq_rec *rec, uint32_t channel, bool sender, uint32_t nth,
                        int64_t t, int64_t ns);
/* When a group whose parts are all settled ends, and the wait for peers in it. */
int64_t maq_group_end(struct maq_engine *e, const struct maq_rank_state *r, const struct maq_ins *meet, int64_t arrived,
                      int64_t *waited);
/* Latest arrival of the other members at the meetings of a settled group; INT64_MIN: there are none. */
int64_t maq_group_peers(const struct maq_engine *e, const struct maq_rank_state *r, const struct maq_ins *meet);
/* When a group's kernel can start. */
int64_t maq_group_start(const struct maq_ins *meet, int64_t host, const int64_t *stream);

static inline struct maq_meeting *maq_meeting_of(const struct maq_meeting_place *p, uint32_t nth)
{
    return &p->ring[nth & (p->depth - 1)];
}

/* --- in the innermost loop --- */

/* Sequence number of a part: the nth collective of its communicator, the nth message of its channel. */
static inline uint32_t maq_part_nth(const struct maq_engine *e, const struct maq_rank_state *r,
                                    const struct maq_ins *part)
{
    if (part->op == MAQ_INS_PART_COLL)
        return r->done[part->id] + part->nth;
    const struct maq_channel *c = &e->channel[r->channel[part->id]];
    return (part->op == MAQ_INS_PART_SEND ? c->sent : c->received) + part->nth;
}

/* Whether it is settled; then when bytes begin to move and for how long. */
static inline bool maq_part_settled(const struct maq_engine *e, const struct maq_rank_state *r,
                                    const struct maq_ins *part, uint32_t nth, int64_t arrived, int64_t *start,
                                    int64_t *ns)
{
    if (part->op == MAQ_INS_PART_COLL) {
        const struct maq_meeting *m = maq_meeting_of(&e->place[r->comm[part->id]], nth);
        *start = m->at;
        *ns = m->ns;
        return m->nth == nth && m->settled;
    }
    const struct maq_channel *c = &e->channel[r->channel[part->id]];
    bool sends = part->op == MAQ_INS_PART_SEND;
    if (sends && part->eager) {
        *start = arrived;
        *ns = maq_part_ns(e, r, part);
        return true;
    }
    const struct maq_message *m = &c->ring[nth & (c->depth - 1)];
    if ((sends ? c->to : c->from) == MAQ_NOBODY) {
        *start = arrived;
        *ns = m->ns;
        return true;
    }
    *start = m->sent > m->received ? m->sent : m->received;
    *ns = m->ns;
    return nth < (sends ? c->receives : c->sends);
}

#endif
