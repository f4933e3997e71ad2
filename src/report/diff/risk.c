/* SPDX-License-Identifier: Apache-2.0 */
/* risk.c - what two reports of `maquette risk` are compared by: the step as a distribution, a run until it is done. */
#include "base/check.h"
#include "base/stat/special_functions.h"
#include "base/text.h"
#include "report/diff/diff.h"

static void add_quantile(struct maq_diff_reader *r, const char *path, const char *key, const char *name)
{
    struct maq_node *of[MAQ_DIFF_SIDES];
    maq_diff_nodes(of, r->diff, path);
    maq_diff_interval(maq_diff_figure(r, key, name, MAQ_DIFF_SECONDS, -1, maq_diff_member(r, of, "value_s")), 0.95,
                      maq_diff_member(r, of, "low_s"), maq_diff_member(r, of, "high_s"));
}

void maq_diff_read_risk_step(struct maq_diff_reader *r)
{
    struct maq_node *of[MAQ_DIFF_SIDES];
    r->diff->of = "what so many draws can tell";
    maq_diff_require(r, "job");
    maq_diff_require(r, "p50");
    maq_diff_settings(r, "job", NULL);
    add_quantile(r, "p50", "p50_s", "median");
    add_quantile(r, "p95", "p95_s", "95th percentile");
    add_quantile(r, "p99", "p99_s", "99th percentile");
    add_quantile(r, "mean", "mean_s", "mean");
    (void)maq_diff_figure(r, "sd_s", "standard deviation", MAQ_DIFF_SECONDS, -1, maq_diff_number(r, "sd_s"));
    (void)maq_diff_figure(r, "base_s", "if nothing varies", MAQ_DIFF_SECONDS, -1, maq_diff_number(r, "base_s"));
    (void)maq_diff_figure(r, "bound_s", "95 % bound", MAQ_DIFF_SECONDS, -1, maq_diff_number(r, "bound_s"));
    struct maq_diff_table *t =
        maq_diff_table(r, "sources", "What each source alone adds to the 95th percentile", MAQ_DIFF_SECONDS, -1);
    maq_diff_nodes(of, r->diff, "sources");
    maq_diff_items(r, t, of, "source", "p95_alone_s");
}

static void add_mean(struct maq_diff_reader *r, struct maq_diff_pair mean)
{
    struct maq_diff_pair se = maq_diff_number(r, "mean_standard_error_s"), low = se, high = se;
    const double z = maq_normal_quantile(0.975); /* of both sides together 95 % */
    for (int s = 0; s < MAQ_DIFF_SIDES; s++) {
        low.of[s] = mean.of[s] - z * se.of[s];
        high.of[s] = mean.of[s] + z * se.of[s];
    }
    maq_diff_interval(maq_diff_figure(r, "mean_s", "done after, mean", MAQ_DIFF_SECONDS, -1, mean), 0.95, low, high);
}

static void add_run_figures(struct maq_diff_reader *r)
{
    static const struct {
        const char *path, *key, *name;
        enum maq_diff_unit unit;
        int better;
    } figures[] = {{"ideal_s", "ideal_s", "if nothing stopped it", MAQ_DIFF_SECONDS, -1},
                   {"goodput", "goodput", "goodput", MAQ_DIFF_SHARE, 1},
                   {"ettr", "ettr", "effective training time", MAQ_DIFF_SHARE, 1},
                   {"interruptions", "interruptions", "interruptions", MAQ_DIFF_COUNT, -1},
                   {"nodes_lost", "nodes_lost", "nodes to repair", MAQ_DIFF_COUNT, -1},
                   {"gpu_hours", "gpu_hours", "GPU-hours", MAQ_DIFF_COUNT, -1},
                   {"money.mean_usd", "mean_usd", "USD, mean", MAQ_DIFF_USD, -1}};
    for (size_t i = 0; i < MAQ_COUNT(figures); i++)
        (void)maq_diff_figure(r, figures[i].key, figures[i].name, figures[i].unit, figures[i].better,
                              maq_diff_number(r, figures[i].path));
}

static void add_top_setting(struct maq_diff_reader *r, const char *key)
{
    maq_diff_settings(r, key, key);
}

void maq_diff_read_risk_run(struct maq_diff_reader *r)
{
    struct maq_node *of[MAQ_DIFF_SIDES];
    r->diff->of = "what so many simulated runs can tell";
    maq_diff_require(r, "options");
    maq_diff_require(r, "mean_s");
    maq_diff_settings(r, "job", NULL);
    add_top_setting(r, "tokens");
    add_top_setting(r, "failures");
    maq_diff_settings(r, "options", "options");
    struct maq_diff_pair mean = maq_diff_number(r, "mean_s");
    add_mean(r, mean);
    add_quantile(r, "done_after.p50", "p50_s", "done after, median");
    add_quantile(r, "done_after.p95", "p95_s", "done after, 95th percentile");
    add_run_figures(r);
    struct maq_diff_table *t = maq_diff_table(r, "run", "Where the change of the run comes from", MAQ_DIFF_SECONDS, -1);
    maq_diff_nodes(of, r->diff, "buckets");
    maq_diff_items(r, t, of, "bucket", "time_s");
    maq_diff_add_up(r, t, "mean_s", "mean of the runs", mean, "in no bucket");
    t = maq_diff_table(r, "causes", "Interruptions by cause", MAQ_DIFF_COUNT, -1);
    maq_diff_nodes(of, r->diff, "causes");
    maq_diff_items(r, t, of, "cause", "interruptions");
    maq_diff_add_up(r, t, "interruptions", "interruptions", maq_diff_number(r, "interruptions"), "of no cause");
}
