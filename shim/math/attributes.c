/* SPDX-License-Identifier: Apache-2.0 */
/* attributes.c - finds a member by its number in the table, and copies as many bytes as it is wide. */
#include "shim/math/attributes.h"

#include <string.h>

static const struct math_attribute *find(const struct math_attribute *table, size_t n, unsigned number)
{
    for (size_t i = 0; i < n; i++)
        if (table[i].number == number)
            return &table[i];
    return NULL;
}

enum math_bag_result math_bag_set(void *bag, const struct math_attribute *table, size_t n, unsigned number,
                                  const void *value, size_t bytes)
{
    const struct math_attribute *a = find(table, n, number);
    if (a == NULL)
        return MATH_BAG_UNKNOWN;
    if (value == NULL || bytes < a->bytes)
        return MATH_BAG_SIZE;
    memcpy((char *)bag + a->offset, value, a->bytes);
    return MATH_BAG_OK;
}

enum math_bag_result math_bag_get(const void *bag, const struct math_attribute *table, size_t n, unsigned number,
                                  void *value, size_t bytes, size_t *written)
{
    const struct math_attribute *a = find(table, n, number);
    if (a == NULL)
        return MATH_BAG_UNKNOWN;
    if (written != NULL)
        *written = a->bytes;
    if (bytes == 0)
        return written != NULL ? MATH_BAG_OK : MATH_BAG_SIZE;
    if (value == NULL || bytes < a->bytes)
        return MATH_BAG_SIZE;
    memcpy(value, (const char *)bag + a->offset, a->bytes);
    return MATH_BAG_OK;
}
