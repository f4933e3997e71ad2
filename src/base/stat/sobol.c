/* SPDX-License-Identifier: Apache-2.0 */
/* sobol.c - direction numbers, the scrambling matrices, and single points by their index. See sobol.h. */
#include "base/stat/sobol.h"

#include "base/stat/rng.h"

/*
 * Degree of the primitive polynomial, its inner coefficients as bits, the first direction numbers. Dimension 1 has all of them
 * 1.
 */
static const struct {
    uint8_t degree, inner, first[7];
} numbers[MAQ_QUASI_DIMENSIONS - 1] = {
    {1, 0, {1}},
    {2, 1, {1, 3}},
    {3, 1, {1, 3, 1}},
    {3, 2, {1, 1, 1}},
    {4, 1, {1, 1, 3, 3}},
    {4, 4, {1, 3, 5, 13}},
    {5, 2, {1, 1, 5, 5, 17}},
    {5, 4, {1, 1, 5, 5, 5}},
    {5, 7, {1, 1, 7, 11, 19}},
    {5, 11, {1, 1, 5, 1, 1}},
    {5, 13, {1, 1, 1, 3, 11}},
    {5, 14, {1, 3, 5, 5, 31}},
    {6, 1, {1, 3, 3, 9, 7, 49}},
    {6, 13, {1, 1, 1, 15, 21, 21}},
    {6, 16, {1, 3, 1, 13, 27, 49}},
    {6, 19, {1, 1, 1, 15, 7, 5}},
    {6, 22, {1, 3, 1, 15, 13, 25}},
    {6, 25, {1, 1, 5, 5, 19, 61}},
    {7, 1, {1, 3, 7, 11, 23, 15, 103}},
    {7, 4, {1, 3, 7, 13, 13, 15, 69}},
    {7, 7, {1, 1, 3, 13, 7, 35, 63}},
    {7, 8, {1, 3, 5, 9, 1, 25, 53}},
    {7, 14, {1, 3, 1, 13, 9, 35, 107}},
    {7, 19, {1, 3, 1, 5, 27, 61, 31}},
    {7, 21, {1, 1, 5, 11, 19, 41, 61}},
    {7, 28, {1, 3, 5, 3, 3, 13, 69}},
    {7, 31, {1, 1, 7, 13, 1, 19, 1}},
    {7, 32, {1, 3, 7, 5, 13, 19, 59}},
    {7, 37, {1, 1, 3, 9, 25, 29, 41}},
    {7, 41, {1, 3, 5, 13, 23, 1, 55}},
    {7, 42, {1, 3, 7, 3, 13, 59, 17}},
};

/* Directions of a dimension, the highest bit of each in bit 31 - k. */
static void directions(uint32_t v[32], uint32_t dimension)
{
    uint32_t s = dimension > 0 ? numbers[dimension - 1].degree : 0;
    for (uint32_t k = 0; k < 32; k++) {
        if (dimension == 0)
            v[k] = UINT32_C(1) << (31 - k);
        else if (k < s)
            v[k] = (uint32_t)numbers[dimension - 1].first[k] << (31 - k);
        else {
            v[k] = v[k - s] ^ v[k - s] >> s;
            for (uint32_t i = 1; i < s; i++)
                v[k] ^= (numbers[dimension - 1].inner >> (s - 1 - i) & 1u) * v[k - i];
        }
    }
}

void maq_sobol_init(struct maq_sobol *q, uint32_t dimensions, uint64_t seed, uint32_t scrambling)
{
    for (uint32_t d = 0; d < dimensions; d++) {
        uint32_t v[32], mixed[36]; /* what bit 31 - i of a direction becomes; then the shift */
        for (uint64_t b = 0; b < 9; b++)
            maq_rng_block(&mixed[4 * b], seed, MAQ_RNG_SCRAMBLE, UINT32_MAX - scrambling, 9 * (uint64_t)d + b);
        q->shift[d] = mixed[32];
        for (uint32_t i = 0; i < 32; i++) {
            uint32_t own = UINT32_C(1) << (31 - i);
            mixed[i] = (mixed[i] & (own - 1)) | own;
        }
        directions(v, d);
        for (uint32_t k = 0; k < 32; k++) {
            q->column[d][k] = 0;
            for (uint32_t i = 0; i < 32; i++)
                q->column[d][k] ^= (v[k] >> (31 - i) & 1u) * mixed[i];
        }
    }
}

double maq_sobol_at(const struct maq_sobol *q, uint32_t index, uint32_t dimension)
{
    uint32_t x = q->shift[dimension];
    for (uint32_t k = 0; index != 0; k++, index >>= 1)
        x ^= (index & 1u) * q->column[dimension][k];
    return (x + 0.5) * 0x1p-32;
}
