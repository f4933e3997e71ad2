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
#define MAQ_TRAIN_ERROR_CHAIN 0.236
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
#define MAQ_TRAIN_ERROR_EXPERTS 0.461
/* lower end of the 80 % interval */
#define MAQ_TRAIN_ERROR_Z10 -0.969
/* its upper end */
#define MAQ_TRAIN_ERROR_Z90 1.59
/* lower end of the 80 % interval of memory, over the prediction */
#define MAQ_TRAIN_MEMORY_LOW 0.958
/* its upper end */
#define MAQ_TRAIN_MEMORY_HIGH 1.06
/* measured over predicted memory: quantiles at 0, 1 / 20, ... 1 */
#define MAQ_TRAIN_MEMORY_QUANTILES \
    {0.8782, 0.9365, 0.9582, 0.9765, 0.9835, 0.9861, 0.9914, 0.9938, 0.9987, 1.0069, \
     1.0090, 1.0120, 1.0149, 1.0208, 1.0272, 1.0317, 1.0337, 1.0422, 1.0575, 1.0875, \
     1.2723}
/* clang-format on */

#endif
