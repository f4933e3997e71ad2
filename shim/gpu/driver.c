/* SPDX-License-Identifier: Apache-2.0 */
/* driver.c - libcuda.so.1 by dlopen, so that this library loads where there is no GPU; and a module of kernels per context. */
#include "shim/gpu/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

/* wait.cu as a fat binary; made into bytes by the build. */
extern const unsigned char vg_gpu_kernels[];

#define CONTEXTS 64 /* devices of a node that one process may drive */

static struct {
    pthread_once_t once;
    pthread_mutex_t lock;
    bool good;
    struct vg_driver calls;
    struct {
        CUcontext context;
        CUfunction kernel[VG_KERNEL_COUNT];
    } loaded[CONTEXTS];
    unsigned n_loaded;
} driver = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

static void find(void)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    bool good = lib != NULL;
    void *at;
#define FIND(member, call, symbol)                                                                                     \
    at = lib ? dlsym(lib, symbol) : NULL;                                                                              \
    memcpy(&driver.calls.member, &at, sizeof at);                                                                      \
    good = good && at;
    VG_DRIVER_CALLS(FIND)
#undef FIND
    driver.good = good;
}

const struct vg_driver *vg_driver(void)
{
    pthread_once(&driver.once, find);
    return driver.good ? &driver.calls : NULL;
}

static bool load(CUfunction *out)
{
    static const char *const names[VG_KERNEL_COUNT] = {"vg_timed_wait", "vg_fill_scaled", "vg_fill_noise"};
    CUmodule module;
    if (driver.calls.load(&module, vg_gpu_kernels) != CUDA_SUCCESS)
        return false;
    for (int k = 0; k < VG_KERNEL_COUNT; k++)
        if (driver.calls.find(&out[k], module, names[k]) != CUDA_SUCCESS)
            return false;
    return true;
}

CUfunction vg_driver_kernel(enum vg_kernel kernel)
{
    CUcontext context = NULL;
    CUfunction found = NULL;
    if (!vg_driver() || driver.calls.context(&context) != CUDA_SUCCESS || !context)
        return NULL;
    pthread_mutex_lock(&driver.lock);
    unsigned i = 0;
    while (i < driver.n_loaded && driver.loaded[i].context != context)
        i++;
    if (i == driver.n_loaded && i < CONTEXTS && load(driver.loaded[i].kernel)) {
        driver.loaded[i].context = context;
        driver.n_loaded++;
    }
    if (i < driver.n_loaded)
        found = driver.loaded[i].kernel[kernel];
    pthread_mutex_unlock(&driver.lock);
    return found;
}
