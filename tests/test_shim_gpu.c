/* SPDX-License-Identifier: Apache-2.0 */
/* What the GPU side of the shim does without a GPU: activities to records, the recursion of a timed wait, the data rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/gpu/activity.h"
#include "shim/gpu/fill.h"
#include "shim/gpu/table.h"
#include "shim/gpu/wait.h"
#include "temp.h"

struct written {
    struct maq_rec rec[64];
    char name[64][32];
    size_t n;
};

static void put(void *to, struct maq_rec rec, const void *payload)
{
    struct written *w = to;
    assert_true(w->n < 64);
    if (rec.kind == MAQ_REC_DEF_OP) {
        struct maq_rec_op op;
        memcpy(&op, payload, sizeof op);
        assert_int_equal(rec.bytes, sizeof op + op.name_bytes);
        memcpy(w->name[w->n], (const char *)payload + sizeof op, op.name_bytes);
    }
    w->rec[w->n++] = rec;
}

static struct vg_activity call(uint32_t correlation, int64_t start, int64_t end)
{
    return (struct vg_activity){
        .kind = VG_ACT_CALL, .correlation = correlation, .stream = MAQ_REC_NONE, .start = start, .end = end};
}

static struct vg_activity kernel(uint32_t correlation, uint32_t stream, int64_t start, int64_t end, const char *name)
{
    return (struct vg_activity){.kind = VG_ACT_KERNEL,
                                .correlation = correlation,
                                .stream = stream,
                                .start = start,
                                .end = end,
                                .grid = {4, 1, 1},
                                .block = {128, 1, 1},
                                .name = name};
}

static const struct maq_rec *nth(const struct written *w, enum maq_rec_kind kind, size_t nth)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->rec[i].kind == kind && nth-- == 0)
            return &w->rec[i];
    return NULL;
}

/* Two launches, an event between two streams, a wait: whatever order CUPTI tells them in. */
static void test_assembles(void **state)
{
    struct vg_activity told[] = {
        kernel(2, 13, 2500, 4500, "b"),
        {.kind = VG_ACT_STREAM_SYNC, .correlation = 5, .stream = 13, .start = 900, .end = 4600},
        call(1, 100, 200),
        {.kind = VG_ACT_EVENT, .correlation = 3, .stream = 7, .id = 42},
        call(5, 880, 4620),
        call(2, 500, 650),
        kernel(1, 7, 1000, 2500, "a"),
        call(3, 300, 310),
        {.kind = VG_ACT_STREAM_WAIT, .correlation = 4, .stream = 13, .id = 42},
        call(4, 400, 420),
        call(9, 700, 701), /* a poll: caused nothing */
    };
    size_t n = sizeof told / sizeof *told;
    struct written w = {.n = 0};
    struct vg_sink sink = {put, &w};
    assert_int_equal(vg_assemble(told, n, &sink), 0);

    const struct maq_rec *a = nth(&w, MAQ_REC_LAUNCH, 0), *b = nth(&w, MAQ_REC_LAUNCH, 1);
    const struct maq_rec *e = nth(&w, MAQ_REC_EVENT_RECORD, 0), *wait = nth(&w, MAQ_REC_STREAM_WAIT, 0);
    const struct maq_rec *sync = nth(&w, MAQ_REC_STREAM_SYNC, 0);
    assert_non_null(a);
    assert_non_null(b);
    assert_true(a < e && e < wait && wait < b && b < sync);
    assert_int_equal(a->ns, 1500);
    assert_int_equal(b->ns, 2000);
    assert_int_equal(a->stream, 0);
    assert_int_equal(e->stream, 0);
    assert_int_equal(wait->stream, 1);
    assert_int_equal(b->stream, 1);
    assert_int_equal(sync->stream, 1);
    assert_int_equal(e->id, wait->id);
    /* host: 100 of the launch; 110 to the end of the record; 110; 230; then 3,970 of which 3,700 were waiting */
    assert_int_equal(a->host_ns, 100);
    assert_int_equal(e->host_ns, 110);
    assert_int_equal(wait->host_ns, 110);
    assert_int_equal(b->host_ns, 230);
    assert_int_equal(sync->host_ns, 270);

    struct vg_activity again[sizeof told / sizeof *told];
    for (size_t i = 0; i < n; i++)
        again[i] = told[n - 1 - i];
    struct written second = {.n = 0};
    sink.to = &second;
    assert_int_equal(vg_assemble(again, n, &sink), 0);
    assert_int_equal(second.n, w.n);
    assert_memory_equal(second.rec, w.rec, w.n * sizeof *w.rec);
}

/*
 * The nodes of a graph have the correlation of its launch; one operator is one definition; an address that is given
 * out again is another allocation.
 */
static void test_graphs_and_memory(void **state)
{
    struct vg_activity told[] = {
        {.kind = VG_ACT_ALLOC,
         .correlation = 1,
         .stream = MAQ_REC_NONE,
         .start = 5,
         .end = 5,
         .bytes = 64,
         .address = 4096},
        call(1, 0, 10),
        kernel(2, 7, 30, 40, "a"),
        kernel(2, 7, 40, 60, "a"),
        kernel(2, 7, 60, 61, "b"),
        call(2, 20, 25),
        {.kind = VG_ACT_FREE, .correlation = 3, .stream = MAQ_REC_NONE, .start = 70, .end = 70, .address = 4096},
        call(3, 65, 75),
        {.kind = VG_ACT_ALLOC,
         .correlation = 4,
         .stream = MAQ_REC_NONE,
         .start = 80,
         .end = 80,
         .bytes = 32,
         .address = 4096},
        call(4, 78, 81),
        {.kind = VG_ACT_FREE, .correlation = 5, .stream = MAQ_REC_NONE, .start = 90, .end = 90, .address = 8192},
        call(5, 88, 91),
    };
    for (int i = 2; i < 5; i++)
        told[i].graph = 1;
    struct written w = {.n = 0};
    struct vg_sink sink = {put, &w};
    assert_int_equal(vg_assemble(told, sizeof told / sizeof *told, &sink), 0);
    assert_null(nth(&w, MAQ_REC_DEF_OP, 2));
    assert_int_equal(nth(&w, MAQ_REC_LAUNCH, 0)->id, nth(&w, MAQ_REC_LAUNCH, 1)->id);
    assert_int_not_equal(nth(&w, MAQ_REC_LAUNCH, 0)->id, nth(&w, MAQ_REC_LAUNCH, 2)->id);
    for (size_t i = 0; i < 3; i++) {
        assert_true(nth(&w, MAQ_REC_LAUNCH, i)->flags & MAQ_REC_GRAPH);
        assert_int_equal(nth(&w, MAQ_REC_LAUNCH, i)->host_ns, i ? 0 : 15);
    }
    assert_int_equal(nth(&w, MAQ_REC_ALLOC, 0)->id, 0);
    assert_int_equal(nth(&w, MAQ_REC_FREE, 0)->id, 0);
    assert_int_equal(nth(&w, MAQ_REC_ALLOC, 1)->id, 1);
    assert_int_equal(nth(&w, MAQ_REC_FREE, 1)->id, MAQ_REC_NONE);
}

/* Work without a call keeps its place; an event without one is counted as left out; a gap over 4 s has a record of its own. */
static void test_odd_activities(void **state)
{
    struct vg_activity told[] = {
        kernel(0, 7, 10, 20, "a"),
        {.kind = VG_ACT_EVENT, .correlation = 77, .stream = 7, .id = 1},
        call(1, 5000000000, 5000000010),
        kernel(1, 7, 5000000020, 5000000030, "a"),
    };
    struct written w = {.n = 0};
    struct vg_sink sink = {put, &w};
    assert_int_equal(vg_assemble(told, 4, &sink), 1);
    assert_int_equal(nth(&w, MAQ_REC_HOST, 0)->ns, 5000000000);
    assert_int_equal(nth(&w, MAQ_REC_LAUNCH, 1)->host_ns, 0);
    w.n = 0;
    assert_int_equal(vg_assemble(told, 0, &sink), 0);
    assert_int_equal(w.n, 0);
}

/*
 * Rank 0 and a peer that meet N times, work `mine` and `theirs` in between: the wait's table comes from a replay where rank 0 is on
 * time; then rank 0 is slow by a factor, and each end must be that of the two of them together.
 */
static void test_wait_recursion(void **state)
{
    enum { N = 40 };
    struct maq_wait_entry entry[N];
    int64_t own = 0, peers = 0, theirs[N], mine[N];
    for (int i = 0; i < N; i++) {
        mine[i] = 1000 + i * 37 % 200;
        theirs[i] = 1050 + i * 53 % 170;
        own += mine[i];
        peers += theirs[i];
        entry[i] = (struct maq_wait_entry){own, peers, 300 + i};
        own = peers = (own > peers ? own : peers) + entry[i].ns;
    }
    static const double slow[] = {1.0, 0.5, 1.2, 2.0};
    for (size_t s = 0; s < sizeof slow / sizeof *slow; s++) {
        int64_t origin = 12345, shift = 0, at = origin, peer = origin, late;
        for (uint32_t i = 0; i < N; i++) {
            assert_int_equal(vg_wait_at(i, N, N, 0, &late), i);
            at += (int64_t)((double)mine[i] * slow[s]);
            peer += theirs[i];
            int64_t truth = (at > peer ? at : peer) + entry[i].ns;
            int64_t end = vg_wait_end(&entry[i], late, origin, &shift, at);
            /* a peer that waited for rank 0 in the replay cannot be known to be faster than that */
            if (slow[s] >= 1.0)
                assert_int_equal(end, truth);
            else
                assert_true(end >= truth);
            at = peer = end;
        }
    }
}

static void test_wait_repeats(void **state)
{
    int64_t late;
    assert_int_equal(vg_wait_at(9, 10, 4, 100, &late), 9);
    assert_int_equal(late, 0);
    assert_int_equal(vg_wait_at(10, 10, 4, 100, &late), 4);
    assert_int_equal(late, 100);
    assert_int_equal(vg_wait_at(21, 10, 4, 100, &late), 9);
    assert_int_equal(late, 200);
    assert_int_equal(vg_wait_at(50, 10, 10, 100, &late), 9); /* no steady part: the last entry again */
    assert_int_equal(late, 4100);
}

/* What is written stays inside the receive buffer, and what is read inside the send buffer, as NCCL sizes them. */
static void test_fill_stays_inside(void **state)
{
    enum { SIZE = 5, BYTES = 48 };
    for (int kind = 0; kind < MAQ_REC_COLL_COUNT; kind++)
        for (unsigned op = 0; op < 5; op++)
            for (uint32_t rank = 0; rank < SIZE; rank++)
                for (int in_place = 0; in_place < 2; in_place++) {
                    bool wide_in =
                        kind == MAQ_REC_REDUCE_SCATTER || kind == MAQ_REC_ALL_TO_ALL || kind == MAQ_REC_SCATTER;
                    bool wide_out = kind == MAQ_REC_ALL_GATHER || kind == MAQ_REC_ALL_TO_ALL || kind == MAQ_REC_GATHER;
                    struct vg_fill f;
                    uint32_t i = 0;
                    for (; vg_fill_step(&f, i, (enum maq_rec_coll)kind, MAQ_REC_F32, op, SIZE, rank, BYTES, in_place);
                         i++) {
                        assert_true(f.at + f.bytes <= (wide_out ? BYTES * SIZE : BYTES));
                        assert_true(f.kind == VG_FILL_NOISE || f.from + f.bytes <= (wide_in ? BYTES * SIZE : BYTES));
                    }
                    assert_true(i > 0);
                }
}

static void test_fill_values(void **state)
{
    struct vg_fill f;
    assert_true(vg_fill_step(&f, 0, MAQ_REC_ALL_REDUCE, MAQ_REC_F32, 0, 8192, 7, 64, true));
    assert_int_equal(f.kind, VG_FILL_SCALE);
    assert_true(f.factor == 8192.0f);
    assert_true(vg_fill_factor(MAQ_REC_BF16, 8192) == 256.0f);
    assert_true(vg_fill_step(&f, 0, MAQ_REC_ALL_REDUCE, MAQ_REC_F32, 4, 8192, 7, 64, false)); /* average */
    assert_int_equal(f.kind, VG_FILL_COPY);
    assert_true(vg_fill_step(&f, 0, MAQ_REC_REDUCE_SCATTER, MAQ_REC_F32, 0, 8, 3, 64, false));
    assert_int_equal(f.from, 3 * 64);
    assert_true(vg_fill_step(&f, 6, MAQ_REC_ALL_GATHER, MAQ_REC_BF16, 0, 8, 3, 64, false));
    assert_int_equal(f.at, 6 * 64);
    assert_false(vg_fill_step(&f, 8, MAQ_REC_ALL_GATHER, MAQ_REC_BF16, 0, 8, 3, 64, false));
    assert_true(vg_fill_step(&f, 0, MAQ_REC_ALL_GATHER, MAQ_REC_BF16, 0, 8, 3, 64, true));
    assert_int_equal(f.kind, VG_FILL_NOTHING); /* in place: what stands there stays */
}

struct waits_file {
    struct maq_waits_head head;
    struct maq_waits_comm comm[2];
    struct maq_wait_entry entry[5];
};

static bool opens(const void *file, size_t bytes, struct vg_waits *w)
{
    char path[] = "/tmp/maquette-waits-XXXXXX";
    const char *why;
    temp_file(path, file, bytes);
    bool good = vg_waits_open(w, path, &why);
    assert_true(good == !why);
    unlink(path);
    return good;
}

static void test_waits_file(void **state)
{
    struct waits_file f = {.head = {.magic = "maqwait", .n_comms = 2, .world = 8}};
    struct vg_waits w;
    const struct maq_wait_entry *entries;
    memcpy(f.head.magic, MAQ_WAITS_MAGIC, 8);
    f.comm[0] = (struct maq_waits_comm){.lineage = 7, .n = 3, .loop = 1, .at = offsetof(struct waits_file, entry)};
    f.comm[1] = (struct maq_waits_comm){
        .lineage = 9, .n = 2, .loop = 2, .at = offsetof(struct waits_file, entry) + 3 * sizeof f.entry[0]};
    for (int i = 0; i < 5; i++)
        f.entry[i].ns = i;
    assert_true(opens(&f, sizeof f, &w));
    assert_int_equal(vg_waits_of(&w, 9, &entries)->n, 2);
    assert_int_equal(entries[1].ns, 4);
    assert_int_equal(vg_waits_of(&w, 7, &entries)->loop, 1);
    assert_int_equal(entries[2].ns, 2);
    assert_null(vg_waits_of(&w, 8, &entries));
    vg_waits_close(&w);

    struct waits_file bad[6] = {f, f, f, f, f, f};
    bad[0].head.magic[0] = 'x';
    bad[1].head.n_comms = UINT32_MAX;
    bad[2].comm[1].at = UINT64_MAX - 7;
    bad[3].comm[1].n = 3;
    bad[4].comm[1].lineage = 7;
    bad[5].comm[0].loop = 4;
    for (size_t i = 0; i < 6; i++)
        assert_false(opens(&bad[i], sizeof f, &w));
    for (size_t bytes = 0; bytes < sizeof f; bytes++)
        assert_false(opens(&f, bytes, &w));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_assembles),      cmocka_unit_test(test_graphs_and_memory),
        cmocka_unit_test(test_odd_activities), cmocka_unit_test(test_wait_recursion),
        cmocka_unit_test(test_wait_repeats),   cmocka_unit_test(test_fill_stays_inside),
        cmocka_unit_test(test_fill_values),    cmocka_unit_test(test_waits_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
