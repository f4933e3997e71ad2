/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live.c - a replay among live ranks.
 *
 * In a collective with live members, the last replayed member to arrive enters all of them into its slot, at their
 * latest time. In a message with a live end the replayed end enters alone. Slots that wait for live ranks are on a
 * list; when the segment's bell rings, those that are complete settle in the engine as if the live ranks were
 * replayed. See live.h.
 */
#include "replay/live.h"

#include <stdlib.h>

#include "base/check.h"
#include "capture/codes.h"
#include "replay/matching.h"
#include "replay/result.h"
#include "replay/setup.h"

#define LIVE_DEPTH 64u

struct pending {
    struct maq_shm_slot *slot;
    uint32_t id, nth; /* communicator, or channel | MAQ_PARKED_CHANNEL */
    uint32_t others;  /* that came for whom */
};

struct live {
    struct maq_engine e;
    struct maq_shm *meet;
    const atomic_bool *ended; /* all live ranks have; NULL = they do not */
    struct pending *pending;
    uint32_t n, room;
    bool failed;
};

static void add(struct live *l, struct pending p)
{
    if (l->n == l->room) {
        uint32_t room = l->room ? 2 * l->room : 64;
        struct pending *grown = realloc(l->pending, room * sizeof *grown);
        if (!grown) {
            l->failed = true;
            return;
        }
        l->pending = grown;
        l->room = room;
    }
    l->pending[l->n++] = p;
}

static void on_collective(struct maq_engine *e, const struct maq_rec *rec, uint32_t comm, struct maq_meeting *m,
                          void *user)
{
    struct live *l = user;
    const struct maq_captured_comm *c = &e->capture->comm[comm];
    struct maq_shm_slot *slot =
        maq_shm_join(l->meet, c->lineage, m->nth, e->place[comm].need, maq_carried_bytes(rec, c->size, true));
    l->failed |= !slot;
    for (uint32_t i = 0; slot && i < e->place[comm].virtual_need; i++)
        maq_shm_come(l->meet, slot, 0, m->at, m->ns);
    if (slot)
        add(l, (struct pending){slot, comm, m->nth, e->place[comm].virtual_need});
}

static void on_message(struct maq_engine *e, const struct maq_rec *rec, uint32_t channel, uint32_t nth, bool sender,
                       void *user)
{
    struct live *l = user;
    const struct maq_channel *c = &e->channel[channel];
    const struct maq_message *m = &c->ring[nth & (c->depth - 1)];
    uint64_t lineage = e->capture->comm[c->comm].lineage;
    struct maq_shm_slot *slot = maq_shm_join(l->meet, maq_shm_message(lineage, c->from_position, c->to_position), nth,
                                             2, maq_carried_bytes(rec, 2, true));
    l->failed |= !slot;
    if (!slot)
        return;
    maq_shm_come(l->meet, slot, sender ? 0 : 1, sender ? m->sent : m->received, m->ns);
    add(l, (struct pending){slot, channel | MAQ_PARKED_CHANNEL, nth, 1});
}

static int64_t word(const int64_t *at)
{
    return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

/* Whether it could settle. */
static bool settle(struct live *l, const struct pending *p)
{
    struct maq_engine *e = &l->e;
    if (!maq_shm_complete(p->slot))
        return false;
    if (p->id & MAQ_PARKED_CHANNEL) {
        uint32_t channel = p->id & ~MAQ_PARKED_CHANNEL;
        const struct maq_channel *c = &e->channel[channel];
        bool live_sends = e->rank[c->from].live;
        if ((live_sends ? c->sends : c->receives) != p->nth)
            return false; /* in its order */
        maq_message_arrive(e, NULL, channel, live_sends, p->nth, word(&p->slot->at[live_sends ? 0 : 1]),
                           word(&p->slot->ns));
    } else {
        struct maq_meeting *m = maq_meeting_of(&e->place[p->id], p->nth);
        m->at = word(&p->slot->at[0]);
        m->ns = word(&p->slot->ns);
        maq_meeting_settle(e, p->id, m);
    }
    for (uint32_t i = 0; i < p->others; i++)
        maq_shm_leave(l->meet, p->slot);
    return true;
}

static bool settle_some(struct live *l)
{
    uint32_t kept = 0, n = l->n;
    bool some = false;
    for (uint32_t i = 0; i < n; i++) {
        struct pending p = l->pending[i];
        if (settle(l, &p))
            some = true;
        else
            l->pending[kept++] = p;
    }
    l->n = kept;
    return some;
}

static uint32_t others(const struct maq_engine *e)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->world; i++)
        n += e->rank[i].program && !e->rank[i].live;
    return n;
}

/* Runs until all replayed ranks have ended or cannot go on; false: stopped, or they wait for who comes no more. */
static bool play(struct live *l)
{
    uint32_t all = others(&l->e);
    for (;;) {
        uint32_t bell = maq_shm_bell(l->meet);
        bool ended =
            l->ended && atomic_load(l->ended); /* before it is looked who has come: then nobody is overlooked */
        maq_engine_run(&l->e);
        if (l->e.n_ended == all)
            return true;
        if (l->failed || l->e.out_of_memory)
            return false;
        if (settle_some(l) || maq_engine_look_ahead(&l->e))
            continue;
        if (l->n == 0)
            return true; /* replayed ranks wait for each other: a deadlock, or one of them failed */
        if (ended || !maq_shm_sleep(l->meet, bell))
            return false;
    }
}

static enum maq_status open_live(struct live *l, struct maq_setup *setup, const uint32_t *live, uint32_t n_live)
{
    struct maq_engine *e = &l->e;
    e->rank = MAQ_ARENA_NEW(e->arena, struct maq_rank_state, e->world);
    if (!e->rank)
        return maq_no_memory(e->diag, NULL);
    for (uint32_t i = 0; i < n_live; i++) {
        if (live[i] >= e->world || e->capture->class_of[live[i]] == UINT32_MAX)
            return maq_diag_fail(MAQ_NO, e->diag, MAQ_CODE_CAPTURE_UNKNOWN_RANKS, (struct maq_span){0}, NULL,
                                 "nothing is known of rank %u in the captured job", live[i]);
        e->rank[live[i]].live = true;
    }
    e->hooks = (struct maq_engine_hooks){.user = l, .collective = on_collective, .message = on_message};
    return maq_engine_open(e, setup, LIVE_DEPTH);
}

enum maq_status maq_replay_live(struct maq_replay **out, const struct maq_capture *capture, const uint32_t *live,
                                uint32_t n_live, struct maq_shm *meet, const atomic_bool *ended,
                                const struct maq_replay_opts *opts, struct maq_diag *diag)
{
    static const struct maq_replay_opts none = MAQ_REPLAY_OPTS_INIT;
    struct maq_arena arena;
    struct maq_setup setup = {0};
    struct live l = {.meet = meet, .ended = ended};
    maq_arena_init(&arena, 0);
    l.e = (struct maq_engine){
        .capture = capture, .opts = opts ? opts : &none, .arena = &arena, .diag = diag, .world = capture->world};
    enum maq_status status = open_live(&l, &setup, live, n_live);
    if (status == MAQ_OK) {
        if (play(&l))
            status = maq_replay_result_of(out, &l.e, &setup);
        else if (l.failed || l.e.out_of_memory)
            status = maq_no_memory(diag, NULL);
        else
            status = MAQ_NO;
    }
    maq_replay_kernels_free(setup.kernels);
    free(l.e.channel);
    free(l.pending);
    maq_arena_fini(&arena);
    return status;
}
