/* SPDX-License-Identifier: Apache-2.0 */
/* pools.h - prefill and decode in pools of their own. */
#ifndef MAQ_PLANNER_SERVE_POOLS_H
#define MAQ_PLANNER_SERVE_POOLS_H

#include "planner/serve/searching.h"

/* Pools of prefill and decode in place of the result's fleet, if any are better. */
enum maq_status maq_serve_try_pools(struct maq_serve_searching *s, uint32_t groups);

#endif
