/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.h - the state of a search with measured layers, shared by the public call (search.c) and the writer of its
 * result (result_plan.c). maquette/planner_measured.h has the terms.
 */
#ifndef MAQ_PLANNER_MEASURED_SEARCH_H
#define MAQ_PLANNER_MEASURED_SEARCH_H

#include "maquette/planner_measured.h"
#include "planner/compose/pipelines_search.h"
#include "planner/measured/stage_costs.h"

struct maq_compose_case { /* a micro batch and a number of replicas, of stages or of whole pipelines */
    uint32_t micro_batch, replicas;
};

/* Owns a result and everything it points to. */
struct maq_compose_run {
    struct maq_compose_result result;
    struct maq_arena arena;
    struct maq_profile_dir *profile;
    struct maq_profile_costs costs;
    const char *model, *device[MAQ_STAGE_KINDS], *zone[MAQ_STAGE_KINDS];
    uint32_t n_cases;
    struct maq_compose_case *cases;
    uint32_t *replicas; /* [n_cases] */
    uint32_t max_parts, max_split;
    bool chains; /* what is being searched now: chains, not compositions */
};

/*
 * Plans of the result from a composition or a set of chains, with the table that it was found in (result_plan.c). false
 * when out of memory.
 */
bool maq_compose_take_composition(struct maq_compose_plan *out, struct maq_compose_run *run,
                                  const struct maq_compose_found *found, const struct maq_stage_table *table);
bool maq_compose_take_pipelines(struct maq_compose_plan *out, struct maq_compose_run *run,
                                const struct maq_chain_result *found, const struct maq_stage_table *table);

#endif
