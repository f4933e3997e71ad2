/* SPDX-License-Identifier: Apache-2.0 */
/*
 * setup.c - prepares a replay: programs, communicators and channels of all ranks, from a captured job and its edits. See engine.h.
 *
 * Ranks of a class share its program. A rank whose durations differ, by an edit, by its own recorded times or by its device, has a
 * program of its own, shared with ranks that differ in the same way.
 */
#include "replay/setup.h"

#include "capture/steps.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "capture/intern.h"

static enum maq_status no_memory(const struct maq_engine *e)
{
    return maq_no_memory(e->diag, "the replay");
}

static bool concerns(const struct maq_edit *edit, uint32_t rank)
{
    uint32_t stride = edit->stride > 0 ? edit->stride : 1;
    return rank >= edit->first && (rank - edit->first) % stride == 0 && (rank - edit->first) / stride < edit->count;
}

/* --- programs --- */

struct variant { /* the key of a program */
    uint32_t class, group, deltas_of, n_edits, edit[16];
};

static void find_deltas(const struct maq_rank_class *c, uint32_t rank, uint32_t *first, uint32_t *n)
{
    uint32_t low = 0, high = c->n_deltas;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (c->delta[mid].rank < rank)
            low = mid + 1;
        else
            high = mid;
    }
    *first = low;
    while (low < c->n_deltas && c->delta[low].rank == rank)
        low++;
    *n = low - *first;
}

static void edits_of(const struct maq_engine *e, struct maq_rank_state *r, struct variant *v)
{
    for (uint32_t i = 0; i < e->opts->n_edits; i++) {
        const struct maq_edit *edit = &e->opts->edit[i];
        if (!concerns(edit, r->rank))
            continue;
        if (edit->kind == MAQ_EDIT_LINK)
            r->link *= edit->factor;
        else if (edit->kind == MAQ_EDIT_FAIL && edit->at_ns >= 0)
            r->fail_at = edit->at_ns < r->fail_at ? edit->at_ns : r->fail_at;
        else if (v->n_edits < MAQ_COUNT(v->edit))
            v->edit[v->n_edits++] = i;
    }
}

static bool is_watched(const struct maq_engine *e, uint32_t rank)
{
    for (uint32_t i = 0; i < e->opts->n_watch; i++)
        if (e->opts->watch_rank[i] == rank)
            return true;
    return false;
}

static enum maq_status steps_of(struct maq_class_steps **out, struct maq_setup *s, uint32_t class)
{
    const struct maq_capture *capture = s->e->capture;
    if (!s->steps)
        s->steps = MAQ_ARENA_NEW(s->e->arena, struct maq_class_steps, capture->n_classes);
    if (!s->steps)
        return MAQ_NO_MEMORY;
    struct maq_class_steps *steps = *out = &s->steps[class];
    return steps->at ? MAQ_OK : maq_capture_steps(&steps->at, &steps->n, &steps->marked, capture, class, s->e->arena);
}

static enum maq_status make_program(struct maq_setup *s, const struct variant *v, bool folded,
                                    struct maq_replay_program *out)
{
    const struct maq_engine *e = s->e;
    const struct maq_rank_class *c = &e->capture->class_of_ranks[v->class];
    struct maq_edit edit[MAQ_COUNT(v->edit)];
    struct maq_replay_program_of of = {.c = c, .edit = edit, .n_edits = v->n_edits, .folded = folded};
    struct maq_class_steps *steps;
    uint32_t first = 0;
    MAQ_TRY(steps_of(&steps, s, v->class));
    of.step_at = steps->at;
    of.n_steps = steps->n;
    s->marked |= steps->marked;
    s->e->n_steps = steps->n > s->e->n_steps ? steps->n : s->e->n_steps;
    for (uint32_t i = 0; i < v->n_edits; i++)
        edit[i] = e->opts->edit[v->edit[i]];
    if (v->deltas_of != MAQ_NOBODY)
        find_deltas(c, v->deltas_of, &first, &of.n_deltas);
    of.delta = of.n_deltas > 0 ? c->delta + first : NULL;
    maq_setup_device(s, v->group, &of);
    return maq_replay_program_make(out, &of, s->priced ? &s->rows : NULL, e->arena);
}

static enum maq_status program_of(struct maq_setup *s, struct maq_rank_state *r, uint32_t class)
{
    struct maq_engine *e = s->e;
    const struct maq_rank_class *c = &e->capture->class_of_ranks[class];
    struct variant v = {.class = class, .deltas_of = MAQ_NOBODY, .group = maq_setup_group(s, r->rank)};
    uint32_t first, n;
    bool added;
    edits_of(e, r, &v);
    find_deltas(c, r->rank, &first, &n);
    if (n > 0)
        v.deltas_of = r->rank;
    r->watched = is_watched(e, r->rank);
    if (r->watched) { /* a program of its own, one instruction for each record */
        struct maq_replay_program *own = MAQ_ARENA_NEW(e->arena, struct maq_replay_program, 1);
        r->program = own;
        return own ? make_program(s, &v, false, own) : MAQ_NO_MEMORY;
    }
    uint32_t id = maq_intern_put(&s->variants, &v, sizeof v, &added);
    if (id == UINT32_MAX)
        return MAQ_NO_MEMORY;
    if (added) {
        if (id == s->program_room) {
            uint32_t room = s->program_room ? 2 * s->program_room : 64;
            struct maq_replay_program **grown = MAQ_ARENA_NEW(e->arena, struct maq_replay_program *, room);
            if (!grown)
                return MAQ_NO_MEMORY;
            if (id > 0)
                memcpy(grown, s->program, id * sizeof *grown);
            s->program = grown;
            s->program_room = room;
        }
        s->program[id] = MAQ_ARENA_NEW(e->arena, struct maq_replay_program, 1);
        if (!s->program[id])
            return MAQ_NO_MEMORY;
        MAQ_TRY(make_program(s, &v, true, s->program[id]));
    }
    r->program = s->program[id];
    return MAQ_OK;
}

/* --- communicators --- */

static uint32_t next_power(uint32_t n)
{
    uint32_t p = 1;
    while (p < n && p < UINT32_MAX / 2)
        p *= 2;
    return p;
}

static bool seat_ranks(struct maq_engine *e)
{
    const struct maq_capture *c = e->capture;
    size_t seats = 0;
    e->place = MAQ_ARENA_NEW(e->arena, struct maq_meeting_place, c->n_comms);
    if (!e->place)
        return false;
    for (uint32_t i = 0; i < c->n_comms; i++) {
        e->place[i].seats = (uint32_t)seats;
        e->place[i].size = c->comm[i].size;
        seats += c->comm[i].size;
    }
    e->seat = seats < UINT32_MAX ? MAQ_ARENA_NEW(e->arena, uint32_t, seats) : NULL;
    if (!e->seat)
        return false;
    memset(e->seat, 0xff, seats * sizeof *e->seat);
    for (uint32_t k = 0; k < c->n_classes; k++) {
        const struct maq_rank_class *m = &c->class_of_ranks[k];
        for (uint32_t i = 0; i < m->n_ranks; i++)
            for (uint32_t j = 0; j < m->n_comms; j++) {
                size_t at = (size_t)i * m->n_comms + j;
                if (m->comm[at] < c->n_comms && m->position[at] < c->comm[m->comm[at]].size)
                    e->seat[e->place[m->comm[at]].seats + m->position[at]] = m->rank[i];
            }
    }
    return true;
}

static bool open_places(struct maq_engine *e, uint32_t depth, uint32_t most_in_group)
{
    const struct maq_capture *c = e->capture;
    uint32_t per_node = c->per_node > 0 ? c->per_node : c->world;
    depth = next_power(depth * (most_in_group > 0 ? most_in_group : 1));
    for (uint32_t i = 0; i < c->n_comms; i++) {
        struct maq_meeting_place *p = &e->place[i];
        uint32_t node = UINT32_MAX;
        for (uint32_t k = 0; k < p->size; k++) {
            uint32_t rank = e->seat[p->seats + k];
            uint32_t member = rank != MAQ_NOBODY ? rank : c->comm[i].member[k];
            p->need += rank != MAQ_NOBODY;
            p->virtual_need += rank != MAQ_NOBODY && !e->rank[rank].live;
            if (member != MAQ_NOBODY) {
                p->leaves_node |= node != UINT32_MAX && node != member / per_node;
                node = member / per_node;
            }
        }
        p->depth = depth;
        p->times = 1;
        p->ring = MAQ_ARENA_NEW(e->arena, struct maq_meeting, depth);
        if (!p->ring)
            return false;
        for (uint32_t k = 0; k < depth; k++)
            p->ring[k].nth = UINT32_MAX;
    }
    return true;
}

/* --- channels --- */

static uint32_t channel(struct maq_setup *s, uint32_t comm, uint32_t from, uint32_t to)
{
    struct maq_engine *e = s->e;
    uint32_t key[3] = {comm, from, to}, per_node = e->capture->per_node > 0 ? e->capture->per_node : e->world;
    bool added;
    uint32_t id = maq_intern_put(&s->channels, key, sizeof key, &added);
    if (id == UINT32_MAX || !added)
        return id;
    if (id == s->channel_room) {
        uint32_t room = s->channel_room ? 2 * s->channel_room : 256;
        struct maq_channel *grown = realloc(e->channel, room * sizeof *grown);
        if (!grown)
            return UINT32_MAX;
        e->channel = grown;
        s->channel_room = room;
    }
    const uint32_t *seat = &e->seat[e->place[comm].seats], *member = e->capture->comm[comm].member;
    uint32_t a = seat[from] != MAQ_NOBODY ? seat[from] : member[from];
    uint32_t b = seat[to] != MAQ_NOBODY ? seat[to] : member[to];
    e->channel[id] =
        (struct maq_channel){.from = seat[from],
                             .to = seat[to],
                             .comm = comm,
                             .times = 1,
                             .from_position = from,
                             .to_position = to,
                             .leaves_node = a == MAQ_NOBODY || b == MAQ_NOBODY || a / per_node != b / per_node};
    e->n_channels = id + 1;
    return id;
}

static bool open_rank(struct maq_setup *s, struct maq_rank_state *r, const struct maq_rank_class *c, uint32_t nth)
{
    struct maq_engine *e = s->e;
    const struct maq_replay_program *p = r->program;
    const uint32_t *position = c->position + (size_t)nth * c->n_comms;
    uint32_t *channels = MAQ_ARENA_NEW(e->arena, uint32_t, p->n_channels);
    size_t clocks = 3 * (size_t)p->n_streams + p->n_registers;
    r->stream = MAQ_ARENA_NEW(e->arena, int64_t, clocks + c->n_comms);
    if (!channels || !r->stream)
        return false;
    r->reg = r->stream + p->n_streams;
    r->last_comm_ns = r->reg + p->n_registers;
    r->last_peer_ns = r->last_comm_ns + p->n_streams;
    r->done = (uint32_t *)(void *)(r->stream + clocks);
    r->arrived = r->done + c->n_comms;
    r->comm = c->comm + (size_t)nth * c->n_comms;
    for (uint32_t i = 0; i < p->n_channels; i++) {
        const struct maq_channel_of *of = &p->channel[i];
        uint32_t comm = r->comm[of->comm], own = position[of->comm], size = e->place[comm].size;
        uint32_t peer = (uint32_t)(((uint64_t)own + of->peer) % size);
        channels[i] = channel(s, comm, of->sends ? own : peer, of->sends ? peer : own);
        if (channels[i] == UINT32_MAX)
            return false;
    }
    r->channel = channels;
    r->parked_on = MAQ_NOBODY;
    return true;
}

/* --- the whole --- */

static enum maq_status open_ranks(struct maq_setup *s, uint32_t depth)
{
    struct maq_engine *e = s->e;
    const struct maq_capture *c = e->capture;
    uint32_t most = 1, comms = 1;
    for (uint32_t k = 0; k < c->n_classes; k++)
        for (uint32_t i = 0; i < c->class_of_ranks[k].n_ranks; i++) {
            struct maq_rank_state *r = &e->rank[c->class_of_ranks[k].rank[i]];
            r->rank = c->class_of_ranks[k].rank[i];
            r->link = 1;
            r->leader = r->rank;
            r->times = 1;
            r->fail_at = INT64_MAX;
            enum maq_status status = program_of(s, r, k);
            if (status != MAQ_OK)
                return status == MAQ_NO_MEMORY ? no_memory(e) : status;
            most = r->program->most_in_group > most ? r->program->most_in_group : most;
            comms = r->program->n_comms > comms ? r->program->n_comms : comms;
        }
    e->chain = MAQ_ARENA_NEW(e->arena, int64_t, comms);
    e->chain_of = MAQ_ARENA_NEW(e->arena, uint32_t, comms);
    e->step_end = MAQ_ARENA_NEW(e->arena, int64_t, e->n_steps);
    e->step_ended = MAQ_ARENA_NEW(e->arena, uint32_t, e->n_steps);
    if (!e->step_ended || !e->chain || !e->chain_of || !e->step_end || !open_places(e, depth, most))
        return no_memory(e);
    for (uint32_t k = 0; k < c->n_classes; k++)
        for (uint32_t i = 0; i < c->class_of_ranks[k].n_ranks; i++)
            if (!open_rank(s, &e->rank[c->class_of_ranks[k].rank[i]], &c->class_of_ranks[k], i))
                return no_memory(e);
    return maq_setup_prices(s);
}

static void fill_worklist(struct maq_engine *e)
{
    for (uint32_t i = e->world; i-- > 0;)
        if (e->rank[i].program && !e->rank[i].live && e->rank[i].leader == i) {
            e->rank[i].queued = true;
            e->n_ranks++;
            e->worklist[e->n_work++] = i;
        }
}

enum maq_status maq_engine_open(struct maq_engine *e, struct maq_setup *s, uint32_t depth)
{
    s->e = e;
    maq_intern_init(&s->variants, e->arena);
    maq_intern_init(&s->channels, e->arena);
    s->rows.arena = e->arena;
    e->worklist = MAQ_ARENA_NEW(e->arena, uint32_t, e->world);
    if (!e->worklist || !seat_ranks(e))
        return no_memory(e);
    MAQ_TRY(maq_setup_begin_prices(s));
    MAQ_TRY(open_ranks(s, depth));
    if (s->folds && !maq_engine_fold(e))
        return no_memory(e);
    fill_worklist(e);
    return MAQ_OK;
}
