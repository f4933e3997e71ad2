/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trtllm_options.c - the options of trtllm-serve.
 *
 * Those of tensorrt_llm/commands/serve.py (NVIDIA/TensorRT-LLM, commit 00209af). What the file of --config has lies over them
 * (trtllm_config.c).
 */
#include "base/check.h"
#include "serve/command/command.h"

static const struct maq_command_row rows[] = {
    {MAQ_TAKES_ONE, MAQ_COMMAND_TP, "tensor_parallel_size|tp_size"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_PP, "pipeline_parallel_size|pp_size"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_EP, "moe_expert_parallel_size|ep_size"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_SEQS, "max_batch_size"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_TOKENS, "max_num_tokens"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_LEN, "max_seq_len"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_FREE_SHARE, "free_gpu_memory_fraction|kv_cache_free_gpu_memory_fraction"},

    {MAQ_TAKES_ONE, MAQ_COMMAND_SAID,
     "backend max_beam_width context_parallel_size|cp_size moe_cluster_parallel_size|cluster_size "
     "server_role disagg_cluster_uri num_postprocess_workers"},

    {MAQ_TAKES_ONE, MAQ_COMMAND_CONFIG, "config|extra_llm_api_options"},
    {MAQ_TAKES_NONE, MAQ_COMMAND_CHUNKED, "enable_chunked_prefill"},
    {MAQ_TAKES_ONE, MAQ_COMMAND_PASSED,
     "tokenizer custom_tokenizer host port custom_module_dirs log_level gpus_per_node revision reasoning_parser "
     "tool_parser metadata_server_config_file otlp_traces_endpoint media_io_kwargs chat_template"},
    {MAQ_TAKES_NONE, MAQ_COMMAND_PASSED, "help trust_remote_code fail_fast_on_attention_window_too_large"},
};

const struct maq_command_engine maq__command_trtllm = {
    .engine = MAQ_ENGINE_TRTLLM, .name = "TensorRT-LLM", .rows = rows, .n_rows = MAQ_COUNT(rows)};
