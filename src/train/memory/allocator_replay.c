/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allocator_replay.c - the memory that PyTorch's caching allocator reserves for a stage, from a replay of its allocations and
 * frees.
 *
 * The sequence is that of two steps of one stage, tensor by tensor: model states once; then, task by task in schedule
 * order, the output of every module, which lives until its reader is done or, where the reader keeps it, until the
 * reader's backward pass; what modules keep besides; gathered inputs and raw scores, which come and go; and in the
 * backward pass the gradients of inputs and weights. A recomputed layer keeps its input, and runs once more before
 * its backward pass. A long schedule repeats itself: four times as many tasks as microbatches are in flight reach the
 * peak and the holes.
 *
 * At the end of a step the optimizer may want gradients in 4 bytes and roots of moments (stage_memory.c): one tensor per parameter
 * in Megatron-LM, which may fit into the blocks that activations left, or one flat tensor in DeepSpeed, for which no such block is
 * large enough.
 */
#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "graph/allocator.h"
#include "lower/local.h"
#include "train/memory/cublas_workspaces.h"
#include "train/memory/eager_replay.h"
#include "train/memory/stage_memory.h"
#include "train/memory/transformer_engine_replay.h"
#include "train/predict.h"
#include "train/step/ddp.h"

#define FEWEST_TASKS 24
#define MOST_TASKS 384
#define STEPS 2
#define MOST_PENDING 8 /* tensors that wait for one reader */

/* A block that waits for the backward pass of a module: (entry, step) of its program. */
struct waiting {
    uint32_t block, entry, step;
};

/* Blocks that the forward pass of a microbatch kept, in order of allocation. */
struct stack {
    struct waiting *at;
    uint32_t n, room;
};

/* Blocks that are freed together. */
struct held {
    uint32_t *blocks;
    uint32_t n, room;
};

struct replay {
    const struct maq_blueprint *bp;
    struct maq_allocator *a;
    struct stack *live;    /* [slot] of (position, microbatch) */
    uint32_t wire;         /* gradients of an entry that are being reduced */
    bool tensors;          /* gradients without a buffer: they come with the backward pass and go behind the update; */
    struct held grads;     /* those that came, where nothing is sharded; */
    uint32_t workspace[2]; /* of the thread of forward passes, of autograd's; they stay where they were made first */
    struct held state;     /* and optimizer states, which come with the first update; */
    bool moments;          /* or moments alone do (moments_come()) */
    bool failed;
};

static uint32_t take(struct replay *r, double bytes)
{
    if (bytes <= 0)
        return 0;
    uint32_t block = maq_allocator_alloc(r->a, 0, bytes);
    r->failed |= block == 0;
    return block;
}

static void give(struct replay *r, uint32_t block)
{
    if (block != 0)
        maq_allocator_release(r->a, block);
}

static void push(struct replay *r, struct stack *s, uint32_t block, uint32_t entry, uint32_t step)
{
    if (block == 0)
        return;
    if (s->n == s->room) {
        uint32_t room = s->room ? 2 * s->room : 64;
        struct waiting *more = realloc(s->at, room * sizeof *more);
        r->failed |= !more;
        if (!more)
            return;
        s->at = more;
        s->room = room;
    }
    s->at[s->n++] = (struct waiting){block, entry, step};
}

/* Frees what waited for this module. */
static void pop(struct replay *r, struct stack *s, uint32_t entry, uint32_t step)
{
    while (s->n > 0 && s->at[s->n - 1].entry == entry && s->at[s->n - 1].step == step)
        give(r, s->at[--s->n].block);
}

/* Outputs that the next module reads. */
struct pending {
    uint32_t blocks[MOST_PENDING], n;
};

static void add_pending(struct replay *r, struct pending *p, uint32_t block)
{
    if (p->n < MOST_PENDING)
        p->blocks[p->n++] = block;
    else
        give(r, block);
}

static void hold(struct replay *r, struct held *h, double bytes)
{
    if (h->n == h->room) {
        uint32_t room = h->room ? 2 * h->room : 64;
        uint32_t *more = realloc(h->blocks, room * sizeof *more);
        r->failed |= !more;
        if (!more)
            return;
        h->blocks = more;
        h->room = room;
    }
    h->blocks[h->n++] = take(r, bytes);
}

static void let_go(struct replay *r, struct held *h)
{
    for (uint32_t i = 0; i < h->n; i++)
        give(r, h->blocks[i]);
    free(h->blocks);
    *h = (struct held){0};
}

/* ---- what FSDP brings and takes ---- */

static void hold_params(struct replay *r, struct held *h, const struct maq_block *b, double bytes_each)
{
    for (uint32_t i = 0; i < b->layer->n_modules; i++) {
        double params = maq_lower_local_params(&r->bp->lower, &b->layer->modules[i]);
        if (params > 0)
            hold(r, h, params * bytes_each);
    }
}

/* Gathered parameters, a tensor each; the gather's own buffer is in the pool of another stream. */
static void gather(struct replay *r, struct held *h, const struct maq_entry *e)
{
    if (r->bp->gather_backward && !(r->bp->job->framework.root_unit && e->layer == UINT16_MAX))
        hold_params(r, h, r->bp->blocks[e->block], r->bp->lower.store_bytes);
}

/* What is in no layer, all through a pass. */
static void gather_root(struct replay *r, struct held *h, const struct maq_program *pr)
{
    if (r->bp->gather_backward && r->bp->job->framework.root_unit)
        for (uint32_t i = 0; i < pr->n_entries; i++)
            if (pr->entries[i].layer == UINT16_MAX)
                hold_params(r, h, r->bp->blocks[pr->entries[i].block], r->bp->lower.store_bytes);
}

/* The whole gradients of an entry, copied for the reduction when that of the entry behind it is over. */
static void reduce(struct replay *r, struct held *grads, const struct maq_block *b)
{
    const struct maq_plan *p = &r->bp->job->plan;
    if (p->sharding != MAQ_SHARDING_PARAMS || p->lora_rank > 0)
        return;
    give(r, r->wire);
    r->wire = take(r, (b->dense_params + b->expert_params) * maq_dtype_bytes((enum maq_dtype)p->grad_reduce_dtype));
    let_go(r, grads);
}

/* ---- passes of a layer ---- */

/* What the first product of a thread takes. */
static void work(struct replay *r, bool backward)
{
    if (r->tensors && r->workspace[backward] == 0)
        r->workspace[backward] = take(r, maq_kept_cublas_workspace_bytes(r->bp->job));
}

#define NO_STEP UINT32_MAX /* of the input of a recomputed layer */

/* Forward; the stack gets what stays. With `keep` false nothing does: the pass of a layer that will be recomputed. */
static void forward_layer(struct replay *r, const struct maq_walk *w, uint32_t entry, bool keep, struct pending *p,
                          struct stack *s)
{
    for (uint32_t i = 0; i < w->n; i++) {
        const struct maq_walk_step *m = &w->steps[i];
        uint32_t scratch = take(r, m->scratch[0]), kept = take(r, m->keep), out = take(r, m->out);
        if (m->multiplies)
            work(r, false);
        give(r, scratch);
        for (uint32_t k = 0; k < p->n && !m->shares_input; k++)
            if (keep && m->input_stays)
                push(r, s, p->blocks[k], entry, i);
            else
                give(r, p->blocks[k]);
        if (keep)
            push(r, s, kept, entry, i);
        else
            give(r, kept);
        if (!m->shares_input)
            p->n = 0;
        add_pending(r, p, out);
    }
}

/* Backward; `gradient` is that of the layer's output, and becomes that of its input. */
static void backward_layer(struct replay *r, const struct maq_walk *w, uint32_t entry, uint32_t *gradient,
                           struct stack *s)
{
    for (uint32_t i = w->n; i-- > 0;) {
        const struct maq_walk_step *m = &w->steps[i];
        uint32_t scratch = take(r, m->scratch[1] / m->pieces[1]);
        if (m->pieces[1] >
            1) { /* the second is made of the first and of what was kept, and the input's of the second */
            uint32_t second = take(r, m->scratch[1] / m->pieces[1]);
            give(r, scratch);
            pop(r, s, entry, i);
            scratch = second;
        }
        uint32_t input = take(r, m->gradient);
        if (m->multiplies)
            work(r, true);
        give(r, take(r, m->weight));
        give(r, scratch);
        give(r, *gradient);
        *gradient = input;
        pop(r, s, entry, i);
    }
}

static bool whole_layer(const struct replay *r, const struct maq_entry *e)
{
    const struct maq_plan *p = &r->bp->job->plan;
    return e->redo && p->recompute == MAQ_RECOMPUTE_FULL;
}

static void forward(struct replay *r, const struct maq_program *pr, struct stack *s)
{
    struct pending p = {.n = 0};
    struct held root = {0};
    gather_root(r, &root, pr);
    for (uint32_t i = 0; i < pr->n_entries; i++) {
        const struct maq_entry *e = &pr->entries[i];
        bool again = whole_layer(r, e);
        if (again) {
            for (uint32_t k = 0; k < p.n; k++)
                push(r, s, p.blocks[k], i, NO_STEP);
            if (p.n == 0) /* the first layer of a stage: its input was received */
                push(r, s, take(r, r->bp->blocks[e->block]->act_bytes[1]), i, NO_STEP);
            p.n = 0;
        }
        struct held own = {0};
        gather(r, &own, e);
        forward_layer(r, &r->bp->blocks[e->block]->walk[e->redo], i, !again, &p, s);
        let_go(r, &own);
    }
    for (uint32_t k = 0; k < p.n; k++) /* sent to the next stage */
        give(r, p.blocks[k]);
    let_go(r, &root);
}

static void backward(struct replay *r, const struct maq_program *pr, struct stack *s)
{
    uint32_t gradient = 0;
    if (s->n == 0)
        return;
    struct held root = {0};
    uint32_t bucket = 0;
    gather_root(r, &root, pr);
    for (uint32_t i = pr->n_entries; i-- > 0;) {
        const struct maq_entry *e = &pr->entries[i];
        const struct maq_block *b = r->bp->blocks[e->block];
        bool again = whole_layer(r, e);
        struct held own = {0}, grads = {0};
        gather(r, &own, e);
        uint32_t missing = take(r, b->walk[e->redo].missing);
        if (again) {
            struct pending p = {.n = 0};
            forward_layer(r, &b->walk[1], i, true, &p, s);
            for (uint32_t k = 0; k < p.n; k++)
                give(r, p.blocks[k]);
        }
        bool whole = r->bp->job->plan.sharding == MAQ_SHARDING_PARAMS && r->bp->job->plan.lora_rank == 0,
             loss = r->tensors && b->layer->modules[b->layer->n_modules - 1].kind == MAQ_MODULE_LOSS;
        if (whole && !loss)
            hold_params(r, &grads, b, r->bp->lower.store_bytes);
        backward_layer(r, &b->walk[e->redo], i, &gradient, s);
        if (bucket == 0 && r->bp->job->framework.reduce_bucket_held)
            bucket = take(r, r->bp->job->plan.reduce_bucket_size * r->bp->lower.store_bytes);
        if (whole && loss) /* it comes before all gradients */
            hold_params(r, &grads, b, r->bp->lower.store_bytes);
        give(r, missing);
        pop(r, s, i, NO_STEP);
        reduce(r, &grads, b);
        if (r->tensors && r->bp->job->plan.sharding <= MAQ_SHARDING_OPTIM)
            hold_params(r, &r->grads, b, maq_dtype_bytes((enum maq_dtype)r->bp->job->plan.grad_dtype));
        let_go(r, &own);
    }
    let_go(r, &root);
    give(r, gradient);
    give(r, r->wire);
    give(r, bucket);
    r->wire = 0;
}

/* ---- the optimizer ---- */

/* What share of a module's parameters this rank updates. */
static double updated_share(const struct maq_blueprint *bp, const struct maq_module *m)
{
    const struct maq_job *job = bp->job;
    if (job->plan.sharding == MAQ_SHARDING_NONE)
        return 1;
    return 1.0 / (m->shard == MAQ_SHARD_EXPERT ? (double)job->edp : job->groups[MAQ_GROUP_SHARD].size);
}

/* Parameters of each module that this rank updates, one after another. Returns their sum. */
static double walk_parameters(struct replay *r, struct held *h, uint32_t stage, double bytes_each)
{
    uint16_t at[MAQ_MAX_STAGES];
    uint32_t n_at = maq_schedule_positions(r->bp->schedule, stage, at);
    double sum = 0;
    for (uint32_t c = 0; c < n_at; c++)
        for (uint32_t e = 0; e < r->bp->programs[at[c]]->n_entries; e++) {
            const struct maq_layer *layer = r->bp->blocks[r->bp->programs[at[c]]->entries[e].block]->layer;
            for (uint32_t i = 0; i < layer->n_modules; i++) {
                const struct maq_module *m = &layer->modules[i];
                double params = maq_lower_local_params(&r->bp->lower, m) * updated_share(r->bp, m);
                sum += params;
                if (bytes_each > 0 && params > 0)
                    hold(r, h, params * bytes_each);
            }
        }
    return sum;
}

static void work_of_update(struct replay *r, uint32_t stage)
{
    const struct maq_plan *p = &r->bp->job->plan;
    double each = maq_step_update_bytes(r->bp), store = r->bp->lower.store_bytes;
    struct held h = {0};
    if (p->lora_rank > 0 || (each <= 0 && p->reduce_bucket_size <= 0))
        return;
    if (p->reduce_bucket_size <= 0) {
        walk_parameters(r, &h, stage, each);
    } else {
        if (!r->bp->job->framework.reduce_bucket_held)
            give(r, take(r, p->reduce_bucket_size * store));
        double mine = walk_parameters(r, &h, stage, 0);
        hold(r, &h, mine * store);
        if (each > 0)
            hold(r, &h, mine * each);
    }
    let_go(r, &h);
}

/* Moments of parameters of a buffer, dense or of experts, up to `left` of them, two for each tensor. Returns how many it has in all. */
static double walk_buffer(struct replay *r, uint32_t stage, bool expert, double left, double bytes_each)
{
    uint16_t at[MAQ_MAX_STAGES];
    uint32_t n_at = maq_schedule_positions(r->bp->schedule, stage, at);
    double all = 0;
    for (uint32_t c = 0; c < n_at; c++)
        for (uint32_t e = 0; e < r->bp->programs[at[c]]->n_entries; e++) {
            const struct maq_layer *layer = r->bp->blocks[r->bp->programs[at[c]]->entries[e].block]->layer;
            for (uint32_t i = 0; i < layer->n_modules; i++) {
                const struct maq_module *m = &layer->modules[i];
                bool here = (m->shard == MAQ_SHARD_EXPERT) == expert;
                double params = here ? maq_lower_local_params(&r->bp->lower, m) : 0, own = fmin(params, left);
                for (int moment = 0; moment < 2 && own > 0; moment++)
                    hold(r, &r->state, own * bytes_each);
                all += params;
                left -= own;
            }
        }
    return all;
}

/*
 * Of one buffer of all parameters a rank of ZeRO-1 updates a range: whole tensors, but for its ends
 * (megatron/core/optimizer/distrib_optimizer.py, _build_model_gbuf_range()). Its moments are made one after the other (FusedAdam's
 * initialize_state()).
 */
static void hold_moments(struct replay *r, uint32_t stage)
{
    const struct maq_job *job = r->bp->job;
    const bool whole = job->plan.sharding == MAQ_SHARDING_NONE;
    const double each = maq_moment_bytes(&job->plan), shards[2] = {job->groups[MAQ_GROUP_SHARD].size, (double)job->edp};
    for (int expert = 0; expert < 2; expert++) {
        double all = walk_buffer(r, stage, expert, 0, each);
        (void)walk_buffer(r, stage, expert, all / (whole ? 1 : shards[expert]), each);
    }
}

/*
 * Whether moments come with the first update, into what activations have left, while the master weights are there from the start: that is
 * how optimizers over single tensors do it (Apex, Transformer Engine), not those over flat ones (DeepSpeed).
 */
static bool moments_come(const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    return p->sharding <= MAQ_SHARDING_OPTIM && p->update == MAQ_UPDATE_ADAM && p->optimizer_offload <= 0 &&
           p->lora_rank == 0 && p->galore_rank == 0 && p->reduce_bucket_size <= 0 && !p->paged_optimizer &&
           !job->framework.low_precision_shards;
}

/* PyTorch's optimizers make a parameter's states when they first meet its gradient (torch/optim/adam.py, _init_group()). */
static void update(struct replay *r, uint32_t stage, double states)
{
    double params = walk_parameters(r, &r->state, stage, 0);
    if (r->state.n == 0 && r->moments)
        hold_moments(r, stage);
    if (r->state.n == 0 && states > 0 && params > 0)
        for (int moment = 0; moment < 2; moment++)
            walk_parameters(r, &r->state, stage, states / params / 2);
    work_of_update(r, stage);
    let_go(r, &r->grads);
}

static uint32_t slot_of(const struct maq_schedule *s, uint32_t position, uint32_t microbatch)
{
    return position * s->microbatches + microbatch;
}

static uint32_t tasks_of(const struct maq_schedule *s, uint32_t stage)
{
    uint32_t most = 0;
    for (uint32_t i = s->inflight_first[stage]; i < s->inflight_first[stage + 1]; i++)
        most = s->inflight[i].total > most ? s->inflight[i].total : most;
    uint32_t tasks = 4 * most;
    return tasks < FEWEST_TASKS ? FEWEST_TASKS : tasks > MOST_TASKS ? MOST_TASKS : tasks;
}

/* Runs the stage's first tasks, then frees what is left. */
static void run_step(struct replay *r, uint32_t stage)
{
    const struct maq_schedule *s = r->bp->schedule;
    uint32_t done = 0, tasks = tasks_of(s, stage);
    for (uint32_t t = s->stage_first[stage]; t != MAQ_NO_TASK && done < tasks && !r->failed;
         t = s->next_on_stage[t], done++) {
        const struct maq_task *task = &s->tasks[t];
        bool pair = task->kind == MAQ_TASK_FB;
        if (task->kind == MAQ_TASK_F || pair)
            forward(r, r->bp->programs[task->position], &r->live[slot_of(s, task->position, task->microbatch)]);
        bool ends = pair || task->kind == MAQ_TASK_W || (task->kind == MAQ_TASK_B && !task->split);
        uint32_t position = pair ? task->b_position : task->position;
        if (ends)
            backward(r, r->bp->programs[position],
                     &r->live[slot_of(s, position, pair ? task->b_microbatch : task->microbatch)]);
    }
    for (uint32_t i = s->n_positions * s->microbatches; i-- > 0;)
        backward(r, r->bp->programs[i / s->microbatches], &r->live[i]);
}

/* Bytes of the pool of the stream that gathers. */
static double gather_pool(const struct maq_blueprint *bp, uint32_t stage)
{
    uint16_t at[MAQ_MAX_STAGES];
    uint32_t n_at = maq_schedule_positions(bp->schedule, stage, at);
    double most = 0;
    for (uint32_t c = 0; c < n_at; c++)
        most = bp->programs[at[c]]->gather_bytes > most ? bp->programs[at[c]]->gather_bytes : most;
    return most;
}

/* DistributedDataParallel starts with one bucket, and makes those of its usual size in the second step, when it has seen the order of
 * the gradients (reducer.cpp, rebuild_buckets()). */
static uint32_t rebuild_buckets(struct replay *r, struct held *small, uint32_t whole, double bytes)
{
    const double each = maq_ddp_bucket_bytes(r->bp->job);
    for (double left = bytes; left > 0; left -= each)
        hold(r, small, left < each ? left : each);
    give(r, whole);
    return 0;
}

static void run_steps(struct replay *r, uint32_t stage, const struct maq_held_states *held)
{
    struct held small = {0};
    const double master = maq_master_bytes(r->bp->job), moments = 2 * maq_moment_bytes(&r->bp->job->plan);
    const double there = r->tensors   ? 0
                         : r->moments ? master / (master + moments)
                                      : 1; /* of the states, from the start */
    take(r, held->weights + held->optimizer * there);
    uint32_t whole = take(r, held->buckets);
    for (int step = 0; step < STEPS && !r->failed; step++) {
        if (step == 1 && whole != 0)
            whole = rebuild_buckets(r, &small, whole, held->buckets);
        run_step(r, stage);
        update(r, stage, r->tensors ? held->optimizer : 0);
    }
    let_go(r, &r->state);
    let_go(r, &r->grads);
    let_go(r, &small);
    give(r, r->workspace[0]);
    give(r, r->workspace[1]);
}

bool maq_replay_stage(struct maq_replayed *out, const struct maq_blueprint *bp, uint32_t stage,
                      const struct maq_held_states *held)
{
    bool known;
    if (!maq_eager_replay(out, &known, bp, stage))
        return false;
    if (!known && !maq_te_replay(out, &known, bp, stage))
        return false;
    if (known)
        return true;
    const struct maq_allocator_options options = maq_allocator_of(&bp->job->plan);
    struct replay r = {.bp = bp,
                       .a = maq_allocator_new(&options),
                       .tensors = maq_gradients_come(bp->job) && !bp->job->plan.fused_kernels};
    r.moments = !r.tensors && moments_come(bp->job);
    uint32_t slots = bp->schedule->n_positions * bp->schedule->microbatches;
    r.live = calloc(slots, sizeof *r.live);
    r.failed = !r.a || !r.live;
    if (!r.failed)
        run_steps(&r, stage, held);
    bool done = false;
    if (!r.failed) {
        struct maq_allocator_stats stats = maq_allocator_stats(r.a);
        *out = (struct maq_replayed){stats.peak_allocated,   stats.peak_reserved, stats.peak_waste,
                                     gather_pool(bp, stage), r.tensors,           false};
        done = true;
    }
    for (uint32_t i = 0; r.live && i < slots; i++)
        free(r.live[i].at);
    free(r.live);
    maq_allocator_free(r.a);
    return done;
}
