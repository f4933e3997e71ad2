/* SPDX-License-Identifier: Apache-2.0 */
/*
 * look_ahead.c - arrivals of parked ranks on their other streams: see engine.h.
 *
 * The rank's clocks are copied, those of waiting streams set to MAQ_UNKNOWN_NS, and the program goes on from there. The rank
 * arrives at every group whose start is known, but not at later ones of a communicator or channel with an unsettled meeting, since
 * these keep their order. The look-ahead ends where the host's clock would be unknown.
 *
 * An arrival that lets other ranks go on is usually close (a send after the receive at which the rank is parked), so all parked
 * ranks look a few instructions ahead first, and further only while none has arrived anywhere. Times do not depend on the order of
 * arrivals.
 */
#include <string.h>

#include "base/check.h"
#include "replay/matching.h"

/* Instructions. */
#define FIRST_LOOK 32u
#define FAR_ENOUGH 65536u

struct ahead {
    struct maq_engine *e;
    struct maq_rank_state *r;
    int64_t host, *stream, *reg;
    uint32_t *done, *done_channel; /* collectives and messages passed on the way, beyond the rank's own counts */
    bool *blocked, *blocked_channel;
    bool moved;
};

static int64_t longer(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static bool known(int64_t t)
{
    return t < MAQ_UNKNOWN_NS / 2;
}

static uint32_t nth_of(const struct ahead *a, const struct maq_ins *part)
{
    uint32_t passed = part->op == MAQ_INS_PART_COLL ? a->done[part->id] : a->done_channel[part->id];
    return maq_part_nth(a->e, a->r, part) + passed;
}

static bool is_blocked(const struct ahead *a, const struct maq_ins *meet)
{
    for (uint32_t i = 1; i <= meet->parts; i++)
        if (meet[i].op == MAQ_INS_PART_COLL ? a->blocked[meet[i].id] : a->blocked_channel[meet[i].id])
            return true;
    return false;
}

static uint64_t arrivals(const struct ahead *a, const struct maq_ins *part)
{
    if (part->op == MAQ_INS_PART_COLL)
        return a->r->arrived[part->id];
    const struct maq_channel *c = &a->e->channel[a->r->channel[part->id]];
    return part->op == MAQ_INS_PART_SEND ? c->sends : c->receives;
}

static void block(struct ahead *a, const struct maq_ins *meet)
{
    for (uint32_t i = 1; i <= meet->parts; i++) {
        a->stream[meet[i].stream] = MAQ_UNKNOWN_NS;
        if (meet[i].op == MAQ_INS_PART_COLL)
            a->blocked[meet[i].id] = true;
        else
            a->blocked_channel[meet[i].id] = true;
    }
}

/* Its end where all parts are settled, MAQ_UNKNOWN_NS otherwise. */
static int64_t end_of(const struct ahead *a, const struct maq_ins *meet, int64_t t)
{
    int64_t end = t;
    if (meet->colls > 1)
        return MAQ_UNKNOWN_NS;
    for (uint32_t i = 1; i <= meet->parts; i++) {
        int64_t start, ns;
        if (!maq_part_settled(a->e, a->r, &meet[i], nth_of(a, &meet[i]), t, &start, &ns))
            return MAQ_UNKNOWN_NS;
        end = longer(end, start + ns);
    }
    return end;
}

static void meet(struct ahead *a, const struct maq_ins *ins)
{
    int64_t t = maq_group_start(ins, a->host, a->stream);
    bool there = known(t) && !is_blocked(a, ins);
    for (uint32_t i = 1; i <= ins->parts && there; i++) {
        uint64_t before = arrivals(a, &ins[i]);
        there = maq_part_arrive(a->e, a->r, &ins[i], nth_of(a, &ins[i]), t);
        a->moved |= arrivals(a, &ins[i]) != before;
    }
    int64_t end = there ? end_of(a, ins, t) : MAQ_UNKNOWN_NS;
    if (!known(end)) {
        block(a, ins);
        return;
    }
    for (uint32_t i = 1; i <= ins->parts; i++) {
        a->stream[ins[i].stream] = end;
        if (ins[i].op == MAQ_INS_PART_COLL)
            a->done[ins[i].id]++;
        else
            a->done_channel[ins[i].id]++;
    }
}

static void look(struct ahead *a, uint32_t far)
{
    const struct maq_replay_program *p = a->r->program;
    uint32_t pc = a->r->pc, last = pc + far;
    for (bool first = true; pc < p->n_ins && pc < last && known(a->host) && a->host < a->r->fail_at;
         pc++, first = false) {
        const struct maq_ins *ins = &p->ins[pc];
        if (!first)
            a->host += ins->op == MAQ_INS_FAIL || ins->op == MAQ_INS_END ? MAQ_UNKNOWN_NS : ins->H;
        switch (ins->op) {
        case MAQ_INS_RUN:
            a->stream[ins->stream] = longer(a->stream[ins->stream] + ins->D, a->host - ins->H + ins->M);
            if (!known(a->stream[ins->stream]))
                a->stream[ins->stream] = MAQ_UNKNOWN_NS;
            break;
        case MAQ_INS_RECORD:
            a->reg[ins->id] = longer(a->stream[ins->stream], a->host);
            break;
        case MAQ_INS_WAIT:
            a->stream[ins->stream] = longer(longer(a->stream[ins->stream], a->host), a->reg[ins->id]);
            break;
        case MAQ_INS_SYNC_EVENT:
            a->host = longer(a->host, a->reg[ins->id]);
            break;
        case MAQ_INS_SYNC_STREAM:
            a->host = longer(a->host, a->stream[ins->stream]);
            break;
        case MAQ_INS_SYNC_DEVICE:
            for (uint32_t s = 0; s < p->n_streams; s++)
                a->host = longer(a->host, a->stream[s]);
            break;
        case MAQ_INS_MEET:
            if (first) /* what it is parked at */
                block(a, ins);
            else
                meet(a, ins);
            pc += ins->parts;
            break;
        default:
            break;
        }
    }
}

/* false when out of memory. */
static bool prepare(struct ahead *a, struct maq_arena *scratch)
{
    const struct maq_replay_program *p = a->r->program;
    a->host = a->r->host;
    a->stream = MAQ_ARENA_NEW(scratch, int64_t, p->n_streams);
    a->reg = MAQ_ARENA_NEW(scratch, int64_t, p->n_registers);
    a->done = MAQ_ARENA_NEW(scratch, uint32_t, p->n_comms);
    a->done_channel = MAQ_ARENA_NEW(scratch, uint32_t, p->n_channels);
    a->blocked = MAQ_ARENA_NEW(scratch, bool, p->n_comms);
    a->blocked_channel = MAQ_ARENA_NEW(scratch, bool, p->n_channels);
    if (!a->stream || !a->reg || !a->done || !a->done_channel || !a->blocked || !a->blocked_channel)
        return false;
    if (p->n_streams > 0)
        memcpy(a->stream, a->r->stream, p->n_streams * sizeof *a->stream);
    if (p->n_registers > 0)
        memcpy(a->reg, a->r->reg, p->n_registers * sizeof *a->reg);
    return true;
}

/* All parked ranks look `far` instructions ahead; true if any arrived at a meeting. */
static bool all_look(struct maq_engine *e, uint32_t far, struct maq_arena *scratch)
{
    struct maq_arena_mark start = maq_arena_mark(scratch);
    bool moved = false;
    for (uint32_t i = 0; i < e->world && !e->out_of_memory; i++) {
        struct ahead a = {.e = e, .r = &e->rank[i]};
        if (!a.r->program || a.r->live || a.r->ended || a.r->failed || a.r->parked_on == MAQ_NOBODY || a.r->queued)
            continue;
        if (!prepare(&a, scratch)) {
            e->out_of_memory = true;
            break;
        }
        look(&a, far);
        moved |= a.moved;
        maq_arena_reset(scratch, start);
    }
    return moved;
}

bool maq_engine_look_ahead(struct maq_engine *e)
{
    struct maq_arena scratch;
    maq_arena_init(&scratch, 0);
    uint32_t far = FIRST_LOOK;
    bool moved = all_look(e, far, &scratch);
    while (!moved && far < FAR_ENOUGH && !e->out_of_memory) {
        far = far < FAR_ENOUGH / 8 ? 8 * far : FAR_ENOUGH;
        moved = all_look(e, far, &scratch);
    }
    maq_arena_fini(&scratch);
    return moved;
}
