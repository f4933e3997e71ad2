/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_graphs.h - memory that CUDA graphs hold on a rank beside what the same step takes without them. cuda_graphs.c has the equations. */
#ifndef MAQ_TRAIN_MEMORY_CUDA_GRAPHS_H
#define MAQ_TRAIN_MEMORY_CUDA_GRAPHS_H

#include "maquette/train.h"
#include "train/step/blueprint.h"

/* What the driver holds on the device for graphs of so many kernels, copies and collectives. */
double maq_graph_driver_bytes(double nodes);

/* Fills in pr->graphs, of a program whose entries are there. */
void maq_program_graphs(struct maq_program *pr, const struct maq_blueprint *bp);

/* Of a rank that holds one program, as far as that is known without its schedule: the driver's, and the buffers of a microbatch. */
double maq_program_graph_bytes(const struct maq_blueprint *bp, const struct maq_program *pr);

/*
 * Fills in st->graphs of a stage that holds these programs; returns its sum. `activations`: at their peak; `working`: the working set
 * of a pass; `update`: of the update, when activations are gone.
 */
double maq_stage_graphs(struct maq_stage_result *st, const struct maq_blueprint *bp, uint32_t stage,
                        const struct maq_program *const *programs, uint32_t n, double activations, double working,
                        double update);

#endif
