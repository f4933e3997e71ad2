/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_counts.h - the distinct operators and collectives of a training step and how often they run: the list that `maquette
 * profile` measures.
 */
#ifndef MAQ_TRAIN_OP_COUNTS_H
#define MAQ_TRAIN_OP_COUNTS_H

#include "graph/items.h"
#include "maquette/job.h"

struct maq_need {
    struct maq_item item;
    double calls; /* per step, on one rank of every pipeline stage together */
};

struct maq_needs {
    uint32_t n;
    struct maq_need *at; /* in the order in which the step first uses them */
};

/* *out lives in `arena`. Costs are those of the chain that the job asks for. */
enum maq_status maq_train_needs(struct maq_needs *out, const struct maq_job *job, struct maq_arena *arena,
                                struct maq_diag *diag);

#endif
