/* bug.c - see bug.h: tells the hook of the program (maquette/diag.h), then ends it. */
#include "base/bug.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "maquette/diag.h"

static _Atomic(maq_bug_hook *) bug_hook;

void maq_set_bug_hook(maq_bug_hook *hook)
{
    atomic_store(&bug_hook, hook);
}

_Noreturn void maq__bug(const char *what, const char *file, int line)
{
    maq_bug_hook *hook = atomic_load(&bug_hook);
    if (hook)
        hook(what, file, line);
    abort();
}
