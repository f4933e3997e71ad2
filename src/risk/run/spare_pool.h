/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spare_pool.h - spares and repairs, shared by the job and, if there are any, by other jobs.
 *
 * A lost node comes back after its repair. A job that misses a node gets the next free one, first come first served. Other jobs
 * lose nodes at a rate of their own, as a Poisson process. Nodes may be lemons; a spare is one as often as there are lemons among
 * the spares.
 */
#ifndef MAQ_RISK_RUN_SPARE_POOL_H
#define MAQ_RISK_RUN_SPARE_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/stat/rng.h"

/* Ascending by time; a heap. */
struct maq_heap {
    int64_t *at;
    size_t n, size;
    bool failed; /* out of memory: something was dropped */
};
void maq_heap_push(struct maq_heap *h, int64_t value);
int64_t maq_heap_pop(struct maq_heap *h); /* n > 0 */
void maq_heap_free(struct maq_heap *h);

/* Repairs of one cause: lognormal. */
struct maq_spare_pool_repair {
    double upto; /* share of the losses up to it */
    double median_ns, sigma;
};

struct maq_spare_pool {
    struct maq_heap repairs; /* end of repair in ns x 2 + 1 for a lemon */
    int64_t free, lemons;    /* nodes that wait for a use; of them lemons */
    int64_t others, ahead;   /* nodes that other jobs wait for; those of them that asked before the job did */
    bool waiting;            /* the job misses nodes */
    double other_rate;       /* nodes that other jobs lose per ns */
    int64_t other_next;
    const struct maq_spare_pool_repair *repair; /* [n_repairs] of a lost node, by cause */
    uint32_t n_repairs;
    struct maq_rng rng; /* of what other jobs lose */
};

/* A node of the job goes into repair, until `back`. */
void maq_spare_pool_lose(struct maq_spare_pool *p, int64_t back, bool lemon);
/* Takes up to `need` nodes by time `until` (not before `now`, events up to which are history); returns when the last one came,
 * or `until` with what is still missing in *need. *lemons grows by those among them; `u` in (0, 1) chooses among free ones. */
int64_t maq_spare_pool_take(struct maq_spare_pool *p, int64_t now, int64_t until, int64_t *need, int64_t *lemons,
                            double u);

#endif
