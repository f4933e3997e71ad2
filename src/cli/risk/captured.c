/* SPDX-License-Identifier: Apache-2.0 */
/* captured.c - `maquette risk JOB.mqt`: how long all of a captured job takes, with given stragglers. */
#include <stdlib.h>

#include "cli/codes.h"
#include "cli/graph_export.h"
#include "cli/risk/captured.h"
#include "maquette/replay.h"

/* What each rank of the job is slow by, 1 where nothing is said of it. */
struct ranks {
    double *kernels, *communication; /* [world] */
};

/* Where two parts name a rank, the slower counts. */
static enum maq_status apply(struct cli *cli, const struct ranks *r, const char *text,
                             const struct maq_capture *capture)
{
    struct maq_edit edit;
    enum maq_status status = maq_edit_slow(&edit, text, capture, cli->diag);
    if (status != MAQ_OK)
        return status;
    if (edit.from > 0 || edit.to != UINT32_MAX)
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "maquette replay job.mqt --slow rank:17=1.3x@step:2..5",
                         "--slow %.80s: a distribution is of all steps", text);
    for (uint32_t i = 0; i < edit.count && edit.first + (uint64_t)i * edit.stride < capture->world; i++) {
        uint32_t rank = edit.first + i * edit.stride;
        double *factor = edit.kind == MAQ_EDIT_LINK ? &r->communication[rank] : &r->kernels[rank];
        *factor = edit.factor > *factor || *factor == 1 ? edit.factor : *factor;
    }
    return MAQ_OK;
}

/* Ranks of a class that are slow alike are one entry. */
static uint32_t gather(struct maq_risk_slow_class *out, const struct ranks *r, const struct maq_capture *capture)
{
    uint32_t n = 0;
    for (uint32_t rank = 0; rank < capture->world; rank++) {
        double kernels = r->kernels[rank], communication = r->communication[rank];
        uint32_t c = capture->class_of[rank], i = 0;
        if (c == UINT32_MAX || (kernels == 1 && communication == 1))
            continue;
        while (i < n && (out[i].class_id != c || out[i].kernels != kernels || out[i].communication != communication))
            i++;
        n += i == n;
        out[i] = (struct maq_risk_slow_class){c, out[i].ranks + 1, kernels, communication};
    }
    return n;
}

enum maq_status cli_risk_captured(struct cli *cli, const char *const *slow, uint32_t n_slow,
                                  struct maq_risk_graph_opts *opts, bool json, const char *file, const char *html)
{
    struct maq_capture *capture;
    enum maq_status status = maq_capture_read(&capture, cli->args, 1, cli->diag);
    if (status != MAQ_OK)
        return status;
    size_t world = capture->world;
    struct ranks r = {malloc((world + 1) * sizeof(double)), malloc((world + 1) * sizeof(double))};
    struct maq_risk_slow_class *classes = calloc(world + 1, sizeof *classes);
    if (!r.kernels || !r.communication || !classes)
        status = maq_diag_fail(MAQ_NO_MEMORY, cli->diag, MAQ_CODE_CLI_NO_MEMORY, (struct maq_span){0}, NULL,
                               "out of memory for ranks");
    for (size_t i = 0; status == MAQ_OK && i < world; i++)
        r.kernels[i] = r.communication[i] = 1;
    for (uint32_t i = 0; status == MAQ_OK && i < n_slow; i++)
        status = apply(cli, &r, slow[i], capture);
    if (status == MAQ_OK) {
        opts->n_slow = gather(classes, &r, capture);
        opts->slow = classes;
        status = cli_graph_risk(cli, capture, opts, json, file, html);
    }
    free(r.kernels);
    free(r.communication);
    free(classes);
    maq_capture_free(capture);
    return status;
}
