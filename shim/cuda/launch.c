/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.c - launches of kernels: nothing runs, a record is written.
 *
 * An operator of a launch is the kernel's name, its grid, block and dynamic shared memory, and `bytes`: for every distinct pointer
 * among the arguments, also inside structures that are passed by value, what a launch of this size can reach with one
 * 16-byte access per thread, and never more than its allocation has:
 *
 *     bytes = sum over pointers p of min(size of p's allocation, 16 x threads)
 *
 * That is what kernels of one element (or one vector) per thread move; those that loop move more, and nobody can tell from
 * outside how much. Where in an allocation a pointer is does not matter: layers of a model whose tensors lie in one allocation are one
 * operator, and so is a launch whose tensors a caching allocator put elsewhere because a thread gave something back a moment later.
 *
 * A structure of more than 64 bytes has places that nobody filled: lists of tensors, sizes of dimensions that a tensor does not
 * have. They hold what was on the stack, which may be a pointer as well. Such structures count as one vector read and
 * one written by each thread, unless plain pointers say more, so that a launch is the same operator every time.
 *
 * Where a rule knows which operator a kernel is, the record is that operator's, with its sizes (operator_rules.h); else, where its PTX is at
 * hand, it says what the launch does (jit_kernel.h).
 *
 * Kernels whose parameters are not known (PTX, a compression that cannot be undone) have bytes = 0.
 */
#include "shim/cuda/arithmetic/arithmetic.h"
#include "shim/cuda/invented_reads.h"
#include "shim/cuda/jit_kernel.h"
#include "shim/cuda/operator_rules.h"
#include "shim/cuda/value_rules.h"

#include <string.h>

enum { BYTES_PER_THREAD = 16, POINTERS_MOST = 256, PLAIN_BYTES = 64 };

struct vg_kernel *vg_kernel_of(void *handle)
{
    struct vg_kernel *kernel = vg_kernel_of_host(handle);
    if (kernel == NULL && handle != NULL && (uintptr_t)handle % sizeof(void *) == 0 &&
        ((struct vg_kernel *)handle)->magic == VG_KERNEL_MAGIC)
        kernel = handle;
    return kernel;
}

struct reach {
    uint64_t seen[POINTERS_MOST];
    unsigned n;
    uint64_t per_pointer, bytes;
    bool has_structures; /* of which not every word is the kernel's */
    bool has_place;      /* where it writes is known */
    const char *kernel;
};

/* A word of the arguments that may be a pointer; `counts`: one that the kernel surely has. */
static void follow(struct reach *r, uint64_t word, bool counts)
{
    struct vg_alloc a;
    const void *p = (const void *)(uintptr_t)word; // NOLINT(performance-no-int-to-ptr)
    if (word < 4096 || !vg_mem_find(p, &a))
        return;
    if (!r->has_place)
        vg_mem_written(p, r->per_pointer); /* what lies behind in the same allocation is often another tensor */
    if (vg_invented_looks)
        vg_invented_written(word, r->per_pointer, r->kernel);
    for (unsigned i = 0; i < r->n; i++)
        if (r->seen[i] == word)
            return;
    if (!counts)
        return;
    if (r->n < POINTERS_MOST)
        r->seen[r->n++] = word;
    r->bytes += a.bytes < r->per_pointer ? a.bytes : r->per_pointer;
}

static void follow_all(struct reach *r, const void *from, uint64_t bytes)
{
    const bool is_plain = bytes <= PLAIN_BYTES;
    uint64_t word;
    for (uint64_t i = 0; i + sizeof word <= bytes; i += sizeof word) {
        memcpy(&word, (const char *)from + i, sizeof word);
        follow(r, word, is_plain);
    }
    r->has_structures = r->has_structures || !is_plain;
}

static const char *last_kernel = ""; /* names are never freed */

const char *vg_last_kernel(void)
{
    return last_kernel;
}

struct maq_rec vg_launch_record(const struct vg_launch *l)
{
    const struct vg_kernel *kernel = l->kernel;
    uint64_t threads = (uint64_t)l->grid.x * l->grid.y * l->grid.z * l->block.x * l->block.y * l->block.z;
    struct reach r = {.n = 0, .per_pointer = threads * BYTES_PER_THREAD, .kernel = kernel->name};
    if (kernel->image != NULL && !kernel->image->read)
        vg_kernel_prepare(kernel);
    struct vg_arithmetic numbers;
    struct vg_output place[VG_PLACES] = {{.at = NULL}};
    const bool computed = !l->later && vg_arithmetic_begin(&numbers, l);
    const struct vg_jit_work *const work = vg_jit_look(l);
    r.has_place = computed || vg_arithmetic_writes(place, l) || vg_jit_writes(work, l);
    const struct vg_param *param = kernel->code.param;
    for (uint32_t i = 0; kernel->code.found && i < kernel->code.n_params; i++)
        if (l->args != NULL)
            follow_all(&r, l->args[i], param[i].bytes);
        else if (l->packed != NULL && (uint64_t)param[i].offset + param[i].bytes <= l->packed_bytes)
            follow_all(&r, (const char *)l->packed + param[i].offset, param[i].bytes);
    if (!kernel->code.found && l->packed != NULL)
        follow_all(&r, l->packed, l->packed_bytes);
    else if (!kernel->code.found)
        vg_mem_written_anywhere();
    for (unsigned i = 0; i < VG_PLACES && place[i].at; i++)
        vg_mem_written(place[i].at, place[i].bytes);
    if (computed)
        vg_arithmetic_end(&numbers);
    if (!l->later)
        vg_rules_apply(l);
    if (r.has_structures && r.bytes < 2 * r.per_pointer)
        r.bytes = 2 * r.per_pointer;
    struct maq_rec_op op = {.kind = MAQ_REC_KERNEL,
                            .type = MAQ_REC_TYPE_OTHER,
                            .out = MAQ_REC_TYPE_OTHER,
                            .grid = {l->grid.x, l->grid.y, l->grid.z},
                            .block = {l->block.x, l->block.y, l->block.z},
                            .shared = (uint32_t)l->shared,
                            .bytes = r.bytes};
    vg_operator_rules_apply(&op, l);
    vg_tensor_lists_apply(&op, l);
    vg_pytorch_apply(&op, l);
    vg_jit_apply(&op, work);
    uint32_t id = vg_op(&op, kernel->name);
    last_kernel = kernel->name;
    return (struct maq_rec){.kind = MAQ_REC_LAUNCH, .id = id, .bytes = r.bytes, .ns = (uint64_t)vg_op_ns(id)};
}

/* Limits of every device since Volta: CUDA C++ Programming Guide, technical specifications per compute capability. */
static bool fits(const struct vg_launch *l)
{
    uint64_t threads = (uint64_t)l->block.x * l->block.y * l->block.z;
    return threads > 0 && threads <= 1024 && l->block.x <= 1024 && l->block.y <= 1024 && l->block.z <= 64 &&
           l->grid.x > 0 && l->grid.y > 0 && l->grid.z > 0 && l->grid.x <= INT32_MAX && l->grid.y <= 65535 &&
           l->grid.z <= 65535;
}

int vg_launch(struct vg_launch *l, void *stream)
{
    struct vg_stream *s = vg_stream_of(stream);
    if (s == NULL)
        return VG_INVALID_HANDLE;
    if (l->kernel == NULL)
        return VG_INVALID_DEVICE_FUNCTION;
    if (!fits(l))
        return VG_INVALID_CONFIGURATION;
    vg_drive();
    vg_host(vg_card()->launch_ns);
    vg_lock();
    l->later = s->capture != NULL;
    l->stream = s;
    vg_enqueue(s, vg_launch_record(l));
    vg_unlock();
    return VG_OK;
}

/* --- the runtime's ways to launch ------------------------------------------------------------------------------------------ */

static int launch(void *function, struct vg_dim3 grid, struct vg_dim3 block, void **args, size_t shared, void *stream)
{
    struct vg_launch l = {
        .kernel = vg_kernel_of(function), .grid = grid, .block = block, .shared = shared, .args = args};
    return vg_result(vg_launch(&l, stream));
}

VG_EXPORT int cudaLaunchKernel(const void *function, struct vg_dim3 grid, struct vg_dim3 block, void **args,
                               size_t shared, void *stream)
{
    return launch((void *)function, grid, block, args, shared, stream);
}

VG_EXPORT int cudaLaunchCooperativeKernel(const void *function, struct vg_dim3 grid, struct vg_dim3 block, void **args,
                                          size_t shared, void *stream)
{
    return launch((void *)function, grid, block, args, shared, stream);
}

VG_EXPORT int cudaLaunchKernelExC(const struct vg_launch_config *config, const void *function, void **args)
{
    return launch((void *)function, config->grid, config->block, args, config->shared, config->stream);
}

/* CUDA 13's host code keeps a kernel per call site and launches that. */
VG_EXPORT int __cudaGetKernel(void **kernel, const void *function)
{
    *kernel = vg_kernel_of((void *)function);
    return vg_result(*kernel != NULL ? VG_OK : VG_INVALID_DEVICE_FUNCTION);
}

VG_EXPORT int __cudaLaunchKernel(void *kernel, struct vg_dim3 grid, struct vg_dim3 block, void **args, size_t shared,
                                 void *stream)
{
    return launch(kernel, grid, block, args, shared, stream);
}

VG_EXPORT int cudaGetKernel(void **kernel, const void *function)
{
    return __cudaGetKernel(kernel, function);
}

VG_EXPORT int cudaGetFuncBySymbol(void **function, const void *symbol)
{
    return __cudaGetKernel(function, symbol);
}

/* kernel<<<grid, block, shared, stream>>>: pushed before the host function is called, popped inside of it. */
static _Thread_local struct {
    struct vg_dim3 grid, block;
    size_t shared;
    void *stream;
} configuration[16];
static _Thread_local unsigned n_configurations;

VG_EXPORT unsigned __cudaPushCallConfiguration(struct vg_dim3 grid, struct vg_dim3 block, size_t shared, void *stream)
{
    unsigned at = n_configurations++;
    if (at >= sizeof configuration / sizeof *configuration)
        return 1;
    configuration[at].grid = grid;
    configuration[at].block = block;
    configuration[at].shared = shared;
    configuration[at].stream = stream;
    return 0;
}

VG_EXPORT int __cudaPopCallConfiguration(struct vg_dim3 *grid, struct vg_dim3 *block, size_t *shared, void *stream)
{
    if (n_configurations == 0)
        return vg_result(VG_UNKNOWN);
    unsigned at = --n_configurations;
    if (at >= sizeof configuration / sizeof *configuration)
        return vg_result(VG_UNKNOWN);
    *grid = configuration[at].grid;
    *block = configuration[at].block;
    *shared = configuration[at].shared;
    memcpy(stream, &configuration[at].stream, sizeof(void *));
    return VG_OK;
}

VG_EXPORT int cudaLaunchHostFunc(void *stream, void (*function)(void *), void *data)
{
    vg_call();
    struct vg_stream *s = vg_stream_of(stream);
    if (s == NULL)
        return vg_result(VG_INVALID_HANDLE);
    vg_enqueue_host(s, function, data);
    vg_run_host_functions();
    return VG_OK;
}
