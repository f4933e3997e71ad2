/* SPDX-License-Identifier: Apache-2.0 */
/* collectives.c - `maquette validate collectives`: nccl-tests results. */
#include "cli/cmd_validate.h"

static enum maq_status report(struct cli *cli, const struct maq_validate_coll_result *result,
                              const struct cli_validate_options *o)
{
    enum maq_status status = CLI_VALIDATE_PAGE(cli, o, "collectives", maq_validate_coll_text(result, o->worst),
                                               maq_validate_coll_json(result), maq_validate_coll_svg(result));
    if (status != MAQ_OK)
        return status;
    char *text = o->json ? maq_validate_coll_json(result) : maq_validate_coll_text(result, o->worst);
    status = cli_validate_write(cli, text, o->output);
    if (status == MAQ_OK && o->plot)
        status = cli_validate_write(cli, maq_validate_coll_svg(result), o->plot);
    return status == MAQ_OK && result->n_groups == 0 ? MAQ_NO : status;
}

static enum maq_status run(struct cli *cli, const char *path, const struct cli_validate_options *o)
{
    struct maq_validate_coll_result *result;
    enum maq_status status = maq_validate_collectives(&result, path, &o->opts, cli->diag);
    if (status != MAQ_OK)
        return status;
    status = report(cli, result, o);
    maq_validate_coll_free(result);
    return status;
}

const struct cli_validation cli_validate_collectives = {.name = "collectives", .run = run};
