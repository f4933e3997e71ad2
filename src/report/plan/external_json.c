/* SPDX-License-Identifier: Apache-2.0 */
/* external_json.c - plans composed of what a parallelizer answers as JSON, schema "maquette.plan.slices/1"; see docs/json.md. */
#include "maquette/report.h"
#include "report/job_json.h"
#include "report/json_util.h"
#include "report/words.h"

static void add_stage(struct maq_json list, const struct maq_slices_stage *s)
{
    struct maq_json map = maq_json_item(list);
    MAQ_JSON_INTS(map, {"island", s->island}, {"piece", s->piece}, {"first_layer", s->first_layer},
                  {"layers", s->layers}, {"devices", s->devices}, {"replicas", s->replicas});
    if (s->tp > 0)
        MAQ_JSON_INTS(map, {"tensor_model_parallel_size", s->tp}, {"context_parallel_size", s->cp},
                      {"expert_model_parallel_size", s->ep}, {"micro_batch_size", s->micro_batch});
    if (s->recompute >= 0)
        maq_json_text(map, "recompute", maq_words_recompute(s->recompute));
    if (s->sharding >= 0)
        maq_json_text(map, "sharding", maq_words_sharding(s->sharding));
    MAQ_JSON_REALS(map, {"compute_s", s->compute_s}, {"hop_s", s->hop_s}, {"sync_s", s->sync_s}, {"once_s", s->once_s},
                   {"memory_bytes", s->memory_bytes}, {"capacity_bytes", s->capacity_bytes});
    maq_json_int(map, "in_flight", s->in_flight);
}

static void add_piece(struct maq_json list, const struct maq_slices_piece *p)
{
    struct maq_json map = maq_json_item(list);
    MAQ_JSON_INTS(map, {"island", p->island}, {"first_layer", p->first_layer}, {"layers", p->layers},
                  {"first_stage", p->first_stage}, {"stages", p->n_stages});
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
    MAQ_JSON_INTS(map, {"atoms", r->n_atoms}, {"slices", r->n_slices}, {"different_slices", r->n_distinct});
    struct maq_json calls = maq_json_map(map, "calls");
    MAQ_JSON_INTS(calls, {"all", c->all}, {"made", c->made}, {"saved_by_redundancy", c->redundancy},
                  {"saved_by_infeasibility", c->infeasibility}, {"saved_by_imbalance", c->imbalance},
                  {"saved_by_reuse", c->reuse}, {"plans", c->plans}, {"profiles", c->profiles});
}

static void add_counts(struct maq_json map, const struct maq_slices_counts *c)
{
    MAQ_JSON_INTS(map, {"waves", c->waves}, {"waves_bounded", c->waves_bounded}, {"considered", c->considered},
                  {"bounded", c->bounded}, {"dominated", c->dominated});
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
        MAQ_JSON_REALS(d, {"step_time_s", r->plans[0].step_s}, {"lower_bound_s", r->bound_s}, {"gap", r->gap});
    }
    add_parallelizer(maq_json_map(d, "parallelizer"), r);
    add_counts(maq_json_map(d, "counts"), &r->counts);
    struct maq_json islands = maq_json_list(d, "islands"), plans = maq_json_list(d, "plans");
    for (uint32_t g = 0; g < r->n_islands; g++)
        (void)maq_json_island(islands, r->islands[g].device, r->islands[g].nodes, r->islands[g].devices_per_node,
                              r->islands[g].used);
    for (uint32_t i = 0; i < r->n_plans; i++)
        add_plan(plans, &r->plans[i]);
    return maq_json_finish(out, &document, diag);
}
