/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weight_sync.c - the policy's new weights on their way to what generates: gathered where they are shards, then copied into a colocated engine, or sent
 * to a server. TRL 1.10, generation/vllm_generation.py. See step.h.
 */
#include "post_training/step.h"

#include <math.h>

/* Shards are gathered layer by layer (FSDP's summon_full_params(), DeepSpeed's GatheredParameters). */
static double gather_s(const struct maq_job *job, double bytes)
{
    const double layers = job->model.num_layers;
    struct maq_coll coll = {
        .kind = MAQ_COLL_ALL_GATHER, .sharers = 1, .bytes = bytes / layers, .at = job->groups[MAQ_GROUP_SHARD]};
    if (job->plan.sharding != MAQ_SHARDING_PARAMS || coll.at.size < 2)
        return 0;
    return layers * maq_cost_coll(NULL, &coll, &job->cluster).seconds;
}

/*
 * From the trainer's first rank to all of the engines (NCCL's broadcast, pipelined): through the one port of that rank, and among them, as
 * fast as the slower.
 */
static double broadcast_s(const struct maq_post_training_result *r, double bytes)
{
    const struct maq_cluster *cluster = &r->job->cluster;
    struct maq_coll far = {.kind = MAQ_COLL_SEND_RECV, .sharers = 1, .bytes = bytes}, near = far;
    far.at = near.at = maq_cluster_place(cluster, 0, 1, 1);
    far.at.size = far.at.domains = 2;
    near.kind = MAQ_COLL_BROADCAST;
    near.at.size = near.at.per_domain = near.at.per_node = r->rollout.engine_devices;
    const double inside = r->rollout.engine_devices > 1 ? maq_cost_coll(NULL, &near, cluster).seconds : 0;
    return fmax(maq_cost_coll(NULL, &far, cluster).seconds, inside);
}

double maq_rl_sync_s(const struct maq_post_training_result *r)
{
    const struct maq_job *job = r->job;
    const double layers = job->model.num_layers, params = (double)job->model.params,
                 bytes = 2 * params; /* vLLM has them in 16 bits */
    if (!r->rl.use_vllm)             /* generate(): DeepSpeed's stage 3 is gathered for it, FSDP gathers in each pass */
        return job->framework.low_precision_shards ? gather_s(job, bytes) : 0;
    double s = gather_s(job, bytes);
    if (r->rl.vllm_mode == MAQ_VLLM_COLOCATE) { /* read whole, written in parts */
        const struct maq_op load = {.kind = MAQ_OP_ELEMENTWISE,
                                    .dtype = MAQ_BF16,
                                    .d = {(int64_t)params / r->rl.vllm_tensor_parallel_size, 2, 2}};
        return s + maq_cost_op(NULL, &load, &job->cluster.groups[0].device).seconds;
    }
    return s + broadcast_s(r, bytes / layers) * layers;
}
