/* SPDX-License-Identifier: Apache-2.0 */
/* risk.c - `maquette validate risk`: published failures, goodput and variation against predictions. */
#include "cli/cmd_validate.h"

static enum maq_status run(struct cli *cli, const char *path, const struct cli_validate_options *o)
{
    struct maq_validate_risk *result;
    enum maq_status status = maq_validate_risk(&result, path, cli->diag);
    if (status != MAQ_OK)
        return status;
    status = CLI_VALIDATE_PAGE(cli, o, "risk", maq_validate_risk_text(result), maq_validate_risk_json(result), NULL);
    if (status == MAQ_OK)
        status = cli_validate_write(cli, o->json ? maq_validate_risk_json(result) : maq_validate_risk_text(result),
                                    o->output);
    if (status == MAQ_OK && result->n[MAQ_RISK_FAIL] > 0)
        status = MAQ_NO;
    maq_validate_risk_free(result);
    return status;
}

const struct cli_validation cli_validate_risk = {.name = "risk", .run = run};
