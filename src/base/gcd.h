/* SPDX-License-Identifier: Apache-2.0 */
/* gcd.h - the greatest common divisor of two numbers that are not negative (Euclid); of 0 and n it is n. */
#ifndef MAQ_BASE_GCD_H
#define MAQ_BASE_GCD_H

#include <stdint.h>

static inline int64_t maq_gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

#endif
