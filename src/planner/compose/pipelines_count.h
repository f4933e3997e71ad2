/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipelines_count.h - a lower bound of plans of several pipelines with devices, micro batches and pipelines as whole
 * numbers: a knapsack over the table of the cost to go.
 */
#ifndef MAQ_PLANNER_COMPOSE_PIPELINES_COUNT_H
#define MAQ_PLANNER_COMPOSE_PIPELINES_COUNT_H

#include "planner/compose/bottleneck_box.h"

struct maq_chain_count;

/* *out = NULL, which is no error, where there are too many devices to count. Everything lives in the arena. `layer_ranges` is
 * borrowed; its synchronization may change between calls. false when out of memory. */
bool maq_chain_count_new(struct maq_chain_count **out, const struct maq_layer_ranges *layer_ranges,
                         struct maq_arena *arena);

struct maq_chain_count_query {
    uint32_t most_chains;
    uint32_t batches;  /* micro batches of a step */
    double least_t;    /* lower bound of the bottleneck, s */
    uint64_t programs; /* limit on programs solved; when it is reached nothing more is refuted */
};

/* Programs that are worth solving for one bound. */
uint64_t maq_chain_count_affordable(const struct maq_chain_count *count);

/* Whether it is proven that no plan of at most so many chains takes less than `time`, its update left out. */
bool maq_chain_count_refutes(struct maq_chain_count *count, const struct maq_chain_count_query *query, double time,
                             uint64_t *programs);

#endif
