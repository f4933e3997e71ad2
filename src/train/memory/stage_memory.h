/* stage_memory.h - what a rank holds: states, activations, the working set of a pass, the update, communicators. See stage_memory.c. */
#ifndef MAQ_TRAIN_MEMORY_STAGE_MEMORY_H
#define MAQ_TRAIN_MEMORY_STAGE_MEMORY_H

#include "maquette/train.h"
#include "train/step/blueprint.h"

/* The programs of a stage, one for each position that it holds; returns how many. */
uint32_t maq_stage_programs(const struct maq_program **programs, const struct maq_blueprint *bp, uint32_t stage);

/* Parameters that one rank holds, before data-parallel sharding. */
struct maq_owned_params {
    double dense, expert, adapters;
    double dense_matrices, expert_matrices, dense_narrow, expert_narrow; /* see train/step/blueprint.h */
};
struct maq_owned_params maq_owned_by(const struct maq_program *const *programs, uint32_t n);

/* Layers that share one kept input where whole ones are recomputed: a checkpoint of recompute_num_layers of them; else 1. */
int32_t maq_layers_per_checkpoint(const struct maq_plan *plan);

/* Fills in transient_bytes and gather_bytes. */
void maq_program_transient(struct maq_program *program, const struct maq_blueprint *bp);

/* Memory of a stage that is one program, without activations: model states, the working set of its heaviest pass, and what the update
 * of the parameters takes when activations are gone, but for what one matrix takes that Muon is at work on. */
struct maq_program_bytes {
    double states, working, update, matrix;
};
void maq_program_memory(struct maq_program_bytes *out, const struct maq_blueprint *bp,
                        const struct maq_program *program);

/* Memory of a stage at its peak. */
void maq_stage_memory(struct maq_stage_result *out, const struct maq_blueprint *bp, uint32_t stage);
/* Sharded gradients that are not there at the stage's peak: their pool stays reserved from the step before. */
double maq_stage_gradient_pool(const struct maq_stage_result *st, const struct maq_blueprint *bp, uint32_t stage);
/*
 * What a rank has all through a step of `params` parameters that it holds of a resolved job and `shards` ranks share, `narrow` of which the
 * recipe quantizes, under the sharding, types and offloading of `plan`: weights, optimizer state, and gradients, unless they come
 * with the backward pass. Linear in both.
 */
double maq_state_bytes(const struct maq_job *job, const struct maq_plan *plan, double params, double narrow,
                       double shards);
/* What a rank holds whatever its stage does: context, workspace, communicators of the job's groups. */
double maq_fixed_bytes(const struct maq_job *job);

/* Bytes per updated parameter that the optimizer step needs besides its state: gradients in 4 bytes where they are not kept so, the roots
 * of the second moments where Adam goes over lists of tensors. */
double maq_step_update_bytes(const struct maq_blueprint *bp);

/* Whether it runs: PyTorch gives cached blocks back before it fails, so what counts is what is handed out. */
bool maq_stage_fits(const struct maq_stage_result *stage);

/* Buffers that the communicators of one rank hold. communicators.c */
double maq_communicator_bytes(const struct maq_job *job);

#endif
