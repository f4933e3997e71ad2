/* SPDX-License-Identifier: Apache-2.0 */
/* uniform_json.c - the best plans of a job as JSON, schema "maquette.plan/1"; see docs/json.md. */
#include <math.h>

#include "maquette/report.h"
#include "report/job_json.h"
#include "report/json_util.h"
#include "report/money.h"
#include "report/step_json.h"

static void add_counts(struct maq_json map, const struct maq_search_counts *c)
{
    MAQ_JSON_INTS(map, {"considered", c->considered}, {"bounded", c->bounded}, {"impossible", c->impossible},
                  {"unfit", c->unfit}, {"scored", c->scored}, {"cells", c->branches});
}

static void add_scores(struct maq_json map, const struct maq_search_plan *p)
{
    maq_json_real(map, "step_time_s", p->step_s);
    maq_json_real(map, "needed_bytes", p->needed_bytes);
}

static void add_prediction(struct maq_json map, const struct maq_train_result *t)
{
    MAQ_JSON_REALS(map, {"step_time_low_s", t->step_low_s}, {"step_time_high_s", t->step_high_s},
                   {"tokens_per_s", t->tokens_per_s}, {"mfu", t->mfu});
    maq_json_buckets(maq_json_map(map, "breakdown"), t->bucket_s);
}

static void add_plans(struct maq_json d, const struct maq_report_plan *p)
{
    const struct maq_search_result *r = p->search;
    struct maq_json plans = maq_json_list(d, "plans"), pareto = maq_json_list(d, "pareto");
    for (uint32_t i = 0; i < r->n_plans; i++) {
        struct maq_json item = maq_json_item(plans);
        add_scores(item, &r->plans[i]);
        maq_json_real(item, "loss", r->plans[i].step_s / r->plans[0].step_s - 1);
        add_prediction(item, p->trains[i]);
        maq_json_money(item, maq_money_of_train(p->trains[i]));
        maq_json_plan(maq_json_map(item, "plan"), &p->trains[i]->job->plan);
    }
    for (uint32_t i = 0; i < r->n_pareto; i++) {
        struct maq_json item = maq_json_item(pareto);
        add_scores(item, &r->pareto[i]);
        maq_json_plan(maq_json_map(item, "plan"), &r->pareto[i].plan);
    }
}

static void add_headroom(struct maq_json d, const struct maq_search_headroom *h)
{
    if (!h)
        return;
    struct maq_json map = maq_json_map(d, "headroom");
    MAQ_JSON_REALS(map, {"min_fit_probability", h->min_fit_probability}, {"fit_probability", h->fit_probability});
    maq_json_count(map, "bytes", h->bytes);
    if (h->searched && h->without.step_s > 0) {
        struct maq_json without = maq_json_map(map, "without");
        add_scores(without, &h->without);
        maq_json_real(without, "fit_probability", h->without_probability);
        maq_json_plan(maq_json_map(without, "plan"), &h->without.plan);
    } else if (h->searched) {
        maq_json_null(map, "without");
    }
}

static void add_alternatives(struct maq_json d, const char *key, const struct maq_search_alternatives *a)
{
    struct maq_json list = maq_json_list(d, key);
    for (uint32_t i = 0; a && i < a->n; i++) {
        struct maq_json item = maq_json_item(list);
        maq_json_text(item, "key", a->at[i].key);
        maq_json_text(item, "from", a->at[i].from);
        maq_json_text(item, "to", a->at[i].to);
        maq_json_bool(item, "possible", a->at[i].possible);
        maq_json_bool(item, "fits", a->at[i].fits);
        maq_json_real(item, "step_time_s", a->at[i].step_s);
        maq_json_real(item, "needed_bytes", a->at[i].needed_bytes);
    }
}

static void add_remedy(struct maq_json map, const char *key, bool there, const char *what, double value,
                       const struct maq_plan *plan, double step_s)
{
    if (!there) {
        maq_json_null(map, key);
        return;
    }
    struct maq_json remedy = maq_json_map(map, key);
    if (what)
        maq_json_count(remedy, what, value);
    maq_json_real(remedy, "step_time_s", step_s);
    maq_json_plan(maq_json_map(remedy, "plan"), plan);
}

static void add_remedies(struct maq_json d, const struct maq_search_remedies *r)
{
    if (!r)
        return;
    struct maq_json map = maq_json_map(d, "remedies");
    add_remedy(map, "memory", r->memory_bytes > 0, "device_memory_bytes", r->memory_bytes, &r->with_memory,
               r->with_memory_s);
    add_remedy(map, "nodes", r->nodes > 0, "nodes", r->nodes, &r->with_nodes, r->with_nodes_s);
    add_remedy(map, "risk", r->fit_probability > 0, "fit_probability", r->fit_probability, &r->with_risk,
               r->with_risk_s);
    add_remedy(map, "offload", r->offload, NULL, 0, &r->with_offload, r->with_offload_s);
}

enum maq_status maq_report_plan_json(char **out, const struct maq_report_plan *p, const struct maq_report_opts *opts,
                                     struct maq_diag *diag)
{
    struct maq_json_document document;
    const struct maq_search_result *r = p->search;
    (void)opts;
    maq_json_begin(&document, "maquette.plan/1");
    struct maq_json d = document.root;
    maq_json_open_job(maq_json_map(d, "job"), maq_job_get(p->open));
    maq_json_bool(d, "fits", r->n_plans > 0);
    maq_json_bool(d, "complete", r->complete);
    if (r->n_plans > 0) {
        MAQ_JSON_REALS(d, {"step_time_s", r->plans[0].step_s}, {"lower_bound_s", r->bound_s},
                       {"gap", r->bound_s > 0 ? r->plans[0].step_s / r->bound_s - 1 : (double)NAN},
                       {"unproven_share", r->unproven_share});
        if (p->said && !maq_job_get(p->open)->framework.named) {
            struct maq_json megatron = maq_json_map(d, "megatron");
            maq_json_real(megatron, "step_time_s", p->said->step_s);
            maq_json_bool(megatron, "fits", p->said->fits);
        }
    }
    add_counts(maq_json_map(d, "counts"), &r->counts);
    struct maq_json space = maq_json_list(d, "space");
    for (uint32_t i = 0; i < r->n_axes; i++) {
        struct maq_json axis = maq_json_item(space);
        maq_json_text(axis, "key", r->axes[i].key);
        maq_json_text(axis, "values", r->axes[i].values);
        maq_json_bool(axis, "fixed", r->axes[i].fixed);
    }
    add_plans(d, p);
    add_headroom(d, p->headroom);
    add_alternatives(d, "alternatives", p->alternatives);
    add_alternatives(d, "settings", p->settings);
    add_remedies(d, p->remedies);
    maq_json_framework_words(d, p->words, p->said, maq_job_get(p->open)->framework.vocabulary);
    maq_json_text(d, "document", p->document);
    return maq_json_finish(out, &document, diag);
}
