/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matching.c - arriving at meetings, settling them, and waking the ranks parked there: see matching.h.
 *
 * The slot of a collective in its ring is reused once the ring has wrapped around. A rank arrives at most half a ring
 * ahead of what it has completed, and no rank arrives at a collective before the one in front of it has settled, so a
 * slot is never reused while a member still has to read it.
 */
#include <string.h>

#include "base/check.h"
#include "replay/matching.h"
#include "shim/link.h"

static int64_t longer(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void wake(struct maq_engine *e, uint32_t rank, uint32_t parked_on)
{
    struct maq_rank_state *r = &e->rank[rank];
    if (r->parked_on != parked_on || r->queued || r->live)
        return;
    r->queued = true;
    e->worklist[e->n_work++] = rank;
}

void maq_meeting_settle(struct maq_engine *e, uint32_t comm, struct maq_meeting *m)
{
    const struct maq_meeting_place *p = &e->place[comm];
    m->settled = true;
    e->meetings += p->times;
    for (uint32_t i = 0; i < p->size; i++)
        if (e->seat[p->seats + i] != MAQ_NOBODY)
            wake(e, e->seat[p->seats + i], comm);
}

int64_t maq_part_ns(const struct maq_engine *e, const struct maq_rank_state *r, const struct maq_ins *part)
{
    bool coll = part->op == MAQ_INS_PART_COLL;
    uint32_t id = coll ? r->comm[part->id] : r->channel[part->id];
    int64_t ns = part->D;
    if (e->price && part->row != UINT32_MAX) {
        uint32_t at = coll ? e->place[id].placement : e->channel[id].placement;
        ns = e->price[(size_t)part->row * e->n_placements + at];
    }
    if (r->link != 1 && (coll ? e->place[id].leaves_node : e->channel[id].leaves_node))
        ns = (int64_t)((double)ns * r->link + 0.5);
    return ns;
}

static const struct maq_rec *record_of(const struct maq_engine *e, const struct maq_rank_state *r,
                                       const struct maq_ins *part)
{
    uint32_t record = r->program->record_of[part - r->program->ins];
    return &e->capture->class_of_ranks[e->capture->class_of[r->rank]].record[record];
}

static bool collective_arrive(struct maq_engine *e, struct maq_rank_state *r, const struct maq_ins *part, uint32_t nth,
                              int64_t t)
{
    uint32_t comm = r->comm[part->id];
    const struct maq_meeting_place *p = &e->place[comm];
    struct maq_meeting *m = maq_meeting_of(p, nth);
    int64_t ns;
    if (nth < r->arrived[part->id])
        return true;
    if (nth - r->done[part->id] >= p->depth / 2) {
        e->depth_was_short = true;
        return false;
    }
    r->arrived[part->id] = nth + 1;
    ns = maq_part_ns(e, r, part);
    if (m->nth != nth)
        *m = (struct maq_meeting){.nth = nth, .at = INT64_MIN, .others = INT64_MIN};
    m->at = longer(m->at, t);
    if (!r->watched)
        m->others = longer(m->others, t);
    m->ns = longer(m->ns, ns);
    if (++m->came < p->virtual_need)
        return true;
    if (p->virtual_need == p->need)
        maq_meeting_settle(e, comm, m);
    else
        e->hooks.collective(e, record_of(e, r, part), comm, m, e->hooks.user);
    return true;
}

static bool grow_channel(struct maq_engine *e, struct maq_channel *c, uint32_t first, uint32_t last)
{
    uint32_t depth = c->depth ? 2 * c->depth : 4;
    while (last - first >= depth)
        depth *= 2;
    struct maq_message *ring = MAQ_ARENA_NEW(e->arena, struct maq_message, depth);
    if (!ring) {
        e->out_of_memory = true;
        return false;
    }
    for (uint32_t i = first; c->depth > 0 && i != last; i++)
        ring[i & (depth - 1)] = c->ring[i & (c->depth - 1)];
    c->ring = ring;
    c->depth = depth;
    return true;
}

bool maq_message_arrive(struct maq_engine *e, const struct maq_rec *rec, uint32_t channel, bool sender, uint32_t nth,
                        int64_t t, int64_t ns)
{
    struct maq_channel *c = &e->channel[channel];
    uint32_t first = c->sent < c->received ? c->sent : c->received;
    uint32_t *mine = sender ? &c->sends : &c->receives, other = sender ? c->receives : c->sends;
    if (nth < *mine)
        return true;
    if (nth < first) { /* a live rank takes a message that its eager sender has completed already */
        *mine = nth + 1;
        return true;
    }
    if (nth - first >= c->depth && !grow_channel(e, c, first, nth))
        return false;
    struct maq_message *m = &c->ring[nth & (c->depth - 1)];
    if (nth >= other)
        *m = (struct maq_message){.ns = ns};
    *(sender ? &m->sent : &m->received) = t;
    m->ns = longer(m->ns, ns);
    *mine = nth + 1;
    uint32_t peer = sender ? c->to : c->from;
    if (nth < other) {
        e->meetings += c->times;
        wake(e, peer, channel | MAQ_PARKED_CHANNEL);
    }
    if (e->hooks.message && peer != MAQ_NOBODY && e->rank[peer].live)
        e->hooks.message(e, rec, channel, nth, sender, e->hooks.user);
    return true;
}

bool maq_part_arrive(struct maq_engine *e, struct maq_rank_state *r, const struct maq_ins *part, uint32_t nth,
                     int64_t t)
{
    if (part->op == MAQ_INS_PART_COLL)
        return collective_arrive(e, r, part, nth, t);
    return maq_message_arrive(e, e->hooks.message ? record_of(e, r, part) : NULL, r->channel[part->id],
                              part->op == MAQ_INS_PART_SEND, nth, t, maq_part_ns(e, r, part));
}

/* A side that is not replayed does not count. */
static bool counted(const struct maq_engine *e, uint32_t rank)
{
    return rank != MAQ_NOBODY && !e->rank[rank].live;
}

void maq_parts_done(struct maq_engine *e, struct maq_rank_state *r, const struct maq_ins *part, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (part[i].op == MAQ_INS_PART_COLL) {
            r->done[part[i].id]++;
            continue;
        }
        struct maq_channel *c = &e->channel[r->channel[part[i].id]];
        bool sends = part[i].op == MAQ_INS_PART_SEND;
        c->sent += sends || !counted(e, c->from);
        c->received += !sends || !counted(e, c->to);
    }
}

int64_t maq_group_start(const struct maq_ins *meet, int64_t host, const int64_t *stream)
{
    int64_t t = host;
    for (uint32_t i = 1; i <= meet->parts; i++)
        t = longer(t, stream[meet[i].stream]);
    return t;
}

int64_t maq_group_peers(const struct maq_engine *e, const struct maq_rank_state *r, const struct maq_ins *meet)
{
    int64_t latest = INT64_MIN;
    for (uint32_t i = 1; i <= meet->parts; i++) {
        const struct maq_ins *part = &meet[i];
        uint32_t nth = maq_part_nth(e, r, part);
        if (part->op == MAQ_INS_PART_COLL) {
            latest = longer(latest, maq_meeting_of(&e->place[r->comm[part->id]], nth)->others);
            continue;
        }
        const struct maq_channel *c = &e->channel[r->channel[part->id]];
        bool sends = part->op == MAQ_INS_PART_SEND;
        const struct maq_message *m = &c->ring[nth & (c->depth - 1)];
        if ((sends ? c->to : c->from) != MAQ_NOBODY && !(sends && part->eager))
            latest = longer(latest, sends ? m->received : m->sent);
    }
    return latest;
}

int64_t maq_group_end(struct maq_engine *e, const struct maq_rank_state *r, const struct maq_ins *meet, int64_t arrived,
                      int64_t *waited)
{
    int64_t end = arrived, latest = arrived;
    e->chain_stamp++;
    for (uint32_t i = 1; i <= meet->parts; i++) {
        const struct maq_ins *part = &meet[i];
        int64_t start, ns;
        (void)maq_part_settled(e, r, part, maq_part_nth(e, r, part), arrived, &start, &ns);
        latest = longer(latest, start);
        if (part->op == MAQ_INS_PART_COLL && meet->colls > 1) {
            if (e->chain_of[part->id] == e->chain_stamp)
                start = longer(start, e->chain[part->id]);
            e->chain_of[part->id] = e->chain_stamp;
            e->chain[part->id] = start + ns;
        }
        end = longer(end, start + ns);
    }
    *waited = latest - arrived;
    return end;
}
