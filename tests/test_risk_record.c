/* SPDX-License-Identifier: Apache-2.0 */
/* test_risk_record.c - what kernels vary by, learnt from traces and from measured kernels, written and read again. */
#include "maquette/risk.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/stat/law.h"
#include "base/stat/rng.h"
#include "cost/measured/store.h"
#include "risk/fit/kernel_names.h"
#include "risk/step/variation.h"

static char folder[] = "/tmp/maquette-test-record-XXXXXX";
static char path[128];

static const char *in_folder(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int make_folder(void **state)
{
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    return rmdir(folder);
}

static struct maq_risk_fit *fit(const char *file)
{
    struct maq_risk_fit_opts opts = MAQ_RISK_FIT_OPTS_INIT;
    struct maq_risk_fit *out = NULL;
    struct maq_diag *diag = maq_diag_new();
    if (maq_risk_fit(&out, &file, 1, &opts, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return out;
}

static const struct maq_risk_kernel *kernel(const struct maq_risk_fit *f, const char *name)
{
    for (uint32_t i = 0; i < f->record[0].n_kernels; i++)
        if (strcmp(f->record[0].kernel[i].name, name) == 0)
            return &f->record[0].kernel[i];
    fail_msg("no kernel %s", name);
    return NULL;
}

#define NCCL "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"

/* A trace of steps of 20 layers: two shapes of GEMM (2 %, one run in 200 ten times as long), attention (3 %), an all-reduce (5 %)
 * of which two in five runs wait. `layout`: how the file is written. */
static char *make_trace(uint32_t steps, int layout)
{
    size_t size = 1 << 22, n = 0;
    char *text = malloc(size);
    assert_non_null(text);
    double ts = 1.7e15;
    struct maq_rng r = maq_rng_of(11, MAQ_RNG_TEST, 0);
    struct maq_law two = maq_law_lognormal(1, 0.02), three = maq_law_lognormal(1, 0.03),
                   five = maq_law_lognormal(1, 0.05);
    n += (size_t)snprintf(
        text + n, size - n,
        layout ? "[" : "{\"schemaVersion\": 1, \"deviceProperties\": [{\"name\": \"H100\"}], \"traceEvents\": [");
    for (uint32_t s = 0; s < steps; s++) {
        double from = ts;
        for (uint32_t l = 0; l < 20; l++) {
            for (int k = 0; k < 2; k++) {
                double d = (k ? 900 : 200) * maq_law_sample(&two, &r) * (maq_rng_next(&r) < 0.005 ? 10 : 1);
                n += (size_t)snprintf(text + n, size - n,
                                      "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"ampere_bf16_s16816gemm\", "
                                      "\"ts\": %.3f, \"dur\": %.3f, "
                                      "\"args\": {\"grid\": [%d, 8, 1], \"stream\": 7}},\n",
                                      ts, d, k ? 64 : 32);
                ts += d;
            }
            double d = 300 * maq_law_sample(&three, &r),
                   c = 100 * maq_law_sample(&five, &r) * (maq_rng_next(&r) < 0.4 ? 3.5 : 1);
            n += (size_t)snprintf(text + n, size - n,
                                  "{\"args\": {\"grid\": [8]}, \"dur\": %.3f, \"ts\": %.3f, \"name\": "
                                  "\"flash_bwd_kernel\", \"cat\": \"kernel\", \"ph\": \"X\"},"
                                  "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"" NCCL
                                  "\", \"ts\": %.3f, \"dur\": %.3f, \"args\": {\"In msg nelems\": 1048576,"
                                  "\"Process Group Description\": \"TENSOR_MODEL_PARALLEL_GROUP\", \"Collective "
                                  "name\": \"allreduce\"}},\n",
                                  d, ts, ts + d, c);
            ts += d + c;
        }
        n += (size_t)snprintf(text + n, size - n,
                              "{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#%u\", \"ts\": "
                              "%.3f, \"dur\": %.3f},\n",
                              s, from, ts - from);
        n += (size_t)snprintf(
            text + n, size - n,
            "{\"ph\": \"i\", \"name\": \"x\", \"args\": {\"a\": [[1, {\"dur\": -1}]]}, \"s\": null, \"b\": true},\n");
    }
    (void)snprintf(text + n, size - n, layout ? "{\"ph\": \"M\"}]" : "{\"ph\": \"M\"}], \"traceName\": \"t\"}");
    return text;
}

static void write_text(const char *name, const char *text, size_t n)
{
    FILE *f = fopen(in_folder(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    fclose(f);
}

/* What went in comes out: plain, as a bare list, and compressed. */
static void test_trace(void **state)
{
    for (int layout = 0; layout < 3; layout++) {
        char *text = make_trace(40, layout == 1);
        if (layout == 2) {
            gzFile z = gzopen(in_folder("t.json"), "wb");
            assert_int_equal(gzwrite(z, text, (unsigned)strlen(text)), (int)strlen(text));
            gzclose(z);
        } else {
            write_text("t.json", text, strlen(text));
        }
        struct maq_risk_fit *f = fit(in_folder("t.json"));
        assert_int_equal(f->n_records, 1);
        assert_int_equal(f->n, 1);
        assert_int_equal(f->series[0].n, 40);
        assert_int_equal(f->record[0].steps, 40);
        const struct maq_risk_kernel *gemm = kernel(f, "gemm"), *attention = kernel(f, "attention_bwd"),
                                     *reduce = kernel(f, "all_reduce tp");
        assert_int_equal(f->record[0].n_kernels, 3);
        assert_true(gemm->runs == 1600 && gemm->pools == 2 && attention->pools == 1 && reduce->pools == 1);
        assert_true(fabs(gemm->share + attention->share + reduce->share - 1) < 1e-12 && gemm->share > 0.6);
        assert_true(fabs(gemm->cv - 0.02) < 0.002 && fabs(attention->cv - 0.03) < 0.003);
        assert_true(fabs(reduce->cv - 0.05) < 0.005 && fabs(reduce->waiting_share - 0.4) < 0.07);
        assert_true(fabs(gemm->slow_share - 0.005) < 0.004 && fabs(gemm->slow_ratio - 10) < 0.3);
        assert_true(attention->slow_share == 0 && reduce->slow_share == 0);
        assert_true(attention->distance <= attention->floor && strcmp(attention->law, "pool") != 0);
        maq_risk_fit_free(f);
        unlink(path);
        free(text);
    }
}

/* A trace with few steps has kernels and no series. */
static void test_short(void **state)
{
    char *text = make_trace(3, 0);
    write_text("t.json", text, strlen(text));
    struct maq_risk_fit *f = fit(in_folder("t.json"));
    assert_true(f->n == 0 && f->n_records == 1 && f->record[0].steps == 3 && f->record[0].step_median_s > 0.02);
    maq_risk_fit_free(f);
    unlink(path);
    free(text);
}

/* Written, read as a variation, and the same again. */
static void test_written(void **state)
{
    char *text = make_trace(40, 0), *yaml;
    struct maq_variation v, standard;
    struct maq_diag *diag = maq_diag_new();
    write_text("t.json", text, strlen(text));
    struct maq_risk_fit *f = fit(in_folder("t.json"));
    assert_int_equal(maq_risk_fit_variation(&yaml, f, diag), MAQ_OK);
    unlink(path);
    write_text("v.yaml", yaml, strlen(yaml));
    if (maq_variation_load(&v, in_folder("v.yaml"), diag) != MAQ_OK)
        fail_msg("%s\n%s", yaml, maq_diag_format(diag, 0, false));
    assert_int_equal(maq_variation_load(&standard, NULL, diag), MAQ_OK);
    assert_int_equal(v.n_kernels, 3);
    for (uint32_t i = 0; i < 3; i++) {
        const struct maq_risk_kernel *k = kernel(f, v.kernel[i].name);
        bool plain = strcmp(k->law, "lognormal") == 0; /* of others 32 values stand for the law: less of the tails */
        assert_int_equal(v.kernel[i].n_quantiles, plain ? 0 : MAQ_RISK_KERNEL_QUANTILES);
        assert_true(fabs(v.kernel[i].cv / k->cv - 1) < (plain ? 1e-5 : 0.04));
        assert_true(fabs(v.kernel[i].slow_share - k->slow_share) < 1e-6);
        for (uint32_t q = 0; q < v.kernel[i].n_quantiles; q++)
            assert_true(fabs(v.kernel[i].quantile[q] / k->quantile[q] - 1) < 1e-4);
        assert_true(fabs(v.kernel[i].slow_ratio / k->slow_ratio - 1) < 1e-5);
    }
    assert_true(v.step_cv == standard.step_cv && v.gpu_cv == standard.gpu_cv); /* a trace's steps vary by its kernels */
    unlink(path);
    maq_risk_fit_free(f);
    /* a table of steps says what steps vary by */
    char rows[4096];
    size_t n = (size_t)snprintf(rows, sizeof rows, "step,iteration_time_s\n");
    for (int i = 0; i < 100; i++)
        n += (size_t)snprintf(rows + n, sizeof rows - n, "%d,%.4f\n", i, i == 60 ? 9.0 : 3 + 0.06 * (i % 7 - 3) / 2);
    write_text("s.csv", rows, n);
    f = fit(in_folder("s.csv"));
    free(yaml);
    assert_int_equal(maq_risk_fit_variation(&yaml, f, diag), MAQ_OK);
    unlink(path);
    write_text("v.yaml", yaml, strlen(yaml));
    assert_int_equal(maq_variation_load(&v, in_folder("v.yaml"), diag), MAQ_OK);
    assert_true(v.n_kernels == 0 && fabs(v.step_cv / f->series[0].cv - 1) < 1e-5);
    assert_true(fabs(v.spike_share / f->series[0].spike_rate - 1) < 1e-5 && fabs(v.spike_ratio - 3) < 0.1);
    unlink(path);
    maq_risk_fit_free(f);
    maq_diag_free(diag);
    free(yaml);
    free(text);
}

/* A second mode of the steps is one in the document, and not in the CV beside it. */
static void test_written_mode(void **state)
{
    enum { N = 600 };
    char rows[N * 16], *yaml;
    size_t n = (size_t)snprintf(rows, sizeof rows, "iteration_time_s\n");
    struct maq_law body = maq_law_lognormal(3, 0.01);
    struct maq_rng r = maq_rng_of(1, MAQ_RNG_TEST, 91);
    struct maq_variation v;
    struct maq_diag *diag = maq_diag_new();
    for (int i = 0; i < N; i++)
        n += (size_t)snprintf(rows + n, sizeof rows - n, "%.5f\n", maq_law_sample(&body, &r) * (i % 10 == 3 ? 1.4 : 1));
    write_text("s.csv", rows, n);
    struct maq_risk_fit *f = fit(in_folder("s.csv"));
    unlink(path);
    assert_true(f->series[0].cv > 0.1 && fabs(f->series[0].mode_cv / 0.01 - 1) < 4 / sqrt(2.0 * N));
    assert_int_equal(maq_risk_fit_variation(&yaml, f, diag), MAQ_OK);
    write_text("v.yaml", yaml, strlen(yaml));
    assert_int_equal(maq_variation_load(&v, in_folder("v.yaml"), diag), MAQ_OK);
    unlink(path);
    assert_true(fabs(v.slow_mode_share - 0.1) < 0.01 && fabs(v.slow_mode_ratio / 1.4 - 1) < 0.005);
    assert_true(fabs(v.step_cv / f->series[0].mode_cv - 1) < 1e-5 && v.spike_share == 0);
    maq_risk_fit_free(f);
    maq_diag_free(diag);
    free(yaml);
}

/* What is cut off, and what is changed, gives a result or a diagnostic. */
static void test_hostile(void **state)
{
    static const struct {
        const char *text;
        enum maq_status status;
    } bad[] = {
        {"{", MAQ_BAD_INPUT},
        {"[", MAQ_BAD_INPUT},
        {"{}", MAQ_BAD_INPUT},
        {"[]", MAQ_BAD_INPUT},
        {"{\"traceEvents\": 3}", MAQ_BAD_INPUT},
        {"{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"gemm\"}]}", MAQ_BAD_INPUT},
        {"{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"gemm\", \"dur\": -1}]}", MAQ_BAD_INPUT},
        {"{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"gemm\", \"dur\": 1e300}]}",
         MAQ_BAD_INPUT},
        {"{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"kernel\", \"dur\": 1}]}", MAQ_OK},
        {"{\"a\": {\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"kernel\", \"dur\": 1}]}}", MAQ_BAD_INPUT},
        {"[[[[[[[[[[[[{\"ph\": \"X\"}]]]]]]]]]]]]", MAQ_BAD_INPUT}};
    char *text = make_trace(1, 0);
    size_t n = strlen(text);
    struct maq_risk_fit_opts opts = MAQ_RISK_FIT_OPTS_INIT;
    for (size_t i = 0; i < sizeof bad / sizeof *bad + 400; i++) {
        struct maq_diag *diag = maq_diag_new();
        struct maq_risk_fit *f = NULL;
        const char *file = in_folder("t.json");
        size_t table = sizeof bad / sizeof *bad;
        if (i < table)
            write_text("t.json", bad[i].text, strlen(bad[i].text));
        else if (i % 2)
            write_text("t.json", text, n * (i - table) / 400);
        else {
            size_t at = (size_t)(maq_rng_at(3, MAQ_RNG_TEST, 0, i) * (double)n);
            char old = text[at];
            text[at] = "\"{}[],:0x\\"[i / 2 % 10];
            write_text("t.json", text, n);
            text[at] = old;
        }
        enum maq_status status = maq_risk_fit(&f, &file, 1, &opts, diag);
        if (i < table)
            assert_int_equal(status, bad[i].status);
        assert_true((status == MAQ_OK) == (f != NULL) && (status == MAQ_OK) == (maq_diag_errors(diag) == 0));
        maq_risk_fit_free(f);
        maq_diag_free(diag);
        unlink(path);
    }
    free(text);
}

/* Events without a duration, and an end that is missing, change nothing of the others; strict findings refuse the first. */
static void test_dirt(void **state)
{
    static const char bad[] = "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"gemm\", \"dur\": -26.94},";
    struct maq_risk_fit_opts opts = MAQ_RISK_FIT_OPTS_INIT;
    struct maq_diag *diag = maq_diag_new();
    struct maq_risk_fit *f = NULL, *g = NULL;
    char *text = make_trace(1, 0), *at = strchr(strstr(text, "traceEvents"), '{'), *dirty = malloc(strlen(text) + 256);
    const char *file = in_folder("t.json");
    write_text("t.json", text, strlen(text));
    assert_int_equal(maq_risk_fit(&f, &file, 1, &opts, diag), MAQ_OK);
    assert_int_equal(maq_diag_count(diag), 0);
    sprintf(dirty, "%.*s%s%s", (int)(at - text), text, bad, at);
    *strrchr(dirty, ']') = '\0';
    write_text("t.json", dirty, strlen(dirty));
    assert_int_equal(maq_risk_fit(&g, &file, 1, &opts, diag), MAQ_OK);
    assert_int_equal(maq_diag_count(diag), 1);
    static const char says[] = "1 row left out with a value that cannot be (event 1), 1 end missing";
    const struct maq_diag_item *item = maq_diag_at(diag, 0);
    if (!memmem(item->msg.ptr, item->msg.len, says, strlen(says)))
        fail_msg("%.*s", (int)item->msg.len, item->msg.ptr);
    assert_int_equal(f->record[0].n_kernels, g->record[0].n_kernels);
    for (uint32_t i = 0; i < f->record[0].n_kernels; i++)
        assert_true(f->record[0].kernel[i].runs == g->record[0].kernel[i].runs);
    maq_risk_fit_free(f);
    maq_risk_fit_free(g);
    maq_diag_set_strict(diag, true);
    assert_int_equal(maq_risk_fit(&f, &file, 1, &opts, diag), MAQ_BAD_INPUT);
    maq_diag_free(diag);
    unlink(path);
    free(text);
    free(dirty);
}

/* Repetitions on a GPU: the body's sigma from p90, one slow run in n from what the deviation has beyond. */
static void test_profile(void **state)
{
    struct maq_kernel_store *store;
    struct maq_diag *diag = maq_diag_new();
    double sigma = 0.04, median = 1e-4, body = sqrt(expm1(sigma * sigma)), slow = 6, n = 100;
    const char *file = in_folder("k.db");
    if (maq_kernel_store_open(&store, file, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    for (int i = 0; i < 4; i++) {
        double deviation = i % 2 ? sqrt(body * body + (slow - 1) * (slow - 1) / n) : body;
        struct maq_kernel_row row = {
            .at = {"h100-sxm", "NVIDIA H100", "550", "12.4", "", "", ""},
            .op = {.kind = i == 2 ? MAQ_OP_NORM : MAQ_OP_GEMM, .dtype = MAQ_BF16, .d = {1024 << i, 1024, 1024}},
            .mode = i == 3 ? MAQ_KERNEL_SUSTAINED : MAQ_KERNEL_BURST,
            .kernel = "cublasLt",
            .times = {100, median, median * 0.95, median * exp(1.2815515655446004 * sigma), median * deviation, NULL},
            .created = "2026-01-31T12:00:00Z"};
        if (row.op.kind == MAQ_OP_NORM)
            row.op.d[2] = 0;
        if (maq_kernel_store_put(store, &row, diag) != MAQ_OK)
            fail_msg("%s", maq_diag_format(diag, 0, false));
    }
    maq_kernel_store_close(store);
    struct maq_risk_fit *f = fit(in_folder("k.db"));
    assert_true(f->n == 0 && f->n_records == 1 && f->record[0].measured && f->record[0].n_kernels == 2);
    const struct maq_risk_kernel *gemm = kernel(f, "gemm"), *norm = kernel(f, "norm");
    assert_true(fabs(gemm->cv - body) < 1e-9 && fabs(norm->cv - body) < 1e-9);
    assert_true(gemm->runs == 200 && gemm->pools == 2 && norm->runs == 100);
    assert_true(fabs(gemm->slow_share - 1.0 / 200) < 1e-12 && fabs(gemm->slow_ratio - slow) < 1e-6 &&
                norm->slow_share == 0);
    maq_risk_fit_free(f);
    unlink(path);
    maq_diag_free(diag);
}

/* Repetitions are a sample: its CV, its slow runs and its law; an operation without any is told from its summaries. */
static void test_repetitions(void **state)
{
    enum { N = 400, SHAPES = 3 };
    struct maq_kernel_store *store;
    struct maq_diag *diag = maq_diag_new();
    double x[N], bare = 0.05;
    struct maq_law law = maq_law_gamma(400, 1.0 / 400); /* CV 5 % */
    assert_int_equal(maq_kernel_store_open(&store, in_folder("k.db"), diag), MAQ_OK);
    for (uint32_t i = 0; i <= SHAPES; i++) {
        struct maq_rng r = maq_rng_of(5, MAQ_RNG_TEST, i);
        double median = 1e-4 * (i + 1);
        for (int k = 0; k < N; k++)
            x[k] = median * (k % 100 == 30 ? 4 : maq_law_sample(&law, &r));
        struct maq_kernel_row row = {
            .at = {"h100-sxm", "NVIDIA H100", "550", "12.4", "", "", ""},
            .op = {.kind = i == SHAPES ? MAQ_OP_NORM : MAQ_OP_GEMM, .dtype = MAQ_BF16, .d = {1024 << i, 1024, 1024}},
            .kernel = "cublasLt",
            .times = {N, median, median * 0.8, median * exp(1.2815515655446004 * bare), median * bare, NULL},
            .created = "2026-01-31T12:00:00Z"};
        if (i < SHAPES)
            row.times.repetition = x;
        else
            row.op.d[2] = 0;
        assert_int_equal(maq_kernel_store_put(store, &row, diag), MAQ_OK);
    }
    maq_kernel_store_close(store);
    struct maq_risk_fit *f = fit(in_folder("k.db"));
    const struct maq_risk_kernel *gemm = kernel(f, "gemm"), *norm = kernel(f, "norm");
    assert_int_equal(f->record[0].n_kernels, 2);
    assert_true(gemm->runs == SHAPES * N && gemm->pools == SHAPES && norm->runs == N && norm->pools == 1);
    assert_true(fabs(gemm->cv / 0.05 - 1) < 4 / sqrt(2.0 * SHAPES * N));
    assert_true(fabs(gemm->slow_share - 0.01) < 1e-12 && fabs(gemm->slow_ratio - 4) < 0.05);
    assert_true(gemm->distance <= gemm->floor && strcmp(gemm->law, "pool") != 0 && strcmp(norm->law, "-") == 0);
    assert_true(fabs(norm->cv - sqrt(expm1(bare * bare))) < 1e-9);
    /* time: of all repetitions, slow ones included; of summaries n medians */
    double time = 6e-4 * N * (0.99 + 0.01 * 4), rest = 4e-4 * N;
    assert_true(fabs(gemm->share / (time / (time + rest)) - 1) < 0.01 && fabs(gemm->share + norm->share - 1) < 1e-12);
    maq_risk_fit_free(f);
    unlink(path);
    maq_diag_free(diag);
}

/* Runs of two kinds, which no law here is near to: the pool itself is the law that is written. */
static void test_pool_is_the_law(void **state)
{
    enum { N = 1000 };
    static const double share[] = {0, 0.3, 0.55, 0.8, 1}, value[] = {0.8, 0.9, 1.0, 1.3};
    struct maq_kernel_store *store;
    struct maq_diag *diag = maq_diag_new();
    struct maq_variation v;
    double x[N];
    char *yaml;
    assert_int_equal(maq_kernel_store_open(&store, in_folder("k.db"), diag), MAQ_OK);
    for (int k = 0; k < N; k++)
        for (int i = 0; i < 4; i++)
            if (k * 37 % N >= share[i] * N && k * 37 % N < share[i + 1] * N)
                x[k] = 1e-4 * value[i];
    struct maq_kernel_row row = {.at = {"h100-sxm", "NVIDIA H100", "550", "12.4", "", "", ""},
                                 .op = {.kind = MAQ_OP_GEMM, .dtype = MAQ_BF16, .d = {1024, 1024, 1024}},
                                 .kernel = "cublasLt",
                                 .times = {N, 0.9e-4, 0.8e-4, 1.3e-4, 2e-5, x},
                                 .created = "2026-01-31T12:00:00Z"};
    assert_int_equal(maq_kernel_store_put(store, &row, diag), MAQ_OK);
    maq_kernel_store_close(store);
    struct maq_risk_fit *f = fit(in_folder("k.db"));
    unlink(path);
    const struct maq_risk_kernel *k = kernel(f, "gemm");
    assert_string_equal(k->law, "pool");
    for (uint32_t q = 0; q < MAQ_RISK_KERNEL_QUANTILES; q++) {
        double p = (q + 0.5) / MAQ_RISK_KERNEL_QUANTILES;
        int i = 0;
        while (p > share[i + 1])
            i++;
        assert_true(fabs(k->quantile[q] - value[i] / 0.9) < 1e-9);
    }
    assert_int_equal(maq_risk_fit_variation(&yaml, f, diag), MAQ_OK);
    write_text("v.yaml", yaml, strlen(yaml));
    if (maq_variation_load(&v, in_folder("v.yaml"), diag) != MAQ_OK)
        fail_msg("%s\n%s", yaml, maq_diag_format(diag, 0, false));
    unlink(path);
    struct maq_law body = maq_kernel_law_body(&v.kernel[0]);
    assert_true(fabs(sqrt(maq_law_variance(&body)) / maq_law_mean(&body) / k->cv - 1) < 0.01);
    assert_true(fabs(maq_kernel_law_sd(&v.kernel[0]) / sqrt(maq_law_variance(&body)) - 1) < 1e-9); /* nothing is slow */
    maq_risk_fit_free(f);
    maq_diag_free(diag);
    free(yaml);
}

static void test_names(void **state)
{
    static const char *const known[][4] = {
        {"nvjet_hsh_192x192_64x4", "", "", "gemm"},
        {"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm>", "", "", "gemm"},
        {"void flash::flash_fwd_kernel<Flash_fwd_kernel_traits>", "", "", "attention"},
        {"cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma", "", "", "attention_bwd"},
        {"void transformer_engine::normalization::rmsnorm_bwd_tuned_kernel", "", "", "norm_bwd"},
        {"void at::native::vectorized_elementwise_kernel<4>", "", "", "elementwise"},
        {"ncclDevKernel_ReduceScatter_Sum_f32_RING_LL", "", "", "reduce_scatter"},
        {"ncclDevKernel_AllGather_RING_LL", "_allgather_base", "EXPERT_DATA_PARALLEL_GROUP", "all_gather dp"},
        {"ncclDevKernel_SendRecv", "all_to_allv", "EXPERT_MODEL_PARALLEL_GROUP", "all_to_all ep"},
        {"ncclDevKernel_SendRecv", "send", "PIPELINE_MODEL_PARALLEL_GROUP", "send_recv pp"},
        {"ncclDevKernel_AllReduce_Sum", "allreduce", "default_pg", "all_reduce"},
        {"some_kernel_of_mine", "", "", "other"},
        {"", "", "", "other"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char name[MAQ_KERNEL_NAME];
        maq_kernel_name(name, &(struct maq_kernel_words){maq_str_of(known[i][0]), maq_str_of(known[i][1]),
                                                         maq_str_of(known[i][2])});
        assert_string_equal(name, known[i][3]);
    }
}

/* An entry of the catalogue says what is unlike `default`; the rest is as there. */
static void test_entries_over_default(void **state)
{
    struct maq_variation v, standard;
    (void)state;
    assert_int_equal(maq_variation_load(&standard, NULL, NULL), MAQ_OK);
    assert_int_equal(maq_variation_load(&v, "unscreened", NULL), MAQ_OK);
    assert_true(v.gpu_outlier_share > standard.gpu_outlier_share);
    assert_true(v.step_cv == standard.step_cv && v.pass_cv == standard.pass_cv &&
                v.spike_share == standard.spike_share);
    assert_true(standard.step_cv > 0 && standard.pass_cv > 0 && standard.spike_share > 0);
    assert_int_equal(maq_variation_load(&v, "none", NULL), MAQ_OK);
    assert_true(v.step_cv == 0 && v.pass_cv == 0 && v.spike_share == 0 && v.gpu_cv == 0 && v.node_cv == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries_over_default),
        cmocka_unit_test(test_trace),
        cmocka_unit_test(test_short),
        cmocka_unit_test(test_written),
        cmocka_unit_test(test_written_mode),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_dirt),
        cmocka_unit_test(test_profile),
        cmocka_unit_test(test_repetitions),
        cmocka_unit_test(test_pool_is_the_law),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
