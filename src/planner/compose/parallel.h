/* parallel.h - a handful of independent jobs on threads; what they compute does not depend on how many there are. */
#ifndef MAQ_PLANNER_COMPOSE_PARALLEL_H
#define MAQ_PLANNER_COMPOSE_PARALLEL_H

#include "base/arena.h"

#define MAQ_BATCH 8u /* jobs that are worked on before what they found is used by the next ones */

/* Does one job; the arena is reset after it. false when out of memory. */
typedef bool maq_batch_work(void *user, uint32_t job, struct maq_arena *scratch);

/* Jobs [from, from + n) on so many threads (0: one per core). false when one of them ran out of memory. */
bool maq_parallel_run(maq_batch_work *work, void *user, uint32_t from, uint32_t n, uint32_t threads);

#endif
