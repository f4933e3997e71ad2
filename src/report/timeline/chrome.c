/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chrome.c - the Trace Event Format of chrome://tracing, as one JSON object.
 *
 * Slices are complete events (ph X), flows a pair (s, f), counters C, names and order metadata (M). Times are microseconds with
 * three decimals, so that no nanosecond is lost. One event per line.
 *
 * A flow end binds to the slice that encloses its time (bp: e); it is put one nanosecond before the end of its slice, because at
 * the end the slice is over. Format: "Trace Event Format", Google, 2016 (the document behind chrome://tracing's help).
 */
#include <math.h>

#include "base/text.h"
#include "report/timeline/backend.h"

struct chrome {
    struct maq_trace_sink *sink;
    bool some; /* an event was written */
};

/* snprintf in the "C" locale to the sink; for short texts only. */
static void put(struct chrome *c, const char *fmt, ...) MAQ_PRINTF(2, 3);
static void put(struct chrome *c, const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    int n = maq__vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (n > 0)
        maq_trace_sink_write(c->sink, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

/* A JSON string (RFC 8259, section 7); what is not UTF-8 becomes U+FFFD. */
static void put_string(struct chrome *c, const char *cstr)
{
    struct maq_str s = maq_str_of(cstr);
    maq_trace_sink_puts(c->sink, "\"");
    size_t plain = 0; /* start of the run that needs no escape */
    for (size_t at = 0; at < s.len;) {
        uint32_t cp;
        size_t n = maq_utf8_next(&cp, s.ptr + at, s.len - at);
        if (cp == '"' || cp == '\\' || cp < 0x20 || cp == MAQ_UTF8_BAD) {
            maq_trace_sink_write(c->sink, s.ptr + plain, at - plain);
            if (cp == MAQ_UTF8_BAD)
                maq_trace_sink_puts(c->sink, "\\ufffd");
            else if (cp < 0x20)
                put(c, "\\u%04x", (unsigned)cp);
            else
                put(c, "\\%c", (int)cp);
            plain = at + n;
        }
        at += n;
    }
    maq_trace_sink_write(c->sink, s.ptr + plain, s.len - plain);
    maq_trace_sink_puts(c->sink, "\"");
}

static void put_double(struct chrome *c, double v)
{
    char text[32];
    if (!isfinite(v))
        maq_trace_sink_puts(c->sink, "null"); /* JSON has no infinity */
    else if (fabs(v) < 1e15 && floor(v) >= v)
        put(c, "%.0f", v); /* whole: as people write it */
    else
        maq_trace_sink_puts(c->sink, maq_format_double(text, v));
}

static void put_us(struct chrome *c, const char *key, int64_t ns)
{
    put(c, ",\"%s\":%lld.%03d", key, (long long)(ns / 1000), (int)(ns % 1000));
}

/* Opens an event up to and without the closing brace. */
static void begin_event(struct chrome *c, const char *phase, uint32_t pid)
{
    maq_trace_sink_puts(c->sink, c->some ? ",\n" : "\n");
    c->some = true;
    put(c, "{\"ph\":\"%s\",\"pid\":%lu", phase, (unsigned long)pid);
}

static void put_key_string(struct chrome *c, const char *key, const char *value)
{
    put(c, ",\"%s\":", key);
    put_string(c, value);
}

static void metadata(struct chrome *c, uint32_t pid, const uint32_t *tid, const char *kind, const char *name,
                     int32_t order)
{
    begin_event(c, "M", pid);
    if (tid != NULL)
        put(c, ",\"tid\":%lu", (unsigned long)*tid);
    put(c, ",\"name\":\"%s_name\",\"args\":{\"name\":", kind);
    put_string(c, name);
    maq_trace_sink_puts(c->sink, "}}");
    begin_event(c, "M", pid);
    if (tid != NULL)
        put(c, ",\"tid\":%lu", (unsigned long)*tid);
    put(c, ",\"name\":\"%s_sort_index\",\"args\":{\"sort_index\":%ld}}", kind, (long)order);
}

static void chrome_begin(void *state, struct maq_trace_sink *sink)
{
    struct chrome *c = state;
    c->sink = sink;
    maq_trace_sink_puts(sink, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
}

static void chrome_process(void *state, struct maq_trace_row *row)
{
    metadata(state, row->id, NULL, "process", row->name, row->order);
}

static void chrome_thread(void *state, struct maq_trace_row *row, const struct maq_trace_row *process)
{
    metadata(state, process->id, &row->id, "thread", row->name, row->order);
}

static void chrome_counter_track(void *state, struct maq_trace_row *row, const struct maq_trace_row *process)
{
    (void)state;
    (void)row;
    (void)process; /* counters are not declared */
}

static void flow(struct chrome *c, const struct maq_trace_row *thread, uint32_t pid, const char *phase, uint64_t id,
                 int64_t t_ns)
{
    begin_event(c, phase, pid);
    put(c, ",\"tid\":%lu,\"id\":%llu,\"name\":\"flow\",\"cat\":\"flow\"", (unsigned long)thread->id,
        (unsigned long long)id);
    put_us(c, "ts", t_ns);
    maq_trace_sink_puts(c->sink, phase[0] == 'f' ? ",\"bp\":\"e\"}" : "}");
}

static void chrome_slice(void *state, const struct maq_trace_row *thread, const struct maq_trace_row *process,
                         const struct maq_trace_slice *slice)
{
    struct chrome *c = state;
    begin_event(c, "X", process->id);
    put(c, ",\"tid\":%lu", (unsigned long)thread->id);
    put_us(c, "ts", slice->start_ns);
    put_us(c, "dur", slice->dur_ns);
    put_key_string(c, "name", slice->name);
    if (slice->category != NULL)
        put_key_string(c, "cat", slice->category);
    for (uint32_t i = 0; i < slice->n_args; i++) {
        const struct maq_trace_arg *arg = &slice->args[i];
        maq_trace_sink_puts(c->sink, i == 0 ? ",\"args\":{" : ",");
        put_string(c, arg->key);
        maq_trace_sink_puts(c->sink, ":");
        switch (arg->type) {
        case MAQ_TRACE_ARG_INT:
            put(c, "%lld", (long long)arg->u.i);
            break;
        case MAQ_TRACE_ARG_DOUBLE:
            put_double(c, arg->u.d);
            break;
        case MAQ_TRACE_ARG_STR:
            put_string(c, arg->u.s);
            break;
        }
    }
    maq_trace_sink_puts(c->sink, slice->n_args > 0 ? "}}" : "}");
    for (uint32_t i = 0; i < slice->n_flows_out; i++)
        flow(c, thread, process->id, "s", slice->flows_out[i], slice->start_ns);
    for (uint32_t i = 0; i < slice->n_flows_in; i++)
        flow(c, thread, process->id, "f", slice->flows_in[i], slice->start_ns + slice->dur_ns - (slice->dur_ns > 0));
}

static void chrome_counter(void *state, const struct maq_trace_row *counter, const struct maq_trace_row *process,
                           int64_t t_ns, double value)
{
    struct chrome *c = state;
    begin_event(c, "C", process->id);
    put_us(c, "ts", t_ns);
    put_key_string(c, "name", counter->name);
    maq_trace_sink_puts(c->sink, ",\"args\":{");
    put_string(c, counter->unit);
    maq_trace_sink_puts(c->sink, ":");
    put_double(c, value);
    maq_trace_sink_puts(c->sink, "}}");
}

static void chrome_end(void *state)
{
    struct chrome *c = state;
    maq_trace_sink_puts(c->sink, "\n]}\n");
}

static void chrome_fini(void *state)
{
    (void)state; /* nothing of its own */
}

const struct maq_trace_backend maq__trace_chrome = {
    .state_size = sizeof(struct chrome),
    .begin = chrome_begin,
    .process = chrome_process,
    .thread = chrome_thread,
    .counter_track = chrome_counter_track,
    .slice = chrome_slice,
    .counter = chrome_counter,
    .end = chrome_end,
    .fini = chrome_fini,
};
