/* SPDX-License-Identifier: Apache-2.0 */
/* range.h - numbers as lists of what varies have them: FIRST..LAST:xFACTOR, FIRST..LAST:+STEP. */
#ifndef MAQUETTE_RANGE_H
#define MAQUETTE_RANGE_H

#include "maquette/diag.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The numbers of "256", "256..4096:x2" or "0.5..2:+0.5", the last one counted where a step meets it, in out[most]. How many there are; 0: it is
 * none of these, begins at 0 or below, or has more.
 */
MAQ_API uint32_t maq_range_read(double *out, uint32_t most, const char *text);

#ifdef __cplusplus
}
#endif
#endif
