/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtual_stages.h - compositions with virtual stages (interleaved pipelines) of a job over several node groups;
 * planner/stages/virtual_stages.h has their costs.
 *
 * For every wave and number of virtual stages there is a table for each size of the groups of micro batches that
 * divides their number: the interleaved schedule then runs up to so many stages. The best compositions of each number
 * of virtual stages are simulated, and are among the plans where they fit (the table's memory is an upper limit). A
 * local search around the fastest of all adds one more (local_search.h).
 */
#ifndef MAQ_PLANNER_MIXED_VIRTUAL_STAGES_H
#define MAQ_PLANNER_MIXED_VIRTUAL_STAGES_H

#include "planner/mixed/search_state.h"

/* Lists the waves with virtual stages, from those without. */
enum maq_status maq_mixed_virtual_list(struct maq_mixed_run *run, struct maq_diag *diag);

/* The best plan so far, and the best with virtual stages; 0: none so far. */
struct maq_mixed_virtual_known {
    double step_s;                     /* of the best plan, simulated */
    double composed_s, bound_s;        /* by the closed form */
    bool insert;                       /* plans that fit are put among the run's */
    struct maq_mixed_search_plan plan; /* the best with virtual stages that fits and is faster; */
    bool found;                        /* there is one: */
    struct maq_composition *composition;
    const struct maq_chain_wave *wave;
};

/* Searches on the node groups that tables have now. */
enum maq_status maq_mixed_virtual_search(struct maq_mixed_virtual_known *known, struct maq_mixed_run *run,
                                         const struct maq_mixed_search_opts *opts, struct maq_diag *diag);

/*
 * A composition of the table of a wave as a plan that has not been simulated, and its costs by the closed form. false when out of
 * memory.
 */
bool maq_mixed_virtual_plan(struct maq_mixed_search_plan *out, struct maq_mixed_run *run,
                            const struct maq_chain_wave *wave, struct maq_composition *composition);

/* Sets the step of a plan by simulating it; *fits: whether it fits into memory. */
enum maq_status maq_mixed_virtual_simulate(bool *fits, struct maq_mixed_search_plan *plan, struct maq_mixed_run *run,
                                           struct maq_diag *diag);

#endif
