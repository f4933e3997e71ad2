/* mixed_space.c - the axes of a composition from the space of the homogeneous search: see mixed_space.h. */
#include "compose/mixed_space.h"

#include "base/check.h"
#include "compose/codes.h"
#include "search/space.h"

static enum maq_status refuse(const char *key, const char *why, struct maq_diag *diag)
{
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SEARCH_MIXED, (struct maq_span){0},
                         "leave it out, or plan one node group alone", "%s: a plan over several node groups %s", key,
                         why);
}

/* ---- axes that are not chosen ---- */

/* What such an axis must be, and what to say where it is not. */
static const struct {
    enum maq_axis axis;
    int32_t only;
    const char *why;
} settled[] = {
    {MAQ_AXIS_CP, 1, "has no context parallelism"},
    {MAQ_AXIS_EP, 1, "has no expert parallelism"},
    {MAQ_AXIS_VP, 1, "has no virtual stages"},
    {MAQ_AXIS_REPLICAS, 1, "shards optimizer states over all replicas of a stage"},
    {MAQ_AXIS_OFFLOAD, 0, "offloads no activations"},
    {MAQ_AXIS_HOST_OPTIM, 0, "keeps the optimizer on the devices"},
    {MAQ_AXIS_SCHEDULE, MAQ_SCHEDULE_1F1B, "runs 1F1B"},
};

static enum maq_status check_settled(const struct maq_search_space *space, struct maq_diag *diag)
{
    for (size_t i = 0; i < MAQ_COUNT(settled); i++) {
        const struct maq_axis_values *axis = &space->axis[settled[i].axis];
        bool any = !axis->fixed;
        for (uint32_t k = 0; k < axis->n && !any; k++) {
            struct maq_plan plan = space->base;
            maq_space_apply(&plan, space, settled[i].axis, axis->at[k]);
            /* zero is "the default", which is the only value for all of these */
            any = maq_space_holds(&plan, space, settled[i].axis, settled[i].only) ||
                  maq_space_holds(&plan, space, settled[i].axis, 0);
        }
        if (!any)
            return refuse(maq_axis_key(settled[i].axis), settled[i].why, diag);
    }
    if (space->axis[MAQ_AXIS_PP].fixed || space->axis[MAQ_AXIS_LAYOUT].fixed)
        return refuse(maq_axis_key(space->axis[MAQ_AXIS_PP].fixed ? MAQ_AXIS_PP : MAQ_AXIS_LAYOUT),
                      "cuts the layers by what its stages run on", diag);
    if (space->base.dp > 0)
        return refuse("data_parallel_size", "chooses how many replicas its stages have", diag);
    if (space->base.lora_rank > 0)
        return refuse("lora_rank", "trains all parameters", diag);
    if (space->base.vocab_parallel_pipeline)
        return refuse("vocab_parallel_pipeline", "keeps embedding and output on its ends", diag);
    return MAQ_OK;
}

/* ---- axes that are chosen ---- */

static void take_numbers(uint32_t *out, uint32_t *n, const struct maq_search_space *space, enum maq_axis axis)
{
    for (uint32_t i = 0; i < space->axis[axis].n && *n < MAQ_CHAIN_VALUES; i++) {
        struct maq_plan plan = space->base;
        maq_space_apply(&plan, space, axis, space->axis[axis].at[i]);
        out[(*n)++] = (uint32_t)(axis == MAQ_AXIS_TP ? plan.tp : plan.mbs);
    }
}

/* None, core attention and everything; of what the user names, also other modules. */
static void take_recompute(struct maq_chain_space *out, const struct maq_search_space *space)
{
    const struct maq_axis_values *axis = &space->axis[MAQ_AXIS_RECOMPUTE];
    const uint32_t core = 1u << MAQ_PART_CORE_ATTENTION;
    for (uint32_t i = 0; i < axis->n && out->n_redo < MAQ_CHAIN_VALUES; i++) {
        struct maq_plan plan = space->base;
        if (axis->at[i] == MAQ_RECOMPUTE_VALUE_BLOCK)
            continue;
        maq_space_apply(&plan, space, MAQ_AXIS_RECOMPUTE, axis->at[i]);
        if (plan.recompute == MAQ_RECOMPUTE_FULL && plan.recompute_num_layers > 1)
            continue;
        if (plan.recompute == MAQ_RECOMPUTE_SELECTIVE && plan.recompute_parts == 0)
            plan.recompute_parts = core;
        if (plan.recompute == MAQ_RECOMPUTE_SELECTIVE && !axis->fixed && plan.recompute_parts != core)
            continue;
        out->redo[out->n_redo++] = (struct maq_chain_redo){plan.recompute, plan.recompute_parts};
    }
}

static void take_sharding(struct maq_chain_space *out, const struct maq_search_space *space)
{
    for (uint32_t i = 0; i < space->axis[MAQ_AXIS_SHARDING].n; i++) {
        struct maq_plan plan = space->base;
        maq_space_apply(&plan, space, MAQ_AXIS_SHARDING, space->axis[MAQ_AXIS_SHARDING].at[i]);
        bool known = plan.sharding == MAQ_SHARDING_NONE || plan.sharding == MAQ_SHARDING_OPTIM;
        for (uint32_t k = 0; k < out->n_zero; k++)
            known = known && out->zero[k] != plan.sharding;
        if (known && out->n_zero < MAQ_COUNT(out->zero))
            out->zero[out->n_zero++] = plan.sharding;
    }
}

static enum maq_status take_axes(struct maq_chain_space *out, const struct maq_search_space *space,
                                 struct maq_diag *diag)
{
    if (space->axis[MAQ_AXIS_TP].fixed) /* else what each group's nodes allow */
        take_numbers(out->tp, &out->n_tp, space, MAQ_AXIS_TP);
    take_numbers(out->mbs, &out->n_mbs, space, MAQ_AXIS_MBS);
    take_recompute(out, space);
    take_sharding(out, space);
    if (out->n_zero == 0)
        return refuse(maq_axis_key(MAQ_AXIS_SHARDING), "shares optimizer states at most (no_shard, optim)", diag);
    if (out->n_redo == 0)
        return refuse(maq_axis_key(MAQ_AXIS_RECOMPUTE), "recomputes a module or every layer of a stage", diag);
    return MAQ_OK;
}

enum maq_status maq_mixed_space_init(struct maq_chain_space *out, const struct maq_job_box *open,
                                     const struct maq_mixed_space_lists *lists, struct maq_arena *arena,
                                     struct maq_diag *diag)
{
    const struct maq_search_opts opts = {.lists = lists->lists, .n_lists = lists->n};
    struct maq_search_space space;
    *out = (struct maq_chain_space){.n_tp = 0};
    MAQ_TRY(maq_search_job(&out->job, open, &opts, arena, diag));
    MAQ_TRY(maq_space_init(&space, open, &out->job, &opts, arena, diag));
    MAQ_TRY(check_settled(&space, diag));
    return take_axes(out, &space, diag);
}
