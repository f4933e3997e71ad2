/* SPDX-License-Identifier: Apache-2.0 */
/*
 * what_if.h - other settings beside what is asked, under the same requests and failures.
 *
 *   --what-if 'replicas=4; spare-nodes=1 start-time=30s'      alternatives between semicolons, settings of one between spaces
 *
 * A setting is an option of the fleet or of its deployment without its dashes; what comes of requests, bounds, draws and their seed is common to all.
 */
#ifndef MAQ_CLI_SERVE_WHAT_IF_H
#define MAQ_CLI_SERVE_WHAT_IF_H

#include "cli/serve/options.h"

/* Alternatives of --what-if: 0 = none. */
uint32_t cli_serve_what_ifs(const struct cli *cli);
/* The settings of one of them over cli->values; *what is its text. */
enum maq_status cli_serve_set_what_if(const char **what, struct cli *cli, const char *list, uint32_t number);

#endif
