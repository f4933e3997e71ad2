/*
 * backend.c - finds the module that drives the GPU.
 *
 * `libmaquette-cuda.so` is looked for beside the program, in ../lib/maquette from there, and where it was to be
 * installed; the first one that loads is taken. It must be of the same make: the number of the border
 * (MAQ_PROFILE_ABI) says so.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "profile/plan.h"

#define MODULE "libmaquette-cuda.so"
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

static void *load_module(char why[MAQ_PROFILE_WHY])
{
    char here[512], paths[4][640];
    program_folder(here);
    snprintf(paths[0], sizeof paths[0], "%s/%s", here, MODULE);
    snprintf(paths[1], sizeof paths[1], "%s/src/profile/cuda/%s", here, MODULE); /* a build folder */
    snprintf(paths[2], sizeof paths[2], "%s/../lib/maquette/%s", here, MODULE);
    snprintf(paths[3], sizeof paths[3], "%s/%s", MAQ_MODULE_FOLDER, MODULE);
    snprintf(why, MAQ_PROFILE_WHY,
             "this maquette was built without its CUDA module (" MODULE "), which needs the CUDA toolkit");
    for (size_t i = 0; i < MAQ_COUNT(paths); i++) {
        if (access(paths[i], F_OK) != 0)
            continue;
        void *handle = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
        if (handle)
            return handle;
        const char *error = dlerror();
        snprintf(why, MAQ_PROFILE_WHY, "its CUDA module does not load: %.180s", error ? error : "no reason given");
    }
    return NULL;
}

bool maq_profile_find_backend(struct maq_profile_backend *out, void **handle, char why[MAQ_PROFILE_WHY])
{
    void *module = load_module(why), *symbol;
    maq_profile_open_fn *open;
    if (!module)
        return false;
    *out = (struct maq_profile_backend){0};
    symbol = dlsym(module, MAQ_PROFILE_ENTRY);
    memcpy(&open, &symbol, sizeof open); /* ISO C has no cast from an object pointer to a function's */
    if (!symbol)
        snprintf(why, MAQ_PROFILE_WHY, "its CUDA module lacks " MAQ_PROFILE_ENTRY);
    else if (open(out, why) && out->abi == MAQ_PROFILE_ABI) {
        *handle = module;
        return true;
    } else if (out->abi != 0 && out->abi != MAQ_PROFILE_ABI)
        snprintf(why, MAQ_PROFILE_WHY, "its CUDA module is of another version");
    dlclose(module);
    return false;
}

void maq_profile_close_backend(struct maq_profile_backend *backend, void *handle)
{
    backend->close(backend->state);
    dlclose(handle);
}
