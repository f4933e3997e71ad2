/* SPDX-License-Identifier: Apache-2.0 */
/*
 * galore.h - the update of weight matrices by GaLore.
 *
 * GaLore (Zhao et al., arXiv 2403.03507) keeps moments of a gradient that is projected to a low rank. Of a weight of m x n numbers and rank
 * r, by galore-torch 1.0 (galore_projector.py with proj_type std; adamw.py), r at most m and n:
 *
 *   projection   r min(m, n) numbers in the gradient's type: singular vectors of the shorter side
 *   moments      r max(m, n) numbers each
 *   step         gradient times projection, 2 m n r FLOP; the moments; back again, 2 m n r; times the scale; added to the weight
 *   every update_proj_gap steps: the singular value decomposition of the gradient in 4 bytes, of which a step has its share
 *
 * The decomposition is counted as 6 M N^2 + 20 N^3 FLOP, M the longer side (Golub and Van Loan, Matrix Computations, 4th ed., figure 8.6.1:
 * R-bidiagonalization, thin U, V and the values), at the pace of a product in FP32. That is the least it takes: cuSOLVER's Jacobi method
 * does several sweeps of such work, and PyTorch waits for it on the host.
 *
 * APOLLO (Zhu et al., arXiv 2412.05270; apollo-torch 1.0.3, apollo.py, random_projector.py) has the same projection and moments, but the projection is of
 * random numbers, and nothing goes back: of what Adam would do to the projected gradient and of that gradient itself there are norms for each channel, whose
 * quotient scales the gradient as it is; its norm is kept from growing by more than 1 % a step. No decomposition; two copies of a gradient at once.
 */
#ifndef MAQ_TRAIN_STEP_GALORE_H
#define MAQ_TRAIN_STEP_GALORE_H

#include "train/step/blueprint.h"

/* Adds the matrices of a module that are projected. */
void maq_galore_count(struct maq_low_rank *sum, const struct maq_lower *lower, const struct maq_layer *layer,
                      const struct maq_module *m);

/* FLOP of a decomposition. */
double maq_galore_decomposition_flop(double rows, double columns);

/* Projections, and a step's share of the decompositions, of the matrices of n programs. */
void maq_galore_put(struct maq_segment_writer *w, const struct maq_blueprint *bp,
                    const struct maq_program *const *programs, uint32_t n);

/* Bytes in addition to the states while the largest matrix is decomposed: a copy of its gradient in 4 bytes, and both sides' vectors;
 * of APOLLO two scaled gradients. */
double maq_galore_working_bytes(const struct maq_blueprint *bp, const struct maq_program *const *programs, uint32_t n);

#endif
