/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_replay.c - `maquette replay`: a captured job at full scale, with stragglers, failures, slow links, other hardware. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/codes.h"

enum {
    OPT_SLOW,
    OPT_FAIL,
    OPT_TIMEOUT,
    OPT_CLUSTER,
    OPT_COST,
    OPT_MEASURED,
    OPT_SET,
    OPT_KERNELS,
    OPT_TRACE,
    OPT_RANK,
    OPT_COMM_SIZE,
    OPT_STRICT,
    OPT_JSON,
    OPT_HTML,
    OPT_OUTPUT
};

#define EDITS_MOST 256u
#define RANKS_MOST 64u

static const struct cli_option options[] = {
    [OPT_SLOW] = {"--slow", CLI_LIST, "PART=FACTORx,...",
                  "what is slow: rank:17=1.3x, node:3=1.2x, rank:17=1.3x@step:2..5 (times as long), link:rail3=0.5x, "
                  "link:rank17=0.5x (of its speed)",
                  NULL, NULL},
    [OPT_FAIL] = {"--fail", CLI_LIST, "PART=WHEN,...", "what stops: rank:17=step:3, node:2=1.5s", NULL, NULL},
    [OPT_TIMEOUT] = {"--timeout", CLI_VALUE, "SECONDS", "of a collective, where a rank stops (600)", NULL, NULL},
    [OPT_CLUSTER] = {"--cluster", CLI_JOB, "CLUSTER", "other machines: \"h200-sxm:8 x 4, rail 400G\" or a file",
                     "cluster", NULL},
    [OPT_COST] = {"--cost", CLI_JOB, "analytical|fitted|measured",
                  "with --cluster: the best kind of cost that may be used (measured)", "cost.provider", cli_providers},
    [OPT_MEASURED] = {"--measured", CLI_JOB, "FILE",
                      "with --cluster: look costs up in FILE first, kernels that `maquette profile` measured",
                      "cost.measured", NULL},
    [OPT_SET] = {"--set", CLI_SET, "PATH=VALUE",
                 "any value of cluster and cost: --set 'cluster={device: {base: h100-sxm, ...}}'", NULL, NULL},
    [OPT_KERNELS] = {"--kernels", CLI_VALUE, "FILE.csv",
                     "times of kernels as you measured them: name,ns or name,grid,ns", NULL, NULL},
    [OPT_TRACE] = {"--trace", CLI_VALUE, "FILE",
                   "write the time line: Perfetto's format, Chrome's where FILE ends in .json", NULL, NULL},
    [OPT_RANK] = {"--rank", CLI_LIST, "R,...", "with --trace: these ranks (the first of each class)", NULL, NULL},
    [OPT_COMM_SIZE] = CLI_OPTION_COMM_SIZE,
    [OPT_STRICT] = CLI_OPTION_STRICT,
    [OPT_JSON] = {"--json", CLI_FLAG, NULL, "JSON instead of text", NULL, NULL},
    [OPT_HTML] = CLI_OPTION_HTML,
    [OPT_OUTPUT] = CLI_OPTION_OUTPUT,
};
_Static_assert(CLI_COUNT(options) <= CLI_OPTIONS_MAX, "a value per option");

/* --- options --- */

typedef enum maq_status read_edit(struct maq_edit *out, const char *text, const struct maq_capture *capture,
                                  struct maq_diag *diag);

/* The parts of --slow or --fail, cut at commas. */
static enum maq_status read_edits(struct cli *cli, size_t option, read_edit *read, const struct maq_capture *capture,
                                  struct maq_edit *edit, uint32_t *n)
{
    const char *text = cli->values[option];
    while (text && *text) {
        size_t len = strcspn(text, ",");
        char *part = cli_printf(cli, "%.*s", (int)len, text);
        if (!part)
            return MAQ_NO_MEMORY;
        if (*n == EDITS_MOST)
            return cli_usage(cli, MAQ_CODE_CLI_VALUE, NULL, "more than %u edits", EDITS_MOST);
        enum maq_status status = read(&edit[*n], part, capture, cli->diag);
        if (status != MAQ_OK)
            return status;
        ++*n;
        text += len + (text[len] == ',');
    }
    return MAQ_OK;
}

static enum maq_status read_ranks(struct cli *cli, const struct maq_capture *capture, uint32_t *rank, uint32_t *n)
{
    const char *text = cli->values[OPT_RANK];
    while (text && *text) {
        size_t digits = strspn(text, "0123456789");
        uint64_t r = 0;
        for (size_t i = 0; i < digits && r < capture->world; i++)
            r = r * 10 + (uint64_t)(text[i] - '0');
        if (digits == 0 || (text[digits] != '\0' && text[digits] != ',') || r >= capture->world)
            return cli_usage(cli, MAQ_CODE_CLI_VALUE, NULL, "--rank takes ranks of the job, 0 to %u, not '%.80s'",
                             capture->world - 1, text);
        if (*n == RANKS_MOST)
            return cli_usage(cli, MAQ_CODE_CLI_VALUE, NULL, "--rank takes %u ranks at most", RANKS_MOST);
        rank[(*n)++] = (uint32_t)r;
        text += digits + (text[digits] == ',');
    }
    return MAQ_OK;
}

/* --- the replay --- */

static enum maq_status report(struct cli *cli, const struct maq_report_replay *replay)
{
    const char *file = cli->values[OPT_OUTPUT];
    struct maq_report_opts opts = cli_report_opts(cli, file != NULL);
    if (cli->values[OPT_HTML]) {
        char *text;
        enum maq_status status = maq_report_replay_html(&text, replay, &opts, cli->diag);
        if (status == MAQ_OK)
            status = cli_put_page(cli, text, cli->values[OPT_HTML]);
        if (status != MAQ_OK)
            return status;
    }
    return CLI_REPORT(cli, cli->values[OPT_JSON], file, maq_report_replay, &opts, replay);
}

static enum maq_status replay(struct cli *cli, const struct maq_capture *capture, const struct maq_replay_opts *opts,
                              const uint32_t *rank, uint32_t n_ranks)
{
    struct maq_replay *edited = NULL, *base = NULL;
    const char *trace = cli->values[OPT_TRACE];
    bool differs = opts->n_edits > 0 || opts->n_overrides > 0 || opts->kernels;
    enum maq_status status =
        trace ? maq_trace_replay(trace, &edited, capture, opts, n_ranks > 0 ? rank : NULL, n_ranks, cli->diag)
              : maq_capture_replay(&edited, capture, opts, cli->diag);
    if (status == MAQ_OK && differs)
        status = maq_capture_replay(&base, capture, NULL, cli->diag);
    if (status == MAQ_OK) {
        status = report(cli, &(struct maq_report_replay){.replay = edited, .base = base});
        if (status == MAQ_OK && edited->failed)
            status = MAQ_NO;
    }
    maq_replay_free(edited);
    maq_replay_free(base);
    return status;
}

static enum maq_status read_and_replay(struct cli *cli, const struct maq_capture *capture, struct maq_edit *edit)
{
    struct maq_replay_opts opts = MAQ_REPLAY_OPTS_INIT;
    uint32_t rank[RANKS_MOST], n_ranks = 0, timeout;
    enum maq_status status = read_edits(cli, OPT_SLOW, maq_edit_slow, capture, edit, &opts.n_edits);
    if (status == MAQ_OK)
        status = read_edits(cli, OPT_FAIL, maq_edit_fail, capture, edit, &opts.n_edits);
    if (status == MAQ_OK)
        status = read_ranks(cli, capture, rank, &n_ranks);
    if (status == MAQ_OK)
        status = cli_count(cli, &timeout, OPT_TIMEOUT, 1, 100000000, 600);
    if (status != MAQ_OK)
        return status;
    opts.edit = edit;
    opts.timeout_ns = (int64_t)timeout * 1000000000;
    opts.overrides = cli->overrides;
    opts.n_overrides = cli->n_overrides;
    opts.kernels = cli->values[OPT_KERNELS];
    return replay(cli, capture, &opts, rank, n_ranks);
}

static enum maq_status run(struct cli *cli)
{
    struct maq_capture *capture;
    enum maq_status status = cli_can_write(cli, cli->values[OPT_HTML]);
    if (status != MAQ_OK)
        return status;
    maq_diag_set_strict(cli->diag, cli->values[OPT_STRICT] != NULL);
    status = cli_read_capture(cli, &capture, cli->values[OPT_COMM_SIZE]);
    if (status != MAQ_OK)
        return status;
    struct maq_edit *edit = calloc(EDITS_MOST, sizeof *edit);
    status = edit ? read_and_replay(cli, capture, edit) : MAQ_NO_MEMORY;
    free(edit);
    maq_capture_free(capture);
    return status;
}

const struct cli_command cli_replay = {
    .name = "replay",
    .args = "JOB.mqt|FOLDER|TRACE... [OPTION...]",
    .summary = "replay a captured job at full scale, with stragglers, failures or on other machines",
    .about = "Every rank of the job goes through what was captured of its class; collectives and messages meet. The "
             "answer is when each ends, how long its steps take, and what it waits for. Exits with 1 where ranks wait "
             "for each other for ever, or where a failure ends the job.\n",
    .examples = "  maquette replay job.mqt\n"
                "  maquette replay job.mqt --slow rank:17=1.3x\n"
                "  maquette replay job.mqt --cluster \"h200-sxm:8 x 4, rail 400G\" --trace job.pftrace\n"
                "  maquette replay job.mqt --fail node:2=step:3\n",
    .options = options,
    .n_options = CLI_COUNT(options),
    .max_args = SIZE_MAX,
    .callable = true,
    .run = run,
};
