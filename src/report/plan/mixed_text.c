/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mixed_text.c - the best plan over several node groups for a terminal: its stages, what bounds it, how sure it is that nothing is
 * better, and what each group does alone.
 */
#include "base/units.h"
#include "report/job_text.h"
#include "report/plan/mixed_parts.h"

static void put(void *user, const char *label, const char *text)
{
    maq_page_field(user, MAQ_JOB_LABEL, label, text);
}

static void put_table(struct maq_page *page, struct maq_table *table, size_t indent)
{
    maq_table_print(page, table, indent);
    maq_table_fini(table);
}

static void put_others(struct maq_page *page, const struct maq_report_mixed *p)
{
    struct maq_table table;
    if (p->search->n_plans >= 2) {
        maq_buf_adds(&page->out, "\n");
        maq_mixed_others_table(&table, p->search);
        put_table(page, &table, 0);
    }
    if (p->n_planners > 0) {
        maq_buf_adds(&page->out, "\n");
        maq_page_putf(page, MAQ_INK_HEAD, "What others would choose from, on the same costs");
        maq_buf_adds(&page->out, "\n");
        maq_mixed_planners_table(&table, p);
        put_table(page, &table, 2);
    }
}

static void put_found(struct maq_page *page, const struct maq_report_mixed *p)
{
    const struct maq_lines to = {put, page};
    struct maq_table table;
    maq_mixed_stages_table(&table, p->search);
    maq_buf_adds(&page->out, "\n");
    put_table(page, &table, 0);
    maq_buf_adds(&page->out, "\n");
    maq_mixed_step_lines(&to, p);
    maq_buf_adds(&page->out, "\n");
    maq_mixed_island_lines(&to, p->search);
    put_others(page, p);
    maq_page_put_winner(page, p->document, p->words, NULL);
}

static void put_remedies(struct maq_page *page, const struct maq_mixed_search_remedies *r)
{
    char bytes[32];
    bool any = r && r->as_predicted;
    if (!r)
        return;
    maq_page_putf(page, MAQ_INK_PLAIN, "it would fit with one of\n");
    if (r->as_predicted)
        maq_page_putf(page, MAQ_INK_PLAIN, "  --min-fit-probability 0: as predicted, in fewer runs\n");
    for (uint32_t i = 0; i < r->n_techniques; i++)
        maq_page_putf(page, MAQ_INK_PLAIN, "  %s--space %s\n", i > 0 ? "and " : "", r->techniques[i]);
    if (r->more_bytes > 0)
        maq_page_putf(page, MAQ_INK_PLAIN, "  %s more on every device\n", maq_format_bytes(bytes, r->more_bytes));
    for (uint32_t g = 0; g < r->n_islands; g++) {
        if (r->islands[g].more_nodes > 0)
            maq_page_putf(page, MAQ_INK_PLAIN, "  %u more node%s of %s\n", r->islands[g].more_nodes,
                          r->islands[g].more_nodes == 1 ? "" : "s", r->islands[g].device);
        any = any || r->islands[g].more_nodes > 0;
    }
    if (!any && r->more_bytes <= 0 && r->n_techniques == 0)
        maq_page_putf(page, MAQ_INK_PLAIN, "  nothing that was tried: a tebibyte more on each, 64 times the nodes\n");
}

enum maq_status maq_report_mixed_text(char **out, const struct maq_report_mixed *p, const struct maq_report_opts *opts,
                                      struct maq_diag *diag)
{
    struct maq_page page;
    maq_page_init(&page, opts);
    maq_page_open_job(&page, maq_job_get(p->open));
    if (p->search->n_plans > 0) {
        put_found(&page, p);
    } else {
        maq_buf_adds(&page.out, "\n");
        maq_page_putf(&page, MAQ_INK_BAD, "no plan fits on these node groups, together or alone\n");
        put_remedies(&page, p->remedies);
    }
    return maq_page_finish(out, &page, diag);
}
