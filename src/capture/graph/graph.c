/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.c - maq_capture_graph(): the programs of a captured job as nodes of an execution graph.
 *
 *   record                       node                                                   behind
 *   host_ns, HOST                host time, on the host stream; gathered until needed   the host's last
 *   LAUNCH, COPY, SET, HOST_CALL work on its stream                                     the stream's last, the host
 *   COLL, SEND, RECV             one for all who take part                              the same of every one of them
 *   EVENT_RECORD, STREAM_WAIT    none, or a join of no length                           stream and event
 *   *_SYNC, MAQ_REC_WAITS        the host goes on behind what it waits for
 *
 * An event stands for the last node of its stream when it was recorded; a wait for it comes later on the same host. The rules of
 * collectives, messages and groups are those of shim/link.h. The nodes of a meeting are made when the first member's program
 * reaches it, so the draft is in no topological order; topological_order.c gives it one.
 *
 * What a node counts as (tag.bucket): communication by its axis; copies, other; kernels by the annotations that were open when
 * they were launched (node_names.c), with "backward" for what autograd's engine launches; where a class has no such annotation
 * at all, other. tag.module is the innermost annotation, tag.microbatch the step.
 */
#include "capture/graph/graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/str.h"
#include "capture/codes.h"

#define NONE UINT32_MAX
#define EAGER_BYTES (UINT64_C(4) << 20) /* shim/link.h: NCCL's FIFO, 8 slots of 512 KiB */
#define MAX_OPEN 64                     /* annotations inside each other */

static const struct maq_span nowhere;

/* A meeting (a collective or a message): its nodes, and which members have come. */
struct meeting {
    uint32_t node; /* of a collective, or of a message that needs both sides */
    uint32_t left; /* of a small message: the point at which its sender was there */
    uint32_t came, need;
};

struct program {
    struct maq_draft *d;
    struct maq_intern_map *meetings; /* key -> index + 1 */
    struct meeting **meeting;
    uint32_t *n_meetings, *meeting_size;
    struct maq_intern_map count; /* of collectives on a communicator, of messages with a peer */
    struct maq_intern_map peers; /* {ordinal, relative} -> class << 32 | ordinal of the peer, + 1; all ones: nobody */
    uint32_t class_id, join_name, host_name;
    const struct maq_rank_class *k;
    uint32_t host, *stream, *event; /* last nodes */
    uint64_t host_ns;
    uint32_t step, open[MAX_OPEN], n_open;
    bool any_part;
};

static void share(struct maq_draft *d, uint32_t node, uint32_t stream)
{
    if (node == NONE || d->node[node].stream / MAQ_STREAM_COUNT == stream / MAQ_STREAM_COUNT)
        return;
    if (!maq__grow((void **)&d->share, &d->share_size, d->n_shares, sizeof *d->share)) {
        d->failed = true;
        return;
    }
    d->share[d->n_shares++] = (struct maq_graph_share){node, stream};
}

/* --- a program ---------------------------------------------------------------------------------------------------------- */

static uint32_t row(const struct program *p, enum maq_stream stream)
{
    return p->class_id * MAQ_STREAM_COUNT + (uint32_t)stream;
}

static struct maq_node_tag tag_of(const struct program *p, enum maq_bucket bucket)
{
    struct maq_node_tag tag = {
        .bucket = (uint8_t)bucket, .module = UINT16_MAX, .layer = UINT16_MAX, .microbatch = p->step};
    if (p->n_open > 0 && p->open[p->n_open - 1] < UINT16_MAX)
        tag.module = (uint16_t)p->open[p->n_open - 1];
    return tag;
}

/* The host, with all its time so far. */
static uint32_t host_now(struct program *p)
{
    if (p->host_ns > 0) {
        uint32_t v = maq_draft_node(p->d, p->host_ns, row(p, MAQ_STREAM_HOST), MAQ_ITEM_HOST, p->host_name,
                                    tag_of(p, MAQ_BUCKET_HOST));
        maq_draft_edge(p->d, p->host, v);
        p->host = v;
        p->host_ns = 0;
    }
    return p->host;
}

static uint32_t join(struct program *p, uint32_t a, uint32_t b, enum maq_stream stream)
{
    if (a == NONE || b == NONE || a == b)
        return a == NONE ? b : a;
    uint32_t v = maq_draft_node(p->d, 0, row(p, stream), MAQ_ITEM_HOST, p->join_name, tag_of(p, MAQ_BUCKET_OTHER));
    maq_draft_edge(p->d, a, v);
    maq_draft_edge(p->d, b, v);
    return v;
}

static enum maq_bucket part_of(const struct program *p)
{
    for (uint32_t i = p->n_open; i-- > 0;) {
        enum maq_bucket b = maq_annotation_bucket(p->d->capture->text[p->open[i]]);
        if (b != MAQ_BUCKET_COUNT)
            return b;
    }
    return p->any_part ? MAQ_BUCKET_FORWARD : MAQ_BUCKET_OTHER;
}

static void put_work(struct program *p, const struct maq_rec *r)
{
    static const char *const copies[] = {"copy host to host", "copy host to device", "copy device to host",
                                         "copy device to device", "copy between devices"};
    struct maq_draft *d = p->d;
    enum maq_stream stream = (enum maq_stream)d->stream_of[p->class_id][r->stream];
    enum maq_item_sort sort = MAQ_ITEM_COMPUTE;
    enum maq_bucket bucket = part_of(p);
    char text[160];
    const char *name = text;
    if (r->kind == MAQ_REC_COPY) {
        name = copies[r->id < MAQ_COUNT(copies) ? r->id : 3];
        sort = stream == MAQ_STREAM_COMPUTE ? MAQ_ITEM_COMPUTE : MAQ_ITEM_COPY;
        bucket = MAQ_BUCKET_OTHER;
    } else if (r->kind == MAQ_REC_LAUNCH) {
        const struct maq_captured_op *op = &d->capture->op[r->id];
        maq_captured_op_text(text, op);
        bool gap = op->what->kind == MAQ_REC_LIBRARY && op->what->bytes == 0 && strncmp(op->name, "gap ", 4) == 0;
        sort = gap ? MAQ_ITEM_GAP : stream == MAQ_STREAM_COMPUTE ? MAQ_ITEM_COMPUTE : MAQ_ITEM_COMMUNICATION;
        bucket = gap ? MAQ_BUCKET_BUBBLE : stream == MAQ_STREAM_COMPUTE ? bucket : maq_axis_bucket(stream);
    } else
        name = r->kind == MAQ_REC_SET ? "memset" : "host function";
    uint32_t v = maq_draft_node(d, r->ns, row(p, stream), sort, maq_draft_name(d, name), tag_of(p, bucket));
    maq_draft_edge(d, p->stream[r->stream], v);
    maq_draft_edge(d, host_now(p), v);
    p->stream[r->stream] = v;
    if (r->flags & MAQ_REC_WAITS)
        p->host = v;
}

/* --- meetings ------------------------------------------------------------------------------------------------------------- */

static uint32_t nth(struct program *p, uint32_t ordinal, uint32_t peer, unsigned kind)
{
    uint32_t key[3] = {ordinal, peer, kind};
    uint64_t *at = maq_intern_map_at(&p->count, &p->d->scratch, key, sizeof key);
    p->d->failed |= !at;
    return at ? (uint32_t)(*at)++ : 0;
}

/* Who is on the other side of a message: looked up once for each distance. */
static uint32_t peer_of(struct program *p, uint32_t ordinal, uint32_t relative, uint32_t *other)
{
    uint32_t key[2] = {ordinal, relative};
    uint64_t *at = maq_intern_map_at(&p->peers, &p->d->scratch, key, sizeof key);
    p->d->failed |= !at;
    if (at && *at == 0) {
        uint32_t peer = maq_quotient_peer(p->d, p->class_id, ordinal, relative, other);
        *at = peer == NONE ? UINT64_MAX : ((uint64_t)peer << 32 | *other) + 1;
    }
    bool known = at && *at != UINT64_MAX;
    *other = known ? (uint32_t)(*at - 1) : 0;
    return known ? (uint32_t)((*at - 1) >> 32) : NONE;
}

/* The meeting that a record takes part in; NULL when out of memory. */
static struct meeting *meeting_of(struct program *p, const struct maq_rec *r)
{
    struct maq_draft *d = p->d;
    uint32_t ordinal = MAQ_REC_COLL_COMM(r->id), key[6] = {0};
    if (r->kind == MAQ_REC_COLL) {
        key[0] = d->kind_of[p->class_id][ordinal];
        key[5] = nth(p, ordinal, NONE, MAQ_REC_COLL);
    } else {
        bool sends = r->kind == MAQ_REC_SEND;
        uint32_t other = 0, size = d->capture->comm[p->k->comm[ordinal]].size;
        uint32_t peer = peer_of(p, ordinal, r->arg, &other);
        key[0] = NONE;
        key[1] = sends ? p->class_id << 16 | ordinal : peer << 16 | other;
        key[2] = sends ? peer << 16 | other : p->class_id << 16 | ordinal;
        key[3] = sends ? r->arg : (size - r->arg) % size; /* from the sender */
        key[4] = peer == NONE ? p->class_id + 1 : 0;
        key[5] = nth(p, ordinal, r->arg, r->kind);
    }
    uint64_t *at = maq_intern_map_at(p->meetings, &d->scratch, key, sizeof key);
    if (!at || !maq__grow((void **)p->meeting, p->meeting_size, *p->n_meetings, sizeof **p->meeting)) {
        d->failed = true;
        return NULL;
    }
    if (*at == 0) {
        struct meeting m = {.node = NONE, .left = NONE, .need = 2};
        if (r->kind == MAQ_REC_COLL)
            m.need = d->members_of[key[0]];
        (*p->meeting)[(*p->n_meetings)++] = m;
        *at = *p->n_meetings;
    }
    return &(*p->meeting)[*at - 1];
}

/* The node of a meeting, or one more behind what came. Longest of what its members say. */
static uint32_t meeting_node(struct program *p, uint32_t node, const struct maq_rec *r)
{
    struct maq_draft *d = p->d;
    uint32_t ordinal = MAQ_REC_COLL_COMM(r->id);
    enum maq_stream axis = (enum maq_stream)d->axis[p->class_id][ordinal];
    if (node == NONE) {
        char text[160];
        maq_captured_coll_text(text, r, p->k->n_ranks > 0 ? d->capture->comm[p->k->comm[ordinal]].size : 0);
        return maq_draft_node(d, r->ns, row(p, axis), MAQ_ITEM_COMMUNICATION, maq_draft_name(d, text),
                              tag_of(p, maq_axis_bucket(axis)));
    }
    if (d->node[node].ns < r->ns)
        d->node[node].ns = r->ns;
    share(d, node, row(p, axis));
    return node;
}

/* One part of a group that begins behind `from`; where it ends. */
static uint32_t put_part(struct program *p, const struct maq_rec *r, const uint32_t from[2])
{
    struct maq_draft *d = p->d;
    struct meeting *m = meeting_of(p, r);
    if (!m || d->failed)
        return NONE;
    m->came++;
    if (r->kind == MAQ_REC_COLL || r->bytes > EAGER_BYTES) {
        m->node = meeting_node(p, m->node, r);
        maq_draft_edge(d, from[0], m->node);
        maq_draft_edge(d, from[1], m->node);
        return m->node;
    }
    if (m->left == NONE)
        m->left = maq_draft_node(d, 0, row(p, MAQ_STREAM_PP), MAQ_ITEM_HOST, p->join_name, tag_of(p, MAQ_BUCKET_OTHER));
    uint32_t v = meeting_node(p, NONE, r);
    uint32_t behind = r->kind == MAQ_REC_SEND ? m->left : v;
    maq_draft_edge(d, from[0], behind);
    maq_draft_edge(d, from[1], behind);
    maq_draft_edge(d, m->left, v);
    return v;
}

/* Records [i, end) are one group: one kernel on the stream of the first. */
static void put_group(struct program *p, uint32_t i, uint32_t end)
{
    struct maq_draft *d = p->d;
    const struct maq_rec *r = p->k->record;
    uint16_t stream = r[i].stream;
    for (uint32_t k = i; k < end; k++)
        p->host_ns += r[k].host_ns;
    uint32_t from[2] = {p->stream[stream], host_now(p)};
    if (end - i == 1) {
        p->stream[stream] = put_part(p, &r[i], from);
        return;
    }
    enum maq_stream to = (enum maq_stream)d->stream_of[p->class_id][stream];
    uint32_t begin = maq_draft_node(d, 0, row(p, to), MAQ_ITEM_HOST, p->join_name, tag_of(p, MAQ_BUCKET_OTHER));
    uint32_t done = maq_draft_node(d, 0, row(p, to), MAQ_ITEM_HOST, p->join_name, tag_of(p, MAQ_BUCKET_OTHER));
    maq_draft_edge(d, from[0], begin);
    maq_draft_edge(d, from[1], begin);
    for (uint32_t k = i; k < end && !d->failed; k++) {
        uint32_t after[2] = {begin, NONE};
        for (uint32_t j = k; r[k].kind == MAQ_REC_COLL && j-- > i;) /* behind the one before on its communicator */
            if (r[j].kind == MAQ_REC_COLL && MAQ_REC_COLL_COMM(r[j].id) == MAQ_REC_COLL_COMM(r[k].id)) {
                after[1] = p->event[p->k->n_events + (j - i) % MAX_OPEN];
                break;
            }
        uint32_t v = put_part(p, &r[k], after);
        p->event[p->k->n_events + (k - i) % MAX_OPEN] = v;
        maq_draft_edge(d, v, done);
    }
    p->stream[stream] = done;
}

/* --- records ---------------------------------------------------------------------------------------------------------------- */

static void put_mark(struct program *p, const struct maq_rec *r)
{
    if (r->arg == MAQ_REC_STEP)
        p->step++;
    if (r->arg == MAQ_REC_PUSH && p->n_open < MAX_OPEN)
        p->open[p->n_open++] = r->id;
    if (r->arg != MAQ_REC_POP)
        return;
    for (uint32_t i = p->n_open; i-- > 0;) /* the one that it closes: annotations of several threads may cross */
        if (p->open[i] == r->id || r->id >= p->d->capture->n_texts) {
            memmove(&p->open[i], &p->open[i + 1], (p->n_open - i - 1) * sizeof *p->open);
            p->n_open--;
            break;
        }
}

static void put_sync(struct program *p, const struct maq_rec *r)
{
    uint32_t host = host_now(p);
    if (r->kind == MAQ_REC_EVENT_SYNC)
        p->host = join(p, host, p->event[r->id], MAQ_STREAM_HOST);
    else if (r->kind == MAQ_REC_STREAM_SYNC)
        p->host = join(p, host, p->stream[r->stream], MAQ_STREAM_HOST);
    else
        for (uint32_t s = 0; s < p->k->n_streams; s++)
            p->host = join(p, p->host, p->stream[s], MAQ_STREAM_HOST);
}

/* One record, or a group of them; the number of records used up. */
static uint32_t put_record(struct program *p, uint32_t i)
{
    const struct maq_rec *r = &p->k->record[i];
    uint32_t n = 1;
    if (r->kind == MAQ_REC_COLL || r->kind == MAQ_REC_SEND || r->kind == MAQ_REC_RECV) {
        while (p->k->record[i + n - 1].flags & MAQ_REC_MORE)
            n++;
        put_group(p, i, i + n);
        return n;
    }
    p->host_ns += r->host_ns + (r->kind == MAQ_REC_HOST ? r->ns : 0);
    switch ((int)r->kind) {
    case MAQ_REC_LAUNCH:
    case MAQ_REC_COPY:
    case MAQ_REC_SET:
    case MAQ_REC_HOST_CALL:
        put_work(p, r);
        break;
    case MAQ_REC_EVENT_RECORD:
        p->event[r->id] = p->stream[r->stream];
        break;
    case MAQ_REC_STREAM_WAIT:
        p->stream[r->stream] =
            join(p, p->stream[r->stream], p->event[r->id], (enum maq_stream)p->d->stream_of[p->class_id][r->stream]);
        break;
    case MAQ_REC_EVENT_SYNC:
    case MAQ_REC_STREAM_SYNC:
    case MAQ_REC_DEVICE_SYNC:
        put_sync(p, r);
        break;
    case MAQ_REC_MARK:
        put_mark(p, r);
        break;
    case MAQ_REC_FREE:
        if (r->flags & MAQ_REC_WAITS)
            put_sync(p, &(struct maq_rec){.kind = MAQ_REC_DEVICE_SYNC});
        break;
    default:
        break;
    }
    return n;
}

static bool put_program(struct program *p)
{
    const struct maq_rank_class *k = p->k;
    p->stream = maq__malloc((k->n_streams + (size_t)1) * sizeof *p->stream);
    p->event = maq__malloc((k->n_events + (size_t)MAX_OPEN) * sizeof *p->event);
    bool ok = p->stream && p->event;
    if (ok) {
        memset(p->stream, 0xff, (k->n_streams + (size_t)1) * sizeof *p->stream);
        memset(p->event, 0xff, (k->n_events + (size_t)MAX_OPEN) * sizeof *p->event);
    }
    for (uint32_t i = 0; ok && i < k->n_records; i++)
        p->any_part |= k->record[i].kind == MAQ_REC_MARK && k->record[i].arg == MAQ_REC_PUSH &&
                       maq_annotation_bucket(p->d->capture->text[k->record[i].id]) == MAQ_BUCKET_BACKWARD;
    for (uint32_t i = 0; ok && i < k->n_records && !p->d->failed;)
        i += put_record(p, i);
    if (ok)
        (void)host_now(p);
    free(p->stream);
    free(p->event);
    maq_intern_map_fini(&p->count);
    maq_intern_map_fini(&p->peers);
    return ok && !p->d->failed;
}

/* Whether the records are valid: a capture may come from outside. */
static bool sound(const struct maq_capture *c, const struct maq_rank_class *k)
{
    for (uint32_t i = 0; i < k->n_records; i++) {
        const struct maq_rec *r = &k->record[i];
        bool on_stream = r->kind == MAQ_REC_LAUNCH || r->kind == MAQ_REC_COPY || r->kind == MAQ_REC_SET ||
                         r->kind == MAQ_REC_HOST_CALL || r->kind == MAQ_REC_EVENT_RECORD ||
                         r->kind == MAQ_REC_STREAM_WAIT || r->kind == MAQ_REC_STREAM_SYNC;
        bool meets = r->kind == MAQ_REC_COLL || r->kind == MAQ_REC_SEND || r->kind == MAQ_REC_RECV;
        bool of_event =
            r->kind == MAQ_REC_EVENT_RECORD || r->kind == MAQ_REC_STREAM_WAIT || r->kind == MAQ_REC_EVENT_SYNC;
        if (((on_stream || meets) && r->stream >= k->n_streams) || (of_event && r->id >= k->n_events) ||
            (meets && MAQ_REC_COLL_COMM(r->id) >= k->n_comms) || (r->kind == MAQ_REC_LAUNCH && r->id >= c->n_ops) ||
            (r->kind == MAQ_REC_MARK && r->arg == MAQ_REC_PUSH && r->id >= c->n_texts))
            return false;
        bool more = meets && (r->flags & MAQ_REC_MORE);
        if (more &&
            (i + 1 == k->n_records || (k->record[i + 1].kind != MAQ_REC_COLL && k->record[i + 1].kind != MAQ_REC_SEND &&
                                       k->record[i + 1].kind != MAQ_REC_RECV)))
            return false;
    }
    for (uint32_t o = 0; o < k->n_comms; o++)
        if (k->n_ranks > 0 && (k->comm[o] >= c->n_comms || c->comm[k->comm[o]].size == 0))
            return false;
    return k->n_ranks > 0;
}

static bool put_programs(struct maq_draft *d, struct maq_captured_graph *out)
{
    struct maq_intern_map meetings = {0};
    struct meeting *meeting = NULL;
    uint32_t n_meetings = 0, size = 0;
    uint32_t join_name = maq_draft_name(d, "join"), host_name = maq_draft_name(d, "host");
    bool ok = maq_quotient(d) && maq_draft_streams(d) && !d->failed;
    for (uint32_t i = 0; ok && i < d->capture->n_classes; i++) {
        struct program p = {.d = d,
                            .meetings = &meetings,
                            .meeting = &meeting,
                            .n_meetings = &n_meetings,
                            .meeting_size = &size,
                            .class_id = i,
                            .join_name = join_name,
                            .host_name = host_name,
                            .k = &d->capture->class_of_ranks[i],
                            .host = NONE};
        ok = put_program(&p);
        if (i == 0)
            out->n_steps = p.step;
    }
    for (uint32_t i = 0; i < n_meetings; i++)
        out->unmet += meeting[i].came < meeting[i].need;
    out->exact = d->exact;
    maq_intern_map_fini(&meetings);
    free(meeting);
    return ok && !d->failed;
}

enum maq_status maq_capture_graph(struct maq_captured_graph *out, const struct maq_capture *capture,
                                  struct maq_diag *diag)
{
    struct maq_captured_graph g = {0};
    struct maq_draft d = {.capture = capture, .arena = maq__malloc(sizeof *d.arena)};
    for (uint32_t i = 0; i < capture->n_classes; i++)
        if (!sound(capture, &capture->class_of_ranks[i])) {
            free(d.arena);
            return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_CAPTURE_FORM, nowhere, NULL,
                                 "class %u of the captured job has records that name what it does not have", i);
        }
    if (!d.arena)
        return maq_no_memory(diag, "a graph");
    maq_arena_init(d.arena, 0);
    maq_intern_init(&d.names, d.arena);
    maq_arena_init(&d.scratch, 0);
    g.owner = d.arena;
    enum maq_status status = MAQ_OK;
    if (!put_programs(&d, &g))
        status = d.too_many ? maq_diag_fail(MAQ_LIMIT, diag, MAQ_CODE_GRAPH_LIMIT, nowhere, "capture fewer steps",
                                            "the graph of this job has more than %u nodes", MAQ_DRAFT_NODES)
                            : maq_no_memory(diag, "a graph");
    else
        status = maq_draft_freeze(&g, &d, diag);
    maq_arena_fini(&d.scratch);
    free(d.node);
    free(d.edge);
    free(d.share);
    if (status == MAQ_OK)
        *out = g;
    else {
        maq_arena_fini(d.arena);
        free(d.arena);
    }
    return status;
}
