/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expert_pointwise.c - biases and clamped activations of experts as PyTorch's pointwise kernels around the grouped products.
 *
 * Experts with biases and a clamped activation (gpt-oss) are more than products and one fused activation. Frameworks do the
 * rest one kernel after the other, each of which reads and writes whole tensors; here such a chain is one operator with the
 * bytes of its kernels, per element of the tensor, and their launches. e: bytes of the model's type; w: of the type that the
 * sum has, which is that of the probabilities where it is the wider: the fused exchanges want them in FP32, else they come in
 * the model's type.
 *
 *   bias      y + b p, expert by expert, then joined (and converted back where w > e):
 *             product (0, w), sum (e + w, w), join (w, w), convert (w, e)                      (read, written)
 *     back    convert (e, w) and back for y (w, e); b: product with p (w, w), its sum over rows (w, 0); p: the same with b,
 *             over columns; the parts of y's gradient joined (e, e)
 *   clamp     each half clamped (e, e), both joined (e, e)
 *     back    the half with one bound: compare (e, 1), select (1 + e, e); the other: compare twice, and (2, 1), select; joined (e,
 *             e)
 *
 * With the operators of Transformer Engine fused (use_transformer_engine_op_fuser) the products do both.
 *
 * Sources: Megatron-LM core_v0.16 transformer/moe/experts.py (TEGroupedMLP._apply_bias) and fusions/fused_bias_geglu.py; PyTorch
 * autograd's formulas of mul, cat, split and clamp (tools/autograd/derivatives.yaml).
 */
#include "lower/local.h"
#include "lower/modules.h"

struct chain {
    int64_t read, written; /* bytes per element */
    uint32_t launches;
};

static void put(struct maq_lowering *l, int64_t elements, struct chain c)
{
    if (elements <= 0)
        return;
    struct maq_op op = maq_op_make(MAQ_OP_ELEMENTWISE, l->lower->store, 0, elements, c.read, c.written, 0, 0, 0);
    maq_segment_ops(&l->w, &op, c.launches);
}

static void add(struct chain *c, int64_t read, int64_t written, uint32_t launches)
{
    c->read += read;
    c->written += written;
    c->launches += launches;
}

static bool wide_probabilities(const struct maq_lower *lo)
{
    return lo->plan->dispatcher == MAQ_DISPATCHER_DEEPEP || lo->plan->dispatcher == MAQ_DISPATCHER_HYBRIDEP;
}

void maq_lower_expert_bias(struct maq_lowering *l, const struct maq_module *m, int64_t rows, int64_t groups,
                           bool forward)
{
    const struct maq_lower *lo = l->lower;
    bool last = (m->flags & MAQ_MODULE_BIAS) && (m->flags & MAQ_MODULE_REDUCE_OUT);
    if (!last || !lo->job->framework.expert_bias_apart || lo->plan->op_fuser)
        return;
    int64_t e = (int64_t)lo->store_bytes, w = wide_probabilities(lo) && e < 4 ? 4 : e;
    uint32_t each = (uint32_t)groups, converts = w > e;
    struct chain c = {0, 0, 0};
    if (forward) {
        add(&c, 0, w, each);
        add(&c, e + w, w, each);
        add(&c, w, w, 1);
        add(&c, converts * w, converts * e, converts);
    } else {
        add(&c, converts * e, converts * w, converts);
        add(&c, converts * w, converts * e, converts * each);
        for (int factor = 0; factor < 2; factor++) {
            add(&c, w, w, each);
            add(&c, w, 0, each);
        }
        add(&c, e, e, 1);
    }
    put(l, rows * m->out, c);
}

bool maq_lower_clamps_apart(const struct maq_lower *lower, const struct maq_module *m)
{
    return (m->flags & MAQ_MODULE_CLAMPED) && lower->job->framework.clamp_apart && !lower->plan->op_fuser;
}

/* Elements are pairs, one of either half. */
void maq_lower_clamp(struct maq_lowering *l, const struct maq_module *m, int64_t rows, bool forward)
{
    if (!maq_lower_clamps_apart(l->lower, m))
        return;
    int64_t e = (int64_t)l->lower->store_bytes, in = maq_lower_local(l->lower, l->layer, m).in;
    struct chain c = {0, 0, 0};
    if (forward) {
        add(&c, 2 * e, 2 * e, 2);
    } else {
        add(&c, e, 1, 1);
        add(&c, 1 + e, e, 1);
        add(&c, 2 * e, 2, 2);
        add(&c, 2, 1, 1);
        add(&c, 1 + e, e, 1);
    }
    add(&c, 2 * e, 2 * e, 1);
    put(l, rows * in / 2, c);
}
