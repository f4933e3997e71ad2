/* SPDX-License-Identifier: Apache-2.0 */
/*
 * known_bytes.c - what the host knows of the device's memory.
 *
 * What the host wrote is known until a kernel that could reach it, a library or a peer may have written there; after that a read is
 * invented (zeros, or an oracle's value) and marked so in the trace. Each allocation has its known ranges of bytes, ascending and apart.
 */
#include "shim/core/memory.h"

#include <stdlib.h>
#include <string.h>

/* The first known range that ends after `offset`. */
static uint32_t range_after(const struct vg_mem *mem, uint64_t offset)
{
    uint32_t low = 0, high = mem->n_known;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (mem->known[mid].to <= offset)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Room for one more range at place i; false: too many, or no memory. Then a range less is known, which is safe. */
static bool open_range(struct vg_mem *mem, uint32_t i)
{
    if (mem->n_known == mem->known_room) {
        uint32_t more = mem->known_room == 0 ? 8 : mem->known_room * 2;
        struct vg_range *bigger = more <= VG_RANGES ? realloc(mem->known, more * sizeof *bigger) : NULL;
        if (bigger == NULL)
            return false;
        mem->known = bigger;
        mem->known_room = more;
    }
    memmove(&mem->known[i + 1], &mem->known[i], (mem->n_known - i) * sizeof *mem->known);
    mem->n_known++;
    return true;
}

static void close_ranges(struct vg_mem *mem, uint32_t i, uint32_t n)
{
    if (n > 0)
        memmove(&mem->known[i], &mem->known[i + n], (mem->n_known - i - n) * sizeof *mem->known);
    mem->n_known -= n;
}

/* Cuts [from, to) out of what is known. */
static void forget(struct vg_mem *mem, uint64_t from, uint64_t to)
{
    uint32_t i = range_after(mem, from);
    if (i < mem->n_known && mem->known[i].from < from) { /* its tail goes, or its middle */
        const struct vg_range whole = mem->known[i];
        mem->known[i++].to = from;
        if (to < whole.to && open_range(mem, i))
            mem->known[i] = (struct vg_range){to, whole.to};
    }
    uint32_t end = i;
    while (end < mem->n_known && mem->known[end].to <= to)
        end++;
    close_ranges(mem, i, end - i);
    if (i < mem->n_known && mem->known[i].from < to)
        mem->known[i].from = to;
}

void vg_mem_told(const void *p, uint64_t bytes)
{
    vg_lock();
    struct vg_mem *mem = vg_mem_at(p);
    if (mem != NULL && bytes > 0) {
        uint64_t from = (uintptr_t)p - mem->base, to = from + bytes;
        vg_taint_clear(p, bytes);
        forget(mem, from, to);
        uint32_t i = range_after(mem, from);
        const bool joins = i > 0 && mem->known[i - 1].to == from; /* neighbours become one */
        const bool meets = i < mem->n_known && mem->known[i].from == to;
        if (joins && meets) {
            mem->known[i - 1].to = mem->known[i].to;
            close_ranges(mem, i, 1);
        } else if (joins) {
            mem->known[i - 1].to = to;
        } else if (meets) {
            mem->known[i].from = from;
        } else if (open_range(mem, i)) {
            mem->known[i] = (struct vg_range){from, to};
        }
    }
    vg_unlock();
}

void vg_mem_written(const void *p, uint64_t bytes)
{
    vg_lock();
    struct vg_mem *mem = vg_mem_at(p);
    if (mem != NULL) {
        const uint64_t from = (uintptr_t)p - mem->base, most = mem->bytes - from;
        forget(mem, from, bytes < most ? from + bytes : mem->bytes);
        vg_taint_clear(p, bytes < most ? bytes : most);
    }
    vg_unlock();
}

static void forget_all(struct vg_mem *mem)
{
    mem->n_known = 0;
}

void vg_mem_written_anywhere(void)
{
    vg_lock();
    vg_mem_each(forget_all);
    vg_taint_clear_all();
    vg_unlock();
}

bool vg_mem_true(const void *p, uint64_t bytes)
{
    vg_lock();
    const struct vg_mem *mem = vg_mem_at(p);
    bool known = mem == NULL; /* the host's own memory */
    if (mem != NULL) {
        uint64_t from = (uintptr_t)p - mem->base;
        uint32_t i = range_after(mem, from);
        known = i < mem->n_known && mem->known[i].from <= from && from + bytes <= mem->known[i].to;
    }
    vg_unlock();
    return known;
}

uint64_t vg_mem_known_piece(const void *p, uint64_t bytes, uint64_t *skip)
{
    vg_lock();
    const struct vg_mem *mem = vg_mem_at(p);
    uint64_t n = mem == NULL ? bytes : 0;
    *skip = 0;
    if (mem != NULL) {
        const uint64_t from = (uintptr_t)p - mem->base, end = from + bytes;
        const uint32_t i = range_after(mem, from);
        if (i < mem->n_known && mem->known[i].from < end) {
            const uint64_t begin = mem->known[i].from > from ? mem->known[i].from : from;
            *skip = begin - from;
            n = (mem->known[i].to < end ? mem->known[i].to : end) - begin;
        }
    }
    vg_unlock();
    return n;
}

void vg_mem_blank(void *p, uint64_t bytes)
{
    vg_lock();
    const struct vg_mem *mem = vg_mem_at(p);
    if (mem != NULL && maq_rec_on_device(mem->kind)) { /* the host writes into other kinds without telling */
        uint64_t at = (uintptr_t)p - mem->base, end = at + bytes;
        for (uint32_t i = range_after(mem, at); at < end; i++) {
            const bool more = i < mem->n_known && mem->known[i].from < end;
            const uint64_t to = more ? mem->known[i].from : end;
            if (to > at)
                memset((char *)p + (at - ((uintptr_t)p - mem->base)), 0, to - at);
            at = more ? mem->known[i].to : end;
        }
    }
    vg_unlock();
}
