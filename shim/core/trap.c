/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trap.c - a call that the zero-GPU device does not answer says so, once per name, and fails as its library fails.
 *
 * In a CUDA program: calls that this library has no body for.
 */
#include "shim/core/core.h"

#include <stdio.h>
#include <unistd.h>

enum { VG_TRAP_NAMES = 4096 }; /* a power of two, more than the libraries have names */

/* Names are string constants of the stubs: the address is the name. */
static const char *said[VG_TRAP_NAMES];

static bool first(const char *name)
{
    size_t at = maq_rec_mix((uintptr_t)name, 0) % VG_TRAP_NAMES;
    for (size_t i = 0; i < VG_TRAP_NAMES; i++, at = (at + 1) % VG_TRAP_NAMES) {
        if (said[at] == name)
            return false;
        if (said[at] == NULL) {
            said[at] = name;
            return true;
        }
    }
    return false;
}

int vg_trap(const char *library, const char *name, int answer)
{
    vg_lock();
    if (first(name)) {
        char text[256];
        int n =
            snprintf(text, sizeof text, "maquette: %s (%s) is not in the zero-GPU device: answered %d, not supported\n",
                     name, library, answer);
        ssize_t told = n > 0 ? write(STDERR_FILENO, text, n < (int)sizeof text ? (size_t)n : sizeof text - 1) : 0;
        (void)told; /* where standard error is closed, nobody is to be told */
    }
    vg_unlock();
    return answer;
}
