/*
 * uniform.h - the best uniform plan over all node groups: what planners that know one kind of device enumerate.
 *
 * Every stage holds as many layers on as many devices in the same way; all devices are used, in the order in which the cluster lists
 * them, and a stage may lie in two node groups. Each plan is predicted as `maquette train` does, so a step waits for its slowest devices.
 */
#ifndef MAQ_MIXED_SEARCH_UNIFORM_H
#define MAQ_MIXED_SEARCH_UNIFORM_H

#include "mixed_search/run.h"

/* Fills result.plans, bound and counts of a run whose space is read. */
enum maq_status maq_mixed_uniform(struct maq_mixed_run *run, struct maq_diag *diag);

#endif
