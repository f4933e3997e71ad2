/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alternatives.h - plans outside of the class of compositions, searched for as well and put among a run's plans where
 * they are faster.
 *
 * These are uniform plans over all devices; compositions and uniform plans whose expert all-to-all overlaps with
 * another micro batch (overlap_moe_expert_parallel_comm); node groups of one kind searched as one group; and each
 * node group alone, by the search of one node group.
 */
#ifndef MAQ_PLANNER_MIXED_ALTERNATIVES_H
#define MAQ_PLANNER_MIXED_ALTERNATIVES_H

#include "planner/mixed/search_state.h"

/*
 * Adds to plans and bounds of the result, which then hold for all of these classes, and fills in what each island takes
 * alone.
 */
enum maq_status maq_mixed_alternatives(struct maq_mixed_run *run, const struct maq_loaded_job *open,
                                       const struct maq_mixed_search_opts *opts, struct maq_diag *diag);

#endif
