/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records.c - the nodes of a Chakra trace as the records of a rank.
 *
 * A program has one host that does things in order, so nodes are taken one after another (order.c). What an edge becomes depends on its ends:
 *
 *   host -> host, host -> device        nothing: the host's order says it
 *   device -> device, same stream       nothing: the stream's order says it
 *   device -> device, other stream      an event after the first, a wait before the second
 *   device -> host                      the host waits: for the stream when the node is its last, else for an event
 *
 * So two nodes that the trace leaves unordered get the order of the file when both are of the host or of one stream.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/codes.h"
#include "base/str.h"
#include "capture/import/chakra/read.h"
#include "capture/import/codes.h"

#define NONE UINT32_MAX

static const struct maq_span nowhere;

struct linker {
    struct maq_import_job *job;
    struct maq_import_rank *rank;
    struct maq_chakra *c;
    struct maq_chakra_tally *tally;
    struct maq_arena scratch;
    struct maq_intern_map streams; /* key -> ordinal + 1 */
    uint32_t *order;               /* [n] places in the file */
    uint32_t *event;               /* [n] by place: NONE, or wanted (NONE - 1), or its number */
    uint32_t *stream;              /* [n] ordinal of device nodes; NONE of the host's */
    uint32_t *last;                /* [streams] place of the last node */
    uint64_t host_ns;
    uint32_t n_events;
    bool failed;
};

#define WANTED (NONE - 1)

static bool on_host(const struct maq_chakra_node *v)
{
    return v->on_host || v->type == MAQ_CHAKRA_METADATA || v->type == MAQ_CHAKRA_INVALID;
}

/* --- order ---------------------------------------------------------------------------------------------------------------- */

static enum maq_status find_places(struct linker *l, struct maq_intern_map *places)
{
    struct maq_chakra *c = l->c;
    for (uint32_t i = 0; i < c->n; i++) {
        uint64_t *at = maq_intern_map_at(places, &l->scratch, &c->node[i].id, sizeof c->node[i].id);
        if (!at)
            return MAQ_NO_MEMORY;
        if (*at > 0)
            return maq_diag_fail(MAQ_BAD_INPUT, l->job->diag, MAQ_CODE_IMPORT_DEPENDENCY, nowhere, NULL,
                                 "%s: two nodes have the id %llu: '%.80s' and '%.80s'", c->path,
                                 (unsigned long long)c->node[i].id, c->node[*at - 1].name, c->node[i].name);
        *at = i + UINT64_C(1);
    }
    return MAQ_OK;
}

/* A dependency on a node that the file does not have. Control dependencies are the order of a host, and filters (of the converter, of
 * who takes a few ranks or a few operators out of a trace) leave them where they drop the node: the order of the file takes their place.
 * A data dependency is what makes the time, so that one has to be there. */
static enum maq_status missing(struct linker *l, const struct maq_chakra_node *v, const struct maq_chakra_dep *d)
{
    struct maq_chakra_tally *t = l->tally;
    if (!d->control)
        return maq_diag_fail(MAQ_BAD_INPUT, l->job->diag, MAQ_CODE_IMPORT_DEPENDENCY, nowhere,
                             "was the trace cut or filtered? data_deps have to stay in it",
                             "%s: node %llu '%.80s' has a data dependency on node %llu, which is not there", l->c->path,
                             (unsigned long long)v->id, v->name, (unsigned long long)d->node);
    if (t->n_missing++ == 0) {
        t->waiting = v->id;
        t->missing = d->node;
        t->path = l->rank->path;
    }
    return MAQ_OK;
}

/* Dependencies as places in the file; those on nodes that were filtered out are taken away. */
static enum maq_status link_nodes(struct linker *l)
{
    struct maq_chakra *c = l->c;
    struct maq_intern_map places = {0};
    enum maq_status status = find_places(l, &places);
    for (uint32_t i = 0; i < c->n && status == MAQ_OK; i++) {
        struct maq_chakra_node *v = &c->node[i];
        uint32_t kept = 0;
        for (uint32_t e = 0; e < v->n_deps && status == MAQ_OK; e++) {
            struct maq_chakra_dep *d = &c->dep[v->dep + e];
            uint64_t *at = maq_intern_map_at(&places, &l->scratch, &d->node, sizeof d->node);
            if (!at)
                status = MAQ_NO_MEMORY;
            else if (*at == 0)
                status = missing(l, v, d);
            else
                c->dep[v->dep + kept++] = (struct maq_chakra_dep){*at - 1, d->control};
        }
        v->n_deps = kept;
    }
    maq_intern_map_fini(&places);
    return status;
}

static enum maq_status order_nodes(struct linker *l)
{
    enum maq_status status = maq_chakra_order(&l->order, l->c, &l->scratch, &l->tally->n_against);
    return status != MAQ_NO
               ? status
               : maq_diag_fail(MAQ_BAD_INPUT, l->job->diag, MAQ_CODE_IMPORT_DEPENDENCY, nowhere, NULL,
                               "%s: nodes wait for each other in a circle of data dependencies", l->c->path);
}

/* --- streams and events ------------------------------------------------------------------------------------------------------ */

/* A node without a stream is on one of its kind. */
static int64_t stream_key(const struct maq_chakra_node *v)
{
    return v->stream >= 0 ? v->stream : -1 - (int64_t)v->type;
}

static enum maq_status find_streams(struct linker *l)
{
    struct maq_chakra *c = l->c;
    l->stream = MAQ_ARENA_NEW(&l->scratch, uint32_t, c->n);
    l->event = MAQ_ARENA_NEW(&l->scratch, uint32_t, c->n);
    if (!l->stream || !l->event)
        return MAQ_NO_MEMORY;
    for (uint32_t k = 0; k < c->n; k++) {
        uint32_t i = l->order[k];
        l->stream[i] = l->event[i] = NONE;
        if (on_host(&c->node[i]))
            continue;
        int64_t key = stream_key(&c->node[i]);
        uint64_t *at = maq_intern_map_at(&l->streams, &l->scratch, &key, sizeof key);
        if (!at)
            return MAQ_NO_MEMORY;
        if (*at == 0)
            *at = l->streams.key.n;
        l->stream[i] = (uint32_t)(*at - 1);
        if (l->streams.key.n >= MAQ_REC_HOST_STREAM)
            return maq_diag_fail(MAQ_LIMIT, l->job->diag, MAQ_CODE_IMPORT_LIMIT, nowhere, NULL,
                                 "%s has more than %u streams", c->path, MAQ_REC_HOST_STREAM - 1u);
    }
    l->last = MAQ_ARENA_NEW(&l->scratch, uint32_t, l->streams.key.n);
    return l->last ? MAQ_OK : MAQ_NO_MEMORY;
}

/* Whether a dependency needs an event: told before the records are written, because the event comes first. */
static void want_events(struct linker *l)
{
    struct maq_chakra *c = l->c;
    for (uint32_t s = 0; s < l->streams.key.n; s++)
        l->last[s] = NONE;
    for (uint32_t k = 0; k < c->n; k++) {
        uint32_t i = l->order[k];
        const struct maq_chakra_node *v = &c->node[i];
        for (uint32_t e = 0; e < v->n_deps; e++) {
            uint32_t u = (uint32_t)c->dep[v->dep + e].node;
            if (l->stream[u] == NONE || l->stream[u] == l->stream[i])
                continue;
            if (l->stream[i] != NONE || l->last[l->stream[u]] != u)
                l->event[u] = WANTED;
        }
        if (l->stream[i] != NONE)
            l->last[l->stream[i]] = i;
    }
    for (uint32_t s = 0; s < l->streams.key.n; s++)
        l->last[s] = NONE;
}

/* --- records -------------------------------------------------------------------------------------------------------------- */

static struct maq_rec *put(struct linker *l, enum maq_rec_kind kind)
{
    struct maq_rec *r = maq_import_record(l->job, l->rank, kind, (int64_t)l->host_ns);
    l->host_ns = 0;
    return r;
}

/* What a node has to wait for, as records in front of it. */
static void put_waits(struct linker *l, uint32_t i)
{
    const struct maq_chakra_node *v = &l->c->node[i];
    for (uint32_t e = 0; e < v->n_deps; e++) {
        uint32_t u = (uint32_t)l->c->dep[v->dep + e].node;
        if (l->stream[u] == NONE || l->stream[u] == l->stream[i])
            continue;
        if (l->stream[i] != NONE) {
            struct maq_rec *r = put(l, MAQ_REC_STREAM_WAIT);
            r->stream = (uint16_t)l->stream[i];
            r->id = l->event[u];
        } else if (l->last[l->stream[u]] == u)
            put(l, MAQ_REC_STREAM_SYNC)->stream = (uint16_t)l->stream[u];
        else
            put(l, MAQ_REC_EVENT_SYNC)->id = l->event[u];
    }
}

static void put_host(struct linker *l, const struct maq_chakra_node *v)
{
    if (v->mark >= 0 && v->mark <= MAQ_REC_STEP) {
        uint32_t id = maq_import_text(l->job, maq_str_of(v->name));
        struct maq_rec *r = put(l, MAQ_REC_MARK);
        r->id = id;
        r->arg = (uint32_t)v->mark;
    }
    l->host_ns += l->host_ns < INT64_MAX / 4 ? (uint64_t)v->ns : 0;
}

static uint32_t comm_of(struct linker *l, const struct maq_chakra_node *v)
{
    struct maq_chakra *c = l->c;
    for (uint32_t g = 0; v->pg && g < c->n_groups; g++)
        if (strcmp(c->group[g].pg, v->pg) == 0 && c->group[g].n > 0 && c->group[g].n <= MAQ_IMPORT_WORLD) {
            bool nobody = c->group[g].member[0] == NONE;
            /* its number keeps two groups of the same ranks apart where they have no name */
            const char *name = c->group[g].name[0] ? c->group[g].name : v->pg;
            return maq_import_comm(l->job, l->rank, maq_str_of(name), nobody ? NULL : c->group[g].member,
                                   c->group[g].n);
        }
    const uint32_t *all = maq_import_everyone(l->job, l->job->world);
    return all ? maq_import_comm(l->job, l->rank, maq_str_of(v->pg), all, l->job->world) : 0;
}

static uint32_t position_in(const struct maq_import_comm *m, int64_t rank)
{
    for (uint32_t i = 0; m->member && rank >= 0 && i < m->size; i++)
        if (m->member[i] == (uint64_t)rank)
            return i;
    return MAQ_REC_NONE;
}

/* Bytes of a collective as records count them. */
static uint64_t coll_bytes(struct linker *l, const struct maq_chakra_node *v, enum maq_rec_coll kind, uint32_t ranks)
{
    uint64_t bytes = v->bytes > 0 ? (uint64_t)v->bytes : 0;
    if (!maq_chakra_is_shared_out(kind) || bytes == 0 || ranks == 0)
        return bytes;
    l->tally->shared_out++;
    return l->tally->sized_by == MAQ_CHAKRA_SIZE_COUNT ? bytes : bytes / ranks + (bytes % ranks > 0);
}

/* A collective or a message; false: it names ranks that its communicator does not have, and it becomes a kernel. */
static bool put_meeting(struct linker *l, const struct maq_chakra_node *v)
{
    bool coll = v->type == MAQ_CHAKRA_COLL, sends = v->type == MAQ_CHAKRA_SEND;
    uint32_t ordinal = comm_of(l, v);
    if (l->job->failed || ordinal >= UINT16_MAX)
        return false;
    struct maq_import_comm *m = &l->rank->comm[ordinal];
    uint32_t arg = position_in(m, coll ? v->root : sends ? v->dst : v->src);
    if (!coll && (arg == MAQ_REC_NONE || m->position == NONE))
        return false;
    m->messages |= !coll;
    enum maq_rec_coll kind = coll ? maq_chakra_coll(v->comm_type) : MAQ_REC_P2P_PAIR;
    struct maq_rec *r = put(l, coll ? MAQ_REC_COLL : sends ? MAQ_REC_SEND : MAQ_REC_RECV);
    r->id = MAQ_REC_COLL(ordinal, 0, v->dtype, kind);
    r->arg = arg;
    r->bytes = coll_bytes(l, v, kind, m->size);
    r->flags = v->group_continues ? MAQ_REC_MORE : 0;
    return true;
}

static void put_kernel(struct linker *l, const struct maq_chakra_node *v)
{
    struct maq_rec_op op = v->op;
    bool load = v->type == MAQ_CHAKRA_MEM_LOAD, store = v->type == MAQ_CHAKRA_MEM_STORE;
    if (load || store || v->record == MAQ_REC_COPY || v->record == MAQ_REC_SET || v->record == MAQ_REC_HOST_CALL) {
        struct maq_rec *r = put(l, load || store ? MAQ_REC_COPY : (enum maq_rec_kind)v->record);
        r->id = load                                     ? MAQ_REC_H2D
                : store                                  ? MAQ_REC_D2H
                : v->copy >= 0 && v->copy <= MAQ_REC_P2P ? (uint32_t)v->copy
                                                         : 0;
        r->bytes = v->bytes > 0 ? (uint64_t)v->bytes : 0;
        return;
    }
    if (op.kind == MAQ_REC_KERNEL && op.bytes == 0 && v->bytes > 0)
        op.bytes = (uint64_t)v->bytes;
    uint32_t id = maq_import_op(l->job, &op, maq_str_of(v->name));
    struct maq_rec *r = put(l, MAQ_REC_LAUNCH);
    r->id = id;
    r->bytes = v->bytes > 0 && op.bytes != (uint64_t)v->bytes ? (uint64_t)v->bytes : 0;
}

static bool in_group(const struct linker *l)
{
    uint32_t n = l->rank->n_records;
    return n > 0 && (l->rank->record[n - 1].flags & MAQ_REC_MORE);
}

static bool meets(const struct maq_chakra_node *v)
{
    return v->type == MAQ_CHAKRA_COLL || v->type == MAQ_CHAKRA_SEND || v->type == MAQ_CHAKRA_RECV;
}

/* Whether the k-th node belongs to the group that the record before is of: nothing may stand between the parts. */
static bool continues(const struct linker *l, uint32_t k)
{
    uint32_t n = l->rank->n_records;
    return in_group(l) && k < l->c->n && meets(&l->c->node[l->order[k]]) && l->host_ns == 0 &&
           l->rank->record[n - 1].stream == l->stream[l->order[k]];
}

/* A group's later parts wait for what its first one waits for. */
static void put_device(struct linker *l, uint32_t k)
{
    uint32_t i = l->order[k];
    const struct maq_chakra_node *v = &l->c->node[i];
    if (!in_group(l))
        put_waits(l, i);
    if (!meets(v) || !put_meeting(l, v))
        put_kernel(l, v);
    struct maq_rec *r = l->rank->n_records > 0 ? &l->rank->record[l->rank->n_records - 1] : &l->job->spare;
    r->stream = (uint16_t)l->stream[i];
    r->ns = (uint64_t)v->ns;
    l->last[l->stream[i]] = i;
}

static void end_group(struct linker *l)
{
    if (in_group(l))
        l->rank->record[l->rank->n_records - 1].flags &= (uint8_t)~MAQ_REC_MORE;
}

/* Events behind nodes order[from] .. order[to]: those of the parts of a group come behind its last. */
static void put_events(struct linker *l, uint32_t from, uint32_t to)
{
    for (uint32_t k = from; k <= to; k++) {
        uint32_t i = l->order[k];
        if (l->event[i] != WANTED)
            continue;
        l->event[i] = l->n_events++;
        struct maq_rec *r = put(l, MAQ_REC_EVENT_RECORD);
        r->stream = (uint16_t)l->stream[i];
        r->id = l->event[i];
    }
}

static enum maq_status put_all(struct linker *l)
{
    uint32_t first = 0; /* of the group that is being written */
    for (uint32_t k = 0; k < l->c->n && !l->job->failed; k++) {
        uint32_t i = l->order[k];
        if (l->stream[i] == NONE) {
            put_waits(l, i);
            put_host(l, &l->c->node[i]);
            first = k + 1;
            continue;
        }
        put_device(l, k);
        if (!continues(l, k + 1)) {
            end_group(l);
            put_events(l, first, k);
            first = k + 1;
        }
    }
    (void)put(l, MAQ_REC_END);
    l->rank->n_streams = l->streams.key.n;
    l->rank->n_events = l->n_events;
    return l->job->failed ? MAQ_NO_MEMORY : MAQ_OK;
}

enum maq_status maq_chakra_records(struct maq_import_job *job, struct maq_import_rank *rank, struct maq_chakra *c,
                                   struct maq_chakra_tally *tally)
{
    struct linker l = {.job = job, .rank = rank, .c = c, .tally = tally};
    maq_arena_init(&l.scratch, 0);
    enum maq_status status = link_nodes(&l);
    if (status == MAQ_OK)
        status = order_nodes(&l);
    if (status == MAQ_OK)
        status = find_streams(&l);
    if (status == MAQ_OK && l.streams.key.n == 0)
        status = maq_diag_fail(MAQ_BAD_INPUT, job->diag, MAQ_CODE_IMPORT_EMPTY, nowhere, NULL,
                               "%s: no node runs on a device", c->path);
    if (status == MAQ_OK) {
        want_events(&l);
        status = put_all(&l);
    }
    if (status == MAQ_NO_MEMORY)
        maq_diag_add(job->diag, MAQ_ERROR, MAQ_CODE_NO_MEMORY, nowhere, NULL, "%s: out of memory", c->path);
    maq_intern_map_fini(&l.streams);
    maq_arena_fini(&l.scratch);
    return status;
}
