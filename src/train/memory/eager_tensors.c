/* SPDX-License-Identifier: Apache-2.0 */
/* eager_tensors.c - requests and frees of a script are written down; norms and products, of which the modules of a layer are made. */
#include "train/memory/eager_writer.h"

#include "base/alloc.h"
#include "base/check.h"
#include "lower/local.h"
#include "train/memory/torch_layers.h"

#define SUM_SCRATCH 8.0 /* bytes for each number that is added up (Reduce.cuh: the head of eager_script.c) */

/* ---- writing ---- */

void maq_script_move(struct maq_script_writer *b, struct maq_moves *to, enum maq_move_kind kind, uint16_t slot)
{
    if (maq__grow((void **)&to->at, &to->room, to->n, sizeof *to->at))
        to->at[to->n++] = (struct maq_move){slot, (uint16_t)kind};
    else
        b->s->failed = true;
}

uint16_t maq_script_slot(struct maq_script_writer *b, double bytes)
{
    struct maq_eager_script *s = b->s;
    if (!maq__grow((void **)&s->bytes, &s->room, s->n_slots, sizeof *s->bytes)) {
        s->failed = true;
        return MAQ_SLOT_OUT;
    }
    s->bytes[s->n_slots] = bytes;
    return (uint16_t)s->n_slots++;
}

static uint16_t take(struct maq_script_writer *b, struct maq_moves *to, double bytes)
{
    uint16_t t = maq_script_slot(b, bytes);
    maq_script_move(b, to, MAQ_MOVE_TAKE, t);
    return t;
}

static void give(struct maq_script_writer *b, struct maq_moves *to, enum maq_move_kind kind, uint16_t t)
{
    if (t != MAQ_SLOT_NONE)
        maq_script_move(b, to, kind, t);
}

uint16_t maq_script_take(struct maq_script_writer *b, double bytes)
{
    return take(b, &b->s->forward, bytes);
}

void maq_script_give(struct maq_script_writer *b, uint16_t t)
{
    give(b, &b->s->forward, MAQ_MOVE_GIVE, t);
}

void maq_script_give_alone(struct maq_script_writer *b, uint16_t t)
{
    give(b, &b->s->forward, MAQ_MOVE_GIVE_ALONE, t);
}

uint16_t maq_script_take_backward(struct maq_script_writer *b, double bytes)
{
    return take(b, &b->s->backward, bytes);
}

void maq_script_give_backward(struct maq_script_writer *b, uint16_t t)
{
    give(b, &b->s->backward, MAQ_MOVE_GIVE, t);
}

const struct maq_module *maq_script_module(const struct maq_script_writer *b, uint32_t i)
{
    return i < b->layer->n_modules ? &b->layer->modules[i] : NULL;
}

bool maq_script_is(const struct maq_script_writer *b, uint32_t i, enum maq_module_kind kind)
{
    const struct maq_module *m = maq_script_module(b, i);
    return m && m->kind == kind;
}

/* ---- norms ---- */

struct maq_script_norm maq_script_norm(struct maq_script_writer *b, const struct maq_module *m)
{
    struct maq_local d = maq_lower_local(b->lower, b->layer, m);
    struct maq_script_norm n = {.numbers = (double)d.rows * (double)d.in, .width = (double)m->params};
    bool of_heads = m->shard == MAQ_SHARD_HEADS;
    n.own = of_heads || !b->autocast;
    double narrow = n.own ? b->e : WIDE;
    n.wide = n.own ? maq_script_take(b, WIDE * n.numbers) : b->x;
    maq_script_give(b, maq_script_take(b, WIDE * n.numbers));
    n.root = maq_script_take(b, of_heads ? WIDE * n.numbers / n.width : WIDE * (double)d.rows);
    uint16_t product = maq_script_take(b, WIDE * n.numbers);
    if (n.own)
        maq_script_give_alone(b, n.wide);
    maq_script_give_alone(b, n.root);
    n.narrow = n.own ? maq_script_take(b, narrow * n.numbers) : product;
    b->x = maq_script_take(b, narrow * n.numbers);
    if (b->frozen) { /* nobody asks for the weight's gradient */
        maq_script_give(b, n.narrow);
        n.narrow = MAQ_SLOT_NONE;
    }
    if (n.own)
        maq_script_give(b, product);
    maq_script_give_alone(b, n.narrow);
    b->x_wide = !n.own;
    return n;
}

/* Takes the gradient of the result; returns that of the input, or adds it to `onto` where there is one. */
uint16_t maq_script_norm_backward(struct maq_script_writer *b, const struct maq_script_norm *n, uint16_t gradient,
                                  uint16_t onto)
{
    double bytes = (n->own ? b->e : WIDE) * n->numbers, wide = WIDE * n->numbers;
    uint16_t scaled = maq_script_take_backward(b, bytes);
    if (!b->frozen) {
        uint16_t weight = maq_script_take_backward(b, bytes),
                 scratch = maq_script_take_backward(b, SUM_SCRATCH * n->numbers);
        maq_script_move(b, &b->s->backward, MAQ_MOVE_WEIGHT, maq_script_slot(b, (n->own ? b->e : WIDE) * n->width));
        maq_script_give_backward(b, scratch);
        maq_script_give_backward(b, weight);
    }
    maq_script_give_backward(b, gradient);
    maq_script_give_backward(b, n->narrow);
    if (n->own) {
        uint16_t widened = maq_script_take_backward(b, wide);
        maq_script_give_backward(b, scaled);
        scaled = widened;
    }
    uint16_t by_input = maq_script_take_backward(b, wide), result = maq_script_take_backward(b, wide);
    maq_script_give_backward(b, by_input);
    maq_script_give_backward(b, scaled);
    if (!n->own && onto != MAQ_SLOT_NONE)
        maq_script_give_backward(b, result);
    maq_script_give_backward(b, n->root);
    uint16_t square[4];
    for (int i = 0; i < 4; i++)
        square[i] = maq_script_take_backward(b, wide);
    for (int i = 3; i-- > 0;)
        maq_script_give_backward(b, square[i]);
    maq_script_give_backward(b, n->wide);
    maq_script_give_backward(b, square[3]);
    if (n->own) {
        uint16_t narrowed = maq_script_take_backward(b, b->e * n->numbers);
        maq_script_give_backward(b, result);
        result = narrowed;
        if (onto != MAQ_SLOT_NONE)
            maq_script_give_backward(b, result);
    }
    return onto != MAQ_SLOT_NONE ? onto : result;
}

/* ---- products ---- */

/*
 * An adapter (peft 0.21, tuners/lora/layer.py, Linear.forward()): the input in the adapter's type, two products, the second scaled, the sum with
 * what the frozen product wrote in that type, and that once more in the type of the latter. Under autocast the input is widened and
 * narrowed again, and all that products write is narrow.
 */
static void adapter_forward(struct maq_script_writer *b, struct maq_script_product *p)
{
    double wide = b->adapter, out = p->rows * p->out;
    uint16_t unused = MAQ_SLOT_NONE;
    p->widened = maq_script_take(b, (b->narrows ? WIDE : wide) * p->rows * p->in);
    if (b->narrows) {
        unused = p->widened;
        p->widened = maq_script_take(b, wide * p->rows * p->in);
    }
    p->inner = maq_script_take(b, wide * p->rows * p->rank);
    uint16_t outer = maq_script_take(b, wide * out), scaled = maq_script_take(b, wide * out);
    maq_script_give(b, outer);
    uint16_t sum = maq_script_take(b, wide * out);
    maq_script_give(b, scaled);
    maq_script_give(b, p->result);
    p->result = sum;
    if (wide != b->e) {
        p->result = maq_script_take(b, b->e * out);
        maq_script_give(b, sum);
    }
    maq_script_give(b, unused);
    maq_script_give_alone(b, p->inner);
    maq_script_give_alone(b, p->widened);
}

/* One of the products that a linear is, of what is read now, which stays. */
struct maq_script_product maq_script_product(struct maq_script_writer *b, const struct maq_module *m, double out)
{
    struct maq_local d = maq_lower_local(b->lower, b->layer, m);
    struct maq_script_product p = {.rows = (double)d.rows,
                                   .in = (double)d.in,
                                   .out = out,
                                   .weight = MAQ_SLOT_NONE,
                                   .input = MAQ_SLOT_NONE,
                                   .gradient = m->params > 0 ? MAQ_MOVE_WEIGHT : MAQ_MOVE_TIED,
                                   .rank = maq_lower_adapted(b->lower, m) ? b->lower->plan->lora_rank : 0};
    if (b->autocast) {
        p.weight = maq_script_slot(b, p.in * p.out * b->e);
        maq_script_move(b, &b->s->forward, MAQ_MOVE_CAST, p.weight);
    }
    if (b->x_wide)
        p.input = maq_script_take(b, p.rows * p.in * b->e);
    p.result = maq_script_take(b, p.rows * p.out * b->e);
    maq_script_move(b, &b->s->forward, MAQ_MOVE_PRODUCT, 0);
    maq_script_give_alone(b, p.input);
    if (p.rank > 0)
        adapter_forward(b, &p);
    return p;
}

/* Gradients of an adapter; returns that of what it read. */
static uint16_t adapter_backward(struct maq_script_writer *b, const struct maq_script_product *p, uint16_t gradient,
                                 bool kept)
{
    double wide = b->adapter, out = p->rows * p->out, in = p->rows * p->in;
    bool casts = wide != b->e;
    uint16_t frozen = gradient, widened = gradient;
    if (casts) {
        widened = maq_script_take_backward(b, wide * out);
        if (!kept)
            maq_script_give_backward(b, gradient);
        frozen = maq_script_take_backward(b, b->e * out);
    }
    uint16_t scaled = maq_script_take_backward(b, wide * out);
    if (casts)
        maq_script_give_backward(b, widened);
    maq_script_move(b, &b->s->backward, MAQ_MOVE_WEIGHT, maq_script_slot(b, b->stored * p->rank * p->out));
    uint16_t inner = maq_script_take_backward(b, wide * p->rows * p->rank);
    maq_script_give_backward(b, scaled);
    maq_script_give_backward(b, p->inner);
    maq_script_move(b, &b->s->backward, MAQ_MOVE_WEIGHT, maq_script_slot(b, b->stored * p->rank * p->in));
    uint16_t input = maq_script_take_backward(b, wide * in);
    maq_script_give_backward(b, inner);
    maq_script_give_backward(b, p->widened);
    if (b->narrows) { /* through both casts */
        uint16_t wider = maq_script_take_backward(b, WIDE * in);
        maq_script_give_backward(b, input);
        input = maq_script_take_backward(b, b->e * in);
        maq_script_give_backward(b, wider);
    } else if (casts) {
        uint16_t narrow = maq_script_take_backward(b, b->e * in);
        maq_script_give_backward(b, input);
        input = narrow;
    }
    uint16_t through = maq_script_take_backward(b, b->e * in);
    if (casts || !kept)
        maq_script_give_backward(b, frozen);
    maq_script_give_backward(b, through);
    return input;
}

/*
 * Takes the gradient of the result unless that is `kept` for something else. `read` is what the product read, where this was its last use.
 * Returns the gradient of the input.
 */
uint16_t maq_script_product_backward(struct maq_script_writer *b, const struct maq_script_product *p, uint16_t gradient,
                                     bool kept, uint16_t read)
{
    double weight = p->in * p->out;
    uint16_t narrow = maq_script_slot(b, weight * b->e);
    if (p->rank > 0)
        return adapter_backward(b, p, gradient, kept);
    if (!b->frozen)
        maq_script_move(b, &b->s->backward, b->autocast ? MAQ_MOVE_TAKE : p->gradient, narrow);
    maq_script_move(b, &b->s->backward, MAQ_MOVE_PRODUCT, 1);
    uint16_t input = maq_script_take_backward(b, p->rows * p->in * b->e);
    if (!kept)
        maq_script_give_backward(b, gradient);
    maq_script_give_backward(b, p->weight);
    maq_script_give_backward(b, p->input);
    if (!b->frozen)
        maq_script_give_backward(b, read);
    if (p->input != MAQ_SLOT_NONE) {
        uint16_t wide = maq_script_take_backward(b, WIDE * p->rows * p->in);
        maq_script_give_backward(b, input);
        input = wide;
    }
    if (b->autocast) {
        maq_script_move(b, &b->s->backward, p->gradient, maq_script_slot(b, weight * WIDE));
        maq_script_give_backward(b, narrow);
    }
    return input;
}

/* Two gradients of one tensor. What a product wrote is not written into; a sum is, and what autocast widened. */
uint16_t maq_script_sum_gradients(struct maq_script_writer *b, uint16_t first, uint16_t second, bool in_place,
                                  double numbers)
{
    in_place |= b->frozen; /* an adapter's is a copy */
    if (in_place) {
        maq_script_give_backward(b, second);
        return first;
    }
    uint16_t sum = maq_script_take_backward(b, numbers * b->e);
    maq_script_give_backward(b, first);
    maq_script_give_backward(b, second);
    return sum;
}
