/*
 * stage_recompute.h - how many layers each stage of a pipeline recomputes when each decides for itself.
 *
 * Under 1F1B the first stage holds the activations of as many microbatches as there are stages, the last those of one. One number
 * for all is then too many for most. The least number of each stage that makes it fit is the fastest plan of this kind.
 */
#ifndef MAQ_PLANNER_UNIFORM_STAGE_RECOMPUTE_H
#define MAQ_PLANNER_UNIFORM_STAGE_RECOMPUTE_H

#include "base/arena.h"
#include "maquette/train.h"

/*
 * `plan` with the least number of recomputed layers of its virtual stages, which have at most `most`, for every stage. *differ: there
 * is such a plan, and the numbers are not all the same (then it is recomputation of the first N layers everywhere). The text of the
 * list lives in `keep`.
 */
enum maq_status maq_least_of_stages(struct maq_plan *out, bool *differ, const struct maq_plan *plan, int32_t most,
                                    struct maq_train_sweep *sweep, struct maq_arena *keep);

#endif
