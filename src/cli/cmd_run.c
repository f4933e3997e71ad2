/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_run.c - `maquette run`: a program as one rank of many, or as all of a few, without a GPU. */
#include <string.h>

#include "cli/codes.h"
#include "cli/launch_options.h"

#define STALL_S 20 /* loading a library on a busy machine takes processor time: it does not look like this */

enum { OPT_RANK = CLI_LAUNCH_COUNT, OPT_ALL, OPT_ALONE, OPT_KEPT, OPT_STALL, OPT_TRACE };

static const struct cli_option options[] = {
    CLI_LAUNCH_OPTIONS,
    [OPT_RANK] = {"--rank", CLI_VALUE, "R", "the rank that runs (0)", NULL, NULL},
    [OPT_ALL] = {"--all", CLI_FLAG, NULL, "every rank at once, meeting each other: for small jobs", NULL, NULL},
    [OPT_ALONE] = {"--alone", CLI_FLAG, NULL, "no other rank runs first for what this one reads: that is guessed", NULL,
                   NULL},
    [OPT_KEPT] = {"--kept", CLI_VALUE, "FOLDER|none", "keeps what ranks said that ran first (~/.cache/maquette)", NULL,
                  NULL},
    [OPT_STALL] = {"--stall", CLI_VALUE, "SECONDS", "a rank that does nothing for so long has all run at once (20)",
                   NULL, NULL},
    [OPT_TRACE] = {"--trace", CLI_VALUE, "FILE", "keep the rank's trace; with --all a folder of them", NULL, NULL},
};
_Static_assert(CLI_COUNT(options) <= CLI_OPTIONS_MAX, "a value per option");

static enum maq_status report(struct cli *cli, const struct maq_launch *launch)
{
    struct maq_report_opts opts = cli_report_opts(cli, cli->values[CLI_LAUNCH_OUTPUT] != NULL);
    char *text;
    opts.color = opts.color && cli->color_err;
    enum maq_status status = cli->values[CLI_LAUNCH_JSON] ? maq_report_launch_json(&text, launch, &opts, cli->diag)
                                                          : maq_report_launch_text(&text, launch, &opts, cli->diag);
    return status == MAQ_OK ? cli_launch_write(cli, text) : status;
}

static enum maq_status run(struct cli *cli)
{
    struct maq_launch_opts opts;
    struct maq_launch *launch;
    uint32_t stall_s = 0;
    if (cli->n_before > 0)
        return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT, "maquette run [OPTION...] -- PROGRAM ARGUMENT...",
                         "'%.80s' stands before `--`", cli->args[0]);
    enum maq_status status = cli_launch_opts(&opts, cli, false);
    if (status == MAQ_OK)
        status = cli_count(cli, &opts.rank, OPT_RANK, 0, UINT32_MAX - 1, 0);
    if (status == MAQ_OK)
        status = cli_count(cli, &stall_s, OPT_STALL, 0, 1000000, STALL_S);
    if (status != MAQ_OK)
        return status;
    opts.stall_s = stall_s;
    opts.all = cli->values[OPT_ALL] != NULL;
    opts.alone = cli->values[OPT_ALONE] != NULL;
    opts.kept = cli->values[OPT_KEPT];
    opts.trace = cli->values[OPT_TRACE];
    if (opts.all && cli->values[OPT_RANK])
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "all ranks run, or one does", "--rank beside --all");
    status = maq_launch_run(&launch, &opts, cli->diag);
    cli_progress(cli, "%s", "");
    if (launch) {
        enum maq_status reported = report(cli, launch);
        status = status != MAQ_OK ? status : reported;
        cli->exit_status = launch->status;
        maq_launch_free(launch);
    }
    return status;
}

const struct cli_command cli_run = {
    .name = "run",
    .args = "--world N [OPTION...] -- PROGRAM ARGUMENT...",
    .summary = "run one rank of a real program as if all others were there, without a GPU",
    .about = "Runs an unmodified program as rank R of a job of N. CUDA's libraries, NCCL and MPI are stood in for: "
             "kernels are recorded, not run, and take the time that the cost chain gives them; collectives end as if "
             "all peers had come; every rendezvous lets the rank start alone. A rank whose words the program reads "
             "runs first. The report goes to standard error, the exit status is the program's: docs/capture.md.\n",
    .examples = "  maquette run --world 8192 --rank 4095 -- ./train_gpt2cu -i data -e d12\n"
                "  maquette run --world 8 --all --trace traces -- python train.py\n",
    .options = options,
    .n_options = CLI_COUNT(options),
    .max_args = 65536,
    .run = run,
};
