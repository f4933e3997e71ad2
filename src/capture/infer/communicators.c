/* SPDX-License-Identifier: Apache-2.0 */
/*
 * communicators.c - communicators of ranks that did not run.
 *
 * A communicator is identified by its members and by how many communicators with the same members the rank used before
 * it. Those of ranks that ran keep their lineage, and have to agree with the rule.
 */
#include <string.h>

#include "base/check.h"
#include "capture/infer/infer.h"
#include "capture/intern.h"
#include "shim/record.h"

struct name { /* of a communicator */
    uint32_t base, size, n_levels, n[MAQ_PATTERN_LEVELS], stride[MAQ_PATTERN_LEVELS], nth;
};

struct filling {
    struct maq_infer *f;
    struct maq_arena *arena;
    struct maq_intern names;
    uint32_t *comm_of; /* by name */
    uint32_t room, n_comms, comm_room;
    struct maq_captured_comm *comm;
    uint32_t *named; /* [capture's comms] name + 1 */
};

static bool grow_comms(struct filling *w)
{
    uint32_t room = 2 * w->comm_room + 64;
    struct maq_captured_comm *grown = MAQ_ARENA_NEW(w->arena, struct maq_captured_comm, room);
    if (!grown)
        return false;
    if (w->n_comms > 0)
        memcpy(grown, w->comm, w->n_comms * sizeof *grown);
    w->comm = grown;
    w->comm_room = room;
    return true;
}

static bool grow_names(struct filling *w)
{
    uint32_t room = 2 * w->room + 256, *grown = MAQ_ARENA_NEW(&w->f->scratch, uint32_t, room);
    if (!grown)
        return false;
    if (w->room > 0)
        memcpy(grown, w->comm_of, w->room * sizeof *grown);
    w->comm_of = grown;
    w->room = room;
    return true;
}

/* A communicator of ranks that did not run. */
static uint32_t new_comm(struct filling *w, const struct maq_pattern *p, uint32_t base, uint32_t name)
{
    uint32_t *member = MAQ_ARENA_NEW(w->arena, uint32_t, p->size);
    if (!member || (w->n_comms == w->comm_room && !grow_comms(w)))
        return UINT32_MAX;
    for (uint32_t i = 0; i < p->size; i++)
        member[i] = maq_pattern_member(p, base, i);
    uint64_t lineage = maq_rec_hash(w->names.key[name].bytes, sizeof(struct name), 11);
    w->comm[w->n_comms] = (struct maq_captured_comm){.lineage = lineage, .size = p->size, .member = member};
    return w->n_comms++;
}

/* Number of the name of communicator `ordinal` of a rank; UINT32_MAX when out of memory or there can be none. */
static uint32_t name_of(struct filling *w, const struct maq_pattern *patterns, uint32_t ordinal, uint32_t rank,
                        uint32_t *base, uint32_t *position)
{
    const struct maq_pattern *p = &patterns[ordinal];
    struct name name = {.size = p->size, .n_levels = p->n_levels};
    if (!maq_pattern_at(p, rank, w->f->capture->world, base, position))
        return UINT32_MAX;
    name.base = *base;
    memcpy(name.n, p->n, sizeof name.n);
    memcpy(name.stride, p->stride, sizeof name.stride);
    for (uint32_t i = 0; i < ordinal; i++) {
        uint32_t other, place;
        name.nth += maq_pattern_same(&patterns[i], p) &&
                    maq_pattern_at(&patterns[i], rank, w->f->capture->world, &other, &place) && other == *base;
    }
    bool added;
    uint32_t id = maq_intern_put(&w->names, &name, sizeof name, &added);
    if (id == UINT32_MAX || (id >= w->room && !grow_names(w)))
        return UINT32_MAX;
    if (added)
        w->comm_of[id] = UINT32_MAX;
    return id;
}

/* Names of the communicators of ranks that ran; false: they contradict the rule. */
static bool name_known(struct filling *w)
{
    const struct maq_capture *c = w->f->capture;
    w->named = MAQ_ARENA_NEW(&w->f->scratch, uint32_t, c->n_comms);
    for (uint32_t k = 0; k < c->n_classes && w->named; k++) {
        const struct maq_rank_class *m = &c->class_of_ranks[k];
        for (uint32_t i = 0; i < m->n_ranks; i++)
            for (uint32_t j = 0; j < m->n_comms; j++) {
                uint32_t id = m->comm[(size_t)i * m->n_comms + j], base, position;
                uint32_t name = name_of(w, w->f->pattern[k], j, m->rank[i], &base, &position);
                if (name == UINT32_MAX || (w->named[id] != 0 && w->named[id] != name + 1) ||
                    (w->comm_of[name] != UINT32_MAX && w->comm_of[name] != id))
                    return false;
                w->named[id] = name + 1;
                w->comm_of[name] = id;
                uint32_t *member = (uint32_t *)(uintptr_t)w->comm[id].member;
                for (uint32_t p = 0; p < w->comm[id].size; p++)
                    member[p] = maq_pattern_member(&w->f->pattern[k][j], base, p);
            }
    }
    return w->named != NULL;
}

struct table {
    uint32_t *rank, *comm, *position;
};

static bool fill_rank(struct filling *w, const struct maq_rank_class *m, uint32_t class, struct table *t, uint32_t nth,
                      uint32_t rank)
{
    t->rank[nth] = rank;
    for (uint32_t j = 0; j < m->n_comms; j++) {
        uint32_t base, position, name = name_of(w, w->f->pattern[class], j, rank, &base, &position);
        if (name == UINT32_MAX)
            return false;
        if (w->comm_of[name] == UINT32_MAX)
            w->comm_of[name] = new_comm(w, &w->f->pattern[class][j], base, name);
        t->comm[(size_t)nth * m->n_comms + j] = w->comm_of[name];
        t->position[(size_t)nth * m->n_comms + j] = position;
        if (w->comm_of[name] == UINT32_MAX)
            return false;
    }
    return true;
}

static bool fill_all(struct filling *w, struct table *t, const uint32_t *class_of, uint32_t *count)
{
    const struct maq_capture *c = w->f->capture;
    for (uint32_t k = 0; k < c->n_classes; k++) {
        size_t n = count[k], comms = n * c->class_of_ranks[k].n_comms;
        t[k] = (struct table){MAQ_ARENA_NEW(w->arena, uint32_t, n), MAQ_ARENA_NEW(w->arena, uint32_t, comms),
                              MAQ_ARENA_NEW(w->arena, uint32_t, comms)};
        if (!t[k].rank || !t[k].comm || !t[k].position)
            return false;
        count[k] = 0;
    }
    for (uint32_t r = 0; r < c->world; r++) {
        uint32_t k = class_of[r];
        if (!fill_rank(w, &c->class_of_ranks[k], k, &t[k], count[k]++, r))
            return false;
    }
    return true;
}

/* "ranks 0..511", "rank 7", "ranks 0, 8, ... 56". */
static const char *name_class(struct maq_arena *arena, const uint32_t *rank, uint32_t n)
{
    if (n == 1)
        return maq_arena_printf(arena, "rank %u", rank[0]);
    if (rank[n - 1] - rank[0] == n - 1)
        return maq_arena_printf(arena, "ranks %u..%u", rank[0], rank[n - 1]);
    return maq_arena_printf(arena, "ranks %u, %u, ... %u", rank[0], rank[1], rank[n - 1]);
}

enum maq_status maq_infer_communicators(struct maq_infer *f)
{
    struct maq_capture *c = f->capture;
    struct filling w = {.f = f, .arena = c->owner, .n_comms = c->n_comms};
    struct maq_rank_class *classes = MAQ_ARENA_NEW(w.arena, struct maq_rank_class, c->n_classes);
    uint32_t *class_of = MAQ_ARENA_NEW(w.arena, uint32_t, c->world);
    uint32_t *count = MAQ_ARENA_NEW(&f->scratch, uint32_t, c->n_classes);
    struct table *t = MAQ_ARENA_NEW(&f->scratch, struct table, c->n_classes);
    w.comm = MAQ_ARENA_NEW(w.arena, struct maq_captured_comm, c->n_comms);
    w.comm_room = c->n_comms;
    maq_intern_init(&w.names, &f->scratch);
    if (!classes || !class_of || !count || !t || !w.comm)
        return MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < c->n_comms;
         i++) { /* members of its own: the capture stays as it was until all is filled */
        uint32_t *member = MAQ_ARENA_NEW(w.arena, uint32_t, c->comm[i].size);
        if (!member)
            return MAQ_NO_MEMORY;
        w.comm[i] = (struct maq_captured_comm){
            .lineage = c->comm[i].lineage, .size = c->comm[i].size, .member = member, .name = c->comm[i].name};
    }
    for (uint32_t r = 0; r < c->world; r++)
        count[class_of[r] = f->class_at[r]]++;
    if (!name_known(&w) || !fill_all(&w, t, class_of, count))
        return MAQ_NO;
    for (uint32_t k = 0; k < c->n_classes; k++) {
        classes[k] = c->class_of_ranks[k];
        classes[k].n_ranks = count[k];
        classes[k].rank = t[k].rank;
        classes[k].comm = t[k].comm;
        classes[k].position = t[k].position;
        const char *name = name_class(w.arena, t[k].rank, count[k]);
        classes[k].name = name ? name : classes[k].name;
    }
    c->n_comms = w.n_comms;
    c->comm = w.comm;
    c->class_of_ranks = classes;
    c->class_of = class_of;
    return MAQ_OK;
}
