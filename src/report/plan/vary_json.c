/* SPDX-License-Identifier: Apache-2.0 */
/* vary_json.c - the best plan on other numbers and kinds of devices, schema "maquette.plan.vary/1"; see docs/json.md. */
#include "maquette/report.h"
#include "report/job_json.h"

enum maq_status maq_report_vary_json(char **out, const struct maq_search_variants *variants,
                                     const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_json_document document;
    (void)opts;
    maq_json_begin(&document, "maquette.plan.vary/1");
    struct maq_json list = maq_json_list(document.root, "variants");
    for (uint32_t i = 0; i < variants->n; i++) {
        const struct maq_search_variant *v = &variants->at[i];
        if (!v->searched)
            continue;
        struct maq_json item = maq_json_item(list);
        maq_json_text(item, "model", v->model);
        maq_json_int(item, "seq_length", v->seq);
        maq_json_int(item, "global_batch_size", v->gbs);
        maq_json_text(item, "gpu", v->gpu);
        maq_json_int(item, "gpus", v->gpus);
        maq_json_bool(item, "fits", v->train != NULL);
        if (!v->train)
            continue;
        MAQ_JSON_REALS(item, {"step_time_s", v->train->step_s}, {"mfu", v->train->mfu},
                       {"tokens_per_s", v->tokens_per_s}, {"days_per_trillion_tokens", v->days},
                       {"gpu_hours_per_trillion_tokens", v->gpu_hours});
        maq_json_positive(item, "usd_per_trillion_tokens", v->usd);
        maq_json_bool(item, "pareto", v->pareto);
        maq_json_plan(maq_json_map(item, "plan"), &v->train->job->plan);
    }
    return maq_json_finish(out, &document, diag);
}
