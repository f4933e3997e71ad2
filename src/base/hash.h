/* SPDX-License-Identifier: Apache-2.0 */
/* hash.h - hashing of values without padding, for tables in memory. Never stored, never printed. */
#ifndef MAQ_BASE_HASH_H
#define MAQ_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Of `size` bytes, a multiple of 8. The multipliers are odd constants of splitmix64 and MurmurHash3's finalizer. */
static inline uint64_t maq_hash_words(const void *value, size_t size)
{
    const unsigned char *p = value;
    uint64_t h = 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i + 8 <= size; i += 8) {
        uint64_t w;
        memcpy(&w, p + i, 8);
        h = (h ^ w) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    return h;
}

#endif
