/* SPDX-License-Identifier: Apache-2.0 */
/* captured.h - `maquette risk JOB.mqt`. */
#ifndef MAQ_CLI_RISK_CAPTURED_H
#define MAQ_CLI_RISK_CAPTURED_H

#include "cli/cli.h"

/* Of the capture in the first argument; slow: parts of --slow, in the words of maquette replay. Writes the report; html: a page beside it, or NULL. */
enum maq_status cli_risk_captured(struct cli *cli, const char *const *slow, uint32_t n_slow,
                                  struct maq_risk_graph_opts *opts, bool json, const char *file, const char *html);

#endif
