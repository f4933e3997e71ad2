/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mixed.c - the page of the best plan over several node groups: its stages, their time and memory, what bounds it, what each group does
 * alone, other plans. Its charts need nothing but the report's document.
 */
#include <stdlib.h>

#include "base/text.h"
#include "base/units.h"
#include "report/html/html.h"
#include "report/money.h"
#include "report/plan/mixed_parts.h"
#include "report/train/train_words.h"
#include "report/words.h"

static void put_fact(void *user, const char *label, const char *text)
{
    maq_html_fact(user, label, text);
}

static void put_cards(struct maq_html *h, const struct maq_report_mixed *p)
{
    const struct maq_mixed_search_result *r = p->search;
    const struct maq_workload *w = &maq_job_get(p->open)->workload;
    char value[64], note[192], a[48], b[48];
    uint32_t used = 0, all = 0;
    for (uint32_t g = 0; g < r->n_islands; g++) {
        used += r->islands[g].used;
        all += r->islands[g].nodes * r->islands[g].devices_per_node;
    }
    maq_html_cards(h);
    if (r->n_plans > 0) {
        const struct maq_mixed_search_plan *best = &r->plans[0];
        const struct maq_mixed_search_headroom room = maq_mixed_search_headroom(r, 0, p->open);
        const struct maq_money m = maq_money_of_mixed(maq_job_get(p->open), r);
        maq__snprintf(note, sizeof note,
                      best->uniform ? "one way for all stages" : "simulated pass by pass; %u stages, %u micro batches",
                      best->n_stages, best->microbatches);
        maq_html_card(h, "Step time of the best plan", maq_words_step(value, best->step_s), note);
        maq__snprintf(value, sizeof value, "%s tokens/s",
                      maq_words_rate(a, (double)w->gbs * (double)w->seq / best->step_s));
        maq__snprintf(note, sizeof note, "%u of %u GPUs used", used, all);
        maq_html_card(h, "Throughput", value, note);
        maq__snprintf(note, sizeof note, "of %s in stage %u; fits in %.0f of 100 runs",
                      maq_format_bytes(b, room.device_bytes), room.stage, 100 * room.fit_probability);
        maq_html_card_gauge(h, "Memory, where it is nearest to its end", maq_format_bytes(value, room.needed_bytes),
                            note, room.needed_bytes / room.device_bytes, false);
        if (m.per_hour > 0) {
            maq__snprintf(note, sizeof note, "for 10^12 tokens; %s an hour of the devices that it uses",
                          maq_words_usd(b, m.per_hour));
            maq_html_card(h, "Cost", maq_words_usd(a, m.per_trillion_tokens), note);
        }
    }
    maq_html_end_cards(h);
}

static void put_stages(struct maq_html *h, const struct maq_report_mixed *p)
{
    const struct maq_lines to = {put_fact, h};
    struct maq_table t;
    maq_mixed_stages_table(&t, p->search);
    maq_html_section(h, "stages", "The stages");
    maq_html_put(h, "<div class=\"pair\">\n");
    maq_html_chart(h, "stage-time", "bars", "Time of a micro batch in each stage, and on its way to the next one.");
    maq_html_chart(h, "stage-memory", "bars", "GiB that each stage needs, and what its devices have.");
    maq_html_put(h, "</div>\n<p></p>\n");
    maq_html_facts(h);
    maq_mixed_step_lines(&to, p);
    maq_html_end_facts(h);
    maq_html_table(h, &t, NULL);
    maq_table_fini(&t);
    if (p->search->plans[0].bottleneck_s > 0)
        maq_html_note(h, "Red: the stage that sets the pace.");
    maq_html_end_section(h);
}

static void put_islands(struct maq_html *h, const struct maq_report_mixed *p)
{
    const struct maq_lines to = {put_fact, h};
    struct maq_table t;
    maq_html_section(h, "islands", "The node groups");
    maq_html_facts(h);
    maq_mixed_island_lines(&to, p->search);
    maq_html_end_facts(h);
    maq_html_end_section(h);
    if (p->search->n_plans < 2 && p->n_planners == 0)
        return;
    maq_html_section(h, "others", "Other plans");
    if (p->search->n_plans >= 2) {
        maq_mixed_others_table(&t, p->search);
        maq_html_table(h, &t, "Of other micro batches or numbers of replicas");
        maq_table_fini(&t);
    }
    if (p->n_planners > 0) {
        maq_mixed_planners_table(&t, p);
        maq_html_table(h, &t, "What other planners would choose from, on the same costs");
        maq_table_fini(&t);
    }
    maq_html_end_section(h);
}

static void put_winner(struct maq_html *h, const struct maq_report_mixed *p)
{
    maq_html_section(h, "winner", "How to run it");
    maq_html_note(h, "--write FILE writes the plan: docs/plan-form.md, or a job where it is uniform.");
    if (p->document) {
        maq_html_put(h, "<pre>");
        maq_html_text(h, maq_str_of(p->document));
        maq_html_put(h, "</pre>\n");
    }
    if (p->words && p->words->text) {
        maq_html_note(h, "In the words of %s:", p->words->title);
        maq_html_put(h, "<pre>");
        maq_html_text(h, maq_str_of(p->words->text));
        maq_html_put(h, "</pre>\n");
    }
    maq_html_end_section(h);
}

static void put_remedies(struct maq_html *h, const struct maq_mixed_search_remedies *r)
{
    char bytes[32];
    if (!r)
        return;
    maq_html_section(h, "remedies", "It would fit with one of");
    if (r->as_predicted)
        maq_html_note(h, "--min-fit-probability 0: as predicted, in fewer runs");
    for (uint32_t i = 0; i < r->n_techniques; i++)
        maq_html_note(h, "%s--space %s", i > 0 ? "and " : "", r->techniques[i]);
    if (r->more_bytes > 0)
        maq_html_note(h, "%s more on every device", maq_format_bytes(bytes, r->more_bytes));
    for (uint32_t g = 0; g < r->n_islands; g++)
        if (r->islands[g].more_nodes > 0)
            maq_html_note(h, "%u more node%s of %s", r->islands[g].more_nodes, maq_words_s(r->islands[g].more_nodes),
                          r->islands[g].device);
    maq_html_end_section(h);
}

enum maq_status maq_report_mixed_html(char **out, const struct maq_report_mixed *plan,
                                      const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_html h;
    char *document = NULL;
    bool found = plan->search->n_plans > 0;
    enum maq_status status = maq_report_mixed_json(&document, plan, opts, diag);
    if (status != MAQ_OK)
        return status;
    maq_html_begin(&h, "plan", maq_job_get(plan->open)->name);
    maq_html_job(&h, maq_job_get(plan->open), false);
    if (!found)
        maq_html_verdict(&h, MAQ_HTML_BAD, "no plan fits on these node groups, together or alone");
    put_cards(&h, plan);
    if (found) {
        put_stages(&h, plan);
        put_islands(&h, plan);
        put_winner(&h, plan);
    } else {
        put_remedies(&h, plan->remedies);
    }
    return maq_html_finish(out, &h, document, NULL, diag);
}
