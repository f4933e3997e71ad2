/* SPDX-License-Identifier: Apache-2.0 */
/*
 * problem.h - an open job in the terms of a parallelizer: the model and the islands in numbers, the price of
 * transfers between stages, and the cost chain behind the built-in parallelizer.
 */
#ifndef MAQ_PLANNER_EXTERNAL_PROBLEM_H
#define MAQ_PLANNER_EXTERNAL_PROBLEM_H

#include "maquette/parallelizer.h"
#include "planner/external/piece_table.h"
#include "planner/stages/stage_costs.h"

struct maq_slices_chain {
    struct maq_arena *arena; /* borrowed */
    struct maq_chain_space space;
    struct maq_chain_costs costs;
    struct maq_parallelizer_model model;
    uint32_t n_islands;
    struct maq_parallelizer_island islands[MAQ_PIECE_ISLANDS];
};

/* `lists` as in struct maq_slices_opts. Everything lives in the arena, but for what maq_slices_chain_fini() frees. */
enum maq_status maq_slices_chain_init(struct maq_slices_chain *chain, const struct maq_loaded_job *open,
                                      const char *const *lists, size_t n_lists, struct maq_arena *arena,
                                      struct maq_diag *diag);
void maq_slices_chain_fini(struct maq_slices_chain *chain);

/* What decides how long a transfer between two stages takes. */
struct maq_hop_class {
    uint32_t island;
    uint32_t senders; /* devices of the stage */
    double bytes;     /* that each of them sends */
};
struct maq_hop_class maq_hop_class_of(const struct maq_parallelizer_stage *stage, uint32_t island);

/* Seconds of a transfer between two stages: maq_chain_hop_s(), with as many senders as the smaller stage has devices. */
double maq_slices_hop_s(const struct maq_slices_chain *chain, const struct maq_hop_class *from,
                        const struct maq_hop_class *to);

/* The parallelizer that is built in, over the chain: builtin.c. */
struct maq_parallelizer maq_slices_builtin(struct maq_slices_chain *chain);

#endif
