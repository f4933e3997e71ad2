/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.c - copies and memsets, and what the host reads back.
 *
 * Time. Between host and device: bytes / copy_bps of the card. On the device: read and written once, 2 bytes / hbm_bps. A
 * memset writes: bytes / hbm_bps. Each takes 1 us at least, as long as a copy engine or a small kernel takes to begin
 * (an assumption, in the order of what bandwidthTest shows for small sizes). Two devices of a process: as host and device.
 *
 * The host waits for copies without Async in their names, except on the device; and for copies to and from memory that is not
 * pinned, which the runtime stages.
 *
 * Bytes. What the host knows of them is really copied. What it reads back of memory that only it has written is what it wrote; anything else comes from the oracle, is what a rule left there, or is zero, and the READ record says so.
 */
#include "shim/cuda/cuda.h"
#include "shim/cuda/invented_reads.h"
#include "shim/cuda/oracle.h"
#include "shim/cuda/value_rules.h"

#include <stdlib.h>
#include <string.h>

enum { COPY_START_NS = 1000, READ_PAYLOAD_MOST = 4096 };

static uint64_t duration(uint64_t bytes, double bps)
{
    return COPY_START_NS + (uint64_t)((double)bytes * 1e9 / bps);
}

struct maq_rec vg_copy_record(enum maq_rec_copy d, uint64_t bytes)
{
    const struct vg_card *card = vg_card();
    return (struct maq_rec){.kind = MAQ_REC_COPY,
                            .id = d,
                            .bytes = bytes,
                            .ns = d == MAQ_REC_D2D ? duration(2 * bytes, card->hbm_bps)
                                                   : duration(bytes, card->copy_bps)};
}

struct maq_rec vg_set_record(uint64_t bytes)
{
    return (struct maq_rec){.kind = MAQ_REC_SET, .bytes = bytes, .ns = duration(bytes, vg_card()->hbm_bps)};
}

/* --- who may see what --------------------------------------------------------------------------------------------------- */

struct side {
    bool ours, device, pinned; /* ours: in the table of allocations */
    struct vg_alloc a;
};

static struct side look(const void *p)
{
    struct side side = {.ours = false};
    side.ours = vg_mem_find(p, &side.a);
    side.device = side.ours && (side.a.kind == MAQ_REC_DEVICE || side.a.kind == MAQ_REC_POOL);
    side.pinned = side.ours && !side.device;
    return side;
}

static enum maq_rec_copy direction(const struct side *to, const struct side *from)
{
    if (to->device)
        return from->device ? MAQ_REC_D2D : MAQ_REC_H2D;
    return from->device ? MAQ_REC_D2H : MAQ_REC_H2H;
}

/* Memory may be of several mappings side by side (cuMemMap()), as that of PyTorch's expandable segments is. */
static bool fits(const struct side *side, const void *p, uint64_t bytes)
{
    struct vg_alloc a = side->a;
    uint64_t end = (uintptr_t)p + bytes;
    bool there = side->ours;
    while (there && end > a.base + a.bytes) {
        uint64_t next = a.base + a.bytes;
        there = vg_mem_find((const void *)(uintptr_t)next, &a) && a.base == next; // NOLINT(performance-no-int-to-ptr)
    }
    return !side->ours || there;
}

/* What the host knew of all of it is known no longer. */
static void written(const void *p, uint64_t bytes)
{
    struct vg_alloc a;
    for (uint64_t at = (uintptr_t)p, end = at + bytes; at < end; at = a.base + a.bytes) {
        const void *here = (const void *)(uintptr_t)at; // NOLINT(performance-no-int-to-ptr)
        vg_mem_written(here, end - at);
        if (!vg_mem_find(here, &a))
            return;
    }
}

/* --- bytes ------------------------------------------------------------------------------------------------------------------ */

/* Copies what is known within the device's memory, and of the rest that it is not: an object that is padded to the length of others is known but for that. */
static void copy_known(char *to, const char *from, uint64_t bytes)
{
    uint64_t skip, n;
    written(to, bytes);
    for (uint64_t at = 0; at < bytes && (n = vg_mem_known_piece(from + at, bytes - at, &skip)) > 0; at += n) {
        at += skip;
        if (!vg_mem_touch(from + at, n) || !vg_mem_touch(to + at, n))
            continue;
        memmove(to + at, from + at, n);
        vg_mem_told(to + at, n);
    }
    vg_taint_copy(to, from, bytes);
}

/* What is known of these bytes of the device, and zeros for the rest. */
static void read_known(char *to, const char *from, uint64_t bytes)
{
    uint64_t skip, n;
    memset(to, 0, bytes);
    for (uint64_t at = 0; at < bytes && (n = vg_mem_known_piece(from + at, bytes - at, &skip)) > 0; at += n) {
        at += skip;
        if (vg_mem_touch(from + at, n))
            memcpy(to + at, from + at, n);
    }
}

/* The host reads [from, from + bytes) into `to`. */
static void read_back(void *to, const void *from, uint64_t bytes, const struct side *side, struct vg_stream *s)
{
    uint64_t offset = (uintptr_t)from - side->a.base;
    bool known = vg_mem_true(from, bytes) && vg_mem_touch(from, bytes);
    vg_taint_read(from, bytes);
    if (known) {
        memmove(to, from, bytes);
    } else if (!vg_oracle(to, bytes, side->a.id, offset)) {
        if (vg_rule_wrote(from, bytes)) {
            memmove(to, from, bytes);
        } else {
            read_known(to, from, bytes);
            vg_invented_read(from, bytes, vg_last_kernel());
        }
    }
    bool kept = bytes <= READ_PAYLOAD_MOST;
    vg_record((struct maq_rec){.kind = MAQ_REC_READ,
                               .flags = known ? 0 : MAQ_REC_SYNTH,
                               .stream = vg_stream_ordinal(s),
                               .id = side->a.id,
                               .arg = offset < UINT32_MAX ? (uint32_t)offset : UINT32_MAX,
                               .bytes = kept ? bytes : 0},
              kept ? to : NULL);
}

static void move(void *to, const void *from, uint64_t bytes, const struct side *t, const struct side *f,
                 struct vg_stream *s)
{
    if (f->device && !t->device) {
        read_back(to, from, bytes, f, s);
        return;
    }
    if (f->device && to != from) {
        copy_known(to, from, bytes);
    } else if (!f->device && (!t->device || vg_mem_touch(to, bytes))) {
        memmove(to, from, bytes);
        vg_mem_told(to, bytes);
    } else if (!f->device) {
        written(to, bytes);
    }
}

/* --- copies ---------------------------------------------------------------------------------------------------------------- */

static void wait_for(struct vg_stream *s)
{
    int64_t end;
    vg_stream_end(s, &end);
    vg_wait_until(end);
}

int vg_copy(void *to, const void *from, size_t bytes, int kind, void *stream, bool waits)
{
    struct vg_stream *s = vg_stream_of(stream);
    vg_call();
    if (s == NULL)
        return VG_INVALID_HANDLE;
    if (kind < VG_COPY_H2H || kind > VG_COPY_DEFAULT)
        return 21; /* cudaErrorInvalidMemcpyDirection */
    if (bytes == 0)
        return VG_OK;
    if (to == NULL || from == NULL)
        return VG_INVALID_VALUE;
    struct side t = look(to), f = look(from);
    if (!fits(&t, to, bytes) || !fits(&f, from, bytes))
        return VG_INVALID_VALUE;
    enum maq_rec_copy d = direction(&t, &f);
    bool staged = (d == MAQ_REC_H2D && !f.ours) || (d == MAQ_REC_D2H && !t.ours);
    if (s->capture != NULL && waits) {
        s->capture->spoiled = true;
        return VG_CAPTURE_UNSUPPORTED;
    }
    waits = (waits && d != MAQ_REC_D2D) || (staged && s->capture == NULL);
    struct maq_rec rec = vg_copy_record(d, bytes);
    rec.flags = waits ? MAQ_REC_WAITS : 0;
    vg_payload_settle(from, bytes, s);
    vg_payload_settle(to, bytes, s);
    vg_lock();
    vg_enqueue(s, rec);
    if (s->capture == NULL)
        move(to, from, bytes, &t, &f, s);
    else
        written(to, bytes); /* a graph copies when nobody looks */
    vg_unlock();
    if (waits)
        wait_for(s);
    return VG_OK;
}

int vg_set(void *to, unsigned value, unsigned element, size_t n, void *stream, bool waits)
{
    struct vg_stream *s = vg_stream_of(stream);
    uint64_t bytes = (uint64_t)n * element;
    vg_call();
    if (s == NULL)
        return VG_INVALID_HANDLE;
    if (bytes == 0)
        return VG_OK;
    struct side t = look(to);
    if (!t.ours || !fits(&t, to, bytes))
        return VG_INVALID_VALUE;
    if (s->capture != NULL && waits)
        return VG_CAPTURE_UNSUPPORTED;
    waits = waits && !t.device; /* a memset of device memory does not hold the host up */
    vg_payload_settle(to, bytes, s);
    vg_lock();
    struct maq_rec rec = vg_set_record(bytes);
    rec.flags = waits ? MAQ_REC_WAITS : 0;
    vg_enqueue(s, rec);
    if (s->capture == NULL && vg_mem_touch(to, bytes)) {
        for (size_t i = 0; element > 1 && i < n; i++)
            memcpy((char *)to + i * element, &value, element);
        if (element == 1)
            memset(to, (int)value, bytes);
        vg_mem_told(to, bytes);
    } else {
        written(to, bytes);
    }
    vg_unlock();
    if (waits)
        wait_for(s);
    return VG_OK;
}

VG_EXPORT int cudaMemcpy(void *to, const void *from, size_t bytes, int kind)
{
    return vg_result(vg_copy(to, from, bytes, kind, NULL, true));
}

VG_EXPORT int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream)
{
    return vg_result(vg_copy(to, from, bytes, kind, stream, false));
}

VG_EXPORT int cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes)
{
    (void)to_device, (void)from_device;
    return vg_result(vg_copy(to, from, bytes, VG_COPY_DEFAULT, NULL, true));
}

VG_EXPORT int cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                  void *stream)
{
    (void)to_device, (void)from_device;
    return vg_result(vg_copy(to, from, bytes, VG_COPY_DEFAULT, stream, false));
}

/* Rows: one record, bytes row by row. Rows without gaps are one piece. */
static int copy_rows(char *to, size_t to_pitch, const char *from, size_t from_pitch, size_t width, size_t height,
                     int kind, void *stream, bool waits)
{
    if ((to_pitch == width && from_pitch == width) || height <= 1)
        return vg_copy(to, from, width * height, kind, stream, waits);
    struct side t = look(to), f = look(from);
    if (t.device || f.device) { /* the engine moves all rows in one go; bytes that the host can see are few */
        vg_mem_written(to, to_pitch * height);
        struct vg_stream *s = vg_stream_of(stream);
        if (s == NULL)
            return VG_INVALID_HANDLE;
        enum maq_rec_copy d = direction(&t, &f);
        struct maq_rec rec = vg_copy_record(d, (uint64_t)width * height);
        rec.flags = waits && d != MAQ_REC_D2D ? MAQ_REC_WAITS : 0;
        vg_call();
        vg_enqueue(s, rec);
        for (size_t i = 0; i < height && s->capture == NULL; i++)
            move(to + i * to_pitch, from + i * from_pitch, width, &t, &f, s);
        if (waits && d != MAQ_REC_D2D)
            wait_for(s);
        return VG_OK;
    }
    for (size_t i = 0; i < height; i++)
        memmove(to + i * to_pitch, from + i * from_pitch, width);
    return VG_OK;
}

VG_EXPORT int cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                           int kind)
{
    return vg_result(copy_rows(to, to_pitch, from, from_pitch, width, height, kind, NULL, true));
}

VG_EXPORT int cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                                size_t height, int kind, void *stream)
{
    return vg_result(copy_rows(to, to_pitch, from, from_pitch, width, height, kind, stream, false));
}

static int copy_3d(const struct vg_copy_3d *p, void *stream, bool waits)
{
    if (p->from_array != NULL || p->to_array != NULL)
        return VG_NOT_SUPPORTED; /* textures */
    int status = VG_OK;
    for (size_t z = 0; z < p->extent.z && status == VG_OK; z++) {
        char *to = (char *)p->to.p + ((p->to_at.z + z) * p->to.height + p->to_at.y) * p->to.pitch + p->to_at.x;
        const char *from = (const char *)p->from.p +
                           ((p->from_at.z + z) * p->from.height + p->from_at.y) * p->from.pitch + p->from_at.x;
        status = copy_rows(to, p->to.pitch, from, p->from.pitch, p->extent.x, p->extent.y, p->kind, stream, waits);
    }
    return status;
}

VG_EXPORT int cudaMemcpy3D(const struct vg_copy_3d *p)
{
    return vg_result(copy_3d(p, NULL, true));
}

VG_EXPORT int cudaMemcpy3DAsync(const struct vg_copy_3d *p, void *stream)
{
    return vg_result(copy_3d(p, stream, false));
}

/* A variable of the program's module lies in host memory of ours. */
static int copy_symbol(void *symbol, void *other, size_t bytes, size_t offset, bool to_symbol, void *stream)
{
    size_t size = 0;
    char *p = vg_symbol(symbol, &size);
    if (p == NULL || offset > size || bytes > size - offset)
        return p == NULL ? VG_INVALID_SYMBOL : VG_INVALID_VALUE;
    struct vg_stream *s = vg_stream_of(stream);
    if (s == NULL)
        return VG_INVALID_HANDLE;
    vg_call();
    vg_enqueue(s, vg_copy_record(to_symbol ? MAQ_REC_H2D : MAQ_REC_D2H, bytes));
    memmove(to_symbol ? p + offset : other, to_symbol ? other : p + offset, bytes);
    return VG_OK;
}

VG_EXPORT int cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset, int kind)
{
    (void)kind;
    return vg_result(copy_symbol((void *)symbol, (void *)from, bytes, offset, true, NULL));
}

VG_EXPORT int cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes, size_t offset, int kind,
                                      void *stream)
{
    (void)kind;
    return vg_result(copy_symbol((void *)symbol, (void *)from, bytes, offset, true, stream));
}

VG_EXPORT int cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset, int kind)
{
    (void)kind;
    return vg_result(copy_symbol((void *)symbol, to, bytes, offset, false, NULL));
}

VG_EXPORT int cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t offset, int kind,
                                        void *stream)
{
    (void)kind;
    return vg_result(copy_symbol((void *)symbol, to, bytes, offset, false, stream));
}

VG_EXPORT int cudaMemset(void *to, int value, size_t bytes)
{
    return vg_result(vg_set(to, (unsigned)value, 1, bytes, NULL, true));
}

VG_EXPORT int cudaMemsetAsync(void *to, int value, size_t bytes, void *stream)
{
    return vg_result(vg_set(to, (unsigned)value, 1, bytes, stream, false));
}

VG_EXPORT int cudaMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height, void *stream)
{
    int status = VG_OK;
    if (pitch == width)
        return vg_result(vg_set(to, (unsigned)value, 1, width * height, stream, false));
    for (size_t i = 0; i < height && status == VG_OK; i++)
        status = vg_set((char *)to + i * pitch, (unsigned)value, 1, width, stream, false);
    return vg_result(status);
}

VG_EXPORT int cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t height)
{
    return cudaMemset2DAsync(to, pitch, value, width, height, NULL);
}
