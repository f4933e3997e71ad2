/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolve.c - completes a plan: decides what it leaves open, and refuses what is impossible on the model and the cluster.
 *
 * Every diagnostic has its numbers: "tp * cp * pp = 48 does not divide 128 devices". All rules run, so that one run shows all faults. Here are
 * the pipeline and the switches, and the order of all rules; resolve.h lists the others.
 */
#include "plan/resolve/resolve.h"

#include <stdio.h>

#include "base/check.h"
#include "plan/schedule/schedule.h"

static void resolve_schedule(struct maq_resolver *r)
{
    struct maq_plan *p = &r->job->plan;
    if (p->schedule == MAQ_SCHEDULE_AUTO)
        p->schedule = p->vp > 1 ? MAQ_SCHEDULE_INTERLEAVED : MAQ_SCHEDULE_1F1B;
    if (maq_schedule_is_v(p->schedule))
        p->vp = p->vp == 1 ? 2 : p->vp; /* their shape has two chunks */
    if (p->pp == 1 && p->vp > 1)
        MAQ_REFUSE(r, MAQ_CODE_PLAN_SCHEDULE, "virtual_pipeline_model_parallel_size",
                   "set pipeline_model_parallel_size too, or leave it out",
                   "%d model chunks per stage, but there is one pipeline stage", p->vp);
    if ((int64_t)p->pp * p->vp > MAQ_MAX_STAGES)
        MAQ_REFUSE(r, MAQ_CODE_PLAN_SCHEDULE, "pipeline_model_parallel_size",
                   "use fewer stages, or a smaller virtual_pipeline_model_parallel_size",
                   "pipeline size %d x %d chunks is over the limit of %d virtual stages", p->pp, p->vp, MAQ_MAX_STAGES);
    if (p->overlap_p2p == MAQ_AUTO)
        p->overlap_p2p = p->vp > 1 || p->schedule >= MAQ_SCHEDULE_ZB_H1 ? MAQ_ON : MAQ_OFF;
    if (p->microbatch_group == 0)
        p->microbatch_group = p->pp;
    if (p->zb_memory_percentile == 0)
        p->zb_memory_percentile = 85; /* the program's default */
    if (r->failed)
        return;
    char why[160];
    const char *refusal = maq_schedule_refuse(r->diag ? why : NULL, p->schedule, (uint32_t)p->pp, (uint32_t)p->vp,
                                              (uint32_t)r->job->microbatches, (uint32_t)p->microbatch_group);
    if (refusal)
        MAQ_REFUSE(
            r, MAQ_CODE_PLAN_SCHEDULE, "pipeline_schedule",
            "change virtual_pipeline_model_parallel_size or global_batch_size, or take another pipeline_schedule", "%s",
            refusal);
}

/* What Megatron Core refuses (transformer_config.py). */
static void resolve_overlap_ep(struct maq_resolver *r)
{
    const struct maq_plan *p = &r->job->plan;
    const char *key = "overlap_moe_expert_parallel_comm", *remedy, *wrong = maq_overlap_ep_conflict(p, &remedy);
    if (wrong)
        MAQ_REFUSE(r, MAQ_CODE_PLAN_OVERLAP, p->delay_wgrad && !maq_plan_merges_passes(p) ? "delay_wgrad_compute" : key,
                   remedy, "%s", wrong);
    if (p->overlap_ep != MAQ_ON || p->ep == 1)
        return;
    if (!r->at->layers_only && !maq_plan_pairs_passes(p))
        MAQ_REFUSE(r, MAQ_CODE_PLAN_OVERLAP, key, "set virtual_pipeline_model_parallel_size (--vp), or leave it out",
                   "a pipeline of schedule %s has no passes side by side that would hide the exchange of experts",
                   maq_schedule_name((enum maq_schedule_kind)p->schedule));
}

/*
 * What sail-sg/zero-bubble-pipeline-parallelism (39f2c186a275) asserts with it (megatron/core/zbpp_utils.py), and which schedules it has.
 * Without a pipeline there is nobody to wait for.
 */
static void resolve_post_validation(struct maq_resolver *r)
{
    const struct maq_plan *p = &r->job->plan;
    const char *key = "enable_optimizer_post_validation";
    const bool zero_bubble = p->schedule == MAQ_SCHEDULE_ZB_H1 || p->schedule == MAQ_SCHEDULE_ZB_H2 ||
                             p->schedule == MAQ_SCHEDULE_ZB_1P || p->schedule == MAQ_SCHEDULE_ZB_2P ||
                             p->schedule == MAQ_SCHEDULE_ZB_AUTO || p->schedule == MAQ_SCHEDULE_ZB_V ||
                             p->schedule == MAQ_SCHEDULE_V_MIN || p->schedule == MAQ_SCHEDULE_V_HALF;
    if (!p->post_validation || p->pp == 1)
        return;
    if (!r->at->layers_only && !zero_bubble)
        MAQ_REFUSE(r, MAQ_CODE_PLAN_UPDATE, key, "use pipeline_schedule: zb-2p or zb-v, or leave it out",
                   "with the schedule %s all stages wait for each other before they update",
                   maq_schedule_name((enum maq_schedule_kind)p->schedule));
    if (p->precision != MAQ_PRECISION_FP16)
        MAQ_REFUSE(r, MAQ_CODE_PLAN_UPDATE, key, "use precision: fp16, or leave it out",
                   "the program that updates before all norms are known does so with fp16 alone");
    if (p->sharding > MAQ_SHARDING_OPTIM ||
        (p->sharding == MAQ_SHARDING_OPTIM && (p->overlap_grad_reduce == MAQ_ON || p->overlap_param_gather == MAQ_ON)))
        MAQ_REFUSE(r, MAQ_CODE_PLAN_UPDATE, key,
                   "use zero: optim with overlap_grad_reduce: false and overlap_param_gather: false, or no sharding",
                   "the program that updates before all norms are known takes no overlap of its sharded optimizer's "
                   "communication, and no more sharding than that");
    if (p->vocab_parallel_pipeline || p->lora_rank > 0)
        MAQ_REFUSE(r, MAQ_CODE_PLAN_UPDATE, key, "leave it out",
                   "%s is another program's, and its stages wait for each other before they update",
                   p->lora_rank > 0 ? "lora_rank" : "vocab_parallel_pipeline");
}

/* Largest divisor of n that is at most `limit`, 1 at least. */
static int32_t largest_divisor(int32_t n, int32_t limit)
{
    int32_t best = 1;
    for (int32_t d = 2; d <= limit && d <= n; d++)
        if (n % d == 0)
            best = d;
    return best;
}

/* The hint "try 4": the largest divisor that is no more than `asked`; none without a diag (in searches). */
static const char *try_divisor(char hint[32], const struct maq_resolver *r, int32_t n, int32_t asked)
{
    if (!r->diag)
        return NULL;
    snprintf(hint, 32, "try %d", largest_divisor(n, asked));
    return hint;
}

static void resolve_switches(struct maq_resolver *r)
{
    struct maq_plan *p = &r->job->plan;
    if (p->sequence_parallel == MAQ_AUTO)
        p->sequence_parallel = p->tp > 1 && !r->job->model.pyramid ? MAQ_ON : MAQ_OFF;
    if (p->tp == 1)
        p->sequence_parallel = MAQ_OFF;
    bool sharded = p->sharding != MAQ_SHARDING_NONE;
    if (p->overlap_grad_reduce == MAQ_AUTO) {
        /* DistributedDataParallel does, DeepSpeed's ZeRO-1 and -2 when they are asked to */
        bool begins_early = sharded ? p->sharding == MAQ_SHARDING_PARAMS || !r->job->framework.gathers_in_step
                                    : r->job->framework.bucket_cap_mb > 0;
        p->overlap_grad_reduce = begins_early && !p->post_validation ? MAQ_ON : MAQ_OFF;
    }
    if (p->overlap_param_gather == MAQ_AUTO)
        p->overlap_param_gather =
            sharded && !p->post_validation && (p->sharding == MAQ_SHARDING_PARAMS || !r->job->framework.gathers_in_step)
                ? MAQ_ON
                : MAQ_OFF;
    if (p->overlap_tp == MAQ_AUTO)
        p->overlap_tp = MAQ_OFF;
    if (p->overlap_ep == MAQ_AUTO)
        p->overlap_ep =
            p->schedule == MAQ_SCHEDULE_DUALPIPE || p->schedule == MAQ_SCHEDULE_DUALPIPE_V ? MAQ_ON : MAQ_OFF;
    if (p->pads_experts == MAQ_AUTO)
        p->pads_experts = maq_plan_knows_expert_rows(p) ? MAQ_ON : MAQ_OFF;
    maq__resolve_attention(r);
    maq__resolve_fp8_attention(r);
    if (p->cp_a2a == 0)
        p->cp_a2a = p->cp_comm == MAQ_CP_A2A ? p->cp : 1;
    if (p->cp_comm == MAQ_CP_A2A_P2P && p->cp_a2a == 1)
        p->cp_a2a = largest_divisor(p->cp, r->job->cluster.groups[0].domain_devices / p->tp);
    char hint[32];
    if (p->cp_a2a > p->cp || p->cp_a2a < 1 || p->cp % p->cp_a2a != 0)
        MAQ_REFUSE(r, MAQ_CODE_PLAN_DEGREES, "hierarchical_cp_a2a_size", try_divisor(hint, r, p->cp, p->cp_a2a),
                   "the inner group of %d does not divide cp %d", p->cp_a2a, p->cp);
    int64_t shard = (int64_t)r->job->dp * p->cp;
    if (shard % p->num_optimizer_instances != 0)
        MAQ_REFUSE(r, MAQ_CODE_PLAN_DEGREES, "num_distributed_optimizer_instances",
                   try_divisor(hint, r, (int32_t)shard, p->num_optimizer_instances),
                   "%d copies of the sharded state do not divide dp x cp = %lld", p->num_optimizer_instances,
                   (long long)shard);
    if (p->num_optimizer_instances > 1 && !sharded)
        MAQ_REFUSE(r, MAQ_CODE_PLAN_DEGREES, "num_distributed_optimizer_instances",
                   "set data_parallel_sharding_strategy", "nothing is sharded, so there are no copies of shards");
}

enum maq_status maq_job_resolve(struct maq_job *job, const struct maq_job_places *at, struct maq_diag *diag)
{
    static void (*const steps[])(struct maq_resolver *) = {
        maq__resolve_dp,      maq__resolve_update,          maq__resolve_sharding,
        resolve_switches,     maq__resolve_batch,           maq__resolve_optimizer,
        resolve_schedule,     maq__resolve_precision,       maq__resolve_adapters,
        maq__resolve_experts, maq__resolve_recompute,       maq__resolve_offload,
        resolve_overlap_ep,   resolve_post_validation,      maq__resolve_graphs,
        maq__check_pyramid,   maq__resolve_offloaded_states};
    struct maq_resolver r = {.job = job, .at = at, .diag = diag};
    for (size_t i = 0; i < MAQ_COUNT(steps); i++) {
        steps[i](&r);
        if (r.failed && !diag) /* without a diag the first fault is enough */
            return MAQ_BAD_INPUT;
    }
    for (uint32_t k = 0; k < job->model.n_kinds && !r.failed; k++)
        maq__check_widths(&r, &job->model.kinds[k]);
    return r.failed ? MAQ_BAD_INPUT : MAQ_OK;
}
