/* SPDX-License-Identifier: Apache-2.0 */
/* text.c - a step of post-training for a terminal: what was asked, how long, which part takes it, memory of each model. */
#include "base/text.h"
#include "base/check.h"
#include "base/units.h"
#include "maquette/report_post_training.h"
#include "report/job_text.h"
#include "report/rl_cycle.h"
#include "report/words.h"

#define LABEL MAQ_JOB_LABEL
#define BAR 40

static void put(void *user, const char *label, const char *text)
{
    maq_page_field(user, LABEL, label, text);
}

static void put_parts(struct maq_page *page, const struct maq_post_training_result *r)
{
    struct maq_rl_part parts[MAQ_RL_PARTS];
    double largest = 0;
    maq_rl_parts(parts, r);
    for (size_t i = 0; i < MAQ_RL_PARTS; i++)
        largest = parts[i].seconds > largest ? parts[i].seconds : largest;
    maq_page_putf(page, MAQ_INK_HEAD, "\nWhere the step goes\n");
    for (size_t i = 0; i < MAQ_RL_PARTS; i++) {
        char time[32];
        if (!(parts[i].seconds > 0))
            continue;
        maq_page_putf(page, MAQ_INK_PLAIN, "  %-22s%10s %6.1f %%  ", parts[i].words,
                      maq_format_time(time, parts[i].seconds), 100 * parts[i].seconds / r->step_s);
        maq_page_bar(page, parts[i].seconds / largest, BAR);
        while (page->out.len > 0 && page->out.ptr && page->out.ptr[page->out.len - 1] == ' ')
            page->out.len--;
        maq_buf_addc(&page->out, '\n');
    }
}

static void put_memory(struct maq_page *page, const struct maq_post_training_result *r)
{
    struct maq_rl_memory_row rows[MAQ_RL_MEMORY_ROWS];
    const double capacity = r->memory.capacity;
    maq_rl_memory_rows(rows, r);
    maq_page_putf(page, MAQ_INK_HEAD, "\nMemory of the fullest GPU, GiB of %.1f\n", capacity / MAQ_GIB);
    for (size_t i = 0; i < MAQ_RL_MEMORY_ROWS; i++)
        if (rows[i].bytes > 0)
            maq_page_putf(page, rows[i].bytes > capacity ? MAQ_INK_BAD : MAQ_INK_PLAIN, "  %-32s%8.2f%s\n",
                          rows[i].words, rows[i].bytes / MAQ_GIB, rows[i].bytes > capacity ? "  over" : "");
}

enum maq_status maq_report_post_training_text(char **out, const struct maq_post_training_result *r,
                                              const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_page page;
    const struct maq_lines to = {put, &page};
    char a[32], b[32];
    maq_page_init(&page, opts);
    maq_page_job(&page, r->job, MAQ_JOB_PLANNED);
    maq_rl_lines(&to, r);
    if (!r->fits)
        maq_page_putf(
            &page, MAQ_INK_BAD, "\nDoes not fit: %s needed, the GPU has %s\n",
            maq_format_bytes(a, r->memory.training > r->memory.generating ? r->memory.training : r->memory.generating),
            maq_format_bytes(b, r->memory.capacity));
    maq_page_putf(&page, MAQ_INK_FAINT, "\n%-*s", LABEL, "step");
    maq_page_putf(&page, MAQ_INK_TITLE, "%s", maq_format_time(a, r->step_s));
    maq_page_putf(&page, MAQ_INK_PLAIN, ", %.0f sequences, %.0f tokens/s trained on\n", r->sequences,
                  r->sequences * (double)r->job->workload.seq / r->step_s);
    put_parts(&page, r);
    put_memory(&page, r);
    return maq_page_finish(out, &page, diag);
}
