/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module.c - finds the shared object of a module next to the program, in a build folder or where it was installed,
 * and loads it with dlopen(), here and nowhere else. See module.h.
 */
#include "maquette/module.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"

#ifndef MAQ_MODULE_FOLDER
#define MAQ_MODULE_FOLDER "/usr/local/lib/maquette"
#endif

/* Folder of the running program, "" when it cannot be told. */
static void program_folder(char out[512])
{
    ssize_t n = readlink("/proc/self/exe", out, 511);
    out[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(out, '/');
    *(slash ? slash : out) = '\0';
}

/* Where a module may lie, in the order of looking. */
static void places(char paths[4][MAQ_MODULE_PATH], const char *file, const char *built)
{
    char here[512];
    program_folder(here);
    (void)snprintf(paths[0], MAQ_MODULE_PATH, "%s/%s", here, file);
    (void)snprintf(paths[1], MAQ_MODULE_PATH, "%s/%s/%s", here, built, file);
    (void)snprintf(paths[2], MAQ_MODULE_PATH, "%s/../lib/maquette/%s", here, file);
    (void)snprintf(paths[3], MAQ_MODULE_PATH, "%s/%s", MAQ_MODULE_FOLDER, file);
}

bool maq_module_find(char path[MAQ_MODULE_PATH], const char *file, const char *built)
{
    char paths[4][MAQ_MODULE_PATH];
    places(paths, file, built);
    for (size_t i = 0; i < MAQ_COUNT(paths); i++)
        if (access(paths[i], R_OK) == 0) {
            memcpy(path, paths[i], sizeof paths[i]);
            return true;
        }
    return false;
}

#ifdef MAQ_SINGLE_FILE

void *maq_module_open(const char *path, char *why, size_t why_size)
{
    (void)snprintf(why, why_size, "the single-file program loads no shared objects (%.80s)", path);
    return NULL;
}

void *maq_module_load(const char *file, const char *built, const char *absent, char *why, size_t why_size)
{
    (void)built;
    (void)absent;
    return maq_module_open(file, why, why_size);
}

void maq_module_close(void *module)
{
    (void)module;
}

maq_module_fn maq_module_symbol(void *module, const char *name)
{
    (void)module;
    (void)name;
    return NULL;
}

#else

void *maq_module_open(const char *path, char *why, size_t why_size)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle)
        return handle;
    const char *error = dlerror();
    (void)snprintf(why, why_size, "%.180s", error ? error : "no reason given");
    return NULL;
}

void maq_module_close(void *module)
{
    (void)dlclose(module);
}

void *maq_module_load(const char *file, const char *built, const char *absent, char *why, size_t why_size)
{
    char paths[4][MAQ_MODULE_PATH], error[192];
    places(paths, file, built);
    (void)snprintf(why, why_size, "%s", absent);
    for (size_t i = 0; i < MAQ_COUNT(paths); i++) {
        if (access(paths[i], F_OK) != 0)
            continue;
        void *handle = maq_module_open(paths[i], error, sizeof error);
        if (handle)
            return handle;
        (void)snprintf(why, why_size, "%s does not load: %s", file, error);
    }
    return NULL;
}

maq_module_fn maq_module_symbol(void *module, const char *name)
{
    void *symbol = dlsym(module, name);
    maq_module_fn function;
    memcpy(&function, &symbol, sizeof function); /* ISO C has no cast from an object pointer to a function's */
    return function;
}

#endif
