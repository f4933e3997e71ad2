/* SPDX-License-Identifier: Apache-2.0 */
/*
 * indexer.c - how sparse attention chooses its keys (DeepSeek-V3.2 and later): a few narrow heads score every key that a query could
 * see, and the best are taken.
 *
 *   scores   one product of t queries, all heads of an index side by side, with the keys of the index; a kernel that weighs the heads
 *            and adds them up writes one number per pair
 *   choice   a pass over these numbers in 4 bytes
 *
 * Backward: two products for the one (the index learns from attention's own scores), and no choice. Every rank of a TP group has
 * the whole index. Source: arXiv 2512.02556, section 2; deepseek-ai/DeepSeek-V3.2-Exp, inference/model.py.
 */
#include "lower/local.h"
#include "lower/modules.h"

void maq_lower_indexer(struct maq_lowering *l, const struct maq_module *m, bool backward)
{
    struct maq_attention_geometry g = m->u.attention;
    g.selected = 0;
    int64_t keys = (int64_t)(maq_lower_keys(l->lower, &g) + 0.5), rows = maq_lower_local(l->lower, l->layer, m).rows;
    struct maq_op scores =
        maq_op_make(MAQ_OP_GEMM, l->lower->store, 0, rows, keys > 0 ? keys : 1, (int64_t)g.heads * g.qk_dim, 1, 0, 0);
    maq_segment_op(&l->w, &scores);
    if (backward) {
        maq_segment_op(&l->w, &scores);
        return;
    }
    struct maq_op choice = maq_op_make(MAQ_OP_SOFTMAX, MAQ_FP32, 0, rows, keys > 0 ? keys : 1, 0, 0, 0, 0);
    maq_segment_op(&l->w, &choice);
}
