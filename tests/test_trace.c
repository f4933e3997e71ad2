/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_trace.c - the trace writers, read back by decoders that share nothing with them: a small protobuf reader below, jansson
 * for JSON, zlib for .gz. tests/test_trace_decode.py looks at the same trace with protoc and, where it is installed, with
 * Perfetto's trace processor.
 */
#include <inttypes.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "report/timeline/intern.h"
#include "report/timeline/writer.h"

/* --- the trace of most tests ----------------------------------------------------------------------------------------- */

/* Two ranks; rank 0 sends to rank 1, whose receive begins before the send; a counter; nesting; awkward names. */
static void write_sample(struct maq_trace_writer *w)
{
    uint32_t rank0 = maq_trace_process(w, 0, "rank 0", 0);
    uint32_t rank1 = maq_trace_process(w, 1, "rank \"1\"\n\xff", 1);
    uint32_t compute = maq_trace_thread(w, rank0, 1, "compute", 0);
    uint32_t comm = maq_trace_thread(w, rank0, 2, "communication", -5);
    uint32_t compute1 = maq_trace_thread(w, rank1, 1, "compute", 0);
    uint32_t memory = maq_trace_counter_track(w, rank0, "memory", "bytes");
    uint32_t power = maq_trace_counter_track(w, rank1, "power", "W");

    const struct maq_trace_arg args[] = {MAQ_TRACE_INT("m", -8192), MAQ_TRACE_DOUBLE("tflops", 612.5),
                                         MAQ_TRACE_STR("dtype", "bf16 \xc3\xa9\x01")};
    const uint64_t flow[] = {77};
    maq_trace_slice(w, compute,
                    &(struct maq_trace_slice){.start_ns = 0, .dur_ns = 1000, .name = "layer", .category = "fwd"});
    maq_trace_slice(w, compute,
                    &(struct maq_trace_slice){
                        .start_ns = 0, .dur_ns = 400, .name = "gemm", .category = "fwd", .args = args, .n_args = 3});
    maq_trace_slice(
        w, compute1,
        &(struct maq_trace_slice){.start_ns = 100, .dur_ns = 1401, .name = "recv", .flows_in = flow, .n_flows_in = 1});
    maq_trace_slice(w, compute, &(struct maq_trace_slice){.start_ns = 400, .dur_ns = 600, .name = "attention"});
    maq_trace_slice(w, compute, &(struct maq_trace_slice){.start_ns = 1000, .dur_ns = 0, .name = "mark"});
    maq_trace_slice(
        w, compute,
        &(struct maq_trace_slice){.start_ns = 1000, .dur_ns = 123456789012, .name = "layer", .category = "bwd"});
    maq_trace_slice(
        w, comm,
        &(struct maq_trace_slice){.start_ns = 900, .dur_ns = 601, .name = "send", .flows_out = flow, .n_flows_out = 1});
    maq_trace_counter(w, memory, 0, 1.5e9);
    maq_trace_counter(w, memory, 700, 0.1);
    maq_trace_counter(w, power, 3, 700);
}

static struct maq_buf sample(enum maq_trace_format format, bool gzip)
{
    struct maq_buf buf;
    struct maq_trace_writer *w = NULL;
    maq_buf_init(&buf, 1 << 24);
    assert_int_equal(maq_trace_open_memory(&w, format, &buf, gzip, NULL), MAQ_OK);
    write_sample(w);
    assert_int_equal(maq_trace_status(w), MAQ_OK);
    assert_int_equal(maq_trace_close(w, NULL), MAQ_OK);
    return buf;
}

/* --- a protobuf reader ----------------------------------------------------------------------------------------------- */

struct field {
    uint32_t number;
    uint64_t value;     /* varint, fixed64 */
    const uint8_t *ptr; /* bytes */
    size_t len;
};

static bool read_varint(uint64_t *out, const uint8_t **p, const uint8_t *end)
{
    *out = 0;
    for (unsigned shift = 0; *p < end && shift < 64; shift += 7) {
        uint8_t byte = *(*p)++;
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool next_field(struct field *f, const uint8_t **p, const uint8_t *end)
{
    uint64_t key, len;
    if (*p == end)
        return false;
    assert_true(read_varint(&key, p, end));
    *f = (struct field){.number = (uint32_t)(key >> 3)};
    switch (key & 7) {
    case 0:
        assert_true(read_varint(&f->value, p, end));
        break;
    case 1:
        assert_true(end - *p >= 8);
        for (unsigned i = 0; i < 8; i++)
            f->value |= (uint64_t)(*p)[i] << (8 * i);
        *p += 8;
        break;
    case 2:
        assert_true(read_varint(&len, p, end));
        assert_true((uint64_t)(end - *p) >= len);
        f->ptr = *p;
        f->len = (size_t)len;
        *p += len;
        break;
    default:
        fail_msg("wire type %d", (int)(key & 7));
    }
    return true;
}

/* First field `number` of a message; number 0 in the result when there is none. */
static struct field get(struct field message, uint32_t number)
{
    if (message.ptr == NULL)
        return (struct field){0};
    const uint8_t *p = message.ptr, *end = message.ptr + message.len;
    struct field f;
    while (next_field(&f, &p, end)) {
        if (f.number == number)
            return f;
    }
    return (struct field){0};
}

#define MAX_EVENTS 64

struct event {
    uint64_t t, track, name, category, flow_out, flow_in;
    int type;
    double value;
    unsigned n_args;
};

struct trace {
    struct event events[MAX_EVENTS];
    char names[MAX_EVENTS][64], categories[MAX_EVENTS][64], keys[MAX_EVENTS][64];
    struct {
        uint64_t uuid, parent;
        int64_t pid, tid, rank;
        char name[64];
        uint64_t unit;
    } tracks[MAX_EVENTS];
    unsigned n_events, n_tracks, n_packets;
};

static void copy_text(char out[64], struct field f)
{
    assert_true(f.len < 64);
    if (f.len > 0)
        memcpy(out, f.ptr, f.len);
    out[f.len] = '\0';
}

static void read_interned(char table[MAX_EVENTS][64], struct field interned, uint32_t number)
{
    if (interned.ptr == NULL)
        return;
    const uint8_t *p = interned.ptr, *end = interned.ptr + interned.len;
    struct field f;
    while (next_field(&f, &p, end)) {
        if (f.number != number)
            continue;
        uint64_t iid = get(f, 1).value;
        assert_in_range(iid, 1, MAX_EVENTS - 1);
        assert_int_equal(table[iid][0], 0); /* defined once */
        copy_text(table[iid], get(f, 2));
    }
}

static void read_trace(struct trace *t, const struct maq_buf *buf)
{
    memset(t, 0, sizeof *t);
    const uint8_t *p = (const uint8_t *)buf->ptr, *end = p + buf->len;
    struct field packet;
    while (next_field(&packet, &p, end)) {
        assert_int_equal(packet.number, 1);
        assert_int_equal(get(packet, 10).value, 1);
        assert_int_equal(get(packet, 13).value, t->n_packets == 0 ? 1 : 2);
        t->n_packets++;
        struct field interned = get(packet, 12);
        read_interned(t->categories, interned, 1);
        read_interned(t->names, interned, 2);
        read_interned(t->keys, interned, 3);
        struct field track = get(packet, 60), event = get(packet, 11);
        if (track.number != 0) {
            struct field process = get(track, 3), thread = get(track, 4), counter = get(track, 8);
            t->tracks[t->n_tracks].uuid = get(track, 1).value;
            t->tracks[t->n_tracks].parent = get(track, 5).value;
            t->tracks[t->n_tracks].rank = (int64_t)get(track, 12).value;
            t->tracks[t->n_tracks].pid = (int64_t)(process.number ? get(process, 1) : get(thread, 1)).value;
            t->tracks[t->n_tracks].tid = (int64_t)get(thread, 2).value;
            t->tracks[t->n_tracks].unit = get(counter, 3).value;
            copy_text(t->tracks[t->n_tracks].name, process.number  ? get(process, 6)
                                                   : thread.number ? get(thread, 5)
                                                                   : get(track, 2));
            t->n_tracks++;
        }
        if (event.number != 0) {
            struct event *e = &t->events[t->n_events++];
            *e = (struct event){.t = get(packet, 8).value,
                                .track = get(event, 11).value,
                                .name = get(event, 10).value,
                                .category = get(event, 3).value,
                                .flow_out = get(event, 47).value,
                                .flow_in = get(event, 48).value,
                                .type = (int)get(event, 9).value};
            uint64_t bits = get(event, 44).value;
            memcpy(&e->value, &bits, sizeof bits);
            const uint8_t *q = event.ptr;
            struct field f;
            while (next_field(&f, &q, event.ptr + event.len))
                e->n_args += f.number == 4;
        }
    }
}

/* --- Perfetto -------------------------------------------------------------------------------------------------------- */

static void test_perfetto_tracks(void **state)
{
    (void)state;
    struct maq_buf buf = sample(MAQ_TRACE_PERFETTO, false);
    struct trace *t = malloc(sizeof *t);
    assert_non_null(t);
    read_trace(t, &buf);
    assert_int_equal(t->n_tracks, 1 + 2 + 3 + 2);
    assert_int_equal(t->tracks[0].uuid, 0);
    assert_string_equal(t->tracks[1].name, "rank 0");
    assert_string_equal(t->tracks[2].name, "rank \"1\"\n\xef\xbf\xbd");
    assert_int_equal(t->tracks[2].pid, t->tracks[1].pid + 1);
    for (unsigned i = 1; i < t->n_tracks; i++) {
        assert_true(t->tracks[i].uuid != 0);
        for (unsigned k = 1; k < i; k++)
            assert_true(t->tracks[i].uuid != t->tracks[k].uuid);
    }
    assert_string_equal(t->tracks[4].name, "communication");
    assert_int_equal(t->tracks[4].parent, t->tracks[1].uuid);
    assert_int_equal(t->tracks[4].pid, t->tracks[1].pid);
    assert_int_equal((int32_t)t->tracks[4].rank, -5);
    assert_true(t->tracks[3].tid != t->tracks[5].tid); /* unique in the trace, though both are thread 1 */
    assert_int_equal(t->tracks[5].parent, t->tracks[2].uuid);
    assert_string_equal(t->tracks[6].name, "memory");
    assert_int_equal(t->tracks[6].unit, 3);
    assert_int_equal(t->tracks[7].parent, t->tracks[2].uuid);
    free(t);
    maq_buf_fini(&buf);
}

/* Replays begins and ends of one track with a stack, as a viewer does. */
static void test_perfetto_slices(void **state)
{
    (void)state;
    struct maq_buf buf = sample(MAQ_TRACE_PERFETTO, false);
    struct trace *t = malloc(sizeof *t);
    assert_non_null(t);
    read_trace(t, &buf);
    static const struct {
        const char *name, *category;
        uint64_t start, end;
        unsigned depth, args;
    } want[] = {/* compute of rank 0, in order of their end */
                {"gemm", "fwd", 0, 400, 1, 3},
                {"attention", "", 400, 1000, 1, 0},
                {"layer", "fwd", 0, 1000, 0, 0},
                {"mark", "", 1000, 1000, 0, 0},
                {"layer", "bwd", 1000, 123456790012, 0, 0}};
    const struct event *stack[8];
    unsigned depth = 0, done = 0;
    uint64_t track = t->tracks[3].uuid, last = 0;
    for (unsigned i = 0; i < t->n_events; i++) {
        const struct event *e = &t->events[i];
        if (e->track != track)
            continue;
        assert_true(e->t >= last);
        last = e->t;
        if (e->type == 1) {
            stack[depth++] = e;
        } else {
            assert_int_equal(e->type, 2);
            assert_true(depth > 0 && done < sizeof want / sizeof *want);
            const struct event *begin = stack[--depth];
            assert_string_equal(t->names[begin->name], want[done].name);
            assert_string_equal(t->categories[begin->category], want[done].category);
            assert_int_equal(begin->t, want[done].start);
            assert_int_equal(e->t, want[done].end);
            assert_int_equal(depth, want[done].depth);
            assert_int_equal(begin->n_args, want[done].args);
            done++;
        }
    }
    assert_int_equal(depth, 0);
    assert_int_equal(done, sizeof want / sizeof *want);
    assert_string_equal(t->keys[1], "m");
    free(t);
    maq_buf_fini(&buf);
}

static void test_perfetto_flows_and_counters(void **state)
{
    (void)state;
    struct maq_buf buf = sample(MAQ_TRACE_PERFETTO, false);
    struct trace *t = malloc(sizeof *t);
    assert_non_null(t);
    read_trace(t, &buf);
    uint64_t out_t = 0, in_t = 0, out_track = 0, in_track = 0;
    unsigned flows = 0, counters = 0;
    for (unsigned i = 0; i < t->n_events; i++) {
        const struct event *e = &t->events[i];
        if (e->flow_out == 77) {
            out_t = e->t;
            out_track = e->track;
            flows++;
        }
        if (e->flow_in == 77) {
            in_t = e->t;
            in_track = e->track;
            flows++;
        }
        if (e->type == 4) {
            static const double values[] = {1.5e9, 0.1, 700};
            static const uint64_t times[] = {0, 700, 3};
            assert_true(counters < 3);
            assert_true(memcmp(&e->value, &values[counters], sizeof e->value) == 0);
            assert_int_equal(e->t, times[counters]);
            counters++;
        }
    }
    assert_int_equal(counters, 3);
    assert_int_equal(flows, 2);
    assert_int_equal(out_track, t->tracks[4].uuid);
    assert_int_equal(in_track, t->tracks[5].uuid);
    assert_true(out_t < in_t); /* though the receive begins first */
    free(t);
    maq_buf_fini(&buf);
}

/* --- Chrome ---------------------------------------------------------------------------------------------------------- */

static const char *text_of(json_t *event, const char *key)
{
    const char *text = json_string_value(json_object_get(event, key));
    return text ? text : "";
}

static void test_chrome(void **state)
{
    (void)state;
    struct maq_buf buf = sample(MAQ_TRACE_CHROME, false);
    json_error_t error;
    json_t *root = json_loadb(buf.ptr, buf.len, JSON_REJECT_DUPLICATES, &error);
    assert_non_null(root);
    json_t *events = json_object_get(root, "traceEvents"), *event;
    size_t i;
    unsigned phase[128] = {0};
    double sent = -1, received = -1;
    json_array_foreach(events, i, event)
    {
        char ph = text_of(event, "ph")[0];
        phase[(unsigned char)ph]++;
        json_int_t pid = json_integer_value(json_object_get(event, "pid"));
        double ts = json_number_value(json_object_get(event, "ts"));
        if (ph == 'X' && strcmp(text_of(event, "name"), "gemm") == 0) {
            json_t *args = json_object_get(event, "args");
            assert_int_equal(json_integer_value(json_object_get(args, "m")), -8192);
            assert_true(json_real_value(json_object_get(args, "tflops")) == 612.5);
            assert_string_equal(text_of(args, "dtype"), "bf16 \xc3\xa9\x01");
            assert_string_equal(text_of(event, "cat"), "fwd");
            assert_true(json_number_value(json_object_get(event, "dur")) == 0.4);
        }
        if (ph == 'M' && strcmp(text_of(event, "name"), "process_name") == 0 && pid == 1)
            assert_string_equal(text_of(json_object_get(event, "args"), "name"), "rank \"1\"\n\xef\xbf\xbd");
        if (ph == 's')
            sent = ts;
        if (ph == 'f') {
            received = ts;
            assert_string_equal(text_of(event, "bp"), "e");
            assert_int_equal(pid, 1);
        }
    }
    assert_int_equal(phase['X'], 7);
    assert_int_equal(phase['M'], 2 * (2 + 3));
    assert_int_equal(phase['C'], 3);
    assert_int_equal(phase['s'], 1);
    assert_int_equal(phase['f'], 1);
    assert_true(sent == 0.9 && received == 1.5);
    /* The nanosecond survives: 123456789.012 us. */
    assert_non_null(strstr(buf.ptr, "\"dur\":123456789.012,"));
    json_decref(root);
    maq_buf_fini(&buf);
}

static void test_chrome_odd_numbers(void **state)
{
    (void)state;
    struct maq_buf buf;
    struct maq_trace_writer *w = NULL;
    maq_buf_init(&buf, 1 << 20);
    assert_int_equal(maq_trace_open_memory(&w, MAQ_TRACE_CHROME, &buf, false, NULL), MAQ_OK);
    uint32_t p = maq_trace_process(w, 0, "", 0);
    uint32_t c = maq_trace_counter_track(w, p, "x", "y");
    double zero = 0;
    maq_trace_counter(w, c, INT64_MAX, 1 / zero);
    maq_trace_counter(w, c, INT64_MAX, -1e300);
    assert_int_equal(maq_trace_close(w, NULL), MAQ_OK);
    json_t *root = json_loadb(buf.ptr, buf.len, 0, NULL);
    assert_non_null(root);
    json_decref(root);
    maq_buf_fini(&buf);
}

/* An empty trace is a valid one. */
static void test_empty(void **state)
{
    (void)state;
    for (int format = MAQ_TRACE_PERFETTO; format <= MAQ_TRACE_CHROME; format++) {
        struct maq_buf buf;
        struct maq_trace_writer *w = NULL;
        maq_buf_init(&buf, 1 << 20);
        assert_int_equal(maq_trace_open_memory(&w, (enum maq_trace_format)format, &buf, false, NULL), MAQ_OK);
        assert_int_equal(maq_trace_close(w, NULL), MAQ_OK);
        if (format == MAQ_TRACE_CHROME) {
            json_t *root = json_loadb(buf.ptr, buf.len, 0, NULL);
            assert_non_null(root);
            json_decref(root);
        }
        maq_buf_fini(&buf);
    }
    assert_int_equal(maq_trace_close(NULL, NULL), MAQ_OK);
}

/* --- output ---------------------------------------------------------------------------------------------------------- */

static void test_deterministic_and_gzip(void **state)
{
    (void)state;
    for (int format = MAQ_TRACE_PERFETTO; format <= MAQ_TRACE_CHROME; format++) {
        struct maq_buf plain = sample((enum maq_trace_format)format, false),
                       again = sample((enum maq_trace_format)format, false);
        struct maq_buf packed = sample((enum maq_trace_format)format, true),
                       packed2 = sample((enum maq_trace_format)format, true);
        assert_int_equal(plain.len, again.len);
        assert_memory_equal(plain.ptr, again.ptr, plain.len);
        assert_int_equal(packed.len, packed2.len);
        assert_memory_equal(packed.ptr, packed2.ptr, packed.len);
        unsigned char *out = malloc(plain.len + 1);
        assert_non_null(out);
        z_stream z = {.next_in = (unsigned char *)packed.ptr,
                      .avail_in = (uInt)packed.len,
                      .next_out = out,
                      .avail_out = (uInt)plain.len + 1};
        assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
        assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
        assert_int_equal(z.total_out, plain.len);
        assert_memory_equal(out, plain.ptr, plain.len);
        inflateEnd(&z);
        free(out);
        maq_buf_fini(&plain);
        maq_buf_fini(&again);
        maq_buf_fini(&packed);
        maq_buf_fini(&packed2);
    }
}

/* A file by its name, large enough for many blocks; .gz reads back. */
static void test_file(void **state)
{
    (void)state;
    char folder[] = "/tmp/maq-trace-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    static const char *const names[] = {"t.json.gz", "t.pftrace.gz", "t.json", "t.pftrace"};
    for (unsigned k = 0; k < 4; k++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[k]);
        assert_int_equal(maq_trace_format_of(path), k % 2 == 0 ? MAQ_TRACE_CHROME : MAQ_TRACE_PERFETTO);
        struct maq_trace_writer *w = NULL;
        assert_int_equal(maq_trace_open(&w, maq_trace_format_of(path), path, NULL), MAQ_OK);
        uint32_t p = maq_trace_process(w, 0, "p", 0), t = maq_trace_thread(w, p, 0, "t", 0);
        for (int64_t i = 0; i < 20000; i++)
            maq_trace_slice(w, t,
                            &(struct maq_trace_slice){.start_ns = i * 10, .dur_ns = 10, .name = i % 2 ? "a" : "b"});
        assert_int_equal(maq_trace_close(w, NULL), MAQ_OK);
        gzFile f = gzopen(path, "rb"); /* reads plain files as they are */
        assert_non_null(f);
        char block[4096];
        int got;
        size_t total = 0;
        while ((got = gzread(f, block, sizeof block)) > 0)
            total += (size_t)got;
        assert_int_equal(got, 0);
        assert_int_equal(gzclose(f), Z_OK);
        assert_true(total > 20000 * 20);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rmdir(folder), 0);
}

static void test_short_writes(void **state)
{
    (void)state;
    if (access("/dev/full", W_OK) != 0)
        skip();
    for (int format = MAQ_TRACE_PERFETTO; format <= MAQ_TRACE_CHROME; format++) {
        for (int64_t slices = 0; slices <= 20000; slices += 20000) {
            struct maq_diag *diag = maq_diag_new();
            struct maq_trace_writer *w = NULL;
            assert_int_equal(maq_trace_open(&w, (enum maq_trace_format)format, "/dev/full", diag), MAQ_OK);
            uint32_t p = maq_trace_process(w, 0, "p", 0), t = maq_trace_thread(w, p, 0, "t", 0);
            for (int64_t i = 0; i < slices; i++)
                maq_trace_slice(w, t, &(struct maq_trace_slice){.start_ns = i, .dur_ns = 1, .name = "a"});
            assert_int_equal(maq_trace_close(w, diag), MAQ_IO);
            assert_int_equal(maq_diag_errors(diag), 1);
            maq_diag_free(diag);
        }
    }
    struct maq_diag *diag = maq_diag_new();
    struct maq_trace_writer *w = NULL;
    assert_int_equal(maq_trace_open(&w, MAQ_TRACE_CHROME, "/nonexistent/t.json", diag), MAQ_IO);
    assert_null(w);
    assert_int_equal(maq_diag_errors(diag), 1);
    maq_diag_free(diag);
}

static void test_memory_limit(void **state)
{
    (void)state;
    struct maq_buf buf;
    struct maq_trace_writer *w = NULL;
    maq_buf_init(&buf, 100);
    assert_int_equal(maq_trace_open_memory(&w, MAQ_TRACE_CHROME, &buf, false, NULL), MAQ_OK);
    write_sample(w);
    assert_int_equal(maq_trace_close(w, NULL), MAQ_LIMIT);
    maq_buf_fini(&buf);
}

static size_t allocations_left;

static bool gate(size_t bytes)
{
    (void)bytes;
    return allocations_left > 0 && allocations_left-- > 0;
}

/* Refuses the n-th allocation and all after it, n = 0, 1, ... until the trace is written whole. */
static void test_no_memory(void **state)
{
    (void)state;
    struct maq_buf whole = sample(MAQ_TRACE_PERFETTO, true);
    for (int format = MAQ_TRACE_PERFETTO; format <= MAQ_TRACE_CHROME; format++) {
        enum maq_status status = MAQ_NO_MEMORY;
        for (size_t n = 0; status != MAQ_OK && n < 10000; n++) {
            struct maq_buf buf;
            struct maq_trace_writer *w = NULL;
            maq_buf_init(&buf, 1 << 20);
            allocations_left = n;
            maq__set_alloc_gate(gate);
            status = maq_trace_open_memory(&w, (enum maq_trace_format)format, &buf, true, NULL);
            if (status == MAQ_OK) {
                write_sample(w);
                status = maq_trace_close(w, NULL);
            }
            maq__set_alloc_gate(NULL);
            assert_true(status == MAQ_OK || status == MAQ_NO_MEMORY || status == MAQ_LIMIT);
            if (status == MAQ_OK && format == MAQ_TRACE_PERFETTO)
                assert_in_range(buf.len, whole.len,
                                2 * whole.len); /* not interned for want of memory: larger, still whole */
            maq_buf_fini(&buf);
        }
        assert_int_equal(status, MAQ_OK);
    }
    maq_buf_fini(&whole);
}

/* --- order ----------------------------------------------------------------------------------------------------------- */

static enum maq_status two_slices(int64_t a, int64_t a_dur, int64_t b, int64_t b_dur)
{
    struct maq_buf buf;
    struct maq_trace_writer *w = NULL;
    maq_buf_init(&buf, 1 << 20);
    assert_int_equal(maq_trace_open_memory(&w, MAQ_TRACE_PERFETTO, &buf, false, NULL), MAQ_OK);
    uint32_t p = maq_trace_process(w, 0, "p", 0), t = maq_trace_thread(w, p, 0, "t", 0);
    maq_trace_slice(w, t, &(struct maq_trace_slice){.start_ns = a, .dur_ns = a_dur, .name = "a"});
    maq_trace_slice(w, t, &(struct maq_trace_slice){.start_ns = b, .dur_ns = b_dur, .name = "b"});
    enum maq_status status = maq_trace_close(w, NULL);
    maq_buf_fini(&buf);
    return status;
}

static void test_order(void **state)
{
    (void)state;
    assert_int_equal(two_slices(0, 10, 10, 5), MAQ_OK);
    assert_int_equal(two_slices(0, 10, 3, 7), MAQ_OK);
    assert_int_equal(two_slices(0, 10, 10, 0), MAQ_OK);
    assert_int_equal(two_slices(5, 0, 5, 0), MAQ_OK);
    assert_int_equal(two_slices(0, INT64_MAX, 1, INT64_MAX - 1), MAQ_OK);
    assert_int_equal(two_slices(0, 10, 3, 8), MAQ_BAD_INPUT);
    assert_int_equal(two_slices(5, 10, 4, 1), MAQ_BAD_INPUT);
    assert_int_equal(two_slices(-1, 10, 4, 1), MAQ_BAD_INPUT);
    assert_int_equal(two_slices(0, -1, 4, 1), MAQ_BAD_INPUT);
    assert_int_equal(two_slices(0, 1, 2, INT64_MAX), MAQ_BAD_INPUT);
}

/* Names that are all different: after the budget they are written in full, and nothing is lost. */
static void test_many_names(void **state)
{
    (void)state;
    struct maq_trace_intern table;
    maq_trace_intern_init(&table);
    uint32_t inlined = 0;
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 70000; i++) {
            char name[32];
            snprintf(name, sizeof name, "name-%u", i);
            bool fresh;
            uint32_t id = maq_trace_intern_get(&table, maq_str_of(name), &fresh);
            assert_true(id == 0 || id == i + 1);
            assert_true(fresh == (round == 0 && id != 0));
            inlined += id == 0;
        }
    }
    assert_int_equal(inlined, 2 * (70000 - 65536));
    maq_trace_intern_fini(&table);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--write") == 0) { /* for tests/test_trace_decode.py */
        struct maq_trace_writer *w = NULL;
        if (maq_trace_open(&w, maq_trace_format_of(argv[2]), argv[2], NULL) != MAQ_OK)
            return 1;
        write_sample(w);
        return maq_trace_close(w, NULL) == MAQ_OK ? 0 : 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_perfetto_tracks),
        cmocka_unit_test(test_perfetto_slices),
        cmocka_unit_test(test_perfetto_flows_and_counters),
        cmocka_unit_test(test_chrome),
        cmocka_unit_test(test_chrome_odd_numbers),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_deterministic_and_gzip),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_short_writes),
        cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_many_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
