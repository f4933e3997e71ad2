/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bind.c - looks up the names of a mixed plan in a profile and fills in the tables of each replica, once for equal
 * replicas. See bind.h.
 */
#include "train/profiled/bind.h"

#include "base/check.h"
#include "base/str.h"
#include "plan/mixed/codes.h"
#include "plan/mixed/mixed_plan.h"

static const struct maq_span nowhere = {0};

/* ---- what the plan names ---- */

/* A plan that names no model means the only one with as many layers. */
static enum maq_status find_model(struct maq_bound_plan *b, struct maq_diag *diag)
{
    const struct maq_mixed_plan *plan = b->plan;
    uint32_t n = 0;
    if (plan->model)
        MAQ_TRY(maq_profile_dir_want_model(&b->model, b->profile, maq_str_of(plan->model), nowhere, diag));
    for (uint32_t i = 0; !plan->model && i < maq_profile_dir_n_models(b->profile); i++)
        if (maq_profile_dir_model(b->profile, i)->layers == plan->layers) {
            b->model = i;
            n++;
        }
    if (!plan->model && n != 1)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_MIXED_UNPRICED, nowhere, "name the plan's model",
                             "%u models of the profile have %u layers", n, plan->layers);
    const struct maq_profile_dir_model *model = maq_profile_dir_model(b->profile, b->model);
    if (model->layers != plan->layers)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_MIXED_UNPRICED, nowhere, NULL,
                             "the plan has %u layers, %s has %u in the profile", plan->layers, model->name,
                             model->layers);
    return MAQ_OK;
}

static enum maq_status find_zone(uint32_t *out, const struct maq_bound_plan *b, const char *name, struct maq_diag *diag)
{
    const char *wanted = name ? name : b->plan->zone;
    *out = maq_profile_dir_default_zone(b->profile);
    if (wanted)
        return maq_profile_dir_want_zone(out, b->profile, maq_str_of(wanted), nowhere, diag);
    return *out != MAQ_PROFILE_DIR_NONE
               ? MAQ_OK
               : maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_PROFILE_NAME, nowhere, "name the plan's zone",
                               "neither the plan nor the profile names a zone");
}

static enum maq_status find_times(const struct maq_layer_time **out, const struct maq_bound_plan *b, uint32_t device,
                                  uint32_t tp, struct maq_diag *diag)
{
    *out = maq_profile_dir_times(b->profile, b->model, device, b->plan->micro_batch, tp);
    if (*out)
        return MAQ_OK;
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_MIXED_UNPRICED, nowhere, NULL,
                         "the profile has no times of %s on %s at micro batch %u and TP %u",
                         maq_profile_dir_model(b->profile, b->model)->name,
                         maq_profile_dir_device(b->profile, device)->name, b->plan->micro_batch, tp);
}

static enum maq_status find_sizes(const struct maq_layer_size **out, const struct maq_bound_plan *b, uint32_t tp,
                                  struct maq_diag *diag)
{
    *out = maq_profile_dir_sizes(b->profile, b->model, tp);
    if (*out)
        return MAQ_OK;
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_MIXED_UNPRICED, nowhere, NULL,
                         "the profile has no memory of %s at TP %u", maq_profile_dir_model(b->profile, b->model)->name,
                         tp);
}

/* ---- binding ---- */

static enum maq_status bind_replica(struct maq_bound_replica *out, const struct maq_bound_plan *b,
                                    const struct maq_mixed_replica *r, struct maq_arena *arena, struct maq_diag *diag)
{
    struct maq_bound_member *members = MAQ_ARENA_NEW(arena, struct maq_bound_member, r->n_members);
    if (!members)
        return maq_no_memory(diag, "the plan");
    for (uint32_t i = 0; i < r->n_members; i++) {
        const struct maq_mixed_member *m = &r->members[i];
        struct maq_link_end *at = &members[i].at;
        at->n = m->devices;
        MAQ_TRY(maq_profile_dir_want_device(&at->device, b->profile, maq_str_of(m->device), nowhere, diag));
        MAQ_TRY(find_zone(&at->zone, b, m->zone, diag));
        MAQ_TRY(find_times(&members[i].times, b, at->device, m->devices, diag));
    }
    *out = (struct maq_bound_replica){.plan = r, .members = members, .update = members[0].times};
    if (r->n_members > 1)
        MAQ_TRY(find_times(&out->update, b, members[0].at.device, r->tp, diag));
    for (uint32_t i = 0; r->n_members > 1 && i < r->n_members; i++)
        if (!maq_profile_dir_link(b->profile, members[i].at, members[i].at))
            return maq_bound_no_link(b, members[i].at, members[i].at, diag);
    if (r->n_members == 1 && r->tp > 1 && !maq_profile_dir_node_link(b->profile, members[0].at.device, r->tp))
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_MIXED_UNPRICED, nowhere, NULL,
                             "the profile has no link of %u x %s inside a node", r->tp,
                             maq_profile_dir_device(b->profile, members[0].at.device)->name);
    return find_sizes(&out->sizes, b, r->tp, diag);
}

static bool same_bindings(const struct maq_mixed_replica *a, const struct maq_mixed_replica *b)
{
    return a->members == b->members && a->n_members == b->n_members && a->tp == b->tp && a->cp == b->cp;
}

static enum maq_status bind_stage(struct maq_bound_stage *out, const struct maq_bound_plan *b,
                                  const struct maq_mixed_stage *s, struct maq_arena *arena, struct maq_diag *diag)
{
    struct maq_bound_replica *replicas = MAQ_ARENA_NEW(arena, struct maq_bound_replica, s->n_replicas);
    if (!replicas)
        return maq_no_memory(diag, "the plan");
    for (uint32_t i = 0; i < s->n_replicas; i++) {
        const struct maq_mixed_replica *r = &s->replicas[i];
        if (r->cp > 1 || r->ep > 1 || r->etp > 0 || r->sequence_parallel)
            return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_MIXED_UNPRICED, nowhere, NULL,
                                 "the profile has no costs of context, expert or sequence parallelism");
        if (i > 0 && same_bindings(r, &s->replicas[i - 1])) {
            replicas[i] = replicas[i - 1];
            replicas[i].plan = r;
        } else {
            MAQ_TRY(bind_replica(&replicas[i], b, r, arena, diag));
        }
    }
    if (s->on_devices_of >= 0)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_MIXED_UNPRICED, nowhere, NULL,
                             "stages that share devices are not modelled");
    *out = (struct maq_bound_stage){.plan = s, .replicas = replicas};
    return MAQ_OK;
}

enum maq_status maq_mixed_bind(struct maq_bound_plan *out, const struct maq_mixed_plan *plan,
                               const struct maq_profile_dir *profile, struct maq_arena *arena, struct maq_diag *diag)
{
    struct maq_bound_plan b = {.plan = plan, .profile = profile};
    struct maq_bound_pipeline *pipelines = MAQ_ARENA_NEW(arena, struct maq_bound_pipeline, plan->n_pipelines);
    if (!pipelines)
        return maq_no_memory(diag, "the plan");
    if (plan->schedule != MAQ_SCHEDULE_1F1B && plan->schedule != MAQ_SCHEDULE_AUTO)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_MIXED_UNPRICED, nowhere, "`pipeline_schedule: 1f1b`",
                             "plans are judged with the schedule 1f1b, not %s", maq__mixed_schedules[plan->schedule]);
    MAQ_TRY(find_model(&b, diag));
    MAQ_TRY(find_sizes(&b.whole, &b, 1, diag));
    for (uint32_t p = 0; p < plan->n_pipelines; p++) {
        const struct maq_mixed_pipeline *line = &plan->pipelines[p];
        struct maq_bound_stage *stages = MAQ_ARENA_NEW(arena, struct maq_bound_stage, line->n_stages);
        if (!stages)
            return maq_no_memory(diag, "the plan");
        for (uint32_t s = 0; s < line->n_stages; s++)
            MAQ_TRY(bind_stage(&stages[s], &b, &line->stages[s], arena, diag));
        pipelines[p] = (struct maq_bound_pipeline){line->n_stages, stages};
    }
    b.pipelines = pipelines;
    *out = b;
    return MAQ_OK;
}

/* ---- links ---- */

const struct maq_link_fit *maq_bound_link(const struct maq_bound_plan *b, const struct maq_bound_replica *from,
                                          const struct maq_bound_replica *to, bool all_devices)
{
    struct maq_link_end a = from->members[0].at, z = to->members[0].at;
    if (!all_devices)
        a.n = z.n = 1;
    return maq_profile_dir_link(b->profile, a, z);
}

enum maq_status maq_bound_no_link(const struct maq_bound_plan *b, struct maq_link_end from, struct maq_link_end to,
                                  struct maq_diag *diag)
{
    return maq_diag_fail(
        MAQ_BAD_INPUT, diag, MAQ_CODE_MIXED_UNPRICED, nowhere, NULL,
        "the profile has no link from %u x %s in %s to %u x %s in %s", from.n,
        maq_profile_dir_device(b->profile, from.device)->name, maq_profile_dir_zone(b->profile, from.zone), to.n,
        maq_profile_dir_device(b->profile, to.device)->name, maq_profile_dir_zone(b->profile, to.zone));
}

double maq_bound_parameters(const struct maq_mixed_stage *stage, const struct maq_layer_size *sizes)
{
    double sum = 0;
    for (uint32_t l = stage->first_layer; l < stage->first_layer + stage->layers; l++)
        sum += sizes[l].parameters;
    return sum;
}
