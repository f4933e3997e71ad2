/* SPDX-License-Identifier: Apache-2.0 */
/* transformer_engine_replay.h - the allocations of a stage of Megatron-LM with Transformer Engine, all of the program's. */
#ifndef MAQ_TRAIN_MEMORY_TRANSFORMER_ENGINE_REPLAY_H
#define MAQ_TRAIN_MEMORY_TRANSFORMER_ENGINE_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "train/predict.h"

/* Whether every request of the stage is `known`; if so, what they come to. False when out of memory. */
bool maq_te_replay(struct maq_replayed *out, bool *known, const struct maq_blueprint *bp, uint32_t stage);

#endif
