/* SPDX-License-Identifier: Apache-2.0 */
/* first_last_bf16.h - layers at the ends of a model that recipes of 8 and 4 bits leave in 16. */
#ifndef MAQ_MODEL_FIRST_LAST_BF16_H
#define MAQ_MODEL_FIRST_LAST_BF16_H

#include "base/arena.h"
#include "maquette/model.h"

/*
 * Makes so many layers at the start and at the end of the model wide, which become kinds of their own in `arena`; all of them where
 * the two overlap. MAQ_LIMIT: too many kinds of layers. On failure the model stays as it was.
 */
enum maq_status maq_model_widen_ends(struct maq_model *model, int32_t at_start, int32_t at_end,
                                     struct maq_arena *arena);

#endif
