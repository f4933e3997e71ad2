/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_graph.c - `maquette graph`: what a captured job, or traces of ranks, hold; checked, and as one file. */
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/codes.h"
#include "cli/graph_export.h"

enum {
    OPT_CHECK,
    OPT_STATS,
    OPT_TIMES,
    OPT_WRITE,
    OPT_EXPORT,
    OPT_EVERY_RANK,
    OPT_COMM_SIZE,
    OPT_STRICT,
    OPT_JSON,
    OPT_HTML,
    OPT_OUTPUT
};

static const struct cli_option options[] = {
    [OPT_CHECK] = {"--check", CLI_FLAG, NULL, "whether collectives and messages meet on all their members", NULL, NULL},
    [OPT_STATS] = {"--stats", CLI_FLAG, NULL, "communicators, records and the largest operators too", NULL, NULL},
    [OPT_TIMES] = {"--times", CLI_FLAG, NULL, "instead: where the time of the busiest class goes", NULL, NULL},
    [OPT_WRITE] = {"--write", CLI_VALUE, "JOB.mqt", "write the job to one file", NULL, NULL},
    [OPT_EXPORT] = {"--export", CLI_VALUE, "perfetto|chakra",
                    "write a timeline to the --output FILE, or execution traces to the --output FOLDER", NULL,
                    cli_export_words},
    [OPT_EVERY_RANK] = {"--every-rank", CLI_FLAG, NULL, "--export chakra: of all ranks, not of one of each class", NULL,
                        NULL},
    [OPT_COMM_SIZE] = CLI_OPTION_COMM_SIZE,
    [OPT_STRICT] = CLI_OPTION_STRICT,
    [OPT_JSON] = {"--json", CLI_FLAG, NULL, "JSON instead of text", NULL, NULL},
    [OPT_HTML] = CLI_OPTION_HTML,
    [OPT_OUTPUT] = CLI_OPTION_OUTPUT,
};
_Static_assert(CLI_COUNT(options) <= CLI_OPTIONS_MAX, "a value per option");

static enum maq_status report(struct cli *cli, const struct maq_report_graph *graph)
{
    const char *file = cli->values[OPT_OUTPUT];
    struct maq_report_opts opts = cli_report_opts(cli, file != NULL);
    enum maq_status status = CLI_PAGE(cli, cli->values[OPT_HTML], maq_report_graph, &opts, graph);
    if (status != MAQ_OK)
        return status;
    return CLI_REPORT(cli, cli->values[OPT_JSON], file, maq_report_graph, &opts, graph);
}

static enum maq_status look(struct cli *cli, const struct maq_capture *capture)
{
    struct maq_report_graph graph = {
        .capture = capture, .checked = cli->values[OPT_CHECK] != NULL, .in_full = cli->values[OPT_STATS] != NULL};
    struct maq_capture_stats *stats;
    enum maq_status met = graph.checked ? maq_capture_check(capture, cli->diag) : MAQ_OK;
    if (met != MAQ_OK && met != MAQ_NO)
        return met;
    enum maq_status status = maq_capture_stats(&stats, capture, cli->diag);
    if (status != MAQ_OK)
        return status;
    graph.stats = stats;
    graph.meets = met == MAQ_OK;
    status = report(cli, &graph);
    maq_capture_stats_free(stats);
    if (status == MAQ_OK && cli->values[OPT_WRITE])
        status = maq_capture_write(capture, cli->values[OPT_WRITE], cli->diag);
    return status == MAQ_OK ? met : status;
}

static enum maq_status run(struct cli *cli)
{
    struct maq_capture *capture;
    const char *format = cli->values[OPT_EXPORT], *file = cli->values[OPT_OUTPUT], *page = cli->values[OPT_HTML];
    if (format && page)
        return cli_usage(cli, MAQ_CODE_CLI_OPTION, "without --export", "--html is a report, and --export makes none");
    maq_diag_set_strict(cli->diag, cli->values[OPT_STRICT] != NULL);
    enum maq_status status = cli_can_write(cli, page);
    if (status == MAQ_OK)
        status = cli_read_capture(cli, &capture, cli->values[OPT_COMM_SIZE]);
    if (status != MAQ_OK)
        return status;
    if (format)
        status = cli_graph_export(cli, capture, format, file, cli->values[OPT_EVERY_RANK] != NULL);
    else if (cli->values[OPT_TIMES])
        status = cli_graph_times(cli, capture, cli->values[OPT_JSON] != NULL, file, page);
    else
        status = look(cli, capture);
    maq_capture_free(capture);
    return status;
}

const struct cli_command cli_graph = {
    .name = "graph",
    .args = "JOB.mqt|FOLDER|TRACE... [OPTION...]",
    .summary = "show and check a captured job, or traces of ranks",
    .about = "Reads a captured job, or the traces of some of its ranks: a folder, or file by file. Ranks that do the "
             "same are one class; ranks that did not run are filled in where those that did say enough. --check looks "
             "whether every collective and message meets on all its members, and exits with 1 where one does not. "
             "Traces of other tools are read, and written with --export: docs/imports.md.\n",
    .examples = "  maquette graph job.mqt --check --stats\n"
                "  maquette graph traces/ --write job.mqt\n"
                "  maquette graph trace.json.gz --times --html times.html\n"
                "  maquette graph job.mqt --export perfetto --output job.pftrace\n"
                "  maquette graph job.mqt --export chakra --output job-et\n",
    .options = options,
    .n_options = CLI_COUNT(options),
    .max_args = SIZE_MAX,
    .callable = true,
    .run = run,
};
