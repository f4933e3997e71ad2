/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core.c - streams and memory of a real GPU, for shim/nccl: the other half of a drop-in libnccl.so.2 (the zero-GPU half is
 * core/stream.c and core/memory.c).
 *
 * A group of one communicator becomes, on the stream of its first part,
 *
 *     wait for the streams of the other parts | timed wait | what the buffers hold afterwards | the other streams wait for it
 *
 * all of it stream operations, so that a program may capture it into a CUDA graph: the next entry of the table is counted on the
 * device. The arrival is stamped before data moves.
 *
 * Time is the device's own: the virtual clock of the zero-GPU device stands still here, and calls cost what they cost.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/core/core.h"
#include "shim/gpu/fill.h"
#include "shim/gpu/grid.h"
#include "shim/gpu/inject.h"
#include "shim/gpu/waits.h"
#include "shim/nccl/nccl.h"

#define FILL_BLOCKS 256u
#define FILL_THREADS 256u

/* A program's stream is the driver's; nothing of ours is behind it. */
struct vg_stream *vg_stream_of(void *handle)
{
    return handle; /* NULL is the legacy stream */
}

/* Threads of a program on a GPU drive as they are scheduled. */
void vg_turn(void)
{
}

uint16_t vg_stream_ordinal(struct vg_stream *s)
{
    return (uint16_t)vg_inject_stream(s);
}

/* Everything here may be captured: no call needs to be kept apart. */
bool vg_stream_capturing(struct vg_stream *s)
{
    (void)s;
    return false;
}

bool vg_stream_end(struct vg_stream *s, int64_t *end)
{
    (void)s;
    *end = 0;
    return true;
}

/* --- memory --------------------------------------------------------------------------------------------------------------- */

bool vg_mem_find(const void *p, struct vg_alloc *out)
{
    const struct vg_driver *cu = vg_driver();
    CUdeviceptr base = 0, at = (CUdeviceptr)(uintptr_t)p;
    size_t bytes = 0;
    CUmemorytype type = CU_MEMORYTYPE_DEVICE;
    unsigned managed = 0;
    *out = (struct vg_alloc){.id = MAQ_REC_NONE};
    if (!cu || cu->pointer(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at) != CUDA_SUCCESS ||
        cu->pointer(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, at) != CUDA_SUCCESS ||
        cu->pointer(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at) != CUDA_SUCCESS)
        return false;
    cu->pointer(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, at);
    out->base = base;
    out->bytes = bytes;
    out->kind = managed ? MAQ_REC_MANAGED : type == CU_MEMORYTYPE_HOST ? MAQ_REC_PINNED : MAQ_REC_DEVICE;
    out->backed = type == CU_MEMORYTYPE_HOST;
    return true;
}

bool vg_mem_touch(const void *p, uint64_t bytes)
{
    struct vg_alloc a;
    (void)bytes;
    return vg_mem_find(p, &a) && a.backed;
}

void *vg_mem_alloc(uint64_t bytes, enum maq_rec_mem kind, struct vg_stream *s)
{
    const struct vg_driver *cu = vg_driver();
    CUdeviceptr at = 0;
    (void)kind;
    (void)s;
    return cu && cu->alloc(&at, bytes ? bytes : 1) == CUDA_SUCCESS ? (void *)(uintptr_t)at : NULL;
}

bool vg_mem_free(void *p, struct vg_stream *s)
{
    const struct vg_driver *cu = vg_driver();
    (void)s;
    return cu && cu->free((CUdeviceptr)(uintptr_t)p) == CUDA_SUCCESS;
}

/* What the host sees is as it is. */
bool vg_mem_true(const void *p, uint64_t bytes)
{
    return vg_mem_touch(p, bytes);
}

uint64_t vg_mem_known_piece(const void *p, uint64_t bytes, uint64_t *skip)
{
    *skip = 0;
    return vg_mem_touch(p, bytes) ? bytes : 0;
}

/* The host does not follow what a real device does to its memory. */
void vg_mem_told(const void *p, uint64_t bytes)
{
    (void)p;
    (void)bytes;
}
void vg_mem_blank(void *p, uint64_t bytes)
{
    (void)p, (void)bytes; /* kernels have run */
}

void vg_mem_written(const void *p, uint64_t bytes)
{
    (void)p;
    (void)bytes;
}

/* Only memory of the host is looked at, which it may read at any time. */
void vg_taint_mark(const void *p, const struct vg_taint *what)
{
    (void)p;
    vg_tainted_read(what);
}

/* --- a group --------------------------------------------------------------------------------------------------------------- */

static CUstream driver_stream(const struct vg_stream *s)
{
    return (CUstream)(uintptr_t)s;
}

/* `to` goes on when what is on `from` so far is done. An event that is destroyed while work waits for it lives on until then. */
static void follow(CUstream to, CUstream from)
{
    const struct vg_driver *cu = vg_driver();
    CUevent event;
    if (to == from || cu->event_new(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
        return;
    if (cu->event_record(event, from) == CUDA_SUCCESS)
        cu->stream_wait(to, event, 0);
    cu->event_free(event);
}

static void launch(enum vg_kernel which, CUstream stream, void **args)
{
    CUfunction kernel = vg_driver_kernel(which);
    if (kernel)
        vg_driver()->launch(kernel, FILL_BLOCKS, 1, 1, FILL_THREADS, 1, 1, 0, stream, args, NULL);
}

static void fill_one(const struct vg_meeting *m, const struct vg_fill *f, CUstream stream)
{
    uint64_t width = vg_type_bytes(MAQ_REC_COLL_TYPE(m->rec.id)), n = f->bytes / (width ? width : 1);
    CUdeviceptr out = (CUdeviceptr)(uintptr_t)m->receive + f->at, in = (CUdeviceptr)(uintptr_t)m->send + f->from;
    int type = (int)MAQ_REC_COLL_TYPE(m->rec.id);
    float factor = f->factor;
    /* every communicator and peer has noise of its own, the same on every run */
    uint64_t seed = maq_rec_mix(m->a, m->rec.arg);
    if (n == 0 || !m->receive)
        return;
    if (f->kind == VG_FILL_COPY && m->send && in != out)
        vg_driver()->copy_async(out, in, f->bytes, stream);
    if (f->kind == VG_FILL_SCALE && m->send)
        launch(VG_KERNEL_SCALED, stream, (void *[]){&out, &in, &n, &type, &factor});
    if (f->kind == VG_FILL_NOISE)
        launch(VG_KERNEL_NOISE, stream, (void *[]){&out, &n, &type, &factor, &seed});
}

static bool in_place(const struct vg_meeting *m, const struct vg_comm *comm)
{
    uint64_t at = (uint64_t)comm->me * m->rec.bytes;
    const char *send = m->send, *receive = m->receive;
    enum maq_rec_coll kind = (enum maq_rec_coll)MAQ_REC_COLL_KIND(m->rec.id);
    if (kind == MAQ_REC_ALL_GATHER || kind == MAQ_REC_GATHER)
        return receive && send == receive + at;
    if (kind == MAQ_REC_REDUCE_SCATTER || kind == MAQ_REC_SCATTER)
        return send && receive == send + at;
    return send == receive;
}

/* An exchange written as sends and receives: what was for a peer comes back from it. Otherwise noise. */
static const void *own_message(const struct vg_meeting *parts, uint32_t n, const struct vg_meeting *receive)
{
    for (uint32_t i = 0; i < n; i++)
        if (parts[i].rec.kind == MAQ_REC_SEND && parts[i].rec.arg == receive->rec.arg &&
            parts[i].rec.bytes == receive->rec.bytes)
            return parts[i].send;
    return NULL;
}

static void fill(const struct vg_meeting *parts, uint32_t n, const struct vg_comm *comm, CUstream stream)
{
    for (uint32_t i = 0; i < n; i++) {
        struct vg_meeting m = parts[i];
        struct vg_fill step;
        if (m.rec.kind == MAQ_REC_SEND || m.in || m.out)
            continue; /* carried out by the host: shim/nccl/payload.c */
        if (m.rec.kind == MAQ_REC_RECV && (m.send = own_message(parts, n, &m)) != NULL) {
            fill_one(&m, &(struct vg_fill){.kind = VG_FILL_COPY, .bytes = m.rec.bytes}, stream);
            continue;
        }
        enum maq_rec_coll kind =
            m.rec.kind == MAQ_REC_RECV ? MAQ_REC_P2P_PAIR : (enum maq_rec_coll)MAQ_REC_COLL_KIND(m.rec.id);
        for (uint32_t k = 0;
             vg_fill_step(&step, k, kind, (enum maq_rec_type)MAQ_REC_COLL_TYPE(m.rec.id), MAQ_REC_COLL_OP(m.rec.id),
                          comm->n, comm->me, m.rec.bytes, in_place(&m, comm));
             k++)
            fill_one(&m, &step, stream);
    }
}

static void tell(const struct vg_meeting *m, const struct vg_stream *s, int64_t start, bool more)
{
    struct vg_activity a = {.kind = VG_ACT_COMM,
                            .stream = vg_inject_stream((void *)(uintptr_t)s),
                            .start = start,
                            .end = vg_inject_now(),
                            .rec = m->rec};
    a.rec.flags |= more ? MAQ_REC_MORE : 0;
    vg_inject_add(&a);
}

void vg_enqueue_group(struct vg_stream *const *streams, const struct vg_meeting *parts, uint32_t n)
{
    const struct vg_comm *comm = vg_comm_of(MAQ_REC_COLL_COMM(parts[0].rec.id));
    CUstream home = driver_stream(streams[0]);
    int64_t start = vg_inject_now();
    if (!vg_driver() || !comm)
        return;
    struct vg_grid grid = vg_grid_of(comm, parts, n);
    for (uint32_t i = 0; i < n; i++)
        follow(home, driver_stream(streams[i]));
    vg_wait_launch(comm->lineage, grid.blocks, grid.threads, home);
    fill(parts, n, comm, home);
    for (uint32_t i = 0; i < n; i++)
        follow(driver_stream(streams[i]), home);
    for (uint32_t i = 0; i < n; i++)
        tell(&parts[i], streams[0], start, i + 1 < n);
}
