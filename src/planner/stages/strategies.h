/* strategies.h - the strategies in which a node group may run a stage, of what a space allows. */
#ifndef MAQ_PLANNER_STAGES_STRATEGIES_H
#define MAQ_PLANNER_STAGES_STRATEGIES_H

#include "planner/stages/stage_costs.h"

/* Fills the pool's list; false when out of memory. */
bool maq_strategies_list(struct maq_chain_pool *pool, const struct maq_chain_space *space, uint32_t id,
                         struct maq_arena *arena);

/* Where the space has what goes to the host, added where it has not. */
uint32_t maq_strategies_offload(struct maq_chain_space *space, struct maq_chain_offload offload);

/* The plan of a stage that is run so, completed by what every stage of a composition has. */
struct maq_plan maq_strategy_plan(const struct maq_chain_space *space, const struct maq_stage_strategy *strategy,
                                  uint32_t mbs);

/* Whether a strategy is one of its own where a stage has so many replicas: with nothing to share states among, all ZeRO stages are the first. */
bool maq_strategy_differs(const struct maq_chain_space *space, const struct maq_stage_strategy *strategy,
                          uint32_t replicas);

#endif
