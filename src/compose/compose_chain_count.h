/*
 * compose_chain_count.h - what no plan of several pipelines can be below, with devices, micro batches and pipelines as whole numbers.
 */
#ifndef MAQ_COMPOSE_COMPOSE_CHAIN_COUNT_H
#define MAQ_COMPOSE_COMPOSE_CHAIN_COUNT_H

#include "compose/compose_internal.h"

struct maq_chain_count;

/* NULL, which is no error, where there are too many devices to count. `arcs` is borrowed; its synchronization may change between calls.
 * false when out of memory. */
bool maq_chain_count_new(struct maq_chain_count **out, const struct maq_arcs *arcs, struct maq_arena *arena);

/* Steps less their update. */
struct maq_chain_count_query {
    uint32_t most_chains;
    uint32_t batches;             /* micro batches of a step */
    double least_t;               /* no bottleneck is below */
    double least_sync, most_sync; /* of the plan */
    double known_s, wanted_s;     /* a bound that is known; more than the other is not looked for */
};

/* Raises the bound: no plan of at most so many chains that synchronizes for a time in the range is below. */
double maq_chain_count_raise(struct maq_chain_count *count, const struct maq_chain_count_query *query,
                             uint64_t *programs);

#endif
