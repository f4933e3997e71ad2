/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_export.c - exports a captured job's graph as a Perfetto or Chakra trace, lists its times, and asks for the
 * distribution of its makespan. See graph_export.h.
 */
#include "cli/graph_export.h"

#include <stdlib.h>
#include <string.h>

#include "cli/codes.h"

const char *const cli_export_words[] = {"perfetto", "chakra", NULL};

/* A graph with the end of every node. */
struct run {
    struct maq_captured_graph graph;
    double *finish;
};

static enum maq_status run_open(struct cli *cli, struct run *run, const struct maq_capture *capture)
{
    double makespan;
    enum maq_status status = maq_capture_graph(&run->graph, capture, cli->diag);
    if (status != MAQ_OK)
        return status;
    run->finish = malloc((run->graph.timed.graph.n_nodes + (size_t)1) * sizeof *run->finish);
    if (!run->finish) {
        maq_captured_graph_free(&run->graph);
        return maq_diag_fail(MAQ_NO_MEMORY, cli->diag, MAQ_CODE_CLI_NO_MEMORY, (struct maq_span){0}, NULL,
                             "out of memory for a graph");
    }
    maq_engine_static(&makespan, run->finish, &run->graph.timed.graph, 1, run->graph.timed.dur_ns);
    return MAQ_OK;
}

static void run_close(struct run *run)
{
    free(run->finish);
    maq_captured_graph_free(&run->graph);
}

/* The last part of a path, without the slash at its end. */
static char *prefix_of(struct cli *cli, const char *path)
{
    size_t n = strlen(path), at;
    while (n > 1 && path[n - 1] == '/')
        n--;
    for (at = n; at > 0 && path[at - 1] != '/';)
        at--;
    return cli_printf(cli, "%.*s", (int)(n - at), path + at);
}

enum maq_status cli_graph_export(struct cli *cli, const struct maq_capture *capture, const char *format,
                                 const char *path, bool every_rank)
{
    struct run run;
    if (!path)
        return cli_usage(cli, MAQ_CODE_CLI_OPTION,
                         "--export perfetto --output job.pftrace, --export chakra --output FOLDER",
                         "--export needs --output");
    if (strcmp(format, "chakra") == 0) {
        const char *prefix = prefix_of(cli, path);
        return prefix ? maq_capture_write_chakra(capture, path, prefix, every_rank, cli->diag) : MAQ_NO_MEMORY;
    }
    enum maq_status status = run_open(cli, &run, capture);
    if (status != MAQ_OK)
        return status;
    status = maq_trace_graph(path, &run.graph.timed, run.finish, cli->diag);
    run_close(&run);
    return status;
}

enum maq_status cli_graph_times(struct cli *cli, const struct maq_capture *capture, bool json, const char *file,
                                const char *html)
{
    struct run run;
    const struct maq_report_opts look = cli_report_opts(cli, file != NULL);
    enum maq_status status = run_open(cli, &run, capture);
    if (status != MAQ_OK)
        return status;
    status = CLI_PAGE(cli, html, maq_report_times, &look, &run.graph.timed, run.finish);
    if (status == MAQ_OK)
        status = CLI_REPORT(cli, json, file, maq_report_times, &look, &run.graph.timed, run.finish);
    run_close(&run);
    return status;
}

enum maq_status cli_graph_risk(struct cli *cli, const struct maq_capture *capture,
                               const struct maq_risk_graph_opts *opts, bool json, const char *file, const char *html)
{
    struct run run;
    struct maq_risk_graph risk;
    const struct maq_report_opts look = cli_report_opts(cli, file != NULL);
    enum maq_status status = run_open(cli, &run, capture);
    if (status != MAQ_OK)
        return status;
    status = maq_risk_graph(&risk, &run.graph.timed, opts, cli->diag);
    if (status == MAQ_OK)
        status = CLI_PAGE(cli, html, maq_report_risk_graph, &look, &risk);
    if (status == MAQ_OK)
        status = CLI_REPORT(cli, json, file, maq_report_risk_graph, &look, &risk);
    run_close(&run);
    return status;
}
