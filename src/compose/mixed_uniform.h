/*
 * mixed_uniform.h - the best uniform plan over all node groups: what planners that know one kind of device enumerate.
 *
 * Every stage holds as many layers on as many devices in the same way; all devices are used, in the order in which the cluster lists
 * them, and a stage may lie in two node groups. Each plan is predicted as `maquette train` does, so a step waits for its slowest devices.
 */
#ifndef MAQ_COMPOSE_MIXED_UNIFORM_H
#define MAQ_COMPOSE_MIXED_UNIFORM_H

#include "compose/mixed_search.h"

/* Fills result.plans, bound and counts of a run whose space is read. */
enum maq_status maq_mixed_uniform(struct maq_mixed_run *run, struct maq_diag *diag);

/*
 * The best of them beside what a run has found, among whose plans it is put where it is faster than all. Node groups that are nearly alike
 * are faster with replicas over all of them than with stages on each, and stages on two groups are in no composition. Bound, gap and
 * least form are of both kinds of plans then.
 */
enum maq_status maq_mixed_uniform_beside(struct maq_mixed_run *run, const struct maq_job_box *open,
                                         const struct maq_mixed_search_opts *opts, struct maq_diag *diag);

#endif
