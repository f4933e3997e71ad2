/* SPDX-License-Identifier: Apache-2.0 */
/* predict.h - `maquette plan --predict FILE`: a plan that was written down, on the job's node groups. */
#ifndef MAQ_CLI_PLAN_PREDICT_H
#define MAQ_CLI_PLAN_PREDICT_H

#include "cli/cli.h"

struct cli_predict_options {
    const char *file, *output, *html; /* the plan; NULL = standard output; a page beside it, or NULL */
    bool json;
};

/* MAQ_NO where it does not fit. */
enum maq_status cli_plan_predict(struct cli *cli, const struct maq_loaded_job *open,
                                 const struct cli_predict_options *o);

#endif
