/* SPDX-License-Identifier: Apache-2.0 */
/*
 * register.c - how a program tells its kernels and device variables to the runtime, and the table of them.
 *
 * nvcc embeds a fat binary per object file and calls __cudaRegisterFatBinary(), then __cudaRegisterFunction() for each kernel with
 * the host function that stands for it. A fat binary is read when one of its kernels is launched first, for all of
 * its kernels at once: a program with thousands of kernels launches few.
 */
#include "shim/cuda/jit_kernel.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { WRAPPER_MAGIC = 0x466243b1 };
struct wrapper {
    int magic, version; /* 1: data is the fat binary; 2: linked device code, data is too */
    const void *data;
    void *more;
};

/* --- pointers to things: host functions to kernels, host variables to device memory ------------------------------------ */

struct entry {
    const void *key;
    void *kernel;
    void *memory;
    size_t bytes;
};
static struct entry *entries;
static size_t n_entries, n_slots;

static struct entry *slot(const void *key)
{
    size_t at = maq_rec_mix((uintptr_t)key, 0) & (n_slots - 1);
    while (entries[at].key != NULL && entries[at].key != key)
        at = (at + 1) & (n_slots - 1);
    return &entries[at];
}

/* The entry of key, made when there is none; NULL = out of memory. */
static struct entry *enter(const void *key)
{
    if (n_entries * 2 >= n_slots) {
        size_t old = n_slots, more = old == 0 ? 1024 : old * 2;
        struct entry *was = entries, *bigger = calloc(more, sizeof *bigger);
        if (bigger == NULL)
            return NULL;
        entries = bigger;
        n_slots = more;
        for (size_t i = 0; i < old; i++)
            if (was[i].key != NULL)
                *slot(was[i].key) = was[i];
        free(was);
    }
    struct entry *e = slot(key);
    if (e->key == NULL) {
        e->key = key;
        n_entries++;
    }
    return e;
}

static struct entry *find(const void *key)
{
    struct entry *e = n_slots > 0 && key != NULL ? slot(key) : NULL;
    return e != NULL && e->key != NULL ? e : NULL;
}

struct vg_kernel *vg_kernel_of_host(const void *function)
{
    vg_lock();
    struct entry *e = find(function);
    struct vg_kernel *kernel = e != NULL ? e->kernel : NULL;
    vg_unlock();
    return kernel;
}

/* --- images and kernels ------------------------------------------------------------------------------------------------- */

struct vg_image *vg_image_new(const void *data, bool copied)
{
    struct vg_image *image = calloc(1, sizeof *image);
    const struct wrapper *w = data;
    if (image == NULL || data == NULL)
        return image;
    if (w->magic == WRAPPER_MAGIC)
        data = w->data;
    image->data = data;
    image->bytes = data != NULL ? vg_image_bytes(data) : 0;
    if (copied && image->bytes > 0 && (image->copy = malloc(image->bytes)) != NULL) {
        memcpy(image->copy, data, image->bytes);
        image->data = image->copy;
    }
    return image;
}

struct vg_kernel *vg_kernel_new(struct vg_image *image, const char *name)
{
    struct vg_kernel *kernel = calloc(1, sizeof *kernel);
    char *copy = strdup(name);
    if (kernel == NULL || copy == NULL) {
        free(kernel);
        free(copy);
        return NULL;
    }
    *kernel = (struct vg_kernel){.magic = VG_KERNEL_MAGIC, .name = copy, .image = image, .carveout = -1};
    if (image != NULL && image->copy != NULL)
        kernel->jit = vg_jit_new();
    if (image != NULL && image->n == image->room) {
        uint32_t more = image->room == 0 ? 8 : image->room * 2;
        struct vg_kernel **bigger = realloc(image->kernels, more * sizeof(struct vg_kernel *));
        if (bigger == NULL)
            return kernel;
        image->kernels = bigger;
        image->room = more;
    }
    if (image != NULL) {
        image->kernels[image->n++] = kernel;
        image->read = false;
    }
    return kernel;
}

void vg_kernel_prepare(const struct vg_kernel *kernel)
{
    vg_lock();
    struct vg_image *image = kernel->image;
    uint32_t n = image != NULL ? image->n : 0;
    const char **names = image != NULL && !image->read ? calloc((size_t)n + 1, sizeof(char *)) : NULL;
    struct vg_code *codes = names != NULL ? calloc((size_t)n + 1, sizeof *codes) : NULL;
    for (uint32_t i = 0; codes != NULL && i < n; i++)
        names[i] = image->kernels[i]->code.found ? NULL : image->kernels[i]->name;
    if (codes != NULL && image->bytes > 0)
        vg_image_read(codes, names, n, image->data, image->bytes, vg_card()->capability);
    for (uint32_t i = 0; codes != NULL && i < n; i++)
        if (names[i] != NULL)
            image->kernels[i]->code = codes[i];
    if (codes != NULL)
        image->read = true;
    free(codes);
    free(names);
    vg_unlock();
}

struct wanted {
    const char *name;
    bool there, any;
};

static void compare(const char *name, void *user)
{
    struct wanted *w = user;
    w->any = true;
    w->there = w->there || strcmp(name, w->name) == 0;
}

/* What cannot be read (PTX, a form of compression) may have any kernel. */
struct vg_kernel *vg_kernel_named(struct vg_image *image, const char *name)
{
    vg_lock();
    struct vg_kernel *kernel = NULL;
    struct wanted w = {.name = name};
    for (uint32_t i = 0; i < image->n && kernel == NULL; i++)
        if (strcmp(image->kernels[i]->name, name) == 0)
            kernel = image->kernels[i];
    if (kernel == NULL && image->bytes > 0)
        vg_image_kernels(image->data, image->bytes, vg_card()->capability, compare, &w);
    if (kernel == NULL && (w.there || !w.any))
        kernel = vg_kernel_new(image, name);
    vg_unlock();
    return kernel;
}

struct listing {
    struct vg_image *image;
    void **kernel;
    unsigned n, most;
};

static void list(const char *name, void *user)
{
    struct listing *l = user;
    if (l->n < l->most)
        l->kernel[l->n] = vg_kernel_named(l->image, name);
    l->n++;
}

unsigned vg_image_list(struct vg_image *image, void **kernels, unsigned most)
{
    struct listing l = {.image = image, .kernel = kernels, .most = most};
    if (image->bytes > 0)
        vg_image_kernels(image->data, image->bytes, vg_card()->capability, list, &l);
    return l.n;
}

/* --- what nvcc's host code calls ------------------------------------------------------------------------------------------ */

/*
 * Whose code it is: engines carry kernels in shared objects of their own package, which is loaded before anything is computed.
 */
static void look_whose(const void *code)
{
    static const struct {
        const char *folder;
        enum maq_rec_engine engine;
    } packages[] = {{"/vllm/", MAQ_REC_VLLM}, {"/sgl_kernel/", MAQ_REC_SGLANG}, {"/tensorrt_llm/", MAQ_REC_TRTLLM}};
    Dl_info from;
    if (dladdr(code, &from) == 0 || from.dli_fname == NULL)
        return;
    for (unsigned i = 0; i < sizeof packages / sizeof *packages; i++)
        if (strstr(from.dli_fname, packages[i].folder) != NULL)
            vg_engine_is(packages[i].engine);
}

VG_EXPORT void **__cudaRegisterFatBinary(void *wrapper)
{
    look_whose(wrapper);
    return (void **)vg_image_new(wrapper, false);
}

VG_EXPORT void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

VG_EXPORT void __cudaUnregisterFatBinary(void **handle)
{
    (void)handle; /* kernels stay: other destructors may still launch */
}

VG_EXPORT void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit,
                                      void *tid, void *bid, void *block, void *grid, int *warp)
{
    (void)device, (void)limit, (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
    vg_lock();
    struct entry *e = enter(host);
    if (e != NULL)
        e->kernel = vg_kernel_new((struct vg_image *)handle, name);
    vg_unlock();
}

static void variable(const void *host, size_t bytes)
{
    vg_lock();
    struct entry *e = enter(host);
    if (e != NULL) {
        e->bytes = bytes;
        e->kernel = NULL;
    }
    vg_unlock();
}

VG_EXPORT void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external, size_t bytes,
                                 int constant, int global)
{
    (void)handle, (void)device, (void)name, (void)external, (void)constant, (void)global;
    variable(host, bytes);
}

VG_EXPORT void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int external,
                                        size_t bytes, int constant, int global)
{
    (void)handle, (void)device, (void)name, (void)external, (void)constant, (void)global;
    variable(host, bytes);
    void *p = vg_symbol(host, NULL);
    if (p != NULL)
        *host = p;
}

VG_EXPORT void __cudaRegisterHostVar(void **handle, const char *name, char *host, size_t bytes)
{
    (void)handle, (void)name;
    variable(host, bytes);
}

VG_EXPORT char __cudaInitModule(void **handle)
{
    (void)handle;
    return 1;
}

/* Variables of a module are part of it: they take no room from the device's capacity, and the host sees them. */
void *vg_symbol(const void *host, size_t *bytes)
{
    vg_lock();
    struct entry *e = find(host);
    void *p = NULL;
    if (e != NULL && e->bytes > 0) {
        if (e->memory == NULL)
            e->memory = calloc(1, e->bytes);
        p = e->memory;
        if (bytes != NULL)
            *bytes = e->bytes;
    }
    vg_unlock();
    return p;
}

VG_EXPORT int cudaGetSymbolAddress(void **p, const void *symbol)
{
    vg_call();
    *p = vg_symbol(symbol, NULL);
    return vg_result(*p != NULL ? VG_OK : VG_INVALID_SYMBOL);
}

VG_EXPORT int cudaGetSymbolSize(size_t *bytes, const void *symbol)
{
    vg_call();
    return vg_result(vg_symbol(symbol, bytes) != NULL ? VG_OK : VG_INVALID_SYMBOL);
}
