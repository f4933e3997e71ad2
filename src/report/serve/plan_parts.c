/* SPDX-License-Identifier: Apache-2.0 */
/* plan_parts.c - tables and lines about the best deployment. See plan_parts.h. */
#include "report/serve/plan_parts.h"

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "report/money.h"
#include "report/serve/plan_words.h"
#include "report/words.h"

static void put(const struct maq_lines *to, const char *label, struct maq_buf *line)
{
    to->put(to->user, label, line->ptr ? line->ptr : "");
    maq_buf_fini(line);
    maq_buf_init(line, 1 << 16);
}

/* ---- what was asked ---- */

static void put_asked(const struct maq_lines *to, struct maq_buf *line, const struct maq_report_serve_plan *p)
{
    const struct maq_job *job = maq_job_get(p->open);
    const struct maq_request_spec *spec = p->opts->spec;
    char prompt[32], output[32];
    maq_buf_addf(line, "%s: ", job->model.name);
    maq_words_model(line, &job->model);
    put(to, "model", line);
    maq_words_cluster(line, &job->cluster);
    put(to, "cluster", line);
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
    if (p->failures)
        maq_serve_failures_asked(line, p->failures);
    put(to, "asked", line);
}

/* ---- the winner ---- */

static void put_engine(const struct maq_lines *to, struct maq_buf *line, const struct maq_serve_candidate *c)
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
    put(to, "", line);
}

static void put_fleet(const struct maq_lines *to, struct maq_buf *line, const struct maq_serve_search_result *r)
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
        put(to, i == 0 ? "best" : "and", line);
        put_engine(to, line, c);
    }
}

static void put_time(struct maq_buf *line, const char *name, const struct maq_serve_quantiles *q)
{
    maq_buf_addf(line, "%s %.1f ms (80 %% interval %.1f to %.1f), p95 %.1f", name, q->mean * 1e3, q->low * 1e3,
                 q->high * 1e3, q->p95 * 1e3);
}

/* Of the whole fleet, whose replicas were asked one by one. */
static void put_bounds(const struct maq_lines *to, struct maq_buf *line, const struct maq_slo_outcome *o)
{
    for (uint32_t i = 0; i < o->slo.n; i++) {
        char time[32];
        maq_buf_addf(line, "%s%s_%s %s%s", i > 0 ? ", " : "", maq_slo_metric_name(o->slo.at[i].metric),
                     maq_slo_statistic_name(o->slo.at[i].statistic), maq_format_time(time, o->value_s[i]),
                     o->met[i] ? "" : " (missed)");
    }
    if (o->slo.n > 0)
        put(to, "bounds", line);
}

static void put_best(const struct maq_lines *to, struct maq_buf *line, const struct maq_report_serve_plan *p)
{
    const struct maq_serve_search_result *r = p->search;
    const struct maq_serve_result *b = p->best;
    char out[48], hour[48];
    put_fleet(to, line, r);
    maq_buf_addf(line, "%.4g requests/s, %.3g on a GPU; %.0f tokens/s out of a GPU, %.1f for a user", r->rate,
                 r->rate / r->gpus, b->output_tokens_per_s / r->gpus, b->tpot_s.mean > 0 ? 1 / b->tpot_s.mean : 0);
    put(to, "carries", line);
    put_bounds(to, line, &b->slo);
    put_time(line, "TTFT", &b->ttft_s);
    put_time(line, "; TPOT", &b->tpot_s);
    put(to, "latency", line);
    if (r->usd_per_hour > 0 && b->output_tokens_per_s > 0) {
        maq_buf_addf(line, "%s an hour, %s for 10^6 tokens out", maq_words_usd(hour, r->usd_per_hour),
                     maq_words_usd(out, r->usd_per_hour / 3600 / b->output_tokens_per_s * 1e6));
        put(to, "cost", line);
    }
}

static void put_searched(const struct maq_lines *to, struct maq_buf *line, const struct maq_serve_search_result *r)
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
    put(to, "searched", line);
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
void maq_serve_ranked_table(struct maq_table *t, const struct maq_serve_search_result *r, const uint32_t *cuts,
                            uint32_t n)
{
    static const struct maq_table_column columns[] = {{"deployment", false, true}, {"GPUs", true, false},
                                                      {"requests/s", true, false}, {"of a GPU", true, false},
                                                      {"TTFT ms", true, false},    {"TPOT ms", true, false}};
    maq_table_init(t, columns, MAQ_COUNT(columns));
    t->wraps = true;
    for (uint32_t i = 0; i < n; i++) {
        const struct maq_serve_candidate *c = &r->candidates[cuts[i]];
        if (c->rate <= 0)
            continue;
        maq_table_row(t, c->verdict == MAQ_SERVE_VERDICT_BEST ? MAQ_INK_GOOD : MAQ_INK_PLAIN);
        put_words(t, r, c);
        maq_table_cell(t, "%u", c->with_spares * c->gpus);
        maq_table_cell(t, "%.3g", c->rate);
        maq_table_cell(t, "%.3g", c->rate / (c->with_spares * c->gpus));
        maq_table_cell(t, "%.0f", c->ttft_s * 1e3);
        maq_table_cell(t, "%.1f", c->tpot_s * 1e3);
    }
}

void maq_serve_losers_table(struct maq_table *t, const struct maq_serve_search_result *r, const uint32_t *cuts,
                            uint32_t n, uint32_t most)
{
    static const struct maq_table_column columns[] = {{"others", false, true},
                                                      {"why they are not better", false, true}};
    maq_table_init(t, columns, MAQ_COUNT(columns));
    t->wraps = true;
    for (uint32_t i = 0; i < n && t->n_rows < most; i++) {
        const struct maq_serve_candidate *c = &r->candidates[cuts[i]];
        struct maq_buf why;
        if (c->rate > 0)
            continue;
        maq_buf_init(&why, 1 << 12);
        maq_words_verdict(&why, c);
        maq_table_row(t, MAQ_INK_PLAIN);
        put_words(t, r, c);
        maq_table_cell(t, "%s", why.ptr ? why.ptr : "");
        maq_buf_fini(&why);
    }
}

void maq_serve_front_table(struct maq_table *t, const struct maq_serve_search_result *r)
{
    static const struct maq_table_column columns[] = {{"tokens/s of a user", true, false},
                                                      {"of a GPU", true, false},
                                                      {"TTFT ms", true, false},
                                                      {"at a time", true, false},
                                                      {"deployment", false, true}};
    maq_table_init(t, columns, MAQ_COUNT(columns));
    for (uint32_t i = 0; i < r->n_front; i++) {
        const struct maq_serve_front_point *p = &r->front[i];
        maq_table_row(t, MAQ_INK_PLAIN);
        maq_table_cell(t, "%.1f", p->tokens_per_s_per_user);
        maq_table_cell(t, "%.1f", p->tokens_per_s_per_gpu);
        maq_table_cell(t, "%.0f", p->ttft_s * 1e3);
        maq_table_cell(t, "%u", p->concurrency);
        put_words(t, r, &r->candidates[p->candidate]);
    }
}

/* ---- nothing holds ---- */

static void put_nearest(const struct maq_lines *to, struct maq_buf *line, const struct maq_serve_search_result *r)
{
    const struct maq_serve_nearest *m = &r->nearest;
    char value[32], low[32], high[32];
    maq_words_candidate(line, r, &r->candidates[m->candidate]);
    maq_buf_addf(line, ": %s %s, 80 %% interval %s to %s: the bound ", maq_slo_metric_name(m->bound.metric),
                 maq_format_time(value, m->value_s), maq_format_time(low, m->low_s), maq_format_time(high, m->high_s));
    maq_buf_adds(line, m->low_s <= m->bound.limit.most_s ? "is within it and may be held" : "is not within it");
    put(to, "nearest", line);
}

/* ---- all of it ---- */

void maq_serve_asked_lines(const struct maq_lines *to, const struct maq_report_serve_plan *plan)
{
    struct maq_buf line;
    maq_buf_init(&line, 1 << 16);
    put_asked(to, &line, plan);
    maq_buf_fini(&line);
}

void maq_serve_found_lines(const struct maq_lines *to, const struct maq_report_serve_plan *plan)
{
    struct maq_buf line;
    maq_buf_init(&line, 1 << 16);
    if (plan->best && !plan->search->carries) {
        maq_buf_adds(&line, "no deployment on this cluster carries them; what carries the most within the bounds:");
        put(to, "none", &line);
    }
    if (plan->best) {
        put_best(to, &line, plan);
    } else {
        maq_buf_adds(&line,
                     plan->search->complete ? "none: no deployment on this cluster holds the bounds" : "none so far");
        put(to, "best", &line);
        if (plan->search->nearest.value_s > 0)
            put_nearest(to, &line, plan->search);
    }
    if (plan->failures)
        maq_serve_failures_lines(to, plan);
    put_searched(to, &line, plan->search);
    maq_buf_fini(&line);
}
