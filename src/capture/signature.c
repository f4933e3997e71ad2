/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signature.c - normalises a rank's records and hashes them to the signature of its class. Order within groups of
 * messages, of exchanges and of frees, polling waits and handles of events depend on timing and are made canonical; build.h lists
 * what the signature covers.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "capture/build.h"

#define FLAGS (MAQ_REC_MORE | MAQ_REC_WAITS | MAQ_REC_FAILED | MAQ_REC_GRAPH)

static bool is_message(const struct maq_rec *r)
{
    return r->kind == MAQ_REC_SEND || r->kind == MAQ_REC_RECV;
}

static bool is_communication(const struct maq_rec *r)
{
    return r->kind == MAQ_REC_COLL || is_message(r);
}

/* Whether message a comes before b in a group: by communicator, kind, peer. */
static bool before(const struct maq_rec *a, const struct maq_rec *b)
{
    uint32_t ca = MAQ_REC_COLL_COMM(a->id), cb = MAQ_REC_COLL_COMM(b->id);
    if (ca != cb)
        return ca < cb;
    if (a->kind != b->kind)
        return a->kind < b->kind;
    return a->arg < b->arg;
}

/* Exchanges two messages of a group; host time and the flag MORE stay at their place. */
static void swap(struct maq_rec *a, struct maq_rec *b)
{
    struct maq_rec old = *a;
    uint8_t more_a = a->flags & MAQ_REC_MORE, more_b = b->flags & MAQ_REC_MORE;
    uint32_t host_a = a->host_ns, host_b = b->host_ns;
    *a = *b;
    *b = old;
    a->flags = (uint8_t)((a->flags & ~MAQ_REC_MORE) | more_a);
    b->flags = (uint8_t)((b->flags & ~MAQ_REC_MORE) | more_b);
    a->host_ns = host_a;
    b->host_ns = host_b;
}

/* Stable; groups are short or nearly in order but for a rotation, and a long one is merged. */
static void order_messages(struct maq_rec *r, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t k = i; k > 0 && is_message(&r[k]) && is_message(&r[k - 1]) && before(&r[k], &r[k - 1]); k--)
            swap(&r[k], &r[k - 1]);
}

static int by_block(const void *left, const void *right)
{
    const struct maq_rec *a = left, *b = right;
    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    return a->arg < b->arg ? -1 : a->arg > b->arg;
}

/*
 * Frees that follow each other, in the order of allocation: a program that ends takes its groups apart in the order of their
 * names.
 */
static void order_frees(struct maq_rec *r, uint32_t n)
{
    for (uint32_t i = 0, end; i < n; i = end) {
        for (end = i + 1; r[i].kind == MAQ_REC_FREE && end < n && r[end].kind == MAQ_REC_FREE;)
            end++;
        if (end - i > 1)
            qsort(r + i, end - i, sizeof *r, by_block);
    }
}

static bool is_of_memory(const struct maq_rec *r)
{
    return r->kind == MAQ_REC_ALLOC || r->kind == MAQ_REC_FREE;
}

/*
 * Exchanges come before allocations that stand between them: ranks that make all groups of a job one after the other take the
 * memory of their own one when its turn comes, at another place on each rank.
 */
static void order_exchanges(struct maq_rec *r, uint32_t n)
{
    for (uint32_t i = 0, end; i < n; i = end) {
        uint32_t boots = 0;
        for (end = i; end < n && (r[end].kind == MAQ_REC_BOOT || is_of_memory(&r[end])); end++)
            if (r[end].kind == MAQ_REC_BOOT) {
                struct maq_rec boot = r[end];
                memmove(&r[i + boots + 1], &r[i + boots], (end - i - boots) * sizeof *r);
                r[i + boots++] = boot;
            }
        end += end == i;
    }
}

/* Whether a record puts work on a stream, or a place in one that others may wait for. */
static bool is_work(const struct maq_rec *r)
{
    switch (r->kind) {
    case MAQ_REC_LAUNCH:
    case MAQ_REC_COPY:
    case MAQ_REC_SET:
    case MAQ_REC_HOST_CALL:
    case MAQ_REC_EVENT_RECORD:
    case MAQ_REC_STREAM_WAIT:
        return true;
    default:
        return is_communication(r);
    }
}

/*
 * A polling loop leaves a record where it had to wait, which depends on when peers arrived. Where the host then waits for the whole
 * device without launching anything between, the first wait changes no other time. Such records are dropped and their host time is
 * added to the next one, so that ranks that did not have to wait have equal records. Returns how many records are left.
 */
static uint32_t drop_polls(struct maq_rec *r, uint32_t n)
{
    bool covered = false; /* by a wait for the device */
    uint32_t at = n;
    for (uint32_t i = n; i-- > 0;) {
        bool poll =
            r[i].flags & MAQ_REC_POLLED && (r[i].kind == MAQ_REC_EVENT_SYNC || r[i].kind == MAQ_REC_STREAM_SYNC);
        covered = r[i].kind == MAQ_REC_DEVICE_SYNC || (covered && !is_work(&r[i]));
        if (poll && covered && at < n && r[at].host_ns <= UINT32_MAX - r[i].host_ns) {
            r[at].host_ns += r[i].host_ns;
            continue;
        }
        r[--at] = r[i];
        r[at].flags &= (uint8_t)~MAQ_REC_POLLED;
    }
    memmove(r, r + at, (n - at) * sizeof *r);
    return n - at;
}

uint32_t maq_capture_normalise(struct maq_rec *out, const struct maq_rank_trace *trace, const uint32_t *op,
                               const uint32_t *text)
{
    uint32_t group = 0, n;
    for (uint32_t i = 0; i < trace->n_records; i++) {
        struct maq_rec *r = &out[i];
        *r = trace->record[i];
        if (r->kind == MAQ_REC_LAUNCH)
            r->id = op[r->id];
        if (r->kind == MAQ_REC_MARK && r->id != MAQ_REC_NONE)
            r->id = text[r->id];
        if (is_message(r)) {
            const struct maq_rec_comm *c = &trace->comm[MAQ_REC_COLL_COMM(r->id)].head;
            r->arg = (r->arg + c->size - c->rank) % c->size;
        }
        bool more = is_communication(r) && r->flags & MAQ_REC_MORE;
        if (more)
            continue;
        if (is_communication(r) && i > group)
            order_messages(&out[group], i - group + 1);
        group = i + 1;
    }
    n = drop_polls(out, trace->n_records);
    order_exchanges(out, n);
    order_frees(out, n);
    return n;
}

static uint64_t shape_of(const struct maq_rec *r, const uint64_t *op)
{
    uint64_t h = maq_rec_mix((uint64_t)r->kind << 32 | (uint64_t)(r->flags & FLAGS) << 16 | r->stream, 3);
    switch (r->kind) {
    case MAQ_REC_LAUNCH:
        return maq_rec_mix(h, op[r->id]);
    case MAQ_REC_COLL:
    case MAQ_REC_SEND:
    case MAQ_REC_RECV:
        return maq_rec_mix(maq_rec_mix(h, (uint64_t)r->id << 32 | r->arg), r->bytes);
    case MAQ_REC_ALLOC:
    case MAQ_REC_FREE:
        return maq_rec_mix(h, (uint64_t)r->id << 32 | r->arg);
    case MAQ_REC_MARK:
        return maq_rec_mix(h, (uint64_t)r->id << 32 | r->arg);
    case MAQ_REC_EVENT_RECORD:
    case MAQ_REC_STREAM_WAIT:
    case MAQ_REC_EVENT_SYNC:
    case MAQ_REC_COPY:
        return maq_rec_mix(h, r->id);
    case MAQ_REC_END:
        return maq_rec_mix(h, (uint64_t)r->id << 32 | r->arg);
    default:
        return h;
    }
}

uint64_t maq_capture_op_shape(const struct maq_captured_op *op)
{
    struct maq_rec_op w = *op->what;
    if (w.kind == MAQ_REC_KERNEL || w.kind >= MAQ_REC_SEQUENCES) { /* of the program's own: sizes may hang on data */
        memset(w.grid, 0, sizeof w.grid);
        memset(w.d, 0, sizeof w.d);
        w.bytes = 0;
    }
    return maq_rec_hash(op->name, strlen(op->name), maq_rec_hash(&w, sizeof w, 7));
}

uint64_t maq_capture_signature(const struct maq_rec *record, uint32_t n, const uint64_t *op)
{
    uint64_t h = n;
    for (uint32_t i = 0; i < n; i++)
        if (record[i].kind != MAQ_REC_HOST && record[i].kind != MAQ_REC_READ && record[i].kind != MAQ_REC_BOOT)
            h = maq_rec_mix(h, shape_of(&record[i], op));
        else
            h = maq_rec_mix(h, record[i].kind);
    return h;
}

static bool on_device(const struct maq_rec *r)
{
    return maq_rec_on_device(r->arg) && !(r->flags & MAQ_REC_FAILED);
}

uint64_t maq_capture_peak(const struct maq_rec *record, uint32_t n, struct maq_arena *scratch)
{
    uint32_t allocs = 0;
    for (uint32_t i = 0; i < n; i++)
        if (record[i].kind == MAQ_REC_ALLOC && record[i].id >= allocs && record[i].id < UINT32_MAX)
            allocs = record[i].id + 1;
    if (allocs > n)
        return 0;
    struct maq_arena_mark mark = maq_arena_mark(scratch);
    uint64_t *size = MAQ_ARENA_NEW(scratch, uint64_t, allocs), now = 0, peak = 0;
    for (uint32_t i = 0; size && i < n; i++) {
        const struct maq_rec *r = &record[i];
        if (r->kind == MAQ_REC_ALLOC && on_device(r) && r->id < allocs) {
            size[r->id] = r->bytes < UINT64_MAX - now ? r->bytes : 0;
            now += size[r->id];
            peak = now > peak ? now : peak;
        }
        if (r->kind == MAQ_REC_FREE && r->id < allocs) {
            now -= size[r->id];
            size[r->id] = 0;
        }
    }
    maq_arena_reset(scratch, mark);
    return peak;
}

void maq_capture_count(struct maq_rank_class *c)
{
    c->n_streams = c->n_events = 0;
    for (uint32_t i = 0; i < c->n_records; i++) {
        const struct maq_rec *r = &c->record[i];
        if (r->stream != MAQ_REC_HOST_STREAM && r->kind != MAQ_REC_END && r->kind != MAQ_REC_HOST &&
            r->kind != MAQ_REC_BOOT && r->kind != MAQ_REC_MARK && r->stream >= c->n_streams)
            c->n_streams = r->stream + 1u;
        if ((r->kind == MAQ_REC_EVENT_RECORD || r->kind == MAQ_REC_STREAM_WAIT || r->kind == MAQ_REC_EVENT_SYNC) &&
            r->id >= c->n_events)
            c->n_events = r->id + 1;
    }
}
