/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grow.h - arrays of the shim that grow one by one.
 */
#ifndef MAQ_SHIM_GROW_H
#define MAQ_SHIM_GROW_H

#include <stdint.h>
#include <stdlib.h>

/* An array with n of *room places taken that has a free one: it stays, or is one of twice as many (`first`, at first). NULL: no memory, and
 * it stays as it is. */
static inline void *vg_grown(void *array, uint64_t n, uint32_t *room, uint32_t first, size_t bytes)
{
    if (n < *room)
        return array;
    uint32_t more = *room == 0 ? first : *room * 2;
    void *bigger = realloc(array, more * bytes);
    if (bigger != NULL)
        *room = more;
    return bigger;
}

#endif
