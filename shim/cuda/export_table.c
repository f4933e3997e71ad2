/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export_table.c - the driver's undocumented tables: there are none, and who asks for one is named.
 *
 * Who asks is a CUDA runtime that was linked into a library: it does not start without them, and all that the library does with the device
 * fails from there on, with an error that says nothing of it. The user is told once for each library, and can look for another way.
 */
#include "shim/cuda/cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

enum { TOLD_MOST = 8 };

static void tell(const void *caller)
{
    static const void *told[TOLD_MOST]; /* bases of libraries */
    static unsigned n_told;
    Dl_info from;
    char line[640];
    if (dladdr(caller, &from) == 0 || from.dli_fname == NULL)
        return;
    vg_lock();
    bool known = n_told == TOLD_MOST;
    for (unsigned i = 0; i < n_told; i++)
        known = known || told[i] == from.dli_fbase;
    if (!known)
        told[n_told++] = from.dli_fbase;
    vg_unlock();
    if (known)
        return;
    int n =
        snprintf(line, sizeof line,
                 "maquette: %.400s has CUDA's runtime inside, where nothing can stand in for it: what it does with the "
                 "device fails; see whether its program has a way without it\n",
                 from.dli_fname);
    if (n > 0 && write(STDERR_FILENO, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1) < 0)
        return; /* where standard error is closed, nobody is to be told */
}

VG_EXPORT int cudaGetExportTable(const void **table, const struct vg_uuid *id)
{
    (void)id;
    *table = NULL;
    tell(__builtin_return_address(0));
    return VG_NOT_FOUND;
}

VG_EXPORT int cuGetExportTable(const void **table, const struct vg_uuid *id)
{
    (void)id;
    *table = NULL;
    tell(__builtin_return_address(0));
    return VG_NOT_FOUND;
}
