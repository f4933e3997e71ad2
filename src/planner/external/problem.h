/*
 * problem.h - an open job as parallelizers see it: model and islands in numbers, transfers between stages, and the cost chain behind the
 * parallelizer that is built in.
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

/* `lists` as struct maq_slices_opts has them. Everything lives in the arena; maq_slices_chain_fini() gives the rest back. */
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

/* As maq_chain_hop_s(), of as many devices as the smaller of both stages has. */
double maq_slices_hop_s(const struct maq_slices_chain *chain, const struct maq_hop_class *from,
                        const struct maq_hop_class *to);

/* The parallelizer that is built in, over the chain: builtin.c. */
struct maq_parallelizer maq_slices_builtin(struct maq_slices_chain *chain);

#endif
