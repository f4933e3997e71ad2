/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_profile.c - planning measurements, carrying them out on a backend that is made up, and predictions that then
 * look them up.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "cost/measured/op_key.h"
#include "maquette/catalogue.h"
#include "maquette/train.h"
#include "measure/codes.h"
#include "measure/plan.h"
#include "temp.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static int make_folder(void **state)
{
    return make_temp_folder("profile");
}

static int drop_folder(void **state)
{
    static const char *const names[] = {"run.db", "page.db", "order.db", "fail.db", "stop.db",
                                        "sus.db", "in.db",   "t.csv",    "none.db"};
    return drop_temp_folder(names, COUNT(names));
}

static struct maq_loaded_job *job_on(const char *cluster, const char *measured)
{
    struct maq_loaded_job *box;
    const struct maq_override o[] = {{"--model", "model", "llama-3.2-1b"},
                                     {"--cluster", "cluster", cluster},
                                     {"--tp", "plan.tp", "2"},
                                     {"--measured", "cost.measured", measured}};
    assert_int_equal(maq_job_load(&box, NULL, o, measured ? 4 : 3, NULL), MAQ_OK);
    return box;
}

/* --- a GPU that is made up --------------------------------------------------------------------------------------- */

#define FAKE_S 123e-6 /* every kernel takes this long, give or take `noise` */

struct fake {
    uint32_t prepared, released, runs, fail_at; /* fail_at: number of the prepared case whose run fails; 0 = none */
    double noise, clock;                        /* relative; seconds of device time so far */
    bool refuse_attention;
    uint32_t break_at; /* number of the case whose first launch breaks the device; 0 = none */
    const struct maq_profile_case *now;
};

static enum maq_profile_answer fake_prepare(void *state, const struct maq_profile_case *c, const char **kernel,
                                            char why[MAQ_PROFILE_WHY])
{
    struct fake *f = state;
    if (f->refuse_attention && !c->is_coll && c->op.kind == MAQ_OP_ATTENTION) {
        snprintf(why, MAQ_PROFILE_WHY, "no cuDNN");
        return MAQ_PROFILE_REFUSES;
    }
    if (f->break_at > 0 && f->prepared + 1 == f->break_at) {
        snprintf(why, MAQ_PROFILE_WHY, "an illegal address");
        return MAQ_PROFILE_BROKEN;
    }
    assert_ptr_equal(f->now, NULL);
    assert_true(c->n_buffers > 0);
    f->now = c;
    f->prepared++;
    *kernel = "made up";
    return MAQ_PROFILE_READY;
}

static bool fake_run(void *state, bool cold, uint32_t n, double *seconds, char why[MAQ_PROFILE_WHY])
{
    struct fake *f = state;
    assert_non_null(f->now);
    for (uint32_t i = 0; i < n; i++, f->runs++)
        seconds[i] = FAKE_S * (1 + f->noise * (f->runs % 2 ? 1 : -1)) * (cold ? 1 : 0.5);
    snprintf(why, MAQ_PROFILE_WHY, "the device fell off the bus");
    return f->fail_at == 0 || f->prepared != f->fail_at;
}

/* Full speed for four seconds, then two thirds of it: a power limit. */
static bool fake_run_on(void *state, uint32_t n, double *seconds, char why[MAQ_PROFILE_WHY])
{
    struct fake *f = state;
    *seconds = 0;
    for (uint32_t i = 0; i < n; i++) {
        double s = f->clock + *seconds < 4 ? FAKE_S : 1.5 * FAKE_S;
        *seconds += s;
    }
    f->clock += *seconds;
    return true;
}

static void fake_sense(void *state, struct maq_profile_sense *out)
{
    *out = (struct maq_profile_sense){.sm_hz = 1.7e9, .power_w = 612};
}

static void fake_release(void *state)
{
    struct fake *f = state;
    f->now = NULL;
    f->released++;
}

static struct maq_profile_backend backend_of(struct fake *f, const char *gpu)
{
    struct maq_profile_backend b = {.abi = MAQ_PROFILE_ABI,
                                    .state = f,
                                    .gpu = {.driver = "1.2", .cuda = "13.0", .count = 2, .memory_bytes = 80e9},
                                    .prepare = fake_prepare,
                                    .run = fake_run,
                                    .run_on = fake_run_on,
                                    .sense = fake_sense,
                                    .release = fake_release};
    snprintf(b.gpu.name, sizeof b.gpu.name, "%s", gpu);
    return b;
}

#define H100 "NVIDIA H100 80GB HBM3"

static struct maq_profile *run(const struct maq_job *job, const struct maq_profile_opts *opts, struct fake *f)
{
    struct maq_profile *p;
    struct maq_profile_backend b = backend_of(f, H100);
    assert_int_equal(maq_profile_run_with(&p, job, opts, f ? &b : NULL, NULL), MAQ_OK);
    return p;
}

/* --- plans ------------------------------------------------------------------------------------------------------- */

static void test_plan_of_a_job(void **state)
{
    struct maq_loaded_job *box = job_on("h100-sxm:8", NULL);
    struct maq_profile_opts opts = MAQ_PROFILE_OPTS_INIT;
    opts.dry_run = true;
    struct maq_profile *p = run(maq_job_get(box), &opts, NULL);
    double share = 0, estimate = 0;
    assert_true(p->n > 20);
    assert_int_equal(p->counts[MAQ_PROFILE_PLANNED] + p->counts[MAQ_PROFILE_SKIPPED], p->n);
    for (uint32_t i = 0; i < p->n; i++) {
        const struct maq_profile_item *it = &p->items[i];
        share += it->share;
        assert_true(i == 0 || it->share <= p->items[i - 1].share);
        assert_true(it->calls >= 1);
        assert_true((it->state == MAQ_PROFILE_PLANNED) == !it->why);
        estimate += it->state == MAQ_PROFILE_PLANNED ? it->estimate_s : 0;
        if (!it->c.is_coll &&
            it->state == MAQ_PROFILE_PLANNED) { /* tensors hold at least what has to move, once each */
            double bytes = maq_op_work(&it->c.op).bytes, held = 0;
            for (uint32_t b = 0; b < it->c.n_buffers; b++)
                held += it->c.bytes[b];
            assert_true(held >= 0.49 * bytes); /* what is written into what was read is held once and moves twice */
        }
    }
    assert_float_equal(share, 1, 1e-9);
    assert_float_equal(estimate, p->estimate_s, 1e-9);
    maq_profile_free(p);
    maq_job_free(box);
}

/* Everything the step asks the chain for is in the plan: measured, all of it answers. */
static void test_needs_are_complete(void **state)
{
    char file[128];
    struct fake f = {0};
    struct maq_loaded_job *box = job_on("h100-sxm:2", NULL);
    struct maq_profile_opts opts = MAQ_PROFILE_OPTS_INIT;
    opts.sustained = true; /* what a burst becomes in a step is test_measured.c's */
    opts.path = temp_path(file, "run.db");
    struct maq_profile *p = run(maq_job_get(box), &opts, &f);
    uint32_t measured = p->counts[MAQ_PROFILE_MEASURED];
    assert_int_equal(p->counts[MAQ_PROFILE_PLANNED], 0);
    assert_true(measured > 20);
    assert_int_equal(f.prepared, measured);
    assert_int_equal(f.released, measured);
    maq_profile_free(p);
    maq_job_free(box);

    box = job_on("h100-sxm:2", file);
    struct maq_train_result *r;
    assert_int_equal(maq_train_predict(&r, maq_job_get(box), NULL), MAQ_OK);
    assert_int_equal(r->measured.held, measured);
    assert_int_equal(r->measured.hits, measured);
    assert_true(r->provider_share[MAQ_PROVIDER_MEASURED] > 0.95); /* the rest is waiting for the host */
    for (uint32_t i = 0; i < r->n_ops; i++)
        if (r->ops[i].provider == MAQ_PROVIDER_MEASURED)
            assert_float_equal(r->ops[i].seconds / r->ops[i].count / (1.5 * FAKE_S), 1.0,
                               0.02); /* of the slowest device */
    maq_train_result_free(r);
    struct maq_train_sweep *sweep; /* the same file answers in a sweep, and in a graph */
    struct maq_train_quick quick;
    struct maq_train_graph graph;
    const struct maq_job *job = maq_job_get(box);
    assert_int_equal(maq_train_sweep_new(&sweep, job, NULL), MAQ_OK);
    assert_int_equal(maq_train_sweep_eval(sweep, &quick, &job->plan, 1), MAQ_OK);
    assert_int_equal(maq_train_predict(&r, job, NULL), MAQ_OK);
    assert_true(quick.step_s == r->step_s);
    maq_train_sweep_free(sweep);
    assert_int_equal(maq_train_graph(&graph, job, NULL), MAQ_OK);
    uint32_t hits = 0;
    for (uint32_t i = 0; i < graph.graph.n_items; i++)
        hits += fabs(graph.dur_ns[i] / (1.5 * FAKE_S * 1e9) - 1.0) < 0.02;
    assert_int_equal(hits, measured);
    maq_train_graph_free(&graph);
    maq_train_result_free(r);
    maq_job_free(box);
}

/* Its page says how many were measured and has a place for how far predictions are off; that of a plan has none. */
static void test_page(void **state)
{
    char file[128], card[96], *page;
    struct fake f = {0};
    struct maq_loaded_job *box = job_on("h100-sxm:2", NULL);
    struct maq_profile_opts opts = MAQ_PROFILE_OPTS_INIT;
    const struct maq_report_opts look = MAQ_REPORT_OPTS_INIT;
    opts.path = temp_path(file, "page.db");
    struct maq_profile *p = run(maq_job_get(box), &opts, &f);
    assert_int_equal(maq_profile_html(&page, p, &look, NULL), MAQ_OK);
    snprintf(card, sizeof card, "<h3>Measured</h3><p class=\"value\">%u</p>", p->counts[MAQ_PROFILE_MEASURED]);
    assert_non_null(strstr(page, card));
    assert_non_null(strstr(page, "id=\"against\""));
    assert_non_null(strstr(page, H100));
    free(page);
    maq_profile_free(p);
    opts.dry_run = true;
    p = run(maq_job_get(box), &opts, NULL);
    assert_int_equal(maq_profile_html(&page, p, &look, NULL), MAQ_OK);
    assert_null(strstr(page, "id=\"against\""));
    assert_non_null(strstr(page, "<h3>To be measured</h3>"));
    free(page);
    maq_profile_free(p);
    maq_job_free(box);
}

static void test_what_is_held_is_not_measured_again(void **state)
{
    char file[128];
    struct fake f = {0};
    struct maq_loaded_job *box = job_on("h100-sxm:2", NULL);
    struct maq_profile_opts opts = MAQ_PROFILE_OPTS_INIT;
    opts.path = temp_path(file, "order.db");
    struct maq_profile *p = run(maq_job_get(box), &opts, &f);
    uint32_t n = p->counts[MAQ_PROFILE_MEASURED];
    maq_profile_free(p);
    p = run(maq_job_get(box), &opts, &f);
    assert_int_equal(p->counts[MAQ_PROFILE_HELD], n);
    assert_int_equal(p->counts[MAQ_PROFILE_MEASURED], 0);
    maq_profile_free(p);
    opts.warm = true; /* other conditions are another measurement */
    p = run(maq_job_get(box), &opts, &f);
    assert_int_equal(p->counts[MAQ_PROFILE_MEASURED], n);
    maq_profile_free(p);
    opts.again = true;
    p = run(maq_job_get(box), &opts, &f);
    assert_int_equal(p->counts[MAQ_PROFILE_MEASURED], n);
    maq_profile_free(p);
    maq_job_free(box);
}

static void test_reasons(void **state)
{
    static const struct {
        struct maq_op op;
        const char *why; /* NULL: it can be measured */
        int64_t batch, seq;
    } cases[] = {
        {{.kind = MAQ_OP_ATTENTION, .dtype = MAQ_BF16, .flags = MAQ_OP_CAUSAL, .d = {16384, 4097, 32, 8, 128, 128}},
         NULL,
         2,
         8192},
        {{.kind = MAQ_OP_ATTENTION, .dtype = MAQ_BF16, .d = {4096, 1024, 32, 8, 128, 128}}, NULL, 4, 1024},
        {{.kind = MAQ_OP_ATTENTION, .dtype = MAQ_BF16, .flags = MAQ_OP_CAUSAL, .d = {8192, 1000, 32, 8, 128, 128}},
         "mean",
         0,
         0},
        {{.kind = MAQ_OP_ATTENTION, .dtype = MAQ_BF16, .flags = MAQ_OP_FLASH2, .d = {4096, 1024, 32, 8, 128, 128}},
         "FlashAttention-2",
         0,
         0},
        {{.kind = MAQ_OP_GROUPED_GEMM, .dtype = MAQ_BF16, .d = {64, 64, 64, 8, 80}}, "uneven", 0, 0},
        {{.kind = MAQ_OP_GROUPED_GEMM, .dtype = MAQ_BF16, .d = {64, 64, 64, 8, 0}}, NULL, 0, 0},
        {{.kind = MAQ_OP_GEMM, .dtype = MAQ_FP4, .d = {64, 64, 64}}, "4-", 0, 0},
        {{.kind = MAQ_OP_GEMM, .dtype = MAQ_FP8, .flags = MAQ_OP_BLOCKS, .d = {64, 64, 64}}, "blockwise", 0, 0},
        {{.kind = MAQ_OP_GEMM, .dtype = MAQ_BF16, .flags = MAQ_OP_WEIGHT8, .d = {64, 64, 64}}, "weights", 0, 0},
        {{.kind = MAQ_OP_ACTIVATION, .dtype = MAQ_BF16, .flags = MAQ_OP_DROPOUT, .d = {64, 64, 64}}, "dropout", 0, 0},
        {{.kind = MAQ_OP_NORM, .dtype = MAQ_BF16, .flags = MAQ_OP_UNFUSED, .d = {64, 64}}, "several kernels", 0, 0},
        {{.kind = MAQ_OP_SSM_SCAN, .dtype = MAQ_BF16, .d = {64, 64}}, "no kernel", 0, 0},
        {{.kind = MAQ_OP_GAP, .d = {64}}, "no kernel", 0, 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct maq_profile_case c = {.op = cases[i].op};
        const char *why = maq_profile_fill_case(&c);
        assert_int_equal(why != NULL, cases[i].why != NULL);
        if (why)
            assert_non_null(strstr(why, cases[i].why));
        assert_true(c.batch == cases[i].batch && c.seq == cases[i].seq);
    }
}

/* What is larger than the memory, and groups that are larger than the machine, are skipped with their numbers. */
static void test_limits_of_the_machine(void **state)
{
    char file[128];
    struct fake f = {0};
    uint32_t memory = 0, gpus = 0, leaves = 0;
    struct maq_loaded_job *box;
    const struct maq_override o[] = {{"--model", "model", "llama-3.1-70b"},
                                     {"--cluster", "cluster", "t4:8 x 2"},
                                     {"--set", "plan.precision", "fp16"}};
    assert_int_equal(maq_job_load(&box, NULL, o, 3, NULL), MAQ_OK);
    struct maq_profile_opts opts = MAQ_PROFILE_OPTS_INIT;
    struct maq_profile_backend b = backend_of(&f, "Tesla T4");
    struct maq_profile *p;
    opts.path = temp_path(file, "none.db");
    assert_int_equal(maq_profile_run_with(&p, maq_job_get(box), &opts, &b, NULL), MAQ_OK);
    for (uint32_t i = 0; i < p->n; i++) {
        const char *why = p->items[i].why;
        memory += why && strstr(why, "GiB of the device's") != NULL;
        gpus += why && strstr(why, "this machine has 2") != NULL;
        leaves += why && strstr(why, "leaves the node") != NULL;
    }
    assert_true(memory > 0);
    assert_true(gpus + leaves > 0);
    maq_profile_free(p);
    maq_job_free(box);
}

static void test_grids(void **state)
{
    struct maq_profile_opts opts = MAQ_PROFILE_OPTS_INIT;
    uint32_t kinds[2][MAQ_OP_KIND_COUNT] = {0}, colls[2] = {0};
    opts.dry_run = true;
    opts.device = "h100-sxm";
    for (int g = 0; g < 2; g++) {
        opts.grid = g ? MAQ_PROFILE_STANDARD : MAQ_PROFILE_QUICK;
        struct maq_profile *p = run(NULL, &opts, NULL);
        assert_int_equal(p->counts[MAQ_PROFILE_PLANNED], p->n); /* an H100 holds all of it */
        for (uint32_t i = 0; i < p->n; i++) {
            colls[g] += p->items[i].c.is_coll;
            kinds[g][p->items[i].c.op.kind] += !p->items[i].c.is_coll;
        }
        maq_profile_free(p);
    }
    for (int k = 0; k < MAQ_OP_KIND_COUNT; k++) {
        assert_true(kinds[1][k] >= kinds[0][k]);
        assert_int_equal(kinds[1][k] > 0, kinds[0][k] > 0);
    }
    assert_true(kinds[1][MAQ_OP_GEMM] > 500 && kinds[0][MAQ_OP_GEMM] < 20 && colls[1] > colls[0]);
    opts.device = "a100-80gb"; /* no 8-bit floats there */
    struct maq_profile *p = run(NULL, &opts, NULL);
    for (uint32_t i = 0; i < p->n; i++)
        assert_true(p->items[i].c.is_coll || p->items[i].c.op.dtype != MAQ_FP8);
    maq_profile_free(p);
}

/* --- no memory --------------------------------------------------------------------------------------------------- */

static int64_t until_refusal; /* allocations that are still granted; < 0: all */

static bool gate(size_t bytes)
{
    return until_refusal < 0 || until_refusal-- > 0;
}

/* The n-th allocation of a plan fails, for every n. */
static void test_no_memory(void **state)
{
    struct maq_loaded_job *box = job_on("h100-sxm:2", NULL);
    struct maq_profile_opts opts = MAQ_PROFILE_OPTS_INIT;
    struct maq_profile *p = NULL;
    enum maq_status status = MAQ_NO_MEMORY;
    uint32_t refused = 0;
    opts.dry_run = true;
    opts.grid = MAQ_PROFILE_QUICK;
    for (int64_t n = 0; status == MAQ_NO_MEMORY; n++) {
        until_refusal = n;
        maq__set_alloc_gate(gate);
        status = maq_profile_run_with(&p, maq_job_get(box), &opts, NULL, NULL);
        maq__set_alloc_gate(NULL);
        assert_true(status == MAQ_OK || status == MAQ_NO_MEMORY);
        refused += status == MAQ_NO_MEMORY;
    }
    assert_true(refused > 2);
    maq_profile_free(p);
    maq_job_free(box);
}

/* --- measuring --------------------------------------------------------------------------------------------------- */

static void test_repetitions(void **state)
{
    char why[MAQ_PROFILE_WHY];
    double kept[MAQ_PROFILE_REPETITIONS], sum = 0;
    struct maq_kernel_times t;
    struct maq_profile_sense sense;
    struct maq_profile_opts opts = MAQ_PROFILE_OPTS_INIT;
    struct maq_profile_case c = {0};
    struct fake quiet = {.now = &c}, loud = {.now = &c, .noise = 0.2}, wild = {.now = &c, .noise = 0.9};
    struct maq_profile_backend b = backend_of(&quiet, H100);
    assert_true(maq_profile_measure(&t, kept, &sense, &b, &opts, why));
    assert_int_equal(t.n, 20); /* the fewest */
    assert_float_equal(t.median_s, FAKE_S, 1e-12);
    assert_true(t.stddev_s < 1e-12 && sense.power_w == 612);
    b.state = &loud; /* s / m = 0.2: n = (0.2 / 0.02)^2 = 100 */
    opts.target_error = 0.02;
    assert_true(maq_profile_measure(&t, kept, &sense, &b, &opts, why));
    assert_in_range(t.n, 100, 110);
    assert_float_equal(t.stddev_s, 0.2 * FAKE_S, 0.01 * FAKE_S);
    assert_true(t.min_s <= t.median_s && t.median_s <= t.p90_s);
    assert_ptr_equal(t.repetition, kept);
    for (uint32_t i = 0; i < t.n; i++) { /* as the device gave them */
        assert_true(kept[i] >= t.min_s);
        sum += (kept[i] - FAKE_S) * (kept[i] - FAKE_S) / (t.n - 1);
    }
    assert_float_equal(sqrt(sum), t.stddev_s, 0.02 * FAKE_S);
    assert_true(kept[0] != t.min_s || kept[1] < kept[0] || kept[2] < kept[1]); /* not sorted */
    b.state = &wild; /* never good enough: it ends all the same */
    opts.target_error = 1e-6;
    assert_true(maq_profile_measure(&t, kept, &sense, &b, &opts, why));
    assert_int_equal(t.n, 1000);
    b.state = &quiet;
    opts.warm = true;
    assert_true(maq_profile_measure(&t, kept, &sense, &b, &opts, why));
    assert_float_equal(t.median_s, FAKE_S / 2, 1e-12);
}

/* The rate that is kept up, not the one of the first seconds. */
static void test_sustained(void **state)
{
    char why[MAQ_PROFILE_WHY];
    double kept[MAQ_PROFILE_REPETITIONS];
    struct maq_kernel_times t;
    struct maq_profile_sense sense;
    struct maq_profile_opts opts = MAQ_PROFILE_OPTS_INIT;
    struct fake f = {0};
    struct maq_profile_backend b = backend_of(&f, H100);
    opts.sustained = true;
    assert_true(maq_profile_measure(&t, kept, &sense, &b, &opts, why));
    assert_null(t.repetition); /* means of launches in a row are no repetitions */
    assert_float_equal(t.median_s, 1.5 * FAKE_S, 1e-9);
    assert_float_equal(t.min_s, 1.5 * FAKE_S, 1e-9);
    assert_in_range(t.n, 20, 1000);
}

static bool stop_after_three(void *user, const struct maq_profile_progress *p)
{
    uint32_t *asked = user;
    assert_int_equal(p->done, *asked);
    assert_true(p->total > 20 && p->what[0]);
    return ++*asked <= 3;
}

static void test_stopped_and_failed(void **state)
{
    char file[128];
    struct fake f = {0};
    uint32_t asked = 0;
    struct maq_kernel_rows rows;
    struct maq_arena arena;
    struct maq_loaded_job *box = job_on("h100-sxm:2", NULL);
    struct maq_profile_opts opts = MAQ_PROFILE_OPTS_INIT;
    opts.path = temp_path(file, "stop.db");
    opts.progress = stop_after_three;
    opts.user = &asked;
    struct maq_profile *p = run(maq_job_get(box), &opts, &f);
    assert_int_equal(p->counts[MAQ_PROFILE_MEASURED], 3);
    assert_true(p->counts[MAQ_PROFILE_LEFT] > 10);
    maq_profile_free(p);

    opts.path =
        temp_path(file, "fail.db"); /* the fourth run fails: three are in the file, and the report says which failed */
    opts.progress = NULL;
    f = (struct fake){.fail_at = 4};
    struct maq_diag *diag = maq_diag_new();
    struct maq_profile_backend b = backend_of(&f, H100);
    assert_int_equal(maq_profile_run_with(&p, maq_job_get(box), &opts, &b, diag), MAQ_IO);
    assert_int_equal(maq_diag_at(diag, 0)->code, MAQ_CODE_PROFILE_FAILED);
    assert_non_null(strstr(maq_diag_at(diag, 0)->msg.ptr, "fell off the bus"));
    maq_diag_free(diag);
    assert_int_equal(f.prepared, f.released);
    maq_arena_init(&arena, 0);
    assert_int_equal(maq_kernel_rows_read(&rows, file, &arena, NULL), MAQ_OK);
    assert_int_equal(rows.n, 3);
    assert_string_equal(rows.at[0].at.device, "h100-sxm");
    assert_string_equal(rows.at[0].at.gpu, H100);
    assert_string_equal(rows.at[0].kernel, "made up");
    assert_true(rows.at[0].state.power_w == 612);
    assert_null(rows.at[0].times.repetition);
    assert_int_equal(maq_kernel_repetitions_read(&rows, file, &arena, NULL), MAQ_OK);
    for (uint32_t i = 0; i < rows.n; i++)
        for (uint32_t k = 0; k < rows.at[i].times.n; k++)
            assert_true(rows.at[i].times.repetition[k] >= rows.at[i].times.min_s);
    maq_arena_fini(&arena);

    f = (struct fake){.break_at = 2}; /* what is in the file is held, so that the second of the others breaks */
    diag = maq_diag_new();
    assert_int_equal(maq_profile_run_with(&p, maq_job_get(box), &opts, &b, diag), MAQ_IO);
    assert_non_null(strstr(maq_diag_at(diag, 0)->msg.ptr, "illegal address"));
    maq_diag_free(diag);
    assert_int_equal(f.prepared, 1);
    assert_int_equal(f.released, 1);
    maq_arena_init(&arena, 0);
    assert_int_equal(maq_kernel_rows_read(&rows, file, &arena, NULL), MAQ_OK);
    assert_int_equal(rows.n, 4);
    maq_arena_fini(&arena);
    maq_job_free(box);
}

static void test_refused_is_no_failure(void **state)
{
    char file[128];
    struct fake f = {.refuse_attention = true};
    struct maq_loaded_job *box = job_on("h100-sxm:2", NULL);
    struct maq_profile_opts opts = MAQ_PROFILE_OPTS_INIT;
    opts.path = temp_path(file, "sus.db");
    struct maq_profile *p = run(maq_job_get(box), &opts, &f);
    assert_int_equal(p->counts[MAQ_PROFILE_REFUSED], 1);
    for (uint32_t i = 0; i < p->n; i++)
        if (p->items[i].state == MAQ_PROFILE_REFUSED)
            assert_string_equal(p->items[i].why, "no cuDNN");
    maq_profile_free(p);
    maq_job_free(box);
}

/* --- which GPU --------------------------------------------------------------------------------------------------- */

static void test_another_gpu(void **state)
{
    static const struct {
        const char *gpu, *device;
        enum maq_status status;
        unsigned code;
    } cases[] = {{"NVIDIA A100-SXM4-80GB", NULL, MAQ_BAD_INPUT, MAQ_CODE_PROFILE_OTHER_DEVICE},
                 {"NVIDIA Q1000", NULL, MAQ_BAD_INPUT, MAQ_CODE_PROFILE_DEVICE},
                 {"NVIDIA Q1000", "h100-sxm", MAQ_OK, 0},
                 {"NVIDIA Q1000", "H100", MAQ_OK, 0}};
    char file[128];
    struct maq_loaded_job *box = job_on("h100-sxm:2", NULL);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct fake f = {0};
        struct maq_profile *p;
        struct maq_diag *diag = maq_diag_new();
        struct maq_profile_opts opts = MAQ_PROFILE_OPTS_INIT;
        struct maq_profile_backend b = backend_of(&f, cases[i].gpu);
        opts.path = temp_path(file, "none.db");
        opts.device = cases[i].device;
        assert_int_equal(maq_profile_run_with(&p, maq_job_get(box), &opts, &b, diag), cases[i].status);
        if (cases[i].status == MAQ_OK)
            maq_profile_free(p);
        else
            assert_int_equal(maq_diag_at(diag, 0)->code, cases[i].code);
        maq_diag_free(diag);
    }
    maq_job_free(box);
}

/* A mixed cluster: only the GPU at hand is measured, and the rest is counted. */
static void test_mixed_cluster(void **state)
{
    struct maq_loaded_job *box;
    const struct maq_override o[] = {{"--model", "model", "llama-3.2-1b"},
                                     {"--cluster", "cluster", "a100-80gb:8 x 1, rail 200G + h100-sxm:8 x 1, rail 200G"},
                                     {"--pp", "plan.pp", "2"}};
    assert_int_equal(maq_job_load(&box, NULL, o, 3, NULL), MAQ_OK);
    struct maq_profile_opts opts = MAQ_PROFILE_OPTS_INIT;
    opts.dry_run = true;
    opts.device = "h100-sxm";
    struct maq_profile *p = run(maq_job_get(box), &opts, NULL);
    assert_string_equal(p->cluster.groups[p->group].device.name, "h100-sxm");
    assert_true(p->other_devices > 10 && p->n > 10);
    maq_profile_free(p);
    maq_job_free(box);
}

/* Every name that a driver gives a GPU is one device's alone. */
static void test_names_of_gpus(void **state)
{
    static const struct {
        const char *gpu, *device;
    } known[] = {{H100, "h100-sxm"},
                 {"NVIDIA H200", "h200"},
                 {"NVIDIA A100-SXM4-40GB", "a100-40gb"},
                 {"NVIDIA GB200", "gb200"},
                 {"Tesla T4", "t4"}};
    for (size_t i = 0; i < COUNT(known); i++)
        assert_string_equal(maq_profile_device_named(known[i].gpu), known[i].device);
    assert_null(maq_profile_device_named("NVIDIA Q1000"));
}

/* --- tables from elsewhere ---------------------------------------------------------------------------------------- */

static void test_import(void **state)
{
    char db[128], csv[128];
    char *text;
    struct maq_kernel_rows rows;
    struct maq_arena arena;
    write_text(temp_path(csv, "t.csv"), "device,kind,dtype,flags,d0,d1,d2,d3,median_s,bytes,ranks\n"
                                        "h100-sxm,gemm,bf16,bias,64,128,256,1,1e-5,,\n"
                                        "h100-sxm,all_reduce,,,,,,,2e-5,1048576,8\n");
    assert_int_equal(maq_profile_import_json(&text, temp_path(db, "in.db"), csv, NULL), MAQ_OK);
    assert_non_null(strstr(text, "\"rows\": 2"));
    free(text);
    maq_arena_init(&arena, 0);
    assert_int_equal(maq_kernel_rows_read(&rows, db, &arena, NULL), MAQ_OK);
    assert_int_equal(rows.n, 2);
    assert_int_equal(rows.at[0].op.flags, MAQ_OP_BIAS);
    assert_true(rows.at[0].op.d[2] == 256 && rows.at[0].op.d[3] == 0 && rows.at[0].times.median_s == 1e-5);
    assert_true(rows.at[1].is_coll && rows.at[1].coll.at.per_node == 8 && rows.at[1].coll.bytes == 1048576);
    maq_arena_fini(&arena);

    struct maq_diag *diag = maq_diag_new(); /* all faults at once, and nothing is written */
    write_text(csv, "device,kind,dtype,d0,median_s\nh100-sxm,gemm,bf16,7,1e-5\n,gemm,bf16,1,1\nx,origami,bf16,1,1\n"
                    "x,gemm,bf15,1,1\nx,gemm,bf16,-1,1\nx,gemm,bf16,1,soon\nx,gemm,bf16,1,\n");
    assert_int_equal(maq_profile_import_text(&text, db, csv, NULL, diag), MAQ_BAD_INPUT);
    assert_int_equal(maq_diag_errors(diag), 6);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(maq_diag_at(diag, i)->code, MAQ_CODE_PROFILE_TABLE);
        assert_int_equal(maq_diag_place(diag, maq_diag_at(diag, i)->at).line, i + 3);
    }
    maq_diag_free(diag);
    maq_arena_init(&arena, 0);
    assert_int_equal(maq_kernel_rows_read(&rows, db, &arena, NULL), MAQ_OK);
    assert_int_equal(rows.n, 2);
    maq_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_of_a_job),
        cmocka_unit_test(test_needs_are_complete),
        cmocka_unit_test(test_page),
        cmocka_unit_test(test_what_is_held_is_not_measured_again),
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_limits_of_the_machine),
        cmocka_unit_test(test_grids),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_repetitions),
        cmocka_unit_test(test_sustained),
        cmocka_unit_test(test_stopped_and_failed),
        cmocka_unit_test(test_refused_is_no_failure),
        cmocka_unit_test(test_another_gpu),
        cmocka_unit_test(test_mixed_cluster),
        cmocka_unit_test(test_names_of_gpus),
        cmocka_unit_test(test_import),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
