/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary.c - maq_capture_stats(): counts of a captured job by kind of record, axis and operator.
 *
 * An axis is all communicators of one size whose members are equally far apart.
 */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "capture/intern.h"
#include "capture/steps.h"
#include "shim/record.h"

#define TOP 12u

struct stats_owner {
    struct maq_capture_stats stats;
    struct maq_arena arena;
};

struct counting {
    const struct maq_capture *c;
    struct maq_arena *arena;
    struct maq_intern axes; /* of (size, stride) */
    struct maq_capture_axis *axis;
    uint32_t *axis_of; /* [n_comms] */
    uint64_t *seats;   /* [axes.n] ranks of which something is known */
    uint32_t room;
};

void maq_capture_stats_free(struct maq_capture_stats *stats)
{
    if (!stats)
        return;
    struct stats_owner *owner = stats->owner;
    maq_arena_fini(&owner->arena);
    free(owner);
}

static uint32_t stride_of(const struct maq_captured_comm *m)
{
    if (m->size < 2 || m->member[0] == UINT32_MAX || m->member[1] == UINT32_MAX || m->member[1] <= m->member[0])
        return 0;
    uint32_t stride = m->member[1] - m->member[0];
    for (uint32_t i = 2; i < m->size; i++)
        if (m->member[i] == UINT32_MAX || m->member[i] != m->member[i - 1] + stride)
            return 0;
    return stride;
}

static bool find_axes(struct counting *k)
{
    k->axis_of = MAQ_ARENA_NEW(k->arena, uint32_t, k->c->n_comms);
    for (uint32_t i = 0; k->axis_of && i < k->c->n_comms; i++) {
        uint32_t key[2] = {k->c->comm[i].size, stride_of(&k->c->comm[i])};
        uint32_t id = k->axis_of[i] = maq_intern_put(&k->axes, key, sizeof key, NULL);
        if (id == UINT32_MAX)
            return false;
        if (id >= k->room) {
            uint32_t room = 2 * k->room + 16;
            struct maq_capture_axis *grown = MAQ_ARENA_NEW(k->arena, struct maq_capture_axis, room);
            if (!grown)
                return false;
            if (k->room > 0)
                memcpy(grown, k->axis, k->room * sizeof *grown);
            k->axis = grown;
            k->room = room;
        }
        k->axis[id].size = key[0];
        k->axis[id].stride = key[1];
        k->axis[id].count++;
    }
    return k->axis_of != NULL;
}

/* What all ranks of a class say on their communicators, added to their axes. */
static bool count_communication(struct counting *k, const struct maq_rank_class *m)
{
    struct maq_capture_axis *of = MAQ_ARENA_NEW(k->arena, struct maq_capture_axis, m->n_comms);
    for (uint32_t i = 0; of && i < m->n_records; i++) {
        const struct maq_rec *r = &m->record[i];
        bool coll = r->kind == MAQ_REC_COLL;
        if (!coll && r->kind != MAQ_REC_SEND && r->kind != MAQ_REC_RECV)
            continue;
        struct maq_capture_axis *a = &of[MAQ_REC_COLL_COMM(r->id)];
        a->collectives += coll;
        a->messages += !coll;
        a->bytes += (double)r->bytes;
    }
    for (size_t i = 0; of && i < (size_t)m->n_ranks * m->n_comms; i++) {
        struct maq_capture_axis *a = &k->axis[k->axis_of[m->comm[i]]];
        a->collectives += of[i % m->n_comms].collectives;
        a->messages += of[i % m->n_comms].messages;
        a->bytes += of[i % m->n_comms].bytes;
        k->seats[k->axis_of[m->comm[i]]]++;
    }
    return of != NULL;
}

static int by_time(const void *a, const void *b)
{
    const struct maq_capture_top *x = a, *y = b;
    if (x->total_ns != y->total_ns)
        return x->total_ns > y->total_ns ? -1 : 1;
    if (x->launches != y->launches)
        return x->launches > y->launches ? -1 : 1;
    return strcmp(x->name, y->name);
}

static bool count_operators(struct counting *k, struct maq_capture_stats *s)
{
    struct maq_capture_top *top = MAQ_ARENA_NEW(k->arena, struct maq_capture_top, k->c->n_ops);
    if (!top)
        return false;
    for (uint32_t i = 0; i < k->c->n_ops; i++)
        top[i].name = k->c->op[i].name;
    for (uint32_t m = 0; m < k->c->n_classes; m++) {
        const struct maq_rank_class *c = &k->c->class_of_ranks[m];
        for (uint32_t i = 0; i < c->n_records; i++)
            if (c->record[i].kind == MAQ_REC_LAUNCH) {
                top[c->record[i].id].launches += c->n_ranks;
                top[c->record[i].id].total_ns += (double)c->record[i].ns * c->n_ranks;
            }
    }
    for (uint32_t i = 0; i < k->c->n_ops; i++) {
        s->compute_ns += top[i].total_ns;
        top[i].mean_ns = top[i].launches > 0 ? top[i].total_ns / (double)top[i].launches : 0;
    }
    if (k->c->n_ops > 0)
        qsort(top, k->c->n_ops, sizeof *top, by_time);
    s->top = top;
    s->n_top = k->c->n_ops < TOP ? k->c->n_ops : TOP;
    return true;
}

static bool count_records(struct counting *k, struct maq_capture_stats *s)
{
    static const char *const names[MAQ_REC_KIND_COUNT] = {
#define NAME(kind, text) [MAQ_REC_##kind] = (text),
        MAQ_REC_LIST(NAME)
#undef NAME
    };
    uint64_t *of = MAQ_ARENA_NEW(k->arena, uint64_t, MAQ_REC_KIND_COUNT);
    uint32_t *steps = MAQ_ARENA_NEW(k->arena, uint32_t, k->c->n_classes);
    if (!of || !steps)
        return false;
    for (uint32_t m = 0; m < k->c->n_classes; m++) {
        const struct maq_rank_class *c = &k->c->class_of_ranks[m];
        const uint32_t *at;
        bool marked;
        for (uint32_t i = 0; i < c->n_records; i++)
            of[c->record[i].kind] += c->n_ranks;
        s->records += (uint64_t)c->n_records * c->n_ranks;
        s->n_known += c->n_ranks;
        if (maq_capture_steps(&at, &steps[m], &marked, k->c, m, k->arena) != MAQ_OK)
            return false;
    }
    s->of_kind = of;
    s->kind_name = names;
    s->n_kinds = MAQ_REC_KIND_COUNT;
    s->steps = steps;
    return true;
}

static bool count_all(struct counting *k, struct maq_capture_stats *s)
{
    maq_intern_init(&k->axes, k->arena);
    if (!find_axes(k) || !count_records(k, s) || !count_operators(k, s))
        return false;
    k->seats = MAQ_ARENA_NEW(k->arena, uint64_t, k->axes.n);
    for (uint32_t m = 0; m < k->c->n_classes; m++)
        if (!k->seats || !count_communication(k, &k->c->class_of_ranks[m]))
            return false;
    for (uint32_t i = 0; i < k->axes.n; i++) { /* of one rank */
        double seats = k->seats[i] > 0 ? (double)k->seats[i] : 1;
        k->axis[i].collectives /= seats;
        k->axis[i].messages /= seats;
        k->axis[i].bytes /= seats;
    }
    s->axis = k->axis;
    s->n_axes = k->axes.n;
    return true;
}

enum maq_status maq_capture_stats(struct maq_capture_stats **out, const struct maq_capture *capture,
                                  struct maq_diag *diag)
{
    struct stats_owner *owner = calloc(1, sizeof *owner);
    if (!owner)
        return maq_no_memory(diag, NULL);
    maq_arena_init(&owner->arena, 0);
    owner->stats.owner = owner;
    struct counting k = {.c = capture, .arena = &owner->arena};
    if (!count_all(&k, &owner->stats)) {
        maq_capture_stats_free(&owner->stats);
        return maq_no_memory(diag, NULL);
    }
    *out = &owner->stats;
    return MAQ_OK;
}
