/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_import_kineto.c - profiler traces of PyTorch as captured jobs: what every event becomes, and that a replay of the records
 * without edits gives back the trace, to the nanosecond where the trace is complete.
 *
 * maq-test: long
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/check.h"
#include "base/stat/rng.h"
#include "base/str.h"
#include "capture/import/codes.h"
#include "capture/import/kineto/kineto.h"
#include "capture/import/readers.h"
#include "maquette/maquette.h"
#include "maquette/replay.h"

static struct maq_capture *import(const char *const *paths, uint32_t n)
{
    struct maq_diag *diag = maq_diag_new();
    struct maq_capture *c = NULL;
    if (maq_import_kineto(&c, paths, n, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return c;
}

/* A graph of it, with the end of every node. */
struct run {
    struct maq_captured_graph g;
    double end, *finish;
};

static void run_open(struct run *r, const struct maq_capture *c)
{
    struct maq_diag *diag = maq_diag_new();
    if (maq_capture_graph(&r->g, c, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    r->finish = calloc(r->g.timed.graph.n_nodes + 1, sizeof *r->finish);
    maq_engine_static(&r->end, r->finish, &r->g.timed.graph, 1, r->g.timed.dur_ns);
    maq_diag_free(diag);
}

static void run_close(struct run *r)
{
    free(r->finish);
    maq_captured_graph_free(&r->g);
}

/* All ranks replayed say the same. */
static void check_replay(const struct run *r, const struct maq_capture *c)
{
    struct maq_diag *diag = maq_diag_new();
    struct maq_replay_opts opts = MAQ_REPLAY_OPTS_INIT;
    struct maq_replay *replay = NULL;
    if (maq_capture_replay(&replay, c, &opts, diag) != MAQ_OK || maq_capture_check(c, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    assert_true(r->end == (double)replay->makespan_ns);
    maq_replay_free(replay);
    maq_diag_free(diag);
}

static double time_of(const struct run *r, enum maq_item_sort sort)
{
    double ns = 0;
    for (uint32_t v = 0; v < r->g.timed.graph.n_nodes; v++)
        if (r->g.timed.item_sort[r->g.timed.graph.item[v]] == sort)
            ns += r->g.timed.dur_ns[r->g.timed.graph.item[v]];
    return ns;
}

static double gap_after(const struct run *r, double from)
{
    double ns = 0;
    for (uint32_t v = 0; v < r->g.timed.graph.n_nodes; v++) {
        uint32_t item = r->g.timed.graph.item[v];
        if (r->g.timed.item_sort[item] == MAQ_ITEM_GAP && r->finish[v] > from)
            ns += r->g.timed.dur_ns[item];
    }
    return ns;
}

static void check_times(const struct run *r)
{
    struct maq_graph_times t;
    uint32_t class_id;
    double sum = 0;
    assert_int_equal(maq_graph_times(&t, &class_id, &r->g.timed, r->finish), MAQ_OK);
    for (int b = 0; b < MAQ_BUCKET_COUNT; b++)
        sum += t.bucket_ns[b];
    assert_true(sum == r->end && t.makespan_ns == r->end);
}

static uint32_t count(const struct maq_rank_class *k, enum maq_rec_kind kind)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < k->n_records; i++)
        n += k->record[i].kind == kind;
    return n;
}

static const struct maq_rec *find(const struct maq_rank_class *k, enum maq_rec_kind kind, uint32_t nth)
{
    for (uint32_t i = 0; i < k->n_records; i++)
        if (k->record[i].kind == kind && nth-- == 0)
            return &k->record[i];
    fail_msg("no such record");
    return NULL;
}

/* --- traces ------------------------------------------------------------------------------------------------------------ */

struct file {
    char path[128];
    FILE *f;
    int64_t correlation;
    int64_t from; /* the recording begins here: no call before it, no work of the device that has ended by then [ns] */
};

static void file_open(struct file *t, uint32_t number, const char *facts)
{
    *t = (struct file){0};
    snprintf(t->path, sizeof t->path, "/tmp/maq-kineto-%ld-%u.json", (long)getpid(), number);
    t->f = fopen(t->path, "w");
    assert_non_null(t->f);
    fprintf(t->f, "{\n%s  \"traceEvents\": [\n    {\"ph\": \"M\", \"name\": \"process_name\"}", facts);
}

static void file_close(struct file *t)
{
    fprintf(t->f, "\n  ]\n}\n");
    assert_int_equal(fclose(t->f), 0);
}

/* Nanoseconds as the profiler writes them, a day after the epoch. */
static void event(struct file *t, const char *cat, const char *name, int64_t ns, int64_t dur, const char *args)
{
    if (strcmp(cat, "kernel") == 0 ? ns + dur <= t->from : ns < t->from)
        return;
    ns += INT64_C(86400) * 1000000000;
    fprintf(t->f,
            ",\n    {\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": 1, \"tid\": 7, \"ts\": %lld.%03lld, "
            "\"dur\": %lld.%03lld, \"args\": {%s}}",
            cat, name, (long long)(ns / 1000), (long long)(ns % 1000), (long long)(dur / 1000), (long long)(dur % 1000),
            args);
}

static void call(struct file *t, const char *name, int64_t ns, int64_t dur)
{
    char args[64];
    snprintf(args, sizeof args, "\"correlation\": %lld", (long long)++t->correlation);
    event(t, "cuda_runtime", name, ns, dur, args);
}

static void kernel(struct file *t, const char *name, uint32_t stream, int64_t ns, int64_t dur, const char *more)
{
    char args[512];
    snprintf(args, sizeof args, "\"correlation\": %lld, \"stream\": %u, \"grid\": [8, 2, 1], \"block\": [128, 1, 1]%s",
             (long long)t->correlation, stream, more);
    event(t, "kernel", name, ns, dur, args);
}

/* --- exact ---------------------------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/*
 * A program drawn at random: one host, up to four streams, kernels with launch latency and gaps, waits between streams and of
 * the host; in half of the traces with cuda_sync events, which say who waits for whom. Half of the recordings begin in the middle of the
 * program, with the device at work.
 */
static void test_random_programs(void **state)
{
    enum { STREAMS = 4, STEPS = 400 };
    uint32_t in_flight = 0;
    for (uint32_t seed = 0; seed < 120; seed++) {
        struct maq_rng rng = maq_rng_of(5, MAQ_RNG_TEST, seed);
        struct file t;
        bool told = seed % 2;
        int64_t host = 0, end[STREAMS] = {0}, last = 0, latency = 2000 + (int64_t)(maq_rng_next(&rng) * 4000);
        int64_t event_at = -1, event_call = 0;
        uint32_t event_stream = 0, n = 0;
        double *ends = calloc(STEPS, sizeof *ends);
        file_open(&t, 0, "");
        t.from = seed < 60 ? 0 : 400000 + (int64_t)(maq_rng_next(&rng) * 100000);
        for (uint32_t i = 0; i < STEPS; i++) {
            double what = maq_rng_next(&rng);
            uint32_t s = (uint32_t)(maq_rng_next(&rng) * STREAMS);
            int64_t begin = host + (int64_t)(maq_rng_next(&rng) * (what < 0.1 ? 90000 : 4000));
            host = begin + 500 + (int64_t)(maq_rng_next(&rng) * 3000);
            if (what < 0.75) {
                call(&t, "cudaLaunchKernel", begin, host - begin);
                int64_t start = host + latency > end[s] ? host + latency : end[s];
                start += (int64_t)(maq_rng_next(&rng) * 1500);
                end[s] = start + 1000 + (int64_t)(maq_rng_next(&rng) * 30000);
                kernel(&t, i % 3 ? "sgemm" : "relu", s + 7, start, end[s] - start, "");
                if (end[s] > t.from)
                    ends[n++] = (double)end[s];
                in_flight += begin < t.from && end[s] > t.from;
                last = end[s] > last ? end[s] : last;
            } else if (what < 0.83) {
                call(&t, "cudaEventRecord", begin, host - begin);
                event_at = end[s] > host ? end[s] : host;
                event_stream = s;
                event_call = t.correlation;
            } else if (what < 0.92 && event_at >= 0 && s != event_stream) {
                char args[200];
                call(&t, "cudaStreamWaitEvent", begin, host - begin);
                snprintf(args, sizeof args,
                         "\"correlation\": %lld, \"stream\": %u, \"wait_on_stream\": %u, "
                         "\"wait_on_cuda_event_record_corr_id\": %lld",
                         (long long)t.correlation, s + 7, event_stream + 7, (long long)event_call);
                if (told)
                    event(&t, "cuda_sync", "Stream Wait Event", begin, 0, args);
                end[s] = event_at > end[s] ? event_at : end[s];
            } else if (what > 0.97) {
                host = last > host ? last + 300 : host;
                call(&t, "cudaDeviceSynchronize", begin, host - begin);
            } else if (what > 0.94) {
                host = end[s] > host ? end[s] + 300 : host;
                call(&t, "cudaStreamSynchronize", begin, host - begin);
            }
        }
        file_close(&t);
        const char *paths[] = {t.path};
        struct maq_capture *c = import(paths, 1);
        struct run r;
        struct maq_kineto k;
        struct maq_arena arena;
        maq_arena_init(&arena, 0);
        assert_int_equal(maq_kineto_read(&k, t.path, &arena, NULL), MAQ_OK);
        run_open(&r, c);
        assert_true(r.end == (double)(k.end - k.begin)); /* the trace's own span, to the nanosecond */
        check_times(&r);
        check_replay(&r, c);
        double *got = calloc(STEPS, sizeof *got);
        uint32_t n_got = 0;
        int64_t shift = k.begin - INT64_C(86400) * 1000000000;
        for (uint32_t v = 0; v < r.g.timed.graph.n_nodes; v++)
            if (r.g.timed.item_sort[r.g.timed.graph.item[v]] == MAQ_ITEM_COMPUTE)
                got[n_got++] = r.finish[v] + (double)shift;
        assert_int_equal(n_got, n);
        qsort(got, n, sizeof *got, by_value);
        qsort(ends, n, sizeof *ends, by_value);
        for (uint32_t i = 0; i < n; i++)
            assert_true(got[i] == ends[i]);
        if (told) /* nothing is left that the trace does not explain, once the streams have their first work */
            assert_true(gap_after(&r, t.from > 0 ? (double)(t.from - shift) + 10000 : 0) == 0);
        run_close(&r);
        free(got);
        free(ends);
        maq_kineto_fini(&k);
        maq_arena_fini(&arena);
        maq_capture_free(c);
        unlink(t.path);
    }
    assert_true(in_flight > 60);
}

/* A kernel of another stream starts when one ends, behind a cudaStreamWaitEvent that names neither: it is taken to wait. */
static void test_inferred_wait(void **state)
{
    struct file t;
    file_open(&t, 0, "");
    call(&t, "cudaLaunchKernel", 0, 2000);
    kernel(&t, "a", 7, 4000, 100000, "");
    call(&t, "cudaStreamWaitEvent", 3000, 1000);
    call(&t, "cudaLaunchKernel", 5000, 2000);
    kernel(&t, "b", 20, 105000, 50000, "");
    call(&t, "cudaStreamSynchronize", 8000, 150000);
    call(&t, "cudaLaunchKernel", 160000, 2000);
    kernel(&t, "c", 20, 200000, 10000, "");
    file_close(&t);
    const char *paths[] = {t.path};
    struct maq_capture *c = import(paths, 1);
    const struct maq_rank_class *k = &c->class_of_ranks[0];
    assert_int_equal(count(k, MAQ_REC_STREAM_WAIT), 1);
    assert_int_equal(count(k, MAQ_REC_EVENT_RECORD), 2); /* after a, and after b for the host */
    assert_int_equal(find(k, MAQ_REC_STREAM_WAIT, 0)->stream, find(k, MAQ_REC_LAUNCH, 1)->stream);
    assert_int_equal(find(k, MAQ_REC_LAUNCH, 1)->ns, 51000); /* 1 us behind the end of a counts as its own */
    assert_int_equal(count(k, MAQ_REC_EVENT_SYNC), 1);
    assert_int_equal(count(k, MAQ_REC_LAUNCH), 4); /* c begins 38 us late and nothing says why: a gap */
    assert_string_equal(c->op[find(k, MAQ_REC_LAUNCH, 2)->id].name, "gap that the trace does not explain");
    maq_capture_free(c);
    unlink(t.path);
}

/* --- work without a launch --------------------------------------------------------------------------------------------------- */

static bool said(const struct maq_diag *diag, uint32_t code, const char *text)
{
    for (size_t i = 0; i < maq_diag_count(diag); i++)
        if (maq_diag_at(diag, i)->code == code && strstr(maq_diag_at(diag, i)->msg.ptr, text))
            return true;
    return false;
}

/* A recording that begins while three kernels are in flight on one stream, two of them behind the first call that it has. */
static void test_in_flight(void **state)
{
    struct file t;
    file_open(&t, 0, "");
    t.from = 1000000;
    for (int i = 0; i < 3; i++)
        call(&t, "cudaLaunchKernel", 900000 + 10000 * i, 5000);
    t.correlation = 0;
    for (int i = 0; i < 3; i++) {
        static const int64_t at[] = {1000000, 1400000, 1900000, 2000000};
        t.correlation++;
        kernel(&t, "before", 7, at[i], at[i + 1] - at[i], "");
    }
    call(&t, "cudaLaunchKernel", 1005000, 5000);
    kernel(&t, "now_a", 7, 2000000, 300000, "");
    call(&t, "cudaLaunchKernel", 1015000, 5000);
    kernel(&t, "now_b", 7, 2300000, 200000, "");
    file_close(&t);
    struct maq_diag *diag = maq_diag_new();
    const char *path = t.path;
    struct maq_capture *c = NULL;
    struct run r;
    assert_int_equal(maq_import_kineto(&c, &path, 1, diag), MAQ_OK);
    assert_true(said(diag, MAQ_CODE_IMPORT_UNLAUNCHED, "3 of 5 events of the device, 1 of 1.5 ms"));
    run_open(&r, c);
    assert_true(r.end == 1500000);
    assert_true(time_of(&r, MAQ_ITEM_GAP) == 0 && time_of(&r, MAQ_ITEM_COMPUTE) == 1500000);
    static const uint64_t ns[] = {400000, 500000, 100000, 300000, 200000};
    for (uint32_t i = 0; i < MAQ_COUNT(ns); i++)
        assert_int_equal(find(&c->class_of_ranks[0], MAQ_REC_LAUNCH, i)->ns, ns[i]);
    check_times(&r);
    check_replay(&r, c);
    run_close(&r);
    maq_capture_free(c);
    maq_diag_free(diag);
    unlink(t.path);
}

/* A kernel in flight on another stream that waited for one on the first: the calls that say so are before the recording too. */
static void test_in_flight_wait(void **state)
{
    struct file t;
    file_open(&t, 0, "");
    t.correlation = 1;
    kernel(&t, "backward", 7, 0, 500000, "");
    t.correlation = 2;
    kernel(&t, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 20, 502000, 300000, "");
    t.correlation = 2;
    call(&t, "cudaLaunchKernel", 10000, 5000);
    kernel(&t, "now", 7, 500000, 900000, "");
    call(&t, "cudaDeviceSynchronize", 20000, 1390000);
    file_close(&t);
    const char *path = t.path;
    struct maq_capture *c = import(&path, 1);
    struct run r;
    const struct maq_rank_class *k = &c->class_of_ranks[0];
    assert_int_equal(count(k, MAQ_REC_STREAM_WAIT), 1);
    run_open(&r, c);
    assert_true(r.end == 1410000 && time_of(&r, MAQ_ITEM_GAP) == 0);
    check_replay(&r, c);
    run_close(&r);
    maq_capture_free(c);
    unlink(t.path);
}

/* A launch lost in the middle keeps its place; and in a trace of the device alone everything starts when it did. */
static void test_lost_launches(void **state)
{
    for (int alone = 0; alone < 2; alone++) {
        struct file t;
        file_open(&t, 0, "");
        for (int i = 0; i < 4; i++) {
            if (!alone && i != 2)
                call(&t, "cudaLaunchKernel", 1000 * i, 500);
            else
                t.correlation++;
            kernel(&t, "k", 7, 5000 + 100000 * (int64_t)i, 100000, "");
        }
        file_close(&t);
        struct maq_diag *diag = maq_diag_new();
        const char *path = t.path;
        struct maq_capture *c = NULL;
        struct run r;
        assert_int_equal(maq_import_kineto(&c, &path, 1, diag), MAQ_OK);
        assert_true(said(diag, MAQ_CODE_IMPORT_UNLAUNCHED,
                         alone ? "no launch of any of its 4 events" : "launches of 1 of 4 events"));
        run_open(&r, c);
        assert_true(time_of(&r, MAQ_ITEM_GAP) == 0);
        for (uint32_t i = alone ? 0 : 1; i < 4; i++)
            assert_int_equal(find(&c->class_of_ranks[0], MAQ_REC_LAUNCH, i)->ns, 100000);
        check_times(&r);
        check_replay(&r, c);
        run_close(&r);
        maq_capture_free(c);
        maq_diag_free(diag);
        unlink(t.path);
    }
}

/* --- what kernels are ------------------------------------------------------------------------------------------------------ */

static void test_shapes(void **state)
{
    static const struct {
        const char *host, *dims, *kernel;
        int kind;
        int64_t d[6];
    } cases[] = {
        {"aten::mm", "[[4096, 1024], [1024, 512]]", "sm90_xmma_gemm_x", MAQ_REC_GEMM, {512, 4096, 1024, 1}},
        {"aten::addmm", "[[512], [4096, 1024], [1024, 512]]", "nvjet_x", MAQ_REC_GEMM, {512, 4096, 1024, 1}},
        {"aten::bmm", "[[16, 128, 64], [16, 64, 96]]", "cutlass_gemm", MAQ_REC_GEMM, {96, 128, 64, 16}},
        {"aten::linear", "[[2, 64, 256], [512, 256], []]", "ampere_sgemm", MAQ_REC_GEMM, {512, 128, 256, 1}},
        {"aten::mm", "[[4096, 1024], [1024, 512]]", "elementwise_kernel", MAQ_REC_KERNEL, {0}},
        {"aten::mm", "[[4096, 1024], [99, 512]]", "gemm", MAQ_REC_KERNEL, {0}},
        {"aten::_scaled_dot_product_flash_attention",
         "[[2, 32, 4096, 128], [2, 8, 4096, 128], [2, 8, 4096, 128]]",
         "flash_fwd_kernel",
         MAQ_REC_ATTENTION,
         {2, 32, 8, 4096, 4096, 128}},
        {"flash_attn::_flash_attn_backward",
         "[[2, 4096, 32, 128], [2, 4096, 32, 128], [2, 2048, 8, 128], [2, 2048, 8, 128]]",
         "flash_bwd_kernel",
         MAQ_REC_ATTENTION_BWD,
         {2, 32, 8, 4096, 2048, 128}},
        {"aten::native_layer_norm",
         "[[4, 2048, 768], [], [768]]",
         "vectorized_layer_norm_kernel",
         MAQ_REC_NORM,
         {8192, 768}},
    };
    struct file t;
    char args[400];
    file_open(&t, 0, "");
    for (uint32_t i = 0; i < MAQ_COUNT(cases); i++) {
        snprintf(args, sizeof args, "\"Input Dims\": %s, \"Input type\": [\"c10::BFloat16\", \"c10::BFloat16\"]",
                 cases[i].dims);
        event(&t, "cpu_op", cases[i].host, 1000000 * i, 50000, args);
        call(&t, "cudaLaunchKernel", 1000000 * i + 1000, 2000);
        kernel(&t, cases[i].kernel, 7, 1000000 * i + 5000, 20000, "");
    }
    file_close(&t);
    const char *paths[] = {t.path};
    struct maq_capture *c = import(paths, 1);
    for (uint32_t i = 0; i < MAQ_COUNT(cases); i++) {
        const struct maq_captured_op *op = &c->op[find(&c->class_of_ranks[0], MAQ_REC_LAUNCH, i)->id];
        assert_int_equal(op->what->kind, cases[i].kind);
        assert_string_equal(op->name, cases[i].kernel);
        assert_int_equal(op->what->grid[0], 8);
        assert_memory_equal(op->what->d, cases[i].d, sizeof cases[i].d);
        assert_int_equal(op->what->type, cases[i].kind == MAQ_REC_KERNEL ? MAQ_REC_TYPE_OTHER : MAQ_REC_BF16);
    }
    maq_capture_free(c);
    unlink(t.path);
}

/* --- several ranks ---------------------------------------------------------------------------------------------------------- */

static const char *facts(char buf[400], uint32_t rank, uint32_t world, const char *groups)
{
    snprintf(
        buf, 400,
        "  \"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA H100 80GB HBM3\"}, {\"id\": 1, \"name\": \"x\"}],\n"
        "  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": %u, \"world_size\": %u, \"pg_config\": [%s]},\n",
        rank, world, groups);
    return buf;
}

/* A collective of which one rank comes 40 us late: what it takes is what the late one saw, and everybody waits for it. */
static void test_two_ranks(void **state)
{
    struct file t[2];
    char buf[400];
    const char *paths[2];
    for (uint32_t rank = 0; rank < 2; rank++) {
        int64_t work = rank == 0 ? 50000 : 90000, came = 2000 + 3000 + work;
        file_open(&t[rank], rank,
                  facts(buf, rank, 2, "{\"pg_name\": \"0\", \"pg_desc\": \"default_pg\", \"ranks\": [0, 1]}"));
        call(&t[rank], "cudaLaunchKernel", 0, 2000);
        kernel(&t[rank], "work", 7, 5000, work, "");
        call(&t[rank], "cudaLaunchKernel", 3000, 2000);
        kernel(&t[rank], "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 7, came, 5000 + 90000 + 20000 - came,
               ", \"Collective name\": \"allreduce\", \"In msg nelems\": 1024, \"Out msg nelems\": 1024, \"Group "
               "size\": 2, "
               "\"dtype\": \"BFloat16\", \"Process Group Name\": \"0\"");
        file_close(&t[rank]);
        paths[rank] = t[rank].path;
    }
    struct maq_capture *c = import(paths, 2);
    assert_int_equal(c->world, 2);
    assert_int_equal(c->per_node, 2);
    assert_string_equal(c->device, "h100-sxm");
    assert_int_equal(c->n_classes, 2);
    assert_int_equal(c->n_comms, 1);
    for (uint32_t rank = 0; rank < 2; rank++) {
        const struct maq_rec *r = find(&c->class_of_ranks[rank], MAQ_REC_COLL, 0);
        assert_int_equal(r->ns, 20000);
        assert_int_equal(r->bytes, 2048);
        assert_int_equal(MAQ_REC_COLL_KIND(r->id), MAQ_REC_ALL_REDUCE);
        assert_int_equal(MAQ_REC_COLL_TYPE(r->id), MAQ_REC_BF16);
    }
    struct run r;
    run_open(&r, c);
    assert_true(r.g.exact && r.g.unmet == 0);
    assert_true(r.end == 115000); /* launched at 5 us; 90 + 20 us */
    assert_int_equal(r.g.timed.n_shares, 1);
    check_times(&r);
    check_replay(&r, c);
    run_close(&r);
    maq_capture_free(c);
    unlink(t[0].path);
    unlink(t[1].path);
}

/* One rank of eight, with a group of two neighbours and one of four with stride 2: the others are filled in. */
/* Three steps, each with one kernel that the host waits for: as long as they were, the first one and the last one, too. */
static void test_steps(void **state)
{
    static const int64_t begin[] = {0, 100000, 250000}, length[] = {100000, 150000, 80000};
    struct file t;
    char buf[400], name[32];
    file_open(&t, 0, facts(buf, 0, 1, ""));
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "ProfilerStep#%d", 5 + i);
        event(&t, "user_annotation", name, begin[i], length[i], "");
        call(&t, "cudaLaunchKernel", begin[i], 2000);
        kernel(&t, "work", 7, begin[i] + 5000, length[i] - 10000, "");
        call(&t, "cudaDeviceSynchronize", begin[i] + 3000, length[i] - 3000);
    }
    file_close(&t);
    const char *path = t.path;
    struct maq_capture *c = import(&path, 1);
    struct maq_replay_opts opts = MAQ_REPLAY_OPTS_INIT;
    struct maq_replay *replay = NULL;
    assert_int_equal(maq_capture_replay(&replay, c, &opts, NULL), MAQ_OK);
    assert_true(replay->steps_marked);
    assert_int_equal(replay->n_steps, 3);
    for (int i = 0; i < 3; i++) {
        int64_t took = replay->step_end_ns[i] - (i > 0 ? replay->step_end_ns[i - 1] : 0);
        print_message("step %d: %lld ns of %lld\n", i, (long long)took, (long long)length[i]);
        assert_true(llabs(took - length[i]) <= 10000);
    }
    maq_replay_free(replay);
    maq_capture_free(c);
    unlink(t.path);
}

static void test_symmetry(void **state)
{
    struct file t;
    char buf[400];
    file_open(&t, 0,
              facts(buf, 3, 8,
                    "{\"pg_name\": \"1\", \"pg_desc\": \"TENSOR_MODEL_PARALLEL_GROUP\", \"ranks\": [2, 3]}, "
                    "{\"pg_name\": \"2\", \"pg_desc\": \"dp\", \"ranks\": [1, 3, 5, 7]}"));
    for (uint32_t i = 0; i < 4; i++) {
        char more[200];
        snprintf(
            more, sizeof more,
            ", \"Collective name\": \"%s\", \"In msg nelems\": 4096, \"Out msg nelems\": 2048, \"dtype\": \"Float\", "
            "\"Process Group Name\": \"%u\"",
            i % 2 ? "_reduce_scatter_base" : "allreduce", i % 2 + 1);
        call(&t, "cudaLaunchKernel", 100000 * i, 2000);
        kernel(&t, "ncclDevKernel_x", 7 + i % 2, 100000 * i + 5000, 50000, more);
    }
    file_close(&t);
    const char *paths[] = {t.path};
    struct maq_capture *c = import(paths, 1);
    assert_int_equal(c->n_classes, 1);
    const struct maq_rank_class *k = &c->class_of_ranks[0];
    assert_int_equal(k->n_ranks, 8);
    assert_int_equal(c->n_comms, 4 + 2);
    for (uint32_t r = 0; r < 8; r++) {
        const struct maq_captured_comm *tp = &c->comm[k->comm[r * 2]], *dp = &c->comm[k->comm[r * 2 + 1]];
        assert_int_equal(c->class_of[r], 0);
        assert_int_equal(tp->size, 2);
        assert_int_equal(dp->size, 4);
        assert_int_equal(tp->member[k->position[r * 2]], r);
        assert_int_equal(dp->member[k->position[r * 2 + 1]], r);
        assert_int_equal(tp->member[0], r / 2 * 2);
        assert_int_equal(dp->member[1], r % 2 + 2);
    }
    assert_int_equal(find(k, MAQ_REC_COLL, 0)->bytes, 4096 * 4);
    assert_int_equal(find(k, MAQ_REC_COLL, 1)->bytes, 2048 * 4);
    struct run r;
    run_open(&r, c);
    assert_true(r.g.exact && r.g.unmet == 0 && r.end == 355000);
    check_replay(&r, c);
    bool tp = false, dp = false;
    for (uint32_t v = 0; v < r.g.timed.graph.n_nodes; v++) {
        tp |= r.g.timed.graph.stream[v] == MAQ_STREAM_TP;
        dp |= r.g.timed.graph.stream[v] == MAQ_STREAM_DP;
    }
    assert_true(tp && dp);
    run_close(&r);
    maq_capture_free(c);
    unlink(t.path);
}

/* Two stages of two ranks, one of each traced: messages pair up, and ranks are filled in by their position in the pipeline. */
static void test_messages(void **state)
{
    for (uint32_t large = 0; large < 2; large++) {
        struct file t[2];
        char buf[400], more[300];
        const char *paths[2];
        int64_t elements = large ? 4 << 20 : 1024;
        for (uint32_t stage = 0; stage < 2; stage++) {
            file_open(&t[stage], stage,
                      facts(buf, stage * 2, 4, "{\"pg_name\": \"5\", \"pg_desc\": \"pp\", \"ranks\": [0, 2]}"));
            snprintf(more, sizeof more,
                     ", \"Collective name\": \"%s\", \"In msg nelems\": %lld, \"Out msg nelems\": %lld, \"dtype\": "
                     "\"BFloat16\", \"Process Group Name\": \"5\", \"Src Rank\": 0, \"Dst Rank\": 2",
                     stage == 0 ? "send" : "recv", (long long)elements, (long long)elements);
            call(&t[stage], "cudaLaunchKernel", 0, 2000);
            kernel(&t[stage], "work", 7, 5000, stage == 0 ? 100000 : 10000, "");
            call(&t[stage], "cudaLaunchKernel", 3000, 2000);
            kernel(&t[stage], "ncclDevKernel_SendRecv", 7, stage == 0 ? 105000 : 15000, stage == 0 ? 30000 : 120000,
                   more);
            file_close(&t[stage]);
            paths[stage] = t[stage].path;
        }
        struct maq_capture *c = import(paths, 2);
        assert_int_equal(c->n_classes, 2);
        for (uint32_t r = 0; r < 4; r++)
            assert_int_equal(c->class_of[r], r / 2);
        assert_int_equal(find(&c->class_of_ranks[0], MAQ_REC_SEND, 0)->arg, 1);
        assert_int_equal(find(&c->class_of_ranks[1], MAQ_REC_RECV, 0)->arg, 1);
        assert_int_equal(find(&c->class_of_ranks[1], MAQ_REC_RECV, 0)->ns, 30000);
        struct run r;
        run_open(&r, c);
        assert_true(r.g.exact && r.g.unmet == 0);
        assert_true(r.end == 135000);
        check_replay(&r, c);
        run_close(&r);
        maq_capture_free(c);
        unlink(t[0].path);
        unlink(t[1].path);
    }
}

static void test_hostile(void **state)
{
    static const struct {
        const char *text;
        uint16_t code;
    } cases[] = {
        {"", 1710},
        {"[", 1710},
        {"{\"traceEvents\": [{\"ph\": \"X\"", 1710},
        {"{\"traceEvents\": [}", 1711},
        {"not JSON", 1711},
        {"[]", 1713},
        {"[{\"ph\": \"X\", \"cat\": \"kernel\", \"ts\": 5, \"dur\": -1}]", 1716},
        {"[{\"ph\": \"X\", \"cat\": \"kernel\", \"ts\": 5}]", 1716},
    };
    size_t n = 80u << 20;
    char *large = malloc(n);
    for (uint32_t i = 0; i < MAQ_COUNT(cases) + 2; i++) {
        struct maq_diag *diag = maq_diag_new();
        struct maq_import_job job;
        struct maq_kineto k;
        const char *text = large;
        size_t len = n;
        uint16_t code = i == MAQ_COUNT(cases) ? 1712 : 1715;
        if (i < MAQ_COUNT(cases)) {
            text = cases[i].text;
            len = strlen(text);
            code = cases[i].code;
        } else /* nested without end; a text without end */
            memset(large, i == MAQ_COUNT(cases) ? '[' : 'x', n);
        if (i > MAQ_COUNT(cases))
            large[0] = '"';
        maq_diag_set_strict(diag, true);
        assert_int_equal(maq_import_begin(&job, diag), MAQ_OK);
        enum maq_status status = maq_kineto_parse(&k, "f", text, len, job.arena, diag);
        if (status == MAQ_OK)
            status = maq_kineto_records(&job, maq_import_add_rank(&job, "f", 0), &k);
        assert_int_not_equal(status, MAQ_OK);
        assert_int_equal(maq_diag_count(diag), 1);
        if (maq_diag_at(diag, 0)->code != code)
            fail_msg("case %u: %s", i, maq_diag_format(diag, 0, false));
        maq_kineto_fini(&k);
        maq_import_drop(&job);
        maq_diag_free(diag);
    }
    free(large);
}

#define RUN(name, ts, dur)                                                                                             \
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"" name "\",\"ts\":" ts ",\"dur\":" dur                                \
    ",\"args\":{\"stream\":7,\"correlation\":5}},"

/* Kernels whose duration is below zero or missing take as long as others of their name, until the next begins; one that is there twice
 * counts once, one of 1970 not at all; what is before a missing end counts. */
static void test_dirt(void **state)
{
    static const char text[] =
        "[" RUN("a", "1700000000000000", "10") RUN("a", "1700000000000000", "10") RUN("a", "1700000000000020", "-3")
            RUN("b", "1700000000000040", "6") "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"a\",\"ts\":1700000000000050,"
                                              "\"args\":{\"stream\":7}}," RUN("b", "1700000000000054", "6")
                                                  RUN("b", "0", "6") "{\"ph\": \"X\", \"cat";
    static const char says[] =
        "5 events: 1 repetition left out (event 2), 1 duration below zero (event 3), 1 duration missing (event 5), "
        "1 start that the clock had wrong, 1 end missing (event 7); times may be off by 1.4e-05 s of 3.6e-05 s";
    static const int64_t ns[] = {10000, 10000, 6000, 4000, 6000};
    struct maq_diag *diag = maq_diag_new();
    struct maq_arena arena;
    struct maq_kineto k;
    maq_arena_init(&arena, 0);
    assert_int_equal(maq_kineto_parse(&k, "f", text, strlen(text), &arena, diag), MAQ_OK);
    assert_int_equal(k.n_events, MAQ_COUNT(ns));
    for (uint32_t i = 0; i < k.n_events; i++)
        assert_int_equal(k.event[i].end - k.event[i].start, ns[i]);
    assert_int_equal(k.end - k.begin, 60000);
    assert_int_equal(maq_diag_count(diag), 1);
    const struct maq_diag_item *item = maq_diag_at(diag, 0);
    if (!memmem(item->msg.ptr, item->msg.len, says, strlen(says)))
        fail_msg("%.*s", (int)item->msg.len, item->msg.ptr);
    maq_kineto_fini(&k);
    maq_arena_fini(&arena);
    maq_diag_free(diag);
}

/* Times keep their nanoseconds: doubles would not, 54 years after the epoch. */
static void test_times(void **state)
{
    static const struct {
        const char *text;
        bool ok;
        int64_t ns;
    } cases[] = {
        {"1740461679479712", true, INT64_C(1740461679479712000)},
        {"1740461679479712.123", true, INT64_C(1740461679479712123)},
        {"1740461679479712.1", true, INT64_C(1740461679479712100)},
        {"0.0019", true, 1}, /* less than a nanosecond is cut off */
        {"-2.5", true, -2500},
        {"1.5e3", true, 1500000},
        {"-", false, 0},
        {"", false, 0},
        {"abc", false, 0},
        {"99999999999999999999", false, 0},
        {"1e300", false, 0},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        int64_t ns = 0;
        bool ok = maq_kineto_ns(&ns, maq_str_of(cases[i].text));
        assert_int_equal(ok, cases[i].ok);
        assert_true(!ok || ns == cases[i].ns);
    }
}

/* --- memory ---------------------------------------------------------------------------------------------------------------- */

static size_t asked, refused;

static bool refuse_one(size_t bytes)
{
    return ++asked != refused;
}

/* Whichever allocation fails, there is a diagnostic and nothing is lost. */
static void test_out_of_memory(void **state)
{
    const char *root = getenv("MAQ_SOURCE_ROOT");
    char path[1024], folder[64];
    snprintf(path, sizeof path, "%s/examples/profiler-trace.json", root ? root : ".");
    snprintf(folder, sizeof folder, "/tmp/maq-kineto-et-%ld", (long)getpid());
    const char *paths[] = {path};
    struct maq_capture *c = NULL;
    for (refused = 1; !c; refused++) {
        struct maq_diag *diag = maq_diag_new();
        asked = 0;
        maq__set_alloc_gate(refuse_one);
        enum maq_status status = maq_import_kineto(&c, paths, 1, diag);
        maq__set_alloc_gate(NULL);
        assert_true(status == MAQ_OK || status == MAQ_NO_MEMORY || status == MAQ_BAD_INPUT || status == MAQ_IO);
        assert_true(status != MAQ_OK || c);
        maq_diag_free(diag);
        assert_true(refused < 100000);
    }
    struct maq_captured_graph g = {0};
    for (refused = 1; !g.owner; refused++) {
        asked = 0;
        maq__set_alloc_gate(refuse_one);
        enum maq_status status = maq_capture_graph(&g, c, NULL);
        if (status == MAQ_OK && asked < refused) {
            maq__set_alloc_gate(NULL);
            break;
        }
        maq__set_alloc_gate(NULL);
        assert_true(status == MAQ_OK || status == MAQ_NO_MEMORY);
    }
    for (refused = 1;; refused++) {
        asked = 0;
        maq__set_alloc_gate(refuse_one);
        enum maq_status status = maq_capture_write_chakra(c, folder, "t", false, NULL);
        maq__set_alloc_gate(NULL);
        assert_true(status == MAQ_OK || status == MAQ_NO_MEMORY);
        if (status == MAQ_OK)
            break;
    }
    char file[96];
    snprintf(file, sizeof file, "%s/t.0.et", folder);
    unlink(file);
    rmdir(folder);
    maq_captured_graph_free(&g);
    maq_capture_free(c);
}

/* DeepSeek's published trace of a forward and backward chunk: one rank of 64. */
static void test_deepseek(void **state)
{
    const char *shared = getenv("MAQ_SHARED");
    char path[512];
    if (!shared) {
        print_message("MAQ_SHARED is not set\n");
        skip();
    }
    snprintf(path, sizeof path, "%s/data/kernels/deepseek_profile_data/train.json.gz", shared);
    if (access(path, R_OK) != 0) {
        print_message("%s is not there\n", path);
        skip();
    }
    const char *paths[] = {path};
    struct maq_capture *c = import(paths, 1);
    assert_int_equal(c->world, 64);
    assert_int_equal(c->n_classes, 1);
    assert_int_equal(c->class_of_ranks[0].n_ranks, 64);
    assert_int_equal(c->per_node, 8);
    assert_string_equal(c->device, "h800");
    struct maq_kineto k;
    struct maq_arena arena;
    struct run r;
    maq_arena_init(&arena, 0);
    assert_int_equal(maq_kineto_read(&k, path, &arena, NULL), MAQ_OK);
    run_open(&r, c);
    check_times(&r);
    check_replay(&r, c);
    assert_true(k.end - k.begin == 129435000); /* first to last event of the file, as jq says */
    print_message("traced %.3f ms, replayed %.3f ms, of that in gaps %.3f ms\n", (double)(k.end - k.begin) / 1e6,
                  r.end / 1e6, time_of(&r, MAQ_ITEM_GAP) / 1e6);
    assert_true(r.end >= 0.99 * (double)(k.end - k.begin) && r.end <= 1.01 * (double)(k.end - k.begin));
    assert_int_equal(count(&c->class_of_ranks[0], MAQ_REC_COPY), 8);
    assert_int_equal(count(&c->class_of_ranks[0], MAQ_REC_SET), 12);
    assert_int_equal(r.g.n_steps, 1);
    run_close(&r);
    maq_kineto_fini(&k);
    maq_arena_fini(&arena);
    maq_capture_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_programs), cmocka_unit_test(test_inferred_wait), cmocka_unit_test(test_in_flight),
        cmocka_unit_test(test_in_flight_wait),  cmocka_unit_test(test_lost_launches), cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_two_ranks),       cmocka_unit_test(test_steps),         cmocka_unit_test(test_symmetry),
        cmocka_unit_test(test_messages),        cmocka_unit_test(test_hostile),       cmocka_unit_test(test_dirt),
        cmocka_unit_test(test_times),           cmocka_unit_test(test_out_of_memory), cmocka_unit_test(test_deepseek),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("import_kineto", tests, NULL, NULL);
}
