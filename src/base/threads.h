/* SPDX-License-Identifier: Apache-2.0 */
/* threads.h - independent jobs on threads; what they compute does not depend on the number of threads. */
#ifndef MAQ_BASE_THREADS_H
#define MAQ_BASE_THREADS_H

#include "base/arena.h"

#define MAQ_PARALLEL_MOST 64u /* threads */

/* Does one job. The arena is the thread's, and reset after the job. false when out of memory. */
typedef bool maq_parallel_work(void *user, uint32_t job, struct maq_arena *scratch);

/* Jobs [from, from + n) on so many threads (0: one per core). false when one of them ran out of memory. */
bool maq_parallel_run(maq_parallel_work *work, void *user, uint32_t from, uint32_t n, uint32_t threads);

#endif
