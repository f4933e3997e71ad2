/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mixed.c - `maquette plan` over several node groups: a strategy of its own for each stage, or one for all of them, whichever is
 * faster. --write leaves the plan in a file: a mixed plan, or a job for `maquette train`.
 */
#include "cli/plan/mixed.h"

#include <stdlib.h>
#include <string.h>

/* What the report is made of. */
struct answer {
    struct maq_mixed_search_result *found, *without, *others[MAQ_MIXED_PLANNER_COUNT];
    struct maq_mixed_search_remedies remedies;
    char *document; /* of a uniform winner */
    struct maq_framework_words *words;
    uint32_t n_others;
    bool helpless; /* nothing fits, and all was looked at */
};

static void free_answer(struct answer *a)
{
    for (uint32_t i = 0; i < a->n_others; i++)
        maq_mixed_search_free(a->others[i]);
    maq_mixed_search_free(a->found);
    maq_mixed_search_free(a->without);
    free(a->document);
    maq_framework_words_free(a->words);
}

/* What each planner but the one that was asked for would find. */
static enum maq_status ask_planners(struct answer *a, struct cli *cli, const struct maq_loaded_job *open,
                                    const struct maq_mixed_search_opts *opts)
{
    struct maq_mixed_search_opts mixed = *opts;
    mixed.top = 1;
    mixed.together_only = true;
    for (mixed.planner = 0; mixed.planner < MAQ_MIXED_PLANNER_COUNT; mixed.planner++) {
        if (mixed.planner == opts->planner)
            continue;
        enum maq_status status = maq_mixed_search(&a->others[a->n_others], open, &mixed, cli->diag);
        if (status != MAQ_OK)
            return status;
        a->n_others++;
    }
    return MAQ_OK;
}

/* How to run a winner that is uniform: what the report of one node group says too. */
static enum maq_status write_uniform(struct answer *a, const struct maq_loaded_job *open, struct maq_diag *diag)
{
    const struct maq_plan *uniform = a->found->plans[0].uniform;
    struct maq_loaded_job *whole;
    enum maq_status status = maq_job_complete(&whole, open, uniform, diag);
    if (status != MAQ_OK)
        return status;
    a->document = maq_job_write(open, uniform);
    status = a->document ? maq_framework_words(&a->words, open, maq_job_get(whole), diag) : MAQ_NO_MEMORY;
    maq_job_free(whole);
    return status;
}

/* The best plan that needs only fit as predicted: what the memory that is left free would buy. */
static enum maq_status search_without_headroom(struct answer *a, struct cli *cli, const struct maq_loaded_job *open,
                                               const struct maq_mixed_search_opts *opts)
{
    struct maq_mixed_search_opts all = *opts;
    all.top = 1;
    all.as_predicted = true;
    return maq_mixed_search(&a->without, open, &all, cli->diag);
}

static enum maq_status find(struct answer *a, struct cli *cli, const struct maq_loaded_job *open,
                            const struct maq_mixed_search_opts *opts, bool explain)
{
    enum maq_status status = maq_mixed_search(&a->found, open, opts, cli->diag);
    if (status != MAQ_OK)
        return status;
    a->helpless = a->found->n_plans == 0 && a->found->complete;
    if (a->helpless)
        return maq_mixed_search_find_remedies(&a->remedies, open, opts, cli->diag);
    if (a->found->n_plans > 0 && explain)
        status = ask_planners(a, cli, open, opts);
    if (status == MAQ_OK && a->found->n_plans > 0 && explain && a->found->min_fit_probability > 0)
        status = search_without_headroom(a, cli, open, opts);
    if (status == MAQ_OK && a->found->n_plans > 0 && a->found->plans[0].uniform)
        status = write_uniform(a, open, cli->diag);
    return status;
}

/* The winner for --write. */
static enum maq_status written(char **out, struct answer *a, struct maq_diag *diag)
{
    struct maq_loaded_mixed_plan *loaded;
    if (a->document) {
        *out = a->document;
        a->document = NULL;
        return MAQ_OK;
    }
    enum maq_status status = maq_mixed_search_mixed_plan(&loaded, a->found, 0, diag);
    if (status != MAQ_OK)
        return status;
    status = maq_mixed_plan_write(out, maq_mixed_plan_get(loaded), diag);
    maq_mixed_plan_free(loaded);
    return status;
}

static enum maq_status report(struct answer *a, struct cli *cli, const struct maq_loaded_job *open,
                              const struct cli_mixed_options *o)
{
    struct maq_report_opts opts = cli_report_opts(cli, o->output != NULL);
    const struct maq_report_mixed plan = {.open = open,
                                          .search = a->found,
                                          .remedies = a->helpless ? &a->remedies : NULL,
                                          .planners = (const struct maq_mixed_search_result *const *)a->others,
                                          .n_planners = a->n_others,
                                          .without = a->without,
                                          .document = a->document,
                                          .words = a->words};
    char *text;
    if (o->html) {
        enum maq_status page = maq_report_mixed_html(&text, &plan, &opts, cli->diag);
        if (page == MAQ_OK)
            page = cli_put_page(cli, text, o->html);
        if (page != MAQ_OK)
            return page;
    }
    enum maq_status told = CLI_REPORT(cli, o->json, o->output, maq_report_mixed, &opts, &plan);
    if (!o->write || a->found->n_plans == 0 || (told != MAQ_OK && told != MAQ_IO))
        return told;
    enum maq_status status = written(&text, a, cli->diag);
    return cli_first_fault(told, status == MAQ_OK ? cli_write(cli, text, o->write) : status);
}

static void show_progress(void *context, const struct maq_mixed_search_progress *at)
{
    cli_progress(context, "%u tables of stages, from %llu ways to run one", at->tables, (unsigned long long)at->ways);
}

enum maq_status cli_plan_mixed(struct cli *cli, const struct maq_loaded_job *open, const struct cli_mixed_options *o)
{
    struct maq_mixed_search_opts opts = MAQ_MIXED_SEARCH_OPTS_INIT;
    struct answer answer = {0};
    opts.top = o->top;
    opts.threads = o->threads;
    opts.stop = o->stop;
    opts.one_pipeline = o->one_pipeline;
    opts.min_fit_probability = MAQ_SEARCH_FIT_PROBABILITY;
    opts.progress = show_progress;
    opts.context = cli;
    for (int p = 0; o->planner && p < MAQ_MIXED_PLANNER_COUNT; p++)
        if (strcmp(o->planner, maq_mixed_planner_name((enum maq_mixed_planner)p)) == 0)
            opts.planner = p;
    enum maq_status status = find(&answer, cli, open, &opts, o->explain);
    cli_progress(cli, "%s", "");
    if (status == MAQ_OK)
        status = report(&answer, cli, open, o);
    if (status == MAQ_OK && answer.found->n_plans == 0)
        status = MAQ_NO;
    free_answer(&answer);
    return status;
}
