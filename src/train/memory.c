/*
 * memory.c - activations: what a layer keeps from its forward to its backward pass on one rank, and its working set.
 *
 * A module keeps its input for the backward pass, once: a tensor read by several modules is kept by the first
 * (MAQ_MODULE_SHARED_INPUT marks the others). With e bytes per element and r rows on this rank:
 *
 *   norm, activation, gate, conv, scan   r * in * e
 *   linear                               r * in * e, of the sequence-parallel share when the input is gathered (Megatron-LM gathers it again);
 *                                        one byte per element when the recipe quantizes it
 *   attention                            q, k, v: r * in * e; unfused also softmax and its dropout: (2e + 1) * heads * s per row (e without dropout)
 *   residual, embedding with dropout     one byte per element for the mask
 *   loss                                 logits in 4 bytes
 *
 * For a GPT layer with e = 2 this is s b h (34 + 5 a s / h) on one device, s b h / t (34 + 5 a s / h) with
 * tensor and sequence parallelism, and s b h (10 + 24 / t + 5 a s / (h t)) without the latter: Korthikanti et
 * al., "Reducing Activation Recomputation in Large Transformer Models", equations 1, 2 and 4 (arXiv
 * 2205.05198).
 *
 * A recomputed module's output is not kept, except core attention's (only its inside is dropped, as in
 * Megatron-LM). A recomputed layer keeps its input alone.
 */
#include "base/check.h"
#include "train/blueprint.h"

struct tally {
    const struct maq_lower *lower;
    const struct maq_layer *layer;
    uint32_t parts; /* recomputed */
};

static bool quantized(const struct maq_lower *lo, const struct maq_module *m)
{
    bool linear = m->kind == MAQ_MODULE_LINEAR || m->kind == MAQ_MODULE_EXPERT_LINEAR;
    return linear && (lo->math == MAQ_FP8 || lo->math == MAQ_FP4) &&
           !(m->flags & (MAQ_MODULE_UNQUANTIZED | MAQ_MODULE_FP32));
}

static double rows_of(const struct maq_lower *lo, const struct maq_layer *layer, const struct maq_module *m)
{
    double rows = (double)maq_lower_local(lo, layer, m).rows;
    return m->shard == MAQ_SHARD_EXPERT ? rows * lo->imbalance : rows;
}

/* Inside of core attention that the backward pass needs beyond q, k, v. */
static double attention_inside(const struct maq_lower *lo, const struct maq_module *m)
{
    const struct maq_attention_geometry *g = &m->u.attention;
    double heads = (double)g->heads / lo->plan->tp, rows = (double)lo->tokens;
    if (lo->plan->attention_backend == MAQ_ATTENTION_UNFUSED)
        return rows * heads * (double)lo->job->workload.seq * (g->dropout ? 2 * lo->store_bytes + 1 : lo->store_bytes);
    return 4 * rows * heads; /* log-sum-exp */
}

/* The tensor a module reads. */
static double input_bytes(const struct tally *t, const struct maq_module *m)
{
    const struct maq_lower *lo = t->lower;
    struct maq_local d = maq_lower_local(lo, t->layer, m);
    double rows = rows_of(lo, t->layer, m), e = quantized(lo, m) ? 1.0 : lo->store_bytes;
    if (m->flags & MAQ_MODULE_GATHER_IN && m->kind == MAQ_MODULE_LINEAR)
        rows = (double)lo->tokens_region;
    switch (m->kind) {
    case MAQ_MODULE_RESIDUAL:
        return m->flags & MAQ_MODULE_DROPOUT ? (double)lo->tokens_region * (double)m->out : 0;
    case MAQ_MODULE_EMBEDDING:
        return m->flags & MAQ_MODULE_DROPOUT ? (double)lo->tokens_region * (double)m->out : 0;
    case MAQ_MODULE_LOSS:
        return rows * (double)d.in * 4;
    case MAQ_MODULE_ROUTER: /* its input, and probabilities in 4 bytes */
        return rows * ((double)m->in * lo->store_bytes + 4.0 * (double)m->out);
    case MAQ_MODULE_ROPE:
    case MAQ_MODULE_DISPATCH:
    case MAQ_MODULE_COMBINE:
        return 0; /* linear maps: nothing is needed */
    case MAQ_MODULE_LINEAR:
        if (!maq_lower_trained(lo) && !maq_lower_adapted(lo, m))
            return 0; /* frozen: its input gradient needs only the weight */
        return rows * (double)d.in * e;
    case MAQ_MODULE_NORM:
    case MAQ_MODULE_ATTENTION:
    case MAQ_MODULE_ACTIVATION:
    case MAQ_MODULE_GATE:
    case MAQ_MODULE_EXPERT_LINEAR:
    case MAQ_MODULE_EXPERT_ACTIVATION:
    case MAQ_MODULE_CONV1D:
    case MAQ_MODULE_SSM_SCAN:
    case MAQ_MODULE_DELTA_RULE:
    case MAQ_MODULE_KIND_COUNT:
        break;
    }
    return rows * (double)d.in * e;
}

static bool redone(const struct tally *t, const struct maq_module *m)
{
    return (t->parts & (1u << m->part)) != 0;
}

static void keep(struct maq_kept *kept, double bytes)
{
    if (bytes <= 0)
        return;
    if (kept->n == MAQ_MAX_KEPT)
        kept->bytes[MAQ_MAX_KEPT - 1] += bytes;
    else
        kept->bytes[kept->n++] = bytes;
}

static double kept_bytes(const struct tally *t, struct maq_kept *kept)
{
    const struct maq_module *producer = NULL; /* of the tensor that the next module reads */
    for (uint32_t i = 0; i < t->layer->n_modules; i++) {
        const struct maq_module *m = &t->layer->modules[i];
        bool dropped = producer && redone(t, producer) && producer->part != MAQ_PART_CORE_ATTENTION;
        if (!(m->flags & MAQ_MODULE_SHARED_INPUT) && !dropped)
            keep(kept, input_bytes(t, m));
        if (m->kind == MAQ_MODULE_ATTENTION && !redone(t, m))
            keep(kept, attention_inside(t->lower, m));
        producer = m;
    }
    double sum = 0;
    for (uint32_t i = 0; i < kept->n; i++)
        sum += kept->bytes[i];
    return sum;
}

/* Largest input + output of one module that is not kept: gradients and temporaries of a pass. */
static double widest_module(const struct tally *t, bool backward)
{
    double widest = 0;
    for (uint32_t i = 0; i < t->layer->n_modules; i++) {
        const struct maq_module *m = &t->layer->modules[i];
        struct maq_local d = maq_lower_local(t->lower, t->layer, m);
        double rows = rows_of(t->lower, t->layer, m), e = t->lower->store_bytes;
        double bytes = rows * (double)d.out * e;
        if (m->kind == MAQ_MODULE_LOSS)
            bytes = rows * (double)d.in *
                    (backward ? e : 2 * e); /* 16-bit logits beside the kept 32-bit ones, or their gradient */
        else if (m->kind == MAQ_MODULE_RESIDUAL || m->kind == MAQ_MODULE_EMBEDDING)
            bytes = (double)t->lower->tokens_region * (double)m->out * e;
        if (backward)
            bytes += m->kind == MAQ_MODULE_LOSS || m->kind == MAQ_MODULE_EMBEDDING ? 0 : rows * (double)d.in * e;
        if (m->kind == MAQ_MODULE_LINEAR && (m->flags & MAQ_MODULE_GATHER_IN))
            bytes += t->lower->plan->sequence_parallel == MAQ_ON ? (double)t->lower->tokens * (double)m->in * e : 0;
        if (m->kind == MAQ_MODULE_ATTENTION && redone(t, m))
            bytes += attention_inside(t->lower, m);
        widest = bytes > widest ? bytes : widest;
    }
    return widest;
}

void maq_block_memory(struct maq_block *block, const struct maq_lower *lower)
{
    uint32_t selective = lower->plan->recompute == MAQ_RECOMPUTE_SELECTIVE ? lower->plan->recompute_parts : 0;
    if (selective & (1u << MAQ_PART_MOE))
        selective |= 1u << MAQ_PART_ROUTER | 1u << MAQ_PART_MOE_ACT | 1u << MAQ_PART_SHARED_EXPERTS;
    struct tally plain = {lower, block->layer, 0}, chosen = {lower, block->layer, selective};
    double all = kept_bytes(&plain, &block->kept[0]);
    block->act_bytes[0] = all;
    block->forward_transient = widest_module(&plain, false);
    block->backward_transient[0] = widest_module(&plain, true);
    if (lower->plan->recompute == MAQ_RECOMPUTE_FULL) {
        /* the layer's input is kept; the rest comes back while it is worked on */
        block->act_bytes[1] = (double)lower->tokens_region * (double)lower->job->model.hidden * lower->store_bytes;
        keep(&block->kept[1], block->act_bytes[1]);
        block->backward_transient[1] = all + block->backward_transient[0];
    } else {
        block->act_bytes[1] = kept_bytes(&chosen, &block->kept[1]);
        block->backward_transient[1] = all - block->act_bytes[1] + block->backward_transient[0];
    }
}
