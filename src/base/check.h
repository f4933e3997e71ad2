/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - what every function checks: its invariants (bug.h), memory, and the calls it makes. */
#ifndef MAQ_BASE_CHECK_H
#define MAQ_BASE_CHECK_H

#include "base/bug.h"
#include "base/count.h"
#include "maquette/diag.h"

void maq__say_no_memory(struct maq_diag *diag, const char *of);
/* Fails with "out of memory for `of`"; NULL: without saying for what. `diag` may be NULL. */
static inline enum maq_status maq_no_memory(struct maq_diag *diag, const char *of)
{
    maq__say_no_memory(diag, of);
    return MAQ_NO_MEMORY;
}

/* Returns the status of a failed call to the caller; whoever detected it has written the diagnostic. */
#define MAQ_TRY(call)                                                                                                  \
    do {                                                                                                               \
        enum maq_status maq_try_status = (call);                                                                       \
        if (maq_try_status != MAQ_OK)                                                                                  \
            return maq_try_status;                                                                                     \
    } while (0)

/* The first of two that failed, of calls that are all made: so every fault is said. */
static inline enum maq_status maq_worse(enum maq_status a, enum maq_status b)
{
    return a != MAQ_OK ? a : b;
}

#endif
