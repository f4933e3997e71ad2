/* SPDX-License-Identifier: Apache-2.0 */
/*
 * modules.h - the lowering of each kind of module, a file for each: each writes the operators and collectives of a module in one
 * pass of a layer, and says what it keeps in memory.
 */
#ifndef MAQ_LOWER_MODULES_H
#define MAQ_LOWER_MODULES_H

#include "lower/local.h"
#include "lower/lower.h"

struct maq_lowering {
    struct maq_lower *lower;
    const struct maq_layer *layer;
    struct maq_segment_writer w;
    enum maq_pass pass;
    bool by_op;        /* a recomputation that finds the outputs of some operators kept (lower.c); */
    uint32_t products; /* matrix products so far then */
    bool pruned;       /* a recomputation that leaves out what the backward pass does not need */
    void (*beside)(
        struct maq_lowering *l); /* writes the operators that overlap with the next expert all-to-all; NULL: none */
};

/* ---- pointwise.c ---- */

/* Pointwise modules have one backward kernel, which belongs to the input gradient. */
void maq_lower_pointwise(struct maq_lowering *l, const struct maq_module *m, bool backward);

/* ---- linear.c ---- */

/* Calls that quantize one tensor: the scales of small blocks are swizzled for the products, row- and column-wise. */
uint32_t maq_lower_quantize_calls(const struct maq_lower *lower);
/* The pass over a tensor of which a recipe needs the maximum before it can quantize. */
void maq_lower_maximum(struct maq_lowering *l, int64_t elements);
/* The second read of a tensor that is quantized separately for weight gradients (NVFP4's Hadamard transform). */
void maq_lower_hadamard(struct maq_lowering *l, int64_t elements);
/* Calls of a product with a weight: those scales are swizzled for every product anew (Transformer Engine, swizzle_inputs). */
uint32_t maq_lower_weight_calls(const struct maq_lower *lower);
/* Adds weight gradients of so many elements into the main ones where no product does. */
void maq_lower_accumulate(struct maq_lowering *l, int64_t elements);
void maq_lower_linear(struct maq_lowering *l, const struct maq_module *m, enum maq_pass pass);
/* Writes a quantized frozen weight out in 16 bits; `all`: also one of 8 bits, whose products read it as it is. */
void maq_lower_widen_base(struct maq_lowering *l, const struct maq_module *m, struct maq_local d, bool all);

/* ---- dora.c ---- */

/* What DoRA does in addition to an adapter of those widths. */
void maq_lower_magnitudes(struct maq_lowering *l, const struct maq_module *m, struct maq_local d, enum maq_pass pass);

/* ---- attention.c ---- */

void maq_lower_attention(struct maq_lowering *l, const struct maq_module *m, enum maq_pass pass);
/*
 * Whether scores and values are computed in 8 bits, and bytes of a number of what is kept of Q, K and V for the backward pass
 * then.
 */
bool maq_lower_attends_narrow(const struct maq_lower *lower);
double maq_lower_attention_kept(const struct maq_lower *lower);
/* Whether keys and values are copied out to as many heads as queries have, which fused attention then keeps. */
bool maq_lower_repeats_kv(const struct maq_lower *lower, const struct maq_attention_geometry *g);
/* Of unfused attention: whether scale, mask and softmax are one kernel. */
bool maq_lower_softmax_fused(const struct maq_lower *lower, const struct maq_attention_geometry *g);
/* Whether scores become 4-byte ones for a softmax that is no kernel with their conversion, and 16-bit ones again behind it. */
bool maq_lower_softmax_widens(const struct maq_lower *lower, const struct maq_attention_geometry *g);

/* ---- indexer.c ---- */

/* The scores of all keys by which sparse attention chooses its own, and the choice. */
void maq_lower_indexer(struct maq_lowering *l, const struct maq_module *m, bool backward);

/* ---- moe.c ---- */

void maq_lower_expert(struct maq_lowering *l, const struct maq_module *m, enum maq_pass pass);
void maq_lower_exchange(struct maq_lowering *l, const struct maq_module *m, enum maq_pass pass);

/* ---- expert_pointwise.c ---- */

/* PyTorch's pointwise kernels after the last product of the experts (bias) and before their activation (clamp). */
void maq_lower_expert_bias(struct maq_lowering *l, const struct maq_module *m, int64_t rows, int64_t groups,
                           bool forward);
void maq_lower_clamp(struct maq_lowering *l, const struct maq_module *m, int64_t rows, bool forward);
bool maq_lower_clamps_apart(const struct maq_lower *lower, const struct maq_module *m);

#endif
