/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_shim_stream.c - virtual time: the clock, streams, events, the legacy stream, host functions, polling, and the records
 * they leave. Durations are given, so every expected time is added up by hand. maq-test: threads
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>

#include "shim/core/await.h"
#include "shim/core/enqueue.h"
#include "shim/core/queue.h"
#include "shim/cuda/cuda.h"
#include "shim_card.h"
#include "shim_streams.h"

#define CALL 100 /* ns, of the card */

static void test_clock(void **state)
{
    int64_t before = vg_now();
    vg_drive();
    vg_call();
    assert_int_equal(vg_now() - before, CALL);
    vg_wait_until(before); /* the past does not come back */
    assert_int_equal(vg_now() - before, CALL);
    vg_wait_until(before + 5000);
    assert_int_equal(vg_now() - before, 5000);
    vg_host(7);
    assert_int_equal(vg_now() - before, 5007);
}

/* A stream runs its operations one after another, from when the host asked. */
static void test_one_stream(void **state)
{
    struct vg_stream *s = fresh();
    int64_t t = vg_now();
    work(s, 1000);
    work(s, 500);
    assert_int_equal(end_of(s), t + 1500);
    vg_wait_until(t + 4000);
    work(s, 250);
    assert_int_equal(end_of(s), t + 4250);
    assert_int_equal(vg_now(), t + 4000); /* to know an end is not to wait for it */
    vg_stream_free(s);
}

/* Two streams side by side; the second waits for the first's first half. */
static void test_events(void **state)
{
    struct vg_stream *a = fresh(), *b = fresh();
    struct vg_event *e = vg_event_new(0), *never = vg_event_new(0);
    int64_t t = vg_now(), end;
    work(a, 1000);
    vg_event_record(e, a);
    work(a, 1000);
    work(b, 300);
    vg_stream_wait(b, e);
    vg_stream_wait(b, never); /* never recorded: nothing to wait for */
    work(b, 300);
    assert_int_equal(end_of(a), t + 2000);
    assert_int_equal(end_of(b), t + 1300);
    assert_true(vg_event_end(e, &end));
    assert_int_equal(end, t + 1000);
    vg_event_record(e, b); /* again: another place */
    assert_true(vg_event_end(e, &end));
    assert_int_equal(end, t + 1300);
    vg_event_free(never);
    vg_event_free(e);
    vg_stream_free(a);
    vg_stream_free(b);
}

/* NULL is the legacy stream: it waits for blocking streams, and they for it; the others go their own way. */
static void test_legacy(void **state)
{
    struct vg_stream *legacy = vg_stream_of(NULL), *a = vg_stream_new(0, 0), *b = vg_stream_new(0, 0),
                     *free_one = fresh();
    assert_ptr_equal(legacy, vg_stream_of((void *)1));
    int64_t t = vg_now();
    work(a, 1000);
    work(b, 3000);
    work(free_one, 10000);
    work(legacy, 500);
    assert_int_equal(end_of(legacy), t + 3500);
    work(a, 100); /* behind the legacy stream's work */
    assert_int_equal(end_of(a), t + 3600);
    assert_int_equal(end_of(b), t + 3000);
    assert_int_equal(end_of(free_one), t + 10000);
    work(legacy, 1);
    assert_int_equal(end_of(legacy), t + 3601);
    vg_stream_free(a);
    vg_stream_free(b);
    vg_stream_free(free_one);
}

static void *own_stream(void *out)
{
    *(struct vg_stream **)out = vg_stream_of((void *)2);
    return NULL;
}

static void test_handles(void **state)
{
    struct vg_stream *s = fresh(), *theirs = NULL;
    pthread_t thread;
    assert_ptr_equal(vg_stream_of(s), s);
    assert_null(vg_stream_of((char *)s + 8));
    assert_null(vg_stream_of(&s));
    vg_stream_free(s);
    assert_null(vg_stream_of(s)); /* gone */
    assert_null(vg_event_of(&s));
    pthread_create(&thread, NULL, own_stream, &theirs);
    pthread_join(thread, NULL);
    assert_ptr_not_equal(theirs, vg_stream_of((void *)2));
}

/* A program that asks until something is ready gets there, because asking takes time. */
static void test_polling_ends(void **state)
{
    struct vg_stream *s = fresh();
    int64_t t = vg_now();
    work(s, 10000);
    unsigned asked = 0;
    for (; vg_stream_query(s) == 0; asked++)
        vg_call();
    assert_int_equal(asked, 100);
    assert_int_equal(vg_now(), t + 10000);
    vg_stream_free(s);
}

static void *watch(void *event)
{
    int64_t before = vg_now();
    vg_call(); /* a thread that never drove: nothing moves */
    int done = vg_event_query(event);
    return (void *)(uintptr_t)(vg_now() == before ? done + 1 : 0);
}

static void *watch_on(void *event)
{
    while (vg_event_query(event) == 0) { /* ends when those that drive stand still */
    }
    return NULL;
}

static void test_watchdog_moves_nothing(void **state)
{
    struct vg_stream *s = fresh();
    struct vg_event *e = vg_event_new(0);
    pthread_t thread;
    void *said;
    work(s, 1000000);
    vg_event_record(e, s);
    int64_t t = vg_now();
    pthread_create(&thread, NULL, watch, e);
    pthread_join(thread, &said);
    assert_int_equal((uintptr_t)said, 1); /* not yet */
    pthread_create(&thread, NULL, watch_on, e);
    pthread_join(thread, NULL);
    assert_int_equal(vg_now(), t);
    vg_event_free(e);
    vg_stream_free(s);
}

int cudaHostAlloc(void **p, size_t bytes, unsigned flags);

static void *pin(void *unused)
{
    (void)unused;
    void *p;
    return cudaHostAlloc(&p, 4096, 0) == VG_OK ? memset(p, 1, 4096) : NULL;
}

/* Memory of the host that a thread takes beside those that drive is not recorded: when it does is a matter of scheduling. */
static void test_pinning_beside(void **state)
{
    size_t before, n;
    pthread_t thread;
    void *pinned, *first = vg_mem_alloc(4096, MAQ_REC_DEVICE, NULL);
    free(shim_records(&before));
    int64_t t = vg_now();
    pthread_create(&thread, NULL, pin, NULL);
    pthread_join(thread, &pinned);
    assert_non_null(pinned);
    assert_int_equal(vg_now(), t);
    assert_true(vg_mem_free(pinned, NULL));
    void *second = vg_mem_alloc(4096, MAQ_REC_DEVICE, NULL), *own = vg_mem_alloc(4096, MAQ_REC_PINNED, NULL);
    struct maq_rec *r = shim_records(&n);
    assert_int_equal(n - before, 2);
    assert_int_equal(r[before].id, r[before - 1].id + 1); /* numbers are as if that had not been */
    assert_int_equal(r[before + 1].arg, MAQ_REC_PINNED);  /* of a thread that drives it is in the trace */
    free(r);
    assert_true(vg_mem_free(first, NULL) && vg_mem_free(second, NULL) && vg_mem_free(own, NULL));
}

/* What ended is told a watcher when those that drive have waited twice and it is 100 ms ago, though they do not sleep. */
static void test_watchers_are_told_late(void **state)
{
    struct vg_stream *s = fresh();
    struct vg_event *e = vg_event_new(0);
    int64_t end;
    const struct {
        int64_t ms; /* that the host works, and then it may wait for its device */
        bool waits;
        uintptr_t told;
    } step[] = {{60, false, 0}, {60, false, 0}, {0, true, 0}, {1, true, 1}};
    work(s, 1000000);
    vg_event_record(e, s);
    for (size_t i = 0; i < sizeof step / sizeof *step; i++) {
        pthread_t thread;
        void *said;
        vg_host(step[i].ms * 1000000);
        assert_true(vg_stream_end(s, &end));
        if (step[i].waits)
            vg_wait_until(end);
        pthread_create(&thread, NULL, watch, e);
        pthread_join(thread, &said);
        assert_int_equal((uintptr_t)said, step[i].told + 1);
    }
    vg_event_free(e);
    vg_stream_free(s);
}

static void append(void *data)
{
    int **at = data;
    *(*at)++ = 1;
}

static void test_host_function(void **state)
{
    struct vg_stream *s = fresh();
    int calls[4] = {0}, *at = calls;
    work(s, 1000);
    vg_enqueue_host(s, append, &at);
    vg_enqueue_host(s, append, &at);
    vg_run_host_functions();
    assert_int_equal(at - calls, 2);
    vg_stream_free(s);
}

static void test_operators(void **state)
{
    struct maq_rec_op op = {.kind = MAQ_REC_KERNEL, .grid = {1, 2, 3}, .block = {32, 1, 1}, .bytes = 5000000};
    uint32_t id = vg_op(&op, "scale"), more = vg_op(&op, "scale");
    assert_int_equal(id, more);
    assert_int_equal(vg_op_ns(id), 2000 + 5000); /* nobody to ask: 2 us and 1 TB/s */
    op.grid[0] = 2;
    assert_int_not_equal(vg_op(&op, "scale"), id);
    op.grid[0] = 1;
    assert_int_not_equal(vg_op(&op, "scales"), id);
    struct maq_rec_comm comm = {.lineage = 9, .size = 8};
    assert_int_equal(vg_duration_query_coll(&comm, NULL, MAQ_REC_ALL_REDUCE, 1000000), 3000);
}

/* A collective alone takes its own time; two on one communicator in one kernel follow each other, messages do not. */
static void test_groups(void **state)
{
    struct vg_stream *s = fresh(), *on[3] = {s, s, s};
    struct vg_meeting parts[3] = {
        {.rec = {.kind = MAQ_REC_COLL, .id = MAQ_REC_COLL(1, 0, MAQ_REC_F32, MAQ_REC_ALL_REDUCE), .ns = 100}},
        {.rec = {.kind = MAQ_REC_COLL, .id = MAQ_REC_COLL(1, 0, MAQ_REC_F32, MAQ_REC_ALL_REDUCE), .ns = 200}},
        {.rec = {.kind = MAQ_REC_SEND, .id = MAQ_REC_COLL(1, 0, MAQ_REC_F32, MAQ_REC_P2P_PAIR), .ns = 250}},
    };
    int64_t t = vg_now();
    vg_enqueue_group(on, parts, 3);
    assert_int_equal(end_of(s), t + 300);
    parts[1].rec.id = MAQ_REC_COLL(2, 0, MAQ_REC_F32, MAQ_REC_ALL_REDUCE);
    vg_enqueue_group(on, parts, 3);
    assert_int_equal(end_of(s), t + 300 + 250);
    vg_stream_free(s);
}

static void *hammer(void *unused)
{
    struct vg_stream *s = fresh();
    for (int i = 0; i < 2000; i++) {
        vg_call();
        work(s, 10);
    }
    end_of(s);
    vg_stream_free(s);
    return unused;
}

static void test_threads(void **state)
{
    pthread_t thread[4];
    int64_t t = vg_now();
    for (int i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, hammer, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    assert_in_range(vg_now() - t, 1, 4 * 2000 * CALL); /* threads that have not driven yet move nothing by calls */
}

/* What was recorded is what was asked: kinds in order, streams and events counted from 0, host time between. */
static void test_records(void **state)
{
    size_t before, n;
    free(shim_records(&before));
    struct vg_stream *s = fresh();
    struct vg_event *e = vg_event_new(0);
    int64_t t = vg_now();
    vg_call();
    work(s, 11);
    vg_host(5000000000); /* more than host_ns can hold */
    vg_event_record(e, s);
    struct maq_rec *r = shim_records(&n);
    assert_int_equal(n - before, 3);
    assert_int_equal(r[before].kind, MAQ_REC_SET);
    assert_true(r[before].host_ns >= CALL);
    assert_int_equal(r[before].ns, 11);
    assert_int_equal(r[before + 1].kind, MAQ_REC_HOST);
    assert_int_equal(r[before + 1].ns, 5000000000);
    assert_int_equal(r[before + 2].kind, MAQ_REC_EVENT_RECORD);
    assert_int_equal(r[before + 2].stream, r[before].stream);
    assert_int_equal(vg_now() - t, CALL + 5000000000);
    /* Ids are dense, in order of first use. */
    uint32_t streams = 0, events = 0;
    for (size_t i = 0; i < n; i++) {
        bool defines = r[i].kind == MAQ_REC_DEF_OP || r[i].kind == MAQ_REC_HOST;
        if (r[i].stream != MAQ_REC_HOST_STREAM && !defines) {
            assert_true(r[i].stream <= streams);
            streams += r[i].stream == streams;
        }
        if (r[i].kind == MAQ_REC_EVENT_RECORD) {
            assert_true(r[i].id <= events);
            events += r[i].id == events;
        }
    }
    free(r);
    vg_event_free(e);
    vg_stream_free(s);
}

int main(void)
{
    shim_card("");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clock),
        cmocka_unit_test(test_one_stream),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_legacy),
        cmocka_unit_test(test_handles),
        cmocka_unit_test(test_polling_ends),
        cmocka_unit_test(test_watchdog_moves_nothing),
        cmocka_unit_test(test_pinning_beside),
        cmocka_unit_test(test_watchers_are_told_late),
        cmocka_unit_test(test_host_function),
        cmocka_unit_test(test_operators),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_records),
        cmocka_unit_test(test_threads),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    shim_done();
    return failed;
}
