/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_risk_run.c - simulated runs against closed forms, against the definition played out second by second, and against what must hold
 * for every run: buckets add up, threads do not matter, worse is never sooner. maq-test: long
 */
#include "maquette/risk_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/stat/order_statistics.h"
#include "base/stat/special_functions.h"
#include "effort.h"
#include "predict.h"
#include "risk/codes.h"
#include "risk/run/model.h"
#include "risk/run/spare_pool.h"
#include "risk/run/summary.h"

#define DAY 86400.0

static const struct maq_failure_cause soft = {.name = "any", .share = 1};
static const struct maq_failure_cause hard = {.name = "any", .share = 1, .loses_node = true};

/* One cause, one recovery time, a failure of the job every mtbf_s on 16 devices. */
static struct maq_failures plain(double mtbf_s, double recover_s)
{
    return (struct maq_failures){.name = "plain",
                                 .title = "",
                                 .source = "",
                                 .rate = 1 / mtbf_s / 16,
                                 .shape = 1,
                                 .lemon_times = 1,
                                 .burst_times = 1,
                                 .together_nodes = 2,
                                 .detection = {recover_s, recover_s},
                                 .devices_per_node = 8,
                                 .n_causes = 1,
                                 .causes = &soft};
}

#define FEW 300u /* runs under a sanitizer: what is compared knows its own error */

static struct maq_run_opts job(const struct maq_failures *f, double work_s, double interval_s, double save_s)
{
    struct maq_run_opts o = MAQ_RUN_OPTS_INIT;
    o.step_s = 1;
    o.steps = work_s;
    o.devices = 16;
    o.devices_per_node = 8;
    o.failures = f;
    o.interval_s = interval_s;
    o.n_levels = 1;
    o.levels[0] = (struct maq_run_level){1, save_s, 0, 0, MAQ_SURVIVES_ALL};
    o.replicas = EFFORT(FEW, 3000, 0);
    return o;
}

static struct maq_run_result *simulate(const struct maq_run_opts *o)
{
    struct maq_run_result *r = NULL;
    struct maq_diag *diag = maq_diag_new();
    struct maq_run_opts fewer = *o;
    if (SANITIZED && fewer.replicas > FEW)
        fewer.replicas = FEW;
    if (maq_run_simulate(&r, &fewer, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return r;
}

static void assert_z(double got, double want, double error, const char *what)
{
    if (!(fabs(got - want) < 4 * error))
        fail_msg("%s: %.9g, not %.9g, standard error %.3g", what, got, want, error);
}

static void assert_agrees(const struct maq_run_opts *o)
{
    struct maq_run_result *r = simulate(o);
    double n = r->opts.replicas;
    assert_true(r->has_closed);
    assert_z(r->wall_s, r->closed.mean_s, r->wall_error_s, "mean");
    assert_z(r->failures, r->closed.failures, r->failures_sd / sqrt(n), "failures");
    /* The deviation of a sample varies by about 1 / sqrt(2 n), a little more for skewed laws. */
    assert_z(r->wall_sd_s / r->closed.sd_s, 1, 1.5 / sqrt(2 * n), "deviation");
    maq_run_result_free(r);
}

/* E8: 54 days of work, a failure in 185.5 minutes. Both exact conventions, and other jobs; with late saves the limit for long runs. */
static void test_closed_forms(void **state)
{
    NOT_UNDER_A_SANITIZER();
    struct maq_failures f = plain(185.5 * 60, 600);
    struct maq_run_opts o = job(&f, 54 * DAY, 900, 6);
    for (int k = 0; k < 2; k++) {
        o.clock = (enum maq_failure_clock)k;
        assert_agrees(&o);
    }
    f = plain(7200, 900);
    o = job(&f, 10 * DAY, 3600, 60);
    assert_agrees(&o);
    o.clock = MAQ_CLOCK_PAUSED;
    assert_agrees(&o);
    o.levels[0].persist_s = 600;
    o.steps = 200 * DAY;
    o.replicas = 2000;
    assert_agrees(&o);
    f = plain(20 * DAY, 600); /* an interval longer than the run: one save, at the end */
    o = job(&f, 5 * DAY, 100000 * DAY, 10);
    assert_agrees(&o);
}

/* E9: the share of time that is useful when a job fails every 18 minutes and takes 10 to go on. */
static void test_conventions(void **state)
{
    static const double want[] = {0.5738, 0.6429, 0.4444};
    struct maq_failures f = plain(18 * 60, 600);
    for (int k = 0; k < MAQ_CLOCK_COUNT; k++) {
        struct maq_run_opts o = job(&f, 20 * DAY, 1, 0); /* nothing is lost but the recovery, and half a second */
        o.replicas = 1000;
        o.clock = (enum maq_failure_clock)k;
        struct maq_run_result *r = simulate(&o);
        assert_z(r->goodput, want[k], 2e-4 + r->wall_error_s / r->wall_s, maq_failure_clock_name(o.clock));
        maq_run_result_free(r);
    }
}

/* Quantiles of the simulation cover those of the transform. */
static void test_quantiles(void **state)
{
    NOT_UNDER_A_SANITIZER();
    struct maq_failures f = plain(185.5 * 60, 600);
    struct maq_run_opts o = job(&f, 5 * DAY, 900, 6);
    for (int k = 0; k < 2; k++) {
        o.clock = (enum maq_failure_clock)k;
        struct maq_run_result *r = simulate(&o);
        struct maq_checkpointing c = {r->mtbf_s, 900, 6, 0, 600, o.clock};
        for (int i = 0; i < MAQ_RUN_QUANTILES; i++) {
            double exact = maq_checkpoint_quantile(&c, r->ideal_s, r->wall[i].q);
            double error = (r->wall[i].high - r->wall[i].low) / (2 * 1.96);
            assert_z(r->wall[i].value, exact, error, "quantile");
        }
        maq_run_result_free(r);
    }
}

/* E12: nothing varies, nothing fails: the step time of `maquette train`, as often as there are steps. */
static void test_deterministic(void **state)
{
    struct prediction p =
        predict_text("{model: llama-3.1-8b, cluster: 'h100-sxm:8', plan: {tp: 2}, workload: {gbs: 64}}");
    struct maq_run_opts o = job(NULL, 1, 0, 30);
    o.step_s = p.result->step_s;
    o.steps = 12345;
    struct maq_run_result *r = simulate(&o);
    assert_true(r->opts.step_s == p.result->step_s);
    assert_true(r->wall_s == r->ideal_s && r->wall_sd_s == 0);
    assert_true(r->wall_s == 12345 * (double)llround(p.result->step_s * 1e9) * 1e-9);
    assert_true(r->goodput == 1 && r->ettr == 1 && r->failures == 0);
    for (int i = 0; i < MAQ_RUN_QUANTILES; i++)
        assert_true(r->wall[i].value == r->wall_s && r->wall[i].low == r->wall_s);
    maq_run_result_free(r);
    drop(&p);
}

/* A hard job in every way there is. */
static struct maq_failures everything(void)
{
    static const struct maq_failure_cause causes[] = {
        {.name = "node", .share = 0.6, .loses_node = true},
        {.name = "hang", .share = 0.3, .own_detection = true, .detection = {1800, 1800}},
        {.name = "switch", .share = 0.1, .loses_node = true, .own_repair = true, .repair = {600, 7200}}};
    struct maq_failures f = plain(6 * 3600, 120);
    f.causes = causes;
    f.n_causes = 3;
    f.detection.mean_s = 300;
    f.requeue = (struct maq_delay){60, 90};
    f.restart = (struct maq_delay){222, 400};
    f.repair = (struct maq_delay){2 * 3600, 4 * 3600};
    f.together_share = 0.2;
    f.lemon_share = 0.1;
    f.lemon_times = 10;
    f.lemon_strikes = 3;
    f.burst_times = 5;
    f.burst_every_s = 5 * DAY;
    f.burst_lasts_s = DAY;
    f.spread = 0.3;
    return f;
}

static struct maq_run_opts everything_job(const struct maq_failures *f, int recovery, int clock, bool weibull)
{
    struct maq_run_opts o = job(f, 10 * DAY, 600, 5);
    o.devices = 128;
    o.dp_replicas = 8;
    o.spares = 2;
    o.shared_nodes = weibull ? 0 : 40;
    o.recovery = (enum maq_run_recovery)recovery;
    o.clock = (enum maq_failure_clock)clock;
    o.evaluate_every_s = 7000;
    o.evaluate_s = 100;
    o.step_sigma = 0.02;
    o.step_noise = 0.1;
    o.n_levels = 3;
    o.levels[0] = (struct maq_run_level){1, 1, 5, 10, MAQ_SURVIVES_PROCESS};
    o.levels[1] = (struct maq_run_level){3, 4, 30, 20, MAQ_SURVIVES_NODE};
    o.levels[2] = (struct maq_run_level){4, 30, 300, 120, MAQ_SURVIVES_ALL};
    o.replicas = 150;
    o.give_up = 1000;
    return o;
}

static struct maq_failures aging(struct maq_failures f)
{
    f.lemon_share = 0;
    f.burst_times = 1;
    f.shape = 0.7;
    f.age_s = DAY;
    return f;
}

/* E14: every nanosecond of every run is in one bucket, no bucket is less than nothing, and the work is all done. */
static void test_buckets_add_up(void **state)
{
    for (int i = 0; i < 18; i += SANITIZED ? 5 : 1) { /* all of each, not each with each */
        struct maq_failures f = i % 2 ? aging(everything()) : everything();
        struct maq_run_opts o = everything_job(&f, i / 6, i / 2 % 3, i % 2);
        if (o.clock == MAQ_CLOCK_QUEUED) { /* recoveries must not queue up without end */
            f.rate /= 3;
            f.spread = 0;
        }
        struct maq_run_model m;
        struct maq_arena arena;
        maq_arena_init(&arena, 0);
        assert_int_equal(maq_run_model_build(&m, &o, &arena, NULL), MAQ_OK);
        uint32_t failures = 0, endless = 0;
        for (uint32_t k = 0; k < o.replicas; k++) {
            struct maq_run_outcome out;
            struct maq_run_tally tally[3] = {0};
            assert_true(maq_run_replica(&out, tally, &m, k));
            int64_t sum = 0;
            for (int b = 0; b < MAQ_RUN_BUCKET_COUNT; b++) {
                sum += out.bucket[b];
                if (out.bucket[b] < 0)
                    fail_msg("%d: %s is %lld ns", i, maq_run_bucket_info((enum maq_run_bucket)b).name,
                             (long long)out.bucket[b]);
            }
            if (sum != out.wall)
                fail_msg("%d: buckets %lld ns, wall clock %lld ns, %u failures, endless %d", i, (long long)sum,
                         (long long)out.wall, out.failures, out.endless);
            assert_int_equal(tally[0].count + tally[1].count + tally[2].count, out.failures);
            assert_true(out.endless || fabs((double)out.bucket[MAQ_RUN_PRODUCTIVE] / m.work_ns - 1) < 0.2);
            endless += out.endless;
            failures += out.failures;
        }
        assert_true(failures > 500 && endless < o.replicas / 10);
        maq_arena_fini(&arena);
    }
}

/* E15: the same bytes on any number of threads. */
static void test_threads(void **state)
{
    for (int recovery = 0; recovery < MAQ_RECOVERY_COUNT; recovery++) {
        struct maq_failures f = everything();
        struct maq_run_opts o = everything_job(&f, recovery, 0, false);
        static const uint32_t threads[] = {1, 2, 16};
        struct maq_run_result *r[3];
        for (int i = 0; i < 3; i++) {
            o.threads = threads[i];
            r[i] = simulate(&o);
            r[i]->opts.threads = 0;
            for (uint32_t c = 0; c < r[i]->n_causes; c++)
                assert_true(r[i]->causes[c].count == r[0]->causes[c].count &&
                            r[i]->causes[c].lost_s == r[0]->causes[c].lost_s);
        }
        for (int i = 1; i < 3; i++) {
            r[i]->causes = r[0]->causes;
            assert_memory_equal(r[i], r[0], sizeof *r[0]);
            maq_run_result_free(r[i]);
        }
        o.seed = 2;
        struct maq_run_result *other = simulate(&o);
        assert_true(other->wall_s != r[0]->wall_s);
        maq_run_result_free(other);
        maq_run_result_free(r[0]);
    }
}

static double p95(const struct maq_run_opts *o)
{
    struct maq_run_result *r = simulate(o);
    double value = r->wall[2].value;
    maq_run_result_free(r);
    return value;
}

/* E13: more failures, ranks, variation, repair; fewer spares: never sooner. The same failures are seen by both sides. */
static void test_worse_is_never_sooner(void **state)
{
    struct maq_failures base = plain(24 * 3600, 300);
    base.causes = &hard;
    base.repair = (struct maq_delay){6 * 3600, 12 * 3600};
    struct maq_run_opts o = job(&base, 20 * DAY, 1200, 10);
    o.spares = 4;
    o.replicas = 1000;
    double last = p95(&o);
    for (int k = 0; k < 6; k++) { /* one thing after the other, each on top */
        struct maq_failures *f = &base;
        if (k == 0)
            f->rate *= 1.5;
        else if (k == 1)
            o.devices *= 2;
        else if (k == 2)
            f->spread = 0.4;
        else if (k == 3)
            o.step_sigma = 0.05;
        else if (k == 4)
            f->repair.median_s = f->repair.mean_s = 24 * 3600;
        else
            o.spares = 1;
        double now = p95(&o);
        if (!(now >= last))
            fail_msg("change %d: %g days after %g", k, now / DAY, last / DAY);
        last = now;
    }
}

/* Mean of nodes and time: lemons and bursts change the spread of the number of failures, not the number. */
static void test_lemons_and_bursts_keep_the_rate(void **state)
{
    for (int k = 0; k < 4; k++) {
        struct maq_failures f = plain(3600, 0);
        if (k & 1) {
            f.lemon_share = 0.1;
            f.lemon_times = 20;
        }
        if (k & 2) {
            f.burst_times = 10;
            f.burst_every_s = 3 * DAY;
            f.burst_lasts_s = DAY / 2;
        }
        struct maq_run_opts o = job(&f, 20 * DAY, 1, 0);
        o.devices = 800;
        f.rate = 1.0 / 3600 / 800;
        struct maq_run_result *r = simulate(&o);
        double expected = r->wall_s / 3600;
        assert_z(r->failures, expected, r->failures_sd / sqrt(r->opts.replicas), "failures");
        double poisson = r->failures_sd / sqrt(r->failures);
        if (k == 0)
            assert_z(poisson, 1, 0.02, "a Poisson process");
        else
            assert_true(poisson > 1.1);
        maq_run_result_free(r);
    }
}

/* One node with Weibull failures is a renewal process: played out here with other code on the same law. */
static void test_weibull_renewal(void **state)
{
    NOT_UNDER_A_SANITIZER();
    for (int k = 0; k < 3; k++) {
        static const double shapes[] = {0.6, 1.0001, 2};
        double mean = 100, eta = mean / tgamma(1 + 1 / shapes[k]), sum = 0, squares = 0;
        enum { N = 40000 };
        for (uint32_t i = 0; i < N; i++) { /* 50 segments of 30 s, 10 s of recovery without failures */
            struct maq_rng rng = maq_rng_of(99, MAQ_RNG_TEST, i);
            double wall = 0;
            int done = 0;
            while (done < 50) {
                double life = eta * pow(-log(maq_rng_next(&rng)), 1 / shapes[k]);
                int here = (int)(life / 30);
                if (done + here >= 50) {
                    wall += (50 - done) * 30;
                    break;
                }
                done += here;
                wall += life + 10;
            }
            sum += wall;
            squares += wall * wall;
        }
        double want = sum / N, sd = sqrt(squares / N - want * want);
        struct maq_failures f = plain(mean, 10);
        f.shape = shapes[k];
        struct maq_run_opts o = job(&f, 1500, 30, 0);
        o.devices_per_node = 16;
        o.clock = MAQ_CLOCK_PAUSED;
        struct maq_run_result *r = simulate(&o);
        assert_z(r->wall_s, want, hypot(r->wall_error_s, sd / sqrt(N)), "mean");
        assert_z(r->wall_sd_s / sd, 1, 0.015, "deviation");
        maq_run_result_free(r);
    }
}

/* New nodes with a shape below one fail early: the first of n fails at eta (E/n)^(1/k); and a Weibull with shape 1 is exponential. */
static void test_weibull_fleet(void **state)
{
    struct maq_failures f = plain(3600, 0);
    f.shape = 0.5;
    struct maq_run_opts o = job(&f, 2 * DAY, 1, 0);
    o.devices = 1600;
    f.rate = 1.0 / 3600 / 1600;
    struct maq_run_result *young = simulate(&o);
    f.age_s = 1000 * DAY;
    struct maq_run_result *old = simulate(&o);
    /* 200 nodes of hazard (t / eta)^0.5 over two days, hardly any twice. */
    double eta = 200 * 3600 / 2.0, expected = 200 * sqrt(young->wall_s / eta);
    assert_true(young->failures > 1.5 * old->failures);
    assert_true(young->failures > 0.98 * expected && young->failures < 2 * expected);
    maq_run_result_free(young);
    maq_run_result_free(old);
}

/* E16: restarts with a median of 222 s and a mean of 2,334 s: sigma is 2.169, and what a run loses is the mean. */
static void test_heavy_restart(void **state)
{
    struct maq_failures f = plain(DAY, 0);
    f.restart = (struct maq_delay){222, 2334};
    struct maq_run_opts o = job(&f, 100 * DAY, 1, 0);
    o.clock = MAQ_CLOCK_PAUSED;
    o.replicas = 0; /* all: the mean of a million of these restarts is known to 1 % */
    struct maq_run_model m;
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    assert_int_equal(maq_run_model_build(&m, &o, &arena, NULL), MAQ_OK);
    assert_true(fabs(m.restart.sigma - 2.169) < 5e-4);
    maq_arena_fini(&arena);
    struct maq_run_result *r = simulate(&o);
    assert_true(fabs(r->bucket_s[MAQ_RUN_RESTART] / r->failures / 2334 - 1) < 0.02);
    assert_true(fabs(r->goodput / (DAY / (DAY + 2334)) - 1) < 0.02);
    maq_run_result_free(r);
}

/*
 * Wrong results that are found late: saves since are wrong too. A failure at work x sets back to the last multiple of the interval at or
 * below x - L, on average by L + interval / 2, whatever recovery would otherwise keep going. `at once` is what it always was.
 */
static void test_found_late(void **state)
{
    struct maq_failure_cause late = {.name = "silent", .share = 1, .found_after = {7000, 7000}};
    for (int recovery = MAQ_RECOVERY_RESTART; recovery <= MAQ_RECOVERY_REPLICA; recovery++) {
        struct maq_failures f = plain(10 * DAY, 60);
        struct maq_run_opts o = job(&f, 100 * DAY, 3000, 0);
        o.recovery = recovery;
        o.replicas = 2000;
        o.clock = MAQ_CLOCK_PAUSED;
        o.dp_replicas = 2;
        o.min_replicas = 1;
        struct maq_run_result *soon = simulate(&o);
        f.causes = &late;
        struct maq_run_result *r = simulate(&o);
        double n = r->failures * r->opts.replicas; /* failures; a loss is even in an interval of 3,000 s */
        assert_z(r->bucket_s[MAQ_RUN_WASTED] / r->failures, 7000 + 1500, 3000 / sqrt(12 * n),
                 "work lost to one failure");
        assert_false(r->has_closed);
        assert_true(r->wall_s > soon->wall_s);
        if (recovery == MAQ_RECOVERY_RESTART) {
            assert_true(soon->has_closed);
            assert_z(soon->bucket_s[MAQ_RUN_WASTED] / soon->failures, 1500, 3000 / sqrt(12 * n), "work lost at once");
        }
        maq_run_result_free(soon);
        maq_run_result_free(r);
    }
    /* before the first save from before: to the beginning */
    struct maq_failures f = plain(20000, 0);
    struct maq_run_opts o = job(&f, 10000, 1000, 0);
    late.found_after = (struct maq_delay){1e9, 1e9};
    f.causes = &late;
    o.replicas = 4000;
    struct maq_run_result *r = simulate(&o);
    /* every failure is a new beginning: Daly's mean with one segment of the whole length, M (e^(L / M) - 1) */
    assert_z(r->wall_s, 20000 * (exp(0.5) - 1), r->wall_error_s, "always from the beginning");
    maq_run_result_free(r);
}

/* --- the track, second by second --- */

/* Position 0 .. end in unit steps, each a nanosecond of work, a save or an evaluation. */
static void play(const struct maq_track *t)
{
    const struct maq_speed full = {1, 1};
    struct maq_track_sums s = {0};
    int64_t time = 0, k = 0, pause = 0;
    bool saving = false;
    while (s.work < t->end || pause > 0) {
        struct maq_track_place at = maq_track_at(t, full, time);
        struct maq_track_sums got = maq_track_sums(t, at);
        if (got.work != s.work || got.save != s.save || got.eval != s.eval || at.k != k)
            fail_msg("at %lld: work %lld save %lld eval %lld k %lld, not %lld %lld %lld %lld", (long long)time,
                     (long long)got.work, (long long)got.save, (long long)got.eval, (long long)at.k, (long long)s.work,
                     (long long)s.save, (long long)s.eval, (long long)k);
        assert_true(maq_track_time(t, full, at) == time);
        if (pause > 0) {
            pause--;
            s.save += saving;
            s.eval += !saving;
        } else {
            s.work++;
        }
        time++;
        if (pause == 0 && saving) {
            saving = false;
            k++;
            if (t->eval_every && s.work % t->eval_every == 0 && s.work < t->end)
                pause = t->eval_pause;
        } else if (pause == 0 && s.work > 0 && s.work % t->interval == 0 && s.work / t->interval > k) {
            saving = true;
            pause = t->save[maq_track_level(t, k + 1)];
        } else if (pause == 0 && t->eval_every && s.work % t->eval_every == 0 && s.work < t->end &&
                   s.eval < s.work / t->eval_every * t->eval_pause) {
            pause = t->eval_pause;
        }
    }
}

static void test_track(void **state)
{
    struct maq_track t = {
        .end = 1000, .interval = 50, .n_levels = 3, .every = {1, 2, 6, INT64_MAX}, .save = {3, 5, 11}};
    play(&t);
    t.eval_every = 70;
    t.eval_pause = 9;
    play(&t);
    t.eval_every = 50; /* right behind a save */
    play(&t);
    t.eval_every = 13;
    play(&t);
    t.n_levels = 1;
    t.every[1] = INT64_MAX;
    play(&t);
    t.eval_every = 0; /* all intervals alike */
    play(&t);
    /* The end: whole intervals, and one that is cut short and saved too. */
    const struct maq_speed full = {1, 1}, half = {1, 2};
    t = (struct maq_track){.end = 120, .interval = 50, .n_levels = 1, .every = {1, INT64_MAX}, .save = {3}};
    assert_int_equal(maq_track_end(&t, full), 120 + 3 * 3);
    assert_int_equal(maq_track_end(&t, half), 240 + 3 * 3);
    t.end = 100;
    assert_int_equal(maq_track_end(&t, full), 106);
}

/* A number means the first cause whose share of the unit interval it lies in: looked up as if each were asked in turn. */
static void test_causes(void **state)
{
    const double shares[] = {0.5, 0.001, 0.0009, 0.25, 0, 0.1481, 0.1};
    struct maq_failure_cause causes[MAQ_COUNT(shares)];
    struct maq_failures f = plain(1000, 10);
    struct maq_run_opts o = job(&f, DAY, 600, 10);
    struct maq_run_model m;
    struct maq_arena arena;
    for (uint32_t i = 0; i < MAQ_COUNT(shares); i++)
        causes[i] = (struct maq_failure_cause){.name = "any", .share = shares[i]};
    f.causes = causes;
    f.n_causes = MAQ_COUNT(shares);
    maq_arena_init(&arena, 0);
    assert_int_equal(maq_run_model_build(&m, &o, &arena, NULL), MAQ_OK);
    for (uint32_t k = 0; k < 4000; k++) {
        double u = (k + 0.5) / 4000;
        uint32_t expected = 0;
        while (expected + 1 < m.n_causes && u >= m.causes[expected].upto)
            expected++;
        assert_int_equal(maq_run_cause_of(&m, u), expected);
    }
    assert_int_equal(maq_run_cause_of(&m, 0x1p-53), 0);
    assert_int_equal(maq_run_cause_of(&m, 1 - 0x1p-53), MAQ_COUNT(shares) - 1);
    for (double x = 0.25; x < 8e18; x *= 1.37)
        assert_true(maq_run_ns(x) == llround(x));
    assert_true(maq_run_ns(2.5) == 3 && maq_run_ns(0.49999999999999994) == 0);
    maq_arena_fini(&arena);
}

/* --- nodes --- */

static void test_pool_serves_in_order(void **state)
{
    struct maq_spare_pool p = {.free = 1};
    int64_t need = 2, lemons = 0;
    maq_spare_pool_lose(&p, 100, false);
    maq_spare_pool_lose(&p, 50, true);
    assert_int_equal(maq_spare_pool_take(&p, 10, 1000, &need, &lemons, 0.5),
                     50); /* the spare at once, the first back */
    assert_int_equal(need, 0);
    assert_int_equal(lemons, 1);
    need = 1;
    assert_int_equal(maq_spare_pool_take(&p, 60, 90, &need, &lemons, 0.5), 90); /* nobody is back by then */
    assert_int_equal(need, 1);
    assert_int_equal(maq_spare_pool_take(&p, 95, 1000, &need, &lemons, 0.5), 100);
    assert_int_equal(need, 0);
    maq_heap_free(&p.repairs);
}

/* As many spares as M/G/infinity says leave next to nothing to wait for; none, or many others who want them, do not. */
static void test_spares(void **state)
{
    struct maq_failures f = plain(12 * 3600, 300);
    f.causes = &hard;
    f.repair = (struct maq_delay){DAY / 2, DAY};
    struct maq_run_opts o = job(&f, 20 * DAY, 1200, 10);
    o.replicas = 100;
    o.devices = 8000;
    f.rate = 1.0 / (12 * 3600) / 8000;
    o.spares = maq_spares_quantile(1.0 / (12 * 3600), DAY, 0.99999);
    struct maq_run_result *enough = simulate(&o);
    assert_true(enough->bucket_s[MAQ_RUN_NODE_WAIT] < 1e-3 * enough->wall_s);
    o.spares = 0;
    struct maq_run_result *none = simulate(&o);
    assert_true(none->bucket_s[MAQ_RUN_NODE_WAIT] > 0.25 * none->wall_s);
    o.spares = enough->opts.spares;
    o.shared_nodes = 6000;
    struct maq_run_result *shared = simulate(&o);
    assert_true(shared->bucket_s[MAQ_RUN_NODE_WAIT] > enough->bucket_s[MAQ_RUN_NODE_WAIT] + 0.05 * enough->wall_s);
    maq_run_result_free(shared);
    maq_run_result_free(enough);
    maq_run_result_free(none);
}

/* Nodes of other jobs fail of the same causes: nodes in repair are a Poisson law with rate x mean repair over the causes (M/G/infinity), in
 * whatever order these stand, and programs that start again take no node. */
static void test_repairs_of_others(void **state)
{
    static const struct maq_spare_pool_repair repairs[] = {{0.25, 1e5, 0}, {0.75, 1e6, 0.5}, {1, 5e4, 0}};
    enum { LOOKS = 4000 };
    /* Moments are whole nanoseconds: of 50,000 between two failures the rounding is no bias that these looks could see. */
    double rate = 2e-5, mean = rate * (0.25 * 1e5 + 0.5 * 1e6 * exp(0.125) + 0.25 * 5e4), sum = 0;
    struct maq_spare_pool p = {.free = 1000000, .other_rate = rate, .other_next = 1, .repair = repairs, .n_repairs = 3};
    p.rng = maq_rng_of(9, MAQ_RNG_TEST, 4);
    for (int64_t i = 1; i <= LOOKS; i++) {
        int64_t need = 0, lemons = 0, now = 20000000 * i;
        maq_spare_pool_take(&p, now, now, &need, &lemons, 0.5);
        sum += (double)p.repairs.n / LOOKS;
    }
    maq_heap_free(&p.repairs);
    assert_true(fabs(sum - mean) < 4 * sqrt(mean / LOOKS));
}

/* The least number of spares for a promise: one fewer breaks it. A date before the ideal one is kept with none. */
static void test_promise(void **state)
{
    struct maq_failures f = plain(12 * 3600, 300);
    f.causes = &hard;
    f.repair = (struct maq_delay){DAY / 2, DAY};
    struct maq_run_opts o = job(&f, 20 * DAY, 1200, 10);
    o.replicas = 1000;
    o.promise_s = 21.5 * DAY;
    o.promise_share = 0.9;
    uint32_t least = 0;
    assert_int_equal(maq_run_least_spares(&least, &o, NULL), MAQ_OK);
    assert_true(least >= 1 && least < 20);
    for (uint32_t n = least - 1; n <= least; n++) {
        o.spares = n;
        struct maq_run_result *r = simulate(&o);
        assert_true((r->promise_met >= 0.9) == (n == least));
        assert_true(r->promise_low < r->promise_met && r->promise_met < r->promise_high);
        maq_run_result_free(r);
    }
    o.promise_s = 19 * DAY;
    assert_int_equal(maq_run_least_spares(&least, &o, NULL), MAQ_OK);
    assert_true(least == UINT32_MAX);
}

/* What if: the interval around which the others are tried is the best of them; each variant differs in one thing. */
static void test_what_if(void **state)
{
    struct maq_failures f = plain(3 * 3600, 300);
    f.causes = &hard;
    f.repair = (struct maq_delay){DAY / 8, DAY / 4};
    struct maq_run_opts o = job(&f, 20 * DAY, 0, 30);
    struct maq_run_variants *v;
    o.replicas = SANITIZED ? FEW : 1000;
    o.dp_replicas = 2;
    o.spares = 10;
    assert_int_equal(maq_run_what_if(&v, &o, MAQ_WHAT_CHECKPOINT, NULL), MAQ_OK);
    assert_int_equal(v->n, 7);
    assert_int_equal(v->best, 3);
    assert_true(fabs(v->results[3]->interval_s / maq_checkpoint_optimal(3 * 3600, 30) - 1) < 1e-9);
    maq_run_variants_free(v);
    assert_int_equal(maq_run_what_if(&v, &o, MAQ_WHAT_SPARES, NULL), MAQ_OK);
    for (uint32_t i = 1; i < v->n; i++)
        assert_true(v->results[i]->wall_s <= v->results[i - 1]->wall_s &&
                    v->results[i]->opts.spares > v->results[i - 1]->opts.spares);
    maq_run_variants_free(v);
    assert_int_equal(maq_run_what_if(&v, &o, MAQ_WHAT_REPLICAS, NULL), MAQ_OK);
    assert_int_equal(v->n, MAQ_RECOVERY_COUNT);
    maq_run_variants_free(v);
}

/* Without spares fewer replicas are better than none; where restarting takes long, going on is better than both. */
static void test_recovery(void **state)
{
    struct maq_run_result *r[MAQ_RECOVERY_COUNT];
    struct maq_failures f = plain(6 * 3600, 60);
    f.causes = &hard;
    f.restart = (struct maq_delay){900, 900};
    f.repair = (struct maq_delay){DAY / 2, DAY};
    for (int k = 0; k < MAQ_RECOVERY_COUNT; k++) {
        struct maq_run_opts o = job(&f, 20 * DAY, 1200, 10);
        o.devices = 1024;
        f.rate = 1.0 / (6 * 3600) / 1024;
        o.dp_replicas = 32;
        o.recovery = (enum maq_run_recovery)k;
        o.replicas = 500;
        o.give_up = 1000;
        r[k] = simulate(&o);
        assert_true(fabs(r[k]->bucket_s[MAQ_RUN_PRODUCTIVE] / (20 * DAY) - 1) < 1e-12);
    }
    assert_true(r[MAQ_RECOVERY_RESTART]->bucket_s[MAQ_RUN_SLICE_DOWN] == 0);
    assert_true(r[MAQ_RECOVERY_ELASTIC]->bucket_s[MAQ_RUN_NODE_WAIT] == 0);
    assert_true(r[MAQ_RECOVERY_ELASTIC]->wall_s < 0.7 * r[MAQ_RECOVERY_RESTART]->wall_s);
    assert_true(r[MAQ_RECOVERY_REPLICA]->wall_s < r[MAQ_RECOVERY_ELASTIC]->wall_s);
    assert_true(r[MAQ_RECOVERY_REPLICA]->bucket_s[MAQ_RUN_SLICE_DOWN] > 0);
    for (int k = 0; k < MAQ_RECOVERY_COUNT; k++)
        maq_run_result_free(r[k]);
}

/* More replicas than nodes: a node takes its own with it. Half of two nodes gone is half of the speed. */
static void test_replicas_inside_a_node(void **state)
{
    struct maq_failures f = plain(DAY, 0);
    f.causes = &hard;
    f.repair = (struct maq_delay){DAY, DAY};
    struct maq_run_result *r[2];
    for (int k = 0; k < 2; k++) {
        struct maq_run_opts o = job(&f, 20 * DAY, 600, 0);
        o.recovery = MAQ_RECOVERY_ELASTIC;
        o.reconfigure_s = 0;
        o.dp_replicas = k == 0 ? 2 : 16;
        o.replicas = 300;
        r[k] = simulate(&o);
    }
    assert_true(r[0]->wall_s == r[1]->wall_s);
    assert_true(r[0]->bucket_s[MAQ_RUN_SLICE_DOWN] > 0.1 * r[0]->wall_s && r[0]->goodput > 0.5);
    maq_run_result_free(r[0]);
    maq_run_result_free(r[1]);
}

/* --- summaries --- */

static void test_order_statistics(void **state)
{
    double x[1000];
    uint32_t covered = 0, kept = 0;
    for (int i = 0; i < 1000; i++)
        x[i] = i + 1;
    struct maq_run_quantile m = maq_run_quantile_of(x, 1000, 0.5);
    assert_true(m.value == 500.5 && m.low == 469 &&
                m.high == 532); /* binomial(1000, 1/2): 469 and 531, one more above */
    m = maq_run_quantile_of(x, 20, 0.99);
    assert_true(isnan(m.high) && m.low <= 20); /* 20 runs bound no 99th percentile from above */
    /* In samples of a uniform law the interval covers the quantile in 95 % of cases or a little more. */
    for (uint32_t k = 0; k < 2000; k++) {
        struct maq_rng rng = maq_rng_of(5, MAQ_RNG_TEST, k);
        double y[101];
        for (int i = 0; i < 101; i++) {
            double u = maq_rng_next(&rng);
            int at = i;
            for (; at > 0 && y[at - 1] > u; at--)
                y[at] = y[at - 1];
            y[at] = u;
        }
        m = maq_run_quantile_of(y, 101, 0.9);
        covered += m.low <= 0.9 && m.high >= 0.9;
        kept += maq_order_guarantee(y, 101) >= 0.95;
    }
    assert_true(covered > 1880 && covered < 1995);
    /* so does the guarantee: the second highest of 101 is above the 95th percentile in 96.6 %: four standard errors around it */
    double share = 1 - pow(0.95, 101) - 101 * 0.05 * pow(0.95, 100);
    assert_true(fabs(kept / 2000.0 - share) < 4 * sqrt(share * (1 - share) / 2000));
    assert_true(maq_order_guarantee(x, 59) == 59); /* 0.95^59 < 0.05 < 0.95^58 */
    assert_true(isnan(maq_order_guarantee(x, 58)));
    double low, high;
    maq_run_share(&low, &high, 50, 100);
    assert_true(fabs(low - 0.4038) < 1e-4 && fabs(high - 0.5962) < 1e-4);
}

static void test_refusals(void **state)
{
    struct maq_failures f = plain(100, 10000);
    struct maq_run_opts o = job(&f, DAY, 600, 10);
    struct maq_run_result *r;
    struct maq_diag *diag = maq_diag_new();
    assert_int_equal(maq_run_simulate(&r, &o, diag), MAQ_NO);
    f = plain(1000, 10);
    o.steps = 0.5;
    assert_int_equal(maq_run_simulate(&r, &o, diag), MAQ_BAD_INPUT);
    o.steps = 100;
    o.recovery = MAQ_RECOVERY_ELASTIC;
    assert_int_equal(maq_run_simulate(&r, &o, diag), MAQ_BAD_INPUT);
    o.recovery = MAQ_RECOVERY_RESTART;
    o.levels[0].survives = MAQ_SURVIVES_NODE;
    assert_int_equal(maq_run_simulate(&r, &o, diag), MAQ_BAD_INPUT);
    assert_int_equal(maq_diag_errors(diag), 4);
    maq_diag_free(diag);
}

/* A run of one step starts, does its step and saves; its length is none of its steps alone. */
static void test_a_few_steps(void **state)
{
    struct maq_failures f = plain(30 * DAY, 600);
    f.restart = (struct maq_delay){300, 300};
    struct maq_run_opts o = job(&f, 1, 3600, 5);
    struct maq_run_result *r = simulate(&o);
    assert_int_equal(r->endless, 0);
    assert_true(r->wall[1].value > 250 && r->wall[1].value < 400);
    assert_true(r->wall[1].value < maq_run_late_s(r) && r->bound_s >= r->wall[1].value);
    maq_run_result_free(r);
}

/*
 * Of runs that are given up nothing is known but that they take longer. A failure loses a node for years: as many runs are given up as fail
 * once, e^-1 of them do not. With many failures none comes to its end, and that is the answer, unless who asks has set the limit.
 */
static void test_given_up(void **state)
{
    struct maq_failures f = plain(1000, 1);
    f.causes = &hard;
    f.repair = (struct maq_delay){1e9, 1e9};
    struct maq_run_opts o = job(&f, 1000, 10000, 0);
    struct maq_run_result *r = simulate(&o);
    double n = r->opts.replicas, kept = exp(-1);
    assert_z(r->endless / n, 1 - kept, sqrt(kept * (1 - kept) / n), "given up");
    assert_true(r->wall[0].value < maq_run_late_s(r) && r->wall[1].value >= maq_run_late_s(r));
    assert_true(isnan(r->bound_s));
    maq_run_result_free(r);

    f.rate *= 20;
    o.interval_s = 10;
    struct maq_diag *diag = maq_diag_new();
    assert_int_equal(maq_run_simulate(&r, &o, diag), MAQ_NO);
    assert_int_equal(maq_diag_at(diag, 0)->code, MAQ_CODE_RUN_ENDLESS);
    assert_non_null(strstr(maq_diag_at(diag, 0)->msg.ptr, "comes to its end"));
    maq_diag_free(diag);
    o.give_up = 10;
    r = simulate(&o);
    assert_int_equal(r->endless, r->opts.replicas);
    maq_run_result_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_few_steps),
        cmocka_unit_test(test_given_up),
        cmocka_unit_test(test_closed_forms),
        cmocka_unit_test(test_conventions),
        cmocka_unit_test(test_quantiles),
        cmocka_unit_test(test_deterministic),
        cmocka_unit_test(test_buckets_add_up),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_worse_is_never_sooner),
        cmocka_unit_test(test_lemons_and_bursts_keep_the_rate),
        cmocka_unit_test(test_weibull_renewal),
        cmocka_unit_test(test_weibull_fleet),
        cmocka_unit_test(test_heavy_restart),
        cmocka_unit_test(test_found_late),
        cmocka_unit_test(test_track),
        cmocka_unit_test(test_causes),
        cmocka_unit_test(test_pool_serves_in_order),
        cmocka_unit_test(test_repairs_of_others),
        cmocka_unit_test(test_spares),
        cmocka_unit_test(test_promise),
        cmocka_unit_test(test_what_if),
        cmocka_unit_test(test_recovery),
        cmocka_unit_test(test_replicas_inside_a_node),
        cmocka_unit_test(test_order_statistics),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
