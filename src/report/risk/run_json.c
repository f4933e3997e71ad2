/* SPDX-License-Identifier: Apache-2.0 */
/* run_json.c - when a run will be done, schema "maquette.risk.run/2"; see docs/json.md. */
#include <math.h>

#include "base/text.h"
#include "maquette/report.h"
#include "report/job_json.h"
#include "report/money.h"
#include "report/risk/date.h"

static void add_quantiles(struct maq_json map, const struct maq_run_quantile *q, const char *unit)
{
    static const char *const names[MAQ_RUN_QUANTILES] = {"p5", "p50", "p95", "p99"};
    char key[32];
    for (int i = 0; i < MAQ_RUN_QUANTILES; i++) {
        struct maq_json one = maq_json_map(map, names[i]);
        maq__snprintf(key, sizeof key, "value%s", unit);
        maq_json_real(one, key, q[i].value);
        maq__snprintf(key, sizeof key, "low%s", unit);
        maq_json_real(one, key, q[i].low);
        maq__snprintf(key, sizeof key, "high%s", unit);
        maq_json_real(one, key, q[i].high);
    }
}

static void add_options(struct maq_json map, const struct maq_run_result *r)
{
    static const char *const survives[] = {"process", "node", "all"};
    const struct maq_run_opts *o = &r->opts;
    maq_json_count(map, "steps", o->steps);
    MAQ_JSON_REALS(map, {"step_time_s", o->step_s}, {"step_sigma", o->step_sigma}, {"step_noise", o->step_noise});
    maq_json_int(map, "devices", o->devices);
    maq_json_count(map, "nodes", r->nodes);
    MAQ_JSON_INTS(map, {"dp_replicas", o->dp_replicas}, {"spares", o->spares}, {"shared_nodes", o->shared_nodes});
    maq_json_text(map, "recovery", maq_run_recovery_name(o->recovery));
    maq_json_text(map, "failure_clock", maq_failure_clock_name(o->clock));
    maq_json_real(map, "checkpoint_interval_s", r->interval_s);
    maq_json_real(map, "optimal_checkpoint_interval_s", r->optimal_interval_s);
    struct maq_json levels = maq_json_list(map, "checkpoint_levels");
    for (uint32_t i = 0; i < o->n_levels; i++) {
        struct maq_json level = maq_json_item(levels);
        maq_json_int(level, "every", o->levels[i].every);
        maq_json_text(level, "survives", survives[o->levels[i].survives]);
        MAQ_JSON_REALS(level, {"save_s", o->levels[i].save_s}, {"persist_s", o->levels[i].persist_s},
                       {"restore_s", o->levels[i].restore_s});
    }
    maq_json_real(map, "evaluate_every_s", o->evaluate_every_s);
    maq_json_real(map, "evaluate_s", o->evaluate_s);
    maq_json_int(map, "replicas", o->replicas);
    maq_json_int(map, "seed", (int64_t)o->seed);
}

static void add_buckets(struct maq_json list, const struct maq_run_result *r)
{
    for (int b = 0; b < MAQ_RUN_BUCKET_COUNT; b++) {
        struct maq_run_bucket_info info = maq_run_bucket_info((enum maq_run_bucket)b);
        struct maq_json one = maq_json_item(list);
        maq_json_text(one, "bucket", info.name);
        maq_json_text(one, "category", info.category);
        MAQ_JSON_REALS(one, {"time_s", r->bucket_s[b]}, {"share", r->bucket_s[b] / r->wall_s},
                       {"gpu_hours", r->bucket_s[b] / 3600 * r->opts.devices});
    }
}

static void add_causes(struct maq_json list, const struct maq_run_result *r)
{
    for (uint32_t i = 0; i < r->n_causes; i++) {
        struct maq_json one = maq_json_item(list);
        maq_json_text(one, "cause", r->causes[i].name);
        MAQ_JSON_REALS(one, {"interruptions", r->causes[i].count}, {"lost_s", r->causes[i].lost_s},
                       {"lost_gpu_hours", r->causes[i].lost_s / 3600 * r->opts.devices});
    }
}

/* As long as the run takes all that it holds is paid for. */
static void add_money(struct maq_json map, const struct maq_job *job, const struct maq_run_result *r)
{
    double per_hour = maq_money_run_per_hour(job, r), own = maq_cluster_usd_per_hour(&job->cluster);
    struct maq_run_quantile usd[MAQ_RUN_QUANTILES];
    if (per_hour <= 0)
        return;
    for (int i = 0; i < MAQ_RUN_QUANTILES; i++)
        usd[i] = (struct maq_run_quantile){.q = r->wall[i].q,
                                           .value = per_hour / 3600 * r->wall[i].value,
                                           .low = per_hour / 3600 * r->wall[i].low,
                                           .high = per_hour / 3600 * r->wall[i].high};
    struct maq_json money = maq_json_map(map, "money");
    MAQ_JSON_REALS(money, {"usd_per_hour", per_hour}, {"spares_usd_per_hour", per_hour - own},
                   {"mean_usd", per_hour / 3600 * r->wall_s},
                   {"mean_standard_error_usd", per_hour / 3600 * r->wall_error_s});
    add_quantiles(maq_json_map(money, "quantiles"), usd, "_usd");
}

static void add_result(struct maq_json map, const struct maq_job *job, const struct maq_run_result *r)
{
    MAQ_JSON_REALS(map, {"ideal_s", r->ideal_s}, {"mean_s", r->wall_s}, {"mean_standard_error_s", r->wall_error_s},
                   {"sd_s", r->wall_sd_s});
    add_quantiles(maq_json_map(map, "done_after"), r->wall, "_s");
    maq_json_real(map, "bound_s", r->bound_s);
    maq_json_real(map, "goodput", r->goodput);
    add_quantiles(maq_json_map(map, "goodput_quantiles"), r->goodputs, "");
    MAQ_JSON_REALS(map, {"ettr", r->ettr}, {"mtbf_s", r->mtbf_s}, {"mttf_s", r->mttf_s}, {"interruptions", r->failures},
                   {"interruptions_sd", r->failures_sd}, {"nodes_lost", r->nodes_lost}, {"gpu_hours", r->gpu_hours},
                   {"spare_gpu_hours", r->wall_s / 3600 * r->opts.spares * r->opts.devices_per_node});
    add_money(map, job, r);
    maq_json_int(map, "given_up", r->endless);
    add_buckets(maq_json_list(map, "buckets"), r);
    add_causes(maq_json_list(map, "causes"), r);
}

static void add_closed(struct maq_json map, const struct maq_checkpoint_run *c)
{
    MAQ_JSON_REALS(map, {"mean_s", c->mean_s}, {"sd_s", c->sd_s}, {"interruptions", c->failures},
                   {"goodput", c->useful});
}

static void add_promise(struct maq_json map, const struct maq_report_run *run)
{
    const struct maq_run_result *r = run->run;
    MAQ_JSON_REALS(map, {"within_s", r->opts.promise_s}, {"wanted_share", r->opts.promise_share},
                   {"met_share", r->promise_met}, {"met_low", r->promise_low}, {"met_high", r->promise_high});
    if (run->least_spares == UINT32_MAX)
        maq_json_null(map, "least_spares");
    else
        maq_json_int(map, "least_spares", run->least_spares);
}

static void add_variants(struct maq_json map, const struct maq_job *job, const struct maq_run_variants *v)
{
    maq_json_text(map, "what", maq_run_what_name(v->what));
    maq_json_int(map, "best", v->best);
    struct maq_json list = maq_json_list(map, "variants");
    for (uint32_t i = 0; i < v->n; i++) {
        struct maq_json one = maq_json_item(list);
        add_options(maq_json_map(one, "options"), v->results[i]);
        add_result(one, job, v->results[i]);
    }
}

enum maq_status maq_report_run_json(char **out, const struct maq_report_run *run, const struct maq_report_opts *opts,
                                    struct maq_diag *diag)
{
    struct maq_json_document document;
    char date[16];
    (void)opts;
    maq_json_begin(&document, "maquette.risk.run/2");
    struct maq_json root = document.root;
    maq_json_job(maq_json_map(root, "job"), run->job);
    maq_json_count(root, "tokens", run->tokens);
    maq_json_text(root, "step_time_from", run->train ? "prediction" : "user");
    if (run->train)
        maq_json_real(root, "step_time_error", run->train->error);
    maq_json_text(root, "failures", run->failures->name);
    add_options(maq_json_map(root, "options"), run->run);
    if (run->dated) {
        maq_json_text(root, "start", maq_date_text(date, run->start_day));
        struct maq_json dates = maq_json_map(root, "done_on");
        static const char *const names[MAQ_RUN_QUANTILES] = {"p5", "p50", "p95", "p99"};
        for (int i = 0; i < MAQ_RUN_QUANTILES; i++)
            maq_json_text(dates, names[i],
                          maq_date_text(date, run->start_day + (int64_t)ceil(run->run->wall[i].value / 86400)));
    }
    add_result(root, run->job, run->run);
    if (run->run->has_closed)
        add_closed(maq_json_map(root, "closed_form"), &run->run->closed);
    else
        maq_json_null(root, "closed_form");
    if (run->promised)
        add_promise(maq_json_map(root, "promise"), run);
    if (run->what_if)
        add_variants(maq_json_map(root, "what_if"), run->job, run->what_if);
    return maq_json_finish(out, &document, diag);
}
