/* SPDX-License-Identifier: Apache-2.0 */
/*
 * predict.c - `maquette plan --predict`: reads a mixed plan, predicts it on the job's node groups, and prints the
 * report. See predict.h.
 */
#include "cli/plan/predict.h"

static enum maq_status report(struct cli *cli, const struct maq_report_placed *placed,
                              const struct cli_predict_options *o)
{
    struct maq_report_opts opts = cli_report_opts(cli, o->output != NULL);
    enum maq_status status = CLI_PAGE(cli, o->html, maq_report_placed, &opts, placed);
    if (status == MAQ_OK)
        status = CLI_REPORT(cli, o->json, o->output, maq_report_placed, &opts, placed);
    return status == MAQ_OK && !placed->placed->fits ? MAQ_NO : status;
}

enum maq_status cli_plan_predict(struct cli *cli, const struct maq_loaded_job *open,
                                 const struct cli_predict_options *o)
{
    struct maq_loaded_mixed_plan *loaded;
    struct maq_mixed_placed *placed;
    enum maq_status status = maq_mixed_plan_load(&loaded, o->file, cli->diag);
    if (status != MAQ_OK)
        return status;
    status = maq_mixed_place(&placed, maq_mixed_plan_get(loaded), open, cli->diag);
    if (status == MAQ_OK) {
        status = report(cli, &(struct maq_report_placed){open, maq_mixed_plan_get(loaded), placed, o->file}, o);
        maq_mixed_placed_free(placed);
    }
    maq_mixed_plan_free(loaded);
    return status;
}
