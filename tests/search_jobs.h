/* SPDX-License-Identifier: Apache-2.0 */
/* search_jobs.h - jobs small enough to score every plan of their spaces. Includes effort.h. */
#ifndef MAQ_TESTS_SEARCH_JOBS_H
#define MAQ_TESTS_SEARCH_JOBS_H

#include "effort.h"

/* Jobs where different things bind: memory, the bubble, experts, slow links, a schedule that the user chose. */
static const struct search_job {
    const char *name, *text;
    bool full;
} jobs[] = {
    {"dense",
     "{model: {base: llama-3.1-8b, num_hidden_layers: 6}, cluster: 'h100-sxm:4', workload: {seq: 4096, gbs: 16}}",
     false},
    {"tight",
     "{model: {base: llama-3.1-8b, num_hidden_layers: 12}, cluster: 'rtx-4090:4', workload: {seq: 4096, gbs: 16},"
     " search: {cp: 1, vp: [1, 2], mbs: [1, 2], order: tp-cp-ep-dp-pp}}",
     true},
    {"pipelines",
     "{model: {base: gpt2, num_hidden_layers: 8}, cluster: 'v100-sxm2-16gb:4', plan: {tp: 1, cp: 1}, workload: {seq: "
     "1024, gbs: 16},"
     " search: {offload_layers: 0, optimizer_offload_fraction: 0, mbs: [1, 2]}}",
     true},
    {"experts",
     "{model: {base: mixtral-8x7b, num_hidden_layers: 4}, cluster: 'a100-80gb:8', workload: {seq: 4096, gbs: 16},"
     " search: {cp: 1, vp: [1, 2], mbs: [1, 2]}}",
     false},
    {"how tokens travel",
     "{model: {base: deepseek-v2-lite, num_hidden_layers: 5}, cluster: 'h100-sxm:4 x 2, rail 200G', workload: {seq: "
     "4096, "
     "gbs: 32}, search: {cp: 1, vp: [1, 2], mbs: [1, 2], dispatcher: [alltoall, deepep, hybridep], tp_comm_overlap: "
     "[auto, true], recompute: [none, mla_up_proj]}}",
     false},
    {"exchanges under another microbatch", /* with virtual stages, or no stages, and where no exchange is recomputed */
     "{model: {base: deepseek-v2-lite, num_hidden_layers: 6}, cluster: 'h100-sxm:4 x 2, rail 100G', workload: {seq: "
     "4096, gbs: 32}, search: {cp: 1, vp: [1, 2, 3], mbs: 1, overlap_ep: [false, true], schedule: [1f1b, interleaved, "
     "zb-h1, "
     "dualpipe], recompute: [none, moe_act, moe, full, block]}}",
     false},
    {"layers in 16 bits",
     "{model: {base: llama-3.1-8b, num_hidden_layers: 6}, cluster: 'rtx-5090:4', plan: {precision: mxfp8, "
     "first_last_layers_bf16: true, num_layers_at_end_in_bf16: 2}, workload: {seq: 4096, gbs: 16}}",
     false},
    {"inputs on the host", /* there is no device to spare, and the link is slow: copies are waited for, less where more is recomputed */
     "{model: {base: llama-3.1-8b, num_hidden_layers: 8}, cluster: 'rtx-4090:4', plan: {"
     "fine_grained_activation_offloading: true, offload_modules: [qkv_linear, core_attn, attn_proj]},"
     " workload: {seq: 4096, gbs: 16}, search: {cp: 1, vp: [1, 2]}}",
     true},
    {"inputs of experts on the host",
     "{model: {base: mixtral-8x7b, num_hidden_layers: 4}, cluster: 'a100-80gb:8', plan: {"
     "fine_grained_activation_offloading: true, offload_modules: [expert_fc1, moe_act]}, workload: {seq: 4096, gbs: "
     "16},"
     " search: {cp: 1, vp: [1, 2], mbs: [1, 2]}}",
     false},
    {"which inputs are on the host",
     "{model: {base: llama-3.1-8b, num_hidden_layers: 8}, cluster: 'rtx-4090:4', workload: {seq: 4096, gbs: 16}, "
     "search: {"
     "cp: 1, vp: [1, 2], mbs: [1, 4], zero: [no_shard, optim_grads_params], recompute: [none, full, block], "
     "offload_modules: [none, qkv_linear, core_attn+attn_proj, qkv_linear+core_attn+attn_proj]}}",
     true},
    {"recomputed and on the host", /* more layers recomputed take less time there: nothing is left to move */
     "{model: {model_type: megatron, hidden_size: 4096, num_layers: 8, num_attention_heads: 32, ffn_hidden_size: "
     "16384, "
     "vocab_size: 32000, max_position_embeddings: 8192}, cluster: 'v100-sxm2-16gb:8 x 2, rail 100G', workload: {seq: "
     "2048, gbs: 32}, search: {tp: 1, pp: 1, mbs: 1, cp: 1, offload_layers: [0, 1, 2, 4], zero: optim, "
     "hsdp_replicas: 1, recompute: [none, block], optimizer_offload_fraction: [0, 1]}}",
     false},
    {"copies that hide", /* in the host's wait in forward passes, beside the first gather */
     "{model: {model_type: megatron, hidden_size: 1024, num_layers: 16, num_attention_heads: 8, ffn_hidden_size: 4096, "
     "vocab_size: 32000, max_position_embeddings: 8192}, cluster: 'l40s:4 x 2, rail 100G', workload: {seq: 1024, gbs: "
     "16}, "
     "search: {tp: 1, pp: 1, mbs: 2, cp: 1, offload_layers: [0, 2, 8], zero: optim, hsdp_replicas: 2, recompute: "
     "none}}",
     false},
    {"exchanges that hide", /* in DualPipe, not in 1F1B */
     "{model: {model_type: megatron, hidden_size: 1024, num_layers: 6, num_attention_heads: 8, ffn_hidden_size: 4096, "
     "num_experts: 4, moe_router_topk: 2, moe_ffn_hidden_size: 2048, vocab_size: 32000, max_position_embeddings: "
     "65536}, cluster: 'l40s:4', framework: nemo, workload: {seq: 8192, gbs: 8}, search: {tp: 1, cp: 1, pp: 2, ep: 2, "
     "etp: 1, mbs: 1, zero: [no_shard, optim], hsdp_replicas: 1, recompute: none, schedule: [1f1b, dualpipe]}}",
     false},
    {"recomputed in a wait", /* beside an exchange, of a pass that waits for gathers */
     "{model: {model_type: megatron, hidden_size: 1024, num_layers: 6, num_attention_heads: 8, ffn_hidden_size: 4096, "
     "num_experts: 8, moe_router_topk: 2, moe_ffn_hidden_size: 2048, vocab_size: 32000, max_position_embeddings: "
     "65536}, cluster: 'h100-sxm:4 x 2, rail 200G', plan: {overlap_moe_expert_parallel_comm: true}, workload: {seq: "
     "2048, gbs: 8}, search: {tp: 1, cp: 2, ep: 4, etp: 1, pp: 1, mbs: 2, zero: 3, recompute: [none, "
     "core_attn+moe_act], hsdp_replicas: 1, cp_comm_type: all_gather}}",
     false},
    {"less to move", /* of four layers than of two, once experts are recomputed */
     "{model: {model_type: megatron, hidden_size: 2048, num_layers: 10, num_attention_heads: 16, ffn_hidden_size: "
     "8192, num_experts: 4, moe_router_topk: 2, moe_ffn_hidden_size: 4096, moe_shared_expert_intermediate_size: 2048, "
     "vocab_size: 32000, max_position_embeddings: 65536}, cluster: 'b200:4 x 2, rail 200G', framework: nemo, plan: "
     "{optimizer: muon, moe_expert_capacity_factor: 1.25}, workload: {seq: 2048, gbs: 16}, search: {tp: 1, cp: 1, pp: "
     "1, ep: 1, etp: 1, mbs: 2, offload_layers: [0, 2, 4], zero: optim, recompute: [none, layernorm, moe], "
     "hsdp_replicas: 2}}",
     false},
    {"ends keep what they keep", /* however much of the layers is recomputed: matters to fronts */
     "{model: {model_type: megatron, hidden_size: 1024, num_layers: 12, num_attention_heads: 8, ffn_hidden_size: 4096, "
     "vocab_size: 32000, max_position_embeddings: 8192}, cluster: 'v100-sxm2-16gb:8 x 2, rail 100G', workload: {seq: "
     "2048, gbs: 64}, search: {tp: [1, 2], pp: [1, 2], mbs: [1, 2], vp: [1, 2], cp: 1, offload_modules: [none, "
     "core_attn], recompute: [none, core_attn, mlp, full], hsdp_replicas: [1, 2], optimizer_offload_fraction: [0, 1]}}",
     false},
    {"reduced once a step", /* not in every pass, as where a step has one microbatch */
     "{model: {base: bloom-1b7, num_hidden_layers: 6}, cluster: 'h100-sxm:4 x 4, rail 400G', framework: "
     "nemo-automodel, plan: {precision: bf16}, workload: {seq: 1024, gbs: 128}, search: {tp: 2, cp: 1, pp: 1, mbs: [1, "
     "2], zero: optim_grads_params, recompute: none, hsdp_replicas: [1, 2]}}",
     false},
    {"chosen",
     "{model: {base: llama-3.1-8b, num_hidden_layers: 8}, cluster: 'a100-80gb:8', plan: {schedule: zb-v, pp: 4, vp: 2, "
     "recompute: full}, workload: {seq: 8192, gbs: 32}}",
     false},
};

/* Which of them a suite goes through: under a sanitizer every sixth. */
#define EVERY (SANITIZED ? 6 : 1)

#endif
