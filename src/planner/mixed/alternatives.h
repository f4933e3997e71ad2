/*
 * alternatives.h - what is looked at beside the compositions of a run, and put among its plans where it is faster.
 *
 * Uniform plans over all devices; compositions and uniform plans whose exchanges of experts run under another micro batch; node groups of one
 * kind as one group; each node group alone, as it is searched where there is no other.
 */
#ifndef MAQ_PLANNER_MIXED_ALTERNATIVES_H
#define MAQ_PLANNER_MIXED_ALTERNATIVES_H

#include "planner/mixed/search_state.h"

/* Bounds of the result are of all that was looked at; of islands, what each takes alone. */
enum maq_status maq_mixed_alternatives(struct maq_mixed_run *run, const struct maq_loaded_job *open,
                                       const struct maq_mixed_search_opts *opts, struct maq_diag *diag);

#endif
