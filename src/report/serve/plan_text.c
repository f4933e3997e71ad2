/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_text.c - the best deployment for a terminal: what was asked, the winner, how every other cut fared, throughput against latency.
 */
#include <stdlib.h>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "report/money.h"
#include "report/page.h"
#include "report/serve/plan_words.h"
#include "report/words.h"

#define LABEL 12
#define CUTS_MOST 20u

static void put(struct maq_page *page, const char *label, struct maq_buf *line)
{
    maq_page_field(page, LABEL, label, line->ptr ? line->ptr : "");
    maq_buf_fini(line);
    maq_buf_init(line, 1 << 16);
}

/* ---- what was asked ---- */

static void put_asked(struct maq_page *page, struct maq_buf *line, const struct maq_report_serve_plan *p)
{
    const struct maq_job *job = maq_job_get(p->open);
    const struct maq_request_spec *spec = p->opts->spec;
    char prompt[32], output[32];
    maq_buf_addf(line, "%s: ", job->model.name);
    maq_words_model(line, &job->model);
    put(page, "model", line);
    maq_words_cluster(line, &job->cluster);
    put(page, "cluster", line);
    if (p->opts->rate > 0)
        maq_buf_addf(line, "%.4g requests/s", p->opts->rate);
    else
        maq_buf_adds(line, "as many requests as can be");
    if (p->opts->requests)
        maq_buf_addf(line, ", %u of a file", p->opts->requests->n);
    else
        maq_buf_addf(line, " of %s tokens in and %s out", maq_words_integer(prompt, spec->prompt),
                     maq_words_integer(output, spec->output));
    maq_buf_adds(line, p->opts->slo->n > 0 ? ", with " : ", no faster than they are served");
    maq_words_slo(line, p->opts->slo);
    put(page, "asked", line);
}

/* ---- the winner ---- */

static void put_engine(struct maq_page *page, struct maq_buf *line, const struct maq_serve_candidate *c)
{
    const struct maq_serve_options *o = &c->options;
    maq_buf_addf(line, "%s, weights %s", maq_engine_name(o->engine), maq_weights_name(o->weights));
    if (o->expert_weights != o->weights)
        maq_buf_addf(line, ", experts %s", maq_weights_name(o->expert_weights));
    maq_buf_addf(line, ", KV cache %s", o->kv_fp8 ? "fp8" : "16 bits");
    if (o->max_num_seqs > 0)
        maq_buf_addf(line, ", max_num_seqs %d", o->max_num_seqs);
    if (o->max_num_batched_tokens > 0)
        maq_buf_addf(line, ", max_num_batched_tokens %d", o->max_num_batched_tokens);
    maq_buf_adds(line, o->max_num_seqs > 0 || o->max_num_batched_tokens > 0 ? "" : ", the engine's own limits");
    put(page, "", line);
}

static void put_fleet(struct maq_page *page, struct maq_buf *line, const struct maq_serve_search_result *r)
{
    for (uint32_t i = 0; i < r->n_fleet; i++) {
        const struct maq_serve_candidate *c = &r->candidates[r->fleet[i].candidate];
        uint32_t n = r->fleet[i].replicas;
        maq_buf_addf(line, "%u %sreplica%s of ", n,
                     r->fleet[i].role == MAQ_ROLE_DECODE    ? "decode "
                     : r->fleet[i].role == MAQ_ROLE_PREFILL ? "prefill "
                                                            : "",
                     maq_words_s(n));
        maq_words_cut(line, c);
        maq_buf_addf(line, ": %u of %u %s", n * c->gpus, c->job->cluster.devices,
                     c->job->cluster.groups[0].device.name);
        put(page, i == 0 ? "best" : "and", line);
        put_engine(page, line, c);
    }
}

static void put_time(struct maq_buf *line, const char *name, const struct maq_serve_quantiles *q)
{
    maq_buf_addf(line, "%s %.1f ms (80 %% interval %.1f to %.1f), p95 %.1f", name, q->mean * 1e3, q->low * 1e3,
                 q->high * 1e3, q->p95 * 1e3);
}

/* Of the whole fleet, whose replicas were asked one by one. */
static void put_bounds(struct maq_page *page, struct maq_buf *line, const struct maq_slo_outcome *o)
{
    for (uint32_t i = 0; i < o->slo.n; i++) {
        char time[32];
        maq_buf_addf(line, "%s%s_%s %s%s", i > 0 ? ", " : "", maq_slo_metric_name(o->slo.at[i].metric),
                     maq_slo_statistic_name(o->slo.at[i].statistic), maq_format_time(time, o->value_s[i]),
                     o->met[i] ? "" : " (missed)");
    }
    if (o->slo.n > 0)
        put(page, "bounds", line);
}

static void put_best(struct maq_page *page, struct maq_buf *line, const struct maq_report_serve_plan *p)
{
    const struct maq_serve_search_result *r = p->search;
    const struct maq_serve_result *b = p->best;
    char out[48], hour[48];
    put_fleet(page, line, r);
    maq_buf_addf(line, "%.4g requests/s, %.3g on a GPU; %.0f tokens/s out of a GPU, %.1f for a user", r->rate,
                 r->rate / r->gpus, b->output_tokens_per_s / r->gpus, b->tpot_s.mean > 0 ? 1 / b->tpot_s.mean : 0);
    put(page, "carries", line);
    put_bounds(page, line, &b->slo);
    put_time(line, "TTFT", &b->ttft_s);
    put_time(line, "; TPOT", &b->tpot_s);
    put(page, "latency", line);
    if (r->usd_per_hour > 0 && b->output_tokens_per_s > 0) {
        maq_buf_addf(line, "%s an hour, %s for 10^6 tokens out", maq_words_usd(hour, r->usd_per_hour),
                     maq_words_usd(out, r->usd_per_hour / 3600 / b->output_tokens_per_s * 1e6));
        put(page, "cost", line);
    }
}

static void put_searched(struct maq_page *page, struct maq_buf *line, const struct maq_serve_search_result *r)
{
    maq_buf_addf(line, "%u deployments:", r->n);
    bool first = true;
    for (int v = MAQ_SERVE_VERDICT_COUNT - 1; v >= 0; v--) {
        if (r->counts[v] == 0)
            continue;
        maq_buf_addf(line, "%s %u %s", first ? "" : ",", r->counts[v],
                     maq_serve_verdict_name((enum maq_serve_verdict)v));
        first = false;
    }
    if (r->pools > 0)
        maq_buf_addf(line, "; of %u pools of prefill and decode that might be better, %u simulated", r->pools,
                     r->pools_tried);
    maq_buf_addf(line, "; %u runs of %u requests or the first of them", r->runs, r->n_requests);
    if (!r->complete)
        maq_buf_adds(line, "; stopped before all were looked at");
    put(page, "searched", line);
}

/* ---- the others ---- */

static void put_words(struct maq_table *t, const struct maq_serve_search_result *r, const struct maq_serve_candidate *c)
{
    struct maq_buf words;
    maq_buf_init(&words, 1 << 12);
    maq_words_candidate(&words, r, c);
    maq_table_cell(t, "%s", words.ptr ? words.ptr : "");
    maq_buf_fini(&words);
}

/* Those that were simulated to their end. */
static void put_ranked(struct maq_page *page, const struct maq_serve_search_result *r, const uint32_t *cuts, uint32_t n)
{
    static const struct maq_table_column columns[] = {{"deployment", false, true}, {"GPUs", true, false},
                                                      {"requests/s", true, false}, {"of a GPU", true, false},
                                                      {"TTFT ms", true, false},    {"TPOT ms", true, false}};
    struct maq_table t;
    maq_table_init(&t, columns, MAQ_COUNT(columns));
    t.wraps = true;
    for (uint32_t i = 0; i < n; i++) {
        const struct maq_serve_candidate *c = &r->candidates[cuts[i]];
        if (c->rate <= 0)
            continue;
        maq_table_row(&t, c->verdict == MAQ_SERVE_VERDICT_BEST ? MAQ_INK_GOOD : MAQ_INK_PLAIN);
        put_words(&t, r, c);
        maq_table_cell(&t, "%u", c->replicas * c->gpus);
        maq_table_cell(&t, "%.3g", c->rate);
        maq_table_cell(&t, "%.3g", c->rate / (c->replicas * c->gpus));
        maq_table_cell(&t, "%.0f", c->ttft_s * 1e3);
        maq_table_cell(&t, "%.1f", c->tpot_s * 1e3);
    }
    if (t.n_rows > 0) {
        maq_page_putf(page, MAQ_INK_HEAD,
                      "\nlimits other than the engine's own: requests and tokens of an iteration\n");
        maq_table_print(page, &t, 2);
    }
    maq_table_fini(&t);
}

static void put_losers(struct maq_page *page, const struct maq_serve_search_result *r, const uint32_t *cuts, uint32_t n)
{
    static const struct maq_table_column columns[] = {{"others", false, true},
                                                      {"why they are not better", false, true}};
    struct maq_table t;
    maq_table_init(&t, columns, MAQ_COUNT(columns));
    t.wraps = true;
    for (uint32_t i = 0; i < n && t.n_rows < CUTS_MOST; i++) {
        const struct maq_serve_candidate *c = &r->candidates[cuts[i]];
        struct maq_buf why;
        if (c->rate > 0)
            continue;
        maq_buf_init(&why, 1 << 12);
        maq_words_verdict(&why, c);
        maq_table_row(&t, MAQ_INK_PLAIN);
        put_words(&t, r, c);
        maq_table_cell(&t, "%s", why.ptr ? why.ptr : "");
        maq_buf_fini(&why);
    }
    if (t.n_rows > 0) {
        maq_buf_adds(&page->out, "\n");
        maq_table_print(page, &t, 2);
    }
    maq_table_fini(&t);
}

/* A line for each combination of degrees and types, with those limits under which it came furthest. */
static void put_cuts(struct maq_page *page, const struct maq_serve_search_result *r)
{
    uint32_t n, *cuts = maq_serve_cuts(&n, r);
    if (!cuts)
        return;
    put_ranked(page, r, cuts, n);
    put_losers(page, r, cuts, n);
    if (n > CUTS_MOST)
        maq_page_putf(page, MAQ_INK_FAINT, "  of %u; --json has all\n", n);
    free(cuts);
}

static void put_front(struct maq_page *page, const struct maq_serve_search_result *r)
{
    static const struct maq_table_column columns[] = {{"tokens/s of a user", true, false},
                                                      {"of a GPU", true, false},
                                                      {"TTFT ms", true, false},
                                                      {"at a time", true, false},
                                                      {"deployment", false, true}};
    struct maq_table t;
    maq_page_putf(page, MAQ_INK_HEAD, "\nthroughput against latency, so many requests at a time in each replica\n");
    maq_table_init(&t, columns, MAQ_COUNT(columns));
    for (uint32_t i = 0; i < r->n_front; i++) {
        const struct maq_serve_front_point *p = &r->front[i];
        maq_table_row(&t, MAQ_INK_PLAIN);
        maq_table_cell(&t, "%.1f", p->tokens_per_s_per_user);
        maq_table_cell(&t, "%.1f", p->tokens_per_s_per_gpu);
        maq_table_cell(&t, "%.0f", p->ttft_s * 1e3);
        maq_table_cell(&t, "%u", p->concurrency);
        put_words(&t, r, &r->candidates[p->candidate]);
    }
    maq_table_print(page, &t, 2);
    maq_table_fini(&t);
}

enum maq_status maq_report_serve_plan_text(char **out, const struct maq_report_serve_plan *plan,
                                           const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_page page;
    struct maq_buf line;
    maq_page_init(&page, opts);
    maq_buf_init(&line, 1 << 16);
    put_asked(&page, &line, plan);
    if (plan->best && !plan->search->carries) {
        maq_buf_adds(&line, "no deployment on this cluster carries them; what carries the most within the bounds:");
        put(&page, "none", &line);
    }
    if (plan->best) {
        put_best(&page, &line, plan);
    } else {
        maq_buf_adds(&line,
                     plan->search->complete ? "none: no deployment on this cluster holds the bounds" : "none so far");
        put(&page, "best", &line);
    }
    put_searched(&page, &line, plan->search);
    put_cuts(&page, plan->search);
    if (plan->search->n_front > 0)
        put_front(&page, plan->search);
    maq_buf_fini(&line);
    return maq_page_finish(out, &page, diag);
}
