/* SPDX-License-Identifier: Apache-2.0 */
/* measured_text.c - composed pipelines for a terminal: their stages, what they take, how sure it is that nothing is better. */
#include <math.h>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "report/plan/measured_parts.h"
#include "report/words.h"

static void put_devices(struct maq_table *t, const struct maq_compose_problem *problem,
                        const struct maq_compose_stage *stage)
{
    struct maq_buf words;
    maq_buf_init(&words, 1 << 12);
    for (uint32_t p = 0; p < stage->n_parts; p++) {
        const struct maq_compose_part *part = &stage->parts[p];
        maq_buf_addf(&words, "%s%u x %s tp%u", p > 0 ? " + " : "", part->replicas, problem->pools[part->pool].device,
                     part->tp);
    }
    maq_table_cell(t, "%s", words.ptr ? words.ptr : "");
    maq_buf_fini(&words);
}

void maq_composed_stages_table(struct maq_table *t, const struct maq_compose_problem *problem,
                               const struct maq_compose_pipeline *p)
{
    static const struct maq_table_column columns[] = {
        {"stage", true, false}, {"layers", false, false}, {"runs on", false, true}, {"compute", true, false},
        {"hops", true, false},  {"reduce", true, false},  {"memory", true, false},  {"in flight", true, false}};
    char time[32];
    maq_table_init(t, columns, MAQ_COUNT(columns));
    t->wraps = true;
    for (uint32_t s = 0; s < p->n_stages; s++) {
        const struct maq_compose_stage *stage = &p->stages[s];
        bool slowest = stage->compute_s + stage->hop_s >= p->bottleneck_s * (1 - 1e-12);
        maq_table_row(t, slowest ? MAQ_INK_BAD : MAQ_INK_PLAIN);
        maq_table_cell(t, "%u%s", s, slowest ? " *" : "");
        maq_table_cell(t, "%u..%u", stage->first_layer, stage->first_layer + stage->layers - 1);
        put_devices(t, problem, stage);
        maq_table_cell(t, "%s", maq_format_time(time, stage->compute_s));
        maq_table_cell(t, "%s", maq_format_time(time, stage->hop_s));
        maq_table_cell(t, "%s", maq_format_time(time, stage->sync_s));
        maq_table_cell(t, "%.0f %%", 100 * stage->memory_share);
        maq_table_cell(t, "%u", stage->in_flight);
    }
}

void maq_composed_plan_words(struct maq_buf *b, const struct maq_compose_result *r, uint32_t i)
{
    const struct maq_compose_plan *plan = &r->plans[i];
    maq_buf_addf(b, "%.4f s", plan->step_s);
    if (i > 0)
        maq_buf_addf(b, " (+%.1f %%)", 100 * (plan->step_s / r->plans[0].step_s - 1));
    maq_buf_addf(b, ": micro batch %u; pipeline %.4f s, reduction %.4f s, update %.4f s", plan->micro_batch,
                 plan->run_s, plan->sync_s, plan->update_s);
}

void maq_composed_pipeline_words(struct maq_buf *b, const struct maq_compose_pipeline *p)
{
    maq_buf_addf(b, "%u pipeline%s of %u stage%s, %u micro batches each", p->count, maq_words_s(p->count), p->n_stages,
                 maq_words_s(p->n_stages), p->microbatches);
}

void maq_composed_title(struct maq_buf *b, const struct maq_compose_problem *problem)
{
    maq_buf_addf(b, "%s on", problem->model);
    for (uint32_t k = 0; k < problem->n_pools; k++)
        maq_buf_addf(b, "%s %u %s", k > 0 ? " +" : "", problem->pools[k].count, problem->pools[k].device);
}

void maq_composed_proof(struct maq_buf *b, const struct maq_compose_result *r)
{
    if (r->exact)
        maq_buf_adds(b, "proven: no plan of this class is faster (gap 0 %)");
    else
        maq_buf_addf(b, "proven: no plan of this class is under %.4f s (gap %.1f %%)", r->bound_s, 100 * r->gap);
}

static void put_plan(struct maq_page *page, const struct maq_compose_problem *problem,
                     const struct maq_compose_result *r, uint32_t i)
{
    const struct maq_compose_plan *plan = &r->plans[i];
    struct maq_table t;
    maq_page_putf(page, MAQ_INK_HEAD, "\n%u  ", i + 1);
    maq_composed_plan_words(&page->out, r, i);
    maq_buf_addc(&page->out, '\n');
    for (uint32_t p = 0; p < plan->n_pipelines; p++) {
        maq_buf_adds(&page->out, "  ");
        maq_composed_pipeline_words(&page->out, &plan->pipelines[p]);
        maq_buf_addc(&page->out, '\n');
        maq_composed_stages_table(&t, problem, &plan->pipelines[p]);
        maq_table_print(page, &t, 2);
        maq_table_fini(&t);
    }
}

void maq_composed_idle_lines(const struct maq_lines *to, const struct maq_compose_problem *problem,
                             const struct maq_compose_plan *plan)
{
    char text[160];
    for (uint32_t k = 0; k < problem->n_pools; k++) {
        uint32_t used = 0;
        for (uint32_t p = 0; p < plan->n_pipelines; p++)
            for (uint32_t s = 0; s < plan->pipelines[p].n_stages; s++)
                for (uint32_t i = 0; i < plan->pipelines[p].stages[s].n_parts; i++) {
                    const struct maq_compose_part *part = &plan->pipelines[p].stages[s].parts[i];
                    used += part->pool == k ? part->tp * part->replicas : 0;
                }
        if (used >= problem->pools[k].count)
            continue;
        maq__snprintf(text, sizeof text, "%u of %u %s", problem->pools[k].count - used, problem->pools[k].count,
                      problem->pools[k].device);
        to->put(to->user, "idle", text);
    }
}

static void put_idle(void *user, const char *label, const char *text)
{
    maq_page_putf(user, MAQ_INK_FAINT, "%s: %s\n", label, text);
}

enum maq_status maq_report_compose_text(char **out, const struct maq_compose_problem *problem,
                                        const struct maq_compose_result *r, const struct maq_report_opts *opts,
                                        struct maq_diag *diag)
{
    struct maq_page page;
    const struct maq_lines idle = {put_idle, &page};
    maq_page_init(&page, opts);
    maq_composed_title(&page.out, problem);
    maq_page_putf(&page, MAQ_INK_PLAIN, "; plans of class %s\n", maq_compose_class_name(r->of));
    for (uint32_t i = 0; i < r->n_plans; i++)
        put_plan(&page, problem, r, i);
    if (r->n_plans == 0) {
        maq_page_putf(&page, MAQ_INK_BAD, "\nno plan of this class fits\n");
    } else {
        maq_page_putf(&page, MAQ_INK_FAINT, "\n" MAQ_COMPOSED_SIGNS "\n");
        maq_composed_idle_lines(&idle, problem, &r->plans[0]);
        maq_composed_proof(&page.out, r);
        maq_buf_addc(&page.out, '\n');
    }
    return maq_page_finish(out, &page, diag);
}
