/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_diff.c - `maquette diff BEFORE.json AFTER.json`: what changed between two reports, and why. */
#include <string.h>

#include "cli/cli.h"
#include "cli/codes.h"

enum { OPT_JSON, OPT_HTML, OPT_OUTPUT };

static const struct cli_option options[] = {
    [OPT_JSON] = {"--json", CLI_FLAG, NULL, "JSON instead of text (schema maquette.diff/1)", NULL, NULL},
    [OPT_HTML] = CLI_OPTION_HTML,
    [OPT_OUTPUT] = CLI_OPTION_OUTPUT,
};

static enum maq_status run(struct cli *cli)
{
    const char *file = cli->values[OPT_OUTPUT], *page = cli->values[OPT_HTML];
    struct maq_diff *diff;
    if (cli->n_args < 2)
        return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT,
                         "maquette diff BEFORE.json AFTER.json: reports that one command wrote with --json",
                         cli->n_args == 0 ? "there are no reports" : "there is one report, and two are compared");
    if (strcmp(cli->args[0], "-") == 0 && strcmp(cli->args[1], "-") == 0)
        return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT, "one of them is a file", "both reports are standard input");
    enum maq_status status = cli_can_write(cli, page);
    if (status == MAQ_OK)
        status = maq_diff_load(&diff, cli->args[0], cli->args[1], cli->diag);
    if (status != MAQ_OK)
        return status;
    struct maq_report_opts opts = cli_report_opts(cli, file != NULL);
    status = CLI_PAGE(cli, page, maq_report_diff, &opts, diff);
    if (status == MAQ_OK)
        status = CLI_REPORT(cli, cli->values[OPT_JSON], file, maq_report_diff, &opts, diff);
    maq_diff_free(diff);
    return status;
}

const struct cli_command cli_diff = {
    .name = "diff",
    .args = "BEFORE.json AFTER.json [OPTION...]",
    .summary = "compare two reports: what changed, and what the change is made of",
    .about =
        "Compares two documents that one command wrote with --json (train, plan, serve, serve plan, risk, replay; `-` "
        "is standard input): which settings differ, which figures moved and by how much, what the change is made of, "
        "and whether it is more than the predictions can tell. The reports may be of two plans, clusters, models "
        "or versions of maquette. Exit status 0 whether they differ or not.\n",
    .examples = "  maquette train --model llama-3.1-8b --cluster h100-sxm:8 --gbs 64 --tp 2 --json >tp2.json\n"
                "  maquette train --model llama-3.1-8b --cluster h100-sxm:8 --gbs 64 --tp 4 --json >tp4.json\n"
                "  maquette diff tp2.json tp4.json\n"
                "  maquette diff before.json after.json --html change.html\n",
    .options = options,
    .n_options = CLI_COUNT(options),
    .max_args = 2,
    .callable = true,
    .run = run,
};
