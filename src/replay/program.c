/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.c - compiles a class's records to instructions: composes launches, assigns events to registers by liveness,
 * numbers channels, and splits groups into parts. See program.h.
 */
#include "replay/program.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "shim/link.h"

#define NOWHERE (INT64_MIN / 4)

struct compiler {
    const struct maq_replay_program_of *of;
    struct maq_arena *arena;
    struct maq_price_rows *rows;
    struct maq_ins *ins;
    uint32_t *record_of;
    uint32_t n, n_channels, channel_room;
    struct maq_channel_of *channel;
    uint32_t next_delta, next_step, step;
    bool open;          /* the last instruction may be composed with */
    uint32_t *reg_of;   /* [n_events] register that holds it; UINT32_MAX = none */
    uint32_t *last_use; /* [n_records] of EVENT_RECORD: the last record that waits for it; 0 = none */
    uint32_t *free_reg; /* stack */
    uint32_t n_free, n_registers;
    uint16_t *from; /* [n_events] stream of the last record */
    uint32_t *held; /* [n_events] record until which its register is held */
    uint32_t *nth;  /* [n_comms] scratch of a group */
    uint32_t most_in_group;
    bool failed;
};

/* --- liveness of events --- */

static bool uses_event(const struct maq_rec *r)
{
    return r->kind == MAQ_REC_STREAM_WAIT || r->kind == MAQ_REC_EVENT_SYNC;
}

static bool find_uses(struct compiler *k)
{
    const struct maq_rank_class *c = k->of->c;
    uint32_t *at = MAQ_ARENA_NEW(k->arena, uint32_t, c->n_events); /* its last record, + 1 */
    k->last_use = MAQ_ARENA_NEW(k->arena, uint32_t, c->n_records);
    k->reg_of = MAQ_ARENA_NEW(k->arena, uint32_t, c->n_events);
    k->held = MAQ_ARENA_NEW(k->arena, uint32_t, c->n_events);
    k->free_reg = MAQ_ARENA_NEW(k->arena, uint32_t, c->n_events);
    k->from = MAQ_ARENA_NEW(k->arena, uint16_t, c->n_events);
    k->nth = MAQ_ARENA_NEW(k->arena, uint32_t, c->n_comms);
    if (!at || !k->last_use || !k->reg_of || !k->held || !k->free_reg || !k->from || !k->nth)
        return false;
    memset(k->reg_of, 0xff, c->n_events * sizeof *k->reg_of);
    for (uint32_t i = 0; i < c->n_records; i++) {
        const struct maq_rec *r = &c->record[i];
        if (r->kind == MAQ_REC_EVENT_RECORD)
            at[r->id] = i + 1;
        if (uses_event(r) && at[r->id] > 0)
            k->last_use[at[r->id] - 1] = i;
    }
    return true;
}

static void release(struct compiler *k, uint32_t event)
{
    if (k->reg_of[event] != UINT32_MAX) {
        k->free_reg[k->n_free++] = k->reg_of[event];
        k->reg_of[event] = UINT32_MAX;
    }
}

/* --- instructions --- */

static struct maq_ins *emit(struct compiler *k, uint32_t record, struct maq_ins ins)
{
    MAQ_ASSERT(k->ins && k->record_of);
    k->record_of[k->n] = record;
    k->ins[k->n] = ins;
    k->open = false;
    return &k->ins[k->n++];
}

static void host(struct compiler *k, uint32_t record, int64_t ns)
{
    struct maq_ins *last = k->n > 0 ? &k->ins[k->n - 1] : NULL;
    if (ns == 0 && k->of->folded)
        return;
    if (k->open && k->of->folded && last) {
        last->H += ns;
        return;
    }
    emit(k, record, (struct maq_ins){.op = MAQ_INS_HOST, .H = ns});
    k->open = true;
}

/* host += h; stream = max(stream, host) + d. */
static void run(struct compiler *k, uint32_t record, uint16_t stream, int64_t h, int64_t d)
{
    struct maq_ins *last = k->n > 0 ? &k->ins[k->n - 1] : NULL;
    if (k->open && k->of->folded && last && (last->op == MAQ_INS_HOST || last->stream == stream)) {
        int64_t m = last->op == MAQ_INS_HOST ? NOWHERE : last->M, D = last->op == MAQ_INS_HOST ? 0 : last->D;
        last->H += h;
        last->op = MAQ_INS_RUN;
        last->stream = stream;
        last->D = D + d;
        last->M = (m > last->H ? m : last->H) + d;
        return;
    }
    emit(k, record, (struct maq_ins){.op = MAQ_INS_RUN, .stream = stream, .H = h, .D = d, .M = h + d});
    k->open = true;
}

/* --- durations --- */

static double factor_of(const struct compiler *k)
{
    double f = 1;
    for (uint32_t i = 0; i < k->of->n_edits; i++) {
        const struct maq_edit *e = &k->of->edit[i];
        if (e->kind == MAQ_EDIT_SLOW && k->step >= e->from && k->step < e->to)
            f *= e->factor;
    }
    return f;
}

static int64_t rounded(double ns)
{
    return ns < 9e15 ? (int64_t)(ns + 0.5) : (int64_t)9e15;
}

static int64_t duration(const struct compiler *k, const struct maq_rec *r, uint64_t recorded)
{
    const struct maq_replay_program_of *of = k->of;
    double ns = recorded < (uint64_t)9e15 ? (double)recorded : 9e15, f = factor_of(k);
    if (r->kind == MAQ_REC_LAUNCH) {
        if (of->price && of->price[r->id] >= 0)
            ns = of->price[r->id];
        else if (of->scale)
            ns *= of->scale[r->id];
    } else if (r->kind == MAQ_REC_COPY || r->kind == MAQ_REC_SET) {
        bool over_bus = r->kind == MAQ_REC_COPY && (r->id == MAQ_REC_H2D || r->id == MAQ_REC_D2H);
        double scale = of->copy_scale[over_bus ? 0 : 1];
        ns *= scale > 0 ? scale : 1;
    } else {
        f = 1;
    }
    return rounded(ns * f);
}

/* --- communication --- */

static uint32_t channel_of(struct compiler *k, uint32_t comm, uint32_t peer, bool sends)
{
    for (uint32_t i = k->n_channels; i-- > 0;)
        if (k->channel[i].comm == comm && k->channel[i].peer == peer && k->channel[i].sends == sends)
            return i;
    if (k->n_channels == k->channel_room) {
        uint32_t room = k->channel_room ? 2 * k->channel_room : 16;
        struct maq_channel_of *grown = MAQ_ARENA_NEW(k->arena, struct maq_channel_of, room);
        if (!grown) {
            k->failed = true;
            return 0;
        }
        if (k->n_channels > 0)
            memcpy(grown, k->channel, k->n_channels * sizeof *grown);
        k->channel = grown;
        k->channel_room = room;
    }
    k->channel[k->n_channels] = (struct maq_channel_of){comm, peer, sends};
    return k->n_channels++;
}

static uint32_t row_of(struct compiler *k, uint32_t coll, uint64_t bytes)
{
    struct maq_price_rows *rows = k->rows;
    if (!rows)
        return UINT32_MAX;
    for (uint32_t i = 0; i < rows->n; i++)
        if (rows->row[i].coll == coll && rows->row[i].bytes == bytes)
            return i;
    if (rows->n == rows->room) {
        uint32_t room = rows->room ? 2 * rows->room : 32;
        struct maq_price_row *grown = MAQ_ARENA_NEW(rows->arena, struct maq_price_row, room);
        if (!grown) {
            k->failed = true;
            return UINT32_MAX;
        }
        if (rows->n > 0)
            memcpy(grown, rows->row, rows->n * sizeof *grown);
        rows->row = grown;
        rows->room = room;
    }
    rows->row[rows->n] = (struct maq_price_row){coll, bytes};
    return rows->n++;
}

static bool is_communication(const struct maq_rec *r)
{
    return r->kind == MAQ_REC_COLL || r->kind == MAQ_REC_SEND || r->kind == MAQ_REC_RECV;
}

static void part(struct compiler *k, uint32_t record, uint64_t ns, uint32_t first)
{
    const struct maq_rec *r = &k->of->c->record[record];
    uint32_t comm = MAQ_REC_COLL_COMM(r->id);
    struct maq_ins ins = {.stream = r->stream, .D = rounded(ns < (uint64_t)9e15 ? (double)ns : 9e15)};
    if (r->kind == MAQ_REC_COLL) {
        ins.op = MAQ_INS_PART_COLL;
        ins.id = comm;
        ins.row = row_of(k, MAQ_REC_COLL_KIND(r->id), r->bytes);
    } else {
        ins.op = r->kind == MAQ_REC_SEND ? MAQ_INS_PART_SEND : MAQ_INS_PART_RECV;
        ins.id = channel_of(k, comm, r->arg, r->kind == MAQ_REC_SEND);
        ins.row = row_of(k, UINT32_MAX, r->bytes);
        ins.eager = r->kind == MAQ_REC_SEND && r->bytes <= MAQ_EAGER_BYTES;
    }
    if (r->kind == MAQ_REC_COLL) {
        ins.nth = k->nth[comm]++;
        k->most_in_group = k->nth[comm] > k->most_in_group ? k->nth[comm] : k->most_in_group;
    } else { /* equal messages of a group are adjacent */
        const struct maq_ins *last = &k->ins[k->n - 1];
        ins.nth = k->n > first && last->op == ins.op && last->id == ins.id ? last->nth + 1 : 0;
    }
    emit(k, record, ins);
}

static uint64_t own_ns(struct compiler *k, uint32_t record, uint32_t *host_ns)
{
    const struct maq_replay_program_of *of = k->of;
    const struct maq_rec *r = &of->c->record[record];
    *host_ns = r->host_ns;
    while (k->next_delta < of->n_deltas && of->delta[k->next_delta].record < record)
        k->next_delta++;
    if (k->next_delta < of->n_deltas && of->delta[k->next_delta].record == record) {
        *host_ns = of->delta[k->next_delta].host_ns;
        return of->delta[k->next_delta].ns;
    }
    return r->ns;
}

/* The group that begins at `record`; returns its last record. */
static uint32_t group(struct compiler *k, uint32_t record)
{
    const struct maq_rank_class *c = k->of->c;
    uint32_t end = record, colls = 0, at = k->n;
    int64_t h = 0;
    while (end + 1 < c->n_records && c->record[end].flags & MAQ_REC_MORE && is_communication(&c->record[end + 1]))
        end++;
    emit(k, record, (struct maq_ins){.op = MAQ_INS_MEET, .stream = c->record[record].stream});
    for (uint32_t i = record; i <= end; i++)
        if (c->record[i].kind == MAQ_REC_COLL)
            k->nth[MAQ_REC_COLL_COMM(c->record[i].id)] = 0;
    for (uint32_t i = record; i <= end; i++) {
        uint32_t host_ns;
        uint64_t ns = own_ns(k, i, &host_ns);
        part(k, i, ns, at + 1);
        h += host_ns;
        colls += c->record[i].kind == MAQ_REC_COLL;
    }
    k->ins[at].H = h;
    k->ins[at].parts = end - record + 1;
    k->ins[at].colls = colls;
    return end;
}

/* --- one record --- */

static void record_event(struct compiler *k, uint32_t i, int64_t h)
{
    const struct maq_rec *r = &k->of->c->record[i];
    release(k, r->id);
    k->from[r->id] = r->stream;
    if (k->last_use[i] == 0) {
        host(k, i, h);
        return;
    }
    k->reg_of[r->id] = k->n_free > 0 ? k->free_reg[--k->n_free] : k->n_registers++;
    k->held[r->id] = k->last_use[i];
    emit(k, i, (struct maq_ins){.op = MAQ_INS_RECORD, .stream = r->stream, .id = k->reg_of[r->id], .H = h});
}

static void use_event(struct compiler *k, uint32_t i, int64_t h)
{
    const struct maq_rec *r = &k->of->c->record[i];
    bool sync = r->kind == MAQ_REC_EVENT_SYNC;
    if (k->reg_of[r->id] == UINT32_MAX) { /* never recorded: done */
        host(k, i, h);
        return;
    }
    emit(k, i,
         (struct maq_ins){.op = sync ? MAQ_INS_SYNC_EVENT : MAQ_INS_WAIT,
                          .stream = sync ? 0 : r->stream,
                          .id = k->reg_of[r->id],
                          .from = k->from[r->id],
                          .H = h});
    if (k->held[r->id] == i)
        release(k, r->id);
}

static void sync_stream(struct compiler *k, uint32_t i, uint16_t stream, int64_t h)
{
    bool all = stream == MAQ_REC_HOST_STREAM;
    emit(k, i,
         (struct maq_ins){.op = all ? MAQ_INS_SYNC_DEVICE : MAQ_INS_SYNC_STREAM, .stream = all ? 0 : stream, .H = h});
}

static void one_record(struct compiler *k, uint32_t i, int64_t h, uint64_t ns)
{
    const struct maq_rec *r = &k->of->c->record[i];
    switch (r->kind) {
    case MAQ_REC_LAUNCH:
    case MAQ_REC_COPY:
    case MAQ_REC_SET:
    case MAQ_REC_HOST_CALL:
        if (r->stream == MAQ_REC_HOST_STREAM)
            host(k, i, h + duration(k, r, ns));
        else
            run(k, i, r->stream, h, duration(k, r, ns));
        if (r->flags & MAQ_REC_WAITS && r->stream != MAQ_REC_HOST_STREAM)
            sync_stream(k, i, r->stream, 0);
        return;
    case MAQ_REC_HOST:
        host(k, i, h + rounded(ns < (uint64_t)9e15 ? (double)ns : 9e15));
        return;
    case MAQ_REC_EVENT_RECORD:
        record_event(k, i, h);
        return;
    case MAQ_REC_STREAM_WAIT:
    case MAQ_REC_EVENT_SYNC:
        use_event(k, i, h);
        return;
    case MAQ_REC_STREAM_SYNC:
        sync_stream(k, i, r->stream, h);
        return;
    case MAQ_REC_DEVICE_SYNC:
        sync_stream(k, i, MAQ_REC_HOST_STREAM, h);
        return;
    case MAQ_REC_FREE:
        if (r->flags & MAQ_REC_WAITS) {
            sync_stream(k, i, r->stream, h);
            return;
        }
        host(k, i, h);
        return;
    default:
        host(k, i, h);
        return;
    }
}

static void begin_steps(struct compiler *k, uint32_t record)
{
    while (k->next_step < k->of->n_steps && k->of->step_at[k->next_step] <= record) {
        emit(k, record, (struct maq_ins){.op = MAQ_INS_STEP, .id = k->next_step++});
        k->step++;
        for (uint32_t i = 0; i < k->of->n_edits; i++)
            if (k->of->edit[i].kind == MAQ_EDIT_FAIL && k->of->edit[i].at_ns < 0 && k->of->edit[i].from == k->step)
                emit(k, record, (struct maq_ins){.op = MAQ_INS_FAIL});
    }
}

/* The stream that computes most. */
static uint32_t main_stream(const struct maq_rank_class *c, struct maq_arena *arena)
{
    uint64_t *sum = MAQ_ARENA_NEW(arena, uint64_t, c->n_streams + 1);
    uint32_t best = 0;
    for (uint32_t i = 0; sum && i < c->n_records; i++)
        if (c->record[i].kind == MAQ_REC_LAUNCH && c->record[i].ns < (uint64_t)9e15)
            sum[c->record[i].stream] += c->record[i].ns + 1;
    for (uint32_t s = 1; sum && s < c->n_streams; s++)
        best = sum[s] > sum[best] ? s : best;
    return best;
}

enum maq_status maq_replay_program_make(struct maq_replay_program *out, const struct maq_replay_program_of *of,
                                        struct maq_price_rows *rows, struct maq_arena *arena)
{
    const struct maq_rank_class *c = of->c;
    struct compiler k = {.of = of, .arena = arena, .rows = rows};
    size_t room = 2 * (size_t)c->n_records + of->n_steps + of->n_edits + 2; /* a record is two at most */
    k.ins = MAQ_ARENA_NEW(arena, struct maq_ins, room);
    k.record_of = MAQ_ARENA_NEW(arena, uint32_t, room);
    if (!k.ins || !k.record_of || !find_uses(&k))
        return MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < of->n_edits; i++)
        if (of->edit[i].kind == MAQ_EDIT_FAIL && of->edit[i].at_ns < 0 && of->edit[i].from == 0)
            emit(&k, 0, (struct maq_ins){.op = MAQ_INS_FAIL});
    for (uint32_t i = 0; i < c->n_records && !k.failed; i++) {
        uint32_t host_ns;
        begin_steps(&k, i);
        if (is_communication(&c->record[i])) {
            i = group(&k, i);
            continue;
        }
        uint64_t ns = own_ns(&k, i, &host_ns);
        one_record(&k, i, host_ns, ns);
    }
    begin_steps(&k, UINT32_MAX);
    emit(&k, c->n_records > 0 ? c->n_records - 1 : 0, (struct maq_ins){.op = MAQ_INS_END});
    *out = (struct maq_replay_program){.n_ins = k.n,
                                       .n_registers = k.n_registers,
                                       .n_channels = k.n_channels,
                                       .n_streams = c->n_streams,
                                       .n_comms = c->n_comms,
                                       .main_stream = main_stream(c, arena),
                                       .ins = k.ins,
                                       .record_of = k.record_of,
                                       .channel = k.channel,
                                       .n_records = c->n_records,
                                       .most_in_group = k.most_in_group};
    return k.failed ? MAQ_NO_MEMORY : MAQ_OK;
}
