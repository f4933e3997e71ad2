/* SPDX-License-Identifier: Apache-2.0 */
/*
 * activations.c - activations: what a layer keeps from its forward to its backward pass on one rank, and its working set.
 *
 * A module keeps its input for the backward pass, once: a tensor read by several modules is kept by the first
 * (MAQ_MODULE_SHARED_INPUT marks the others). With e bytes per element and r rows on this rank:
 *
 *   norm, activation, gate, conv, scan   r * in * e
 *   linear                               r * in * e, of the sequence-parallel share when the input is gathered (Megatron-LM gathers
 *                                        it again); one byte per element when the recipe quantizes it
 *   attention                            q, k, v: r * in * e; unfused also softmax and its dropout: (2e + 1) * heads * s
 *                                        per row (e without dropout); where no kernel has the conversions in it, the
 *                                        softmax in 4 bytes besides what the product reads; copies of k and v for the
 *                                        query heads that share them, where autograd keeps what its kernels read
 *   indexer                              r * in * e, and the place of each chosen key in 4 bytes
 *   residual, embedding with dropout     one byte per element for the mask
 *   norm, linear, activation             more where PyTorch's layers do, torch_layers.h
 *   activation of experts                what kernels apart from it keep: its clamped input, what the probabilities multiply
 *   loss                                 logits in 4 bytes, in 2 without fp32_upcast
 *
 * For a GPT layer with e = 2 this is s b h (34 + 5 a s / h) on one device, s b h / t (34 + 5 a s / h) with
 * tensor and sequence parallelism, and s b h (10 + 24 / t + 5 a s / (h t)) without the latter: Korthikanti et
 * al., "Reducing Activation Recomputation in Large Transformer Models", equations 1, 2 and 4 (arXiv
 * 2205.05198).
 *
 * Megatron-LM's cross-entropy works in place: 16-bit logits, which the caller still has, become 4-byte ones, which become
 * probabilities and then their gradient, of which a 16-bit one is made (megatron/core/tensor_parallel/cross_entropy.py).
 * PyTorch's makes the logarithm of the probabilities (kept), and on the way back its gradient and that of the 4-byte
 * logits.
 *
 * Selective checkpointing by operator (selective_ac_option: op): a layer keeps its input, what attention returns, what
 * reduce-scatters return, and every second matrix product (lower.c has which).
 *
 * A recomputed module's output is not kept, except core attention's (only its inside is dropped, as in
 * Megatron-LM). A recomputed layer keeps its input alone.
 */
#include "base/check.h"
#include "lower/local.h"
#include "lower/modules.h"
#include "train/memory/offload.h"
#include "train/memory/torch_layers.h"
#include "train/memory/transformer_engine_script.h"
#include "train/step/block.h"

struct tally {
    struct maq_lower *lower;
    const struct maq_layer *layer;
    uint32_t parts; /* recomputed */
};

/* Whether a product keeps its input quantized: with a scale for each row it is quantized anew, down its columns. */
static bool quantized(const struct maq_lower *lo, const struct maq_module *m)
{
    return maq_lower_quantized(lo, m) && lo->plan->precision != MAQ_PRECISION_FP8_ROWWISE;
}

static double rows_of(const struct maq_lower *lo, const struct maq_layer *layer, const struct maq_module *m)
{
    double rows = (double)maq_lower_local(lo, layer, m).rows;
    return m->shard == MAQ_SHARD_EXPERT ? rows * lo->imbalance : rows;
}

static double local_heads(const struct maq_lower *lo, const struct maq_attention_geometry *g)
{
    return (double)g->heads / (lo->job->framework.tp_narrows_heads ? 1 : lo->plan->tp);
}

/* Keys of a query whose scores exist: all of the sequence, masked or not, or those of its window. */
static double scored_keys(const struct maq_lower *lo, const struct maq_attention_geometry *g)
{
    return (double)(!g->causal && g->chunk > 0 && g->chunk < lo->seq ? g->chunk : lo->seq);
}

/* What core attention keeps for its backward pass beyond q, k, v. */
static double attention_inside(const struct maq_lower *lo, const struct maq_module *m)
{
    const struct maq_attention_geometry *g = &m->u.attention;
    double heads = local_heads(lo, g), rows = (double)lo->tokens, e = lo->store_bytes;
    if (lo->attention != MAQ_ATTENTION_UNFUSED)
        return 4 * rows * heads; /* log-sum-exp */
    double softmax = maq_lower_softmax_widens(lo, g) ? 4 : g->dropout ? e : 0, read = g->dropout ? e + 1 : e;
    return rows * heads * scored_keys(lo, g) * (softmax + read);
}

/*
 * Copies of K and V for the query heads that share them, beyond what is there anyway. Autograd keeps what the kernel read; a
 * compiled layer makes them again, as its partitioner does with whatever is no more than copied (torch/_functorch/partitioners.py),
 * and so does checkpointing by operator.
 */
static double kv_copies(const struct maq_lower *lo, const struct maq_module *m)
{
    const struct maq_attention_geometry *g = &m->u.attention;
    if (m->kind != MAQ_MODULE_ATTENTION || !maq_lower_repeats_kv(lo, g))
        return 0;
    double heads = local_heads(lo, g) * (1.0 - (double)g->kv_heads / (double)g->heads);
    return (double)lo->tokens * heads * (double)(g->qk_dim + g->v_dim) * lo->store_bytes;
}

static double kept_copies(const struct tally *t, const struct maq_module *m)
{
    return t->lower->plan->fused_kernels ? 0 : kv_copies(t->lower, m);
}

/* While attention works: copies that are not kept, and backward the gradients of all. */
static double passing_copies(const struct tally *t, const struct maq_module *m, bool backward)
{
    double copies = kv_copies(t->lower, m);
    return copies - kept_copies(t, m) + (backward ? copies : 0);
}

/*
 * Scores that come and go. Forward: before the softmax, and in 4 bytes where it widens them. Backward: their gradient; PyTorch's
 * softmax (aten/src/ATen/native/cuda/SoftMax.cu, softmax_backward_cuda_out) has it, its product with the output and the result at
 * once, in 4 bytes where they were widened, when what the values' product read is gone again. Megatron's kernel works in place.
 */
static double attention_scratch(const struct maq_lower *lo, const struct maq_attention_geometry *g, bool backward)
{
    bool widens = maq_lower_softmax_widens(lo, g);
    double e = lo->store_bytes, scores = (double)lo->tokens * local_heads(lo, g) * scored_keys(lo, g);
    if (!backward)
        return scores * (widens ? e + 4 : e);
    return scores * (widens ? 3 * 4 - e : maq_lower_softmax_fused(lo, g) ? e : 3 * e);
}

static bool torch_loss(const struct maq_lower *lo)
{
    return lo->plan->loss_function == MAQ_LOSS_TORCH;
}

/* Whether it is the sequence of kernels that torch.nn.functional.cross_entropy has, and not what a compiler made of it. */
static bool eager_loss(const struct maq_lower *lo)
{
    return torch_loss(lo) && !lo->plan->fused_kernels;
}

/* Of an element of the logits as the loss keeps it; a loss that is one with the output layer has a few rows at a time. */
static double loss_element(const struct maq_lower *lo)
{
    if (lo->plan->loss_function >= MAQ_LOSS_LINEAR)
        return 0;
    return torch_loss(lo) && !lo->plan->fp32_upcast ? lo->store_bytes : 4;
}

/* Bytes per element in addition to the kept logits: in the forward pass the 16-bit ones, and PyTorch's copy; in the backward
 * pass the 16-bit gradient, or PyTorch's two of the kept type and, where nothing was copied, the logits themselves, which the
 * caller still holds. */
static double loss_transient(const struct maq_lower *lo, bool backward)
{
    double e = lo->store_bytes, kept = loss_element(lo);
    if (lo->plan->loss_function >= MAQ_LOSS_LINEAR)
        return 0;
    if (!torch_loss(lo))
        return e;
    return backward ? 2 * kept + (lo->plan->fp32_upcast ? 0 : e) : kept + e;
}

static bool redone(const struct tally *t, const struct maq_module *m)
{
    return (t->parts & (1u << m->part)) != 0 && !maq_lower_norm_joined(t->lower, t->layer, m);
}

/*
 * Whether the output of fused attention stays for its own backward pass in addition to the quantized copy that the product behind
 * it keeps. In 8 bits with delayed scaling the 8-bit numbers stay, and their widened copy is freed.
 */
static bool output_stays(const struct tally *t, const struct maq_module *m)
{
    const struct maq_module *last = t->layer->modules + t->layer->n_modules - 1;
    bool fused = m->kind == MAQ_MODULE_ATTENTION && t->lower->attention != MAQ_ATTENTION_UNFUSED;
    if (!fused || m == last || redone(t, m))
        return false;
    return quantized(t->lower, m + 1) || (t->lower->plan->lora_rank > 0 && t->lower->job->framework.adapters_widen);
}

static bool returns_narrow(const struct maq_lower *lo)
{
    return maq_lower_attends_narrow(lo) && lo->plan->precision == MAQ_PRECISION_FP8_DELAYED;
}

static double attention_output(const struct tally *t, const struct maq_module *m)
{
    const struct maq_lower *lo = t->lower;
    double e = returns_narrow(lo) ? 1 : lo->store_bytes;
    return output_stays(t, m) ? rows_of(lo, t->layer, m) * (double)maq_lower_local(lo, t->layer, m).out * e : 0;
}

/* The tensor a module reads. */
static double input_bytes(const struct tally *t, const struct maq_module *m)
{
    const struct maq_lower *lo = t->lower;
    struct maq_local d = maq_lower_local(lo, t->layer, m);
    double rows = rows_of(lo, t->layer, m), e = quantized(lo, m) ? maq_lower_narrow_bytes(lo->plan) : lo->store_bytes;
    if (m->flags & MAQ_MODULE_GATHER_IN && m->kind == MAQ_MODULE_LINEAR)
        rows = (double)lo->tokens_region;
    switch (m->kind) {
    case MAQ_MODULE_RESIDUAL:
        return m->flags & MAQ_MODULE_DROPOUT ? (double)lo->tokens_region * (double)m->out : 0;
    case MAQ_MODULE_EMBEDDING: /* a mask, and the one-hot vectors */
        return (m->flags & MAQ_MODULE_DROPOUT ? (double)lo->tokens_region * (double)m->out : 0) +
               (maq_lower_one_hot(lo, m) ? rows * (double)d.in * lo->store_bytes : 0);
    case MAQ_MODULE_LOSS:
        return rows * (double)d.in * loss_element(lo);
    case MAQ_MODULE_ROUTER:
        return rows * (double)m->in * lo->store_bytes;
    case MAQ_MODULE_ROPE:
    case MAQ_MODULE_DISPATCH:
    case MAQ_MODULE_COMBINE:
        return 0; /* linear maps: nothing is needed */
    case MAQ_MODULE_LINEAR:
        if (!maq_lower_trained(lo) && !maq_lower_adapted(lo, m))
            return 0; /* frozen: its input gradient needs only the weight */
        return rows * (double)d.in * (quantized(lo, m) ? e : maq_linear_bytes(lo, t->layer, m));
    case MAQ_MODULE_NORM:
        return rows * (double)d.in * maq_norm_bytes(lo, m);
    case MAQ_MODULE_ATTENTION:
        e = maq_lower_attention_kept(lo);
        break;
    case MAQ_MODULE_INDEXER: /* what the scores are made of, and the places of the chosen keys */
        return rows * ((double)d.in * e + 4.0 * (double)m->u.attention.selected);
    case MAQ_MODULE_EXPERT_ACTIVATION:
    case MAQ_MODULE_ACTIVATION:
    case MAQ_MODULE_GATE:
    case MAQ_MODULE_EXPERT_LINEAR:
    case MAQ_MODULE_CONV1D:
    case MAQ_MODULE_SSM_SCAN:
    case MAQ_MODULE_DELTA_RULE:
    case MAQ_MODULE_SELECTIVE_SCAN:
    case MAQ_MODULE_KIND_COUNT:
        break;
    }
    return rows * (double)d.in * e;
}

/* What separate kernels around the experts' activation keep for their own gradients: the clamped input in addition to the input;
 * the output in addition to its product with the probabilities. */
static double activation_apart(const struct tally *t, const struct maq_module *m)
{
    const struct maq_lower *lo = t->lower;
    if (m->kind != MAQ_MODULE_EXPERT_ACTIVATION || redone(t, m))
        return 0;
    struct maq_local d = maq_lower_local(lo, t->layer, m);
    bool scores = lo->job->framework.expert_scores_apart && !lo->plan->fused_kernels;
    double width = (maq_lower_clamps_apart(lo, m) ? (double)d.in : 0) + (scores ? (double)d.out : 0);
    return rows_of(lo, t->layer, m) * width * lo->store_bytes;
}

/*
 * Whether a module finds its input in memory when its backward pass comes: its producer was not recomputed, or recomputed only
 * inside.
 */
static bool input_present(const struct tally *t, const struct maq_module *producer)
{
    return !producer || !redone(t, producer) || producer->part == MAQ_PART_CORE_ATTENTION;
}

/*
 * Core attention that is recomputed keeps its inputs: queries and keys as they were rotated, and values, which are a view of what
 * linear_qkv returned, so that all of that stays. (Where it is not, fused kernels get values of their own: Transformer Engine's
 * get_qkv_layout() makes them contiguous.)
 */
static double viewed_bytes(const struct tally *t, const struct maq_module *m)
{
    const struct maq_attention_geometry *g = &m->u.attention;
    const struct maq_layer *layer = t->layer;
    bool engine = maq_job_has_transformer_engine(t->lower->job) && t->lower->attention != MAQ_ATTENTION_UNFUSED;
    if (m->kind != MAQ_MODULE_ATTENTION || !redone(t, m) || !engine || g->kv_heads == 0)
        return 0;
    for (const struct maq_module *r = layer->modules; r < m; r++)
        if (r->kind == MAQ_MODULE_ROPE && r->part == MAQ_PART_ATTENTION) {
            double values = (double)maq_lower_local(t->lower, layer, m).in * (double)(g->kv_heads * g->v_dim) /
                            (double)((g->heads + g->kv_heads) * g->qk_dim + g->kv_heads * g->v_dim);
            return rows_of(t->lower, layer, m) * ((double)maq_lower_local(t->lower, layer, m).in - values) *
                   t->lower->store_bytes;
        }
    return 0;
}

/* Probabilities in 4 bytes. */
static double router_inside(const struct tally *t, const struct maq_module *m)
{
    return m->kind == MAQ_MODULE_ROUTER && !redone(t, m) ? rows_of(t->lower, t->layer, m) * 4.0 * (double)m->out : 0;
}

/* What a module keeps in addition to its input, without core attention's output. */
static double kept_inside(const struct tally *t, const struct maq_module *m)
{
    bool attends = m->kind == MAQ_MODULE_ATTENTION && !redone(t, m);
    double gate = redone(t, m) ? 0
                               : rows_of(t->lower, t->layer, m) *
                                     (maq_gate_bytes(t->lower, t->layer, m) + maq_scored_bytes(t->lower, t->layer, m) +
                                      maq_dora_bytes(t->lower, t->layer, m));
    return (attends ? attention_inside(t->lower, m) + kept_copies(t, m) : 0) + viewed_bytes(t, m) +
           router_inside(t, m) + activation_apart(t, m) + gate + maq_weight_copy_bytes(t->lower, t->layer, m);
}

/* Modules that a sum is over. */
enum which { ALL, IN_GRAPHS, OUTSIDE };

static bool counts(const struct tally *t, uint32_t module, enum which which)
{
    if (which == ALL)
        return true;
    bool graphed =
        maq_lower_graphed(t->lower->plan, t->layer, module, maq_lower_second_half(t->layer)) && t->lower->repeats;
    return graphed == (which == IN_GRAPHS);
}

static double kept_bytes(const struct tally *t, enum which which)
{
    const struct maq_module *producer = NULL; /* of the tensor that the next module reads */
    double sum = 0;
    for (uint32_t i = 0; i < t->layer->n_modules; i++) {
        const struct maq_module *m = &t->layer->modules[i];
        bool counted = counts(t, i, which);
        if (counted && !(m->flags & MAQ_MODULE_SHARED_INPUT) && input_present(t, producer))
            sum += input_bytes(t, m);
        sum += counted ? kept_inside(t, m) + attention_output(t, m) : 0;
        producer = m;
    }
    return sum;
}

/* ---- what of it waits on the host ---- */

static double output_bytes(const struct tally *t, const struct maq_module *m);

/* Of bytes that a module saves as so many numbers, those that leave the device: all or none. */
static double leaving(const struct tally *t, const struct maq_module *m, double bytes, double numbers)
{
    uint32_t i = (uint32_t)(m - t->layer->modules);
    return numbers >= MAQ_OFFLOAD_LEAST && maq_offload_chosen(t->lower->plan, t->layer, i) ? bytes : 0;
}

static double input_leaving(const struct tally *t, const struct maq_module *m, double kept)
{
    return leaving(t, m, kept, rows_of(t->lower, t->layer, m) * (double)maq_lower_local(t->lower, t->layer, m).in);
}

static double inside_leaving(const struct tally *t, const struct maq_module *m)
{
    double bytes = kept_inside(t, m), width = m->kind == MAQ_MODULE_ATTENTION ? 4 : t->lower->store_bytes;
    return leaving(t, m, bytes, bytes / width);
}

static double output_leaving(const struct tally *t, const struct maq_module *m)
{
    double bytes = m->kind == MAQ_MODULE_ATTENTION && !redone(t, m) ? output_bytes(t, m) : 0;
    return leaving(t, m, bytes, bytes / t->lower->store_bytes);
}

/*
 * Autograd saves inside a module what that keeps. Core attention saves its output, too, which the product behind it has as well: it
 * travels with both, and leaves with the latter, or at once where that has a quantized copy of its own.
 */
static struct maq_moved moved_bytes(const struct tally *t)
{
    const struct maq_module *producer = NULL;
    struct maq_moved sum = {0, 0};
    for (uint32_t i = 0; i < t->layer->n_modules; i++) {
        const struct maq_module *m = &t->layer->modules[i];
        bool kept = !(m->flags & MAQ_MODULE_SHARED_INPUT) && input_present(t, producer);
        double output = output_leaving(t, m),
               rest = input_leaving(t, m, kept ? input_bytes(t, m) : 0) + inside_leaving(t, m);
        sum.freed += rest + (output > 0 ? attention_output(t, m) : 0);
        sum.travels += rest + output;
        producer = m;
    }
    return sum;
}

/* ---- the tensors of a pass, for the allocator ---- */

static double output_bytes(const struct tally *t, const struct maq_module *m)
{
    const struct maq_lower *lo = t->lower;
    struct maq_local d = maq_lower_local(lo, t->layer, m);
    if (m->kind == MAQ_MODULE_RESIDUAL || m->kind == MAQ_MODULE_EMBEDDING)
        return (double)lo->tokens_region * (double)m->out * maq_stream_bytes(lo);
    if (m->kind == MAQ_MODULE_LOSS)
        return 0; /* a number per token; the 4-byte logits are kept */
    return rows_of(lo, t->layer, m) * (double)d.out * lo->store_bytes;
}

static double scratch_bytes(const struct tally *t, const struct maq_module *m, bool backward)
{
    const struct maq_lower *lo = t->lower;
    if (m->kind == MAQ_MODULE_LINEAR && (m->flags & MAQ_MODULE_GATHER_IN) && lo->plan->sequence_parallel == MAQ_ON)
        return (double)lo->tokens * (double)m->in * lo->store_bytes;
    if (m->kind == MAQ_MODULE_ATTENTION && lo->attention == MAQ_ATTENTION_UNFUSED)
        return attention_scratch(lo, &m->u.attention, backward);
    if (m->kind == MAQ_MODULE_ATTENTION)
        return passing_copies(t, m, backward);
    if (m->kind == MAQ_MODULE_LOSS && torch_loss(lo)) /* a copy in the type of the loss; two gradients */
        return rows_of(lo, t->layer, m) * (double)maq_lower_local(lo, t->layer, m).in *
               (backward || !eager_loss(lo) ? 2 * loss_element(lo)
                : lo->plan->fp32_upcast     ? loss_element(lo)
                                            : 0);
    return 0;
}

/* Modules that keep something made from their input, not the input. */
static bool keeps_copy(const struct tally *t, const struct maq_module *m)
{
    bool attends_narrow = m->kind == MAQ_MODULE_ATTENTION && maq_lower_attends_narrow(t->lower);
    bool casts = m->kind == MAQ_MODULE_NORM ? maq_norm_is_apart(t->lower, m)
                                            : m->kind == MAQ_MODULE_LINEAR &&
                                                  (maq_autocasts(t->lower->job) ||
                                                   maq_linear_bytes(t->lower, t->layer, m) != t->lower->store_bytes);
    return quantized(t->lower, m) || attends_narrow || casts || m->kind == MAQ_MODULE_RESIDUAL ||
           m->kind == MAQ_MODULE_EMBEDDING || m->kind == MAQ_MODULE_LOSS;
}

/* Of an embedding, whole, before it is added to the buffer of all gradients; without such a buffer it is the gradient itself. */
static double table_gradient(const struct maq_lower *lo, const struct maq_module *m)
{
    bool adds = !lo->job->framework.frees_gradients && maq_lower_trained(lo) && lo->plan->lora_rank == 0;
    return adds && m->kind == MAQ_MODULE_EMBEDDING ? maq_lower_local_params(lo, m) * lo->store_bytes : 0;
}

static struct maq_walk_step walk_step(const struct tally *t, const struct maq_module *m,
                                      const struct maq_module *producer)
{
    const struct maq_lower *lo = t->lower;
    struct maq_local d = maq_lower_local(lo, t->layer, m);
    bool shares = (m->flags & MAQ_MODULE_SHARED_INPUT) != 0, linear = m->kind == MAQ_MODULE_LINEAR;
    double kept = shares || !input_present(t, producer) ? 0 : input_bytes(t, m);
    struct maq_walk_step s = {
        .out = output_bytes(t, m),
        .scratch = {scratch_bytes(t, m, false) + maq_dora_working_bytes(lo, t->layer, m), scratch_bytes(t, m, true)},
        .pieces = {1, m->kind == MAQ_MODULE_LOSS && eager_loss(lo) ? 2 : 1},
        .multiplies = linear,
        .shares_input = shares};
    double away = input_leaving(t, m, kept), inside = inside_leaving(t, m);
    s.input_stays = kept > 0 && away == 0 && !keeps_copy(t, m);
    s.keep = (s.input_stays ? 0 : kept - away) + kept_inside(t, m) - inside;
    s.scratch[1] += away + inside; /* it is back */
    if (m->kind == MAQ_MODULE_ATTENTION && returns_narrow(lo) && output_leaving(t, m) == 0)
        s.keep += attention_output(t, m);
    s.input_stays |= producer && output_stays(t, producer) && !returns_narrow(lo) && output_leaving(t, producer) == 0;
    if (m->kind != MAQ_MODULE_EMBEDDING)
        s.gradient = m->kind == MAQ_MODULE_RESIDUAL ? s.out : rows_of(lo, t->layer, m) * (double)d.in * lo->store_bytes;
    s.weight = table_gradient(lo, m);
    if (linear && !lo->plan->weight_grad_fusion && maq_lower_trained(lo))
        s.weight = maq_lower_local_params(lo, m) * lo->store_bytes;
    return s;
}

static struct maq_walk walk_layer(const struct tally *t, double missing)
{
    struct maq_lower *lo = t->lower;
    struct maq_walk_step *steps = MAQ_ARENA_NEW(lo->arena, struct maq_walk_step, t->layer->n_modules);
    if (!steps) {
        lo->failed = true;
        return (struct maq_walk){NULL, 0, 0};
    }
    for (uint32_t i = 0; i < t->layer->n_modules; i++)
        steps[i] = walk_step(t, &t->layer->modules[i], i > 0 ? &t->layer->modules[i - 1] : NULL);
    return (struct maq_walk){steps, t->layer->n_modules, missing};
}

/* ---- selective checkpointing by operator ---- */

static double widest_module(const struct tally *t, bool backward, enum which which);

/* Of a linear's output, the products that are kept, and what a reduce-scatter made of all of it. */
static double kept_of_linear(const struct tally *t, const struct maq_module *m, uint32_t *products)
{
    const struct maq_lower *lo = t->lower;
    int64_t out[MAQ_LORA_SPANS], width = 0;
    bool scattered =
        lo->plan->tp > 1 && lo->plan->sequence_parallel == MAQ_ON && (m->flags & MAQ_MODULE_REDUCE_OUT) != 0;
    for (uint32_t i = 0, n = maq_lower_products(out, lo, t->layer, m); i < n; i++)
        width += maq_lower_product_is_kept(products) ? out[i] : 0;
    return lo->store_bytes *
           (rows_of(lo, t->layer, m) * (double)width + (scattered ? (double)lo->tokens_region * (double)m->out : 0));
}

/* Of a module's output, what is kept. */
static double kept_by_op(const struct tally *t, const struct maq_module *m, uint32_t *products)
{
    if (m->kind == MAQ_MODULE_ATTENTION && t->lower->attention != MAQ_ATTENTION_UNFUSED)
        return output_bytes(t, m) + attention_inside(t->lower, m);
    return m->kind == MAQ_MODULE_LINEAR ? kept_of_linear(t, m, products) : 0;
}

static bool by_op(const struct maq_lower *lo, const struct maq_layer *layer)
{
    const struct maq_model *m = &lo->job->model;
    bool repeats = layer >= m->kinds && layer < m->kinds + m->n_kinds;
    return repeats && maq_lower_by_op(lo);
}

static void keep_by_op(struct maq_block *block, const struct tally *t, double all)
{
    struct maq_walk_step *steps = MAQ_ARENA_NEW(t->lower->arena, struct maq_walk_step, t->layer->n_modules);
    double sum = maq_lower_border_bytes(t->lower, t->layer->hidden);
    uint32_t products = 0;
    if (!steps) {
        t->lower->failed = true;
        return;
    }
    for (uint32_t i = 0; i < t->layer->n_modules; i++) {
        double kept = kept_by_op(t, &t->layer->modules[i], &products);
        sum += kept;
        steps[i] = block->walk[0].steps[i];
        steps[i].keep = kept;
        steps[i].input_stays = i == 0;
    }
    for (int redone = 0; redone < 2; redone++) {
        block->act_bytes[redone] = sum;
        block->walk[redone] = (struct maq_walk){steps, t->layer->n_modules, all - sum};
        block->backward_transient[redone] = all - sum + widest_module(t, true, ALL);
    }
}

/* Largest input + output of one module that is not kept: gradients and temporaries of a pass. */
static double widest_module(const struct tally *t, bool backward, enum which which)
{
    double widest = 0;
    for (uint32_t i = 0; i < t->layer->n_modules; i++) {
        const struct maq_module *m = &t->layer->modules[i];
        struct maq_local d = maq_lower_local(t->lower, t->layer, m);
        double rows = rows_of(t->lower, t->layer, m), e = t->lower->store_bytes;
        double bytes = rows * (double)d.out * e;
        if (m->kind == MAQ_MODULE_LOSS)
            bytes = rows * (double)d.in * loss_transient(t->lower, backward);
        else if (m->kind == MAQ_MODULE_RESIDUAL || m->kind == MAQ_MODULE_EMBEDDING)
            bytes = (double)t->lower->tokens_region * (double)m->out * maq_stream_bytes(t->lower);
        if (backward && m->kind == MAQ_MODULE_EMBEDDING)
            bytes += table_gradient(t->lower, m);
        else if (backward && m->kind != MAQ_MODULE_LOSS)
            bytes += rows * (double)d.in * e;
        if (m->kind == MAQ_MODULE_LINEAR && (m->flags & MAQ_MODULE_GATHER_IN))
            bytes += t->lower->plan->sequence_parallel == MAQ_ON ? (double)t->lower->tokens * (double)m->in * e : 0;
        if (m->kind == MAQ_MODULE_ATTENTION && redone(t, m))
            bytes += attention_inside(t->lower, m);
        bytes += passing_copies(t, m, backward);
        if (!backward || t->lower->plan->recompute == MAQ_RECOMPUTE_FULL)
            bytes += maq_dora_working_bytes(t->lower, t->layer, m);
        if (m->kind == MAQ_MODULE_ATTENTION && backward && t->lower->attention == MAQ_ATTENTION_UNFUSED)
            bytes += attention_scratch(t->lower, &m->u.attention, true);
        widest = bytes > widest && counts(t, i, which) ? bytes : widest;
    }
    return widest;
}

/*
 * Hidden states that lie in memory of the graphs' own: each part that is captured reads its input from there, a copy of what the
 * layer before, or the part before, has written; where the other part runs outside, the residual and what the norm returned are
 * left there for it.
 */
static uint32_t graph_tensors(const struct tally *t)
{
    uint32_t second = maq_lower_second_half(t->layer), n = t->layer->n_modules;
    bool first = second > 0 && counts(t, 0, IN_GRAPHS), behind = second < n && counts(t, second, IN_GRAPHS),
         rest = n > 0 && counts(t, n - 1, IN_GRAPHS);
    return (first || behind ? 1 : 0) + ((first || behind) && !rest ? 1 : 0) + (behind && !rest ? 1 : 0);
}

static void graph_memory(struct maq_block *block, const struct tally *plain, const struct tally *chosen)
{
    struct maq_block_graphs *g = &block->graphs;
    bool whole = plain->lower->plan->recompute == MAQ_RECOMPUTE_FULL; /* refused beside them: plan/incompatible.c */
    double all = kept_bytes(plain, IN_GRAPHS), outside = kept_bytes(plain, OUTSIDE);
    g->hidden_bytes = maq_lower_border_bytes(plain->lower, plain->layer->hidden);
    g->buffer_bytes = graph_tensors(plain) * g->hidden_bytes;
    g->act_bytes[0] = all;
    g->act_bytes[1] = whole ? 0 : kept_bytes(chosen, IN_GRAPHS);
    for (int redone = 0; redone < 2; redone++) {
        g->working[redone] = widest_module(plain, true, IN_GRAPHS) + (redone ? all - g->act_bytes[1] : 0);
        g->apart[redone] =
            widest_module(plain, true, OUTSIDE) + (redone ? outside - (whole ? 0 : kept_bytes(chosen, OUTSIDE)) : 0);
    }
}

void maq_block_memory(struct maq_block *block, struct maq_lower *lower)
{
    uint32_t selective = lower->plan->recompute == MAQ_RECOMPUTE_SELECTIVE ? lower->plan->recompute_parts : 0;
    if (selective & (1u << MAQ_PART_MOE))
        selective |= 1u << MAQ_PART_ROUTER | 1u << MAQ_PART_MOE_ACT | 1u << MAQ_PART_SHARED_EXPERTS;
    struct tally plain = {lower, block->layer, 0}, chosen = {lower, block->layer, selective};
    double all = kept_bytes(&plain, ALL);
    block->act_bytes[0] = all;
    block->moved[0] = moved_bytes(&plain);
    block->walk[0] = walk_layer(&plain, 0);
    block->forward_transient = widest_module(&plain, false, ALL);
    block->backward_transient[0] = widest_module(&plain, true, ALL);
    maq_te_transients(&block->forward_transient, &block->backward_transient[0], lower, block->layer, all);
    if (lower->plan->recompute == MAQ_RECOMPUTE_FULL) {
        /* only the layer's input is kept; the rest is recomputed in the backward pass */
        block->act_bytes[1] = (double)lower->tokens_region * (double)block->layer->hidden * maq_stream_bytes(lower);
        block->walk[1] = block->walk[0];
        block->backward_transient[1] = all + block->backward_transient[0];
    } else {
        block->act_bytes[1] = kept_bytes(&chosen, ALL);
        block->moved[1] = moved_bytes(&chosen);
        block->walk[1] = walk_layer(&chosen, all - block->act_bytes[1]);
        block->backward_transient[1] = all - block->act_bytes[1] + block->backward_transient[0];
    }
    if (lower->plan->graph_scope != 0 && !lower->plan->cuda_graphs)
        graph_memory(block, &plain, &chosen);
    if (by_op(lower, block->layer) && block->walk[0].steps)
        keep_by_op(block, &plain, all);
}
