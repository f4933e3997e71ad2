/* SPDX-License-Identifier: Apache-2.0 */
/* serve_log.c - `maquette validate serve-log`: recorded runs of an engine, request by request. */
#include "cli/cmd_validate.h"

static enum maq_status run(struct cli *cli, const char *path, const struct cli_validate_options *o)
{
    struct maq_validate_serve_log *result;
    enum maq_status status = maq_validate_serve_log(&result, path, cli->diag);
    if (status != MAQ_OK)
        return status;
    status = CLI_VALIDATE_PAGE(cli, o, "serve-log", maq_validate_serve_log_text(result),
                               maq_validate_serve_log_json(result), NULL);
    if (status == MAQ_OK)
        status = cli_validate_write(
            cli, o->json ? maq_validate_serve_log_json(result) : maq_validate_serve_log_text(result), o->output);
    maq_validate_serve_log_free(result);
    return status;
}

const struct cli_validation cli_validate_serve_log = {.name = "serve-log", .run = run};
