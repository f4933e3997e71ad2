/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dp_comm.h - data-parallel communication of a program: its buckets, their collectives, and the length of its passes
 * with them. See dp_comm.c.
 */
#ifndef MAQ_TRAIN_STEP_DP_COMM_H
#define MAQ_TRAIN_STEP_DP_COMM_H

#include "train/atoms.h"
#include "train/step/blueprint.h"

/* Whether gradients go to the host as soon as they are reduced: with the parameters, where the optimizer is there. */
bool maq_sync_downloads(const struct maq_plan *plan);
/* Data-parallel buckets and their collectives. */
enum maq_status maq_blueprint_sync(struct maq_blueprint *bp, struct maq_program *program);
/* Parameters of a bucket that fills by size, over so many data-parallel ranks. */
double maq_sync_bucket_params(double ranks);
/* Backward passes: the whole one or, in schedules that split, the halves for inputs and for weights, always
 * one after the other. */
enum maq_half { MAQ_HALF_WHOLE, MAQ_HALF_INPUT, MAQ_HALF_WEIGHT };
/* Compute of a bucket in such a half. */
double maq_half_ns(const struct maq_bucket_sync *bucket, enum maq_half half);
/* What a half does besides computing: gathers parameters again (ZeRO-3); reduces the gradients it completes
 * (ZeRO-2/3), in a pass that does. */
bool maq_half_gathers(const struct maq_blueprint *bp, enum maq_half half);
bool maq_half_reduces(enum maq_half half, bool pass_reduces);
/* Gradients are reduced behind the last backward passes, not inside passes. */
bool maq_reduces_behind(const struct maq_blueprint *bp);
/* ZeRO-2 that does not overlap: the backward pass goes on when a bucket is reduced (DeepSpeed, stage_1_and_2.py, average_tensor(): on the
 * stream that computes unless overlap_comm). */
bool maq_reduces_in_line(const struct maq_blueprint *bp);
const struct maq_segment *maq_half_segment(const struct maq_blueprint *bp, const struct maq_entry *e,
                                           enum maq_half half);
/* Time that a block adds to the DP stream in each forward and backward pass, both halves together, in a bucket of its own; 0
 * where a bucket holds several blocks (bucket_layers, reduce_bucket_size), since together they take less. */
struct maq_atom_sync maq_sync_of_pass(struct maq_blueprint *bp, const struct maq_block *block);
/* Makespan of one pass of a program with its collectives on the DP stream. Relative to the start of the pass. */
double maq_sync_forward_ns(const struct maq_blueprint *bp, struct maq_program *program);
double maq_sync_backward_ns(const struct maq_blueprint *bp, struct maq_program *program, enum maq_half half,
                            bool pass_reduces);
/* How much of all passes of a microbatch together is waiting for copies between host and device. */
double maq_sync_copies_ns(const struct maq_blueprint *bp, struct maq_program *program, bool pass_reduces);
/* How much longer the pass that completes gradients takes the last time, where it reduces them then alone. */
double maq_sync_late_ns(const struct maq_blueprint *bp, const struct maq_program *program);
/* Earliest end of the first forward pass of a program whose parameters arrive bucket by bucket from time
 * `from` on; *until = end of its last gather. */
double maq_sync_ready_ns(const struct maq_program *program, double from, double *until);
/* End of a program's gradient reduction when the last pass that completes gradients starts at `start` and the
 * DP stream is free at `free_at`. */
double maq_sync_reduced_ns(const struct maq_blueprint *bp, const struct maq_program *program, double start,
                           double free_at);
/* The reduction of the gradients that are there last: nothing hides it. */
double maq_sync_last_ns(const struct maq_program *program);

#endif
