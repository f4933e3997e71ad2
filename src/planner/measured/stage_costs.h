/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_costs.h - stage tables from a foreign profile (train/profiled/layer_profile.h), under the cost rule that Sailor publishes
 * with it.
 *
 * Rule (Sailor, SOSP'25; github eth-easl/sailor, sosp25_ae: Planner/simulations/runtime_simulator.py, read as a specification):
 *
 *   compute_i   sum of the layers' forward and backward times at the stage's TP and micro batch; the slowest replica
 *   hops        activations (output of the last layer) forward, a message of the size of the first layer's output backward, over
 *               the link between nodes with as many devices on either side as the TP degree; a pipeline's last stage pays its
 *               backward hop twice and nothing forward, the first one its forward hop once, or twice when there are more than three
 *               stages
 *   sync_i      ring all-reduce of the gradients (parameters / smallest TP of the stage, fp32) in buckets of 5e8 bytes over the
 *               slowest pair of replicas, one device of a node at a time, not overlapped
 *   update      that of the stage's first layer
 *   memory_i    24 bytes per parameter (fp32 weights, gradients, Adam's two moments, communication and a copy of DeepSpeed's), fp32
 *               activations of as many micro batches as there are stages from this one on, 2 GB (TP 1) or 3 GB for the framework
 *
 * The rule knows one micro batch and one number of replicas for all stages. A stage with r times the replicas splits each micro
 * batch: a replica runs b / r samples in the time and memory that were measured for a micro batch of b / r, a hop takes the larger
 * share of its two sides, and gradients are reduced over all replicas of the stage. All replicas work on every micro batch, so 1F1B
 * is unchanged.
 */
#ifndef MAQ_PLANNER_MEASURED_STAGE_COSTS_H
#define MAQ_PLANNER_MEASURED_STAGE_COSTS_H

#include "base/arena.h"
#include "planner/compose/stage_table.h"
#include "train/profiled/layer_profile.h"

struct maq_profile_pool { /* devices of one type in one zone */
    uint32_t device, zone, count;
    uint32_t per_node;     /* largest TP degree */
    double capacity_bytes; /* of a device */
};

struct maq_profile_costs {
    const struct maq_profile_dir *profile; /* borrowed */
    uint32_t model, global_batch;
    uint32_t n_pools;
    struct maq_profile_pool pools[MAQ_STAGE_KINDS];
    uint32_t n_micro_batches;
    uint32_t micro_batches[16]; /* measured on any of the pools, ascending */
};

/* An option's id: pool, TP and share of a micro batch. */
static inline uint32_t maq_profile_option_id(uint32_t pool, uint32_t tp, uint32_t share)
{
    return pool << 24 | tp << 12 | share;
}

/* Finds the micro batches that were measured. MAQ_BAD_INPUT when the model was measured on none of the pools. */
enum maq_status maq_profile_costs_init(struct maq_profile_costs *costs, struct maq_diag *diag);

struct maq_profile_wave {
    uint32_t micro_batch, replicas; /* a wave is that many micro batches */
    uint32_t max_parts;             /* kinds that may share a stage: 1 or 2 */
    uint32_t max_split;             /* replicas that may share a micro batch: 1, 2, 4, ... up to this */
    bool chains;                    /* options without devices for all replicas are kept: some pipelines may use them */
};

/* The table of a wave lives in the arena. false when out of memory. A table without options is possible. */
bool maq_profile_costs_table(struct maq_stage_table *table, const struct maq_profile_costs *costs,
                             const struct maq_profile_wave *wave, struct maq_arena *arena);

#endif
