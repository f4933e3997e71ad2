/* SPDX-License-Identifier: Apache-2.0 */
/* device_of.h - a device of the database, for tests of what its kernels cost. */
#ifndef MAQ_TESTS_DEVICE_OF_H
#define MAQ_TESTS_DEVICE_OF_H

#include "base/arena.h"
#include "base/str.h"
#include "cluster/cluster_internal.h"

/* Fails the test where there is none of that name. */
static inline struct maq_device device_of(const char *name)
{
    static struct maq_arena arena; /* texts live as long as the program */
    struct maq_device d = {0};
    struct maq_diag *diag = maq_diag_new();
    if (!arena.block)
        maq_arena_init(&arena, 0);
    assert_int_equal(maq__device_by_name(&d, maq_str_of(name), (struct maq_span){0}, &arena, diag), MAQ_OK);
    maq_diag_free(diag);
    return d;
}

#endif
