/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profiled.h - costs of a mixed plan from a foreign profile, by two rules with the same result struct
 * (maquette/mixed_step.h):
 *
 *   maq_mixed_judge_sailor   the published rule of Sailor's simulator: sailor_rule.c
 *   maq_mixed_predict        maquette's own prediction: predict.c, pipeline.c, memory.c
 */
#ifndef MAQ_TRAIN_PROFILED_PROFILED_H
#define MAQ_TRAIN_PROFILED_PROFILED_H

#include "train/profiled/bind.h"

/* ---- parts of the prediction ---- */

/* Seconds of one pass of a micro batch through the layers of a stage on one replica. */
struct maq_mixed_pass {
    double forward_s, backward_s; /* backward with what it recomputes */
};

/* layer_time.c */
void maq_mixed_pass_time(struct maq_mixed_pass *out, const struct maq_bound_plan *b, const struct maq_bound_stage *s,
                         const struct maq_bound_replica *r);
/* One all-reduce of a replica's layer in a group over several nodes; forward and backward have the same. 0 in a lone node. */
double maq_mixed_group_sync_s(const struct maq_bound_plan *b, const struct maq_bound_replica *r, uint32_t layer);

/* pipeline.c: time of a pipeline without reduction; in_flight[replica of stage 0, 1, ...]: micro batches that it holds at most. */
enum maq_status maq_mixed_simulate_pipeline(double *pipeline_s, uint32_t *in_flight, const struct maq_bound_plan *b,
                                            uint32_t pipeline, struct maq_arena *arena, struct maq_diag *diag);

/* memory.c: bytes on a device of the replica. */
double maq_mixed_memory(const struct maq_bound_plan *b, uint32_t pipeline, uint32_t stage, uint32_t replica,
                        uint32_t in_flight);

#endif
