/* SPDX-License-Identifier: Apache-2.0 */
/*
 * external.c - the page of plans composed of what a parallelizer answers: the best one, its stages, how sure it is, the parallelizer's own
 * words, plans of other waves, what was asked. Its charts need nothing but the report's document.
 */
#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "report/html/html.h"
#include "report/plan/external_parts.h"
#include "report/train/train_words.h"
#include "report/words.h"

static void put_fact(void *user, const char *label, const char *text)
{
    maq_html_fact(user, label, text);
}

/* The stage whose memory is nearest to what its devices have. */
static const struct maq_slices_stage *fullest(const struct maq_slices_plan *p)
{
    const struct maq_slices_stage *full = &p->stages[0];
    for (uint32_t i = 1; i < p->n_stages; i++)
        if (p->stages[i].memory_bytes * full->capacity_bytes > full->memory_bytes * p->stages[i].capacity_bytes)
            full = &p->stages[i];
    return full;
}

static void put_cards(struct maq_html *h, const struct maq_report_slices *plan)
{
    const struct maq_slices_result *r = plan->search;
    const struct maq_workload *w = &maq_job_get(plan->open)->workload;
    char value[64], note[192], a[48];
    uint32_t used = 0, all = 0;
    for (uint32_t g = 0; g < r->n_islands; g++) {
        used += r->islands[g].used;
        all += r->islands[g].nodes * r->islands[g].devices_per_node;
    }
    maq_html_cards(h);
    if (r->n_plans > 0) {
        const struct maq_slices_plan *best = &r->plans[0];
        const struct maq_slices_stage *full = fullest(best);
        maq__snprintf(note, sizeof note, "%u wave%s of %u sample%s, %u stage%s", best->waves, maq_words_s(best->waves),
                      best->wave_samples, maq_words_s(best->wave_samples), best->n_stages, maq_words_s(best->n_stages));
        maq_html_card(h, "Step time of the best plan", maq_words_seconds(value, best->step_s), note);
        maq__snprintf(value, sizeof value, "%s tokens/s",
                      maq_words_rate(a, (double)w->gbs * (double)w->seq / best->step_s));
        maq__snprintf(note, sizeof note, "%u of %u GPUs used", used, all);
        maq_html_card(h, "Throughput", value, note);
        maq__snprintf(note, sizeof note, "of %s in stage %u", maq_format_bytes(a, full->capacity_bytes),
                      (uint32_t)(full - best->stages));
        maq_html_card_gauge(h, "Memory, where it is nearest to its end", maq_format_bytes(value, full->memory_bytes),
                            note, full->memory_bytes / full->capacity_bytes, false);
        maq__snprintf(value, sizeof value, "%.1f %%", 100 * r->gap);
        maq__snprintf(note, sizeof note, "no pipeline of the parallelizer's plans is under %s",
                      maq_words_seconds(a, r->bound_s));
        maq_html_card(h, "Gap", value, note);
    }
    maq_html_end_cards(h);
}

static void put_best(struct maq_html *h, const struct maq_slices_result *r)
{
    const struct maq_lines to = {put_fact, h};
    struct maq_table t;
    maq_html_section(h, "stages", "The stages");
    maq_html_put(h, "<div class=\"pair\">\n");
    maq_html_chart(h, "stage-time", "bars", "Time of a wave in each stage, and on its way to the next one.");
    maq_html_chart(h, "stage-memory", "bars", "GiB that each stage needs, and what its devices have.");
    maq_html_put(h, "</div>\n<p></p>\n");
    maq_html_facts(h);
    maq_external_step_lines(&to, r);
    maq_html_end_facts(h);
    maq_external_stages_table(&t, r);
    maq_html_table(h, &t, NULL);
    maq_table_fini(&t);
    maq_html_note(h, "Red: the stage that sets the pace. ?: the parallelizer does not say.");
    maq_external_pieces_table(&t, r);
    maq_html_table(h, &t, "Its pieces: a plan of the parallelizer each, for layers on an island");
    maq_table_fini(&t);
    maq_html_end_section(h);
}

/* Each of another wave; the list of the document. */
static void put_others(struct maq_html *h, const struct maq_slices_result *r)
{
    static const struct maq_table_column columns[] = {{"", true, false},
                                                      {"waves", true, false},
                                                      {"samples of a wave", true, false},
                                                      {"stages", true, false},
                                                      {"slowest stage", true, false},
                                                      {"step", true, false},
                                                      {"over the best", true, false}};
    struct maq_table t;
    char pace[32], step[48];
    if (r->n_plans < 2)
        return;
    maq_table_init(&t, columns, MAQ_COUNT(columns));
    for (uint32_t i = 0; i < r->n_plans; i++) {
        const struct maq_slices_plan *p = &r->plans[i];
        maq_table_row(&t, i == 0 ? MAQ_INK_GOOD : MAQ_INK_PLAIN);
        maq_table_cell(&t, "%u", i + 1);
        maq_table_cell(&t, "%u", p->waves);
        maq_table_cell(&t, "%u", p->wave_samples);
        maq_table_cell(&t, "%u", p->n_stages);
        maq_table_cell(&t, "%s", maq_format_time(pace, p->bottleneck_s));
        maq_table_cell(&t, "%s", maq_words_seconds(step, p->step_s));
        maq_table_cell(&t, "%+.1f %%", 100 * (p->step_s / r->plans[0].step_s - 1));
    }
    maq_html_section(h, "others", "Plans of other waves");
    maq_html_table(h, &t, NULL);
    maq_table_fini(&t);
    maq_html_end_section(h);
}

static void put_asked(struct maq_html *h, const struct maq_slices_result *r)
{
    const struct maq_lines to = {put_fact, h};
    maq_html_section(h, "asked", "What was asked");
    maq_html_facts(h);
    if (r->n_plans > 0)
        maq_external_island_lines(&to, r);
    maq_external_call_lines(&to, r);
    maq_html_end_facts(h);
    maq_html_end_section(h);
}

enum maq_status maq_report_slices_html(char **out, const struct maq_report_slices *plan,
                                       const struct maq_report_opts *opts, struct maq_diag *diag)
{
    const struct maq_slices_result *r = plan->search;
    struct maq_html h;
    char *document;
    MAQ_TRY(maq_report_slices_json(&document, plan, opts, diag));
    maq_html_begin(&h, "plan", maq_job_get(plan->open)->name);
    maq_html_job(&h, maq_job_get(plan->open), false);
    if (r->n_plans == 0)
        maq_html_verdict(&h, MAQ_HTML_BAD, "no pipeline of the parallelizer's plans fits on these node groups");
    else
        maq_html_verdict(&h, r->exact ? MAQ_HTML_GOOD : MAQ_HTML_WARN,
                         r->exact ? "no other pipeline of the parallelizer's plans is faster"
                                  : "a pipeline of the parallelizer's plans may be faster: the search was ended");
    put_cards(&h, plan);
    if (r->n_plans > 0) {
        put_best(&h, r);
        put_others(&h, r);
    }
    put_asked(&h, r);
    return maq_html_finish(out, &h, document, NULL, diag);
}
