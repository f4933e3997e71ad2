/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear.c - linears and the collectives of tensor and sequence parallelism.
 *
 *                     forward                          backward
 *   column, SP        all-gather x, GEMM               all-gather x (under dgrad), dgrad, reduce-scatter dx (under wgrad), wgrad
 *   column, no SP     GEMM                             dgrad, all-reduce dx (under wgrad), wgrad
 *   row, SP           GEMM, reduce-scatter y           all-gather dy, dgrad, wgrad
 *   row, no SP        GEMM, all-reduce y               dgrad, wgrad
 *
 * The overlaps inside the backward pass are Megatron-LM's (tensor_parallel/layers.py,
 * LinearWithGradAccumulationAndAsyncCommunication); where a framework has plain linears between collectives of their own
 * (`tp_reduces_last`), autograd computes both gradients before it comes to the reduction. With `tp_comm_overlap` every collective
 * is cut into TP pieces that overlap with the GEMM next to it: only one piece is exposed (Transformer Engine's userbuffers), and
 * the pieces that a reduction brings are added up by a kernel behind it (comm_gemm_overlap.cpp, split_overlap_rs: reduce_bf16;
 * PyTorch's _symmetric_memory, _fused_matmul_reduce_scatter: a sum over stacked partial products).
 *
 * FP8/FP4 recipes quantize the inputs of each GEMM. Delayed, block and MX recipes have it fused into the norm
 * or activation in front (Transformer Engine); current scaling and NVFP4, which has a scale of
 * the whole tensor besides those of its blocks, first read the tensor for its maximum.
 * Outgoing gradients are quantized once for both backward GEMMs.
 *
 * With a scale for each row (fp8-rowwise: torchao's recipe "rowwise") a tensor is quantized along the dimension that a GEMM adds
 * up, so once for every GEMM that reads it, weights as well: along its rows in one pass (2 bytes read, 1 written; inside the norm
 * in front where nothing lies between), down its columns after a pass for the maxima (4 and 1). All-gathers come first and carry 16
 * bits (torchtitan, parallelize.py: 8-bit all-gathers only with scales of whole tensors).
 */
#include "base/check.h"
#include "lower/local.h"
#include "lower/modules.h"

/* The module in front in the layer, NULL for the first. */
static const struct maq_module *before(const struct maq_lowering *l, const struct maq_module *m)
{
    return m == l->layer->modules ? NULL : m - 1;
}

static bool small_blocks(const struct maq_lower *lower)
{
    return lower->plan->precision == MAQ_PRECISION_MXFP8 || lower->plan->precision == MAQ_PRECISION_NVFP4;
}

uint32_t maq_lower_quantize_calls(const struct maq_lower *lower)
{
    return small_blocks(lower) || lower->plan->precision == MAQ_PRECISION_FP8_CURRENT ? 3 : 1;
}

uint32_t maq_lower_weight_calls(const struct maq_lower *lower)
{
    return small_blocks(lower) ? 2 : 1;
}

static bool needs_maximum(const struct maq_lower *lower)
{
    return lower->plan->precision == MAQ_PRECISION_FP8_CURRENT ||
           lower->plan->precision == MAQ_PRECISION_NVFP4; /* its second scale is the tensor's */
}

void maq_lower_maximum(struct maq_lowering *l, int64_t elements)
{
    struct maq_op amax =
        maq_op_make(MAQ_OP_ELEMENTWISE, l->lower->store, 0, elements, (int64_t)l->lower->store_bytes, 0, 0, 0, 0);
    if (needs_maximum(l->lower))
        maq_segment_op(&l->w, &amax);
}

void maq_lower_hadamard(struct maq_lowering *l, int64_t elements)
{
    struct maq_op again =
        maq_op_make(MAQ_OP_ELEMENTWISE, l->lower->store, 0, elements, (int64_t)l->lower->store_bytes, 0, 0, 0, 0);
    if (l->lower->math == MAQ_FP4 && l->lower->job->framework.hadamard_apart)
        maq_segment_op(&l->w, &again);
}

/*
 * Scales of blocks or rows; the experts' products have no such mark, because no table has theirs. A tensor's scale: delayed and
 * current.
 */
static unsigned scales(const struct maq_lower *lower, int math)
{
    int recipe = lower->plan->precision;
    if (math != MAQ_FP8 || recipe == MAQ_PRECISION_FP8_DELAYED || recipe == MAQ_PRECISION_FP8_CURRENT)
        return 0;
    return recipe == MAQ_PRECISION_FP8_BLOCKWISE ? MAQ_OP_BLOCKS : MAQ_OP_FINE_SCALES;
}

/*
 * The same for products of gradients, whose sums are carried over into full precision on the way: Transformer Engine
 * (pytorch/module/base.py, _2X_ACC_DGRAD and _2X_ACC_WGRAD; jax/quantize/helper.py), torchao (use_fast_accum = False), Flax
 * (fp8_ops.py, Precision.HIGHEST).
 */
static unsigned gradient_scales(const struct maq_lower *lower, int math)
{
    unsigned fine = scales(lower, math);
    return math == MAQ_FP8 && !fine ? MAQ_OP_PROMOTED : fine;
}

static bool by_rows(const struct maq_lower *lower, int math)
{
    return math != lower->store && lower->plan->precision == MAQ_PRECISION_FP8_ROWWISE;
}

static void quantize_by_rows(struct maq_lowering *l, int64_t elements)
{
    struct maq_op op = maq_op_make(MAQ_OP_ELEMENTWISE, l->lower->store, 0, elements, 2, 1, 0, 0, 0);
    maq_segment_ops(&l->w, &op, 1);
}

static void quantize_by_columns(struct maq_lowering *l, int64_t elements)
{
    struct maq_op op = maq_op_make(MAQ_OP_ELEMENTWISE, l->lower->store, 0, elements, 4, 1, 0, 0, 0);
    maq_segment_ops(&l->w, &op, 2);
}

/* What y = x W needs, W^T being kept; then dx = dy W^T. */
static void quantize_for_forward(struct maq_lowering *l, const struct maq_module *m, struct maq_local d, int math)
{
    if (!by_rows(l->lower, math))
        return;
    bool shared = (m->flags & MAQ_MODULE_SHARED_INPUT) != 0;
    const struct maq_module *p = before(l, m);
    bool fused = l->lower->plan->fused_kernels && l->lower->plan->tp == 1 && p && p->kind == MAQ_MODULE_NORM;
    if (!fused && !shared)
        quantize_by_rows(l, d.rows * d.in);
    quantize_by_rows(l, d.in * d.out);
}

static void quantize_for_dgrad(struct maq_lowering *l, struct maq_local d, int math)
{
    if (!by_rows(l->lower, math))
        return;
    quantize_by_rows(l, d.rows * d.out);
    quantize_by_columns(l, d.in * d.out);
}

/* dW = x^T dy: both along the tokens. */
static void quantize_for_wgrad(struct maq_lowering *l, struct maq_local d, int math)
{
    if (!by_rows(l->lower, math))
        return;
    quantize_by_columns(l, d.rows * d.in);
    quantize_by_columns(l, d.rows * d.out);
}

static void quantize(struct maq_lowering *l, const struct maq_module *m, int64_t rows, int64_t columns, bool forward)
{
    if (by_rows(l->lower, l->lower->math))
        return;
    bool shared = forward && (m->flags & MAQ_MODULE_SHARED_INPUT) != 0;
    const struct maq_module *p = before(l, m);
    bool activation = p && p->kind == MAQ_MODULE_ACTIVATION &&
                      (!l->lower->job->framework.activation_quantized_apart || l->lower->plan->op_fuser);
    bool fused = forward && !needs_maximum(l->lower) && p && (p->kind == MAQ_MODULE_NORM || activation);
    if (fused || shared)
        return;
    struct maq_op op = maq_op_make(MAQ_OP_QUANTIZE, l->lower->math, 0, rows, columns, 2, 0, 0,
                                   0); /* row- and column-wise, for both backward GEMMs */
    maq_segment_ops(&l->w, &op, maq_lower_quantize_calls(l->lower));
    maq_lower_maximum(l, rows * columns);
    maq_lower_hadamard(l, rows * columns);
}

/*
 * The operands of 8-bit products with a tensor's scale must both be contiguous along the dimension that is added up, until
 * Blackwell (cuBLAS: "TN"). The weight gradient therefore reads x and dy transposed. A quantization that has its own kernel writes
 * both; what a norm quantized, and what was gathered over the TP group, is transposed by a kernel in front of the product
 * (Transformer Engine's module/layernorm_linear.py and base.py, fp8_transpose).
 */
static bool transposes(const struct maq_lower *lo, int math)
{
    return math == MAQ_FP8 && !scales(lo, math) && lo->items->device->arch < MAQ_ARCH_BLACKWELL;
}

static void transpose(struct maq_lowering *l, int64_t elements)
{
    struct maq_op op = maq_op_make(MAQ_OP_ELEMENTWISE, l->lower->store, 0, elements, 1, 1, 0, 0, 0);
    maq_segment_op(&l->w, &op);
}

static void transpose_for_wgrad(struct maq_lowering *l, const struct maq_module *m, struct maq_local d, int math)
{
    const struct maq_lower *lo = l->lower;
    const struct maq_module *p = before(l, m);
    bool sp = lo->plan->sequence_parallel == MAQ_ON && lo->plan->tp > 1;
    if (!transposes(lo, math))
        return;
    bool x_gathered = sp && (m->flags & MAQ_MODULE_GATHER_IN), dy_gathered = sp && (m->flags & MAQ_MODULE_REDUCE_OUT);
    bool of_norm = p && p->kind == MAQ_MODULE_NORM && !needs_maximum(lo);
    if ((x_gathered || of_norm) && !(m->flags & MAQ_MODULE_SHARED_INPUT))
        transpose(l, d.rows * d.in);
    if (dy_gathered)
        transpose(l, d.rows * d.out);
}

/* A rank's share of the sum: as many pieces as there are ranks were sent to it, of `bytes` together. */
static void sum_pieces(struct maq_lowering *l, double bytes)
{
    const struct maq_lower *lo = l->lower;
    double pieces = (double)lo->plan->tp, width = lo->store_bytes;
    struct maq_op sum = maq_op_make(MAQ_OP_ELEMENTWISE, lo->store, 0, (int64_t)(bytes / (width * pieces)),
                                    (int64_t)(width * pieces), (int64_t)width, 0, 0, 0);
    maq_segment_op(&l->w, &sum);
}

/* A collective cut into TP pieces that overlap with a GEMM which consumes (gather) or produces (scatter) its data:
 * one piece is exposed. */
static void overlapped(struct maq_lowering *l, const struct maq_op *op, struct maq_coll coll, bool consumes)
{
    double pieces = (double)l->lower->plan->tp, whole = coll.bytes;
    struct maq_coll first = coll, rest = coll;
    first.bytes = whole / pieces;
    rest.bytes = whole - first.bytes;
    if (consumes) {
        maq_segment_coll(&l->w, &first, MAQ_STREAM_TP);
        uint16_t gate = l->w.sync;
        uint16_t beside = maq_segment_coll_async(&l->w, &rest, MAQ_STREAM_TP, gate);
        maq_segment_op(&l->w, op);
        maq_segment_join(&l->w, beside);
    } else {
        uint16_t gate = l->w.on[MAQ_STREAM_COMPUTE];
        if (l->w.sync != MAQ_STEP_NONE)
            gate = l->w.sync;
        uint16_t beside = maq_segment_coll_async(&l->w, &rest, MAQ_STREAM_TP, gate);
        maq_segment_op(&l->w, op);
        maq_segment_join(&l->w, beside);
        maq_segment_coll(&l->w, &first, MAQ_STREAM_TP);
        sum_pieces(l, whole);
    }
}

/* LoRA: y += B (A x); A is in x r, B is r x out. */
static void adapter(struct maq_lowering *l, struct maq_local d, enum maq_pass pass)
{
    int64_t r = l->lower->plan->lora_rank;
    int t = l->lower->store;
    const struct maq_op down = maq_op_make(MAQ_OP_GEMM, t, 0, d.rows, r, d.in, 1, 0, 0),
                        up = maq_op_make(MAQ_OP_GEMM, t, 0, d.rows, d.out, r, 1, 0, 0);
    const struct maq_op dup = maq_op_make(MAQ_OP_GEMM, t, 0, d.rows, r, d.out, 1, 0, 0),
                        ddown = maq_op_make(MAQ_OP_GEMM, t, 0, d.rows, d.in, r, 1, 0, 0);
    const struct maq_op wup = maq_op_make(MAQ_OP_GEMM, t, 0, r, d.out, d.rows, 1, 0, 0),
                        wdown = maq_op_make(MAQ_OP_GEMM, t, 0, d.in, r, d.rows, 1, 0, 0);
    if (pass == MAQ_PASS_FORWARD) {
        maq_segment_op(&l->w, &down);
        maq_segment_op(&l->w, &up);
    }
    if (pass == MAQ_PASS_BACKWARD || pass == MAQ_PASS_BACKWARD_INPUT) {
        maq_segment_op(&l->w, &dup);
        maq_segment_op(&l->w, &ddown);
    }
    if (pass == MAQ_PASS_BACKWARD || pass == MAQ_PASS_BACKWARD_WEIGHT) {
        maq_segment_op(&l->w, &wup);
        maq_segment_op(&l->w, &wdown);
    }
}

/*
 * NCCL gathers and scatters along the outermost dimension. Where that is the batch and not the sequence, what was gathered is put
 * in order by a copy, and what is scattered is put in order before.
 */
static void reorder(struct maq_lowering *l, int64_t features, int64_t width)
{
    const struct maq_lower *lo = l->lower;
    struct maq_op copy = maq_op_make(MAQ_OP_ELEMENTWISE, lo->store, 0, lo->tokens * features, width, width, 0, 0, 0);
    if (lo->job->framework.tp_copies_sequence && lo->plan->tp > 1)
        maq_segment_op(&l->w, &copy);
}

/* One after the other with the compute around them. */
static void gather_sequence(struct maq_lowering *l, const struct maq_coll *coll, int64_t features, int64_t width)
{
    maq_segment_coll(&l->w, coll, MAQ_STREAM_TP);
    reorder(l, features, width);
}

static void scatter_sequence(struct maq_lowering *l, const struct maq_coll *coll, int64_t features)
{
    if (coll->kind == MAQ_COLL_REDUCE_SCATTER)
        reorder(l, features, (int64_t)l->lower->store_bytes);
    maq_segment_coll(&l->w, coll, MAQ_STREAM_TP);
}

/*
 * A frozen weight of 4 bits is written out in 16 by a kernel of its own in front of each product (bitsandbytes, MatMul4Bit), its scales
 * before, where they are quantized as well. One of 8 bits is so in the backward pass alone (MatMul8bitLt): widened, then times its scales.
 * Counted in blocks of 64 numbers.
 */
void maq_lower_widen_base(struct maq_lowering *l, const struct maq_module *m, struct maq_local d, bool backward)
{
    const struct maq_lower *lo = l->lower;
    const int64_t blocks = (d.in * d.out + 63) / 64, wide = 64 * (int64_t)lo->store_bytes;
    const int kind = lo->plan->base_quantization;
    if (!maq_lower_base_quantized(lo, m) || blocks <= 0 || (kind == MAQ_BASE_INT8 && !backward))
        return;
    const struct maq_op scales_op = maq_op_make(MAQ_OP_ELEMENTWISE, lo->store, 0, blocks, 1, 4, 0, 0, 0),
                        narrow = maq_op_make(MAQ_OP_ELEMENTWISE, lo->store, 0, blocks, 32 + 4, wide, 0, 0, 0),
                        byte = maq_op_make(MAQ_OP_ELEMENTWISE, lo->store, 0, blocks, 64, wide, 0, 0, 0),
                        times = maq_op_make(MAQ_OP_ELEMENTWISE, lo->store, 0, blocks, wide, wide, 0, 0, 0);
    if (kind == MAQ_BASE_NF4_DOUBLE)
        maq_segment_op(&l->w, &scales_op);
    maq_segment_op(&l->w, kind == MAQ_BASE_INT8 ? &byte : &narrow);
    if (kind == MAQ_BASE_INT8)
        maq_segment_op(&l->w, &times);
}

/* LLM.int8(): rows of the input in 8 bits, a product of integers, its sums times both scales. Columns with outliers, a few, are left out. */
static void product_of_integers(struct maq_lowering *l, struct maq_local d)
{
    const int64_t w = (int64_t)l->lower->store_bytes;
    const struct maq_op rows = maq_op_make(MAQ_OP_ELEMENTWISE, l->lower->store, 0, d.rows * d.in, w, 1, 0, 0, 0),
                        product = maq_op_make(MAQ_OP_GEMM, MAQ_INT8, 0, d.rows, d.out, d.in, 1, 0, 0),
                        sums = maq_op_make(MAQ_OP_ELEMENTWISE, l->lower->store, 0, d.rows * d.out, 4, w, 0, 0, 0);
    maq_segment_op(&l->w, &rows);
    maq_segment_op(&l->w, &product);
    maq_segment_op(&l->w, &sums);
}

static void forward(struct maq_lowering *l, const struct maq_module *m, struct maq_local d, int math)
{
    const struct maq_lower *lo = l->lower;
    bool sp = lo->plan->sequence_parallel == MAQ_ON, overlap = lo->plan->overlap_tp == MAQ_ON;
    struct maq_op op = maq_op_make(MAQ_OP_GEMM, math, (m->flags & MAQ_MODULE_BIAS ? MAQ_OP_BIAS : 0) | scales(lo, math),
                                   d.rows, d.out, d.in, 1, 0, 0);
    if (math != lo->store)
        quantize(l, m, m->flags & MAQ_MODULE_GATHER_IN && sp ? lo->tokens_region : d.rows, d.in, true);
    bool gather = sp && (m->flags & MAQ_MODULE_GATHER_IN),
         reduce = (m->flags & MAQ_MODULE_REDUCE_OUT) != 0 && !(l->by_op && sp); /* what that scattered is kept */
    /* quantized before it is gathered, where the scale is known beforehand or travels with the block */
    bool narrow = math != lo->store && !by_rows(lo, math);
    double gathered = (double)lo->tokens * (double)m->in * (narrow ? 1.0 : lo->store_bytes);
    struct maq_coll in = maq_coll_make(lo, MAQ_COLL_ALL_GATHER, MAQ_GROUP_TP, gathered);
    struct maq_coll out = maq_coll_make(lo, sp ? MAQ_COLL_REDUCE_SCATTER : MAQ_COLL_ALL_REDUCE, MAQ_GROUP_TP,
                                        (double)lo->tokens * (double)m->out * lo->store_bytes);
    bool in_pieces = lo->plan->tp > 1 && overlap && (gather || (reduce && sp)) && d.out > 0;
    if (gather && !in_pieces)
        gather_sequence(l, &in, m->in, narrow ? 1 : (int64_t)lo->store_bytes);
    if (d.out == 0) /* all of it is kept */
        return;
    quantize_for_forward(l, m, d, math);
    maq_lower_widen_base(l, m, d, false);
    if (in_pieces) {
        overlapped(l, &op, gather ? in : out, gather);
        return;
    }
    if (lo->plan->base_quantization == MAQ_BASE_INT8 && maq_lower_base_quantized(lo, m))
        product_of_integers(l, d);
    else
        maq_segment_op(&l->w, &op);
    if (reduce)
        scatter_sequence(l, &out, m->out);
}

/* Without gradient_accumulation_fusion (32- and 16-bit main gradients have it) a kernel of its own adds the weight gradient. */
void maq_lower_accumulate(struct maq_lowering *l, int64_t elements)
{
    const struct maq_lower *lo = l->lower;
    double g = maq_dtype_bytes((enum maq_dtype)lo->plan->grad_dtype);
    struct maq_op add =
        maq_op_make(MAQ_OP_ELEMENTWISE, lo->store, 0, elements, (int64_t)(g + lo->store_bytes), (int64_t)g, 0, 0, 0);
    if (!lo->plan->weight_grad_fusion)
        maq_segment_op(&l->w, &add);
}

/* The weight gradient of a module whose input was gathered, overlapped with the reduction of its input gradient. */
static void weight_gradient(struct maq_lowering *l, const struct maq_module *m, struct maq_local d, int math)
{
    const struct maq_lower *lo = l->lower;
    if (!maq_lower_trained(lo))
        return;
    quantize_for_wgrad(l, d, math);
    transpose_for_wgrad(l, m, d, math);
    bool into_fp32 = lo->plan->weight_grad_fusion && lo->plan->grad_dtype == MAQ_FP32;
    int odd = d.rows % 8 != 0 && maq_dtype_bytes((enum maq_dtype)math) >= 2.0 ? MAQ_OP_SUMS_ROWS : 0;
    struct maq_op op =
        maq_op_make(MAQ_OP_GEMM, math, (into_fp32 ? MAQ_OP_ACCUMULATE : 0) | odd | gradient_scales(lo, math), d.in,
                    d.out, d.rows, 1, 0, 0);
    maq_segment_op(&l->w, &op);
    maq_lower_accumulate(l, d.in * d.out);
}

static void backward(struct maq_lowering *l, const struct maq_module *m, struct maq_local d, int math,
                     enum maq_pass pass)
{
    const struct maq_lower *lo = l->lower;
    bool sp = lo->plan->sequence_parallel == MAQ_ON, overlap = lo->plan->overlap_tp == MAQ_ON && lo->plan->tp > 1;
    bool gathered = (m->flags & MAQ_MODULE_GATHER_IN) != 0, reduced = (m->flags & MAQ_MODULE_REDUCE_OUT) != 0;
    bool wgrad = pass != MAQ_PASS_BACKWARD_INPUT;
    struct maq_op dgrad = maq_op_make(MAQ_OP_GEMM, math, gradient_scales(lo, math), d.rows, d.in, d.out, 1, 0, 0);
    /* x again and dy: in 8 bits where the scale is the tensor's; with scales of blocks in both orders, as many bytes as 16 bits */
    double width = math == MAQ_FP8 && !scales(lo, math) ? 1.0 : lo->store_bytes;
    double in_bytes = (double)lo->tokens * (double)m->in * lo->store_bytes,
           again_bytes = (double)lo->tokens * (double)m->in * width,
           out_bytes = (double)lo->tokens * (double)m->out * width;

    if (pass == MAQ_PASS_BACKWARD_WEIGHT) {
        if (gathered && sp) {
            struct maq_coll again = maq_coll_make(lo, MAQ_COLL_ALL_GATHER, MAQ_GROUP_TP, again_bytes);
            maq_segment_coll(&l->w, &again, MAQ_STREAM_TP);
        }
        weight_gradient(l, m, d, math);
        return;
    }
    if (math != lo->store)
        quantize(l, m, reduced && sp ? lo->tokens_region : d.rows, d.out, false);
    maq_lower_widen_base(l, m, d, true);
    if (lo->plan->loss_function == MAQ_LOSS_CUT &&
        m->part == MAQ_PART_OUTPUT) { /* the logits, block by block, once more */
        struct maq_op again = maq_op_make(MAQ_OP_GEMM, math, scales(lo, math), d.rows, d.out, d.in, 1, 0, 0);
        maq_segment_op(&l->w, &again);
    }

    uint16_t pending = MAQ_STEP_NONE;
    if (reduced && sp) {
        struct maq_coll dy = maq_coll_make(lo, MAQ_COLL_ALL_GATHER, MAQ_GROUP_TP, out_bytes);
        if (overlap) {
            quantize_for_dgrad(l, d, math);
            overlapped(l, &dgrad, dy, true);
        } else {
            gather_sequence(l, &dy, m->out, (int64_t)width);
        }
    }
    if (gathered && sp && wgrad && maq_lower_trained(lo)) { /* x again, under dgrad */
        struct maq_coll again = maq_coll_make(lo, MAQ_COLL_ALL_GATHER, MAQ_GROUP_TP, again_bytes);
        pending = maq_segment_coll_async(&l->w, &again, MAQ_STREAM_TP, l->w.on[MAQ_STREAM_COMPUTE]);
    }
    if (!(reduced && sp && overlap)) {
        quantize_for_dgrad(l, d, math);
        maq_segment_op(&l->w, &dgrad);
    }
    if (gathered && lo->plan->tp > 1) {
        struct maq_coll dx =
            maq_coll_make(lo, sp ? MAQ_COLL_REDUCE_SCATTER : MAQ_COLL_ALL_REDUCE, MAQ_GROUP_TP, in_bytes);
        bool last = lo->job->framework.tp_reduces_last;
        uint16_t beside =
            last ? MAQ_STEP_NONE : maq_segment_coll_async(&l->w, &dx, MAQ_STREAM_TP, l->w.on[MAQ_STREAM_COMPUTE]);
        if (wgrad) {
            maq_segment_join(&l->w, pending);
            weight_gradient(l, m, d, math);
        }
        if (last)
            scatter_sequence(l, &dx, m->in);
        else
            maq_segment_join(&l->w, beside);
    } else if (wgrad) {
        weight_gradient(l, m, d, math);
    }
}

/* Of a linear that is computed again operator by operator, the width of the products that were not kept. */
static int64_t computed_again(struct maq_lowering *l, const struct maq_module *m)
{
    int64_t out[MAQ_LORA_SPANS], sum = 0;
    for (uint32_t i = 0, n = maq_lower_products(out, l->lower, l->layer, m); i < n; i++)
        sum += maq_lower_product_is_kept(&l->products) ? 0 : out[i];
    return sum;
}

void maq_lower_linear(struct maq_lowering *l, const struct maq_module *m, enum maq_pass pass)
{
    struct maq_local d = maq_lower_local(l->lower, l->layer, m);
    int math = maq_lower_quantized(l->lower, m) ? l->lower->math : l->lower->store;
    if (l->by_op)
        d.out = computed_again(l, m);
    if (pass == MAQ_PASS_FORWARD)
        forward(l, m, d, math);
    else
        backward(l, m, d, math, pass);
    int64_t out[MAQ_LORA_SPANS];
    for (uint32_t a = 0, n = maq_lower_adapters(out, l->lower, l->layer, m); a < n; a++) {
        adapter(l, (struct maq_local){d.rows, d.in, out[a]}, pass);
        if (l->lower->plan->use_dora)
            maq_lower_magnitudes(l, m, (struct maq_local){d.rows, d.in, out[a]}, pass);
    }
}
