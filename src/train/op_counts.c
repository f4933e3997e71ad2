/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_counts.c - adds up how often each distinct operator and collective of a step runs, over all pipeline stages.
 * Items that no pass of the schedule counts (the norm's all-reduce) count once. See op_counts.h.
 */
#include "train/op_counts.h"

#include "base/check.h"
#include "train/predict.h"
#include "train/step/job_step.h"

static enum maq_status collect(struct maq_needs *out, const struct maq_blueprint *bp, struct maq_arena *arena)
{
    uint32_t n = bp->items->n;
    double *calls = MAQ_ARENA_NEW(arena, double, n);
    struct maq_need *at = MAQ_ARENA_NEW(arena, struct maq_need, n);
    if (!calls || !at)
        return MAQ_NO_MEMORY;
    for (uint32_t s = 0; s < bp->schedule->stages; s++)
        maq_stage_count_items(calls, NULL, bp, s);
    for (uint32_t v = 1; bp->hop_item && v < bp->schedule->n_positions;
         v++) /* every microbatch crosses every border twice */
        calls[bp->hop_item[v]] += 2.0 * bp->schedule->microbatches;
    *out = (struct maq_needs){.at = at};
    for (uint32_t i = 1; i < n; i++) {
        const struct maq_item *it = &bp->items->at[i];
        if (it->is_coll || it->op.kind != MAQ_OP_GAP)
            at[out->n++] = (struct maq_need){*it, calls[i] > 0 ? calls[i] : 1};
    }
    return MAQ_OK;
}

enum maq_status maq_train_needs(struct maq_needs *out, const struct maq_job *job, struct maq_arena *arena,
                                struct maq_diag *diag)
{
    struct maq_job_step step;
    enum maq_status status = maq_job_step_open(&step, job, NULL, diag);
    if (status == MAQ_OK)
        status = collect(out, &step.bp, arena);
    maq_job_step_close(&step);
    return status;
}
