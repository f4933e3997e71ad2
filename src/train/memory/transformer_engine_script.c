/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transformer_engine_script.c - dense layers, embedding and output of Megatron-LM on Transformer Engine as scripts. What follows is the order of requests
 * of Megatron-LM core 0.16 and Transformer Engine 2.20 (pytorch/module/layernorm_linear.py, linear.py, attention; fusions/, tensor_parallel/ of
 * Megatron-LM), held against the allocator's own record of pretrain_gpt.py (torch.cuda.memory._record_memory_history()). e are the bytes
 * of a number.
 *
 *   norm        joined with the product that reads it: 4 bytes a row for the root, as many for the mean of a LayerNorm, the result. Both and the
 *               input are kept. Backward the input's gradient, and for a moment what every block of the kernel has of the
 *               weight's gradient (and of the bias')
 *   product     its result; with sequence parallelism the gathered input, or what is scattered, for a moment. Backward the input's gradient, then
 *               the weight's, unless it is added to the main one in the product; that lives to the end of its module, or where a norm
 *               is joined until autograd has the sum of the stream's gradients
 *   queries     of shared keys and values are copied apart, queries and keys turned, values copied to be contiguous; without groups
 *               all stay views of what the product returned
 *   attention   its output and a number for each row and head; backward the gradients, and for a moment those of the queries in 4
 *               bytes with a number for each row and head; then all are put together in one
 *   residual    a byte for each number where dropout is, and the sum; backward the gradient behind dropout
 *   activation  its result; its input is kept. The bias of one that is not gated is added in the same kernel, and the sum of its
 *               gradient takes 8 bytes a number (Reduce.cuh)
 *   embedding   rows of the tables and what is made of them (see there); backward whole gradients of the tables
 *   stream      gradients of both ways add up in a new tensor in the upper half of a layer, in the lower in that
 *   loss        logits in 4 bytes while those in e are there; backward the logits' gradient in e
 */
#include "train/memory/transformer_engine_script.h"

#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "lower/local.h"
#include "train/memory/cublas_workspaces.h"
#include "train/memory/eager_writer.h"
#include "train/memory/torch_layers.h"

#define SUM_SCRATCH 8.0 /* bytes for each number that is added up over rows */

/*
 * What a multiprocessor has for blocks: shared memory in bytes, and threads (CUDA C++ Programming Guide, technical specifications by compute
 * capability: 7.0, 7.5, 8.0, 8.9, 9.0, 10.0). Of others what Hopper has.
 */
struct multiprocessor {
    double shared_bytes, threads;
};

static struct multiprocessor multiprocessor_of(enum maq_device_arch arch)
{
    static const struct multiprocessor hopper = {228.0 * 1024, 2048};
    static const struct multiprocessor before[MAQ_ARCH_HOPPER] = {[MAQ_ARCH_VOLTA] = {96.0 * 1024, 2048},
                                                                  [MAQ_ARCH_TURING] = {64.0 * 1024, 1024},
                                                                  [MAQ_ARCH_AMPERE] = {164.0 * 1024, 2048},
                                                                  [MAQ_ARCH_ADA] = {100.0 * 1024, 1536}};
    return arch < MAQ_ARCH_HOPPER ? before[arch] : hopper;
}

/* A norm and its place in memory. */
struct joined {
    double numbers, rows;
    uint16_t in, mean, root, out; /* in: what it reads */
};

struct half {
    struct joined norm;
    const struct maq_module *first, *last; /* products */
    uint16_t first_out, last_in, mask;
    double hidden; /* numbers of the stream */
};

static double local_numbers(const struct maq_script_writer *b, const struct maq_module *m, bool out)
{
    struct maq_local d = maq_lower_local(b->lower, b->layer, m);
    return (double)d.rows * (double)(out ? d.out : d.in);
}

double maq_te_weight_numbers(const struct maq_lower *lower, const struct maq_module *m)
{
    const double all = maq_lower_local_params(lower, m), rows = (double)m->in, columns = (double)m->out;
    if (m->kind != MAQ_MODULE_LINEAR || !(m->flags & MAQ_MODULE_BIAS))
        return all;
    bool by_row = m->shard == MAQ_SHARD_ROW; /* each rank has the whole bias */
    return by_row ? all - columns : all * rows / (rows + 1);
}

static bool is_layer_norm(const struct maq_module *m)
{
    return m->params > m->in; /* with a bias */
}

static struct joined norm_forward(struct maq_script_writer *b, const struct maq_module *m)
{
    struct maq_local d = maq_lower_local(b->lower, b->layer, m);
    struct joined n = {
        .numbers = (double)d.rows * (double)d.in, .rows = (double)d.rows, .in = b->x, .mean = MAQ_SLOT_NONE};
    if (is_layer_norm(m))
        n.mean = maq_script_take(b, WIDE * n.rows);
    n.root = maq_script_take(b, WIDE * n.rows);
    n.out = b->x = maq_script_take(b, b->e * n.numbers);
    return n;
}

/*
 * What the blocks of the kernel have of the weight's gradient: as many as run at once, of 128 threads, with a row in 4 bytes in shared memory,
 * or four of at most 1,024 numbers, and a KiB of the driver's (common/normalization, ln_bwd_semi_cuda_kernel.cu and rmsnorm's; what
 * registers limit beyond that is not counted).
 */
static double norm_scratch(const struct maq_script_writer *b, const struct joined *n)
{
    const struct maq_device *device = b->lower->device;
    if (!device)
        return 0;
    const struct multiprocessor has = multiprocessor_of(device->arch);
    double columns = n->numbers / n->rows, rows = columns > 1024 ? 1 : 4,
           blocks = floor(has.shared_bytes / (rows * WIDE * columns + 1024));
    blocks = fmin(fmax(blocks, 1), has.threads / 128.0);
    return device->sms * blocks * columns * WIDE * (n->mean == MAQ_SLOT_NONE ? 1 : 2);
}

/* Gives back the gradient of what it returned, whole and scattered, and its input; returns the gradient of that. `behind` goes with them. */
static uint16_t norm_backward(struct maq_script_writer *b, const struct joined *n, uint16_t gradient, uint16_t full,
                              uint16_t behind)
{
    uint16_t result = maq_script_take_backward(b, b->e * n->numbers);
    maq_script_give_backward(b, maq_script_take_backward(b, norm_scratch(b, n)));
    maq_script_give_backward(b, n->mean);
    maq_script_give_backward(b, n->root);
    maq_script_give_backward(b, gradient);
    maq_script_give_backward(b, full);
    maq_script_give_backward(b, behind);
    maq_script_give_backward(b, n->in);
    return result;
}

static bool gathers(const struct maq_script_writer *b)
{
    return b->lower->plan->tp > 1 && b->lower->plan->sequence_parallel == MAQ_ON;
}

/* What is whole for a moment where the sequence is cut; MAQ_SLOT_NONE where it is not. */
static uint16_t whole(struct maq_script_writer *b, double numbers, bool backward)
{
    if (!gathers(b))
        return MAQ_SLOT_NONE;
    return backward ? maq_script_take_backward(b, b->e * numbers) : maq_script_take(b, b->e * numbers);
}

static uint16_t weight_gradient(struct maq_script_writer *b, const struct maq_module *m)
{
    if (b->lower->plan->weight_grad_fusion)
        return MAQ_SLOT_NONE;
    return maq_script_take_backward(b, b->e * maq_te_weight_numbers(b->lower, m));
}

/* Autograd is through with it; it belongs to the stream that DistributedDataParallel was made on, too. */
static void give_weight(struct maq_script_writer *b, uint16_t gradient)
{
    if (gradient != MAQ_SLOT_NONE)
        maq_script_move(b, &b->s->backward, MAQ_MOVE_WEIGHT, gradient);
}

/* PyTorch's own products, of the output layer. */
static void product_workspace(struct maq_script_writer *b, bool backward)
{
    const double bytes = maq_cublas_workspace_bytes(b->lower->job);
    if (b->lower->job->framework.keeps_workspaces)
        return;
    if (backward)
        maq_script_give_backward(b, maq_script_take_backward(b, bytes));
    else
        maq_script_give(b, maq_script_take(b, bytes));
}

/* ---- halves of a layer ---- */

static void first_product(struct maq_script_writer *b, struct half *h)
{
    uint16_t gathered = whole(b, local_numbers(b, h->first, false), false);
    h->first_out = maq_script_take(b, b->e * local_numbers(b, h->first, true));
    maq_script_give(b, gathered);
    b->x = h->first_out;
}

/* The product that ends a half, and the sum. Gives back what it returned; `used`: what is free as soon as that is there. */
static void last_product(struct maq_script_writer *b, struct half *h, const struct maq_module *residual,
                         const uint16_t used[2])
{
    struct maq_local d = maq_lower_local(b->lower, b->layer, residual);
    h->hidden = (double)d.rows * (double)residual->out;
    h->last_in = b->x;
    uint16_t result = maq_script_take(b, b->e * local_numbers(b, h->last, true));
    if (gathers(b)) {
        uint16_t part = maq_script_take(b, b->e * h->hidden);
        maq_script_give(b, result);
        result = part;
    }
    maq_script_give(b, used[0]);
    maq_script_give(b, used[1]);
    h->mask = residual->flags & MAQ_MODULE_DROPOUT ? maq_script_take(b, h->hidden) : MAQ_SLOT_NONE;
    b->s->sum = b->s->forward.n;
    b->x = maq_script_take(b, b->e * h->hidden);
    maq_script_give(b, result);
}

/* Up to the gradient of what the last product read. */
static uint16_t last_product_backward(struct maq_script_writer *b, const struct half *h, bool keeps_input)
{
    bool drops = h->mask != MAQ_SLOT_NONE;
    uint16_t gradient = drops ? maq_script_take_backward(b, b->e * h->hidden) : MAQ_SLOT_NONE;
    maq_script_give_backward(b, h->mask);
    uint16_t gathered = whole(b, local_numbers(b, h->last, true), true);
    uint16_t result = maq_script_take_backward(b, b->e * local_numbers(b, h->last, false)),
             weight = weight_gradient(b, h->last);
    maq_script_give_backward(b, gathered);
    maq_script_give_backward(b, gradient);
    if (!keeps_input)
        maq_script_give_backward(b, h->last_in);
    give_weight(b, weight);
    return result;
}

/* From the gradient of what the first product returned to that of the stream, which adds up: in place, or in a tensor of its own. */
static void first_product_backward(struct maq_script_writer *b, const struct half *h, uint16_t gradient, bool in_place)
{
    uint16_t gathered = whole(b, local_numbers(b, h->first, false), true),
             result = maq_script_take_backward(b, b->e * local_numbers(b, h->first, false)),
             part = whole(b, h->norm.numbers, true), weight = weight_gradient(b, h->first);
    maq_script_give_backward(b, h->norm.out);
    maq_script_give_backward(b, gathered);
    uint16_t input = norm_backward(b, &h->norm, part, result, gradient);
    if (in_place) {
        maq_script_give_backward(b, input);
    } else {
        uint16_t sum = maq_script_take_backward(b, b->e * h->norm.numbers);
        maq_script_give_backward(b, b->gradient);
        maq_script_give_backward(b, input);
        b->gradient = sum;
    }
    give_weight(b, weight);
}

/* ---- attention ---- */

struct attention {
    struct half half;
    const struct maq_module *core;
    double numbers[3]; /* of queries, keys, values */
    double rows_heads;
    uint16_t turned[2], values, result, sums;
    bool apart, turns; /* queries, keys and values are tensors of their own; queries and keys are turned */
};

/* Modules from `i` on; false where they are others. */
static bool match_attention(const struct maq_script_writer *b, struct attention *a, uint32_t *at)
{
    uint32_t i = *at;
    if (!maq_script_is(b, i, MAQ_MODULE_NORM) || !maq_script_is(b, i + 1, MAQ_MODULE_LINEAR) ||
        !maq_lower_norm_joined(b->lower, b->layer, maq_script_module(b, i)))
        return false;
    *a = (struct attention){.half.first = maq_script_module(b, i + 1),
                            .turns = maq_script_is(b, i + 2, MAQ_MODULE_ROPE)};
    i += a->turns ? 3 : 2;
    if (!maq_script_is(b, i, MAQ_MODULE_ATTENTION) || !maq_script_is(b, i + 1, MAQ_MODULE_LINEAR) ||
        !maq_script_is(b, i + 2, MAQ_MODULE_RESIDUAL))
        return false;
    a->core = maq_script_module(b, i);
    a->half.last = maq_script_module(b, i + 1);
    const struct maq_attention_geometry *g = &a->core->u.attention;
    bool grouped = g->kv_heads != g->heads;
    double heads = (double)g->heads * g->qk_dim + (double)g->kv_heads * (g->qk_dim + g->v_dim),
           numbers = local_numbers(b, a->core, false);
    if (heads <= 0 || (grouped && !a->turns))
        return false;
    a->numbers[0] = numbers * g->heads * g->qk_dim / heads;
    a->numbers[1] = numbers * g->kv_heads * g->qk_dim / heads;
    a->numbers[2] = numbers * g->kv_heads * g->v_dim / heads;
    a->rows_heads = (double)b->lower->tokens * g->heads / b->lower->plan->tp;
    a->apart = a->turns;
    *at = i + 3;
    return true;
}

static void attention_forward(struct maq_script_writer *b, struct attention *a, uint32_t from, uint32_t behind)
{
    const struct maq_attention_geometry *g = &a->core->u.attention;
    uint16_t used[2] = {MAQ_SLOT_NONE, MAQ_SLOT_NONE};
    a->half.norm = norm_forward(b, maq_script_module(b, from));
    first_product(b, &a->half);
    if (a->apart) {
        if (g->kv_heads != g->heads)
            used[0] = maq_script_take(b, b->e * a->numbers[0]);
        for (int k = 0; k < 2; k++)
            a->turned[k] = maq_script_take(b, b->e * a->numbers[k]);
        a->values = maq_script_take(b, b->e * a->numbers[2]);
        used[1] = a->half.first_out;
    }
    a->result = maq_script_take(b, b->e * local_numbers(b, a->core, true));
    a->sums = maq_script_take(b, WIDE * a->rows_heads);
    b->x = a->result;
    last_product(b, &a->half, maq_script_module(b, behind - 1), used);
}

static void attention_backward(struct maq_script_writer *b, const struct attention *a)
{
    uint16_t output = last_product_backward(b, &a->half, true), of[3], qkv;
    double all = b->e * local_numbers(b, a->half.first, true);
    if (a->apart)
        for (int k = 0; k < 3; k++)
            of[k] = maq_script_take_backward(b, b->e * a->numbers[k]);
    else
        of[0] = maq_script_take_backward(b, all);
    maq_script_give_backward(b, maq_script_take_backward(b, WIDE * (a->numbers[0] + a->rows_heads)));
    maq_script_give_backward(b, output);
    if (a->apart) {
        maq_script_give_backward(b, a->turned[0]);
        maq_script_give_backward(b, a->turned[1]);
        maq_script_give_backward(b, a->values);
    } else {
        maq_script_give_backward(b, a->half.first_out);
    }
    maq_script_give_backward(b, a->result);
    maq_script_give_backward(b, a->sums);
    for (int k = 1; k >= 0 && a->apart; k--) {
        uint16_t back = maq_script_take_backward(b, b->e * a->numbers[k]);
        maq_script_give_backward(b, of[k]);
        of[k] = back;
    }
    qkv = maq_script_take_backward(b, all);
    for (int k = 0; k < (a->apart ? 3 : 1); k++)
        maq_script_give_backward(b, of[k]);
    first_product_backward(b, &a->half, qkv, true);
}

/* ---- MLP ---- */

struct mlp {
    struct half half;
    const struct maq_module *activation;
};

static bool match_mlp(const struct maq_script_writer *b, struct mlp *f, uint32_t *at)
{
    uint32_t i = *at;
    if (!maq_script_is(b, i, MAQ_MODULE_NORM) || !maq_script_is(b, i + 1, MAQ_MODULE_LINEAR) ||
        !maq_script_is(b, i + 2, MAQ_MODULE_ACTIVATION) || !maq_script_is(b, i + 3, MAQ_MODULE_LINEAR) ||
        !maq_script_is(b, i + 4, MAQ_MODULE_RESIDUAL) ||
        !maq_lower_norm_joined(b->lower, b->layer, maq_script_module(b, i)))
        return false;
    *f = (struct mlp){.half = {.first = maq_script_module(b, i + 1), .last = maq_script_module(b, i + 3)},
                      .activation = maq_script_module(b, i + 2)};
    *at = i + 5;
    return true;
}

static void mlp_forward(struct maq_script_writer *b, struct mlp *f, uint32_t from)
{
    const uint16_t none[2] = {MAQ_SLOT_NONE, MAQ_SLOT_NONE};
    f->half.norm = norm_forward(b, maq_script_module(b, from));
    first_product(b, &f->half);
    b->x = maq_script_take(b, b->e * local_numbers(b, f->activation, true));
    last_product(b, &f->half, maq_script_module(b, from + 4), none);
}

static void mlp_backward(struct maq_script_writer *b, const struct mlp *f)
{
    double inner = local_numbers(b, f->half.first, true);
    bool summed = (f->half.first->flags & MAQ_MODULE_BIAS) && !(f->activation->flags & MAQ_MODULE_GATED);
    uint16_t active = last_product_backward(b, &f->half, false), gradient = maq_script_take_backward(b, b->e * inner);
    maq_script_give_backward(b, active);
    if (summed)
        maq_script_give_backward(b, maq_script_take_backward(b, SUM_SCRATCH * inner));
    maq_script_give_backward(b, f->half.first_out);
    first_product_backward(b, &f->half, gradient, false);
}

/* ---- layers, embedding, output ---- */

static bool write_layer(struct maq_script_writer *b)
{
    struct attention a;
    struct mlp f;
    uint32_t i = 0, between;
    if (!match_attention(b, &a, &i))
        return false;
    between = i;
    if (!match_mlp(b, &f, &i) || i != b->layer->n_modules)
        return false;
    attention_forward(b, &a, 0, between);
    mlp_forward(b, &f, between);
    maq_script_move(b, &b->s->forward, MAQ_MOVE_RENAME, b->x);
    b->gradient = MAQ_SLOT_GRADIENT;
    mlp_backward(b, &f);
    attention_backward(b, &a);
    maq_script_move(b, &b->s->backward, MAQ_MOVE_RENAME, b->gradient);
    return true;
}

/* A tensor made of the last one, which is free then; `kept` is not. */
static uint16_t made_of(struct maq_script_writer *b, uint16_t last, double bytes, uint16_t kept)
{
    uint16_t next = maq_script_take(b, bytes);
    if (last != kept)
        maq_script_give(b, last);
    return next;
}

/* Gradients of the tables, whole for a moment. */
static void tables_backward(struct maq_script_writer *b, uint16_t mask)
{
    const struct maq_module *words = maq_script_module(b, 0);
    double all = b->e * (double)b->lower->tokens * (double)words->out;
    uint16_t dropped = MAQ_SLOT_GRADIENT;
    if (mask != MAQ_SLOT_NONE) {
        dropped = maq_script_take_backward(b, b->e * (double)b->lower->tokens_region * (double)words->out);
        maq_script_give_backward(b, MAQ_SLOT_GRADIENT);
        maq_script_give_backward(b, mask);
    }
    uint16_t ordered = maq_script_take_backward(b, all);
    for (uint32_t i = 0; i < b->layer->n_modules; i++)
        give_weight(b, maq_script_take_backward(b, b->e * maq_lower_local_params(b->lower, maq_script_module(b, i))));
    maq_script_give_backward(b, ordered);
    maq_script_give_backward(b, dropped);
}

/* Looked up, positions added, put in the order of the stream, cut with sequence parallelism, dropped. */
static bool write_embedding(struct maq_script_writer *b)
{
    const struct maq_module *words = maq_script_module(b, 0), *last = maq_script_module(b, b->layer->n_modules - 1);
    bool places = b->layer->n_modules == 2 && maq_script_is(b, 1, MAQ_MODULE_EMBEDDING);
    double numbers = (double)b->lower->tokens_region * (double)words->out,
           all = b->e * (double)b->lower->tokens * (double)words->out;
    if (b->layer->n_modules != 1 && !places)
        return false;
    uint16_t rows = maq_script_take(b, all), mask = MAQ_SLOT_NONE, stream = rows, positions = MAQ_SLOT_NONE;
    if (places) {
        positions = maq_script_take(b, all);
        stream = maq_script_take(b, all);
    }
    if (b->lower->plan->mbs > 1)
        stream = made_of(b, stream, all, rows);
    if (gathers(b))
        stream = made_of(b, stream, b->e * numbers, rows);
    if (last->flags & MAQ_MODULE_DROPOUT) {
        mask = maq_script_take(b, numbers);
        stream = made_of(b, stream, b->e * numbers, rows);
    }
    if (stream != rows)
        maq_script_give(b, rows);
    maq_script_give(b, positions);
    maq_script_move(b, &b->s->forward, MAQ_MOVE_RENAME, stream);
    tables_backward(b, mask);
    return true;
}

static bool write_output(struct maq_script_writer *b)
{
    const struct maq_module *head = maq_script_module(b, 1);
    if (b->layer->n_modules != 3 || !maq_script_is(b, 0, MAQ_MODULE_NORM) || !maq_script_is(b, 1, MAQ_MODULE_LINEAR) ||
        b->lower->plan->loss_function != MAQ_LOSS_VOCAB_PARALLEL || b->lower->plan->loss_fusion)
        return false;
    struct joined norm = norm_forward(b, maq_script_module(b, 0));
    double logits = local_numbers(b, head, true);
    uint16_t gathered = whole(b, local_numbers(b, head, false), false), narrow = maq_script_take(b, b->e * logits);
    product_workspace(b, false);
    maq_script_give(b, gathered);
    uint16_t wide = maq_script_take(b, WIDE * logits);
    maq_script_give(b, narrow);
    uint16_t gradient = maq_script_take_backward(b, b->e * logits);
    maq_script_give_backward(b, wide);
    gathered = whole(b, local_numbers(b, head, false), true);
    uint16_t input = maq_script_take_backward(b, b->e * local_numbers(b, head, false));
    product_workspace(b, true);
    uint16_t part = whole(b, norm.numbers, true);
    uint16_t weight = weight_gradient(b, head);
    product_workspace(b, true);
    if (part != MAQ_SLOT_NONE) {
        maq_script_give_backward(b, input);
        input = part;
    }
    maq_script_give_backward(b, gathered);
    maq_script_give_backward(b, gradient);
    maq_script_give_backward(b, norm.out);
    give_weight(b, weight);
    maq_script_move(b, &b->s->backward, MAQ_MOVE_RENAME, norm_backward(b, &norm, input, MAQ_SLOT_NONE, MAQ_SLOT_NONE));
    return true;
}

/* Whether the order of a plan's requests is the one above. */
static bool known_plan(const struct maq_lower *lo)
{
    const struct maq_plan *p = lo->plan;
    return maq_job_has_transformer_engine(lo->job) && lo->attention != MAQ_ATTENTION_UNFUSED && p->cp == 1 &&
           p->lora_rank == 0 && p->recompute != MAQ_RECOMPUTE_SELECTIVE && p->offload_modules == 0 && !p->cuda_graphs &&
           p->graph_scope == 0 && !p->vocab_parallel_pipeline && lo->math == lo->store && lo->store_bytes <= 2;
}

bool maq_te_script(struct maq_eager_script *out, const struct maq_lower *lower, const struct maq_layer *layer)
{
    struct maq_eager_script s = {.keeps_input = true};
    struct maq_script_writer b = {.s = &s, .lower = lower, .layer = layer, .e = lower->store_bytes, .x = MAQ_SLOT_IN};
    *out = s;
    if (!known_plan(lower))
        return false;
    return maq_script_write(out, &b, &(struct maq_script_order){write_embedding, write_output, write_layer});
}
