/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.h - the state of a search over slices, shared by the public call (search.c), the writer of its plans
 * (result_plan.c) and the tests. maquette/planner_external.h has the terms.
 */
#ifndef MAQ_PLANNER_EXTERNAL_SEARCH_H
#define MAQ_PLANNER_EXTERNAL_SEARCH_H

#include "planner/external/enumeration.h"
#include "planner/external/load.h"
#include "planner/external/piece_search.h"

/* The best pipeline of a wave so far, with copies of its pieces. */
struct maq_slices_kept {
    struct maq_piece_line row; /* n = 0: none */
    uint32_t wave;
    double root_s, bound_s; /* lower bounds of the wave: by profiles alone; proven so far */
    bool complete;          /* row is the best of the wave, or none is below what had to be beaten */
};

/* Owns a result and everything it points to. */
struct maq_slices_run {
    struct maq_slices_result result;
    const struct maq_slices_opts *opts; /* of the call: not valid after it */
    struct maq_arena arena;
    struct maq_slices_chain chain;
    struct maq_slices_loaded loaded;
    struct maq_enumeration enumeration;
    struct maq_slices_wave *waves;
    uint32_t n_waves;
    struct maq_slices_kept *kept, **order; /* [n_waves]; by root_s, later by step */
};

/* Stages and pieces of a pipeline; false when out of memory. result_plan.c */
bool maq_slices_take_plan(struct maq_slices_plan *out, struct maq_slices_run *run, const struct maq_slices_kept *kept);

#endif
