/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.c - a deployment and what became of its requests, for a terminal: what it is, does it fit, latencies, throughput, where the time
 * goes.
 */
#include "base/text.h"
#include "maquette/report_serve.h"
#include "report/page.h"
#include "report/serve/lines.h"
#include "report/words.h"

#define LABEL 12
#define BAR 30

static void put(void *user, const char *label, const char *text)
{
    maq_page_field(user, LABEL, label, text);
}

static void put_latencies(struct maq_page *page, const struct maq_serve_result *r)
{
    struct maq_table t;
    maq_serve_latency_table(&t, r);
    maq_table_print(page, &t, 2);
    maq_table_fini(&t);
}

static void put_parts(struct maq_page *page, const struct maq_serve_result *r)
{
    maq_page_putf(page, MAQ_INK_HEAD, "where the time of an iteration goes\n");
    for (int i = 0; i < MAQ_SERVE_PART_COUNT; i++) {
        double share = r->busy_s > 0 ? r->part_s[i] / r->busy_s : 0;
        if (r->part_s[i] <= 0)
            continue;
        maq_page_putf(page, MAQ_INK_PLAIN, "  %-14s %8.3f ms %5.1f %%  ", maq_serve_part_name((enum maq_serve_part)i),
                      r->iterations ? r->part_s[i] / (double)r->iterations * 1e3 : 0, 100 * share);
        maq_page_bar(page, share, BAR);
        maq_buf_adds(&page->out, "\n");
    }
}

enum maq_status maq_report_serve_text(char **out, const struct maq_serve_result *r, const struct maq_report_opts *opts,
                                      struct maq_diag *diag)
{
    struct maq_page page;
    const struct maq_lines to = {put, &page};
    maq_page_init(&page, opts);
    maq_serve_deployment_lines(&to, r);
    maq_serve_outcome_lines(&to, r);
    if (r->finished > 0) {
        maq_buf_adds(&page.out, "\n");
        put_latencies(&page, r);
        maq_buf_adds(&page.out, "\n");
        put_parts(&page, r);
    }
    return maq_page_finish(out, &page, diag);
}

/* ---- one batch ---- */

static void put_batch_parts(struct maq_page *page, const char *title, const double part_s[MAQ_SERVE_PART_COUNT],
                            double passes)
{
    double sum = 0;
    for (int i = 0; i < MAQ_SERVE_PART_COUNT; i++)
        sum += part_s[i];
    maq_page_putf(page, MAQ_INK_HEAD, "%s\n", title);
    for (int i = 0; i < MAQ_SERVE_PART_COUNT; i++) {
        if (part_s[i] <= 0)
            continue;
        maq_page_putf(page, MAQ_INK_PLAIN, "  %-14s %8.3f ms %5.1f %%  ", maq_serve_part_name((enum maq_serve_part)i),
                      part_s[i] / passes * 1e3, 100 * part_s[i] / sum);
        maq_page_bar(page, part_s[i] / sum, BAR);
        maq_buf_adds(&page->out, "\n");
    }
}

enum maq_status maq_report_serve_batch_text(char **out, const struct maq_serve_result *plan,
                                            const struct maq_serve_batch *b, int64_t size, int64_t prompt,
                                            int64_t output, const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_page page;
    const struct maq_lines to = {put, &page};
    maq_page_init(&page, opts);
    maq_serve_deployment_lines(&to, plan);
    maq_serve_batch_lines(&to, b, size, prompt, output);
    maq_buf_adds(&page.out, "\n");
    put_batch_parts(&page, "prefill", b->part_s[0], 1);
    if (output > 1)
        put_batch_parts(&page, "a token", b->part_s[1], (double)(output - 1));
    return maq_page_finish(out, &page, diag);
}
