/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet.h - who serves: replicas of one deployment, two pools of them, or the members of a fleet document.
 *
 * A member of a document is read as the one deployment is: its job is the document with what it says laid over it, its options are those of the command line and
 * behind them those of its job's section `serve`.
 */
#ifndef MAQ_CLI_SERVE_FLEET_H
#define MAQ_CLI_SERVE_FLEET_H

#include "cli/serve/options.h"

struct serve_fleet {
    struct maq_fleet_member *members; /* [n] */
    uint32_t n;
    struct maq_loaded_job **loaded; /* [n], their jobs, of a document; the first one's is the caller's */
    struct serve_given *given;      /* [n], likewise */
};

/* Whether the document has a fleet, once it is loaded, in given->n_members; what does not go with one. `line`: values of the command line alone. */
enum maq_status cli_serve_begin_fleet(struct serve_given *given, struct cli *cli, const struct maq_loaded_job *loaded);
/*
 * Members, once all else is read. `prefill`: the job of a pool that options describe, NULL: there is none. `line` [CLI_OPTIONS_MAX]: values of the command line
 * alone, behind which each member's are. *out is to be ended even on failure.
 */
enum maq_status cli_serve_fleet(struct serve_fleet *out, struct cli *cli, struct serve_given *given,
                                const struct maq_loaded_job *loaded, const struct maq_job *prefill,
                                const struct serve_checkpoint *checkpoint, const char *const *line);
void cli_serve_end_fleet(struct serve_fleet *fleet);

#endif
