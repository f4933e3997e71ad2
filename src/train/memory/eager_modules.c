/* SPDX-License-Identifier: Apache-2.0 */
/* eager_modules.c - attention, a gated feed-forward and experts of the transformers library as scripts (eager_script.c says in which order). */
#include "base/check.h"
#include "lower/local.h"
#include "train/memory/eager_writer.h"
#include "train/memory/torch_layers.h"

/* ---- attention ---- */

static uint16_t turn(struct maq_script_writer *b, double numbers)
{
    double wide = (b->autocast ? WIDE : b->e) * numbers;
    uint16_t by_cos = maq_script_take(b, wide), half = maq_script_take(b, b->e * numbers / 2),
             turned = maq_script_take(b, b->e * numbers);
    maq_script_give(b, half);
    uint16_t by_sin = maq_script_take(b, wide);
    maq_script_give(b, turned);
    uint16_t sum = maq_script_take(b, wide);
    maq_script_give(b, by_cos);
    maq_script_give(b, by_sin);
    return sum;
}

static uint16_t turn_back(struct maq_script_writer *b, uint16_t gradient, double numbers)
{
    double e = b->e * numbers, wide = (b->autocast ? WIDE : b->e) * numbers;
    uint16_t by_sin = maq_script_take_backward(b, wide);
    if (b->autocast) {
        uint16_t narrow = maq_script_take_backward(b, e);
        maq_script_give_backward(b, by_sin);
        by_sin = narrow;
    }
    uint16_t half = maq_script_take_backward(b, e / 2), result = maq_script_take_backward(b, e);
    maq_script_give_backward(b, half);
    uint16_t other = maq_script_take_backward(b, e);
    maq_script_give_backward(b, by_sin);
    maq_script_give_backward(b, other);
    uint16_t by_cos = maq_script_take_backward(b, wide);
    if (b->autocast) {
        uint16_t narrow = maq_script_take_backward(b, e);
        maq_script_give_backward(b, by_cos);
        by_cos = narrow;
    }
    maq_script_give_backward(b, gradient);
    maq_script_give_backward(b, by_cos);
    return result;
}

/* The modules from `i` on up to the residual; false where they are others. */
bool maq_script_attention(struct maq_script_writer *b, struct maq_script_attention *a, uint32_t *at)
{
    uint32_t i = *at;
    int64_t widths[MAQ_LORA_SPANS];
    if (!maq_script_is(b, i, MAQ_MODULE_NORM) || !maq_script_is(b, i + 1, MAQ_MODULE_LINEAR))
        return false;
    const struct maq_module *norm = maq_script_module(b, i), *qkv = maq_script_module(b, i + 1), *of[2] = {NULL, NULL};
    i += 2;
    for (int k = 0; k < 2 && maq_script_is(b, i, MAQ_MODULE_NORM); k++)
        of[k] = maq_script_module(b, i++);
    bool turns = maq_script_is(b, i, MAQ_MODULE_ROPE);
    i += turns;
    const struct maq_module *core = maq_script_module(b, i), *out = maq_script_module(b, i + 1);
    if (!maq_script_is(b, i, MAQ_MODULE_ATTENTION) || !maq_script_is(b, i + 1, MAQ_MODULE_LINEAR) ||
        !maq_script_is(b, i + 2, MAQ_MODULE_RESIDUAL) || maq_lower_products(widths, b->lower, b->layer, qkv) != 3 ||
        b->lower->attention == MAQ_ATTENTION_UNFUSED || !turns || (of[0] && !of[1]))
        return false;
    const struct maq_attention_geometry *g = &core->u.attention;
    double rows = (double)maq_lower_local(b->lower, b->layer, qkv).rows;
    *a = (struct maq_script_attention){.normed = of[0] != NULL, .rows_heads = rows * g->heads};
    for (int k = 0; k < 3; k++)
        a->numbers[k] = rows * (double)widths[k];
    a->norm = maq_script_norm(b, norm);
    a->x = b->x;
    bool x_wide = b->x_wide;
    struct maq_script_product *p[3] = {&a->q, &a->k, &a->v};
    uint16_t x[3];
    for (int k = 0; k < 3; k++) {
        b->x = a->x;
        b->x_wide = x_wide;
        *p[k] = maq_script_product(b, qkv, (double)widths[k]);
        x[k] = p[k]->result;
        if (k < 2 && of[k]) {
            b->x = x[k];
            a->of[k] = maq_script_norm(b, of[k]);
            maq_script_give(b, x[k]);
            x[k] = b->x;
        }
    }
    for (int k = 0; k < 2; k++)
        a->turned[k] = turn(b, a->numbers[k]);
    maq_script_give(b, x[0]);
    maq_script_give(b, x[1]);
    a->narrow[0] = a->turned[0];
    a->narrow[1] = a->turned[1];
    if (b->autocast) {
        a->narrow[1] = maq_script_take(b, b->e * a->numbers[1]);
        a->narrow[0] = maq_script_take(b, b->e * a->numbers[0]);
    }
    a->result = maq_script_take(b, b->e * rows * (double)maq_lower_local(b->lower, b->layer, core).out);
    a->sums = maq_script_take(b, 4 * a->rows_heads);
    b->x = a->result;
    b->x_wide = false;
    a->out = maq_script_product(b, out, (double)maq_lower_local(b->lower, b->layer, out).out);
    for (int k = 0; k < 2; k++)
        if (b->autocast) {
            maq_script_give(b, a->turned[k]);
            maq_script_give_alone(b, a->narrow[k]);
        } else {
            maq_script_give_alone(b, a->turned[k]);
        }
    maq_script_give_alone(b, a->v.result);
    maq_script_give_alone(b, a->result);
    maq_script_give_alone(b, a->sums);
    if (b->autocast || b->frozen)
        maq_script_give(b, a->x);
    else
        maq_script_give_alone(b, a->x);
    uint16_t sum = maq_script_take(b, b->stream * rows * (double)b->layer->hidden);
    maq_script_give(b, a->out.result);
    b->residual = b->x = sum;
    *at = i + 3;
    return true;
}

void maq_script_attention_backward(struct maq_script_writer *b, const struct maq_script_attention *a)
{
    uint16_t stream = MAQ_SLOT_GRADIENT, gradient = stream, of[3];
    if (b->autocast)
        gradient = maq_script_take_backward(b, b->e * a->out.rows * a->out.out);
    uint16_t inner = maq_script_product_backward(b, &a->out, gradient, !b->autocast, MAQ_SLOT_NONE);
    for (int k = 0; k < 3; k++)
        of[k] = maq_script_take_backward(b, b->e * a->numbers[k]);
    maq_script_give_backward(b, maq_script_take_backward(b, WIDE * (a->numbers[0] + a->rows_heads)));
    maq_script_give_backward(b, inner);
    maq_script_give_backward(b, a->narrow[1]);
    maq_script_give_backward(b, a->narrow[0]);
    maq_script_give_backward(b, a->v.result);
    maq_script_give_backward(b, a->sums);
    maq_script_give_backward(b, a->result);
    for (int k = 0; k < 2 && b->autocast; k++) {
        uint16_t wide = maq_script_take_backward(b, WIDE * a->numbers[k]);
        maq_script_give_backward(b, of[k]);
        of[k] = wide;
    }
    for (int k = 2; k-- > 0;)
        of[k] = turn_back(b, of[k], a->numbers[k]);
    double numbers = a->q.rows * a->q.in;
    uint16_t sum = maq_script_product_backward(b, &a->v, of[2], false, MAQ_SLOT_NONE);
    const struct maq_script_product *p[2] = {&a->q, &a->k};
    for (int k = 2; k-- > 0;) {
        if (a->normed) {
            of[k] = maq_script_norm_backward(b, &a->of[k], of[k], MAQ_SLOT_NONE);
        } else {
            uint16_t copy = maq_script_take_backward(b, b->e * a->numbers[k]); /* heads are put beside each other */
            maq_script_give_backward(b, of[k]);
            of[k] = copy;
        }
        uint16_t other =
            maq_script_product_backward(b, p[k], of[k], false, k == 0 && !b->autocast ? a->x : MAQ_SLOT_NONE);
        sum = maq_script_sum_gradients(b, sum, other, b->autocast || k == 0, numbers);
    }
    maq_script_norm_backward(b, &a->norm, sum, stream);
}

/* What a layer returns: what was computed and what its norm read, added. */
static void add_residual(struct maq_script_writer *b, uint16_t computed, const struct maq_script_norm *norm,
                         uint16_t read)
{
    maq_script_move(b, &b->s->forward, MAQ_MOVE_TAKE, MAQ_SLOT_OUT);
    maq_script_give(b, computed);
    if (norm->own)
        maq_script_give(b, read);
    else
        maq_script_give_alone(b, read);
    b->x = MAQ_SLOT_OUT;
}

/* ---- gated feed-forward ---- */

bool maq_script_gated(struct maq_script_writer *b, struct maq_script_gated *f, uint32_t *at)
{
    uint32_t i = *at;
    int64_t widths[MAQ_LORA_SPANS];
    if (!maq_script_is(b, i, MAQ_MODULE_NORM) || !maq_script_is(b, i + 1, MAQ_MODULE_LINEAR) ||
        !maq_script_is(b, i + 2, MAQ_MODULE_ACTIVATION) || !maq_script_is(b, i + 3, MAQ_MODULE_LINEAR) ||
        !maq_script_is(b, i + 4, MAQ_MODULE_RESIDUAL) ||
        maq_lower_products(widths, b->lower, b->layer, maq_script_module(b, i + 1)) != 2)
        return false;
    const struct maq_module *first = maq_script_module(b, i + 1), *second = maq_script_module(b, i + 3);
    f->read = b->x;
    f->norm = maq_script_norm(b, maq_script_module(b, i));
    f->x = b->x;
    bool x_wide = b->x_wide;
    double bytes = b->e * (double)maq_lower_local(b->lower, b->layer, first).rows * (double)widths[0];
    f->gate = maq_script_product(b, first, (double)widths[0]);
    f->active = maq_script_take(b, bytes);
    maq_script_give_alone(b, f->gate.result);
    f->up = maq_script_product(b, first, (double)widths[1]);
    f->both = maq_script_take(b, bytes);
    maq_script_give_alone(b, f->active);
    maq_script_give_alone(b, f->up.result);
    b->x = f->both;
    b->x_wide = false;
    f->down = maq_script_product(b, second, (double)maq_lower_local(b->lower, b->layer, second).out);
    if (b->frozen)
        maq_script_give(b, f->both);
    else
        maq_script_give_alone(b, f->both);
    if (x_wide || b->frozen)
        maq_script_give(b, f->x);
    else
        maq_script_give_alone(b, f->x);
    add_residual(b, f->down.result, &f->norm, f->read);
    *at = i + 5;
    return true;
}

void maq_script_gated_backward(struct maq_script_writer *b, const struct maq_script_gated *f)
{
    double bytes = b->e * f->up.rows * f->up.out, numbers = f->up.rows * f->up.in;
    uint16_t gradient = MAQ_SLOT_GRADIENT;
    if (b->autocast)
        gradient = maq_script_take_backward(b, b->e * f->down.rows * f->down.out);
    uint16_t both = maq_script_product_backward(b, &f->down, gradient, !b->autocast, f->both),
             up = maq_script_take_backward(b, bytes), active = maq_script_take_backward(b, bytes);
    maq_script_give_backward(b, both);
    maq_script_give_backward(b, f->active);
    maq_script_give_backward(b, f->up.result);
    uint16_t first = maq_script_product_backward(b, &f->up, up, false, MAQ_SLOT_NONE),
             gate = maq_script_take_backward(b, bytes);
    maq_script_give_backward(b, active);
    maq_script_give_backward(b, f->gate.result);
    uint16_t second = maq_script_product_backward(b, &f->gate, gate, false, b->autocast ? MAQ_SLOT_NONE : f->x);
    maq_script_norm_backward(b, &f->norm, maq_script_sum_gradients(b, first, second, b->autocast, numbers),
                             MAQ_SLOT_GRADIENT);
}

/* ---- experts ---- */

static bool experts_known(const struct maq_script_writer *b, uint32_t i)
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
        if (!maq_script_is(b, i + (uint32_t)k, kinds[k]))
            return false;
    return (b->layer->modules[i + 4].flags & MAQ_MODULE_GATED) != 0;
}

bool maq_script_experts(struct maq_script_writer *b, struct maq_script_experts *f, uint32_t *at)
{
    uint32_t i = *at;
    if (!experts_known(b, i))
        return false;
    const struct maq_module *router = maq_script_module(b, i + 1), *one = maq_script_module(b, i + 3),
                            *two = maq_script_module(b, i + 5);
    struct maq_local d = maq_lower_local(b->lower, b->layer, one);
    *f = (struct maq_script_experts){.rows = (double)maq_lower_local(b->lower, b->layer, maq_script_module(b, i)).rows,
                                     .routed = (double)d.rows,
                                     .inner = (double)d.out,
                                     .outer = (double)d.in,
                                     .numbers = {(double)one->params, (double)two->params},
                                     .e = b->autocast ? WIDE : b->e,
                                     .narrow = MAQ_SLOT_NONE,
                                     .read = b->x};
    f->norm = maq_script_norm(b, maq_script_module(b, i));
    f->x = b->x;
    if (b->autocast)
        f->narrow = maq_script_take(b, b->e * f->rows * f->outer);
    f->chance = maq_script_take(b, WIDE * f->rows * (double)router->out);
    f->copied = maq_script_take(b, f->e * f->routed * f->outer);
    f->first = maq_script_take(b, f->e * f->routed * f->inner);
    maq_script_give_alone(b, f->copied);
    f->active = maq_script_take(b, f->e * f->routed * f->inner / 2);
    f->both = maq_script_take(b, f->e * f->routed * f->inner / 2);
    maq_script_give_alone(b, f->first);
    maq_script_give_alone(b, f->active);
    f->last = maq_script_take(b, f->e * f->routed * f->outer);
    maq_script_give_alone(b, f->both);
    uint16_t scaled = maq_script_take(b, f->e * f->routed * f->outer);
    maq_script_give_alone(b, f->last);
    uint16_t ordered = maq_script_take(b, f->e * f->routed * f->outer);
    maq_script_give(b, scaled);
    uint16_t sum = maq_script_take(b, f->e * f->rows * f->outer);
    maq_script_give(b, ordered);
    maq_script_give_alone(b, f->narrow);
    maq_script_give_alone(b, f->chance);
    if (f->norm.own)
        maq_script_give_alone(b, f->x);
    else
        maq_script_give(b, f->x);
    add_residual(b, sum, &f->norm, f->read);
    *at = i + 8;
    return true;
}

void maq_script_experts_backward(struct maq_script_writer *b, const struct maq_script_experts *f)
{
    double routed = f->e * f->routed * f->outer, half = f->e * f->routed * f->inner / 2;
    uint16_t spread = maq_script_take_backward(b, routed), ordered = maq_script_take_backward(b, routed);
    maq_script_give_backward(b, spread);
    uint16_t of_scores = maq_script_take_backward(b, routed), gradient = maq_script_take_backward(b, routed);
    maq_script_give_backward(b, of_scores);
    maq_script_give_backward(b, ordered);
    maq_script_give_backward(b, f->last);
    maq_script_move(b, &b->s->backward, MAQ_MOVE_WEIGHT, maq_script_slot(b, f->numbers[1] * f->e));
    uint16_t both = maq_script_take_backward(b, half);
    maq_script_give_backward(b, gradient);
    maq_script_give_backward(b, f->both);
    uint16_t up = maq_script_take_backward(b, half), active = maq_script_take_backward(b, half);
    maq_script_give_backward(b, both);
    maq_script_give_backward(b, f->active);
    uint16_t gate = maq_script_take_backward(b, half);
    maq_script_give_backward(b, active);
    maq_script_give_backward(b, f->first);
    uint16_t first = maq_script_take_backward(b, 2 * half);
    maq_script_give_backward(b, gate);
    maq_script_give_backward(b, up);
    maq_script_move(b, &b->s->backward, MAQ_MOVE_WEIGHT, maq_script_slot(b, f->numbers[0] * f->e));
    uint16_t copied = maq_script_take_backward(b, routed);
    maq_script_give_backward(b, first);
    maq_script_give_backward(b, f->copied);
    uint16_t sum = maq_script_take_backward(b, f->e * f->rows * f->outer);
    maq_script_give_backward(b, copied);
    maq_script_give_backward(b, f->chance);
    uint16_t of_router = maq_script_take_backward(b, b->e * f->rows * f->outer);
    maq_script_give_backward(b, f->norm.own ? f->x : f->narrow);
    if (b->autocast) {
        uint16_t wide = maq_script_take_backward(b, WIDE * f->rows * f->outer);
        maq_script_give_backward(b, of_router);
        of_router = wide;
    }
    sum = maq_script_sum_gradients(b, sum, of_router, b->autocast, f->rows * f->outer);
    maq_script_norm_backward(b, &f->norm, sum, MAQ_SLOT_GRADIENT);
}
