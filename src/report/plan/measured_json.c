/* SPDX-License-Identifier: Apache-2.0 */
/* measured_json.c - composed pipelines as JSON, schema "maquette.plan.composed/1"; see docs/json.md. */
#include "maquette/report.h"
#include "report/json_util.h"

static void add_stage(struct maq_json list, const struct maq_compose_problem *problem,
                      const struct maq_compose_stage *stage)
{
    struct maq_json item = maq_json_item(list);
    maq_json_int(item, "first_layer", stage->first_layer);
    maq_json_int(item, "layers", stage->layers);
    struct maq_json parts = maq_json_list(item, "parts");
    for (uint32_t i = 0; i < stage->n_parts; i++) {
        struct maq_json part = maq_json_item(parts);
        maq_json_text(part, "device", problem->pools[stage->parts[i].pool].device);
        maq_json_int(part, "tensor_model_parallel_size", stage->parts[i].tp);
        maq_json_int(part, "replicas", stage->parts[i].replicas);
    }
    MAQ_JSON_REALS(item, {"compute_s", stage->compute_s}, {"hop_s", stage->hop_s}, {"reduce_s", stage->sync_s},
                   {"memory_share", stage->memory_share});
    maq_json_int(item, "in_flight", stage->in_flight);
}

static void add_plan(struct maq_json list, const struct maq_compose_problem *problem,
                     const struct maq_compose_plan *plan)
{
    struct maq_json item = maq_json_item(list);
    maq_json_real(item, "step_time_s", plan->step_s);
    maq_json_int(item, "micro_batch_size", plan->micro_batch);
    MAQ_JSON_REALS(item, {"pipeline_s", plan->run_s}, {"reduce_s", plan->sync_s}, {"optimizer_s", plan->update_s});
    struct maq_json pipelines = maq_json_list(item, "pipelines");
    for (uint32_t p = 0; p < plan->n_pipelines; p++) {
        const struct maq_compose_pipeline *from = &plan->pipelines[p];
        struct maq_json pipeline = maq_json_item(pipelines);
        maq_json_int(pipeline, "count", from->count);
        maq_json_int(pipeline, "microbatches", from->microbatches);
        maq_json_real(pipeline, "bottleneck_s", from->bottleneck_s);
        maq_json_real(pipeline, "fill_s", from->fill_s);
        struct maq_json stages = maq_json_list(pipeline, "stages");
        for (uint32_t s = 0; s < from->n_stages; s++)
            add_stage(stages, problem, &from->stages[s]);
    }
}

enum maq_status maq_report_compose_json(char **out, const struct maq_compose_problem *problem,
                                        const struct maq_compose_result *r, const struct maq_report_opts *opts,
                                        struct maq_diag *diag)
{
    struct maq_json_document document;
    (void)opts;
    maq_json_begin(&document, "maquette.plan.composed/1");
    struct maq_json d = document.root;
    maq_json_text(d, "model", problem->model);
    maq_json_text(d, "profile", problem->folder);
    maq_json_text(d, "class", maq_compose_class_name(r->of));
    maq_json_bool(d, "fits", r->n_plans > 0);
    maq_json_bool(d, "exact", r->exact);
    if (r->n_plans > 0) {
        MAQ_JSON_REALS(d, {"step_time_s", r->plans[0].step_s}, {"lower_bound_s", r->bound_s}, {"gap", r->gap});
    }
    struct maq_json counts = maq_json_map(d, "counts");
    MAQ_JSON_INTS(counts, {"considered", r->counts.considered}, {"bounded", r->counts.bounded},
                  {"dominated", r->counts.dominated}, {"evaluated", r->counts.evaluated}, {"cases", r->counts.cases},
                  {"cases_bounded", r->counts.cases_bounded});
    struct maq_json plans = maq_json_list(d, "plans");
    for (uint32_t i = 0; i < r->n_plans; i++)
        add_plan(plans, problem, &r->plans[i]);
    return maq_json_finish(out, &document, diag);
}
