/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_search.c - hill climbing over the three moves of local_search.h: swap of two stages, shift of a layer,
 * another strategy. A neighbour whose closed form is more than MAY_LOSE behind is not simulated, and at most
 * MOST_PLAYS are.
 */
#include "planner/mixed/local_search.h"

#define ALIKE 1.001    /* ratio of closed forms: a change of order alone changes nothing */
#define MAY_LOSE 1.02  /* ratio of closed forms up to which a neighbour may still be faster when simulated */
#define MOST_PLAYS 160 /* a pipeline has stages^2 / 2 pairs; most are alike, or too slow by the closed form */

struct walk {
    const struct maq_mixed_local_search *near;
    struct maq_composition *best, *from, *other;
    struct maq_chain_simulated *simulated; /* of the best */
    double alike_s, most_s;
    uint32_t plays, plain; /* of moves; of plainer strategies */
    bool any;              /* something near `from` is faster when simulated */
    enum maq_status status;
};

/* Simulates the neighbour `other` where it is a composition whose closed form is at most `most_s`. */
static void judge(struct walk *w, double most_s)
{
    struct maq_chain_simulated simulated;
    if (w->status != MAQ_OK || w->plays == MOST_PLAYS || !maq_composition_cost(w->other, w->near->table) ||
        w->other->step_s > most_s)
        return;
    w->plays++;
    w->status = w->near->simulate(&simulated, w->near->context, w->other);
    if (w->status == MAQ_OK && simulated.step_s < w->simulated->step_s && simulated.fits >= w->simulated->fits) {
        *w->simulated = simulated;
        *w->best = *w->other;
        w->any = true;
    }
}

/* ---- moves ---- */

static void swap(struct walk *w, uint32_t i, uint32_t j)
{
    const struct maq_stage_table *t = w->near->table;
    const struct maq_composition *c = w->from;
    const struct maq_stage_part *a = &c->stages[i].parts[0], *b = &c->stages[j].parts[0];
    uint32_t layers_a = c->stages[i].end - c->stages[i].first, layers_b = c->stages[j].end - c->stages[j].first, at = 0;

    if (c->stages[i].n_parts + c->stages[j].n_parts > 2 || t->options[a->option].kind != t->options[b->option].kind)
        return;
    if (a->option == b->option && layers_a == layers_b)
        return;
    *w->other = *c;
    w->other->stages[i].parts[0] = *b;
    w->other->stages[j].parts[0] = *a;
    for (uint32_t k = 0; k < c->n_stages; k++) {
        uint32_t layers = k == i ? layers_b : k == j ? layers_a : c->stages[k].end - c->stages[k].first;
        w->other->stages[k].first = at;
        w->other->stages[k].end = at += layers;
    }
    judge(w, w->alike_s);
}

/* A layer over the border between two stages. */
static void shift(struct walk *w, struct maq_stage *to, struct maq_stage *from, bool forward)
{
    if (from->end - from->first < 2)
        return;
    if (forward)
        to->end = ++from->first;
    else
        to->first = --from->end;
    judge(w, w->most_s);
}

static void run_as(struct walk *w, uint32_t i, uint32_t option)
{
    const struct maq_stage_table *t = w->near->table;
    const struct maq_stage_part *part = &w->from->stages[i].parts[0];
    const struct maq_stage_option *is = &t->options[part->option], *to = &t->options[option];
    if (w->from->stages[i].n_parts > 1 || is == to || is->kind != to->kind || to->devices > is->devices)
        return;
    *w->other = *w->from;
    w->other->stages[i].parts[0].option = option;
    judge(w, w->most_s);
}

static void walk_borders(struct walk *w)
{
    struct maq_stage *s = w->other->stages;
    for (uint32_t i = 0; i + 1 < w->from->n_stages; i++) {
        *w->other = *w->from;
        shift(w, &s[i], &s[i + 1], true);
        *w->other = *w->from;
        shift(w, &s[i + 1], &s[i], false);
    }
}

/* Makes the best move, if one is faster when simulated. */
static bool step(struct walk *w)
{
    w->any = false;
    *w->from = *w->best;
    for (uint32_t i = 0; i < w->from->n_stages; i++)
        for (uint32_t j = i + 1; j < w->from->n_stages; j++)
            swap(w, i, j);
    walk_borders(w);
    for (uint32_t i = 0; i < w->from->n_stages; i++)
        for (uint32_t option = 0; option < w->near->table->n_options; option++)
            run_as(w, i, option);
    return w->any;
}

/* Gives stage `i` the first strategy of the table that is as fast; returns whether it changed. */
static bool run_plainly(struct walk *w, uint32_t i)
{
    const struct maq_stage_table *t = w->near->table;
    const uint32_t now = w->best->stages[i].parts[0].option;
    for (uint32_t option = 0; option < now && w->status == MAQ_OK; option++) {
        struct maq_chain_simulated simulated;
        if (t->options[option].kind != t->options[now].kind || t->options[option].devices != t->options[now].devices)
            continue;
        *w->other = *w->best;
        w->other->stages[i].parts[0].option = option;
        if (!maq_composition_cost(w->other, t) || w->other->step_s > w->most_s)
            continue;
        if (w->plain++ == MOST_PLAYS)
            return false;
        w->status = w->near->simulate(&simulated, w->near->context, w->other);
        if (w->status == MAQ_OK && simulated.step_s <= w->simulated->step_s && simulated.fits >= w->simulated->fits) {
            *w->simulated = simulated;
            *w->best = *w->other;
            return true;
        }
    }
    return false;
}

enum maq_status maq_mixed_local_search(struct maq_composition *composition, struct maq_chain_simulated *simulated,
                                       const struct maq_mixed_local_search *near, struct maq_arena *arena)
{
    struct maq_arena_mark mark = maq_arena_mark(arena);
    struct walk w = {.near = near,
                     .best = composition,
                     .from = MAQ_ARENA_NEW(arena, struct maq_composition, 1),
                     .other = MAQ_ARENA_NEW(arena, struct maq_composition, 1),
                     .simulated = simulated,
                     .alike_s = composition->step_s * ALIKE,
                     .most_s = composition->step_s * MAY_LOSE,
                     .status = MAQ_OK};
    if (!w.from || !w.other)
        return MAQ_NO_MEMORY;
    for (bool plainer = true; plainer && w.status == MAQ_OK;) {
        while (step(&w) && w.status == MAQ_OK)
            ;
        plainer = false;
        for (uint32_t i = 0; i < composition->n_stages && w.status == MAQ_OK; i++)
            plainer |= composition->stages[i].n_parts == 1 && run_plainly(&w, i);
    }
    maq_arena_reset(arena, mark);
    return w.status;
}
