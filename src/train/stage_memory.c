/*
 * stage_memory.c - memory of each pipeline stage at its peak, by category.
 *
 * Model states of one rank, P parameters held, bytes w (weight), g (gradient), o (optimizer), shared by N
 * ranks (Rajbhandari et al., "ZeRO", arXiv 1910.02054):
 *
 *   no_shard             P (w + g + o)
 *   optim                P (w + g) + P o / N
 *   optim_grads          P w + P (g + o) / N
 *   optim_grads_params   P (w' + g + o') / N, where the 4-byte master weight is the parameter itself (w' + o' = 4 + moments)
 *
 * Mixed precision: w = 2, g = 4, o = 12 (master, two moments); FP32: w = 4, g = 4, o = 8.
 *
 * Activations: the schedule says how many microbatches of each chunk a stage holds at once. On top comes the
 * working set of one pass. PyTorch's caching allocator holds more than it hands out: graph/allocator.h bounds
 * it.
 */
#include "train/predict.h"

#define GIB (1024.0 * 1024.0 * 1024.0)

/* A CUDA context with the kernels of PyTorch, cuBLAS and cuDNN loaded, and cuBLAS' workspace; nvidia-smi of
 * an idle training process shows 0.5 to 0.8 GiB. */
#define CONTEXT_BYTES (0.6 * GIB)
#define WORKSPACE_BYTES (32.0 * 1024 * 1024)

/*
 * NCCL holds buffers per channel and peer: NCCL_BUFFSIZE 4 MiB for the Simple protocol, and 1/8 and 1/2 of
 * that scale for LL and LL128 (NCCL documentation, environment variables). A ring uses one peer each way on
 * every channel.
 */
#define NCCL_CHANNEL_BYTES ((4.0 + 0.5 + 1.2) * 1024 * 1024)
#define NCCL_CHANNELS_DOMAIN 16
#define NCCL_CHANNELS_NETWORK 8

static double communicator_bytes(const struct maq_placement *p)
{
    if (p->size <= 1)
        return 0;
    double channels = p->domains == 1 ? NCCL_CHANNELS_DOMAIN : NCCL_CHANNELS_NETWORK;
    return channels * NCCL_CHANNEL_BYTES;
}

double maq_communicator_bytes(const struct maq_job *job)
{
    static const enum maq_group_kind held[] = {MAQ_GROUP_TP, MAQ_GROUP_CP, MAQ_GROUP_SHARD, MAQ_GROUP_REPLICA,
                                               MAQ_GROUP_PP};
    double sum = 0;
    for (size_t i = 0; i < sizeof held / sizeof held[0]; i++)
        sum += communicator_bytes(&job->groups[held[i]]);
    if (job->plan.ep > 1)
        sum += communicator_bytes(&job->groups[MAQ_GROUP_EP]) + communicator_bytes(&job->groups[MAQ_GROUP_EDP]);
    return sum;
}

struct states {
    double weights, gradients, optimizer;
};

static struct states model_states(const struct maq_blueprint *bp, double held, double shards)
{
    const struct maq_plan *p = &bp->job->plan;
    double w = bp->lower.store_bytes, g = maq_dtype_bytes((enum maq_dtype)p->grad_dtype),
           m = maq_dtype_bytes((enum maq_dtype)p->optimizer_dtype);
    double master = p->pure_low_precision || bp->lower.store == MAQ_FP32 ? 0 : 4;
    double o = (master + 2 * m) * (1 - p->optimizer_offload);
    bool eight_bit =
        bp->lower.math == MAQ_FP8 &&
        !p->fp8_param_gather; /* Transformer Engine keeps an 8-bit copy and its transpose beside the 16-bit weight */
    double copies = eight_bit ? 2 : 0;
    if (p->fp8_param_gather)
        w = copies = 1;
    switch ((enum maq_sharding)p->sharding) {
    case MAQ_SHARDING_NONE:
        return (struct states){held * (w + copies), held * g, held * o};
    case MAQ_SHARDING_OPTIM:
        return (struct states){held * (w + copies), held * g, held * o / shards};
    case MAQ_SHARDING_GRADS:
        return (struct states){held * (w + copies), held * g / shards, held * o / shards};
    case MAQ_SHARDING_PARAMS:
        break;
    }
    double kept = p->gather_once ? held * w : 0;
    return (struct states){held * (master > 0 ? master : w) / shards + kept, held * g / shards,
                           held * 2 * m * (1 - p->optimizer_offload) / shards};
}

/* Frozen weights need neither gradient nor optimizer state. */
static struct states lora_states(const struct maq_blueprint *bp, double held, double adapters, double shards)
{
    struct states s = model_states(bp, adapters, shards);
    double w = bp->lower.store_bytes;
    s.weights += bp->job->plan.sharding == MAQ_SHARDING_PARAMS ? held * w / shards : held * w;
    return s;
}

/* Working set of the heaviest pass of a program, and what FSDP has gathered at that time. */
static double program_transient(const struct maq_blueprint *bp, const struct maq_program *pr)
{
    const struct maq_plan *p = &bp->job->plan;
    if (!bp->gather_every_pass)
        return pr->transient_bytes;
    /* parameters of this entry and those ahead, and the unsharded gradient of one */
    return pr->transient_bytes + pr->largest_params * (bp->lower.store_bytes * (1 + p->fsdp_prefetch) +
                                                       maq_dtype_bytes((enum maq_dtype)p->grad_reduce_dtype));
}

static void add_states(struct maq_stage_result *st, struct states s)
{
    st->bytes[MAQ_MEM_WEIGHTS] += s.weights;
    st->bytes[MAQ_MEM_GRADIENTS] += s.gradients;
    st->bytes[MAQ_MEM_OPTIMIZER] += s.optimizer;
}

/* The largest sum of live activations over the combinations that the schedule reaches. */
static double peak_activations(const struct maq_blueprint *bp, uint32_t stage, const uint16_t *at, uint32_t n_at,
                               uint32_t *microbatches)
{
    double best = 0;
    for (uint32_t i = bp->schedule->inflight_first[stage]; i < bp->schedule->inflight_first[stage + 1]; i++) {
        const struct maq_inflight *live = &bp->schedule->inflight[i];
        double sum = 0;
        for (uint32_t c = 0; c < n_at; c++)
            sum += live->chunk[c] * bp->programs[at[c]]->act_bytes;
        if (sum >= best) {
            best = sum;
            *microbatches = live->total;
        }
    }
    return best;
}

void maq_stage_memory(struct maq_stage_result *st, const struct maq_blueprint *bp, uint32_t stage)
{
    *st = (struct maq_stage_result){0};
    const struct maq_job *job = bp->job;
    uint16_t at[MAQ_MAX_STAGES];
    uint32_t n_at = maq_blueprint_positions(bp, stage, at);
    double shards = job->groups[MAQ_GROUP_SHARD].size, transient = 0, dense = 0, expert = 0, adapters = 0;
    for (uint32_t c = 0; c < n_at; c++) {
        const struct maq_program *pr = bp->programs[at[c]];
        dense += pr->dense_params;
        expert += pr->expert_params;
        adapters += pr->adapter_params;
        double t = program_transient(bp, pr);
        transient = t > transient ? t : transient;
    }
    bool lora = job->plan.lora_rank > 0;
    st->params = dense + expert;
    add_states(st, lora ? lora_states(bp, dense, adapters, shards) : model_states(bp, dense, shards));
    add_states(st, lora ? lora_states(bp, expert, 0, job->edp) : model_states(bp, expert, job->edp));
    st->bytes[MAQ_MEM_ACTIVATIONS] = peak_activations(bp, stage, at, n_at, &st->peak_microbatches);
    st->bytes[MAQ_MEM_TRANSIENT] = transient + WORKSPACE_BYTES;
    st->bytes[MAQ_MEM_CONTEXT] = CONTEXT_BYTES;
    st->bytes[MAQ_MEM_NCCL] = bp->nccl_bytes;
    for (int k = 0; k < MAQ_MEM_FRAGMENTATION; k++)
        st->allocated_bytes += st->bytes[k];
    /* fragmentation is known only from a replay (memory_replay.c) */
    st->reserved_bytes = st->allocated_bytes;
    st->total_bytes = st->reserved_bytes + st->bytes[MAQ_MEM_CONTEXT] + st->bytes[MAQ_MEM_NCCL];
    st->capacity_bytes = job->stages[stage].capacity_bytes;
}

bool maq_stage_fits(const struct maq_stage_result *st)
{
    return st->allocated_bytes + st->bytes[MAQ_MEM_CONTEXT] + st->bytes[MAQ_MEM_NCCL] <= st->capacity_bytes;
}

const char *maq_mem_name(enum maq_mem_kind kind)
{
    static const char *const names[MAQ_MEM_COUNT] = {"weights",   "gradients",     "optimizer", "activations",
                                                     "transient", "fragmentation", "context",   "nccl"};
    return (unsigned)kind < MAQ_MEM_COUNT ? names[kind] : "?";
}
