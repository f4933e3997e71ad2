/* SPDX-License-Identifier: Apache-2.0 */
/*
 * paged_optimizer.h - moments of a paged optimizer, which lie in CUDA's managed memory.
 *
 * bitsandbytes 0.50.2 (optim/optimizer.py, get_state_buffer(): tensors of 100,000 numbers and more; functional.py, get_paged() and
 * prefetch_tensor()) allocates them with cudaMallocManaged(), outside of PyTorch's allocator, and prefetches each before it is updated. So they
 * are on the device as far as there is room, which decides nothing about whether a job fits, and otherwise in host memory.
 *
 * The update takes the tensors in the same order in every step, and the driver evicts what was used longest ago: where not all of them have
 * room, each has left by the time when its turn comes, so all come up and go down in every step.
 */
#ifndef MAQ_TRAIN_MEMORY_PAGED_OPTIMIZER_H
#define MAQ_TRAIN_MEMORY_PAGED_OPTIMIZER_H

#include "train/memory/stage_memory.h"

/* Bytes of moments of `paged` parameters of a rank in managed memory; 0 where the optimizer is none of these. */
double maq_managed_bytes(const struct maq_job *job, const struct maq_owned_params *held);

/* Of a stage whose other memory is known: where its managed moments are. Changes host.optimizer, total_bytes and the bytes of the optimizer. */
void maq_settle_managed(struct maq_stage_result *st);

#endif
