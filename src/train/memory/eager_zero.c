/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eager_zero.c - what DeepSpeed's ZeRO-1 and -2 ask PyTorch's allocator for (deepspeed 0.19, runtime/zero/stage_1_and_2.py).
 *
 * The weights, in the type of the module, are copied into one flat tensor (flatten_dense_tensors_aligned()), of which they are views from then
 * on; of the rank's part there is a copy for a moment and the master weights, and gradients of zeros for a moment. The first
 * gradient of a backward pass brings the bucket (setup_buckets()); gradients are copied into it: with ZeRO-2 as they come, with
 * ZeRO-1 all at the end. When it is full, and at the end, it is
 * flattened and reduced. Behind that are the gradients of all parameters of which the rank has some (copy_grads_in_partition()), each in 8
 * bytes for its norm (get_grad_norm_direct()), and the rank's part in 4 bytes for the update.
 */
#include "train/memory/eager_program.h"

#include <math.h>

static double all_params(const struct maq_eager *r)
{
    double sum = 0;
    for (uint32_t i = 0; i < r->n; i++)
        sum += maq_eager_params(&r->layers[i]);
    return sum;
}

static double ranks(const struct maq_eager *r)
{
    return r->bp->job->groups[MAQ_GROUP_SHARD].size;
}

/* A rank's part of the flat tensor. The first one's begins with a parameter; others', such as the second's, begin inside of one. */
struct part {
    double from, to;
};

static struct part part_of(const struct maq_eager *r)
{
    double each = all_params(r) / ranks(r);
    return ranks(r) > 1 ? (struct part){each, 2 * each} : (struct part){0, each};
}

void maq_eager_zero_wrap(struct maq_eager *r)
{
    struct maq_held_blocks weights = {0};
    double all = all_params(r), mine = all / ranks(r);
    for (uint32_t i = 0; i < r->n; i++)
        maq_eager_hold_params(r, &weights, &r->layers[i], r->store);
    maq_eager_take(r, MAQ_EAGER_COMPUTE, all * r->store);
    maq_let_go(&weights, r->a);
    uint32_t copy = maq_eager_take(r, MAQ_EAGER_COMPUTE, mine * r->store);
    maq_eager_take(r, MAQ_EAGER_COMPUTE, mine * 4);
    maq_eager_give(r, &copy);
    uint32_t zeros = maq_eager_take(r, MAQ_EAGER_COMPUTE, mine * 4);
    maq_eager_give(r, &zeros);
}

static void reduce(struct maq_eager *r)
{
    uint32_t flat = maq_eager_take(r, MAQ_EAGER_COMPUTE, r->in_bucket * r->store);
    maq_eager_give(r, &flat);
    r->in_bucket = 0;
}

void maq_eager_zero_gradient(struct maq_eager *r, double numbers)
{
    double room = r->bp->job->plan.reduce_bucket_size;
    if (r->bucket == 0)
        r->bucket = maq_eager_take(r, MAQ_EAGER_COMPUTE, room * r->store);
    if (r->in_bucket > 0 && r->in_bucket + numbers > room)
        reduce(r);
    r->in_bucket += numbers;
}

/* The numbers of all parameters that the rank has some of; its own ones of each in 8 bytes, where norms are asked for. */
static double walk_part(struct maq_eager *r, bool norms)
{
    struct part part = part_of(r);
    double at = 0, whole = 0;
    for (uint32_t i = 0; i < r->n; i++)
        for (uint32_t k = 0; k < r->layers[i].n_params; k++) {
            double end = at + r->layers[i].params[k], own = fmin(end, part.to) - fmax(at, part.from);
            if (own > 0) {
                uint32_t wide = norms ? maq_eager_take(r, MAQ_EAGER_COMPUTE, 8 * own) : 0;
                maq_eager_give(r, &wide);
                whole += r->layers[i].params[k];
            }
            at = end;
        }
    return whole;
}

void maq_eager_zero_backward_end(struct maq_eager *r)
{
    for (uint32_t i = 0; i < r->n; i++)
        maq_let_go(&r->layers[i].grads, r->a);
    reduce(r);
    uint32_t mine = maq_eager_take(r, MAQ_EAGER_COMPUTE, walk_part(r, false) * r->store);
    maq_eager_give(r, &r->bucket);
    if (r->micro > 0)
        maq_eager_give(r, &mine);
    else
        r->failed |= !maq_hold_block(&r->grads, mine);
}

void maq_eager_zero_update(struct maq_eager *r)
{
    double mine = all_params(r) / ranks(r);
    bool first = r->states.n == 0;
    walk_part(r, true);
    uint32_t flat = maq_eager_take(r, MAQ_EAGER_COMPUTE, mine * r->store),
             wide = maq_eager_take(r, MAQ_EAGER_COMPUTE, mine * 4);
    maq_eager_give(r, &flat);
    maq_let_go(&r->grads, r->a);
    for (int moment = 0; moment < 2 && first; moment++)
        maq_eager_hold(r, &r->states, mine * maq_dtype_bytes((enum maq_dtype)r->bp->job->plan.optimizer_dtype));
    maq_eager_give(r, &wide);
}
