/* SPDX-License-Identifier: Apache-2.0 */
/*
 * taint.c - bytes in the program's buffers that a rank which did not run was to say, and nobody has: where they lie, until the host
 * reads them.
 *
 * In a CUDA program: what a broadcast or a message brought.
 *
 * A collective that brings something from one rank alone has to leave something in the buffer (nccl/payload.c says what). That matters
 * when the host looks at it, and not before: many a small broadcast is of state that no host ever reads. So the place is marked, the mark
 * goes along with copies on the device, goes away where something else is written, and is reported when the host reads there. Memory of
 * the host it may read at any time, without a call.
 */
#include "shim/core/memory.h"

enum { MARKS_MOST = 512 }; /* the oldest gives way: the host reads small results soon */

static struct mark {
    uintptr_t from, to;
    struct vg_taint what;
} marks[MARKS_MOST];
static uint32_t n_marks;

static void drop(uint32_t i)
{
    for (n_marks--; i < n_marks; i++)
        marks[i] = marks[i + 1];
}

static void add(uintptr_t from, uintptr_t to, const struct vg_taint *what)
{
    if (n_marks == MARKS_MOST)
        drop(0);
    marks[n_marks++] = (struct mark){from, to, *what};
}

static bool overlaps(const struct mark *mark, uintptr_t from, uint64_t bytes)
{
    return mark->from < from + bytes && from < mark->to;
}

void vg_taint_mark(const void *p, const struct vg_taint *what)
{
    struct vg_alloc a;
    uintptr_t from = (uintptr_t)p;
    vg_lock();
    if (vg_mem_find(p, &a) && maq_rec_on_device(a.kind))
        add(from, from + what->bytes, what);
    else
        vg_tainted_read(what);
    vg_unlock();
}

void vg_taint_clear(const void *p, uint64_t bytes)
{
    vg_lock();
    for (uint32_t i = 0; i < n_marks;)
        if (overlaps(&marks[i], (uintptr_t)p, bytes))
            drop(i);
        else
            i++;
    vg_unlock();
}

void vg_taint_clear_all(void)
{
    vg_lock();
    n_marks = 0;
    vg_unlock();
}

void vg_taint_copy(const void *to, const void *from, uint64_t bytes)
{
    vg_lock();
    for (uint32_t i = n_marks; i > 0; i--)
        if (overlaps(&marks[i - 1], (uintptr_t)from, bytes)) {
            const struct vg_taint what = marks[i - 1].what;
            add((uintptr_t)to, (uintptr_t)to + bytes, &what);
            break;
        }
    vg_unlock();
}

void vg_taint_read(const void *p, uint64_t bytes)
{
    vg_lock();
    for (uint32_t i = 0; i < n_marks;) {
        struct vg_taint what = marks[i].what;
        if (!overlaps(&marks[i], (uintptr_t)p, bytes)) {
            i++;
            continue;
        }
        drop(i);
        vg_tainted_read(&what);
    }
    vg_unlock();
}
