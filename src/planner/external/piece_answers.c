/* SPDX-License-Identifier: Apache-2.0 */
/*
 * piece_answers.c - the answers of a parallelizer for a wave as a piece table (piece_table.h): a piece for each plan
 * that fits at some position, and the transfers between all hop classes of their stages priced by the cost chain.
 */
#include <string.h>

#include "base/check.h"
#include "planner/external/codes.h"
#include "planner/external/enumeration.h"

struct hops {
    struct maq_hop_class at[MAQ_PIECE_HOPS];
    uint32_t n;
};

/* The number of a hop class; MAQ_PIECE_HOPS when there are too many. */
static uint32_t intern(struct hops *hops, const struct maq_hop_class *c)
{
    for (uint32_t i = 0; i < hops->n; i++)
        if (hops->at[i].island == c->island && hops->at[i].senders == c->senders && hops->at[i].bytes == c->bytes)
            return i;
    if (hops->n < MAQ_PIECE_HOPS)
        hops->at[hops->n++] = *c;
    else
        return MAQ_PIECE_HOPS;
    return hops->n - 1;
}

static const struct maq_slices_answer *answer_of(const struct maq_enumeration *e, uint32_t wave, uint32_t class_id,
                                                 uint32_t island)
{
    return &e->answers[((size_t)wave * e->n_classes + class_id) * e->chain->n_islands + island];
}

/* Every stage's hop class; false when there are too many. */
static bool intern_all(struct hops *hops, const struct maq_enumeration *e, uint32_t wave)
{
    for (uint32_t c = 0; c < e->n_classes; c++)
        for (uint32_t g = 0; g < e->chain->n_islands; g++) {
            const struct maq_slices_answer *a = answer_of(e, wave, c, g);
            for (uint32_t i = 0; i < a->n; i++)
                for (uint32_t s = 0; s < a->plans[i]->n_stages; s++) {
                    struct maq_hop_class hop = maq_hop_class_of(&a->plans[i]->stages[s], g);
                    if (intern(hops, &hop) == MAQ_PIECE_HOPS)
                        return false;
                }
        }
    return true;
}

static bool price(struct maq_piece_table *t, const struct hops *hops, const struct maq_slices_chain *chain,
                  struct maq_arena *arena)
{
    double *s = MAQ_ARENA_NEW(arena, double, (size_t)hops->n * hops->n);
    for (uint32_t i = 0; s && i < hops->n; i++)
        for (uint32_t j = 0; j <= i; j++)
            s[i * hops->n + j] = s[j * hops->n + i] = maq_slices_hop_s(chain, &hops->at[i], &hops->at[j]);
    t->n_hops = hops->n;
    t->hop_s = s;
    return s && maq_piece_table_hops(t, arena);
}

/* The pieces of a class: of all islands, in their order. */
static bool fill_list(struct maq_piece_list *out, const struct maq_piece_table *t, struct hops *hops,
                      const struct maq_enumeration *e, uint32_t wave, uint32_t class_id, struct maq_arena *arena)
{
    uint32_t n = 0, *of_stage = MAQ_ARENA_NEW(arena, uint32_t, e->n_atoms);
    for (uint32_t g = 0; g < e->chain->n_islands; g++)
        n += answer_of(e, wave, class_id, g)->n;
    struct maq_piece *pieces = MAQ_ARENA_NEW(arena, struct maq_piece, n);
    if (!pieces || !of_stage)
        return false;
    n = 0;
    for (uint32_t g = 0; g < e->chain->n_islands; g++) {
        const struct maq_slices_answer *a = answer_of(e, wave, class_id, g);
        for (uint32_t i = 0; i < a->n; i++) {
            for (uint32_t s = 0; s < a->plans[i]->n_stages; s++) {
                struct maq_hop_class hop = maq_hop_class_of(&a->plans[i]->stages[s], g);
                of_stage[s] = intern(hops, &hop);
            }
            n += maq_piece_fill(&pieces[n], a->plans[i], g, of_stage, t, e->chain->islands[g].memory_bytes);
        }
    }
    *out = (struct maq_piece_list){pieces, n};
    return true;
}

enum maq_status maq_enumeration_table(struct maq_piece_table *t, const struct maq_enumeration *e, uint32_t wave,
                                      struct maq_arena *arena, struct maq_diag *diag)
{
    size_t places = (size_t)e->n_atoms * e->n_atoms;
    struct hops *hops = MAQ_ARENA_NEW(arena, struct hops, 1);
    struct maq_piece_list *lists = MAQ_ARENA_NEW(arena, struct maq_piece_list, e->n_classes),
                          *slices = MAQ_ARENA_NEW(arena, struct maq_piece_list, places);
    *t = (struct maq_piece_table){
        .n_atoms = e->n_atoms, .n_islands = e->chain->n_islands, .waves = e->waves[wave].waves, .slices = slices};
    if (!hops || !lists || !slices)
        return maq_no_memory(diag, "the search");
    for (uint32_t g = 0; g < t->n_islands; g++)
        t->available[g] = e->chain->islands[g].nodes * e->chain->islands[g].devices_per_node;
    if (!intern_all(hops, e, wave))
        return maq_diag_fail(MAQ_LIMIT, diag, MAQ_CODE_SLICES_LIMIT, (struct maq_span){0},
                             "plans of stages that send as much from as many devices share a price",
                             "plans of parallelizer %.80s send in more than %u ways", e->source.functions.name,
                             MAQ_PIECE_HOPS);
    if (!price(t, hops, e->chain, arena))
        return maq_no_memory(diag, "the search");
    for (uint32_t c = 0; c < e->n_classes; c++)
        if (!fill_list(&lists[c], t, hops, e, wave, c, arena))
            return maq_no_memory(diag, "the search");
    for (uint32_t first = 0; first < e->n_atoms; first++)
        for (uint32_t end = first + 1; end <= e->n_atoms; end++) {
            size_t place = (size_t)first * e->n_atoms + end - 1;
            slices[place] = lists[e->class_of[place]];
        }
    return MAQ_OK;
}
