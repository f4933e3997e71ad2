# SPDX-License-Identifier: Apache-2.0
# Written by tools/pages/python_options.py from the tables of the program: the keywords of each function.
from os import PathLike
from typing import Any, Literal, Mapping, Sequence, TypedDict, Union

Value = Union[str, int, float, bool, "PathLike[str]", Sequence[Any], Mapping[str, Any], None]


class TrainOptions(TypedDict, total=False):
    model: Value
    cluster: Value
    framework: Value
    name: Value
    set: Union[Mapping[str, Any], Sequence[str], str]
    html: Value
    trace: Value
    explain: bool
    engine: Union[Literal["fast", "static", "dynamic"], None]
    measured: Value
    cost: Union[Literal["analytical", "fitted", "measured"], None]
    price: Value
    min_fit_probability: Value
    write_as: Union[Literal["accelerate", "axolotl", "deepspeed", "llama-factory", "torchtitan", "training-arguments"], None]
    tp: Value
    tensor_model_parallel_size: Value
    pp: Value
    pipeline_model_parallel_size: Value
    vp: Value
    vpp: Value
    virtual_pipeline_model_parallel_size: Value
    cp: Value
    context_parallel_size: Value
    ep: Value
    expert_model_parallel_size: Value
    etp: Value
    expert_tensor_parallel_size: Value
    dp: Value
    data_parallel_size: Value
    sp: Union[Literal["auto", "false", "true"], bool, None]
    sequence_parallel: Union[Literal["auto", "false", "true"], bool, None]
    order: Value
    rank_order: Value
    cp_comm_type: Union[Literal["p2p", "all_gather", "a2a", "a2a+p2p"], int, None]
    hierarchical_cp_a2a_size: Value
    schedule: Union[Literal["auto", "gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2", "zb-1p", "zb-2p", "zb-auto", "interleaved-zb", "zb-v", "dualpipe", "dualpipe-v", "v-min", "v-half"], int, None]
    pipeline_schedule: Union[Literal["auto", "gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2", "zb-1p", "zb-2p", "zb-auto", "interleaved-zb", "zb-v", "dualpipe", "dualpipe-v", "v-min", "v-half"], int, None]
    account_for_embedding_in_pipeline_split: Union[Literal["false", "true"], bool, None]
    account_for_loss_in_pipeline_split: Union[Literal["false", "true"], bool, None]
    decoder_first_pipeline_num_layers: Value
    decoder_last_pipeline_num_layers: Value
    layout: Value
    pipeline_model_parallel_layout: Value
    vocab_parallel_pipeline: Union[Literal["false", "true"], bool, None]
    disable_backward_fusion: Union[Literal["false", "true"], bool, None]
    use_interlaced_schedule: Union[Literal["false", "true"], bool, None]
    overlap_p2p_comm: Union[Literal["auto", "false", "true"], bool, None]
    scatter_gather_tensors_in_pipeline: Union[Literal["false", "true"], bool, None]
    microbatch_group_size_per_vp_stage: Value
    zero_bubble_max_pending_backward: Value
    zero_bubble_adaptive_memory_limit_percentile: Value
    enable_optimizer_post_validation: Union[Literal["false", "true"], bool, None]
    zero: Union[Literal["no_shard", "optim", "optim_grads", "optim_grads_params"], int, None]
    sharding: Union[Literal["no_shard", "optim", "optim_grads", "optim_grads_params"], int, None]
    data_parallel_sharding_strategy: Union[Literal["no_shard", "optim", "optim_grads", "optim_grads_params"], int, None]
    hsdp_replicas: Value
    num_distributed_optimizer_instances: Value
    overlap_grad_reduce: Union[Literal["auto", "false", "true"], bool, None]
    overlap_param_gather: Union[Literal["auto", "false", "true"], bool, None]
    reshard_after_forward: Union[Literal["false", "true"], bool, None]
    gather_once_per_step: Union[Literal["false", "true"], bool, None]
    reduce_once_per_step: Union[Literal["false", "true"], bool, None]
    fsdp_prefetch: Value
    zero_quantized_weights: Union[Literal["false", "true"], bool, None]
    zero_quantized_gradients: Union[Literal["false", "true"], bool, None]
    hpz: Value
    zero_hpz_partition_size: Value
    reduce_bucket_size: Value
    bucket_layers: Value
    mbs: Value
    micro_batch_size: Value
    recompute: Union[Literal["none", "selective", "full"], int, None]
    recompute_granularity: Union[Literal["none", "selective", "full"], int, None]
    recompute_method: Union[Literal["uniform", "block"], int, None]
    recompute_num_layers: Value
    recompute_num_layers_per_stage: Value
    recompute_modules: Value
    offload_layers: Value
    cpu_offloading_num_layers: Value
    fine_grained_activation_offloading: Union[Literal["false", "true"], bool, None]
    offload_modules: Value
    optimizer_offload_fraction: Value
    offload_optimizer_device: Union[Literal["none", "cpu", "nvme"], int, None]
    offload_param_device: Union[Literal["none", "cpu", "nvme"], int, None]
    offload_sub_group_size: Value
    offload_pipeline_read: Union[Literal["false", "true"], bool, None]
    offload_pipeline_write: Union[Literal["false", "true"], bool, None]
    selective_ac_option: Union[Literal["layer", "op"], int, None]
    loss_function: Union[Literal["vocab_parallel_cross_entropy", "cross_entropy", "linear_cross_entropy", "cut_cross_entropy"], int, None]
    fp32_upcast: Union[Literal["false", "true"], bool, None]
    cuda_module_loading: Union[Literal["lazy", "eager"], int, None]
    expandable_segments: Union[Literal["false", "true"], bool, None]
    max_split_size_mb: Value
    roundup_power2_divisions: Value
    optimizer: Union[Literal["adam", "sgd", "muon", "lion", "adafactor", "lamb", "onebit_adam", "onebit_lamb", "zero_one_adam"], int, None]
    muon_tp_mode: Union[Literal["duplicated", "blockwise"], int, None]
    muon_num_ns_steps: Value
    onebit_warmup: Union[Literal["false", "true"], bool, None]
    local_step_interval: Value
    paged_optimizer: Union[Literal["false", "true"], bool, None]
    galore_rank: Value
    galore_update_proj_gap: Value
    galore_target_modules: Value
    use_apollo: Union[Literal["false", "true"], bool, None]
    galore_layerwise: Union[Literal["false", "true"], bool, None]
    precision: Union[Literal["auto", "fp32", "fp16", "bf16", "fp8-delayed", "fp8-current", "fp8-rowwise", "fp8-blockwise", "mxfp8", "nvfp4"], int, None]
    main_grads_dtype: Union[Literal["fp32", "tf32", "fp16", "bf16", "fp8", "fp6", "fp4", "int8"], int, None]
    grad_reduce_dtype: Union[Literal["fp32", "tf32", "fp16", "bf16", "fp8", "fp6", "fp4", "int8", "auto"], int, None]
    fp8_param_gather: Union[Literal["false", "true"], bool, None]
    first_last_layers_bf16: Union[Literal["false", "true"], bool, None]
    num_layers_at_start_in_bf16: Value
    num_layers_at_end_in_bf16: Value
    fp8_output_proj: Union[Literal["false", "true"], bool, None]
    fp8_dot_product_attention: Union[Literal["false", "true"], bool, None]
    exp_avg_dtype: Union[Literal["fp32", "tf32", "fp16", "bf16", "fp8", "fp6", "fp4", "int8"], int, None]
    pure_low_precision: Union[Literal["false", "true"], bool, None]
    dispatcher: Union[Literal["alltoall", "allgather", "deepep", "hybridep"], int, None]
    moe_token_dispatcher_type: Union[Literal["alltoall", "allgather", "deepep", "hybridep"], int, None]
    flex_sms: Value
    moe_deepep_num_sms: Value
    moe_hybridep_num_sms: Value
    moe_flex_dispatcher_num_sms: Value
    capacity_factor: Value
    moe_expert_capacity_factor: Value
    moe_pad_expert_input_to_capacity: Union[Literal["auto", "false", "true"], bool, None]
    moe_imbalance: Value
    overlap_ep: Union[Literal["auto", "false", "true"], bool, None]
    overlap_moe_expert_parallel_comm: Union[Literal["auto", "false", "true"], bool, None]
    moe_shared_expert_overlap: Union[Literal["false", "true"], bool, None]
    delay_wgrad_compute: Union[Literal["false", "true"], bool, None]
    tp_comm_overlap: Union[Literal["auto", "false", "true"], bool, None]
    attention_backend: Union[Literal["auto", "flash", "flash2", "flash1", "triton", "unfused"], int, None]
    cuda_graph_scope: Value
    cuda_graphs: Union[Literal["false", "true"], bool, None]
    enable_cuda_graph: Union[Literal["false", "true"], bool, None]
    masked_softmax_fusion: Union[Literal["false", "true"], bool, None]
    attention_softmax_in_fp32: Union[Literal["false", "true"], bool, None]
    fused_kernels: Union[Literal["false", "true"], bool, None]
    cross_entropy_loss_fusion: Union[Literal["false", "true"], bool, None]
    use_transformer_engine_op_fuser: Union[Literal["false", "true"], bool, None]
    gradient_accumulation_fusion: Union[Literal["false", "true"], bool, None]
    lora_dim: Value
    lora_r: Value
    lora_rank: Value
    lora_base_quantization: Union[Literal["none", "int8", "nf4", "nf4-double"], int, None]
    lora_target_modules: Value
    use_dora: Union[Literal["false", "true"], bool, None]
    seq: Value
    seq_length: Value
    gbs: Value
    global_batch_size: Value
    accumulation: Value
    gradient_accumulation_steps: Value
    length_mean: Value
    length_cv: Value
    packed: Union[Literal["false", "true"], bool, None]

class PlanOptions(TypedDict, total=False):
    model: Value
    cluster: Value
    framework: Value
    name: Value
    set: Union[Mapping[str, Any], Sequence[str], str]
    space: Union[Mapping[str, Any], Sequence[str], str]
    vary: Union[Mapping[str, Any], Sequence[str], str]
    free: bool
    full: bool
    top: Value
    pareto: Union[Literal["memory"], None]
    reserve: Value
    min_fit_probability: Value
    explain: bool
    write: Value
    write_as: Union[Literal["accelerate", "axolotl", "deepspeed", "llama-factory", "torchtitan", "training-arguments"], None]
    html: Value
    measured: Value
    cost: Union[Literal["analytical", "fitted", "measured"], None]
    price: Value
    profile: Value
    class_: Union[Literal["uniform", "mixed", "degrees", "pipelines"], None]
    parallelizer: Value
    workers: Value
    timeout: Value
    planner: Union[Literal["all", "metis", "sailor", "alpa", "uniform"], None]
    one_pipeline: bool
    predict: Value
    threads: Value
    tp: Value
    tensor_model_parallel_size: Value
    pp: Value
    pipeline_model_parallel_size: Value
    vp: Value
    vpp: Value
    virtual_pipeline_model_parallel_size: Value
    cp: Value
    context_parallel_size: Value
    ep: Value
    expert_model_parallel_size: Value
    etp: Value
    expert_tensor_parallel_size: Value
    dp: Value
    data_parallel_size: Value
    sp: Union[Literal["auto", "false", "true"], bool, None]
    sequence_parallel: Union[Literal["auto", "false", "true"], bool, None]
    order: Value
    rank_order: Value
    cp_comm_type: Union[Literal["p2p", "all_gather", "a2a", "a2a+p2p"], int, None]
    hierarchical_cp_a2a_size: Value
    schedule: Union[Literal["auto", "gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2", "zb-1p", "zb-2p", "zb-auto", "interleaved-zb", "zb-v", "dualpipe", "dualpipe-v", "v-min", "v-half"], int, None]
    pipeline_schedule: Union[Literal["auto", "gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2", "zb-1p", "zb-2p", "zb-auto", "interleaved-zb", "zb-v", "dualpipe", "dualpipe-v", "v-min", "v-half"], int, None]
    account_for_embedding_in_pipeline_split: Union[Literal["false", "true"], bool, None]
    account_for_loss_in_pipeline_split: Union[Literal["false", "true"], bool, None]
    decoder_first_pipeline_num_layers: Value
    decoder_last_pipeline_num_layers: Value
    layout: Value
    pipeline_model_parallel_layout: Value
    vocab_parallel_pipeline: Union[Literal["false", "true"], bool, None]
    disable_backward_fusion: Union[Literal["false", "true"], bool, None]
    use_interlaced_schedule: Union[Literal["false", "true"], bool, None]
    overlap_p2p_comm: Union[Literal["auto", "false", "true"], bool, None]
    scatter_gather_tensors_in_pipeline: Union[Literal["false", "true"], bool, None]
    microbatch_group_size_per_vp_stage: Value
    zero_bubble_max_pending_backward: Value
    zero_bubble_adaptive_memory_limit_percentile: Value
    enable_optimizer_post_validation: Union[Literal["false", "true"], bool, None]
    zero: Union[Literal["no_shard", "optim", "optim_grads", "optim_grads_params"], int, None]
    sharding: Union[Literal["no_shard", "optim", "optim_grads", "optim_grads_params"], int, None]
    data_parallel_sharding_strategy: Union[Literal["no_shard", "optim", "optim_grads", "optim_grads_params"], int, None]
    hsdp_replicas: Value
    num_distributed_optimizer_instances: Value
    overlap_grad_reduce: Union[Literal["auto", "false", "true"], bool, None]
    overlap_param_gather: Union[Literal["auto", "false", "true"], bool, None]
    reshard_after_forward: Union[Literal["false", "true"], bool, None]
    gather_once_per_step: Union[Literal["false", "true"], bool, None]
    reduce_once_per_step: Union[Literal["false", "true"], bool, None]
    fsdp_prefetch: Value
    zero_quantized_weights: Union[Literal["false", "true"], bool, None]
    zero_quantized_gradients: Union[Literal["false", "true"], bool, None]
    hpz: Value
    zero_hpz_partition_size: Value
    reduce_bucket_size: Value
    bucket_layers: Value
    mbs: Value
    micro_batch_size: Value
    recompute: Union[Literal["none", "selective", "full"], int, None]
    recompute_granularity: Union[Literal["none", "selective", "full"], int, None]
    recompute_method: Union[Literal["uniform", "block"], int, None]
    recompute_num_layers: Value
    recompute_num_layers_per_stage: Value
    recompute_modules: Value
    offload_layers: Value
    cpu_offloading_num_layers: Value
    fine_grained_activation_offloading: Union[Literal["false", "true"], bool, None]
    offload_modules: Value
    optimizer_offload_fraction: Value
    offload_optimizer_device: Union[Literal["none", "cpu", "nvme"], int, None]
    offload_param_device: Union[Literal["none", "cpu", "nvme"], int, None]
    offload_sub_group_size: Value
    offload_pipeline_read: Union[Literal["false", "true"], bool, None]
    offload_pipeline_write: Union[Literal["false", "true"], bool, None]
    selective_ac_option: Union[Literal["layer", "op"], int, None]
    loss_function: Union[Literal["vocab_parallel_cross_entropy", "cross_entropy", "linear_cross_entropy", "cut_cross_entropy"], int, None]
    fp32_upcast: Union[Literal["false", "true"], bool, None]
    cuda_module_loading: Union[Literal["lazy", "eager"], int, None]
    expandable_segments: Union[Literal["false", "true"], bool, None]
    max_split_size_mb: Value
    roundup_power2_divisions: Value
    optimizer: Union[Literal["adam", "sgd", "muon", "lion", "adafactor", "lamb", "onebit_adam", "onebit_lamb", "zero_one_adam"], int, None]
    muon_tp_mode: Union[Literal["duplicated", "blockwise"], int, None]
    muon_num_ns_steps: Value
    onebit_warmup: Union[Literal["false", "true"], bool, None]
    local_step_interval: Value
    paged_optimizer: Union[Literal["false", "true"], bool, None]
    galore_rank: Value
    galore_update_proj_gap: Value
    galore_target_modules: Value
    use_apollo: Union[Literal["false", "true"], bool, None]
    galore_layerwise: Union[Literal["false", "true"], bool, None]
    precision: Union[Literal["auto", "fp32", "fp16", "bf16", "fp8-delayed", "fp8-current", "fp8-rowwise", "fp8-blockwise", "mxfp8", "nvfp4"], int, None]
    main_grads_dtype: Union[Literal["fp32", "tf32", "fp16", "bf16", "fp8", "fp6", "fp4", "int8"], int, None]
    grad_reduce_dtype: Union[Literal["fp32", "tf32", "fp16", "bf16", "fp8", "fp6", "fp4", "int8", "auto"], int, None]
    fp8_param_gather: Union[Literal["false", "true"], bool, None]
    first_last_layers_bf16: Union[Literal["false", "true"], bool, None]
    num_layers_at_start_in_bf16: Value
    num_layers_at_end_in_bf16: Value
    fp8_output_proj: Union[Literal["false", "true"], bool, None]
    fp8_dot_product_attention: Union[Literal["false", "true"], bool, None]
    exp_avg_dtype: Union[Literal["fp32", "tf32", "fp16", "bf16", "fp8", "fp6", "fp4", "int8"], int, None]
    pure_low_precision: Union[Literal["false", "true"], bool, None]
    dispatcher: Union[Literal["alltoall", "allgather", "deepep", "hybridep"], int, None]
    moe_token_dispatcher_type: Union[Literal["alltoall", "allgather", "deepep", "hybridep"], int, None]
    flex_sms: Value
    moe_deepep_num_sms: Value
    moe_hybridep_num_sms: Value
    moe_flex_dispatcher_num_sms: Value
    capacity_factor: Value
    moe_expert_capacity_factor: Value
    moe_pad_expert_input_to_capacity: Union[Literal["auto", "false", "true"], bool, None]
    moe_imbalance: Value
    overlap_ep: Union[Literal["auto", "false", "true"], bool, None]
    overlap_moe_expert_parallel_comm: Union[Literal["auto", "false", "true"], bool, None]
    moe_shared_expert_overlap: Union[Literal["false", "true"], bool, None]
    delay_wgrad_compute: Union[Literal["false", "true"], bool, None]
    tp_comm_overlap: Union[Literal["auto", "false", "true"], bool, None]
    attention_backend: Union[Literal["auto", "flash", "flash2", "flash1", "triton", "unfused"], int, None]
    cuda_graph_scope: Value
    cuda_graphs: Union[Literal["false", "true"], bool, None]
    enable_cuda_graph: Union[Literal["false", "true"], bool, None]
    masked_softmax_fusion: Union[Literal["false", "true"], bool, None]
    attention_softmax_in_fp32: Union[Literal["false", "true"], bool, None]
    fused_kernels: Union[Literal["false", "true"], bool, None]
    cross_entropy_loss_fusion: Union[Literal["false", "true"], bool, None]
    use_transformer_engine_op_fuser: Union[Literal["false", "true"], bool, None]
    gradient_accumulation_fusion: Union[Literal["false", "true"], bool, None]
    lora_dim: Value
    lora_r: Value
    lora_rank: Value
    lora_base_quantization: Union[Literal["none", "int8", "nf4", "nf4-double"], int, None]
    lora_target_modules: Value
    use_dora: Union[Literal["false", "true"], bool, None]
    seq: Value
    seq_length: Value
    gbs: Value
    global_batch_size: Value
    accumulation: Value
    gradient_accumulation_steps: Value
    length_mean: Value
    length_cv: Value
    packed: Union[Literal["false", "true"], bool, None]

class ServeOptions(TypedDict, total=False):
    model: Value
    cluster: Value
    set: Union[Mapping[str, Any], Sequence[str], str]
    price: Value
    tp: Value
    pp: Value
    dp: Value
    ep: Value
    expert_exchange: Union[Literal["auto", "allgather", "deepep", "deepep-normal", "deepep-low-latency", "one-sided"], None]
    moe_backend: Union[Literal["auto", "triton", "deep_gemm", "cutlass", "flashinfer_cutlass", "flashinfer_trtllm", "flashinfer_trtllm_afp8", "marlin"], None]
    expert_skew: Value
    afd_ffn_ranks: Value
    afd_micro_batches: Value
    afd_exchange: Union[Literal["p2p", "m2n"], None]
    afd_bandwidth: Value
    replicas: Value
    router: Union[Literal["round-robin", "random", "least-requests", "least-tokens", "power-of-two", "prefix", "session"], None]
    router_max_requests: Value
    router_queue: Value
    prefill_replicas: Value
    prefill_tp: Value
    prefill_pp: Value
    prefill_dp: Value
    prefill_ep: Value
    prefill_cluster: Value
    prefill_max_num_seqs: Value
    prefill_max_num_batched_tokens: Value
    prefill_router: Union[Literal["round-robin", "random", "least-requests", "least-tokens", "power-of-two", "prefix", "session"], None]
    kv_transfer: Union[Literal["auto", "pull", "push", "chunk", "layer"], None]
    kv_transfer_bandwidth: Value
    max_local_prefill_length: Value
    failures: Value
    spare_nodes: Value
    placement: Union[Literal["pack", "spread"], None]
    autoscale: Value
    prefill_autoscale: Value
    start_time: Value
    weights_from: Value
    what_if: Value
    vary: Union[Mapping[str, Any], Sequence[str], str]
    weights: Union[Literal["bf16", "fp8", "fp8-block", "int8", "int4", "mxfp4", "nvfp4"], None]
    expert_weights: Union[Literal["bf16", "fp8", "fp8-block", "int8", "int4", "mxfp4", "nvfp4"], None]
    kv_cache_dtype: Union[Literal["auto", "bf16", "fp8"], None]
    engine: Union[Literal["vllm", "sglang", "trtllm"], None]
    engine_version: Value
    front_end: Union[Literal["own", "dynamo", "none"], None]
    warm: bool
    max_num_seqs: Value
    max_num_batched_tokens: Value
    max_model_len: Value
    block_size: Value
    gpu_memory_utilization: Value
    num_gpu_blocks_override: Value
    long_prefill_token_threshold: Value
    no_enable_prefix_caching: bool
    no_enable_chunked_prefill: bool
    enforce_eager: bool
    scheduling_policy: Union[Literal["fcfs", "priority"], None]
    capacity_scheduler_policy: Union[Literal["guaranteed-no-evict", "max-utilization"], None]
    batch_wait_timeout_iters: Value
    batch_wait_max_tokens_ratio: Value
    async_scheduling: Union[Literal["auto", "on", "off"], None]
    temperature: Value
    top_p: Value
    top_k: Value
    kv_offloading_size: Value
    kv_offloading_policy: Union[Literal["lru", "arc"], None]
    kv_offloading_blocks_per_chunk: Value
    kv_offloading_bandwidth: Value
    kv_offload_prompt_only: bool
    kv_ssd_size: Value
    kv_ssd_bandwidth: Value
    kv_remote_size: Value
    kv_remote_bandwidth: Value
    kv_remote_latency: Value
    enable_lora: bool
    max_loras: Value
    max_lora_rank: Value
    max_cpu_loras: Value
    lora_target_modules: Value
    lora_read_bandwidth: Value
    encoder_model: Value
    encoder_merge: Value
    encoder_patch: Value
    encode_replicas: Value
    speculative_method: Union[Literal["none", "ngram", "draft-model", "eagle", "eagle3", "mtp"], None]
    speculative_model: Value
    num_speculative_tokens: Value
    speculative_tp: Value
    acceptance: Value
    isl: Value
    osl: Value
    length_spread: Value
    shared_prefix: Value
    distinct_prompts: Value
    adapters: Value
    adapter_zipf: Value
    adapter_none: Value
    images_per_request: Value
    image_tokens: Value
    image_size: Value
    rate: Value
    burstiness: Value
    concurrency: Value
    num_requests: Value
    duration: Value
    requests: Value
    requests_from: Value
    speed: Value
    seed: Value
    batch: Value
    slo: Value
    find_rate: bool
    draws: Value
    power: bool
    html: Value
    trace: Value
    per_request: Value

class ServePlanOptions(TypedDict, total=False):
    model: Value
    cluster: Value
    set: Union[Mapping[str, Any], Sequence[str], str]
    price: Value
    tp: Value
    pp: Value
    dp: Value
    ep: Value
    expert_exchange: Union[Literal["auto", "allgather", "deepep", "deepep-normal", "deepep-low-latency", "one-sided"], None]
    moe_backend: Union[Literal["auto", "triton", "deep_gemm", "cutlass", "flashinfer_cutlass", "flashinfer_trtllm", "flashinfer_trtllm_afp8", "marlin"], None]
    expert_skew: Value
    afd_ffn_ranks: Value
    afd_micro_batches: Value
    afd_exchange: Union[Literal["p2p", "m2n"], None]
    afd_bandwidth: Value
    router: Union[Literal["round-robin", "random", "least-requests", "least-tokens", "power-of-two", "prefix", "session"], None]
    failures: Value
    spare_nodes: Value
    start_time: Value
    weights_from: Value
    weights: Union[Literal["bf16", "fp8", "fp8-block", "int8", "int4", "mxfp4", "nvfp4"], None]
    expert_weights: Union[Literal["bf16", "fp8", "fp8-block", "int8", "int4", "mxfp4", "nvfp4"], None]
    kv_cache_dtype: Union[Literal["auto", "bf16", "fp8"], None]
    engine: Union[Literal["vllm", "sglang", "trtllm"], None]
    engine_version: Value
    front_end: Union[Literal["own", "dynamo", "none"], None]
    warm: bool
    max_num_seqs: Value
    max_num_batched_tokens: Value
    max_model_len: Value
    block_size: Value
    gpu_memory_utilization: Value
    num_gpu_blocks_override: Value
    long_prefill_token_threshold: Value
    no_enable_prefix_caching: bool
    no_enable_chunked_prefill: bool
    enforce_eager: bool
    scheduling_policy: Union[Literal["fcfs", "priority"], None]
    capacity_scheduler_policy: Union[Literal["guaranteed-no-evict", "max-utilization"], None]
    batch_wait_timeout_iters: Value
    batch_wait_max_tokens_ratio: Value
    async_scheduling: Union[Literal["auto", "on", "off"], None]
    temperature: Value
    top_p: Value
    top_k: Value
    enable_lora: bool
    max_loras: Value
    max_lora_rank: Value
    max_cpu_loras: Value
    lora_target_modules: Value
    lora_read_bandwidth: Value
    speculative_method: Union[Literal["none", "ngram", "draft-model", "eagle", "eagle3", "mtp"], None]
    speculative_model: Value
    num_speculative_tokens: Value
    speculative_tp: Value
    acceptance: Value
    isl: Value
    osl: Value
    length_spread: Value
    shared_prefix: Value
    distinct_prompts: Value
    adapters: Value
    adapter_zipf: Value
    adapter_none: Value
    rate: Value
    burstiness: Value
    num_requests: Value
    duration: Value
    requests: Value
    requests_from: Value
    speed: Value
    seed: Value
    slo: Value
    find_rate: bool
    draws: Value
    html: Value
    space: Value
    write: Value
    write_command: Value
    write_manifest: Value
    write_helm_values: Value
    no_front: bool
    no_pools: bool
    availability: Value
    threads: Value

class RiskOptions(TypedDict, total=False):
    holdout: Union[Literal["half", "third", "quarter"], None]
    column: Value
    write: Value
    meta: Value
    variation: Value
    slow: Value
    draws: Value
    seed: Value
    no_sources: bool
    model: Value
    cluster: Value
    framework: Value
    name: Value
    set: Union[Mapping[str, Any], Sequence[str], str]
    measured: Value
    cost: Union[Literal["analytical", "fitted", "measured"], None]
    price: Value
    strict: bool
    html: Value
    tokens: Value
    failures: Value
    checkpoint: Value
    checkpoint_save: Value
    checkpoint_persist: Value
    checkpoint_restore: Value
    storage: Value
    checkpoint_levels: Value
    spares: Value
    spares_shared_by: Value
    recovery: Union[Literal["restart", "elastic", "replica"], None]
    reconfigure: Value
    min_replicas: Value
    evaluate: Value
    failure_clock: Union[Literal["restarted", "paused", "queued"], None]
    step_time: Value
    step_sigma: Value
    step_error: bool
    replicas: Value
    promise: Value
    start: Value
    what_if: Union[Literal["checkpoint", "spares", "dp-replicas", "placement", "kernels", "dimensions", "stages"], None]
    threads: Value
    tp: Value
    tensor_model_parallel_size: Value
    pp: Value
    pipeline_model_parallel_size: Value
    vp: Value
    vpp: Value
    virtual_pipeline_model_parallel_size: Value
    cp: Value
    context_parallel_size: Value
    ep: Value
    expert_model_parallel_size: Value
    etp: Value
    expert_tensor_parallel_size: Value
    dp: Value
    data_parallel_size: Value
    sp: Union[Literal["auto", "false", "true"], bool, None]
    sequence_parallel: Union[Literal["auto", "false", "true"], bool, None]
    order: Value
    rank_order: Value
    cp_comm_type: Union[Literal["p2p", "all_gather", "a2a", "a2a+p2p"], int, None]
    hierarchical_cp_a2a_size: Value
    schedule: Union[Literal["auto", "gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2", "zb-1p", "zb-2p", "zb-auto", "interleaved-zb", "zb-v", "dualpipe", "dualpipe-v", "v-min", "v-half"], int, None]
    pipeline_schedule: Union[Literal["auto", "gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2", "zb-1p", "zb-2p", "zb-auto", "interleaved-zb", "zb-v", "dualpipe", "dualpipe-v", "v-min", "v-half"], int, None]
    account_for_embedding_in_pipeline_split: Union[Literal["false", "true"], bool, None]
    account_for_loss_in_pipeline_split: Union[Literal["false", "true"], bool, None]
    decoder_first_pipeline_num_layers: Value
    decoder_last_pipeline_num_layers: Value
    layout: Value
    pipeline_model_parallel_layout: Value
    vocab_parallel_pipeline: Union[Literal["false", "true"], bool, None]
    disable_backward_fusion: Union[Literal["false", "true"], bool, None]
    use_interlaced_schedule: Union[Literal["false", "true"], bool, None]
    overlap_p2p_comm: Union[Literal["auto", "false", "true"], bool, None]
    scatter_gather_tensors_in_pipeline: Union[Literal["false", "true"], bool, None]
    microbatch_group_size_per_vp_stage: Value
    zero_bubble_max_pending_backward: Value
    zero_bubble_adaptive_memory_limit_percentile: Value
    enable_optimizer_post_validation: Union[Literal["false", "true"], bool, None]
    zero: Union[Literal["no_shard", "optim", "optim_grads", "optim_grads_params"], int, None]
    sharding: Union[Literal["no_shard", "optim", "optim_grads", "optim_grads_params"], int, None]
    data_parallel_sharding_strategy: Union[Literal["no_shard", "optim", "optim_grads", "optim_grads_params"], int, None]
    hsdp_replicas: Value
    num_distributed_optimizer_instances: Value
    overlap_grad_reduce: Union[Literal["auto", "false", "true"], bool, None]
    overlap_param_gather: Union[Literal["auto", "false", "true"], bool, None]
    reshard_after_forward: Union[Literal["false", "true"], bool, None]
    gather_once_per_step: Union[Literal["false", "true"], bool, None]
    reduce_once_per_step: Union[Literal["false", "true"], bool, None]
    fsdp_prefetch: Value
    zero_quantized_weights: Union[Literal["false", "true"], bool, None]
    zero_quantized_gradients: Union[Literal["false", "true"], bool, None]
    hpz: Value
    zero_hpz_partition_size: Value
    reduce_bucket_size: Value
    bucket_layers: Value
    mbs: Value
    micro_batch_size: Value
    recompute: Union[Literal["none", "selective", "full"], int, None]
    recompute_granularity: Union[Literal["none", "selective", "full"], int, None]
    recompute_method: Union[Literal["uniform", "block"], int, None]
    recompute_num_layers: Value
    recompute_num_layers_per_stage: Value
    recompute_modules: Value
    offload_layers: Value
    cpu_offloading_num_layers: Value
    fine_grained_activation_offloading: Union[Literal["false", "true"], bool, None]
    offload_modules: Value
    optimizer_offload_fraction: Value
    offload_optimizer_device: Union[Literal["none", "cpu", "nvme"], int, None]
    offload_param_device: Union[Literal["none", "cpu", "nvme"], int, None]
    offload_sub_group_size: Value
    offload_pipeline_read: Union[Literal["false", "true"], bool, None]
    offload_pipeline_write: Union[Literal["false", "true"], bool, None]
    selective_ac_option: Union[Literal["layer", "op"], int, None]
    loss_function: Union[Literal["vocab_parallel_cross_entropy", "cross_entropy", "linear_cross_entropy", "cut_cross_entropy"], int, None]
    fp32_upcast: Union[Literal["false", "true"], bool, None]
    cuda_module_loading: Union[Literal["lazy", "eager"], int, None]
    expandable_segments: Union[Literal["false", "true"], bool, None]
    max_split_size_mb: Value
    roundup_power2_divisions: Value
    optimizer: Union[Literal["adam", "sgd", "muon", "lion", "adafactor", "lamb", "onebit_adam", "onebit_lamb", "zero_one_adam"], int, None]
    muon_tp_mode: Union[Literal["duplicated", "blockwise"], int, None]
    muon_num_ns_steps: Value
    onebit_warmup: Union[Literal["false", "true"], bool, None]
    local_step_interval: Value
    paged_optimizer: Union[Literal["false", "true"], bool, None]
    galore_rank: Value
    galore_update_proj_gap: Value
    galore_target_modules: Value
    use_apollo: Union[Literal["false", "true"], bool, None]
    galore_layerwise: Union[Literal["false", "true"], bool, None]
    precision: Union[Literal["auto", "fp32", "fp16", "bf16", "fp8-delayed", "fp8-current", "fp8-rowwise", "fp8-blockwise", "mxfp8", "nvfp4"], int, None]
    main_grads_dtype: Union[Literal["fp32", "tf32", "fp16", "bf16", "fp8", "fp6", "fp4", "int8"], int, None]
    grad_reduce_dtype: Union[Literal["fp32", "tf32", "fp16", "bf16", "fp8", "fp6", "fp4", "int8", "auto"], int, None]
    fp8_param_gather: Union[Literal["false", "true"], bool, None]
    first_last_layers_bf16: Union[Literal["false", "true"], bool, None]
    num_layers_at_start_in_bf16: Value
    num_layers_at_end_in_bf16: Value
    fp8_output_proj: Union[Literal["false", "true"], bool, None]
    fp8_dot_product_attention: Union[Literal["false", "true"], bool, None]
    exp_avg_dtype: Union[Literal["fp32", "tf32", "fp16", "bf16", "fp8", "fp6", "fp4", "int8"], int, None]
    pure_low_precision: Union[Literal["false", "true"], bool, None]
    dispatcher: Union[Literal["alltoall", "allgather", "deepep", "hybridep"], int, None]
    moe_token_dispatcher_type: Union[Literal["alltoall", "allgather", "deepep", "hybridep"], int, None]
    flex_sms: Value
    moe_deepep_num_sms: Value
    moe_hybridep_num_sms: Value
    moe_flex_dispatcher_num_sms: Value
    capacity_factor: Value
    moe_expert_capacity_factor: Value
    moe_pad_expert_input_to_capacity: Union[Literal["auto", "false", "true"], bool, None]
    moe_imbalance: Value
    overlap_ep: Union[Literal["auto", "false", "true"], bool, None]
    overlap_moe_expert_parallel_comm: Union[Literal["auto", "false", "true"], bool, None]
    moe_shared_expert_overlap: Union[Literal["false", "true"], bool, None]
    delay_wgrad_compute: Union[Literal["false", "true"], bool, None]
    tp_comm_overlap: Union[Literal["auto", "false", "true"], bool, None]
    attention_backend: Union[Literal["auto", "flash", "flash2", "flash1", "triton", "unfused"], int, None]
    cuda_graph_scope: Value
    cuda_graphs: Union[Literal["false", "true"], bool, None]
    enable_cuda_graph: Union[Literal["false", "true"], bool, None]
    masked_softmax_fusion: Union[Literal["false", "true"], bool, None]
    attention_softmax_in_fp32: Union[Literal["false", "true"], bool, None]
    fused_kernels: Union[Literal["false", "true"], bool, None]
    cross_entropy_loss_fusion: Union[Literal["false", "true"], bool, None]
    use_transformer_engine_op_fuser: Union[Literal["false", "true"], bool, None]
    gradient_accumulation_fusion: Union[Literal["false", "true"], bool, None]
    lora_dim: Value
    lora_r: Value
    lora_rank: Value
    lora_base_quantization: Union[Literal["none", "int8", "nf4", "nf4-double"], int, None]
    lora_target_modules: Value
    use_dora: Union[Literal["false", "true"], bool, None]
    seq: Value
    seq_length: Value
    gbs: Value
    global_batch_size: Value
    accumulation: Value
    gradient_accumulation_steps: Value
    length_mean: Value
    length_cv: Value
    packed: Union[Literal["false", "true"], bool, None]
