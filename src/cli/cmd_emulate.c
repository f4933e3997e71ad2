/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_emulate.c - `maquette emulate`: chosen ranks of a captured job live, all others replayed around them. */
#include <stdlib.h>
#include <string.h>

#include "cli/codes.h"
#include "cli/launch_options.h"

enum { OPT_RANK = CLI_LAUNCH_COUNT, OPT_SLOW };

static const struct cli_option options[] = {
    CLI_LAUNCH_OPTIONS,
    [OPT_RANK] = {"--rank", CLI_LIST, "R[,R...]", "the ranks that live", NULL, NULL},
    [OPT_SLOW] = {"--slow", CLI_LIST, "EDIT[,EDIT...]",
                  "stragglers among the others: rank:17=1.3x, node:3=1.2x; as of maquette replay", NULL, NULL},
};
_Static_assert(CLI_COUNT(options) <= CLI_OPTIONS_MAX, "a value per option");

/* "a,b,c" as a list, to be freed; its words live as long as the run. NULL when out of memory. */
static const char **cut(struct cli *cli, const char *text, uint32_t *n)
{
    char *copy = cli_printf(cli, "%s", text ? text : "");
    const char **list = copy ? calloc(strlen(copy) + 1, sizeof *list) : NULL;
    *n = 0;
    for (char *at = copy; list && *at;) {
        size_t len = strcspn(at, ",");
        bool last = at[len] == '\0';
        at[len] = '\0';
        list[(*n)++] = at;
        at += len + !last;
    }
    return list;
}

static enum maq_status read_ranks(struct cli *cli, uint32_t **ranks, uint32_t *n)
{
    const char **texts = cut(cli, cli->values[OPT_RANK], n);
    enum maq_status status = MAQ_OK;
    *ranks = texts ? calloc(*n + 1, sizeof **ranks) : NULL;
    if (!*ranks)
        status = MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < *n && status == MAQ_OK; i++) {
        uint64_t rank = 0;
        size_t digits = strspn(texts[i], "0123456789");
        for (size_t k = 0; k < digits && rank <= UINT32_MAX; k++)
            rank = rank * 10 + (uint64_t)(texts[i][k] - '0');
        if (digits == 0 || texts[i][digits] != '\0' || rank >= UINT32_MAX)
            status = cli_usage(cli, MAQ_CODE_CLI_VALUE, "--rank 0,4095", "--rank does not take '%.80s'", texts[i]);
        (*ranks)[i] = (uint32_t)rank;
    }
    free(texts);
    return status;
}

static enum maq_status report(struct cli *cli, const struct maq_launch *launch)
{
    struct maq_report_opts opts = cli_report_opts(cli, cli->values[CLI_LAUNCH_OUTPUT] != NULL);
    char *text;
    opts.color = opts.color && cli->color_err;
    enum maq_status status = cli->values[CLI_LAUNCH_JSON]
                                 ? maq_report_launch_emulate_json(&text, launch, &opts, cli->diag)
                                 : maq_report_launch_emulate_text(&text, launch, &opts, cli->diag);
    return status == MAQ_OK ? cli_launch_write(cli, text) : status;
}

static enum maq_status emulate(struct cli *cli, struct maq_launch_emulate_opts *opts)
{
    struct maq_launch *launch;
    enum maq_status status = maq_launch_emulate(&launch, opts, cli->diag);
    cli_progress(cli, "%s", "");
    if (launch) {
        enum maq_status reported = report(cli, launch);
        status = status != MAQ_OK ? status : reported;
        cli->exit_status = launch->status;
        maq_launch_free(launch);
    }
    return status;
}

static enum maq_status run(struct cli *cli)
{
    struct maq_launch_emulate_opts opts = MAQ_LAUNCH_EMULATE_OPTS_INIT;
    const char **slow = NULL;
    uint32_t *ranks = NULL;
    if (cli->n_before != 1)
        return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT, "maquette emulate JOB.mqt --rank 0 -- PROGRAM ARGUMENT...",
                         cli->n_before == 0 ? "there is no captured job" : "there is more than one captured job");
    opts.path = cli->args[0];
    enum maq_status status = cli_launch_opts(&opts.run, cli, true);
    if (status == MAQ_OK)
        status = read_ranks(cli, &ranks, &opts.n_ranks);
    opts.rank = ranks;
    if (status == MAQ_OK) {
        slow = cut(cli, cli->values[OPT_SLOW], &opts.n_slow);
        opts.slow = slow;
        status = slow ? emulate(cli, &opts) : MAQ_NO_MEMORY;
    }
    free(slow);
    free(ranks);
    return status;
}

const struct cli_command cli_emulate = {
    .name = "emulate",
    .args = "JOB.mqt --rank R[,R...] [OPTION...] -- PROGRAM ARGUMENT...",
    .summary = "run chosen ranks of a captured job while all others are replayed",
    .about = "Runs the program as some ranks of a captured job. All other ranks are the capture's, replayed: "
             "collectives and messages of live ranks wait for them and they for the live ones, in virtual time. The "
             "report sets each live rank's time and memory beside the replay of the whole job, and says where its "
             "program was not that of its class. docs/capture.md.\n",
    .examples = "  maquette emulate job.mqt --rank 0,4095 -- ./train_gpt2cu -i data -e d12\n"
                "  maquette emulate job.mqt --rank 0 --slow rank:17=1.3x -- python pretrain_gpt.py\n",
    .options = options,
    .n_options = CLI_COUNT(options),
    .max_args = 65536,
    .run = run,
};
