/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.c - the streams of a rank: made, and found by their handle.
 *
 * In a CUDA program: cudaStream_t.
 *
 * What a program puts into them goes through enqueue.c; how they are ordered with the legacy stream is in legacy_stream.c.
 */
#include "shim/core/stream.h"

#include <stdlib.h>

enum { CHUNK = 256, CHUNKS = 256 };
static struct vg_stream
    *chunks[CHUNKS]; /* streams never move and are never given back, so a stale handle is found out */
static uint32_t n_streams, next_ordinal;
static struct vg_stream *legacy[VG_DEVICES];
static _Thread_local struct vg_stream *per_thread[VG_DEVICES];

static struct vg_stream *nth(uint32_t i)
{
    return &chunks[i / CHUNK][i % CHUNK];
}

struct vg_stream *vg_stream_new(uint32_t flags, int priority)
{
    vg_lock();
    struct vg_stream *s = NULL;
    for (uint32_t i = 0; i < n_streams && s == NULL; i++)
        if (nth(i)->magic == 0)
            s = nth(i);
    if (s == NULL && n_streams < CHUNK * CHUNKS &&
        (chunks[n_streams / CHUNK] != NULL || (chunks[n_streams / CHUNK] = calloc(CHUNK, sizeof *s)) != NULL))
        s = nth(n_streams++);
    if (s != NULL) {
        static uint64_t ids;
        *s = (struct vg_stream){.magic = VG_STREAM_MAGIC,
                                .ordinal = MAQ_REC_NONE,
                                .flags = flags,
                                .priority = priority,
                                .device = vg_device(),
                                .id = ++ids};
    }
    vg_unlock();
    return s;
}

struct vg_stream *vg_stream_legacy(unsigned device)
{
    device %= VG_DEVICES;
    vg_lock();
    if (legacy[device] == NULL && (legacy[device] = vg_stream_new(0, 0)) != NULL) {
        legacy[device]->device = device;
        legacy[device]->legacy = true;
    }
    vg_unlock();
    return legacy[device];
}

struct vg_stream *vg_stream_legacy_made(unsigned device)
{
    return legacy[device % VG_DEVICES];
}

static struct vg_stream *of_thread(void)
{
    unsigned device = vg_device() % VG_DEVICES;
    if (per_thread[device] == NULL)
        per_thread[device] = vg_stream_new(0, 0);
    return per_thread[device];
}

struct vg_stream *vg_stream_of(void *handle)
{
    uintptr_t h = (uintptr_t)handle;
    if (h <= 1)
        return vg_stream_legacy(vg_device());
    if (h == 2)
        return of_thread();
    struct vg_stream *found = NULL;
    vg_lock();
    for (size_t c = 0; c < CHUNKS && chunks[c] != NULL; c++) {
        uintptr_t off = h - (uintptr_t)chunks[c];
        if (off < CHUNK * sizeof *found && off % sizeof *found == 0)
            found = ((struct vg_stream *)handle)->magic == VG_STREAM_MAGIC ? handle : NULL;
    }
    vg_unlock();
    return found;
}

void vg_stream_foreach(void (*visit)(struct vg_stream *s, void *user), void *user)
{
    for (uint32_t i = 0; i < n_streams; i++)
        if (nth(i)->magic == VG_STREAM_MAGIC)
            visit(nth(i), user);
}

uint16_t vg_stream_ordinal(struct vg_stream *s)
{
    vg_lock();
    if (s->ordinal == MAQ_REC_NONE)
        s->ordinal = next_ordinal < MAQ_REC_HOST_STREAM - 1 ? next_ordinal++ : MAQ_REC_HOST_STREAM - 1;
    uint16_t ordinal = (uint16_t)s->ordinal;
    vg_unlock();
    return ordinal;
}

bool vg_stream_capturing(struct vg_stream *s)
{
    return s->capture != NULL;
}

struct vg_stream *vg_stream_branch(struct vg_stream *s, unsigned k)
{
    if (k == 0)
        return s;
    k = k < VG_BRANCHES ? k : VG_BRANCHES - 1; /* more run one after another */
    if (s->branch[k] == NULL && (s->branch[k] = vg_stream_new(VG_STREAM_NON_BLOCKING, s->priority)) != NULL)
        s->branch[k]->device = s->device;
    return s->branch[k] != NULL ? s->branch[k] : s;
}
