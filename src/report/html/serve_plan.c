/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve_plan.c - the page of a search for the best deployment: the fleet, throughput against latency over all deployments, how every other
 * one fared and why, how to start the best one.
 *
 * Beside the report's document the page carries the names of the candidates for its charts (`more`): {"names": ["h100-sxm, tp4 pp1", ...]}.
 */
#include <stdlib.h>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "report/html/html.h"
#include "report/json_util.h"
#include "report/money.h"
#include "report/serve/plan_parts.h"
#include "report/serve/plan_words.h"
#include "report/words.h"

static void put_fact(void *user, const char *label, const char *text)
{
    maq_html_fact(user, label, text);
}

/* Taken by the caller (free()); NULL when out of memory. */
static char *more_of(const struct maq_serve_search_result *r)
{
    struct maq_json_document d = {.root = {json_object(), &d}};
    struct maq_json names = maq_json_list(d.root, "names");
    for (uint32_t i = 0; i < r->n; i++) {
        struct maq_buf words;
        maq_buf_init(&words, 1 << 12);
        if (r->candidates[i].job)
            maq_words_candidate(&words, r, &r->candidates[i]);
        maq_json_word(names, words.ptr ? words.ptr : "");
        maq_buf_fini(&words);
    }
    return maq_json_take(&d);
}

static void put_verdict(struct maq_html *h, const struct maq_report_serve_plan *p)
{
    const struct maq_serve_search_result *r = p->search;
    struct maq_buf words;
    maq_buf_init(&words, 1 << 12);
    for (uint32_t i = 0; i < r->n_fleet; i++) {
        const struct maq_serve_candidate *c = &r->candidates[r->fleet[i].candidate];
        maq_buf_addf(&words, "%s%u %sreplica%s of ", i > 0 ? ", " : "", r->fleet[i].replicas,
                     r->fleet[i].role == MAQ_ROLE_DECODE    ? "decode "
                     : r->fleet[i].role == MAQ_ROLE_PREFILL ? "prefill "
                                                            : "",
                     maq_words_s(r->fleet[i].replicas));
        maq_words_cut(&words, c);
        maq_buf_addf(&words, " on %u %s", r->fleet[i].replicas * c->gpus, c->job->cluster.groups[0].device.name);
    }
    if (p->best && !r->carries)
        maq_buf_adds(&words, ": carries the most, but not what is asked for");
    if (!p->best)
        maq_buf_adds(&words, r->complete ? "no deployment on this cluster holds the bounds" : "none found so far");
    h->out.failed |= words.failed;
    maq_html_verdict(h, p->best && r->carries ? MAQ_HTML_GOOD : MAQ_HTML_BAD, words.ptr ? words.ptr : "");
    maq_buf_fini(&words);
}

static void put_latency(struct maq_html *h, const char *name, const struct maq_serve_quantiles *q)
{
    char value[32], note[128], a[32], b[32], c[32];
    maq__snprintf(note, sizeof note, "mean; 80 %% interval %s to %s; p95 %s", maq_format_time(a, q->low),
                  maq_format_time(b, q->high), maq_format_time(c, q->p95));
    maq_html_card_range(h, name, maq_format_time(value, q->mean), note, q->low, q->mean, q->high);
}

static void put_cards(struct maq_html *h, const struct maq_report_serve_plan *p)
{
    const struct maq_serve_search_result *r = p->search;
    char value[64], note[160], a[48];
    maq_html_cards(h);
    if (p->best) {
        const struct maq_serve_result *b = p->best;
        maq__snprintf(value, sizeof value, "%.4g requests/s", r->rate);
        maq__snprintf(note, sizeof note, "on %u GPUs, %.3g on each; %.0f tokens/s out of a GPU", r->gpus,
                      r->rate / r->gpus, b->output_tokens_per_s / r->gpus);
        maq_html_card(h, "Carries", value, note);
        put_latency(h, "Time to first token (TTFT)", &b->ttft_s);
        put_latency(h, "Time per output token (TPOT)", &b->tpot_s);
        if (r->usd_per_hour > 0 && b->output_tokens_per_s > 0) {
            maq__snprintf(note, sizeof note, "for 10^6 tokens out; %s an hour", maq_words_usd(a, r->usd_per_hour));
            maq_html_card(h, "Cost", maq_words_usd(value, r->usd_per_hour / 3600 / b->output_tokens_per_s * 1e6), note);
        }
    }
    maq__snprintf(value, sizeof value, "%u deployments", r->n);
    maq__snprintf(note, sizeof note, "searched in %u simulated runs of %u requests%s", r->runs, r->n_requests,
                  r->complete ? "" : "; stopped before all were looked at");
    maq_html_card(h, "Search", value, note);
    maq_html_end_cards(h);
}

static void put_found(struct maq_html *h, const struct maq_report_serve_plan *p)
{
    const struct maq_lines to = {put_fact, h};
    maq_html_section(h, "found", p->best ? "The best deployment" : "What was searched");
    maq_html_facts(h);
    maq_serve_found_lines(&to, p);
    maq_html_end_facts(h);
    maq_html_end_section(h);
}

static void put_front(struct maq_html *h, const struct maq_serve_search_result *r)
{
    struct maq_table t;
    if (r->n_front == 0)
        return;
    maq_html_section(h, "front", "Throughput against latency");
    maq_html_chart(h, "front-chart", "tall",
                   "Tokens a second for one user against tokens a second that a GPU gives, over all deployments and "
                   "numbers of requests at "
                   "a time: those that no other beats in both.");
    maq_serve_front_table(&t, r);
    maq_html_table(h, &t, "So many requests at a time in each replica");
    maq_table_fini(&t);
    maq_html_end_section(h);
}

static void put_others(struct maq_html *h, const struct maq_report_serve_plan *p)
{
    const struct maq_serve_search_result *r = p->search;
    struct maq_table t;
    uint32_t n, *cuts = maq_serve_cuts(&n, r);
    h->out.failed |= !cuts;
    if (!cuts)
        return;
    maq_html_section(h, "others", "The others");
    maq_serve_ranked_table(&t, r, cuts, n);
    if (t.n_rows > 0) {
        if (!(p->opts->rate > 0)) /* else all carry the same */
            maq_html_chart(h, "ranked", "bars",
                           "Requests a second that a GPU carries within the bounds, of what was simulated to its end.");
        maq_html_table(
            h, &t,
            "Simulated to their end; limits other than the engine's own are requests and tokens of an iteration");
    }
    maq_table_fini(&t);
    maq_serve_losers_table(&t, r, cuts, n, n);
    if (t.n_rows > 0)
        maq_html_table(h, &t, "Why the others are not better");
    maq_table_fini(&t);
    maq_html_end_section(h);
    free(cuts);
}

static void put_how(struct maq_html *h, const struct maq_report_serve_plan *p, struct maq_diag *diag)
{
    char *text;
    if (p->search->n_fleet == 0 || !p->best || maq_report_serve_plan_command(&text, p, diag) != MAQ_OK)
        return;
    maq_html_section(h, "how", "How to start it");
    maq_html_note(h, "--write-command FILE, --write-manifest FILE and --write-helm-values FILE write it.");
    maq_html_put(h, "<pre>");
    maq_html_text(h, maq_str_of(text));
    maq_html_put(h, "</pre>\n");
    maq_html_end_section(h);
    free(text);
}

enum maq_status maq_report_serve_plan_html(char **out, const struct maq_report_serve_plan *plan,
                                           const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_html h;
    struct maq_buf more, title;
    const struct maq_lines to = {put_fact, &h};
    const struct maq_job *job = maq_job_get(plan->open);
    char *document = NULL, *names = more_of(plan->search);
    enum maq_status status = maq_report_serve_plan_json(&document, plan, opts, diag);
    if (status != MAQ_OK) {
        free(names);
        return status;
    }
    maq_buf_init(&more, (size_t)16 * 1024 * 1024);
    maq_buf_adds(&more, names ? names : "");
    more.failed |= !names;
    free(names);
    maq_buf_init(&title, 1 << 12);
    maq_buf_addf(&title, "Serving %s", job->model.name);
    maq_html_begin(&h, "serve plan", title.ptr ? title.ptr : "");
    maq_html_facts(&h);
    maq_serve_asked_lines(&to, plan);
    maq_html_end_facts(&h);
    put_verdict(&h, plan);
    put_cards(&h, plan);
    put_found(&h, plan);
    put_front(&h, plan->search);
    put_others(&h, plan);
    put_how(&h, plan, diag);
    status = maq_html_finish(out, &h, document, &more, diag);
    maq_buf_fini(&more);
    maq_buf_fini(&title);
    return status;
}
