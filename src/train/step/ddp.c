/* SPDX-License-Identifier: Apache-2.0 */
/* ddp.c - deals a program's tensors to the buckets of DistributedDataParallel and times the backward pass with them. See ddp.h. */
#include "train/step/ddp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "lower/local.h"
#include "train/step/one_bit.h"

#define MIB (1024.0 * 1024.0)
#define DEFAULT_CAP_MB 25.0 /* distributed.py, _DEFAULT_BUCKET_CAP_MB: with it alone the first bucket is a small one */

bool maq_ddp_reduces(const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    return job->framework.bucket_cap_mb > 0 && p->sharding == MAQ_SHARDING_NONE && p->bucket_layers == 0 &&
           p->lora_rank == 0 && !maq_one_bit_exchanges(p) && job->groups[MAQ_GROUP_DP_CP].size > 1;
}

bool maq_ddp_waits(const struct maq_job *job)
{
    return job->framework.gradient_buckets != MAQ_BUCKETS_HOOK;
}

bool maq_ddp_finds_unused(const struct maq_job *job)
{
    return job->framework.find_unused_parameters && job->plan.recompute == MAQ_RECOMPUTE_NONE;
}

double maq_ddp_bucket_bytes(const struct maq_job *job)
{
    return MIB * (job->framework.bucket_cap_mb > 0 ? job->framework.bucket_cap_mb : DEFAULT_CAP_MB);
}

double maq_ddp_first_bucket_bytes(const struct maq_job *job)
{
    const double cap = maq_ddp_bucket_bytes(job);
    return cap == DEFAULT_CAP_MB * MIB ? MIB : cap;
}

/* ---- which tensors are in a bucket ---- */

/* A bucket as it is dealt: `tensor` is the one of all its tensors whose gradient comes last, counted in the order of the model. */
struct dealt {
    uint32_t tensor, entry, weight, tensors;
    double params;
    bool expert;
};

struct dealer {
    struct dealt *at, open[2]; /* open: being filled, of dense parameters and of experts that other ranks have not */
    uint32_t n;
    double limit[2], cap, bytes; /* of numbers, until each is full; bytes of a number */
};

static void close_bucket(struct dealer *d, bool expert)
{
    if (d->open[expert].tensors > 0)
        d->at[d->n++] = d->open[expert];
    d->open[expert] = (struct dealt){.expert = expert};
    d->limit[expert] = d->cap;
}

static void deal(struct dealer *d, bool backward, const struct dealt *one)
{
    struct dealt *o = &d->open[one->expert];
    if (o->tensors == 0 || backward) {
        o->tensor = one->tensor;
        o->entry = one->entry;
        o->weight = one->weight;
    }
    o->tensors++;
    o->params += one->params;
    o->expert = one->expert;
    if (o->params * d->bytes >= d->limit[one->expert])
        close_bucket(d, one->expert);
}

/* Later tensors first: their gradients come first. */
static int by_arrival(const void *a, const void *b)
{
    const struct dealt *x = a, *y = b;
    return x->tensor < y->tensor ? 1 : x->tensor > y->tensor ? -1 : 0;
}

/* `all`: the tensors in the order of the model. */
static void deal_all(struct dealer *d, const struct dealt *all, uint32_t n, bool backward)
{
    for (uint32_t i = 0; i < n; i++)
        deal(d, backward, &all[backward ? n - 1 - i : i]);
    close_bucket(d, false);
    close_bucket(d, true);
    qsort(d->at, d->n, sizeof *d->at, by_arrival);
}

static uint32_t list_tensors(struct dealt *out, const struct maq_blueprint *bp, const struct maq_program *program)
{
    uint32_t n = 0;
    for (uint32_t e = 0; e < program->n_entries; e++) {
        const struct maq_block *block = bp->blocks[program->entries[e].block];
        for (uint32_t w = 0; w < block->n_weights; w++, n++)
            if (out)
                out[n] = (struct dealt){.tensor = n,
                                        .entry = e,
                                        .weight = w,
                                        .params = block->weights[w].params,
                                        .expert = block->weights[w].expert && bp->job->plan.ep > 1};
    }
    return n;
}

/* ---- what a bucket costs ---- */

static uint32_t reduction(struct maq_blueprint *bp, enum maq_group_kind group, double bytes)
{
    struct maq_coll c = maq_coll_make(&bp->lower, MAQ_COLL_ALL_REDUCE, group, bytes);
    return maq_items_coll(bp->items, &c, MAQ_STREAM_DP);
}

/* Reads and writes as many gradients. */
static uint32_t copies(struct maq_blueprint *bp, double params, bool runs)
{
    const int64_t g = (int64_t)maq_dtype_bytes((enum maq_dtype)bp->job->plan.grad_reduce_dtype);
    const struct maq_op op = maq_op_make(MAQ_OP_ELEMENTWISE, bp->lower.store, 0, (int64_t)params, g, g, 0, 0, 0);
    return runs && params >= 1 ? maq_items_op(bp->items, &op) : 0;
}

static bool copies_back(const struct maq_job *job)
{
    return maq_ddp_waits(job) && job->framework.gradient_buckets != MAQ_BUCKETS_VIEWS;
}

static double item_ns(const struct maq_blueprint *bp, uint32_t item)
{
    return item ? bp->items->at[item].dur_ns : 0;
}

/*
 * When the bucket's last gradient is there. Halves of a backward pass are not looked into, and the copies of an entry's gradients are taken
 * together at its end, which the bucket of its last gradient waits for.
 */
static struct maq_segment_mark arrival(const struct maq_blueprint *bp, const struct maq_entry *e, uint32_t weight)
{
    const struct maq_block *block = bp->blocks[e->block];
    const struct maq_segment *g = block->backward[e->redo];
    const struct maq_segment_mark end = {MAQ_STEP_NONE, 0};
    if (bp->schedule->split_backward || !g->gradients || weight == 0)
        return end;
    return g->gradients[block->weights[weight].module];
}

static void cost_bucket(struct maq_ddp_bucket *b, struct maq_blueprint *bp, const struct maq_program *program,
                        const struct dealt *d)
{
    const double g = maq_dtype_bytes((enum maq_dtype)bp->job->plan.grad_reduce_dtype);
    const struct maq_segment_mark ready = arrival(bp, &program->entries[d->entry], d->weight);
    *b = (struct maq_ddp_bucket){.reduce = reduction(bp, d->expert ? MAQ_GROUP_EDP : MAQ_GROUP_DP_CP, d->params * g),
                                 .empty = copies(bp, d->params, copies_back(bp->job)),
                                 .tensors = d->tensors,
                                 .step = ready.step,
                                 .ready_ns = ready.end_ns};
    b->reduce_ns = item_ns(bp, b->reduce);
    b->empty_ns = item_ns(bp, b->empty);
}

/* Of an entry: its buckets, which are program->n_entries - 1 - e of the backward pass, and what is copied into buckets meanwhile. */
static void give_entry(struct maq_bucket_sync *s, struct maq_blueprint *bp, struct maq_program *program, uint32_t e,
                       struct maq_ddp_bucket *first, uint32_t n)
{
    const struct maq_block *block = bp->blocks[program->entries[e].block];
    s->ddp = first;
    s->n_ddp = n;
    s->fill = copies(bp, block->dense_params + block->expert_params, maq_ddp_waits(bp->job));
    s->fill_ns = item_ns(bp, s->fill);
    program->ddp_copies_ns += s->fill_ns;
    for (uint32_t k = 0; k < n; k++) {
        s->reduce_ns += first[k].reduce_ns;
        program->ddp_copies_ns += first[k].empty_ns;
        program->ddp_launches += 1 + (first[k].empty ? first[k].tensors : 0) + (s->fill ? first[k].tensors : 0);
    }
}

enum maq_status maq_ddp_fill(struct maq_blueprint *bp, struct maq_program *program)
{
    const bool unused = maq_ddp_finds_unused(bp->job) && maq_ddp_waits(bp->job);
    const double g = maq_dtype_bytes((enum maq_dtype)bp->job->plan.grad_reduce_dtype);
    const uint32_t n = list_tensors(NULL, bp, program);
    struct maq_arena_mark mark;
    struct maq_ddp_bucket *buckets = MAQ_ARENA_NEW(bp->arena, struct maq_ddp_bucket, (size_t)n + 1);
    const double cap = maq_ddp_bucket_bytes(bp->job), least = maq_ddp_first_bucket_bytes(bp->job);
    struct dealer d = {.limit = {least, least}, .cap = cap, .bytes = g};
    if (!buckets)
        return MAQ_NO_MEMORY;
    mark = maq_arena_mark(bp->arena);
    struct dealt *all = MAQ_ARENA_NEW(bp->arena, struct dealt, (size_t)n + 1);
    d.at = MAQ_ARENA_NEW(bp->arena, struct dealt, (size_t)n + 1);
    if (!all || !d.at)
        return MAQ_NO_MEMORY;
    list_tensors(all, bp, program);
    deal_all(&d, all, n, !unused);
    for (uint32_t i = 0, e = program->n_entries; e-- > 0;) {
        const uint32_t first = i;
        for (; i < d.n && d.at[i].entry == e; i++)
            cost_bucket(&buckets[i], bp, program, &d.at[i]);
        give_entry(&program->buckets[e], bp, program, e, &buckets[first], i - first);
    }
    program->used_map = unused && n > 0 ? reduction(bp, MAQ_GROUP_DP_CP, 4.0 * n) : 0;
    maq_arena_reset(bp->arena, mark);
    return MAQ_OK;
}

/* ---- the backward pass ---- */

static double later(double a, double b)
{
    return a > b ? a : b;
}

double maq_ddp_ready_ns(const struct maq_ddp_bucket *bucket, double start, double end)
{
    return bucket->step == MAQ_STEP_NONE ? end : start + bucket->ready_ns;
}

double maq_ddp_backward_ns(const struct maq_blueprint *bp, struct maq_program *program, enum maq_half half)
{
    const bool overlaps = bp->job->plan.overlap_grad_reduce == MAQ_ON;
    double compute = 0, stream = 0, end;
    for (uint32_t i = program->n_buckets; i-- > 0;) {
        struct maq_bucket_sync *b = &program->buckets[i];
        const double start = compute;
        compute += maq_half_ns(b, half) + b->fill_ns;
        for (uint32_t k = 0; k < b->n_ddp && overlaps; k++) {
            stream = later(stream, maq_ddp_ready_ns(&b->ddp[k], start, compute)) + b->ddp[k].reduce_ns;
            b->ddp[k].reduced_ns = stream;
        }
    }
    end = compute;
    for (uint32_t i = program->n_buckets; i-- > 0;)
        for (uint32_t k = 0; k < program->buckets[i].n_ddp; k++) {
            struct maq_ddp_bucket *one = &program->buckets[i].ddp[k];
            if (!overlaps)
                one->reduced_ns = stream = later(stream, compute) + one->reduce_ns;
            end = later(end, one->reduced_ns) + one->empty_ns;
        }
    return later(end, stream + (program->used_map ? bp->items->at[program->used_map].dur_ns : 0));
}
