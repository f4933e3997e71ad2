/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_memory.h - memory of a pipeline stage on one rank: model states, activations, the working set of a pass, the
 * update, communicators. stage_memory.c has the equations and their sources.
 */
#ifndef MAQ_TRAIN_MEMORY_STAGE_MEMORY_H
#define MAQ_TRAIN_MEMORY_STAGE_MEMORY_H

#include "graph/allocator.h"
#include "maquette/train.h"
#include "train/step/blueprint.h"

/* The programs of a stage, one for each position that it holds; returns how many. */
uint32_t maq_stage_programs(const struct maq_program **programs, const struct maq_blueprint *bp, uint32_t stage);

/* Parameters that one rank holds, before data-parallel sharding. */
struct maq_owned_params {
    double dense, expert, adapters;
    double dense_matrices, expert_matrices, dense_narrow, expert_narrow; /* see train/step/blueprint.h */
    double dense_paged, expert_paged, adapter_paged;
    struct maq_low_rank low_rank;
    double largest;
};
struct maq_owned_params maq_owned_by(const struct maq_program *const *programs, uint32_t n);

/* Layers that share one kept input where whole ones are recomputed: a checkpoint of recompute_num_layers of them; else 1. */
int32_t maq_layers_per_checkpoint(const struct maq_plan *plan);

/* Fills in transient_bytes, gather_bytes and ahead_bytes. */
void maq_program_transient(struct maq_program *program, const struct maq_blueprint *bp);

/* Memory of a stage that is one program, without activations: model states, the working set of its heaviest pass, the memory of
 * the update when activations are freed, and apart from that the working memory of one matrix under Muon. */
struct maq_program_bytes {
    double states, working, update, matrix;
    double transfers; /* of `working`, what it holds for its neighbours in 1F1B; */
    double border;    /* bytes of one such tensor (pipeline_transfers.h) */
};
void maq_program_memory(struct maq_program_bytes *out, const struct maq_blueprint *bp,
                        const struct maq_program *program);

/* Memory of a stage at its peak. */
void maq_stage_memory(struct maq_stage_result *out, const struct maq_blueprint *bp, uint32_t stage);
/* Sharded gradients that are not allocated at the stage's peak; their memory pool stays reserved from the step before. */
double maq_stage_gradient_pool(const struct maq_stage_result *st, const struct maq_blueprint *bp, uint32_t stage);
/* Copies of gradients in the buckets of DistributedDataParallel; they are among the stage's gradients. */
double maq_stage_bucket_bytes(const struct maq_blueprint *bp, uint32_t stage);
/* What of the pool of FSDP's gathers counts as allocated. */
double maq_stage_ahead_bytes(const struct maq_blueprint *bp, uint32_t stage);
/* Whether gradients are tensors that the backward pass makes and the end of the step frees. */
bool maq_gradients_come(const struct maq_job *job);
/*
 * Bytes that a rank holds throughout a step for `params` parameters of a resolved job, sharded over `shards` ranks, `narrow` of
 * which the recipe quantizes, under the sharding, types and offloading of `plan`: weights, optimizer state, and gradients, unless
 * these are allocated by the backward pass. Linear in both numbers. Without moments that are paged or projected to a low rank.
 */
double maq_state_bytes(const struct maq_job *job, const struct maq_plan *plan, double params, double narrow,
                       double shards);
/* Bytes of a parameter of ZeRO-3 as its shard is kept: the optimizer's 4, or the type of the model (low_precision_shards, LoRA). */
double maq_shard_bytes(const struct maq_job *job);
/* Bytes that every rank holds: context, workspace, communicators of the job's groups. */
double maq_fixed_bytes(const struct maq_job *job);

/* Moments that the optimizer keeps of every parameter (with Muon what is no matrix has one more), and bytes of one, with its scales. */
double maq_update_moments(const struct maq_plan *plan);
double maq_moment_bytes(const struct maq_plan *plan);
/* Bytes of a parameter's master weight beside the one that passes read; 0: that one is it. */
double maq_master_bytes(const struct maq_job *job);
/* Bytes per updated parameter that the optimizer step needs besides its state: gradients in 4 bytes where they are kept in
 * fewer, and the square roots of the second moments where Adam works on lists of tensors. */
double maq_step_update_bytes(const struct maq_blueprint *bp);

/* Bytes that a paged optimizer's update moves between host and device, both ways together: paged_optimizer.c. */
double maq_stage_migrated_bytes(const struct maq_blueprint *bp, uint32_t stage);

/* What the plan says of PyTorch's allocator. */
struct maq_allocator_options maq_allocator_of(const struct maq_plan *plan);

/* Whether a stage fits: PyTorch frees cached blocks before an allocation fails, so only allocated bytes count. */
bool maq_stage_fits(const struct maq_stage_result *stage);

/* Buffers that the communicators of one rank hold. communicators.c */
double maq_communicator_bytes(const struct maq_job *job);

#endif
