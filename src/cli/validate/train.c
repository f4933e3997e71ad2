/* SPDX-License-Identifier: Apache-2.0 */
/* train.c - `maquette validate train`: measured training runs. */
#include <string.h>

#include "cli/cmd_validate.h"

static enum maq_status report(struct cli *cli, const struct maq_validate_result *result,
                              const struct cli_validate_options *o)
{
    bool memory = o->metric && strcmp(o->metric, "memory") == 0, compared = false;
    enum maq_status status =
        CLI_VALIDATE_PAGE(cli, o, "train", maq_validate_text(result, o->worst), maq_validate_json(result),
                          maq_validate_svg(result, memory ? MAQ_VALIDATE_MEMORY : MAQ_VALIDATE_TIME));
    if (status != MAQ_OK)
        return status;
    char *text = o->json ? maq_validate_json(result) : maq_validate_text(result, o->worst);
    status = cli_validate_write(cli, text, o->output);
    if (status == MAQ_OK && o->plot)
        status = cli_validate_write(cli, maq_validate_svg(result, memory ? MAQ_VALIDATE_MEMORY : MAQ_VALIDATE_TIME),
                                    o->plot);
    for (int m = 0; m < MAQ_VALIDATE_METRIC_COUNT; m++)
        compared |= result->total.stats[m][MAQ_VALIDATE_ALL].n > 0;
    return status == MAQ_OK && !compared ? MAQ_NO : status;
}

static enum maq_status run(struct cli *cli, const char *path, const struct cli_validate_options *o)
{
    struct maq_validate_result *result;
    enum maq_status status = maq_validate_train(&result, path, &o->opts, cli->diag);
    if (status != MAQ_OK)
        return status;
    status = report(cli, result, o);
    maq_validate_free(result);
    return status;
}

const struct cli_validation cli_validate_train = {.name = "train", .run = run};
