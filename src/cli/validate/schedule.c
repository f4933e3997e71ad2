/* SPDX-License-Identifier: Apache-2.0 */
/* schedule.c - `maquette validate schedule`: recordings of real schedulers. */
#include "cli/cmd_validate.h"

static enum maq_status run(struct cli *cli, const char *path, const struct cli_validate_options *o)
{
    struct maq_validate_schedule *result;
    (void)path;
    enum maq_status status = maq_validate_schedule(&result, cli->args + 1, cli->n_args - 1, cli->diag);
    if (status != MAQ_OK)
        return status;
    status = CLI_VALIDATE_PAGE(cli, o, "schedule", maq_validate_schedule_text(result),
                               maq_validate_schedule_json(result), NULL);
    if (status == MAQ_OK)
        status = cli_validate_write(
            cli, o->json ? maq_validate_schedule_json(result) : maq_validate_schedule_text(result), o->output);
    if (status == MAQ_OK && result->equal < result->n)
        status = MAQ_NO;
    maq_validate_schedule_free(result);
    return status;
}

const struct cli_validation cli_validate_schedule = {.name = "schedule", .run = run, .many = true};
