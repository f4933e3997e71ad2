/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strategies.h - the strategies in which a node group may run a stage: every combination of degrees and techniques
 * that a space and the group's nodes allow.
 */
#ifndef MAQ_PLANNER_STAGES_STRATEGIES_H
#define MAQ_PLANNER_STAGES_STRATEGIES_H

#include "planner/stages/stage_costs.h"

/* Fills the list of the pool with number `id`, in the arena; false when out of memory. */
bool maq_strategies_list(struct maq_chain_pool *pool, const struct maq_chain_space *space, uint32_t id,
                         struct maq_arena *arena);

/* Index of an offloading in the space, to which it is added where it is missing. */
uint32_t maq_strategies_offload(struct maq_chain_space *space, struct maq_chain_offload offload);

/* The plan of a stage under a strategy, completed by the settings that all stages of a composition have in common. */
struct maq_plan maq_strategy_plan(const struct maq_chain_space *space, const struct maq_stage_strategy *strategy,
                                  uint32_t mbs);

/*
 * Whether a strategy differs from those listed before it, with so many replicas of a stage: where there is nothing to shard over,
 * all ZeRO stages are the same.
 */
bool maq_strategy_differs(const struct maq_chain_space *space, const struct maq_stage_strategy *strategy,
                          uint32_t replicas);

#endif
