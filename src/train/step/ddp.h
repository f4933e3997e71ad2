/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ddp.h - the buckets in which PyTorch's DistributedDataParallel reduces gradients, and the backward pass that does it
 * (PyTorch 2.11 to 2.15: torch/nn/parallel/distributed.py, torch/csrc/distributed/c10d/reducer.cpp).
 *
 * Gradients are put into buckets in the order in which they come. A bucket is full with the tensor that brings it to its limit,
 * bucket_cap_mb; where that is the default, 25 MiB, the first one is full at 1 MiB (kDefaultFirstBucketBytes). The last one holds what is left
 * (compute_bucket_assignment_by_size()). With find_unused_parameters the order is that of the parameters, the first bucket at the
 * beginning of the model, and stays so (should_rebuild_buckets()). A bucket of p parameters, g bytes each:
 *
 *   in      p (g read, g written)   as each gradient comes, on the compute stream; divides by the ranks on the way
 *                                   (mark_variable_ready_dense()). In place where gradients are views of the buckets
 *   reduce  all-reduce of p g       on the stream of NCCL, as soon as the bucket is full and those before it have begun
 *   out     p (g read, g written)   on the compute stream behind the backward pass, bucket after bucket, each when it is reduced
 *                                   (finalize_backward()); none for views
 *
 * So with buckets 1 .. n that are full at f_i and the backward pass of compute ending at c, copies in included:
 *
 *   r_i = max(r_(i-1), f_i) + reduce_i       e_0 = c, e_i = max(e_(i-1), r_i) + out_i       the pass ends at e_n
 *
 * With find_unused_parameters an all-reduce of 4 bytes for each tensor follows, and is waited for. Under no_sync() nothing of this
 * happens: it is the last backward pass of a step alone. g is grad_reduce_dtype: the gradients' own type, or a compressing hook's. Where
 * the wrapper's buckets are only the signal for a hook that reduces something else (gradient_buckets: hook; nanotron), nothing is copied,
 * and the pass does not wait for it.
 */
#ifndef MAQ_TRAIN_STEP_DDP_H
#define MAQ_TRAIN_STEP_DDP_H

#include "train/step/blueprint.h"
#include "train/step/dp_comm.h"

/* Whether DistributedDataParallel reduces the gradients of a job. */
bool maq_ddp_reduces(const struct maq_job *job);
/* Whether it waits for that at the end of the backward pass. */
bool maq_ddp_waits(const struct maq_job *job);
/* Whether it looks for unused parameters: the Trainer asks for that where nothing is recomputed. */
bool maq_ddp_finds_unused(const struct maq_job *job);

/* Bytes with which a bucket is full, and the first one. */
double maq_ddp_bucket_bytes(const struct maq_job *job);
double maq_ddp_first_bucket_bytes(const struct maq_job *job);

/* Fills the buckets of a program, one of its data-parallel buckets an entry. */
enum maq_status maq_ddp_fill(struct maq_blueprint *bp, struct maq_program *program);

/* When a bucket may be reduced, in a pass that computes an entry from `start` to `end`. */
double maq_ddp_ready_ns(const struct maq_ddp_bucket *bucket, double start, double end);

/* Makespan of the backward pass, or the half of one, that reduces. */
double maq_ddp_backward_ns(const struct maq_blueprint *bp, struct maq_program *program, enum maq_half half);

#endif
