/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profiler_trace.c - durations of kernels and of steps from the JSON of PyTorch's profiler, as a stream.
 *
 * The file is an object with a long array `traceEvents`, or that array alone. Every value is a call (base/json_stream.h);
 * values that are not needed take no memory. Members come in any order, so the values of an event are collected first and
 * interpreted at its closing brace: with ph "X" and cat "kernel" a run of a kernel, with cat "user_annotation" and the
 * name ProfilerStep#N a step. Times are microseconds.
 *
 * A pool is the runs of one kernel with one grid; of a collective with one number of elements ("In msg nelems") and group.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/codes.h"
#include "base/json_stream.h"
#include "base/mended.h"
#include "base/text.h"
#include "risk/codes.h"
#include "risk/fit/kernel_pools.h"
#include "risk/fit/records.h"
#include "spec/foreign_file.h"

#define MOST_TEXT 1024u
#define MOST_STEPS (1u << 24)
#define LONGEST_US 1e12

enum member { NONE, PH, CAT, NAME, TS, DUR, ARGS, GRID, ELEMENTS, COLLECTIVE, GROUP };

struct text {
    char at[MOST_TEXT];
    size_t n;
};

struct event {
    struct text ph, cat, name, collective, group, elements, grid;
    double ts, dur;
    bool has_dur;
};

struct step {
    double ts, dur;
};

struct reader {
    const char *path;
    struct maq_diag *diag;
    struct maq_kernel_pools pools;
    uint32_t depth, events_depth; /* open brackets; of the list of events, 0 = not inside */
    bool next_is_events;          /* the value after the key "traceEvents" */
    enum member member;           /* whose value comes next */
    struct event e;
    struct step *step;
    uint32_t n_steps, step_size;
    uint64_t events, kept;
    struct maq_mending mended;
    enum maq_status status;
};

static int fail(struct reader *r, enum maq_status status, const char *why)
{
    r->status = status;
    if (status == MAQ_NO_MEMORY)
        (void)maq_diag_fail(status, r->diag, MAQ_CODE_NO_MEMORY, (struct maq_span){0}, NULL, "%s: out of memory",
                            r->path);
    else
        (void)maq_diag_fail(status, r->diag, status == MAQ_LIMIT ? MAQ_CODE_RISK_LIMIT : MAQ_CODE_RISK_PROFILE,
                            (struct maq_span){0}, NULL, "%s: event %llu %s", r->path, (unsigned long long)r->events,
                            why);
    return 0;
}

static struct maq_str str_of(const struct text *t)
{
    return (struct maq_str){t->at, t->n};
}

static void keep(struct text *t, const unsigned char *s, size_t n)
{
    t->n = n < MOST_TEXT ? n : MOST_TEXT - 1;
    memcpy(t->at, s, t->n);
}

/* --- events ------------------------------------------------------------------------------------------------------------ */

static int take_step(struct reader *r)
{
    if (r->n_steps == r->step_size) {
        uint32_t size = r->step_size ? r->step_size * 2 : 256;
        struct step *more = size <= MOST_STEPS ? maq__realloc(r->step, size * sizeof *more) : NULL;
        if (!more)
            return fail(r, size > MOST_STEPS ? MAQ_LIMIT : MAQ_NO_MEMORY, "is one step too many");
        r->step = more;
        r->step_size = size;
    }
    r->step[r->n_steps++] = (struct step){r->e.ts, r->e.dur};
    return 1;
}

static int take_kernel(struct reader *r)
{
    struct event *e = &r->e;
    struct maq_kernel_words words = {str_of(&e->name), str_of(&e->collective), str_of(&e->group)};
    char key[4 * MOST_TEXT + 8];
    const struct text *parts[] = {&e->name, &e->grid, &e->elements, &e->group};
    size_t n = 0;
    for (size_t i = 0; i < MAQ_COUNT(parts); i++) {
        memcpy(key + n, parts[i]->at, parts[i]->n);
        n += parts[i]->n;
        key[n++] = '|';
    }
    for (size_t i = 0; i < n; i++)
        key[i] = key[i] == '\0' ? '?' : key[i];
    enum maq_status status = maq_kernel_pools_add(&r->pools, (struct maq_str){key, n}, &words, e->dur * 1e-6);
    return status == MAQ_OK ? 1 : fail(r, status, "is of one kernel too many");
}

static int take_event(struct reader *r)
{
    struct event *e = &r->e;
    bool kernel = maq_str_ieq(str_of(&e->cat), "kernel"), note = maq_str_is(str_of(&e->cat), "user_annotation");
    bool step = note && maq_str_starts(str_of(&e->name), "ProfilerStep#");
    r->events++;
    if (!maq_str_is(str_of(&e->ph), "X") || !(kernel || step))
        return 1;
    if (!e->has_dur || !(e->dur >= 0 && e->dur < LONGEST_US) || !(e->ts > -1e18 && e->ts < 1e18)) {
        r->status =
            maq_mend(&r->mended, MAQ_MEND_VALUE, r->events, MAQ_CODE_RISK_PROFILE,
                     "%s: event %llu has no duration, or one that is none", r->path, (unsigned long long)r->events);
        return r->status == MAQ_OK;
    }
    r->kept++;
    return !(e->dur > 0) ? 1 : step ? take_step(r) : take_kernel(r);
}

/* --- values ------------------------------------------------------------------------------------------------------------ */

static enum member member_of(const struct reader *r, struct maq_str key)
{
    static const struct {
        const char *name;
        enum member member;
        uint32_t below; /* levels below the list of events */
    } known[] = {{"ph", PH, 1},
                 {"cat", CAT, 1},
                 {"name", NAME, 1},
                 {"ts", TS, 1},
                 {"dur", DUR, 1},
                 {"args", ARGS, 1},
                 {"grid", GRID, 2},
                 {"In msg nelems", ELEMENTS, 2},
                 {"Collective name", COLLECTIVE, 2},
                 {"Process Group Description", GROUP, 2}};
    uint32_t below = r->depth - r->events_depth;
    for (size_t i = 0; i < MAQ_COUNT(known) && r->events_depth > 0; i++)
        if (known[i].below == below && maq_str_is(key, known[i].name))
            return known[i].member;
    return NONE;
}

static int on_key(void *ctx, const unsigned char *s, size_t n)
{
    struct reader *r = ctx;
    struct maq_str key = {(const char *)s, n};
    r->next_is_events = r->depth == 1 && r->events_depth == 0 && maq_str_is(key, "traceEvents");
    r->member = member_of(r, key);
    return 1;
}

static int on_text(void *ctx, const unsigned char *s, size_t n)
{
    struct reader *r = ctx;
    struct event *e = &r->e;
    struct text *where[] = {
        [PH] = &e->ph,       [CAT] = &e->cat,          [NAME] = &e->name, [COLLECTIVE] = &e->collective,
        [GROUP] = &e->group, [ELEMENTS] = &e->elements};
    if (r->member < MAQ_COUNT(where) && where[r->member])
        keep(where[r->member], s, n);
    r->member = NONE;
    return 1;
}

static int on_number(void *ctx, const char *s, size_t n)
{
    struct reader *r = ctx;
    struct event *e = &r->e;
    double value = 0;
    bool number = maq_str_to_double(&value, (struct maq_str){s, n});
    if (r->member == TS && number)
        e->ts = value;
    else if (r->member == DUR) {
        e->has_dur = number;
        e->dur = value;
    } else if (r->member == ELEMENTS)
        keep(&e->elements, (const unsigned char *)s, n);
    else if (r->member == GRID && e->grid.n + n + 1 < MOST_TEXT) { /* inside of its list: the member stays */
        memcpy(e->grid.at + e->grid.n, s, n);
        e->grid.n += n;
        e->grid.at[e->grid.n++] = ',';
        return 1;
    }
    r->member = NONE;
    return 1;
}

static int on_word(void *ctx)
{
    struct reader *r = ctx;
    r->member = NONE;
    return 1;
}

static int on_bool(void *ctx, int value)
{
    (void)value;
    return on_word(ctx);
}

static int on_map(void *ctx)
{
    struct reader *r = ctx;
    r->depth++;
    if (r->events_depth > 0 && r->depth == r->events_depth + 1) {
        struct event *e = &r->e;
        e->ph.n = e->cat.n = e->name.n = e->collective.n = e->group.n = e->elements.n = e->grid.n = 0;
        e->ts = e->dur = 0;
        e->has_dur = false;
    }
    r->member = NONE;
    r->next_is_events = false;
    return 1;
}

static int on_map_end(void *ctx)
{
    struct reader *r = ctx;
    int go_on = r->events_depth > 0 && r->depth == r->events_depth + 1 ? take_event(r) : 1;
    r->depth--;
    r->member = NONE;
    return go_on;
}

static int on_list(void *ctx)
{
    struct reader *r = ctx;
    r->depth++;
    if (r->next_is_events || (r->depth == 1 && r->events_depth == 0))
        r->events_depth = r->depth;
    if (r->member != GRID)
        r->member = NONE;
    r->next_is_events = false;
    return 1;
}

static int on_list_end(void *ctx)
{
    struct reader *r = ctx;
    if (r->depth == r->events_depth)
        r->events_depth = 0;
    r->depth--;
    r->member = NONE;
    return 1;
}

static const yajl_callbacks callbacks = {
    .yajl_null = on_word,
    .yajl_boolean = on_bool,
    .yajl_number = on_number,
    .yajl_string = on_text,
    .yajl_start_map = on_map,
    .yajl_map_key = on_key,
    .yajl_end_map = on_map_end,
    .yajl_start_array = on_list,
    .yajl_end_array = on_list_end,
};

/* --- the file ---------------------------------------------------------------------------------------------------------- */

/* What the end of a stream means; r->status says why a call ended it. */
static enum maq_status conclude(struct reader *r, const struct maq_json_stream *stream)
{
    static const char again[] = "a trace that was cut off can be recorded again; the profiler closes it when it stops";
    const struct maq_span nowhere = {0};
    switch (stream->end) {
    case MAQ_JSON_WHOLE:
        return MAQ_OK;
    case MAQ_JSON_STOPPED:
        return r->status;
    case MAQ_JSON_FAULTY:
        return maq_diag_fail(MAQ_BAD_INPUT, r->diag, MAQ_CODE_RISK_PROFILE, nowhere, again,
                             "%s: not the JSON of a profiler: byte %llu: %s", r->path, (unsigned long long)stream->at,
                             stream->why);
    case MAQ_JSON_CUT_OFF:
        if (r->kept > 0)
            return maq_mend(&r->mended, MAQ_MEND_END, r->events, MAQ_CODE_RISK_PROFILE, "%s ends in the middle",
                            r->path);
        return maq_diag_fail(MAQ_BAD_INPUT, r->diag, MAQ_CODE_RISK_PROFILE, nowhere, again, "%s ends in the middle",
                             r->path);
    case MAQ_JSON_ENDLESS:
        return maq_diag_fail(MAQ_LIMIT, r->diag, MAQ_CODE_RISK_LIMIT, nowhere, NULL,
                             "%s: a text at byte %llu does not end within %u MiB", r->path,
                             (unsigned long long)stream->at, MAQ_JSON_LONGEST_TEXT >> 20);
    case MAQ_JSON_NOT_OPENED:
        return maq_diag_fail(MAQ_IO, r->diag, MAQ_CODE_CANNOT_READ, nowhere, NULL, "%s: cannot be opened", r->path);
    case MAQ_JSON_UNREADABLE:
        return maq_diag_fail(MAQ_IO, r->diag, MAQ_CODE_RISK_PROFILE, nowhere, NULL, "%s: cannot be read, or is damaged",
                             r->path);
    case MAQ_JSON_NO_MEMORY:
        break;
    }
    return MAQ_NO_MEMORY;
}

static int by_start(const void *pa, const void *pb)
{
    const struct step *a = pa, *b = pb;
    if (a->ts < b->ts || b->ts < a->ts)
        return a->ts < b->ts ? -1 : 1;
    return (a->dur > b->dur) - (a->dur < b->dur);
}

static enum maq_status finish(struct maq_risk_record *out, double **steps_s, uint32_t *n_steps, struct reader *r,
                              struct maq_arena *arena)
{
    const struct maq_foreign *f = r->pools.n == 0 && r->n_steps == 0 ? maq_foreign_file(r->path) : NULL;
    if (f && !f->is_profile)
        return maq_foreign_refuse(f, r->path, "a trace of a profiler", (struct maq_span){0}, r->diag);
    if (r->pools.n == 0 && r->n_steps == 0)
        return maq_diag_fail(MAQ_BAD_INPUT, r->diag, MAQ_CODE_RISK_PROFILE, (struct maq_span){0},
                             "record with activities=[ProfilerActivity.CUDA], and call prof.step() in each step",
                             "%s: neither kernels nor steps (ProfilerStep#N) among %llu events", r->path,
                             (unsigned long long)r->events);
    *steps_s = MAQ_ARENA_NEW(arena, double, r->n_steps + 1);
    if (!*steps_s)
        return MAQ_NO_MEMORY;
    if (r->n_steps > 0)
        qsort(r->step, r->n_steps, sizeof *r->step, by_start);
    for (uint32_t i = 0; i < r->n_steps; i++)
        (*steps_s)[i] = r->step[i].dur * 1e-6;
    *n_steps = r->n_steps;
    return maq_kernel_pools_sum(out, &r->pools, arena);
}

enum maq_status maq_trace_read(struct maq_risk_record *out, double **steps_s, uint32_t *n_steps, const char *path,
                               struct maq_arena *arena, struct maq_diag *diag)
{
    struct reader *r = MAQ_ARENA_NEW(arena, struct reader, 1);
    struct maq_json_stream stream;
    if (!r)
        return MAQ_NO_MEMORY;
    r->path = path;
    r->diag = diag;
    maq_kernel_pools_init(&r->pools, arena);
    maq_mending_begin(&r->mended, path, "event", "events", diag);
    (void)maq_json_stream_file(&stream, path, &callbacks, r);
    enum maq_status status = conclude(r, &stream);
    if (status == MAQ_OK)
        status = maq_mending_end(&r->mended, r->kept);
    if (status == MAQ_OK)
        status = finish(out, steps_s, n_steps, r, arena);
    free(r->step);
    maq_kernel_pools_fini(&r->pools);
    return status;
}

/* --- what a file is ---------------------------------------------------------------------------------------------------- */

enum maq_record_kind maq_record_kind(const char *path)
{
    unsigned char head[64];
    gzFile file = gzopen(path, "rb");
    int n = file ? gzread(file, head, sizeof head) : 0;
    if (file)
        (void)gzclose(file);
    if (n >= 15 && memcmp(head, "SQLite format 3", 15) == 0)
        return MAQ_RECORD_KERNELS;
    for (int i = 0; i < n; i++)
        if (!strchr(" \t\r\n\xef\xbb\xbf", head[i]) || head[i] == '\0')
            return head[i] == '{' || head[i] == '[' ? MAQ_RECORD_TRACE : MAQ_RECORD_TABLE;
    size_t len = strlen(path);
    return len > 3 && strcmp(path + len - 3, ".db") == 0 ? MAQ_RECORD_KERNELS : MAQ_RECORD_TABLE;
}
