/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pointwise.c - modules that pass over their data once: norms, activations, residuals, lookups, losses, scans.
 *
 * Fused kernels are one operator; without fusion (`fused_kernels: false`) a pointwise operator is several passes over its data
 * (MAQ_OP_UNFUSED).
 */
#include "base/check.h"
#include "lower/local.h"
#include "lower/modules.h"

static unsigned unfused(const struct maq_lowering *l)
{
    return l->lower->plan->fused_kernels ? 0 : MAQ_OP_UNFUSED;
}

static void put(struct maq_lowering *l, enum maq_op_kind kind, unsigned flags, int64_t d0, int64_t d1, int64_t d2)
{
    if (d0 <= 0)
        return;
    struct maq_op op = maq_op_make(kind, l->lower->store, flags, d0, d1, d2, 0, 0, 0);
    maq_segment_op(&l->w, &op);
}

/* read, written: bytes per element */
static void elementwise(struct maq_lowering *l, int64_t elements, double read, double written, unsigned flags)
{
    put(l, MAQ_OP_ELEMENTWISE, flags, elements, (int64_t)read, (int64_t)written);
}

static void lower_residual(struct maq_lowering *l, const struct maq_module *m, bool backward)
{
    double b = l->lower->store_bytes, mask = m->flags & MAQ_MODULE_DROPOUT ? 1 : 0;
    int64_t n = l->lower->tokens_region * m->out;
    if (!backward)
        elementwise(l, n, 2 * b, b + mask, mask > 0 ? unfused(l) : 0);
    else if (mask > 0) /* the gradient of a bare sum is the gradient itself */
        elementwise(l, n, b + mask, b, 0);
}

/*
 * Statistics of a vocabulary-parallel cross-entropy: maximum, target logit and sum, 4 bytes per token each (Megatron-LM
 * cross_entropy.py). Liger's is one kernel over the rows that there are at a time; Cut Cross-Entropy's is part of the product.
 */
static void lower_loss(struct maq_lowering *l, const struct maq_module *m, bool backward)
{
    struct maq_local local = maq_lower_local(l->lower, l->layer, m);
    const struct maq_plan *p = l->lower->plan;
    if (p->loss_function != MAQ_LOSS_CUT)
        put(l, backward ? MAQ_OP_CROSS_ENTROPY_BWD : MAQ_OP_CROSS_ENTROPY,
            p->loss_function == MAQ_LOSS_LINEAR ? 0
            : p->loss_fusion                    ? unfused(l)
                                                : MAQ_OP_UNFUSED,
            local.rows, local.in, 0);
    if (backward)
        return;
    struct maq_coll stats = maq_coll_make(l->lower, MAQ_COLL_ALL_REDUCE, MAQ_GROUP_TP, 4.0 * (double)local.rows);
    for (int i = 0; i < 3; i++)
        maq_segment_coll(&l->w, &stats, MAQ_STREAM_TP);
}

/*
 * A dot to its compiler like any other: the vectors are written out for it, and the table's gradient is the product with them
 * again.
 */
static void look_up(struct maq_lowering *l, const struct maq_module *m, struct maq_local d, bool backward)
{
    const struct maq_plan *p = l->lower->plan;
    if (!maq_lower_one_hot(l->lower, m)) {
        put(l, backward ? MAQ_OP_EMBEDDING_BWD : MAQ_OP_EMBEDDING, 0, d.rows, m->out, d.in);
        return;
    }
    bool into_fp32 = p->weight_grad_fusion && p->grad_dtype == MAQ_FP32;
    struct maq_op forward = maq_op_make(MAQ_OP_GEMM, l->lower->store, 0, d.rows, m->out, d.in, 1, 0, 0),
                  table = maq_op_make(MAQ_OP_GEMM, l->lower->store, into_fp32 ? MAQ_OP_ACCUMULATE : 0, d.in, m->out,
                                      d.rows, 1, 0, 0);
    if (!backward)
        elementwise(l, d.rows * d.in, 0, l->lower->store_bytes, 0);
    maq_segment_op(&l->w, backward ? &table : &forward);
    if (backward)
        maq_lower_accumulate(l, d.in * m->out);
}

static void lower_embedding(struct maq_lowering *l, const struct maq_module *m, bool backward)
{
    struct maq_local local = maq_lower_local(l->lower, l->layer, m);
    bool sp = l->lower->plan->sequence_parallel == MAQ_ON;
    double bytes = (double)l->lower->tokens * (double)m->out * l->lower->store_bytes;
    if (!backward) {
        look_up(l, m, local, false);
        if (!(m->flags & MAQ_MODULE_REDUCE_OUT)) /* a table that every rank holds whole (positions) */
            return;
        struct maq_coll sum =
            maq_coll_make(l->lower, sp ? MAQ_COLL_REDUCE_SCATTER : MAQ_COLL_ALL_REDUCE, MAQ_GROUP_TP, bytes);
        maq_segment_coll(&l->w, &sum, MAQ_STREAM_TP);
        return;
    }
    if (!maq_lower_trained(l->lower))
        return;
    if (sp && (m->flags & MAQ_MODULE_REDUCE_OUT)) {
        struct maq_coll gather = maq_coll_make(l->lower, MAQ_COLL_ALL_GATHER, MAQ_GROUP_TP, bytes);
        maq_segment_coll(&l->w, &gather, MAQ_STREAM_TP);
    }
    look_up(l, m, local, true);
}

static void lower_scan(struct maq_lowering *l, const struct maq_module *m, bool backward)
{
    const struct maq_ssm_geometry *g = &m->u.ssm;
    int64_t tp = l->lower->plan->tp, groups = g->groups / tp > 0 ? g->groups / tp : 1;
    bool delta = m->kind == MAQ_MODULE_DELTA_RULE;
    enum maq_op_kind kind = delta ? (backward ? MAQ_OP_DELTA_RULE_BWD : MAQ_OP_DELTA_RULE)
                                  : (backward ? MAQ_OP_SSM_SCAN_BWD : MAQ_OP_SSM_SCAN);
    struct maq_op op =
        maq_op_make(kind, l->lower->store, 0, l->lower->tokens, g->heads / tp, g->head_dim, groups, g->state, g->chunk);
    maq_segment_ops(&l->w, &op, 5); /* state, chunk scan, cumulative sum, ...: the reference kernels are five */
}

void maq_lower_pointwise(struct maq_lowering *l, const struct maq_module *m, bool backward)
{
    struct maq_local local = maq_lower_local(l->lower, l->layer, m);
    double b = l->lower->store_bytes;
    switch (m->kind) {
    case MAQ_MODULE_NORM:
        /* PyTorch has a fused LayerNorm; an RMSNorm written out is several passes */
        put(l, backward ? MAQ_OP_NORM_BWD : MAQ_OP_NORM, m->flags & MAQ_MODULE_LAYERNORM ? MAQ_OP_BIAS : unfused(l),
            local.rows, local.in, 0);
        break;
    case MAQ_MODULE_ROPE:
        put(l, MAQ_OP_ROPE, unfused(l), local.rows, local.in, 0);
        break;
    case MAQ_MODULE_ACTIVATION:
        put(l, backward ? MAQ_OP_ACTIVATION_BWD : MAQ_OP_ACTIVATION,
            unfused(l) | (m->flags & MAQ_MODULE_GATED ? MAQ_OP_GATED : 0), local.rows, local.in, local.out);
        break;
    case MAQ_MODULE_GATE:
        elementwise(l, local.rows * local.out, backward ? 3 * b : 2 * b, backward ? 2 * b : b, 0);
        break;
    case MAQ_MODULE_RESIDUAL:
        lower_residual(l, m, backward);
        break;
    case MAQ_MODULE_CONV1D:
        put(l, backward ? MAQ_OP_CONV1D_BWD : MAQ_OP_CONV1D, 0, local.rows, local.in, m->u.kernel);
        break;
    case MAQ_MODULE_SSM_SCAN:
    case MAQ_MODULE_DELTA_RULE:
        lower_scan(l, m, backward);
        break;
    case MAQ_MODULE_SELECTIVE_SCAN:
        put(l, backward ? MAQ_OP_SELECTIVE_SCAN_BWD : MAQ_OP_SELECTIVE_SCAN, 0, local.rows, local.out, m->u.ssm.state);
        break;
    case MAQ_MODULE_LOSS:
        lower_loss(l, m, backward);
        break;
    case MAQ_MODULE_EMBEDDING:
        lower_embedding(l, m, backward);
        break;
    case MAQ_MODULE_LINEAR:
    case MAQ_MODULE_ATTENTION:
    case MAQ_MODULE_INDEXER:
    case MAQ_MODULE_ROUTER:
    case MAQ_MODULE_DISPATCH:
    case MAQ_MODULE_EXPERT_LINEAR:
    case MAQ_MODULE_EXPERT_ACTIVATION:
    case MAQ_MODULE_COMBINE:
    case MAQ_MODULE_KIND_COUNT:
        MAQ_ASSERT(false); /* not pointwise */
        break;
    }
}
