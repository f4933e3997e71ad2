/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dora.c - what DoRA adds to LoRA's adapters: the norms of the rows of the merged weight, and the magnitudes that are trained.
 *
 * With W of out x in, adapters A (r x in) and B (out x r) and a magnitude for each row (Liu et al., "DoRA", arXiv 2402.09353, section 4.3: the
 * norm is taken as a constant in the backward pass), y = s * (x W^T + c x A^T B^T), s = magnitude / |W + c B A|. PEFT 0.21.2
 * (tuners/lora/dora.py, DoraLinearLayer.forward() and get_lora_weight(); tuners/lora/variants.py) does it so, w bytes a number:
 *
 *   forward    a unit matrix is written (in x in) and goes through both adapters: B A by two products
 *              a quantized W is written out; B A times c; the sum; its norms by rows
 *              (s - 1) times what the linear returned, s times what the adapter did, times c, both sums
 *   backward   those products' gradients: of the linear's result and of the adapter's, and of s a product and its sum over the tokens
 *              each; the gradient that comes by the other way to the linear's result is added
 *
 * B A is detached, so the norm has no backward pass. With dropout in front of the adapters PEFT runs the linear once more on what is left of x,
 * as it does nothing else; adapters here have no dropout.
 */
#include "lower/local.h"
#include "lower/modules.h"

/* Passes over so many numbers, each reading and writing so many of them. */
static void passes(struct maq_lowering *l, int64_t elements, const int (*each)[2], size_t n)
{
    const int64_t w = (int64_t)l->lower->store_bytes;
    for (size_t i = 0; i < n; i++) {
        const struct maq_op op =
            maq_op_make(MAQ_OP_ELEMENTWISE, l->lower->store, 0, elements, each[i][0] * w, each[i][1] * w, 0, 0, 0);
        if (elements > 0)
            maq_segment_op(&l->w, &op);
    }
}

static void norms(struct maq_lowering *l, const struct maq_module *m, struct maq_local d)
{
    static const int unit[][2] = {{0, 1}}, merged[][2] = {{1, 1}, {2, 1}, {1, 0}};
    const int64_t r = l->lower->plan->lora_rank;
    const int t = l->lower->store;
    const struct maq_op down = maq_op_make(MAQ_OP_GEMM, t, 0, d.in, r, d.in, 1, 0, 0),
                        up = maq_op_make(MAQ_OP_GEMM, t, 0, d.in, d.out, r, 1, 0, 0);
    passes(l, d.in * d.in, unit, 1);
    maq_segment_op(&l->w, &down);
    maq_segment_op(&l->w, &up);
    maq_lower_widen_base(l, m, d, true);
    passes(l, d.in * d.out, merged, sizeof merged / sizeof *merged);
}

void maq_lower_magnitudes(struct maq_lowering *l, const struct maq_module *m, struct maq_local d, enum maq_pass pass)
{
    static const int scaled[][2] = {{1, 1}, {1, 1}, {1, 1}, {2, 1}, {2, 1}},
                     back[][2] = {{1, 1}, {1, 1}, {2, 1}, {1, 0}, {1, 1}, {2, 1}, {1, 0}, {2, 1}};
    if (pass == MAQ_PASS_FORWARD) {
        norms(l, m, d);
        passes(l, d.rows * d.out, scaled, sizeof scaled / sizeof *scaled);
    }
    if (pass == MAQ_PASS_BACKWARD || pass == MAQ_PASS_BACKWARD_INPUT)
        passes(l, d.rows * d.out, back, sizeof back / sizeof *back);
}
