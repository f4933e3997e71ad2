/* SPDX-License-Identifier: Apache-2.0 */
/* mixed_json.c - the best plans over several node groups as JSON, schema "maquette.plan.mixed/1"; see docs/json.md. */
#include "maquette/report.h"
#include "report/job_json.h"
#include "report/json_util.h"
#include "report/money.h"
#include "report/words.h"

static void add_stage(struct maq_json list, const struct maq_mixed_search_stage *s)
{
    struct maq_json map = maq_json_item(list);
    MAQ_JSON_INTS(map, {"pipeline", s->pipeline}, {"island", s->island}, {"islands", s->islands},
                  {"first_layer", s->first_layer}, {"layers", s->layers}, {"tensor_model_parallel_size", s->tp},
                  {"context_parallel_size", s->cp}, {"expert_model_parallel_size", s->ep},
                  {"expert_tensor_parallel_size", s->etp}, {"replicas", s->replicas});
    maq_json_text(map, "recompute", maq_words_recompute(s->recompute));
    maq_json_words(map, MAQ_PLAN_RECOMPUTE_MODULES, s->recompute == MAQ_RECOMPUTE_SELECTIVE ? s->recompute_parts : 0);
    maq_json_real(map, "optimizer_offload_fraction", s->optimizer_offload);
    maq_json_bool(map, "offload_activations", s->offload);
    maq_json_words(map, MAQ_PLAN_OFFLOAD_MODULES, s->offload_modules);
    maq_json_int(map, "num_distributed_optimizer_instances", s->optimizer_instances);
    maq_json_text(map, "sharding", maq_words_sharding(s->sharding));
    MAQ_JSON_REALS(map, {"compute_s", s->compute_s}, {"hop_s", s->hop_s}, {"sync_s", s->sync_s},
                   {"memory_bytes", s->memory_bytes}, {"capacity_bytes", s->capacity_bytes});
    maq_json_int(map, "in_flight", s->in_flight);
    if (s->on_devices_of >= 0)
        maq_json_int(map, "on_devices_of", s->on_devices_of);
}

static void add_plan(struct maq_json list, const struct maq_mixed_search_plan *p)
{
    struct maq_json map = maq_json_item(list);
    maq_json_real(map, "step_time_s", p->step_s);
    maq_json_real(map, "composed_s", p->composed_s);
    maq_json_bool(map, "uniform", p->uniform != NULL);
    if (p->uniform)
        maq_json_plan(maq_json_map(map, "plan"), p->uniform);
    MAQ_JSON_INTS(map, {"micro_batch_size", p->micro_batch}, {"replicas", p->replicas},
                  {"microbatches", p->microbatches}, {"virtual_pipeline_model_parallel_size", p->chunks});
    if (p->chunks > 1)
        maq_json_int(map, "microbatch_group_size_per_vp_stage", p->group);
    if (p->overlap_ep != MAQ_AUTO)
        maq_json_bool(map, "overlap_moe_expert_parallel_comm", p->overlap_ep == MAQ_ON);
    maq_json_real(map, "bottleneck_s", p->bottleneck_s);
    maq_json_int(map, "bottleneck_stage", p->bottleneck);
    MAQ_JSON_REALS(map, {"fill_s", p->fill_s}, {"wait_s", p->wait_s}, {"sync_s", p->sync_s});
    struct maq_json pipelines = maq_json_list(map, "pipelines");
    for (uint32_t i = 0; p->pipelines && i < p->n_pipelines; i++) {
        struct maq_json item = maq_json_item(pipelines);
        MAQ_JSON_INTS(item, {"replicas", p->pipelines[i].replicas}, {"microbatches", p->pipelines[i].microbatches},
                      {"replicas_with_one_less", p->pipelines[i].fewer});
    }
    struct maq_json stages = maq_json_list(map, "stages");
    for (uint32_t i = 0; i < p->n_stages; i++)
        add_stage(stages, &p->stages[i]);
}

static void add_counts(struct maq_json map, const struct maq_mixed_search_counts *c)
{
    MAQ_JSON_INTS(map, {"waves", c->waves}, {"waves_bounded", c->waves_bounded}, {"programs", c->programs},
                  {"considered", c->considered}, {"bounded", c->bounded}, {"dominated", c->dominated},
                  {"evaluated", c->evaluated});
}

static void add_headroom(struct maq_json map, const struct maq_report_mixed *p)
{
    const struct maq_mixed_search_headroom h = maq_mixed_search_headroom(p->search, 0, p->open);
    const struct maq_mixed_search_result *w = p->without;
    MAQ_JSON_REALS(map, {"min_fit_probability", p->search->min_fit_probability},
                   {"fit_probability", h.fit_probability});
    maq_json_int(map, "stage", h.stage);
    if (w && w->n_plans > 0) {
        struct maq_json without = maq_json_map(map, "without");
        maq_json_real(without, "step_time_s", w->plans[0].step_s);
        maq_json_real(without, "fit_probability", maq_mixed_search_headroom(w, 0, p->open).fit_probability);
    }
}

static void add_planners(struct maq_json d, const struct maq_report_mixed *p)
{
    struct maq_json list = maq_json_list(d, "planners");
    for (uint32_t i = 0; i < p->n_planners; i++) {
        const struct maq_mixed_search_result *r = p->planners[i];
        struct maq_json map = maq_json_item(list);
        maq_json_text(map, "planner", maq_mixed_planner_name((enum maq_mixed_planner)r->planner));
        maq_json_bool(map, "fits", r->n_plans > 0);
        if (r->n_plans > 0)
            maq_json_real(map, "step_time_s", r->plans[0].step_s);
        struct maq_json plans = maq_json_list(map, "plans");
        for (uint32_t k = 0; k < r->n_plans; k++)
            add_plan(plans, &r->plans[k]);
    }
}

static void add_remedies(struct maq_json d, const struct maq_mixed_search_remedies *r)
{
    if (!r)
        return;
    struct maq_json map = maq_json_map(d, "remedies"), nodes = maq_json_list(map, "nodes");
    struct maq_json space = maq_json_list(map, "techniques");
    for (uint32_t i = 0; i < r->n_techniques; i++)
        maq_json_word(space, r->techniques[i]);
    maq_json_real(map, "more_bytes", r->more_bytes);
    maq_json_bool(map, "as_predicted", r->as_predicted);
    for (uint32_t g = 0; g < r->n_islands; g++) {
        struct maq_json item = maq_json_item(nodes);
        maq_json_text(item, "device", r->islands[g].device);
        maq_json_int(item, "more_nodes", r->islands[g].more_nodes);
    }
}

enum maq_status maq_report_mixed_json(char **out, const struct maq_report_mixed *p, const struct maq_report_opts *opts,
                                      struct maq_diag *diag)
{
    struct maq_json_document document;
    const struct maq_mixed_search_result *r = p->search;
    (void)opts;
    maq_json_begin(&document, "maquette.plan.mixed/1");
    struct maq_json d = document.root;
    maq_json_open_job(maq_json_map(d, "job"), maq_job_get(p->open));
    maq_json_text(d, "planner", maq_mixed_planner_name((enum maq_mixed_planner)r->planner));
    maq_json_bool(d, "fits", r->n_plans > 0);
    maq_json_bool(d, "complete", r->complete);
    maq_json_bool(d, "exact", r->complete && r->n_plans > 0 && r->bound_s > 0 && r->gap <= 1e-12);
    if (r->n_plans > 0) {
        MAQ_JSON_REALS(d, {"step_time_s", r->plans[0].step_s}, {"composed_s", r->plans[0].composed_s},
                       {"lower_bound_s", r->bound_s}, {"gap", r->gap}, {"search_gap", r->search_gap});
        add_headroom(maq_json_map(d, "headroom"), p);
        maq_json_money(d, maq_money_of_mixed(maq_job_get(p->open), r));
    }
    add_counts(maq_json_map(d, "counts"), &r->counts);
    add_planners(d, p);
    add_remedies(d, p->remedies);
    struct maq_json islands = maq_json_list(d, "islands"), plans = maq_json_list(d, "plans");
    for (uint32_t g = 0; g < r->n_islands; g++) {
        struct maq_json map = maq_json_island(islands, r->islands[g].device, r->islands[g].nodes,
                                              r->islands[g].devices_per_node, r->islands[g].used);
        maq_json_positive(map, "alone_s", r->islands[g].alone_s);
    }
    for (uint32_t i = 0; i < r->n_plans; i++)
        add_plan(plans, &r->plans[i]);
    maq_json_framework_words(d, p->words, NULL, maq_job_get(p->open)->framework.vocabulary);
    maq_json_text(d, "document", p->document);
    return maq_json_finish(out, &document, diag);
}
