/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline.c - the time line of a rank: from events with times to durations without waiting, and dependencies.
 *
 * All threads that call the device are taken as one host, their calls in order of time: a training program's threads take turns
 * (forward on one, backward on another), and a replay has one host per rank. Each call i gets a moment T_i at which the device may
 * see it, and each kernel the moment at which everything it waits for is there:
 *
 *     T_i   = min(end of the call + c, start of what it launched, T_{i+1})            c: launch latency, see below
 *     ready = max(T_i, end of the one before on its stream, ends of what its stream was told to wait for)
 *     ns    = end - ready                                                             [ns]
 *     host  = T_i - T_{i-1}, or after a call that waited T_i - max(T_{i-1}, end of what it waited for)
 *
 * so a replay of the records without edits puts every end where the trace has it. Work whose launch is not in the trace gets its
 * moment in launches.c. c is the median, over kernels that found their
 * stream idle, of start - end of the launching call. What of `start - ready` is longer than MAQ_KINETO_GAP_NS is no property of the
 * kernel: it becomes an operator of its own, "gap that the trace does not explain".
 *
 * Dependencies between streams. Newer traces (cuda_sync events) say which stream waits for which record of an event.
 * In others only the calls of cudaStreamWaitEvent are seen, without stream and event; then a kernel that starts
 * within MAQ_KINETO_WAIT_NS after the end of a kernel of another stream, and later than its own stream and launch
 * allow, is taken to wait for it, if there was such a call between the two launches. Likewise a synchronising call
 * waits for the last end on the device that lies in it. Dependencies that cost nothing in the trace cannot be seen
 * and are lost.
 */
#include "capture/import/kineto/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/str.h"

#define NONE UINT32_MAX

/* --- the host's steps ------------------------------------------------------------------------------------------------- */

static struct maq_kineto_step *add(struct maq_kineto_timeline *t)
{
    if (t->n == t->size) {
        uint32_t size = t->size ? t->size * 2 : 1024;
        struct maq_kineto_step *p = size <= UINT32_MAX / 4 ? maq__realloc(t->step, size * sizeof *p) : NULL;
        if (!p) {
            t->failed = true;
            return &t->spare;
        }
        t->step = p;
        t->size = size;
    }
    t->step[t->n] = (struct maq_kineto_step){.event = NONE, .until = NONE, .number = NONE, .stream = -1, .seq = t->n};
    return &t->step[t->n++];
}

static bool is_device(const struct maq_kineto_event *e)
{
    return e->kind == MAQ_KINETO_KERNEL || e->kind == MAQ_KINETO_MEMCPY || e->kind == MAQ_KINETO_MEMSET;
}

static uint64_t *call_at(struct maq_kineto_timeline *t, int64_t correlation)
{
    uint64_t *at = maq_intern_map_at(&t->call, &t->scratch, &correlation, sizeof correlation);
    t->failed |= !at;
    return at;
}

static const struct maq_kineto_event *call_of(struct maq_kineto_timeline *t, int64_t correlation)
{
    uint64_t *at = correlation >= 0 ? call_at(t, correlation) : NULL;
    return at && *at > 0 ? &t->k->event[*at - 1] : NULL;
}

static void add_launch(struct maq_kineto_timeline *t, uint32_t event)
{
    const struct maq_kineto_event *e = &t->k->event[event], *call = call_of(t, e->correlation);
    struct maq_kineto_step *s = add(t);
    s->kind = MAQ_STEP_LAUNCH;
    s->event = event;
    s->stream = e->stream;
    s->tie = e->start;
    s->unlaunched = !call;
    s->at = call && call->start <= e->start ? call->start : e->start;
    s->end = call && call->start <= e->start ? call->end : e->start;
    s->waits = e->kind == MAQ_KINETO_MEMCPY && call && call->end >= e->end;
}

/* Calls that make the host wait, and what they may wait for. */
static void add_call(struct maq_kineto_timeline *t, const struct maq_kineto_event *e)
{
    bool device = strstr(e->name, "DeviceSynchronize") != NULL || strcmp(e->name, "cuCtxSynchronize") == 0;
    bool sync = device || strstr(e->name, "StreamSynchronize") != NULL || strstr(e->name, "EventSynchronize") != NULL;
    bool wait = strstr(e->name, "StreamWaitEvent") != NULL;
    bool record = t->says_waits && strstr(e->name, "EventRecord") != NULL;
    if (!sync && !wait && !record)
        return;
    struct maq_kineto_step *s = add(t);
    s->waits = sync;
    s->kind = sync ? MAQ_STEP_SYNC : wait ? MAQ_STEP_WAIT : MAQ_STEP_RECORD;
    s->device_wide = device;
    s->at = e->start;
    s->end = e->end;
    s->event = (uint32_t)(e - t->k->event);
}

static void add_span(struct maq_kineto_timeline *t, uint32_t event)
{
    const struct maq_kineto_event *e = &t->k->event[event];
    bool step = strncmp(e->name, "ProfilerStep#", 13) == 0;
    struct maq_kineto_step *s = add(t);
    s->kind = step ? MAQ_STEP_MARK : MAQ_STEP_PUSH;
    s->event = event;
    s->at = s->end = step ? e->end : e->start; /* a mark of a step is where it ends (replay/program.h) */
    if (step)
        return;
    s = add(t);
    s->kind = MAQ_STEP_POP;
    s->event = event;
    s->at = s->end = e->end;
}

/* Of steps at one moment: annotations, then launches, then what may wait for them. */
static int turn(const struct maq_kineto_step *s)
{
    switch ((enum maq_kineto_step_kind)s->kind) {
    case MAQ_STEP_PUSH:
    case MAQ_STEP_POP:
    case MAQ_STEP_MARK:
        return 0;
    case MAQ_STEP_LAUNCH:
        return 1;
    case MAQ_STEP_SYNC:
    case MAQ_STEP_WAIT:
    case MAQ_STEP_RECORD:
        break;
    }
    return 2;
}

static int by_time(const void *a, const void *b)
{
    const struct maq_kineto_step *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    if (turn(x) != turn(y))
        return turn(x) < turn(y) ? -1 : 1;
    if (turn(x) == 1 && x->tie != y->tie) /* nodes of a CUDA graph; what was in flight when the recording began */
        return x->tie < y->tie ? -1 : 1;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

static bool add_steps(struct maq_kineto_timeline *t)
{
    struct maq_kineto *k = t->k;
    for (uint32_t i = 0; i < k->n_events; i++) {
        t->says_waits |= k->event[i].kind == MAQ_KINETO_SYNC && k->event[i].u.sync.record >= 0;
        if (k->event[i].kind == MAQ_KINETO_CALL && k->event[i].correlation >= 0) {
            uint64_t *at = call_at(t, k->event[i].correlation);
            if (at && *at == 0)
                *at = i + UINT64_C(1);
        }
    }
    for (uint32_t i = 0; i < k->n_events && !t->failed; i++) {
        if (is_device(&k->event[i]))
            add_launch(t, i);
        else if (k->event[i].kind == MAQ_KINETO_CALL)
            add_call(t, &k->event[i]);
        else if (k->event[i].kind == MAQ_KINETO_SPAN)
            add_span(t, i);
    }
    if (t->failed || !maq_kineto_place_launches(t))
        return false;
    qsort(t->step, t->n, sizeof *t->step, by_time);
    return true;
}

/* --- what is above a call ----------------------------------------------------------------------------------------------- */

struct bracket {
    int64_t thread, at, end;
    uint32_t event;
};

static int by_thread(const void *a, const void *b)
{
    const struct bracket *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    if (x->end != y->end) /* the outer one first */
        return x->end > y->end ? -1 : 1;
    return (x->event > y->event) - (x->event < y->event);
}

/* The innermost kept operator around each call, thread by thread, with a stack of those that are open. */
static bool find_above(struct maq_kineto_timeline *t)
{
    struct maq_kineto *k = t->k;
    uint32_t n = 0, depth = 0;
    struct bracket *b = MAQ_ARENA_NEW(&t->scratch, struct bracket, k->n_events);
    uint32_t *open = MAQ_ARENA_NEW(&t->scratch, uint32_t, k->n_events);
    t->above = MAQ_ARENA_NEW(&t->scratch, uint32_t, k->n_events);
    t->backward = MAQ_ARENA_NEW(&t->scratch, bool, k->n_events);
    if (!b || !open || !t->above || !t->backward)
        return false;
    for (uint32_t i = 0; i < k->n_events; i++) {
        const struct maq_kineto_event *e = &k->event[i];
        t->above[i] = NONE;
        if (e->kind == MAQ_KINETO_OP || e->kind == MAQ_KINETO_CALL)
            b[n++] = (struct bracket){e->thread, e->start, e->end, i};
    }
    qsort(b, n, sizeof *b, by_thread);
    for (uint32_t i = 0; i < n; i++) {
        while (depth > 0 &&
               (k->event[open[depth - 1]].thread != b[i].thread || k->event[open[depth - 1]].end <= b[i].at))
            depth--;
        uint32_t v = b[i].event;
        bool engine = strncmp(k->event[v].name, "autograd::", 10) == 0;
        t->backward[v] = engine || (depth > 0 && t->backward[open[depth - 1]]);
        t->above[v] = depth > 0 && k->event[open[depth - 1]].u.shape ? open[depth - 1] : NONE;
        if (k->event[v].kind == MAQ_KINETO_OP)
            open[depth++] = v;
    }
    return true;
}

/* --- times ---------------------------------------------------------------------------------------------------------------- */

static int64_t start_of(const struct maq_kineto_timeline *t, uint32_t step)
{
    return t->k->event[t->step[step].event].start;
}

static int64_t end_of(const struct maq_kineto_timeline *t, uint32_t step)
{
    return t->k->event[t->step[step].event].end;
}

uint32_t maq_kineto_stream(struct maq_kineto_timeline *t, int64_t stream)
{
    uint64_t *at = maq_intern_map_at(&t->streams, &t->scratch, &stream, sizeof stream);
    if (!at || t->streams.key.n >= UINT16_MAX) {
        t->failed = true;
        return 0;
    }
    if (*at == 0)
        *at = t->streams.key.n;
    return (uint32_t)*at - 1;
}

/* The launch before each on its stream. */
static bool link_streams(struct maq_kineto_timeline *t)
{
    uint32_t *last = maq__malloc(UINT16_MAX * sizeof *last);
    t->on = MAQ_ARENA_NEW(&t->scratch, uint32_t, t->n);
    if (!last || !t->on) {
        free(last);
        return false;
    }
    memset(last, 0xff, UINT16_MAX * sizeof *last);
    for (uint32_t i = 0; i < t->n && !t->failed; i++) {
        t->on[i] = NONE;
        if (t->step[i].kind != MAQ_STEP_LAUNCH)
            continue;
        uint32_t s = maq_kineto_stream(t, t->step[i].stream);
        t->on[i] = last[s];
        last[s] = i;
    }
    free(last);
    return !t->failed;
}

static int by_ns(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Median of start - end of the call, where the stream was idle when the call returned. */
static bool launch_latency(struct maq_kineto_timeline *t, int64_t *out)
{
    int64_t *late = MAQ_ARENA_NEW(&t->scratch, int64_t, t->n);
    uint32_t n = 0;
    *out = 0;
    if (!late)
        return false;
    for (uint32_t i = 0; i < t->n; i++) {
        const struct maq_kineto_step *s = &t->step[i];
        if (s->kind != MAQ_STEP_LAUNCH || s->unlaunched || s->at == start_of(t, i) ||
            (t->on[i] != NONE && end_of(t, t->on[i]) > s->end))
            continue;
        int64_t d = start_of(t, i) - s->end;
        if (d >= 0 && d <= 2 * MAQ_KINETO_GAP_NS)
            late[n++] = d;
    }
    qsort(late, n, sizeof *late, by_ns);
    *out = n > 0 ? late[n / 2] : 0;
    return true;
}

static bool find_moments(struct maq_kineto_timeline *t)
{
    int64_t latency, limit = t->k->end;
    if (!launch_latency(t, &latency))
        return false;
    for (uint32_t i = t->n; i-- > 0;) {
        struct maq_kineto_step *s = &t->step[i];
        int64_t at = (s->waits ? s->at : s->end) + latency; /* a call that waits ends when it has waited */
        limit = at < limit ? at : limit;
        if (s->kind == MAQ_STEP_LAUNCH && start_of(t, i) < limit)
            limit = start_of(t, i);
        s->t = limit;
    }
    return true;
}

/* --- who waits for whom ----------------------------------------------------------------------------------------------------- */

/* Launches in order of their ends, for finding what ended last before a moment. */
struct ends {
    uint32_t n, *step;
};

static int by_end(const void *a, const void *b, void *user)
{
    const struct maq_kineto_timeline *t = user;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    int64_t ex = end_of(t, x), ey = end_of(t, y);
    return ex != ey ? (ex < ey ? -1 : 1) : (x > y) - (x < y);
}

static bool sort_ends(struct maq_kineto_timeline *t, struct ends *e)
{
    e->step = MAQ_ARENA_NEW(&t->scratch, uint32_t, t->n);
    for (uint32_t i = 0; e->step && i < t->n; i++)
        if (t->step[i].kind == MAQ_STEP_LAUNCH)
            e->step[e->n++] = i;
    if (e->step)
        qsort_r(e->step, e->n, sizeof *e->step, by_end, t);
    return e->step != NULL;
}

/* The launch before step `i` whose end is the last in [from, to]; not on `stream` when it is >= 0. NONE. */
static uint32_t ended_last(const struct maq_kineto_timeline *t, const struct ends *e, uint32_t i, int64_t from,
                           int64_t to, int64_t stream)
{
    uint32_t low = 0, high = e->n;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (end_of(t, e->step[mid]) <= to)
            low = mid + 1;
        else
            high = mid;
    }
    for (uint32_t k = low; k-- > 0 && end_of(t, e->step[k]) >= from;)
        if (e->step[k] < i && t->step[e->step[k]].stream != stream)
            return e->step[k];
    return NONE;
}

/* Infers the dependency of a kernel that started later than its stream and its launch allow. The calls that tell its stream to
 * wait are with its launch: where that is not in the trace they are not either. */
static void infer_wait(struct maq_kineto_timeline *t, const struct ends *e, const uint32_t *waits_before, uint32_t i)
{
    int64_t start = start_of(t, i), ready = t->step[i].t;
    if (t->on[i] != NONE && end_of(t, t->on[i]) > ready)
        ready = end_of(t, t->on[i]);
    if (start - ready <= MAQ_KINETO_GAP_NS)
        return;
    int64_t from = start - MAQ_KINETO_WAIT_NS > ready ? start - MAQ_KINETO_WAIT_NS : ready;
    uint32_t y = ended_last(t, e, i, from, start, t->step[i].stream);
    if (y == NONE || (waits_before[i] == waits_before[y] && !t->step[i].unlaunched))
        return;
    t->step[i].until = y;
    t->step[y].recorded = 1;
}

/* What a call of the host waited for: what ended last while it lasted. */
static void infer_sync(struct maq_kineto_timeline *t, const struct ends *e, uint32_t i)
{
    struct maq_kineto_step *s = &t->step[i];
    if (s->device_wide || s->until != NONE || s->stream >= 0)
        return;
    s->until = ended_last(t, e, i, s->at, s->end, -1);
    if (s->until != NONE)
        t->step[s->until].recorded = 1;
}

/* One call that a cuda_sync event explains. recorder: correlation of a recording call -> step + 1. */
static void told_of(struct maq_kineto_timeline *t, struct maq_intern_map *recorder, uint32_t i,
                    const struct maq_kineto_event *e)
{
    struct maq_kineto_step *s = &t->step[i];
    int64_t by = e->u.sync.record;
    s->stream = e->stream;
    uint64_t *at = by >= 0 ? maq_intern_map_at(recorder, &t->scratch, &by, sizeof by) : NULL;
    if (!at || *at == 0)
        return;
    struct maq_kineto_step *r = &t->step[*at - 1];
    r->stream = e->u.sync.on_stream >= 0 ? e->u.sync.on_stream : r->stream;
    if (r->stream < 0 || (s->kind == MAQ_STEP_WAIT && s->stream < 0))
        return;
    s->until = (uint32_t)(*at - 1);
    r->recorded = 1;
}

/* cuda_sync events say which record of an event a call waits for, and on which stream. */
static bool told(struct maq_kineto_timeline *t)
{
    struct maq_kineto *k = t->k;
    struct maq_intern_map said = {0}, recorder = {0}; /* said: correlation of a call -> its sync event + 1 */
    for (uint32_t i = 0; i < k->n_events; i++) {
        int64_t c = k->event[i].correlation;
        uint64_t *at = k->event[i].kind == MAQ_KINETO_SYNC ? maq_intern_map_at(&said, &t->scratch, &c, sizeof c) : NULL;
        if (at)
            *at = i + UINT64_C(1);
    }
    for (uint32_t i = 0; i < t->n; i++) {
        struct maq_kineto_step *s = &t->step[i];
        if (s->kind != MAQ_STEP_RECORD && s->kind != MAQ_STEP_WAIT && s->kind != MAQ_STEP_SYNC)
            continue;
        int64_t c = k->event[s->event].correlation;
        uint64_t *at = maq_intern_map_at(s->kind == MAQ_STEP_RECORD ? &recorder : &said, &t->scratch, &c, sizeof c);
        t->failed |= !at;
        if (at && s->kind == MAQ_STEP_RECORD)
            *at = i + UINT64_C(1);
        else if (at && *at > 0)
            told_of(t, &recorder, i, &k->event[*at - 1]);
    }
    maq_intern_map_fini(&said);
    maq_intern_map_fini(&recorder);
    return !t->failed;
}

static bool find_waits(struct maq_kineto_timeline *t)
{
    struct ends e = {0};
    uint32_t *waits_before = MAQ_ARENA_NEW(&t->scratch, uint32_t, (size_t)t->n + 1);
    if (!waits_before || !sort_ends(t, &e))
        return false;
    if (t->says_waits && !told(t))
        return false;
    for (uint32_t i = 0; i < t->n;
         i++) /* of which the trace does not say what for: the event may be from before it began */
        waits_before[i + 1] = waits_before[i] + (t->step[i].kind == MAQ_STEP_WAIT && t->step[i].until == NONE);
    for (uint32_t i = 0; i < t->n; i++) {
        if (t->step[i].kind == MAQ_STEP_SYNC)
            infer_sync(t, &e, i);
        else if (t->step[i].kind == MAQ_STEP_LAUNCH)
            infer_wait(t, &e, waits_before, i);
    }
    return true;
}

bool maq_kineto_steps(struct maq_kineto_timeline *t)
{
    return add_steps(t) && find_above(t) && link_streams(t) && find_moments(t) && find_waits(t) && !t->failed;
}

void maq_kineto_timeline_fini(struct maq_kineto_timeline *t)
{
    maq_intern_map_fini(&t->call);
    maq_intern_map_fini(&t->streams);
    free(t->step);
    maq_arena_fini(&t->scratch);
}
