/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eager_writer.h - what a script is written with, inside eager_*.c: tensors that a forward pass and a backward pass ask for and give back, norms
 * and products, and the modules that are made of them.
 */
#ifndef MAQ_TRAIN_MEMORY_EAGER_WRITER_H
#define MAQ_TRAIN_MEMORY_EAGER_WRITER_H

#include "train/memory/eager_script.h"

#define WIDE 4.0 /* bytes of a number in FP32 */
#define MAQ_SLOT_NONE UINT16_MAX

/* Tensors of one product. */
struct maq_script_product {
    double rows, in, out;
    uint16_t weight, input, result; /* copies under autocast, or MAQ_SLOT_NONE */
    enum maq_move_kind gradient;    /* of the weight: the embedding may have it as well */
    double rank;                    /* of an adapter, or 0; */
    uint16_t widened, inner;        /* what that read, what its first product wrote */
};

/* Tensors of a norm. */
struct maq_script_norm {
    double numbers, width; /* of what it reads; of its weight */
    uint16_t wide, root, narrow;
    bool own; /* `wide` is a copy */
};

/* What the layer has been through, for the way back. */
struct maq_script_writer {
    struct maq_eager_script *s;
    const struct maq_lower *lower;
    const struct maq_layer *layer;
    double e, stream; /* bytes of a number: in store, of the residual stream */
    bool autocast;
    bool frozen;            /* weights are not trained: products keep nothing for their gradients */
    double adapter, stored; /* bytes of a number in an adapter's products, of its weights */
    bool narrows;           /* autocast, of adapters in 4 bytes */
    uint16_t x;             /* what the next module reads */
    bool x_wide;            /* it is in 4 bytes under autocast */
    uint16_t residual;      /* the stream, beside a branch */
    uint16_t gradient;      /* on the way back: of what was met last */
};

/* ---- tensors (eager_tensors.c) ---- */

void maq_script_move(struct maq_script_writer *b, struct maq_moves *to, enum maq_move_kind kind, uint16_t slot);
uint16_t maq_script_slot(struct maq_script_writer *b, double bytes);
/* A tensor of a forward pass; it is given back, unless autograd keeps it; the same where autograd does not record. Of MAQ_SLOT_NONE nothing is done. */
uint16_t maq_script_take(struct maq_script_writer *b, double bytes);
void maq_script_give(struct maq_script_writer *b, uint16_t t);
void maq_script_give_alone(struct maq_script_writer *b, uint16_t t);
/* The same of a backward pass. */
uint16_t maq_script_take_backward(struct maq_script_writer *b, double bytes);
void maq_script_give_backward(struct maq_script_writer *b, uint16_t t);
/* The i-th module of the layer, or NULL. */
const struct maq_module *maq_script_module(const struct maq_script_writer *b, uint32_t i);
bool maq_script_is(const struct maq_script_writer *b, uint32_t i, enum maq_module_kind kind);

/* ---- a whole script (eager_script.c) ---- */

/* What a layer is made of: its modules in order, each false where the layer has others. */
struct maq_script_order {
    bool (*embedding)(struct maq_script_writer *b);
    bool (*output)(struct maq_script_writer *b);
    bool (*layer)(struct maq_script_writer *b);
};

/* Into *out what `order` writes for b's layer; false, with *out empty, where it knows none, or without memory (out->failed). */
bool maq_script_write(struct maq_eager_script *out, struct maq_script_writer *b, const struct maq_script_order *order);

/* ---- norms and products (eager_tensors.c) ---- */

struct maq_script_norm maq_script_norm(struct maq_script_writer *b, const struct maq_module *m);
uint16_t maq_script_norm_backward(struct maq_script_writer *b, const struct maq_script_norm *n, uint16_t gradient,
                                  uint16_t onto);
struct maq_script_product maq_script_product(struct maq_script_writer *b, const struct maq_module *m, double out);
uint16_t maq_script_product_backward(struct maq_script_writer *b, const struct maq_script_product *p, uint16_t gradient,
                                     bool kept, uint16_t read);
uint16_t maq_script_sum_gradients(struct maq_script_writer *b, uint16_t first, uint16_t second, bool in_place,
                                  double numbers);

/* ---- modules (eager_modules.c): from *at on up to their residual, which *at is moved behind; false where the layer has others ---- */

struct maq_script_attention {
    struct maq_script_norm norm, of[2]; /* of the layer; of queries and keys */
    bool normed;
    struct maq_script_product q, k, v, out;
    double numbers[3]; /* of q, k, v */
    double rows_heads;
    uint16_t x, turned[2], narrow[2], result, sums;
};

bool maq_script_attention(struct maq_script_writer *b, struct maq_script_attention *a, uint32_t *at);
void maq_script_attention_backward(struct maq_script_writer *b, const struct maq_script_attention *a);

struct maq_script_gated {
    struct maq_script_norm norm;
    struct maq_script_product gate, up, down;
    uint16_t x, active, both, read; /* `read`: the stream in front of it */
};

bool maq_script_gated(struct maq_script_writer *b, struct maq_script_gated *f, uint32_t *at);
void maq_script_gated_backward(struct maq_script_writer *b, const struct maq_script_gated *f);

/*
 * transformers 5, integrations/moe.py, grouped_mm_experts_forward(): rows are copied out for each expert that a token goes to; one product
 * over all experts, the gate, another; what comes back is scaled, put in order and added up. Autocast does not know that product: it is in 4
 * bytes then.
 */
struct maq_script_experts {
    struct maq_script_norm norm;
    double rows, routed, inner, outer; /* tokens; rows of all experts; widths of gate and up, of the stream */
    double numbers[2];                 /* of the weights of the two products */
    double e;                          /* bytes of a number in experts */
    uint16_t x, narrow, chance, copied, first, active, both, last, read;
};

bool maq_script_experts(struct maq_script_writer *b, struct maq_script_experts *f, uint32_t *at);
void maq_script_experts_backward(struct maq_script_writer *b, const struct maq_script_experts *f);

#endif
