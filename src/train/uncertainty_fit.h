/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uncertainty_fit.h - written by tools/fit-train-error; see uncertainty.c for what the figures mean.
 *
 * Fitted on 445 step times of 19 sources and 110 peaks of memory of 5,
 * at most 40 of each; z by leaving one source out.
 */
#ifndef MAQ_TRAIN_UNCERTAINTY_FIT_H
#define MAQ_TRAIN_UNCERTAINTY_FIT_H

/* clang-format off */
/* of every step */
#define MAQ_TRAIN_ERROR_BASE 0.0773
/* cost chain */
#define MAQ_TRAIN_ERROR_CHAIN 0.295
/* host bound */
#define MAQ_TRAIN_ERROR_HOST 0.0
/* communication inside domains */
#define MAQ_TRAIN_ERROR_NEAR 0.461
/* communication across domains */
#define MAQ_TRAIN_ERROR_FAR 0.72
/* bubble */
#define MAQ_TRAIN_ERROR_BUBBLE 0.0
/* memory bound */
#define MAQ_TRAIN_ERROR_MEMORY 0.295
/* experts */
#define MAQ_TRAIN_ERROR_EXPERTS 0.369
/* lower end of the 80 % interval */
#define MAQ_TRAIN_ERROR_Z10 -0.969
/* its upper end */
#define MAQ_TRAIN_ERROR_Z90 1.59
/* lower end of the 80 % interval of memory, over the prediction */
#define MAQ_TRAIN_MEMORY_LOW 0.953
/* its upper end */
#define MAQ_TRAIN_MEMORY_HIGH 1.06
/* measured over predicted memory: quantiles at 0, 1 / 20, ... 1 */
#define MAQ_TRAIN_MEMORY_QUANTILES \
    {0.8712, 0.9365, 0.9525, 0.9635, 0.9696, 0.9791, 0.9905, 1.0005, 1.0024, 1.0034, \
     1.0080, 1.0107, 1.0135, 1.0169, 1.0218, 1.0307, 1.0351, 1.0546, 1.0627, 1.1010, \
     1.2035}
/* clang-format on */

#endif
