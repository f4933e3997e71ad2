/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch_options.c - the table of options that `run`, `capture` and `emulate` share, their values as
 * maq_launch_opts, and the progress line. See launch_options.h.
 */
#include "cli/launch_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/codes.h"

const char *const cli_generations[] = {"12", "13", "auto", "none", "gpu", NULL};
const char *const cli_clocks[] = {"virtual", "real", NULL};

#define MOST_RANKS (1u << 20)
#define MOST_SECONDS 1000000u

static void on_progress(void *context, const struct maq_launch_progress *at)
{
    struct cli *cli = context;
    if (at->of > 0 && at->left_s > 0)
        cli_progress(cli, "%s, %u of %u slices, %.0f s, about %.0f s left in it", at->phase, at->done, at->of,
                     at->seconds, at->left_s);
    else if (at->of > 0)
        cli_progress(cli, "%s, %u of %u slices, %.0f s", at->phase, at->done, at->of, at->seconds);
    else
        cli_progress(cli, "%s, %.0f s", at->phase, at->seconds);
}

static uint32_t generation(const char *word)
{
    if (!word || strcmp(word, "auto") == 0)
        return 0;
    if (strcmp(word, "none") == 0)
        return MAQ_LAUNCH_NO_LIBRARIES;
    if (strcmp(word, "gpu") == 0)
        return MAQ_LAUNCH_GPU;
    return word[1] == '2' ? 12 : 13;
}

enum maq_status cli_launch_opts(struct maq_launch_opts *out, struct cli *cli, bool captured)
{
    uint32_t seconds;
    *out = (struct maq_launch_opts)MAQ_LAUNCH_OPTS_INIT;
    if (cli->n_args == cli->n_before) {
        char hint[96];
        (void)snprintf(hint, sizeof hint, "maquette %s ... -- PROGRAM ARGUMENT...", cli->command->name);
        return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT, hint, "there is no program after `--`");
    }
    enum maq_status status = cli_count(cli, &out->world, CLI_LAUNCH_WORLD, 1, MOST_RANKS, 0);
    if (status == MAQ_OK)
        status = cli_count(cli, &out->per_node, CLI_LAUNCH_PER_NODE, 1, 1024, 0);
    if (status == MAQ_OK)
        status = cli_count(cli, &seconds, CLI_LAUNCH_TIMEOUT, 1, MOST_SECONDS, 0);
    if (status != MAQ_OK)
        return status;
    if (captured && (out->world || out->per_node))
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "leave it out", "%s: the captured job says that",
                         out->world ? "--world" : "--per-node");
    if (!captured && !out->world && !cli->values[CLI_LAUNCH_CLUSTER])
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "--world 8192, or --cluster",
                         "it is not said how many ranks the job has");
    const char *ports = cli->values[CLI_LAUNCH_TCP];
    if (ports && (!*ports || strspn(ports, "0123456789,") != strlen(ports)))
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "--tcp 12345,29400", "--tcp: '%.60s' is no list of ports", ports);
    if (cli->values[CLI_LAUNCH_CLUSTER] && cli->values[CLI_LAUNCH_DEVICE])
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "a cluster says what its devices are", "--device beside --cluster");
    out->arguments = cli->args + cli->n_before;
    out->cluster = cli->values[CLI_LAUNCH_CLUSTER];
    out->device = cli->values[CLI_LAUNCH_DEVICE];
    out->libraries = generation(cli->values[CLI_LAUNCH_LIBRARIES]);
    out->memory = cli->values[CLI_LAUNCH_MEMORY];
    out->values = cli->values[CLI_LAUNCH_VALUES];
    out->nccl_memory = cli->values[CLI_LAUNCH_NCCL_MEMORY];
    out->tcp = cli->values[CLI_LAUNCH_TCP];
    out->measured = cli->values[CLI_LAUNCH_MEASURED];
    out->kernels = cli->values[CLI_LAUNCH_KERNELS];
    out->real_clock = cli->values[CLI_LAUNCH_CLOCK] && strcmp(cli->values[CLI_LAUNCH_CLOCK], "real") == 0;
    out->timeout_s = seconds;
    out->stop = cli_catch_ends();
    out->progress = on_progress;
    out->context = cli;
    return MAQ_OK;
}

enum maq_status cli_launch_write(struct cli *cli, char *text)
{
    cli_progress(cli, "%s", "");
    if (cli->values[CLI_LAUNCH_OUTPUT])
        return cli_write(cli, text, cli->values[CLI_LAUNCH_OUTPUT]);
    (void)fflush(stdout);
    bool fine = fputs(text, stderr) >= 0;
    free(text);
    return fine ? MAQ_OK
                : maq_diag_fail(MAQ_IO, cli->diag, MAQ_CODE_CLI_OUTPUT, (struct maq_span){0}, NULL,
                                "the report cannot be written");
}
