/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipelines.h - several pipelines of different make-up that train one model together.
 *
 * A pipeline here is a chain: micro batches go through it one by one, it is cut into stages, and a stage may have
 * several replicas that share each micro batch. Chains share nothing but the gradients, so each has its own cuts and
 * devices, and takes as many micro batches of the global batch as it can do in time:
 *
 *   T = max_c ((m_c - 1) max_i t_ci + sum_i t_ci) + sync + update,      sum_c m_c samples_c >= global batch
 *
 * The gradients of an atom are all-reduced over all replicas that hold it. Where chains are cut at different places,
 * a stage's gradients are reduced in pieces, one for each run of atoms that no chain cuts: sync = max over stages of
 * the sum over its pieces of sync_s(replicas of the piece in all chains, its bytes at the smallest TP). N equal
 * chains are one composition with N times the wave, at the same T.
 */
#ifndef MAQ_PLANNER_COMPOSE_PIPELINES_H
#define MAQ_PLANNER_COMPOSE_PIPELINES_H

#include "planner/compose/layer_ranges.h"

#define MAQ_CHAIN_KINDS 16u /* of chains in one plan */

struct maq_chain {
    uint32_t count, samples; /* chains of this kind; their micro batch */
    uint32_t micro_batches;  /* of each in a step */
    double bottleneck_s, fill_s;
    uint32_t n_stages;
    struct maq_stage stages[MAQ_STAGE_DEPTH]; /* parts count the replicas of one chain */
};

struct maq_chain_set {
    double step_s, run_s, sync_s, update_s; /* run: of the slowest chain */
    uint32_t n_kinds, n_chains;
    struct maq_chain kinds[MAQ_CHAIN_KINDS];
};

/*
 * Micro batches, run, sync, update and step of chains that are given by count, samples and stages. The options are those of
 * `table`, whose wave does not matter. false when they are no plan: gaps, devices, memory, or too few to do the batch.
 */
bool maq_chain_set_cost(struct maq_chain_set *p, const struct maq_stage_table *table, uint32_t global_batch);

/*
 * A stock of at most `room` chains to choose from. Everything lives in the arena; the table is borrowed. NULL when out
 * of memory.
 */
struct maq_chain_stock;
struct maq_chain_stock *maq_chain_stock_new(const struct maq_stage_table *table, uint32_t room,
                                            struct maq_arena *arena);

/*
 * Adds the chains that the relaxed programs of a table find below the cutoff, and their neighbours. The table's wave is `chains`
 * times a chain's micro batch; its options are among those of the stock, by id. false when out of memory.
 */
bool maq_chain_stock_collect(struct maq_chain_stock *pool, const struct maq_layer_ranges *layer_ranges, uint32_t chains,
                             double cutoff_s, uint64_t *programs, struct maq_arena *scratch);

/*
 * *best becomes the best plan that the knapsack finds among the chains of the stock, if better: a good plan without a
 * proof. false when out of memory.
 */
bool maq_chain_set_choose(struct maq_chain_set *best, const struct maq_chain_stock *pool, uint32_t global_batch,
                          uint64_t *knapsacks, struct maq_arena *scratch);

#endif
