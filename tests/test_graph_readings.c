/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_graph_readings.c - what is made of a graph with times: a table, a trace, a distribution. On the graph of
 * examples/profiler-trace.json, and on small ones whose distribution is known.
 */
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/stat/special_functions.h"
#include "maquette/maquette.h"

struct example {
    struct maq_captured_graph g;
    double makespan, *finish;
};

static void example_open(struct example *e)
{
    const char *root = getenv("MAQ_SOURCE_ROOT");
    char path[1024];
    const char *paths[] = {path};
    struct maq_diag *diag = maq_diag_new();
    struct maq_capture *c;
    snprintf(path, sizeof path, "%s/examples/profiler-trace.json", root ? root : ".");
    if (maq_capture_read(&c, paths, 1, diag) != MAQ_OK || maq_capture_graph(&e->g, c, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    maq_capture_free(c);
    maq_diag_free(diag);
    e->finish = calloc(e->g.timed.graph.n_nodes + 1, sizeof *e->finish);
    maq_engine_static(&e->makespan, e->finish, &e->g.timed.graph, 1, e->g.timed.dur_ns);
}

static void example_close(struct example *e)
{
    free(e->finish);
    maq_captured_graph_free(&e->g);
}

static void test_table(void **state)
{
    struct example e;
    struct maq_report_opts opts = MAQ_REPORT_OPTS_INIT;
    char *text;
    example_open(&e);
    assert_int_equal(maq_report_times_json(&text, &e.g.timed, e.finish, &opts, NULL), MAQ_OK);
    json_t *root = json_loads(text, 0, NULL), *value;
    const char *key;
    double sum = 0;
    json_object_foreach(json_object_get(root, "time"), key, value) sum += json_number_value(value);
    assert_true(fabs(sum - json_number_value(json_object_get(root, "makespan_s"))) < 1e-12);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(json_object_get(root, "classes"), 0), "ranks")),
                     8);
    json_decref(root);
    free(text);
    assert_int_equal(maq_report_times_text(&text, &e.g.timed, e.finish, &opts, NULL), MAQ_OK);
    assert_non_null(strstr(text, "backward"));
    assert_non_null(strstr(text, "optimizer"));
    assert_non_null(strstr(text, "exposed TP comm"));
    assert_non_null(strstr(text, "reduce_scatter 4 MiB over 4 ranks"));
    free(text);
    example_close(&e);
}

/* Every node that takes time is a slice of its length, on a thread of its stream. */
static void test_trace(void **state)
{
    struct example e;
    char path[64];
    example_open(&e);
    snprintf(path, sizeof path, "/tmp/maq-graph-%ld.json", (long)getpid());
    assert_int_equal(maq_trace_graph(path, &e.g.timed, e.finish, NULL), MAQ_OK);
    json_t *root = json_load_file(path, 0, NULL), *event;
    unlink(path);
    size_t i, slices = 0, expected = e.g.timed.n_shares;
    double length = 0, in_graph = 0;
    json_array_foreach(json_object_get(root, "traceEvents"), i,
                       event) if (strcmp(json_string_value(json_object_get(event, "ph")), "X") == 0)
    {
        slices++;
        length += json_number_value(json_object_get(event, "dur"));
    }
    for (uint32_t v = 0; v < e.g.timed.graph.n_nodes; v++) {
        double d = e.g.timed.dur_ns[e.g.timed.graph.item[v]];
        expected += d > 0;
        in_graph += d;
    }
    assert_int_equal(slices, expected);
    assert_true(fabs(length - in_graph / 1000) < 1e-6);
    json_decref(root);
    example_close(&e);
}

/* --- distributions -------------------------------------------------------------------------------------------------------- */

/* One kernel of a second on each of n ranks, and nothing else. */
static void one_kernel(struct maq_timed_graph *g, const uint32_t *n)
{
    static const uint32_t zero[2], at[2];
    static const struct maq_node_tag tag[1];
    static const double second[1] = {1e9};
    static const char *const name[] = {"kernel"};
    static const uint8_t sort[] = {MAQ_ITEM_COMPUTE};
    *g = (struct maq_timed_graph){.graph = {.n_nodes = 1,
                                            .n_classes = 1,
                                            .n_items = 1,
                                            .item = zero,
                                            .stream = zero,
                                            .pred_at = at,
                                            .pred = zero,
                                            .tag = tag,
                                            .multiplicity = n},
                                  .dur_ns = second,
                                  .item_name = name,
                                  .item_sort = sort,
                                  .class_name = name};
}

static void distribution_by(struct maq_risk_graph *out, const struct maq_timed_graph *g, const char *yaml,
                            struct maq_risk_graph_opts opts)
{
    struct maq_diag *diag = maq_diag_new();
    char path[64];
    snprintf(path, sizeof path, "/tmp/maq-variation-%ld.yaml", (long)getpid());
    FILE *f = fopen(path, "w");
    fprintf(f, "title: t\nsource: s\ngpu_cv: 0\ngpu_outlier_share: 0\nnode_cv: 0\npass_cv: 0\nstep_cv: 0\n"
               "communication_cv: 0\ncongested_share: 0\nspike_share: 0\nmicrobatch_cv: 0\n");
    fclose(f);
    if (yaml) {
        f = fopen(path, "w");
        fprintf(f, "%s", yaml);
        fclose(f);
    }
    opts.variation = path;
    if (maq_risk_graph(out, g, &opts, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    unlink(path);
    maq_diag_free(diag);
}

static void distribution_of(struct maq_risk_graph *out, const struct maq_timed_graph *g, const char *yaml,
                            const struct maq_risk_slow_class *slow, uint32_t n_slow)
{
    struct maq_risk_graph_opts opts = MAQ_RISK_GRAPH_OPTS_INIT;
    opts.draws = 4000;
    opts.slow = slow;
    opts.n_slow = n_slow;
    distribution_by(out, g, yaml, opts);
}

static void distribution(struct maq_risk_graph *out, const struct maq_timed_graph *g, const char *yaml)
{
    distribution_of(out, g, yaml, NULL, 0);
}

#define REST                                                                                                           \
    "gpu_outlier_share: 0\nnode_cv: 0\npass_cv: 0\nstep_cv: 0\ncommunication_cv: 0\ncongested_share: 0\nspike_share: " \
    "0\n"                                                                                                              \
    "microbatch_cv: 0\n"

static void test_nothing_varies(void **state)
{
    struct example e;
    struct maq_risk_graph r;
    example_open(&e);
    distribution(&r, &e.g.timed, NULL);
    assert_true(r.base_s == e.makespan * 1e-9);
    for (int f = 0; f < MAQ_RISK_FIGURE_COUNT; f++)
        assert_true(fabs(r.figure[f].value_s - r.base_s) < 1e-15);
    double sum = 0;
    for (uint32_t i = 0; i < r.n_drivers; i++)
        sum += r.driver[i].seconds;
    assert_true(sum <= r.base_s + 1e-12 && sum > 0.9 * r.base_s); /* the longest path, or its longest operators */
    example_close(&e);
}

static double slowest_at(double sigma, double ranks, double p)
{
    return exp(-sigma * maq_normal_quantile(-expm1(log(p) / ranks)));
}

/* Four standard errors; and without noise that all share a law is 256 steps: half of one to either side. */
static void assert_quantile(const struct maq_risk_quantile *q, double sigma, double ranks, double p)
{
    double reach = (q->high_s - q->value_s) * 4 / 2.262;
    assert_true(q->value_s >= slowest_at(sigma, ranks, p - 1 / 512.0) - reach);
    assert_true(q->value_s <= slowest_at(sigma, ranks, p + 1 / 512.0) + reach);
    assert_true(reach < 0.5 * sigma);
}

/* The slowest of n ranks with lasting differences: the quantile p of the maximum is that of one at p^(1/n). */
static void test_slowest_rank(void **state)
{
    static const uint32_t ranks[] = {1, 64, 8192};
    for (size_t i = 0; i < MAQ_COUNT(ranks); i++) {
        struct maq_timed_graph g;
        struct maq_risk_graph r;
        one_kernel(&g, &ranks[i]);
        distribution(&r, &g, "gpu_cv: 0.02\n" REST);
        double sigma = sqrt(log1p(0.02 * 0.02));
        static const double p[] = {0.5, 0.95, 0.99};
        for (int f = 0; f < 3; f++)
            assert_quantile(&r.figure[f], sigma, ranks[i], p[f]);
        assert_string_equal(r.source[0].name, "gpu");
        const struct maq_risk_quantile *alone = &r.source[0].alone; /* four standard errors of a jackknife of ten */
        double p95 = slowest_at(sigma, ranks[i], 0.95) - 1;
        assert_true(alone->low_s < alone->value_s && alone->value_s < alone->high_s);
        assert_true(fabs(alone->value_s - p95) < 4 / 2.262 * (alone->high_s - alone->value_s));
        assert_true(fabs(r.source[0].alone.value_s - (r.figure[MAQ_RISK_P95].value_s - 1)) < 1e-12);
    }
}

/* The distribution function says of each quantile the share that it is of; nobody asked, nothing is there. */
static void test_curve(void **state)
{
    static const uint32_t ranks[] = {64};
    static const double p[] = {0.5, 0.95, 0.99};
    struct maq_timed_graph g;
    struct maq_risk_graph r;
    struct maq_risk_graph_opts opts = MAQ_RISK_GRAPH_OPTS_INIT;
    one_kernel(&g, ranks);
    opts.draws = 1000;
    opts.curve = true;
    distribution_by(&r, &g, "gpu_cv: 0.02\n" REST, opts);
    for (uint32_t i = 1; i < MAQ_RISK_CURVE; i++)
        assert_true(r.curve_s[i] > r.curve_s[i - 1] && r.curve_share[i] >= r.curve_share[i - 1]);
    for (int f = 0; f < 3; f++) {
        double x = r.figure[f].value_s, step = r.curve_s[1] - r.curve_s[0];
        uint32_t i = (uint32_t)((x - r.curve_s[0]) / step);
        assert_true(i + 1 < MAQ_RISK_CURVE);
        assert_true(r.curve_share[i] <= p[f] + 0.005 && r.curve_share[i + 1] >= p[f] - 0.005); /* a law is 256 steps */
    }
    distribution(&r, &g, "gpu_cv: 0.02\n" REST);
    assert_true(r.curve_s[MAQ_RISK_CURVE - 1] == 0 && r.curve_share[MAQ_RISK_CURVE - 1] == 0);
}

/* Quasi-random numbers: over seeds p95 varies by less than a third of what plain draws would leave. */
static void test_quasi_random(void **state)
{
    static const uint32_t ranks[] = {64};
    enum { SEEDS = 12, DRAWS = 2560 };
    struct maq_timed_graph g;
    double sum = 0, square = 0, sigma = sqrt(log1p(0.02 * 0.02));
    one_kernel(&g, ranks);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct maq_risk_graph r;
        struct maq_risk_graph_opts opts = MAQ_RISK_GRAPH_OPTS_INIT;
        opts.seed = seed;
        opts.draws = DRAWS;
        opts.no_sources = true;
        distribution_by(&r, &g,
                        "gpu_cv: 0.02\nstep_cv: 0.002\ngpu_outlier_share: 0\nnode_cv: 0\npass_cv: 0\n"
                        "communication_cv: 0\ncongested_share: 0\nspike_share: 0\nmicrobatch_cv: 0\n",
                        opts);
        sum += r.figure[MAQ_RISK_P95].value_s;
        square += r.figure[MAQ_RISK_P95].value_s * r.figure[MAQ_RISK_P95].value_s;
    }
    double sd = sqrt(fmax(square - sum * sum / SEEDS, 0) / (SEEDS - 1));
    double density = 0.002 / (slowest_at(sigma, 64, 0.951) - slowest_at(sigma, 64, 0.949));
    assert_true(sd < sqrt(0.05 * 0.95 / DRAWS) / density / 3);
}

static void test_shared_noise(void **state)
{
    static const uint32_t ranks[] = {8192};
    struct maq_timed_graph g;
    struct maq_risk_graph r, again;
    one_kernel(&g, ranks);
    distribution(&r, &g,
                 "gpu_cv: 0\nstep_cv: 0.03\ngpu_outlier_share: 0\nnode_cv: 0\npass_cv: 0\ncommunication_cv: 0\n"
                 "congested_share: 0\nspike_share: 0\nmicrobatch_cv: 0\n");
    double exact = exp(sqrt(log1p(0.03 * 0.03)) * maq_normal_quantile(0.95)); /* it does not grow with ranks */
    assert_true(fabs(r.figure[MAQ_RISK_P95].value_s - exact) < 1e-8);         /* what all share is not drawn */
    assert_true(r.guarantee_s > exact && r.guarantee_s < 1.02 * exact);
    distribution(&again, &g,
                 "gpu_cv: 0\nstep_cv: 0.03\ngpu_outlier_share: 0\nnode_cv: 0\npass_cv: 0\ncommunication_cv: 0\n"
                 "congested_share: 0\nspike_share: 0\nmicrobatch_cv: 0\n");
    assert_memory_equal(r.figure, again.figure, sizeof r.figure);
}

/* Operators with laws of their own: a kernel's slow runs; a law for another operator, and one for every group of a collective. */
static void test_own_laws(void **state)
{
    static const uint32_t ranks[] = {1};
    static const char *const gemm[] = {"gemm 8x8x8 bf16"}, *const nvjet[] = {"nvjet_hsh_192x192_64x4"},
                             *const reduce[] = {"all_reduce 1 MiB over 8 ranks"};
    static const uint8_t communication[] = {MAQ_ITEM_COMMUNICATION};
    static const struct maq_node_tag dp[1] = {{.bucket = MAQ_BUCKET_DP}};
    static const char slow_gemm[] =
        "gpu_cv: 0\n" REST "kernels: [{name: gemm, cv: 0, slow_share: 0.08, slow_ratio: 3}]\n";
    struct maq_timed_graph g;
    struct maq_risk_graph r;
    for (int k = 0; k < 2; k++) {
        one_kernel(&g, ranks);
        g.item_name = k ? nvjet : gemm;
        distribution(&r, &g, slow_gemm);
        assert_true(fabs(r.figure[MAQ_RISK_P95].value_s - 3) < 1e-9 && fabs(r.figure[MAQ_RISK_P50].value_s - 1) < 1e-9);
        assert_true(fabs(r.figure[MAQ_RISK_MEAN].value_s - 1.16) < 4 * 2 * sqrt(0.08 * 0.92 / 4000));
        assert_string_equal(r.source[0].name, "kernel");
    }
    distribution(&r, &g, "gpu_cv: 0\n" REST "kernels: [{name: norm, cv: 0.5}]\n");
    assert_true(fabs(r.figure[MAQ_RISK_P99].value_s - 1) < 1e-9);
    g.item_name = reduce;
    g.item_sort = communication;
    g.graph.tag = dp;
    distribution(&r, &g, "gpu_cv: 0\n" REST "kernels: [{name: all_reduce, cv: 0.5}, {name: all_reduce dp, cv: 0.1}]\n");
    assert_quantile(&r.figure[MAQ_RISK_P95], sqrt(log1p(0.01)), 1, 0.95);
    distribution(&r, &g, "gpu_cv: 0\n" REST "kernels: [{name: all_reduce, cv: 0.5}, {name: all_reduce tp, cv: 0.1}]\n");
    assert_quantile(&r.figure[MAQ_RISK_P95], sqrt(log1p(0.25)), 1, 0.95);
}

/* The second mode and the hour, which all of a draw shares. */
static void test_mode_and_hour(void **state)
{
    static const uint32_t ranks[] = {64};
    struct maq_timed_graph g;
    struct maq_risk_graph r;
    one_kernel(&g, ranks);
    distribution(&r, &g, "gpu_cv: 0\n" REST "slow_mode_share: 0.2\nslow_mode_ratio: 1.4\n");
    assert_true(fabs(r.figure[MAQ_RISK_P95].value_s - 1.4) < 1e-9 && fabs(r.figure[MAQ_RISK_P50].value_s - 1) < 1e-9);
    distribution(&r, &g, "gpu_cv: 0\n" REST "diurnal_swing: 0.1\n");
    double exact = 1 + 0.05 * sin(3.14159265358979 / 2 * 7 / 8); /* the last of eight equally likely hours */
    assert_true(fabs(r.figure[MAQ_RISK_P95].value_s - exact) < 1e-9);
    assert_true(r.figure[MAQ_RISK_P99].value_s < 1.05);
}

/*
 * GPUs that are slow for a while: alone, P(none is) = exp(-L) and else the ratio; beside lasting differences, of n ranks N by Poisson's law
 * have another law: P(slowest <= x) = sum over k of P(N = k) F(x)^(n - k) F(x / ratio)^k.
 */
static void test_episodes(void **state)
{
    static const uint32_t ranks[] = {64};
    static const double lasts_min[] = {0.9, 45, 4800};
    struct maq_timed_graph g;
    struct maq_risk_graph r;
    one_kernel(&g, ranks);
    for (size_t i = 0; i < MAQ_COUNT(lasts_min); i++) {
        char yaml[512];
        double expected = 64 * 1.5 * lasts_min[i] / (24 * 60), none = exp(-expected);
        snprintf(yaml, sizeof yaml,
                 "gpu_cv: 0\n" REST "episodes_per_gpu_day: 1.5\nepisode_lasts: %g min\nepisode_ratio: 1.3\n",
                 lasts_min[i]);
        distribution(&r, &g, yaml);
        assert_true(fabs(r.figure[MAQ_RISK_MEAN].value_s - (1.3 - 0.3 * none)) < 1e-9);
        assert_true(fabs(r.figure[MAQ_RISK_P95].value_s - (none > 0.95 ? 1 : 1.3)) < 1e-9);
        assert_string_equal(r.source[0].name, "episode");
        snprintf(yaml, sizeof yaml,
                 "gpu_cv: 0.02\n" REST "episodes_per_gpu_day: 1.5\nepisode_lasts: %g min\nepisode_ratio: 1.05\n",
                 lasts_min[i]);
        distribution(&r, &g, yaml);
        double x = r.figure[MAQ_RISK_P50].value_s, sigma = sqrt(log1p(4e-4)), below = 0, term = none;
        for (int k = 0; k <= 1000; k++) { /* more than 64 are 64 */
            int slow = k < 64 ? k : 64;
            below += term * exp((64 - slow) * log(maq_normal_cdf(log(x) / sigma)) +
                                slow * log(maq_normal_cdf(log(x / 1.05) / sigma)));
            term *= expected / (k + 1);
        }
        assert_true(fabs(below - 0.5) < 4 * sqrt(0.25 / 4000));
    }
}

/* Two classes that do not meet, and a collective of both: given stragglers of a class, and slow links of one. */
static void test_given_stragglers(void **state)
{
    static const uint32_t item[] = {0, 0, 1}, stream[] = {0, MAQ_STREAM_COUNT, MAQ_STREAM_DP}, at[] = {0, 0, 0, 2},
                          pred[] = {0, 1}, ranks[] = {8, 8};
    static const struct maq_node_tag tag[3] = {{0}, {0}, {.bucket = MAQ_BUCKET_DP}};
    static const double second[] = {1e9, 1e9};
    static const char *const name[] = {"kernel", "all_reduce 1 MiB"};
    static const uint8_t sort[] = {MAQ_ITEM_COMPUTE, MAQ_ITEM_COMMUNICATION};
    static const struct maq_graph_share share[] = {{2, MAQ_STREAM_COUNT + MAQ_STREAM_DP}};
    const struct maq_timed_graph g = {.graph = {.n_nodes = 3,
                                                .n_edges = 2,
                                                .n_classes = 2,
                                                .n_items = 2,
                                                .item = item,
                                                .stream = stream,
                                                .pred_at = at,
                                                .pred = pred,
                                                .tag = tag,
                                                .multiplicity = ranks},
                                      .dur_ns = second,
                                      .item_name = name,
                                      .item_sort = sort,
                                      .n_shares = 1,
                                      .share = share,
                                      .class_name = name};
    static const struct {
        struct maq_risk_slow_class slow[2];
        uint32_t n;
        double want;
    } cases[] = {{{{0}}, 0, 2},
                 {{{0, 1, 1.25, 1}}, 1, 2.25},
                 {{{1, 2, 1.5, 1}, {1, 1, 1.25, 1}}, 2, 2.5},
                 {{{1, 0, 1, 4}}, 1, 5}, /* the other class's links: it takes part */
                 {{{0, 8, 0.5, 1}, {1, 8, 0.5, 1}}, 2, 1.5}};
    struct maq_risk_graph r;
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        distribution_of(&r, &g, "gpu_cv: 0\n" REST, cases[i].slow, cases[i].n);
        assert_true(fabs(r.figure[MAQ_RISK_P95].value_s - cases[i].want) < 1e-12 && r.base_s == 2);
    }
    /* Seven usual ranks of one class, eight of the other, and one that is 1.02 times as slow. */
    distribution_of(&r, &g, "gpu_cv: 0.02\n" REST, (struct maq_risk_slow_class[]){{0, 1, 1.02, 1}}, 1);
    double x = r.figure[MAQ_RISK_P50].value_s - 1, sigma = sqrt(log1p(4e-4));
    double below = exp(15 * log(maq_normal_cdf(log(x) / sigma))) * maq_normal_cdf(log(x / 1.02) / sigma);
    assert_true(fabs(below - 0.5) < 4 * sqrt(0.25 / 4000));
    struct maq_risk_graph_opts opts = MAQ_RISK_GRAPH_OPTS_INIT;
    opts.slow = (struct maq_risk_slow_class[]){{2, 1, 2, 1}};
    opts.n_slow = 1;
    assert_int_equal(maq_risk_graph(&r, &g, &opts, NULL), MAQ_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_trace),
        cmocka_unit_test(test_nothing_varies),
        cmocka_unit_test(test_slowest_rank),
        cmocka_unit_test(test_curve),
        cmocka_unit_test(test_quasi_random),
        cmocka_unit_test(test_shared_noise),
        cmocka_unit_test(test_own_laws),
        cmocka_unit_test(test_mode_and_hour),
        cmocka_unit_test(test_episodes),
        cmocka_unit_test(test_given_stragglers),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("graph_readings", tests, NULL, NULL);
}
