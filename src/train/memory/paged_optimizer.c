/* SPDX-License-Identifier: Apache-2.0 */
/* paged_optimizer.c - what a paged optimizer has on the device and on the host. See paged_optimizer.h. */
#include "train/memory/paged_optimizer.h"

#include <math.h>

double maq_managed_bytes(const struct maq_job *job, const struct maq_owned_params *held)
{
    const struct maq_plan *p = &job->plan;
    if (!p->paged_optimizer)
        return 0;
    const bool shared = p->sharding != MAQ_SHARDING_NONE, lora = p->lora_rank > 0;
    const double shards = shared ? job->groups[MAQ_GROUP_SHARD].size : 1, edp = shared ? job->edp : 1;
    const double params = lora ? held->adapter_paged / shards : held->dense_paged / shards + held->expert_paged / edp;
    return params * maq_update_moments(p) * maq_moment_bytes(p);
}

void maq_settle_managed(struct maq_stage_result *st)
{
    if (!(st->managed_bytes > 0))
        return;
    const double apart = st->bytes[MAQ_MEM_CONTEXT] + st->bytes[MAQ_MEM_NCCL] + st->bytes[MAQ_MEM_GRAPHS],
                 room = st->capacity_bytes - (st->reserved_bytes + apart),
                 resident = fmin(st->managed_bytes, fmax(room, 0));
    st->bytes[MAQ_MEM_OPTIMIZER] += resident - st->resident_bytes;
    st->host.optimizer += (st->managed_bytes - resident) - (st->managed_bytes - st->resident_bytes);
    st->resident_bytes = resident;
    st->total_bytes = st->reserved_bytes + apart + resident;
}

double maq_stage_migrated_bytes(const struct maq_blueprint *bp, uint32_t stage)
{
    struct maq_stage_result st;
    if (!bp->job->plan.paged_optimizer)
        return 0;
    maq_stage_memory(&st, bp, stage);
    return st.resident_bytes < st.managed_bytes ? 2 * st.managed_bytes : 0;
}
