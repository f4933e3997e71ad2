/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_islands.c - `maquette islands`: which measured nodes make up an island, and the cluster that they make. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/codes.h"
#include "maquette/islands.h"

enum { OPT_WRITE, OPT_STRICT, OPT_JSON, OPT_OUTPUT };

static const struct cli_option options[] = {
    [OPT_WRITE] = {"--write", CLI_VALUE, "FILE", "write the cluster to FILE, for `cluster: FILE` of a job", NULL, NULL},
    [OPT_STRICT] = CLI_OPTION_STRICT,
    [OPT_JSON] = {"--json", CLI_FLAG, NULL, "JSON instead of text", NULL, NULL},
    [OPT_OUTPUT] = {"--output", CLI_VALUE, "FILE", "write the report to FILE, not to standard output", NULL, NULL},
};
_Static_assert(CLI_COUNT(options) <= CLI_OPTIONS_MAX, "a value per option");

static enum maq_status report(struct cli *cli, const struct maq_islands *islands)
{
    const char *file = cli->values[OPT_OUTPUT];
    struct maq_report_opts opts = cli_report_opts(cli, file != NULL);
    enum maq_status status = CLI_REPORT(cli, cli->values[OPT_JSON], file, maq_report_islands, &opts, islands);
    if (!cli->values[OPT_WRITE] || (status != MAQ_OK && status != MAQ_IO))
        return status;
    char *document = strdup(islands->document);
    return cli_first_fault(status, document ? cli_write(cli, document, cli->values[OPT_WRITE]) : MAQ_NO_MEMORY);
}

static enum maq_status run(struct cli *cli)
{
    struct maq_islands *islands;
    if (cli->n_args == 0)
        return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT, "maquette islands nodes.yaml", "there is no document of nodes");
    maq_diag_set_strict(cli->diag, cli->values[OPT_STRICT] != NULL);
    enum maq_status status = maq_islands_load(&islands, cli->args[0], cli->diag);
    if (status != MAQ_OK)
        return status;
    status = report(cli, islands);
    maq_islands_free(islands);
    return status;
}

const struct cli_command cli_islands = {
    .name = "islands",
    .args = "NODES.yaml [OPTION...]",
    .summary = "group measured nodes into islands of equal GPUs near each other",
    .about = "Reads what was measured of nodes and of the links between them, and groups nodes that a planner may "
             "treat as equal: the same number of GPUs, compute, memory and bandwidth within tolerances, and no faster "
             "link to a node outside than to one inside. The cluster that they make can be changed by hand, and "
             "planned: a job names it as `cluster: FILE`. The form of the document is in docs/planning.md.\n",
    .examples = "  maquette islands nodes.yaml\n"
                "  maquette islands nodes.yaml --write cluster.yaml\n",
    .options = options,
    .n_options = CLI_COUNT(options),
    .max_args = 1,
    .callable = true,
    .run = run,
};
