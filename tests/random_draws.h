/* SPDX-License-Identifier: Apache-2.0 */
/* random_draws.h - reproducible numbers for tests that draw their cases: splitmix64 (Steele, Lea and Flood 2014). */
#ifndef MAQ_TESTS_RANDOM_DRAWS_H
#define MAQ_TESTS_RANDOM_DRAWS_H

#include <stdint.h>

static inline uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* From least to most, both included. */
static inline uint32_t draw(uint64_t *state, uint32_t least, uint32_t most)
{
    return least + (uint32_t)(next_random(state) % (most - least + 1));
}

static inline double uniform(uint64_t *state, double least, double most)
{
    return least + (most - least) * (double)(next_random(state) >> 11) / 9007199254740992.0;
}

#endif
