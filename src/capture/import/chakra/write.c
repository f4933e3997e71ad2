/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write.c - maq_capture_write_chakra(): a rank of a captured job as a Chakra execution trace, node by node in program
 * order, with the mapping of chakra.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/codes.h"
#include "base/text.h"
#include "capture/import/chakra/chakra.h"
#include "capture/import/codes.h"
#include "maquette/capture_graph.h"

#define VERSION "1.1.0" /* of the schema */
#define MAX_MESSAGE ((size_t)16 << 20)

static const struct maq_span nowhere;

/* What comes before the next node of a stream. */
struct deps {
    uint32_t n;
    uint64_t id[8];
};

struct writer {
    const struct maq_capture *c;
    const struct maq_rank_class *k;
    uint32_t index; /* of the rank in its class */
    FILE *file;
    struct maq_buf message, part, list, bytes;
    uint64_t n, host, host_ns; /* nodes so far; the host's last; host time not written yet */
    struct deps *stream;       /* [n_streams] */
    struct deps *event;        /* [n_events] */
    int64_t now_ns;            /* sum of host time: start of a node, as far as it is known before a replay */
};

/* --- messages ----------------------------------------------------------------------------------------------------------- */

static void clear(struct maq_buf *b)
{
    b->len = 0;
}

static void put_attr_value(struct writer *w, struct maq_buf *to, uint32_t field)
{
    maq_pb_message(to, field, &w->part);
    clear(&w->part);
}

static void attr_int(struct writer *w, const char *name, int64_t v)
{
    maq_pb_bytes(&w->part, MAQ_CHAKRA_ATTR_NAME, name, strlen(name));
    maq_pb_int(&w->part, MAQ_CHAKRA_ATTR_INT64, v);
    put_attr_value(w, &w->message, MAQ_CHAKRA_NODE_ATTR);
}

static void attr_bool(struct writer *w, const char *name, bool v)
{
    maq_pb_bytes(&w->part, MAQ_CHAKRA_ATTR_NAME, name, strlen(name));
    maq_pb_uint(&w->part, MAQ_CHAKRA_ATTR_BOOL, v);
    put_attr_value(w, &w->message, MAQ_CHAKRA_NODE_ATTR);
}

static void attr_text(struct writer *w, uint32_t field, const char *name, const char *v)
{
    maq_pb_bytes(&w->part, MAQ_CHAKRA_ATTR_NAME, name, strlen(name));
    maq_pb_bytes(&w->part, MAQ_CHAKRA_ATTR_STRING, v, strlen(v));
    put_attr_value(w, &w->message, field);
}

/* The varints in `bytes` as a list: a message with one packed field. */
static void put_list(struct writer *w, uint32_t field)
{
    clear(&w->list);
    maq_pb_bytes(&w->list, 1, w->bytes.ptr, w->bytes.len);
    maq_pb_message(&w->part, field, &w->list);
}

static void attr_list(struct writer *w, const char *name, const int64_t *v, uint32_t n)
{
    clear(&w->bytes);
    for (uint32_t i = 0; i < n; i++)
        maq_pb_varint(&w->bytes, (uint64_t)v[i]);
    maq_pb_bytes(&w->part, MAQ_CHAKRA_ATTR_NAME, name, strlen(name));
    put_list(w, MAQ_CHAKRA_ATTR_INT64_LIST);
    put_attr_value(w, &w->message, MAQ_CHAKRA_NODE_ATTR);
}

static void flush(struct writer *w)
{
    clear(&w->bytes);
    maq_pb_varint(&w->bytes, w->message.len);
    if (w->bytes.ptr)
        (void)fwrite(w->bytes.ptr, 1, w->bytes.len, w->file);
    if (w->message.ptr)
        (void)fwrite(w->message.ptr, 1, w->message.len, w->file);
    clear(&w->message);
}

/* --- nodes ---------------------------------------------------------------------------------------------------------------- */

/* Begins a node; its attributes follow, then flush(). */
static uint64_t begin(struct writer *w, enum maq_chakra_type type, const char *name, int64_t ns, uint64_t ctrl,
                      const struct deps *data)
{
    struct maq_buf *m = &w->message;
    maq_pb_uint(m, MAQ_CHAKRA_NODE_ID, ++w->n);
    maq_pb_bytes(m, MAQ_CHAKRA_NODE_NAME, name, strlen(name));
    maq_pb_uint(m, MAQ_CHAKRA_NODE_TYPE, type);
    if (ctrl > 0)
        maq_pb_uint(m, MAQ_CHAKRA_NODE_CTRL, ctrl);
    for (uint32_t i = 0; data && i < data->n; i++)
        maq_pb_uint(m, MAQ_CHAKRA_NODE_DATA, data->id[i]);
    maq_pb_uint(m, MAQ_CHAKRA_NODE_START, (uint64_t)w->now_ns / 1000);
    maq_pb_uint(m, MAQ_CHAKRA_NODE_DURATION, ((uint64_t)ns + 500) / 1000);
    attr_int(w, "duration_ns", ns);
    return w->n;
}

static void put_host(struct writer *w, const char *name, int64_t ns, const struct deps *waits, int64_t mark)
{
    uint64_t id = begin(w, MAQ_CHAKRA_COMP, name, ns, w->host, waits);
    attr_bool(w, "is_cpu_op", true);
    if (mark >= 0)
        attr_int(w, "mark", mark);
    flush(w);
    w->host = id;
    w->now_ns += ns;
}

/* One more; when there are too many to name, a point on the stream behind those there are (on the host for stream NONE). */
static void add_dep(struct writer *w, uint16_t stream, struct deps *d, uint64_t id)
{
    for (uint32_t i = 0; i < d->n; i++)
        if (d->id[i] == id)
            return;
    if (d->n == MAQ_COUNT(d->id)) {
        if (stream == MAQ_REC_HOST_STREAM)
            put_host(w, "sync", 0, d, -1);
        else {
            uint64_t join = begin(w, MAQ_CHAKRA_COMP, "join", 0, w->host, d);
            attr_bool(w, "is_cpu_op", false);
            attr_int(w, "stream", stream);
            attr_int(w, "record", MAQ_REC_HOST_CALL);
            flush(w);
            d->id[0] = join;
        }
        d->n = stream != MAQ_REC_HOST_STREAM;
    }
    d->id[d->n++] = id;
}

static void host_now(struct writer *w)
{
    if (w->host_ns > 0)
        put_host(w, "host", (int64_t)w->host_ns, NULL, -1);
    w->host_ns = 0;
}

/* The node stands alone in front of what comes next on its stream. */
static void behind(struct writer *w, uint16_t stream, uint64_t id)
{
    w->stream[stream] = (struct deps){1, {id}};
}

static int64_t flop(const struct maq_rec_op *op)
{
    const int64_t *d = op->d;
    if (op->kind == MAQ_REC_GEMM)
        return (int64_t)(2.0 * (double)d[0] * (double)d[1] * (double)d[2] * (double)(d[3] > 0 ? d[3] : 1));
    if (op->kind == MAQ_REC_ATTENTION || op->kind == MAQ_REC_ATTENTION_BWD)
        return (int64_t)((op->kind == MAQ_REC_ATTENTION ? 4.0 : 10.0) * (double)d[0] * (double)d[1] * (double)d[3] *
                         (double)d[4] * (double)d[5]);
    return op->kind == MAQ_REC_CONV ? d[0] : 0;
}

static void put_op(struct writer *w, const struct maq_captured_op *op, const struct maq_rec *r)
{
    const struct maq_rec_op *o = op->what;
    int64_t grid[3] = {o->grid[0], o->grid[1], o->grid[2]}, block[3] = {o->block[0], o->block[1], o->block[2]};
    int64_t type[3] = {o->type, o->out, (int64_t)o->flags};
    attr_int(w, "num_ops", flop(o));
    attr_int(w, "tensor_size", (int64_t)(r->bytes > 0 ? r->bytes : o->bytes));
    attr_int(w, "op_kind", o->kind);
    attr_list(w, "op_type", type, 3);
    attr_list(w, "op_d", o->d, 6);
    attr_list(w, "op_grid", grid, 3);
    attr_list(w, "op_block", block, 3);
    attr_int(w, "op_bytes", (int64_t)o->bytes);
    attr_int(w, "op_shared", (int64_t)o->shared);
}

static void put_work(struct writer *w, const struct maq_rec *r)
{
    static const char *const copies[] = {"Memcpy HtoH", "Memcpy HtoD", "Memcpy DtoH", "Memcpy DtoD", "Memcpy PtoP"};
    const char *name = r->kind == MAQ_REC_LAUNCH ? w->c->op[r->id].name
                       : r->kind == MAQ_REC_COPY ? copies[r->id < MAQ_COUNT(copies) ? r->id : 3]
                       : r->kind == MAQ_REC_SET  ? "Memset (Device)"
                                                 : "host function";
    host_now(w);
    uint64_t id = begin(w, MAQ_CHAKRA_COMP, name, (int64_t)r->ns, w->host, &w->stream[r->stream]);
    attr_bool(w, "is_cpu_op", false);
    attr_int(w, "stream", r->stream);
    attr_int(w, "record", r->kind);
    if (r->kind == MAQ_REC_LAUNCH)
        put_op(w, &w->c->op[r->id], r);
    else {
        attr_int(w, "tensor_size", (int64_t)r->bytes);
        attr_int(w, "copy", (int64_t)r->id);
    }
    flush(w);
    behind(w, r->stream, id);
    if (r->flags & MAQ_REC_WAITS) {
        struct deps d = {1, {id}};
        put_host(w, "sync", 0, &d, -1);
    }
}

/* Communicator of a rank: its name is its number in the job. */
static const struct maq_captured_comm *comm_of(const struct writer *w, uint32_t ordinal, char name[32])
{
    uint32_t id = w->k->comm[w->index * w->k->n_comms + ordinal];
    maq__snprintf(name, 32, "%u", id);
    return &w->c->comm[id];
}

/* comm_size as others read it: of all that a rank puts in (chakra.h). */
static int64_t comm_size(const struct maq_rec *r, uint32_t ranks)
{
    bool parts = r->kind == MAQ_REC_COLL && maq_chakra_is_shared_out(MAQ_REC_COLL_KIND(r->id));
    uint64_t most = INT64_MAX / (parts && ranks > 0 ? ranks : 1);
    return (int64_t)((r->bytes < most ? r->bytes : most) * (parts && ranks > 0 ? ranks : 1));
}

static void put_meeting(struct writer *w, const struct maq_rec *r, const struct deps *before, struct deps *after)
{
    char pg[32];
    uint32_t ordinal = MAQ_REC_COLL_COMM(r->id);
    const struct maq_captured_comm *m = comm_of(w, ordinal, pg);
    uint32_t position = w->k->position[w->index * w->k->n_comms + ordinal];
    uint32_t other = r->arg == MAQ_REC_NONE ? MAQ_REC_NONE : (uint32_t)(((uint64_t)position + r->arg) % m->size);
    bool sends = r->kind == MAQ_REC_SEND;
    enum maq_chakra_type type = r->kind == MAQ_REC_COLL ? MAQ_CHAKRA_COLL : sends ? MAQ_CHAKRA_SEND : MAQ_CHAKRA_RECV;
    const char *name = r->kind == MAQ_REC_COLL ? "ncclCollective" : sends ? "ncclSend" : "ncclRecv";
    uint64_t id = begin(w, type, name, (int64_t)r->ns, w->host, before);
    attr_bool(w, "is_cpu_op", false);
    attr_int(w, "comm_size", comm_size(r, m->size));
    attr_text(w, MAQ_CHAKRA_NODE_ATTR, "pg_name", pg);
    attr_int(w, "stream", r->stream);
    attr_int(w, "comm_dtype", MAQ_REC_COLL_TYPE(r->id));
    if (r->kind == MAQ_REC_COLL) {
        attr_int(w, "comm_type", maq_chakra_of_coll(MAQ_REC_COLL_KIND(r->id)));
        if (r->arg < m->size)
            attr_int(w, "root", m->member[r->arg]);
    } else {
        attr_int(w, "comm_src", m->member[sends ? position : other]);
        attr_int(w, "comm_dst", m->member[sends ? other : position]);
        attr_int(w, "comm_tag", (int64_t)(m->lineage & 0x7fffffff));
    }
    if (r->flags & MAQ_REC_MORE)
        attr_bool(w, "group_continues", true);
    flush(w);
    add_dep(w, r->stream, after, id);
}

static uint32_t put_group(struct writer *w, uint32_t i)
{
    const struct maq_rec *r = w->k->record;
    uint16_t stream = r[i].stream;
    struct deps before = w->stream[stream], after = {0};
    uint32_t n = 1;
    while (r[i + n - 1].flags & MAQ_REC_MORE)
        n++;
    for (uint32_t k = 0; k < n; k++)
        w->host_ns += r[i + k].host_ns;
    host_now(w);
    for (uint32_t k = 0; k < n; k++) {
        put_meeting(w, &r[i + k], &before, &after);
    }
    w->stream[stream] = after;
    return n; /* the parts of a group are few: NCCL has a kernel for all */
}

static void put_sync(struct writer *w, const struct maq_rec *r)
{
    struct deps all = {0};
    const struct deps *waits = &all;
    host_now(w);
    if (r->kind == MAQ_REC_EVENT_SYNC)
        waits = &w->event[r->id];
    else if (r->kind == MAQ_REC_STREAM_SYNC)
        waits = &w->stream[r->stream];
    else
        for (uint32_t s = 0; s < w->k->n_streams; s++)
            for (uint32_t k = 0; k < w->stream[s].n; k++)
                add_dep(w, MAQ_REC_HOST_STREAM, &all, w->stream[s].id[k]);

    if (waits->n > 0)
        put_host(w, "sync", 0, waits, -1);
}

static uint32_t put_record(struct writer *w, uint32_t i)
{
    const struct maq_rec *r = &w->k->record[i];
    if (r->kind == MAQ_REC_COLL || r->kind == MAQ_REC_SEND || r->kind == MAQ_REC_RECV)
        return put_group(w, i);
    w->host_ns += r->host_ns + (r->kind == MAQ_REC_HOST ? r->ns : 0);
    switch ((int)r->kind) {
    case MAQ_REC_LAUNCH:
    case MAQ_REC_COPY:
    case MAQ_REC_SET:
    case MAQ_REC_HOST_CALL:
        put_work(w, r);
        break;
    case MAQ_REC_EVENT_RECORD:
        w->event[r->id] = w->stream[r->stream];
        break;
    case MAQ_REC_STREAM_WAIT:
        for (uint32_t k = 0; k < w->event[r->id].n; k++)
            add_dep(w, r->stream, &w->stream[r->stream], w->event[r->id].id[k]);
        break;
    case MAQ_REC_EVENT_SYNC:
    case MAQ_REC_STREAM_SYNC:
    case MAQ_REC_DEVICE_SYNC:
        put_sync(w, r);
        break;
    case MAQ_REC_MARK:
        host_now(w);
        put_host(w, r->id < w->c->n_texts ? w->c->text[r->id] : "", 0, NULL, r->arg);
        break;
    default:
        break;
    }
    return 1;
}

/* --- files ---------------------------------------------------------------------------------------------------------------- */

static void meta_int(struct writer *w, const char *name, int64_t v)
{
    maq_pb_bytes(&w->part, MAQ_CHAKRA_ATTR_NAME, name, strlen(name));
    maq_pb_int(&w->part, MAQ_CHAKRA_ATTR_INT64, v);
    put_attr_value(w, &w->message, MAQ_CHAKRA_META_ATTR);
}

static void put_metadata(struct writer *w, uint32_t rank)
{
    maq_pb_bytes(&w->message, MAQ_CHAKRA_META_VERSION, VERSION, sizeof VERSION - 1);
    meta_int(w, "rank", rank);
    meta_int(w, "world_size", w->c->world);
    meta_int(w, "per_node", w->c->per_node);
    attr_text(w, MAQ_CHAKRA_META_ATTR, MAQ_CHAKRA_SIZE_OF, MAQ_CHAKRA_OF_INPUT);
    if (w->c->device)
        attr_text(w, MAQ_CHAKRA_META_ATTR, "device", w->c->device);
    for (uint32_t o = 0; o < w->k->n_comms; o++) {
        char pg[32], name[40];
        const struct maq_captured_comm *m = comm_of(w, o, pg);
        maq__snprintf(name, sizeof name, "pg:%s", pg);
        clear(&w->bytes);
        for (uint32_t i = 0; i < m->size; i++)
            maq_pb_varint(&w->bytes, m->member[i]);
        maq_pb_bytes(&w->part, MAQ_CHAKRA_ATTR_NAME, name, strlen(name));
        maq_pb_bytes(&w->part, 2, m->name ? m->name : "", m->name ? strlen(m->name) : 0); /* doc_string */
        put_list(w, MAQ_CHAKRA_ATTR_UINT32_LIST);
        put_attr_value(w, &w->message, MAQ_CHAKRA_META_ATTR);
    }
    flush(w);
}

static bool write_rank(struct writer *w)
{
    size_t streams = w->k->n_streams + (size_t)1, events = w->k->n_events + (size_t)1;
    w->stream = maq__calloc(streams * sizeof *w->stream);
    w->event = maq__calloc(events * sizeof *w->event);
    bool ok = w->stream && w->event;
    if (ok)
        put_metadata(w, w->k->rank[w->index]);
    for (uint32_t i = 0; ok && i < w->k->n_records;)
        i += put_record(w, i);
    if (ok)
        host_now(w);
    ok = ok && !w->message.failed && !w->part.failed && !w->list.failed && !w->bytes.failed;
    free(w->stream);
    free(w->event);
    return ok;
}

static enum maq_status write_file(const struct maq_capture *c, const struct maq_rank_class *k, uint32_t index,
                                  const char *folder, const char *prefix, struct maq_diag *diag)
{
    struct writer w = {.c = c, .k = k, .index = index};
    char path[4096];
    maq__snprintf(path, sizeof path, "%s/%s.%u.et", folder, prefix, k->rank[index]);
    w.file = fopen(path, "wb");
    if (!w.file)
        return maq_diag_fail(MAQ_IO, diag, MAQ_CODE_GRAPH_FOLDER, nowhere, NULL, "%s: %s", path, strerror(errno));
    maq_buf_init(&w.message, MAX_MESSAGE);
    maq_buf_init(&w.part, MAX_MESSAGE);
    maq_buf_init(&w.list, MAX_MESSAGE);
    maq_buf_init(&w.bytes, MAX_MESSAGE);
    bool ok = write_rank(&w), written = !ferror(w.file);
    written &= fclose(w.file) == 0;
    maq_buf_fini(&w.message);
    maq_buf_fini(&w.part);
    maq_buf_fini(&w.list);
    maq_buf_fini(&w.bytes);
    if (!written)
        return maq_diag_fail(MAQ_IO, diag, MAQ_CODE_GRAPH_FOLDER, nowhere, "is the disk full?",
                             "%s: not all of it could be written", path);
    return ok ? MAQ_OK
              : maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_NO_MEMORY, nowhere, NULL, "%s: out of memory", path);
}

enum maq_status maq_capture_write_chakra(const struct maq_capture *capture, const char *folder, const char *prefix,
                                         bool every_rank, struct maq_diag *diag)
{
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return maq_diag_fail(MAQ_IO, diag, MAQ_CODE_GRAPH_FOLDER, nowhere, NULL, "%s: %s", folder, strerror(errno));
    for (uint32_t i = 0; i < capture->n_classes; i++) {
        const struct maq_rank_class *k = &capture->class_of_ranks[i];
        for (uint32_t r = 0; r < (every_rank || k->n_ranks == 0 ? k->n_ranks : 1); r++)
            MAQ_TRY(write_file(capture, k, r, folder, prefix, diag));
    }
    return MAQ_OK;
}
