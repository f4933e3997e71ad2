/* SPDX-License-Identifier: Apache-2.0 */
/*
 * muon.h - the update of weight matrices by Muon.
 *
 * Muon (Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024; at scale: Liu et al., arXiv 2502.16982)
 * keeps one moment of a matrix and makes it orthogonal by Newton and Schulz's iteration before it is added. Of a matrix of m x n
 * numbers, m <= n, that is per iteration, in 32 bits on the units that take TF32 (`muon_fp32_matmul_prec` of Megatron Core is
 * "medium"):
 *
 *   A = X X'           2 m m n FLOP
 *   B = b A + c A A    2 m m m
 *   X = a X + B X      2 m m n
 *
 * Everything that is no matrix, the embedding and the output layer are Adam's. Matrices stay whole: with a sharded optimizer state
 * each rank has some of them, the queries', keys' and values' parts of one projection each by themselves, each expert by itself;
 * what TP cuts is gathered first and done by every rank of the group (`muon_tp_mode` "duplicated"; with "blockwise" each does its
 * part). Shares are those of Megatron Core's emerging_optimizers.py and layer_wise_optimizer.py, where the gradients are reduced to
 * and the weights gathered from the rank that has the matrix.
 */
#ifndef MAQ_TRAIN_STEP_MUON_H
#define MAQ_TRAIN_STEP_MUON_H

#include "train/step/blueprint.h"

/* Whether Muon updates a module's weight. */
bool maq_muon_updates(const struct maq_module *m);

/* The iterations of the rank that has the most of them, for the matrices of n programs. */
void maq_muon_put(struct maq_segment_writer *w, const struct maq_blueprint *bp,
                  const struct maq_program *const *programs, uint32_t n);

/* Bytes in addition to the states while the largest matrix of the programs is updated. */
double maq_muon_working_bytes(const struct maq_blueprint *bp, const struct maq_program *const *programs, uint32_t n);

#endif
