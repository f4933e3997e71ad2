/* SPDX-License-Identifier: Apache-2.0 */
/* external.h - `maquette plan --parallelizer`. */
#ifndef MAQ_CLI_PLAN_EXTERNAL_H
#define MAQ_CLI_PLAN_EXTERNAL_H

#include "cli/cli.h"

struct cli_slices_options {
    const char *parallelizer, *output, *write, *html;
    bool json;
    uint32_t top, workers, timeout_s;
    const volatile sig_atomic_t *stop;
};

enum maq_status cli_plan_slices(struct cli *cli, const struct maq_loaded_job *open, const struct cli_slices_options *o);

#endif
