/* mixed_search.h - what the public call, the writer of its mixed plans and the tests share. The noun is in maquette/mixed_search.h. */
#ifndef MAQ_COMPOSE_MIXED_SEARCH_H
#define MAQ_COMPOSE_MIXED_SEARCH_H

#include "compose/chain_costs.h"
#include "maquette/mixed_search.h"

/* Owns a result and everything it points to. */
struct maq_mixed_run {
    struct maq_mixed_search_result result;
    struct maq_arena arena;
    struct maq_chain_space space, seen;  /* seen: as the search takes it */
    struct maq_chain_costs costs;        /* of what is seen */
    struct maq_chain_costs real;         /* where that is not what there is */
    bool blind;                          /* it is not */
    struct maq_mixed_search_plan *plans; /* the result's */
    uint32_t n_waves;
    struct maq_chain_wave *waves;
};

/* The table of a wave; `ctx` is a struct maq_mixed_run, of which only what was costed so far changes. */
bool maq_mixed_run_table(struct maq_stage_table *out, const void *ctx, uint32_t i, struct maq_arena *arena);

#endif
