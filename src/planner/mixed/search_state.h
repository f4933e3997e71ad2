/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search_state.h - the state of a search over node groups, shared by its parts, the writer of mixed plans and the
 * tests. maquette/planner_mixed.h has the terms.
 */
#ifndef MAQ_PLANNER_MIXED_SEARCH_STATE_H
#define MAQ_PLANNER_MIXED_SEARCH_STATE_H

#include "maquette/planner_mixed.h"
#include "planner/compose/search.h"
#include "planner/space/space.h"
#include "planner/stages/stage_costs.h"

/* Owns a result and everything it points to. */
struct maq_mixed_run {
    struct maq_mixed_search_result result;
    struct maq_arena arena;
    struct maq_chain_space space, seen; /* seen: as the planner takes it */
    struct maq_chain_costs costs;       /* costs of `seen` */
    struct maq_chain_costs real;        /* costs of `space`, where it differs from `seen` */
    bool blind;                         /* `seen` differs from `space`: the planner takes all devices for the slowest */
    struct maq_mixed_search_plan *plans;     /* the result's plans, writable */
    struct maq_mixed_search_island *islands; /* the result's islands, writable */
    struct maq_search_memory memory;         /* of which devices of `space` have what a plan may use */
    uint32_t n_waves, n_folded;
    struct maq_chain_wave *waves, *chunked; /* 1F1B; with virtual stages (virtual_stages.c) */
};

/* The limits of a search that looks for what a first one may have missed. */
struct maq_compose_limits maq_mixed_run_limits(const struct maq_mixed_search_opts *opts);

/* Inserts a plan by its step, among at most opts->top plans. Of two equal plans the one found first stays. */
void maq_mixed_run_insert(struct maq_mixed_run *run, const struct maq_mixed_search_opts *opts,
                          const struct maq_mixed_search_plan *plan);

/* Describes a stage of a composition as a stage of a plan. */
void maq_mixed_run_stage(struct maq_mixed_search_stage *out, const struct maq_mixed_run *run,
                         const struct maq_stage *stage, const struct maq_stage_table *table);

/* A plan in the form of mixed plans, in the arena. false when out of memory. result_plan.c */
bool maq_mixed_result_plan(struct maq_mixed_plan *out, const struct maq_mixed_run *run,
                           const struct maq_mixed_search_plan *plan, struct maq_arena *arena);

/*
 * Builds the table of wave i (struct maq_stage_source). `ctx` is a struct maq_mixed_run, of which only the remembered
 * costs change.
 */
bool maq_mixed_run_table(struct maq_stage_table *out, const void *ctx, uint32_t i, struct maq_arena *arena);

#endif
