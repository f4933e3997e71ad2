/* SPDX-License-Identifier: Apache-2.0 */
/* serve.c - `maquette validate serve`: measured serving runs. */
#include "cli/cmd_validate.h"

static enum maq_status run(struct cli *cli, const char *path, const struct cli_validate_options *o)
{
    struct maq_validate_serve *result;
    enum maq_status status = maq_validate_serve(&result, path, &o->opts, cli->diag);
    if (status != MAQ_OK)
        return status;
    status = CLI_VALIDATE_PAGE(cli, o, "serve", maq_validate_serve_text(result, o->worst),
                               maq_validate_serve_json(result), NULL);
    if (status == MAQ_OK)
        status = cli_validate_write(
            cli, o->json ? maq_validate_serve_json(result) : maq_validate_serve_text(result, o->worst), o->output);
    if (status == MAQ_OK && result->n == 0)
        status = MAQ_NO;
    maq_validate_serve_free(result);
    return status;
}

const struct cli_validation cli_validate_serve = {.name = "serve", .run = run};
