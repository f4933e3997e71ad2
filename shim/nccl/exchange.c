/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange.c - exchanges: n members each put in some bytes and get everybody's.
 *
 * Everything by which ranks find each other before they communicate is one: the members of a communicator, the colors of
 * a split, MPI's collectives, small collectives over memory that the host can see. What a rank puts in goes into its
 * trace (BOOT), so that other slices can be given it.
 *
 *   alone    others' contributions are those that their slices recorded; where there is none, a guess (assumed_contributions.c)
 *   meet     ranks that run put theirs into the segment and wait for each other in real time; those that are replayed
 *            (the segment says who lives) are as in `alone`
 *
 * An exchange takes no virtual time: it stands for start-up, which is not what a time line of training is about, and a
 * replay therefore orders nothing by it.
 *
 * A channel numbers its exchanges on each member: the nth that a member puts in meets the nth of the others. Slots of the
 * segment are named (channel, nth << 16 | piece); a contribution too large for one slot goes through it in pieces.
 */
#include "shim/nccl/nccl.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/core/core.h"

/* --- counters --------------------------------------------------------------------------------------------------------- */

struct counter {
    uint64_t key; /* 0 = free */
    uint32_t value;
};
static struct counter *counters;
static size_t n_counters, room;

static struct counter *counter_at(uint64_t key)
{
    size_t at = key & (room - 1);
    while (counters[at].key && counters[at].key != key)
        at = (at + 1) & (room - 1);
    return &counters[at];
}

static bool more_room(void)
{
    size_t old = room;
    struct counter *was = counters, *bigger = calloc(old ? old * 2 : 64, sizeof *bigger);
    if (!bigger)
        return false;
    counters = bigger;
    room = old ? old * 2 : 64;
    for (size_t i = 0; i < old; i++)
        if (was[i].key)
            *counter_at(was[i].key) = was[i];
    free(was);
    return true;
}

/* The counter of a key; `first` is where a new one begins. NULL: no memory. */
static uint32_t *counter(uint64_t key, uint32_t first)
{
    key = maq_rec_mix(key, 0) | 1;
    if (n_counters * 2 >= room && !more_room())
        return NULL;
    struct counter *c = counter_at(key);
    if (!c->key) {
        *c = (struct counter){.key = key, .value = first};
        n_counters++;
    }
    return &c->value;
}

uint32_t vg_count(uint64_t key)
{
    vg_lock();
    uint32_t *c = counter(key, 0), n = c ? (*c)++ : 0;
    vg_unlock();
    return n;
}

#define OBJECTS_KEPT (UINT64_C(64) << 20) /* bytes of objects in the trace of a rank */

void vg_exchange_record(uint64_t channel, uint32_t me, const void *mine, uint64_t bytes)
{
    static uint32_t channels; /* numbered in the order of first use */
    static uint64_t objects;
    vg_lock();
    if (bytes > MAQ_CARRIED_NUMBERS && objects + bytes > OBJECTS_KEPT)
        mine = NULL;
    else if (mine && bytes > MAQ_CARRIED_NUMBERS)
        objects += bytes;
    uint32_t *number = counter(channel, channels);
    if (number && *number == channels)
        channels++;
    vg_record((struct maq_rec){.kind = MAQ_REC_BOOT,
                               .stream = MAQ_REC_HOST_STREAM,
                               .id = number ? *number : MAQ_REC_NONE,
                               .arg = me,
                               .bytes = mine ? bytes : 0,
                               .ns = channel},
              mine && bytes ? mine : NULL);
    vg_unlock();
}

/* --- the segment ------------------------------------------------------------------------------------------------------ */

static struct maq_shm segment;
static pthread_once_t segment_once = PTHREAD_ONCE_INIT;
static bool no_segment; /* the card says to meet, and there is nothing to meet in */

static void open_segment(void)
{
    const struct vg_card *card = vg_card();
    if (card->meets && maq_shm_open(&segment, card->meet) != 0) {
        no_segment = true;
        static const char said[] = "maquette: the segment in which ranks meet cannot be opened: peers have failed\n";
        if (write(STDERR_FILENO, said, sizeof said - 1) < 0)
            return;
    }
}

struct maq_shm *vg_shm(void)
{
    pthread_once(&segment_once, open_segment);
    return segment.head ? &segment : NULL;
}

bool vg_peers_failed(void)
{
    struct maq_shm *meet = vg_shm();
    return no_segment || (meet && maq_shm_stopped(meet));
}

bool vg_meeting_wait(const struct maq_shm_slot *slot)
{
    struct maq_shm *meet = vg_shm();
    unsigned held = vg_lock_drop(); /* streams go on, and other threads of the program */
    bool known = false, alive = true;
    while (!known && alive) {
        uint32_t bell = maq_shm_bell(meet);
        known = maq_shm_complete(slot);
        alive = known || maq_shm_sleep(meet, bell);
    }
    vg_lock_again(held);
    return known;
}

/* --- an exchange ------------------------------------------------------------------------------------------------------ */

/* Whether member i runs at this time, so that it is waited for. */
static bool comes(const struct maq_shm *meet, const struct vg_exchange *x, uint32_t i)
{
    if (!meet->head->live_at || i == x->me)
        return true;
    return x->members ? maq_shm_lives(meet, x->members[i]) : x->all_ranks && maq_shm_lives(meet, i);
}

/* Bytes that go through a slot at one time. */
static uint64_t piece_bytes(const struct vg_exchange *x)
{
    uint64_t most = MAQ_SHM_PAYLOAD / (x->need ? x->need : 1);
    return x->bytes < most ? x->bytes : most;
}

static bool put_piece(struct maq_shm *meet, struct vg_exchange *x, uint64_t at)
{
    uint64_t most = piece_bytes(x), bytes = x->bytes - at < most ? x->bytes - at : most;
    uint64_t name = (uint64_t)x->seq << 16 | (most ? at / most : 0);
    x->slot = maq_shm_join(meet, x->channel, name, x->need, bytes);
    if (!x->slot)
        return false;
    if (x->mine)
        maq_shm_put(meet, x->slot, x->place, (const char *)x->mine + at, bytes);
    maq_shm_come(meet, x->slot, 0, 0, 0);
    return true;
}

bool vg_exchange_put(struct vg_exchange *x)
{
    struct maq_shm *meet = vg_shm();
    x->seq = vg_count(maq_rec_mix(x->channel, (uint64_t)x->me + 1));
    x->slot = NULL;
    x->all_ranks = x->n == vg_card()->world && x->me == vg_card()->rank;
    vg_exchange_record(x->channel, x->me, x->mine, x->bytes);
    if (!meet)
        return !no_segment;
    x->need = x->place = 0;
    for (uint32_t i = 0; i < x->n; i++) {
        x->place += i < x->me && comes(meet, x, i);
        x->need += comes(meet, x, i);
    }
    return x->need == 1 || put_piece(meet, x, 0); /* nobody else comes */
}

/* One piece of everybody who comes: from the slot into all[], with the others' places left out. */
static bool get_piece(struct maq_shm *meet, struct vg_exchange *x, unsigned char *all, unsigned char *have, uint64_t at)
{
    if (!vg_meeting_wait(x->slot))
        return false;
    uint64_t bytes = x->slot->bytes;
    for (uint32_t i = 0, place = 0; i < x->n; i++) {
        if (!comes(meet, x, i))
            continue;
        const void *got = maq_shm_got(meet, x->slot, place++);
        if (!got || (x->root != MAQ_REC_NONE && i != x->root))
            continue;
        memcpy(all + (x->root == MAQ_REC_NONE ? (uint64_t)i * x->bytes : 0) + at, got, bytes);
        have[i] = 1;
    }
    maq_shm_leave(meet, x->slot);
    return true;
}

static bool get_pieces(struct maq_shm *meet, struct vg_exchange *x, unsigned char *all, unsigned char *have)
{
    uint64_t most = piece_bytes(x);
    if (!get_piece(meet, x, all, have, 0))
        return false;
    for (uint64_t at = most; most && at < x->bytes; at += most)
        if (!put_piece(meet, x, at) || !get_piece(meet, x, all, have, at))
            return false;
    return true;
}

/* What slices recorded. */
static void get_recorded(struct vg_exchange *x, unsigned char *all, unsigned char *have)
{
    bool from_one = x->root != MAQ_REC_NONE;
    for (uint32_t i = from_one ? x->root : 0; i < (from_one ? x->root + 1 : x->n); i++) {
        const void *got = have[i] || i == x->me ? NULL : vg_contribution(x->channel, x->seq, i, x->bytes);
        if (!got)
            continue;
        memcpy(all + (from_one ? 0 : (uint64_t)i * x->bytes), got, x->bytes);
        have[i] = 1;
    }
}

bool vg_exchange_get(struct vg_exchange *x, void *all)
{
    struct maq_shm *meet = vg_shm();
    unsigned char *have = calloc(1, x->n);
    if (!have)
        return false;
    bool ok = !x->slot || get_pieces(meet, x, all, have);
    if (x->root == MAQ_REC_NONE && x->mine)
        memmove((unsigned char *)all + (uint64_t)x->me * x->bytes, x->mine, x->bytes);
    have[x->me] = 1;
    if (ok)
        get_recorded(x, all, have);
    x->certain = true;
    for (uint32_t i = 0; i < x->n; i++)
        x->certain = x->certain && (have[i] || (x->root != MAQ_REC_NONE && i != x->root));
    x->by_pattern =
        ok && !x->certain && x->ranks &&
        ((x->all_ranks && vg_all_ranks(all, have, x->n)) || vg_member_pattern(all, have, x->n, x->me, x->nth));
    enum maq_input_steady steady = x->by_pattern ? MAQ_INPUT_SETTLED : MAQ_INPUT_STEADY;
    if (ok && !x->certain && x->root == MAQ_REC_NONE && !x->by_pattern &&
        !vg_assumed_contributions(all, have, x->n, x->me, x->members, x->bytes, x->colors))
        steady = MAQ_INPUT_LOOSE;
    if (ok)
        vg_input_record_exchange(x, all, have, steady);
    free(have);
    return ok;
}

bool vg_exchange(uint64_t channel, uint32_t n, uint32_t me, const void *mine, uint64_t bytes, void *all)
{
    struct vg_exchange x = {.channel = channel, .n = n, .me = me, .mine = mine, .bytes = bytes, .root = MAQ_REC_NONE};
    return vg_exchange_put(&x) && vg_exchange_get(&x, all);
}

bool vg_exchange_from(uint64_t channel, uint32_t n, uint32_t me, uint32_t root, void *data, uint64_t bytes)
{
    struct vg_exchange x = {
        .channel = channel, .n = n, .me = me, .mine = me == root ? data : NULL, .bytes = bytes, .root = root};
    if (!vg_exchange_put(&x))
        return false;
    return vg_exchange_get(&x, data);
}
