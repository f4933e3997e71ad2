/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_text.c - the lines about model, cluster and workload at the head of a report, and the blocks that show how to
 * run a plan. See job_text.h.
 */
#include "report/job_text.h"

#include "base/units.h"
#include "report/words.h"

static void open_job(struct maq_page *page, const struct maq_job *job, bool tokens)
{
    char t[32];
    struct maq_arena arena;
    struct maq_buf line;
    maq_arena_init(&arena, 0);
    maq_page_putf(page, MAQ_INK_TITLE, "%.512s", maq_text_clean(&arena, job->name));
    maq_buf_adds(&page->out, "\n\n");
    maq_buf_init(&line, 1 << 16);
    maq_buf_addf(&line, "%s: ", job->model.name);
    maq_words_model(&line, &job->model);
    maq_page_field(page, MAQ_JOB_LABEL, "model", maq_text_clean(&arena, line.ptr ? line.ptr : ""));
    maq_buf_fini(&line);
    maq_buf_init(&line, 1 << 16);
    maq_words_cluster(&line, &job->cluster);
    maq_page_field(page, MAQ_JOB_LABEL, "cluster", maq_text_clean(&arena, line.ptr ? line.ptr : ""));
    maq_buf_fini(&line);
    maq_buf_init(&line, 1 << 16);
    maq_words_batch(&line, &job->workload);
    if (tokens)
        maq_buf_addf(&line, " (%s tokens)", maq_format_count(t, (double)job->workload.gbs * (double)job->workload.seq));
    maq_page_field(page, MAQ_JOB_LABEL, "workload", line.ptr ? line.ptr : "");
    maq_buf_fini(&line);
    maq_arena_fini(&arena);
}

void maq_page_open_job(struct maq_page *page, const struct maq_job *job)
{
    open_job(page, job, false);
}

void maq_page_open_job_of_tokens(struct maq_page *page, const struct maq_job *job)
{
    open_job(page, job, true);
}

static void put_block(struct maq_page *page, const char *title, const char *text)
{
    if (!text)
        return;
    maq_buf_adds(&page->out, "\n");
    maq_page_putf(page, MAQ_INK_HEAD, "%s", title);
    maq_buf_adds(&page->out, "\n");
    struct maq_str rest = maq_str_of(text), line;
    while (rest.ptr && rest.len > 0) {
        rest = maq_str_split(rest, '\n', &line);
        maq_buf_addf(&page->out, "  %.*s\n", (int)line.len, line.ptr);
    }
}

static const char *document_plan(const char *document)
{
    const char *plan = document ? strstr(document, "\nplan:\n") : NULL;
    return plan ? plan + 1 : NULL;
}

void maq_page_put_winner(struct maq_page *page, const char *document, const char *arguments)
{
    put_block(page, "The winner, for a job file (--write FILE writes all of it)", document_plan(document));
    put_block(page, "The winner, for Megatron-LM", arguments);
}
