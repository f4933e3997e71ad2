/*
 * local_search.h - what is faster when simulated near a composition.
 *
 * The search goes by the closed form, and a plan is judged by simulating it. The two differ by a percent or so, either way, and a play takes
 * a tenth of a millisecond, with virtual stages more: so plans that the form has a little behind the best are settled by simulating them.
 * Near a composition are those that differ from it by one move:
 *
 *   order    two stages on one kind of device change places, layers and all. By the form a step is a sum over stages and stays what it is;
 *            simulated it does not: stages take devices in their order, which decides what transfers leave a node and whether a stage of
 *            several devices lies in two, and uneven stages wait for one another.
 *   borders  a layer moves from a stage to its neighbour
 *   strategies     a stage runs another way, on no more devices of its kind
 *
 * The best move is made as long as one is faster when simulated, so that the result is as fast as all that are near it, unless there are too many.
 * Of strategies that are as fast a stage has the first of the table then: nothing recomputed comes before modules that its layers have not.
 */
#ifndef MAQ_PLANNER_MIXED_LOCAL_SEARCH_H
#define MAQ_PLANNER_MIXED_LOCAL_SEARCH_H

#include "planner/compose/stage_table.h"
#include "planner/stages/stage_costs.h"

struct maq_mixed_local_search {
    const struct maq_stage_table *table; /* the composition is one of it */
    enum maq_status (*play)(struct maq_chain_simulated *out, void *context, const struct maq_composition *composition);
    void *context;
};

/* Leaves `composition` and `simulated` as the fastest that was seen; the arena is only for the time of the call. */
enum maq_status maq_mixed_local_search(struct maq_composition *composition, struct maq_chain_simulated *played,
                                       const struct maq_mixed_local_search *near, struct maq_arena *arena);

#endif
