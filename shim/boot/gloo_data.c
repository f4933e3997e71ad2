/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gloo_data.c - what ranks that are not there put into collectives of gloo.
 *
 * In a host program: the tensors of those other ranks.
 *
 * What is known of a collective is what goes over connections: its slot, which holds the kind (the upper 8 bits) and a number that the
 * ranks count alike, who sends how many bytes to whom, and where they lie in this process. Not known: types, and which reduction it is.
 *
 *   kind            algorithm of gloo                     others put in
 *   all-reduce,     ring: segments are summed into a      zeros: sums are what this rank put in. In all-reduces of a few
 *   reduce          buffer of its own, then sent round    numbers what the last rank's slice did
 *   all-gather      ring: pieces of own, then of others   what their slices put in; else what the last one before
 *                                                         them did that is known, this rank among them
 *   broadcast       tree                                  what the root's slice did; else the buffer stays
 *   gather          each to the root                      as in an all-gather, but for what this rank puts in
 *   scatter,        one to one                            what that rank's slice sent; else zeros
 *   messages
 *   all-to-all      each to each                          what this rank sends to them
 *   barrier         nothing moves
 *
 * Slices tell each other what they put in, up to 1 MiB at a time; all-to-all, sums and what is larger are not told.
 *
 * The first two pieces that a rank sends in a ring all-gather are its own, for gloo cuts each contribution in two
 * halves; the pieces that arrive are halves of the ranks before it, the nearest first. Of a ring all-reduce a segment
 * that arrives in memory from which this rank has sent before is a final one and stays as it is; what arrives
 * elsewhere is to be added.
 *
 * Segments are numbered from 0, two or more to a rank. A rank sends first, as it was given them, those behind its own, so the last rank sends
 * the first ones; and these are the first that each other rank gets, when all ranks between have added to them. Where a segment is one
 * number (gloo cuts at numbers) there are few, and programs decide by them: the least that ranks have free, a flag. The ranks
 * between are taken to put in what the last one does, and so a least, a largest or a common flag is right where ranks are alike. Source:
 * gloo/{types.h,allreduce.cc,reduce.cc,allgather.cc,broadcast.cc,gather.cc,scatter.cc,alltoall.cc,barrier.cc} of
 * pytorch/gloo.
 */
#include "shim/boot/gloo_data.h"

#include <stdlib.h>
#include <string.h>

#include "shim/boot/device_lookup.h"
#include "shim/grow.h"
#include "shim/shm.h"

enum { GATHER = 1, ALLGATHER, REDUCE, ALLREDUCE, SCATTER, BROADCAST, BARRIER, ALLTOALL };
enum { CALLS_KEPT = 1024, A_NUMBER = 8, OWN = 2 }; /* OWN: segments of a rank, at least */
#define TOLD_MOST MAQ_CARRIED_OBJECT

struct piece {
    const void *data;
    uint64_t bytes;
    uint32_t to;
};

struct vg_gloo_call {
    struct vg_gloo_call *next;
    uint64_t key, channel, group, number; /* number: that the ranks count alike, or the tag of messages */
    unsigned kind;
    bool told, by_pair;
    uint64_t announced, asked, open; /* open: requests that are not answered yet */
    uint64_t first;                  /* bytes of what was announced first */
    struct piece *sent;              /* of the kinds whose pieces come back */
    uint64_t n_sent;
    uint32_t room;
    uintptr_t low, high; /* from where it sent */
    struct vg_gloo_answer *waiting;
};
static struct vg_gloo_call *calls; /* the newest first */
static unsigned n_calls;

/* --- calls ------------------------------------------------------------------------------------------------------------ */

static void drop(struct vg_gloo_call **at)
{
    struct vg_gloo_call *call = *at;
    *at = call->next;
    free(call->sent);
    free(call);
    n_calls--;
}

/* The oldest that is over; those of messages count on. */
static void drop_oldest(void)
{
    struct vg_gloo_call **oldest = NULL;
    for (struct vg_gloo_call **at = &calls; *at; at = &(*at)->next)
        if (!(*at)->open && !(*at)->by_pair)
            oldest = at;
    if (oldest)
        drop(oldest);
}

void vg_gloo_over(uint64_t group)
{
    for (struct vg_gloo_call **at = &calls; *at;)
        if ((*at)->group == group && !(*at)->open)
            drop(at);
        else
            at = &(*at)->next;
}

struct vg_gloo_call *vg_gloo_call_of(const struct vg_gloo_ends *ends, uint64_t slot)
{
    unsigned kind = (unsigned)(slot >> 56);
    bool by_pair = kind < GATHER || kind > ALLTOALL;
    uint64_t channel = maq_rec_mix(maq_rec_mix(0x676c6f6f, ends->peer.group), slot);
    uint64_t key = maq_rec_mix(channel, by_pair ? (uint64_t)ends->peer.rank + 1 : 0);
    for (struct vg_gloo_call *call = calls; call; call = call->next)
        if (call->key == key)
            return call;
    if (n_calls >= CALLS_KEPT)
        drop_oldest();
    struct vg_gloo_call *call = calloc(1, sizeof *call);
    if (!call)
        return NULL;
    *call = (struct vg_gloo_call){.next = calls,
                                  .key = key,
                                  .channel = channel,
                                  .group = ends->peer.group,
                                  .number = slot >> 24 & 0xffffffffu,
                                  .kind = kind,
                                  .by_pair = by_pair,
                                  .low = UINTPTR_MAX};
    calls = call;
    n_calls++;
    return call;
}

void vg_gloo_announced(struct vg_gloo_call *call, uint64_t bytes)
{
    if (call->announced++ == 0)
        call->first = bytes;
}

void vg_gloo_asked(struct vg_gloo_answer *answer)
{
    answer->index = answer->call->asked++;
    answer->call->open++;
}

void vg_gloo_answered(struct vg_gloo_answer *answer)
{
    answer->call->open--;
}

struct vg_gloo_answer **vg_gloo_waiting(struct vg_gloo_call *call)
{
    return &call->waiting;
}

void vg_gloo_free(struct vg_gloo_answer *answer)
{
    free(answer->own);
    free(answer);
}

void vg_gloo_forget(const struct vg_gloo_pair *pair)
{
    for (struct vg_gloo_call *call = calls; call; call = call->next)
        for (struct vg_gloo_answer **at = &call->waiting; *at;) {
            struct vg_gloo_answer *answer = *at;
            if (answer->pair != pair) {
                at = &answer->next;
                continue;
            }
            *at = answer->next;
            call->open--;
            vg_gloo_free(answer);
        }
}

/* --- what this rank puts in --------------------------------------------------------------------------------------------- */

/* For the slices of others. What is too large is nothing, and counts. */
static void tell(uint64_t channel, uint32_t me, const void *data, uint64_t bytes)
{
    const struct vg_hooks *device = vg_device_beside();
    if (device)
        device->record(channel, me, bytes > 0 && bytes <= TOLD_MOST ? data : NULL, bytes <= TOLD_MOST ? bytes : 0);
}

/* What one rank says to another has a channel of its own. */
static uint64_t channel_to(const struct vg_gloo_call *call, uint32_t rank)
{
    return maq_rec_mix(call->channel, (uint64_t)rank + 1);
}

/* Both halves of the own contribution to an all-gather. */
static void tell_halves(struct vg_gloo_call *call, uint32_t me)
{
    static unsigned char whole[TOLD_MOST];
    const struct piece *half = call->sent;
    uint64_t bytes = half[0].bytes + half[1].bytes;
    if (half[0].bytes > 0 && bytes <= TOLD_MOST)
        memcpy(whole, half[0].data, half[0].bytes);
    if (half[1].bytes > 0 && bytes <= TOLD_MOST)
        memcpy(whole + half[0].bytes, half[1].data, half[1].bytes);
    tell(call->channel, me, whole, bytes);
}

/* What the last rank puts into an all-reduce of a few numbers: the first two segments, if there are as many; one that it sends again is a sum. */
static void tell_numbers(struct vg_gloo_call *call, const struct vg_gloo_ends *ends, const void *data, uint64_t bytes)
{
    bool last = ends->peer.n > 0 && ends->me == ends->peer.n - 1, again = (uintptr_t)data < call->high;
    if (call->kind != ALLREDUCE || !last || bytes == 0 || bytes > A_NUMBER || call->n_sent >= OWN || again)
        return;
    call->n_sent++;
    tell(call->channel, 0, data, bytes);
}

static bool keep(struct vg_gloo_call *call, struct piece piece)
{
    struct piece *more = vg_grown(call->sent, call->n_sent, &call->room, 8, sizeof *more);
    if (more == NULL)
        return false;
    call->sent = more;
    call->sent[call->n_sent++] = piece;
    return true;
}

void vg_gloo_sent(struct vg_gloo_call *call, const struct vg_gloo_ends *ends, const void *data, uint64_t bytes)
{
    uintptr_t at = (uintptr_t)data;
    switch (call->kind) {
    case REDUCE:
    case ALLREDUCE:
        tell_numbers(call, ends, data, bytes);
        call->low = at < call->low ? at : call->low;
        call->high = at + bytes > call->high ? at + bytes : call->high;
        return;
    case ALLGATHER:
        if (keep(call, (struct piece){data, bytes, ends->peer.rank}) && call->n_sent == 2)
            tell_halves(call, ends->me);
        return;
    case ALLTOALL:
        (void)keep(call, (struct piece){data, bytes, ends->peer.rank});
        return;
    case BROADCAST: /* who has not asked for it is its root */
        if (!call->told && call->asked == 0)
            tell(call->channel, 0, data, bytes);
        call->told = true;
        return;
    case GATHER:
        tell(call->channel, ends->me, data, bytes);
        return;
    case BARRIER:
        return;
    default:
        tell(channel_to(call, ends->peer.rank), ends->me, data, bytes);
    }
}

/* --- what others do ----------------------------------------------------------------------------------------------------- */

static bool copied(struct vg_gloo_answer *answer, const void *from, uint64_t bytes)
{
    answer->with = VG_GLOO_COPIED;
    answer->from = from;
    answer->from_bytes = bytes;
    return true;
}

/* What the slice of a rank put in, if it has the size that is wanted. */
static bool told(struct vg_gloo_answer *answer, uint64_t channel, uint32_t seq, uint32_t rank)
{
    const struct vg_hooks *device = vg_device_beside();
    uint64_t bytes = 0;
    const void *found = device && answer->bytes > 0 && answer->bytes <= TOLD_MOST
                            ? device->contribution(channel, seq, rank, &bytes)
                            : NULL;
    return found && bytes == answer->bytes && copied(answer, found, bytes);
}

/*
 * Nobody has said what is asked for. Which rank was to: of a broadcast rank 0 most likely, since who sends is one between the root and this
 * one in gloo's tree; once that has run to its end and was not it, the one who sends. Groups that are not of all ranks have names alone.
 */
static void tainted_read(const struct vg_gloo_answer *answer, uint32_t kind, uint32_t place)
{
    const struct vg_hooks *device = vg_device_beside();
    uint32_t n = answer->ends.peer.n;
    if (!device || answer->bytes == 0 || answer->bytes > TOLD_MOST)
        return;
    bool of_all = n == device->card()->world && answer->ends.me == device->card()->rank;
    if (kind == MAQ_REC_BROADCAST && of_all && answer->ends.me != 0 && !device->ran(0))
        place = 0; /* where it waits for this rank, it is not asked for */
    device->tainted_read(&(struct vg_taint){.channel = answer->call->channel,
                                            .call = answer->call->number,
                                            .bytes = answer->bytes,
                                            .rank = of_all ? place : MAQ_REC_NONE,
                                            .place = place != MAQ_REC_NONE ? place : answer->ends.peer.rank,
                                            .n = n,
                                            .kind = kind,
                                            .zeros = answer->with == VG_GLOO_ZEROS});
}

/* What a pattern gives for a rank that has put nothing into a gather: from byte `at` of `bytes` on. */
static bool told_by_pattern(struct vg_gloo_answer *answer, uint32_t place, uint64_t bytes, uint64_t at)
{
    const struct vg_hooks *device = vg_device_beside();
    unsigned char *own = bytes > at && bytes <= TOLD_MOST ? malloc(bytes) : NULL;
    if (!own || !device->by_pattern(own, answer->call->channel, answer->ends.peer.n, place, bytes)) {
        free(own);
        return false;
    }
    free(answer->own);
    answer->own = own;
    return copied(answer, own + at, bytes - at < answer->bytes ? bytes - at : answer->bytes);
}

/* What a rank put into a gather, or is taken to have put in. Where that is less than is asked for the rest is zeros: as below. */
static bool told_gather(struct vg_gloo_answer *answer)
{
    const struct vg_hooks *device = vg_device_beside();
    uint32_t place = answer->ends.peer.rank, who = place;
    uint64_t bytes = 0;
    const void *found = device && answer->bytes > 0 && answer->bytes <= TOLD_MOST
                            ? device->near(answer->call->channel, 0, &who, &bytes)
                            : NULL;
    /* the others are taken to follow it, or samples: they alone are asked for */
    bool first = place == (answer->ends.me == 0 ? 1 : 0) || (device && device->sample(answer->ends.peer.n, place));
    if (first ? who != place || !found : !found)
        tainted_read(answer, MAQ_REC_GATHER, first ? place : MAQ_REC_NONE);
    if (found && who != place && told_by_pattern(answer, place, answer->bytes, 0))
        return true;
    return found && bytes > 0 && bytes <= answer->bytes && copied(answer, found, bytes);
}

/* A message that at least two ranks before the peer have sent under this tag: so do all. One of a pipeline has two neighbours. */
static bool told_as_others(struct vg_gloo_answer *answer)
{
    const struct vg_hooks *device = vg_device_beside();
    const struct vg_gloo_call *call = answer->call;
    uint32_t peer = answer->ends.peer.rank, before = peer, first;
    uint64_t bytes = 0, channel = channel_to(call, answer->ends.me);
    if (!device || call->kind == SCATTER || !device->near(channel, (uint32_t)answer->index, &before, &bytes) ||
        before >= peer || before == 0)
        return false;
    first = before - 1;
    const void *found = device->near(channel, (uint32_t)answer->index, &first, &bytes);
    return found && first < before && bytes == answer->bytes && copied(answer, found, bytes);
}

/* One half of what the slice of a rank put into an all-gather. PyTorch pads objects to the largest: where the slice knew of no larger one than
 * its own it put in less, and the rest is zeros. Who has put in nothing is taken to say what the last one before him does. */
static bool told_half(struct vg_gloo_answer *answer)
{
    const struct vg_hooks *device = vg_device_beside();
    uint64_t n = answer->ends.peer.n, bytes = 0, half = answer->index % 2, first = answer->call->first;
    bool a_half = answer->bytes == first || (half && answer->bytes == first + 1);
    if (n == 0 || !device || answer->bytes == 0 || answer->bytes > TOLD_MOST || !a_half)
        return false;
    uint64_t rank = (answer->ends.me + 2 * n - 1 - answer->index / 2 % n) % n, at = half ? first : 0;
    uint32_t who = (uint32_t)rank, me = answer->ends.me;
    const unsigned char *found = device->near(answer->call->channel, 0, &who, &bytes);
    const bool alike = found && who != rank && bytes / 2 == first; /* all have as many bytes */
    if (alike && told_by_pattern(answer, (uint32_t)rank, bytes, at))
        return true;
    bool own = who != rank && (who < rank ? who < me && me <= rank : me < who); /* what this rank does is nearer */
    return found && !own && bytes > 0 && copied(answer, found + (at < bytes ? at : 0), at < bytes ? bytes - at : 0);
}

/* The first segments that another rank gets of an all-reduce of a few numbers. */
static bool told_numbers(struct vg_gloo_answer *answer)
{
    const struct vg_gloo_call *call = answer->call;
    uint32_t last = answer->ends.peer.n > 0 ? answer->ends.peer.n - 1 : 0;
    if (call->kind != ALLREDUCE || answer->ends.me >= last || answer->index >= OWN || answer->bytes > A_NUMBER)
        return false;
    bool known = told(answer, call->channel, (uint32_t)answer->index, 0);
    if (!known && answer->index == 0)
        tainted_read(answer, MAQ_REC_ALL_REDUCE, last);
    return known;
}

/* What this rank has sent to the one that is asked. */
static bool sent_there(struct vg_gloo_answer *answer)
{
    const struct vg_gloo_call *call = answer->call;
    for (uint64_t i = 0; i < call->n_sent; i++)
        if (call->sent[i].to == answer->ends.peer.rank)
            return copied(answer, call->sent[i].data, call->sent[i].bytes);
    return false;
}

/* The half of this rank's own that comes in turn. Where contributions differ in size gloo does not cut them, and what this rank passes on
 * in the same turn has the size. */
static bool sent_in_turn(struct vg_gloo_answer *answer)
{
    const struct piece *sent = answer->call->sent, *piece = &sent[answer->index % 2];
    if (piece->bytes != answer->bytes)
        piece = &sent[answer->index];
    return copied(answer, piece->data, piece->bytes);
}

bool vg_gloo_find(struct vg_gloo_answer *answer)
{
    const struct vg_gloo_call *call = answer->call;
    answer->with = VG_GLOO_ZEROS;
    switch (call->kind) {
    case REDUCE:
    case ALLREDUCE:
        if (!told_numbers(answer))
            answer->with = VG_GLOO_REDUCED;
        return true;
    case ALLGATHER:
        if (told_half(answer) || answer->index >= call->announced) /* it sends to ranks that are there */
            return true;
        return answer->index < call->n_sent && sent_in_turn(answer);
    case ALLTOALL:
        return sent_there(answer);
    case BROADCAST:
        if (!told(answer, call->channel, 0, 0)) {
            answer->with = VG_GLOO_KEPT;
            tainted_read(answer, MAQ_REC_BROADCAST, answer->ends.peer.rank);
        }
        return true;
    case GATHER:
        (void)told_gather(answer);
        return true;
    default:
        if (!told(answer, channel_to(call, answer->ends.me), (uint32_t)answer->index, answer->ends.peer.rank) &&
            !told_as_others(answer))
            tainted_read(answer, call->kind == SCATTER ? MAQ_REC_SCATTER : MAQ_REC_NONE, answer->ends.peer.rank);
        return true;
    }
}

void vg_gloo_fill(const struct vg_gloo_answer *answer, void *to)
{
    const struct vg_gloo_call *call = answer->call;
    uintptr_t at = (uintptr_t)to;
    bool final = answer->with == VG_GLOO_REDUCED && at >= call->low && at < call->high;
    uint64_t n = answer->with == VG_GLOO_COPIED ? answer->from_bytes : 0;
    n = n < answer->bytes ? n : answer->bytes;
    if (answer->with == VG_GLOO_KEPT || final)
        return;
    if (n > 0)
        memmove(to, answer->from, n);
    memset((unsigned char *)to + n, 0, answer->bytes - n);
}
