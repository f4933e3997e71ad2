/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repeated_step.h - the period of steps that follow each other without a barrier: each stage begins the next one where it ends this one.
 *
 * x_k(s) is when stage s ends step k. Begins and ends of a step are maxima of sums, so that x_k = A x_(k-1) in max-plus algebra, and since
 * every stage waits for every other one in each step (forwards go up the pipeline, backwards down), A is full: after some steps
 *
 *     x_(k+c)(s) = x_k(s) + c T    for all s
 *
 * with c, the steps of a cycle (F. Baccelli, G. Cohen, G. J. Olsder, J.-P. Quadrat, Synchronization and Linearity, 1992, chapter 3). T is the mean
 * time of a step. Cycles of up to as many steps as there are stages are looked for. Where none is found in MAQ_REPEATED_STEPS steps and four for each
 * stage, T is taken to be the longest that a stage needed from the last step but one to the last, of which it is no more.
 */
#ifndef MAQ_TRAIN_STEP_REPEATED_STEP_H
#define MAQ_TRAIN_STEP_REPEATED_STEP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

enum { MAQ_REPEATED_STEPS = 32 };

struct maq_repeated_step {
    double *at;   /* [most * stages] ends of the steps so far */
    double start; /* of the step that runs, what begins are counted from */
    uint32_t stages, n, most;
};

/* False when out of memory. */
bool maq_repeated_step_begin(struct maq_repeated_step *r, uint32_t stages, struct maq_arena *arena);
/* Takes the ends of a step, counted as its begins are; whether the period is known. */
bool maq_repeated_step_ends(double *period, struct maq_repeated_step *r, const double *ends);
/* Begins of the next step, the least of which is 0. */
void maq_repeated_step_next(double *begins, struct maq_repeated_step *r);

#endif
