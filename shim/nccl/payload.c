/* SPDX-License-Identifier: Apache-2.0 */
/*
 * payload.c - collectives and messages that are really carried out: small ones (<= 64 KiB from each member) over memory
 * that the host can see. Counts of tokens, flags, shapes, losses: what a program looks at and decides by. Of single bytes also larger ones
 * (<= 1 MiB) that begin with what the host wrote: objects, which their reader takes apart.
 *
 *   meet     contributions lie in the slot of the meeting; each member computes its own result, in the order of ranks
 *   alone    integers: contributions that slices recorded, by (communicator, call); whoever has none is taken to say what the
 *            last known one before him says, since ranks that follow each other mostly do the same
 *            floating point: one's own, n times for a sum, n factors for a product, itself for the rest
 *
 * An all-gather in place keeps what is in the other places where nobody recorded them (ranks initialise alike), and an
 * all-to-all gives back what one sends (token counts keep their sum). A broadcast or a message that nobody recorded leaves
 * the buffer as it is. Larger ones move nothing: no kernel has run, so there is nothing to move. Reductions that a program
 * made itself (ncclRedOpCreatePreMulSum) are not carried out. What a kernel would have written into the buffer is zeros to the others.
 */
#include "shim/nccl/gather_guess.h"
#include "shim/nccl/nccl.h"

#include <stdlib.h>
#include <string.h>

/* What one member brings and takes away, in bytes. */
struct sizes {
    uint64_t in, out;
    bool brings, takes;
};

static bool is_message(const struct vg_meeting *m)
{
    return m->rec.kind != MAQ_REC_COLL;
}

static struct sizes sizes_of(const struct vg_meeting *m, uint32_t n, uint32_t me)
{
    uint64_t b = m->rec.bytes;
    bool root = m->rec.arg == me;
    if (is_message(m))
        return (struct sizes){b, b, m->rec.kind == MAQ_REC_SEND, m->rec.kind == MAQ_REC_RECV};
    switch (MAQ_REC_COLL_KIND(m->rec.id)) {
    case MAQ_REC_BROADCAST:
        return (struct sizes){b, b, root, true};
    case MAQ_REC_REDUCE:
        return (struct sizes){b, b, true, root};
    case MAQ_REC_ALL_GATHER:
        return (struct sizes){b, b * n, true, true};
    case MAQ_REC_GATHER:
        return (struct sizes){b, b * n, true, root};
    case MAQ_REC_REDUCE_SCATTER:
        return (struct sizes){b * n, b, true, true};
    case MAQ_REC_SCATTER:
        return (struct sizes){b * n, b, root, true};
    case MAQ_REC_ALL_TO_ALL:
        return (struct sizes){b * n, b * n, true, true};
    default:
        return (struct sizes){b, b, true, true};
    }
}

uint64_t vg_payload_bytes(const struct vg_meeting *m)
{
    const struct vg_comm *comm = vg_comm_of(MAQ_REC_COLL_COMM(m->rec.id));
    if (!comm || MAQ_REC_COLL_OP(m->rec.id) >= VG_NCCL_OPS || !sizes_of(m, comm->n, comm->me).in)
        return 0;
    return maq_carried_bytes(&m->rec, comm->n, vg_shm() != NULL);
}

#define BEGINNING 16 /* bytes of an object */

/* Bytes that begin with what the host wrote: behind them may be padding, to the length of the longest of all members. */
static bool is_object(const struct vg_meeting *m, const void *in)
{
    const uint64_t first = m->rec.bytes < BEGINNING ? m->rec.bytes : BEGINNING;
    return MAQ_REC_COLL_TYPE(m->rec.id) == MAQ_REC_U8 && vg_mem_true(in, first);
}

bool vg_payload_carries(const struct vg_meeting *m, const void *in)
{
    const uint64_t bytes = vg_payload_bytes(m);
    return bytes > 0 && (bytes <= MAQ_CARRIED_NUMBERS || !in || is_object(m, in));
}

/* Programs' allocators cut small buffers out of large allocations: what lies there becomes real when it is asked for, so much at a time. */
static bool visible(const void *p, uint64_t bytes)
{
    const char *at = p;
    bool all = p != NULL;
    for (uint64_t done = 0, piece; all && done < bytes; done += piece) {
        piece = bytes - done < MAQ_CARRIED_OBJECT ? bytes - done : MAQ_CARRIED_OBJECT;
        all = vg_mem_touch(at + done, piece);
    }
    return all;
}

/* What the host may make of the result: as much as of what went in. An object that nobody brought is none. */
static void tell(const struct vg_meeting *m, bool came)
{
    const bool known = m->in ? vg_mem_true(m->in, m->in_bytes) : came || m->rec.bytes <= MAQ_CARRIED_NUMBERS;
    if (m->out && known)
        vg_mem_told(m->out, m->out_bytes);
    else if (m->out)
        vg_mem_written(m->out, m->out_bytes);
}

/* --- where contributions come from -------------------------------------------------------------------------------------- */

struct source {
    const struct vg_meeting *m;
    const struct vg_comm *comm;
    const struct maq_shm *meet; /* NULL: alone */
    const struct maq_shm_slot *slot;
    uint64_t bytes;
    bool asked;                /* somebody else may have brought something */
    const unsigned char *last; /* that was known; NULL: none yet */
    struct vg_reads reads;
    struct vg_taint taint; /* what somebody is to be asked for; .bytes 0: nothing is */
    uint64_t taint_at;     /* where in the result */
};

static bool of_integers(const struct vg_meeting *m)
{
    return MAQ_REC_COLL_TYPE(m->rec.id) <= MAQ_REC_U64;
}

/* Each call is a channel of its own, so that ranks whose buffers cannot be seen leave no gap in the count. */
static uint64_t channel_of(const struct vg_meeting *m)
{
    return maq_rec_mix(vg_channel(m->a, is_message(m) ? VG_CHANNEL_MESSAGE : VG_CHANNEL_COLL), m->b);
}

/* What lies at that place of the exchange; NULL: nobody knows. */
static const void *at_place(const struct source *s, uint32_t place)
{
    const void *got = s->meet ? maq_shm_got(s->meet, s->slot, place) : NULL;
    if (!s->asked)
        return NULL;
    return got || !of_integers(s->m) ? got : vg_contribution(channel_of(s->m), 0, place, s->bytes);
}

/* What member i brought; NULL: nobody knows. */
static const unsigned char *from(const struct source *s, uint32_t i)
{
    return i == s->comm->me && s->m->in ? s->m->in : at_place(s, i);
}

/* The first that is known; one's own at the latest. */
static const unsigned char *first_known(const struct source *s)
{
    const unsigned char *p = NULL;
    for (uint32_t i = 0; s->asked && i < s->comm->n && !p; i++)
        p = from(s, i);
    return p ? p : s->m->in;
}

/* What member i brought or is taken to have brought. Members are asked for in their order. */
static const unsigned char *supposed(struct source *s, uint32_t i, uint64_t at)
{
    const unsigned char *p = from(s, i);
    bool known = p && i != s->comm->me;
    if (!of_integers(s->m))
        return p ? p : s->m->in;
    if (p || !s->last)
        s->last = p ? p : first_known(s);
    vg_reads_place(&s->reads, i, s->last + at, known);
    return s->last;
}

/* acc = acc op p op p ..., or p op p ... where it is the first. */
static void fold_in(unsigned char *acc, bool first, const unsigned char *p, uint32_t times, const struct source *s,
                    uint64_t bytes)
{
    unsigned type = MAQ_REC_COLL_TYPE(s->m->rec.id), op = MAQ_REC_COLL_OP(s->m->rec.id);
    uint64_t count = bytes / vg_type_bytes(type);
    unsigned char *all = acc + bytes; /* of these */
    if (first || times > 1)
        vg_repeat(first ? acc : all, p, count, type, op, times);
    if (!first)
        vg_reduce(acc, times > 1 ? all : p, count, type, op);
}

/* out = the reduction of everybody's [at, at + bytes). */
static void fold(struct source *s, uint64_t at, uint64_t bytes)
{
    unsigned type = MAQ_REC_COLL_TYPE(s->m->rec.id), op = MAQ_REC_COLL_OP(s->m->rec.id);
    uint32_t n = s->comm->n, times = 0, runs = 0;
    unsigned char *acc = malloc(2 * bytes + 1);
    const unsigned char *run = NULL;
    for (uint32_t i = 0; acc && i < n; i++) {
        const unsigned char *p = supposed(s, i, at);
        if (run && p != run) {
            fold_in(acc, runs++ == 0, run + at, times, s, bytes);
            times = 0;
        }
        run = p;
        times++;
    }
    if (run && runs == 0) { /* equal ones: rounded once */
        memcpy(acc, run + at, bytes);
        vg_repeat(s->m->out, acc, bytes / vg_type_bytes(type), type, op, op == VG_NCCL_AVG ? 1 : n);
    } else if (run) {
        fold_in(acc, false, run + at, times, s, bytes);
        vg_reduced(acc, bytes / vg_type_bytes(type), type, op, n);
        memcpy(s->m->out, acc, bytes);
    }
    free(acc);
}

/* Who was to say it, and where. */
static struct vg_taint taint_of(const struct source *s, uint32_t place, uint64_t bytes)
{
    const struct vg_comm *comm = s->comm;
    bool message = is_message(s->m);
    uint32_t all = comm->n == vg_card()->world && comm->me == vg_card()->rank;
    return (struct vg_taint){.channel = channel_of(s->m),
                             .call = s->m->b,
                             .bytes = bytes,
                             .place = place,
                             .n = comm->n,
                             .rank = comm->members && place < comm->n ? comm->members[place]
                                     : all                            ? place
                                                                      : MAQ_REC_NONE,
                             .kind = message ? MAQ_REC_NONE : MAQ_REC_COLL_KIND(s->m->rec.id),
                             .real = !of_integers(s->m)};
}

/* A sample that has said nothing is asked for: where the host reads it, one at a time. */
static void ask_sample(struct source *s, uint32_t place, uint64_t bytes)
{
    if (s->taint.bytes > 0 || MAQ_REC_COLL_TYPE(s->m->rec.id) != MAQ_REC_U8 || !vg_is_sample(s->comm->n, place))
        return;
    s->taint = taint_of(s, place, bytes);
    s->taint_at = place * bytes;
}

/* Place i of out = [0, bytes) of what member i brought. */
static void gather(struct source *s, uint64_t bytes)
{
    const uint32_t n = s->comm->n, me = s->comm->me;
    unsigned char *out = s->m->out, *all = malloc(n * bytes + 1);
    const bool in_place = s->m->in == out + me * bytes, whole = of_integers(s->m);
    struct vg_gather_guess g;
    if (vg_gather_guess_open(&g, n, bytes, MAQ_REC_COLL_TYPE(s->m->rec.id)) && all) {
        for (uint32_t i = 0; i < n; i++)
            g.said[i] = from(s, i);
        vg_gather_guess_settle(&g);
        memcpy(all, out, n * bytes);
        for (uint32_t i = 0; i < n; i++) {
            const unsigned char *p = g.said[i];
            if (!p && !in_place)
                p = whole ? vg_gather_guess_of(&g, i) : s->m->in;
            else if (!p && g.pattern)
                p = vg_gather_guess_of(&g, i);
            if (whole)
                vg_reads_place(&s->reads, i, p ? p : all + i * bytes, g.said[i] && i != me);
            if (p)
                memcpy(all + i * bytes, p, bytes);
            if (!g.said[i])
                ask_sample(s, i, bytes);
        }
        memcpy(out, all, n * bytes);
    }
    vg_gather_guess_close(&g);
    free(all);
}

/* Place i of out = [me * bytes, + bytes) of what member i brought; one's own [i * bytes, + bytes) where nobody knows. */
static void transpose(struct source *s, uint64_t bytes)
{
    uint32_t n = s->comm->n, me = s->comm->me;
    const unsigned char *in = s->m->in;
    unsigned char *all = malloc(n * bytes + 1);
    for (uint32_t i = 0; all && in && i < n; i++) {
        const unsigned char *p = from(s, i), *part = p ? p + me * bytes : in + i * bytes;
        if (of_integers(s->m))
            vg_reads_place(&s->reads, i, part, p && i != me);
        memcpy(all + i * bytes, part, bytes);
    }
    if (all && in)
        memcpy(s->m->out, all, n * bytes);
    free(all);
}

/*
 * A number in a buffer that nobody has filled, which may be what lay there before: an allocator's memory. As a length it would be a program's last, so
 * one that is none (above 2 GiB) becomes zero.
 */
static bool is_no_length(const struct source *s, uint64_t bytes)
{
    const unsigned type = MAQ_REC_COLL_TYPE(s->m->rec.id);
    int64_t x;
    if (bytes != sizeof x || (type != MAQ_REC_I64 && type != MAQ_REC_U64))
        return false;
    memcpy(&x, s->m->out, sizeof x);
    return x < 0 || x > INT32_MAX;
}

/* What one alone brought; the buffer stays as it is where nobody knows. */
static void take(struct source *s, uint32_t whose, const unsigned char *p, uint64_t at, uint64_t bytes)
{
    const bool blank = !p && !s->m->supposed && is_no_length(s, bytes);
    if (blank)
        memset(s->m->out, 0, bytes);
    if (of_integers(s->m))
        vg_reads_place(&s->reads, whose, p ? p + at : s->m->out, p);
    if (p)
        memmove(s->m->out, p + at, bytes);
    else if (!s->m->supposed)
        s->taint = taint_of(s, s->m->rec.arg, bytes);
    s->taint.zeros = blank;
}

static void collect(struct source *s)
{
    uint64_t b = s->m->rec.bytes;
    uint32_t root = s->m->rec.arg;
    switch (MAQ_REC_COLL_KIND(s->m->rec.id)) {
    case MAQ_REC_ALL_REDUCE:
    case MAQ_REC_REDUCE:
        fold(s, 0, b);
        break;
    case MAQ_REC_REDUCE_SCATTER:
        fold(s, s->comm->me * b, b);
        break;
    case MAQ_REC_ALL_GATHER:
    case MAQ_REC_GATHER:
        gather(s, b);
        break;
    case MAQ_REC_ALL_TO_ALL:
        transpose(s, b);
        break;
    case MAQ_REC_BROADCAST:
        take(s, root, from(s, root), 0, b);
        break;
    default:
        take(s, root, from(s, root), s->comm->me * b, b);
    }
}

/* Where in a contribution begins what this member reads. */
static uint64_t read_at(const struct vg_meeting *m, uint32_t me)
{
    unsigned kind = MAQ_REC_COLL_KIND(m->rec.id);
    bool cut =
        !is_message(m) && (kind == MAQ_REC_REDUCE_SCATTER || kind == MAQ_REC_ALL_TO_ALL || kind == MAQ_REC_SCATTER);
    return cut ? me * m->rec.bytes : 0;
}

/* A message has places 0 = sender, 1 = receiver. */
static void finish(struct source *s)
{
    const struct vg_meeting *m = s->m;
    bool numbers = of_integers(m), message = is_message(m);
    if (!m->out)
        return;
    s->asked = s->meet || (numbers && vg_contributed(channel_of(m)));
    const struct vg_reads_part part = {.whole = s->bytes,
                                       .at = read_at(m, s->comm->me),
                                       .n = m->rec.bytes,
                                       .object = MAQ_REC_COLL_TYPE(m->rec.id) == MAQ_REC_U8};
    if (numbers)
        vg_reads_begin(&s->reads, channel_of(m), message ? 1 : s->comm->me, &part);
    if (message)
        take(s, 0, at_place(s, 0), 0, m->rec.bytes);
    else
        collect(s);
    if (numbers)
        vg_reads_end(&s->reads);
}

/* --- what is under way ------------------------------------------------------------------------------------------------ */

/* Buffers of meetings that have begun and not ended, under the lock. Few: hosts look at small results soon. */
static struct pending {
    struct pending *next;
    uint64_t a, b;
    const char *in, *out;
    uint64_t in_bytes, out_bytes;
} * pending;

static void remember(const struct vg_meeting *m)
{
    struct pending *p = malloc(sizeof *p);
    if (!p)
        return;
    *p = (struct pending){.a = m->a, .b = m->b, .in = m->in, .out = m->out};
    p->in_bytes = m->in_bytes;
    p->out_bytes = m->out_bytes;
    vg_lock();
    p->next = pending;
    pending = p;
    vg_unlock();
}

static void forget(const struct vg_meeting *m)
{
    vg_lock();
    for (struct pending **at = &pending; *at; at = &(*at)->next)
        if ((*at)->a == m->a && (*at)->b == m->b && (*at)->in == m->in && (*at)->out == m->out) {
            struct pending *gone = *at;
            *at = gone->next;
            free(gone);
            break;
        }
    vg_unlock();
}

static bool overlap(const char *p, uint64_t n, const char *q, uint64_t m)
{
    return q && (uintptr_t)p < (uintptr_t)q + m && (uintptr_t)q < (uintptr_t)p + n;
}

void vg_payload_settle(const void *p, uint64_t bytes, struct vg_stream *s)
{
    bool used = false;
    vg_lock();
    for (const struct pending *at = pending; at && !used; at = at->next)
        used = overlap(p, bytes, at->in, at->in_bytes) || overlap(p, bytes, at->out, at->out_bytes);
    vg_unlock();
    int64_t end;
    if (used && !vg_stream_capturing(s))
        (void)vg_stream_end(s, &end);
}

void vg_payload_begin(struct vg_meeting *m, const void *in, void *out)
{
    const struct vg_comm *comm = vg_comm_of(MAQ_REC_COLL_COMM(m->rec.id));
    m->in = m->out = NULL;
    m->in_bytes = m->out_bytes = 0;
    uint64_t bytes = vg_payload_bytes(m);
    if (!comm)
        return;
    struct sizes sizes = sizes_of(m, comm->n, comm->me);
    const bool carried = vg_payload_carries(m, sizes.brings ? in : NULL);
    if (!carried && sizes.takes && out)
        vg_mem_written(out, sizes.out);
    if (!carried || (sizes.brings && !visible(in, sizes.in)) || (sizes.takes && !visible(out, sizes.out)))
        return;
    m->in = sizes.brings ? (void *)(uintptr_t)in : NULL;
    m->out = sizes.takes ? out : NULL;
    m->in_bytes = sizes.brings ? sizes.in : 0;
    m->out_bytes = sizes.takes ? sizes.out : 0;
    if (m->in) /* or others would be told what lay there before, which hangs on where allocators put things */
        vg_mem_blank(m->in, m->in_bytes);
    if (m->in && is_object(m, m->in)) /* its padding, which nobody reads, is as good as its own bytes */
        vg_mem_told(m->in, m->in_bytes);
    if (of_integers(m) && m->in)
        vg_exchange_record(channel_of(m), is_message(m) ? 0 : comm->me, m->in, m->in_bytes);
    if (!vg_shm()) {
        struct source s = {.m = m, .comm = comm, .bytes = bytes};
        finish(&s);
        tell(m, s.taint.bytes == 0);
        if (s.taint.bytes > 0)
            vg_taint_mark((char *)m->out + s.taint_at, &s.taint);
    } else if (m->in || m->out) {
        remember(m);
    }
}

const void *vg_payload_said(const struct vg_meeting *m, uint32_t place)
{
    uint64_t bytes = of_integers(m) ? vg_payload_bytes(m) : 0;
    return bytes > 0 ? vg_contribution(channel_of(m), 0, place, bytes) : NULL;
}

void vg_payload_put(struct maq_shm *meet, struct maq_shm_slot *slot, const struct vg_meeting *m)
{
    const struct vg_comm *comm = vg_comm_of(MAQ_REC_COLL_COMM(m->rec.id));
    if (comm && m->in)
        maq_shm_put(meet, slot, is_message(m) ? 0 : comm->me, m->in, m->in_bytes);
}

void vg_payload_get(struct maq_shm *meet, struct maq_shm_slot *slot, const struct vg_meeting *m)
{
    const struct vg_comm *comm = vg_comm_of(MAQ_REC_COLL_COMM(m->rec.id));
    if (m->in || m->out)
        forget(m);
    if (comm && m->out) {
        struct source s = {.m = m, .comm = comm, .meet = meet, .slot = slot, .bytes = vg_payload_bytes(m)};
        finish(&s);
        tell(m, s.taint.bytes == 0);
        if (s.taint.bytes > 0)
            vg_taint_mark((char *)m->out + s.taint_at, &s.taint);
    }
}
