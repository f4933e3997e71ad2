/* check.h - assertions that stay in release builds, and the propagate macro. */
#ifndef MAQ_BASE_CHECK_H
#define MAQ_BASE_CHECK_H

#include "maquette/diag.h"

_Noreturn void maq__bug(const char *what, const char *file, int line);

/* A broken invariant of maquette itself: never caused by input. */
#define MAQ_ASSERT(cond) ((cond) ? (void)0 : maq__bug(#cond, __FILE__, __LINE__))

/* Returns the status of a failed call to the caller; whoever detected it has written the diagnostic. */
#define MAQ_TRY(call)                                                                                                  \
    do {                                                                                                               \
        enum maq_status maq_try_status = (call);                                                                       \
        if (maq_try_status != MAQ_OK)                                                                                  \
            return maq_try_status;                                                                                     \
    } while (0)

#define MAQ_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
