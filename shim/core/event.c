/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event.c - events: names for places in streams.
 *
 * In a CUDA program: cudaEvent_t.
 *
 * An event that was never recorded is done. Recording it again lets go of the place before; who waits for that one still
 * does. In a capture an event names nodes instead.
 */
#include "shim/core/stream.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1024, CHUNKS = 1024 };
static struct vg_event *chunks[CHUNKS]; /* never given back, so a stale handle is found out */
static uint32_t n_events, *vacant, n_vacant, vacant_room;

struct vg_event *vg_event_new(uint32_t flags)
{
    vg_lock();
    struct vg_event *e = NULL;
    if (n_vacant > 0) {
        uint32_t i = vacant[--n_vacant];
        e = &chunks[i / CHUNK][i % CHUNK];
    } else if (n_events < CHUNK * CHUNKS &&
               (chunks[n_events / CHUNK] != NULL || (chunks[n_events / CHUNK] = calloc(CHUNK, sizeof *e)) != NULL)) {
        e = &chunks[n_events / CHUNK][n_events % CHUNK];
        n_events++;
    }
    if (e != NULL)
        *e = (struct vg_event){.magic = VG_EVENT_MAGIC, .id = MAQ_REC_NONE, .flags = flags, .device = vg_device()};
    vg_unlock();
    return e;
}

/* Number of an event among all, UINT32_MAX when it is none. */
static uint32_t number(const void *handle)
{
    for (uint32_t c = 0; c < CHUNKS && chunks[c] != NULL; c++) {
        uintptr_t off = (uintptr_t)handle - (uintptr_t)chunks[c];
        if (off < CHUNK * sizeof(struct vg_event) && off % sizeof(struct vg_event) == 0)
            return c * CHUNK + (uint32_t)(off / sizeof(struct vg_event));
    }
    return UINT32_MAX;
}

struct vg_event *vg_event_of(void *handle)
{
    vg_lock();
    struct vg_event *e = number(handle) != UINT32_MAX ? handle : NULL;
    if (e != NULL && e->magic != VG_EVENT_MAGIC)
        e = NULL;
    vg_unlock();
    return e;
}

void vg_event_free(struct vg_event *e)
{
    vg_lock();
    uint32_t i = number(e);
    if (n_vacant == vacant_room) {
        uint32_t more = vacant_room == 0 ? 256 : vacant_room * 2;
        uint32_t *bigger = realloc(vacant, more * sizeof *vacant);
        if (bigger != NULL) {
            vacant = bigger;
            vacant_room = more;
        }
    }
    if (e->mark != NULL && --e->mark->refs == 0)
        free(e->mark);
    free(e->tips);
    memset(e, 0, sizeof *e);
    if (n_vacant < vacant_room)
        vacant[n_vacant++] = i;
    vg_unlock();
}
