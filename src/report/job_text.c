/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_text.c - the lines about model, cluster and workload at the head of a report, and the blocks that show how to
 * run a plan. See job_text.h.
 */
#include "report/job_text.h"

#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "report/words.h"

static void model_words(struct maq_buf *b, const struct maq_job *job)
{
    maq_buf_addf(b, "%s: ", job->model.name);
    maq_words_model(b, &job->model);
}

static void cluster_words(struct maq_buf *b, const struct maq_job *job)
{
    maq_words_cluster(b, &job->cluster);
}

static void plan_words(struct maq_buf *b, const struct maq_job *job)
{
    maq_words_degrees(b, &job->plan, job->dp);
    maq_buf_adds(b, "; ");
    maq_words_methods(b, job);
}

static void batch_words(struct maq_buf *b, const struct maq_job *job)
{
    maq_words_batch(b, &job->workload);
}

static void token_words(struct maq_buf *b, const struct maq_job *job)
{
    char t[32];
    maq_words_batch(b, &job->workload);
    maq_buf_addf(b, " (%s tokens)", maq_format_count(t, (double)job->workload.gbs * (double)job->workload.seq));
}

static void framework_words(struct maq_buf *b, const struct maq_job *job)
{
    maq_buf_addf(b, "%s: %s", job->framework.name, job->framework.title);
}

bool maq_job_lines(const struct maq_lines *to, const struct maq_job *job, enum maq_job_known known)
{
    const struct {
        const char *label;
        void (*words)(struct maq_buf *b, const struct maq_job *job);
        bool given;
    } lines[] = {{"model", model_words, true},
                 {"cluster", cluster_words, true},
                 {"plan", plan_words, known == MAQ_JOB_PLANNED},
                 {"workload", maq_words_workload, known == MAQ_JOB_PLANNED},
                 {"workload", batch_words, known == MAQ_JOB_OPEN},
                 {"workload", token_words, known == MAQ_JOB_OPEN_OF_TOKENS},
                 {"framework", framework_words, job->framework.named}};
    bool whole = true;
    for (size_t i = 0; i < MAQ_COUNT(lines); i++) {
        struct maq_arena arena;
        struct maq_buf line;
        if (!lines[i].given)
            continue;
        maq_arena_init(&arena, 0);
        maq_buf_init(&line, 1 << 16);
        lines[i].words(&line, job);
        whole &= !line.failed;
        to->put(to->user, lines[i].label, maq_text_clean(&arena, line.ptr ? line.ptr : ""));
        maq_buf_fini(&line);
        maq_arena_fini(&arena);
    }
    return whole;
}

static void put_field(void *user, const char *label, const char *text)
{
    maq_page_field(user, MAQ_JOB_LABEL, label, text);
}

void maq_page_job(struct maq_page *page, const struct maq_job *job, enum maq_job_known known)
{
    const struct maq_lines to = {put_field, page};
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    maq_page_putf(page, MAQ_INK_TITLE, "%.512s", maq_text_clean(&arena, job->name));
    maq_arena_fini(&arena);
    maq_buf_adds(&page->out, "\n\n");
    page->out.failed |= !maq_job_lines(&to, job, known);
}

void maq_page_open_job(struct maq_page *page, const struct maq_job *job)
{
    maq_page_job(page, job, MAQ_JOB_OPEN);
}

void maq_page_open_job_of_tokens(struct maq_page *page, const struct maq_job *job)
{
    maq_page_job(page, job, MAQ_JOB_OPEN_OF_TOKENS);
}

static void put_lines(struct maq_page *page, struct maq_str text)
{
    struct maq_str line;
    while (text.ptr && text.len > 0) {
        text = maq_str_split(text, '\n', &line);
        maq_buf_addf(&page->out, "  %.*s\n", (int)line.len, line.ptr);
    }
}

static void put_title(struct maq_page *page, const char *title)
{
    maq_buf_adds(&page->out, "\n");
    maq_page_putf(page, MAQ_INK_HEAD, "%s", title);
    maq_buf_adds(&page->out, "\n");
}

/* A section of a document that begins a line and goes to the end of it; empty: there is none. */
static struct maq_str section_line(const char *document, const char *key)
{
    struct maq_str rest = maq_str_of(document), line;
    while (rest.ptr && rest.len > 0) {
        rest = maq_str_split(rest, '\n', &line);
        if (maq_str_starts(line, key))
            return line;
    }
    return (struct maq_str){0};
}

static void put_document(struct maq_page *page, const char *document)
{
    const char *plan = document ? strstr(document, "\nplan:\n") : NULL;
    if (!plan)
        return;
    put_title(page, "The winner, for a job file (--write FILE writes all of it)");
    put_lines(page, section_line(document, "framework: "));
    put_lines(page, maq_str_of(plan + 1));
}

/* A setting that is left out of the command makes it another plan: which ones, and what is left of the winner. */
static void put_unsaid(struct maq_page *page, const struct maq_framework_words *words,
                       const struct maq_train_result *said)
{
    char step[32], title[160];
    maq__snprintf(title, sizeof title, "For %s, which has no words for", words->title);
    put_title(page, title);
    for (uint32_t i = 0; i < words->n_unsaid; i++)
        maq_buf_addf(&page->out, "  %s: %s (left to it: %s)\n", words->unsaid[i].key, words->unsaid[i].value,
                     words->unsaid[i].instead);
    if (said)
        maq_buf_addf(&page->out, "without %s it is not the winner: %s a step%s\n",
                     words->n_unsaid == 1 ? "this setting" : "these settings", maq_words_seconds(step, said->step_s),
                     said->fits ? "" : ", and does not fit");
}

static void put_words(struct maq_page *page, const struct maq_framework_words *words,
                      const struct maq_train_result *said)
{
    char title[256];
    if (!words->text) {
        maq__snprintf(title, sizeof title, "The settings of %s are not known here: the job file is what there is",
                      words->title);
        put_title(page, title);
        return;
    }
    if (words->refused) {
        maq__snprintf(title, sizeof title, "For %s, whose words are not enough: %s", words->title, words->refused);
        put_title(page, title);
    } else if (words->n_unsaid > 0) {
        put_unsaid(page, words, said);
    } else {
        maq__snprintf(title, sizeof title, "The winner, for %s", words->title);
        put_title(page, title);
    }
    put_lines(page, maq_str_of(words->text));
}

void maq_page_put_winner(struct maq_page *page, const char *document, const struct maq_framework_words *words,
                         const struct maq_train_result *said)
{
    put_document(page, document);
    if (words)
        put_words(page, words, said);
}
