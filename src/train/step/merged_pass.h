/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merged_pass.h - a forward and a backward pass of two microbatches, merged layer by layer so that exchanges of experts of one run under
 * the compute of the other: Megatron Core's combined 1F1B (overlap_moe_expert_parallel_comm).
 *
 * A layer is cut into four nodes: attention with all that stands before the exchange (A), dispatch (D), experts or MLP (M) and
 * combine (C). A and M run on the stream of compute, D and C on that of communication. A node waits for the node before it on its
 * stream, and for the node before it of its pass. Layer i of the forward pass (f) and the i-th layer of the backward pass (b), which
 * counts from the last, are issued together:
 *
 *     compute        A_f      M_b  [M_w]  M_f      A_b  [A_w]
 *     communication  C_b      D_f         D_b      C_f
 *
 * Without delay_wgrad_compute the gradients of the weights (w) are part of M_b and A_b. With it D_b and the next C_b wait for the
 * gradients of the inputs alone, and the weights' run beside them. For n layers alike, in the steady state,
 *
 *     T / n = max(max(ad, C) + C', max(ad + aw, C) + a) + max(max(md, D) + D', max(md + mw, D) + m)        with
 *     T / n = max(ad + aw, C) + max(C', a) + max(md + mw, D) + max(D', m)                                  without
 *
 * a, ad, aw: attention forward, gradients of its inputs, of its weights; m, md, mw: the same of the experts; D, C: the exchanges
 * forward; D', C': backward.
 *
 * Source: Megatron-LM d98e8a64ddf3 (core 0.20), megatron/core/models/common/model_chunk_schedule_plan.py
 * (TransformerLayerSchedulePlan.run) and pipeline_parallel/utils.py (ScheduleNode: an event per pass orders its nodes over the streams).
 */
#ifndef MAQ_TRAIN_STEP_MERGED_PASS_H
#define MAQ_TRAIN_STEP_MERGED_PASS_H

#include "train/step/blueprint.h"

/* Nodes of a layer in ns, indexed by enum maq_layer_node. An exchange of 0 is none: the layer has no experts. */
struct maq_merged_layer {
    double forward[MAQ_LAYER_NODES];
    double backward[MAQ_LAYER_NODES]; /* without `late` */
    double late[MAQ_LAYER_NODES];     /* gradients of weights that nothing waits for */
};

/* How long the layers of a model chunk take, of one microbatch forward and of another one backward. */
double maq_merged_layers_ns(const struct maq_merged_layer *layers, uint32_t n);

/*
 * What a merged pair of passes of a program waits for exchanges beyond its compute: pr->exchange_wait_ns, and less of
 * pr->experts_under_ns. The partner of a pass is taken for one of the same program. Nothing where passes are not merged.
 */
enum maq_status maq_merge_passes(struct maq_program *program, const struct maq_blueprint *bp);

#endif
