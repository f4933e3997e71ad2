/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention.c - core attention, alone or across context-parallel ranks.
 *
 * One rank holds t = mbs * seq / cp query tokens, cut so that causal work is balanced (two chunks per rank);
 * each attends to `keys` keys on average.
 *
 *   p2p         cp pieces of t queries x keys/cp keys; K and V travel around the ring under them (backward: K, V and their gradients).
 *               What a piece adds is merged with what was there: into o (backward: into dQ, dK and dV), of all tokens of the rank where
 *               the piece has its first half of keys, of half of them where it has the second half of its queries: 3/4 in the mean.
 *               Bytes read and written per element: fused kernels in the model's type of e bytes (2 e, e). PyTorch's eager ones in FP32
 *               (`cp_merges_in_fp32`): o converted (e, 4), a difference (8, 4), times a sigmoid (4, 4), subtracted (8, 4); gradients
 *               added (e + 4, 4), those of K and V also joined (4, 4) to travel in FP32, and waited for. Where only half of the tokens
 *               changed, in half of the pieces, both halves are joined anew (4, 4). The first piece is converted, or added to zeros (0, 4);
 *               the result is converted back (4, e)
 *   all_gather  K and V of the whole sequence first (backward: and a reduce-scatter of their gradients)
 *   a2a         Q, K, V re-cut from sequence to heads by all-to-all, the output back (Ulysses; backward the same in reverse)
 *   a2a+p2p     all-to-all inside groups of `cp_a2a`, ring between them
 *
 * Where a framework copies keys and values out to one head per query head (`repeats_kv`), kernels, rings and gathers have those, and
 * each pass a kernel for either more: heads written as often as queries share them, and gradients added up again.
 *
 * Unfused attention is two batched GEMMs around a softmax that keeps its s x s scores (Megatron-LM's
 * DotProductAttention): its work does not shrink with causality. Where nothing fuses the softmax, the host issues conversion, scale, mask,
 * softmax and conversion as operators of their own (model/fused_softmax.py, forward_torch_softmax).
 *
 * Sources: Transformer Engine's context_parallel.py; torch/distributed/tensor/experimental/_attention.py of PyTorch 2.6 (_SDPAMerger,
 * _templated_ring_attention and its backward); "Ring Attention" (arXiv 2310.01889); "DeepSpeed Ulysses"
 * (2309.14509); USP (2405.07719).
 */
#include "base/check.h"
#include "lower/local.h"
#include "lower/modules.h"

struct attention {
    int64_t tokens, heads, kv_heads, qk_dim, v_dim;
    double keys, kv_bytes, q_bytes, out_bytes; /* on one rank, of its own tokens */
    double sent;                               /* bytes of K and V on their way over bytes in memory */
    const struct maq_attention_geometry *g;
};

static int64_t share(int64_t n, int64_t by)
{
    return n / by > 0 ? n / by : 1;
}

bool maq_lower_attends_narrow(const struct maq_lower *lo)
{
    return lo->plan->fp8_attention && lo->attention == MAQ_ATTENTION_FLASH &&
           (lo->math == MAQ_FP8 || lo->math == MAQ_FP4);
}

/* A scale for every 32 numbers; under a recipe of 4 bits attention has one for a tensor. */
static bool scales_blocks(const struct maq_lower *lo)
{
    return lo->plan->precision == MAQ_PRECISION_MXFP8;
}

double maq_lower_attention_kept(const struct maq_lower *lo)
{
    if (!maq_lower_attends_narrow(lo))
        return lo->store_bytes;
    return scales_blocks(lo) ? 2 * maq_lower_narrow_bytes(lo->plan) : 1; /* along both dimensions */
}

bool maq_lower_repeats_kv(const struct maq_lower *lo, const struct maq_attention_geometry *g)
{
    return lo->job->framework.repeats_kv && g->kv_heads < g->heads && lo->attention != MAQ_ATTENTION_UNFUSED;
}

static struct attention local_attention(const struct maq_lowering *l, const struct maq_module *m)
{
    const struct maq_lower *lo = l->lower;
    const struct maq_attention_geometry *g = &m->u.attention;
    int64_t tp = lo->plan->tp;
    bool narrows = lo->job->framework.tp_narrows_heads;
    struct attention a = {.tokens = lo->tokens,
                          .heads = narrows ? g->heads : share(g->heads, tp),
                          .kv_heads = narrows ? g->kv_heads : share(g->kv_heads, tp),
                          .qk_dim = narrows ? share(g->qk_dim, tp) : g->qk_dim,
                          .v_dim = narrows ? share(g->v_dim, tp) : g->v_dim,
                          .g = g};
    if (maq_lower_repeats_kv(lo, g)) /* from here on there are as many */
        a.kv_heads = a.heads;
    a.keys = maq_lower_keys(lo, g);
    double row = (double)a.tokens * lo->store_bytes;
    a.kv_bytes = row * (double)a.kv_heads * (double)(a.qk_dim + a.v_dim);
    a.q_bytes = row * (double)a.heads * (double)a.qk_dim;
    a.out_bytes = row * (double)a.heads * (double)a.v_dim;
    a.sent = maq_lower_attends_narrow(lo) && !scales_blocks(lo) ? 1 / lo->store_bytes : 1;
    return a;
}

static void flash(struct maq_lowering *l, const struct attention *a, bool backward, double keys, int64_t tokens,
                  int64_t heads_cut)
{
    int backend = l->lower->attention;
    unsigned flags = (a->g->causal ? MAQ_OP_CAUSAL : 0u) | (a->g->dropout ? MAQ_OP_DROPOUT : 0u) |
                     (backend == MAQ_ATTENTION_FLASH2   ? MAQ_OP_FLASH2
                      : backend == MAQ_ATTENTION_FLASH1 ? MAQ_OP_FLASH2 | MAQ_OP_FLASH1
                      : backend == MAQ_ATTENTION_TRITON ? MAQ_OP_FLASH2 | MAQ_OP_TRITON
                                                        : 0u);
    bool narrow = maq_lower_attends_narrow(l->lower);
    flags |= narrow && scales_blocks(l->lower) ? MAQ_OP_MX : 0u;
    struct maq_op op =
        maq_op_make(backward ? MAQ_OP_ATTENTION_BWD : MAQ_OP_ATTENTION, narrow ? MAQ_FP8 : l->lower->store, flags,
                    tokens, (int64_t)(keys + 0.5) > 0 ? (int64_t)(keys + 0.5) : 1, share(a->heads, heads_cut),
                    share(a->kv_heads, heads_cut), a->qk_dim, a->v_dim);
    int64_t seq = l->lower->seq;
    if (a->g->window > 0 && a->g->window < seq && l->lower->job->workload.length_mean <= 0 && seq <= tokens) {
        op.flags = (uint8_t)((op.flags & ~MAQ_OP_CAUSAL) | MAQ_OP_WINDOW);
        op.queries = (uint32_t)seq;
    }
    maq_segment_ops(&l->w, &op, backward ? 3 : 1); /* backward: row sums, main kernel, conversion of dQ */
}

/*
 * Megatron's fused scale-mask-softmax takes 16-bit scores of up to 16,384 keys whose heads, over the sequences of a microbatch, come in
 * fours (fused_kernels/scaled_masked_softmax.h, model/fused_softmax.py: is_kernel_available).
 */
static bool softmax_is_fused(const struct maq_lower *lo, int64_t heads, int64_t keys)
{
    return lo->plan->fused_kernels && lo->plan->softmax_fusion && lo->store_bytes == 2 && keys <= 16384 &&
           lo->plan->mbs * heads % 4 == 0;
}

bool maq_lower_softmax_fused(const struct maq_lower *lo, const struct maq_attention_geometry *g)
{
    int64_t heads = lo->job->framework.tp_narrows_heads ? g->heads : share(g->heads, lo->plan->tp);
    return g->causal && softmax_is_fused(lo, heads, lo->seq);
}

bool maq_lower_softmax_widens(const struct maq_lower *lo, const struct maq_attention_geometry *g)
{
    return lo->attention == MAQ_ATTENTION_UNFUSED && lo->store_bytes < 4 && g->causal && !g->position_bias &&
           !maq_lower_softmax_fused(lo, g) && lo->plan->softmax_fp32;
}

/*
 * The mask as kernels of its own, where nothing fuses it with a softmax that stays in 16 bits: scores are read and written in place,
 * and the gradient is copied first (masked_fill_ of PyTorch).
 */
static void mask_scores(struct maq_lowering *l, int64_t elements, bool backward)
{
    int64_t b = (int64_t)l->lower->store_bytes;
    const struct maq_op pass = maq_op_make(MAQ_OP_ELEMENTWISE, l->lower->store, 0, elements, b, b, 0, 0, 0);
    maq_segment_op(&l->w, &pass);
    if (backward)
        maq_segment_op(&l->w, &pass);
}

/*
 * Scores that are scaled by a kernel of their own, and positions added to them: a gather of each pair's number from the table, a change of
 * its layout, and the addition. Backward: the scaling, the sum of the gradients over windows and sequences, and their way back into
 * the table, which PyTorch sorts by place (index_put_ with accumulation: keys of 8 bytes, four passes of a radix sort).
 */
#define SORT_BYTES (4 * 2 * (8 + 8))

static void bias_scores(struct maq_lowering *l, int64_t elements, int64_t pairs, int64_t heads, bool backward)
{
    int64_t b = (int64_t)l->lower->store_bytes;
    const struct maq_op scale = maq_op_make(MAQ_OP_ELEMENTWISE, l->lower->store, 0, elements, b, b, 0, 0, 0);
    const struct maq_op add =
        maq_op_make(MAQ_OP_ELEMENTWISE, l->lower->store, 0, elements, backward ? b : 2 * b, backward ? 0 : b, 0, 0, 0);
    const struct maq_op gather = maq_op_make(MAQ_OP_ELEMENTWISE, l->lower->store, 0, pairs * heads, b, b, 0, 0, 0);
    const struct maq_op sort =
        maq_op_make(MAQ_OP_ELEMENTWISE, l->lower->store, 0, pairs, SORT_BYTES / 2, SORT_BYTES / 2, 0, 0, 0);
    if (backward) {
        maq_segment_op(&l->w, &add);
        maq_segment_op(&l->w, &gather);
        maq_segment_ops(&l->w, &sort, 9);
        maq_segment_op(&l->w, &gather);
        maq_segment_op(&l->w, &scale);
        return;
    }
    maq_segment_op(&l->w, &scale);
    maq_segment_op(&l->w, &gather);
    maq_segment_op(&l->w, &gather);
    maq_segment_op(&l->w, &add);
}

/*
 * Without a kernel that holds a row, the maximum and the sum are passes of their own in front of the one that writes; backward, the sum
 * of the products of both tensors is.
 */
static void read_scores_again(struct maq_lowering *l, int64_t elements, bool backward)
{
    int64_t e = (int64_t)l->lower->store_bytes;
    struct maq_op pass =
        maq_op_make(MAQ_OP_ELEMENTWISE, l->lower->store, 0, elements, backward ? 2 * e : e, 0, 0, 0, 0);
    for (int i = 0; i < (backward ? 1 : 2); i++)
        maq_segment_op(&l->w, &pass);
}

/* What is done to scores between the products: scale with mask, or with positions, where the softmax does not do it itself. */
struct scores {
    int64_t queries, keys, batch; /* batch: sequences or windows, times heads */
    int64_t dropped;              /* elements */
    bool masks;
    unsigned chain; /* of the softmax */
};

static struct scores scores_of(const struct maq_lower *lo, const struct attention *a)
{
    int64_t keys = !a->g->causal && a->g->chunk > 0 && a->g->chunk < lo->seq ? a->g->chunk : lo->seq;
    struct scores s = {
        .queries = keys / lo->plan->cp, .keys = keys, .batch = lo->plan->mbs * (lo->seq / keys) * a->heads};
    bool fused = a->g->causal && softmax_is_fused(lo, a->heads, keys);
    s.masks = a->g->causal && !fused && !lo->plan->softmax_fp32;
    s.chain = fused || s.masks || a->g->position_bias ? 0 : MAQ_OP_UNFUSED;
    s.dropped = a->g->dropout ? s.queries * s.batch * s.keys : 0;
    return s;
}

static void between_products(struct maq_lowering *l, const struct attention *a, const struct scores *s, bool backward)
{
    const struct maq_lower *lo = l->lower;
    int64_t b = (int64_t)lo->store_bytes, elements = s->queries * s->batch * s->keys;
    const struct maq_op soft = maq_op_make(backward ? MAQ_OP_SOFTMAX_BWD : MAQ_OP_SOFTMAX, lo->store, s->chain,
                                           s->queries * s->batch, s->keys, 0, 0, 0, 0);
    /* a kernel of its own: scores and, backward, the mask are read; scores and, forward, the mask are written */
    const struct maq_op dropout = maq_op_make(MAQ_OP_ELEMENTWISE, lo->store, 0, s->dropped, b + (backward ? 1 : 0),
                                              b + (backward ? 0 : 1), 0, 0, 0);
    if (!backward && s->masks)
        mask_scores(l, elements, false);
    if (!backward && a->g->position_bias)
        bias_scores(l, elements, s->keys * s->keys, a->heads, false);
    if (backward && s->dropped)
        maq_segment_op(&l->w, &dropout);
    maq_segment_chain(&l->w, &soft);
    if (lo->job->framework.softmax_rereads_scores)
        read_scores_again(l, elements, backward);
    if (!backward && s->dropped)
        maq_segment_op(&l->w, &dropout);
    if (backward && a->g->position_bias)
        bias_scores(l, elements, s->keys * s->keys, a->heads, true);
    if (backward && s->masks)
        mask_scores(l, elements, true);
}

/* Scores, softmax with scale and mask, dropout, values; one batched GEMM per product. */
static void unfused(struct maq_lowering *l, const struct attention *a, bool backward)
{
    const struct maq_lower *lo = l->lower;
    const struct scores s = scores_of(lo, a);
    int64_t q = s.queries, k = s.keys;
    const struct maq_op scores = maq_op_make(MAQ_OP_GEMM, lo->store, 0, q, k, a->qk_dim, s.batch, 0, 0);
    const struct maq_op values = maq_op_make(MAQ_OP_GEMM, lo->store, 0, q, a->v_dim, k, s.batch, 0, 0);
    const struct maq_op dvalues = maq_op_make(MAQ_OP_GEMM, lo->store, 0, k, a->v_dim, q, s.batch, 0, 0);
    const struct maq_op dkeys = maq_op_make(MAQ_OP_GEMM, lo->store, 0, k, a->qk_dim, q, s.batch, 0, 0);
    const struct maq_op dqueries = maq_op_make(MAQ_OP_GEMM, lo->store, 0, q, a->qk_dim, k, s.batch, 0, 0);
    const struct maq_op dscores = maq_op_make(MAQ_OP_GEMM, lo->store, 0, q, k, a->v_dim, s.batch, 0, 0);
    if (!backward) {
        maq_segment_op(&l->w, &scores);
        between_products(l, a, &s, false);
        maq_segment_op(&l->w, &values);
        return;
    }
    maq_segment_op(&l->w, &dvalues);
    maq_segment_op(&l->w, &dscores);
    between_products(l, a, &s, true);
    maq_segment_op(&l->w, &dqueries);
    maq_segment_op(&l->w, &dkeys);
}

static void merge(struct maq_lowering *l, double elements, int64_t read, int64_t written, uint32_t launches)
{
    struct maq_op op = maq_op_make(MAQ_OP_ELEMENTWISE, l->lower->store, 0, (int64_t)elements, read, written, 0, 0, 0);
    maq_segment_ops(&l->w, &op, launches);
}

/* What a piece of a ring brought, into what was there. */
static void merge_piece(struct maq_lowering *l, const struct attention *a, bool backward, enum maq_group_kind group)
{
    const double part = 0.75;
    const struct maq_lower *lo = l->lower;
    int64_t e = (int64_t)lo->store_bytes;
    double values = part * a->out_bytes / (double)e, queries = part * a->q_bytes / (double)e,
           pairs = part * a->kv_bytes / (double)e;
    if (!lo->job->framework.cp_merges_in_fp32) {
        merge(l, backward ? queries + pairs : values, 2 * e, e, 1);
        return;
    }
    if (!backward) {
        merge(l, values, e + 20, 16, 4);
        merge(l, values / part / 2, 4, 4, 1);
        return;
    }
    merge(l, queries, e + 4, 4, 1);
    merge(l, pairs, e + 8, 8, 2);
    merge(l, (queries + pairs) / part / 2, 4, 4, 1);
    struct maq_coll turn = maq_coll_make(lo, MAQ_COLL_SEND_RECV, group, a->kv_bytes / (double)e * 4);
    maq_segment_coll(&l->w, &turn, MAQ_STREAM_CP);
}

/* The first piece of a ring in 32 bits, and the result of all of them in the model's type. */
static void first_and_last(struct maq_lowering *l, const struct attention *a, bool backward)
{
    int64_t e = (int64_t)l->lower->store_bytes;
    if (!l->lower->job->framework.cp_merges_in_fp32)
        return;
    if (backward)
        merge(l, (a->q_bytes + a->kv_bytes) / (double)e, e + 8, 8 + e, 3);
    else
        merge(l, a->out_bytes / (double)e, e + 4, 4 + e, 2);
}

/* `steps` pieces; between them the next K and V arrive. heads_cut: heads spread over an inner all-to-all
 * group already. */
static void ring(struct maq_lowering *l, const struct attention *a, bool backward, enum maq_group_kind group,
                 int32_t steps, int32_t heads_cut)
{
    bool with_gradients = backward && !l->lower->job->framework.cp_merges_in_fp32;
    /* tokens x heads_cut more, heads / heads_cut fewer: the same bytes */
    double bytes = a->kv_bytes * (a->sent + (with_gradients ? 1 : 0));
    struct maq_coll hop = maq_coll_make(l->lower, MAQ_COLL_SEND_RECV, group, bytes);
    uint16_t arrived = MAQ_STEP_NONE;
    for (int32_t i = 0; i < steps; i++) {
        uint16_t next = MAQ_STEP_NONE;
        if (i + 1 < steps) { /* under this piece */
            uint16_t gate = i == 0 ? l->w.on[MAQ_STREAM_COMPUTE] : arrived;
            if (i == 0 && l->w.sync != MAQ_STEP_NONE)
                gate = l->w.sync;
            next = maq_segment_coll_async(&l->w, &hop, MAQ_STREAM_CP, gate);
        }
        flash(l, a, backward, a->keys / steps, a->tokens * heads_cut, heads_cut);
        if (i > 0)
            merge_piece(l, a, backward, group);
        else
            first_and_last(l, a, backward);
        maq_segment_join(&l->w, next);
        arrived = next;
    }
}

static void all_to_all(struct maq_lowering *l, enum maq_group_kind group, double bytes)
{
    struct maq_coll c = maq_coll_make(l->lower, MAQ_COLL_ALL_TO_ALL, group, bytes);
    maq_segment_coll(&l->w, &c, MAQ_STREAM_CP);
}

static void across_ranks(struct maq_lowering *l, const struct attention *a, bool backward)
{
    const struct maq_plan *p = l->lower->plan;
    double qkv = a->q_bytes + a->kv_bytes;
    switch ((enum maq_cp_comm)p->cp_comm) {
    case MAQ_CP_P2P:
        ring(l, a, backward, MAQ_GROUP_CP, p->cp, 1);
        break;
    case MAQ_CP_ALL_GATHER: {
        struct maq_coll gather =
            maq_coll_make(l->lower, MAQ_COLL_ALL_GATHER, MAQ_GROUP_CP, a->kv_bytes * a->sent * p->cp);
        maq_segment_coll(&l->w, &gather, MAQ_STREAM_CP);
        flash(l, a, backward, a->keys, a->tokens, 1);
        if (backward) {
            struct maq_coll scatter =
                maq_coll_make(l->lower, MAQ_COLL_REDUCE_SCATTER, MAQ_GROUP_CP, a->kv_bytes * p->cp);
            maq_segment_coll(&l->w, &scatter, MAQ_STREAM_CP);
        }
        break;
    }
    case MAQ_CP_A2A: /* the kernel sees all tokens and 1/cp of the heads */
        all_to_all(l, MAQ_GROUP_CP, backward ? a->out_bytes : qkv);
        flash(l, a, backward, a->keys, a->tokens * p->cp, p->cp);
        all_to_all(l, MAQ_GROUP_CP, backward ? qkv : a->out_bytes);
        break;
    case MAQ_CP_A2A_P2P:
        all_to_all(l, MAQ_GROUP_CP_INNER, backward ? a->out_bytes : qkv);
        ring(l, a, backward, MAQ_GROUP_CP_OUTER, p->cp / p->cp_a2a, p->cp_a2a);
        all_to_all(l, MAQ_GROUP_CP_INNER, backward ? qkv : a->out_bytes);
        break;
    }
}

/* Each head of keys and values is written as often as query heads share it; backward, its gradients are read and added up. */
static void repeat_kv(struct maq_lowering *l, const struct attention *a, bool backward)
{
    int64_t e = (int64_t)l->lower->store_bytes, kv_heads = share(a->g->kv_heads, l->lower->plan->tp);
    int64_t times = share(a->heads, kv_heads), elements = a->tokens * kv_heads * (a->qk_dim + a->v_dim);
    if (maq_lower_repeats_kv(l->lower, a->g))
        merge(l, (double)elements, backward ? e * times : e, backward ? e : e * times, 2);
}

static void core(struct maq_lowering *l, const struct attention *a, bool backward)
{
    if (l->lower->attention == MAQ_ATTENTION_UNFUSED)
        unfused(l, a, backward);
    else if (l->lower->plan->cp > 1)
        across_ranks(l, a, backward);
    else
        flash(l, a, backward, a->keys, a->tokens, 1);
}

/*
 * Around attention in 8 bits (backends.py of Transformer Engine): Q, K and V are quantized in front of it, and the gradient of its output;
 * with delayed scaling its results are 8-bit numbers as well, which are widened behind it.
 */
static void quantize_around(struct maq_lowering *l, const struct attention *a, bool backward, bool behind)
{
    const struct maq_lower *lo = l->lower;
    int64_t qkv = (int64_t)((a->q_bytes + a->kv_bytes) / lo->store_bytes),
            out = (int64_t)(a->out_bytes / lo->store_bytes);
    if (!maq_lower_attends_narrow(lo))
        return;
    if (behind) {
        if (lo->plan->precision == MAQ_PRECISION_FP8_DELAYED)
            merge(l, (double)(backward ? qkv : out), 1, (int64_t)lo->store_bytes, backward ? 3 : 1);
        return;
    }
    int64_t columns = a->heads * (backward ? a->v_dim : a->qk_dim), rows = (backward ? out : qkv) / columns;
    struct maq_op op = maq_op_make(MAQ_OP_QUANTIZE, MAQ_FP8, 0, rows, columns, scales_blocks(lo) ? 2 : 1, 0, 0, 0);
    maq_segment_ops(&l->w, &op, backward ? 1 : 3);
    maq_lower_maximum(l, rows * columns);
}

void maq_lower_attention(struct maq_lowering *l, const struct maq_module *m, enum maq_pass pass)
{
    struct attention a = local_attention(l, m);
    bool backward = pass != MAQ_PASS_FORWARD;
    if (!backward)
        repeat_kv(l, &a, false);
    quantize_around(l, &a, backward, false);
    core(l, &a, backward);
    quantize_around(l, &a, backward, true);
    if (backward)
        repeat_kv(l, &a, true);
}
