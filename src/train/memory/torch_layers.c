/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torch_layers.c - what is kept by layers of PyTorch programs that no kernel fuses; per number that a module reads, e bytes in store.
 *
 * Autocast (torch/csrc, aten/src/ATen/autocast_mode.cpp): parameters and the residual stream are in 4 bytes. A product casts its
 * weight, once for each forward pass (cached_cast()), and its input, each product anew: q, k and v keep three copies of one tensor.
 * Autograd keeps the weight's copy for the input gradient, so it stays as long as the activations. What products return is in 16
 * bits. With FSDP parameters come in 16 bits, and nothing is left to cast; ZeRO-1 and 2 are DeepSpeed's, whose module is in 16 bits itself.
 *
 * Norms of the transformers library (LlamaRMSNorm.forward() and its siblings): the input is widened; its square and its product
 * with the root keep the widened one, the product with the weight what was narrowed again: 4 + e. Under autocast the input is wide
 * already and is not narrowed: 4 + 4; of norms inside heads it is not. A weight that is not trained
 * needs no gradient, so its factor is not kept. LayerNorm is one kernel and keeps its input.
 *
 * Gated activations (LlamaMLP.forward(): act(gate) * up): the product keeps both factors, the activation its input.
 *
 * Experts (transformers, integrations/moe.py, grouped_mm_experts_forward()): what they return is multiplied by the router's
 * probabilities, whose gradient needs it.
 *
 * Adapters (peft/tuners/lora/layer.py, Linear.forward()): A and B are in 4 bytes (autocast_adapter_dtype), and each casts its input
 * anew (_cast_input_dtype()); the frozen product keeps nothing. Under autocast the widened one is narrowed again for the product.
 *
 * DoRA (peft 0.21.2, tuners/lora/dora.py, DoraLinearLayer.forward()): the two products with the trained magnitudes keep what the linear
 * returned and what the adapter did. While the linear runs, autograd holds the unit matrix and what A made of it for B A, which is held as
 * well; then come B A times its factor and the sum with W, and W where it had to be written out: in (in + r) + 3 in out numbers, and in out.
 */
#include "train/memory/torch_layers.h"

#include <math.h>

#include "lower/local.h"

#define WIDE 4

/* Types in which autocast has something to do. */
static bool narrow_store(const struct maq_job *job)
{
    return job->store_dtype == MAQ_BF16 || job->store_dtype == MAQ_FP16;
}

bool maq_autocasts(const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    return job->framework.autocast && narrow_store(job) && p->sharding == MAQ_SHARDING_NONE && !p->pure_low_precision &&
           p->lora_rank == 0;
}

double maq_stream_bytes(const struct maq_lower *lo)
{
    return maq_autocasts(lo->job) ? WIDE : lo->store_bytes;
}

bool maq_norm_is_apart(const struct maq_lower *lo, const struct maq_module *m)
{
    return lo->job->framework.norms_apart && !lo->plan->fused_kernels && !(m->flags & MAQ_MODULE_LAYERNORM) &&
           lo->store_bytes < WIDE;
}

double maq_norm_bytes(const struct maq_lower *lo, const struct maq_module *m)
{
    bool of_heads = m->shard == MAQ_SHARD_HEADS, wide = maq_autocasts(lo->job) && !of_heads;
    if (!maq_norm_is_apart(lo, m))
        return wide ? WIDE : lo->store_bytes;
    if (!maq_lower_trained(lo))
        return WIDE;
    return WIDE + (wide ? WIDE : lo->store_bytes);
}

double maq_linear_bytes(const struct maq_lower *lo, const struct maq_layer *layer, const struct maq_module *m)
{
    int64_t out[MAQ_LORA_SPANS];
    if (maq_lower_adapted(lo, m) && lo->job->framework.adapters_widen)
        return maq_lower_adapters(out, lo, layer, m) * (lo->job->framework.autocast ? lo->store_bytes : WIDE);
    if (maq_autocasts(lo->job))
        return maq_lower_products(out, lo, layer, m) * lo->store_bytes;
    return lo->store_bytes;
}

double maq_weight_copy_bytes(const struct maq_lower *lo, const struct maq_layer *layer, const struct maq_module *m)
{
    if (!maq_autocasts(lo->job) || m->kind != MAQ_MODULE_LINEAR)
        return 0;
    struct maq_local d = maq_lower_local(lo, layer, m);
    return (double)d.in * (double)d.out * lo->store_bytes;
}

/* Bytes of a number that an adapter returns. */
static double adapter_bytes(const struct maq_lower *lo)
{
    const struct maq_framework *f = &lo->job->framework;
    return f->adapters_widen && !f->autocast ? WIDE : lo->store_bytes;
}

double maq_dora_bytes(const struct maq_lower *lo, const struct maq_layer *layer, const struct maq_module *m)
{
    int64_t out[MAQ_LORA_SPANS];
    double sum = 0;
    if (!lo->plan->use_dora || m->kind != MAQ_MODULE_LINEAR)
        return 0;
    for (uint32_t a = 0, n = maq_lower_adapters(out, lo, layer, m); a < n; a++)
        sum += (double)out[a] * (lo->store_bytes + adapter_bytes(lo));
    return sum;
}

double maq_dora_working_bytes(const struct maq_lower *lo, const struct maq_layer *layer, const struct maq_module *m)
{
    int64_t out[MAQ_LORA_SPANS];
    double most = 0;
    if (!lo->plan->use_dora || m->kind != MAQ_MODULE_LINEAR)
        return 0;
    const double in = (double)maq_lower_local(lo, layer, m).in, rank = lo->plan->lora_rank, e = adapter_bytes(lo);
    for (uint32_t a = 0, n = maq_lower_adapters(out, lo, layer, m); a < n; a++) {
        double weight = in * (double)out[a], copy = maq_lower_base_quantized(lo, m) ? weight * lo->store_bytes : 0;
        most = fmax(most, in * (in + rank) * e + 3 * weight * e + copy);
    }
    return most;
}

double maq_gate_bytes(const struct maq_lower *lo, const struct maq_layer *layer, const struct maq_module *m)
{
    bool apart = lo->job->framework.gate_apart && !lo->plan->fused_kernels,
         activates = m->kind == MAQ_MODULE_ACTIVATION || m->kind == MAQ_MODULE_EXPERT_ACTIVATION;
    if (!apart || !activates || !(m->flags & MAQ_MODULE_GATED))
        return 0;
    return (double)maq_lower_local(lo, layer, m).out * lo->store_bytes;
}

double maq_scored_bytes(const struct maq_lower *lo, const struct maq_layer *layer, const struct maq_module *m)
{
    bool scores = lo->job->framework.norms_apart && !lo->plan->fused_kernels && m->kind == MAQ_MODULE_EXPERT_LINEAR;
    if (!scores || m + 1 >= layer->modules + layer->n_modules || m[1].kind != MAQ_MODULE_COMBINE)
        return 0;
    return (double)maq_lower_local(lo, layer, m).out * lo->store_bytes;
}
