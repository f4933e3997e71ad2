/*
 * search_state.h - a search over node groups while it runs: what its parts, the writer of mixed plans and the tests share. The noun is in
 * maquette/planner_mixed.h.
 */
#ifndef MAQ_PLANNER_MIXED_SEARCH_STATE_H
#define MAQ_PLANNER_MIXED_SEARCH_STATE_H

#include "maquette/planner_mixed.h"
#include "planner/compose/search.h"
#include "planner/stages/stage_costs.h"

/* Owns a result and everything it points to. */
struct maq_mixed_run {
    struct maq_mixed_search_result result;
    struct maq_arena arena;
    struct maq_chain_space space, seen;      /* seen: as the search takes it */
    struct maq_chain_costs costs;            /* of what is seen */
    struct maq_chain_costs real;             /* where that is not what there is */
    bool blind;                              /* it is not */
    struct maq_mixed_search_plan *plans;     /* the result's, ... */
    struct maq_mixed_search_island *islands; /* ... these too */
    uint32_t n_waves, n_folded;
    struct maq_chain_wave *waves, *chunked; /* 1F1B; with virtual stages (virtual_stages.c) */
};

/* The limits of a search that looks for what a first one may have missed. */
struct maq_compose_limits maq_mixed_run_limits(const struct maq_mixed_search_opts *opts);

/* Plans by their step, no more than the caller wants; of two alike the one found first. */
void maq_mixed_run_insert(struct maq_mixed_run *run, const struct maq_mixed_search_opts *opts,
                          const struct maq_mixed_search_plan *plan);

/* What a plan says of a stage of a composition. */
void maq_mixed_run_stage(struct maq_mixed_search_stage *out, const struct maq_mixed_run *run,
                         const struct maq_stage *stage, const struct maq_stage_table *table);

/* A plan in the form of mixed plans, in the arena. false when out of memory. result_plan.c */
bool maq_mixed_result_plan(struct maq_mixed_plan *out, const struct maq_mixed_run *run,
                           const struct maq_mixed_search_plan *plan, struct maq_arena *arena);

/* The table of a wave; `ctx` is a struct maq_mixed_run, of which only what was costed so far changes. */
bool maq_mixed_run_table(struct maq_stage_table *out, const void *ctx, uint32_t i, struct maq_arena *arena);

#endif
