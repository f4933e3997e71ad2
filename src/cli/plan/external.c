/* SPDX-License-Identifier: Apache-2.0 */
/* external.c - `maquette plan --parallelizer`: plans composed of what a parallelizer answers. */
#include "cli/plan/external.h"

static void show_progress(void *context, const struct maq_slices_progress *at)
{
    if (at->best_s > 0)
        cli_progress(context, "%u of %u pairs of slice and island asked, best %.4g s", at->asked, at->to_ask,
                     at->best_s);
    else
        cli_progress(context, "%u of %u pairs of slice and island asked", at->asked, at->to_ask);
}

/* The best plan in the form of docs/plan-form.md. */
static enum maq_status write_plan(struct cli *cli, const struct maq_slices_result *r, const char *path)
{
    struct maq_loaded_mixed_plan *loaded;
    char *text;
    enum maq_status status = maq_slices_mixed_plan(&loaded, r, 0, cli->diag);
    if (status != MAQ_OK)
        return status;
    status = maq_mixed_plan_write(&text, maq_mixed_plan_get(loaded), cli->diag);
    maq_mixed_plan_free(loaded);
    return status == MAQ_OK ? cli_write(cli, text, path) : status;
}

enum maq_status cli_plan_slices(struct cli *cli, const struct maq_loaded_job *open, const struct cli_slices_options *o)
{
    struct maq_slices_opts opts = MAQ_SLICES_OPTS_INIT;
    struct maq_report_opts report_opts = cli_report_opts(cli, o->output != NULL);
    struct maq_slices_result *found;
    opts.parallelizer = o->parallelizer;
    opts.workers = o->workers;
    opts.top = o->top;
    opts.stop = o->stop;
    opts.progress = show_progress;
    opts.context = cli;
    opts.timeout_s = o->timeout_s;
    enum maq_status status = maq_slices_search(&found, open, &opts, cli->diag);
    cli_progress(cli, "%s", "");
    if (status != MAQ_OK)
        return status;
    const struct maq_report_slices plan = {open, found};
    status = CLI_PAGE(cli, o->html, maq_report_slices, &report_opts, &plan);
    if (status == MAQ_OK)
        status = CLI_REPORT(cli, o->json, o->output, maq_report_slices, &report_opts, &plan);
    if (o->write && found->n_plans > 0 && (status == MAQ_OK || status == MAQ_IO))
        status = cli_first_fault(status, write_plan(cli, found, o->write));
    if (status == MAQ_OK && found->n_plans == 0)
        status = MAQ_NO;
    maq_slices_free(found);
    return status;
}
