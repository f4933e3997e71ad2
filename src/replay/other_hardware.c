/* SPDX-License-Identifier: Apache-2.0 */
/*
 * other_hardware.c - durations of a captured job on other hardware: see maquette/replay.h.
 *
 * Operators: where the capture names the device that it was recorded on, a duration becomes
 *
 *     ns' = ns * chain(new device) / chain(old device)
 *
 * so that an error of the chain that is the same on both devices cancels; otherwise ns' = chain(new device). Copies likewise.
 * Kernel times that the user measured are taken as they are. Collectives and messages are costed by the placement of their
 * members on the new cluster. Host times stay.
 */
#include <string.h>

#include "base/check.h"
#include "capture/codes.h"
#include "cluster/cluster_load.h"
#include "replay/setup.h"

/* The device of the capture, from the catalogue; unknown names are no device. */
static void find_old(struct maq_setup *s)
{
    struct maq_doc doc;
    const char *name = s->e->capture->device;
    if (!name)
        return;
    if (maq_doc_parse(&doc, "device", (struct maq_str){name, strlen(name)}, MAQ_ORIGIN_DOCUMENT, NULL) == MAQ_OK &&
        doc.root && maq_device_load(&s->old, doc.root, s->e->arena, NULL) == MAQ_OK)
        s->old_known = true;
    maq_doc_fini(&doc);
}

static bool price_ops(struct maq_setup *s, uint32_t group, const struct maq_pricer *p)
{
    const struct maq_capture *c = s->e->capture;
    const struct maq_device *device = p->cluster ? &p->cluster->groups[group].device : &s->old;
    double *scale = MAQ_ARENA_NEW(s->e->arena, double, c->n_ops), *price = MAQ_ARENA_NEW(s->e->arena, double, c->n_ops);
    if (!scale || !price)
        return false;
    for (uint32_t i = 0; i < c->n_ops; i++) {
        const struct maq_captured_op *op = &c->op[i];
        double own = p->kernels ? maq_replay_kernels_find(p->kernels, op->name, strlen(op->name), op->what->grid) : -1;
        scale[i] = 1;
        price[i] = own;
        if (own >= 0 || !p->cluster)
            continue;
        struct maq_pricer chain = {.cluster = p->cluster, .costs = p->costs};
        double now = (double)maq_price_op(&chain, op->what, op->name, device).ns;
        double then = s->old_known ? (double)maq_price_op(&chain, op->what, op->name, &s->old).ns : 0;
        if (op->recorded_ns > 0 && then > 0)
            scale[i] = now / then;
        else
            price[i] = now;
    }
    s->scale[group] = scale;
    s->price[group] = price;
    return true;
}

enum maq_status maq_setup_begin_prices(struct maq_setup *s)
{
    const struct maq_replay_opts *o = s->e->opts;
    uint32_t groups = o->cluster ? o->cluster->n_groups : 1;
    if (!o->cluster && !o->kernels)
        return MAQ_OK;
    if (o->cluster && o->cluster->devices < s->e->world)
        return maq_diag_fail(MAQ_NO, s->e->diag, MAQ_CODE_REPLAY_EDIT, (struct maq_span){0}, NULL,
                             "the captured job has %u ranks, the cluster %u devices", s->e->world, o->cluster->devices);
    if (o->kernels)
        MAQ_TRY(maq_replay_kernels_read(&s->kernels, o->kernels, s->e->diag));
    find_old(s);
    s->priced = o->cluster != NULL;
    s->scale = MAQ_ARENA_NEW(s->e->arena, double *, groups);
    s->price = MAQ_ARENA_NEW(s->e->arena, double *, groups);
    struct maq_pricer p = {.cluster = o->cluster, .costs = o->costs, .kernels = s->kernels};
    bool done = s->scale && s->price;
    for (uint32_t g = 0; g < groups && done; g++)
        done = price_ops(s, g, &p);
    return done ? MAQ_OK : maq_no_memory(s->e->diag, NULL);
}

uint32_t maq_setup_group(const struct maq_setup *s, uint32_t rank)
{
    const struct maq_cluster *c = s->e->opts->cluster;
    return c ? (uint32_t)(maq_cluster_group_of(c, rank) - c->groups) : 0;
}

void maq_setup_device(const struct maq_setup *s, uint32_t group, struct maq_replay_program_of *of)
{
    const struct maq_cluster *c = s->e->opts->cluster;
    if (!s->scale)
        return;
    of->scale = s->scale[group];
    of->price = s->price[group];
    if (c && s->old_known) {
        const struct maq_device *now = &c->groups[group].device;
        if (now->host_bps > 0 && s->old.host_bps > 0)
            of->copy_scale[0] = s->old.host_bps / now->host_bps;
        if (now->mem_bps > 0 && s->old.mem_bps > 0)
            of->copy_scale[1] = s->old.mem_bps / now->mem_bps;
    }
}

/* --- communication --- */

struct lying { /* distinct placements */
    struct maq_intern ids;
    struct maq_placement *at;
    uint32_t room;
};

static uint32_t lie(struct lying *l, struct maq_arena *arena, struct maq_placement at)
{
    struct maq_placement key;
    memset(&key, 0, sizeof key);
    key.size = at.size;
    key.per_domain = at.per_domain;
    key.domains = at.domains;
    key.per_node = at.per_node;
    key.crosses_switch = at.crosses_switch;
    key.link = at.link;
    key.group = at.group;
    bool added;
    uint32_t id = maq_intern_put(&l->ids, &key, sizeof key, &added);
    if (!added || id == UINT32_MAX)
        return id;
    if (id == l->room) {
        uint32_t room = l->room ? 2 * l->room : 32;
        struct maq_placement *grown = MAQ_ARENA_NEW(arena, struct maq_placement, room);
        if (!grown)
            return UINT32_MAX;
        if (id > 0)
            memcpy(grown, l->at, id * sizeof *grown);
        l->at = grown;
        l->room = room;
    }
    l->at[id] = key;
    return id;
}

/* A group for a communicator whose members are not all known, by one known member. */
static struct maq_price_group group_of(const struct maq_engine *e, uint32_t comm)
{
    const struct maq_captured_comm *c = &e->capture->comm[comm];
    const uint32_t *seat = &e->seat[e->place[comm].seats];
    struct maq_price_group g = {.size = c->size, .world = e->world};
    uint32_t known = 0, told = 0;
    for (uint32_t i = 0; i < c->size; i++) {
        told += c->member[i] != MAQ_NOBODY;
        if (seat[i] != MAQ_NOBODY) {
            g.rank = seat[i];
            g.position = i;
            known++;
        }
    }
    if (known == c->size)
        g.member = seat;
    else if (told == c->size)
        g.member = c->member;
    return g;
}

static uint32_t rank_at(const struct maq_engine *e, uint32_t comm, uint32_t position, uint32_t otherwise)
{
    uint32_t rank = e->seat[e->place[comm].seats + position];
    if (rank == MAQ_NOBODY)
        rank = e->capture->comm[comm].member[position];
    return rank == MAQ_NOBODY ? otherwise : rank;
}

static bool place_all(struct maq_setup *s, struct lying *l)
{
    struct maq_engine *e = s->e;
    const struct maq_cluster *c = e->opts->cluster;
    for (uint32_t i = 0; i < e->capture->n_comms; i++) {
        struct maq_price_group g = group_of(e, i);
        e->place[i].placement = lie(l, e->arena, maq_price_place(c, &g));
        if (e->place[i].placement == UINT32_MAX)
            return false;
    }
    for (uint32_t i = 0; i < e->n_channels; i++) {
        struct maq_channel *ch = &e->channel[i];
        uint32_t a = rank_at(e, ch->comm, ch->from_position, 0), b = rank_at(e, ch->comm, ch->to_position, 0);
        uint32_t pair[2] = {a, b};
        ch->placement = lie(l, e->arena, maq_price_place(c, &(struct maq_price_group){.member = pair, .size = 2}));
        if (ch->placement == UINT32_MAX)
            return false;
    }
    return true;
}

enum maq_status maq_setup_prices(struct maq_setup *s)
{
    struct maq_engine *e = s->e;
    if (!s->priced)
        return MAQ_OK;
    struct lying l = {0};
    maq_intern_init(&l.ids, e->arena);
    bool done = place_all(s, &l);
    e->n_placements = l.ids.n;
    e->n_rows = s->rows.n;
    int64_t *price = done ? MAQ_ARENA_NEW(e->arena, int64_t, (size_t)s->rows.n * l.ids.n) : NULL;
    if (!price)
        return maq_no_memory(e->diag, NULL);
    struct maq_pricer p = {.cluster = e->opts->cluster, .costs = e->opts->costs};
    for (uint32_t i = 0; i < s->rows.n; i++)
        for (uint32_t k = 0; k < l.ids.n; k++)
            price[(size_t)i * l.ids.n + k] =
                (int64_t)maq_price_at(&p, s->rows.row[i].coll, s->rows.row[i].bytes, &l.at[k]).ns;
    e->price = price;
    return MAQ_OK;
}
