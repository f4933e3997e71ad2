/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_recompute.h - the number of recomputed layers of each stage of a pipeline, chosen for every stage by itself.
 *
 * Under 1F1B the first stage holds the activations of as many microbatches as there are stages, the last those of one. One number
 * for all stages then recomputes more than most of them need. The least number with which each stage fits gives the fastest plan
 * of this kind.
 */
#ifndef MAQ_PLANNER_UNIFORM_STAGE_RECOMPUTE_H
#define MAQ_PLANNER_UNIFORM_STAGE_RECOMPUTE_H

#include "base/arena.h"
#include "maquette/train.h"

/*
 * *out is `plan` with the least number of recomputed layers for every stage; its virtual stages have at most `most` layers.
 * *differ: there is such a plan, and the numbers are not all the same (otherwise it is recomputation of the first N layers
 * everywhere). The text of the list lives in `keep`.
 */
enum maq_status maq_least_of_stages(struct maq_plan *out, bool *differ, const struct maq_plan *plan, int32_t most,
                                    struct maq_train_sweep *sweep, struct maq_arena *keep);

#endif
