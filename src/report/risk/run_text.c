/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_text.c - when a run will be done, for a terminal: dates with their intervals, where the time goes, what interrupts it, what could be
 * changed, and what was assumed.
 */
#include "report/risk/run_parts.h"
#include "report/words.h"

#define LABEL 12

static void put(void *user, const char *label, const char *text)
{
    maq_page_field(user, LABEL, label, text);
}

static void put_job(struct maq_page *page, const struct maq_report_run *r)
{
    struct maq_arena arena;
    struct maq_buf line;
    maq_arena_init(&arena, 0);
    maq_page_putf(page, MAQ_INK_TITLE, "%.512s", maq_text_clean(&arena, r->job->name));
    maq_buf_adds(&page->out, "\n\n");
    maq_buf_init(&line, 1 << 16);
    maq_words_cluster(&line, &r->job->cluster);
    maq_page_field(page, LABEL, "cluster", maq_text_clean(&arena, line.ptr ? line.ptr : ""));
    maq_buf_fini(&line);
    maq_arena_fini(&arena);
}

static void put_table(struct maq_page *page, struct maq_table *t)
{
    maq_table_print(page, t, 0);
    maq_table_fini(t);
}

static void put_tables(struct maq_page *page, const struct maq_report_run *r)
{
    struct maq_table t;
    maq_page_putf(page, MAQ_INK_HEAD, "\nWhere the time goes\n");
    maq_run_buckets_table(&t, r->run);
    put_table(page, &t);
    if (r->run->n_causes > 0 && r->run->failures > 0) {
        maq_page_putf(page, MAQ_INK_HEAD, "\nWhat interrupts it\n");
        maq_run_causes_table(&t, r->run);
        put_table(page, &t);
    }
    if (r->what_if) {
        maq_page_putf(page, MAQ_INK_HEAD, "\nWhat if: %s\n", maq_run_what_name(r->what_if->what));
        maq_run_variants_table(&t, r->what_if);
        put_table(page, &t);
    }
}

static void put_notes(struct maq_page *page, const struct maq_report_run *r)
{
    char n[32];
    maq_page_putf(page, MAQ_INK_FAINT, "\n%s runs simulated, seed %llu; intervals are of order statistics\n",
                  maq_words_integer(n, r->run->opts.replicas), (unsigned long long)r->run->opts.seed);
    if (r->train && r->run->opts.step_sigma == 0)
        maq_page_putf(page, MAQ_INK_FAINT,
                      "the step time is predicted within %.0f %% (one sd); --step-error puts that into the dates, "
                      "--step-time replaces it\n",
                      100 * r->train->error);
    if (r->failures->source)
        maq_page_field(page, LABEL, "source", r->failures->source);
}

enum maq_status maq_report_run_text(char **out, const struct maq_report_run *run, const struct maq_report_opts *opts,
                                    struct maq_diag *diag)
{
    struct maq_page page;
    const struct maq_lines to = {put, &page};
    struct maq_table quantiles;
    maq_page_init(&page, opts);
    put_job(&page, run);
    maq_run_asked_lines(&to, run);
    maq_page_putf(&page, MAQ_INK_PLAIN, "\n");
    maq_run_quantiles_table(&quantiles, run);
    put_table(&page, &quantiles);
    maq_page_putf(&page, MAQ_INK_PLAIN, "\n");
    maq_run_figure_lines(&to, run);
    put_tables(&page, run);
    put_notes(&page, run);
    return maq_page_finish(out, &page, diag);
}
