/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedules.h - schedule skeletons that the threads of a search share: a long pipeline has a hundred thousand tasks, and each thread
 * asks for the same few.
 *
 * A skeleton is built by the thread that first asks for it; others wait for it. It stays while a thread holds it, and longer while
 * all of them are small.
 */
#ifndef MAQ_TRAIN_SCHEDULES_H
#define MAQ_TRAIN_SCHEDULES_H

#include "train/step/blueprint.h"

struct maq_shared_schedule {
    struct maq_schedule_spec spec;
    struct maq_schedule schedule;
};

/* Any number of threads, each with a reference of its own. NULL when out of memory. */
struct maq_schedules;
struct maq_schedules *maq_schedules_new(void);
struct maq_schedules *maq_schedules_share(struct maq_schedules *store);
void maq_schedules_free(struct maq_schedules *store); /* a reference; all that it took is to be given back before */

/* The caller holds *out until it gives it back. Errors are those of maq_schedule_build(), and nothing is held. */
enum maq_status maq_schedules_take(const struct maq_shared_schedule **out, struct maq_schedules *store,
                                   const struct maq_schedule_spec *spec, struct maq_diag *diag);
void maq_schedules_give(struct maq_schedules *store, const struct maq_shared_schedule *schedule);

#endif
