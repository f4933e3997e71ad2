/* predict_json.c - a mixed plan on the node groups of a job as JSON, schema "maquette.plan.predict/1"; see docs/json.md. */
#include "maquette/report.h"
#include "report/job_json.h"
#include "report/json_util.h"

static void add_stage(struct maq_json list, const struct maq_report_placed *r, const struct maq_mixed_placed_stage *s)
{
    const struct maq_mixed_replica *replica = &r->plan->pipelines[s->pipeline].stages[s->stage].replicas[s->column];
    struct maq_json map = maq_json_item(list);
    maq_json_int(map, "pipeline", s->pipeline);
    maq_json_int(map, "stage", s->stage);
    maq_json_int(map, "replica", s->column);
    maq_json_int(map, "replicas_alike", s->columns);
    maq_json_int(map, "group", s->group);
    maq_json_text(map, "device", s->device);
    maq_json_int(map, "first_layer", s->first_layer);
    maq_json_int(map, "layers", s->layers);
    maq_json_int(map, "tensor_model_parallel_size", replica->tp);
    maq_json_int(map, "context_parallel_size", replica->cp);
    maq_json_int(map, "expert_model_parallel_size", replica->ep);
    maq_json_int(map, "microbatches", s->microbatches);
    maq_json_int(map, "in_flight", s->in_flight);
    maq_json_real(map, "forward_s", s->forward_s);
    maq_json_real(map, "backward_s", s->backward_s);
    maq_json_real(map, "hop_s", s->hop_s);
    maq_json_real(map, "idle", s->idle);
    maq_json_real(map, "reduce_s", s->reduce_s);
    maq_json_real(map, "memory_bytes", s->memory_bytes);
    maq_json_real(map, "capacity_bytes", s->capacity_bytes);
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
    maq_json_real(d, "step_time_s", p->step_s);
    maq_json_real(d, "pipeline_s", p->pipeline_s);
    maq_json_real(d, "update_s", p->update_s);
    maq_json_bool(d, "fits", p->fits);
    maq_json_int(d, "microbatches", maq_mixed_microbatches(r->plan));
    maq_json_int(d, "micro_batch_size", r->plan->micro_batch);
    maq_json_int(d, "busiest", p->slowest);
    struct maq_json stages = maq_json_list(d, "stages");
    for (uint32_t i = 0; i < p->n_stages; i++)
        add_stage(stages, r, &p->stages[i]);
    return maq_json_finish(out, &document, diag);
}
