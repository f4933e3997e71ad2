/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transformer_engine_replay.c - what PyTorch's caching allocator reserves for a stage of Megatron-LM with Transformer Engine, from all that the program
 * asks it for (Megatron-LM core 0.16):
 *
 *   start      weights one by one, and Transformer Engine's workspace with the first of them; then, on a stream of its own, the buffers of
 *              DistributedDataParallel: gradients, and with the distributed optimizer weights, which move there, so that what they had is free
 *              (param_and_grad_buffer.py). Master weights, each with a copy in the type of the model for a moment, last layer first
 *   passes     the scripts of its layers (transformer_engine_script.h) in the order of the schedule
 *   transfers  pipeline_transfers.h
 *   waiting    what another stream works with, too, is free when the host has waited for the device, since it runs ahead of it: weights' gradients,
 *              which autograd hands over on the stream that DistributedDataParallel was made on, and what is sent and received. It waits
 *              behind transfers without overlap, for the batch on the first and the last virtual stage, and at the end
 *   update     moments at the first one, two for each tensor (FusedAdam); gradients in 4 bytes where they are in 2
 *
 * A step ends when its first tasks are done (most of a long schedule repeats itself) and what is left has been through its backward passes.
 */
#include "train/memory/transformer_engine_replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "graph/allocator.h"
#include "lower/local.h"
#include "train/memory/cublas_workspaces.h"
#include "train/memory/held_blocks.h"
#include "train/memory/pipeline_transfers.h"
#include "train/memory/stage_memory.h"
#include "train/memory/transformer_engine_script.h"

#define STEPS 3
#define LAUNCH_QUEUE 1024 /* as in train/step/host.c */
#define FEWEST_TASKS 24
#define MOST_TASKS 384
#define ALIGNMENT 1024.0 /* of Transformer Engine's workspace (pytorch/cpp_extensions/gemm.py) */

enum stream { COMPUTE, BUFFERS };

/* A microbatch that is between its passes on one virtual stage. */
struct flight {
    uint32_t *blocks; /* [slots of all entries]; NULL: it is not */
};

/*
 * What the schedule holds beside the passes: an input that was received for the next forward pass, an output and a gradient that are being
 * sent; of each program the last forward pass, whose input its chunk still has, and of that, once its backward pass is over, input and
 * gradient; the same of the one that has a name all through the step ([n_programs]).
 */
struct transfers {
    uint32_t next_input, output, sent;
    const struct maq_task *named, *newest[MAQ_MAX_STAGES];
    uint32_t stale[MAQ_MAX_STAGES + 1][2];
};

/* Given back, and another stream is at work with it. */
struct waiting {
    uint32_t block;
    uint64_t issued; /* operators until then */
};

struct engine {
    const struct maq_blueprint *bp;
    const struct maq_program *programs[MAQ_MAX_STAGES]; /* of the stage's positions */
    uint16_t positions[MAQ_MAX_STAGES];
    uint32_t n_programs, stage;
    struct maq_allocator *a;
    struct maq_eager_script *scripts; /* [n_blocks] */
    struct flight *flights;           /* [n_positions * microbatches] */
    uint32_t received, kept;          /* a gradient and an input that autograd does not free */
    struct maq_held_blocks states;
    struct waiting *waiting; /* [n_waiting], of which the first n_freed are free */
    uint32_t n_waiting, n_freed, room;
    uint64_t issued;    /* operators */
    uint32_t workspace; /* Transformer Engine's */
    bool compiled;      /* see compile() */
    bool failed;
};

static void give(struct engine *r, uint32_t *block)
{
    if (*block != 0 && *block != r->received && *block != r->kept)
        maq_allocator_release(r->a, *block);
    *block = 0;
}

/*
 * Given back while another stream works with it: it is free when the device has come so far, which the host, that runs ahead of it, sees when
 * it has waited, or when it has issued more operators than the queue of launches holds.
 */
static void give_later(struct engine *r, uint32_t *block)
{
    if (*block == 0)
        return;
    if (!maq__grow((void **)&r->waiting, &r->room, r->n_waiting, sizeof *r->waiting)) {
        r->failed = true;
        return;
    }
    maq_allocator_retire(r->a, *block);
    r->waiting[r->n_waiting++] = (struct waiting){*block, r->issued};
    *block = 0;
}

/* Frees what was given back when less than `issued` operators were. */
static void come_to(struct engine *r, uint64_t issued)
{
    while (r->n_freed < r->n_waiting && r->waiting[r->n_freed].issued < issued)
        maq_allocator_release(r->a, r->waiting[r->n_freed++].block);
    if (r->n_freed == r->n_waiting)
        r->n_freed = r->n_waiting = 0;
}

static void wait_for_device(struct engine *r)
{
    come_to(r, UINT64_MAX);
}

static uint32_t take(struct engine *r, double bytes)
{
    if (bytes <= 0)
        return 0;
    r->issued++; /* by an operator, as almost every tensor is */
    if (r->issued > LAUNCH_QUEUE)
        come_to(r, r->issued - LAUNCH_QUEUE);
    uint32_t block = maq_allocator_alloc(r->a, COMPUTE, bytes);
    r->failed |= block == 0;
    return block;
}

/* ---- passes ---- */

static const struct maq_eager_script *script_of(const struct engine *r, const struct maq_program *pr, uint32_t entry)
{
    return &r->scripts[pr->entries[entry].block];
}

/*
 * The kernel of dropout and sum is compiled where the first layer ends, and tried with a cold cache: a tensor as large as that empties it (PyTorch,
 * torch/_inductor/runtime/benchmarking.py).
 */
static void compile(struct engine *r)
{
    uint32_t cold = r->compiled ? 0 : take(r, r->bp->lower.device ? r->bp->lower.device->l2_bytes : 0);
    give(r, &cold);
    r->compiled = true;
}

static void play(struct engine *r, const struct maq_eager_script *s, const struct maq_moves *moves, uint32_t *blocks,
                 uint16_t renamed)
{
    for (uint32_t i = 0; i < moves->n && !r->failed; i++) {
        if (moves == &s->forward && s->sum > 0 && i == s->sum)
            compile(r);
        uint16_t slot = moves->at[i].slot;
        const enum maq_move_kind kind = (enum maq_move_kind)moves->at[i].kind;
        if (kind == MAQ_MOVE_TAKE) {
            blocks[slot] = take(r, s->bytes[slot]);
        } else if (kind == MAQ_MOVE_GIVE) {
            give(r, &blocks[slot]);
        } else if (kind == MAQ_MOVE_WEIGHT) {
            give_later(r, &blocks[slot]);
        } else if (slot != renamed) { /* MAQ_MOVE_RENAME */
            blocks[renamed] = blocks[slot];
            blocks[slot] = 0;
        }
    }
}

/* Forward; `input` is what the entry reads, and what it returns is. With `keep` false only the input stays. */
static void forward_entry(struct engine *r, const struct maq_eager_script *s, uint32_t *blocks, uint32_t *input,
                          bool keep)
{
    blocks[MAQ_SLOT_IN] = *input;
    play(r, s, &s->forward, blocks, MAQ_SLOT_OUT);
    *input = blocks[MAQ_SLOT_OUT];
    blocks[MAQ_SLOT_OUT] = 0;
    for (uint32_t k = MAQ_SLOTS_FIXED; k < s->n_slots && !keep; k++)
        give(r, &blocks[k]);
}

static bool again(const struct engine *r, const struct maq_entry *e)
{
    return e->redo && r->bp->job->plan.recompute == MAQ_RECOMPUTE_FULL;
}

static uint32_t slots_of(const struct engine *r, const struct maq_program *pr)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < pr->n_entries; i++)
        n += script_of(r, pr, i)->n_slots;
    return n;
}

/* Takes over `input`; returns what is sent on. Who ends the replay frees the blocks of all flights, which the analyzer does not see. */
// NOLINTBEGIN(clang-analyzer-unix.Malloc)
static uint32_t forward(struct engine *r, const struct maq_program *pr, struct flight *f, uint32_t input)
{
    f->blocks = calloc(slots_of(r, pr), sizeof *f->blocks);
    r->failed |= !f->blocks;
    for (uint32_t i = 0, slot = 0; i < pr->n_entries && !r->failed; i++) {
        const struct maq_eager_script *s = script_of(r, pr, i);
        forward_entry(r, s, &f->blocks[slot], &input, !again(r, &pr->entries[i]));
        slot += s->n_slots;
    }
    return input;
}
// NOLINTEND(clang-analyzer-unix.Malloc)

/* `gradient`: received, or 0 for the loss; returns that of the input. */
static uint32_t backward(struct engine *r, const struct maq_program *pr, struct flight *f, uint32_t gradient)
{
    uint32_t *blocks = f->blocks + slots_of(r, pr);
    r->received = gradient;
    for (uint32_t i = pr->n_entries; i-- > 0 && !r->failed;) {
        const struct maq_eager_script *s = script_of(r, pr, i);
        blocks -= s->n_slots;
        if (again(r, &pr->entries[i])) {
            uint32_t input = blocks[MAQ_SLOT_IN];
            forward_entry(r, s, blocks, &input, true);
            give(r, &input);
        }
        blocks[MAQ_SLOT_GRADIENT] = gradient;
        play(r, s, &s->backward, blocks, MAQ_SLOT_GRADIENT);
        gradient = blocks[MAQ_SLOT_GRADIENT];
        for (uint32_t k = MAQ_SLOTS_FIXED; k < s->n_slots; k++)
            give(r, &blocks[k]);
    }
    r->received = 0;
    free(f->blocks);
    f->blocks = NULL;
    return gradient;
}

/* ---- the schedule ---- */

static uint32_t tasks_of(const struct engine *r)
{
    const struct maq_schedule *s = r->bp->schedule;
    uint32_t most = 0;
    for (uint32_t i = s->inflight_first[r->stage]; i < s->inflight_first[r->stage + 1]; i++)
        most = s->inflight[i].total > most ? s->inflight[i].total : most;
    uint32_t tasks = 4 * most;
    return tasks < FEWEST_TASKS ? FEWEST_TASKS : tasks > MOST_TASKS ? MOST_TASKS : tasks;
}

static struct flight *flight_of(struct engine *r, const struct maq_task *t)
{
    return &r->flights[t->position * r->bp->schedule->microbatches + t->microbatch];
}

/* Where transfers are waited for, the device is. */
static void transferred(struct engine *r)
{
    const struct maq_job *job = r->bp->job;
    if (job->plan.overlap_p2p != MAQ_ON && job->framework.p2p_synchronizes && job->plan.pp > 1)
        wait_for_device(r);
}

static uint32_t chunk_of(const struct engine *r, const struct maq_task *t)
{
    uint32_t chunk = 0;
    while (chunk + 1 < r->n_programs && r->positions[chunk] != t->position)
        chunk++;
    return chunk;
}

static void run_forward(struct engine *r, struct transfers *x, const struct maq_task *t, const struct maq_task *next)
{
    const uint32_t last = r->bp->schedule->n_positions - 1;
    const bool overlap = r->bp->job->plan.overlap_p2p == MAQ_ON;
    const uint32_t chunk = chunk_of(r, t);
    if (t->position == 0 || t->position == last) /* it reads what kind of batch there is */
        wait_for_device(r);
    give_later(r, &x->output);
    give_later(r, &x->stale[chunk][0]);
    give_later(r, &x->stale[chunk][1]);
    x->newest[chunk] = t;
    uint32_t input = x->next_input;
    x->next_input = 0;
    if (input == 0 && t->position > 0)
        input = take(r, maq_border_bytes(r->bp));
    uint32_t output = forward(r, r->bp->programs[t->position], flight_of(r, t), input);
    if (overlap && next && next->position > 0)
        x->next_input = take(r, maq_border_bytes(r->bp));
    if (t->position == last)
        return;
    x->output = output;
    transferred(r);
    if (!overlap) /* it is waited for */
        give(r, &x->output);
}

/* Of which list the input of a microbatch stays behind its backward pass; n_programs + 1: of none. */
static uint32_t stays(const struct engine *r, const struct transfers *x, const struct maq_task *t)
{
    const uint32_t chunk = chunk_of(r, t);
    if (r->bp->schedule->kind != MAQ_SCHEDULE_INTERLEAVED || t->position == 0)
        return r->n_programs + 1;
    if (x->named && x->named->position == t->position && x->named->microbatch == t->microbatch)
        return r->n_programs;
    return x->newest[chunk] && x->newest[chunk]->microbatch == t->microbatch ? chunk : r->n_programs + 1;
}

static void run_backward(struct engine *r, struct transfers *x, const struct maq_task *t)
{
    const uint32_t last = r->bp->schedule->n_positions - 1, list = stays(r, x, t);
    uint32_t gradient = t->position < last ? take(r, maq_border_bytes(r->bp)) : 0,
             input = list <= r->n_programs ? flight_of(r, t)->blocks[MAQ_SLOT_IN] : 0;
    r->kept = input;
    uint32_t of_input = backward(r, r->bp->programs[t->position], flight_of(r, t), gradient);
    r->kept = 0;
    if (gradient != of_input)
        give_later(r, &gradient);
    give_later(r, &x->sent);
    if (list <= r->n_programs) {
        x->stale[list][0] = input;
        x->stale[list][1] = of_input;
    } else {
        x->sent = t->position > 0 ? of_input : 0;
    }
    transferred(r);
}

/* The next forward pass of a stage behind a task. */
static const struct maq_task *next_forward(const struct maq_schedule *s, uint32_t t)
{
    for (t = s->next_on_stage[t]; t != MAQ_NO_TASK; t = s->next_on_stage[t])
        if (s->tasks[t].kind == MAQ_TASK_F)
            return &s->tasks[t];
    return NULL;
}

static void run_step(struct engine *r)
{
    const struct maq_schedule *s = r->bp->schedule;
    const struct maq_task *newest = NULL;
    struct transfers x = {0};
    uint32_t done = 0, tasks = tasks_of(r);
    for (uint32_t t = s->stage_first[r->stage]; t != MAQ_NO_TASK && !r->failed; t = s->next_on_stage[t]) {
        const struct maq_task *task = &s->tasks[t];
        if (task->kind == MAQ_TASK_B && !x.named) /* received at the end of the forward passes that come first */
            x.named = newest;
        newest = task->kind == MAQ_TASK_F ? task : newest;
        if (task->kind == MAQ_TASK_F && done++ < tasks)
            run_forward(r, &x, task, done < tasks ? next_forward(s, t) : NULL);
        else if (task->kind == MAQ_TASK_B && flight_of(r, task)->blocks)
            run_backward(r, &x, task);
    }
    wait_for_device(r);
    give(r, &x.next_input);
    give(r, &x.output);
    give(r, &x.sent);
    for (uint32_t i = 0; i <= r->n_programs; i++) {
        give(r, &x.stale[i][0]);
        give(r, &x.stale[i][1]);
    }
}

/* ---- states ---- */

enum which { WEIGHTS, MASTERS, MOMENTS, WIDE_GRADIENTS };

/* A parameter of `params` numbers, of which the rank updates `own`. */
static void meet(struct engine *r, enum which which, double params, double own, struct maq_held_blocks *held)
{
    const struct maq_job *job = r->bp->job;
    const double store = r->bp->lower.store_bytes;
    double each[] = {store, maq_master_bytes(job), maq_moment_bytes(&job->plan), maq_step_update_bytes(r->bp)};
    uint32_t copy = which == MASTERS ? take(r, own * store) : 0;
    for (int k = 0; k < (which == MOMENTS ? 2 : 1); k++)
        r->failed |= !maq_hold_block(held, take(r, (which == WEIGHTS ? params : own) * each[which]));
    give(r, &copy);
}

/* Matrix and bias of a module; `left` of the rank's share of all is not used up. */
static void meet_module(struct engine *r, enum which which, const struct maq_module *m, double *left,
                        struct maq_held_blocks *held)
{
    double params = maq_lower_local_params(&r->bp->lower, m),
           bias = m->flags & MAQ_MODULE_BIAS ? params - maq_te_weight_numbers(&r->bp->lower, m) : 0;
    const double parts[] = {params - bias, bias};
    for (int k = 0; k < 2; k++) {
        double own = fmin(parts[k], *left);
        meet(r, which, parts[k], own, held);
        *left -= own;
    }
    if (which == WEIGHTS && m->kind == MAQ_MODULE_LINEAR && m->part != MAQ_PART_OUTPUT && r->workspace == 0)
        r->workspace = take(r, maq_te_workspace_bytes(r->bp->job) + ALIGNMENT);
}

/* The module that is the i-th to be built: attention's last product comes before its first. */
static const struct maq_module *built(const struct maq_layer *layer, uint32_t i)
{
    uint32_t last = 0;
    while (last < layer->n_modules &&
           !(layer->modules[last].kind == MAQ_MODULE_LINEAR && layer->modules[last].shard == MAQ_SHARD_ROW))
        last++;
    if (last == layer->n_modules || i > last)
        return &layer->modules[i];
    return &layer->modules[i == 0 ? last : i - 1];
}

/* The stage's parameters; but for its weights from the last layer on, what the rank has of one buffer. */
static void walk(struct engine *r, enum which which, struct maq_held_blocks *held)
{
    const struct maq_job *job = r->bp->job;
    const bool shared = job->plan.sharding != MAQ_SHARDING_NONE;
    for (uint32_t c = 0; c < r->n_programs; c++) {
        const struct maq_program *pr = r->programs[c];
        double left = pr->dense_params / (shared ? job->groups[MAQ_GROUP_SHARD].size : 1);
        for (uint32_t i = 0; i < pr->n_entries; i++) {
            const struct maq_entry *e = &pr->entries[which == WEIGHTS ? i : pr->n_entries - 1 - i];
            const struct maq_layer *layer = r->bp->blocks[e->block]->layer;
            for (uint32_t k = 0; k < layer->n_modules; k++) {
                const struct maq_module *m = built(layer, which == WEIGHTS ? k : layer->n_modules - 1 - k);
                meet_module(r, which, m, &left, held);
            }
        }
    }
}

static void start(struct engine *r)
{
    const struct maq_job *job = r->bp->job;
    /* the distributed optimizer of one rank is a plan without sharding here (maq_sharding_is_moot()), and more usual than none */
    const bool shared = job->plan.sharding != MAQ_SHARDING_NONE || job->groups[MAQ_GROUP_SHARD].size <= 1;
    struct maq_held_blocks weights = {0}, forever = {0};
    walk(r, WEIGHTS, &weights);
    for (uint32_t c = 0; c < r->n_programs; c++) {
        double params = r->programs[c]->dense_params;
        bool held = maq_hold(&forever, r->a, BUFFERS, shared ? params * r->bp->lower.store_bytes : 0) &&
                    maq_hold(&forever, r->a, BUFFERS, params * maq_dtype_bytes((enum maq_dtype)job->plan.grad_dtype));
        r->failed |= !held;
    }
    if (shared)
        maq_let_go(&weights, r->a);
    walk(r, MASTERS, &forever);
    for (int thread = 0; thread < 2; thread++) /* PyTorch's, of forward passes and of autograd's thread */
        r->failed |= !maq_hold(&forever, r->a, COMPUTE, maq_kept_cublas_workspace_bytes(job));
    free(weights.blocks);
    free(forever.blocks);
}

static void update(struct engine *r)
{
    struct maq_held_blocks wide = {0};
    if (r->states.n == 0)
        walk(r, MOMENTS, &r->states);
    if (maq_step_update_bytes(r->bp) > 0)
        walk(r, WIDE_GRADIENTS, &wide);
    maq_let_go(&wide, r->a);
}

/* ---- the program ---- */

static bool plan_is_known(const struct maq_blueprint *bp)
{
    const struct maq_plan *p = &bp->job->plan;
    return maq_job_has_transformer_engine(bp->job) && bp->schedule->kind <= MAQ_SCHEDULE_INTERLEAVED &&
           !bp->schedule->split_backward && p->sharding <= MAQ_SHARDING_OPTIM && p->update == MAQ_UPDATE_ADAM &&
           p->optimizer_offload <= 0 && p->offload_layers == 0 && p->galore_rank == 0 && !p->paged_optimizer &&
           p->reduce_bucket_size <= 0 && !bp->job->framework.low_precision_shards &&
           maq_layers_per_checkpoint(p) == 1 && !bp->job->framework.frees_gradients;
}

static bool set_up(struct engine *r)
{
    const struct maq_blueprint *bp = r->bp;
    const struct maq_allocator_options options = maq_allocator_of(&bp->job->plan);
    r->scripts = calloc(bp->n_blocks, sizeof *r->scripts);
    for (uint32_t c = 0; r->scripts && c < r->n_programs; c++)
        for (uint32_t i = 0; i < r->programs[c]->n_entries; i++) {
            uint32_t block = r->programs[c]->entries[i].block;
            struct maq_eager_script *s = &r->scripts[block];
            if (s->n_slots == 0 && !maq_te_script(s, &bp->lower, bp->blocks[block]->layer)) {
                r->failed |= s->failed;
                return false;
            }
        }
    r->flights = calloc((size_t)bp->schedule->n_positions * bp->schedule->microbatches, sizeof *r->flights);
    r->a = maq_allocator_new(&options);
    r->failed |= !r->scripts || !r->flights || !r->a;
    return !r->failed;
}

static void tear_down(struct engine *r)
{
    const struct maq_schedule *s = r->bp->schedule;
    for (uint32_t i = 0; r->flights && i < s->n_positions * s->microbatches; i++)
        free(r->flights[i].blocks);
    for (uint32_t i = 0; r->scripts && i < r->bp->n_blocks; i++)
        maq_eager_script_free(&r->scripts[i]);
    free(r->flights);
    free(r->scripts);
    free(r->states.blocks);
    free(r->waiting);
    maq_allocator_free(r->a);
}

bool maq_te_replay(struct maq_replayed *out, bool *known, const struct maq_blueprint *bp, uint32_t stage)
{
    *known = plan_is_known(bp);
    if (!*known)
        return true;
    struct engine r = {.bp = bp, .stage = stage};
    r.n_programs = maq_stage_programs(r.programs, bp, stage);
    (void)maq_schedule_positions(bp->schedule, stage, r.positions);
    *known = set_up(&r);
    if (*known) {
        start(&r);
        for (int step = 0; step < STEPS && !r.failed; step++) {
            run_step(&r);
            update(&r);
        }
        struct maq_allocator_stats stats = maq_allocator_stats(r.a);
        *out = (struct maq_replayed){.allocated = stats.peak_allocated,
                                     .reserved = stats.peak_reserved,
                                     .waste = stats.peak_waste,
                                     .whole = true};
    }
    bool good = !r.failed;
    tear_down(&r);
    return good;
}
