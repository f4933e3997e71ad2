/* SPDX-License-Identifier: Apache-2.0 */
/* measured.h - `maquette plan --profile DIR`: composition from measured layers. */
#ifndef MAQ_CLI_PLAN_MEASURED_H
#define MAQ_CLI_PLAN_MEASURED_H

#include "cli/cli.h"

struct cli_compose_options {
    const char *folder, *class_name, *output, *write, *html; /* NULL = not given */
    bool json;
    uint32_t top, threads;
};

/* Model, cluster and batch are those of the overrides that options made. */
enum maq_status cli_plan_profile(struct cli *cli, const struct cli_compose_options *options);

#endif
