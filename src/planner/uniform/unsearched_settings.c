/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unsearched_settings.c - settings that a search keeps as the job has them although other values compute the same and
 * may hide communication or save memory: the best plan with one such setting changed.
 *
 * Some of them are axes that a list of the user's opens or closes: then they were searched or are fixed, and are not
 * listed here.
 */
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "plan/job_build.h"
#include "plan/keys.h"
#include "planner/uniform/alternatives.h"

enum setting { DISPATCHER, OVERLAP_EP, OVERLAP_SHARED, OVERLAP_TP, LOSS_FUSION, CUDA_GRAPHS, SETTINGS };
#define NO_AXIS MAQ_AXIS_COUNT
static const struct {
    const char *key;
    enum maq_axis axis;
    int32_t from, to; /* values */
    bool experts;     /* has no effect without experts */
} settings[SETTINGS] = {
    [DISPATCHER] = {"moe_token_dispatcher_type", MAQ_AXIS_DISPATCHER, MAQ_DISPATCHER_ALLTOALL, MAQ_DISPATCHER_HYBRIDEP,
                    true},
    [OVERLAP_EP] = {"overlap_moe_expert_parallel_comm", MAQ_AXIS_OVERLAP_EP, MAQ_ON, MAQ_ON, true},
    [OVERLAP_SHARED] = {"moe_shared_expert_overlap", MAQ_AXIS_SHARED, true, true, true},
    [OVERLAP_TP] = {"tp_comm_overlap", MAQ_AXIS_OVERLAP_TP, MAQ_ON, MAQ_ON, false},
    [LOSS_FUSION] = {"cross_entropy_loss_fusion", NO_AXIS, true, true, false},
    [CUDA_GRAPHS] = {"enable_cuda_graph", MAQ_AXIS_GRAPHS, true, true, false},
};

static void set(struct maq_plan *plan, enum setting setting, int32_t value)
{
    switch (setting) {
    case DISPATCHER:
        plan->dispatcher = value;
        break;
    case OVERLAP_EP:
        plan->overlap_ep = value;
        break;
    case OVERLAP_SHARED:
        plan->overlap_shared_experts = value;
        break;
    case OVERLAP_TP:
        plan->overlap_tp = value;
        break;
    case LOSS_FUSION:
        plan->loss_fusion = value;
        break;
    case CUDA_GRAPHS:
        plan->cuda_graphs = value;
        plan->graph_scope = 0;
        break;
    case SETTINGS:
        break;
    }
}

/*
 * Whether the setting has an effect in a plan like this one; Megatron Core overlaps shared experts with its all-to-all alone
 * (transformer_config.py).
 */
static bool means_something(const struct maq_plan *p, enum setting setting)
{
    if (setting == OVERLAP_SHARED)
        return p->dispatcher == MAQ_DISPATCHER_ALLTOALL && p->overlap_ep != MAQ_ON;
    return setting != OVERLAP_EP || p->ep > 1;
}

/* Whether the framework has the switch, and the model shapes for it: a whole iteration is a graph where no expert's batch varies. */
static bool exists(const struct maq_job *job, bool moe, enum setting setting)
{
    const struct maq_framework *f = &job->framework;
    return setting == OVERLAP_SHARED ? f->has_shared_overlap
           : setting == CUDA_GRAPHS  ? f->has_cuda_graphs && (!moe || maq_plan_knows_expert_rows(&job->plan))
                                     : true;
}

static const char *word(char buf[64], const struct maq_plan *plan, enum setting setting)
{
    const struct maq_plan_doc doc = {.plan = *plan};
    return maq_field_format(buf, maq_fields_find(maq_plan_fields, maq_str_of(settings[setting].key)), &doc);
}

static enum maq_status list_values(struct maq_search_alternatives *out, const struct maq_plan *best,
                                   enum setting setting)
{
    for (int32_t value = settings[setting].from; value <= settings[setting].to; value++) {
        char from[64], to[64];
        struct maq_plan plan = *best;
        set(&plan, setting, value);
        word(from, best, setting);
        word(to, &plan, setting);
        struct maq_search_alternative what = {
            .key = settings[setting].key, .name = settings[setting].key, .from = from, .to = to};
        if (strcmp(from, to) != 0 && means_something(&plan, setting))
            MAQ_TRY(maq_alternative_add(out, &what, &plan, true));
    }
    return MAQ_OK;
}

static enum maq_status list(struct maq_search_alternatives *out, const struct maq_plan *best)
{
    const struct maq_alternatives_owner *o = out->owner;
    bool moe = maq_model_find_module(&o->job.model, MAQ_MODULE_ROUTER, MAQ_PART_COUNT) != NULL;
    for (int i = 0; i < SETTINGS; i++) {
        bool searched = settings[i].axis != NO_AXIS && o->space.axis[settings[i].axis].n > 1;
        if (!searched && (moe || !settings[i].experts) && exists(&o->job, moe, (enum setting)i))
            MAQ_TRY(list_values(out, best, (enum setting)i));
    }
    return MAQ_OK;
}

enum maq_status maq_search_settings(struct maq_search_alternatives *out, const struct maq_loaded_job *open,
                                    const struct maq_search_result *result, const struct maq_search_opts *opts,
                                    struct maq_diag *diag)
{
    return maq_alternatives_evaluate(out, list, open, result, opts, diag);
}
