/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compositions.h - the search for compositions of a job over several node groups: one pipeline over all groups,
 * groups alone, groups side by side as data-parallel pipelines, each with and without virtual stages; or the uniform
 * plans alone, if the options ask for that planner.
 */
#ifndef MAQ_PLANNER_MIXED_COMPOSITIONS_H
#define MAQ_PLANNER_MIXED_COMPOSITIONS_H

#include "planner/mixed/search_state.h"

/*
 * The part of maq_mixed_search() that finds compositions; it goes on with alternatives.h. The result is to be freed by
 * maq_mixed_search_free().
 */
enum maq_status maq_mixed_compositions(struct maq_mixed_search_result **out, const struct maq_loaded_job *open,
                                       const struct maq_mixed_search_opts *opts, struct maq_diag *diag);

/* Fills in what follows from a run's plans and its bound: devices used, gaps. To be called again when plans were added. */
void maq_mixed_settle(struct maq_mixed_run *run);

#endif
