/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eager_script.c - layers, the embedding and the output as scripts. What follows is the order of requests as PyTorch 2.11 and transformers 5 make them, read off
 * models/llama/modeling_llama.py, loss/loss_utils.py and torch/csrc/autograd, and held against the allocator's own record of the programs of
 * tests/memory-truth (torch.cuda.memory._record_memory_history()). e are the bytes of a number in store.
 *
 *   norm       the input in 4 bytes (its own tensor where it is not yet), its square for a moment, the product with the root in 4 bytes for a
 *              moment, that in e (kept for the weight's gradient), and the result; back again at most four of 4 bytes at once
 *   product    under autocast a copy of the weight and one of what is in 4 bytes, both kept; then the result. Backward the
 *              gradient of the weight, that of the input, and under autocast each once more in 4 bytes
 *   rope       x cos, half of x with the other sign, x turned, that times sin, the sum
 *   attention  its output and a number for each row and head; backward the gradients of queries, keys and values, and that of the
 *              queries in 4 bytes for a moment (FlashAttention-2 adds it up there)
 *   gate       what the activation returns, the product with the other half
 *   experts    see there
 *   loss       logits in 4 bytes, the logarithm of the probabilities; backward two of these and the logits' gradient in e
 *
 * Sums over rows of a norm's gradients take 8 bytes of scratch for each number that they add up (aten/src/ATen/native/cuda/Reduce.cuh).
 */
#include "train/memory/eager_script.h"

#include <stdlib.h>

#include "base/check.h"
#include "lower/local.h"
#include "train/memory/eager_writer.h"
#include "train/memory/torch_layers.h"

/* ---- layers, embedding, output ---- */

/* Whether all products of a linear have adapters, or none. */
static bool adapters_known(const struct maq_script_writer *b)
{
    for (uint32_t i = 0; i < b->layer->n_modules; i++) {
        int64_t widths[MAQ_LORA_SPANS], adapters[MAQ_LORA_SPANS];
        const struct maq_module *m = &b->layer->modules[i];
        uint32_t n = m->kind == MAQ_MODULE_LINEAR ? maq_lower_adapters(adapters, b->lower, b->layer, m) : 0;
        if (n > 0 && n != maq_lower_products(widths, b->lower, b->layer, m))
            return false;
    }
    return true;
}

static bool write_layer(struct maq_script_writer *b)
{
    struct maq_script_attention a;
    struct maq_script_gated f;
    struct maq_script_experts x;
    uint32_t i = 0;
    b->s->bytes[MAQ_SLOT_OUT] = b->stream * (double)b->lower->tokens * (double)b->layer->hidden;
    if (!adapters_known(b) || !maq_script_attention(b, &a, &i))
        return false;
    bool routed = !b->frozen && maq_script_experts(b, &x, &i);
    if ((!routed && !maq_script_gated(b, &f, &i)) || i != b->layer->n_modules)
        return false;
    if (routed)
        maq_script_experts_backward(b, &x);
    else
        maq_script_gated_backward(b, &f);
    maq_script_attention_backward(b, &a);
    b->s->keeps_input = !a.norm.own;
    b->s->first_wide = a.norm.wide;
    return true;
}

static bool write_embedding(struct maq_script_writer *b)
{
    const struct maq_module *m = maq_script_module(b, 0);
    if (b->layer->n_modules != 1)
        return false;
    b->s->bytes[MAQ_SLOT_OUT] = b->stream * (double)b->lower->tokens * (double)b->layer->hidden;
    maq_script_move(b, &b->s->forward, MAQ_MOVE_TAKE, MAQ_SLOT_OUT);
    if (!b->frozen)
        maq_script_move(b, &b->s->backward, MAQ_MOVE_WEIGHT,
                        maq_script_slot(b, b->stream * maq_lower_local_params(b->lower, m)));
    maq_script_give_backward(b, MAQ_SLOT_GRADIENT);
    return true;
}

static bool finds_unused(const struct maq_lower *lo)
{
    const struct maq_plan *p = &lo->job->plan;
    return lo->job->framework.find_unused_parameters && p->recompute == MAQ_RECOMPUTE_NONE &&
           p->sharding == MAQ_SHARDING_NONE;
}

static bool write_output(struct maq_script_writer *b)
{
    if (b->layer->n_modules != 3 || !maq_script_is(b, 1, MAQ_MODULE_LINEAR) || !maq_script_is(b, 2, MAQ_MODULE_LOSS) ||
        b->lower->plan->loss_function != MAQ_LOSS_TORCH || !b->lower->plan->fp32_upcast)
        return false;
    struct maq_script_norm norm = maq_script_norm(b, maq_script_module(b, 0));
    uint16_t x = b->x;
    bool x_wide = b->x_wide;
    double vocabulary = (double)maq_lower_local(b->lower, b->layer, maq_script_module(b, 1)).out;
    struct maq_script_product head = maq_script_product(b, maq_script_module(b, 1), vocabulary);
    double numbers = head.rows * head.out;
    uint16_t wide = maq_script_take(b, WIDE * numbers), logarithm = maq_script_take(b, WIDE * numbers);
    maq_script_give(b, wide);
    if (x_wide || b->frozen)
        maq_script_give(b, x);
    if (b->lower->job->framework.outputs_in_fp32) {
        uint16_t copy = maq_script_take(b, WIDE * numbers), passed = MAQ_SLOT_NONE;
        maq_script_give(b, head.result);
        if (finds_unused(b->lower)) /* torch/nn/parallel/distributed.py, _DDPSink */
            passed = maq_script_take(b, WIDE * numbers);
        maq_script_give(b, copy);
        maq_script_give(b, passed);
    } else {
        maq_script_give(b, head.result);
    }
    uint16_t of_logarithm = maq_script_take_backward(b, WIDE * numbers),
             of_wide = maq_script_take_backward(b, WIDE * numbers);
    maq_script_give_backward(b, of_logarithm);
    maq_script_give_backward(b, logarithm);
    uint16_t gradient = maq_script_take_backward(b, b->e * numbers);
    maq_script_give_backward(b, of_wide);
    maq_script_move(b, &b->s->backward, MAQ_MOVE_LOGITS, gradient);
    gradient = maq_script_product_backward(b, &head, gradient, false, x_wide ? MAQ_SLOT_NONE : x);
    maq_script_move(b, &b->s->backward, MAQ_MOVE_RENAME, maq_script_norm_backward(b, &norm, gradient, MAQ_SLOT_NONE));
    b->s->keeps_input = !norm.own;
    return true;
}

bool maq_script_write(struct maq_eager_script *out, struct maq_script_writer *b, const struct maq_script_order *order)
{
    struct maq_eager_script *s = b->s;
    for (int i = 0; i < MAQ_SLOTS_FIXED; i++)
        maq_script_slot(b, 0);
    bool known = false;
    if (!s->failed && maq_script_is(b, 0, MAQ_MODULE_EMBEDDING))
        known = order->embedding(b);
    else if (!s->failed && maq_script_is(b, b->layer->n_modules - 1, MAQ_MODULE_LOSS))
        known = order->output(b);
    else if (!s->failed)
        known = order->layer(b);
    *out = *s;
    if (known && !s->failed)
        return true;
    maq_eager_script_free(out);
    out->failed = s->failed;
    return false;
}

bool maq_eager_script(struct maq_eager_script *out, const struct maq_lower *lower, const struct maq_layer *layer)
{
    struct maq_eager_script s = {0};
    struct maq_script_writer b = {.s = &s,
                                  .lower = lower,
                                  .layer = layer,
                                  .e = lower->store_bytes,
                                  .stream = maq_stream_bytes(lower),
                                  .autocast = maq_autocasts(lower->job),
                                  .frozen = !maq_lower_trained(lower),
                                  .x = MAQ_SLOT_IN};
    const struct maq_framework *f = &lower->job->framework;
    b.x_wide = b.autocast;
    b.stored = f->adapters_widen ? WIDE : b.e;
    b.narrows = b.frozen && f->autocast && f->adapters_widen;
    b.adapter = b.narrows ? b.e : b.stored;
    return maq_script_write(out, &b, &(struct maq_script_order){write_embedding, write_output, write_layer});
}

void maq_eager_script_free(struct maq_eager_script *s)
{
    free(s->bytes);
    free(s->forward.at);
    free(s->backward.at);
    *s = (struct maq_eager_script){0};
}
