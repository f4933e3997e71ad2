/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offloaded_states.c - what a rank of a stage keeps in host memory and on NVMe from step to step, in bytes.
 *
 * Of P parameters over N shards, with a share f of the optimizer away (DeepSpeed 0.19.6, runtime/zero/stage3.py):
 *
 *   weights     P w / N                    offload_param_device; w: a shard's type, 4 bytes where it is the optimizer's own
 *   optimizer   f P (master + moments) / N offload_optimizer_device; a shard that is the master weight is counted there alone
 *   gradients   P g / N                    on the host, where parameters and optimizer are away; and where g is less than 4 bytes the copy
 *                                          in 4 that the CPU's optimizer reads, on the optimizer's device
 *
 * Frozen parameters of LoRA have no optimizer and no gradients. Buffers that reads and writes of NVMe go through are not counted.
 */
#include "train/memory/offloaded_states.h"

#include "lower/local.h"
#include "train/memory/stage_memory.h"
#include "train/step/dp_comm.h"

static struct maq_offloaded *place_of(struct maq_stage_result *st, int device)
{
    return device == MAQ_OFFLOAD_NVME ? &st->nvme : &st->host;
}

static void add_weights(struct maq_stage_result *st, const struct maq_blueprint *bp, double shard, double narrow)
{
    const struct maq_plan *p = &bp->job->plan;
    const double w = bp->lower.store_bytes;
    if (p->offload_param == MAQ_OFFLOAD_NONE)
        return;
    const double less = p->lora_rank > 0 ? narrow * (w - maq_lower_base_bytes(p, w)) : 0;
    place_of(st, p->offload_param)->weights += shard * maq_shard_bytes(bp->job) - less;
}

/* Optimizer and gradients of `trained` parameters of one rank. */
static void add_trained(struct maq_stage_result *st, const struct maq_blueprint *bp, double trained)
{
    const struct maq_plan *p = &bp->job->plan;
    const double g = maq_dtype_bytes((enum maq_dtype)p->grad_dtype), f = p->optimizer_offload;
    const bool masters = !p->pure_low_precision && bp->job->store_dtype != MAQ_FP32,
               own = p->offload_param != MAQ_OFFLOAD_NONE && p->lora_rank == 0 &&
                     !bp->job->framework.low_precision_shards;
    if (!(f > 0))
        return;
    struct maq_offloaded *optimizer = place_of(st, p->offload_optimizer);
    optimizer->optimizer += f * trained * ((masters && !own ? 4 : 0) + maq_update_moments(p) * maq_moment_bytes(p));
    if (!maq_sync_downloads(p))
        return;
    st->host.gradients += trained * g;
    optimizer->gradients += g < 4 ? f * trained * 4 : 0;
}

void maq_offloaded_states(struct maq_stage_result *st, const struct maq_blueprint *bp,
                          const struct maq_owned_params *held)
{
    const struct maq_job *job = bp->job;
    const bool sharded = job->plan.sharding != MAQ_SHARDING_NONE, lora = job->plan.lora_rank > 0;
    const double shards = sharded ? job->groups[MAQ_GROUP_SHARD].size : 1, edp = sharded ? job->edp : 1;
    add_weights(st, bp, held->dense / shards, held->dense_narrow / shards);
    add_weights(st, bp, held->expert / edp, held->expert_narrow / edp);
    add_trained(st, bp, lora ? held->adapters / shards : held->dense / shards + held->expert / edp);
}
