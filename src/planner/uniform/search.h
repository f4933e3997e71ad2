/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.h - a search that goes on with more memory.
 */
#ifndef MAQ_PLANNER_UNIFORM_SEARCH_H
#define MAQ_PLANNER_UNIFORM_SEARCH_H

#include "maquette/planner.h"

/*
 * Of the space of a complete result, the best plan that is faster than its best one where devices have `more` times the memory;
 * step_s = 0: there is none. Its strings live with the result. Bounds of branches do not depend on memory: those of the first
 * search hold. *complete: this one was not stopped.
 */
enum maq_status maq_search_with_memory(struct maq_search_plan *out, bool *complete, struct maq_search_result *result,
                                       const struct maq_search_opts *opts, double more);

#endif
