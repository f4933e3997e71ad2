/* SPDX-License-Identifier: Apache-2.0 */
/* parallel.h - a batch of independent jobs on threads; what they compute does not depend on the number of threads. */
#ifndef MAQ_PLANNER_COMPOSE_PARALLEL_H
#define MAQ_PLANNER_COMPOSE_PARALLEL_H

#include "base/arena.h"

#define MAQ_BATCH 8u /* jobs of a batch: what they find is used from the next batch on */

/* Does one job. The arena is the thread's, and reset after the job. false when out of memory. */
typedef bool maq_batch_work(void *user, uint32_t job, struct maq_arena *scratch);

/* Jobs [from, from + n) on so many threads (0: one per core). false when one of them ran out of memory. */
bool maq_parallel_run(maq_batch_work *work, void *user, uint32_t from, uint32_t n, uint32_t threads);

#endif
