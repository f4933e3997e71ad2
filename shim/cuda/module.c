/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module.c - code that is loaded at run time: modules and libraries of both APIs, and the driver's linker, which links
 * nothing. Compilers that run on the host (NVRTC, Triton's ptxas) give cubins with real names and parameters.
 */
#include "shim/cuda/cuda.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int load(void **out, const void *code, bool copied)
{
    vg_call();
    *out = code != NULL ? vg_image_new(code, copied) : NULL;
    return *out != NULL ? VG_OK : VG_INVALID_VALUE;
}

static int load_file(void **out, const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0 || st.st_size < 64) {
        if (fd >= 0)
            close(fd);
        return fd < 0 ? VG_FILE_NOT_FOUND : VG_INVALID_IMAGE;
    }
    void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (bytes == MAP_FAILED)
        return VG_INVALID_IMAGE;
    int status = vg_image_bytes(bytes) <= (uint64_t)st.st_size ? load(out, bytes, true) : VG_INVALID_IMAGE;
    munmap(bytes, (size_t)st.st_size);
    return status;
}

static int get(void **kernel, void *image, const char *name)
{
    vg_call();
    *kernel = image != NULL && name != NULL ? vg_kernel_named(image, name) : NULL;
    return *kernel != NULL ? VG_OK : VG_NOT_FOUND;
}

static int count(unsigned *n, void *image)
{
    vg_call();
    if (n == NULL || image == NULL)
        return VG_INVALID_VALUE;
    *n = vg_image_list(image, NULL, 0);
    return VG_OK;
}

static int enumerate(void **kernels, unsigned n, void *image)
{
    vg_call();
    if (kernels == NULL || image == NULL || n == 0)
        return VG_INVALID_VALUE;
    vg_image_list(image, kernels, n);
    return VG_OK;
}

/* A variable of loaded code, by name: nobody says how large it is, so it has a page, which the host sees. */
enum { GLOBAL_BYTES = 4096 };
struct global {
    struct global *next;
    void *image;
    unsigned char bytes[GLOBAL_BYTES];
    char name[];
};
static struct global *globals;

static int get_global(uint64_t *at, size_t *bytes, void *image, const char *name)
{
    vg_lock();
    struct global *g = globals;
    while (g != NULL && (g->image != image || strcmp(g->name, name) != 0))
        g = g->next;
    if (g == NULL && (g = calloc(1, sizeof *g + strlen(name) + 1)) != NULL) {
        memcpy(g->name, name, strlen(name) + 1);
        g->image = image;
        g->next = globals;
        globals = g;
    }
    vg_unlock();
    if (at != NULL)
        *at = g != NULL ? (uintptr_t)g->bytes : 0;
    if (bytes != NULL)
        *bytes = GLOBAL_BYTES;
    return g != NULL ? VG_OK : VG_OUT_OF_MEMORY;
}

/* --- driver: modules --------------------------------------------------------------------------------------------------------- */

VG_EXPORT int cuModuleLoad(void **module, const char *path)
{
    return load_file(module, path);
}

VG_EXPORT int cuModuleLoadData(void **module, const void *image)
{
    return load(module, image, true);
}

VG_EXPORT int cuModuleLoadDataEx(void **module, const void *image, unsigned n, int *options, void **values)
{
    (void)n, (void)options, (void)values;
    return load(module, image, true);
}

VG_EXPORT int cuModuleLoadFatBinary(void **module, const void *image)
{
    return load(module, image, true);
}

VG_EXPORT int cuModuleUnload(void *module)
{
    (void)module; /* its kernels may be nodes of graphs */
    return VG_OK;
}

VG_EXPORT int cuModuleGetFunction(void **function, void *module, const char *name)
{
    return get(function, module, name);
}

VG_EXPORT int cuModuleGetFunctionCount(unsigned *n, void *module)
{
    return count(n, module);
}

VG_EXPORT int cuModuleEnumerateFunctions(void **functions, unsigned n, void *module)
{
    return enumerate(functions, n, module);
}

VG_EXPORT int cuModuleGetGlobal_v2(uint64_t *at, size_t *bytes, void *module, const char *name)
{
    return get_global(at, bytes, module, name);
}

VG_EXPORT int cuModuleGetLoadingMode(int *mode)
{
    *mode = 2; /* lazy */
    return VG_OK;
}

VG_EXPORT int cuFuncGetModule(void **module, void *function)
{
    struct vg_kernel *kernel = vg_kernel_of(function);
    *module = kernel != NULL ? kernel->image : NULL;
    return kernel != NULL ? VG_OK : VG_INVALID_HANDLE;
}

VG_EXPORT int cuFuncLoad(void *function)
{
    return vg_kernel_of(function) != NULL ? VG_OK : VG_INVALID_HANDLE;
}

VG_EXPORT int cuFuncIsLoaded(int *state, void *function)
{
    *state = 1;
    return cuFuncLoad(function);
}

/* --- libraries, driver and runtime --------------------------------------------------------------------------------------------- */

VG_EXPORT int cuLibraryLoadData(void **library, const void *code, int *options, void **values, unsigned n,
                                int *library_options, void **library_values, unsigned n_library)
{
    (void)options, (void)values, (void)n, (void)library_options, (void)library_values, (void)n_library;
    return load(library, code, true);
}

VG_EXPORT int cuLibraryLoadFromFile(void **library, const char *path, int *options, void **values, unsigned n,
                                    int *library_options, void **library_values, unsigned n_library)
{
    (void)options, (void)values, (void)n, (void)library_options, (void)library_values, (void)n_library;
    return load_file(library, path);
}

VG_EXPORT int cuLibraryUnload(void *library)
{
    (void)library;
    return VG_OK;
}

VG_EXPORT int cuLibraryGetKernel(void **kernel, void *library, const char *name)
{
    return get(kernel, library, name);
}

VG_EXPORT int cuLibraryGetKernelCount(unsigned *n, void *library)
{
    return count(n, library);
}

VG_EXPORT int cuLibraryEnumerateKernels(void **kernels, unsigned n, void *library)
{
    return enumerate(kernels, n, library);
}

VG_EXPORT int cuLibraryGetModule(void **module, void *library)
{
    *module = library;
    return VG_OK;
}

VG_EXPORT int cuLibraryGetGlobal(uint64_t *at, size_t *bytes, void *library, const char *name)
{
    return get_global(at, bytes, library, name);
}

VG_EXPORT int cuKernelGetFunction(void **function, void *kernel)
{
    *function = vg_kernel_of(kernel);
    return *function != NULL ? VG_OK : VG_INVALID_HANDLE;
}

VG_EXPORT int cuKernelGetLibrary(void **library, void *kernel)
{
    return cuFuncGetModule(library, kernel);
}

VG_EXPORT int cudaLibraryLoadData(void **library, const void *code, int *options, void **values, unsigned n,
                                  int *library_options, void **library_values, unsigned n_library)
{
    return vg_result(cuLibraryLoadData(library, code, options, values, n, library_options, library_values, n_library));
}

VG_EXPORT int cudaLibraryLoadFromFile(void **library, const char *path, int *options, void **values, unsigned n,
                                      int *library_options, void **library_values, unsigned n_library)
{
    return vg_result(
        cuLibraryLoadFromFile(library, path, options, values, n, library_options, library_values, n_library));
}

VG_EXPORT int cudaLibraryUnload(void *library)
{
    return vg_result(cuLibraryUnload(library));
}

VG_EXPORT int cudaLibraryGetKernel(void **kernel, void *library, const char *name)
{
    return vg_result(get(kernel, library, name));
}

VG_EXPORT int cudaLibraryGetKernelCount(unsigned *n, void *library)
{
    return vg_result(count(n, library));
}

VG_EXPORT int cudaLibraryEnumerateKernels(void **kernels, unsigned n, void *library)
{
    return vg_result(enumerate(kernels, n, library));
}

VG_EXPORT int cudaLibraryGetGlobal(void **at, size_t *bytes, void *library, const char *name)
{
    uint64_t p = 0;
    int status = get_global(&p, bytes, library, name);
    *at = (void *)(uintptr_t)p; // NOLINT(performance-no-int-to-ptr)
    return vg_result(status);
}

/* --- the driver's linker ------------------------------------------------------------------------------------------------------- */

struct link {
    void *image;
    size_t bytes;
};

VG_EXPORT int cuLinkCreate_v2(unsigned n, int *options, void **values, void **state)
{
    (void)n, (void)options, (void)values;
    *state = calloc(1, sizeof(struct link));
    return *state != NULL ? VG_OK : VG_OUT_OF_MEMORY;
}

/* The last input stands for the result. */
VG_EXPORT int cuLinkAddData_v2(struct link *state, int type, void *data, size_t bytes, const char *name, unsigned n,
                               int *options, void **values)
{
    (void)type, (void)name, (void)n, (void)options, (void)values;
    void *copy = calloc(1, bytes + 64);
    if (copy == NULL)
        return VG_OUT_OF_MEMORY;
    memcpy(copy, data, bytes);
    free(state->image);
    state->image = copy;
    state->bytes = bytes;
    return VG_OK;
}

VG_EXPORT int cuLinkComplete(struct link *state, void **cubin, size_t *bytes)
{
    *cubin = state->image;
    if (bytes != NULL)
        *bytes = state->bytes;
    return state->image != NULL ? VG_OK : VG_INVALID_VALUE;
}

VG_EXPORT int cuLinkDestroy(struct link *state)
{
    free(state->image);
    free(state);
    return VG_OK;
}
