/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mixed.c - what two searches over several node groups are compared by: their best plans, stage by stage where these have as many.
 *
 * The step is cut as the closed form has it (planner_mixed.h): filling the pipeline, waits of virtual stages, reduction of gradients, and the
 * rest of that form, which is micro batches at the pace of the slowest stage and the optimizer. What a step that is simulated pass by pass has
 * more or less is a row of its own; so is all of a uniform plan, which was not composed.
 */
#include "base/check.h"
#include "base/str.h"
#include "base/text.h"
#include "report/diff/diff.h"

#define STAGES_MAX 512u /* that are compared */

static struct maq_diff_pair combined(struct maq_diff_pair a, struct maq_diff_pair b, double factor)
{
    struct maq_diff_pair sum = {0};
    for (int s = 0; s < MAQ_DIFF_SIDES; s++) {
        sum.has[s] = a.has[s] && b.has[s];
        sum.of[s] = sum.has[s] ? a.of[s] + factor * b.of[s] : 0;
    }
    return sum;
}

static void add_step(struct maq_diff_reader *r, struct maq_diff_pair step)
{
    static const struct {
        const char *key, *name;
    } parts[] = {{"fill_s", "filling the pipeline"},
                 {"wait_s", "waits of virtual stages"},
                 {"sync_s", "reduction of gradients"}};
    struct maq_node *of[MAQ_DIFF_SIDES];
    maq_diff_nodes(of, r->diff, "plans.0");
    struct maq_diff_pair pace = maq_diff_member(r, of, "bottleneck_s");
    for (int s = 0; s < MAQ_DIFF_SIDES; s++)
        of[s] = pace.has[s] && pace.of[s] > 0 ? of[s] : NULL; /* composed */
    struct maq_diff_table *t =
        maq_diff_table(r, "step", "Where the change of the step comes from", MAQ_DIFF_SECONDS, -1);
    struct maq_diff_pair left = maq_diff_member(r, of, "composed_s");
    for (size_t i = 0; i < MAQ_COUNT(parts); i++) {
        struct maq_diff_pair part = maq_diff_member(r, of, parts[i].key);
        maq_diff_row(r, t, parts[i].key, parts[i].name, part);
        left = combined(left, part, -1);
    }
    maq_diff_row(r, t, "pace_s", "pace of the slowest stage, optimizer", left);
    maq_diff_add_up(r, t, "step_time_s", "step", step, "simulated, and not composed");
    t->note = "the parts of the closed form, and what the step has more or less when it is simulated pass by pass";
}

/* GPUs that the best plan uses, by node group. */
static void add_gpus(struct maq_diff_reader *r)
{
    struct maq_diff_table *t = maq_diff_table(r, "gpus", "GPUs used", MAQ_DIFF_COUNT, 0);
    for (uint32_t i = 0; r->status == MAQ_OK; i++) {
        struct maq_node *of[MAQ_DIFF_SIDES];
        char path[32];
        maq__snprintf(path, sizeof path, "islands.%u", i);
        maq_diff_nodes(of, r->diff, path);
        if (!of[0] && !of[1])
            break;
        const struct maq_node *name = of[1] && of[1]->kind == MAQ_NODE_MAP   ? maq_node_peek(of[1], "device")
                                      : of[0] && of[0]->kind == MAQ_NODE_MAP ? maq_node_peek(of[0], "device")
                                                                             : NULL;
        struct maq_str device = name && name->kind == MAQ_NODE_SCALAR ? name->text : MAQ_STR("?");
        const char *key = maq_arena_printf(&r->diff->arena, "group_%u", i);
        const char *words = maq_arena_printf(&r->diff->arena, "group %u, %.*s", i, (int)device.len, device.ptr);
        if (key && words)
            maq_diff_row(r, t, key, words, maq_diff_member(r, of, "used"));
        else
            r->status = maq_worse(r->status, maq_no_memory(r->diag, "a comparison"));
    }
    struct maq_diff_pair all = maq_diff_sum(t);
    (void)maq_diff_figure(r, "gpus", "GPUs used", MAQ_DIFF_COUNT, 0, all);
    maq_diff_add_up(r, t, "gpus", "all", all, "");
}

/* The device that a stage is on. */
static struct maq_node *device_of(struct maq_diff_reader *r, enum maq_diff_side side, const struct maq_node *stage)
{
    char path[48];
    int64_t island;
    const struct maq_node *at = stage && stage->kind == MAQ_NODE_MAP ? maq_node_peek(stage, "island") : NULL;
    if (!at || at->kind != MAQ_NODE_SCALAR || !maq_str_to_i64(&island, at->text) || island < 0)
        return NULL;
    maq__snprintf(path, sizeof path, "islands.%lld.device", (long long)island);
    return maq_diff_node(r->diff, side, path);
}

/* What a stage is set to, where both plans have as many, so that their numbers mean the same. */
static void add_stage_settings(struct maq_diff_reader *r, uint32_t i, struct maq_node *const of[MAQ_DIFF_SIDES])
{
    static const char *const less[] = {"island", "islands", "in_flight", NULL};
    struct maq_node *device[MAQ_DIFF_SIDES];
    char section[24];
    maq__snprintf(section, sizeof section, "stage %u", i);
    for (int s = 0; s < MAQ_DIFF_SIDES; s++)
        device[s] = device_of(r, (enum maq_diff_side)s, of[s]);
    maq_diff_setting(r, section, "device", device);
    maq_diff_settings_of(r, of, section, less);
}

static void add_stages(struct maq_diff_reader *r)
{
    struct maq_node *list[MAQ_DIFF_SIDES], *of[MAQ_DIFF_SIDES];
    struct maq_diff_pair n = {0};
    maq_diff_nodes(list, r->diff, "plans.0.stages");
    for (int s = 0; s < MAQ_DIFF_SIDES; s++) {
        n.has[s] = list[s] && list[s]->kind == MAQ_NODE_SEQ;
        n.of[s] = n.has[s] ? list[s]->count : 0;
        of[s] = n.has[s] ? list[s]->first : NULL;
    }
    (void)maq_diff_figure(r, "stages", "stages", MAQ_DIFF_COUNT, 0, n);
    if (!n.has[0] || !n.has[1] || list[0]->count != list[1]->count)
        return;
    struct maq_diff_table *time =
        maq_diff_table(r, "stage_time", "A micro batch in each stage, computing", MAQ_DIFF_SECONDS, 0);
    struct maq_diff_table *memory =
        maq_diff_table(r, "stage_memory", "Memory of each stage at its peak", MAQ_DIFF_BYTES, 0);
    for (uint32_t i = 0; of[0] && of[1] && i < STAGES_MAX && r->status == MAQ_OK; i++) {
        const char *key = maq_arena_printf(&r->diff->arena, "stage_%u", i);
        const char *words = maq_arena_printf(&r->diff->arena, "stage %u", i);
        if (!key || !words) {
            r->status = maq_worse(r->status, maq_no_memory(r->diag, "a comparison"));
            return;
        }
        add_stage_settings(r, i, of);
        maq_diff_row(r, time, key, words, maq_diff_member(r, of, "compute_s"));
        maq_diff_row(r, memory, key, words, maq_diff_member(r, of, "memory_bytes"));
        of[0] = of[0]->next;
        of[1] = of[1]->next;
    }
}

/* Of the stage that is nearest to what its devices have. */
static void add_memory(struct maq_diff_reader *r)
{
    struct maq_diff_pair stage = maq_diff_number(r, "headroom.stage");
    struct maq_node *of[MAQ_DIFF_SIDES] = {NULL, NULL};
    char path[48];
    for (int s = 0; s < MAQ_DIFF_SIDES; s++) {
        if (!stage.has[s] || !(stage.of[s] >= 0) || !(stage.of[s] < STAGES_MAX))
            continue;
        maq__snprintf(path, sizeof path, "plans.0.stages.%.0f", stage.of[s]);
        of[s] = maq_diff_node(r->diff, (enum maq_diff_side)s, path);
    }
    (void)maq_diff_figure(r, "memory_bytes", "memory of the fullest stage", MAQ_DIFF_BYTES, -1,
                          maq_diff_member(r, of, "memory_bytes"));
}

/* The job's tokens of a step, which these reports do not divide by its time. */
static void add_throughput(struct maq_diff_reader *r, struct maq_diff_pair step)
{
    struct maq_diff_pair gbs = maq_diff_number(r, "job.workload.global_batch_size"),
                         seq = maq_diff_number(r, "job.workload.seq_length"), rate = {0};
    for (int s = 0; s < MAQ_DIFF_SIDES; s++) {
        rate.has[s] = gbs.has[s] && seq.has[s] && step.has[s] && step.of[s] > 0;
        rate.of[s] = rate.has[s] ? gbs.of[s] * seq.of[s] / step.of[s] : 0;
    }
    (void)maq_diff_figure(r, "tokens_per_s", "tokens/s", MAQ_DIFF_PER_S, 1, rate);
}

void maq_diff_read_mixed(struct maq_diff_reader *r)
{
    static const char *const less[] = {"stages", "pipelines", "plan", "bottleneck_stage", NULL};
    struct maq_node *of[MAQ_DIFF_SIDES];
    maq_diff_require(r, "job");
    maq_diff_require(r, "plans");
    maq_diff_settings(r, "job", NULL);
    maq_diff_settings(r, "planner", "planner");
    maq_diff_verdict(r->diff, "fits", "no plan fits");
    maq_diff_nodes(of, r->diff, "plans.0");
    if (of[0] && of[1])
        maq_diff_settings_of(r, of, "plan", less);
    maq_diff_nodes(of, r->diff, "plans.0.plan"); /* of a uniform plan */
    if (of[0] && of[1])
        maq_diff_settings(r, "plans.0.plan", "plan");
    struct maq_diff_pair step = maq_diff_number(r, "step_time_s");
    (void)maq_diff_figure(r, "step_time_s", "step", MAQ_DIFF_SECONDS, -1, step);
    add_throughput(r, step);
    (void)maq_diff_figure(r, "usd_per_trillion_tokens", "USD for 10^12 tokens", MAQ_DIFF_USD, -1,
                          maq_diff_number(r, "money.usd_per_trillion_tokens"));
    (void)maq_diff_figure(r, "lower_bound_s", "by its form, none is faster than", MAQ_DIFF_SECONDS, -1,
                          maq_diff_number(r, "lower_bound_s"));
    (void)maq_diff_figure(r, "fit_probability", "fit probability", MAQ_DIFF_SHARE, 1,
                          maq_diff_number(r, "headroom.fit_probability"));
    if (step.has[MAQ_DIFF_BEFORE] || step.has[MAQ_DIFF_AFTER])
        add_step(r, step);
    add_memory(r);
    add_gpus(r);
    add_stages(r);
    struct maq_diff_table *t = maq_diff_table(r, "counts", "What was searched", MAQ_DIFF_COUNT, 0);
    maq_diff_nodes(of, r->diff, "counts");
    maq_diff_members(r, t, of, "");
}
