/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train.c - what two reports of a training step, or of a search for its best plan, are compared by.
 *
 * The parts of a step are those of its critical stage and add up to the step. What computes is cut once more, by kind of operator: on one
 * rank of that stage these add up to forward, backward, recompute and optimizer.
 */
#include "maquette/train.h"
#include "base/check.h"
#include "base/str.h"
#include "base/text.h"
#include "report/diff/diff.h"

/* Which stage a table is of, in both reports. */
static void note_stage(struct maq_diff_reader *r, struct maq_diff_table *t, const char *which,
                       struct maq_diff_pair stage)
{
    t->note = maq_arena_printf(&r->diff->arena, "of the stage with %s: stage %.0f before, stage %.0f after", which,
                               stage.of[MAQ_DIFF_BEFORE], stage.of[MAQ_DIFF_AFTER]);
    if (!t->note)
        r->status = maq_worse(r->status, maq_no_memory(r->diag, "a comparison"));
}

static bool has_stages(const struct maq_diff *d)
{
    return maq_diff_node(d, MAQ_DIFF_BEFORE, "stages.1") || maq_diff_node(d, MAQ_DIFF_AFTER, "stages.1");
}

static struct maq_diff_table *add_step(struct maq_diff_reader *r, const char *breakdown, struct maq_diff_pair step)
{
    struct maq_node *of[MAQ_DIFF_SIDES];
    maq_diff_nodes(of, r->diff, breakdown);
    struct maq_diff_table *t =
        maq_diff_table(r, "step", "Where the change of the step comes from", MAQ_DIFF_SECONDS, -1);
    maq_diff_members(r, t, of, "_s");
    maq_diff_add_up(r, t, "step_time_s", "step", step, "in no category");
    return t;
}

/* What computes, by kind of operator. Reports of earlier versions do not say it. */
static void add_kinds(struct maq_diff_reader *r)
{
    static const char *const parts[] = {"breakdown.forward_s", "breakdown.backward_s", "breakdown.recompute_s",
                                        "breakdown.optimizer_s"};
    struct maq_node *of[MAQ_DIFF_SIDES];
    struct maq_diff_pair whole = {0};
    maq_diff_nodes(of, r->diff, "kinds");
    if (!of[MAQ_DIFF_BEFORE] || !of[MAQ_DIFF_AFTER])
        return;
    for (size_t i = 0; i < MAQ_COUNT(parts); i++) {
        struct maq_diff_pair part = maq_diff_number(r, parts[i]);
        for (int s = 0; s < MAQ_DIFF_SIDES; s++) {
            whole.of[s] += part.of[s];
            whole.has[s] |= part.has[s];
        }
    }
    struct maq_diff_table *t = maq_diff_table(r, "compute", "Compute by kind of operator", MAQ_DIFF_SECONDS, -1);
    maq_diff_items(r, t, of, "kind", "time_s");
    maq_diff_add_up(r, t, "compute_s", "forward, backward, recompute, optimizer", whole, "in no operator");
}

/* Of the fullest GPU of each. */
static void add_memory(struct maq_diff_reader *r)
{
    struct maq_diff_pair stage = maq_diff_number(r, "worst_memory_stage");
    struct maq_node *of[MAQ_DIFF_SIDES] = {NULL, NULL};
    char path[48];
    for (int s = 0; s < MAQ_DIFF_SIDES; s++) {
        if (!stage.has[s] || !(stage.of[s] >= 0) || !(stage.of[s] < UINT32_MAX))
            continue;
        maq__snprintf(path, sizeof path, "stages.%.0f.memory", stage.of[s]);
        of[s] = maq_diff_node(r->diff, (enum maq_diff_side)s, path);
    }
    struct maq_diff_pair whole = maq_diff_member(r, of, "total_bytes"), low = maq_diff_number(r, "memory_low"),
                         high = maq_diff_number(r, "memory_high");
    for (int s = 0; s < MAQ_DIFF_SIDES; s++) {
        low.of[s] *= whole.of[s];
        high.of[s] *= whole.of[s];
    }
    maq_diff_interval(maq_diff_figure(r, "memory_bytes", "memory", MAQ_DIFF_BYTES, -1, whole), 0.8, low, high);
    struct maq_diff_table *t = maq_diff_table(r, "memory", "Memory of the fullest GPU at its peak", MAQ_DIFF_BYTES, -1);
    for (int k = 0; k < MAQ_MEM_COUNT; k++) {
        const char *name = maq_mem_name((enum maq_mem_kind)k);
        const char *key = maq_arena_printf(&r->diff->arena, "%s_bytes", name);
        const char *words = maq_diff_words(&r->diff->arena, maq_str_of(name));
        if (key && words)
            maq_diff_row(r, t, key, words, maq_diff_member(r, of, key));
        else
            r->status = maq_worse(r->status, MAQ_NO_MEMORY);
    }
    maq_diff_add_up(r, t, "total_bytes", "total", whole, "in no category");
    if (has_stages(r->diff))
        note_stage(r, t, "the most memory", stage);
}

/* The step with its interval, and what follows from it, of maps of both reports. */
static struct maq_diff_pair add_figures(struct maq_diff_reader *r, struct maq_node *const of[MAQ_DIFF_SIDES])
{
    static const struct {
        const char *path, *name;
        enum maq_diff_unit unit;
    } figures[] = {{"tokens_per_s", "tokens/s", MAQ_DIFF_PER_S},
                   {"tokens_per_s_per_device", "per GPU", MAQ_DIFF_PER_S},
                   {"mfu", "MFU", MAQ_DIFF_SHARE},
                   {"hfu", "HFU", MAQ_DIFF_SHARE}};
    struct maq_diff_pair step = maq_diff_member(r, of, "step_time_s");
    maq_diff_interval(maq_diff_figure(r, "step_time_s", "step", MAQ_DIFF_SECONDS, -1, step), 0.8,
                      maq_diff_member(r, of, "step_time_low_s"), maq_diff_member(r, of, "step_time_high_s"));
    for (size_t i = 0; i < MAQ_COUNT(figures); i++)
        (void)maq_diff_figure(r, figures[i].path, figures[i].name, figures[i].unit, 1,
                              maq_diff_member(r, of, figures[i].path));
    (void)maq_diff_figure(r, "usd_per_trillion_tokens", "USD for 10^12 tokens", MAQ_DIFF_USD, -1,
                          maq_diff_member(r, of, "money.usd_per_trillion_tokens"));
    return step;
}

void maq_diff_read_train(struct maq_diff_reader *r)
{
    struct maq_node *of[MAQ_DIFF_SIDES];
    r->diff->of = "what predictions can be off by";
    r->diff->is_prediction = true;
    maq_diff_require(r, "step_time_s");
    maq_diff_require(r, "job");
    maq_diff_settings(r, "job", NULL);
    maq_diff_verdict(r->diff, "fits", "does not fit in memory");
    maq_diff_nodes(of, r->diff, "");
    struct maq_diff_pair step = add_figures(r, of), stage = maq_diff_number(r, "critical_stage");
    struct maq_diff_table *t = add_step(r, "breakdown", step);
    if (has_stages(r->diff))
        note_stage(r, t, "the least bubble", stage);
    add_kinds(r);
    add_memory(r);
    (void)maq_diff_figure(r, "fit_probability", "fit probability", MAQ_DIFF_SHARE, 1,
                          maq_diff_number(r, "fit_probability"));
}

void maq_diff_read_plan(struct maq_diff_reader *r)
{
    struct maq_node *of[MAQ_DIFF_SIDES];
    r->diff->of = "what predictions can be off by";
    r->diff->is_prediction = true;
    maq_diff_require(r, "job");
    maq_diff_require(r, "plans");
    maq_diff_settings(r, "job", NULL);
    maq_diff_settings(r, "plans.0.plan", "plan");
    maq_diff_settings(r, "space", "space");
    maq_diff_verdict(r->diff, "fits", "no plan fits");
    maq_diff_nodes(of, r->diff, "plans.0");
    struct maq_diff_pair step = add_figures(r, of);
    (void)maq_diff_figure(r, "needed_bytes", "memory needed", MAQ_DIFF_BYTES, -1,
                          maq_diff_member(r, of, "needed_bytes"));
    (void)maq_diff_figure(r, "lower_bound_s", "no plan is faster than", MAQ_DIFF_SECONDS, -1,
                          maq_diff_number(r, "lower_bound_s"));
    if (step.has[MAQ_DIFF_BEFORE] || step.has[MAQ_DIFF_AFTER])
        (void)add_step(r, "plans.0.breakdown", step);
    struct maq_diff_table *t = maq_diff_table(r, "counts", "Plans of the space", MAQ_DIFF_COUNT, 0);
    maq_diff_nodes(of, r->diff, "counts");
    maq_diff_members(r, t, of, "");
}
