/* SPDX-License-Identifier: Apache-2.0 */
/* mixed.h - `maquette plan` over several node groups. */
#ifndef MAQ_CLI_PLAN_MIXED_H
#define MAQ_CLI_PLAN_MIXED_H

#include "cli/cli.h"

struct cli_mixed_options {
    const char *output, *write, *planner, *html; /* planner: a name; NULL = all. html: a page as well; NULL = none */
    bool json, explain, one_pipeline;
    uint32_t top, threads;
    const volatile sig_atomic_t *stop;
};

enum maq_status cli_plan_mixed(struct cli *cli, const struct maq_loaded_job *open, const struct cli_mixed_options *o);

#endif
