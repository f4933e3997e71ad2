/*
 * train_error_fit.h - written by tools/fit-train-error; see error.c for what the figures mean.
 *
 * Fitted on 445 published training runs of 19 sources (at most 40 of each), z by leaving one source out.
 */
#ifndef MAQ_TRAIN_ERROR_FIT_H
#define MAQ_TRAIN_ERROR_FIT_H

/* of every step */
#define MAQ_TRAIN_ERROR_BASE 0.148
/* cost chain */
#define MAQ_TRAIN_ERROR_CHAIN 0.564
/* host bound */
#define MAQ_TRAIN_ERROR_HOST 4.2
/* communication inside domains */
#define MAQ_TRAIN_ERROR_NEAR 1.1
/* communication across domains */
#define MAQ_TRAIN_ERROR_FAR 0.231
/* bubble */
#define MAQ_TRAIN_ERROR_BUBBLE 0.0
/* memory bound */
#define MAQ_TRAIN_ERROR_MEMORY 0.882
/* experts */
#define MAQ_TRAIN_ERROR_EXPERTS 0.882
/* lower end of the 80 % interval */
#define MAQ_TRAIN_ERROR_Z10 -0.168
/* its upper end */
#define MAQ_TRAIN_ERROR_Z90 2.4

#endif
