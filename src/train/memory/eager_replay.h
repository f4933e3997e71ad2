/* SPDX-License-Identifier: Apache-2.0 */
/* eager_replay.h - the allocations of a whole program around models of the transformers library. */
#ifndef MAQ_TRAIN_MEMORY_EAGER_REPLAY_H
#define MAQ_TRAIN_MEMORY_EAGER_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "train/predict.h"

/* Whether every request of the job's program is `known`; if so, what they come to. False when out of memory. */
bool maq_eager_replay(struct maq_replayed *out, bool *known, const struct maq_blueprint *bp, uint32_t stage);

#endif
