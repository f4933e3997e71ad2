/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launches.c - when the host launched what ran on the device, where the trace does not have the launch.
 *
 * A recording begins while the device is at work whenever the program does not wait for it first: every schedule() of torch's
 * profiler with a wait or a warm-up. The calls that launched what is in flight then are in no trace. Streams are first in, first
 * out, so what is known of such work is its place on its stream:
 *
 *   in front of all work of its stream that has a launch    it was in flight: launched when the recording begins
 *   behind such work                                        its launch was lost (a full buffer, a call that is not recorded): with
 *                                                           the next launch of its stream, and no later than its own start
 *   in a trace without any launch (CUDA activities alone)   at its start
 *
 * The order of a stream is that of the device, of launched work too: threads that launch at the same time may have got through in
 * another order than their calls began. So for work i of a stream, in order of its starts,
 *
 *     at_i = min(at_i, at_{i+1}).                                                                                  [ns]
 */
#include <stdlib.h>

#include "base/check.h"
#include "base/text.h"
#include "capture/import/codes.h"
#include "capture/import/kineto/timeline.h"

static const struct maq_span nowhere;

static int by_stream(const void *a, const void *b, void *user)
{
    const struct maq_kineto_timeline *t = user;
    const struct maq_kineto_step *x = &t->step[*(const uint32_t *)a], *y = &t->step[*(const uint32_t *)b];
    if (x->stream != y->stream)
        return x->stream < y->stream ? -1 : 1;
    if (x->tie != y->tie)
        return x->tie < y->tie ? -1 : 1;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

/* The work of one stream, in order of its starts. */
static void place_stream(struct maq_kineto_timeline *t, const uint32_t *work, uint32_t n)
{
    uint32_t first = 0; /* that has a launch */
    while (first < n && t->step[work[first]].unlaunched)
        first++;
    bool any = t->unlaunched.n < t->unlaunched.of;
    for (uint32_t i = 0; i < first && any; i++)
        t->step[work[i]].at = t->step[work[i]].end = t->k->begin;
    for (uint32_t i = first; i < n; i++)
        t->unlaunched.in_window += t->step[work[i]].unlaunched;
    for (uint32_t i = n; i-- > 1;) {
        struct maq_kineto_step *s = &t->step[work[i - 1]], *next = &t->step[work[i]];
        s->at = next->at < s->at ? next->at : s->at;
        s->end = s->unlaunched ? s->at : s->end;
    }
}

bool maq_kineto_place_launches(struct maq_kineto_timeline *t)
{
    struct maq_kineto_unlaunched *u = &t->unlaunched;
    uint32_t *work = MAQ_ARENA_NEW(&t->scratch, uint32_t, t->n);
    if (!work)
        return false;
    for (uint32_t i = 0; i < t->n; i++) {
        const struct maq_kineto_step *s = &t->step[i];
        if (s->kind != MAQ_STEP_LAUNCH)
            continue;
        int64_t ns = t->k->event[s->event].end - s->tie;
        work[u->of++] = i;
        u->of_ns += ns;
        u->n += s->unlaunched;
        u->ns += s->unlaunched ? ns : 0;
    }
    qsort_r(work, u->of, sizeof *work, by_stream, t);
    for (uint32_t i = 0, n; i < u->of; i += n) {
        for (n = 1; i + n < u->of && t->step[work[i + n]].stream == t->step[work[i]].stream;)
            n++;
        place_stream(t, work + i, n);
    }
    return true;
}

void maq_kineto_tell_unlaunched(const struct maq_kineto_timeline *t)
{
    const struct maq_kineto_unlaunched *u = &t->unlaunched;
    double ms = (double)u->ns / 1e6, of_ms = (double)u->of_ns / 1e6;
    if (u->n == 0)
        return;
    if (u->n == u->of)
        maq_diag_add(t->job->diag, MAQ_NOTE, MAQ_CODE_IMPORT_UNLAUNCHED, nowhere,
                     "record with activities=[CPU, CUDA] for the host's time and what waits for it",
                     "%s: no launch of any of its %u events of the device; each is taken to be launched when it starts",
                     t->k->path, u->n);
    else if (u->n == u->in_window)
        maq_diag_add(
            t->job->diag, MAQ_NOTE, MAQ_CODE_IMPORT_UNLAUNCHED, nowhere, NULL,
            "%s: the launches of %u of %u events of the device, %.3g of %.3g ms, are missing from the trace; these "
            "events keep their places on their streams",
            t->k->path, u->n, u->of, ms, of_ms);
    else {
        char lost[96] = "";
        if (u->in_window > 0)
            maq__snprintf(lost, sizeof lost, ", %u of them in the middle of it", u->in_window);
        maq_diag_add(t->job->diag, MAQ_NOTE, MAQ_CODE_IMPORT_UNLAUNCHED, nowhere,
                     "to record whole steps, call torch.cuda.synchronize() before the recording begins",
                     "%s: %u of %u events of the device, %.3g of %.3g ms, have no launch in the trace%s: it begins "
                     "while they are "
                     "in flight. They keep their places on their streams, and are of the step before",
                     t->k->path, u->n, u->of, ms, of_ms, lost);
    }
}
