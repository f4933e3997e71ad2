/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vary.h - the same question with other values of some options: every combination of them, a row each.
 *
 *   --vary rate=2..64:x2 --vary tp=2,4,8 --vary engine=vllm,sglang      values of an option without its dashes, or a range of numbers
 *
 * Processes that were started together (maquette/peers.h) take the combinations in turn, and process 0 reports for all: the same, to the byte, for any
 * number of them.
 */
#ifndef MAQ_CLI_SERVE_VARY_H
#define MAQ_CLI_SERVE_VARY_H

#include "cli/serve/options.h"

/*
 * Runs and reports them. serve() answers one, with its values in cli->values and among the overrides: what it says in cli->diag of one that fails is its
 * row's `why`. MAQ_NO: none fits and holds its bounds.
 */
enum maq_status cli_serve_vary(struct cli *cli,
                               enum maq_status (*serve)(struct maq_serve_variant *out, struct cli *cli));

#endif
