/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - the interpreter: runs a rank's program until it ends, fails or is parked. See engine.h.
 *
 * Shares of time are counted on the stream that computes most. Time without compute is a wait: a gap before a launch
 * waits for the host; a communication kernel waits for peers, then for the transfer; an event is attributed to what the
 * other stream did last.
 */
#include <string.h>

#include "base/check.h"
#include "replay/matching.h"

static int64_t longer(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t shorter(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void name_span(struct maq_replay_span *span, const struct maq_engine *e, const struct maq_rec *r)
{
    static const char *const copies[] = {"copy on the host", "copy to the device", "copy to the host",
                                         "copy on the device", "copy to a peer"};
    span->kind = "memory";
    span->bytes = r->bytes;
    if (span->stream == MAQ_NOBODY) {
        span->kind = "host";
        span->name = "wait";
    } else if (r->kind == MAQ_REC_LAUNCH) {
        span->kind = "kernel";
        span->name = e->capture->op[r->id].name;
    } else if (r->kind == MAQ_REC_COLL || r->kind == MAQ_REC_SEND || r->kind == MAQ_REC_RECV) {
        span->kind = "communication";
        span->name = r->kind == MAQ_REC_SEND   ? "send"
                     : r->kind == MAQ_REC_RECV ? "receive"
                                               : maq_rec_coll_word(MAQ_REC_COLL_KIND(r->id));
    } else {
        span->name = r->kind == MAQ_REC_COPY && r->id <= MAQ_REC_P2P ? copies[r->id]
                     : r->kind == MAQ_REC_SET                        ? "memset"
                                                                     : "host function";
    }
}

static void tell(const struct maq_engine *e, const struct maq_rank_state *r, uint32_t pc, uint32_t stream,
                 int64_t start, int64_t end, int64_t waited, int64_t peers)
{
    struct maq_replay_span span = {.rank = r->rank,
                                   .record = r->program->record_of[pc],
                                   .stream = stream,
                                   .start_ns = start,
                                   .end_ns = end,
                                   .waited_ns = waited,
                                   .peers_ns = peers};
    if (end <= start)
        return;
    name_span(&span, e, &e->capture->class_of_ranks[e->capture->class_of[r->rank]].record[span.record]);
    e->opts->watch(&span, e->opts->user);
}

static void run(const struct maq_engine *e, struct maq_rank_state *r, const struct maq_ins *ins)
{
    int64_t s = r->stream[ins->stream], t = longer(s + ins->D, r->host + ins->M);
    if (ins->stream == r->program->main_stream) {
        r->share.compute_ns += ins->D;
        r->share.host_ns += t - s - ins->D;
    }
    if (r->watched)
        tell(e, r, r->pc, ins->stream, t - ins->D, t, 0, INT64_MIN);
    r->stream[ins->stream] = t;
    r->host += ins->H;
}

static void wait_event(struct maq_rank_state *r, const struct maq_ins *ins)
{
    int64_t *s = &r->stream[ins->stream], event = r->reg[ins->id], base = longer(*s, r->host), gap = event - base;
    if (ins->stream == r->program->main_stream) {
        r->share.host_ns += base - *s;
        if (gap > 0) {
            int64_t moving = shorter(gap, r->last_comm_ns[ins->from]);
            int64_t peers = shorter(gap - moving, r->last_peer_ns[ins->from]);
            r->share.communication_ns += moving;
            r->share.peers_ns += peers;
            r->share.compute_ns += gap - moving - peers;
        }
    }
    *s = longer(base, event);
}

static void ended(struct maq_engine *e, struct maq_rank_state *r)
{
    int64_t end = r->host, main = r->program->n_streams > 0 ? r->stream[r->program->main_stream] : 0;
    for (uint32_t s = 0; s < r->program->n_streams; s++)
        end = longer(end, r->stream[s]);
    r->share.host_ns += end - main;
    r->host = end;
    r->ended = true;
    e->n_ended++;
    e->records += r->program->n_records * r->times;
}

static void park(struct maq_engine *e, struct maq_rank_state *r, const struct maq_ins *part)
{
    r->parked_on = part->op == MAQ_INS_PART_COLL ? r->comm[part->id] : r->channel[part->id] | MAQ_PARKED_CHANNEL;
    (void)e;
}

/* false: the rank is parked. */
static bool meet(struct maq_engine *e, struct maq_rank_state *r, const struct maq_ins *ins)
{
    int64_t start, ns, end, waited;
    if (!r->posted) {
        r->host += ins->H;
        r->posted_at = maq_group_start(ins, r->host, r->stream);
        r->posted = true;
        r->part = 1;
        for (uint32_t i = 1; i <= ins->parts; i++)
            if (!maq_part_arrive(e, r, &ins[i], maq_part_nth(e, r, &ins[i]), r->posted_at))
                e->out_of_memory = true;
    }
    for (; r->part <= ins->parts; r->part++) {
        const struct maq_ins *part = &ins[r->part];
        if (!maq_part_settled(e, r, part, maq_part_nth(e, r, part), r->posted_at, &start, &ns)) {
            park(e, r, part);
            return false;
        }
    }
    end = maq_group_end(e, r, ins, r->posted_at, &waited);
    int64_t peers = r->watched ? maq_group_peers(e, r, ins) : INT64_MIN;
    for (uint32_t i = 1; i <= ins->parts; i++) {
        uint16_t s = ins[i].stream;
        if (s == r->program->main_stream && r->stream[s] != end) {
            r->share.host_ns += r->posted_at - r->stream[s];
            r->share.peers_ns += waited;
            r->share.communication_ns += end - r->posted_at - waited;
        }
        r->last_comm_ns[s] = end - r->posted_at - waited;
        r->last_peer_ns[s] = waited;
        r->stream[s] = end;
        if (r->watched)
            tell(e, r, r->pc + i, s, r->posted_at, end, waited, peers);
    }
    maq_parts_done(e, r, ins + 1, ins->parts);
    r->posted = false;
    r->pc += ins->parts;
    return true;
}

static void step(struct maq_engine *e, const struct maq_rank_state *r, uint32_t which)
{
    if (which >= e->n_steps)
        return;
    e->step_end[which] = longer(e->step_end[which], r->host);
    e->step_ended[which] += r->times;
}

static void sync_host(const struct maq_engine *e, struct maq_rank_state *r, int64_t until)
{
    if (r->watched && until > r->host)
        tell(e, r, r->pc, MAQ_NOBODY, r->host, until, 0, INT64_MIN);
    r->host = longer(r->host, until);
}

/* Advances a rank until it is parked, fails or ends. */
static void advance(struct maq_engine *e, struct maq_rank_state *r)
{
    const struct maq_ins *program = r->program->ins;
    r->parked_on = MAQ_NOBODY;
    for (;; r->pc++) {
        const struct maq_ins *ins = &program[r->pc];
        if (r->host >= r->fail_at && !r->posted) {
            r->failed = true;
            return;
        }
        switch (ins->op) {
        case MAQ_INS_RUN:
            run(e, r, ins);
            break;
        case MAQ_INS_HOST:
            r->host += ins->H;
            break;
        case MAQ_INS_RECORD:
            r->host += ins->H;
            r->reg[ins->id] = longer(r->stream[ins->stream], r->host);
            break;
        case MAQ_INS_WAIT:
            r->host += ins->H;
            wait_event(r, ins);
            break;
        case MAQ_INS_SYNC_EVENT:
            r->host += ins->H;
            sync_host(e, r, r->reg[ins->id]);
            break;
        case MAQ_INS_SYNC_STREAM:
            r->host += ins->H;
            sync_host(e, r, r->stream[ins->stream]);
            break;
        case MAQ_INS_SYNC_DEVICE:
            r->host += ins->H;
            for (uint32_t s = 0; s < r->program->n_streams; s++)
                sync_host(e, r, r->stream[s]);
            break;
        case MAQ_INS_MEET:
            if (!meet(e, r, ins))
                return;
            break;
        case MAQ_INS_STEP:
            step(e, r, ins->id);
            break;
        case MAQ_INS_FAIL:
            r->failed = true;
            return;
        default:
            ended(e, r);
            return;
        }
    }
}

/* Another order, the same result. */
static uint32_t take(struct maq_engine *e)
{
    uint32_t at = e->n_work - 1;
    if (e->opts->shuffle) {
        e->shuffle = maq_rec_mix(e->shuffle, e->opts->shuffle);
        at = (uint32_t)(e->shuffle % e->n_work);
    }
    uint32_t rank = e->worklist[at];
    e->worklist[at] = e->worklist[--e->n_work];
    return rank;
}

void maq_engine_run(struct maq_engine *e)
{
    while (e->n_work > 0 && !e->out_of_memory) {
        struct maq_rank_state *r = &e->rank[take(e)];
        r->queued = false;
        if (!r->ended && !r->failed)
            advance(e, r);
    }
}
