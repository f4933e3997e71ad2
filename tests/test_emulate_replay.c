/* SPDX-License-Identifier: Apache-2.0 */
/* test_emulate_replay.c - the replay against a simulator that shares nothing with it, closed forms, and itself in other orders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "capture/build.h"
#include "emulate_traces.h"
#include "maquette/replay.h"

struct job {
    struct gen_rank rank[256];
    uint32_t n;
    struct maq_capture *capture;
    struct maq_diag *diag;
    char folder[32];
};

static void fail_with(struct maq_diag *diag)
{
    fail_msg("%s", maq_diag_format(diag, 0, false));
}

static void close_files(struct job *j)
{
    char path[64];
    for (uint32_t r = 0; r < j->n; r++) {
        snprintf(path, sizeof path, "%s/%u", j->folder, r);
        unlink(path);
    }
    rmdir(j->folder);
}

/* Through files, as a capture does it. */
static void capture(struct job *j)
{
    static char path[256][64];
    const char *paths[256];
    snprintf(j->folder, sizeof j->folder, "/tmp/maq-replay-XXXXXX");
    assert_non_null(mkdtemp(j->folder));
    for (uint32_t r = 0; r < j->n; r++) {
        snprintf(path[r], sizeof path[r], "%s/%u", j->folder, r);
        gen_write(&j->rank[r], path[r]);
        paths[j->n - 1 - r] = path[r]; /* in any order */
    }
    j->diag = maq_diag_new();
    if (maq_capture_of_ranks(&j->capture, paths, j->n, j->diag) != MAQ_OK)
        fail_with(j->diag);
    close_files(j);
}

static void open_job(struct job *j, const struct gen_job *of)
{
    *j = (struct job){.n = of->tp * of->pp * of->dp};
    for (uint32_t r = 0; r < j->n; r++)
        gen_job_rank(of, &j->rank[r], r);
    capture(j);
}

static void close_job(struct job *j)
{
    for (uint32_t r = 0; r < j->n; r++)
        gen_free(&j->rank[r]);
    maq_capture_free(j->capture);
    maq_diag_free(j->diag);
}

static struct maq_replay *replay(const struct job *j, struct maq_replay_opts *opts)
{
    struct maq_replay *out = NULL;
    if (maq_capture_replay(&out, j->capture, opts, j->diag) != MAQ_OK)
        fail_with(j->diag);
    return out;
}

static void same_as_naive(struct job *j, struct maq_replay_opts *opts, double *slow)
{
    int64_t *end = naive_run(j->rank, j->n, slow);
    struct maq_replay *r = replay(j, opts), *each;
    struct maq_replay_opts own = MAQ_REPLAY_OPTS_INIT;
    own = opts ? *opts : own;
    own.every_rank = true;
    each = replay(j, &own);
    assert_memory_equal(r->end_ns, each->end_ns, j->n * sizeof *r->end_ns);
    assert_memory_equal(r->share, each->share, j->n * sizeof *r->share);
    assert_int_equal(r->records, each->records);
    assert_int_equal(r->meetings, each->meetings);
    assert_int_equal(r->n_steps, each->n_steps);
    maq_replay_free(each);
    for (uint32_t i = 0; i < j->n; i++) {
        const struct maq_replay_share *s = &r->share[i];
        assert_int_equal(r->end_ns[i], end[i]);
        assert_int_equal(s->compute_ns + s->communication_ns + s->peers_ns + s->host_ns, end[i]);
        assert_true(s->compute_ns >= 0 && s->communication_ns >= 0 && s->peers_ns >= 0 && s->host_ns >= 0);
    }
    maq_replay_free(r);
    free(end);
}

static const struct gen_job jobs[] = {
    {.tp = 1, .pp = 1, .dp = 8, .steps = 3, .layers = 3, .micro = 1, .members = true, .marks = true},
    {.tp = 4, .pp = 1, .dp = 2, .steps = 2, .layers = 2, .micro = 2, .members = true},
    {.tp = 1, .pp = 4, .dp = 1, .steps = 2, .layers = 2, .micro = 6, .message = 1 << 20, .members = true},
    {.tp = 1,
     .pp = 4,
     .dp = 2,
     .steps = 2,
     .layers = 2,
     .micro = 6,
     .message = 64 << 20,
     .members = true,
     .pairs = true},
    {.tp = 2, .pp = 1, .dp = 8, .ep = 4, .steps = 2, .layers = 3, .micro = 1, .zero = true},
    {.tp = 2,
     .pp = 2,
     .dp = 4,
     .ep = 2,
     .steps = 3,
     .layers = 2,
     .micro = 4,
     .message = 8 << 20,
     .zero = true,
     .members = true,
     .pairs = true,
     .marks = true,
     .jitter = 30000},
};

static void test_like_the_naive_one(void **state)
{
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        struct job j;
        open_job(&j, &jobs[i]);
        same_as_naive(&j, NULL, NULL);
        double slow[256];
        for (uint32_t r = 0; r < j.n; r++)
            slow[r] = r == 3 ? 1.5 : 1;
        struct maq_edit edit;
        struct maq_replay_opts opts = MAQ_REPLAY_OPTS_INIT;
        assert_int_equal(maq_edit_slow(&edit, "rank:3=1.5x", j.capture, j.diag), MAQ_OK);
        opts.edit = &edit;
        opts.n_edits = 1;
        same_as_naive(&j, &opts, slow);
        close_job(&j);
    }
}

/* Two ranks that receive before they send, on streams of their own: what lets the other go on lies ahead, near or far. Larger than what
 * is sent without waiting, so both ends wait. */
static void test_far_ahead(void **state)
{
    static const uint32_t between[] = {0, 40, 700, 9000, 40000};
    static const uint32_t members[] = {0, 1};
    for (size_t k = 0; k < sizeof between / sizeof *between; k++) {
        struct job j = {.n = 2};
        for (uint32_t r = 0; r < 2; r++) {
            struct gen_rank *g = &j.rank[r];
            *g = (struct gen_rank){.world = 2, .rank = r, .per_node = 2};
            uint32_t comm = gen_comm(g, 7, 2, r, members);
            for (uint32_t s = 0; s < 5; s++) /* streams and events in the order of first use */
                gen_rec(g, (struct maq_rec){.kind = MAQ_REC_STREAM_SYNC, .stream = (uint16_t)s});
            for (uint32_t e = 0; e < 2; e++)
                gen_rec(g, (struct maq_rec){.kind = MAQ_REC_EVENT_SYNC, .id = e});
            gen_message(g, 1, false, comm, 1 - r, 64 << 20, 500000, false);
            for (uint32_t i = 0; i < between[k]; i++) /* two streams in turn: nothing of it folds */
                gen_launch(g, (uint16_t)(2 + i % 2), "work", 1000 + 10 * r);
            gen_order(g, 2, 4, 0);
            gen_message(g, 4, true, comm, 1 - r, 64 << 20, 500000, false);
            gen_order(g, 1, 2, 1);
            gen_end(g);
        }
        capture(&j);
        same_as_naive(&j, NULL, NULL);
        close_job(&j);
    }
}

static void test_any_order(void **state)
{
    struct job j;
    open_job(&j, &jobs[5]);
    struct maq_replay_opts opts = MAQ_REPLAY_OPTS_INIT;
    struct maq_replay *first = replay(&j, &opts);
    for (uint64_t seed = 1; seed <= 40; seed++) {
        opts.shuffle = seed;
        struct maq_replay *r = replay(&j, &opts);
        assert_memory_equal(r->end_ns, first->end_ns, j.n * sizeof *r->end_ns);
        assert_memory_equal(r->share, first->share, j.n * sizeof *r->share);
        assert_int_equal(r->n_steps, first->n_steps);
        assert_memory_equal(r->step_end_ns, first->step_end_ns, r->n_steps * sizeof *r->step_end_ns);
        maq_replay_free(r);
    }
    maq_replay_free(first);
    close_job(&j);
}

/* Eight equal ranks: launches back to back where the host is faster, one all-reduce a step. */
static void test_closed_form(void **state)
{
    struct job j;
    open_job(&j, &jobs[0]);
    struct maq_replay *r = replay(&j, NULL);
    assert_int_equal(j.capture->n_classes, 1);
    assert_int_equal(r->n_steps, 3);
    int64_t step = 3 * (8000 + 45000 + 30000 + 61000) + 3 * (8000 + 90000 + 30000 + 120000) + 700000 + 50000;
    assert_int_equal(r->step_end_ns[1] - r->step_end_ns[0], r->step_end_ns[2] - r->step_end_ns[1]);
    /* the host works 1.5 us a record: before the first launch of a step, and for the mark and the sync */
    assert_int_equal(r->step_end_ns[1] - r->step_end_ns[0], step + 2 * 1500);
    maq_replay_free(r);
    close_job(&j);
}

/* Without marks the steps are the period of the records, and take the same time. */
static void test_steps_without_marks(void **state)
{
    struct gen_job unmarked = jobs[0];
    struct job a, b;
    unmarked.steps = 6;
    open_job(&a, &unmarked);
    unmarked.marks = false;
    open_job(&b, &unmarked);
    struct maq_replay *marked = replay(&a, NULL), *found = replay(&b, NULL);
    assert_true(marked->steps_marked && !found->steps_marked);
    assert_in_range(found->n_steps, 5, 6);
    for (uint32_t i = 2; i + 1 < found->n_steps; i++) /* a mark is a record more for the host */
        assert_int_equal(found->step_end_ns[i] - found->step_end_ns[i - 1],
                         marked->step_end_ns[i] - marked->step_end_ns[i - 1] - 1500);
    maq_replay_free(marked);
    maq_replay_free(found);
    close_job(&a);
    close_job(&b);
}

/* A rank that stops: steps that all ended count, and the others wait until the time-out. */
static void test_failure(void **state)
{
    struct job j;
    open_job(&j, &jobs[0]);
    struct maq_replay_opts opts = MAQ_REPLAY_OPTS_INIT;
    struct maq_edit edit;
    struct maq_replay *whole = replay(&j, NULL);
    assert_int_equal(maq_edit_fail(&edit, "rank:6=step:2", j.capture, j.diag), MAQ_OK);
    opts.edit = &edit;
    opts.n_edits = 1;
    opts.timeout_ns = 1000000000;
    struct maq_replay *r = replay(&j, &opts);
    assert_true(r->failed);
    assert_int_equal(r->failed_rank, 6);
    assert_int_equal(r->failed_ns, whole->step_end_ns[1]);
    assert_int_equal(r->n_waiting, 7);
    assert_int_equal(r->n_steps, 2);
    /* they come to the reduction of the third step, and wait a second */
    int64_t until = whole->step_end_ns[2] - 50000 - 700000 - 1500;
    assert_in_range(r->reported_ns, until + 1000000000 - 5000, until + 1000000000 + 5000);
    maq_replay_free(r);
    maq_replay_free(whole);
    close_job(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_like_the_naive_one),  cmocka_unit_test(test_far_ahead),
        cmocka_unit_test(test_any_order),           cmocka_unit_test(test_closed_form),
        cmocka_unit_test(test_steps_without_marks), cmocka_unit_test(test_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
