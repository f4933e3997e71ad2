/* SPDX-License-Identifier: Apache-2.0 */
/* predict_json.c - a mixed plan on the node groups of a job as JSON, schema "maquette.plan.predict/1"; see docs/json.md. */
#include "maquette/report.h"
#include "report/job_json.h"
#include "report/json_util.h"

static void add_stage(struct maq_json list, const struct maq_report_placed *r, const struct maq_mixed_placed_stage *s)
{
    const struct maq_mixed_replica *replica = &r->plan->pipelines[s->pipeline].stages[s->stage].replicas[s->column];
    struct maq_json map = maq_json_item(list);
    MAQ_JSON_INTS(map, {"pipeline", s->pipeline}, {"stage", s->stage}, {"replica", s->column},
                  {"replicas_alike", s->columns}, {"group", s->group});
    maq_json_text(map, "device", s->device);
    MAQ_JSON_INTS(map, {"first_layer", s->first_layer}, {"layers", s->layers},
                  {"tensor_model_parallel_size", replica->tp}, {"context_parallel_size", replica->cp},
                  {"expert_model_parallel_size", replica->ep}, {"microbatches", s->microbatches},
                  {"in_flight", s->in_flight});
    MAQ_JSON_REALS(map, {"forward_s", s->forward_s}, {"backward_s", s->backward_s}, {"hop_s", s->hop_s},
                   {"idle", s->idle}, {"reduce_s", s->reduce_s}, {"memory_bytes", s->memory_bytes},
                   {"capacity_bytes", s->capacity_bytes});
}

enum maq_status maq_report_placed_json(char **out, const struct maq_report_placed *r,
                                       const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_json_document document;
    const struct maq_mixed_placed *p = r->placed;
    (void)opts;
    maq_json_begin(&document, "maquette.plan.predict/1");
    struct maq_json d = document.root;
    maq_json_open_job(maq_json_map(d, "job"), maq_job_get(r->open));
    maq_json_text(d, "plan", r->file);
    MAQ_JSON_REALS(d, {"step_time_s", p->step_s}, {"pipeline_s", p->pipeline_s}, {"update_s", p->update_s});
    maq_json_bool(d, "fits", p->fits);
    MAQ_JSON_INTS(d, {"microbatches", maq_mixed_microbatches(r->plan)}, {"micro_batch_size", r->plan->micro_batch},
                  {"busiest", p->slowest});
    struct maq_json stages = maq_json_list(d, "stages");
    for (uint32_t i = 0; i < p->n_stages; i++)
        add_stage(stages, r, &p->stages[i]);
    return maq_json_finish(out, &document, diag);
}
