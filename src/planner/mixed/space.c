/* SPDX-License-Identifier: Apache-2.0 */
/*
 * space.c - derives the space of a composition, axis by axis, from the space of the homogeneous search, refuses what
 * compositions cannot do, and restricts the space to the techniques of another planner where that is asked for. See
 * space.h.
 */
#include "planner/mixed/space.h"

#include "base/check.h"
#include "maquette/planner_mixed.h"
#include "plan/codes.h"
#include "plan/job_build.h"
#include "planner/space/decided_axes.h"
#include "planner/space/space.h"
#include "planner/stages/codes.h"
#include "planner/stages/strategies.h"

static enum maq_status refuse(struct maq_span at, const char *hint, const char *key, const char *why,
                              struct maq_diag *diag)
{
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SEARCH_MIXED, at, hint, "%s: a plan over several node groups %s",
                         key, why);
}

#define LEAVE_OUT "leave it out, or plan one node group alone"

static enum maq_status refuse_axis(const struct maq_search_space *space, enum maq_axis axis, const char *why,
                                   struct maq_diag *diag)
{
    return refuse(space->axis[axis].written, LEAVE_OUT, maq_axis_key(axis), why, diag);
}

static enum maq_status refuse_key(const struct maq_loaded_job *open, const char *key, const char *why,
                                  struct maq_diag *diag)
{
    return refuse(maq_space_place_of(open, key), LEAVE_OUT, key, why, diag);
}

/* ---- axes that are not chosen ---- */

static enum maq_status check_settled(const struct maq_search_space *space, const struct maq_loaded_job *open,
                                     struct maq_diag *diag)
{
    if (space->axis[MAQ_AXIS_PP].fixed || space->axis[MAQ_AXIS_LAYOUT].fixed)
        return refuse_axis(space, space->axis[MAQ_AXIS_PP].fixed ? MAQ_AXIS_PP : MAQ_AXIS_LAYOUT,
                           "cuts the layers by what its stages run on", diag);
    if (space->base.dp > 0)
        return refuse_key(open, "data_parallel_size", "chooses how many replicas its stages have", diag);
    if (space->base.lora_rank > 0)
        return refuse_key(open, "lora_rank", "trains all parameters", diag);
    if (space->base.paged_optimizer)
        return refuse_key(open, "paged_optimizer", "keeps moments where they are", diag);
    if (space->base.post_validation)
        return refuse_key(open, "enable_optimizer_post_validation", "joins all its stages before they update", diag);
    if (space->base.vocab_parallel_pipeline)
        return refuse_key(open, "vocab_parallel_pipeline", "keeps embedding and output on its ends", diag);
    return MAQ_OK;
}

/* Axes that all stages have in common: one value each. */
static enum maq_status take_common(struct maq_chain_space *out, const struct maq_search_space *space,
                                   struct maq_diag *diag)
{
    static const enum maq_axis common[] = {MAQ_AXIS_PRECISION,  MAQ_AXIS_SP,     MAQ_AXIS_DISPATCHER,
                                           MAQ_AXIS_OVERLAP_EP, MAQ_AXIS_SHARED, MAQ_AXIS_DELAY_WGRAD,
                                           MAQ_AXIS_OVERLAP_TP, MAQ_AXIS_GRAPHS};
    struct maq_plan *plan = &out->job.plan;
    for (size_t i = 0; i < MAQ_COUNT(common); i++) {
        const struct maq_axis_values *axis = &space->axis[common[i]];
        if (axis->fixed && axis->n > 1)
            return refuse(axis->written, "give one value", maq_axis_key(common[i]),
                          "has one value of it in all its stages", diag);
        if (axis->fixed)
            maq_space_apply(plan, space, common[i], axis->at[0]);
    }
    out->overlap_open = !space->axis[MAQ_AXIS_OVERLAP_EP].fixed && space->axis[MAQ_AXIS_OVERLAP_EP].n > 1;
    if (!space->axis[MAQ_AXIS_OVERLAP_EP].fixed)
        plan->overlap_ep = MAQ_AUTO;
    const struct maq_axis_values *order = &space->axis[MAQ_AXIS_ORDER];
    if (order->fixed && order->at[0] != MAQ_VALUE_AS_WRITTEN)
        return refuse_axis(space, MAQ_AXIS_ORDER, "lays the ranks of a stage out by itself", diag);
    return MAQ_OK;
}

/* ---- axes that are chosen ---- */

/*
 * The values of a list that a stage may take. An axis without a list gets no values here: those that a node group
 * allows are listed later.
 */
static void take_numbers(uint32_t *out, uint32_t *n, const struct maq_search_space *space, enum maq_axis axis)
{
    for (uint32_t i = 0; i < space->axis[axis].n && *n < MAQ_CHAIN_VALUES; i++) {
        struct maq_plan plan = space->base;
        int32_t value = space->axis[axis].at[i];
        if (axis == MAQ_AXIS_ETP)
            plan.tp = 0; /* expert-TP as TP shows as 0 */
        maq_space_apply(&plan, space, axis, value);
        int32_t held = axis == MAQ_AXIS_TP    ? plan.tp
                       : axis == MAQ_AXIS_CP  ? plan.cp
                       : axis == MAQ_AXIS_EP  ? plan.ep
                       : axis == MAQ_AXIS_ETP ? plan.etp
                                              : plan.mbs;
        if (axis == MAQ_AXIS_EP && held == 0)
            held = 1;
        if (axis == MAQ_AXIS_CP && held == 0)
            held = 1;
        out[(*n)++] = (uint32_t)held;
    }
}

static void take_words(int *out, uint32_t *n, size_t room, const struct maq_search_space *space, enum maq_axis axis)
{
    for (uint32_t i = 0; i < space->axis[axis].n; i++) {
        struct maq_plan plan = space->base;
        maq_space_apply(&plan, space, axis, space->axis[axis].at[i]);
        int value = axis == MAQ_AXIS_CP_COMM ? plan.cp_comm : plan.sharding;
        bool known = false;
        for (uint32_t k = 0; k < *n; k++)
            known = known || out[k] == value;
        if (!known && *n < room)
            out[(*n)++] = value;
    }
}

/* ZeRO-2 and 3 reduce and gather in every pass of a pipeline: searched only where the user lists them. */
static void drop_late_zero(struct maq_chain_space *out, const struct maq_search_space *space)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < out->n_zero && !space->axis[MAQ_AXIS_SHARDING].fixed; i++)
        if (out->zero[i] == MAQ_SHARDING_NONE || out->zero[i] == MAQ_SHARDING_OPTIM)
            out->zero[n++] = out->zero[i];
    out->n_zero = n > 0 ? n : out->n_zero;
}

/* Not the first N layers of a stage, nor several layers per checkpoint: their cost is no sum over layers. */
static void take_recompute(struct maq_chain_space *out, const struct maq_search_space *space)
{
    const struct maq_axis_values *axis = &space->axis[MAQ_AXIS_RECOMPUTE];
    for (uint32_t i = 0; i < axis->n && out->n_redo < MAQ_CHAIN_VALUES; i++) {
        struct maq_plan plan = space->base;
        if (axis->at[i] == MAQ_RECOMPUTE_VALUE_BLOCK || axis->at[i] == MAQ_RECOMPUTE_VALUE_STAGES)
            continue;
        maq_space_apply(&plan, space, MAQ_AXIS_RECOMPUTE, axis->at[i]);
        if (plan.recompute == MAQ_RECOMPUTE_FULL && plan.recompute_num_layers > 1)
            continue;
        if (plan.recompute == MAQ_RECOMPUTE_SELECTIVE && plan.recompute_parts == 0)
            plan.recompute_parts = 1u << MAQ_PART_CORE_ATTENTION;
        out->redo[out->n_redo++] = (struct maq_chain_redo){plan.recompute, plan.recompute_parts};
    }
}

static void take_host(struct maq_chain_space *out, const struct maq_search_space *space)
{
    const struct maq_axis_values *axis = &space->axis[MAQ_AXIS_HOST_OPTIM];
    for (uint32_t i = 0; i < axis->n && out->n_host < MAQ_COUNT(out->host); i++) {
        struct maq_plan plan = space->base;
        maq_space_apply(&plan, space, MAQ_AXIS_HOST_OPTIM, axis->at[i]);
        out->host[out->n_host++] = plan.optimizer_offload;
    }
}

/* Copies of shards (HSDP): searched only where the user lists them, by number. */
static enum maq_status take_copies(struct maq_chain_space *out, const struct maq_search_space *space,
                                   struct maq_diag *diag)
{
    const struct maq_axis_values *axis = &space->axis[MAQ_AXIS_REPLICAS];
    out->n_copies = 0;
    for (uint32_t i = 0; axis->fixed && i < axis->n && out->n_copies < MAQ_CHAIN_VALUES; i++) {
        struct maq_plan plan = space->base;
        if (axis->at[i] == MAQ_VALUE_PER_DOMAIN)
            continue;
        maq_space_apply(&plan, space, MAQ_AXIS_REPLICAS, axis->at[i]);
        out->copies[out->n_copies++] = plan.num_optimizer_instances > 1 ? (uint32_t)plan.num_optimizer_instances : 1;
    }
    if (axis->fixed && out->n_copies == 0)
        return refuse_axis(space, MAQ_AXIS_REPLICAS, "has copies of shards by their number", diag);
    if (out->n_copies == 0)
        out->copies[out->n_copies++] = 1;
    return MAQ_OK;
}

/*
 * Of no layer or of all layers of a stage: of some of them, cost is no sum over layers. Inputs of modules are those of every
 * layer.
 */
static enum maq_status take_offload(struct maq_chain_space *out, const struct maq_search_space *space,
                                    struct maq_diag *diag)
{
    const struct maq_axis_values *layers = &space->axis[MAQ_AXIS_OFFLOAD], *inputs = &space->axis[MAQ_AXIS_INPUTS];
    out->n_offload = 0;
    for (uint32_t i = 0; i < inputs->n; i++)
        for (uint32_t k = 0; k < layers->n; k++) {
            const char *remedy, *wrong;
            struct maq_plan plan = space->base;
            maq_space_apply(&plan, space, MAQ_AXIS_INPUTS, inputs->at[i]);
            maq_space_apply(&plan, space, MAQ_AXIS_OFFLOAD, layers->fixed ? layers->at[k] : 0);
            wrong = maq_offload_fault(&plan, &remedy);
            if (wrong)
                return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_PLAN_OFFLOAD,
                                     inputs->fixed ? inputs->written : layers->written, remedy, "%s", wrong);
            bool whole = plan.offload_layers >= (int32_t)out->job.model.num_layers;
            if (plan.offload_layers == 0 || (whole && plan.offload_modules == 0))
                maq_strategies_offload(out, (struct maq_chain_offload){whole, plan.offload_modules});
        }
    return out->n_offload > 0
               ? MAQ_OK
               : refuse_axis(space, MAQ_AXIS_OFFLOAD,
                             "offloads the activations of no layer, or of all (as many as the model has)", diag);
}

/* Whether a schedule is among the values of its axis, or the axis is left to the search. */
static bool may_run(const struct maq_search_space *space, int32_t schedule)
{
    const struct maq_axis_values *axis = &space->axis[MAQ_AXIS_SCHEDULE];
    bool any = !axis->fixed;
    for (uint32_t i = 0; i < axis->n && !any; i++) {
        struct maq_plan plan = space->base;
        maq_space_apply(&plan, space, MAQ_AXIS_SCHEDULE, axis->at[i]);
        any = maq_space_holds(&plan, space, MAQ_AXIS_SCHEDULE, schedule) ||
              maq_space_holds(&plan, space, MAQ_AXIS_SCHEDULE, MAQ_SCHEDULE_AUTO);
    }
    return any;
}

#define MOST_CHUNKS 8u /* unless a list asks for more */

/* Numbers of virtual stages: rounds have equally many layers, the last one possibly one layer less. */
static enum maq_status take_chunks(struct maq_chain_space *out, const struct maq_search_space *space, int planner,
                                   struct maq_diag *diag)
{
    const struct maq_axis_values *axis = &space->axis[MAQ_AXIS_VP];
    const struct maq_model *model = &out->job.model;
    /* of passes, which hide exchanges of experts: in a composition only virtual stages have them (plan/incompatible.c) */
    bool pairs = out->job.plan.overlap_ep == MAQ_ON && planner == MAQ_MIXED_PLANNER_ALL;
    bool plain = may_run(space, MAQ_SCHEDULE_1F1B) && !pairs, rounds = may_run(space, MAQ_SCHEDULE_INTERLEAVED);
    if (!plain && !rounds)
        return refuse_axis(space, MAQ_AXIS_SCHEDULE, "runs 1F1B or interleaved", diag);
    for (uint32_t i = 0; i < axis->n && out->n_chunks < MAQ_CHAIN_VALUES; i++) {
        struct maq_plan plan = space->base;
        maq_space_apply(&plan, space, MAQ_AXIS_VP, axis->at[i]);
        uint32_t chunks = plan.vp > 1 ? (uint32_t)plan.vp : 1;
        bool folds = maq_chain_chunked_atoms(maq_chain_atoms_of(model), chunks) > 0;
        if (chunks == 1 ? plain : rounds && folds && (axis->fixed || chunks <= MOST_CHUNKS))
            out->chunks[out->n_chunks++] = chunks;
    }
    return out->n_chunks > 0
               ? MAQ_OK
               : refuse_axis(space, MAQ_AXIS_VP,
                             "has as many layers in every round of virtual stages, but for one in the last, which "
                             "the schedule interleaved runs",
                             diag);
}

/* A microbatch is a part of the batch. */
static enum maq_status drop_large_microbatches(struct maq_chain_space *out, const struct maq_search_space *space,
                                               struct maq_diag *diag)
{
    uint32_t gbs = (uint32_t)out->job.workload.gbs, n = 0, least = out->mbs[0];
    for (uint32_t i = 0; i < out->n_mbs; i++) {
        least = out->mbs[i] < least ? out->mbs[i] : least;
        if (out->mbs[i] <= gbs)
            out->mbs[n++] = out->mbs[i];
    }
    out->n_mbs = n;
    return n > 0 ? MAQ_OK
                 : maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SEARCH_MIXED, space->axis[MAQ_AXIS_MBS].written,
                                 "choose a smaller one", "micro_batch_size %u is more than the %u sequences of a step",
                                 least, gbs);
}

static enum maq_status take_axes(struct maq_chain_space *out, const struct maq_search_space *space, int planner,
                                 struct maq_diag *diag)
{
    if (space->axis[MAQ_AXIS_TP].fixed)
        take_numbers(out->tp, &out->n_tp, space, MAQ_AXIS_TP);
    if (space->axis[MAQ_AXIS_CP].fixed)
        take_numbers(out->cp, &out->n_cp, space, MAQ_AXIS_CP);
    if (space->axis[MAQ_AXIS_EP].fixed)
        take_numbers(out->ep, &out->n_ep, space, MAQ_AXIS_EP);
    take_numbers(out->etp, &out->n_etp, space, MAQ_AXIS_ETP);
    take_numbers(out->mbs, &out->n_mbs, space, MAQ_AXIS_MBS);
    MAQ_TRY(drop_large_microbatches(out, space, diag));
    take_words(out->cp_comm, &out->n_cp_comm, MAQ_COUNT(out->cp_comm), space, MAQ_AXIS_CP_COMM);
    take_words(out->zero, &out->n_zero, MAQ_COUNT(out->zero), space, MAQ_AXIS_SHARDING);
    drop_late_zero(out, space);
    take_recompute(out, space);
    take_host(out, space);
    MAQ_TRY(take_chunks(out, space, planner, diag));
    MAQ_TRY(take_copies(out, space, diag));
    MAQ_TRY(take_offload(out, space, diag));
    if (out->n_redo == 0)
        return refuse_axis(space, MAQ_AXIS_RECOMPUTE, "recomputes a module or every layer of a stage", diag);
    return MAQ_OK;
}

/* ---- other planners ---- */

/* Galvatron's: with EP and every ZeRO, and all of a layer recomputed or nothing. */
static void restrict_uniform(struct maq_chain_space *out, const struct maq_search_space *space)
{
    static const int zero[] = {MAQ_SHARDING_NONE, MAQ_SHARDING_OPTIM, MAQ_SHARDING_GRADS, MAQ_SHARDING_PARAMS};
    uint32_t n = 0;
    for (uint32_t i = 0; i < MAQ_COUNT(zero) && !space->axis[MAQ_AXIS_SHARDING].fixed; i++)
        out->zero[i] = zero[i];
    out->n_zero = space->axis[MAQ_AXIS_SHARDING].fixed ? out->n_zero : MAQ_COUNT(zero);
    for (uint32_t i = 0; i < out->n_redo && !space->axis[MAQ_AXIS_RECOMPUTE].fixed; i++)
        if (out->redo[i].recompute != MAQ_RECOMPUTE_SELECTIVE)
            out->redo[n++] = out->redo[i];
    out->n_redo = n > 0 ? n : out->n_redo;
}

/* Techniques that a planner does not know keep their defaults; what the user fixes stays. */
static void restrict_to(struct maq_chain_space *out, const struct maq_search_space *space, int planner)
{
    if (planner == MAQ_MIXED_PLANNER_ALL)
        return;
    out->chunks[0] = out->n_chunks = 1;
    if (!space->axis[MAQ_AXIS_CP].fixed)
        out->cp[0] = out->n_cp = 1;
    if (planner == MAQ_MIXED_PLANNER_UNIFORM) {
        restrict_uniform(out, space);
        return;
    }
    if (out->job.plan.overlap_ep == MAQ_ON) /* needs virtual stages */
        out->job.plan.overlap_ep = MAQ_OFF;
    out->job.plan.delay_wgrad = false; /* what goes with it alone */
    if (!space->axis[MAQ_AXIS_EP].fixed && planner != MAQ_MIXED_PLANNER_ALPA)
        out->ep[0] = out->n_ep = 1;
    if (!space->axis[MAQ_AXIS_SHARDING].fixed) {
        out->n_zero = 1;
        out->zero[0] = MAQ_SHARDING_NONE;
    }
    if (!space->axis[MAQ_AXIS_RECOMPUTE].fixed) {
        out->n_redo = 1;
        out->redo[0] = (struct maq_chain_redo){.recompute = MAQ_RECOMPUTE_NONE};
    }
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

static void take_least(struct maq_node_group *to, const struct maq_node_group *g)
{
    if (g->device.peak_flops[MAQ_FP16] < to->device.peak_flops[MAQ_FP16]) {
        double memory = to->device.mem_bytes;
        to->device = g->device;
        to->device.mem_bytes = memory;
    }
    to->device.mem_bytes = least(to->device.mem_bytes, g->device.mem_bytes);
    if (g->domain_bps < to->domain_bps) {
        to->domain_bps = g->domain_bps;
        to->domain_contention = g->domain_contention;
    }
    if (maq_node_group_network_bps(g) < maq_node_group_network_bps(to)) {
        to->fabric = g->fabric;
        to->nics_per_node = g->nics_per_node;
    }
}

bool maq_mixed_space_blind(struct maq_chain_space *space, struct maq_arena *arena)
{
    struct maq_cluster *c = &space->job.cluster;
    struct maq_node_group *groups = MAQ_ARENA_NEW(arena, struct maq_node_group, c->n_groups);
    if (!groups)
        return false;
    for (uint32_t g = 0; g < c->n_groups; g++) {
        groups[g] = c->groups[g];
        for (uint32_t k = 0; k < c->n_groups; k++)
            take_least(&groups[g], &c->groups[k]);
    }
    c->groups = groups;
    return true;
}

/* What the options add to the cluster of the document; `memory`: of which a plan may use a part. */
static void enlarge(struct maq_cluster *c, const struct maq_mixed_space_lists *lists, const struct maq_cluster *written,
                    const struct maq_search_memory *memory)
{
    c->devices = 0;
    for (uint32_t g = 0; g < c->n_groups; g++) {
        struct maq_node_group *group = &c->groups[g];
        group->device.mem_bytes = maq_search_usable(memory, written->groups[g].device.mem_bytes + lists->more_bytes);
        group->nodes += g == lists->more_nodes_of ? (int32_t)lists->more_nodes : 0;
        group->first_rank = c->devices;
        c->devices += (uint32_t)(group->nodes * group->devices_per_node);
    }
}

enum maq_status maq_mixed_space_init(struct maq_chain_space *out, const struct maq_loaded_job *open,
                                     const struct maq_mixed_space_lists *lists, struct maq_arena *arena,
                                     struct maq_diag *diag)
{
    const struct maq_search_opts opts = {.lists = lists->lists,
                                         .n_lists = lists->n,
                                         .min_fit_probability = lists->min_fit_probability,
                                         .as_predicted = lists->as_predicted};
    struct maq_search_space space;
    struct maq_search_memory memory;
    *out = (struct maq_chain_space){.n_tp = 0};
    MAQ_TRY(maq_search_job(&out->job, open, &opts, arena, diag)); /* its node groups are its own */
    MAQ_TRY(maq_search_memory(&memory, open, &opts, diag));
    enlarge(&out->job.cluster, lists, &maq_job_get(open)->cluster, &memory);
    MAQ_TRY(maq_space_init(&space, open, &out->job, &opts, arena, diag));
    MAQ_TRY(check_settled(&space, open, diag));
    MAQ_TRY(take_common(out, &space, diag));
    MAQ_TRY(take_axes(out, &space, lists->planner, diag));
    restrict_to(out, &space, lists->planner);
    return MAQ_OK;
}
