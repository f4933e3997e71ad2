/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.c - the rows of a trace and the order of its slices; the encoding is the backend's.
 *
 * Per thread a stack holds the slices that are still open at the time the caller has reached. A new slice first closes
 * those that ended by its start, then must lie inside the one that is left. So a backend sees begins and ends of each thread
 * in order of time, whatever the order between threads.
 */
#include "report/timeline/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/check.h"
#include "maquette/path_hint.h"
#include "report/timeline/backend.h"
#include "report/timeline/codes.h"

#define MAX_ROWS ((uint32_t)1 << 26)
#define MAX_DEPTH 1024u

struct open_slice {
    int64_t end_ns;
    uint32_t n_flows_in;
};

struct thread_state {
    struct open_slice *stack;
    uint64_t *flows; /* flows_in of the open slices, outermost first */
    uint32_t depth, stack_size, n_flows, flows_size;
    int64_t last_start_ns;
};

struct row_list {
    struct maq_trace_row *rows;
    uint32_t count, size;
};

struct maq_trace_writer {
    struct maq_trace_sink sink;
    const struct maq_trace_backend *backend;
    void *state;
    struct maq_arena names;
    struct row_list processes, threads, counters;
    struct thread_state *thread_states; /* [threads.size] */
    const char *target;                 /* for messages */
    enum maq_status status;             /* faults of the caller; those of the output are the sink's */
    const char *fault;                  /* what the caller did, in names */
};

static const struct maq_span nowhere;

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && memcmp(s + n - m, end, m) == 0;
}

enum maq_trace_format maq_trace_format_of(const char *path)
{
    return ends_with(path, ".json") || ends_with(path, ".json.gz") ? MAQ_TRACE_CHROME : MAQ_TRACE_PERFETTO;
}

/* Makes room for one more element of a growing array. */
static bool reserve(void **array, uint32_t count, uint32_t *size, size_t element, uint32_t max)
{
    if (count < *size)
        return true;
    uint32_t wanted = *size ? *size * 2 : 8;
    if (count >= max)
        return false;
    void *grown = maq__realloc(*array, wanted * element);
    if (grown == NULL)
        return false;
    *array = grown;
    *size = wanted;
    return true;
}

static enum maq_status open_writer(struct maq_trace_writer **out, enum maq_trace_format format, FILE *stream,
                                   bool owned, struct maq_buf *buf, bool gzip, const char *target,
                                   struct maq_diag *diag)
{
    const struct maq_trace_backend *backend = format == MAQ_TRACE_CHROME ? &maq__trace_chrome : &maq__trace_perfetto;
    struct maq_trace_writer *w = maq__calloc(sizeof *w);
    void *state = maq__calloc(backend->state_size);
    if (w == NULL || state == NULL || maq_trace_sink_init(&w->sink, stream, owned, buf, gzip) != MAQ_OK)
        goto no_memory;
    maq_arena_init(&w->names, 0);
    w->target = maq_arena_strdup(&w->names, maq_str_of(target));
    if (w->target == NULL)
        goto no_memory_names;
    w->backend = backend;
    w->state = state;
    backend->begin(state, &w->sink);
    *out = w;
    return MAQ_OK;

no_memory_names:
    w->sink.owned = false; /* closed below, in one place */
    (void)maq_trace_sink_fini(&w->sink);
    maq_arena_fini(&w->names);
no_memory:
    free(state);
    free(w);
    if (owned)
        (void)fclose(stream); /* nothing was written */
    return maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_TRACE_OPEN, nowhere, NULL, "no memory to write the trace '%s'",
                         target);
}

enum maq_status maq_trace_open(struct maq_trace_writer **out, enum maq_trace_format format, const char *path,
                               struct maq_diag *diag)
{
    FILE *stream = fopen(path, "wb");
    if (stream == NULL)
        return maq_diag_fail(MAQ_IO, diag, MAQ_CODE_TRACE_OPEN, nowhere, maq_create_hint(errno),
                             "cannot create the trace '%s': %s", path, strerror(errno));
    return open_writer(out, format, stream, true, NULL, ends_with(path, ".gz"), path, diag);
}

enum maq_status maq_trace_open_stream(struct maq_trace_writer **out, enum maq_trace_format format, FILE *stream,
                                      bool gzip, struct maq_diag *diag)
{
    return open_writer(out, format, stream, false, NULL, gzip, "(stream)", diag);
}

enum maq_status maq_trace_open_memory(struct maq_trace_writer **out, enum maq_trace_format format, struct maq_buf *buf,
                                      bool gzip, struct maq_diag *diag)
{
    return open_writer(out, format, NULL, false, buf, gzip, "(memory)", diag);
}

enum maq_status maq_trace_status(const struct maq_trace_writer *w)
{
    return w->status != MAQ_OK ? w->status : w->sink.status;
}

/* Keeps the first fault of the caller. */
static void fail(struct maq_trace_writer *w, enum maq_status status, const char *fault)
{
    if (maq_trace_status(w) == MAQ_OK) {
        w->status = status;
        w->fault = fault;
    }
}

/* Appends a row; UINT32_MAX when that cannot be. */
static uint32_t add_row(struct maq_trace_writer *w, struct row_list *list, struct maq_trace_row row)
{
    if (maq_trace_status(w) != MAQ_OK)
        return UINT32_MAX;
    row.name = maq_arena_strdup(&w->names, maq_str_of(row.name));
    row.unit = maq_arena_strdup(&w->names, maq_str_of(row.unit));
    void *rows = list->rows;
    bool room = reserve(&rows, list->count, &list->size, sizeof row, MAX_ROWS);
    list->rows = rows;
    if (row.name == NULL || row.unit == NULL || !room) {
        fail(w, MAQ_NO_MEMORY, "no memory for another row");
        return UINT32_MAX;
    }
    row.index = list->count;
    list->rows[list->count] = row;
    return list->count++;
}

uint32_t maq_trace_process(struct maq_trace_writer *w, uint32_t id, const char *name, int32_t order)
{
    struct row_list *list = &w->processes;
    uint32_t handle =
        add_row(w, list, (struct maq_trace_row){.process = list->count, .id = id, .order = order, .name = name});
    if (handle != UINT32_MAX)
        w->backend->process(w->state, &list->rows[handle]);
    return handle;
}

uint32_t maq_trace_thread(struct maq_trace_writer *w, uint32_t process, uint32_t id, const char *name, int32_t order)
{
    if (maq_trace_status(w) != MAQ_OK)
        return UINT32_MAX;
    MAQ_ASSERT(process < w->processes.count);
    struct row_list *list = &w->threads;
    uint32_t states_size = list->size;
    uint32_t handle =
        add_row(w, list, (struct maq_trace_row){.process = process, .id = id, .order = order, .name = name});
    if (handle == UINT32_MAX)
        return UINT32_MAX;
    if (list->size != states_size) {
        struct thread_state *grown = maq__realloc(w->thread_states, list->size * sizeof *grown);
        if (grown == NULL) {
            list->count--;
            list->size = states_size;
            fail(w, MAQ_NO_MEMORY, "no memory for another row");
            return UINT32_MAX;
        }
        w->thread_states = grown;
    }
    w->thread_states[handle] = (struct thread_state){0};
    w->backend->thread(w->state, &list->rows[handle], &w->processes.rows[process]);
    return handle;
}

uint32_t maq_trace_counter_track(struct maq_trace_writer *w, uint32_t process, const char *name, const char *unit)
{
    if (maq_trace_status(w) != MAQ_OK)
        return UINT32_MAX;
    MAQ_ASSERT(process < w->processes.count);
    struct row_list *list = &w->counters;
    uint32_t handle = add_row(w, list, (struct maq_trace_row){.process = process, .name = name, .unit = unit});
    if (handle != UINT32_MAX)
        w->backend->counter_track(w->state, &list->rows[handle], &w->processes.rows[process]);
    return handle;
}

/* Closes the slices of a thread that ended by t. */
static void close_until(struct maq_trace_writer *w, uint32_t thread, int64_t t_ns)
{
    struct thread_state *state = &w->thread_states[thread];
    while (state->depth > 0 && state->stack[state->depth - 1].end_ns <= t_ns) {
        const struct open_slice *top = &state->stack[--state->depth];
        state->n_flows -= top->n_flows_in;
        const uint64_t *flows_in = top->n_flows_in > 0 ? state->flows + state->n_flows : NULL;
        if (w->backend->slice_end != NULL)
            w->backend->slice_end(w->state, &w->threads.rows[thread], top->end_ns, flows_in, top->n_flows_in);
    }
}

static bool push(struct thread_state *state, const struct maq_trace_slice *slice)
{
    void *stack = state->stack, *flows = state->flows;
    bool room = reserve(&stack, state->depth, &state->stack_size, sizeof *state->stack, MAX_DEPTH);
    state->stack = stack;
    for (uint32_t i = 0; room && i < slice->n_flows_in; i++) {
        room = reserve(&flows, state->n_flows + i, &state->flows_size, sizeof *state->flows, UINT32_MAX / 2);
        state->flows = flows;
        if (room)
            state->flows[state->n_flows + i] = slice->flows_in[i];
    }
    if (!room)
        return false;
    state->stack[state->depth++] = (struct open_slice){slice->start_ns + slice->dur_ns, slice->n_flows_in};
    state->n_flows += slice->n_flows_in;
    return true;
}

void maq_trace_slice(struct maq_trace_writer *w, uint32_t thread, const struct maq_trace_slice *slice)
{
    if (maq_trace_status(w) != MAQ_OK)
        return;
    MAQ_ASSERT(thread < w->threads.count && slice->name != NULL);
    struct thread_state *state = &w->thread_states[thread];
    if (slice->start_ns < 0 || slice->dur_ns < 0 || slice->dur_ns > INT64_MAX - slice->start_ns) {
        fail(w, MAQ_BAD_INPUT, "a slice has a negative start or duration");
        return;
    }
    if (slice->start_ns < state->last_start_ns) {
        fail(w, MAQ_BAD_INPUT, "slices of a thread are not in order of their start");
        return;
    }
    state->last_start_ns = slice->start_ns;
    close_until(w, thread, slice->start_ns);
    if (state->depth > 0 && slice->start_ns + slice->dur_ns > state->stack[state->depth - 1].end_ns) {
        fail(w, MAQ_BAD_INPUT, "slices of a thread overlap without one lying inside the other");
        return;
    }
    if (!push(state, slice)) {
        fail(w, state->depth >= MAX_DEPTH ? MAQ_LIMIT : MAQ_NO_MEMORY, "slices are nested too deeply");
        return;
    }
    w->backend->slice(w->state, &w->threads.rows[thread], &w->processes.rows[w->threads.rows[thread].process], slice);
}

void maq_trace_counter(struct maq_trace_writer *w, uint32_t counter, int64_t t_ns, double value)
{
    if (maq_trace_status(w) != MAQ_OK)
        return;
    MAQ_ASSERT(counter < w->counters.count);
    if (t_ns < 0) {
        fail(w, MAQ_BAD_INPUT, "a counter has a value at a negative time");
        return;
    }
    const struct maq_trace_row *row = &w->counters.rows[counter];
    w->backend->counter(w->state, row, &w->processes.rows[row->process], t_ns, value);
}

enum maq_status maq_trace_close(struct maq_trace_writer *w, struct maq_diag *diag)
{
    if (w == NULL)
        return MAQ_OK;
    for (uint32_t i = 0; i < w->threads.count; i++) {
        close_until(w, i, INT64_MAX);
        free(w->thread_states[i].stack);
        free(w->thread_states[i].flows);
    }
    w->backend->end(w->state);
    w->backend->fini(w->state);
    enum maq_status status = w->status;
    enum maq_status output = maq_trace_sink_fini(&w->sink);
    if (status != MAQ_OK) {
        (void)maq_diag_fail(status, diag, MAQ_CODE_TRACE_ORDER, nowhere, NULL, "the trace '%s' is incomplete: %s",
                            w->target, w->fault);
    } else if (output != MAQ_OK) {
        status = maq_diag_fail(output, diag, MAQ_CODE_TRACE_WRITE, nowhere,
                               output == MAQ_IO ? "is the disk full?" : NULL, "the trace '%s' is incomplete: %s",
                               w->target, w->sink.error ? strerror(w->sink.error) : maq_status_text(output));
    }
    free(w->state);
    free(w->thread_states);
    free(w->processes.rows);
    free(w->threads.rows);
    free(w->counters.rows);
    maq_arena_fini(&w->names);
    free(w);
    return status;
}
