/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moe.c - routed experts: router, dispatch and combine of tokens, grouped linears.
 *
 * A rank has r = tokens_region tokens (Megatron-LM requires sequence parallelism when TP and EP are both
 * above 1) and sends each to its top-k experts:
 *
 *   alltoall    permute r*k rows, all-to-all over EP, (all-gather over expert-TP), sort by expert
 *   allgather   all tokens of the EP group to every rank, local permute; combine by reduce-scatter
 *   deepep      one fused exchange: a token crosses the network once for each domain that holds one of its experts, and is copied
 *               on there to ranks
 *   hybridep    the same with kernels of its own; they too put rows in the order of the experts by a kernel before or behind the
 *               exchange. The routing of all ranks is gathered first, and rows travel with their probabilities
 *
 * A token's k experts, drawn evenly, lie on n * (1 - (1 - 1/n)^k) distinct ones of n ranks (or domains). Where they are drawn out
 * of t of g groups of experts, on fewer (lower/expert_spread.h).
 *
 * A busier rank than the mean (moe_imbalance) makes its group wait: rows of the grouped GEMMs and bytes of
 * the exchange are those of the busiest.
 *
 * Sources: Megatron-LM core/transformer/moe/token_dispatcher.py; DeepSeek-AI DeepEP.
 */
#include "base/check.h"
#include "lower/expert_spread.h"
#include "lower/local.h"
#include "lower/modules.h"
#include "plan/job_build.h"

static bool hybrid(const struct maq_lower *lo)
{
    return lo->plan->dispatcher == MAQ_DISPATCHER_HYBRIDEP;
}

static bool fused_exchange(const struct maq_lower *lo)
{
    return lo->plan->dispatcher == MAQ_DISPATCHER_DEEPEP || hybrid(lo);
}

static int64_t busy_rows(const struct maq_lower *lo)
{
    return (int64_t)((double)lo->expert_rows * lo->imbalance + 0.5);
}

static void permute(struct maq_lowering *l, int64_t rows, int64_t columns)
{
    if (rows <= 0)
        return;
    struct maq_op op = maq_op_make(MAQ_OP_PERMUTE, l->lower->store, l->lower->plan->fused_kernels ? 0 : MAQ_OP_UNFUSED,
                                   rows, columns, 0, 0, 0, 0);
    maq_segment_op(&l->w, &op);
}

/* With a row HybridEP sends its probabilities for all experts of the domain it goes to, and brings their gradients back. */
static double row_bytes(const struct maq_lower *lo, const struct maq_module *m)
{
    double row = (double)m->in * lo->store_bytes;
    bool weighed = hybrid(lo) && m->kind == MAQ_MODULE_DISPATCH;
    return weighed ? row + 4.0 * (double)m->u.moe.experts / lo->groups[MAQ_GROUP_EP].domains : row;
}

/* Bytes of the exchange for one rank, the busiest. */
static double exchange_bytes(const struct maq_lower *lo, const struct maq_module *m)
{
    double token = row_bytes(lo, m), tokens = (double)lo->tokens_region;
    const struct maq_placement *ep = &lo->groups[MAQ_GROUP_EP];
    if (lo->plan->dispatcher == MAQ_DISPATCHER_ALLGATHER)
        return tokens * token * lo->plan->ep;
    if (!fused_exchange(lo))
        return (double)lo->expert_rows / lo->plan->etp * token * lo->imbalance;
    return tokens * token * maq_experts_spread(ep->size, &m->u.moe) * lo->imbalance;
}

/* Of those of a fused exchange, what leaves the domain: a row once for each other one. */
static double far_bytes(const struct maq_lower *lo, const struct maq_module *m)
{
    double domains = lo->groups[MAQ_GROUP_EP].domains;
    if (!fused_exchange(lo) || domains <= 1)
        return 0;
    double tokens = (double)lo->tokens_region,
           copies = maq_experts_spread(domains, &m->u.moe) * (domains - 1) / domains;
    return tokens * row_bytes(lo, m) * copies * lo->imbalance;
}

static struct maq_coll exchange_of(const struct maq_lower *lo, const struct maq_module *m, enum maq_coll_kind kind)
{
    struct maq_coll c = maq_coll_make(lo, kind, MAQ_GROUP_EP, exchange_bytes(lo, m));
    c.far_bytes = far_bytes(lo, m);
    if (fused_exchange(lo)) {
        c.rows = (double)lo->tokens_region * lo->imbalance;
        c.row_bytes = row_bytes(lo, m);
    }
    if (hybrid(lo))
        c.flags = MAQ_COLL_HYBRID;
    return c;
}

/*
 * With EP communication hidden under the compute of another microbatch, compute does not wait for it, nor does the segment's end but
 * in DualPipe. With moe_shared_expert_overlap the shared experts overlap with the first exchange of the pass.
 */
static void exchange(struct maq_lowering *l, const struct maq_module *m, enum maq_coll_kind kind)
{
    struct maq_coll c = exchange_of(l->lower, m, kind);
    if (l->lower->plan->overlap_ep == MAQ_ON)
        maq_segment_coll_async(&l->w, &c, MAQ_STREAM_EP, MAQ_STEP_NONE);
    else if (!l->beside)
        maq_segment_coll(&l->w, &c, MAQ_STREAM_EP);
    if (!l->beside)
        return;
    uint16_t gate = l->w.sync != MAQ_STEP_NONE ? l->w.sync : l->w.on[MAQ_STREAM_COMPUTE], beside = MAQ_STEP_NONE;
    if (l->lower->plan->overlap_ep != MAQ_ON)
        beside = maq_segment_coll_async(&l->w, &c, MAQ_STREAM_EP, gate);
    l->beside(l);
    maq_segment_join(&l->w, beside);
}

/*
 * Unless they are padded, the number of rows of an expert is not known beforehand: the host reads the counts, for the splits
 * of the exchange and the shapes of the grouped products (token_dispatcher.py, TE's GroupedLinear; DeepEP waits for
 * them inside its dispatch). The backward pass has them already.
 */
static void read_token_counts(struct maq_lowering *l)
{
    const struct maq_lower *lo = l->lower;
    if (lo->job->framework.moe_synchronizes && !maq_plan_knows_expert_rows(lo->plan) && !lo->plan->cuda_graphs)
        maq_segment_read(&l->w, lo->host.read_ns);
}

/*
 * HybridEP's dispatch knows where rows go from the routing of all ranks, a byte for each token and expert, which is gathered first
 * and scanned (DeepEP's branch hybrid-ep, csrc/hybrid_ep/executor/executor.cu: allgather_routing_map). The backward pass has the
 * result.
 */
static void gather_routing(struct maq_lowering *l, const struct maq_module *m)
{
    const struct maq_lower *lo = l->lower;
    int64_t rows = lo->tokens_region * lo->plan->ep;
    if (!hybrid(lo) || lo->plan->ep == 1)
        return;
    struct maq_coll c = maq_coll_make(lo, MAQ_COLL_ALL_GATHER, MAQ_GROUP_EP, (double)rows * (double)m->u.moe.experts);
    if (lo->plan->overlap_ep == MAQ_ON)
        maq_segment_coll_async(&l->w, &c, MAQ_STREAM_EP, MAQ_STEP_NONE);
    else
        maq_segment_coll(&l->w, &c, MAQ_STREAM_EP);
    struct maq_op scan = maq_op_make(MAQ_OP_ELEMENTWISE, lo->store, 0, rows * m->u.moe.experts, 1, 0, 0, 0, 0);
    maq_segment_op(&l->w, &scan);
}

/* Dispatch forward = combine backward: tokens out. The other two bring them back. */
static void send_out(struct maq_lowering *l, const struct maq_module *m, bool forward)
{
    const struct maq_lower *lo = l->lower;
    if (forward) {
        gather_routing(l, m);
        read_token_counts(l);
    }
    int64_t sent = (int64_t)((double)lo->expert_rows / lo->plan->etp + 0.5);
    if (lo->plan->dispatcher == MAQ_DISPATCHER_ALLGATHER) {
        exchange(l, m, MAQ_COLL_ALL_GATHER);
    } else if (fused_exchange(lo)) {
        exchange(l, m, MAQ_COLL_DISPATCH);
    } else {
        permute(l, sent, m->in);
        exchange(l, m, MAQ_COLL_ALL_TO_ALL);
    }
    struct maq_coll gather =
        maq_coll_make(lo, MAQ_COLL_ALL_GATHER, MAQ_GROUP_ETP, (double)busy_rows(lo) * (double)m->in * lo->store_bytes);
    maq_segment_node(&l->w, MAQ_LAYER_EXPERTS);
    maq_segment_coll(&l->w, &gather, MAQ_STREAM_TP);
    bool sorted = lo->plan->ep > 1 && lo->local_experts == 1 && !fused_exchange(lo);
    if (!sorted && (lo->plan->ep > 1 || lo->plan->dispatcher != MAQ_DISPATCHER_ALLTOALL))
        permute(l, busy_rows(lo), m->in);
}

static void bring_back(struct maq_lowering *l, const struct maq_module *m)
{
    const struct maq_lower *lo = l->lower;
    maq_segment_node(&l->w, MAQ_LAYER_EXPERTS);
    bool sorted = lo->plan->ep > 1 && lo->local_experts == 1 && !fused_exchange(lo);
    if (!sorted && (lo->plan->ep > 1 || lo->plan->dispatcher != MAQ_DISPATCHER_ALLTOALL))
        permute(l, busy_rows(lo), m->in);
    struct maq_coll scatter = maq_coll_make(lo, MAQ_COLL_REDUCE_SCATTER, MAQ_GROUP_ETP,
                                            (double)busy_rows(lo) * (double)m->in * lo->store_bytes);
    maq_segment_coll(&l->w, &scatter, MAQ_STREAM_TP);
    maq_segment_node(&l->w, MAQ_LAYER_ATTENTION);
    if (lo->plan->dispatcher == MAQ_DISPATCHER_ALLGATHER) {
        exchange(l, m, MAQ_COLL_REDUCE_SCATTER);
    } else if (fused_exchange(lo)) {
        exchange(l, m, MAQ_COLL_COMBINE);
    } else {
        exchange(l, m, MAQ_COLL_ALL_TO_ALL);
        permute(l, (int64_t)((double)lo->expert_rows / lo->plan->etp + 0.5), m->in);
    }
}

void maq_lower_exchange(struct maq_lowering *l, const struct maq_module *m, enum maq_pass pass)
{
    bool forward = pass == MAQ_PASS_FORWARD;
    l->w.exchange = m->kind == MAQ_MODULE_DISPATCH ? MAQ_LAYER_DISPATCH : MAQ_LAYER_COMBINE;
    if ((m->kind == MAQ_MODULE_DISPATCH) == forward)
        send_out(l, m, forward);
    else
        bring_back(l, m);
}

/* ---- router and experts ---- */

static void lower_router(struct maq_lowering *l, const struct maq_module *m, enum maq_pass pass)
{
    const struct maq_lower *lo = l->lower;
    int64_t rows = lo->tokens_region, experts = m->out;
    /* the gate runs in 32 bits on the matrix units where they have a TF32 mode, else in the model's type */
    int type = lo->items->device->peak_flops[MAQ_TF32] > 0 ? MAQ_TF32 : lo->store;
    const struct maq_op logits = maq_op_make(MAQ_OP_GEMM, type, MAQ_OP_OUT_FP32, rows, experts, m->in, 1, 0, 0);
    const struct maq_op dgrad = maq_op_make(MAQ_OP_GEMM, type, 0, rows, m->in, experts, 1, 0, 0);
    const struct maq_op wgrad = maq_op_make(MAQ_OP_GEMM, type, MAQ_OP_ACCUMULATE, m->in, experts, rows, 1, 0, 0);
    const struct maq_op topk = maq_op_make(MAQ_OP_ROUTER, MAQ_FP32, 0, rows, experts, m->u.moe.topk, 0, 0, 0);
    /* moe_utils.py, pointwise one by one: cast, scores, top-k, their softmax and scatter, probabilities, map, counts; the
     * auxiliary loss of the balance: means, product, sum, scale; its gradients */
    const uint32_t kernels = 16;
    if (pass == MAQ_PASS_FORWARD) {
        maq_segment_op(&l->w, &logits);
        maq_segment_ops(&l->w, &topk, kernels);
        return;
    }
    if (pass != MAQ_PASS_BACKWARD_WEIGHT) {
        maq_segment_ops(&l->w, &topk, kernels);
        maq_segment_op(&l->w, &dgrad);
    }
    bool in_time = pass == MAQ_PASS_BACKWARD_WEIGHT && lo->plan->delay_wgrad; /* no linear of Transformer Engine */
    if (pass != MAQ_PASS_BACKWARD_INPUT && !in_time && maq_lower_trained(lo))
        maq_segment_op(&l->w, &wgrad);
}

static int64_t groups_of(const struct maq_lower *lo)
{
    return lo->local_experts > 0 ? lo->local_experts : 1;
}

/*
 * A grouped product is one operator on the device, and a call for every expert on the host (Transformer Engine's GroupedLinear:
 * a loop over cuBLASLt).
 */
static void grouped(struct maq_lowering *l, int64_t rows, int64_t n, int64_t k, bool weight)
{
    const struct maq_lower *lo = l->lower;
    int64_t groups = groups_of(lo);
    int64_t mean = (rows + groups - 1) / groups;
    if (rows <= 0)
        return;
    struct maq_op op = weight
                           ? maq_op_make(MAQ_OP_GROUPED_GEMM, lo->math,
                                         MAQ_OP_VARIABLE_K | (lo->plan->grad_dtype == MAQ_FP32 ? MAQ_OP_ACCUMULATE : 0),
                                         n, k, mean, groups, mean, 0)
                           : maq_op_make(MAQ_OP_GROUPED_GEMM, lo->math, 0, mean, n, k, groups, mean, 0);
    maq_segment_calls(&l->w, &op, (uint32_t)groups * (weight ? 1 : maq_lower_weight_calls(lo)));
    if (weight)
        maq_lower_accumulate(l, groups * n * k);
}

/*
 * Each expert's rows by themselves, one kernel after the other (Transformer Engine, csrc/extensions/cast.cpp, split_quantize), but
 * with delayed scaling, which has a kernel for all of them.
 */
static void quantize(struct maq_lowering *l, int64_t rows, int64_t columns)
{
    const struct maq_lower *lo = l->lower;
    if (lo->math != MAQ_FP8 && lo->math != MAQ_FP4)
        return;
    bool together = lo->plan->precision == MAQ_PRECISION_FP8_DELAYED || lo->plan->op_fuser;
    uint32_t calls = together ? 1 : (uint32_t)groups_of(lo) * maq_lower_quantize_calls(lo);
    struct maq_op op = maq_op_make(MAQ_OP_QUANTIZE, lo->math, 0, rows, columns, 2, calls, 0, 0);
    maq_segment_calls(&l->w, &op, calls);
    maq_lower_maximum(l, rows * columns);
    maq_lower_hadamard(l, rows * columns);
}

static void lower_expert_linear(struct maq_lowering *l, const struct maq_module *m, enum maq_pass pass)
{
    struct maq_local d = maq_lower_local(l->lower, l->layer, m);
    int64_t rows = busy_rows(l->lower);
    if (pass == MAQ_PASS_FORWARD) {
        quantize(l, rows, d.in);
        grouped(l, rows, d.out, d.in, false);
        maq_lower_expert_bias(l, m, rows, groups_of(l->lower), true);
        return;
    }
    if (pass != MAQ_PASS_BACKWARD_WEIGHT) {
        maq_lower_expert_bias(l, m, rows, groups_of(l->lower), false);
        quantize(l, rows, d.out);
        grouped(l, rows, d.in, d.out, false);
    }
    if (pass != MAQ_PASS_BACKWARD_INPUT && maq_lower_trained(l->lower))
        grouped(l, rows, d.in, d.out, true);
}

void maq_lower_expert(struct maq_lowering *l, const struct maq_module *m, enum maq_pass pass)
{
    if (m->kind == MAQ_MODULE_ROUTER) {
        lower_router(l, m, pass);
    } else if (m->kind == MAQ_MODULE_EXPERT_LINEAR) {
        lower_expert_linear(l, m, pass);
    } else if (pass != MAQ_PASS_BACKWARD_WEIGHT) {
        struct maq_local d = maq_lower_local(l->lower, l->layer, m);
        unsigned flags =
            (l->lower->plan->fused_kernels ? 0 : MAQ_OP_UNFUSED) | (m->flags & MAQ_MODULE_GATED ? MAQ_OP_GATED : 0);
        struct maq_op op = maq_op_make(pass == MAQ_PASS_FORWARD ? MAQ_OP_ACTIVATION : MAQ_OP_ACTIVATION_BWD,
                                       l->lower->store, flags, busy_rows(l->lower), d.in, d.out, 0, 0, 0);
        bool forward = pass == MAQ_PASS_FORWARD;
        if (forward)
            maq_lower_clamp(l, m, busy_rows(l->lower), true);
        maq_segment_op(&l->w, &op);
        if (!forward)
            maq_lower_clamp(l, m, busy_rows(l->lower), false);
    }
}
