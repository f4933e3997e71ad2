/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stat.h - the figures that a set of errors comes to.
 */
#ifndef MAQ_VALIDATE_STAT_H
#define MAQ_VALIDATE_STAT_H

#include "maquette/validate.h"

/* "median", "mean", ... of a list of signed errors (it is sorted). */
struct maq_validate_stat maq__validate_stat(double *errors, uint32_t n);

#endif
