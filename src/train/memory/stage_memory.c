/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_memory.c - memory of each pipeline stage at its peak, by category.
 *
 * Model states of one rank, P parameters held, bytes w (weight), g (gradient), o (optimizer), shared by N
 * ranks (Rajbhandari et al., "ZeRO", arXiv 1910.02054):
 *
 *   no_shard             P (w + g + o)
 *   optim                P (w + g) + P o / N
 *   optim_grads          P w + P (g + o) / N
 *   optim_grads_params   P (w' + g + o') / N, where the 4-byte master weight is the parameter itself (w' + o' = 4 + moments), or under
 *                        DeepSpeed a shard of its own (low_precision_shards: w + o). Parameters on the host: no w'; no g either, where the
 *                        optimizer is there
 *
 * Mixed precision: w = 2, g = 4, o = 12 (master, two moments); FP32: w = 4, g = 4, o = 8. Momentum has one moment, and so have the
 * matrices that Muon updates (train/step/muon.h).
 *
 * Activations: the schedule says how many microbatches of each chunk a stage holds at once. On top comes the working set of one
 * pass.
 *
 * With the vocabulary spread over the pipeline, the output layer of a microbatch runs on all stages at once, when the
 * last one is through with it. So a stage holds more microbatches of its layers: one, or two when the two gradients
 * of the output layer are passes of their own, or half of the stages in the interlaced schedule; and of the output
 * layer only the one that is being worked on, or two (Yeung et al., "Balancing Pipeline Parallelism with Vocabulary
 * Parallelism", arXiv 2411.05288, and its code).
 *
 * The optimizer: gradients of 16 bits become 4-byte ones for the parameters that the rank updates, 4 P / N; DeepSpeed flattens the
 * 16-bit ones first, 2 P / N more. Adam over lists of tensors (PyTorch's foreach) has the roots of all second moments at once, in
 * their type: torch/optim/adam.py, _multi_tensor_adam(). Activations are gone by then.
 *
 * PyTorch's caching allocator holds more than it hands out: allocator_replay.c.
 */
#include "train/memory/stage_memory.h"

#include <math.h>

#include "base/units.h"
#include "lower/local.h"
#include "train/memory/cublas_workspaces.h"
#include "train/memory/cuda_graphs.h"
#include "train/memory/offloaded_states.h"
#include "train/memory/paged_optimizer.h"
#include "train/memory/pipeline_transfers.h"
#include "train/memory/torch_layers.h"
#include "train/step/dp_comm.h"
#include "train/step/galore.h"
#include "train/step/muon.h"
#include "train/step/one_bit.h"

/* A CUDA context. With kernels loaded when they are first used, nvidia-smi of an idle training process
 * shows 0.5 to 0.8 GiB; with all kernels of PyTorch, cuBLAS and cuDNN loaded at the start 1,573 MiB (BigScience's chronicle of
 * the preparations for BLOOM, on an A100). */
#define CONTEXT_LAZY_BYTES (0.6 * MAQ_GIB)
#define CONTEXT_EAGER_BYTES (1573.0 * 1024 * 1024)

uint32_t maq_stage_programs(const struct maq_program **programs, const struct maq_blueprint *bp, uint32_t stage)
{
    uint16_t at[MAQ_MAX_STAGES];
    uint32_t n = maq_schedule_positions(bp->schedule, stage, at);
    for (uint32_t i = 0; i < n; i++)
        programs[i] = bp->programs[at[i]];
    return n;
}

struct maq_owned_params maq_owned_by(const struct maq_program *const *programs, uint32_t n)
{
    struct maq_owned_params sum = {0};
    for (uint32_t i = 0; i < n; i++) {
        sum.dense += programs[i]->dense_params;
        sum.expert += programs[i]->expert_params;
        sum.adapters += programs[i]->adapter_params;
        sum.dense_matrices += programs[i]->dense_matrices;
        sum.expert_matrices += programs[i]->expert_matrices;
        sum.dense_narrow += programs[i]->dense_narrow;
        sum.expert_narrow += programs[i]->expert_narrow;
        sum.dense_paged += programs[i]->dense_paged;
        sum.expert_paged += programs[i]->expert_paged;
        sum.adapter_paged += programs[i]->adapter_paged;
        sum.low_rank.matrices += programs[i]->low_rank.matrices;
        sum.low_rank.moments += programs[i]->low_rank.moments;
        sum.low_rank.projections += programs[i]->low_rank.projections;
        sum.largest = fmax(sum.largest, programs[i]->largest);
    }
    return sum;
}

/* Several layers per checkpoint: one input is kept for the group, and the group is recomputed as one. */
int32_t maq_layers_per_checkpoint(const struct maq_plan *p)
{
    bool uniform = p->recompute == MAQ_RECOMPUTE_FULL && p->recompute_method == MAQ_RECOMPUTE_UNIFORM;
    return uniform && p->recompute_num_layers > 1 ? p->recompute_num_layers : 1;
}

struct states {
    double weights, gradients, optimizer;
};

/*
 * DistributedDataParallel copies gradients into buckets for the reduction (torch/csrc/distributed/c10d/reducer.cpp, initialize_buckets()),
 * which live as long as it does.
 */
static double bucket_bytes(const struct maq_job *job, const struct maq_plan *p, double trained)
{
    bool copies = job->framework.gradient_buckets == MAQ_BUCKETS_APART && p->sharding == MAQ_SHARDING_NONE &&
                  job->groups[MAQ_GROUP_SHARD].size > 1;
    return copies ? trained * maq_dtype_bytes((enum maq_dtype)p->grad_dtype) : 0;
}

/* Moments of every parameter; with Muon what is no matrix has a second one (second_moment()). */
double maq_update_moments(const struct maq_plan *p)
{
    switch ((enum maq_update)p->update) {
    case MAQ_UPDATE_ADAM:
    case MAQ_UPDATE_LAMB:
    case MAQ_UPDATE_ONEBIT_ADAM:
    case MAQ_UPDATE_ONEBIT_LAMB:
    case MAQ_UPDATE_ZERO_ONE_ADAM:
        return 2;
    case MAQ_UPDATE_SGD:
    case MAQ_UPDATE_MUON:
    case MAQ_UPDATE_LION:
        return 1;
    case MAQ_UPDATE_ADAFACTOR: /* its sums of rows and columns are (rows + columns) / (rows x columns) of a moment: nothing */
        break;
    }
    return 0;
}

/*
 * Moments of few bits have a scale of 4 bytes for each block: of 256 numbers in 8 bits (bitsandbytes 0.50, optim/optimizer.py, Optimizer2State;
 * torchao/optim/README.md), of 128 in 4 (there).
 */
double maq_moment_bytes(const struct maq_plan *p)
{
    double scales = p->optimizer_dtype == MAQ_INT8 ? 4.0 / 256 : p->optimizer_dtype == MAQ_FP4 ? 4.0 / 128 : 0;
    return maq_dtype_bytes((enum maq_dtype)p->optimizer_dtype) + scales;
}

/* Of these, that are no matrices. */
static double second_moment(const struct maq_plan *p, double params, double shards)
{
    if (p->update != MAQ_UPDATE_MUON)
        return 0;
    return params * maq_dtype_bytes((enum maq_dtype)p->optimizer_dtype) /
           (p->sharding == MAQ_SHARDING_NONE ? 1 : shards);
}

/*
 * Transformer Engine keeps a quantized copy of a weight in addition to the 16-bit one, or instead of it where parameters are
 * gathered in 8 bits, for all microbatches. Scales of blocks, and products that want both operands contiguous along what they add
 * up (until Blackwell), need a second one along the other dimension. torchao's scales of rows are made anew each time.
 */
static double copy_bytes(const struct maq_job *job, const struct maq_plan *p)
{
    bool of_tensor = p->precision == MAQ_PRECISION_FP8_DELAYED || p->precision == MAQ_PRECISION_FP8_CURRENT,
         both = false;
    for (uint32_t g = 0; g < job->cluster.n_groups; g++)
        both |= job->cluster.groups[g].device.arch < MAQ_ARCH_BLACKWELL;
    if (p->precision == MAQ_PRECISION_FP8_ROWWISE)
        return 0;
    return maq_lower_narrow_bytes(p) * (both || !of_tensor ? 2 : 1);
}

/*
 * What GaLore changes of the states (train/step/galore.h): moments of its matrices are those of what is projected, and there are the
 * projections.
 */
static double low_rank_bytes(const struct maq_plan *p, const struct maq_low_rank *low)
{
    if (p->galore_rank == 0)
        return 0;
    return maq_update_moments(p) * maq_moment_bytes(p) * (low->moments - low->matrices) +
           low->projections * maq_dtype_bytes((enum maq_dtype)p->grad_dtype);
}

/* Where a parameter is updated as soon as its gradient is there: the gradient that is there. */
static double largest_gradient(const struct maq_plan *p, double largest)
{
    return p->galore_layerwise ? largest * maq_dtype_bytes((enum maq_dtype)p->grad_dtype) : 0;
}

double maq_master_bytes(const struct maq_job *job)
{
    return job->plan.pure_low_precision || job->store_dtype == MAQ_FP32 || maq_autocasts(job) ? 0 : 4;
}

static struct states model_states(const struct maq_job *job, const struct maq_plan *p, double held, double narrow,
                                  double shards)
{
    bool wide = maq_autocasts(job); /* the weights are the master ones */
    double w = wide ? 4 : maq_dtype_bytes((enum maq_dtype)job->store_dtype),
           g = maq_dtype_bytes((enum maq_dtype)p->grad_dtype), m = maq_moment_bytes(p);
    double master = maq_master_bytes(job);
    double moments = maq_update_moments(p), o = (master + moments * m) * (1 - p->optimizer_offload);
    o += maq_one_bit_bytes(p, job->groups[MAQ_GROUP_DP_CP].size);
    g = p->galore_layerwise ? 0 : g; /* one at a time: largest_gradient() */
    double weights = held * w + narrow * (copy_bytes(job, p) - (p->fp8_param_gather ? w : 0)),
           gathered = held * w + narrow * (p->fp8_param_gather ? 1 - w : 0);
    const bool away = p->offload_param != MAQ_OFFLOAD_NONE;
    switch ((enum maq_sharding)p->sharding) {
    case MAQ_SHARDING_NONE:
        return (struct states){weights, held * g, held * o};
    case MAQ_SHARDING_OPTIM:
        return (struct states){weights, held * g, held * o / shards};
    case MAQ_SHARDING_GRADS:
        return (struct states){weights, held * g / shards, held * o / shards};
    case MAQ_SHARDING_PARAMS:
        break;
    }
    double kept =
        (p->gather_once || !p->reshard_after_forward) && (shards > 1 || away) ? gathered : 0; /* at the peak */
    /* whole gradients add up in the type of the wire (torch/distributed/fsdp/_fully_shard: to_accumulated_grad_if_needed) */
    bool whole = (p->gather_once || p->reduce_once) && job->microbatches > 1 && shards > 1;
    double wire = maq_dtype_bytes((enum maq_dtype)p->grad_reduce_dtype);
    /* a shard's gradient is cast to the type of the parameter (_fully_shard/_fsdp_collectives.py, foreach_reduce()) */
    double shard = p->pure_low_precision && job->framework.frees_gradients ? w : g;
    bool apart = job->framework.low_precision_shards && master > 0; /* a shard in 16 bits beside the optimizer's */
    double lies = away ? 0 : apart || master <= 0 ? w : master;
    double counted = apart ? o : moments * m * (1 - p->optimizer_offload);
    if (p->hpz > 1) /* in the type of the model, of the last forward pass (DeepSpeed's _partition_param_sec()) */
        kept += held * maq_dtype_bytes((enum maq_dtype)job->store_dtype) / p->hpz;
    return (struct states){held * lies / shards + kept,
                           whole                   ? held * wire
                           : maq_sync_downloads(p) ? 0
                                                   : held * shard / shards,
                           held * counted / shards};
}

double maq_shard_bytes(const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    const bool own = !p->pure_low_precision && p->lora_rank == 0 && !job->framework.low_precision_shards;
    return own ? 4 : maq_dtype_bytes((enum maq_dtype)job->store_dtype);
}

/* Frozen weights need neither gradient nor optimizer state; some of them, `narrow`, are quantized. */
static struct states lora_states(const struct maq_blueprint *bp, double held, double narrow, double adapters,
                                 double shards)
{
    struct states s = model_states(bp->job, &bp->job->plan, adapters, 0, shards);
    const double w = bp->lower.store_bytes, bytes = held * w - narrow * (w - maq_lower_base_bytes(&bp->job->plan, w));
    if (bp->job->plan.offload_param == MAQ_OFFLOAD_NONE)
        s.weights += bp->job->plan.sharding == MAQ_SHARDING_PARAMS ? bytes / shards : bytes;
    return s;
}

/*
 * Whether gradients are allocated only from the backward pass to the update; with several microbatches they stay from the first
 * on.
 */
static bool gradients_come(const struct maq_job *job, const struct maq_plan *p)
{
    bool zero = p->sharding == MAQ_SHARDING_OPTIM || p->sharding == MAQ_SHARDING_GRADS;
    bool tensors = p->sharding == MAQ_SHARDING_PARAMS || (zero && job->framework.reduce_bucket_held) ||
                   (p->sharding == MAQ_SHARDING_NONE && job->framework.gradient_buckets == MAQ_BUCKETS_APART);
    return job->framework.frees_gradients && tensors && p->lora_rank == 0 && job->microbatches == 1 &&
           !p->galore_layerwise;
}

static double state_bytes(const struct maq_job *job, const struct maq_plan *plan, double params, double narrow,
                          double shards)
{
    struct states s = model_states(job, plan, params, narrow, shards);
    return s.weights + s.optimizer + (gradients_come(job, plan) ? 0 : s.gradients) + bucket_bytes(job, plan, params);
}

double maq_state_bytes(const struct maq_job *job, const struct maq_plan *plan, double params, double narrow,
                       double shards)
{
    struct maq_plan least = *plan;
    if (plan->paged_optimizer || plan->galore_rank > 0) /* of how many moments there are, parameters alone do not say */
        least.update = MAQ_UPDATE_ADAFACTOR;
    return state_bytes(job, &least, params, narrow, shards);
}

/*
 * Bytes of gradients that the backward pass allocates; `reduced`: those that reductions write, which have a stream and a pool of
 * their own.
 */
static double coming_gradients(const struct maq_job *job, double dense, double expert, bool reduced)
{
    double shards = job->groups[MAQ_GROUP_SHARD].size, sum = 0;
    if (!gradients_come(job, &job->plan) || (reduced && job->plan.sharding != MAQ_SHARDING_PARAMS))
        return 0;
    if (!reduced || shards > 1)
        sum += model_states(job, &job->plan, dense, 0, shards).gradients;
    if (!reduced || job->edp > 1)
        sum += model_states(job, &job->plan, expert, 0, job->edp).gradients;
    return sum;
}

/* ---- the costliest moment of a pass ---- */

/* Working memory of a rank while an entry runs, beyond what entries keep: before its activations are freed, and after that. */
struct moments {
    double working, ending;
    double ahead; /* of both: gathered for the entries that follow on the way back */
};

static double held_params(const struct maq_block *b)
{
    return b->dense_params + b->expert_params;
}

static double trained_params(const struct maq_plan *p, const struct maq_block *b)
{
    return p->lora_rank > 0 ? b->adapter_params : held_params(b);
}

static const struct maq_block *block_at(const struct maq_blueprint *bp, const struct maq_program *pr, uint32_t entry)
{
    return bp->blocks[pr->entries[entry].block];
}

static double gathered_ahead(const struct maq_blueprint *bp, const struct maq_program *pr, uint32_t entry)
{
    uint32_t ahead = (uint32_t)bp->job->plan.fsdp_prefetch, first = entry > ahead ? entry - ahead : 0;
    double params = 0;
    for (uint32_t i = first; i < entry; i++)
        params += held_params(block_at(bp, pr, i));
    return params * bp->lower.store_bytes;
}

/* Embedding, last norm and output. */
static bool at_an_end(const struct maq_entry *e)
{
    return e->layer == UINT16_MAX;
}

/* FSDP's unit of all that is in no layer: parameters that the other entries of it have, and the gradients that wait in it. */
static double root_bytes(const struct maq_blueprint *bp, const struct maq_program *pr, uint32_t entry, bool gradients)
{
    double params = 0;
    if (!bp->job->framework.root_unit)
        return 0;
    for (uint32_t i = gradients ? entry + 1 : 0; i < pr->n_entries; i++)
        if (i != entry && at_an_end(&pr->entries[i]))
            params +=
                gradients ? trained_params(&bp->job->plan, block_at(bp, pr, i)) : held_params(block_at(bp, pr, i));
    return params * bp->lower.store_bytes;
}

/* Parameters gathered, unless they stay and are states; whole gradients of the entry, and those of the one behind it on their way
 * (torch/distributed/fsdp/_fully_shard: the input of a reduction lives until the next one begins). */
static void add_fsdp(struct moments *m, const struct maq_blueprint *bp, const struct maq_program *pr, uint32_t entry)
{
    const struct maq_plan *p = &bp->job->plan;
    const struct maq_block *b = block_at(bp, pr, entry);
    double e = bp->lower.store_bytes, wire = maq_dtype_bytes((enum maq_dtype)p->grad_reduce_dtype),
           own = trained_params(p, b), behind = 0;
    bool waits = bp->job->framework.root_unit && entry + 1 < pr->n_entries && at_an_end(&pr->entries[entry + 1]);
    if (entry + 1 < pr->n_entries && !waits)
        behind = trained_params(p, block_at(bp, pr, entry + 1));
    bool loss = b->layer->modules[b->layer->n_modules - 1].kind == MAQ_MODULE_LOSS; /* it comes before all gradients */
    m->ahead = bp->gather_backward ? gathered_ahead(bp, pr, entry) : 0;
    double gathered = bp->gather_backward ? m->ahead + held_params(b) * e + root_bytes(bp, pr, entry, false) : 0,
           root = root_bytes(bp, pr, entry, true);
    bool reduces = !bp->job->framework.root_unit || !at_an_end(&pr->entries[entry]) || entry == 0;
    m->working += gathered + (loss ? 0 : own * e + behind * wire + root);
    m->ending += gathered + root + own * (reduces ? e + wire : e) + (entry == 0 && root > 0 ? root / e * wire : 0);
}

/* DeepSpeed's flat buffer for gradients comes with the first of them (stage_1_and_2.py, setup_buckets()) and stays to the end of the
 * backward pass. */
static void add_bucket(struct moments *m, const struct maq_blueprint *bp, const struct maq_block *b)
{
    const struct maq_plan *p = &bp->job->plan;
    bool zero = p->sharding == MAQ_SHARDING_OPTIM || p->sharding == MAQ_SHARDING_GRADS;
    if (!bp->job->framework.reduce_bucket_held || !zero)
        return;
    double bucket = p->reduce_bucket_size * bp->lower.store_bytes;
    bool loss = b->layer->modules[b->layer->n_modules - 1].kind == MAQ_MODULE_LOSS; /* it comes before all gradients */
    bool stays = p->sharding == MAQ_SHARDING_OPTIM && bp->job->microbatches > 1; /* gradients of the step are in it */
    m->working += loss && !stays ? 0 : bucket;
    m->ending += bucket + held_params(b) * bp->lower.store_bytes;
}

/*
 * Whole gradients that an entry leaves for the rest of the backward pass; shards are few, and count where it is over. A table that is
 * the output's weight as well has a gradient from there, which waits for that of the lookup; the sum is a third one (autograd's
 * input buffer, torch/csrc/autograd/input_buffer.cpp).
 */
static double whole_gradients(struct moments *m, const struct maq_blueprint *bp, const struct maq_program *pr,
                              uint32_t entry)
{
    const struct maq_block *b = block_at(bp, pr, entry), *first = block_at(bp, pr, 0);
    if (bp->job->plan.sharding > MAQ_SHARDING_OPTIM)
        return 0;
    double own = coming_gradients(bp->job, b->dense_params, b->expert_params, false);
    bool tied = bp->job->model.tied_embeddings && at_an_end(&pr->entries[0]) && pr->n_entries > 1;
    if (tied && entry == 0)
        m->working += 2 * own;
    if (tied && entry + 1 == pr->n_entries)
        own += coming_gradients(bp->job, first->dense_params, 0, false);
    return own;
}

/*
 * While an entry runs, the activations of the entries behind it are not allocated yet or freed already, unless they wait for a
 * pass of weight gradients.
 */
void maq_program_transient(struct maq_program *pr, const struct maq_blueprint *bp)
{
    const struct maq_plan *p = &bp->job->plan;
    double most = 0, ahead = 0, pool = 0, before = 0;
    const double root = root_bytes(bp, pr, pr->n_entries, false);
    for (uint32_t i = 0; i < pr->n_entries; i++) {
        const struct maq_entry *e = &pr->entries[i];
        const struct maq_block *b = block_at(bp, pr, i);
        int32_t group = e->redo ? maq_layers_per_checkpoint(p) : 1;
        double act = b->weight || p->vocab_parallel_pipeline ? 0 : b->act_bytes[e->redo] / group,
               working = b->backward_transient[e->redo] + (group - 1) * b->act_bytes[0];
        struct moments m = {.working = fmax(working, b->forward_transient)};
        if (p->sharding == MAQ_SHARDING_PARAMS)
            add_fsdp(&m, bp, pr, i);
        add_bucket(&m, bp, b);
        double grads = whole_gradients(&m, bp, pr, i);
        double here = fmax(m.working, m.ending - act), later = most - act + grads;
        ahead = here > later ? m.ahead : ahead;
        most = fmax(later, here);
        double unit = root > 0 && at_an_end(e) ? 0 : held_params(b);
        pool = fmax(pool, before + unit);
        before = unit;
    }
    pr->transient_bytes = most;
    pr->gather_bytes = bp->gather_backward ? fmax(root + pool * bp->lower.store_bytes, ahead) : 0;
    pr->ahead_bytes = ahead;
}

double maq_step_update_bytes(const struct maq_blueprint *bp)
{
    const struct maq_plan *p = &bp->job->plan;
    bool copied =
        maq_dtype_bytes((enum maq_dtype)p->grad_dtype) < 4 && !p->pure_low_precision && bp->lower.store != MAQ_FP32;
    bool lists = bp->job->framework.optimizer == MAQ_OPTIMIZER_FOREACH && p->galore_rank == 0 &&
                 p->update < MAQ_UPDATE_LAMB && !p->paged_optimizer;
    if (maq_one_bit_exchanges(p))
        return (copied ? 4 : 0) + MAQ_ONE_BIT_WORKING;
    double root = lists ? maq_dtype_bytes((enum maq_dtype)p->optimizer_dtype) : 0;
    return ((copied ? 4 : 0) + root) * (1 - p->optimizer_offload);
}

/* Parameters that one rank updates. */
static double updated_params(const struct maq_blueprint *bp, double dense, double expert, double adapters)
{
    const struct maq_job *job = bp->job;
    double mine = job->plan.lora_rank > 0 ? adapters : dense;
    if (job->plan.lora_rank > 0)
        expert = 0;
    bool shared = job->plan.sharding != MAQ_SHARDING_NONE;
    return shared ? mine / job->groups[MAQ_GROUP_SHARD].size + expert / job->edp : mine + expert;
}

static void add_states(struct maq_stage_result *st, struct states s)
{
    st->bytes[MAQ_MEM_WEIGHTS] += s.weights;
    st->bytes[MAQ_MEM_GRADIENTS] += s.gradients;
    st->bytes[MAQ_MEM_OPTIMIZER] += s.optimizer;
}

/* Activations of embedding and output in a program. */
static double ends_bytes(const struct maq_blueprint *bp, const struct maq_program *pr)
{
    double sum = 0;
    for (uint32_t i = 0; i < pr->n_entries; i++)
        if (pr->entries[i].layer == UINT16_MAX)
            sum += bp->blocks[pr->entries[i].block]->act_bytes[pr->entries[i].redo];
    return sum;
}

/* What the vocabulary's part of the schedule changes for a stage that holds `live` microbatches of a program. */
static double spread_vocabulary(const struct maq_blueprint *bp, const struct maq_program *pr, double live)
{
    const struct maq_plan *p = &bp->job->plan;
    if (!p->vocab_parallel_pipeline || live <= 0)
        return 0;
    double barriers = p->disable_backward_fusion ? 2 : 1;
    double waiting = p->use_interlaced_schedule ? p->pp / 2.0 : barriers;
    double more = fmin(waiting, bp->schedule->microbatches - live), ends = ends_bytes(bp, pr);
    return fmax(more, 0) * (pr->act_bytes - ends) - fmax(live - barriers, 0) * ends;
}

/* The largest sum of live activations over the combinations that the schedule reaches. */
static double peak_activations(const struct maq_blueprint *bp, uint32_t stage,
                               const struct maq_program *const *programs, uint32_t n, uint32_t *microbatches)
{
    double best = 0, act[MAQ_MAX_STAGES];
    bool spread = bp->job->plan.vocab_parallel_pipeline;
    for (uint32_t c = 0; c < n; c++)
        act[c] = programs[c]->act_bytes;
    for (uint32_t i = bp->schedule->inflight_first[stage]; i < bp->schedule->inflight_first[stage + 1]; i++) {
        const struct maq_inflight *live = &bp->schedule->inflight[i];
        double sum = 0;
        for (uint32_t c = 0; c < n; c++)
            sum += live->chunk[c] * act[c];
        for (uint32_t c = 0; c < n && spread; c++)
            sum += spread_vocabulary(bp, programs[c], live->chunk[c]);
        if (sum >= best) {
            best = sum;
            *microbatches = live->total;
        }
    }
    return best;
}

static double context_bytes(const struct maq_job *job)
{
    return job->plan.cuda_module_loading == MAQ_MODULES_EAGER ? CONTEXT_EAGER_BYTES : CONTEXT_LAZY_BYTES;
}

double maq_fixed_bytes(const struct maq_job *job)
{
    return context_bytes(job) + maq_rank_workspaces_bytes(job) + maq_communicator_bytes(job);
}

/* Working memory of the optimizer on one matrix. */
static double matrix_bytes(const struct maq_blueprint *bp, const struct maq_program *const *programs, uint32_t n)
{
    const struct maq_plan *p = &bp->job->plan;
    return p->update == MAQ_UPDATE_MUON ? maq_muon_working_bytes(bp, programs, n)
           : p->galore_rank > 0         ? maq_galore_working_bytes(bp, programs, n)
                                        : 0;
}

void maq_program_memory(struct maq_program_bytes *out, const struct maq_blueprint *bp, const struct maq_program *pr)
{
    const struct maq_job *job = bp->job;
    double shards = job->groups[MAQ_GROUP_SHARD].size;
    double each = maq_step_update_bytes(bp) + (job->plan.reduce_bucket_size > 0 ? bp->lower.store_bytes : 0);
    const struct maq_owned_params held = maq_owned_by(&pr, 1);
    out->states = state_bytes(job, &job->plan, pr->dense_params, pr->dense_narrow, shards) +
                  state_bytes(job, &job->plan, pr->expert_params, pr->expert_narrow, job->edp) -
                  maq_managed_bytes(job, &held);
    out->states += second_moment(&job->plan, pr->dense_params - pr->dense_matrices, shards) +
                   second_moment(&job->plan, pr->expert_params - pr->expert_matrices, job->edp);
    out->states += maq_program_graph_bytes(bp, pr);
    out->transfers = maq_program_transfer_bytes(bp, pr);
    out->border = maq_border_bytes(bp);
    out->working = pr->transient_bytes + out->transfers;
    out->update = updated_params(bp, pr->dense_params, pr->expert_params, pr->adapter_params) * each +
                  coming_gradients(job, pr->dense_params, pr->expert_params, false);
    out->states += low_rank_bytes(&job->plan, &pr->low_rank) + largest_gradient(&job->plan, pr->largest);
    out->matrix = matrix_bytes(bp, &pr, 1);
}

void maq_stage_memory(struct maq_stage_result *st, const struct maq_blueprint *bp, uint32_t stage)
{
    *st = (struct maq_stage_result){0};
    const struct maq_job *job = bp->job;
    const struct maq_program *programs[MAQ_MAX_STAGES];
    const uint32_t n = maq_stage_programs(programs, bp, stage);
    double shards = job->groups[MAQ_GROUP_SHARD].size, transient = 0;
    for (uint32_t c = 0; c < n; c++)
        transient = fmax(transient, programs[c]->transient_bytes);
    transient += maq_transfer_bytes(bp, stage);
    const struct maq_owned_params held = maq_owned_by(programs, n);
    const double dense = held.dense, expert = held.expert, adapters = held.adapters;
    bool lora = job->plan.lora_rank > 0;
    st->params = dense + expert;
    add_states(st, lora ? lora_states(bp, dense, held.dense_narrow, adapters, shards)
                        : model_states(job, &job->plan, dense, held.dense_narrow, shards));
    add_states(st, lora ? lora_states(bp, expert, held.expert_narrow, 0, job->edp)
                        : model_states(job, &job->plan, expert, held.expert_narrow, job->edp));
    maq_offloaded_states(st, bp, &held);
    st->bytes[MAQ_MEM_OPTIMIZER] += second_moment(&job->plan, dense - held.dense_matrices, shards) +
                                    second_moment(&job->plan, expert - held.expert_matrices, job->edp) +
                                    low_rank_bytes(&job->plan, &held.low_rank);
    st->bytes[MAQ_MEM_GRADIENTS] += largest_gradient(&job->plan, held.largest);
    st->managed_bytes = maq_managed_bytes(job, &held);
    st->bytes[MAQ_MEM_OPTIMIZER] -= st->managed_bytes; /* until it is known where they are */
    st->host.optimizer += st->managed_bytes;
    st->bytes[MAQ_MEM_ACTIVATIONS] = peak_activations(bp, stage, programs, n, &st->peak_microbatches);
    double each = maq_step_update_bytes(bp) + (job->plan.reduce_bucket_size > 0 ? bp->lower.store_bytes : 0);
    double working = matrix_bytes(bp, programs, n);
    double at_update = updated_params(bp, dense, expert, adapters) * each + working,
           update = at_update - st->bytes[MAQ_MEM_ACTIVATIONS];
    st->bytes[MAQ_MEM_GRAPHS] =
        maq_stage_graphs(st, bp, stage, programs, n, st->bytes[MAQ_MEM_ACTIVATIONS], transient, at_update);
    if (gradients_come(job,
                       &job->plan)) { /* the peak is in front of the backward pass, without them, or at the update */
        bool before = transient >= update + st->bytes[MAQ_MEM_GRADIENTS];
        st->bytes[MAQ_MEM_GRADIENTS] = before ? 0 : st->bytes[MAQ_MEM_GRADIENTS];
        transient = before ? transient : update;
    }
    if (fmax(transient, update) < 0) { /* at the update, and less than the activations that are gone by then */
        transient = update = update + st->bytes[MAQ_MEM_ACTIVATIONS];
        st->bytes[MAQ_MEM_ACTIVATIONS] = 0;
    }
    st->bytes[MAQ_MEM_GRADIENTS] += maq_stage_bucket_bytes(bp, stage);
    st->bytes[MAQ_MEM_TRANSIENT] = fmax(transient, update) + maq_rank_workspaces_bytes(job);
    st->bytes[MAQ_MEM_CONTEXT] = context_bytes(job);
    st->bytes[MAQ_MEM_NCCL] = bp->nccl_bytes;
    for (int k = 0; k < MAQ_MEM_FRAGMENTATION; k++)
        st->allocated_bytes += st->bytes[k];
    /* fragmentation is known only from a replay (allocator_replay.c) */
    st->reserved_bytes = st->allocated_bytes;
    st->total_bytes = st->needed_bytes =
        st->reserved_bytes + st->bytes[MAQ_MEM_CONTEXT] + st->bytes[MAQ_MEM_NCCL] + st->bytes[MAQ_MEM_GRAPHS];
    st->capacity_bytes = job->stages[stage].capacity_bytes;
    maq_settle_managed(st);
}

double maq_stage_bucket_bytes(const struct maq_blueprint *bp, uint32_t stage)
{
    const struct maq_program *programs[MAQ_MAX_STAGES];
    const uint32_t n = maq_stage_programs(programs, bp, stage);
    const struct maq_owned_params held = maq_owned_by(programs, n);
    bool lora = bp->job->plan.lora_rank > 0;
    return bucket_bytes(bp->job, &bp->job->plan, lora ? held.adapters : held.dense + held.expert);
}

double maq_stage_ahead_bytes(const struct maq_blueprint *bp, uint32_t stage)
{
    const struct maq_program *programs[MAQ_MAX_STAGES];
    const uint32_t n = maq_stage_programs(programs, bp, stage);
    double most = 0, ahead = 0;
    for (uint32_t i = 0; i < n; i++) {
        ahead = programs[i]->gather_bytes > most ? programs[i]->ahead_bytes : ahead;
        most = fmax(most, programs[i]->gather_bytes);
    }
    return ahead;
}

bool maq_gradients_come(const struct maq_job *job)
{
    return gradients_come(job, &job->plan);
}

double maq_stage_gradient_pool(const struct maq_stage_result *st, const struct maq_blueprint *bp, uint32_t stage)
{
    const struct maq_program *programs[MAQ_MAX_STAGES];
    const uint32_t n = maq_stage_programs(programs, bp, stage);
    const struct maq_owned_params held = maq_owned_by(programs, n);
    return st->bytes[MAQ_MEM_GRADIENTS] > 0 ? 0 : coming_gradients(bp->job, held.dense, held.expert, true);
}

struct maq_allocator_options maq_allocator_of(const struct maq_plan *p)
{
    return (struct maq_allocator_options){.expandable_segments = p->expandable_segments,
                                          .max_split_size = p->max_split_size_mb * 1024.0 * 1024.0,
                                          .roundup_power2_divisions = (uint32_t)p->roundup_power2_divisions};
}

bool maq_stage_fits(const struct maq_stage_result *st)
{
    return st->needed_bytes <= st->capacity_bytes;
}

const char *maq_mem_name(enum maq_mem_kind kind)
{
    static const char *const names[MAQ_MEM_COUNT] = {
        "weights", "gradients", "optimizer", "activations", "transient", "fragmentation", "context", "nccl", "graphs"};
    return (unsigned)kind < MAQ_MEM_COUNT ? names[kind] : "?";
}
