/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.c - the page of a search for the best plan: the winner, the front of step time against memory, the runners-up and where their time
 * goes, the winner with one thing changed, or what would make the job fit.
 *
 * Beside the report's document the page carries the plans' names for its charts (`more`):
 *
 *   {"capacity_bytes": 8.5e10, "plans": ["tp4 pp4 ..."], "pareto": [...], "changed": ["tp", ...]}
 */
#include <stdlib.h>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "report/html/html.h"
#include "report/json_util.h"
#include "report/money.h"
#include "report/plan/uniform_parts.h"
#include "report/train/train_words.h"
#include "report/words.h"

static void put_fact(void *user, const char *label, const char *text)
{
    maq_html_fact(user, label, text);
}

/* --- what charts show -------------------------------------------------------------------------------------------- */

static void add_name(struct maq_json list, const struct maq_plan *plan, int64_t devices)
{
    struct maq_buf words;
    maq_buf_init(&words, 1 << 12);
    maq_plan_sentence(&words, plan, devices);
    maq_json_word(list, words.ptr ? words.ptr : "");
    maq_buf_fini(&words);
}

/* Taken by the caller (free()); NULL when out of memory. */
static char *more_of(const struct maq_report_plan *p)
{
    struct maq_json_document d = {.root = {json_object(), &d}};
    const struct maq_search_result *r = p->search;
    const struct maq_cluster *cluster = &maq_job_get(p->open)->cluster;
    maq_json_count(d.root, "capacity_bytes", cluster->groups[0].device.mem_bytes);
    struct maq_json plans = maq_json_list(d.root, "plans"), pareto = maq_json_list(d.root, "pareto");
    for (uint32_t i = 0; i < r->n_plans; i++)
        add_name(plans, &p->trains[i]->job->plan, cluster->devices);
    for (uint32_t i = 0; i < r->n_pareto; i++)
        add_name(pareto, &r->pareto[i].plan, cluster->devices);
    struct maq_json changed = maq_json_list(d.root, "changed");
    for (uint32_t i = 0; p->alternatives && i < p->alternatives->n; i++)
        maq_json_word(changed, p->alternatives->at[i].name);
    return maq_json_take(&d);
}

/* --- headline ---------------------------------------------------------------------------------------------------- */

static void put_verdict(struct maq_html *h, const struct maq_report_plan *p)
{
    const struct maq_job *job = maq_job_get(p->open);
    struct maq_buf words;
    maq_buf_init(&words, 1 << 12);
    if (p->search->n_plans > 0) {
        maq_plan_sentence(&words, &p->trains[0]->job->plan, job->cluster.devices);
    } else {
        maq_plan_none(&words, p, "; ");
    }
    h->out.failed |= words.failed;
    maq_html_verdict(h, p->search->n_plans > 0 ? MAQ_HTML_GOOD : MAQ_HTML_BAD, words.ptr ? words.ptr : "");
    maq_buf_fini(&words);
}

static void put_cards(struct maq_html *h, const struct maq_report_plan *p)
{
    char a[32], b[32], value[64], note[192];
    const struct maq_search_result *r = p->search;
    maq_html_cards(h);
    if (r->n_plans > 0) {
        const struct maq_train_result *t = p->trains[0];
        const double has = maq_job_get(p->open)->cluster.groups[0].device.mem_bytes;
        maq__snprintf(note, sizeof note, "80 %% interval %s to %s", maq_format_time(a, t->step_low_s),
                      maq_format_time(b, t->step_high_s));
        maq_html_card_range(h, "Step time of the best plan", maq_words_step(value, t->step_s), note, t->step_low_s,
                            t->step_s, t->step_high_s);
        maq__snprintf(value, sizeof value, "MFU %.1f %%", 100 * t->mfu);
        maq__snprintf(note, sizeof note, "%s tokens/s", maq_words_rate(a, t->tokens_per_s));
        maq_html_card_gauge(h, "Utilization", value, note, t->mfu, false);
        maq__snprintf(note, sizeof note, "of %s", maq_format_bytes(a, has));
        if (p->headroom)
            maq__snprintf(note, sizeof note, "of %s; fits in %.0f of 100 runs", maq_format_bytes(a, has),
                          100 * p->headroom->fit_probability);
        maq_html_card_gauge(h, "Memory without cached blocks", maq_format_bytes(value, r->plans[0].needed_bytes), note,
                            r->plans[0].needed_bytes / has, false);
        const struct maq_money m = maq_money_of_train(t);
        if (m.per_hour > 0) {
            char usd[48], hour[48];
            maq__snprintf(note, sizeof note, "for 10^12 tokens; %s an hour", maq_words_usd(hour, m.per_hour));
            maq_html_card(h, "Cost", maq_words_usd(usd, m.per_trillion_tokens), note);
        }
    }
    maq__snprintf(value, sizeof value, "%s plans", maq_format_count(a, (double)r->counts.considered));
    if (r->complete)
        maq__snprintf(note, sizeof note, "searched; %s timed, the others cannot win or cannot be",
                      maq_words_integer(a, (int64_t)r->counts.scored));
    else
        maq__snprintf(note, sizeof note, "stopped early: the best may be another");
    maq_html_card(h, "Search", value, note);
    maq_html_end_cards(h);
}

/* --- sections ---------------------------------------------------------------------------------------------------- */

static void put_found(struct maq_html *h, const struct maq_report_plan *p)
{
    const struct maq_lines to = {put_fact, h};
    struct maq_table t;
    maq_html_section(h, "plans", p->search->n_plans > 1 ? "The best plans" : "The best plan");
    maq_plan_list_table(&t, p);
    maq_html_table(h, &t, NULL);
    maq_table_fini(&t);
    maq_html_note(
        h,
        "Each has other degrees. loss: how much longer its step is. GiB: on the fullest GPU, without cached blocks.");
    maq_html_put(h, "<div class=\"pair\">\n");
    maq_html_chart(h, "front", "tall",
                   p->search->n_pareto > 0 ? "Step time against memory: the winner, the runners-up, plans that no "
                                             "other beats in both, and the winner with one "
                                             "thing changed."
                                           : "Step time against memory: the winner, the runners-up, and the winner "
                                             "with one thing changed. With --pareto "
                                             "memory also every plan that no other beats in both.");
    maq_html_chart(h, "parts", "tall", "Where the step of each plan goes, on its least idle stage.");
    maq_html_put(h, "</div>\n<p></p>\n");
    maq_html_facts(h);
    maq_plan_proof_lines(&to, p);
    maq_plan_winner_lines(&to, p);
    maq_html_end_facts(h);
    maq_html_end_section(h);
}

static void put_alternatives(struct maq_html *h, const struct maq_report_plan *p)
{
    struct maq_table t;
    if (!p->alternatives || p->alternatives->n == 0)
        return;
    maq_html_section(h, "what-if", "What if: the winner with one thing changed");
    maq_plan_alternatives_table(&t, p);
    maq_html_table(h, &t, NULL);
    maq_table_fini(&t);
    maq_html_chart(h, "what-if-chart", "bars",
                   "How much longer a step is with one thing changed. Pale: it would not fit in memory.");
    maq_html_end_section(h);
}

static void put_front(struct maq_html *h, const struct maq_report_plan *p)
{
    struct maq_table t;
    if (p->search->n_pareto == 0)
        return;
    maq_html_section(h, "pareto", "Time against memory");
    maq_html_fold(h, "Every plan that no other beats in both");
    maq_plan_front_table(&t, p);
    maq_html_table(h, &t, NULL);
    maq_table_fini(&t);
    maq_html_end_fold(h);
    maq_html_end_section(h);
}

static void put_pre(struct maq_html *h, const char *text)
{
    maq_html_put(h, "<pre>");
    maq_html_text(h, maq_str_of(text));
    maq_html_put(h, "</pre>\n");
}

static void put_winner(struct maq_html *h, const struct maq_report_plan *p)
{
    if (!p->document)
        return;
    maq_html_section(h, "winner", "How to run it");
    maq_html_note(h, "As a job file. --write FILE writes it; maquette train FILE --html shows its step.");
    put_pre(h, p->document);
    if (p->words && p->words->text) {
        maq_html_note(h, "In the words of %s%s%s%s:", p->words->title,
                      p->words->refused ? ", which are not enough: " : "", p->words->refused ? p->words->refused : "",
                      p->words->n_unsaid > 0 ? ", without what it has no words for" : "");
        put_pre(h, p->words->text);
        for (uint32_t i = 0; i < p->words->n_unsaid; i++)
            maq_html_note(h, "%s: %s (left to it: %s)", p->words->unsaid[i].key, p->words->unsaid[i].value,
                          p->words->unsaid[i].instead);
    }
    maq_html_end_section(h);
}

static void put_remedies(struct maq_html *h, const struct maq_report_plan *p)
{
    const struct maq_lines to = {put_fact, h};
    struct maq_table t;
    maq_html_section(h, "remedies", "What would make it fit");
    if (p->remedies) {
        maq_plan_remedies_table(&t, p);
        if (t.n_rows > 0)
            maq_html_table(h, &t, "With one of");
        else
            maq_html_note(h, "nothing that was tried: 64 times the memory, 64 times the nodes");
        maq_table_fini(&t);
    }
    maq_html_facts(h);
    maq_plan_proof_lines(&to, p);
    maq_html_end_facts(h);
    maq_html_end_section(h);
}

/* What was searched, and what the job keeps. */
static void put_space(struct maq_html *h, const struct maq_search_result *r)
{
    static const struct maq_table_column columns[] = {
        {"key", false, false}, {"values", false, true}, {"", false, false}};
    struct maq_table t;
    maq_table_init(&t, columns, MAQ_COUNT(columns));
    for (uint32_t i = 0; i < r->n_axes; i++) {
        maq_table_row(&t, r->axes[i].fixed ? MAQ_INK_FAINT : MAQ_INK_PLAIN);
        maq_table_cell(&t, "%s", r->axes[i].key);
        maq_table_cell(&t, "%s", r->axes[i].values);
        maq_table_cell(&t, "%s", r->axes[i].fixed ? "kept as the job has it" : "");
    }
    maq_html_section(h, "space", "What was searched");
    maq_html_fold(h, "Every key with its values");
    maq_html_table(h, &t, NULL);
    maq_html_end_fold(h);
    maq_html_end_section(h);
    maq_table_fini(&t);
}

enum maq_status maq_report_plan_html(char **out, const struct maq_report_plan *p, const struct maq_report_opts *opts,
                                     struct maq_diag *diag)
{
    struct maq_html h;
    struct maq_buf more;
    char *document = NULL, *names = more_of(p);
    enum maq_status status = maq_report_plan_json(&document, p, opts, diag);
    if (status != MAQ_OK) {
        free(names);
        return status;
    }
    maq_buf_init(&more, (size_t)64 * 1024 * 1024);
    maq_buf_adds(&more, names ? names : "");
    more.failed |= !names;
    free(names);
    maq_html_begin(&h, "plan", maq_job_get(p->open)->name);
    maq_html_job(&h, maq_job_get(p->open), false);
    put_verdict(&h, p);
    put_cards(&h, p);
    if (p->search->n_plans > 0) {
        put_found(&h, p);
        put_alternatives(&h, p);
        put_front(&h, p);
        put_winner(&h, p);
    } else {
        put_remedies(&h, p);
    }
    put_space(&h, p->search);
    status = maq_html_finish(out, &h, document, &more, diag);
    maq_buf_fini(&more);
    return status;
}
