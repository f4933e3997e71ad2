/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eager_replay.c - what PyTorch's caching allocator reserves for a program around models of the transformers library, from all that the
 * program asks it for: its weights one by one, what DistributedDataParallel (eager_ddp.c) or FSDP (eager_fsdp.c) need, the passes of its
 * layers (eager_script.h), the optimizer.
 *
 * Three steps: in the first there are no optimizer states yet, in the second DistributedDataParallel makes its buckets anew, the third is as
 * all others.
 */
#include "train/memory/eager_replay.h"

#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "lower/local.h"
#include "train/memory/cublas_workspaces.h"
#include "train/memory/eager_program.h"
#include "train/memory/stage_memory.h"
#include "train/memory/torch_layers.h"

#define STEPS 3
#define MOST_MICROBATCHES 3

uint32_t maq_eager_take(struct maq_eager *r, enum maq_eager_stream stream, double bytes)
{
    if (bytes <= 0)
        return 0;
    uint32_t block = maq_allocator_alloc(r->a, stream, bytes);
    r->failed |= block == 0;
    return block;
}

void maq_eager_give(struct maq_eager *r, uint32_t *block)
{
    if (*block != 0)
        maq_allocator_release(r->a, *block);
    *block = 0;
}

void maq_eager_hold(struct maq_eager *r, struct maq_held_blocks *held, double bytes)
{
    r->failed |= !maq_hold(held, r->a, MAQ_EAGER_COMPUTE, bytes);
}

void maq_eager_hold_params(struct maq_eager *r, struct maq_held_blocks *held, const struct maq_eager_layer *l,
                           double bytes)
{
    for (uint32_t i = 0; i < l->n_params; i++)
        maq_eager_hold(r, held, l->params[i] * bytes);
}

double maq_eager_params(const struct maq_eager_layer *l)
{
    double sum = 0;
    for (uint32_t i = 0; i < l->n_params; i++)
        sum += l->params[i];
    return sum;
}

double maq_eager_shard(const struct maq_eager *r, const struct maq_eager_layer *l, uint32_t param)
{
    double all = l->params[param], rows = l->rows[param];
    return r->flat ? all / r->shares : ceil(rows / r->shares) * (all / rows);
}

double maq_eager_grad_bytes(const struct maq_eager *r)
{
    return maq_dtype_bytes((enum maq_dtype)r->bp->job->plan.grad_dtype);
}

static uint32_t take(struct maq_eager *r, double bytes)
{
    return maq_eager_take(r, MAQ_EAGER_COMPUTE, bytes);
}

static void load_weights(struct maq_eager *r)
{
    struct maq_held_blocks forever = {0};
    for (uint32_t i = 0; i < r->n; i++) {
        for (uint32_t k = 0; k < r->layers[i].n_frozen; k++)
            maq_eager_hold(r, &forever, r->layers[i].frozen[k] * r->store);
        maq_eager_hold_params(r, &forever, &r->layers[i], r->stored);
    }
    free(forever.blocks);
}

/* ---- passes ---- */

/* DeepSpeed copies a gradient into its bucket when autograd is through with the product that made it. */
static void run_hook(struct maq_eager *r)
{
    if (r->hooked == 0)
        return;
    maq_eager_zero_gradient(r, r->hooked_numbers);
    maq_eager_give(r, &r->hooked);
}

/* A gradient of a weight, where the backward pass has it. */
static void weight_gradient(struct maq_eager *r, uint32_t entry, double bytes)
{
    struct maq_eager_layer *l = &r->layers[entry];
    uint32_t block = take(r, bytes);
    if (entry == 0 && r->tied != 0) {
        uint32_t sum = take(r, bytes);
        maq_eager_give(r, &block);
        maq_eager_give(r, &r->tied);
        block = sum;
    }
    if (r->zero && r->bp->job->plan.sharding == MAQ_SHARDING_OPTIM) { /* they wait for the end of the backward pass */
        maq_eager_zero_gradient(r, bytes / r->store);
        r->failed |= !maq_hold_block(&l->grads, block);
        return;
    }
    if (r->zero) {
        run_hook(r);
        r->hooked = block;
        r->hooked_numbers = bytes / r->store;
        return;
    }
    const struct maq_plan *p = &r->bp->job->plan;
    bool sums = p->reduce_once && maq_dtype_bytes((enum maq_dtype)p->grad_reduce_dtype) == r->store,
         again = r->micro > 0 && (!r->shards || sums);
    if (again || (!r->shards && r->bp->job->framework.gradient_buckets == MAQ_BUCKETS_VIEWS)) {
        maq_eager_give(r, &block); /* added to what is there, or copied into the bucket */
        return;
    }
    r->failed |= !maq_hold_block(r->shards ? &l->grads : &r->grads, block);
}

static void play(struct maq_eager *r, uint32_t entry, const struct maq_moves *moves, bool alone)
{
    struct maq_eager_layer *l = &r->layers[entry];
    bool given = false; /* since the last gradient */
    for (uint32_t i = 0; i < moves->n; i++) {
        uint32_t slot = moves->at[i].slot, *block = &l->blocks[slot];
        double bytes = l->script->bytes[slot];
        if (given && moves->at[i].kind == MAQ_MOVE_TAKE)
            run_hook(r);
        given = moves->at[i].kind != MAQ_MOVE_WEIGHT && (given || moves->at[i].kind == MAQ_MOVE_GIVE);
        switch ((enum maq_move_kind)moves->at[i].kind) {
        case MAQ_MOVE_TAKE:
            *block = take(r, bytes);
            break;
        case MAQ_MOVE_CAST:
            if (alone)
                maq_eager_hold(r, &r->cached, bytes);
            else
                *block = take(r, bytes);
            break;
        case MAQ_MOVE_GIVE_ALONE:
            if (!alone || slot == MAQ_SLOT_IN)
                break;
            maq_eager_give(r, block);
            break;
        case MAQ_MOVE_GIVE:
            maq_eager_give(r, block);
            break;
        case MAQ_MOVE_WEIGHT:
            weight_gradient(r, entry, bytes);
            break;
        case MAQ_MOVE_TIED:
            r->tied = take(r, bytes);
            break;
        case MAQ_MOVE_LOGITS:
            if (r->shards)
                maq_eager_fsdp_logits(r);
            break;
        case MAQ_MOVE_RENAME:
            l->blocks[MAQ_SLOT_GRADIENT] = *block;
            *block = 0;
            break;
        case MAQ_MOVE_PRODUCT:
            if (r->workspace[slot] == 0)
                r->workspace[slot] = take(r, maq_kept_cublas_workspace_bytes(r->bp->job));
            break;
        }
    }
    run_hook(r);
}

/* What the embedding wrote has a name in the model's function to its end; what a layer read goes with the layer. */
static void forward(struct maq_eager *r)
{
    for (uint32_t i = 0; i < r->n; i++) {
        struct maq_eager_layer *l = &r->layers[i];
        bool passes = !l->script->keeps_input && !l->redone;
        if (r->shards)
            maq_eager_fsdp_forward(r, i);
        play(r, i, &l->script->forward, l->redone);
        if (r->shards)
            maq_eager_fsdp_forward_end(r, i);
        if (i > 1 && passes)
            maq_eager_give(r, &l->blocks[MAQ_SLOT_IN]);
        if (i == 1 && l->n_frozen > 0 && !l->redone) /* nobody asks for the gradient of the embedding */
            maq_eager_give(r, &l->blocks[l->script->first_wide]);
        if (i + 1 < r->n) {
            r->layers[i + 1].blocks[MAQ_SLOT_IN] = l->blocks[MAQ_SLOT_OUT];
            l->blocks[MAQ_SLOT_OUT] = 0;
        }
    }
    if (r->n > 1 && !r->layers[1].script->keeps_input && !r->layers[1].redone)
        maq_eager_give(r, &r->layers[1].blocks[MAQ_SLOT_IN]);
    if (r->shards)
        maq_eager_fsdp_pass_end(r, false);
    maq_let_go(&r->cached, r->a);
}

static void backward(struct maq_eager *r)
{
    uint32_t gradient = 0;
    for (uint32_t i = r->n; i-- > 0;) {
        struct maq_eager_layer *l = &r->layers[i];
        if (r->shards)
            maq_eager_fsdp_backward(r, i);
        if (l->redone) {
            play(r, i, &l->script->forward, false);
            maq_eager_give(r, &l->blocks[MAQ_SLOT_OUT]);
        }
        l->blocks[MAQ_SLOT_GRADIENT] = gradient;
        play(r, i, &l->script->backward, false);
        gradient = l->blocks[MAQ_SLOT_GRADIENT];
        l->blocks[MAQ_SLOT_GRADIENT] = 0;
        maq_eager_give(r, &l->blocks[MAQ_SLOT_IN]);
        if (r->shards)
            maq_eager_fsdp_backward_end(r, i);
    }
    maq_eager_give(r, &gradient);
    if (r->shards)
        maq_eager_fsdp_pass_end(r, true);
    if (r->zero)
        maq_eager_zero_backward_end(r);
}

/* PyTorch's optimizers make a parameter's states when they first meet its gradient (torch/optim/adam.py, _init_group()). */
static void update(struct maq_eager *r)
{
    const struct maq_plan *p = &r->bp->job->plan;
    double moment = maq_dtype_bytes((enum maq_dtype)p->optimizer_dtype), each = maq_step_update_bytes(r->bp);
    bool first = r->states.n == 0;
    for (uint32_t i = 0; i < r->n && first; i++)
        for (uint32_t k = 0; k < r->layers[i].n_params; k++)
            for (int m = 0; m < 2; m++)
                maq_eager_hold(r, &r->states, maq_eager_shard(r, &r->layers[i], k) * moment);
    struct maq_held_blocks lists = {0};
    for (uint32_t i = 0; i < r->n && each > 0; i++)
        for (uint32_t k = 0; k < r->layers[i].n_params; k++)
            maq_eager_hold(r, &lists, maq_eager_shard(r, &r->layers[i], k) * each);
    maq_let_go(&lists, r->a);
}

static void run(struct maq_eager *r)
{
    if (r->zero) {
        maq_eager_zero_wrap(r);
    } else if (r->shards) {
        maq_eager_fsdp_wrap(r);
    } else {
        load_weights(r);
        maq_eager_ddp_wrap(r);
    }
    for (int step = 0; step < STEPS && !r->failed; step++) {
        if (step + 1 == STEPS)
            maq_allocator_reset_peaks(r->a); /* nothing that is reserved is given back */
        if (!r->zero)
            maq_eager_ddp_begin(r, step);
        for (r->micro = 0; r->micro < r->micros; r->micro++) {
            forward(r);
            backward(r);
        }
        if (r->zero)
            maq_eager_zero_update(r);
        else
            update(r);
        maq_let_go(&r->grads, r->a);
        if (!r->zero)
            maq_eager_ddp_end(r, step);
    }
}

/* ---- setting up ---- */

/* The first dimension of a tensor of a module. */
static double rows_of(const struct maq_module *m, double params)
{
    if (m->kind == MAQ_MODULE_EMBEDDING)
        return (double)m->in;
    if (m->kind == MAQ_MODULE_EXPERT_LINEAR)
        return m->u.moe.experts;
    return m->kind == MAQ_MODULE_LINEAR || m->kind == MAQ_MODULE_ROUTER ? (double)m->out : params;
}

/* Tensors of parameters of a layer, each with its rows; their number. Either pointer may be NULL. */
static uint32_t write_params(double *params, double *rows, const struct maq_lower *lower, const struct maq_layer *layer)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < layer->n_modules; i++) {
        const struct maq_module *m = &layer->modules[i];
        int64_t widths[MAQ_LORA_SPANS];
        double all = maq_lower_local_params(lower, m), sum = 0;
        uint32_t parts = m->kind == MAQ_MODULE_LINEAR ? maq_lower_products(widths, lower, layer, m) : 1;
        for (uint32_t k = 0; k < parts && parts > 1; k++)
            sum += (double)widths[k];
        for (uint32_t k = 0; k < parts && all > 0; k++, n++) {
            if (params)
                params[n] = parts > 1 ? all * (double)widths[k] / sum : all;
            if (rows)
                rows[n] = parts > 1 ? (double)widths[k] : rows_of(m, all);
        }
    }
    return n;
}

/* The same of adapters: two tensors for each product. */
static uint32_t write_adapters(double *params, double *rows, const struct maq_lower *lower,
                               const struct maq_layer *layer)
{
    uint32_t n = 0;
    double rank = lower->plan->lora_rank;
    for (uint32_t i = 0; i < layer->n_modules; i++) {
        const struct maq_module *m = &layer->modules[i];
        int64_t widths[MAQ_LORA_SPANS];
        uint32_t parts = m->kind == MAQ_MODULE_LINEAR ? maq_lower_adapters(widths, lower, layer, m) : 0;
        for (uint32_t k = 0; k < parts; k++, n += 2) {
            if (!params || !rows)
                continue;
            params[n] = rank * (double)maq_lower_local(lower, layer, m).in;
            params[n + 1] = rank * (double)widths[k];
            rows[n] = rank;
            rows[n + 1] = (double)widths[k];
        }
    }
    return n;
}

/* False when out of memory. */
static bool list_params(struct maq_eager_layer *l, const struct maq_lower *lower, const struct maq_layer *layer)
{
    bool adapters = lower->plan->lora_rank > 0;
    uint32_t n = write_params(NULL, NULL, lower, layer);
    l->n_params = adapters ? write_adapters(NULL, NULL, lower, layer) : n;
    l->n_frozen = adapters ? n : 0;
    l->params = calloc(l->n_params + 1, sizeof *l->params);
    l->rows = calloc(l->n_params + 1, sizeof *l->rows);
    l->frozen = calloc(l->n_frozen + 1, sizeof *l->frozen);
    if (!l->params || !l->rows || !l->frozen)
        return false;
    if (adapters) {
        write_params(l->frozen, NULL, lower, layer);
        write_adapters(l->params, l->rows, lower, layer);
    } else {
        write_params(l->params, l->rows, lower, layer);
    }
    return true;
}

/*
 * FSDP's units: each layer, and all that is in none; with accelerate (fsdp_utils.py, fsdp2_prepare_model()) the embedding apart from last
 * norm and output, unless these share the table.
 */
static void number_units(struct maq_eager *r)
{
    bool root = r->bp->job->framework.root_unit, tied = r->bp->job->model.tied_embeddings;
    for (uint32_t i = 0; i < r->n; i++) {
        bool end = r->program->entries[i].layer == UINT16_MAX;
        r->layers[i].unit = end && (root || tied) ? 0 : i;
    }
}

static bool set_up(struct maq_eager *r)
{
    const struct maq_blueprint *bp = r->bp;
    r->n = r->program->n_entries;
    r->layers = calloc(r->n, sizeof *r->layers);
    r->scripts = calloc(bp->n_blocks, sizeof *r->scripts);
    const struct maq_allocator_options options = maq_allocator_of(&bp->job->plan);
    r->a = maq_allocator_new(&options);
    if (!r->layers || !r->scripts || !r->a) {
        r->failed = true;
        return false;
    }
    for (uint32_t i = 0; i < r->n; i++) {
        const struct maq_entry *e = &r->program->entries[i];
        struct maq_eager_script *s = &r->scripts[e->block];
        const struct maq_layer *layer = bp->blocks[e->block]->layer;
        if (s->n_slots == 0 && !maq_eager_script(s, &bp->lower, layer)) {
            r->failed |= s->failed;
            return false;
        }
        struct maq_eager_layer *l = &r->layers[i];
        l->script = s;
        l->redone = e->redo && bp->job->plan.recompute == MAQ_RECOMPUTE_FULL;
        l->blocks = calloc(s->n_slots, sizeof *l->blocks);
        r->failed |= !l->blocks || !list_params(l, &bp->lower, layer);
        if (r->failed)
            return false;
    }
    number_units(r);
    return true;
}

static void tear_down(struct maq_eager *r)
{
    for (uint32_t i = 0; r->layers && i < r->n; i++) {
        maq_let_go(&r->layers[i].weights, r->a);
        maq_let_go(&r->layers[i].grads, r->a);
        maq_let_go(&r->layers[i].sums, r->a);
        free(r->layers[i].blocks);
        free(r->layers[i].params);
        free(r->layers[i].rows);
        free(r->layers[i].frozen);
    }
    for (uint32_t i = 0; r->scripts && i < r->bp->n_blocks; i++)
        maq_eager_script_free(&r->scripts[i]);
    struct maq_held_blocks *all[] = {&r->buckets, &r->states, &r->grads, &r->cached};
    for (size_t i = 0; i < MAQ_COUNT(all); i++)
        maq_let_go(all[i], r->a);
    free(r->layers);
    free(r->scripts);
    maq_allocator_free(r->a);
}

static bool way_is_known(const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    bool held = job->framework.reduce_bucket_held;
    switch ((enum maq_sharding)p->sharding) {
    case MAQ_SHARDING_NONE:
        return (job->framework.gradient_buckets == MAQ_BUCKETS_APART ||
                job->framework.gradient_buckets == MAQ_BUCKETS_VIEWS) &&
               (maq_autocasts(job) || p->pure_low_precision || p->lora_rank > 0);
    case MAQ_SHARDING_OPTIM: /* with several micro batches gradients wait in the bucket */
        return held && p->reduce_bucket_size > 0 && job->microbatches == 1;
    case MAQ_SHARDING_GRADS:
        return held && p->reduce_bucket_size > 0;
    case MAQ_SHARDING_PARAMS:
        return !held;
    }
    return false;
}

/* Programs of which every request is known. */
static bool is_known(const struct maq_blueprint *bp)
{
    const struct maq_job *job = bp->job;
    const struct maq_plan *p = &job->plan;
    bool whole = p->pp == 1 && p->tp == 1 && p->cp == 1 && p->ep == 1 && !p->use_dora &&
                 (p->lora_rank == 0 || p->sharding == MAQ_SHARDING_NONE) && !p->fused_kernels &&
                 !maq_lower_by_op(&bp->lower);
    bool redone =
        p->recompute == MAQ_RECOMPUTE_NONE || (p->recompute == MAQ_RECOMPUTE_FULL && maq_layers_per_checkpoint(p) == 1);
    return job->framework.norms_apart && job->framework.frees_gradients && whole && way_is_known(job) && redone &&
           p->update == MAQ_UPDATE_ADAM && p->galore_rank == 0 && !p->paged_optimizer && p->optimizer_offload == 0 &&
           p->offload_param == MAQ_OFFLOAD_NONE && bp->lower.store_bytes < 4;
}

static double stored_bytes(const struct maq_blueprint *bp)
{
    const struct maq_job *job = bp->job;
    bool narrow = job->plan.lora_rank > 0 ? !job->framework.adapters_widen : job->plan.pure_low_precision;
    return narrow ? bp->lower.store_bytes : 4;
}

bool maq_eager_replay(struct maq_replayed *out, bool *known, const struct maq_blueprint *bp, uint32_t stage)
{
    const struct maq_program *programs[MAQ_MAX_STAGES];
    *known = is_known(bp) && maq_stage_programs(programs, bp, stage) == 1;
    if (!*known)
        return true;
    const struct maq_job *job = bp->job;
    struct maq_eager r = {.bp = bp,
                          .program = programs[0],
                          .shards = job->plan.sharding == MAQ_SHARDING_PARAMS,
                          .store = bp->lower.store_bytes,
                          .stored = stored_bytes(bp),
                          .shares = job->plan.sharding == MAQ_SHARDING_PARAMS ? job->groups[MAQ_GROUP_SHARD].size : 1,
                          .flat = job->framework.flat_parameters,
                          .zero = job->framework.reduce_bucket_held && job->plan.sharding != MAQ_SHARDING_PARAMS,
                          .micros =
                              job->microbatches < MOST_MICROBATCHES ? (uint32_t)job->microbatches : MOST_MICROBATCHES};
    *known = set_up(&r);
    if (*known)
        run(&r);
    if (r.a && *known) {
        struct maq_allocator_stats stats = maq_allocator_stats(r.a);
        *out = (struct maq_replayed){.allocated = stats.peak_allocated,
                                     .reserved = stats.peak_reserved,
                                     .waste = stats.peak_waste,
                                     .whole = true,
                                     .streams = true};
    }
    bool good = !r.failed;
    tear_down(&r);
    return good;
}
