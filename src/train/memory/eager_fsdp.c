/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eager_fsdp.c - what FSDP asks PyTorch's allocator for, unit by unit.
 *
 * fully_shard() (PyTorch 2.11, torch/distributed/fsdp/_fully_shard). The shards of a unit are copied side by side and gathered on a stream of
 * their own; the parameters are copies of that, on the stream of the passes, and the gathered buffer lives until the next unit has its
 * parameters. Backward the unit that comes next is gathered ahead. Whole gradients are copied into one for the reduction, which lives
 * until the next reduction begins; the result is on a third stream, and once more in 4 bytes where it came in fewer.
 *
 * FullyShardedDataParallel (torch/distributed/fsdp/_runtime_utils.py, _flat_param.py). A unit is one parameter. When it is cut, its tensors are
 * copied into one, and of that the shard. The first step begins by making each unit's buffers and freeing them. A pass casts the shard
 * on one stream and gathers on another, where parameters are views; blocks come back when the stream of the passes is done with
 * them, that is, when the unit after next is gathered. The gradient of a unit is on the stream of the gathers, too, for two more units.
 * The unit of what is in no layer stays from the first forward pass to the end of the backward pass.
 */
#include "train/memory/eager_program.h"

#define AHEAD 2 /* units after which a block is free again */

static uint32_t take(struct maq_eager *r, enum maq_eager_stream stream, double bytes)
{
    return maq_eager_take(r, stream, bytes);
}

static bool first_of_unit(const struct maq_eager *r, uint32_t entry)
{
    for (uint32_t i = 0; i < entry; i++)
        if (r->layers[i].unit == r->layers[entry].unit)
            return false;
    return true;
}

static bool last_of_unit(const struct maq_eager *r, uint32_t entry)
{
    for (uint32_t i = entry + 1; i < r->n; i++)
        if (r->layers[i].unit == r->layers[entry].unit)
            return false;
    return true;
}

static double params_of_unit(const struct maq_eager *r, uint32_t unit)
{
    double sum = 0;
    for (uint32_t i = 0; i < r->n; i++)
        sum += r->layers[i].unit == unit ? maq_eager_params(&r->layers[i]) : 0;
    return sum;
}

/* Of a rank: with one parameter a unit all is divided, else rows are, and the last ranks have padding. */
static double shard_of_unit(const struct maq_eager *r, uint32_t unit)
{
    double sum = 0;
    for (uint32_t i = 0; i < r->n; i++)
        for (uint32_t k = 0; r->layers[i].unit == unit && k < r->layers[i].n_params; k++)
            sum += maq_eager_shard(r, &r->layers[i], k);
    return sum;
}

/* ---- cutting the model ---- */

static void cut_unit(struct maq_eager *r, uint32_t unit)
{
    struct maq_held_blocks whole = {0};
    bool moved = !r->bp->job->framework.meta_init;
    for (uint32_t i = 0; i < r->n && moved; i++)
        if (r->layers[i].unit == unit)
            maq_eager_hold_params(r, &whole, &r->layers[i], r->stored);
    if (r->flat) {
        uint32_t flat = moved ? take(r, MAQ_EAGER_COMPUTE, params_of_unit(r, unit) * r->stored) : 0;
        take(r, MAQ_EAGER_COMPUTE, params_of_unit(r, unit) * r->stored / r->shares);
        maq_eager_give(r, &flat);
    }
    for (uint32_t i = 0; i < r->n && !r->flat; i++)
        for (uint32_t k = 0; r->layers[i].unit == unit && k < r->layers[i].n_params; k++)
            take(r, MAQ_EAGER_COMPUTE, maq_eager_shard(r, &r->layers[i], k) * r->stored);
    maq_let_go(&whole, r->a);
}

/* A flat unit's buffers, each once. */
static void try_buffers(struct maq_eager *r, uint32_t unit)
{
    double params = params_of_unit(r, unit),
           bytes[3] = {params * r->store / r->shares, params * r->store, params * r->stored};
    for (int i = 0; i < (r->store != r->stored ? 3 : 2); i++) {
        uint32_t block = take(r, MAQ_EAGER_COMPUTE, bytes[i]);
        maq_eager_give(r, &block);
    }
}

static bool in_no_layer(const struct maq_eager *r, uint32_t entry)
{
    return r->program->entries[entry].layer == UINT16_MAX;
}

/* Layers are cut first, then what is in none. Where shards are filled when all is cut, it is in the model's order. */
void maq_eager_fsdp_wrap(struct maq_eager *r)
{
    bool at_once = r->bp->job->framework.meta_init;
    for (int ends = 0; ends < 2; ends++)
        for (uint32_t i = 0; i < r->n; i++)
            if (first_of_unit(r, i) && (at_once ? ends == 0 : in_no_layer(r, i) == (ends == 1)))
                cut_unit(r, r->layers[i].unit);
    for (uint32_t i = 0; i < r->n && r->flat; i++)
        if (first_of_unit(r, i))
            try_buffers(r, r->layers[i].unit);
}

/* ---- a parameter each ---- */

static uint32_t gather(struct maq_eager *r, uint32_t unit)
{
    double shard = shard_of_unit(r, unit) * r->store;
    uint32_t shards = take(r, MAQ_EAGER_GATHERS, shard), all = take(r, MAQ_EAGER_GATHERS, shard * r->shares);
    maq_eager_give(r, &shards);
    return all;
}

static bool has_weights(const struct maq_eager *r, uint32_t unit)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (r->layers[i].unit == unit && r->layers[i].weights.n > 0)
            return true;
    return false;
}

static void copy_out(struct maq_eager *r, uint32_t unit)
{
    for (uint32_t i = 0; i < r->n; i++)
        for (uint32_t k = 0; r->layers[i].unit == unit && k < r->layers[i].n_params; k++)
            maq_eager_hold(r, &r->layers[i].weights, maq_eager_shard(r, &r->layers[i], k) * r->shares * r->store);
}

static void reshard(struct maq_eager *r, uint32_t unit)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (r->layers[i].unit == unit)
            maq_let_go(&r->layers[i].weights, r->a);
}

static void unshard_forward(struct maq_eager *r, uint32_t unit)
{
    if (has_weights(r, unit))
        return;
    uint32_t all = gather(r, unit);
    copy_out(r, unit);
    maq_eager_give(r, &r->gathered);
    r->gathered = all;
}

/* With the unit that comes next on its way. */
static void unshard_backward(struct maq_eager *r, uint32_t unit, uint32_t next)
{
    if (!has_weights(r, unit)) {
        if (r->gathered == 0)
            r->gathered = gather(r, unit);
        copy_out(r, unit);
        maq_eager_give(r, &r->gathered);
    }
    if (next != unit && r->gathered == 0 && !has_weights(r, next))
        r->gathered = gather(r, next);
}

/* ---- reductions ---- */

static bool reduces(const struct maq_eager *r)
{
    return !r->bp->job->plan.reduce_once || r->micro + 1 == r->micros;
}

static double wire_bytes(const struct maq_eager *r)
{
    return maq_dtype_bytes((enum maq_dtype)r->bp->job->plan.grad_reduce_dtype);
}

static void drop_grads(struct maq_eager *r, uint32_t unit)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (r->layers[i].unit == unit) {
            maq_let_go(&r->layers[i].grads, r->a);
            maq_let_go(&r->layers[i].sums, r->a);
        }
}

/* Of a pass that reduces nothing. Where the wire has another type sums are in that (_fsdp_param.py, to_accumulated_grad_if_needed()). */
static void add_up(struct maq_eager *r, struct maq_eager_layer *l)
{
    if (wire_bytes(r) == r->store)
        return;
    if (l->sums.n > 0) {
        maq_let_go(&l->grads, r->a);
        return;
    }
    for (uint32_t i = 0; i < l->n_params; i++) {
        maq_eager_hold(r, &l->sums, l->params[i] * wire_bytes(r));
        if (i < l->grads.n)
            maq_eager_give(r, &l->grads.blocks[i]);
    }
    for (uint32_t i = l->n_params; i < l->grads.n; i++)
        maq_eager_give(r, &l->grads.blocks[i]);
    l->grads.n = 0;
}

/* What a reduction leaves, `numbers` of it: in the type of the parameter, added to what is there. */
static void keep_reduced(struct maq_eager *r, double numbers)
{
    double shard = r->bp->job->plan.pure_low_precision ? r->store : 4;
    uint32_t result = take(r, MAQ_EAGER_REDUCTIONS, numbers * wire_bytes(r)), kept = result;
    if (wire_bytes(r) != shard) {
        kept = take(r, MAQ_EAGER_REDUCTIONS, numbers * shard);
        maq_eager_give(r, &result);
    }
    if (r->micro > 0 && !r->bp->job->plan.reduce_once)
        maq_eager_give(r, &kept);
    else
        r->failed |= !maq_hold_block(&r->grads, kept);
}

static void reduce(struct maq_eager *r, uint32_t unit)
{
    double shard = shard_of_unit(r, unit);
    for (uint32_t i = 0; i < r->n && !reduces(r); i++)
        if (r->layers[i].unit == unit)
            add_up(r, &r->layers[i]);
    if (!reduces(r))
        return;
    maq_eager_give(r, &r->reduced);
    r->reduced = take(r, MAQ_EAGER_COMPUTE, shard * r->shares * wire_bytes(r));
    drop_grads(r, unit);
    keep_reduced(r, shard);
}

/* ---- a flat parameter ---- */

static struct maq_eager_layer *unit_of(struct maq_eager *r, uint32_t entry)
{
    uint32_t i = 0;
    while (r->layers[i].unit != r->layers[entry].unit)
        i++;
    return &r->layers[i];
}

static bool is_root(const struct maq_eager *r, uint32_t entry)
{
    return r->layers[entry].unit == r->layers[r->n - 1].unit;
}

enum { FULL, FLAT };

/* Given back by the program; a stream still works with it. */
static void retire(struct maq_eager *r, struct maq_eager_layer *u, int which)
{
    uint32_t *block = which == FULL ? &u->full : &u->flat;
    maq_eager_give(r, &u->late[which]);
    if (*block != 0)
        maq_allocator_retire(r->a, *block);
    u->late[which] = *block;
    *block = 0;
}

static void release(struct maq_eager *r, int64_t entry, int which)
{
    if (entry >= 0 && entry < (int64_t)r->n)
        maq_eager_give(r, &unit_of(r, (uint32_t)entry)->late[which]);
}

/* `done`: an entry of which the streams know by now, before there is a block for this one; -1: none. */
static void gather_flat(struct maq_eager *r, uint32_t entry, int64_t done)
{
    struct maq_eager_layer *u = unit_of(r, entry);
    double bytes = params_of_unit(r, u->unit) * r->store;
    if (u->full != 0)
        return;
    uint32_t shard = r->store != r->stored ? take(r, MAQ_EAGER_CASTS, bytes / r->shares) : 0;
    release(r, done, FULL);
    u->full = take(r, MAQ_EAGER_GATHERS, bytes);
    maq_eager_give(r, &shard);
}

/* In front of the first entry of the way back the unit of what is in no layer is there, and the last layer is gathered again. */
static void flat_backward(struct maq_eager *r, uint32_t entry)
{
    if (entry > 0)
        gather_flat(r, entry - 1, -1);
    if (entry + 1 == r->n)
        release(r, (int64_t)entry - AHEAD, FULL);
    else if (entry + AHEAD == r->n)
        release(r, entry, FULL);
    release(r, entry + AHEAD, FLAT);
}

static void flat_reduce(struct maq_eager *r, uint32_t entry)
{
    struct maq_eager_layer *u = unit_of(r, entry);
    double numbers = params_of_unit(r, u->unit);
    u->flat = take(r, MAQ_EAGER_GATHERS, numbers * r->store);
    maq_eager_give(r, &u->full);
    drop_grads(r, u->unit);
    if (!reduces(r))
        return;
    uint32_t wide = wire_bytes(r) != r->store ? take(r, MAQ_EAGER_REDUCTIONS, numbers * wire_bytes(r)) : 0;
    keep_reduced(r, numbers / r->shares);
    maq_eager_give(r, &wide);
    retire(r, u, FLAT);
}

/* ---- passes ---- */

void maq_eager_fsdp_forward(struct maq_eager *r, uint32_t entry)
{
    if (r->flat)
        gather_flat(r, entry, (int64_t)entry - AHEAD);
    else
        unshard_forward(r, r->layers[entry].unit);
}

/* accelerate leaves last norm and output as they are, and they wait for the gradient of the logits, not for that of the loss. */
static bool tail_apart(const struct maq_eager *r, uint32_t entry)
{
    return !r->flat && !r->bp->job->framework.root_unit && r->layers[entry].unit == r->layers[r->n - 1].unit;
}

void maq_eager_fsdp_forward_end(struct maq_eager *r, uint32_t entry)
{
    if (r->flat && !is_root(r, entry) && r->bp->job->plan.reshard_after_forward)
        retire(r, unit_of(r, entry), FULL);
    if (!r->flat && !tail_apart(r, entry) && r->bp->job->plan.reshard_after_forward && last_of_unit(r, entry))
        reshard(r, r->layers[entry].unit);
}

void maq_eager_fsdp_logits(struct maq_eager *r)
{
    uint32_t last = r->n - 1;
    if (tail_apart(r, last))
        unshard_backward(r, r->layers[last].unit, r->layers[last > 0 ? last - 1 : 0].unit);
}

void maq_eager_fsdp_backward(struct maq_eager *r, uint32_t entry)
{
    if (r->flat)
        flat_backward(r, entry);
    else if (entry + 1 < r->n || !tail_apart(r, entry))
        unshard_backward(r, r->layers[entry].unit, r->layers[entry > 0 ? entry - 1 : 0].unit);
}

void maq_eager_fsdp_backward_end(struct maq_eager *r, uint32_t entry)
{
    if (!first_of_unit(r, entry))
        return;
    if (r->flat) {
        flat_reduce(r, entry);
    } else {
        reshard(r, r->layers[entry].unit);
        reduce(r, r->layers[entry].unit);
    }
}

void maq_eager_fsdp_pass_end(struct maq_eager *r, bool backward)
{
    maq_eager_give(r, &r->gathered);
    if (!backward)
        return;
    maq_eager_give(r, &r->reduced);
    for (uint32_t i = 0; i < r->n; i++) {
        maq_eager_give(r, &r->layers[i].full);
        maq_eager_give(r, &r->layers[i].flat);
        maq_eager_give(r, &r->layers[i].late[FULL]);
        maq_eager_give(r, &r->layers[i].late[FLAT]);
    }
}
