/* SPDX-License-Identifier: Apache-2.0 */
/* digits.h - what every rank of an exchange says, as a sum over the digits of its rank: see digits.c. */
#ifndef MAQ_SHIM_NCCL_DIGITS_H
#define MAQ_SHIM_NCCL_DIGITS_H

#include <stdbool.h>
#include <stdint.h>

/* What is known: word[m] of rank[m], and of rank 0. */
struct vg_said {
    const uint32_t *rank, *word;
    uint32_t n, word0;
};

/* Fills words[n]; false: no sum explains what is known, or several may. *steady is cleared where a member who says what is found here
 * could still turn the answer to another sum. */
bool vg_digits(uint32_t *words, bool *steady, uint32_t n, const struct vg_said *said);

#endif
