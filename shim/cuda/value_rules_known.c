/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value_rules_known.c - kernels of serving engines whose whole numbers steer the host.
 *
 * vLLM 0.33.0, the second model runner (vllm/v1/worker/gpu/input_batch.py and buffer_utils.py). How many tokens a request has computed
 * lives on the device; from it and the new tokens comes its length, and a request whose prompt is not at its end samples nothing: the host
 * reads that count and goes on by it. Without speculation nothing is rejected. Parameters are those that Triton leaves: an argument that
 * is None or 1 is none, and two for scratch memory come last.
 */
#include "shim/cuda/value_rules.h"

const char *const vg_rules_known[] = {
    /* of a tensor of one dimension: rows, starts, contents, where those of each row end */
    "kernel _apply_write_kernel/7 gx i32 a0[a1.i32[i] + a2.i32[i]] = a3.i32[a4.i32[i] - 1]",
    /* positions, lengths, the request of each row, where its new tokens begin, tokens computed; one block more than rows */
    "kernel _prepare_pos_seq_lens_kernel gx-1 i32 a1[i] = a4.i32[a2.i64[i]] + a3.i32[i+1] - a3.i32[i]",
    /* sampled, rejected, lengths, where its logits begin, the request of each row, tokens to prefill */
    "kernel _get_num_sampled_and_rejected_kernel gx i32 a0[i] = a2.i32[i] >= a5.i32[a4.i64[i]]",
    "kernel _get_num_sampled_and_rejected_kernel gx i32 a1[i] = 0",
    /* the request of each row, tokens computed, ..., where its new tokens begin; with counts of tokens, and tokens that a draft leaves */
    "kernel _post_update_kernel/16 gx i32 a1[a0.i64[i]] = a1.i32[a0.i64[i]] + a8.i32[i+1] - a8.i32[i]",
    "kernel _post_update_num_computed_tokens_kernel gx i32 a1[a0.i64[i]] = a1.i32[a0.i64[i]] + a2.i32[i+1] - a2.i32[i]",
    NULL,
};
