/*
 * session_trace.c - what a rank did, in sum: see session_trace.h.
 *
 * The program's virtual time is that of a rank whose peers are never late: the host's clock and one per stream and event,
 *
 *     host += host_ns     start = max(stream, host)     stream = start + ns     a wait: the later of both clocks
 */
#include "emulate/session_trace.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "emulate/session_codes.h"

#define IDS_MAX (1u << 24)

/* ---- reading ---- */

bool maq_rank_trace_open(struct maq_rank_trace *t, const char *path)
{
    struct stat info;
    *t = (struct maq_rank_trace){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size >= (off_t)sizeof t->head) {
        void *map = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        t->map = map != MAP_FAILED ? map : NULL;
        t->bytes = (uint64_t)info.st_size;
    }
    close(fd);
    if (!t->map)
        return false;
    memcpy(&t->head, t->map, sizeof t->head);
    t->at = t->head.head_bytes;
    if (memcmp(t->head.magic, MAQ_REC_MAGIC, sizeof t->head.magic) == 0 && t->head.version == MAQ_REC_VERSION &&
        t->at >= sizeof t->head && t->at <= t->bytes)
        return true;
    maq_rank_trace_close(t);
    return false;
}

void maq_rank_trace_close(struct maq_rank_trace *t)
{
    if (t->map)
        munmap((void *)(uintptr_t)t->map, t->bytes);
    *t = (struct maq_rank_trace){0};
}

static bool has_payload(const struct maq_rec *rec)
{
    return rec->kind == MAQ_REC_DEF_OP || rec->kind == MAQ_REC_DEF_COMM || rec->kind == MAQ_REC_DEF_TEXT ||
           rec->kind == MAQ_REC_READ || rec->kind == MAQ_REC_BOOT;
}

bool maq_rank_trace_next(struct maq_rank_trace *t, struct maq_rec *rec, const unsigned char **payload)
{
    *payload = NULL;
    if (!t->map || t->bytes - t->at < sizeof *rec) {
        t->torn = t->torn || (t->map && t->at != t->bytes);
        return false;
    }
    memcpy(rec, t->map + t->at, sizeof *rec);
    uint64_t next = t->at + sizeof *rec;
    if (rec->kind >= MAQ_REC_KIND_COUNT) {
        t->torn = true;
        return false;
    }
    if (has_payload(rec)) {
        uint64_t left = t->bytes - next;
        if (rec->bytes > left || maq_rec_padded(rec->bytes) > left) {
            t->torn = true;
            return false;
        }
        *payload = t->map + next;
        next += maq_rec_padded(rec->bytes);
    }
    t->at = next;
    return true;
}

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
    const unsigned char *members;
};

struct sum {
    struct maq_session_rank *out;
    struct maq_ask_service *asks;
    struct table ops, comms, streams, events, allocs;
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

static void define_op(struct sum *s, const struct maq_rec *rec, const unsigned char *payload)
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
    r->asked = maq_ask_answer(s->asks, &ask, s->out->rank, payload + sizeof ask.op, ask.op.name_bytes);
}

static void define_comm(struct sum *s, const struct maq_rec *rec, const unsigned char *payload)
{
    struct comm_row *r = row(&s->comms, rec->id);
    s->failed = s->failed || !r;
    if (!r || rec->bytes < sizeof r->comm)
        return;
    memcpy(&r->comm, payload, sizeof r->comm);
    if (rec->bytes - sizeof r->comm == (uint64_t)r->comm.n_members * sizeof(uint32_t))
        r->members = payload + sizeof r->comm;
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
    return maq_ask_answer(s->asks, &ask, s->out->rank, c->members, c->comm.n_members * sizeof(uint32_t));
}

/* Work on a stream, of which the parts of a group are one. */
static void run(struct sum *s, const struct maq_rec *rec)
{
    uint64_t *stream = row(&s->streams, rec->stream);
    bool collective = rec->kind == MAQ_REC_COLL;
    if (!stream) {
        s->failed = true;
        return;
    }
    if (!s->grouped) {
        s->group_at = 0;
        s->group_colls = 0;
        s->group_end = 0;
    }
    s->group_at = later(s->group_at, later(*stream, s->host));
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
    if (!bytes || rec->arg == MAQ_REC_PINNED || (rec->flags & MAQ_REC_FAILED))
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

static void add(struct sum *s, const struct maq_rec *rec, const unsigned char *payload)
{
    struct maq_session_rank *out = s->out;
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

enum maq_status maq_rank_trace_sum(struct maq_session_rank *out, const char *path, struct maq_ask_service *asks,
                                   struct maq_diag *diag)
{
    struct maq_rank_trace trace;
    struct sum s = {.out = out,
                    .asks = asks,
                    .ops.item = sizeof(struct op_row),
                    .comms.item = sizeof(struct comm_row),
                    .streams.item = sizeof(uint64_t),
                    .events.item = sizeof(uint64_t),
                    .allocs.item = sizeof(uint64_t)};
    struct maq_rec rec;
    const unsigned char *payload;
    if (!maq_rank_trace_open(&trace, path))
        return MAQ_OK; /* it used no device */
    out->records = true;
    out->trace_bytes = trace.bytes;
    while (!s.failed && maq_rank_trace_next(&trace, &rec, &payload))
        add(&s, &rec, payload);
    out->virtual_ns = later(s.host, s.last);
    out->ended = s.has_end;
    if (trace.torn)
        maq_diag_add(
            diag, MAQ_WARNING, MAQ_CODE_SESSION_TRACE, (struct maq_span){0}, "it was killed, or its disk is full",
            "the trace of rank %u ends inside a record, after %llu calls", out->rank, (unsigned long long)out->calls);
    maq_rank_trace_close(&trace);
    struct table *tables[] = {&s.ops, &s.comms, &s.streams, &s.events, &s.allocs};
    for (size_t i = 0; i < MAQ_COUNT(tables); i++)
        free(tables[i]->at);
    return s.failed || asks->failed ? maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_SESSION_TRACE, (struct maq_span){0},
                                                    NULL, "the trace of rank %u is larger than can be held", out->rank)
                                    : MAQ_OK;
}
