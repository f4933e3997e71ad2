/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.h - the best compositions over many stage tables: one for each micro batch and number of replicas, or for each wave.
 *
 * Tables are taken in the order of their lower bounds (from the work alone). A first pass looks for good compositions with few
 * labels; a second one refutes tables by their bound or searches them exactly. Tables are worked on in batches of fixed size,
 * and the cutoff that a batch found holds from the next one on, so results and counts do not depend on the number of threads.
 */
#ifndef MAQ_PLANNER_COMPOSE_SEARCH_H
#define MAQ_PLANNER_COMPOSE_SEARCH_H

#include <math.h>
#include <signal.h>

#include "base/arena.h"
#include "planner/compose/stage_table.h"

struct maq_stage_source {
    uint32_t n;
    /* Builds table i in the arena; false when out of memory. Called from several threads. */
    bool (*build)(struct maq_stage_table *out, const void *ctx, uint32_t i, struct maq_arena *arena);
    const void *ctx;
};

struct maq_compose_limits {
    double cutoff_s;  /* step of a composition that is known; HUGE_VAL: none */
    uint32_t threads; /* 0: one per core */
    uint32_t top;     /* best tables wanted; 0: one */
    uint32_t beam;    /* of the first pass */
    uint32_t labels;  /* most labels of the exact search of one table; 0: no exact search, bounds alone */
    double grain;     /* width of boxes, relative to the cutoff, that the exact search starts from */
    uint32_t boxes;   /* most boxes of one table */
    /* relative gap that is good enough: improvements smaller than this are not looked for; 0: the optimum */
    double aim;
    /* when set, the tables that are left are bounded by their work alone; NULL: never */
    const volatile sig_atomic_t *stop;
};
#define MAQ_COMPOSE_LIMITS_INIT                                                                                        \
    {                                                                                                                  \
        .cutoff_s = HUGE_VAL, .beam = 3, .labels = 1u << 20, .grain = 0.01, .boxes = 400                               \
    }

struct maq_compose_tables_counts {
    uint64_t tables, tables_bounded;                   /* refuted by a bound alone */
    uint64_t programs;                                 /* relaxed programs solved */
    uint64_t considered, bounded, dominated, finished; /* labels: back parts of pipelines, and whole ones */
};

struct maq_compose_found {
    uint32_t table;
    struct maq_composition composition;
};

struct maq_compose_tables_result {
    uint32_t n;                      /* compositions, the best first; one of a table at most */
    struct maq_compose_found *found; /* in the arena */
    double bound_s;                  /* no composition of any table is below; the cutoff where none was found */
    bool exact;                      /* found[0] is the optimum, or none is below the cutoff */
    struct maq_compose_tables_counts counts;
};

/* MAQ_NO_MEMORY or MAQ_OK; nothing found is a result. Everything lives in the arena. */
enum maq_status maq_compose_search(struct maq_compose_tables_result *out, const struct maq_stage_source *source,
                                   const struct maq_compose_limits *options, struct maq_arena *arena);

#endif
