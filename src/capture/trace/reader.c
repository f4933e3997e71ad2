/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader.c - reads the trace of a rank record by record and validates each: kind, ids in order of first use, sizes,
 * payload inside the file. The file is not trusted. See rank_trace.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/codes.h"
#include "capture/codes.h"
#include "capture/trace/rank_trace.h"
#include "spec/cannot_read.h"

/* A name or a list of members beyond this is not one. */
#define PAYLOAD_MOST (256u << 20)

bool maq_rec_has_payload(unsigned kind)
{
    return kind == MAQ_REC_DEF_OP || kind == MAQ_REC_DEF_COMM || kind == MAQ_REC_DEF_TEXT || kind == MAQ_REC_READ ||
           kind == MAQ_REC_BOOT;
}

static enum maq_status damaged(const struct maq_trace_reader *r, const char *what, struct maq_diag *diag)
{
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_CAPTURE_FORM, (struct maq_span){0}, NULL,
                         "%s: at byte %" PRIu64 ": %s", r->path, r->at, what);
}

static enum maq_status open_file(struct maq_trace_reader *r, struct maq_diag *diag)
{
    long size;
    r->file = fopen(r->path, "rb");
    if (!r->file || fseek(r->file, 0, SEEK_END) != 0 || (size = ftell(r->file)) < 0 || fseek(r->file, 0, SEEK_SET) != 0)
        return maq_cannot_read(diag, r->path, "a trace: `maquette run --trace FILE` writes one", errno);
    r->size = (uint64_t)size;
    return MAQ_OK;
}

static enum maq_status read_head(struct maq_trace_reader *r, struct maq_diag *diag)
{
    struct maq_rec_head *h = &r->head;
    if (r->size < sizeof *h || fread(h, sizeof *h, 1, r->file) != 1 || memcmp(h->magic, MAQ_REC_MAGIC, 8) != 0)
        return damaged(r, "not the trace of a rank", diag);
    if (h->version != MAQ_REC_VERSION || h->head_bytes != sizeof *h)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_CAPTURE_FORM, (struct maq_span){0},
                             "run the program again under this maquette",
                             "%s: a trace of version %u, this maquette reads %d", r->path, h->version, MAQ_REC_VERSION);
    if (h->world == 0 || h->rank >= h->world || h->world > (1u << 24))
        return damaged(r, "a rank outside of its job", diag);
    r->at = sizeof *h;
    return MAQ_OK;
}

enum maq_status maq_trace_open_rank(struct maq_trace_reader *r, const char *path, struct maq_diag *diag)
{
    *r = (struct maq_trace_reader){.path = path};
    enum maq_status status = open_file(r, diag);
    if (status == MAQ_OK)
        status = read_head(r, diag);
    if (status != MAQ_OK)
        maq_trace_close_rank(r);
    return status;
}

void maq_trace_close_rank(struct maq_trace_reader *r)
{
    if (r->file)
        (void)fclose(r->file);
    free(r->comm_size);
    free(r->payload);
    *r = (struct maq_trace_reader){0};
}

/* An id in the order of first use: one that was, or the next. */
static bool counts(uint32_t *n, uint32_t id)
{
    if (id > *n || id == UINT32_MAX)
        return false;
    *n += id == *n;
    return true;
}

static const char *fault_of_comm(struct maq_trace_reader *r, const struct maq_rec *rec)
{
    uint32_t comm = MAQ_REC_COLL_COMM(rec->id);
    if (comm >= r->n_comms)
        return "a communicator that was not defined";
    if (rec->kind == MAQ_REC_COLL)
        return MAQ_REC_COLL_KIND(rec->id) >= MAQ_REC_COLL_COUNT             ? "an unknown collective"
               : rec->arg != MAQ_REC_NONE && rec->arg >= r->comm_size[comm] ? "a root outside of its communicator"
                                                                            : NULL;
    return rec->arg >= r->comm_size[comm] ? "a peer outside of its communicator" : NULL;
}

static bool on_stream(struct maq_trace_reader *r, const struct maq_rec *rec)
{
    uint32_t n = r->n_streams;
    if (rec->stream == MAQ_REC_HOST_STREAM)
        return true;
    if (!counts(&n, rec->stream))
        return false;
    r->n_streams = n;
    return true;
}

/* What is wrong with a record; NULL when nothing is. Counts what it uses for the first time. */
static const char *fault_of(struct maq_trace_reader *r, const struct maq_rec *rec)
{
    bool streams = true;
    switch (rec->kind) {
    case MAQ_REC_DEF_OP:
        return rec->id != r->n_ops++ ? "an operator out of order" : NULL;
    case MAQ_REC_DEF_TEXT:
        return rec->id != r->n_texts++ ? "a text out of order" : NULL;
    case MAQ_REC_DEF_COMM:
        return rec->id != r->n_comms || rec->id > UINT16_MAX ? "a communicator out of order" : NULL;
    case MAQ_REC_LAUNCH:
        streams = on_stream(r, rec) && rec->stream != MAQ_REC_HOST_STREAM;
        return rec->id >= r->n_ops ? "an operator that was not defined" : streams ? NULL : "a stream out of order";
    case MAQ_REC_COLL:
    case MAQ_REC_SEND:
    case MAQ_REC_RECV:
        streams = on_stream(r, rec) && rec->stream != MAQ_REC_HOST_STREAM;
        return streams ? fault_of_comm(r, rec) : "a stream out of order";
    case MAQ_REC_EVENT_RECORD:
    case MAQ_REC_STREAM_WAIT:
        streams = on_stream(r, rec) && rec->stream != MAQ_REC_HOST_STREAM;
        return !streams ? "a stream out of order" : counts(&r->n_events, rec->id) ? NULL : "an event out of order";
    case MAQ_REC_EVENT_SYNC:
        return counts(&r->n_events, rec->id) ? NULL : "an event out of order";
    case MAQ_REC_COPY:
        return rec->id > MAQ_REC_P2P ? "an unknown copy" : on_stream(r, rec) ? NULL : "a stream out of order";
    case MAQ_REC_ALLOC:
        return counts(&r->n_allocs, rec->id) || rec->flags & MAQ_REC_FAILED ? NULL : "an allocation out of order";
    case MAQ_REC_FREE:
        return rec->id < r->n_allocs ? NULL : "an allocation that was not made";
    case MAQ_REC_SET:
    case MAQ_REC_STREAM_SYNC:
    case MAQ_REC_HOST_CALL:
        return on_stream(r, rec) ? NULL : "a stream out of order";
    case MAQ_REC_MARK:
        return rec->id < r->n_texts || rec->id == MAQ_REC_NONE ? NULL : "a text that was not defined";
    default:
        return rec->kind < MAQ_REC_KIND_COUNT ? NULL : "an unknown kind of record";
    }
}

static const char *fault_of_payload(struct maq_trace_reader *r, const struct maq_rec *rec)
{
    if (rec->kind == MAQ_REC_DEF_OP) {
        struct maq_rec_op op;
        if (rec->bytes < sizeof op)
            return "an operator that is too short";
        memcpy(&op, r->payload, sizeof op);
        return op.name_bytes != rec->bytes - sizeof op ? "an operator with a name of another length" : NULL;
    }
    if (rec->kind != MAQ_REC_DEF_COMM)
        return NULL;
    struct maq_rec_comm c;
    if (rec->bytes < sizeof c)
        return "a communicator that is too short";
    memcpy(&c, r->payload, sizeof c);
    if (c.size > r->head.world)
        return "a communicator of more ranks than the job has, as of a process with several devices: a rank has one";
    if (c.size == 0 || c.rank >= c.size || (c.n_members != 0 && c.n_members != c.size) ||
        rec->bytes != sizeof c + 4 * (uint64_t)c.n_members)
        return "a communicator that cannot be";
    for (uint32_t i = 0; i < c.n_members; i++) {
        uint32_t member;
        memcpy(&member, r->payload + sizeof c + 4 * (size_t)i, 4);
        if (member >= r->head.world)
            return "a member outside of the job";
    }
    if (r->n_comms == r->comm_room) {
        uint32_t room = r->comm_room ? 2 * r->comm_room : 16;
        uint32_t *grown = realloc(r->comm_size, room * sizeof *grown);
        if (!grown)
            return "out of memory";
        r->comm_size = grown;
        r->comm_room = room;
    }
    r->comm_size[r->n_comms++] = c.size;
    return NULL;
}

static enum maq_status read_payload(struct maq_trace_reader *r, const struct maq_rec *rec, bool wanted,
                                    struct maq_diag *diag)
{
    uint64_t padded = maq_rec_padded(rec->bytes);
    if (!wanted)
        return fseek(r->file, (long)padded, SEEK_CUR) == 0 ? MAQ_OK : damaged(r, "cannot be read", diag);
    if (rec->bytes > PAYLOAD_MOST)
        return damaged(r, "a definition of more than 256 MiB", diag);
    if (padded > r->payload_room) {
        unsigned char *grown = realloc(r->payload, padded);
        if (!grown)
            return maq_no_memory(diag, NULL);
        r->payload = grown;
        r->payload_room = padded;
    }
    if (padded > 0 && fread(r->payload, 1, padded, r->file) != padded)
        return damaged(r, "cannot be read", diag);
    return MAQ_OK;
}

static enum maq_status stop_here(struct maq_trace_reader *r, bool *more, struct maq_diag *diag)
{
    if (!r->ended) {
        r->truncated = true;
        maq_diag_add(diag, MAQ_WARNING, MAQ_CODE_CAPTURE_TRUNCATED, (struct maq_span){0}, NULL,
                     "%s: ends at byte %" PRIu64 " without the program's end; what is before counts", r->path, r->at);
    }
    *more = false;
    return MAQ_OK;
}

enum maq_status maq_trace_next(struct maq_trace_reader *r, bool *more, struct maq_rec *rec, const void **payload,
                               struct maq_diag *diag)
{
    *more = true;
    if (payload)
        *payload = NULL;
    if (r->ended || r->size - r->at < sizeof *rec)
        return stop_here(r, more, diag);
    if (fread(rec, sizeof *rec, 1, r->file) != 1)
        return damaged(r, "cannot be read", diag);
    bool has = maq_rec_has_payload(rec->kind), defines = rec->kind >= MAQ_REC_DEF_OP && rec->kind <= MAQ_REC_DEF_TEXT;
    if (has && (rec->bytes > r->size || maq_rec_padded(rec->bytes) > r->size - r->at - sizeof *rec))
        return stop_here(r, more, diag);
    const char *fault = fault_of(r, rec);
    if (fault)
        return damaged(r, fault, diag);
    if (has) {
        r->payload_at = r->at + sizeof *rec;
        MAQ_TRY(read_payload(r, rec, payload || defines, diag));
        fault = defines ? fault_of_payload(r, rec) : NULL;
        if (fault)
            return damaged(r, fault, diag);
        if (payload)
            *payload = r->payload ? (const void *)r->payload : "";
    }
    r->at += sizeof *rec + (has ? maq_rec_padded(rec->bytes) : 0);
    if (rec->kind == MAQ_REC_END) {
        r->ended = true;
        if (r->at != r->size)
            return damaged(r, "records after the program's end", diag);
    }
    return MAQ_OK;
}
