/* SPDX-License-Identifier: Apache-2.0 */
/*
 * one_bit.h - DeepSpeed's 1-bit Adam, 1-bit LAMB and 0/1 Adam: momentum exchanged as signs in place of gradients.
 *
 * Tang et al., arXiv 2102.02888; Li et al., arXiv 2104.06069; Lu et al., arXiv 2202.06009; DeepSpeed 0.19.6, runtime/fp16/onebit/ and
 * runtime/comm/nccl.py, compressed_allreduce(). Of P parameters over n ranks, numbers of 4 bytes:
 *
 *   memory     two moments; worker_error P and server_error P / n, what the signs leave out; 1-bit LAMB a second variance besides, 0/1 Adam an
 *              accumulator of momentum. 1-bit Adam has the errors behind its warm-up alone
 *   exchange   an all-to-all of P / 8 bytes (each rank's part of the signs), the parts added up, an all-gather of P / 8 bytes; the scales
 *              are a number of each rank
 *   gradients  are not reduced behind the warm-up (enable_backward_allreduce = False)
 *
 * freeze_step, or var_freeze_step, ends the warm-up: before it gradients are reduced as without these optimizers (onebit_warmup). 0/1 Adam then
 * exchanges in every local_step_interval-th step, of which each step here has its share. Later releases of DeepSpeed (0.19.8) have none of them.
 */
#ifndef MAQ_TRAIN_STEP_ONE_BIT_H
#define MAQ_TRAIN_STEP_ONE_BIT_H

#include "train/step/blueprint.h"

/* Whether a step exchanges signs and reduces no gradients. */
bool maq_one_bit_exchanges(const struct maq_plan *plan);

/* Bytes of a parameter's states besides two moments, over so many ranks. */
double maq_one_bit_bytes(const struct maq_plan *plan, double ranks);

/* Bytes of a parameter that the exchange has at once besides: the signs as numbers, times their scale, and what they leave out. */
#define MAQ_ONE_BIT_WORKING 12.0

/* The update of so many parameters, gradients in 4 bytes: pass by pass as PyTorch does it, and the exchange. */
void maq_one_bit_put(struct maq_segment_writer *w, const struct maq_blueprint *bp, double params);

#endif
