/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dp_comm.c - data-parallel communication of one virtual stage.
 *
 * Gradients of the entries of a bucket are reduced together (Megatron-LM's DistributedDataParallel buckets:
 * 40 M parameters, at least 1 M per DP rank; FSDP: one entry; PyTorch's DistributedDataParallel: ddp.h). Dense parameters and experts have different
 * groups: DP x CP for the former, expert-DP for the latter.
 *
 *   reduce   no_shard: all-reduce; otherwise reduce-scatter over the shard group, then all-reduce of the shard over the replicas (HSDP)
 *   gather   all-gather over the shard group
 *
 * Parameters on the host (DeepSpeed 0.19.6, runtime/zero/partition_parameters.py, _all_gather_dtype(): the shard is copied to the device, then
 * gathered; PyTorch 2.15, torch/distributed/fsdp/_fully_shard/_fsdp_param.py, all_gather_inputs()), w bytes each over n shards:
 *
 *   upload     w / n    before every gather, in the type in which they are kept
 *   download   g / n    behind every reduction (stage3.py, partition_grads(); _fsdp_collectives.py, foreach_reduce()). From the second
 *                       microbatch on DeepSpeed brings up what has added up and takes the sum down again, which takes twice as long; PyTorch
 *                       adds on the host
 */
#include "train/step/dp_comm.h"

#include <math.h>

#include "base/check.h"
#include "lower/local.h"
#include "train/memory/stage_memory.h"
#include "train/step/ddp.h"
#include "train/step/one_bit.h"

#define BUCKET_PARAMS 40e6 /* Megatron-LM: max(40 M, 1 M x DP) */
#define BUCKET_PARAMS_PER_RANK 1e6

const struct maq_segment *maq_half_segment(const struct maq_blueprint *bp, const struct maq_entry *e,
                                           enum maq_half half)
{
    const struct maq_block *b = bp->blocks[e->block];
    return half == MAQ_HALF_WEIGHT ? b->weight : b->backward[e->redo];
}

bool maq_half_gathers(const struct maq_blueprint *bp, enum maq_half half)
{
    return bp->gather_backward && half != MAQ_HALF_WEIGHT;
}

bool maq_half_reduces(enum maq_half half, bool pass_reduces)
{
    return pass_reduces && half != MAQ_HALF_INPUT;
}

bool maq_reduces_behind(const struct maq_blueprint *bp)
{
    return !bp->sync_every_pass && !bp->sync_last_pass;
}

bool maq_reduces_in_line(const struct maq_blueprint *bp)
{
    const struct maq_plan *p = &bp->job->plan;
    return p->sharding == MAQ_SHARDING_GRADS && p->overlap_grad_reduce != MAQ_ON;
}

static uint32_t coll(struct maq_blueprint *bp, enum maq_coll_kind kind, enum maq_group_kind group, double bytes)
{
    struct maq_coll c = maq_coll_make(&bp->lower, kind, group, bytes);
    return maq_items_coll(bp->items, &c, MAQ_STREAM_DP);
}

/* Parameters after the update: gathered, or broadcast by each rank in turn; a bucket has its share of the ranks. */
static uint32_t gather(struct maq_blueprint *bp, double bytes, double share)
{
    if (!bp->job->framework.broadcasts_parameters || bp->job->plan.sharding == MAQ_SHARDING_PARAMS)
        return coll(bp, MAQ_COLL_ALL_GATHER, MAQ_GROUP_SHARD, bytes);
    struct maq_coll c = maq_coll_make(&bp->lower, MAQ_COLL_BROADCAST, MAQ_GROUP_SHARD, bytes);
    double turns = fmin(fmax(1.0, round(share * (double)c.at.size)), 65535.0);
    c.flags = MAQ_COLL_TURNS(turns);
    return maq_items_coll(bp->items, &c, MAQ_STREAM_DP);
}

/* Parameters of a bucket; narrow: of those, what the recipe quantizes. */
struct held {
    double dense, expert, dense_narrow, expert_narrow;
};

static void hold(struct held *h, const struct maq_block *block)
{
    h->dense += block->dense_params;
    h->expert += block->expert_params;
    h->dense_narrow += block->dense_narrow;
    h->expert_narrow += block->expert_narrow;
}

bool maq_sync_downloads(const struct maq_plan *plan)
{
    return plan->offload_param != MAQ_OFFLOAD_NONE && plan->optimizer_offload > 0;
}

static uint32_t copy(struct maq_blueprint *bp, double bytes, enum maq_copy_source from)
{
    struct maq_op op = {.kind = MAQ_OP_HOST_COPY, .d = {(int64_t)bytes, from}};
    return bytes >= 1 ? maq_items_op(bp->items, &op) : 0;
}

/* Shards of a rank on their way between host and device. `sent`: bytes of dense and of experts' parameters that are gathered; shards that
 * are the optimizer's own travel as they are. */
static void fill_copies(struct maq_blueprint *bp, struct maq_bucket_sync *b, const struct held *h, const double sent[2])
{
    const struct maq_plan *p = &bp->job->plan;
    const double shards = bp->lower.groups[MAQ_GROUP_SHARD].size, edp = bp->job->edp;
    if (p->offload_param == MAQ_OFFLOAD_NONE)
        return;
    const double wider = maq_shard_bytes(bp->job) / bp->lower.store_bytes;
    b->upload = copy(bp, wider * (sent[0] / shards + sent[1] / edp),
                     p->offload_param == MAQ_OFFLOAD_NVME ? MAQ_COPY_NVME : MAQ_COPY_HOST);
    if (maq_sync_downloads(p) && p->lora_rank == 0)
        b->download = copy(bp, (h->dense / shards + h->expert / edp) * maq_dtype_bytes((enum maq_dtype)p->grad_dtype),
                           MAQ_COPY_HOST);
    b->upload_ns = b->upload ? bp->items->at[b->upload].dur_ns : 0;
    b->download_ns = b->download ? bp->items->at[b->download].dur_ns : 0;
}

/* A kernel of ZeRO++ beside its collectives: a pass over so many numbers. */
static uint32_t kernel(struct maq_blueprint *bp, double elements, int64_t read, int64_t written)
{
    const struct maq_op op =
        maq_op_make(MAQ_OP_ELEMENTWISE, bp->lower.store, 0, (int64_t)elements, read, written, 0, 0, 0);
    return elements >= 1 ? maq_items_op(bp->items, &op) : 0;
}

/*
 * ZeRO++ (Wang et al., arXiv 2306.10209; DeepSpeed 0.19.6, runtime/zero/partition_parameters.py, CUDAQuantizer and all_gather_coalesced();
 * runtime/comm/coalesced_collectives.py, all_to_all_quant_reduce()), of n parameters:
 *
 *   qwZ   a rank's part is quantized, gathered at 1 byte and a scale of 4 for each group of up to 8,000 numbers, and widened
 *   hpZ   what a group of ranks shares in second copies of the forward pass is gathered inside that group before the backward pass
 *   qgZ   gradients go through an all-to-all inside the node at half a byte, are added up, quantized again and go through one between
 *         nodes; a scale of 4 bytes for each row of a matrix. Where there is one node they are reduced as they are
 */
#define QUANTIZED_GROUP 8000.0

static void gather_second(struct maq_blueprint *bp, uint32_t out[MAQ_BUCKET_GATHERS], enum maq_group_kind group,
                          double params)
{
    const struct maq_plan *p = &bp->job->plan;
    const double ranks = bp->lower.groups[group].size, w = bp->lower.store_bytes;
    if (!p->quantized_weights) {
        out[0] = coll(bp, MAQ_COLL_ALL_GATHER, group, params * w);
        return;
    }
    out[0] = ranks > 1 ? kernel(bp, params / ranks, (int64_t)w, 1) : 0;
    out[1] = coll(bp, MAQ_COLL_ALL_GATHER, group, params * (1 + 4 / QUANTIZED_GROUP));
    out[2] = ranks > 1 ? kernel(bp, params, 1, (int64_t)w) : 0;
}

static uint32_t exchange(struct maq_blueprint *bp, uint32_t size, uint32_t stride, double bytes)
{
    struct maq_coll c = maq_coll_make(&bp->lower, MAQ_COLL_ALL_TO_ALL, MAQ_GROUP_SHARD, bytes);
    c.at = maq_cluster_place(&bp->job->cluster, 0, size, stride);
    c.sharers = stride > 1 ? (uint16_t)stride : 1; /* a node's devices exchange with those of the same number at once */
    return maq_items_coll(bp->items, &c, MAQ_STREAM_DP);
}

static bool reduces_narrow(const struct maq_blueprint *bp)
{
    const struct maq_job *job = bp->job;
    return job->plan.quantized_gradients && job->cluster.devices > (uint32_t)job->cluster.groups[0].devices_per_node;
}

static void reduce_narrow(struct maq_blueprint *bp, uint32_t out[MAQ_BUCKET_REDUCES], double params)
{
    const uint32_t node = (uint32_t)bp->job->cluster.groups[0].devices_per_node,
                   nodes = bp->job->cluster.devices / node;
    const int64_t w = (int64_t)bp->lower.store_bytes;
    const double each = 0.5 + 4.0 / (double)bp->job->model.hidden;
    if (params < 1)
        return;
    out[0] = kernel(bp, params / 2, 2 * w, 1); /* two numbers in a byte */
    out[1] = exchange(bp, node, 1, params * each);
    out[2] = kernel(bp, params / 2, 1, 0); /* what is written is less by the number of ranks */
    out[3] = exchange(bp, nodes, node, params / node * each);
    out[4] = kernel(bp, params / node / 2, 1, 2 * w);
}

static double sum_of(const struct maq_blueprint *bp, const uint32_t *items, uint32_t n)
{
    double ns = 0;
    for (uint32_t i = 0; i < n; i++)
        ns += items[i] ? bp->items->at[items[i]].dur_ns : 0;
    return ns;
}

static bool plus_plus(const struct maq_plan *p)
{
    return p->sharding == MAQ_SHARDING_PARAMS && (p->hpz > 1 || p->quantized_weights || p->quantized_gradients);
}

static void fill_plus_plus(struct maq_blueprint *bp, struct maq_bucket_sync *b, double params)
{
    const struct maq_plan *p = &bp->job->plan;
    memset(b->gather, 0, sizeof b->gather);
    gather_second(bp, b->gather, MAQ_GROUP_SHARD, params);
    memcpy(b->again, b->gather, sizeof b->again);
    if (p->hpz > 1) {
        memset(b->again, 0, sizeof b->again);
        gather_second(bp, b->again, MAQ_GROUP_SECOND, params);
    }
    if (reduces_narrow(bp)) {
        memset(b->reduce, 0, sizeof b->reduce);
        reduce_narrow(bp, b->reduce, params);
    }
}

/* What a bucket sends; `share`: of the stage's dense parameters. */
static void fill_items(struct maq_blueprint *bp, struct maq_bucket_sync *b, const struct held *h, double share)
{
    const struct maq_plan *p = &bp->job->plan;
    /* of adapters nothing is counted: their gradients are small */
    double dense = p->lora_rank > 0 ? 0 : h->dense, expert = p->lora_rank > 0 ? 0 : h->expert;
    if (maq_one_bit_exchanges(p)) /* signs are exchanged at the update, and no parameters are shared */
        return;
    double g = maq_dtype_bytes((enum maq_dtype)p->grad_reduce_dtype), w = bp->lower.store_bytes;
    double saved = p->fp8_param_gather && p->lora_rank == 0 ? w - 1 : 0;
    bool sharded = p->sharding != MAQ_SHARDING_NONE;
    enum maq_coll_kind reduce = sharded ? MAQ_COLL_REDUCE_SCATTER : MAQ_COLL_ALL_REDUCE;
    b->reduce[0] = coll(bp, reduce, sharded ? MAQ_GROUP_SHARD : MAQ_GROUP_DP_CP, dense * g);
    uint32_t shards = bp->lower.groups[MAQ_GROUP_SHARD].size;
    b->reduce[1] = sharded ? coll(bp, MAQ_COLL_ALL_REDUCE, MAQ_GROUP_REPLICA, dense * g / shards) : 0;
    b->reduce[2] = coll(bp, reduce, MAQ_GROUP_EDP, expert * g);
    if (sharded) {
        double sent[2] = {dense * w - h->dense_narrow * saved, expert * w - h->expert_narrow * saved};
        if (p->lora_rank > 0 && p->sharding == MAQ_SHARDING_PARAMS) { /* frozen parameters are shards, too */
            sent[0] = h->dense * w - h->dense_narrow * (w - maq_lower_base_bytes(p, w));
            sent[1] = h->expert * w;
        }
        b->gather[0] = gather(bp, sent[0], share);
        b->gather[1] = coll(bp, MAQ_COLL_ALL_GATHER, MAQ_GROUP_EDP, sent[1]);
        fill_copies(bp, b, h, sent);
    }
    memcpy(b->again, b->gather, sizeof b->again);
    if (plus_plus(p))
        fill_plus_plus(bp, b, h->dense);
    b->reduce_ns = sum_of(bp, b->reduce, MAQ_BUCKET_REDUCES);
    b->gather_ns = sum_of(bp, b->gather, MAQ_BUCKET_GATHERS);
    b->again_ns = sum_of(bp, b->again, MAQ_BUCKET_GATHERS);
}

/* DeepSpeed fills a flat buffer and reduces it when the next gradient has no room there (stage_1_and_2.py,
 * reduce_independent_p_g_buckets_and_remove_grads(); without ZeRO engine.py, MEMORY_OPT_ALLREDUCE_SIZE). */
static bool flat_buffer(const struct maq_plan *p)
{
    return p->reduce_bucket_size > 0 && p->sharding != MAQ_SHARDING_PARAMS;
}

struct maq_atom_sync maq_sync_of_pass(struct maq_blueprint *bp, const struct maq_block *block)
{
    struct maq_bucket_sync b = {0};
    if (bp->job->plan.bucket_layers > 0 || flat_buffer(&bp->job->plan))
        return (struct maq_atom_sync){0};
    struct held h = {0};
    hold(&h, block);
    fill_items(bp, &b, &h, 1);
    return (struct maq_atom_sync){.forward_gather_ns = bp->gather_every_pass ? b.gather_ns : 0,
                                  .backward_gather_ns = bp->gather_backward ? b.again_ns : 0,
                                  .reduce_ns = bp->sync_every_pass ? b.reduce_ns : 0};
}

static void copy_items(struct maq_bucket_sync *to, const struct maq_bucket_sync *from)
{
    uint16_t first = to->first, last = to->last;
    *to = *from;
    to->first = first;
    to->last = last;
}

/* Parameters per bucket; FSDP communicates entry by entry. */
double maq_sync_bucket_params(double ranks)
{
    double per_rank = BUCKET_PARAMS_PER_RANK * ranks;
    return per_rank > BUCKET_PARAMS ? per_rank : BUCKET_PARAMS;
}

static double bucket_size(const struct maq_blueprint *bp)
{
    if (flat_buffer(&bp->job->plan))
        return bp->job->plan.reduce_bucket_size;
    if (bp->sync_every_pass || bp->job->plan.sharding == MAQ_SHARDING_PARAMS)
        return 0;
    return maq_sync_bucket_params(bp->lower.groups[MAQ_GROUP_DP_CP].size);
}

static void sum_compute(const struct maq_blueprint *bp, const struct maq_program *program, struct maq_bucket_sync *b)
{
    for (uint32_t i = b->first; i <= b->last; i++) {
        const struct maq_entry *e = &program->entries[i];
        const struct maq_block *block = bp->blocks[e->block];
        b->forward_ns += block->forward[e->redo]->dur_ns;
        b->backward_ns += block->backward[e->redo]->dur_ns;
        b->weight_ns += block->weight ? block->weight->dur_ns : 0;
    }
}

static double params_of(const struct maq_blueprint *bp, const struct maq_entry *e)
{
    const struct maq_block *block = bp->blocks[e->block];
    return block->dense_params + block->expert_params;
}

enum maq_status maq_blueprint_sync(struct maq_blueprint *bp, struct maq_program *program)
{
    uint32_t n = program->n_entries, count = 0;
    program->buckets = MAQ_ARENA_NEW(bp->arena, struct maq_bucket_sync, n);
    if (!program->buckets)
        return MAQ_NO_MEMORY;
    struct held held = {0}, last = {-1, -1, -1, -1};
    double size = bucket_size(bp), all_dense = 0;
    int32_t by_layers = bp->job->plan.bucket_layers, layers = 0;
    for (uint32_t i = 0; i < n; i++)
        all_dense += bp->blocks[program->entries[i].block]->dense_params;
    for (uint32_t i = n; i-- > 0;) { /* buckets fill in backward order */
        const struct maq_block *block = bp->blocks[program->entries[i].block];
        if (held.dense == 0 && held.expert == 0 && layers == 0)
            program->buckets[count] = (struct maq_bucket_sync){.first = (uint16_t)i, .last = (uint16_t)i};
        hold(&held, block);
        layers++;
        program->buckets[count].first = (uint16_t)i;
        double room = flat_buffer(&bp->job->plan) && i > 0 ? size - params_of(bp, &program->entries[i - 1]) : size;
        bool full = bp->ddp || (by_layers > 0 ? layers >= by_layers : held.dense + held.expert > room);
        if (full || i == 0) {
            struct maq_bucket_sync *b = &program->buckets[count++];
            if (memcmp(&held, &last, sizeof held) == 0) /* equal layers: equal collectives */
                copy_items(b, b - 1);
            else if (!bp->ddp)
                fill_items(bp, b, &held, all_dense > 0 ? held.dense / all_dense : 1.0);
            last = held;
            held = (struct held){0};
            layers = 0;
        }
    }
    for (uint32_t i = 0; i < count / 2; i++) { /* forward order */
        struct maq_bucket_sync swap = program->buckets[i];
        program->buckets[i] = program->buckets[count - 1 - i];
        program->buckets[count - 1 - i] = swap;
    }
    program->n_buckets = count;
    if (bp->ddp)
        MAQ_TRY(maq_ddp_fill(bp, program));
    for (uint32_t i = 0; i < count; i++) {
        sum_compute(bp, program, &program->buckets[i]);
        program->reduce_ns += program->buckets[i].reduce_ns;
        program->gather_ns += program->buckets[i].gather_ns;
        program->again_ns += program->buckets[i].again_ns;
        program->upload_ns += program->buckets[i].upload_ns;
        program->download_ns += program->buckets[i].download_ns;
    }
    return MAQ_OK;
}

double maq_half_ns(const struct maq_bucket_sync *b, enum maq_half half)
{
    return half == MAQ_HALF_WEIGHT ? b->weight_ns : b->backward_ns;
}

static double later(double a, double b)
{
    return a > b ? a : b;
}

/*
 * A pass as a list of buckets in the order in which it meets them. The end of the compute of bucket i - 1 - prefetch
 * releases the gather of bucket i: that many gathered buckets are ahead.
 */
static double released(const struct maq_program *program, uint32_t i, int32_t prefetch, bool backward)
{
    int64_t j = (int64_t)i - 1 - prefetch;
    if (j < 0)
        return 0;
    return program->buckets[backward ? program->n_buckets - 1 - (uint32_t)j : (uint32_t)j].done_ns;
}

/* When the streams of a pass are free: of collectives, and of copies between host and device. */
struct streams {
    double comm, copy;
    bool copies; /* else those take no time */
};

/* A bucket's parameters are there: uploaded and gathered, from the time on at which that is released. */
static double fetch(struct streams *s, const struct maq_bucket_sync *b, double from, bool backward)
{
    double ready = from, gather_ns = backward ? b->again_ns : b->gather_ns;
    if (b->upload_ns > 0 && s->copies)
        ready = s->copy = later(s->copy, from) + b->upload_ns;
    if (gather_ns > 0)
        ready = s->comm = later(s->comm, ready) + gather_ns;
    return ready;
}

/* A bucket's gradients are reduced, and where they go to the host are there. */
static void reduce(struct streams *s, const struct maq_bucket_sync *b)
{
    double reduced = b->done_ns;
    if (b->reduce_ns > 0)
        reduced = s->comm = later(s->comm, b->done_ns) + b->reduce_ns;
    if (b->download_ns > 0 && s->copies)
        s->copy = later(s->copy, reduced) + b->download_ns;
}

static bool comes(const struct maq_bucket_sync *b)
{
    return b->gather_ns > 0 || b->upload_ns > 0; /* else a rank holds all of it */
}

static double forward_ns(const struct maq_blueprint *bp, struct maq_program *program, bool copies)
{
    struct streams s = {.copies = copies};
    double compute = 0;
    for (uint32_t i = 0; i < program->n_buckets; i++) {
        struct maq_bucket_sync *b = &program->buckets[i];
        if (bp->gather_every_pass && comes(b))
            compute = later(compute, fetch(&s, b, released(program, i, bp->job->plan.fsdp_prefetch, false), false));
        b->done_ns = compute += b->forward_ns;
    }
    return compute;
}

/* Backward: gather i+1 is issued before the reduction of i, both on one stream in that order. */
static double backward_ns(const struct maq_blueprint *bp, struct maq_program *program, enum maq_half half,
                          bool pass_reduces, bool copies)
{
    struct streams s = {.copies = copies};
    double compute = 0;
    uint32_t n = program->n_buckets, reduced = 0;
    if (bp->ddp && maq_half_reduces(half, pass_reduces))
        return maq_ddp_backward_ns(bp, program, half);
    int32_t prefetch = bp->job->plan.fsdp_prefetch;
    bool gathers = maq_half_gathers(bp, half), reduces = maq_half_reduces(half, pass_reduces);
    struct maq_bucket_sync *last = program->buckets + n; /* bucket i of the pass is last[-1 - i] */
    for (uint32_t i = 0; i < n; i++) {
        struct maq_bucket_sync *b = last - 1 - i;
        /* reductions of buckets whose compute ended before this gather was released go first on the stream */
        for (; reduces && (int64_t)reduced < (int64_t)i - prefetch; reduced++)
            reduce(&s, &last[-1 - (int64_t)reduced]);
        if (gathers && comes(b))
            compute = later(compute, fetch(&s, b, released(program, i, prefetch, true), true));
        b->done_ns = compute += maq_half_ns(b, half);
        if (reduces && maq_reduces_in_line(bp)) {
            reduce(&s, &last[-1 - (int64_t)reduced++]);
            compute = later(compute, s.comm);
        }
    }
    for (; reduces && reduced < n; reduced++)
        reduce(&s, &last[-1 - (int64_t)reduced]);
    return later(compute, later(s.comm, s.copy));
}

double maq_sync_forward_ns(const struct maq_blueprint *bp, struct maq_program *program)
{
    return forward_ns(bp, program, true);
}

double maq_sync_backward_ns(const struct maq_blueprint *bp, struct maq_program *program, enum maq_half half,
                            bool pass_reduces)
{
    return backward_ns(bp, program, half, pass_reduces, true);
}

double maq_sync_copies_ns(const struct maq_blueprint *bp, struct maq_program *program, bool pass_reduces)
{
    const bool split = bp->schedule->split_backward;
    const enum maq_half first = split ? MAQ_HALF_INPUT : MAQ_HALF_WHOLE;
    double with[2] = {0, 0};
    if (!(program->upload_ns > 0))
        return 0;
    for (int copies = 0; copies < 2; copies++)
        with[copies] = forward_ns(bp, program, copies) + backward_ns(bp, program, first, pass_reduces, copies) +
                       (split ? backward_ns(bp, program, MAQ_HALF_WEIGHT, pass_reduces, copies) : 0);
    return with[1] - with[0];
}

double maq_sync_late_ns(const struct maq_blueprint *bp, const struct maq_program *program)
{
    if (!program->last)
        return 0;
    return bp->schedule->split_backward ? program->last->weight_ns - program->weight_ns
                                        : program->last->backward_ns - program->backward_ns;
}

double maq_sync_ready_ns(const struct maq_program *program, double from, double *until)
{
    double stream = from + program->gather_ns, ready = 0, rest = 0;
    *until = stream;
    for (uint32_t i = program->n_buckets;
         i-- > 0;) { /* from the end: what is left to compute after bucket i has arrived */
        rest += program->buckets[i].forward_ns;
        ready = later(ready, stream + rest);
        stream -= program->buckets[i].gather_ns;
    }
    return ready;
}

double maq_sync_reduced_ns(const struct maq_blueprint *bp, const struct maq_program *program, double start,
                           double free_at)
{
    double stream = free_at, compute = start;
    enum maq_half half = bp->schedule->split_backward ? MAQ_HALF_WEIGHT : MAQ_HALF_WHOLE;
    for (uint32_t i = program->n_buckets; i-- > 0;) {
        const struct maq_bucket_sync *b = &program->buckets[i];
        const double from = compute;
        compute += maq_half_ns(b, half);
        for (uint32_t k = 0; k < b->n_ddp; k++)
            stream = later(stream, maq_ddp_ready_ns(&b->ddp[k], from, compute)) + b->ddp[k].reduce_ns;
        if (b->n_ddp == 0 && b->reduce_ns > 0)
            stream = later(stream, compute) + b->reduce_ns;
    }
    return stream;
}

double maq_sync_last_ns(const struct maq_program *program)
{
    for (uint32_t i = 0; i < program->n_buckets; i++) {
        const struct maq_bucket_sync *b = &program->buckets[i];
        if (b->n_ddp > 0)
            return b->ddp[b->n_ddp - 1].reduce_ns;
        if (!b->ddp)
            return b->reduce_ns;
    }
    return 0;
}
