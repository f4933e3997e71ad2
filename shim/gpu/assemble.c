/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assemble.c - activities to records.
 *
 * Everything that one call caused has the call's correlation id: sorted by (id, the call first, start) the call stands before its work,
 * and gives it its place in the program's order, which is the order of calls. Work without a call (of a graph launched before
 * tracing began) is its own call, at its start.
 *
 * A program that drives one device from several threads (autograd) is laid on one line of host time: what overlaps is counted
 * once. Threads that cause no work (watchdogs that poll) are not on that line.
 */
#include "shim/gpu/activity.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A call and [first, first + n) of what it caused. */
struct group {
    int64_t start, end;
    size_t first, n;
};

/* Ids in the order of first use: from what CUPTI counts to what the trace counts. Open addressing, load at most a half. */
struct ids {
    uint64_t *key; /* + 1; 0 = free */
    uint32_t *value;
    uint32_t n, size;
};

struct assembly {
    const struct vg_sink *sink;
    struct ids stream, event, memory, op;
    int64_t told; /* the host's line is told up to here */
    int64_t gap;  /* host time of the record that comes next */
    uint32_t allocations;
    size_t dropped;
    bool failed;
};

static bool ids_grow(struct ids *ids)
{
    uint32_t size = ids->size ? ids->size * 2 : 64;
    struct ids next = {calloc(size, sizeof *next.key), calloc(size, sizeof *next.value), ids->n, size};
    if (!next.key || !next.value) {
        free(next.key);
        free(next.value);
        return false;
    }
    for (uint32_t i = 0; i < ids->size; i++) {
        if (!ids->key[i])
            continue;
        uint32_t at = (uint32_t)maq_rec_mix(ids->key[i], 0) & (size - 1);
        while (next.key[at])
            at = (at + 1) & (size - 1);
        next.key[at] = ids->key[i];
        next.value[at] = ids->value[i];
    }
    free(ids->key);
    free(ids->value);
    *ids = next;
    return true;
}

/* Where the id of a key is kept, NULL without memory; `fresh` says that it is new: then it is the next one. */
static uint32_t *place_of(struct assembly *a, struct ids *ids, uint64_t key, bool *fresh)
{
    *fresh = false;
    if (ids->n * 2 >= ids->size && !ids_grow(ids)) {
        a->failed = true;
        return NULL;
    }
    uint32_t at = (uint32_t)maq_rec_mix(key + 1, 0) & (ids->size - 1);
    while (ids->key[at] && ids->key[at] != key + 1)
        at = (at + 1) & (ids->size - 1);
    if (!ids->key[at]) {
        ids->key[at] = key + 1;
        ids->value[at] = ids->n++;
        *fresh = true;
    }
    return &ids->value[at];
}

static uint32_t id_of(struct assembly *a, struct ids *ids, uint64_t key, bool *fresh)
{
    uint32_t *place = place_of(a, ids, key, fresh);
    return place ? *place : 0;
}

static uint16_t stream_of(struct assembly *a, uint32_t stream)
{
    bool fresh;
    if (stream == MAQ_REC_NONE)
        return MAQ_REC_HOST_STREAM;
    uint32_t id = id_of(a, &a->stream, stream, &fresh);
    return id < MAQ_REC_HOST_STREAM ? (uint16_t)id : MAQ_REC_HOST_STREAM - 1;
}

static void put(struct assembly *a, struct maq_rec rec, const void *payload)
{
    if (a->gap > UINT32_MAX) {
        struct maq_rec host = {.kind = MAQ_REC_HOST, .stream = MAQ_REC_HOST_STREAM, .ns = (uint64_t)a->gap};
        a->sink->put(a->sink->to, host, NULL);
        a->gap = 0;
    }
    rec.host_ns = (uint32_t)a->gap;
    a->gap = 0;
    a->sink->put(a->sink->to, rec, payload);
}

/* The operator of a kernel: equal name and launch is one. */
static uint32_t operator_of(struct assembly *a, const struct vg_activity *k)
{
    const char *name = k->name ? k->name : "kernel";
    size_t bytes = strlen(name);
    struct maq_rec_op op;
    memset(&op, 0, sizeof op);
    op.kind = MAQ_REC_KERNEL;
    op.type = op.out = MAQ_REC_TYPE_OTHER;
    memcpy(op.grid, k->grid, sizeof op.grid);
    memcpy(op.block, k->block, sizeof op.block);
    op.shared = k->shared;
    op.name_bytes = (uint32_t)bytes;
    bool fresh;
    uint32_t id = id_of(a, &a->op, maq_rec_hash(name, bytes, maq_rec_hash(&op, sizeof op, 0)), &fresh);
    if (!fresh)
        return id;
    char *payload = malloc(sizeof op + bytes);
    if (!payload) {
        a->failed = true;
        return id;
    }
    memcpy(payload, &op, sizeof op);
    memcpy(payload + sizeof op, name, bytes);
    int64_t gap = a->gap;
    a->gap = 0;
    put(a,
        (struct maq_rec){.kind = MAQ_REC_DEF_OP, .stream = MAQ_REC_HOST_STREAM, .id = id, .bytes = sizeof op + bytes},
        payload);
    a->gap = gap;
    free(payload);
    return id;
}

static void put_memory(struct assembly *a, const struct vg_activity *m, struct maq_rec rec)
{
    bool fresh;
    uint32_t *place = place_of(a, &a->memory, m->address, &fresh);
    if (!place)
        return;
    /* An address is given out again after it was freed: that is another allocation. */
    if (m->kind == VG_ACT_ALLOC)
        *place = a->allocations++;
    else if (fresh)
        *place = MAQ_REC_NONE; /* allocated before tracing began */
    rec.kind = m->kind == VG_ACT_ALLOC ? MAQ_REC_ALLOC : MAQ_REC_FREE;
    rec.id = *place;
    rec.arg = m->id;
    rec.bytes = m->kind == VG_ACT_ALLOC ? m->bytes : 0;
    put(a, rec, NULL);
}

static void put_activity(struct assembly *a, const struct vg_activity *v)
{
    bool fresh;
    struct maq_rec rec = {.stream = stream_of(a, v->stream), .bytes = v->bytes, .ns = (uint64_t)(v->end - v->start)};
    rec.flags = v->graph ? MAQ_REC_GRAPH : 0;
    switch (v->kind) {
    case VG_ACT_KERNEL:
        rec.id = operator_of(a, v);
        rec.kind = MAQ_REC_LAUNCH;
        break;
    case VG_ACT_COPY:
        rec.kind = MAQ_REC_COPY;
        rec.id = v->id;
        break;
    case VG_ACT_SET:
        rec.kind = MAQ_REC_SET;
        break;
    case VG_ACT_ALLOC:
    case VG_ACT_FREE:
        rec.ns = 0;
        put_memory(a, v, rec);
        return;
    case VG_ACT_COMM:
        rec = v->rec;
        rec.stream = stream_of(a, v->stream);
        break;
    case VG_ACT_EVENT:
    case VG_ACT_STREAM_WAIT:
    case VG_ACT_EVENT_SYNC:
        rec.kind = v->kind == VG_ACT_EVENT         ? MAQ_REC_EVENT_RECORD
                   : v->kind == VG_ACT_STREAM_WAIT ? MAQ_REC_STREAM_WAIT
                                                   : MAQ_REC_EVENT_SYNC;
        rec.id = id_of(a, &a->event, v->id, &fresh);
        rec.ns = 0;
        break;
    case VG_ACT_STREAM_SYNC:
    case VG_ACT_DEVICE_SYNC:
        rec.kind = v->kind == VG_ACT_STREAM_SYNC ? MAQ_REC_STREAM_SYNC : MAQ_REC_DEVICE_SYNC;
        rec.ns = 0;
        break;
    default:
        return;
    }
    put(a, rec, NULL);
}

static bool waits(const struct vg_activity *v)
{
    return v->kind == VG_ACT_EVENT_SYNC || v->kind == VG_ACT_STREAM_SYNC || v->kind == VG_ACT_DEVICE_SYNC;
}

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* Total: CUPTI gives no two activities of one call with the same kind, start and place; what is left is told apart by `id`. */
static int by_correlation(const void *pa, const void *pb)
{
    const struct vg_activity *a = pa, *b = pb;
    int c = compare(a->correlation, b->correlation);
    if (!c)
        c = compare(a->kind != VG_ACT_CALL, b->kind != VG_ACT_CALL);
    if (!c)
        c = compare(a->start, b->start);
    if (!c)
        c = compare(a->kind, b->kind);
    if (!c)
        c = compare(a->stream, b->stream);
    return c ? c : compare(a->id, b->id);
}

static int by_start(const void *pa, const void *pb)
{
    const struct group *a = pa, *b = pb;
    int c = compare(a->start, b->start);
    return c ? c : compare((int64_t)a->first, (int64_t)b->first);
}

/* Calls with what they caused; without a call each activity is a group, if it can be. Returns how many. */
static size_t make_groups(struct assembly *a, struct group *out, const struct vg_activity *v, size_t n)
{
    size_t groups = 0;
    for (size_t i = 0; i < n;) {
        size_t end = i + 1;
        while (end < n && v[i].correlation && v[end].correlation == v[i].correlation)
            end++;
        if (v[i].kind == VG_ACT_CALL) {
            if (end > i + 1)
                out[groups++] = (struct group){v[i].start, v[i].end, i + 1, end - i - 1};
            i = end;
            continue;
        }
        for (; i < end; i++) {
            if (v[i].kind == VG_ACT_EVENT || v[i].kind == VG_ACT_STREAM_WAIT || v[i].kind == VG_ACT_CALL)
                a->dropped++;
            else
                out[groups++] =
                    (struct group){v[i].start, v[i].kind == VG_ACT_COMM || waits(&v[i]) ? v[i].end : v[i].start, i, 1};
        }
    }
    return groups;
}

static void put_group(struct assembly *a, const struct group *g, const struct vg_activity *v)
{
    int64_t waited = 0;
    for (size_t i = 0; i < g->n; i++)
        if (waits(&v[g->first + i]))
            waited += v[g->first + i].end - v[g->first + i].start;
    int64_t host = (g->end > a->told ? g->end - a->told : 0) - waited;
    a->gap += host > 0 ? host : 0;
    a->told = g->end > a->told ? g->end : a->told;
    for (size_t i = 0; i < g->n; i++)
        put_activity(a, &v[g->first + i]);
}

size_t vg_assemble(struct vg_activity *activities, size_t n, const struct vg_sink *sink)
{
    struct assembly a = {.sink = sink};
    struct group *groups = malloc((n ? n : 1) * sizeof *groups);
    if (!groups)
        return n;
    qsort(activities, n, sizeof *activities, by_correlation);
    size_t n_groups = make_groups(&a, groups, activities, n);
    qsort(groups, n_groups, sizeof *groups, by_start);
    a.told = n_groups ? groups[0].start : 0;
    for (size_t i = 0; i < n_groups; i++)
        put_group(&a, &groups[i], activities);
    struct ids *all[] = {&a.stream, &a.event, &a.memory, &a.op};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        free(all[i]->key);
        free(all[i]->value);
    }
    free(groups);
    return a.failed ? n : a.dropped;
}
