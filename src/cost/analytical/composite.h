/* SPDX-License-Identifier: Apache-2.0 */
/* composite.h - what an operator that is made of others consists of; see composite.c. */
#ifndef MAQ_COST_ANALYTICAL_COMPOSITE_H
#define MAQ_COST_ANALYTICAL_COMPOSITE_H

#include "maquette/cost.h"

#define MAQ_OP_PARTS 10

struct maq_op_list {
    uint32_t n;
    struct maq_op at[MAQ_OP_PARTS];
};

/* The parts of EXPERTS and MLA_BLOCK; false for every other kind. */
bool maq__op_parts(struct maq_op_list *out, const struct maq_op *op);

#endif
