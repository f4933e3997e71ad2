/* SPDX-License-Identifier: Apache-2.0 */
/* offloaded_states.h - what a rank keeps in host memory and on NVMe from step to step. See offloaded_states.c. */
#ifndef MAQ_TRAIN_MEMORY_OFFLOADED_STATES_H
#define MAQ_TRAIN_MEMORY_OFFLOADED_STATES_H

#include "maquette/train.h"
#include "train/memory/stage_memory.h"

/* Fills st->host and st->nvme, which are zero before, for a rank that holds so many parameters. */
void maq_offloaded_states(struct maq_stage_result *st, const struct maq_blueprint *bp,
                          const struct maq_owned_params *held);

#endif
