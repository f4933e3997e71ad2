/* SPDX-License-Identifier: Apache-2.0 */
/* failing_alloc.h - for tests in which one allocation after the other fails: maq__set_alloc_gate(fail_nth). */
#ifndef MAQ_TESTS_FAILING_ALLOC_H
#define MAQ_TESTS_FAILING_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

/* Allocations so far, and the one that fails. */
static size_t asked, fail_at;

static bool fail_nth(size_t bytes)
{
    (void)bytes;
    return ++asked != fail_at;
}

#endif
