/* SPDX-License-Identifier: Apache-2.0 */
/*
 * axis.c - axes by name, their values in words, and what a value sets in a plan.
 */
#include "planner/space/axis.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "plan/job_build.h"
#include "plan/keys.h"
#include "planner/space/layer_layouts.h"

static const struct axis_row {
    const char *key;
    size_t offset;
} rows[MAQ_AXIS_COUNT] = {
#define ROW(id, member, key) [MAQ_AXIS_##id] = {(key), offsetof(struct maq_plan, member)},
    MAQ_AXIS_LIST(ROW)
#undef ROW
};

const char *maq_axis_key(enum maq_axis axis)
{
    return rows[axis].key;
}

/* ---- values and the plan ---- */

static void apply_recompute(struct maq_plan *plan, int32_t value)
{
    plan->recompute = MAQ_RECOMPUTE_NONE;
    plan->recompute_method = MAQ_RECOMPUTE_UNIFORM;
    plan->recompute_num_layers = 0;
    plan->recompute_parts = 0;
    plan->recompute_stages = (struct maq_str){0};
    if (value & MAQ_RECOMPUTE_VALUE_PARTS) {
        plan->recompute = MAQ_RECOMPUTE_SELECTIVE;
        plan->recompute_parts = (uint32_t)(value & ~MAQ_RECOMPUTE_VALUE_PARTS);
    } else if (value & MAQ_RECOMPUTE_VALUE_UNIFORM) {
        int32_t layers = value & ~MAQ_RECOMPUTE_VALUE_UNIFORM;
        plan->recompute = MAQ_RECOMPUTE_FULL;
        plan->recompute_num_layers = layers > 1 ? layers : 0;
    }
}

int32_t maq_space_graphs_of(const struct maq_plan *plan)
{
    return plan->cuda_graphs ? MAQ_GRAPHS_VALUE_ITERATION : (int32_t)plan->graph_scope;
}

void maq_space_apply(struct maq_plan *plan, const struct maq_search_space *space, enum maq_axis axis, int32_t value)
{
    if (value == MAQ_VALUE_AS_WRITTEN)
        return;
    if (axis == MAQ_AXIS_ORDER) {
        plan->rank_order = space->orders[value];
    } else if (axis == MAQ_AXIS_HOST_OPTIM) {
        plan->optimizer_offload = value / 1000.0;
    } else if (axis == MAQ_AXIS_INPUTS) {
        plan->offload_modules = (uint32_t)value;
        plan->offload_inputs = value != 0;
    } else if (axis == MAQ_AXIS_SHARED) {
        plan->overlap_shared_experts = value != 0;
    } else if (axis == MAQ_AXIS_DELAY_WGRAD) {
        plan->delay_wgrad = value != 0;
    } else if (axis == MAQ_AXIS_GRAPHS) {
        plan->cuda_graphs = value == MAQ_GRAPHS_VALUE_ITERATION;
        plan->graph_scope = plan->cuda_graphs ? 0 : (uint32_t)value;
    } else if (axis == MAQ_AXIS_ETP) {
        plan->etp = value == MAQ_VALUE_LIKE_TP ? plan->tp : value;
    } else if (axis == MAQ_AXIS_RECOMPUTE) {
        if (value != MAQ_RECOMPUTE_VALUE_BLOCK && value != MAQ_RECOMPUTE_VALUE_STAGES)
            apply_recompute(plan, value);
    } else if (axis != MAQ_AXIS_LAYOUT &&
               axis != MAQ_AXIS_REPLICAS) { /* those depend on more: planner/uniform/leaves.c */
        memcpy((char *)plan + rows[axis].offset, &value, sizeof value);
    }
}

bool maq_space_holds(const struct maq_plan *plan, const struct maq_search_space *space, enum maq_axis axis,
                     int32_t value)
{
    struct maq_plan with = *plan;
    if (axis == MAQ_AXIS_RECOMPUTE && (value == MAQ_RECOMPUTE_VALUE_BLOCK || value == MAQ_RECOMPUTE_VALUE_STAGES))
        return plan->recompute == MAQ_RECOMPUTE_FULL && plan->recompute_method == MAQ_RECOMPUTE_BLOCK &&
               (plan->recompute_stages.len > 0) == (value == MAQ_RECOMPUTE_VALUE_STAGES);
    maq_space_apply(&with, space, axis, value);
    if (axis == MAQ_AXIS_ORDER)
        return maq_str_eq(with.rank_order, plan->rank_order);
    if (axis == MAQ_AXIS_HOST_OPTIM)
        return with.optimizer_offload == plan->optimizer_offload;
    if (axis == MAQ_AXIS_SHARED)
        return with.overlap_shared_experts == plan->overlap_shared_experts;
    if (axis == MAQ_AXIS_DELAY_WGRAD)
        return with.delay_wgrad == plan->delay_wgrad;
    if (axis == MAQ_AXIS_GRAPHS)
        return maq_space_graphs_of(&with) == maq_space_graphs_of(plan);
    if (axis == MAQ_AXIS_RECOMPUTE)
        return with.recompute == plan->recompute && with.recompute_method == plan->recompute_method &&
               with.recompute_num_layers == plan->recompute_num_layers &&
               with.recompute_parts == plan->recompute_parts &&
               maq_str_eq(with.recompute_stages, plan->recompute_stages);
    return memcmp((char *)&with + rows[axis].offset, (const char *)plan + rows[axis].offset, sizeof(int32_t)) == 0;
}

/* ---- words ---- */

/* "core_attn+mlp" */
static void bits_word(char buf[MAQ_SPACE_WORD], enum maq_plan_list list, uint32_t bits)
{
    struct maq_buf words;
    maq_buf_init(&words, 4096);
    maq_plan_add_bits(&words, list, bits, "+");
    snprintf(buf, MAQ_SPACE_WORD, "%s", bits == 0 ? "none" : words.ptr ? words.ptr : "");
    maq_buf_fini(&words);
}

const char *maq_space_word(char buf[MAQ_SPACE_WORD], const struct maq_search_space *space, enum maq_axis axis,
                           int32_t value)
{
    const struct maq_field *field = maq_fields_find(maq_plan_fields, maq_str_of(rows[axis].key));
    buf[0] = '\0';
    if (axis == MAQ_AXIS_INPUTS) {
        bits_word(buf, MAQ_PLAN_OFFLOAD_MODULES,
                  value == MAQ_VALUE_AS_WRITTEN ? space->base.offload_modules : (uint32_t)value);
    } else if (axis == MAQ_AXIS_GRAPHS) {
        int32_t graphs = value == MAQ_VALUE_AS_WRITTEN ? maq_space_graphs_of(&space->base) : value;
        if (graphs == MAQ_GRAPHS_VALUE_ITERATION)
            snprintf(buf, MAQ_SPACE_WORD, "full_iteration");
        else
            bits_word(buf, MAQ_PLAN_GRAPH_SCOPE, (uint32_t)graphs);
    } else if (value == MAQ_VALUE_AS_WRITTEN) {
        const struct maq_plan_doc doc = {.plan = space->base};
        if (axis == MAQ_AXIS_LAYOUT && space->base.layout.len == 0)
            snprintf(buf, MAQ_SPACE_WORD, "by its first and last stage");
        else
            maq_field_format(buf, field, &doc);
    } else if (axis == MAQ_AXIS_ORDER)
        snprintf(buf, MAQ_SPACE_WORD, "%.*s", (int)space->orders[value].len, space->orders[value].ptr);
    else if (axis == MAQ_AXIS_LAYOUT && value == MAQ_LAYOUT_BY_WORK)
        snprintf(buf, MAQ_SPACE_WORD, "work");
    else if (axis == MAQ_AXIS_LAYOUT)
        snprintf(buf, MAQ_SPACE_WORD, "E%dL%d", value / MAQ_LAYOUT_END, value % MAQ_LAYOUT_END);
    else if (axis == MAQ_AXIS_HOST_OPTIM)
        snprintf(buf, MAQ_SPACE_WORD, "%g", value / 1000.0);
    else if (axis == MAQ_AXIS_ETP && value == MAQ_VALUE_LIKE_TP)
        snprintf(buf, MAQ_SPACE_WORD, "tp");
    else if (axis == MAQ_AXIS_REPLICAS && value == MAQ_VALUE_PER_DOMAIN)
        snprintf(buf, MAQ_SPACE_WORD, "domain");
    else if (axis == MAQ_AXIS_RECOMPUTE && value == MAQ_RECOMPUTE_VALUE_BLOCK)
        snprintf(buf, MAQ_SPACE_WORD, "block");
    else if (axis == MAQ_AXIS_RECOMPUTE && value == MAQ_RECOMPUTE_VALUE_STAGES)
        snprintf(buf, MAQ_SPACE_WORD, "stages");
    else if (axis == MAQ_AXIS_RECOMPUTE && (value & MAQ_RECOMPUTE_VALUE_PARTS))
        bits_word(buf, MAQ_PLAN_RECOMPUTE_MODULES, (uint32_t)(value & ~MAQ_RECOMPUTE_VALUE_PARTS));
    else if (axis == MAQ_AXIS_RECOMPUTE && value > MAQ_RECOMPUTE_VALUE_UNIFORM + 1)
        snprintf(buf, MAQ_SPACE_WORD, "full:%d", value & ~MAQ_RECOMPUTE_VALUE_UNIFORM);
    else if (axis == MAQ_AXIS_RECOMPUTE)
        snprintf(buf, MAQ_SPACE_WORD, "%s", value == MAQ_RECOMPUTE_VALUE_NONE ? "none" : "full");
    else if (field->type == MAQ_TYPE_ENUM)
        snprintf(buf, MAQ_SPACE_WORD, "%s", field->names[value]);
    else if (field->type == MAQ_TYPE_BOOL)
        snprintf(buf, MAQ_SPACE_WORD, "%s", value ? "true" : "false");
    else
        snprintf(buf, MAQ_SPACE_WORD, "%d", value);
    return buf;
}
