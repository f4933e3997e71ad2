/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uncertainty_fit.h - written by tools/fit-train-error; see uncertainty.c for what the figures mean.
 *
 * Fitted on 445 step times of 19 sources and 110 peaks of memory of 5,
 * at most 40 of each; z by leaving one source out.
 */
#ifndef MAQ_TRAIN_UNCERTAINTY_FIT_H
#define MAQ_TRAIN_UNCERTAINTY_FIT_H

/* of every step */
#define MAQ_TRAIN_ERROR_BASE 0.0449
/* cost chain */
#define MAQ_TRAIN_ERROR_CHAIN 0.816
/* host bound */
#define MAQ_TRAIN_ERROR_HOST 0.0
/* communication inside domains */
#define MAQ_TRAIN_ERROR_NEAR 0.653
/* communication across domains */
#define MAQ_TRAIN_ERROR_FAR 1.02
/* bubble */
#define MAQ_TRAIN_ERROR_BUBBLE 0.0
/* memory bound */
#define MAQ_TRAIN_ERROR_MEMORY 0.267
/* experts */
#define MAQ_TRAIN_ERROR_EXPERTS 0.214
/* lower end of the 80 % interval */
#define MAQ_TRAIN_ERROR_Z10 -0.917
/* its upper end */
#define MAQ_TRAIN_ERROR_Z90 1.65
/* lower end of the 80 % interval of memory, over the prediction */
#define MAQ_TRAIN_MEMORY_LOW 0.952
/* its upper end */
#define MAQ_TRAIN_MEMORY_HIGH 1.07

#endif
