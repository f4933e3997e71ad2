/* SPDX-License-Identifier: Apache-2.0 */
/*
 * predict.c - the page of a mixed plan on the node groups of a job: what a step takes, the time and the memory of its stages. Its charts need
 * nothing but the report's document.
 */
#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "report/html/html.h"
#include "report/plan/predict_parts.h"
#include "report/train/train_words.h"
#include "report/words.h"

static void put_fact(void *user, const char *label, const char *text)
{
    maq_html_fact(user, label, text);
}

static void put_cards(struct maq_html *h, const struct maq_report_placed *r)
{
    const struct maq_mixed_placed *p = r->placed;
    const struct maq_mixed_placed_stage *slow = &p->stages[p->slowest], *full = &p->stages[0];
    const struct maq_workload *w = &maq_job_get(r->open)->workload;
    char value[64], note[192], a[48], b[48];
    for (uint32_t i = 1; i < p->n_stages; i++)
        if (p->stages[i].memory_bytes * full->capacity_bytes > full->memory_bytes * p->stages[i].capacity_bytes)
            full = &p->stages[i];
    maq_html_cards(h);
    maq__snprintf(note, sizeof note, "%s to the last gradient, %s for norm and update",
                  maq_format_time(a, p->pipeline_s), maq_format_time(b, p->update_s));
    maq_html_card(h, "Step time", maq_format_time(value, p->step_s), note);
    maq__snprintf(value, sizeof value, "%s tokens/s", maq_words_rate(a, (double)w->gbs * (double)w->seq / p->step_s));
    maq__snprintf(note, sizeof note, "%s sequences of %s tokens a step", maq_words_integer(a, w->gbs),
                  maq_words_integer(b, w->seq));
    maq_html_card(h, "Throughput", value, note);
    maq__snprintf(note, sizeof note, "of %s in stage %u", maq_format_bytes(a, full->capacity_bytes), full->stage);
    maq_html_card_gauge(h, "Memory, where it is nearest to its end", maq_format_bytes(value, full->memory_bytes), note,
                        full->memory_bytes / full->capacity_bytes, !p->fits);
    maq__snprintf(value, sizeof value, "stage %u", slow->stage);
    maq__snprintf(note, sizeof note, "idle for %.0f %%", 100 * slow->idle);
    maq_html_card(h, "Busiest", value, note);
    maq_html_end_cards(h);
}

enum maq_status maq_report_placed_html(char **out, const struct maq_report_placed *r,
                                       const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_html h;
    const struct maq_lines to = {put_fact, &h};
    struct maq_table t;
    char *document, words[512];
    MAQ_TRY(maq_report_placed_json(&document, r, opts, diag));
    maq_html_begin(&h, "plan", maq_job_get(r->open)->name);
    maq_html_job(&h, maq_job_get(r->open), false);
    maq_placed_plan_words(words, r);
    maq_html_facts(&h);
    maq_html_fact(&h, "plan", words);
    maq_html_end_facts(&h);
    if (!r->placed->fits)
        maq_html_verdict(&h, MAQ_HTML_BAD, "the plan does not fit on these node groups");
    put_cards(&h, r);
    maq_html_section(&h, "stages", "The stages");
    maq_html_put(&h, "<div class=\"pair\">\n");
    maq_html_chart(
        &h, "stage-time", "bars",
        "Passes of a micro batch in each stage, forward and, paler, backward, and its way from the stage before.");
    maq_html_chart(&h, "stage-memory", "bars",
                   "GiB that each stage needs, red where its devices have less, and what they have.");
    maq_html_put(&h, "</div>\n<p></p>\n");
    maq_html_facts(&h);
    maq_placed_step_lines(&to, r);
    maq_html_end_facts(&h);
    maq_placed_stages_table(&t, r);
    maq_html_table(&h, &t, "Replicas that are alike are one row for each stage");
    maq_table_fini(&t);
    maq_html_note(&h, "Red: the busiest stage, and those that do not fit. Memory in GiB.");
    maq_html_end_section(&h);
    return maq_html_finish(out, &h, document, NULL, diag);
}
