/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_summary.c - adds up a rank's trace with its virtual clocks: see trace_summary.h.
 *
 * The program's virtual time is that of a rank whose peers are never late: the host's clock and one per stream and event,
 *
 *     host += host_ns     start = max(stream, host)     stream = start + ns     a wait: the later of both clocks
 */
#include "launch/trace_summary.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/check.h"
#include "capture/trace/rank_trace.h"
#include "launch/codes.h"

#define IDS_MAX (1u << 24)

/* ---- tables by dense ids ---- */

struct table {
    void *at;
    size_t item, n;
};

/* The id's row, zeroed at first; NULL when out of memory or beyond reason. */
static void *row(struct table *t, uint32_t id)
{
    if (id >= t->n) {
        size_t n = t->n ? t->n : 64;
        while (n <= id && n < IDS_MAX)
            n *= 2;
        void *grown = id < n ? maq__realloc(t->at, n * t->item) : NULL;
        if (!grown)
            return NULL;
        memset((char *)grown + t->n * t->item, 0, (n - t->n) * t->item);
        t->at = grown;
        t->n = n;
    }
    return (char *)t->at + id * t->item;
}

/* ---- the sum ---- */

struct op_row {
    struct maq_asked *asked;
};
struct comm_row {
    struct maq_rec_comm comm;
    uint32_t *members;
};

struct sum {
    struct maq_launch_rank *out;
    struct maq_price_server *asks;
    struct maq_arena arena; /* members of communicators */
    struct table ops, comms, streams, events, allocs;
    struct table in_group; /* by stream: number of the last group that had a part on it */
    uint64_t groups;
    uint64_t host, last;                       /* clocks */
    uint64_t group_at, group_end, group_colls; /* of a kernel of several parts */
    bool grouped;
    uint64_t memory;
    bool has_end, failed;
};

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void define_op(struct sum *s, const struct maq_rec *rec, const void *payload)
{
    struct op_row *r = row(&s->ops, rec->id);
    struct maq_ask ask;
    memset(&ask, 0, sizeof ask);
    ask.kind = MAQ_ASK_OP;
    s->failed = s->failed || !r;
    if (!r || rec->bytes < sizeof ask.op)
        return;
    memcpy(&ask.op, payload, sizeof ask.op);
    if (ask.op.name_bytes != rec->bytes - sizeof ask.op)
        return;
    s->out->operators++;
    r->asked =
        maq_price_server_answer(s->asks, &ask, s->out->rank, (const char *)payload + sizeof ask.op, ask.op.name_bytes);
}

static void define_comm(struct sum *s, const struct maq_rec *rec, const void *payload)
{
    struct comm_row *r = row(&s->comms, rec->id);
    s->failed = s->failed || !r;
    if (!r || rec->bytes < sizeof r->comm)
        return;
    memcpy(&r->comm, payload, sizeof r->comm);
    r->members = MAQ_ARENA_NEW(&s->arena, uint32_t, r->comm.n_members);
    s->failed = s->failed || !r->members;
    if (r->members)
        memcpy(r->members, (const char *)payload + sizeof r->comm, r->comm.n_members * sizeof(uint32_t));
    s->out->communicators++;
}

static void book(struct sum *s, struct maq_asked *a, uint64_t ns)
{
    if (a)
        a->launches++;
    if (a && a->modelled)
        s->out->modelled_ns += ns;
    else
        s->out->by_provider_ns[a ? a->provider : MAQ_PROVIDER_NONE] += ns;
    s->out->device_ns += ns;
}

static struct maq_asked *collective_row(struct sum *s, const struct maq_rec *rec)
{
    uint32_t id = MAQ_REC_COLL_COMM(rec->id);
    const struct comm_row *c = id < s->comms.n ? row(&s->comms, id) : NULL;
    struct maq_ask ask;
    memset(&ask, 0, sizeof ask);
    ask.kind = MAQ_ASK_COLL;
    ask.coll = MAQ_REC_COLL_KIND(rec->id);
    ask.bytes = rec->bytes;
    if (!c || !c->members || ask.coll >= MAQ_REC_COLL_COUNT || c->comm.size == 0)
        return NULL;
    ask.comm = c->comm;
    return maq_price_server_answer(s->asks, &ask, s->out->rank, c->members, c->comm.n_members * sizeof(uint32_t));
}

/* Work on a stream, of which the parts of a group are one. */
static void run(struct sum *s, const struct maq_rec *rec)
{
    uint64_t *stream = row(&s->streams, rec->stream), *group = row(&s->in_group, rec->stream);
    bool collective = rec->kind == MAQ_REC_COLL;
    if (!stream || !group) {
        s->failed = true;
        return;
    }
    if (!s->grouped) {
        s->group_at = 0;
        s->group_colls = 0;
        s->group_end = 0;
        s->groups++;
    }
    /* a stream that this group moved is no later for that */
    s->group_at = later(s->group_at, *group == s->groups ? s->host : later(*stream, s->host));
    *group = s->groups;
    s->group_colls += collective ? rec->ns : 0;
    s->group_end = later(s->group_end, s->group_at + (collective ? s->group_colls : rec->ns));
    s->grouped = (rec->flags & MAQ_REC_MORE) != 0;
    *stream = s->group_end;
    if (rec->flags & MAQ_REC_WAITS)
        s->host = later(s->host, *stream);
    s->last = later(s->last, *stream);
}

static void wait_or_mark(struct sum *s, const struct maq_rec *rec)
{
    uint64_t *stream = row(&s->streams, rec->stream), *event = NULL;
    if (rec->kind != MAQ_REC_STREAM_SYNC)
        event = row(&s->events, rec->id);
    if (!stream || (!event && rec->kind != MAQ_REC_STREAM_SYNC)) {
        s->failed = true;
        return;
    }
    if (rec->kind == MAQ_REC_EVENT_RECORD)
        *event = later(*stream, s->host);
    else if (rec->kind == MAQ_REC_STREAM_WAIT)
        *stream = later(*stream, *event);
    else if (rec->kind == MAQ_REC_EVENT_SYNC)
        s->host = later(s->host, *event);
    else
        s->host = later(s->host, *stream);
}

static void take_memory(struct sum *s, const struct maq_rec *rec)
{
    uint64_t *bytes = row(&s->allocs, rec->id);
    if (rec->flags & MAQ_REC_FAILED)
        s->out->out_of_memory = true;
    if (!bytes || !maq_rec_on_device(rec->arg) || (rec->flags & MAQ_REC_FAILED))
        return;
    if (rec->kind == MAQ_REC_ALLOC) {
        *bytes = rec->bytes;
        s->memory += rec->bytes;
        s->out->peak_bytes = later(s->out->peak_bytes, s->memory);
    } else {
        s->memory -= *bytes;
        *bytes = 0;
    }
}

static void add(struct sum *s, const struct maq_rec *rec, const void *payload)
{
    struct maq_launch_rank *out = s->out;
    out->calls += rec->kind != MAQ_REC_DEF_OP && rec->kind != MAQ_REC_DEF_COMM && rec->kind != MAQ_REC_DEF_TEXT;
    s->host += rec->host_ns;
    switch ((enum maq_rec_kind)rec->kind) {
    case MAQ_REC_END:
        s->has_end = true;
        out->peak_bytes = rec->bytes;
        break;
    case MAQ_REC_DEF_OP:
        define_op(s, rec, payload);
        break;
    case MAQ_REC_DEF_COMM:
        define_comm(s, rec, payload);
        break;
    case MAQ_REC_HOST:
        s->host += rec->ns;
        break;
    case MAQ_REC_LAUNCH:
        out->launches++;
        book(s, rec->id < s->ops.n ? ((struct op_row *)row(&s->ops, rec->id))->asked : NULL, rec->ns);
        run(s, rec);
        break;
    case MAQ_REC_COLL:
        out->collectives++;
        book(s, collective_row(s, rec), rec->ns);
        run(s, rec);
        break;
    case MAQ_REC_SEND:
    case MAQ_REC_RECV:
        out->messages++;
        book(s, NULL, rec->ns);
        run(s, rec);
        break;
    case MAQ_REC_COPY:
    case MAQ_REC_SET:
    case MAQ_REC_HOST_CALL:
        book(s, NULL, rec->ns);
        run(s, rec);
        break;
    case MAQ_REC_EVENT_RECORD:
    case MAQ_REC_STREAM_WAIT:
    case MAQ_REC_EVENT_SYNC:
    case MAQ_REC_STREAM_SYNC:
        wait_or_mark(s, rec);
        break;
    case MAQ_REC_DEVICE_SYNC:
        s->host = later(s->host, s->last);
        break;
    case MAQ_REC_ALLOC:
    case MAQ_REC_FREE:
        take_memory(s, rec);
        break;
    case MAQ_REC_BOOT:
        out->exchanges++;
        break;
    case MAQ_REC_DEF_TEXT:
    case MAQ_REC_READ:
    case MAQ_REC_MARK:
    case MAQ_REC_KIND_COUNT:
        break;
    }
}

static enum maq_status add_all(struct sum *s, struct maq_trace_reader *reader, struct maq_diag *diag)
{
    struct maq_rec rec;
    const void *payload;
    bool more = true;
    for (;;) {
        MAQ_TRY(maq_trace_next(reader, &more, &rec, &payload, diag));
        if (!more || s->failed)
            return MAQ_OK;
        add(s, &rec, payload);
    }
}

enum maq_status maq_rank_trace_sum(struct maq_launch_rank *out, const char *path, struct maq_price_server *asks,
                                   struct maq_diag *diag)
{
    struct maq_trace_reader reader;
    struct sum s = {.out = out,
                    .asks = asks,
                    .ops.item = sizeof(struct op_row),
                    .comms.item = sizeof(struct comm_row),
                    .streams.item = sizeof(uint64_t),
                    .events.item = sizeof(uint64_t),
                    .in_group.item = sizeof(uint64_t),
                    .allocs.item = sizeof(uint64_t)};
    struct stat there;
    if (stat(path, &there) != 0 || there.st_size == 0)
        return MAQ_OK; /* it used no device, or was killed before its first records were written */
    MAQ_TRY(maq_trace_open_rank(&reader, path, diag));
    maq_arena_init(&s.arena, 0);
    enum maq_status status = add_all(&s, &reader, diag);
    out->records = true;
    out->trace_bytes = reader.size;
    out->virtual_ns = later(s.host, s.last);
    out->ended = s.has_end;
    maq_trace_close_rank(&reader);
    maq_arena_fini(&s.arena);
    struct table *tables[] = {&s.ops, &s.comms, &s.streams, &s.events, &s.allocs, &s.in_group};
    for (size_t i = 0; i < MAQ_COUNT(tables); i++)
        free(tables[i]->at);
    if (status == MAQ_OK && (s.failed || asks->failed))
        status = maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_LAUNCH_LIMIT, (struct maq_span){0}, NULL,
                               "the trace of rank %u is larger than can be held", out->rank);
    return status;
}
