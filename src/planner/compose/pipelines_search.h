/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipelines_search.h - the search for plans of several pipelines of different make-up, over all micro batches and numbers
 * of chains: candidates from tables, a knapsack over them, and a proven lower bound.
 */
#ifndef MAQ_PLANNER_COMPOSE_PIPELINES_SEARCH_H
#define MAQ_PLANNER_COMPOSE_PIPELINES_SEARCH_H

#include "planner/compose/pipelines.h"
#include "planner/compose/search.h"

/* Tables whose wave is chains[i] times a chain's micro batch. For each micro batch there is one with a single chain. */
struct maq_chain_source {
    struct maq_stage_source tables;
    const uint32_t *chains;
    uint32_t global_batch;
};

struct maq_chain_result {
    struct maq_chain_set best; /* step_s is the cutoff, n_kinds 0, when nothing better was found */
    uint32_t table;            /* index of the table whose options `best` refers to */
    double bound_s;            /* no plan is below */
    uint64_t programs, knapsacks, tables, tables_bounded;
};

/* Plans below the cutoff. MAQ_NO_MEMORY or MAQ_OK. */
enum maq_status maq_chains_search(struct maq_chain_result *out, const struct maq_chain_source *source, double cutoff_s,
                                  uint32_t threads, struct maq_arena *arena);

#endif
