/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bug.c - the end of the program at a broken invariant: calls the program's hook (maquette/diag.h), then aborts. See
 * bug.h.
 */
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
