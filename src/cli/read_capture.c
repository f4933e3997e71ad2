/* SPDX-License-Identifier: Apache-2.0 */
/* read_capture.c - the captured jobs and traces that `graph` and `replay` are given. */
#include <string.h>

#include "cli/cli.h"
#include "cli/codes.h"

const char *const cli_comm_sizes[] = {"input", "count", NULL};

enum maq_status cli_read_capture(struct cli *cli, struct maq_capture **out, const char *comm_size)
{
    struct maq_capture_read_opts opts = MAQ_CAPTURE_READ_OPTS_INIT;
    if (cli->n_args == 0)
        return cli_usage(cli, MAQ_CODE_CLI_ARGUMENT, cli_printf(cli, "maquette %s job.mqt", cli->command->name),
                         "there is no captured job and no trace");
    if (comm_size)
        opts.comm_size = strcmp(comm_size, "count") == 0 ? MAQ_CHAKRA_SIZE_COUNT : MAQ_CHAKRA_SIZE_INPUT;
    return maq_capture_read_with(out, cli->args, (uint32_t)cli->n_args, &opts, cli->diag);
}
