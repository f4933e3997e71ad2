/* order.c - stages in the order that plays fastest: see order.h. */
#include "mixed_search/order.h"

#define ALIKE 1.001   /* by the closed form */
#define MOST_PLAYS 64 /* a pipeline has stages^2 / 2 pairs; most are alike, or lose by the form */

/* Swaps two stages, layers and all; false where that is no composition, or a slower one. */
static bool swap(struct maq_composition *out, const struct maq_composition *c, uint32_t i, uint32_t j, double most_s,
                 const struct maq_stage_table *t)
{
    const struct maq_stage_part *a = &c->stages[i].parts[0], *b = &c->stages[j].parts[0];
    uint32_t layers_a = c->stages[i].end - c->stages[i].first, layers_b = c->stages[j].end - c->stages[j].first, at = 0;

    if (c->stages[i].n_parts + c->stages[j].n_parts > 2 || t->options[a->option].kind != t->options[b->option].kind)
        return false;
    if (a->option == b->option && layers_a == layers_b)
        return false;
    *out = *c;
    out->stages[i].parts[0] = *b;
    out->stages[j].parts[0] = *a;
    for (uint32_t k = 0; k < c->n_stages; k++) {
        uint32_t layers = k == i ? layers_b : k == j ? layers_a : c->stages[k].end - c->stages[k].first;
        out->stages[k].first = at;
        out->stages[k].end = at += layers;
    }
    return maq_composition_cost(out, t) && out->step_s <= most_s;
}

struct order {
    const struct maq_mixed_run *run;
    const struct maq_chain_wave *wave;
    const struct maq_stage_table *table;
    struct maq_composition *best, *from, *other;
    struct maq_chain_played *played; /* of the best */
    double most_s;
    uint32_t plays;
    bool failed; /* out of memory */
};

/* Of all pairs the one that plays fastest, when that is faster than what there is. */
static bool swap_best(struct order *o)
{
    bool any = false;
    *o->from = *o->best;
    for (uint32_t i = 0; i < o->from->n_stages; i++)
        for (uint32_t j = i + 1; j < o->from->n_stages && o->plays < MOST_PLAYS; j++) {
            struct maq_chain_played played;
            if (!swap(o->other, o->from, i, j, o->most_s, o->table))
                continue;
            o->plays++;
            o->failed |= maq_chain_costs_play(&played, &o->run->costs, o->wave, o->other, o->table) != MAQ_OK;
            if (!o->failed && played.step_s < o->played->step_s && played.fits >= o->played->fits) {
                *o->played = played;
                *o->best = *o->other;
                any = true;
            }
        }
    return any;
}

bool maq_mixed_order(struct maq_composition *c, struct maq_chain_played *played, struct maq_mixed_run *run,
                     const struct maq_chain_wave *wave, const struct maq_stage_table *table)
{
    struct order o = {
        .run = run, .wave = wave, .table = table, .best = c, .played = played, .most_s = c->step_s * ALIKE};
    o.from = MAQ_ARENA_NEW(&run->arena, struct maq_composition, 1);
    o.other = MAQ_ARENA_NEW(&run->arena, struct maq_composition, 1);
    if (!o.from || !o.other)
        return false;
    while (!o.failed && swap_best(&o))
        ;
    return !o.failed;
}
