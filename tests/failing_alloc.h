/* SPDX-License-Identifier: Apache-2.0 */
/*
 * failing_alloc.h - for tests in which one allocation after the other fails: maq__set_alloc_gate(fail_nth), or all runs that it takes. To be included after
 * cmocka's header.
 */
#ifndef MAQ_TESTS_FAILING_ALLOC_H
#define MAQ_TESTS_FAILING_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/alloc.h"
#include "maquette/diag.h"

/* Allocations so far, and the one that fails. */
static size_t asked, fail_at;

static inline bool fail_nth(size_t bytes)
{
    (void)bytes;
    return ++asked != fail_at;
}

/*
 * A run that has all the memory it asks for, then one for each of its allocations, which fails; begins as {0}:
 *
 *     while (next_failing(&f))
 *         ...
 */
struct failing {
    size_t nth, all; /* the allocation that fails, 0 = none; how many there are, known behind the first run */
    bool begun;
};

static inline bool next_failing(struct failing *f)
{
    if (f->begun && f->nth == 0)
        f->all = asked;
    f->nth += f->begun;
    f->begun = true;
    const bool more = f->nth == 0 || f->nth <= f->all;
    asked = 0;
    fail_at = f->nth;
    maq__set_alloc_gate(more ? fail_nth : NULL);
    return more;
}

/* A run that says what became of it, and has made something only where all went well. */
static inline void expect_failing(const struct failing *f, enum maq_status status, const void *made)
{
    const bool fails = f->nth > 0;
    if (status != (fails ? MAQ_NO_MEMORY : MAQ_OK) || (made == NULL) != fails)
        fail_msg("allocation %zu of %zu failed: status %d", f->nth, f->all, (int)status);
}

#endif
