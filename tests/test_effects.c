/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_effects.c - what a step costs besides its kernels and collectives: the host, contention, transfers and borders, the
 * slowest device. Closed forms where there are any, signs and bounds where not.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/stat/maximum.h"
#include "base/str.h"
#include "effects.h"
#include "graph/items.h"
#include "lower/contention.h"

/* A pass costs the host one millisecond: once while the device needs longer, all of it with blocking launches. */
static void test_passes(void **unused)
{
    (void)unused;
    const char one[] = "a100-80gb:1", plan[] = "mbs: 4";
    double none = step_of(one, plan, FREE_HOST_BUT(REST_FREE), 32);
    double hidden = step_of(one, plan, FREE_HOST_BUT("p2p: 0 s, pass: 1 ms, step: 0 s"), 32);
    double shown = step_of(one, plan, FREE_HOST_BUT("p2p: 0 s, pass: 1 ms, step: 0 s") ", launches_block: true", 32);
    double far = step_of(one, plan, FREE_HOST_BUT("p2p: 0 s, pass: 10 s, step: 0 s"), 32);
    assert_close(hidden, none + 1 * MS, 2e-5, "a host faster than the device is late once, at the start of the step");
    assert_close(shown, none + 16 * MS, 1e-9, "8 microbatches, forward and backward, one after the other");
    double timed = step_of(one, plan, FREE_HOST_BUT("p2p: 0 s, pass: 1 ms, step: 0 s") ", pass_synchronizes: true", 32);
    assert_close(timed, none + 8 * MS, 8 * 2e-5,
                 "a host that waits for every pass is late in each of 8 that begin with the embedding; the loss takes "
                 "longer than it");
    assert_close(step_of(one, plan, FREE_HOST_BUT(REST_FREE) ", pass_synchronizes: true", 32), none, 1e-9,
                 "a host that costs nothing is never late");
    /* the slower clock decides: 16 passes of the host, and what the device does besides */
    assert_true(far > 160 && far < 160 + none);
}

/* What is left of the host is its end of the step; a framework that does not wait there hides it. */
static void test_end_of_step(void **unused)
{
    (void)unused;
    const char one[] = "h100-sxm:1", plan[] = "mbs: 4";
    double none = step_of(one, plan, FREE_HOST_BUT(REST_FREE), 32);
    double waits = step_of(one, plan, FREE_HOST_BUT("p2p: 0 s, pass: 0 s, step: 14 ms"), 32);
    double not = step_of(one, plan, FREE_HOST_BUT("p2p: 0 s, pass: 0 s, step: 14 ms") ", step_synchronizes: false", 32);
    assert_close(waits, none + 14 * MS / 1.4, 1e-9, "the host beside an H100 is 1.4 times the reference");
    assert_close(not, none, 1e-9, "no wait");
}

/* A transfer that synchronises lengthens every pass on the way: m microbatches and p - 1 to fill, both directions. */
static void test_transfers(void **unused)
{
    (void)unused;
    const char two[] = "a100-80gb:2", plan[] = "mbs: 4, pp: 2, overlap_p2p_comm: false";
    double none = step_of(two, plan, FREE_HOST_BUT(REST_FREE), 32);
    double waits = step_of(two, plan, FREE_HOST_BUT("p2p: 2 ms, pass: 0 s, step: 0 s"), 32);
    double not = step_of(two, plan, FREE_HOST_BUT("p2p: 2 ms, pass: 0 s, step: 0 s") ", p2p_synchronizes: false", 32);
    assert_close(waits - none, 2 * MS * 2 * (8 + 1), 1e-6, "18 passes on the longest path");
    assert_true(not >= none && not <= none + 2 * 2 * MS); /* hidden, but for the first pass of each stage */
}

/* A host-bound step is linear in what an operator costs; graphs take it away. */
static void test_operators(void **unused)
{
    (void)unused;
    const char one[] = "a100-80gb:1", plan[] = "mbs: 1, zero: no_shard";
    double at[3];
    const char *const hosts[3] = {
        "host: {forward: 2 ms, backward: 2 ms, kernel: 0 s, pass: 0 s, step: 0 s}",
        "host: {forward: 4 ms, backward: 4 ms, kernel: 0 s, pass: 0 s, step: 0 s}",
        "host: {forward: 6 ms, backward: 6 ms, kernel: 0 s, pass: 0 s, step: 0 s}",
    };
    for (int i = 0; i < 3; i++)
        at[i] = step_of(one, plan, hosts[i], 8);
    assert_close(at[2] - at[1], at[1] - at[0], 1e-6, "equal steps");
    assert_true(at[1] - at[0] >
                8 * 2 * MS * 8 * 20); /* microbatches, per operator, layers: twenty operators and more in a layer */
    double graphs = step_of(one, "mbs: 1, zero: no_shard, cuda_graphs: true", hosts[2], 8);
    double none = step_of(one, plan, FREE_HOST_BUT(REST_FREE), 8);
    assert_close(graphs, none, 1e-9, "graphs");
}

/* A lead of the host over one pass is used by the next, but not across the end of a step. */
static void test_leads(void **unused)
{
    (void)unused;
    const char one[] = "a100-80gb:1", plan[] = "mbs: 8";
    const char uneven[] = "host: {forward: 300 us, backward: 0 s, kernel: 0 s, pass: 0 s, step: 0 s}";
    const char none[] = FREE_HOST_BUT(REST_FREE);
    double few = step_of(one, plan, uneven, 8) - step_of(one, plan, none, 8);
    double many = step_of(one, plan, uneven, 64) - step_of(one, plan, none, 64);
    assert_true(few > 1 * MS); /* the forward pass alone is host-bound */
    assert_close(many, few, 0.01 * few, "only the first of eight microbatches has no lead");
}

/* The graph leaves contention out on request: the dynamic engine, which charges it itself, comes to the same time. */
static void test_contention(void **unused)
{
    (void)unused;
    static const char *const zero[] = {"optim", "optim_grads_params"};
    for (size_t i = 0; i < MAQ_COUNT(zero); i++) {
        char text[512];
        struct maq_train_graph g;
        double with = 0, alone = 0, dynamic = 0;
        snprintf(text, sizeof text,
                 "model: llama-3.1-8b\ncluster: 'h100-sxm:8 x 16, rail 400G'\nplan: {zero: %s, mbs: 1}\n"
                 "workload: {seq: 8192, gbs: 256}\n",
                 zero[i]);
        struct prediction p = predict_text(text);
        assert_int_equal(maq_train_graph(&g, maq_job_get(p.job), NULL), MAQ_OK);
        double *finish = malloc(sizeof *finish * (g.graph.n_nodes + 1));
        struct maq_interference f = maq_cost_interference(&maq_job_get(p.job)->cluster.groups[0].device);
        maq_engine_static(&with, finish, &g.graph, 1, g.dur_ns);
        maq_engine_static(&alone, finish, &g.graph, 1, g.alone_ns);
        assert_int_equal(maq_engine_dynamic(&dynamic, finish, &g.graph, g.alone_ns, &f, NULL), MAQ_OK);
        assert_close(with * 1e-9, p.result->step_s, 1e-6 * p.result->step_s, "graph and fast path");
        assert_true(with > alone * 1.002); /* there is something to charge */
        assert_close(dynamic, with, 0.005 * with, "charged by the engine and beforehand");
        free(finish);
        maq_train_graph_free(&g);
        drop(&p);
    }
}

/* What an exchange of experts takes from the products beside it is its SMs' share: as many as its kernels have, or are told to have. */
static void test_exchange_sms(void **unused)
{
    (void)unused;
    static const struct {
        int dispatcher;
        int32_t told;
        double sms;
    } cases[] = {
        {MAQ_DISPATCHER_DEEPEP, 0, 20},    {MAQ_DISPATCHER_DEEPEP, 24, 24},   {MAQ_DISPATCHER_HYBRIDEP, 0, 16},
        {MAQ_DISPATCHER_HYBRIDEP, 32, 32}, {MAQ_DISPATCHER_ALLTOALL, 32, 20}, /* NCCL's own */
    };
    struct maq_device device = {.arch = MAQ_ARCH_BLACKWELL, .sms = 148};
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct maq_plan plan = {.dispatcher = cases[i].dispatcher, .flex_sms = cases[i].told};
        double share[MAQ_STREAM_COUNT];
        maq_contention_shares(share, &plan, &device);
        assert_close(share[MAQ_STREAM_EP], cases[i].sms / 148, 1e-12, "SMs of an exchange");
    }
    /* the same of a step, where exchanges run beside the compute of another microbatch */
    double step[3];
    for (int k = 0; k < 3; k++) {
        char text[512];
        snprintf(text, sizeof text,
                 "model: {base: mixtral-8x7b, num_hidden_layers: 4}\ncluster: 'b200:8'\n"
                 "plan: {ep: 8, mbs: 4, overlap_ep: true, dispatcher: hybridep, moe_hybridep_num_sms: %d}\n"
                 "workload: {seq: 4096, gbs: 320}\nframework: {moe_synchronizes: false, host: {forward: 0 s, backward: "
                 "0 s}}\n",
                 8 << k);
        struct prediction p = predict_text(text);
        step[k] = p.result->step_s;
        drop(&p);
    }
    assert_true(step[1] > step[0]);
    assert_close(step[2] - step[1], 2 * (step[1] - step[0]), 1e-3 * (step[2] - step[0]),
                 "twice the SMs, twice the loss");
}

/* Expected maxima of N standard normals (exact integrals), as the pace of a cluster of N has them. */
static void test_slowest_device(void **unused)
{
    (void)unused;
    static const struct {
        int nodes, per_node;
        double maximum;
    } cases[] = {{1, 1, 0}, {1, 8, 1.42360}, {8, 8, 2.34373}, {128, 8, 3.24137}, {8192, 8, 4.29123}};
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        char text[256];
        struct maq_loaded_job *box = NULL;
        struct maq_diag *diag = maq_diag_new();
        snprintf(text, sizeof text, "model: gpt2\ncluster: 'h100-sxm:%d x %d'\n", cases[i].per_node, cases[i].nodes);
        assert_int_equal(maq_job_parse(&box, "test", maq_str_of(text), NULL, 0, diag), MAQ_OK);
        struct maq_arena arena;
        struct maq_items items;
        maq_arena_init(&arena, 0);
        maq_items_init(&items, &maq_job_get(box)->cluster, NULL, &arena);
        assert_close(items.pace, 1 + 0.0112 * cases[i].maximum, 0.0112 * 0.02, "pace");
        maq_arena_fini(&arena);
        maq_job_free(box);
        maq_diag_free(diag);
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The n-th cell of a line without quotes. */
static const char *cell(const char *line, int n)
{
    for (; n > 0 && line; n--)
        line = strchr(line, ',') ? strchr(line, ',') + 1 : NULL;
    return line ? line : "";
}

/*
 * The spread is that of the recording: coefficient of variation of the devices' medians, over the standard deviation of the largest of four
 * standard normal draws, because the four of a node ran together.
 */
static void test_spread_of_devices(void **unused)
{
    (void)unused;
    enum { DEVICES = 512, RUNS = 64, UUID = 7, PERF = 16 };
    static double runs[DEVICES][RUNS];
    static char names[DEVICES][32];
    static int n_runs[DEVICES];
    char path[512], line[1024];
    const char *shared = getenv("MAQ_SHARED");
    snprintf(path, sizeof path, "%s/data/variability/per_gpu/bert-longhorn-agg.csv", shared ? shared : "");
    FILE *f = shared ? fopen(path, "r") : NULL;
    int n = 0;
    double sum = 0, square = 0;
    if (!f)
        skip();
    while (fgets(line, sizeof line, f)) {
        char name[32] = "";
        int k = 0;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(cell(line, UUID), ","), cell(line, UUID));
        if (strcmp(name, "uuid") == 0)
            continue;
        while (k < n && strcmp(names[k], name) != 0)
            k++;
        assert_true(k < DEVICES && n_runs[k] < RUNS);
        if (k == n)
            snprintf(names[n++], sizeof names[0], "%s", name);
        runs[k][n_runs[k]++] = atof(cell(line, PERF));
    }
    fclose(f);
    assert_int_equal(n, 136);
    for (int k = 0; k < n; k++) {
        int m = n_runs[k];
        qsort(runs[k], (size_t)m, sizeof(double), by_value);
        double median = 0.5 * (runs[k][(m - 1) / 2] + runs[k][m / 2]);
        sum += median;
        square += median * median;
    }
    double mean = sum / n, variation = sqrt(square / n - mean * mean) / mean;
    const double slowest_of_four = 0.7012; /* standard deviation; Teichroew 1956 */
    struct prediction p = predict_text("model: gpt2\ncluster: 'a100-80gb:8'\nworkload: {seq: 1024, gbs: 8}\n");
    struct maq_arena arena;
    struct maq_items items;
    maq_arena_init(&arena, 0);
    maq_items_init(&items, &maq_job_get(p.job)->cluster, NULL, &arena);
    double spread = (items.pace - 1) / maq_expected_maximum(8);
    maq_arena_fini(&arena);
    drop(&p);
    assert_close(spread, variation / slowest_of_four, 0.0001, "spread");
}

/* A host that waits on both sides of a TP collective pays its read twice, for two collectives a layer and direction. */
static void test_tp_stops(void **unused)
{
    (void)unused;
    const char two[] = "a100-80gb:2", plan[] = "tp: 2, sp: false, mbs: 4", stops[] = ", tp_synchronizes: true";
    double at[2];
    for (int i = 0; i < 2; i++) {
        char framework[256];
        snprintf(framework, sizeof framework,
                 "host: {forward: 0 s, backward: 0 s, kernel: 0 s, collective: 0 s, skew: 0 s, checkpoint: 0 s, "
                 "read: %d us, " REST_FREE "}%s",
                 100 * (i + 1), stops);
        at[i] = step_of(two, plan, framework, 32);
    }
    /* 8 microbatches of 8 layers with 4 collectives; one of the embedding, three of the loss, one of dX of the output layer */
    double reads = 2 * 8 * (8 * 4 + 5);
    assert_close(at[1] - at[0], reads * 100e-6, 1e-6, "reads");
}

/* Exchange of experts that a step of so many microbatches waits for. */
static double exchange_of(int microbatches, const char *plan)
{
    char text[512];
    snprintf(text, sizeof text,
             "model: {base: mixtral-8x7b, num_hidden_layers: 4}\ncluster: 'h100-sxm:8'\n"
             "plan: {ep: 8, mbs: 1, %s}\nworkload: {seq: 4096, gbs: %d}\n"
             "framework: {" FREE_HOST_BUT("expert: 0 s, " REST_FREE) ", moe_synchronizes: false}\n",
             plan, 8 * microbatches);
    struct prediction p = predict_text(text);
    double exchange = p.result->bucket_s[MAQ_BUCKET_EP];
    drop(&p);
    return exchange;
}

/* The first forward and the last backward pass of a step have no other microbatch: what is hidden elsewhere is waited for there, once. */
static void test_unpaired_passes(void **unused)
{
    (void)unused;
    const char on[] = "overlap_moe_expert_parallel_comm: true", off[] = "overlap_moe_expert_parallel_comm: false";
    double shown = (exchange_of(8, on) - exchange_of(4, on)) / 4,
           whole = (exchange_of(8, off) - exchange_of(4, off)) / 4;
    assert_close(exchange_of(4, off), 4 * whole, 1e-9, "nothing besides without overlap");
    assert_true(shown < 0.5 * whole);
    assert_close(exchange_of(4, on), 4 * shown + (whole - shown), 1e-6, "one pass of each direction alone");
    assert_close(exchange_of(1, on), whole, 1e-6, "a single microbatch has no partner at all");
}

/*
 * Four stages: on one node, on two, on four. A border inside a node costs its scale-up link, one between nodes the
 * network. The stage with the output layer sets the rhythm: on two nodes its border is inside.
 */
static void test_borders(void **unused)
{
    (void)unused;
    static const char *const clusters[] = {"a100-80gb:4", "a100-80gb:2 x 2, nics 1 x 100G roce",
                                           "a100-80gb:1 x 4, nics 1 x 100G roce"};
    const char plan[] = "pp: 4, mbs: 1, zero: no_shard, overlap_p2p_comm: false", host[] = FREE_HOST_BUT(REST_FREE);
    double few[3], more[3];
    for (int i = 0; i < 3; i++) {
        few[i] = step_of(clusters[i], plan, host, 8);
        more[i] = step_of(clusters[i], plan, host, 16) - few[i];
    }
    assert_true(few[0] < few[1] && few[1] < few[2]);
    assert_close(more[1], more[0], 1e-9, "rhythm on two nodes");
    assert_true(more[2] > 1.02 * more[0]);
}

/* A stage on two kinds of node has TP groups on both, and waits for the ones on the slower link. */
static void test_mixed_nodes(void **unused)
{
    (void)unused;
    static const struct {
        const char *first, *second;
        uint16_t slow;
    } cases[] = {{"v100-16gb", "t4", 1}, {"t4", "v100-16gb", 0}};
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "model: gpt2\ncluster: {groups: [{device: %s, nodes: 2, devices_per_node: 4, fabric: ena-10}, "
                 "{device: %s, nodes: 2, devices_per_node: 4, fabric: ena-10}]}\nplan: {tp: 4, pp: 2, mbs: 1}\n"
                 "workload: {seq: 1024, gbs: 16}\n",
                 cases[i].first, cases[i].second);
        struct prediction p = predict_text(text);
        const struct maq_job *job = maq_job_get(p.job);
        for (int s = 0; s < 2; s++) /* a stage is a kind of node here */
            assert_int_equal(job->stages[s].groups[MAQ_GROUP_TP].group, s);
        drop(&p);
        char *pp = strstr(text, "pp: 2");
        assert_non_null(pp);
        pp[4] = '1';
        p = predict_text(text);
        assert_int_equal(maq_job_get(p.job)->stages[0].groups[MAQ_GROUP_TP].group, cases[i].slow);
        assert_int_equal(maq_job_get(p.job)->stages[0].groups[MAQ_GROUP_DP_CP].domains, 4);
        drop(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passes),
        cmocka_unit_test(test_end_of_step),
        cmocka_unit_test(test_transfers),
        cmocka_unit_test(test_operators),
        cmocka_unit_test(test_leads),
        cmocka_unit_test(test_contention),
        cmocka_unit_test(test_exchange_sms),
        cmocka_unit_test(test_slowest_device),
        cmocka_unit_test(test_spread_of_devices),
        cmocka_unit_test(test_tp_stops),
        cmocka_unit_test(test_unpaired_passes),
        cmocka_unit_test(test_borders),
        cmocka_unit_test(test_mixed_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
