/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_capture_graph.c - captured jobs as execution graphs: the quotient by classes of ranks ends when the replay of all ranks
 * does, on jobs with tensor, pipeline, expert and data parallelism, and says where it is not exact.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/check.h"
#include "capture/build.h"
#include "emulate_traces.h"
#include "maquette/maquette.h"

/* A capture of all ranks of a job. */
static struct maq_capture *capture_of(const struct gen_job *job)
{
    uint32_t world = job->tp * job->pp * job->dp;
    const char *paths[256];
    char path_of[256][96], folder[] = "/tmp/maq-capture-graph-XXXXXX";
    struct maq_diag *diag = maq_diag_new();
    struct maq_capture *c = NULL;
    assert_non_null(mkdtemp(folder));
    assert_true(world <= 256);
    for (uint32_t i = 0; i < world; i++) {
        struct gen_rank g;
        gen_job_rank(job, &g, i);
        snprintf(path_of[i], sizeof path_of[i], "%s/%u", folder, i);
        gen_write(&g, paths[i] = path_of[i]);
        gen_free(&g);
    }
    if (maq_capture_of_ranks(&c, paths, world, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    for (uint32_t i = 0; i < world; i++)
        unlink(path_of[i]);
    rmdir(folder);
    maq_diag_free(diag);
    return c;
}

static double graph_end(const struct maq_capture *c, struct maq_captured_graph *g)
{
    struct maq_diag *diag = maq_diag_new();
    if (maq_capture_graph(g, c, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    double end, dynamic, *finish = calloc(g->timed.graph.n_nodes + 1, sizeof *finish);
    maq_engine_static(&end, finish, &g->timed.graph, 1, g->timed.dur_ns);
    struct maq_interference none = {.compute = 1, .comm = 1};
    assert_int_equal(maq_engine_dynamic(&dynamic, finish, &g->timed.graph, g->timed.dur_ns, &none, NULL), MAQ_OK);
    assert_true(dynamic == end);
    free(finish);
    return end;
}

static const struct gen_job jobs[] = {
    {.tp = 1, .pp = 1, .dp = 16, .steps = 2, .layers = 2, .micro = 2, .members = true},
    {.tp = 4, .pp = 1, .dp = 4, .steps = 2, .layers = 2, .micro = 2, .zero = true, .members = true},
    {.tp = 2, .pp = 4, .dp = 2, .steps = 2, .layers = 2, .micro = 6, .members = true, .message = 1 << 20},
    {.tp = 2,
     .pp = 4,
     .dp = 4,
     .steps = 2,
     .layers = 1,
     .micro = 8,
     .members = true,
     .message = 16 << 20,
     .pairs = true},
    {.tp = 1, .pp = 2, .dp = 8, .ep = 4, .steps = 2, .layers = 2, .micro = 4, .members = true, .message = 1 << 10},
    {.tp = 2,
     .pp = 3,
     .dp = 4,
     .ep = 2,
     .steps = 1,
     .layers = 3,
     .micro = 5,
     .members = true,
     .message = 8 << 20,
     .pairs = true,
     .marks = true,
     .zero = true},
};

static void test_quotient_is_the_replay(void **state)
{
    for (size_t i = 0; i < MAQ_COUNT(jobs); i++) {
        struct maq_capture *c = capture_of(&jobs[i]);
        struct maq_captured_graph g;
        struct maq_replay *replay;
        double end = graph_end(c, &g);
        assert_int_equal(maq_capture_replay(&replay, c, NULL, NULL), MAQ_OK);
        assert_true(c->n_classes <= jobs[i].pp && c->world == jobs[i].tp * jobs[i].pp * jobs[i].dp);
        assert_int_equal(g.timed.graph.n_classes, c->n_classes);
        assert_int_equal(g.unmet, 0);
        assert_true(g.exact);
        assert_true(end == (double)replay->makespan_ns);
        uint32_t ranks = 0;
        for (uint32_t k = 0; k < g.timed.graph.n_classes; k++)
            ranks += g.timed.graph.multiplicity[k];
        assert_int_equal(ranks, c->world);
        maq_replay_free(replay);
        maq_captured_graph_free(&g);
        maq_capture_free(c);
    }
}

/* Ids are a topological order, nobody is its own predecessor, and what several classes share names them all. */
static void test_form(void **state)
{
    struct maq_capture *c = capture_of(&jobs[2]);
    struct maq_captured_graph g;
    (void)graph_end(c, &g);
    const struct maq_graph *graph = &g.timed.graph;
    for (uint32_t v = 0; v < graph->n_nodes; v++) {
        assert_true(graph->item[v] < graph->n_items && graph->stream[v] < graph->n_classes * MAQ_STREAM_COUNT);
        for (uint32_t e = graph->pred_at[v]; e < graph->pred_at[v + 1]; e++)
            assert_true(graph->pred[e] < v);
    }
    uint32_t world = 0;
    for (uint32_t i = 0; i < g.timed.n_shares; i++) {
        assert_true(i == 0 || g.timed.share[i].node >= g.timed.share[i - 1].node);
        world += strncmp(g.timed.item_name[graph->item[g.timed.share[i].node]], "broadcast", 9) == 0;
    }
    assert_int_equal(world, graph->n_classes - 1); /* the first collective is of all */
    maq_captured_graph_free(&g);
    maq_capture_free(c);
}

/*
 * A pipeline whose ends are one class, because only its two ends were told apart by what they send: not a job that can be made with
 * the generator, so the classes of a sound one are joined by hand. Ranks of the class do not agree on their peers then.
 */
static void test_inexact(void **state)
{
    struct maq_capture *c = capture_of(&jobs[2]);
    struct maq_captured_graph g;
    uint32_t *class_of = (uint32_t *)(uintptr_t)c->class_of;
    struct maq_rank_class *k = (struct maq_rank_class *)(uintptr_t)c->class_of_ranks;
    uint32_t moved = k[1].rank[k[1].n_ranks - 1]; /* a rank of the second stage that is said to be of the third */
    assert_true(c->n_classes >= 3);
    class_of[moved] = 2;
    k[1].n_ranks--;
    (void)graph_end(c, &g);
    assert_false(g.exact);
    maq_captured_graph_free(&g);
    maq_capture_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quotient_is_the_replay),
        cmocka_unit_test(test_form),
        cmocka_unit_test(test_inexact),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("capture_graph", tests, NULL, NULL);
}
