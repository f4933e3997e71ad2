/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_shim_graph.c - CUDA graphs: captured and built by hand, launched in virtual time against sums made by hand, updated,
 * copied, spoiled.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "shim/core/graph.h"
#include "shim_card.h"
#include "shim_streams.h"

/* A fork of two streams that join again: 100, then 1000 beside 200 + 300, then 10. */
static struct vg_graph *diamond(struct vg_stream *a, struct vg_stream *b, uint64_t long_side)
{
    struct vg_event *fork = vg_event_new(0), *joined = vg_event_new(0);
    assert_true(vg_capture_begin(a, 0));
    assert_false(vg_capture_begin(a, 0));
    work(a, 100);
    vg_event_record(fork, a);
    vg_stream_wait(b, fork);
    assert_true(vg_stream_capturing(b));
    work(a, long_side);
    work(b, 200);
    work(b, 300);
    vg_event_record(joined, b);
    vg_stream_wait(a, joined);
    work(a, 10);
    struct vg_graph *graph = vg_capture_end(a);
    assert_non_null(graph);
    assert_false(vg_stream_capturing(b));
    vg_event_free(fork);
    vg_event_free(joined);
    return graph;
}

static void test_capture(void **state)
{
    struct vg_stream *a = fresh(), *b = fresh(), *c = fresh();
    size_t before, n;
    free(shim_records(&before));
    struct vg_graph *graph = diamond(a, b, 1000);
    assert_int_equal(graph->n, 5);
    free(shim_records(&n));
    assert_int_equal(n, before); /* what is captured does not run */
    struct vg_exec *exec = vg_exec_new(graph);
    vg_graph_free(graph);
    int64_t t = vg_now();
    vg_exec_launch(exec, c);
    assert_int_equal(end_of(c), t + 100 + 1000 + 10);
    vg_exec_launch(exec, c);
    assert_int_equal(end_of(c), t + 2 * (100 + 1000 + 10));
    work(c, 1);
    assert_int_equal(end_of(c), t + 2 * (100 + 1000 + 10) + 1);
    struct maq_rec *r = shim_records(&n);
    unsigned launched = 0;
    for (size_t i = before; i < n; i++)
        launched += (r[i].flags & MAQ_REC_GRAPH) != 0;
    assert_int_equal(launched, 10);
    free(r);
    struct vg_graph *other = diamond(a, b, 50);
    assert_true(vg_exec_update(exec, other));
    t = end_of(c);
    vg_exec_launch(exec, c);
    assert_int_equal(end_of(c), t + 100 + 500 + 10);
    vg_graph_free(other);
    vg_exec_free(exec);
    vg_stream_free(a);
    vg_stream_free(b);
    vg_stream_free(c);
}

/* Work on a forked stream that nobody waited for, and captures that mix. */
static void test_spoiled(void **state)
{
    struct vg_stream *a = fresh(), *b = fresh();
    struct vg_event *fork = vg_event_new(0), *other = vg_event_new(0);
    assert_true(vg_capture_begin(a, 0));
    work(a, 1);
    vg_event_record(fork, a);
    vg_stream_wait(b, fork);
    work(b, 1);
    assert_null(vg_capture_end(b)); /* it did not begin there */
    assert_null(vg_capture_end(a));
    assert_false(vg_stream_capturing(b));
    assert_true(vg_capture_begin(a, 0));
    assert_true(vg_capture_begin(b, 0));
    work(b, 1);
    vg_event_record(other, b);
    vg_stream_wait(a, other);
    assert_null(vg_capture_end(a));
    assert_null(vg_capture_end(b));
    int64_t t = vg_now();
    work(a, 5); /* streams are as before */
    assert_int_equal(end_of(a), t + 5);
    vg_event_free(fork);
    vg_event_free(other);
    vg_stream_free(a);
    vg_stream_free(b);
}

static struct vg_node *node(struct vg_graph *graph, uint64_t ns, const uint32_t *deps, uint32_t n)
{
    struct vg_node *node = vg_graph_add(graph, VG_NODE_REC, deps, n);
    assert_non_null(node);
    node->rec = (struct maq_rec){.kind = MAQ_REC_SET, .bytes = 1, .ns = ns};
    return node;
}

/* Any graph takes as long as its longest path, as long as there are branches enough. */
static void test_longest_path(void **state)
{
    enum { N = 14 };
    uint64_t seed = 3;
    for (int round = 0; round < 200; round++) {
        struct vg_graph *graph = vg_graph_new();
        int64_t end[N], longest = 0;
        for (uint32_t i = 0; i < N; i++) {
            uint32_t deps[N], n = 0;
            int64_t start = 0;
            for (uint32_t k = 0; k < i; k++) {
                seed = maq_rec_mix(seed, k);
                if (seed % 4 != 0)
                    continue;
                deps[n++] = k;
                start = end[k] > start ? end[k] : start;
            }
            uint64_t ns = 1 + seed % 1000;
            node(graph, ns, deps, n);
            end[i] = start + (int64_t)ns;
            longest = end[i] > longest ? end[i] : longest;
        }
        struct vg_exec *exec = vg_exec_new(graph);
        assert_non_null(exec);
        struct vg_stream *s = fresh();
        int64_t t = vg_now();
        vg_exec_launch(exec, s);
        assert_int_equal(end_of(s), t + longest);
        vg_stream_free(s);
        vg_exec_free(exec);
        vg_graph_free(graph);
    }
}

static void test_by_hand(void **state)
{
    struct vg_graph *graph = vg_graph_new();
    struct vg_node *a = node(graph, 10, NULL, 0), *b = node(graph, 20, NULL, 0);
    assert_true(vg_node_depend(a, b->index)); /* against the order of making */
    struct vg_graph *copy = vg_graph_copy(graph);
    struct vg_exec *exec = vg_exec_new(copy);
    struct vg_stream *s = fresh();
    int64_t t = vg_now();
    vg_exec_launch(exec, s);
    assert_int_equal(end_of(s), t + 30);
    assert_true(vg_node_depend(b, a->index));
    assert_null(vg_exec_new(graph)); /* a cycle */
    assert_false(vg_exec_update(exec, graph));
    uint32_t none[] = {7};
    assert_null(vg_graph_add(graph, VG_NODE_EMPTY, none, 1));
    vg_exec_free(exec);
    vg_graph_free(copy);
    vg_graph_free(graph);
    vg_stream_free(s);
}

int main(void)
{
    shim_card("");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_capture),
        cmocka_unit_test(test_spoiled),
        cmocka_unit_test(test_longest_path),
        cmocka_unit_test(test_by_hand),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    shim_done();
    return failed;
}
