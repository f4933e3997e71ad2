/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_search.h - local search around a composition by simulation: moves to neighbours as long as one of them is
 * faster when simulated.
 *
 * The exact search ranks compositions by the closed form, and a plan is judged by simulating it. The two differ by a
 * percent or so, either way. A simulation takes a tenth of a millisecond, more with virtual stages, so compositions
 * that are a little behind the best by the closed form are decided by simulating them. Neighbours of a composition
 * differ from it by one move:
 *
 *   order       two stages on one kind of device change places, with their layers. The closed form is a sum over stages and stays
 *               the same. The simulated step changes: stages take devices in their order, which decides what transfers leave a node
 *               and whether a stage of several devices lies in two, and uneven stages wait for one another.
 *   borders     a layer moves from a stage to its neighbour
 *   strategies  a stage gets another strategy, on no more devices of its kind
 *
 * The best move is made as long as one is faster when simulated, so the result is a local optimum, unless there are
 * too many neighbours. Of strategies that are equally fast a stage gets the first of the table: recomputing nothing
 * comes before recomputing modules that its layers do not have.
 */
#ifndef MAQ_PLANNER_MIXED_LOCAL_SEARCH_H
#define MAQ_PLANNER_MIXED_LOCAL_SEARCH_H

#include "planner/compose/stage_table.h"
#include "planner/stages/stage_costs.h"

struct maq_mixed_local_search {
    const struct maq_stage_table *table; /* table of which the composition is one */
    enum maq_status (*simulate)(struct maq_chain_simulated *out, void *context,
                                const struct maq_composition *composition);
    void *context;
};

/* Leaves the fastest composition seen in `composition` and its simulated step in `simulated`. The arena is scratch. */
enum maq_status maq_mixed_local_search(struct maq_composition *composition, struct maq_chain_simulated *simulated,
                                       const struct maq_mixed_local_search *near, struct maq_arena *arena);

#endif
