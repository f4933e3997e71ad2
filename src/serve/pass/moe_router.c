/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moe_router.c - the router of a layer of experts: its product, and the choice of k of them.
 *
 * Most models' scores come of a product in 16 bits. Of those below an engine keeps the router's weights in 32 bits and converts its input to them; the
 * product runs on the units of 32 bits then (cuBLAS without TF32: VLLM_FLOAT32_MATMUL_PRECISION, "highest"), at a fifteenth of the rate and less, and
 * every rank computes all of it. vLLM has kernels of its own for a few tokens, and on Blackwell one that makes it three products in 16 bits:
 *
 *                     up to 32 tokens on Hopper and Blackwell     three products, on Blackwell
 *   MiniMax M2        from 0.24 on                                from 0.30 on
 *   the others        from 0.33 on                                from 0.31 on
 *
 * Sources: the file of each model, vllm 0.12.0 to 0.33.0 (model_executor/models, layers/fused_moe/router/gate_linear.py), sglang 0.5.9
 * (srt/models), TensorRT-LLM 0059271 (_torch/models/modeling_minimaxm2.py).
 */
#include <string.h>

#include "base/check.h"
#include "serve/engine_release.h"
#include "serve/pass/pass.h"

#define FEW_TOKENS 32

enum { VLLM = 1 << MAQ_ENGINE_VLLM, SGLANG = 1 << MAQ_ENGINE_SGLANG, TRTLLM = 1 << MAQ_ENGINE_TRTLLM };

static const struct {
    const char *type; /* model_type of a config.json */
    unsigned engines;
} in_32_bits[] = {
    {"minimax_m2", VLLM | SGLANG | TRTLLM},
    {"minimax", VLLM},
    {"afmoe", VLLM},
    {"ernie4_5_moe", VLLM},
    {"glm4_moe", VLLM},
    {"mimo_v2_flash", VLLM},
    {"step3p5", VLLM},
    {"nemotron_h", SGLANG},
    {"grok-1", SGLANG},
};

static bool is_minimax_m2(const struct maq_passes *p)
{
    return strcmp(p->job->model.type, "minimax_m2") == 0;
}

bool maq_pass_router_is_wide(const struct maq_passes *p)
{
    const char *type = p->job->model.type;
    for (size_t i = 0; type && i < MAQ_COUNT(in_32_bits); i++)
        if (strcmp(in_32_bits[i].type, type) == 0)
            return (in_32_bits[i].engines >> p->engine & 1) != 0;
    return false;
}

static bool has_small_kernel(const struct maq_passes *p, int64_t tokens)
{
    int32_t from = is_minimax_m2(p) ? MAQ_RELEASE(0, 24, 0) : MAQ_RELEASE(0, 33, 0);
    return p->engine == MAQ_ENGINE_VLLM && p->release >= from && tokens <= FEW_TOKENS &&
           p->device->arch >= MAQ_ARCH_HOPPER;
}

static bool is_three_products(const struct maq_passes *p)
{
    int32_t from = is_minimax_m2(p) ? MAQ_RELEASE(0, 30, 0) : MAQ_RELEASE(0, 31, 0);
    return p->engine == MAQ_ENGINE_VLLM && p->release >= from && p->device->arch >= MAQ_ARCH_BLACKWELL;
}

/* The product in 32 bits, behind the conversion of its input, which torch.compile has the norm in front of it write as well. */
static void product_in_32_bits(const struct maq_passes *p, const struct maq_module *m, int64_t tokens, double times,
                               struct maq_pass_parts *out)
{
    struct maq_op wide = maq_pass_op(MAQ_OP_ELEMENTWISE, &p->plain, 0, tokens * m->in, p->compiled ? 0 : 2, 4, 0),
                  gate = maq_pass_op(MAQ_OP_GEMM, &p->plain, 0, tokens, m->out, m->in, 1);
    gate.dtype = MAQ_FP32;
    if (p->compiled)
        out->ns[MAQ_SERVE_EXPERTS] += (double)tokens * (double)m->in * 4 / p->device->mem_bps * 1e9 * times;
    else
        maq_pass_cost(p, &wide, times, MAQ_SERVE_EXPERTS, out);
    maq_pass_cost(p, &gate, times, MAQ_SERVE_EXPERTS, out);
}

void maq_pass_router(const struct maq_passes *p, const struct maq_module *m, int64_t tokens, double times,
                     struct maq_pass_parts *out)
{
    bool wide = maq_pass_router_is_wide(p) && !has_small_kernel(p, tokens), three = wide && is_three_products(p);
    struct maq_op gate = maq_pass_op(MAQ_OP_GEMM, &p->plain, 0, tokens, m->out, three ? 3 * m->in : m->in, 1),
                  topk = maq_pass_op(MAQ_OP_ROUTER, &p->plain, 0, tokens, m->out, m->u.moe.topk, 0);
    topk.dtype = MAQ_FP32;
    if (wide && !three)
        product_in_32_bits(p, m, tokens, times, out);
    else
        maq_pass_cost(p, &gate, times, MAQ_SERVE_EXPERTS, out);
    maq_pass_cost(p, &topk, times, MAQ_SERVE_EXPERTS, out);
}
