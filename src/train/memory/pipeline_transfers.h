/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline_transfers.h - what a stage of Megatron-LM's pipeline holds for its neighbours at its peak, in a backward pass, beside activations and what the
 * pass works with (the gradient that it begins with is one of these). Tensors of the size of the stream between layers:
 *
 *   1F1B         the gradient that the last backward pass sent: its name is taken anew when the next one is there (schedules.py,
 *                forward_backward_pipelining_without_interleaving(); none on the first stage). Outputs are freed once they are sent
 *                (deallocate_output_tensor()), and the next input is asked for behind the backward pass
 *   interleaved  with overlap_p2p_comm: the last output, which is freed in front of the next forward pass; the input for that; the gradient that is
 *                being sent; and, of a chunk whose turn is over, its last input with that one's gradient, since the model names it
 *                (set_input_tensor())
 *
 * In a replay (transformer_engine_replay.c) it is counted which of them there are when, and one more input with its gradient that has a name to the end of
 * the step.
 */
#ifndef MAQ_TRAIN_MEMORY_PIPELINE_TRANSFERS_H
#define MAQ_TRAIN_MEMORY_PIPELINE_TRANSFERS_H

#include "train/step/blueprint.h"

/* Bytes of one such tensor; of all at the stage's peak. */
double maq_border_bytes(const struct maq_blueprint *bp);
double maq_transfer_bytes(const struct maq_blueprint *bp, uint32_t stage);
/* How many a stage of a schedule has, the `first` or the `last` one or one between. */
uint32_t maq_pipeline_transfers(const struct maq_job *job, int schedule, bool first, bool last);
/* Bytes in 1F1B of a stage that is one program. */
double maq_program_transfer_bytes(const struct maq_blueprint *bp, const struct maq_program *program);

#endif
