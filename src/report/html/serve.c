/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.c - the page of a deployment: headline, latencies and how they are distributed, throughput against latency, what happens over time,
 * where the time of an iteration goes, memory.
 *
 * Beside the report's document the page carries what its charts need (`more`):
 *
 *   {"curves": {"ttft_s": [...], ...}, "over_time": {"t": [...], "running": [...], ...}, "loads": [{"load": 2, ...}]}
 *
 * A curve is CURVE_POINTS values of the finished requests at even steps of their rank, from the smallest to the largest.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "maquette/serve_fleet.h"
#include "report/html/html.h"
#include "report/html/serve_parts.h"
#include "report/html/serve_samples.h"
#include "report/money.h"
#include "report/serve/lines.h"
#include "report/words.h"

#define CURVE_POINTS 201u
#define MORE_MAX ((size_t)16 * 1024 * 1024)

static const char *const load_names[] = {
    [MAQ_LOAD_RATE] = "requests/s", [MAQ_LOAD_CONCURRENCY] = "under way", [MAQ_LOAD_SPEED] = "speed"};

/* --- what charts show -------------------------------------------------------------------------------------------- */

enum curve { CURVE_TTFT, CURVE_TPOT, CURVE_E2EL, CURVE_QUEUE, CURVE_COUNT };

static double latency_of(enum curve curve, const struct maq_served *s, const struct maq_request *request)
{
    switch (curve) {
    case CURVE_TTFT:
        return s->first_s - s->arrival_s;
    case CURVE_TPOT:
        return request->output > 1 ? (s->last_s - s->first_s) / (double)(request->output - 1) : -1;
    case CURVE_E2EL:
        return s->last_s - s->arrival_s;
    case CURVE_QUEUE:
        return s->scheduled_s - s->arrival_s;
    case CURVE_COUNT:
        break;
    }
    return -1;
}

static int ascending(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void put_curves(struct maq_buf *b, const struct maq_report_serve_page *p)
{
    static const char *const names[CURVE_COUNT] = {"ttft_s", "tpot_s", "e2el_s", "queue_s"};
    const struct maq_serve_result *r = p->result;
    double *value = malloc(((size_t)r->n_requests + 1) * sizeof *value);
    b->failed |= !value;
    maq_buf_adds(b, "\"curves\":{");
    for (int c = 0; c < CURVE_COUNT && value; c++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < r->n_requests; i++) {
            double x = latency_of((enum curve)c, &r->served[i], &p->requests->at[i]);
            if (r->served[i].last_s > 0 && x >= 0)
                value[n++] = x;
        }
        qsort(value, n, sizeof *value, ascending);
        maq_buf_addf(b, "%s\"%s\":[", c > 0 ? "," : "", names[c]);
        for (uint32_t k = 0; k < CURVE_POINTS && n > 0; k++)
            maq_buf_addf(b, "%s%.6g", k > 0 ? "," : "", value[(uint64_t)k * (n - 1) / (CURVE_POINTS - 1)]);
        maq_buf_addc(b, ']');
    }
    maq_buf_addc(b, '}');
    free(value);
}

enum series {
    SERIES_T,
    SERIES_RUNNING,
    SERIES_WAITING,
    SERIES_MOST_WAITING,
    SERIES_KV,
    SERIES_REQUESTS,
    SERIES_TOKENS,
    SERIES_COUNT
};

static double value_of(enum series series, const struct maq_serve_window *w, double blocks)
{
    switch (series) {
    case SERIES_T:
        return w->from_s;
    case SERIES_RUNNING:
        return w->running / w->n;
    case SERIES_WAITING:
        return w->waiting / w->n;
    case SERIES_MOST_WAITING:
        return w->most_waiting;
    case SERIES_KV:
        return w->blocks / w->n / blocks;
    case SERIES_REQUESTS:
        return w->requests / w->n;
    case SERIES_TOKENS:
        return w->tokens / w->n;
    case SERIES_COUNT:
        break;
    }
    return 0;
}

static void put_over_time(struct maq_buf *b, const struct maq_serve_samples *s, const struct maq_serve_result *r)
{
    static const char *const names[SERIES_COUNT] = {"t",  "running",  "waiting", "most_waiting",
                                                    "kv", "requests", "tokens"};
    double blocks = r->blocks > 0 ? (double)r->blocks * (r->options.dp > 1 ? r->options.dp : 1) : 1;
    if (!s || s->n == 0)
        return;
    maq_buf_addf(b, ",\"over_time\":{\"iterations\":%u", s->stride);
    for (int k = 0; k < SERIES_COUNT; k++) {
        maq_buf_addf(b, ",\"%s\":[", names[k]);
        for (uint32_t i = 0; i < s->n; i++)
            maq_buf_addf(b, "%s%.6g", i > 0 ? "," : "", value_of((enum series)k, &s->at[i], blocks));
        maq_buf_addc(b, ']');
    }
    maq_buf_addc(b, '}');
}

static void put_loads_json(struct maq_buf *b, const struct maq_report_serve_page *p)
{
    maq_buf_addf(b, ",\"load\":\"%s\",\"loads\":[", load_names[p->kind]);
    for (uint32_t i = 0; i < p->n_loads; i++) {
        const struct maq_report_serve_load *l = &p->loads[i];
        maq_buf_addf(b,
                     "%s{\"load\":%.6g,\"asked\":%s,\"overloaded\":%s,\"requests_per_s\":%.9g,\"per_device\":%.9g,"
                     "\"ttft_s\":[%.9g,%.9g,%.9g],\"tpot_s\":[%.9g,%.9g,%.9g]}",
                     i > 0 ? "," : "", l->load, l->asked ? "true" : "false", l->overloaded ? "true" : "false",
                     l->requests_per_s, l->output_tokens_per_s_per_device, l->ttft_s.mean, l->ttft_s.p50, l->ttft_s.p95,
                     l->tpot_s.mean, l->tpot_s.p50, l->tpot_s.p95);
    }
    maq_buf_addc(b, ']');
}

/* --- headline ---------------------------------------------------------------------------------------------------- */

static void put_fact(void *user, const char *label, const char *text)
{
    maq_html_fact(user, label, text);
}

static void put_cards(struct maq_html *h, const struct maq_serve_result *r)
{
    char a[32], b[32], value[64], note[192];
    const struct {
        const char *name;
        const struct maq_serve_quantiles *q;
    } latencies[] = {{"Time to first token (TTFT)", &r->ttft_s}, {"Time per output token (TPOT)", &r->tpot_s}};
    maq_html_cards(h);
    for (size_t i = 0; i < MAQ_COUNT(latencies) && r->finished > 0; i++) {
        const struct maq_serve_quantiles *q = latencies[i].q;
        maq__snprintf(note, sizeof note, "mean; 80 %% interval %s to %s", maq_format_time(a, q->low),
                      maq_format_time(b, q->high));
        size_t n = strlen(note);
        maq__snprintf(note + n, sizeof note - n, "; p95 %s", maq_format_time(a, q->p95));
        maq_html_card_range(h, latencies[i].name, maq_format_time(value, q->mean), note, q->low, q->mean, q->high);
    }
    if (r->finished > 0) {
        double per_device = r->output_tokens_per_s / r->n_devices;
        maq__snprintf(value, sizeof value, "%s tokens/s out",
                      maq_format_count(a, per_device >= 1000 ? round(per_device) : per_device));
        maq__snprintf(note, sizeof note, "per GPU; %.0f in all, %.3g requests/s, %.1f tokens/s per user",
                      r->output_tokens_per_s, r->requests_per_s, r->tpot_s.mean > 0 ? 1 / r->tpot_s.mean : 0);
        maq_html_card(h, "Throughput", value, note);
        maq__snprintf(value, sizeof value, "%.0f %% full", 100 * r->kv_mean);
        maq__snprintf(note, sizeof note, "at most %.0f %% of %s tokens; %llu preemptions", 100 * r->kv_peak,
                      maq_words_integer(a, r->kv_tokens), (unsigned long long)r->preemptions);
        maq_html_card_gauge(h, "KV cache", value, note, r->kv_mean, false);
    }
    maq_html_end_cards(h);
}

static void put_verdict(struct maq_html *h, const struct maq_serve_result *r)
{
    char text[256];
    if (!r->fits) {
        maq_html_verdict(h, MAQ_HTML_BAD, "does not fit in memory: nothing is left for a KV cache");
    } else if (r->finished > 0 && r->overloaded) {
        maq__snprintf(
            text, sizeof text,
            "overloaded: %u of %u requests had not begun when the last one arrived; latencies grow with their number",
            r->waiting, r->n_requests);
        maq_html_verdict(h, MAQ_HTML_BAD, text);
    } else if (r->finished > 0 && r->slo.slo.n > 0) {
        maq_html_verdict(h, r->slo.all_met ? MAQ_HTML_GOOD : MAQ_HTML_BAD,
                         r->slo.all_met ? "all bounds are met" : "a bound is missed");
    }
}

/* --- tables ------------------------------------------------------------------------------------------------------ */

static void put_latencies(struct maq_html *h, const struct maq_serve_result *r)
{
    struct maq_table t;
    maq_serve_latency_table(&t, r);
    maq_html_section(h, "latency", "Latency");
    maq_html_table(h, &t, NULL);
    maq_table_fini(&t);
    maq_html_note(h, "TTFT: from a request's arrival to its first token. TPOT: (E2EL - TTFT) / (tokens - 1) of a "
                     "request. ITL: every gap "
                     "between tokens. E2EL: to its last token.");
    maq_html_put(h, "<div class=\"pair\">\n");
    maq_html_chart(h, "cdf-first", "",
                   "Share of requests that have their first token, and that have left the queue, within a time.");
    maq_html_chart(h, "cdf-token", "", "Share of requests whose tokens come within a time each (TPOT).");
    maq_html_put(h, "</div>\n");
    maq_html_end_section(h);
}

static void put_loads(struct maq_html *h, const struct maq_report_serve_page *p)
{
    const struct maq_table_column columns[] = {
        {load_names[p->kind], true, false}, {"served/s", true, false},          {"tokens/s out per GPU", true, false},
        {"TTFT p50, ms", true, false},      {"TTFT p95, ms", true, false},      {"TPOT p50, ms", true, false},
        {"TPOT p95, ms", true, false},      {"tokens/s per user", true, false}, {"", false, false}};
    struct maq_table t;
    if (p->n_loads == 0)
        return;
    maq_table_init(&t, columns, MAQ_COUNT(columns));
    for (uint32_t i = 0; i < p->n_loads; i++) {
        const struct maq_report_serve_load *l = &p->loads[i];
        maq_table_row(&t, l->asked ? MAQ_INK_TITLE : MAQ_INK_PLAIN);
        maq_table_cell(&t, "%.4g", l->load);
        maq_table_cell(&t, "%.3g", l->requests_per_s);
        maq_table_cell(&t, "%.0f", l->output_tokens_per_s_per_device);
        maq_table_cell(&t, "%.1f", l->ttft_s.p50 * 1e3);
        maq_table_cell(&t, "%.1f", l->ttft_s.p95 * 1e3);
        maq_table_cell(&t, "%.2f", l->tpot_s.p50 * 1e3);
        maq_table_cell(&t, "%.2f", l->tpot_s.p95 * 1e3);
        maq_table_cell(&t, "%.1f", l->tpot_s.mean > 0 ? 1 / l->tpot_s.mean : 0);
        maq_table_cell(&t, "%s", l->overloaded ? "overloaded" : l->asked ? "this report" : "");
    }
    maq_html_section(h, "loads", "Throughput against latency");
    maq_html_put(h, "<div class=\"pair\">\n");
    maq_html_chart(h, "front", "",
                   "Tokens a second for one user against tokens a second that a GPU gives, as the load grows.");
    maq_html_chart(h, "first-token", "", "Time to the first token (median and 95 %) against the load. Logarithmic.");
    maq_html_put(h, "</div>\n");
    maq_html_table(h, &t, "The same deployment under other loads");
    maq_table_fini(&t);
    maq_html_end_section(h);
}

static void put_over_time_charts(struct maq_html *h, const struct maq_report_serve_page *p)
{
    if (!p->samples || p->samples->n == 0)
        return;
    maq_html_section(h, "over-time", "Over time");
    maq_html_put(h, "<div class=\"pair\">\n");
    maq_html_chart(h, "queue-time", "short", "Requests that run and that wait, as iterations are decided.");
    maq_html_chart(h, "kv-time", "short", "Share of the KV cache in use.");
    maq_html_chart(h, "batch-time", "short", "Requests in an iteration.");
    maq_html_chart(h, "token-time", "short", "Tokens that an iteration computes; prompts make the high ones.");
    maq_html_put(h, "</div>\n");
    if (p->samples->stride > 1)
        maq_html_note(h, "Each point is the mean of %u iterations.", p->samples->stride);
    maq_html_end_section(h);
}

static void put_replicas(struct maq_html *h, const struct maq_serve_result *r)
{
    static const struct maq_table_column columns[] = {
        {"replica", true, false}, {"role", false, false},   {"requests", true, false}, {"tokens out", true, false},
        {"busy", true, false},    {"KV mean", true, false}, {"KV peak", true, false},  {"prefix hits", true, false}};
    struct maq_table t;
    if (!r->replicas)
        return;
    maq_table_init(&t, columns, MAQ_COUNT(columns));
    for (uint32_t i = 0; i < r->n_replicas; i++) {
        const struct maq_served_replica *x = &r->replicas[i];
        char tokens[32];
        maq_table_row(&t, MAQ_INK_PLAIN);
        maq_table_cell(&t, "%u", i);
        maq_table_cell(&t, "%s", r->pools ? maq_role_name(x->role) : "");
        maq_table_cell(&t, "%u", x->requests);
        maq_table_cell(&t, "%s", maq_words_integer(tokens, llround(x->output_tokens)));
        maq_table_cell(&t, "%.1f %%", 100 * x->busy_share);
        maq_table_cell(&t, "%.1f %%", 100 * x->kv_mean);
        maq_table_cell(&t, "%.1f %%", 100 * x->kv_peak);
        maq_table_cell(&t, "%.1f %%", 100 * x->prefix_hit_rate);
    }
    maq_html_section(h, "replicas", "Replicas");
    maq_html_table(h, &t, NULL);
    maq_table_fini(&t);
    maq_html_end_section(h);
}

enum maq_status maq_report_serve_html(char **out, const struct maq_report_serve_page *page,
                                      const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_html h;
    struct maq_buf more, title;
    const struct maq_serve_result *r = page->result;
    const struct maq_lines to = {put_fact, &h};
    char *document = NULL;
    enum maq_status status = maq_report_serve_json(&document, r, opts, diag);
    if (status != MAQ_OK)
        return status;
    maq_buf_init(&more, MORE_MAX);
    maq_buf_init(&title, 1 << 12);
    maq_buf_addf(&title, "%s on %u x %s", r->job->model.name, r->n_devices,
                 r->job->cluster.groups[r->job->stages[0].group].device.name);
    maq_buf_addc(&more, '{');
    put_curves(&more, page);
    put_over_time(&more, page->samples, r);
    put_loads_json(&more, page);
    maq_buf_addc(&more, '}');
    maq_html_begin(&h, "serve", title.ptr ? title.ptr : "");
    maq_html_facts(&h);
    maq_serve_deployment_lines(&to, r);
    maq_html_end_facts(&h);
    put_verdict(&h, r);
    put_cards(&h, r);
    if (r->finished > 0) {
        maq_html_section(&h, "outcome", "What became of the requests");
        maq_html_facts(&h);
        maq_serve_outcome_lines(&to, r);
        maq_html_end_facts(&h);
        maq_html_end_section(&h);
        put_latencies(&h, r);
        put_loads(&h, page);
        put_over_time_charts(&h, page);
        put_replicas(&h, r);
        maq_html_serve_parts(&h, "parts", "Where the time of an iteration goes", r->part_s, (double)r->iterations);
    }
    maq_html_serve_memory(&h, r);
    status = maq_html_finish(out, &h, document, &more, diag);
    maq_buf_fini(&more);
    maq_buf_fini(&title);
    return status;
}
