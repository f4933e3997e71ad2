/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_transfers.c - counts the tensors that a stage holds for its neighbours, by its schedule and its place in the pipeline, and their bytes. */
#include "train/memory/pipeline_transfers.h"

#include "lower/local.h"

double maq_border_bytes(const struct maq_blueprint *bp)
{
    return maq_lower_border_bytes(&bp->lower, bp->job->model.hidden);
}

uint32_t maq_pipeline_transfers(const struct maq_job *job, int schedule, bool first, bool last)
{
    if (!maq_job_has_transformer_engine(job) || schedule > MAQ_SCHEDULE_INTERLEAVED || (first && last))
        return 0;
    if (schedule != MAQ_SCHEDULE_INTERLEAVED || job->plan.overlap_p2p == MAQ_OFF)
        return first ? 0 : 1;
    const uint32_t output = last ? 0 : 1, next = 1, sent = 1, of_chunk = first ? 0 : 2;
    return output + next + sent + of_chunk;
}

double maq_transfer_bytes(const struct maq_blueprint *bp, uint32_t stage)
{
    const struct maq_schedule *s = bp->schedule;
    return maq_pipeline_transfers(bp->job, s->kind, stage == 0, stage + 1 == s->stages) * maq_border_bytes(bp);
}

double maq_program_transfer_bytes(const struct maq_blueprint *bp, const struct maq_program *pr)
{
    const struct maq_layer *first = bp->blocks[pr->entries[0].block]->layer,
                           *last = bp->blocks[pr->entries[pr->n_entries - 1].block]->layer;
    return maq_pipeline_transfers(bp->job, MAQ_SCHEDULE_1F1B, first->modules[0].kind == MAQ_MODULE_EMBEDDING,
                                  last->modules[last->n_modules - 1].kind == MAQ_MODULE_LOSS) *
           maq_border_bytes(bp);
}
