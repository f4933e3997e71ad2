/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block.c - builds a block from the lowering: the segments of each pass, with and without recomputation, parameters
 * and memory. Transfers of offloaded activations are added to the passes. See block.h.
 */
#include "train/step/block.h"

#include <math.h>

#include "lower/local.h"
#include "plan/job_build.h"
#include "train/step/galore.h"
#include "train/step/muon.h"

/* bitsandbytes 0.50.2, optim/optimizer.py, get_state_buffer(): tensors of fewer numbers have their moments in device memory. */
#define PAGED_LEAST 1e5

static double paged(double params)
{
    return params >= PAGED_LEAST ? params : 0;
}

static void add_weight(struct maq_block *b, struct maq_weight *to, const struct maq_module *m, double params)
{
    const bool expert = m->shard == MAQ_SHARD_EXPERT;
    if (params > 0)
        to[b->n_weights++] = (struct maq_weight){params, (uint16_t)(m - b->layer->modules), expert};
}

/* The tensors of a linear: q, k and v apart, gate and up. The rest of its parameters is biases. */
static void count_tensors(struct maq_block *b, struct maq_weight *to, const struct maq_lower *lo,
                          const struct maq_module *m, double params)
{
    int64_t out[MAQ_LORA_SPANS];
    double *sum = m->shard == MAQ_SHARD_EXPERT ? &b->expert_paged : &b->dense_paged, rest = params;
    uint32_t n = m->kind == MAQ_MODULE_LINEAR ? maq_lower_products(out, lo, b->layer, m) : 0;
    const double in = (double)maq_lower_local(lo, b->layer, m).in;
    for (uint32_t i = 0; i < n && params > 0; i++) {
        const double own = in * (double)out[i];
        *sum += paged(own);
        b->largest = fmax(b->largest, own);
        add_weight(b, to, m, fmin(own, rest));
        rest -= fmin(own, rest);
    }
    if (n == 0) {
        *sum += paged(params);
        b->largest = fmax(b->largest, params);
    }
    add_weight(b, to, m, rest);
}

static void count_params(struct maq_block *b, struct maq_lower *lo)
{
    struct maq_weight *weights =
        MAQ_ARENA_NEW(lo->arena, struct maq_weight, (size_t)b->layer->n_modules * (MAQ_LORA_SPANS + 1));
    b->weights = weights;
    lo->failed |= !weights;
    if (!weights)
        return;
    for (uint32_t i = 0; i < b->layer->n_modules; i++) {
        const struct maq_module *m = &b->layer->modules[i];
        double p = maq_lower_local_params(lo, m);
        bool expert = m->shard == MAQ_SHARD_EXPERT;
        *(expert ? &b->expert_params : &b->dense_params) += p;
        if (maq_muon_updates(m))
            *(expert ? &b->expert_matrices : &b->dense_matrices) += p;
        if (maq_lower_quantized(lo, m) || maq_lower_base_quantized(lo, m))
            *(expert ? &b->expert_narrow : &b->dense_narrow) += p;
        count_tensors(b, weights, lo, m, p);
        maq_galore_count(&b->low_rank, lo, b->layer, m);
        int64_t out[MAQ_LORA_SPANS];
        for (uint32_t a = 0, n = maq_lower_adapters(out, lo, b->layer, m); a < n; a++) {
            const double rank = lo->plan->lora_rank, in = (double)maq_lower_local(lo, b->layer, m).in,
                         wide = (double)out[a];
            b->adapter_params += rank * (in + wide) + (lo->plan->use_dora ? wide : 0);
            b->adapter_paged += paged(rank * in) + paged(rank * wide);
        }
    }
}

static struct maq_moved moved_of(const struct maq_block *b, enum maq_block_use use, int redone)
{
    if (use == MAQ_BLOCK_OFFLOADED)
        return (struct maq_moved){b->act_bytes[redone], b->act_bytes[redone]};
    return use == MAQ_BLOCK_LAYER ? b->moved[redone] : (struct maq_moved){0, 0};
}

/* A block that is never recomputed keeps the same in both cases. */
static void keep_all(struct maq_block *b)
{
    b->act_bytes[1] = b->act_bytes[0];
    b->backward_transient[1] = b->backward_transient[0];
    b->walk[1] = b->walk[0];
    b->moved[1] = b->moved[0];
    b->graphs.act_bytes[1] = b->graphs.act_bytes[0];
    b->graphs.working[1] = b->graphs.working[0];
    b->graphs.apart[1] = b->graphs.apart[0];
}

enum maq_status maq_block_lower(struct maq_block *b, struct maq_lower *lo, const struct maq_layer *layer,
                                enum maq_block_use use, bool split)
{
    enum maq_pass backward = split ? MAQ_PASS_BACKWARD_INPUT : MAQ_PASS_BACKWARD;
    enum maq_redo redo = use == MAQ_BLOCK_ENDS                            ? MAQ_REDO_NOTHING
                         : lo->plan->recompute == MAQ_RECOMPUTE_FULL      ? MAQ_REDO_LAYER
                         : lo->plan->recompute == MAQ_RECOMPUTE_SELECTIVE ? MAQ_REDO_PARTS
                                                                          : MAQ_REDO_NOTHING;
    b->layer = layer;
    maq_lower_size(lo, layer);
    lo->repeats = use != MAQ_BLOCK_ENDS;
    count_params(b, lo);
    maq_block_memory(b, lo);
    if (use == MAQ_BLOCK_ENDS)
        keep_all(b);
    const struct maq_moved moved[2] = {moved_of(b, use, 0), moved_of(b, use, 1)};
    for (int redone = 0; redone < 2; redone++) {
        lo->offload_bytes = moved[redone].travels;
        enum maq_redo again = redone ? redo : MAQ_REDO_NOTHING;
        if (redone && moved[0].travels == 0) { /* what is recomputed changes only the backward pass */
            b->forward[1] = b->forward[0];
            b->backward[1] = again == MAQ_REDO_NOTHING ? b->backward[0] : maq_lower_layer(lo, layer, backward, again);
            break;
        }
        b->forward[redone] = maq_lower_layer(lo, layer, MAQ_PASS_FORWARD, MAQ_REDO_NOTHING);
        b->backward[redone] = maq_lower_layer(lo, layer, backward, again);
        if (moved[redone].freed > 0) { /* on the device: this layer's copy, and the one in transfer */
            b->backward_transient[redone] += 2 * moved[redone].freed;
            b->act_bytes[redone] -= moved[redone].freed;
        }
        if (use == MAQ_BLOCK_OFFLOADED)
            b->walk[redone].n = 0;
    }
    b->weight = split ? maq_lower_layer(lo, layer, MAQ_PASS_BACKWARD_WEIGHT, MAQ_REDO_NOTHING) : NULL;
    lo->offload_bytes = 0;
    bool late = lo->plan->delay_wgrad && !split && use != MAQ_BLOCK_ENDS && maq_plan_merges_passes(lo->plan);
    b->late = late ? maq_lower_layer(lo, layer, MAQ_PASS_BACKWARD_WEIGHT, MAQ_REDO_NOTHING) : NULL;
    return lo->failed ? MAQ_NO_MEMORY : MAQ_OK;
}
