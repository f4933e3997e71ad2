/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.c - `maquette validate kernels`: tables of measured operators. */
#include "cli/cmd_validate.h"

static enum maq_status run(struct cli *cli, const char *path, const struct cli_validate_options *o)
{
    struct maq_validate_kernels_opts opts = MAQ_VALIDATE_KERNELS_OPTS_INIT;
    struct maq_validate_kernels *result;
    opts.threads = o->opts.threads;
    opts.where = o->opts.where;
    opts.n_where = o->opts.n_where;
    opts.worst = o->worst;
    opts.leave_device_out = o->leave_device_out;
    opts.best = o->analytical ? MAQ_PROVIDER_ANALYTICAL : MAQ_PROVIDER_NONE;
    enum maq_status status = maq_validate_kernels(&result, path, &opts, cli->diag);
    if (status != MAQ_OK)
        return status;
    status = CLI_VALIDATE_PAGE(cli, o, "kernels", maq_validate_kernels_text(result), maq_validate_kernels_json(result),
                               maq_validate_kernels_svg(result));
    if (status == MAQ_OK)
        status = cli_validate_write(
            cli, o->json ? maq_validate_kernels_json(result) : maq_validate_kernels_text(result), o->output);
    if (status == MAQ_OK && o->plot)
        status = cli_validate_write(cli, maq_validate_kernels_svg(result), o->plot);
    if (status == MAQ_OK && result->n_by_op == 0)
        status = MAQ_NO;
    maq_validate_kernels_free(result);
    return status;
}

const struct cli_validation cli_validate_kernels = {.name = "kernels", .run = run};
