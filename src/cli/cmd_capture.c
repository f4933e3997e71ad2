/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_capture.c - `maquette capture`: what every rank of a real program does, from a few of them run one after another. */
#include <string.h>

#include "cli/codes.h"
#include "cli/launch_options.h"

enum {
    OPT_WRITE = CLI_LAUNCH_COUNT,
    OPT_TP,
    OPT_CP,
    OPT_EP,
    OPT_PP,
    OPT_SLICES,
    OPT_VERIFY,
    OPT_JOBS,
    OPT_EXPLAIN,
    OPT_KEEP,
    OPT_EVERY_PASS,
    OPT_NO_FORK_SERVER
};

static const struct cli_option options[] = {
    CLI_LAUNCH_OPTIONS,
    [OPT_WRITE] = {"-o", CLI_VALUE, "JOB.mqt", "the captured job", NULL, NULL},
    [OPT_TP] = {"--tp", CLI_VALUE, "N", "size of the tensor axis, to choose ranks by", NULL, NULL},
    [OPT_CP] = {"--cp", CLI_VALUE, "N", "of the context axis", NULL, NULL},
    [OPT_EP] = {"--ep", CLI_VALUE, "N", "of the expert axis", NULL, NULL},
    [OPT_PP] = {"--pp", CLI_VALUE, "N", "of the pipeline axis", NULL, NULL},
    [OPT_SLICES] = {"--slices", CLI_VALUE, "N", "ranks that are probed at first, at most (24; all of a world of 8)",
                    NULL, NULL},
    [OPT_VERIFY] = {"--verify", CLI_VALUE, "N", "ranks at random that are checked at the end (2)", NULL, NULL},
    [OPT_JOBS] = {"--jobs", CLI_VALUE, "N", "slices that run at the same time (2)", NULL, NULL},
    [OPT_EXPLAIN] = {"--explain", CLI_FLAG, NULL, "list every slice, why it was run and what came of it", NULL, NULL},
    [OPT_KEEP] = {"--keep", CLI_FLAG, NULL, "leave the slices' traces and outputs in JOB.mqt.slices", NULL, NULL},
    [OPT_EVERY_PASS] = {"--every-pass", CLI_FLAG, NULL,
                        "run slices again that would be told what they were told before", NULL, NULL},
    [OPT_NO_FORK_SERVER] = {"--no-fork-server", CLI_FLAG, NULL,
                            "start the program anew for every slice, also one of Python that could be forked", NULL,
                            NULL},
};
_Static_assert(CLI_COUNT(options) <= CLI_OPTIONS_MAX, "a value per option");

static enum maq_status read_options(struct cli *cli, struct maq_launch_capture_opts *o)
{
    const struct {
        uint32_t *to;
        size_t option;
        uint32_t least, most, otherwise;
    } counts[] = {
        {&o->tp, OPT_TP, 1, 1u << 20, 0},         {&o->cp, OPT_CP, 1, 1u << 20, 0},
        {&o->ep, OPT_EP, 1, 1u << 20, 0},         {&o->pp, OPT_PP, 1, 1u << 20, 0},
        {&o->slices, OPT_SLICES, 2, 1u << 20, 0}, {&o->verify, OPT_VERIFY, 0, 1024, 2},
        {&o->run.jobs, OPT_JOBS, 1, 64, 2},
    };
    if (cli->n_before > 0)
        return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT, "maquette capture [OPTION...] -- PROGRAM ARGUMENT...",
                         "'%.80s' stands before `--`", cli->args[0]);
    if (!cli->values[OPT_WRITE])
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "-o job.mqt", "it is not said where the captured job goes");
    enum maq_status status = cli_launch_opts(&o->run, cli, false);
    for (size_t i = 0; i < CLI_COUNT(counts) && status == MAQ_OK; i++)
        status = cli_count(cli, counts[i].to, counts[i].option, counts[i].least, counts[i].most, counts[i].otherwise);
    o->run.whole_s = o->run.timeout_s; /* of a slice: the default */
    o->run.timeout_s = 0;
    o->path = cli->values[OPT_WRITE];
    o->keep = cli->values[OPT_KEEP] != NULL;
    o->every_pass = cli->values[OPT_EVERY_PASS] != NULL;
    o->no_fork_server = cli->values[OPT_NO_FORK_SERVER] != NULL;
    return status;
}

static enum maq_status run(struct cli *cli)
{
    struct maq_launch_capture_opts opts = MAQ_LAUNCH_CAPTURE_OPTS_INIT;
    struct maq_launch *launch;
    enum maq_status status = read_options(cli, &opts);
    if (status != MAQ_OK)
        return status;
    status = maq_launch_capture(&launch, &opts, cli->diag);
    cli_progress(cli, "%s", "");
    if (!launch)
        return status;
    struct maq_report_opts report = cli_report_opts(cli, cli->values[CLI_LAUNCH_OUTPUT] != NULL);
    char *text;
    report.color = report.color && cli->color_err;
    report.explain = cli->values[OPT_EXPLAIN];
    status = cli->values[CLI_LAUNCH_JSON] ? maq_report_launch_capture_json(&text, launch, &report, cli->diag)
                                          : maq_report_launch_capture_text(&text, launch, &report, cli->diag);
    if (status == MAQ_OK)
        status = cli_launch_write(cli, text);
    maq_launch_free(launch);
    return status;
}

static const char *const often[] = {"--world", "-o",   "--per-node", "--device",  "--cluster", "--libraries",
                                    "--tp",    "--pp", "--jobs",     "--explain", "--json",    NULL};

const struct cli_command cli_capture = {
    .name = "capture",
    .args = "--world N -o JOB.mqt [OPTION...] -- PROGRAM ARGUMENT...",
    .summary = "capture what every rank of a real program does, by running a few",
    .about = "Runs a few ranks of an unmodified program, one after another: rank 0, corners of the axes, some at "
             "random. Each is told what the others were seen to say, until nothing new is said. Ranks that did not run "
             "are inferred, some of them are run to verify it, and the job is written for `maquette graph`, `replay` "
             "and `emulate`. A capture that was killed goes on where it was when it is called again. docs/capture.md "
             "has the rules.\n",
    .examples = "  maquette capture --world 8192 --tp 8 --pp 16 -o job.mqt -- python pretrain_gpt.py\n"
                "  maquette capture --world 64 --jobs 2 --explain -o job.mqt -- ./train_gpt2cu -e d12\n",
    .often = often,
    .options = options,
    .n_options = CLI_COUNT(options),
    .max_args = 65536,
    .run = run,
};
