/* SPDX-License-Identifier: Apache-2.0 */
/* loads.h - the same deployment under other loads, for the page that shows throughput against latency. */
#ifndef MAQ_CLI_SERVE_LOADS_H
#define MAQ_CLI_SERVE_LOADS_H

#include "cli/serve/options.h"

#define SERVE_LOADS_MAX 12

struct serve_loads {
    struct maq_report_serve_load at[SERVE_LOADS_MAX];
    uint32_t n;
    enum maq_report_load_kind kind;
};

/*
 * Runs the fleet under fractions and multiples of the load that `given` asks for, of which `run` is the outcome. Nothing (n = 0) where each
 * run would take too long.
 */
enum maq_status cli_serve_loads(struct serve_loads *out, struct cli *cli, const struct maq_fleet *fleet,
                                const struct serve_given *given, const struct maq_serve_result *run);

#endif
