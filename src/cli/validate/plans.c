/* SPDX-License-Identifier: Apache-2.0 */
/* plans.c - `maquette validate plans`: executed plans on GPUs of several kinds. */
#include "cli/cmd_validate.h"
#include "cli/codes.h"

static enum maq_status run(struct cli *cli, const char *path, const struct cli_validate_options *o)
{
    struct maq_validate_plans_opts opts = MAQ_VALIDATE_PLANS_OPTS_INIT;
    struct maq_validate_plans *result;
    if (o->plot || o->opts.n_where > 0)
        return cli_usage(cli, MAQ_CODE_CLI_OPTION, NULL, "%s is not for plans", o->plot ? "--plot" : "--where");
    opts.profile = o->profile;
    opts.judge = o->sailor ? MAQ_PLAN_JUDGE_SAILOR : MAQ_PLAN_JUDGE_OURS;
    enum maq_status status = maq_validate_plans(&result, path, &opts, cli->diag);
    if (status != MAQ_OK)
        return status;
    status = CLI_VALIDATE_PAGE(cli, o, "plans", maq_validate_plans_text(result, o->worst),
                               maq_validate_plans_json(result), NULL);
    if (status == MAQ_OK)
        status = cli_validate_write(
            cli, o->json ? maq_validate_plans_json(result) : maq_validate_plans_text(result, o->worst), o->output);
    if (status == MAQ_OK && result->n_compared == 0)
        status = MAQ_NO;
    maq_validate_plans_free(result);
    return status;
}

const struct cli_validation cli_validate_plans = {.name = "plans", .run = run};
