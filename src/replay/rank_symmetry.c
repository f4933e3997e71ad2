/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_symmetry.c - colour refinement: of ranks that cannot differ only one is replayed.
 *
 * Ranks get colours. At first those with the same program (edits, recorded differences and devices included) have the same one.
 * Then, until no colour splits: the colour of a communicator is the set of (colour of a member, which of its communicators
 * that is), and ranks stay together whose communicators have the same colours and whose messages go to and come from the same
 * colours by the same channels. Such a partition is equitable: what a rank computes from its own clocks and from those of
 * the ranks that it meets is the same for all of a colour, and since collectives and messages are maxima, how many of a
 * colour meet does not count. So one rank of each stands for all, exactly. (Colour refinement: Berkholz, Bonsma, Grohe, "Tight
 * lower and upper bounds for the complexity of canonical colour refinement", 2013.)
 *
 * A job without edits is reduced to about as many ranks as it has classes; one slow rank splits off the ranks that are affected
 * by it earlier than others.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "capture/intern.h"
#include "replay/setup.h"

struct fold {
    struct maq_engine *e;
    struct maq_arena scratch;
    uint32_t *color, *next; /* [world] */
    uint32_t n_colors, n_comm_colors;
    uint32_t *comm_color;      /* [n_comms] */
    uint32_t *seat_ordinal;    /* by seat: which of the rank's communicators it is */
    uint32_t *channel_ordinal; /* [2 * n_channels] which of its channels it is, for sender and receiver */
    uint64_t *pairs;           /* scratch of a communicator */
    uint32_t *key;             /* scratch of a rank */
    struct maq_intern sets;    /* of the last round: what each colour of a communicator is */
};

static bool takes_part(const struct maq_engine *e, uint32_t rank)
{
    return e->rank[rank].program != NULL;
}

/* --- colours --- */

static bool begin(struct fold *f)
{
    const struct maq_engine *e = f->e;
    uint32_t widest = 1, most = 1;
    size_t seats = 0;
    for (uint32_t i = 0; i < e->capture->n_comms; i++) {
        seats += e->place[i].size;
        widest = e->place[i].size > widest ? e->place[i].size : widest;
    }
    for (uint32_t r = 0; r < e->world; r++)
        if (takes_part(e, r)) {
            uint32_t n = 1 + e->rank[r].program->n_comms + 3 * e->rank[r].program->n_channels;
            most = n > most ? n : most;
        }
    f->color = MAQ_ARENA_NEW(&f->scratch, uint32_t, e->world);
    f->next = MAQ_ARENA_NEW(&f->scratch, uint32_t, e->world);
    f->comm_color = MAQ_ARENA_NEW(&f->scratch, uint32_t, e->capture->n_comms);
    f->seat_ordinal = MAQ_ARENA_NEW(&f->scratch, uint32_t, seats);
    f->channel_ordinal = MAQ_ARENA_NEW(&f->scratch, uint32_t, 2 * (size_t)e->n_channels);
    f->pairs = MAQ_ARENA_NEW(&f->scratch, uint64_t, widest);
    f->key = MAQ_ARENA_NEW(&f->scratch, uint32_t, most);
    return f->color && f->next && f->comm_color && f->seat_ordinal && f->channel_ordinal && f->pairs && f->key;
}

static bool first_colors(struct fold *f)
{
    struct maq_engine *e = f->e;
    struct maq_intern ids;
    maq_intern_init(&ids, &f->scratch);
    for (uint32_t r = 0; r < e->world; r++) {
        const struct maq_rank_state *s = &e->rank[r];
        if (!takes_part(e, r))
            continue;
        struct {
            const struct maq_replay_program *program;
            double link;
            int64_t fail_at;
        } key = {s->program, s->link, s->fail_at};
        f->color[r] = maq_intern_put(&ids, &key, sizeof key, NULL);
        if (f->color[r] == UINT32_MAX)
            return false;
        for (uint32_t i = 0; i < s->program->n_channels; i++)
            f->channel_ordinal[2 * (size_t)s->channel[i] + (s->program->channel[i].sends ? 0 : 1)] = i;
    }
    f->n_colors = ids.n;
    return true;
}

static void find_ordinals(struct fold *f)
{
    const struct maq_capture *c = f->e->capture;
    for (uint32_t k = 0; k < c->n_classes; k++) {
        const struct maq_rank_class *m = &c->class_of_ranks[k];
        for (size_t i = 0; i < (size_t)m->n_ranks * m->n_comms; i++)
            f->seat_ordinal[f->e->place[m->comm[i]].seats + m->position[i]] = (uint32_t)(i % m->n_comms);
    }
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The set of (colour, ordinal) of a communicator's members, in order; how many there are. */
static uint32_t set_of(struct fold *f, uint32_t comm)
{
    const struct maq_meeting_place *p = &f->e->place[comm];
    uint32_t n = 0, kept = 0;
    for (uint32_t i = 0; i < p->size; i++) {
        uint32_t rank = f->e->seat[p->seats + i];
        if (rank == MAQ_NOBODY)
            continue;
        uint64_t pair = (uint64_t)f->color[rank] << 32 | f->seat_ordinal[p->seats + i];
        if (n == 0 || f->pairs[n - 1] != pair)
            f->pairs[n++] = pair;
    }
    qsort(f->pairs, n, sizeof *f->pairs, by_value);
    for (uint32_t i = 0; i < n; i++)
        if (i == 0 || f->pairs[i] != f->pairs[i - 1])
            f->pairs[kept++] = f->pairs[i];
    return kept;
}

static bool color_comms(struct fold *f)
{
    const struct maq_engine *e = f->e;
    struct maq_intern lies;
    maq_intern_init(&f->sets, &f->scratch);
    maq_intern_init(&lies, &f->scratch);
    for (uint32_t i = 0; i < e->capture->n_comms; i++) {
        uint32_t n = set_of(f, i), set = maq_intern_put(&f->sets, f->pairs, n * sizeof *f->pairs, NULL);
        uint32_t key[3] = {set, e->place[i].placement, e->place[i].leaves_node};
        f->comm_color[i] = set != UINT32_MAX ? maq_intern_put(&lies, key, sizeof key, NULL) : UINT32_MAX;
        if (f->comm_color[i] == UINT32_MAX)
            return false;
    }
    f->n_comm_colors = lies.n;
    return true;
}

static uint32_t color_of(const struct fold *f, uint32_t rank)
{
    return rank == MAQ_NOBODY ? MAQ_NOBODY : f->color[rank];
}

static bool color_ranks(struct fold *f)
{
    const struct maq_engine *e = f->e;
    struct maq_intern ids;
    maq_intern_init(&ids, &f->scratch);
    for (uint32_t r = 0; r < e->world; r++) {
        const struct maq_rank_state *s = &e->rank[r];
        uint32_t n = 0;
        if (!takes_part(e, r))
            continue;
        f->key[n++] = f->color[r];
        for (uint32_t i = 0; i < s->program->n_comms; i++)
            f->key[n++] = f->comm_color[s->comm[i]];
        for (uint32_t i = 0; i < s->program->n_channels; i++) {
            const struct maq_channel *c = &e->channel[s->channel[i]];
            bool sends = s->program->channel[i].sends;
            f->key[n++] = color_of(f, sends ? c->to : c->from);
            f->key[n++] = f->channel_ordinal[2 * (size_t)s->channel[i] + (sends ? 1 : 0)];
            f->key[n++] = c->placement << 1 | c->leaves_node;
        }
        f->next[r] = maq_intern_put(&ids, f->key, n * sizeof *f->key, NULL);
        if (f->next[r] == UINT32_MAX)
            return false;
    }
    uint32_t *old = f->color;
    f->color = f->next;
    f->next = old;
    bool more = ids.n > f->n_colors;
    f->n_colors = ids.n;
    return more;
}

/* --- one rank for each --- */

/* Communicators of one colour are one place, where each member of the set comes once. */
static bool fold_places(struct fold *f, const uint32_t *leader)
{
    struct maq_engine *e = f->e;
    struct maq_meeting_place *place = MAQ_ARENA_NEW(e->arena, struct maq_meeting_place, f->n_comm_colors);
    bool *there = MAQ_ARENA_NEW(&f->scratch, bool, f->n_comm_colors);
    size_t seats = 0;
    if (!place || !there)
        return false;
    for (uint32_t i = 0; i < e->capture->n_comms; i++) {
        struct maq_meeting_place *p = &place[f->comm_color[i]];
        if (there[f->comm_color[i]]) {
            p->times++;
            continue;
        }
        there[f->comm_color[i]] = true;
        *p = e->place[i];
        p->size = p->need = p->virtual_need = set_of(f, i);
        p->times = 1;
        seats += p->size;
    }
    uint32_t *seat = MAQ_ARENA_NEW(e->arena, uint32_t, seats);
    if (!seat)
        return false;
    memset(there, 0, f->n_comm_colors * sizeof *there);
    seats = 0;
    for (uint32_t i = 0; i < e->capture->n_comms; i++) {
        struct maq_meeting_place *p = &place[f->comm_color[i]];
        if (there[f->comm_color[i]])
            continue;
        there[f->comm_color[i]] = true;
        uint32_t n = set_of(f, i);
        for (uint32_t k = 0; k < n; k++)
            seat[seats + k] = leader[f->pairs[k] >> 32];
        p->seats = (uint32_t)seats;
        seats += n;
    }
    e->place = place;
    e->seat = seat;
    return true;
}

/* The folded channels, and which of them each channel is; false: out of memory. */
static bool number_channels(struct fold *f, const uint32_t *leader, struct maq_channel *channel, uint32_t *now,
                            uint32_t *n)
{
    const struct maq_engine *e = f->e;
    struct maq_intern ids;
    maq_intern_init(&ids, &f->scratch);
    for (uint32_t i = 0; i < e->n_channels; i++) {
        const struct maq_channel *c = &e->channel[i];
        uint32_t key[6] = {color_of(f, c->from), f->channel_ordinal[2 * (size_t)i],
                           color_of(f, c->to),   f->channel_ordinal[2 * (size_t)i + 1],
                           c->placement,         c->leaves_node};
        bool added;
        now[i] = maq_intern_put(&ids, key, sizeof key, &added);
        if (now[i] == UINT32_MAX)
            return false;
        if (added) {
            channel[now[i]] = *c;
            channel[now[i]].times = 0;
            channel[now[i]].from = c->from != MAQ_NOBODY ? leader[f->color[c->from]] : MAQ_NOBODY;
            channel[now[i]].to = c->to != MAQ_NOBODY ? leader[f->color[c->to]] : MAQ_NOBODY;
        }
        channel[now[i]].times++;
    }
    *n = ids.n;
    return true;
}

static bool fold_channels(struct fold *f, const uint32_t *leader)
{
    struct maq_engine *e = f->e;
    struct maq_channel *channel = calloc(e->n_channels + (size_t)1, sizeof *channel);
    uint32_t *now = MAQ_ARENA_NEW(&f->scratch, uint32_t, e->n_channels), n = 0;
    bool done = channel && now && number_channels(f, leader, channel, now, &n);
    for (uint32_t k = 0; k < f->n_colors && done; k++) {
        struct maq_rank_state *r = &e->rank[leader[k]];
        uint32_t *ids = MAQ_ARENA_NEW(e->arena, uint32_t, r->program->n_channels);
        for (uint32_t i = 0; ids && i < r->program->n_channels; i++)
            ids[i] = now[r->channel[i]];
        r->channel = ids;
        done = ids != NULL;
    }
    if (!done) {
        free(channel);
        return false;
    }
    free(e->channel);
    e->channel = channel;
    e->n_channels = n;
    return true;
}

static bool fold(struct fold *f)
{
    struct maq_engine *e = f->e;
    uint32_t *leader = MAQ_ARENA_NEW(&f->scratch, uint32_t, f->n_colors);
    if (!leader)
        return false;
    memset(leader, 0xff, f->n_colors * sizeof *leader);
    for (uint32_t r = 0; r < e->world; r++) {
        if (!takes_part(e, r))
            continue;
        uint32_t *first = &leader[f->color[r]];
        *first = *first == MAQ_NOBODY ? r : *first;
        e->rank[r].leader = *first;
        e->rank[*first].times += *first != r;
    }
    if (!fold_places(f, leader) || !fold_channels(f, leader))
        return false;
    for (uint32_t k = 0; k < f->n_colors; k++) {
        struct maq_rank_state *r = &e->rank[leader[k]];
        uint32_t *comm = MAQ_ARENA_NEW(e->arena, uint32_t, r->program->n_comms);
        for (uint32_t i = 0; comm && i < r->program->n_comms; i++)
            comm[i] = f->comm_color[r->comm[i]];
        r->comm = comm;
        if (!comm)
            return false;
    }
    return true;
}

bool maq_engine_fold(struct maq_engine *e)
{
    struct fold f = {.e = e};
    maq_arena_init(&f.scratch, 0);
    bool done = begin(&f) && first_colors(&f);
    if (done)
        find_ordinals(&f);
    while (done) {
        uint32_t before = f.n_colors;
        done = color_comms(&f);
        if (done && !color_ranks(&f)) {
            done = f.n_colors == before; /* no colour split; otherwise out of memory */
            break;
        }
    }
    done = done && color_comms(&f) && fold(&f);
    maq_arena_fini(&f.scratch);
    return done;
}

void maq_engine_unfold(struct maq_engine *e)
{
    for (uint32_t r = 0; r < e->world; r++) {
        struct maq_rank_state *s = &e->rank[r];
        if (!s->program || s->leader == r)
            continue;
        const struct maq_rank_state *of = &e->rank[s->leader];
        s->host = of->host;
        s->share = of->share;
        s->ended = of->ended;
    }
}
