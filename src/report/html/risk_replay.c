/* SPDX-License-Identifier: Apache-2.0 */
/* risk_replay.c - the page of a recorded job that was run again: what a step takes without stragglers, and which they are. */
#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "report/html/html.h"
#include "report/risk/stragglers_parts.h"
#include "report/words.h"

#define ROWS 64u /* data-parallel ranks, and workers, of the table */

static void put_fact(void *user, const char *label, const char *text)
{
    maq_html_fact(user, label, text);
}

static void put_cards(struct maq_html *h, const struct maq_risk_replayed *r)
{
    char value[48], note[128], a[32];
    maq_html_cards(h);
    maq__snprintf(value, sizeof value, "%.4f", r->slowdown);
    maq__snprintf(note, sizeof note, "times as long as where operations of a kind all last the same (%s)",
                  maq_format_time(a, r->ideal_s));
    maq_html_card(h, "Slowdown", value, note);
    maq__snprintf(note, sizeof note, "mean of %s; recorded %s", maq_words_integer(value, r->n_steps),
                  maq_format_time(a, r->recorded_s));
    maq_html_card(h, "Step, replayed", maq_format_time(value, r->step_mean_s), note);
    maq__snprintf(value, sizeof value, "%.1f %%", 100 * r->worker_share);
    maq_html_card_gauge(h, "Slowest workers", value, "of the loss goes with the slowest 3 % of them", r->worker_share,
                        false);
    maq__snprintf(value, sizeof value, "%.1f %%", 100 * r->last_stage_share);
    maq_html_card_gauge(h, "Last stage", value, "of the loss goes with it", r->last_stage_share, false);
    maq_html_end_cards(h);
}

enum maq_status maq_report_risk_replay_html(char **out, const struct maq_risk_replayed *r,
                                            const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_html h;
    struct maq_table t;
    const struct maq_lines to = {put_fact, &h};
    char title[96], n[32], *document;
    MAQ_TRY(maq_report_risk_replay_json(&document, r, opts, diag));
    maq__snprintf(title, sizeof title, "%s recorded steps of dp%u pp%u", maq_words_integer(n, r->n_steps), r->dp,
                  r->pp);
    maq_html_begin(&h, "risk replay", title);
    put_cards(&h, r);
    maq_html_section(&h, "steps", "Steps");
    maq_html_facts(&h);
    maq_stragglers_lines(&to, r);
    maq_html_end_facts(&h);
    maq_html_chart(&h, "step-chart", "short", "Time of each step, replayed. Dashed: without stragglers.");
    maq_html_end_section(&h);
    maq_html_section(&h, "stragglers", "Who makes it slow");
    maq_html_chart(
        &h, "worker-chart", "short",
        "How many times as long a step takes when this worker alone is as slow as it is, stage by stage over "
        "the data-parallel ranks.");
    maq_stragglers_table(&t, r, ROWS);
    maq_html_table(&h, &t, "Slowdown by each of them alone, the slowest first");
    maq_table_fini(&t);
    if (r->workers_estimated)
        maq_html_note(&h, MAQ_STRAGGLERS_ESTIMATED);
    maq_html_end_section(&h);
    return maq_html_finish(out, &h, document, NULL, diag);
}
