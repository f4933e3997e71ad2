/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_show.c - `maquette show`: what the catalogue has. */
#include "cli/cli.h"
#include "cli/codes.h"

enum { OPT_JSON, OPT_OUTPUT };

static const struct cli_option options[] = {
    [OPT_JSON] = {"--json", CLI_FLAG, NULL, "JSON instead of text", NULL, NULL},
    [OPT_OUTPUT] = {"--output", CLI_VALUE, "FILE", "write to FILE, not to standard output", NULL, NULL},
};
_Static_assert(CLI_COUNT(options) <= CLI_OPTIONS_MAX, "a value per option");

static enum maq_status run(struct cli *cli)
{
    const char *file = cli->values[OPT_OUTPUT];
    struct maq_report_opts opts = cli_report_opts(cli, file != NULL);
    if (cli->n_args == 0)
        return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT,
                         "maquette show models, gpus, fabrics, frameworks, failures, schedules, or a name",
                         "there is nothing to show");
    return CLI_REPORT(cli, cli->values[OPT_JSON], file, maq_catalogue_show, &opts, cli->args[0]);
}

const struct cli_command cli_show = {
    .name = "show",
    .args = "models|gpus|fabrics|frameworks|failures|schedules|NAME [OPTION...]",
    .summary = "list models, GPUs, networks, frameworks, failures and schedules; show one of them",
    .about = "Lists what maquette knows by name, or shows all it knows of one thing: the modules and parameters of a "
             "model, the figures of a GPU or a network and their source, what a framework does besides the plan, how "
             "often nodes of a fleet fail, the bubble of a schedule. NAME may also be the path of a config.json.\n",
    .examples = "  maquette show models\n"
                "  maquette show deepseek-v3\n"
                "  maquette show h100-sxm --json\n",
    .options = options,
    .n_options = CLI_COUNT(options),
    .max_args = 1,
    .callable = true,
    .run = run,
};
