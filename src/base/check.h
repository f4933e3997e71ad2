/* check.h - assertions that stay in release builds, what any call may fail of, and the propagate macro. */
#ifndef MAQ_BASE_CHECK_H
#define MAQ_BASE_CHECK_H

#include "maquette/diag.h"

_Noreturn void maq__bug(const char *what, const char *file, int line);

/* A broken invariant of maquette itself: never caused by input. */
#define MAQ_ASSERT(cond) ((cond) ? (void)0 : maq__bug(#cond, __FILE__, __LINE__))

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

#define MAQ_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
