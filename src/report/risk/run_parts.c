/* SPDX-License-Identifier: Apache-2.0 */
/* run_parts.c - tables and lines about a run. See run_parts.h. */
#include "report/risk/run_parts.h"

#include <math.h>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "report/money.h"
#include "report/risk/date.h"
#include "report/words.h"

#define DAY 86400.0
#define HOUR 3600.0

const char *maq_words_days(char buf[32], double s)
{
    if (isnan(s))
        return "-";
    double d = s / DAY;
    if (d > 0 && d < 0.01) /* a few steps */
        return maq_format_time(buf, s);
    maq__snprintf(buf, 32, "%.*f d", d < 9.995 ? 3 : d < 99.95 ? 2 : 1, d);
    return buf;
}

/* Given up: later than that. */
static const char *later(const struct maq_run_result *run, double s)
{
    return s >= maq_run_late_s(run) ? "> " : "";
}

static const char *length(char buf[32], double s)
{
    if (isinf(s))
        return "never";
    return maq_format_time(buf, s);
}

/* ---- what was asked ---- */

static void put_run(const struct maq_lines *to, const struct maq_report_run *r)
{
    struct maq_buf line;
    char n[32], t[32], d[32];
    maq_buf_init(&line, 1 << 16);
    maq_buf_addf(&line, "%s tokens: %s steps of ", maq_format_count(n, r->tokens),
                 maq_words_integer(t, (int64_t)r->run->opts.steps));
    maq_buf_addf(&line, "%s (%s), %s if nothing stops it", maq_format_time(n, r->run->opts.step_s),
                 r->train ? "predicted" : "given", maq_words_days(d, r->run->ideal_s));
    to->put(to->user, "run", line.ptr ? line.ptr : "");
    maq_buf_fini(&line);
}

static void put_failures(const struct maq_lines *to, const struct maq_report_run *r)
{
    struct maq_buf line;
    char n[32];
    const struct maq_failures *f = r->failures;
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    maq_buf_init(&line, 1 << 16);
    if (isinf(r->run->mtbf_s))
        maq_buf_addf(&line, "%s: nothing fails", maq_text_clean(&arena, f->name));
    else
        maq_buf_addf(&line, "%s: one every %s on average; convention: %s", maq_text_clean(&arena, f->name),
                     maq_format_time(n, r->run->mtbf_s), maq_failure_clock_name(r->run->opts.clock));
    if (f->shape != 1)
        maq_buf_addf(&line, "; Weibull with shape %.2f", f->shape);
    if (f->spread > 0)
        maq_buf_addf(&line, "; the rate is known within a factor of %.2f (90 %%)", exp(1.645 * f->spread));
    to->put(to->user, "failures", line.ptr ? line.ptr : "");
    maq_buf_fini(&line);
    maq_arena_fini(&arena);
}

static void put_checkpoints(const struct maq_lines *to, const struct maq_run_result *run)
{
    static const char *const survives[] = {"programs", "a node", "everything"};
    struct maq_buf line;
    char a[32], b[32];
    maq_buf_init(&line, 1 << 16);
    if (isinf(run->interval_s))
        maq_buf_adds(&line, "none");
    else
        maq_buf_addf(&line, "every %s (best by the closed form: %s)", maq_format_time(a, run->interval_s),
                     maq_format_time(b, run->optimal_interval_s));
    int64_t every = 1;
    for (uint32_t i = 0; !isinf(run->interval_s) && i < run->opts.n_levels; i++) {
        const struct maq_run_level *l = &run->opts.levels[i];
        every *= i > 0 ? l->every : 1;
        maq_buf_addf(&line, "; stops the job for %s, counts after %s", maq_format_time(a, l->save_s),
                     maq_format_time(b, l->persist_s));
        maq_buf_addf(&line, ", is read in %s", maq_format_time(a, l->restore_s));
        if (run->opts.n_levels > 1)
            maq_buf_addf(&line, " (survives %s, every %s)", survives[l->survives], maq_words_integer(b, every));
    }
    to->put(to->user, "checkpoints", line.ptr ? line.ptr : "");
    maq_buf_fini(&line);
    maq_buf_init(&line, 1 << 16);
    maq_buf_addf(&line, "%s node%s, %u spare%s", maq_words_integer(a, (int64_t)run->nodes), run->nodes == 1 ? "" : "s",
                 run->opts.spares, run->opts.spares == 1 ? "" : "s");
    if (run->opts.shared_nodes > 0)
        maq_buf_addf(&line, " shared with %s other nodes", maq_words_integer(b, run->opts.shared_nodes));
    maq_buf_addf(&line, "; recovery: %s", maq_run_recovery_name(run->opts.recovery));
    if (run->opts.recovery != MAQ_RECOVERY_RESTART)
        maq_buf_addf(&line, ", %u data-parallel replicas", run->opts.dp_replicas);
    to->put(to->user, "nodes", line.ptr ? line.ptr : "");
    maq_buf_fini(&line);
}

/* ---- the answer ---- */

static void put_date(struct maq_table *t, const struct maq_report_run *r, double s)
{
    char date[16];
    if (r->dated)
        maq_table_cell(t, "%s", maq_date_text(date, r->start_day + (int64_t)ceil(s / DAY)));
}

static const char *dollars(char buf[32], double usd_per_hour, double s)
{
    return isfinite(s) ? maq_words_integer(buf, llround(usd_per_hour * s / HOUR)) : "-";
}

/* All that is held is paid for as long as the run takes: money has the quantiles of time. */
static void put_usd(struct maq_table *t, const struct maq_run_result *run, double usd_per_hour, double s, double low,
                    double high)
{
    char a[32], b[32];
    if (usd_per_hour <= 0)
        return;
    maq_table_cell(t, "%s%s", later(run, s), dollars(a, usd_per_hour, s));
    maq_table_cell(t, "%s to %s", dollars(a, usd_per_hour, low), dollars(b, usd_per_hour, high));
}

void maq_run_quantiles_table(struct maq_table *t, const struct maq_report_run *r)
{
    static const struct maq_table_column plain[] = {{"", false, false},
                                                    {"done after", true, false},
                                                    {"95 % interval", true, false},
                                                    {"goodput", true, false},
                                                    {"on", false, false}},
                                         paid[] = {{"", false, false},
                                                   {"done after", true, false},
                                                   {"95 % interval", true, false},
                                                   {"goodput", true, false},
                                                   {"USD", true, false},
                                                   {"95 % interval", true, false},
                                                   {"on", false, false}};
    const struct maq_run_result *run = r->run;
    char a[32], b[32];
    const double usd = maq_money_run_per_hour(r->job, run);
    size_t n = usd > 0 ? MAQ_COUNT(paid) : MAQ_COUNT(plain);
    maq_table_init(t, usd > 0 ? paid : plain, r->dated ? n : n - 1);
    for (int i = 0; i < MAQ_RUN_QUANTILES; i++) {
        const struct maq_run_quantile *q = &run->wall[i];
        maq_table_row(t, MAQ_INK_PLAIN);
        maq_table_cell(t, "p%.0f", 100 * q->q);
        maq_table_cell(t, "%s%s", later(run, q->value), maq_words_days(a, q->value));
        maq_table_cell(t, "%s to %s", maq_words_days(a, q->low), maq_words_days(b, q->high));
        maq_table_cell(t, "%.2f %%", 100 * run->ideal_s / q->value);
        put_usd(t, run, usd, q->value, q->low, q->high);
        put_date(t, r, q->value);
    }
    maq_table_row(t, MAQ_INK_PLAIN);
    maq_table_cell(t, "mean");
    maq_table_cell(t, "%s", maq_words_days(a, run->wall_s));
    maq_table_cell(t, "%s to %s", maq_words_days(a, run->wall_s - 1.96 * run->wall_error_s),
                   maq_words_days(b, run->wall_s + 1.96 * run->wall_error_s));
    maq_table_cell(t, "%.2f %%", 100 * run->goodput);
    put_usd(t, run, usd, run->wall_s, run->wall_s - 1.96 * run->wall_error_s, run->wall_s + 1.96 * run->wall_error_s);
    put_date(t, r, run->wall_s);
}

static void put_rate(const struct maq_lines *to, const struct maq_report_run *r)
{
    const double usd = maq_money_run_per_hour(r->job, r->run), job = maq_cluster_usd_per_hour(&r->job->cluster);
    char text[256], all[48], own[48], spares[48];
    if (usd <= 0)
        return;
    maq__snprintf(text, sizeof text, "%s an hour: %s of the job, %s of spares that are held%s", maq_words_usd(all, usd),
                  maq_words_usd(own, job), maq_words_usd(spares, usd - job),
                  r->run->opts.shared_nodes > 0 ? ", its part of the shared ones" : "");
    to->put(to->user, "", text);
}

void maq_run_figure_lines(const struct maq_lines *to, const struct maq_report_run *r)
{
    const struct maq_run_result *run = r->run;
    char text[256], n[32], m[32];
    if (!isnan(run->bound_s)) {
        bool predicted = r->train != NULL, in_it = run->opts.step_sigma > 0;
        maq__snprintf(text, sizeof text, "with 95 %% confidence at most 5 %% of runs take longer than %s%s",
                      maq_words_days(n, run->bound_s),
                      in_it       ? ", the error of the step time included"
                      : predicted ? ", if a step takes what is predicted"
                                  : ", if a step takes what is given");
        to->put(to->user, "bound", text);
    }
    maq__snprintf(text, sizeof text, "%.2f %% goodput, %.2f %% effective training time (evaluations count)",
                  100 * run->goodput, 100 * run->ettr);
    to->put(to->user, "useful", text);
    maq__snprintf(text, sizeof text, "%.1f on average (sd %.1f), one every %s; %.1f nodes to repair", run->failures,
                  run->failures_sd, length(n, run->mttf_s), run->nodes_lost);
    to->put(to->user, "interrupted", text);
    maq__snprintf(
        text, sizeof text, "%s GPU-hours of the job; %s more of spares that are held",
        maq_words_integer(n, (int64_t)(run->gpu_hours + 0.5)),
        maq_words_integer(m, (int64_t)(run->wall_s / 3600 * run->opts.spares * run->opts.devices_per_node + 0.5)));
    to->put(to->user, "cost", text);
    put_rate(to, r);
    if (run->has_closed) {
        maq__snprintf(text, sizeof text, "%s, sd %s, %.1f failures (nodes never waited for, first start not counted)",
                      maq_words_days(n, run->closed.mean_s), maq_words_days(m, run->closed.sd_s), run->closed.failures);
        to->put(to->user, "closed form", text);
    }
    if (r->promised) {
        maq__snprintf(text, sizeof text, "%s is kept in %.2f %% of runs (%.2f to %.2f)",
                      maq_words_days(n, run->opts.promise_s), 100 * run->promise_met, 100 * run->promise_low,
                      100 * run->promise_high);
        to->put(to->user, "promise", text);
        if (r->least_spares == UINT32_MAX)
            maq__snprintf(text, sizeof text, "no number of spares keeps it in %.4g %%", 100 * run->opts.promise_share);
        else
            maq__snprintf(text, sizeof text, "spares that it takes to keep it in %.4g %%: %u",
                          100 * run->opts.promise_share, r->least_spares);
        to->put(to->user, "", text);
    }
    if (run->endless > 0) {
        maq__snprintf(text, sizeof text,
                      "%u of %u runs were given up after %s, and take longer: what they reach (>) is a lower bound",
                      run->endless, run->opts.replicas, maq_words_days(n, run->opts.give_up * run->ideal_s));
        to->put(to->user, "warning", text);
    }
}

/* ---- where it goes ---- */

void maq_run_buckets_table(struct maq_table *t, const struct maq_run_result *run)
{
    static const struct maq_table_column columns[] = {{"bucket", false, false},
                                                      {"category", false, false},
                                                      {"days", true, false},
                                                      {"share", true, false},
                                                      {"GPU-hours", true, false}};
    char n[32];
    maq_table_init(t, columns, MAQ_COUNT(columns));
    for (int b = 0; b < MAQ_RUN_BUCKET_COUNT; b++) {
        struct maq_run_bucket_info info = maq_run_bucket_info((enum maq_run_bucket)b);
        if (run->bucket_s[b] == 0)
            continue;
        maq_table_row(t, b == MAQ_RUN_PRODUCTIVE ? MAQ_INK_GOOD : MAQ_INK_PLAIN);
        maq_table_cell(t, "%s", info.name);
        maq_table_cell(t, "%s", info.category);
        maq_table_cell(t, "%.3f", run->bucket_s[b] / DAY);
        maq_table_cell(t, "%.2f %%", 100 * run->bucket_s[b] / run->wall_s);
        maq_table_cell(t, "%s", maq_words_integer(n, (int64_t)(run->bucket_s[b] / 3600 * run->opts.devices + 0.5)));
    }
}

void maq_run_causes_table(struct maq_table *t, const struct maq_run_result *run)
{
    static const struct maq_table_column columns[] = {{"cause", false, true},
                                                      {"interruptions", true, false},
                                                      {"hours lost", true, false},
                                                      {"share", true, false},
                                                      {"GPU-hours", true, false}};
    char n[32];
    maq_table_init(t, columns, MAQ_COUNT(columns));
    for (uint32_t i = 0; i < run->n_causes && run->failures > 0; i++) {
        const struct maq_run_cause *c = &run->causes[i];
        maq_table_row(t, MAQ_INK_PLAIN);
        maq_table_cell(t, "%s", c->name);
        maq_table_cell(t, "%.1f", c->count);
        maq_table_cell(t, "%.1f", c->lost_s / 3600);
        maq_table_cell(t, "%.2f %%", 100 * c->lost_s / run->wall_s);
        maq_table_cell(t, "%s", maq_words_integer(n, (int64_t)(c->lost_s / 3600 * run->opts.devices + 0.5)));
    }
}

/* ---- what if ---- */

static void put_variant(struct maq_table *t, const struct maq_run_variants *v, uint32_t i)
{
    const struct maq_run_result *r = v->results[i];
    char a[32];
    maq_table_row(t, i == v->best ? MAQ_INK_GOOD : MAQ_INK_PLAIN);
    maq_table_cell(t, "%s", i == v->best ? "*" : "");
    if (v->what == MAQ_WHAT_CHECKPOINT)
        maq_table_cell(t, "every %s", maq_format_time(a, r->interval_s));
    else if (v->what == MAQ_WHAT_SPARES)
        maq_table_cell(t, "%u spares", r->opts.spares);
    else
        maq_table_cell(t, "%s", maq_run_recovery_name(r->opts.recovery));
    for (int q = 1; q <= 2; q++) {
        char b[32];
        maq_table_cell(t, "%s%s", later(r, r->wall[q].value), maq_words_days(a, r->wall[q].value));
        maq_table_cell(t, "%s to %s", maq_words_days(a, r->wall[q].low), maq_words_days(b, r->wall[q].high));
    }
    maq_table_cell(t, "%+.3f d", (r->wall[2].value - v->results[v->best]->wall[2].value) / DAY);
    maq_table_cell(t, "%.2f %%", 100 * r->goodput);
    maq_table_cell(t, "%.2f", r->bucket_s[MAQ_RUN_SAVE] / DAY);
    maq_table_cell(t, "%.2f", r->bucket_s[MAQ_RUN_WASTED] / DAY);
    maq_table_cell(t, "%.2f", r->bucket_s[MAQ_RUN_NODE_WAIT] / DAY);
}

void maq_run_variants_table(struct maq_table *t, const struct maq_run_variants *v)
{
    static const struct maq_table_column columns[] = {{"", false, false},         {"with", false, false},
                                                      {"p50", true, false},       {"95 % interval", true, false},
                                                      {"p95", true, false},       {"95 % interval", true, false},
                                                      {"over best", true, false}, {"goodput", true, false},
                                                      {"saving d", true, false},  {"wasted d", true, false},
                                                      {"waiting d", true, false}};
    maq_table_init(t, columns, MAQ_COUNT(columns));
    for (uint32_t i = 0; i < v->n; i++)
        put_variant(t, v, i);
}

void maq_run_asked_lines(const struct maq_lines *to, const struct maq_report_run *r)
{
    put_run(to, r);
    put_failures(to, r);
    put_checkpoints(to, r->run);
}
