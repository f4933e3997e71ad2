/* SPDX-License-Identifier: Apache-2.0 */
/* choice.c - `maquette validate choice`: deployments chosen by prediction, judged by measurement. */
#include <stdlib.h>

#include "cli/cmd_validate.h"

static enum maq_status run(struct cli *cli, const char *path, const struct cli_validate_options *o)
{
    struct maq_validate_serve *rows;
    struct maq_validate_choice *result = NULL;
    enum maq_status status = maq_validate_serve(&rows, path, &o->opts, cli->diag);
    if (status != MAQ_OK)
        return status;
    status = maq_validate_choice(&result, rows, cli->diag);
    if (status == MAQ_OK)
        status = CLI_VALIDATE_PAGE(cli, o, "choice", maq_validate_choice_text(result), maq_validate_choice_json(result),
                                   NULL);
    if (status == MAQ_OK)
        status = cli_validate_write(cli, o->json ? maq_validate_choice_json(result) : maq_validate_choice_text(result),
                                    o->output);
    if (status == MAQ_OK && result->n_groups == 0)
        status = MAQ_NO;
    free(result);
    maq_validate_serve_free(rows);
    return status;
}

const struct cli_validation cli_validate_choice = {.name = "choice", .run = run};
