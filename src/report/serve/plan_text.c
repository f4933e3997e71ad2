/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_text.c - the best deployment for a terminal: what was asked, the winner, how every other cut fared, throughput against latency.
 */
#include <stdlib.h>

#include "report/serve/plan_parts.h"
#include "report/serve/plan_words.h"

#define LABEL 12
#define CUTS_MOST 20u

static void put(void *user, const char *label, const char *text)
{
    maq_page_field(user, LABEL, label, text);
}

/* A line for each combination of degrees and types, with those limits under which it came furthest. */
static void put_cuts(struct maq_page *page, const struct maq_serve_search_result *r)
{
    struct maq_table t;
    uint32_t n, *cuts = maq_serve_cuts(&n, r);
    if (!cuts)
        return;
    maq_serve_ranked_table(&t, r, cuts, n);
    if (t.n_rows > 0) {
        maq_page_putf(page, MAQ_INK_HEAD,
                      "\nlimits other than the engine's own: requests and tokens of an iteration\n");
        maq_table_print(page, &t, 2);
    }
    maq_table_fini(&t);
    maq_serve_losers_table(&t, r, cuts, n, CUTS_MOST);
    if (t.n_rows > 0) {
        maq_buf_adds(&page->out, "\n");
        maq_table_print(page, &t, 2);
    }
    maq_table_fini(&t);
    if (n > CUTS_MOST)
        maq_page_putf(page, MAQ_INK_FAINT, "  of %u; --json has all\n", n);
    free(cuts);
}

static void put_front(struct maq_page *page, const struct maq_serve_search_result *r)
{
    struct maq_table t;
    maq_serve_front_table(&t, r);
    maq_page_putf(page, MAQ_INK_HEAD, "\nthroughput against latency, so many requests at a time in each replica\n");
    maq_table_print(page, &t, 2);
    maq_table_fini(&t);
}

enum maq_status maq_report_serve_plan_text(char **out, const struct maq_report_serve_plan *plan,
                                           const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_page page;
    const struct maq_lines to = {put, &page};
    maq_page_init(&page, opts);
    maq_serve_asked_lines(&to, plan);
    maq_serve_found_lines(&to, plan);
    put_cuts(&page, plan->search);
    if (plan->search->n_front > 0)
        put_front(&page, plan->search);
    return maq_page_finish(out, &page, diag);
}
