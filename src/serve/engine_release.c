/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_release.c - releases of engines as numbers in their order.
 */
#include "serve/engine_release.h"

#include "base/str.h"

/* The digits in front: "0rc2" and "" are 0. */
static int32_t leading(struct maq_str s)
{
    int32_t n = 0;
    for (size_t i = 0; i < s.len && s.ptr[i] >= '0' && s.ptr[i] <= '9' && n < 1000; i++)
        n = n * 10 + (s.ptr[i] - '0');
    return n < 1000 ? n : 999;
}

int32_t maq_engine_release(const char *version)
{
    struct maq_str rest = version ? maq_str_of(version) : MAQ_STR(""), major, minor, patch;
    double a, b;
    rest = maq_str_split(rest, '.', &major);
    rest = maq_str_split(rest, '.', &minor);
    (void)maq_str_split(rest, '.', &patch);
    if (!maq_str_to_double(&a, major) || !maq_str_to_double(&b, minor) || !(a >= 0 && a < 100 && b >= 0 && b < 1000))
        return INT32_MAX;
    return ((int32_t)a * 1000 + (int32_t)b) * 1000 + leading(patch);
}
