/* SPDX-License-Identifier: Apache-2.0 */
/* ranking.c - `maquette validate ranking`: are measured plans of one job ranked as they ran? */
#include "cli/cmd_validate.h"

#include "cli/codes.h"

static enum maq_status run(struct cli *cli, const char *path, const struct cli_validate_options *o)
{
    struct maq_validate_plan_ranking_opts opts = MAQ_VALIDATE_PLAN_RANKING_OPTS_INIT;
    struct maq_validate_plan_ranking *result;
    if (!o->job)
        return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT, "model, cluster, framework and batch that the plans share",
                         "plans need the job that they are plans of: --job FILE");
    opts.job = o->job;
    opts.layers_before = o->layers_before;
    opts.layers_at = o->layers_at;
    opts.where = o->opts.where;
    opts.n_where = o->opts.n_where;
    enum maq_status status = maq_validate_plan_ranking(&result, path, &opts, cli->diag);
    if (status != MAQ_OK)
        return status;
    status = CLI_VALIDATE_PAGE(cli, o, "ranking", maq_validate_plan_ranking_report(result, o->worst),
                               maq_validate_plan_ranking_json(result), NULL);
    if (status == MAQ_OK)
        status = cli_validate_write(
            cli, o->json ? maq_validate_plan_ranking_json(result) : maq_validate_plan_ranking_report(result, o->worst),
            o->output);
    if (status == MAQ_OK && result->own.rows == 0)
        status = MAQ_NO;
    maq_validate_plan_ranking_free(result);
    return status;
}

const struct cli_validation cli_validate_ranking = {.name = "ranking", .run = run};
