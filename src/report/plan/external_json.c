/* external_json.c - plans composed of what a parallelizer answers as JSON, schema "maquette.plan.slices/1"; see docs/json.md. */
#include "maquette/report.h"
#include "report/job_json.h"
#include "report/json_util.h"
#include "report/words.h"

static void add_stage(struct maq_json list, const struct maq_slices_stage *s)
{
    struct maq_json map = maq_json_item(list);
    maq_json_int(map, "island", s->island);
    maq_json_int(map, "piece", s->piece);
    maq_json_int(map, "first_layer", s->first_layer);
    maq_json_int(map, "layers", s->layers);
    maq_json_int(map, "devices", s->devices);
    maq_json_int(map, "replicas", s->replicas);
    if (s->tp > 0) {
        maq_json_int(map, "tensor_model_parallel_size", s->tp);
        maq_json_int(map, "context_parallel_size", s->cp);
        maq_json_int(map, "expert_model_parallel_size", s->ep);
        maq_json_int(map, "micro_batch_size", s->micro_batch);
    }
    if (s->recompute >= 0)
        maq_json_text(map, "recompute", maq_words_recompute(s->recompute));
    if (s->sharding >= 0)
        maq_json_text(map, "sharding", maq_words_sharding(s->sharding));
    maq_json_real(map, "compute_s", s->compute_s);
    maq_json_real(map, "hop_s", s->hop_s);
    maq_json_real(map, "sync_s", s->sync_s);
    maq_json_real(map, "once_s", s->once_s);
    maq_json_real(map, "memory_bytes", s->memory_bytes);
    maq_json_real(map, "capacity_bytes", s->capacity_bytes);
    maq_json_int(map, "in_flight", s->in_flight);
}

static void add_piece(struct maq_json list, const struct maq_slices_piece *p)
{
    struct maq_json map = maq_json_item(list);
    maq_json_int(map, "island", p->island);
    maq_json_int(map, "first_layer", p->first_layer);
    maq_json_int(map, "layers", p->layers);
    maq_json_int(map, "first_stage", p->first_stage);
    maq_json_int(map, "stages", p->n_stages);
    maq_json_text(map, "text", p->text);
}

static void add_plan(struct maq_json list, const struct maq_slices_plan *p)
{
    struct maq_json map = maq_json_item(list);
    maq_json_real(map, "step_time_s", p->step_s);
    maq_json_int(map, "waves", p->waves);
    maq_json_int(map, "wave_samples", p->wave_samples);
    maq_json_real(map, "bottleneck_s", p->bottleneck_s);
    maq_json_int(map, "bottleneck_stage", p->bottleneck);
    maq_json_real(map, "fill_s", p->fill_s);
    maq_json_real(map, "sync_s", p->sync_s);
    struct maq_json stages = maq_json_list(map, "stages"), pieces = maq_json_list(map, "pieces");
    for (uint32_t i = 0; i < p->n_stages; i++)
        add_stage(stages, &p->stages[i]);
    for (uint32_t i = 0; i < p->n_pieces; i++)
        add_piece(pieces, &p->pieces[i]);
}

static void add_parallelizer(struct maq_json map, const struct maq_slices_result *r)
{
    const struct maq_slices_calls *c = &r->calls;
    maq_json_text(map, "name", r->parallelizer);
    maq_json_int(map, "atoms", r->n_atoms);
    maq_json_int(map, "slices", r->n_slices);
    maq_json_int(map, "different_slices", r->n_distinct);
    struct maq_json calls = maq_json_map(map, "calls");
    maq_json_int(calls, "all", (int64_t)c->all);
    maq_json_int(calls, "made", (int64_t)c->made);
    maq_json_int(calls, "saved_by_redundancy", (int64_t)c->redundancy);
    maq_json_int(calls, "saved_by_infeasibility", (int64_t)c->infeasibility);
    maq_json_int(calls, "saved_by_imbalance", (int64_t)c->imbalance);
    maq_json_int(calls, "saved_by_reuse", (int64_t)c->reuse);
    maq_json_int(calls, "plans", (int64_t)c->plans);
    maq_json_int(calls, "profiles", (int64_t)c->profiles);
}

static void add_counts(struct maq_json map, const struct maq_slices_counts *c)
{
    maq_json_int(map, "waves", (int64_t)c->waves);
    maq_json_int(map, "waves_bounded", (int64_t)c->waves_bounded);
    maq_json_int(map, "considered", (int64_t)c->considered);
    maq_json_int(map, "bounded", (int64_t)c->bounded);
    maq_json_int(map, "dominated", (int64_t)c->dominated);
}

enum maq_status maq_report_slices_json(char **out, const struct maq_report_slices *p,
                                       const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_json_document document;
    const struct maq_slices_result *r = p->search;
    (void)opts;
    maq_json_begin(&document, "maquette.plan.slices/1");
    struct maq_json d = document.root;
    maq_json_open_job(maq_json_map(d, "job"), maq_job_get(p->open));
    maq_json_bool(d, "fits", r->n_plans > 0);
    maq_json_bool(d, "exact", r->n_plans > 0 && r->exact);
    if (r->n_plans > 0) {
        maq_json_real(d, "step_time_s", r->plans[0].step_s);
        maq_json_real(d, "lower_bound_s", r->bound_s);
        maq_json_real(d, "gap", r->gap);
    }
    add_parallelizer(maq_json_map(d, "parallelizer"), r);
    add_counts(maq_json_map(d, "counts"), &r->counts);
    struct maq_json islands = maq_json_list(d, "islands"), plans = maq_json_list(d, "plans");
    for (uint32_t g = 0; g < r->n_islands; g++) {
        struct maq_json map = maq_json_item(islands);
        maq_json_text(map, "device", r->islands[g].device);
        maq_json_int(map, "nodes", r->islands[g].nodes);
        maq_json_int(map, "devices_per_node", r->islands[g].devices_per_node);
        maq_json_int(map, "used", r->islands[g].used);
    }
    for (uint32_t i = 0; i < r->n_plans; i++)
        add_plan(plans, &r->plans[i]);
    return maq_json_finish(out, &document, diag);
}
