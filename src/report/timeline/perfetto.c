/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfetto.c - Perfetto's protobuf traces: Trace { repeated TracePacket packet = 1 } with TrackEvent packets.
 *
 * All packets belong to one sequence, whose first packet clears the incremental state. Category, event and annotation names are
 * interned: the packet that uses a string first also defines its number. Begin and end of a slice are packets of their own;
 * readers sort packets by time and keep the file's order among equal times, which is why the writer hands us ends in order.
 *
 * Flows: the id stands in the begin packet of the slice where the arrow starts and in the end packet of the slice where it
 * ends. Readers take the earlier event as the source, and a receive usually begins before its send.
 *
 * Order of rows: newer viewers follow process_ordering/thread_ordering of the root track (uuid 0) and sibling_order_rank; older
 * ones legacy_sort_index. Perfetto takes process 0 for the idle task and wants thread ids unique in the whole trace, so the ids
 * written are PID_BASE + id and TID_BASE + the running number of the thread.
 *
 * Field numbers: github.com/google/perfetto, protos/perfetto/trace/ (trace_packet, track_event/{track_event,track_descriptor,
 * process_descriptor,thread_descriptor,counter_descriptor,debug_annotation}, interned_data/interned_data).
 */
#include "base/check.h"
#include "base/protobuf.h"
#include "base/text.h"
#include "report/timeline/backend.h"
#include "report/timeline/intern.h"

#define PID_BASE 1000000
#define TID_BASE 2000000
#define SEQUENCE_ID 1
#define MAX_PACKET_BYTES ((size_t)16 * 1024 * 1024)

enum { TRACE_PACKET = 1 };
enum {
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE_ID = 10,
    PACKET_TRACK_EVENT = 11,
    PACKET_INTERNED_DATA = 12,
    PACKET_SEQUENCE_FLAGS = 13,
    PACKET_TRACK_DESCRIPTOR = 60,
};
enum { FLAG_STATE_CLEARED = 1, FLAG_NEEDS_STATE = 2 };
enum {
    INTERNED_CATEGORIES = 1,
    INTERNED_EVENT_NAMES = 2,
    INTERNED_ANNOTATION_NAMES = 3,
    INTERNED_IID = 1,
    INTERNED_NAME = 2
};
enum {
    TRACK_UUID = 1,
    TRACK_NAME = 2,
    TRACK_PROCESS = 3,
    TRACK_THREAD = 4,
    TRACK_PARENT = 5,
    TRACK_COUNTER = 8,
    TRACK_SIBLING_RANK = 12,
    TRACK_PROCESS_ORDERING = 19,
    TRACK_THREAD_ORDERING = 20,
};
enum { ORDERING_EXPLICIT = 1 };
enum { PROCESS_PID = 1, PROCESS_SORT_INDEX = 3, PROCESS_NAME = 6 };
enum { THREAD_PID = 1, THREAD_TID = 2, THREAD_SORT_INDEX = 3, THREAD_NAME = 5 };
enum {
    COUNTER_UNIT = 3,
    COUNTER_UNIT_NAME = 6,
    COUNTER_UNIT_TIME_NS = 1,
    COUNTER_UNIT_COUNT = 2,
    COUNTER_UNIT_BYTES = 3
};
enum {
    EVENT_CATEGORY_IIDS = 3,
    EVENT_ANNOTATIONS = 4,
    EVENT_TYPE = 9,
    EVENT_NAME_IID = 10,
    EVENT_TRACK = 11,
    EVENT_CATEGORIES = 22,
    EVENT_NAME = 23,
    EVENT_DOUBLE_VALUE = 44,
    EVENT_FLOWS = 47,
    EVENT_TERMINATING_FLOWS = 48,
};
enum { TYPE_SLICE_BEGIN = 1, TYPE_SLICE_END = 2, TYPE_COUNTER = 4 };
enum {
    ANNOTATION_NAME_IID = 1,
    ANNOTATION_INT = 4,
    ANNOTATION_DOUBLE = 5,
    ANNOTATION_STRING = 6,
    ANNOTATION_NAME = 10
};

struct perfetto {
    struct maq_trace_sink *sink;
    struct maq_trace_intern categories, names, keys;
    /* Parts of the packet in the making. */
    struct maq_buf packet, body, interned, part, text;
    uint64_t next_track;
    uint32_t flags; /* of the next packet */
};

static void begin_part(struct maq_buf *b)
{
    b->len = 0;
}

/* s with everything that is not UTF-8 replaced; valid until the next call. */
static struct maq_str clean(struct perfetto *p, const char *cstr)
{
    static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */
    struct maq_str s = maq_str_of(cstr);
    size_t at = 0, bad = 0;
    for (uint32_t cp; at < s.len; at += maq_utf8_next(&cp, s.ptr + at, s.len - at)) {
        (void)maq_utf8_next(&cp, s.ptr + at, s.len - at);
        bad += cp == MAQ_UTF8_BAD;
    }
    if (bad == 0)
        return s;
    begin_part(&p->text);
    for (at = 0; at < s.len;) {
        uint32_t cp;
        size_t n = maq_utf8_next(&cp, s.ptr + at, s.len - at);
        if (cp == MAQ_UTF8_BAD)
            maq_buf_adds(&p->text, replacement);
        else
            maq_buf_add(&p->text, s.ptr + at, n);
        at += n;
    }
    return (struct maq_str){p->text.ptr, p->text.len};
}

static void put_string(struct perfetto *p, struct maq_buf *b, uint32_t field, const char *cstr)
{
    struct maq_str s = clean(p, cstr);
    maq_pb_bytes(b, field, s.ptr, s.len);
}

/* Field `iid_field` with the number of the string, defined now if it is new, or `text_field` with the string itself. */
static void put_interned(struct perfetto *p, struct maq_buf *b, struct maq_trace_intern *table, uint32_t table_field,
                         uint32_t iid_field, uint32_t text_field, const char *cstr)
{
    struct maq_str s = clean(p, cstr);
    bool fresh;
    uint32_t iid = maq_trace_intern_get(table, s, &fresh);
    if (iid == 0) {
        maq_pb_bytes(b, text_field, s.ptr, s.len);
        return;
    }
    maq_pb_uint(b, iid_field, iid);
    if (fresh) {
        struct maq_buf entry;
        maq_buf_init(&entry, MAX_PACKET_BYTES);
        maq_pb_uint(&entry, INTERNED_IID, iid);
        maq_pb_bytes(&entry, INTERNED_NAME, s.ptr, s.len);
        maq_pb_message(&p->interned, table_field, &entry);
        p->interned.failed |= entry.failed;
        maq_buf_fini(&entry);
    }
}

static void begin_packet(struct perfetto *p)
{
    begin_part(&p->packet);
    begin_part(&p->body);
    begin_part(&p->interned);
    begin_part(&p->part);
}

/* Writes the packet whose payload (field `payload`) is in p->body; t_ns < 0: no timestamp. */
static void end_packet(struct perfetto *p, uint32_t payload, int64_t t_ns)
{
    if (t_ns >= 0)
        maq_pb_uint(&p->packet, PACKET_TIMESTAMP, (uint64_t)t_ns);
    maq_pb_uint(&p->packet, PACKET_SEQUENCE_ID, SEQUENCE_ID);
    maq_pb_message(&p->packet, payload, &p->body);
    if (p->interned.len > 0)
        maq_pb_message(&p->packet, PACKET_INTERNED_DATA, &p->interned);
    maq_pb_uint(&p->packet, PACKET_SEQUENCE_FLAGS, p->flags);
    p->flags = FLAG_NEEDS_STATE;
    if (p->packet.failed || p->body.failed || p->interned.failed || p->part.failed || p->text.failed) {
        maq_trace_sink_fail(p->sink, MAQ_NO_MEMORY);
        return;
    }
    /* `part` is free again: key and length of the packet. */
    begin_part(&p->part);
    maq_pb_varint(&p->part, (uint64_t)TRACE_PACKET << 3 | MAQ_PB_BYTES);
    maq_pb_varint(&p->part, p->packet.len);
    maq_trace_sink_write(p->sink, p->part.ptr, p->part.len);
    maq_trace_sink_write(p->sink, p->packet.ptr, p->packet.len);
}

static void perfetto_begin(void *state, struct maq_trace_sink *sink)
{
    struct perfetto *p = state;
    p->sink = sink;
    p->next_track = 1;
    p->flags = FLAG_STATE_CLEARED;
    maq_trace_intern_init(&p->categories);
    maq_trace_intern_init(&p->names);
    maq_trace_intern_init(&p->keys);
    struct maq_buf *parts[] = {&p->packet, &p->body, &p->interned, &p->part, &p->text};
    for (size_t i = 0; i < MAQ_COUNT(parts); i++)
        maq_buf_init(parts[i], MAX_PACKET_BYTES);
    begin_packet(p);
    maq_pb_uint(&p->body, TRACK_UUID, 0);
    maq_pb_uint(&p->body, TRACK_PROCESS_ORDERING, ORDERING_EXPLICIT);
    maq_pb_uint(&p->body, TRACK_THREAD_ORDERING, ORDERING_EXPLICIT);
    end_packet(p, PACKET_TRACK_DESCRIPTOR, -1);
}

static void perfetto_process(void *state, struct maq_trace_row *row)
{
    struct perfetto *p = state;
    row->track = p->next_track++;
    begin_packet(p);
    maq_pb_int(&p->part, PROCESS_PID, PID_BASE + (int64_t)row->id);
    maq_pb_int(&p->part, PROCESS_SORT_INDEX, row->order);
    put_string(p, &p->part, PROCESS_NAME, row->name);
    maq_pb_uint(&p->body, TRACK_UUID, row->track);
    maq_pb_message(&p->body, TRACK_PROCESS, &p->part);
    maq_pb_int(&p->body, TRACK_SIBLING_RANK, row->order);
    end_packet(p, PACKET_TRACK_DESCRIPTOR, -1);
}

static void perfetto_thread(void *state, struct maq_trace_row *row, const struct maq_trace_row *process)
{
    struct perfetto *p = state;
    row->track = p->next_track++;
    begin_packet(p);
    maq_pb_int(&p->part, THREAD_PID, PID_BASE + (int64_t)process->id);
    maq_pb_int(&p->part, THREAD_TID, TID_BASE + (int64_t)row->index);
    maq_pb_int(&p->part, THREAD_SORT_INDEX, row->order);
    put_string(p, &p->part, THREAD_NAME, row->name);
    maq_pb_uint(&p->body, TRACK_UUID, row->track);
    maq_pb_message(&p->body, TRACK_THREAD, &p->part);
    maq_pb_uint(&p->body, TRACK_PARENT, process->track);
    maq_pb_int(&p->body, TRACK_SIBLING_RANK, row->order);
    end_packet(p, PACKET_TRACK_DESCRIPTOR, -1);
}

static void perfetto_counter_track(void *state, struct maq_trace_row *row, const struct maq_trace_row *process)
{
    struct perfetto *p = state;
    row->track = p->next_track++;
    begin_packet(p);
    struct maq_str unit = maq_str_of(row->unit);
    if (maq_str_is(unit, "bytes"))
        maq_pb_uint(&p->part, COUNTER_UNIT, COUNTER_UNIT_BYTES);
    else if (maq_str_is(unit, "ns"))
        maq_pb_uint(&p->part, COUNTER_UNIT, COUNTER_UNIT_TIME_NS);
    else if (maq_str_is(unit, "count"))
        maq_pb_uint(&p->part, COUNTER_UNIT, COUNTER_UNIT_COUNT);
    else
        put_string(p, &p->part, COUNTER_UNIT_NAME, row->unit);
    maq_pb_uint(&p->body, TRACK_UUID, row->track);
    put_string(p, &p->body, TRACK_NAME, row->name);
    maq_pb_uint(&p->body, TRACK_PARENT, process->track);
    maq_pb_message(&p->body, TRACK_COUNTER, &p->part);
    end_packet(p, PACKET_TRACK_DESCRIPTOR, -1);
}

static void put_annotation(struct perfetto *p, const struct maq_trace_arg *arg)
{
    begin_part(&p->part);
    put_interned(p, &p->part, &p->keys, INTERNED_ANNOTATION_NAMES, ANNOTATION_NAME_IID, ANNOTATION_NAME, arg->key);
    switch (arg->type) {
    case MAQ_TRACE_ARG_INT:
        maq_pb_int(&p->part, ANNOTATION_INT, arg->u.i);
        break;
    case MAQ_TRACE_ARG_DOUBLE:
        maq_pb_double(&p->part, ANNOTATION_DOUBLE, arg->u.d);
        break;
    case MAQ_TRACE_ARG_STR:
        put_string(p, &p->part, ANNOTATION_STRING, arg->u.s);
        break;
    }
    maq_pb_message(&p->body, EVENT_ANNOTATIONS, &p->part);
}

static void perfetto_slice(void *state, const struct maq_trace_row *thread, const struct maq_trace_row *process,
                           const struct maq_trace_slice *slice)
{
    struct perfetto *p = state;
    (void)process;
    begin_packet(p);
    maq_pb_uint(&p->body, EVENT_TYPE, TYPE_SLICE_BEGIN);
    maq_pb_uint(&p->body, EVENT_TRACK, thread->track);
    if (slice->category != NULL)
        put_interned(p, &p->body, &p->categories, INTERNED_CATEGORIES, EVENT_CATEGORY_IIDS, EVENT_CATEGORIES,
                     slice->category);
    put_interned(p, &p->body, &p->names, INTERNED_EVENT_NAMES, EVENT_NAME_IID, EVENT_NAME, slice->name);
    for (uint32_t i = 0; i < slice->n_args; i++)
        put_annotation(p, &slice->args[i]);
    for (uint32_t i = 0; i < slice->n_flows_out; i++)
        maq_pb_fixed64(&p->body, EVENT_FLOWS, slice->flows_out[i]);
    end_packet(p, PACKET_TRACK_EVENT, slice->start_ns);
}

static void perfetto_slice_end(void *state, const struct maq_trace_row *thread, int64_t end_ns,
                               const uint64_t *flows_in, uint32_t n_flows_in)
{
    struct perfetto *p = state;
    begin_packet(p);
    maq_pb_uint(&p->body, EVENT_TYPE, TYPE_SLICE_END);
    maq_pb_uint(&p->body, EVENT_TRACK, thread->track);
    for (uint32_t i = 0; i < n_flows_in; i++)
        maq_pb_fixed64(&p->body, EVENT_TERMINATING_FLOWS, flows_in[i]);
    end_packet(p, PACKET_TRACK_EVENT, end_ns);
}

static void perfetto_counter(void *state, const struct maq_trace_row *counter, const struct maq_trace_row *process,
                             int64_t t_ns, double value)
{
    struct perfetto *p = state;
    (void)process;
    begin_packet(p);
    maq_pb_uint(&p->body, EVENT_TYPE, TYPE_COUNTER);
    maq_pb_uint(&p->body, EVENT_TRACK, counter->track);
    maq_pb_double(&p->body, EVENT_DOUBLE_VALUE, value);
    end_packet(p, PACKET_TRACK_EVENT, t_ns);
}

static void perfetto_end(void *state)
{
    (void)state; /* a trace is a row of packets: nothing closes it */
}

static void perfetto_fini(void *state)
{
    struct perfetto *p = state;
    maq_trace_intern_fini(&p->categories);
    maq_trace_intern_fini(&p->names);
    maq_trace_intern_fini(&p->keys);
    maq_buf_fini(&p->packet);
    maq_buf_fini(&p->body);
    maq_buf_fini(&p->interned);
    maq_buf_fini(&p->part);
    maq_buf_fini(&p->text);
}

const struct maq_trace_backend maq__trace_perfetto = {
    .state_size = sizeof(struct perfetto),
    .begin = perfetto_begin,
    .process = perfetto_process,
    .thread = perfetto_thread,
    .counter_track = perfetto_counter_track,
    .slice = perfetto_slice,
    .slice_end = perfetto_slice_end,
    .counter = perfetto_counter,
    .end = perfetto_end,
    .fini = perfetto_fini,
};
