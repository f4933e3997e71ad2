/* SPDX-License-Identifier: Apache-2.0 */
/* pareto.h - the Pareto front of plans in time and memory: plans that no other beats in both. */
#ifndef MAQ_PLANNER_UNIFORM_PARETO_H
#define MAQ_PLANNER_UNIFORM_PARETO_H

#include "maquette/planner.h"

struct maq_pareto {
    struct maq_search_plan *at; /* [n] by growing time and shrinking memory */
    uint32_t n, size;
};

/* Whether a plan of at least this time and memory is beaten (or equalled) by one of the front. */
bool maq_pareto_beats(const struct maq_pareto *front, double step_s, double bytes);
/* Adds a plan and drops those it beats; a plan that is beaten is not added. MAQ_NO_MEMORY or MAQ_OK. */
enum maq_status maq_pareto_add(struct maq_pareto *front, const struct maq_search_plan *plan);
void maq_pareto_clear(struct maq_pareto *front);
void maq_pareto_fini(struct maq_pareto *front);

#endif
