/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eager_script.c - see eager_script.h. What follows is the order of requests as PyTorch 2.11 and transformers 5 make them, read off
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
#include "train/memory/torch_layers.h"

#define WIDE 4.0
#define SUM_SCRATCH 8.0
#define NONE UINT16_MAX

/* Tensors of one product. */
struct product {
    double rows, in, out;
    uint16_t weight, input, result; /* copies under autocast, or NONE */
    enum maq_move_kind gradient;    /* of the weight: the embedding may have it as well */
    double rank;                    /* of an adapter, or 0; */
    uint16_t widened, inner;        /* what that read, what its first product wrote */
};

/* Tensors of a norm. */
struct norm {
    double numbers, width; /* of what it reads; of its weight */
    uint16_t wide, root, narrow;
    bool own; /* `wide` is a copy */
};

/* What the layer has been through, for the way back. */
struct state {
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

/* ---- writing ---- */

static void move(struct state *b, struct maq_moves *to, enum maq_move_kind kind, uint16_t slot)
{
    if (to->n == to->room) {
        uint32_t room = to->room ? 2 * to->room : 64;
        struct maq_move *more = realloc(to->at, room * sizeof *more);
        b->s->failed |= !more;
        if (!more)
            return;
        to->at = more;
        to->room = room;
    }
    to->at[to->n++] = (struct maq_move){slot, (uint16_t)kind};
}

static uint16_t slot(struct state *b, double bytes)
{
    struct maq_eager_script *s = b->s;
    if (s->n_slots == s->room) {
        uint32_t room = s->room ? 2 * s->room : 64;
        double *more = realloc(s->bytes, room * sizeof *more);
        s->failed |= !more;
        if (!more)
            return MAQ_SLOT_OUT;
        s->bytes = more;
        s->room = room;
    }
    s->bytes[s->n_slots] = bytes;
    return (uint16_t)s->n_slots++;
}

static uint16_t take(struct state *b, double bytes)
{
    uint16_t t = slot(b, bytes);
    move(b, &b->s->forward, MAQ_MOVE_TAKE, t);
    return t;
}

static void give(struct state *b, uint16_t t)
{
    if (t != NONE)
        move(b, &b->s->forward, MAQ_MOVE_GIVE, t);
}

static void give_alone(struct state *b, uint16_t t)
{
    if (t != NONE)
        move(b, &b->s->forward, MAQ_MOVE_GIVE_ALONE, t);
}

static uint16_t back(struct state *b, double bytes)
{
    uint16_t t = slot(b, bytes);
    move(b, &b->s->backward, MAQ_MOVE_TAKE, t);
    return t;
}

static void drop(struct state *b, uint16_t t)
{
    if (t != NONE)
        move(b, &b->s->backward, MAQ_MOVE_GIVE, t);
}

static const struct maq_module *module_at(const struct state *b, uint32_t i)
{
    return i < b->layer->n_modules ? &b->layer->modules[i] : NULL;
}

static bool is_kind(const struct state *b, uint32_t i, enum maq_module_kind kind)
{
    const struct maq_module *m = module_at(b, i);
    return m && m->kind == kind;
}

/* ---- norms ---- */

static struct norm norm_forward(struct state *b, const struct maq_module *m)
{
    struct maq_local d = maq_lower_local(b->lower, b->layer, m);
    struct norm n = {.numbers = (double)d.rows * (double)d.in, .width = (double)m->params};
    bool of_heads = m->shard == MAQ_SHARD_HEADS;
    n.own = of_heads || !b->autocast;
    double narrow = n.own ? b->e : WIDE;
    n.wide = n.own ? take(b, WIDE * n.numbers) : b->x;
    give(b, take(b, WIDE * n.numbers));
    n.root = take(b, of_heads ? WIDE * n.numbers / n.width : WIDE * (double)d.rows);
    uint16_t product = take(b, WIDE * n.numbers);
    if (n.own)
        give_alone(b, n.wide);
    give_alone(b, n.root);
    n.narrow = n.own ? take(b, narrow * n.numbers) : product;
    b->x = take(b, narrow * n.numbers);
    if (b->frozen) { /* nobody asks for the weight's gradient */
        give(b, n.narrow);
        n.narrow = NONE;
    }
    if (n.own)
        give(b, product);
    give_alone(b, n.narrow);
    b->x_wide = !n.own;
    return n;
}

/* Takes the gradient of the result; returns that of the input, or adds it to `onto` where there is one. */
static uint16_t norm_backward(struct state *b, const struct norm *n, uint16_t gradient, uint16_t onto)
{
    double bytes = (n->own ? b->e : WIDE) * n->numbers, wide = WIDE * n->numbers;
    uint16_t scaled = back(b, bytes);
    if (!b->frozen) {
        uint16_t weight = back(b, bytes), scratch = back(b, SUM_SCRATCH * n->numbers);
        move(b, &b->s->backward, MAQ_MOVE_WEIGHT, slot(b, (n->own ? b->e : WIDE) * n->width));
        drop(b, scratch);
        drop(b, weight);
    }
    drop(b, gradient);
    drop(b, n->narrow);
    if (n->own) {
        uint16_t widened = back(b, wide);
        drop(b, scaled);
        scaled = widened;
    }
    uint16_t by_input = back(b, wide), result = back(b, wide);
    drop(b, by_input);
    drop(b, scaled);
    if (!n->own && onto != NONE)
        drop(b, result);
    drop(b, n->root);
    uint16_t square[4];
    for (int i = 0; i < 4; i++)
        square[i] = back(b, wide);
    for (int i = 3; i-- > 0;)
        drop(b, square[i]);
    drop(b, n->wide);
    drop(b, square[3]);
    if (n->own) {
        uint16_t narrowed = back(b, b->e * n->numbers);
        drop(b, result);
        result = narrowed;
        if (onto != NONE)
            drop(b, result);
    }
    return onto != NONE ? onto : result;
}

/* ---- products ---- */

/*
 * An adapter (peft 0.21, tuners/lora/layer.py, Linear.forward()): the input in the adapter's type, two products, the second scaled, the sum with
 * what the frozen product wrote in that type, and that once more in the type of the latter. Under autocast the input is widened and
 * narrowed again, and all that products write is narrow.
 */
static void adapter_forward(struct state *b, struct product *p)
{
    double wide = b->adapter, out = p->rows * p->out;
    uint16_t unused = NONE;
    p->widened = take(b, (b->narrows ? WIDE : wide) * p->rows * p->in);
    if (b->narrows) {
        unused = p->widened;
        p->widened = take(b, wide * p->rows * p->in);
    }
    p->inner = take(b, wide * p->rows * p->rank);
    uint16_t outer = take(b, wide * out), scaled = take(b, wide * out);
    give(b, outer);
    uint16_t sum = take(b, wide * out);
    give(b, scaled);
    give(b, p->result);
    p->result = sum;
    if (wide != b->e) {
        p->result = take(b, b->e * out);
        give(b, sum);
    }
    give(b, unused);
    give_alone(b, p->inner);
    give_alone(b, p->widened);
}

/* One of the products that a linear is, of what is read now, which stays. */
static struct product product_forward(struct state *b, const struct maq_module *m, double out)
{
    struct maq_local d = maq_lower_local(b->lower, b->layer, m);
    struct product p = {.rows = (double)d.rows,
                        .in = (double)d.in,
                        .out = out,
                        .weight = NONE,
                        .input = NONE,
                        .gradient = m->params > 0 ? MAQ_MOVE_WEIGHT : MAQ_MOVE_TIED,
                        .rank = maq_lower_adapted(b->lower, m) ? b->lower->plan->lora_rank : 0};
    if (b->autocast) {
        p.weight = slot(b, p.in * p.out * b->e);
        move(b, &b->s->forward, MAQ_MOVE_CAST, p.weight);
    }
    if (b->x_wide)
        p.input = take(b, p.rows * p.in * b->e);
    p.result = take(b, p.rows * p.out * b->e);
    move(b, &b->s->forward, MAQ_MOVE_PRODUCT, 0);
    give_alone(b, p.input);
    if (p.rank > 0)
        adapter_forward(b, &p);
    return p;
}

/* Gradients of an adapter; returns that of what it read. */
static uint16_t adapter_backward(struct state *b, const struct product *p, uint16_t gradient, bool kept)
{
    double wide = b->adapter, out = p->rows * p->out, in = p->rows * p->in;
    bool casts = wide != b->e;
    uint16_t frozen = gradient, widened = gradient;
    if (casts) {
        widened = back(b, wide * out);
        if (!kept)
            drop(b, gradient);
        frozen = back(b, b->e * out);
    }
    uint16_t scaled = back(b, wide * out);
    if (casts)
        drop(b, widened);
    move(b, &b->s->backward, MAQ_MOVE_WEIGHT, slot(b, b->stored * p->rank * p->out));
    uint16_t inner = back(b, wide * p->rows * p->rank);
    drop(b, scaled);
    drop(b, p->inner);
    move(b, &b->s->backward, MAQ_MOVE_WEIGHT, slot(b, b->stored * p->rank * p->in));
    uint16_t input = back(b, wide * in);
    drop(b, inner);
    drop(b, p->widened);
    if (b->narrows) { /* through both casts */
        uint16_t wider = back(b, WIDE * in);
        drop(b, input);
        input = back(b, b->e * in);
        drop(b, wider);
    } else if (casts) {
        uint16_t narrow = back(b, b->e * in);
        drop(b, input);
        input = narrow;
    }
    uint16_t through = back(b, b->e * in);
    if (casts || !kept)
        drop(b, frozen);
    drop(b, through);
    return input;
}

/*
 * Takes the gradient of the result unless that is `kept` for something else. `read` is what the product read, where this was its last use.
 * Returns the gradient of the input.
 */
static uint16_t product_backward(struct state *b, const struct product *p, uint16_t gradient, bool kept, uint16_t read)
{
    double weight = p->in * p->out;
    uint16_t narrow = slot(b, weight * b->e);
    if (p->rank > 0)
        return adapter_backward(b, p, gradient, kept);
    if (!b->frozen)
        move(b, &b->s->backward, b->autocast ? MAQ_MOVE_TAKE : p->gradient, narrow);
    move(b, &b->s->backward, MAQ_MOVE_PRODUCT, 1);
    uint16_t input = back(b, p->rows * p->in * b->e);
    if (!kept)
        drop(b, gradient);
    drop(b, p->weight);
    drop(b, p->input);
    if (!b->frozen)
        drop(b, read);
    if (p->input != NONE) {
        uint16_t wide = back(b, WIDE * p->rows * p->in);
        drop(b, input);
        input = wide;
    }
    if (b->autocast) {
        move(b, &b->s->backward, p->gradient, slot(b, weight * WIDE));
        drop(b, narrow);
    }
    return input;
}

/* Two gradients of one tensor. What a product wrote is not written into; a sum is, and what autocast widened. */
static uint16_t add_gradients(struct state *b, uint16_t first, uint16_t second, bool in_place, double numbers)
{
    in_place |= b->frozen; /* an adapter's is a copy */
    if (in_place) {
        drop(b, second);
        return first;
    }
    uint16_t sum = back(b, numbers * b->e);
    drop(b, first);
    drop(b, second);
    return sum;
}

/* ---- attention ---- */

struct attention {
    struct norm norm, of[2]; /* of the layer; of queries and keys */
    bool normed;
    struct product q, k, v, out;
    double numbers[3]; /* of q, k, v */
    double rows_heads;
    uint16_t x, turned[2], narrow[2], result, sums;
};

static uint16_t turn(struct state *b, uint16_t x, double numbers)
{
    double wide = (b->autocast ? WIDE : b->e) * numbers;
    uint16_t by_cos = take(b, wide), half = take(b, b->e * numbers / 2), turned = take(b, b->e * numbers);
    give(b, half);
    uint16_t by_sin = take(b, wide);
    give(b, turned);
    uint16_t sum = take(b, wide);
    give(b, by_cos);
    give(b, by_sin);
    (void)x;
    return sum;
}

static uint16_t turn_back(struct state *b, uint16_t gradient, double numbers)
{
    double e = b->e * numbers, wide = (b->autocast ? WIDE : b->e) * numbers;
    uint16_t by_sin = back(b, wide);
    if (b->autocast) {
        uint16_t narrow = back(b, e);
        drop(b, by_sin);
        by_sin = narrow;
    }
    uint16_t half = back(b, e / 2), result = back(b, e);
    drop(b, half);
    uint16_t other = back(b, e);
    drop(b, by_sin);
    drop(b, other);
    uint16_t by_cos = back(b, wide);
    if (b->autocast) {
        uint16_t narrow = back(b, e);
        drop(b, by_cos);
        by_cos = narrow;
    }
    drop(b, gradient);
    drop(b, by_cos);
    return result;
}

/* The modules from `i` on up to the residual; false where they are others. */
static bool attention_forward(struct state *b, struct attention *a, uint32_t *at)
{
    uint32_t i = *at;
    int64_t widths[MAQ_LORA_SPANS];
    if (!is_kind(b, i, MAQ_MODULE_NORM) || !is_kind(b, i + 1, MAQ_MODULE_LINEAR))
        return false;
    const struct maq_module *norm = module_at(b, i), *qkv = module_at(b, i + 1), *of[2] = {NULL, NULL};
    i += 2;
    for (int k = 0; k < 2 && is_kind(b, i, MAQ_MODULE_NORM); k++)
        of[k] = module_at(b, i++);
    bool turns = is_kind(b, i, MAQ_MODULE_ROPE);
    i += turns;
    const struct maq_module *core = module_at(b, i), *out = module_at(b, i + 1);
    if (!is_kind(b, i, MAQ_MODULE_ATTENTION) || !is_kind(b, i + 1, MAQ_MODULE_LINEAR) ||
        !is_kind(b, i + 2, MAQ_MODULE_RESIDUAL) || maq_lower_products(widths, b->lower, b->layer, qkv) != 3 ||
        b->lower->attention == MAQ_ATTENTION_UNFUSED || !turns || (of[0] && !of[1]))
        return false;
    const struct maq_attention_geometry *g = &core->u.attention;
    double rows = (double)maq_lower_local(b->lower, b->layer, qkv).rows;
    *a = (struct attention){.normed = of[0] != NULL, .rows_heads = rows * g->heads};
    for (int k = 0; k < 3; k++)
        a->numbers[k] = rows * (double)widths[k];
    a->norm = norm_forward(b, norm);
    a->x = b->x;
    bool x_wide = b->x_wide;
    struct product *p[3] = {&a->q, &a->k, &a->v};
    uint16_t x[3];
    for (int k = 0; k < 3; k++) {
        b->x = a->x;
        b->x_wide = x_wide;
        *p[k] = product_forward(b, qkv, (double)widths[k]);
        x[k] = p[k]->result;
        if (k < 2 && of[k]) {
            b->x = x[k];
            a->of[k] = norm_forward(b, of[k]);
            give(b, x[k]);
            x[k] = b->x;
        }
    }
    for (int k = 0; k < 2; k++)
        a->turned[k] = turn(b, x[k], a->numbers[k]);
    give(b, x[0]);
    give(b, x[1]);
    a->narrow[0] = a->turned[0];
    a->narrow[1] = a->turned[1];
    if (b->autocast) {
        a->narrow[1] = take(b, b->e * a->numbers[1]);
        a->narrow[0] = take(b, b->e * a->numbers[0]);
    }
    a->result = take(b, b->e * rows * (double)maq_lower_local(b->lower, b->layer, core).out);
    a->sums = take(b, 4 * a->rows_heads);
    b->x = a->result;
    b->x_wide = false;
    a->out = product_forward(b, out, (double)maq_lower_local(b->lower, b->layer, out).out);
    for (int k = 0; k < 2; k++)
        if (b->autocast) {
            give(b, a->turned[k]);
            give_alone(b, a->narrow[k]);
        } else {
            give_alone(b, a->turned[k]);
        }
    give_alone(b, a->v.result);
    give_alone(b, a->result);
    give_alone(b, a->sums);
    if (b->autocast || b->frozen)
        give(b, a->x);
    else
        give_alone(b, a->x);
    uint16_t sum = take(b, b->stream * rows * (double)b->layer->hidden);
    give(b, a->out.result);
    b->residual = b->x = sum;
    *at = i + 3;
    return true;
}

static void attention_backward(struct state *b, const struct attention *a)
{
    uint16_t stream = MAQ_SLOT_GRADIENT, gradient = stream, of[3];
    if (b->autocast)
        gradient = back(b, b->e * a->out.rows * a->out.out);
    uint16_t inner = product_backward(b, &a->out, gradient, !b->autocast, NONE);
    for (int k = 0; k < 3; k++)
        of[k] = back(b, b->e * a->numbers[k]);
    drop(b, back(b, WIDE * (a->numbers[0] + a->rows_heads)));
    drop(b, inner);
    drop(b, a->narrow[1]);
    drop(b, a->narrow[0]);
    drop(b, a->v.result);
    drop(b, a->sums);
    drop(b, a->result);
    for (int k = 0; k < 2 && b->autocast; k++) {
        uint16_t wide = back(b, WIDE * a->numbers[k]);
        drop(b, of[k]);
        of[k] = wide;
    }
    for (int k = 2; k-- > 0;)
        of[k] = turn_back(b, of[k], a->numbers[k]);
    double numbers = a->q.rows * a->q.in;
    uint16_t sum = product_backward(b, &a->v, of[2], false, NONE);
    const struct product *p[2] = {&a->q, &a->k};
    for (int k = 2; k-- > 0;) {
        if (a->normed) {
            of[k] = norm_backward(b, &a->of[k], of[k], NONE);
        } else {
            uint16_t copy = back(b, b->e * a->numbers[k]); /* heads are put beside each other */
            drop(b, of[k]);
            of[k] = copy;
        }
        uint16_t other = product_backward(b, p[k], of[k], false, k == 0 && !b->autocast ? a->x : NONE);
        sum = add_gradients(b, sum, other, b->autocast || k == 0, numbers);
    }
    norm_backward(b, &a->norm, sum, stream);
}

/* ---- gated feed-forward ---- */

struct gated {
    struct norm norm;
    struct product gate, up, down;
    uint16_t x, active, both, read; /* `read`: the stream in front of it */
};

static bool gated_forward(struct state *b, struct gated *f, uint32_t *at)
{
    uint32_t i = *at;
    int64_t widths[MAQ_LORA_SPANS];
    if (!is_kind(b, i, MAQ_MODULE_NORM) || !is_kind(b, i + 1, MAQ_MODULE_LINEAR) ||
        !is_kind(b, i + 2, MAQ_MODULE_ACTIVATION) || !is_kind(b, i + 3, MAQ_MODULE_LINEAR) ||
        !is_kind(b, i + 4, MAQ_MODULE_RESIDUAL) ||
        maq_lower_products(widths, b->lower, b->layer, module_at(b, i + 1)) != 2)
        return false;
    const struct maq_module *first = module_at(b, i + 1), *second = module_at(b, i + 3);
    f->read = b->x;
    f->norm = norm_forward(b, module_at(b, i));
    f->x = b->x;
    bool x_wide = b->x_wide;
    double bytes = b->e * (double)maq_lower_local(b->lower, b->layer, first).rows * (double)widths[0];
    f->gate = product_forward(b, first, (double)widths[0]);
    f->active = take(b, bytes);
    give_alone(b, f->gate.result);
    f->up = product_forward(b, first, (double)widths[1]);
    f->both = take(b, bytes);
    give_alone(b, f->active);
    give_alone(b, f->up.result);
    b->x = f->both;
    b->x_wide = false;
    f->down = product_forward(b, second, (double)maq_lower_local(b->lower, b->layer, second).out);
    if (b->frozen)
        give(b, f->both);
    else
        give_alone(b, f->both);
    if (x_wide || b->frozen)
        give(b, f->x);
    else
        give_alone(b, f->x);
    move(b, &b->s->forward, MAQ_MOVE_TAKE, MAQ_SLOT_OUT);
    give(b, f->down.result);
    if (f->norm.own)
        give(b, f->read);
    else
        give_alone(b, f->read);
    b->x = MAQ_SLOT_OUT;
    *at = i + 5;
    return true;
}

static void gated_backward(struct state *b, const struct gated *f)
{
    double bytes = b->e * f->up.rows * f->up.out, numbers = f->up.rows * f->up.in;
    uint16_t gradient = MAQ_SLOT_GRADIENT;
    if (b->autocast)
        gradient = back(b, b->e * f->down.rows * f->down.out);
    uint16_t both = product_backward(b, &f->down, gradient, !b->autocast, f->both), up = back(b, bytes),
             active = back(b, bytes);
    drop(b, both);
    drop(b, f->active);
    drop(b, f->up.result);
    uint16_t first = product_backward(b, &f->up, up, false, NONE), gate = back(b, bytes);
    drop(b, active);
    drop(b, f->gate.result);
    uint16_t second = product_backward(b, &f->gate, gate, false, b->autocast ? NONE : f->x);
    norm_backward(b, &f->norm, add_gradients(b, first, second, b->autocast, numbers), MAQ_SLOT_GRADIENT);
}

/* ---- experts ---- */

/*
 * transformers 5, integrations/moe.py, grouped_mm_experts_forward(): rows are copied out for each expert that a token goes to; one product
 * over all experts, the gate, another; what comes back is scaled, put in order and added up. Autocast does not know that product: it is in 4
 * bytes then.
 */
struct experts {
    struct norm norm;
    double rows, routed, inner, outer; /* tokens; rows of all experts; widths of gate and up, of the stream */
    double numbers[2];                 /* of the weights of the two products */
    double e;                          /* bytes of a number in experts */
    uint16_t x, narrow, chance, copied, first, active, both, last, read;
};

static bool experts_known(const struct state *b, uint32_t i)
{
    static const enum maq_module_kind kinds[] = {MAQ_MODULE_NORM,
                                                 MAQ_MODULE_ROUTER,
                                                 MAQ_MODULE_DISPATCH,
                                                 MAQ_MODULE_EXPERT_LINEAR,
                                                 MAQ_MODULE_EXPERT_ACTIVATION,
                                                 MAQ_MODULE_EXPERT_LINEAR,
                                                 MAQ_MODULE_COMBINE,
                                                 MAQ_MODULE_RESIDUAL};
    for (size_t k = 0; k < MAQ_COUNT(kinds); k++)
        if (!is_kind(b, i + (uint32_t)k, kinds[k]))
            return false;
    return (b->layer->modules[i + 4].flags & MAQ_MODULE_GATED) != 0;
}

static bool experts_forward(struct state *b, struct experts *f, uint32_t *at)
{
    uint32_t i = *at;
    if (!experts_known(b, i))
        return false;
    const struct maq_module *router = module_at(b, i + 1), *one = module_at(b, i + 3), *two = module_at(b, i + 5);
    struct maq_local d = maq_lower_local(b->lower, b->layer, one);
    *f = (struct experts){.rows = (double)maq_lower_local(b->lower, b->layer, module_at(b, i)).rows,
                          .routed = (double)d.rows,
                          .inner = (double)d.out,
                          .outer = (double)d.in,
                          .numbers = {(double)one->params, (double)two->params},
                          .e = b->autocast ? WIDE : b->e,
                          .narrow = NONE,
                          .read = b->x};
    f->norm = norm_forward(b, module_at(b, i));
    f->x = b->x;
    if (b->autocast)
        f->narrow = take(b, b->e * f->rows * f->outer);
    f->chance = take(b, WIDE * f->rows * (double)router->out);
    f->copied = take(b, f->e * f->routed * f->outer);
    f->first = take(b, f->e * f->routed * f->inner);
    give_alone(b, f->copied);
    f->active = take(b, f->e * f->routed * f->inner / 2);
    f->both = take(b, f->e * f->routed * f->inner / 2);
    give_alone(b, f->first);
    give_alone(b, f->active);
    f->last = take(b, f->e * f->routed * f->outer);
    give_alone(b, f->both);
    uint16_t scaled = take(b, f->e * f->routed * f->outer);
    give_alone(b, f->last);
    uint16_t ordered = take(b, f->e * f->routed * f->outer);
    give(b, scaled);
    uint16_t sum = take(b, f->e * f->rows * f->outer);
    give(b, ordered);
    give_alone(b, f->narrow);
    give_alone(b, f->chance);
    if (f->norm.own)
        give_alone(b, f->x);
    else
        give(b, f->x);
    move(b, &b->s->forward, MAQ_MOVE_TAKE, MAQ_SLOT_OUT);
    give(b, sum);
    if (f->norm.own)
        give(b, f->read);
    else
        give_alone(b, f->read);
    b->x = MAQ_SLOT_OUT;
    *at = i + 8;
    return true;
}

static void experts_backward(struct state *b, const struct experts *f)
{
    double routed = f->e * f->routed * f->outer, half = f->e * f->routed * f->inner / 2;
    uint16_t spread = back(b, routed), ordered = back(b, routed);
    drop(b, spread);
    uint16_t of_scores = back(b, routed), gradient = back(b, routed);
    drop(b, of_scores);
    drop(b, ordered);
    drop(b, f->last);
    move(b, &b->s->backward, MAQ_MOVE_WEIGHT, slot(b, f->numbers[1] * f->e));
    uint16_t both = back(b, half);
    drop(b, gradient);
    drop(b, f->both);
    uint16_t up = back(b, half), active = back(b, half);
    drop(b, both);
    drop(b, f->active);
    uint16_t gate = back(b, half);
    drop(b, active);
    drop(b, f->first);
    uint16_t first = back(b, 2 * half);
    drop(b, gate);
    drop(b, up);
    move(b, &b->s->backward, MAQ_MOVE_WEIGHT, slot(b, f->numbers[0] * f->e));
    uint16_t copied = back(b, routed);
    drop(b, first);
    drop(b, f->copied);
    uint16_t sum = back(b, f->e * f->rows * f->outer);
    drop(b, copied);
    drop(b, f->chance);
    uint16_t of_router = back(b, b->e * f->rows * f->outer);
    drop(b, f->norm.own ? f->x : f->narrow);
    if (b->autocast) {
        uint16_t wide = back(b, WIDE * f->rows * f->outer);
        drop(b, of_router);
        of_router = wide;
    }
    sum = add_gradients(b, sum, of_router, b->autocast, f->rows * f->outer);
    norm_backward(b, &f->norm, sum, MAQ_SLOT_GRADIENT);
}

/* ---- layers, embedding, output ---- */

/* Whether all products of a linear have adapters, or none. */
static bool adapters_known(const struct state *b)
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

static bool write_layer(struct state *b)
{
    struct attention a;
    struct gated f;
    struct experts x;
    uint32_t i = 0;
    b->s->bytes[MAQ_SLOT_OUT] = b->stream * (double)b->lower->tokens * (double)b->layer->hidden;
    if (!adapters_known(b) || !attention_forward(b, &a, &i))
        return false;
    bool routed = !b->frozen && experts_forward(b, &x, &i);
    if ((!routed && !gated_forward(b, &f, &i)) || i != b->layer->n_modules)
        return false;
    if (routed)
        experts_backward(b, &x);
    else
        gated_backward(b, &f);
    attention_backward(b, &a);
    b->s->keeps_input = !a.norm.own;
    b->s->first_wide = a.norm.wide;
    return true;
}

static bool write_embedding(struct state *b)
{
    const struct maq_module *m = module_at(b, 0);
    if (b->layer->n_modules != 1)
        return false;
    b->s->bytes[MAQ_SLOT_OUT] = b->stream * (double)b->lower->tokens * (double)b->layer->hidden;
    move(b, &b->s->forward, MAQ_MOVE_TAKE, MAQ_SLOT_OUT);
    if (!b->frozen)
        move(b, &b->s->backward, MAQ_MOVE_WEIGHT, slot(b, b->stream * maq_lower_local_params(b->lower, m)));
    drop(b, MAQ_SLOT_GRADIENT);
    return true;
}

static bool finds_unused(const struct maq_lower *lo)
{
    const struct maq_plan *p = &lo->job->plan;
    return lo->job->framework.find_unused_parameters && p->recompute == MAQ_RECOMPUTE_NONE &&
           p->sharding == MAQ_SHARDING_NONE;
}

static bool write_output(struct state *b)
{
    if (b->layer->n_modules != 3 || !is_kind(b, 1, MAQ_MODULE_LINEAR) || !is_kind(b, 2, MAQ_MODULE_LOSS) ||
        b->lower->plan->loss_function != MAQ_LOSS_TORCH || !b->lower->plan->fp32_upcast)
        return false;
    struct norm norm = norm_forward(b, module_at(b, 0));
    uint16_t x = b->x;
    bool x_wide = b->x_wide;
    double vocabulary = (double)maq_lower_local(b->lower, b->layer, module_at(b, 1)).out;
    struct product head = product_forward(b, module_at(b, 1), vocabulary);
    double numbers = head.rows * head.out;
    uint16_t wide = take(b, WIDE * numbers), logarithm = take(b, WIDE * numbers);
    give(b, wide);
    if (x_wide || b->frozen)
        give(b, x);
    if (b->lower->job->framework.outputs_in_fp32) {
        uint16_t copy = take(b, WIDE * numbers), passed = NONE;
        give(b, head.result);
        if (finds_unused(b->lower)) /* torch/nn/parallel/distributed.py, _DDPSink */
            passed = take(b, WIDE * numbers);
        give(b, copy);
        give(b, passed);
    } else {
        give(b, head.result);
    }
    uint16_t of_logarithm = back(b, WIDE * numbers), of_wide = back(b, WIDE * numbers);
    drop(b, of_logarithm);
    drop(b, logarithm);
    uint16_t gradient = back(b, b->e * numbers);
    drop(b, of_wide);
    move(b, &b->s->backward, MAQ_MOVE_LOGITS, gradient);
    gradient = product_backward(b, &head, gradient, false, x_wide ? NONE : x);
    move(b, &b->s->backward, MAQ_MOVE_RENAME, norm_backward(b, &norm, gradient, NONE));
    b->s->keeps_input = !norm.own;
    return true;
}

bool maq_eager_script(struct maq_eager_script *out, const struct maq_lower *lower, const struct maq_layer *layer)
{
    struct maq_eager_script s = {0};
    struct state b = {.s = &s,
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
    for (int i = 0; i < MAQ_SLOTS_FIXED; i++)
        slot(&b, 0);
    bool known = false;
    if (!s.failed && is_kind(&b, 0, MAQ_MODULE_EMBEDDING))
        known = write_embedding(&b);
    else if (!s.failed && is_kind(&b, layer->n_modules - 1, MAQ_MODULE_LOSS))
        known = write_output(&b);
    else if (!s.failed)
        known = write_layer(&b);
    *out = s;
    if (known && !s.failed)
        return true;
    maq_eager_script_free(out);
    out->failed = s.failed;
    return false;
}

void maq_eager_script_free(struct maq_eager_script *s)
{
    free(s->bytes);
    free(s->forward.at);
    free(s->backward.at);
    *s = (struct maq_eager_script){0};
}
