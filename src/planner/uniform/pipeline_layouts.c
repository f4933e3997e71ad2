/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline_layouts.c - lists pipelines: loops over schedules, virtual stages and layouts, and drops those that repeat
 * another one. See pipeline_layouts.h.
 */
#include "planner/uniform/pipeline_layouts.h"

#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "planner/space/layer_layouts.h"

bool maq_schedule_splits(int schedule)
{
    return schedule >= MAQ_SCHEDULE_ZB_H1;
}

bool maq_schedule_rounds(int schedule)
{
    return schedule == MAQ_SCHEDULE_INTERLEAVED || schedule == MAQ_SCHEDULE_INTERLEAVED_ZB;
}

enum maq_passes maq_passes_of(int schedule)
{
    bool paired = schedule == MAQ_SCHEDULE_DUALPIPE || schedule == MAQ_SCHEDULE_DUALPIPE_V;
    return paired ? MAQ_PASSES_PAIRED : maq_schedule_splits(schedule) ? MAQ_PASSES_SPLIT : MAQ_PASSES_WHOLE;
}

void maq_plan_passes(struct maq_plan *plan, enum maq_passes passes)
{
    plan->schedule = passes == MAQ_PASSES_WHOLE ? MAQ_SCHEDULE_1F1B : MAQ_SCHEDULE_ZB_H1;
    if (passes == MAQ_PASSES_PAIRED && plan->overlap_ep == MAQ_AUTO) /* as plan/resolve/resolve.c has it there */
        plan->overlap_ep = MAQ_ON;
}

/* Whether a schedule has that many chunks; with one stage all are the same, so the first of the axis stands for them. */
static bool goes_together(const struct maq_search_space *space, int32_t stages, int32_t schedule, int32_t vp)
{
    const struct maq_axis_values *schedules = &space->axis[MAQ_AXIS_SCHEDULE];
    int32_t first = schedules->at[0] == MAQ_VALUE_AS_WRITTEN ? space->base.schedule : schedules->at[0];
    if (stages == 1)
        return vp == 1 && schedule == first;
    if (schedule == MAQ_SCHEDULE_AUTO)
        return true;
    return maq_schedule_is_v(schedule) ? vp == 2 : maq_schedule_rounds(schedule) ? vp > 1 : vp == 1;
}

struct lister {
    const struct maq_search_space *space;
    const struct maq_job *job;
    struct maq_arena *arena;
    struct maq_pipeline_list *list;
    bool failed;
};

static struct maq_str layout_text(struct lister *l, const int32_t *layers, uint32_t n)
{
    struct maq_buf text;
    bool even = true;
    for (uint32_t i = 1; i < n; i++)
        even &= layers[i] == layers[0];
    if (even) /* what a plan without a layout says */
        return (struct maq_str){0};
    maq_buf_init(&text, 1 << 16);
    for (uint32_t i = 0; i < n; i++)
        maq_buf_addf(&text, "%s%d", i > 0 ? "," : "", layers[i]);
    char *copy = text.failed ? NULL : maq_arena_strdup(l->arena, (struct maq_str){text.ptr, text.len});
    maq_buf_fini(&text);
    l->failed |= !copy;
    return maq_str_of(copy);
}

static bool listed(const struct lister *l, const struct maq_pipeline *p)
{
    for (uint32_t i = 0; i < l->list->n; i++) {
        const struct maq_pipeline *q = &l->list->at[i];
        if (q->schedule == p->schedule && q->vp == p->vp && q->n_virtual == p->n_virtual && !q->as_written &&
            memcmp(q->layers, p->layers, p->n_virtual * sizeof *p->layers) == 0)
            return true;
    }
    return false;
}

/* What a schedule holds at once no longer grows from two microbatches per stage on (a test looks at more). */
static const struct maq_schedule *skeleton(struct lister *l, int32_t schedule, int32_t vp)
{
    uint32_t stages = (uint32_t)l->list->stages;
    if (!maq_schedule_splits(schedule) || maq_schedule_is_searched(schedule) || stages > 64)
        return NULL;
    for (uint32_t i = 0; i < l->list->n; i++)
        if (l->list->at[i].schedule == schedule && l->list->at[i].vp == vp)
            return l->list->at[i].skeleton;
    struct maq_schedule *s = MAQ_ARENA_NEW(l->arena, struct maq_schedule, 1);
    if (!s || maq_schedule_build(s, schedule, stages, (uint32_t)vp, 2 * stages, 0, l->arena, NULL) != MAQ_OK)
        return NULL;
    return s;
}

static void add(struct lister *l, int32_t schedule, int32_t vp, int32_t layout)
{
    const struct maq_model *model = &l->job->model;
    uint32_t chunks = schedule == MAQ_SCHEDULE_DUALPIPE ? 1 : (uint32_t)vp,
             n = (uint32_t)l->list->stages * chunks; /* as the plan cuts the model */
    if (n > MAQ_MAX_STAGES)
        return;
    int32_t *layers = MAQ_ARENA_NEW(l->arena, int32_t, n);
    struct maq_pipeline p = {.schedule = schedule, .vp = vp, .n_virtual = n, .layers = layers};
    l->failed |= !layers;
    if (l->failed)
        return;
    p.as_written = layout == MAQ_VALUE_AS_WRITTEN;
    p.most_layers = (int32_t)model->num_layers; /* known better below */
    if (p.as_written) {
        p.layout = l->space->base.layout;
    } else {
        if (!maq_layout_layers(layers, n, l->job, layout, l->arena) || listed(l, &p))
            return;
        p.layout = layout_text(l, layers, n);
        p.most_layers = 0;
        for (uint32_t i = 0; i < n; i++)
            p.most_layers = layers[i] > p.most_layers ? layers[i] : p.most_layers;
    }
    p.skeleton = skeleton(l, schedule, vp);
    l->list->at[l->list->n++] = p;
}

static void list_stages(struct lister *l)
{
    const struct maq_axis_values *schedules = &l->space->axis[MAQ_AXIS_SCHEDULE], *vps = &l->space->axis[MAQ_AXIS_VP],
                                 *layouts = &l->space->axis[MAQ_AXIS_LAYOUT];
    l->list->at = MAQ_ARENA_NEW(l->arena, struct maq_pipeline, (size_t)schedules->n * vps->n * layouts->n);
    l->failed |= !l->list->at;
    for (uint32_t s = 0; s < schedules->n; s++)
        for (uint32_t v = 0; v < vps->n; v++) {
            int32_t schedule = schedules->at[s] == MAQ_VALUE_AS_WRITTEN ? l->space->base.schedule : schedules->at[s],
                    vp = vps->at[v] == MAQ_VALUE_AS_WRITTEN ? l->space->base.vp : vps->at[v];
            if (!goes_together(l->space, l->list->stages, schedule, vp))
                continue;
            for (uint32_t k = 0; k < layouts->n && !l->failed; k++)
                add(l, schedule, vp, layouts->at[k]);
        }
}

enum maq_status maq_pipelines_list(struct maq_pipelines *out, const struct maq_search_space *space,
                                   const struct maq_job *job, struct maq_arena *arena)
{
    const struct maq_axis_values *pps = &space->axis[MAQ_AXIS_PP];
    struct lister l = {space, job, arena, NULL, false};
    *out = (struct maq_pipelines){.lists = MAQ_ARENA_NEW(arena, struct maq_pipeline_list, pps->n)};
    if (!out->lists)
        return MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < pps->n; i++) {
        l.list = &out->lists[out->n++];
        l.list->stages = pps->at[i] == MAQ_VALUE_AS_WRITTEN ? space->base.pp : pps->at[i];
        list_stages(&l);
        if (l.failed)
            return MAQ_NO_MEMORY;
    }
    return MAQ_OK;
}

const struct maq_pipeline_list *maq_pipelines_of(const struct maq_pipelines *pipelines, int32_t stages)
{
    for (uint32_t i = 0; i < pipelines->n; i++)
        if (pipelines->lists[i].stages == stages)
            return &pipelines->lists[i];
    MAQ_ASSERT(false);
    return NULL;
}
