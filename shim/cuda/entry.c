/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entry.c - entry points by name: cudaGetDriverEntryPoint() and cuGetProcAddress() hand out functions of this library.
 *
 * A name without a version suffix means the newest one that the asked-for version of CUDA has; here that is the highest _vN that is
 * defined. Names that the zero-GPU device does not know are "not found", and so are per-thread variants (_ptsz, _ptds) of what has
 * none.
 */
#include "shim/cuda/cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { FOUND = 0, NOT_FOUND = 1, PER_THREAD = 2 };

static void anchor(void)
{
}

/* The library itself, so that nobody else's symbols answer. */
static void *self(void)
{
    static void *handle;
    Dl_info info;
    if (handle == NULL && dladdr((void *)(uintptr_t)anchor, &info) != 0)
        handle = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    return handle;
}

/* The trap stubs: the linker names the ends of their section. */
extern char stubs_begin[] __asm__("__start_vg_stubs") __attribute__((visibility("hidden")));
extern char stubs_end[] __asm__("__stop_vg_stubs") __attribute__((visibility("hidden")));

static void *real(const char *name)
{
    char *p = dlsym(self(), name);
    return p >= stubs_begin && p < stubs_end ? NULL : p;
}

static void *find(const char *symbol, bool per_thread)
{
    static const char *const suffixes[] = {"_v3", "_v2", ""};
    char name[160];
    void *p = NULL;
    if (strncmp(symbol, "cu", 2) != 0)
        return NULL;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes && p == NULL; i++) {
        if (per_thread) {
            snprintf(name, sizeof name, "%s%s_ptsz", symbol, suffixes[i]);
            p = real(name);
        }
        snprintf(name, sizeof name, "%s%s", symbol, suffixes[i]);
        p = p != NULL ? p : real(name);
    }
    return p;
}

static int look(const char *symbol, void **function, uint64_t flags, int *status)
{
    *function = symbol != NULL ? find(symbol, (flags & PER_THREAD) != 0) : NULL;
    if (status != NULL)
        *status = *function != NULL ? FOUND : NOT_FOUND;
    return *function != NULL ? VG_OK : VG_NOT_FOUND;
}

VG_EXPORT int cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *status)
{
    (void)version;
    return look(symbol, function, flags, status);
}

VG_EXPORT int cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags)
{
    return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}

/* The runtime succeeds and says in *status that there is no such function. */
VG_EXPORT int cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version,
                                               unsigned long long flags, int *status)
{
    (void)version;
    int found = look(symbol, function, flags, status);
    return vg_result(status != NULL ? VG_OK : found == VG_OK ? VG_OK : VG_NOT_FOUND);
}

VG_EXPORT int cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags, int *status)
{
    return cudaGetDriverEntryPointByVersion(symbol, function, 0, flags, status);
}
