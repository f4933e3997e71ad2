/* SPDX-License-Identifier: Apache-2.0 */
/* composed.c - the page of pipelines composed from a profile: the best plan, its stages, other plans, what is proven. */
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "report/html/html.h"
#include "report/plan/measured_parts.h"
#include "report/words.h"

static void put_fact(void *user, const char *label, const char *text)
{
    maq_html_fact(user, label, text);
}

static void put_cards(struct maq_html *h, const struct maq_compose_result *r)
{
    char value[48], note[128], a[32], b[32];
    maq_html_cards(h);
    if (r->n_plans > 0) {
        const struct maq_compose_plan *best = &r->plans[0];
        maq__snprintf(value, sizeof value, "%.4f s", best->step_s);
        maq__snprintf(note, sizeof note, "pipeline %s, reduction %s", maq_format_time(a, best->run_s),
                      maq_format_time(b, best->sync_s));
        maq_html_card(h, "Step time", value, note);
        maq__snprintf(value, sizeof value, "%.1f %%", 100 * r->gap);
        maq__snprintf(note, sizeof note, "no plan of this class is under %.4f s", r->bound_s);
        maq_html_card(h, "Gap", value, note);
        maq__snprintf(note, sizeof note, "of %u pipeline%s", best->n_pipelines, maq_words_s(best->n_pipelines));
        maq_html_card(h, "Micro batch", maq_words_integer(value, best->micro_batch), note);
    }
    maq_html_end_cards(h);
}

static void put_plan(struct maq_html *h, const struct maq_compose_problem *problem, const struct maq_compose_result *r,
                     uint32_t i)
{
    const struct maq_compose_plan *plan = &r->plans[i];
    struct maq_buf words;
    struct maq_table t;
    char id[32];
    maq_buf_init(&words, 1 << 12);
    maq_buf_addf(&words, i == 0 ? "The best plan: " : "%u: ", i + 1);
    maq_composed_plan_words(&words, r, i);
    maq__snprintf(id, sizeof id, "plan-%u", i + 1);
    maq_html_section(h, id, words.ptr ? words.ptr : "");
    if (i == 0)
        maq_html_chart(h, "stage-chart", "bars", "What a micro batch takes on each stage: compute and hops.");
    for (uint32_t p = 0; p < plan->n_pipelines; p++) {
        words.len = 0;
        maq_composed_pipeline_words(&words, &plan->pipelines[p]);
        maq_composed_stages_table(&t, problem, &plan->pipelines[p]);
        maq_html_table(h, &t, words.ptr ? words.ptr : "");
        maq_table_fini(&t);
    }
    h->out.failed |= words.failed;
    maq_buf_fini(&words);
    maq_html_note(h, MAQ_COMPOSED_SIGNS);
    maq_html_end_section(h);
}

enum maq_status maq_report_compose_html(char **out, const struct maq_compose_problem *problem,
                                        const struct maq_compose_result *r, const struct maq_report_opts *opts,
                                        struct maq_diag *diag)
{
    struct maq_html h;
    struct maq_buf words;
    const struct maq_lines idle = {put_fact, &h};
    char *document;
    MAQ_TRY(maq_report_compose_json(&document, problem, r, opts, diag));
    maq_buf_init(&words, 1 << 12);
    maq_composed_title(&words, problem);
    maq_html_begin(&h, "plan", words.ptr ? words.ptr : "");
    maq_html_facts(&h);
    maq_html_fact(&h, "class", maq_compose_class_name(r->of));
    maq_html_fact(&h, "profile", problem->folder);
    if (r->n_plans > 0)
        maq_composed_idle_lines(&idle, problem, &r->plans[0]);
    maq_html_end_facts(&h);
    words.len = 0;
    if (r->n_plans > 0)
        maq_composed_proof(&words, r);
    else
        maq_buf_adds(&words, "no plan of this class fits");
    maq_html_verdict(&h,
                     r->n_plans == 0 ? MAQ_HTML_BAD
                     : r->exact      ? MAQ_HTML_GOOD
                                     : MAQ_HTML_WARN,
                     words.ptr ? words.ptr : "");
    put_cards(&h, r);
    for (uint32_t i = 0; i < r->n_plans; i++)
        put_plan(&h, problem, r, i);
    h.out.failed |= words.failed;
    maq_buf_fini(&words);
    return maq_html_finish(out, &h, document, NULL, diag);
}
