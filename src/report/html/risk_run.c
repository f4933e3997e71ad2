/* SPDX-License-Identifier: Apache-2.0 */
/*
 * risk_run.c - the page of a run: when it will be done, as a curve with its quantiles and their intervals, where the time goes, what
 * interrupts it, what if.
 *
 * Beside the report's document the page carries the curve (`more`): {"wall_s": [quantiles at even steps], "late_s": from where on runs
 * were given up, "names": [buckets in words], "variants": ["16 spares", ...]}.
 */
#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "report/html/html.h"
#include "report/json_util.h"
#include "report/money.h"
#include "report/risk/run_parts.h"
#include "report/words.h"

static void put_fact(void *user, const char *label, const char *text)
{
    maq_html_fact(user, label, text);
}

/* Taken by the caller (free()); NULL when out of memory. */
static char *more_of(const struct maq_report_run *r)
{
    struct maq_json_document d = {.root = {json_object(), &d}};
    const struct maq_run_variants *v = r->what_if;
    json_t *curve = json_array();
    char text[48], time[32];
    for (uint32_t i = 0; i < MAQ_RUN_CURVE; i++)
        d.failed |= json_array_append_new(curve, json_real(r->run->wall_curve_s[i])) != 0;
    d.failed |= json_object_set_new(d.root.at, "wall_s", curve) != 0;
    maq_json_real(d.root, "late_s", maq_run_late_s(r->run));
    struct maq_json names = maq_json_list(d.root, "names");
    for (int b = 0; b < MAQ_RUN_BUCKET_COUNT; b++)
        maq_json_word(names, maq_run_bucket_info((enum maq_run_bucket)b).what);
    struct maq_json variants = maq_json_list(d.root, "variants");
    for (uint32_t i = 0; v && i < v->n; i++) {
        if (v->what == MAQ_WHAT_CHECKPOINT)
            maq__snprintf(text, sizeof text, "every %s", maq_format_time(time, v->results[i]->interval_s));
        else if (v->what == MAQ_WHAT_SPARES)
            maq__snprintf(text, sizeof text, "%u spares", v->results[i]->opts.spares);
        else
            maq__snprintf(text, sizeof text, "%s", maq_run_recovery_name(v->results[i]->opts.recovery));
        maq_json_word(variants, text);
    }
    return maq_json_take(&d);
}

static void put_verdict(struct maq_html *h, const struct maq_report_run *r)
{
    const struct maq_run_result *run = r->run;
    char text[256], a[32];
    bool kept = run->promise_met >= run->opts.promise_share;
    if (r->promised) {
        maq__snprintf(text, sizeof text, "the promise of %s is %s: it holds in %.2f %% of runs, %.4g %% are asked for",
                      maq_words_days(a, run->opts.promise_s), kept ? "kept" : "not kept", 100 * run->promise_met,
                      100 * run->opts.promise_share);
        maq_html_verdict(h, kept ? MAQ_HTML_GOOD : MAQ_HTML_BAD, text);
    }
    if (run->endless > 0) {
        maq__snprintf(text, sizeof text, "%u of %u runs were given up after %s, and take longer", run->endless,
                      run->opts.replicas, maq_words_days(a, run->opts.give_up * run->ideal_s));
        maq_html_verdict(h, MAQ_HTML_WARN, text);
    }
}

static void put_cards(struct maq_html *h, const struct maq_report_run *r)
{
    const struct maq_run_result *run = r->run;
    const struct maq_run_quantile *w = run->wall;
    char value[48], note[192], a[32], b[32], c[32];
    maq_html_cards(h);
    maq__snprintf(note, sizeof note, "median; nine of ten runs are done between %s and %s",
                  maq_words_days(a, w[0].value), maq_words_days(b, w[2].value));
    maq_html_card_range(h, "Done after", maq_words_days(c, w[1].value), note, w[0].value, w[1].value, w[2].value);
    maq__snprintf(note, sizeof note, "95 %% of runs are done by then (%s to %s); if nothing stops it: %s",
                  maq_words_days(a, w[2].low), maq_words_days(b, w[2].high), maq_words_days(c, run->ideal_s));
    maq_html_card(h, "95th percentile", maq_words_days(value, w[2].value), note);
    maq__snprintf(value, sizeof value, "%.2f %%", 100 * run->goodput);
    maq__snprintf(note, sizeof note, "of the time makes progress that the run keeps; effective training time %.2f %%",
                  100 * run->ettr);
    maq_html_card_gauge(h, "Goodput", value, note, run->goodput, false);
    maq__snprintf(value, sizeof value, "%.1f", run->failures);
    maq__snprintf(note, sizeof note, "on average (sd %.1f), one every %s; %.1f nodes to repair", run->failures_sd,
                  isinf(run->mttf_s) ? "never" : maq_format_time(a, run->mttf_s), run->nodes_lost);
    maq_html_card(h, "Interruptions", value, note);
    double usd = maq_money_run_per_hour(r->job, run);
    if (usd > 0) {
        char money[48], hour[48];
        maq__snprintf(note, sizeof note, "in the mean; %s an hour, with its spares", maq_words_usd(hour, usd));
        maq_html_card(h, "Cost", maq_words_usd(money, usd * run->wall_s / 3600), note);
    }
    maq_html_end_cards(h);
}

static void put_when(struct maq_html *h, const struct maq_report_run *r)
{
    const struct maq_lines to = {put_fact, h};
    struct maq_table t;
    maq_run_quantiles_table(&t, r);
    maq_html_section(h, "when", "When it will be done");
    maq_html_chart(
        h, "finish", "",
        "Share of runs that are done by then, with the quantiles and their 95 % intervals. Dashed: nothing stops it.");
    maq_html_table(h, &t, NULL);
    maq_table_fini(&t);
    maq_html_facts(h);
    maq_run_figure_lines(&to, r);
    maq_html_end_facts(h);
    maq_html_end_section(h);
}

static void put_badput(struct maq_html *h, const struct maq_report_run *r)
{
    struct maq_table t;
    maq_run_buckets_table(&t, r->run);
    maq_html_section(h, "badput", "Where the time goes");
    maq_html_put(h, "<div class=\"pair\">\n");
    maq_html_chart(h, "buckets", "bars", "Days of a run that are not progress, by what they are.");
    if (r->run->n_causes > 0 && r->run->failures > 0)
        maq_html_chart(
            h, "causes", "bars",
            "Hours that each cause of interruptions takes, from its detection to the restart, and steps done twice.");
    maq_html_put(h, "</div>\n");
    maq_html_table(h, &t, "Means over all simulated runs");
    maq_table_fini(&t);
    maq_html_end_section(h);
    if (r->run->n_causes == 0 || !(r->run->failures > 0))
        return;
    maq_run_causes_table(&t, r->run);
    maq_html_section(h, "interruptions", "What interrupts it");
    maq_html_table(h, &t, NULL);
    maq_table_fini(&t);
    maq_html_end_section(h);
}

static void put_what_if(struct maq_html *h, const struct maq_report_run *r)
{
    struct maq_table t;
    char title[64];
    if (!r->what_if)
        return;
    maq__snprintf(title, sizeof title, "What if: %s", maq_run_what_name(r->what_if->what));
    maq_run_variants_table(&t, r->what_if);
    maq_html_section(h, "what-if", title);
    maq_html_chart(h, "variants", "bars", "Done after: the median and the 95th percentile, on the same failures.");
    maq_html_table(h, &t, NULL);
    maq_table_fini(&t);
    maq_html_end_section(h);
}

static void put_notes(struct maq_html *h, const struct maq_report_run *r)
{
    char n[32];
    maq_html_section(h, "assumed", "What was assumed");
    maq_html_note(h, "%s runs simulated, seed %llu; intervals are of order statistics.",
                  maq_words_integer(n, r->run->opts.replicas), (unsigned long long)r->run->opts.seed);
    if (r->train && r->run->opts.step_sigma == 0)
        maq_html_note(
            h,
            "The step time is predicted within %.0f %% (one sd); --step-error puts that into the dates, --step-time "
            "replaces it.",
            100 * r->train->error);
    if (r->failures->source)
        maq_html_note(h, "Failures: %s", r->failures->source);
    maq_html_end_section(h);
}

enum maq_status maq_report_run_html(char **out, const struct maq_report_run *run, const struct maq_report_opts *opts,
                                    struct maq_diag *diag)
{
    struct maq_html h;
    struct maq_buf more;
    const struct maq_lines to = {put_fact, &h};
    char *document = NULL, *curve = more_of(run);
    enum maq_status status = maq_report_run_json(&document, run, opts, diag);
    if (status != MAQ_OK) {
        free(curve);
        return status;
    }
    maq_buf_init(&more, 1 << 22);
    maq_buf_adds(&more, curve ? curve : "");
    more.failed |= !curve;
    free(curve);
    maq_html_begin(&h, "risk", run->job->name);
    maq_html_job(&h, run->job, true);
    maq_html_facts(&h);
    maq_run_asked_lines(&to, run);
    maq_html_end_facts(&h);
    put_verdict(&h, run);
    put_cards(&h, run);
    put_when(&h, run);
    put_badput(&h, run);
    put_what_if(&h, run);
    put_notes(&h, run);
    status = maq_html_finish(out, &h, document, &more, diag);
    maq_buf_fini(&more);
    return status;
}
