/* SPDX-License-Identifier: Apache-2.0 */
/*
 * optimizer.c - the end of a step on one rank: norm and clipping of the gradients, the update, its part on the host, zeroing of
 * gradients, 8- and 4-bit copies of the weights.
 */
#include "train/step/optimizer.h"

#include "base/check.h"
#include "lower/local.h"
#include "train/memory/stage_memory.h"
#include "train/step/dp_comm.h"
#include "train/step/galore.h"
#include "train/step/host.h"
#include "train/step/muon.h"
#include "train/step/offloaded_update.h"
#include "train/step/one_bit.h"

/* What an element of the optimizer's state is, in bytes; `apart`: its casts are kernels of their own. */
struct optimizer_types {
    double grad, master, moment, store;
    bool apart;
};

/* With moments of another type Megatron-LM's optimizer is the precision-aware one, which casts inside its kernel. */
static struct optimizer_types optimizer_types(const struct maq_blueprint *bp)
{
    const struct maq_plan *p = &bp->job->plan;
    struct optimizer_types t = {.grad = maq_dtype_bytes((enum maq_dtype)p->grad_dtype),
                                .master = p->pure_low_precision || bp->lower.store == MAQ_FP32 ? 0 : 4,
                                .moment = maq_moment_bytes(p),
                                .store = bp->lower.store_bytes};
    t.apart = bp->job->framework.optimizer_casts_apart && t.master > 0 && p->optimizer_dtype == MAQ_FP32;
    return t;
}

static void put_pass(struct maq_segment_writer *w, double elements, double read, double written)
{
    struct maq_op op =
        maq_op_make(MAQ_OP_ELEMENTWISE, MAQ_FP32, 0, (int64_t)elements, (int64_t)read, (int64_t)written, 0, 0, 0);
    if (elements >= 1)
        maq_segment_op(w, &op);
}

/*
 * Adafactor without a first moment, as transformers has it (optimization.py, 4.57), operation by operation in 4 bytes: the gradient, where it is
 * narrow, and the weight are widened; the root mean square of the weight; the squared gradient, a small number added; its means of rows
 * and of columns; their product; times the gradient; its root mean square, by which it is divided; times the rate; negated; added.
 */
static void put_adafactor(struct maq_segment_writer *w, const struct maq_blueprint *bp, double params, double grad)
{
    static const double passes[][2] = {{4, 0}, {4, 4}, {4, 4}, {4, 0}, {4, 0}, {0, 4},
                                       {8, 4}, {4, 0}, {4, 4}, {4, 4}, {4, 4}, {8, 4}};
    const struct optimizer_types t = optimizer_types(bp);
    if (grad < 4)
        put_pass(w, params, grad, 4);
    if (t.master <= 0 && t.store < 4)
        put_pass(w, params, t.store, 4);
    for (size_t i = 0; i < MAQ_COUNT(passes); i++)
        put_pass(w, params, passes[i][0], passes[i][1]);
    if (t.store < 4 && !t.apart)
        put_pass(w, params, 4, t.store);
}

/* The update itself of parameters with so many moments. */
static void put_moments(struct maq_segment_writer *w, const struct maq_blueprint *bp, double params, double moments,
                        double grad)
{
    struct optimizer_types t = optimizer_types(bp);
    bool foreach = bp->job->framework.optimizer == MAQ_OPTIMIZER_FOREACH;
    if (bp->job->plan.update == MAQ_UPDATE_ADAFACTOR) {
        put_adafactor(w, bp, params, grad);
        return;
    }
    double read = grad + (t.master > 0 ? t.master : t.store) + moments * t.moment,
           written = moments * t.moment + t.master + (t.apart ? 0 : t.store);
    struct maq_op update = maq_op_make(MAQ_OP_OPTIMIZER, MAQ_FP32, foreach ? MAQ_OP_UNFUSED : 0, (int64_t)params,
                                       (int64_t)read, (int64_t)written, 0, 0, 0);
    if (params >= 1)
        maq_segment_op(w, &update);
}

/*
 * Muon's passes over a matrix in addition to its products: gradient and moment in, moment and X out; the norm of X, X divided by
 * it; X, weight in, weight out.
 */
static void put_muon(struct maq_segment_writer *w, const struct maq_blueprint *bp, double params, double grad,
                     const struct maq_program *const *programs, uint32_t n)
{
    struct optimizer_types t = optimizer_types(bp);
    double weight = t.master > 0 ? t.master : t.store;
    put_pass(w, params, grad + t.moment, t.moment + 4);
    put_pass(w, params, 4, 0);
    put_pass(w, params, 4, 4);
    maq_muon_put(w, bp, programs, n);
    put_pass(w, params, 4 + weight, t.master + (t.apart ? 0 : t.store));
}

/* APOLLO: the same moments; random numbers, a step's share of them; norms of channels; then gradient x factor, its norm, its limit, its scale, the weight. */
static void put_apollo(struct maq_segment_writer *w, const struct maq_blueprint *bp,
                       const struct maq_owned_params *held, double grad, const struct maq_program *const *programs,
                       uint32_t n)
{
    const struct optimizer_types t = optimizer_types(bp);
    const double moments = maq_update_moments(&bp->job->plan) * t.moment, weight = t.master > 0 ? t.master : t.store,
                 matrices = held->low_rank.matrices;
    maq_galore_put(w, bp, programs, n);
    put_pass(w, held->low_rank.projections / bp->job->plan.galore_gap, 0, 4 + grad);
    put_pass(w, held->low_rank.moments, grad + moments, moments + grad);
    put_pass(w, held->low_rank.moments, 2 * grad, 0);
    put_pass(w, matrices, grad, grad);
    put_pass(w, matrices, grad, 0);
    put_pass(w, matrices, grad, grad);
    put_pass(w, matrices, grad, grad);
    put_pass(w, matrices, grad + weight, t.master + (t.apart ? 0 : t.store));
}

/* What GaLore does besides its products: moments of what is projected, back times the scale, the weight (train/step/galore.h). */
static void put_galore(struct maq_segment_writer *w, const struct maq_blueprint *bp,
                       const struct maq_owned_params *held, double grad, const struct maq_program *const *programs,
                       uint32_t n)
{
    const struct optimizer_types t = optimizer_types(bp);
    const double moments = maq_update_moments(&bp->job->plan) * t.moment, weight = t.master > 0 ? t.master : t.store;
    maq_galore_put(w, bp, programs, n);
    put_pass(w, held->low_rank.moments, grad + moments, moments + grad);
    put_pass(w, held->low_rank.matrices, grad, grad);
    put_pass(w, held->low_rank.matrices, grad + weight, t.master + (t.apart ? 0 : t.store));
}

/*
 * DeepSpeed's LAMB (0.19.6, csrc/lamb/fused_lamb_cuda_kernel.cu): a kernel that renews the moments and adds up both norms, and one that reads
 * them again and changes the weight.
 */
static void put_lamb(struct maq_segment_writer *w, const struct maq_blueprint *bp, double params, double grad)
{
    const struct optimizer_types t = optimizer_types(bp);
    const double weight = t.master > 0 ? t.master : t.store;
    put_pass(w, params, grad + weight + 2 * t.moment, 2 * t.moment);
    put_pass(w, params, weight + 2 * t.moment, t.master + (t.apart ? 0 : t.store));
}

/* Gradients in 4 bytes, which the exchange of signs needs; then the weight in the type of the model. */
static void put_one_bit(struct maq_segment_writer *w, const struct maq_blueprint *bp, double params, double grad)
{
    const struct optimizer_types t = optimizer_types(bp);
    if (grad < 4)
        put_pass(w, params, grad, 4);
    maq_one_bit_put(w, bp, params);
    if (t.master > 0 && !t.apart)
        put_pass(w, params, t.master, t.store);
}

/*
 * Squared norm of the gradients, (all-reduce over the job), clipping, the update, and the cast of the new weights. Bytes of an
 * updated parameter, with g the gradient's and w the weight's type: norm g, clipping g and g; Adam reads gradient, master and two
 * moments and writes master, moments and weight; with momentum there is one moment. With casts apart gradients of 16 bits are first
 * copied to 32 (g, 4), which the others then read, and the weight is written by a copy of the master (4, w).
 */
static void put_update(struct maq_segment_writer *w, const struct maq_blueprint *bp, double mine, double matrices,
                       const struct maq_owned_params *held, const struct maq_program *const *programs, uint32_t n)
{
    const struct maq_plan *p = &bp->job->plan;
    struct optimizer_types t = optimizer_types(bp);
    double on_device = mine * (1 - p->optimizer_offload), g = t.grad;
    mine = maq_sync_downloads(p) ? on_device : mine; /* the host clips what is there */
    if (t.apart && g < t.master) {
        put_pass(w, on_device, g, t.master);
        g = t.master;
    }
    if (!p->galore_layerwise) {
        put_pass(w, mine, g, 0);
        put_pass(w, mine, g, g);
    }
    if (p->galore_rank > 0) {
        (p->use_apollo ? put_apollo : put_galore)(w, bp, held, g, programs, n);
        put_moments(w, bp, on_device - held->low_rank.matrices, maq_update_moments(p), g);
    } else if (p->update == MAQ_UPDATE_LAMB) {
        put_lamb(w, bp, on_device, g);
    } else if (p->update >= MAQ_UPDATE_ONEBIT_ADAM) {
        put_one_bit(w, bp, on_device, g);
    } else if (p->update == MAQ_UPDATE_MUON) {
        put_muon(w, bp, matrices, g, programs, n);
        put_moments(w, bp, on_device - matrices, 2, g);
    } else {
        put_moments(w, bp, on_device, maq_update_moments(p), g);
    }
    if (t.apart)
        put_pass(w, on_device, t.master, t.store);
}

static void put_offloaded_update(struct maq_segment_writer *w, const struct maq_blueprint *bp, double params)
{
    const struct optimizer_types t = optimizer_types(bp);
    const struct maq_job *job = bp->job;
    const bool own = job->plan.offload_param != MAQ_OFFLOAD_NONE && !job->framework.low_precision_shards;
    const struct maq_offloaded_update u = {.params = params,
                                           .grad = t.grad,
                                           .state = (t.master > 0 ? t.master : t.store) +
                                                    maq_update_moments(&job->plan) * t.moment,
                                           .copied = t.master > 0 && !own ? t.store : 0,
                                           .low = t.store,
                                           .shard = maq_shard_bytes(job)};
    maq_offloaded_update_put(w, bp, &u);
}

/* The end of the step on one rank of a stage, in the order of the head of this file. */
const struct maq_segment *maq_blueprint_optimizer(struct maq_blueprint *bp, const struct maq_program *const *programs,
                                                  uint32_t n, double migrated)
{
    const struct maq_plan *p = &bp->job->plan;
    const struct maq_owned_params held = maq_owned_by(programs, n);
    struct maq_segment *out = MAQ_ARENA_NEW(bp->arena, struct maq_segment, 1);
    if (!out) {
        bp->lower.failed = true;
        return NULL;
    }
    struct maq_segment_writer w;
    maq_segment_begin(&w, out, bp->items, bp->arena);
    w.bucket = MAQ_BUCKET_OPTIMIZER;
    w.name = "optimizer";
    double dense = p->lora_rank > 0 ? held.adapters : held.dense, expert = p->lora_rank > 0 ? 0 : held.expert,
           all = dense + expert;
    double matrices[2] = {held.dense_matrices, held.expert_matrices};
    if (p->sharding != MAQ_SHARDING_NONE) {
        dense /= bp->lower.groups[MAQ_GROUP_SHARD].size;
        matrices[0] /= bp->lower.groups[MAQ_GROUP_SHARD].size;
        expert /= bp->job->edp;
        matrices[1] /= bp->job->edp;
    }
    double mine = dense + expert, g = maq_dtype_bytes((enum maq_dtype)p->grad_dtype);
    if (migrated > 0)
        maq_segment_join(&w, maq_segment_copy(&w, migrated, MAQ_STEP_NONE));
    put_update(&w, bp, mine, matrices[0] + matrices[1], &held, programs, n);
    if (p->optimizer_offload > 0 || p->offload_param != MAQ_OFFLOAD_NONE)
        put_offloaded_update(&w, bp, mine);
    if (!maq_sync_downloads(p))
        put_pass(&w, all, 0, g);
    int math = bp->job->math_dtype;
    if (math == MAQ_FP8 || math == MAQ_FP4) { /* weights quantized once per step */
        double narrow = held.dense_narrow + held.expert_narrow;
        struct maq_op cast = maq_op_make(MAQ_OP_QUANTIZE, math, 0, (int64_t)(narrow / 4096) + 1, 4096, 2, 0, 0, 0);
        maq_segment_op(&w, &cast);
    }
    maq_segment_gap(&w, maq_host_step_ns(bp->job, bp->items->device));
    maq_segment_end(&w);
    bp->lower.failed |= w.failed;
    return out;
}
