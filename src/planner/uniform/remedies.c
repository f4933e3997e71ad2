/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remedies.c - when nothing fits: how much memory, how many nodes, or which offloading would change that.
 *
 * Each is found by searches: more memory by bisection to a gibibyte, more nodes by doubling the first node group.
 */
#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/units.h"
#include "planner/space/space.h"

#define AT_MOST 64 /* times the job's own */
#define MOST_LISTS 64

struct owner {
    struct maq_search_result *with_memory, *with_nodes, *with_offload, *with_risk;
};

/*
 * Keeps the result in *slot where a plan fits. A job that is consistent with its own cluster may not be so with another
 * one, whose replicas do not divide the batch or are not as many as the job fixes: that is no fault to report.
 */
static enum maq_status try(struct maq_search_result **slot, bool *fits, const struct maq_loaded_job *open,
                           const struct maq_search_opts *opts, struct maq_diag *diag)
{
    struct maq_search_result *r;
    *fits = false;
    enum maq_status status = maq_search(&r, open, opts, NULL);
    if (status == MAQ_BAD_INPUT || status == MAQ_LIMIT)
        return MAQ_OK;
    if (status != MAQ_OK)
        MAQ_TRY(maq_search(&r, open, opts, diag)); /* says why */
    *fits = r->n_plans > 0;
    if (*fits) {
        maq_search_result_free(*slot);
        *slot = r;
    } else {
        maq_search_result_free(r);
    }
    return MAQ_OK;
}

static bool stopped(const struct maq_search_opts *opts)
{
    return opts->stop && *opts->stop;
}

static enum maq_status more_memory(struct maq_search_remedies *out, struct owner *o, const struct maq_loaded_job *open,
                                   struct maq_search_opts opts, struct maq_diag *diag)
{
    double has = maq_job_get(open)->cluster.groups[0].device.mem_bytes / MAQ_GIB, low = floor(has),
           high = AT_MOST * has;
    bool fits = false;
    opts.memory_bytes = high * MAQ_GIB;
    MAQ_TRY(try(&o->with_memory, &fits, open, &opts, diag));
    if (!fits)
        return MAQ_OK;
    while (high - low > 1 && !stopped(&opts)) {
        double mid =
            floor(low + high < 4 * low ? (low + high) / 2 : 2 * low); /* doubling first: little is likely enough */
        opts.memory_bytes = mid * MAQ_GIB;
        MAQ_TRY(try(&o->with_memory, &fits, open, &opts, diag));
        *(fits ? &high : &low) = mid;
    }
    out->memory_bytes = ceil(high) * MAQ_GIB;
    return MAQ_OK;
}

static enum maq_status more_nodes(struct maq_search_remedies *out, struct owner *o, const struct maq_loaded_job *open,
                                  struct maq_search_opts opts, struct maq_diag *diag)
{
    bool fits = false;
    for (opts.more_nodes = 2; opts.more_nodes <= AT_MOST && !fits && !stopped(&opts); opts.more_nodes *= 2) {
        MAQ_TRY(try(&o->with_nodes, &fits, open, &opts, diag));
        if (fits)
            out->nodes = (uint32_t)maq_job_get(open)->cluster.groups[0].nodes * opts.more_nodes;
    }
    return MAQ_OK;
}

/* What a rank can leave on the host. */
static enum maq_status offloading(struct maq_search_remedies *out, struct owner *o, const struct maq_loaded_job *open,
                                  struct maq_search_opts opts, struct maq_diag *diag)
{
    const char *lists[MOST_LISTS + 3];
    bool moe = maq_model_find_module(&maq_job_get(open)->model, MAQ_MODULE_ROUTER, MAQ_PART_COUNT);
    if (opts.n_lists > MOST_LISTS)
        return MAQ_OK;
    for (size_t i = 0; i < opts.n_lists; i++)
        lists[i] = opts.lists[i];
    lists[opts.n_lists++] = "cpu_offloading_num_layers=0,4,16,64";
    lists[opts.n_lists++] = "optimizer_offload_fraction=0,1";
    lists[opts.n_lists++] = moe ? "offload_modules=none,core_attn+attn_proj,expert_fc1+moe_act,"
                                  "core_attn+attn_proj+expert_fc1+moe_act"
                                : "offload_modules=none,core_attn+attn_proj";
    opts.lists = lists;
    return try(&o->with_offload, &out->offload, open, &opts, diag);
}

/* What fits as predicted, and in fewer runs than was asked for. */
static enum maq_status more_risk(struct maq_search_remedies *out, struct owner *o, const struct maq_loaded_job *open,
                                 struct maq_search_opts opts, struct maq_diag *diag)
{
    struct maq_search_memory memory;
    bool fits;
    MAQ_TRY(maq_search_memory(&memory, open, &opts, diag));
    if (memory.min_fit_probability <= 0)
        return MAQ_OK;
    opts.as_predicted = true;
    MAQ_TRY(try(&o->with_risk, &fits, open, &opts, diag));
    if (fits)
        out->fit_probability =
            maq_train_fit_probability(o->with_risk->plans[0].needed_bytes,
                                      maq_job_get(open)->cluster.groups[0].device.mem_bytes - memory.reserve_bytes);
    return MAQ_OK;
}

enum maq_status maq_search_find_remedies(struct maq_search_remedies *out, const struct maq_loaded_job *open,
                                         const struct maq_search_opts *opts, struct maq_diag *diag)
{
    struct owner *o = calloc(1, sizeof *o);
    struct maq_search_opts one = *opts;
    *out = (struct maq_search_remedies){.owner = o};
    if (!o)
        return MAQ_NO_MEMORY;
    one.top = 1;
    one.pareto_memory = false;
    one.progress = NULL;
    enum maq_status status = more_memory(out, o, open, one, diag);
    if (status == MAQ_OK)
        status = more_nodes(out, o, open, one, diag);
    if (status == MAQ_OK)
        status = offloading(out, o, open, one, diag);
    if (status == MAQ_OK)
        status = more_risk(out, o, open, one, diag);
    if (status != MAQ_OK) {
        maq_search_remedies_free(out);
        return status;
    }
    const struct {
        const struct maq_search_result *from;
        struct maq_plan *plan;
        double *step_s;
    } rows[] = {{o->with_memory, &out->with_memory, &out->with_memory_s},
                {o->with_nodes, &out->with_nodes, &out->with_nodes_s},
                {o->with_offload, &out->with_offload, &out->with_offload_s},
                {o->with_risk, &out->with_risk, &out->with_risk_s}};
    for (size_t i = 0; i < MAQ_COUNT(rows); i++)
        if (rows[i].from) {
            *rows[i].plan = rows[i].from->plans[0].plan;
            *rows[i].step_s = rows[i].from->plans[0].step_s;
        }
    return MAQ_OK;
}

void maq_search_remedies_free(struct maq_search_remedies *r)
{
    struct owner *o = r->owner;
    if (o) {
        maq_search_result_free(o->with_memory);
        maq_search_result_free(o->with_nodes);
        maq_search_result_free(o->with_offload);
        maq_search_result_free(o->with_risk);
        free(o);
    }
    *r = (struct maq_search_remedies){0};
}
