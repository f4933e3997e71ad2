/* SPDX-License-Identifier: Apache-2.0 */
/*
 * optimizer_conflicts.c - optimizers that cannot work beside other settings, as their libraries refuse it or cannot do it. See job_build.h.
 *
 *   GaLore          projects whole matrices (galore-torch 1.0, galore_projector.py, project()): shards are none; its per-layer form takes one
 *                   process and no accumulation (transformers 5.24, trainer_optimizer.py, _setup_low_rank_optimizer())
 *   APOLLO          the same (apollo-torch 1.0.3, apollo.py)
 *   paged moments   bitsandbytes 0.50.2 has them of Adam and Lion, in 8 and in 32 bits (optim/adamw.py, lion.py), updated on the device
 *   1-bit           without ZeRO (DeepSpeed 0.19.6, runtime/engine.py, _configure_basic_optimizer()), over all ranks that hold a parameter
 *   ZeRO++          its groups are cut out of all ranks: gradients are exchanged inside nodes, then between ranks of the same number
 *                   (utils/groups.py, runtime/comm/coalesced_collectives.py, all_to_all_quant_reduce())
 */
#include "plan/job_build.h"

static const char *galore_fault(const struct maq_job *job, const char **key, const char **remedy)
{
    const struct maq_plan *p = &job->plan;
    *key = "galore_rank";
    if (p->galore_rank == 0)
        return NULL;
    *remedy = "leave one of the two out";
    if (p->lora_rank > 0)
        return "GaLore projects gradients of whole matrices, and lora_rank trains adapters";
    if (p->update != MAQ_UPDATE_ADAM && p->update != MAQ_UPDATE_ADAFACTOR)
        return "GaLore goes with Adam and Adafactor (galore_torch)";
    if (p->use_apollo && p->update != MAQ_UPDATE_ADAM)
        return "APOLLO goes with Adam (apollo_torch)";
    if (p->optimizer_offload > 0)
        return "GaLore's projections do not run on the host";
    *remedy = "set data_parallel_sharding_strategy: no_shard";
    if (p->sharding != MAQ_SHARDING_NONE)
        return "GaLore works on whole matrices, and data_parallel_sharding_strategy cuts them or their states";
    *key = "galore_layerwise";
    *remedy = "leave it out, or use one device and one microbatch";
    if (p->galore_layerwise && (job->cluster.devices > 1 || job->microbatches > 1))
        return "gradients that are freed as they come are neither reduced nor added up";
    return NULL;
}

static const char *paged_fault(const struct maq_job *job, const char **key, const char **remedy)
{
    const struct maq_plan *p = &job->plan;
    *key = "paged_optimizer";
    *remedy = "leave it out";
    if (!p->paged_optimizer)
        return NULL;
    if ((p->update != MAQ_UPDATE_ADAM && p->update != MAQ_UPDATE_LION) || p->galore_rank > 0)
        return "bitsandbytes has paged moments of Adam and Lion";
    if (p->optimizer_offload > 0)
        return "paged moments are updated on the device, and optimizer_offload_fraction keeps them on the host";
    return NULL;
}

static const char *one_bit_fault(const struct maq_job *job, const char **key, const char **remedy)
{
    const struct maq_plan *p = &job->plan;
    *key = "optimizer";
    if (p->update < MAQ_UPDATE_ONEBIT_ADAM)
        return NULL;
    *remedy = "set data_parallel_sharding_strategy: no_shard";
    if (p->sharding != MAQ_SHARDING_NONE)
        return "DeepSpeed's 1-bit optimizers do not go with ZeRO";
    *remedy = "use optimizer: adam";
    if (p->ep > 1 || p->lora_rank > 0 || p->optimizer_offload > 0)
        return "signs of the momentum are exchanged of all parameters, whole and on the device: not with experts that "
               "ranks "
               "share, adapters or a part on the host";
    return NULL;
}

static const char *zeropp_fault(const struct maq_job *job, const char **key, const char **remedy)
{
    const struct maq_plan *p = &job->plan;
    const int32_t ranks = job->dp * p->cp;
    *key = p->hpz > 1             ? "zero_hpz_partition_size"
           : p->quantized_weights ? "zero_quantized_weights"
                                  : "zero_quantized_gradients";
    if ((p->hpz == 1 && !p->quantized_weights && !p->quantized_gradients) || p->sharding != MAQ_SHARDING_PARAMS)
        return NULL;
    *remedy = "shard over all ranks, parameters in 16 bits on the device: tp 1, pp 1, ep 1";
    if ((uint32_t)ranks != job->cluster.devices || p->ep > 1 || p->num_optimizer_instances > 1 || p->lora_rank > 0 ||
        p->offload_param != MAQ_OFFLOAD_NONE || p->fp8_param_gather || p->gather_once || p->reduce_once)
        return "ZeRO++ cuts its groups out of all ranks of a job, and gathers and reduces trained parameters in every "
               "pass";
    *remedy = "use a divisor";
    if (ranks % p->hpz != 0 || (p->hpz % p->cp != 0 && p->cp % p->hpz != 0))
        return "the ranks do not divide into groups of zero_hpz_partition_size";
    *key = "zero_quantized_gradients";
    *remedy = "leave it out, or use whole nodes";
    if (p->quantized_gradients && (job->cluster.n_groups > 1 || ranks % job->cluster.groups[0].devices_per_node != 0) &&
        ranks > job->cluster.groups[0].devices_per_node)
        return "gradients in 4 bits are exchanged inside nodes of equally many devices, then between them";
    return NULL;
}

const char *maq_optimizer_fault(const struct maq_job *job, const char **key, const char **remedy)
{
    const char *fault = galore_fault(job, key, remedy);
    if (!fault)
        fault = paged_fault(job, key, remedy);
    if (!fault)
        fault = one_bit_fault(job, key, remedy);
    return fault ? fault : zeropp_fault(job, key, remedy);
}
