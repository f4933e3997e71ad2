/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records.c - writes the records of a rank from its time line.
 *
 * While writing it keeps the clocks that a replay will have: the host, the end of each stream, the time of each event. The `ns`
 * of a record follows from these clocks and the times of the trace, whatever was inferred before (timeline.c).
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/codes.h"
#include "base/str.h"
#include "capture/import/codes.h"
#include "capture/import/kineto/timeline.h"
#include "capture/import/readers.h"

#define NONE UINT32_MAX

static const struct maq_span nowhere;

struct writer {
    struct maq_kineto_timeline *t;
    struct maq_import_job *job;
    struct maq_import_rank *rank;
    const struct maq_kineto *k;
    int64_t host;        /* where the host is, as a replay will have it */
    int64_t device_end;  /* of everything launched so far */
    int64_t *stream_end; /* [UINT16_MAX] */
    int64_t *event_at;   /* [steps] by number of event */
    uint32_t n_events;
    bool in_backward;
};

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The next record; the host reaches it at T. */
static struct maq_rec *put(struct writer *w, enum maq_rec_kind kind, int64_t t)
{
    int64_t host = later(w->host, t);
    struct maq_rec *r = maq_import_record(w->job, w->rank, kind, host - w->host);
    w->host = host;
    return r;
}

static void put_mark(struct writer *w, enum maq_rec_mark mark, const char *text, int64_t t)
{
    uint32_t id = maq_import_text(w->job, maq_str_of(text));
    struct maq_rec *r = put(w, MAQ_REC_MARK, t);
    r->id = id;
    r->arg = mark;
}

/* What a stream has then; whoever waits for it comes later on this host. */
static void put_event(struct writer *w, struct maq_kineto_step *s, uint16_t stream, int64_t t)
{
    s->number = w->n_events++;
    w->event_at[s->number] = w->stream_end[stream];
    struct maq_rec *r = put(w, MAQ_REC_EVENT_RECORD, t);
    r->stream = stream;
    r->id = s->number;
}

static void put_wait(struct writer *w, const struct maq_kineto_step *on, uint16_t stream, int64_t t)
{
    struct maq_rec *r = put(w, MAQ_REC_STREAM_WAIT, t);
    r->stream = stream;
    r->id = on->number;
    w->stream_end[stream] = later(w->stream_end[stream], w->event_at[on->number]);
}

static enum maq_rec_copy direction(const char *name)
{
    static const struct {
        const char *word;
        enum maq_rec_copy copy;
    } known[] = {{"HtoD", MAQ_REC_H2D},
                 {"DtoH", MAQ_REC_D2H},
                 {"PtoP", MAQ_REC_P2P},
                 {"HtoH", MAQ_REC_H2H},
                 {"DtoD", MAQ_REC_D2D}};
    for (size_t i = 0; i < MAQ_COUNT(known); i++)
        if (strstr(name, known[i].word))
            return known[i].copy;
    return MAQ_REC_D2D;
}

/* Time on a stream that nothing in the trace accounts for. */
static void put_gap(struct writer *w, uint16_t stream, int64_t t, int64_t ns)
{
    struct maq_rec_op gap = {.kind = MAQ_REC_LIBRARY, .type = MAQ_REC_TYPE_OTHER, .out = MAQ_REC_TYPE_OTHER};
    uint32_t id = maq_import_op(w->job, &gap, MAQ_STR("gap that the trace does not explain"));
    struct maq_rec *r = put(w, MAQ_REC_LAUNCH, t);
    r->stream = stream;
    r->id = id;
    r->ns = (uint64_t)ns;
}

/* The record itself, without times. */
static struct maq_rec *put_work(struct writer *w, const struct maq_kineto_event *e,
                                const struct maq_kineto_event *above, int64_t t)
{
    struct maq_kineto_occurrence m;
    struct maq_rec *r;
    if (e->kind == MAQ_KINETO_MEMCPY || e->kind == MAQ_KINETO_MEMSET) {
        r = put(w, e->kind == MAQ_KINETO_MEMCPY ? MAQ_REC_COPY : MAQ_REC_SET, t);
        r->bytes = e->u.bytes;
        r->id = e->kind == MAQ_KINETO_MEMCPY ? direction(e->name) : 0;
    } else if (maq_kineto_is_nccl(e) && maq_kineto_occurrence(&m, w->job, w->rank, w->k, e)) {
        r = put(w, m.kind, t);
        r->id = MAQ_REC_COLL(m.comm, 0, m.type, m.coll);
        r->arg = m.arg;
        r->bytes = m.bytes;
    } else {
        uint32_t id = maq_kineto_op(w->job, e, above);
        r = put(w, MAQ_REC_LAUNCH, t);
        r->id = id;
    }
    return r;
}

static void put_launch(struct writer *w, struct maq_kineto_step *s)
{
    struct maq_kineto_timeline *t = w->t;
    const struct maq_kineto_event *e = &w->k->event[s->event], *call = NULL;
    uint16_t stream = (uint16_t)maq_kineto_stream(t, s->stream);
    uint64_t *at = e->correlation >= 0 ? maq_intern_map_at(&t->call, &t->scratch, &e->correlation, 8) : NULL;
    uint32_t above = NONE;
    bool backward = s->unlaunched && w->in_backward;
    if (at && *at > 0) {
        call = &w->k->event[*at - 1];
        above = t->above[*at - 1];
        backward = t->backward[*at - 1];
    }
    if (backward != w->in_backward)
        put_mark(w, backward ? MAQ_REC_PUSH : MAQ_REC_POP, "backward", s->t);
    w->in_backward = backward;
    if (s->until != NONE && t->step[s->until].number != NONE)
        put_wait(w, &t->step[s->until], stream, s->t);
    int64_t ready = later(later(w->host, s->t), w->stream_end[stream]);
    if (e->start - ready > MAQ_KINETO_GAP_NS) {
        put_gap(w, stream, s->t, e->start - ready);
        ready = e->start;
    }
    struct maq_rec *r = put_work(w, e, above == NONE ? NULL : &w->k->event[above], s->t);
    r->stream = stream;
    r->ns = (uint64_t)later(e->end - ready, 0);
    r->flags = call && strstr(call->name, "GraphLaunch") ? MAQ_REC_GRAPH : 0;
    w->stream_end[stream] = later(ready, e->end);
    w->device_end = later(w->device_end, w->stream_end[stream]);
    if (s->waits) {
        r->flags |= MAQ_REC_WAITS;
        w->host = later(w->host, w->stream_end[stream]);
    }
    if (s->recorded)
        put_event(w, s, stream, w->host);
}

static void put_sync(struct writer *w, const struct maq_kineto_step *s)
{
    if (s->device_wide) {
        put(w, MAQ_REC_DEVICE_SYNC, s->t);
        w->host = later(w->host, w->device_end);
    } else if (s->until != NONE && w->t->step[s->until].number != NONE) {
        uint32_t number = w->t->step[s->until].number;
        put(w, MAQ_REC_EVENT_SYNC, s->t)->id = number;
        w->host = later(w->host, w->event_at[number]);
    } else if (s->stream >= 0) {
        uint16_t stream = (uint16_t)maq_kineto_stream(w->t, s->stream);
        put(w, MAQ_REC_STREAM_SYNC, s->t)->stream = stream;
        w->host = later(w->host, w->stream_end[stream]);
    } /* else it waited for nothing, and its time is the host's */
}

static void put_step(struct writer *w, struct maq_kineto_step *s)
{
    const char *name = w->k->event[s->event].name;
    switch ((enum maq_kineto_step_kind)s->kind) {
    case MAQ_STEP_LAUNCH:
        put_launch(w, s);
        break;
    case MAQ_STEP_SYNC:
        put_sync(w, s);
        break;
    case MAQ_STEP_WAIT:
        if (s->until != NONE && w->t->step[s->until].number != NONE)
            put_wait(w, &w->t->step[s->until], (uint16_t)maq_kineto_stream(w->t, s->stream), s->t);
        break;
    case MAQ_STEP_RECORD:
        if (s->recorded)
            put_event(w, s, (uint16_t)maq_kineto_stream(w->t, s->stream), s->t);
        break;
    case MAQ_STEP_PUSH:
        put_mark(w, MAQ_REC_PUSH, name, s->t);
        break;
    case MAQ_STEP_POP:
        put_mark(w, MAQ_REC_POP, name, s->t);
        break;
    case MAQ_STEP_MARK:
        put_mark(w, MAQ_REC_STEP, name, s->t);
        break;
    }
}

static bool put_all(struct writer *w)
{
    struct maq_kineto_timeline *t = w->t;
    w->stream_end = maq__malloc(UINT16_MAX * sizeof *w->stream_end);
    w->event_at = maq__malloc((t->n + (size_t)1) * sizeof *w->event_at);
    bool ok = w->stream_end && w->event_at;
    for (uint32_t i = 0; ok && i < UINT16_MAX; i++)
        w->stream_end[i] = w->k->begin;
    w->host = w->device_end = w->k->begin;
    for (uint32_t i = 0; ok && i < t->n && !t->failed && !w->job->failed; i++)
        put_step(w, &t->step[i]);
    if (ok && w->in_backward)
        put_mark(w, MAQ_REC_POP, "backward", w->host);
    if (ok)
        (void)put(w, MAQ_REC_END, w->k->end);
    w->rank->n_events = w->n_events;
    w->rank->n_streams = t->streams.key.n;
    free(w->stream_end);
    free(w->event_at);
    return ok && !t->failed && !w->job->failed;
}

enum maq_status maq_kineto_records(struct maq_import_job *job, struct maq_import_rank *rank, struct maq_kineto *k)
{
    bool device = false;
    for (uint32_t i = 0; i < k->n_events; i++)
        device |= k->event[i].kind == MAQ_KINETO_KERNEL || k->event[i].kind == MAQ_KINETO_MEMCPY;
    if (!device)
        return maq_diag_fail(MAQ_BAD_INPUT, job->diag, MAQ_CODE_IMPORT_EMPTY, nowhere,
                             "record with activities=[CPU, CUDA]", "%s: no kernel ran on a device", k->path);
    struct maq_kineto_timeline t = {.job = job, .rank = rank, .k = k};
    maq_arena_init(&t.scratch, 0);
    struct writer w = {.t = &t, .job = job, .rank = rank, .k = k};
    bool ok = maq_kineto_steps(&t) && put_all(&w);
    if (ok)
        maq_kineto_tell_unlaunched(&t);
    maq_kineto_timeline_fini(&t);
    return ok ? MAQ_OK
              : maq_diag_fail(MAQ_NO_MEMORY, job->diag, MAQ_CODE_NO_MEMORY, nowhere, NULL, "%s: out of memory",
                              k->path);
}
