/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys.c - the keys of `plan:` and `workload:`.
 *
 * Names are Megatron-LM's argument names (megatron/training/arguments.py,
 * megatron/core/transformer/transformer_config.py); the alias is the short form that people write in tables.
 * A key that Megatron does not have (marked "maquette") describes what another framework does.
 */
#include "plan/keys.h"

const char *const maq_auto_bool_names[] = {"auto", "false", "true", NULL};
static const char *const schedule_names[] = {
    "auto",    "gpipe",          "1f1b", "interleaved", "zb-h1",      "zb-h2", "zb-1p",  "zb-2p",
    "zb-auto", "interleaved-zb", "zb-v", "dualpipe",    "dualpipe-v", "v-min", "v-half", NULL};
static const char *const cp_comm_names[] = {"p2p", "all_gather", "a2a", "a2a+p2p", NULL};
static const char *const sharding_names[] = {"no_shard", "optim", "optim_grads", "optim_grads_params", NULL};
static const char *const recompute_names[] = {"none", "selective", "full", NULL};
static const char *const recompute_method_names[] = {"uniform", "block", NULL};
static const char *const precision_names[] = {"auto",        "fp32",        "fp16",        "bf16",
                                              "fp8-delayed", "fp8-current", "fp8-rowwise", "fp8-blockwise",
                                              "mxfp8",       "nvfp4",       NULL};
static const char *const dtype_names[] = {"fp32", "tf32", "fp16", "bf16", "fp8", "fp6", "fp4", "int8", NULL};
/* auto: MAQ_DTYPE_COUNT, until a plan is resolved */
static const char *const reduce_dtype_names[] = {"fp32", "tf32", "fp16", "bf16", "fp8",
                                                 "fp6",  "fp4",  "int8", "auto", NULL};
static const char *const dispatcher_names[] = {"alltoall", "allgather", "deepep", "hybridep", NULL};
static const char *const offload_device_names[] = {"none", "cpu", "nvme", NULL};
static const char *const selective_ac_names[] = {"layer", "op", NULL};
static const char *const loss_function_names[] = {"vocab_parallel_cross_entropy", "cross_entropy",
                                                  "linear_cross_entropy", "cut_cross_entropy", NULL};
static const char *const module_loading_names[] = {"lazy", "eager", NULL};
static const char *const update_names[] = {"adam", "sgd",         "muon",        "lion",          "adafactor",
                                           "lamb", "onebit_adam", "onebit_lamb", "zero_one_adam", NULL};
static const char *const base_names[] = {"none", "int8", "nf4", "nf4-double", NULL};
static const char *const muon_tp_names[] = {"duplicated", "blockwise", NULL};
static const char *const attention_names[] = {"auto", "flash", "flash2", "flash1", "triton", "unfused", NULL};

#define DTYPE_SLIPS "bfloat16=bf16|half=fp16|float16=fp16|float=fp32|float32=fp32|float8=fp8"

#define P(member) plan.member
#define I32(m, k, ...) MAQ_FIELD_I32(struct maq_plan_doc, P(m), k, __VA_ARGS__)
#define BOOL(m, k, ...) MAQ_FIELD_BOOL(struct maq_plan_doc, P(m), k, __VA_ARGS__)
#define DOUBLE(m, k, ...) MAQ_FIELD_DOUBLE(struct maq_plan_doc, P(m), k, __VA_ARGS__)
#define ENUM(m, k, names, ...) MAQ_FIELD_ENUM(struct maq_plan_doc, P(m), k, names, __VA_ARGS__)
#define STR(m, k, ...) MAQ_FIELD_STR(struct maq_plan_doc, P(m), k, __VA_ARGS__)
#define AUTO(m, k, ...)                                                                                                \
    ENUM(m, k, maq_auto_bool_names, .slips = "1=true|0=false|y=true|n=false", .def = "auto", __VA_ARGS__)

const char *maq_offload_device_name(enum maq_offload_device device)
{
    return (unsigned)device <= MAQ_OFFLOAD_NVME ? offload_device_names[device] : "unknown";
}

const struct maq_field maq_plan_fields[] = {
    /* degrees */
    I32(tp, "tensor_model_parallel_size", .aliases = "tp", .def = "1", .min = 1, .max = 1024,
        .doc = "ranks that share every layer (TP)"),
    I32(pp, "pipeline_model_parallel_size", .aliases = "pp", .def = "1", .min = 1, .max = 1024,
        .doc = "pipeline stages (PP)"),
    I32(vp, "virtual_pipeline_model_parallel_size", .aliases = "vp|vpp", .def = "1", .min = 1, .max = 1024,
        .doc = "model chunks per stage"),
    I32(cp, "context_parallel_size", .aliases = "cp", .def = "1", .min = 1, .max = 1024,
        .doc = "ranks that share a sequence (CP)"),
    I32(ep, "expert_model_parallel_size", .aliases = "ep", .def = "1", .min = 1, .max = 4096,
        .doc = "ranks that share the experts (EP)"),
    I32(etp, "expert_tensor_parallel_size", .aliases = "etp", .def = "0", .min = 0, .max = 1024,
        .doc = "ranks that share each expert; 0 = TP when EP is 1, else 1"),
    I32(dp, "data_parallel_size", .aliases = "dp", .def = "0", .min = 0, .max = 1048576,
        .doc = "model replicas (DP); 0 = what the cluster leaves"),
    AUTO(sequence_parallel, "sequence_parallel", .aliases = "sp",
         .doc = "norms and residuals cut along the sequence inside a TP group; auto = when TP > 1"),
    STR(rank_order, "rank_order", .aliases = "order", .def = "tp-cp-ep-dp-pp",
        .doc = "rank numbering, fastest dimension first"),
    ENUM(cp_comm, "cp_comm_type", cp_comm_names,
         .slips = "ring=p2p|allgather=all_gather|all-to-all=a2a|alltoall=a2a|ulysses=a2a|hybrid=a2a+p2p|usp=a2a+p2p",
         .def = "p2p", .doc = "how attention crosses CP ranks"),
    I32(cp_a2a, "hierarchical_cp_a2a_size", .def = "0", .min = 0, .max = 1024,
        .doc = "a2a+p2p: size of the inner all-to-all group; 0 = what fits in a domain"),
    /* pipeline */
    ENUM(schedule, "pipeline_schedule", schedule_names,
         .slips = "zero-bubble=zb-h1|zb=zb-h1|zbh1=zb-h1|zbv=zb-v|zbh2=zb-h2|zb1p=zb-1p|zb2p=zb-2p|ZBVZeroBubble=zb-v|"
                  "InterleavedZeroBubble="
                  "interleaved-zb|interleaved1f1b=interleaved|"
                  "interleaved-1f1b=interleaved|fill-drain=gpipe|dual-pipe=dualpipe|dualpipev=dualpipe-v",
         .aliases = "schedule", .def = "auto", .doc = "order of the pipeline; auto = 1f1b or interleaved"),
    BOOL(account_for_embedding, "account_for_embedding_in_pipeline_split", .def = "false",
         .doc = "the embedding counts as a layer in the even split"),
    BOOL(account_for_loss, "account_for_loss_in_pipeline_split", .def = "false",
         .doc = "the output block counts as a layer in the even split"),
    I32(first_stage_layers, "decoder_first_pipeline_num_layers", .def = "0", .min = 0, .max = 65535,
        .doc = "layers of the first stage; 0 = even"),
    I32(last_stage_layers, "decoder_last_pipeline_num_layers", .def = "0", .min = 0, .max = 65535,
        .doc = "layers of the last stage; 0 = even"),
    STR(layout, "pipeline_model_parallel_layout", .aliases = "layout", .def = "",
        .doc = "Megatron's layout (\"Et*3|(tt|)*29m|L\"), layers per virtual stage (\"4,5,5,4\"), or balanced"),
    BOOL(vocab_parallel_pipeline, "vocab_parallel_pipeline", .def = "false",
         .doc = "embedding and output spread over all stages (maquette)"),
    BOOL(disable_backward_fusion, "disable_backward_fusion", .def = "false",
         .doc = "vocab_parallel_pipeline: the two gradients of the output layer are passes of their own"),
    BOOL(use_interlaced_schedule, "use_interlaced_schedule", .def = "false",
         .doc = "vocab_parallel_pipeline: the interlaced pipeline, which holds half as many microbatches again"),
    AUTO(overlap_p2p, "overlap_p2p_comm", .doc = "send/recv beside compute; auto = with virtual stages"),
    BOOL(scatter_gather_p2p, "scatter_gather_tensors_in_pipeline", .def = "true",
         .doc = "each TP rank sends its share and the receivers gather it, where they all hold the same"),
    I32(microbatch_group, "microbatch_group_size_per_vp_stage", .def = "0", .min = 0, .max = 65535,
        .doc = "microbatches per interleaving group; 0 = PP"),
    I32(zb_limit, "zero_bubble_max_pending_backward", .def = "0", .min = 0, .max = 65535,
        .doc = "zb-auto: most microbatches that a stage holds; 0 = what zero_bubble_adaptive_memory_limit_percentile "
               "leaves"),
    I32(zb_memory_percentile, "zero_bubble_adaptive_memory_limit_percentile", .def = "85", .min = 1, .max = 100,
        .doc = "zb-auto without a number: percent of the device that may be allocated"),
    BOOL(post_validation, "enable_optimizer_post_validation", .def = "false",
         .doc =
             "zero bubble: a stage updates when those before it allow it, and begins the next step; step times are of "
             "one that follows its like"),
    /* data parallelism */
    ENUM(sharding, "data_parallel_sharding_strategy", sharding_names,
         .slips = "fsdp=optim_grads_params|fsdp2=optim_grads_params|full_shard=optim_grads_params|hybrid_shard=optim_"
                  "grads_params|zero3=optim_grads_params|zero-3=optim_grads_params|stage3=optim_grads_params|shard_"
                  "grad_op=optim_grads|zero2=optim_grads|zero-2=optim_grads|zero1=optim|zero-1=optim|true=optim|ddp=no_"
                  "shard|none=no_shard|false=no_shard|z1=optim|z2=optim_grads|z3=optim_grads_params|three=optim_grads_"
                  "params|two=optim_grads|one=optim|zero0=no_shard|zero-0=no_shard",
         .aliases = "zero|sharding", .def = "optim", .numbered = true,
         .doc =
             "what DP ranks share, or ZeRO's number: nothing (0), optimizer (1), gradients (2), parameters (3, FSDP)"),
    I32(num_optimizer_instances, "num_distributed_optimizer_instances", .aliases = "hsdp_replicas", .def = "1",
        .min = 1, .max = 65536, .doc = "copies of the sharded state across DP (HSDP)"),
    AUTO(overlap_grad_reduce, "overlap_grad_reduce",
         .doc = "gradient reduction under the backward pass; auto = when sharded (DeepSpeed: ZeRO-3 alone), and in "
                "DistributedDataParallel; ZeRO-3 always does"),
    AUTO(overlap_param_gather, "overlap_param_gather",
         .doc = "parameter all-gather under the forward pass; auto = when sharded; ZeRO-3 always does"),
    BOOL(reshard_after_forward, "reshard_after_forward", .def = "true",
         .doc = "FSDP: gathered parameters are dropped after the forward pass (FULL_SHARD)"),
    BOOL(gather_once, "gather_once_per_step", .def = "false",
         .doc = "FSDP: parameters stay gathered over all microbatches of a step, and gradients whole (maquette)"),
    BOOL(reduce_once, "reduce_once_per_step", .def = "false",
         .doc = "FSDP: gradients add up whole over the microbatches, reduced behind the last: no_sync() (maquette)"),
    I32(fsdp_prefetch, "fsdp_prefetch", .def = "1", .min = 0, .max = 64,
        .doc = "FSDP: layers gathered ahead (maquette)"),
    BOOL(quantized_weights, "zero_quantized_weights", .def = "false",
         .doc = "ZeRO++: ZeRO-3 gathers parameters in 8 bits (qwZ, DeepSpeed)"),
    BOOL(quantized_gradients, "zero_quantized_gradients", .def = "false",
         .doc = "ZeRO++: ZeRO-3 over several nodes reduces gradients in 4 bits (qgZ, DeepSpeed)"),
    I32(hpz, "zero_hpz_partition_size", .aliases = "hpz", .def = "1", .min = 1, .max = 65536,
        .doc = "ZeRO++: ranks that share a second copy of the parameters, gathered in the backward pass (hpZ)"),
    DOUBLE(reduce_bucket_size, "reduce_bucket_size", .def = "0", .min = 0, .max = 1e12,
           .doc = "DeepSpeed: elements of the flat buffer that gradients are reduced in; 0 = none"),
    I32(bucket_layers, "bucket_layers", .def = "0", .min = 0, .max = 65535,
        .doc = "layers per gradient bucket; 0 = 40 M parameters, as ddp_bucket_size (maquette)"),
    /* batch */
    I32(mbs, "micro_batch_size", .aliases = "mbs", .def = "1", .min = 1, .max = 65536,
        .doc = "sequences per microbatch"),
    /* memory */
    ENUM(recompute, "recompute_granularity", recompute_names,
         .slips = "true=full|yes=full|on=full|all=full|block=full|uniform=full|false=none|no=none|off=none|core_attn="
                  "selective|op=selective|layer=selective",
         .aliases = "recompute", .def = "none", .doc = "activation recomputation"),
    ENUM(recompute_method, "recompute_method", recompute_method_names,
         .slips = "layer=uniform|full=uniform|stage=block", .def = "uniform",
         .doc = "full: every recompute_num_layers, or the first of each virtual stage"),
    I32(recompute_num_layers, "recompute_num_layers", .def = "0", .min = 0, .max = 65535,
        .doc = "uniform: layers per checkpoint (0 = 1); block: recomputed layers per virtual stage (0 = all)"),
    STR(recompute_stages, "recompute_num_layers_per_stage", .def = "",
        .doc = "block: recomputed layers per virtual stage, for each pipeline stage (\"4,2,0,0\"; maquette)"),
    {.type = MAQ_TYPE_NODE,
     .key = "recompute_modules",
     .offset = offsetof(struct maq_plan_doc, list[MAQ_PLAN_RECOMPUTE_MODULES]),
     .doc =
         "selective: list of core_attn, layernorm, mla_up_proj, mlp, moe, moe_act, shared_experts; default core_attn"},
    I32(offload_layers, "cpu_offloading_num_layers", .aliases = "offload_layers", .def = "0", .min = 0, .max = 65535,
        .doc = "layers per stage whose activations wait in host memory"),
    BOOL(offload_inputs, "fine_grained_activation_offloading", .def = "false",
         .doc = "inputs of offload_modules wait in host memory, of every layer"),
    {.type = MAQ_TYPE_NODE,
     .key = "offload_modules",
     .offset = offsetof(struct maq_plan_doc, list[MAQ_PLAN_OFFLOAD_MODULES]),
     .doc = "list of attn_norm, qkv_linear, core_attn, attn_proj, mlp_norm, expert_fc1, moe_act, fused_group_mlp"},
    DOUBLE(optimizer_offload, "optimizer_offload_fraction", .def = "0", .min = 0, .max = 1,
           .doc = "share of the optimizer that lives and runs on the host"),
    ENUM(offload_optimizer, "offload_optimizer_device", offload_device_names, .slips = "host=cpu|ssd=nvme|disk=nvme",
         .def = "none",
         .doc = "where that share is: none says cpu; nvme reads and writes it in every step (DeepSpeed)"),
    ENUM(offload_param, "offload_param_device", offload_device_names, .slips = "host=cpu|ssd=nvme|disk=nvme",
         .def = "none",
         .doc = "ZeRO-3: where a rank's shard of the parameters is until it is gathered (DeepSpeed; cpu: FSDP's too)"),
    DOUBLE(offload_tile, "offload_sub_group_size", .def = "1e9", .min = 1, .max = 1e15,
           .doc =
               "elements that an optimizer on NVMe reads, updates and writes at a time (DeepSpeed's sub_group_size)"),
    BOOL(offload_reads_ahead, "offload_pipeline_read", .def = "false",
         .doc = "offload_optimizer_device nvme: the next of these is read while one is updated"),
    BOOL(offload_writes_behind, "offload_pipeline_write", .def = "false",
         .doc = "offload_optimizer_device nvme: the one before is written while one is updated"),
    ENUM(selective_ac, "selective_ac_option", selective_ac_names, .slips = "ops=op|operator=op|per-op=op",
         .def = "layer",
         .doc = "selective: layer recomputes recompute_modules; op, torchtitan's, keeps attention, reduce-scatters and "
                "every "
                "second matrix product, and recomputes the rest"),
    ENUM(loss_function, "loss_function", loss_function_names,
         .slips = "pytorch=cross_entropy|torch=cross_entropy|liger=linear_cross_entropy|cce=cut_cross_entropy|megatron="
                  "vocab_parallel_cross_entropy",
         .def = "vocab_parallel_cross_entropy",
         .doc = "cross_entropy is PyTorch's, which makes a new tensor of logits at every turn; linear_ (Liger) and "
                "cut_cross_entropy "
                "never have all logits"),
    BOOL(fp32_upcast, "fp32_upcast", .def = "true", .doc = "cross_entropy: logits in 4 bytes (NeMo AutoModel)"),
    ENUM(cuda_module_loading, "cuda_module_loading", module_loading_names, .def = "lazy",
         .doc = "CUDA_MODULE_LOADING: eager, the only one before CUDA 11.7, keeps every kernel in device memory"),
    BOOL(expandable_segments, "expandable_segments", .def = "false",
         .doc = "PYTORCH_CUDA_ALLOC_CONF: a segment for each stream grows, and has no holes between segments"),
    I32(max_split_size_mb, "max_split_size_mb", .def = "0", .min = 0, .max = 1 << 20,
        .doc = "PYTORCH_CUDA_ALLOC_CONF: larger free blocks are not split; 0 = all are"),
    I32(roundup_power2_divisions, "roundup_power2_divisions", .def = "0", .min = 0, .max = 64,
        .doc = "PYTORCH_CUDA_ALLOC_CONF: steps between powers of two that sizes are rounded up to; 0 = none"),
    /* the update */
    ENUM(update, "optimizer", update_names,
         .slips = "adamw=adam|adamw_8bit=adam|paged_adamw_8bit=adam|fused_adam=adam|fusedadam=adam|momentum=sgd|dist_"
                  "muon=muon|onebitadam=onebit_adam|1bit_adam=onebit_adam|onebitlamb=onebit_lamb|1bit_lamb=onebit_lamb|"
                  "zerooneadam=zero_one_adam|01_adam=zero_one_adam|fused_lamb=lamb",
         .def = "adam",
         .doc = "sgd keeps a momentum; muon orthogonalizes matrices and leaves the rest to Adam; lion keeps one "
                "moment, adafactor sums of rows and columns; onebit_adam, onebit_lamb and zero_one_adam exchange signs "
                "of their momentum (DeepSpeed)"),
    ENUM(muon_tp_mode, "muon_tp_mode", muon_tp_names, .def = "duplicated",
         .doc = "muon: every TP rank does whole matrices, or its part of them"),
    I32(muon_steps, "muon_num_ns_steps", .def = "5", .min = 1, .max = 64, .doc = "muon: iterations of a matrix"),
    BOOL(onebit_warmup, "onebit_warmup", .def = "false",
         .doc = "1-bit optimizers: a step before freeze_step (0/1 Adam: one that updates the variance), with whole "
                "gradients reduced"),
    I32(local_steps, "local_step_interval", .def = "1", .min = 1, .max = 65536,
        .doc = "zero_one_adam: steps from one exchange to the next; it grows to local_step_clipper (DeepSpeed: 16)"),
    BOOL(paged_optimizer, "paged_optimizer", .def = "false",
         .doc = "moments in managed memory: they go to the host where the device's is short (bitsandbytes)"),
    I32(galore_rank, "galore_rank", .def = "0", .min = 0, .max = 65536,
        .doc = "GaLore: moments are those of gradients projected to this rank; 0 = no projection"),
    I32(galore_gap, "galore_update_proj_gap", .def = "200", .min = 1, .max = 1 << 30,
        .doc = "GaLore: steps from one decomposition of a gradient to the next"),
    STR(galore_targets, "galore_target_modules", .def = "",
        .doc =
            "GaLore: comma list of projected linears, in the words of lora_target_modules; none = all of the layers"),
    BOOL(use_apollo, "use_apollo", .def = "false",
         .doc = "APOLLO in place of GaLore: random projections, whose moments scale the channels of the gradient"),
    BOOL(galore_layerwise, "galore_layerwise", .def = "false",
         .doc = "GaLore: a parameter is updated as soon as its gradient is there, which is freed then; on one device"),
    /* precision */
    ENUM(precision, "precision", precision_names,
         .slips =
             "bfloat16=bf16|bf16-mixed=bf16|half=fp16|float16=fp16|f16=fp16|fp16-mixed=fp16|16=fp16|float=fp32|float32="
             "fp32|f32=fp32|32=fp32|tf32=fp32|fp8=fp8-current|8=fp8-current|float8=fp8-current|tensorwise=fp8-current|"
             "rowwise=fp8-rowwise|blockwise=fp8-blockwise|delayed=fp8-delayed|hybrid=fp8-delayed|fp4=nvfp4|mxfp4=nvfp4",
         .def = "auto", .doc = "recipe; auto = bf16 where the device has it, else fp16"),
    ENUM(grad_dtype, "main_grads_dtype", dtype_names, .slips = DTYPE_SLIPS, .def = "fp32",
         .doc = "type gradients are kept in"),
    ENUM(grad_reduce_dtype, "grad_reduce_dtype", reduce_dtype_names, .slips = DTYPE_SLIPS, .def = "fp32",
         .doc =
             "type gradients travel in (bf16 = grad_reduce_in_bf16); auto = FSDP: the model's, else main_grads_dtype"),
    BOOL(fp8_param_gather, "fp8_param_gather", .def = "false", .doc = "parameters gathered in 8 bits"),
    BOOL(wide_ends, "first_last_layers_bf16", .def = "false",
         .doc = "8- and 4-bit recipes leave layers at both ends of the model in 16 bits"),
    I32(wide_at_start, "num_layers_at_start_in_bf16", .def = "1", .min = 0, .max = 65535,
        .doc = "first_last_layers_bf16: how many at the start"),
    I32(wide_at_end, "num_layers_at_end_in_bf16", .def = "1", .min = 0, .max = 65535,
        .doc = "first_last_layers_bf16: how many at the end"),
    BOOL(fp8_output, "fp8_output_proj", .def = "false", .doc = "mxfp8: the output layer as well"),
    BOOL(fp8_attention, "fp8_dot_product_attention", .def = "false",
         .doc = "scores and values of attention in 8 bits (cuDNN)"),
    ENUM(optimizer_dtype, "exp_avg_dtype", dtype_names, .slips = DTYPE_SLIPS, .def = "fp32",
         .doc = "type of the optimizer's moments; int8 and fp4 have a scale for each block (8- and 4-bit AdamW)"),
    BOOL(pure_low_precision, "pure_low_precision", .def = "false",
         .doc = "weights, gradients and moments in 16 bits, no FP32 copy (maquette)"),
    /* mixture of experts */
    ENUM(dispatcher, "moe_token_dispatcher_type", dispatcher_names,
         .slips = "all-to-all=alltoall|a2a=alltoall|all-gather=allgather|flex=deepep|deep-ep=deepep|hybrid-ep=hybridep",
         .aliases = "dispatcher", .def = "alltoall", .doc = "how tokens reach their experts"),
    I32(flex_sms, "moe_flex_dispatcher_num_sms", .aliases = "flex_sms|moe_deepep_num_sms|moe_hybridep_num_sms",
        .def = "0", .min = 0, .max = 1024, .doc = "SMs of an exchange by deepep or hybridep; 0 = 20 and 16"),
    DOUBLE(capacity_factor, "moe_expert_capacity_factor", .aliases = "capacity_factor", .def = "0", .min = 0,
           .max = 1000, .doc = "tokens per expert over the mean at which tokens are dropped; 0 = dropless"),
    AUTO(pads_experts, "moe_pad_expert_input_to_capacity",
         .doc = "every expert computes its full capacity; auto = with a capacity factor"),
    DOUBLE(imbalance, "moe_imbalance", .def = "1", .min = 1, .max = 10000,
           .doc = "dropless: load of the busiest EP rank over the mean (maquette)"),
    AUTO(overlap_ep, "overlap_moe_expert_parallel_comm", .aliases = "overlap_ep",
         .doc = "all-to-all of one microbatch under the compute of another; auto = with dualpipe"),
    BOOL(overlap_shared_experts, "moe_shared_expert_overlap", .def = "false",
         .doc = "shared experts run under the dispatch"),
    BOOL(delay_wgrad, "delay_wgrad_compute", .def = "false",
         .doc = "with overlap_moe_expert_parallel_comm: no exchange waits for gradients of weights"),
    /* kernels and overlap inside a layer */
    AUTO(overlap_tp, "tp_comm_overlap", .doc = "TP collectives cut in pieces under the GEMMs; auto = off"),
    ENUM(attention_backend, "attention_backend", attention_names,
         .slips = "fa=flash|flash-attn=flash|flash-attention=flash|fused=flash|cudnn=flash|fa3=flash|flash3=flash|"
                  "flash-attention-3=flash|fa2=flash2|flash-attention-2=flash2|flash-attn-2=flash2|sdpa=flash2|fa1="
                  "flash1|eager=unfused|local=unfused|math=unfused",
         .def = "auto",
         .doc = "flash: the generation's best fused kernels; flash2: FlashAttention-2; flash1, triton: the first one, "
                "in CUDA and in Triton; "
                "auto = flash from Ampere on"),
    {.type = MAQ_TYPE_NODE,
     .key = "cuda_graph_scope",
     .offset = offsetof(struct maq_plan_doc, list[MAQ_PLAN_GRAPH_SCOPE]),
     .doc = "parts of a layer that are graphs: list of attn, mamba, mlp, moe_router, moe_preprocess, moe; "
            "full_iteration is enable_cuda_graph"},
    BOOL(cuda_graphs, "enable_cuda_graph", .aliases = "cuda_graphs", .def = "false",
         .doc = "layers replayed as graphs: no host launch cost in them"),
    BOOL(softmax_fusion, "masked_softmax_fusion", .def = "true",
         .doc =
             "unfused attention: scale, mask and softmax as one kernel, where Megatron's applies (with fused_kernels)"),
    BOOL(softmax_fp32, "attention_softmax_in_fp32", .def = "true",
         .doc = "and without it: scores scaled in a kernel of their own and converted to FP32 and back"),
    BOOL(fused_kernels, "fused_kernels", .def = "true",
         .doc = "bias+activation, bias+dropout+add, RoPE, cross-entropy fused (maquette)"),
    BOOL(loss_fusion, "cross_entropy_loss_fusion", .def = "true",
         .doc = "cross-entropy as one kernel per pass (with fused_kernels)"),
    BOOL(op_fuser, "use_transformer_engine_op_fuser", .def = "false",
         .doc = "bias and clamping of experts inside their products, whatever the framework does without it"),
    BOOL(weight_grad_fusion, "gradient_accumulation_fusion", .def = "true",
         .doc = "weight-gradient GEMMs add into the main gradient"),
    /* fine-tuning */
    I32(lora_rank, "lora_rank", .aliases = "lora_dim|lora_r", .def = "0", .min = 0, .max = 65536,
        .doc = "rank of LoRA adapters; 0 = all parameters are trained"),
    ENUM(base_quantization, "lora_base_quantization", base_names,
         .slips = "8bit=int8|int4=nf4|4bit=nf4|qlora=nf4-double|fp4=nf4", .def = "none",
         .doc = "frozen linears in int8 (LLM.int8()), or QLoRA's nf4, nf4-double with quantized scales"),
    STR(lora_targets, "lora_target_modules", .def = "",
        .doc =
            "comma list of adapted modules, in NeMo's words (linear_qkv, linear_q, linear_k, linear_v, linear_proj, "
            "linear_fc1, linear_fc1_gate, linear_fc1_up, linear_fc2, ...) or PEFT's (q_proj, ..., all-linear); none = "
            "linear_qkv, linear_proj, linear_fc1, linear_fc2"),
    BOOL(use_dora, "use_dora", .def = "false",
         .doc = "DoRA: adapters turn a weight, and a magnitude of each of its rows is trained beside them (PEFT)"),
    MAQ_FIELD_END};
_Static_assert(sizeof maq_plan_fields / sizeof maq_plan_fields[0] <= MAQ_PLAN_FIELDS_MAX + 1,
               "keys of the plan, and the end of their list");

#undef I32
#undef BOOL
#undef DOUBLE
#undef ENUM
#undef STR
#undef AUTO

const char *maq_plan_value(char buf[64], const struct maq_plan *plan, const char *key)
{
    const struct maq_field *field = maq_fields_find(maq_plan_fields, maq_str_of(key));
    const struct maq_plan_doc doc = {.plan = *plan};
    bool one = field && field->type != MAQ_TYPE_STR && field->type != MAQ_TYPE_NODE;
    return one ? maq_field_format(buf, field, &doc) : NULL;
}

const struct maq_field maq_workload_fields[] = {
    MAQ_FIELD_I64(struct maq_workload, seq, "seq_length", .aliases = "seq", .def = "0", .min = 0, .max = 1 << 30,
                  .doc = "tokens per sequence; 0 = the model's max_position_embeddings, at most 8192"),
    MAQ_FIELD_I32(struct maq_workload, gbs, "global_batch_size", .aliases = "gbs", .def = "0", .min = 0, .max = 1 << 30,
                  .doc = "sequences per step; 0 = one microbatch per rank and stage"),
    MAQ_FIELD_I32(struct maq_workload, accumulation, "gradient_accumulation_steps", .aliases = "accumulation",
                  .def = "0", .min = 0, .max = 1 << 30,
                  .doc = "microbatches of a replica in a step; 0 = what global_batch_size leaves"),
    MAQ_FIELD_DOUBLE(struct maq_workload, length_mean, "length_mean", .def = "0", .min = 0, .max = 1 << 30,
                     .doc = "mean document length in tokens; 0 = every document fills a sequence"),
    MAQ_FIELD_DOUBLE(struct maq_workload, length_cv, "length_cv", .def = "0", .min = 0, .max = 100,
                     .doc = "coefficient of variation of the (lognormal) document length"),
    MAQ_FIELD_BOOL(struct maq_workload, packed, "packed", .def = "true",
                   .doc =
                       "documents packed into sequences, each attending to itself; false = one per sequence, padded"),
    MAQ_FIELD_END};
