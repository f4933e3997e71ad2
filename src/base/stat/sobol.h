/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sobol.h - points that fill the unit cube more evenly than random ones: Sobol's sequence, scrambled.
 *
 * Direction numbers are those of Joe and Kuo, "Constructing Sobol sequences with better two-dimensional projections",
 * SIAM J. Sci. Comput. 30 (2008), file new-joe-kuo-6.21201. Each dimension's bits are multiplied by a random lower
 * triangular matrix and shifted (Matousek, "On the L2-discrepancy for anchored boxes", 1998): any one point is then
 * uniform, any 2^k points in a row from a multiple of 2^k have one in each of 2^k equal intervals of every dimension,
 * and scramblings with different numbers are independent of each other.
 */
#ifndef MAQ_BASE_STAT_SOBOL_H
#define MAQ_BASE_STAT_SOBOL_H

#include <stdint.h>

#define MAQ_QUASI_DIMENSIONS 32u

struct maq_sobol {
    uint32_t column[MAQ_QUASI_DIMENSIONS][32]; /* what a bit of the index adds */
    uint32_t shift[MAQ_QUASI_DIMENSIONS];
};

/* The first `dimensions`, at most MAQ_QUASI_DIMENSIONS. */
void maq_sobol_init(struct maq_sobol *q, uint32_t dimensions, uint64_t seed, uint32_t scrambling);
/* Uniform in (0, 1). */
double maq_sobol_at(const struct maq_sobol *q, uint32_t index, uint32_t dimension);

#endif
