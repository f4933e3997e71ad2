/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experts.c - the experts of a layer: how many a rank reads and computes, and whose kernels do it.
 *
 * Of vLLM the release says which (docs/serving.md has the files that this was read from):
 *
 *   16 bits           Triton's; from 0.20 on Blackwell FlashInfer's
 *   8 bits, a tensor  Triton's before 0.15, from then on FlashInfer's
 *   8 bits, blocks    Triton's before 0.11; DeepGEMM's up to 0.14; from 0.15 FlashInfer's, and from 0.17 on Hopper Triton's where no rank has experts
 *                     of its own
 *   MXFP4             gpt-oss: triton_kernels' on Hopper, on Blackwell FlashInfer's with inputs in 16 bits; other models: Marlin's before
 *                     Blackwell, on it FlashInfer's with inputs in MXFP8; before Hopper, and with adapters, Marlin's
 *                     (layers/fused_moe/oracle/mxfp4.py of 0.33.0, layers/quantization/mxfp4.py of 0.18.0)
 *   INT4              Marlin's, as SGLang's
 *
 * or moe_backend, where somebody says it.
 *
 * Tables have FlashInfer's and Triton's times, the latter on Blackwell in SGLang's table, which has the same kernel. DeepGEMM's contiguous layout
 * gives every expert a multiple of ALIGNMENT rows, and is allocated for the worst case,
 *
 *   rows = round_up(tokens topk + experts (ALIGNMENT - 1), ALIGNMENT)
 *
 * with the copies for all ranks and the experts of this one, since the host does not know how they spread. All of these rows pass the products: on
 * Blackwell they are computed, on Hopper blocks of no expert are loaded and not multiplied, and activation and quantization take them as
 * well. So 8 tokens of Qwen3-235B on 8 ranks are products of 2,176 rows.
 */
#include <math.h>
#include <string.h>

#include "base/stat/maximum.h"
#include "serve/engine_release.h"
#include "serve/pass/pass.h"

#define ALIGNMENT 128.0
/* Weights in MXFP4 for Marlin's kernels are padded to multiples of these (round_up_hidden_size_and_intermediate_size() of oracle/mxfp4.py). */
#define MARLIN_HIDDEN_TILE 256
#define MARLIN_FFN_TILE 128

/* In blocks of scales: DeepGEMM's kernels were turned on by default in 0.11, at first for batches of a block and more on Hopper. */
static void choose_vllm_blocks(struct maq_passes *p, int32_t release)
{
    bool hopper = p->device->arch == MAQ_ARCH_HOPPER, blackwell = p->device->arch == MAQ_ARCH_BLACKWELL;
    if (!hopper && !blackwell)
        return;
    if (release < MAQ_VLLM_DEEPGEMM || (release >= MAQ_RELEASE(0, 17, 0) && hopper && p->ep == 1) ||
        (release >= MAQ_RELEASE(0, 14, 0) && release < MAQ_VLLM_FLASHINFER && p->moe_tp >= 8)) {
        p->expert_kernels = MAQ_EXPERTS_TRITON;
    } else if (release < MAQ_VLLM_FLASHINFER) {
        p->expert_kernels = MAQ_EXPERTS_CONTIGUOUS;
        p->contiguous_from = release < MAQ_RELEASE(0, 11, 1) && hopper ? (int64_t)ALIGNMENT : 0;
    }
}

static bool is_gpt_oss(const struct maq_passes *p)
{
    return p->job->model.type && strcmp(p->job->model.type, "gpt_oss") == 0;
}

static void choose_vllm_mxfp4(struct maq_passes *p, bool lora)
{
    if (lora)
        p->expert_kernels = MAQ_EXPERTS_MARLIN;
    else if (is_gpt_oss(p) && p->device->arch == MAQ_ARCH_HOPPER)
        p->expert_kernels = MAQ_EXPERTS_TRITON;
    else if (p->device->arch < MAQ_ARCH_BLACKWELL)
        p->expert_kernels = MAQ_EXPERTS_MARLIN;
}

static void choose_sglang(struct maq_passes *p, const struct maq_serve_options *o)
{
    if (o->expert_weights == MAQ_WEIGHTS_INT4)
        p->expert_kernels = MAQ_EXPERTS_MARLIN;
    else if (p->experts.bytes >= 1 && p->device->arch < MAQ_ARCH_BLACKWELL)
        p->expert_kernels = MAQ_EXPERTS_TRITON;
}

static void choose_vllm(struct maq_passes *p, const struct maq_serve_options *o)
{
    int32_t release = maq_engine_release(o->version);
    bool blackwell = p->device->arch == MAQ_ARCH_BLACKWELL;
    if (o->expert_weights == MAQ_WEIGHTS_INT4)
        p->expert_kernels = MAQ_EXPERTS_MARLIN;
    else if (o->expert_weights == MAQ_WEIGHTS_MXFP4)
        choose_vllm_mxfp4(p, o->lora.enabled);
    else if (p->experts.bytes < 1)
        return;
    else if (o->lora.enabled)
        p->expert_kernels = MAQ_EXPERTS_TRITON;
    else if (o->expert_weights == MAQ_WEIGHTS_BF16 && (!blackwell || release < MAQ_RELEASE(0, 20, 0)))
        p->expert_kernels = MAQ_EXPERTS_TRITON;
    else if (o->expert_weights == MAQ_WEIGHTS_FP8 && release < MAQ_VLLM_FLASHINFER)
        p->expert_kernels = MAQ_EXPERTS_TRITON;
    else if (o->expert_weights == MAQ_WEIGHTS_FP8_BLOCK)
        choose_vllm_blocks(p, release);
}

/* Whose kernels, where that is asked for. */
static enum maq_expert_kernels kernels_of(enum maq_moe_backend backend)
{
    return backend == MAQ_MOE_BACKEND_TRITON      ? MAQ_EXPERTS_TRITON
           : backend == MAQ_MOE_BACKEND_DEEP_GEMM ? MAQ_EXPERTS_CONTIGUOUS
           : backend == MAQ_MOE_BACKEND_MARLIN    ? MAQ_EXPERTS_MARLIN
                                                  : MAQ_EXPERTS_LIBRARY;
}

/* On Blackwell kernels for MXFP4 take inputs in MXFP8; vLLM's for gpt-oss only where that is asked for. */
static bool quantizes_inputs(const struct maq_passes *p, const struct maq_serve_options *o)
{
    return p->device->arch >= MAQ_ARCH_BLACKWELL && o->expert_weights == MAQ_WEIGHTS_MXFP4 &&
           p->expert_kernels == MAQ_EXPERTS_LIBRARY &&
           (o->engine != MAQ_ENGINE_VLLM || !is_gpt_oss(p) || o->moe_backend == MAQ_MOE_BACKEND_FLASHINFER_AFP8);
}

/*
 * Of Triton's kernels in 8 bits there are times with scales of blocks alone, and those with one a tensor are taken to be as fast. DeepEP's
 * exchanges have kernels of their own, which are taken to be the library's.
 */
void maq_pass_choose_experts(struct maq_passes *p, const struct maq_serve_options *o)
{
    bool gathers = p->exchange == MAQ_EXCHANGE_GATHER;
    p->expert_kernels = MAQ_EXPERTS_LIBRARY;
    if (gathers && o->moe_backend != MAQ_MOE_BACKEND_AUTO)
        p->expert_kernels = kernels_of(o->moe_backend);
    else if (gathers && o->engine == MAQ_ENGINE_VLLM)
        choose_vllm(p, o);
    else if (gathers && o->engine == MAQ_ENGINE_SGLANG)
        choose_sglang(p, o);
    p->experts_by_python = p->expert_kernels == MAQ_EXPERTS_TRITON || p->expert_kernels == MAQ_EXPERTS_CONTIGUOUS;
    p->pads_for_marlin = p->expert_kernels == MAQ_EXPERTS_MARLIN && o->engine == MAQ_ENGINE_VLLM &&
                         o->expert_weights == MAQ_WEIGHTS_MXFP4;
    if (quantizes_inputs(p, o))
        p->experts.dtype = MAQ_FP8;
    if (p->expert_kernels == MAQ_EXPERTS_TRITON && p->experts.dtype == MAQ_FP8)
        p->experts.flags = MAQ_OP_BLOCKS;
}

/* What the busiest rank computes in a layer. */
struct share {
    double copies;     /* of tokens, for all ranks: a token has one for each of the experts that it goes to */
    double rows, read; /* copies for its experts; experts of which it reads the weights */
    double local;      /* experts that it has */
};

/*
 * The experts of the rank that the others wait for. Each token chooses k of E experts by itself: of a rank's E/ep experts those that no token
 * chose are not read, so that 16 tokens of 8 experts each read 82 of 128 and not all of them, as a batch would that is dealt evenly. How often
 * an expert is chosen is of a gamma distribution with the mean of all and `skew` as its coefficient of variation c, which leaves
 *
 *   unread = (1 + h c^2)^(-1/c^2),   h = -tokens ln(1 - k/E)       [share of the experts]     exp(-h) = (1 - k/E)^tokens for c = 0
 *
 * Both the experts that are read and the rows differ between ranks, as draws do and by the sums of their experts' popularity: `late` is by how
 * many standard deviations the largest of them lies above the mean.
 */
static struct share share_of(const struct maq_passes *p, const struct maq_moe_geometry *g, int64_t tokens)
{
    struct share s = {.copies = (double)(tokens * g->topk)};
    double part = 1.0 / p->ep, late = maq_expected_maximum((uint32_t)p->ep), mean = s.copies * part,
           c2 = p->expert_skew * p->expert_skew, chosen = fmin(1, (double)g->topk / (double)g->experts);
    double unread =
        c2 > 0 && chosen < 1 ? pow(1 - log1p(-chosen) * (double)tokens * c2, -1 / c2) : pow(1 - chosen, (double)tokens);
    s.local = fmax(1, (double)g->experts * part);
    s.read = s.local * (1 - unread) + late * sqrt(s.local * unread * (1 - unread));
    s.rows = fmin(s.copies, mean + late * sqrt((mean + mean * mean * c2 / s.local) * (1 - part)));
    s.read = fmin(fmin(s.read, s.local), s.rows);
    return s;
}

static int64_t round_up(int64_t n, int64_t tile)
{
    return (n + tile - 1) / tile * tile;
}

static int64_t whole(double x)
{
    return (int64_t)fmax(1, x + 0.5);
}

/*
 * A product of the contiguous layout: all rows are computed, and the weights of the experts that are read come from memory for a block of rows each.
 * Neither hides the other: t = (compute^2 + read^2)^(1/2). InferSim timed such products of up to 512 rows an expert (grouped_gemm, prefill): on an
 * H800 16, of which half are within 2.8 %, and 12.8 % too fast in the median if the longer hid the shorter; on an H20, which is short of
 * arithmetic and not of memory, 82, 14.5 % too slow and 2.4.
 */
static void contiguous_product(const struct maq_passes *p, const struct share *s, int64_t rows, int64_t n, int64_t k,
                               double times, struct maq_pass_parts *out)
{
    struct maq_op all = maq_pass_op(MAQ_OP_GEMM, &p->experts, 0, rows, n, k, 1),
                  read = maq_pass_op(MAQ_OP_GROUPED_GEMM, &p->experts, p->experts.flags, (int64_t)ALIGNMENT, n, k,
                                     whole(s->read));
    double compute_s = maq_pass_seconds(p, &all), both_s = hypot(compute_s, maq_pass_seconds(p, &read));
    maq_pass_cost(p, &all, times, MAQ_SERVE_EXPERTS, out);
    out->ns[MAQ_SERVE_EXPERTS] += (both_s - compute_s) * 1e9 * times;
}

/* Rows are counted, placed by two kernels, and after the products added up by a token: DeepGemmExperts.apply(). */
static void contiguous(const struct maq_passes *p, const struct share *s, const struct maq_module *up, int64_t tokens,
                       int64_t ffn, bool gated, double times, struct maq_pass_parts *out)
{
    int64_t rows = (int64_t)(ceil((s->copies + s->local * (ALIGNMENT - 1)) / ALIGNMENT) * ALIGNMENT),
            wide = gated ? 2 * ffn : ffn;
    const struct maq_op before[] = {maq_pass_op(MAQ_OP_QUANTIZE, &p->experts, 0, tokens, up->in, 1, 0),
                                    maq_pass_op(MAQ_OP_ELEMENTWISE, &p->plain, 0, whole(s->copies), 4, 0, 0),
                                    maq_pass_op(MAQ_OP_ELEMENTWISE, &p->plain, 0, rows, 0, 4, 0),
                                    maq_pass_op(MAQ_OP_PERMUTE, &p->experts, 0, whole(s->rows), up->in, 0, 0)},
                        between[] = {maq_pass_op(MAQ_OP_ACTIVATION, &p->plain, gated ? MAQ_OP_GATED : 0, rows, wide,
                                                 ffn, 0),
                                     maq_pass_op(MAQ_OP_QUANTIZE, &p->experts, 0, rows, ffn, 1, 0)},
                        after = maq_pass_op(MAQ_OP_PERMUTE, &p->plain, 0, whole(s->rows), up->in, 0, 0);
    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++)
        maq_pass_cost(p, &before[i], times, MAQ_SERVE_EXPERTS, out);
    contiguous_product(p, s, rows, wide, up->in, times, out);
    for (size_t i = 0; i < sizeof between / sizeof between[0]; i++)
        maq_pass_cost(p, &between[i], times, MAQ_SERVE_EXPERTS, out);
    contiguous_product(p, s, rows, up->in, ffn, times, out);
    maq_pass_cost(p, &after, times, MAQ_SERVE_EXPERTS, out);
}

void maq_pass_experts(const struct maq_passes *p, const struct maq_layer *layer, const struct maq_module *up,
                      int64_t tokens, double times, struct maq_pass_parts *out)
{
    struct share s = share_of(p, &up->u.moe, tokens);
    enum maq_expert_kernels kernels = p->expert_kernels;
    bool gated = false;
    int64_t ffn = 1;
    for (uint32_t i = 0; i < layer->n_modules; i++)
        if (layer->modules[i].kind == MAQ_MODULE_EXPERT_ACTIVATION) {
            gated = (layer->modules[i].flags & MAQ_MODULE_GATED) != 0;
            ffn = layer->modules[i].out / p->moe_tp > 0 ? layer->modules[i].out / p->moe_tp : 1;
        }
    if (kernels == MAQ_EXPERTS_CONTIGUOUS && tokens < p->contiguous_from)
        kernels = MAQ_EXPERTS_TRITON;
    if (kernels == MAQ_EXPERTS_CONTIGUOUS) {
        contiguous(p, &s, up, tokens, ffn, gated, times, out);
        return;
    }
    unsigned flags = (gated ? MAQ_OP_GATED : 0u) | (kernels == MAQ_EXPERTS_TRITON ? MAQ_OP_TRITON_EXPERTS : 0u) |
                     (kernels == MAQ_EXPERTS_MARLIN ? MAQ_OP_MARLIN_EXPERTS : 0u);
    int64_t hidden = up->in;
    if (p->pads_for_marlin) {
        hidden = round_up(hidden, MARLIN_HIDDEN_TILE);
        ffn = round_up(ffn, MARLIN_FFN_TILE);
    }
    struct maq_op op = maq_pass_op(MAQ_OP_EXPERTS, &p->experts, flags, whole(s.rows), hidden, ffn, whole(s.read));
    op.resident = (uint32_t)whole(s.local);
    op.d[5] = up->u.moe.topk;
    maq_pass_cost(p, &op, times, MAQ_SERVE_EXPERTS, out);
}
