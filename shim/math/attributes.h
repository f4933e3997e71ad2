/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attributes.h - descriptors whose members are set and read by number: cublasLt...SetAttribute and its like.
 *
 * A table says which number is which member and how wide it is. A number that is not in the table is taken and forgotten:
 * it belongs to a newer library, and changes nothing of what is recorded.
 */
#ifndef MAQ_SHIM_MATH_ATTRIBUTES_H
#define MAQ_SHIM_MATH_ATTRIBUTES_H

#include <stddef.h>
#include <stdint.h>

struct math_attribute {
    uint16_t number, offset, bytes;
};
#define MATH_ATTRIBUTE(number, type, member)                                                                           \
    {                                                                                                                  \
        number, offsetof(type, member), sizeof(((type *)0)->member)                                                    \
    }

enum math_bag_result { MATH_BAG_OK, MATH_BAG_UNKNOWN, MATH_BAG_SIZE };
/* What is given may be wider than the member where the high bytes are zero (a 64-bit count), but not narrower. */
enum math_bag_result math_bag_set(void *bag, const struct math_attribute *table, size_t n, unsigned number,
                                  const void *value, size_t bytes);
/* *written: the width of the member, also where `bytes` is 0 and nothing is copied. */
enum math_bag_result math_bag_get(const void *bag, const struct math_attribute *table, size_t n, unsigned number,
                                  void *value, size_t bytes, size_t *written);

#endif
