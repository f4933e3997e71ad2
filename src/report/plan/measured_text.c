/* SPDX-License-Identifier: Apache-2.0 */
/* measured_text.c - composed pipelines for a terminal: their stages, what they take, how sure it is that nothing is better. */
#include <math.h>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "report/page.h"
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

static void put_stages(struct maq_page *page, const struct maq_compose_problem *problem,
                       const struct maq_compose_pipeline *p)
{
    static const struct maq_table_column columns[] = {
        {"stage", true, false}, {"layers", false, false}, {"runs on", false, true}, {"compute", true, false},
        {"hops", true, false},  {"reduce", true, false},  {"memory", true, false},  {"in flight", true, false}};
    struct maq_table t;
    char time[32];
    maq_table_init(&t, columns, MAQ_COUNT(columns));
    t.wraps = true;
    for (uint32_t s = 0; s < p->n_stages; s++) {
        const struct maq_compose_stage *stage = &p->stages[s];
        bool slowest = stage->compute_s + stage->hop_s >= p->bottleneck_s * (1 - 1e-12);
        maq_table_row(&t, slowest ? MAQ_INK_BAD : MAQ_INK_PLAIN);
        maq_table_cell(&t, "%u%s", s, slowest ? " *" : "");
        maq_table_cell(&t, "%u..%u", stage->first_layer, stage->first_layer + stage->layers - 1);
        put_devices(&t, problem, stage);
        maq_table_cell(&t, "%s", maq_format_time(time, stage->compute_s));
        maq_table_cell(&t, "%s", maq_format_time(time, stage->hop_s));
        maq_table_cell(&t, "%s", maq_format_time(time, stage->sync_s));
        maq_table_cell(&t, "%.0f %%", 100 * stage->memory_share);
        maq_table_cell(&t, "%u", stage->in_flight);
    }
    maq_table_print(page, &t, 2);
    maq_table_fini(&t);
}

static void put_plan(struct maq_page *page, const struct maq_compose_problem *problem,
                     const struct maq_compose_result *r, uint32_t i)
{
    const struct maq_compose_plan *plan = &r->plans[i];
    maq_page_putf(page, MAQ_INK_HEAD, "\n%u  %.4f s", i + 1, plan->step_s);
    if (i > 0)
        maq_page_putf(page, MAQ_INK_PLAIN, " (+%.1f %%)", 100 * (plan->step_s / r->plans[0].step_s - 1));
    maq_page_putf(page, MAQ_INK_PLAIN, ": micro batch %u; pipeline %.4f s, reduction %.4f s, update %.4f s\n",
                  plan->micro_batch, plan->run_s, plan->sync_s, plan->update_s);
    for (uint32_t p = 0; p < plan->n_pipelines; p++) {
        const struct maq_compose_pipeline *pipe = &plan->pipelines[p];
        maq_page_putf(page, MAQ_INK_PLAIN, "  %u pipeline%s of %u stage%s, %u micro batches each\n", pipe->count,
                      pipe->count == 1 ? "" : "s", pipe->n_stages, pipe->n_stages == 1 ? "" : "s", pipe->microbatches);
        put_stages(page, problem, pipe);
    }
}

/* Devices of the problem that the best plan does not use. */
static void put_idle(struct maq_page *page, const struct maq_compose_problem *problem,
                     const struct maq_compose_plan *plan)
{
    for (uint32_t k = 0; k < problem->n_pools; k++) {
        uint32_t used = 0;
        for (uint32_t p = 0; p < plan->n_pipelines; p++)
            for (uint32_t s = 0; s < plan->pipelines[p].n_stages; s++)
                for (uint32_t i = 0; i < plan->pipelines[p].stages[s].n_parts; i++) {
                    const struct maq_compose_part *part = &plan->pipelines[p].stages[s].parts[i];
                    used += part->pool == k ? part->tp * part->replicas : 0;
                }
        if (used < problem->pools[k].count)
            maq_page_putf(page, MAQ_INK_FAINT, "idle: %u of %u %s\n", problem->pools[k].count - used,
                          problem->pools[k].count, problem->pools[k].device);
    }
}

enum maq_status maq_report_compose_text(char **out, const struct maq_compose_problem *problem,
                                        const struct maq_compose_result *r, const struct maq_report_opts *opts,
                                        struct maq_diag *diag)
{
    struct maq_page page;
    maq_page_init(&page, opts);
    maq_page_putf(&page, MAQ_INK_TITLE, "%s on", problem->model);
    for (uint32_t k = 0; k < problem->n_pools; k++)
        maq_page_putf(&page, MAQ_INK_TITLE, "%s %u %s", k > 0 ? " +" : "", problem->pools[k].count,
                      problem->pools[k].device);
    maq_page_putf(&page, MAQ_INK_PLAIN, "; plans of class %s\n", maq_compose_class_name(r->of));
    for (uint32_t i = 0; i < r->n_plans; i++)
        put_plan(&page, problem, r, i);
    if (r->n_plans == 0) {
        maq_page_putf(&page, MAQ_INK_BAD, "\nno plan of this class fits\n");
    } else {
        maq_page_putf(&page, MAQ_INK_FAINT, "\n*: the slowest stage; memory: of the fullest device\n");
        put_idle(&page, problem, &r->plans[0]);
        if (r->exact)
            maq_page_putf(&page, MAQ_INK_PLAIN, "proven: no plan of this class is faster (gap 0 %%)\n");
        else
            maq_page_putf(&page, MAQ_INK_PLAIN, "proven: no plan of this class is under %.4f s (gap %.1f %%)\n",
                          r->bound_s, 100 * r->gap);
    }
    return maq_page_finish(out, &page, diag);
}
