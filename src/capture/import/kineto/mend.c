/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mend.c - events of a profiler trace whose times cannot be, as they most likely were. See base/mended.h.
 *
 *   work of the device whose duration is missing or below zero   as long as the median of its name, at most until the next on its
 *                                                                stream begins
 *   a call, an operator, an annotation without its duration      no time: what is inside of it is not known
 *   an event days away from the others                           left out: the clock of a recording that lasts minutes was not set yet
 *
 * Events that are there twice in a row are left out as they are read (events.c).
 */
#include <stdlib.h>

#include "base/check.h"
#include "base/codes.h"
#include "capture/import/codes.h"
#include "capture/import/kineto/events.h"

#define DAY_NS INT64_C(86400000000000)

static bool on_device(const struct maq_kineto_event *e)
{
    return e->kind == MAQ_KINETO_KERNEL || e->kind == MAQ_KINETO_MEMCPY || e->kind == MAQ_KINETO_MEMSET;
}

static int by_ns(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Leaves out what lies more than a day from the middle of the events. */
static enum maq_status drop_days(struct maq_kineto_reader *r, int64_t *scratch)
{
    struct maq_kineto *k = r->k;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < k->n_events; i++)
        scratch[i] = k->event[i].start;
    qsort(scratch, k->n_events, sizeof *scratch, by_ns);
    const int64_t first = scratch[0], middle = scratch[k->n_events / 2], last = scratch[k->n_events - 1];
    if (middle - first <= DAY_NS && last - middle <= DAY_NS)
        return MAQ_OK;
    k->begin = INT64_MAX;
    k->end = INT64_MIN;
    for (uint32_t i = 0; i < k->n_events; i++) {
        const struct maq_kineto_event e = k->event[i];
        if (e.start - middle > DAY_NS || middle - e.start > DAY_NS) {
            MAQ_TRY(maq_mend(&r->mended, MAQ_MEND_CLOCK, 0, MAQ_CODE_IMPORT_NUMBER,
                             "%s: an event '%s' that is days away from the others", k->path, e.name));
            continue;
        }
        k->event[kept++] = e;
        if (e.kind != MAQ_KINETO_SPAN && e.kind != MAQ_KINETO_SYNC) {
            k->begin = e.start < k->begin ? e.start : k->begin;
            k->end = e.end > k->end ? e.end : k->end;
        }
    }
    k->n_events = kept;
    return MAQ_OK;
}

/* The median duration of a name on the device; names are held once. */
static int64_t usual(const struct maq_kineto *k, const char *name, int64_t *scratch)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < k->n_events; i++)
        if (k->event[i].name == name && on_device(&k->event[i]) && !k->event[i].untimed)
            scratch[n++] = k->event[i].end - k->event[i].start;
    qsort(scratch, n, sizeof *scratch, by_ns);
    return n > 0 ? scratch[n / 2] : 0;
}

/* Time until the next on its stream begins; INT64_MAX where none does. */
static int64_t time_to_next(const struct maq_kineto *k, const struct maq_kineto_event *of)
{
    int64_t left = INT64_MAX;
    for (uint32_t i = 0; i < k->n_events; i++) {
        const struct maq_kineto_event *e = &k->event[i];
        if (on_device(e) && e != of && e->stream == of->stream && e->start >= of->start && e->start - of->start < left)
            left = e->start - of->start;
    }
    return left;
}

enum maq_status maq_kineto_mend(struct maq_kineto_reader *r)
{
    struct maq_kineto *k = r->k;
    int64_t *scratch = MAQ_ARENA_NEW(k->arena, int64_t, k->n_events + 1);
    if (!scratch)
        return maq_kineto_no_memory(r->diag, k->path);
    if (k->n_events == 0)
        return maq_mending_end(&r->mended, 0);
    MAQ_TRY(drop_days(r, scratch));
    for (uint32_t i = 0; i < k->n_events; i++) {
        struct maq_kineto_event *e = &k->event[i];
        if (on_device(e) && e->untimed) {
            int64_t left = time_to_next(k, e), ns = usual(k, e->name, scratch);
            e->end = e->start + (ns < left ? ns : left);
            k->end = e->end > k->end ? e->end : k->end;
            r->mended.moved_s += (double)(e->end - e->start) * 1e-9;
        }
        if (on_device(e))
            r->mended.recorded_s += (double)(e->end - e->start) * 1e-9;
    }
    return maq_mending_end(&r->mended, k->n_events);
}
