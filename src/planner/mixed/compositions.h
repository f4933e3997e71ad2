/*
 * compositions.h - the search of a job on several node groups: the best compositions, one pipeline over all groups, groups alone and side by
 * side, with and without virtual stages (or the best uniform plans, if the options say so).
 */
#ifndef MAQ_PLANNER_MIXED_COMPOSITIONS_H
#define MAQ_PLANNER_MIXED_COMPOSITIONS_H

#include "planner/mixed/search_state.h"

/* As maq_mixed_search(), which looks at more beside them (alternatives.h). The result is to be freed by maq_mixed_search_free(). */
enum maq_status maq_mixed_compositions(struct maq_mixed_search_result **out, const struct maq_loaded_job *open,
                                       const struct maq_mixed_search_opts *opts, struct maq_diag *diag);

/* What follows from a run's plans and its bound: devices used, gaps. Once more where plans were added. */
void maq_mixed_settle(struct maq_mixed_run *run);

#endif
